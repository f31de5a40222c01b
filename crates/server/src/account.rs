//! What a connection's buffers take of the server's memory.
//!
//! Most connections are idle, with buffers of a few KiB that nobody counts. What grows beyond that is counted as long as it is
//! there: up to [`GRANTED`] whatever there is, since little can be done without, and above that only if there is room.

use std::sync::Arc;

use avocet_session::api::ClientMemory;

/// A buffer of so many bytes is kept between statements, and not counted.
pub const KEPT: usize = 16 * 1024;
/// A buffer of so many bytes is never refused.
const GRANTED: usize = 256 * 1024;

/// The account of one buffer.
#[derive(Default)]
pub struct Account {
    memory: Option<Arc<dyn ClientMemory>>,
    counted: usize,
}

impl Account {
    /// Without `memory`, nothing is counted and nothing refused.
    pub fn new(memory: Option<Arc<dyn ClientMemory>>) -> Self {
        Self { memory, counted: 0 }
    }

    /// The buffer takes so many bytes, or is about to; false if there is no room for them.
    #[inline]
    #[must_use]
    pub fn grow(&mut self, capacity: usize) -> bool {
        capacity <= KEPT || capacity <= self.counted || self.count(capacity)
    }

    #[cold]
    fn count(&mut self, capacity: usize) -> bool {
        let more = capacity - self.counted;
        if let Some(memory) = &self.memory {
            if capacity <= GRANTED {
                memory.take(more);
            } else if !memory.reserve(more) {
                return false;
            }
        }
        self.counted = capacity;
        true
    }

    /// The buffer takes no more than so many bytes.
    #[inline]
    pub fn shrink(&mut self, capacity: usize) {
        let capacity = if capacity <= KEPT { 0 } else { capacity };
        if capacity < self.counted {
            if let Some(memory) = &self.memory {
                memory.release(self.counted - capacity);
            }
            self.counted = capacity;
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[derive(Default)]
    struct Budget {
        used: AtomicUsize,
    }

    impl ClientMemory for Budget {
        fn reserve(&self, bytes: usize) -> bool {
            let fits = self.used.load(Relaxed) + bytes <= 1024 * 1024;
            if fits {
                self.take(bytes);
            }
            fits
        }

        fn take(&self, bytes: usize) {
            self.used.fetch_add(bytes, Relaxed);
        }

        fn release(&self, bytes: usize) {
            self.used.fetch_sub(bytes, Relaxed);
        }
    }

    #[test]
    fn what_is_large_is_counted_as_long_as_it_is_there() {
        let budget = Arc::new(Budget::default());
        let mut account = Account::new(Some(budget.clone()));
        assert!(account.grow(KEPT));
        assert_eq!(budget.used.load(Relaxed), 0);
        assert!(account.grow(100_000) && account.grow(900_000));
        assert_eq!(budget.used.load(Relaxed), 900_000);
        assert!(!account.grow(2_000_000), "there is no room for it");
        let mut other = Account::new(Some(budget.clone()));
        assert!(other.grow(GRANTED), "so much there always is");
        account.shrink(200_000);
        assert_eq!(budget.used.load(Relaxed), 200_000 + GRANTED);
        account.shrink(KEPT);
        drop(other);
        assert_eq!(budget.used.load(Relaxed), 0);
    }
}
