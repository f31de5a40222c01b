//! A UNION ALL whose rows go to the client as they are gives those of its first query first.
//!
//! The standard leaves the order open; MySQL runs the queries one after the other, and reports rely on it: a last row of totals
//! is to come last. DataFusion's union hands out the partitions of all its inputs at once. Where nothing above it sorts, groups
//! or joins, the inputs are run in turn; each still uses all threads.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};

/// Puts an [`InTurn`] in the place of a union at the top of the plan.
#[derive(Debug)]
pub(super) struct UnionsInTurn;

impl PhysicalOptimizerRule for UnionsInTurn {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(in_turn(&plan)?.unwrap_or(plan))
    }

    fn name(&self) -> &str {
        "unions_in_turn"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan with its union in turn, if there is one below nothing but what passes rows on in their order. It has one partition.
fn in_turn(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if plan.is::<UnionExec>() {
        return Ok(Some(InTurn::plan(plan)));
    }
    let [child] = plan.children()[..] else { return Ok(None) };
    if let Some(coalesce) = plan.downcast_ref::<CoalescePartitionsExec>() {
        let limited = |input| match coalesce.fetch() {
            Some(fetch) => Arc::new(GlobalLimitExec::new(input, 0, Some(fetch))) as _,
            None => input,
        };
        return Ok(in_turn(child)?.map(limited));
    }
    let keeps_order = plan.is::<ProjectionExec>()
        || plan.is::<FilterExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>();
    match in_turn(child)? {
        Some(child) if keeps_order => Ok(Some(replace_children_if_necessary(plan.clone(), vec![child])?)),
        _ => Ok(None),
    }
}

/// The rows of its inputs, one input after the other.
#[derive(Debug)]
struct InTurn {
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

impl InTurn {
    fn plan(union: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let one_partition = |input: &Arc<dyn ExecutionPlan>| match input.output_partitioning() {
            partitioning if partitioning.partition_count() == 1 => input.clone(),
            _ => Arc::new(CoalescePartitionsExec::new(input.clone())) as _,
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(union.schema()),
            Partitioning::UnknownPartitioning(1),
            union.pipeline_behavior(),
            union.boundedness(),
        );
        let inputs = union.children().into_iter().map(one_partition).collect();
        Arc::new(Self { inputs, properties: Arc::new(properties) })
    }
}

impl DisplayAs for InTurn {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InTurnExec")
    }
}

impl ExecutionPlan for InTurn {
    fn name(&self) -> &str {
        "InTurnExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self { inputs, properties: self.properties.clone() }))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let of = schema.clone();
        let inputs = self.inputs.clone();
        let batches = futures::stream::iter(inputs)
            .map(move |input| input.execute(0, context.clone()))
            .try_flatten()
            .map(move |batch| with_schema(batch?, &of));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// An input's rows: its columns may be called otherwise, or never be NULL.
fn with_schema(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)?)
}
