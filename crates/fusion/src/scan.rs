//! A snapshot scan as a DataFusion table and operator.
//!
//! Each reference to a table in a query is a table of its own here, with the query's column ids for names. Partitions take
//! morsels from a shared counter, so that none idles while another has a queue.

use std::collections::HashSet;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{ArrayRef, AsArray, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use avocet_base::RowId;
use avocet_engine::KeySet;
use avocet_sql::bind::TableStatistics;
use avocet_sql::relational::{Scan, ScanPaths};
use avocet_types::expr::CompareOp;
use avocet_types::schema::TableDef;
use avocet_types::{SqlType, Value};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Result, ScalarValue, Statistics};
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, Operator, TableProviderFilterPushDown};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use parking_lot::Mutex;

use crate::build_keys::BuildKeys;
use crate::compact::owned;
use crate::names::name_of;
use crate::source::{ColumnKeys, ColumnPredicate, MorselReader, MorselScan, ScanRequest, ScanSource};
use crate::streamed::{Streamed, VECTOR};
use crate::udf::external;

/// What a value takes in a batch beside the bytes of a string, about.
const CELL_BYTES: usize = 16;

/// One reference to a table in a query.
#[derive(Debug)]
pub struct SnapshotTable {
    pub table: Arc<TableDef>,
    /// Positions in the table of the schema's columns.
    pub columns: Vec<usize>,
    pub schema: SchemaRef,
    pub source: Arc<dyn ScanSource>,
    pub statistics: Option<Arc<TableStatistics>>,
    paths: ScanPaths,
    locked: bool,
    only: Option<Arc<HashSet<RowId>>>,
}

impl SnapshotTable {
    pub fn new(scan: &Scan, source: Arc<dyn ScanSource>) -> Self {
        let statistics = scan.statistics.clone();
        let paths = (*scan.paths).clone();
        let scan = &scan.table;
        let table = scan.table.clone();
        let columns: Vec<_> = scan.columns.iter().map(|(position, id)| (*position, name_of(*id))).collect();
        let fields = columns.iter().map(|(position, name)| match table.columns.get(*position) {
            Some(def) => Field::new(name, def.ty.arrow_type(), def.nullable),
            // The row id, which stands after the columns.
            None => Field::new(name, DataType::UInt64, false),
        });
        let of_paths = paths
            .columns
            .iter()
            .map(|path| Field::new(name_of(path.id), path.form.sql_type().arrow_type(), true));
        let schema = Arc::new(Schema::new(fields.chain(of_paths).collect::<Vec<_>>()));
        // Those of paths stand behind the row id.
        let of_paths = (0..paths.columns.len()).map(|path| table.columns.len() + 1 + path);
        let columns = columns.iter().map(|(position, _)| *position).chain(of_paths).collect();
        let (locked, only) = (scan.lock.is_some(), scan.only.clone());
        Self { table, columns, schema, source, statistics, paths, locked, only }
    }

    /// The predicate that the storage can use for a filter.
    fn predicate(&self, filter: &Expr) -> Option<ColumnPredicate> {
        let Expr::BinaryExpr(binary) = filter else { return None };
        let op = compare_op(binary.op)?;
        let (name, value, op) = match (binary.left.as_ref(), binary.right.as_ref()) {
            (Expr::Column(column), Expr::Literal(value, _)) => (&column.name, value, op),
            (Expr::Literal(value, _), Expr::Column(column)) => (&column.name, value, op.flipped()),
            _ => return None,
        };
        let column = self.columns[self.schema.index_of(name).ok()?];
        let ty = &self.table.columns.get(column)?.ty;
        if value.is_null() || value.data_type() != ty.arrow_type() {
            return None;
        }
        // Under other collations the literal's bytes say nothing of the order.
        if ty.order().is_some_and(|c| !c.is_exact()) || matches!(ty, SqlType::Float(_) | SqlType::Double(_)) {
            return None;
        }
        let array = value.to_array().ok()?;
        let value: Value = avocet_types::arrow_map::datum_at(array.as_ref(), 0, ty).into_owned();
        Some(ColumnPredicate { column, op, value })
    }
}

fn compare_op(op: Operator) -> Option<CompareOp> {
    Some(match op {
        Operator::Eq => CompareOp::Eq,
        Operator::NotEq => CompareOp::Ne,
        Operator::Lt => CompareOp::Lt,
        Operator::LtEq => CompareOp::Le,
        Operator::Gt => CompareOp::Gt,
        Operator::GtEq => CompareOp::Ge,
        _ => return None,
    })
}

#[async_trait]
impl TableProvider for SnapshotTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let predicates: Vec<_> = filters.iter().filter_map(|f| self.predicate(f)).collect();
        let fields: Vec<usize> = match projection {
            Some(projection) => projection.clone(),
            None => (0..self.columns.len()).collect(),
        };
        let schema = Arc::new(self.schema.project(&fields)?);
        let columns = fields.iter().map(|f| self.columns[*f]).collect();
        let filtered = !predicates.is_empty() || !self.paths.tests.is_empty();
        let request = ScanRequest {
            columns,
            predicates,
            paths: self.paths.clone(),
            locked: self.locked,
            only: self.only.clone(),
        };
        let scan = self.source.open(&self.table, request).map_err(external)?;
        let partitions = state.config().target_partitions().min(scan.morsels().max(1)).max(1);
        let statistics = self.statistics_of(&fields, filtered);
        let detail = format!("{}.{}", self.table.database, self.table.name);
        // Which rows are locked follows from the statement's conditions alone.
        let is_narrowed = !self.locked && limit.is_none();
        let positions = fields.iter().map(|f| is_narrowed.then(|| self.columns[*f]));
        let positions = positions.map(|at| at.filter(|at| *at < self.table.columns.len())).collect();
        Ok(Arc::new(ScanExec::new(scan, schema, positions, partitions, limit, statistics, detail)))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match self.predicate(filter) {
            Some(p) if self.source.filters_exactly(&self.table, &p) => TableProviderFilterPushDown::Exact,
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.statistics_of(&(0..self.columns.len()).collect::<Vec<_>>(), !self.paths.tests.is_empty()))
    }
}

impl SnapshotTable {
    fn statistics_of(&self, fields: &[usize], filtered: bool) -> Statistics {
        let schema = Schema::new(fields.iter().map(|f| self.schema.field(*f).clone()).collect::<Vec<_>>());
        let Some(known) = &self.statistics else { return Statistics::new_unknown(&schema) };
        let column = |field: &usize| {
            let position = self.columns[*field];
            let (Some(column), Some(def)) = (known.columns.get(position), self.table.columns.get(position))
            else {
                return ColumnStatistics::new_unknown();
            };
            let ty = &def.ty;
            let scalar = |value: &Option<Value>| match value {
                Some(value) => scalar_of(value, ty).map_or(Precision::Absent, Precision::Inexact),
                None => Precision::Absent,
            };
            let count = |n: Option<u64>| n.map_or(Precision::Absent, |n| Precision::Inexact(n as usize));
            let mut statistics = ColumnStatistics::new_unknown();
            statistics.null_count = count(column.nulls);
            statistics.min_value = scalar(&column.min);
            statistics.max_value = scalar(&column.max);
            statistics.distinct_count = count(column.distinct);
            statistics
        };
        let rows = if filtered { known.rows / 3 } else { known.rows };
        Statistics {
            num_rows: Precision::Inexact(rows as usize),
            total_byte_size: Precision::Inexact(rows as usize * 8 * fields.len().max(1)),
            column_statistics: fields.iter().map(column).collect(),
        }
    }
}

/// A value as DataFusion's scalar of the type's Arrow type.
pub fn scalar_of(value: &avocet_types::Datum<'_>, ty: &SqlType) -> Option<ScalarValue> {
    let mut builder = avocet_types::arrow_map::ColumnBuilder::new(ty, 1);
    builder.append(value);
    ScalarValue::try_from_array(&builder.finish(), 0).ok()
}

/// Reads a scan in several partitions.
pub struct ScanExec {
    scan: Arc<dyn MorselScan>,
    schema: SchemaRef,
    /// The schema's columns in the table; none for what rows are not dropped by.
    positions: Arc<[Option<usize>]>,
    keys: Mutex<Vec<ScanKeys>>,
    limit: Option<usize>,
    statistics: Arc<Statistics>,
    detail: String,
    properties: Arc<PlanProperties>,
    runs: Mutex<Runs>,
}

/// The keys of a join, which decide on rows by a column of the table.
#[derive(Clone)]
struct ScanKeys {
    column: usize,
    keys: Arc<BuildKeys>,
}

/// An operator may be run again, in full: nested loops that spill do so. Each run reads all morsels.
#[derive(Default)]
struct Runs {
    /// For each partition, how often it was run.
    begun: Vec<usize>,
    /// For each run, the next morsel.
    next_morsel: Vec<Arc<AtomicUsize>>,
}

impl Runs {
    /// The next morsel of the run that a partition begins.
    fn begin(&mut self, partition: usize) -> Arc<AtomicUsize> {
        if self.begun.len() <= partition {
            self.begun.resize(partition + 1, 0);
        }
        let run = self.begun[partition];
        self.begun[partition] += 1;
        if self.next_morsel.len() <= run {
            self.next_morsel.resize_with(run + 1, Arc::default);
        }
        self.next_morsel[run].clone()
    }
}

impl ScanExec {
    fn new(
        scan: Arc<dyn MorselScan>,
        schema: SchemaRef,
        positions: Arc<[Option<usize>]>,
        partitions: usize,
        limit: Option<usize>,
        statistics: Statistics,
        detail: String,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            scan,
            schema,
            positions,
            keys: Mutex::default(),
            limit,
            statistics: Arc::new(statistics),
            detail,
            properties: Arc::new(properties),
            runs: Mutex::default(),
        }
    }

    /// How many rows there are, about.
    pub fn rows(&self) -> usize {
        self.statistics.num_rows.get_value().copied().unwrap_or(usize::MAX)
    }

    /// Whether rows can be dropped by a field.
    pub fn may_be_narrowed(&self, field: usize) -> bool {
        self.positions[field].is_some()
    }

    /// How many values a field has and between which they are, as far as that is known.
    pub fn known_values(&self, field: usize) -> (Option<usize>, Option<RangeInclusive<i64>>) {
        let known = &self.statistics.column_statistics[field];
        let word = |value: &Precision<ScalarValue>| match value.get_value()? {
            ScalarValue::UInt64(value) => value.map(KeySet::word_of_u64),
            ScalarValue::Date32(days) => days.map(i64::from),
            value => match value.cast_to(&DataType::Int64).ok()? {
                ScalarValue::Int64(value) => value,
                _ => None,
            },
        };
        let range = word(&known.min_value).zip(word(&known.max_value)).map(|(min, max)| min..=max);
        (known.distinct_count.get_value().copied(), range)
    }

    /// Rows that have other values than these in a field need not be read.
    pub fn narrow(&self, field: usize, keys: Arc<BuildKeys>) {
        if let Some(column) = self.positions[field] {
            self.keys.lock().push(ScanKeys { column, keys });
        }
    }
}

impl fmt::Debug for ScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScanExec({})", self.detail)
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScanExec: table={}, morsels={}", self.detail, self.scan.morsels())?;
        if let Some(limit) = self.limit {
            write!(f, ", limit={limit}")?;
        }
        Ok(())
    }
}

/// What one partition reads.
struct Reader {
    scan: Arc<dyn MorselScan>,
    schema: SchemaRef,
    keys: Vec<ScanKeys>,
    has_begun: bool,
    next_morsel: Arc<AtomicUsize>,
    morsel: Option<Box<dyn MorselReader>>,
    /// The last batch of the morsel, cut, as far as it was not passed on yet.
    ready: std::vec::IntoIter<RecordBatch>,
    left: usize,
    batch_rows: usize,
    /// Larger batches are cut to so many rows.
    most_rows: usize,
    /// Instead, if batches are to be small: so many rows as the last ones took fit.
    streamed: Option<Arc<Streamed>>,
}

enum Step {
    Batch(RecordBatch),
    EndOfMorsel,
    End,
}

impl Reader {
    fn next(&mut self) -> Result<Step> {
        loop {
            if self.left == 0 {
                return Ok(Step::End);
            }
            if let Some(batch) = self.ready.next() {
                let batch = batch.slice(0, batch.num_rows().min(self.left));
                self.left -= batch.num_rows();
                return Ok(Step::Batch(batch));
            }
            let Some(morsel) = &mut self.morsel else {
                let next = self.next_morsel.fetch_add(1, Ordering::Relaxed);
                if next >= self.scan.morsels() {
                    return Ok(Step::End);
                }
                let there = self
                    .keys
                    .iter()
                    .filter_map(|of| Some(ColumnKeys { column: of.column, keys: of.keys.set()?.clone() }));
                let keys: Vec<_> = there.collect();
                self.morsel = Some(self.scan.clone().open(next, &keys).map_err(external)?);
                continue;
            };
            match morsel.next(self.most_rows.min(self.left)).map_err(external)? {
                Some(batch) => {
                    self.ready = self.prepared(&batch)?.into_iter();
                    if let Some(streamed) = &self.streamed {
                        let rows = streamed.rows_of(batch_bytes(&batch) / batch.num_rows().max(1));
                        self.most_rows = rows.min(self.batch_rows);
                    }
                }
                None => {
                    self.morsel = None;
                    return Ok(Step::EndOfMorsel);
                }
            }
        }
    }

    /// The next batch. Between two morsels, which may all be without a row that is wanted, others have their turn, and the query can be
    /// ended.
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if !std::mem::replace(&mut self.has_begun, true) {
            for of in &self.keys {
                of.keys.settle().await;
            }
        }
        loop {
            match self.next()? {
                Step::Batch(batch) => return Ok(Some(batch)),
                Step::EndOfMorsel => tokio::task::yield_now().await,
                Step::End => return Ok(None),
            }
        }
    }

    /// A batch of the operator's schema, cut if it is too large.
    fn prepared(&self, batch: &RecordBatch) -> Result<Vec<RecordBatch>> {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch =
            RecordBatch::try_new_with_options(self.schema.clone(), batch.columns().to_vec(), &options)?;
        if batch.num_rows() <= self.most_rows {
            return Ok(vec![batch]);
        }
        let mut pieces = Vec::new();
        cut(&batch, self.most_rows, &mut pieces)?;
        Ok(pieces)
    }
}

/// What the rows of a batch take, wherever its buffers are from.
fn batch_bytes(batch: &RecordBatch) -> usize {
    let of = |column: &ArrayRef| match column.data_type() {
        DataType::Utf8View => column.as_string_view().total_bytes_len(),
        DataType::BinaryView => column.as_binary_view().total_bytes_len(),
        _ => 0,
    };
    let strings: usize = batch.columns().iter().map(of).sum();
    strings + batch.num_rows() * batch.num_columns() * CELL_BYTES
}

/// Cuts a batch to copies of its parts: none keeps the memory of another.
fn cut(batch: &RecordBatch, rows: usize, pieces: &mut Vec<RecordBatch>) -> Result<()> {
    for start in (0..batch.num_rows()).step_by(rows) {
        pieces.push(copied(batch, start..batch.num_rows().min(start + rows))?);
    }
    Ok(())
}

/// A copy of some rows, which keeps no memory of others, unless it is less than that of copies.
pub(super) fn copied(batch: &RecordBatch, rows: Range<usize>) -> Result<RecordBatch> {
    let places = UInt32Array::from_iter_values(rows.start as u32..rows.end as u32);
    let copied = |column: &ArrayRef| -> Result<ArrayRef> { Ok(owned(&take(column, &places, None)?, 1)) };
    let columns = batch.columns().iter().map(copied).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &str {
        "ScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self {
            scan: self.scan.clone(),
            schema: self.schema.clone(),
            positions: self.positions.clone(),
            // The joins of another run have other keys perhaps.
            keys: Mutex::default(),
            limit: self.limit,
            statistics: self.statistics.clone(),
            detail: self.detail.clone(),
            properties: self.properties.clone(),
            runs: Mutex::default(),
        }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let config = context.session_config();
        let (batch_rows, streamed) = (config.batch_size(), config.get_extension());
        let reader = Reader {
            scan: self.scan.clone(),
            schema: self.schema.clone(),
            keys: self.keys.lock().clone(),
            has_begun: false,
            next_morsel: self.runs.lock().begin(partition),
            morsel: None,
            ready: Vec::new().into_iter(),
            left: self.limit.unwrap_or(usize::MAX),
            batch_rows,
            most_rows: streamed.as_ref().map_or(batch_rows, |_| batch_rows.min(VECTOR)),
            streamed,
        };
        let stream = futures::stream::try_unfold(reader, |mut reader| async move {
            Ok(reader.next_batch().await?.map(|batch| (batch, reader)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), stream)))
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        Ok(match partition {
            None => self.statistics.clone(),
            Some(_) => Arc::new(Statistics::new_unknown(&self.schema)),
        })
    }
}
