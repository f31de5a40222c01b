//! `cte_max_recursion_depth`: a node around the step of a recursive query that counts how often it runs.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use avocet_types::error::ErrorCode;
use datafusion::common::{DFSchemaRef, DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{self as df, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::pass::{Pass, PassExec};
use crate::udf::external;

/// The logical node: its input's rows, up to so many runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepthNode {
    input: LogicalPlan,
    most: u64,
}

impl DepthNode {
    pub fn plan(input: LogicalPlan, most: u64) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(Self { input, most }) })
    }

    pub fn physical(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        PassExec::plan(Depth { most: self.most, runs: Arc::default() }, input)
    }
}

impl PartialOrd for DepthNode {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        if self == other { Some(std::cmp::Ordering::Equal) } else { None }
    }
}

impl Hash for DepthNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
        self.most.hash(state);
    }
}

impl UserDefinedLogicalNodeCore for DepthNode {
    fn name(&self) -> &str {
        "Depth"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<df::Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Depth: {}", self.most)
    }

    fn with_exprs_and_inputs(&self, _: Vec<df::Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let input = inputs.pop().ok_or_else(|| DataFusionError::Internal("Depth without input".into()))?;
        Ok(Self { input, most: self.most })
    }
}

#[derive(Debug)]
struct Depth {
    most: u64,
    /// Kept when the plan is reset for its next run.
    runs: Arc<AtomicU64>,
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
        Self { most: self.most, runs: self.runs.clone() }
    }
}

/// A recursive query begins, perhaps anew: no steps of it were run.
pub(super) fn begin(plan: &Arc<dyn ExecutionPlan>) {
    if let Some(step) = plan.downcast_ref::<PassExec<Depth>>() {
        step.pass.runs.store(0, Ordering::Relaxed);
    }
    plan.children().into_iter().for_each(begin);
}
