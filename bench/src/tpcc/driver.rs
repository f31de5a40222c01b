//! Terminals: a thread each, no think times, running the mix until told to stop, and keeping books of what was acknowledged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::ops::{Cents, OpsError, OrderKey, TpccOps};
use super::schema::Scale;
use super::transactions::{Inputs, Kind, Outcome};
use crate::value::now_micros;

/// What every terminal shares: when to stop, and the count for live progress.
#[derive(Default)]
pub struct Control {
    pub stop: AtomicBool,
    pub done: AtomicU64,
}

/// What the client knows to be committed. A server that was killed must still have all of it.
#[derive(Default, Clone, Serialize, Deserialize)]
pub struct Books {
    pub orders: Vec<OrderKey>,
    pub delivered: Vec<OrderKey>,
    pub payments: u64,
    pub paid: Cents,
}

impl Books {
    pub fn add(&mut self, other: Books) {
        self.orders.extend(other.orders);
        self.delivered.extend(other.delivered);
        self.payments += other.payments;
        self.paid += other.paid;
    }

    fn record(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Ordered(key) => self.orders.push(key),
            Outcome::Paid { amount, .. } => {
                self.payments += 1;
                self.paid += amount;
            }
            Outcome::Delivered(keys) => self.delivered.extend(keys),
            Outcome::RolledBack | Outcome::Read => {}
        }
    }
}

/// Latencies of one kind of transaction, in microseconds.
pub struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Latency {
        Latency(Histogram::new_with_bounds(1, 600_000_000, 3).expect("the bounds are valid"))
    }
}

impl Latency {
    pub fn record(&mut self, took: Duration) {
        self.0.saturating_record(took.as_micros() as u64);
    }

    pub fn add(&mut self, other: &Latency) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    pub fn millis(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1_000.0
    }
}

/// What a run did.
#[derive(Default)]
pub struct Run {
    pub elapsed: Duration,
    /// CPU time of the terminals' threads.
    pub cpu: Duration,
    /// By `Kind`, of transactions that were acknowledged.
    pub latency: [Latency; 5],
    /// How often a transaction was run again after a deadlock or a lock wait time-out.
    pub retries: u64,
    pub books: Books,
}

impl Run {
    pub fn transactions(&self) -> u64 {
        self.latency.iter().map(Latency::count).sum()
    }

    pub fn per_second(&self) -> f64 {
        self.transactions() as f64 / self.elapsed.as_secs_f64()
    }

    /// CPU time of the terminals themselves for one transaction.
    pub fn cpu_us_per_transaction(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.transactions().max(1) as f64
    }

    pub fn new_orders_per_minute(&self) -> f64 {
        self.latency[Kind::NewOrder as usize].count() as f64 / self.elapsed.as_secs_f64() * 60.0
    }

    fn add(&mut self, other: Run) {
        for (mine, others) in self.latency.iter_mut().zip(&other.latency) {
            mine.add(others);
        }
        self.retries += other.retries;
        self.cpu += other.cpu;
        self.books.add(other.books);
    }
}

/// Runs one terminal until `control.stop`. What is done before `measure_from` is warm-up and not counted, but booked.
pub fn terminal<O: TpccOps>(
    ops: &mut O,
    mut inputs: Inputs,
    control: &Control,
    measure_from: Instant,
) -> (Run, Result<(), O::Error>) {
    let mut run = Run::default();
    let mut cpu_before = None;
    while !control.stop.load(Ordering::Relaxed) {
        let (kind, transaction) = inputs.draw(now_micros());
        let begin = Instant::now();
        let outcome = loop {
            match transaction.run(ops) {
                Err(e) if e.is_retryable() => {
                    run.retries += 1;
                    if let Err(e) = ops.rollback() {
                        return (run, Err(e));
                    }
                }
                other => break other,
            }
        };
        match outcome {
            Ok(outcome) => run.books.record(outcome),
            Err(e) => return (run, Err(e)),
        }
        if begin >= measure_from {
            cpu_before.get_or_insert_with(|| cpu_time(ClockId::ThreadCPUTime));
            run.latency[kind as usize].record(begin.elapsed());
            control.done.fetch_add(1, Ordering::Relaxed);
        }
    }
    run.cpu = cpu_before.map_or(Duration::ZERO, |before| cpu_time(ClockId::ThreadCPUTime) - before);
    (run, Ok(()))
}

/// CPU time that the thread or the process has used.
pub fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How long to run, and how long to warm up before.
#[derive(Clone, Copy)]
pub struct Plan {
    pub terminals: usize,
    pub warm_up: Duration,
    pub measure: Duration,
    pub seed: u64,
}

/// What the watcher of a run wants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// The run ends when its time is over.
    EndInTime,
    /// It goes on past its time.
    GoOn,
    /// It ends now.
    EndNow,
}

/// Runs terminals, one per `connect`, for the planned time; `watch` is called from time to time with the time since the start.
///
/// The books are complete even if terminals failed, which is what a test that kills the server wants; `errors` has why.
pub fn run<O, E>(
    plan: Plan,
    scale: Scale,
    control: &Control,
    connect: impl Fn() -> Result<O, E> + Sync,
    mut watch: impl FnMut(Duration) -> Watch,
) -> Result<(Run, Vec<O::Error>), E>
where
    O: TpccOps + Send,
    O::Error: Send,
    E: Send,
{
    let mut terminals = Vec::new();
    for number in 0..plan.terminals {
        let home = number as i64 % scale.warehouses + 1;
        terminals.push((connect()?, Inputs::new(scale, home, plan.seed + number as u64)));
    }
    let measure_from = Instant::now() + plan.warm_up;
    let end = measure_from + plan.measure;
    let mut total = Run::default();
    let mut errors = Vec::new();
    std::thread::scope(|threads| {
        let running: Vec<_> = terminals
            .into_iter()
            .map(|(mut ops, inputs)| {
                let run = move || terminal(&mut ops, inputs, control, measure_from);
                let named = std::thread::Builder::new().name("terminal".into());
                named.spawn_scoped(threads, run).expect("the system can start a thread")
            })
            .collect();
        let begin = Instant::now();
        while !running.iter().all(|t| t.is_finished()) {
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            std::thread::sleep(Duration::from_millis(20).min(left));
            match watch(begin.elapsed()) {
                Watch::EndNow => break,
                Watch::EndInTime if Instant::now() >= end => break,
                Watch::EndInTime | Watch::GoOn => {}
            }
        }
        control.stop.store(true, Ordering::Relaxed);
        total.elapsed = Instant::now().saturating_duration_since(measure_from);
        for thread in running {
            let (run, outcome) = thread.join().expect("a terminal does not panic");
            total.add(run);
            errors.extend(outcome.err());
        }
    });
    Ok((total, errors))
}
