//! Expressions that an index has: of functional key parts, and of generated columns with an index. Where a condition compares such
//! an expression, or rows are ordered or grouped by it, the column is read instead, so that whoever plans the query finds the
//! index as it finds one on any other column (MySQL 8.4 Reference Manual, 10.3.11, "Optimizer Use of Generated Column Indexes").
//!
//! ```text
//!  KEY k ((a + 1))     WHERE a + 1 = 8 ORDER BY a + 1   ──▶   WHERE hidden = 8 ORDER BY hidden
//! ```
//!
//! Invariants:
//! 1. An expression is the column's if both are the same by structure, with the same types of all operands. Literals may have
//!    other collations: those of definitions name their character set.
//! 2. It is replaced only beside operators to which it means the same: the column's type compares as the expression's does.
//! 3. Columns that an outer join fills up with NULLs stand for nothing: their expression may have another value then.

use std::sync::Arc;

use avocet_types::expr::{CompareOp, Expr, ExprKind, Function, IsTest};
use avocet_types::schema::TableDef;
use avocet_types::{Collation, SqlType};

use super::Binder;
use crate::kept::bind_expr;
use crate::plan::walk::for_each_query_mut;
use crate::plan::*;

/// A column that has an expression's values.
struct Computed {
    /// As [`shape`] makes it.
    shape: Expr,
    column: Expr,
}

impl Binder<'_> {
    /// Puts columns with an index in the place of the expressions that they are computed from.
    pub(super) fn read_indexed(&mut self, body: &mut QueryExpr) {
        let mut read = Vec::new();
        for_each_query_mut(body, &mut |query| read_indexed_of(query, &mut read));
        read.into_iter().for_each(|id| self.mark_used(id));
    }
}

fn read_indexed_of(query: &mut QueryExpr, read: &mut Vec<ColumnId>) {
    let QueryExpr { body: QueryBody::Select(select), order_by, .. } = query else { return };
    let computed = of_from(&mut select.from, read);
    if computed.is_empty() {
        return;
    }
    select.filter.iter_mut().for_each(|filter| in_condition(filter, &computed, read));
    match &mut select.aggregation {
        Some(aggregation) => {
            aggregation.keys.iter_mut().for_each(|key| exactly(&mut key.expr, &computed, read))
        }
        None => {
            let is_key = |shown: &&mut Projected| order_by.iter().any(|key| key.column == shown.id);
            let keys = select.projection.iter_mut().filter(is_key);
            keys.for_each(|key| exactly(&mut key.expr, &computed, read));
        }
    }
}

/// As a query's conditions, one over the columns of a table by their positions.
pub(super) fn in_condition_of_table(condition: &mut Expr, table: &Arc<TableDef>) {
    let computed = of_table(table, &|column| Some(column));
    if !computed.is_empty() {
        in_condition(condition, &computed, &mut Vec::new());
    }
}

/// As a query's sort keys.
pub(super) fn in_sort_key_of_table(key: &mut Expr, table: &Arc<TableDef>) {
    exactly(key, &of_table(table, &|column| Some(column)), &mut Vec::new());
}

/// The columns that stand for expressions behind a FROM; the conditions of its joins use them.
fn of_from(from: &mut From, read: &mut Vec<ColumnId>) -> Vec<Computed> {
    match from {
        From::Table(scan) => {
            let id =
                |column: usize| scan.columns.iter().find(|(at, _)| *at == column).map(|(_, id)| id.index());
            of_table(&scan.table, &id)
        }
        From::Join(join) => {
            let mut left = of_from(&mut join.left, read);
            let of_left = left.len();
            left.append(&mut of_from(&mut join.right, read));
            if let Some(on) = join.on.as_mut().filter(|_| !left.is_empty()) {
                in_condition(on, &left, read);
            }
            if join.kind == JoinKind::Left {
                left.truncate(of_left);
            }
            left
        }
        From::Dual | From::Derived(_) | From::Cte(_) => Vec::new(),
    }
}

/// Those of a table, whose columns have other numbers in the query.
fn of_table(table: &Arc<TableDef>, number: &dyn Fn(usize) -> Option<usize>) -> Vec<Computed> {
    if !table.has_indexed_expressions() {
        return Vec::new();
    }
    let indexes = || table.indexes.iter().filter(|index| !index.invisible);
    let is_indexed = |at: usize| indexes().flat_map(|index| &index.parts).any(|part| part.column == at);
    let columns = table.columns.iter().enumerate().filter(|(at, _)| is_indexed(*at));
    let computed = columns.filter_map(|(at, column)| {
        let generated = column.generated.as_ref()?;
        // One that does not bind any more is damaged; whoever writes rows says so.
        let expr = bind_expr(&generated.expr, table, false).ok()?;
        if expr.columns().iter().any(|of| number(*of).is_none()) {
            return None;
        }
        let expr = expr.map_columns(&mut |of| number(of).unwrap_or(of));
        let column = Expr::column(number(at)?, column.ty, column.nullable);
        Some(Computed { shape: shape(&expr), column })
    });
    computed.collect()
}

/// An expression without what does not tell it from others.
fn shape(expr: &Expr) -> Expr {
    expr.clone().transform(&mut |mut part| {
        part.nullable = true;
        if matches!(part.kind, ExprKind::Literal(_)) && part.ty.is_string() {
            part.ty = SqlType::VarChar { len: 0, collation: Collation::DEFAULT };
        }
        // DATE(x), which definitions keep as a CAST.
        part.kind = match part.kind {
            ExprKind::Convert(time)
                if part.ty == SqlType::Date && matches!(time.ty, SqlType::DateTime { .. }) =>
            {
                ExprKind::Cast(time)
            }
            kind => kind,
        };
        part
    })
}

fn in_condition(expr: &mut Expr, computed: &[Computed], read: &mut Vec<ColumnId>) {
    match &mut expr.kind {
        ExprKind::And(parts) | ExprKind::Or(parts) => {
            parts.iter_mut().for_each(|part| in_condition(part, computed, read));
        }
        ExprKind::Not(inner) => in_condition(inner, computed, read),
        ExprKind::Compare { op, left, right } if *op != CompareOp::Ne => {
            operand(left, computed, read);
            operand(right, computed, read);
        }
        ExprKind::Between { expr, .. }
        | ExprKind::InList { expr, .. }
        | ExprKind::Is { expr, test: IsTest::Null, .. } => operand(expr, computed, read),
        _ => {}
    }
}

/// Replaces what is compared.
fn operand(expr: &mut Expr, computed: &[Computed], read: &mut Vec<ColumnId>) {
    if matches!(expr.kind, ExprKind::Column(_) | ExprKind::Literal(_) | ExprKind::Param(_)) {
        return;
    }
    let wanted = shape(expr);
    let stands_for = |computed: &&Computed| {
        (computed.shape == wanted || unquoted(&computed.shape) == Some(&wanted))
            && compares_alike(&computed.column.ty, &expr.ty)
    };
    if let Some(found) = computed.iter().find(stands_for) {
        put(expr, found, read);
    } else if let ExprKind::Convert(inner) = &mut expr.kind {
        exactly(inner, computed, read);
    }
}

/// Replaces a whole expression where its type counts, too.
fn exactly(expr: &mut Expr, computed: &[Computed], read: &mut Vec<ColumnId>) {
    if computed.is_empty() || matches!(expr.kind, ExprKind::Column(_) | ExprKind::Literal(_)) {
        return;
    }
    let wanted = shape(expr);
    if let Some(found) = computed.iter().find(|found| found.shape == wanted && found.column.ty == expr.ty) {
        put(expr, found, read);
    }
}

fn put(expr: &mut Expr, found: &Computed, read: &mut Vec<ColumnId>) {
    if let ExprKind::Column(column) = found.column.kind {
        read.push(ColumnId(column as u32));
        *expr = found.column.clone();
    }
}

/// What is cast to a string of the collation that it has anyway, `CAST(j->>'$.a' AS CHAR(30)) COLLATE utf8mb4_bin`, is also that
/// without the cast: a value that it would cut is refused when it is stored.
fn unquoted(shape: &Expr) -> Option<&Expr> {
    let cast = match &shape.kind {
        ExprKind::Collate(inner) => &**inner,
        _ => shape,
    };
    let ExprKind::Cast(inner) = &cast.kind else { return None };
    let is_unquoted = matches!(inner.kind, ExprKind::Call(Function::JsonUnquote, _));
    (is_unquoted && shape.ty.is_string() && shape.ty.collation() == inner.ty.collation()).then_some(&**inner)
}

/// Whether values of both types compare in the same way with whatever they meet.
fn compares_alike(column: &SqlType, expr: &SqlType) -> bool {
    if column == expr {
        return true;
    }
    let is_varying = |ty: &SqlType| matches!(ty, SqlType::VarChar { .. } | SqlType::Text { .. });
    match (column, expr) {
        (SqlType::Int { .. } | SqlType::Bool, SqlType::Int { .. } | SqlType::Bool) => {
            column.is_unsigned() == expr.is_unsigned()
        }
        (SqlType::Decimal { scale: a, .. }, SqlType::Decimal { scale: b, .. }) => a == b,
        (SqlType::VarBinary { .. }, SqlType::VarBinary { .. }) => true,
        _ if is_varying(column) && is_varying(expr) => column.collation() == expr.collation(),
        _ => false,
    }
}
