//! Writes: insert, update, delete; and the unique keys that they claim. How they come by the newest version of a row
//! is in `txn/newest.rs`.
//!
//! Order within one write: the row first (uncommitted, so nobody else sees it), then its index entries. An
//! index entry is therefore never without its row, and whoever removes a stale entry sees, under the page
//! latch, whether the key is in use again.

use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_base::{RowId, Timestamp};
use avocet_storage::hot::{RowBuf, delta};
use avocet_storage::relation::pin;
use avocet_storage::rows::Access;
use avocet_storage::version::{Change, StaleEntry};
use avocet_storage::{TxnState, Undo};
use avocet_types::{Datum, IndexKind, RowRef};

use super::action::{Action, Found, LockWait};
use super::core::Txn;
use super::deferral::MOST_RETAKEN;
use super::newest::Watch;
use crate::activity::CountedAs;
use crate::buffers::Scratch;
use crate::entries::{self, changed_columns, changes_keys};
use crate::error::{EngineError, Result};
use crate::garbage::UndoEntry;
use crate::keys::KeyRange;
use crate::locks::{RowKey, Waiter};
use crate::redo::Op;
use crate::table::{TableHandle, split_entry};

/// What a unique key's entries say.
#[derive(PartialEq)]
enum Claim {
    Free,
    Taken,
    /// That depends on what becomes of another transaction's version of a row. The claimant is woken when it is to look again.
    Wait,
    /// A row changed its place or its holder ended: to be looked at again.
    Again,
}

impl Txn {
    /// `before` is the length of the before-image.
    pub(super) fn push_undo(
        &mut self,
        table: u16,
        row: RowId,
        undo: Arc<Undo>,
        before: usize,
        counted: CountedAs,
    ) {
        self.changes.undo_bytes += before;
        self.changes.undo.push(UndoEntry { table, row, undo, bytes: before as u32, counted });
    }

    /// Checks that the transaction may write to a table; its position among the transaction's tables.
    pub(crate) fn writable_table(&mut self, table: &Arc<TableHandle>) -> Result<u16> {
        self.check_writable(table)?;
        if Self::has_foreign_keys(table) {
            self.begin_foreign(table)?;
        }
        self.touch_to_write(table)
    }

    fn check_writable(&self, table: &TableHandle) -> Result<()> {
        if self.options.read_only && !table.id().is_temporary() {
            return Err(EngineError::ReadOnly);
        }
        self.engine.health.check()
    }

    /// Inserts a row of values that are already of the columns' types. On an error nothing of it stays.
    pub fn insert(&mut self, table: &Arc<TableHandle>, row: &[Datum<'_>]) -> Result<RowId> {
        self.check_room()?;
        let t = self.writable_table(table)?;
        let mut image = std::mem::take(&mut self.scratch.image);
        image.clear();
        table.layout.encode(row, &mut image);
        let outcome = match table.is_child() {
            true => self.insert_child(t, table, &image),
            false => self.insert_image(t, table, &image, CountedAs::Insert),
        };
        self.scratch.image = image;
        outcome
    }

    /// The parents are looked for before unique keys are: a row that lacks one is refused for that, whatever else it lacks.
    fn insert_child(&mut self, t: u16, table: &Arc<TableHandle>, image: &[u8]) -> Result<RowId> {
        let mark = self.mark();
        let (fixed, heap) = image.split_at(table.layout.fixed_size);
        let checked = self.foreign_insert(table, &RowRef::new(&table.layout, fixed, heap));
        let outcome = checked.and_then(|()| self.insert_image(t, table, image, CountedAs::Insert));
        if outcome.is_err() {
            self.roll_back_to(mark);
        }
        outcome
    }

    fn insert_image(
        &mut self,
        t: u16,
        table: &Arc<TableHandle>,
        image: &[u8],
        counted: CountedAs,
    ) -> Result<RowId> {
        entries::check_row_len(image.len())?;
        let mark = self.mark();
        let (id, undo) = self.place_new(table, image)?;
        self.changes.row_changes[t as usize] += 1;
        self.push_undo(t, id, undo, 0, counted);
        self.changes.push(&Op::Insert { table: table.id(), row: id, image });
        let (fixed, heap) = image.split_at(table.layout.fixed_size);
        let row = RowRef::new(&table.layout, fixed, heap);
        for index in 0..table.indexes.len() {
            if let Err(e) = self.add_entry(table, index, &row, id) {
                self.roll_back_to(mark);
                return Err(e);
            }
        }
        Ok(id)
    }

    /// Puts a new row into the insert segment.
    fn place_new(&mut self, table: &TableHandle, image: &[u8]) -> Result<(RowId, Arc<Undo>)> {
        loop {
            let id = self.next_row_id(table, image.len())?;
            if let Some(undo) = table.relation.insert_row(id, image, &self.state) {
                self.note_row_id(table, id);
                return Ok((id, undo));
            }
        }
    }

    /// Adds the index entry of a row version that is in place already.
    fn add_entry(
        &mut self,
        table: &Arc<TableHandle>,
        index: usize,
        row: &RowRef<'_>,
        id: RowId,
    ) -> Result<()> {
        let mut entry = std::mem::take(&mut self.scratch.key);
        entry.clear();
        table.indexes[index].entry(row, id, &mut entry);
        let outcome = self.add_encoded(table, index, row, &entry, id);
        self.scratch.key = entry;
        outcome
    }

    fn add_encoded(
        &mut self,
        table: &Arc<TableHandle>,
        index: usize,
        row: &RowRef<'_>,
        entry: &[u8],
        id: RowId,
    ) -> Result<()> {
        entries::check_entry_len(entry.len())?;
        let handle = &table.indexes[index];
        if !handle.def.kind.is_unique() || handle.has_null(row) {
            handle.tree.insert(entry);
            return Ok(());
        }
        self.claim(table, index, entry, id).map_err(|e| match e {
            EngineError::DuplicateKey { table: name, key, .. } => {
                EngineError::DuplicateKey { entry: entries::key_text(table, index, row), table: name, key }
            }
            other => other,
        })
    }

    /// Adds an entry of a unique index, unless another row has the key.
    pub(crate) fn claim(
        &mut self,
        table: &Arc<TableHandle>,
        index: usize,
        entry: &[u8],
        id: RowId,
    ) -> Result<()> {
        let mut place = self.place_among_watchers();
        let outcome = self.claim_in_turn(table, index, entry, id, &mut place);
        self.leave_or_stand(place, &outcome);
        outcome
    }

    /// Whoever depends on another transaction's row stands among those whom that wakes since the moment, under the row's
    /// latch, when this was seen.
    fn claim_in_turn(
        &mut self,
        table: &Arc<TableHandle>,
        index: usize,
        entry: &[u8],
        id: RowId,
        place: &mut Option<Arc<Waiter>>,
    ) -> Result<()> {
        let handle = &table.indexes[index];
        let (key, _) = split_entry(entry);
        let engine = self.engine.clone();
        loop {
            let latch = engine.key_latch(handle.def.id, key);
            // Nearly always nobody has the key: then it is taken where that was seen.
            if handle.tree.insert_alone(entry, key.len()) {
                return Ok(());
            }
            match self.check_claims(table, index, key, id, place)? {
                Claim::Free => {
                    handle.tree.insert(entry);
                    drop(latch);
                    return match table.clustered_index() == Some(index) {
                        true => self.take_place(table, key, id),
                        false => Ok(()),
                    };
                }
                Claim::Taken => {
                    self.note_locking_read(|reads| reads.add_range(table, index, &KeyRange::prefix(key)));
                    return Err(EngineError::DuplicateKey {
                        entry: String::new(),
                        table: table.def.name.clone(),
                        key: handle.def.name.clone(),
                    });
                }
                Claim::Wait => {
                    drop(latch);
                    self.meet_others();
                    self.park(place.as_ref().expect("it stands among those who watch"), MOST_RETAKEN)?;
                }
                Claim::Again => {
                    drop(latch);
                    std::thread::yield_now();
                }
            }
        }
    }

    fn check_claims(
        &mut self,
        table: &TableHandle,
        index: usize,
        key: &[u8],
        id: RowId,
        place: &mut Option<Arc<Waiter>>,
    ) -> Result<Claim> {
        let (engine, state, weight) = (self.engine.clone(), self.state.clone(), self.weight());
        let Scratch { scan, old, old_key, .. } = &mut self.scratch;
        let watch = Watch { locks: &engine.row_locks, txn: &state, weight };
        let met = Timestamp::MIN;
        let mut claimant = Claimant { table, index, key, watch, place, buf: old, own_key: old_key, met };
        let mut outcome = Ok(Claim::Free);
        table.indexes[index].tree.prefix_scan(key, scan, &mut |other| {
            let (_, other_id) = split_entry(other);
            if other_id == id {
                return ControlFlow::Continue(());
            }
            outcome = claimant.check(other_id);
            if matches!(outcome, Ok(Claim::Free)) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        self.view.newest_met = self.view.newest_met.max(claimant.met);
        outcome
    }

    /// Deletes the newest version of a row. False if it is gone already.
    pub fn delete(&mut self, table: &Arc<TableHandle>, id: RowId) -> Result<bool> {
        self.check_footprint()?;
        let t = self.writable_table(table)?;
        let id = self.constraints.foreign.place_of(table, id);
        let mark = self.mark();
        let mut old = std::mem::take(&mut self.scratch.old);
        let found = self.on_newest(t, table, id, &mut Action::Delete, LockWait::Wait, &mut old);
        let outcome = found.and_then(|found| match found {
            Found::InPlace | Found::Relocated => {
                self.note_before(table, id, &old, false);
                self.note_delete(t, table, id);
                self.foreign_delete(table, &old).map(|()| true)
            }
            _ => Ok(false),
        });
        self.scratch.old = old;
        if outcome.is_err() && table.is_parent() {
            self.roll_back_to(mark);
        }
        outcome
    }

    /// Whether others are told of what it changes in a table: then they want the rows as they were.
    pub(super) fn captures(&self, table: &TableHandle) -> bool {
        self.engine.options.capture_changes
            && self.options.captured
            && !table.id().is_temporary()
            && !table.is_unfinished()
    }

    /// The row as it was, for the log, before what changes it.
    fn note_before_row(&mut self, table: &TableHandle, row: RowId, old: &RowBuf, moves: bool) {
        self.changes.push(&Op::Before { table: table.id(), row, image: &old.image, moves });
    }

    #[inline]
    pub(super) fn note_before(&mut self, table: &TableHandle, row: RowId, old: &RowBuf, moves: bool) {
        if self.captures(table) {
            self.note_before_row(table, row, old, moves);
        }
    }

    /// The row is deleted: books and redo.
    pub(super) fn note_delete(&mut self, t: u16, table: &TableHandle, id: RowId) {
        self.changes.row_changes[t as usize] -= 1;
        self.changes.push(&Op::Delete { table: table.id(), row: id });
    }

    /// Changes columns of the newest version of a row: values of the columns' types, each column at most once.
    /// Returns where the row is now (a cold row moves), or `None` if it is gone. On an error nothing of it stays.
    pub fn update(
        &mut self,
        table: &Arc<TableHandle>,
        id: RowId,
        changes: &[(usize, Datum<'_>)],
    ) -> Result<Option<RowId>> {
        let t = self.writable_table(table)?;
        let id = self.constraints.foreign.place_of(table, id);
        let mark = self.mark();
        let mut after = std::mem::take(&mut self.scratch.delta);
        let mut old = std::mem::take(&mut self.scratch.old);
        after.clear();
        for (column, datum) in changes {
            delta::push_datum(&table.layout, *column, datum, &mut after);
        }
        let outcome = self
            .on_newest(t, table, id, &mut Action::Update(&after), LockWait::Wait, &mut old)
            .and_then(|found| self.finish_update(t, table, id, &after, &found, &mut old));
        self.scratch.delta = after;
        self.scratch.old = old;
        if outcome.is_err() {
            self.roll_back_to(mark);
        }
        outcome
    }

    /// The row is changed in place, or its old place is deleted: redo, index entries, the new place, foreign keys.
    pub(super) fn finish_update(
        &mut self,
        t: u16,
        table: &Arc<TableHandle>,
        id: RowId,
        after: &[u8],
        found: &Found,
        old: &mut RowBuf,
    ) -> Result<Option<RowId>> {
        let before = self.foreign_before(table, after, old);
        let place = match (self.place_update(t, table, id, after, found, old), &before) {
            // Who has children cannot have another's key, either.
            (Err(error @ EngineError::DuplicateKey { .. }), Some(before)) => {
                self.foreign_update_of_parent(table, before, after, true)?;
                return Err(error);
            }
            (place, _) => place?,
        };
        if let (Some(before), Some(_)) = (before, place) {
            self.foreign_update(table, &before, after)?;
        }
        Ok(place)
    }

    fn place_update(
        &mut self,
        t: u16,
        table: &Arc<TableHandle>,
        id: RowId,
        after: &[u8],
        found: &Found,
        old: &mut RowBuf,
    ) -> Result<Option<RowId>> {
        self.check_room()?;
        match found {
            Found::Nowhere | Found::Gone | Found::Busy => Ok(None),
            Found::InPlace => {
                self.note_before(table, id, old, false);
                self.changes.push(&Op::Update { table: table.id(), row: id, delta: after });
                if changes_keys(table, after) {
                    self.move_entries(table, id, after, old)?;
                }
                Ok(Some(id))
            }
            Found::Relocated => {
                self.note_before(table, id, old, true);
                self.note_delete(t, table, id);
                delta::apply_to_image(&table.layout, after, &mut old.image)
                    .map_err(crate::error::malformed("row delta"))?;
                let mut image = std::mem::take(&mut self.scratch.image);
                image.clear();
                old.row(&table.layout).to_image(&mut image);
                let moved = self.insert_image(t, table, &image, CountedAs::Nothing);
                self.scratch.image = image;
                if let Ok(to) = moved {
                    table.relocations.note(id, to, &self.state);
                }
                moved.map(Some)
            }
        }
    }

    /// After an update in place: entries under the new keys are added, those under the old ones become stale.
    fn move_entries(
        &mut self,
        table: &Arc<TableHandle>,
        id: RowId,
        after: &[u8],
        old: &mut RowBuf,
    ) -> Result<()> {
        // Marks of what the row has replaced may have come after it.
        let updated = self.changes.undo.iter().rposition(|entry| !entry.undo.is_mask());
        let updated = updated.expect("the row was changed in place");
        entries::each_moved(table, id, after, old, &mut |moved| {
            let stale = StaleEntry { index: table.indexes[moved.index].def.id, entry: moved.before.into() };
            let entry = &mut self.changes.undo[updated];
            self.changes.undo_bytes += stale.entry.len();
            entry.bytes += stale.entry.len() as u32;
            entry.undo.link().stale.push(stale);
            self.add_encoded(table, moved.index, moved.row, moved.now, id)
        })
    }
}

/// Whether the transaction that holds a row has left its key in a secondary index as it was committed: what becomes of the
/// transaction does not matter then. The primary key stands for the row, and waits.
fn leaves_key(table: &TableHandle, index: usize, head: Option<&Arc<Undo>>) -> bool {
    let index = &table.indexes[index];
    let Some(head) = head.filter(|_| index.def.kind != IndexKind::Primary) else { return false };
    let mut next = Some(head.clone());
    while let Some(undo) = next.filter(|undo| Arc::ptr_eq(&undo.txn, &head.txn)) {
        let link = undo.link();
        match &link.change {
            Change::Lock => {}
            Change::Update { before } if !changed_columns(table, before).any(|column| index.uses(column)) => {
            }
            Change::Insert | Change::Delete | Change::Update { .. } | Change::Mask => return false,
        }
        next = link.older();
    }
    true
}

/// Whoever claims a key of a unique index, and looks at the rows that have it or had it.
struct Claimant<'c> {
    table: &'c TableHandle,
    index: usize,
    key: &'c [u8],
    watch: Watch<'c>,
    place: &'c mut Option<Arc<Waiter>>,
    buf: &'c mut RowBuf,
    own_key: &'c mut Vec<u8>,
    /// When the row was changed that has the key.
    met: Timestamp,
}

impl Claimant<'_> {
    /// Whether the newest version of a row exists and has the key.
    fn check(&mut self, id: RowId) -> Result<Claim> {
        let (table, own) = (self.table, self.watch.txn);
        let pinned = pin();
        let row = match table.relation.glance_for(id, own, &pinned) {
            Access::Nowhere => return Ok(Claim::Free),
            Access::Loading(loading) => {
                let claim = self.wait_for(loading.by, id);
                // If the load was taken back meanwhile, nobody would wake this one.
                return Ok(if loading.stands() { claim } else { Claim::Again });
            }
            Access::Latched(row) => row,
        };
        if let Some(holder) = row.holder(own)
            && !leaves_key(table, self.index, row.head())
        {
            return Ok(self.wait_for(holder, id));
        }
        if !row.is_live() {
            return Ok(Claim::Free);
        }
        let changed_at = row.changed_at();
        let Self { buf, key, own_key, index, .. } = self;
        let keys = &table.indexes[*index].keys;
        if row.show(buf, |row| keys.has_key(row, key, own_key))? != Some(true) {
            return Ok(Claim::Free);
        }
        self.met = self.met.max(changed_at);
        Ok(Claim::Taken)
    }

    /// Under the latch of the row.
    fn wait_for(&mut self, holder: &Arc<TxnState>, row: RowId) -> Claim {
        let key = RowKey { table: self.table.id(), row };
        match self.watch.for_end_of(holder, key, self.place) {
            true => Claim::Wait,
            false => Claim::Again,
        }
    }
}
