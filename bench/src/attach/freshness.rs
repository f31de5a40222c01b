//! How long an analytical query waits until all is here that the source has committed before it, while others write there.
//!
//! Writers count up and note what was acknowledged; a query that waited for the latest data must see all of that.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use super::session::Session;
use super::{Pair, pair};
use crate::error::{Error, Result};
use crate::oltp::driver::Latency;
use crate::report::{Report, Table, number};

/// Rows that are counted up, and who does so.
const ROWS: i64 = 1_000;
const WRITERS: i64 = 4;
const READERS: usize = 2;
/// Queries between two looks at what the front says of them, of which it keeps 1,000.
const BATCH: usize = 50;

pub fn load(conn: &mut Conn) -> Result<()> {
    conn.query_drop("CREATE TABLE r.counts (id INT PRIMARY KEY, n BIGINT NOT NULL)")?;
    Ok(conn.query_drop(format!(
        "INSERT INTO r.counts WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < {ROWS})
         SELECT i, 0 FROM i"
    ))?)
}

/// Adds `attach.freshness_wait_p99_ms`.
pub fn measure(pair: &Pair, seconds: f64, rate: f64, report: &mut Report) -> Result<()> {
    let time = Duration::from_secs_f64(seconds);
    let (acknowledged, stop) = (AtomicI64::new(0), AtomicBool::new(false));
    let mut waits = Latency::default();
    let writer_options = pair::options(&pair.source);
    let before: Option<i64> = pair::connect(&pair.source)?.query_first("SELECT SUM(n) FROM r.counts")?;
    let outcome: Result<f64> = std::thread::scope(|threads| {
        let begin = Instant::now();
        let (acknowledged, stop) = (&acknowledged, &stop);
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let options = writer_options.clone();
                threads.spawn(move || write(options, number, rate / WRITERS as f64, acknowledged, stop))
            })
            .collect();
        let base = before.unwrap_or_default();
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                let options = pair.front_options();
                threads.spawn(move || ask(options, base, acknowledged, time))
            })
            .collect();
        let mut outcome = Ok(());
        for reader in readers {
            match reader.join().unwrap_or_else(|_| Err(Error::Setup("a reader has panicked".into()))) {
                Ok(one) => waits.add(&one),
                Err(error) => outcome = Err(error),
            }
        }
        let reached = acknowledged.load(Ordering::SeqCst) as f64 / begin.elapsed().as_secs_f64();
        stop.store(true, Ordering::SeqCst);
        for writer in writers {
            writer.join().unwrap_or_else(|_| Err(Error::Setup("a writer has panicked".into())))?;
        }
        outcome.map(|()| reached)
    });
    let reached = outcome?;
    let mut table =
        Table::new(&["waits for the latest data", "tx/s", "queries", "p50 ms", "p99 ms", "worst ms"]);
    table.row(vec![
        format!("{READERS} sessions, {WRITERS} writers"),
        number(Some(reached.round())),
        waits.count().to_string(),
        number(Some(waits.millis(0.5))),
        number(Some(waits.millis(0.99))),
        number(Some(waits.max_millis())),
    ]);
    println!("\n{}", table.text());
    report.add("attach.freshness_wait_p99_ms", "ms", Some(waits.millis(0.99)), None);
    report.add("attach.freshness_written_tx_per_s", "tx/s", Some(reached), None);
    Ok(())
}

/// Counts rows of its own up at a pace, a transaction each.
fn write(
    options: OptsBuilder,
    number: i64,
    rate: f64,
    acknowledged: &AtomicI64,
    stop: &AtomicBool,
) -> Result<()> {
    let mut conn = Conn::new(options)?;
    let update = conn.prep("UPDATE r.counts SET n = n + 1 WHERE id = ?")?;
    let begin = Instant::now();
    let mine = ROWS / WRITERS;
    for at in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let due = Duration::from_secs_f64(at as f64 / rate);
        std::thread::sleep(due.saturating_sub(begin.elapsed()));
        conn.exec_drop(&update, (number * mine + at % mine + 1,))?;
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

/// Asks for the sum again and again; the waits, of queries that ran on Avocet.
fn ask(options: OptsBuilder, base: i64, acknowledged: &AtomicI64, time: Duration) -> Result<Latency> {
    let settings = "avocet_route = 'here', avocet_freshness = 'latest', avocet_freshness_timeout = 60000,
                    avocet_freshness_fallback = 'error'";
    let mut session = Session::open(options, settings)?;
    let mut waits = Latency::default();
    let begin = Instant::now();
    while begin.elapsed() < time {
        for _ in 0..BATCH {
            let known = base + acknowledged.load(Ordering::SeqCst);
            let sum: Option<i64> = session.conn.query_first("SELECT SUM(n) FROM r.counts")?;
            if sum.is_none_or(|sum| sum < known) {
                return Err(Error::Check(format!("a query sees {sum:?} after {known} was acknowledged")));
            }
        }
        let routed = session.routed()?;
        if routed.len() != BATCH {
            return Err(Error::Check(format!(
                "{} of {BATCH} queries are in avocet.routed_queries",
                routed.len()
            )));
        }
        for query in routed {
            if !query.here {
                return Err(Error::Check(format!("a query ran on the source: {}", query.why)));
            }
            waits.record(query.waited);
        }
    }
    Ok(waits)
}
