//! `bench/run connections`: what connections that do nothing cost those that work. TATP runs on a few connections, once by
//! themselves and once beside thousands that have signed in, run a statement, and are silent since.
//!
//! The two runs alternate on the same server, the idle connections being closed in between; what is reported is the share of
//! the rate that is left, and the memory that the server holds for each idle connection.

use std::collections::VecDeque;
use std::time::Duration;

use clap::Args;
use mysql::Conn;
use mysql::prelude::Queryable;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::contest::{Contender, Contest, median};
use crate::error::{Error, Result};
use crate::finding;
use crate::oltp::{self, Workload};
use crate::options::{Common, Pace};
use crate::report::Report;
use crate::rival::Server;
use crate::tatp::Tatp;

/// Descriptors beside those of the idle connections.
const OTHER_FILES: u64 = 1_000;

#[derive(Args, Clone)]
pub struct Options {
    /// Connections in all; those that are not terminals are idle
    #[arg(long, default_value_t = 10_000)]
    connections: usize,
    /// Subscribers of TATP
    #[arg(long, default_value_t = 100_000)]
    subscribers: i64,
    /// Fail if less than this share of the rate is left
    #[arg(long, default_value_t = 0.0)]
    at_least: f64,
    #[command(flatten)]
    pace: Pace,
    #[command(flatten)]
    common: Common,
}

/// A pair of runs on one server.
struct Pair {
    contender: Contender,
    alone: f64,
    beside: f64,
    cpu_us: [f64; 2],
    /// Memory that the server took for an idle connection.
    bytes_each: f64,
    /// Signing in, for one of them.
    connect_us: f64,
}

/// `bench/run connections`.
pub fn command(options: &Options) -> Result<()> {
    let idle = options.connections.saturating_sub(options.pace.terminals);
    let mut common = options.common.clone();
    if !common.without_avocet {
        common.serve_option.push(format!("--max-connections={}", options.connections + 10));
    }
    allow_files(options.connections as u64 + OTHER_FILES)?;
    let contest = Contest::start(&common)?;
    let tatp = Tatp { subscribers: options.subscribers };
    let mut states = contest.servers().map(|server| tatp.load(server)).collect::<Result<Vec<_>>>()?;
    let mut pairs = Vec::new();
    let mut holds = true;
    for round in 0..common.rounds {
        for ((contender, server), state) in contest.each().zip(&mut states) {
            let mut run = |label: &str| -> Result<(f64, f64)> {
                let plan = options.pace.plan(u64::from(round));
                let terminals = tatp.connect(server, state, &plan)?;
                let one = oltp::measure(server, label, tatp.kinds().len(), terminals, plan)?;
                let (rate, cpu) = (one.run.per_second(), one.cpu_us_per_transaction());
                let findings = tatp.check(server, state, one.run.books)?;
                holds &= finding::print(&format!("{label}: checks, {}", server.name()), &findings);
                Ok((rate, cpu))
            };
            let (alone, cpu_alone) = run("alone")?;
            let before = server.rss()?;
            let begin = std::time::Instant::now();
            let sleepers = sign_in(server, idle)?;
            let connect_us = begin.elapsed().as_secs_f64() * 1e6 / idle.max(1) as f64;
            let bytes_each = server.rss()?.saturating_sub(before) as f64 / idle.max(1) as f64;
            let (beside, cpu_beside) = run("beside idle ones")?;
            wake(sleepers)?;
            eprintln!("{}: {alone:.0} tx/s alone, {beside:.0} beside {idle} idle ones", server.name());
            let cpu_us = [cpu_alone, cpu_beside];
            pairs.push(Pair { contender, alone, beside, cpu_us, bytes_each, connect_us });
        }
    }
    let report = report(&pairs, &common);
    report.publish(common.json.as_deref())?;
    oltp::verdict(holds)?;
    let kept = pairs.iter().filter(|p| p.contender == Contender::Avocet).map(|p| p.beside / p.alone);
    match median(kept) {
        Some(kept) if kept < options.at_least => {
            Err(Error::Check(format!("{kept:.3} of the rate is left, less than {}", options.at_least)))
        }
        _ => Ok(()),
    }
}

fn report(pairs: &[Pair], common: &Common) -> Report {
    let mut report = Report::new("connections", common.rival);
    let mut add = |name: &'static str, unit, figure: fn(&Pair) -> f64| {
        let middle = |who| median(pairs.iter().filter(|p| p.contender == who).map(figure));
        report.add(name, unit, middle(Contender::Avocet), middle(Contender::Rival));
    };
    add("connections.tx_per_s_kept", "share", |p| p.beside / p.alone);
    add("connections.tx_per_s_alone", "tx/s", |p| p.alone);
    add("connections.tx_per_s", "tx/s", |p| p.beside);
    add("connections.server_cpu_us_per_tx_alone", "us", |p| p.cpu_us[0]);
    add("connections.server_cpu_us_per_tx", "us", |p| p.cpu_us[1]);
    add("connections.bytes_per_idle", "B", |p| p.bytes_each);
    add("connections.sign_in_us", "us", |p| p.connect_us);
    report
}

/// Raises this process's limit of open files, which its children inherit.
fn allow_files(wanted: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|now| now >= wanted) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum.map(|most| most.max(wanted)) };
    setrlimit(Resource::Nofile, raised)
        .map_err(|e| Error::Setup(format!("{wanted} connections need as many open files (ulimit -n): {e}")))
}

/// Opens connections that have run a statement.
fn sign_in(server: &Server, count: usize) -> Result<VecDeque<Conn>> {
    let mut sleepers = VecDeque::with_capacity(count);
    for number in 0..count {
        let options = server.options().tcp_connect_timeout(Some(Duration::from_secs(30)));
        let mut conn = Conn::new(options)?;
        conn.query_drop(format!("SELECT {number}"))?;
        sleepers.push_back(conn);
    }
    Ok(sleepers)
}

/// Every idle connection still answers.
fn wake(sleepers: VecDeque<Conn>) -> Result<()> {
    for (number, mut conn) in sleepers.into_iter().enumerate() {
        let answer: Option<usize> = conn.query_first(format!("SELECT {number}"))?;
        if answer != Some(number) {
            return Err(Error::Check(format!("idle connection {number} answered {answer:?}")));
        }
    }
    Ok(())
}
