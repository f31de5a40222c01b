//! How fast tables are copied, and missed changes are made up for: both from a source on the same machine, which does its part.

use std::time::Instant;

use mysql::prelude::Queryable;

use super::{Options, Pair, compare, connect};
use crate::cache::Scratch;
use crate::error::{Error, Result};
use crate::random::Random;
use crate::report::Report;

/// Rows of the table that is changed, and threads that change it.
const ROWS: i64 = 50_000;
const SESSIONS: u64 = 4;

/// Adds `attach.snapshot_bytes_per_s` and `attach.catchup_changes_per_s`.
pub fn measure(options: &Options, report: &mut Report) -> Result<()> {
    let (copy_mib, changes) = (options.copy_mib, options.changes);
    let folder = Scratch::new("attach-speed")?;
    let mut bytes = 0;
    let mut begin = Instant::now();
    let mut pair = Pair::start(folder.path(), &options.common.serve_option, |source| {
        let mut conn = connect(source)?;
        conn.query_drop("CREATE DATABASE r")?;
        // Common table expressions ask for a default database.
        conn.query_drop("USE r")?;
        bytes = load(&mut conn, copy_mib << 20)?;
        begin = Instant::now();
        Ok(())
    })?;
    pair.settle()?;
    let copied = begin.elapsed().as_secs_f64();
    compare::all(&pair)?;
    report.add("attach.snapshot_bytes_per_s", "bytes/s", Some(bytes as f64 / copied), None);
    if changes > 0 {
        pair.replica.stop()?;
        change(&pair, changes)?;
        let begin = Instant::now();
        pair.replica.start_again()?;
        pair.settle()?;
        let caught_up = begin.elapsed().as_secs_f64();
        println!("{}", compare::all(&pair)?);
        report.add("attach.catchup_changes_per_s", "1/s", Some(changes as f64 / caught_up), None);
    }
    Ok(())
}

/// Hermes' table of two integers and two strings, and one to be copied; returns the bytes of all values.
fn load(conn: &mut mysql::Conn, wanted: u64) -> Result<u64> {
    conn.query_drop("CREATE TABLE r.small (id INT PRIMARY KEY, n INT, a VARCHAR(40), b VARCHAR(40))")?;
    conn.query_drop("SET SESSION cte_max_recursion_depth = 100000000")?;
    conn.query_drop(format!(
        "INSERT INTO r.small WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < {ROWS})
         SELECT i, i, CONCAT('a', i), CONCAT('b', i) FROM i"
    ))?;
    conn.query_drop(
        "CREATE TABLE r.large (id BIGINT PRIMARY KEY, k INT, price DECIMAL(12,2), day DATE, at DATETIME, flag CHAR(1), name VARCHAR(40),
         text VARCHAR(200))",
    )?;
    const EACH: u64 = 8 + 4 + 12 + 4 + 8 + 1 + 20 + 80;
    let rows = wanted.max(EACH) / EACH;
    const STEP: u64 = 100_000;
    let mut from = 0;
    while from < rows {
        let to = (from + STEP).min(rows);
        conn.query_drop(format!(
            "INSERT INTO r.large WITH RECURSIVE i(i) AS (SELECT {from} UNION ALL SELECT i + 1 FROM i WHERE i < {to} - 1)
             SELECT i, i % 1000, i / 7, '2020-01-01' + INTERVAL i % 1000 DAY, '2020-01-01' + INTERVAL i SECOND, CHAR(65 + i % 3 USING utf8mb4),
                    RPAD(SHA2(i, 224), 20, 'x'), RPAD(SHA2(i, 256), 80, 'lorem ipsum ') FROM i"
        ))?;
        from = to;
    }
    Ok(rows * EACH)
}

/// So many changes of single rows, each a transaction: inserts, updates, deletes.
fn change(pair: &Pair, changes: u64) -> Result<()> {
    let options = super::options(&pair.source);
    std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let options = options.clone();
                scope.spawn(move || -> Result<()> {
                    let mut conn = mysql::Conn::new(options)?;
                    let mut random = Random::new(session);
                    let insert = conn.prep("INSERT INTO r.small VALUES (?, ?, ?, ?)")?;
                    let update = conn.prep("UPDATE r.small SET n = ?, a = ? WHERE id = ?")?;
                    let mut next = ROWS + 1 + session as i64;
                    for at in 0..changes / SESSIONS {
                        match at % 2 {
                            0 => {
                                conn.exec_drop(
                                    &insert,
                                    (next, next, random.alphanumeric(10, 30), random.alphanumeric(10, 30)),
                                )?;
                                next += SESSIONS as i64;
                            }
                            _ => conn.exec_drop(
                                &update,
                                (
                                    random.uniform(0, 1 << 30),
                                    random.alphanumeric(10, 30),
                                    random.uniform(1, ROWS),
                                ),
                            )?,
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        sessions.into_iter().try_for_each(|session| {
            session.join().unwrap_or_else(|_| Err(Error::Setup("a session has panicked".into())))
        })
    })
}
