//! Subqueries in expressions. Each becomes an entry of its block and a column that stands for its answer.

use avocet_types::SqlType;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{CompareOp, Expr};

use crate::bind::expr::{comparison_of, sides};
use crate::bind::members::keep_duplicates;
use crate::bind::row_subquery::{query_of, row};
use crate::bind::scope::{BlockSubquery, Clause, Stars};
use crate::bind::{Binder, unsupported};
use crate::parse::ast::{self, BinaryOp, ExprKind};
use crate::plan::walk::column_of;
use crate::plan::*;

/// Stands for the left side while its type is found.
const STAND_IN: ColumnId = ColumnId(u32::MAX);

impl Binder<'_> {
    fn subquery(&mut self, query: &ast::Query) -> Result<(QueryExpr, Vec<ColumnId>), SqlError> {
        self.bounded(|binder| binder.query(query))
    }

    pub(super) fn add_subquery(
        &mut self,
        kind: SubqueryKind,
        query: QueryExpr,
        outer: Vec<ColumnId>,
        ty: SqlType,
        nullable: bool,
    ) -> Expr {
        let id = self.add_column("", ty, nullable);
        let block = self.block();
        let before_grouping =
            block.in_aggregate || matches!(block.clause, Clause::From | Clause::Where | Clause::Group);
        let (subquery, clause) = (Subquery { id, kind, query, outer }, block.clause);
        block.subqueries.push(BlockSubquery { subquery, clause, before_grouping });
        self.mark_used(id);
        self.column_expr(id)
    }

    pub(super) fn scalar_subquery(&mut self, query: &ast::Query) -> Result<Expr, SqlError> {
        let (query, outer) = self.subquery(query)?;
        if query.outputs.len() != 1 {
            return Err(ErrorCode::OPERAND_COLUMNS.with(&[&1]));
        }
        let output = query.outputs[0];
        let ty = self.columns[output].ty;
        let value = self.add_subquery(SubqueryKind::Scalar, query, outer, ty, true);
        // What shows a literal insists on its collation no more than the literal does.
        if let (true, Some(id)) = (self.typer.coercible_columns.contains(&output.index()), column_of(&value))
        {
            self.typer.coercible_columns.insert(id.index());
        }
        Ok(value)
    }

    pub(super) fn exists(&mut self, query: &ast::Query, negated: bool) -> Result<Expr, SqlError> {
        self.stars = Stars::All;
        let bound = self.subquery(query);
        self.stars = Stars::None;
        let (mut query, outer) = bound?;
        keep_duplicates(&mut query);
        Ok(self.add_subquery(SubqueryKind::Exists { negated }, query, outer, SqlType::BIGINT, false))
    }

    pub(super) fn in_subquery(
        &mut self,
        expr: &ast::Expr,
        query: &ast::Query,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        if let Some(left) = query_of(expr)
            && self.is_row_query(left)?
        {
            return self.over_rows(JoinKind::Left, &[left], |binder, mut rows| {
                binder.in_subquery(&row(rows.remove(0)), query, negated)
            });
        }
        let needles = match &expr.kind {
            ExprKind::Row(needles) => self.exprs(needles)?,
            _ => vec![self.expr(expr)?],
        };
        let (query, outer) = self.subquery(query)?;
        if query.outputs.len() != needles.len() {
            return Err(ErrorCode::OPERAND_COLUMNS.with(&[&needles.len()]));
        }
        self.membership(needles, query, outer, negated)
    }

    /// `needles IN (query)`, with both sides converted so that they compare.
    fn membership(
        &mut self,
        needles: Vec<Expr>,
        mut query: QueryExpr,
        outer: Vec<ColumnId>,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        keep_duplicates(&mut query);
        let is_set = matches!(query.body, QueryBody::SetOperation(_));
        let mut converted = Vec::with_capacity(needles.len());
        let mut outputs = Vec::with_capacity(needles.len());
        for (needle, output) in needles.into_iter().zip(&query.outputs) {
            self.typer.check_membership(&needle.ty, &self.column_expr(*output).ty, is_set)?;
            let (needle, output) = self.comparable(CompareOp::Eq, needle, *output, &query)?;
            converted.push(needle);
            outputs.push(output);
        }
        let nullable = converted.iter().chain(&outputs).any(|e| e.nullable);
        let query = self.project_over(query, outputs);
        let kind = SubqueryKind::In { needles: converted, negated };
        Ok(self.add_subquery(kind, query, outer, SqlType::BIGINT, nullable))
    }

    /// The two sides of `left op column`, where the query shows the column, converted to what they compare as.
    fn comparable(
        &mut self,
        op: CompareOp,
        left: Expr,
        column: ColumnId,
        query: &QueryExpr,
    ) -> Result<(Expr, Expr), SqlError> {
        let right = self.column_expr(column);
        let left = self.settle(left, right.ty);
        // NULL on one side is of the other's type.
        if left.ty == SqlType::Null || right.ty == SqlType::Null {
            return Ok((left, right));
        }
        // Literals would be folded: what counts is the types.
        let stand_in = Expr::column(STAND_IN.index(), left.ty, left.nullable);
        if self.typer.is_coercible(&left) {
            self.typer.coercible_columns.insert(STAND_IN.index());
        }
        // A column has no COLLATE of its own: the typer is told which of the two stand for an expression that has.
        if self.typer.is_explicit(&left) {
            self.typer.explicit_columns.insert(STAND_IN.index());
        }
        if shown_by(query, column).is_some_and(|expr| self.typer.is_explicit(expr)) {
            self.typer.explicit_columns.insert(column.index());
        }
        let compared = self.typer.compare(op, stand_in, right);
        self.typer.coercible_columns.remove(&STAND_IN.index());
        self.typer.explicit_columns.clear();
        let compared = compared?;
        let (mut left_side, right_side) =
            sides(compared).ok_or_else(|| unsupported("a comparison of this kind with a subquery"))?;
        crate::plan::walk::replace(&mut left_side, &mut |part| {
            column_of(part).filter(|id| *id == STAND_IN).map(|_| left.clone())
        });
        Ok((left_side, right_side))
    }

    /// The query with its outputs computed from those it has; as it is, if they are just these.
    pub(super) fn project_over(&mut self, query: QueryExpr, outputs: Vec<Expr>) -> QueryExpr {
        let unchanged = outputs.len() == query.outputs.len()
            && outputs.iter().zip(&query.outputs).all(|(expr, id)| column_of(expr) == Some(*id));
        if unchanged {
            return query;
        }
        let names: Vec<_> = query.outputs.iter().map(|id| self.columns[*id].name.clone()).collect();
        let projection: Vec<_> = outputs
            .into_iter()
            .enumerate()
            .map(|(i, expr)| {
                let name = names.get(i).cloned().unwrap_or_else(|| "".into());
                Projected { id: self.add_projected(name, &expr), expr }
            })
            .collect();
        let outputs = projection.iter().map(|p| p.id).collect();
        let from = From::Derived(Derived::unnamed(query));
        QueryExpr::of_block(Select::plain(from, projection), outputs)
    }

    /// `left op ANY|ALL (query)`
    pub(super) fn quantified(
        &mut self,
        op: BinaryOp,
        left: &ast::Expr,
        all: bool,
        query: &ast::Query,
    ) -> Result<Expr, SqlError> {
        match (op, all) {
            (BinaryOp::Eq, false) => return self.in_subquery(left, query, false),
            (BinaryOp::Ne, true) => return self.in_subquery(left, query, true),
            _ => {}
        }
        let left = self.expr(left)?;
        let (mut query, outer) = self.subquery(query)?;
        if query.outputs.len() != 1 {
            return Err(ErrorCode::OPERAND_COLUMNS.with(&[&1]));
        }
        keep_duplicates(&mut query);
        let (left, right) = self.comparable(comparison_of(op), left, query.outputs[0], &query)?;
        let nullable = left.nullable || right.nullable;
        let query = self.project_over(query, vec![right]);
        let op = match comparison_of(op) {
            CompareOp::Ne => Comparison::Ne,
            CompareOp::Lt => Comparison::Lt,
            CompareOp::Le => Comparison::Le,
            CompareOp::Gt => Comparison::Gt,
            CompareOp::Ge => Comparison::Ge,
            CompareOp::Eq | CompareOp::NullSafeEq => Comparison::Eq,
        };
        let kind = SubqueryKind::Quantified { op, all, left };
        Ok(self.add_subquery(kind, query, outer, SqlType::BIGINT, nullable))
    }
}

/// What a query shows in a column, if it is of one block.
fn shown_by(query: &QueryExpr, column: ColumnId) -> Option<&Expr> {
    match &query.body {
        QueryBody::Select(select) => {
            select.projection.iter().find(|item| item.id == column).map(|item| &item.expr)
        }
        QueryBody::Nested(inner) => shown_by(inner, column),
        _ => None,
    }
}
