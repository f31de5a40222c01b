//! Tables in memory as what analytics scans.

use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, RecordBatchOptions};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;
pub(crate) use avocet_sql::testing::Memory;
use avocet_types::error::SqlError;
use avocet_types::schema::TableDef;
use avocet_types::{Datum, SqlType};

use crate::{ColumnKeys, ColumnPredicate, MorselReader, MorselScan, ScanRequest, ScanSource};

impl ScanSource for Memory {
    fn open(&self, table: &Arc<TableDef>, request: ScanRequest) -> Result<Arc<dyn MorselScan>, SqlError> {
        let batches = self.batches(&table.name).iter().map(|batch| {
            let columns = request.columns.iter().map(|c| batch.column(*c).clone()).collect();
            let fields: Vec<_> = request.columns.iter().map(|c| batch.schema().field(*c).clone()).collect();
            let schema = Arc::new(arrow::datatypes::Schema::new(fields));
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(schema, columns, &options).expect("columns of the batch")
        });
        Ok(Arc::new(MemoryScan { batches: batches.collect(), columns: request.columns.clone() }))
    }

    fn filters_exactly(&self, _table: &TableDef, _predicate: &ColumnPredicate) -> bool {
        false
    }
}

struct MemoryScan {
    batches: Vec<RecordBatch>,
    /// Their columns in the table.
    columns: Vec<usize>,
}

impl MorselScan for MemoryScan {
    fn morsels(&self) -> usize {
        self.batches.len()
    }

    fn open(self: Arc<Self>, morsel: usize, keys: &[ColumnKeys]) -> Result<Box<dyn MorselReader>, SqlError> {
        let mut batch = self.batches[morsel].clone();
        for of in keys {
            // What a join needs besides is not asked for.
            let Some(at) = self.columns.iter().position(|column| *column == of.column) else { continue };
            let column = cast(batch.column(at), &DataType::Int64).expect("an integer");
            let wanted = column.as_primitive::<Int64Type>().iter();
            let wanted: BooleanArray =
                wanted.map(|key| Some(key.is_some_and(|key| of.keys.contains(key)))).collect();
            batch = filter_record_batch(&batch, &wanted).expect("as many rows");
        }
        Ok(Box::new(Some(batch)))
    }
}

/// A value as MySQL's client shows it.
pub(crate) fn shown(value: &Datum<'_>, ty: &SqlType) -> String {
    if value.is_null() {
        return "NULL".into();
    }
    let mut out = Vec::new();
    avocet_types::text::write_text(value, ty, avocet_types::expr::TimeZone::UTC, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}
