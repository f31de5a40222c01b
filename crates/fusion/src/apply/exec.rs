//! The operator that answers a subquery for each row of its input.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatchOptions, UInt64Array, new_null_array};
use arrow::compute::{cast, concat_batches, take, take_record_batch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;
use avocet_sql::relational::{ApplyKind, Checkpoint};
use avocet_types::Value;
use avocet_types::arrow_map::datum_at;
use avocet_types::error::ErrorCode;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PlanProperties, execute_stream,
};
use futures::StreamExt;

use super::Applied;
use super::answer::{Answer, Key, KeyMaker, KeySet};
use crate::udf::external;

/// Answers that are kept for rows with the same outer values, at most.
const MEMO_BYTES: usize = 64 << 20;

pub struct ApplyExec {
    input: Arc<dyn ExecutionPlan>,
    applied: Arc<Applied>,
    /// The outer values, then the needles.
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    state: Arc<SessionState>,
    properties: Arc<PlanProperties>,
}

impl ApplyExec {
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        applied: Arc<Applied>,
        exprs: Vec<Arc<dyn PhysicalExpr>>,
        schema: SchemaRef,
        state: Arc<SessionState>,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { input, applied, exprs, schema, state, properties: Arc::new(properties) }
    }
}

impl fmt::Debug for ApplyExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApplyExec({:?})", self.applied)
    }
}

impl DisplayAs for ApplyExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApplyExec: {:?}", self.applied)
    }
}

impl ExecutionPlan for ApplyExec {
    fn name(&self) -> &str {
        "ApplyExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    /// One partition: all rows share what was answered before.
    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expr in &self.exprs {
            if f(expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| self.input.clone());
        Ok(Arc::new(Self::new(
            input,
            self.applied.clone(),
            self.exprs.clone(),
            self.schema.clone(),
            self.state.clone(),
        )))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context.clone())?;
        let outer: Vec<_> = self.applied.outer.iter().map(|(_, ty)| ty.arrow_type()).collect();
        let worker = Worker {
            memo_keys: KeyMaker::new(&outer)?,
            needle_keys: KeyMaker::new(&self.applied.keys)?,
            applied: self.applied.clone(),
            exprs: self.exprs.clone(),
            schema: self.schema.clone(),
            state: self.state.clone(),
            memory: MemoryConsumer::new("answers of a subquery").register(context.memory_pool()),
            context,
            memo: HashMap::new(),
            memo_bytes: 0,
            current: None,
        };
        let stream = futures::stream::try_unfold((input, worker), |(mut input, mut worker)| async move {
            loop {
                if let Some(batch) = worker.next_piece().await? {
                    return Ok(Some((batch, (input, worker))));
                }
                match input.next().await {
                    None => return Ok(None),
                    Some(batch) => worker.begin(batch?)?,
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), stream)))
    }
}

/// An answer, and its part of the query's memory.
struct Counted {
    answer: Answer,
    memory: MemoryReservation,
}

struct Worker {
    applied: Arc<Applied>,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    state: Arc<SessionState>,
    context: Arc<TaskContext>,
    memo_keys: KeyMaker,
    needle_keys: KeyMaker,
    memo: HashMap<Key, Arc<Counted>>,
    memo_bytes: usize,
    memory: MemoryReservation,
    current: Option<Current>,
}

/// A batch of the input, and how far its rows are answered.
struct Current {
    batch: RecordBatch,
    outer: Vec<ArrayRef>,
    needles: Vec<ArrayRef>,
    keys: Vec<Key>,
    /// The row that is next; its answer, if that is there already, and the part of it that is next.
    row: usize,
    answer: Option<Arc<Counted>>,
    part: usize,
}

impl Worker {
    fn begin(&mut self, batch: RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        let mut outer = self
            .exprs
            .iter()
            .map(|expr| expr.evaluate(&batch)?.into_array(rows))
            .collect::<Result<Vec<ArrayRef>>>()?;
        let needles = outer.split_off(self.applied.outer.len());
        let keys = self.memo_keys.keys(&outer, rows)?;
        self.current = Some(Current { batch, outer, needles, keys, row: 0, answer: None, part: 0 });
        Ok(())
    }

    /// What comes next of the current batch, which is forgotten when it has given all.
    async fn next_piece(&mut self) -> Result<Option<RecordBatch>> {
        let Some(mut current) = self.current.take() else { return Ok(None) };
        let ApplyKind::Rows { outer } = self.applied.kind else {
            return self.with_answers(current).await.map(Some);
        };
        let piece = self.beside(&mut current, outer).await?;
        self.current = (current.row < current.batch.num_rows()).then_some(current);
        Ok(Some(piece))
    }

    /// All rows, each with its answer.
    async fn with_answers(&mut self, current: Current) -> Result<RecordBatch> {
        let Current { batch, outer, needles, keys, .. } = current;
        let rows = batch.num_rows();
        let mut answers = Vec::with_capacity(rows);
        for (row, key) in keys.into_iter().enumerate() {
            answers.push(self.answer(key, &outer, row).await?);
        }
        let column = self.column(&answers, &needles, rows)?;
        let columns = batch.columns().iter().cloned().chain([column]).collect();
        with_schema(columns, &self.schema, rows)
    }

    /// The answer for a row, remembered from one with the same outer values or made now.
    async fn answer(&mut self, key: Key, outer: &[ArrayRef], row: usize) -> Result<Arc<Counted>> {
        if let Some(answer) = self.memo.get(&key) {
            return Ok(answer.clone());
        }
        let types = self.applied.outer.iter().map(|(_, ty)| ty);
        let values: Vec<Value> =
            outer.iter().zip(types).map(|(array, ty)| datum_at(array, row, ty).into_owned()).collect();
        let logical = self.applied.plan(&values).map_err(external)?;
        let plan = self.state.create_physical_plan(&logical).await?;
        let answer = Arc::new(self.ask(plan).await?);
        let bytes = key.bytes() + answer.memory.size();
        if self.memo_bytes + bytes > MEMO_BYTES {
            self.forget();
        }
        if !self.applied.varies {
            self.memo_bytes += bytes;
            self.memo.insert(key, answer.clone());
        }
        Ok(answer)
    }

    fn forget(&mut self) {
        self.memo.clear();
        self.memo_bytes = 0;
    }

    /// Runs a subquery; what is kept of its rows is counted.
    async fn ask(&mut self, plan: Arc<dyn ExecutionPlan>) -> Result<Counted> {
        let memory = self.memory.new_empty();
        let mut batches = execute_stream(plan, self.context.clone())?;
        let mut answer = self.no_rows()?;
        let mut rows = 0;
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            rows += batch.num_rows();
            let bytes = match &mut answer {
                Answer::Exists(_) if rows > 0 => {
                    answer = Answer::Exists(true);
                    break;
                }
                Answer::Value(_) if rows > 1 => {
                    return Err(external(ErrorCode::SUBQUERY_NO_1_ROW.with(&[])));
                }
                Answer::Value(value) if batch.num_rows() == 1 => {
                    *value = ScalarValue::try_from_array(batch.column(0), 0)?;
                    value.size()
                }
                Answer::Exists(_) | Answer::Value(_) => 0,
                Answer::Set(set) => {
                    let before = set.bytes();
                    let keys = self.needle_keys.keys(batch.columns(), batch.num_rows())?;
                    keys.into_iter().for_each(|key| set.add(key));
                    set.bytes() - before
                }
                Answer::Rows(all) => {
                    let bytes = batch.get_array_memory_size();
                    all.push(batch);
                    bytes
                }
            };
            // Answers of earlier rows can be asked for again.
            if memory.try_grow(bytes).is_err() {
                self.forget();
                memory.try_grow(bytes)?;
            }
        }
        Ok(Counted { answer, memory })
    }

    /// What a subquery without rows answers.
    fn no_rows(&self) -> Result<Answer> {
        Ok(match self.applied.kind {
            ApplyKind::Exists { .. } => Answer::Exists(false),
            ApplyKind::Rows { .. } => Answer::Rows(Vec::new()),
            ApplyKind::Scalar => {
                let ty = self.schema.field(self.schema.fields().len() - 1).data_type();
                Answer::Value(ScalarValue::try_from(ty)?)
            }
            ApplyKind::In { .. } | ApplyKind::Quantified { .. } => Answer::Set(KeySet::default()),
        })
    }

    /// The answers as a column.
    fn column(&self, answers: &[Arc<Counted>], needles: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        if self.applied.kind == ApplyKind::Scalar {
            return self.values(answers);
        }
        let needles = self.needle_keys.keys(needles, rows)?;
        let mut truth = Vec::with_capacity(rows);
        for (row, answer) in answers.iter().enumerate() {
            // One with a NULL in it may be compared with all rows of the answer.
            self.applied.lowerer.stop.check().map_err(external)?;
            truth.push(self.truth(&answer.answer, needles.get(row)));
        }
        Ok(cast(&BooleanArray::from(truth), &DataType::Int64)?)
    }

    /// The values, of which those of one answer are there once: rows of the same outer values share its bytes.
    fn values(&self, answers: &[Arc<Counted>]) -> Result<ArrayRef> {
        let (mut places, mut values) = (HashMap::new(), Vec::new());
        let places = answers.iter().map(|answer| {
            *places.entry(Arc::as_ptr(answer)).or_insert_with(|| {
                values.push(match &answer.answer {
                    Answer::Value(value) => value.clone(),
                    _ => ScalarValue::Null,
                });
                values.len() as u64 - 1
            })
        });
        let places = UInt64Array::from_iter_values(places);
        if values.is_empty() {
            let ty = self.schema.field(self.schema.fields().len() - 1).data_type();
            return Ok(new_null_array(ty, 0));
        }
        Ok(take(&ScalarValue::iter_to_array(values)?, &places, None)?)
    }

    fn truth(&self, answer: &Answer, needle: Option<&Key>) -> Option<bool> {
        match (self.applied.kind, answer, needle) {
            (ApplyKind::Exists { negated }, Answer::Exists(exists), _) => Some(*exists != negated),
            (ApplyKind::In { negated }, Answer::Set(set), Some(needle)) => {
                set.contains(needle).map(|found| found != negated)
            }
            (ApplyKind::Quantified { op, all }, Answer::Set(set), Some(needle)) => {
                set.compare(needle, op, all)
            }
            _ => None,
        }
    }

    /// Rows beside those that they are answered with, about a batch of them: a row at a time is asked for, and its answer may be
    /// given in several pieces.
    async fn beside(&mut self, current: &mut Current, outer: bool) -> Result<RecordBatch> {
        let own = (current.batch.num_columns()..self.schema.fields().len()).collect::<Vec<_>>();
        let own = Arc::new(self.schema.project(&own)?);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let most = self.context.session_config().batch_size();
        while left.len() < most && current.row < current.batch.num_rows() {
            let row = current.row;
            let answer = match &current.answer {
                Some(answer) => answer.clone(),
                None => self.answer(current.keys[row].clone(), &current.outer, row).await?,
            };
            let batches = match &answer.answer {
                Answer::Rows(batches) => &batches[..],
                _ => &[],
            };
            while left.len() < most
                && let Some(part) = batches.get(current.part)
            {
                left.extend(std::iter::repeat_n(row as u64, part.num_rows()));
                right.push(with_schema(part.columns().to_vec(), &own, part.num_rows())?);
                current.part += 1;
            }
            if current.part < batches.len() {
                current.answer = Some(answer);
                break;
            }
            if outer && batches.iter().all(|part| part.num_rows() == 0) {
                let nulls = own.fields().iter().map(|field| new_null_array(field.data_type(), 1)).collect();
                left.push(row as u64);
                right.push(with_schema(nulls, &own, 1)?);
            }
            (current.row, current.answer, current.part) = (row + 1, None, 0);
        }
        let rows = left.len();
        let taken = take_record_batch(&current.batch, &UInt64Array::from(left))?;
        let given = concat_batches(&own, &right)?;
        let columns = taken.columns().iter().chain(given.columns()).cloned().collect();
        with_schema(columns, &self.schema, rows)
    }
}

fn with_schema(
    columns: Vec<ArrayRef>,
    schema: &SchemaRef,
    rows: usize,
) -> Result<RecordBatch, DataFusionError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}
