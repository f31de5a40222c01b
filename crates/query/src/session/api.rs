//! The joint between sessions and whatever drives them: the protocol server, the embedded shell, tests.
//!
//! A driver opens a [`SqlSession`] per connection and runs statements on it one at a time, inline on its own
//! task. Results go into a [`ResultSink`] that the driver owns: the server's writes rows straight into the
//! wire buffer, the shell's prints. A statement makes these calls, in this order:
//!
//! ```text
//!   statement ─┬─▶ columns ─▶ (row | batch | flush)* ─▶ end      a result set
//!              └─▶ ok                                            no result set
//! ```
//!
//! and one such group for each statement of a multi-statement text, all but the last with
//! `Status::more_results` set. An `Err` from `execute` ends the text: the driver reports it and drops the rest.
//!
//! Invariants:
//! 1. A sink is bounded. When [`ResultSink::wants_flush`] says so, the session flushes it before it passes another row: see
//!    [`channel`](super::channel), which is the only place that waits for a client.
//! 2. A sink takes values as they are stored: decimals at their column's scale, TIMESTAMPs in UTC. It is the sink that
//!    shows TIMESTAMPs in the session's time zone, so that no plan need convert whole columns.
//! 3. Dropping a session, or the future of a statement, rolls back what is open and frees it.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrow::record_batch::RecordBatch;
use avocet_types::collation::Charset;
use avocet_types::temporal::TimeZone;
use avocet_types::{Datum, SqlType};
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

use crate::error::{ErrorCode, SqlError};

/// One connection's state and the statements that run in it. Used by one task at a time.
pub trait SqlSession: Send {
    /// Runs every statement of `sql`. Several are allowed only after `set_multi_statements(true)`.
    fn execute(
        &mut self,
        sql: &str,
        sink: &mut dyn ResultSink,
    ) -> impl Future<Output = Result<(), SqlError>> + Send;

    /// Parses and binds one statement, and keeps it under the id that it returns.
    fn prepare(&mut self, sql: &str) -> impl Future<Output = Result<Prepared, SqlError>> + Send;

    /// Runs a prepared statement with exactly `Prepared::params` values.
    fn execute_prepared(
        &mut self,
        id: StatementId,
        params: &[Datum<'_>],
        sink: &mut dyn ResultSink,
    ) -> impl Future<Output = Result<(), SqlError>> + Send;

    /// Forgets a prepared statement; an unknown id is ignored, as in MySQL.
    fn close_prepared(&mut self, id: StatementId);

    /// Makes `name` the default database.
    fn use_database(&mut self, name: &str) -> Result<(), SqlError>;

    /// The default database.
    fn database(&self) -> Option<&str>;

    /// The columns of a table in the default database, for COM_FIELD_LIST.
    fn table_columns(&mut self, table: &str) -> Result<Vec<OutputColumn>, SqlError>;

    /// Rolls back, drops prepared statements and user variables, and gives every session variable its
    /// global value again (COM_RESET_CONNECTION). Keeps account and default database.
    fn reset(&mut self) -> impl Future<Output = ()> + Send;

    /// Cleans up at once after a statement whose future was dropped before it ended: its transaction is rolled back.
    fn recover(&mut self);

    fn set_multi_statements(&mut self, allowed: bool);

    /// How long the connection waits for its client; asked for after each statement.
    fn timeouts(&self) -> Timeouts {
        Timeouts::default()
    }

    /// What an OK packet says of this session between statements.
    fn status(&self) -> Status;
}

/// How long a connection waits for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Between statements: `wait_timeout`.
    pub idle: Duration,
    /// Within a packet: `net_read_timeout`.
    pub read: Duration,
    /// For the client to take some of a reply: `net_write_timeout`.
    pub write: Duration,
}

impl Default for Timeouts {
    /// MySQL's.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(28_800),
            read: Duration::from_secs(30),
            write: Duration::from_secs(60),
        }
    }
}

/// Opens sessions. One per server; shared by all connections.
pub trait SessionFactory: Send + Sync + 'static {
    type Session: SqlSession + 'static;

    /// How many connections may be signed in at a time; looked at whenever one signs in.
    fn max_connections(&self) -> usize;

    /// Whether an account gets in although there are that many connections.
    fn is_administrator(&self, _account: &AccountName) -> bool {
        false
    }

    /// Whether clients must come over TLS or a local socket; looked at whenever one signs in.
    fn requires_secure_transport(&self) -> bool {
        false
    }

    /// How long a client may take to sign in; `None` for the driver's own limit.
    fn connect_timeout(&self) -> Option<Duration> {
        None
    }

    /// What buffers of connections are counted against; `None` if nobody counts.
    fn client_memory(&self) -> Option<Arc<dyn ClientMemory>> {
        None
    }

    /// Where rows go that a client fetches later, if they are many; `None` for memory.
    fn spill_folder(&self) -> Option<PathBuf> {
        None
    }

    /// Fails with 1049 if `info.database` names no database, 1044 if the account may not use it.
    fn open(&self, info: SessionInfo) -> Result<Self::Session, SqlError>;
}

/// The memory that connections may have for their buffers.
pub trait ClientMemory: Send + Sync {
    /// Sets bytes aside; false if there is no room for them.
    fn reserve(&self, bytes: usize) -> bool;

    /// Counts bytes for which there has to be room.
    fn take(&self, bytes: usize);

    /// Gives back what was reserved or taken.
    fn release(&self, bytes: usize);
}

/// What a session is told of the connection it serves.
#[derive(Clone)]
pub struct SessionInfo {
    /// CONNECTION_ID(); unique for the life of the server.
    pub connection_id: u32,
    /// The account that authenticated, as CURRENT_USER() shows it: `user`@`host pattern`.
    pub account: AccountName,
    /// Where the client comes from, for USER() and SHOW PROCESSLIST.
    pub client_host: String,
    pub database: Option<String>,
    /// CLIENT_FOUND_ROWS: an UPDATE's affected rows are the rows matched, not the rows changed.
    pub found_rows: bool,
    pub multi_statements: bool,
    /// CLIENT_INTERACTIVE: wait_timeout starts out as interactive_timeout.
    pub interactive: bool,
    /// Collation id that the client asked for; sets the character_set_* and collation_connection variables.
    pub collation: u16,
    pub interrupt: Arc<Interrupt>,
    pub connections: Arc<dyn Connections>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccountName {
    pub user: String,
    pub host: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatementId(pub u32);

/// A prepared statement, as the client is told of it.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub id: StatementId,
    /// One for each `?`; `SqlType::Null` where binding could not tell.
    pub params: Vec<SqlType>,
    /// Empty for a statement without a result set.
    pub columns: Arc<[OutputColumn]>,
    pub warnings: u16,
}

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
    /// What the driver makes of them, and need not make again.
    pub encoded: OnceLock<Box<[u8]>>,
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
    pub auto_increment: bool,
    /// NOT NULL and without a default.
    pub no_default: bool,
    pub on_update_now: bool,
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
    /// The character sets of what the client sends and of what it gets; `None` for UTF-8.
    pub client: Option<Charset>,
    pub results: Option<Charset>,
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
            SinkError::OutOfMemory | SinkError::CannotSpill(_) => {
                ErrorCode::OUT_OF_RESOURCES.because(error.to_string())
            }
        }
    }
}

/// How others stop a session: set by KILL, by a client that vanished and by shutdown; read by whatever runs long.
#[derive(Debug, Default)]
pub struct Interrupt {
    state: AtomicU8,
    changed: Notify,
    /// For those that wait on a thread of theirs.
    asleep: Mutex<()>,
    woken: Condvar,
}

/// What an [`Interrupt`] asks for, from weakest to strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Interruption {
    /// KILL QUERY: the running statement ends with error 1317.
    Statement = 1,
    /// KILL, or the server stops: the connection ends too.
    Connection = 2,
}

impl Interrupt {
    /// Asks; a weaker request never replaces a stronger one.
    pub fn raise(&self, what: Interruption) {
        self.state.fetch_max(what as u8, Ordering::AcqRel);
        self.changed.notify_waiters();
        // Who has looked at the state before is asleep by now.
        drop(self.asleep.lock());
        self.woken.notify_all();
    }

    pub fn get(&self) -> Option<Interruption> {
        match self.state.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Interruption::Statement),
            _ => Some(Interruption::Connection),
        }
    }

    /// For a loop: `interrupt.check()?` every so many rows.
    pub fn check(&self) -> Result<(), SqlError> {
        match self.get() {
            None => Ok(()),
            Some(_) => Err(ErrorCode::QUERY_INTERRUPTED.with(&[])),
        }
    }

    /// Returns once there is something to obey; for `select!` beside a wait.
    pub async fn raised(&self) -> Interruption {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(what) = self.get() {
                return what;
            }
            changed.await;
        }
    }

    /// Blocks for some time, or until there is something to obey, which it returns.
    pub fn wait_for(&self, time: Duration) -> Option<Interruption> {
        let end = Instant::now() + time;
        let mut asleep = self.asleep.lock();
        loop {
            let what = self.get();
            if what.is_some() || self.woken.wait_until(&mut asleep, end).timed_out() {
                return what.or(self.get());
            }
        }
    }

    /// A KILL QUERY is spent with the statement it hit. The driver calls this before each statement.
    pub fn begin_statement(&self) {
        // Almost always already 0: do not dirty the cache line.
        if self.state.load(Ordering::Relaxed) == Interruption::Statement as u8 {
            let _ = self.state.compare_exchange(
                Interruption::Statement as u8,
                0,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
        }
    }
}

/// The connections that are there: for SHOW PROCESSLIST and KILL.
pub trait Connections: Send + Sync {
    fn list(&self) -> Vec<ConnectionRow>;

    /// Error 1094 if there is no such connection. Whether `by` may do it is the caller's business.
    fn kill(&self, connection_id: u32, what: Interruption) -> Result<(), SqlError>;

    /// How often a statement held its thread for long, so that other connections had to wait (`Avocet_held_threads`).
    fn held_threads(&self) -> u64 {
        0
    }

    /// Changes of what SHOW PROCESSLIST tells about the default database.
    fn set_database(&self, connection_id: u32, database: Option<&str>);
}

/// A row of SHOW PROCESSLIST.
#[derive(Clone, Debug)]
pub struct ConnectionRow {
    pub id: u32,
    pub user: String,
    /// `host:port`.
    pub host: String,
    pub database: Option<String>,
    /// `Query`, `Sleep`, `Execute`, …
    pub command: &'static str,
    /// Seconds in this state.
    pub time_s: u64,
    pub state: &'static str,
    /// The statement that runs.
    pub info: Option<String>,
}
