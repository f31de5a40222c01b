//! Stops writes at the source, and gives them back.
//!
//! ```text
//!  MySQL:    SET GLOBAL super_read_only = ON ─▶ … ─▶ SET PERSIST: a restart does not end it
//!  MariaDB:  SET GLOBAL read_only = ON, FLUSH TABLES WITH READ LOCK: as long as the connection lives, administrators do not write either
//! ```
//!
//! Both wait for statements that run, and let none begin meanwhile; `lock_wait_timeout` bounds that. Transactions that are open and have
//! changed something fail at their COMMIT, with error 1290: nothing of them was acknowledged.

use std::time::{Duration, Instant};

use mysql::Opts;
use mysql::prelude::Queryable;

use crate::error::{ReplicateError, Result};
use crate::gtid::GtidSet;
use crate::source::{self, Connection, Flavor, variable};

/// A source that says nothing for so long beyond what it may wait for is gone.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait before another attempt, to stop writes or to give them back.
const REST: Duration = Duration::from_millis(200);
/// For how long the first attempt to stop writes waits for statements that run.
const FIRST_ATTEMPT: Duration = Duration::from_secs(1);
/// And the later ones: nobody who is interrupted waits for longer.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(5);
const LOCK_WAIT_TIMEOUT: u16 = 1205;

/// What the source was before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Was {
    pub read_only: bool,
    pub super_read_only: bool,
    /// What SET PERSIST had made of `super_read_only`, if anything.
    pub persisted: Option<String>,
}

impl Was {
    pub fn of(conn: &mut Connection) -> Result<Self> {
        let is_on = |value: Option<String>| {
            // MariaDB has more kinds of ON in later versions.
            value.is_some_and(|value| !value.eq_ignore_ascii_case("OFF") && value != "0")
        };
        let read_only = is_on(variable(conn, "read_only")?);
        if conn.flavor == Flavor::MariaDb {
            return Ok(Self { read_only, ..Self::default() });
        }
        let super_read_only = is_on(variable(conn, "super_read_only")?);
        let persisted = conn.query_first(
            "SELECT CAST(VARIABLE_VALUE AS CHAR) FROM performance_schema.persisted_variables WHERE VARIABLE_NAME = 'super_read_only'",
        );
        // Who may not read that does not learn it, and what is not known is taken for the default.
        Ok(Self { read_only, super_read_only, persisted: persisted.unwrap_or_default() })
    }

    /// Statements that make the source so again, for people.
    pub fn statements(&self, flavor: Flavor) -> Vec<String> {
        let on = |is_on: bool| if is_on { "ON" } else { "OFF" };
        let read_only = format!("SET GLOBAL read_only = {}", on(self.read_only));
        if flavor == Flavor::MariaDb {
            return vec![read_only];
        }
        let persisted = match &self.persisted {
            Some(value) => format!("SET PERSIST super_read_only = {value}"),
            None => "RESET PERSIST IF EXISTS super_read_only".into(),
        };
        vec![persisted, format!("SET GLOBAL super_read_only = {}", on(self.super_read_only)), read_only]
    }
}

/// The connection that stops writes at the source.
pub struct Fence {
    conn: Connection,
}

/// A connection that does not wait for ever for a source that is gone.
fn connect(opts: &Opts, at_most: Duration) -> Result<Connection> {
    source::connect(&source::within(opts, at_most + PATIENCE))
}

/// Waits for statements that run for so long; the server counts in seconds.
fn try_to_stop(conn: &mut Connection, at_most: Duration) -> mysql::Result<()> {
    let seconds = at_most.as_secs().max(1);
    conn.query_drop(format!("SET SESSION lock_wait_timeout = {seconds}"))?;
    let statements: &[&str] = match conn.flavor {
        Flavor::MySql => &["SET GLOBAL super_read_only = ON"],
        Flavor::MariaDb => &["SET GLOBAL read_only = ON", "FLUSH TABLES WITH READ LOCK"],
    };
    statements.iter().try_for_each(|statement| conn.query_drop(statement))
}

impl Fence {
    /// A connection that can stop writes, and has not yet.
    ///
    /// # Errors
    /// A source that cannot be reached.
    pub fn connect(opts: &Opts, at_most: Duration) -> Result<Self> {
        // It waits for running statements, and then for commits, each that long.
        Ok(Self { conn: connect(opts, at_most.min(LONGEST_ATTEMPT) * 2)? })
    }

    /// Stops writes; what waits for that longer than this fails. Then the source may be either.
    ///
    /// A statement that runs may wait for a row of a transaction whose next statement waits for this. Neither side sees that, so attempts are
    /// short, the first one most of all, and let go in between; a long statement ends within one of them.
    ///
    /// # Errors
    /// The source's, with what it waited for; `Stopped` if `stop` says so.
    pub fn stop_writes(&mut self, at_most: Duration, stop: &dyn Fn() -> bool) -> Result<()> {
        let begin = Instant::now();
        let mut attempt = FIRST_ATTEMPT;
        loop {
            if stop() {
                return Err(ReplicateError::Stopped);
            }
            let left = at_most.saturating_sub(begin.elapsed());
            match try_to_stop(&mut self.conn, attempt.min(left)) {
                Ok(()) => return Ok(()),
                Err(mysql::Error::MySqlError(error)) if error.code == LOCK_WAIT_TIMEOUT => {
                    if begin.elapsed() + REST >= at_most {
                        let holders = holders(&mut self.conn);
                        return Err(ReplicateError::Refused(format!(
                            "the source has statements that did not end within {} s{holders}: wait for them, KILL them there, or raise TIMEOUT",
                            at_most.as_secs().max(1)
                        )));
                    }
                    std::thread::sleep(REST);
                    attempt = (attempt * 2).min(LONGEST_ATTEMPT);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// All that the source has committed.
    pub fn executed(&mut self) -> Result<GtidSet> {
        source::executed(&mut self.conn)
    }

    pub fn connection(&mut self) -> &mut Connection {
        &mut self.conn
    }

    /// Whether it takes no writes still: it may have been restarted, or somebody may have changed it.
    pub fn holds(&mut self) -> Result<bool> {
        let was = Was::of(&mut self.conn)?;
        Ok(match self.conn.flavor {
            Flavor::MySql => was.super_read_only,
            Flavor::MariaDb => was.read_only,
        })
    }

    /// Makes it last over restarts of the source; false where the source cannot keep it.
    pub fn persist(&mut self) -> Result<bool> {
        if self.conn.flavor == Flavor::MariaDb {
            return Ok(false);
        }
        self.conn.query_drop("SET PERSIST super_read_only = ON")?;
        // A server may be told not to read what was persisted.
        let reads = variable(&mut self.conn, "persisted_globals_load")?;
        Ok(reads.is_some_and(|value| value.eq_ignore_ascii_case("ON") || value == "1"))
    }
}

/// Who keeps others from stopping writes, as far as the source tells.
fn holders(conn: &mut Connection) -> String {
    type Holder = (u64, Option<String>, Option<u64>, Option<String>);
    let found: mysql::Result<Vec<Holder>> = conn.query(
        "SELECT DISTINCT t.PROCESSLIST_ID, CAST(t.PROCESSLIST_USER AS CHAR), t.PROCESSLIST_TIME,
             CAST(LEFT(t.PROCESSLIST_INFO, 80) AS CHAR)
         FROM performance_schema.metadata_locks AS m JOIN performance_schema.threads AS t ON t.THREAD_ID = m.OWNER_THREAD_ID
         WHERE m.OBJECT_TYPE IN ('GLOBAL', 'COMMIT') AND m.LOCK_STATUS = 'GRANTED' AND t.PROCESSLIST_ID <> CONNECTION_ID() LIMIT 5",
    );
    let told = found.unwrap_or_default().into_iter().map(|(id, user, seconds, text)| {
        let (user, seconds) = (user.unwrap_or_default(), seconds.unwrap_or_default());
        format!("connection {id} of {user} for {seconds} s ({})", text.as_deref().unwrap_or("asleep"))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { String::new() } else { format!(": {}", told.join(", ")) }
}

/// Makes the source what it was. Tries again for so long, since it may be about to come back. Another server that has its address by
/// now stays as it is: it may be read-only for reasons of its own. `source`: by which it is told from others; empty if nobody knows.
///
/// # Errors
/// The last attempt's.
pub fn undo(opts: &Opts, source: &str, was: &Was, at_most: Duration) -> Result<()> {
    let begin = Instant::now();
    loop {
        let done = connect(opts, PATIENCE).and_then(|mut conn| {
            let is = source::identity(&mut conn)?;
            if !source.is_empty() && is != source {
                return Err(ReplicateError::Refused(format!(
                    "another server has its address now ({is}, not {source})"
                )));
            }
            let flavor = conn.flavor;
            was.statements(flavor).iter().try_for_each(|statement| Ok(conn.query_drop(statement)?))
        });
        match done {
            Ok(()) => return Ok(()),
            Err(error) if begin.elapsed() >= at_most => return Err(error),
            Err(_) => std::thread::sleep(REST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_becomes_what_it_was() {
        let was = Was { read_only: true, ..Was::default() };
        assert_eq!(was.statements(Flavor::MariaDb), ["SET GLOBAL read_only = ON"]);
        assert_eq!(
            was.statements(Flavor::MySql),
            [
                "RESET PERSIST IF EXISTS super_read_only",
                "SET GLOBAL super_read_only = OFF",
                "SET GLOBAL read_only = ON"
            ]
        );
        let was = Was { persisted: Some("OFF".into()), ..Was::default() };
        assert_eq!(was.statements(Flavor::MySql)[0], "SET PERSIST super_read_only = OFF");
    }
}
