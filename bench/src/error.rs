//! The crate's one error type. A benchmark either produces a figure or says why it could not; nothing here is retried
//! except by the terminals, which look at MySQL's error number themselves.

use std::path::PathBuf;

/// Why a workload could not be run or did not hold what it promised.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{context}: {source}")]
    Io { context: String, source: std::io::Error },
    #[error(transparent)]
    Mysql(#[from] mysql::Error),
    #[error("Parquet: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    #[error("Arrow: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
    #[error("JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{program} failed ({status}): {output}")]
    Program { program: String, status: String, output: String },
    #[error("{path}: {message}")]
    File { path: PathBuf, message: String },
    #[error("{0}")]
    Setup(String),
    #[error("the engine in process: {0}")]
    Engine(#[from] avocet_engine::EngineError),
    #[error("{0}")]
    Check(String),
}

pub type Result<T> = std::result::Result<T, Error>;

/// Adds what was being done to an I/O error.
pub trait IoContext<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> IoContext<T> for std::io::Result<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::Io { context: what(), source })
    }
}

impl Error {
    /// MySQL's error number, if a server sent one.
    pub fn errno(&self) -> Option<u16> {
        match self {
            Error::Mysql(mysql::Error::MySqlError(e)) => Some(e.code),
            _ => None,
        }
    }

    /// Whether the connection is gone, as it is after the server was killed.
    pub fn is_disconnect(&self) -> bool {
        use mysql::Error::{CodecError, DriverError, IoError};
        matches!(self, Error::Mysql(IoError(_) | CodecError(_) | DriverError(_)))
            || self.errno() == Some(1053)
    }
}
