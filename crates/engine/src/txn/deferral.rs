//! Waits for rows that hold no thread.
//!
//! A statement that has to wait for a row, and has done nothing or next to nothing yet, can leave its place in the row's queue
//! standing and return. Its session awaits the turn as a task does, and the statement begins anew; at the same row it goes on
//! from its place. So thousands of connections may want one row without a thread for each. A statement that has done more blocks
//! its thread, as it does where nobody asked for this.
//!
//! Invariants:
//! 1. A transaction has one place at most: whoever asks for another row gives up the place that stands.
//! 2. A place stands no longer than its statement: [`Txn::end_deferral`] gives it up, and so does the transaction's end.
//! 3. A deadlock is looked for when the statement has been taken back, and before its turn is awaited.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Instant;

use super::core::Txn;
use super::parts::{Begun, StatementMark};
use crate::error::{EngineError, Result};
use crate::locks::{LockMode, RowKey, Waiter};

/// An INSERT, or an UPDATE of a unique key, waits for the key after the row has been written: so many versions are taken back
/// for it.
pub(super) const MOST_RETAKEN: usize = 2;

/// After a statement has waited for so many different rows, it blocks: what it gives up each time might be had by others for ever.
const MOST_ROWS: usize = 8;

/// Ready when a statement whose wait was deferred is to begin anew, or with the reason why it must not.
pub struct RowWait {
    place: Arc<Waiter>,
    deadline: Instant,
}

impl RowWait {
    /// When it becomes error `LockWaitTimeout`. The future itself does not look at a clock.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }
}

impl Future for RowWait {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.place.poll(cx)
    }
}

impl Txn {
    /// From now on, until [`end_deferral`](Self::end_deferral), a wait for a row may end the statement that began at `mark` with an
    /// error, after which [`deferred_wait`](Self::deferred_wait) has what to await. The caller must be able to run the statement
    /// anew: it has sent nothing.
    pub fn defer_waits(&mut self, mark: StatementMark) {
        let had_read = !self.view.is_first_read;
        self.locks.deferral.begun = Some(Begun { at: mark, had_read, rows: 0, last: None });
    }

    /// If the statement has ended for a wait: takes it back, and returns the wait. Then [`begin_anew`](Self::begin_anew).
    pub fn deferred_wait(&mut self) -> Option<RowWait> {
        if !std::mem::take(&mut self.locks.deferral.has_waited) {
            return None;
        }
        let place = self.locks.deferral.standing.clone()?;
        let mark = self.locks.deferral.begun.as_ref().map(|begun| begun.at)?;
        self.roll_back_to(mark);
        self.engine.row_locks.break_deadlocks(&place, !self.locks.shared.is_empty());
        let deadline = place.began + self.options.lock_wait_timeout;
        Some(RowWait { place, deadline })
    }

    /// Waits on this thread for what [`deferred_wait`](Self::deferred_wait) returned.
    pub fn block_on_deferred(&mut self, wait: &RowWait) -> Result<()> {
        self.block(&wait.place)
    }

    /// Begins the statement whose wait is over once more.
    pub fn begin_anew(&mut self) {
        if let Some(begun) = &self.locks.deferral.begun {
            self.view.has_read.store(begun.had_read, Ordering::Relaxed);
            self.begin_statement();
        }
    }

    /// Waits block again; a place that still stands is given up.
    pub fn end_deferral(&mut self) {
        self.locks.deferral.begun = None;
        self.locks.deferral.has_waited = false;
        self.give_up_place();
    }

    /// Whether a wait at `place` can be left to the session.
    pub(super) fn may_defer(&mut self, place: &Waiter, retaken: usize) -> bool {
        let Some(begun) = &mut self.locks.deferral.begun else { return false };
        if self.changes.undo.len() > begun.at.undo + retaken
            || self.locks.shared.len() > begun.at.shared
            || self.changes.loads.len() > begun.at.loads
        {
            return false;
        }
        if begun.last.replace(place.key) != Some(place.key) {
            begun.rows += 1;
        }
        begun.rows <= MOST_ROWS
    }

    /// The place that stands, if it is this one.
    #[inline]
    pub(super) fn place_in_queue(&mut self, key: RowKey, mode: LockMode) -> Option<Arc<Waiter>> {
        self.locks.deferral.standing.as_ref()?;
        let place = self.locks.deferral.standing.take_if(|place| place.key == key && place.mode == mode);
        self.give_up_place();
        place
    }

    /// The place that stands, if it is one among those who watch a row.
    #[inline]
    pub(super) fn place_among_watchers(&mut self) -> Option<Arc<Waiter>> {
        self.locks.deferral.standing.as_ref()?;
        let place = self.locks.deferral.standing.take_if(|place| place.mode == LockMode::Watch);
        self.give_up_place();
        place
    }

    #[inline]
    pub(super) fn leave_or_stand<T>(&mut self, place: Option<Arc<Waiter>>, outcome: &Result<T>) {
        match outcome {
            Err(EngineError::WaitDeferred) => {
                self.locks.deferral.standing = place;
                self.locks.deferral.has_waited = true;
            }
            _ => self.leave_queue(place),
        }
    }

    fn give_up_place(&mut self) {
        let place = self.locks.deferral.standing.take();
        self.leave_queue(place);
    }
}
