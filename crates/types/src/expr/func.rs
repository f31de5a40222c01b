//! What the functions do to one row's values. The function table in `expr::function` refers to these.
//!
//! Arguments arrive converted to the classes that the table names; where a function is strict in NULL it never sees one.

pub(crate) mod clock;
pub(crate) mod digest;
pub(crate) mod interval;
pub(crate) mod math;
pub(crate) mod numeral;
pub(crate) mod regexp;
pub(crate) mod session;
pub(crate) mod string;
pub(crate) mod temporal;
pub(crate) mod text;

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::EvalResult;
use crate::expr::program::CallInfo;

/// Functions that `Typer::call` writes as other expressions have no implementation of their own.
pub(crate) fn rewritten<'a>(_: &mut [Datum<'a>], info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    unreachable!("{} is written as another expression", info.text)
}

/// An integer argument; unsigned ones beyond BIGINT count as its largest.
pub(crate) fn int(value: &Datum<'_>) -> i64 {
    match value {
        Datum::Int(v) => *v,
        Datum::UInt(v) => i64::try_from(*v).unwrap_or(i64::MAX),
        _ => 0,
    }
}

/// A double argument.
pub(crate) fn double(value: &Datum<'_>) -> f64 {
    match value {
        Datum::Double(v) => *v,
        Datum::Float(v) => (*v).into(),
        _ => 0.0,
    }
}

/// The value of a DATETIME or TIME argument, in microseconds.
pub(crate) fn micros(value: &Datum<'_>) -> i64 {
    match value {
        Datum::DateTime(v) | Datum::Time(v) => *v,
        Datum::Date(v) => i64::from(*v) * crate::temporal::DAY,
        _ => 0,
    }
}

/// The argument itself, out of the list.
pub(crate) fn take<'a>(value: &mut Datum<'a>) -> Datum<'a> {
    std::mem::replace(value, Datum::Null)
}
