//! `bench/run recovery`: TPC-C runs until the log since the last checkpoint has the wanted size, the process is killed, and the
//! clock runs from the server's start until it answers a query on the data. Then everything acknowledged must be there.
//!
//! A gigabyte of log takes many minutes over the protocol. Avocet's is therefore written by a process of its own that calls
//! the engine (`filler`), as fast as it can, unless told otherwise: what it took is the time that recovery competes with.

mod filler;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use crate::cache;
use crate::contest::{Contender, Contest};
use crate::error::{Error, IoContext, Result};
use crate::finding;
use crate::options::{Common, Oltp};
use crate::progress;
use crate::report::Report;
use crate::rival::{Server, avocet};
use crate::tpcc;
use crate::tpcc::check::{self, Baseline};
use crate::tpcc::driver::{self, Books, Control, Plan, Watch};
use crate::tpcc::sql::SqlOps;
use crate::value::int;

pub use filler::{Options as FillerOptions, command as filler_command};

/// Who writes Avocet's log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Fill {
    /// The server, for terminals that speak the protocol, as with any rival
    Protocol,
    /// A process that calls the engine
    Procedures,
}

#[derive(Args, Clone)]
pub struct Options {
    #[command(flatten)]
    pub oltp: Oltp,
    /// Kill the server when its log has grown to this size
    #[arg(long, default_value_t = 1024, value_name = "MIB")]
    pub log_mib: u64,
    /// Kill it after this time in any case
    #[arg(long, default_value_t = 1800.0, value_name = "SECONDS")]
    pub at_most: f64,
    /// How the log is filled
    #[arg(long, value_enum, default_value = "procedures")]
    pub fill: Fill,
    #[command(flatten)]
    pub common: Common,
}

/// What was done, and logged, before the kill.
struct Filled {
    transactions: u64,
    log_bytes: u64,
    took: Duration,
    books: Books,
    /// Transactions that may be there beyond the books.
    in_doubt: u64,
}

/// What one contender did.
struct Recovered {
    contender: Contender,
    log_bytes: u64,
    original: Duration,
    took: Duration,
    holds: bool,
}

/// `bench/run recovery`.
pub fn command(options: &Options) -> Result<()> {
    let mut common = options.common.clone();
    if !common.without_avocet {
        common.serve_option.extend(without_checkpoints(options.log_mib)?);
    }
    let mut contest = Contest::start(&common)?;
    let mut all = Vec::new();
    for (contender, server) in contest.each_mut() {
        all.push(recover(contender, server, options)?);
    }
    let mut report = Report::new("recovery", common.rival);
    let of = |who, figure: fn(&Recovered) -> f64| all.iter().find(|r| r.contender == who).map(figure);
    let mut add = |name, unit, figure: fn(&Recovered) -> f64| {
        report.add(name, unit, of(Contender::Avocet, figure), of(Contender::Rival, figure));
    };
    add("recovery.s", "s", |r| r.took.as_secs_f64());
    add("recovery.log_bytes", "bytes", |r| r.log_bytes as f64);
    add("recovery.original_s", "s", |r| r.original.as_secs_f64());
    add("recovery.times_faster", "x", |r| r.original.as_secs_f64() / r.took.as_secs_f64());
    report.publish(common.json.as_deref())?;
    if all.iter().all(|r| r.holds) { Ok(()) } else { Err(Error::Check("something was lost".into())) }
}

/// Options that keep Avocet from writing a checkpoint before its log has the wanted size.
fn without_checkpoints(log_mib: u64) -> Result<Vec<String>> {
    let help = cache::run(Command::new(avocet::binary()?).args(["serve", "--help"]))?;
    if help.contains("--checkpoint-log-mib") {
        Ok(vec![format!("--checkpoint-log-mib={}", 4 * log_mib)])
    } else {
        Ok(Vec::new())
    }
}

fn recover(contender: Contender, server: &mut Server, options: &Options) -> Result<Recovered> {
    let scale = options.oltp.scale();
    tpcc::load(server, scale)?;
    // Started again, the log that loading wrote is behind a checkpoint, or at least replayed.
    server.stop()?;
    server.start_again()?;
    let connection = tpcc::options(server);
    let before = Baseline::take(&connection)?;
    let filled = match (contender, options.fill) {
        (Contender::Avocet, Fill::Procedures) => filler::fill(server, options)?,
        _ => fill_by_protocol(server, options)?,
    };
    let begin = Instant::now();
    server.start_again()?;
    let mut conn = Conn::new(connection.clone())?;
    conn.query_drop("SELECT COUNT(*) FROM warehouse")?;
    let took = begin.elapsed();
    println!(
        "{}: {} transactions in {:.2?}, {} MiB of log, back after {took:.2?}",
        server.name(),
        filled.transactions,
        filled.took,
        filled.log_bytes >> 20
    );
    let books = check::books(&connection, &filled.books, before, filled.in_doubt)?;
    let mut holds = finding::print("acknowledged work", &books);
    holds &= finding::print("consistency conditions", &check::conditions(&connection, &scale)?);
    Ok(Recovered { contender, log_bytes: filled.log_bytes, original: filled.took, took, holds })
}

/// Runs terminals on the server until its log is long enough, and kills it.
fn fill_by_protocol(server: &mut Server, options: &Options) -> Result<Filled> {
    let connection = tpcc::options(server);
    let log_before = log_bytes(server)?;
    let limit = Duration::from_secs_f64(options.at_most);
    let plan = Plan { warm_up: Duration::ZERO, measure: limit, ..options.oltp.plan(0) };
    let bar = progress::Live::new(&format!("{} fills its log", server.name()), limit);
    let mut written = 0;
    let mut looked = Instant::now();
    let (run, errors) = driver::run(
        plan,
        options.oltp.scale(),
        &Control::default(),
        || SqlOps::connect(connection.clone()),
        |elapsed| {
            if looked.elapsed() > Duration::from_millis(500) {
                looked = Instant::now();
                written = log_bytes(server).unwrap_or(0).saturating_sub(log_before);
                bar.message(elapsed, format!("{} MiB of log", written >> 20));
            }
            if written >> 20 >= options.log_mib { Watch::EndNow } else { Watch::EndInTime }
        },
    )?;
    drop(bar);
    if let Some(e) = errors.into_iter().next() {
        return Err(e);
    }
    server.kill()?;
    let (transactions, took) = (run.transactions(), run.elapsed);
    Ok(Filled { transactions, log_bytes: written, took, books: run.books, in_doubt: 0 })
}

/// How much log there is: Avocet's segment files, or what InnoDB says that it has written.
fn log_bytes(server: &Server) -> Result<u64> {
    let folder = server.data().join("log");
    if folder.is_dir() {
        return segments(&folder);
    }
    let mut conn = Conn::new(server.options())?;
    let row: Option<Row> = conn.query_first("SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'")?;
    row.map_or(Ok(0), |row| int(&row, 1).map(|bytes| bytes as u64))
}

/// Bytes of log segments, without the spare ones.
fn segments(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder).context(|| format!("listing {}", folder.display()))? {
        let path = entry.context(|| "listing log segments".into())?.path();
        if path.extension().is_some_and(|e| e == "log") {
            sum += cache::bytes_below(&path)?;
        }
    }
    Ok(sum)
}
