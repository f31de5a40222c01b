//! Which operators have a part of their own in a query's memory, known by what they are.
//!
//! ```text
//!   RoleExec     hands the operator a pool that knows its role (memory.rs)
//!     │
//!   operator     registers what it reserves there
//!     │
//!   BelowExec    hands its input the pool that there was before
//! ```

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::SortMergeJoinExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use parking_lot::Mutex;

use crate::memory::{QueryPool, Role, RolePool};
use crate::pass::{Pass, PassExec};
use crate::pools::with_pool;

/// The rule that gives operators their roles.
#[derive(Debug)]
pub(super) struct Roles;

impl PhysicalOptimizerRule for Roles {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|node| {
            Ok(match role_of(&node) {
                Some(role) => Transformed::yes(in_role(node, role)?),
                None => Transformed::no(node),
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "roles"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn role_of(node: &Arc<dyn ExecutionPlan>) -> Option<Role> {
    if node.is::<RepartitionExec>() {
        return Some(Role::Exchange);
    }
    if node.is::<SortMergeJoinExec>() {
        return Some(Role::MergeJoin);
    }
    // One with a limit is a heap, which neither spills nor merges.
    node.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none()).map(|_| Role::Sort)
}

fn in_role(node: Arc<dyn ExecutionPlan>, role: Role) -> Result<Arc<dyn ExecutionPlan>> {
    let around = Around::default();
    let below = |child: &Arc<dyn ExecutionPlan>| PassExec::plan(Below(around.clone()), child.clone());
    let children = node.children().into_iter().map(below).collect();
    let node = replace_children_if_necessary(node, children)?;
    Ok(PassExec::plan(InRole { role, around }, node))
}

/// The pool that the operator's surroundings have.
type Around = Arc<Mutex<Option<Arc<dyn MemoryPool>>>>;

#[derive(Debug)]
struct InRole {
    role: Role,
    around: Around,
}

impl Pass for InRole {
    const NAME: &'static str = "RoleExec";

    fn run(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(query) = context.session_config().get_extension::<QueryPool>() else {
            return input.execute(partition, context);
        };
        let pool = context.memory_pool().clone();
        *self.around.lock() = Some(pool.clone());
        let pool = RolePool::new(pool, query, self.role);
        input.execute(partition, with_pool(&context, Arc::new(pool)))
    }

    fn renewed(&self) -> Self {
        Self { role: self.role, around: self.around.clone() }
    }
}

#[derive(Debug)]
struct Below(Around);

impl Pass for Below {
    const NAME: &'static str = "BelowExec";

    fn run(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let around = self.0.lock().clone();
        let context = around.map_or_else(|| context.clone(), |pool| with_pool(&context, pool));
        input.execute(partition, context)
    }

    fn renewed(&self) -> Self {
        Self(self.0.clone())
    }
}
