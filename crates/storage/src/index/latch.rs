//! The optimistic latch: a version word that writers lock and readers only compare.
//!
//! A node's (or the root pointer's) latch is one 64-bit word:
//!
//! ```text
//!  63                              2   1        0
//! ┌─────────────────────────────────┬────────┬──────────┐
//! │ number of the version           │ locked │ obsolete │
//! └─────────────────────────────────┴────────┴──────────┘
//! ```
//!
//! A reader takes the version, reads what it wants with relaxed atomic loads, and validates: if the word is
//! still the same, no writer was at work in between and what was read is one state of the node. A reader
//! therefore writes nothing shared. A writer moves the word from a version that it has validated to "locked" by
//! compare-and-swap, so everything it read under that version still holds when it owns the latch.
//! After Leis, Haubenschild, Neumann: "Optimistic Lock Coupling" (IEEE Data Eng. Bull. 2019).
//!
//! Invariants:
//! 1. Words guarded by a latch change only between `try_lock` and `unlock`.
//! 2. A version never comes back: `unlock` adds one to the number.
//! 3. An obsolete word never changes again.
//!
//! Orderings are those of a sequence lock: the release fence after locking keeps the data stores behind the
//! lock bit; the acquire fence before validating keeps the data loads in front of the second look at the word.
//! A reader that saw any store of a writer then sees at least that writer's lock bit, and restarts.

use super::atomics::{AtomicU64, Ordering, fence, spin_loop, yield_now};

const OBSOLETE: u64 = 1;
const LOCKED: u64 = 2;
const STEP: u64 = 4;

/// What was read is not one state of the tree: start over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart;

/// A state of an unlocked, living latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u64);

/// A view of the word as a latch.
#[derive(Clone, Copy)]
pub struct Latch<'a>(pub &'a AtomicU64);

impl Latch<'_> {
    /// The version to read under; waits while a writer is at work.
    #[inline]
    pub fn read(self) -> Result<Version, Restart> {
        let word = self.0.load(Ordering::Acquire);
        if word & (LOCKED | OBSOLETE) == 0 { Ok(Version(word)) } else { self.read_slow() }
    }

    #[cold]
    fn read_slow(self) -> Result<Version, Restart> {
        let mut backoff = Backoff::new();
        loop {
            let word = self.0.load(Ordering::Acquire);
            if word & OBSOLETE != 0 {
                return Err(Restart);
            }
            if word & LOCKED == 0 {
                return Ok(Version(word));
            }
            backoff.wait();
        }
    }

    /// Whether all that was read since `version` was taken belongs to it.
    #[inline]
    pub fn validate(self, version: Version) -> Result<(), Restart> {
        fence(Ordering::Acquire);
        if self.0.load(Ordering::Relaxed) == version.0 { Ok(()) } else { Err(Restart) }
    }

    /// Locks if nothing has changed since `version`. Never waits, so that no order of locking is needed.
    #[inline]
    pub fn try_lock(self, version: Version) -> Result<(), Restart> {
        let locked = version.0 | LOCKED;
        match self.0.compare_exchange(version.0, locked, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => {
                fence(Ordering::Release);
                Ok(())
            }
            Err(_) => Err(Restart),
        }
    }

    /// Ends a writer's work and begins the next version. Only the holder of the lock may call it.
    #[inline]
    pub fn unlock(self) -> Version {
        let word = self.0.load(Ordering::Relaxed);
        debug_assert!(word & LOCKED != 0, "unlocked a latch that was not locked");
        let next = (word & !LOCKED).wrapping_add(STEP);
        self.0.store(next, Ordering::Release);
        Version(next)
    }

    /// Ends the life of what the latch guards: everyone who still looks at it restarts.
    pub fn unlock_obsolete(self) {
        let word = self.0.load(Ordering::Relaxed);
        debug_assert!(word & LOCKED != 0, "retired a latch that was not locked");
        self.0.store((word & !LOCKED).wrapping_add(STEP) | OBSOLETE, Ordering::Release);
    }
}

/// Waiting for another thread: a few rounds of spinning, doubling, then the processor is given away (the
/// holder of a latch may have been preempted).
pub struct Backoff(u32);

impl Backoff {
    const SPIN_ROUNDS: u32 = 6;

    pub fn new() -> Self {
        Backoff(0)
    }

    pub fn wait(&mut self) {
        if self.0 < Self::SPIN_ROUNDS {
            for _ in 0..1u32 << self.0 {
                spin_loop();
            }
            self.0 += 1;
        } else {
            yield_now();
        }
    }
}
