//! What can go wrong in the engine.

mod foreign_key;

use avocet_base::codec::Malformed;
use avocet_storage::StorageError;
use thiserror::Error;

pub use foreign_key::ForeignKeyError;

pub type Result<T, E = EngineError> = std::result::Result<T, E>;

#[derive(Debug, Clone, Error)]
pub enum EngineError {
    /// A unique key holds the value already. `entry` is shown as MySQL shows it: `v1-v2`.
    #[error("duplicate entry '{entry}' for key '{table}.{key}'")]
    DuplicateKey { entry: String, table: String, key: String },
    #[error(transparent)]
    ForeignKey(#[from] ForeignKeyError),
    #[error("the check constraint '{0}' exists")]
    DuplicateCheck(String),
    #[error("lock wait timeout exceeded")]
    LockWaitTimeout,
    /// The statement is to wait for a row without a thread, and to begin anew: see `Txn::defer_waits`.
    #[error("a row is waited for")]
    WaitDeferred,
    #[error("somebody else holds the row")]
    LockNotAvailable,
    #[error("deadlock found; the transaction must be rolled back")]
    Deadlock,
    /// Under strict snapshot isolation.
    #[error("a row of table '{0}' has changed since the snapshot")]
    SnapshotConflict(String),
    #[error("what the transaction read has changed since")]
    SerializationFailure,
    #[error("the row changed since the snapshot of a bulk statement")]
    WriteConflict,
    #[error("the statement was interrupted")]
    Interrupted,
    #[error("unknown database '{0}'")]
    NoSuchDatabase(String),
    #[error("database '{0}' exists")]
    DatabaseExists(String),
    #[error("table '{0}.{1}' does not exist")]
    NoSuchTable(String, String),
    /// The handle is not the table of its name any more: its definition is to be looked up again.
    #[error("the definition of table '{0}.{1}' has changed")]
    StaleDefinition(String, String),
    /// The transaction's snapshot is from before the table, or an index of it, was made.
    #[error("the definition of table '{0}.{1}' has changed since the snapshot; retry the transaction")]
    DefinitionChanged(String, String),
    #[error("table '{0}' exists")]
    TableExists(String),
    /// A change of definitions found another number of rows than there must be, and changed nothing.
    #[error("{what} has {found} rows, not {expected}")]
    RowsMissing { what: String, expected: u64, found: u64 },
    #[error("key '{0}' does not exist")]
    NoSuchIndex(String),
    #[error("duplicate key name '{0}'")]
    IndexExists(String),
    #[error("the key is too long: {len} bytes, at most {max}")]
    KeyTooLong { len: usize, max: usize },
    #[error("the row is too large: {len} bytes, at most {max}")]
    RowTooLarge { len: usize, max: usize },
    /// The session has locked tables, and this is none of them.
    #[error("table '{0}' is not locked")]
    NotLocked(String),
    /// The session itself has locked it for reading.
    #[error("table '{0}' is locked for reading")]
    LockedForRead(String),
    #[error("the transaction is read-only")]
    ReadOnly,
    #[error("column '{0}' cannot be null")]
    NullInColumn(String),
    /// Tables and transactions take what memory there is for them, and nothing of it can be frozen.
    #[error(
        "tables and transactions take {used} of {limit} bytes of memory, most of it {most_of_it}: no rows can be added; \
         {remedy}, or raise --memory-limit"
    )]
    OutOfMemory { used: usize, limit: usize, most_of_it: &'static str, remedy: &'static str },
    /// Running transactions have for redo, undo and locks what there is for them: `own` bytes the one that was refused.
    #[error(
        "the transaction needs {own} bytes of memory until it commits, and all running ones {all} of the {limit} that there \
         are for them: commit in smaller parts, load by LOAD DATA or INSERT ... SELECT, or raise --memory-limit"
    )]
    TransactionTooLarge { own: usize, all: usize, limit: usize },
    /// What a transaction has changed is one record of the log, which has a greatest length.
    #[error(
        "the transaction has {len} bytes for the log, and may have {limit}: commit in smaller parts, or load by LOAD DATA or \
         INSERT ... SELECT"
    )]
    RecordTooLarge { len: usize, limit: usize },
    /// Of what another source has committed.
    #[error("{what} cannot be applied: {why}")]
    CannotApply { what: &'static str, why: &'static str },
    /// Its rows come from elsewhere, and are not what they were there at any moment.
    #[error("table '{table}' cannot be used now: {why}")]
    Withheld { table: String, why: String },
    /// A new index.
    #[error(
        "there is no memory for index '{index}': index fewer columns or a prefix, drop other indexes or rows, or raise --memory-limit"
    )]
    IndexTooLarge { index: String },
    /// The data directory is in use.
    #[error("{0} is in use by another server")]
    InUse(String),
    #[error("{0}")]
    NotADataDirectory(String),
    #[error(transparent)]
    Log(#[from] avocet_log::Error),
    #[error(transparent)]
    Storage(#[from] std::sync::Arc<StorageError>),
    #[error("{what}: {why}")]
    Corrupt { what: String, why: String },
    #[error("{what}: {why}")]
    Io { what: String, why: String, no_space: bool },
    #[error("procedure {0} does not exist")]
    NoSuchProcedure(String),
    #[error("procedure {procedure} takes {expected} arguments, got {got}")]
    WrongArgumentCount { procedure: String, expected: usize, got: usize },
    /// A value that its column or parameter does not take; `why` is MySQL's text.
    #[error("{why}")]
    BadValue { column: String, why: String },
    /// A Rust type does not fit the table that it is to be a row or a key of.
    #[error("{table}: {why}")]
    WrongShape { table: String, why: String },
    /// A procedure's own error, as MySQL's SIGNAL makes it.
    #[error("{message}")]
    Signal { errno: u16, sqlstate: [u8; 5], message: String },
    /// Recovery met a call of a procedure that the program does not register.
    #[error("the log has a call of procedure {0}, which is not registered: recovery needs it")]
    NotRegistered(String),
    /// A procedure that is declared deterministic did not do again what it did.
    #[error("procedure {procedure} is not deterministic, or has changed since its call was logged: {why}")]
    NotReproduced { procedure: String, why: String },
    /// The engine stopped itself after an error that it must not go on from.
    #[error("the engine has stopped: {0}")]
    Stopped(String),
}

/// What a caller can do about an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// The statement was wrong.
    User,
    /// Roll back and try again.
    Retry,
    Io,
    NoSpace,
    Corrupt,
    Stopped,
}

impl EngineError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::LockWaitTimeout
            | Self::WaitDeferred
            | Self::LockNotAvailable
            | Self::Deadlock
            | Self::WriteConflict
            | Self::SnapshotConflict(_)
            | Self::StaleDefinition(..)
            | Self::DefinitionChanged(..)
            | Self::SerializationFailure => ErrorKind::Retry,
            Self::Io { no_space: true, .. } => ErrorKind::NoSpace,
            Self::Io { .. } | Self::InUse(_) | Self::NotADataDirectory(_) => ErrorKind::Io,
            Self::Corrupt { .. } | Self::NotReproduced { .. } | Self::RowsMissing { .. } => {
                ErrorKind::Corrupt
            }
            Self::Log(e) => log_kind(e),
            Self::Stopped(_) => ErrorKind::Stopped,
            Self::Storage(e) => match e.kind() {
                avocet_storage::StorageErrorKind::NoSpace => ErrorKind::NoSpace,
                avocet_storage::StorageErrorKind::Corrupt => ErrorKind::Corrupt,
                avocet_storage::StorageErrorKind::Io => ErrorKind::Io,
                avocet_storage::StorageErrorKind::Unsupported => ErrorKind::User,
            },
            _ => ErrorKind::User,
        }
    }

    /// An error of a procedure's own: 1644 and SQLSTATE 45000, as MySQL's `SIGNAL SQLSTATE '45000'` gives it.
    pub fn signal(message: impl Into<String>) -> Self {
        Self::Signal { errno: 1644, sqlstate: *b"45000", message: message.into() }
    }

    pub(crate) fn corrupt(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Corrupt { what: what.into(), why: why.to_string() }
    }

    pub(crate) fn io(what: impl Into<String>, why: &std::io::Error) -> Self {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        let no_space = matches!(why.kind(), StorageFull | QuotaExceeded);
        Self::Io { what: what.into(), why: why.to_string(), no_space }
    }
}

/// A writer that refuses a record goes on; anything else that befalls it ends it.
fn log_kind(error: &avocet_log::Error) -> ErrorKind {
    match (error, error.kind()) {
        (avocet_log::Error::Stopped(_), _) => ErrorKind::Stopped,
        (_, avocet_log::ErrorKind::NoSpace) => ErrorKind::NoSpace,
        (_, avocet_log::ErrorKind::Corrupt) => ErrorKind::Corrupt,
        (avocet_log::Error::TooLarge { .. }, _) => ErrorKind::User,
        _ => ErrorKind::Stopped,
    }
}

impl From<StorageError> for EngineError {
    fn from(e: StorageError) -> Self {
        Self::Storage(std::sync::Arc::new(e))
    }
}

/// Persisted bytes of the engine's own making that do not parse.
pub(crate) fn malformed(what: &'static str) -> impl Fn(Malformed) -> EngineError {
    move |e| EngineError::corrupt(what, e)
}
