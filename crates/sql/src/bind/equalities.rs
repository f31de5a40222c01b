//! Equalities that the conditions of a block ask for, the columns that follow from each, and those that cannot be NULL.

use std::collections::BTreeSet;

use avocet_types::expr::{CompareOp, Expr, ExprKind, IsTest};

use crate::plan::ColumnId;
use crate::plan::walk::column_of;

/// `column = expression` among the conjuncts of a condition.
#[derive(Clone, Debug)]
pub(super) struct Equality {
    pub column: ColumnId,
    /// What the column follows from.
    pub others: Vec<ColumnId>,
    /// The expression is a column, too: both are NULL in a row that an outer join complements.
    pub is_plain: bool,
}

pub(super) fn collect_equalities(filter: &Expr, into: &mut Vec<Equality>) {
    for conjunct in filter.clone().into_conjuncts() {
        let ExprKind::Compare { op: CompareOp::Eq, left, right } = &conjunct.kind else { continue };
        for (a, b) in [(left, right), (right, left)] {
            if let Some(column) = column_of(a) {
                let others = b.columns().into_iter().map(|c| ColumnId(c as u32)).collect();
                into.push(Equality { column, others, is_plain: column_of(b).is_some() });
            }
        }
    }
}

/// What follows from the condition of an outer join (SQL:2016, 4.26.7; `Group_check::analyze_conjunct`): where all that it
/// reads of the outer side has one value, a row has a partner or has none, and a column of the inner side that equals what is
/// determined is determined. What the inner side's own joins say (`within`) holds for rows that have a partner.
pub(super) fn outer_equalities(on: &Expr, is_inner: &dyn Fn(ColumnId) -> bool, within: &mut Vec<Equality>) {
    let read: Vec<_> =
        on.columns().into_iter().map(|c| ColumnId(c as u32)).filter(|id| !is_inner(*id)).collect();
    for nested in within.iter_mut().filter(|nested| is_inner(nested.column) && !nested.is_plain) {
        nested.others.extend(&read);
    }
    // What is random has a row have a partner one time, and none the other.
    if on.is_volatile() {
        return;
    }
    let from = within.len();
    collect_equalities(on, within);
    let mut own = within.split_off(from);
    own.retain(|equality| is_inner(equality.column));
    own.iter_mut().for_each(|equality| equality.others.extend(&read));
    within.append(&mut own);
}

/// An outer join: if rows that it complements are left out by a condition, it is none.
#[derive(Clone, Debug)]
pub(super) struct OuterJoin {
    /// The columns of its inner side.
    pub inner: Vec<ColumnId>,
    pub on: Expr,
}

/// The columns that are not NULL in rows for which a condition is true. MySQL looks into expressions to see that an outer join is none
/// (`deep`), but for what follows from a key only at columns that stand in conditions as they are.
pub fn not_null_columns(condition: &Expr, deep: bool, into: &mut BTreeSet<ColumnId>) {
    match &condition.kind {
        ExprKind::And(parts) => parts.iter().for_each(|part| not_null_columns(part, deep, into)),
        ExprKind::Or(parts) if deep => {
            let of = |part: &Expr| {
                let mut found = BTreeSet::new();
                not_null_columns(part, deep, &mut found);
                found
            };
            let common =
                parts.iter().map(of).reduce(|one, other| one.intersection(&other).copied().collect());
            into.extend(common.into_iter().flatten());
        }
        ExprKind::Is { expr, test: IsTest::True, negated: false } => not_null_columns(expr, deep, into),
        ExprKind::Is { expr, test: IsTest::False, negated: false }
        | ExprKind::Is { expr, test: IsTest::Null | IsTest::Unknown, negated: true }
        | ExprKind::Not(expr) => tested_columns(expr, deep, into),
        _ => tested_columns(condition, deep, into),
    }
}

/// The columns that make a condition NULL if they are.
fn tested_columns(condition: &Expr, deep: bool, into: &mut BTreeSet<ColumnId>) {
    let mut operand = |expr: &Expr| spreading_columns(expr, deep, into);
    match &condition.kind {
        ExprKind::Compare { op: CompareOp::NullSafeEq, .. } => {}
        ExprKind::Compare { left, right, .. } | ExprKind::Like { expr: left, pattern: right, .. } => {
            operand(left);
            operand(right);
        }
        ExprKind::Between { expr, low, high, negated } => {
            operand(expr);
            if !negated {
                operand(low);
                operand(high);
            }
        }
        ExprKind::InList { expr, .. } => operand(expr),
        _ => operand(condition),
    }
}

/// The columns that make a value NULL if they are.
fn spreading_columns(expr: &Expr, deep: bool, into: &mut BTreeSet<ColumnId>) {
    match &expr.kind {
        ExprKind::Column(index) => {
            into.insert(ColumnId(*index as u32));
        }
        ExprKind::Convert(inner) => spreading_columns(inner, deep, into),
        _ if !deep => {}
        ExprKind::Arith { left, right, .. } | ExprKind::Xor(left, right) => {
            spreading_columns(left, deep, into);
            spreading_columns(right, deep, into);
        }
        ExprKind::Negate(inner) | ExprKind::Not(inner) | ExprKind::Cast(inner) | ExprKind::Collate(inner) => {
            spreading_columns(inner, deep, into);
        }
        ExprKind::Compare { .. }
        | ExprKind::Like { .. }
        | ExprKind::Between { .. }
        | ExprKind::InList { .. } => tested_columns(expr, deep, into),
        _ => {}
    }
}
