//! Session variables in the form in which statements use them.

use std::time::Duration;

use avocet_engine::Durability;
use avocet_types::collation::Charset;
use avocet_types::expr::{SqlMode, Typer};
use avocet_types::temporal::TimeZone;
use avocet_types::{Collation, Datum};

use super::sql_mode;
use super::variables::Values;
use crate::parse::statement::IsolationLevel;

/// Made from the variables after each SET, so that statements need not look names up.
#[derive(Clone, Debug)]
pub struct Settings {
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
    /// Bytes for one analytical query; `None` for the server's limit.
    pub query_memory_limit: Option<usize>,
    pub select_limit: u64,
    pub connection_collation: Collation,
    pub div_precision_increment: u8,
    pub default_week_format: u8,
    pub max_allowed_packet: u64,
    pub group_concat_max_len: u64,
    pub cte_max_recursion_depth: u64,
    pub auto_increment_increment: u64,
    pub auto_increment_offset: u64,
    pub max_error_count: usize,
    pub safe_updates: bool,
    /// Off, rows are not checked by foreign keys, and tables may be made before their parents.
    pub foreign_key_checks: bool,
    /// Off, every statement takes the general path.
    pub point_path: bool,
    /// `SET timestamp`: a fixed statement time, in microseconds.
    pub fixed_time: Option<i64>,
}

impl Settings {
    pub fn new(values: &Values) -> Self {
        let int = |name| match values.by_name(name) {
            Datum::Int(v) => *v as u64,
            Datum::UInt(v) => *v,
            _ => 0,
        };
        let text = |name| match values.by_name(name) {
            Datum::Str(v) => v.to_string(),
            _ => String::new(),
        };
        let level = text("transaction_isolation");
        let timestamp = match values.by_name("timestamp") {
            Datum::Double(v) => *v,
            _ => 0.0,
        };
        let millis = int("max_execution_time");
        Self {
            autocommit: int("autocommit") == 1,
            sql_mode: sql_mode::flags(&text("sql_mode")),
            time_zone: TimeZone::parse(&text("time_zone")).unwrap_or(TimeZone::UTC),
            level: match level.as_str() {
                "READ-UNCOMMITTED" => IsolationLevel::ReadUncommitted,
                "READ-COMMITTED" => IsolationLevel::ReadCommitted,
                "SERIALIZABLE" => IsolationLevel::Serializable,
                _ => IsolationLevel::RepeatableRead,
            },
            snapshot_isolation: int("innodb_snapshot_isolation") == 1,
            completion_type: match text("completion_type").as_str() {
                "CHAIN" => "CHAIN",
                "RELEASE" => "RELEASE",
                _ => "NO_CHAIN",
            },
            read_only: int("transaction_read_only") == 1,
            durability: text("durability").parse().unwrap_or_default(),
            lock_wait_timeout: Duration::from_secs(int("innodb_lock_wait_timeout")),
            metadata_lock_timeout: Duration::from_secs(int("lock_wait_timeout")),
            max_execution_time: (millis > 0).then(|| Duration::from_millis(millis)),
            query_memory_limit: usize::try_from(int("query_memory_limit")).ok().filter(|&bytes| bytes > 0),
            select_limit: int("sql_select_limit"),
            connection_collation: Collation::by_name(&text("collation_connection"))
                .unwrap_or(Collation::DEFAULT),
            div_precision_increment: int("div_precision_increment") as u8,
            default_week_format: int("default_week_format") as u8,
            max_allowed_packet: int("max_allowed_packet"),
            group_concat_max_len: int("group_concat_max_len"),
            cte_max_recursion_depth: int("cte_max_recursion_depth"),
            auto_increment_increment: int("auto_increment_increment").max(1),
            auto_increment_offset: int("auto_increment_offset").max(1),
            max_error_count: int("max_error_count") as usize,
            safe_updates: int("sql_safe_updates") == 1,
            foreign_key_checks: int("foreign_key_checks") == 1,
            point_path: int("avocet_point_path") == 1,
            fixed_time: (timestamp > 0.0).then_some((timestamp * 1e6) as i64),
        }
    }

    pub fn typer(&self) -> Typer {
        Typer {
            connection_collation: self.connection_collation,
            div_precision_increment: self.div_precision_increment,
            sql_mode: self.sql_mode,
            ..Typer::default()
        }
    }
}

/// The collation that `COLLATE name` or `CHARACTER SET name` asks for; the collation wins if both are there and agree.
pub fn collation_of(
    charset: Option<&str>,
    collation: Option<&str>,
) -> Result<Option<Collation>, crate::SqlError> {
    use crate::ErrorCode;
    let charset = charset
        .map(|name| Charset::by_name(name).ok_or_else(|| ErrorCode::UNKNOWN_CHARACTER_SET.with(&[&name])))
        .transpose()?;
    let Some(name) = collation else { return Ok(charset.map(Charset::default_collation)) };
    let collation = Collation::by_name(name).ok_or_else(|| ErrorCode::UNKNOWN_COLLATION.with(&[&name]))?;
    match charset {
        Some(charset) if collation.info().charset != charset => Err(crate::SqlError {
            errno: 1253,
            sqlstate: *b"42000",
            message: format!(
                "COLLATION '{}' is not valid for CHARACTER SET '{}'",
                collation.name(),
                charset.name()
            ),
        }),
        _ => Ok(Some(collation)),
    }
}
