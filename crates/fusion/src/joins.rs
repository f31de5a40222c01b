//! FROM and WHERE: inner joins in an order that keeps intermediate results small.
//!
//! DataFusion keeps the order of FROM. We flatten inner joins and the conjuncts of ON and WHERE, put each conjunct where it
//! belongs, estimate sizes (`estimate`), choose a tree of joins (`join_order`) and build it, with the smaller side of each
//! join to the left, where DataFusion makes the hash table.

use std::collections::HashSet;

use avocet_sql::plan::*;
use avocet_types::error::SqlError;
use avocet_types::expr::{CompareOp, Expr, ExprKind};
use datafusion::logical_expr::{JoinType, LogicalPlan, LogicalPlanBuilder};

use crate::estimate::{Estimate, UNKNOWN_ROWS};
use crate::join_order::{Condition, JoinGraph, Key, Size, Tree};
use crate::lower::{Lowerer, df_result};

struct Relation {
    plan: LogicalPlan,
    columns: HashSet<ColumnId>,
    estimate: Estimate,
    /// Conjuncts over this relation alone.
    filters: Vec<Expr>,
}

impl Lowerer {
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
        let laterals: Vec<_> = parts.iter().filter_map(|part| lateral_of(part)).collect();
        parts.retain(|part| lateral_of(part).is_none());
        let mut relations = Vec::with_capacity(parts.len());
        for part in parts {
            relations.push(self.sized_relation(part)?);
        }
        let mut graph = JoinGraph::default();
        let mut late = Vec::new();
        for conjunct in conjuncts {
            self.place(conjunct, &mut relations, &mut graph, &mut late);
        }
        for relation in &mut relations {
            let plan = std::mem::take(&mut relation.plan);
            relation.plan = self.filter(plan, &relation.filters)?;
            let Estimate { rows, all_rows, .. } = relation.estimate;
            graph.sizes.push(Size { rows, all_rows });
        }
        let mut plan = self.join_all(relations, &graph)?;
        for derived in laterals {
            plan = self.lateral(plan, derived, None)?;
        }
        self.rows = (self.rows * 0.5f64.powi(late.len() as i32)).max(1.0);
        // What needs no answer of a subquery first.
        let (answered, late): (Vec<_>, Vec<_>) =
            late.into_iter().partition(|c| c.columns().iter().any(|id| self.is_pending(*id)));
        plan = self.filter(plan, &late)?;
        plan = self.answered(plan, &answered)?;
        self.filter(plan, &answered)
    }

    fn is_pending(&self, column: usize) -> bool {
        self.pending.contains_key(&ColumnId(column as u32))
    }

    fn sized_relation(&mut self, part: &From) -> Result<Relation, SqlError> {
        self.rows = UNKNOWN_ROWS;
        let plan = self.relation(part)?;
        let mut columns = HashSet::new();
        produced(part, &mut columns);
        let estimate = match part {
            From::Table(scan) => {
                let statistics = self.source.statistics(&scan.table);
                let rows = statistics.as_ref().map_or(UNKNOWN_ROWS, |s| s.rows.max(1) as f64);
                let distinct = |position: usize| statistics.as_ref()?.columns.get(position)?.distinct;
                let sample = self.source.sample(&scan.table);
                Estimate::of_table(scan, rows, distinct, sample, &self.context)
            }
            From::Dual => Estimate::of_part(1.0),
            _ => Estimate::of_part(self.rows),
        };
        Ok(Relation { plan, columns, estimate, filters: Vec::new() })
    }

    /// Puts a conjunct where it belongs: on a relation, between relations, or after all joins.
    fn place(&self, conjunct: Expr, relations: &mut [Relation], graph: &mut JoinGraph, late: &mut Vec<Expr>) {
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
        if elsewhere || needed == 0 || conjunct.is_volatile() {
            late.push(conjunct);
            return;
        }
        if needed.count_ones() == 1 {
            let relation = &mut relations[needed.trailing_zeros() as usize];
            relation.estimate.filter(&conjunct);
            relation.filters.push(conjunct);
            return;
        }
        match equality_sides(&conjunct, relations) {
            Some((left, right)) => graph.add_equality(conjunct, left, right, same_domain),
            None => graph.conditions.push(Condition { expr: conjunct, relations: needed }),
        }
    }

    fn join_all(&mut self, relations: Vec<Relation>, graph: &JoinGraph) -> Result<LogicalPlan, SqlError> {
        let tree = graph.order();
        self.rows = graph.cardinality((1u64 << graph.sizes.len().min(63)) - 1);
        let mut plans: Vec<_> = relations.into_iter().map(|r| Some(r.plan)).collect();
        let mut used = vec![false; graph.conditions.len()];
        let (plan, _) = self.build(&tree, &mut plans, graph, &mut used)?;
        Ok(plan)
    }

    fn build(
        &mut self,
        tree: &Tree,
        plans: &mut [Option<LogicalPlan>],
        graph: &JoinGraph,
        used: &mut [bool],
    ) -> Result<(LogicalPlan, u64), SqlError> {
        let (left, right) = match tree {
            Tree::Leaf(relation) => {
                let plan = plans[*relation].take().expect("a tree has each relation once");
                return Ok((plan, 1 << relation));
            }
            Tree::Join(left, right) => (left, right),
        };
        let (mut left_plan, left_set) = self.build(left, plans, graph, used)?;
        let (mut right_plan, right_set) = self.build(right, plans, graph, used)?;
        // The hash table is built from the left side.
        if graph.cardinality(right_set) < graph.cardinality(left_set) {
            std::mem::swap(&mut left_plan, &mut right_plan);
        }
        let set = left_set | right_set;
        let mut conditions = Vec::new();
        for class in &graph.classes {
            if let Some(equality) = class.equality(left_set, right_set) {
                conditions.push(self.condition(&equality)?);
            }
        }
        for (condition, used) in graph.conditions.iter().zip(used.iter_mut()) {
            if !*used && condition.relations & !set == 0 {
                *used = true;
                conditions.push(self.condition(&condition.expr)?);
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

/// The part, if it refers to those before it.
fn lateral_of(part: &From) -> Option<&Derived> {
    match part {
        From::Derived(derived) if !derived.outer.is_empty() => Some(derived),
        _ => None,
    }
}

/// The columns that a part of FROM makes.
pub(super) fn produced(from: &From, into: &mut HashSet<ColumnId>) {
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

/// For an equality of two relations: its sides.
fn equality_sides(expr: &Expr, relations: &[Relation]) -> Option<(Key, Key)> {
    let ExprKind::Compare { op: CompareOp::Eq, left, right } = &expr.kind else { return None };
    let side = |expr: &Expr| {
        let columns = expr.columns();
        let first = ColumnId(*columns.first()? as u32);
        let relation = relations.iter().position(|r| r.columns.contains(&first))?;
        let all = columns.iter().all(|c| relations[relation].columns.contains(&ColumnId(*c as u32)));
        let distinct = || relations[relation].estimate.distinct(expr);
        all.then(|| Key { relation, distinct: distinct(), expr: expr.clone() })
    };
    let (left, right) = (side(left)?, side(right)?);
    (left.relation != right.relation).then_some((left, right))
}

/// Whether values of the two compare the same way with any third: only then is equality transitive among them.
fn same_domain(a: &Expr, b: &Expr) -> bool {
    let integer = |e: &Expr| e.ty.is_integer();
    a.ty == b.ty || integer(a) && integer(b)
}
