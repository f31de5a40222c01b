//! The joint between sessions and whatever drives them: the protocol server, the embedded shell, tests.
//!
//! A driver opens a [`SqlSession`] per connection and runs statements on it one at a time, inline on its own
//! task. Results go into a [`ResultSink`] that the driver owns: the server's writes rows straight into the
//! wire buffer, the shell's prints. An `Err` from `execute` ends a multi-statement text: the driver reports it and
//! drops the rest.
//!
//! Invariant: dropping a session, or the future of a statement, rolls back what is open and frees it.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use avocet_channel::{Interrupt, Interruption, OutputColumn, ResultSink, Status};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::SqlMode;
use avocet_types::{Datum, SqlType};

pub use crate::binary_log::{DumpFrom, DumpStep, Dumping, Replica};
pub use crate::routing::{Freshness, Journal, Route, Routed, Routing};
pub use crate::variables::in_effect as variables_in_effect;

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

    /// COM_PROCESS_KILL: ends a connection, as KILL does.
    fn kill_connection(&mut self, connection_id: u32) -> Result<(), SqlError>;

    /// Rolls back, drops prepared statements and user variables, and gives every session variable its
    /// global value again (COM_RESET_CONNECTION). Keeps account and default database.
    fn reset(&mut self) -> impl Future<Output = ()> + Send;

    /// COM_REGISTER_SLAVE: a replica says who it is.
    fn register_replica(&mut self, _replica: Replica) -> Result<(), SqlError> {
        Err(ErrorCode::UNKNOWN_COM_ERROR.with(&[]))
    }

    /// COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID: what a replica is to be sent from now on.
    fn begin_dump(&mut self, _from: DumpFrom) -> Result<Dumping, SqlError> {
        Err(ErrorCode::UNKNOWN_COM_ERROR.with(&[]))
    }

    /// Cleans up at once after a statement whose future was dropped before it ended: its transaction is rolled back.
    fn recover(&mut self);

    fn set_multi_statements(&mut self, allowed: bool);

    /// How long the connection waits for its client; asked for after each statement.
    fn timeouts(&self) -> Timeouts {
        Timeouts::default()
    }

    /// Bytes of the largest packet to take or send, and of a parameter that comes in pieces; asked for when the session is opened,
    /// and after each command.
    fn max_allowed_packet(&self) -> usize {
        64 << 20
    }

    /// Where its queries may run, if the server stands before another.
    fn routing(&self) -> Routing {
        Routing::default()
    }

    /// How it reads statements.
    fn sql_mode(&self) -> SqlMode {
        SqlMode::DEFAULT
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

    /// Opens a session for a client of the server that this one follows, who signed in there. Who
    /// may read what is decided there, and `super_read_only` keeps it from changing anything.
    fn open_behind_front(&self, info: SessionInfo) -> Result<Self::Session, SqlError>;

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
    /// CLIENT_IGNORE_SPACE: sql_mode starts out with IGNORE_SPACE.
    pub ignore_space: bool,
    /// Collation id that the client asked for; sets the character_set_* and collation_connection variables.
    pub collation: u16,
    /// The cipher of TLS, as OpenSSL calls it; empty without.
    pub cipher: String,
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

/// The connections that are there: for SHOW PROCESSLIST and KILL.
pub trait Connections: Send + Sync {
    fn list(&self) -> Vec<ConnectionRow>;

    /// Error 1094 if there is no such connection. Whether `by` may do it is the caller's business.
    fn kill(&self, connection_id: u32, what: Interruption) -> Result<(), SqlError>;

    /// How often a statement held its thread for long, so that other connections had to wait (`Avocet_held_threads`).
    fn held_threads(&self) -> u64 {
        0
    }

    /// What has become of connections since the server started.
    fn totals(&self) -> ConnectionTotals {
        ConnectionTotals::default()
    }

    /// Changes of what SHOW PROCESSLIST tells about the default database.
    fn set_database(&self, connection_id: u32, database: Option<&str>);
}

/// Numbers of connections since the server started.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionTotals {
    /// Attempts to connect, successful or not.
    pub attempts: u64,
    /// Those of them that did not sign in.
    pub refused: u64,
    /// The most that were signed in at a time.
    pub most: u64,
    /// Signed in now, and those of them that run a statement.
    pub connected: u64,
    pub running: u64,
    /// Bytes that clients sent, and that they were sent.
    pub received: u64,
    pub sent: u64,
}

/// A row of SHOW PROCESSLIST.
#[derive(Clone, Debug)]
pub struct ConnectionRow {
    pub id: u32,
    pub user: String,
    /// The account; `None` before it has signed in.
    pub account: Option<AccountName>,
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
