//! Points: looking up and claiming a key whose entries are *key ‖ eight bytes*, in one descent and without a copy.
//!
//! An index has one entry for nearly every key, and that entry lies within one leaf with its neighbours. These
//! operations answer that case and say so when it is another one (several entries, entries of other lengths, a key
//! at the edge of a leaf); the caller then scans.

use crossbeam_epoch::{self as epoch, Guard};

use super::latch::Restart;
use super::node::{Fence, HEAD_LEN, Node, Slot, be_word, heap_words};
use super::search::Seek;
use super::tree::{BTree, retry};

/// What a tree has under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    Nothing,
    /// One entry: the key and then these eight bytes.
    One([u8; 8]),
    /// Perhaps more than that: scan.
    Unclear,
}

impl BTree {
    /// Looks for the entries that begin with `key`.
    #[inline]
    pub fn lookup(&self, key: &[u8]) -> Lookup {
        let guard = epoch::pin();
        retry(|| {
            let path = self.descend(Seek::At(key), 0, &guard)?;
            let found = path.node.lookup(key);
            path.node.validate(path.version)?;
            Ok(found)
        })
    }

    /// Adds an entry if no entry begins with its first `key_len` bytes; false if one does, or if that is not
    /// clear from its leaf alone.
    ///
    /// # Panics
    /// If the entry is longer than [`MAX_KEY_LEN`](super::MAX_KEY_LEN).
    pub fn insert_alone(&self, entry: &[u8], key_len: usize) -> bool {
        assert!(entry.len() <= super::MAX_KEY_LEN, "index entries have at most {} bytes", super::MAX_KEY_LEN);
        let guard = epoch::pin();
        loop {
            if let Some(added) = retry(|| self.try_insert_alone(entry, key_len, &guard)) {
                return added;
            }
        }
    }

    /// `None`: there was no room; there is now, or the tree has changed.
    fn try_insert_alone(&self, entry: &[u8], key_len: usize, guard: &Guard) -> Result<Option<bool>, Restart> {
        let path = self.descend(Seek::At(entry), 0, guard)?;
        let (pos, found) = path.node.lower_bound(entry);
        if found || !path.node.is_alone(pos, &entry[..key_len]) {
            path.node.validate(path.version)?;
            return Ok(Some(false));
        }
        let leaf = path.node.try_lock(path.version)?;
        if leaf.insert_at(pos, entry, 0) {
            drop(leaf);
            self.count_added(path.node, 1);
            return Ok(Some(true));
        }
        let words = 1 + heap_words(entry.len() - leaf.meta().prefix);
        drop(leaf);
        self.make_room(entry, 0, words, guard)?;
        Ok(None)
    }
}

impl Node<'_> {
    fn lookup(self, key: &[u8]) -> Lookup {
        let meta = self.meta();
        let Some(suffix) = key.get(meta.prefix..) else { return Lookup::Unclear };
        let (pos, _) = self.lower_bound(key);
        if pos >= meta.count {
            return if self.goes_on(key) { Lookup::Unclear } else { Lookup::Nothing };
        }
        let slot = self.slot(pos);
        if !self.begins_with(slot, suffix) {
            return Lookup::Nothing;
        }
        let several = match pos + 1 < meta.count {
            true => self.begins_with(self.slot(pos + 1), suffix),
            false => self.goes_on(key),
        };
        if several || slot.len() != suffix.len() + 8 {
            return Lookup::Unclear;
        }
        Lookup::One(self.bytes_at(slot, suffix.len()).to_be_bytes())
    }

    /// Whether neither neighbour of position `pos` begins with `key`, in this leaf or another.
    fn is_alone(self, pos: usize, key: &[u8]) -> bool {
        let meta = self.meta();
        let Some(suffix) = key.get(meta.prefix..) else { return false };
        let fences = self.fences();
        let before = match pos {
            0 => self.fence_begins_with(fences.lower, key),
            _ => self.begins_with(self.slot(pos - 1), suffix),
        };
        let behind = match pos < meta.count {
            true => self.begins_with(self.slot(pos), suffix),
            false => fences.upper.is_some_and(|fence| self.fence_begins_with(fence, key)),
        };
        !before && !behind
    }

    /// Whether entries that begin with `key` may follow in the next leaf: then the fence between has it too.
    fn goes_on(self, key: &[u8]) -> bool {
        self.fences().upper.is_some_and(|fence| self.fence_begins_with(fence, key))
    }

    fn fence_begins_with(self, fence: Fence, key: &[u8]) -> bool {
        fence.len >= key.len()
            && (0..key.len().div_ceil(8)).all(|i| {
                let unused = 64 - 8 * (key.len() - i * 8).min(8) as u32;
                self.word(fence.offset + i) >> unused == be_word(key, i * 8) >> unused
            })
    }

    /// Whether an entry, after the prefix of its node, begins with `suffix`.
    #[inline]
    fn begins_with(self, slot: Slot, suffix: &[u8]) -> bool {
        if slot.len() < suffix.len() {
            return false;
        }
        let in_head = 8 * (HEAD_LEN - suffix.len().min(HEAD_LEN)) as u32;
        if slot.head() >> in_head != be_word(suffix, 0) >> 24 >> in_head {
            return false;
        }
        let rest = suffix.len().saturating_sub(HEAD_LEN);
        (0..rest.div_ceil(8)).all(|i| {
            let unused = 64 - 8 * (rest - i * 8).min(8) as u32;
            self.word(slot.offset() + i) >> unused == be_word(suffix, HEAD_LEN + i * 8) >> unused
        })
    }

    /// Eight bytes of an entry of a leaf, from `at` bytes behind the prefix on.
    #[inline]
    fn bytes_at(self, slot: Slot, at: usize) -> u64 {
        // The entry as one row of bits: the head, then the words of the heap.
        if at < HEAD_LEN {
            let from_heap = 8 * (8 - (HEAD_LEN - at)) as u32;
            let word = self.word(slot.offset());
            return slot.head() << 24 << (8 * at as u32) | word >> (64 - from_heap);
        }
        let (word, byte) = ((at - HEAD_LEN) / 8, (at - HEAD_LEN) % 8);
        let first = self.word(slot.offset() + word);
        match 8 * byte as u32 {
            0 => first,
            shift => first << shift | self.word(slot.offset() + word + 1) >> (64 - shift),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(key: &[u8], id: u64) -> Vec<u8> {
        [key, &id.to_be_bytes()].concat()
    }

    proptest! {
        /// Against a sorted list: keys of all lengths around the head's and the words' bounds, many in common.
        #[test]
        fn lookups_and_claims_agree_with_a_model(
            keys in prop::collection::vec((prop::collection::vec(0u8..3, 0..22), 0u64..3), 1..400),
        ) {
            let tree = BTree::new();
            let mut model = std::collections::BTreeSet::new();
            for (n, (key, id)) in keys.iter().enumerate() {
                // What an index has: no key is the beginning of another.
                let key = [key.iter().map(|b| b + 1).collect::<Vec<_>>(), vec![0]].concat();
                let id = *id << 40 | 7;
                let with_key = |model: &std::collections::BTreeSet<Vec<u8>>| {
                    model.iter().filter(|e| e.starts_with(&key)).cloned().collect::<Vec<_>>()
                };
                let before = with_key(&model);
                match tree.lookup(&key) {
                    Lookup::Nothing => prop_assert!(before.is_empty()),
                    Lookup::One(tail) => prop_assert_eq!(&before, &vec![[&key[..], &tail[..]].concat()]),
                    Lookup::Unclear => {}
                }
                let new = entry(&key, id);
                if n % 3 == 0 {
                    prop_assert_eq!(tree.insert(&new), model.insert(new));
                } else {
                    let added = tree.insert_alone(&new, key.len());
                    prop_assert!(!added || before.is_empty());
                    if added {
                        prop_assert!(model.insert(new));
                    }
                }
            }
            prop_assert_eq!(tree.len(), model.len() as u64);
        }
    }

    #[test]
    fn points_are_clear_in_a_large_tree() {
        let tree = BTree::new();
        let key = |n: u32| [&[0x80][..], &n.to_be_bytes(), &(n / 3).to_be_bytes()].concat();
        let mut added = 0;
        for n in 0..20_000u32 {
            let n = n.wrapping_mul(7_919) % 20_000;
            added += u32::from(tree.insert_alone(&entry(&key(n), u64::from(n)), 9));
        }
        assert!(added > 19_900, "{added}");
        let clear = (0..20_000).filter(|&n| tree.lookup(&key(n)) == Lookup::One(u64::from(n).to_be_bytes()));
        assert!(clear.count() > 19_800);
        assert_eq!(tree.lookup(&key(20_001)), Lookup::Nothing);
        assert!(!tree.insert_alone(&entry(&key(5), 99), 9), "another entry has the key");
    }
}
