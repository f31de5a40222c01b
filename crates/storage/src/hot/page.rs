//! A hot page: a power-of-two number of fixed-size row slots, a heap for variable-length values, and a
//! version vector that exists only while some slot has versions.
//!
//! ```text
//!  ┌─ PageBody (under the page's latch) ───────────────────────────────────────────┐
//!  │ slots   ┌────────┬────────┬────────┬──      heap  ┌───────────────┬──        │
//!  │         │ fixed  │ fixed  │ fixed  │ …            │ var bytes     │ …        │
//!  │         └────────┴────────┴────────┴──            └───────────────┴──        │
//!  │ live    1 bit a slot: the newest version of the row exists                   │
//!  │ versions  none, or a chain head per slot                                     │
//!  └───────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Invariants:
//! 1. The newest version of a row is in place. A slot without a chain is the same for every snapshot.
//! 2. Bytes of a slot that is not live stay until its chain is gone: older snapshots still read them.
//! 3. A frozen page never changes again; who finds one looks the row up anew.
//! 4. The log may have rows of a page that no snapshot sees, though some snapshot is older than they were: those that came and
//!    went between two snapshots leave their chain at once. `vanished_at` says when the last of them went.

use std::sync::Arc;

use avocet_base::Timestamp;
use avocet_base::codec::Malformed;
use avocet_types::{RowLayout, RowRef};
use parking_lot::RwLock;

use super::delta;
use crate::prefetch::prefetch;
use crate::version::{self, Change, Snapshot, Undo, collect_version, truncate_chain};

/// A place in a page's heap.
#[inline]
fn heap_place(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a page takes no rows when it has some MiB of strings")
}

/// Bytes of slots that a page aims at.
const TARGET_BYTES: usize = 16 << 10;
/// A heap is compacted when at least this much of it, and at least half, is garbage.
const MIN_HEAP_GARBAGE: usize = 4 << 10;

/// Slots per page for rows of `fixed_size` bytes: a power of two from 16 to 1,024.
pub fn slots_per_page(fixed_size: usize) -> usize {
    let fit = (TARGET_BYTES / fixed_size.max(1)).clamp(16, 1024);
    1 << fit.ilog2()
}

/// A page and its latch.
pub struct HotPage {
    pub body: RwLock<PageBody>,
}

pub struct PageBody {
    slots: Vec<u8>,
    heap: Vec<u8>,
    heap_garbage: usize,
    live: Vec<u64>,
    live_count: usize,
    versions: Option<Box<[Option<Arc<Undo>>]>>,
    /// Slots with a chain.
    versioned: usize,
    /// The newest commit of a delete whose row vanished: no snapshot has ever seen it.
    vanished_at: Timestamp,
    /// Changed since a checkpoint last wrote it.
    pub dirty: bool,
    pub frozen: bool,
    /// Grows with every change; lets a freezer see whether a page stood still.
    pub changes: u64,
}

/// A row copied out of a page or block, as an image. Reused from row to row.
#[derive(Default)]
pub struct RowBuf {
    pub image: Vec<u8>,
}

impl RowBuf {
    pub fn row<'a>(&'a self, layout: &'a RowLayout) -> RowRef<'a> {
        let (fixed, heap) = self.image.split_at(layout.fixed_size);
        RowRef::new(layout, fixed, heap)
    }
}

/// How a slot looks to a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotRead {
    Absent,
    /// As it stands in place.
    InPlace,
    /// An older version, rebuilt into the caller's buffer.
    Rebuilt,
}

impl HotPage {
    pub fn new(layout: &RowLayout, slots: usize) -> Self {
        Self::with_slots(slots, layout.fixed_size, false)
    }

    /// A page that was never used and never will be: it has no slots, and is frozen.
    pub fn closed() -> Self {
        Self::with_slots(0, 0, true)
    }

    fn with_slots(slots: usize, slot_size: usize, frozen: bool) -> Self {
        Self {
            body: RwLock::new(PageBody {
                slots: vec![0; slots * slot_size],
                heap: Vec::new(),
                heap_garbage: 0,
                live: vec![0; slots.div_ceil(64)],
                live_count: 0,
                versions: None,
                versioned: 0,
                vanished_at: Timestamp::MIN,
                dirty: false,
                frozen,
                changes: 0,
            }),
        }
    }

    pub fn is_closed(&self) -> bool {
        self.body.read().slots.is_empty()
    }
}

impl PageBody {
    pub fn is_live(&self, slot: usize) -> bool {
        self.live.get(slot / 64).is_some_and(|word| word >> (slot % 64) & 1 != 0)
    }

    fn set_live(&mut self, slot: usize, live: bool) {
        let bit = 1 << (slot % 64);
        let word = &mut self.live[slot / 64];
        match (*word & bit != 0, live) {
            (false, true) => {
                *word |= bit;
                self.live_count += 1;
            }
            (true, false) => {
                *word &= !bit;
                self.live_count -= 1;
            }
            _ => {}
        }
    }

    /// Rows whose newest version exists.
    pub fn live_count(&self) -> usize {
        self.live_count
    }

    pub fn has_versions(&self) -> bool {
        self.versioned > 0
    }

    /// When the last row went that had come and gone between two snapshots; [`Timestamp::MIN`] if none has.
    pub fn vanished_at(&self) -> Timestamp {
        self.vanished_at
    }

    /// A row whose delete was committed at `at` is taken off its chain although there are older snapshots.
    pub(crate) fn note_vanished(&mut self, at: Timestamp) {
        self.vanished_at = self.vanished_at.max(at);
    }

    /// One bit a slot, 64 slots a word.
    pub fn live_words(&self) -> &[u64] {
        &self.live
    }

    pub fn bytes(&self) -> usize {
        let versions = self.versions.as_ref().map_or(0, |versions| size_of_val(&**versions));
        self.slots.capacity() + self.heap.capacity() + self.live.capacity() * 8 + versions
    }

    /// Bytes of variable-length values, those included that are garbage.
    pub fn heap_bytes(&self) -> usize {
        self.heap.len()
    }

    pub fn slot_count(&self, layout: &RowLayout) -> usize {
        self.slots.len() / layout.fixed_size
    }

    /// The row in place, live or not.
    #[inline]
    pub fn in_place<'a>(&'a self, layout: &'a RowLayout, slot: usize) -> RowRef<'a> {
        let at = slot * layout.fixed_size;
        RowRef::new(layout, &self.slots[at..at + layout.fixed_size], &self.heap)
    }

    #[inline]
    pub fn chain(&self, slot: usize) -> Option<&Arc<Undo>> {
        self.versions.as_ref()?[slot].as_ref()
    }

    /// The slot will be looked at soon.
    pub fn prefetch(&self, layout: &RowLayout, slot: usize) {
        let at = slot * layout.fixed_size;
        // A page that is closed has no slots.
        let Some(fixed) = self.slots.get(at..at + layout.fixed_size) else { return };
        prefetch(fixed);
        prefetch(&self.live[slot / 64]);
        if let Some(versions) = &self.versions {
            prefetch(&versions[slot]);
        }
    }

    /// The slot's strings will be looked at soon. Reads the slot itself.
    pub fn prefetch_strings(&self, layout: &RowLayout, slot: usize) {
        if slot >= self.slot_count(layout) {
            return;
        }
        let row = self.in_place(layout, slot);
        for &column in &*layout.var_columns {
            let [a, b, c, d, e, f, g, h] = row.raw::<8>(column.into());
            let start = u32::from_le_bytes([a, b, c, d]) as usize;
            let len = u32::from_le_bytes([e, f, g, h]) as usize;
            // What a slot that nobody uses says may lie outside of the heap.
            if let Some(bytes) = self.heap.get(start..).and_then(|rest| rest.get(..len)) {
                prefetch(bytes);
            }
        }
    }

    /// Decides what `snapshot` sees in a slot; an older version goes to `rebuilt`.
    pub fn read(
        &self,
        layout: &RowLayout,
        slot: usize,
        snapshot: &Snapshot<'_>,
        rebuilt: &mut RowBuf,
    ) -> SlotRead {
        let mut live = self.is_live(slot);
        let Some(head) = self.chain(slot) else {
            return if live { SlotRead::InPlace } else { SlotRead::Absent };
        };
        if snapshot.sees(&head.txn) && !snapshot.has_locked(head) {
            return if live { SlotRead::InPlace } else { SlotRead::Absent };
        }
        let mut copied = false;
        let mut next = Some(head.clone());
        while let Some(undo) = next {
            let is_seen = snapshot.sees(&undo.txn);
            let link = undo.link();
            match &link.change {
                Change::Lock if !is_seen || undo.txn.is_running() => {}
                Change::Mask if is_seen => return SlotRead::Absent,
                Change::Mask => {}
                _ if is_seen => break,
                Change::Insert => return SlotRead::Absent,
                Change::Delete => live = true,
                Change::Lock => unreachable!("seen, or skipped"),
                Change::Update { before } => {
                    if !copied {
                        copied = true;
                        rebuilt.image.clear();
                        self.in_place(layout, slot).to_image(&mut rebuilt.image);
                    }
                    delta::apply_to_image(layout, before, &mut rebuilt.image)
                        .expect("before-images are made by this page");
                }
            }
            next = link.older();
        }
        match (live, copied) {
            (false, _) => SlotRead::Absent,
            (true, false) => SlotRead::InPlace,
            (true, true) => SlotRead::Rebuilt,
        }
    }

    fn touch(&mut self) {
        assert!(!self.frozen, "a frozen page does not change");
        self.dirty = true;
        self.changes += 1;
    }

    fn push_version(
        &mut self,
        slot: usize,
        slots: usize,
        txn: &Arc<crate::TxnState>,
        change: Change,
    ) -> Arc<Undo> {
        let versions = self.versions.get_or_insert_with(|| (0..slots).map(|_| None).collect());
        let older = versions[slot].take();
        if older.is_none() {
            self.versioned += 1;
        }
        let undo = Undo::new(txn, change, older);
        versions[slot] = Some(undo.clone());
        undo
    }

    fn drop_head(&mut self, slot: usize, undo: &Arc<Undo>) {
        let versions = self.versions.as_mut().expect("the undo record is on this page");
        let head = versions[slot].take().expect("the undo record is on this slot");
        assert!(Arc::ptr_eq(&head, undo), "versions are undone newest first");
        versions[slot] = head.older_in_use();
        if versions[slot].is_none() {
            self.versioned -= 1;
        }
    }

    /// Drops a lock of a transaction that has committed, which says nothing to anybody. False if it is not the newest
    /// version: then a newer one will take it in.
    pub fn drop_lock(&mut self, slot: usize, lock: &Arc<Undo>) -> bool {
        let is_head = self.chain(slot).is_some_and(|head| Arc::ptr_eq(head, lock));
        if is_head {
            lock.settle();
            self.drop_head(slot, lock);
        }
        is_head
    }

    /// Frees an empty version vector. Not done at once, since the next change of the page would need it again.
    pub fn free_version_vector(&mut self) {
        if self.versioned == 0 {
            self.versions = None;
        }
    }

    /// Whether there is an empty version vector.
    pub fn has_idle_version_vector(&self) -> bool {
        self.versioned == 0 && self.versions.is_some()
    }

    /// Writes a row image into a slot that never held a row.
    pub fn insert(
        &mut self,
        layout: &RowLayout,
        slot: usize,
        image: &[u8],
        txn: &Arc<crate::TxnState>,
    ) -> Arc<Undo> {
        assert!(!self.is_live(slot) && self.chain(slot).is_none(), "a row id is used once");
        self.place(layout, slot, image);
        let slots = self.slot_count(layout);
        self.push_version(slot, slots, txn, Change::Insert)
    }

    /// Puts a row in place without a version: recovery, where nobody else looks.
    pub fn place(&mut self, layout: &RowLayout, slot: usize, image: &[u8]) {
        self.touch();
        let (fixed, var) = image.split_at(layout.fixed_size);
        let at = slot * layout.fixed_size;
        self.slots[at..at + layout.fixed_size].copy_from_slice(fixed);
        let base = self.heap.len();
        self.heap.extend_from_slice(var);
        if base > 0 {
            for &column in &*layout.var_columns {
                let at = at + layout.fields[column as usize].offset as usize;
                let raw: [u8; 4] = self.slots[at..at + 4].try_into().expect("four bytes");
                let len: [u8; 4] = self.slots[at + 4..at + 8].try_into().expect("four bytes");
                if len != [0; 4] {
                    let moved = heap_place(u32::from_le_bytes(raw) as usize + base);
                    self.slots[at..at + 4].copy_from_slice(&moved.to_le_bytes());
                } else {
                    self.slots[at..at + 4].fill(0);
                }
            }
        }
        self.set_live(slot, true);
    }

    /// Changes columns in place, each once at most; the values before go to the version chain. `before` is memory to be used
    /// again.
    pub fn update(
        &mut self,
        layout: &RowLayout,
        slot: usize,
        after: &[u8],
        txn: &Arc<crate::TxnState>,
        before: &mut Vec<u8>,
    ) -> Result<Arc<Undo>, Malformed> {
        assert!(self.is_live(slot), "only a live row is updated");
        before.clear();
        for entry in delta::own_entries(layout, after) {
            delta::push_column(&self.in_place(layout, slot), entry?.column, before);
        }
        self.set_columns(layout, slot, delta::own_entries(layout, after))?;
        let slots = self.slot_count(layout);
        Ok(self.push_version(slot, slots, txn, Change::Update { before: before[..].into() }))
    }

    /// Applies a delta from the log in place, without a version.
    pub fn apply(&mut self, layout: &RowLayout, slot: usize, delta: &[u8]) -> Result<(), Malformed> {
        self.set_columns(layout, slot, delta::entries(layout, delta))
    }

    fn set_columns<'d>(
        &mut self,
        layout: &RowLayout,
        slot: usize,
        entries: impl Iterator<Item = Result<delta::Entry<'d>, Malformed>>,
    ) -> Result<(), Malformed> {
        self.touch();
        for entry in entries {
            let entry = entry?;
            self.set_stored(layout, slot, entry.column, entry.bytes);
        }
        self.compact_heap_if_worth_it(layout);
        Ok(())
    }

    fn set_stored(&mut self, layout: &RowLayout, slot: usize, column: usize, stored: Option<&[u8]>) {
        let field = &layout.fields[column];
        let base = slot * layout.fixed_size;
        let at = base + field.offset as usize;
        let size = field.storage.size();
        if field.storage.is_var() {
            let row = self.in_place(layout, slot);
            let old_len = if row.is_null(column) { 0 } else { row.var_bytes(column).len() };
            let raw: [u8; 4] = self.slots[at..at + 4].try_into().expect("four bytes");
            let old_at = u32::from_le_bytes(raw) as usize;
            let new_len = stored.map_or(0, <[u8]>::len);
            self.heap_garbage += old_len;
            let new_at = if new_len <= old_len {
                self.heap_garbage -= new_len;
                old_at
            } else {
                let end = self.heap.len();
                self.heap.resize(end + new_len, 0);
                end
            };
            if let Some(bytes) = stored {
                self.heap[new_at..new_at + new_len].copy_from_slice(bytes);
                let new_at = if new_len == 0 { 0 } else { heap_place(new_at) };
                self.slots[at..at + 4].copy_from_slice(&new_at.to_le_bytes());
                self.slots[at + 4..at + 8].copy_from_slice(&heap_place(new_len).to_le_bytes());
            }
        } else if let Some(bytes) = stored {
            self.slots[at..at + size].copy_from_slice(bytes);
        }
        let null = &mut self.slots[base + column / 8];
        if stored.is_none() {
            *null |= 1 << (column % 8);
            self.slots[at..at + size].fill(0);
        } else {
            *null &= !(1 << (column % 8));
        }
    }

    pub fn delete(&mut self, layout: &RowLayout, slot: usize, txn: &Arc<crate::TxnState>) -> Arc<Undo> {
        assert!(self.is_live(slot), "only a live row is deleted");
        self.touch();
        self.set_live(slot, false);
        let slots = self.slot_count(layout);
        self.push_version(slot, slots, txn, Change::Delete)
    }

    /// Deletes without a version: recovery. False if there was no row.
    pub fn erase(&mut self, layout: &RowLayout, slot: usize) -> bool {
        let was = self.is_live(slot);
        if was {
            self.touch();
            self.set_live(slot, false);
            self.wipe(layout, slot);
        }
        was
    }

    /// Marks a live row as locked by `txn`.
    pub fn lock(&mut self, layout: &RowLayout, slot: usize, txn: &Arc<crate::TxnState>) -> Arc<Undo> {
        assert!(!self.frozen, "a frozen page does not change");
        let slots = self.slot_count(layout);
        self.push_version(slot, slots, txn, Change::Lock)
    }

    /// See [`version::mask`].
    pub fn mask(&self, slot: usize, snapshot: &Snapshot<'_>) -> Option<Arc<Undo>> {
        version::mask(self.chain(slot)?, snapshot)
    }

    /// Takes back the newest version of a slot, or a mark that hid it.
    pub fn undo(&mut self, layout: &RowLayout, slot: usize, undo: &Arc<Undo>) {
        let link = undo.link();
        match &link.change {
            Change::Insert => {
                drop(link);
                self.touch();
                self.set_live(slot, false);
                self.drop_head(slot, undo);
                self.wipe(layout, slot);
            }
            Change::Delete => {
                drop(link);
                self.touch();
                self.set_live(slot, true);
                self.drop_head(slot, undo);
            }
            Change::Lock => {
                drop(link);
                self.drop_head(slot, undo);
            }
            Change::Mask => {
                drop(link);
                version::unmask(self.chain(slot).expect("a mark is never the head"), undo);
            }
            Change::Update { before } => {
                self.set_columns(layout, slot, delta::own_entries(layout, before))
                    .expect("before-images are made by this page");
                drop(link);
                self.drop_head(slot, undo);
            }
        }
    }

    /// Drops a committed version that every snapshot sees, and all older ones: `at_once`, or when the newer ones go. True if
    /// the slot has no row left.
    pub fn collect(&mut self, layout: &RowLayout, slot: usize, undo: &Arc<Undo>, at_once: bool) -> bool {
        let Some(head) = self.versions.as_mut().map(|v| &mut v[slot]) else { return false };
        if head.is_none() {
            return false;
        }
        match at_once {
            true => truncate_chain(head, undo),
            false => collect_version(head, undo),
        }
        if head.is_some() {
            return false;
        }
        self.versioned -= 1;
        let gone = !self.is_live(slot);
        if gone {
            self.wipe(layout, slot);
        }
        gone
    }

    /// Clears the bytes of a slot that no snapshot can see.
    fn wipe(&mut self, layout: &RowLayout, slot: usize) {
        let row = self.in_place(layout, slot);
        let garbage: usize = layout
            .var_columns
            .iter()
            .filter(|&&c| !row.is_null(c as usize))
            .map(|&c| row.var_bytes(c as usize).len())
            .sum();
        self.heap_garbage += garbage;
        let at = slot * layout.fixed_size;
        self.slots[at..at + layout.fixed_size].fill(0);
        self.compact_heap_if_worth_it(layout);
    }

    fn compact_heap_if_worth_it(&mut self, layout: &RowLayout) {
        if self.heap_garbage < MIN_HEAP_GARBAGE || self.heap_garbage * 2 < self.heap.len() {
            return;
        }
        let mut heap = Vec::with_capacity(self.heap.len() - self.heap_garbage);
        for slot in 0..self.slot_count(layout) {
            for &column in &*layout.var_columns {
                let row = self.in_place(layout, slot);
                if row.is_null(column as usize) {
                    continue;
                }
                let bytes = row.var_bytes(column as usize);
                let new_at = if bytes.is_empty() { 0 } else { heap_place(heap.len()) };
                heap.extend_from_slice(bytes);
                let at = slot * layout.fixed_size + layout.fields[column as usize].offset as usize;
                self.slots[at..at + 4].copy_from_slice(&new_at.to_le_bytes());
            }
        }
        self.heap = heap;
        self.heap_garbage = 0;
    }
}

#[cfg(test)]
mod tests {
    use avocet_base::{Timestamp, TxnId};
    use avocet_types::{Collation, Datum, SqlType};

    use super::*;
    use crate::TxnState;
    use crate::version::Merged;

    fn layout() -> RowLayout {
        RowLayout::new(&[SqlType::INT, SqlType::VarChar { len: 100, collation: Collation::DEFAULT }])
    }

    fn image(layout: &RowLayout, n: i64, text: &str) -> Vec<u8> {
        let mut image = Vec::new();
        layout.encode(&[Datum::Int(n), Datum::str(text)], &mut image);
        image
    }

    fn set_text(layout: &RowLayout, text: &str) -> Vec<u8> {
        let mut change = Vec::new();
        delta::push_datum(layout, 1, &Datum::str(text), &mut change);
        change
    }

    fn seen(page: &PageBody, layout: &RowLayout, slot: usize, ts: u64) -> Option<String> {
        let mut buf = RowBuf::default();
        match page.read(layout, slot, &Snapshot::at(Timestamp(ts)), &mut buf) {
            SlotRead::Absent => None,
            SlotRead::InPlace => Some(format!("{:?}", page.in_place(layout, slot).get(1))),
            SlotRead::Rebuilt => Some(format!("{:?}", buf.row(layout).get(1))),
        }
    }

    #[test]
    fn every_snapshot_sees_its_version() {
        let layout = layout();
        let page = HotPage::new(&layout, 16);
        let mut page = page.body.write();
        let mut undos = Vec::new();
        for (ts, text) in [(10, "a"), (20, "a longer text"), (30, "")] {
            let txn = Arc::new(TxnState::new(TxnId(ts)));
            undos.push(match ts {
                10 => page.insert(&layout, 3, &image(&layout, 1, text), &txn),
                _ => page
                    .update(&layout, 3, &set_text(&layout, text), &txn, &mut Vec::new())
                    .expect("well-formed"),
            });
            txn.commit(Timestamp(ts));
        }
        let txn = Arc::new(TxnState::new(TxnId(40)));
        undos.push(page.delete(&layout, 3, &txn));
        assert_eq!(seen(&page, &layout, 3, 35).as_deref(), Some("Str(\"\")"));
        txn.commit(Timestamp(40));
        let all: Vec<_> = [5, 10, 25, 35, 40].map(|ts| seen(&page, &layout, 3, ts)).into();
        let want = [None, Some("Str(\"a\")"), Some("Str(\"a longer text\")"), Some("Str(\"\")"), None];
        assert_eq!(all.iter().map(Option::as_deref).collect::<Vec<_>>(), want);
        page.collect(&layout, 3, &undos[1], false);
        assert_eq!(seen(&page, &layout, 3, 25).as_deref(), Some("Str(\"a longer text\")"));
        assert!(page.collect(&layout, 3, &undos[3], false));
        assert!(!page.has_versions());
    }

    /// Each version is of another length than those beside it.
    #[test]
    fn an_old_version_behind_many_long_ones_takes_what_the_row_does() {
        const LEN: usize = 100_000;
        let layout = RowLayout::new(&[
            SqlType::INT,
            SqlType::VarChar { len: 100, collation: Collation::DEFAULT },
            SqlType::Text { size: avocet_types::LobSize::Long, collation: Collation::DEFAULT },
        ]);
        let mut first = Vec::new();
        layout.encode(&[Datum::Int(7), Datum::str("beside it"), Datum::str("the first")], &mut first);
        let page = HotPage::new(&layout, 16);
        let mut page = page.body.write();
        page.place(&layout, 0, &first);
        let text = |n: u64| {
            let digit = char::from(b'0' + (n % 10) as u8);
            digit.to_string().repeat(LEN + (n * 7919 % 1000) as usize)
        };
        for n in 1..=1_000 {
            let txn = Arc::new(TxnState::new(TxnId(n)));
            let mut after = Vec::new();
            delta::push_datum(&layout, 2, &Datum::str(&text(n)), &mut after);
            page.update(&layout, 0, &after, &txn, &mut Vec::new()).expect("well-formed");
            txn.commit(Timestamp(10 * n));
        }
        for (ts, seen) in [(5, "the first".to_owned()), (1_005, text(100)), (5_000, text(500))] {
            let mut buf = RowBuf::default();
            let read = page.read(&layout, 0, &Snapshot::at(Timestamp(ts)), &mut buf);
            assert_eq!(read, SlotRead::Rebuilt);
            let row = buf.row(&layout);
            assert!(row.var_bytes(2) == seen.as_bytes(), "at {ts}");
            assert_eq!(format!("{:?} {:?}", row.get(0), row.get(1)), "Int(7) Str(\"beside it\")");
            assert!(buf.image.capacity() < 1_000_000, "{} bytes at {ts}", buf.image.capacity());
        }
    }

    #[test]
    fn rollback_restores_every_byte() {
        let layout = layout();
        let page = HotPage::new(&layout, 16);
        let mut page = page.body.write();
        page.place(&layout, 0, &image(&layout, 7, "before"));
        let txn = Arc::new(TxnState::new(TxnId(1)));
        let first = page
            .update(&layout, 0, &set_text(&layout, "something much longer"), &txn, &mut Vec::new())
            .expect("ok");
        let second = page.delete(&layout, 0, &txn);
        page.undo(&layout, 0, &second);
        page.undo(&layout, 0, &first);
        assert_eq!(seen(&page, &layout, 0, 0).as_deref(), Some("Str(\"before\")"));
        assert!(!page.has_versions());
    }

    #[test]
    fn merged_versions_show_every_snapshot_what_it_saw() {
        let layout = layout();
        let page = HotPage::new(&layout, 16);
        let mut page = page.body.write();
        page.place(&layout, 0, &image(&layout, 0, "0"));
        let number = |n: i64| {
            let mut change = Vec::new();
            delta::push_datum(&layout, 0, &Datum::Int(n), &mut change);
            change
        };
        let shown = |page: &PageBody, ts: u64| {
            let mut buf = RowBuf::default();
            let row = match page.read(&layout, 0, &Snapshot::at(Timestamp(ts)), &mut buf) {
                SlotRead::Absent => return "none".into(),
                SlotRead::InPlace => page.in_place(&layout, 0),
                SlotRead::Rebuilt => buf.row(&layout),
            };
            format!("{:?} {:?}", row.get(0), row.get(1))
        };
        // Numbers, texts and locks in turn, and a delete at the end.
        let mut versions = Vec::new();
        for ts in 1..=30u64 {
            let txn = Arc::new(TxnState::new(TxnId(ts)));
            versions.push(match (ts, ts % 3) {
                (30, _) => page.delete(&layout, 0, &txn),
                (_, 0) => page.lock(&layout, 0, &txn),
                (_, 1) => page.update(&layout, 0, &number(ts as i64), &txn, &mut Vec::new()).expect("ok"),
                _ => page
                    .update(&layout, 0, &set_text(&layout, &ts.to_string()), &txn, &mut Vec::new())
                    .expect("ok"),
            });
            txn.commit(Timestamp(ts));
        }
        let held = |versions: &[Arc<Undo>]| versions.iter().map(|v| v.link().bytes()).sum::<usize>();
        let (all, mut freed) = (held(&versions), 0);
        let in_use = [4u64, 11, 12, 25];
        let before = in_use.map(|ts| shown(&page, ts));
        let newest = [26u64, 28, 29, 30].map(|ts| shown(&page, ts));
        let interval = |ts: Timestamp| (ts.0 <= 26).then(|| in_use.iter().filter(|&&s| s < ts.0).count());
        // In the order of the commits, as they become visible.
        for version in &versions {
            version.merge_older(&layout, &interval, &mut freed);
        }
        let mut kept = Vec::new();
        let mut next = page.chain(0).cloned();
        while let Some(version) = next {
            kept.push(version.txn.id().0);
            next = version.older();
        }
        // Twelve is a lock alone in its gap, twenty-four is under an update.
        assert_eq!(kept, [30, 29, 28, 27, 26, 25, 12, 11, 4]);
        assert!(versions.iter().all(|v| v.is_settled() != kept.contains(&v.txn.id().0)));
        assert_eq!(freed, all - held(&versions), "before-images that went are told");
        assert_eq!(in_use.map(|ts| shown(&page, ts)), before);
        assert_eq!([26u64, 28, 29, 30].map(|ts| shown(&page, ts)), newest);
        for version in versions.iter().filter(|version| !version.is_settled()) {
            assert_eq!(
                version.merge_older(&layout, &interval, &mut freed),
                Merged::Nothing,
                "nothing is left to merge"
            );
        }
        // A snapshot has gone: what it kept apart is one.
        let interval = |ts: Timestamp| interval(ts).map(|gap| gap.min(3));
        versions[25].merge_older(&layout, &interval, &mut freed);
        assert!(versions[24].is_settled() && !versions[11].is_settled());
        assert_eq!([4u64, 11, 12].map(|ts| shown(&page, ts)), before[..3]);
    }

    #[test]
    fn a_row_that_came_and_went_between_two_snapshots_vanishes() {
        let layout = layout();
        let page = HotPage::new(&layout, 16);
        let mut page = page.body.write();
        let [first, second, third] = [1, 2, 3].map(|id| Arc::new(TxnState::new(TxnId(id))));
        let came = page.insert(&layout, 0, &image(&layout, 7, "came"), &first);
        first.commit(Timestamp(5));
        let changed =
            page.update(&layout, 0, &set_text(&layout, "changed"), &second, &mut Vec::new()).expect("ok");
        second.commit(Timestamp(6));
        let gone = page.delete(&layout, 0, &third);
        third.commit(Timestamp(7));
        let mut freed = 0;
        let between = |ts: Timestamp| Some(usize::from(ts.0 > 6));
        assert_eq!(changed.merge_older(&layout, &between, &mut freed), Merged::Some);
        assert_eq!(
            gone.merge_older(&layout, &between, &mut freed),
            Merged::Nothing,
            "a snapshot sees the row"
        );
        assert_eq!(seen(&page, &layout, 0, 6).as_deref(), Some("Str(\"changed\")"));
        assert_eq!(gone.merge_older(&layout, &|_| Some(0), &mut freed), Merged::Vanished);
        assert!(came.is_settled() && changed.is_settled());
        assert!(page.collect(&layout, 0, &gone, false), "the slot is free");
        assert!(!page.has_versions());
    }

    #[test]
    fn a_collected_version_is_not_found_again_under_one_that_is_taken_back() {
        let layout = layout();
        let page = HotPage::new(&layout, 16);
        let mut page = page.body.write();
        page.place(&layout, 0, &image(&layout, 7, "before"));
        let [done, running] = [1, 2].map(|id| Arc::new(TxnState::new(TxnId(id))));
        let old = page.update(&layout, 0, &set_text(&layout, "after"), &done, &mut Vec::new()).expect("ok");
        done.commit(Timestamp(5));
        let new =
            page.update(&layout, 0, &set_text(&layout, "never"), &running, &mut Vec::new()).expect("ok");
        assert!(!page.collect(&layout, 0, &old, false));
        assert_eq!(seen(&page, &layout, 0, 5).as_deref(), Some("Str(\"after\")"));
        page.undo(&layout, 0, &new);
        assert_eq!(seen(&page, &layout, 0, 5).as_deref(), Some("Str(\"after\")"));
        assert!(!page.has_versions() && page.chain(0).is_none());
    }

    #[test]
    fn heaps_do_not_grow_without_bound() {
        let layout = layout();
        let page = HotPage::new(&layout, 16);
        let mut page = page.body.write();
        page.place(&layout, 0, &image(&layout, 7, ""));
        for round in 0..10_000 {
            let text = "x".repeat(1 + round % 97);
            page.apply(&layout, 0, &set_text(&layout, &text)).expect("ok");
        }
        assert!(page.bytes() < 64 << 10, "{} bytes", page.bytes());
    }
}
