//! What changes of a large table's definition take, and what others get done meanwhile: `bench/run alter`. The marks: a column is added
//! within 100 ms, and writers who have 1,000 changes a second to do get at least 70 % of these done while an index is built.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::contest::{Contender, Contest, median};
use crate::error::{Error, Result};
use crate::oltp;
use crate::options::Common;
use crate::random::Random;
use crate::report::Report;
use crate::rival::Server;

const DATABASE: &str = "altered";
/// From so many rows on the marks are to be met.
const FULL_SIZE: i64 = 6_000_000;
const ADD_COLUMN_MS: f64 = 100.0;
const WRITES_KEPT: f64 = 0.7;
const WRITERS: u64 = 4;

#[derive(Args, Clone)]
pub struct Options {
    /// Rows of the table
    #[arg(long, default_value_t = FULL_SIZE)]
    rows: i64,
    /// Changes a second that the writers have to do
    #[arg(long, default_value_t = 1000)]
    rate: u64,
    /// How long writers are alone before an index is built, in seconds
    #[arg(long, default_value_t = 5.0)]
    alone: f64,
    #[command(flatten)]
    common: Common,
}

/// Rows of the table that the others are multiplied out of.
const DIGITS: i64 = 3_000;

fn load(server: &Server, rows: i64) -> Result<Conn> {
    let mut conn = Conn::new(server.options())?;
    for statement in [
        format!("DROP DATABASE IF EXISTS {DATABASE}"),
        format!("CREATE DATABASE {DATABASE}"),
        format!("USE {DATABASE}"),
        "CREATE TABLE digits (d INT PRIMARY KEY)".into(),
        "CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL, price DECIMAL(10,2), counter INT NOT NULL DEFAULT 0, note VARCHAR(40))".into(),
    ] {
        conn.query_drop(statement)?;
    }
    let digits: Vec<_> = (0..DIGITS).map(|d| format!("({d})")).collect();
    conn.query_drop(format!("INSERT INTO digits VALUES {}", digits.join(",")))?;
    eprintln!("{}: filling the table", server.name());
    conn.query_drop(format!(
        "INSERT INTO t SELECT id, id * 7919 % 1000003, id % 9973 / 7, 0, CONCAT('note ', id)
         FROM (SELECT CAST(a.d * {DIGITS} + b.d AS SIGNED) id FROM digits a, digits b WHERE a.d <= {last}) i WHERE id < {rows}",
        last = rows / DIGITS,
    ))?;
    Ok(conn)
}

/// Milliseconds that a statement takes.
fn timed(conn: &mut Conn, sql: &str) -> Result<f64> {
    let begin = Instant::now();
    conn.query_drop(sql)?;
    Ok(begin.elapsed().as_secs_f64() * 1e3)
}

/// Changes of single rows, of the column that is to be indexed, too: at even intervals, whether or not those before are done.
struct Writers {
    ended: AtomicBool,
    done: AtomicU64,
}

impl Writers {
    fn write(&self, options: OptsBuilder, seed: u64, rows: i64, rate: u64) -> Result<()> {
        let mut conn = Conn::new(options)?;
        let update = conn.prep("UPDATE t SET counter = counter + 1, n = ? WHERE id = ?")?;
        let mut random = Random::new(seed);
        let (begin, interval) = (Instant::now(), Duration::from_secs_f64(WRITERS as f64 / rate as f64));
        for n in 0.. {
            if self.ended.load(Ordering::Relaxed) {
                break;
            }
            if let Some(early) = (interval * n).checked_sub(begin.elapsed()) {
                std::thread::sleep(early);
            }
            conn.exec_drop(&update, (random.uniform(0, 1_000_002), random.uniform(0, rows - 1)))?;
            self.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// So many changes a second while `work` is done, which says for how long that was.
    fn rate_during(&self, work: impl FnOnce() -> Result<Duration>) -> Result<f64> {
        let before = self.done.load(Ordering::Relaxed);
        let took = work()?;
        Ok((self.done.load(Ordering::Relaxed) - before) as f64 / took.as_secs_f64())
    }
}

/// What an index took, and the writers' changes a second before and meanwhile.
struct Indexed {
    ms: f64,
    alone: f64,
    meanwhile: f64,
}

fn index_beside_writers(server: &Server, conn: &mut Conn, options: &Options) -> Result<Indexed> {
    let writers = Writers { ended: AtomicBool::new(false), done: AtomicU64::new(0) };
    let of_database = || server.options().db_name(Some(DATABASE));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|seed| {
                let (writers, connect) = (&writers, of_database());
                scope.spawn(move || writers.write(connect, seed, options.rows, options.rate))
            })
            .collect();
        let measured = (|| {
            std::thread::sleep(Duration::from_millis(500));
            let alone = writers.rate_during(|| {
                let time = Duration::from_secs_f64(options.alone);
                std::thread::sleep(time);
                Ok(time)
            })?;
            let mut took = Duration::ZERO;
            let meanwhile = writers.rate_during(|| {
                let begin = Instant::now();
                conn.query_drop("CREATE INDEX by_n ON t (n, counter)")?;
                took = begin.elapsed();
                Ok(took)
            })?;
            Ok(Indexed { ms: took.as_secs_f64() * 1e3, alone, meanwhile })
        })();
        writers.ended.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().expect("a writer does not panic")?;
        }
        let counted: Option<u64> =
            conn.query_first("SELECT CAST(SUM(counter) AS UNSIGNED) FROM t IGNORE INDEX (by_n)")?;
        let done = writers.done.load(Ordering::Relaxed);
        if counted != Some(done) {
            return Err(Error::Check(format!("{done} changes were acknowledged, and {counted:?} are there")));
        }
        let sums = |hint: &str| {
            format!(
                "SELECT COUNT(*), SUM(n), SUM(counter) FROM t {hint} INDEX (by_n) WHERE n BETWEEN 1000 AND 60000"
            )
        };
        let by_index: Option<(u64, String, String)> = conn.query_first(sums("FORCE"))?;
        let by_scan = conn.query_first(sums("IGNORE"))?;
        if by_index != by_scan {
            return Err(Error::Check(format!("the index has {by_index:?}, and the table {by_scan:?}")));
        }
        measured
    })
}

const DEFINITIONS: [(&str, &str); 5] = [
    ("add_column", "ALTER TABLE t ADD COLUMN added INT NOT NULL DEFAULT 7 AFTER id"),
    ("rename_column", "ALTER TABLE t RENAME COLUMN added TO renamed"),
    ("longer_text", "ALTER TABLE t MODIFY note VARCHAR(60)"),
    ("set_default", "ALTER TABLE t ALTER COLUMN renamed SET DEFAULT 8"),
    ("drop_column", "ALTER TABLE t DROP COLUMN renamed"),
];

/// `bench/run alter`.
pub fn command(options: &Options) -> Result<()> {
    let contest = Contest::start(&options.common)?;
    let mut report = Report::new("alter", options.common.rival);
    let mut figures: Vec<(Contender, &str, f64)> = Vec::new();
    for (contender, server) in contest.each() {
        let mut conn = load(server, options.rows)?;
        for _ in 0..options.common.rounds {
            for (name, sql) in DEFINITIONS {
                figures.push((contender, name, timed(&mut conn, sql)?));
            }
            conn.query_drop("UPDATE t SET counter = 0 WHERE counter <> 0")?;
            let indexed = index_beside_writers(server, &mut conn, options)?;
            figures.push((contender, "create_index", indexed.ms));
            figures.push((contender, "writes_alone", indexed.alone));
            figures.push((contender, "writes_meanwhile", indexed.meanwhile));
            figures.push((contender, "writes_kept", indexed.meanwhile / indexed.alone));
            conn.query_drop("DROP INDEX by_n ON t")?;
        }
    }
    let middle = |who: Contender, name: &str| {
        median(figures.iter().filter(|of| (of.0, of.1) == (who, name)).map(|(_, _, figure)| *figure))
    };
    for (name, _) in DEFINITIONS.into_iter().chain([("create_index", "")]) {
        let (own, rival) = (middle(Contender::Avocet, name), middle(Contender::Rival, name));
        report.add(format!("alter.{name}_ms"), "ms", own, rival);
    }
    for (name, unit) in [("writes_alone", "/s"), ("writes_meanwhile", "/s"), ("writes_kept", "ratio")] {
        report.add(
            format!("alter.{name}"),
            unit,
            middle(Contender::Avocet, name),
            middle(Contender::Rival, name),
        );
    }
    report.publish(options.common.json.as_deref())?;
    let mut holds = true;
    if options.rows >= FULL_SIZE {
        let slow = middle(Contender::Avocet, "add_column").is_some_and(|ms| ms > ADD_COLUMN_MS);
        let starved = middle(Contender::Avocet, "writes_kept").is_some_and(|kept| kept < WRITES_KEPT);
        for (missed, what) in [(slow, "alter.add_column_ms"), (starved, "alter.writes_kept")] {
            if missed {
                eprintln!("a mark is missed: {what}");
            }
        }
        holds = !slow && !starved;
    }
    oltp::verdict(holds)
}
