//! Recursive queries pass their rows on in batches of the usual size.
//!
//! Each step of a recursion gives a batch of its own, mostly of one row. Who gathers rows counts eight bytes for it, though it takes
//! some hundred, and sorts do a merge of as many streams: five million rows of a sequence took 1.7 GB, and
//! a sort of them was deaf to KILL for a minute. So batches are put together; behind a LIMIT, which ends the recursion at its last row.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::BatchCoalescer;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use crate::measure::Measure;
use crate::pass::{Pass, PassExec};
use crate::{depth, unseen};

/// Puts a [`Batch`] over recursive queries, or over what limits them.
#[derive(Debug)]
pub struct BatchRecursions;

impl PhysicalOptimizerRule for BatchRecursions {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        batched(plan)
    }

    fn name(&self) -> &str {
        "batch_recursions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn batched(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let is_limit = plan.is::<GlobalLimitExec>() || plan.is::<LocalLimitExec>();
    if plan.is::<RecursiveQueryExec>() || (is_limit && streams_recursion(&plan)) {
        let plan = with_children(plan, &|child| if is_limit { below_limit(child) } else { batched(child) })?;
        return Ok(PassExec::plan(Batch, plan));
    }
    with_children(plan, &batched)
}

/// Whether a recursion's rows come as they are made.
fn streams_recursion(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let passes = plan.is::<ProjectionExec>()
        || plan.is::<PassExec<Measure>>()
        || plan.is::<CooperativeExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>();
    plan.is::<RecursiveQueryExec>() || passes && plan.children().into_iter().all(streams_recursion)
}

/// The way from a limit to its recursion stays as it is.
fn below_limit(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    match plan.is::<RecursiveQueryExec>() {
        true => with_children(plan, &batched),
        false => with_children(plan, &below_limit),
    }
}

fn with_children(
    plan: Arc<dyn ExecutionPlan>,
    change: &dyn Fn(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let children = plan.children().into_iter().cloned().map(change).collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(plan, children)
}

/// Its input's rows, in larger batches.
#[derive(Debug)]
struct Batch;

impl Pass for Batch {
    const NAME: &'static str = "BatchesExec";

    fn run(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        depth::begin(input);
        unseen::begin(input);
        let schema = input.schema();
        let input = input.execute(partition, context.clone())?;
        let rows = BatchCoalescer::new(schema.clone(), context.session_config().batch_size());
        let batches = futures::stream::try_unfold((Some(input), rows), next_batch);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn renewed(&self) -> Self {
        Self
    }
}

type Batches = (Option<SendableRecordBatchStream>, BatchCoalescer);

async fn next_batch((mut input, mut rows): Batches) -> Result<Option<(RecordBatch, Batches)>> {
    while !rows.has_completed_batch() {
        let Some(stream) = &mut input else { return Ok(None) };
        match stream.next().await {
            Some(batch) => rows.push_batch(batch?)?,
            None => {
                rows.finish_buffered_batch()?;
                input = None;
            }
        }
    }
    Ok(rows.next_completed_batch().map(|batch| (batch, (input, rows))))
}
