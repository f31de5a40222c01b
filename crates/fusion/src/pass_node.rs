//! The logical nodes of operators that pass rows on.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::{DFSchemaRef, DataFusionError, Result};
use datafusion::logical_expr::{
    self as df, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;

use crate::pass::{Pass, PassExec};

/// An operator that a logical plan asks for.
pub(super) trait LogicalPass: Pass + Clone + Eq + Hash {
    /// What the node is called.
    const NODE: &'static str;
    /// Conditions, columns and limits are pushed through it as if it were not there.
    const IS_TRANSPARENT: bool = false;

    /// The columns of the rows that it gives.
    fn columns(input: &DFSchemaRef) -> Result<DFSchemaRef> {
        Ok(input.clone())
    }

    /// The same for one operator.
    fn of_operator(&self) -> Self {
        self.clone()
    }
}

#[derive(Clone, Debug)]
pub(super) struct PassNode<P> {
    input: LogicalPlan,
    columns: DFSchemaRef,
    pass: P,
}

impl<P: LogicalPass> PassNode<P> {
    fn new(pass: P, input: LogicalPlan) -> Result<Self> {
        Ok(Self { columns: P::columns(input.schema())?, input, pass })
    }

    pub fn plan(pass: P, input: LogicalPlan) -> Result<LogicalPlan> {
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(Self::new(pass, input)?) }))
    }

    /// The operator of a node that is one of these.
    pub fn physical(
        node: &dyn UserDefinedLogicalNode,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Option<Arc<dyn ExecutionPlan>> {
        let node: &Self = node.as_any().downcast_ref()?;
        Some(PassExec::plan(node.pass.of_operator(), input.clone()))
    }
}

impl<P: PartialEq> PartialEq for PassNode<P> {
    fn eq(&self, other: &Self) -> bool {
        self.pass == other.pass && self.input == other.input
    }
}

impl<P: Eq> Eq for PassNode<P> {}

impl<P: PartialEq> PartialOrd for PassNode<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        if self == other { Some(std::cmp::Ordering::Equal) } else { None }
    }
}

impl<P: Hash> Hash for PassNode<P> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pass.hash(state);
        self.input.hash(state);
    }
}

impl<P: LogicalPass> UserDefinedLogicalNodeCore for PassNode<P> {
    fn name(&self) -> &str {
        P::NODE
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.columns
    }

    fn expressions(&self) -> Vec<df::Expr> {
        Vec::new()
    }

    fn prevent_predicate_push_down_columns(&self) -> std::collections::HashSet<String> {
        match P::IS_TRANSPARENT {
            true => Default::default(),
            false => self.columns.fields().iter().map(|field| field.name().clone()).collect(),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        P::IS_TRANSPARENT.then(|| vec![output_columns.to_vec()])
    }

    fn supports_limit_pushdown(&self) -> bool {
        P::IS_TRANSPARENT
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", P::NODE, self.pass)
    }

    fn with_exprs_and_inputs(&self, _: Vec<df::Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let none = || DataFusionError::Internal(format!("{} without input", P::NODE));
        Self::new(self.pass.clone(), inputs.pop().ok_or_else(none)?)
    }
}
