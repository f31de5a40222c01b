//! Where the rows of a unique index's keys were found last: a cache in front of its tree.
//!
//! A descent of a large tree waits for memory several times, one after the other; looking here waits once. It is a table
//! of row ids, found by a hash of the key. Nothing keeps it right: whoever takes a hint looks whether the row has the key and
//! is one that it may see, which it does for a row of a unique index from either source. If not, the tree is asked.
//!
//! ```text
//!  key ──hash──▶ ┌────────────┐   0: no hint; else row id + 1
//!                │ row id + 1 │   one word each, written and read without order
//!                └────────────┘
//! ```
//!
//! Tables grow with the index, by four; a new one starts empty, and the smaller ones stay (a third of it in all), so
//! that readers need no protection.

use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use avocet_base::RowId;
use avocet_storage::prefetch;

/// Hints in the smallest table and in the largest, as powers of two.
const SMALLEST: u32 = 6;
const LARGEST: u32 = 22;
const TABLES: usize = ((LARGEST - SMALLEST) / 2 + 1) as usize;
/// After so many keys that were not found here, the size of the index is looked at.
const LOOK_EVERY: u32 = 256;

#[derive(Default)]
pub(crate) struct Hints {
    tables: [OnceLock<Box<[AtomicU64]>>; TABLES],
    /// How many tables there are; the last one is in use.
    made: AtomicUsize,
    noted: AtomicU32,
}

impl Hints {
    fn slot(&self, key: &[u8]) -> Option<&AtomicU64> {
        let last = self.made.load(Ordering::Acquire).checked_sub(1)?;
        let table = self.tables[last].get()?;
        let hash = foldhash::fast::FixedState::default().hash_one(key);
        Some(&table[hash as usize & (table.len() - 1)])
    }

    /// The row that perhaps has this key.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<RowId> {
        self.slot(key)?.load(Ordering::Relaxed).checked_sub(1).map(RowId)
    }

    /// The key will be asked for soon.
    pub fn prefetch(&self, key: &[u8]) {
        if let Some(slot) = self.slot(key) {
            prefetch(slot);
        }
    }

    /// Notes where the row of a key was found; `entries` tells how many keys there are.
    pub fn note(&self, key: &[u8], id: RowId, entries: impl FnOnce() -> u64) {
        if self.noted.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOK_EVERY) {
            self.grow_for(entries());
        }
        if let Some(slot) = self.slot(key) {
            slot.store(id.0.wrapping_add(1), Ordering::Relaxed);
        }
    }

    pub fn bytes(&self) -> u64 {
        self.tables.iter().filter_map(OnceLock::get).map(|table| size_of_val(&**table) as u64).sum()
    }

    /// Sees to it that there is room for most of so many keys.
    fn grow_for(&self, entries: u64) {
        let bits = entries.max(1).next_power_of_two().ilog2().clamp(SMALLEST, LARGEST);
        let wanted = (bits - SMALLEST).div_ceil(2) as usize;
        if self.made.load(Ordering::Relaxed) > wanted {
            return;
        }
        let size = 1usize << (SMALLEST + 2 * wanted as u32);
        self.tables[wanted].get_or_init(|| (0..size).map(|_| AtomicU64::new(0)).collect());
        self.made.fetch_max(wanted + 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_found_again_and_tables_grow() {
        let hints = Hints::default();
        assert_eq!(hints.get(b"key"), None);
        // A table that grows starts empty, so all notes are made twice.
        for round in 0..2 {
            for n in 0..100_000u64 {
                hints.note(&n.to_be_bytes(), RowId(n), || if round == 0 { n + 1 } else { 100_000 });
                assert_eq!(hints.get(&n.to_be_bytes()), Some(RowId(n)), "a note is found at once");
            }
        }
        let still = (0..100_000u64).filter(|n| hints.get(&n.to_be_bytes()) == Some(RowId(*n))).count();
        assert!(still > 75_000, "{still}");
        assert_eq!(
            hints.tables[hints.made.load(Ordering::Relaxed) - 1].get().map(|t| t.len()),
            Some(1 << 18)
        );
    }
}
