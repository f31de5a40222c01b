//! What is known here of a client's session on the source, and how the session here is made to match.
//!
//! Settings are not followed statement by statement: there are too many ways to change them. After any statement that may have
//! (`Effects`), the source is asked for the values, once, before a query runs here.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use avocet_session::api::Timeouts;
use avocet_types::collation::Charset;
use avocet_types::expr::SqlMode;

use super::dialect::Dialect;
use super::effects::Effects;
use super::upstream::Row;

/// Variables whose values decide about answers. Names with a mark are numbers.
const SETTINGS: &[(&str, bool)] = &[
    ("transaction_isolation", false),
    ("sql_mode", false),
    ("time_zone", false),
    ("character_set_client", false),
    ("collation_connection", false),
    ("character_set_results", false),
    ("default_collation_for_utf8mb4", false),
    ("lc_time_names", false),
    ("sql_select_limit", true),
    ("group_concat_max_len", true),
    ("div_precision_increment", true),
    ("default_week_format", true),
    ("cte_max_recursion_depth", true),
    ("max_execution_time", true),
    ("max_error_count", true),
    ("sql_auto_is_null", true),
    ("sql_big_selects", true),
    ("block_encryption_mode", false),
    ("max_allowed_packet", true),
    ("sql_notes", true),
];

/// Those of them by which a statement's text, names and literals are resolved: once, when it is prepared.
const RESOLVING: &[&str] = &[
    "sql_mode",
    "character_set_client",
    "collation_connection",
    "default_collation_for_utf8mb4",
    "lc_time_names",
    "div_precision_increment",
];

/// A MariaDB's expressions for what it has under another name, or always.
const OF_MARIADB: &[(&str, &str)] = &[
    ("transaction_isolation", "@@session.tx_isolation"),
    // What it decides about (introducers, CONVERT … USING) is the source's.
    ("default_collation_for_utf8mb4", "'utf8mb4_0900_ai_ci'"),
    ("cte_max_recursion_depth", "@@session.max_recursive_iterations"),
    // A session has it from 11.2 on, and AES_ENCRYPT and AES_DECRYPT are the source's.
    ("block_encryption_mode", "'aes-128-ecb'"),
    // In seconds there, in milliseconds here; no time at all means no limit.
    ("max_execution_time", "CAST(CEIL(@@session.max_statement_time * 1000) AS UNSIGNED)"),
];

/// A MariaDB's SQL modes that say nothing of queries.
const WITHOUT_EFFECT: &[&str] = &[
    "IGNORE_BAD_TABLE_OPTIONS",
    "NO_AUTO_CREATE_USER",
    "NO_FIELD_OPTIONS",
    "NO_KEY_OPTIONS",
    "NO_TABLE_OPTIONS",
    "SIMULTANEOUS_ASSIGNMENT",
    // As a MySQL has it always. Where that makes a difference without it, the query is the source's.
    "TIME_ROUND_FRACTIONAL",
];

/// What the source is asked.
pub fn question(dialect: Dialect) -> String {
    let expression = |name: &str| {
        let other = OF_MARIADB.iter().find(|(of, _)| dialect == Dialect::MariaDb && *of == name);
        other.map_or_else(|| format!("@@session.{name}"), |(_, expression)| (*expression).to_owned())
    };
    let names: Vec<String> = SETTINGS.iter().map(|(name, _)| expression(name)).collect();
    format!(
        "SELECT DATABASE(), @@system_time_zone, @@timestamp - UNIX_TIMESTAMP(SYSDATE(6)), CURRENT_USER(), CURRENT_ROLE(), \
         @@session.wait_timeout, @@session.net_write_timeout, {}",
        names.join(", ")
    )
}

/// Columns before the settings.
const AHEAD: usize = 7;
/// A statement's time is its beginning; this is later than any.
const CLOCK_IS_SET: f64 = 5.0;

/// How the session here is to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub database: Option<String>,
    /// The account and its active roles: what the session may do.
    pub identity: String,
    /// Each of its statements reads what is committed when it begins: READ COMMITTED, or weaker.
    pub reads_committed: bool,
    /// One SET.
    pub set: String,
    /// The part of it that statements are prepared by.
    pub resolving: String,
    pub clock_is_set: bool,
    /// So long the source waits for the session's next command: `wait_timeout`.
    pub idle: Duration,
    /// And so long for the client to take some of a reply: `net_write_timeout`.
    pub write: Duration,
}

impl Settings {
    /// From the source's answer to [`question`]; or why the session here cannot be like that.
    pub fn read(row: &Row, dialect: Dialect) -> Result<Self, String> {
        let text = |at: usize| {
            row.get(at).cloned().flatten().map(|value| String::from_utf8_lossy(&value).into_owned())
        };
        if row.len() != AHEAD + SETTINGS.len() {
            return Err("the source does not tell its session's settings".into());
        }
        let seconds = |at: usize, usual: Duration| {
            text(at).and_then(|seconds| seconds.parse().ok()).map_or(usual, Duration::from_secs)
        };
        let usual = Timeouts::default();
        let system_zone = text(1).unwrap_or_default();
        let ahead: f64 = text(2).and_then(|seconds| seconds.parse().ok()).unwrap_or_default();
        let mut parts = Vec::with_capacity(SETTINGS.len());
        let mut resolving = Vec::with_capacity(RESOLVING.len());
        for (at, (name, is_number)) in SETTINGS.iter().enumerate() {
            let value = text(AHEAD + at);
            let value = match (*name, value) {
                ("time_zone", Some(zone)) if zone == "SYSTEM" => match &*system_zone {
                    "UTC" | "GMT" | "Etc/UTC" | "Universal" => "'+00:00'".into(),
                    _ => {
                        return Err(format!(
                            "the session's time zone is the source's own ({system_zone}); SET time_zone to a name or an offset"
                        ));
                    }
                },
                ("sql_mode", Some(modes)) if dialect == Dialect::MariaDb => {
                    let modes = modes.split(',').filter(|mode| !WITHOUT_EFFECT.contains(mode));
                    quoted(&modes.collect::<Vec<_>>().join(","))
                }
                // From 11.4.5 on it has names of MySQL 8 for collations of its own.
                ("collation_connection", Some(name)) if dialect == Dialect::MariaDb && is_alias(&name) => {
                    return Err(format!("the collation {name} is another one at the source"));
                }
                (_, None) => "NULL".into(),
                (_, Some(number)) if *is_number && number.bytes().all(|byte| byte.is_ascii_digit()) => number,
                (_, Some(value)) => quoted(&value),
            };
            let part = format!("{name} = {value}");
            if RESOLVING.contains(name) {
                resolving.push(part.clone());
            }
            parts.push(part);
        }
        if dialect == Dialect::MariaDb {
            parts.push("avocet_dialect = 'mariadb'".into());
        }
        Ok(Self {
            database: text(0),
            identity: format!("{} {}", text(3).unwrap_or_default(), text(4).unwrap_or_default()),
            reads_committed: matches!(text(AHEAD).as_deref(), Some("READ-COMMITTED" | "READ-UNCOMMITTED")),
            set: format!("SET SESSION {}", parts.join(", ")),
            resolving: resolving.join(", "),
            clock_is_set: ahead.abs() > CLOCK_IS_SET,
            idle: seconds(5, usual.idle),
            write: seconds(6, usual.write),
        })
    }
}

fn is_alias(collation: &str) -> bool {
    collation.contains("_0900_") && collation != "utf8mb4_0900_bin"
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// What statements that are prepared in a session mean.
#[derive(Debug)]
pub struct Resolution {
    database: Option<String>,
    settings: String,
    /// How the session here, which has these settings, reads text.
    pub mode: SqlMode,
    pub client: Option<Charset>,
}

impl Resolution {
    /// Whether a statement that is prepared under these settings means the same.
    pub fn is_of(&self, settings: &Settings) -> bool {
        self.database == settings.database && self.settings == settings.resolving
    }
}

/// A session between two statements that may have changed its settings. What was prepared in it is resolved by what it is found to be
/// like, also if that is asked for later; if it never was, nobody knows.
pub type Period = Arc<OnceLock<Resolution>>;

/// One client's session on the source.
#[derive(Debug, Default)]
pub struct View {
    /// As the session here is set; `None` if it may not be what the source has.
    pub settings: Option<Settings>,
    /// The present one.
    pub period: Period,
    /// Why the session here cannot be set as the source's is.
    pub unlike: Option<String>,
    /// When that may have changed by itself.
    ask_again_at: Option<Instant>,
    /// What the session here was set to last.
    pub applied: Option<Settings>,
    pub holds_table_locks: bool,
    /// `SET timestamp` has been seen, and no `SET timestamp = DEFAULT` since.
    pub clock_is_set: bool,
    /// Some that it has made: which names have a temporary table, the source is asked before anything runs here.
    pub temporary: HashSet<String>,
    /// It has changed something since it waited for freshness.
    pub has_written: bool,
    /// The open transaction has changed something that others do not see yet.
    pub has_changed: bool,
    /// Settings may have changed while the transaction was open: its level is what the session's was before.
    pub level_has_changed: bool,
    /// SET TRANSACTION has been used: the session's level may not be the transaction's.
    pub may_have_other_level: bool,
    /// The last statement ran here.
    pub last_ran_here: bool,
    /// The last query did, whose rows FOUND_ROWS() counts.
    pub last_query_ran_here: bool,
}

impl View {
    /// Whether it is known what the session is like, or that it cannot be had here.
    pub fn is_known(&self) -> bool {
        let is_over = || self.ask_again_at.is_some_and(|at| at <= Instant::now());
        self.settings.is_some() || self.unlike.is_some() && !is_over()
    }

    /// The session here is set as the source's is, and reads text like this.
    pub fn be_like(&mut self, settings: Settings, mode: SqlMode, client: Option<Charset>) {
        self.period.get_or_init(|| Resolution {
            database: settings.database.clone(),
            settings: settings.resolving.clone(),
            mode,
            client,
        });
        (self.settings, self.unlike) = (Some(settings), None);
    }

    /// Nothing can run here in the session as it is.
    pub fn be_unlike(&mut self, why: String) {
        (self.unlike, self.ask_again_at) = (Some(why), None);
    }

    /// It may be like the source's by then, though nothing has changed in it.
    pub fn ask_again_after(&mut self, rest: Duration) {
        self.ask_again_at = Some(Instant::now() + rest);
    }

    /// After a statement on the source, whether it failed or not.
    pub fn note(&mut self, effects: &Effects) {
        self.last_ran_here = false;
        self.last_query_ran_here &= !effects.finds_rows;
        self.has_written |= effects.writes || effects.commits;
        self.has_changed |= effects.writes;
        self.may_have_other_level |= effects.next_level;
        if effects.settings {
            (self.settings, self.unlike) = (None, None);
            self.period = Period::default();
        }
        self.clock_is_set = effects.clock.unwrap_or(self.clock_is_set);
        if let Some(holds) = effects.table_locks {
            self.holds_table_locks = holds;
        }
        // A session that makes them without end is asked for the others.
        const MOST: usize = 1000;
        if let Some(name) = effects.temporary.as_ref().filter(|_| self.temporary.len() < MOST) {
            self.temporary.insert(name.clone());
        }
    }

    /// Whether the session's time is another than the clock's.
    pub fn has_own_time(&self) -> bool {
        self.clock_is_set || self.settings.as_ref().is_some_and(|settings| settings.clock_is_set)
    }

    /// COM_RESET_CONNECTION or COM_CHANGE_USER: the session is as new.
    pub fn reset(&mut self) {
        *self = Self { has_written: self.has_written, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(zone: &str, system: &str, ahead: &str) -> Row {
        let mut values = vec![
            "shop",
            system,
            ahead,
            "app@%",
            "`reader`@`%`",
            "600",
            "60",
            "READ-COMMITTED",
            "ANSI_QUOTES",
            zone,
            "utf8mb4",
            "utf8mb4_0900_ai_ci",
        ];
        values.extend([
            "latin1",
            "utf8mb4_0900_ai_ci",
            "en_US",
            "18446744073709551615",
            "1024",
            "4",
            "0",
            "1000",
            "0",
        ]);
        values.extend(["1024", "0", "1", "aes-256-cbc", "16777216", "1"]);
        values.into_iter().map(|value| Some(value.as_bytes().to_vec())).collect()
    }

    #[test]
    fn settings_become_one_set() {
        let settings =
            Settings::read(&row("SYSTEM", "UTC", "-0.000120"), Dialect::MySql).expect("it is known");
        assert_eq!(settings.database.as_deref(), Some("shop"));
        assert_eq!(settings.identity, "app@% `reader`@`%`");
        assert!(settings.reads_committed);
        assert!(settings.set.contains("sql_mode = 'ANSI_QUOTES', time_zone = '+00:00', "));
        assert!(settings.set.contains("sql_select_limit = 18446744073709551615"));
        assert!(settings.set.ends_with(
            "block_encryption_mode = 'aes-256-cbc', max_allowed_packet = 16777216, sql_notes = 1"
        ));
        assert!(!settings.clock_is_set);
        assert_eq!((settings.idle, settings.write), (Duration::from_secs(600), Duration::from_secs(60)));
        let mut unnamed = row("Europe/Berlin", "CET", "-1700000000.5");
        unnamed[0] = None;
        let settings = Settings::read(&unnamed, Dialect::MySql).expect("it is known");
        assert!(settings.clock_is_set && settings.database.is_none());
        assert!(settings.set.contains("time_zone = 'Europe/Berlin'"));
    }

    #[test]
    fn what_a_query_depends_on_is_asked_for() {
        /// They decide about changes of rows, definitions, transactions, waits and what connections are told, or are the clock's.
        const OF_NO_QUERY: &[&str] = &[
            "auto_increment_increment",
            "auto_increment_offset",
            "autocommit",
            "character_set_database",
            "collation_server",
            "completion_type",
            "durability",
            "foreign_key_checks",
            "innodb_lock_wait_timeout",
            "innodb_snapshot_isolation",
            "insert_id",
            "lock_wait_timeout",
            "long_query_time",
            "net_read_timeout",
            "net_write_timeout",
            "pseudo_thread_id",
            "query_memory_limit",
            "session_track_schema",
            "session_track_system_variables",
            "sql_log_bin",
            "sql_quote_show_create",
            "sql_require_primary_key",
            "sql_safe_updates",
            "timestamp",
            "transaction_read_only",
            "wait_timeout",
        ];
        for name in avocet_session::api::variables_in_effect() {
            let is_asked_for = SETTINGS.iter().any(|(own, _)| *own == name);
            let is_of_no_query = OF_NO_QUERY.contains(&name) || name.starts_with("avocet_");
            assert!(is_asked_for != is_of_no_query, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_the_same_here_is_said() {
        assert!(
            Settings::read(&row("SYSTEM", "CEST", "0"), Dialect::MySql)
                .expect_err("a zone without a name")
                .contains("CEST")
        );
        assert!(Settings::read(&Row::new(), Dialect::MySql).is_err());
    }

    #[test]
    fn a_mariadb_has_other_names_and_modes() {
        let question = question(Dialect::MariaDb);
        assert!(question.contains("@@session.tx_isolation, @@session.sql_mode, "), "{question}");
        assert!(question.contains("'utf8mb4_0900_ai_ci'") && question.contains("max_statement_time"));
        let mut row = row("+01:00", "CET", "0");
        row[AHEAD + 1] = Some(b"STRICT_TRANS_TABLES,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION".to_vec());
        let connection =
            AHEAD + SETTINGS.iter().position(|(name, _)| *name == "collation_connection").expect("one");
        row[connection] = Some(b"utf8mb4_0900_ai_ci".to_vec());
        assert!(Settings::read(&row, Dialect::MySql).is_ok());
        assert!(
            Settings::read(&row, Dialect::MariaDb)
                .is_err_and(|why| why.contains("another one at the source"))
        );
        row[connection] = Some(b"utf8mb4_uca1400_ai_ci".to_vec());
        let settings = Settings::read(&row, Dialect::MariaDb).expect("it is known");
        assert!(settings.set.contains("sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', "));
    }

    #[test]
    fn effects_are_kept_until_the_session_is_reset() {
        let mut view = View { last_ran_here: true, ..View::default() };
        view.note(&Effects { table_locks: Some(true), temporary: Some("t".into()), ..Effects::default() });
        assert!(view.holds_table_locks && view.temporary.contains("t") && !view.last_ran_here);
        view.note(&Effects { table_locks: Some(false), writes: true, ..Effects::default() });
        assert!(!view.holds_table_locks && view.has_written);
        view.reset();
        assert!(view.temporary.is_empty() && view.has_written);
    }

    #[test]
    fn a_period_is_known_once_the_session_was_asked_for() {
        let mut view = View::default();
        let settings = Settings::read(&row("SYSTEM", "UTC", "0"), Dialect::MySql).expect("it is known");
        let (never_asked, changes) = (view.period.clone(), Effects { settings: true, ..Effects::default() });
        view.note(&changes);
        let asked = view.period.clone();
        view.be_like(settings.clone(), SqlMode::DEFAULT, None);
        assert!(never_asked.get().is_none());
        assert!(asked.get().is_some_and(|resolution| resolution.is_of(&settings)));
        view.note(&changes);
        // Limits of time say nothing of what a statement means; the default database and what strings are do.
        let mut other = row("SYSTEM", "UTC", "0");
        other[AHEAD + SETTINGS.iter().position(|(name, _)| *name == "max_execution_time").expect("one")] =
            Some(b"7".to_vec());
        let is_same = |row: &Row| {
            let settings = Settings::read(row, Dialect::MySql).expect("it is known");
            asked.get().is_some_and(|resolution| resolution.is_of(&settings))
        };
        assert!(is_same(&other));
        for (at, value) in [(0, "other"), (AHEAD + 1, ""), (AHEAD + 4, "utf8mb4_bin")] {
            let mut other = row("SYSTEM", "UTC", "0");
            other[at] = Some(value.as_bytes().to_vec());
            assert!(!is_same(&other), "{at}");
        }
    }

    #[test]
    fn a_time_that_was_set_stays_until_it_is_let_go() {
        let mut view = View::default();
        view.note(&Effects { clock: Some(true), settings: true, ..Effects::default() });
        // Two seconds from now: nothing that could be measured.
        view.settings = Settings::read(&row("SYSTEM", "UTC", "2.0"), Dialect::MySql).ok();
        assert!(view.has_own_time());
        view.note(&Effects { clock: Some(false), ..Effects::default() });
        assert!(!view.has_own_time());
        // A procedure has set it.
        view.settings = Settings::read(&row("SYSTEM", "UTC", "-60"), Dialect::MySql).ok();
        assert!(view.has_own_time());
    }
}
