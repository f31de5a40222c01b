//! Comparisons of one expression with many constants, gathered into one list: `v = 1 OR v = 2 OR v IN (3, 4)` is
//! `v IN (1, 2, 3, 4)`, and `v <> 1 AND v <> 2` is `v NOT IN (1, 2)`. A list is looked up in an index, or among sorted
//! values, where a chain of comparisons is tried one by one, and whoever plans walks over all of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::expr::{CompareOp, Expr, ExprKind, ValueClass};

/// What is gathered: the equalities of an OR, or the inequalities of an AND.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Gather {
    Equal,
    Unequal,
}

/// The parts of an OR or an AND, those on the same expression gathered where the first of them stood.
pub(super) fn gathered(parts: Vec<Expr>, what: Gather) -> Vec<Expr> {
    if parts.iter().filter(|part| member(part, what).is_some()).nth(1).is_none() {
        return parts;
    }
    let mut places: HashMap<Expr, usize> = HashMap::new();
    let mut out: Vec<Expr> = Vec::with_capacity(parts.len());
    for part in parts {
        let Some(tested) = member(&part, what) else {
            out.push(part);
            continue;
        };
        match places.entry(tested.clone()) {
            Entry::Vacant(place) => {
                place.insert(out.len());
                out.push(part);
            }
            Entry::Occupied(place) => add(&mut out[*place.get()], part, what),
        }
    }
    out
}

/// The expression that a part tests, if it is compared with nothing but constants.
fn member(part: &Expr, what: Gather) -> Option<&Expr> {
    let wanted = if what == Gather::Equal { CompareOp::Eq } else { CompareOp::Ne };
    match &part.kind {
        ExprKind::Compare { op, left, right } if *op == wanted => {
            [(left, right), (right, left)].into_iter().find_map(|(tested, value)| fits(tested, value))
        }
        ExprKind::InList { expr, list, negated } if *negated == (what == Gather::Unequal) => {
            list.iter().all(|value| fits(expr, value).is_some()).then_some(expr)
        }
        _ => None,
    }
}

fn fits<'e>(tested: &'e Expr, value: &Expr) -> Option<&'e Expr> {
    let same = ValueClass::of(&tested.ty) == ValueClass::of(&value.ty)
        && tested.ty.collation() == value.ty.collation();
    (same && value.is_constant() && !tested.is_constant() && !tested.is_volatile()).then_some(tested)
}

/// Adds the constants of `part` to those of `to`, which becomes a list.
fn add(to: &mut Expr, part: Expr, what: Gather) {
    let negated = what == Gather::Unequal;
    to.nullable |= part.nullable;
    let more = match part.kind {
        ExprKind::Compare { left, right, .. } => vec![if left.is_constant() { *left } else { *right }],
        ExprKind::InList { list, .. } => list,
        _ => return,
    };
    if let ExprKind::Compare { left, right, .. } = &to.kind {
        let (tested, value) = if left.is_constant() { (right, left) } else { (left, right) };
        to.kind = ExprKind::InList { expr: tested.clone(), list: vec![(**value).clone()], negated };
    }
    if let ExprKind::InList { list, .. } = &mut to.kind {
        list.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::Datum;
    use crate::sql_type::SqlType;

    fn column(n: usize) -> Expr {
        Expr::column(n, SqlType::BIGINT, true)
    }

    fn compare(op: CompareOp, left: Expr, right: Expr) -> Expr {
        Expr::truth(ExprKind::Compare { op, left: Box::new(left), right: Box::new(right) }, true)
    }

    fn int(v: i64) -> Expr {
        Expr::literal(Datum::Int(v), SqlType::BIGINT)
    }

    #[test]
    fn comparisons_of_one_expression_with_constants_become_a_list() {
        let parts = vec![
            compare(CompareOp::Eq, column(0), int(1)),
            compare(CompareOp::Eq, column(1), int(2)),
            compare(CompareOp::Eq, int(3), column(0)),
            compare(CompareOp::Lt, column(0), int(4)),
            compare(CompareOp::Eq, column(0), column(1)),
        ];
        let out = gathered(parts, Gather::Equal);
        assert_eq!(out.len(), 4);
        let ExprKind::InList { expr, list, negated: false } = &out[0].kind else { panic!("{:?}", out[0]) };
        assert_eq!((&**expr, &list[..]), (&column(0), &[int(1), int(3)][..]));
    }

    #[test]
    fn what_differs_in_class_stays_apart() {
        let half = Expr::literal(Datum::Double(0.5), SqlType::DOUBLE);
        let parts = vec![compare(CompareOp::Ne, column(0), int(1)), compare(CompareOp::Ne, column(0), half)];
        assert_eq!(gathered(parts.clone(), Gather::Unequal), parts);
        assert_eq!(gathered(parts.clone(), Gather::Equal), parts);
    }
}
