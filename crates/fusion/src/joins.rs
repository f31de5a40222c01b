//! Joins and set operations.

use std::sync::Arc;

use arrow::datatypes::DataType;
use avocet_sql::bind::unsupported;
use avocet_sql::parse::ast::SetOperator;
use avocet_sql::plan::ColumnId;
use avocet_sql::relational::{Equality, Join, JoinKind, Node, SetOperation};
use avocet_types::error::SqlError;
use avocet_types::expr::{CompareOp, Expr, ValueClass};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, NullEquality};
use datafusion::functions_aggregate as agg;
use datafusion::logical_expr::{
    self as df, BinaryExpr, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, Union, lit,
};

use crate::aggregate::call;
use crate::barrier::{Barrier, JOINS_BETWEEN};
use crate::expected::Expected;
use crate::expr::{LONG_CHAIN, binary, cast, equality_key_of, key_meeting_type, meeting_type};
use crate::lower::{Lowerer, as_subquery};
use crate::method::Method;
use crate::names::{df_result, name_of};
use crate::nodes;
use crate::pass_node::PassNode;

/// The column of a needle that is made of no columns.
const NEEDLE: &str = "needle";
/// The column that numbers equal rows.
const NUMBER: &str = "row_number";
/// DataFusion's name for the column that a mark join adds.
const MARK: &str = "mark";

impl Lowerer {
    pub(super) fn join(&mut self, join: &Join) -> Result<LogicalPlan, SqlError> {
        let joined = self.join_of(join)?;
        self.outer_joins += usize::from(join.kind != JoinKind::Inner);
        let is_next = join.kind != JoinKind::Inner && self.outer_joins.is_multiple_of(JOINS_BETWEEN);
        if is_next { df_result(PassNode::plan(Barrier, joined)) } else { Ok(joined) }
    }

    fn join_of(&mut self, join: &Join) -> Result<LogicalPlan, SqlError> {
        let left = self.expected(&join.left)?;
        let right = self.expected(&join.right)?;
        if self.has_many_joins && matches!(join.kind, JoinKind::Left | JoinKind::Single | JoinKind::Semi) {
            return self.join_by_columns(join, left, right);
        }
        let of = |kind| (LogicalPlanBuilder::from(left.clone()), kind);
        let (builder, kind) = match join.kind {
            JoinKind::Inner => of(JoinType::Inner),
            JoinKind::Left | JoinKind::Single => of(JoinType::Left),
            JoinKind::Semi => of(JoinType::LeftSemi),
            JoinKind::Anti { nulls: false } => of(JoinType::LeftAnti),
            JoinKind::Anti { nulls: true } => return self.not_in(join, left, right),
            JoinKind::Mark(id) => return self.mark(join, id, left, right),
        };
        let conditions = self.join_conditions(join)?;
        let joined = match (conditions.is_empty(), kind) {
            (true, JoinType::Inner) => builder.cross_join(right),
            (true, _) => builder.join_on(right, kind, [lit(true)]),
            (false, _) => builder.join_on(right, kind, conditions),
        };
        df_result(joined.and_then(|b| b.build()))
    }

    /// A side of a join, with how many rows are expected of it.
    fn expected(&mut self, side: &Node) -> Result<LogicalPlan, SqlError> {
        let plan = self.node(side)?;
        df_result(Expected::plan(plan, side.rows.rows))
    }

    /// A join whose keys are columns. DataFusion would make columns of them too, by a builder that walks the whole plan below
    /// for each of the left side's: among many joins that takes long.
    fn join_by_columns(
        &mut self,
        join: &Join,
        left: LogicalPlan,
        right: LogicalPlan,
    ) -> Result<LogicalPlan, SqlError> {
        let columns =
            |plan: &LogicalPlan| plan.schema().columns().into_iter().map(df::Expr::Column).collect();
        let (mut lefts, mut rights): (Vec<df::Expr>, Vec<df::Expr>) = (columns(&left), columns(&right));
        let mut kept = lefts.clone();
        if join.kind != JoinKind::Semi {
            kept.extend(rights.iter().cloned());
        }
        let of = |schema: &DFSchema, expr: &df::Expr| {
            let columns = expr.column_refs();
            !columns.is_empty() && columns.into_iter().all(|column| schema.has_column(column))
        };
        let mut conditions = self.join_conditions(join)?;
        for (at, condition) in conditions.iter_mut().enumerate() {
            let df::Expr::BinaryExpr(equality) = condition else { continue };
            let BinaryExpr { left: a, op: Operator::Eq, right: b } = equality else { continue };
            let (x, y) = match of(left.schema(), a) && of(right.schema(), b) {
                true => (a, b),
                false if of(left.schema(), b) && of(right.schema(), a) => (b, a),
                false => continue,
            };
            for (key, columns, side) in [(x, &mut lefts, "x"), (y, &mut rights, "y")] {
                if !matches!(**key, df::Expr::Column(_)) {
                    let name = format!("{side}{at}_{}", self.outer_joins);
                    columns.push(std::mem::take(&mut **key).alias(&name));
                    **key = df::ident(name);
                }
            }
        }
        let (left, right) = (nodes::project(left, lefts)?, nodes::project(right, rights)?);
        let kind = if join.kind == JoinKind::Semi { JoinType::LeftSemi } else { JoinType::Left };
        if conditions.is_empty() {
            conditions.push(lit(true));
        }
        let joined = LogicalPlanBuilder::from(left).join_on(right, kind, conditions);
        nodes::project(df_result(joined.and_then(|b| b.build()))?, kept)
    }

    fn join_conditions(&mut self, join: &Join) -> Result<Vec<df::Expr>, SqlError> {
        let mut conditions = Vec::with_capacity(join.keys.len() + join.residual.len());
        // Of many, some are seen one by one, and the rest as one.
        let is_long = join.keys.len() + join.residual.len() > 2 * LONG_CHAIN;
        let most = if is_long { LONG_CHAIN } else { usize::MAX };
        let (keys, other_keys) = join.keys.split_at(most.min(join.keys.len()));
        let (residual, others) = join.residual.split_at(most.min(join.residual.len()));
        for key in keys {
            conditions.push(match join.kind {
                JoinKind::Semi | JoinKind::Anti { .. } | JoinKind::Mark(_) => self.membership(key)?,
                _ => match self.equality_of_doubles(key)? {
                    Some(equality) => equality,
                    None => match self.equality_of_integers(key)? {
                        Some(equality) => equality,
                        None => self.condition(&key.clone().into_expr())?,
                    },
                },
            });
        }
        for condition in residual {
            conditions.push(self.condition(condition)?);
        }
        let others: Vec<_> =
            other_keys.iter().cloned().map(Equality::into_expr).chain(others.iter().cloned()).collect();
        conditions.extend(self.packed(others)?);
        Ok(conditions)
    }

    /// Keys are equal if their bytes are, and these are not so for 0.0 and -0.0: added to 0.0, both are 0.0.
    fn equality_of_doubles(&mut self, key: &Equality) -> Result<Option<df::Expr>, SqlError> {
        let sides = [&key.left, &key.right];
        if sides.iter().any(|side| ValueClass::of(&side.ty) != ValueClass::Double) {
            return Ok(None);
        }
        let [left, right] = sides.map(|side| {
            let value = cast(self.value(side)?, &DataType::Float64);
            Ok::<_, SqlError>(binary(value, Operator::Plus, lit(0.0f64)))
        });
        Ok(Some(binary(left?, Operator::Eq, right?)))
    }

    /// No integer type has all that BIGINT and BIGINT UNSIGNED have; as decimals they are keys, rather than a condition on each pair
    /// of rows.
    fn equality_of_integers(&mut self, key: &Equality) -> Result<Option<df::Expr>, SqlError> {
        let sides = [&key.left, &key.right];
        if sides.iter().any(|side| ValueClass::of(&side.ty) != ValueClass::Int) {
            return Ok(None);
        }
        let (left, right) = (self.value(&key.left)?, self.value(&key.right)?);
        if meeting_type(&left, &right).is_some() {
            return Ok(None);
        }
        let ty = key_meeting_type(&left, &right);
        Ok(ty.map(|ty| binary(cast(left, &ty), Operator::Eq, cast(right, &ty))))
    }

    /// A needle and a subquery's column, both cast (or turned into keys) so that they compare natively.
    fn membership(&mut self, key: &Equality) -> Result<df::Expr, SqlError> {
        let Equality { left, right } = key;
        if let Some(equality) = self.equality_of_doubles(key)? {
            return Ok(equality);
        }
        if let Some(native) = self.compare(CompareOp::Eq, left, right)? {
            return Ok(native);
        }
        let (a, b) = match left.ty.order().or(right.ty.order()) {
            Some(collation) if !collation.is_exact() => (self.equality_key(left)?, self.equality_key(right)?),
            _ => {
                let (a, b) = (self.value(left)?, self.value(right)?);
                match key_meeting_type(&a, &b) {
                    Some(ty) => (cast(a, &ty), cast(b, &ty)),
                    None => return self.condition(&key.clone().into_expr()),
                }
            }
        };
        Ok(binary(a, Operator::Eq, b))
    }

    /// Rows of the left side, and whether they have a partner.
    fn mark(
        &mut self,
        join: &Join,
        id: ColumnId,
        left: LogicalPlan,
        right: LogicalPlan,
    ) -> Result<LogicalPlan, SqlError> {
        // The column is named after the right side.
        let side = format!("m{}", id.0);
        let mut columns: Vec<_> =
            join.right.outputs.iter().map(|id| self.plain_column(*id).alias(name_of(*id))).collect();
        if columns.is_empty() {
            columns.push(lit(1i64).alias("one"));
        }
        let right = LogicalPlanBuilder::from(nodes::project(right, columns)?).alias(side.as_str());
        let right = df_result(right.and_then(|b| b.build()))?;
        for id in &join.right.outputs {
            self.names.insert(*id, Column::new(Some(side.as_str()), name_of(*id)));
        }
        let mut conditions = self.join_conditions(join)?;
        if conditions.is_empty() {
            conditions.push(lit(true));
        }
        let passed: Vec<_> = left.schema().columns().into_iter().map(df::Expr::Column).collect();
        let mark = df::Expr::Column(Column::new(Some(side.as_str()), MARK)).alias(name_of(id));
        self.define(id, DataType::Boolean);
        let joined = LogicalPlanBuilder::from(left).join_on(right, JoinType::LeftMark, conditions);
        nodes::project(df_result(joined.and_then(|b| b.build()))?, passed.into_iter().chain([mark]))
    }

    /// NOT IN, if NULLs may be among the needles or the rows.
    fn not_in(
        &mut self,
        join: &Join,
        left: LogicalPlan,
        right: LogicalPlan,
    ) -> Result<LogicalPlan, SqlError> {
        let mut conditions = self.join_conditions(join)?;
        // The right side is run several times then.
        let [Equality { left: needle, right: key }] = &join.keys[..] else {
            return Err(unsupported("NOT IN of rows that may hold NULL"));
        };
        if self.method == Method::InMemory || is_volatile(&right)? {
            let own: Vec<_> = left.schema().columns().into_iter().map(df::Expr::Column).collect();
            let left = with_needle(left, &own, &mut conditions)?;
            let none = (Vec::<Column>::new(), Vec::<Column>::new());
            let all = conditions.into_iter().reduce(|a, b| binary(a, Operator::And, b)).unwrap_or(lit(true));
            let nulls = NullEquality::NullEqualsNothing;
            let joined = LogicalPlanBuilder::from(left).join_detailed_with_options(
                right,
                JoinType::LeftAnti,
                none,
                Some(all),
                nulls,
                true,
            );
            let joined = df_result(joined.and_then(|b| b.build()))?;
            // Rows without columns need none of a projection.
            let is_plain = own.is_empty() || joined.schema().fields().len() == own.len();
            return if is_plain { Ok(joined) } else { nodes::project(joined, own) };
        }
        let condition = self.no_nulls(needle, key, right.clone())?;
        let joined = LogicalPlanBuilder::from(left).join_on(right, JoinType::LeftAnti, conditions);
        df_result(joined.and_then(|b| b.filter(condition)).and_then(|b| b.build()))
    }

    /// What NOT IN wants besides that there is no equal row, if NULLs may be among the rows or the needles. DataFusion's join
    /// that knows of NULLs keeps one side in memory.
    fn no_nulls(&mut self, needle: &Expr, key: &Expr, rows: LogicalPlan) -> Result<df::Expr, SqlError> {
        let is_none = |rows: LogicalPlanBuilder| {
            let count = call(agg::count::count_udaf(), vec![lit(1i64)], false).alias("n");
            let plan = rows.aggregate(Vec::<df::Expr>::new(), vec![count]).and_then(|b| b.build());
            let count = df::Expr::ScalarSubquery(as_subquery(df_result(plan)?));
            Ok::<_, SqlError>(binary(count, Operator::Eq, lit(0i64)))
        };
        let null = df::Expr::IsNull(Box::new(self.value(key)?.expr));
        let nulls = LogicalPlanBuilder::from(nodes::filter(rows.clone(), null)?);
        let needle = df::Expr::IsNotNull(Box::new(self.value(needle)?.expr));
        let alone = is_none(LogicalPlanBuilder::from(rows))?;
        Ok(binary(is_none(nulls)?, Operator::And, binary(needle, Operator::Or, alone)))
    }

    fn side(&mut self, side: &Node, outputs: &[ColumnId]) -> Result<LogicalPlan, SqlError> {
        let plan = self.node(side)?;
        self.as_columns(plan, &side.outputs, outputs)
    }

    pub(super) fn set_operation(
        &mut self,
        set: &SetOperation,
        outputs: &[ColumnId],
    ) -> Result<LogicalPlan, SqlError> {
        let sides = set.inputs.iter().map(|side| self.side(side, outputs).map(Arc::new));
        let sides = sides.collect::<Result<Vec<_>, _>>()?;
        // Above it they go by their ids, also if a side's tables have given them qualified names, and have the types of their columns.
        self.make_plain(outputs);
        match set.op {
            SetOperator::Union => {
                let plan = LogicalPlan::Union(df_result(Union::try_new_with_loose_types(sides))?);
                if set.all { Ok(plan) } else { self.distinct(plan, outputs) }
            }
            op => {
                let [left, right] =
                    <[_; 2]>::try_from(sides).map_err(|_| unsupported("this set operation"))?;
                let (left, right) = (Arc::unwrap_or_clone(left), Arc::unwrap_or_clone(right));
                let join = if op == SetOperator::Except { JoinType::LeftAnti } else { JoinType::LeftSemi };
                if set.all {
                    let left = self.numbered(left, outputs)?;
                    let right = self.numbered(right, outputs)?;
                    return self.matching(left, right, outputs, join, true);
                }
                let left = self.distinct(left, outputs)?;
                self.matching(left, right, outputs, join, false)
            }
        }
    }

    /// Equal rows get the numbers 1, 2, …: so with ALL each row meets at most one of the other side.
    fn numbered(&mut self, plan: LogicalPlan, ids: &[ColumnId]) -> Result<LogicalPlan, SqlError> {
        let keys = ids.iter().map(|id| equality_key_of(self.plain_column(*id), &self.columns()[*id].ty));
        let function = datafusion::functions_window::row_number::row_number_udwf();
        let mut call = df::expr::WindowFunction::new(function, Vec::new());
        call.params.partition_by = keys.collect();
        let call = df::Expr::WindowFunction(Box::new(call));
        let number = df::ident(call.schema_name().to_string()).alias(NUMBER);
        let columns: Vec<_> =
            plan.schema().columns().into_iter().map(df::Expr::Column).chain([number]).collect();
        nodes::project(nodes::windows(plan, vec![call])?, columns)
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
            let ty = self.columns()[*id].ty;
            let key = |expr| equality_key_of(expr, &ty);
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
        nodes::project(joined, columns)
    }
}

/// DataFusion's join that knows of NULLs looks for them in its keys, and what has no columns is no key to it: such a needle becomes a
/// column of the rows.
fn with_needle(
    rows: LogicalPlan,
    columns: &[df::Expr],
    conditions: &mut [df::Expr],
) -> Result<LogicalPlan, SqlError> {
    for condition in conditions {
        if let df::Expr::BinaryExpr(BinaryExpr { left: needle, op: Operator::Eq, .. }) = condition
            && needle.column_refs().is_empty()
        {
            let needle = std::mem::replace(&mut **needle, df::ident(NEEDLE)).alias(NEEDLE);
            return nodes::project(rows, columns.iter().cloned().chain([needle]));
        }
    }
    Ok(rows)
}

/// Whether a plan may give other rows each time.
fn is_volatile(plan: &LogicalPlan) -> Result<bool, SqlError> {
    df_result(plan.exists(|part| Ok(part.expressions().iter().any(df::Expr::is_volatile))))
}
