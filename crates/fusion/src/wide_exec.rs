//! The operators of wide nodes: many expressions over a batch, and many aggregates over all rows.
//!
//! DataFusion's operators tell what is equal, constant and sorted in their results, each column compared with all others, and
//! tell it anew for each rule that replaces their inputs. These tell nothing, and give small batches.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::{filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties,
};
use futures::{StreamExt, TryStreamExt};

/// Values of a batch that is made at once.
const BATCH_VALUES: usize = 1 << 20;

/// What a wide operator makes of its input.
#[derive(Clone, Debug)]
enum Work {
    /// A row of each row.
    Project(Arc<[Arc<dyn PhysicalExpr>]>),
    /// One row of all.
    Aggregate(Arc<[Call]>),
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub aggregate: Arc<AggregateFunctionExpr>,
    pub filter: Option<Arc<dyn PhysicalExpr>>,
}

#[derive(Debug)]
pub(super) struct WideExec {
    work: Work,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl WideExec {
    /// With names for the columns.
    pub fn project(
        exprs: Vec<(Arc<dyn PhysicalExpr>, String)>,
        input: Arc<dyn ExecutionPlan>,
    ) -> Result<Self> {
        let from = input.schema();
        let field = |(expr, name): &(Arc<dyn PhysicalExpr>, String)| {
            Ok(Field::new(name, expr.data_type(&from)?, expr.nullable(&from)?))
        };
        let fields = exprs.iter().map(field).collect::<Result<Vec<_>>>()?;
        let partitioning = Partitioning::UnknownPartitioning(input.output_partitioning().partition_count());
        let work = Work::Project(exprs.into_iter().map(|(expr, _)| expr).collect());
        Ok(Self::over(work, input, Arc::new(Schema::new(fields)), partitioning))
    }

    pub fn aggregate(calls: Vec<Call>, input: Arc<dyn ExecutionPlan>) -> Self {
        let fields: Vec<_> = calls.iter().map(|call| call.aggregate.field()).collect();
        let work = Work::Aggregate(calls.into());
        Self::over(work, input, Arc::new(Schema::new(fields)), Partitioning::UnknownPartitioning(1))
    }

    fn over(
        work: Work,
        input: Arc<dyn ExecutionPlan>,
        schema: SchemaRef,
        partitioning: Partitioning,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            partitioning,
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { work, input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for WideExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.work {
            Work::Project(_) => "projection",
            Work::Aggregate(_) => "aggregation",
        };
        write!(f, "WideExec: {what} of {} columns", self.schema().fields().len())
    }
}

impl ExecutionPlan for WideExec {
    fn name(&self) -> &str {
        "WideExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![matches!(self.work, Work::Project(_))]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![match self.work {
            Work::Project(_) => Distribution::UnspecifiedDistribution,
            Work::Aggregate(_) => Distribution::SinglePartition,
        }]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        if let Work::Project(exprs) = &self.work {
            for expr in exprs.iter() {
                if visit(expr)? == TreeNodeRecursion::Stop {
                    return Ok(TreeNodeRecursion::Stop);
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| self.input.clone());
        let partitions = match self.work {
            Work::Project(_) => input.output_partitioning().partition_count(),
            Work::Aggregate(_) => 1,
        };
        let partitioning = Partitioning::UnknownPartitioning(partitions);
        Ok(Arc::new(Self::over(self.work.clone(), input, self.schema(), partitioning)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context.clone())?;
        let schema = self.schema();
        Ok(match &self.work {
            Work::Project(exprs) => Box::pin(RecordBatchStreamAdapter::new(
                schema.clone(),
                projected(exprs.clone(), input, schema),
            )),
            Work::Aggregate(calls) => {
                let row = aggregated(calls.clone(), input, schema.clone(), context);
                Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::once(row)))
            }
        })
    }
}

fn projected(
    exprs: Arc<[Arc<dyn PhysicalExpr>]>,
    input: SendableRecordBatchStream,
    schema: SchemaRef,
) -> impl futures::Stream<Item = Result<RecordBatch>> + Send {
    let most = (BATCH_VALUES / exprs.len().max(1)).max(1);
    let parts = input.map_ok(move |batch| {
        let starts = (0..batch.num_rows()).step_by(most);
        let parts: Vec<_> = starts.map(|at| Ok(batch.slice(at, most.min(batch.num_rows() - at)))).collect();
        futures::stream::iter(parts)
    });
    parts.try_flatten().map(move |part: Result<RecordBatch>| {
        let part = part?;
        let columns = exprs.iter().map(|expr| expr.evaluate(&part)?.into_array(part.num_rows()));
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(part.num_rows()));
        Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
    })
}

async fn aggregated(
    calls: Arc<[Call]>,
    mut input: SendableRecordBatchStream,
    schema: SchemaRef,
    context: Arc<TaskContext>,
) -> Result<RecordBatch> {
    let memory = MemoryConsumer::new("aggregates of all rows").register(context.memory_pool());
    let mut accumulators =
        calls.iter().map(|call| call.aggregate.create_accumulator()).collect::<Result<Vec<_>>>()?;
    while let Some(batch) = input.next().await {
        let batch = batch?;
        for (call, accumulator) in calls.iter().zip(&mut accumulators) {
            let kept = match &call.filter {
                None => batch.clone(),
                Some(filter) => filter_record_batch(&batch, &chosen(filter, &batch)?)?,
            };
            let args = call.aggregate.expressions();
            let values = args.iter().map(|arg| {
                let value = arg.evaluate(&kept)?;
                value.into_array(kept.num_rows())
            });
            accumulator.update_batch(&values.collect::<Result<Vec<_>>>()?)?;
        }
        memory.try_resize(accumulators.iter().map(|accumulator| accumulator.size()).sum())?;
    }
    let row = accumulators.iter_mut().map(|accumulator| accumulator.evaluate()?.to_array());
    Ok(RecordBatch::try_new(schema, row.collect::<Result<Vec<_>>>()?)?)
}

/// The rows for which a condition is true.
fn chosen(filter: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<arrow::array::BooleanArray> {
    let truth = filter.evaluate(batch)?.into_array(batch.num_rows())?;
    let truth = truth.as_boolean_opt();
    let truth = truth.ok_or_else(|| DataFusionError::Internal("a filter of no truth".into()))?;
    Ok(prep_null_mask_filter(truth))
}
