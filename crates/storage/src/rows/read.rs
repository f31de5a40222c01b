//! Reading single rows, at a snapshot or as they are now; new rows; what is known of rows before they are looked at.

use std::sync::Arc;

use avocet_base::{RowId, SegmentNo, Timestamp};
use avocet_types::RowRef;

use super::image::{cold_columns, cold_image};
use crate::error::Result;
use crate::hot::{PageBody, RowBuf, SlotRead};
use crate::relation::{Moment, Relation, SegmentState, pin};
use crate::version::{Snapshot, TxnState, Undo};

/// A row before and after a change, as images; `None` where there is none.
#[derive(Default)]
pub struct RowImages {
    pub before: Option<Vec<u8>>,
    pub after: Option<Vec<u8>>,
}

/// What reading a row that an index entry led to came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowRead {
    Absent,
    /// All columns. The entry may be one of another version, or stale: the key is to be compared.
    Whole,
    /// The columns that were asked for. The row has the entry's key.
    Columns,
}

impl SegmentState {
    /// Counts the rows, which nobody changes meanwhile.
    pub fn count_rows(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Cold(cold) => cold.block.meta().rows() as u64 - cold.deletes.body.read().newest_count(),
            Self::Hot(hot) => hot.pages().map(|(_, page)| page.body.read().live_count() as u64).sum(),
        }
    }
}

impl Relation {
    /// As [`Self::read_row`], for a row that an index entry led to which was read after `moment`: of a row of a block only
    /// `columns` are decoded.
    #[inline]
    pub fn read_columns(
        &self,
        id: RowId,
        snapshot: &Snapshot<'_>,
        columns: &[usize],
        moment: Moment,
        buf: &mut RowBuf,
    ) -> Result<RowRead> {
        if let SegmentState::Cold(cold) = &*self.segment(id.segment()).state()
            && cold.was_there(moment)
        {
            let gone = !cold.is_visible(snapshot)
                || cold.deletes.body.read().is_deleted_for(id.ordinal(), snapshot)
                || !cold_columns(&self.layout, &cold.block, id.ordinal(), columns, &mut buf.image)?;
            return Ok(if gone { RowRead::Absent } else { RowRead::Columns });
        }
        Ok(if self.read_row(id, snapshot, buf)? { RowRead::Whole } else { RowRead::Absent })
    }

    /// Copies the row as a snapshot has it. False if there is none.
    #[inline]
    pub fn read_row(&self, id: RowId, snapshot: &Snapshot<'_>, buf: &mut RowBuf) -> Result<bool> {
        match &*self.segment(id.segment()).state() {
            SegmentState::Empty => Ok(false),
            SegmentState::Hot(hot) => {
                let Some((page, slot)) = self.page_of(hot, id.ordinal()) else { return Ok(false) };
                let body = page.body.read();
                match body.read(&self.layout, slot, snapshot, buf) {
                    SlotRead::Absent => return Ok(false),
                    SlotRead::Rebuilt => {}
                    SlotRead::InPlace => {
                        buf.image.clear();
                        body.in_place(&self.layout, slot).to_image(&mut buf.image);
                    }
                }
                Ok(true)
            }
            SegmentState::Cold(cold) => {
                let gone = !cold.is_visible(snapshot)
                    || cold.deletes.body.read().is_deleted_for(id.ordinal(), snapshot)
                    || !cold_image(&self.layout, &cold.block, id.ordinal(), &mut buf.image)?;
                Ok(!gone)
            }
        }
    }

    /// Shows the row as a snapshot has it, without a copy where it stands so in its page, whose latch is held meanwhile. Shows
    /// nothing if there is none.
    #[inline]
    pub fn show_row(
        &self,
        id: RowId,
        snapshot: &Snapshot<'_>,
        buf: &mut RowBuf,
        visit: &mut dyn FnMut(RowRef<'_>),
    ) -> Result<()> {
        if let SegmentState::Hot(hot) = &*self.segment(id.segment()).state() {
            let Some((page, slot)) = self.page_of(hot, id.ordinal()) else { return Ok(()) };
            let body = page.body.read();
            match body.read(&self.layout, slot, snapshot, buf) {
                SlotRead::Absent => {}
                SlotRead::InPlace => visit(body.in_place(&self.layout, slot)),
                SlotRead::Rebuilt => visit(buf.row(&self.layout)),
            }
            return Ok(());
        }
        if self.read_row(id, snapshot, buf)? {
            visit(buf.row(&self.layout));
        }
        Ok(())
    }

    /// Copies the newest version of a row, committed or not. False if it is deleted, or never was.
    pub fn newest_row(&self, id: RowId, buf: &mut RowBuf) -> Result<bool> {
        if id.segment().0 >= self.segments() {
            return Ok(false);
        }
        let pinned = pin();
        let Some(row) = self.glance(id, &pinned).filter(|row| row.is_live()) else { return Ok(false) };
        row.keep_row(buf);
        row.release(buf)
    }

    /// A row that a running transaction has changed, as it was last committed and as it is now.
    pub fn change_of_row(&self, id: RowId) -> Result<RowImages> {
        let all_committed = Snapshot::at(Timestamp::MAX);
        let (mut before, mut after) = (RowBuf::default(), RowBuf::default());
        let pinned = pin();
        let Some(row) = self.glance(id, &pinned) else { return Ok(RowImages::default()) };
        if row.is_immutable() {
            // Whoever changes a row of a block deletes it there.
            let before = row.release(&mut before)?.then_some(before.image);
            return Ok(RowImages { before, after: None });
        }
        let is_live = row.is_live();
        row.keep_row(&mut after);
        drop(row);
        let existed = self.read_row(id, &all_committed, &mut before)?;
        Ok(RowImages { before: existed.then_some(before.image), after: is_live.then_some(after.image) })
    }

    /// Puts a new row in the place that was given out for it. `None` if its segment was frozen since: it takes no more rows,
    /// and the id stays unused.
    #[inline]
    pub fn insert_row(&self, id: RowId, image: &[u8], txn: &Arc<TxnState>) -> Option<Arc<Undo>> {
        let state = self.segment(id.segment()).state();
        let SegmentState::Hot(hot) = &*state else { return None };
        let (page, slot) = self.place(id.ordinal());
        let mut body = self.page_or_new(hot, page).body.write();
        (!body.frozen).then(|| body.insert(&self.layout, slot, image, txn))
    }

    /// Adds the ids of a segment that may be rows for somebody.
    pub fn possible_rows(&self, number: SegmentNo, ids: &mut Vec<RowId>) {
        match &*self.segment(number).state_owned() {
            SegmentState::Empty => {}
            SegmentState::Hot(hot) => {
                for (n, page) in hot.pages() {
                    let body = page.body.read();
                    let slots = (0..self.slots_per_page())
                        .filter(|&slot| body.is_live(slot) || body.chain(slot).is_some());
                    ids.extend(slots.map(|slot| RowId::new(number, self.ordinal(n, slot))));
                }
            }
            SegmentState::Cold(cold) => {
                let settled = cold.deletes.body.read().all_settled().clone();
                let ordinals = cold.block.meta().ordinals.iter().filter(|&o| !settled.contains(o.into()));
                ids.extend(ordinals.map(|ordinal| RowId::new(number, ordinal)));
            }
        }
    }

    /// Counts the rows, which nobody changes meanwhile.
    pub fn count_rows(&self) -> u64 {
        self.used_segments().map(|(_, state)| state.count_rows()).sum()
    }

    /// Frees the version vectors of hot pages that have no versions just now.
    pub fn free_version_vectors(&self) {
        for (_, state) in self.used_segments() {
            let SegmentState::Hot(hot) = &*state else { continue };
            for (_, page) in hot.pages() {
                let idle = page.body.read().has_idle_version_vector();
                if idle {
                    page.body.write().free_version_vector();
                }
            }
        }
    }

    /// The row will be looked at soon: fetches what leads to it.
    pub fn prefetch_row(&self, id: RowId) {
        match &*self.segment(id.segment()).state() {
            SegmentState::Empty => {}
            SegmentState::Hot(hot) => hot.prefetch_page(self.place(id.ordinal()).0),
            SegmentState::Cold(cold) => {
                if let Some(row) = cold.block.meta().ordinals.row_of(id.ordinal()) {
                    cold.block.prefetch(row);
                }
            }
        }
    }

    /// Fetches the slot and its versions, once [`Self::prefetch_row`] has fetched what leads there.
    pub fn prefetch_slot(&self, id: RowId) {
        self.in_page(id, |body, slot| body.prefetch(&self.layout, slot));
    }

    /// Fetches the strings of a slot that is near.
    pub fn prefetch_strings(&self, id: RowId) {
        self.in_page(id, |body, slot| body.prefetch_strings(&self.layout, slot));
    }

    fn in_page(&self, id: RowId, visit: impl FnOnce(&PageBody, usize)) {
        if let SegmentState::Hot(hot) = &*self.segment(id.segment()).state() {
            let Some((page, slot)) = self.page_of(hot, id.ordinal()) else { return };
            // A page that somebody is changing is in some processor's cache.
            if let Some(body) = page.body.try_read() {
                visit(&body, slot);
            }
        }
    }
}
