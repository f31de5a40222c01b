//! The keys that there are while terminals insert more. A key's number is taken before its row is inserted, but counts as
//! there only when it and all below it are acknowledged: what is drawn can be read.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::zipf::fnv;

/// Numbers `0..len()` are in the table.
pub struct KeySpace {
    next: AtomicU64,
    len: AtomicU64,
    /// Acknowledged numbers above a gap.
    early: Mutex<BTreeSet<u64>>,
}

impl KeySpace {
    pub fn new(len: u64) -> KeySpace {
        KeySpace { next: len.into(), len: len.into(), early: Mutex::default() }
    }

    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// The number of a row to insert.
    pub fn take(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The row of a taken number is there.
    pub fn acknowledge(&self, number: u64) {
        let mut early = self.early.lock().expect("nobody panics holding the keys");
        early.insert(number);
        let mut len = self.len();
        while early.remove(&len) {
            len += 1;
        }
        self.len.store(len, Ordering::Release);
    }
}

/// The key of a number: hashed, so that rows come in no order.
pub fn key(number: u64) -> String {
    format!("user{}", fnv(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_there_when_all_below_it_are() {
        let keys = KeySpace::new(10);
        let [a, b, c] = [keys.take(), keys.take(), keys.take()];
        keys.acknowledge(c);
        keys.acknowledge(a);
        assert_eq!(keys.len(), 11);
        keys.acknowledge(b);
        assert_eq!(keys.len(), 13);
    }
}
