//! The core of a transaction: its parts, its beginning, its statements, and the snapshot that it sees.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use avocet_base::{Timestamp, TxnId};
use avocet_storage::{Snapshot, TxnState};

use super::options::{Freshness, Isolation, TxnOptions};
use super::parts::{Changes, Constraints, Footprint, Load, Locks, StatementMark, View, Written};
use crate::buffers::{Buffers, Scratch};
use crate::engine::{BrokenRule, Engine};
use crate::error::{EngineError, Result};
use crate::garbage::Lists;
use crate::procedure::logical::Logical;
use crate::serial::ReadSet;
use crate::snapshots::SnapshotGuard;
use crate::table_locks::TableLocks;

/// A running transaction. Dropping it rolls it back.
pub struct Txn {
    pub(super) engine: Arc<Engine>,
    pub(super) options: TxnOptions,
    pub(super) state: Arc<TxnState>,
    pub(super) view: View,
    pub(super) changes: Changes,
    pub(super) locks: Locks,
    pub(super) constraints: Constraints,
    pub(super) footprint: Footprint,
    pub(super) finished: bool,
    pub(super) scratch: Scratch,
    pub(super) interrupted: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    /// What its session has locked by LOCK TABLES.
    pub(super) table_locks: Option<Arc<TableLocks>>,
    /// Of a call that may be logged as such, or that recovery runs again.
    pub(super) logical: Option<Box<Logical>>,
}

impl Txn {
    pub(crate) fn begin(engine: &Arc<Engine>, options: TxnOptions) -> Self {
        let id = TxnId(engine.next_txn.fetch_add(1, Ordering::Relaxed));
        let Lists { tables, undo } = engine.garbage.spare_lists();
        let Buffers { redo, row_changes, scratch, carried } = engine.buffers.take();
        // Who writes nothing sees a state between two commits: that is serializable as it is.
        let validates = options.isolation == Isolation::Serializable && !options.read_only;
        let snapshot = match options.freshness {
            _ if validates => begin_serializable(engine),
            Freshness::Visible => engine.snapshots.take(),
            Freshness::Logged => engine.snapshots.take_at(engine.pipeline.last_logged()),
        };
        Self {
            state: Arc::new(TxnState::new(id)),
            view: View::new(snapshot),
            changes: Changes {
                tables,
                row_changes,
                written: Written::default(),
                undo,
                undo_bytes: 0,
                masks: 0,
                redo,
                unlogged: 0,
                origin: None,
                loads: Vec::new(),
            },
            locks: Locks::default(),
            constraints: Constraints { reads: validates.then(Arc::default), ..Constraints::default() },
            footprint: Footprint::new(carried),
            finished: false,
            scratch,
            interrupted: None,
            table_locks: None,
            logical: None,
            options,
            engine: engine.clone(),
        }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn id(&self) -> TxnId {
        self.state.id()
    }

    pub fn options(&self) -> &TxnOptions {
        &self.options
    }

    pub fn snapshot_ts(&self) -> Timestamp {
        self.view.snapshot.ts()
    }

    /// Asked while the transaction waits for a lock; true ends the wait with `Interrupted`.
    pub fn set_interrupt(&mut self, asked: Arc<dyn Fn() -> bool + Send + Sync>) {
        self.interrupted = Some(asked);
    }

    /// What is asked whether the transaction's statement is to end.
    pub(crate) fn interrupt(&self) -> Option<Arc<dyn Fn() -> bool + Send + Sync>> {
        self.interrupted.clone()
    }

    /// Fails if somebody wants the transaction's statement to end.
    pub(crate) fn check_interrupted(&self) -> Result<()> {
        match self.interrupted.as_ref().is_some_and(|asked| asked()) {
            true => Err(EngineError::Interrupted),
            false => Ok(()),
        }
    }

    pub(crate) fn state(&self) -> &Arc<TxnState> {
        &self.state
    }

    pub(crate) fn redo(&mut self) -> &mut Vec<u8> {
        &mut self.changes.redo
    }

    pub(crate) fn note_load(&mut self, load: Load) {
        self.changes.row_changes[load.table as usize] += load.rows as i64;
        self.changes.loads.push(load);
    }

    /// Whether the rows that a statement found at a snapshot and then locked may be others by now, so that it has to look
    /// again: this transaction's locks have met a commit that the snapshot does not have. Not so at strict levels, where
    /// there is no other snapshot to look at: what is newer there, in a row that the statement locks, was an error.
    pub fn has_met_newer(&self, snapshot: Timestamp) -> bool {
        !self.is_strict() && self.view.newest_met > snapshot
    }

    /// The newest commit of others that it has met: by locking what that has changed, or because that has a key which it
    /// wanted. It may not be durable yet.
    pub fn newest_met(&self) -> Timestamp {
        self.view.newest_met
    }

    /// Its snapshots are to have a commit that an earlier transaction of the same session has met.
    pub fn include(&mut self, met: Timestamp) {
        self.view.newest_met = self.view.newest_met.max(met);
    }

    /// Changes how long later statements wait for rows, and for changes of definitions.
    pub fn set_lock_timeouts(&mut self, rows: Duration, definitions: Duration) {
        self.options.lock_wait_timeout = rows;
        self.options.metadata_lock_timeout = definitions;
    }

    /// Whether it changed any row so far.
    pub fn has_changes(&self) -> bool {
        self.changes.written_bytes() > 0
    }

    /// Whether all that it has changed so far are rows of temporary tables.
    pub fn changes_temporary_alone(&self) -> bool {
        self.changes.unlogged > 0 && self.changes.redo.is_empty()
    }

    pub(super) fn snapshot(&self) -> Snapshot<'_> {
        Snapshot { ts: self.view.snapshot.ts(), own: Some(&self.state) }
    }

    /// Begins a statement: READ COMMITTED, and a transaction that has read nothing yet, move to the newest snapshot.
    pub fn begin_statement(&mut self) -> StatementMark {
        self.view.is_first_read = !self.view.has_read.load(Ordering::Relaxed);
        self.view.is_first_access.store(self.view.is_first_read, Ordering::Relaxed);
        self.view.statement_has_read.store(false, Ordering::Relaxed);
        let moves = self.options.isolation == Isolation::ReadCommitted || self.view.is_first_read;
        if moves || self.engine.breaks(BrokenRule::KeepSnapshot) {
            self.renew_snapshot();
        }
        self.mark()
    }

    /// Fixes the snapshot now (START TRANSACTION WITH CONSISTENT SNAPSHOT).
    pub fn fix_snapshot(&mut self) {
        self.renew_snapshot();
        self.view.has_read.store(true, Ordering::Relaxed);
    }

    pub(super) fn renew_snapshot(&mut self) {
        self.unmask_all();
        if self.options.freshness == Freshness::Logged && self.constraints.reads.is_none() {
            self.view.snapshot = self.engine.snapshots.take_at(self.engine.pipeline.last_logged());
            return;
        }
        self.wait_until_visible();
        match &self.constraints.reads {
            Some(_) => renew_serializable(&self.engine, &mut self.view.snapshot),
            None => self.engine.snapshots.renew(&mut self.view.snapshot),
        }
    }

    /// A locking read saw a commit that is not yet durable: the next snapshot waits for it, so that the transaction does
    /// not see it vanish again. If the log has failed, the commit will say so.
    pub(super) fn wait_until_visible(&self) {
        self.engine.wait_until_shown(self.view.newest_met);
    }

    /// Whether what has changed since the snapshot is out of reach.
    pub fn is_strict(&self) -> bool {
        matches!(self.options.isolation, Isolation::Snapshot | Isolation::Serializable)
    }

    pub(super) fn note_read(&self, predicate: impl FnOnce(&ReadSet)) {
        self.view.has_read.store(true, Ordering::Relaxed);
        self.view.statement_has_read.store(true, Ordering::Relaxed);
        self.view.is_first_access.store(false, Ordering::Relaxed);
        if let Some(reads) = &self.constraints.reads {
            predicate(reads);
        }
    }

    /// As [`Self::note_read`], of a read that goes to the newest rows unless it is strict.
    pub(super) fn note_locking_read(&self, predicate: impl FnOnce(&ReadSet)) {
        if self.is_strict() {
            self.note_read(predicate);
        }
    }

    pub fn mark(&self) -> StatementMark {
        StatementMark {
            undo: self.changes.undo.len(),
            shared: self.locks.shared.len(),
            loads: self.changes.loads.len(),
            redo: self.changes.redo.len(),
            unlogged: self.changes.unlogged,
        }
    }
}

/// The first snapshot of a serializable transaction that may write.
fn begin_serializable(engine: &Arc<Engine>) -> SnapshotGuard {
    engine.pipeline.enter(&engine.serial);
    newest_serializable(engine)
}

/// What was logged when recording began may not be visible yet; a snapshot waits for it. If the log has failed it never
/// will be, and no commit will succeed: then any snapshot does.
fn newest_serializable(engine: &Arc<Engine>) -> SnapshotGuard {
    let mut is_last = false;
    loop {
        if let Some(snapshot) = engine.serial.take(&engine.snapshots, is_last) {
            return snapshot;
        }
        let log = engine.pipeline.log().clone();
        (engine.wait_hook())(&mut || is_last = log.flush().is_err());
    }
}

fn renew_serializable(engine: &Arc<Engine>, snapshot: &mut SnapshotGuard) {
    if snapshot.ts() != engine.snapshots.visible() {
        let newer = newest_serializable(engine);
        engine.serial.let_go(snapshot.ts());
        *snapshot = newer;
    }
}
