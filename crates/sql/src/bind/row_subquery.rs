//! Subqueries of several columns that stand for a row: `(a, b) = (SELECT …)`, `(SELECT …) IN (…)`.
//!
//! What is asked of them is the scalar subquery `(SELECT … FROM (SELECT …) r)`, in which their columns are those of a table: NULL
//! without a row, error 1242 for more than one. IN asks also what there is no row of, as of NULLs: of nothing at all even these are
//! no members (`FROM (SELECT 1) LEFT JOIN (SELECT …) r ON TRUE`). What else stands there means what it means around the subquery.

use avocet_types::SqlType;
use avocet_types::error::SqlError;
use avocet_types::expr::Expr;

use crate::bind::expr::comparison_of;
use crate::bind::scope::{Block, Clause};
use crate::bind::{Binder, unsupported};
use crate::parse::ast::{self, BinaryOp, ExprKind, Ident, Query, SelectItem, Span};
use crate::plan::*;

/// The subquery that an expression is.
pub(super) fn query_of(expr: &ast::Expr) -> Option<&Query> {
    match &expr.kind {
        ExprKind::Subquery(query) => Some(query),
        _ => None,
    }
}

pub(super) fn row(columns: Vec<ast::Expr>) -> ast::Expr {
    of_kind(ExprKind::Row(columns))
}

impl Binder<'_> {
    /// A comparison of rows of which subqueries give one or both; `None` if it is none.
    pub(super) fn row_with_subquery(
        &mut self,
        op: BinaryOp,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> Result<Option<Expr>, SqlError> {
        let is_row = |side: &ast::Expr| matches!(side.kind, ExprKind::Row(_));
        let queries: Vec<&Query> = match (query_of(left), query_of(right)) {
            (Some(query), None) if is_row(right) => vec![query],
            (None, Some(query)) if is_row(left) => vec![query],
            (Some(left), Some(right)) if self.is_row_query(left)? => vec![left, right],
            _ => return Ok(None),
        };
        // A row of NULLs for none is the same but to `<=>`.
        let kind = if op == BinaryOp::NullSafeEq { JoinKind::Left } else { JoinKind::Inner };
        let compared = self.over_rows(kind, &queries, |binder, rows| {
            let mut rows = rows.into_iter();
            let mut side = |side: &ast::Expr| match query_of(side) {
                Some(_) => row(rows.next().unwrap_or_default()),
                None => side.clone(),
            };
            let (left, right) = (side(left), side(right));
            binder.comparison(comparison_of(op), &left, &right)
        });
        compared.map(Some)
    }

    /// `(a, b) IN ((SELECT …), …)`
    pub(super) fn row_among_queries(
        &mut self,
        needle: &[ast::Expr],
        list: &[ast::Expr],
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let queries: Vec<&Query> = list.iter().filter_map(query_of).collect();
        self.over_rows(JoinKind::Left, &queries, |binder, rows| {
            let mut rows = rows.into_iter();
            let item = |item: &ast::Expr| match query_of(item) {
                Some(_) => row(rows.next().unwrap_or_default()),
                None => item.clone(),
            };
            let list: Vec<_> = list.iter().map(item).collect();
            binder.row_in_list(needle, &list, negated)
        })
    }

    /// Whether a subquery has several columns.
    pub(super) fn is_row_query(&mut self, query: &Query) -> Result<bool, SqlError> {
        let is_plain = |item: &SelectItem| matches!(item, SelectItem::Expr { .. });
        match query.first_select() {
            Some(select) if select.items.iter().all(is_plain) => Ok(select.items.len() > 1),
            _ => {
                let (bound, _) = self.again(|binder| binder.bounded(|binder| binder.query(query)))?;
                Ok(bound.outputs.len() > 1)
            }
        }
    }

    /// Binds what is asked of the rows that these subqueries give, or with an outer join of NULLs; `bind` gets the columns of each.
    pub(super) fn over_rows(
        &mut self,
        kind: JoinKind,
        queries: &[&Query],
        bind: impl FnOnce(&mut Self, Vec<Vec<ast::Expr>>) -> Result<Expr, SqlError>,
    ) -> Result<Expr, SqlError> {
        let (query, outer) = self.bounded(|binder| {
            binder.blocks.push(Block { has_rows_only: true, ..Block::new() });
            let bound = binder.over_rows_in_block(kind, queries, bind);
            binder.blocks.pop();
            bound
        })?;
        Ok(self.add_subquery(SubqueryKind::Scalar, query, outer, SqlType::BIGINT, true))
    }

    fn over_rows_in_block(
        &mut self,
        kind: JoinKind,
        queries: &[&Query],
        bind: impl FnOnce(&mut Self, Vec<Vec<ast::Expr>>) -> Result<Expr, SqlError>,
    ) -> Result<QueryExpr, SqlError> {
        let mut from = match kind {
            JoinKind::Left => Some(From::Derived(Derived::unnamed(self.one_row()))),
            JoinKind::Inner => None,
        };
        let mut rows = Vec::with_capacity(queries.len());
        for (at, query) in queries.iter().enumerate() {
            self.block().hidden = true;
            let bound = self.query(query);
            self.block().hidden = false;
            let bound = bound?;
            // No name in the statement begins with a space.
            let named = |at: usize| ident(format!(" {at}"));
            let table = named(at);
            let mut columns = Vec::with_capacity(bound.outputs.len());
            for (place, id) in bound.outputs.iter().enumerate() {
                let name = named(place);
                let info = &mut self.columns[*id];
                info.name = name.name.as_str().into();
                info.nullable |= kind == JoinKind::Left;
                let table = Some(table.clone());
                columns.push(of_kind(ExprKind::Column { database: None, table, column: name }));
            }
            self.push_scope_table(table.name.as_str().into(), &bound.outputs, Vec::new());
            rows.push(columns);
            let right = From::Derived(Derived::unnamed(bound));
            from = Some(match from {
                Some(left) => From::Join(Box::new(Join { kind, left, right, on: None })),
                None => right,
            });
        }
        self.block().clause = Clause::Select;
        let value = bind(self, rows)?;
        let block = self.block();
        if !block.aggregates.is_empty() || !block.window_functions.is_empty() {
            return Err(unsupported("windows and GROUPING() in a row that is compared with a subquery"));
        }
        let subqueries = std::mem::take(&mut block.subqueries);
        let subqueries = subqueries.into_iter().map(|entry| entry.subquery).collect();
        let id = self.add_projected("", &value);
        let from = from.unwrap_or(From::Dual);
        let select = Select { subqueries, ..Select::plain(from, vec![Projected { id, expr: value }]) };
        Ok(QueryExpr::of_block(select, vec![id]))
    }

    fn one_row(&mut self) -> QueryExpr {
        let one = Projected { id: self.add_column("", SqlType::BIGINT, false), expr: Expr::int(1) };
        let outputs = vec![one.id];
        QueryExpr::of_block(Select::plain(From::Dual, vec![one]), outputs)
    }
}

fn ident(name: String) -> Ident {
    Ident { name, span: Span::default() }
}

fn of_kind(kind: ExprKind) -> ast::Expr {
    ast::Expr { kind, span: Span::default() }
}
