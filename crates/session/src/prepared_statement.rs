//! What is kept of a prepared statement.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_sql::facts::StatementFacts;
use avocet_sql::parse::deprecated::Deprecated;
use avocet_sql::parse::digest::{Digest, SlotKind};
use avocet_sql::parse::hints::Hints;
use avocet_sql::parse::statement::{Statement, StatementKind};
use avocet_sql::parse::{is_tall, on_stack_for};
use avocet_types::decimal::{DecimalPrefix, ParseStatus};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{Dialect, SqlMode};
use avocet_types::temporal::Locale;
use avocet_types::{Collation, Datum, Decimal, Value};

use super::candidate::Candidate;
use super::held::{Held, TextSize};
use super::settings::Settings;
use super::shared::Shared;

/// What is kept of a statement between its executions.
pub(super) struct PreparedStatement {
    pub source: Box<str>,
    /// That of the session when it was prepared: what its names without one mean.
    pub database: Option<Box<str>>,
    pub resolved: Resolved,
    pub kind: StatementKind,
    pub hints: Option<Box<Hints>>,
    pub params: usize,
    /// How tall its trees are.
    pub height: u32,
    /// Its expressions assign to user variables.
    pub assigns: bool,
    /// What those who run it as text are warned of.
    pub deprecated: Box<[Deprecated]>,
    /// Which parameters are operands of arithmetic.
    numbers: Box<[usize]>,
    /// Which parameters are a LIMIT or an OFFSET.
    limits: Box<[usize]>,
    _counted: CountedStatement,
    pub size: Option<TextSize>,
    /// Its text and its tree.
    _held: Held,
    /// What its plans are kept under; `None` for a kind of statement that has none.
    digest: Option<Digest>,
    /// As [`Candidate::parsed_by`].
    pub parsed_by: SqlMode,
}

/// Settings by which a statement's names and types are resolved, as MySQL does when it is prepared. All others are those of the
/// session that runs it.
#[derive(Clone, Copy)]
pub(super) struct Resolved {
    /// Of [`RESOLVING_MODES`].
    modes: SqlMode,
    collation: Collation,
    utf8mb4_collation: Collation,
    dialect: Dialect,
    div_precision_increment: u8,
    locale: &'static Locale,
}

/// The modes that are of no effect any more once a statement is resolved. Those that its text is parsed by are not needed again.
const RESOLVING_MODES: SqlMode = SqlMode::ONLY_FULL_GROUP_BY.with(SqlMode::NO_UNSIGNED_SUBTRACTION);

impl Resolved {
    pub fn of(settings: &Settings) -> Self {
        Self {
            modes: settings.sql_mode.of(RESOLVING_MODES),
            collation: settings.connection_collation,
            utf8mb4_collation: settings.utf8mb4_collation,
            dialect: settings.dialect,
            div_precision_increment: settings.div_precision_increment,
            locale: settings.locale,
        }
    }

    /// Makes settings these; false if they are.
    pub fn put_in(&self, settings: &mut Settings) -> bool {
        let is = Self::of(settings);
        if is.modes == self.modes
            && is.collation == self.collation
            && is.utf8mb4_collation == self.utf8mb4_collation
            && is.dialect == self.dialect
            && is.div_precision_increment == self.div_precision_increment
            && std::ptr::eq(is.locale, self.locale)
        {
            return false;
        }
        settings.sql_mode = settings.sql_mode.without(RESOLVING_MODES).with(self.modes);
        settings.connection_collation = self.collation;
        settings.utf8mb4_collation = self.utf8mb4_collation;
        settings.dialect = self.dialect;
        settings.div_precision_increment = self.div_precision_increment;
        settings.locale = self.locale;
        true
    }
}

/// One of the statements that `max_prepared_stmt_count` counts.
pub(super) struct CountedStatement(Arc<Shared>);

impl CountedStatement {
    pub fn new(shared: &Arc<Shared>) -> Result<Self, SqlError> {
        let most = shared.globals.settings().max_prepared_statements;
        let before = shared.prepared.fetch_add(1, Ordering::Relaxed);
        let counted = Self(shared.clone());
        match before < most {
            true => Ok(counted),
            false => Err(ErrorCode::MAX_PREPARED_STMT_COUNT_REACHED.with(&[&most])),
        }
    }
}

impl Drop for CountedStatement {
    fn drop(&mut self) {
        self.0.prepared.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PreparedStatement {
    pub fn new(
        source: &str,
        (database, resolved): (Option<&str>, Resolved),
        statement: Statement,
        counted: CountedStatement,
        held: (Option<TextSize>, Held),
        mode: SqlMode,
    ) -> Self {
        let mut digest = Digest::default();
        let has_plan = digest.read(source.as_bytes(), mode);
        // Literals beside parameters: parameters are numbered by themselves, so the plan is for this text alone.
        if digest.slots.iter().any(|slot| slot.kind != SlotKind::Param) {
            digest.text = source.into();
            digest.number_limits_by_params();
            digest.slots.clear();
        }
        let numbers = numeric_params(&statement);
        Self {
            source: source.into(),
            database: database.map(Into::into),
            resolved,
            kind: statement.kind,
            hints: statement.hints,
            params: statement.params as usize,
            height: statement.height,
            assigns: statement.assigns,
            deprecated: statement.deprecated,
            numbers,
            limits: statement.limit_params.iter().map(|at| *at as usize).collect(),
            _counted: counted,
            size: held.0,
            _held: held.1,
            digest: (has_plan && !is_tall(statement.height)).then_some(digest),
            parsed_by: mode.of(SqlMode::PARSING),
        }
    }

    /// Whether values are something else than what they were given as.
    pub fn reads_values(&self) -> bool {
        !self.limits.is_empty() || !self.numbers.is_empty()
    }

    /// Makes exact numbers of texts for operands of arithmetic, as MySQL does, which knows what is asked for when it prepares a
    /// statement; a text beside a number is a DOUBLE elsewhere. What is no such number stays.
    pub fn read_numbers(&self, params: &mut [Datum<'_>], dialect: Dialect) {
        // A MariaDB makes doubles of them.
        if dialect == Dialect::MariaDb {
            return;
        }
        for at in &self.numbers {
            if let Datum::Str(text) = &params[*at]
                && let Some(number) = exact_number(text)
            {
                params[*at] = number;
            }
        }
    }

    /// Makes numbers of rows of the values that are a LIMIT or an OFFSET, or fails as MySQL does.
    pub fn count_limits(&self, params: &mut [Datum<'_>], from: ParamsFrom) -> Result<(), SqlError> {
        self.limits.iter().try_for_each(|at| {
            params[*at] = Datum::UInt(count_of(&params[*at], from)?);
            Ok(())
        })
    }

    /// How its plan is looked for.
    pub fn candidate<'c>(&'c self, values: &'c [Datum<'c>]) -> Option<Candidate<'c>> {
        let digest = self.digest.as_ref()?;
        Some(Candidate {
            digest: &digest.text,
            slots: &digest.slots,
            limits: &digest.limits,
            source: &self.source,
            parsed_by: self.parsed_by,
            values,
            params: true,
        })
    }
}

fn numeric_params(statement: &Statement) -> Box<[usize]> {
    match statement.params {
        0 => Box::default(),
        _ => {
            let facts = on_stack_for(statement.height, || StatementFacts::of(statement));
            facts.numeric_params.iter().map(|at| *at as usize).collect()
        }
    }
}

/// An integer, or a DECIMAL(65, 30).
fn exact_number(text: &str) -> Option<Value> {
    let text = text.trim_ascii();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_plain || !digits.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if let Ok(number) = text.parse() {
        return Some(Datum::Int(number));
    }
    if let Ok(number) = text.parse() {
        return Some(Datum::UInt(number));
    }
    let DecimalPrefix { value, consumed, status } = Decimal::parse_prefix(text.as_bytes());
    let is_exact = status == ParseStatus::Exact && consumed == text.len();
    let value = value.rescale(Decimal::MAX_SCALE).ok().filter(|_| is_exact)?;
    value.fits(Decimal::MAX_PRECISION, Decimal::MAX_SCALE).then_some(Datum::Decimal(value))
}

/// Where the values of parameters come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParamsFrom {
    /// COM_STMT_EXECUTE. Some clients know of no types but text.
    Client,
    /// EXECUTE … USING
    UserVariables,
}

impl ParamsFrom {
    fn command(self) -> &'static str {
        match self {
            Self::Client => "mysqld_stmt_execute",
            Self::UserVariables => "EXECUTE",
        }
    }
}

/// The value of a LIMIT or an OFFSET.
fn count_of(value: &Datum<'_>, from: ParamsFrom) -> Result<u64, SqlError> {
    match value {
        Datum::UInt(count) => Ok(*count),
        Datum::Int(count) => u64::try_from(*count)
            .map_err(|_| ErrorCode::DATA_OUT_OF_RANGE.with(&[&"unsigned integer", &from.command()])),
        Datum::Null => Ok(0),
        Datum::Str(text) if from == ParamsFrom::Client => Ok(leading_count(text.as_bytes())),
        Datum::Bytes(text) if from == ParamsFrom::Client => Ok(leading_count(text)),
        _ => Err(ErrorCode::WRONG_ARGUMENTS.with(&[&from.command()])),
    }
}

/// The number that a text begins with, as MySQL reads it here: a negative one is a very large one.
fn leading_count(text: &[u8]) -> u64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let count =
        digits.fold(0_u64, |count, byte| count.saturating_mul(10).saturating_add(u64::from(byte - b'0')));
    if negative { count.wrapping_neg() } else { count }
}
