//! The commit pipeline: prepared → logged → durable → visible.
//!
//! ```text
//!  worker:      build redo privately (prepared)
//!               ┌ commit latch ───────────────────────────────┐
//!               │ ts = next                                   │
//!               │ room in the log? else the commit is refused │
//!               │ state.commit(ts): row locks are free now    │  (logged)
//!               │ append the record to the log's open group   │
//!               └─────────────────────────────────────────────┘
//!               wait for the ticket, or go on and wait later
//!  log thread:  write group, fdatasync                           (durable)
//!               Snapshots::advance(ts of the group's last)       (visible)
//!               wake the waiters
//! ```
//!
//! How far a commit has to come before it is acknowledged is its own choice ([`Durability`]): a group in which nobody asks for
//! a sync is visible, and acknowledged, when it is written, and is made durable within a second.
//!
//! Row locks are released when a transaction is logged, before it is durable: a later transaction that builds
//! on it is behind it in the log, so it can not become durable without it. Plain snapshots read only what is
//! visible, and so durable; a locking read may return a row that is logged but not yet durable, as InnoDB does.
//!
//! Invariants:
//! 1. Log order is timestamp order.
//! 2. A snapshot at `ts` is taken only after every commit at or before `ts` has its state word set.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use avocet_base::{Lsn, Timestamp};
use avocet_log::{Durability, LogWriter};
use avocet_storage::TxnState;

use crate::error::Result;
use crate::serial::Serial;
use crate::sync::Mutex;

pub(crate) struct Pipeline {
    log: Arc<LogWriter>,
    last: Mutex<Timestamp>,
}

/// A commit that is logged. It is durable, and visible to new snapshots, when the wait returns or the future is
/// ready; dropping the ticket waits for nothing and undoes nothing.
#[must_use = "a commit may be acknowledged only after its ticket was waited for"]
pub struct CommitTicket {
    log: Arc<LogWriter>,
    end: Option<Lsn>,
    ts: Timestamp,
    durability: Durability,
    waiting: Option<Pin<Box<avocet_log::Durable>>>,
}

impl Pipeline {
    pub fn new(log: Arc<LogWriter>, last: Timestamp) -> Self {
        Self { log, last: Mutex::new(last) }
    }

    pub fn log(&self) -> &Arc<LogWriter> {
        &self.log
    }

    /// Logs a record under the next timestamp; `state` becomes committed at it. A record that is refused (the disk is
    /// full) leaves no trace: its transaction still runs, and can be rolled back.
    pub fn log_commit(
        &self,
        kind: u8,
        payload: &[u8],
        state: Option<&TxnState>,
        durability: Durability,
    ) -> Result<CommitTicket> {
        let ticket = self.log_if(kind, payload, state, durability, |_| Ok(true), |_| {})?;
        Ok(ticket.expect("it is always admitted"))
    }

    /// As [`Self::log_commit`], if `admit` says so at the timestamp, under the latch; then `accepted` is called, unless
    /// the log refuses the record.
    pub fn log_if(
        &self,
        kind: u8,
        payload: &[u8],
        state: Option<&TxnState>,
        durability: Durability,
        admit: impl FnOnce(Timestamp) -> Result<bool>,
        accepted: impl FnOnce(Timestamp),
    ) -> Result<Option<CommitTicket>> {
        // The checksum of the payload is computed before the latch; a large record is copied before it, too, and waits there
        // for its segment.
        let record = self.log.prepare(avocet_log::Record::new(kind, payload))?;
        let mut last = self.last.lock();
        let ts = Timestamp(last.0 + 1);
        if !admit(ts)? {
            return Ok(None);
        }
        // Before the record can become durable, and so visible.
        let commit = || {
            accepted(ts);
            state.into_iter().for_each(|state| state.commit(ts));
        };
        let end = self.log.append_with(record, ts.0, durability, commit)?;
        *last = ts;
        Ok(Some(self.ticket(Some(end), ts, durability)))
    }

    /// Recovery: the records up to `ts` are in force.
    pub fn resume_after(&self, ts: Timestamp) {
        *self.last.lock() = ts;
    }

    /// A serializable transaction begins: from the next commit on all are recorded.
    pub fn enter(&self, serial: &Serial) {
        let last = self.last.lock();
        serial.enter(*last);
    }

    /// The newest logged timestamp.
    pub fn last_logged(&self) -> Timestamp {
        *self.last.lock()
    }

    /// A ticket that waits for everything logged so far.
    pub fn all_so_far(&self, ts: Timestamp, durability: Durability) -> CommitTicket {
        let end = match durability {
            Durability::Os => self.log.appended_lsn(),
            Durability::Sync | Durability::Group(_) => self.log.ask_for_sync(),
        };
        self.ticket(Some(end), ts, durability)
    }

    /// A ticket for a transaction that changed nothing.
    pub fn nothing(&self, ts: Timestamp) -> CommitTicket {
        self.ticket(None, ts, Durability::Sync)
    }

    fn ticket(&self, end: Option<Lsn>, ts: Timestamp, durability: Durability) -> CommitTicket {
        CommitTicket { log: self.log.clone(), end, ts, durability, waiting: None }
    }
}

impl CommitTicket {
    pub fn timestamp(&self) -> Timestamp {
        self.ts
    }

    /// Whether there is nothing to wait for (any more).
    pub fn is_durable(&self) -> bool {
        let reached = match self.durability {
            Durability::Os => self.log.written_lsn(),
            Durability::Sync | Durability::Group(_) => self.log.durable_lsn(),
        };
        self.end.is_none_or(|end| reached >= end)
    }

    /// Blocks until the commit is durable (or what its transaction was content with) and visible.
    pub fn wait(self) -> Result<()> {
        match (self.end, self.durability) {
            (None, _) => Ok(()),
            (Some(end), Durability::Os) => Ok(self.log.wait_written(end)?),
            (Some(end), Durability::Sync | Durability::Group(_)) => Ok(self.log.wait_durable(end)?),
        }
    }
}

impl CommitTicket {
    /// As [`Self::wait`], but until the commit is on disk, whatever its transaction was content with.
    pub fn wait_synced(self) -> Result<()> {
        match self.end {
            Some(end) if self.log.durable_lsn() < end => Ok(self.log.flush()?),
            _ => Ok(()),
        }
    }
}

impl Future for CommitTicket {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(end) = self.end else { return Poll::Ready(Ok(())) };
        if self.waiting.is_none() {
            let reached = match self.durability {
                Durability::Os => self.log.written(end),
                Durability::Sync | Durability::Group(_) => self.log.durable(end),
            };
            self.waiting = Some(Box::pin(reached));
        }
        let waiting = self.waiting.as_mut().expect("set above");
        waiting.as_mut().poll(cx).map_err(Into::into)
    }
}
