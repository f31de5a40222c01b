//! `bench/run soak`: TPC-C terminals, a stream of CH queries and DDL side by side, with a SIGKILL every so often, for an hour.
//!
//! What must stay flat is measured all the while: memory (beyond what the growing tables take), old versions, files, latency.
//! After every kill all acknowledged work must be there and TPC-C's conditions must hold.

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
use crate::contest::Contest;
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
    #[arg(long, default_value_t = 120.0, value_name = "SECONDS")]
    pub lives: f64,
    #[command(flatten)]
    pub common: Common,
}

/// How often tables are defined and dropped.
const DDL_PACE: Duration = Duration::from_millis(500);

/// How long old versions may take to go when the load has ended.
const MOST_SETTLING: Duration = Duration::from_secs(10);

/// The state of the server at the end of a life, a moment after the load has ended.
struct Sample {
    at: Duration,
    rows: f64,
    rss: f64,
    tables: f64,
    versions: f64,
    files: f64,
    file_bytes: f64,
    log_bytes: f64,
    tx_per_s: f64,
    p99_ms: f64,
    back_after: Duration,
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
        let (a, b) = (mean(first, figure), mean(last, figure));
        report.add(name, unit, Some(b / a.max(1e-9)), None);
    };
    add("soak.other_memory_growth", "x", other_memory);
    add("soak.p99_growth", "x", |s| s.p99_ms);
    add("soak.log_growth", "x", |s| s.log_bytes);
    let versions = samples.iter().map(|s| s.versions).fold(0.0, f64::max);
    report.add("soak.versions_at_rest", "transactions", Some(versions), None);
    report.publish(options.common.json.as_deref())?;
    judge(&samples)
}

/// Memory that is not the tables': it must not grow.
fn other_memory(sample: &Sample) -> f64 {
    (sample.rss - sample.tables).max(1.0)
}

fn early(samples: &[Sample]) -> &[Sample] {
    // The first life warms up.
    let from = usize::from(samples.len() > 3);
    &samples[from..(from + samples.len().div_ceil(3)).min(samples.len())]
}

fn late(samples: &[Sample]) -> &[Sample] {
    &samples[samples.len() - samples.len().div_ceil(3)..]
}

fn mean(samples: &[Sample], figure: fn(&Sample) -> f64) -> f64 {
    samples.iter().map(figure).sum::<f64>() / samples.len().max(1) as f64
}

fn judge(samples: &[Sample]) -> Result<()> {
    let grows = |figure: fn(&Sample) -> f64, most: f64| {
        mean(late(samples), figure) > most * mean(early(samples), figure)
    };
    let mut wrong = Vec::new();
    if grows(other_memory, 1.5) {
        wrong.push("memory beside the tables grows");
    }
    if grows(|s| s.log_bytes, 2.0) {
        wrong.push("the log grows");
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
    let mut books = Books::default();
    let mut samples = Vec::new();
    while begin.elapsed() < whole {
        let number = samples.len() as u64;
        let connection = tpcc::options(server);
        let before = Baseline::take(&connection)?;
        let life = Duration::from_secs_f64(options.lives).min(whole);
        let plan = Plan { warm_up: Duration::ZERO, measure: life, ..options.oltp.plan(number) };
        let run = live(&connection, options, plan)?;
        let mut sample = look(server, begin.elapsed(), &run)?;
        books.add(run.books);
        // The kill comes in mid-load again.
        let moment = Duration::from_millis(500 + 70 * (number % 13));
        let killed = crate::crash::kill_in_mid_load(server, scale, plan, moment)?;
        books.add(killed.run.books);
        sample.back_after = killed.back_after;
        let mut findings = check::books(&connection, &books, before, options.oltp.pace.terminals as u64)?;
        findings.extend(check::conditions(&connection, &scale)?);
        let broken: Vec<Finding> = findings.into_iter().filter(|f| f.broken.is_some()).collect();
        if !broken.is_empty() {
            finding::print("broken", &broken);
            return Err(Error::Check(format!("life {} lost something", number + 1)));
        }
        (books.payments, books.paid) = (0, 0);
        eprintln!(
            "{:>5.0} s: {:.0} tx/s, {:.0} MiB, {:.0} versions, back after {:.1?}",
            sample.at.as_secs_f64(),
            sample.tx_per_s,
            sample.rss / 1048576.0,
            sample.versions,
            sample.back_after
        );
        samples.push(sample);
    }
    Ok(samples)
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
fn look(server: &Server, at: Duration, run: &Run) -> Result<Sample> {
    let mut conn = Conn::new(tpcc::options(server))?;
    settle(&mut conn)?;
    let rows: Option<i64> = conn.query_first("SELECT COUNT(*) FROM order_line")?;
    let tables = status(&mut conn, "Avocet_memory_hot_pages")? + status(&mut conn, "Avocet_memory_indexes")?;
    let cached = status(&mut conn, "Avocet_memory_cache")?;
    let files = files_below(server.data())?;
    Ok(Sample {
        at,
        rows: rows.ok_or_else(|| Error::Check("no count of order lines".into()))? as f64,
        rss: server.rss()? as f64,
        tables: tables + cached,
        versions: status(&mut conn, "Avocet_versions")?,
        files: files as f64,
        file_bytes: cache::bytes_below(server.data())? as f64,
        log_bytes: cache::bytes_below(&server.data().join("log"))? as f64,
        tx_per_s: run.per_second(),
        p99_ms: run.latency[Kind::NewOrder as usize].millis(0.99),
        back_after: Duration::ZERO,
    })
}

fn files_below(path: &std::path::Path) -> Result<u64> {
    use crate::error::IoContext;
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
            number(Some(s.files)),
            mib(s.file_bytes),
            mib(s.log_bytes),
            number(Some(s.back_after.as_secs_f64())),
        ]);
    }
    table
}
