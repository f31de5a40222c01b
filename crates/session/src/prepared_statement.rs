//! What is kept of a prepared statement.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_sql::parse::digest::{Digest, SlotKind};
use avocet_sql::parse::hints::Hints;
use avocet_sql::parse::is_tall;
use avocet_sql::parse::statement::{Statement, StatementKind};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::SqlMode;
use avocet_types::temporal::Locale;
use avocet_types::{Collation, Datum};

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
    /// Which parameters are a LIMIT or an OFFSET.
    limits: Box<[usize]>,
    _counted: CountedStatement,
    pub size: Option<TextSize>,
    /// Its text and its tree.
    _held: Held,
    /// What its plans are kept under; `None` for a kind of statement that has none.
    digest: Option<Digest>,
}

/// Settings by which a statement's names and types are resolved, as MySQL does when it is prepared. All others are those of the
/// session that runs it.
#[derive(Clone, Copy)]
pub(super) struct Resolved {
    /// Of [`RESOLVING_MODES`].
    modes: SqlMode,
    collation: Collation,
    div_precision_increment: u8,
    locale: &'static Locale,
}

/// The modes that are of no effect any more once a statement is resolved. Those that its text is parsed by are not needed again.
const RESOLVING_MODES: SqlMode = SqlMode(SqlMode::ONLY_FULL_GROUP_BY.0 | SqlMode::NO_UNSIGNED_SUBTRACTION.0);

impl Resolved {
    pub fn of(settings: &Settings) -> Self {
        Self {
            modes: SqlMode(settings.sql_mode.0 & RESOLVING_MODES.0),
            collation: settings.connection_collation,
            div_precision_increment: settings.div_precision_increment,
            locale: settings.locale,
        }
    }

    /// Makes settings these; false if they are.
    pub fn put_in(&self, settings: &mut Settings) -> bool {
        let is = Self::of(settings);
        if is.modes == self.modes
            && is.collation == self.collation
            && is.div_precision_increment == self.div_precision_increment
            && std::ptr::eq(is.locale, self.locale)
        {
            return false;
        }
        settings.sql_mode = SqlMode(settings.sql_mode.0 & !RESOLVING_MODES.0 | self.modes.0);
        settings.connection_collation = self.collation;
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
        Self {
            source: source.into(),
            database: database.map(Into::into),
            resolved,
            kind: statement.kind,
            hints: statement.hints,
            params: statement.params as usize,
            height: statement.height,
            assigns: statement.assignments > 0,
            limits: statement.limit_params.iter().map(|at| *at as usize).collect(),
            _counted: counted,
            size: held.0,
            _held: held.1,
            digest: (has_plan && !is_tall(statement.height)).then_some(digest),
        }
    }

    /// Makes numbers of rows of the values that are a LIMIT or an OFFSET, or fails as MySQL does.
    pub fn count_limits(&self, params: &mut [Datum<'_>], from: ParamsFrom) -> Result<(), SqlError> {
        self.limits.iter().try_for_each(|at| {
            params[*at] = Datum::UInt(count_of(&params[*at], from)?);
            Ok(())
        })
    }

    pub fn has_limits(&self) -> bool {
        !self.limits.is_empty()
    }

    /// How its plan is looked for.
    pub fn candidate<'c>(&'c self, values: &'c [Datum<'c>]) -> Option<Candidate<'c>> {
        let digest = self.digest.as_ref()?;
        Some(Candidate {
            digest: &digest.text,
            slots: &digest.slots,
            limits: &digest.limits,
            source: &self.source,
            values,
            params: true,
        })
    }
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
