//! Read, decide, write: a row is locked, shown and changed in one visit.
//!
//! What a procedure does most is to look a row up by its key and to change it by what it finds there. As a locking
//! read and an update that is two descents of an index, two latches, two undo records and a copy of the row; here
//! it is one of each, and no copy: the caller is shown the row where it stands, under its page's latch.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_base::RowId;
use avocet_storage::hot::RowBuf;
use avocet_storage::index::Direction;
use avocet_types::RowRef;

use super::action::{Action, Candidate, Found, LockWait, Modify, RowChange};
use super::core::Txn;
use crate::buffers::ReadScratch;
use crate::entries::each_with_key;
use crate::error::Result;
use crate::keys::KeyRange;
use crate::table::{IndexHandle, TableHandle, split_entry};

impl Txn {
    /// Locks the newest committed row that has exactly this key in a unique index, shows it to `change`, and does
    /// what that says. Returns where the row is now (a cold row moves when it is updated); `None` if there is no
    /// such row. On an error nothing of it stays.
    ///
    /// `change` runs under the latch of the row's page: it must not use the engine, nor wait for anything. It may be
    /// called for a row only once it is locked, and so is called once.
    pub fn modify_unique(
        &mut self,
        table: &Arc<TableHandle>,
        index: &IndexHandle,
        key: &[u8],
        scratch: &mut ReadScratch,
        change: &mut dyn FnMut(RowRef<'_>, &mut RowChange<'_>),
    ) -> Result<Option<RowId>> {
        let t = self.writable_table(table)?;
        self.note_locking_read(|reads| {
            reads.add_range(table, table.position_of(index), &KeyRange::prefix(key))
        });
        let ReadScratch { scan, key: own_key, .. } = scratch;
        let mut place = None;
        self.locks.gone.clear();
        loop {
            let (gone, waits) = (self.locks.gone.len(), self.locks.waits.load(Ordering::Relaxed));
            // Nobody is asked twice about a row that is left.
            let mut is_shown = false;
            each_with_key(index, key, scan, &mut |id, by_hint| {
                let candidate = Candidate { index, key, by_hint, own_key };
                let ask = &mut |row: RowRef<'_>, to: &mut RowChange<'_>| {
                    is_shown = true;
                    change(row, to);
                };
                place = self.modify_row(t, table, id, candidate, ask)?;
                Ok(is_shown)
            })?;
            // A row that somebody has changed in a block, or deleted and inserted again, is in another place now. While
            // this one waited, another row may have got the key.
            let is_same = self.locks.gone.len() == gone && self.locks.waits.load(Ordering::Relaxed) == waits;
            if is_shown || is_same {
                return Ok(place);
            }
        }
    }

    /// Like [`Self::modify_unique`], for all newest committed rows whose key is in the range, in key order, until
    /// `change` breaks (which still does what was said of that row). The columns of `index` must stay as they are.
    /// On an error, what was done to the rows before stays.
    pub fn modify_range(
        &mut self,
        table: &Arc<TableHandle>,
        index: &IndexHandle,
        range: &KeyRange,
        direction: Direction,
        scratch: &mut ReadScratch,
        change: &mut dyn FnMut(RowRef<'_>, &mut RowChange<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let t = self.writable_table(table)?;
        self.note_locking_read(|reads| reads.add_range(table, table.position_of(index), range));
        let ReadScratch { scan, key: own_key, visited, .. } = scratch;
        visited.clear();
        self.locks.gone.clear();
        // Where cold rows went, ascending: their new entries lie in the range too, perhaps still ahead.
        let mut moved: Vec<RowId> = Vec::new();
        let mut rest = None;
        loop {
            let mut outcome = Ok(());
            let mut again = false;
            let (lower, upper) = rest.as_ref().unwrap_or(range).bounds();
            index.tree.scan(lower, upper, direction, scan, &mut |entry| {
                let (key, id) = split_entry(entry);
                if moved.binary_search(&id).is_ok() || visited.has(key, id) {
                    return ControlFlow::Continue(());
                }
                let mut flow = ControlFlow::Continue(());
                let ask = &mut |row: RowRef<'_>, to: &mut RowChange<'_>| flow = change(row, to);
                let candidate = Candidate { index, key, by_hint: false, own_key };
                let (gone, waits) = (self.locks.gone.len(), self.locks.waits.load(Ordering::Relaxed));
                match self.modify_row(t, table, id, candidate, ask) {
                    Ok(Some(now)) => {
                        moved.extend(Some(now).filter(|&now| now != id));
                        visited.note(key, id);
                    }
                    // Somebody has moved the row, perhaps to where the scan has been.
                    Ok(None) if self.locks.gone.len() > gone => {
                        visited.begin(key);
                        again = true;
                        return ControlFlow::Break(());
                    }
                    Ok(None) => {}
                    Err(e) => {
                        outcome = Err(e);
                        return ControlFlow::Break(());
                    }
                }
                // Others went on while this one waited: the scan meets what they have added behind this row.
                if flow.is_continue() && self.locks.waits.load(Ordering::Relaxed) != waits {
                    visited.note(key, id);
                    again = true;
                    return ControlFlow::Break(());
                }
                flow
            });
            if !again || outcome.is_err() {
                return outcome;
            }
            visited.begin_anew();
            rest = Some(range.rest_from(&visited.key, direction));
        }
    }

    /// Shows a row that an index led to, and waits for whoever holds it only if it may be meant.
    fn on_candidate(
        &mut self,
        t: u16,
        table: &Arc<TableHandle>,
        id: RowId,
        modify: &mut Modify<'_>,
        old: &mut RowBuf,
    ) -> Result<Found> {
        let found = self.on_newest(t, table, id, &mut Action::Modify(modify), LockWait::SkipLocked, old)?;
        if found != Found::Busy {
            return Ok(found);
        }
        let by_hint = modify.candidate.by_hint;
        if !self.is_worth_waiting(table, id, by_hint, &mut |row| modify.candidate.fits(row), old)? {
            return Ok(Found::Nowhere);
        }
        self.on_newest(t, table, id, &mut Action::Modify(modify), LockWait::Wait, old)
    }

    fn modify_row(
        &mut self,
        t: u16,
        table: &Arc<TableHandle>,
        id: RowId,
        candidate: Candidate<'_>,
        ask: &mut dyn FnMut(RowRef<'_>, &mut RowChange<'_>),
    ) -> Result<Option<RowId>> {
        self.check_footprint()?;
        let mark = self.mark();
        let mut old = std::mem::take(&mut self.scratch.old);
        let mut after = std::mem::take(&mut self.scratch.delta);
        after.clear();
        let change = RowChange { layout: &table.layout, after, deleted: false, unwanted: false };
        let mut modify = Modify { candidate, lets_go: self.lets_go(), ask, change };
        let found = self.on_candidate(t, table, id, &mut modify, &mut old);
        let Modify { change: RowChange { after, deleted, .. }, .. } = modify;
        let outcome = found.and_then(|found| match found {
            Found::Gone => {
                if !self.locks.gone.contains(&id) {
                    self.locks.gone.push(id);
                }
                Ok(None)
            }
            Found::Nowhere | Found::Busy => Ok(None),
            _ if deleted => {
                self.note_before(table, id, &old, false);
                self.note_delete(t, table, id);
                self.foreign_delete(table, &old)?;
                Ok(Some(id))
            }
            _ if after.is_empty() => Ok(Some(id)),
            found => self.finish_update(t, table, id, &after, &found, &mut old),
        });
        self.scratch.old = old;
        self.scratch.delta = after;
        if outcome.is_err() {
            self.roll_back_to(mark);
        }
        outcome
    }
}
