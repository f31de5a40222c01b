//! The latch protocol under loom, which tries every interleaving and every stale value that the memory model
//! allows. `latch.rs` is compiled a second time here, over loom's atomics.

mod atomics {
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{AtomicU64, Ordering, fence};
    pub use loom::thread::yield_now;
}
#[path = "latch.rs"]
#[allow(dead_code, clippy::duplicate_mod)]
mod latch;

use std::sync::Arc;

use self::atomics::{AtomicU64, Ordering};
use self::latch::{Latch, Restart};

/// Two words that writers keep equal.
#[derive(Default)]
struct Pair {
    latch: AtomicU64,
    words: [AtomicU64; 2],
}

impl Pair {
    fn read(&self) -> Result<(u64, u64), Restart> {
        let version = Latch(&self.latch).read()?;
        let words = (self.words[0].load(Ordering::Relaxed), self.words[1].load(Ordering::Relaxed));
        Latch(&self.latch).validate(version)?;
        Ok(words)
    }

    /// Adds one to both words, if nobody else is faster.
    fn add(&self) -> Result<(), Restart> {
        let latch = Latch(&self.latch);
        let version = latch.read()?;
        let seen = self.words[0].load(Ordering::Relaxed);
        latch.try_lock(version)?;
        self.words.iter().for_each(|word| word.store(seen + 1, Ordering::Relaxed));
        latch.unlock();
        Ok(())
    }

    fn retire(&self) -> Result<(), Restart> {
        let latch = Latch(&self.latch);
        latch.try_lock(latch.read()?)?;
        self.words[0].store(u64::MAX, Ordering::Relaxed);
        latch.unlock_obsolete();
        Ok(())
    }
}

#[test]
fn readers_see_one_state() {
    loom::model(|| {
        let pair = Arc::new(Pair::default());
        let writer = loom::thread::spawn({
            let pair = pair.clone();
            move || pair.add().is_ok() && pair.add().is_ok()
        });
        if let Ok((first, second)) = pair.read() {
            assert_eq!(first, second);
        }
        assert!(writer.join().unwrap(), "a writer alone always wins");
        assert_eq!(pair.read(), Ok((2, 2)));
    });
}

#[test]
fn no_write_is_lost() {
    loom::model(|| {
        let pair = Arc::new(Pair::default());
        let other = loom::thread::spawn({
            let pair = pair.clone();
            move || u64::from(pair.add().is_ok())
        });
        let added = u64::from(pair.add().is_ok()) + other.join().unwrap();
        assert!(added > 0);
        assert_eq!(pair.read(), Ok((added, added)));
    });
}

#[test]
fn nothing_of_a_retired_node_is_believed() {
    loom::model(|| {
        let pair = Arc::new(Pair::default());
        let writer = loom::thread::spawn({
            let pair = pair.clone();
            move || pair.retire().is_ok()
        });
        if let Ok(words) = pair.read() {
            assert_eq!(words, (0, 0));
        }
        assert!(writer.join().unwrap());
        assert_eq!(pair.read(), Err(Restart));
    });
}
