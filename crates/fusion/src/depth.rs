//! `cte_max_recursion_depth`: a node around the step of a recursive query that counts how often it runs.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use avocet_types::error::ErrorCode;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::pass::{Pass, PassExec};
use crate::pass_node::{LogicalPass, PassNode};
use crate::udf::external;

/// The input's rows, up to so many runs.
#[derive(Clone, Debug)]
pub(super) struct Depth {
    most: u64,
    /// Kept when the plan is reset for its next run.
    runs: Arc<AtomicU64>,
}

impl Depth {
    pub fn plan(input: LogicalPlan, most: u64) -> Result<LogicalPlan> {
        PassNode::plan(Self { most, runs: Arc::default() }, input)
    }
}

impl PartialEq for Depth {
    fn eq(&self, other: &Self) -> bool {
        self.most == other.most
    }
}

impl Eq for Depth {}

impl Hash for Depth {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.most.hash(state);
    }
}

impl LogicalPass for Depth {
    const NODE: &'static str = "Depth";

    fn of_operator(&self) -> Self {
        Self { most: self.most, runs: Arc::default() }
    }
}

impl Pass for Depth {
    const NAME: &'static str = "DepthExec";

    fn run(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = input.output_partitioning().partition_count() as u64;
        let runs = self.runs.fetch_add(1, Ordering::Relaxed) / partitions.max(1) + 1;
        if runs > self.most {
            return Err(external(ErrorCode::CTE_MAX_RECURSION_DEPTH.with(&[&runs])));
        }
        input.execute(partition, context)
    }

    fn renewed(&self) -> Self {
        self.clone()
    }
}

/// A recursive query begins, perhaps anew: no steps of it were run.
pub(super) fn begin(plan: &Arc<dyn ExecutionPlan>) {
    if let Some(step) = plan.downcast_ref::<PassExec<Depth>>() {
        step.pass.runs.store(0, Ordering::Relaxed);
    }
    plan.children().into_iter().for_each(begin);
}
