//! Subqueries that are answered row by row: those that DataFusion can not turn into joins, or not with MySQL's NULLs.
//!
//! ```text
//!   filter / projection / …      uses the answer as the column c<id>
//!          │
//!        Apply ── outer values of a row ─▶ the subquery with these for constants ─▶ plan ─▶ run ─▶ answer
//!          │                                                    (kept for rows with the same values)
//!        input
//! ```
//!
//! A subquery without outer columns thus runs once. LATERAL is the same with rows for an answer.

mod answer;
mod exec;
mod lower;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use async_trait::async_trait;
use avocet_sql::plan::ColumnId;
use avocet_sql::relational::{ApplyKind, Node};
use avocet_types::error::SqlError;
use avocet_types::expr::Expr;
use avocet_types::{SqlType, Value};
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    self as df, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use exec::ApplyExec;

use crate::barrier::Barrier;
use crate::depth::Depth;
use crate::expected::Expected;
use crate::json_table::JsonTableNode;
use crate::lower::Lowerer;
use crate::measure::Measure;
use crate::names::{df_result, name_of};
use crate::pass_node::PassNode;
use crate::shared::SharedNode;
use crate::single::SingleRow;
use crate::unseen::Unseen;
use crate::wide::WideNode;

/// A subquery, and all that is needed to plan it for given outer values.
pub struct Applied {
    /// Of the answer; of a LATERAL table its first column.
    pub id: ColumnId,
    pub kind: ApplyKind,
    pub query: Arc<Node>,
    /// The enclosing block's columns that it uses.
    pub outer: Vec<(ColumnId, SqlType)>,
    /// It is random: no answer is one for another row.
    pub varies: bool,
    /// What the query's columns and the needles are compared as.
    pub keys: Vec<DataType>,
    /// As of the place where the subquery stands.
    pub lowerer: Lowerer,
}

impl fmt::Debug for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outer: Vec<_> = self.outer.iter().map(|(id, _)| name_of(*id)).collect();
        write!(f, "{} := {:?}, outer=[{}]", name_of(self.id), self.kind, outer.join(", "))
    }
}

impl Applied {
    /// The subquery's plan with these outer values.
    pub fn plan(&self, values: &[Value]) -> std::result::Result<LogicalPlan, SqlError> {
        let mut query = Node::clone(&self.query);
        let known = |id: ColumnId| self.outer.iter().position(|(outer, _)| *outer == id);
        let value = |id| known(id).map(|at| Expr::literal(values[at].clone(), self.outer[at].1));
        query.substitute(&value, &self.lowerer.context);
        self.lowerer.clone().answer_plan(&query, self.kind, &self.keys)
    }
}

/// The logical node.
#[derive(Clone, Debug)]
pub struct ApplyNode {
    applied: Arc<Applied>,
    input: LogicalPlan,
    /// The outer values, then the needles.
    exprs: Vec<df::Expr>,
    schema: DFSchemaRef,
}

impl ApplyNode {
    /// A plan with the input's columns and the `added` ones.
    pub fn plan(
        applied: Applied,
        input: LogicalPlan,
        exprs: Vec<df::Expr>,
        added: Vec<Field>,
    ) -> std::result::Result<LogicalPlan, SqlError> {
        let fields = input.schema().iter().map(|(q, f)| (q.cloned(), f.clone()));
        let fields = fields.chain(added.into_iter().map(|field| (None, Arc::new(field)))).collect();
        let schema = df_result(DFSchema::new_with_metadata(fields, input.schema().metadata().clone()))?;
        let node = Self { applied: Arc::new(applied), input, exprs, schema: Arc::new(schema) };
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
    }

    fn added(&self) -> usize {
        self.schema.fields().len() - self.input.schema().fields().len()
    }
}

impl PartialEq for ApplyNode {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.applied, &other.applied) && self.exprs == other.exprs && self.input == other.input
    }
}

impl Eq for ApplyNode {}

impl PartialOrd for ApplyNode {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        if self == other { Some(std::cmp::Ordering::Equal) } else { None }
    }
}

impl Hash for ApplyNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.applied.id.hash(state);
        self.exprs.hash(state);
        self.input.hash(state);
    }
}

impl UserDefinedLogicalNodeCore for ApplyNode {
    fn name(&self) -> &str {
        "Apply"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<df::Expr> {
        self.exprs.clone()
    }

    fn prevent_predicate_push_down_columns(&self) -> std::collections::HashSet<String> {
        let added = self.schema.fields().iter().rev().take(self.added());
        added.map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Apply: {:?}", self.applied)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<df::Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let input = inputs.pop().ok_or_else(|| DataFusionError::Internal("Apply without input".into()))?;
        let own = self.schema.iter().skip(self.input.schema().fields().len());
        let fields = input.schema().iter().chain(own).map(|(q, f)| (q.cloned(), f.clone())).collect();
        let schema = DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?;
        Ok(Self { applied: self.applied.clone(), input, exprs, schema: Arc::new(schema) })
    }
}

/// DataFusion's planner, which knows our nodes.
#[derive(Debug)]
pub struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(NodePlanner)]);
        planner.create_physical_plan(plan, session).await
    }
}

struct NodePlanner;

#[async_trait]
impl ExtensionPlanner for NodePlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let missing = || DataFusionError::Internal("one input and a session state are needed".into());
        if let Some(physical) = physical_of(node, physical_inputs.first().ok_or_else(missing)?) {
            return Ok(Some(physical));
        }
        if let Some(node) = node.as_any().downcast_ref::<WideNode>() {
            let input = physical_inputs.first().ok_or_else(missing)?.clone();
            return node.physical(input, planner, session, context).map(Some);
        }
        let ([logical], [physical]) = (logical_inputs, physical_inputs) else { return Err(missing()) };
        if let Some(node) = node.as_any().downcast_ref::<JsonTableNode>() {
            let document =
                planner.create_physical_expr(node.document(), logical.schema(), session, context)?;
            return Ok(Some(node.physical(physical.clone(), document)));
        }
        let Some(node) = node.as_any().downcast_ref::<ApplyNode>() else { return Ok(None) };
        let state = session.as_any().downcast_ref::<SessionState>().ok_or_else(missing)?;
        let exprs = node
            .exprs
            .iter()
            .map(|expr| planner.create_physical_expr(expr, logical.schema(), session, context))
            .collect::<Result<Vec<_>>>()?;
        let schema = Arc::new(node.schema.as_arrow().clone());
        let apply =
            ApplyExec::new(physical.clone(), node.applied.clone(), exprs, schema, Arc::new(state.clone()));
        Ok(Some(Arc::new(apply)))
    }
}

/// The operator of a node that passes rows on.
fn physical_of(
    node: &dyn UserDefinedLogicalNode,
    input: &Arc<dyn ExecutionPlan>,
) -> Option<Arc<dyn ExecutionPlan>> {
    let kinds = [
        PassNode::<Depth>::physical,
        PassNode::<Unseen>::physical,
        PassNode::<SingleRow>::physical,
        PassNode::<Barrier>::physical,
        PassNode::<Measure>::physical,
        PassNode::<Expected>::physical,
    ];
    let shared = || node.as_any().downcast_ref::<SharedNode>().map(|node| node.physical(input.clone()));
    kinds.into_iter().find_map(|physical| physical(node, input)).or_else(shared)
}
