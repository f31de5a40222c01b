//! A table's columns as column blocks have them.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use avocet_storage::cold::{Block, ColdType, ColumnsView, ViewColumn, block_key};
use avocet_types::{ColumnBuilder, ColumnDef, StoredColumn, StoredColumns, TableDef};

use crate::error::{EngineError, Result};

/// The block types of a table's columns.
pub(crate) fn cold_types(def: &TableDef) -> Result<Arc<[ColdType]>> {
    let field = |column: &ColumnDef| Field::new(&column.name, column.ty.arrow_type(), column.nullable);
    Ok(ColdType::of_schema(&Schema::new(def.columns.iter().map(field).collect::<Vec<_>>()))?)
}

/// How a table sees blocks.
pub(crate) enum BlockView {
    /// As they were written: with these columns.
    AsWritten(Arc<[ColdType]>),
    /// Its columns have changed under them.
    Columns(ColumnsView),
}

impl BlockView {
    pub fn of(def: &TableDef) -> Result<Self> {
        let types = cold_types(def)?;
        Ok(match &def.stored {
            None => Self::AsWritten(types),
            Some(stored) => Self::Columns(view(def, &types, stored)),
        })
    }

    /// A block with the table's columns, of one as it was written. One of another table is refused by name: what reads rows takes
    /// columns for what the table says.
    pub fn see(&self, block: Arc<Block>) -> Result<Arc<Block>> {
        let types = match self {
            Self::AsWritten(types) => types,
            Self::Columns(view) => return Ok(Arc::new(view.of(&block)?)),
        };
        let columns = &block.meta().columns;
        let other = |why: String| Err(EngineError::corrupt(block_key(block.id()), why));
        if columns.len() != types.len() {
            return other(format!("it has {} columns, and the table {}", columns.len(), types.len()));
        }
        match columns.iter().zip(&**types).position(|(column, ty)| column.ty != *ty) {
            None => Ok(block),
            Some(n) => {
                other(format!("its column {n} is {:?}, and the table's {:?}", columns[n].ty, types[n]))
            }
        }
    }
}

fn view(def: &TableDef, types: &[ColdType], stored: &StoredColumns) -> ColumnsView {
    let column = |((stored, ty), def): ((&StoredColumn, &ColdType), &ColumnDef)| {
        let mut before = ColumnBuilder::new(&def.ty, 1);
        before.append(&stored.before);
        ViewColumn { position: stored.position.into(), ty: *ty, before: before.finish() }
    };
    ColumnsView::new(stored.columns.iter().zip(types).zip(&def.columns).map(column).collect())
}
