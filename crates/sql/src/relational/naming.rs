//! Columns under other ids, and what columns and expressions are called.

use avocet_types::expr::Expr;

use crate::plan::{ColumnId, ColumnTable, Projected};

pub(super) fn column(columns: &ColumnTable, id: ColumnId) -> Expr {
    let info = &columns[id];
    Expr::column(id.index(), info.ty, info.nullable)
}

/// `to := from`
pub(super) fn renamed(columns: &ColumnTable, from: ColumnId, to: ColumnId) -> Projected {
    Projected { id: to, expr: column(columns, from) }
}

/// A column's name: with its table's, if it is a stored one.
pub(super) fn name(columns: &ColumnTable, id: ColumnId) -> String {
    let info = &columns[id];
    match &info.origin {
        Some(origin) if origin.alias.is_empty() => {
            origin.table.columns[origin.column].shown_name().to_owned()
        }
        Some(origin) => format!("{}.{}", origin.alias, origin.table.columns[origin.column].shown_name()),
        None if info.name.is_empty() => format!("#{}", id.0),
        None => info.name.to_string(),
    }
}

pub(super) fn sql(columns: &ColumnTable, expr: &Expr) -> String {
    expr.sql(|index| name(columns, ColumnId(index as u32))).to_string()
}
