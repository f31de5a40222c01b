//! Read, decide, write: a row is locked, shown and changed in one visit.
//!
//! What a procedure does most is to look a row up by its key and to change it by what it finds there. As a locking
//! read and an update that is two descents of an index, two latches, two undo records and a copy of the row; here
//! it is one of each, and no copy: the caller is shown the row where it stands, under its page's latch.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_base::RowId;
use avocet_storage::hot::{RowBuf, delta};
use avocet_storage::index::Direction;
use avocet_types::{Datum, RowLayout, RowRef};

use super::Txn;
use super::locking::may_meet_again;
use super::newest::{Action, Found, LockWait};
use super::read::{KeyRange, ReadScratch, each_with_key, has_key};
use super::write::changes_keys;
use crate::error::Result;
use crate::table::{IndexHandle, TableHandle, split_entry};

/// What is to become of a row that is shown for a change. It stays locked as it is if nothing is said.
pub struct RowChange<'l> {
    layout: &'l RowLayout,
    after: Vec<u8>,
    deleted: bool,
    unwanted: bool,
}

impl RowChange<'_> {
    /// A column gets a value of its type; each column at most once.
    pub fn set(&mut self, column: usize, value: &Datum<'_>) {
        delta::push_datum(self.layout, column, value, &mut self.after);
    }

    /// The row is deleted, whatever else was said.
    pub fn delete(&mut self) {
        self.deleted = true;
    }

    /// The row is not wanted: at READ COMMITTED it is not locked.
    pub fn leave(&mut self) {
        self.unwanted = true;
    }
}

/// What led to a row: a row that has not this key is not the one that is looked for.
struct Lead<'c> {
    index: &'c IndexHandle,
    key: &'c [u8],
    /// Not an entry of the index, only a hint.
    by_hint: bool,
    own_key: &'c mut Vec<u8>,
}

impl Lead<'_> {
    fn fits(&mut self, row: &RowRef<'_>) -> bool {
        has_key(self.index, row, self.key, self.own_key)
    }
}

/// Somebody who is shown the newest version of a row and says what becomes of it.
pub(super) struct Modify<'c> {
    lead: Lead<'c>,
    /// A row that is not wanted is not locked.
    lets_go: bool,
    ask: &'c mut dyn FnMut(RowRef<'_>, &mut RowChange<'_>),
    change: RowChange<'c>,
}

/// What is done to a row.
#[derive(Clone, Copy)]
pub(super) enum Deed<'a> {
    Share,
    Lock { copy: bool },
    Delete { copy: bool },
    Update { after: &'a [u8], changes_keys: bool },
}

impl Deed<'_> {
    /// Whether the row as it was is needed afterwards.
    pub fn wants_old(self) -> bool {
        match self {
            Self::Share => true,
            Self::Lock { copy } | Self::Delete { copy } => copy,
            Self::Update { changes_keys, .. } => changes_keys,
        }
    }
}

impl Modify<'_> {
    /// Whether a hint led to a row that is not the one: nothing is to be done with it.
    pub fn is_misled(&mut self, newest: &RowRef<'_>) -> bool {
        self.lead.by_hint && !self.lead.fits(newest)
    }

    /// Shows the row; nothing is to be done if it has another key than the entry that led here, or is not wanted.
    pub fn decide(&mut self, table: &TableHandle, row: RowRef<'_>) -> Option<Deed<'_>> {
        // A hint was looked at under the same latch.
        if !self.lead.by_hint && !self.lead.fits(&row) {
            return None;
        }
        self.change.unwanted = false;
        (self.ask)(row, &mut self.change);
        if self.lets_go && self.change.unwanted {
            return None;
        }
        Some(self.deed(table))
    }

    fn deed(&self, table: &TableHandle) -> Deed<'_> {
        let after = &self.change.after[..];
        match self.change.deleted {
            true => Deed::Delete { copy: table.is_parent() },
            false if after.is_empty() => Deed::Lock { copy: false },
            false => Deed::Update { after, changes_keys: changes_keys(table, after) },
        }
    }
}

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
        self.gone.clear();
        loop {
            let (gone, waits) = (self.gone.len(), self.waits.load(Ordering::Relaxed));
            // Nobody is asked twice about a row that is left.
            let mut is_shown = false;
            each_with_key(index, key, scan, &mut |id, by_hint| {
                let lead = Lead { index, key, by_hint, own_key };
                let ask = &mut |row: RowRef<'_>, to: &mut RowChange<'_>| {
                    is_shown = true;
                    change(row, to);
                };
                place = self.modify_row(t, table, id, lead, ask)?;
                Ok(is_shown)
            })?;
            // A row that somebody has changed in a block, or deleted and inserted again, is in another place now. While
            // this one waited, another row may have got the key.
            let is_same = self.gone.len() == gone && self.waits.load(Ordering::Relaxed) == waits;
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
        self.gone.clear();
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
                let lead = Lead { index, key, by_hint: false, own_key };
                let (gone, waits) = (self.gone.len(), self.waits.load(Ordering::Relaxed));
                match self.modify_row(t, table, id, lead, ask) {
                    Ok(Some(now)) => {
                        moved.extend(Some(now).filter(|&now| now != id));
                        if may_meet_again(index, direction) {
                            visited.note(key, id);
                        }
                    }
                    // Somebody has moved the row, perhaps to where the scan has been.
                    Ok(None) if self.gone.len() > gone => {
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
                if flow.is_continue() && self.waits.load(Ordering::Relaxed) != waits {
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
    fn on_led(
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
        if !self.is_worth_waiting(table, id, &mut |row| modify.lead.fits(row), old)? {
            return Ok(Found::Nowhere);
        }
        self.on_newest(t, table, id, &mut Action::Modify(modify), LockWait::Wait, old)
    }

    fn modify_row(
        &mut self,
        t: u16,
        table: &Arc<TableHandle>,
        id: RowId,
        lead: Lead<'_>,
        ask: &mut dyn FnMut(RowRef<'_>, &mut RowChange<'_>),
    ) -> Result<Option<RowId>> {
        self.check_footprint()?;
        let mark = self.mark();
        let mut old = std::mem::take(&mut self.scratch.old);
        let mut after = std::mem::take(&mut self.scratch.delta);
        after.clear();
        let change = RowChange { layout: &table.layout, after, deleted: false, unwanted: false };
        let mut modify = Modify { lead, lets_go: self.lets_go(), ask, change };
        let found = self.on_led(t, table, id, &mut modify, &mut old);
        let Modify { change: RowChange { after, deleted, .. }, .. } = modify;
        let outcome = found.and_then(|found| match found {
            Found::Gone => {
                if !self.gone.contains(&id) {
                    self.gone.push(id);
                }
                Ok(None)
            }
            Found::Nowhere | Found::Busy => Ok(None),
            _ if deleted => {
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
