//! LATERAL tables and scalar subqueries as joins: the conditions that pick their rows by outer columns become the join's.
//!
//! ```text
//!   LATERAL (SELECT … WHERE k = o.k)                      join on k
//!   LATERAL (SELECT … WHERE k = o.k GROUP BY g)           GROUP BY k, g; join on k
//!   LATERAL (SELECT … WHERE k = o.k ORDER BY x LIMIT n)   row_number() OVER (PARTITION BY k ORDER BY x) <= n; join on k
//!   (SELECT y … WHERE k = o.k), k a unique key            left join on k
//!   (SELECT y … WHERE k = o.k)                            GROUP BY k; left join on k; error 1242 where a group has several rows
//! ```
//!
//! What groups, numbers or counts rows does so for each value of the outer columns: below it, only equalities with them can
//! be taken out, and what they compare becomes a part of its key. All else stays an [`Apply`](super::Apply), and so does a table
//! that is beside few rows: evaluating it for these alone is cheaper than for all.

use std::collections::HashSet;

use avocet_types::error::SqlError;
use avocet_types::expr::{CompareOp, Expr, ExprKind, Function, ValueClass};
use avocet_types::{Datum, SqlType};

use super::naming::column;
use super::placement::{keys_among, place};
use super::tree::columns_of;
use super::unnest::{
    can_pull, correlated, equality, joined_by, local_columns, own_uses, pull, uses, uses_any,
};
use super::{Apply, ApplyKind, Environment, Equality, JoinKind, Node, Operator, RowRange};
use crate::plan::walk::column_of;
use crate::plan::{
    Aggregate, AggregateFunction, Aggregation, ColumnId, ColumnInfo, ColumnTable, Projected, SortKey,
    WindowFunction, WindowKind,
};

/// Beside fewer rows the table is evaluated for each.
const FEW_ROWS: f64 = 32.0;

/// As `FEW_ROWS`, where no index leads to the rows for one: each evaluation reads as much as the one for all does.
const FEW_SCANS: f64 = 2.0;

/// Whether the node is a LATERAL table or a scalar subquery beside so many rows that evaluating it once for all is worth while.
pub(super) fn is_beside_many(node: &Node, environment: Environment<'_>) -> Result<bool, SqlError> {
    let Operator::Apply(apply) = &node.operator else { return Ok(false) };
    let serves = matches!(apply.kind, ApplyKind::Rows { .. } | ApplyKind::Scalar);
    if !serves || local_columns(apply).is_empty() || apply.query.is_volatile() || locks(&apply.query) {
        return Ok(false);
    }
    has_many(apply, environment)
}

/// Whether evaluating the query once for all rows is worth while for so many.
pub(super) fn has_many(apply: &Apply, environment: Environment<'_>) -> Result<bool, SqlError> {
    let few = if has_index(&apply.query, &local_columns(apply)) { FEW_ROWS } else { FEW_SCANS };
    Ok(place(apply.input.clone(), environment)?.rows.rows >= few)
}

/// Whether an index of one of its tables begins with a column that the outer columns pick rows by.
fn has_index(node: &Node, local: &HashSet<ColumnId>) -> bool {
    let mut conditions = Vec::new();
    correlated(node, local, &mut conditions);
    let picked: HashSet<_> =
        conditions.into_iter().filter_map(|condition| column_of(&equality(condition, local)?.1)).collect();
    let mut found = false;
    node.for_each_node(&mut |node| {
        let Operator::Scan(scan) = &node.operator else { return };
        let leads = |position: usize| {
            scan.table.columns.iter().any(|(at, id)| *at == position && picked.contains(id))
        };
        let firsts = scan.table.table.indexes.iter().filter_map(|index| index.parts.first());
        found |= firsts.into_iter().any(|part| leads(part.column));
    });
    found
}

/// Makes a join of a LATERAL table or a subquery of one row, if one answers it.
pub(super) fn join_lateral(node: &mut Node, columns: &mut ColumnTable) {
    let Operator::Apply(apply) = &node.operator else { return };
    let kind = match apply.kind {
        ApplyKind::Rows { outer: false } => JoinKind::Inner,
        ApplyKind::Rows { outer: true } => JoinKind::Left,
        ApplyKind::Scalar => JoinKind::Single,
        _ => return,
    };
    let local = local_columns(apply);
    // Whether there may be several rows, which is an error.
    let counts = kind == JoinKind::Single && !gives_one(&apply.query) && !picks_one(&apply.query, &local);
    if !can_take(&apply.query, &local, counts) {
        return;
    }
    let outputs = node.outputs.clone();
    let Operator::Apply(apply) = std::mem::replace(node, Node::one_row()).operator else { return };
    let Apply { input, query, id, .. } = *apply;
    let (rows, value) = (input.outputs.clone(), query.outputs[0]);
    let mut taker = Decorrelation { columns, local: &local, taken: Taken::default() };
    let mut query = taker.take(query, counts);
    let mut count = None;
    if counts {
        let counted;
        (query, counted) = taker.counted(query, value);
        count = Some(counted);
    }
    let Taken { mut keys, conditions, before, .. } = taker.taken;
    let sides: [HashSet<ColumnId>; 2] =
        [input.outputs.iter().copied().collect(), query.outputs.iter().copied().collect()];
    let (more, residual) = keys_among(conditions, &sides[0], &sides[1]);
    keys.extend(more);
    let mut joined = joined_by(kind, input, query, keys, residual);
    if kind == JoinKind::Single {
        let value = Expr { nullable: true, ..column(columns, count.map_or(value, |(value, _)| value)) };
        let expr = match count {
            Some((_, count)) => of_one_row(count, value),
            None => value,
        };
        let answer = Projected { id, expr };
        joined = joined.projected(vec![answer], &rows);
    }
    let joined = joined.with_outputs(&outputs);
    *node = before.into_iter().rev().fold(joined, |node, (id, query)| super::build::once(id, query, node));
}

/// Whether it locks rows: those that it is evaluated for alone.
pub(super) fn locks(node: &Node) -> bool {
    let mut found = false;
    node.for_each_node(&mut |node| {
        found |= matches!(&node.operator, Operator::Scan(scan) if scan.table.lock.is_some());
    });
    found
}

/// Whether it has one row at most: `… ORDER BY x LIMIT 1`.
fn gives_one(node: &Node) -> bool {
    match &node.operator {
        Operator::Project { input, .. } => gives_one(input),
        Operator::Sort { range: Some(range), .. } | Operator::Limit { range, .. } => range.fetch <= 1,
        _ => false,
    }
}

/// Whether the conditions pick its rows by all columns of a unique key of its one table.
fn picks_one(node: &Node, local: &HashSet<ColumnId>) -> bool {
    let mut picked = HashSet::new();
    let mut node = node;
    loop {
        match &node.operator {
            Operator::Project { input, .. } | Operator::Sort { input, range: None, .. } => node = input,
            Operator::Filter { input, conditions } => {
                picked.extend(conditions.iter().filter_map(|condition| picked_column(condition, local)));
                node = input;
            }
            Operator::Scan(scan) => {
                let own = scan.predicates.iter().filter_map(|condition| picked_column(condition, local));
                picked.extend(own);
                let is_picked = |position: usize| {
                    scan.table.columns.iter().any(|(at, id)| *at == position && picked.contains(id))
                };
                return scan.table.table.indexes.iter().any(|index| {
                    index.kind.is_unique() && index.parts.iter().all(|part| is_picked(part.column))
                });
            }
            _ => return false,
        }
    }
}

/// The column of which a condition leaves one value.
fn picked_column(condition: &Expr, local: &HashSet<ColumnId>) -> Option<ColumnId> {
    let inner = match equality(condition, local) {
        Some((_, inner)) => inner,
        None => {
            let ExprKind::Compare { op: CompareOp::Eq, left, right } = &condition.kind else { return None };
            let is_same = left.ty.collation() == right.ty.collation()
                && ValueClass::of(&left.ty) == ValueClass::of(&right.ty);
            match (left.is_constant(), right.is_constant()) {
                (true, false) if is_same => Expr::clone(right),
                (false, true) if is_same => Expr::clone(left),
                _ => return None,
            }
        }
    };
    column_of(&inner)
}

/// The value of a subquery of one row; error 1242 for several.
fn of_one_row(count: ColumnId, value: Expr) -> Expr {
    let count = Expr::column(count.index(), SqlType::BIGINT, true);
    let is_one = Expr::new(ExprKind::Call(Function::AtMostOne, vec![count]), SqlType::BIGINT, true);
    let ty = value.ty;
    let otherwise = Some(Box::new(Expr::literal(Datum::Null, ty)));
    Expr::new(ExprKind::Case { branches: vec![(is_one, value)], otherwise }, ty, true)
}

/// Whether all that uses the outer columns can be taken out. `by_key`: something above counts or numbers rows.
fn can_take(node: &Node, local: &HashSet<ColumnId>, by_key: bool) -> bool {
    if !uses_any(node, local) {
        return true;
    }
    let is_taken =
        |condition: &Expr| !by_key || !uses(condition, local) || equality(condition, local).is_some();
    match &node.operator {
        Operator::Filter { input, conditions } => {
            conditions.iter().all(is_taken) && can_take(input, local, by_key)
        }
        _ if own_uses(node, local) => false,
        Operator::Project { input, .. } => can_take(input, local, by_key),
        Operator::Aggregate { input, aggregation } => {
            !aggregation.keys.is_empty() && !aggregation.rollup && can_take(input, local, true)
        }
        Operator::Sort { input, range, .. } => can_take(input, local, by_key || range.is_some()),
        Operator::Limit { input, .. } | Operator::Distinct { input } | Operator::Window { input, .. } => {
            can_take(input, local, true)
        }
        _ => {
            let mut conditions = Vec::new();
            correlated(node, local, &mut conditions);
            can_pull(node, local, false) && conditions.into_iter().all(is_taken)
        }
    }
}

/// What was taken out of a table.
#[derive(Default)]
struct Taken {
    /// Of outer values and columns of the table.
    keys: Vec<Equality>,
    /// Other conditions that use outer columns.
    conditions: Vec<Expr>,
    /// Columns that these need: all above passes them on.
    passed: Vec<ColumnId>,
    before: Vec<(ColumnId, Node)>,
}

struct Decorrelation<'d> {
    columns: &'d mut ColumnTable,
    local: &'d HashSet<ColumnId>,
    taken: Taken,
}

impl Decorrelation<'_> {
    /// The node without what [`can_take`] has found, and with the columns that it needs.
    fn take(&mut self, node: Node, by_key: bool) -> Node {
        if !uses_any(&node, self.local) {
            return node;
        }
        let Node { operator, mut outputs, .. } = node;
        let operator = match operator {
            Operator::Filter { input, conditions } => {
                let input = self.take(*input, by_key);
                let (own, kept): (Vec<_>, Vec<_>) =
                    conditions.into_iter().partition(|condition| uses(condition, self.local));
                return self.without(input, own, by_key).filtered(kept);
            }
            Operator::Project { input, items } => {
                Operator::Project { input: Box::new(self.take(*input, by_key)), items }
            }
            Operator::Aggregate { input, mut aggregation } => {
                let input = Box::new(self.take(*input, true));
                self.group_by_keys(&mut aggregation);
                self.taken.passed = self.taken.keys.iter().flat_map(|key| columns_of(&key.right)).collect();
                Operator::Aggregate { input, aggregation }
            }
            // Without a range the order of a table's rows means nothing.
            Operator::Sort { input, keys, range } => {
                let input = self.take(*input, by_key || range.is_some());
                self.pass(&mut outputs);
                return match range {
                    Some(range) => self.numbered(input, &keys, range, &outputs),
                    None => input.with_outputs(&outputs),
                };
            }
            Operator::Limit { input, range } => {
                let input = self.take(*input, true);
                self.pass(&mut outputs);
                return self.numbered(input, &[], range, &outputs);
            }
            Operator::Distinct { input } => Operator::Distinct { input: Box::new(self.take(*input, true)) },
            Operator::Window { input, mut functions } => {
                let input = Box::new(self.take(*input, true));
                for function in &mut functions {
                    function.partition_by.extend(self.taken.keys.iter().map(|key| key.right.clone()));
                }
                Operator::Window { input, functions }
            }
            operator => {
                let mut pulled = Vec::new();
                let node = Node::new(operator, outputs);
                let node = pull(node, self.local, &mut pulled, &mut self.taken.before);
                return self.without(node, pulled, by_key);
            }
        };
        self.pass(&mut outputs);
        Node::new(operator, outputs)
    }

    /// A value of each key's rows, and how many these are.
    fn counted(&mut self, input: Node, value: ColumnId) -> (Node, (ColumnId, ColumnId)) {
        let of = column(self.columns, value);
        let id = copy_of(self.columns, &of);
        let one = Expr::int(1);
        let count = copy_of(self.columns, &one);
        let aggregate = |id, function, args| Aggregate {
            id,
            function,
            args,
            distinct: false,
            order_by: Vec::new(),
            separator: "".into(),
            of_bytes: false,
        };
        let aggregates = vec![
            aggregate(id, AggregateFunction::AnyValue, vec![of]),
            aggregate(count, AggregateFunction::Count, vec![one]),
        ];
        let mut aggregation = Aggregation { keys: Vec::new(), aggregates, rollup: false };
        self.group_by_keys(&mut aggregation);
        let outputs = aggregation.keys.iter().map(|key| key.id).chain([id, count]).collect();
        let operator = Operator::Aggregate { input: Box::new(input), aggregation };
        (Node::new(operator, outputs), (id, count))
    }

    /// Groups by what was taken out, each passed on under a name of its own.
    fn group_by_keys(&mut self, aggregation: &mut Aggregation) {
        for key in &mut self.taken.keys {
            let expr = std::mem::replace(&mut key.right, Expr::int(0));
            let id = copy_of(self.columns, &expr);
            key.right = column(self.columns, id);
            aggregation.keys.push(Projected { id, expr });
        }
    }

    /// Adds what has to be passed on.
    fn pass(&self, outputs: &mut Vec<ColumnId>) {
        for id in &self.taken.passed {
            if !outputs.contains(id) {
                outputs.push(*id);
            }
        }
    }

    /// Takes conditions that stand on the node.
    fn without(&mut self, node: Node, conditions: Vec<Expr>, by_key: bool) -> Node {
        let mut items = Vec::new();
        let mut passed = node.outputs.clone();
        for condition in conditions {
            match equality(&condition, self.local) {
                Some((left, right)) => {
                    let id = copy_of(self.columns, &right);
                    items.push(Projected { id, expr: right });
                    self.taken.keys.push(Equality { left, right: column(self.columns, id) });
                    self.taken.passed.push(id);
                }
                None => {
                    debug_assert!(!by_key, "checked before");
                    let needed = columns_of(&condition).filter(|id| !self.local.contains(id));
                    let needed: Vec<_> = needed.filter(|id| passed.contains(id)).collect();
                    self.taken.passed.extend(needed);
                    self.taken.conditions.push(condition);
                }
            }
        }
        if items.is_empty() {
            return node;
        }
        passed.retain(|id| !items.iter().any(|item| item.id == *id));
        node.projected(items, &passed)
    }

    /// The rows of a range of each key's rows.
    fn numbered(&mut self, input: Node, keys: &[SortKey], range: RowRange, outputs: &[ColumnId]) -> Node {
        let info = ColumnInfo {
            name: "".into(),
            ty: SqlType::BIGINT_UNSIGNED,
            nullable: false,
            origin: None,
            label: None,
        };
        let id = self.columns.add(info);
        let number = WindowFunction {
            id,
            kind: WindowKind::RowNumber,
            args: Vec::new(),
            partition_by: self.taken.keys.iter().map(|key| key.right.clone()).collect(),
            order_by: keys.iter().map(|key| (column(self.columns, key.column), key.descending)).collect(),
            frame: None,
        };
        let with_number = input.outputs.iter().copied().chain([id]).collect();
        let operator = Operator::Window { input: Box::new(input), functions: vec![number] };
        let number = column(self.columns, id);
        let compared = |op: CompareOp, count: u64| {
            let (left, right) = (
                Box::new(number.clone()),
                Box::new(Expr::literal(Datum::UInt(count), SqlType::BIGINT_UNSIGNED)),
            );
            Expr::truth(ExprKind::Compare { op, left, right }, false)
        };
        let mut conditions = vec![compared(CompareOp::Le, range.skip.saturating_add(range.fetch))];
        if range.skip > 0 {
            conditions.push(compared(CompareOp::Gt, range.skip));
        }
        Node::new(operator, with_number).filtered(conditions).with_outputs(outputs)
    }
}

/// A new column for an expression's values.
pub(super) fn copy_of(columns: &mut ColumnTable, expr: &Expr) -> ColumnId {
    let info =
        ColumnInfo { name: "".into(), ty: expr.ty, nullable: expr.nullable, origin: None, label: None };
    columns.add(info)
}
