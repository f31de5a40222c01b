//! Recorded queries, replayed by `avocet replay` on a MySQL and on the Avocet that follows it, while others write: no answer differs,
//! and one that was made to differ is found.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;
use serde_json::Value;

use super::pair::Source;
use super::{Options, Pair, connect, tpch};
use crate::cache::Scratch;
use crate::error::{Error, Result};
use crate::random::Random;
use crate::rival::avocet;
use crate::tpch::DATABASE;
use crate::tpch::queries::QUERIES;

/// Point reads and their like that are recorded.
const SMALL: usize = 300;

/// `--replay`.
pub fn run(options: &Options, seed: u64) -> Result<()> {
    let folder = Scratch::new("attach-replay")?;
    let pair = Pair::start(Source::Mysql, folder.path(), &options.common.serve_option, |source| {
        tpch::load(source, 0.01)?;
        let mut conn = connect(source)?;
        conn.query_drop(format!(
            "CREATE TABLE {DATABASE}.counted (id INT PRIMARY KEY, a INT NOT NULL, t TIMESTAMP NULL)"
        ))?;
        let rows: Vec<String> = (0..100).map(|id| format!("({id}, 0, NULL)")).collect();
        Ok(conn.query_drop(format!("INSERT INTO {DATABASE}.counted VALUES {}", rows.join(", ")))?)
    })?;
    pair.settle()?;
    let log = folder.path().join("general.log");
    let mut conn = connect(&pair.source)?;
    conn.query_drop(format!("SET GLOBAL general_log_file = '{}'", log.display()))?;
    conn.query_drop("SET GLOBAL general_log = ON")?;
    record(&mut connect(&pair.source)?, &mut Random::new(seed))?;
    conn.query_drop("SET GLOBAL general_log = OFF")?;
    let report = while_writing(&pair, || replay(&pair, &log))??;
    let total = |of: &str| report["total"][of].as_u64().unwrap_or_default();
    println!(
        "replay with seed {seed}: {} statements replayed, {} the same, {} different, {} unsupported, {} not comparable; {:.1} times faster",
        total("count"),
        total("same"),
        total("different"),
        total("unsupported"),
        total("not_comparable"),
        report["total"]["times_faster"].as_f64().unwrap_or_default(),
    );
    let compared = total("same") >= (QUERIES.len() + SMALL / 2) as u64;
    if total("different") > 0 || total("unsupported") > 0 || !compared || !report["cut_short"].is_null() {
        return Err(Error::Check(format!("replay with seed {seed}: {report:#}")));
    }
    // Rows that only the source has.
    let mut conn = connect(&pair.replica)?;
    conn.query_drop("STOP REPLICA")?;
    connect(&pair.source)?.query_drop(format!("UPDATE {DATABASE}.region SET r_comment = 'other'"))?;
    let file = folder.path().join("one.sql");
    std::fs::write(
        &file,
        format!("SELECT 1;\nSELECT r_name, r_comment FROM {DATABASE}.region ORDER BY r_name;\n"),
    )
    .map_err(|source| Error::Io { context: file.display().to_string(), source })?;
    let report = replay_with(&pair, &file, &["--no-wait"])?;
    let differences = report["differences"].as_array().map_or(0, Vec::len);
    match (differences, report["total"]["same"].as_u64()) {
        (1, Some(1)) => Ok(()),
        _ => Err(Error::Check(format!("a difference is not found: {report:#}"))),
    }
}

/// What an application may ask.
fn record(conn: &mut Conn, random: &mut Random) -> Result<()> {
    conn.query_drop(format!("USE {DATABASE}"))?;
    for query in &QUERIES {
        conn.query_drop(query.sql)?;
    }
    for _ in 0..SMALL {
        let (key, low) = (random.uniform(0, 69999), random.uniform(0, 1499));
        match random.uniform(0, 6) {
            0 => conn.query_drop(format!("SELECT * FROM orders WHERE o_orderkey = {key}"))?,
            1 => conn
                .query_drop(format!("SELECT COUNT(*), MAX(c_name) FROM customer WHERE c_custkey > {low}"))?,
            2 => conn.query_drop(format!(
                "SELECT n_name FROM nation WHERE n_nationkey IN ({}, {})",
                key % 25,
                low % 25
            ))?,
            3 => conn.exec_drop(
                "SELECT o_totalprice FROM orders WHERE o_custkey = ? ORDER BY o_orderkey LIMIT 3",
                (low,),
            )?,
            4 => {
                conn.query_drop(format!("SET @k = {key}"))?;
                conn.query_drop("SELECT @k, COUNT(*) FROM orders WHERE o_orderkey < @k")?;
            }
            // The table that is written to all the time.
            5 => conn.query_drop("SELECT COUNT(*), SUM(a) FROM counted")?,
            _ => {
                conn.query_drop(format!("SELECT id, a, t FROM counted WHERE id < {} ORDER BY id", low % 100))?
            }
        }
    }
    Ok(())
}

/// Has somebody change rows at the source meanwhile.
fn while_writing<T>(pair: &Pair, work: impl FnOnce() -> T) -> Result<T> {
    let is_done = AtomicBool::new(false);
    let mut conn = connect(&pair.source)?;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<()> {
            let mut random = Random::new(1);
            while !is_done.load(Ordering::Relaxed) {
                let (from, to) = (random.uniform(0, 99), random.uniform(0, 99));
                conn.query_drop(format!(
                    "UPDATE {DATABASE}.counted SET a = a + IF(id = {from}, -1, 1), t = NOW() WHERE id IN ({from}, {to})"
                ))?;
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(())
        });
        let done = work();
        is_done.store(true, Ordering::Relaxed);
        writer.join().expect("the writer does not panic")?;
        Ok(done)
    })
}

fn replay(pair: &Pair, log: &Path) -> Result<Value> {
    // EXTRACT(YEAR) by way of a derived table is a BIGINT here, an INT there (COMPAT.md).
    replay_with(pair, log, &["--ignore-types"])
}

/// The report of a replay, whatever its status says.
fn replay_with(pair: &Pair, log: &Path, options: &[&str]) -> Result<Value> {
    let json = log.with_extension("json");
    let begin = Instant::now();
    let output = Command::new(avocet::binary()?)
        .arg("replay")
        .arg(log)
        .args(["--source", &format!("mysql://root@127.0.0.1:{}/", pair.source.port())])
        .args(["--avocet", &format!("mysql://root@127.0.0.1:{}/", pair.replica.port())])
        .arg("--json")
        .arg(&json)
        .args(options)
        .output()
        .map_err(|source| Error::Io { context: "avocet replay".into(), source })?;
    let text = std::fs::read(&json).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Error::Check(format!("no report of a replay after {:?}: {error}; {said}", begin.elapsed()))
    })?;
    serde_json::from_slice(&text).map_err(|error| Error::Check(format!("the report cannot be read: {error}")))
}
