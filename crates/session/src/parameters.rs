//! What clients are told of a prepared statement's parameters that stand for columns: drivers send values by it (Connector/J an
//! integer as unsigned or not).

use avocet_sql::parse::ast::{Expr, ExprKind, TableRef};
use avocet_sql::parse::statement::{Assignment, Insert, InsertSource, Update};
use avocet_types::SqlType;
use avocet_types::schema::TableDef;

use super::insert::targets;
use super::state::Session;

/// A value that is a parameter alone is of its column's type.
fn note(value: &Expr, ty: SqlType, params: &mut [SqlType]) {
    if let ExprKind::Param(index) = value.kind
        && let Some(param) = params.get_mut(index as usize)
    {
        *param = ty;
    }
}

fn note_assigned(assignments: &[Assignment], table: &TableDef, params: &mut [SqlType]) {
    for assignment in assignments {
        if let Some(column) = table.column(&assignment.column.name) {
            note(&assignment.value, table.columns[column].ty, params);
        }
    }
}

impl Session {
    pub(super) fn type_inserted_params(&self, insert: &Insert, params: &mut [SqlType]) {
        let database = insert.table.database.as_ref().map(|database| database.name.as_str());
        let Some(database) = database.or(self.database.as_deref()) else { return };
        let catalog = self.catalog();
        let Some(table) = catalog.table(database, &insert.table.name.name) else { return };
        let Ok(targets) = targets(table, insert) else { return };
        if let InsertSource::Values(rows) = &insert.source {
            for row in rows {
                for (value, target) in row.iter().zip(&targets) {
                    note(value, table.def.columns[*target].ty, params);
                }
            }
        }
        note_assigned(&insert.on_duplicate, &table.def, params);
    }

    pub(super) fn type_assigned_params(&self, update: &Update, params: &mut [SqlType]) {
        let [TableRef::Table { name, .. }] = &update.tables[..] else { return };
        let database = name.database.as_ref().map(|database| database.name.as_str());
        let Some(database) = database.or(self.database.as_deref()) else { return };
        if let Some(table) = self.catalog().table(database, &name.name.name) {
            note_assigned(&update.assignments, &table.def, params);
        }
    }
}
