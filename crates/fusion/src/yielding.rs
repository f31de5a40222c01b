//! Joins that let go of their thread now and then.
//!
//! A query is ended, by its deadline or by KILL, when it yields to the runtime. DataFusion sees to it that scans and exchanges
//! do; a join does when it comes back to one of these for more rows. But a join of joins makes any number of rows of a few
//! that it has read: until it is done it never comes back, cannot be ended, and keeps a thread of the pool.

use std::sync::Arc;

use datafusion::common::Result;
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
