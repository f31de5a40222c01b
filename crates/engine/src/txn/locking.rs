//! Reads that lock the newest committed version of each row before they show it.
//!
//! Which rows stay locked. All that a locking read meets, except at READ COMMITTED: there a row that the statement does not
//! want ([`RowVerdict::Unwanted`]), or that has another key than the index entry that led to it, is let go at once, unless it was
//! held before. A row that is to be changed and that somebody else holds is not even waited for if it is not wanted as it was
//! last committed ([`LockHow::first_look`]): InnoDB's semi-consistent read. Nor is any that the index entry does not mean
//! (`waiting.rs`).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_base::{RowId, SegmentNo, TableId, Timestamp};
use avocet_storage::Snapshot;
use avocet_storage::hot::RowBuf;
use avocet_storage::index::Direction;
use avocet_types::RowRef;
use hashbrown::HashSet;
use roaring::RoaringTreemap;

use super::action::{Found, LockHow, LockWait, RowLock, RowVerdict, TriedLock};
use super::core::Txn;
use super::options::Isolation;
use super::parts::StatementMark;
use crate::buffers::ReadScratch;
use crate::entries::entry_is_of;
use crate::error::{EngineError, Result};
use crate::keys::KeyRange;
use crate::table::{IndexHandle, TableHandle, split_entry};

/// Which entries of an index a locking scan goes through.
#[derive(Clone, Copy)]
pub(super) struct Entries<'e> {
    pub index: &'e IndexHandle,
    pub range: &'e KeyRange,
    pub direction: Direction,
    /// Only rows that the snapshot sees.
    pub strict: bool,
}

impl Txn {
    /// Locks the newest committed version of a row and copies it into `buf`. False if there is none (any more), or
    /// if it is to be left out because somebody else holds it.
    pub fn lock_row(
        &mut self,
        table: &Arc<TableHandle>,
        id: RowId,
        lock: RowLock,
        buf: &mut RowBuf,
    ) -> Result<bool> {
        Ok(self.try_lock_row(table, id, lock, buf)? == TriedLock::Locked)
    }

    /// As [`Self::lock_row`], for who asks why a row is not locked.
    pub fn try_lock_row(
        &mut self,
        table: &Arc<TableHandle>,
        id: RowId,
        lock: RowLock,
        buf: &mut RowBuf,
    ) -> Result<TriedLock> {
        let t = self.touch_to_lock(table, lock)?;
        let id = self.constraints.foreign.place_of(table, id);
        Ok(match self.lock_touched(t, table, id, lock, buf)? {
            Found::InPlace | Found::Relocated => TriedLock::Locked,
            Found::Busy => TriedLock::Busy,
            Found::Nowhere | Found::Gone => TriedLock::Gone,
        })
    }

    /// Visits the newest committed rows whose key is in the range, in key order, each locked first.
    #[expect(clippy::too_many_arguments, reason = "a range of an index, and how it is locked and shown")]
    pub fn lock_scan(
        &mut self,
        table: &Arc<TableHandle>,
        index: &IndexHandle,
        range: &KeyRange,
        direction: Direction,
        lock: RowLock,
        scratch: &mut ReadScratch,
        visit: &mut dyn FnMut(RowId, RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let visit = &mut |id, row: RowRef<'_>| visit(id, row).into();
        self.lock_range(table, index, range, direction, &mut LockHow::all(lock), scratch, visit)
    }

    /// The row, other than `but`, that has a key of a unique index now, locked: what an INSERT was refused for.
    ///
    /// # Errors
    /// Strictly, a row that has come or changed since the snapshot is a conflict, as an update of it would be.
    pub fn lock_key(
        &mut self,
        table: &Arc<TableHandle>,
        index: &IndexHandle,
        key: &[u8],
        but: Option<RowId>,
        scratch: &mut ReadScratch,
    ) -> Result<Option<RowId>> {
        let range = KeyRange::prefix(key);
        let entries = Entries { index, range: &range, direction: Direction::Ascending, strict: false };
        let mut found = None;
        let lock = &mut LockHow::all(RowLock::FOR_UPDATE);
        self.lock_entries(table, entries, lock, scratch, &mut |id, _| {
            if but == Some(id) {
                return RowVerdict::Wanted;
            }
            found = Some(id);
            RowVerdict::Last
        })?;
        Ok(found)
    }

    /// Like [`Self::lock_scan`], for a statement that does not want every row in the range.
    #[expect(clippy::too_many_arguments, reason = "a range of an index, and how it is locked and shown")]
    pub fn lock_range(
        &mut self,
        table: &Arc<TableHandle>,
        index: &IndexHandle,
        range: &KeyRange,
        direction: Direction,
        how: &mut LockHow<'_>,
        scratch: &mut ReadScratch,
        visit: &mut dyn FnMut(RowId, RowRef<'_>) -> RowVerdict,
    ) -> Result<()> {
        let entries = Entries { index, range, direction, strict: self.is_strict() };
        self.lock_entries(table, entries, how, scratch, visit)
    }

    pub(super) fn lock_entries(
        &mut self,
        table: &Arc<TableHandle>,
        Entries { index, range, direction, strict }: Entries<'_>,
        how: &mut LockHow<'_>,
        scratch: &mut ReadScratch,
        visit: &mut dyn FnMut(RowId, RowRef<'_>) -> RowVerdict,
    ) -> Result<()> {
        let t = self.touch_to_lock(table, how.lock)?;
        let mut may_move_on = strict && self.view.is_first_access.load(Ordering::Relaxed);
        if strict {
            self.note_read(|reads| reads.add_range(table, table.position_of(index), range));
        }
        let ReadScratch { scan, row, key, visited, .. } = scratch;
        visited.clear();
        let mut rest = None;
        loop {
            let mut outcome = Ok(());
            let mut again = false;
            let mut changed = None;
            let (lower, upper) = rest.as_ref().unwrap_or(range).bounds();
            index.tree.scan(lower, upper, direction, scan, &mut |entry| {
                let (entry_key, id) = split_entry(entry);
                if visited.has(entry_key, id) {
                    return ControlFlow::Continue(());
                }
                // Strictly, there are only the rows that the snapshot sees.
                if strict {
                    match self.load(table, id, row) {
                        Ok(true) if entry_is_of(index, &row.row(&table.layout), entry, key) => {}
                        Ok(_) => return ControlFlow::Continue(()),
                        Err(e) => {
                            outcome = Err(e);
                            return ControlFlow::Break(());
                        }
                    }
                }
                let (mark, waits) = (self.mark(), self.locks.waits.load(Ordering::Relaxed));
                let fits = &mut |row: &RowRef<'_>| entry_is_of(index, row, entry, key);
                let flow = match self.lock_shown(t, table, id, how, fits, row) {
                    Ok(Found::Nowhere | Found::Busy) => ControlFlow::Continue(()),
                    Ok(Found::Gone) => {
                        again = visited.lose(entry_key, id);
                        if again { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    }
                    Ok(Found::InPlace | Found::Relocated) => {
                        let row = row.row(&table.layout);
                        let mut shown = RowVerdict::Unwanted;
                        if !self.is_strict() || entry_is_of(index, &row, entry, key) {
                            visited.note(entry_key, id);
                            may_move_on = false;
                            self.locks.deferral.note_shown();
                            shown = visit(id, row);
                        }
                        if shown == RowVerdict::Unwanted {
                            self.let_go(mark);
                        }
                        shown.flow()
                    }
                    Err(EngineError::SnapshotConflict(_)) if may_move_on => {
                        changed = Some(id);
                        ControlFlow::Break(())
                    }
                    Err(e) => {
                        outcome = Err(e);
                        ControlFlow::Break(())
                    }
                };
                // Others went on while this one waited: the scan meets what they have added behind this row.
                if flow.is_continue() && self.locks.waits.load(Ordering::Relaxed) != waits {
                    visited.note(entry_key, id);
                    again = true;
                    return ControlFlow::Break(());
                }
                flow
            });
            if let Some(id) = changed {
                self.lock_and_move_on(t, table, id, how.lock)?;
                continue;
            }
            if !again || outcome.is_err() {
                return outcome;
            }
            visited.begin_anew();
            rest = Some(range.rest_from(&visited.key, direction));
        }
    }

    /// Visits the newest versions of all rows, in row id order, each locked first.
    ///
    /// A cold row that somebody changes meanwhile moves, perhaps to where this has been, and others add rows there while
    /// this waits: then it goes through all once more, for what it has not visited.
    pub fn lock_table(
        &mut self,
        table: &Arc<TableHandle>,
        how: &mut LockHow<'_>,
        visit: &mut dyn FnMut(RowId, RowRef<'_>) -> RowVerdict,
    ) -> Result<()> {
        self.note_locking_read(|reads| reads.add_table(table));
        let t = self.touch_to_lock(table, how.lock)?;
        let mut ids = Vec::new();
        let mut buf = RowBuf::default();
        let (mut visited, mut gone) = (RoaringTreemap::new(), HashSet::new());
        loop {
            let mut again = false;
            for segment in (0..table.relation.segments()).map(SegmentNo) {
                ids.clear();
                table.relation.possible_rows(segment, &mut ids);
                for &id in &ids {
                    if visited.contains(id.0) || self.is_strict() && !self.load(table, id, &mut buf)? {
                        continue;
                    }
                    let (mark, waits) = (self.mark(), self.locks.waits.load(Ordering::Relaxed));
                    let found = self.lock_shown(t, table, id, how, &mut |_| true, &mut buf)?;
                    again |= self.locks.waits.load(Ordering::Relaxed) != waits;
                    match found {
                        Found::Nowhere | Found::Busy => {}
                        Found::Gone => again |= gone.insert(id),
                        Found::InPlace | Found::Relocated => {
                            visited.insert(id.0);
                            self.locks.deferral.note_shown();
                            match visit(id, buf.row(&table.layout)) {
                                RowVerdict::Wanted => {}
                                RowVerdict::Unwanted => self.let_go(mark),
                                RowVerdict::Last => return Ok(()),
                            }
                        }
                    }
                }
            }
            if !again {
                return Ok(());
            }
        }
    }

    /// Locks the newest version of a row and copies it. If somebody else holds it, a look at its versions comes first; `fits`
    /// says whether one is the row which the scan was led to.
    fn lock_shown(
        &mut self,
        t: u16,
        table: &Arc<TableHandle>,
        id: RowId,
        how: &mut LockHow<'_>,
        fits: &mut dyn FnMut(&RowRef<'_>) -> bool,
        buf: &mut RowBuf,
    ) -> Result<Found> {
        let lock = how.lock;
        let at_once = RowLock { wait: LockWait::SkipLocked, ..lock };
        let found = self.lock_fitting(t, table, id, at_once, fits, buf)?;
        if found != Found::Busy || lock == at_once {
            return Ok(found);
        }
        if !self.is_worth_waiting(table, id, false, fits, buf)? {
            return Ok(Found::Nowhere);
        }
        if let Some(is_wanted) = &mut how.first_look
            && self.lets_go()
        {
            let committed = Snapshot { ts: Timestamp::MAX, own: Some(self.state()) };
            let is_there = table.relation.read_row(id, &committed, buf)?;
            // A row that is not there has left nothing in the buffer.
            let mut is_asked_for = |row: RowRef<'_>| fits(&row) && is_wanted(row);
            if !(is_there && is_asked_for(buf.row(&table.layout))) {
                return Ok(Found::Busy);
            }
        }
        self.lock_fitting(t, table, id, lock, fits, buf)
    }

    /// Begins to use a table whose rows are to be locked, whether there are any or not.
    pub fn use_to_lock(&mut self, table: &Arc<TableHandle>, lock: RowLock) -> Result<()> {
        self.touch_to_lock(table, lock).map(drop)
    }

    /// Who locks rows in order to change them is kept out by LOCK TABLES … READ, whatever there is to lock.
    #[inline]
    fn touch_to_lock(&mut self, table: &Arc<TableHandle>, lock: RowLock) -> Result<u16> {
        if lock.exclusive { self.touch_to_write(table) } else { self.touch(table) }
    }

    /// Whether rows that are locked and then not wanted are let go.
    pub(super) fn lets_go(&self) -> bool {
        self.options.isolation == Isolation::ReadCommitted
    }

    /// A row that was locked since the mark, and nothing else was done since, is not wanted: READ COMMITTED lets go of
    /// it, unless it was held before.
    pub fn let_go(&mut self, mark: StatementMark) {
        let is_new = self.changes.undo.len() > mark.undo || self.locks.shared.len() > mark.shared;
        if is_new && self.lets_go() {
            self.roll_back_to(mark);
        }
    }

    /// Like [`Self::let_go`], for those of the rows locked since the mark that are not wanted after all.
    pub fn let_go_of(&mut self, mark: StatementMark, is_wanted: &dyn Fn(TableId, RowId) -> bool) {
        if !self.lets_go() {
            return;
        }
        let since = self.changes.undo.split_off(mark.undo);
        for entry in since {
            let table = self.changes.tables[usize::from(entry.table)].id();
            if !entry.undo.is_lock() || is_wanted(table, entry.row) {
                self.changes.undo.push(entry);
            } else {
                self.undo_one(&entry);
            }
        }
    }
}
