//! Reads of single rows: by row id, along an index, or one after the other. Those that lock rows are in `txn/locking.rs`.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use avocet_base::{RowId, SegmentNo};
use avocet_storage::Snapshot;
use avocet_storage::hot::{RowBuf, SlotRead};
use avocet_storage::index::{Direction, Lookup, ScanScratch};
use avocet_storage::relation::SegmentState;
use avocet_types::RowRef;

use super::Txn;
use super::locking::{LockHow, Visited};
use super::newest::RowLock;
use crate::error::Result;
use crate::rows;
use crate::table::{IndexHandle, TableHandle, split_entry};

/// Whether a read takes what its snapshot has, or locks the newest committed version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadMode {
    Snapshot,
    Lock(RowLock),
}

/// A range of keys of one index, over encoded key bytes (see `types::key`). A bound may be a prefix of whole
/// keys; it then stands for all keys that begin with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// Entries from here on; empty for all.
    lower: Vec<u8>,
    /// Entries before this; `None` for all.
    upper: Option<Vec<u8>>,
}

impl KeyRange {
    pub fn all() -> Self {
        Self::default()
    }

    /// All keys that begin with these bytes.
    pub fn prefix(key: &[u8]) -> Self {
        Self::new(Bound::Included(key), Bound::Included(key))
    }

    pub fn new(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Self {
        let mut range = Self::default();
        range.set(lower, upper);
        range
    }

    /// Like [`Self::new`], into the memory of this range.
    pub fn set(&mut self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) {
        self.lower.clear();
        let mut upper_buf = self.upper.take().unwrap_or_default();
        upper_buf.clear();
        match lower {
            Bound::Unbounded => {}
            Bound::Included(key) => self.lower.extend_from_slice(key),
            Bound::Excluded(key) => {
                self.lower.extend_from_slice(key);
                if !increment(&mut self.lower) {
                    // Nothing is beyond the greatest bytes: an empty range.
                    self.upper = Some(upper_buf);
                    return;
                }
            }
        }
        self.upper = match upper {
            Bound::Unbounded => None,
            Bound::Excluded(key) => {
                upper_buf.extend_from_slice(key);
                Some(upper_buf)
            }
            Bound::Included(key) => {
                upper_buf.extend_from_slice(key);
                increment(&mut upper_buf).then_some(upper_buf)
            }
        };
    }

    /// Makes ranges ascend and not overlap, holding what they held together; empty ones go.
    pub fn unite(ranges: &mut Vec<Self>) {
        ranges.retain(|range| range.upper.as_ref().is_none_or(|upper| range.lower < *upper));
        ranges.sort_unstable_by(|a, b| a.lower.cmp(&b.lower));
        ranges.dedup_by(|next, last| {
            let Some(end) = &mut last.upper else { return true };
            if next.lower > *end {
                return false;
            }
            match next.upper.take() {
                None => last.upper = None,
                Some(upper) if upper > *end => *end = upper,
                Some(_) => {}
            }
            true
        });
    }

    /// What two lists of ranges have in common, each of which ascends and does not overlap.
    pub fn intersection(a: &[Self], b: &[Self]) -> Vec<Self> {
        let ends_first = |x: &Self, y: &Self| match (&x.upper, &y.upper) {
            (Some(x), Some(y)) => x < y,
            (x, _) => x.is_some(),
        };
        let mut common = Vec::new();
        let (mut x, mut y) = (0, 0);
        while let (Some(left), Some(right)) = (a.get(x), b.get(y)) {
            let is_left_first = ends_first(left, right);
            let upper = if is_left_first { &left.upper } else { &right.upper };
            let lower = left.lower.as_slice().max(&right.lower);
            if upper.as_deref().is_none_or(|upper| lower < upper) {
                common.push(Self { lower: lower.to_vec(), upper: upper.clone() });
            }
            if is_left_first { x += 1 } else { y += 1 }
        }
        common
    }

    /// What is left of the range from the entries of `key` on.
    pub fn rest_from(&self, key: &[u8], direction: Direction) -> Self {
        let of_key = Self::prefix(key);
        match direction {
            Direction::Ascending => Self { lower: of_key.lower, upper: self.upper.clone() },
            Direction::Descending => {
                Self { lower: self.lower.clone(), upper: of_key.upper.or_else(|| self.upper.clone()) }
            }
        }
    }

    /// Whether an index entry is in the range.
    pub(crate) fn contains(&self, entry: &[u8]) -> bool {
        *entry >= self.lower[..] && self.upper.as_deref().is_none_or(|upper| entry < upper)
    }

    pub(super) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let lower = if self.lower.is_empty() { Bound::Unbounded } else { Bound::Included(&self.lower[..]) };
        let upper = self.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        (lower, upper)
    }
}

/// The least bytes that are greater than everything that begins with these; false if there are none.
fn increment(bytes: &mut Vec<u8>) -> bool {
    while let Some(last) = bytes.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return true;
        }
        bytes.pop();
    }
    false
}

/// Memory of reads, to be used again and again.
#[derive(Default)]
pub struct ReadScratch {
    pub(super) scan: ScanScratch,
    pub(super) row: RowBuf,
    copy: RowBuf,
    pub(super) key: Vec<u8>,
    pub(super) visited: Visited,
}

impl IndexHandle {
    /// Whether more than so many entries are in a range, those of old versions included.
    pub fn has_more_than(&self, many: usize, range: &KeyRange, scratch: &mut ReadScratch) -> bool {
        self.count_up_to(many + 1, range, scratch) > many
    }

    /// How many entries are in a range, those of old versions included; no more than `most` are counted.
    pub fn count_up_to(&self, most: usize, range: &KeyRange, scratch: &mut ReadScratch) -> usize {
        let mut met = 0;
        let (lower, upper) = range.bounds();
        self.tree.scan(lower, upper, Direction::Ascending, &mut scratch.scan, &mut |_| {
            met += 1;
            if met >= most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        met
    }
}

impl Txn {
    /// The row as the snapshot has it, into `buf`. False if there is none.
    pub fn read(&self, table: &Arc<TableHandle>, id: RowId, buf: &mut RowBuf) -> Result<bool> {
        self.note_read(|reads| reads.add_table(table));
        self.load(table, id, buf)
    }

    /// Copies the row as the snapshot has it. False if there is none.
    pub(super) fn load(&self, table: &TableHandle, id: RowId, buf: &mut RowBuf) -> Result<bool> {
        load_at(table, id, &self.view(), buf)
    }

    /// Visits the rows that the snapshot sees whose key is in the range, in key order.
    pub fn index_scan(
        &self,
        table: &Arc<TableHandle>,
        index: &IndexHandle,
        range: &KeyRange,
        direction: Direction,
        scratch: &mut ReadScratch,
        visit: &mut dyn FnMut(RowId, RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        self.check_readable(table, index)?;
        self.note_read(|reads| reads.add_range(table, table.position_of(index), range));
        let ReadScratch { scan, row, key, .. } = scratch;
        let mut outcome = Ok(());
        let (lower, upper) = range.bounds();
        index.tree.scan(lower, upper, direction, scan, &mut |entry| {
            let (_, id) = split_entry(entry);
            match self.load(table, id, row) {
                Ok(false) => ControlFlow::Continue(()),
                Ok(true) => {
                    let row = row.row(&table.layout);
                    if !entry_is_of(index, &row, entry, key) {
                        return ControlFlow::Continue(());
                    }
                    visit(id, row)
                }
                Err(e) => {
                    outcome = Err(e);
                    ControlFlow::Break(())
                }
            }
        });
        outcome
    }

    /// Visits all rows, in row id order: what the snapshot sees, or the newest ones, each locked first.
    pub fn table_rows(
        &mut self,
        table: &Arc<TableHandle>,
        mode: ReadMode,
        visit: &mut dyn FnMut(RowId, RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        if mode == ReadMode::Snapshot || self.is_strict() {
            self.note_read(|reads| reads.add_table(table));
        }
        if let ReadMode::Lock(lock) = mode {
            let visit = &mut |id, row: RowRef<'_>| visit(id, row).into();
            return self.lock_table(table, &mut LockHow::all(lock), visit);
        }
        let mut ids = Vec::new();
        let mut buf = RowBuf::default();
        for segment in (0..table.relation.segments()).map(SegmentNo) {
            ids.clear();
            possible_rows(table, segment, &mut ids);
            for &id in &ids {
                if self.load(table, id, &mut buf)? && visit(id, buf.row(&table.layout)).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The row that has exactly this key in a unique index, if the snapshot sees one.
    pub fn get_unique(
        &self,
        table: &Arc<TableHandle>,
        index: &IndexHandle,
        key: &[u8],
        scratch: &mut ReadScratch,
        visit: &mut dyn FnMut(RowId, RowRef<'_>),
    ) -> Result<bool> {
        let mut copy = std::mem::take(&mut scratch.copy);
        let mut found = None;
        let outcome = self.peek_unique(table, index, key, scratch, &mut |id, row| {
            found = Some(id);
            copy.image.clear();
            row.to_image(&mut copy.image);
        });
        if let Some(id) = found {
            visit(id, copy.row(&table.layout));
        }
        scratch.copy = copy;
        outcome
    }

    /// Like [`Self::get_unique`], but shows the row where it is, without a copy. `visit` runs under the latch of
    /// the row's page: it reads columns and nothing else; it must not use the engine, nor wait for anything.
    pub fn peek_unique(
        &self,
        table: &Arc<TableHandle>,
        index: &IndexHandle,
        key: &[u8],
        scratch: &mut ReadScratch,
        visit: &mut dyn FnMut(RowId, RowRef<'_>),
    ) -> Result<bool> {
        self.check_readable(table, index)?;
        self.note_read(|reads| reads.add_range(table, table.position_of(index), &KeyRange::prefix(key)));
        let ReadScratch { scan, row, key: own, .. } = scratch;
        each_with_key(index, key, scan, &mut |id, _| {
            let mut seen = false;
            self.show(table, id, row, &mut |row| {
                seen = has_key(index, &row, key, own);
                if seen {
                    visit(id, row);
                }
            })?;
            Ok(seen)
        })
    }

    /// Shows the row as the snapshot has it, under its page's latch if it stands there so. Shows nothing if there is none.
    fn show(
        &self,
        table: &TableHandle,
        id: RowId,
        buf: &mut RowBuf,
        visit: &mut dyn FnMut(RowRef<'_>),
    ) -> Result<()> {
        if let SegmentState::Hot(hot) = &*table.relation.segment(id.segment()).state() {
            let Some((page, slot)) = table.relation.page_of(hot, id.ordinal()) else { return Ok(()) };
            let body = page.body.read();
            match body.read(&table.layout, slot, &self.view(), buf) {
                SlotRead::Absent => {}
                SlotRead::InPlace => visit(body.in_place(&table.layout, slot)),
                SlotRead::Rebuilt => visit(buf.row(&table.layout)),
            }
            return Ok(());
        }
        if self.load(table, id, buf)? {
            visit(buf.row(&table.layout));
        }
        Ok(())
    }
}

/// Copies the row as a snapshot has it. False if there is none.
pub(super) fn load_at(
    table: &TableHandle,
    id: RowId,
    snapshot: &Snapshot<'_>,
    buf: &mut RowBuf,
) -> Result<bool> {
    let state = table.relation.segment(id.segment()).state();
    match &*state {
        SegmentState::Empty => Ok(false),
        SegmentState::Hot(hot) => {
            let Some((page, slot)) = table.relation.page_of(hot, id.ordinal()) else { return Ok(false) };
            let body = page.body.read();
            match body.read(&table.layout, slot, snapshot, buf) {
                SlotRead::Absent => return Ok(false),
                SlotRead::Rebuilt => {}
                SlotRead::InPlace => {
                    buf.image.clear();
                    body.in_place(&table.layout, slot).to_image(&mut buf.image);
                }
            }
            Ok(true)
        }
        SegmentState::Cold(cold) => {
            let gone = !cold.is_visible(snapshot)
                || cold.deletes.body.read().is_deleted_for(id.ordinal(), snapshot)
                || !rows::cold_image(table, cold, id.ordinal(), &mut buf.image)?;
            Ok(!gone)
        }
    }
}

/// Goes through the rows that a unique index may have under a whole key, until `visit` takes one, which it may only if that
/// has the key. Whether it took one. `visit` is also told whether a mere hint led to the row.
pub(super) fn each_with_key(
    index: &IndexHandle,
    key: &[u8],
    scan: &mut ScanScratch,
    visit: &mut dyn FnMut(RowId, bool) -> Result<bool>,
) -> Result<bool> {
    let hint = index.hints.get(key);
    if let Some(id) = hint
        && visit(id, true)?
    {
        return Ok(true);
    }
    match index.tree.lookup(key) {
        Lookup::Nothing => return Ok(false),
        Lookup::One(id) => {
            let id = RowId(u64::from_be_bytes(id));
            if !visit(id, false)? {
                return Ok(false);
            }
            index.hints.note(key, id, || index.tree.len());
            return Ok(true);
        }
        Lookup::Unclear => {}
    }
    let mut outcome = Ok(false);
    index.tree.prefix_scan(key, scan, &mut |entry| {
        outcome = visit(split_entry(entry).1, false);
        if matches!(outcome, Ok(false)) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    outcome
}

pub(super) fn has_key(index: &IndexHandle, row: &RowRef<'_>, key: &[u8], own: &mut Vec<u8>) -> bool {
    index.keys.has_key(row, key, own)
}

/// Whether the row has the key of this entry. Always to be asked: the entry may be one of another version of the row, or
/// have been collected, with that version, since it was read from the index.
pub(super) fn entry_is_of(index: &IndexHandle, row: &RowRef<'_>, entry: &[u8], own: &mut Vec<u8>) -> bool {
    has_key(index, row, split_entry(entry).0, own)
}

/// Ids of a segment that may hold rows for somebody.
pub(super) fn possible_rows(table: &TableHandle, number: SegmentNo, ids: &mut Vec<RowId>) {
    match &*table.relation.segment(number).state_owned() {
        SegmentState::Empty => {}
        SegmentState::Hot(hot) => {
            for (n, page) in hot.pages() {
                let body = page.body.read();
                let slots = (0..table.relation.slots_per_page())
                    .filter(|&slot| body.is_live(slot) || body.chain(slot).is_some());
                ids.extend(slots.map(|slot| RowId::new(number, table.relation.ordinal(n, slot))));
            }
        }
        SegmentState::Cold(cold) => {
            let settled = cold.deletes.body.read().all_settled().clone();
            let ordinals = cold.block.meta().ordinals.iter().filter(|&o| !settled.contains(o.into()));
            ids.extend(ordinals.map(|ordinal| RowId::new(number, ordinal)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_prefixes() {
        let range = KeyRange::prefix(&[1, 0xff]);
        assert_eq!(range.bounds(), (Bound::Included(&[1, 0xff][..]), Bound::Excluded(&[2][..])));
        let range = KeyRange::new(Bound::Excluded(&[3]), Bound::Unbounded);
        assert_eq!(range.bounds(), (Bound::Included(&[4][..]), Bound::Unbounded));
        let range = KeyRange::new(Bound::Included(&[3]), Bound::Included(&[0xff]));
        assert_eq!(range.bounds(), (Bound::Included(&[3][..]), Bound::Unbounded));
        let range = KeyRange::new(Bound::Excluded(&[0xff]), Bound::Unbounded);
        assert_eq!(range.bounds().1, Bound::Excluded(&[][..]));
    }

    #[test]
    fn united_ranges_ascend_and_do_not_overlap() {
        let range = |lower: &[u8], upper: Option<&[u8]>| KeyRange {
            lower: lower.to_vec(),
            upper: upper.map(<[u8]>::to_vec),
        };
        let mut ranges = vec![
            range(b"m", Some(b"p")),
            range(b"x", Some(b"b")),
            range(b"a", Some(b"c")),
            range(b"b", Some(b"bz")),
            range(b"p", Some(b"q")),
            range(b"y", None),
            range(b"z", Some(b"zz")),
        ];
        KeyRange::unite(&mut ranges);
        assert_eq!(ranges, [range(b"a", Some(b"c")), range(b"m", Some(b"q")), range(b"y", None)]);
        let others = [range(b"b", Some(b"n")), range(b"o", Some(b"o")), range(b"p", None)];
        let common =
            [range(b"b", Some(b"c")), range(b"m", Some(b"n")), range(b"p", Some(b"q")), range(b"y", None)];
        assert_eq!(KeyRange::intersection(&ranges, &others), common);
        assert_eq!(KeyRange::intersection(&others, &ranges), common);
    }
}
