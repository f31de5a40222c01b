//! Rows that are compared with a subquery: `(a, b) = (SELECT …)`.
//!
//! Such a comparison is the scalar subquery `(SELECT (a, b) = (r.1, r.2) FROM (SELECT …) r)`: NULL without a row, error 1242 for
//! more than one.

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::Expr;

use crate::bind::Binder;
use crate::parse::ast::{self, BinaryOp, ExprKind, Ident, Query, QueryBody, SelectItem, Span, TableRef};

/// One side of the comparison.
enum Side<'q> {
    Row(&'q [ast::Expr]),
    Subquery(&'q Query),
}

impl<'q> Side<'q> {
    fn of(expr: &'q ast::Expr) -> Option<Self> {
        match &expr.kind {
            ExprKind::Row(row) => Some(Self::Row(row)),
            ExprKind::Subquery(query) => Some(Self::Subquery(query)),
            _ => None,
        }
    }

    /// How many columns it has; not known of `SELECT *`.
    fn len(&self) -> Option<usize> {
        match self {
            Self::Row(row) => Some(row.len()),
            Self::Subquery(query) => {
                let items = &query.first_select()?.items;
                items.iter().all(|item| matches!(item, SelectItem::Expr { .. })).then_some(items.len())
            }
        }
    }
}

impl Binder<'_> {
    /// `None` if neither side is a subquery of several columns that meets a row.
    pub(super) fn row_with_subquery(
        &mut self,
        op: BinaryOp,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> Result<Option<Expr>, SqlError> {
        let (Some(left), Some(right)) = (Side::of(left), Side::of(right)) else { return Ok(None) };
        let len = match (&left, &right) {
            (Side::Row(_), Side::Row(_)) => return Ok(None),
            (Side::Subquery(_), Side::Subquery(_)) => match left.len().or(right.len()) {
                Some(len) if len > 1 => len,
                _ => return Ok(None),
            },
            (Side::Row(row), _) | (_, Side::Row(row)) => row.len(),
        };
        let wrong = || ErrorCode::OPERAND_COLUMNS.with(&[&len]);
        if [&left, &right].iter().any(|side| side.len().is_some_and(|own| own != len)) {
            return Err(wrong());
        }
        let mut from = Vec::new();
        let sides = [(left, "left"), (right, "right")].map(|(side, alias)| match side {
            Side::Row(row) => row.to_vec(),
            Side::Subquery(query) => {
                let names: Vec<Ident> = (1..=len).map(|at| ident(&format!("{alias} {at}"))).collect();
                let columns = names.iter().map(|name| column(alias, name)).collect();
                from.push(derived(query, alias, names));
                columns
            }
        });
        let [left, right] = sides.map(|row| Box::new(of_kind(ExprKind::Row(row))));
        let mut query = Query::select_of([of_kind(ExprKind::Binary { op, left, right })]);
        if let QueryBody::Select(select) = &mut query.body {
            select.from = from;
        }
        match self.scalar_subquery(&query) {
            Err(error) if error.is(ErrorCode::VIEW_WRONG_LIST) => Err(wrong()),
            bound => bound.map(Some),
        }
    }
}

/// The space keeps it apart from names that the row may have.
fn ident(name: &str) -> Ident {
    Ident { name: name.to_owned(), span: Span::default() }
}

fn of_kind(kind: ExprKind) -> ast::Expr {
    ast::Expr { kind, span: Span::default() }
}

fn column(table: &str, name: &Ident) -> ast::Expr {
    let table = Some(ident(&format!(" {table}")));
    of_kind(ExprKind::Column { database: None, table, column: name.clone() })
}

fn derived(query: &Query, alias: &str, columns: Vec<Ident>) -> TableRef {
    TableRef::Derived {
        query: Box::new(query.clone()),
        alias: Some(ident(&format!(" {alias}"))),
        columns,
        lateral: false,
        span: Span::default(),
    }
}
