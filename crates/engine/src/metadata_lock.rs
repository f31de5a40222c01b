//! Metadata locks: transactions that use a table hold it shared until they end; DDL holds it exclusive.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::{EngineError, Result};

/// How often a waiter asks whether it was interrupted.
const ASK_EVERY: Duration = Duration::from_millis(50);

#[derive(Default)]
struct State {
    shared: u32,
    exclusive: bool,
    /// DDL that waits; newcomers queue behind it, so that it gets its turn.
    waiting: u32,
}

#[derive(Default)]
pub(crate) struct MetadataLock {
    state: Mutex<State>,
    changed: Condvar,
}

impl State {
    /// Whether DDL has it, or is to have it next.
    fn is_taken(&self) -> bool {
        self.exclusive || self.waiting > 0
    }
}

impl MetadataLock {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn lock_shared(&self, timeout: Duration, interrupted: &dyn Fn() -> bool) -> Result<()> {
        let mut state = self.state.lock();
        // Nearly always: not even the time is looked at.
        if state.is_taken() {
            self.wait(&mut state, timeout, interrupted, State::is_taken)?;
        }
        state.shared += 1;
        Ok(())
    }

    /// Waits until `stands` does not hold any more.
    fn wait(
        &self,
        state: &mut MutexGuard<'_, State>,
        timeout: Duration,
        interrupted: &dyn Fn() -> bool,
        stands: impl Fn(&State) -> bool,
    ) -> Result<()> {
        let deadline = Instant::now() + timeout;
        while stands(state) {
            let now = Instant::now();
            if now >= deadline {
                return Err(EngineError::LockWaitTimeout);
            }
            if interrupted() {
                return Err(EngineError::Interrupted);
            }
            self.changed.wait_until(state, deadline.min(now + ASK_EVERY));
        }
        Ok(())
    }

    pub fn unlock_shared(&self) {
        let mut state = self.state.lock();
        state.shared -= 1;
        if state.shared == 0 && state.waiting > 0 {
            self.changed.notify_all();
        }
    }

    pub fn lock_exclusive(&self, timeout: Duration, interrupted: &dyn Fn() -> bool) -> Result<()> {
        let mut state = self.state.lock();
        state.waiting += 1;
        let outcome =
            self.wait(&mut state, timeout, interrupted, |state| state.exclusive || state.shared > 0);
        state.waiting -= 1;
        match outcome {
            Ok(()) => state.exclusive = true,
            // Those who stood behind it.
            Err(_) => _ = self.changed.notify_all(),
        }
        outcome
    }

    pub fn unlock_exclusive(&self) {
        self.state.lock().exclusive = false;
        self.changed.notify_all();
    }
}
