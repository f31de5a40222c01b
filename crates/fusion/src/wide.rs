//! Projections and aggregations of so many columns that DataFusion's passes would take long over them.
//!
//! Each of its rules rebuilds schemas and looks columns up by name, one after the other: of `n` columns that takes `n²` steps,
//! some dozens of times. A wide node hides its expressions from the rules, and makes its operator itself, where each
//! expression is planned over the columns that it reads and no others. What the rules would do to it is done before:
//! conditions were pushed down and columns pruned in the relational plan, types are coerced here.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, Result};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{self as df, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::LoweredAggregateBuilder;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_planner::PhysicalPlanner;

use crate::nodes::Columns;
use crate::wide_exec::{Call, WideExec};

/// Nodes with more columns than this are wide. No table of a sound design has so many.
pub(super) const WIDE: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Work {
    Project(Vec<df::Expr>),
    Aggregate { groups: Vec<df::Expr>, calls: Vec<df::Expr> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WideNode {
    work: Arc<Work>,
    input: LogicalPlan,
    schema: DFSchemaRef,
}

impl Work {
    fn exprs(&self) -> impl Iterator<Item = &df::Expr> {
        let (first, second): (&[_], &[_]) = match self {
            Self::Project(exprs) => (exprs, &[]),
            Self::Aggregate { groups, calls } => (groups, calls),
        };
        first.iter().chain(second)
    }
}

/// Whether a node of these expressions, which are resolved, is to be a wide one.
pub(super) fn is_wide(exprs: &[df::Expr]) -> bool {
    // Those with subqueries are left to DataFusion, which plans them.
    let has_subquery = |expr: &df::Expr| expr.exists(|part| Ok(matches!(part, df::Expr::ScalarSubquery(_))));
    exprs.len() > WIDE && !exprs.iter().any(|expr| has_subquery(expr).unwrap_or(true))
}

impl WideNode {
    pub fn project(input: LogicalPlan, exprs: Vec<df::Expr>) -> Result<LogicalPlan> {
        let columns = Columns::new(input.schema());
        let work = Work::Project(coerced(exprs, &columns)?);
        Self::plan(work, input)
    }

    pub fn aggregate(input: LogicalPlan, groups: Vec<df::Expr>, calls: Vec<df::Expr>) -> Result<LogicalPlan> {
        let columns = Columns::new(input.schema());
        let work = Work::Aggregate { groups: coerced(groups, &columns)?, calls: coerced(calls, &columns)? };
        Self::plan(work, input)
    }

    fn plan(work: Work, input: LogicalPlan) -> Result<LogicalPlan> {
        let node = Arc::new(Self::new(Arc::new(work), input)?);
        Ok(LogicalPlan::Extension(Extension { node }))
    }

    fn new(work: Arc<Work>, input: LogicalPlan) -> Result<Self> {
        let schema = Columns::new(input.schema()).schema_of(work.exprs())?;
        Ok(Self { work, input, schema })
    }

    pub fn physical(
        &self,
        input: Arc<dyn ExecutionPlan>,
        planner: &dyn PhysicalPlanner,
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = Columns::new(self.input.schema());
        let physical = |expr: &df::Expr| {
            let (part, positions) = columns.part_of(expr)?;
            let made = planner.create_physical_expr(expr, &part, session, context)?;
            moved(made, &positions, &input.schema())
        };
        match &*self.work {
            Work::Project(exprs) => {
                let named = exprs.iter().zip(self.schema.fields());
                let exprs = named.map(|(expr, field)| Ok((physical(expr)?, field.name().clone())));
                Ok(Arc::new(WideExec::project(exprs.collect::<Result<_>>()?, input)?))
            }
            Work::Aggregate { groups, calls } => {
                let keys = groups
                    .iter()
                    .zip(self.schema.fields())
                    .map(|(group, field)| Ok((physical(group)?, field.name().clone())))
                    .collect::<Result<Vec<_>>>()?;
                let keys = match keys.is_empty() {
                    true => PhysicalGroupBy::new(Vec::new(), Vec::new(), Vec::new(), false),
                    false => PhysicalGroupBy::new_single(keys),
                };
                aggregated(keys, calls, self.input.schema(), input, session, context)
            }
        }
    }
}

/// As DataFusion's planner makes it: in each partition, then over all of a group.
fn aggregated(
    keys: PhysicalGroupBy,
    calls: &[df::Expr],
    logical: &DFSchema,
    input: Arc<dyn ExecutionPlan>,
    session: &dyn Session,
    context: &PhysicalPlanningContext,
) -> Result<Arc<dyn ExecutionPlan>> {
    let (mut aggregates, mut filters) = (Vec::with_capacity(calls.len()), Vec::with_capacity(calls.len()));
    let schema = input.schema();
    for call in calls {
        let properties = session.execution_props();
        let lowered = LoweredAggregateBuilder::new(call, logical, &schema, properties, context).build()?;
        aggregates.push(lowered.aggregate);
        filters.push(lowered.filter);
    }
    // What is sorted within is left to DataFusion's operator.
    if keys.is_empty() && aggregates.iter().all(|aggregate| aggregate.order_bys().is_empty()) {
        let calls = aggregates.into_iter().zip(filters).map(|(aggregate, filter)| Call { aggregate, filter });
        return Ok(Arc::new(WideExec::aggregate(calls.collect(), input)));
    }
    let spread = !keys.is_empty()
        && session.config().target_partitions() > 1
        && session.config().repartition_aggregations();
    let first = AggregateExec::try_new(
        AggregateMode::Partial,
        keys,
        aggregates,
        filters.clone(),
        input,
        schema.clone(),
    )?;
    let mode = if spread { AggregateMode::FinalPartitioned } else { AggregateMode::Final };
    let (keys, aggregates) = (first.group_expr().as_final(), first.aggr_expr().to_vec());
    Ok(Arc::new(AggregateExec::try_new(mode, keys, aggregates, filters, Arc::new(first), schema)?))
}

/// The expressions in types that DataFusion's functions take, and without those that it only knows how to rewrite.
fn coerced(exprs: Vec<df::Expr>, columns: &Columns<'_>) -> Result<Vec<df::Expr>> {
    exprs.into_iter().map(|expr| coerced_one(expr, columns)).collect()
}

fn coerced_one(expr: df::Expr, columns: &Columns<'_>) -> Result<df::Expr> {
    // Most are columns, and what is cast already.
    if let df::Expr::Alias(alias) = &expr
        && matches!(*alias.expr, df::Expr::Column(_))
    {
        return Ok(expr);
    }
    let (part, _) = columns.part_of(&expr)?;
    let expr = expr.rewrite(&mut TypeCoercionRewriter::new(&part))?.data;
    let is_rewritten = expr.exists(|part| {
        Ok(matches!(part, df::Expr::ScalarFunction(call) if ["coalesce", "nvl"].contains(&call.name())))
    })?;
    match is_rewritten {
        false => Ok(expr),
        true => {
            let context = SimplifyContext::builder().with_schema(Arc::new(part)).build();
            ExprSimplifier::new(context).simplify(expr)
        }
    }
}

/// The expression over the input, where its columns stand at these places.
fn moved(
    expr: Arc<dyn PhysicalExpr>,
    positions: &HashMap<String, usize>,
    input: &SchemaRef,
) -> Result<Arc<dyn PhysicalExpr>> {
    let moved = expr.transform(|part| {
        let Some(column) = part.downcast_ref::<PhysicalColumn>() else { return Ok(Transformed::no(part)) };
        let at = positions.get(column.name()).copied();
        let at = at.ok_or_else(|| DataFusionError::Internal(format!("no column {}", column.name())))?;
        let column = PhysicalColumn::new(input.field(at).name(), at);
        Ok(Transformed::yes(Arc::new(column) as Arc<dyn PhysicalExpr>))
    });
    moved.map(|moved| moved.data)
}

impl PartialOrd for WideNode {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        if self == other { Some(std::cmp::Ordering::Equal) } else { None }
    }
}

impl Hash for WideNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.work.hash(state);
        self.input.hash(state);
    }
}

impl UserDefinedLogicalNodeCore for WideNode {
    fn name(&self) -> &str {
        "Wide"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<df::Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wide: {} columns", self.schema.fields().len())
    }

    fn with_exprs_and_inputs(&self, _: Vec<df::Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let input = inputs.pop().ok_or_else(|| DataFusionError::Internal("Wide without input".into()))?;
        if input.schema() == self.input.schema() {
            return Ok(Self { work: self.work.clone(), input, schema: self.schema.clone() });
        }
        Self::new(self.work.clone(), input)
    }
}
