//! Ordered visits.
//!
//! A scan goes leaf by leaf: it descends to the leaf where it stands, copies entries into a scratch, validates
//! the leaf's version, lets go of the epoch, and visits. Then it descends anew, to the fence of the leaf or
//! behind the last entry copied. The first copies are short, so that a visitor who wants one entry does not pay for a
//! leaf. Leaves have no links to siblings: going backwards is the same descent, to the leaf before a fence.

use std::ops::{Bound, ControlFlow};

use super::memory::pin;
use super::node::{HEAD_LEN, Node};
use super::search::Seek;
use super::tree::{BTree, retry};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

/// Memory of scans, to be used again and again.
#[derive(Default)]
pub struct ScanScratch {
    entries: Entries,
    prefix: Vec<u8>,
    fence: Vec<u8>,
    /// Where the scan goes on.
    cursor: Vec<u8>,
    place: Place,
}

/// How the cursor is meant.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// The cursor itself is still to be visited.
    #[default]
    Including,
    Excluding,
    /// No cursor: the end that the direction starts from.
    Unbounded,
    Finished,
}

/// Where a scan goes on after a copy.
enum Next {
    /// Behind the last entry copied: the copy was cut short.
    Entry,
    /// At the fence.
    Fence,
    Finished,
}

/// Where a scan ends.
#[derive(Clone, Copy)]
enum Stop<'k> {
    Bound(Bound<&'k [u8]>),
    /// Ascending only: behind the entries with this prefix.
    Prefix(&'k [u8]),
}

/// Copies per leaf: first few, then all.
const FIRST_COPY: usize = 4;
const COPY_GROWTH: usize = 16;

/// Keys back to back, with slack behind the end so that whole words can be stored.
#[derive(Default)]
struct Entries {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    len: usize,
}

impl ScanScratch {
    pub fn new() -> Self {
        ScanScratch::default()
    }
}

impl Entries {
    fn clear(&mut self) {
        self.ends.clear();
        self.len = 0;
    }

    fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }

    fn last(&self) -> Option<&[u8]> {
        self.ends.len().checked_sub(1).map(|last| self.get(last))
    }

    /// Appends the key of a leaf's entry: `prefix`, then what the node holds.
    #[inline]
    fn push(&mut self, node: Node<'_>, index: usize, prefix: &[u8]) {
        let slot = node.slot(index);
        let (len, offset) = node.leaf_extent(slot);
        let words = len.saturating_sub(HEAD_LEN).div_ceil(8);
        let need = self.len + prefix.len() + HEAD_LEN + 8 * words + 8;
        if self.bytes.len() < need {
            self.bytes.resize(need.max(4096).next_power_of_two(), 0);
        }
        let out = &mut self.bytes[self.len..need];
        out[..prefix.len()].copy_from_slice(prefix);
        let out = &mut out[prefix.len()..];
        out[..8].copy_from_slice(&slot.0.to_be_bytes());
        for (i, out) in out[HEAD_LEN..].chunks_exact_mut(8).take(words).enumerate() {
            out.copy_from_slice(&node.word(offset + i).to_be_bytes());
        }
        self.len += prefix.len() + len;
        self.ends.push(self.len as u32);
    }

    fn pop(&mut self) {
        self.ends.pop();
        self.len = self.ends.last().map_or(0, |&end| end as usize);
    }
}

impl BTree {
    /// Visits the entries between the bounds in order, until the visitor breaks. The visitor runs with no latch
    /// and no pin held: it may block, and it may use the tree (with another scratch).
    pub fn scan(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        scratch: &mut ScanScratch,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) {
        match direction {
            Direction::Ascending => {
                scratch.start(lower);
                self.ascend(Stop::Bound(upper), scratch, visit);
            }
            Direction::Descending => {
                scratch.start(upper);
                self.descend_from(lower, scratch, visit);
            }
        }
    }

    /// Visits the entries that begin with `prefix` in ascending order: the point look-up of an index whose
    /// entries are *key ‖ row id*.
    pub fn prefix_scan(
        &self,
        prefix: &[u8],
        scratch: &mut ScanScratch,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) {
        scratch.start(Bound::Included(prefix));
        self.ascend(Stop::Prefix(prefix), scratch, visit);
    }

    /// Visits the entries of one leaf, for estimates: at each node on the way, `pick` chooses among so many children.
    pub fn visit_leaf(
        &self,
        pick: &mut dyn FnMut(usize) -> usize,
        scratch: &mut ScanScratch,
        visit: &mut dyn FnMut(&[u8]),
    ) {
        let ScanScratch { entries, prefix, .. } = scratch;
        {
            let guard = pin();
            retry(|| {
                entries.clear();
                let (node, version) = self.descend_by(pick, &guard)?;
                node.read_prefix(prefix);
                (0..node.meta().count).for_each(|i| entries.push(node, i, prefix));
                node.validate(version)
            });
        }
        (0..entries.ends.len()).for_each(|i| visit(entries.get(i)));
    }

    fn ascend(
        &self,
        stop: Stop<'_>,
        scratch: &mut ScanScratch,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) {
        let mut limit = FIRST_COPY;
        while scratch.place != Place::Finished {
            self.copy_ascending(stop, limit, scratch);
            if scratch.visit(visit).is_break() {
                return;
            }
            limit = limit.saturating_mul(COPY_GROWTH);
        }
    }

    fn descend_from(
        &self,
        lower: Bound<&[u8]>,
        scratch: &mut ScanScratch,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) {
        let mut limit = FIRST_COPY;
        while scratch.place != Place::Finished {
            self.copy_descending(lower, limit, scratch);
            if scratch.visit(visit).is_break() {
                return;
            }
            limit = limit.saturating_mul(COPY_GROWTH);
        }
    }

    /// Copies up to `limit` entries from the cursor on, out of one leaf, and moves the cursor.
    fn copy_ascending(&self, stop: Stop<'_>, limit: usize, scratch: &mut ScanScratch) {
        let guard = pin();
        let ScanScratch { entries, prefix, fence, cursor, place } = scratch;
        let key: &[u8] = if *place == Place::Unbounded { &[] } else { cursor };
        let next = retry(|| {
            entries.clear();
            let path = self.descend(Seek::At(key), 0, &guard)?;
            let node = path.node;
            let (pos, found) = node.lower_bound(key);
            let start = pos + usize::from(found && *place == Place::Excluding);
            node.read_prefix(prefix);
            let next = match stop {
                Stop::Prefix(wanted) => entries.copy_prefixed(node, start, limit, prefix, wanted, fence),
                Stop::Bound(bound) => entries.copy_below(node, start, limit, prefix, bound, fence),
            };
            node.validate(path.version).map(|()| next)
        });
        scratch.go_on(next, Place::Including);
    }

    /// Copies up to `limit` entries before the cursor, out of one leaf, backwards, and moves the cursor.
    fn copy_descending(&self, lower: Bound<&[u8]>, limit: usize, scratch: &mut ScanScratch) {
        let guard = pin();
        let ScanScratch { entries, prefix, fence, cursor, place } = scratch;
        let seek = match *place {
            Place::Unbounded => Seek::Last,
            Place::Including => Seek::At(cursor),
            Place::Excluding | Place::Finished => Seek::Before(cursor),
        };
        let next = retry(|| {
            entries.clear();
            let path = self.descend(seek, 0, &guard)?;
            let node = path.node;
            let end = match *place {
                Place::Unbounded => node.meta().count,
                place => {
                    let (pos, found) = node.lower_bound(cursor);
                    pos + usize::from(found && place == Place::Including)
                }
            };
            node.read_prefix(prefix);
            let (start, ends_here) = node.start_within(lower, fence);
            let first = start.max(end.saturating_sub(limit));
            for i in (first..end).rev() {
                entries.push(node, i, prefix);
            }
            node.validate(path.version)?;
            Ok(match (first > start, ends_here) {
                (true, _) => Next::Entry,
                (false, true) => Next::Finished,
                (false, false) => Next::Fence,
            })
        });
        scratch.go_on(next, Place::Excluding);
    }
}

impl Entries {
    /// Copies the entries from `start` on that begin with `wanted`. Reads the leaf's upper fence only if the
    /// run of such entries reaches it.
    fn copy_prefixed(
        &mut self,
        node: Node<'_>,
        start: usize,
        limit: usize,
        prefix: &[u8],
        wanted: &[u8],
        fence: &mut Vec<u8>,
    ) -> Next {
        let count = node.meta().count;
        for i in start..count.min(start.saturating_add(limit)) {
            self.push(node, i, prefix);
            if !self.last().is_some_and(|entry| entry.starts_with(wanted)) {
                self.pop();
                return Next::Finished;
            }
        }
        if count > start.saturating_add(limit) {
            return Next::Entry;
        }
        // The fence is above `wanted`: entries with this prefix lie behind it only if it has the prefix too.
        node.read_upper_fence(fence);
        if fence.starts_with(wanted) && node.fences().upper.is_some() { Next::Fence } else { Next::Finished }
    }

    /// Copies the entries from `start` on that are within an upper bound.
    fn copy_below(
        &mut self,
        node: Node<'_>,
        start: usize,
        limit: usize,
        prefix: &[u8],
        bound: Bound<&[u8]>,
        fence: &mut Vec<u8>,
    ) -> Next {
        let (end, ends_here) = node.end_within(bound, fence);
        for i in start..end.min(start.saturating_add(limit)) {
            self.push(node, i, prefix);
        }
        match (end > start.saturating_add(limit), ends_here) {
            (true, _) => Next::Entry,
            (false, true) => Next::Finished,
            (false, false) => Next::Fence,
        }
    }
}

impl Node<'_> {
    /// End of the entries within an upper bound, and whether no leaf behind this one has any. Leaves the upper
    /// fence in `fence`.
    fn end_within(self, bound: Bound<&[u8]>, fence: &mut Vec<u8>) -> (usize, bool) {
        let count = self.meta().count;
        let last = self.fences().upper.is_none();
        let (key, included) = match bound {
            Bound::Unbounded => {
                self.read_upper_fence(fence);
                return (count, last);
            }
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
        };
        // The bound lies before the leaf only if it lies before where the scan began.
        self.read_lower_fence(fence);
        if key < fence.as_slice() {
            return (0, true);
        }
        self.read_upper_fence(fence);
        if !last && (key > fence.as_slice() || (key == fence.as_slice() && included)) {
            return (count, false);
        }
        let (pos, found) = self.lower_bound(key);
        (pos + usize::from(found && included), true)
    }

    /// Start of the entries within a lower bound, and whether no leaf before this one has any. Leaves the lower
    /// fence in `fence`.
    fn start_within(self, bound: Bound<&[u8]>, fence: &mut Vec<u8>) -> (usize, bool) {
        let (key, included) = match bound {
            Bound::Unbounded => {
                self.read_lower_fence(fence);
                return (0, fence.is_empty());
            }
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
        };
        self.read_upper_fence(fence);
        if self.fences().upper.is_some() && key > fence.as_slice() {
            return (usize::MAX, true);
        }
        self.read_lower_fence(fence);
        if key < fence.as_slice() {
            return (0, false);
        }
        let (pos, found) = self.lower_bound(key);
        (pos + usize::from(found && !included), true)
    }
}

impl ScanScratch {
    fn start(&mut self, bound: Bound<&[u8]>) {
        self.cursor.clear();
        let (key, place) = match bound {
            Bound::Included(key) => (key, Place::Including),
            Bound::Excluded(key) => (key, Place::Excluding),
            Bound::Unbounded => (&[][..], Place::Unbounded),
        };
        self.cursor.extend_from_slice(key);
        self.place = place;
    }

    /// Moves the cursor; `at_fence` is how a fence is meant when the scan goes on there.
    fn go_on(&mut self, next: Next, at_fence: Place) {
        match next {
            Next::Entry => {
                self.cursor.clear();
                self.cursor.extend_from_slice(self.entries.last().expect("a copy cut short has entries"));
                self.place = Place::Excluding;
            }
            Next::Fence => {
                std::mem::swap(&mut self.cursor, &mut self.fence);
                self.place = at_fence;
            }
            Next::Finished => self.place = Place::Finished,
        }
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> ControlFlow<()> {
        for i in 0..self.entries.ends.len() {
            visit(self.entries.get(i))?;
        }
        ControlFlow::Continue(())
    }
}
