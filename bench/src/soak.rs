//! `bench/run soak`: TPC-C terminals, a stream of CH queries and DDL side by side, with a SIGKILL every so often, for an hour.
//!
//! What must stay flat is measured all the while, some times in each of the server's lives: memory (beyond what the growing
//! tables take), old versions, files, latency. Whatever grows fails the command. After every kill all acknowledged work must be
//! there and TPC-C's conditions must hold.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row};

use crate::cache;
use crate::ch;
use crate::ch::queries::QUERIES;
use crate::ch::streams::{self, Load, Shared};
use crate::contest::{Contest, median};
use crate::error::{Error, Result};
use crate::finding::{self, Finding};
use crate::oltp::driver::Books as _;
use crate::options::{Common, Oltp};
use crate::report::{Report, Table, number};
use crate::rival::Server;
use crate::tpcc;
use crate::tpcc::check::{self, Baseline};
use crate::tpcc::driver::{self, Books, Control, Plan, Run, Watch};
use crate::tpcc::sql::SqlOps;
use crate::tpcc::transactions::Kind;

#[derive(Args, Clone)]
pub struct Options {
    #[command(flatten)]
    pub oltp: Oltp,
    /// How long it runs in all
    #[arg(long, default_value_t = 60.0)]
    pub minutes: f64,
    /// How long the server lives between kills
    #[arg(long, default_value_t = 360.0, value_name = "SECONDS")]
    pub lives: f64,
    /// Load between two looks at the server
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS")]
    pub look_every: f64,
    #[command(flatten)]
    pub common: Common,
}

/// How often tables are defined and dropped.
const DDL_PACE: Duration = Duration::from_millis(500);

/// How long old versions may take to go when the load has ended.
const MOST_SETTLING: Duration = Duration::from_secs(10);

/// The state of the server a moment after the load has ended.
struct Sample {
    at: Duration,
    /// Which life of the server's, from 0.
    life: u64,
    rows: f64,
    rss: f64,
    tables: f64,
    versions: f64,
    /// Column blocks, of which growing tables have more and more, and all other files.
    blocks: f64,
    files: f64,
    file_bytes: f64,
    log_bytes: f64,
    tx_per_s: f64,
    p99_ms: f64,
    /// After the kill that ended the life, in its last sample.
    back_after: Option<Duration>,
}

/// `bench/run soak`.
pub fn command(options: &Options) -> Result<()> {
    let mut common = options.common.clone();
    // Small enough for many checkpoints in the time.
    common.serve_option.push("--checkpoint-log-mib=64".into());
    let mut contest = Contest::start(&common)?;
    let mut samples = Vec::new();
    for (_, server) in contest.each_mut() {
        ch::load(server, options.oltp.scale())?;
        samples = lives(server, options)?;
    }
    println!("\n{}", table(&samples).text());
    let mut report = Report::new("soak", common.rival);
    let (first, last) = (early(&samples), late(&samples));
    let mut add = |name, unit, figure: fn(&Sample) -> f64| {
        let (a, b) = (middle(first, figure), middle(last, figure));
        report.add(name, unit, Some(b / a.max(1e-9)), None);
    };
    add("soak.other_memory_growth", "x", other_memory);
    add("soak.p99_growth", "x", |s| s.p99_ms);
    add("soak.log_growth", "x", |s| s.log_bytes);
    add("soak.files_growth", "x", |s| s.files);
    add("soak.blocks_growth", "x", blocks_per_row);
    add("soak.disk_growth", "x", bytes_per_row);
    report.add("soak.memory_growth_in_a_life", "x", growth_in_a_life(&samples), None);
    let versions = samples.iter().map(|s| s.versions).fold(0.0, f64::max);
    report.add("soak.versions_at_rest", "transactions", Some(versions), None);
    report.publish(options.common.json.as_deref())?;
    judge(&samples)
}

/// Memory that is not the tables': it must not grow.
fn other_memory(sample: &Sample) -> f64 {
    (sample.rss - sample.tables).max(1.0)
}

/// Column blocks and bytes on disk for an order line: they grow with the tables and no faster.
fn blocks_per_row(sample: &Sample) -> f64 {
    sample.blocks / sample.rows.max(1.0)
}

fn bytes_per_row(sample: &Sample) -> f64 {
    sample.file_bytes / sample.rows.max(1.0)
}

/// The most by which memory beside the tables has grown from the second look at a life to its last; none if lives are too
/// short to tell.
fn growth_in_a_life(samples: &[Sample]) -> Option<f64> {
    let lives = samples.chunk_by(|a, b| a.life == b.life).filter(|life| life.len() > 2);
    lives.map(|life| other_memory(&life[life.len() - 1]) / other_memory(&life[1])).max_by(f64::total_cmp)
}

fn early(samples: &[Sample]) -> &[Sample] {
    // The first life warms up.
    let from = usize::from(samples.len() > 3);
    &samples[from..(from + samples.len().div_ceil(3)).min(samples.len())]
}

fn late(samples: &[Sample]) -> &[Sample] {
    &samples[samples.len() - samples.len().div_ceil(3)..]
}

fn middle(samples: &[Sample], figure: fn(&Sample) -> f64) -> f64 {
    median(samples.iter().map(figure)).unwrap_or(0.0)
}

fn judge(samples: &[Sample]) -> Result<()> {
    let grows = |figure: fn(&Sample) -> f64, most: f64| {
        middle(late(samples), figure) > most * middle(early(samples), figure)
    };
    let mut wrong = Vec::new();
    if grows(other_memory, 1.5) || growth_in_a_life(samples).is_some_and(|growth| growth > 1.5) {
        wrong.push("memory beside the tables grows");
    }
    if grows(|s| s.log_bytes, 2.0) {
        wrong.push("the log grows");
    }
    if grows(|s| s.files, 2.0) || grows(blocks_per_row, 1.5) {
        wrong.push("files get more");
    }
    if grows(bytes_per_row, 1.5) {
        wrong.push("the disk fills faster than the tables grow");
    }
    if grows(|s| s.p99_ms, 3.0) {
        wrong.push("latency grows");
    }
    if samples.iter().any(|s| s.versions > 1000.0) {
        wrong.push("old versions stay");
    }
    if wrong.is_empty() { Ok(()) } else { Err(Error::Check(wrong.join("; "))) }
}

fn lives(server: &mut Server, options: &Options) -> Result<Vec<Sample>> {
    let begin = Instant::now();
    let whole = Duration::from_secs_f64(options.minutes * 60.0);
    let scale = options.oltp.scale();
    let span = Duration::from_secs_f64(options.look_every.min(options.lives)).min(whole);
    let mut books = Books::default();
    let mut samples: Vec<Sample> = Vec::new();
    let mut number = 0;
    while begin.elapsed() < whole {
        let connection = tpcc::options(server);
        let before = Baseline::take(&connection)?;
        let born = begin.elapsed();
        let mut plan = Plan { warm_up: Duration::ZERO, measure: span, ..options.oltp.plan(0) };
        while begin.elapsed() < whole && (begin.elapsed() - born).as_secs_f64() < options.lives {
            plan.seed = options.oltp.plan(samples.len() as u64).seed;
            let run = live(&connection, options, plan)?;
            let sample = look(server, begin.elapsed(), number, &run)?;
            sample.tell();
            samples.push(sample);
            books.add(run.books);
        }
        // The kill comes in mid-load again.
        let moment = Duration::from_millis(500 + 70 * (number % 13));
        let killed = crate::crash::kill_in_mid_load(server, scale, plan, moment)?;
        books.add(killed.run.books);
        if let Some(last) = samples.last_mut() {
            last.back_after = Some(killed.back_after);
        }
        let mut findings = check::books(&connection, &books, before, options.oltp.pace.terminals as u64)?;
        findings.extend(check::conditions(&connection, &scale)?);
        let broken: Vec<Finding> = findings.into_iter().filter(|f| f.broken.is_some()).collect();
        if !broken.is_empty() {
            finding::print("broken", &broken);
            return Err(Error::Check(format!("life {} lost something", number + 1)));
        }
        (books.payments, books.paid) = (0, 0);
        eprintln!("{:>5.0} s: killed, back after {:.1?}", begin.elapsed().as_secs_f64(), killed.back_after);
        number += 1;
    }
    Ok(samples)
}

impl Sample {
    fn tell(&self) {
        eprintln!(
            "{:>5.0} s: {:.0} tx/s, p99 {:.1} ms, {:.0} MiB, {:.0} of them beside the tables, {:.0} versions",
            self.at.as_secs_f64(),
            self.tx_per_s,
            self.p99_ms,
            self.rss / 1048576.0,
            other_memory(self) / 1048576.0,
            self.versions
        );
    }
}

/// Terminals, a query stream and DDL for one life.
fn live(connection: &OptsBuilder, options: &Options, plan: Plan) -> Result<Run> {
    let (control, shared) = (Control::default(), Shared::default());
    let (end, ended) = channel();
    let (run, errors) = std::thread::scope(|threads| {
        let queries = threads
            .spawn(|| streams::stream(connection.clone(), Load::Queries(&QUERIES), plan.seed, &shared));
        let ddl = threads.spawn(move || definitions(connection.clone(), &ended));
        let run = driver::run(
            plan,
            options.oltp.scale(),
            &control,
            || SqlOps::connect(connection.clone()),
            |_| Watch::EndInTime,
        );
        shared.stop.store(true, Ordering::Relaxed);
        drop(end);
        queries.join().expect("the stream does not panic")?;
        ddl.join().expect("the definer does not panic")?;
        run
    })?;
    errors.into_iter().next().map_or(Ok(run), Err)
}

/// Makes, fills, indexes, empties and drops tables until told to stop.
fn definitions(options: OptsBuilder, ended: &Receiver<()>) -> Result<()> {
    let mut conn = Conn::new(options)?;
    loop {
        for sql in [
            "DROP TABLE IF EXISTS scratch",
            "CREATE TABLE scratch (id INT PRIMARY KEY AUTO_INCREMENT, item INT, name VARCHAR(24))",
            "INSERT INTO scratch (item, name) SELECT i_id, i_name FROM item",
            "CREATE INDEX by_item ON scratch (item)",
            "UPDATE scratch SET name = 'changed' WHERE item % 3 = 0",
            "DELETE FROM scratch WHERE item % 3 = 1",
            "DROP INDEX by_item ON scratch",
            "TRUNCATE TABLE scratch",
        ] {
            conn.query_drop(sql)?;
        }
        // A pace, not a wait: it ends with the life.
        if !matches!(ended.recv_timeout(DDL_PACE), Err(RecvTimeoutError::Timeout)) {
            return Ok(());
        }
    }
}

/// Waits until old versions are no longer on their way out: until none are left, or for a while.
fn settle(conn: &mut Conn) -> Result<()> {
    let begin = Instant::now();
    while status(conn, "Avocet_versions")? > 0.0 && begin.elapsed() < MOST_SETTLING {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn status(conn: &mut Conn, name: &str) -> Result<f64> {
    let row: Option<Row> = conn.query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
    let text = row.and_then(|mut row| row.take::<String, _>(1));
    let value = text.and_then(|text| text.parse().ok());
    value.ok_or_else(|| Error::Check(format!("the server does not tell {name}")))
}

/// Looks at the server when the load has ended.
fn look(server: &Server, at: Duration, life: u64, run: &Run) -> Result<Sample> {
    let mut conn = Conn::new(tpcc::options(server))?;
    settle(&mut conn)?;
    let rows: Option<i64> = conn.query_first("SELECT COUNT(*) FROM order_line")?;
    let tables = status(&mut conn, "Avocet_memory_hot_pages")? + status(&mut conn, "Avocet_memory_indexes")?;
    let cached = status(&mut conn, "Avocet_memory_cache")?;
    let files = files_below(server.data())?;
    let blocks = files_below(&server.data().join("store/blocks"))?;
    Ok(Sample {
        at,
        life,
        rows: rows.ok_or_else(|| Error::Check("no count of order lines".into()))? as f64,
        rss: server.rss()? as f64,
        tables: tables + cached,
        versions: status(&mut conn, "Avocet_versions")?,
        blocks: blocks as f64,
        files: (files - blocks) as f64,
        file_bytes: cache::bytes_below(server.data())? as f64,
        log_bytes: cache::bytes_below(&server.data().join("log"))? as f64,
        tx_per_s: run.per_second(),
        p99_ms: run.latency[Kind::NewOrder as usize].millis(0.99),
        back_after: None,
    })
}

fn files_below(path: &std::path::Path) -> Result<u64> {
    use crate::error::IoContext;
    if !path.exists() {
        return Ok(0);
    }
    let mut count = 0;
    for entry in std::fs::read_dir(path).context(|| format!("listing {}", path.display()))? {
        let path = entry.context(|| "listing files".into())?.path();
        count += if path.is_dir() { files_below(&path)? } else { 1 };
    }
    Ok(count)
}

fn table(samples: &[Sample]) -> Table {
    let head = [
        "time",
        "order lines",
        "tx/s",
        "p99 ms",
        "MiB",
        "tables MiB",
        "other MiB",
        "versions",
        "blocks",
        "files",
        "disk MiB",
        "log MiB",
        "back after s",
    ];
    let mut table = Table::new(&head);
    let mib = |bytes: f64| number(Some((bytes / 1048576.0).round()));
    for s in samples {
        table.row(vec![
            format!("{:.0} s", s.at.as_secs_f64()),
            number(Some(s.rows)),
            number(Some(s.tx_per_s)),
            number(Some(s.p99_ms)),
            mib(s.rss),
            mib(s.tables),
            mib(other_memory(s)),
            number(Some(s.versions)),
            number(Some(s.blocks)),
            number(Some(s.files)),
            mib(s.file_bytes),
            mib(s.log_bytes),
            number(s.back_after.map(|after| after.as_secs_f64())),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An hour of a server whose tables grow and nothing else does.
    fn flat() -> Vec<Sample> {
        let sample = |n: u32| {
            let rows = 1e6 + 1e5 * f64::from(n);
            Sample {
                at: Duration::from_secs(60) * n,
                life: u64::from(n / 6),
                rows,
                rss: 300e6 + 100.0 * rows,
                tables: 100.0 * rows,
                versions: 0.0,
                blocks: rows / 65_536.0,
                files: 20.0,
                file_bytes: 60.0 * rows,
                log_bytes: 100e6,
                tx_per_s: 1000.0,
                p99_ms: 10.0,
                back_after: None,
            }
        };
        (0..60).map(sample).collect()
    }

    fn verdict(change: impl Fn(f64, &mut Sample)) -> String {
        let mut samples = flat();
        for (n, sample) in samples.iter_mut().enumerate() {
            change(n as f64 / 60.0, sample);
        }
        judge(&samples).map_or_else(|error| error.to_string(), |()| "flat".into())
    }

    /// What becomes of a sample at a share of the time.
    type Change = fn(f64, &mut Sample);

    #[test]
    fn what_grows_is_named() {
        assert_eq!(verdict(|_, _| ()), "flat");
        let cases: [(&str, Change); 7] = [
            ("memory", |t, s| s.rss += 600e6 * t),
            ("memory", |_, s| s.rss += 60e6 * (s.at.as_secs_f64() / 60.0 % 6.0)),
            ("log", |t, s| s.log_bytes *= 1.0 + 4.0 * t),
            ("files", |t, s| s.files += 100.0 * t),
            ("files", |t, s| s.blocks *= 1.0 + 2.0 * t),
            ("disk", |t, s| s.file_bytes *= 1.0 + 2.0 * t),
            ("latency", |t, s| s.p99_ms *= 1.0 + 12.0 * t),
        ];
        for (what, change) in cases {
            assert!(verdict(change).contains(what), "{what}: {}", verdict(change));
        }
        assert!(verdict(|t, s| s.versions = 5000.0 * t).contains("versions"));
    }
}
