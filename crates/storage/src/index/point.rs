//! Points: looking up and claiming a key whose entries are *key ‖ eight bytes*, in one descent and without a copy.
//!
//! An index has one entry for nearly every key, and that entry lies within one leaf with its neighbours. These
//! operations answer that case and say so when it is another one (several entries, entries of other lengths, a key
//! at the edge of a leaf); the caller then scans.

use super::latch::Restart;
use super::memory::{Guard, MAX_KEY_LEN, pin};
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
        let guard = pin();
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
    /// If the entry is longer than [`MAX_KEY_LEN`].
    pub fn insert_alone(&self, entry: &[u8], key_len: usize) -> bool {
        assert!(entry.len() <= MAX_KEY_LEN, "index entries have at most {MAX_KEY_LEN} bytes");
        let guard = pin();
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
        if several || self.leaf_extent(slot).0 != suffix.len() + 8 {
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
        let (len, offset) = self.leaf_extent(slot);
        if len < suffix.len() {
            return false;
        }
        let in_head = 8 * (HEAD_LEN - suffix.len().min(HEAD_LEN)) as u32;
        if slot.head() >> in_head != be_word(suffix, 0) >> 24 >> in_head {
            return false;
        }
        let rest = suffix.len().saturating_sub(HEAD_LEN);
        (0..rest.div_ceil(8)).all(|i| {
            let unused = 64 - 8 * (rest - i * 8).min(8) as u32;
            self.word(offset + i) >> unused == be_word(suffix, HEAD_LEN + i * 8) >> unused
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
        let offset = self.leaf_extent(slot).1;
        let first = self.word(offset + word);
        match 8 * byte as u32 {
            0 => first,
            shift => first << shift | self.word(offset + word + 1) >> (64 - shift),
        }
    }
}
