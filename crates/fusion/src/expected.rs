//! How many rows the relational plan expects of a join's sides, for DataFusion's choice between them: a hash table is made of the
//! smaller one, by one thread for all if it is small.
//!
//! What DataFusion would guess by itself knows nothing of samples, of conditions that it does not understand, and of groups. When the
//! choice is made, nothing is left of these nodes.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, Statistics};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::pass::{Pass, PassExec};
use crate::pass_node::{LogicalPass, PassNode};

/// What a value of a string takes, about: there are no averages.
const STRING_BYTES: usize = 32;

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Expected {
    rows: usize,
}

impl Expected {
    /// The plan, of which so many rows are expected.
    pub fn plan(input: LogicalPlan, rows: f64) -> Result<LogicalPlan> {
        PassNode::plan(Self { rows: rows.ceil() as usize }, input)
    }
}

impl fmt::Debug for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rows)
    }
}

impl LogicalPass for Expected {
    const NODE: &'static str = "Expected";
    const IS_TRANSPARENT: bool = true;
}

impl Pass for Expected {
    const NAME: &'static str = "ExpectedExec";

    fn statistics(&self, schema: &Schema) -> Option<Statistics> {
        let width: usize = schema.fields().iter().map(|field| width_of(field.data_type())).sum();
        Some(Statistics {
            num_rows: Precision::Inexact(self.rows),
            total_byte_size: Precision::Inexact(self.rows.saturating_mul(width.max(1))),
            ..Statistics::new_unknown(schema)
        })
    }

    fn renewed(&self) -> Self {
        self.clone()
    }
}

fn width_of(ty: &DataType) -> usize {
    ty.primitive_width().unwrap_or(STRING_BYTES)
}

/// The rules, and one behind that which chooses the sides of joins.
pub(super) fn forgotten(
    rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = rules;
    let behind = rules.iter().position(|rule| rule.name() == "join_selection").map_or(0, |at| at + 1);
    rules.insert(behind, Arc::new(Forget));
    rules
}

#[derive(Debug)]
struct Forget;

impl PhysicalOptimizerRule for Forget {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let forget = |node: Arc<dyn ExecutionPlan>| {
            Ok(match node.downcast_ref::<PassExec<Expected>>() {
                Some(pass) => Transformed::yes(pass.input.clone()),
                None => Transformed::no(node),
            })
        };
        plan.transform_up(forget).data()
    }

    fn name(&self) -> &str {
        "forget_expected_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
