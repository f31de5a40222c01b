//! A common table expression that is read several times and evaluated once.
//!
//! Each reference has a plan of its own for it, as DataFusion knows no plans that share a part. The first that is asked for rows
//! runs its plan; all read what came of it, from memory or, as far as that did not suffice, from files.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::utils::memory::get_record_batch_memory_size;
use datafusion::common::{DFSchemaRef, DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SpillFile, TaskContext};
use datafusion::logical_expr::{self as df, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::spill::SpillManager;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::future::{BoxFuture, FutureExt, Shared};
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

/// The rows, or why there are none. An error goes to all that read them.
type Outcome = std::result::Result<Arc<Rows>, Arc<DataFusionError>>;

/// What the references have in common.
#[derive(Default)]
struct Once(Mutex<Option<Shared<BoxFuture<'static, Outcome>>>>);

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Once")
    }
}

/// The logical node.
#[derive(Clone, Debug)]
pub struct SharedNode {
    input: LogicalPlan,
    once: Arc<Once>,
}

impl SharedNode {
    /// The input's rows; the plan and its clones read those of one run.
    pub fn plan(input: LogicalPlan) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(Self { input, once: Arc::default() }) })
    }

    pub fn physical(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(SharedExec::new(input, self.once.clone()))
    }
}

impl PartialEq for SharedNode {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.once, &other.once) && self.input == other.input
    }
}

impl Eq for SharedNode {}

impl PartialOrd for SharedNode {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        if self == other { Some(std::cmp::Ordering::Equal) } else { None }
    }
}

impl Hash for SharedNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
    }
}

impl UserDefinedLogicalNodeCore for SharedNode {
    fn name(&self) -> &str {
        "Shared"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    /// A condition of one reference does not go for the others.
    fn prevent_predicate_push_down_columns(&self) -> std::collections::HashSet<String> {
        self.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn expressions(&self) -> Vec<df::Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }

    fn with_exprs_and_inputs(&self, _: Vec<df::Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let input = inputs.pop().ok_or_else(|| DataFusionError::Internal("Shared without input".into()))?;
        Ok(Self { input, once: self.once.clone() })
    }
}

#[derive(Debug)]
struct SharedExec {
    input: Arc<dyn ExecutionPlan>,
    once: Arc<Once>,
    properties: Arc<PlanProperties>,
}

impl SharedExec {
    fn new(input: Arc<dyn ExecutionPlan>, once: Arc<Once>) -> Self {
        let partitions = input.output_partitioning().partition_count();
        // Of an order in the input, nothing is left.
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self { input, once, properties: Arc::new(properties) }
    }
}

impl DisplayAs for SharedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedExec")
    }
}

impl ExecutionPlan for SharedExec {
    fn name(&self) -> &str {
        "SharedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
        Ok(Arc::new(Self::new(input, self.once.clone())))
    }

    /// What is shared is not made anew for each step of a recursion.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = {
            let mut once = self.once.0.lock();
            let begin = || {
                let (input, context) = (self.input.clone(), context.clone());
                async move { Rows::gather(input, context).await.map(Arc::new).map_err(Arc::new) }
                    .boxed()
                    .shared()
            };
            once.get_or_insert_with(begin).clone()
        };
        let partitions = self.properties.partitioning.partition_count();
        let part = async move {
            let rows = rows.await.map_err(DataFusionError::Shared)?;
            rows.part(partition, partitions)
        };
        let rows = stream::once(part).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// What a column of a batch takes besides its values, about, in bytes.
const COLUMN_OVERHEAD: usize = 256;

/// What the query gave.
struct Rows {
    batches: Vec<RecordBatch>,
    /// What did not fit into memory, first.
    files: Vec<Arc<dyn SpillFile>>,
    spill: SpillManager,
    memory: MemoryReservation,
}

impl Rows {
    async fn gather(input: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<Self> {
        let runtime = context.runtime_env();
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        let spill = SpillManager::new(runtime.clone(), metrics, input.schema());
        let memory = MemoryConsumer::new("rows of a common table expression")
            .with_can_spill(true)
            .register(context.memory_pool());
        let mut rows = Self { batches: Vec::new(), files: Vec::new(), spill, memory };
        let mut stream = CoalescePartitionsExec::new(input).execute(0, context)?;
        while let Some(batch) = stream.next().await {
            rows.add(batch?, runtime.disk_manager.tmp_files_enabled())?;
        }
        // Who reads them needs the memory more.
        if !rows.files.is_empty() {
            rows.spill()?;
        }
        Ok(rows)
    }

    fn add(&mut self, batch: RecordBatch, may_spill: bool) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let overhead = (1 + batch.num_columns()) * COLUMN_OVERHEAD;
        let refused = self.memory.try_grow(get_record_batch_memory_size(&batch) + overhead).err();
        self.batches.push(batch);
        match refused {
            None => Ok(()),
            Some(refused) if !may_spill => Err(refused),
            Some(_) => self.spill(),
        }
    }

    fn spill(&mut self) -> Result<()> {
        let batches = std::mem::take(&mut self.batches);
        if !batches.is_empty() {
            self.files.extend(self.spill.spill_record_batch_and_finish(&batches, "shared rows")?);
        }
        self.memory.free();
        Ok(())
    }

    /// The rows that one of so many readers gets.
    fn part(self: Arc<Self>, at: usize, of: usize) -> Result<SendableRecordBatchStream> {
        let files = self.files.iter().skip(at).step_by(of);
        let spilled = files
            .map(|file| self.spill.read_spill_as_stream(file.clone(), None))
            .collect::<Result<Vec<_>>>()?;
        let schema = self.spill.schema().clone();
        let here = (at..self.batches.len()).step_by(of);
        let rows = stream::iter(here.map(move |at| Ok(self.batches[at].clone())));
        let rows = stream::iter(spilled).flatten().chain(rows);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
