//! Rows of the snapshot that the transaction must not see any more, since it has changed what became of them.
//!
//! Its changes act on the newest rows. Where others have put a new row in an old one's place meanwhile (deleted it and inserted
//! its key again, or moved it out of a column block), its own version stands on the new row, and its snapshot still has
//! the old one. As in InnoDB, where the primary key is the place, it sees the one that it has changed.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_base::{RowId, Timestamp};
use avocet_storage::Undo;
use avocet_storage::hot::RowBuf;
use avocet_storage::relation::pin;
use avocet_storage::version::Change;
use avocet_types::RowRef;

use super::action::RowOp;
use super::core::Txn;
use super::options::Isolation;
use super::parts::Conflict;
use crate::activity::CountedAs;
use crate::entries::changed_columns;
use crate::error::{EngineError, Result};
use crate::table::{TableHandle, split_entry};

/// Of a row that others have changed since the snapshot.
pub(super) struct NewPlace {
    /// The key that stands for it, if it has come to that since.
    key: Option<Vec<u8>>,
}

impl Txn {
    /// Whether its snapshot stays till its end, since it has read something: only then do the versions that marks stand
    /// among stay, too. Before that, the next statement moves on to a snapshot that needs no marks.
    fn keeps_snapshot(&self) -> bool {
        matches!(self.options.isolation, Isolation::RepeatableRead | Isolation::Serializable)
            && self.view.has_read.load(Ordering::Relaxed)
    }

    /// What has to be known of a row that is about to be changed, if others have changed it since the snapshot. `row` gives the
    /// table, the row's versions (none of a row in a column block that has come since) and the newest one.
    pub(super) fn place_since<'r>(
        &self,
        changed_at: Timestamp,
        op: &RowOp<'_>,
        row: impl FnOnce() -> (&'r Arc<TableHandle>, Option<&'r Arc<Undo>>, RowRef<'r>),
    ) -> Option<NewPlace> {
        let changes = matches!(op, RowOp::Delete { .. } | RowOp::Update { .. });
        if !changes || changed_at <= self.view.snapshot.ts() || !self.keeps_snapshot() {
            return None;
        }
        let (table, head, newest) = row();
        let key = table.clustered_index().filter(|index| self.has_come_to_key(table, *index, head));
        let key = key.map(|index| {
            let mut key = Vec::new();
            table.indexes[index].keys.encode_row(&newest, &mut key);
            key
        });
        Some(NewPlace { key })
    }

    /// Whether a row has come to its key since the snapshot.
    fn has_come_to_key(&self, table: &TableHandle, index: usize, head: Option<&Arc<Undo>>) -> bool {
        let mut next = head.cloned();
        while let Some(undo) = next {
            let link = undo.link();
            match &link.change {
                Change::Lock | Change::Mask => {}
                _ if self.snapshot().sees(&undo.txn) => return false,
                Change::Insert => return true,
                Change::Update { before } => {
                    if changed_columns(table, before).any(|column| table.indexes[index].uses(column)) {
                        return true;
                    }
                }
                Change::Delete => {}
            }
            next = link.older();
        }
        head.is_none()
    }

    /// This transaction has changed a row that others have changed since its snapshot: hides where the snapshot has it, or
    /// what the snapshot has in its place.
    pub(super) fn mask_place_before(
        &mut self,
        t: u16,
        table: &Arc<TableHandle>,
        id: RowId,
        place: &NewPlace,
    ) -> Result<()> {
        for place in table.relocations.unseen_at(self.view.snapshot.ts(), id) {
            self.mask(t, table, place);
        }
        match &place.key {
            Some(key) => self.mask_replaced(table, key, id),
            None => Ok(()),
        }
    }

    /// A row of this transaction's has a key that others may have left since its snapshot. Strictly, it must not come to a key
    /// that has changed hands.
    pub(super) fn take_place(&mut self, table: &Arc<TableHandle>, key: &[u8], id: RowId) -> Result<()> {
        match self.options.isolation {
            Isolation::ReadCommitted => Ok(()),
            // What a serializable one reads there is validated when it commits.
            Isolation::RepeatableRead | Isolation::Serializable => match self.keeps_snapshot() {
                true => self.mask_replaced(table, key, id),
                false => Ok(()),
            },
            Isolation::Snapshot => match self.replaced_by(table, key, id)?.first() {
                Some(&row) => {
                    self.locks.conflict = Some(Conflict { table: self.touch(table)?, row, exclusive: true });
                    Err(EngineError::SnapshotConflict(table.def.name.clone()))
                }
                None => Ok(()),
            },
        }
    }

    /// Hides what the snapshot has under a key that stands for another row now, one that this transaction has put there or
    /// changed: that is seen in its place, as if it were a newer version.
    fn mask_replaced(&mut self, table: &Arc<TableHandle>, key: &[u8], by: RowId) -> Result<()> {
        let t = self.touch(table)?;
        self.replaced_by(table, key, by)?.into_iter().for_each(|row| self.mask(t, table, row));
        Ok(())
    }

    /// The rows that the snapshot has under a key that stands for another row now.
    fn replaced_by(&mut self, table: &Arc<TableHandle>, key: &[u8], by: RowId) -> Result<Vec<RowId>> {
        let Some(index) = table.clustered_index() else { return Ok(Vec::new()) };
        let index = &table.indexes[index];
        let mut others = Vec::new();
        index.tree.prefix_scan(key, &mut self.scratch.scan, &mut |entry| {
            others.push(split_entry(entry).1);
            ControlFlow::Continue(())
        });
        let (mut row, mut own_key) = (RowBuf::default(), Vec::new());
        let mut replaced = Vec::new();
        for other in others.into_iter().filter(|other| *other != by) {
            if self.load(table, other, &mut row)?
                && index.keys.has_key(&row.row(&table.layout), key, &mut own_key)
            {
                replaced.push(other);
            }
        }
        Ok(replaced)
    }

    /// Hides from this transaction a row as its snapshot has it, and others do not any more: it has changed what became of
    /// the row in another place, or put one of its own there.
    fn mask(&mut self, t: u16, table: &Arc<TableHandle>, id: RowId) {
        let pinned = pin();
        let Some(row) = table.relation.latch_versions(id, &pinned) else { return };
        let mark = row.mask(&self.snapshot());
        drop(row);
        if let Some(mark) = mark {
            self.changes.masks += 1;
            self.push_undo(t, id, mark, 0, CountedAs::Nothing);
        }
    }

    /// It is about to commit, or to move on: nobody is to see by its snapshot any more, and its marks go while that still keeps
    /// what is above and below them.
    pub(super) fn unmask_all(&mut self) {
        if self.changes.masks == 0 {
            return;
        }
        for entry in std::mem::take(&mut self.changes.undo) {
            if entry.undo.is_mask() {
                self.undo_one(&entry);
            } else {
                self.changes.undo.push(entry);
            }
        }
    }
}
