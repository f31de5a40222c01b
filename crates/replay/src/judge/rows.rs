//! Rows of two answers against each other.

use std::collections::{HashMap, HashSet};

use avocet_types::Collation;

use super::folds;
use crate::answer::{Column, Row, number};

/// FLOAT has 24 bits, of which six digits are written.
const FLOAT_TOLERANCE: f64 = 1e-5;
/// Rows that differ in approximate numbers alone are tried each with each up to here.
const TRIED: usize = 512;
/// Of a value, what is shown.
const SHOWN: usize = 200;

pub struct Matcher<'a> {
    columns: &'a [Column],
    pub tolerance: f64,
    folds: Option<Collation>,
    /// Texts are compared as `folds` says, for all and not for order alone.
    is_folded: bool,
}

type Value = Option<Vec<u8>>;

impl<'a> Matcher<'a> {
    pub fn new(columns: &'a [Column], tolerance: f64) -> Self {
        Self { columns, tolerance, folds: folds(), is_folded: false }
    }

    /// One for which equal texts are the same.
    pub fn folded(&self) -> Self {
        Self { is_folded: true, ..*self }
    }

    fn folded_text(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut key = Vec::new();
        self.folds?.sort_key(std::str::from_utf8(text).ok()?, &mut key);
        Some(key)
    }

    fn is_same(&self, at: usize, there: &Value, here: &Value) -> bool {
        match (there, here) {
            _ if there == here => true,
            (Some(there), Some(here)) if self.columns[at].is_approximate() => {
                let is_float = self.columns[at].kind == mysql::consts::ColumnType::MYSQL_TYPE_FLOAT;
                let tolerance = self.tolerance.max(if is_float { FLOAT_TOLERANCE } else { 0.0 });
                let (there, here) = (number(there), number(here));
                (there - here).abs() <= tolerance * there.abs().max(here.abs())
            }
            _ => false,
        }
    }

    fn is_same_key(&self, at: usize, there: &Value, here: &Value) -> bool {
        self.is_same(at, there, here)
            || match (there, here) {
                (Some(there), Some(here)) if self.columns[at].text => {
                    let there = self.folded_text(there);
                    there.is_some() && there == self.folded_text(here)
                }
                _ => false,
            }
    }

    pub fn has_keys_of(&self, a: &Row, b: &Row, keys: &[usize]) -> bool {
        keys.iter().all(|at| self.is_same_key(*at, &a[*at], &b[*at]))
    }

    fn is_same_row(&self, there: &Row, here: &Row) -> bool {
        (0..self.columns.len()).all(|at| self.is_same(at, &there[at], &here[at]))
    }

    /// The first place where the rows, as they come, are not the same.
    pub fn first_in_order(&self, there: &[Row], here: &[Row]) -> Option<usize> {
        there.iter().zip(here).position(|(there, here)| !self.is_same_row(there, here))
    }

    pub fn first_out_of_order(&self, there: &[Row], here: &[Row], keys: &[usize]) -> Option<usize> {
        there.iter().zip(here).position(|(there, here)| !self.has_keys_of(there, here, keys))
    }

    /// What of a row is the same in equal rows.
    fn exact(&self, row: &Row) -> Vec<u8> {
        let mut exact = Vec::new();
        for (value, column) in row.iter().zip(self.columns) {
            let Some(value) = value else {
                exact.push(0);
                continue;
            };
            exact.push(1);
            if column.is_approximate() {
                continue;
            }
            let folded = (self.is_folded && column.text).then(|| self.folded_text(value)).flatten();
            let value = folded.as_ref().unwrap_or(value);
            exact.extend_from_slice(&(value.len() as u64).to_le_bytes());
            exact.extend_from_slice(value);
        }
        exact
    }

    /// The first rows that one side has alone, whatever their order, for people; `None` if there are none.
    pub fn unmatched(&self, there: &[Row], here: &[Row]) -> Option<String> {
        let mut groups: HashMap<Vec<u8>, (Vec<&Row>, Vec<&Row>)> = HashMap::new();
        there.iter().for_each(|row| groups.entry(self.exact(row)).or_default().0.push(row));
        here.iter().for_each(|row| groups.entry(self.exact(row)).or_default().1.push(row));
        let has_approximate = self.columns.iter().any(Column::is_approximate);
        let mut alone: [Vec<&Row>; 2] = [Vec::new(), Vec::new()];
        for (there, here) in groups.values() {
            let (there, here) = match has_approximate {
                true => self.pair(there, here),
                false => {
                    let paired = there.len().min(here.len());
                    (there[paired..].to_vec(), here[paired..].to_vec())
                }
            };
            alone[0].extend(there);
            alone[1].extend(here);
        }
        if alone.iter().all(Vec::is_empty) {
            return None;
        }
        // The first of the answer, not of the table.
        let first = |rows: &[Row], alone: &[&Row]| {
            let alone: HashSet<*const Row> = alone.iter().map(|row| std::ptr::from_ref(*row)).collect();
            let mut numbered = rows.iter().enumerate();
            let found = numbered.find(|(_, row)| alone.contains(&std::ptr::from_ref(*row)));
            found.map(|(at, row)| format!("row {} {}", at + 1, self.shown(row)))
        };
        let none = || "nothing that is not at the other, too".to_owned();
        Some(format!(
            "at the source alone: {}; at Avocet alone: {} ({} and {} such rows)",
            first(there, &alone[0]).unwrap_or_else(none),
            first(here, &alone[1]).unwrap_or_else(none),
            alone[0].len(),
            alone[1].len()
        ))
    }

    /// Whether two rows whose other columns are the same have the same approximate numbers.
    fn has_numbers_of(&self, there: &Row, here: &Row) -> bool {
        let columns = self.columns.iter().enumerate().filter(|(_, column)| column.is_approximate());
        columns.map(|(at, _)| at).all(|at| self.is_same(at, &there[at], &here[at]))
    }

    /// Rows of either side that have no partner, of such as are equal but for approximate numbers.
    fn pair<'r>(&self, there: &[&'r Row], here: &[&'r Row]) -> (Vec<&'r Row>, Vec<&'r Row>) {
        let numbers = |row: &Row| -> Vec<f64> {
            let of = |(value, column): (&Value, &Column)| match value {
                Some(value) if column.is_approximate() => number(value),
                _ => 0.0,
            };
            row.iter().zip(self.columns).map(of).collect()
        };
        let sorted = |rows: &[&'r Row]| {
            let mut keyed: Vec<(Vec<f64>, &'r Row)> = rows.iter().map(|row| (numbers(row), *row)).collect();
            keyed.sort_by(|(a, _), (b, _)| {
                a.iter()
                    .zip(b)
                    .map(|(a, b)| a.total_cmp(b))
                    .find(|o| o.is_ne())
                    .unwrap_or(std::cmp::Ordering::Equal)
            });
            keyed.into_iter().map(|(_, row)| row).collect::<Vec<_>>()
        };
        let (there, mut here) = (sorted(there), sorted(here));
        let all_match =
            there.len() == here.len() && there.iter().zip(&here).all(|(a, b)| self.has_numbers_of(a, b));
        if all_match {
            return (Vec::new(), Vec::new());
        }
        let mut alone = Vec::new();
        for row in there {
            // Neighbours in order are near each other in number.
            match here.iter().take(TRIED).position(|other| self.has_numbers_of(row, other)) {
                Some(at) => drop(here.remove(at)),
                None => alone.push(row),
            }
        }
        (alone, here)
    }

    pub fn shown_at(&self, there: &[Row], here: &[Row], at: usize) -> String {
        let shown = |rows: &[Row]| rows.get(at).map_or_else(|| "nothing".into(), |row| self.shown(row));
        format!("row {}: {} at the source, {} at Avocet", at + 1, shown(there), shown(here))
    }

    fn shown(&self, row: &Row) -> String {
        let value = |(value, column): (&Value, &Column)| match value {
            None => "NULL".to_owned(),
            Some(bytes) => {
                let cut = &bytes[..bytes.len().min(SHOWN)];
                let more = if bytes.len() > SHOWN { "…" } else { "" };
                match std::str::from_utf8(cut) {
                    Ok(text) if column.kind.is_numeric_type() => text.to_owned(),
                    Ok(text) if column.text => format!("{text:?}{more}"),
                    Ok(text) if text.chars().all(|c| !c.is_control()) => format!("{text:?}{more}"),
                    _ => {
                        let hex: String = cut.iter().map(|byte| format!("{byte:02X}")).collect();
                        format!("0x{hex}{more}")
                    }
                }
            }
        };
        let values: Vec<String> = row.iter().zip(self.columns).map(value).collect();
        format!("({})", values.join(", "))
    }
}
