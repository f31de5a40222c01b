//! From kept texts to programs over a table's rows.

use std::sync::Arc;

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{Expr, RowProgram, SqlMode, Typer};
use avocet_types::{Collation, DefaultValue, RowRules, SqlType, TableDef};

use crate::bind::{CatalogView, Clause, TableBinder, TableStatistics};
use crate::parse::ast::VariableScope;

/// Kept expressions see nothing but their row: no other table, and none of the session's settings.
pub(super) struct Nothing;

impl CatalogView for Nothing {
    fn current_database(&self) -> Option<&str> {
        None
    }

    fn has_database(&self, _name: &str) -> bool {
        false
    }

    fn table(&self, _database: &str, _name: &str) -> Option<Arc<TableDef>> {
        None
    }

    fn statistics(&self, _table: &TableDef) -> Option<Arc<TableStatistics>> {
        None
    }

    /// Whatever the mode let in that the definition was made in stays in it.
    fn typer(&self) -> Typer {
        let mut typer = Typer::default();
        typer.sql_mode = typer.sql_mode.without(SqlMode::NO_ZERO_DATE).without(SqlMode::NO_ZERO_IN_DATE);
        typer
    }

    fn system_variable(&self, _scope: VariableScope, name: &str) -> Result<Expr, SqlError> {
        Err(ErrorCode::UNKNOWN_SYSTEM_VARIABLE.with(&[&name]))
    }

    fn user_variable(&self, _name: &str) -> Expr {
        Expr::null()
    }

    fn collation(&self, name: &str) -> Option<Collation> {
        Collation::by_name(name)
    }
}

/// A kept text over the columns of its table, by their positions.
pub(crate) fn bind_expr(text: &str, table: &Arc<TableDef>, is_condition: bool) -> Result<Expr, SqlError> {
    let expr = super::parse(text)?;
    let mut binder = TableBinder::new(text.as_bytes(), &Nothing, &[], table, None);
    binder.forget_rowid();
    match is_condition {
        true => binder.condition(&expr),
        false => binder.expr(&expr, Clause::Select),
    }
}

/// The type of a kept text's values over the columns of its table, and whether they may be NULL.
///
/// # Errors
/// What is wrong with the expression: its functions' arguments, its collations.
pub fn type_of(text: &str, table: &TableDef) -> Result<(SqlType, bool), SqlError> {
    let bound = bind_expr(text, &Arc::new(table.clone()), false)?;
    Ok((bound.ty, bound.nullable))
}

/// A kept text over the columns of its table.
fn bind(text: &str, table: &Arc<TableDef>, is_condition: bool) -> Result<RowProgram, SqlError> {
    let bound = bind_expr(text, table, is_condition)?;
    let name = |column: usize| format!("`{}`", table.columns[column].name);
    Ok(RowProgram::compile_named(&bound.fold(), &name)?)
}

/// All that a table's definition says of its rows.
///
/// # Errors
/// What is wrong with an expression: its functions' arguments, its collations.
pub fn compile(table: &TableDef) -> Result<RowRules, SqlError> {
    let table = Arc::new(table.clone());
    let mut defaults = Vec::with_capacity(table.columns.len());
    for column in &table.columns {
        defaults.push(match &column.default {
            Some(DefaultValue::Expr(text)) => Some(bind(text, &table, false)?),
            _ => None,
        });
    }
    let mut generated = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        if let Some(from) = &column.generated {
            generated.push((at, bind(&from.expr, &table, false)?));
        }
    }
    let mut checks = Vec::with_capacity(table.checks.len());
    for check in table.checks.iter().filter(|check| check.enforced) {
        checks.push((check.name.clone(), bind(&check.condition, &table, true)?));
    }
    let rules = RowRules::new(defaults, generated, checks);
    Ok(match super::partitions::taken(&table)? {
        Some((taken, value)) => rules.bounded(taken, value),
        None => rules,
    })
}
