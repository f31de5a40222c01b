//! Why a replay ends before its log does, or does not begin.

use std::path::PathBuf;

use thiserror::Error;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Error)]
pub enum Error {
    #[error("{}: {why}", .path.display())]
    Log { path: PathBuf, why: String },
    #[error("the log cannot be read on: {0}")]
    Reading(std::io::Error),
    /// A server cannot be reached, or is gone.
    #[error("{side} at {address}: {why}")]
    Gone { side: &'static str, address: String, why: String },
    /// What the servers are, no replay can compare; the cure is in the text.
    #[error("{0}")]
    Unfit(String),
}
