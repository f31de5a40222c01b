//! What clients are told of columns that come through a derived table, a common table expression or a view.
//!
//! As in MySQL the table is the name that the query has for it. Behind that stand the stored table, or the view, and the column's
//! name in what was named. Keys are told of as far as MySQL merges: rows that it gathers first are a table without any.

use std::sync::Arc;

use avocet_types::expr::{Expr, ExprKind, Function};
use avocet_types::{IntWidth, SqlType};

use super::Binder;
use crate::plan::walk::column_of;
use crate::plan::{ColumnId, ColumnLabel, Projected, QueryBody, QueryExpr, can_merge};

/// What YEAR() gives is kept as a number where rows are gathered: it may be a year that no YEAR has.
const KEPT_YEAR: SqlType = SqlType::Int { width: IntWidth::W32, unsigned: true };

impl Binder<'_> {
    /// Of a query whose rows are gathered before they are read.
    pub(super) fn keep_years(&mut self, query: &mut QueryExpr) {
        if !can_merge(query)
            && let QueryBody::Select(select) = &mut query.body
        {
            self.keep_projected_years(&mut select.projection);
        }
    }

    pub(super) fn keep_projected_years(&mut self, projection: &mut [Projected]) {
        for Projected { id, expr } in projection {
            if expr.ty == SqlType::Year && column_of(expr).is_none() {
                *expr = self.typer.convert(expr.clone(), KEPT_YEAR);
                self.columns[*id].ty = KEPT_YEAR;
            }
        }
    }

    /// Columns of what the query calls `alias`; `of` is the table behind it, if that is not the stored one.
    pub(super) fn label_columns(
        &mut self,
        ids: &[ColumnId],
        alias: &Arc<str>,
        of: Option<&Arc<str>>,
        merges: bool,
    ) {
        for id in ids {
            let info = &mut self.columns[*id];
            let kept_before = info.label.as_ref().is_none_or(|label| label.keeps_keys);
            info.label = Some(ColumnLabel {
                table: alias.clone(),
                org_table: of.cloned(),
                org_name: info.name.clone(),
                keeps_keys: merges && kept_before,
            });
        }
    }

    /// Columns of a block with windows, whose rows are gathered before they are sent.
    pub(super) fn label_as_gathered(&mut self, ids: &[ColumnId]) {
        let none: Arc<str> = "".into();
        for id in ids {
            let info = &mut self.columns[*id];
            let of_table = info.origin.as_ref().map(|origin| ColumnLabel {
                table: origin.alias.clone(),
                org_table: None,
                org_name: origin.table.columns[origin.column].name.as_str().into(),
                keeps_keys: false,
            });
            let computed = || ColumnLabel {
                table: none.clone(),
                org_table: Some(none.clone()),
                org_name: info.name.clone(),
                keeps_keys: false,
            };
            let label = info.label.take().or(of_table).unwrap_or_else(computed);
            info.label = Some(ColumnLabel { keeps_keys: false, ..label });
        }
    }

    /// Columns of a set operation are of no table.
    pub(super) fn label_as_computed(&mut self, ids: &[ColumnId]) {
        let none: Arc<str> = "".into();
        self.label_columns(ids, &none, Some(&none), false);
    }
}

/// Whether MySQL takes an expression for one that may be NULL whatever it is made of: texts that functions and casts make, since
/// they may become too long.
pub(super) fn may_become_null(expr: &Expr) -> bool {
    use Function as F;
    let is_text = expr.ty.is_string() || expr.ty.is_bytes();
    match &expr.kind {
        ExprKind::Call(function, _) if is_text => {
            let keeps = [F::Version, F::MakeSet, F::AnyValue, F::Greatest, F::Least, F::AssignVariable];
            !keeps.contains(function)
        }
        ExprKind::Cast(_) | ExprKind::Collate(_) => is_text,
        _ => false,
    }
}
