//! What a process has in memory beside what its budget counts: code, stacks, plans, the log's buffers, batches on their way,
//! and what the allocator has not given back yet.
//!
//! It is the resident set less what is counted, of which the last seconds are kept. What it was at least in all of them is
//! taken from what tables may have: freeing some of theirs makes the rest larger at first, and must not make more of them go.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use avocet_base::process::resident_bytes;
use parking_lot::Mutex;

/// So many looks are kept, one for each second: longer than freed memory stays with the allocator.
const KEPT: usize = 4;
const KEPT_FOR: Duration = Duration::from_secs(1);

pub(super) struct Process {
    looks: Mutex<Looks>,
    least: AtomicUsize,
    rest: AtomicUsize,
}

/// The least of each second, in a ring.
struct Looks {
    seconds: [usize; KEPT],
    at: usize,
    since: Instant,
}

impl Default for Process {
    fn default() -> Self {
        let looks = Looks { seconds: [usize::MAX; KEPT], at: 0, since: Instant::now() };
        Self { looks: Mutex::new(looks), least: AtomicUsize::new(0), rest: AtomicUsize::new(0) }
    }
}

impl Looks {
    fn add(&mut self, rest: usize, now: Instant) {
        if now.saturating_duration_since(self.since) >= KEPT_FOR {
            self.since = now;
            self.at = (self.at + 1) % KEPT;
            self.seconds[self.at] = rest;
        }
        let second = &mut self.seconds[self.at];
        *second = (*second).min(rest);
    }

    fn least(&self) -> usize {
        self.seconds.iter().copied().min().unwrap_or(0)
    }
}

impl Process {
    /// Looks what there is beside `counted` bytes.
    pub fn look(&self, counted: usize) {
        // Without a /proc all is taken to be counted.
        let Some(resident) = resident_bytes() else { return };
        self.note(resident.saturating_sub(counted));
    }

    pub(super) fn note(&self, rest: usize) {
        let mut looks = self.looks.lock();
        looks.add(rest, Instant::now());
        self.least.store(looks.least(), Relaxed);
        self.rest.store(rest.max(looks.least()), Relaxed);
    }

    /// What it had in the last seconds at least.
    pub fn least(&self) -> usize {
        self.least.load(Relaxed)
    }

    /// What it had at the last look; not less than that.
    pub fn rest(&self) -> usize {
        self.rest.load(Relaxed).max(self.least())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_always_had_is_the_least_of_some_seconds() {
        let begin = Instant::now();
        let mut looks = Looks { seconds: [usize::MAX; KEPT], at: 0, since: begin };
        looks.add(100, begin);
        looks.add(300, begin);
        assert_eq!(looks.least(), 100);
        for second in 1..KEPT as u32 {
            looks.add(500, begin + KEPT_FOR * second);
            assert_eq!(looks.least(), 100, "{second}");
        }
        looks.add(400, begin + KEPT_FOR * KEPT as u32);
        assert_eq!(looks.least(), 400);
        looks.add(50, begin + KEPT_FOR * KEPT as u32);
        assert_eq!(looks.least(), 50);
    }

    #[test]
    fn this_process_is_in_memory() {
        let process = Process::default();
        process.look(0);
        assert!(process.rest() > 1 << 20 && process.least() > 1 << 20);
        process.look(usize::MAX);
        assert_eq!(process.rest(), 0);
    }
}
