//! JSON_TABLE: each row of the input beside the rows that its document has. A document that is the same for all is that of one
//! row without columns.
//!
//! What a document gives goes on in batches as soon as they are full; only those of one input row are held at a time, and count
//! as the query's memory.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatchOptions, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{Field, SchemaRef};
use arrow::record_batch::RecordBatch;
use avocet_sql::plan::ColumnId;
use avocet_types::arrow_map::datum_at;
use avocet_types::error::SqlError;
use avocet_types::expr::{EvalContext, EvalError, EvalResult, Expr};
use avocet_types::json::Node;
use avocet_types::json::table::Level;
use avocet_types::{ColumnBuilder, Datum, SqlType};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{
    self as df, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNodeCore,
};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::StreamExt;

use crate::lower::Lowerer;
use crate::names::{df_result, name_of};
use crate::udf::external;

/// A batch that has so many bytes goes on, however few rows it has.
const BATCH_BYTES: usize = 4 << 20;
/// Rows between two looks at whether the statement was ended.
const ROWS_PER_CHECK: usize = 1024;

/// The rows of a document, those of their columns that are asked for.
struct Expansion {
    level: Arc<Level>,
    /// Places in the level's rows.
    kept: Vec<(usize, SqlType)>,
    /// A row without any is beside NULLs.
    outer: bool,
    context: Arc<EvalContext>,
}

impl fmt::Debug for Expansion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path={}, outer={}", self.level.path, self.outer)
    }
}

impl Lowerer {
    /// The input's rows beside those of their documents; `columns` are those of the level, in order.
    pub(super) fn expanded(
        &mut self,
        input: LogicalPlan,
        document: &Expr,
        level: &Arc<Level>,
        columns: &[ColumnId],
        outputs: &[ColumnId],
        outer: bool,
    ) -> std::result::Result<LogicalPlan, SqlError> {
        let document = self.value(document)?.expr;
        let place = |id: &ColumnId| Some((columns.iter().position(|column| column == id)?, *id));
        let kept: Vec<_> = outputs.iter().filter_map(place).collect();
        let types = self.columns();
        let field = |(_, id): &(usize, ColumnId)| Field::new(name_of(*id), types[*id].ty.arrow_type(), true);
        let added: Vec<_> = kept.iter().map(field).collect();
        let kept = kept.into_iter().map(|(at, id)| (at, types[id].ty)).collect();
        let expansion = Expansion { level: level.clone(), kept, outer, context: self.context.clone() };
        let node = df_result(JsonTableNode::new(Arc::new(expansion), input, document, added))?;
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
    }

    /// The rows of a document that no row gives.
    pub(super) fn json_table(
        &mut self,
        document: &Expr,
        level: &Arc<Level>,
        columns: &[ColumnId],
        outputs: &[ColumnId],
    ) -> std::result::Result<LogicalPlan, SqlError> {
        let one_row = df_result(LogicalPlanBuilder::empty(true).build())?;
        self.expanded(one_row, document, level, columns, outputs, false)
    }
}

/// The logical node.
#[derive(Clone, Debug)]
pub struct JsonTableNode {
    expansion: Arc<Expansion>,
    input: LogicalPlan,
    document: df::Expr,
    schema: DFSchemaRef,
}

impl JsonTableNode {
    fn new(
        expansion: Arc<Expansion>,
        input: LogicalPlan,
        document: df::Expr,
        added: Vec<Field>,
    ) -> Result<Self> {
        let fields = input.schema().iter().map(|(q, f)| (q.cloned(), f.clone()));
        let fields = fields.chain(added.into_iter().map(|field| (None, Arc::new(field)))).collect();
        let schema = DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?;
        Ok(Self { expansion, input, document, schema: Arc::new(schema) })
    }

    /// Of its input, whose schema is the logical one's.
    pub fn physical(
        &self,
        input: Arc<dyn ExecutionPlan>,
        document: Arc<dyn PhysicalExpr>,
    ) -> Arc<dyn ExecutionPlan> {
        let schema = Arc::new(self.schema.as_arrow().clone());
        Arc::new(JsonTableExec::new(self.expansion.clone(), input, document, schema))
    }

    pub fn document(&self) -> &df::Expr {
        &self.document
    }
}

impl PartialEq for JsonTableNode {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.expansion, &other.expansion)
            && self.document == other.document
            && self.input == other.input
    }
}

impl Eq for JsonTableNode {}

impl PartialOrd for JsonTableNode {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        if self == other { Some(std::cmp::Ordering::Equal) } else { None }
    }
}

impl Hash for JsonTableNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.document.hash(state);
        self.input.hash(state);
    }
}

impl UserDefinedLogicalNodeCore for JsonTableNode {
    fn name(&self) -> &str {
        "JsonTable"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<df::Expr> {
        vec![self.document.clone()]
    }

    fn prevent_predicate_push_down_columns(&self) -> std::collections::HashSet<String> {
        let added = self.schema.fields().iter().rev().take(self.expansion.kept.len());
        added.map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonTable: {:?}", self.expansion)
    }

    fn with_exprs_and_inputs(&self, mut exprs: Vec<df::Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let missing = || DataFusionError::Internal("JsonTable has one input and one document".into());
        let (document, input) = (exprs.pop().ok_or_else(missing)?, inputs.pop().ok_or_else(missing)?);
        let own = self.schema.fields().iter().skip(self.input.schema().fields().len());
        let added = own.map(|field| field.as_ref().clone()).collect();
        Self::new(self.expansion.clone(), input, document, added)
    }
}

#[derive(Debug)]
struct JsonTableExec {
    expansion: Arc<Expansion>,
    input: Arc<dyn ExecutionPlan>,
    document: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl JsonTableExec {
    fn new(
        expansion: Arc<Expansion>,
        input: Arc<dyn ExecutionPlan>,
        document: Arc<dyn PhysicalExpr>,
        schema: SchemaRef,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            datafusion::physical_plan::Partitioning::UnknownPartitioning(
                input.output_partitioning().partition_count(),
            ),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { expansion, input, document, schema, properties: Arc::new(properties) }
    }
}

impl DisplayAs for JsonTableExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonTableExec: {:?}", self.expansion)
    }
}

impl ExecutionPlan for JsonTableExec {
    fn name(&self) -> &str {
        "JsonTableExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        f(&self.document)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| self.input.clone());
        let (expansion, document) = (self.expansion.clone(), self.document.clone());
        Ok(Arc::new(Self::new(expansion, input, document, self.schema.clone())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context.clone())?;
        let expander = Expander {
            expansion: self.expansion.clone(),
            schema: self.schema.clone(),
            batch_rows: context.session_config().batch_size(),
            memory: MemoryConsumer::new("rows of JSON_TABLE").register(context.memory_pool()),
            made: Made::new(&self.expansion),
            rows: 0,
            ready: VecDeque::new(),
            failed: None,
        };
        let document = self.document.clone();
        let stream = futures::stream::try_unfold(
            (input, expander, None),
            move |(mut input, mut expander, mut current)| {
                let document = document.clone();
                async move {
                    loop {
                        if let Some(batch) = expander.next_ready() {
                            return Ok(Some((batch, (input, expander, current))));
                        }
                        if let Some(some) = current.take() {
                            current = expander.expand(some)?;
                            continue;
                        }
                        let Some(batch) = input.next().await else { return Ok(None) };
                        let batch = batch?;
                        let documents = document.evaluate(&batch)?.into_array(batch.num_rows())?;
                        current = Some(Input { batch, documents, next: 0 });
                    }
                }
            },
        );
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), stream)))
    }
}

/// A batch of the input.
struct Input {
    batch: RecordBatch,
    documents: ArrayRef,
    /// The row that is next.
    next: usize,
}

/// Rows that no batch has yet.
struct Made {
    /// The input's row of each.
    beside: Vec<u64>,
    columns: Vec<ColumnBuilder>,
    bytes: usize,
}

impl Made {
    fn new(expansion: &Expansion) -> Self {
        let columns = expansion.kept.iter().map(|(_, ty)| ColumnBuilder::new(ty, 0)).collect();
        Self { beside: Vec::new(), columns, bytes: 0 }
    }
}

struct Expander {
    expansion: Arc<Expansion>,
    schema: SchemaRef,
    batch_rows: usize,
    memory: MemoryReservation,
    made: Made,
    rows: usize,
    /// Batches and their bytes.
    ready: VecDeque<(RecordBatch, usize)>,
    /// Why a document's rows ended early.
    failed: Option<DataFusionError>,
}

impl Expander {
    fn next_ready(&mut self) -> Option<RecordBatch> {
        let (batch, bytes) = self.ready.pop_front()?;
        self.memory.shrink(bytes);
        Some(batch)
    }

    /// Goes on with the input's rows until there is something to give; `None` when it has no more.
    fn expand(&mut self, mut input: Input) -> Result<Option<Input>> {
        let expansion = self.expansion.clone();
        while input.next < input.batch.num_rows() {
            let row = input.next;
            input.next += 1;
            let before = self.rows;
            if let Datum::Bytes(document) = datum_at(&input.documents, row, &SqlType::Json) {
                let emit = &mut |values: &[Datum<'static>]| self.add(&input.batch, row, values);
                let done = expansion.level.rows(Node::new(&document), &expansion.context, emit);
                done.map_err(|error| self.failed.take().unwrap_or_else(|| external(error)))?;
            }
            if self.rows == before && expansion.outer {
                self.made.beside.push(row as u64);
                self.made.columns.iter_mut().for_each(|column| column.append(&Datum::Null));
                self.rows += 1;
            }
            if !self.ready.is_empty() {
                return Ok(Some(input));
            }
        }
        self.flush(&input.batch)?;
        Ok(None)
    }

    fn add(&mut self, batch: &RecordBatch, row: usize, values: &[Datum<'static>]) -> EvalResult<()> {
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_PER_CHECK) {
            self.expansion.context.check()?;
        }
        self.made.beside.push(row as u64);
        for ((at, _), column) in self.expansion.kept.iter().zip(&mut self.made.columns) {
            self.made.bytes += bytes_of(&values[*at]);
            column.append(&values[*at]);
        }
        if self.made.beside.len() >= self.batch_rows || self.made.bytes >= BATCH_BYTES {
            self.flush(batch).map_err(|error| {
                self.failed = Some(error);
                EvalError::Interrupted
            })?;
        }
        Ok(())
    }

    /// Makes a batch of what there is.
    fn flush(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = self.made.beside.len();
        if rows == 0 {
            return Ok(());
        }
        let bytes = self.made.bytes + rows * batch.num_columns() * size_of::<u128>();
        self.memory.try_grow(bytes)?;
        self.made.bytes = 0;
        let beside = UInt64Array::from(std::mem::take(&mut self.made.beside));
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for column in batch.columns() {
            columns.push(take(column, &beside, None)?);
        }
        columns.extend(self.made.columns.iter_mut().map(ColumnBuilder::finish));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let made = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        self.ready.push_back((made, bytes));
        Ok(())
    }
}

fn bytes_of(value: &Datum<'_>) -> usize {
    match value {
        Datum::Str(text) => text.len() + size_of::<u128>(),
        Datum::Bytes(bytes) => bytes.len() + size_of::<u128>(),
        _ => size_of::<u64>(),
    }
}
