//! The tables that a transaction uses: their definitions stay as they are till its end, and are those that its snapshot can read.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::core::Txn;
use super::options::Isolation;
use crate::error::{EngineError, Result};
use crate::metadata_lock::{Held, MetadataWaits, Patience};
use crate::table::{IndexHandle, TableHandle};
use crate::table_locks::{TableLockMode, TableLocks};

impl Txn {
    /// Remembers that the transaction uses a table, and holds its metadata lock till the end.
    pub(super) fn touch(&mut self, table: &Arc<TableHandle>) -> Result<u16> {
        if !self.constraints.sees_withheld {
            self.engine.withheld.check(table)?;
        }
        if let Some(at) = self.changes.tables.iter().position(|t| Arc::ptr_eq(t, table)) {
            return Ok(at as u16);
        }
        let held = self.changes.tables.iter().any(|t| Arc::ptr_eq(&t.metadata_lock, &table.metadata_lock));
        if !held && !table.metadata_lock.try_lock_shared() {
            self.await_definition(table)?;
        }
        self.changes.tables.push(table.clone());
        self.changes.row_changes.push(0);
        Ok((self.changes.tables.len() - 1) as u16)
    }

    /// As [`touch`](Self::touch), of a table that the transaction is about to change.
    #[inline]
    pub(super) fn touch_to_write(&mut self, table: &Arc<TableHandle>) -> Result<u16> {
        let t = self.touch(table)?;
        if !self.changes.written.has(t) {
            if !table.metadata_lock.try_begin_write() {
                self.await_write(table)?;
            }
            self.changes.written.add(t);
        }
        Ok(t)
    }

    /// Waits for those who have the table READ.
    #[cold]
    fn await_write(&mut self, table: &TableHandle) -> Result<()> {
        match self.table_locks.as_ref().and_then(|own| own.mode_of(table)) {
            Some(TableLockMode::Write) => {
                table.metadata_lock.begin_write_as_holder();
                Ok(())
            }
            Some(TableLockMode::Read) => Err(EngineError::LockedForRead(table.def.name.clone())),
            None => self.wait_for_table(|waits, holds, patience| {
                waits.begin_write(&table.metadata_lock, holds, patience)
            }),
        }
    }

    /// What the session that runs the transaction has locked by LOCK TABLES. The transaction must not keep it for longer.
    pub fn set_table_locks(&mut self, locks: Option<Arc<TableLocks>>) {
        self.table_locks = locks;
    }

    /// Waits for DDL that has the table, or stands before this transaction.
    #[cold]
    fn await_definition(&mut self, table: &TableHandle) -> Result<()> {
        if self.table_locks.as_ref().is_some_and(|own| own.mode_of(table).is_some()) {
            table.metadata_lock.lock_shared_as_holder();
            return Ok(());
        }
        self.wait_for_table(|waits, holds, patience| {
            waits.lock_shared(&table.metadata_lock, holds, patience)
        })?;
        // Whoever had the table may have changed its rows: what reads at its snapshot reads it as it is now.
        if self.may_move_on() {
            self.view.newest_met = self.view.newest_met.max(self.engine.pipeline.last_logged());
            self.renew_snapshot();
        }
        Ok(())
    }

    /// Whether the snapshot may still be another one: nothing has been read at it.
    fn may_move_on(&self) -> bool {
        !self.view.has_read.load(Ordering::Relaxed) || !self.has_read_in_statement()
    }

    fn wait_for_table(
        &mut self,
        wait: impl Fn(&MetadataWaits, &mut dyn Iterator<Item = Held<'_>>, &Patience<'_>) -> Result<()>,
    ) -> Result<()> {
        self.meet_others();
        let interrupted = self.interrupted.as_deref();
        let interrupted = || interrupted.is_some_and(|asked| asked());
        let deadline = Instant::now() + self.options.metadata_lock_timeout;
        let patience = Patience { deadline, interrupted: &interrupted };
        let mut outcome = Ok(());
        (self.engine.wait_hook())(&mut || {
            let mut holds = self.changes.tables.iter().enumerate().map(|(t, table)| Held {
                lock: &table.metadata_lock,
                has_written: self.changes.written.has(t as u16),
            });
            outcome = wait(&self.engine.metadata_waits, &mut holds, &patience);
        });
        outcome
    }

    /// Holds the table's definition till the end of the transaction, for a statement that has not read anything yet and
    /// will read the table at its snapshot.
    ///
    /// # Errors
    /// `StaleDefinition` if the handle is not the table any more: it is to be looked up again. `DefinitionChanged` if the
    /// transaction's snapshot is from before the table was made.
    pub fn use_table(&mut self, table: &Arc<TableHandle>) -> Result<()> {
        self.hold_definition(table)?;
        self.reach_definition(table)
    }

    /// As [`use_table`](Self::use_table), of several tables at once, if the catalog that they are of, whose version is given, is
    /// still in force. False if not: they are to be looked up again.
    pub fn use_tables<'t>(
        &mut self,
        tables: impl IntoIterator<Item = &'t Arc<TableHandle>> + Clone,
        version: u64,
    ) -> Result<bool> {
        for table in tables.clone() {
            self.touch(table)?;
        }
        // A change of one of these tables would have to wait for this transaction now.
        if self.engine.catalog_version() != version {
            return Ok(false);
        }
        tables.into_iter().try_for_each(|table| self.reach_definition(table)).map(|()| true)
    }

    /// As [`use_table`](Self::use_table), for a statement that reads only the newest rows of the table, if any: unless the
    /// transaction is strict, the table may be newer than its snapshot.
    pub fn use_table_as_now(&mut self, table: &Arc<TableHandle>) -> Result<()> {
        if self.is_strict() { self.use_table(table) } else { self.hold_definition(table) }
    }

    /// Holds a view's definition till the end of the transaction. It has no rows, so it may be newer than the snapshot.
    ///
    /// # Errors
    /// `StaleDefinition` if the handle is not the view any more: it is to be looked up again.
    pub fn hold_view(&mut self, view: &Arc<TableHandle>) -> Result<()> {
        self.hold_definition(view)
    }

    pub(super) fn hold_definition(&mut self, table: &Arc<TableHandle>) -> Result<()> {
        let held = self.changes.tables.len();
        self.touch(table)?;
        // Nobody but the session that runs this transaction could have changed it.
        if table.id().is_temporary() {
            return Ok(());
        }
        let current = self.engine.catalog();
        match current.table_by_id(table.id()) {
            Some(now) if Arc::ptr_eq(now, table) => Ok(()),
            _ => {
                // A table that is no more need not be held.
                self.release_tables(held);
                Err(EngineError::StaleDefinition(table.def.database.clone(), table.def.name.clone()))
            }
        }
    }

    pub(super) fn reach_definition(&mut self, table: &TableHandle) -> Result<()> {
        if table.changed_at() <= self.view.snapshot.ts() { Ok(()) } else { self.move_on_to_definition(table) }
    }

    /// The table, or an index of it, was made after the snapshot was taken (perhaps the statement has waited for that): a
    /// transaction that has read nothing at its snapshot moves on to one that has the table.
    #[cold]
    pub(super) fn move_on_to_definition(&mut self, table: &TableHandle) -> Result<()> {
        if self.may_move_on() {
            self.view.newest_met = self.view.newest_met.max(table.changed_at());
            self.renew_snapshot();
            // If the log has failed, the change never becomes visible.
            if table.changed_at() > self.view.snapshot.ts() {
                self.engine.pipeline.log().flush()?;
            }
        }
        match table.is_readable_at(self.view.snapshot.ts()) {
            true => Ok(()),
            false => Err(definition_changed(table)),
        }
    }

    /// Whether the running statement's snapshot must stay.
    pub(super) fn has_read_in_statement(&self) -> bool {
        self.options.isolation != Isolation::ReadCommitted
            || self.view.statement_has_read.load(Ordering::Relaxed)
    }

    /// An index that was made after the snapshot was taken lacks versions that this sees.
    pub(crate) fn check_readable(&self, table: &TableHandle, index: &IndexHandle) -> Result<()> {
        match index.is_readable_at(self.view.snapshot.ts()) {
            true => Ok(()),
            false => Err(definition_changed(table)),
        }
    }

    pub(super) fn release_metadata_locks(&mut self) {
        self.unlock_tables(0);
    }

    /// Gives back the tables that came after the first `kept`, of which nothing was changed.
    pub(super) fn release_tables(&mut self, kept: usize) {
        self.unlock_tables(kept);
        self.changes.tables.truncate(kept);
        self.changes.row_changes.truncate(kept);
    }

    fn unlock_tables(&mut self, from: usize) {
        for t in self.changes.written.take_from(from) {
            self.changes.tables[usize::from(t)].metadata_lock.end_write();
        }
        for (at, table) in self.changes.tables.iter().enumerate().skip(from) {
            let first = !self.changes.tables[..at]
                .iter()
                .any(|t| Arc::ptr_eq(&t.metadata_lock, &table.metadata_lock));
            if first {
                table.metadata_lock.unlock_shared();
            }
        }
    }
}

fn definition_changed(table: &TableHandle) -> EngineError {
    EngineError::DefinitionChanged(table.def.database.clone(), table.def.name.clone())
}
