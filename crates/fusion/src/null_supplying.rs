//! The side of an outer join that gives NULLs where a row has no partner: what is the same in all of its rows is not the same in all
//! rows of the join.
//!
//! DataFusion takes it to be (`EquivalenceGroup::join`), and leaves such a column out of the keys of sorts and windows behind the join:
//! `… LEFT JOIN (SELECT MAX(x) AS m FROM u) d ON … ORDER BY t.a, d.m` was in the order of `t.a` alone. So behind the choice of joins
//! a node stands on that side which tells of no constants.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::pass::{Pass, PassExec};

/// Passes all on.
#[derive(Debug)]
pub(super) struct NullSupplying;

impl Pass for NullSupplying {
    const NAME: &'static str = "NullSupplyingExec";

    fn renewed(&self) -> Self {
        Self
    }

    fn tells_of_input(&self) -> bool {
        true
    }

    fn has_constants(&self) -> bool {
        false
    }
}

/// The rules, and one behind that which chooses the sides of joins.
pub(super) fn with_null_supplying(
    mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let behind = rules.iter().position(|rule| rule.name() == "join_selection").map_or(0, |at| at + 1);
    rules.insert(behind, Arc::new(HideConstants));
    rules
}

#[derive(Debug)]
struct HideConstants;

impl PhysicalOptimizerRule for HideConstants {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(hide).data()
    }

    fn name(&self) -> &str {
        "hide_constants_of_outer_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn hide(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(kind) = join_type(&node) else { return Ok(Transformed::no(node)) };
    let supplies = match kind {
        JoinType::Left => [false, true],
        JoinType::Right => [true, false],
        JoinType::Full => [true, true],
        _ => return Ok(Transformed::no(node)),
    };
    let mut sides: Vec<Arc<dyn ExecutionPlan>> = node.children().into_iter().cloned().collect();
    let mut is_changed = false;
    for (side, supplies) in sides.iter_mut().zip(supplies) {
        if supplies && !side.equivalence_properties().constants().is_empty() {
            *side = PassExec::plan(NullSupplying, side.clone());
            is_changed = true;
        }
    }
    match is_changed {
        true => Ok(Transformed::yes(replace_children_if_necessary(node, sides)?)),
        false => Ok(Transformed::no(node)),
    }
}

fn join_type(node: &Arc<dyn ExecutionPlan>) -> Option<JoinType> {
    let of_hash = node.downcast_ref::<HashJoinExec>().map(|join| *join.join_type());
    let of_pairs = || node.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type());
    let of_merge = || node.downcast_ref::<SortMergeJoinExec>().map(|join| join.join_type());
    of_hash.or_else(of_pairs).or_else(of_merge)
}
