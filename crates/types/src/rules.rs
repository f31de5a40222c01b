//! The expressions of a table's definition, compiled: what a row gets that the statement gives no value, what its generated
//! columns are, and what it must be.
//!
//! They are over the table's columns, by position. Whoever writes rows asks the table for them; most tables have none.

use crate::datum::Datum;
use crate::error::{ErrorCode, SqlError, error_of_column};
use crate::expr::{EvalContext, EvalError, RowProgram, RowSource, Warning};
use crate::names;
use crate::schema::ColumnDef;

/// All of one table.
#[derive(Debug)]
pub struct RowRules {
    /// By column: the default, where that is an expression.
    defaults: Box<[Option<RowProgram>]>,
    /// The generated columns, each after those that it uses.
    generated: Box<[(usize, RowProgram)]>,
    /// Those that are enforced, in the order of their names.
    checks: Box<[Check]>,
    bounds: Option<Bounds>,
}

/// What a table's partitions take together.
#[derive(Debug)]
struct Bounds {
    /// Whether one of them takes the row.
    taken: RowProgram,
    /// What the partitioning function gives, unless columns are compared one by one.
    value: Option<RowProgram>,
}

#[derive(Debug)]
struct Check {
    name: String,
    condition: RowProgram,
}

/// What an expression of a table's definition gives a column in the row of this number. Errors and warnings of a functional key
/// part name its index.
///
/// # Errors
/// What is wrong with the row's values.
pub fn evaluate<'a, R: RowSource<'a>>(
    program: &'a RowProgram,
    column: &ColumnDef,
    row: &R,
    ctx: &EvalContext,
    number: u64,
) -> Result<Datum<'a>, SqlError> {
    let index = column.functional_index();
    let Some(name) = index else { return Ok(program.eval(row, &[], ctx)?) };
    let before = ctx.warning_count();
    let value = program.eval(row, &[], ctx);
    let value = value.map_err(|error| error_of_column(error.into(), index, number))?;
    if ctx.warning_count() > before {
        ctx.truncate_warnings(before);
        let SqlError { errno, message, .. } =
            ErrorCode::WARN_DATA_TRUNCATED_FUNCTIONAL_INDEX.with(&[&name, &number]);
        ctx.push_warning(Warning { errno, message, note: false });
    }
    Ok(value)
}

impl RowRules {
    /// `defaults` are by column, `generated` in the table's order, `checks` have their names.
    pub fn new(
        defaults: Vec<Option<RowProgram>>,
        generated: Vec<(usize, RowProgram)>,
        checks: Vec<(String, RowProgram)>,
    ) -> Self {
        let mut checks: Vec<_> =
            checks.into_iter().map(|(name, condition)| Check { name, condition }).collect();
        checks.sort_by_cached_key(|check| names::fold(&check.name).into_owned());
        Self { defaults: defaults.into(), generated: generated.into(), checks: checks.into(), bounds: None }
    }

    /// With partitions: `taken` says whether one of them takes a row, `value` is what the partitioning function makes of it.
    pub fn bounded(self, taken: RowProgram, value: Option<RowProgram>) -> Self {
        Self { bounds: Some(Bounds { taken, value }), ..self }
    }

    /// A column's default, if that is an expression.
    pub fn default_of(&self, column: usize) -> Option<&RowProgram> {
        self.defaults[column].as_ref()
    }

    pub fn has_defaults(&self) -> bool {
        self.defaults.iter().any(Option::is_some)
    }

    /// The generated columns, each after those that it uses.
    pub fn generated(&self) -> &[(usize, RowProgram)] {
        &self.generated
    }

    /// The generated columns that an expression uses, directly or through others.
    pub fn generated_for(&self, program: &RowProgram) -> Vec<&(usize, RowProgram)> {
        let mut wanted: Vec<usize> = program.columns().to_vec();
        let mut found: Vec<_> = Vec::new();
        // Each comes after those that it uses.
        for one in self.generated.iter().rev() {
            if wanted.contains(&one.0) {
                wanted.extend(one.1.columns());
                found.push(one);
            }
        }
        found.reverse();
        found
    }

    /// Those that get another value if the columns for which `changes` holds do, or are among these.
    pub fn generated_from<'r>(
        &'r self,
        changes: &dyn Fn(usize) -> bool,
    ) -> impl Iterator<Item = &'r (usize, RowProgram)> {
        let mut all: Vec<usize> = Vec::new();
        let affected: Vec<bool> = self
            .generated
            .iter()
            .map(|(at, program)| {
                let is_affected =
                    program.columns().iter().any(|column| changes(*column) || all.contains(column));
                all.extend(is_affected.then_some(*at));
                is_affected
            })
            .collect();
        self.generated.iter().zip(affected).filter(|(_, is_affected)| *is_affected).map(|(one, _)| one)
    }

    pub fn has_checks(&self) -> bool {
        !self.checks.is_empty() || self.bounds.is_some()
    }

    /// Error 3819 if a whole new row makes a condition false, 1526 if no partition takes it.
    pub fn check<'r, R: RowSource<'r>>(&'r self, row: &R, ctx: &EvalContext) -> Result<(), SqlError> {
        self.checks.iter().try_for_each(|check| check.test(row, ctx))?;
        self.bounds.as_ref().map_or(Ok(()), |bounds| bounds.test(row, ctx))
    }

    /// As [`Self::check`], for a row of which only the columns for which `changes` holds are new.
    pub fn check_changed<'r, R: RowSource<'r>>(
        &'r self,
        row: &R,
        changes: &dyn Fn(usize) -> bool,
        ctx: &EvalContext,
    ) -> Result<(), SqlError> {
        let concerned = |check: &&Check| check.condition.columns().iter().any(|column| changes(*column));
        self.checks.iter().filter(concerned).try_for_each(|check| check.test(row, ctx))?;
        let moves = |bounds: &&Bounds| bounds.taken.columns().iter().any(|column| changes(*column));
        self.bounds.as_ref().filter(moves).map_or(Ok(()), |bounds| bounds.test(row, ctx))
    }
}

impl Bounds {
    fn test<'r, R: RowSource<'r>>(&'r self, row: &R, ctx: &EvalContext) -> Result<(), SqlError> {
        match self.taken.eval(row, &[], ctx)? {
            Datum::Int(0) | Datum::Null => Err(self.violated(row, ctx)),
            _ => Ok(()),
        }
    }

    #[cold]
    fn violated<'r, R: RowSource<'r>>(&'r self, row: &R, ctx: &EvalContext) -> SqlError {
        let value = self.value.as_ref().map(|value| value.eval(row, &[], ctx));
        let shown = match value {
            None => "from column_list".to_owned(),
            Some(Ok(Datum::Int(value))) => value.to_string(),
            Some(Ok(Datum::UInt(value))) => value.to_string(),
            Some(_) => "NULL".to_owned(),
        };
        ErrorCode::NO_PARTITION_FOR_GIVEN_VALUE.with(&[&shown])
    }
}

impl Check {
    /// NULL is as good as true. What cannot be evaluated does not hold.
    fn test<'r, R: RowSource<'r>>(&'r self, row: &R, ctx: &EvalContext) -> Result<(), SqlError> {
        match self.condition.eval(row, &[], ctx) {
            Ok(Datum::Int(0)) => Err(self.violated()),
            Ok(_) => Ok(()),
            Err(error @ (EvalError::Interrupted | EvalError::Timeout | EvalError::TooManyBytes)) => {
                Err(error.into())
            }
            Err(_) => Err(self.violated()),
        }
    }

    #[cold]
    fn violated(&self) -> SqlError {
        ErrorCode::CHECK_CONSTRAINT_VIOLATED.with(&[&self.name])
    }
}
