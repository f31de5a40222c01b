//! New rows of tables whose definitions have expressions: defaults that use other columns, generated columns, CHECK constraints.

use avocet_point::{is_of_row, not_for_generated, unstated_default};
use avocet_sql::parse::ast::{Expr, ExprKind};
use avocet_types::convert::{ConvertContext, StoreError};
use avocet_types::error::{ErrorCode, SqlError, error_of_column, store_error};
use avocet_types::expr::RowProgram;
use avocet_types::rules::evaluate;
use avocet_types::schema::{ColumnDef, DefaultValue};
use avocet_types::{Datum, RowRules, Value};

use super::{Given, Inserter};
use crate::state::{Level, Session};
use crate::store::Storing;

impl Session {
    /// As `complete_plain`, but values are stored in the order in which the statement names their columns: each sees what those
    /// before it have made of the row.
    pub(super) fn complete_by_rules(
        &mut self,
        inserter: &mut Inserter<'_>,
        given: Vec<Given>,
        number: u64,
        rules: &RowRules,
    ) -> Result<Option<Vec<Value>>, SqlError> {
        let table = inserter.table.clone();
        let columns = &table.def.columns;
        let mut row: Vec<Value> =
            columns.iter().map(|column| self.constant_of(column, &inserter.storing)).collect();
        inserter.generated = None;
        let mut is_given = vec![false; columns.len()];
        let targets: Vec<usize> = inserter.targets[..given.len().min(inserter.targets.len())].to_vec();
        // Neither a CHECK nor a generated column reads it: rows that are refused take no number.
        let mut for_number = inserter.auto.map(|_| Given::Default);
        for (at, value) in targets.into_iter().zip(given) {
            is_given[at] = true;
            if inserter.auto == Some(at) {
                for_number = Some(value);
                continue;
            }
            if columns[at].generated.is_some() {
                match value {
                    Given::Default => continue,
                    Given::Value(..) => return Err(not_for_generated(&table.def, at)),
                }
            }
            let computed = match value {
                Given::Default => {
                    self.computed_default(rules, at, &columns[at], &row, &inserter.storing, number)?
                }
                Given::Value(..) => None,
            };
            row[at] = match computed {
                Some(value) => value,
                None => self.value_for(inserter, at, &columns[at], value, number)?,
            };
        }
        let is_plain =
            |at: &usize| !is_given[*at] && !columns[*at].is_computed() && inserter.auto != Some(*at);
        let plain: Vec<usize> = (0..columns.len()).filter(is_plain).collect();
        for at in plain {
            row[at] = self.value_for(inserter, at, &columns[at], Given::Default, number)?;
        }
        self.compute_missing(rules, columns, &mut row, &is_given, &inserter.storing, number)?;
        match rules.check(&&row[..], &self.context) {
            Ok(()) => {}
            Err(error) if inserter.ignore && is_of_row(&error) => {
                self.warn(Level::Warning, error.errno, error.message);
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        if let (Some(at), Some(given)) = (inserter.auto, for_number) {
            row[at] = self.value_for(inserter, at, &columns[at], given, number)?;
        }
        Ok(self.meets_checks(inserter, &row)?.then_some(row))
    }

    /// Evaluates the defaults of columns that are not given, in the table's order, and then generated columns.
    pub(crate) fn compute_missing(
        &mut self,
        rules: &RowRules,
        columns: &[ColumnDef],
        row: &mut [Value],
        is_given: &[bool],
        storing: &Storing,
        number: u64,
    ) -> Result<(), SqlError> {
        for at in (0..columns.len()).filter(|at| !is_given[*at]) {
            let Some(program) = rules.default_of(at) else { continue };
            for (from, generated) in rules.generated_for(program) {
                row[*from] = self.computed_value(generated, &columns[*from], row, storing, number)?;
            }
            row[at] = self.computed_value(program, &columns[at], row, storing, number)?;
        }
        for (at, program) in rules.generated() {
            row[*at] = self.computed_value(program, &columns[*at], row, storing, number)?;
        }
        Ok(())
    }

    pub(crate) fn computed_value(
        &mut self,
        program: &RowProgram,
        column: &ColumnDef,
        row: &[Value],
        storing: &Storing,
        number: u64,
    ) -> Result<Value, SqlError> {
        if storing.fits_virtual && column.is_virtual() {
            return self.fitting_value(program, column, row, storing, number);
        }
        let value = evaluate(program, column, &row, &self.context, number)?.into_owned();
        if value.is_null() && !column.nullable && storing.refuses_null {
            return Err(store_error(&StoreError::null_in(&column.ty), &column.name, number));
        }
        let stored = self.store(value, program.ty(), column, storing, number);
        stored.map_err(|error| error_of_column(error, column.functional_index(), number))
    }

    /// What fits of a value, of which nothing is said. An index on an expression needs all of it.
    fn fitting_value(
        &mut self,
        program: &RowProgram,
        column: &ColumnDef,
        row: &[Value],
        storing: &Storing,
        number: u64,
    ) -> Result<Value, SqlError> {
        let strict = storing.convert.strict && column.is_hidden();
        let convert = ConvertContext { strict, ..storing.convert };
        let lenient = Storing { convert, fits_virtual: false, ..*storing };
        let warnings = self.conditions.len();
        self.set_storing(false);
        let value = self.computed_value(program, column, row, &lenient, number);
        self.set_storing(true);
        self.conditions.truncate(warnings);
        value
    }

    /// A default that is an expression, over what is there of the row; `None` for others.
    pub(crate) fn computed_default(
        &mut self,
        rules: &RowRules,
        at: usize,
        column: &ColumnDef,
        row: &[Value],
        storing: &Storing,
        number: u64,
    ) -> Result<Option<Value>, SqlError> {
        let Some(program) = rules.default_of(at) else { return Ok(None) };
        self.computed_value(program, column, row, storing, number).map(Some)
    }

    /// What expressions see of a column that has no value yet.
    fn constant_of(&self, column: &ColumnDef, storing: &Storing) -> Value {
        match &column.default {
            Some(DefaultValue::Const(value)) => value.clone(),
            Some(DefaultValue::Now) => avocet_point::now(&column.ty, storing.now, storing.convert.zone),
            Some(DefaultValue::Expr(_)) => Datum::Null,
            None | Some(DefaultValue::Dropped)
                if column.nullable || column.auto_increment || column.generated.is_some() =>
            {
                Datum::Null
            }
            None | Some(DefaultValue::Dropped) => unstated_default(column)
                .or_else(|| avocet_point::implicit_default(&column.ty))
                .unwrap_or(Datum::Null),
        }
    }
}

/// What VALUES may not give, found before any row is stored: values for generated columns (3105), and DEFAULT of an expression
/// as a function (3773).
pub(super) fn check_given(inserter: &Inserter<'_>, rows: &[Vec<Expr>]) -> Result<(), SqlError> {
    let def = &inserter.table.def;
    if !def.columns.iter().any(ColumnDef::is_computed) {
        return Ok(());
    }
    for row in rows {
        for (&at, expr) in inserter.targets.iter().zip(row) {
            match &expr.kind {
                ExprKind::Default => {}
                _ if def.columns[at].generated.is_some() => return Err(not_for_generated(def, at)),
                ExprKind::DefaultOf { column: name, .. } => {
                    let default = def.column(&name.name).and_then(|of| def.columns[of].default.as_ref());
                    if let Some(DefaultValue::Expr(_)) = default {
                        return Err(ErrorCode::DEFAULT_AS_VAL_GENERATED.with(&[]));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}
