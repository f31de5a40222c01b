//! What the functions do to one row's values. The function table in `expr::function` refers to these.
//!
//! Arguments arrive converted to the classes that the table names; where a function is strict in NULL it never sees one.

pub(crate) mod aes;
pub(crate) mod bits;
pub(crate) mod clock;
pub(crate) mod digest;
pub(crate) mod gtid;
pub(crate) mod host;
pub(crate) mod inet;
pub(crate) mod interval;
pub mod json;
mod locale;
pub(crate) mod math;
pub(crate) mod numeral;
pub(crate) mod regexp;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod spatial;
pub(crate) mod string;
pub(crate) mod temporal;
pub(crate) mod text;
pub(crate) mod units;
pub(crate) mod uuid;
pub(crate) mod variables;
pub(crate) mod xml;

use crate::convert::{ConvertContext, store};
use crate::datum::Datum;
use crate::expr::context::{EvalContext, Warning};
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::program::CallInfo;
use crate::temporal::date_of;

/// Functions that `Typer::call` writes as other expressions have no implementation of their own.
pub(crate) fn rewritten<'a>(_: &mut [Datum<'a>], info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    unreachable!("{} is written as another expression", info.text)
}

/// Whether a subquery has the one row that it is counted to have; error 1242 for more.
pub(crate) fn at_most_one<'a>(
    args: &mut [Datum<'a>],
    _: &CallInfo,
    _: &EvalContext,
) -> EvalResult<Datum<'a>> {
    match int(&args[0]) {
        count @ ..=1 => Ok(Datum::Int(count)),
        _ => Err(EvalError::SubqueryRows),
    }
}

/// ANY_VALUE of one row.
pub(crate) fn any_value<'a>(args: &mut [Datum<'a>], _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(take(&mut args[0]))
}

/// A value as a column of the result's type keeps it; the second argument is the column's name.
pub(crate) fn stored<'a>(
    args: &mut [Datum<'a>],
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let today = date_of(ctx.local_now_micros());
    let context = ConvertContext {
        strict: ctx.sql_mode.is_strict(),
        zone: ctx.time_zone,
        today,
        excess_digits: ctx.sql_mode.excess_digits(),
        zero_dates: ctx.sql_mode.zero_dates(),
    };
    let column = || text::chars(&args[1]).to_owned();
    match store(args[0].clone(), &info.arg_types[0], &info.ty, &context) {
        Err(problem) => Err(EvalError::Stored { problem, column: column() }),
        Ok(stored) => {
            if let Some(problem) = stored.warning {
                for (errno, message, note) in problem.warnings(&column(), 1, ctx.sql_mode.is_strict()) {
                    ctx.push_warning(Warning { errno, message, note });
                }
            }
            Ok(stored.value)
        }
    }
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
