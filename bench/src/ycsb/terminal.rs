//! One client of YCSB: draws operations of a workload, runs them, checks every value that it reads, and keeps books of what it
//! wrote.

use std::collections::HashMap;
use std::sync::Arc;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Params, Row, Statement, Value};

use super::Letter;
use super::field::{self, FIELDS, Stamp};
use super::keys::{KeySpace, key};
use super::zipf::{Scrambled, Zipfian};
use crate::error::{Error, Result};
use crate::oltp::driver::{self, Terminal};
use crate::random::Random;

pub const KINDS: [&str; 5] = ["Read", "Update", "Insert", "Scan", "Read-Modify-Write"];
/// The longest scan, in rows.
const LONGEST_SCAN: i64 = 100;
/// A writer's counts in its stamps, with room for what read-modify-write adds.
const WRITER_SHIFT: u32 = 40;

/// A field of a row, by the row's number.
pub type Place = (u64, usize);

/// What a client knows to be committed.
#[derive(Default)]
pub struct Books {
    pub inserted: u64,
    /// The last stamp that each terminal wrote to a field, by UPDATE: the field's own is one of these.
    pub written: HashMap<Place, Vec<Stamp>>,
    /// How often read-modify-write added one to a field's stamp.
    pub added: HashMap<Place, u64>,
}

impl driver::Books for Books {
    fn add(&mut self, other: Books) {
        self.inserted += other.inserted;
        for (place, stamps) in other.written {
            self.written.entry(place).or_default().extend(stamps);
        }
        for (place, count) in other.added {
            *self.added.entry(place).or_default() += count;
        }
    }
}

#[derive(Clone, Copy)]
enum Drawn {
    Read(u64),
    Update(u64, usize),
    Insert(u64),
    Scan(u64, i64),
    Modify(u64, usize),
}

struct Statements {
    read: Statement,
    scan: Statement,
    insert: Statement,
    update: Vec<Statement>,
    lock: Vec<Statement>,
}

impl Statements {
    fn prepare(conn: &mut Conn) -> Result<Statements> {
        let each = |conn: &mut Conn, sql: fn(usize) -> String| -> Result<Vec<Statement>> {
            (0..FIELDS).map(|field| Ok(conn.prep(sql(field))?)).collect()
        };
        Ok(Statements {
            read: conn.prep("SELECT * FROM usertable WHERE ycsb_key = ?")?,
            scan: conn.prep("SELECT * FROM usertable WHERE ycsb_key >= ? ORDER BY ycsb_key LIMIT ?")?,
            insert: conn.prep(format!("INSERT INTO usertable VALUES (?{})", ", ?".repeat(FIELDS)))?,
            update: each(conn, |field| format!("UPDATE usertable SET field{field} = ? WHERE ycsb_key = ?"))?,
            lock: each(conn, |field| {
                format!("SELECT field{field} FROM usertable WHERE ycsb_key = ? FOR UPDATE")
            })?,
        })
    }
}

pub struct YcsbTerminal {
    conn: Conn,
    statements: Statements,
    letter: Letter,
    keys: Arc<KeySpace>,
    random: Random,
    scrambled: Scrambled,
    /// How far behind the newest key: for workload D.
    latest: Zipfian,
    drawn: Drawn,
    /// This terminal's, unlike any other's of all runs on the same data.
    writer: u64,
    writes: u64,
    inserted: u64,
    written: HashMap<Place, Stamp>,
    added: HashMap<Place, u64>,
    scratch: String,
}

impl YcsbTerminal {
    pub fn connect(
        options: OptsBuilder,
        letter: Letter,
        keys: Arc<KeySpace>,
        seed: u64,
        writer: u64,
    ) -> Result<YcsbTerminal> {
        let mut conn = Conn::new(options)?;
        let statements = Statements::prepare(&mut conn)?;
        Ok(YcsbTerminal {
            conn,
            statements,
            letter,
            random: Random::new(seed),
            scrambled: Scrambled::new(),
            latest: Zipfian::new(if letter == Letter::D { keys.len() } else { 1 }),
            keys,
            drawn: Drawn::Read(0),
            writer,
            writes: 0,
            inserted: 0,
            written: HashMap::new(),
            added: HashMap::new(),
            scratch: String::new(),
        })
    }

    /// A key that there is, as the workload chooses it.
    fn choose(&mut self) -> u64 {
        let there = self.keys.len();
        if self.letter == Letter::D {
            self.latest.grow(there);
            there - 1 - self.latest.draw(&mut self.random)
        } else {
            self.scrambled.draw(&mut self.random, there)
        }
    }

    fn read(&mut self, number: u64) -> Result<()> {
        let row: Option<Row> = self.conn.exec_first(&self.statements.read, (key(number),))?;
        let row = row.ok_or_else(|| Error::Check(format!("the row of key {number} is not there")))?;
        (0..FIELDS).try_for_each(|field| {
            field::stamp(number, field, bytes(&row, field + 1)?, &mut self.scratch).map(drop)
        })
    }

    fn update(&mut self, number: u64, field: usize) -> Result<()> {
        self.writes += 1;
        let stamp = Stamp(self.writer << WRITER_SHIFT | self.writes << 16);
        self.set(number, field, stamp)?;
        self.written.insert((number, field), stamp);
        Ok(())
    }

    fn set(&mut self, number: u64, field: usize, stamp: Stamp) -> Result<()> {
        let mut value = String::new();
        field::value(number, field, stamp, &mut value);
        self.conn.exec_drop(&self.statements.update[field], (value, key(number)))?;
        match self.conn.affected_rows() {
            1 => Ok(()),
            n => Err(Error::Check(format!("an update of key {number} changed {n} rows"))),
        }
    }

    fn insert(&mut self, number: u64) -> Result<()> {
        let mut row = vec![Value::from(key(number))];
        for field in 0..FIELDS {
            let mut value = String::new();
            field::value(number, field, Stamp::default(), &mut value);
            row.push(Value::from(value));
        }
        self.conn.exec_drop(&self.statements.insert, Params::Positional(row))?;
        self.keys.acknowledge(number);
        self.inserted += 1;
        Ok(())
    }

    /// The rows come in order, from the first key on that is not below the one wanted.
    fn scan(&mut self, number: u64, count: i64) -> Result<()> {
        let first = key(number);
        let rows: Vec<Row> = self.conn.exec(&self.statements.scan, (&first, count))?;
        let mut before: &[u8] = b"";
        for row in &rows {
            let key = bytes(row, 0)?;
            if key <= before {
                return Err(Error::Check(format!("a scan from '{first}' came out of order")));
            }
            before = key;
        }
        match rows.first() {
            Some(row) if bytes(row, 0)? == first.as_bytes() && rows.len() <= count as usize => Ok(()),
            _ => Err(Error::Check(format!("a scan from '{first}' did not begin there"))),
        }
    }

    fn modify(&mut self, number: u64, field: usize) -> Result<()> {
        self.conn.query_drop("START TRANSACTION")?;
        let row: Option<Row> = self.conn.exec_first(&self.statements.lock[field], (key(number),))?;
        let row = row.ok_or_else(|| Error::Check(format!("the row of key {number} is not there")))?;
        let old = field::stamp(number, field, bytes(&row, 0)?, &mut self.scratch)?;
        self.set(number, field, Stamp(old.0 + 1))?;
        self.conn.query_drop("COMMIT")?;
        *self.added.entry((number, field)).or_default() += 1;
        Ok(())
    }
}

/// A text column as it came.
pub fn bytes(row: &Row, column: usize) -> Result<&[u8]> {
    match row.as_ref(column) {
        Some(Value::Bytes(bytes)) => Ok(bytes),
        other => Err(Error::Check(format!("column {column} is {other:?}, not text"))),
    }
}

impl Terminal for YcsbTerminal {
    type Error = Error;
    type Books = Books;

    fn draw(&mut self) -> usize {
        let percent = self.random.uniform(1, 100);
        let field = self.random.uniform(0, FIELDS as i64 - 1) as usize;
        let (kind, drawn) = match self.letter {
            Letter::A if percent > 50 => (1, Drawn::Update(self.choose(), field)),
            Letter::B if percent > 95 => (1, Drawn::Update(self.choose(), field)),
            Letter::D | Letter::E if percent > 95 => (2, Drawn::Insert(self.keys.take())),
            Letter::E => {
                let number = self.choose();
                (3, Drawn::Scan(number, self.random.uniform(1, LONGEST_SCAN)))
            }
            Letter::F if percent > 50 => (4, Drawn::Modify(self.choose(), field)),
            _ => (0, Drawn::Read(self.choose())),
        };
        self.drawn = drawn;
        kind
    }

    fn attempt(&mut self) -> Result<()> {
        match self.drawn {
            Drawn::Read(number) => self.read(number),
            Drawn::Update(number, field) => self.update(number, field),
            Drawn::Insert(number) => self.insert(number),
            Drawn::Scan(number, count) => self.scan(number, count),
            Drawn::Modify(number, field) => self.modify(number, field),
        }
    }

    fn rollback(&mut self) -> Result<()> {
        Ok(self.conn.query_drop("ROLLBACK")?)
    }

    fn into_books(self) -> Books {
        let written = self.written.into_iter().map(|(place, stamp)| (place, vec![stamp])).collect();
        Books { inserted: self.inserted, written, added: self.added }
    }
}
