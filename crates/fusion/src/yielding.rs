//! Joins that let go of their thread now and then.
//!
//! A query is ended, by its deadline or by KILL, when it yields to the runtime. DataFusion sees to it that scans and exchanges
//! do; a join does when it comes back to one of these for more rows. But a join of joins makes any number of rows of a few
//! that it has read: until it is done it never comes back, cannot be ended, and keeps a thread of the pool.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::SchedulingType;

/// Has all that combines several inputs yield after so many batches, as scans do.
#[derive(Debug)]
pub struct JoinsYield;

impl PhysicalOptimizerRule for JoinsYield {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let wrapped = plan.transform_up(|node| {
            let yields = node.properties().scheduling_type == SchedulingType::Cooperative;
            Ok(match node.children().len() > 1 && !yields {
                true => Transformed::yes(Arc::new(CooperativeExec::new(node)) as Arc<dyn ExecutionPlan>),
                false => Transformed::no(node),
            })
        })?;
        Ok(wrapped.data)
    }

    fn name(&self) -> &str {
        "joins_yield"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
