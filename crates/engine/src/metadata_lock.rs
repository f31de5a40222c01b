//! Metadata locks: transactions that use a table hold it shared until they end; DDL holds it exclusive.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

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

    /// False if `timeout` passed first.
    pub fn lock_shared(&self, timeout: Duration) -> bool {
        let mut state = self.state.lock();
        // Nearly always: not even the time is looked at.
        if !state.is_taken() {
            state.shared += 1;
            return true;
        }
        let deadline = Instant::now() + timeout;
        while state.is_taken() {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return false;
            }
        }
        state.shared += 1;
        true
    }

    pub fn unlock_shared(&self) {
        let mut state = self.state.lock();
        state.shared -= 1;
        if state.shared == 0 && state.waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// False if `timeout` passed first.
    pub fn lock_exclusive(&self, timeout: Duration) -> bool {
        let mut state = self.state.lock();
        let deadline = Instant::now() + timeout;
        state.waiting += 1;
        while state.exclusive || state.shared > 0 {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                state.waiting -= 1;
                self.changed.notify_all();
                return false;
            }
        }
        state.waiting -= 1;
        state.exclusive = true;
        true
    }

    pub fn unlock_exclusive(&self) {
        self.state.lock().exclusive = false;
        self.changed.notify_all();
    }
}
