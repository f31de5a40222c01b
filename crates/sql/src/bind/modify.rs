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

use crate::bind::merge::MergedView;
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
    /// What rows have to meet that are written through views.
    pub checks: Vec<BoundCheck>,
}

/// A condition for rows as they are written.
pub struct BoundCheck {
    pub target: usize,
    /// Over the target's columns and the inputs, as assignments' values are.
    pub condition: Expr,
    pub of: CheckOf,
}

/// What asks for a condition that rows have to meet.
#[derive(Clone, Debug)]
pub enum CheckOf {
    /// A view WITH CHECK OPTION: its database and name.
    View(String, String),
    /// The partitions that a statement, or a view, is of.
    Partitions,
}

pub struct BoundAssignment {
    pub target: usize,
    pub column: usize,
    /// `None` for DEFAULT.
    pub value: Option<Expr>,
}

/// A target while it is being bound.
struct Target {
    /// In the block's list: the table, or the view through which it changes.
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
        let mut of_views = Vec::new();
        let conditions = self.merge_targets(&mut from, &mut of_views)?;
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
        self.refuse_key_conflicts(&assigned, &targets)?;
        self.block().clause = Clause::Where;
        let filter = spec.filter.map(|expr| self.condition(expr)).transpose()?;
        let filter = filter.map(|filter| self.zero_dates_as_null(filter));
        let mut conditions = conditions;
        conditions.append(&mut self.block().partitions);
        let filter = self.all_of(conditions, filter);
        self.block().clause = Clause::Select;
        let mut values = Vec::with_capacity(assigned.len());
        if let Change::Assign(assignments) = spec.change {
            for (assignment, (target, column)) in assignments.iter().zip(&assigned) {
                let ty = targets[*target].table.columns[*column].ty;
                let mut value = self.assigned_value(&assignment.value, ty)?;
                value.iter_mut().try_for_each(|value| self.merged.apply(value))?;
                values.push(value);
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
        let mut subqueries: Vec<_> =
            std::mem::take(&mut block.subqueries).into_iter().map(|s| s.subquery).collect();
        let verb = if matches!(spec.change, Change::Delete(_)) { "DELETE" } else { "UPDATE" };
        for target in &targets {
            self.refuse_own_reads(&subqueries, target, verb)?;
        }
        let checks = self.checks(&targets, &assigned)?;
        let inputs = inputs(&assigned, &values, &checks, &targets);
        refuse_late_reads(&assigned, &values, &targets, &subqueries)?;
        subqueries.append(&mut of_views);
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
        let over = |check: BoundCheck| {
            let condition = over_row(check.condition, &targets[check.target], &inputs);
            BoundCheck { condition, ..check }
        };
        let checks = checks.into_iter().map(over).collect();
        let targets = targets.into_iter().map(|target| target.table).collect();
        self.keeps_derived = true;
        Ok(Modification { query: self.finish(query)?, targets, assignments, checks })
    }

    /// 1706 for a table that is updated under two names, if one of them changes its primary key: which rows the other one would
    /// change depends on the order.
    fn refuse_key_conflicts(
        &mut self,
        assigned: &[(usize, usize)],
        targets: &[Target],
    ) -> Result<(), SqlError> {
        let changes_key = |at: usize| {
            let key = targets[at].table.primary_key();
            key.is_some_and(|key| key.parts.iter().any(|part| assigned.contains(&(at, part.column))))
        };
        for (at, target) in targets.iter().enumerate() {
            for (before, other) in targets[..at].iter().enumerate() {
                if other.table.id == target.table.id && (changes_key(at) || changes_key(before)) {
                    let tables = &self.block().tables;
                    let first = &tables[target.scope.min(other.scope)].name;
                    let second = &tables[target.scope.max(other.scope)].name;
                    return Err(ErrorCode::MULTI_UPDATE_KEY_CONFLICT.with(&[first, second]));
                }
            }
        }
        Ok(())
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
            self.target(0, None, "DELETE", from, targets)?;
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
            if self.target(scope, None, "DELETE", from, targets)? < before {
                return Err(ErrorCode::NONUNIQ_TABLE.with(&[&name.name.name]));
            }
        }
        Ok(())
    }

    /// Merges the views whose rows are to change with the statement: its tables are theirs then.
    fn merge_targets(
        &mut self,
        from: &mut From,
        subqueries: &mut Vec<Subquery>,
    ) -> Result<Vec<Expr>, SqlError> {
        if self.views.is_empty() {
            return Ok(Vec::new());
        }
        let (conditions, views) = self.merge_from(from, subqueries)?;
        self.merged.views = views;
        Ok(conditions)
    }

    /// The view that a table of the block is, if it was merged.
    fn merged_view(&self, scope: usize) -> Option<&MergedView> {
        let first = self.blocks.last()?.tables[scope].columns.first()?.id;
        self.merged.views.iter().find(|view| view.outputs.first() == Some(&first))
    }

    /// The table's column that a column is; 1348 for what a view computes.
    fn stored_column(&self, id: ColumnId, name: &str) -> Result<ColumnId, SqlError> {
        match self.merged.meaning(id) {
            None => Ok(id),
            Some(shown) => {
                walk::changeable_column(shown).ok_or_else(|| ErrorCode::NONUPDATEABLE_COLUMN.with(&[&name]))
            }
        }
    }

    /// The target that a table of the block is, made one if it is none yet. Through a view, it is the table that `column` is of,
    /// or its only one.
    fn target(
        &mut self,
        scope: usize,
        column: Option<ColumnId>,
        verb: &str,
        from: &mut From,
        targets: &mut Vec<Target>,
    ) -> Result<usize, SqlError> {
        let table = &self.block().tables[scope];
        let name = table.name.clone();
        let own = table.columns.first().map(|c| c.id);
        let refused = || ErrorCode::NON_UPDATABLE_TABLE.with(&[&name, &verb]);
        let (columns, join_view) = match self.merged_view(scope) {
            None => (columns_of_scan(from, own), None),
            Some(view) => {
                let is_updatable = view.def.view.as_ref().is_some_and(|view| view.is_updatable);
                if !is_updatable {
                    return Err(refused());
                }
                let def = view.def.clone();
                let columns = match column {
                    Some(column) => columns_of_scan(from, Some(column)),
                    None if view.scans.len() > 1 => {
                        return Err(ErrorCode::VIEW_DELETE_MERGE_VIEW.with(&[&def.database, &def.name]));
                    }
                    None => columns_of_scan(from, view.scans.first().copied().flatten()),
                };
                (columns, Some(def))
            }
        };
        let columns = columns.ok_or_else(refused)?;
        let is_same = |target: &Target| target.scope == scope && target.columns.first() == columns.first();
        if let Some(known) = targets.iter().position(is_same) {
            return Ok(known);
        }
        if let Some(view) = join_view
            && targets.iter().any(|target| target.scope == scope)
        {
            return Err(ErrorCode::VIEW_MULTIUPDATE.with(&[&view.database, &view.name]));
        }
        let row_id = self.add_column("", SqlType::BIGINT_UNSIGNED, true);
        let table = give_row_id(from, &columns, row_id).ok_or_else(refused)?;
        targets.push(Target { scope, table, row_id, columns });
        Ok(targets.len() - 1)
    }

    /// A subquery reads a table that the statement changes, and not through a derived table: error 1093, or 1443 if a view is
    /// involved, unless both are the same one.
    fn refuse_own_reads(&self, subqueries: &[Subquery], target: &Target, verb: &str) -> Result<(), SqlError> {
        let reads = |subquery: &&Subquery| reads_directly(&subquery.query, &target.table, None);
        let Some(subquery) = subqueries.iter().find(reads) else { return Ok(()) };
        let through = self.merged_view(target.scope).map(|view| view.def.id);
        let other = view_that_reads(&subquery.query, &target.table);
        let other_view = other.and_then(|derived| derived.view.as_ref()).map(|view| view.def.id);
        let name = self.blocks.last().map_or("".into(), |block| block.tables[target.scope].name.clone());
        if through == other_view {
            let name = if through.is_some() { &*name } else { &*target.table.name };
            return Err(ErrorCode::UPDATE_TABLE_USED.with(&[&name]));
        }
        let of = other.map_or(&name, |derived| &derived.alias);
        Err(ErrorCode::VIEW_PREVENT_UPDATE.with(&[of, &verb, &name]))
    }

    /// What the rows have to meet that change through views.
    fn checks(&self, targets: &[Target], assigned: &[(usize, usize)]) -> Result<Vec<BoundCheck>, SqlError> {
        let mut checks = Vec::new();
        for (at, target) in targets.iter().enumerate() {
            let is_assigned = assigned.iter().any(|(of, _)| *of == at);
            let partitions = target.columns.first().and_then(|first| self.partitions.get(first));
            if let Some(condition) = partitions.filter(|_| is_assigned) {
                checks.push(BoundCheck { target: at, condition: condition.clone(), of: CheckOf::Partitions });
            }
            let Some(view) = self.merged_view(target.scope).filter(|_| is_assigned) else { continue };
            let mut asked = Vec::new();
            view.checks(false, &mut asked);
            for asked in asked {
                let Some(condition) = asked.condition.clone() else { continue };
                if asked.has_subqueries {
                    return Err(unsupported("WITH CHECK OPTION of a view whose condition has subqueries"));
                }
                // The view that the statement names is the one that refuses.
                let of = CheckOf::View(view.def.database.clone(), view.def.name.clone());
                checks.push(BoundCheck { target: at, condition, of });
            }
        }
        Ok(checks)
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
        let id = self.stored_column(id, &assignment.column.name)?;
        let target = self.target(scope, Some(id), "UPDATE", from, targets)?;
        let column = targets[target].columns.iter().position(|c| *c == id).ok_or_else(unknown)?;
        Ok((target, column))
    }

    fn assigned_value(&mut self, value: &ast::Expr, ty: SqlType) -> Result<Option<Expr>, SqlError> {
        if matches!(value.kind, ExprKind::Default) {
            return Ok(None);
        }
        let bound = self.expr(value)?;
        Ok(Some(self.assigned(bound, ty)))
    }
}

/// The columns of the scan that has this one.
fn columns_of_scan(from: &From, column: Option<ColumnId>) -> Option<Vec<ColumnId>> {
    match from {
        From::Table(scan) => {
            let own: Vec<_> = scan.columns.iter().filter(|(at, _)| *at < scan.table.columns.len()).collect();
            let has = column.is_some_and(|column| own.iter().any(|(_, id)| *id == column));
            has.then(|| own.iter().map(|(_, id)| *id).collect())
        }
        From::Join(join) => {
            columns_of_scan(&join.left, column).or_else(|| columns_of_scan(&join.right, column))
        }
        From::Dual | From::Derived(_) | From::Cte(_) => None,
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

/// The columns that assignments and checks use and that are not their own target's.
fn inputs(
    assigned: &[(usize, usize)],
    values: &[Option<Expr>],
    checks: &[BoundCheck],
    targets: &[Target],
) -> Vec<ColumnId> {
    let mut inputs = BTreeSet::new();
    for check in checks {
        let columns = check.condition.columns().into_iter().map(|c| ColumnId(c as u32));
        inputs.extend(columns.filter(|id| !targets[check.target].columns.contains(id)));
    }
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

/// Whether a query or one of its subqueries reads a table, and not through a derived table; with a name: under this name.
pub fn reads_directly(query: &QueryExpr, table: &TableDef, name: Option<&str>) -> bool {
    match &query.body {
        QueryBody::Select(select) => {
            from_reads(&select.from, table, name)
                || select.subqueries.iter().any(|s| reads_directly(&s.query, table, name))
        }
        QueryBody::SetOperation(set) => {
            reads_directly(&set.left, table, name) || reads_directly(&set.right, table, name)
        }
        QueryBody::Nested(inner) => reads_directly(inner, table, name),
        QueryBody::Values(_) | QueryBody::JsonTable(_) => false,
    }
}

fn from_reads(from: &From, table: &TableDef, name: Option<&str>) -> bool {
    match from {
        From::Table(scan) => {
            let is_named = name.is_none_or(|name| *name == *scan.alias);
            scan.table.id == table.id && is_named && !scan.of_derived
        }
        From::Join(join) => from_reads(&join.left, table, name) || from_reads(&join.right, table, name),
        // A view that is merged is its tables.
        From::Derived(derived) => {
            derived.view.as_ref().is_some_and(|view| view.merges)
                && reads_directly(&derived.query, table, name)
        }
        From::Dual | From::Cte(_) => false,
    }
}

/// The view of a query's FROM through which it reads a table, if it does so through one.
fn view_that_reads<'q>(query: &'q QueryExpr, table: &TableDef) -> Option<&'q Derived> {
    fn of_from<'q>(from: &'q From, table: &TableDef) -> Option<&'q Derived> {
        match from {
            From::Join(join) => of_from(&join.left, table).or_else(|| of_from(&join.right, table)),
            From::Derived(derived) => Some(derived).filter(|_| from_reads(from, table, None)),
            From::Dual | From::Table(_) | From::Cte(_) => None,
        }
    }
    match &query.body {
        QueryBody::Select(select) => of_from(&select.from, table)
            .or_else(|| select.subqueries.iter().find_map(|s| view_that_reads(&s.query, table))),
        QueryBody::SetOperation(set) => {
            view_that_reads(&set.left, table).or_else(|| view_that_reads(&set.right, table))
        }
        QueryBody::Nested(inner) => view_that_reads(inner, table),
        QueryBody::Values(_) | QueryBody::JsonTable(_) => None,
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
        let is_late = |id: &ColumnId| changed.contains(id);
        if answers.iter().any(|s| s.outer.iter().any(is_late) || s.kind.operands().any(|id| is_late(&id))) {
            return Err(unsupported("a subquery that refers to a column assigned before it"));
        }
        changed.insert(targets[*target].columns[*column]);
    }
    Ok(())
}
