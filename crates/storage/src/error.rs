//! The one error type of this crate.

use std::io;

use avocet_base::codec::Malformed;
use thiserror::Error;

pub type Result<T, E = StorageError> = std::result::Result<T, E>;

/// Why storage could not do what was asked.
#[derive(Debug, Error)]
pub enum StorageError {
    /// The disk or the object store failed.
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    /// The disk is full; nothing that counts was left behind.
    #[error("no space left: {what}")]
    NoSpace { what: String },
    /// Persisted bytes are not what was written.
    #[error("{what} is corrupt: {at}")]
    Corrupt { what: String, at: String },
    /// The data can not be represented, or the question can not be asked of it.
    #[error("{0}")]
    Unsupported(String),
}

/// What a caller decides by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageErrorKind {
    Io,
    NoSpace,
    Corrupt,
    Unsupported,
}

impl StorageError {
    pub fn kind(&self) -> StorageErrorKind {
        match self {
            Self::Io { .. } => StorageErrorKind::Io,
            Self::NoSpace { .. } => StorageErrorKind::NoSpace,
            Self::Corrupt { .. } => StorageErrorKind::Corrupt,
            Self::Unsupported(_) => StorageErrorKind::Unsupported,
        }
    }

    /// An I/O error, or [`StorageError::NoSpace`] if that is what it says.
    pub fn io(what: impl Into<String>, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace { what: what.into() },
            _ => Self::Io { what: what.into(), source },
        }
    }

    pub fn corrupt(what: impl Into<String>, at: impl ToString) -> Self {
        Self::Corrupt { what: what.into(), at: at.to_string() }
    }

    /// Says in which object the corruption is.
    pub fn within(self, object: &str) -> Self {
        match self {
            Self::Corrupt { what, at } => Self::Corrupt { what: format!("{object}: {what}"), at },
            other => other,
        }
    }
}

impl From<Malformed> for StorageError {
    fn from(m: Malformed) -> Self {
        Self::corrupt(m.what, format_args!("malformed at byte {}", m.at))
    }
}
