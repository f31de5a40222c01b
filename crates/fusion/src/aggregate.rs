//! Aggregation, DISTINCT and window functions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::DataType;
use avocet_sql::bind::unsupported;
use avocet_sql::plan::*;
use avocet_types::accumulate::documents::Gathered;
use avocet_types::accumulate::texts::Concat;
use avocet_types::error::SqlError;
use avocet_types::expr::{ArithOp, Expr, ExprKind, Function, Typer};
use avocet_types::{Datum, SqlType};
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate as agg;
use datafusion::functions_window as win;
use datafusion::logical_expr::expr::{AggregateFunction as DfAggregate, Sort};
use datafusion::logical_expr::{
    self as df, AggregateUDF, LogicalPlan, LogicalPlanBuilder, Operator, WindowFunctionDefinition, lit,
};

use crate::distinct::{GROUPING_SET, grouped, is_distinct};
use crate::error::plan_error;
use crate::expr::{
    Lowered, binary, cast, equality_key_of, equals_bytewise, sort_key_of, without_negative_zero,
};
use crate::finite::{Finite, Otherwise};
use crate::lookahead::mirrored;
use crate::lower::Lowerer;
use crate::method::Method;
use crate::names::{df_result, name_of};
use crate::nodes;
use crate::udaf::{ExtremeString, FirstMet, Fold, GatherDocuments, GroupConcat, OverFrame};
use crate::udf::RowKeyUdf;
use crate::wide::WIDE;

/// Aggregate calls of one node, each computed once under a name of its own.
#[derive(Default)]
pub(super) struct Calls {
    pub calls: Vec<df::Expr>,
    pub prefix: &'static str,
    positions: HashMap<df::Expr, usize>,
}

impl Calls {
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, ..Self::default() }
    }

    /// The column that shows a call's result.
    pub fn add(&mut self, call: df::Expr) -> df::Expr {
        let index = *self.positions.entry(call).or_insert_with_key(|call| {
            self.calls.push(call.clone());
            self.calls.len() - 1
        });
        df::Expr::Column(datafusion::common::Column::from_name(format!("{}{index}", self.prefix)))
    }

    pub fn named(self) -> Vec<df::Expr> {
        let prefix = self.prefix;
        self.calls.into_iter().enumerate().map(|(i, call)| call.alias(format!("{prefix}{i}"))).collect()
    }
}

pub(super) fn call(function: Arc<AggregateUDF>, args: Vec<df::Expr>, distinct: bool) -> df::Expr {
    df::Expr::AggregateFunction(DfAggregate::new_udf(function, args, distinct, None, Vec::new(), None))
}

impl Lowerer {
    pub(super) fn aggregation(
        &mut self,
        plan: LogicalPlan,
        aggregation: &Aggregation,
    ) -> Result<LogicalPlan, SqlError> {
        if aggregation.rollup {
            return self.rollup(plan, aggregation);
        }
        let mut groups = Vec::with_capacity(aggregation.keys.len());
        let mut calls = Calls::new("a");
        // What the node above shows of it, under the ids.
        let mut shown = Vec::new();
        for key in &aggregation.keys {
            let expr = &key.expr;
            let value = self.value(expr)?;
            self.define(key.id, value.ty.clone());
            match equals_bytewise(&expr.ty) {
                false => {
                    let name = format!("k{}", key.id.0);
                    groups.push(equality_key_of(value.expr.clone(), &expr.ty).alias(name));
                    let first = calls.add(call(FirstMet::create(), vec![value.expr], false));
                    shown.push(first.alias(name_of(key.id)));
                }
                true => {
                    let name = format!("k{}", key.id.0);
                    groups.push(value.expr.alias(&name));
                    shown.push(df::ident(name).alias(name_of(key.id)));
                }
            }
        }
        for aggregate in &aggregation.aggregates {
            let result = self.aggregate(aggregate, &mut calls)?;
            self.define(aggregate.id, result.ty.clone());
            shown.push(result.expr.alias(name_of(aggregate.id)));
        }
        if calls.calls.is_empty() && groups.is_empty() {
            calls.add(call(agg::count::count_udaf(), vec![lit(1i64)], false));
        }
        let plan = self.aggregated(plan, groups, calls)?;
        nodes::project(plan, shown)
    }

    /// The groups' keys and the calls' results, under their names.
    fn aggregated(
        &self,
        plan: LogicalPlan,
        groups: Vec<df::Expr>,
        calls: Calls,
    ) -> Result<LogicalPlan, SqlError> {
        if self.method == Method::Spilling && calls.calls.iter().any(is_distinct) {
            return self.aggregated_apart(plan, groups, calls, false);
        }
        nodes::aggregate(plan, groups, calls.named())
    }

    /// One aggregate's value, in terms of the calls.
    fn aggregate(&mut self, aggregate: &Aggregate, calls: &mut Calls) -> Result<Lowered, SqlError> {
        use AggregateFunction as F;
        let args = aggregate.args.clone();
        let distinct = aggregate.distinct;
        let out = self.columns()[aggregate.id].ty;
        match aggregate.function {
            F::Count => {
                let args = match args.len() {
                    0 => vec![lit(1i64)],
                    1 => {
                        vec![if distinct { self.equality_key(&args[0])? } else { self.value(&args[0])?.expr }]
                    }
                    // One key of all; rows with a NULL do not count.
                    _ => {
                        let keys =
                            args.iter().map(|arg| self.equality_key(arg)).collect::<Result<Vec<_>, _>>()?;
                        vec![RowKeyUdf::create(keys.len()).call(keys)]
                    }
                };
                let expr = calls.add(call(agg::count::count_udaf(), args, distinct));
                Ok(Lowered { expr, ty: DataType::Int64 })
            }
            F::Sum => self.sum(&args[0], distinct, out, calls),
            F::Avg => self.average(&args[0], distinct, out, calls),
            F::Min | F::Max => self.extreme(aggregate.function, &args[0], calls),
            F::BitAnd | F::BitOr | F::BitXor => {
                let (function, empty) = match aggregate.function {
                    F::BitAnd => (agg::bit_and_or_xor::bit_and_udaf(), u64::MAX),
                    F::BitOr => (agg::bit_and_or_xor::bit_or_udaf(), 0),
                    _ => (agg::bit_and_or_xor::bit_xor_udaf(), 0),
                };
                let arg = self.logical_value(&args[0])?;
                let result = calls.add(call(function, vec![arg], distinct));
                let expr = datafusion::functions::core::expr_fn::coalesce(vec![result, lit(empty)]);
                Ok(Lowered { expr, ty: DataType::UInt64 })
            }
            F::StddevPop | F::StddevSamp | F::VarPop | F::VarSamp => {
                if distinct {
                    return Err(unsupported("DISTINCT in a variance"));
                }
                let function = match aggregate.function {
                    F::StddevPop => agg::stddev::stddev_pop_udaf(),
                    F::StddevSamp => agg::stddev::stddev_udaf(),
                    F::VarPop => agg::variance::var_pop_udaf(),
                    _ => agg::variance::var_samp_udaf(),
                };
                let arg = self.logical_value(&args[0])?;
                let result = calls.add(call(function, vec![arg], false));
                let expr = Finite::create(variance_of(aggregate.function)).call(vec![result]);
                Ok(Lowered { expr, ty: DataType::Float64 })
            }
            F::GroupConcat => self.group_concat(aggregate, args, calls),
            F::JsonArrayAgg | F::JsonObjectAgg => {
                let value = self.value(&args[0])?;
                let function = GatherDocuments::create(gathered_of(aggregate.function));
                Ok(Lowered {
                    expr: calls.add(call(function, vec![value.expr], false)),
                    ty: DataType::BinaryView,
                })
            }
            F::AnyValue => {
                let value = self.value(&args[0])?;
                let expr = calls.add(call(FirstMet::create(), vec![value.expr], false));
                Ok(Lowered { expr, ty: value.ty })
            }
            // Without ROLLUP there are no totals.
            F::Grouping => Ok(Lowered { expr: lit(0i64), ty: DataType::Int64 }),
        }
    }

    /// The argument of a sum in a type in which the sum can not overflow, and that of the sum.
    fn sum_arg(&mut self, arg: &Expr) -> Result<(df::Expr, DataType), SqlError> {
        let bound = self.bound(arg) * self.most_rows;
        let value = self.value(arg)?;
        if value.ty.is_integer() && bound < 9e18 {
            return Ok((cast(value, &DataType::Int64), DataType::Int64));
        }
        let scale = match value.ty {
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => scale,
            ref ty if ty.is_integer() => 0,
            _ => return Ok((cast(value, &DataType::Float64), DataType::Float64)),
        };
        if bound * 10f64.powi(scale.into()) < 1e37 && !matches!(value.ty, DataType::Decimal256(..)) {
            // A sum has ten digits more than its argument, as far as there is room.
            let precision = match value.ty {
                DataType::Decimal128(precision, _) => precision,
                _ => 20,
            };
            let sum = DataType::Decimal128((precision + 10).min(38), scale);
            return Ok((cast(value, &DataType::Decimal128(precision, scale)), sum));
        }
        let precision = 66;
        Ok((cast(value, &DataType::Decimal256(precision, scale)), DataType::Decimal256(76, scale)))
    }

    fn sum(
        &mut self,
        arg: &Expr,
        distinct: bool,
        out: SqlType,
        calls: &mut Calls,
    ) -> Result<Lowered, SqlError> {
        let (arg, ty) = self.sum_arg(arg)?;
        let expr = calls.add(call(agg::sum::sum_udaf(), vec![arg], distinct));
        Ok(decimal_result(Lowered { expr, ty }, out))
    }

    /// Exact averages are MySQL's division of the sum by the count.
    fn average(
        &mut self,
        arg: &Expr,
        distinct: bool,
        out: SqlType,
        calls: &mut Calls,
    ) -> Result<Lowered, SqlError> {
        let (mut arg, ty) = self.sum_arg(arg)?;
        if distinct && ty == DataType::Float64 {
            arg = without_negative_zero(arg);
        }
        let sum = calls.add(call(agg::sum::sum_udaf(), vec![arg.clone()], distinct));
        let count = calls.add(call(agg::count::count_udaf(), vec![arg], distinct));
        self.quotient(Lowered { expr: sum, ty }, count, out)
    }

    fn quotient(&mut self, sum: Lowered, count: df::Expr, out: SqlType) -> Result<Lowered, SqlError> {
        let SqlType::Decimal { scale: out_scale, .. } = out else {
            // No rows: NULL, not 0 / 0.
            let count = df::cast(null_if_zero(count), DataType::Float64);
            let expr = binary(cast(sum, &DataType::Float64), Operator::Divide, count);
            return Ok(Lowered { expr, ty: DataType::Float64 });
        };
        let (precision, scale) = match sum.ty {
            DataType::Decimal128(_, scale) => (38, scale as u8),
            DataType::Decimal256(_, scale) => (65, scale as u8),
            _ => (38, 0),
        };
        let sum_type = SqlType::Decimal { precision, scale, unsigned: false };
        let ty = SqlType::Decimal { precision, scale: out_scale, unsigned: false };
        let typer =
            Typer { div_precision_increment: self.context.div_precision_increment, ..Typer::default() };
        let (sum_column, count_column) =
            (Expr::column(0, sum_type, true), Expr::column(1, SqlType::BIGINT, true));
        let division = typer.arith(ArithOp::Div, sum_column, count_column)?;
        let division = typer.convert(division, ty);
        let shown = |at: usize| ["sum", "count"][at].to_owned();
        let function = self.function(division, vec![sum_type, SqlType::BIGINT], false, &shown)?;
        // A sum of many digits stays as it is: what it is divided by may make it fit.
        let sum = match sum.ty {
            DataType::Decimal256(..) => sum.expr,
            _ => cast(sum, &sum_type.arrow_type()),
        };
        let expr = function.call(vec![sum, null_if_zero(count)]);
        Ok(decimal_result(Lowered { expr, ty: ty.arrow_type() }, out))
    }

    fn extreme(
        &mut self,
        function: AggregateFunction,
        arg: &Expr,
        calls: &mut Calls,
    ) -> Result<Lowered, SqlError> {
        let smallest = function == AggregateFunction::Min;
        let value = self.value(arg)?;
        let Some(collation) = arg.ty.order().filter(|c| !c.is_exact()) else {
            let function = if smallest { agg::min_max::min_udaf() } else { agg::min_max::max_udaf() };
            return Ok(Lowered { expr: calls.add(call(function, vec![value.expr], false)), ty: value.ty });
        };
        // The first string in the collation's order.
        let order = Sort::new(sort_key_of(value.expr.clone(), collation), smallest, false);
        let filter = df::Expr::IsNotNull(Box::new(value.expr.clone()));
        let first = DfAggregate::new_udf(
            agg::first_last::first_value_udaf(),
            vec![value.expr],
            false,
            Some(Box::new(filter)),
            vec![order],
            None,
        );
        Ok(Lowered { expr: calls.add(df::Expr::AggregateFunction(first)), ty: value.ty })
    }

    fn group_concat(
        &mut self,
        aggregate: &Aggregate,
        args: Vec<Expr>,
        calls: &mut Calls,
    ) -> Result<Lowered, SqlError> {
        let text = match args.len() {
            1 => args[0].clone(),
            _ => {
                let nullable = args.iter().any(|a| a.nullable);
                let ty = self.columns()[aggregate.id].ty;
                Expr::new(ExprKind::Call(Function::Concat, args), ty, nullable)
            }
        };
        let value = self.value(&text)?;
        let mut call_args = vec![cast(value, &DataType::Utf8View)];
        if aggregate.distinct {
            call_args.push(match &aggregate.args[..] {
                [_] => self.equality_key(&text)?,
                // What is distinct are the rows of arguments, whatever texts they make.
                args => {
                    let keys =
                        args.iter().map(|arg| self.equality_key(arg)).collect::<Result<Vec<_>, _>>()?;
                    RowKeyUdf::create(keys.len()).call(keys)
                }
            });
        }
        for (key, _) in &aggregate.order_by {
            call_args.push(self.order_key(key)?);
        }
        // With DISTINCT, what is run apart comes here once.
        let apart = aggregate.distinct && self.method == Method::Spilling;
        let follows = match &aggregate.args[..] {
            [text] => aggregate.order_by.iter().all(|(key, _)| key == text),
            _ => false,
        };
        let how = Concat {
            separator: aggregate.separator.clone(),
            distinct: aggregate.distinct,
            ordered: !aggregate.order_by.is_empty(),
            order_follows_text: follows || apart,
            most: usize::try_from(self.context.group_concat_max_len).unwrap_or(usize::MAX),
            charset: aggregate.concat_charset(&text),
        };
        let descending = aggregate.order_by.iter().map(|(_, descending)| *descending).collect();
        let function = GroupConcat::create(how, descending, self.context.clone());
        Ok(Lowered { expr: calls.add(call(function, call_args, apart)), ty: DataType::Utf8View })
    }

    /// GROUP BY … WITH ROLLUP: DataFusion's grouping sets, of which each row tells its own by a number with a bit for each
    /// key, the first key's highest.
    fn rollup(&mut self, plan: LogicalPlan, aggregation: &Aggregation) -> Result<LogicalPlan, SqlError> {
        let mut calls = Calls::new("a");
        let mut passed: Vec<_> = plan.schema().columns().into_iter().map(df::Expr::Column).collect();
        let mut groups = Vec::with_capacity(aggregation.keys.len());
        let mut shown = Vec::new();
        let set = || df::ident(GROUPING_SET);
        let bit = |at: usize| 1u64 << (aggregation.keys.len() - 1 - at);
        for (at, key) in aggregation.keys.iter().enumerate() {
            let expr = &key.expr;
            let value = self.value(expr)?;
            self.define(key.id, value.ty.clone());
            let name = format!("k{}", key.id.0);
            groups.push(df::ident(&name));
            let bytewise = equals_bytewise(&expr.ty);
            let mut group = equality_key_of(value.expr.clone(), &expr.ty);
            if bytewise && value.ty == DataType::Float32 {
                // The key is shown as the value, so it has the value's type.
                group = df::cast(group, DataType::Float32);
            }
            passed.push(group.alias(&name));
            let kept = match bytewise {
                true => df::ident(&name),
                false => calls.add(call(FirstMet::create(), vec![value.expr], false)),
            };
            let counted = binary(set(), Operator::BitwiseAnd, lit(bit(at)));
            let in_set = binary(counted, Operator::Eq, lit(0u64));
            let otherwise = Box::new(lit(ScalarValue::try_from(&value.ty).map_err(|e| plan_error(&e))?));
            let case = df::expr::Case::new(None, vec![(Box::new(in_set), Box::new(kept))], Some(otherwise));
            shown.push(df::Expr::Case(case).alias(name_of(key.id)));
        }
        for aggregate in &aggregation.aggregates {
            let result = match aggregate.function {
                AggregateFunction::Grouping => {
                    let position = |arg: &Expr| aggregation.keys.iter().position(|key| key.expr == *arg);
                    let bits: Vec<_> = aggregate.args.iter().filter_map(position).map(bit).collect();
                    debug_assert_eq!(bits.len(), aggregate.args.len(), "the binder takes nothing but keys");
                    Lowered { expr: gathered(set(), &bits), ty: DataType::Int64 }
                }
                _ => self.aggregate(aggregate, &mut calls)?,
            };
            self.define(aggregate.id, result.ty.clone());
            shown.push(result.expr.alias(name_of(aggregate.id)));
        }
        let plan = nodes::project(plan, passed)?;
        let plan = match self.method == Method::Spilling && calls.calls.iter().any(is_distinct) {
            true => self.aggregated_apart(plan, groups, calls, true)?,
            false => grouped(plan, groups, calls.named(), true)?,
        };
        nodes::project(plan, shown)
    }

    /// Rows that differ in some column, as the columns' collations see it.
    pub(super) fn distinct(&mut self, plan: LogicalPlan, ids: &[ColumnId]) -> Result<LogicalPlan, SqlError> {
        let types: Vec<_> = ids.iter().map(|id| self.columns()[*id].ty).collect();
        let column = |id: &ColumnId| df::ident(name_of(*id));
        if types.len() <= WIDE && types.iter().all(equals_bytewise) {
            return df_result(LogicalPlanBuilder::from(plan).distinct().and_then(|b| b.build()));
        }
        let (mut groups, mut calls, mut shown) = (Vec::new(), Calls::new("a"), Vec::new());
        for (id, ty) in ids.iter().zip(types) {
            let name = format!("k{}", id.0);
            match equals_bytewise(&ty) {
                false => {
                    groups.push(equality_key_of(column(id), &ty).alias(name));
                    let first = calls.add(call(FirstMet::create(), vec![column(id)], false));
                    shown.push(first.alias(name_of(*id)));
                }
                true => {
                    groups.push(column(id).alias(&name));
                    shown.push(df::ident(name).alias(name_of(*id)));
                }
            }
        }
        nodes::project(nodes::aggregate(plan, groups, calls.named())?, shown)
    }

    pub(super) fn windows(
        &mut self,
        plan: LogicalPlan,
        windows: &[WindowFunction],
    ) -> Result<LogicalPlan, SqlError> {
        let mut passed: Vec<_> = plan.schema().columns().into_iter().map(df::Expr::Column).collect();
        let mut calls = Calls::new("v");
        for window in windows {
            let mirrored = match self.method {
                Method::InMemory => None,
                Method::Spilling => mirrored(window),
            };
            let result = self.window(mirrored.as_ref().unwrap_or(window), &mut calls)?;
            self.define(window.id, result.ty.clone());
            passed.push(result.expr.alias(name_of(window.id)));
        }
        // Window nodes name their columns themselves, and a name says nothing of casts: those of one name are of nodes of their own.
        let mut left: Vec<_> = calls.calls.into_iter().enumerate().collect();
        let mut plan = plan;
        while !left.is_empty() {
            let mut names = HashSet::new();
            let (now, later): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|(_, call)| names.insert(call.schema_name().to_string()));
            let below = plan.schema().columns().into_iter().map(df::Expr::Column);
            let named = now
                .iter()
                .map(|(at, call)| df::ident(call.schema_name().to_string()).alias(format!("v{at}")));
            let columns: Vec<_> = below.chain(named).collect();
            plan = self.with_windows(plan, now.into_iter().map(|(_, call)| call).collect())?;
            plan = nodes::project(plan, columns)?;
            left = later;
        }
        nodes::project(plan, passed)
    }

    /// All in one go; if memory is scarce one by one, since some of them need more of it than others.
    fn with_windows(&self, mut plan: LogicalPlan, mut calls: Vec<df::Expr>) -> Result<LogicalPlan, SqlError> {
        if self.method == Method::InMemory {
            return nodes::windows(plan, calls);
        }
        // What is sorted by more is sorted by less, too.
        let keys = |call: &df::Expr| match call {
            df::Expr::WindowFunction(call) => call.params.partition_by.len() + call.params.order_by.len(),
            _ => 0,
        };
        calls.sort_by_key(|call| std::cmp::Reverse(keys(call)));
        for call in calls {
            plan = nodes::windows(plan, vec![call])?;
        }
        Ok(plan)
    }

    pub(super) fn window(&mut self, window: &WindowFunction, calls: &mut Calls) -> Result<Lowered, SqlError> {
        let args = window.args.clone();
        let out = self.columns()[window.id].ty;
        let WindowKind::Aggregate(function) = window.kind else {
            return self.ranking(window, &args, out, calls);
        };
        let over = |lowerer: &mut Self, function: Arc<AggregateUDF>, args: Vec<df::Expr>| {
            lowerer.over(window, WindowFunctionDefinition::AggregateUDF(function), args)
        };
        match function {
            AggregateFunction::Count => {
                let args = match args.first() {
                    Some(arg) => vec![self.value(arg)?.expr],
                    None => vec![lit(1i64)],
                };
                let expr = calls.add(over(self, agg::count::count_udaf(), args)?);
                Ok(Lowered { expr, ty: DataType::Int64 })
            }
            AggregateFunction::Sum | AggregateFunction::Avg => {
                let (arg, ty) = self.sum_arg(&args[0])?;
                let add = match ty {
                    DataType::Float64 => OverFrame::create(Fold::Sum, self.stop.clone()),
                    _ => agg::sum::sum_udaf(),
                };
                let sum = calls.add(over(self, add, vec![arg.clone()])?);
                let sum = Lowered { expr: sum, ty };
                let result = match function {
                    AggregateFunction::Sum => decimal_result(sum, out),
                    _ => {
                        let count = calls.add(over(self, agg::count::count_udaf(), vec![arg])?);
                        self.quotient(sum, count, out)?
                    }
                };
                // A window's results are kept, and so are those that a DOUBLE can have.
                Ok(match result.ty {
                    DataType::Float64 => {
                        let expr = Finite::create(Otherwise::Nearest).call(vec![result.expr]);
                        Lowered { expr, ..result }
                    }
                    _ => result,
                })
            }
            AggregateFunction::Min | AggregateFunction::Max => {
                let smallest = function == AggregateFunction::Min;
                let value = self.value(&args[0])?;
                let Some(collation) = args[0].ty.order().filter(|c| !c.is_exact()) else {
                    let function = if smallest { agg::min_max::min_udaf() } else { agg::min_max::max_udaf() };
                    let expr = calls.add(over(self, function, vec![value.expr])?);
                    return Ok(Lowered { expr, ty: value.ty });
                };
                let ty = args[0].ty.arrow_type();
                let text = cast(value, &ty);
                let key = sort_key_of(text.clone(), collation);
                let expr =
                    calls.add(over(self, ExtremeString::create(smallest, ty.clone()), vec![text, key])?);
                Ok(Lowered { expr, ty })
            }
            AggregateFunction::JsonArrayAgg | AggregateFunction::JsonObjectAgg => {
                let value = self.value(&args[0])?;
                let function = GatherDocuments::create(gathered_of(function));
                let expr = calls.add(over(self, function, vec![value.expr])?);
                Ok(Lowered { expr, ty: DataType::BinaryView })
            }
            _ => match fold_of(function) {
                Some(fold) => {
                    let value = self.value(&args[0])?;
                    let arg = cast(value, &fold.ty());
                    let folded = OverFrame::create(fold, self.stop.clone());
                    let expr = calls.add(over(self, folded, vec![arg])?);
                    let expr = match fold.ty() {
                        DataType::Float64 => Finite::create(variance_of(function)).call(vec![expr]),
                        _ => expr,
                    };
                    Ok(Lowered { expr, ty: fold.ty() })
                }
                None => Err(unsupported("this aggregate function over a window")),
            },
        }
    }

    fn ranking(
        &mut self,
        window: &WindowFunction,
        args: &[Expr],
        out: SqlType,
        calls: &mut Calls,
    ) -> Result<Lowered, SqlError> {
        if let (WindowKind::Lag | WindowKind::Lead, [value, offset, default]) = (&window.kind, args)
            && default.as_literal().is_none()
        {
            return self.shifted(window, [value, offset, default], out, calls);
        }
        let otherwise = match self.method {
            Method::InMemory => None,
            Method::Spilling => self.without_lookahead(window, args, calls)?,
        };
        let result = match otherwise {
            Some(result) => result,
            None => self.ranked(window, args, calls)?,
        };
        let ty = out.arrow_type();
        Ok(Lowered { expr: df::cast(result, ty.clone()), ty })
    }

    /// LAG or LEAD with a default that the row itself gives, which DataFusion's functions do not take.
    fn shifted(
        &mut self,
        window: &WindowFunction,
        [value, offset, default]: [&Expr; 3],
        out: SqlType,
        calls: &mut Calls,
    ) -> Result<Lowered, SqlError> {
        let one = Expr::literal(Datum::Int(1), SqlType::BIGINT);
        let there = self.ranking(window, &[one, offset.clone()], SqlType::BIGINT, calls)?;
        let Lowered { expr: value, ty } =
            self.ranking(window, &[value.clone(), offset.clone()], out, calls)?;
        let default = cast(self.value(default)?, &ty);
        let branch = (Box::new(df::Expr::IsNull(Box::new(there.expr))), Box::new(default));
        let case = df::expr::Case::new(None, vec![branch], Some(Box::new(value)));
        Ok(Lowered { expr: df::Expr::Case(case), ty })
    }

    /// The result of a function that is no aggregate, in DataFusion's type.
    pub(super) fn ranked(
        &mut self,
        window: &WindowFunction,
        args: &[Expr],
        calls: &mut Calls,
    ) -> Result<df::Expr, SqlError> {
        let function = match window.kind {
            WindowKind::RowNumber => win::row_number::row_number_udwf(),
            WindowKind::Rank => win::rank::rank_udwf(),
            WindowKind::DenseRank => win::rank::dense_rank_udwf(),
            WindowKind::PercentRank => win::rank::percent_rank_udwf(),
            WindowKind::CumeDist => win::cume_dist::cume_dist_udwf(),
            WindowKind::Ntile => win::ntile::ntile_udwf(),
            WindowKind::Lag => win::lead_lag::lag_udwf(),
            WindowKind::Lead => win::lead_lag::lead_udwf(),
            WindowKind::FirstValue => win::nth_value::first_value_udwf(),
            WindowKind::LastValue => win::nth_value::last_value_udwf(),
            WindowKind::NthValue | WindowKind::Aggregate(_) => win::nth_value::nth_value_udwf(),
        };
        let mut lowered = Vec::with_capacity(args.len());
        for arg in args {
            lowered.push(match arg.as_literal() {
                Some(Datum::Int(v)) => lit(*v),
                _ => self.logical_value(arg)?,
            });
        }
        let call = self.over(window, WindowFunctionDefinition::WindowUDF(function), lowered)?;
        Ok(calls.add(call))
    }
}

/// A variance that is no DOUBLE is an error.
fn variance_of(function: AggregateFunction) -> Otherwise {
    Otherwise::Refused(match function {
        AggregateFunction::StddevPop | AggregateFunction::StddevSamp => "std",
        _ => "variance",
    })
}

/// A sum in the physical type of a DECIMAL; what is no decimal stays.
fn decimal_result(value: Lowered, out: SqlType) -> Lowered {
    let SqlType::Decimal { scale, .. } = out else {
        let ty = out.arrow_type();
        return Lowered { expr: cast(value, &ty), ty };
    };
    let ty = match value.ty {
        DataType::Decimal256(..) => DataType::Decimal256(76, scale as i8),
        _ => DataType::Decimal128(38, scale as i8),
    };
    Lowered { expr: cast(value, &ty), ty }
}

fn fold_of(function: AggregateFunction) -> Option<Fold> {
    use AggregateFunction as F;
    Some(match function {
        F::BitAnd => Fold::BitAnd,
        F::BitOr => Fold::BitOr,
        F::BitXor => Fold::BitXor,
        F::VarPop => Fold::VarPop,
        F::VarSamp => Fold::VarSamp,
        F::StddevPop => Fold::StddevPop,
        F::StddevSamp => Fold::StddevSamp,
        _ => return None,
    })
}

fn gathered_of(function: AggregateFunction) -> Gathered {
    match function {
        AggregateFunction::JsonObjectAgg => Gathered::Object,
        _ => Gathered::Array,
    }
}

fn null_if_zero(count: df::Expr) -> df::Expr {
    datafusion::functions::core::expr_fn::nullif(count, lit(0i64))
}

/// GROUPING()'s number: a bit for each argument, the last one's lowest.
fn gathered(set: df::Expr, bits: &[u64]) -> df::Expr {
    let bit = |(at, bit): (usize, &u64)| {
        let taken = binary(set.clone(), Operator::BitwiseAnd, lit(*bit));
        let from = lit(u64::from(bit.trailing_zeros()));
        let to = lit((bits.len() - 1 - at) as u64);
        binary(binary(taken, Operator::BitwiseShiftRight, from), Operator::BitwiseShiftLeft, to)
    };
    let sum = bits.iter().enumerate().map(bit).reduce(|a, b| binary(a, Operator::Plus, b));
    df::cast(sum.unwrap_or(lit(0u64)), DataType::Int64)
}
