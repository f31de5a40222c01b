//! Set operations: UNION, EXCEPT and INTERSECT, and the types and collations that their columns agree on.

use avocet_types::Expr;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::Typer;

use super::Binder;
use super::scope::Stars;
use crate::parse::ast::{self, SetOperator};
use crate::plan::{QueryBody, QueryExpr, SetOperation};

/// The set operation that another one stands in.
#[derive(Clone, Copy)]
pub(super) struct Around {
    op: SetOperator,
    all: bool,
    /// Nothing but the operation stands there.
    is_alone: bool,
}

impl Around {
    /// `None` for a side that is no set operation.
    fn of(side: &ast::QueryBody, op: SetOperator, all: bool) -> Option<Self> {
        match side {
            ast::QueryBody::SetOperation { .. } => Some(Self { op, all, is_alone: true }),
            ast::QueryBody::Parenthesized(query)
                if matches!(query.body, ast::QueryBody::SetOperation { .. }) =>
            {
                Some(Self { op, all, is_alone: query.is_body_alone() && op != SetOperator::Except })
            }
            _ => None,
        }
    }

    /// Whether both are one operation of more sides, as MySQL has them.
    fn merges(self, op: SetOperator, all: bool) -> bool {
        let is_same_kind = match op {
            SetOperator::Union => !self.all || all,
            SetOperator::Except => self.all == all,
            SetOperator::Intersect => true,
        };
        self.is_alone && self.op == op && is_same_kind
    }
}

impl Binder<'_> {
    pub(super) fn set_operation(
        &mut self,
        op: SetOperator,
        all: bool,
        left: &ast::QueryBody,
        right: &ast::QueryBody,
    ) -> Result<QueryExpr, SqlError> {
        let is_nested = self.around.take().is_some_and(|around| !around.merges(op, all));
        let stars = if self.stars == Stars::All { Stars::OfNothing } else { self.stars };
        let mut side = |side| {
            self.stars = stars;
            self.around = Around::of(side, op, all);
            self.body(side, &[])
        };
        let (left, right) = (side(left)?, side(right)?);
        self.combine(op, all, left, right, is_nested)
    }

    /// `is_nested`: it is a side of another set operation, whose other sides decide on a collation where its own sides agree on none.
    pub(super) fn combine(
        &mut self,
        op: SetOperator,
        all: bool,
        left: QueryExpr,
        right: QueryExpr,
        is_nested: bool,
    ) -> Result<QueryExpr, SqlError> {
        if left.outputs.len() != right.outputs.len() {
            return Err(ErrorCode::WRONG_NUMBER_OF_COLUMNS_IN_SELECT.with(&[]));
        }
        let (mut lefts, mut rights, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for (l, r) in left.outputs.iter().zip(&right.outputs) {
            let mut pair = vec![self.column_expr(*l), self.column_expr(*r)];
            let agree = self.typer.agree_in_union(&pair)?;
            if !agree {
                if !is_nested {
                    return Err(Typer::no_agreement_in_union().into());
                }
                let under = |expr: Expr| self.typer.under_connection_collation(expr);
                pair = pair.into_iter().map(under).collect();
            }
            self.typer.check_alternatives(&pair)?;
            let is_coercible = !agree || pair.iter().all(|expr| self.typer.is_coercible(expr));
            let mut unified = self.typer.unify(pair, "UNION")?;
            let nullable = unified.iter().any(|e| e.nullable);
            let ty = unified[0].ty;
            rights.extend(unified.pop());
            lefts.extend(unified.pop());
            let name = self.columns[*l].name.clone();
            let column = self.add_column(name, ty, nullable);
            if is_coercible {
                self.typer.coercible_columns.insert(column.index());
            }
            columns.push(column);
        }
        self.label_as_computed(&columns);
        let left = self.project_over(left, lefts);
        let right = self.project_over(right, rights);
        let body = SetOperation { op, all, left, right, columns: columns.clone() };
        let body = QueryBody::SetOperation(Box::new(body));
        Ok(QueryExpr { ctes: Vec::new(), body, order_by: Vec::new(), limit: None, outputs: columns })
    }
}
