//! Statements that begin anew on a newer snapshot: while nothing has been read at the one before, a change that was committed since
//! is no conflict.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_base::RowId;

use super::action::{LockWait, RowLock};
use super::core::Txn;
use super::parts::{Changes, StatementMark};
use crate::error::Result;
use crate::table::TableHandle;

impl Txn {
    /// Whether rows were changed since then.
    pub fn has_changed_since(&self, mark: &StatementMark) -> bool {
        let Changes { redo, loads, unlogged, .. } = &self.changes;
        redo.len() > mark.redo || loads.len() > mark.loads || *unlogged > mark.unlogged
    }

    /// Whether the statement that began last could be taken back and begin anew on another snapshot: nothing that was
    /// read before depends on this one.
    pub fn can_restart(&self) -> bool {
        self.is_strict() && self.view.is_first_read
    }

    /// Takes the statement back, with all that it has read, and moves on to a snapshot in which the row that it failed
    /// for is as it was met. That row is locked first, in turn: nobody can be overtaken at the same row again and
    /// again. Fails as a lock wait does.
    pub fn restart_statement(&mut self, mark: StatementMark) -> Result<()> {
        assert!(self.can_restart(), "the transaction has read something before");
        self.roll_back_to(mark);
        self.view.has_read.store(false, Ordering::Relaxed);
        if let Some(reads) = &self.constraints.reads {
            reads.clear();
        }
        let Some(conflict) = self.locks.conflict.take() else { return Ok(()) };
        let table = self.changes.tables[usize::from(conflict.table)].clone();
        let lock = RowLock { exclusive: conflict.exclusive, wait: LockWait::Wait };
        self.lock_and_move_on(conflict.table, &table, conflict.row, lock)
    }

    /// Locks a row that has changed since the snapshot, and moves on to a snapshot with that change. Only while nothing
    /// has been read at the one before.
    pub(super) fn lock_and_move_on(
        &mut self,
        t: u16,
        table: &Arc<TableHandle>,
        id: RowId,
        lock: RowLock,
    ) -> Result<()> {
        self.view.relaxed = true;
        let mut buf = std::mem::take(&mut self.scratch.old);
        let locked = self.lock_touched(t, table, id, lock, &mut buf);
        self.scratch.old = buf;
        self.view.relaxed = false;
        locked?;
        self.renew_snapshot();
        // If the log has failed, the change never becomes visible.
        if self.view.newest_met > self.view.snapshot.ts() {
            self.engine.pipeline.log().flush()?;
        }
        Ok(())
    }
}
