//! UPDATE and DELETE of one table.

use std::sync::Arc;

use avocet_engine::{Catalog, LockHow, RowChange, RowLock, Shown, TableHandle, Txn};
use avocet_types::convert::store_column;
use avocet_types::expr::{EvalContext, Expr, ExprKind, RowProgram, RowSource};
use avocet_types::{ColumnDef, Datum, RowRef, SqlType, TableDef};

use super::choose::{Access, Wish, choose};
use super::keys::{Found, Keys};
use super::run::{count, locate, passes, visit};
use super::scope::{JoinedRow, Scope};
use super::select::conjunction;
use super::{
    Changes, FoundRows, Kind, LevelScratch, NotPoint, PointPlan, PointScratch, Refusal, Run, Table,
    convert_context, note_stored, note_updated, recycle_changes,
};
use crate::bind::{CatalogView, TableBinder};
use crate::error::{ErrorCode, SqlError};
use crate::parse::ast::{self, ExprKind as Syntax, OrderItem, TableRef};
use crate::parse::statement;
use crate::session::api::PlanColumns;
use crate::session::errors::store_error;
use crate::turns::{ROWS_IN_PLACE, blocking_if};

/// The rows that a statement changes.
#[derive(Debug)]
pub struct Target {
    table: Table,
    access: Access,
    residual: Option<RowProgram>,
    limit: Option<RowProgram>,
}

#[derive(Debug)]
pub struct Update {
    target: Target,
    assignments: Box<[Assignment]>,
    /// Columns that become the statement's time when a row changes.
    touched: Box<[usize]>,
    /// A value uses a column that was assigned before it.
    sequential: bool,
}

#[derive(Debug)]
struct Assignment {
    column: usize,
    value: RowProgram,
}

#[derive(Debug)]
pub struct Delete {
    target: Target,
}

/// A stored table by its name.
pub fn find_table(
    name: &ast::ObjectName,
    view: &dyn CatalogView,
    catalog: &Catalog,
) -> Result<(Arc<TableDef>, Arc<TableHandle>), Refusal> {
    let database = match &name.database {
        Some(database) => database.name.as_str(),
        None => view.current_database().ok_or_else(|| ErrorCode::NO_DB_ERROR.with(&[]))?,
    };
    let Some(def) = view.table(database, &name.name.name) else {
        return Err(match view.has_database(database) {
            true => ErrorCode::NO_SUCH_TABLE.with(&[&database, &name.name.name]),
            false => ErrorCode::BAD_DB_ERROR.with(&[&database]),
        }
        .into());
    };
    let handle = catalog.table_by_id(def.id).ok_or_else(|| NotPoint::because("not a stored table"))?;
    Ok((def, handle.clone()))
}

/// The only table of a statement.
fn single_table(tables: &[TableRef]) -> Result<(&ast::ObjectName, Option<&str>), NotPoint> {
    match tables {
        [TableRef::Table { name, alias, .. }] => Ok((name, alias.as_ref().map(|a| a.name.as_str()))),
        _ => Err(NotPoint::because("several tables are named")),
    }
}

/// `source` is the text that the statement was parsed from; `params` are the types of parameters as far as they are known.
pub fn compile_update(
    update: &statement::Update,
    source: &[u8],
    view: &dyn CatalogView,
    catalog: &Catalog,
    params: &[SqlType],
) -> Result<PointPlan, Refusal> {
    if update.with.is_some() || update.ignore {
        return Err(NotPoint::because("WITH or IGNORE").into());
    }
    let (name, alias) = single_table(&update.tables)?;
    let (def, handle) = find_table(name, view, catalog)?;
    let mut binder = TableBinder::new(source, view, params, &def, alias);
    let scope = Scope::single(handle.clone());
    let mut assignments: Vec<Assignment> = Vec::with_capacity(update.assignments.len());
    let mut sequential = false;
    for assignment in &update.assignments {
        let column = assigned_column(assignment, &def, alias)?;
        let value = assigned_value(&mut binder, &assignment.value, &def, column)?;
        sequential |= value.columns().iter().any(|c| assignments.iter().any(|a| a.column == *c));
        // Assigned again, a column keeps the last value.
        sequential |= assignments.iter().any(|a| a.column == column);
        assignments.push(Assignment { column, value: scope.compile(&value)? });
    }
    let target = Target::compile(
        &mut binder,
        &scope,
        update.filter.as_ref(),
        &update.order_by,
        update.limit.as_ref(),
    )?;
    let explicit = |column: usize| assignments.iter().any(|a| a.column == column);
    let touched = (0..def.columns.len()).filter(|&c| def.columns[c].on_update_now && !explicit(c)).collect();
    let params = binder.params().to_vec();
    let kind = Kind::Update(Update { target, assignments: assignments.into(), touched, sequential });
    let dates = scope.dates();
    Ok(PointPlan { kind, tables: vec![Table(handle)], params, columns: PlanColumns::default(), dates })
}

/// As [`compile_update`].
pub fn compile_delete(
    delete: &statement::Delete,
    source: &[u8],
    view: &dyn CatalogView,
    catalog: &Catalog,
    params: &[SqlType],
) -> Result<PointPlan, Refusal> {
    if delete.with.is_some() || delete.ignore || !delete.targets.is_empty() {
        return Err(NotPoint::because("WITH, IGNORE or several tables").into());
    }
    let (name, alias) = single_table(&delete.from)?;
    let (def, handle) = find_table(name, view, catalog)?;
    let mut binder = TableBinder::new(source, view, params, &def, alias);
    let scope = Scope::single(handle.clone());
    let target = Target::compile(
        &mut binder,
        &scope,
        delete.filter.as_ref(),
        &delete.order_by,
        delete.limit.as_ref(),
    )?;
    let params = binder.params().to_vec();
    let kind = Kind::Delete(Delete { target });
    let dates = scope.dates();
    Ok(PointPlan { kind, tables: vec![Table(handle)], params, columns: PlanColumns::default(), dates })
}

fn assigned_column(
    assignment: &statement::Assignment,
    def: &TableDef,
    alias: Option<&str>,
) -> Result<usize, SqlError> {
    let name = &assignment.column.name;
    let is_other = assignment.table.as_ref().is_some_and(|t| {
        let other_database = t.database.as_ref().is_some_and(|d| d.name != def.database);
        other_database || !t.name.name.eq_ignore_ascii_case(alias.unwrap_or(&def.name))
    });
    let column = def.column(name).filter(|_| !is_other);
    column.ok_or_else(|| match &assignment.table {
        Some(table) => {
            ErrorCode::BAD_FIELD_ERROR.with(&[&format_args!("{}.{name}", table.name.name), &"field list"])
        }
        None => ErrorCode::BAD_FIELD_ERROR.with(&[name, &"field list"]),
    })
}

fn assigned_value(
    binder: &mut TableBinder<'_>,
    value: &ast::Expr,
    def: &TableDef,
    column: usize,
) -> Result<Expr, Refusal> {
    let target = &def.columns[column];
    if let Syntax::Default(of) = &value.kind {
        return default_value(of.as_ref(), def, column);
    }
    let value = binder.expr(value, false)?;
    Ok(binder.settle_param(value, target.ty))
}

/// `DEFAULT` for a column, or `DEFAULT(other)`.
pub fn default_value(of: Option<&ast::Ident>, def: &TableDef, column: usize) -> Result<Expr, Refusal> {
    let of = match of {
        None => column,
        Some(name) => def
            .column(&name.name)
            .ok_or_else(|| ErrorCode::BAD_FIELD_ERROR.with(&[&name.name, &"field list"]))?,
    };
    let from = &def.columns[of];
    match &from.default {
        Some(avocet_types::DefaultValue::Const(value)) => Ok(Expr::literal(value.clone(), from.ty)),
        None if from.nullable => Ok(Expr::literal(Datum::Null, from.ty)),
        None => Err(ErrorCode::NO_DEFAULT_FOR_FIELD.with(&[&from.name]).into()),
        Some(avocet_types::DefaultValue::Now) => Err(NotPoint::because("DEFAULT of a time").into()),
    }
}

impl Update {
    pub fn describe(&self) -> String {
        self.target.access.describe(&self.target.table)
    }
}

impl Delete {
    pub fn describe(&self) -> String {
        self.target.access.describe(&self.target.table)
    }
}

impl Target {
    fn compile(
        binder: &mut TableBinder<'_>,
        scope: &Scope,
        filter: Option<&ast::Expr>,
        order_by: &[OrderItem],
        limit: Option<&ast::Limit>,
    ) -> Result<Self, Refusal> {
        let filter = filter.map(|f| binder.condition(f)).transpose()?;
        let conjuncts = filter.map_or_else(Vec::new, |filter| filter.fold().into_conjuncts());
        let mut order = Vec::with_capacity(order_by.len());
        for item in order_by {
            match binder.expr(&item.expr, true)?.kind {
                ExprKind::Column(column) => order.push((column, item.descending)),
                _ => return Err(NotPoint::because("ORDER BY of an expression").into()),
            }
        }
        let limit = match limit {
            Some(ast::Limit { offset: Some(_), .. }) => {
                return Err(ErrorCode::PARSE_ERROR.with(&[&"", &1]).into());
            }
            Some(ast::Limit { count, offset: None }) => {
                let count = binder.expr(count, true)?;
                Some(binder.settle_param(count, SqlType::BIGINT_UNSIGNED))
            }
            None => None,
        };
        let wish = Wish { order: &order, limit: limit.as_ref().map(|_| 1), must: true, ..Wish::default() };
        let choice = choose(scope, 0, 0, &conjuncts, &wish)?;
        let choice = choice.ok_or_else(|| NotPoint::because("no index leads to few rows"))?;
        // Without a LIMIT the order only matters to duplicates of keys on the way.
        if !order.is_empty() && !choice.gives_order {
            return Err(NotPoint::because("no index gives the order").into());
        }
        let open = (0..conjuncts.len()).filter(|at| !choice.served.contains(at));
        let residual = conjunction(open.map(|at| conjuncts[at].clone()).collect());
        Ok(Self {
            table: Table(scope.tables[0].stored().expect("the statement's table").clone()),
            access: choice.access,
            residual: residual.map(|test| scope.compile(&test)).transpose()?,
            limit: limit.map(|limit| scope.compile(&limit)).transpose()?,
        })
    }

    /// Where the rows are, and how many of them may be changed.
    fn locate(
        &self,
        params: &[Datum<'_>],
        ctx: &EvalContext,
        keys: &mut Keys,
    ) -> Result<(Found, u64), SqlError> {
        match count(self.limit.as_ref(), params, ctx)?.unwrap_or(u64::MAX) {
            0 => Ok((Found::Nothing, 0)),
            limit => {
                let found = locate(&self.table, &self.access, &JoinedRow::new(&[]), params, ctx, keys)?;
                Ok((found, limit))
            }
        }
    }

    /// Changes the one row that there may be where it stands. `change` is shown it if it passes.
    fn modify_one(
        &self,
        txn: &mut Txn,
        params: &[Datum<'_>],
        ctx: &EvalContext,
        scratch: &mut LevelScratch,
        change: &mut dyn FnMut(RowRef<'_>, &mut RowChange<'_>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let LevelScratch { keys, read, .. } = scratch;
        let index = self.access.index.expect("one row is found by a unique index");
        let index = &self.table.indexes()[index];
        let mut outcome = Ok(());
        txn.modify_unique(&self.table, index, keys.key(), read, &mut |row, to| {
            outcome = match passes(self.residual.as_ref(), &row, params, ctx) {
                Ok(true) => change(row, to),
                Ok(false) => {
                    to.leave();
                    Ok(())
                }
                Err(error) => Err(error.into()),
            };
        })?;
        outcome
    }

    /// Locks the rows and copies them. `looks_first`: a row that others hold is not waited for if it does not match.
    fn find(
        &self,
        (found, mut left): (Found, u64),
        looks_first: bool,
        txn: &mut Txn,
        Run { params, ctx, bounds }: Run<'_>,
        scratch: &mut LevelScratch,
    ) -> Result<(), SqlError> {
        let LevelScratch { keys, read, found: rows, .. } = scratch;
        rows.clear(bounds);
        let mut failure = None;
        // What cannot be told is told once the row is locked.
        let mut is_wanted =
            |row: RowRef<'_>| passes(self.residual.as_ref(), &row, params, ctx).unwrap_or(true);
        let first_look: Option<&mut dyn FnMut(RowRef<'_>) -> bool> =
            if looks_first && self.access.is_scan(&self.table) { Some(&mut is_wanted) } else { None };
        let most = if self.residual.is_some() { u64::MAX } else { left };
        visit(
            &self.table,
            &self.access,
            found,
            Some(&mut LockHow { lock: RowLock::FOR_UPDATE, first_look }),
            most,
            txn,
            keys,
            read,
            &mut |id, row| {
                let is_wanted =
                    bounds.row().and_then(|()| Ok(passes(self.residual.as_ref(), &row, params, ctx)?));
                match is_wanted {
                    Ok(false) => return Shown::Unwanted,
                    Ok(true) => {
                        rows.push(id, &row, bounds);
                        left -= 1;
                    }
                    Err(error) => {
                        failure = Some(error);
                        left = 0;
                    }
                }
                if left == 0 { Shown::Last } else { Shown::Wanted }
            },
        )?;
        failure.map_or(Ok(()), Err)
    }
}

/// A row in which some columns have new values already.
struct Assigned<'a, 'c> {
    row: RowRef<'a>,
    changes: &'c [(usize, Datum<'a>)],
}

impl<'a> RowSource<'a> for Assigned<'a, '_> {
    fn datum(&self, column: usize) -> Datum<'a> {
        let assigned = self.changes.iter().rev().find(|(of, _)| *of == column);
        assigned.map_or_else(|| self.row.get(column), |(_, value)| value.clone())
    }
}

impl Update {
    pub(super) fn run(
        &self,
        txn: &mut Txn,
        run @ Run { params, ctx, bounds }: Run<'_>,
        scratch: &mut PointScratch,
    ) -> Result<Changes, SqlError> {
        scratch.reserve(1);
        let PointScratch { levels, changes: memory, .. } = scratch;
        let level = &mut levels[0];
        let mut outcome = Changes::default();
        let found = self.target.locate(params, ctx, &mut level.keys)?;
        if found.0 == Found::One {
            self.target.modify_one(txn, params, ctx, level, &mut |row, to| {
                let mut changes = recycle_changes(std::mem::take(memory));
                outcome.matched = 1;
                self.assign(row, params, ctx, 1, &mut changes)?;
                if !changes.is_empty() {
                    self.touch(ctx, &mut changes);
                    changes.iter().for_each(|(column, value)| to.set(*column, value));
                    outcome.changed = 1;
                }
                *memory = recycle_changes(changes);
                Ok(())
            })?;
            return Ok(outcome);
        }
        self.target.find(found, true, txn, run, level)?;
        let rows: &FoundRows = &level.found;
        blocking_if(rows.len() > ROWS_IN_PLACE, || {
            for n in 0..rows.len() {
                bounds.row()?;
                let (id, row) = rows.get(n, &self.target.table.layout);
                let mut changes = recycle_changes(std::mem::take(memory));
                outcome.matched += 1;
                self.assign(row, params, ctx, outcome.matched, &mut changes)?;
                if !changes.is_empty() {
                    self.touch(ctx, &mut changes);
                    let moved = txn.update(&self.target.table, id, &changes)?;
                    outcome.changed += u64::from(moved.is_some());
                }
                *memory = recycle_changes(changes);
            }
            Ok(outcome)
        })
    }

    /// The columns that get another value.
    fn assign<'a>(
        &'a self,
        row: RowRef<'a>,
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
        number: u64,
        changes: &mut Vec<(usize, Datum<'a>)>,
    ) -> Result<(), SqlError> {
        let columns = &self.target.table.def.columns;
        let convert = convert_context(ctx);
        for assignment in &self.assignments {
            let value = match self.sequential {
                false => assignment.value.eval(&row, params, ctx)?,
                true => assignment.value.eval(&Assigned { row, changes }, params, ctx)?,
            };
            let column: &ColumnDef = &columns[assignment.column];
            let stored = store_column(value, assignment.value.ty(), column, &convert)
                .map_err(|problem| store_error(&problem, &column.name, number))?;
            if let Some(problem) = &stored.warning {
                note_stored(ctx, problem, &column.name, number);
            }
            note_updated(&self.target.table, column, &stored.value);
            if self.sequential {
                changes.retain(|(of, _)| *of != assignment.column);
            }
            // In sequence, later values look here first: so unchanged ones are left out only at the end.
            if self.sequential || !stored.value.is_same(&row.get(assignment.column)) {
                changes.push((assignment.column, stored.value));
            }
        }
        if self.sequential {
            changes.retain(|(column, value)| !value.is_same(&row.get(*column)));
        }
        Ok(())
    }

    fn touch(&self, ctx: &EvalContext, changes: &mut Vec<(usize, Datum<'_>)>) {
        for &column in &self.touched {
            let ty = &self.target.table.def.columns[column].ty;
            changes.push((column, super::now(ty, ctx.statement_time_micros, ctx.time_zone)));
        }
    }
}

impl Delete {
    pub(super) fn run(
        &self,
        txn: &mut Txn,
        run @ Run { params, ctx, bounds }: Run<'_>,
        scratch: &mut PointScratch,
    ) -> Result<Changes, SqlError> {
        scratch.reserve(1);
        let level = &mut scratch.levels[0];
        let mut outcome = Changes::default();
        let found = self.target.locate(params, ctx, &mut level.keys)?;
        if found.0 == Found::One {
            self.target.modify_one(txn, params, ctx, level, &mut |_, to| {
                to.delete();
                (outcome.matched, outcome.changed) = (1, 1);
                Ok(())
            })?;
            return Ok(outcome);
        }
        self.target.find(found, false, txn, run, level)?;
        let rows = &level.found;
        outcome.matched = rows.len() as u64;
        blocking_if(rows.len() > ROWS_IN_PLACE, || {
            for (id, _) in &rows.rows {
                bounds.row()?;
                outcome.changed += u64::from(txn.delete(&self.target.table, *id)?);
            }
            Ok(outcome)
        })
    }
}
