//! Replays recorded queries on a source and on the Avocet that follows it, and compares answers and times: trying before trusting.
//!
//! ```text
//!  log ─▶ Event ─ by session ─▶ worker ─ decide ─┬─▶ source  ─┐
//!                                                └─▶ Avocet  ─┴─▶ judge ─▶ report
//! ```
//!
//! Statements that read alone run on both sides, in sessions that are set as the recorded ones were; all else is counted. Answers that
//! differ are asked for again at known positions of the source's log, so that writes between the two are not taken for a difference.
#![deny(unsafe_code)]

mod answer;
mod decide;
mod error;
mod judge;
mod log;
mod report;
mod servers;
mod session;
mod side;
mod times;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use mysql::Opts;
use parking_lot::Mutex;

pub use error::{Error, Result};
pub use judge::Rules;
pub use log::{Format, Log};
pub use report::Report;
pub use side::Control;

use log::{Action, Event};
use servers::Servers;
use side::{Place, Which};
use worker::{Shared, Worker};

/// Events that wait for a worker.
const QUEUE: usize = 8;
/// How often who waits looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// What is replayed where, and how.
pub struct Options {
    pub source: Opts,
    pub avocet: Opts,
    /// Whether Avocet follows the source; otherwise both have the same rows by the caller's promise.
    pub waits: bool,
    /// For how long Avocet may take to get to the source's position.
    pub patience: Duration,
    /// How often each statement runs on either side.
    pub runs: u32,
    /// Sessions that are replayed at a time.
    pub threads: usize,
    /// Events of the log.
    pub limit: Option<u64>,
    /// Of the whole replay.
    pub duration: Option<Duration>,
    /// How many times as fast as recorded; `None`: as fast as can be.
    pub speed: Option<f64>,
    pub rules: Rules,
}

/// Replays a log to its end, or until `control` says so. `progress` is told of events now and then.
///
/// # Errors
/// If the servers cannot be compared at all. What ends a replay that has begun is in its report.
pub fn replay(
    log: &mut Log,
    options: &Options,
    control: &Arc<Control>,
    progress: &dyn Fn(&Report),
) -> Result<Report> {
    let begin = Instant::now();
    let source = Place::new(Which::Source, options.source.clone());
    let avocet = Place::new(Which::Avocet, options.avocet.clone());
    let mut report = Report::default();
    report.notes.push(format!("the log is read as: {}", log.format.name()));
    let servers = Servers::meet(source, avocet, options.waits, options.patience, control, &mut report.notes)?;
    let shared = Shared {
        servers,
        control: control.clone(),
        rules: options.rules.clone(),
        runs: options.runs.max(1),
        pairs: MOST_PAIRS.div_ceil(options.threads.max(1)),
        log_has_executions: log.format.is_of_server(),
        report: Mutex::new(report),
    };
    std::thread::scope(|scope| {
        let watched = scope.spawn(|| control.watch(&[&shared.servers.source, &shared.servers.avocet]));
        let mut workers = Vec::new();
        let mut queues = Vec::new();
        for _ in 0..options.threads.max(1) {
            let (queue, events) = sync_channel::<Event>(QUEUE);
            queues.push(queue);
            let shared = &shared;
            workers.push(scope.spawn(move || {
                let mut worker = Worker::new(shared);
                for event in events {
                    if let Err(error) = worker.handle(&event) {
                        shared.cut_short(&error.to_string());
                        shared.control.stop();
                        break;
                    }
                }
            }));
        }
        let read = feed(log, options, &shared, &queues, begin, progress);
        drop(queues);
        for worker in workers {
            if worker.join().is_err() {
                shared.cut_short("a thread of the replay has panicked");
            }
        }
        if let Err(error) = read {
            shared.cut_short(&error.to_string());
        }
        control.finish();
        // It ends with that, and has nothing to lose.
        let _ = watched.join();
    });
    let mut report = shared.report.into_inner();
    report.malformed = log.malformed().clone();
    report.took = begin.elapsed();
    if control.is_stopped() && report.cut_short.is_none() {
        report.cut_short = Some("it was stopped".into());
    }
    Ok(report)
}

/// Pairs of connections that are open at a time.
const MOST_PAIRS: usize = 200;

impl Shared {
    /// The first reason counts.
    fn cut_short(&self, why: &str) {
        self.report.lock().cut_short.get_or_insert_with(|| why.to_owned());
    }
}

/// Hands events to the workers: all of a session to the same one.
fn feed(
    log: &mut Log,
    options: &Options,
    shared: &Shared,
    queues: &[SyncSender<Event>],
    begin: Instant,
    progress: &dyn Fn(&Report),
) -> Result<()> {
    let mut first_at = None;
    let mut shown = Instant::now();
    let mut count = 0;
    while options.limit.is_none_or(|limit| count < limit) {
        if options.duration.is_some_and(|limit| begin.elapsed() >= limit) {
            shared.cut_short("its time was over (--duration)");
            break;
        }
        let Some(event) = log.event()? else { break };
        count += 1;
        {
            let mut report = shared.report.lock();
            report.events = count;
            if shown.elapsed() > Duration::from_millis(500) {
                shown = Instant::now();
                progress(&report);
            }
        }
        // A log that is read while it is written has what this replay asks, too.
        if shared.control.is_own(Which::Source, event.session) && event.session != 0 {
            if matches!(event.action, Action::Statement(_)) {
                shared.report.lock().skip("statements of this replay itself");
            }
            continue;
        }
        if let (Some(speed), Some(at)) = (options.speed, event.at_us) {
            let first = *first_at.get_or_insert(at);
            let due = Duration::from_micros((at - first).max(0) as u64).div_f64(speed);
            while begin.elapsed() < due && !shared.control.is_stopped() {
                std::thread::sleep(LOOK.min(due.saturating_sub(begin.elapsed())));
            }
        }
        let queue = &queues[(event.session % queues.len() as u64) as usize];
        if !send(queue, event, &shared.control) {
            break;
        }
    }
    Ok(())
}

/// False if nobody takes it any more.
fn send(queue: &SyncSender<Event>, mut event: Event, control: &Control) -> bool {
    while !control.is_stopped() {
        match queue.try_send(event) {
            Ok(()) => return true,
            Err(TrySendError::Disconnected(_)) => return false,
            Err(TrySendError::Full(back)) => event = back,
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}
