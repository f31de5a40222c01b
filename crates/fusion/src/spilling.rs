//! Operators that spill instead of those that must fit into memory, for a query that did not.
//!
//! ```text
//!   hash join            ─▶ sorts and a merge             (merge_joins.rs)
//!   cross join           ─▶ nested loops, which spill both sides
//!   top n                ─▶ external sort and a limit
//!   group by with top n  ─▶ group by, which spills
//! ```
//!
//! DISTINCT aggregates and some window functions are lowered to other plans (distinct.rs, lookahead.rs). These rules are for
//! plans of one partition. What DataFusion plans itself instead of hash joins takes two, and exchanges whose batches share their buffers
//! and so count many times.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, Result, resources_err};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::BoundedWindowAggExec;
use datafusion::physical_plan::work_table::WorkTableExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use parking_lot::Mutex;

use crate::compact::Compact;
use crate::merge_joins::merged;
use crate::pass::{Pass, PassExec};
use crate::pools::with_runtime;

/// The rule that replaces them.
#[derive(Debug)]
pub struct OperatorsThatSpill;

impl PhysicalOptimizerRule for OperatorsThatSpill {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|plan| {
            Ok(match that_spills(&plan)? {
                Some(other) => Transformed::yes(other),
                None => Transformed::no(plan),
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "operators_that_spill"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What spills and gives the same rows.
fn that_spills(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return merged(join);
    }
    if let Some(join) = plan.downcast_ref::<CrossJoinExec>() {
        return nested_loops(join);
    }
    if plan.is::<NestedLoopJoinExec>() || plan.is::<BoundedWindowAggExec>() {
        return Ok(Some(Compact::rows_of(plan.clone())));
    }
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        return Ok(Some(sorted_in_full(sort)));
    }
    if plan.is::<RecursiveQueryExec>() {
        return runs_once(plan.clone()).map(Some);
    }
    // The limit makes it a heap of groups, which counts nothing.
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>()
        && aggregate.limit_options().is_some()
    {
        return Ok(Some(Arc::new(aggregate.with_new_limit_options(None))));
    }
    Ok(None)
}

/// Rows without columns do not go to files; of these there is one batch (counted.rs).
fn nested_loops(join: &CrossJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if [join.left(), join.right()].iter().any(|side| side.schema().fields().is_empty()) {
        return Ok(None);
    }
    let (left, right) = (join.left().clone(), join.right().clone());
    let plan =
        Compact::rows_of(Arc::new(NestedLoopJoinExec::try_new(left, right, None, &JoinType::Inner, None)?));
    // A cross join keeps the order of its right side.
    Ok(Some(match join.properties().output_ordering() {
        Some(ordering) => Arc::new(SortExec::new(ordering.clone(), plan)),
        None => plan,
    }))
}

/// All rows in an order, by way of files if there are many, and then the first of them.
fn sorted_in_full(sort: &SortExec) -> Arc<dyn ExecutionPlan> {
    let full = Compact::rows_of(Arc::new(sort.with_fetch(None)));
    match sort.fetch() {
        None => full,
        Some(fetch) if full.output_partitioning().partition_count() == 1 => {
            Arc::new(GlobalLimitExec::new(full, 0, Some(fetch)))
        }
        Some(fetch) => Arc::new(LocalLimitExec::new(full, fetch)),
    }
}

/// Has a query that does not fit begin anew, instead of going on in a way that does not serve:
///
/// - Joins by nested loops run one of their sides again when they begin to spill. What is exchanged between threads is gone then, and outer
///   joins of several partitions give rows twice.
/// - Aggregates of distinct values spill all values of a group in one row, and need several of these at a time to merge them.
#[derive(Debug)]
pub struct BeginAnew;

impl PhysicalOptimizerRule for BeginAnew {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|plan| {
            let is_distinct = plan
                .downcast_ref::<AggregateExec>()
                .is_some_and(|aggregate| aggregate.aggr_expr().iter().any(|call| call.is_distinct()));
            if is_distinct {
                return Ok(Transformed::yes(without_files(plan)?));
            }
            Ok(match plan.is::<NestedLoopJoinExec>() {
                true => Transformed::yes(left_once(plan)?),
                false => Transformed::no(plan),
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "begin_anew"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn left_once(join: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let mut children: Vec<_> = join.children().into_iter().cloned().collect();
    children[0] = PassExec::plan(Once::default(), children[0].clone());
    replace_children_if_necessary(join, children)
}

/// The rows of a recursion's last step are there once for the next.
fn runs_once(recursion: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    fn reads_step(plan: &Arc<dyn ExecutionPlan>) -> bool {
        plan.is::<WorkTableExec>() || plan.children().into_iter().any(reads_step)
    }
    let plan = recursion.transform_up(|plan| {
        let join = plan.downcast_ref::<NestedLoopJoinExec>();
        Ok(match join.is_some_and(|join| reads_step(join.left())) {
            true => Transformed::yes(left_once(plan)?),
            false => Transformed::no(plan),
        })
    })?;
    Ok(plan.data)
}

/// Its input's rows, the first time that they are asked for.
#[derive(Debug, Default)]
struct Once {
    ran: AtomicBool,
}

impl Pass for Once {
    const NAME: &'static str = "RunsOnceExec";

    fn run(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if self.ran.swap(true, Ordering::Relaxed) {
            return resources_err!(
                "a join without equal keys does not fit into the query's memory (query_memory_limit)"
            );
        }
        input.execute(partition, context)
    }

    fn renewed(&self) -> Self {
        Self::default()
    }
}

/// An operator that has no files to spill to, though what is below it has.
fn without_files(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let contexts = Arc::new(Contexts::default());
    let files = |has_files| Files { contexts: contexts.clone(), has_files };
    let below = |child: &Arc<dyn ExecutionPlan>| PassExec::plan(files(true), child.clone());
    let children = plan.children().into_iter().map(below).collect();
    let input = replace_children_if_necessary(plan, children)?;
    Ok(PassExec::plan(files(false), input))
}

/// What the input of the operator is to be run with, by partition of it.
type Contexts = Mutex<HashMap<usize, Arc<TaskContext>>>;

/// Its input's rows, run with files or without.
#[derive(Debug)]
struct Files {
    contexts: Arc<Contexts>,
    has_files: bool,
}

impl Pass for Files {
    const NAME: &'static str = "FilesExec";

    fn run(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if self.has_files {
            let context = self.contexts.lock().remove(&partition).unwrap_or(context);
            return input.execute(partition, context);
        }
        let none = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled).build()?;
        let runtime =
            RuntimeEnv { disk_manager: Arc::new(none), ..RuntimeEnv::clone(&context.runtime_env()) };
        let without = with_runtime(&context, runtime);
        self.contexts.lock().insert(partition, context);
        input.execute(partition, without)
    }

    fn renewed(&self) -> Self {
        Self { contexts: self.contexts.clone(), has_files: self.has_files }
    }
}
