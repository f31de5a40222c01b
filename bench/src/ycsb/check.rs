//! What must hold after a run of YCSB: every row that was loaded or inserted is there, and every field has a value that was
//! written to it: the last one of some terminal, or the one before the run, with one added for every read-modify-write.

use std::collections::HashMap;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use super::field::{self, FIELDS, Stamp};
use super::keys::key;
use super::terminal::{Books, Place, bytes};
use crate::error::Result;
use crate::finding::Finding;

/// More terminals than a run has.
const WRITERS_OF_A_RUN: u64 = 4_096;

/// The table as the last check found it.
pub struct Table {
    rows: u64,
    /// Where it is not the load's.
    stamps: HashMap<Place, Stamp>,
    runs: u64,
}

/// What a look at all rows found.
#[derive(Default)]
struct Seen {
    rows: u64,
    strangers: u64,
    /// Fields with values that nobody ever wrote there.
    broken: u64,
    /// Fields that lack an acknowledged write.
    lost: u64,
    stamps: HashMap<Place, Stamp>,
}

impl Table {
    pub fn loaded(rows: u64) -> Table {
        Table { rows, stamps: HashMap::new(), runs: 0 }
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The first writer's number of the next run: no two runs on the same data share one.
    pub fn writers(&self) -> u64 {
        (self.runs + 1) * WRITERS_OF_A_RUN
    }

    /// Compares the table with the books, and notes its state for the next run.
    pub fn check(&mut self, options: &OptsBuilder, books: Books) -> Result<Vec<Finding>> {
        self.runs += 1;
        self.rows += books.inserted;
        let seen = self.look(options, &books)?;
        let rows = self.rows;
        self.stamps = seen.stamps;
        Ok(vec![
            Finding::new(
                format!("{rows} rows, {} of them inserted", books.inserted),
                seen.rows == rows && seen.strangers == 0,
                || format!("{} rows, {} of unknown keys", seen.rows, seen.strangers),
            ),
            Finding::new("every value was written to its field", seen.broken == 0, || {
                format!("{} were not", seen.broken)
            }),
            Finding::new(
                format!(
                    "{} updated fields have what was written last, {} modified ones every change",
                    books.written.len(),
                    books.added.len()
                ),
                seen.lost == 0,
                || format!("{} have not", seen.lost),
            ),
        ])
    }

    fn look(&self, options: &OptsBuilder, books: &Books) -> Result<Seen> {
        let numbers: HashMap<String, u64> = (0..self.rows).map(|number| (key(number), number)).collect();
        let mut conn = Conn::new(options.clone())?;
        let mut seen = Seen::default();
        let mut scratch = String::new();
        for row in conn.query_iter("SELECT * FROM usertable")? {
            let row = row?;
            seen.rows += 1;
            let Some(&number) = std::str::from_utf8(bytes(&row, 0)?).ok().and_then(|k| numbers.get(k)) else {
                seen.strangers += 1;
                continue;
            };
            for field in 0..FIELDS {
                let place = (number, field);
                match field::stamp(number, field, bytes(&row, field + 1)?, &mut scratch) {
                    Err(_) => seen.broken += 1,
                    Ok(stamp) => {
                        seen.lost += u64::from(!self.expects(place, stamp, books));
                        if stamp != Stamp::default() {
                            seen.stamps.insert(place, stamp);
                        }
                    }
                }
            }
        }
        Ok(seen)
    }

    /// Whether a field may have this stamp.
    fn expects(&self, place: Place, stamp: Stamp, books: &Books) -> bool {
        match books.written.get(&place) {
            Some(last) => last.contains(&stamp),
            None => {
                let before = self.stamps.get(&place).copied().unwrap_or_default();
                stamp.0 == before.0 + books.added.get(&place).copied().unwrap_or(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_its_last_write_or_every_change() {
        let mut table = Table::loaded(3);
        table.stamps.insert((1, 0), Stamp(70));
        let mut books = Books::default();
        books.written.insert((0, 4), vec![Stamp(5), Stamp(9)]);
        books.added.insert((1, 0), 3);
        assert!(table.expects((0, 4), Stamp(9), &books) && table.expects((0, 4), Stamp(5), &books));
        assert!(!table.expects((0, 4), Stamp(0), &books), "a lost update");
        assert!(table.expects((1, 0), Stamp(73), &books));
        assert!(!table.expects((1, 0), Stamp(72), &books), "a lost read-modify-write");
        assert!(table.expects((2, 2), Stamp(0), &books));
        assert!(!table.expects((2, 2), Stamp(1), &books), "a write that nobody made");
    }
}
