//! CH-benCHmark: `bench/run ch`. TPC-C's terminals run alone, then beside streams of 22 analytical queries on the same data:
//! what is left of the transaction rate, how long each query takes, and how fresh its answer is.

pub mod queries;
pub mod schema;
pub mod streams;

use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;

use crate::contest::{Contender, Contest, geomean, median};
use crate::error::{Error, Result};
use crate::finding;
use crate::options::{Common, Oltp};
use crate::progress;
use crate::report::{Report, Table, number};
use crate::rival::Server;
use crate::tpcc;
use crate::tpcc::driver::{Control, Plan, Run, Watch};
use crate::tpcc::schema::Scale;
use crate::tpcc::sql::SqlOps;
use crate::tpcc::transactions::Kind;
use queries::QUERIES;
use streams::{Answers, Load, Shared};

#[derive(Args, Clone)]
pub struct Options {
    #[command(flatten)]
    pub oltp: Oltp,
    /// Analytical streams
    #[arg(long, default_value_t = 1)]
    pub streams: usize,
    /// Instead of the 22 queries, count the order lines once in this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub count_every: Option<f64>,
    /// Give up on queries that have not run once after this many seconds
    #[arg(long, default_value_t = 300.0)]
    pub at_most: f64,
    #[command(flatten)]
    pub common: Common,
}

impl Options {
    fn load(&self) -> Load {
        match self.count_every {
            Some(seconds) => Load::Paced("SELECT COUNT(*) FROM order_line", Duration::from_secs_f64(seconds)),
            None => Load::Queries(&QUERIES),
        }
    }
}

/// Loads all twelve tables.
pub fn load(server: &Server, scale: Scale) -> Result<()> {
    tpcc::load(server, scale)?;
    schema::load(tpcc::options(server))
}

/// Terminals and streams side by side: at least for the planned time, and until each stream has run every query once.
pub fn mixed(
    server: &Server,
    scale: Scale,
    plan: Plan,
    load: Load,
    streams: usize,
    at_most: Duration,
) -> Result<(Run, Answers)> {
    let (control, shared) = (Control::default(), Shared::default());
    let bar = progress::Live::new(&format!("{} TPC-C + queries", server.name()), plan.warm_up + plan.measure);
    let options = || tpcc::options(server);
    // The probe's commits are few beside 22 queries, but would outweigh a count a second.
    let probes = matches!(load, Load::Queries(_));
    std::thread::scope(|threads| {
        let probe = threads.spawn(|| if probes { streams::probe(options(), &shared) } else { Ok(()) });
        let shared = &shared;
        let running: Vec<_> = (0..streams)
            .map(|s| threads.spawn(move || streams::stream(options(), load, plan.seed + s as u64, shared)))
            .collect();
        let result = tpcc::driver::run(
            plan,
            scale,
            &control,
            || SqlOps::connect(options()),
            |elapsed| {
                let done = control.done.load(Ordering::Relaxed);
                let answered = shared.answered.load(Ordering::Relaxed);
                let measured = elapsed.saturating_sub(plan.warm_up).as_secs_f64().max(0.1);
                bar.message(
                    elapsed,
                    format!("{:.0} tx/s, {answered} queries answered", done as f64 / measured),
                );
                let all_ran = shared.rounds.load(Ordering::Relaxed) >= streams as u64;
                if running.iter().any(|stream| stream.is_finished()) || elapsed > at_most {
                    Watch::EndNow
                } else if all_ran {
                    Watch::EndInTime
                } else {
                    Watch::GoOn
                }
            },
        );
        shared.stop.store(true, Ordering::Relaxed);
        probe.join().expect("the probe does not panic")?;
        let mut answers = Answers::new(load.queries().len());
        for stream in running {
            answers.add(stream.join().expect("a stream does not panic")?);
        }
        let (run, errors) = result?;
        match errors.into_iter().next() {
            Some(e) => Err(e),
            None => Ok((run, answers)),
        }
    })
}

/// What one contender did.
struct Measured {
    contender: Contender,
    alone: Run,
    beside: Run,
    answers: Answers,
}

impl Measured {
    fn kept(&self) -> f64 {
        self.beside.per_second() / self.alone.per_second()
    }

    /// The median of each query that has run.
    fn medians(&self) -> Vec<Option<f64>> {
        self.answers.seconds.iter().map(|runs| median(runs.iter().copied())).collect()
    }
}

/// `bench/run ch`.
pub fn command(options: &Options) -> Result<()> {
    let scale = options.oltp.scale();
    let contest = Contest::start(&options.common)?;
    for server in contest.servers() {
        load(server, scale)?;
    }
    let at_most = Duration::from_secs_f64(options.at_most);
    let mut measured: Vec<Measured> = Vec::new();
    for round in 0..options.common.rounds {
        for (contender, server) in contest.each() {
            let plan = options.oltp.plan(u64::from(round));
            let alone = tpcc::measure(server, scale, plan)?.run;
            let plan = Plan { seed: plan.seed + 500, ..plan };
            let (beside, answers) = mixed(server, scale, plan, options.load(), options.streams, at_most)?;
            let m = Measured { contender, alone, beside, answers };
            let (kept, of) = (m.kept(), m.alone.per_second());
            eprintln!("round {}: {} keeps {kept:.2} of {of:.0} tx/s", round + 1, server.name());
            measured.push(m);
        }
    }
    for server in contest.servers() {
        let findings = tpcc::check::conditions(&tpcc::options(server), &scale)?;
        if !finding::print(&format!("consistency conditions, {}", server.name()), &findings) {
            return Err(Error::Check("a consistency condition is broken".into()));
        }
    }
    report(options, &measured)
}

fn report(options: &Options, measured: &[Measured]) -> Result<()> {
    let of = |who: Contender| measured.iter().filter(move |m| m.contender == who);
    let middle = |who, figure: &dyn Fn(&Measured) -> Option<f64>| median(of(who).filter_map(figure));
    let mut report = Report::new("ch", options.common.rival);
    let mut add = |name, unit, figure: &dyn Fn(&Measured) -> Option<f64>| {
        report.add(name, unit, middle(Contender::Avocet, figure), middle(Contender::Rival, figure));
    };
    let geomean = |m: &Measured| geomean(&m.medians().into_iter().flatten().collect::<Vec<_>>());
    let [kept, seconds] = match options.count_every {
        None => ["ch.tx_per_s_kept", "ch.geomean_s"],
        Some(_) => ["count.tx_per_s_kept", "count.s"],
    };
    add(kept, "share", &|m| Some(m.kept()));
    add(seconds, "s", &geomean);
    add("ch.queries_run", "queries", &|m| Some(m.medians().iter().flatten().count() as f64));
    add("ch.tx_per_s", "tx/s", &|m| Some(m.beside.per_second()));
    add("ch.tx_per_s_alone", "tx/s", &|m| Some(m.alone.per_second()));
    let new_order = |run: &Run, share| Some(run.latency[Kind::NewOrder as usize].millis(share));
    add("ch.new_order_p50_ms", "ms", &|m| new_order(&m.beside, 0.5));
    add("ch.new_order_p50_ms_alone", "ms", &|m| new_order(&m.alone, 0.5));
    add("ch.new_order_p99_ms", "ms", &|m| new_order(&m.beside, 0.99));
    add("ch.new_order_p99_ms_alone", "ms", &|m| new_order(&m.alone, 0.99));
    add("ch.freshness_p50_ms", "ms", &|m| Some(m.answers.age.millis(0.5)));
    add("ch.freshness_p99_ms", "ms", &|m| Some(m.answers.age.millis(0.99)));
    add("ch.stale_answers", "queries", &|m| Some(m.answers.stale as f64));
    println!("\n{}", query_table(options.load(), measured, options.common.rival.name()));
    report.publish(options.common.json.as_deref())?;
    let stale: u64 = of(Contender::Avocet).map(|m| m.answers.stale).sum();
    if stale == 0 { Ok(()) } else { Err(Error::Check(format!("{stale} answers lacked acknowledged rows"))) }
}

fn query_table(load: Load, measured: &[Measured], rival: &str) -> String {
    let mut table = Table::new(&["query", "avocet s", &format!("{rival} s"), "ratio"]);
    for query in 0..load.queries().len() {
        let time = |who| {
            let runs = measured.iter().filter(|m| m.contender == who).flat_map(|m| &m.answers.seconds[query]);
            median(runs.copied())
        };
        let (avocet, rival) = (time(Contender::Avocet), time(Contender::Rival));
        let ratio = avocet.zip(rival).map(|(a, r)| a / r);
        table.row(vec![format!("Q{}", query + 1), number(avocet), number(rival), number(ratio)]);
    }
    table.text()
}
