//! How fast background work goes: checkpoints, freezing and compaction share a rate, in bytes written for a second and in
//! processor time, so that commits do not wait for bursts of theirs.
//!
//! ```text
//!   work (an image, a step of a block) ──▶ its cost: the longer of bytes / rate and processor time / share
//!                                          × (1 − urgency)  ──▶ owed; paid by a pause before the next piece
//! ```
//!
//! *Urgency* keeps the pace from being too slow for the load. It is 0 while the log is no longer than what begins a
//! checkpoint, and grows with it to 1 (no pauses) at twice that; it is 1 when the tables' memory is over its target, or when
//! somebody waits for the work to end. So the log is as bounded as it would be without a pace: from twice its target on, the
//! disk alone decides.
//!
//! Whoever pauses holds no latch and not the DDL lock; the checkpoint's own lock only other checkpoints want.
//!
//! Invariants:
//! 1. Over any span of time, paced work at urgency 0 writes at most rate × span, and a burst.
//! 2. Nobody pauses when urgency is 1.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use avocet_base::env::Clock;
use avocet_base::thread::cpu_time;

use crate::signals::Signals;

/// The share of one processor that background work takes at most, while it is not urgent.
const CPU_SHARE: f64 = 0.25;
/// What may be spent at once after idle times.
const BURST: Duration = Duration::from_millis(20);
/// Debts below this are left to grow: a pause costs two switches of threads.
const LEAST_PAUSE: Duration = Duration::from_millis(1);
/// The longest that a pause lasts before urgency is looked at again.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// What background work did.
#[derive(Default)]
pub(crate) struct PaceCounters {
    written: AtomicU64,
    paused_us: AtomicU64,
}

/// What background work did since the engine was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundStats {
    /// Bytes that checkpoints, freezing and compaction wrote.
    pub written_bytes: u64,
    /// How long they paused.
    pub paused_us: u64,
}

/// What was done, and by when it is paid for.
#[derive(Default)]
struct Meter {
    /// By the monotonic clock.
    paid_at: Duration,
}

impl Meter {
    /// Notes work that ended `now`; how long to pause for it.
    fn charge(&mut self, now: Duration, cost: Duration) -> Duration {
        self.paid_at = self.paid_at.max(now.saturating_sub(BURST)) + cost;
        self.paid_at.saturating_sub(now)
    }

    fn owed(&self, now: Duration) -> Duration {
        self.paid_at.saturating_sub(now)
    }

    fn forgive(&mut self) {
        self.paid_at = Duration::ZERO;
    }
}

/// The time that a piece of work should take.
fn cost(bytes: u64, cpu: Duration, rate: u64, urgency: f64) -> Duration {
    let writing = bytes as f64 / rate as f64;
    let computing = cpu.as_secs_f64() / CPU_SHARE;
    Duration::from_secs_f64(writing.max(computing) * (1.0 - urgency))
}

/// How urgent it is that a checkpoint ends when the log is so long.
pub(crate) fn log_urgency(log: u64, checkpoint_at: u64) -> f64 {
    let over = log as f64 / checkpoint_at.max(1) as f64 - 1.0;
    over.clamp(0.0, 1.0)
}

/// The pace of one thread's background work; [`Pacer::none`] for work that somebody waits for.
#[derive(Default)]
pub(crate) struct Pacer<'e> {
    counters: Option<&'e PaceCounters>,
    paced: Option<Paced<'e>>,
}

/// What a pace depends on.
pub(crate) struct Pacing<'e> {
    pub counters: &'e PaceCounters,
    /// 0 for as much as the work can.
    pub bytes_per_second: u64,
    pub clock: &'e dyn Clock,
    pub signals: &'e Signals,
    /// 0 while there is time, 1 when there is none.
    pub urgency: Box<dyn Fn() -> f64 + 'e>,
}

struct Paced<'e> {
    pacing: Pacing<'e>,
    meter: Meter,
    /// The thread's processor time when it was last charged for.
    cpu: Duration,
}

impl<'e> Pacer<'e> {
    pub fn none() -> Self {
        Self::default()
    }

    /// For the calling thread, which must stay the one that works.
    pub fn background(pacing: Pacing<'e>) -> Self {
        let counters = Some(pacing.counters);
        let paced =
            (pacing.bytes_per_second > 0).then(|| Paced { pacing, meter: Meter::default(), cpu: cpu_time() });
        Self { counters, paced }
    }

    /// Notes work that is done, and so many bytes that it wrote. It is paid for by the next [`Self::pause`].
    pub fn charge(&mut self, bytes: u64) {
        if let Some(counters) = self.counters {
            counters.written.fetch_add(bytes, Relaxed);
        }
        if let Some(paced) = &mut self.paced {
            paced.charge(bytes);
        }
    }

    /// Waits until what was charged is paid for.
    pub fn pause(&mut self) {
        if let Some(paced) = &mut self.paced {
            paced.pause();
        }
    }
}

impl Paced<'_> {
    fn now(&self) -> Duration {
        self.pacing.clock.monotonic()
    }

    fn charge(&mut self, bytes: u64) {
        let cpu = cpu_time();
        let used = cpu.saturating_sub(std::mem::replace(&mut self.cpu, cpu));
        let cost = cost(bytes, used, self.pacing.bytes_per_second, (self.pacing.urgency)());
        let now = self.now();
        self.meter.charge(now, cost);
    }

    fn pause(&mut self) {
        let began = self.now();
        if self.meter.owed(began) < LEAST_PAUSE {
            return;
        }
        loop {
            if (self.pacing.urgency)() >= 1.0 {
                self.meter.forgive();
                break;
            }
            let owed = self.meter.owed(self.now());
            if owed.is_zero() {
                break;
            }
            let signals = self.pacing.signals;
            let mut ending = signals.ending.lock();
            if !*ending {
                signals.wake.wait_for(&mut ending, owed.min(LONGEST_PAUSE));
            }
        }
        let paused = self.now().saturating_sub(began);
        self.pacing.counters.paused_us.fetch_add(paused.as_micros() as u64, Relaxed);
    }
}

impl PaceCounters {
    pub fn stats(&self) -> BackgroundStats {
        BackgroundStats { written_bytes: self.written.load(Relaxed), paused_us: self.paused_us.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests;
