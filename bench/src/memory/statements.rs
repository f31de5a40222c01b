//! Single statements over many rows: each is done in the memory that there is, or refused by name, and what it took is given back.

use std::io::Write;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler};

use super::{WIDE_BYTES, connect, count, expect_rows, text};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::rival::Server;

/// Bytes of an indexed text.
const INDEXED_BYTES: u64 = 192;
/// Bytes of a text that is changed.
const CHANGED_BYTES: u64 = 50;
/// How long memory that is free may take to go back to the operating system.
const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(20);

/// Errors of statements that need too much memory.
const TRANS_CACHE_FULL: u16 = 1197;
const OUT_OF_RESOURCES: u16 = 1041;

/// Whether it was done; false if it was refused by this error.
fn is_done(name: &str, outcome: mysql::Result<()>, refusal: u16) -> Result<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(mysql::Error::MySqlError(e)) if e.code == refusal => {
            println!("{name}: refused: {}", e.message);
            Ok(false)
        }
        Err(e) => Err(e.into()),
    }
}

/// One LOAD DATA of so many wide rows.
pub fn load(server: &Server, rows: u64) -> Result<u64> {
    let handler = LocalInfileHandler::new(move |_, file| {
        let mut random = Random::new(3);
        for id in 0..rows {
            writeln!(file, "{id}\t{}", text(&mut random, WIDE_BYTES))?;
        }
        Ok(())
    });
    let mut conn = Conn::new(connect(&server.options()).local_infile_handler(Some(handler)))?;
    conn.query_drop("CREATE TABLE loaded (id BIGINT PRIMARY KEY, body VARCHAR(12000))")?;
    conn.query_drop("LOAD DATA LOCAL INFILE 'rows' INTO TABLE loaded")?;
    expect_rows(&mut conn, "loaded", rows)?;
    Ok(rows * WIDE_BYTES as u64)
}

/// REPLACE … SELECT of so many wide rows.
pub fn replace(server: &Server, rows: u64) -> Result<u64> {
    let mut conn = Conn::new(connect(&server.options()))?;
    conn.query_drop("CREATE TABLE replaced (id BIGINT PRIMARY KEY, body VARCHAR(12000))")?;
    conn.query_drop(format!("REPLACE INTO replaced SELECT * FROM wide WHERE id < {rows}"))?;
    expect_rows(&mut conn, "replaced", rows)?;
    conn.query_drop("DROP TABLE replaced")?;
    Ok(rows * WIDE_BYTES as u64)
}

/// A table of rows with the numbers from 0 on; `body` makes a text of `n`.
fn numbers(conn: &mut Conn, table: &str, rows: u64, body: &str) -> Result<()> {
    conn.query_drop("CREATE TABLE IF NOT EXISTS digits (d INT PRIMARY KEY)")?;
    let digits: Vec<_> = (0..1000).map(|d| format!("({d})")).collect();
    conn.query_drop(format!("INSERT IGNORE INTO digits VALUES {}", digits.join(",")))?;
    conn.query_drop(format!("CREATE TABLE {table} (id BIGINT PRIMARY KEY, body VARCHAR(250))"))?;
    let millions = rows.div_ceil(1_000_000);
    conn.query_drop(format!(
        "INSERT INTO {table} SELECT n, {body} FROM (SELECT a.d * 1000000 + b.d * 1000 + c.d AS n \
         FROM digits a, digits b, digits c WHERE a.d < {millions}) AS numbers WHERE n < {rows}"
    ))?;
    expect_rows(conn, table, rows)
}

/// Locks for reading that are more than there is memory for, perhaps.
pub fn shared(server: &Server, rows: u64) -> Result<u64> {
    let mut conn = Conn::new(connect(&server.options()))?;
    numbers(&mut conn, "shared", rows, "'x'")?;
    conn.query_drop("BEGIN")?;
    let outcome = conn.query_drop("SELECT COUNT(body) FROM shared FOR SHARE");
    is_done("shared", outcome, TRANS_CACHE_FULL)?;
    conn.query_drop("ROLLBACK")?;
    // Nothing of it is left.
    conn.query_drop(format!("UPDATE shared SET body = 'y' WHERE id IN (0, {}, {})", rows / 2, rows - 1))?;
    conn.query_drop("DROP TABLE shared")?;
    Ok(rows * 8)
}

/// An index that is about as large as the limit.
pub fn indexed(server: &Server, rows: u64) -> Result<u64> {
    let mut conn = Conn::new(connect(&server.options()))?;
    numbers(&mut conn, "indexed", rows, "CONCAT(SHA2(n, 512), SHA2(n, 256))")?;
    let outcome = conn.query_drop("CREATE INDEX by_body ON indexed (body)");
    if is_done("indexed", outcome, OUT_OF_RESOURCES)? {
        conn.query_drop("DROP INDEX by_body ON indexed")?;
    }
    conn.query_drop("DROP TABLE indexed")?;
    Ok(rows * INDEXED_BYTES)
}

/// Changes of single rows in one statement.
pub fn changed(server: &Server, rows: u64) -> Result<u64> {
    let mut conn = Conn::new(connect(&server.options()))?;
    numbers(&mut conn, "changed", rows, &format!("RPAD(n, {CHANGED_BYTES}, 'x')"))?;
    let outcome = conn.query_drop(format!("UPDATE changed SET body = RPAD(id, {CHANGED_BYTES}, 'y')"));
    let expected = if is_done("changed", outcome, TRANS_CACHE_FULL)? { rows } else { 0 };
    let there: Option<u64> = conn.query_first("SELECT COUNT(*) FROM changed WHERE body LIKE '%y'")?;
    match there == Some(expected) {
        true => Ok(rows * CHANGED_BYTES),
        false => Err(Error::Check(format!("{there:?} rows are changed, not {expected}"))),
    }
}

/// What the server still takes, as soon as that is little enough, or after a while.
pub fn given_back(server: &Server, enough: u64) -> Result<u64> {
    let mut conn = Conn::new(connect(&server.options()))?;
    count(&mut conn, "digits")?;
    let begin = Instant::now();
    loop {
        let rss = server.rss()?;
        if rss <= enough || begin.elapsed() > GIVEN_BACK_WITHIN {
            return Ok(rss);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
