//! YCSB's table and its rows.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use mysql::Conn;
use mysql::prelude::Queryable;

use super::field::{self, FIELDS, Stamp};
use super::{DATABASE, keys};
use crate::error::Result;
use crate::insert::{self, Inserter};
use crate::progress;
use crate::rival::Server;

const ROWS_OF_A_PIECE: u64 = 5_000;

fn create() -> String {
    let mut sql = "CREATE TABLE usertable (ycsb_key VARCHAR(32) NOT NULL".to_owned();
    for field in 0..FIELDS {
        write!(sql, ", field{field} VARCHAR(100) NOT NULL").expect("a String takes all text");
    }
    sql + ", PRIMARY KEY (ycsb_key)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
}

/// Drops and makes the database, and loads it.
pub fn load(server: &Server, records: u64) -> Result<()> {
    let mut conn = Conn::new(server.options())?;
    conn.query_drop(format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
    conn.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
    conn.query_drop(format!("USE {DATABASE}"))?;
    conn.query_drop(create())?;
    let done = AtomicU64::new(0);
    let pieces = (0..records).step_by(ROWS_OF_A_PIECE as usize);
    progress::rows(&format!("loading {}", server.name()), records, &done, || {
        insert::in_pieces(&super::options(server), 2, pieces, |conn, first| {
            let mut rows = Inserter::new(conn, "usertable");
            for number in first..records.min(first + ROWS_OF_A_PIECE) {
                rows.row(|sql| row(number, sql))?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            rows.finish()
        })
    })
}

fn row(number: u64, sql: &mut String) {
    write!(sql, "'{}'", keys::key(number)).expect("a String takes all text");
    for field in 0..FIELDS {
        sql.push_str(",'");
        field::value(number, field, Stamp::default(), sql);
        sql.push('\'');
    }
}
