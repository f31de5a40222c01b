//! What a session can ask of a server that follows another: how far it is (`show/replica.rs`), and waits for transactions.
//!
//! The one who follows stands above sessions; here is what it has to tell.

use std::time::Duration;

/// A source that is followed.
pub trait Replication: std::fmt::Debug + Send + Sync {
    fn status(&self) -> ReplicaStatus;

    /// Compares tables with the source by value, all that are followed if none are named; with `repairs`, those that differ are
    /// copied again. Blocks.
    ///
    /// # Errors
    /// Why nothing could be told.
    fn check(
        &self,
        tables: &[(String, String)],
        repairs: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<CheckedTable>, String>;

    /// Waits until all transactions of a set are visible here, but no longer than this; whether they are. `None` if the text is no
    /// set.
    fn wait_for(&self, set: &str, at_most: Duration, stop: &dyn Fn() -> bool) -> Option<bool>;
}

/// A table that was compared with the source.
#[derive(Clone, Debug)]
pub struct CheckedTable {
    pub database: String,
    pub table: String,
    /// Rows that were found to be the same.
    pub rows: u64,
    /// `equal`, `different` or `unknown`.
    pub verdict: &'static str,
    /// The first row that differs, or why it could not be told.
    pub detail: String,
}

/// A table that is not followed (yet).
#[derive(Clone, Debug)]
pub struct LeftOut {
    pub database: String,
    pub table: String,
    /// What is being done about it, or why nothing is.
    pub state: String,
}

/// A moment of it.
#[derive(Clone, Debug, Default)]
pub struct ReplicaStatus {
    pub source_host: String,
    pub source_port: u16,
    pub source_user: String,
    pub source_uuid: String,
    pub state: String,
    /// `Yes`, `Connecting` or `No`.
    pub reads: &'static str,
    pub applies: bool,
    pub log_file: String,
    pub log_position: u64,
    /// Why nothing comes, or nothing is applied.
    pub last_error: Option<String>,
    /// Tables that are not followed, and why.
    pub left_out: Vec<LeftOut>,
    pub seconds_behind: Option<u64>,
    pub executed: String,
}
