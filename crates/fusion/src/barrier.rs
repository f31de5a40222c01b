//! A node that nothing is known behind, in long chains of joins: many subqueries in one query.
//!
//! DataFusion's rules ask each join for its statistics, and these ask all below them, column by column: of `n` joins that
//! takes `n²` steps. What there is to know, the relational plan has used.
//!
//! Nor does what is computed behind a LIMIT move before the sort through it.

use crate::pass::Pass;
use crate::pass_node::LogicalPass;

/// Subqueries that became joins between two barriers.
pub const JOINS_BETWEEN: usize = 24;

/// Passes all on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Barrier;

impl LogicalPass for Barrier {
    const NODE: &'static str = "Barrier";
}

impl Pass for Barrier {
    const NAME: &'static str = "BarrierExec";

    fn renewed(&self) -> Self {
        Self
    }
}
