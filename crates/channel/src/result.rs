//! What a statement answers with, and the sink that its results go into.
//!
//! A statement makes these calls, in this order, and one such group for each statement of a multi-statement text:
//!
//! ```text
//!   statement ─┬─▶ columns ─▶ (row | batch | flush)* ─▶ end      a result set
//!              └─▶ ok                                            no result set
//! ```
//!
//! Invariants:
//! 1. A sink is bounded. When [`ResultSink::wants_flush`] says so, it is flushed before it gets another row: see
//!    [`Cancellation::flush`](crate::Cancellation::flush), the only place that waits for a client.
//! 2. A sink takes values as they are stored: decimals at their column's scale, TIMESTAMPs in UTC. It is the sink that
//!    shows TIMESTAMPs in the session's time zone, so that no plan need convert whole columns.

use std::io;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use avocet_types::collation::Charset;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::temporal::TimeZone;
use avocet_types::{Collation, Datum, SqlType};

/// One column of a result set. Length, character set, decimals and type code of the wire follow from `ty`.
#[derive(Clone, Debug)]
pub struct OutputColumn {
    /// The alias, or the expression's text.
    pub name: Arc<str>,
    /// The column's name in its table; empty for an expression.
    pub org_name: Arc<str>,
    /// The table's alias.
    pub table: Arc<str>,
    pub org_table: Arc<str>,
    pub schema: Arc<str>,
    pub ty: SqlType,
    pub flags: ColumnFlags,
}

impl OutputColumn {
    /// A column of an expression, nullable, of no table.
    pub fn expression(name: &str, ty: SqlType) -> Self {
        let empty: Arc<str> = Arc::from("");
        Self {
            name: Arc::from(name),
            org_name: empty.clone(),
            table: empty.clone(),
            org_table: empty.clone(),
            schema: empty,
            ty,
            flags: ColumnFlags::default(),
        }
    }
}

/// The columns of a plan's results, for as long as the plan is kept.
#[derive(Debug, Default)]
pub struct PlanColumns {
    pub list: Arc<[OutputColumn]>,
    /// What the driver makes of them under one collation of results, and need not make again.
    pub encoded: OnceLock<(Option<Collation>, Box<[u8]>)>,
}

impl From<Arc<[OutputColumn]>> for PlanColumns {
    fn from(list: Arc<[OutputColumn]>) -> Self {
        Self { list, encoded: OnceLock::new() }
    }
}

/// What clients are told of a column besides its type (unsigned, binary and blob follow from that).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnFlags {
    pub not_null: bool,
    pub primary_key: bool,
    pub unique_key: bool,
    /// Part of some non-unique key.
    pub multiple_key: bool,
    /// It is a later part of a key.
    pub later_part: bool,
    pub auto_increment: bool,
    /// NOT NULL and without a default.
    pub no_default: bool,
    /// A TIMESTAMP that is set to now by default, or with each change.
    pub timestamp_now: bool,
    /// A TIMESTAMP that is set with each change.
    pub on_update_now: bool,
    /// The value of an expression, rather than a column's.
    pub computed: bool,
    /// ZEROFILL: numbers are sent as texts with so many characters at least.
    pub zerofill: Option<u8>,
}

/// The character set that a client gets text in (`character_set_results`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultsCharset {
    /// UTF-8, as text is kept.
    #[default]
    Utf8mb4,
    Of(Charset),
    /// NULL: each column's own, as its definition says.
    Own,
    /// `binary`: each column's own, and its definition says that these are bytes.
    OwnAsBytes,
}

/// The session's state after a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub autocommit: bool,
    pub in_transaction: bool,
    /// In a transaction that was started READ ONLY.
    pub read_only: bool,
    /// Another result of the same multi-statement text follows.
    pub more_results: bool,
    /// The result set holds a prepared CALL's OUT parameters.
    pub out_parameters: bool,
    /// The statement scanned a table without using an index.
    pub no_index_used: bool,
    /// A backslash in a string is a character like any other: clients that quote strings have to know.
    pub no_backslash_escapes: bool,
    /// The character set of what the client sends; `None` for UTF-8.
    pub client: Option<Charset>,
    pub results: ResultsCharset,
    /// The collation of what the client gets, if it is not the character set's default.
    pub results_collation: Option<Collation>,
    pub warnings: u16,
}

/// The outcome of a statement without a result set.
#[derive(Clone, Copy, Debug, Default)]
pub struct OkReply<'a> {
    pub affected_rows: u64,
    /// The first AUTO_INCREMENT value that the statement generated, or 0.
    pub last_insert_id: u64,
    /// For people, such as `Rows matched: 1  Changed: 1  Warnings: 0`.
    pub info: &'a str,
    pub status: Status,
    /// For clients that track session state.
    pub changes: &'a [SessionChange<'a>],
}

/// A change of session state that clients can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionChange<'a> {
    Database(&'a str),
    Variable { name: &'a str, value: &'a str },
}

/// Takes the results of a statement. See the module's head for the order of calls.
pub trait ResultSink: Send {
    /// Begins a result set. `zone` is the session's time zone, for its TIMESTAMPs.
    fn columns(&mut self, columns: &[OutputColumn], zone: TimeZone) -> Result<(), SinkError>;

    /// As [`columns`](Self::columns), of a plan that is run again and again.
    fn plan_columns(&mut self, columns: &PlanColumns, zone: TimeZone) -> Result<(), SinkError> {
        self.columns(&columns.list, zone)
    }

    /// Whether the receiver knows what to do with [`Self::out_parameters`]; it is spared them otherwise, as by MySQL.
    fn takes_out_parameters(&self) -> bool {
        true
    }

    /// Begins the result set, of one row, that holds the OUT and INOUT parameters of a prepared CALL.
    fn out_parameters(&mut self, columns: &[OutputColumn], zone: TimeZone) -> Result<(), SinkError> {
        self.columns(columns, zone)
    }

    /// A row with one datum per column.
    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError>;

    /// Rows whose arrays have `SqlType::arrow_type()` of the columns, from the row `from` on. Returns the first row that it
    /// has not taken: not the batch's length only if it is full, which [`Self::wants_flush`] then says.
    fn batch(&mut self, batch: &RecordBatch, from: usize) -> Result<usize, SinkError>;

    fn end(&mut self, status: Status) -> Result<(), SinkError>;

    fn ok(&mut self, ok: &OkReply<'_>) -> Result<(), SinkError>;

    /// The client's files, if it gives any.
    fn local_files(&mut self) -> Option<&mut dyn LocalFiles> {
        None
    }

    /// So much is buffered that the sink is to be flushed before it takes more.
    fn wants_flush(&self) -> bool {
        false
    }

    /// Passes on what is buffered; ready when the receiver has taken it.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        Poll::Ready(Ok(()))
    }
}

/// The client's files, for LOAD DATA LOCAL: it is asked for one, and sends what it holds.
pub trait LocalFiles: Send {
    /// Asks for a file. `patience`: for how long the client may pause while it sends.
    fn request(&mut self, name: &str, patience: Duration) -> Result<(), SinkError>;

    /// Appends some of the file that was asked for; false at its end.
    fn poll_read(&mut self, cx: &mut Context<'_>, to: &mut Vec<u8>) -> Poll<Result<bool, SinkError>>;
}

/// Why a sink took no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    #[error("the client is gone")]
    Disconnected,
    #[error("the client has not sent anything for too long")]
    TimedOut,
    #[error("the client sent something else than a file")]
    OutOfOrder,
    #[error("a row is larger than max_allowed_packet")]
    RowTooLarge,
    #[error("a row does not fit the columns that were announced")]
    Mismatch,
    #[error("the server has no memory for a row")]
    OutOfMemory,
    #[error("rows that wait in the spill folder cannot be written or read: {0}")]
    CannotSpill(io::ErrorKind),
}

impl From<SinkError> for SqlError {
    fn from(error: SinkError) -> Self {
        match error {
            SinkError::Disconnected => ErrorCode::NET_ERROR_ON_WRITE.with(&[]),
            SinkError::TimedOut => ErrorCode::NET_READ_INTERRUPTED.with(&[]),
            SinkError::OutOfOrder => ErrorCode::NET_PACKETS_OUT_OF_ORDER.with(&[]),
            SinkError::RowTooLarge => ErrorCode::NET_PACKET_TOO_LARGE.with(&[]),
            SinkError::Mismatch => ErrorCode::UNKNOWN_ERROR.with(&[]),
            SinkError::OutOfMemory => ErrorCode::OUT_OF_RESOURCES.because(error.to_string()),
            SinkError::CannotSpill(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                ErrorCode::DISK_FULL.because(error.to_string())
            }
            SinkError::CannotSpill(_) => ErrorCode::GET_ERRNO.because(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_said_to_be_full() {
        let full = SqlError::from(SinkError::CannotSpill(io::ErrorKind::StorageFull));
        assert!(full.is(ErrorCode::DISK_FULL), "{full:?}");
        let other = SqlError::from(SinkError::CannotSpill(io::ErrorKind::PermissionDenied));
        assert!(other.is(ErrorCode::GET_ERRNO), "{other:?}");
    }
}
