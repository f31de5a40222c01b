//! The bound algebra to DataFusion's logical plans.
//!
//! A column with id `n` is DataFusion's column `c<n>` from its producer up; ids are unique in the query, so no name ever
//! needs a qualifier to be told apart. Subqueries become DataFusion's subquery expressions, which its optimizer
//! decorrelates; what an enclosing block provides becomes an outer reference.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use avocet_sql::bind::unsupported;
use avocet_sql::parse::ast::SetOperator;
use avocet_sql::plan::walk;
use avocet_sql::plan::*;
use avocet_types::error::SqlError;
use avocet_types::expr::{EvalContext, Expr, ExprKind};
use avocet_types::{Datum, Value};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::{Column, NullEquality, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::logical_plan::RecursiveQuery;
use datafusion::logical_expr::{self as df, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, Union, lit};

use crate::depth::DepthNode;
use crate::error::plan_error;
use crate::expr::{LONG_CHAIN, Lowered, cast, junction, type_bound};
use crate::results::ResultBytes;
use crate::scan::SnapshotTable;
use crate::setup::Method;
use crate::shared::SharedNode;
use crate::source::ScanSource;
use crate::stop::Stop;

/// No join that ends in our lifetime gives more rows: the bound for sums where nothing better is known.
pub(super) const MOST_ROWS: f64 = 1e13;

#[derive(Clone)]
pub(super) struct Lowerer {
    pub query: Arc<BoundQuery>,
    pub source: Arc<dyn ScanSource>,
    pub params: Arc<[Value]>,
    pub context: Arc<EvalContext>,
    /// Answer every subquery row by row, since DataFusion could not plan the query otherwise.
    pub apply_all: bool,
    /// What the plan is for.
    pub method: Method,
    pub results: Arc<ResultBytes>,
    /// The qualified names of scanned columns; all others go by their id alone.
    names: HashMap<ColumnId, Column>,
    /// Where it differs from the SQL type's Arrow type.
    physical: HashMap<ColumnId, DataType>,
    /// Largest absolute values, where statistics know better than the type.
    pub bounds: HashMap<ColumnId, f64>,
    /// An upper bound for the rows of the block at hand.
    pub most_rows: f64,
    /// About how many rows the part that was lowered last gives.
    pub rows: f64,
    /// Those that DataFusion turns into joins.
    pub subqueries: HashMap<ColumnId, Arc<Subquery>>,
    /// Those that are answered row by row, and are not yet.
    pub pending: BTreeMap<ColumnId, Arc<Subquery>>,
    /// Columns that the subquery at hand has from outside.
    pub outer: HashSet<ColumnId>,
    ctes: HashMap<CteId, LoweredCte>,
    /// Those that are evaluated once, though they are read more often.
    shared: Arc<HashSet<CteId>>,
    /// The step of a recursion is at hand: what it defines has other rows each time.
    in_step: bool,
    scans: usize,
    pub stop: Arc<Stop>,
}

#[derive(Clone)]
struct LoweredCte {
    plan: LogicalPlan,
    columns: Vec<ColumnId>,
    rows: f64,
}

/// The column that numbers equal rows.
const NUMBER: &str = "row_number";

pub(super) fn name_of(id: ColumnId) -> String {
    format!("c{}", id.0)
}

pub(super) fn df_result<T>(result: datafusion::common::Result<T>) -> Result<T, SqlError> {
    result.map_err(|error| plan_error(&error))
}

impl Lowerer {
    pub(super) fn new(
        query: Arc<BoundQuery>,
        source: Arc<dyn ScanSource>,
        params: Arc<[Value]>,
        context: Arc<EvalContext>,
        stop: Arc<Stop>,
    ) -> Self {
        let shared = Arc::new(walk::shared_ctes(&query.body));
        Self {
            query,
            source,
            params,
            context,
            apply_all: false,
            method: Method::InMemory,
            results: Arc::default(),
            names: HashMap::new(),
            physical: HashMap::new(),
            bounds: HashMap::new(),
            most_rows: 1.0,
            rows: 1.0,
            subqueries: HashMap::new(),
            pending: BTreeMap::new(),
            outer: HashSet::new(),
            ctes: HashMap::new(),
            shared,
            in_step: false,
            scans: 0,
            stop,
        }
    }

    /// The whole query; outputs have the Arrow types of their SQL types, in order.
    pub(super) fn root(&mut self) -> Result<LogicalPlan, SqlError> {
        let query = self.query.clone();
        let plan = self.query_expr(&query.body)?;
        let mut outputs = Vec::with_capacity(query.body.outputs.len());
        for (i, id) in query.body.outputs.iter().enumerate() {
            let column = self.column(*id)?;
            outputs.push(cast(column, &query.columns[*id].ty.arrow_type()).alias(format!("o{i}")));
        }
        df_result(LogicalPlanBuilder::from(plan).project(outputs).and_then(|b| b.build()))
    }

    pub(super) fn is_outer(&self, id: ColumnId) -> bool {
        self.outer.contains(&id)
    }

    pub(super) fn physical_type(&self, id: ColumnId) -> DataType {
        self.physical.get(&id).cloned().unwrap_or_else(|| self.query.columns[id].ty.arrow_type())
    }

    pub(super) fn set_physical(&mut self, id: ColumnId, ty: DataType) {
        if ty != self.query.columns[id].ty.arrow_type() {
            self.physical.insert(id, ty);
        }
    }

    /// A column, an outer reference, or the subquery that it stands for.
    pub(super) fn column(&mut self, id: ColumnId) -> Result<Lowered, SqlError> {
        if let Some(subquery) = self.subqueries.get(&id).cloned() {
            return self.subquery(&subquery);
        }
        if self.pending.contains_key(&id) {
            return Err(unsupported("a subquery in this place"));
        }
        let ty = self.physical_type(id);
        let column = self.names.get(&id).cloned().unwrap_or_else(|| Column::from_name(name_of(id)));
        if self.outer.contains(&id) {
            let field: FieldRef = Arc::new(Field::new(&column.name, ty.clone(), true));
            return Ok(Lowered { expr: df::Expr::OuterReferenceColumn(field, column), ty });
        }
        Ok(Lowered { expr: df::Expr::Column(column), ty })
    }

    pub(super) fn is_nullable(&self, ids: &[ColumnId]) -> bool {
        ids.iter().any(|id| self.query.columns[*id].nullable)
    }

    pub(super) fn query_expr(&mut self, query: &QueryExpr) -> Result<LogicalPlan, SqlError> {
        self.stop.check()?;
        for cte in &query.ctes {
            self.cte(cte)?;
        }
        let mut plan = match &query.body {
            QueryBody::Select(select) => self.select(select)?,
            QueryBody::SetOperation(set) => self.set_operation(set)?,
            QueryBody::Values(values) => self.values(values)?,
            QueryBody::Nested(inner) => self.query_expr(inner)?,
        };
        plan = self.order_and_limit(plan, query)?;
        let outputs = query.outputs.iter().map(|id| self.plain_column(*id)).collect::<Vec<_>>();
        if plan.schema().fields().len() == outputs.len() {
            return Ok(plan);
        }
        df_result(LogicalPlanBuilder::from(plan).project(outputs).and_then(|b| b.build()))
    }

    pub(super) fn plain_column(&self, id: ColumnId) -> df::Expr {
        df::Expr::Column(self.names.get(&id).cloned().unwrap_or_else(|| Column::from_name(name_of(id))))
    }

    fn order_and_limit(&mut self, plan: LogicalPlan, query: &QueryExpr) -> Result<LogicalPlan, SqlError> {
        let mut builder = LogicalPlanBuilder::from(plan);
        if !query.order_by.is_empty() {
            let keys = query.order_by.iter().map(|key| {
                let info = &self.query.columns[key.column];
                let column = Expr::column(key.column.index(), info.ty, info.nullable);
                Ok(self.sort_key(&column)?.sort(!key.descending, !key.descending))
            });
            let keys = keys.collect::<Result<Vec<_>, SqlError>>()?;
            builder = df_result(builder.sort(keys))?;
        }
        let plan = df_result(builder.build())?;
        self.limited(plan, query.limit.as_ref())
    }

    fn limited(&mut self, plan: LogicalPlan, limit: Option<&Limit>) -> Result<LogicalPlan, SqlError> {
        let mut builder = LogicalPlanBuilder::from(plan);
        if let Some(limit) = limit {
            // DataFusion counts in i64; more is as good as no limit, which is how clients write it.
            let most = i64::MAX as usize;
            let skip = limit.offset.as_ref().map(|o| self.limit_value(o)).transpose()?.unwrap_or(0).min(most);
            let fetch = self.limit_value(&limit.count)?;
            let counted = Some(fetch).filter(|fetch| *fetch < most - skip);
            builder = df_result(builder.limit(skip, counted))?;
            self.rows = self.rows.min(fetch as f64);
        }
        df_result(builder.build())
    }

    fn limit_value(&self, expr: &Expr) -> Result<usize, SqlError> {
        let value = match self.prepare(expr).kind {
            ExprKind::Literal(Datum::UInt(v)) => usize::try_from(v).ok(),
            ExprKind::Literal(Datum::Int(v)) => usize::try_from(v).ok(),
            _ => None,
        };
        value.ok_or_else(|| avocet_types::error::ErrorCode::WRONG_ARGUMENTS.with(&[&"LIMIT"]))
    }

    fn select(&mut self, select: &Select) -> Result<LogicalPlan, SqlError> {
        self.sort_subqueries(select);
        self.most_rows = 1.0;
        let mut plan = self.filtered_from(&select.from, select.filter.as_ref())?;
        if let Some(aggregation) = &select.aggregation {
            let args = aggregation
                .aggregates
                .iter()
                .flat_map(|a| a.args.iter().chain(a.order_by.iter().map(|(expr, _)| expr)));
            plan = self.answered(plan, aggregation.keys.iter().map(|k| &k.expr).chain(args))?;
            plan = self.aggregation(plan, aggregation)?;
            self.rows = if aggregation.keys.is_empty() { 1.0 } else { (self.rows / 10.0).max(1.0) };
        }
        if let Some(having) = &select.having {
            let having = self.prepare(having).into_conjuncts();
            plan = self.answered(plan, &having)?;
            plan = self.filter(plan, &having)?;
        }
        if !select.windows.is_empty() {
            let exprs = select.windows.iter().flat_map(|w| {
                w.args.iter().chain(&w.partition_by).chain(w.order_by.iter().map(|(expr, _)| expr))
            });
            plan = self.answered(plan, exprs)?;
            plan = self.windows(plan, &select.windows)?;
        }
        plan = self.answered(plan, select.projection.iter().map(|p| &p.expr))?;
        plan = self.projection(plan, &select.projection)?;
        if select.distinct {
            let ids: Vec<_> = select.projection.iter().map(|p| p.id).collect();
            plan = self.distinct(plan, &ids)?;
        }
        Ok(plan)
    }

    /// The rows for which all conditions hold, in one node: DataFusion decorrelates the conjuncts of a filter together.
    pub(super) fn filter(&mut self, plan: LogicalPlan, conditions: &[Expr]) -> Result<LogicalPlan, SqlError> {
        let (native, packed) = self.split_long(conditions);
        let mut all = native.into_iter().map(|part| self.condition(part)).collect::<Result<Vec<_>, _>>()?;
        if !packed.is_empty() {
            let nullable = packed.iter().any(|part| part.nullable);
            all.push(self.condition(&Expr::truth(ExprKind::And(packed), nullable))?);
        }
        if all.is_empty() {
            return Ok(plan);
        }
        let all = junction(all, Operator::And);
        df_result(LogicalPlanBuilder::from(plan).filter(all).and_then(|b| b.build()))
    }

    /// Of many conditions, those that DataFusion sees one by one, and those that it sees as one. What asks a subquery is
    /// always of the first: it is decorrelated.
    fn split_long<'e>(&self, conditions: &'e [Expr]) -> (Vec<&'e Expr>, Vec<Expr>) {
        if conditions.len() <= 2 * LONG_CHAIN {
            return (conditions.iter().collect(), Vec::new());
        }
        let is_plain = |part: &Expr| {
            part.columns().into_iter().map(|c| ColumnId(c as u32)).all(|id| {
                !self.subqueries.contains_key(&id) && !self.pending.contains_key(&id) && !self.is_outer(id)
            })
        };
        let (mut native, mut packed) = (Vec::new(), Vec::new());
        for part in conditions {
            match native.len() < LONG_CHAIN || !is_plain(part) {
                true => native.push(part),
                false => packed.push(part.clone()),
            }
        }
        (native, packed)
    }

    pub(super) fn projection(
        &mut self,
        plan: LogicalPlan,
        items: &[Projected],
    ) -> Result<LogicalPlan, SqlError> {
        let mut exprs = Vec::with_capacity(items.len());
        for item in items {
            let expr = self.prepare(&item.expr);
            let bound = self.bound(&expr);
            let lowered = self.value(&expr)?;
            self.define(item.id, lowered.ty.clone(), bound);
            exprs.push(lowered.expr.alias(name_of(item.id)));
        }
        df_result(LogicalPlanBuilder::from(plan).project(exprs).and_then(|b| b.build()))
    }

    /// Notes what a new column is like.
    pub(super) fn define(&mut self, id: ColumnId, ty: DataType, bound: f64) {
        self.set_physical(id, ty);
        if bound < type_bound(&self.query.columns[id].ty) {
            self.bounds.insert(id, bound);
        }
    }

    /// One part of FROM that is no inner join.
    pub(super) fn relation(&mut self, from: &From) -> Result<LogicalPlan, SqlError> {
        match from {
            From::Dual => df_result(LogicalPlanBuilder::empty(true).build()),
            From::Table(scan) => self.scan(scan),
            From::Derived(derived) => {
                if !derived.outer.is_empty() {
                    return Err(unsupported("LATERAL in this place"));
                }
                let rows = std::mem::replace(&mut self.most_rows, 1.0);
                let plan = self.query_expr(&derived.query)?;
                self.most_rows = (self.most_rows * rows).min(MOST_ROWS);
                Ok(plan)
            }
            From::Cte(reference) => self.cte_ref(reference),
            From::Join(join) => self.outer_join(join),
        }
    }

    fn outer_join(&mut self, join: &Join) -> Result<LogicalPlan, SqlError> {
        let left = self.filtered_from(&join.left, None)?;
        let left_rows = self.rows;
        if let From::Derived(derived) = &join.right
            && !derived.outer.is_empty()
        {
            return self.lateral(left, derived, Some(join.on.as_ref()));
        }
        let right = self.filtered_from(&join.right, None)?;
        self.rows = self.rows.max(left_rows);
        let (left, right) = self.answered_sides(left, right, join)?;
        let conditions = match &join.on {
            None => vec![lit(true)],
            Some(on) => {
                let on = self.prepare(on);
                on.into_conjuncts().iter().map(|c| self.condition(c)).collect::<Result<Vec<_>, _>>()?
            }
        };
        df_result(
            LogicalPlanBuilder::from(left).join_on(right, JoinType::Left, conditions).and_then(|b| b.build()),
        )
    }

    fn scan(&mut self, scan: &TableScan) -> Result<LogicalPlan, SqlError> {
        let relation = TableReference::bare(format!("t{}", self.scans));
        self.scans += 1;
        let table = SnapshotTable::new(scan, self.source.clone());
        if let Some(statistics) = &table.statistics {
            self.most_rows = (self.most_rows * (statistics.rows.max(1) as f64)).min(MOST_ROWS);
            for (position, id) in &scan.columns {
                if let Some(column) = statistics.columns.get(*position)
                    && let (Some(min), Some(max)) = (&column.min, &column.max)
                    && let (Some(min), Some(max)) = (magnitude(min), magnitude(max))
                {
                    self.bounds.insert(*id, min.max(max));
                }
            }
        } else {
            self.most_rows = MOST_ROWS;
        }
        for (_, id) in &scan.columns {
            self.names.insert(*id, Column::new(Some(relation.clone()), name_of(*id)));
        }
        let source = provider_as_source(Arc::new(table));
        df_result(LogicalPlanBuilder::scan(relation, source, None).and_then(|b| b.build()))
    }

    fn cte(&mut self, cte: &Cte) -> Result<(), SqlError> {
        match &cte.body {
            CteBody::Plain(body) => {
                let plan = self.query_expr(body)?;
                let plan = self.rename(plan, &body.outputs, &cte.columns)?;
                let plan = self.shared(cte.id, plan);
                self.ctes.insert(cte.id, LoweredCte { plan, columns: cte.columns.clone(), rows: self.rows });
            }
            CteBody::Recursive { seed, step, distinct, limit } => {
                let seed_plan = self.query_expr(seed)?;
                let seed_plan = self.as_columns(seed_plan, &seed.outputs, &cte.columns)?;
                let name = format!("w{}", cte.id.0);
                let fields =
                    cte.columns.iter().map(|id| Field::new(name_of(*id), self.physical_type(*id), true));
                let schema = Arc::new(arrow::datatypes::Schema::new(fields.collect::<Vec<_>>()));
                let work_table = provider_as_source(Arc::new(CteWorkTable::new(&name, schema)));
                let scan =
                    df_result(LogicalPlanBuilder::scan(&*name, work_table, None).and_then(|b| b.build()))?;
                let unqualified = cte.columns.iter().map(|id| {
                    df::Expr::Column(Column::new(Some(name.as_str()), name_of(*id))).alias(name_of(*id))
                });
                let unqualified: Vec<_> = unqualified.collect();
                let scan =
                    df_result(LogicalPlanBuilder::from(scan).project(unqualified).and_then(|b| b.build()))?;
                self.ctes
                    .insert(cte.id, LoweredCte { plan: scan, columns: cte.columns.clone(), rows: self.rows });
                let in_step = std::mem::replace(&mut self.in_step, true);
                let step_plan = self.query_expr(step)?;
                self.in_step = in_step;
                let step_plan = self.as_columns(step_plan, &step.outputs, &cte.columns)?;
                let step_plan = DepthNode::plan(step_plan, self.context.cte_max_recursion_depth);
                let query =
                    RecursiveQuery::try_new(name, Arc::new(seed_plan), Arc::new(step_plan), *distinct);
                let plan = LogicalPlan::RecursiveQuery(df_result(query)?);
                let plan = self.limited(plan, limit.as_ref())?;
                let plan = self.shared(cte.id, plan);
                self.ctes.insert(cte.id, LoweredCte { plan, columns: cte.columns.clone(), rows: self.rows });
            }
        }
        Ok(())
    }

    /// What all references to a common table expression read: its plan, each for itself, or what came of it once.
    fn shared(&self, id: CteId, plan: LogicalPlan) -> LogicalPlan {
        // One that refers to outer rows has other rows for each.
        let is_fixed = !self.in_step && self.outer.is_empty();
        if is_fixed && self.shared.contains(&id) { SharedNode::plan(plan) } else { plan }
    }

    /// The plan with its columns `from` under the ids `to`, whatever their physical types are.
    fn rename(
        &mut self,
        plan: LogicalPlan,
        from: &[ColumnId],
        to: &[ColumnId],
    ) -> Result<LogicalPlan, SqlError> {
        let mut exprs = Vec::with_capacity(from.len());
        for (from, to) in from.iter().zip(to) {
            let bound = self.bounds.get(from).copied().unwrap_or(f64::INFINITY);
            let ty = self.physical_type(*from);
            exprs.push(self.plain_column(*from).alias(name_of(*to)));
            self.define(*to, ty, bound);
        }
        df_result(LogicalPlanBuilder::from(plan).project(exprs).and_then(|b| b.build()))
    }

    /// The same, with the columns cast to the Arrow types of the ids' SQL types.
    fn as_columns(
        &mut self,
        plan: LogicalPlan,
        from: &[ColumnId],
        to: &[ColumnId],
    ) -> Result<LogicalPlan, SqlError> {
        let mut exprs = Vec::with_capacity(from.len());
        for (from, to) in from.iter().zip(to) {
            let value = Lowered { expr: self.plain_column(*from), ty: self.physical_type(*from) };
            let ty = self.query.columns[*to].ty.arrow_type();
            exprs.push(cast(value, &ty).alias(name_of(*to)));
        }
        df_result(LogicalPlanBuilder::from(plan).project(exprs).and_then(|b| b.build()))
    }

    fn cte_ref(&mut self, reference: &CteRef) -> Result<LogicalPlan, SqlError> {
        let cte = self.ctes.get(&reference.cte).cloned();
        let cte = cte.ok_or_else(|| unsupported("a reference to this common table expression"))?;
        self.most_rows = MOST_ROWS;
        self.rows = cte.rows;
        self.rename(cte.plan, &cte.columns, &reference.columns)
    }

    fn values(&mut self, values: &Values) -> Result<LogicalPlan, SqlError> {
        self.rows = values.rows.len() as f64;
        let mut rows = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            let row = row.iter().map(|value| {
                let value = self.prepare(value);
                self.logical_value(&value)
            });
            rows.push(row.collect::<Result<Vec<_>, _>>()?);
        }
        let plan = df_result(LogicalPlanBuilder::values(rows).and_then(|b| b.build()))?;
        let names = plan.schema().columns();
        let exprs = names.into_iter().zip(&values.columns).map(|(column, id)| {
            let ty = self.query.columns[*id].ty.arrow_type();
            df::cast(df::Expr::Column(column), ty).alias(name_of(*id))
        });
        let exprs: Vec<_> = exprs.collect();
        df_result(LogicalPlanBuilder::from(plan).project(exprs).and_then(|b| b.build()))
    }

    fn set_operation(&mut self, set: &SetOperation) -> Result<LogicalPlan, SqlError> {
        let left = self.query_expr(&set.left)?;
        let left = self.as_columns(left, &set.left.outputs, &set.columns)?;
        let left_rows = self.rows;
        let right = self.query_expr(&set.right)?;
        let right = self.as_columns(right, &set.right.outputs, &set.columns)?;
        self.most_rows = MOST_ROWS;
        self.rows = if set.op == SetOperator::Union { self.rows + left_rows } else { left_rows };
        match set.op {
            SetOperator::Union => {
                let union = Union::try_new_with_loose_types(vec![Arc::new(left), Arc::new(right)]);
                let plan = LogicalPlan::Union(df_result(union)?);
                if set.all { Ok(plan) } else { self.distinct(plan, &set.columns) }
            }
            op => {
                let join = if op == SetOperator::Except { JoinType::LeftAnti } else { JoinType::LeftSemi };
                if set.all {
                    let left = self.numbered(left, &set.columns)?;
                    let right = self.numbered(right, &set.columns)?;
                    return self.matching(left, right, &set.columns, join, true);
                }
                let left = self.distinct(left, &set.columns)?;
                self.matching(left, right, &set.columns, join, false)
            }
        }
    }

    /// Equal rows get the numbers 1, 2, …: so with ALL each row meets at most one of the other side.
    fn numbered(&mut self, plan: LogicalPlan, ids: &[ColumnId]) -> Result<LogicalPlan, SqlError> {
        let keys = ids
            .iter()
            .map(|id| super::expr::equality_key_of(self.plain_column(*id), &self.query.columns[*id].ty));
        let function = datafusion::functions_window::row_number::row_number_udwf();
        let mut call = df::expr::WindowFunction::new(function, Vec::new());
        call.params.partition_by = keys.collect();
        let call = df::Expr::WindowFunction(Box::new(call));
        let number = df::ident(call.schema_name().to_string()).alias(NUMBER);
        let columns: Vec<_> =
            plan.schema().columns().into_iter().map(df::Expr::Column).chain([number]).collect();
        let plan = df_result(LogicalPlanBuilder::window_plan(plan, vec![call]))?;
        df_result(LogicalPlanBuilder::from(plan).project(columns).and_then(|b| b.build()))
    }

    /// Rows of the left side that have, or do not have, an equal one on the right; NULLs are equal.
    fn matching(
        &mut self,
        left: LogicalPlan,
        right: LogicalPlan,
        ids: &[ColumnId],
        join: JoinType,
        numbered: bool,
    ) -> Result<LogicalPlan, SqlError> {
        let right = df_result(LogicalPlanBuilder::from(right).alias("r").and_then(|b| b.build()))?;
        let mut keys = Vec::with_capacity(ids.len());
        for id in ids {
            let ty = self.query.columns[*id].ty;
            let key = |expr| super::expr::equality_key_of(expr, &ty);
            let theirs = df::Expr::Column(Column::new(Some("r"), name_of(*id)));
            keys.push((key(self.plain_column(*id)), key(theirs)));
        }
        if numbered {
            keys.push((df::ident(NUMBER), df::Expr::Column(Column::new(Some("r"), NUMBER))));
        }
        let (left_keys, right_keys): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        let joined =
            LogicalPlanBuilder::from(left).join_with_expr_keys(right, join, (left_keys, right_keys), None);
        let joined = df_result(joined.and_then(|b| b.build()))?;
        let joined = match joined {
            LogicalPlan::Join(mut join) => {
                join.null_equality = NullEquality::NullEqualsNull;
                LogicalPlan::Join(join)
            }
            other => other,
        };
        let columns: Vec<_> = ids.iter().map(|id| self.plain_column(*id)).collect();
        df_result(LogicalPlanBuilder::from(joined).project(columns).and_then(|b| b.build()))
    }
}

fn magnitude(value: &Value) -> Option<f64> {
    Some(match value {
        Datum::Int(v) => v.unsigned_abs() as f64,
        Datum::UInt(v) => *v as f64,
        Datum::Decimal(v) => v.to_f64().abs(),
        _ => return None,
    })
}
