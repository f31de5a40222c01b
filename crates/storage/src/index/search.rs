//! Looking for a key within one node, and reading keys out of it.
//!
//! Everything here may run on a node that a writer is changing: results are meaningless until the caller has
//! validated the version, but no read leaves the node and no loop runs longer than the node is large.

use std::cmp::Ordering;
use std::hint::select_unpredictable;

use super::node::{Fence, HEAD_LEN, Node, Slot, be_word, head_of};

/// What a descent from the root looks for.
#[derive(Clone, Copy)]
pub enum Seek<'k> {
    /// The leaf whose fences enclose the key.
    At(&'k [u8]),
    /// The leaf that holds the greatest key below this one.
    Before(&'k [u8]),
    /// The last leaf.
    Last,
}

impl Node<'_> {
    /// Position of the first entry that is not below `key`, and whether it equals `key`. The key must lie
    /// between the node's fences (the upper one included).
    #[inline]
    pub fn lower_bound(self, key: &[u8]) -> (usize, bool) {
        let meta = self.meta();
        let suffix = key.get(meta.prefix..).unwrap_or(&[]);
        let head = head_of(suffix);
        let (begin, end) = self.hinted_range(meta.count, head);
        let mut low = self.heads_below(begin, end, head);
        if low >= meta.count || self.slot(low).head() != head {
            return (low, false);
        }
        match self.compare(self.slot(low), suffix) {
            Ordering::Equal => return (low, true),
            Ordering::Greater => return (low, false),
            Ordering::Less => low += 1,
        }
        if low >= meta.count || self.slot(low).head() != head {
            return (low, false);
        }
        let mut high = self.heads_below(low, end, head + 1);
        while low < high {
            let middle = (low + high) / 2;
            match self.compare(self.slot(middle), suffix) {
                Ordering::Equal => return (middle, true),
                Ordering::Greater => high = middle,
                Ordering::Less => low = middle + 1,
            }
        }
        (low, false)
    }

    /// End of the slots in `low..high` whose heads are below `head`. Without branches on the outcome: these
    /// are as good as random, and a misprediction costs more than a comparison.
    #[inline]
    fn heads_below(self, low: usize, high: usize, head: u64) -> usize {
        let mut base = low;
        let mut len = high.saturating_sub(low);
        while len > 1 {
            let half = len / 2;
            let below = self.slot(base + half - 1).head() < head;
            base = select_unpredictable(below, base + half, base);
            len -= half;
        }
        base + usize::from(len == 1 && self.slot(base).head() < head)
    }

    /// Compares an entry with the rest of a key after the prefix, given that their heads are equal.
    #[inline]
    fn compare(self, slot: Slot, suffix: &[u8]) -> Ordering {
        let (len, offset) = self.extent(slot);
        let shorter = len.min(suffix.len());
        if shorter > HEAD_LEN {
            for i in 0..(shorter - HEAD_LEN).div_ceil(8) {
                let ours = self.word(offset + i);
                let theirs = be_word(suffix, HEAD_LEN + i * 8);
                if ours != theirs {
                    return ours.cmp(&theirs);
                }
            }
        }
        len.cmp(&suffix.len())
    }

    /// The entry of an inner node to go down by.
    #[inline]
    pub fn child_index(self, seek: Seek<'_>) -> usize {
        match seek {
            Seek::At(key) => {
                let (pos, found) = self.lower_bound(key);
                if found { pos } else { pos.saturating_sub(1) }
            }
            Seek::Before(key) => self.lower_bound(key).0.saturating_sub(1),
            Seek::Last => self.meta().count.saturating_sub(1),
        }
    }

    /// Replaces `out` by the first `len` bytes of a fence.
    fn read_fence(self, fence: Fence, len: usize, out: &mut Vec<u8>) {
        out.clear();
        for i in 0..len.div_ceil(8) {
            out.extend_from_slice(&self.word(fence.offset + i).to_be_bytes());
        }
        out.truncate(len);
    }

    pub fn read_lower_fence(self, out: &mut Vec<u8>) {
        let fence = self.fences().lower;
        self.read_fence(fence, fence.len, out);
    }

    /// Replaces `out` by the upper fence, or by nothing if there is none.
    pub fn read_upper_fence(self, out: &mut Vec<u8>) {
        let fence = self.fences().upper.unwrap_or(Fence { offset: 0, len: 0 });
        self.read_fence(fence, fence.len, out);
    }

    /// Replaces `out` by the prefix that all entries share.
    pub fn read_prefix(self, out: &mut Vec<u8>) {
        self.read_fence(self.fences().lower, self.meta().prefix, out);
    }

    /// Appends the bytes of an entry after the prefix to `out`.
    pub fn read_suffix(self, slot: Slot, out: &mut Vec<u8>) {
        let (len, offset) = self.extent(slot);
        let end = out.len() + len;
        out.extend_from_slice(&slot.0.to_be_bytes()[..HEAD_LEN]);
        for i in 0..len.saturating_sub(HEAD_LEN).div_ceil(8) {
            out.extend_from_slice(&self.word(offset + i).to_be_bytes());
        }
        out.truncate(end);
    }

    /// Replaces `out` by the whole key of an entry.
    pub fn read_key(self, index: usize, out: &mut Vec<u8>) {
        self.read_prefix(out);
        self.read_suffix(self.slot(index), out);
    }
}
