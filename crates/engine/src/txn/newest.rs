//! The newest version of a row: whoever wants to lock or change it waits here until nobody else holds it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_base::{RowId, TableId, Timestamp};
use avocet_storage::TxnState;
use avocet_storage::hot::RowBuf;
use avocet_storage::relation::pin;
use avocet_storage::rows::{Access, RowLatch};

use avocet_types::RowRef;

use super::action::{Action, Found, LockWait, RowLock, RowOp};
use super::core::Txn;
use super::parts::Conflict;
use crate::activity::CountedAs;
use crate::engine::BrokenRule;
use crate::error::{EngineError, Result};
use crate::locks::{Answer, LockMode, Patience, Request, RowKey, RowLocks, Waiter};
use crate::table::TableHandle;

/// The row that something is to be done to.
#[derive(Clone, Copy)]
struct Wanted<'w> {
    /// The table's number in the transaction.
    t: u16,
    table: &'w Arc<TableHandle>,
    id: RowId,
    wait: LockWait,
}

/// What came of one attempt.
enum Attempt {
    Done(Found),
    Again,
    Wait,
}

impl Txn {
    /// Does something to the newest version of a row when its turn has come. The image that it had before goes to
    /// `old`.
    pub(super) fn on_newest(
        &mut self,
        t: u16,
        table: &Arc<TableHandle>,
        id: RowId,
        action: &mut Action<'_, '_>,
        wait: LockWait,
        old: &mut RowBuf,
    ) -> Result<Found> {
        let mut place = self.place_in_queue(RowKey { table: table.id(), row: id }, action.mode());
        let outcome = self.in_turn(Wanted { t, table, id, wait }, action, old, &mut place);
        self.leave_or_stand(place, &outcome);
        if let Err(EngineError::SnapshotConflict(_)) = &outcome {
            let exclusive = action.mode() == LockMode::Exclusive;
            self.locks.conflict = Some(Conflict { table: t, row: id, exclusive });
        }
        outcome
    }

    fn in_turn(
        &mut self,
        wanted: Wanted<'_>,
        action: &mut Action<'_, '_>,
        old: &mut RowBuf,
        place: &mut Option<Arc<Waiter>>,
    ) -> Result<Found> {
        loop {
            match self.attempt(wanted, action, old, place)? {
                Attempt::Done(Found::Busy) => {
                    self.meet_others();
                    return if wanted.wait == LockWait::NoWait {
                        Err(EngineError::LockNotAvailable)
                    } else {
                        Ok(Found::Busy)
                    };
                }
                Attempt::Done(found) => return Ok(found),
                Attempt::Again => std::thread::yield_now(),
                Attempt::Wait => {
                    self.meet_others();
                    self.park(place.as_ref().expect("it stands in the queue"), 0)?;
                }
            }
        }
    }

    fn attempt(
        &mut self,
        Wanted { t, table, id, wait }: Wanted<'_>,
        action: &mut Action<'_, '_>,
        old: &mut RowBuf,
        place: &mut Option<Arc<Waiter>>,
    ) -> Result<Attempt> {
        let pinned = pin();
        let mut latch = match table.relation.latch_row(id, &self.state, old, &pinned)? {
            Access::Nowhere => return Ok(Attempt::Done(Found::Nowhere)),
            Access::Loading(_) if wait != LockWait::Wait => return Ok(Attempt::Done(Found::Busy)),
            Access::Loading(loading) => {
                let key = RowKey { table: table.id(), row: id };
                let queued = self.watch().for_end_of(loading.by, key, place);
                // If the load was taken back meanwhile, nobody would wake this one.
                return Ok(if queued && loading.stands() { Attempt::Wait } else { Attempt::Again });
            }
            Access::Latched(latch) => latch,
        };
        let head = latch.head();
        let is_own = head.is_some_and(|head| Arc::ptr_eq(&head.txn, &self.state));
        let holder = latch.holder(&self.state);
        // What never changes need not be waited for to see that it is not meant.
        let is_certain = holder.is_none() || latch.is_immutable();
        if is_certain && latch.is_in_use() && action.is_misled(&latch.row(old)) {
            if holder.is_none() {
                self.view.newest_met = self.view.newest_met.max(latch.changed_at());
            }
            return Ok(Attempt::Done(Found::Nowhere));
        }
        if holder.is_none() && !latch.is_live() {
            let changed_at = latch.changed_at();
            self.view.newest_met = self.view.newest_met.max(changed_at);
            self.check_unchanged(table, is_own, changed_at)?;
            let is_recent = changed_at > self.view.snapshot.ts() || latch.may_forget();
            return Ok(Attempt::Done(if is_recent { Found::Gone } else { Found::Nowhere }));
        }
        if !is_own && let Some(blocked) = self.ask(table.id(), id, action.mode(), holder, wait, place) {
            return Ok(blocked);
        }
        let changed_at = latch.changed_at();
        self.view.newest_met = self.view.newest_met.max(changed_at);
        let row = latch.row(old);
        let unchanged = self.check_unchanged(table, is_own, changed_at);
        let Some(op) = unchanged.map(|()| action.decide(table, row)).transpose() else {
            self.decline(table.id(), id, is_own);
            return Ok(Attempt::Done(Found::Nowhere));
        };
        let op = op.inspect_err(|_| self.decline(table.id(), id, is_own))?;
        let (since, versions) = latch.values_since();
        let replaced = self.place_since(since, &op, || (table, versions, row));
        let moves = matches!(op, RowOp::Update { after, .. } if self.is_to_move(table, &latch, after.len()));
        if moves || op.wants_old() || (op.changes() && self.captures(table)) {
            latch.keep_row(old);
        }
        let mut before = 0;
        let counted = match op {
            RowOp::Delete { .. } => CountedAs::Delete,
            RowOp::Update { .. } => CountedAs::Update,
            RowOp::Share | RowOp::Lock { .. } => CountedAs::Nothing,
        };
        let undo = match op {
            RowOp::Share => return Ok(Attempt::Done(Found::InPlace)),
            RowOp::Lock { .. } if is_own => return Ok(Attempt::Done(Found::InPlace)),
            RowOp::Lock { .. } => latch.lock(&self.state),
            RowOp::Delete { .. } => latch.delete(&self.state),
            RowOp::Update { .. } if moves => latch.delete(&self.state),
            RowOp::Update { after, .. } => {
                let undo = latch
                    .update(after, &self.state, &mut self.scratch.before)
                    .map_err(crate::error::malformed("row delta"))?;
                before = self.scratch.before.len();
                undo
            }
        };
        drop(latch);
        self.push_undo(t, id, undo, before, counted);
        if let Some(replaced) = replaced {
            self.mask_place_before(t, table, id, &replaced)?;
        }
        Ok(Attempt::Done(if moves { Found::Relocated } else { Found::InPlace }))
    }

    /// Whether an update by so many bytes makes a row move: a page, and so a segment, that has grown much by updates takes no
    /// more.
    fn is_to_move(&self, table: &TableHandle, row: &RowLatch<'_>, bytes: usize) -> bool {
        let most = table.relation.share_of_page(self.engine.memory.updated_segment_bytes());
        row.is_to_move(bytes, most) || self.engine.options.updates_move_rows
    }

    /// Strictly, a row that was changed or deleted since the snapshot can not be locked or changed.
    fn check_unchanged(&self, table: &TableHandle, is_own: bool, changed_at: Timestamp) -> Result<()> {
        if is_own || self.view.relaxed || !self.is_strict() || changed_at <= self.view.snapshot.ts() {
            return Ok(());
        }
        if self.engine.breaks(BrokenRule::FirstWriterWins) {
            return Ok(());
        }
        Err(EngineError::SnapshotConflict(table.def.name.clone()))
    }

    /// Asks for a row, under its latch. `None` if it may be had.
    fn ask(
        &mut self,
        table: TableId,
        row: RowId,
        mode: LockMode,
        holder: Option<&Arc<TxnState>>,
        wait: LockWait,
        place: &mut Option<Arc<Waiter>>,
    ) -> Option<Attempt> {
        let key = RowKey { table, row };
        let locks = &self.engine.row_locks;
        if holder.is_none() && mode == LockMode::Exclusive && !locks.may_be_contended(&key) {
            return None;
        }
        let request = Request {
            key,
            mode,
            txn: &self.state,
            holder,
            weight: self.weight(),
            patient: wait == LockWait::Wait,
        };
        match locks.request(&request, place) {
            Answer::Granted => {
                if mode == LockMode::Shared {
                    self.locks.shared.push(key);
                }
                None
            }
            Answer::Shared => None,
            Answer::Queued => Some(Attempt::Wait),
            Answer::Again => Some(Attempt::Again),
            Answer::Busy => Some(Attempt::Done(Found::Busy)),
        }
    }

    /// A row that could be had is not taken after all: those behind in the queue have their turn. Under its latch.
    fn decline(&self, table: TableId, row: RowId, is_own: bool) {
        let key = RowKey { table, row };
        if !is_own && self.engine.row_locks.may_be_contended(&key) {
            self.engine.row_locks.give_back(&key, &self.state);
        }
    }

    /// What it takes to wait, out of turn, for those who hold rows.
    pub(super) fn watch(&self) -> Watch<'_> {
        Watch { locks: &self.engine.row_locks, txn: &self.state, weight: self.weight() }
    }

    /// What a rollback would cost: how many versions the transaction has made, rows it shares, and rows it has loaded.
    pub fn weight(&self) -> u64 {
        let loaded: u64 = self.changes.loads.iter().map(|load| load.rows).sum();
        (self.changes.undo.len() + self.locks.shared.len()) as u64 + loaded
    }

    /// Waits for a turn in a queue, unless the wait can be deferred: if the statement has made at most `retaken` versions.
    pub(super) fn park(&mut self, place: &Arc<Waiter>, retaken: usize) -> Result<()> {
        self.locks.waits.fetch_add(1, Ordering::Relaxed);
        if self.may_defer(place, retaken) {
            return Err(EngineError::WaitDeferred);
        }
        self.engine.row_locks.break_deadlocks(place, !self.locks.shared.is_empty());
        self.block(place)
    }

    /// Blocks the thread until it is this transaction's turn.
    pub(super) fn block(&self, place: &Arc<Waiter>) -> Result<()> {
        let interrupted = self.interrupted.as_deref();
        place.park(&Patience {
            timeout: self.options.lock_wait_timeout,
            hook: self.engine.wait_hook(),
            interrupted: &|| interrupted.is_some_and(|asked| asked()),
        })
    }

    pub(super) fn leave_queue(&self, place: Option<Arc<Waiter>>) {
        if let Some(place) = place {
            self.engine.row_locks.leave(&place);
        }
    }

    /// As [`Self::lock_touched`], if the row fits. Strictly it is locked, or a conflict, whether it does or not: the snapshot's
    /// version is one that the statement reads.
    pub(super) fn lock_fitting(
        &mut self,
        t: u16,
        table: &Arc<TableHandle>,
        id: RowId,
        lock: RowLock,
        fits: &mut dyn FnMut(&RowRef<'_>) -> bool,
        buf: &mut RowBuf,
    ) -> Result<Found> {
        if self.is_strict() {
            return self.lock_touched(t, table, id, lock, buf);
        }
        self.check_footprint()?;
        let mut action = Action::LockFitting { exclusive: lock.exclusive, fits };
        self.on_newest(t, table, id, &mut action, lock.wait, buf)
    }

    /// Locks the newest version of a row and copies it.
    pub(super) fn lock_touched(
        &mut self,
        t: u16,
        table: &Arc<TableHandle>,
        id: RowId,
        lock: RowLock,
        buf: &mut RowBuf,
    ) -> Result<Found> {
        self.check_footprint()?;
        let mut action = if lock.exclusive { Action::Lock } else { Action::Share };
        self.on_newest(t, table, id, &mut action, lock.wait, buf)
    }
}

/// A transaction that waits for others, but not for their rows.
pub(super) struct Watch<'w> {
    pub locks: &'w RowLocks,
    pub txn: &'w Arc<TxnState>,
    pub weight: u64,
}

impl Watch<'_> {
    /// Makes the transaction one of those that are woken when `holder` takes back what it did to a row, or ends. False if it
    /// has ended. Under the latch of the row, unless its holder is whoever loaded its block.
    pub fn for_end_of(&self, holder: &Arc<TxnState>, key: RowKey, place: &mut Option<Arc<Waiter>>) -> bool {
        if let Some(other) = place.take_if(|place| place.key != key || place.mode != LockMode::Watch) {
            self.locks.leave(&other);
        }
        let Self { txn, weight, .. } = *self;
        let mode = LockMode::Watch;
        let request = Request { key, mode, txn, holder: Some(holder), weight, patient: true };
        self.locks.request(&request, place) == Answer::Queued
    }
}
