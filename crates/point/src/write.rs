//! UPDATE and DELETE of one table.

use std::cmp::Ordering;
use std::sync::Arc;

use avocet_channel::PlanColumns;
use avocet_channel::blocking::{ROWS_IN_PLACE, blocking_if};
use avocet_engine::{Catalog, LockHow, RowChange, RowLock, RowVerdict, TableHandle, Txn};
use avocet_sql::bind::{CatalogView, Clause, ModifySpec, TableBinder, unsupported};
use avocet_sql::parse::ast::{self, ExprKind as Syntax, OrderItem};
use avocet_sql::parse::statement;
use avocet_sql::ranges::{conjunction, without_not};
use avocet_types::compare::sort_order;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::program::NoRow;
use avocet_types::expr::{EvalContext, Expr, ExprKind, RowProgram};
use avocet_types::{Collation, Datum, RowRef, SqlType, TableDef, Value};

use super::assign::Assignments;
use super::choose::{Access, Choice, Wish, choose};
use super::ignore::{can_ignore, is_of_row, warn_of, warn_of_row};
use super::keys::{Found, Keys};
use super::modify::compile_modify;
use super::run::{count, passes};
use super::scope::{JoinedRow, Scope};
use super::select::{LastCount, describe_ways};
use super::visit::{PATIENCE, few_of_an_order, has_at_most, likely_along, locate, visit};
use super::{
    Changes, FoundRow, FoundRows, Kind, LevelScratch, NotPoint, PointPlan, PointScratch, Refusal, Run, Table,
    recycle_changes,
};

/// The rows that a statement changes.
#[derive(Debug)]
pub struct Target {
    pub(super) table: Table,
    /// What has to hold before any row is looked for, and locked.
    gate: Option<RowProgram>,
    pub(super) way: Way,
    /// If that leads to many rows, the first ones in the wanted order are looked for along it.
    along: Option<Box<Way>>,
    limit: Option<RowProgram>,
    /// Conditions or sort keys use user variables that the statement assigns to.
    assigns: bool,
    /// How many rows were visited along the order.
    visited: LastCount,
}

/// How the rows are found.
#[derive(Debug)]
pub struct Way {
    pub(super) access: Access,
    pub(super) residual: Option<RowProgram>,
    /// Where no index gives the order: all rows are locked, as by InnoDB, and sorted then.
    sort: Box<[(RowProgram, bool)]>,
    /// The rows come in the order of so many of these: those behind as many as are wanted are not locked.
    presorted: usize,
}

#[derive(Debug)]
pub struct Update {
    pub(super) target: Target,
    assignments: Assignments,
    /// Errors of single rows are warnings.
    pub ignore: bool,
}

#[derive(Debug)]
pub struct Delete {
    pub(super) target: Target,
    pub ignore: bool,
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

/// The only table of a statement that has no subqueries, with its alias; no view.
fn plain_table<'s>(
    spec: ModifySpec<'s>,
    view: &dyn CatalogView,
) -> Option<(&'s ast::ObjectName, Option<&'s str>)> {
    let is_view = |name: &ast::ObjectName| {
        let database = name.database.as_ref().map(|name| name.name.as_str()).or(view.current_database());
        database.is_some_and(|database| view.view(database, &name.name.name).is_some())
    };
    spec.only_table().filter(|(name, _)| !spec.has_subquery() && !is_view(name))
}

/// `source` is the text that the statement was parsed from; `params` are the types of parameters as far as they are known.
pub fn compile_update(
    update: &statement::Update,
    source: &[u8],
    view: &dyn CatalogView,
    catalog: &Catalog,
    params: &[SqlType],
) -> Result<PointPlan, Refusal> {
    let spec = ModifySpec::from(update);
    let Some((name, alias)) = plain_table(spec, view) else {
        return compile_modify(spec, update.ignore, source, view, catalog, params);
    };
    let (def, handle) = find_table(name, view, catalog)?;
    let mut binder = TableBinder::new(source, view, params, &def, alias);
    let scope = Scope::single(handle.clone());
    let mut assigned = Vec::with_capacity(update.assignments.len());
    for assignment in &update.assignments {
        let column = assigned_column(assignment, &def, alias)?;
        assigned.push((column, assigned_value(&mut binder, &assignment.value, &def, column)?));
    }
    let assignments = Assignments::compile(&assigned, &def, true, &|value| scope.compile(value))?;
    let target = Target::compile(
        &mut binder,
        &scope,
        update.filter.as_ref(),
        &update.order_by,
        update.limit.as_ref(),
    )?;
    let is_assigning = |(_, value): &(usize, Option<Expr>)| value.as_ref().is_some_and(Expr::uses_assigned);
    if target.assigns && assigned.iter().any(is_assigning) {
        return Err(both_assign().into());
    }
    let params = binder.params().to_vec();
    let kind = Kind::Update(Update { target, assignments, ignore: update.ignore });
    let dates = scope.dates();
    let (tables, columns) = (vec![Table(handle)], PlanColumns::default());
    Ok(PointPlan { kind, tables, params, columns, dates, is_of_session: binder.is_of_session() })
}

/// As [`compile_update`].
pub fn compile_delete(
    delete: &statement::Delete,
    source: &[u8],
    view: &dyn CatalogView,
    catalog: &Catalog,
    params: &[SqlType],
) -> Result<PointPlan, Refusal> {
    let spec = ModifySpec::from(delete);
    let Some((name, alias)) = plain_table(spec, view) else {
        return compile_modify(spec, delete.ignore, source, view, catalog, params);
    };
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
    let kind = Kind::Delete(Delete { target, ignore: delete.ignore });
    let dates = scope.dates();
    let (tables, columns) = (vec![Table(handle)], PlanColumns::default());
    Ok(PointPlan { kind, tables, params, columns, dates, is_of_session: binder.is_of_session() })
}

/// All rows are found before the first one is changed.
pub fn both_assign() -> SqlError {
    unsupported(
        "assignment to user variables in SET that the conditions of an UPDATE read, or the other way round",
    )
}

fn assigned_column(
    assignment: &statement::Assignment,
    def: &TableDef,
    alias: Option<&str>,
) -> Result<usize, SqlError> {
    let name = &assignment.column.name;
    let is_other = assignment.table.as_ref().is_some_and(|t| {
        let other_database = t.database.as_ref().is_some_and(|d| d.name != def.database);
        other_database || t.name.name != alias.unwrap_or(&def.name)
    });
    let column = def.column_or_rowid(name).filter(|_| !is_other);
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
) -> Result<Option<Expr>, Refusal> {
    let target = &def.columns[column];
    match &value.kind {
        Syntax::Default => Ok(None),
        _ => {
            let value = binder.expr(value, Clause::Select)?;
            Ok(Some(binder.assigned(value, target.ty)))
        }
    }
}

impl Update {
    pub fn describe(&self) -> String {
        self.target.describe()
    }

    pub fn has_keys(&self, params: &[Datum<'_>], ctx: &EvalContext) -> bool {
        self.target.way.access.has_keys(params, ctx)
    }
}

impl Delete {
    pub fn describe(&self) -> String {
        self.target.describe()
    }

    pub fn has_keys(&self, params: &[Datum<'_>], ctx: &EvalContext) -> bool {
        self.target.way.access.has_keys(params, ctx)
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
        let filter = filter.map(|f| binder.search_condition(f)).transpose()?;
        let conjuncts = filter.map_or_else(Vec::new, |filter| without_not(filter.fold()).into_conjuncts());
        let is_of_rows =
            |test: &Expr| test.is_volatile() || test.uses_assigned() || !test.columns().is_empty();
        let (conjuncts, gate): (Vec<_>, Vec<_>) = conjuncts.into_iter().partition(is_of_rows);
        let gate = conjunction(gate).map(|gate| scope.compile(&gate)).transpose()?;
        let mut keys = Vec::with_capacity(order_by.len());
        for item in order_by {
            keys.push((binder.sort_key(&item.expr)?, item.descending));
        }
        let column_of = |(key, descending): &(Expr, bool)| match key.kind {
            ExprKind::Column(column) => Some((column, *descending)),
            _ => None,
        };
        let order: Vec<_> = keys.iter().map(column_of).collect::<Option<_>>().unwrap_or_default();
        let limit = match limit {
            Some(ast::Limit { offset: Some(_), .. }) => {
                return Err(ErrorCode::PARSE_ERROR.with(&[&"", &1]).into());
            }
            Some(ast::Limit { count, offset: None }) => {
                let count = binder.expr(count, Clause::Order)?;
                Some(binder.settle_param(count, SqlType::BIGINT_UNSIGNED))
            }
            None => None,
        };
        let assigns = conjuncts.iter().chain(keys.iter().map(|(key, _)| key)).any(Expr::uses_assigned);
        let limited = limit.as_ref().map(|_| 1);
        let (must, switches, order) = (true, !assigns, &*order);
        let wish = Wish { order, limit: limited, must, switches, in_key_order: assigns, ..Wish::default() };
        let choice = choose(scope, 0, 0, &conjuncts, &wish)?;
        let mut choice = choice.ok_or_else(|| NotPoint::because("no index leads to few rows"))?;
        let along = choice.along.take();
        let way = |choice: Choice| {
            // Without a LIMIT the order only matters to duplicates of keys on the way.
            let is_sorted = !order.is_empty() && choice.gives_order;
            let keys = keys.iter().filter(|_| !is_sorted);
            let sort = keys.map(|(key, descending)| Ok::<_, Refusal>((scope.compile(key)?, *descending)));
            let open = (0..conjuncts.len()).filter(|at| !choice.served.contains(at));
            let residual = conjunction(open.map(|at| conjuncts[at].clone()).collect());
            Ok::<_, Refusal>(Way {
                sort: sort.collect::<Result<_, _>>()?,
                residual: residual.map(|test| scope.compile(&test)).transpose()?,
                presorted: if is_sorted || order.is_empty() { 0 } else { choice.order_prefix },
                access: choice.access,
            })
        };
        Ok(Self {
            table: Table(scope.tables[0].stored().expect("the statement's table").clone()),
            gate,
            way: way(choice)?,
            along: along.map(|along| way(*along).map(Box::new)).transpose()?,
            limit: limit.map(|limit| scope.compile(&limit)).transpose()?,
            assigns,
            visited: LastCount::default(),
        })
    }

    fn describe(&self) -> String {
        describe_ways(&self.table, &self.way.access, self.along.as_ref().map(|along| &along.access))
    }

    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
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
            _ if !passes(self.gate.as_ref(), &NoRow, params, ctx)? => Ok((Found::Nothing, 0)),
            limit => {
                let found = locate(&self.table, &self.way.access, &JoinedRow::new(&[]), params, ctx, keys)?;
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
        let index = self.way.access.index.expect("one row is found by a unique index");
        let index = &self.table.indexes()[index];
        let mut outcome = Ok(());
        txn.modify_unique(&self.table, index, keys.key(), read, &mut |row, to| {
            outcome = match passes(self.way.residual.as_ref(), &row, params, ctx) {
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

    /// Locks the rows. An UPDATE has them copied, and does not wait for a row that others hold if it does not match.
    fn find(
        &self,
        (found, limit): (Found, u64),
        is_update: bool,
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut LevelScratch,
    ) -> Result<(), SqlError> {
        let Run { params, ctx, .. } = run;
        if let Some(along) = &self.along {
            let LevelScratch { keys, read, .. } = scratch;
            if let Some(few) = few_of_an_order(limit, &self.table, true)
                && !has_at_most(few, &self.table, &self.way.access, found, keys, read)
            {
                let (told, mark) = (ctx.warning_count(), txn.mark());
                let row = JoinedRow::new(&[]);
                let found = locate(&self.table, &along.access, &row, params, ctx, keys)?;
                let most = few.saturating_mul(PATIENCE);
                if self.find_by(along, found, limit, most, is_update, txn, run, scratch)? {
                    return Ok(());
                }
                // Its locks are in another order than those of the way that is gone now.
                txn.rollback_statement(mark);
                ctx.truncate_warnings(told);
                let found = locate(&self.table, &self.way.access, &row, params, ctx, &mut scratch.keys)?;
                return self
                    .find_by(&self.way, found, limit, u64::MAX, is_update, txn, run, scratch)
                    .map(drop);
            }
        }
        self.find_by(&self.way, found, limit, u64::MAX, is_update, txn, run, scratch).map(drop)
    }

    /// Locks the rows that are found in one way; false if the `most` that it may visit were not enough.
    #[expect(clippy::too_many_arguments, reason = "where the rows are, how many, and what sees them")]
    fn find_by(
        &self,
        way: &Way,
        found: Found,
        limit: u64,
        most: u64,
        is_update: bool,
        txn: &mut Txn,
        Run { params, ctx, bounds, .. }: Run<'_>,
        scratch: &mut LevelScratch,
    ) -> Result<bool, SqlError> {
        let LevelScratch { keys, read, found: rows, .. } = scratch;
        rows.clear(bounds);
        let mut left = if way.sort.is_empty() { limit } else { u64::MAX };
        let mut failure = None;
        // What the last of the wanted rows has in the terms by which rows come in order.
        let mut last: Option<Vec<Value>> = None;
        let presorted = &way.sort[..way.presorted];
        let terms_of = |row: &RowRef<'_>| {
            let terms = presorted.iter().map(|(key, _)| key.eval(row, params, ctx).map(Datum::into_owned));
            terms.collect::<Result<Vec<Value>, _>>()
        };
        let differs = |last: &[Value], terms: &[Value]| {
            let orders = presorted.iter().zip(last.iter().zip(terms));
            orders.into_iter().any(|((key, _), (a, b))| {
                sort_order(a, b, key.ty().order().unwrap_or(Collation::BINARY)).is_ne()
            })
        };
        // What cannot be told is told once the row is locked.
        let mut is_wanted =
            |row: RowRef<'_>| passes(way.residual.as_ref(), &row, params, ctx).unwrap_or(true);
        let first_look: Option<&mut dyn FnMut(RowRef<'_>) -> bool> =
            match is_update && !self.assigns && way.access.is_scan(&self.table) {
                true => Some(&mut is_wanted),
                false => None,
            };
        let likely = match way.residual.is_some() {
            false => left,
            true if most < u64::MAX => likely_along(most, self.visited.get()),
            true => u64::MAX,
        };
        let (mut visited, mut is_enough) = (0, true);
        visit(
            &self.table,
            &way.access,
            found,
            Some(&mut LockHow { lock: RowLock::FOR_UPDATE, first_look }),
            likely,
            txn,
            keys,
            read,
            bounds,
            &mut |id, row| {
                if visited == most {
                    is_enough = false;
                    return RowVerdict::Last;
                }
                visited += 1;
                let is_wanted =
                    bounds.row().and_then(|()| Ok(passes(way.residual.as_ref(), &row, params, ctx)?));
                match is_wanted {
                    Ok(false) => return RowVerdict::Unwanted,
                    Ok(true) => {
                        match is_update || !way.sort.is_empty() {
                            true => rows.push(id, &row, bounds),
                            false => rows.push_id(id, bounds),
                        }
                        left -= 1;
                        if !presorted.is_empty() && rows.len() as u64 >= limit {
                            match terms_of(&row) {
                                Ok(terms) if last.as_ref().is_some_and(|last| differs(last, &terms)) => {
                                    left = 0
                                }
                                Ok(terms) => last = Some(terms),
                                Err(error) => {
                                    failure = Some(error.into());
                                    left = 0;
                                }
                            }
                        }
                    }
                    Err(error) => {
                        failure = Some(error);
                        left = 0;
                    }
                }
                if left == 0 { RowVerdict::Last } else { RowVerdict::Wanted }
            },
        )?;
        if most < u64::MAX {
            self.visited.set(visited);
        }
        failure.map_or(Ok(()), Err)?;
        if !way.sort.is_empty() {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            put_in_order(&way.sort, &self.table, rows, limit, params, ctx)?;
        }
        Ok(is_enough)
    }
}

/// Sorts the rows, and leaves out all but the first ones.
fn put_in_order(
    sort: &[(RowProgram, bool)],
    table: &Table,
    rows: &mut FoundRows,
    limit: usize,
    params: &[Datum<'_>],
    ctx: &EvalContext,
) -> Result<(), SqlError> {
    let mut keyed: Vec<(Vec<Value>, usize)> = Vec::with_capacity(rows.len());
    for n in 0..rows.len() {
        let (_, row) = rows.get(n, &table.layout);
        let keys = sort.iter().map(|(key, _)| key.eval(&row, params, ctx).map(Datum::into_owned));
        keyed.push((keys.collect::<Result<_, _>>()?, n));
    }
    keyed.sort_by(|(a, _), (b, _)| {
        let orders = sort.iter().zip(a.iter().zip(b)).map(|((key, descending), (a, b))| {
            let order = sort_order(a, b, key.ty().order().unwrap_or(Collation::BINARY));
            if *descending { order.reverse() } else { order }
        });
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    rows.arrange(keyed.into_iter().take(limit).map(|(_, n)| n));
    Ok(())
}

impl Update {
    pub(super) fn run(
        &self,
        txn: &mut Txn,
        run @ Run { params, ctx, bounds, .. }: Run<'_>,
        scratch: &mut PointScratch,
    ) -> Result<Changes, SqlError> {
        scratch.reserve(1);
        let PointScratch { levels, changes: memory, .. } = scratch;
        let level = &mut levels[0];
        let mut outcome = Changes::default();
        let found = self.target.locate(params, ctx, &mut level.keys)?;
        if found.0 == Found::One && !self.ignore {
            self.target.modify_one(txn, params, ctx, level, &mut |row, to| {
                let mut changes = recycle_changes(std::mem::take(memory));
                outcome.matched = 1;
                self.assignments.evaluate(&self.target.table, row, &[], run, 1, &mut changes)?;
                if !changes.is_empty() {
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
                let evaluated = self.assignments.evaluate(
                    &self.target.table,
                    row,
                    &[],
                    run,
                    outcome.matched,
                    &mut changes,
                );
                match evaluated {
                    Err(error) if self.ignore && is_of_row(&error) => {
                        warn_of_row(ctx, error);
                        changes.clear();
                    }
                    other => other?,
                }
                if !changes.is_empty() {
                    match txn.update(&self.target.table, id, &changes) {
                        Ok(moved) => outcome.changed += u64::from(moved.is_some()),
                        Err(error) if self.ignore && can_ignore(&error) => warn_of(ctx, error),
                        Err(error) => return Err(error.into()),
                    }
                }
                *memory = recycle_changes(changes);
            }
            Ok(outcome)
        })
    }
}

impl Delete {
    pub(super) fn run(
        &self,
        txn: &mut Txn,
        run @ Run { params, ctx, bounds, .. }: Run<'_>,
        scratch: &mut PointScratch,
    ) -> Result<Changes, SqlError> {
        scratch.reserve(1);
        let level = &mut scratch.levels[0];
        let mut outcome = Changes::default();
        let found = self.target.locate(params, ctx, &mut level.keys)?;
        if found.0 == Found::One && !self.ignore {
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
            for FoundRow { id, .. } in &rows.rows {
                bounds.row()?;
                match txn.delete(&self.target.table, *id) {
                    Ok(is_gone) => outcome.changed += u64::from(is_gone),
                    Err(error) if self.ignore && can_ignore(&error) => warn_of(ctx, error),
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(outcome)
        })
    }
}
