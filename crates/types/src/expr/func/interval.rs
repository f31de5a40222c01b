//! Functions with an interval unit: DATE_ADD and DATE_SUB in all spellings, EXTRACT, TIMESTAMPADD, TIMESTAMPDIFF.

use crate::datum::Datum;
use crate::expr::coerce::{DateOfNumber, kind_of_text, number_of_moment, to_text_or_bytes};
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::temporal::extract;
use crate::expr::func::text::{bytes, from_buffer};
use crate::expr::func::{int, micros};
use crate::expr::program::{CallInfo, reborrow};
use crate::expr::{IntervalUnit, UnitFunction};
use crate::sql_type::SqlType;
use crate::temporal::{
    self, DAY, Interval, SECOND, ZeroDates, add_interval, add_interval_to_time, date_of, has_zero_date,
    timestamp_diff,
};

pub(crate) fn call<'a>(
    function: UnitFunction,
    unit: IntervalUnit,
    args: &[Datum<'a>],
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    match function {
        UnitFunction::Extract => extract(&args[0], unit, info, ctx),
        UnitFunction::TimestampDiff => {
            let (from, to) = (micros(&args[0]), micros(&args[1]));
            if has_zero_date(from) || has_zero_date(to) {
                return Ok(Datum::Null);
            }
            Ok(Datum::Int(timestamp_diff(unit, from, to)))
        }
        UnitFunction::DateAdd | UnitFunction::TimestampAdd | UnitFunction::DateSub => {
            let Some(interval) = interval_of(&args[1], unit) else { return Ok(Datum::Null) };
            let interval = if function == UnitFunction::DateSub { -interval } else { interval };
            add(&args[0], interval, unit, info, ctx)
        }
    }
}

/// How much of `unit`; `None` for a text that gives more numbers than the unit has.
pub fn interval_of(value: &Datum<'_>, unit: IntervalUnit) -> Option<Interval> {
    Some(match value {
        Datum::Decimal(v) => {
            // What is less than a microsecond is cut off.
            let micros = v.truncate(6).rescale(6).ok()?.as_i128()?;
            Interval::of_seconds(micros.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
        }
        Datum::Str(_) | Datum::Bytes(_) => Interval::parse(unit, bytes(value))?,
        // MySQL reads it as a signed number: 2^64 - 1 days are a day less.
        Datum::UInt(count) => Interval::of(unit, count.cast_signed()),
        other => Interval::of(unit, int(other)),
    })
}

#[cold]
fn overflow<'a>(field: &'static str, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    ctx.warn(EvalError::DatetimeOverflow(field))?;
    Ok(Datum::Null)
}

fn add<'a>(
    to: &Datum<'_>,
    interval: Interval,
    unit: IntervalUnit,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    match (to, &info.ty) {
        // Nothing is added to a zero date.
        (Datum::Date(_) | Datum::DateTime(_), _) if has_zero_date(micros(to)) => Ok(Datum::Null),
        (Datum::Time(time), _) => add_interval_to_time(*time, interval)
            .map_or_else(|| overflow("time", ctx), |t| Ok(Datum::Time(t))),
        (Datum::Date(days), SqlType::Date) => match add_interval(i64::from(*days) * DAY, interval) {
            Some(at) => Ok(Datum::Date(date_of(at))),
            None => overflow("datetime", ctx),
        },
        (Datum::Date(_) | Datum::DateTime(_), ty) => match add_interval(micros(to), interval) {
            Some(at) if ty.is_temporal() => Ok(Datum::DateTime(at)),
            Some(at) => Ok(printed(at, true, ty, ctx)),
            None => overflow("datetime", ctx),
        },
        (Datum::Str(_) | Datum::Bytes(_), ty) => add_to_text(bytes(to), interval, unit, ty, ctx),
        _ => add_to_number(to, interval, unit, info, ctx),
    }
}

fn add_to_number<'a>(
    number: &Datum<'_>,
    interval: Interval,
    unit: IntervalUnit,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let text = || {
        let text = to_text_or_bytes(reborrow(number), &info.arg_types[0]);
        String::from_utf8_lossy(bytes(&text)).into_owned()
    };
    let Some(date) = DateOfNumber::read(number) else {
        ctx.warn(EvalError::IncorrectValue { kind: "datetime", value: text() })?;
        return Ok(Datum::Null);
    };
    if date.lost_fraction {
        ctx.note(&EvalError::TruncatedValue { kind: "date", value: text() });
    }
    match add_interval(date.micros, interval) {
        Some(sum) => Ok(printed(sum, date.has_time || !unit.is_whole_days(), &info.ty, ctx)),
        None => overflow("datetime", ctx),
    }
}

/// The sum is printed as a date alone, if the text was one and the unit has no time of day.
fn add_to_text<'a>(
    text: &[u8],
    interval: Interval,
    unit: IntervalUnit,
    ty: &SqlType,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let Some(parsed) = temporal::parse_datetime(text, ctx.time_zone, ZeroDates::REFUSED) else {
        let value = String::from_utf8_lossy(text).into_owned();
        ctx.warn(EvalError::IncorrectValue { kind: "datetime", value })?;
        return Ok(Datum::Null);
    };
    if parsed.truncated {
        let value = String::from_utf8_lossy(text).into_owned();
        ctx.note(&EvalError::TruncatedValue { kind: kind_of_text(text), value });
    }
    let Some(sum) = add_interval(parsed.micros, interval) else { return overflow("datetime", ctx) };
    Ok(printed(sum, parsed.has_time || !unit.is_whole_days(), ty, ctx))
}

/// The sum as a text, or as the number that this stands for.
fn printed<'a>(sum: i64, with_time: bool, ty: &SqlType, ctx: &EvalContext) -> Datum<'a> {
    if matches!(ty, SqlType::Double(_)) {
        let date = if with_time { Datum::DateTime(sum) } else { Datum::Date(date_of(sum)) };
        return number_of_moment(&date, ctx);
    }
    let mut text = Vec::new();
    if with_time {
        let fsp = if sum % SECOND != 0 { 6 } else { 0 };
        temporal::write_datetime(sum, fsp, &mut text);
    } else {
        temporal::write_date(date_of(sum), &mut text);
    }
    from_buffer(text)
}
