//! Threads, mutexes and condition variables as the log, the pipeline and row locks use them, over shuttle's. A wait with a
//! time-out lets some of that time pass, and no more happens meanwhile than what other threads do; one with a deadline is to
//! be ended by somebody. (The model of row locks uses this file, too.)

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use avocet_base::env::SimClock;
pub use shuttle::sync::atomic::{AtomicU64, Ordering};
pub use shuttle::thread::{Builder, JoinHandle, Thread, current, park};

use crate::explore::below;
use crate::{Rule, breaks};

thread_local! {
    /// Whether a schedule runs. The unit tests of the files that are compiled here have none.
    static RUNS: Cell<bool> = const { Cell::new(false) };
    static CLOCK: RefCell<Arc<SimClock>> = RefCell::default();
}

/// Begins a schedule with a clock of its own.
pub fn begin(clock: Arc<SimClock>) {
    RUNS.set(true);
    CLOCK.set(clock);
}

pub fn end() {
    RUNS.set(false);
}

/// As `parking_lot`'s.
pub struct Mutex<T> {
    data: parking_lot::Mutex<T>,
    /// What threads of a schedule wait for.
    gate: shuttle::sync::Mutex<()>,
}

pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    // In this order: who waits at the gate finds the data free.
    data: Option<parking_lot::MutexGuard<'a, T>>,
    gate: Option<shuttle::sync::MutexGuard<'a, ()>>,
}

impl<T> Mutex<T> {
    pub fn new(data: T) -> Self {
        Self { data: parking_lot::Mutex::new(data), gate: shuttle::sync::Mutex::new(()) }
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        let gate = RUNS.get().then(|| self.gate.lock().unwrap_or_else(PoisonError::into_inner));
        MutexGuard { mutex: self, data: Some(self.data.lock()), gate }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.data.as_ref().expect("only a wait takes it")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.data.as_mut().expect("only a wait takes it")
    }
}

pub struct Condvar(shuttle::sync::Condvar);

pub struct TimedOut(pub bool);

impl Condvar {
    pub fn new() -> Self {
        Self(shuttle::sync::Condvar::new())
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        guard.data = None;
        let gate = guard.gate.take().expect("threads wait within a schedule");
        guard.gate = Some(self.0.wait(gate).unwrap_or_else(PoisonError::into_inner));
        guard.data = Some(guard.mutex.data.lock());
    }

    /// Ends after all of the time, some of it or none.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> TimedOut {
        guard.data = None;
        guard.gate = None;
        shuttle::thread::yield_now();
        let parts = below(3) as u32;
        CLOCK.with_borrow(|clock| clock.advance(timeout * parts / 2));
        *guard = guard.mutex.lock();
        TimedOut(parts == 2)
    }

    /// As if the deadline never came: a schedule in which nobody ends the wait fails.
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, _deadline: Instant) {
        self.wait(guard);
    }

    pub fn notify_one(&self) {
        if RUNS.get() && !breaks(Rule::WakeOne) {
            self.0.notify_one();
        }
    }

    pub fn notify_all(&self) {
        if RUNS.get() && !breaks(Rule::WakeAll) {
            self.0.notify_all();
        }
    }
}
