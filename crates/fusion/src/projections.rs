//! Projections go down to what makes their columns, as DataFusion moves them, but no expression goes below what leaves rows out.
//!
//! DataFusion takes a projection below a filter if it makes fewer columns than it reads: `SELECT a * b … WHERE id = 1` is then computed
//! for rows that nobody asked for. Its expressions cannot fail; SQL's can, and warn.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::projection::{
    ProjectionExec, remove_unnecessary_projections, try_embed_projection,
};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

/// In the place of [`ProjectionPushdown`].
#[derive(Debug)]
pub struct PushProjections;

/// DataFusion's rules, with this one in the place of its own.
pub fn in_place(
    rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let own = ProjectionPushdown::new();
    let replaced = rules.into_iter().map(|rule| match rule.name() == own.name() {
        true => Arc::new(PushProjections) as _,
        false => rule,
    });
    replaced.collect()
}

impl PhysicalOptimizerRule for PushProjections {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|node| push_join_filter(node, config)).data()?;
        plan.transform_down(push).data()
    }

    fn name(&self) -> &str {
        "push_projections"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn push(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(projection) = node.downcast_ref::<ProjectionExec>().filter(|projection| computes(projection))
    else {
        return remove_unnecessary_projections(node);
    };
    if let Some(filter) = projection.input().downcast_ref::<FilterExec>() {
        let embedded = try_embed_projection(projection, filter)?;
        return Ok(embedded.map_or_else(|| Transformed::no(node), Transformed::yes));
    }
    match projection.input().downcast_ref::<SortExec>() {
        Some(sort) if sort.fetch().is_some() => Ok(Transformed::no(node)),
        _ => remove_unnecessary_projections(node),
    }
}

fn computes(projection: &ProjectionExec) -> bool {
    projection.expr().iter().any(|made| made.expr.downcast_ref::<Column>().is_none())
}

/// What DataFusion does to the condition of a nested loop join: what is about one side goes there. It sees the join alone.
fn push_join_filter(
    node: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if node.downcast_ref::<NestedLoopJoinExec>().is_none() {
        return Ok(Transformed::no(node));
    }
    let inputs: Vec<_> = node.children().into_iter().cloned().collect();
    let stand_in = |input: &Arc<dyn ExecutionPlan>| Arc::new(EmptyExec::new(input.schema())) as _;
    let stand_ins: Vec<Arc<dyn ExecutionPlan>> = inputs.iter().map(stand_in).collect();
    let alone = replace_children_if_necessary(node.clone(), stand_ins.clone())?;
    let pushed = ProjectionPushdown::new().optimize(alone, config)?;
    if pushed.downcast_ref::<NestedLoopJoinExec>().is_some_and(|join| {
        join.children().into_iter().zip(&stand_ins).all(|(child, before)| Arc::ptr_eq(child, before))
    }) {
        return Ok(Transformed::no(node));
    }
    let whole = pushed.transform_up(|node| {
        let input = stand_ins.iter().position(|stand_in| Arc::ptr_eq(stand_in, &node));
        Ok(input.map_or_else(|| Transformed::no(node), |at| Transformed::yes(inputs[at].clone())))
    });
    Ok(Transformed::yes(whole.data()?))
}
