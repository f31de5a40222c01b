//! Where another server of MySQL's kin gives values that are converted another meaning. A session that answers in its place refuses
//! what that would answer otherwise, and gives its types where only these differ.

use crate::expr::error::{EvalError, EvalResult};
use crate::expr::typing::{CastTarget, Typer, ValueClass};
use crate::expr::{Expr, ExprKind, Function};
use crate::sql_type::SqlType;

/// Whose answers are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    #[default]
    MySql,
    MariaDb,
}

fn foreign(what: &'static str) -> EvalError {
    EvalError::OtherwiseInMariaDb(what)
}

const fn is_text(class: ValueClass) -> bool {
    matches!(class, ValueClass::Text | ValueClass::Bytes)
}

const fn is_number(class: ValueClass) -> bool {
    matches!(class, ValueClass::Int | ValueClass::Decimal | ValueClass::Double)
}

/// Integers that are members' numbers, or bits, where a number is asked for.
const fn is_coded(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Enum(_) | SqlType::Set(_) | SqlType::Bit { .. })
}

impl Typer {
    pub(super) fn is_of_mariadb(&self) -> bool {
        self.dialect == Dialect::MariaDb
    }

    /// Values that are compared: `list`, if one with several, by IN or CASE.
    pub(super) fn check_compared(&self, exprs: &[Expr], list: bool) -> EvalResult<()> {
        let Some((first, others)) = exprs.split_first().filter(|_| self.is_of_mariadb()) else {
            return Ok(());
        };
        others.iter().try_for_each(|other| check_pair(first, other, list))
    }

    /// A value that is looked for in a subquery's column. What holds NULLs is another thing there where types differ, and in a set
    /// operation.
    pub fn check_membership(&self, needle: &SqlType, column: &SqlType, is_set: bool) -> EvalResult<()> {
        let class = ValueClass::of(needle);
        let is_same = class == ValueClass::of(column)
            && (class != ValueClass::Int || needle.is_unsigned() == column.is_unsigned())
            && !is_coded(needle)
            && !is_coded(column);
        match is_same && !is_set || !self.is_of_mariadb() {
            true => Ok(()),
            false => Err(foreign("a search among values of another type, or of a set operation")),
        }
    }

    /// Alternatives of one result: COALESCE, CASE, UNION.
    pub fn check_alternatives(&self, exprs: &[Expr]) -> EvalResult<()> {
        if !self.is_of_mariadb() {
            return Ok(());
        }
        let class = |expr: &Expr| ValueClass::of(&expr.ty);
        let mut known = exprs.iter().filter(|expr| class(expr) != ValueClass::Null);
        let Some(first) = known.next() else { return Ok(()) };
        let has = |is: fn(&SqlType) -> bool| exprs.iter().any(|expr| is(&expr.ty));
        let are_alike = known.all(|other| {
            let (a, b) = (class(first), class(other));
            a == b || is_number(a) && is_number(b) || is_text(a) && is_text(b)
        });
        let is_single = exprs.windows(2).all(|pair| pair[0].ty == pair[1].ty);
        match are_alike && (is_single || !has(is_coded) && !has(|ty| matches!(ty, SqlType::Float(_)))) {
            true => Ok(()),
            false => Err(foreign("values of several types in one result")),
        }
    }

    /// A test for NULL: there, zero dates of columns that are NOT NULL pass it wherever it stands.
    pub fn check_null_test(&self, expr: &Expr, not_null: bool) -> EvalResult<()> {
        let is_date = matches!(expr.ty, SqlType::Date | SqlType::DateTime { .. } | SqlType::Timestamp { .. });
        match self.is_of_mariadb() && not_null && is_date {
            true => Err(foreign("IS NULL of a date that is NOT NULL")),
            false => Ok(()),
        }
    }

    /// There, a double that was rounded is shown with all of the digits that were asked for.
    pub(super) fn check_rounded(&self, function: Function, args: &[Expr]) -> EvalResult<()> {
        let rounds = matches!(function, Function::Round | Function::Truncate) && args.len() > 1;
        match rounds && self.is_of_mariadb() && ValueClass::of(&args[0].ty) == ValueClass::Double {
            true => Err(foreign("ROUND of a DOUBLE")),
            false => Ok(()),
        }
    }

    /// Values of arithmetic and sums.
    pub fn check_operands<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> EvalResult<()> {
        let is_none = |expr: &Expr| is_coded(&expr.ty) || expr.ty.is_temporal();
        match self.is_of_mariadb() && exprs.into_iter().any(is_none) {
            true => Err(foreign("arithmetic with values that are no numbers")),
            false => Ok(()),
        }
    }

    pub(super) fn check_cast(&self, expr: &Expr, target: CastTarget) -> EvalResult<()> {
        let is_exact = matches!(ValueClass::of(&expr.ty), ValueClass::Int | ValueClass::Decimal);
        let is_integer = matches!(target, CastTarget::Signed | CastTarget::Unsigned);
        match self.is_of_mariadb() && is_integer && (!is_exact || is_coded(&expr.ty)) {
            true => Err(foreign("CAST of what is no exact number")),
            false => Ok(()),
        }
    }
}

fn check_pair(a: &Expr, b: &Expr, list: bool) -> EvalResult<()> {
    use ValueClass as C;
    let (l, r) = (ValueClass::of(&a.ty), ValueClass::of(&b.ty));
    let is_moment = |class| matches!(class, C::Date | C::DateTime | C::Timestamp);
    let is_year = a.ty == SqlType::Year || b.ty == SqlType::Year;
    let is_literal = |expr: &Expr| matches!(expr.kind, ExprKind::Literal(_) | ExprKind::Param(_));
    let agrees = match (l, r) {
        (C::Null, _) | (_, C::Null) => true,
        _ if is_year => !list,
        _ if l == r => true,
        _ if is_number(l) && is_number(r) => true,
        _ if is_text(l) && is_text(r) => true,
        _ if is_moment(l) && is_moment(r) => true,
        _ if is_moment(l) && is_text(r) => is_literal(b),
        _ if is_text(l) && is_moment(r) => is_literal(a),
        _ if is_text(l) && is_number(r) || is_number(l) && is_text(r) => !list,
        _ => false,
    };
    match agrees {
        true => Ok(()),
        false => Err(foreign("a comparison of values of such types")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::Datum;
    use crate::expr::CompareOp;
    use crate::sql_type::Collation;

    fn typer() -> Typer {
        Typer { dialect: Dialect::MariaDb, ..Typer::default() }
    }

    fn column(ty: SqlType) -> Expr {
        Expr::column(0, ty, true)
    }

    fn text() -> SqlType {
        SqlType::VarChar { len: 9, collation: Collation::DEFAULT }
    }

    fn literal(value: &str) -> Expr {
        Expr::literal(Datum::str(value).into_owned(), text())
    }

    #[test]
    fn comparisons_that_differ_are_refused() {
        let number = || Expr::literal(Datum::Int(5), SqlType::BIGINT);
        let compare = |a, b| typer().compare(CompareOp::Eq, a, b).is_ok();
        assert!(compare(column(SqlType::INT), number()));
        assert!(compare(column(SqlType::INT), literal("5")));
        assert!(compare(column(SqlType::Date), literal("2024-01-01")));
        assert!(!compare(column(SqlType::Date), column(text())));
        assert!(!compare(column(SqlType::Time { fsp: 0 }), literal("10:00:00")));
        assert!(!compare(column(SqlType::Date), number()));
        let list = |items| typer().in_list(column(SqlType::INT), items, false).is_ok();
        assert!(list(vec![number(), number()]));
        assert!(!list(vec![number(), literal("5")]));
        assert!(Typer::default().compare(CompareOp::Eq, column(SqlType::Date), number()).is_ok());
    }

    #[test]
    fn types_that_differ_are_given() {
        let year = |typer: Typer| typer.call(Function::Year, vec![column(SqlType::Date)]).map(|call| call.ty);
        assert_eq!(year(typer()), Ok(SqlType::INT));
        assert_eq!(year(Typer::default()), Ok(SqlType::Year));
    }

    #[test]
    fn coded_values_are_no_numbers() {
        let bits = || column(SqlType::Bit { len: 4 });
        assert!(typer().check_operands([&bits()]).is_err());
        assert!(typer().check_alternatives(&[bits(), column(SqlType::INT)]).is_err());
        assert!(typer().check_alternatives(&[bits(), bits()]).is_ok());
        assert!(typer().check_membership(&SqlType::INT, &SqlType::BIGINT_UNSIGNED, false).is_err());
        assert!(typer().check_membership(&SqlType::INT, &SqlType::BIGINT, false).is_ok());
        assert!(typer().check_membership(&SqlType::INT, &SqlType::BIGINT, true).is_err());
    }
}
