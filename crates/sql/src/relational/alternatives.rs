//! Joins on alternatives, `ON a.x = b.y OR a.z = b.y`: no hash table finds the partners of all of them, so that every pair of rows
//! would be tried. Each alternative gets a join of its own, without what an earlier one has found.
//!
//! ```text
//!  inner   L ⋈(c₁ ∨ c₂) R  =  L ⋈c₁ R  ∪  L ⋈(c₂ ∧ c₁ is not true) R
//!  semi    L ⋉(c₁ ∨ c₂) R  =  L ⋉c₁ R  ∪  (L ▷c₁ R) ⋉c₂ R
//!  anti    L ▷(c₁ ∨ c₂) R  =  (L ▷c₁ R) ▷c₂ R
//!  outer   L ⟕(c₁ ∨ c₂) R  =  the inner join  ∪  the anti join beside NULLs
//! ```
//!
//! Both sides are evaluated several times, so they must give the same rows each time, and be worth it: a scan costs what its rows are,
//! the pairs are the product. It comes after `prune`, so that what is put together is as narrow as what is asked for.

use std::collections::HashSet;

use avocet_types::expr::{Expr, ExprKind, IsTest};
use avocet_types::{Datum, SqlType};

use super::placement::keys_among;
use super::{Equality, Join, JoinKind, Node, Operator, SetOperation};
use crate::parse::ast::SetOperator;
use crate::plan::{AggregateFunction, ColumnId, ColumnTable, Projected};

/// Fewer pairs than this are tried one by one.
const LEAST_PAIRS: f64 = 1e6;
/// What trying a pair costs, compared with reading a row once more.
const PAIRS_PER_ROW: f64 = 8.0;
const MOST_ALTERNATIVES: usize = 4;
/// So many nodes may be added to a plan: a join of joins on alternatives doubles with each level.
const MOST_NODES: usize = 200;

pub(super) fn split(root: &mut Node, columns: &ColumnTable) {
    split_below(root, columns, &mut MOST_NODES.clone());
}

fn split_below(node: &mut Node, columns: &ColumnTable, left: &mut usize) {
    for input in node.inputs_mut() {
        split_below(input, columns, left);
    }
    let Operator::Join(join) = &node.operator else { return };
    let Some(alternatives) = Alternatives::of(join) else { return };
    let nodes = (count(&join.left) + count(&join.right)) * alternatives.each.len() * 2;
    if nodes > *left || !(is_repeatable(&join.left, columns) && is_repeatable(&join.right, columns)) {
        return;
    }
    *left -= nodes;
    let taken = std::mem::replace(node, Node::one_row());
    *node = alternatives.apart(taken, columns);
}

/// The equalities of an alternative, and what else it asks for.
struct Alternative {
    whole: Expr,
    keys: Vec<Equality>,
    others: Vec<Expr>,
}

struct Alternatives {
    each: Vec<Alternative>,
    /// What holds besides, whichever it is.
    common: Vec<Expr>,
}

impl Alternatives {
    fn of(join: &Join) -> Option<Self> {
        let (left_rows, right_rows) = (join.left.rows.rows, join.right.rows.rows);
        let pairs = left_rows * right_rows;
        let is_split = matches!(
            join.kind,
            JoinKind::Inner | JoinKind::Semi | JoinKind::Left | JoinKind::Anti { nulls: false }
        );
        if !is_split || !join.keys.is_empty() || pairs < LEAST_PAIRS {
            return None;
        }
        let left: HashSet<_> = join.left.outputs.iter().copied().collect();
        let right: HashSet<_> = join.right.outputs.iter().copied().collect();
        let of = |condition: &Expr| {
            let ExprKind::Or(parts) = &condition.kind else { return None };
            if parts.len() > MOST_ALTERNATIVES || condition.is_volatile() {
                return None;
            }
            let alternative = |part: &Expr| {
                let (keys, others) = keys_among(part.clone().into_conjuncts(), &left, &right);
                (!keys.is_empty()).then(|| Alternative { whole: part.clone(), keys, others })
            };
            parts.iter().map(alternative).collect::<Option<Vec<_>>>()
        };
        let (at, each) =
            join.residual.iter().enumerate().find_map(|(at, condition)| Some((at, of(condition)?)))?;
        if pairs < PAIRS_PER_ROW * each.len() as f64 * (left_rows + right_rows) {
            return None;
        }
        let mut common = join.residual.clone();
        common.remove(at);
        Some(Self { each, common })
    }

    fn apart(self, node: Node, columns: &ColumnTable) -> Node {
        let Node { operator, outputs, rows, .. } = node;
        let Operator::Join(join) = operator else { unreachable!("its alternatives were found") };
        let Join { kind, left, right, .. } = *join;
        // Rows are counted, too, where nothing of them is asked for.
        let outputs =
            if outputs.is_empty() { left.outputs[..left.outputs.len().min(1)].to_vec() } else { outputs };
        let join = |kind: JoinKind, left: Node, at: usize, outputs: &[ColumnId]| {
            let Alternative { keys, others, .. } = &self.each[at];
            let mut residual: Vec<Expr> = others.iter().chain(&self.common).cloned().collect();
            if matches!(kind, JoinKind::Inner | JoinKind::Left) {
                residual.extend(self.each[..at].iter().map(|earlier| is_not_true(&earlier.whole)));
            }
            let (keys, right) = (keys.clone(), right.clone());
            let joined = Join { kind, left, right, keys, residual };
            Node { rows, ..Node::new(Operator::Join(Box::new(joined)), outputs.to_vec()) }
        };
        let anti = |upto: usize| {
            let kept = left.outputs.clone();
            (0..upto).fold(left.clone(), |left, at| join(JoinKind::Anti { nulls: false }, left, at, &kept))
        };
        let all = self.each.len();
        let inner = || (0..all).map(|at| join(JoinKind::Inner, left.clone(), at, &outputs));
        let inputs: Vec<Node> = match kind {
            JoinKind::Inner => inner().collect(),
            JoinKind::Semi => (0..all).map(|at| join(JoinKind::Semi, anti(at), at, &outputs)).collect(),
            JoinKind::Left => {
                let of_right = |id: &&ColumnId| right.outputs.contains(*id);
                let (nulls, passed): (Vec<_>, Vec<_>) = outputs.iter().partition(of_right);
                let null = |id: ColumnId| Projected { id, expr: Expr::literal(Datum::Null, columns[id].ty) };
                let without = anti(all).projected(nulls.into_iter().map(null).collect(), &passed);
                inner().chain([without.with_outputs(&outputs)]).collect()
            }
            JoinKind::Anti { .. } => {
                let rest = anti(all);
                return Node { rows, ..rest.with_outputs(&outputs) };
            }
            JoinKind::Single | JoinKind::Mark(_) => unreachable!("no alternatives are looked for in it"),
        };
        let union = SetOperation { op: SetOperator::Union, all: true, inputs };
        Node { rows, ..Node::new(Operator::SetOperation(Box::new(union)), outputs) }
    }
}

fn is_not_true(condition: &Expr) -> Expr {
    let is = ExprKind::Is { expr: Box::new(condition.clone()), test: IsTest::True, negated: true };
    Expr::truth(is, false)
}

fn count(node: &Node) -> usize {
    let mut nodes = 0;
    node.for_each_node(&mut |_| nodes += 1);
    nodes
}

/// Whether it gives the same rows whenever it is evaluated, and stands for itself.
fn is_repeatable(node: &Node, columns: &ColumnTable) -> bool {
    let mut repeatable = !node.is_volatile();
    node.for_each_node(&mut |node| {
        repeatable &= match &node.operator {
            Operator::OneRow
            | Operator::Scan(_)
            | Operator::Values(_)
            | Operator::Filter { .. }
            | Operator::Project { .. }
            | Operator::Join(_)
            | Operator::Distinct { .. }
            | Operator::SetOperation(_)
            | Operator::Shared { .. } => true,
            Operator::Aggregate { aggregation, .. } => aggregation
                .aggregates
                .iter()
                .all(|aggregate| is_exact(aggregate.function, &columns[aggregate.id].ty)),
            Operator::Sort { range, .. } => range.is_none(),
            // Which rows a limit leaves and how ties are numbered may be another time otherwise.
            Operator::JsonTable { .. }
            | Operator::Window { .. }
            | Operator::Limit { .. }
            | Operator::Apply(_)
            | Operator::Once { .. }
            | Operator::With { .. }
            | Operator::Recursive(_)
            | Operator::WorkTable { .. } => false,
        };
    });
    repeatable
}

/// Whether it comes to the same value whatever the order of the rows: sums of DOUBLEs differ in their last digits, and of texts that
/// are put together or are any value of some, which are which.
fn is_exact(function: AggregateFunction, ty: &SqlType) -> bool {
    use AggregateFunction as F;
    match function {
        F::Count | F::Min | F::Max | F::BitAnd | F::BitOr | F::BitXor | F::Grouping => true,
        F::Sum | F::Avg => ty.is_integer() || matches!(ty, SqlType::Decimal { .. }),
        F::StddevPop
        | F::StddevSamp
        | F::VarPop
        | F::VarSamp
        | F::GroupConcat
        | F::JsonArrayAgg
        | F::JsonObjectAgg
        | F::AnyValue => false,
    }
}
