//! TPC-C: `bench/run tpcc`. Loads the database on each contender, runs the terminals in alternating rounds, checks the
//! consistency conditions, and reports throughput, latencies and the server's CPU time per transaction.

pub mod check;
pub mod driver;
pub mod load;
pub mod ops;
pub mod procedures;
pub mod random;
pub mod schema;
pub mod sql;
pub mod transactions;

use std::path::Path;
use std::time::{Duration, Instant};

use avocet_engine::{Engine, EngineOptions};
use mysql::OptsBuilder;

use crate::contest::{Contender, Contest};
use crate::error::{Error, Result};
use crate::options::{Common, Oltp, TpccPart, TpccParts};
use crate::progress;
use crate::report::{Report, Table, number};
use crate::rival::Server;
use crate::rival::avocet::Avocet;
use driver::{Control, Plan, Run};
use schema::Scale;
use sql::SqlOps;
use transactions::Kind;

/// The name of the database that TPC-C and CH-benCHmark run in.
pub const DATABASE: &str = "tpcc";

/// Connection options with TPC-C's database in use.
pub fn options(server: &Server) -> OptsBuilder {
    server.options().db_name(Some(DATABASE))
}

/// Loads the database with a progress bar.
pub fn load(server: &Server, scale: Scale) -> Result<Duration> {
    let begin = Instant::now();
    let loaded = load::Progress::default();
    progress::rows(&format!("loading {}", server.name()), load::expected_rows(&scale), &loaded.rows, || {
        load::load(&server.options(), DATABASE, scale, 2, &loaded)
    })?;
    Ok(begin.elapsed())
}

/// A run's figures with the CPU time that the server spent on it.
pub struct Measured {
    pub run: Run,
    pub cpu: Duration,
}

impl Measured {
    pub fn cpu_us_per_transaction(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.run.transactions().max(1) as f64
    }
}

/// Runs the terminals once; any failed terminal fails the run.
pub fn measure(server: &Server, scale: Scale, plan: Plan) -> Result<Measured> {
    let control = Control::default();
    let bar = progress::Live::new(&format!("{} TPC-C", server.name()), plan.warm_up + plan.measure);
    let mut cpu_before = None;
    let connect = || SqlOps::connect(options(server));
    let (run, errors) = driver::run(plan, scale, &control, connect, |elapsed| {
        if elapsed >= plan.warm_up && cpu_before.is_none() {
            cpu_before = server.cpu_time().ok();
        }
        bar.show(elapsed, control.done.load(std::sync::atomic::Ordering::Relaxed), plan.warm_up);
        driver::Watch::EndInTime
    })?;
    let cpu = server.cpu_time()?.saturating_sub(cpu_before.unwrap_or_default());
    match errors.into_iter().next() {
        Some(e) => Err(e),
        None => Ok(Measured { run, cpu }),
    }
}

/// `bench/run tpcc`.
pub fn command(oltp: &Oltp, parts: &TpccParts, common: &Common) -> Result<()> {
    let mut report = Report::new("tpcc", common.rival);
    let holds = match &parts.on {
        Some(folder) if parts.only == Some(TpccPart::Inproc) => kept(folder, oltp, common, &mut report)?,
        Some(_) => return Err(Error::Setup("--on goes with --only inproc".into())),
        None => contest(oltp, parts, common, &mut report)?,
    };
    report.publish(common.json.as_deref())?;
    if holds { Ok(()) } else { Err(Error::Check("a consistency condition is broken".into())) }
}

/// All parts on fresh data; whether the consistency conditions hold.
fn contest(oltp: &Oltp, parts: &TpccParts, common: &Common, report: &mut Report) -> Result<bool> {
    let scale = oltp.scale();
    let mut contest = Contest::start(common)?;
    for server in contest.servers() {
        load(server, scale)?;
    }
    let mut holds = true;
    if parts.runs(TpccPart::Protocol) {
        let mut measured: Vec<(Contender, Measured)> = Vec::new();
        for round in 0..common.rounds {
            for (contender, server) in contest.each() {
                let run = measure(server, scale, oltp.plan(u64::from(round)))?;
                eprintln!("round {}: {} {:.0} tx/s", round + 1, server.name(), run.run.per_second());
                measured.push((contender, run));
            }
        }
        figures(report, &measured);
        latencies(&measured);
        for server in contest.servers() {
            let findings = check::conditions(&options(server), &scale)?;
            holds &= check::print(&format!("consistency conditions, {}", server.name()), &findings);
        }
    }
    for (contender, server) in contest.each_mut() {
        if contender == Contender::Avocet && parts.runs(TpccPart::Inproc) {
            server.stop()?;
            in_process(server.data(), scale, oltp.plan(u64::from(common.rounds)), report)?;
            server.start_again()?;
            let findings = check::conditions(&options(server), &scale)?;
            holds &= check::print("consistency conditions after the run in process", &findings);
        }
    }
    Ok(holds)
}

/// The part in process on a folder that is kept, loaded if it is not there yet.
fn kept(folder: &Path, oltp: &Oltp, common: &Common, report: &mut Report) -> Result<bool> {
    let serve = || Server::start(Box::new(Avocet::find(&common.serve_option)?), folder);
    let scale = oltp.scale();
    if !folder.exists() {
        let mut server = serve()?;
        load(&server, scale)?;
        server.stop()?;
    }
    in_process(&folder.join("data"), scale, oltp.plan(u64::from(common.rounds)), report)?;
    let server = serve()?;
    let findings = check::conditions(&options(&server), &scale)?;
    Ok(check::print("consistency conditions after the run in process", &findings))
}

/// One worker on the engine's API, in this process, on data that no server has open.
fn in_process(data: &Path, scale: Scale, plan: Plan, report: &mut Report) -> Result<()> {
    let engine = Engine::open(EngineOptions::new(data))?;
    let measured = procedures::measure(&engine, scale, Plan { terminals: 1, ..plan })?;
    engine.shutdown()?;
    let transactions = measured.run.transactions().max(1) as f64;
    let mut add = |name, unit, figure| report.add(name, unit, Some(figure), None);
    add("tpcc_inproc.tx_per_s", "tx/s", measured.run.per_second());
    add("tpcc_inproc.worker_cpu_us_per_tx", "us", measured.run.cpu_us_per_transaction());
    add("tpcc_inproc.cpu_us_per_tx", "us", measured.cpu.as_secs_f64() * 1e6 / transactions);
    add("tpcc.log_bytes_per_tx", "B", measured.log_bytes as f64 / transactions);
    add("tpcc_inproc.commits_per_group", "tx", measured.group_records);
    println!("\nIn process\n{}", latency_table(std::iter::once(&measured.run)));
    Ok(())
}

fn figures(report: &mut Report, measured: &[(Contender, Measured)]) {
    let median = |who: Contender, figure: fn(&Measured) -> f64| {
        crate::contest::median(measured.iter().filter(|(c, _)| *c == who).map(|(_, m)| figure(m)))
    };
    let mut add = |name, unit, figure: fn(&Measured) -> f64| {
        report.add(name, unit, median(Contender::Avocet, figure), median(Contender::Rival, figure));
    };
    add("tpcc.tx_per_s", "tx/s", |m| m.run.per_second());
    add("tpcc.new_orders_per_min", "tx/min", |m| m.run.new_orders_per_minute());
    add("tpcc.server_cpu_us_per_tx", "us", Measured::cpu_us_per_transaction);
    add("tpcc.new_order_p50_ms", "ms", |m| m.run.latency[Kind::NewOrder as usize].millis(0.5));
    add("tpcc.new_order_p99_ms", "ms", |m| m.run.latency[Kind::NewOrder as usize].millis(0.99));
}

/// The latency table over all rounds.
fn latencies(measured: &[(Contender, Measured)]) {
    for who in [Contender::Avocet, Contender::Rival] {
        let mut rounds = measured.iter().filter(|(c, _)| *c == who).map(|(_, m)| &m.run).peekable();
        if rounds.peek().is_some() {
            println!("\n{who:?}\n{}", latency_table(rounds));
        }
    }
}

/// Transactions by type with their rate and latencies.
pub fn latency_table<'r>(rounds: impl Iterator<Item = &'r Run>) -> String {
    let mut latency: [driver::Latency; 5] = Default::default();
    let (mut seconds, mut retries) = (0.0, 0);
    for run in rounds {
        latency.iter_mut().zip(&run.latency).for_each(|(all, one)| all.add(one));
        seconds += run.elapsed.as_secs_f64();
        retries += run.retries;
    }
    let mut table = Table::new(&["transaction", "count", "tx/s", "p50 ms", "p99 ms"]);
    for kind in Kind::ALL {
        let l = &latency[kind as usize];
        table.row(vec![
            kind.name().into(),
            l.count().to_string(),
            number(Some(l.count() as f64 / seconds)),
            number(Some(l.millis(0.5))),
            number(Some(l.millis(0.99))),
        ]);
    }
    format!("{}\nretries after deadlocks: {retries}", table.text())
}
