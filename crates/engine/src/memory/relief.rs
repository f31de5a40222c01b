//! Rounds of work that free memory, and those who wait for their end.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

#[derive(Default)]
pub(crate) struct Relief {
    pub rounds: Mutex<Rounds>,
    pub ended: Condvar,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Rounds {
    pub begun: u64,
    pub ended: u64,
    /// What the last one has freed.
    pub freed: usize,
}

impl Relief {
    pub fn rounds(&self) -> Rounds {
        *self.rounds.lock()
    }

    /// Waits for the end of a round, at most so long.
    pub fn wait(&self, timeout: Duration) {
        let mut rounds = self.rounds.lock();
        self.ended.wait_for(&mut rounds, timeout);
    }
}
