//! Transactions of a session: when one begins, what a failed statement takes back, how it ends.
//!
//! Invariants:
//! 1. A statement that fails leaves nothing of itself: it is rolled back alone, or, as a deadlock's victim, with its
//!    whole transaction.
//! 2. Nothing is acknowledged before the commit's ticket was awaited.
//! 3. A statement whose future was dropped half-way is rolled back with its transaction before the next one begins.

use avocet_engine::{Isolation, StatementMark, Txn, TxnOptions};

use super::state::{Explicit, Session};
use super::status::Counter;
use crate::bind::unsupported;
use crate::error::{ErrorCode, SqlError};
use crate::parse::statement::IsolationLevel;

impl Session {
    /// The transaction of a statement that reads or writes rows: the running one, or a new one.
    pub(super) fn begin_statement(&mut self) -> Result<StatementMark, SqlError> {
        if self.txn.is_none() {
            self.start(None)?;
        }
        let txn = self.txn.as_mut().expect("started above");
        txn.set_lock_wait_timeout(self.settings.lock_wait_timeout);
        Ok(txn.begin_statement())
    }

    pub(super) fn txn(&mut self) -> &mut Txn {
        self.txn.as_mut().expect("begin_statement was called")
    }

    fn start(&mut self, read_only: Option<bool>) -> Result<(), SqlError> {
        let level = self.next_isolation.take();
        let next_read_only = self.next_read_only.take();
        let serializable = match level {
            Some(level) => level == IsolationLevel::Serializable,
            None => self.settings.serializable,
        };
        if serializable {
            return Err(unsupported("ISOLATION LEVEL SERIALIZABLE"));
        }
        let isolation = match level {
            Some(IsolationLevel::ReadCommitted | IsolationLevel::ReadUncommitted) => Isolation::ReadCommitted,
            Some(_) => Isolation::RepeatableRead,
            None => self.settings.isolation,
        };
        let read_only = read_only.or(next_read_only).unwrap_or(self.settings.read_only);
        let mut txn = self.shared.engine.begin(TxnOptions {
            isolation,
            read_only,
            lock_wait_timeout: self.settings.lock_wait_timeout,
            ..TxnOptions::default()
        });
        txn.set_interrupt(self.stop.clone());
        self.txn = Some(txn);
        if let Some(explicit) = &mut self.explicit {
            explicit.read_only = read_only;
        }
        Ok(())
    }

    /// BEGIN and START TRANSACTION: commits what is open.
    pub(super) async fn begin(&mut self, read_only: Option<bool>, snapshot: bool) -> Result<(), SqlError> {
        self.commit().await?;
        self.explicit = Some(Explicit { read_only: false });
        if let Err(error) = self.start(read_only) {
            self.explicit = None;
            return Err(error);
        }
        if snapshot {
            self.txn().fix_snapshot();
        }
        Ok(())
    }

    /// Commits what is open, if anything is; returns when it is durable.
    pub(super) async fn commit(&mut self) -> Result<(), SqlError> {
        self.explicit = None;
        if let Some(txn) = self.txn.take() {
            txn.commit()?.await?;
        }
        Ok(())
    }

    pub(super) fn rollback(&mut self) {
        self.explicit = None;
        if let Some(txn) = self.txn.take() {
            txn.rollback();
        }
    }

    /// COMMIT and ROLLBACK as statements.
    pub(super) async fn end_transaction(&mut self, commit: bool, chain: bool) -> Result<(), SqlError> {
        let chained = chain.then(|| self.explicit.is_some_and(|e| e.read_only));
        let level = self.txn.as_ref().map(|txn| txn.options().isolation);
        if commit {
            self.shared.counters.add(Counter::Commit);
            self.commit().await?;
        } else {
            self.shared.counters.add(Counter::Rollback);
            self.rollback();
        }
        let Some(read_only) = chained else { return Ok(()) };
        self.next_isolation = level.map(|level| match level {
            Isolation::ReadCommitted => IsolationLevel::ReadCommitted,
            Isolation::RepeatableRead => IsolationLevel::RepeatableRead,
        });
        self.begin(Some(read_only), false).await
    }

    /// The end of a statement in the transaction. Rolls it back if it failed; commits if nothing else will.
    pub(super) async fn end_statement<T>(
        &mut self,
        mark: StatementMark,
        result: Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let alone = self.explicit.is_none() && self.settings.autocommit;
        match result {
            Ok(value) => {
                if alone {
                    self.commit().await?;
                }
                Ok(value)
            }
            Err(error) => {
                if alone || error.is(ErrorCode::LOCK_DEADLOCK) {
                    self.rollback();
                } else if let Some(txn) = &mut self.txn {
                    txn.rollback_statement(mark);
                }
                Err(error)
            }
        }
    }

    /// Cleans up after a statement that was dropped before it ended.
    pub(super) fn recover_dropped(&mut self) {
        if std::mem::take(&mut self.in_flight) {
            self.rollback();
        }
    }
}
