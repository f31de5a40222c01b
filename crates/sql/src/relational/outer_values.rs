//! Subqueries that aggregate the rows which other comparisons than equalities pick by outer columns: they are evaluated once for
//! each combination of these columns' values, all of them together.
//!
//! ```text
//!  FROM o, (SELECT COUNT(*) FROM s WHERE s.k = o.k AND s.a >= o.a AND s.b <= o.b)
//!  ─────▶   (SELECT COUNT(*) FROM (SELECT DISTINCT k, a, b FROM o) d JOIN s ON s.k = d.k AND s.a >= d.a AND s.b <= d.b
//!            WHERE d.k = o.k AND d.a = o.a AND d.b = o.b)
//! ```
//!
//! What is left is picked by equalities, and so a join with the aggregates of groups (Neumann and Kemper, "Unnesting Arbitrary
//! Queries", BTW 2015). An outer row with a NULL in these columns has no values of its own: nothing may be picked by it.

use std::collections::{BTreeSet, HashSet};

use avocet_types::error::SqlError;
use avocet_types::expr::{CompareOp, Expr, ExprKind, ValueClass};

use super::build::once;
use super::lateral::{copy_of, has_many, locks};
use super::naming::column;
use super::placement::{keys_among, place};
use super::tree::columns_of;
use super::unnest::{can_pull, correlated, equality, joined_by, local_columns, own_uses, pull};
use super::{Apply, ApplyKind, Environment, JoinKind, Node, Operator};
use crate::bind::not_null_columns;
use crate::plan::walk::{column_of, replace};
use crate::plan::{ColumnId, ColumnTable, Projected};

/// Without an equality among the conditions, all rows are tried with all values: from more on, evaluating the subquery for each
/// outer row is faster.
const MANY_ROWS: f64 = 50_000.0;

/// Gives the subquery's rows the values of the outer columns, and leaves equalities with these alone to pick them, if that serves.
pub(super) fn by_values(
    apply: &mut Apply,
    columns: &mut ColumnTable,
    environment: Environment<'_>,
) -> Result<(), SqlError> {
    if !matches!(apply.kind, ApplyKind::Scalar | ApplyKind::Rows { .. }) {
        return Ok(());
    }
    let local = local_columns(apply);
    let Some(picked) = picked_rows(&apply.query, &local) else { return Ok(()) };
    let mut conditions = Vec::new();
    correlated(picked, &local, &mut conditions);
    let used: BTreeSet<ColumnId> = conditions
        .iter()
        .flat_map(|condition| columns_of(condition))
        .filter(|id| local.contains(id))
        .collect();
    let mut not_null = BTreeSet::new();
    conditions.iter().for_each(|condition| not_null_columns(condition, true, &mut not_null));
    let has_values = |id: &ColumnId| {
        use ValueClass as C;
        let info = &columns[*id];
        let is_exact = matches!(
            ValueClass::of(&info.ty),
            C::Int | C::Decimal | C::Date | C::DateTime | C::Timestamp | C::Time
        );
        is_exact && (!info.nullable || not_null.contains(id))
    };
    let equalities = conditions.iter().filter(|condition| equality(condition, &local).is_some()).count();
    let is_own = |id: &ColumnId| !local.contains(id) && !apply.outer.contains(id);
    let is_other = |condition: &&Expr| {
        columns_of(condition).any(|id| is_own(&id)) && equality(condition, &local).is_none()
    };
    let serves = conditions.iter().any(is_other)
        && used.iter().all(has_values)
        && !apply.query.is_volatile()
        && !locks(&apply.query)
        && !apply.input.is_volatile()
        && !locks(&apply.input);
    if !serves || !has_many(apply, environment)? {
        return Ok(());
    }
    if equalities == 0 && largest_table(picked, environment)? > MANY_ROWS {
        return Ok(());
    }
    let Some((source, copies)) = source_of(&apply.input, &used).copy(columns) else { return Ok(()) };
    let values: Vec<(ColumnId, ColumnId)> =
        used.iter().map(|id| (*id, copy_of(columns, &column(columns, *id)))).collect();
    let rows = rows_of(&mut apply.query);
    let items = values.iter().map(|(outer, value)| {
        let copy = copies.get(outer).copied().unwrap_or(*outer);
        Projected { id: *value, expr: column(columns, copy) }
    });
    let source = source.projected(items.collect(), &[]);
    *rows = beside_values(std::mem::replace(rows, Node::one_row()), source, &values, &local, columns);
    Ok(())
}

/// What a subquery aggregates, if outer columns stand there alone, in conditions that can be taken out.
fn picked_rows<'n>(query: &'n Node, local: &HashSet<ColumnId>) -> Option<&'n Node> {
    let mut node = query;
    let mut aggregates = false;
    loop {
        let input = match &node.operator {
            Operator::Project { input, .. } => input,
            Operator::Aggregate { input, .. } => {
                aggregates = true;
                input
            }
            _ => break,
        };
        if own_uses(node, local) {
            return None;
        }
        node = input;
    }
    (aggregates && can_pull(node, local, false)).then_some(node)
}

/// The same, where [`picked_rows`] has found it.
fn rows_of(query: &mut Node) -> &mut Node {
    match query.operator {
        Operator::Project { ref mut input, .. } | Operator::Aggregate { ref mut input, .. } => rows_of(input),
        _ => query,
    }
}

fn largest_table(node: &Node, environment: Environment<'_>) -> Result<f64, SqlError> {
    let placed = place(node.clone(), environment)?;
    let mut most: f64 = 0.0;
    placed.for_each_node(&mut |node| {
        if let Operator::Scan(scan) = &node.operator {
            most = most.max(scan.rows);
        }
    });
    Ok(most)
}

/// What gives the values of the columns, without what else is joined to it and drops no row.
fn source_of<'n>(node: &'n Node, used: &BTreeSet<ColumnId>) -> &'n Node {
    let gives = |node: &Node| used.iter().all(|id| node.outputs.contains(id));
    let below = match &node.operator {
        Operator::Project { input, .. } => input,
        Operator::Join(join)
            if matches!(join.kind, JoinKind::Single | JoinKind::Left | JoinKind::Mark(_)) =>
        {
            &join.left
        }
        _ => return node,
    };
    if gives(below) { source_of(below, used) } else { node }
}

/// Rows joined with the values by which outer rows pick them, and picked by equalities with these.
fn beside_values(
    rows: Node,
    source: Node,
    values: &[(ColumnId, ColumnId)],
    local: &HashSet<ColumnId>,
    columns: &ColumnTable,
) -> Node {
    let outputs = rows.outputs.clone();
    let (mut pulled, mut before) = (Vec::new(), Vec::new());
    let rows = pull(rows, local, &mut pulled, &mut before);
    let given = source.outputs.clone();
    let distinct = Node::new(Operator::Distinct { input: Box::new(source) }, given);
    for condition in &mut pulled {
        replace(condition, &mut |part| {
            let id = column_of(part)?;
            values.iter().find(|(outer, _)| *outer == id).map(|(_, value)| column(columns, *value))
        });
    }
    let [left, right]: [HashSet<ColumnId>; 2] =
        [&distinct, &rows].map(|node| node.outputs.iter().copied().collect());
    let (keys, residual) = keys_among(pulled, &left, &right);
    let joined = joined_by(JoinKind::Inner, distinct, rows, keys, residual);
    let same = |(outer, value): &(ColumnId, ColumnId)| {
        let (left, right) = (Box::new(column(columns, *outer)), Box::new(column(columns, *value)));
        let nullable = left.nullable || right.nullable;
        Expr::truth(ExprKind::Compare { op: CompareOp::Eq, left, right }, nullable)
    };
    let picked = joined.filtered(values.iter().map(same).collect()).with_outputs(&outputs);
    before.into_iter().rev().fold(picked, |node, (id, query)| once(id, query, node))
}
