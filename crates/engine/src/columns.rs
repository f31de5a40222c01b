//! A table's columns as column blocks have them.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use avocet_storage::cold::{ColdType, ColumnsView, ViewColumn};
use avocet_types::{ColumnBuilder, ColumnDef, StoredColumn, StoredColumns, TableDef};

use crate::error::Result;

/// The block types of a table's columns.
pub(crate) fn cold_types(def: &TableDef) -> Result<Arc<[ColdType]>> {
    let field = |column: &ColumnDef| Field::new(&column.name, column.ty.arrow_type(), column.nullable);
    Ok(ColdType::of_schema(&Schema::new(def.columns.iter().map(field).collect::<Vec<_>>()))?)
}

/// How a table whose columns have changed under its blocks sees these.
pub(crate) fn view(def: &TableDef, stored: &StoredColumns) -> Result<ColumnsView> {
    let types = cold_types(def)?;
    let column = |((stored, ty), def): ((&StoredColumn, &ColdType), &ColumnDef)| {
        let mut before = ColumnBuilder::new(&def.ty, 1);
        before.append(&stored.before);
        ViewColumn { position: stored.position.into(), ty: *ty, before: before.finish() }
    };
    Ok(ColumnsView::new(stored.columns.iter().zip(&*types).zip(&def.columns).map(column).collect()))
}
