//! Membership in long lists of constants, which are put in order once and searched for each row. To compare a row with one
//! constant after the other takes as long as the list is, for each of many rows.

use std::cmp::Ordering;
use std::collections::HashSet;

use crate::datum::{Datum, Value};
use crate::expr::program::compare::Comparer;
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::sql_type::Collation;

/// Lists of fewer constants are gone through.
const FEWEST: usize = 8;

/// Constants of one class, without the NULLs among them.
#[derive(Debug)]
pub(crate) enum Members {
    /// By what they are equal by: to compare texts under a collation takes longer than to make one's key.
    Texts {
        collation: Collation,
        keys: HashSet<Box<[u8]>>,
    },
    Sorted {
        by: Comparer,
        values: Box<[Value]>,
    },
}

impl Members {
    /// Of a list's constants, and whether there is a NULL among them; `None` if they are few, or no constants, or do not compare.
    pub fn of(by: Comparer, list: &[Expr]) -> Option<(Self, bool)> {
        if list.len() < FEWEST || matches!(by, Comparer::Json) {
            return None;
        }
        let values: Vec<&Value> = list.iter().map(Expr::as_literal).collect::<Option<_>>()?;
        let given = values.len();
        let mut values: Vec<&Value> = values.into_iter().filter(|value| !value.is_null()).collect();
        let has_null = values.len() < given;
        if !values.iter().all(|value| by.compare(values[0], value).is_some()) {
            return None;
        }
        let members = match by {
            Comparer::Text(collation) => {
                Self::Texts { collation, keys: values.iter().filter_map(|v| key_of(collation, v)).collect() }
            }
            by => {
                values.sort_by(|a, b| by.compare(a, b).unwrap_or(Ordering::Equal));
                Self::Sorted { by, values: values.into_iter().cloned().collect() }
            }
        };
        Some((members, has_null))
    }

    /// Whether a value, which is not NULL, is among them.
    pub fn contains(&self, value: &Datum<'_>) -> bool {
        match self {
            Self::Texts { collation, keys } => {
                key_of(*collation, value).is_some_and(|key| keys.contains(&key))
            }
            Self::Sorted { by, values } => {
                values.binary_search_by(|member| by.compare(member, value).unwrap_or(Ordering::Less)).is_ok()
            }
        }
    }
}

fn key_of(collation: Collation, value: &Datum<'_>) -> Option<Box<[u8]>> {
    let Datum::Str(text) = value else { return None };
    let mut key = Vec::with_capacity(2 * text.len());
    collation.sort_key(text, &mut key);
    Some(key.into())
}

/// Rows of constants of which one equals the row of some expressions: `(a, b) IN ((1, 2), (3, 4), …)`, which is bound as
/// `a = 1 AND b = 2 OR a = 3 AND b = 4 OR …`.
#[derive(Debug)]
pub(crate) struct RowMembers {
    by: Box<[Comparer]>,
    /// Sorted by all columns.
    rows: Box<[Box<[Value]>]>,
}

impl RowMembers {
    /// Of an OR's parts, with the expressions that are compared; `None` if they are something else.
    pub fn of(parts: &[Expr]) -> Option<(Self, Vec<&Expr>)> {
        if parts.len() < FEWEST {
            return None;
        }
        let first = equalities(&parts[0])?;
        let tested: Vec<&Expr> = first.iter().map(|(tested, _)| *tested).collect();
        // They are evaluated for every row, and once only.
        if tested.iter().any(|tested| tested.can_fail() || tested.is_volatile()) {
            return None;
        }
        let comparer = |(tested, value): &(&Expr, &Expr)| Comparer::of_all(&[tested.ty, value.ty]);
        let by: Box<[Comparer]> = first.iter().map(comparer).collect();
        let mut rows = Vec::with_capacity(parts.len());
        for part in parts {
            let equalities = equalities(part)?;
            let alike = |(at, equality): (usize, &(&Expr, &Expr))| {
                equality.0 == tested[at] && comparer(equality) == by[at]
            };
            if equalities.len() != tested.len() || !equalities.iter().enumerate().all(alike) {
                return None;
            }
            rows.push(
                equalities.into_iter().map(|(_, value)| value.as_literal()).collect::<Option<Vec<_>>>()?,
            );
        }
        let is_comparable = |row: &Vec<&Value>| {
            let mut values = row.iter().zip(&rows[0]).zip(&by);
            values.all(|((value, first), by)| *by != Comparer::Json && by.compare(first, value).is_some())
        };
        if !rows.iter().all(is_comparable) {
            return None;
        }
        rows.sort_by(|a, b| order(&by, a.iter().zip(b).map(|(a, b)| (*a, *b))));
        let rows = rows.into_iter().map(|row| row.into_iter().cloned().collect()).collect();
        Some((Self { by, rows }, tested))
    }

    /// Whether a row is among them, three-valued.
    pub fn contains(&self, row: &[Datum<'_>]) -> Option<bool> {
        if row.iter().any(Datum::is_null) {
            // NULL is unlike what differs elsewhere.
            let may_equal = |member: &[Value]| {
                let mut values = member.iter().zip(row).zip(&self.by);
                values.all(|((a, b), by)| b.is_null() || by.compare(a, b) == Some(Ordering::Equal))
            };
            return if self.rows.iter().any(|member| may_equal(member)) { None } else { Some(false) };
        }
        let found = self.rows.binary_search_by(|member| order(&self.by, member.iter().zip(row)));
        Some(found.is_ok())
    }
}

fn order<'v>(by: &[Comparer], pairs: impl Iterator<Item = (&'v Value, &'v Datum<'v>)>) -> Ordering {
    let mut orders = by.iter().zip(pairs).map(|(by, (a, b))| by.compare(a, b).unwrap_or(Ordering::Less));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// `a = 1 AND b = 2` as what is compared with constants.
fn equalities<'e>(expr: &'e Expr) -> Option<Vec<(&'e Expr, &'e Expr)>> {
    let ExprKind::And(parts) = &expr.kind else { return None };
    let equality = |part: &'e Expr| match &part.kind {
        ExprKind::Compare { op: CompareOp::Eq, left, right }
            if left.as_literal().is_none() && right.as_literal().is_some_and(|value| !value.is_null()) =>
        {
            Some((&**left, &**right))
        }
        _ => None,
    };
    parts.iter().map(equality).collect()
}
