//! The conditions of a statement that an index can serve: a column of one table against what is known of the others.

use avocet_types::Datum;
use avocet_types::expr::{CompareOp, Expr, ExprKind, IsTest};

use super::domain::comparable;
use super::scope::Scope;

/// A condition on one column that an index may serve.
#[derive(Clone)]
pub struct Condition<'e> {
    pub at: usize,
    pub column: usize,
    pub test: Test<'e>,
    /// The keys say all of it.
    pub exact: bool,
}

#[derive(Clone)]
pub enum Test<'e> {
    Eq {
        value: &'e Expr,
        null_safe: bool,
    },
    In(&'e [Expr]),
    IsNull,
    Range {
        op: CompareOp,
        value: &'e Expr,
    },
    Between {
        low: &'e Expr,
        high: &'e Expr,
    },
    /// What the strings begin with is what this pattern does, before its first wildcard.
    Like {
        pattern: &'e Expr,
        escape: Option<char>,
    },
}

impl Test<'_> {
    pub fn is_equality(&self) -> bool {
        matches!(self, Self::Eq { .. } | Self::In(_) | Self::IsNull)
    }
}

/// The conditions on columns of `table` whose other side is known once the rows of `bound` tables are.
pub fn conditions<'e>(
    scope: &Scope,
    table: usize,
    bound: u32,
    conjuncts: impl IntoIterator<Item = (usize, &'e Expr)>,
) -> Vec<Condition<'e>> {
    let mut found = Vec::new();
    for (at, conjunct) in conjuncts {
        let Some((column, exact, test)) = condition(scope, table, bound, conjunct) else { continue };
        found.push(Condition { at, column, test, exact });
    }
    found
}

fn condition<'e>(
    scope: &Scope,
    table: usize,
    bound: u32,
    conjunct: &'e Expr,
) -> Option<(usize, bool, Test<'e>)> {
    let handle = scope.tables[table].stored()?;
    let is_known = |column: usize, met: &Expr, value: &Expr| {
        let ty = &handle.def.columns[column].ty;
        comparable(ty, &met.ty, &value.ty) && scope.uses_only(value, bound) && !value.is_volatile()
    };
    match &conjunct.kind {
        ExprKind::Compare { op, left, right } if *op != CompareOp::Ne => {
            [(left, right, *op), (right, left, op.flipped())].into_iter().find_map(|(side, value, op)| {
                let (column, exact) = column_of(scope, table, side)?;
                if !is_known(column, side, value) {
                    return None;
                }
                let test = match op {
                    CompareOp::Eq => Test::Eq { value, null_safe: false },
                    CompareOp::NullSafeEq => Test::Eq { value, null_safe: true },
                    op => Test::Range { op, value },
                };
                Some((column, exact, test))
            })
        }
        ExprKind::InList { expr, list, negated: false } => {
            let (column, exact) = column_of(scope, table, expr)?;
            list.iter().all(|v| is_known(column, expr, v)).then_some((column, exact, Test::In(list)))
        }
        ExprKind::Between { expr, low, high, negated: false } => {
            let (column, exact) = column_of(scope, table, expr)?;
            let known = is_known(column, expr, low) && is_known(column, expr, high);
            known.then_some((column, exact, Test::Between { low, high }))
        }
        ExprKind::Is { expr, test: IsTest::Null, negated: false } => {
            let (column, exact) = column_of(scope, table, expr)?;
            exact.then_some((column, exact, Test::IsNull))
        }
        ExprKind::Like { expr, pattern, escape, negated: false } => {
            let (column, exact) = column_of(scope, table, expr)?;
            let is_open = match pattern.as_literal() {
                Some(Datum::Str(text)) => literal_prefix(text, *escape).is_empty(),
                literal => literal.is_some(),
            };
            let usable = exact && !is_open && is_known(column, expr, pattern);
            usable.then_some((column, false, Test::Like { pattern, escape: *escape }))
        }
        _ => None,
    }
}

/// The column of the table that the expression is, and whether it is that without conversion.
fn column_of(scope: &Scope, table: usize, expr: &Expr) -> Option<(usize, bool)> {
    let (id, exact) = match &expr.kind {
        ExprKind::Column(id) => (*id, true),
        ExprKind::Convert(inner) => match inner.kind {
            ExprKind::Column(id) => (id, false),
            _ => return None,
        },
        _ => return None,
    };
    let (of, column) = scope.place(id)?;
    (of == table).then_some((column, exact))
}

/// What a LIKE pattern begins with before its first wildcard.
pub fn literal_prefix(pattern: &str, escape: Option<char>) -> String {
    let mut prefix = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            c if Some(c) == escape => prefix.extend(chars.next()),
            '%' | '_' => break,
            c => prefix.push(c),
        }
    }
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_at_wildcards() {
        assert_eq!(literal_prefix("ab%c", Some('\\')), "ab");
        assert_eq!(literal_prefix("a\\%b_", Some('\\')), "a%b");
        assert_eq!(literal_prefix("%a", None), "");
    }
}
