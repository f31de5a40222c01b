//! Which tables a query of the catalog asks for: tools ask for one at a time, and making the rows of all takes long.

use avocet_sql::plan::walk::column_of;
use avocet_sql::plan::{BoundQuery, From, QueryBody, TableScan};
use avocet_types::Datum;
use avocet_types::expr::{CompareOp, Expr, ExprKind};
use avocet_types::schema::TableDef;

use super::super::output::Only;

/// What the conditions of a query of this table alone say of TABLE_SCHEMA and TABLE_NAME. They are tested afterwards, too.
pub(crate) fn only_of(bound: &BoundQuery, table: &TableDef) -> Only {
    let mut only = Only::default();
    if !bound.body.ctes.is_empty() {
        return only;
    }
    let QueryBody::Select(select) = &bound.body.body else { return only };
    let (From::Table(scan), Some(filter)) = (&select.from, &select.filter) else { return only };
    if scan.table.id == table.id && select.subqueries.is_empty() {
        restrict(filter, scan, &mut only);
    }
    only
}

fn restrict(condition: &Expr, scan: &TableScan, only: &mut Only) {
    match &condition.kind {
        ExprKind::And(parts) => parts.iter().for_each(|part| restrict(part, scan, only)),
        ExprKind::Compare { op: CompareOp::Eq, left, right } => {
            for (column, literal) in [(left, right), (right, left)] {
                let Some(name) = column_of(column).and_then(|id| {
                    let (at, _) = scan.columns.iter().find(|(_, known)| *known == id)?;
                    Some(scan.table.columns[*at].name.as_str())
                }) else {
                    continue;
                };
                // Brought to the column's character set.
                let literal = match &literal.kind {
                    ExprKind::Convert(literal) => literal,
                    _ => literal,
                };
                let Some(Datum::Str(text)) = literal.as_literal() else { continue };
                // Names are compared byte by byte but for blanks at their ends.
                if text.ends_with(' ') {
                    continue;
                }
                match name {
                    "TABLE_SCHEMA" => only.database = Some(text.as_ref().into()),
                    "TABLE_NAME" => only.table = Some(text.as_ref().into()),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}
