//! TPC-C: `bench/run tpcc`. Loads the database on each contender, runs the terminals in alternating rounds, checks the
//! consistency conditions, and reports throughput, latencies and the server's CPU time per transaction.

pub mod call_sql;
pub mod calls;
pub mod check;
pub mod driver;
pub mod load;
pub mod ops;
pub mod procedures;
pub mod random;
pub mod schema;
pub mod sets;
pub mod sql;
pub mod steps;
pub mod transactions;

use std::path::Path;
use std::time::{Duration, Instant};

use avocet_engine::Compression;
use mysql::OptsBuilder;

use crate::contest::{Contender, Contest};
use crate::error::{Error, Result};
use crate::finding::{self, Finding};
use crate::oltp::{self, Measured, OwnFigure, Workload};
use crate::options::{Common, Oltp, TpccPart, TpccParts};
use crate::progress;
use crate::report::Report;
use crate::rival::Server;
use crate::rival::avocet::Avocet;
use crate::serve::WithProcedures;
use call_sql::{Client, Style};
use calls::Logging;
use driver::{Books, Plan, Run, TpccTerminal};
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

/// Runs the terminals once; any failed terminal fails the run.
pub fn measure(server: &Server, scale: Scale, plan: Plan) -> Result<Measured<Books>> {
    let terminals = driver::terminals(&plan, scale, || SqlOps::connect(options(server)))?;
    oltp::measure(server, "TPC-C", Kind::ALL.len(), terminals, plan)
}

/// The terminals over the protocol.
struct Protocol {
    scale: Scale,
    style: Style,
    /// Those of Avocet call procedures.
    procedures: Option<Logging>,
}

impl Workload for Protocol {
    type Terminal = TpccTerminal<Client>;
    type State = ();

    fn name(&self) -> &str {
        match self.style {
            Style::Rows => "tpcc",
            Style::Sets => "tpcc_sets",
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &Kind::NAMES
    }

    fn connect(&self, server: &Server, (): &(), plan: &Plan) -> Result<Vec<TpccTerminal<Client>>> {
        let procedures = self.procedures.filter(|_| server.name() == "avocet");
        driver::terminals(plan, self.scale, || Client::connect(options(server), self.style, procedures))
    }

    fn check(&self, server: &Server, (): &mut (), _: Books) -> Result<Vec<Finding>> {
        check::conditions(&options(server), &self.scale)
    }

    fn own_figures(&self) -> Vec<OwnFigure<Books>> {
        vec![("new_orders_per_min", "tx/min", |run| {
            run.latency[Kind::NewOrder as usize].count() as f64 / run.elapsed.as_secs_f64() * 60.0
        })]
    }
}

/// `bench/run tpcc`.
pub fn command(oltp: &Oltp, parts: &TpccParts, common: &Common) -> Result<()> {
    if parts.style == Style::Sets && parts.only == Some(TpccPart::Inproc) {
        return Err(Error::Setup("--style sets is of what goes over the protocol".into()));
    }
    let mut report = Report::new("tpcc", common.rival);
    let holds = match &parts.on {
        Some(folder) if parts.only == Some(TpccPart::Inproc) => {
            kept(folder, oltp, parts, common, &mut report)?
        }
        Some(_) => return Err(Error::Setup("--on goes with --only inproc".into())),
        None => contest(oltp, parts, common, &mut report)?,
    };
    report.publish(common.json.as_deref())?;
    oltp::verdict(holds)
}

/// All parts on fresh data; whether the consistency conditions hold.
fn contest(oltp: &Oltp, parts: &TpccParts, common: &Common, report: &mut Report) -> Result<bool> {
    let scale = oltp.scale();
    let procedures = parts.procedures;
    let mut contest = match procedures {
        Some(_) => Contest::start_with(common, || Ok(Box::new(WithProcedures::find()?)))?,
        None => Contest::start(common)?,
    };
    for server in contest.servers() {
        load(server, scale)?;
    }
    let mut holds = true;
    if parts.runs(TpccPart::Protocol) {
        let mut states: Vec<()> = contest.servers().map(|_| ()).collect();
        let protocol = Protocol { scale, style: parts.style, procedures };
        holds &= oltp::rounds(&protocol, &contest, &mut states, &oltp.pace, common, report)?;
    }
    for (contender, server) in contest.each_mut() {
        if contender == Contender::Avocet && parts.runs(TpccPart::Inproc) {
            server.stop()?;
            in_process(server.data(), scale, oltp.plan(u64::from(common.rounds)), parts, report)?;
            server.start_again()?;
            let findings = check::conditions(&options(server), &scale)?;
            holds &= finding::print("consistency conditions after the run in process", &findings);
        }
    }
    Ok(holds)
}

/// The part in process on a folder that is kept, loaded if it is not there yet.
fn kept(folder: &Path, oltp: &Oltp, parts: &TpccParts, common: &Common, report: &mut Report) -> Result<bool> {
    let serve = || Server::start(Box::new(Avocet::find(&common.serve_option)?), folder);
    let scale = oltp.scale();
    if !folder.exists() {
        let mut server = serve()?;
        load(&server, scale)?;
        server.stop()?;
    }
    in_process(&folder.join("data"), scale, oltp.plan(u64::from(common.rounds)), parts, report)?;
    let server = serve()?;
    let findings = check::conditions(&options(&server), &scale)?;
    Ok(finding::print("consistency conditions after the run in process", &findings))
}

/// One worker that calls procedures in this process, on data that no server has open: first logged by rows, then by calls.
fn in_process(data: &Path, scale: Scale, plan: Plan, parts: &TpccParts, report: &mut Report) -> Result<()> {
    let run = |plan, logging| run_in_process(data, scale, plan, logging, parts.log_compression);
    let plan = Plan { terminals: 1, ..plan };
    let rows = run(plan, Logging::Rows)?;
    let calls = run(Plan { seed: plan.seed + 1, ..plan }, Logging::Calls)?;
    let transactions = |m: &procedures::Measured| m.run.transactions().max(1) as f64;
    let cpu = |m: &procedures::Measured| m.cpu.as_secs_f64() * 1e6 / transactions(m);
    let log = |m: &procedures::Measured| m.log_bytes as f64 / transactions(m);
    let written = |m: &procedures::Measured| m.log_written as f64 / transactions(m);
    let mut add = |name, unit, figure| report.add(name, unit, Some(figure), None);
    add("tpcc_inproc.tx_per_s", "tx/s", rows.run.per_second());
    add("tpcc_inproc.worker_cpu_us_per_tx", "us", rows.run.cpu_us_per_transaction());
    add("tpcc_inproc.cpu_us_per_tx", "us", cpu(&rows));
    add("tpcc.log_bytes_per_tx", "B", log(&rows));
    add("tpcc.log_written_per_tx", "B", written(&rows));
    add("tpcc_inproc.commits_per_group", "tx", rows.group_records);
    add("tpcc_inproc.by_call_tx_per_s", "tx/s", calls.run.per_second());
    add("tpcc_inproc.by_call_worker_cpu_us_per_tx", "us", calls.run.cpu_us_per_transaction());
    add("tpcc_inproc.by_call_cpu_us_per_tx", "us", cpu(&calls));
    add("tpcc.by_call_log_bytes_per_tx", "B", log(&calls));
    add("tpcc.by_call_log_written_per_tx", "B", written(&calls));
    println!("\nIn process, logged by rows\n{}", latency_table(std::iter::once(&rows.run)));
    println!("\nIn process, logged by calls\n{}", latency_table(std::iter::once(&calls.run)));
    Ok(())
}

fn run_in_process(
    data: &Path,
    scale: Scale,
    plan: Plan,
    logging: Logging,
    compression: Compression,
) -> Result<procedures::Measured> {
    let engine = procedures::open(data, |options| options.log_compression = compression)?;
    let measured = procedures::measure(&engine, scale, plan, logging)?;
    // With a checkpoint, so that servers which know no procedures can open it.
    engine.shutdown()?;
    Ok(measured)
}

/// Transactions by type with their rate and latencies.
pub fn latency_table<'r>(rounds: impl Iterator<Item = &'r Run>) -> String {
    oltp::latency_table(&Kind::NAMES, rounds)
}
