//! One client of TATP: its statements, and the mix of its seven transactions (35, 10, 35, 2, 14, 2 and 2 %).
//!
//! Answers are looked at as they come: a subscriber that is asked for is there once, with its number; a destination is one
//! that was looked for.

use std::collections::HashMap;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row, Statement};

use super::load::{START_TIMES, number_of};
use crate::error::{Error, Result};
use crate::oltp::driver::{self, Terminal};
use crate::random::Random;
use crate::value::{int, text};

pub const KINDS: [&str; 7] = [
    "Get-Subscriber-Data",
    "Get-New-Destination",
    "Get-Access-Data",
    "Update-Subscriber-Data",
    "Update-Location",
    "Insert-Call-Forwarding",
    "Delete-Call-Forwarding",
];

/// What a client knows to be committed.
#[derive(Default)]
pub struct Books {
    pub inserted: i64,
    pub deleted: i64,
    /// By subscriber, the last location that each terminal gave it: the last one of all is among them.
    pub locations: HashMap<i64, Vec<i64>>,
}

impl driver::Books for Books {
    fn add(&mut self, other: Books) {
        self.inserted += other.inserted;
        self.deleted += other.deleted;
        for (subscriber, locations) in other.locations {
            self.locations.entry(subscriber).or_default().extend(locations);
        }
    }
}

/// A transaction with its inputs.
#[derive(Clone, Copy)]
enum Drawn {
    GetSubscriber { id: i64 },
    GetDestination { id: i64, facility: i64, start: i64, end: i64 },
    GetAccess { id: i64, ai_type: i64 },
    UpdateSubscriber { id: i64, bit: i64, facility: i64, data: i64 },
    UpdateLocation { id: i64, location: i64 },
    Insert { id: i64, facility: i64, start: i64, end: i64, number: i64 },
    Delete { id: i64, facility: i64, start: i64 },
}

struct Statements {
    subscriber: Statement,
    destination: Statement,
    access: Statement,
    set_bit: Statement,
    set_data: Statement,
    set_location: Statement,
    by_number: Statement,
    facilities: Statement,
    insert: Statement,
    delete: Statement,
}

impl Statements {
    fn prepare(conn: &mut Conn) -> Result<Statements> {
        Ok(Statements {
            subscriber: conn.prep("SELECT * FROM subscriber WHERE s_id = ?")?,
            destination: conn.prep(
                "SELECT cf.numberx FROM special_facility AS sf, call_forwarding AS cf
                 WHERE sf.s_id = ? AND sf.sf_type = ? AND sf.is_active = 1 AND cf.s_id = sf.s_id
                 AND cf.sf_type = sf.sf_type AND cf.start_time <= ? AND ? < cf.end_time",
            )?,
            access: conn
                .prep("SELECT data1, data2, data3, data4 FROM access_info WHERE s_id = ? AND ai_type = ?")?,
            set_bit: conn.prep("UPDATE subscriber SET bit_1 = ? WHERE s_id = ?")?,
            set_data: conn.prep("UPDATE special_facility SET data_a = ? WHERE s_id = ? AND sf_type = ?")?,
            set_location: conn.prep("UPDATE subscriber SET vlr_location = ? WHERE sub_nbr = ?")?,
            by_number: conn.prep("SELECT s_id FROM subscriber WHERE sub_nbr = ?")?,
            facilities: conn.prep("SELECT sf_type FROM special_facility WHERE s_id = ?")?,
            insert: conn.prep("INSERT INTO call_forwarding VALUES (?, ?, ?, ?, ?)")?,
            delete: conn
                .prep("DELETE FROM call_forwarding WHERE s_id = ? AND sf_type = ? AND start_time = ?")?,
        })
    }
}

pub struct TatpTerminal {
    conn: Conn,
    statements: Statements,
    random: Random,
    subscribers: i64,
    drawn: Drawn,
    inserted: i64,
    deleted: i64,
    locations: HashMap<i64, i64>,
}

impl TatpTerminal {
    pub fn connect(options: OptsBuilder, subscribers: i64, seed: u64) -> Result<TatpTerminal> {
        let mut conn = Conn::new(options)?;
        let statements = Statements::prepare(&mut conn)?;
        Ok(TatpTerminal {
            conn,
            statements,
            random: Random::new(seed),
            subscribers,
            drawn: Drawn::GetSubscriber { id: 1 },
            inserted: 0,
            deleted: 0,
            locations: HashMap::new(),
        })
    }

    fn get_subscriber(&mut self, id: i64) -> Result<()> {
        let row: Option<Row> = self.conn.exec_first(&self.statements.subscriber, (id,))?;
        let row = row.ok_or_else(|| Error::Check(format!("subscriber {id} is not there")))?;
        match (int(&row, 0)?, text(&row, 1)?) {
            (found, number) if found == id && number == number_of(id) => Ok(()),
            (found, number) => Err(Error::Check(format!("subscriber {id} came as {found} with {number}"))),
        }
    }

    fn get_destination(&mut self, keys: [i64; 4]) -> Result<()> {
        let numbers: Vec<Row> = self.conn.exec(&self.statements.destination, keys.to_vec())?;
        for row in &numbers {
            let number = text(row, 0)?;
            if number.len() != 15 {
                return Err(Error::Check(format!("a call is forwarded to '{number}'")));
            }
        }
        Ok(())
    }

    fn update_subscriber(&mut self, id: i64, bit: i64, facility: i64, data: i64) -> Result<()> {
        self.conn.query_drop("START TRANSACTION")?;
        self.conn.exec_drop(&self.statements.set_bit, (bit, id))?;
        self.conn.exec_drop(&self.statements.set_data, (data, id, facility))?;
        // Without the facility the transaction has failed.
        let end = if self.conn.affected_rows() > 0 { "COMMIT" } else { "ROLLBACK" };
        Ok(self.conn.query_drop(end)?)
    }

    fn update_location(&mut self, id: i64, location: i64) -> Result<()> {
        self.conn.exec_drop(&self.statements.set_location, (location, number_of(id)))?;
        self.locations.insert(id, location);
        Ok(())
    }

    fn insert(&mut self, row: [i64; 4], number: i64) -> Result<()> {
        let [id, facility, start, end] = row;
        self.conn.query_drop("START TRANSACTION")?;
        let found: Option<Row> = self.conn.exec_first(&self.statements.by_number, (number_of(id),))?;
        let found = found.map(|row| int(&row, 0)).transpose()?;
        if found != Some(id) {
            return Err(Error::Check(format!("subscriber {id} was found as {found:?} by its number")));
        }
        let types: Vec<Row> = self.conn.exec(&self.statements.facilities, (id,))?;
        let types = types.iter().map(|row| int(row, 0)).collect::<Result<Vec<_>>>()?;
        if !types.contains(&facility) {
            return Ok(self.conn.query_drop("ROLLBACK")?);
        }
        let row = (id, facility, start, end, number_of(number));
        match self.conn.exec_drop(&self.statements.insert, row).map_err(Error::from) {
            Ok(()) => {
                self.conn.query_drop("COMMIT")?;
                self.inserted += 1;
                Ok(())
            }
            // It is there already: the transaction has failed.
            Err(e) if e.errno() == Some(1062) => Ok(self.conn.query_drop("ROLLBACK")?),
            Err(e) => Err(e),
        }
    }

    fn delete(&mut self, id: i64, facility: i64, start: i64) -> Result<()> {
        self.conn.query_drop("START TRANSACTION")?;
        let found: Option<Row> = self.conn.exec_first(&self.statements.by_number, (number_of(id),))?;
        let id = found.map_or(Ok(id), |row| int(&row, 0))?;
        self.conn.exec_drop(&self.statements.delete, (id, facility, start))?;
        let deleted = self.conn.affected_rows() as i64;
        self.conn.query_drop("COMMIT")?;
        self.deleted += deleted;
        Ok(())
    }
}

/// A subscriber, not uniformly: `(random(0..=A) | random(1..=n)) mod n + 1`.
fn subscriber(random: &mut Random, count: i64) -> i64 {
    let a = match count {
        ..=1_000_000 => 65_535,
        1_000_001..=10_000_000 => 1_048_575,
        _ => 2_097_151,
    };
    (random.uniform(0, a) | random.uniform(1, count)) % count + 1
}

impl Terminal for TatpTerminal {
    type Error = Error;
    type Books = Books;

    fn draw(&mut self) -> usize {
        let random = &mut self.random;
        let id = subscriber(random, self.subscribers);
        let facility = random.uniform(1, 4);
        let start = START_TIMES[random.uniform(0, 2) as usize];
        let (kind, drawn) = match random.uniform(1, 100) {
            1..=35 => (0, Drawn::GetSubscriber { id }),
            36..=45 => (1, Drawn::GetDestination { id, facility, start, end: random.uniform(1, 24) }),
            46..=80 => (2, Drawn::GetAccess { id, ai_type: facility }),
            81..=82 => {
                let (bit, data) = (random.uniform(0, 1), random.uniform(0, 255));
                (3, Drawn::UpdateSubscriber { id, bit, facility, data })
            }
            83..=96 => (4, Drawn::UpdateLocation { id, location: random.uniform(1, i64::from(u32::MAX)) }),
            97..=98 => {
                let (end, number) = (start + random.uniform(1, 8), random.uniform(0, 999_999_999));
                (5, Drawn::Insert { id, facility, start, end, number })
            }
            _ => (6, Drawn::Delete { id, facility, start }),
        };
        self.drawn = drawn;
        kind
    }

    fn attempt(&mut self) -> Result<()> {
        match self.drawn {
            Drawn::GetSubscriber { id } => self.get_subscriber(id),
            Drawn::GetDestination { id, facility, start, end } => {
                self.get_destination([id, facility, start, end])
            }
            Drawn::GetAccess { id, ai_type } => {
                let _: Option<Row> = self.conn.exec_first(&self.statements.access, (id, ai_type))?;
                Ok(())
            }
            Drawn::UpdateSubscriber { id, bit, facility, data } => {
                self.update_subscriber(id, bit, facility, data)
            }
            Drawn::UpdateLocation { id, location } => self.update_location(id, location),
            Drawn::Insert { id, facility, start, end, number } => {
                self.insert([id, facility, start, end], number)
            }
            Drawn::Delete { id, facility, start } => self.delete(id, facility, start),
        }
    }

    fn rollback(&mut self) -> Result<()> {
        Ok(self.conn.query_drop("ROLLBACK")?)
    }

    fn into_books(self) -> Books {
        let locations = self.locations.into_iter().map(|(id, location)| (id, vec![location])).collect();
        Books { inserted: self.inserted, deleted: self.deleted, locations }
    }
}
