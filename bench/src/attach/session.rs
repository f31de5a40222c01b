//! A client's session through the front, and what the front says of its queries.

use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::error::{Error, Result};

/// A query for which the front has chosen a place.
#[derive(Clone, Debug)]
pub struct Routed {
    /// It ran on Avocet.
    pub here: bool,
    pub why: String,
    /// As the source's optimizer puts it.
    pub cost: Option<f64>,
    /// Until the data was as fresh as the session asks for.
    pub waited: Duration,
}

pub struct Session {
    pub conn: Conn,
    /// As the source numbers the connection.
    thread: u64,
    /// The last query that is known.
    last: u64,
}

impl Session {
    /// Connects and sets variables of Avocet's: `avocet_route = 'here'`.
    pub fn open(options: OptsBuilder, settings: &str) -> Result<Self> {
        let mut conn = Conn::new(options)?;
        conn.query_drop(format!("SET {settings}"))?;
        let thread = first(&mut conn, "SELECT CONNECTION_ID()")?;
        let last = first(&mut conn, "SELECT COALESCE(MAX(id), 0) FROM avocet.routed_queries")?;
        Ok(Self { conn, thread, last })
    }

    /// The queries since the last call for which a place was chosen, oldest first; Avocet keeps the last 1,000 of all clients.
    pub fn routed(&mut self) -> Result<Vec<Routed>> {
        let rows: Vec<(u64, String, String, Option<f64>, u64)> = self.conn.query(format!(
            "SELECT id, ran_on, why, source_cost, waited_us FROM avocet.routed_queries
             WHERE thread_id = {} AND id > {} ORDER BY id",
            self.thread, self.last
        ))?;
        self.last = rows.last().map_or(self.last, |row| row.0);
        let routed = |(_, ran_on, why, cost, waited_us): (_, String, _, _, _)| Routed {
            here: ran_on == "avocet",
            why,
            cost,
            waited: Duration::from_micros(waited_us),
        };
        Ok(rows.into_iter().map(routed).collect())
    }

    /// What the front says of the last query; it must be one for which it chose a place.
    pub fn last_routed(&mut self) -> Result<Routed> {
        let last = self.routed()?.pop();
        last.ok_or_else(|| Error::Check("avocet.routed_queries does not have the last query".into()))
    }
}

fn first(conn: &mut Conn, sql: &str) -> Result<u64> {
    conn.query_first(sql)?.ok_or_else(|| Error::Check(format!("{sql} gives no row")))
}
