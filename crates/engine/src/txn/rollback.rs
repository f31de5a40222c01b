//! Taking changes back: to a mark, or all of them.

use std::sync::Arc;

use avocet_base::{RowId, SegmentNo};
use avocet_storage::Undo;
use avocet_storage::hot::delta;
use avocet_storage::relation::{SegmentState, pin};
use avocet_storage::rows::RowLatch;
use avocet_storage::version::Change;
use avocet_types::RowLayout;

use super::core::Txn;
use super::parts::StatementMark;
use crate::block_rows;
use crate::buffers::Scratch;
use crate::entries;
use crate::garbage::UndoEntry;
use crate::locks::RowKey;
use crate::table::TableHandle;

impl Txn {
    /// Takes back everything since the mark; locks taken since are released too.
    pub fn rollback_statement(&mut self, mark: StatementMark) {
        self.roll_back_to(mark);
    }

    pub(super) fn roll_back_to(&mut self, mark: StatementMark) {
        while self.changes.undo.len() > mark.undo {
            let entry = self.changes.undo.pop().expect("longer than the mark");
            self.changes.undo_bytes -= entry.bytes as usize;
            self.undo_one(&entry);
        }
        for load in self.changes.loads.drain(mark.loads..).rev().collect::<Vec<_>>() {
            let table = &self.changes.tables[load.table as usize];
            block_rows::remove_entries(table, load.segment);
            table.relation.segment(load.segment).replace(SegmentState::Empty);
            self.give_back_load(table, load.segment);
            self.changes.row_changes[load.table as usize] -= load.rows as i64;
            self.engine.blocks.discard(load.block);
        }
        self.changes.redo.truncate(mark.redo);
        self.changes.unlogged = mark.unlogged;
        self.constraints.foreign.roll_back_to(&mark);
        self.unshare_rows(mark.shared);
        self.shrink_footprint();
    }

    /// Gives back the rows shared since there were so many of them.
    pub(super) fn unshare_rows(&mut self, shared: usize) {
        if self.locks.shared.len() > shared {
            self.engine.row_locks.unshare(&self.state, &self.locks.shared[shared..]);
            self.locks.shared.truncate(shared);
        }
    }

    /// After its end: whoever waits for it may go on.
    pub(super) fn release_rows(&mut self) {
        if self.state.is_waited_for() {
            self.engine.row_locks.wake_waiters_of(&self.state);
        }
        self.unshare_rows(0);
    }

    /// A version of a row was taken back, under whose latch this is; `head` is the newest one now.
    pub(super) fn note_taken_back(&self, table: &TableHandle, row: RowId, head: Option<&Arc<Undo>>) {
        let key = RowKey { table: table.id(), row };
        let locks = &self.engine.row_locks;
        if !self.state.is_waited_for() || !locks.may_be_contended(&key) {
            return;
        }
        match head.is_some_and(|head| Arc::ptr_eq(&head.txn, &self.state)) {
            true => locks.wake_watchers(&key),
            false => locks.give_back(&key, &self.state),
        }
    }

    /// A load was taken back.
    pub(super) fn give_back_load(&self, table: &TableHandle, segment: SegmentNo) {
        if self.state.is_waited_for() {
            let is_of_it = |key: &RowKey| key.table == table.id() && key.row.segment() == segment;
            self.engine.row_locks.give_back_all(&self.state, is_of_it);
        }
    }

    pub(super) fn undo_one(&mut self, entry: &UndoEntry) {
        let table = self.changes.tables[entry.table as usize].clone();
        if table.touched.is_watched() {
            table.touched.note(std::iter::once(entry.row));
        }
        let rows = &mut self.changes.row_changes[entry.table as usize];
        let change = Undone::of(&entry.undo, &table.layout);
        match change {
            Undone::Insert => {
                *rows -= 1;
                table.relocations.forget(entry.row);
            }
            Undone::Delete => *rows += 1,
            Undone::Mask => self.changes.masks -= 1,
            Undone::Update(_) | Undone::Lock => {}
        }
        let pinned = pin();
        let latched = table.relation.latch_versions(entry.row, &pinned);
        let mut row = latched.expect("a segment with a running transaction's versions stays");
        let has_entries = matches!(change, Undone::Insert | Undone::Update(_)) && !table.indexes.is_empty();
        if has_entries {
            row.keep_row(&mut self.scratch.old);
        }
        row.undo(&entry.undo);
        match &change {
            _ if !has_entries => {}
            Undone::Insert => {
                entries::remove_entries(&table, &self.scratch.old.row(&table.layout), entry.row);
            }
            Undone::Update(columns) => self.remove_changed_entries(&table, &row, entry.row, columns),
            Undone::Delete | Undone::Lock | Undone::Mask => {}
        }
        self.note_taken_back(&table, entry.row, row.head());
    }

    /// After the undo of an update: the entries that it had added go. `scratch.old` holds the row as it was changed.
    pub(super) fn remove_changed_entries(
        &mut self,
        table: &TableHandle,
        row: &RowLatch<'_>,
        id: RowId,
        changed: &[usize],
    ) {
        let Scratch { old, key, .. } = &mut self.scratch;
        for (n, index) in table.indexes.iter().enumerate() {
            if changed.iter().any(|&c| index.uses(c)) {
                key.clear();
                index.entry(&old.row(&table.layout), id, key);
                entries::remove_unless_needed(table, row, id, n, key);
            }
        }
    }
}

/// What is taken back with a version.
enum Undone {
    Insert,
    /// Of these columns.
    Update(Vec<usize>),
    Delete,
    Lock,
    Mask,
}

impl Undone {
    fn of(undo: &Undo, layout: &RowLayout) -> Self {
        match &undo.link().change {
            Change::Insert => Self::Insert,
            Change::Delete => Self::Delete,
            Change::Lock => Self::Lock,
            Change::Mask => Self::Mask,
            Change::Update { before } => {
                let columns = delta::own_entries(layout, before)
                    .map(|e| e.expect("before-images are made by the page").column);
                Self::Update(columns.collect())
            }
        }
    }
}
