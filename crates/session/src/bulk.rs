//! Rows of a large INSERT, gathered to Arrow batches for the engine's bulk path.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use avocet_engine::{BulkInsert, TableHandle, Txn};
use avocet_types::arrow_map::ColumnBuilder;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::{Datum, Value};

/// Rows per batch.
pub(super) const BATCH: usize = 8192;
/// What a batch has at most of a block's bytes.
const BATCH_SHARE: usize = 4;

pub(super) struct Bulk {
    table: Arc<TableHandle>,
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    rows: usize,
    /// Of strings, which are nearly all of what is large.
    bytes: usize,
    load: Option<BulkInsert>,
}

impl Bulk {
    pub fn new(table: &Arc<TableHandle>) -> Self {
        Self {
            schema: schema(table),
            columns: builders(table),
            table: table.clone(),
            rows: 0,
            bytes: 0,
            load: None,
        }
    }

    /// Adds a row of values of the columns' types.
    pub fn push(&mut self, txn: &mut Txn, row: &[Value]) -> Result<(), SqlError> {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.append(value);
        }
        self.bytes += string_bytes(row);
        self.rows += 1;
        let is_full = self.rows == BATCH || self.bytes >= txn.engine().memory().segment_bytes() / BATCH_SHARE;
        if is_full { self.flush(txn) } else { Ok(()) }
    }

    /// Adds rows whose arrays have the columns' types.
    fn flush(&mut self, txn: &mut Txn) -> Result<(), SqlError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut full = std::mem::replace(&mut self.columns, builders(&self.table));
        (self.rows, self.bytes) = (0, 0);
        let columns = full.iter_mut().map(ColumnBuilder::finish).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error| ErrorCode::UNKNOWN_ERROR.because(error.to_string()))?;
        if self.load.is_none() {
            self.load = Some(txn.bulk_insert(&self.table)?);
        }
        let load = self.load.as_mut().expect("set above");
        Ok(load.push(txn, &batch)?)
    }

    /// Writes what is left; returns how many rows there were in all.
    pub fn finish(mut self, txn: &mut Txn) -> Result<u64, SqlError> {
        self.flush(txn)?;
        match self.load {
            Some(load) => Ok(load.finish(txn)?),
            None => Ok(0),
        }
    }
}

/// What a row has in strings: of rows that are large, nearly everything.
pub(super) fn string_bytes(row: &[Datum<'_>]) -> usize {
    let of = |value: &Datum<'_>| match value {
        Datum::Str(text) => text.len(),
        Datum::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    row.iter().map(of).sum()
}

/// The schema of a table's batches.
pub(super) fn schema(table: &TableHandle) -> SchemaRef {
    let fields = table.def.columns.iter().map(|c| Field::new(&c.name, c.ty.arrow_type(), c.nullable));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

pub(super) fn builders(table: &TableHandle) -> Vec<ColumnBuilder> {
    table.def.columns.iter().map(|column| ColumnBuilder::new(&column.ty, BATCH)).collect()
}
