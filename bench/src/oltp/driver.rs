//! Terminals: a thread each, no think times, running their transactions until told to stop, and keeping books of what was
//! acknowledged. They take one transaction after the other, or those that are due: at a rate, whether or not the ones
//! before are done. A transaction's latency is then counted from the moment when it was due, so that waiting counts, too.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

use crate::error::Error;

/// How a step can fail: `is_retryable` tells whether the whole transaction may simply be run again.
pub trait OpsError: std::fmt::Debug {
    fn is_retryable(&self) -> bool;
}

impl OpsError for Error {
    /// Deadlock, lock wait time-out, and the row that changed since the snapshot.
    fn is_retryable(&self) -> bool {
        matches!(self.errno(), Some(1213 | 1205 | 1020))
    }
}

/// What a client knows to be committed, for the check after the run.
pub trait Books: Default + Send {
    fn add(&mut self, other: Self);
}

/// One client: draws transactions and runs them.
pub trait Terminal {
    type Error: OpsError + Send;
    type Books: Books;

    /// Draws the inputs of the next transaction and returns its kind.
    fn draw(&mut self) -> usize;
    /// Runs what was drawn. After `rollback` it may be asked to do so again.
    fn attempt(&mut self) -> Result<(), Self::Error>;
    fn rollback(&mut self) -> Result<(), Self::Error>;
    fn into_books(self) -> Self::Books;
}

/// What every terminal shares: when to stop, and the count for live progress.
#[derive(Default)]
pub struct Control {
    pub stop: AtomicBool,
    pub done: AtomicU64,
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

    pub fn max_millis(&self) -> f64 {
        self.0.max() as f64 / 1_000.0
    }
}

/// What a run did.
pub struct Run<B> {
    pub elapsed: Duration,
    /// CPU time of the terminals' threads.
    pub cpu: Duration,
    /// By kind, of transactions that were acknowledged.
    pub latency: Vec<Latency>,
    /// How often a transaction was run again after a deadlock or a lock wait time-out.
    pub retries: u64,
    pub books: B,
}

impl<B: Books> Run<B> {
    fn new(kinds: usize) -> Run<B> {
        Run {
            elapsed: Duration::ZERO,
            cpu: Duration::ZERO,
            latency: (0..kinds).map(|_| Latency::default()).collect(),
            retries: 0,
            books: B::default(),
        }
    }

    fn add(&mut self, other: Run<B>) {
        for (mine, others) in self.latency.iter_mut().zip(&other.latency) {
            mine.add(others);
        }
        self.retries += other.retries;
        self.cpu += other.cpu;
        self.books.add(other.books);
    }
}

impl<B> Run<B> {
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
}

/// How long to run, and how long to warm up before.
#[derive(Clone, Copy)]
pub struct Plan {
    pub terminals: usize,
    pub warm_up: Duration,
    pub measure: Duration,
    pub seed: u64,
    /// Transactions that are due in a second, by all terminals; without it each begins the next when it is done.
    pub rate: Option<f64>,
}

/// Moments at which transactions are due.
struct Arrivals {
    first: Instant,
    gap: Duration,
    taken: AtomicU64,
}

impl Arrivals {
    /// The longest that a terminal sleeps without a look at whether it is to stop.
    const LONGEST_SLEEP: Duration = Duration::from_millis(20);

    fn at(rate: f64) -> Arrivals {
        Arrivals { first: Instant::now(), gap: Duration::from_secs_f64(1.0 / rate), taken: AtomicU64::new(0) }
    }

    /// Waits until the next transaction is due; `None` if there is to be no more.
    fn next(&self, control: &Control) -> Option<Instant> {
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        let due = self.first + Duration::from_nanos(self.gap.as_nanos() as u64 * number);
        while !control.stop.load(Ordering::Relaxed) {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(due);
            }
            std::thread::sleep(left.min(Self::LONGEST_SLEEP));
        }
        None
    }
}

/// Has the kernel end this thread's sleeps when they should, not when it is convenient.
fn sleep_exactly() {
    // Where it refuses, latencies are some fifty microseconds longer.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
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

/// CPU time that the thread or the process has used.
pub fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Runs one terminal until `control.stop`. What is done before `measure_from` is warm-up and not counted, but booked.
fn run_one<T: Terminal>(
    mut terminal: T,
    kinds: usize,
    control: &Control,
    measure_from: Instant,
    arrivals: Option<&Arrivals>,
) -> (Run<T::Books>, Result<(), T::Error>) {
    let mut run = Run::new(kinds);
    let mut cpu_before = None;
    let mut outcome = Ok(());
    if arrivals.is_some() {
        sleep_exactly();
    }
    while outcome.is_ok() && !control.stop.load(Ordering::Relaxed) {
        let kind = terminal.draw();
        let begin = match arrivals.map(|arrivals| arrivals.next(control)) {
            None => Instant::now(),
            Some(Some(due)) => due,
            Some(None) => break,
        };
        outcome = finish(&mut terminal, &mut run.retries);
        if begin >= measure_from && outcome.is_ok() {
            cpu_before.get_or_insert_with(|| cpu_time(ClockId::ThreadCPUTime));
            run.latency[kind].record(begin.elapsed());
            control.done.fetch_add(1, Ordering::Relaxed);
        }
    }
    run.cpu = cpu_before.map_or(Duration::ZERO, |before| cpu_time(ClockId::ThreadCPUTime) - before);
    run.books = terminal.into_books();
    (run, outcome)
}

/// Runs what a terminal has drawn until it is done, or failed for good.
fn finish<T: Terminal>(terminal: &mut T, retries: &mut u64) -> Result<(), T::Error> {
    loop {
        match terminal.attempt() {
            Err(e) if e.is_retryable() => {
                *retries += 1;
                terminal.rollback()?;
            }
            other => return other,
        }
    }
}

/// Runs terminals for the planned time; `watch` is called from time to time with the time since the start.
///
/// The books are complete even if terminals failed, which is what a test that kills the server wants; the errors say why.
pub fn run<T>(
    plan: Plan,
    kinds: usize,
    terminals: Vec<T>,
    control: &Control,
    mut watch: impl FnMut(Duration) -> Watch,
) -> (Run<T::Books>, Vec<T::Error>)
where
    T: Terminal + Send,
{
    let measure_from = Instant::now() + plan.warm_up;
    let end = measure_from + plan.measure;
    let arrivals = plan.rate.map(Arrivals::at);
    let arrivals = arrivals.as_ref();
    let mut total = Run::new(kinds);
    let mut errors = Vec::new();
    std::thread::scope(|threads| {
        let running: Vec<_> = terminals
            .into_iter()
            .map(|terminal| {
                let run = move || run_one(terminal, kinds, control, measure_from, arrivals);
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
    (total, errors)
}
