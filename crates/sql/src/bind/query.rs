//! Query expressions: WITH, VALUES, TABLE, and the ORDER BY and LIMIT around them.

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::Expr;
use avocet_types::{Datum, SqlType};

use crate::bind::dependences::OfCte;
use crate::bind::recursive::{RecursiveParts, mentions};
use crate::bind::scope::{Block, Clause, ScopeColumn, ScopeCte, ScopeTable};
use crate::bind::{Binder, locks, unsupported};
use crate::parse::ast::{self, ExprKind, OrderItem};
use crate::plan::*;

const MOST_CTES: usize = 1_000;

/// Queries within each other, those that names of a WITH stand for among them: MySQL's bound.
const MOST_LEVELS: usize = 64;

/// A plan has a common table expression as often as it is read, and those that it reads so many times more.
const MOST_COPIES: usize = 4_096;

/// How high and how large the plan of what is being bound is to be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    /// Queries around what is being bound.
    level: usize,
    /// The deepest level so far.
    deepest: usize,
    /// Queries so far, as often as the plan has them.
    queries: usize,
}

impl Binder<'_> {
    pub(super) fn query(&mut self, query: &ast::Query) -> Result<QueryExpr, SqlError> {
        let scope = self.ctes.len();
        self.extent.level += 1;
        self.grow_by(0, 1)?;
        let bound = self.query_with(query);
        self.extent.level -= 1;
        self.ctes.truncate(scope);
        bound
    }

    /// What is being bound reads something of so many levels and queries.
    pub(super) fn grow_by(&mut self, levels: usize, queries: usize) -> Result<(), SqlError> {
        let extent = &mut self.extent;
        extent.deepest = extent.deepest.max(extent.level + levels);
        extent.queries += queries;
        if extent.deepest > MOST_LEVELS {
            return Err(ErrorCode::TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT.with(&[]));
        }
        if extent.queries > MOST_COPIES {
            let limit = format!(
                "more than {MOST_COPIES} readings of common table expressions and queries within each other"
            );
            return Err(ErrorCode::STACK_OVERRUN_NEED_MORE.with(&[&limit]));
        }
        Ok(())
    }

    /// Binds what a name is to stand for; also its levels and queries.
    pub(super) fn measured<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<(T, usize, usize), SqlError> {
        let before = self.extent;
        self.extent.deepest = before.level;
        let bound = bind(self)?;
        let (levels, queries) = (self.extent.deepest - before.level, self.extent.queries - before.queries);
        // What nobody reads costs nothing.
        self.extent = before;
        Ok((bound, levels, queries))
    }

    fn query_with(&mut self, query: &ast::Query) -> Result<QueryExpr, SqlError> {
        let stars = std::mem::take(&mut self.stars);
        let ctes = self.with(query.with.as_ref())?;
        self.stars = stars;
        let mut bound = self.body(&query.body, &query.order_by)?;
        locks::apply(&query.locks, &mut bound.body)?;
        if let Some(limit) = &query.limit {
            let limit = self.limit(limit)?;
            if bound.limit.is_some() {
                bound = nest(bound);
            }
            bound.limit = Some(limit);
        }
        bound.ctes.splice(0..0, ctes);
        Ok(bound)
    }

    /// The common table expressions of a WITH; they stay in scope.
    pub(super) fn with(&mut self, with: Option<&ast::With>) -> Result<Vec<Cte>, SqlError> {
        let Some(with) = with else { return Ok(Vec::new()) };
        if with.ctes.len() > MOST_CTES {
            let limit = format!("more than {MOST_CTES} common table expressions");
            return Err(ErrorCode::STACK_OVERRUN_NEED_MORE.with(&[&limit]));
        }
        let mut ctes = Vec::with_capacity(with.ctes.len());
        for cte in &with.ctes {
            if with.ctes.iter().filter(|c| c.name.name == cte.name.name).count() > 1 {
                return Err(ErrorCode::NONUNIQ_TABLE.with(&[&cte.name.name]));
            }
            ctes.push(self.cte(cte, with.recursive)?);
        }
        Ok(ctes)
    }

    /// A query body with the ORDER BY that follows it.
    pub(super) fn body(
        &mut self,
        body: &ast::QueryBody,
        order_by: &[OrderItem],
    ) -> Result<QueryExpr, SqlError> {
        let bound = match body {
            ast::QueryBody::Select(select) => {
                let (select, order_by, outputs) = self.select(select, order_by)?;
                let body = QueryBody::Select(Box::new(select));
                return Ok(QueryExpr { ctes: Vec::new(), body, order_by, limit: None, outputs });
            }
            ast::QueryBody::SetOperation { op, all, left, right } => {
                self.set_operation(*op, *all, left, right)?
            }
            ast::QueryBody::Values(rows) => self.values(rows)?,
            ast::QueryBody::JsonTable(table) => self.json_table(table)?,
            ast::QueryBody::Table(name) => return self.table(name, order_by),
            // It is the block's own ORDER BY, which may name more than its columns.
            ast::QueryBody::Parenthesized(query) if !order_by.is_empty() && query.is_body_alone() => {
                return self.body(&query.body, order_by);
            }
            ast::QueryBody::Parenthesized(query) => {
                let inner = self.query(query)?;
                let ordered = !inner.order_by.is_empty() || inner.limit.is_some();
                if ordered && !order_by.is_empty() { nest(inner) } else { inner }
            }
        };
        self.order(bound, order_by)
    }

    /// Sorts a body that is not a block: keys are outputs, or are computed from them.
    fn order(&mut self, mut query: QueryExpr, order_by: &[OrderItem]) -> Result<QueryExpr, SqlError> {
        if order_by.is_empty() {
            return Ok(query);
        }
        let key = |(at, item): (usize, &OrderItem)| self.output_key(&query, &item.expr, at + 1);
        let keys = order_by.iter().enumerate().map(key).collect::<Result<Vec<_>, _>>()?;
        let outputs = query.outputs.clone();
        let mut exprs: Vec<_> = outputs.iter().map(|id| self.column_expr(*id)).collect();
        let columns = keys.iter().map(crate::plan::walk::column_of).collect::<Option<Vec<_>>>();
        let columns = match columns {
            Some(columns) => columns,
            None => {
                let visible = exprs.len();
                exprs.extend(keys);
                query = self.project_over(query, exprs);
                query.outputs.split_off(visible)
            }
        };
        let sort = columns.into_iter().zip(order_by);
        query.order_by = sort.map(|(column, item)| SortKey { column, descending: item.descending }).collect();
        Ok(query)
    }

    /// A key of ORDER BY, the one at `place`.
    fn output_key(&mut self, query: &QueryExpr, expr: &ast::Expr, place: usize) -> Result<Expr, SqlError> {
        if let ExprKind::Integer(position) = expr.kind {
            let output = usize::try_from(position).ok().and_then(|p| query.outputs.get(p.checked_sub(1)?));
            let unknown = || ErrorCode::BAD_FIELD_ERROR.with(&[&position, &Clause::Order.name()]);
            return Ok(self.column_expr(*output.ok_or_else(unknown)?));
        }
        if is_set_operation(&query.body)
            && let Some(table) = expr.named_table()
        {
            return Err(ErrorCode::TABLENAME_NOT_ALLOWED_HERE.with(&[&table, &"global ORDER clause"]));
        }
        let mut block = Block::new();
        block.clause = Clause::Order;
        let columns = query
            .outputs
            .iter()
            .map(|id| ScopeColumn {
                name: self.columns[*id].name.clone(),
                id: *id,
                merged: false,
                invisible: false,
            })
            .collect();
        block.tables.push(ScopeTable::derived("".into(), columns, Vec::new()));
        self.blocks.push(block);
        let bound = self.expr(expr);
        let block = self.blocks.pop().expect("pushed above");
        if !block.aggregates.is_empty() {
            return Err(aggregate_refused(&query.body, place));
        }
        if !block.window_functions.is_empty() && is_set_operation(&query.body) {
            return Err(aggregate_refused(&query.body, place));
        }
        if !block.subqueries.is_empty() || !block.window_functions.is_empty() {
            return Err(unsupported("this kind of expression in the ORDER BY of a set operation"));
        }
        bound
    }

    pub(super) fn limit(&mut self, limit: &ast::Limit) -> Result<Limit, SqlError> {
        let offset = limit.offset.as_ref().map(|o| self.limit_value(o)).transpose()?;
        Ok(Limit { count: self.limit_value(&limit.count)?, offset })
    }

    fn limit_value(&mut self, value: &ast::Expr) -> Result<Expr, SqlError> {
        match value.kind {
            ExprKind::Integer(value) => Ok(Expr::literal(Datum::UInt(value), SqlType::BIGINT_UNSIGNED)),
            ExprKind::Param(_) => {
                let param = self.expr(value)?;
                Ok(self.settle(param, SqlType::BIGINT_UNSIGNED))
            }
            _ => Err(unsupported("an expression in LIMIT")),
        }
    }

    /// `VALUES ROW(…), …` with columns `column_0`, `column_1`, …
    fn values(&mut self, rows: &[Vec<ast::Expr>]) -> Result<QueryExpr, SqlError> {
        let width = rows[0].len();
        let mut block = Block::new();
        block.clause = Clause::Select;
        self.blocks.push(block);
        let bound = rows.iter().map(|row| self.exprs(row)).collect::<Result<Vec<_>, _>>();
        let block = self.blocks.pop().expect("pushed above");
        let bound = bound?;
        if !block.aggregates.is_empty() {
            return Err(ErrorCode::INVALID_GROUP_FUNC_USE.with(&[]));
        }
        if let Some(entry) = block.window_functions.first() {
            let name = &self.columns[entry.window.id].name;
            return Err(ErrorCode::WINDOW_INVALID_WINDOW_FUNC_USE.with(&[name]));
        }
        if !block.subqueries.is_empty() {
            return Err(unsupported("subqueries in VALUES"));
        }
        if let Some(row) = bound.iter().position(|row| row.len() != width) {
            return Err(ErrorCode::WRONG_VALUE_COUNT_ON_ROW.with(&[&(row + 1)]));
        }
        let mut rows: Vec<Vec<Expr>> = bound.iter().map(|_| Vec::with_capacity(width)).collect();
        let mut columns = Vec::with_capacity(width);
        for column in 0..width {
            let values = bound.iter().map(|row| row[column].clone()).collect();
            let unified = self.typer.unify(values, "VALUES")?;
            let (ty, nullable) = (unified[0].ty, unified.iter().any(|e| e.nullable));
            columns.push(self.add_column(format!("column_{column}"), ty, nullable));
            rows.iter_mut().zip(unified).for_each(|(row, value)| row.push(value));
        }
        let body = QueryBody::Values(Values { rows, columns: columns.clone() });
        Ok(QueryExpr { ctes: Vec::new(), body, order_by: Vec::new(), limit: None, outputs: columns })
    }

    /// `TABLE t ORDER BY …` is `SELECT * FROM t ORDER BY …`.
    fn table(&mut self, name: &ast::ObjectName, order_by: &[OrderItem]) -> Result<QueryExpr, SqlError> {
        let select = ast::Select::all_of(name);
        self.body(&ast::QueryBody::Select(Box::new(select)), order_by)
    }

    fn cte(&mut self, cte: &ast::Cte, recursive: bool) -> Result<Cte, SqlError> {
        let id = CteId(self.next_cte);
        self.next_cte += 1;
        let name: std::sync::Arc<str> = cte.name.name.as_str().into();
        if recursive && mentions(&cte.query.body, &cte.name.name) {
            let parts = RecursiveParts::of(&cte.query.body, &name)?;
            return self.recursive_cte(cte, id, name, &parts);
        }
        let bind = |binder: &mut Self| match recursive {
            true => binder.without_recursion(id, &name, |binder| binder.query(&cte.query)),
            false => binder.query(&cte.query),
        };
        let (mut body, levels, queries) = self.measured(bind)?;
        self.keep_years(&mut body);
        self.has_derived = true;
        self.name_outputs(&body.outputs, &cte.columns)?;
        let columns = self.copy_columns(&body.outputs, false);
        self.label_columns(&columns, &name, None, can_merge(&body));
        let recursion = None;
        let known = OfCte::new(&body, &columns, &self.dependences_of_ctes);
        self.dependences_of_ctes.insert(id, known);
        self.ctes.push(ScopeCte {
            id,
            name: name.clone(),
            columns: columns.clone(),
            levels,
            queries,
            recursion,
        });
        Ok(Cte { id, name, body: CteBody::Plain(body), columns })
    }

    pub(super) fn copy_columns(&mut self, ids: &[ColumnId], nullable: bool) -> Vec<ColumnId> {
        ids.iter()
            .map(|id| {
                let copy = self.copy_column(*id);
                self.columns[copy].nullable |= nullable;
                copy
            })
            .collect()
    }
}

fn is_set_operation(body: &QueryBody) -> bool {
    match body {
        QueryBody::Nested(inner) => is_set_operation(&inner.body),
        QueryBody::SetOperation(_) => true,
        _ => false,
    }
}

/// An aggregate in the ORDER BY of what is no block, the key at `place`: there is nothing that it could be of.
fn aggregate_refused(body: &QueryBody, place: usize) -> SqlError {
    match body {
        QueryBody::Values(_) => ErrorCode::INVALID_GROUP_FUNC_USE.with(&[]),
        body if is_set_operation(body) => ErrorCode::AGGREGATE_ORDER_FOR_UNION.with(&[&place]),
        _ => ErrorCode::AGGREGATE_ORDER_NON_AGG_QUERY.with(&[&place]),
    }
}

/// Makes a query the body of another, so that a second order or limit applies to its result.
fn nest(inner: QueryExpr) -> QueryExpr {
    let outputs = inner.outputs.clone();
    let body = QueryBody::Nested(Box::new(inner));
    QueryExpr { ctes: Vec::new(), body, order_by: Vec::new(), limit: None, outputs }
}
