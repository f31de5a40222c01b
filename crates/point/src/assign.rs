//! New values for a row's columns: SET of UPDATE, and ON DUPLICATE KEY UPDATE.

use avocet_engine::TableHandle;
use avocet_types::convert::{StoreError, store_column};
use avocet_types::error::{ErrorCode, SqlError, column_error, error_of_column, store_error};
use avocet_types::expr::{EvalContext, Expr, RowProgram, RowSource, Warning};
use avocet_types::rules::evaluate;
use avocet_types::{ColumnDef, Datum, DefaultValue, RowRef, RowRules, SqlType, TableDef, Value};

use super::{
    Refusal, Run, convert_context, implicit_default, no_default, note_stored, note_updated, now, rules_of,
    unstated_default,
};

/// The assignments to the columns of one table, in order.
#[derive(Debug)]
pub struct Assignments {
    list: Box<[Assignment]>,
    /// Columns that become the statement's time when a row changes.
    touched: Box<[usize]>,
    /// A value uses a column that was assigned before it, or a column is assigned twice.
    sequential: bool,
    /// Out of strict mode, a NULL for a column that has none becomes the type's default, with a warning.
    takes_nulls: bool,
}

#[derive(Debug)]
struct Assignment {
    column: usize,
    /// `None` for DEFAULT.
    value: Option<RowProgram>,
}

/// A row in which some columns have new values already, followed by what else assignments use.
pub(crate) struct Assigned<'a, 'c> {
    pub row: RowRef<'a>,
    pub width: usize,
    pub inputs: &'a [Datum<'a>],
    pub changes: &'c [(usize, Datum<'a>)],
}

impl<'a> RowSource<'a> for Assigned<'a, '_> {
    fn datum(&self, column: usize) -> Datum<'a> {
        if column >= self.width {
            return self.inputs[column - self.width].clone();
        }
        let assigned = self.changes.iter().rev().find(|(of, _)| *of == column);
        assigned.map_or_else(|| self.row.get(column), |(_, value)| value.clone())
    }
}

impl Assignments {
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.list.iter().map(|assignment| assignment.column).chain(self.touched.iter().copied())
    }

    /// `list` has columns, each with its new value over the table's columns followed by inputs, or `None` for DEFAULT.
    pub fn compile(
        list: &[(usize, Option<Expr>)],
        def: &TableDef,
        takes_nulls: bool,
        compile: &dyn Fn(&Expr) -> Result<RowProgram, Refusal>,
    ) -> Result<Self, Refusal> {
        let mut sequential = false;
        let mut assignments: Vec<Assignment> = Vec::with_capacity(list.len());
        for (column, value) in list {
            if def.columns[*column].generated.is_some() {
                match value {
                    Some(_) => return Err(not_for_generated(def, *column).into()),
                    // It has no other value anyway.
                    None => continue,
                }
            }
            let is_assigned = |column: usize| assignments.iter().any(|before| before.column == column);
            let uses = value.iter().flat_map(Expr::columns).any(is_assigned);
            sequential |= uses || is_assigned(*column);
            // An expression's value depends on what was assigned before.
            sequential |=
                value.is_none() && matches!(def.columns[*column].default, Some(DefaultValue::Expr(_)));
            let value = value.as_ref().map(compile).transpose()?;
            assignments.push(Assignment { column: *column, value });
        }
        let explicit = |column: usize| list.iter().any(|(assigned, _)| *assigned == column);
        let touched =
            (0..def.columns.len()).filter(|&c| def.columns[c].on_update_now && !explicit(c)).collect();
        Ok(Self { list: assignments.into(), touched, sequential, takes_nulls })
    }

    /// Appends the columns that get another value to `changes`, which is empty. `number` is the row's in the statement,
    /// from 1.
    pub fn evaluate<'a>(
        &'a self,
        table: &TableHandle,
        row: RowRef<'a>,
        inputs: &'a [Datum<'a>],
        Run { params, ctx, .. }: Run<'a>,
        number: u64,
        changes: &mut Vec<(usize, Datum<'a>)>,
    ) -> Result<(), SqlError> {
        let columns = &table.def.columns;
        let rules = rules_of(table)?;
        let convert = convert_context(ctx);
        let how = Computing { ctx, number, takes_nulls: self.takes_nulls };
        let is_plain = !self.sequential && inputs.is_empty();
        for Assignment { column: at, value: program } in &self.list {
            let column: &ColumnDef = &columns[*at];
            let value = match program {
                None => {
                    let assigned = Assigned { row, width: columns.len(), inputs, changes };
                    match computed_default(rules, *at, column, &assigned, how)? {
                        Some(value) => value,
                        None => {
                            check_zero_default(column, ctx, number)?;
                            default_of(column, ctx)?
                        }
                    }
                }
                Some(program) => {
                    let value = if is_plain {
                        program.eval(&row, params, ctx)?
                    } else {
                        program.eval(&Assigned { row, width: columns.len(), inputs, changes }, params, ctx)?
                    };
                    let (value, ty) = of_long_document(value, program.ty(), column, ctx)?;
                    match store_column(value, ty, column, &convert) {
                        Ok(stored) => {
                            if let Some(problem) = &stored.warning {
                                note_stored(ctx, problem, &column.name, number);
                            }
                            stored.value
                        }
                        Err(StoreError::Null) if self.takes_nulls && !convert.strict => {
                            null_of(column, ctx, number)?
                        }
                        // A column's own zero date may stay, whatever the mode says now.
                        Err(_) if program.as_column() == Some(*at) && row.get(*at).has_zero_date() => {
                            row.get(*at)
                        }
                        Err(problem) => {
                            return Err(column_error(&problem, &table.def.name, &column.name, number));
                        }
                    }
                }
            };
            note_updated(table, column, &value);
            if self.sequential {
                changes.retain(|(of, _)| of != at);
            }
            // In sequence, later values look here first: so unchanged ones are left out only at the end.
            if self.sequential || !value.is_same(&row.get(*at)) {
                changes.push((*at, value));
            }
        }
        if self.sequential {
            changes.retain(|(column, value)| !value.is_same(&row.get(*column)));
        }
        if !changes.is_empty() {
            for &column in &self.touched {
                let ty = &columns[column].ty;
                changes.push((column, now(ty, ctx.statement_time_micros, ctx.time_zone)));
            }
        }
        match rules.filter(|_| !changes.is_empty()) {
            None => Ok(()),
            Some(rules) => {
                regenerate(rules, columns, row, changes, how)?;
                check_changed(rules, row, columns.len(), changes, ctx)
            }
        }
    }
}

/// Adds the generated columns that get another value to the changes of a row.
fn regenerate<'a>(
    rules: &RowRules,
    columns: &[ColumnDef],
    row: RowRef<'a>,
    changes: &mut Vec<(usize, Datum<'a>)>,
    how: Computing<'_>,
) -> Result<(), SqlError> {
    let changed: Vec<usize> = changes.iter().map(|(column, _)| *column).collect();
    for (at, program) in rules.generated_from(&|column| changed.contains(&column)) {
        let assigned = Assigned { row, width: columns.len(), inputs: &[], changes };
        let value = computed_value(program, &columns[*at], &assigned, how)?;
        if !value.is_same(&row.get(*at)) {
            changes.push((*at, value));
        }
    }
    Ok(())
}

/// Error 3105: a generated column is given a value.
#[cold]
pub fn not_for_generated(def: &TableDef, column: usize) -> SqlError {
    ErrorCode::NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN.with(&[&def.columns[column].name, &def.name])
}

/// Error 3819 if a row may not become what the changes make of it.
fn check_changed(
    rules: &RowRules,
    row: RowRef<'_>,
    width: usize,
    changes: &[(usize, Datum<'_>)],
    ctx: &EvalContext,
) -> Result<(), SqlError> {
    let is_new = |column: usize| changes.iter().any(|(of, _)| *of == column);
    rules.check_changed(&Assigned { row, width, inputs: &[], changes }, &is_new, ctx)
}

/// What a column gets that the statement gives no value. Of an expression NULL: it is evaluated when other values are there, see
/// [`computed_default`].
pub fn default_of(column: &ColumnDef, ctx: &EvalContext) -> Result<Value, SqlError> {
    match &column.default {
        Some(DefaultValue::Const(value)) => Ok(value.clone()),
        Some(DefaultValue::Now) => Ok(now(&column.ty, ctx.statement_time_micros, ctx.time_zone)),
        Some(DefaultValue::Expr(_)) => Ok(Datum::Null),
        None if column.nullable => Ok(Datum::Null),
        None | Some(DefaultValue::Dropped) => missing_default(column, ctx, true),
    }
}

/// Whether a default may be given that is a zero date: an error in strict mode and a warning of the first row otherwise, if
/// NO_ZERO_DATE is in force.
#[inline]
pub fn check_zero_default(column: &ColumnDef, ctx: &EvalContext, number: u64) -> Result<(), SqlError> {
    match &column.default {
        Some(DefaultValue::Const(value)) if value.has_zero_date() => zero_default(value, column, ctx, number),
        _ => Ok(()),
    }
}

/// A value on its way into a column, and its type: a long text of a document becomes the document before, since that is counted.
pub(super) fn of_long_document<'v, 't>(
    value: Datum<'v>,
    ty: &'t SqlType,
    column: &ColumnDef,
    ctx: &EvalContext,
) -> Result<(Datum<'v>, &'t SqlType), SqlError> {
    if column.ty != SqlType::Json || !matches!(value, Datum::Str(_)) {
        return Ok((value, ty));
    }
    let value = ctx.document_of_long_text(value, &column.ty)?;
    let ty = if matches!(value, Datum::Bytes(_)) { &SqlType::Json } else { ty };
    Ok((value, ty))
}

#[cold]
fn zero_default(value: &Value, column: &ColumnDef, ctx: &EvalContext, number: u64) -> Result<(), SqlError> {
    // A constant of the column's type: local time and UTC have the same zero.
    let stored = store_column(value.clone(), &column.ty, column, &convert_context(ctx));
    let stored = stored.map_err(|problem| store_error(&problem, &column.name, number))?;
    if let Some(problem) = stored.warning.filter(|_| number == 1) {
        note_stored(ctx, &problem, &column.name, number);
    }
    Ok(())
}

/// A default that is an expression, over what is there of the row; `None` for others.
pub fn computed_default<'r, R: RowSource<'r>>(
    rules: Option<&'r RowRules>,
    at: usize,
    column: &ColumnDef,
    row: &R,
    how: Computing<'_>,
) -> Result<Option<Value>, SqlError> {
    match rules.and_then(|rules| rules.default_of(at)) {
        Some(program) => computed_value(program, column, row, how).map(Some),
        None => Ok(None),
    }
}

/// How a row's expressions are evaluated.
#[derive(Clone, Copy)]
pub struct Computing<'c> {
    pub ctx: &'c EvalContext,
    /// The row's number in the statement, from 1.
    pub number: u64,
    /// Out of strict mode, a NULL for a column that has none becomes the type's default, with a warning.
    pub takes_nulls: bool,
}

/// What an expression of the table's definition gives a column.
pub fn computed_value<'r, R: RowSource<'r>>(
    program: &'r RowProgram,
    column: &ColumnDef,
    row: &R,
    Computing { ctx, number, takes_nulls }: Computing<'_>,
) -> Result<Value, SqlError> {
    let value = evaluate(program, column, row, ctx, number)?;
    match store_column(value, program.ty(), column, &convert_context(ctx)) {
        Ok(stored) => {
            if let Some(problem) = &stored.warning {
                note_stored(ctx, problem, &column.name, number);
            }
            Ok(stored.value.into_owned())
        }
        Err(StoreError::Null) if takes_nulls && !ctx.is_strict() => null_of(column, ctx, number),
        Err(problem) => Err(error_of_column(
            store_error(&problem, &column.name, number),
            column.functional_index(),
            number,
        )),
    }
}

/// What a column gets that has no default: an error, or its type's default, of which `warns` tells.
pub fn missing_default(column: &ColumnDef, ctx: &EvalContext, warns: bool) -> Result<Value, SqlError> {
    if let Some(value) = unstated_default(column) {
        return Ok(value);
    }
    let missing = ErrorCode::NO_DEFAULT_FOR_FIELD.with(&[&column.name]);
    let value = no_default(column).filter(|_| !ctx.is_strict());
    let Some(value) = value else { return Err(missing) };
    if warns {
        ctx.push_warning(Warning { errno: missing.errno, message: missing.message, note: false });
    }
    Ok(value)
}

/// What a column that is NOT NULL gets for a NULL out of strict mode.
#[cold]
pub fn null_of(column: &ColumnDef, ctx: &EvalContext, number: u64) -> Result<Value, SqlError> {
    let problem = StoreError::null_in(&column.ty);
    let value = implicit_default(&column.ty).ok_or_else(|| store_error(&problem, &column.name, number))?;
    let message = problem.message(&column.name, number);
    ctx.push_warning(Warning { errno: 1048, message, note: false });
    Ok(value)
}
