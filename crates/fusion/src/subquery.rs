//! Subqueries: which DataFusion turns into joins, and which are answered row by row.
//!
//! DataFusion's joins give a truth value without NULL, which is right where NULL counts as false: in a condition, under
//! AND and OR alone. It decorrelates equalities of a block's WHERE. Everything else goes through [`apply`](super::apply).

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use avocet_sql::bind::unsupported;
use avocet_sql::plan::*;
use avocet_types::SqlType;
use avocet_types::error::SqlError;
use avocet_types::expr::{CompareOp, Expr, ExprKind};
use datafusion::common::Spans;
use datafusion::common::tree_node::TreeNode;
use datafusion::functions_aggregate as agg;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::logical_plan::Subquery as DfSubquery;
use datafusion::logical_expr::{self as df, LogicalPlan, LogicalPlanBuilder, Operator, lit};

use crate::aggregate::call;
use crate::apply::answer::AnswerKind;
use crate::apply::{Applied, ApplyNode};
use crate::expr::{Lowered, binary, cast, equality_key_of, meeting_type, sort_key_of};
use crate::lower::{Lowerer, MOST_ROWS, df_result, name_of};
use crate::setup::Method;

/// The parts of a block's expressions in which a subquery's answer can stand.
struct Uses<'s> {
    /// WHERE, HAVING, ON of inner joins.
    conditions: Vec<&'s Expr>,
    projection: Vec<&'s Expr>,
    /// All others.
    elsewhere: Vec<&'s Expr>,
}

fn mentions(expr: &Expr, id: ColumnId) -> bool {
    expr.any(&mut |part| matches!(part.kind, ExprKind::Column(column) if column == id.index()))
}

/// Whether the column stands only where `NULL` and false are the same: under AND (and OR, if `either`).
fn stands_plainly(expr: &Expr, id: ColumnId, either: bool) -> bool {
    match &expr.kind {
        ExprKind::Column(_) => true,
        ExprKind::And(parts) => parts.iter().all(|part| stands_plainly(part, id, either)),
        ExprKind::Or(parts) if either => parts.iter().all(|part| stands_plainly(part, id, either)),
        _ => !mentions(expr, id),
    }
}

impl<'s> Uses<'s> {
    fn of(select: &'s Select) -> Self {
        let mut uses = Self { conditions: Vec::new(), projection: Vec::new(), elsewhere: Vec::new() };
        uses.from(&select.from, true);
        uses.conditions.extend(select.filter.iter().chain(&select.having));
        uses.projection.extend(select.projection.iter().map(|p| &p.expr));
        if let Some(aggregation) = &select.aggregation {
            uses.elsewhere.extend(aggregation.keys.iter().map(|key| &key.expr));
            for aggregate in &aggregation.aggregates {
                uses.elsewhere.extend(&aggregate.args);
                uses.elsewhere.extend(aggregate.order_by.iter().map(|(expr, _)| expr));
            }
        }
        for window in &select.windows {
            uses.elsewhere.extend(window.args.iter().chain(&window.partition_by));
            uses.elsewhere.extend(window.order_by.iter().map(|(expr, _)| expr));
        }
        for subquery in &select.subqueries {
            match &subquery.kind {
                SubqueryKind::In { needles, .. } => uses.elsewhere.extend(needles),
                SubqueryKind::Quantified { left, .. } => uses.elsewhere.push(left),
                SubqueryKind::Scalar | SubqueryKind::Exists { .. } => {}
            }
        }
        uses
    }

    fn from(&mut self, from: &'s From, inner: bool) {
        let From::Join(join) = from else { return };
        let inner = inner && join.kind == JoinKind::Inner;
        self.from(&join.left, inner);
        self.from(&join.right, inner);
        let conditions = if inner { &mut self.conditions } else { &mut self.elsewhere };
        conditions.extend(&join.on);
    }

    fn elsewhere(&self, id: ColumnId) -> bool {
        self.elsewhere.iter().any(|expr| mentions(expr, id))
    }

    /// Whether it is nothing but a condition.
    fn only_conditions(&self, id: ColumnId, either: bool) -> bool {
        !self.elsewhere(id)
            && !self.projection.iter().any(|expr| mentions(expr, id))
            && self.conditions.iter().all(|expr| stands_plainly(expr, id, either))
    }
}

/// How outer columns occur in a subquery.
struct Correlation {
    /// Only in the WHERE of its outermost block.
    in_filter: bool,
    /// And there only as `inner = outer`.
    equalities: bool,
}

fn correlation(subquery: &Subquery, select: &Select) -> Correlation {
    let outer: BTreeSet<usize> = subquery.outer.iter().map(|id| id.index()).collect();
    let uses_outer = |expr: &Expr| expr.columns().iter().any(|column| outer.contains(column));
    let mut rest = subquery.query.clone();
    if let QueryBody::Select(select) = &mut rest.body {
        select.filter = None;
    }
    let mut in_filter = true;
    avocet_sql::plan::walk::for_each_expr_mut(&mut rest, &mut |expr| in_filter &= !uses_outer(expr));
    let conjuncts = select.filter.clone().map(Expr::into_conjuncts).unwrap_or_default();
    let one_sided = |expr: &Expr| {
        let columns = expr.columns();
        let outers = columns.iter().filter(|column| outer.contains(column)).count();
        outers == 0 || outers == columns.len()
    };
    let equalities = conjuncts.iter().filter(|c| uses_outer(c)).all(|conjunct| match &conjunct.kind {
        ExprKind::Compare { op: CompareOp::Eq, left, right } => {
            one_sided(left) && one_sided(right) && uses_outer(left) != uses_outer(right)
        }
        _ => false,
    });
    Correlation { in_filter, equalities }
}

impl Lowerer {
    /// Decides about each subquery of a block.
    pub(super) fn sort_subqueries(&mut self, select: &Select) {
        let uses = Uses::of(select);
        for subquery in &select.subqueries {
            let shared = Arc::new(subquery.clone());
            if !self.apply_all && self.joins(subquery, &uses) {
                self.subqueries.insert(subquery.id, shared);
            } else {
                self.pending.insert(subquery.id, shared);
            }
        }
    }

    /// Whether DataFusion's joins answer a subquery as MySQL does.
    fn joins(&self, subquery: &Subquery, uses: &Uses<'_>) -> bool {
        let id = subquery.id;
        let uncorrelated = subquery.outer.is_empty();
        let correlation = match &subquery.query.body {
            _ if uncorrelated => Correlation { in_filter: true, equalities: true },
            QueryBody::Select(select) if subquery.query.limit.is_none() => correlation(subquery, select),
            _ => return false,
        };
        if !correlation.in_filter {
            return false;
        }
        let aggregation = match &subquery.query.body {
            QueryBody::Select(select) => select.aggregation.as_ref(),
            _ => None,
        };
        match &subquery.kind {
            SubqueryKind::Scalar => {
                let one_row = aggregation.is_some_and(|a| a.keys.is_empty());
                let filtered = matches!(&subquery.query.body, QueryBody::Select(s) if s.having.is_some());
                !uses.elsewhere(id)
                    && if uncorrelated {
                        self.is_nullable(&subquery.query.outputs)
                    } else {
                        one_row && !filtered && correlation.equalities
                    }
            }
            SubqueryKind::Exists { .. } => {
                uses.only_conditions(id, true) && (uncorrelated || aggregation.is_none())
            }
            SubqueryKind::In { needles, negated } => {
                let nullable =
                    needles.iter().any(|n| n.nullable) || self.is_nullable(&subquery.query.outputs);
                let exact = !negated || !nullable;
                uses.only_conditions(id, exact)
                    && (uncorrelated || (aggregation.is_none() && exact))
                    && (exact || needles.len() == 1)
            }
            SubqueryKind::Quantified { .. } => false,
        }
    }

    /// The plan with the answers of the subqueries that the expressions use.
    pub(super) fn answered<'e>(
        &mut self,
        mut plan: LogicalPlan,
        exprs: impl IntoIterator<Item = &'e Expr>,
    ) -> Result<LogicalPlan, SqlError> {
        if self.pending.is_empty() {
            return Ok(plan);
        }
        let used: BTreeSet<usize> = exprs.into_iter().flat_map(Expr::columns).collect();
        for index in used {
            plan = self.answer(plan, ColumnId(index as u32))?;
        }
        Ok(plan)
    }

    /// The plan with the answer `id`, if that is one and is not there yet.
    fn answer(&mut self, mut plan: LogicalPlan, id: ColumnId) -> Result<LogicalPlan, SqlError> {
        let Some(subquery) = self.pending.remove(&id) else { return Ok(plan) };
        // Answers of which this one is made come first.
        for outer in &subquery.outer {
            plan = self.answer(plan, *outer)?;
        }
        let (kind, needles) = match &subquery.kind {
            SubqueryKind::Scalar => (AnswerKind::Scalar, Vec::new()),
            SubqueryKind::Exists { negated } => (AnswerKind::Exists { negated: *negated }, Vec::new()),
            SubqueryKind::In { needles, negated } => (AnswerKind::In { negated: *negated }, needles.clone()),
            SubqueryKind::Quantified { op, all, left } => {
                (AnswerKind::Quantified { op: *op, all: *all }, vec![left.clone()])
            }
        };
        plan = self.answered(plan, &needles)?;
        let ty = self.query.columns[id].ty.arrow_type();
        let field = Field::new(name_of(id), ty, true);
        self.apply(plan, id, kind, &subquery.query, &subquery.outer, &needles, vec![field])
    }

    #[expect(clippy::too_many_arguments, reason = "what a subquery is made of")]
    fn apply(
        &mut self,
        plan: LogicalPlan,
        id: ColumnId,
        kind: AnswerKind,
        query: &QueryExpr,
        outer: &[ColumnId],
        needles: &[Expr],
        added: Vec<Field>,
    ) -> Result<LogicalPlan, SqlError> {
        let ordered = is_ordered(kind);
        let mut exprs = Vec::with_capacity(outer.len() + needles.len());
        let mut values = Vec::with_capacity(outer.len());
        for id in outer {
            let info = &self.query.columns[*id];
            let (ty, nullable) = (info.ty, info.nullable);
            exprs.push(self.logical_value(&Expr::column(id.index(), ty, nullable))?);
            values.push((*id, ty));
        }
        let mut keys = Vec::with_capacity(needles.len());
        for (needle, output) in needles.iter().zip(&query.outputs) {
            let needle = self.prepare(needle);
            let key = key_type(&needle.ty, &self.query.columns[*output].ty, ordered)?;
            let value = self.value(&needle)?;
            exprs.push(key_of(value, &needle.ty, &key, ordered));
            keys.push(key);
        }
        let applied = Applied { id, kind, query: query.clone(), outer: values, keys, lowerer: self.clone() };
        ApplyNode::plan(applied, plan, exprs, added)
    }

    /// Both sides of an outer join with the answers that its condition uses.
    pub(super) fn answered_sides(
        &mut self,
        mut left: LogicalPlan,
        mut right: LogicalPlan,
        join: &Join,
    ) -> Result<(LogicalPlan, LogicalPlan), SqlError> {
        let Some(on) = &join.on else { return Ok((left, right)) };
        let mut of_left = Default::default();
        super::joins::produced(&join.left, &mut of_left);
        let mut of_right = Default::default();
        super::joins::produced(&join.right, &mut of_right);
        for index in on.columns() {
            let id = ColumnId(index as u32);
            let Some(subquery) = self.pending.get(&id) else { continue };
            let mut needed = subquery.outer.clone();
            if let SubqueryKind::In { needles, .. } = &subquery.kind {
                needed.extend(needles.iter().flat_map(Expr::columns).map(|c| ColumnId(c as u32)));
            }
            if let SubqueryKind::Quantified { left, .. } = &subquery.kind {
                needed.extend(left.columns().into_iter().map(|c| ColumnId(c as u32)));
            }
            if needed.iter().all(|id| !of_right.contains(id)) {
                left = self.answer(left, id)?;
            } else if needed.iter().all(|id| !of_left.contains(id)) {
                right = self.answer(right, id)?;
            } else {
                return Err(unsupported("a subquery of both sides in the ON of an outer join"));
            }
        }
        Ok((left, right))
    }

    /// A LATERAL table beside the rows that it refers to. `on` is the condition of a left join.
    pub(super) fn lateral(
        &mut self,
        left: LogicalPlan,
        derived: &Derived,
        on: Option<Option<&Expr>>,
    ) -> Result<LogicalPlan, SqlError> {
        let mut query = derived.query.clone();
        let mut outer: BTreeSet<ColumnId> = derived.outer.iter().copied().collect();
        if let Some(Some(on)) = on {
            let outputs = query.outputs.clone();
            let columns = on.columns().into_iter().map(|c| ColumnId(c as u32));
            outer.extend(columns.filter(|id| !outputs.contains(id)));
            let inner = Derived { query, alias: derived.alias.clone(), outer: Vec::new() };
            query = filtered(inner, on.clone(), &outputs, &self.query.columns);
        }
        let outer: Vec<_> = outer.into_iter().collect();
        let kind = AnswerKind::Rows { outer: on.is_some() };
        self.most_rows = MOST_ROWS;
        let field = |id: &ColumnId| Field::new(name_of(*id), self.query.columns[*id].ty.arrow_type(), true);
        let added = query.outputs.iter().map(field).collect();
        let id = query.outputs[0];
        self.apply(left, id, kind, &query, &outer, &[], added)
    }

    /// A subquery whose outer columns are constants by now, as its answer needs it.
    pub(super) fn answer_plan(
        mut self,
        query: &QueryExpr,
        kind: AnswerKind,
        keys: &[DataType],
    ) -> Result<LogicalPlan, SqlError> {
        let plan = self.query_expr(query)?;
        let builder = LogicalPlanBuilder::from(plan);
        let most = match kind {
            AnswerKind::Exists { .. } => return df_result(builder.limit(0, Some(1)).and_then(|b| b.build())),
            AnswerKind::Scalar => Some(2),
            _ => None,
        };
        let mut columns = Vec::with_capacity(query.outputs.len());
        for (at, id) in query.outputs.iter().enumerate() {
            let value = Lowered { expr: self.plain_column(*id), ty: self.physical_type(*id) };
            let ty = self.query.columns[*id].ty;
            let column = match keys.get(at) {
                Some(key) => key_of(value, &ty, key, is_ordered(kind)),
                None => cast(value, &ty.arrow_type()),
            };
            columns.push(column.alias(format!("r{at}")));
        }
        let builder = df_result(builder.project(columns))?;
        df_result(builder.limit(0, most).and_then(|b| b.build()))
    }

    /// A subquery's answer as an expression.
    pub(super) fn subquery(&mut self, subquery: &Subquery) -> Result<Lowered, SqlError> {
        let outer = std::mem::replace(&mut self.outer, subquery.outer.iter().copied().collect());
        let rows = self.most_rows;
        let plan = self.query_expr(&subquery.query);
        self.outer = outer;
        self.most_rows = rows;
        let plan = plan?;
        let outputs = &subquery.query.outputs;
        let subplan = DfSubquery {
            outer_ref_columns: plan.all_out_ref_exprs(),
            subquery: Arc::new(plan),
            spans: Spans::new(),
        };
        match &subquery.kind {
            SubqueryKind::Scalar => {
                let ty = self.physical_type(outputs[0]);
                if let Some(bound) = self.bounds.get(&outputs[0]).copied() {
                    self.bounds.insert(subquery.id, bound);
                }
                Ok(Lowered { expr: df::Expr::ScalarSubquery(subplan), ty })
            }
            SubqueryKind::Exists { negated } => {
                let exists = Exists { subquery: subplan, negated: *negated };
                Ok(Lowered { expr: df::Expr::Exists(exists), ty: DataType::Boolean })
            }
            SubqueryKind::In { needles, negated } => self.membership(needles, outputs, subplan, *negated),
            SubqueryKind::Quantified { .. } => Err(unsupported("ANY and ALL in this place")),
        }
    }

    fn membership(
        &mut self,
        needles: &[Expr],
        outputs: &[ColumnId],
        subplan: DfSubquery,
        negated: bool,
    ) -> Result<Lowered, SqlError> {
        let nullable = needles.iter().any(|n| n.nullable) || self.is_nullable(outputs);
        // The subquery is then run several times.
        let nulls_apart = negated
            && nullable
            && needles.len() == 1
            && self.method == Method::Spilling
            && !is_volatile(&subplan.subquery)?;
        if needles.len() == 1 && !nulls_apart {
            let needle = self.prepare(&needles[0]);
            let (needle, subplan) = self.matched(&needle, outputs[0], subplan)?;
            let membership = InSubquery::new(Box::new(needle), subplan, negated);
            return Ok(Lowered { expr: df::Expr::InSubquery(membership), ty: DataType::Boolean });
        }
        // A row: EXISTS of the query filtered to equal rows; NULLs would need a third answer.
        if negated && nullable && !nulls_apart {
            return Err(unsupported("NOT IN with rows that may hold NULL"));
        }
        let outer_before = self.outer.clone();
        let mut conditions = Vec::with_capacity(needles.len());
        for (needle, output) in needles.iter().zip(outputs) {
            let info = &self.query.columns[*output];
            let output = Expr::column(output.index(), info.ty, info.nullable);
            let needle = self.prepare(needle);
            let columns: Vec<_> = needle.columns().into_iter().map(|c| ColumnId(c as u32)).collect();
            self.outer.extend(columns);
            let condition = self.compare(CompareOp::Eq, &needle, &output)?;
            self.outer.clone_from(&outer_before);
            conditions.push(
                condition.ok_or_else(|| unsupported("a comparison of this kind of rows with a subquery"))?,
            );
        }
        let condition =
            conditions.into_iter().reduce(|a, b| binary(a, Operator::And, b)).unwrap_or(lit(true));
        let all = Arc::unwrap_or_clone(subplan.subquery);
        let plan = LogicalPlanBuilder::from(all.clone()).filter(condition).and_then(|b| b.build());
        let mut expr = df::Expr::Exists(Exists { subquery: as_subquery(df_result(plan)?), negated });
        if nulls_apart {
            expr = binary(expr, Operator::And, self.no_nulls(&needles[0], outputs[0], all)?);
        }
        Ok(Lowered { expr, ty: DataType::Boolean })
    }

    /// What NOT IN wants besides that there is no equal row, if NULLs may be among the rows or the needles. DataFusion's join
    /// that knows of NULLs keeps one side in memory.
    fn no_nulls(&mut self, needle: &Expr, output: ColumnId, rows: LogicalPlan) -> Result<df::Expr, SqlError> {
        let is_none = |rows: LogicalPlanBuilder| {
            let count = call(agg::count::count_udaf(), vec![lit(1i64)], false).alias("n");
            let plan = rows.aggregate(Vec::<df::Expr>::new(), vec![count]).and_then(|b| b.build());
            let count = df::Expr::ScalarSubquery(as_subquery(df_result(plan)?));
            Ok::<_, SqlError>(binary(count, Operator::Eq, lit(0i64)))
        };
        let null = df::Expr::IsNull(Box::new(self.plain_column(output)));
        let nulls = df_result(LogicalPlanBuilder::from(rows.clone()).filter(null))?;
        let needle = self.prepare(needle);
        let needle = df::Expr::IsNotNull(Box::new(self.value(&needle)?.expr));
        let alone = is_none(LogicalPlanBuilder::from(rows))?;
        Ok(binary(is_none(nulls)?, Operator::And, binary(needle, Operator::Or, alone)))
    }

    /// A needle and the subquery's column, both cast (or turned into sort keys) so that they compare natively.
    fn matched(
        &mut self,
        needle: &Expr,
        output: ColumnId,
        subplan: DfSubquery,
    ) -> Result<(df::Expr, DfSubquery), SqlError> {
        let output_ty = self.query.columns[output].ty;
        let column = Lowered { expr: self.plain_column(output), ty: self.physical_type(output) };
        let (needle, column) = match needle.ty.collation().or(output_ty.collation()) {
            Some(collation) if !collation.is_exact() => {
                (self.equality_key(needle)?, equality_key_of(column.expr, &output_ty))
            }
            _ => {
                let needle = self.value(needle)?;
                let ty = key_meeting_type(&needle, &column)
                    .ok_or_else(|| unsupported("a comparison of this kind with a subquery"))?;
                (cast(needle, &ty), cast(column, &ty))
            }
        };
        if matches!(column, df::Expr::Column(_)) {
            return Ok((needle, subplan));
        }
        let plan = Arc::unwrap_or_clone(subplan.subquery);
        let plan = LogicalPlanBuilder::from(plan).project(vec![column.alias(format!("k{}", output.0))]);
        let plan = df_result(plan.and_then(|b| b.build()))?;
        Ok((needle, DfSubquery { subquery: Arc::new(plan), ..subplan }))
    }
}

/// Whether a plan may give other rows each time.
fn is_volatile(plan: &LogicalPlan) -> Result<bool, SqlError> {
    df_result(plan.exists(|part| Ok(part.expressions().iter().any(df::Expr::is_volatile))))
}

fn as_subquery(plan: LogicalPlan) -> DfSubquery {
    let outer_ref_columns = plan.all_out_ref_exprs();
    DfSubquery { outer_ref_columns, subquery: Arc::new(plan), spans: Spans::new() }
}

fn is_ordered(kind: AnswerKind) -> bool {
    matches!(kind, AnswerKind::Quantified { .. })
}

/// `SELECT outputs FROM inner WHERE condition` under the same ids.
fn filtered(inner: Derived, condition: Expr, outputs: &[ColumnId], columns: &ColumnTable) -> QueryExpr {
    let projection = outputs.iter().map(|id| {
        let info = &columns[*id];
        Projected { id: *id, expr: Expr::column(id.index(), info.ty, info.nullable) }
    });
    let mut select = Select::plain(From::Derived(inner), projection.collect());
    select.filter = Some(condition);
    QueryExpr {
        ctes: Vec::new(),
        body: QueryBody::Select(Box::new(select)),
        order_by: Vec::new(),
        limit: None,
        outputs: outputs.to_vec(),
    }
}

/// The type of the keys by which a needle and a subquery's column compare.
fn key_type(needle: &SqlType, column: &SqlType, ordered: bool) -> Result<DataType, SqlError> {
    if let Some(collation) = needle.collation().or(column.collation()) {
        let bytes = if ordered { !collation.is_exact() } else { !collation.is_binary() };
        return Ok(if bytes { DataType::BinaryView } else { DataType::Utf8View });
    }
    let side = |ty: &SqlType| Lowered { expr: df::ident("x"), ty: ty.arrow_type() };
    Ok(match (needle.arrow_type(), column.arrow_type()) {
        (DataType::Null, DataType::Null) => DataType::Int64,
        (DataType::Null, ty) | (ty, DataType::Null) => ty,
        (a, b) if a == b => a,
        _ => key_meeting_type(&side(needle), &side(column))
            .ok_or_else(|| unsupported("a comparison of this kind with a subquery"))?,
    })
}

/// As [`meeting_type`], for types too that only our own comparisons take as they are.
fn key_meeting_type(left: &Lowered, right: &Lowered) -> Option<DataType> {
    meeting_type(left, right).or_else(|| match (&left.ty, &right.ty) {
        (a, b) if a.is_integer() && b.is_integer() => Some(DataType::Decimal128(20, 0)),
        (a, b) if a.is_floating() && b.is_floating() => Some(DataType::Float64),
        _ => None,
    })
}

fn key_of(value: Lowered, ty: &SqlType, key: &DataType, ordered: bool) -> df::Expr {
    match ty.collation() {
        Some(collation) => {
            let text = cast(value, &DataType::Utf8View);
            if ordered { sort_key_of(text, collation) } else { equality_key_of(text, ty) }
        }
        None => cast(value, key),
    }
}
