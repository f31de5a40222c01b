//! What evaluation needs from outside: statement time, session settings, and where warnings go.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::datum::{Datum, Value};
use crate::expr::assigned::AssignedVariables;
use crate::expr::block_mode::BlockMode;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::seeded::SeededRandom;
use crate::json::{self, Json, JsonError};
use crate::sql_type::SqlType;
use crate::temporal::{ExcessDigits, Locale, TimeZone, ZeroDates};

/// The flags of `@@sql_mode` that evaluation looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlMode(pub u32);

impl SqlMode {
    pub const STRICT_TRANS_TABLES: Self = Self(1);
    pub const STRICT_ALL_TABLES: Self = Self(1 << 1);
    pub const NO_ZERO_IN_DATE: Self = Self(1 << 2);
    pub const NO_ZERO_DATE: Self = Self(1 << 3);
    pub const ERROR_FOR_DIVISION_BY_ZERO: Self = Self(1 << 4);
    pub const NO_UNSIGNED_SUBTRACTION: Self = Self(1 << 5);
    pub const NO_BACKSLASH_ESCAPES: Self = Self(1 << 6);
    pub const PAD_CHAR_TO_FULL_LENGTH: Self = Self(1 << 7);
    pub const ALLOW_INVALID_DATES: Self = Self(1 << 8);
    pub const TIME_TRUNCATE_FRACTIONAL: Self = Self(1 << 9);
    pub const ANSI_QUOTES: Self = Self(1 << 10);
    pub const PIPES_AS_CONCAT: Self = Self(1 << 11);
    pub const ONLY_FULL_GROUP_BY: Self = Self(1 << 12);
    pub const NO_ENGINE_SUBSTITUTION: Self = Self(1 << 13);
    pub const NO_AUTO_VALUE_ON_ZERO: Self = Self(1 << 14);
    pub const HIGH_NOT_PRECEDENCE: Self = Self(1 << 15);
    pub const IGNORE_SPACE: Self = Self(1 << 16);
    pub const REAL_AS_FLOAT: Self = Self(1 << 17);
    pub const NO_DIR_IN_CREATE: Self = Self(1 << 18);

    /// Those that decide what a text is parsed to.
    pub const PARSING: Self = Self(
        Self::NO_BACKSLASH_ESCAPES.0
            | Self::ANSI_QUOTES.0
            | Self::PIPES_AS_CONCAT.0
            | Self::HIGH_NOT_PRECEDENCE.0
            | Self::IGNORE_SPACE.0
            | Self::REAL_AS_FLOAT.0,
    );

    /// MySQL 8.4's default.
    pub const DEFAULT: Self = Self(
        Self::ONLY_FULL_GROUP_BY.0
            | Self::STRICT_TRANS_TABLES.0
            | Self::NO_ZERO_IN_DATE.0
            | Self::NO_ZERO_DATE.0
            | Self::ERROR_FOR_DIVISION_BY_ZERO.0
            | Self::NO_ENGINE_SUBSTITUTION.0,
    );

    pub const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 == flag.0
    }

    pub const fn with(self, flag: Self) -> Self {
        Self(self.0 | flag.0)
    }

    pub const fn without(self, flag: Self) -> Self {
        Self(self.0 & !flag.0)
    }

    /// Of `flags`, those that are set.
    pub const fn of(self, flags: Self) -> Self {
        Self(self.0 & flags.0)
    }

    /// What becomes of digits of a second that there is no room for.
    pub const fn excess_digits(self) -> ExcessDigits {
        match self.has(Self::TIME_TRUNCATE_FRACTIONAL) {
            true => ExcessDigits::Drop,
            false => ExcessDigits::Round,
        }
    }

    /// Where texts and numbers become dates: whether the zero date is one.
    pub const fn zero_dates(self) -> ZeroDates {
        ZeroDates { alone: !self.has(Self::NO_ZERO_DATE), with_time: !self.has(Self::NO_ZERO_IN_DATE) }
    }

    pub const fn is_strict(self) -> bool {
        self.0 & (Self::STRICT_TRANS_TABLES.0 | Self::STRICT_ALL_TABLES.0) != 0
    }
}

/// What VERSION(), USER() and the like answer.
#[derive(Clone, Debug, Default)]
pub struct SessionInfo {
    pub connection_id: u64,
    /// `user@host` as the client gave it.
    pub user: String,
    /// `user@host` of the account that it was matched to.
    pub current_user: String,
    /// The active roles; empty for none.
    pub current_role: String,
    pub database: Option<String>,
    pub version: String,
    pub last_insert_id: u64,
    /// −1 after a statement that returned rows.
    pub row_count: i64,
    pub found_rows: u64,
}

/// A condition that SHOW WARNINGS lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub errno: u16,
    pub message: String,
    /// Only a note: strict mode lets it pass.
    pub note: bool,
}

impl From<&EvalError> for Warning {
    fn from(error: &EvalError) -> Self {
        Self { errno: error.errno(), message: error.shown(), note: false }
    }
}

/// What functions ask of the session that they run in, beyond values. Calls may block.
pub trait Host: std::fmt::Debug + Send + Sync {
    /// Waits; whether for the whole time, or an interruption or the statement's deadline came.
    ///
    /// # Errors
    /// If the statement is to end for it.
    fn sleep(&self, time: Duration) -> EvalResult<bool>;

    /// Whether the statement goes on: evaluating many values asks now and then.
    ///
    /// # Errors
    /// If an interruption or the statement's deadline came.
    fn check(&self) -> EvalResult<()>;

    /// Sets memory of the server aside until it is given back; whether there is so much.
    fn reserve(&self, bytes: usize) -> bool;

    /// Gives back what was set aside.
    fn release(&self, bytes: usize);

    /// Fills with bytes of the operating system's generator.
    fn random_bytes(&self, to: &mut [u8]);

    /// Does what may take long while the thread's other connections go on elsewhere.
    fn aside(&self, work: &mut dyn FnMut());

    /// Waits for a lock by name, for ever if no time is given; whether the session has it now.
    fn get_lock(&self, name: &str, timeout: Option<Duration>) -> EvalResult<bool>;

    /// Gives a lock back: whether the session had it; `None` if nobody has.
    fn release_lock(&self, name: &str) -> Option<bool>;

    /// Gives back all locks of the session; returns how many there were.
    fn release_all_locks(&self) -> u64;

    /// The connection that has a lock.
    fn lock_owner(&self, name: &str) -> Option<u64>;

    /// Waits until transactions of the server that is followed are in force here, for ever if no time is given; whether they
    /// are. `None` if the set's text is none.
    fn wait_for_transactions(&self, set: &str, timeout: Option<Duration>) -> EvalResult<Option<bool>>;

    /// Waits until all before a place in the log of the server that is followed is in force here, for ever if no time is given: how often
    /// that moved meanwhile, -1 after the time; `None` if nothing is followed, or the place is in another log. Of the channel, which need not
    /// be named where there is one.
    fn wait_for_place(
        &self,
        file: &str,
        position: u64,
        channel: Option<&str>,
        timeout: Option<Duration>,
    ) -> EvalResult<Option<i64>>;

    /// What is in a file of the server; `None` if the session may not read it, or there is none, or it has more bytes than `most`.
    fn load_file(&self, name: &str, most: u64) -> Option<Vec<u8>>;

    /// A variable of the session, by its name in lower case.
    fn user_variable(&self, name: &str) -> Option<Value>;

    /// The thread, by the count of `performance_schema.threads`, of a connection, or of the session itself.
    fn thread_id(&self, connection: Option<u64>) -> Option<u64>;

    /// Accounts and the roles that they have, as GraphML.
    fn roles_graph(&self) -> String;

    /// A statement's text without its values, and the digest by which summaries know it.
    ///
    /// # Errors
    /// Of what is no statement.
    fn statement_digest(&self, statement: &str, mode: SqlMode) -> EvalResult<StatementDigest>;
}

/// What STATEMENT_DIGEST and STATEMENT_DIGEST_TEXT return.
#[derive(Clone, Debug)]
pub struct StatementDigest {
    pub text: String,
    pub digest: String,
}

/// One statement's surroundings. Shared by all threads that work for the statement.
#[derive(Debug)]
pub struct EvalContext {
    /// When the statement began: microseconds since 1970-01-01 00:00:00 UTC.
    pub statement_time_micros: i64,
    pub time_zone: TimeZone,
    pub sql_mode: SqlMode,
    pub div_precision_increment: u8,
    pub default_week_format: u8,
    pub block_encryption: BlockMode,
    /// `lc_time_names`
    pub locale: &'static Locale,
    pub max_allowed_packet: u64,
    /// In bytes.
    pub group_concat_max_len: u64,
    pub cte_max_recursion_depth: u64,
    /// Set while values are computed to be stored (INSERT, UPDATE) and not under IGNORE: in strict mode what would be a
    /// warning is then an error.
    pub storing: bool,
    /// Under IGNORE: what is an error in strict mode wherever it stands is a warning.
    pub ignoring: bool,
    pub session: SessionInfo,
    /// `None` where there is no session: nothing waits then, and nobody has locks.
    pub host: Option<Arc<dyn Host>>,
    /// User variables that the statement has assigned to.
    pub assigned: AssignedVariables,
    /// State of RAND() without a seed and of UUID().
    random: AtomicU64,
    /// Generators of the calls of RAND() with a constant seed, by the call's identity.
    seeded: Mutex<Vec<(usize, SeededRandom)>>,
    warnings: Warnings,
    /// Bytes of large arguments of calls that are being evaluated.
    large_args: AtomicU64,
    /// What LAST_INSERT_ID(value) was called with last.
    insert_id: Mutex<Option<u64>>,
}

/// Trees of shorter texts have few megabytes, for a moment.
const LONG_JSON: usize = 64 << 10;

/// Memory of the server that is given back at the end.
struct Reserved<'h> {
    host: &'h dyn Host,
    bytes: usize,
}

impl Reserved<'_> {
    fn grow(&mut self, bytes: usize) -> EvalResult<()> {
        match self.host.reserve(bytes) {
            true => {
                self.bytes += bytes;
                Ok(())
            }
            false => Err(EvalError::TooManyBytes),
        }
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.host.release(self.bytes);
    }
}

/// How many packets the large arguments of a statement's calls may fill at a time.
const ARGS_PACKETS: u64 = 8;

/// Collects warnings; keeps the first `max_error_count` of them and counts all.
#[derive(Debug, Default)]
struct Warnings {
    count: AtomicU64,
    kept: Mutex<Vec<Warning>>,
}

impl EvalContext {
    /// MySQL's `max_error_count`.
    const MAX_KEPT_WARNINGS: usize = 1024;

    /// A context for statement time `statement_time_micros` with MySQL's default settings; `random_seed` starts RAND()
    /// and UUID().
    pub fn new(statement_time_micros: i64, random_seed: u64) -> Self {
        Self {
            statement_time_micros,
            time_zone: TimeZone::UTC,
            sql_mode: SqlMode::DEFAULT,
            div_precision_increment: 4,
            default_week_format: 0,
            block_encryption: BlockMode::DEFAULT,
            locale: Locale::english(),
            max_allowed_packet: 64 << 20,
            group_concat_max_len: 1024,
            cte_max_recursion_depth: 1000,
            storing: false,
            ignoring: false,
            session: SessionInfo::default(),
            host: None,
            assigned: AssignedVariables::default(),
            random: AtomicU64::new(random_seed),
            seeded: Mutex::default(),
            warnings: Warnings::default(),
            large_args: AtomicU64::new(0),
            insert_id: Mutex::default(),
        }
    }

    /// The same surroundings with a list of warnings of its own.
    pub fn quiet(&self) -> Self {
        Self {
            session: self.session.clone(),
            host: self.host.clone(),
            assigned: self.assigned.clone(),
            random: AtomicU64::new(self.random.load(Ordering::Relaxed)),
            seeded: Mutex::default(),
            warnings: Warnings::default(),
            large_args: AtomicU64::new(0),
            insert_id: Mutex::default(),
            ..*self
        }
    }

    /// Forgets what the statement before had: its warnings, and where its calls of RAND(seed) were.
    pub fn begin_statement(&mut self, now_micros: i64) {
        self.statement_time_micros = now_micros;
        self.take_warnings();
        self.seeded.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether the statement goes on: what takes long asks now and then.
    pub fn check(&self) -> EvalResult<()> {
        self.host.as_ref().map_or(Ok(()), |host| host.check())
    }

    /// Hands the document that a text is to `then`. A tree has many times the bytes of its text: they are counted while it is there.
    ///
    /// # Errors
    /// `TooManyBytes` if the server has no memory for it; if the statement ends.
    pub(crate) fn with_json<T>(
        &self,
        text: &str,
        then: impl FnOnce(Result<Json, JsonError>) -> EvalResult<T>,
    ) -> EvalResult<T> {
        let Some(host) = self.host.as_deref().filter(|_| text.len() >= LONG_JSON) else {
            return then(json::parse(text));
        };
        let mut held = Reserved { host, bytes: 0 };
        let mut end = None;
        let parsed = json::parse_within(text, &mut |bytes| {
            end = host.check().and_then(|()| held.grow(bytes)).err();
            end.is_none()
        });
        match end {
            Some(end) => Err(end),
            None => then(parsed),
        }
    }

    /// A text on its way into a column of documents, as the document if it is a long one; others, and what is none, as they are.
    ///
    /// # Errors
    /// As of [`Self::with_json`].
    pub fn document_of_long_text<'v>(&self, value: Datum<'v>, to: &SqlType) -> EvalResult<Datum<'v>> {
        match &value {
            Datum::Str(text) if *to == SqlType::Json && text.len() >= LONG_JSON => {
                let encoded = self.with_json(text, |json| Ok(json.and_then(|json| json.encode())))?;
                Ok(encoded.map_or(value, |document| Datum::Bytes(document.into())))
            }
            _ => Ok(value),
        }
    }

    /// Does what may take long while the thread's other connections go on elsewhere.
    pub(crate) fn aside(&self, work: &mut dyn FnMut()) {
        match &self.host {
            Some(host) => host.aside(work),
            None => work(),
        }
    }

    /// A user variable, by its name in lower case, as it is now.
    pub(crate) fn user_variable(&self, name: &str) -> Value {
        let assigned = self.assigned.with(|assigned| assigned.get(name).map(|(value, _)| value.clone()));
        let before = || self.host.as_ref().and_then(|host| host.user_variable(name));
        assigned.or_else(before).unwrap_or(Datum::Null)
    }

    /// The statement's time in the session's time zone, microseconds.
    pub fn local_now_micros(&self) -> i64 {
        self.time_zone.to_local(self.statement_time_micros)
    }

    /// Whether a condition that is otherwise a warning fails the statement.
    pub fn is_strict(&self) -> bool {
        self.storing && self.sql_mode.is_strict()
    }

    /// Adds a warning; an error in strict mode.
    #[cold]
    pub fn warn(&self, condition: EvalError) -> EvalResult<()> {
        if self.is_strict() {
            return Err(condition);
        }
        self.note(&condition);
        Ok(())
    }

    /// So many bytes of arguments are there until [`Self::release_args`].
    ///
    /// # Errors
    /// `TooManyBytes` beyond what so many packets hold, or where the server has no memory for them: they do not count then.
    #[cold]
    pub(crate) fn hold_args(&self, bytes: u64) -> EvalResult<()> {
        let held = self.large_args.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let has_room = held <= self.max_allowed_packet.saturating_mul(ARGS_PACKETS)
            && self.host.as_ref().is_none_or(|host| host.reserve(bytes as usize));
        if !has_room {
            self.large_args.fetch_sub(bytes, Ordering::Relaxed);
            return Err(EvalError::TooManyBytes);
        }
        Ok(())
    }

    #[cold]
    pub(crate) fn release_args(&self, bytes: u64) {
        self.large_args.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(host) = &self.host {
            host.release(bytes as usize);
        }
    }

    /// Adds a warning, also in strict mode.
    #[cold]
    pub fn note(&self, condition: &EvalError) {
        self.push_warning(condition.into());
    }

    /// Keeps what LAST_INSERT_ID() is to give from now on.
    pub fn set_insert_id(&self, id: u64) {
        *self.insert_id.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
    }

    pub fn take_insert_id(&self) -> Option<u64> {
        self.insert_id.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn push_warning(&self, warning: Warning) {
        self.warnings.count.fetch_add(1, Ordering::Relaxed);
        let mut kept = self.warnings.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < Self::MAX_KEPT_WARNINGS {
            kept.push(warning);
        }
    }

    /// A division by zero: NULL, with a warning or an error as sql_mode has it.
    #[cold]
    pub fn division_by_zero(&self) -> EvalResult<()> {
        if self.sql_mode.has(SqlMode::ERROR_FOR_DIVISION_BY_ZERO) {
            self.warn(EvalError::DivisionByZero)?;
        }
        Ok(())
    }

    pub fn warning_count(&self) -> u64 {
        self.warnings.count.load(Ordering::Relaxed)
    }

    /// Forgets all warnings but the first so many, which [`Self::warning_count`] gave.
    pub fn truncate_warnings(&self, count: u64) {
        self.warnings.count.store(count, Ordering::Relaxed);
        let mut kept = self.warnings.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    }

    /// Takes the warnings kept so far.
    pub fn take_warnings(&self) -> Vec<Warning> {
        self.warnings.count.store(0, Ordering::Relaxed);
        std::mem::take(&mut *self.warnings.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// 64 random bits (SplitMix64).
    pub fn next_random(&self) -> u64 {
        let state = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// The next number of the generator that belongs to a call of RAND(seed).
    pub(crate) fn next_seeded(&self, call: usize, seed: i64) -> f64 {
        let mut seeded = self.seeded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, generator)) = seeded.iter_mut().find(|(of, _)| *of == call) {
            return generator.next();
        }
        let mut generator = SeededRandom::new(seed);
        let first = generator.next();
        seeded.push((call, generator));
        first
    }
}
