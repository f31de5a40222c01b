//! The server that is followed: connections to it, and what it says about itself.

mod check;
mod tables;

use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};

use crate::error::{ReplicateError, Result};
use crate::gtid::GtidSet;
use crate::state::LogPlace;

pub use check::{Finding, Report, Severity, check};
pub use tables::{Definition, definition, quoted, tables};

/// The least version whose logs are understood: row metadata came with 8.0.1, row images and JSON as they are here with 8.0.
pub const LEAST_VERSION: u32 = 80_001;

/// A connection whose statements mean the same whatever the server's settings are: UTC, UTF-8, no padding.
pub fn connect(opts: &Opts) -> Result<Conn> {
    let opts = OptsBuilder::from_opts(opts.clone())
        .db_name(None::<String>)
        .tcp_connect_timeout(Some(Duration::from_secs(10)))
        // The source counts prepared statements of all its clients together. (With none, they would not be closed.)
        .stmt_cache_size(1)
        .prefer_socket(false);
    let mut conn = Conn::new(opts)?;
    for statement in [
        "SET NAMES utf8mb4",
        "SET SESSION sql_mode = '', time_zone = '+00:00', sql_quote_show_create = 1, autocommit = 1",
        "SET SESSION transaction_isolation = 'REPEATABLE-READ', net_write_timeout = 3600, wait_timeout = 28800",
        "SET SESSION max_execution_time = 0, information_schema_stats_expiry = 0",
    ] {
        conn.query_drop(statement)?;
    }
    Ok(conn)
}

/// As 80036 for 8.0.36; `None` if it is not a MySQL.
pub fn version(conn: &mut Conn) -> Result<(Option<u32>, String)> {
    let text: Option<String> = conn.query_first("SELECT VERSION()")?;
    let text = text.unwrap_or_default();
    if text.to_ascii_lowercase().contains("mariadb") {
        return Ok((None, text));
    }
    let mut parts = text.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let number = (|| Some(parts.next()? * 10_000 + parts.next()? * 100 + parts.next()?))();
    Ok((number, text))
}

pub fn uuid(conn: &mut Conn) -> Result<String> {
    variable(conn, "server_uuid").map(Option::unwrap_or_default)
}

/// A global variable; `None` if there is none of that name.
pub fn variable(conn: &mut Conn, name: &str) -> Result<Option<String>> {
    let row: Option<(String, String)> =
        conn.exec_first("SHOW GLOBAL VARIABLES WHERE Variable_name = ?", (name,))?;
    Ok(row.map(|(_, value)| value))
}

/// All that the source has committed: each of its transactions is visible to statements that begin now.
pub fn executed(conn: &mut Conn) -> Result<GtidSet> {
    let text: Option<String> = conn.query_first("SELECT @@GLOBAL.gtid_executed")?;
    text.unwrap_or_default()
        .parse()
        .map_err(|error: crate::gtid::BadGtids| ReplicateError::Refused(error.to_string()))
}

/// Waits until the source has made these transactions visible: it sends them before.
pub fn await_executed(conn: &mut Conn, set: &GtidSet) -> Result<()> {
    const SECONDS: u32 = 10;
    let late: Option<Option<i64>> =
        conn.exec_first("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, ?)", (set.to_string(), SECONDS))?;
    match late.flatten() {
        Some(0) => Ok(()),
        _ => Err(ReplicateError::damaged(format!(
            "the source has sent transactions that it does not commit: {set}"
        ))),
    }
}

/// The end of its log: whatever a statement before this one saw has been written before.
pub fn log_end(conn: &mut Conn) -> Result<LogPlace> {
    let row: Option<mysql::Row> = match conn.query_first("SHOW BINARY LOG STATUS") {
        Ok(row) => row,
        // Before 8.2.
        Err(mysql::Error::MySqlError(error)) if error.code == 1064 => {
            conn.query_first("SHOW MASTER STATUS")?
        }
        Err(error) => return Err(error.into()),
    };
    let mut row = row.ok_or_else(|| ReplicateError::Refused("the source writes no binary log".into()))?;
    let file: String = row.take("File").unwrap_or_default();
    Ok(LogPlace { file, offset: row.take("Position").unwrap_or_default() })
}
