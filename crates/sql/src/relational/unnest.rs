//! Subqueries as joins, where a join answers them as MySQL does.
//!
//! ```text
//!   WHERE EXISTS (… WHERE k = o.k)     semi join       conditions that use outer columns are pulled out of the
//!   WHERE NOT EXISTS (…)               anti join       subquery, and become the join's
//!   WHERE x IN (SELECT y …)            semi join, x = y
//!   WHERE x NOT IN (SELECT y …)        anti join; with NULLs about, one that knows of them
//!   WHERE a OR EXISTS (…)              mark join: a column tells whether there is a partner
//!   WHERE x > ANY (SELECT y … k = o.k) semi join, x > y; ALL: anti join with those for which that is not true
//!   (SELECT SUM(y) … WHERE k = o.k)    left join with the sums of all k; of no rows, what SUM gives of none
//!   (SELECT SUM(y) … WHERE k > o.k)    the same, after [`outer_values`]
//!   LATERAL (…), (SELECT … LIMIT 1)    joins as well: [`lateral`]
//! ```
//!
//! A join's truth value knows no NULL: it serves where NULL counts as false, in conditions, under AND (and OR, if there
//! can be none). Outer columns may stand in conditions that can be pulled up: through projections, inner joins and the left
//! sides of others; a subquery's order and DISTINCT mean nothing to a semi join. All else stays an [`Apply`].

use std::collections::{HashMap, HashSet};

use avocet_types::error::SqlError;
use avocet_types::expr::{CompareOp, Expr, ExprKind, IsTest, ValueClass};
use avocet_types::{Datum, SqlType, Value};

use super::build::{join, once};
use super::naming::column;
use super::placement::keys_among;
use super::tree::columns_of;
use super::{
    Apply, ApplyKind, Environment, Equality, JoinKind, Node, Operator, RowRange, lateral, outer_values,
};
use crate::plan::walk::{column_of, replace};
use crate::plan::{Aggregate, AggregateFunction, ColumnId, ColumnTable, Comparison, Projected};

/// Joins within joins cost more to plan for each level: of deeper subqueries none is made.
const MOST_NESTED: usize = 8;

/// So many subqueries of one query are joins at most: each join has the columns of all before it.
const MOST_JOINED: usize = 256;

pub(super) fn unnest(
    mut root: Node,
    columns: &mut ColumnTable,
    environment: Environment<'_>,
) -> Result<Node, SqlError> {
    let uses = Uses::of(&root);
    if (1..=MOST_JOINED).contains(&uses.applies.len()) {
        Unnester { columns, environment, uses }.rewrite(&mut root, 0)?;
    }
    Ok(root)
}

/// How often answers are used, and by how many nodes each is made: a plan that stands for several readers has them again.
#[derive(Default)]
struct Uses {
    applies: HashMap<ColumnId, usize>,
    mentions: HashMap<ColumnId, usize>,
}

impl Uses {
    fn of(root: &Node) -> Self {
        let mut uses = Self::default();
        root.for_each_node(&mut |node| {
            if let Operator::Apply(apply) = &node.operator {
                *uses.applies.entry(apply.id).or_default() += 1;
            }
        });
        let Self { applies, mentions } = &mut uses;
        if applies.is_empty() {
            return uses;
        }
        let mut note = |id: ColumnId| {
            if applies.contains_key(&id) {
                *mentions.entry(id).or_default() += 1;
            }
        };
        root.for_each_node(&mut |node| {
            node.for_each_expr(&mut |expr| {
                expr.any(&mut |part| {
                    column_of(part).into_iter().for_each(&mut note);
                    false
                });
            });
            if let Operator::Apply(apply) = &node.operator {
                apply.outer.iter().copied().for_each(&mut note);
            }
        });
        uses
    }

    /// In one place where the answer is made.
    fn mentions(&self, id: ColumnId) -> usize {
        self.mentions.get(&id).copied().unwrap_or(0) / self.applies.get(&id).copied().unwrap_or(1).max(1)
    }
}

struct Unnester<'u> {
    columns: &'u mut ColumnTable,
    environment: Environment<'u>,
    uses: Uses,
}

impl Unnester<'_> {
    /// Innermost subqueries first: what is a join within one is no longer in its way.
    fn rewrite(&mut self, node: &mut Node, depth: usize) -> Result<(), SqlError> {
        self.environment.checkpoint.check()?;
        match &mut node.operator {
            Operator::Apply(apply) => {
                self.rewrite(&mut apply.input, depth)?;
                self.rewrite(&mut apply.query, depth + 1)?;
                if depth < MOST_NESTED {
                    self.beside(node)?;
                }
            }
            Operator::Filter { input, .. } if matches!(input.operator, Operator::Apply(_)) => {
                // These are answered together, by what the conditions make of them.
                self.within(input, depth)?;
                if depth < MOST_NESTED {
                    self.conditions(node)?;
                }
            }
            _ => {
                for input in node.inputs_mut() {
                    self.rewrite(input, depth)?;
                }
            }
        }
        Ok(())
    }

    /// What is below a filter: subqueries one above the other, and their input.
    fn within(&mut self, node: &mut Node, depth: usize) -> Result<(), SqlError> {
        match &mut node.operator {
            Operator::Apply(apply) => {
                self.rewrite(&mut apply.query, depth + 1)?;
                self.within(&mut apply.input, depth)
            }
            _ => self.rewrite(node, depth),
        }
    }

    /// A filter above the subqueries whose answers it uses.
    fn conditions(&mut self, node: &mut Node) -> Result<(), SqlError> {
        let filter = std::mem::replace(node, Node::one_row());
        let outputs = filter.outputs;
        let Operator::Filter { input, mut conditions } = filter.operator else { return Ok(()) };
        let (mut base, mut applies) = (*input, Vec::new());
        while let Operator::Apply(apply) = base.operator {
            let mut apply = *apply;
            base = std::mem::replace(&mut apply.input, Node::one_row());
            applies.push(apply);
        }
        for mut apply in applies.into_iter().rev() {
            apply.input = base;
            base = self.condition(apply, &mut conditions)?;
        }
        *node = base.filtered(conditions).with_outputs(&outputs);
        Ok(())
    }

    /// A subquery below the conditions that use its answer: a join, if one serves.
    fn condition(&mut self, apply: Apply, conditions: &mut Vec<Expr>) -> Result<Node, SqlError> {
        let quantified = self.quantified(&apply, conditions);
        let joined = self.join_kind(&apply, conditions);
        let joined = joined.or(quantified.as_ref().map(|(kind, at, _)| (*kind, Some(*at))));
        // NOT IN of rows that each have some of their own.
        let unless_false = joined.is_none() && self.is_anti_join_with_nulls(&apply, conditions);
        let joined = match unless_false {
            false => joined,
            true => bare_at(conditions, apply.id).map(|(at, _)| (JoinKind::Anti { nulls: false }, Some(at))),
        };
        let Some((kind, at)) = joined else {
            let mut node = applied(apply);
            self.beside(&mut node)?;
            return Ok(node);
        };
        let local = local_columns(&apply);
        let correlated = !local.is_empty();
        if correlated && !can_pull(&apply.query, &local, true) {
            return Ok(applied(apply));
        }
        let Apply { kind: of, input, query, needles, id, .. } = apply;
        match (at, of) {
            (Some(at), _) => drop(conditions.remove(at)),
            (None, ApplyKind::Exists { negated: true } | ApplyKind::In { negated: true }) => {
                let mark = column(self.columns, id);
                for condition in conditions.iter_mut() {
                    replace(condition, &mut |part| {
                        let not = || Expr::truth(ExprKind::Not(Box::new(mark.clone())), false);
                        (column_of(part) == Some(id)).then(not)
                    });
                }
            }
            (None, _) => {}
        }
        let compared = query.outputs.clone();
        let (mut query, mut pulled, mut before) = (query, Vec::new(), Vec::new());
        if correlated {
            query = pull(query, &local, &mut pulled, &mut before);
        }
        let (left, right): (HashSet<_>, HashSet<_>) =
            (input.outputs.iter().copied().collect(), query.outputs.iter().copied().collect());
        let (mut keys, mut residual) = keys_among(pulled, &left, &right);
        let needles = needles.into_iter().zip(&compared);
        let equal = needles.map(|(left, id)| Equality { left, right: column(self.columns, *id) });
        let equal = match (quantified, unless_false) {
            (Some((.., test)), _) => {
                residual.push(test);
                Vec::new()
            }
            (None, false) => equal.collect(),
            (None, true) => {
                residual.push(is_not_false(equal.map(Equality::into_expr).collect()));
                Vec::new()
            }
        };
        // A needle that is the same for all rows is no key: it picks rows of the query.
        let (own, fixed): (Vec<_>, Vec<_>) = equal.into_iter().partition(|key| uses(&key.left, &left));
        keys.extend(own);
        query = query.filtered(fixed.into_iter().map(Equality::into_expr).collect());
        if keys.is_empty() && residual.is_empty() {
            let range = RowRange { skip: 0, fetch: 1 };
            let outputs = query.outputs.clone();
            query = Node::new(Operator::Limit { input: Box::new(query), range }, outputs);
        }
        let mut node = joined_by(kind, input, query, keys, residual);
        if let JoinKind::Mark(id) = kind {
            node.outputs.push(id);
        }
        Ok(before.into_iter().rev().fold(node, |node, (id, query)| once(id, query, node)))
    }

    /// Whether a condition is that a row is not in the rows of a subquery of its own, where NULLs may be about: an anti join by what
    /// leads to those rows, of which none may be equal or, for want of a value, perhaps equal.
    fn is_anti_join_with_nulls(&self, apply: &Apply, conditions: &[Expr]) -> bool {
        let ApplyKind::In { negated } = apply.kind else { return false };
        let here: usize = conditions.iter().map(|condition| mentions(condition, apply.id)).sum();
        let local = local_columns(apply);
        let mut by = Vec::new();
        correlated(&apply.query, &local, &mut by);
        here == 1
            && here == self.uses.mentions(apply.id)
            && bare_at(conditions, apply.id).is_some_and(|(_, inverted)| negated != inverted)
            && by.iter().any(|condition| equality(condition, &local).is_some())
            && !apply.needles.iter().any(Expr::is_volatile)
    }

    /// The join that answers `needle op ANY|ALL (SELECT …)` over rows that each outer row picks for itself, where it is a condition; the
    /// place of that, and what rows have to fulfil to be partners.
    fn quantified(&self, apply: &Apply, conditions: &[Expr]) -> Option<(JoinKind, usize, Expr)> {
        let ApplyKind::Quantified { op, all } = apply.kind else { return None };
        let here: usize = conditions.iter().map(|condition| mentions(condition, apply.id)).sum();
        let (at, inverted) = bare_at(conditions, apply.id)?;
        let [needle] = &apply.needles[..] else { return None };
        let value = column(self.columns, *apply.query.outputs.first()?);
        let serves = here == 1
            && here == self.uses.mentions(apply.id)
            && !local_columns(apply).is_empty()
            && uses(needle, &inputs_of(apply))
            && compares_by_keys(needle, &value)
            && needle.ty.collation() == value.ty.collation()
            && !needle.is_volatile();
        if !serves {
            return None;
        }
        let (left, right) = (Box::new(needle.clone()), Box::new(value));
        let nullable = left.nullable || right.nullable;
        let compared = Expr::truth(ExprKind::Compare { op: compare_op(op), left, right }, nullable);
        let is = |test: IsTest, negated: bool| {
            Expr::truth(ExprKind::Is { expr: Box::new(compared.clone()), test, negated }, false)
        };
        Some(match (all, inverted) {
            (false, false) => (JoinKind::Semi, at, compared),
            (true, true) => (JoinKind::Semi, at, is(IsTest::False, false)),
            (true, false) => (JoinKind::Anti { nulls: false }, at, is(IsTest::True, true)),
            (false, true) => (JoinKind::Anti { nulls: false }, at, is(IsTest::False, true)),
        })
    }

    /// The join that answers a subquery, and the place of the condition that it stands for.
    fn join_kind(&self, apply: &Apply, conditions: &[Expr]) -> Option<(JoinKind, Option<usize>)> {
        let id = apply.id;
        let here: usize = conditions.iter().map(|condition| mentions(condition, id)).sum();
        if here == 0 || here != self.uses.mentions(id) {
            return None;
        }
        let bare = bare_at(conditions, id).filter(|_| here == 1);
        let (at, inverted) = (bare.map(|(at, _)| at), bare.is_some_and(|(_, inverted)| inverted));
        let nullable = apply.needles.iter().any(|needle| needle.nullable)
            || apply.query.outputs.iter().any(|id| self.columns[*id].nullable);
        let is_comparable = apply.needles.iter().zip(&apply.query.outputs).all(|(needle, id)| {
            compares_by_keys(needle, &column(self.columns, *id)) && !needle.is_volatile()
        });
        let is_of_rows = || apply.needles.iter().all(|needle| uses(needle, &inputs_of(apply)));
        let (negated, exact) = match apply.kind {
            ApplyKind::Exists { negated } => (negated != inverted, true),
            ApplyKind::In { negated } if is_comparable => {
                let negated = negated != inverted;
                (negated, !nullable || (!negated && at.is_some()))
            }
            _ => return None,
        };
        match at {
            Some(_) if !negated => Some((JoinKind::Semi, at)),
            Some(_) if exact => Some((JoinKind::Anti { nulls: false }, at)),
            Some(_) if apply.needles.len() == 1 && local_columns(apply).is_empty() && is_of_rows() => {
                Some((JoinKind::Anti { nulls: true }, at))
            }
            Some(_) => None,
            None => {
                // Under OR a NULL from one side may be false as well, unless it is negated.
                let is_in = matches!(apply.kind, ApplyKind::In { negated: false });
                let serves = exact || is_in;
                let plain = conditions.iter().all(|condition| stands_plainly(condition, id));
                (serves && plain).then_some((JoinKind::Mark(id), None))
            }
        }
    }

    /// A subquery whose rows stand beside others: a join, if one serves.
    fn beside(&mut self, node: &mut Node) -> Result<(), SqlError> {
        if let Operator::Apply(apply) = &mut node.operator {
            outer_values::by_values(apply, self.columns, self.environment)?;
        }
        self.scalar(node);
        self.lateral(node)
    }

    /// A correlated scalar subquery that aggregates all its rows: a join with the aggregates of each group.
    fn scalar(&mut self, node: &mut Node) {
        let Operator::Apply(apply) = &node.operator else { return };
        if apply.kind != ApplyKind::Scalar {
            return;
        }
        let local = local_columns(apply);
        let Some(answer) = self.aggregated(apply, &local, apply.query.outputs[0]) else { return };
        let outputs = node.outputs.clone();
        let Operator::Apply(apply) = std::mem::replace(node, Node::one_row()).operator else { return };
        let Apply { input, query, id, .. } = *apply;
        let out = query.outputs[0];
        let (mut before, mut keys, mut residual) = (Vec::new(), Vec::new(), Vec::new());
        let mut right = self.group(query, &local, &mut keys, &mut residual, &mut before);
        let keys_passed: Vec<_> = keys.iter().flat_map(|key: &Equality| columns_of(&key.right)).collect();
        let value = column(self.columns, out);
        let Some(empty) = answer else {
            // No partner, and so NULL.
            right = right.projected(vec![Projected { id, expr: value }], &keys_passed);
            let joined = joined_by(JoinKind::Single, input, right, keys, residual);
            *node = before.into_iter().rev().fold(joined, |node, (id, query)| once(id, query, node));
            return;
        };
        let one = Expr::int(1);
        let marker = self.copy_of(&one);
        let passed = right.outputs.clone();
        right = right.projected(vec![Projected { id: marker, expr: one }], &passed);
        let value = where_partner(marker, value, empty);
        let passed = input.outputs.clone();
        let joined = joined_by(JoinKind::Single, input, right, keys, residual);
        let answered = joined.projected(vec![Projected { id, expr: value }], &passed).with_outputs(&outputs);
        *node = before.into_iter().rev().fold(answered, |node, (id, query)| once(id, query, node));
    }

    /// A LATERAL table: a join, if one serves.
    fn lateral(&mut self, node: &mut Node) -> Result<(), SqlError> {
        if !lateral::is_beside_many(node, self.environment)? || self.lateral_row(node) {
            return Ok(());
        }
        lateral::join_lateral(node, self.columns);
        Ok(())
    }

    /// A LATERAL table of one row that aggregates: as a scalar subquery, for several columns.
    fn lateral_row(&mut self, node: &mut Node) -> bool {
        let Operator::Apply(apply) = &node.operator else { return false };
        if !matches!(apply.kind, ApplyKind::Rows { .. }) {
            return false;
        }
        let local = local_columns(apply);
        let answers =
            apply.query.outputs.iter().map(|out| Some((*out, self.aggregated(apply, &local, *out)?)));
        let Some(answers) = answers.collect::<Option<Vec<_>>>() else { return false };
        let outputs = node.outputs.clone();
        let Operator::Apply(apply) = std::mem::replace(node, Node::one_row()).operator else { return false };
        let Apply { input, query, .. } = *apply;
        let (mut before, mut keys, mut residual) = (Vec::new(), Vec::new(), Vec::new());
        let right = self.group(query, &local, &mut keys, &mut residual, &mut before);
        let marker = self.copy_of(&Expr::int(1));
        let mut inner = vec![Projected { id: marker, expr: Expr::int(1) }];
        let mut passed: Vec<_> = keys.iter().flat_map(|key: &Equality| columns_of(&key.right)).collect();
        let mut above = Vec::new();
        let mut below = input.outputs.clone();
        for (out, empty) in answers {
            let Some(empty) = empty else {
                passed.push(out);
                below.push(out);
                continue;
            };
            let value = column(self.columns, out);
            let copy = self.copy_of(&value);
            inner.push(Projected { id: copy, expr: value });
            let expr = where_partner(marker, column(self.columns, copy), empty);
            above.push(Projected { id: out, expr });
        }
        let joined = joined_by(JoinKind::Single, input, right.projected(inner, &passed), keys, residual);
        let answered = joined.projected(above, &below).with_outputs(&outputs);
        *node = before.into_iter().rev().fold(answered, |node, (id, query)| once(id, query, node));
        true
    }

    /// A new column for an expression's values.
    fn copy_of(&mut self, expr: &Expr) -> ColumnId {
        lateral::copy_of(self.columns, expr)
    }

    /// Whether a subquery's column is made of the aggregate of rows that equalities with outer columns pick, and what it gives for no rows,
    /// if that is not NULL.
    fn aggregated(&self, apply: &Apply, local: &HashSet<ColumnId>, out: ColumnId) -> Option<Option<Expr>> {
        let mut value = column(self.columns, out);
        let mut node = &apply.query;
        let (input, aggregation) = loop {
            match &node.operator {
                Operator::Project { input, items } => {
                    replace(&mut value, &mut |part| {
                        let id = column_of(part)?;
                        Some(items.iter().find(|item| item.id == id)?.expr.clone())
                    });
                    node = input;
                }
                Operator::Once { query, input, .. } if !uses_any(query, local) => node = input,
                Operator::Aggregate { input, aggregation } => break (input, aggregation),
                _ => return None,
            }
        };
        let in_values = uses(&value, local)
            || aggregation.aggregates.iter().any(|aggregate| {
                let order = aggregate.order_by.iter().map(|(expr, _)| expr);
                aggregate.args.iter().chain(order).any(|expr| uses(expr, local))
            });
        if !aggregation.keys.is_empty() || in_values || local.is_empty() || !can_pull(input, local, false) {
            return None;
        }
        let mut pulled = Vec::new();
        correlated(input, local, &mut pulled);
        let picks = |condition: &&Expr| {
            let own = |id: &ColumnId| !local.contains(id) && !apply.outer.contains(id);
            !columns_of(condition).any(|id| own(&id)) || equality(condition, local).is_some()
        };
        if !pulled.iter().all(picks) {
            return None;
        }
        replace(&mut value, &mut |part| {
            let id = column_of(part)?;
            let of = aggregation.aggregates.iter().find(|aggregate| aggregate.id == id)?;
            Some(of_no_rows(of, self.columns))
        });
        let empty = value.fold_for_statement(&[] as &[Value], self.environment.context);
        Some(Some(empty).filter(|empty| !empty.is_null_literal()))
    }

    /// The query by groups of what its rows are picked by.
    fn group(
        &mut self,
        mut node: Node,
        local: &HashSet<ColumnId>,
        keys: &mut Vec<Equality>,
        residual: &mut Vec<Expr>,
        before: &mut Vec<(ColumnId, Node)>,
    ) -> Node {
        match node.operator {
            Operator::Once { id, query, input } => {
                before.push((id, *query));
                self.group(*input, local, keys, residual, before)
            }
            Operator::Project { input, items } => {
                let input = self.group(*input, local, keys, residual, before);
                node.outputs.extend(keys.iter().flat_map(|key| columns_of(&key.right)));
                Node::new(Operator::Project { input: Box::new(input), items }, node.outputs)
            }
            Operator::Aggregate { input, mut aggregation } => {
                let mut pulled = Vec::new();
                let input = Box::new(pull(*input, local, &mut pulled, before));
                for condition in pulled {
                    let Some((outer, inner)) = equality(&condition, local) else {
                        residual.push(condition);
                        continue;
                    };
                    let id = self.copy_of(&inner);
                    aggregation.keys.push(Projected { id, expr: inner });
                    keys.push(Equality { left: outer, right: column(self.columns, id) });
                    node.outputs.push(id);
                }
                Node::new(Operator::Aggregate { input, aggregation }, node.outputs)
            }
            operator => Node { operator, ..node },
        }
    }
}

/// Where a condition is an answer and nothing else, and whether it is its opposite.
fn bare_at(conditions: &[Expr], id: ColumnId) -> Option<(usize, bool)> {
    conditions.iter().enumerate().find_map(|(at, condition)| match &condition.kind {
        ExprKind::Not(inner) if column_of(inner) == Some(id) => Some((at, true)),
        _ => (column_of(condition) == Some(id)).then_some((at, false)),
    })
}

fn compare_op(op: Comparison) -> CompareOp {
    match op {
        Comparison::Eq => CompareOp::Eq,
        Comparison::Ne => CompareOp::Ne,
        Comparison::Lt => CompareOp::Lt,
        Comparison::Le => CompareOp::Le,
        Comparison::Gt => CompareOp::Gt,
        Comparison::Ge => CompareOp::Ge,
    }
}

/// Whether all equalities hold, or may for want of a value.
fn is_not_false(mut equal: Vec<Expr>) -> Expr {
    let all = match equal.len() {
        1 => equal.remove(0),
        _ => Expr::truth(ExprKind::And(equal), true),
    };
    Expr::truth(ExprKind::Is { expr: Box::new(all), test: IsTest::False, negated: true }, false)
}

/// The value where the marker shows that there is a partner.
fn where_partner(marker: ColumnId, value: Expr, empty: Expr) -> Expr {
    let marker = Expr::column(marker.index(), SqlType::BIGINT, true);
    let is_null = ExprKind::Is { expr: Box::new(marker), test: IsTest::Null, negated: false };
    let branches = vec![(Expr::truth(is_null, false), empty)];
    let (ty, otherwise) = (value.ty, Some(Box::new(Expr { nullable: true, ..value })));
    Expr::new(ExprKind::Case { branches, otherwise }, ty, true)
}

pub(super) fn joined_by(
    kind: JoinKind,
    left: Node,
    right: Node,
    keys: Vec<Equality>,
    residual: Vec<Expr>,
) -> Node {
    let mut node = join(kind, left, right, residual);
    if let Operator::Join(join) = &mut node.operator {
        join.keys = keys;
    }
    node
}

fn applied(apply: Apply) -> Node {
    let added = match apply.kind {
        ApplyKind::Rows { .. } => apply.query.outputs.clone(),
        _ => vec![apply.id],
    };
    let outputs = apply.input.outputs.iter().copied().chain(added).collect();
    Node::new(Operator::Apply(Box::new(apply)), outputs)
}

/// The outer columns that the block at hand provides. What comes from further out is constant for it.
pub(super) fn local_columns(apply: &Apply) -> HashSet<ColumnId> {
    let input = inputs_of(apply);
    apply.outer.iter().filter(|id| input.contains(id)).copied().collect()
}

fn inputs_of(apply: &Apply) -> HashSet<ColumnId> {
    apply.input.outputs.iter().copied().collect()
}

fn mentions(expr: &Expr, id: ColumnId) -> usize {
    let mut count = 0;
    expr.any(&mut |part| {
        count += usize::from(column_of(part) == Some(id));
        false
    });
    count
}

/// Whether the column stands only where NULL and false are the same.
fn stands_plainly(expr: &Expr, id: ColumnId) -> bool {
    match &expr.kind {
        ExprKind::Column(_) => true,
        ExprKind::And(parts) | ExprKind::Or(parts) => parts.iter().all(|part| stands_plainly(part, id)),
        _ => mentions(expr, id) == 0,
    }
}

pub(super) fn uses(expr: &Expr, columns: &HashSet<ColumnId>) -> bool {
    expr.any(&mut |part| column_of(part).is_some_and(|id| columns.contains(&id)))
}

pub(super) fn own_uses(node: &Node, columns: &HashSet<ColumnId>) -> bool {
    let mut found = false;
    node.for_each_expr(&mut |expr| found |= uses(expr, columns));
    if let Operator::Apply(apply) = &node.operator {
        found |= apply.outer.iter().any(|id| columns.contains(id));
    }
    found
}

pub(super) fn uses_any(node: &Node, columns: &HashSet<ColumnId>) -> bool {
    own_uses(node, columns) || node.inputs().into_iter().any(|input| uses_any(input, columns))
}

/// Whether all that uses the columns are conditions that may as well stand above the node. `once`: it does not matter how
/// often a row is there, nor in which order.
pub(super) fn can_pull(node: &Node, columns: &HashSet<ColumnId>, once: bool) -> bool {
    match &node.operator {
        Operator::Filter { input, .. } => can_pull(input, columns, once),
        _ if own_uses(node, columns) => false,
        Operator::Project { input, .. } => can_pull(input, columns, once),
        Operator::Distinct { input } | Operator::Sort { input, range: None, .. } if once => {
            can_pull(input, columns, once)
        }
        Operator::Join(join) if join.kind == JoinKind::Inner => {
            can_pull(&join.left, columns, once) && can_pull(&join.right, columns, once)
        }
        Operator::Join(join) => can_pull(&join.left, columns, once) && !uses_any(&join.right, columns),
        Operator::Once { query, input, .. } => can_pull(input, columns, once) && !uses_any(query, columns),
        _ => !uses_any(node, columns),
    }
}

/// The conditions that [`pull`] would take.
pub(super) fn correlated<'n>(node: &'n Node, columns: &HashSet<ColumnId>, found: &mut Vec<&'n Expr>) {
    if let Operator::Filter { conditions, .. } = &node.operator {
        found.extend(conditions.iter().filter(|condition| uses(condition, columns)));
    }
    node.inputs().into_iter().for_each(|input| correlated(input, columns, found));
}

/// The node without the conditions that use the columns, and with the columns that these use besides. What is evaluated before
/// it is apart, too.
pub(super) fn pull(
    mut node: Node,
    columns: &HashSet<ColumnId>,
    pulled: &mut Vec<Expr>,
    before: &mut Vec<(ColumnId, Node)>,
) -> Node {
    match node.operator {
        Operator::Filter { input, conditions } => {
            let input = pull(*input, columns, pulled, before);
            let (own, kept): (Vec<_>, Vec<_>) =
                conditions.into_iter().partition(|condition| uses(condition, columns));
            pulled.extend(own);
            return input.filtered(kept);
        }
        // Without a condition to take, rows stay as often there as they are.
        Operator::Distinct { ref input } | Operator::Sort { ref input, range: None, .. }
            if !uses_any(input, columns) =>
        {
            return node;
        }
        // Of a semi join's right side the order and equal rows mean nothing.
        Operator::Distinct { input } | Operator::Sort { input, range: None, .. } => {
            return pull(*input, columns, pulled, before);
        }
        Operator::Once { id, query, input } => {
            before.push((id, *query));
            return pull(*input, columns, pulled, before);
        }
        Operator::Project { input, items } => {
            let input = Box::new(pull(*input, columns, pulled, before));
            node.operator = Operator::Project { input, items };
        }
        Operator::Join(mut join) => {
            join.left = pull(join.left, columns, pulled, before);
            if join.kind == JoinKind::Inner {
                join.right = pull(join.right, columns, pulled, before);
            }
            node.operator = Operator::Join(join);
        }
        _ => return node,
    }
    let needed: Vec<_> = pulled.iter().flat_map(columns_of).collect();
    let given: Vec<_> = match &node.operator {
        Operator::Join(join) if !join.kind.gives_right() => join.left.outputs.clone(),
        _ => node.inputs().iter().flat_map(|input| input.outputs.iter().copied()).collect(),
    };
    for id in needed {
        if given.contains(&id) && !node.outputs.contains(&id) {
            node.outputs.push(id);
        }
    }
    node
}

/// An equality of something that is made of the columns alone, which comes first, and something that uses none of them.
/// Values that are equal fall into one group.
pub(super) fn equality(condition: &Expr, columns: &HashSet<ColumnId>) -> Option<(Expr, Expr)> {
    let ExprKind::Compare { op: CompareOp::Eq, left, right } = &condition.kind else { return None };
    let outer = |expr: &Expr| !expr.is_constant() && columns_of(expr).all(|id| columns.contains(&id));
    let inner = |expr: &Expr| columns_of(expr).next().is_some() && !uses(expr, columns);
    let (outer, inner) = match (outer(left) && inner(right), outer(right) && inner(left)) {
        (true, _) => (left, right),
        (_, true) => (right, left),
        _ => return None,
    };
    let class = ValueClass::of(&outer.ty);
    let groups = class == ValueClass::of(&inner.ty)
        && !matches!(class, ValueClass::Double | ValueClass::Null)
        && outer.ty.collation() == inner.ty.collation()
        && !inner.is_volatile();
    groups.then(|| (Expr::clone(outer), Expr::clone(inner)))
}

/// Whether there are keys that are equal exactly if the two are.
fn compares_by_keys(left: &Expr, right: &Expr) -> bool {
    let (a, b) = (ValueClass::of(&left.ty), ValueClass::of(&right.ty));
    a == b && a != ValueClass::Null
}

/// What an aggregate gives for no rows.
fn of_no_rows(aggregate: &Aggregate, columns: &ColumnTable) -> Expr {
    use AggregateFunction as F;
    let value = match aggregate.function {
        F::Count => Datum::Int(0),
        F::BitAnd => Datum::UInt(u64::MAX),
        F::BitOr | F::BitXor => Datum::UInt(0),
        _ => Datum::Null,
    };
    Expr::literal(value, columns[aggregate.id].ty)
}
