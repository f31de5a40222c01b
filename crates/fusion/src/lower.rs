//! The relational plan on DataFusion, operator by operator.
//!
//! A column with id `n` is DataFusion's column `c<n>` from its producer up; ids are unique in the query, so no name ever
//! needs a qualifier to be told apart. What is joined with what, and in which order, is decided before; here it is only put
//! into DataFusion's terms.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use avocet_sql::plan::{ColumnId, ColumnTable, CteId, Projected, SortKey};
use avocet_sql::relational::{Checkpoint, JoinKind, Node, Operator, Plan, Recursive, RowRange, Scan};
use avocet_types::error::SqlError;
use avocet_types::expr::{EvalContext, Expr, ExprKind};
use avocet_types::{ColumnBuilder, SqlType};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::{Column, DataFusionError, Spans, TableReference};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::logical_plan::{RecursiveQuery, Subquery};
use datafusion::logical_expr::{self as df, LogicalPlan, LogicalPlanBuilder, Operator as Op};

use crate::barrier::{Barrier, JOINS_BETWEEN};
use crate::depth::Depth;
use crate::expr::{LONG_CHAIN, Lowered, cast, equality_key_of, equals_bytewise, junction, raises_late};
use crate::measure::{Measure, Measurements};
use crate::method::Method;
use crate::names::{df_result, name_of};
use crate::nodes;
use crate::pass_node::PassNode;
use crate::results::ResultBytes;
use crate::scan::SnapshotTable;
use crate::shared::SharedNode;
use crate::single::SingleRow;
use crate::source::ScanSource;
use crate::stop::Stop;
use crate::udf::OrderKeyUdf;
use crate::unseen::Keys;

/// Of a long ORDER BY, those that stay keys of their own.
const FIRST_KEYS: usize = 8;
/// VALUES of so many rows are a table.
const MANY_VALUES: usize = 64;
/// These stand in batches of so many.
const BATCH_ROWS: usize = 8192;

#[derive(Clone)]
pub(super) struct Lowerer {
    pub plan: Arc<Plan>,
    pub source: Arc<dyn ScanSource>,
    pub context: Arc<EvalContext>,
    /// What the plan is for.
    pub method: Method,
    pub results: Arc<ResultBytes>,
    /// Where what each node does is noted, if it is.
    pub measurements: Option<Arc<Measurements>>,
    /// The qualified names of columns that have one; all others go by their id alone.
    pub names: HashMap<ColumnId, Column>,
    /// Where it differs from the SQL type's Arrow type.
    physical: HashMap<ColumnId, DataType>,
    /// Values of what is evaluated before the rest.
    before: HashMap<ColumnId, (df::Expr, DataType)>,
    /// What is evaluated once for several readers.
    shared: HashMap<CteId, LogicalPlan>,
    /// The most rows that the aggregate or window at hand has.
    pub most_rows: f64,
    scans: usize,
    /// Joins but inner ones, so far.
    pub outer_joins: usize,
    /// There are many of these.
    pub has_many_joins: bool,
    pub stop: Arc<Stop>,
}

pub(super) fn as_subquery(plan: LogicalPlan) -> Subquery {
    Subquery { outer_ref_columns: Vec::new(), subquery: Arc::new(plan), spans: Spans::new() }
}

impl Lowerer {
    pub(super) fn new(
        plan: Arc<Plan>,
        source: Arc<dyn ScanSource>,
        context: Arc<EvalContext>,
        method: Method,
        measurements: Option<Arc<Measurements>>,
        stop: Arc<Stop>,
    ) -> Self {
        let plan = plan.with_path_columns().map_or(plan, Arc::new);
        Self {
            plan,
            source,
            context,
            method,
            measurements,
            results: Arc::default(),
            names: HashMap::new(),
            physical: HashMap::new(),
            before: HashMap::new(),
            shared: HashMap::new(),
            most_rows: 1.0,
            scans: 0,
            outer_joins: 0,
            has_many_joins: false,
            stop,
        }
    }

    /// The whole query; outputs have the Arrow types of their SQL types, in order.
    pub(super) fn root(&mut self) -> Result<LogicalPlan, SqlError> {
        let plan = self.plan.clone();
        let is_outer =
            |node: &&Node| matches!(&node.operator, Operator::Join(join) if join.kind != JoinKind::Inner);
        self.has_many_joins = nodes_of(&plan.root).into_iter().filter(is_outer).count() > JOINS_BETWEEN;
        let lowered = self.node(&plan.root)?;
        let mut outputs = Vec::with_capacity(plan.root.outputs.len());
        for (i, id) in plan.root.outputs.iter().enumerate() {
            let column = self.column(*id);
            outputs.push(cast(column, &plan.columns[*id].ty.arrow_type()).alias(format!("o{i}")));
        }
        nodes::project(lowered, outputs)
    }

    pub(super) fn columns(&self) -> &ColumnTable {
        &self.plan.columns
    }

    pub(super) fn bound(&self, expr: &Expr) -> f64 {
        self.plan.bounds.of(expr)
    }

    pub(super) fn physical_type(&self, id: ColumnId) -> DataType {
        self.physical.get(&id).cloned().unwrap_or_else(|| self.columns()[id].ty.arrow_type())
    }

    /// Notes the type that a new column has.
    pub(super) fn define(&mut self, id: ColumnId, ty: DataType) {
        if ty != self.columns()[id].ty.arrow_type() {
            self.physical.insert(id, ty);
        }
    }

    /// From now on the columns go by their ids, and have the types that they have in a table.
    pub(super) fn make_plain<'i>(&mut self, ids: impl IntoIterator<Item = &'i ColumnId>) {
        for id in ids {
            self.names.remove(id);
            self.physical.remove(id);
        }
    }

    /// A column, or the value that was evaluated before.
    pub(super) fn column(&self, id: ColumnId) -> Lowered {
        match self.before.get(&id) {
            Some((expr, ty)) => Lowered { expr: expr.clone(), ty: ty.clone() },
            None => Lowered { expr: self.plain_column(id), ty: self.physical_type(id) },
        }
    }

    pub(super) fn plain_column(&self, id: ColumnId) -> df::Expr {
        df::Expr::Column(self.names.get(&id).cloned().unwrap_or_else(|| Column::from_name(name_of(id))))
    }

    /// An expression of the relational plan for a column.
    pub(super) fn column_expr(&self, id: ColumnId) -> Expr {
        let info = &self.columns()[id];
        Expr::column(id.index(), info.ty, info.nullable)
    }

    pub(super) fn node(&mut self, node: &Node) -> Result<LogicalPlan, SqlError> {
        self.stop.check()?;
        let plan = self.operator(node)?;
        match &self.measurements {
            Some(measurements) => df_result(Measure::plan(plan, node.id, measurements.clone())),
            None => Ok(plan),
        }
    }

    fn operator(&mut self, node: &Node) -> Result<LogicalPlan, SqlError> {
        match &node.operator {
            Operator::OneRow => df_result(LogicalPlanBuilder::empty(true).build()),
            Operator::Scan(scan) => self.scan(scan),
            Operator::Values(rows) => self.values(rows, &node.outputs),
            Operator::JsonTable { document, level, columns } => {
                self.json_table(document, level, columns, &node.outputs)
            }
            Operator::Filter { input, conditions } => {
                let plan = self.node(input)?;
                self.filter(plan, conditions)
            }
            Operator::Project { input, items } => {
                let mut plan = self.node(input)?;
                // What may raise errors is computed behind the limit, although it would narrow what is sorted.
                let is_limited = matches!(input.operator, Operator::Sort { range: Some(_), .. });
                if is_limited && items.iter().any(|item| item.expr.can_fail()) {
                    plan = df_result(PassNode::plan(Barrier, plan))?;
                }
                // A table below may have had columns of the same ids.
                self.make_plain(items.iter().map(|item| &item.id));
                self.projection(plan, items, &node.outputs)
            }
            Operator::Join(join) => self.join(join),
            Operator::Aggregate { input, aggregation } => {
                let plan = self.node(input)?;
                self.most_rows = input.most_rows;
                self.aggregation(plan, aggregation)
            }
            Operator::Distinct { input } => {
                let plan = self.node(input)?;
                let plan = self.exactly(plan, &node.outputs)?;
                self.distinct(plan, &node.outputs)
            }
            Operator::Window { input, functions } => {
                let plan = self.node(input)?;
                self.most_rows = input.most_rows;
                if functions.is_empty() { Ok(plan) } else { self.windows(plan, functions) }
            }
            Operator::Sort { input, keys, range } => {
                let plan = self.node(input)?;
                let plan = self.sorted(plan, keys)?;
                limited(plan, *range)
            }
            Operator::Limit { input, range } => limited(self.node(input)?, Some(*range)),
            Operator::SetOperation(set) => self.set_operation(set, &node.outputs),
            Operator::Apply(apply) => self.apply(apply),
            Operator::Once { id, query, input } => {
                self.once(*id, query)?;
                self.node(input)
            }
            Operator::With { cte, body, input, .. } => {
                let plan = self.node(body)?;
                self.shared.insert(*cte, SharedNode::plan(plan));
                self.node(input)
            }
            Operator::Shared { cte, columns, .. } => {
                let plan = self.shared.get(cte).cloned();
                let plan =
                    plan.ok_or_else(|| avocet_sql::bind::unsupported("this common table expression"))?;
                self.rename(plan, columns, &node.outputs)
            }
            Operator::Recursive(recursive) => self.recursive(recursive, &node.outputs),
            Operator::WorkTable { cte, columns, .. } => self.work_table(*cte, columns, &node.outputs),
        }
    }

    /// A value that is there before the rest is run.
    fn once(&mut self, id: ColumnId, query: &Node) -> Result<(), SqlError> {
        let plan = self.node(query)?;
        let output = query.outputs[0];
        let column = self.column(output);
        let plan = nodes::project(plan, [column.expr.alias(name_of(output))])?;
        let plan = df_result(PassNode::plan(SingleRow, plan))?;
        self.before.insert(id, (df::Expr::ScalarSubquery(as_subquery(plan)), column.ty));
        Ok(())
    }

    fn sorted(&mut self, plan: LogicalPlan, keys: &[SortKey]) -> Result<LogicalPlan, SqlError> {
        let keys = keys.iter().map(|key| {
            let column = self.column_expr(key.column);
            Ok(self.order_key(&column)?.sort(!key.descending, !key.descending))
        });
        let mut keys = keys.collect::<Result<Vec<_>, SqlError>>()?;
        // Of many keys most decide nothing: these are one.
        if keys.len() > LONG_CHAIN {
            let others = keys.split_off(FIRST_KEYS);
            let descending = others.iter().map(|key| !key.asc).collect();
            let others = others.into_iter().map(|key| key.expr).collect();
            keys.push(OrderKeyUdf::create(descending).call(others).sort(true, true));
        }
        nodes::sort(plan, keys)
    }

    /// The rows for which all conditions hold.
    pub(super) fn filter(&mut self, plan: LogicalPlan, conditions: &[Expr]) -> Result<LogicalPlan, SqlError> {
        if conditions.is_empty() {
            return Ok(plan);
        }
        if raises_late(conditions)
            && let Some(all) = self.packed(conditions.to_vec())?
        {
            return nodes::filter(plan, all);
        }
        // Of many, some are seen one by one, and the rest as one.
        let native = if conditions.len() <= 2 * LONG_CHAIN { conditions.len() } else { LONG_CHAIN };
        let (native, packed) = conditions.split_at(native);
        let mut all = native.iter().map(|part| self.condition(part)).collect::<Result<Vec<_>, _>>()?;
        all.extend(self.packed(packed.to_vec())?);
        let all = junction(all, Op::And);
        nodes::filter(plan, all)
    }

    /// Many conditions as one; none if there are none.
    pub(super) fn packed(&mut self, conditions: Vec<Expr>) -> Result<Option<df::Expr>, SqlError> {
        if conditions.is_empty() {
            return Ok(None);
        }
        let nullable = conditions.iter().any(|part| part.nullable);
        self.condition(&Expr::truth(ExprKind::And(conditions), nullable)).map(Some)
    }

    fn projection(
        &mut self,
        plan: LogicalPlan,
        items: &[Projected],
        outputs: &[ColumnId],
    ) -> Result<LogicalPlan, SqlError> {
        let mut exprs = Vec::with_capacity(outputs.len());
        let items: HashMap<_, _> = items.iter().map(|item| (item.id, item)).collect();
        for id in outputs {
            match items.get(id) {
                Some(item) => {
                    let lowered = self.value(&item.expr)?;
                    self.define(item.id, lowered.ty);
                    exprs.push(lowered.expr.alias(name_of(item.id)));
                }
                None if self.before.contains_key(id) => {}
                None => exprs.push(self.plain_column(*id)),
            }
        }
        // Rows without columns need none of a projection.
        if exprs.is_empty() {
            return Ok(plan);
        }
        nodes::project(plan, exprs)
    }

    /// With no columns but these.
    fn exactly(&self, plan: LogicalPlan, outputs: &[ColumnId]) -> Result<LogicalPlan, SqlError> {
        if plan.schema().fields().len() == outputs.len() {
            return Ok(plan);
        }
        let columns: Vec<_> = outputs.iter().map(|id| self.plain_column(*id)).collect();
        nodes::project(plan, columns)
    }

    fn scan(&mut self, scan: &Scan) -> Result<LogicalPlan, SqlError> {
        let relation = TableReference::bare(format!("t{}", self.scans));
        self.scans += 1;
        let table = SnapshotTable::new(scan, self.source.clone());
        let of_paths = scan.paths.columns.iter().map(|path| path.id);
        for id in scan.table.columns.iter().map(|(_, id)| *id).chain(of_paths) {
            self.names.insert(id, Column::new(Some(relation.clone()), name_of(id)));
        }
        let source = provider_as_source(Arc::new(table));
        let plan = df_result(LogicalPlanBuilder::scan(relation, source, None).and_then(|b| b.build()))?;
        self.filter(plan, &scan.predicates)
    }

    fn values(&mut self, rows: &[Vec<Expr>], outputs: &[ColumnId]) -> Result<LogicalPlan, SqlError> {
        if let Some(plan) = self.many_values(rows, outputs)? {
            return Ok(plan);
        }
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            let row = row.iter().map(|value| self.logical_value(value));
            values.push(row.collect::<Result<Vec<_>, _>>()?);
        }
        let plan = df_result(LogicalPlanBuilder::values(values).and_then(|b| b.build()))?;
        let names = plan.schema().columns();
        let exprs = names.into_iter().zip(outputs).map(|(column, id)| {
            df::cast(df::Expr::Column(column), self.columns()[*id].ty.arrow_type()).alias(name_of(*id))
        });
        let exprs: Vec<_> = exprs.collect();
        nodes::project(plan, exprs)
    }

    /// Many rows of literals as a table: DataFusion would go over each of them as an expression, several times.
    fn many_values(&self, rows: &[Vec<Expr>], outputs: &[ColumnId]) -> Result<Option<LogicalPlan>, SqlError> {
        if rows.len() < MANY_VALUES {
            return Ok(None);
        }
        let (mut fields, mut arrays) = (Vec::with_capacity(outputs.len()), Vec::with_capacity(outputs.len()));
        for (at, id) in outputs.iter().enumerate() {
            self.stop.check()?;
            let ty = self.columns()[*id].ty;
            let kept = ty.arrow_type();
            let mut builder = ColumnBuilder::new(&ty, rows.len());
            for row in rows {
                let value = &row[at];
                let is_kept_so = value.ty == SqlType::Null || value.ty.arrow_type() == kept;
                match value.as_literal().filter(|_| is_kept_so) {
                    Some(value) => builder.append(value),
                    None => return Ok(None),
                }
            }
            arrays.push(builder.finish());
            fields.push(Field::new(name_of(*id), kept, true));
        }
        let schema = Arc::new(Schema::new(fields));
        let plan = RecordBatch::try_new(schema.clone(), arrays)
            .map_err(DataFusionError::from)
            .and_then(|all| {
                let piece = |at| all.slice(at, BATCH_ROWS.min(all.num_rows() - at));
                let batches = (0..all.num_rows()).step_by(BATCH_ROWS).map(piece).collect();
                MemTable::try_new(schema, vec![batches])
            })
            .and_then(|table| {
                LogicalPlanBuilder::scan("values", provider_as_source(Arc::new(table)), None)?.build()
            });
        Ok(Some(df_result(plan)?))
    }

    fn recursive(&mut self, recursive: &Recursive, outputs: &[ColumnId]) -> Result<LogicalPlan, SqlError> {
        let seed = self.node(&recursive.seed)?;
        let mut seed = self.as_columns(seed, &recursive.seed.outputs, outputs)?;
        let step = self.node(&recursive.step)?;
        let mut step = self.as_columns(step, &recursive.step.outputs, outputs)?;
        let mut distinct = recursive.distinct;
        if distinct && !outputs.iter().all(|id| equals_bytewise(&self.columns()[*id].ty)) {
            let keys = Keys::default();
            seed = self.unseen(seed, outputs, &keys)?;
            step = self.unseen(step, outputs, &keys)?;
            distinct = false;
        }
        let step = df_result(Depth::plan(step, self.context.cte_max_recursion_depth))?;
        let name = work_table_of(recursive.cte);
        let query = RecursiveQuery::try_new(name, Arc::new(seed), Arc::new(step), distinct);
        let plan = LogicalPlan::RecursiveQuery(df_result(query)?);
        limited(plan, recursive.range)
    }

    /// The rows that are equal to none before, by MySQL's equality.
    fn unseen(&self, plan: LogicalPlan, columns: &[ColumnId], keys: &Keys) -> Result<LogicalPlan, SqlError> {
        let column = |id: &ColumnId| df::ident(name_of(*id));
        let key =
            |id: &ColumnId| equality_key_of(column(id), &self.columns()[*id].ty).alias(format!("k{}", id.0));
        let with_keys: Vec<_> = columns.iter().map(column).chain(columns.iter().map(key)).collect();
        let unseen = df_result(keys.unseen(nodes::project(plan, with_keys)?, columns.len()))?;
        let shown: Vec<_> = columns.iter().map(column).collect();
        nodes::project(unseen, shown)
    }

    /// The rows of the round before, `columns` as `outputs`.
    fn work_table(
        &mut self,
        cte: CteId,
        columns: &[ColumnId],
        outputs: &[ColumnId],
    ) -> Result<LogicalPlan, SqlError> {
        let name = work_table_of(cte);
        let fields = columns.iter().map(|id| Field::new(name_of(*id), self.physical_type(*id), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let work_table = provider_as_source(Arc::new(CteWorkTable::new(&name, schema)));
        let scan = df_result(LogicalPlanBuilder::scan(&*name, work_table, None).and_then(|b| b.build()))?;
        let mut exprs = Vec::with_capacity(outputs.len());
        for (from, to) in columns.iter().zip(outputs) {
            exprs
                .push(df::Expr::Column(Column::new(Some(name.as_str()), name_of(*from))).alias(name_of(*to)));
            self.define(*to, self.physical_type(*from));
        }
        nodes::project(scan, exprs)
    }

    /// The plan with its columns `from` under the ids `to`, whatever their physical types are.
    fn rename(
        &mut self,
        plan: LogicalPlan,
        from: &[ColumnId],
        to: &[ColumnId],
    ) -> Result<LogicalPlan, SqlError> {
        if to.is_empty() {
            return Ok(plan);
        }
        let mut exprs = Vec::with_capacity(from.len());
        for (from, to) in from.iter().zip(to) {
            let column = self.column(*from);
            exprs.push(column.expr.alias(name_of(*to)));
            self.define(*to, column.ty);
        }
        nodes::project(plan, exprs)
    }

    /// The same, with the columns cast to the Arrow types of the ids' SQL types.
    pub(super) fn as_columns(
        &mut self,
        plan: LogicalPlan,
        from: &[ColumnId],
        to: &[ColumnId],
    ) -> Result<LogicalPlan, SqlError> {
        let mut exprs = Vec::with_capacity(from.len());
        for (from, to) in from.iter().zip(to) {
            let ty = self.columns()[*to].ty.arrow_type();
            exprs.push(cast(self.column(*from), &ty).alias(name_of(*to)));
        }
        nodes::project(plan, exprs)
    }
}

fn nodes_of(root: &Node) -> Vec<&Node> {
    let mut nodes = vec![root];
    let mut at = 0;
    while let Some(node) = nodes.get(at) {
        let inputs = node.inputs();
        nodes.extend(inputs);
        at += 1;
    }
    nodes
}

fn work_table_of(cte: CteId) -> String {
    format!("w{}", cte.0)
}

fn limited(plan: LogicalPlan, range: Option<RowRange>) -> Result<LogicalPlan, SqlError> {
    let Some(range) = range else { return Ok(plan) };
    // DataFusion counts in i64. A limit beyond that, which is how clients write none, stays one: without it, nothing would hold the
    // order of a derived table whose rows are aggregated.
    let most = i64::MAX as u64 - 1;
    let skip = range.skip.min(most);
    let (skip, fetch) = (skip as usize, Some(range.fetch.min(most - skip) as usize));
    df_result(LogicalPlanBuilder::from(plan).limit(skip, fetch).and_then(|b| b.build()))
}
