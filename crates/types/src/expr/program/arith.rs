//! Arithmetic on values. Every result is checked against its type: error 1690 where MySQL raises it.

use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::expr::ArithOp;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};

#[cold]
pub(crate) fn out_of_range(kind: &'static str, text: &str) -> EvalError {
    EvalError::OutOfRange { kind, expr: text.to_owned() }
}

/// Signed integers. `None` is a division by zero.
#[inline]
pub(crate) fn signed_op(
    op: ArithOp,
    left: i64,
    right: i64,
    text: &str,
    ctx: &EvalContext,
) -> EvalResult<Option<i64>> {
    let result = match op {
        ArithOp::Add => left.checked_add(right),
        ArithOp::Sub => left.checked_sub(right),
        ArithOp::Mul => left.checked_mul(right),
        _ if right == 0 => return ctx.division_by_zero().map(|()| None),
        ArithOp::Div | ArithOp::IntDiv => left.checked_div(right),
        // i64::MIN % −1 is 0, although Rust's checked_rem calls it an overflow.
        ArithOp::Mod => Some(left.wrapping_rem(right)),
    };
    result.map(Some).ok_or_else(|| out_of_range("BIGINT", text))
}

/// An integer of either sign; `None` for NULL.
#[inline]
pub(crate) fn int_value(value: &Datum<'_>) -> Option<i128> {
    match value {
        Datum::Int(v) => Some((*v).into()),
        Datum::UInt(v) => Some((*v).into()),
        _ => None,
    }
}

/// Integers of any signs.
pub(crate) fn int_op(
    op: ArithOp,
    left: &Datum<'_>,
    right: &Datum<'_>,
    unsigned: bool,
    text: &str,
    ctx: &EvalContext,
) -> EvalResult<Datum<'static>> {
    // DIV of decimals gives an integer too.
    if let (Datum::Decimal(left), Datum::Decimal(right)) = (left, right) {
        return decimal_int_div(left, right, unsigned, text, ctx);
    }
    let (Some(left), Some(right)) = (int_value(left), int_value(right)) else {
        return Ok(Datum::Null);
    };
    let result = match op {
        ArithOp::Add => left + right,
        ArithOp::Sub => left - right,
        // |left|, |right| < 2^64, and an i128 holds 127 bits of a product: saturating keeps it out of range.
        ArithOp::Mul => left.saturating_mul(right),
        _ if right == 0 => return ctx.division_by_zero().map(|()| Datum::Null),
        ArithOp::Div | ArithOp::IntDiv => left / right,
        ArithOp::Mod => left % right,
    };
    int_datum(result, unsigned).ok_or_else(|| out_of_range(int_kind(unsigned), text))
}

pub(crate) const fn int_kind(unsigned: bool) -> &'static str {
    if unsigned { "BIGINT UNSIGNED" } else { "BIGINT" }
}

/// An integer as a BIGINT [UNSIGNED], if it is in range.
pub(crate) fn int_datum(value: i128, unsigned: bool) -> Option<Datum<'static>> {
    match unsigned {
        true => value.try_into().ok().map(Datum::UInt),
        false => value.try_into().ok().map(Datum::Int),
    }
}

fn decimal_int_div(
    left: &Decimal,
    right: &Decimal,
    unsigned: bool,
    text: &str,
    ctx: &EvalContext,
) -> EvalResult<Datum<'static>> {
    let range = || out_of_range(int_kind(unsigned), text);
    match left.int_div(right).map_err(|_| range())? {
        None => ctx.division_by_zero().map(|()| Datum::Null),
        Some(quotient) => quotient.as_i128().and_then(|v| int_datum(v, unsigned)).ok_or_else(range),
    }
}

/// Decimals; the result has `scale` digits after the point. `None` is a division by zero.
#[inline]
pub(crate) fn decimal_op(
    op: ArithOp,
    left: &Decimal,
    right: &Decimal,
    scale: u8,
    text: &str,
    ctx: &EvalContext,
) -> EvalResult<Option<Decimal>> {
    let range = |_| out_of_range("DECIMAL", text);
    let exact = match op {
        ArithOp::Add => left.add(right),
        ArithOp::Sub => left.sub(right),
        ArithOp::Mul => left.mul(right),
        ArithOp::Div | ArithOp::IntDiv => match left.div(right, scale).map_err(range)? {
            Some(quotient) => Ok(quotient),
            None => return ctx.division_by_zero().map(|()| None),
        },
        ArithOp::Mod => match left.rem(right) {
            Some(rest) => Ok(rest),
            None => return ctx.division_by_zero().map(|()| None),
        },
    };
    // As in MySQL, results may have more than 65 digits; an `i256` has room for 76.
    exact.and_then(|v| if v.scale() == scale { Ok(v) } else { v.rescale(scale) }).map(Some).map_err(range)
}

/// Doubles. `None` is a division by zero.
#[inline]
pub(crate) fn double_op(
    op: ArithOp,
    left: f64,
    right: f64,
    text: &str,
    ctx: &EvalContext,
) -> EvalResult<Option<f64>> {
    let result = match op {
        ArithOp::Add => left + right,
        ArithOp::Sub => left - right,
        ArithOp::Mul => left * right,
        _ if right == 0.0 => return ctx.division_by_zero().map(|()| None),
        ArithOp::Div => left / right,
        ArithOp::IntDiv => (left / right).trunc(),
        ArithOp::Mod => left % right,
    };
    if result.is_finite() { Ok(Some(result)) } else { Err(out_of_range("DOUBLE", text)) }
}

pub(crate) fn negate<'a>(value: Datum<'a>, text: &str) -> EvalResult<Datum<'a>> {
    Ok(match value {
        Datum::Int(v) => Datum::Int(v.checked_neg().ok_or_else(|| out_of_range("BIGINT", text))?),
        Datum::UInt(v) => {
            let negative = int_datum(-i128::from(v), false);
            negative.ok_or_else(|| out_of_range("BIGINT", text))?
        }
        Datum::Decimal(v) => Datum::Decimal(v.neg()),
        Datum::Double(v) => Datum::Double(-v),
        Datum::Float(v) => Datum::Double(-f64::from(v)),
        other => other,
    })
}
