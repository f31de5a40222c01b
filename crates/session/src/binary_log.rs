//! What sessions, and the connections of replicas, can ask of this server's own binary log (`logged.rs`).
//!
//! The one who writes it stands above sessions.

use std::collections::BTreeMap;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use avocet_engine::change_statement;
use avocet_types::expr::SqlMode;
use parking_lot::Mutex;

use super::sql_mode::as_read_in;

/// This server's binary log.
pub trait BinaryLog: std::fmt::Debug + Send + Sync {
    fn status(&self) -> BinaryLogStatus;

    /// Waits until what is committed by now is in it, but no longer than this, and not while its disk is full; whether it is. Blocks.
    fn catch_up(&self, at_most: Duration, stop: &dyn Fn() -> bool) -> bool;

    /// Names and sizes of its files.
    fn files(&self) -> Vec<(String, u64)>;

    /// Ends the last file and begins another; whether that is done: not if it was stopped, or nothing is written any more. Blocks.
    fn rotate(&self, stop: &dyn Fn() -> bool) -> bool;

    /// Deletes the files before this one, up to one that is read; says what is kept of them. `None` if there is no such file.
    fn purge_to(&self, name: &str) -> Option<io::Result<Option<KeptLog>>>;

    /// Deletes the files that ended before this, in seconds since 1970, up to one that is read or written to; says which that is.
    ///
    /// # Errors
    /// Files that cannot be deleted.
    fn purge_before(&self, seconds: u64) -> io::Result<Option<KeptLog>>;

    /// Begins anew, with a file of this number and without transactions, unless somebody reads it. Blocks.
    fn reset(&self, first: u64, stop: &dyn Fn() -> bool) -> LogReset;

    /// Waits until all transactions of a set are in it, but no longer than this; whether they are. `None` if the text is no set.
    fn wait_for(&self, set: &str, at_most: Duration, stop: &dyn Fn() -> bool) -> Option<bool>;

    /// What is in a file, the first one if none is named, from a position on.
    ///
    /// # Errors
    /// MySQL's text behind error 1220.
    fn events(&self, file: Option<&str>, from: u64) -> Result<Box<dyn BinaryLogEvents>, String>;

    /// Begins to read for a replica. `begins_without_checksum`: it expects none on the event that comes before the file's description.
    ///
    /// # Errors
    /// MySQL's text of error 1236.
    fn dump(&self, from: DumpFrom, begins_without_checksum: bool) -> Result<Box<dyn BinaryLogDump>, String>;
}

/// Events of one of its files.
pub trait BinaryLogEvents: Send {
    fn file(&self) -> &str;

    /// Appends some of those that come next; whether there are more. Blocks.
    ///
    /// # Errors
    /// MySQL's text behind error 1220.
    fn next(&mut self, to: &mut Vec<LoggedEvent>) -> Result<bool, String>;
}

/// An event, as SHOW BINLOG EVENTS has it.
#[derive(Clone, Debug)]
pub struct LoggedEvent {
    pub position: u64,
    pub kind: &'static str,
    pub server_id: u32,
    /// Where the next one begins.
    pub end: u64,
    pub info: String,
}

/// What RESET BINARY LOGS AND GTIDS comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogReset {
    Done,
    /// So many read the log.
    InUse(usize),
    /// It was stopped, or nothing is written any more.
    Stopped,
}

/// A file that PURGE BINARY LOGS did not delete.
#[derive(Clone, Debug)]
pub enum KeptLog {
    /// It is written to.
    Active(String),
    /// It is read by so many; and how many files were deleted, of those that were to be.
    InUse { file: String, readers: usize, purged: usize, of: usize },
}

/// A moment of it.
#[derive(Clone, Debug, Default)]
pub struct BinaryLogStatus {
    pub file: String,
    pub position: u64,
    pub executed: String,
    pub purged: String,
}

/// From where on a replica wants events.
#[derive(Clone, Debug)]
pub enum DumpFrom {
    /// It has these transactions: a set as COM_BINLOG_DUMP_GTID has it; and the place behind which it asks for others, if it names one.
    Gtids(Vec<u8>, Option<(String, u64)>),
    Position(String, u64),
}

/// What a step through the log comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpStep {
    Event,
    /// The replica has what was passed over; there is more behind it.
    Skipped,
    /// There is nothing more yet.
    End,
}

/// A replica's place in the log.
pub trait BinaryLogDump: Send + Sync {
    /// Appends the next event, if there is one.
    ///
    /// # Errors
    /// A file that cannot be read.
    fn next(&mut self, to: &mut Vec<u8>) -> io::Result<DumpStep>;

    /// Ready when there is more, or never will be.
    fn poll_more(&self, cx: &mut Context<'_>) -> Poll<()>;

    fn has_ended(&self) -> bool;

    /// Bytes that are read ahead.
    fn buffered(&self) -> usize;

    /// Appends an event that says that there is nothing new; nothing if the replica understands none of this place. `in_full`: it has
    /// asked for those that have places beyond 4 GiB.
    fn heartbeat(&self, in_full: bool, to: &mut Vec<u8>);
}

/// A replica, as SHOW REPLICAS has it.
#[derive(Clone, Debug, Default)]
pub struct Replica {
    pub server_id: u32,
    pub host: String,
    pub port: u16,
    pub uuid: String,
}

/// Those that are connected, by their connections.
pub(super) type Replicas = Mutex<BTreeMap<u32, Replica>>;

/// What is sent to a replica.
pub struct Dumping {
    pub dump: Box<dyn BinaryLogDump>,
    /// So long without an event, and it gets a heartbeat.
    pub heartbeat: Option<Duration>,
    /// It has said so.
    pub is_mariadb: bool,
}

/// The running statement is told to others as these, printed in this mode: it decides about quotes, and all else is printed as if no
/// mode were set.
pub(super) fn tell_as(database: Option<&str>, mode: SqlMode, texts: Vec<String>) {
    change_statement(|statement| {
        statement.sql_mode = as_read_in(statement.sql_mode, mode.of(SqlMode::ANSI_QUOTES));
        if let Some(database) = database {
            statement.database = Some(database.to_owned());
        }
        statement.texts = texts;
    });
}
