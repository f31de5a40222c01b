//! What the transactional workloads (TPC-C, TATP, YCSB, SmallBank) have in common: terminals are run on each contender in
//! alternating rounds, the answers are checked after each, and rate, latencies and the server's CPU time are reported.
//!
//! Invariant: a round whose check fails still counts in the table, but fails the command.

pub mod driver;

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::contest::{Contender, Contest, median};
use crate::error::{Error, Result};
use crate::finding::{self, Finding};
use crate::options::{Common, Pace};
use crate::progress;
use crate::report::{Report, Table, number};
use crate::rival::Server;
use driver::{Control, Latency, Plan, Run, Terminal, Watch};

/// A figure that only one workload has: name, unit, and how it follows from a run.
pub type OwnFigure<B> = (&'static str, &'static str, fn(&Run<B>) -> f64);

/// The books of a workload's terminals.
pub type BooksOf<W> = <<W as Workload>::Terminal as Terminal>::Books;

/// A workload that runs over the MySQL protocol, on data that are loaded already.
pub trait Workload: Sized {
    type Terminal: Terminal<Error = Error> + Send;
    /// What is known of one contender's data from round to round.
    type State;

    /// What its figures' names begin with.
    fn name(&self) -> &str;
    /// The kinds of transactions; `Terminal::draw` returns places in this list.
    fn kinds(&self) -> &'static [&'static str];
    /// One terminal for each of the plan's.
    fn connect(&self, server: &Server, state: &Self::State, plan: &Plan) -> Result<Vec<Self::Terminal>>;
    /// Looks for what the terminals were told to be committed, and notes it for the next round.
    fn check(&self, server: &Server, state: &mut Self::State, books: BooksOf<Self>) -> Result<Vec<Finding>>;
    /// What is reported beside rate, CPU time and latencies.
    fn own_figures(&self) -> Vec<OwnFigure<BooksOf<Self>>> {
        Vec::new()
    }
}

/// A run's figures with the CPU time that the server spent on it.
pub struct Measured<B> {
    pub run: Run<B>,
    pub cpu: Duration,
}

impl<B> Measured<B> {
    pub fn cpu_us_per_transaction(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.run.transactions().max(1) as f64
    }
}

/// Runs terminals on a server once; any failed terminal fails the run.
pub fn measure<T: Terminal<Error = Error> + Send>(
    server: &Server,
    label: &str,
    kinds: usize,
    terminals: Vec<T>,
    plan: Plan,
) -> Result<Measured<T::Books>> {
    let control = Control::default();
    let bar = progress::Live::new(&format!("{} {label}", server.name()), plan.warm_up + plan.measure);
    let mut cpu_before = None;
    let (run, errors) = driver::run(plan, kinds, terminals, &control, |elapsed| {
        if elapsed >= plan.warm_up && cpu_before.is_none() {
            cpu_before = Some(server.cpu_time());
        }
        bar.show(elapsed, control.done.load(Ordering::Relaxed), plan.warm_up);
        Watch::EndInTime
    });
    if let Some(error) = errors.into_iter().next() {
        return Err(error);
    }
    let Some(cpu_before) = cpu_before else {
        return Err(Error::Check("the run ended before its warm-up did".into()));
    };
    let cpu = server.cpu_time()?.saturating_sub(cpu_before?);
    Ok(Measured { run, cpu })
}

/// Runs a workload on every contender, `states` in the contest's order; whether all checks hold.
pub fn rounds<W: Workload>(
    workload: &W,
    contest: &Contest,
    states: &mut [W::State],
    pace: &Pace,
    common: &Common,
    report: &mut Report,
) -> Result<bool> {
    let (name, kinds) = (workload.name(), workload.kinds());
    let mut measured = Vec::new();
    let mut holds = true;
    for round in 0..common.rounds {
        for ((contender, server), state) in contest.each().zip(&mut *states) {
            let plan = pace.plan(u64::from(round));
            let terminals = workload.connect(server, state, &plan)?;
            let mut one = measure(server, name, kinds.len(), terminals, plan)?;
            eprintln!("{name}, round {}: {} {:.0} tx/s", round + 1, server.name(), one.run.per_second());
            let findings = workload.check(server, state, std::mem::take(&mut one.run.books))?;
            holds &= finding::print(&format!("{name}: checks, {}", server.name()), &findings);
            measured.push((contender, one));
        }
    }
    figures(report, name, kinds, &measured);
    for (figure, unit, value) in workload.own_figures() {
        add(report, format!("{name}.{figure}"), unit, &measured, |m| value(&m.run));
    }
    for who in [Contender::Avocet, Contender::Rival] {
        let mut runs = of(&measured, who).map(|m| &m.run).peekable();
        if runs.peek().is_some() {
            println!("\n{name}, {who:?}\n{}", latency_table(kinds, runs));
        }
    }
    Ok(holds)
}

fn of<B>(measured: &[(Contender, Measured<B>)], who: Contender) -> impl Iterator<Item = &Measured<B>> {
    measured.iter().filter(move |(contender, _)| *contender == who).map(|(_, m)| m)
}

/// Adds a figure: the medians over the rounds.
fn add<B>(
    report: &mut Report,
    name: String,
    unit: &'static str,
    measured: &[(Contender, Measured<B>)],
    value: impl Fn(&Measured<B>) -> f64,
) {
    let middle = |who| median(of(measured, who).map(&value));
    report.add(name, unit, middle(Contender::Avocet), middle(Contender::Rival));
}

/// The rate, the server's CPU time, and the latencies of every kind that ran.
fn figures<B>(report: &mut Report, name: &str, kinds: &[&str], measured: &[(Contender, Measured<B>)]) {
    add(report, format!("{name}.tx_per_s"), "tx/s", measured, |m| m.run.per_second());
    add(report, format!("{name}.server_cpu_us_per_tx"), "us", measured, Measured::cpu_us_per_transaction);
    for (kind, what) in kinds.iter().enumerate() {
        if measured.iter().all(|(_, m)| m.run.latency[kind].count() == 0) {
            continue;
        }
        let what = what.to_ascii_lowercase().replace('-', "_");
        for (quantile, percent) in [(0.5, 50), (0.99, 99)] {
            let figure = format!("{name}.{what}_p{percent}_ms");
            add(report, figure, "ms", measured, |m| m.run.latency[kind].millis(quantile));
        }
    }
}

/// Transactions by kind with their rate and latencies.
pub fn latency_table<'r, B: 'r>(kinds: &[&str], runs: impl Iterator<Item = &'r Run<B>>) -> String {
    let mut latency: Vec<Latency> = kinds.iter().map(|_| Latency::default()).collect();
    let (mut seconds, mut retries) = (0.0, 0);
    for run in runs {
        latency.iter_mut().zip(&run.latency).for_each(|(all, one)| all.add(one));
        seconds += run.elapsed.as_secs_f64();
        retries += run.retries;
    }
    let mut table = Table::new(&["transaction", "count", "tx/s", "p50 ms", "p99 ms"]);
    for (kind, l) in kinds.iter().zip(&latency).filter(|(_, l)| l.count() > 0) {
        table.row(vec![
            (*kind).into(),
            l.count().to_string(),
            number(Some(l.count() as f64 / seconds)),
            number(Some(l.millis(0.5))),
            number(Some(l.millis(0.99))),
        ]);
    }
    format!("{}\nretries after deadlocks: {retries}", table.text())
}

/// Fails if the checks of a workload did not hold.
pub fn verdict(holds: bool) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Check("a check of the answers failed".into())) }
}
