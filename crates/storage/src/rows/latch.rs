//! The newest version of a row, under the latch of its page or of its block's delete vector.

use std::ops::Deref;
use std::sync::Arc;

use avocet_base::codec::Malformed;
use avocet_base::{RowId, Timestamp};
use avocet_types::{RowLayout, RowRef};
use crossbeam_epoch::Guard;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::image::cold_image;
use crate::error::Result;
use crate::hot::{PageBody, RowBuf, delta};
use crate::relation::{ColdSegment, Deletes, Relation, Segment, SegmentState};
use crate::version::{Change, Merged, Snapshot, TxnState, Undo, running_other};

/// How a row is latched: [`Shared`] to look at it, [`Exclusive`] to change it.
pub trait Mode<'r> {
    type Page: Deref<Target = PageBody>;
    type Deletes: Deref<Target = Deletes>;

    fn page(body: &'r RwLock<PageBody>) -> Self::Page;
    fn deletes(body: &'r RwLock<Deletes>) -> Self::Deletes;
}

pub struct Shared;
pub struct Exclusive;

impl<'r> Mode<'r> for Shared {
    type Page = RwLockReadGuard<'r, PageBody>;
    type Deletes = RwLockReadGuard<'r, Deletes>;

    #[inline]
    fn page(body: &'r RwLock<PageBody>) -> Self::Page {
        body.read()
    }

    #[inline]
    fn deletes(body: &'r RwLock<Deletes>) -> Self::Deletes {
        body.read()
    }
}

impl<'r> Mode<'r> for Exclusive {
    type Page = RwLockWriteGuard<'r, PageBody>;
    type Deletes = RwLockWriteGuard<'r, Deletes>;

    #[inline]
    fn page(body: &'r RwLock<PageBody>) -> Self::Page {
        body.write()
    }

    #[inline]
    fn deletes(body: &'r RwLock<Deletes>) -> Self::Deletes {
        body.write()
    }
}

/// A row that is latched. The latch is released when it is dropped.
pub struct Latched<'r, M: Mode<'r>> {
    layout: &'r RowLayout,
    place: Place<'r, M>,
}

enum Place<'r, M: Mode<'r>> {
    Slot { body: M::Page, slot: usize },
    Ordinal { cold: &'r ColdSegment, deletes: M::Deletes, ordinal: u16 },
}

/// To change a row.
pub type RowLatch<'r> = Latched<'r, Exclusive>;
/// To look at a row.
pub type RowGlance<'r> = Latched<'r, Shared>;

/// What is found at a row id.
pub enum Access<'r, M: Mode<'r>> {
    /// No row was ever there, or all of its segment is gone.
    Nowhere,
    /// Another transaction has loaded its block and still runs.
    Loading(Loading<'r>),
    Latched(Latched<'r, M>),
}

/// A block whose loader still runs.
pub struct Loading<'r> {
    pub by: &'r Arc<TxnState>,
    segment: &'r Segment,
    state: *const SegmentState,
}

impl Loading<'_> {
    /// Whether the load has not been taken back since.
    pub fn stands(&self) -> bool {
        std::ptr::eq(&*self.segment.state(), self.state)
    }
}

impl Relation {
    /// Latches a row's versions, to change them. `None` if nothing was ever there. As long as the guard pins its epoch, the row
    /// stays where it is found.
    #[inline]
    pub fn latch_versions<'r>(&'r self, id: RowId, pinned: &'r Guard) -> Option<RowLatch<'r>> {
        self.latch(id, pinned)
    }

    /// Latches a row to look at its newest version.
    #[inline]
    pub fn glance<'r>(&'r self, id: RowId, pinned: &'r Guard) -> Option<RowGlance<'r>> {
        self.latch(id, pinned)
    }

    /// As [`Self::glance`]; who has loaded the row's block comes first.
    pub fn glance_for<'r>(&'r self, id: RowId, own: &Arc<TxnState>, pinned: &'r Guard) -> Access<'r, Shared> {
        let segment = self.segment(id.segment());
        if let Some(loading) = loading(segment, own, pinned) {
            return Access::Loading(loading);
        }
        self.latch(id, pinned).map_or(Access::Nowhere, Access::Latched)
    }

    /// Latches a row in order to change it, or to lock it, for a transaction. A row of a column block is read into `cold_row`
    /// before that; see [`Latched::row`].
    #[inline]
    pub fn latch_row<'r>(
        &'r self,
        id: RowId,
        own: &Arc<TxnState>,
        cold_row: &mut RowBuf,
        pinned: &'r Guard,
    ) -> Result<Access<'r, Exclusive>> {
        let (segment, ordinal) = (self.segment(id.segment()), id.ordinal());
        loop {
            match segment.state_in(pinned) {
                SegmentState::Empty => return Ok(Access::Nowhere),
                SegmentState::Hot(hot) => {
                    let Some((page, slot)) = self.page_of(hot, ordinal) else { return Ok(Access::Nowhere) };
                    let body = page.body.write();
                    if !body.frozen {
                        let place = Place::Slot { body, slot };
                        return Ok(Access::Latched(Latched { layout: &self.layout, place }));
                    }
                }
                SegmentState::Cold(cold) => {
                    if let Some(loading) = loading(segment, own, pinned) {
                        return Ok(Access::Loading(loading));
                    }
                    if !cold_image(&self.layout, &cold.block, ordinal, &mut cold_row.image)? {
                        return Ok(Access::Nowhere);
                    }
                    let deletes = cold.deletes.body.write();
                    if !deletes.closed {
                        let place = Place::Ordinal { cold, deletes, ordinal };
                        return Ok(Access::Latched(Latched { layout: &self.layout, place }));
                    }
                }
            }
            std::thread::yield_now();
        }
    }

    #[inline]
    fn latch<'r, M: Mode<'r>>(&'r self, id: RowId, pinned: &'r Guard) -> Option<Latched<'r, M>> {
        let (segment, ordinal) = (self.segment(id.segment()), id.ordinal());
        loop {
            let place = match segment.state_in(pinned) {
                SegmentState::Empty => return None,
                SegmentState::Hot(hot) => {
                    let (page, slot) = self.page_of(hot, ordinal)?;
                    let body = M::page(&page.body);
                    (!body.frozen).then_some(Place::Slot { body, slot })
                }
                SegmentState::Cold(cold) => {
                    let deletes = M::deletes(&cold.deletes.body);
                    (!deletes.closed).then_some(Place::Ordinal { cold, deletes, ordinal })
                }
            };
            match place {
                Some(place) => return Some(Latched { layout: &self.layout, place }),
                // The page or block is being replaced.
                None => std::thread::yield_now(),
            }
        }
    }
}

fn loading<'r>(segment: &'r Segment, own: &Arc<TxnState>, pinned: &'r Guard) -> Option<Loading<'r>> {
    let state = segment.state_in(pinned);
    let SegmentState::Cold(cold) = state else { return None };
    let by = cold.created.as_ref().filter(|loader| loader.is_running() && !Arc::ptr_eq(loader, own))?;
    Some(Loading { by, segment, state })
}

impl<'r, M: Mode<'r>> Latched<'r, M> {
    /// The newest version on its chain.
    #[inline]
    pub fn head(&self) -> Option<&Arc<Undo>> {
        match &self.place {
            Place::Slot { body, slot } => body.chain(*slot),
            Place::Ordinal { deletes, ordinal, .. } => deletes.chain(*ordinal),
        }
    }

    /// Whom a writer has to wait for.
    #[inline]
    pub fn holder(&self, own: &Arc<TxnState>) -> Option<&Arc<TxnState>> {
        running_other(self.head(), own)
    }

    /// Whether the newest version exists, whoever made it.
    #[inline]
    pub fn is_live(&self) -> bool {
        match &self.place {
            Place::Slot { body, slot } => body.is_live(*slot),
            Place::Ordinal { deletes, ordinal, .. } => !deletes.is_deleted(*ordinal),
        }
    }

    /// Whether there are values to be looked at, of this version or of an older one. What a slot that nobody uses says means
    /// nothing.
    #[inline]
    pub fn is_in_use(&self) -> bool {
        match &self.place {
            Place::Slot { body, slot } => body.is_live(*slot) || body.chain(*slot).is_some(),
            Place::Ordinal { .. } => true,
        }
    }

    /// Whether its values never change: an update gives it another place.
    #[inline]
    pub fn is_immutable(&self) -> bool {
        matches!(self.place, Place::Ordinal { .. })
    }

    /// Whether a row that came and went may have left no trace: a slot that was emptied looks like one that never was used.
    #[inline]
    pub fn may_forget(&self) -> bool {
        matches!(self.place, Place::Slot { .. }) && self.head().is_none()
    }

    /// When the newest committed change of it was committed; who only locked it made none.
    pub fn changed_at(&self) -> Timestamp {
        committed(self.head())
    }

    /// When it got the values that it has, and the versions that say how it came to them; none of a row in a column block,
    /// which came with that.
    pub fn values_since(&self) -> (Timestamp, Option<&Arc<Undo>>) {
        match &self.place {
            Place::Slot { body, slot } => (committed(body.chain(*slot)), body.chain(*slot)),
            Place::Ordinal { cold, .. } => {
                let loaded_at = cold.created.as_ref().and_then(|loader| loader.committed_at());
                (loaded_at.unwrap_or(Timestamp::MIN), None)
            }
        }
    }

    /// The newest values. Those of a row in a column block are in `cold_row`, where [`Relation::latch_row`] put them.
    #[inline]
    pub fn row<'a>(&'a self, cold_row: &'a RowBuf) -> RowRef<'a> {
        match &self.place {
            Place::Slot { body, slot } => body.in_place(self.layout, *slot),
            Place::Ordinal { .. } => cold_row.row(self.layout),
        }
    }

    /// Copies the newest values, which are to be needed later; [`Self::release`] gives those of a row in a column block.
    #[inline]
    pub fn keep_row(&self, to: &mut RowBuf) {
        if let Place::Slot { body, slot } = &self.place {
            to.image.clear();
            body.in_place(self.layout, *slot).to_image(&mut to.image);
        }
    }

    /// Releases the latch; `kept`, to which [`Self::keep_row`] was asked to copy, has the row then. False if it cannot be had.
    pub fn release(self, kept: &mut RowBuf) -> Result<bool> {
        match self.place {
            Place::Slot { .. } => Ok(true),
            Place::Ordinal { cold, deletes, ordinal } => {
                drop(deletes);
                cold_image(self.layout, &cold.block, ordinal, &mut kept.image)
            }
        }
    }

    /// Shows the newest values: under the latch, or when it is released. `None` if the block has no such row.
    pub fn show<R>(self, buf: &mut RowBuf, visit: impl FnOnce(&RowRef<'_>) -> R) -> Result<Option<R>> {
        match &self.place {
            Place::Slot { body, slot } => Ok(Some(visit(&body.in_place(self.layout, *slot)))),
            Place::Ordinal { .. } => {
                let layout = self.layout;
                Ok(self.release(buf)?.then(|| visit(&buf.row(layout))))
            }
        }
    }

    /// Whether a predicate holds for the newest values, or for any older ones that are still kept and that `counts` lets pass:
    /// it is asked of each version on the way back, newest first, and its first `false` ends the way.
    pub fn any_version(
        &self,
        cold_row: &RowBuf,
        mut counts: impl FnMut(&Undo) -> bool,
        mut holds: impl FnMut(&RowRef<'_>) -> bool,
    ) -> bool {
        if !self.is_in_use() {
            return false;
        }
        let newest = self.row(cold_row);
        if holds(&newest) {
            return true;
        }
        let Some(head) = self.head().filter(|_| !self.is_immutable()) else { return false };
        let mut buf = RowBuf::default();
        newest.to_image(&mut buf.image);
        let mut next = Some(head.clone());
        while let Some(undo) = next.filter(|undo| counts(undo)) {
            let link = undo.link();
            match &link.change {
                Change::Update { before } => {
                    delta::apply_to_image(self.layout, before, &mut buf.image)
                        .expect("before-images are made by the page");
                    if holds(&buf.row(self.layout)) {
                        return true;
                    }
                }
                Change::Insert => return false,
                Change::Delete | Change::Lock | Change::Mask => {}
            }
            next = link.older();
        }
        false
    }
}

impl RowLatch<'_> {
    /// Locks the row: a version that says nothing but whose it is.
    #[inline]
    pub fn lock(&mut self, txn: &Arc<TxnState>) -> Arc<Undo> {
        match &mut self.place {
            Place::Slot { body, slot } => body.lock(self.layout, *slot, txn),
            Place::Ordinal { deletes, ordinal, .. } => deletes.lock(*ordinal, txn),
        }
    }

    #[inline]
    pub fn delete(&mut self, txn: &Arc<TxnState>) -> Arc<Undo> {
        match &mut self.place {
            Place::Slot { body, slot } => body.delete(self.layout, *slot, txn),
            Place::Ordinal { deletes, ordinal, .. } => deletes.delete(*ordinal, txn),
        }
    }

    /// Changes columns where the row is; see [`PageBody::update`]. The row must not be [immutable](Self::is_immutable).
    #[inline]
    pub fn update(
        &mut self,
        after: &[u8],
        txn: &Arc<TxnState>,
        before: &mut Vec<u8>,
    ) -> Result<Arc<Undo>, Malformed> {
        match &mut self.place {
            Place::Slot { body, slot } => body.update(self.layout, *slot, after, txn, before),
            Place::Ordinal { .. } => unreachable!("a row of a block gets another place when it is updated"),
        }
    }

    /// Whether an update by so many bytes is to give the row another place, if its page may have so many bytes of strings.
    #[inline]
    pub fn is_to_move(&self, bytes: usize, most: usize) -> bool {
        match &self.place {
            Place::Slot { body, .. } => body.heap_bytes() + bytes > most,
            Place::Ordinal { .. } => true,
        }
    }

    /// See [`crate::version::mask`].
    pub fn mask(&self, snapshot: &Snapshot<'_>) -> Option<Arc<Undo>> {
        match &self.place {
            Place::Slot { body, slot } => body.mask(*slot, snapshot),
            Place::Ordinal { deletes, ordinal, .. } => deletes.mask(*ordinal, snapshot),
        }
    }

    /// Takes back the newest version, or a mark that hid the row.
    pub fn undo(&mut self, undo: &Arc<Undo>) {
        match &mut self.place {
            Place::Slot { body, slot } => body.undo(self.layout, *slot, undo),
            Place::Ordinal { deletes, ordinal, .. } => deletes.undo(*ordinal, undo),
        }
    }

    /// Drops a committed lock; false if it is not the newest version.
    pub fn drop_lock(&mut self, lock: &Arc<Undo>) -> bool {
        match &mut self.place {
            Place::Slot { body, slot } => body.drop_lock(*slot, lock),
            Place::Ordinal { deletes, ordinal, .. } => deletes.drop_lock(*ordinal, lock),
        }
    }

    /// Has a version stand for older ones; see [`Undo::merge_older`].
    pub fn merge(
        &mut self,
        undo: &Undo,
        interval: &dyn Fn(Timestamp) -> Option<usize>,
        freed: &mut usize,
    ) -> Merged {
        let merged = undo.merge_older(self.layout, interval, freed);
        if merged == Merged::Vanished
            && let Place::Slot { body, .. } = &mut self.place
            && let Some(at) = undo.txn.committed_at()
        {
            body.note_vanished(at);
        }
        merged
    }

    /// Drops a committed version that every snapshot sees, and all older ones: `at_once`, or when the newer ones go. True if
    /// the row is gone for everyone now.
    pub fn collect(&mut self, undo: &Arc<Undo>, at_once: bool) -> bool {
        match &mut self.place {
            Place::Slot { body, slot } => body.collect(self.layout, *slot, undo, at_once),
            Place::Ordinal { deletes, ordinal, .. } => deletes.collect(*ordinal, undo),
        }
    }
}

/// When the newest version was committed; who only locked the row made none.
fn committed(head: Option<&Arc<Undo>>) -> Timestamp {
    let Some(head) = head else { return Timestamp::MIN };
    if !head.is_lock() {
        return head.txn.committed_at().unwrap_or(Timestamp::MIN);
    }
    let mut next = head.older();
    while let Some(undo) = next {
        if !undo.is_lock() {
            return undo.txn.committed_at().unwrap_or(Timestamp::MIN);
        }
        next = undo.older();
    }
    Timestamp::MIN
}
