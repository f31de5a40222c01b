//! The conditions of a statement that an index can serve: a column of one table against what is known of the others.

use std::slice::from_ref;
use std::sync::LazyLock;

use avocet_types::expr::{CompareOp, Expr, ExprKind, IsTest, ValueClass};
use avocet_types::{Datum, Decimal, IntWidth, SqlType};

use super::Columns;
use super::domain::comparable;

/// A condition on one column that an index may serve.
#[derive(Clone)]
pub struct Condition<'e> {
    pub at: usize,
    pub column: usize,
    pub test: Test<'e>,
    /// The keys say all of it.
    pub exact: bool,
}

impl Condition<'_> {
    /// Whether an equality leaves one value of a column of that type. As doubles, several large integers or decimals are equal.
    pub fn is_one_value(&self, column: &SqlType) -> bool {
        match &self.test {
            Test::Eq { value, .. } if !self.exact => match value.as_literal() {
                Some(Datum::Double(v)) => column.is_integer() && v.abs() < 2f64.powi(53),
                // Of a parameter, or another table's column, only the type is known.
                _ if ValueClass::of(&value.ty) == ValueClass::Double && may_be_large(column) => false,
                _ => !matches!(column, SqlType::Decimal { .. }),
            },
            Test::Eq { .. } | Test::IsNull => true,
            _ => false,
        }
    }
}

/// Whether a column has integers that are no doubles.
fn may_be_large(column: &SqlType) -> bool {
    let is_small = matches!(column, SqlType::Int { width, .. } if *width != IntWidth::W64);
    ValueClass::of(column) == ValueClass::Int && !is_small
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
    /// Neither NULL nor any of these.
    Not(&'e [Expr]),
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

    /// Whether it limits a range from below.
    pub fn is_lower(&self) -> bool {
        matches!(self, Self::Between { .. } | Self::Range { op: CompareOp::Gt | CompareOp::Ge, .. })
    }

    /// Whether it limits a range from above.
    pub fn is_upper(&self) -> bool {
        matches!(self, Self::Between { .. } | Self::Range { op: CompareOp::Lt | CompareOp::Le, .. })
    }

    /// Whether it can be told of a single value's key.
    pub fn is_limit(&self) -> bool {
        matches!(
            self,
            Self::Range { .. }
                | Self::Between { .. }
                | Self::Not(_)
                | Self::In(_)
                | Self::Eq { null_safe: false, .. }
        )
    }
}

/// A list of NOT IN may have so many values, each of which divides a range.
const MAX_LEFT_OUT: usize = 1_000;

/// The conditions on columns of `table` whose other side is known once the rows of `bound` tables are.
pub fn conditions<'e>(
    scope: &dyn Columns,
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
    scope: &dyn Columns,
    table: usize,
    bound: u32,
    conjunct: &'e Expr,
) -> Option<(usize, bool, Test<'e>)> {
    let visit = Visit { scope, table, bound };
    match &conjunct.kind {
        ExprKind::Compare { op, left, right } => {
            [(left, right, *op), (right, left, op.flipped())].into_iter().find_map(|(side, value, op)| {
                let (column, exact) = column_of(scope, table, side)?;
                if !visit.has(column, side, value) {
                    return None;
                }
                let test = match op {
                    CompareOp::Eq => Test::Eq { value, null_safe: false },
                    CompareOp::NullSafeEq => Test::Eq { value, null_safe: true },
                    // Nearly all rows: of use beside what else a statement says, not to look rows up for others.
                    CompareOp::Ne if bound == 0 => Test::Not(from_ref(&**value)),
                    CompareOp::Ne => return None,
                    op => Test::Range { op, value },
                };
                Some((column, exact, test))
            })
        }
        ExprKind::InList { expr, list, negated } => {
            let (column, exact) = column_of(scope, table, expr)?;
            let is_known = list.iter().all(|v| visit.has(column, expr, v));
            match negated {
                _ if !is_known => None,
                false => Some((column, exact, Test::In(list))),
                true => {
                    (bound == 0 && list.len() <= MAX_LEFT_OUT).then_some((column, exact, Test::Not(list)))
                }
            }
        }
        ExprKind::Between { expr, low, high, negated: false } => {
            let (column, exact) = column_of(scope, table, expr)?;
            let is_known = visit.has(column, expr, low) && visit.has(column, expr, high);
            is_known.then_some((column, exact, Test::Between { low, high }))
        }
        ExprKind::Is { expr, test: IsTest::Null, negated } => {
            let (column, exact) = column_of(scope, table, expr)?;
            match negated {
                _ if !exact => None,
                false => Some((column, exact, Test::IsNull)),
                true => (bound == 0 && expr.nullable).then_some((column, exact, Test::Not(&[]))),
            }
        }
        ExprKind::Like { expr, pattern, escape, negated: false } => {
            let (column, exact) = column_of(scope, table, expr)?;
            let is_open = match pattern.as_literal() {
                Some(Datum::Str(text)) => literal_prefix(text, *escape).0.is_empty(),
                literal => literal.is_some(),
            };
            let usable = exact && !is_open && visit.has(column, expr, pattern);
            usable.then_some((column, false, Test::Like { pattern, escape: *escape }))
        }
        // A number by itself is true unless it is 0.
        ExprKind::Column(_) if bound == 0 => {
            let (column, exact) = column_of(scope, table, conjunct)?;
            Some((column, exact, Test::Not(from_ref(zero(&conjunct.ty)?))))
        }
        ExprKind::Not(inner) => {
            let (column, exact) = column_of(scope, table, inner).filter(|(_, exact)| *exact)?;
            Some((column, exact, Test::Eq { value: zero(&inner.ty)?, null_safe: false }))
        }
        _ => None,
    }
}

/// A table that is visited when the rows of the `bound` tables are known.
struct Visit<'s> {
    scope: &'s dyn Columns,
    table: usize,
    bound: u32,
}

impl Visit<'_> {
    /// Whether a value is known that a column is compared with as `met`, and can be looked up among the column's own.
    fn has(&self, column: usize, met: &Expr, value: &Expr) -> bool {
        let Some(ty) = self.scope.stored_type(self.table, column) else { return false };
        comparable(&ty, &met.ty, &value.ty) && self.scope.uses_only(value, self.bound) && !value.is_volatile()
    }
}

/// `column NOT BETWEEN low AND high` as the two conditions of which one holds.
pub fn outside<'e>(
    scope: &dyn Columns,
    table: usize,
    bound: u32,
    at: usize,
    conjunct: &'e Expr,
) -> Option<[Condition<'e>; 2]> {
    let ExprKind::Between { expr, low, high, negated: true } = &conjunct.kind else { return None };
    let (column, exact) = column_of(scope, table, expr)?;
    let visit = Visit { scope, table, bound };
    let side = |op, value: &'e Expr| {
        let condition = Condition { at, column, test: Test::Range { op, value }, exact };
        visit.has(column, expr, value).then_some(condition)
    };
    Some([side(CompareOp::Lt, low)?, side(CompareOp::Gt, high)?])
}

/// 0 as a number of the same class.
fn zero(ty: &SqlType) -> Option<&'static Expr> {
    static ZEROS: LazyLock<[Expr; 3]> = LazyLock::new(|| {
        let decimal = SqlType::Decimal { precision: 1, scale: 0, unsigned: false };
        [
            Expr::literal(Datum::Int(0), SqlType::BIGINT),
            Expr::literal(Datum::Decimal(Decimal::new(0, 0)), decimal),
            Expr::literal(Datum::Double(0.0), SqlType::DOUBLE),
        ]
    });
    match ValueClass::of(ty) {
        ValueClass::Int => Some(&ZEROS[0]),
        ValueClass::Decimal => Some(&ZEROS[1]),
        ValueClass::Double => Some(&ZEROS[2]),
        _ => None,
    }
}

/// The same condition with NOT before single tests alone, by De Morgan's laws, so that indexes may serve them.
pub fn without_not(expr: Expr) -> Expr {
    let Expr { kind, ty, nullable } = expr;
    let all = |parts: Vec<Expr>| parts.into_iter().map(without_not).collect();
    match kind {
        ExprKind::And(parts) => Expr::new(ExprKind::And(all(parts)), ty, nullable),
        ExprKind::Or(parts) => Expr::new(ExprKind::Or(all(parts)), ty, nullable),
        ExprKind::Not(inner) if inner.is_truth() => negated(*inner),
        kind => Expr { kind, ty, nullable },
    }
}

/// `NOT expr` of what is 0, 1 or NULL.
fn negated(expr: Expr) -> Expr {
    let Expr { kind, ty, nullable } = expr;
    let all = |parts: Vec<Expr>| parts.into_iter().map(negated).collect();
    let kind = match kind {
        ExprKind::And(parts) => ExprKind::Or(all(parts)),
        ExprKind::Or(parts) => ExprKind::And(all(parts)),
        ExprKind::Not(inner) if inner.is_truth() => return without_not(*inner),
        ExprKind::Compare { op, left, right } if op.negated().is_some() => {
            ExprKind::Compare { op: op.negated().unwrap_or(op), left, right }
        }
        ExprKind::Is { expr, test, negated } => ExprKind::Is { expr, test, negated: !negated },
        ExprKind::Between { expr, low, high, negated } => {
            ExprKind::Between { expr, low, high, negated: !negated }
        }
        ExprKind::InList { expr, list, negated } => ExprKind::InList { expr, list, negated: !negated },
        ExprKind::Like { expr, pattern, escape, negated } => {
            ExprKind::Like { expr, pattern, escape, negated: !negated }
        }
        kind => ExprKind::Not(Box::new(Expr { kind, ty, nullable })),
    };
    Expr::new(kind, SqlType::BIGINT, nullable)
}

/// The column of the table that the expression is, and whether that is compared as it is: without a conversion, or with one
/// that keeps every value apart.
fn column_of(scope: &dyn Columns, table: usize, expr: &Expr) -> Option<(usize, bool)> {
    let (id, exact) = match &expr.kind {
        ExprKind::Column(id) => (*id, true),
        ExprKind::Convert(inner) => match inner.kind {
            ExprKind::Column(id) => (id, keeps_apart(&inner.ty, &expr.ty)),
            _ => return None,
        },
        _ => return None,
    };
    let (of, column) = scope.place(id)?;
    (of == table).then_some((column, exact))
}

/// Whether a conversion between the types gives every value one of its own, in the same order.
fn keeps_apart(from: &SqlType, to: &SqlType) -> bool {
    (from.is_integer() || from.is_coded()) && matches!(to, SqlType::Decimal { .. })
}

/// What a LIKE pattern begins with before its first wildcard, and whether that is all of it.
pub fn literal_prefix(pattern: &str, escape: Option<char>) -> (String, bool) {
    let mut prefix = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            c if Some(c) == escape => prefix.extend(chars.next()),
            '%' | '_' => return (prefix, false),
            c => prefix.push(c),
        }
    }
    (prefix, true)
}

/// All of them; `None` of none.
pub fn conjunction(mut tests: Vec<Expr>) -> Option<Expr> {
    match tests.len() {
        0 => None,
        1 => tests.pop(),
        _ => Some(Expr::new(ExprKind::And(tests), SqlType::BIGINT, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_at_wildcards() {
        assert_eq!(literal_prefix("ab%c", Some('\\')), ("ab".to_owned(), false));
        assert_eq!(literal_prefix("a\\%b_", Some('\\')), ("a%b".to_owned(), false));
        assert_eq!(literal_prefix("a\\_b", Some('\\')), ("a_b".to_owned(), true));
        assert_eq!(literal_prefix("%a", None), (String::new(), false));
    }
}
