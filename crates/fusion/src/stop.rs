//! Ends the planning of a query whose time is up, or that nobody waits for any more.
//!
//! DataFusion plans in one go, without a point at which its task could be dropped. So the question is asked where our code
//! runs meanwhile: when expressions are lowered, and by a rule that changes nothing between each two of the optimizers'.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use avocet_sql::relational::Checkpoint;
use avocet_types::error::{ErrorCode, SqlError};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::udf::external;

/// Whether a query goes on.
#[derive(Debug, Default)]
pub struct Stop {
    abandoned: AtomicBool,
    deadline: Option<Instant>,
}

impl Stop {
    /// Ends after this time.
    pub fn after(time: Option<Duration>) -> Self {
        Self { abandoned: AtomicBool::new(false), deadline: time.map(|time| Instant::now() + time) }
    }

    /// Nobody waits for the query any more.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }
}

impl Checkpoint for Stop {
    fn check(&self) -> std::result::Result<(), SqlError> {
        if self.abandoned.load(Ordering::Relaxed) {
            return Err(ErrorCode::QUERY_INTERRUPTED.with(&[]));
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(ErrorCode::QUERY_TIMEOUT.with(&[])),
            _ => Ok(()),
        }
    }
}

/// The rule that asks.
#[derive(Debug)]
struct Ask(Arc<Stop>);

impl OptimizerRule for Ask {
    fn name(&self) -> &'static str {
        "ask_whether_to_stop"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        None
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        self.0.check().map_err(external)?;
        Ok(Transformed::no(plan))
    }
}

impl PhysicalOptimizerRule for Ask {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.check().map_err(external)?;
        Ok(plan)
    }

    fn name(&self) -> &'static str {
        "ask_whether_to_stop"
    }

    fn schema_check(&self) -> bool {
        false
    }
}

type Rule = Arc<dyn OptimizerRule + Send + Sync>;
type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// These rules, and the question before each.
pub fn asking(rules: Vec<Rule>, stop: &Arc<Stop>) -> Vec<Rule> {
    rules.into_iter().flat_map(|rule| [Arc::new(Ask(stop.clone())) as Rule, rule]).collect()
}

/// The same for those that work on physical plans.
pub fn asking_physical(rules: Vec<PhysicalRule>, stop: &Arc<Stop>) -> Vec<PhysicalRule> {
    rules.into_iter().flat_map(|rule| [Arc::new(Ask(stop.clone())) as PhysicalRule, rule]).collect()
}
