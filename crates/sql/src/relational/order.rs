//! The order of inner joins: the tree with the least cost, exactly (over connected subsets) for up to [`EXACT_LIMIT`]
//! relations, greedily beyond.
//!
//! Keys that equalities make equal form a *class*: `a.x = b.y AND b.y = c.z` lets `a` join `c` first. A tree of joins need
//! only test one equality between the two sides of each join for every class. Costs are the rows that joins give and
//! those that they put into hash tables.

use avocet_types::expr::{Expr, ExprKind};

pub(super) const EXACT_LIMIT: usize = 12;

/// The rows of one relation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub rows: f64,
    /// Before the relation's own conditions.
    pub all_rows: f64,
}

/// An expression over one relation that equals others.
pub(super) struct Key {
    pub relation: usize,
    pub expr: Expr,
    pub distinct: f64,
}

/// Keys that are equal in every row of the join; at most one of a relation.
pub(super) struct Class {
    pub keys: Vec<Key>,
    /// The equalities as they were written.
    pub equalities: Vec<Expr>,
}

/// Any other condition over several relations.
pub(super) struct Condition {
    pub expr: Expr,
    /// Bit set of the relations that it needs.
    pub relations: u64,
}

#[derive(Default)]
pub(super) struct JoinGraph {
    pub sizes: Vec<Size>,
    pub classes: Vec<Class>,
    pub conditions: Vec<Condition>,
}

/// A join tree over relation numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Leaf(usize),
    Join(Box<Tree>, Box<Tree>),
}

impl Class {
    fn key_in(&self, set: u64) -> Option<&Key> {
        self.keys.iter().find(|key| set & 1 << key.relation != 0)
    }

    fn key_of(&self, relation: usize) -> Option<&Key> {
        self.keys.iter().find(|key| key.relation == relation)
    }

    /// An equality between two sets of relations in each of which the keys are equal already.
    pub fn equality(&self, left: u64, right: u64) -> Option<Expr> {
        let (a, b) = (self.key_in(left)?, self.key_in(right)?);
        let (written, mut made) = (self.equalities.iter(), self.equalities.first()?.clone());
        let both = |e: &&Expr| match &e.kind {
            ExprKind::Compare { left: x, right: y, .. } => {
                let of =
                    |set: u64, e: &Expr| self.keys.iter().any(|k| set & 1 << k.relation != 0 && k.expr == *e);
                of(left, x) && of(right, y) || of(left, y) && of(right, x)
            }
            _ => false,
        };
        if let Some(found) = written.clone().find(both) {
            return Some(found.clone());
        }
        if let ExprKind::Compare { left, right, .. } = &mut made.kind {
            (**left, **right) = (a.expr.clone(), b.expr.clone());
        }
        Some(made)
    }
}

impl JoinGraph {
    /// Adds an equality of two relations' expressions. It joins the classes of its sides if `same_domain` says that equality
    /// is transitive between them.
    pub fn add_equality(
        &mut self,
        expr: Expr,
        left: Key,
        right: Key,
        same_domain: impl Fn(&Expr, &Expr) -> bool,
    ) {
        let class_of = |classes: &[Class], key: &Key| {
            classes.iter().position(|class| {
                class.keys.iter().any(|k| k.relation == key.relation && k.expr == key.expr)
                    && same_domain(&class.keys[0].expr, &key.expr)
            })
        };
        let alone = |keys: Vec<Key>, expr: Expr| Class { keys, equalities: vec![expr] };
        if !same_domain(&left.expr, &right.expr) {
            self.classes.push(alone(vec![left, right], expr));
            return;
        }
        match (class_of(&self.classes, &left), class_of(&self.classes, &right)) {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => {
                let apart = self.classes[b].keys.iter().all(|k| self.classes[a].key_of(k.relation).is_none());
                if apart {
                    let merged = self.classes.swap_remove(a.max(b));
                    let into = &mut self.classes[a.min(b)];
                    into.keys.extend(merged.keys);
                    into.equalities.extend(merged.equalities);
                    into.equalities.push(expr);
                } else {
                    self.classes.push(alone(vec![left, right], expr));
                }
            }
            (Some(at), None) if self.classes[at].key_of(right.relation).is_none() => {
                self.classes[at].keys.push(right);
                self.classes[at].equalities.push(expr);
            }
            (None, Some(at)) if self.classes[at].key_of(left.relation).is_none() => {
                self.classes[at].keys.push(left);
                self.classes[at].equalities.push(expr);
            }
            _ => self.classes.push(alone(vec![left, right], expr)),
        }
    }

    /// The estimated rows of the join of a set of relations.
    pub fn cardinality(&self, set: u64) -> f64 {
        let members: Vec<usize> = (0..self.sizes.len()).filter(|r| set & 1 << r != 0).collect();
        let mut rows: f64 = members.iter().map(|r| self.sizes[*r].rows).product();
        rows *= 0.3f64.powi(self.conditions.iter().filter(|c| c.relations & !set == 0).count() as i32);
        // For every class the relations that its equalities have connected so far.
        let mut connected: Vec<Vec<u64>> = self.classes.iter().map(|_| Vec::new()).collect();
        let mut pairs = Vec::new();
        for (i, a) in members.iter().enumerate() {
            for b in &members[i + 1..] {
                if let Some(divisor) = self.divisor(*a, *b, &connected) {
                    pairs.push((divisor, *a, *b));
                }
            }
        }
        pairs.sort_by(|x, y| y.0.total_cmp(&x.0));
        for (_, a, b) in pairs {
            // What others imply filters nothing.
            let Some(divisor) = self.divisor(a, b, &connected) else { continue };
            rows /= divisor;
            for (class, parts) in self.classes.iter().zip(&mut connected) {
                if class.key_of(a).is_some() && class.key_of(b).is_some() {
                    connect(parts, a, b);
                }
            }
        }
        rows.max(1.0)
    }

    /// By how much the equalities between two relations that are not implied yet divide the rows of their product.
    fn divisor(&self, a: usize, b: usize, connected: &[Vec<u64>]) -> Option<f64> {
        let (mut x, mut y, mut count) = (1.0, 1.0, 0);
        for (class, parts) in self.classes.iter().zip(connected) {
            let both = 1u64 << a | 1 << b;
            if parts.iter().any(|part| part & both == both) {
                continue;
            }
            if let (Some(left), Some(right)) = (class.key_of(a), class.key_of(b)) {
                x *= left.distinct;
                y *= right.distinct;
                count += 1;
            }
        }
        let (x, y): (f64, f64) = (x.min(self.sizes[a].all_rows), y.min(self.sizes[b].all_rows));
        // Of a composite key the side with fewer combinations is the one that has them all.
        match count {
            0 => None,
            1 => Some(x.max(y)),
            _ => Some(x.min(y)),
        }
    }

    fn linked(&self, left: u64, right: u64) -> bool {
        self.classes.iter().any(|c| c.key_in(left).is_some() && c.key_in(right).is_some())
            || self.conditions.iter().any(|c| {
                c.relations & left != 0 && c.relations & right != 0 && c.relations & !(left | right) == 0
            })
    }

    pub fn order(&self) -> Tree {
        match self.sizes.len() {
            0 | 1 => Tree::Leaf(0),
            n if n <= EXACT_LIMIT => self.exact_order(),
            _ => self.greedy_order(),
        }
    }

    /// Dynamic programming over subsets; cross products only where nothing links.
    fn exact_order(&self) -> Tree {
        let n = self.sizes.len();
        let cardinalities: Vec<f64> = (0..1u64 << n).map(|set| self.cardinality(set)).collect();
        // The cost of the best tree of a set, and the left part of its last join.
        let mut best = vec![(0.0f64, 0u64); 1 << n];
        for set in 1u64..1 << n {
            if set.count_ones() < 2 {
                continue;
            }
            let mut found: Option<(f64, u64)> = None;
            for allow_cross in [false, true] {
                // Each split once: the left part holds the lowest relation.
                let lowest = set & set.wrapping_neg();
                let mut part = (set - 1) & set;
                while part > 0 {
                    let other = set & !part;
                    if part & lowest != 0 && (allow_cross || self.linked(part, other)) {
                        let built = cardinalities[part as usize].min(cardinalities[other as usize]);
                        let cost = best[part as usize].0 + best[other as usize].0 + built;
                        if found.is_none_or(|f| cost < f.0) {
                            found = Some((cost, part));
                        }
                    }
                    part = (part - 1) & set;
                }
                if found.is_some() {
                    break;
                }
            }
            let (cost, part) = found.expect("a set of two or more can be split");
            best[set as usize] = (cost + cardinalities[set as usize], part);
        }
        tree_of(&best, (1 << n) - 1)
    }

    /// Joins the two parts whose join is smallest, until one is left.
    fn greedy_order(&self) -> Tree {
        let mut parts: Vec<(u64, Tree)> =
            (0..self.sizes.len()).map(|i| (1u64 << i.min(63), Tree::Leaf(i))).collect();
        while parts.len() > 1 {
            let mut choice = (f64::INFINITY, 0, 1);
            for i in 0..parts.len() {
                for j in i + 1..parts.len() {
                    let rows = self.cardinality(parts[i].0 | parts[j].0);
                    let penalty = if self.linked(parts[i].0, parts[j].0) { 1.0 } else { 1e6 };
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
}

fn tree_of(best: &[(f64, u64)], set: u64) -> Tree {
    if set.count_ones() == 1 {
        return Tree::Leaf(set.trailing_zeros() as usize);
    }
    let part = best[set as usize].1;
    Tree::Join(Box::new(tree_of(best, part)), Box::new(tree_of(best, set & !part)))
}

/// Unites the parts of two relations in a list of disjoint sets.
fn connect(parts: &mut Vec<u64>, a: usize, b: usize) {
    let mut united = 1u64 << a | 1 << b;
    parts.retain(|part| {
        let touches = part & united != 0;
        if touches {
            united |= part;
        }
        !touches
    });
    parts.push(united);
}

#[cfg(test)]
mod tests {
    use avocet_types::SqlType;
    use avocet_types::expr::CompareOp;

    use super::*;

    fn column(n: usize) -> Expr {
        Expr::column(n, SqlType::INT, false)
    }

    fn graph(sizes: &[f64], equalities: &[(usize, usize, f64, usize, usize, f64)]) -> JoinGraph {
        let sizes = sizes.iter().map(|rows| Size { rows: *rows, all_rows: *rows }).collect();
        let mut graph = JoinGraph { sizes, ..JoinGraph::default() };
        for (a, x, dx, b, y, dy) in equalities {
            let (left, right) = (column(*x), column(*y));
            let kind = ExprKind::Compare {
                op: CompareOp::Eq,
                left: Box::new(left.clone()),
                right: Box::new(right.clone()),
            };
            let equality = Expr { kind, ..column(0) };
            let key = |relation: usize, expr: Expr, distinct: f64| Key { relation, expr, distinct };
            graph.add_equality(equality, key(*a, left, *dx), key(*b, right, *dy), |_, _| true);
        }
        graph
    }

    #[test]
    fn equalities_form_classes_and_imply_others() {
        // a.0 = b.1 AND b.1 = c.2: a may join c.
        let graph = graph(&[1e3, 1e6, 10.0], &[(0, 0, 1e3, 1, 1, 1e3), (1, 1, 1e3, 2, 2, 10.0)]);
        assert_eq!(graph.classes.len(), 1);
        let implied = graph.classes[0].equality(0b001, 0b100).unwrap();
        assert_eq!(implied.columns(), [0, 2]);
        assert_eq!(graph.cardinality(0b101), 10.0);
        // 1e3 × 1e6 × 10 rows, divided by two of the three equalities, not by all.
        assert_eq!(graph.cardinality(0b111), 1e10 / 1e6);
        let order = graph.order();
        let small = Tree::Join(Box::new(Tree::Leaf(0)), Box::new(Tree::Leaf(2)));
        assert!(matches!(order, Tree::Join(a, b) if *a == small || *b == small));
    }

    #[test]
    fn two_keys_of_one_relation_never_share_a_class() {
        // a.0 = b.1 AND a.0 = b.2 also says b.1 = b.2: both equalities must be tested.
        let graph = graph(&[10.0, 10.0], &[(0, 0, 10.0, 1, 1, 10.0), (0, 0, 10.0, 1, 2, 10.0)]);
        assert_eq!(graph.classes.len(), 2);
        assert!(graph.classes.iter().all(|class| class.equality(0b01, 0b10).is_some()));
    }

    #[test]
    fn composite_keys_divide_once() {
        let graph = graph(&[800.0, 6000.0], &[(0, 0, 200.0, 1, 1, 200.0), (0, 2, 10.0, 1, 3, 10.0)]);
        assert_eq!(graph.cardinality(0b11), 800.0 * 6000.0 / 800.0);
    }

    #[test]
    fn many_relations_are_joined_without_cross_products() {
        let sizes: Vec<f64> = (0..20).map(|i| 10.0 * f64::from(i + 1)).collect();
        let chain: Vec<_> = (0..19).map(|i| (i, 2 * i, 10.0, i + 1, 2 * i + 1, 10.0)).collect();
        let graph = graph(&sizes, &chain);
        fn check(graph: &JoinGraph, tree: &Tree) -> u64 {
            match tree {
                Tree::Leaf(relation) => 1 << relation,
                Tree::Join(left, right) => {
                    let (left, right) = (check(graph, left), check(graph, right));
                    assert!(graph.linked(left, right));
                    left | right
                }
            }
        }
        assert_eq!(check(&graph, &graph.order()), (1 << 20) - 1);
    }
}
