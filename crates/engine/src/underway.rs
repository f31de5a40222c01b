//! The checkpoint that is being written, as those who freeze meanwhile know of it.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use avocet_base::Timestamp;

/// The snapshot of the checkpoint that is being written, for those who freeze meanwhile.
pub(crate) struct Underway(AtomicU64);

impl Default for Underway {
    fn default() -> Self {
        Self(AtomicU64::new(Self::NONE))
    }
}

impl Underway {
    const NONE: u64 = u64::MAX;

    /// A checkpoint begins. Under the DDL latch, as whoever freezes has it when he asks.
    pub fn begin(&self, snapshot: Timestamp) -> UnderwayGuard<'_> {
        self.0.store(snapshot.0, Release);
        UnderwayGuard(self)
    }

    /// Whether recovery from the checkpoint would replay rows that vanished from a page.
    pub fn replays(&self, vanished_at: Timestamp) -> bool {
        vanished_at.0 > self.0.load(Acquire)
    }
}

pub(crate) struct UnderwayGuard<'u>(&'u Underway);

impl Drop for UnderwayGuard<'_> {
    fn drop(&mut self) {
        self.0.0.store(Underway::NONE, Release);
    }
}
