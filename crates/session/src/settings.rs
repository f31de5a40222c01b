//! Variables in the form in which statements, and the server, use them.
//!
//! Each field is filled by the reader of a variable in [`VARIABLES`](super::variables::VARIABLES), and is looked at somewhere: the
//! compiler warns of one that is not. So a variable that claims a reader has one.

use std::time::Duration;

use avocet_channel::ResultsCharset;
use avocet_engine::{AccountId, Durability};
use avocet_sql::parse::statement::IsolationLevel;
use avocet_types::Collation;
use avocet_types::collation::Charset;
use avocet_types::expr::{BlockMode, Dialect, SqlMode, Typer};
use avocet_types::temporal::{Locale, TimeZone};

use super::api::Timeouts;
use super::routing::Routing;
use super::variables::{Effect, VARIABLES, Values};

/// Made from the session's variables after each SET, so that statements need not look names up.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub autocommit: bool,
    pub sql_mode: SqlMode,
    pub time_zone: TimeZone,
    pub level: IsolationLevel,
    /// REPEATABLE READ is strict.
    pub snapshot_isolation: bool,
    /// What COMMIT and ROLLBACK do besides: `NO_CHAIN`, `CHAIN`, `RELEASE`.
    pub completion_type: &'static str,
    pub read_only: bool,
    /// What a commit is to have survived when it is acknowledged.
    pub durability: Durability,
    pub lock_wait_timeout: Duration,
    /// For DDL.
    pub metadata_lock_timeout: Duration,
    /// `None` for no limit.
    pub max_execution_time: Option<Duration>,
    /// A statement that takes as long counts among the slow ones.
    pub slow_after: Duration,
    /// Bytes for one analytical query; `None` for the server's limit.
    pub query_memory_limit: Option<usize>,
    pub select_limit: u64,
    pub connection_collation: Collation,
    /// Of literals, columns and databases that are said to be in utf8mb4, and no more.
    pub utf8mb4_collation: Collation,
    /// Whose answers are given.
    pub dialect: Dialect,
    /// A front runs queries of its clients here: their sessions are elsewhere.
    pub on_behalf: bool,
    /// Of databases that say nothing else.
    pub server_collation: Collation,
    pub div_precision_increment: u8,
    pub default_week_format: u8,
    pub block_encryption: BlockMode,
    /// Of the names of days and months.
    pub locale: &'static Locale,
    pub max_allowed_packet: u64,
    pub group_concat_max_len: u64,
    pub cte_max_recursion_depth: u64,
    pub auto_increment_increment: u64,
    pub auto_increment_offset: u64,
    /// The number that the next INSERT begins with.
    pub insert_id: Option<u64>,
    pub max_error_count: usize,
    /// Whether notes are kept for SHOW WARNINGS.
    pub notes: bool,
    pub safe_updates: bool,
    /// SHOW CREATE quotes all names.
    pub quote_show_create: bool,
    pub require_primary_key: bool,
    /// Off, rows are not checked by foreign keys, and tables may be made before their parents.
    pub foreign_key_checks: bool,
    /// Off, every statement takes the general path.
    pub point_path: bool,
    /// Statements are summed up by digest.
    pub sums_up: bool,
    /// `SET timestamp`: a fixed statement time, in microseconds.
    pub fixed_time: Option<i64>,
    /// What CONNECTION_ID() tells.
    pub pseudo_thread_id: u64,
    pub timeouts: Timeouts,
    /// Of what clients send, and of what they get; `None` for UTF-8.
    pub client_charset: Option<Charset>,
    pub results_charset: ResultsCharset,
    /// Of files that LOAD DATA says nothing of.
    pub database_charset: Charset,
    /// Whether clients are told of changes of the default database, and of which variables.
    pub track_schema: bool,
    pub tracked: Box<[String]>,
    pub routing: Routing,
    /// What it changes goes to the binary log.
    pub log_bin: bool,
}

impl Settings {
    pub fn new(values: &Values) -> Self {
        let mut settings = Self::empty();
        for (at, variable) in VARIABLES.iter().enumerate() {
            if let Effect::Reads(read) = variable.effect {
                read(&mut settings, values.get(at));
            }
        }
        settings
    }

    /// Before its variables are read.
    fn empty() -> Self {
        Self {
            autocommit: true,
            sql_mode: SqlMode::DEFAULT,
            time_zone: TimeZone::UTC,
            level: IsolationLevel::RepeatableRead,
            snapshot_isolation: false,
            completion_type: "NO_CHAIN",
            read_only: false,
            durability: Durability::default(),
            lock_wait_timeout: Duration::ZERO,
            metadata_lock_timeout: Duration::ZERO,
            max_execution_time: None,
            slow_after: Duration::from_secs(10),
            query_memory_limit: None,
            select_limit: u64::MAX,
            connection_collation: Collation::DEFAULT,
            utf8mb4_collation: Collation::DEFAULT,
            dialect: Dialect::MySql,
            on_behalf: false,
            server_collation: Collation::DEFAULT,
            div_precision_increment: 4,
            default_week_format: 0,
            block_encryption: BlockMode::DEFAULT,
            locale: Locale::english(),
            max_allowed_packet: 0,
            group_concat_max_len: 0,
            cte_max_recursion_depth: 0,
            auto_increment_increment: 1,
            auto_increment_offset: 1,
            insert_id: None,
            max_error_count: 0,
            notes: true,
            safe_updates: false,
            quote_show_create: true,
            require_primary_key: false,
            foreign_key_checks: true,
            point_path: true,
            sums_up: true,
            fixed_time: None,
            pseudo_thread_id: 0,
            timeouts: Timeouts::default(),
            client_charset: None,
            results_charset: ResultsCharset::Utf8mb4,
            database_charset: Charset::Utf8mb4,
            track_schema: true,
            tracked: Box::default(),
            routing: Routing::default(),
            log_bin: true,
        }
    }

    pub fn typer(&self) -> Typer {
        Typer {
            connection_collation: self.connection_collation,
            utf8mb4_collation: self.utf8mb4_collation,
            dialect: self.dialect,
            div_precision_increment: self.div_precision_increment,
            sql_mode: self.sql_mode,
            locale: self.locale,
            ..Typer::default()
        }
    }
}

/// Made from the server's variables after each SET GLOBAL.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerSettings {
    pub max_connections: usize,
    /// Of all sessions together.
    pub max_prepared_statements: usize,
    /// Changes are for administrators, or for nobody.
    pub read_only: bool,
    pub super_read_only: bool,
    pub require_secure_transport: bool,
    /// How long a client may take to sign in.
    pub connect_timeout: Duration,
    /// Whether clients may be asked for files.
    pub local_infile: bool,
    /// The roles that every account has.
    pub mandatory_roles: Vec<AccountId>,
    /// Whether all of an account's roles are active when it has signed in.
    pub activates_all_roles: bool,
    /// The commits of a source that is followed from now on wait until they are durable here.
    pub semi_sync_replica: bool,
    /// Whether what is granted for the server can be taken back for a database.
    pub partial_revokes: bool,
    /// Of accounts that say nothing else: days until a password has to be changed,
    pub password_days: u32,
    /// so many that may not be used again,
    pub password_history: u32,
    /// those of so many days that may not,
    pub password_reuse_days: u32,
    /// and whether the present one has to be said when it is changed.
    pub password_require_current: bool,
}

impl ServerSettings {
    pub fn new(values: &Values) -> Self {
        let mut settings = Self::default();
        for (at, variable) in VARIABLES.iter().enumerate() {
            if let Effect::Server(read) = variable.effect {
                read(&mut settings, values.get(at));
            }
        }
        settings
    }
}

/// The collation that `COLLATE name` or `CHARACTER SET name` asks for; the collation wins if both are there and agree. `utf8mb4`: that
/// of a character set of this name alone.
pub fn collation_of(
    charset: Option<&str>,
    collation: Option<&str>,
    utf8mb4: Collation,
) -> Result<Option<Collation>, avocet_types::error::SqlError> {
    use avocet_types::error::ErrorCode;
    let charset = charset
        .map(|name| Charset::by_name(name).ok_or_else(|| ErrorCode::UNKNOWN_CHARACTER_SET.with(&[&name])))
        .transpose()?;
    let Some(name) = collation else {
        return Ok(charset.map(|charset| charset.default_collation_with(utf8mb4)));
    };
    let collation = Collation::by_name(name).ok_or_else(|| ErrorCode::UNKNOWN_COLLATION.with(&[&name]))?;
    match charset {
        Some(charset) if collation.info().charset != charset => {
            Err(ErrorCode::COLLATION_CHARSET_MISMATCH.with(&[&collation.name(), &charset.name()]))
        }
        _ => Ok(Some(collation)),
    }
}
