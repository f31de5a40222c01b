//! The server that is followed: connections to it, and what it says about itself.

mod check;
mod grants;
mod logged;
pub mod mariadb;
mod tables;

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};

use crate::copy::Received;
use crate::error::{ReplicateError, Result};
use crate::gtid::GtidSet;
use crate::state::LogPlace;

pub use check::{Finding, Report, Severity, check};
pub use grants::Grants;
pub use logged::{LogFilters, LogsReplicated, log_filters, logs_replicated, replica_status, unlogged};
pub use tables::{
    Definition, database_collations, definition, is_table, logs_cascades, may_have_triggers, quoted, tables,
};

/// The least version whose logs are understood: row metadata came with 8.0.1, row images and JSON as they are here with 8.0.
pub const LEAST_VERSION: u32 = 80_001;
/// And of MariaDB: row metadata came with 10.5; older than 10.6 is no longer kept up by its makers.
pub const LEAST_MARIADB: u32 = 100_600;

/// What kind of server the source is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavor {
    #[default]
    MySql,
    MariaDb,
}

/// A connection to the source.
pub struct Connection {
    conn: Conn,
    pub flavor: Flavor,
    /// As 80036 for 8.0.36, if it can be read; and as the server says it.
    pub version: (Option<u32>, String),
    /// What its log leaves out, once that was asked for.
    filters: Option<LogFilters>,
}

impl Deref for Connection {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.conn
    }
}

/// A connection whose statements mean the same whatever the server's settings are: UTC, UTF-8, no padding.
pub fn connect(opts: &Opts) -> Result<Connection> {
    let opts = OptsBuilder::from_opts(opts.clone())
        .db_name(None::<String>)
        .tcp_connect_timeout(Some(Duration::from_secs(10)))
        // The source counts prepared statements of all its clients together. (With none, they would not be closed.)
        .stmt_cache_size(1)
        .prefer_socket(false);
    let mut conn = Conn::new(opts)?;
    let version: Option<String> = conn.query_first("SELECT VERSION()")?;
    let version = version.unwrap_or_default();
    let flavor = flavor_of(&version);
    let limits = match flavor {
        Flavor::MySql => "SET SESSION max_execution_time = 0, information_schema_stats_expiry = 0",
        Flavor::MariaDb => "SET SESSION max_statement_time = 0",
    };
    for statement in [
        "SET NAMES utf8mb4",
        "SET SESSION sql_mode = '', time_zone = '+00:00', sql_quote_show_create = 1, autocommit = 1",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET SESSION net_write_timeout = 3600, wait_timeout = 28800",
        limits,
    ] {
        conn.query_drop(statement)?;
    }
    Ok(Connection { conn, flavor, version: (number_of(&version), version), filters: None })
}

/// For connections to a source that may be gone: one that says nothing for so long is.
pub fn within(opts: &Opts, patience: Duration) -> Opts {
    let opts = OptsBuilder::from_opts(opts.clone());
    opts.read_timeout(Some(patience)).write_timeout(Some(patience)).into()
}

fn flavor_of(version: &str) -> Flavor {
    match version.to_ascii_lowercase().contains("mariadb") {
        true => Flavor::MariaDb,
        false => Flavor::MySql,
    }
}

pub fn number_of(version: &str) -> Option<u32> {
    let mut parts = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    Some(parts.next()? * 10_000 + parts.next()? * 100 + parts.next()?)
}

/// By what the source is told from another server.
pub fn identity(conn: &mut Connection) -> Result<String> {
    match conn.flavor {
        Flavor::MySql => variable(conn, "server_uuid").map(Option::unwrap_or_default),
        // It has no UUID; the other number is of its machine and port, where there is one.
        Flavor::MariaDb => {
            let id = variable(conn, "server_id")?.unwrap_or_default();
            let of_machine = variable(conn, "server_uid")?.unwrap_or_default();
            Ok(format!("mariadb {id} {of_machine}").trim_end().to_owned())
        }
    }
}

/// A global variable; `None` if there is none of that name.
pub fn variable(conn: &mut Conn, name: &str) -> Result<Option<String>> {
    let row: Option<(String, String)> =
        conn.exec_first("SHOW GLOBAL VARIABLES WHERE Variable_name = ?", (name,))?;
    Ok(row.map(|(_, value)| value))
}

/// All that the source has committed. Each of its transactions is visible to statements that begin now, or ([`Flavor::MariaDb`]) will be
/// when the log is visible up to its present end.
pub fn executed(conn: &mut Connection) -> Result<GtidSet> {
    let question = match conn.flavor {
        Flavor::MySql => "SELECT @@GLOBAL.gtid_executed",
        Flavor::MariaDb => "SELECT @@GLOBAL.gtid_binlog_pos",
    };
    let text: Option<String> = conn.query_first(question)?;
    text.unwrap_or_default()
        .parse()
        .map_err(|error: crate::gtid::BadGtids| ReplicateError::Refused(error.to_string()))
}

/// Where to begin: identifiers of all that it has committed; or, of a MySQL that gives none, the beginning of its current log file.
/// Before it goes on to another file, it waits until all that is in the old one is committed, so what stands before that beginning is
/// visible. (Of the log's present end that is not known.)
pub fn beginning(conn: &mut Connection) -> Result<(GtidSet, Option<LogPlace>)> {
    /// Where the first event of a log file stands.
    const FIRST_EVENT: u64 = 4;
    if has_gtids(conn)? {
        return Ok((executed(conn)?, None));
    }
    let end = log_end(conn)?;
    Ok((GtidSet::default(), Some(LogPlace { offset: FIRST_EVENT, ..end })))
}

/// Whether the machine's time zone is UTC, and was in all the years that a TIMESTAMP can have.
pub fn is_in_utc(conn: &mut Connection) -> Result<bool> {
    // A recursion of so many steps may be forbidden.
    let others: Option<u64> = conn.query_first(
        "WITH d (n) AS (SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5
                        UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9),
              utc (moment) AS (SELECT TIMESTAMPADD(MONTH, a.n + 10 * b.n + 100 * c.n, '1970-01-02 00:00:00')
                               FROM d AS a, d AS b, d AS c WHERE a.n + 10 * b.n + 100 * c.n < 68 * 12)
         SELECT COUNT(*) FROM utc WHERE NOT CONVERT_TZ(moment, '+00:00', 'SYSTEM') <=> moment",
    )?;
    Ok(others == Some(0))
}

/// Whether the source keeps the names of databases and tables in lower case, and takes them in any.
///
/// # Errors
/// `Refused` if it keeps them as they were given and compares them without case, which nothing here does.
pub fn folds_names(conn: &mut Connection) -> Result<bool> {
    match variable(conn, LOWER_CASE)?.as_deref() {
        Some("0") | None => Ok(false),
        Some("1") => Ok(true),
        Some(value) => {
            Err(ReplicateError::Refused(format!("{LOWER_CASE} = {value} of the source: {}", NO_CASE)))
        }
    }
}

/// The variable that says how names of tables are kept.
pub(super) const LOWER_CASE: &str = "lower_case_table_names";
/// Why its value 2 is refused.
pub(super) const NO_CASE: &str =
    "its log has names in lower case, and its tables have them as they were given: only 0 and 1 are followed";

/// Whether all of its transactions have identifiers.
pub fn has_gtids(conn: &mut Connection) -> Result<bool> {
    Ok(conn.flavor == Flavor::MariaDb || variable(conn, "gtid_mode")?.is_some_and(|mode| mode == "ON"))
}

/// How long a transaction that was sent may take to become visible.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until the source has made these transactions visible: it sends them before.
pub fn await_visible(conn: &mut Connection, received: &Received) -> Result<()> {
    let set = &received.executed;
    if match conn.flavor {
        Flavor::MySql => has_executed(conn, set, PATIENCE)?,
        Flavor::MariaDb => mariadb::await_place(conn, &received.place, Instant::now() + PATIENCE)?,
    } {
        return Ok(());
    }
    Err(ReplicateError::damaged(format!(
        "the source has sent transactions that it does not commit: {set} at {}:{}",
        received.place.file, received.place.offset
    )))
}

/// What it says of its log; `None` if it writes none.
fn log_status(conn: &mut Connection) -> Result<Option<mysql::Row>> {
    const OLD: &str = "SHOW MASTER STATUS";
    Ok(match conn.flavor {
        Flavor::MariaDb => conn.query_first(OLD)?,
        Flavor::MySql => match conn.query_first("SHOW BINARY LOG STATUS") {
            Ok(row) => row,
            // Before 8.2.
            Err(mysql::Error::MySqlError(error)) if error.code == 1064 => conn.query_first(OLD)?,
            Err(error) => return Err(error.into()),
        },
    })
}

/// Whether a MySQL has committed these, or has so within that time.
fn has_executed(conn: &mut Connection, set: &GtidSet, patience: Duration) -> Result<bool> {
    let late: Option<Option<i64>> =
        conn.exec_first("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, ?)", (set.to_string(), patience.as_secs()))?;
    Ok(late.flatten() == Some(0))
}

/// Transactions of these that a MySQL lacks, and does not get within that time. A MariaDB says so itself when a stream begins.
pub fn lacking(conn: &mut Connection, executed: &GtidSet, patience: Duration) -> Result<Option<String>> {
    if conn.flavor == Flavor::MariaDb || has_executed(conn, executed, patience)? {
        return Ok(None);
    }
    let question = "SELECT GTID_SUBTRACT(?, @@GLOBAL.gtid_executed)";
    let lacking: Option<Option<String>> = conn.exec_first(question, (executed.to_string(),))?;
    Ok(lacking.flatten().filter(|lacking| !lacking.is_empty()))
}

/// The end of its log: whatever a statement before this one saw has been written before.
pub fn log_end(conn: &mut Connection) -> Result<LogPlace> {
    let mut row =
        log_status(conn)?.ok_or_else(|| ReplicateError::Refused("the source writes no binary log".into()))?;
    let file: String = row.take("File").unwrap_or_default();
    Ok(LogPlace { file, offset: row.take("Position").unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        for (text, flavor, number) in [
            ("9.7.4", Flavor::MySql, Some(90_704)),
            ("8.0.36-0ubuntu0.22.04.1", Flavor::MySql, Some(80_036)),
            ("10.11.19-MariaDB-0+deb12u1-log", Flavor::MariaDb, Some(101_119)),
            ("11.4.2-MariaDB", Flavor::MariaDb, Some(110_402)),
            ("something", Flavor::MySql, None),
        ] {
            assert_eq!((flavor_of(text), number_of(text)), (flavor, number), "{text}");
        }
    }
}
