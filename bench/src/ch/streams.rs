//! The analytical side of CH-benCHmark: streams that run the queries in random order, and the probe that tells how fresh their
//! answers are.
//!
//! The probe keeps writing the time into one row and notes when that is acknowledged. A stream reads that row in the same
//! transaction, thus in the same snapshot, as its query. The snapshot's age is the time from the marker that it saw to the start
//! of the query. Having seen an older marker than one that was acknowledged before the start would be a stale answer.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row};

use crate::error::{Error, Result};
use crate::oltp::driver::Latency;
use crate::random::Random;
use crate::value::{int, now_micros};

/// What the streams run.
#[derive(Clone, Copy)]
pub enum Load {
    /// Any of these, each once in a round, in random order.
    Queries(&'static [&'static str]),
    /// One query at a fixed pace, with this time from start to start.
    Paced(&'static str, Duration),
}

impl Load {
    pub fn queries(&self) -> &[&'static str] {
        match self {
            Load::Queries(all) => all,
            Load::Paced(one, _) => std::slice::from_ref(one),
        }
    }
}

/// What probe and streams share.
#[derive(Default)]
pub struct Shared {
    pub stop: AtomicBool,
    /// Queries answered, for live progress.
    pub answered: AtomicU64,
    /// Streams that have run every query at least once.
    pub rounds: AtomicU64,
    /// The newest marker whose commit was acknowledged.
    acknowledged: AtomicI64,
}

/// What the streams measured.
pub struct Answers {
    /// Seconds of each run, by query.
    pub seconds: Vec<Vec<f64>>,
    /// Age of the snapshot at the start of a query.
    pub age: Latency,
    /// Answers that lacked something acknowledged before they began.
    pub stale: u64,
}

impl Answers {
    pub fn new(queries: usize) -> Answers {
        Answers { seconds: vec![Vec::new(); queries], age: Latency::default(), stale: 0 }
    }

    pub fn add(&mut self, other: Answers) {
        self.seconds.iter_mut().zip(other.seconds).for_each(|(mine, others)| mine.extend(others));
        self.age.add(&other.age);
        self.stale += other.stale;
    }
}

/// Writes the marker until told to stop.
pub fn probe(options: OptsBuilder, shared: &Shared) -> Result<()> {
    let mut conn = Conn::new(options)?;
    let write = conn.prep("UPDATE freshness SET written = ? WHERE id = 1")?;
    while !shared.stop.load(Ordering::Relaxed) {
        let now = now_micros();
        conn.exec_drop(&write, (now,))?;
        shared.acknowledged.store(now, Ordering::Release);
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Runs queries until told to stop.
pub fn stream(options: OptsBuilder, load: Load, seed: u64, shared: &Shared) -> Result<Answers> {
    let mut conn = Conn::new(options)?;
    let mut random = Random::new(seed);
    let mut answers = Answers::new(load.queries().len());
    let mut first_round = true;
    while !shared.stop.load(Ordering::Relaxed) {
        for number in random.permutation(load.queries().len() as i64) {
            if shared.stop.load(Ordering::Relaxed) {
                return Ok(answers);
            }
            let begin = Instant::now();
            let query = (number - 1) as usize;
            query_once(&mut conn, load.queries()[query], query, shared, &mut answers)?;
            shared.answered.fetch_add(1, Ordering::Relaxed);
            if let Load::Paced(_, pace) = load {
                std::thread::sleep(pace.saturating_sub(begin.elapsed()));
            }
        }
        if std::mem::take(&mut first_round) {
            shared.rounds.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(answers)
}

fn query_once(
    conn: &mut Conn,
    sql: &str,
    query: usize,
    shared: &Shared,
    answers: &mut Answers,
) -> Result<()> {
    let acknowledged = shared.acknowledged.load(Ordering::Acquire);
    let start = now_micros();
    conn.query_drop("START TRANSACTION")?;
    let marker: Option<Row> = conn.query_first("SELECT written FROM freshness WHERE id = 1")?;
    let seen = int(&marker.ok_or_else(|| Error::Check("the marker row is gone".into()))?, 0)?;
    let begin = Instant::now();
    conn.query_iter(sql)?.try_for_each(|row| row.map(drop))?;
    answers.seconds[query].push(begin.elapsed().as_secs_f64());
    conn.query_drop("COMMIT")?;
    if acknowledged > 0 {
        answers.age.record(Duration::from_micros((start - seen).max(1) as u64));
        answers.stale += u64::from(seen < acknowledged);
    }
    Ok(())
}
