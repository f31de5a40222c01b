//! FROM and WHERE: inner joins in an order that keeps intermediate results small.
//!
//! DataFusion keeps the order of FROM. We flatten inner joins and the conjuncts of ON and WHERE, estimate sizes from the
//! tables' statistics, and find the tree of joins with the least sum of intermediate sizes: exactly (over connected
//! subsets) for up to [`EXACT_LIMIT`] relations, greedily beyond.

use std::collections::HashSet;

use avocet_types::expr::{CompareOp, Expr, ExprKind};
use datafusion::logical_expr::{JoinType, LogicalPlan, LogicalPlanBuilder};

use crate::bind::TableStatistics;
use crate::df::lower::{Lowerer, df_result};
use crate::error::SqlError;
use crate::plan::*;

const EXACT_LIMIT: usize = 10;
const UNKNOWN_ROWS: f64 = 1e4;

struct Relation {
    plan: LogicalPlan,
    columns: HashSet<ColumnId>,
    /// Before and after its own filters.
    all_rows: f64,
    rows: f64,
    distinct: Vec<(ColumnId, f64)>,
    /// Conjuncts over this relation alone.
    filters: Vec<Expr>,
}

/// A conjunct over several relations.
struct Link {
    expr: Expr,
    /// Bit set of the relations that it needs.
    relations: u64,
    /// For `a = b` of two relations: the columns, if they are plain.
    sides: Option<(usize, f64, usize, f64)>,
    selectivity: f64,
}

/// A join tree over relation numbers.
#[derive(Clone)]
enum Tree {
    Leaf(usize),
    Join(Box<Tree>, Box<Tree>),
}

#[derive(Clone)]
struct Best {
    cost: f64,
    tree: Tree,
}

impl Lowerer<'_> {
    /// The rows of FROM for which WHERE holds.
    pub(super) fn filtered_from(
        &mut self,
        from: &From,
        filter: Option<&Expr>,
    ) -> Result<LogicalPlan, SqlError> {
        let (mut parts, mut conjuncts) = (Vec::new(), Vec::new());
        flatten(from, &mut parts, &mut conjuncts);
        conjuncts.extend(filter.cloned());
        let conjuncts: Vec<_> = conjuncts
            .iter()
            .flat_map(|c| self.prepare(c).into_conjuncts())
            .flat_map(common_factors)
            .collect();
        let mut relations = Vec::with_capacity(parts.len());
        for part in parts {
            relations.push(self.sized_relation(part)?);
        }
        let mut links = Vec::new();
        let mut late = Vec::new();
        for conjunct in conjuncts {
            self.place(conjunct, &mut relations, &mut links, &mut late);
        }
        for relation in &mut relations {
            let plan = std::mem::take(&mut relation.plan);
            relation.plan = self.filter(plan, &relation.filters)?;
        }
        let plan = self.join_all(relations, links)?;
        self.filter(plan, &late)
    }

    fn sized_relation(&mut self, part: &From) -> Result<Relation, SqlError> {
        let plan = self.relation(part)?;
        let mut columns = HashSet::new();
        produced(part, &mut columns);
        let statistics = match part {
            From::Table(scan) => self.source.statistics(&scan.table),
            _ => None,
        };
        let all_rows = match (&statistics, part) {
            (Some(statistics), _) => statistics.rows.max(1) as f64,
            (None, From::Dual) => 1.0,
            (None, _) => UNKNOWN_ROWS,
        };
        let distinct = match part {
            From::Table(scan) => distinct_counts(scan, statistics.as_deref(), all_rows),
            _ => Vec::new(),
        };
        Ok(Relation { plan, columns, all_rows, rows: all_rows, distinct, filters: Vec::new() })
    }

    /// Puts a conjunct where it belongs: on a relation, between relations, or after all joins.
    fn place(&self, conjunct: Expr, relations: &mut [Relation], links: &mut Vec<Link>, late: &mut Vec<Expr>) {
        let ids: Vec<_> = conjunct.columns().into_iter().map(|c| ColumnId(c as u32)).collect();
        let mut needed = 0u64;
        let mut elsewhere = relations.len() > 64;
        for id in &ids {
            match relations.iter().position(|r| r.columns.contains(id)) {
                Some(relation) if relation < 64 => needed |= 1 << relation,
                // A subquery's answer, or a column of an enclosing block.
                _ => elsewhere |= !self.is_outer(*id),
            }
        }
        if elsewhere || conjunct.is_volatile() {
            late.push(conjunct);
            return;
        }
        if needed.count_ones() == 1 {
            let relation = &mut relations[needed.trailing_zeros() as usize];
            relation.rows = (relation.rows * selectivity(&conjunct, relation)).max(1.0);
            relation.filters.push(conjunct);
            return;
        }
        if needed == 0 {
            late.push(conjunct);
            return;
        }
        let sides = equality_sides(&conjunct, relations);
        let selectivity = if sides.is_some() { 1.0 } else { 0.3 };
        links.push(Link { expr: conjunct, relations: needed, sides, selectivity });
    }

    fn join_all(&mut self, relations: Vec<Relation>, links: Vec<Link>) -> Result<LogicalPlan, SqlError> {
        let tree = match relations.len() {
            1 => Tree::Leaf(0),
            n if n <= EXACT_LIMIT => exact_order(&relations, &links),
            _ => greedy_order(&relations, &links),
        };
        let sizes: Vec<_> = relations.iter().map(|r| (r.rows, r.all_rows)).collect();
        let mut plans: Vec<_> = relations.into_iter().map(|r| Some(r.plan)).collect();
        let mut used = vec![false; links.len()];
        let (plan, _) = self.build(&tree, &mut plans, &links, &mut used, &sizes)?;
        Ok(plan)
    }

    fn build(
        &mut self,
        tree: &Tree,
        plans: &mut [Option<LogicalPlan>],
        links: &[Link],
        used: &mut [bool],
        sizes: &[(f64, f64)],
    ) -> Result<(LogicalPlan, u64), SqlError> {
        let (left, right) = match tree {
            Tree::Leaf(relation) => {
                let plan = plans[*relation].take().unwrap_or_default();
                return Ok((plan, 1 << relation));
            }
            Tree::Join(left, right) => (left, right),
        };
        let (mut left_plan, left_set) = self.build(left, plans, links, used, sizes)?;
        let (mut right_plan, right_set) = self.build(right, plans, links, used, sizes)?;
        // The hash table is built from the left side.
        if cardinality(right_set, sizes, links) < cardinality(left_set, sizes, links) {
            std::mem::swap(&mut left_plan, &mut right_plan);
        }
        let set = left_set | right_set;
        let mut conditions = Vec::new();
        for (link, used) in links.iter().zip(used.iter_mut()) {
            if !*used && link.relations & !set == 0 {
                *used = true;
                conditions.push(self.condition(&link.expr)?);
            }
        }
        let builder = LogicalPlanBuilder::from(left_plan);
        let joined = match conditions.is_empty() {
            true => builder.cross_join(right_plan),
            false => builder.join_on(right_plan, JoinType::Inner, conditions),
        };
        Ok((df_result(joined.and_then(|b| b.build()))?, set))
    }
}

/// Splits inner joins into their parts and conditions.
fn flatten<'f>(from: &'f From, parts: &mut Vec<&'f From>, conjuncts: &mut Vec<Expr>) {
    match from {
        From::Join(join) if join.kind == JoinKind::Inner => {
            flatten(&join.left, parts, conjuncts);
            flatten(&join.right, parts, conjuncts);
            conjuncts.extend(join.on.clone());
        }
        other => parts.push(other),
    }
}

/// The columns that a part of FROM makes.
fn produced(from: &From, into: &mut HashSet<ColumnId>) {
    match from {
        From::Dual => {}
        From::Table(scan) => into.extend(scan.columns.iter().map(|(_, id)| *id)),
        From::Derived(derived) => into.extend(&derived.query.outputs),
        From::Cte(reference) => into.extend(&reference.columns),
        From::Join(join) => {
            produced(&join.left, into);
            produced(&join.right, into);
        }
    }
}

/// `(a AND b) OR (a AND c)` is `a AND (b OR c)`: what all alternatives share can join or filter by itself.
fn common_factors(expr: Expr) -> Vec<Expr> {
    let ExprKind::Or(alternatives) = &expr.kind else { return vec![expr] };
    let split: Vec<Vec<Expr>> = alternatives.iter().map(|a| a.clone().into_conjuncts()).collect();
    let Some((first, others)) = split.split_first() else { return vec![expr] };
    let common: Vec<_> =
        first.iter().filter(|c| !c.is_volatile() && others.iter().all(|o| o.contains(c))).cloned().collect();
    common.into_iter().chain([expr]).collect()
}

fn distinct_counts(
    scan: &TableScan,
    statistics: Option<&TableStatistics>,
    rows: f64,
) -> Vec<(ColumnId, f64)> {
    let single_key = |position: usize| {
        scan.table
            .indexes
            .iter()
            .any(|i| i.kind.is_unique() && i.parts.len() == 1 && i.parts[0].column == position)
    };
    let count = |position: usize| {
        let known = statistics.and_then(|s| s.columns.get(position)).and_then(|c| c.distinct);
        match known {
            Some(known) => (known as f64).clamp(1.0, rows),
            None if single_key(position) => rows,
            None => (rows / 10.0).max(1.0),
        }
    };
    scan.columns.iter().map(|(position, id)| (*id, count(*position))).collect()
}

fn distinct_of(relation: &Relation, expr: &Expr) -> f64 {
    let mut counts = relation.distinct.iter();
    match expr.columns().as_slice() {
        [column] => {
            counts.find(|(id, _)| id.index() == *column).map_or(relation.all_rows / 10.0, |(_, n)| *n)
        }
        _ => relation.all_rows / 10.0,
    }
    .max(1.0)
}

/// The share of a relation's rows for which a condition holds, by rule of thumb and distinct counts.
fn selectivity(expr: &Expr, relation: &Relation) -> f64 {
    match &expr.kind {
        ExprKind::Compare { op, left, right } => match op {
            CompareOp::Eq | CompareOp::NullSafeEq => {
                let varying = if left.is_constant() { right } else { left };
                1.0 / distinct_of(relation, varying)
            }
            CompareOp::Ne => 0.9,
            _ => 0.3,
        },
        ExprKind::Between { negated, .. } => {
            if *negated {
                0.8
            } else {
                0.15
            }
        }
        ExprKind::InList { expr, list, negated } => {
            let share = (list.len() as f64 / distinct_of(relation, expr)).min(0.5);
            if *negated { 1.0 - share } else { share }
        }
        ExprKind::Like { negated, .. } => {
            if *negated {
                0.9
            } else {
                0.1
            }
        }
        ExprKind::And(parts) => parts.iter().map(|p| selectivity(p, relation)).product(),
        ExprKind::Or(parts) => parts.iter().map(|p| selectivity(p, relation)).sum::<f64>().min(1.0),
        ExprKind::Not(inner) => 1.0 - selectivity(inner, relation),
        ExprKind::Is { negated, .. } => {
            if *negated {
                0.9
            } else {
                0.1
            }
        }
        _ => 0.3,
    }
}

/// For an equality of two relations: which they are, and how many values each side has.
fn equality_sides(expr: &Expr, relations: &[Relation]) -> Option<(usize, f64, usize, f64)> {
    let ExprKind::Compare { op: CompareOp::Eq, left, right } = &expr.kind else { return None };
    let side = |expr: &Expr| {
        let columns = expr.columns();
        let first = ColumnId(*columns.first()? as u32);
        let relation = relations.iter().position(|r| r.columns.contains(&first))?;
        let all = columns.iter().all(|c| relations[relation].columns.contains(&ColumnId(*c as u32)));
        all.then(|| (relation, distinct_of(&relations[relation], expr)))
    };
    let ((a, x), (b, y)) = (side(left)?, side(right)?);
    (a != b).then_some((a, x, b, y))
}

/// The estimated rows of the join of a set of relations.
fn cardinality(set: u64, sizes: &[(f64, f64)], links: &[Link]) -> f64 {
    let mut rows = 1.0;
    for (i, (filtered, _)) in sizes.iter().enumerate() {
        if set & (1 << i) != 0 {
            rows *= filtered;
        }
    }
    // Equalities between the same two relations are one key together.
    let mut pairs: Vec<(usize, usize, f64, f64, usize)> = Vec::new();
    for link in links.iter().filter(|l| l.relations & !set == 0) {
        let Some((a, x, b, y)) = link.sides else {
            rows *= link.selectivity;
            continue;
        };
        let (a, x, b, y) = if a < b { (a, x, b, y) } else { (b, y, a, x) };
        match pairs.iter_mut().find(|p| p.0 == a && p.1 == b) {
            Some(pair) => {
                pair.2 *= x;
                pair.3 *= y;
                pair.4 += 1;
            }
            None => pairs.push((a, b, x, y, 1)),
        }
    }
    for (a, b, x, y, count) in pairs {
        let (x, y) = (x.min(sizes[a].1), y.min(sizes[b].1));
        // Of a composite key the side with fewer combinations is the one that has them all.
        rows /= if count == 1 { x.max(y) } else { x.min(y) };
    }
    rows.max(1.0)
}

fn linked(left: u64, right: u64, links: &[Link]) -> bool {
    links
        .iter()
        .any(|l| l.relations & left != 0 && l.relations & right != 0 && l.relations & !(left | right) == 0)
}

/// Dynamic programming over subsets; cross products only where nothing links.
fn exact_order(relations: &[Relation], links: &[Link]) -> Tree {
    let sizes: Vec<_> = relations.iter().map(|r| (r.rows, r.all_rows)).collect();
    let n = relations.len();
    let mut best: Vec<Option<Best>> = vec![None; 1 << n];
    for i in 0..n {
        best[1 << i] = Some(Best { cost: 0.0, tree: Tree::Leaf(i) });
    }
    for set in 1u64..1 << n {
        if set.count_ones() < 2 {
            continue;
        }
        let rows = cardinality(set, &sizes, links);
        let mut found: Option<Best> = None;
        for allow_cross in [false, true] {
            // Each split once: the left part holds the lowest relation.
            let lowest = set & set.wrapping_neg();
            let mut part = (set - 1) & set;
            while part > 0 {
                let other = set & !part;
                if part & lowest != 0
                    && (allow_cross || linked(part, other, links))
                    && let (Some(left), Some(right)) = (&best[part as usize], &best[other as usize])
                {
                    let cost = left.cost + right.cost + rows;
                    if found.as_ref().is_none_or(|f| cost < f.cost) {
                        let tree = Tree::Join(Box::new(left.tree.clone()), Box::new(right.tree.clone()));
                        found = Some(Best { cost, tree });
                    }
                }
                part = (part - 1) & set;
            }
            if found.is_some() {
                break;
            }
        }
        best[set as usize] = found;
    }
    best.pop().flatten().map_or(Tree::Leaf(0), |b| b.tree)
}

/// Joins the two parts whose join is smallest, until one is left.
fn greedy_order(relations: &[Relation], links: &[Link]) -> Tree {
    let sizes: Vec<_> = relations.iter().map(|r| (r.rows, r.all_rows)).collect();
    let mut parts: Vec<(u64, Tree)> =
        (0..relations.len()).map(|i| (1u64 << i.min(63), Tree::Leaf(i))).collect();
    while parts.len() > 1 {
        let mut choice = (f64::INFINITY, 0, 1);
        for i in 0..parts.len() {
            for j in i + 1..parts.len() {
                let rows = cardinality(parts[i].0 | parts[j].0, &sizes, links);
                let penalty = if linked(parts[i].0, parts[j].0, links) { 1.0 } else { 1e6 };
                if rows * penalty < choice.0 {
                    choice = (rows * penalty, i, j);
                }
            }
        }
        let (_, i, j) = choice;
        let (right_set, right) = parts.swap_remove(j);
        let (left_set, left) = parts.swap_remove(i);
        parts.push((left_set | right_set, Tree::Join(Box::new(left), Box::new(right))));
    }
    parts.pop().map_or(Tree::Leaf(0), |(_, tree)| tree)
}
