//! What settings make of variables' values, and which variables say the same in other words.

use std::time::Duration;

use avocet_channel::ResultsCharset;
use avocet_engine::{AccountId, Durability};
use avocet_sql::parse::statement::IsolationLevel;
use avocet_types::collation::Charset;
use avocet_types::expr::{BlockMode, Dialect};
use avocet_types::temporal::{Locale, TimeZone};
use avocet_types::{Collation, Datum, Value};

use crate::role_names::parse_roles;

pub(crate) fn int(value: &Value) -> u64 {
    match value {
        Datum::Int(v) => *v as u64,
        Datum::UInt(v) => *v,
        _ => 0,
    }
}

pub(super) fn on(value: &Value) -> bool {
    int(value) == 1
}

pub(super) fn text(value: &Value) -> &str {
    match value {
        Datum::Str(text) => text,
        _ => "",
    }
}

pub(super) fn roles(value: &Value) -> Vec<AccountId> {
    parse_roles(text(value)).unwrap_or_default()
}

/// `None` for 0.
pub(super) fn limit(value: &Value) -> Option<u64> {
    Some(int(value)).filter(|limit| *limit > 0)
}

pub(super) fn seconds(value: &Value) -> Duration {
    Duration::from_secs(int(value))
}

/// Seconds, with a fraction; 31,536,000 at most.
pub(super) fn fraction(value: &Value) -> Duration {
    match value {
        Datum::Double(seconds) => Duration::from_secs_f64(seconds.clamp(0.0, 31_536_000.0)),
        _ => seconds(value),
    }
}

pub(super) fn block_mode(value: &Value) -> BlockMode {
    BlockMode::by_name(text(value)).unwrap_or(BlockMode::DEFAULT)
}

pub(super) fn locale(value: &Value) -> &'static Locale {
    Locale::by_name(text(value)).unwrap_or_else(Locale::english)
}

pub(super) fn zone(value: &Value) -> TimeZone {
    TimeZone::parse(text(value)).unwrap_or(TimeZone::UTC)
}

pub(super) fn level(value: &Value) -> IsolationLevel {
    match text(value) {
        "READ-UNCOMMITTED" => IsolationLevel::ReadUncommitted,
        "READ-COMMITTED" => IsolationLevel::ReadCommitted,
        "SERIALIZABLE" => IsolationLevel::Serializable,
        _ => IsolationLevel::RepeatableRead,
    }
}

pub(super) fn completion(value: &Value) -> &'static str {
    match text(value) {
        "CHAIN" => "CHAIN",
        "RELEASE" => "RELEASE",
        _ => "NO_CHAIN",
    }
}

pub(super) fn collation(value: &Value) -> Collation {
    Collation::by_name(text(value)).unwrap_or(Collation::DEFAULT)
}

pub(super) fn dialect(value: &Value) -> Dialect {
    match text(value) {
        "mariadb" => Dialect::MariaDb,
        _ => Dialect::MySql,
    }
}

pub(super) fn charset(value: &Value) -> Charset {
    Charset::by_name(text(value)).unwrap_or(Charset::Utf8mb4)
}

/// What a client sends, if that is not UTF-8.
pub(super) fn client_charset(value: &Value) -> Option<Charset> {
    Some(charset(value)).filter(|charset| !matches!(charset, Charset::Utf8mb3 | Charset::Utf8mb4))
}

pub(super) fn results_charset(value: &Value) -> ResultsCharset {
    if value.is_null() {
        return ResultsCharset::Own;
    }
    match charset(value) {
        Charset::Utf8mb4 => ResultsCharset::Utf8mb4,
        Charset::Binary => ResultsCharset::OwnAsBytes,
        other => ResultsCharset::Of(other),
    }
}

/// `SET timestamp`, in microseconds.
pub(super) fn fixed_time(value: &Value) -> Option<i64> {
    match value {
        Datum::Double(seconds) if *seconds > 0.0 => Some((seconds * 1e6).round() as i64),
        _ => None,
    }
}

/// The names in a list of variables, in lower case.
pub(super) fn tracked(value: &Value) -> Box<[String]> {
    let names = text(value).split(',').map(|name| name.trim().to_lowercase());
    names.filter(|name| !name.is_empty()).collect()
}

/// The variables that change with one: a character set's collation, a collation's character set, a name's other spelling,
/// what excludes or includes another.
pub(super) fn others(name: &str, value: &Value) -> Vec<(&'static str, Value)> {
    let named = |text: &str| Value::Str(text.to_owned().into());
    match name {
        "tx_isolation" => vec![("transaction_isolation", value.clone())],
        "transaction_isolation" => vec![("tx_isolation", value.clone())],
        "tx_read_only" => vec![("transaction_read_only", value.clone())],
        "transaction_read_only" => vec![("tx_read_only", value.clone())],
        "identity" => vec![("last_insert_id", value.clone())],
        "last_insert_id" => vec![("identity", value.clone())],
        "character_set_connection" => vec![("collation_connection", named(default_collation(value)))],
        "character_set_database" => vec![("collation_database", named(default_collation(value)))],
        "character_set_server" => vec![("collation_server", named(default_collation(value)))],
        "collation_connection" => vec![("character_set_connection", named(charset_of(value)))],
        "collation_database" => vec![("character_set_database", named(charset_of(value)))],
        "collation_server" => vec![("character_set_server", named(charset_of(value)))],
        // Who is stopped by the one is stopped by the other.
        "super_read_only" if on(value) => vec![("read_only", value.clone())],
        "read_only" if !on(value) => vec![("super_read_only", value.clone())],
        "durability" => vec![("innodb_flush_log_at_trx_commit", Datum::Int(flush_at_commit(value)))],
        "innodb_flush_log_at_trx_commit" => vec![("durability", named(&durability(value)))],
        _ => Vec::new(),
    }
}

fn default_collation(charset: &Value) -> &'static str {
    self::charset(charset).default_collation().name()
}

fn charset_of(collation: &Value) -> &'static str {
    self::collation(collation).info().charset.name()
}

/// What InnoDB calls a durability: at each commit a sync (1), or a write (2).
fn flush_at_commit(durability: &Value) -> i64 {
    match text(durability).parse() {
        Ok(Durability::Os) => 2,
        _ => 1,
    }
}

/// There is none that does not even write (0).
fn durability(flush: &Value) -> String {
    match int(flush) {
        1 => Durability::Sync.to_string(),
        _ => Durability::Os.to_string(),
    }
}
