//! UPDATE and DELETE as a query: which rows, and what their new values are made of.
//!
//! The query gives for each combination of rows that matches the ids of the target tables' rows, and the *inputs*: columns
//! of other tables and answers of subqueries that assignments use. The assignments themselves are expressions over a
//! target's columns (by position, as they are when the row is locked) followed by the inputs.

use std::collections::BTreeSet;
use std::sync::Arc;

use avocet_types::SqlType;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::Expr;
use avocet_types::schema::TableDef;

use crate::bind::scope::{Block, Clause, ColumnName};
use crate::bind::{Binder, CatalogView, unsupported};
use crate::parse::ast::{self, ExprKind, Limit, ObjectName, OrderItem, TableRef, With};
use crate::parse::statement::{Assignment, Delete, Update};
use crate::plan::*;

/// The parts that UPDATE and DELETE have together.
#[derive(Clone, Copy)]
pub struct ModifySpec<'s> {
    with: Option<&'s With>,
    tables: &'s [TableRef],
    pub filter: Option<&'s ast::Expr>,
    pub order_by: &'s [OrderItem],
    pub limit: Option<&'s Limit>,
    change: Change<'s>,
}

#[derive(Clone, Copy)]
enum Change<'s> {
    Assign(&'s [Assignment]),
    /// From the tables named, or from the only one.
    Delete(&'s [ObjectName]),
}

impl<'s> std::convert::From<&'s Update> for ModifySpec<'s> {
    fn from(update: &'s Update) -> Self {
        Self {
            with: update.with.as_ref(),
            tables: &update.tables,
            filter: update.filter.as_ref(),
            order_by: &update.order_by,
            limit: update.limit.as_ref(),
            change: Change::Assign(&update.assignments),
        }
    }
}

impl<'s> std::convert::From<&'s Delete> for ModifySpec<'s> {
    fn from(delete: &'s Delete) -> Self {
        Self {
            with: delete.with.as_ref(),
            tables: &delete.from,
            filter: delete.filter.as_ref(),
            order_by: &delete.order_by,
            limit: delete.limit.as_ref(),
            change: Change::Delete(&delete.targets),
        }
    }
}

impl<'s> ModifySpec<'s> {
    pub fn is_delete(&self) -> bool {
        matches!(self.change, Change::Delete(_))
    }

    /// Whether it reads anything but the rows that it changes.
    pub fn has_subquery(&self) -> bool {
        let values = match self.change {
            Change::Assign(assignments) => assignments,
            Change::Delete(_) => &[],
        };
        let mut others = self.order_by.iter().map(|item| &item.expr);
        self.with.is_some()
            || self.filter.is_some_and(ast::Expr::has_subquery)
            || values.iter().any(|assignment| assignment.value.has_subquery())
            || others.any(ast::Expr::has_subquery)
    }

    /// The table of the form for one table, and its alias; one with index hints is bound as those of a query are.
    pub fn only_table(&self) -> Option<(&'s ObjectName, Option<&'s str>)> {
        match (self.tables, self.change) {
            (_, Change::Delete([_, ..])) => None,
            ([TableRef::Table { name, alias, hints }], _) if hints.is_empty() => {
                Some((name, alias.as_ref().map(|alias| alias.name.as_str())))
            }
            _ => None,
        }
    }
}

/// A bound UPDATE or DELETE.
pub struct Modification {
    /// Its outputs are the targets' row ids in order, then the inputs.
    pub query: BoundQuery,
    /// The tables whose rows change; one may be there twice, under two aliases.
    pub targets: Vec<Arc<TableDef>>,
    pub assignments: Vec<BoundAssignment>,
}

pub struct BoundAssignment {
    pub target: usize,
    pub column: usize,
    /// `None` for DEFAULT.
    pub value: Option<Expr>,
}

/// A target while it is being bound.
struct Target {
    /// In the block's list.
    scope: usize,
    table: Arc<TableDef>,
    row_id: ColumnId,
    columns: Vec<ColumnId>,
}

pub fn bind_modification(
    spec: ModifySpec<'_>,
    source: &[u8],
    catalog: &dyn CatalogView,
    params: &[SqlType],
) -> Result<Modification, SqlError> {
    let mut binder = Binder::new(source, catalog, params);
    let ctes = binder.with(spec.with)?;
    binder.blocks.push(Block::new());
    binder.modification(spec, ctes)
}

impl Binder<'_> {
    fn modification(mut self, spec: ModifySpec<'_>, ctes: Vec<Cte>) -> Result<Modification, SqlError> {
        let (verb, joined) = match spec.change {
            Change::Assign(_) => ("UPDATE", spec.tables.len() > 1),
            Change::Delete(targets) => ("DELETE", !targets.is_empty()),
        };
        let joined = joined || !matches!(spec.tables, [TableRef::Table { .. }]);
        if joined && !spec.order_by.is_empty() {
            return Err(ErrorCode::WRONG_USAGE.with(&[&verb, &"ORDER BY"]));
        }
        if joined && spec.limit.is_some() {
            return Err(ErrorCode::WRONG_USAGE.with(&[&verb, &"LIMIT"]));
        }
        let mut from = self.from(spec.tables)?.from;
        let mut targets = Vec::new();
        let mut assigned = Vec::new();
        match spec.change {
            Change::Delete(names) => self.delete_targets(names, &mut from, &mut targets)?,
            Change::Assign(assignments) => {
                for assignment in assignments {
                    assigned.push(self.assigned_column(assignment, &mut from, &mut targets)?);
                }
            }
        }
        self.block().clause = Clause::Where;
        let filter = spec.filter.map(|expr| self.condition(expr)).transpose()?;
        self.block().clause = Clause::Select;
        let mut values = Vec::with_capacity(assigned.len());
        if let Change::Assign(assignments) = spec.change {
            for (assignment, (target, column)) in assignments.iter().zip(&assigned) {
                let ty = targets[*target].table.columns[*column].ty;
                values.push(self.assigned_value(&assignment.value, ty)?);
            }
        }
        self.block().clause = Clause::Order;
        let mut order = Vec::with_capacity(spec.order_by.len());
        for item in spec.order_by {
            order.push((self.expr(&item.expr)?, item.descending));
        }
        let limit = spec.limit.map(|limit| self.limit(limit)).transpose()?;
        let block = self.block();
        if !block.aggregates.is_empty() || !block.window_functions.is_empty() {
            return Err(ErrorCode::INVALID_GROUP_FUNC_USE.with(&[]));
        }
        let subqueries: Vec<_> =
            std::mem::take(&mut block.subqueries).into_iter().map(|s| s.subquery).collect();
        for target in &targets {
            refuse_own_reads(&subqueries, target)?;
        }
        let inputs = inputs(&assigned, &values, &targets);
        refuse_late_reads(&assigned, &values, &targets, &subqueries)?;
        let select = Select { filter, subqueries, ..Select::plain(from, Vec::new()) };
        let query = self.modification_query(select, ctes, &targets, &inputs, order, limit);
        let assignments = assigned
            .into_iter()
            .zip(values)
            .map(|((target, column), value)| {
                let value = value.map(|value| over_row(value, &targets[target], &inputs));
                BoundAssignment { target, column, value }
            })
            .collect();
        let targets = targets.into_iter().map(|target| target.table).collect();
        Ok(Modification { query: self.finish(query), targets, assignments })
    }

    fn modification_query(
        &mut self,
        mut select: Select,
        ctes: Vec<Cte>,
        targets: &[Target],
        inputs: &[ColumnId],
        order: Vec<(Expr, bool)>,
        limit: Option<crate::plan::Limit>,
    ) -> QueryExpr {
        let shown: Vec<_> = targets.iter().map(|t| t.row_id).chain(inputs.iter().copied()).collect();
        let mut outputs = Vec::with_capacity(shown.len());
        for id in shown {
            self.mark_used(id);
            let expr = self.column_expr(id);
            let projected = Projected { id: self.add_projected("", &expr), expr };
            outputs.push(projected.id);
            select.projection.push(projected);
        }
        let mut order_by = Vec::with_capacity(order.len());
        for (expr, descending) in order {
            let id = self.add_projected("", &expr);
            select.projection.push(Projected { id, expr });
            order_by.push(SortKey { column: id, descending });
        }
        QueryExpr { ctes, body: QueryBody::Select(Box::new(select)), order_by, limit, outputs }
    }

    fn delete_targets(
        &mut self,
        names: &[ObjectName],
        from: &mut From,
        targets: &mut Vec<Target>,
    ) -> Result<(), SqlError> {
        if names.is_empty() {
            self.target(0, "DELETE", from, targets)?;
            return Ok(());
        }
        for name in names {
            let unknown = || ErrorCode::UNKNOWN_TABLE.with(&[&name.name.name, &"MULTI DELETE"]);
            let wanted = ColumnName {
                database: name.database.as_ref().map(|d| d.name.as_str()),
                table: Some(&name.name.name),
                column: "*",
            };
            let scope = self.block().tables.iter().position(|t| wanted.fits(t)).ok_or_else(unknown)?;
            let before = targets.len();
            if self.target(scope, "DELETE", from, targets)? < before {
                return Err(ErrorCode::NONUNIQ_TABLE.with(&[&name.name.name]));
            }
        }
        Ok(())
    }

    /// The target that a table of the block is, made one if it is none yet.
    fn target(
        &mut self,
        scope: usize,
        verb: &str,
        from: &mut From,
        targets: &mut Vec<Target>,
    ) -> Result<usize, SqlError> {
        if let Some(known) = targets.iter().position(|target| target.scope == scope) {
            return Ok(known);
        }
        let table = &self.block().tables[scope];
        let name = table.name.clone();
        let columns: Vec<_> = table.columns.iter().map(|c| c.id).collect();
        let row_id = self.add_column("", SqlType::BIGINT_UNSIGNED, true);
        let refused = || ErrorCode::NON_UPDATABLE_TABLE.with(&[&name, &verb]);
        let table = give_row_id(from, &columns, row_id).ok_or_else(refused)?;
        targets.push(Target { scope, table, row_id, columns });
        Ok(targets.len() - 1)
    }

    /// The target and the position in it of an assignment's column.
    fn assigned_column(
        &mut self,
        assignment: &Assignment,
        from: &mut From,
        targets: &mut Vec<Target>,
    ) -> Result<(usize, usize), SqlError> {
        let table = assignment.table.as_ref();
        let name = ColumnName {
            database: table.and_then(|t| t.database.as_ref()).map(|d| d.name.as_str()),
            table: table.map(|t| t.name.name.as_str()),
            column: &assignment.column.name,
        };
        self.block().clause = Clause::Select;
        let unknown = || ErrorCode::BAD_FIELD_ERROR.with(&[&name, &Clause::Select.name()]);
        let id = self.block().find(&name)?.ok_or_else(unknown)?;
        let owns = |t: &crate::bind::scope::ScopeTable| t.columns.iter().any(|c| c.id == id);
        let scope = self.block().tables.iter().position(owns).ok_or_else(unknown)?;
        let target = self.target(scope, "UPDATE", from, targets)?;
        let column = targets[target].columns.iter().position(|c| *c == id).ok_or_else(unknown)?;
        Ok((target, column))
    }

    fn assigned_value(&mut self, value: &ast::Expr, ty: SqlType) -> Result<Option<Expr>, SqlError> {
        if matches!(value.kind, ExprKind::Default(None)) {
            return Ok(None);
        }
        let bound = self.expr(value)?;
        Ok(Some(self.settle(bound, ty)))
    }
}

/// Makes the scan with these columns give row ids too; the table that it scans.
fn give_row_id(from: &mut From, columns: &[ColumnId], row_id: ColumnId) -> Option<Arc<TableDef>> {
    match from {
        From::Table(scan) if scan.columns.first().map(|(_, id)| id) == columns.first() => {
            scan.columns.push((scan.table.columns.len(), row_id));
            Some(scan.table.clone())
        }
        From::Join(join) => give_row_id(&mut join.left, columns, row_id)
            .or_else(|| give_row_id(&mut join.right, columns, row_id)),
        _ => None,
    }
}

/// The columns that assignments use and that are not their own target's.
fn inputs(assigned: &[(usize, usize)], values: &[Option<Expr>], targets: &[Target]) -> Vec<ColumnId> {
    let mut inputs = BTreeSet::new();
    for ((target, _), value) in assigned.iter().zip(values) {
        let columns = value.iter().flat_map(Expr::columns).map(|c| ColumnId(c as u32));
        inputs.extend(columns.filter(|id| !targets[*target].columns.contains(id)));
    }
    inputs.into_iter().collect()
}

/// An assignment's value over the target's columns and the inputs.
fn over_row(value: Expr, target: &Target, inputs: &[ColumnId]) -> Expr {
    value.map_columns(&mut |index| {
        let id = ColumnId(index as u32);
        let own = target.columns.iter().position(|c| *c == id);
        let input = || inputs.iter().position(|i| *i == id).map(|at| target.columns.len() + at);
        own.or_else(input).expect("what is not the target's is an input")
    })
}

/// Error 1093: a subquery reads a table that the statement changes, and not through a derived table.
fn refuse_own_reads(subqueries: &[Subquery], target: &Target) -> Result<(), SqlError> {
    let reads = subqueries.iter().any(|subquery| reads_directly(&subquery.query, &target.table));
    match reads {
        true => Err(ErrorCode::UPDATE_TABLE_USED.with(&[&target.table.name])),
        false => Ok(()),
    }
}

/// Whether a query or one of its subqueries reads a table, and not through a derived table.
pub fn reads_directly(query: &QueryExpr, table: &TableDef) -> bool {
    match &query.body {
        QueryBody::Select(select) => {
            from_reads(&select.from, table)
                || select.subqueries.iter().any(|s| reads_directly(&s.query, table))
        }
        QueryBody::SetOperation(set) => reads_directly(&set.left, table) || reads_directly(&set.right, table),
        QueryBody::Nested(inner) => reads_directly(inner, table),
        QueryBody::Values(_) | QueryBody::JsonTable(_) => false,
    }
}

fn from_reads(from: &From, table: &TableDef) -> bool {
    match from {
        From::Table(scan) => scan.table.id == table.id,
        From::Join(join) => from_reads(&join.left, table) || from_reads(&join.right, table),
        From::Dual | From::Derived(_) | From::Cte(_) => false,
    }
}

/// Assignments see what those before them have made; a subquery, which is answered before all of them, would not.
fn refuse_late_reads(
    assigned: &[(usize, usize)],
    values: &[Option<Expr>],
    targets: &[Target],
    subqueries: &[Subquery],
) -> Result<(), SqlError> {
    let mut changed = BTreeSet::new();
    for ((target, column), value) in assigned.iter().zip(values) {
        let used = value.iter().flat_map(Expr::columns).map(|c| ColumnId(c as u32));
        let answers: Vec<_> = used.filter_map(|id| subqueries.iter().find(|s| s.id == id)).collect();
        if answers.iter().any(|s| s.outer.iter().any(|id| changed.contains(id))) {
            return Err(unsupported("a subquery that refers to a column assigned before it"));
        }
        changed.insert(targets[*target].columns[*column]);
    }
    Ok(())
}
