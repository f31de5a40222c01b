//! What analytics reads: scans of a snapshot, in morsels.

use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use avocet_base::RowId;
use avocet_engine::KeySet;
use avocet_sql::relational::{ScanPaths, Statistics};
use avocet_types::Value;
use avocet_types::error::SqlError;
use avocet_types::expr::CompareOp;
use avocet_types::schema::TableDef;

/// Opens scans; one for each statement, at the statement's snapshot.
pub trait ScanSource: Statistics + Debug + Send + Sync + 'static {
    fn open(&self, table: &Arc<TableDef>, request: ScanRequest) -> Result<Arc<dyn MorselScan>, SqlError>;

    /// Whether scans give exactly the rows for which the predicate holds, and not only drop some others.
    fn filters_exactly(&self, table: &TableDef, predicate: &ColumnPredicate) -> bool;
}

#[derive(Clone, Debug, Default)]
pub struct ScanRequest {
    /// Positions in the table, in the order in which batches have them. May be empty: then batches only count. The position
    /// after the last column's is that of the row id, `UInt64`; behind it stand those of `paths`.
    pub columns: Vec<usize>,
    /// All hold, or the row is not wanted.
    pub predicates: Vec<ColumnPredicate>,
    /// Columns of values in documents, and conditions on such values, which are applied exactly.
    pub paths: ScanPaths,
    /// The rows are being locked: they are read in their newest versions.
    pub locked: bool,
    /// If given, no other rows are wanted.
    pub only: Option<Arc<HashSet<RowId>>>,
}

/// `column op value`; the value is of the column's type and not NULL.
#[derive(Clone, Debug)]
pub struct ColumnPredicate {
    pub column: usize,
    pub op: CompareOp,
    pub value: Value,
}

/// The values of a column that are wanted.
#[derive(Clone, Debug)]
pub struct ColumnKeys {
    /// Its position in the table.
    pub column: usize,
    pub keys: Arc<KeySet>,
}

/// A scan that several threads read, each a morsel at a time.
pub trait MorselScan: Send + Sync + 'static {
    fn morsels(&self) -> usize;

    /// Begins to read a morsel. Rows that have other values than these in a column need not come.
    fn open(self: Arc<Self>, morsel: usize, keys: &[ColumnKeys]) -> Result<Box<dyn MorselReader>, SqlError>;
}

/// A morsel that one thread reads.
pub trait MorselReader: Send {
    /// The next rows, about so many at most; their columns have `SqlType::arrow_type()`.
    fn next(&mut self, most_rows: usize) -> Result<Option<RecordBatch>, SqlError>;
}

/// A morsel of one batch.
impl MorselReader for Option<RecordBatch> {
    fn next(&mut self, _most_rows: usize) -> Result<Option<RecordBatch>, SqlError> {
        Ok(self.take())
    }
}
