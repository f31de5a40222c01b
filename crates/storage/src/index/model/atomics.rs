//! Words of nodes: at each use of one the model may go on with another thread, and a word of a freed node is not to be
//! used at all.

use std::cell::Cell;
use std::sync::atomic::AtomicU64 as Word;

pub use std::sync::atomic::{Ordering, fence};

use shuttle::sync::atomic::AtomicBool;
pub use shuttle::thread::yield_now;

/// What every word of a freed node holds.
pub const FREED: u64 = 0xf4ee_dead_f4ee_dead;

thread_local! {
    /// An atomic of the model's own stands for all of them: nodes are allocated as zeros, which it is not.
    static POINT: AtomicBool = const { AtomicBool::new(false) };
    static USES: Cell<u64> = const { Cell::new(0) };
}

/// A place where another thread may go on.
fn switch() {
    USES.set(USES.get() + 1);
    POINT.with(|point| point.load(Ordering::SeqCst));
}

/// How many uses of words there were: a clock that goes on with every step of any thread.
pub fn now() -> u64 {
    USES.get()
}

/// Waiting is left to [`yield_now`], which schedulers know about.
pub fn spin_loop() {}

#[repr(transparent)]
pub struct AtomicU64(Word);

impl AtomicU64 {
    pub const fn new(word: u64) -> Self {
        Self(Word::new(word))
    }

    #[track_caller]
    pub fn load(&self, _: Ordering) -> u64 {
        switch();
        self.check()
    }

    #[track_caller]
    pub fn store(&self, word: u64, _: Ordering) {
        switch();
        self.check();
        self.0.store(word, Ordering::SeqCst);
    }

    #[track_caller]
    pub fn compare_exchange(&self, old: u64, new: u64, _: Ordering, _: Ordering) -> Result<u64, u64> {
        switch();
        self.check();
        self.0.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst)
    }

    #[track_caller]
    fn check(&self) -> u64 {
        let word = self.0.load(Ordering::SeqCst);
        assert_ne!(word, FREED, "a freed node is used");
        word
    }
}
