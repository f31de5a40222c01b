//! How background threads are woken, and ended.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

#[derive(Default)]
pub(crate) struct Signals {
    pub ending: Mutex<bool>,
    pub wake: Condvar,
    /// Wakes the thread that frees memory.
    pub relief: Condvar,
    pub relief_wanted: AtomicBool,
    pub threads: Mutex<Vec<JoinHandle<()>>>,
    pub shut: AtomicBool,
}

impl Signals {
    /// Has memory freed at once.
    pub fn ask_for_relief(&self) {
        if !self.relief_wanted.swap(true, Relaxed) {
            let _ending = self.ending.lock();
            self.relief.notify_one();
        }
    }

    pub fn is_ending(&self) -> bool {
        *self.ending.lock()
    }

    /// Ends the threads and waits for them.
    pub fn end(&self) {
        *self.ending.lock() = true;
        self.wake.notify_all();
        self.relief.notify_all();
        let this = std::thread::current().id();
        for thread in self.threads.lock().drain(..) {
            // The last reference may be dropped by one of the threads itself.
            if thread.thread().id() != this {
                let _ = thread.join();
            }
        }
    }
}
