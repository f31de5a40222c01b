//! How fast tables are copied, and missed changes are made up for: both from a source on the same machine, which does its part. Beside
//! it, if it is asked for, MySQL's own replica of the same source.

use std::path::Path;
use std::time::Instant;

use mysql::prelude::Queryable;

use super::pair::Source;
use super::{Options, Pair, compare, connect, pair};
use crate::cache::Scratch;
use crate::error::{Error, Result};
use crate::random::Random;
use crate::report::Report;
use crate::rival::mysql9::Mysql9;
use crate::rival::{Rival, Server};

/// Rows of the table that is changed, and threads that change it.
const ROWS: i64 = 50_000;
const SESSIONS: u64 = 4;

/// MySQL's replica with its parallel appliers. It writes no log of its own and syncs as little as the source does.
const REPLICA: [&str; 5] = [
    "--server-id=2",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--replica-parallel-workers=4",
    "--innodb-flush-log-at-trx-commit=2",
];

/// Adds `attach.snapshot_bytes_per_s` and `attach.catchup_changes_per_s`.
pub fn measure(options: &Options, report: &mut Report) -> Result<()> {
    let (copy_mib, changes) = (options.copy_mib, options.changes);
    let folder = Scratch::new("attach-speed")?;
    let mut bytes = 0;
    let mut begin = Instant::now();
    let mut pair = Pair::start(Source::Mysql, folder.path(), &options.common.serve_option, |source| {
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
    println!("\ncopied: {}", compare::all(&pair, "r")?);
    if copy_mib > 0 {
        report.add("attach.snapshot_bytes_per_s", "bytes/s", Some(bytes as f64 / copied), None);
    }
    if changes == 0 {
        return Ok(());
    }
    let mut rival = match options.common.rival {
        Rival::None => None,
        Rival::Mysql => Some(Replica::start(folder.path(), &pair.source)?),
        other => {
            println!(
                "{} cannot follow a MySQL 9.7; --rival mysql has MySQL's own replica catch up beside Avocet",
                other.name()
            );
            None
        }
    };
    if let Some(rival) = &mut rival {
        rival.until_it_has_all(&pair.source)?;
        rival.conn.query_drop("STOP REPLICA")?;
    }
    pair.replica.stop()?;
    let made = change(&pair, changes)? as f64;
    let begin = Instant::now();
    pair.replica.start_again()?;
    pair.settle()?;
    let caught_up = begin.elapsed().as_secs_f64();
    println!("after {made} changes: {}", compare::all(&pair, "r")?);
    let rivals = match rival {
        None => None,
        Some(mut rival) => {
            let begin = Instant::now();
            rival.conn.query_drop("START REPLICA")?;
            rival.until_it_has_all(&pair.source)?;
            Some(made / begin.elapsed().as_secs_f64())
        }
    };
    report.add("attach.catchup_changes_per_s", "1/s", Some(made / caught_up), rivals);
    Ok(())
}

/// MySQL's own replica. What it is timed for does not include its start, as Avocet's does.
struct Replica {
    conn: mysql::Conn,
    _server: Server,
}

impl Replica {
    fn start(folder: &Path, source: &Server) -> Result<Self> {
        let server = Server::start(Box::new(Mysql9::fetch()?.with(&REPLICA)), &folder.join("rival"))?;
        let mut conn = connect(&server)?;
        conn.query_drop(format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {}, SOURCE_USER = 'root',
             SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1",
            source.port()
        ))?;
        conn.query_drop("START REPLICA")?;
        Ok(Self { conn, _server: server })
    }

    fn until_it_has_all(&mut self, source: &Server) -> Result<()> {
        let executed: Option<String> = connect(source)?.query_first("SELECT @@GLOBAL.gtid_executed")?;
        let waited: Option<i64> =
            self.conn.exec_first("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 600)", (executed,))?;
        if waited == Some(0) {
            return Ok(());
        }
        let row: Option<mysql::Row> = self.conn.query_first("SHOW REPLICA STATUS")?;
        let text = |name: &str| row.as_ref().and_then(|row| row.get::<String, _>(name)).unwrap_or_default();
        let errors = format!("{} / {}", text("Last_IO_Error"), text("Last_SQL_Error"));
        Err(Error::Setup(format!("MySQL's replica does not get there: {errors}")))
    }
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

/// About so many changes of single rows, each a transaction: inserts and updates. Returns how many.
fn change(pair: &Pair, changes: u64) -> Result<u64> {
    let options = pair::options(&pair.source);
    std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let options = options.clone();
                scope.spawn(move || change_in_session(options, session, changes / SESSIONS))
            })
            .collect();
        let made = sessions.into_iter().map(|session| {
            session.join().unwrap_or_else(|_| Err(Error::Setup("a session has panicked".into())))
        });
        made.sum()
    })
}

fn change_in_session(options: mysql::OptsBuilder, session: u64, changes: u64) -> Result<u64> {
    let mut conn = mysql::Conn::new(options)?;
    let mut random = Random::new(session);
    let insert = conn.prep("INSERT INTO r.small VALUES (?, ?, ?, ?)")?;
    let update = conn.prep("UPDATE r.small SET n = ?, a = ? WHERE id = ?")?;
    let mut next = ROWS + 1 + session as i64;
    for at in 0..changes {
        let text = random.alphanumeric(10, 30);
        if at % 2 == 0 {
            conn.exec_drop(&insert, (next, next, text, random.alphanumeric(10, 30)))?;
            next += SESSIONS as i64;
        } else {
            conn.exec_drop(&update, (random.uniform(0, 1 << 30), text, random.uniform(1, ROWS)))?;
        }
    }
    Ok(changes)
}
