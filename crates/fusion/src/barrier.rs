//! A node that nothing is known behind, in long chains of joins: many subqueries in one query.
//!
//! DataFusion's rules ask each join for its statistics, and these ask all below them, column by column: of `n` joins that
//! takes `n²` steps. What there is to know, the relational plan has used.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{DFSchemaRef, DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{self as df, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_plan::ExecutionPlan;

use crate::pass::{Pass, PassExec};

/// Subqueries that became joins between two barriers.
pub const JOINS_BETWEEN: usize = 24;

/// The logical node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BarrierNode {
    input: LogicalPlan,
}

impl BarrierNode {
    pub fn plan(input: LogicalPlan) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(Self { input }) })
    }

    pub fn physical(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        PassExec::plan(Barrier, input)
    }
}

impl PartialOrd for BarrierNode {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        if self == other { Some(std::cmp::Ordering::Equal) } else { None }
    }
}

impl UserDefinedLogicalNodeCore for BarrierNode {
    fn name(&self) -> &str {
        "Barrier"
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
        write!(f, "Barrier")
    }

    fn with_exprs_and_inputs(&self, _: Vec<df::Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let input = inputs.pop().ok_or_else(|| DataFusionError::Internal("Barrier without input".into()))?;
        Ok(Self { input })
    }
}

/// Passes all on.
#[derive(Debug)]
struct Barrier;

impl Pass for Barrier {
    const NAME: &'static str = "BarrierExec";

    fn run(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        input.execute(partition, context)
    }

    fn renewed(&self) -> Self {
        Self
    }
}
