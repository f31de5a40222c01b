//! ORs as sets of conditions, each of which may lead to ranges of one index: `(a, b) IN ((1, 2), (3, 4))`,
//! `a BETWEEN 1 AND 5 OR a BETWEEN 8 AND 9`, `a > 1 OR (a = 1 AND b > 2)`.
//!
//! Invariant: a row for which the OR is true fulfils all conditions of one of its sides at least.

use avocet_types::expr::{Expr, ExprKind};

use super::Columns;
use super::conditions::{Condition, Test, conditions, outside};

/// ORs within the sides of an OR are multiplied out as long as there are no more sides than this.
const MAX_MULTIPLIED: usize = 256;

/// An OR among the conjuncts.
pub struct Alternatives<'e> {
    /// Its place among them.
    pub at: usize,
    pub sides: Vec<Side<'e>>,
}

/// One side: what it says itself, then what the other conjuncts say.
pub struct Side<'e> {
    pub conditions: Vec<Condition<'e>>,
    own: usize,
    /// Nothing of the side is left out of its own conditions.
    pub is_whole: bool,
}

impl<'e> Side<'e> {
    pub fn own(&self) -> &[Condition<'e>] {
        &self.conditions[..self.own]
    }
}

impl Alternatives<'_> {
    /// Whether every side does more than to leave single values out.
    pub fn narrows(&self) -> bool {
        let leaves_out = |condition: &Condition<'_>| matches!(condition.test, Test::Not(_));
        !self.sides.iter().any(|side| side.own().iter().all(leaves_out))
    }
}

/// The ORs each of whose sides has conditions of its own on the table.
pub fn alternatives<'e>(
    scope: &dyn Columns,
    table: usize,
    bound: u32,
    conjuncts: &'e [Expr],
    common: &[Condition<'e>],
) -> Vec<Alternatives<'e>> {
    let mut found = Vec::new();
    for (at, conjunct) in conjuncts.iter().enumerate() {
        if let Some(sides) = outside(scope, table, bound, at, conjunct) {
            let side = |own: Condition<'e>| {
                let conditions = std::iter::once(own).chain(common.iter().cloned()).collect();
                Side { conditions, own: 1, is_whole: true }
            };
            found.push(Alternatives { at, sides: sides.into_iter().map(side).collect() });
        }
        let ExprKind::Or(parts) = &conjunct.kind else { continue };
        let side = |parts: Vec<&'e Expr>| {
            let mut all = conditions(scope, table, bound, parts.iter().map(|part| (at, *part)));
            let own = all.len();
            let is_whole = own == parts.len();
            all.extend_from_slice(common);
            (own > 0).then_some(Side { conditions: all, own, is_whole })
        };
        let sides = parts.iter().flat_map(sides_of).map(side).collect::<Option<Vec<_>>>();
        found.extend(sides.map(|sides| Alternatives { at, sides }));
    }
    found
}

/// The conjunctions that a side of an OR stands for.
fn sides_of(expr: &Expr) -> Vec<Vec<&Expr>> {
    match &expr.kind {
        ExprKind::Or(parts) => parts.iter().flat_map(sides_of).collect(),
        ExprKind::And(parts) => {
            let mut sides = vec![Vec::with_capacity(parts.len())];
            for part in parts {
                let inner = match &part.kind {
                    ExprKind::Or(_) => sides_of(part),
                    _ => vec![vec![part]],
                };
                if sides.len() * inner.len() > MAX_MULTIPLIED {
                    sides.iter_mut().for_each(|side| side.push(part));
                    continue;
                }
                sides = sides
                    .iter()
                    .flat_map(|side| inner.iter().map(move |more| [&side[..], &more[..]].concat()))
                    .collect();
            }
            sides
        }
        _ => vec![vec![expr]],
    }
}
