//! Joins that let go of their thread now and then.
//!
//! A query is ended, by its deadline or by KILL, when it yields to the runtime. DataFusion sees to it that scans and exchanges
//! do; a join does when it comes back to one of these for more rows. But a join of joins makes any number of rows of a few
//! that it has read: until it is done it never comes back, cannot be ended, and keeps a thread of the pool.
//!
//! Nor does a join whose filter holds for no pair of rows: it goes through all pairs before it gives a batch. Its filter asks whether
//! the query goes on, and lets the runtime's other tasks run on another thread when it has been at it for long.

use std::fmt::{self, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow::datatypes::{FieldRef, Schema};
use arrow::record_batch::RecordBatch;
use avocet_sql::relational::Checkpoint;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use crate::stop::Stop;
use crate::udf::external;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{SchedulingType, replace_children_if_necessary};

/// Has all that combines several inputs yield after so many batches, as scans do.
#[derive(Debug)]
pub struct JoinsYield;

/// Operators one above the other that may yield. Each takes a unit of the runtime's budget before it asks those below it, and gives
/// it back if they have nothing: where more are above each other than there are units, no batch ever comes up.
const MOST_ABOVE: usize = 48;

impl PhysicalOptimizerRule for JoinsYield {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let step = height_of(&plan).div_ceil(MOST_ABOVE).max(1);
        Ok(yielding(plan, step)?.0)
    }

    fn name(&self) -> &str {
        "joins_yield"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn is_to_yield(node: &Arc<dyn ExecutionPlan>) -> bool {
    let yields = node.properties().scheduling_type == SchedulingType::Cooperative;
    node.children().len() > 1 && !yields
}

/// How many of those that are to yield are above each other.
fn height_of(node: &Arc<dyn ExecutionPlan>) -> usize {
    let below = node.children().into_iter().map(height_of).max().unwrap_or(0);
    below + usize::from(is_to_yield(node))
}

/// The plan in which each `step`th yields, and its height.
fn yielding(node: Arc<dyn ExecutionPlan>, step: usize) -> Result<(Arc<dyn ExecutionPlan>, usize)> {
    let (mut inputs, mut height) = (Vec::new(), 0);
    for input in node.children() {
        let (input, below) = yielding(input.clone(), step)?;
        inputs.push(input);
        height = height.max(below);
    }
    let is_next = is_to_yield(&node);
    height += usize::from(is_next);
    let node = replace_children_if_necessary(node, inputs)?;
    Ok(match is_next && height % step == 0 {
        true => (Arc::new(CooperativeExec::new(node)), height),
        false => (node, height),
    })
}

/// How long a join keeps the other tasks of its thread waiting.
const TURN: Duration = Duration::from_millis(50);

/// Has the filters of joins ask whether the query goes on.
#[derive(Debug)]
pub struct FiltersAsk(pub Arc<Stop>);

impl PhysicalOptimizerRule for FiltersAsk {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(plan.transform_up(|node| self.join(node))?.data)
    }

    fn name(&self) -> &str {
        "filters_ask"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl FiltersAsk {
    fn join(&self, node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
        if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>()
            && let Some(filter) = join.filter()
        {
            let join = NestedLoopJoinExecBuilder::from(join).with_filter(Some(self.asking(filter)));
            return Ok(Transformed::yes(Arc::new(join.build()?)));
        }
        if let Some(join) = node.downcast_ref::<HashJoinExec>()
            && let Some(filter) = join.filter()
        {
            let join = HashJoinExecBuilder::from(join).with_filter(Some(self.asking(filter)));
            return Ok(Transformed::yes(Arc::new(join.build()?)));
        }
        if let Some(join) = node.downcast_ref::<SortMergeJoinExec>()
            && let Some(filter) = join.filter()
        {
            let join = SortMergeJoinExec::try_new(
                join.left().clone(),
                join.right().clone(),
                join.on().to_vec(),
                Some(self.asking(filter)),
                join.join_type(),
                join.sort_options().to_vec(),
                join.null_equality(),
            )?;
            return Ok(Transformed::yes(Arc::new(join)));
        }
        Ok(Transformed::no(node))
    }

    fn asking(&self, filter: &JoinFilter) -> JoinFilter {
        let inner = filter.expression().clone();
        let expression = Asking { inner, stop: self.0.clone(), turn: Arc::default() };
        JoinFilter::new(Arc::new(expression), filter.column_indices().to_vec(), filter.schema().clone())
    }
}

/// When the join last let others run.
#[derive(Debug)]
struct Turn {
    base: Instant,
    /// In microseconds since then.
    began: AtomicU64,
}

impl Default for Turn {
    fn default() -> Self {
        Self { base: Instant::now(), began: AtomicU64::new(0) }
    }
}

impl Turn {
    /// Lets the runtime's other tasks go on, on another thread, once this one has had its time.
    fn take(&self) {
        let now = self.base.elapsed().as_micros() as u64;
        if now - self.began.load(Ordering::Relaxed).min(now) < TURN.as_micros() as u64 {
            return;
        }
        self.began.store(now, Ordering::Relaxed);
        let is_shared = |runtime: Handle| runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
        if Handle::try_current().is_ok_and(is_shared) {
            block_in_place(|| ());
        }
    }
}

/// A condition that ends its query when that is over.
#[derive(Debug)]
struct Asking {
    inner: Arc<dyn PhysicalExpr>,
    stop: Arc<Stop>,
    turn: Arc<Turn>,
}

impl PhysicalExpr for Asking {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.stop.check().map_err(external)?;
        self.turn.take();
        self.inner.evaluate(batch)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(schema)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let inner = children.pop().unwrap_or_else(|| self.inner.clone());
        Ok(Arc::new(Self { inner, stop: self.stop.clone(), turn: self.turn.clone() }))
    }

    fn fmt_sql(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}

impl Display for Asking {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.inner, f)
    }
}

impl PartialEq for Asking {
    fn eq(&self, other: &Self) -> bool {
        *self.inner == *other.inner
    }
}

impl Eq for Asking {}

impl Hash for Asking {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}
