//! DISTINCT aggregates that spill.
//!
//! DataFusion keeps the values that a DISTINCT aggregate has met in memory; with few groups these can not be spilled. Two GROUP BYs
//! can be: one by the groups' keys and the value, then one by the keys. Each value that aggregates want to be distinct gets a plan of
//! its own, aside that of all other aggregates. They read the same rows, which are kept once (shared.rs), and are joined
//! by the keys:
//!
//! ```text
//!                      join by k (NULLs are equal)
//!            ┌──────────────┼──────────────────────┐
//!     k, SUM(x), MIN(y)   k, COUNT(d)            k, GROUP_CONCAT(f)
//!            │              │                      │
//!         GROUP BY k     GROUP BY k             GROUP BY k
//!            │              │                      │
//!            │           GROUP BY k, d          k, e, first f: GROUP BY k, e
//!            └──────────────┼──────────────────────┘
//!                    shared: k, x, y, d, e, f
//! ```
//!
//! This is slower than what DataFusion does as long as that fits, so it is for the second attempt of a query that did not.
//! ROLLUP makes grouping sets of the keys; the value is in each of the sets.

use std::collections::HashMap;

use avocet_types::error::SqlError;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::NullEquality;
use datafusion::logical_expr::expr::{AggregateFunction as DfAggregate, Sort};
use datafusion::logical_expr::{self as df, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, lit};

use crate::aggregate::{Calls, call};
use crate::expr::binary;
use crate::lower::Lowerer;
use crate::names::df_result;
use crate::nodes;
use crate::shared::SharedNode;
use crate::udaf::FirstMet;

/// With ROLLUP, the column that tells a row's grouping set: a bit for each key that is not in it, the first key's highest.
pub(super) const GROUPING_SET: &str = "grouping_set";
/// DataFusion's name for it.
const GROUPING_ID: &str = "__grouping_id";
/// The value of which each is to be met once.
const VALUE: &str = "distinct_value";

pub(super) fn is_distinct(expr: &df::Expr) -> bool {
    matches!(expr, df::Expr::AggregateFunction(call) if call.params.distinct)
}

/// The keys, which are columns if it is a ROLLUP, the calls' results, and with ROLLUP the grouping set.
pub(super) fn grouped(
    plan: LogicalPlan,
    keys: Vec<df::Expr>,
    calls: Vec<df::Expr>,
    rollup: bool,
) -> Result<LogicalPlan, SqlError> {
    if !rollup {
        return nodes::aggregate(plan, keys, calls);
    }
    let mut shown = keys.clone();
    shown.extend(calls.iter().map(|call| df::ident(call.schema_name().to_string())));
    shown.push(df::cast(df::ident(GROUPING_ID), DataType::UInt64).alias(GROUPING_SET));
    let sets = df::Expr::GroupingSet(df::GroupingSet::Rollup(keys));
    nodes::project(nodes::aggregate(plan, vec![sets], calls)?, shown)
}

/// What the plans read: the keys, and all that the calls ask for, each under a name.
#[derive(Default)]
struct Rows {
    keys: Vec<df::Expr>,
    names: Vec<String>,
    columns: Vec<df::Expr>,
    positions: HashMap<df::Expr, usize>,
}

impl Rows {
    fn new(groups: Vec<df::Expr>) -> Self {
        let names = groups.iter().map(|group| group.schema_name().to_string()).collect();
        Self { keys: groups, names, ..Self::default() }
    }

    /// The column that an expression is.
    fn column(&mut self, expr: &df::Expr) -> df::Expr {
        // A literal is the same for all rows.
        if matches!(expr, df::Expr::Literal(..)) {
            return expr.clone();
        }
        let at = *self.positions.entry(expr.clone()).or_insert_with(|| {
            self.columns.push(expr.clone());
            self.columns.len() - 1
        });
        df::ident(format!("x{at}"))
    }

    /// A call of columns.
    fn call(&mut self, call: &DfAggregate) -> DfAggregate {
        let mut call = call.clone();
        let params = &mut call.params;
        params.args = params.args.iter().map(|arg| self.column(arg)).collect();
        params.filter = params.filter.take().map(|filter| Box::new(self.column(&filter)));
        let sort = |sort: &Sort, rows: &mut Self| Sort { expr: rows.column(&sort.expr), ..sort.clone() };
        params.order_by = params.order_by.iter().map(|key| sort(key, self)).collect();
        call
    }

    fn key_columns(&self) -> Vec<df::Expr> {
        self.names.iter().map(df::ident).collect()
    }
}

/// Calls that want the same value to be distinct.
struct Apart {
    value: df::Expr,
    /// With the names of their results.
    calls: Vec<(String, DfAggregate)>,
}

impl Lowerer {
    /// The same as [`grouped`], by plans that spill whatever is distinct.
    pub(super) fn aggregated_apart(
        &self,
        plan: LogicalPlan,
        groups: Vec<df::Expr>,
        calls: Calls,
        rollup: bool,
    ) -> Result<LogicalPlan, SqlError> {
        let mut rows = Rows::new(groups);
        let (mut together, mut apart): (Vec<df::Expr>, Vec<Apart>) = (Vec::new(), Vec::new());
        for (at, expr) in calls.calls.iter().enumerate() {
            let name = format!("{}{at}", calls.prefix);
            let df::Expr::AggregateFunction(call) = expr else { continue };
            let call = rows.call(call);
            if !call.params.distinct {
                together.push(df::Expr::AggregateFunction(call).alias(name));
                continue;
            }
            // GROUP_CONCAT has what tells its texts apart behind these.
            let value = call.params.args.get(1).or(call.params.args.first()).cloned();
            let value = value.unwrap_or(lit(1i64));
            match apart.iter_mut().find(|apart| apart.value == value) {
                Some(apart) => apart.calls.push((name, call)),
                None => apart.push(Apart { value, calls: vec![(name, call)] }),
            }
        }
        let passed = rows.keys.iter().cloned();
        let passed: Vec<_> = passed
            .chain(rows.columns.iter().enumerate().map(|(at, column)| column.clone().alias(format!("x{at}"))))
            .collect();
        let mut base = nodes::project(plan, passed)?;
        if apart.len() + usize::from(!together.is_empty()) > 1 {
            base = SharedNode::plan(base);
        }
        let mut parts = Vec::with_capacity(apart.len() + 1);
        if !together.is_empty() {
            parts.push(grouped(base.clone(), rows.key_columns(), together, rollup)?);
        }
        for apart in apart {
            parts.push(of_distinct(base.clone(), &rows, apart, rollup)?);
        }
        let mut keys = rows.names;
        keys.extend(rollup.then(|| GROUPING_SET.to_owned()));
        let mut parts = parts.into_iter();
        let mut joined = parts.next().ok_or_else(|| avocet_sql::bind::unsupported("no aggregates"))?;
        for (at, part) in parts.enumerate() {
            joined = beside(joined, part, &keys, at)?;
        }
        Ok(joined)
    }
}

/// The calls' results over rows of which each has another value.
fn of_distinct(base: LogicalPlan, rows: &Rows, apart: Apart, rollup: bool) -> Result<LogicalPlan, SqlError> {
    let mut firsts = Calls::new("f");
    let mut calls = Vec::with_capacity(apart.calls.len());
    for (name, mut call_of) in apart.calls {
        let params = &mut call_of.params;
        params.distinct = false;
        for arg in &mut params.args {
            *arg = match *arg == apart.value {
                true => df::ident(VALUE),
                false => firsts.add(call(FirstMet::create(), vec![arg.clone()], false)),
            };
        }
        calls.push(df::Expr::AggregateFunction(call_of).alias(name));
    }
    let mut keys = rows.key_columns();
    let value = apart.value.alias(VALUE);
    if !rollup {
        let by_value: Vec<_> = keys.iter().cloned().chain([value]).collect();
        return nodes::aggregate(nodes::aggregate(base, by_value, firsts.named())?, keys, calls);
    }
    // Grouping sets want columns.
    let passed: Vec<_> = base.schema().columns().into_iter().map(df::Expr::Column).chain([value]).collect();
    let plan = nodes::project(base, passed)?;
    let sets = (0..=keys.len()).rev().map(|count| {
        let set = keys[..count].iter().cloned();
        set.chain([df::ident(VALUE)]).collect()
    });
    let sets = df::Expr::GroupingSet(df::GroupingSet::GroupingSets(sets.collect()));
    let plan = nodes::aggregate(plan, vec![sets], firsts.named())?;
    // The value's bit is the last one.
    let id = df::cast(df::ident(GROUPING_ID), DataType::UInt64);
    let set = binary(id, Operator::BitwiseShiftRight, lit(1u64)).alias(GROUPING_SET);
    let firsts = plan.schema().columns().into_iter().filter(|column| column.name != GROUPING_ID);
    let shown: Vec<_> = firsts.map(df::Expr::Column).chain([set]).collect();
    keys.push(df::ident(GROUPING_SET));
    nodes::aggregate(nodes::project(plan, shown)?, keys, calls)
}

/// Each group of the left side with its results of the right side, which has the same groups.
fn beside(
    left: LogicalPlan,
    right: LogicalPlan,
    keys: &[String],
    at: usize,
) -> Result<LogicalPlan, SqlError> {
    let theirs = |key: &str| format!("{key}_of_{at}");
    let columns = left.schema().columns().into_iter().chain(right.schema().columns());
    let mut shown: Vec<_> = keys.iter().map(df::ident).collect();
    shown.extend(columns.filter(|column| !keys.contains(&column.name)).map(df::Expr::Column));
    if keys.is_empty() {
        return df_result(LogicalPlanBuilder::from(left).cross_join(right).and_then(|b| b.build()));
    }
    let renamed: Vec<_> = right
        .schema()
        .columns()
        .into_iter()
        .map(|column| match keys.contains(&column.name) {
            true => df::Expr::Column(column.clone()).alias(theirs(&column.name)),
            false => df::Expr::Column(column),
        })
        .collect();
    let right = nodes::project(right, renamed)?;
    let on: (Vec<_>, Vec<_>) = keys.iter().map(|key| (key.clone(), theirs(key))).unzip();
    let builder = LogicalPlanBuilder::from(left);
    let joined = builder.join_detailed(right, JoinType::Inner, on, None, NullEquality::NullEqualsNull);
    nodes::project(df_result(joined.and_then(|b| b.build()))?, shown)
}
