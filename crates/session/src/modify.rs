//! UPDATE and DELETE of one table; those of several tables or with subqueries are in `joined.rs`.
//!
//! First every row that matches in its newest version is locked, then the rows are changed: so a statement never meets
//! a row that it has changed itself.

mod joined;

use std::sync::Arc;

use avocet_base::RowId;
use avocet_channel::blocking::blocking;
use avocet_engine::{EngineError, RowBuf, RowLock, TableHandle};
use avocet_point::{Assignments, Refusal, can_ignore, warn_of};
use avocet_sql::bind::{Clause, ModifySpec, TableBinder, bind_modification};
use avocet_sql::parse::ast::{self, ExprKind};
use avocet_sql::parse::statement::{Assignment, Delete, StatementKind, Update};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::RowProgram;
use avocet_types::{Datum, SqlType, Value};

use super::access::{Condition, Locking, compile, lock_matching, order};
use super::rows::{RowQuery, limit_value};
use super::run::{Done, Outcome, Text};
use super::state::{Level, Session};
use super::status::Counter;

/// Up to so many rows a scan that evaluates the condition row by row is as good as a query.
const FEW_ROWS: u64 = 5_000;

/// WHERE, ORDER BY and LIMIT, bound over the table's columns.
struct Selection {
    filter: Option<avocet_types::expr::Expr>,
    sort: Vec<(RowProgram, bool)>,
    limit: Option<u64>,
}

impl Session {
    pub(super) async fn update(&mut self, update: &Update, text: &Text<'_>) -> Result<Outcome, SqlError> {
        self.shared.counters.add(Counter::Update);
        self.set_storing(!update.ignore);
        let mark = self.begin_statement()?;
        let result = match self.plain_table(update.into(), text) {
            Ok(Some((name, alias))) => blocking(|| self.update_in_transaction(update, name, alias, text)),
            Ok(None) => self.update_joined(update, text).await,
            Err(error) => Err(error),
        };
        self.end_statement(mark, result).await.map(Outcome::Done)
    }

    pub(super) async fn delete(&mut self, delete: &Delete, text: &Text<'_>) -> Result<Outcome, SqlError> {
        self.shared.counters.add(Counter::Delete);
        let mark = self.begin_statement()?;
        let result = match self.plain_table(delete.into(), text) {
            Ok(Some((name, alias))) => blocking(|| self.delete_in_transaction(delete, name, alias, text)),
            Ok(None) => self.delete_joined(delete, text).await,
            Err(error) => Err(error),
        };
        self.end_statement(mark, result).await.map(Outcome::Done)
    }

    /// The only table of a statement whose rows are found by an index or a scan of few rows; `None` for all others, whose
    /// rows a query finds.
    fn plain_table<'t>(
        &self,
        spec: ModifySpec<'t>,
        text: &Text<'_>,
    ) -> Result<Option<(&'t ast::ObjectName, Option<&'t str>)>, SqlError> {
        let Some((name, alias)) = spec.only_table() else { return Ok(None) };
        let view = self.view();
        let bound = bind_modification(spec, text.source, &view, &text.types)?;
        if !bound.is_plain {
            return Ok(None);
        }
        let def = &bound.targets[0];
        let Some(table) = view.catalog.table(&def.database, &def.name) else {
            return Ok(Some((name, alias)));
        };
        let indexed = match RowQuery::compile(&bound.query)? {
            Some(rows) => rows.index_name(table, &self.run_of(text))?.is_some(),
            None => false,
        };
        Ok((indexed || table.stats().rows <= FEW_ROWS).then_some((name, alias)))
    }

    fn update_in_transaction(
        &mut self,
        update: &Update,
        name: &ast::ObjectName,
        alias: Option<&str>,
        text: &Text<'_>,
    ) -> Result<Done, SqlError> {
        let table = self.target_table(name)?;
        let selection = self.selection(&table, alias, update.into(), text)?;
        let assignments = self.assignments(&table, alias, &update.assignments, text)?;
        let ids = self.lock_selected(&table, &selection, true, text)?;
        let (mut matched, mut changed) = (0, 0);
        let mut buf = RowBuf::default();
        self.with_run(text.params, |txn, run, _| {
            for id in ids {
                run.bounds.row()?;
                if !txn.lock_row(&table, id, RowLock::FOR_UPDATE, &mut buf)? {
                    continue;
                }
                matched += 1;
                let mut changes = Vec::new();
                assignments.evaluate(&table, buf.row(&table.layout), &[], run, matched, &mut changes)?;
                if changes.is_empty() {
                    continue;
                }
                match txn.update(&table, id, &changes) {
                    Ok(_) => changed += 1,
                    Err(error) if update.ignore && can_ignore(&error) => warn_of(run.ctx, error),
                    Err(error) => return Err(error.into()),
                }
            }
            Ok::<_, SqlError>(())
        })?;
        let warnings = self.condition_count() + self.context.warning_count();
        Ok(Done {
            affected_rows: if self.info.found_rows { matched } else { changed },
            info: format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}"),
            ..Done::default()
        })
    }

    fn delete_in_transaction(
        &mut self,
        delete: &Delete,
        name: &ast::ObjectName,
        alias: Option<&str>,
        text: &Text<'_>,
    ) -> Result<Done, SqlError> {
        let table = self.target_table(name)?;
        let selection = self.selection(&table, alias, delete.into(), text)?;
        let ids = self.lock_selected(&table, &selection, false, text)?;
        let mut affected_rows = 0;
        self.with_run(text.params, |txn, run, _| {
            for id in ids {
                run.bounds.row()?;
                match txn.delete(&table, id) {
                    Ok(is_gone) => affected_rows += u64::from(is_gone),
                    Err(error) if delete.ignore && can_ignore(&error) => warn_of(run.ctx, error),
                    Err(error) => return Err(error.into()),
                }
            }
            Ok::<_, SqlError>(())
        })?;
        Ok(Done { affected_rows, ..Done::default() })
    }

    /// IGNORE makes a warning of an error that concerns one row.
    pub(super) fn ignore_row(&mut self, error: EngineError) {
        let error = SqlError::from(error);
        self.warn(Level::Warning, error.errno, error.message);
    }

    /// Under `sql_safe_updates`, fails unless keys lead to the rows that an UPDATE or DELETE changes, or a LIMIT bounds them.
    pub(super) fn check_safe_change(
        &self,
        kind: &StatementKind,
        has_limit: bool,
        text: &Text<'_>,
    ) -> Result<(), SqlError> {
        if !self.settings.safe_updates || has_limit {
            return Ok(());
        }
        let source = std::str::from_utf8(text.source).unwrap_or_default();
        match self.compile_point(kind, source, &text.types, &[]) {
            Ok(plan) if plan.changes_by_keys() => Ok(()),
            Ok(_) | Err(Refusal::NotPoint(_)) => Err(ErrorCode::UPDATE_WITHOUT_KEY_IN_SAFE_MODE.with(&[])),
            Err(Refusal::Error(error)) => Err(error),
        }
    }

    fn selection(
        &self,
        table: &Arc<TableHandle>,
        alias: Option<&str>,
        ModifySpec { filter, order_by, limit, .. }: ModifySpec<'_>,
        text: &Text<'_>,
    ) -> Result<Selection, SqlError> {
        let view = self.view();
        let mut binder = TableBinder::new(text.source, &view, &text.types, &table.def, alias);
        let filter = filter.map(|filter| binder.condition(filter)).transpose()?;
        let mut sort = Vec::with_capacity(order_by.len());
        for item in order_by {
            sort.push((compile(&binder.expr(&item.expr, Clause::Order)?, &table.def)?, item.descending));
        }
        let limit = match limit {
            None => None,
            Some(limit) => {
                let count = binder.expr(&limit.count, Clause::Order)?;
                Some(limit_value(&count, text.params, &self.context)?)
            }
        };
        Ok(Selection { filter, sort, limit })
    }

    /// The rows that a statement changes, locked, in the order in which it changes them.
    fn lock_selected(
        &mut self,
        table: &Arc<TableHandle>,
        selection: &Selection,
        looks_first: bool,
        text: &Text<'_>,
    ) -> Result<Vec<RowId>, SqlError> {
        let context = self.context.clone();
        let condition = Condition::new(selection.filter.clone(), &table.def, text.params, &context)?;
        let most = if selection.sort.is_empty() { selection.limit.unwrap_or(u64::MAX) } else { u64::MAX };
        let how = Locking { lock: RowLock::FOR_UPDATE, most, looks_first };
        let ids = lock_matching(self.txn(), table, &condition, how)?;
        if selection.sort.is_empty() {
            return Ok(ids);
        }
        let types: Vec<(SqlType, bool)> =
            selection.sort.iter().map(|(key, down)| (*key.ty(), *down)).collect();
        let mut keyed: Vec<(Vec<Value>, RowId)> = Vec::with_capacity(ids.len());
        let mut buf = RowBuf::default();
        for id in ids {
            if self.txn().lock_row(table, id, RowLock::FOR_UPDATE, &mut buf)? {
                let row = buf.row(&table.layout);
                let key = |(program, _): &(RowProgram, bool)| {
                    program.eval(&row, text.params, &context).map(Datum::into_owned)
                };
                keyed.push((selection.sort.iter().map(key).collect::<Result<_, _>>()?, id));
            }
        }
        keyed.sort_by(|(a, _), (b, _)| order(a, b, &types));
        let count = selection.limit.map_or(keyed.len(), |limit| keyed.len().min(limit as usize));
        Ok(keyed.into_iter().take(count).map(|(_, id)| id).collect())
    }

    fn assignments(
        &self,
        table: &Arc<TableHandle>,
        alias: Option<&str>,
        assignments: &[Assignment],
        text: &Text<'_>,
    ) -> Result<Assignments, SqlError> {
        let view = self.view();
        let mut binder = TableBinder::new(text.source, &view, &text.types, &table.def, alias);
        let called = alias.unwrap_or(&table.def.name);
        let bind = |assignment: &Assignment| {
            let unknown = || ErrorCode::BAD_FIELD_ERROR.with(&[&assignment.column.name, &"field list"]);
            if assignment.table.as_ref().is_some_and(|t| !t.name.name.eq_ignore_ascii_case(called)) {
                return Err(unknown());
            }
            let column = table.def.column(&assignment.column.name).ok_or_else(unknown)?;
            if matches!(assignment.value.kind, ExprKind::Default(None)) {
                return Ok((column, None));
            }
            let bound = binder.expr(&assignment.value, Clause::Select)?;
            Ok((column, Some(binder.settle_param(bound, table.def.columns[column].ty))))
        };
        let list = assignments.iter().map(bind).collect::<Result<Vec<_>, SqlError>>()?;
        let assignments =
            Assignments::compile(&list, &table.def, true, &|value| Ok(compile(value, &table.def)?));
        assignments.map_err(Refusal::into_error)
    }
}
