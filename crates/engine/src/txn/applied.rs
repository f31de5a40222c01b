//! Transactions that stand for others: what was committed at another source is applied here, and the commit says up to where.

use std::sync::Arc;

use avocet_storage::TxnState;

use super::core::Txn;
use crate::garbage::UndoEntry;
use crate::redo::Origin;
use crate::table::TableHandle;

impl Txn {
    /// All that the transaction does was done at another source, up to a position there. The commit has both, or neither.
    pub fn set_origin(&mut self, origin: Origin) {
        self.changes.origin = Some(Box::new(origin));
    }

    /// It may use tables that are withheld from others.
    pub(crate) fn see_withheld(&mut self) {
        self.constraints.sees_withheld = true;
    }

    /// The tables that it uses, by their numbers in the transaction.
    pub(crate) fn tables(&self) -> &[Arc<TableHandle>] {
        &self.changes.tables
    }

    pub(crate) fn state_to_share(&self) -> Arc<TxnState> {
        self.state.clone()
    }

    /// Versions that others have made in its name; those of one row are in the order in which they were made.
    pub(crate) fn adopt(&mut self, undo: Vec<UndoEntry>, row_changes: &[i64]) {
        self.changes.undo_bytes += undo.iter().map(|entry| entry.bytes as usize).sum::<usize>();
        self.changes.undo.extend(undo);
        for (all, more) in self.changes.row_changes.iter_mut().zip(row_changes) {
            *all += more;
        }
    }

    /// Operations that were applied, for its record.
    pub(crate) fn adopt_redo(&mut self, operations: &[u8]) {
        self.changes.redo.extend_from_slice(operations);
    }
}
