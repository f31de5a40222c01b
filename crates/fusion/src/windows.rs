//! Window functions within a query's memory.
//!
//! DataFusion counts none of the rows that its window operators keep. One of them keeps all of its input, until the last row; it is
//! replaced here by one that works partition by partition:
//!
//! ```text
//!   rows, sorted by PARTITION BY ─▶ the rows of one partition ─▶ its last row ─▶ evaluate ─▶ rows with results
//!                                     │ more than memory allows
//!                                     ▼
//!                                   rows to a file, values into accumulators ─▶ rows from the file with the results
//! ```
//!
//! The second way is for aggregates over whole partitions, of which all rows get the same result. Other functions that look ahead to the
//! end of a partition fail if it does not fit.
//!
//! The other operator passes rows on as soon as their frames have been read. It is metered: what it has read and not passed on yet
//! is what it keeps, besides the rows of frames that reach back. What functions show of texts is counted for a whole partition, and
//! bounded by how many rows go into the other operator at a time (shown_texts.rs).

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::{concat, concat_batches};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::utils::evaluate_partition_ranges;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SpillFile, TaskContext};
use datafusion::logical_expr::{Accumulator, WindowFrameBound, WindowFrameUnits};
use datafusion::physical_expr::window::PlainAggregateWindowExpr;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::spill::SpillManager;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, WindowExpr};
use futures::StreamExt;
use parking_lot::Mutex;

use crate::compact::own_bytes;
use crate::memory::QueryPool;
use crate::scan::copied;
use crate::shown_texts::{Longest, Pieces, Shown, bytes_of, most_of, shown_by};

/// Replaces the one operator and meters the other.
#[derive(Debug)]
pub struct CountWindows;

impl PhysicalOptimizerRule for CountWindows {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|plan| {
            if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
                let by_partition = PartitionsExec { window: Arc::new(window.clone()) };
                return Ok(Transformed::yes(Arc::new(by_partition) as _));
            }
            if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
                return Ok(Transformed::yes(metered(window)?));
            }
            Ok(Transformed::no(plan))
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "count_windows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Window functions, partition by partition.
#[derive(Debug)]
struct PartitionsExec {
    /// What is computed.
    window: Arc<WindowAggExec>,
}

impl DisplayAs for PartitionsExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PartitionsExec: ")?;
        self.window.fmt_as(t, f)
    }
}

impl ExecutionPlan for PartitionsExec {
    fn name(&self) -> &str {
        "PartitionsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.window.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.window.input()]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.window.apply_expressions(f)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| self.window.input().clone());
        let window = WindowAggExec::try_new(self.window.window_expr().to_vec(), input, true)?;
        Ok(Arc::new(Self { window: Arc::new(window) }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.window.input().execute(partition, context.clone())?;
        let schema = self.window.schema();
        let runtime = context.runtime_env();
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), partition);
        let can_spill =
            runtime.disk_manager.tmp_files_enabled() && self.window.window_expr().iter().all(is_of_partition);
        let consumer = MemoryConsumer::new(format!("rows of a window's partition[{partition}]"));
        let memory = consumer.with_can_spill(can_spill).register(context.memory_pool());
        // One result for all rows of a partition is there once.
        let functions = self.window.window_expr().iter().filter(|expr| !is_of_partition(expr));
        let worker = Worker {
            shown: shown_by(&functions.cloned().collect::<Vec<_>>()),
            exprs: self.window.window_expr().to_vec(),
            keys: self.window.partition_by_sort_keys()?,
            schema: schema.clone(),
            batch_rows: context.session_config().batch_size(),
            kept: Vec::new(),
            last_key: None,
            memory_of_ready: memory.new_empty(),
            memory,
            spill: SpillManager::new(runtime.clone(), metrics, input.schema()),
            can_spill,
            large: None,
            ready: VecDeque::new(),
        };
        let stream = futures::stream::try_unfold((input, worker), |(mut input, mut worker)| async move {
            loop {
                if let Some(batch) = worker.next_ready().await? {
                    return Ok(Some((batch, (input, worker))));
                }
                match input.next().await {
                    Some(batch) => worker.read(batch?)?,
                    None if worker.is_done() => return Ok(None),
                    None => worker.end_partitions()?,
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }
}

/// Whether all rows of a partition get the same result, that of an aggregate over all of them.
fn is_of_partition(expr: &Arc<dyn WindowExpr>) -> bool {
    let frame = expr.get_window_frame();
    let is_whole = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => frame.units == WindowFrameUnits::Range && expr.order_by().is_empty(),
        bound => bound.is_unbounded(),
    };
    expr.as_any().is::<PlainAggregateWindowExpr>()
        && is_whole(&frame.start_bound)
        && is_whole(&frame.end_bound)
}

/// Rows that are passed on.
enum Ready {
    /// With their results, from this one on.
    Rows(RecordBatch, usize),
    /// Rows that all have the same results.
    Alike(SendableRecordBatchStream, Vec<ScalarValue>),
}

struct Worker {
    exprs: Vec<Arc<dyn WindowExpr>>,
    shown: Vec<Shown>,
    /// PARTITION BY.
    keys: Vec<PhysicalSortExpr>,
    schema: SchemaRef,
    batch_rows: usize,
    /// The last partition, as far as it was read; of a large one, what is not in files.
    kept: Vec<RecordBatch>,
    /// The last row's.
    last_key: Option<Vec<ScalarValue>>,
    memory: MemoryReservation,
    memory_of_ready: MemoryReservation,
    spill: SpillManager,
    can_spill: bool,
    large: Option<Large>,
    ready: VecDeque<Ready>,
}

/// A partition that is larger than memory allows.
struct Large {
    files: Vec<Arc<dyn SpillFile>>,
    accumulators: Vec<Box<dyn Accumulator>>,
}

impl Worker {
    fn is_done(&self) -> bool {
        self.kept.is_empty() && self.large.is_none() && self.ready.is_empty()
    }

    async fn next_ready(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            match self.ready.front_mut() {
                None => {
                    self.memory_of_ready.free();
                    return Ok(None);
                }
                Some(Ready::Rows(rows, next)) if *next < rows.num_rows() => {
                    let begin = *next;
                    *next = rows.num_rows().min(begin + self.batch_rows);
                    return match *next - begin == rows.num_rows() {
                        true => Ok(Some(rows.clone())),
                        false => copied(rows, begin..*next).map(Some),
                    };
                }
                Some(Ready::Alike(rows, results)) => {
                    if let Some(batch) = rows.next().await {
                        return with_results(&batch?, results, &self.schema).map(Some);
                    }
                    self.ready.pop_front();
                }
                Some(Ready::Rows(..)) => drop(self.ready.pop_front()),
            }
        }
    }

    /// Takes rows in; all partitions but the last are complete then.
    fn read(&mut self, batch: RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(());
        }
        let partitions = self.partitions(&batch)?;
        let goes_on = match &self.last_key {
            Some(last) => *last == self.key(&batch, 0)?,
            None => true,
        };
        let head = if goes_on { partitions[0].end } else { 0 };
        self.last_key = Some(self.key(&batch, rows - 1)?);
        if head > 0 {
            self.keep(batch.slice(0, head))?;
        }
        if head == rows {
            return Ok(());
        }
        if self.large.is_some() {
            self.end_partitions()?;
        }
        let last = partitions.last().map_or(0, |last| last.start);
        if last > head {
            // They are in memory already, and will be passed on.
            let complete = batch.slice(head, last - head);
            self.memory.grow(self.bytes(&complete));
            self.kept.push(complete);
        }
        self.end_partitions()?;
        self.keep(batch.slice(last, rows - last))
    }

    fn partitions(&self, batch: &RecordBatch) -> Result<Vec<Range<usize>>> {
        let keys =
            self.keys.iter().map(|key| key.evaluate_to_sort_column(batch)).collect::<Result<Vec<_>>>()?;
        evaluate_partition_ranges(batch.num_rows(), &keys)
    }

    fn key(&self, batch: &RecordBatch, row: usize) -> Result<Vec<ScalarValue>> {
        let row = batch.slice(row, 1);
        let value =
            |key: &PhysicalSortExpr| ScalarValue::try_from_array(&key.expr.evaluate(&row)?.into_array(1)?, 0);
        self.keys.iter().map(value).collect()
    }

    /// What rows take until they are passed on: a second time when they are put together, and their results.
    fn bytes(&self, batch: &RecordBatch) -> usize {
        2 * own_bytes(batch) + batch.num_rows() * self.exprs.len() * size_of::<u128>()
    }

    /// Keeps rows of the last partition.
    fn keep(&mut self, batch: RecordBatch) -> Result<()> {
        if let Some(large) = &mut self.large {
            accumulate(&self.exprs, &mut large.accumulators, &batch)?;
        }
        let refused = self.memory.try_grow(self.bytes(&batch)).err();
        self.kept.push(batch);
        match refused {
            None => Ok(()),
            Some(refused) if !self.can_spill => Err(refused),
            Some(_) => self.spill(),
        }
    }

    fn spill(&mut self) -> Result<()> {
        let batches = std::mem::take(&mut self.kept);
        let large = match &mut self.large {
            Some(large) => large,
            None => {
                let mut accumulators = self.exprs.iter().map(accumulator).collect::<Result<Vec<_>>>()?;
                for batch in &batches {
                    accumulate(&self.exprs, &mut accumulators, batch)?;
                }
                self.large.insert(Large { files: Vec::new(), accumulators })
            }
        };
        large.files.extend(self.spill.spill_record_batch_and_finish(&batches, "a window's partition")?);
        self.memory.free();
        Ok(())
    }

    /// Computes the results of all that was read.
    fn end_partitions(&mut self) -> Result<()> {
        let kept = std::mem::take(&mut self.kept);
        self.memory_of_ready = self.memory.take();
        if let Some(mut large) = self.large.take() {
            let results =
                large.accumulators.iter_mut().map(|result| result.evaluate()).collect::<Result<Vec<_>>>()?;
            for file in large.files {
                let rows = self.spill.read_spill_as_stream(file, None)?;
                self.ready.push_back(Ready::Alike(rows, results.clone()));
            }
            let rows = futures::stream::iter(kept.into_iter().map(Ok));
            let rows = RecordBatchStreamAdapter::new(self.spill.schema().clone(), rows);
            self.ready.push_back(Ready::Alike(Box::pin(rows), results));
            return Ok(());
        }
        let Some(first) = kept.first() else { return Ok(()) };
        let rows = concat_batches(&first.schema(), &kept)?;
        drop(kept);
        let mut results = vec![Vec::new(); self.exprs.len()];
        for partition in self.partitions(&rows)? {
            let partition = rows.slice(partition.start, partition.len());
            if !self.shown.is_empty() {
                self.memory_of_ready.try_grow(bytes_of(&self.shown, &partition)?)?;
            }
            for (expr, results) in self.exprs.iter().zip(&mut results) {
                results.push(expr.evaluate(&partition)?);
            }
        }
        let mut columns = rows.columns().to_vec();
        for results in results {
            columns.push(concat(&results.iter().map(AsRef::as_ref).collect::<Vec<_>>())?);
        }
        self.ready.push_back(Ready::Rows(RecordBatch::try_new(self.schema.clone(), columns)?, 0));
        Ok(())
    }
}

fn accumulator(expr: &Arc<dyn WindowExpr>) -> Result<Box<dyn Accumulator>> {
    match expr.as_any().downcast_ref::<PlainAggregateWindowExpr>() {
        Some(expr) => expr.get_aggregate_expr().create_accumulator(),
        None => Err(DataFusionError::Internal("an aggregate was expected".into())),
    }
}

fn accumulate(
    exprs: &[Arc<dyn WindowExpr>],
    accumulators: &mut [Box<dyn Accumulator>],
    batch: &RecordBatch,
) -> Result<()> {
    for (expr, accumulator) in exprs.iter().zip(accumulators) {
        accumulator.update_batch(&expr.evaluate_args(batch)?)?;
    }
    Ok(())
}

fn with_results(batch: &RecordBatch, results: &[ScalarValue], schema: &SchemaRef) -> Result<RecordBatch> {
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    for result in results {
        columns.push(result.to_array_of_size(batch.num_rows())?);
    }
    Ok(RecordBatch::try_new(schema.clone(), columns)?)
}

/// A window operator between two that count what it keeps.
fn metered(window: &BoundedWindowAggExec) -> Result<Arc<dyn ExecutionPlan>> {
    let shown = shown_by(window.window_expr());
    let columns = window.input().schema().fields().len();
    let meter = Arc::new(Meter { back: rows_back(window), shown, columns, by_partition: Mutex::default() });
    let fed = Arc::new(MeterExec { input: window.input().clone(), meter: meter.clone(), side: Side::In });
    let window = BoundedWindowAggExec::try_new(
        window.window_expr().to_vec(),
        fed,
        window.input_order_mode.clone(),
        !window.partition_keys().is_empty(),
    )?;
    Ok(Arc::new(MeterExec { input: Arc::new(window), meter, side: Side::Out }))
}

/// How many rows frames reach back, as far as that is known.
fn rows_back(window: &BoundedWindowAggExec) -> usize {
    let back = |expr: &Arc<dyn WindowExpr>| {
        let frame = expr.get_window_frame();
        match (&frame.units, &frame.start_bound) {
            (WindowFrameUnits::Rows, WindowFrameBound::Preceding(ScalarValue::UInt64(Some(rows)))) => {
                usize::try_from(*rows).unwrap_or(usize::MAX)
            }
            _ => 0,
        }
    };
    window.window_expr().iter().map(back).max().unwrap_or(0)
}

#[derive(Debug)]
struct Meter {
    back: usize,
    shown: Vec<Shown>,
    /// Of the input; the results stand behind them.
    columns: usize,
    /// Of each partition that runs.
    by_partition: Mutex<HashMap<usize, Arc<Mutex<Held>>>>,
}

/// What the operator has read and passed on.
#[derive(Debug)]
struct Held {
    back: usize,
    rows_in: usize,
    bytes_in: usize,
    rows_out: usize,
    longest: Longest,
    memory: MemoryReservation,
}

impl Held {
    /// Counts anew: rows are there as they were read, and for their partition.
    fn count(&self) -> Result<()> {
        let rows = self.rows_in.saturating_sub(self.rows_out).saturating_add(self.back).min(self.rows_in);
        let average = self.bytes_in / self.rows_in.max(1) + 1;
        self.memory.try_resize(rows.saturating_mul(2 * average))
    }

    /// The rows that go in next, counted.
    fn next_of(&mut self, pieces: &mut Pieces, most: usize) -> Result<Option<RecordBatch>> {
        let Some(piece) = pieces.next(&mut self.longest, most) else { return Ok(None) };
        self.rows_in += piece.num_rows();
        self.bytes_in += own_bytes(&piece);
        self.count()?;
        Ok(Some(piece))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    In,
    Out,
}

/// Counts the rows of its input, which it passes on.
#[derive(Debug)]
struct MeterExec {
    input: Arc<dyn ExecutionPlan>,
    meter: Arc<Meter>,
    side: Side,
}

impl DisplayAs for MeterExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MeterExec: {:?}", self.side)
    }
}

impl ExecutionPlan for MeterExec {
    fn name(&self) -> &str {
        "MeterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| self.input.clone());
        Ok(Arc::new(Self { input, meter: self.meter.clone(), side: self.side }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let held = match self.side {
            // The operator runs its input in turn.
            Side::Out => {
                let consumer = MemoryConsumer::new(format!("rows of window frames[{partition}]"));
                let memory = consumer.register(context.memory_pool());
                let back = self.meter.back;
                let longest = Longest::new(&self.meter.shown);
                let held = Held { back, rows_in: 0, bytes_in: 0, rows_out: 0, longest, memory };
                let held = Arc::new(Mutex::new(held));
                self.meter.by_partition.lock().insert(partition, held.clone());
                held
            }
            Side::In => {
                let held = self.meter.by_partition.lock().remove(&partition);
                held.ok_or_else(|| DataFusionError::Internal("a window's meter is missing".into()))?
            }
        };
        let query = context.session_config().get_extension::<QueryPool>();
        let most = query.map_or(usize::MAX, |query| most_of(query.limit()));
        let input = self.input.execute(partition, context)?;
        let meter = self.meter.clone();
        let schema = self.schema();
        if self.side == Side::Out {
            let counted = input.map(move |batch| {
                let batch = batch?;
                let mut held = held.lock();
                held.rows_out += batch.num_rows();
                held.longest.note(&meter.shown, meter.columns, &batch);
                // It has become less.
                let _ = held.count();
                Ok(batch)
            });
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted)));
        }
        let pieces = futures::stream::try_unfold((input, None), move |(mut input, mut pieces)| {
            let (meter, held) = (meter.clone(), held.clone());
            async move {
                loop {
                    if let Some(some) = &mut pieces
                        && let Some(piece) = held.lock().next_of(some, most)?
                    {
                        return Ok(Some((piece, (input, pieces))));
                    }
                    let Some(batch) = input.next().await else { return Ok(None) };
                    pieces = Some(Pieces::of(&meter.shown, batch?)?);
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, pieces)))
    }
}
