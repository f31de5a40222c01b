//! Zero dates as NULLs: where a condition of WHERE asks of a NOT NULL column of dates whether it IS NULL, its zero dates are found
//! (MySQL 8.4 Reference Manual, 14.4.2, `IS NULL`: for ODBC, which has no zero dates).
//!
//! As in MySQL this holds for what stands alone or under AND in WHERE, of columns of stored tables that are named without a view
//! or derived table between; and not for TIMESTAMP.

use avocet_types::expr::{CompareOp, Expr, ExprKind, IsTest};
use avocet_types::schema::TableDef;
use avocet_types::temporal::{ZERO_DATE, ZERO_DATETIME};
use avocet_types::{Datum, SqlType};

use super::Binder;

impl Binder<'_> {
    /// A condition of WHERE over the block's tables.
    pub(super) fn zero_dates_as_null(&self, condition: Expr) -> Expr {
        let tables = &self.blocks.last().expect("WHERE is of a block").tables;
        self.zero_dates_of(condition, &|id| {
            let mut stored = tables.iter().filter(|table| table.is_stored).flat_map(|table| &table.columns);
            let column = stored.find(|column| column.id.index() == id);
            let origin = column.and_then(|column| self.columns[column.id].origin.as_ref());
            origin.is_some_and(|from| !from.table.columns[from.column].nullable)
        })
    }

    /// A condition over one table's columns, by their places.
    pub(super) fn zero_dates_of_table(&self, condition: Expr, table: &TableDef) -> Expr {
        self.zero_dates_of(condition, &|at| table.columns.get(at).is_some_and(|column| !column.nullable))
    }

    fn zero_dates_of(&self, condition: Expr, has_no_null: &dyn Fn(usize) -> bool) -> Expr {
        match condition.kind {
            ExprKind::And(parts) => {
                let parts = parts.into_iter().map(|part| self.zero_dates_of(part, has_no_null)).collect();
                self.typer.and(parts)
            }
            ExprKind::Is { expr: column, test: IsTest::Null, negated: false }
                if is_date(&column, has_no_null) =>
            {
                let zero = zero_of(column.ty);
                let kind =
                    ExprKind::Compare { op: CompareOp::Eq, left: column.clone(), right: Box::new(zero) };
                let is_zero = Expr::truth(kind, column.nullable);
                match column.nullable {
                    // An outer join fills it up with NULLs, too.
                    true => {
                        let kind = ExprKind::Is { expr: column, test: IsTest::Null, negated: false };
                        self.typer.or(vec![Expr::truth(kind, false), is_zero])
                    }
                    false => is_zero,
                }
            }
            kind => Expr { kind, ..condition },
        }
    }
}

fn is_date(expr: &Expr, has_no_null: &dyn Fn(usize) -> bool) -> bool {
    let ExprKind::Column(column) = &expr.kind else { return false };
    matches!(expr.ty, SqlType::Date | SqlType::DateTime { .. }) && has_no_null(*column)
}

fn zero_of(ty: SqlType) -> Expr {
    match ty {
        SqlType::Date => Expr::literal(Datum::Date(ZERO_DATE), ty),
        _ => Expr::literal(Datum::DateTime(ZERO_DATETIME), ty),
    }
}
