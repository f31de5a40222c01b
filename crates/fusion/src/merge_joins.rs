//! Joins that spill: hash joins, whose tables must fit into memory, become merges of sorted inputs.
//!
//! For plans of one partition. What DataFusion plans itself instead takes two partitions, and exchanges whose batches share
//! their buffers and so count many times.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExprRef, PhysicalSortExpr};
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::compact::Compact;

/// The same join by merging; not for NOT IN with NULLs, nor for inputs of several partitions.
pub(super) fn merged(join: &HashJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let is_single = |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().partition_count() == 1;
    if join.null_aware || !is_single(join.left()) || !is_single(join.right()) {
        return Ok(None);
    }
    let (left, right): (Vec<_>, Vec<_>) = join.on().iter().cloned().unzip();
    let options = SortOptions::default();
    let merge = SortMergeJoinExec::try_new(
        sorted(join.left(), left, options),
        sorted(join.right(), right, options),
        join.on().to_vec(),
        join.filter().cloned(),
        *join.join_type(),
        vec![options; join.on().len()],
        join.null_equality(),
    )?;
    let mut plan = Compact::rows_of(Arc::new(merge));
    if let Some(projection) = &join.projection {
        let schema = plan.schema();
        let column = |at: &usize| {
            let name = schema.field(*at).name();
            ProjectionExpr { expr: Arc::new(Column::new(name, *at)), alias: name.clone() }
        };
        plan = Arc::new(ProjectionExec::try_new(projection.iter().map(column), plan)?);
    }
    // Somebody may rely on the order, which the hash join keeps of its right side.
    if let Some(ordering) = join.properties().output_ordering() {
        plan = Arc::new(SortExec::new(ordering.clone(), plan));
    }
    if let Some(fetch) = join.fetch() {
        plan = Arc::new(GlobalLimitExec::new(plan, 0, Some(fetch)));
    }
    Ok(Some(plan))
}

fn sorted(
    input: &Arc<dyn ExecutionPlan>,
    keys: Vec<PhysicalExprRef>,
    options: SortOptions,
) -> Arc<dyn ExecutionPlan> {
    let keys = keys.into_iter().map(|expr| PhysicalSortExpr { expr, options });
    match LexOrdering::new(keys) {
        Some(ordering) => Compact::rows_of(Arc::new(SortExec::new(ordering, input.clone()))),
        None => input.clone(),
    }
}
