//! Expressions of a table's definition, for rows that the engine itself makes: those of typed tables, and of cascades.

use avocet_types::convert::{ConvertContext, store_column};
use avocet_types::error::{SqlError, error_of_column, store_error};
use avocet_types::expr::program::reborrow;
use avocet_types::expr::{EvalContext, RowProgram, RowSource, SqlMode};
use avocet_types::rules::evaluate;
use avocet_types::{ColumnDef, Datum, RowRef, RowRules, Value};

use crate::error::{EngineError, Result};
use crate::table::{RuleCompiler, TableHandle};

/// Those of a table, with the surroundings in which they are evaluated, if there are any. `now_us` is asked only then.
pub(crate) fn of(
    table: &TableHandle,
    compiler: Option<RuleCompiler>,
    now_us: impl FnOnce() -> i64,
) -> Result<Option<(&RowRules, EvalContext)>> {
    if !table.def.has_rules() {
        return Ok(None);
    }
    let why = || EngineError::WrongShape {
        table: table.def.name.clone(),
        why: "its definition has expressions, and the engine was opened without a compiler for them".into(),
    };
    let Some(rules) = table.rules(compiler.ok_or_else(why)?).map_err(signal)? else { return Ok(None) };
    // Of a call that recovery repeats, the time is the same, and so is what is random.
    let now = now_us();
    let mut context = EvalContext::new(now, now as u64);
    context.storing = true;
    Ok(Some((rules, context)))
}

/// Gives a new row the values that are missing, and checks it.
pub(crate) fn complete(
    rules: &RowRules,
    context: &EvalContext,
    table: &TableHandle,
    row: &mut [Option<Datum<'_>>],
) -> Result<()> {
    let owned = |value: &Option<Datum<'_>>| value.clone().map_or(Datum::Null, Datum::into_owned);
    let mut values: Vec<Value> = row.iter().map(owned).collect();
    for (at, column) in table.def.columns.iter().enumerate().filter(|(at, _)| row[*at].is_none()) {
        let Some(program) = rules.default_of(at) else { continue };
        values[at] = computed(program, column, &&values[..], context)?;
    }
    for (at, program) in rules.generated() {
        values[*at] = computed(program, &table.def.columns[*at], &&values[..], context)?;
    }
    rules.check(&&values[..], context).map_err(signal)?;
    for ((place, value), column) in row.iter_mut().zip(values).zip(&table.def.columns) {
        if place.is_none() || column.generated.is_some() {
            *place = Some(value);
        }
    }
    Ok(())
}

fn computed<'r, R: RowSource<'r>>(
    program: &'r RowProgram,
    column: &ColumnDef,
    row: &R,
    context: &EvalContext,
) -> Result<Value> {
    let convert = ConvertContext {
        strict: context.sql_mode.is_strict(),
        zero_dates: context.sql_mode.zero_dates(),
        ..ConvertContext::STRICT_UTC
    };
    let value = evaluate(program, column, row, context, 1).map_err(signal)?;
    let stored = store_column(value, program.ty(), column, &convert).map_err(|problem| {
        signal(error_of_column(store_error(&problem, &column.name, 1), column.functional_index(), 1))
    })?;
    Ok(stored.value.into_owned())
}

/// For rows that come from another server: what does not fit was let pass there, and is cut.
fn context_of_followed() -> EvalContext {
    let mut context = EvalContext::new(0, 0);
    context.storing = true;
    context.sql_mode = SqlMode(0);
    context
}

/// The values of a table's hidden columns in a row of its own columns that comes from elsewhere, by column.
pub(crate) fn hidden_values<'r, R: RowSource<'r>>(
    rules: &'r RowRules,
    table: &TableHandle,
    row: &R,
) -> Result<Vec<(usize, Value)>> {
    let context = context_of_followed();
    let columns = &table.def.columns;
    let hidden = rules.generated().iter().filter(|(at, _)| columns[*at].is_hidden());
    hidden.map(|(at, program)| Ok((*at, computed(program, &columns[*at], row, &context)?))).collect()
}

/// A row of a table's own columns that comes from elsewhere without its generated columns; they are NULL in it.
pub(crate) fn fill_generated(
    rules: &RowRules,
    table: &TableHandle,
    row: &mut [Value],
    is_missing: &dyn Fn(usize) -> bool,
) -> Result<()> {
    let context = context_of_followed();
    for (at, program) in rules.generated().iter().filter(|(at, _)| is_missing(*at)) {
        row[*at] = computed(program, &table.def.columns[*at], &&row[..], &context)?;
    }
    Ok(())
}

/// What follows from the changes of a row that come from elsewhere: generated columns that are not among them, hidden ones too.
pub(crate) fn followed(
    rules: &RowRules,
    table: &TableHandle,
    row: RowRef<'_>,
    changes: &[(usize, Value)],
) -> Result<Vec<(usize, Value)>> {
    let context = context_of_followed();
    let given = |column: usize| changes.iter().any(|(of, _)| *of == column);
    let mut all = changes.to_vec();
    for (at, program) in rules.generated_from(&given) {
        if !given(*at) {
            let value =
                computed(program, &table.def.columns[*at], &Changed { row, changes: &all }, &context)?;
            all.push((*at, value));
        }
    }
    all.drain(..changes.len());
    Ok(all)
}

/// A row some of whose columns have new values.
struct Changed<'a> {
    row: RowRef<'a>,
    changes: &'a [(usize, Value)],
}

impl<'a> RowSource<'a> for Changed<'a> {
    fn datum(&self, column: usize) -> Datum<'a> {
        let new = self.changes.iter().find(|(of, _)| *of == column);
        new.map_or_else(|| self.row.get(column), |(_, value)| reborrow(value))
    }
}

/// All that changes in a row with the changes that are asked for: generated columns follow. Fails if the row may not become so.
pub(crate) fn changed(
    rules: &RowRules,
    context: &EvalContext,
    table: &TableHandle,
    row: RowRef<'_>,
    mut changes: Vec<(usize, Value)>,
) -> Result<Vec<(usize, Value)>> {
    let columns = &table.def.columns;
    changes.retain(|(column, _)| columns[*column].generated.is_none());
    let asked: Vec<usize> = changes.iter().map(|(column, _)| *column).collect();
    for (at, program) in rules.generated_from(&|column| asked.contains(&column)) {
        let value = computed(program, &columns[*at], &Changed { row, changes: &changes }, context)?;
        changes.push((*at, value));
    }
    let is_new = |column: usize| changes.iter().any(|(of, _)| *of == column);
    rules.check_changed(&Changed { row, changes: &changes }, &is_new, context).map_err(signal)?;
    Ok(changes)
}

fn signal(SqlError { errno, sqlstate, message }: SqlError) -> EngineError {
    EngineError::Signal { errno, sqlstate, message }
}
