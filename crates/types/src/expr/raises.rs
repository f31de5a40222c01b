//! Which expressions can raise an error or a warning for some row: what such a one stands behind in an AND or OR has to be looked at
//! first.
//!
//! Narrower than [`Expr::can_fail`], which costly and random ones belong to as well: what is not told apart here is evaluated row by
//! row with all that stands before it.

use super::{ArithOp, Expr, ExprKind, Function, UnitFunction};
use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::sql_type::SqlType;

impl Expr {
    /// Whether evaluating it can raise an error or a warning.
    pub fn can_raise(&self) -> bool {
        self.any(&mut |expr| expr.raises_itself())
    }

    fn raises_itself(&self) -> bool {
        match &self.kind {
            ExprKind::Arith { op, left, right } => arithmetic_raises(*op, left, right, &self.ty),
            ExprKind::Negate(inner) => inner.ty.is_integer() && magnitude(&inner.ty) >= INT,
            ExprKind::Call(function, args) => call_raises(*function, args),
            // EXTRACT reads texts and numbers itself.
            ExprKind::UnitCall { function: UnitFunction::Extract, args, .. } => !args[0].ty.is_temporal(),
            ExprKind::UnitCall { .. } => true,
            _ => self.fails_itself(),
        }
    }
}

/// What a BIGINT holds, rounded up: what comes to as much may be beyond it.
const INT: f64 = i64::MAX as f64;

/// The largest absolute value of an integer type; of others infinite.
fn magnitude(ty: &SqlType) -> f64 {
    ty.int_range().map_or(f64::INFINITY, |(least, most)| (most as f64).max(-(least as f64)))
}

fn arithmetic_raises(op: ArithOp, left: &Expr, right: &Expr, result: &SqlType) -> bool {
    let of_value = |expr: &Expr| match expr.as_literal() {
        Some(Datum::Int(value)) => value.unsigned_abs() as f64,
        _ => magnitude(&expr.ty),
    };
    let digits = |ty: &SqlType| match *ty {
        SqlType::Decimal { precision, scale, .. } => (precision - scale, scale),
        _ => (20, 0),
    };
    let ((left_digits, left_scale), (right_digits, right_scale)) = (digits(&left.ty), digits(&right.ty));
    match (op, result) {
        (ArithOp::Add | ArithOp::Sub | ArithOp::Mul, SqlType::Int { unsigned: false, .. }) => {
            let (left, right) = (of_value(left), of_value(right));
            let most = if op == ArithOp::Mul { left * right } else { left + right };
            most >= INT
        }
        (ArithOp::Add | ArithOp::Sub, SqlType::Decimal { unsigned: false, .. }) => {
            left_digits.max(right_digits) + left_scale.max(right_scale) >= Decimal::MAX_PRECISION
        }
        (ArithOp::Mul, SqlType::Decimal { unsigned: false, .. }) => {
            left_digits + left_scale + right_digits + right_scale > Decimal::MAX_PRECISION
        }
        // Of an exact number, and not by zero.
        (ArithOp::Div | ArithOp::Mod, SqlType::Decimal { unsigned: false, .. } | SqlType::Int { .. }) => {
            !right.as_literal().is_some_and(|by| match by {
                Datum::Int(by) => *by > 0,
                Datum::Decimal(by) => by.to_f64() >= 1.0,
                _ => false,
            })
        }
        _ => true,
    }
}

fn call_raises(function: Function, args: &[Expr]) -> bool {
    use Function as F;
    match function {
        F::Left
        | F::Right
        | F::Substring
        | F::Lower
        | F::Upper
        | F::Length
        | F::CharLength
        | F::Locate
        | F::Instr
        | F::DayOfWeek
        | F::DayOfYear
        | F::WeekDay
        | F::Hour
        | F::Minute
        | F::Second
        | F::Sign
        | F::Floor
        | F::Ceil => false,
        // These read texts and numbers themselves.
        F::Year | F::Quarter | F::Month | F::DayOfMonth => {
            args.first().is_none_or(|date| !date.ty.is_temporal())
        }
        // A path that is no literal may be none.
        F::JsonExtract | F::JsonUnquote => {
            args.first().is_none_or(|document| document.ty != SqlType::Json)
                || args.iter().skip(1).any(|path| path.as_literal().is_none())
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Typer;
    use crate::sql_type::{Collation, IntWidth};

    fn column(ty: SqlType) -> Expr {
        Expr::column(0, ty, true)
    }

    #[test]
    fn arithmetic_raises_where_its_type_can_overflow() {
        let typer = Typer::default();
        let arith =
            |op, left: &Expr, right: &Expr| typer.arith(op, left.clone(), right.clone()).unwrap().can_raise();
        let small = column(SqlType::INT);
        let large = column(SqlType::BIGINT);
        let tiny = column(SqlType::Int { width: IntWidth::W8, unsigned: false });
        let two = Expr::literal(Datum::Int(2), SqlType::BIGINT);
        let zero = Expr::literal(Datum::Int(0), SqlType::BIGINT);
        assert!(!arith(ArithOp::Add, &small, &small) && !arith(ArithOp::Mul, &small, &tiny));
        assert!(!arith(ArithOp::Mul, &small, &two) && arith(ArithOp::Mul, &large, &two));
        assert!(!arith(ArithOp::Mod, &small, &two) && arith(ArithOp::Mod, &small, &zero));
        assert!(arith(ArithOp::Mod, &small, &tiny) && arith(ArithOp::Div, &small, &tiny));
        let price = column(SqlType::Decimal { precision: 15, scale: 2, unsigned: false });
        let wide = column(SqlType::Decimal { precision: 65, scale: 2, unsigned: false });
        assert!(!arith(ArithOp::Mul, &price, &price) && arith(ArithOp::Mul, &price, &wide));
        assert!(!arith(ArithOp::Sub, &price, &small) && arith(ArithOp::Sub, &price, &wide));
        let negated = |expr: &Expr| typer.negate(expr.clone()).can_raise();
        assert!(negated(&large) && !negated(&small) && !negated(&price));
        let real = column(SqlType::DOUBLE);
        assert!(arith(ArithOp::Mul, &real, &real));
    }

    #[test]
    fn a_text_that_is_to_be_a_number_raises() {
        let typer = Typer::default();
        let text = column(SqlType::VarChar { len: 20, collation: Collation::DEFAULT });
        assert!(!text.can_raise());
        assert!(typer.convert(text.clone(), SqlType::DOUBLE).can_raise());
        let part =
            typer.call(Function::Left, vec![text, Expr::literal(Datum::Int(2), SqlType::BIGINT)]).unwrap();
        assert!(!part.can_raise());
    }
}
