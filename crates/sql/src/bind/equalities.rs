//! Equalities that the conditions of a block ask for, and the columns that follow from each.

use avocet_types::expr::{CompareOp, Expr, ExprKind};

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
    let from = within.len();
    collect_equalities(on, within);
    let mut own = within.split_off(from);
    own.retain(|equality| is_inner(equality.column));
    own.iter_mut().for_each(|equality| equality.others.extend(&read));
    within.append(&mut own);
}
