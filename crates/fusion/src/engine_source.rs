//! The engine's snapshots as what analytics scans.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatchOptions};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Field, Schema, UInt64Type};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use avocet_base::RowId;
use avocet_engine::{
    ColdValue, CompareOp as ColdOp, Morsel, ScanRequest as EngineRequest, SnapshotReader, TableHandle,
    TableSample, TableScan,
};
use avocet_sql::bind::TableStatistics;
use avocet_sql::relational::{ColumnSample, Statistics};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::CompareOp;
use avocet_types::json::{Node, shred};
use avocet_types::schema::TableDef;
use avocet_types::{ColumnBuilder, Datum, SqlType, Value};

use crate::statistics::statistics_of;
use crate::{ColumnKeys, ColumnPredicate, MorselReader, MorselScan, ScanRequest, ScanSource};

/// A table that the server makes up, with its rows as of the statement's begin.
pub struct VirtualRows {
    pub table: Arc<TableDef>,
    pub rows: Vec<Vec<Value>>,
}

impl VirtualRows {
    /// What is asked for, but for predicates, as one batch.
    fn batch(&self, request: &ScanRequest) -> Result<RecordBatch, SqlError> {
        fn at<'r>(row: &'r [Value], column: usize, names: &[Box<str>]) -> Option<Node<'r>> {
            match &row[column] {
                Datum::Bytes(document) => shred::find(Node::new(document), names),
                _ => None,
            }
        }
        let wanted = |row: &&Vec<Value>| {
            request.paths.tests.iter().all(|test| test.test.allows(at(row, test.column, &test.names)))
        };
        let rows: Vec<_> = self.rows.iter().filter(wanted).collect();
        let mut fields = Vec::with_capacity(request.columns.len());
        let mut arrays = Vec::with_capacity(request.columns.len());
        for &column in &request.columns {
            let (name, ty, path) = match self.table.columns.get(column) {
                Some(def) => (&*def.name, def.ty, None),
                None => {
                    let path = &request.paths.columns[column - self.table.columns.len() - 1];
                    ("_path", path.form.sql_type(), Some(path))
                }
            };
            let mut builder = ColumnBuilder::new(&ty, rows.len());
            for row in &rows {
                match path {
                    None => builder.append(&row[column]),
                    Some(path) => path.form.append(at(row, path.column, &path.names), &mut builder),
                }
            }
            arrays.push(builder.finish());
            fields.push(Field::new(name, ty.arrow_type(), true));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .map_err(|error| ErrorCode::UNKNOWN_ERROR.because(error.to_string()))
    }
}

/// Scans of the tables that a transaction's statement holds.
pub struct EngineSource {
    pub reader: SnapshotReader,
    /// For scans of rows that are being locked.
    pub newest: SnapshotReader,
    pub tables: Vec<Arc<TableHandle>>,
    /// Tables that the server makes up, with their rows.
    pub virtual_rows: Vec<VirtualRows>,
}

impl fmt::Debug for EngineSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.tables.iter().map(|table| &table.def.name).collect();
        f.debug_struct("EngineSource").field("tables", &names).finish_non_exhaustive()
    }
}

impl EngineSource {
    fn table(&self, def: &TableDef) -> Option<&Arc<TableHandle>> {
        self.tables.iter().find(|table| table.def.id == def.id)
    }
}

impl Statistics for EngineSource {
    fn statistics(&self, table: &TableDef) -> Option<Arc<TableStatistics>> {
        self.table(table).map(|handle| Arc::new(statistics_of(handle)))
    }

    fn sample(&self, table: &TableDef) -> Option<Arc<dyn ColumnSample>> {
        let table = self.table(table)?.clone();
        Some(Arc::new(EngineSample { sample: table.sample(), table }))
    }
}

impl ScanSource for EngineSource {
    fn open(&self, table: &Arc<TableDef>, request: ScanRequest) -> Result<Arc<dyn MorselScan>, SqlError> {
        if let Some(rows) = self.virtual_rows.iter().find(|rows| rows.table.id == table.id) {
            return Ok(Arc::new(VirtualScan { batch: rows.batch(&request)? }));
        }
        let Some(handle) = self.table(table) else {
            return Err(ErrorCode::NO_SUCH_TABLE.with(&[&table.database, &table.name]));
        };
        let predicates = request.predicates.iter().filter_map(|p| {
            let predicate = stored_predicate(p, &table.columns[p.column].ty)?;
            Some((p.column, predicate))
        });
        let row_id = request.columns.iter().position(|column| *column == table.columns.len());
        let predicates = predicates.collect();
        let mut columns = request.columns;
        if let Some(at) = row_id {
            columns.remove(at);
        }
        let with_row_id = row_id.is_some() || request.only.is_some();
        let reader = if request.locked { &self.newest } else { &self.reader };
        // There the row id stands behind all.
        let width = table.columns.len();
        columns.iter_mut().filter(|column| **column > width).for_each(|column| *column -= 1);
        let paths = request.paths.columns.into_iter().map(|path| avocet_engine::PathColumn {
            column: path.column,
            names: path.names,
            form: path.form,
        });
        let tests = request.paths.tests.into_iter().map(|test| avocet_engine::PathCondition {
            column: test.column,
            names: test.names,
            test: test.test,
        });
        let (paths, path_conditions) = (paths.collect(), tests.collect());
        let request_there = EngineRequest { predicates, columns, paths, path_conditions, with_row_id };
        let scan = reader.scan(handle, request_there);
        Ok(Arc::new(EngineScan { scan, row_id, only: request.only }))
    }

    fn filters_exactly(&self, table: &TableDef, predicate: &ColumnPredicate) -> bool {
        self.table(table).is_some()
            && stored_predicate(predicate, &table.columns[predicate.column].ty).is_some()
    }
}

/// A comparison in the form of column blocks; `None` where they have none.
fn stored_predicate(predicate: &ColumnPredicate, ty: &SqlType) -> Option<avocet_engine::ColumnPredicate> {
    let op = match predicate.op {
        CompareOp::Eq => ColdOp::Eq,
        CompareOp::Ne => ColdOp::Ne,
        CompareOp::Lt => ColdOp::Lt,
        CompareOp::Le => ColdOp::Le,
        CompareOp::Gt => ColdOp::Gt,
        CompareOp::Ge => ColdOp::Ge,
        CompareOp::NullSafeEq => return None,
    };
    let value = match (&predicate.value, ty) {
        (Datum::Int(v), _) => ColdValue::Int(*v),
        (Datum::UInt(v), _) => ColdValue::UInt(*v),
        (Datum::Date(v), _) => ColdValue::Int(i64::from(*v)),
        (Datum::DateTime(v) | Datum::Time(v), _) => ColdValue::Int(*v),
        (Datum::Decimal(v), SqlType::Decimal { precision: 0..=38, scale, .. }) => {
            ColdValue::Int128(v.rescale(*scale).ok()?.as_i128()?)
        }
        (Datum::Str(v), _) => ColdValue::Bytes(v.as_bytes().to_vec().into()),
        (Datum::Bytes(v), _) => ColdValue::Bytes(v.to_vec().into()),
        _ => return None,
    };
    Some(avocet_engine::ColumnPredicate::Compare(op, value))
}

struct EngineSample {
    table: Arc<TableHandle>,
    sample: Arc<TableSample>,
}

impl ColumnSample for EngineSample {
    fn rows(&self) -> usize {
        self.sample.rows()
    }

    fn column(&self, position: usize) -> Option<ArrayRef> {
        self.sample.column(&self.table, position).ok()
    }
}

struct EngineScan {
    scan: TableScan,
    /// Where batches have the row id, if they have it.
    row_id: Option<usize>,
    only: Option<Arc<HashSet<RowId>>>,
}

impl EngineScan {
    /// What the engine gives, with the row id as the last column, in the form in which it was asked for.
    fn arrange(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        let last = batch.num_columns() - 1;
        let batch = match &self.only {
            Some(only) => {
                let ids = batch.column(last).as_primitive::<UInt64Type>().values();
                let wanted: BooleanArray = ids.iter().map(|id| Some(only.contains(&RowId(*id)))).collect();
                filter_record_batch(&batch, &wanted)?
            }
            None => batch,
        };
        let mut order: Vec<usize> = (0..last).collect();
        if let Some(at) = self.row_id {
            order.insert(at, last);
        }
        batch.project(&order)
    }
}

impl MorselScan for EngineScan {
    fn morsels(&self) -> usize {
        self.scan.morsels()
    }

    fn open(self: Arc<Self>, morsel: usize, keys: &[ColumnKeys]) -> Result<Box<dyn MorselReader>, SqlError> {
        let narrowed = keys
            .iter()
            .map(|of| (of.column, avocet_engine::ColumnPredicate::Keys(of.keys.clone())))
            .collect();
        let morsel = self.scan.open_narrowed(morsel, &narrowed)?;
        Ok(Box::new(EngineMorsel { scan: self, morsel }))
    }
}

struct EngineMorsel {
    scan: Arc<EngineScan>,
    morsel: Morsel,
}

impl MorselReader for EngineMorsel {
    fn next(&mut self, most_rows: usize) -> Result<Option<RecordBatch>, SqlError> {
        let batch = self.morsel.next(&self.scan.scan, most_rows)?;
        match batch {
            Some(batch) if self.scan.row_id.is_some() || self.scan.only.is_some() => {
                let arranged = self.scan.arrange(batch);
                arranged.map(Some).map_err(|error| ErrorCode::UNKNOWN_ERROR.because(error.to_string()))
            }
            batch => Ok(batch),
        }
    }
}

/// A table of the server's own: one batch.
struct VirtualScan {
    batch: RecordBatch,
}

impl MorselScan for VirtualScan {
    fn morsels(&self) -> usize {
        1
    }

    fn open(
        self: Arc<Self>,
        _morsel: usize,
        _keys: &[ColumnKeys],
    ) -> Result<Box<dyn MorselReader>, SqlError> {
        Ok(Box::new(Some(self.batch.clone())))
    }
}
