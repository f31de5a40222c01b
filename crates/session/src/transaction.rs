//! Transactions of a session: when one begins, what a failed statement takes back, how it ends.
//!
//! Invariants:
//! 1. A statement that fails leaves nothing of itself: it is rolled back alone, or, as a deadlock's victim, with its
//!    whole transaction.
//! 2. Nothing is acknowledged before the commit's ticket was awaited.
//! 3. A statement whose future was dropped half-way is rolled back with its transaction before the next one begins.
//! 4. Savepoints are of the running transaction: they end with it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use avocet_channel::Interruption;
use avocet_channel::blocking::{ROWS_IN_PLACE, blocking_if};
use avocet_engine::{Engine, Isolation, StatementMark, Txn, TxnOptions};
use avocet_sql::parse::statement::{Completion, IsolationLevel};
use avocet_types::error::{ErrorCode, SqlError};

use super::counters::Counter;
use super::run::Outcome;
use super::state::{Characteristics, Explicit, Level, Session};

/// Whether its end takes so long that the other connections of the thread had better not wait for it.
fn is_large(txn: &Txn) -> bool {
    txn.weight() > ROWS_IN_PLACE as u64
}

/// Where a query began.
pub(super) struct QueryMark {
    pub statement: StatementMark,
    /// In a transaction that ends with it.
    is_apart: bool,
}

impl Session {
    /// The transaction of a statement that reads or writes rows: the running one, or a new one.
    pub(super) fn begin_statement(&mut self) -> Result<StatementMark, SqlError> {
        if self.txn.is_none() {
            self.start(None)?;
        }
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let txn = self.txn.as_mut().expect("started above");
        let within = |timeout: Duration| left.map_or(timeout, |left| left.min(timeout));
        let (rows, definitions) = (self.settings.lock_wait_timeout, self.settings.metadata_lock_timeout);
        txn.set_lock_timeouts(within(rows), within(definitions));
        txn.set_foreign_key_checks(self.settings.foreign_key_checks);
        Ok(txn.begin_statement())
    }

    /// Begins a query. Without stored tables it begins no transaction of the session's, and what SET TRANSACTION said of the
    /// next one still holds: if none is running, the query has one for itself.
    pub(super) fn begin_query(&mut self, reads_tables: bool) -> Result<QueryMark, SqlError> {
        let is_apart = !reads_tables && self.txn.is_none();
        if is_apart {
            let options = TxnOptions { read_only: true, ..TxnOptions::default() };
            self.begin_with(|engine| engine.begin(options));
        }
        Ok(QueryMark { statement: self.begin_statement()?, is_apart })
    }

    /// The end of what `begin_query` began.
    pub(super) async fn end_query<T>(
        &mut self,
        mark: QueryMark,
        result: Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        match mark.is_apart {
            true => {
                self.leave_query(mark);
                result
            }
            false => self.end_statement(mark.statement, result).await,
        }
    }

    /// Another path is to take a query, from its beginning.
    pub(super) fn leave_query(&mut self, mark: QueryMark) {
        if mark.is_apart {
            self.txn = None;
        }
    }

    pub(super) fn txn(&mut self) -> &mut Txn {
        self.txn.as_mut().expect("begin_statement was called")
    }

    /// Whether there is a transaction that the client has to end.
    pub(super) fn in_transaction(&self) -> bool {
        self.explicit.is_some() || (self.txn.is_some() && !self.settings.autocommit)
    }

    fn start(&mut self, read_only: Option<bool>) -> Result<(), SqlError> {
        let options = self.next_options(read_only);
        let read_only = options.read_only;
        self.begin_with(|engine| engine.begin(options));
        if let Some(explicit) = &mut self.explicit {
            explicit.read_only = read_only;
        }
        Ok(())
    }

    pub(super) fn begin_with(&mut self, begin: impl FnOnce(&Arc<Engine>) -> Txn) {
        let mut txn = begin(&self.shared.engine);
        txn.set_interrupt(self.stop.clone());
        txn.include(self.newest_met);
        txn.set_table_locks(self.locked.as_ref().map(|locked| locked.locks.clone()));
        self.txn = Some(txn);
    }

    /// How the next transaction is to run; what was set for it alone is spent.
    pub(super) fn next_options(&mut self, read_only: Option<bool>) -> TxnOptions {
        let next = std::mem::take(&mut self.next);
        let level = next.level.unwrap_or(self.settings.level);
        let isolation = match level {
            IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
            IsolationLevel::RepeatableRead if self.settings.snapshot_isolation => Isolation::Snapshot,
            IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
            IsolationLevel::Serializable => Isolation::Serializable,
        };
        let read_only = read_only.or(next.read_only).unwrap_or(self.settings.read_only);
        self.running = Characteristics { level: Some(level), read_only: Some(read_only) };
        TxnOptions {
            isolation,
            read_only,
            lock_wait_timeout: self.settings.lock_wait_timeout,
            metadata_lock_timeout: self.settings.metadata_lock_timeout,
            durability: Some(self.settings.durability),
            captured: self.settings.log_bin,
            ..TxnOptions::default()
        }
    }

    /// BEGIN and START TRANSACTION: commits what is open.
    pub(super) async fn begin(&mut self, read_only: Option<bool>, snapshot: bool) -> Result<(), SqlError> {
        self.commit().await?;
        // FLUSH TABLES WITH READ LOCK lasts: a dump takes its snapshot under it.
        if self.locked.as_ref().is_some_and(|locked| locked.names.is_some()) {
            self.locked = None;
        }
        self.explicit = Some(Explicit { read_only: false });
        if let Err(error) = self.start(read_only) {
            self.explicit = None;
            return Err(error);
        }
        if snapshot && self.running.level == Some(IsolationLevel::RepeatableRead) {
            self.txn().fix_snapshot();
        } else if snapshot {
            let message = "InnoDB: WITH CONSISTENT SNAPSHOT was ignored because this phrase can only be used with \
                           REPEATABLE READ isolation level.";
            self.warn(Level::Warning, 138, message.into());
        }
        Ok(())
    }

    /// Commits what is open, if anything is; returns when it is durable. Changes that the server no longer takes, because
    /// `read_only` was set since they were made, are rolled back (1290), whichever statement it is that commits.
    pub(super) async fn commit(&mut self) -> Result<(), SqlError> {
        if self.txn.as_ref().is_some_and(|txn| txn.has_changes() && !txn.changes_temporary_alone())
            && let Err(refused) = self.check_server_takes_changes()
        {
            self.rollback();
            return Err(refused);
        }
        self.explicit = None;
        self.savepoints.clear();
        if let Some(txn) = self.txn.take() {
            self.newest_met = self.newest_met.max(txn.newest_met());
            blocking_if(is_large(&txn), || txn.commit())?.await?;
        }
        Ok(())
    }

    pub(super) fn rollback(&mut self) {
        self.explicit = None;
        self.savepoints.clear();
        if let Some(txn) = self.txn.take() {
            self.newest_met = self.newest_met.max(txn.newest_met());
            blocking_if(is_large(&txn), || txn.rollback());
        }
    }

    /// COMMIT and ROLLBACK as statements. A chained transaction has the level and the access mode of the one before.
    pub(super) async fn end_transaction(
        &mut self,
        commit: bool,
        completion: Completion,
    ) -> Result<Outcome, SqlError> {
        let by_default = self.settings.completion_type;
        let release = completion.release.unwrap_or(completion.chain != Some(true) && by_default == "RELEASE");
        let chain = completion.chain.unwrap_or(completion.release != Some(true) && by_default == "CHAIN");
        let before = self.txn.is_some().then_some(self.running);
        if commit {
            self.shared.counters.add(Counter::Commit);
            self.commit().await?;
        } else {
            self.shared.counters.add(Counter::Rollback);
            self.rollback();
        }
        if chain {
            self.next = before.unwrap_or(self.next);
            self.begin(None, false).await?;
        } else {
            // SET TRANSACTION was for the transaction that has ended.
            self.next = if before.is_some() { Characteristics::default() } else { self.next };
        }
        if release {
            self.info.interrupt.raise(Interruption::Connection);
        }
        Ok(Outcome::ok())
    }

    /// 1792 for what a READ ONLY transaction must not do, 1290 for what the server does not take.
    pub(super) fn check_not_read_only(&self) -> Result<(), SqlError> {
        self.check_server_takes_changes()?;
        self.check_transaction_writes()
    }

    /// 1792 for what a READ ONLY transaction must not do.
    pub(super) fn check_transaction_writes(&self) -> Result<(), SqlError> {
        let read_only = match &self.txn {
            Some(txn) => txn.options().read_only,
            None => self.next.read_only.unwrap_or(self.settings.read_only),
        };
        match read_only {
            true => Err(ErrorCode::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION.with(&[])),
            false => Ok(()),
        }
    }

    /// SAVEPOINT: replaces one of the same name. Without a transaction it marks nothing, as in MySQL.
    pub(super) fn savepoint(&mut self, name: &str) -> Result<Outcome, SqlError> {
        if self.explicit.is_none() && self.settings.autocommit {
            return Ok(Outcome::ok());
        }
        if self.txn.is_none() {
            self.start(None)?;
        }
        let mark = self.txn().mark();
        self.savepoints.set(name, mark)?;
        Ok(Outcome::ok())
    }

    /// ROLLBACK TO: the savepoint stays, those after it go.
    pub(super) fn rollback_to(&mut self, name: &str) -> Result<Outcome, SqlError> {
        let mark = self.savepoints.return_to(name)?;
        let txn = self.txn();
        blocking_if(is_large(txn), || txn.rollback_statement(mark));
        Ok(Outcome::ok())
    }

    /// RELEASE SAVEPOINT: it and those after it go; what was done stays.
    pub(super) fn release_savepoint(&mut self, name: &str) -> Result<Outcome, SqlError> {
        self.savepoints.release(name)?;
        Ok(Outcome::ok())
    }

    /// The end of a statement in the transaction. Rolls it back if it failed; commits if nothing else will.
    pub(super) async fn end_statement<T>(
        &mut self,
        mark: StatementMark,
        result: Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let alone = self.explicit.is_none() && self.settings.autocommit;
        // A lock that was waited for until the statement's own time was over.
        let is_overdue = || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let result = match result {
            Err(error) if error.is(ErrorCode::LOCK_WAIT_TIMEOUT) && is_overdue() => {
                Err(ErrorCode::QUERY_TIMEOUT.with(&[]))
            }
            result => result,
        };
        // What was killed and has come to its end nevertheless changes nothing.
        let result = match &self.txn {
            Some(txn) if self.info.interrupt.get().is_some() && txn.has_changed_since(&mark) => {
                result.and_then(|_| Err(ErrorCode::QUERY_INTERRUPTED.with(&[])))
            }
            _ => result,
        };
        match result {
            Ok(value) => {
                if alone && let Err(error) = self.commit().await {
                    if error.is(ErrorCode::LOCK_DEADLOCK) {
                        self.begin_anew();
                    }
                    return Err(error);
                }
                Ok(value)
            }
            Err(error) if error.is(ErrorCode::CHECKREAD) => Err(self.end_of_snapshot(mark, alone, error)),
            Err(error) => {
                if alone || error.is(ErrorCode::LOCK_DEADLOCK) {
                    self.rollback();
                } else if let Some(txn) = &mut self.txn {
                    blocking_if(is_large(txn), || txn.rollback_statement(mark));
                }
                Err(error)
            }
        }
    }

    /// After a statement met a row that has changed since its snapshot.
    fn end_of_snapshot(&mut self, mark: StatementMark, alone: bool, error: SqlError) -> SqlError {
        let is_serializable = self.running.level == Some(IsolationLevel::Serializable);
        match &mut self.txn {
            Some(txn) if txn.can_restart() => match txn.restart_statement(mark) {
                Ok(()) => self.may_restart = true,
                Err(error) => {
                    let error = SqlError::from(error);
                    if alone || error.is(ErrorCode::LOCK_DEADLOCK) {
                        self.rollback();
                    }
                    return error;
                }
            },
            _ => self.rollback(),
        }
        if is_serializable { ErrorCode::LOCK_DEADLOCK.with(&[]) } else { error }
    }

    /// A statement that was a transaction of its own, and failed at its commit because of what others had changed, may be
    /// that once more, on a snapshot with those changes.
    fn begin_anew(&mut self) {
        self.shared.engine.wait_until_visible();
        self.next = self.running;
        self.may_restart = true;
    }

    /// Cleans up after a statement that was dropped before it ended.
    pub(super) fn recover_dropped(&mut self) {
        self.leave_prepared();
        self.end_hints();
        self.deprecated.clear();
        if std::mem::take(&mut self.in_flight) {
            self.rollback();
        }
    }
}
