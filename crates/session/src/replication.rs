//! What a session can ask of a server that follows another, or may be told to: how far it is (`show/replica.rs`), waits for
//! transactions, and to begin and end (`statements.rs`).
//!
//! The one who follows stands above sessions; here is what it has to tell.

mod statements;

use std::time::Duration;

pub use avocet_sql::parse::statement::{PromoteAction, PromoteOptions, PromoteVerify, SourceOptions};
use avocet_types::error::SqlError;

/// Sources that are followed, or may be: one for each channel. The default channel's name is empty. Where a channel may be named and none
/// is, all are meant; 3074 if there is none of the name.
pub trait Replication: std::fmt::Debug + Send + Sync {
    /// Of the channels whose sources are known, by name.
    fn status(&self) -> Vec<ReplicaStatus>;

    /// Says which source is followed, from the next start on.
    ///
    /// # Errors
    /// 3021 while one is followed, 1235 for what cannot be followed, 3076 for a name that no channel can have, 3079 if it does not say which
    /// of several channels, 3080 for one channel more than there may be.
    fn change_source(&self, options: &SourceOptions) -> Result<(), SqlError>;

    /// Begins to follow; the channels whose sources are followed already. Blocks.
    ///
    /// # Errors
    /// 1200 if no source is known, or why it cannot be followed.
    fn start(&self, channel: Option<&str>) -> Result<Vec<String>, SqlError>;

    /// Ends at a boundary of the source's transactions; the channels whose sources are not followed. Blocks.
    ///
    /// # Errors
    /// If that could not be noted for the next start of the server.
    fn stop(&self, channel: Option<&str>) -> Result<Vec<String>, SqlError>;

    /// With `all`, the source is forgotten. What was applied stays, and so does the position.
    ///
    /// # Errors
    /// 3081 while one is followed.
    fn reset(&self, all: bool, channel: Option<&str>) -> Result<(), SqlError>;

    /// # Errors
    /// 3074 if there is no channel of the name.
    fn knows(&self, channel: &str) -> Result<(), SqlError>;

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

    /// Begins to take the source's place, step by step.
    ///
    /// # Errors
    /// Why that cannot begin.
    fn promote(&self, options: &PromoteOptions) -> Result<Box<dyn Promotion>, SqlError>;

    /// Waits until all transactions of a set are visible here, but no longer than this; whether they are. `None` if the text is no
    /// set.
    fn wait_for(&self, set: &str, at_most: Duration, stop: &dyn Fn() -> bool) -> Option<bool>;

    /// Waits until all before a place in the log of a channel's source is visible here, but no longer than this.
    fn wait_for_place(
        &self,
        file: &str,
        position: u64,
        channel: Option<&str>,
        at_most: Duration,
        stop: &dyn Fn() -> bool,
    ) -> PlaceWait;
}

/// What a wait for a place comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceWait {
    /// It was reached, after what is visible had moved so often.
    Reached(u64),
    /// The time was too short, or the wait was stopped.
    Late,
    /// Nothing is followed, or the place is in no log of the source.
    Never,
    /// It is not said of which of several channels.
    Unclear,
}

/// A promotion. Who drops one that has not come to its end takes back what it did at the source.
pub trait Promotion: Send {
    /// Takes the next step; `None` when there are no more. Blocks.
    ///
    /// # Errors
    /// Why it failed, and what became of the source.
    fn step(&mut self, stop: &dyn Fn() -> bool) -> Result<Option<PromotionStep>, SqlError>;
}

/// What a step of a promotion came to.
#[derive(Clone, Debug)]
pub struct PromotionStep {
    /// `check`, `stop writes`, …
    pub step: &'static str,
    /// `ok`, or `note` for what is left to do by hand.
    pub result: &'static str,
    pub detail: String,
    /// Since the promotion began.
    pub milliseconds: u64,
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

/// How far the copy of a table is.
#[derive(Clone, Debug)]
pub struct CopyProgress {
    pub database: String,
    pub table: String,
    pub rows: u64,
    /// The source's estimate.
    pub of_about: u64,
    pub bytes: u64,
}

/// A moment of it.
#[derive(Clone, Debug, Default)]
pub struct ReplicaStatus {
    pub channel: String,
    pub source_host: String,
    pub source_port: u16,
    pub source_user: String,
    /// The longest wait between two attempts to connect.
    pub connect_retry_seconds: u32,
    pub ssl: bool,
    /// What the source's certificate is verified with, if it is.
    pub ssl_ca: Option<String>,
    pub source_uuid: String,
    pub state: String,
    /// `Yes`, `Connecting` or `No`.
    pub reads: &'static str,
    pub applies: bool,
    pub log_file: String,
    pub log_position: u64,
    /// File and position up to which all is visible; `None` until that is known.
    pub visible: Option<(String, u64)>,
    /// Whether it follows by GTIDs.
    pub auto_position: bool,
    /// Why nothing comes, or nothing is applied.
    pub last_error: Option<String>,
    /// Tables that are not followed, and why.
    pub left_out: Vec<LeftOut>,
    /// Whether the source's commits wait until they are durable here; and if that is asked for and not so, why.
    pub semi_sync: bool,
    pub semi_sync_obstacle: Option<String>,
    pub seconds_behind: Option<u64>,
    /// Transactions of the source, and bytes of its log, that are not visible here; `None` if it does not say.
    pub transactions_behind: Option<u64>,
    pub bytes_behind: Option<u64>,
    /// File and position at which its log ends.
    pub source_log: Option<(String, u64)>,
    /// What was applied since the server started, and in each of the last seconds.
    pub transactions: u64,
    pub changes: u64,
    pub transactions_per_second: f64,
    pub changes_per_second: f64,
    /// Bytes of rows, as they came over the network.
    pub copied_bytes: u64,
    /// Tables that are being copied.
    pub copies: Vec<CopyProgress>,
    pub executed: String,
}
