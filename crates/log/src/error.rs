//! What can go wrong with the log, and what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avocet_base::Lsn;
use thiserror::Error;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the log. Cheap to clone, since a writer that stopped hands its reason to everyone who asks.
#[derive(Debug, Clone, Error)]
pub enum Error {
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: Arc<io::Error> },
    /// Bytes that were durable once are no longer what they were.
    #[error("the log is damaged at {lsn} ({} byte {offset}): {reason}", path.display())]
    Corrupt { path: PathBuf, offset: u64, lsn: Lsn, reason: String },
    /// No file holds this position, though there are files for later ones, or later ones were asked for.
    #[error("the log in {} has no segment for {lsn}{}", dir.display(), next_found(*.next))]
    MissingSegment { dir: PathBuf, lsn: Lsn, next: Option<Lsn> },
    /// The log ends before a position that was durable when it was written down elsewhere.
    #[error("the log in {} ends at {end}, but was asked for {wanted}", dir.display())]
    EndsEarly { dir: PathBuf, end: Lsn, wanted: Lsn },
    /// A writer was to start in the middle of records that are there.
    #[error("the log in {} has records up to {end}: a writer cannot start at {at}", dir.display())]
    NotAtEnd { dir: PathBuf, end: Lsn, at: Lsn },
    /// The log was held back for somebody who fell too far behind.
    #[error(
        "the log from {at} on was given up when it ended at {end}: at most {most} bytes are held back for this reader"
    )]
    SlotLost { at: Lsn, end: Lsn, most: u64 },
    #[error("a log record of {len} bytes is over the limit of {limit}")]
    TooLarge { len: usize, limit: usize },
    #[error("the log writer stopped: {0}")]
    Stopped(Arc<Error>),
    #[error("the log thread panicked")]
    Panicked,
    #[error("the log writer is closed")]
    Closed,
}

fn next_found(next: Option<Lsn>) -> String {
    next.map_or_else(String::new, |lsn| format!("; the next one begins at {lsn}"))
}

/// What the caller can do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The disk is full. If [`Error::Stopped`] is not around it, the append was refused, nothing is
    /// lost, and it may be tried again once there is room.
    NoSpace,
    /// The operating system refused.
    Io,
    /// The log's bytes are not what was written.
    Corrupt,
    /// The caller asked for what cannot be, or for anything after close.
    Misuse,
    /// A bug in the log or in a callback.
    Internal,
}

impl Error {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
                _ => ErrorKind::Io,
            },
            Self::Corrupt { .. } | Self::MissingSegment { .. } | Self::EndsEarly { .. } => ErrorKind::Corrupt,
            Self::NotAtEnd { .. } | Self::SlotLost { .. } | Self::TooLarge { .. } | Self::Closed => {
                ErrorKind::Misuse
            }
            Self::Panicked => ErrorKind::Internal,
            Self::Stopped(cause) => cause.kind(),
        }
    }

    /// Adds what was being done to which file to an error of the operating system.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_path_buf(), source: Arc::new(source) }
    }
}
