//! Predicates at the place where they drop rows first, and inner joins in an order that keeps intermediate results small.
//!
//! Inner joins, filters and semi joins that stand on each other are one *group*: relations, and conjuncts about them. A
//! conjunct over one relation goes into it, as far down as it means the same; equalities between relations become the
//! keys of joins; the order of the joins comes from estimated sizes (`estimate`, `order`). A semi join goes to the relation that it
//! is about if it keeps few rows of it, and comes after the joins otherwise. Everything else is estimated on the way.

use std::collections::HashSet;

use avocet_types::SqlType;
use avocet_types::error::SqlError;
use avocet_types::expr::{CompareOp, Expr, ExprKind};

use super::build::{join, once};
use super::estimate::{Estimate, UNKNOWN_ROWS};
use super::order::{Condition, JoinGraph, Key, Size, Tree};
use super::tree::columns_of;
use super::{Cardinality, Environment, Equality, Join, JoinKind, Node, Operator, RowRange, RowsFrom, Scan};
use crate::parse::ast::SetOperator;
use crate::plan::walk::{column_of, replace};
use crate::plan::{ColumnId, CteId, Projected};

/// Of groups that nothing is known of, there is one for so many rows.
const ROWS_PER_GROUP: f64 = 10.0;
/// What conditions keep that are tested after all joins.
const LATE_SHARE: f64 = 0.5;
/// A recursion gives so many times its seed's rows.
const ROUNDS: f64 = 10.0;

pub(super) fn place(root: Node, environment: Environment<'_>) -> Result<Node, SqlError> {
    Placer { environment, shared: Vec::new() }.node(root)
}

struct Placer<'e> {
    environment: Environment<'e>,
    /// What is evaluated once, or in the round before, with its rows.
    shared: Vec<(CteId, Cardinality)>,
}

/// What stands on each other as joins and filters.
#[derive(Default)]
struct Group {
    parts: Vec<Node>,
    conjuncts: Vec<Expr>,
    /// Without their left sides.
    semis: Vec<SemiJoin>,
    /// What is evaluated before all of it.
    before: Vec<(ColumnId, Node)>,
}

struct SemiJoin {
    kind: JoinKind,
    right: Node,
    keys: Vec<Equality>,
    residual: Vec<Expr>,
}

struct Relation {
    node: Node,
    columns: HashSet<ColumnId>,
    estimate: Estimate,
}

impl Placer<'_> {
    fn node(&mut self, mut node: Node) -> Result<Node, SqlError> {
        self.environment.checkpoint.check()?;
        match &node.operator {
            Operator::Filter { .. } | Operator::Once { .. } | Operator::Scan(_) => return self.group(node),
            Operator::Join(join) if in_group(join.kind) => return self.group(node),
            _ => {}
        }
        match &mut node.operator {
            Operator::Join(join) => {
                push_to_right(join);
                self.in_place(&mut join.left)?;
                self.in_place(&mut join.right)?;
            }
            Operator::With { cte, body, input, .. } => {
                self.in_place(body)?;
                self.shared.push((*cte, body.rows));
                self.in_place(input)?;
            }
            Operator::Recursive(recursive) => {
                self.in_place(&mut recursive.seed)?;
                self.shared.push((recursive.cte, recursive.seed.rows));
                self.in_place(&mut recursive.step)?;
            }
            _ => {
                for input in node.inputs_mut() {
                    self.in_place(input)?;
                }
            }
        }
        node.rows = self.cardinality(&node);
        Ok(node)
    }

    fn in_place(&mut self, node: &mut Node) -> Result<(), SqlError> {
        let taken = std::mem::replace(node, Node::one_row());
        *node = self.node(taken)?;
        Ok(())
    }

    /// The rows of a node whose inputs are estimated; groups come with theirs.
    fn cardinality(&self, node: &Node) -> Cardinality {
        let stated = |rows: f64| Cardinality::new(rows, RowsFrom::Statement);
        match &node.operator {
            Operator::OneRow => stated(1.0),
            Operator::Values(rows) => stated(rows.len() as f64),
            Operator::Aggregate { aggregation, .. } if aggregation.keys.is_empty() => stated(1.0),
            Operator::Aggregate { input, .. } => input.rows.by_rule(1.0 / ROWS_PER_GROUP),
            Operator::Filter { input, .. }
            | Operator::Project { input, .. }
            | Operator::Distinct { input }
            | Operator::Window { input, .. }
            | Operator::Once { input, .. }
            | Operator::With { input, .. } => input.rows,
            Operator::Sort { input, range, .. } => limited(input.rows, *range),
            Operator::Limit { input, range } => limited(input.rows, Some(*range)),
            Operator::Join(join) => match join.kind {
                JoinKind::Single => join.left.rows,
                JoinKind::Left => {
                    let source = join.left.rows.source.max(join.right.rows.source);
                    Cardinality::new(join.left.rows.rows.max(join.right.rows.rows), source)
                }
                _ => join.left.rows,
            },
            Operator::SetOperation(set) => {
                let rows = set.inputs.iter().map(|input| input.rows);
                let sum = |a: Cardinality, b: Cardinality| {
                    Cardinality::new(a.rows + b.rows, a.source.max(b.source))
                };
                match set.op {
                    SetOperator::Union => rows.reduce(sum).unwrap_or(Cardinality::UNKNOWN),
                    _ => set.inputs[0].rows,
                }
            }
            Operator::Apply(apply) => match apply.kind {
                super::ApplyKind::Rows { .. } => {
                    let rows = apply.input.rows.rows * apply.query.rows.rows;
                    Cardinality::new(rows, RowsFrom::Rule)
                }
                _ => apply.input.rows,
            },
            Operator::Recursive(recursive) => {
                let range = recursive.range;
                limited(recursive.seed.rows.by_rule(ROUNDS), range)
            }
            Operator::Shared { cte, .. } | Operator::WorkTable { cte, .. } => {
                let known = self.shared.iter().rev().find(|(id, _)| id == cte);
                known.map_or(Cardinality::new(UNKNOWN_ROWS, RowsFrom::Rule), |(_, rows)| *rows)
            }
            Operator::JsonTable { .. } => Cardinality::new(UNKNOWN_ROWS, RowsFrom::Rule),
            Operator::Scan(_) => Cardinality::new(UNKNOWN_ROWS, RowsFrom::Rule),
        }
    }

    fn group(&mut self, node: Node) -> Result<Node, SqlError> {
        let outputs = node.outputs.clone();
        let mut group = Group::default();
        flatten(node, &mut group);
        let (mut relations, mut graph, mut late) = (Vec::new(), JoinGraph::default(), Vec::new());
        let columns: Vec<HashSet<_>> =
            group.parts.iter().map(|part| part.outputs.iter().copied().collect()).collect();
        let (mut of_one, of_several) = split(group.conjuncts, &columns, &mut late);
        for (conjunct, needed) in &of_several {
            for (at, columns) in columns.iter().enumerate().filter(|(at, _)| needed >> at & 1 == 1) {
                of_one[at].extend(implied(conjunct, columns));
            }
        }
        for ((part, columns), conjuncts) in group.parts.into_iter().zip(columns).zip(of_one) {
            relations.push(self.relation(part, columns, conjuncts)?);
        }
        for (at, (conjunct, needed)) in of_several.into_iter().enumerate() {
            self.environment.checkpoint.check()?;
            match equality_sides(&conjunct, &relations).filter(|_| at < MOST_EQUALITIES) {
                Some((left, right)) => graph.add_equality(conjunct, left, right, same_domain),
                None => graph.conditions.push(Condition { expr: conjunct, relations: needed }),
            }
        }
        let mut semis = Vec::with_capacity(group.semis.len());
        for mut semi in group.semis {
            self.in_place(&mut semi.right)?;
            semis.extend(reduce(semi, &mut relations));
        }
        let shares = semis.iter().map(|semi| kept_share(semi, &relations)).collect::<Vec<_>>();
        for relation in &relations {
            let Estimate { rows, all_rows, .. } = relation.estimate;
            graph.sizes.push(Size { rows, all_rows });
        }
        let mut node = join_all(relations, &graph);
        node = self.after_joins(node, late, semis.into_iter().zip(shares));
        // In which order they come does not matter.
        if node.outputs.len() != outputs.len() {
            node = node.with_outputs(&outputs);
        }
        for (id, mut query) in group.before.into_iter().rev() {
            self.in_place(&mut query)?;
            node = once(id, query, node);
        }
        Ok(node)
    }

    /// A part of a group with the conjuncts that are about it alone.
    fn relation(
        &mut self,
        part: Node,
        columns: HashSet<ColumnId>,
        conjuncts: Vec<Expr>,
    ) -> Result<Relation, SqlError> {
        if let Operator::Scan(scan) = part.operator {
            let mut scan = scan;
            scan.statistics = self.environment.statistics.statistics(&scan.table.table);
            let mut estimate = self.scanned(&scan);
            conjuncts.iter().for_each(|condition| estimate.filter(condition));
            scan.predicates.extend(conjuncts);
            scan.rows = estimate.all_rows;
            let rows = Cardinality::new(estimate.rows, estimate.source);
            let node = Node { rows, ..Node::new(Operator::Scan(scan), part.outputs) };
            return Ok(Relation { node, columns, estimate });
        }
        let mut part = part;
        let mut filters = Vec::new();
        for conjunct in conjuncts {
            filters.extend(push(&mut part, conjunct));
        }
        let mut node = self.node(part)?;
        let mut estimate = Estimate::of_part(node.rows);
        filters.iter().for_each(|condition| estimate.filter(condition));
        node = node.filtered(filters);
        node.rows = Cardinality::new(estimate.rows, estimate.source);
        Ok(Relation { node, columns, estimate })
    }

    fn scanned(&self, scan: &Scan) -> Estimate {
        let known = &scan.statistics;
        let rows = known.as_ref().map(|known| known.rows.max(1) as f64);
        let distinct = |position: usize| known.as_ref()?.columns.get(position)?.distinct;
        let sample = self.environment.statistics.sample(&scan.table.table);
        Estimate::of_table(&scan.table, rows, distinct, sample, self.environment.context)
    }

    /// What comes after the joins: conditions, then semi joins.
    fn after_joins(
        &self,
        mut node: Node,
        late: Vec<Expr>,
        semis: impl Iterator<Item = (SemiJoin, f64)>,
    ) -> Node {
        if !late.is_empty() {
            let rows = node.rows.by_rule(LATE_SHARE.powi(late.len() as i32));
            node = node.filtered(late);
            node.rows = rows;
        }
        for (semi, share) in semis {
            let rows = node.rows.by_rule(share);
            node = semi.over(node);
            node.rows = rows;
        }
        node
    }
}

/// Of longer ORs over several relations nothing is looked for that they say of one.
const MOST_ALTERNATIVES: usize = 64;

/// So many equalities decide on the order of joins: each is compared with all before it.
const MOST_EQUALITIES: usize = 256;

impl SemiJoin {
    fn over(self, left: Node) -> Node {
        let mut node = join(self.kind, left, self.right, self.residual);
        if let Operator::Join(join) = &mut node.operator {
            join.keys = self.keys;
        }
        node
    }
}

fn in_group(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Inner | JoinKind::Semi | JoinKind::Anti { .. })
}

fn limited(rows: Cardinality, range: Option<RowRange>) -> Cardinality {
    match range {
        Some(range) if (range.fetch as f64) < rows.rows => {
            Cardinality::new(range.fetch as f64, RowsFrom::Statement)
        }
        _ => rows,
    }
}

fn flatten(node: Node, group: &mut Group) {
    match node.operator {
        Operator::Filter { input, conditions } => {
            flatten(*input, group);
            group.conjuncts.extend(conditions);
        }
        Operator::Once { id, query, input } => {
            group.before.push((id, *query));
            flatten(*input, group);
        }
        Operator::Join(joined) if in_group(joined.kind) => {
            let Join { kind, left, right, keys, residual } = *joined;
            flatten(left, group);
            if kind == JoinKind::Inner {
                flatten(right, group);
                group.conjuncts.extend(keys.into_iter().map(Equality::into_expr));
                group.conjuncts.extend(residual);
            } else {
                group.semis.push(SemiJoin { kind, right, keys, residual });
            }
        }
        operator => group.parts.push(Node { operator, ..node }),
    }
}

impl Equality {
    pub fn into_expr(self) -> Expr {
        let nullable = self.left.nullable || self.right.nullable;
        let (left, right) = (Box::new(self.left), Box::new(self.right));
        Expr::truth(ExprKind::Compare { op: CompareOp::Eq, left, right }, nullable)
    }
}

/// Conjuncts by the relations that they need: each relation's own, and those between some; `late` are the others.
fn split(
    conjuncts: Vec<Expr>,
    columns: &[HashSet<ColumnId>],
    late: &mut Vec<Expr>,
) -> (Vec<Vec<Expr>>, Vec<(Expr, u64)>) {
    let (mut of_one, mut of_several) = (vec![Vec::new(); columns.len()], Vec::new());
    for conjunct in conjuncts {
        let mut needed = 0u64;
        // What no relation has is constant here: it comes from outside, or was evaluated before.
        for id in columns_of(&conjunct) {
            if let Some(relation) = columns.iter().position(|columns| columns.contains(&id)) {
                needed |= 1u64.checked_shl(relation as u32).unwrap_or(0);
            }
        }
        match needed.count_ones() {
            _ if columns.len() > 64 || conjunct.is_volatile() => late.push(conjunct),
            0 => late.push(conjunct),
            1 => of_one[needed.trailing_zeros() as usize].push(conjunct),
            _ => of_several.push((conjunct, needed)),
        }
    }
    (of_one, of_several)
}

/// What an OR over several relations says of one alone, if each alternative says something.
fn implied(condition: &Expr, columns: &HashSet<ColumnId>) -> Option<Expr> {
    let ExprKind::Or(alternatives) = &condition.kind else { return None };
    if alternatives.len() > MOST_ALTERNATIVES {
        return None;
    }
    let of_relation = |alternative: &Expr| {
        let mut own = alternative.clone().into_conjuncts();
        own.retain(|part| {
            let mut used = columns_of(part).peekable();
            used.peek().is_some() && used.all(|id| columns.contains(&id))
        });
        match own.len() {
            0 | 1 => own.pop(),
            _ => Some(Expr { kind: ExprKind::And(own), ..alternative.clone() }),
        }
    };
    let alternatives = alternatives.iter().map(of_relation).collect::<Option<Vec<_>>>()?;
    Some(Expr { kind: ExprKind::Or(alternatives), ..condition.clone() })
}

/// Puts a condition into a node, below whatever it may stand below; gives it back if that is the node itself.
fn push(node: &mut Node, condition: Expr) -> Option<Expr> {
    match &mut node.operator {
        Operator::Project { input, items } => {
            let is_plain = |item: &&Projected| !item.expr.is_volatile();
            let used: HashSet<_> = columns_of(&condition).collect();
            if !items.iter().filter(|item| used.contains(&item.id)).all(|item| is_plain(&item)) {
                return Some(condition);
            }
            let mut below = condition;
            replace(&mut below, &mut |part| {
                let id = column_of(part)?;
                Some(items.iter().find(|item| item.id == id)?.expr.clone())
            });
            place_on(input, below);
            None
        }
        Operator::Join(join) if matches!(join.kind, JoinKind::Left | JoinKind::Single) => {
            let left: HashSet<_> = join.left.outputs.iter().copied().collect();
            let right: HashSet<_> = join.right.outputs.iter().copied().collect();
            let mut used = columns_of(&condition).peekable();
            let of_left = used.peek().is_some() && used.all(|id| !right.contains(&id));
            if !of_left || !columns_of(&condition).any(|id| left.contains(&id)) {
                return Some(condition);
            }
            place_on(&mut join.left, condition);
            None
        }
        Operator::Sort { input, range: None, .. } | Operator::Distinct { input } => {
            place_on(input, condition);
            None
        }
        _ => Some(condition),
    }
}

/// Puts a condition into a node, or above it.
fn place_on(node: &mut Node, condition: Expr) {
    if let Operator::Filter { conditions, .. } = &mut node.operator {
        conditions.push(condition);
        return;
    }
    if let Some(condition) = push(node, condition) {
        let taken = std::mem::replace(node, Node::one_row());
        *node = taken.filtered(vec![condition]);
    }
}

/// Conditions of an outer join over its right side alone decide which rows of that side there are.
fn push_to_right(join: &mut Join) {
    if !matches!(join.kind, JoinKind::Left | JoinKind::Single) {
        return;
    }
    let right: HashSet<_> = join.right.outputs.iter().copied().collect();
    let of_right = |condition: &Expr| {
        let mut columns = columns_of(condition).peekable();
        columns.peek().is_some() && columns.all(|id| right.contains(&id)) && !condition.is_volatile()
    };
    let (own, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut join.residual).into_iter().partition(of_right);
    join.residual = kept;
    own.into_iter().for_each(|condition| place_on(&mut join.right, condition));
    let left: HashSet<_> = join.left.outputs.iter().copied().collect();
    let (keys, kept) = keys_among(std::mem::take(&mut join.residual), &left, &right);
    join.keys.extend(keys);
    join.residual = kept;
}

/// Equalities of two sides, and the other conditions.
pub(super) fn keys_among(
    conditions: Vec<Expr>,
    left: &HashSet<ColumnId>,
    right: &HashSet<ColumnId>,
) -> (Vec<Equality>, Vec<Expr>) {
    let (mut keys, mut others) = (Vec::new(), Vec::new());
    for condition in conditions {
        match key_of(&condition, left, right) {
            Some(key) => keys.push(key),
            None => others.push(condition),
        }
    }
    (keys, others)
}

fn key_of(condition: &Expr, left: &HashSet<ColumnId>, right: &HashSet<ColumnId>) -> Option<Equality> {
    let ExprKind::Compare { op: CompareOp::Eq, left: a, right: b } = &condition.kind else { return None };
    let side = |expr: &Expr, of: &HashSet<ColumnId>| {
        let mut columns = columns_of(expr).peekable();
        columns.peek().is_some() && columns.all(|id| of.contains(&id))
    };
    let (a, b) = match (side(a, left) && side(b, right), side(b, left) && side(a, right)) {
        (true, _) => (a, b),
        (_, true) => (b, a),
        _ => return None,
    };
    Some(Equality { left: Expr::clone(a), right: Expr::clone(b) })
}

/// Puts a semi join on the one relation that it is about, if there are few rows to be kept; gives it back otherwise.
fn reduce(semi: SemiJoin, relations: &mut [Relation]) -> Option<SemiJoin> {
    if relations.len() < 2 || semi.kind != JoinKind::Semi || semi.keys.is_empty() {
        return Some(semi);
    }
    let right: HashSet<_> = semi.right.outputs.iter().copied().collect();
    let exprs = semi.keys.iter().map(|key| &key.left).chain(&semi.residual);
    let ids: HashSet<_> = exprs.flat_map(columns_of).filter(|id| !right.contains(id)).collect();
    let mut about =
        (0..relations.len()).filter(|at| relations[*at].columns.iter().any(|id| ids.contains(id)));
    let (Some(at), None) = (about.next(), about.next()) else { return Some(semi) };
    let relation = &mut relations[at];
    let values = relation.estimate.distinct(&semi.keys[0].left);
    let share = (semi.right.rows.rows / values).min(1.0);
    if semi.right.rows.rows > relation.estimate.rows * LATE_SHARE || share > LATE_SHARE {
        return Some(semi);
    }
    relation.estimate.reduce(share);
    let rows = Cardinality::new(relation.estimate.rows, RowsFrom::Rule);
    let node = std::mem::replace(&mut relation.node, Node::one_row());
    relation.node = Node { rows, ..semi.over(node) };
    None
}

/// The part of the rows that a semi join or an anti join after the joins keeps, about.
fn kept_share(semi: &SemiJoin, relations: &[Relation]) -> f64 {
    let Some(key) = semi.keys.first().filter(|_| semi.kind == JoinKind::Semi) else { return LATE_SHARE };
    let ids: HashSet<_> = columns_of(&key.left).collect();
    let of = relations.iter().find(|relation| ids.iter().all(|id| relation.columns.contains(id)));
    let Some(of) = of.filter(|_| !ids.is_empty()) else { return LATE_SHARE };
    (semi.right.rows.rows / of.estimate.distinct(&key.left)).min(LATE_SHARE)
}

fn join_all(relations: Vec<Relation>, graph: &JoinGraph) -> Node {
    let tree = graph.order();
    let mut source = relations.iter().map(|r| r.estimate.source).max().unwrap_or(RowsFrom::Statement);
    if !graph.conditions.is_empty() || graph.classes.iter().any(|class| class.keys.len() > 2) {
        source = RowsFrom::Rule;
    }
    let nodes = relations.into_iter().map(|relation| Some(relation.node)).collect();
    let used = vec![false; graph.conditions.len()];
    let mut joins = Joins { nodes, graph, used, source };
    joins.build(&tree).0
}

struct Joins<'g> {
    nodes: Vec<Option<Node>>,
    graph: &'g JoinGraph,
    /// Of the graph's conditions, those that stand in a join.
    used: Vec<bool>,
    source: RowsFrom,
}

impl Joins<'_> {
    /// The joins of a tree, and which relations they are of.
    fn build(&mut self, tree: &Tree) -> (Node, u64) {
        let (left, right) = match tree {
            Tree::Leaf(relation) => {
                let node = self.nodes.get_mut(*relation).and_then(Option::take);
                return (node.unwrap_or_else(Node::one_row), 1u64.checked_shl(*relation as u32).unwrap_or(0));
            }
            Tree::Join(left, right) => (left, right),
        };
        let ((mut left, mut left_set), (mut right, mut right_set)) = (self.build(left), self.build(right));
        // A hash table is built of the left side.
        if self.graph.cardinality(right_set) < self.graph.cardinality(left_set) {
            std::mem::swap(&mut left, &mut right);
            std::mem::swap(&mut left_set, &mut right_set);
        }
        let set = left_set | right_set;
        let equalities = self.graph.classes.iter().filter_map(|class| class.equality(left_set, right_set));
        let mut conditions: Vec<_> = equalities.collect();
        for (condition, used) in self.graph.conditions.iter().zip(&mut self.used) {
            if !*used && condition.relations & !set == 0 {
                *used = true;
                conditions.push(condition.expr.clone());
            }
        }
        let of_left: HashSet<_> = left.outputs.iter().copied().collect();
        let of_right: HashSet<_> = right.outputs.iter().copied().collect();
        let (keys, residual) = keys_among(conditions, &of_left, &of_right);
        let mut node = join(JoinKind::Inner, left, right, residual);
        if let Operator::Join(join) = &mut node.operator {
            join.keys = keys;
        }
        node.rows = Cardinality::new(self.graph.cardinality(set), self.source);
        (node, set)
    }
}

/// For an equality of two relations: its sides.
fn equality_sides(expr: &Expr, relations: &[Relation]) -> Option<(Key, Key)> {
    let ExprKind::Compare { op: CompareOp::Eq, left, right } = &expr.kind else { return None };
    let side = |expr: &Expr| {
        let first = columns_of(expr).next()?;
        let relation = relations.iter().position(|r| r.columns.contains(&first))?;
        let all = columns_of(expr).all(|id| relations[relation].columns.contains(&id));
        let distinct = || relations[relation].estimate.distinct(expr);
        all.then(|| Key { relation, distinct: distinct(), expr: expr.clone() })
    };
    let (left, right) = (side(left)?, side(right)?);
    (left.relation != right.relation).then_some((left, right))
}

/// Whether values of the two compare the same way with any third: only then is equality transitive among them.
fn same_domain(a: &Expr, b: &Expr) -> bool {
    let integer = |ty: &SqlType| ty.is_integer();
    a.ty == b.ty || integer(&a.ty) && integer(&b.ty)
}
