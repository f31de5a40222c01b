//! Conversions of values: the implicit ones that `Typer` writes down, and CAST.
//! MySQL 8.4 Reference Manual, 14.3 "Type Conversion in Expression Evaluation", 14.10 "Cast Functions".
//!
//! What does not convert cleanly raises warning 1292, and becomes the nearest value, or NULL for dates and times.

mod documents;

pub(crate) use documents::json_is_true;
use documents::{encode_json, from_json};

use crate::collation::Charset;
use crate::datum::Datum;
use crate::decimal::{Decimal, ParseStatus};
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::text::{bytes, count_chars, from_buffer, offset, slice};
use crate::expr::function::BytesAsText;
use crate::expr::program::CallInfo;
use crate::expr::program::arith::int_datum;
use crate::expr::typing::ValueClass;
use crate::json::Json;
use crate::members::NO_MEMBER;
use crate::number;
use crate::sql_type::{IntWidth, SqlType};
use crate::temporal::{
    self, Civil, DAY, MAX_DATETIME, Parsed, SECOND, ZERO_DATETIME, ZeroDates, date_of, time_of,
};
use crate::text::printable;

/// A value of type `from` as one of type `to`, as MySQL converts without being asked.
pub(crate) fn convert<'a>(
    value: Datum<'a>,
    from: &SqlType,
    to: &SqlType,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    if value.is_null() {
        return Ok(value);
    }
    if *from == SqlType::Json {
        return from_json(value, to, false, ctx);
    }
    // A year as a date is its first day, whose first moment is no time.
    let value = match (from, &value) {
        (SqlType::Year, Datum::Int(year)) if to.is_temporal() => first_of_year(*year),
        (SqlType::Year, Datum::UInt(year)) if to.is_temporal() => first_of_year(*year as i64),
        _ => value,
    };
    match ValueClass::of(to) {
        ValueClass::Null => Ok(value),
        ValueClass::Json => encode_json(&Json::from_sql(&value, from, ctx.time_zone)),
        ValueClass::Int => to_int(&value, from, to.is_unsigned(), ctx),
        ValueClass::Decimal => to_decimal(&value, from, to, ctx).map(Datum::Decimal),
        ValueClass::Double => {
            let number = to_double(&value, from, ctx)?;
            Ok(match to {
                SqlType::Float(real) => Datum::Float(real.fit(number).0 as f32),
                SqlType::Double(real) => Datum::Double(real.fit(number).0),
                _ => Datum::Double(number),
            })
        }
        ValueClass::Text => to_text(value, from, to),
        ValueClass::Bytes => Ok(match to_text_or_bytes(value, from) {
            Datum::Str(text) if let Some(charset) = from.charset().filter(|charset| !charset.is_utf8()) => {
                Datum::Bytes(charset.encode(&text).into())
            }
            Datum::Str(text) => Datum::Bytes(match text {
                std::borrow::Cow::Borrowed(s) => s.as_bytes().into(),
                std::borrow::Cow::Owned(s) => s.into_bytes().into(),
            }),
            other => other,
        }),
        ValueClass::Date => match value {
            Datum::Time(time) => Ok(Datum::Date(day_of_time(time, ctx))),
            value => {
                let at = to_moment(&value, from, "date", ctx)?;
                Ok(at.map_or(Datum::Null, |at| Datum::Date(date_of(at))))
            }
        },
        ValueClass::DateTime => {
            let at = to_datetime(&value, from, ctx)?;
            at.map_or(Ok(Datum::Null), |at| rounded(at, to, ctx))
        }
        ValueClass::Timestamp => {
            let at = match (&value, from) {
                (Datum::DateTime(utc), SqlType::Timestamp { .. }) => Some(*utc),
                _ => match moment_of_text(&value, ctx) {
                    Some(utc) => Some(utc),
                    None => to_datetime(&value, from, ctx)?.map(|local| ctx.time_zone.to_utc(local)),
                },
            };
            at.map_or(Ok(Datum::Null), |at| rounded(at, to, ctx))
        }
        ValueClass::Time => {
            let time = to_time(&value, from, ctx)?;
            Ok(time.map_or(Datum::Null, |time| Datum::Time(ctx.sql_mode.excess_digits().time(time, fsp(to)))))
        }
    }
}

/// The day of a TIME: today for a time of day. What is none counts from the time of day that it is, and not from midnight as in
/// a DATETIME.
fn day_of_time(time: i64, ctx: &EvalContext) -> i32 {
    let now = ctx.local_now_micros();
    date_of(if (0..DAY).contains(&time) { now } else { now + time })
}

/// With as many digits as the type has; NULL with a warning where that leads beyond the year 9999.
fn rounded<'a>(at: i64, to: &SqlType, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let rounded = ctx.sql_mode.excess_digits().datetime(at, fsp(to));
    if rounded > MAX_DATETIME {
        ctx.warn(EvalError::DatetimeOverflow("datetime"))?;
        return Ok(Datum::Null);
    }
    Ok(Datum::DateTime(rounded))
}

/// A constant text in another character set; error 3854 if that has not all of its characters.
pub fn recode<'a>(value: Datum<'a>, from: &SqlType, to: &SqlType) -> EvalResult<Datum<'a>> {
    let (Datum::Str(text), Some(source), Some(target)) = (&value, from.charset(), to.charset()) else {
        return Ok(value);
    };
    match target.first_missing(text) {
        None => Ok(Datum::Str(target.fitted(text.clone()).into_owned().into())),
        Some(at) => {
            let bytes = source.encode(&text[at..]);
            let shown = printable(&bytes, source.min_len());
            Err(EvalError::CannotConvertString { value: shown, from: source.name(), to: target.name() })
        }
    }
}

/// What a column shows of a constant text, in another character set.
pub(crate) fn recoded<'a>(args: &mut [Datum<'a>], info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let value = std::mem::replace(&mut args[0], Datum::Null);
    recode(value, &info.arg_types[0], &info.ty)
}

fn first_of_year<'a>(year: i64) -> Datum<'a> {
    let first = Civil::checked(year as i32, 1, 1);
    first.map_or(Datum::Null, |first| Datum::DateTime(first.to_micros()))
}

/// `CAST(value AS to)`.
pub(crate) fn cast<'a>(
    value: Datum<'a>,
    from: &SqlType,
    to: &SqlType,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    if value.is_null() {
        return Ok(value);
    }
    if *from == SqlType::Json {
        return from_json(value, to, true, ctx);
    }
    match *to {
        SqlType::Json => {
            let problem = match &value {
                Datum::Str(text) => {
                    let encoded = ctx.with_json(text, |json| Ok(json.map(|json| encode_json(&json))))?;
                    match encoded {
                        Ok(encoded) => return encoded,
                        Err(problem) => problem,
                    }
                }
                other => return encode_json(&Json::from_sql(other, from, ctx.time_zone)),
            };
            Err(EvalError::InvalidJsonText { argument: 1, function: "cast_as_json", problem })
        }
        SqlType::Int { unsigned, .. } => cast_int(&value, from, unsigned, ctx),
        SqlType::VarChar { len, .. } => cast_text(value, from, to, len, ctx),
        SqlType::Text { .. } => cast_text(value, from, to, u32::MAX, ctx),
        SqlType::Binary { len } => cast_binary(value, from, len as usize, ctx),
        SqlType::Year => cast_year(&value, from, ctx),
        SqlType::Decimal { .. } => to_decimal(&value, from, to, ctx).map(Datum::Decimal),
        SqlType::DateTime { .. }
            if matches!(value, Datum::Int(0) | Datum::UInt(0)) && ctx.sql_mode.zero_dates().alone =>
        {
            Ok(Datum::DateTime(ZERO_DATETIME))
        }
        _ => convert(value, from, to, ctx),
    }
}

fn fsp(ty: &SqlType) -> u8 {
    match *ty {
        SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } | SqlType::Time { fsp } => fsp,
        _ => 6,
    }
}

fn shown(value: &Datum<'_>) -> String {
    String::from_utf8_lossy(bytes(value)).into_owned()
}

fn truncated(kind: &'static str, value: &Datum<'_>, ctx: &EvalContext) -> EvalResult<()> {
    ctx.warn(EvalError::TruncatedValue { kind, value: shown(value) })
}

/// A date or time as the number that MySQL makes of it, in microseconds of its last digit: `20240229101530` and a
/// fraction.
fn temporal_number(value: &Datum<'_>, from: &SqlType, ctx: &EvalContext) -> Option<Decimal> {
    let with_fraction = |whole: i64, micros: i64| {
        let whole = i128::from(whole) * i128::from(SECOND);
        Decimal::new(
            if micros < 0 {
                whole - i128::from(-micros % SECOND)
            } else {
                whole + i128::from(micros % SECOND)
            },
            6,
        )
    };
    Some(match value {
        Datum::Date(days) => Decimal::from(temporal::datetime_to_number(i64::from(*days) * DAY) / 1_000_000),
        Datum::DateTime(at) => {
            let at = local(*at, from, ctx);
            let whole = temporal::datetime_to_number(at);
            Decimal::new(i128::from(whole) * i128::from(SECOND) + i128::from(at.rem_euclid(SECOND)), 6)
        }
        Datum::Time(time) => with_fraction(temporal::time_to_number(*time), *time),
        _ => return None,
    })
}

/// The number that a date or time is worth, as a DOUBLE.
pub(crate) fn number_of_moment<'a>(value: &Datum<'_>, ctx: &EvalContext) -> Datum<'a> {
    let number = temporal_number(value, &SqlType::DateTime { fsp: 6 }, ctx);
    Datum::Double(number.map_or(0.0, |number| number.to_f64()))
}

/// The same rounded to whole seconds, as dates and times round: `…5960` is not one.
fn temporal_integer(value: &Datum<'_>, from: &SqlType, ctx: &EvalContext) -> EvalResult<i64> {
    let digits = ctx.sql_mode.excess_digits();
    Ok(match value {
        Datum::Date(days) => temporal::datetime_to_number(i64::from(*days) * DAY) / 1_000_000,
        Datum::DateTime(at) => {
            let at = local(*at, from, ctx);
            let rounded = digits.datetime(at, 0);
            // The last day's midnight, where there is no day to carry to (`my_datetime_adjust_frac`).
            let rounded = if rounded > MAX_DATETIME {
                ctx.warn(EvalError::DatetimeOverflow("datetime"))?;
                i64::from(date_of(at)) * DAY
            } else {
                rounded
            };
            temporal::datetime_to_number(rounded)
        }
        Datum::Time(time) => temporal::time_to_number(digits.time(*time, 0)),
        _ => 0,
    })
}

/// Bytes as text, also if they are none.
pub(crate) fn text_of_bytes<'a>(
    args: &mut [Datum<'a>],
    info: &CallInfo,
    _: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let as_text = BytesAsText::ALL[super::func::int(&args[1]) as usize];
    let Datum::Bytes(bytes) = &args[0] else { return Ok(std::mem::replace(&mut args[0], Datum::Null)) };
    let charset = info.ty.charset().unwrap_or(Charset::Utf8mb4);
    if let Ok(text) = charset.decode(bytes) {
        return Ok(Datum::Str(text.into()));
    }
    Ok(Datum::Str(match as_text {
        BytesAsText::Latin1 => bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
        BytesAsText::Replaced => bytes
            .utf8_chunks()
            .flat_map(|chunk| chunk.valid().chars().chain(chunk.invalid().iter().map(|_| '?')))
            .collect::<String>()
            .into(),
        BytesAsText::Escaped => printable(bytes, 1).into(),
    }))
}

/// The BIGINT next to the result of an operation on DOUBLEs; error 1690 beyond it.
pub(crate) fn integer_of_double<'a>(
    args: &mut [Datum<'a>],
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    const END: f64 = -(i64::MIN as f64);
    let rounded = to_double(&args[0], &info.arg_types[0], ctx)?.round_ties_even();
    match (-END..END).contains(&rounded) {
        true => Ok(Datum::Int(rounded as i64)),
        false => Err(EvalError::OutOfRange { kind: "BIGINT", expr: info.text.to_string() }),
    }
}

/// A DATETIME's value, or a TIMESTAMP's in the session's time zone.
fn local(at: i64, ty: &SqlType, ctx: &EvalContext) -> i64 {
    match ty {
        SqlType::Timestamp { .. } => ctx.time_zone.to_local(at),
        _ => at,
    }
}

/// A number as an integer, clamped to the range of BIGINT [UNSIGNED].
fn to_int<'a>(value: &Datum<'_>, from: &SqlType, unsigned: bool, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let number: i128 = match value {
        Datum::Int(v) => (*v).into(),
        Datum::UInt(v) => (*v).into(),
        Datum::Decimal(v) => {
            v.round(0).as_i128().unwrap_or(if v.is_negative() { i128::MIN } else { i128::MAX })
        }
        Datum::Float(v) => f64::from(*v).round_ties_even() as i128,
        Datum::Double(v) => v.round_ties_even() as i128,
        Datum::Str(_) | Datum::Bytes(_) => {
            let parsed = number::parse_int(bytes(value));
            if parsed.truncated || parsed.overflow {
                truncated("INTEGER", value, ctx)?;
            }
            parsed.value
        }
        _ => temporal_integer(value, from, ctx)?.into(),
    };
    // Unsigned numbers beyond BIGINT stay what they are where a function takes integers of any sign.
    let (min, max) = if unsigned { (0, u64::MAX.into()) } else { (i64::MIN.into(), i64::MAX.into()) };
    Ok(int_datum(number.clamp(min, max), unsigned).expect("it was clamped"))
}

fn to_double(value: &Datum<'_>, from: &SqlType, ctx: &EvalContext) -> EvalResult<f64> {
    Ok(match value {
        Datum::Int(v) => *v as f64,
        // The 64th member is a sign (`Field_enum::val_real`).
        Datum::UInt(v) if matches!(from, SqlType::Set(_)) => *v as i64 as f64,
        Datum::UInt(v) => *v as f64,
        Datum::Float(v) => (*v).into(),
        Datum::Double(v) => *v,
        Datum::Decimal(v) => v.to_f64(),
        Datum::Str(_) | Datum::Bytes(_) => {
            let parsed = number::parse_f64(bytes(value));
            // The empty string is 0 without a word.
            if (parsed.truncated || parsed.overflow) && !bytes(value).is_empty() {
                truncated("DOUBLE", value, ctx)?;
            }
            parsed.value
        }
        _ => temporal_number(value, from, ctx).map_or(0.0, |v| v.to_f64()),
    })
}

/// A decimal of the type's precision and scale; what is too large becomes the largest.
fn to_decimal(value: &Datum<'_>, from: &SqlType, to: &SqlType, ctx: &EvalContext) -> EvalResult<Decimal> {
    let SqlType::Decimal { precision, scale, .. } = *to else {
        unreachable!("a conversion to decimal to {to:?}")
    };
    let mut clamped = false;
    let exact = match value {
        Datum::Int(v) => Decimal::from(*v),
        Datum::UInt(v) => Decimal::from(*v),
        Datum::Decimal(v) if v.scale() == scale && v.as_i128().is_some() => v.clone(),
        Datum::Decimal(v) => v.clone(),
        Datum::Float(_) | Datum::Double(_) => {
            let v = to_double(value, from, ctx)?;
            Decimal::from_f64(v).unwrap_or_else(|_| {
                clamped = true;
                Decimal::max_of(precision, scale, v < 0.0)
            })
        }
        Datum::Str(_) | Datum::Bytes(_) => {
            let parsed = Decimal::parse_prefix(bytes(value));
            let rest = bytes(value)[parsed.consumed..].trim_ascii();
            if parsed.status == ParseStatus::NotANumber || !rest.is_empty() {
                truncated("DECIMAL", value, ctx)?;
            }
            parsed.value
        }
        _ => temporal_number(value, from, ctx).unwrap_or(Decimal::new(0, 0)),
    };
    let scaled = exact.rescale(scale).ok().filter(|v| v.fits(precision, scale));
    match scaled {
        Some(scaled) if !clamped => Ok(scaled),
        _ => {
            ctx.warn(EvalError::ColumnOutOfRange)?;
            Ok(Decimal::max_of(precision, scale, exact.is_negative()))
        }
    }
}

/// The text of a value, as it is shown to a client.
pub(crate) fn to_text_or_bytes<'a>(value: Datum<'a>, from: &SqlType) -> Datum<'a> {
    let mut text = Vec::new();
    match &value {
        Datum::Null | Datum::Str(_) | Datum::Bytes(_) => return value,
        Datum::Int(v) => return Datum::Str(v.to_string().into()),
        Datum::UInt(v) if *from == SqlType::Year => temporal::write_year(*v, &mut text),
        Datum::UInt(v) if from.is_coded() => return decoded(*v, from),
        Datum::UInt(v) => return Datum::Str(v.to_string().into()),
        Datum::Float(v) => match crate::text::fixed_decimals(from) {
            Some(decimals) => number::write_f64_fixed((*v).into(), decimals, &mut text),
            None => number::write_f32(*v, &mut text),
        },
        Datum::Double(v) => match crate::text::fixed_decimals(from) {
            Some(decimals) => number::write_f64_fixed(*v, decimals, &mut text),
            None => number::write_f64(*v, &mut text),
        },
        Datum::Decimal(v) => v.write(&mut text),
        Datum::Date(v) => temporal::write_date(*v, &mut text),
        Datum::DateTime(v) => temporal::write_datetime(*v, fsp(from), &mut text),
        Datum::Time(v) => temporal::write_time(*v, fsp(from), &mut text),
    }
    from_buffer(text)
}

/// A name of ENUM or SET, or the bytes of a BIT.
fn decoded<'a>(value: u64, from: &SqlType) -> Datum<'a> {
    match (crate::text::member_text(value, from), from) {
        (Some(name), _) => Datum::Str(name),
        (None, SqlType::Bit { len }) => {
            Datum::Bytes(crate::text::bit_bytes(&value.to_be_bytes(), *len).to_vec().into())
        }
        (None, _) => unreachable!("{from} is not coded"),
    }
}

/// In the character set of `to`: what it has not is `?`.
fn to_text<'a>(value: Datum<'a>, from: &SqlType, to: &SqlType) -> EvalResult<Datum<'a>> {
    use std::borrow::Cow;
    let charset = to.charset().unwrap_or(Charset::Utf8mb4);
    match to_text_or_bytes(value, from) {
        Datum::Str(text) if !from.text_stays(to) => Ok(Datum::Str(match text {
            Cow::Borrowed(text) => charset.fitted(text.into()),
            Cow::Owned(text) => Cow::Owned(charset.fitted(text.into()).into_owned()),
        })),
        Datum::Bytes(bytes) if !charset.is_utf8() => match charset.decode(&bytes) {
            Ok(text) => Ok(Datum::Str(text.into())),
            Err(at) => Err(not_text(&bytes[at..], charset)),
        },
        Datum::Bytes(Cow::Borrowed(bytes)) => {
            std::str::from_utf8(bytes).map(Datum::str).map_err(|_| not_text(bytes, charset))
        }
        Datum::Bytes(Cow::Owned(bytes)) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Datum::Str(Cow::Owned(text))),
            Err(error) => Err(not_text(error.as_bytes(), charset)),
        },
        text => Ok(text),
    }
}

#[cold]
fn not_text(bytes: &[u8], charset: Charset) -> EvalError {
    let value = printable(bytes, 1);
    EvalError::CannotConvertString { value, from: "binary", to: charset.name() }
}

/// The moment that a text says with an offset.
fn moment_of_text(value: &Datum<'_>, ctx: &EvalContext) -> Option<i64> {
    if !matches!(value, Datum::Str(_) | Datum::Bytes(_)) {
        return None;
    }
    temporal::parse_datetime(bytes(value), ctx.time_zone, ZeroDates::REFUSED)?.utc
}

/// Microseconds of local time.
fn to_datetime(value: &Datum<'_>, from: &SqlType, ctx: &EvalContext) -> EvalResult<Option<i64>> {
    to_moment(value, from, "datetime", ctx)
}

/// How warnings call what a text with something behind it says.
pub(crate) fn kind_of_text(text: &[u8]) -> &'static str {
    let has_time = text.trim_ascii().iter().any(|byte| matches!(byte, b' ' | b'T' | b':'));
    if has_time { "datetime" } else { "date" }
}

/// As [`to_datetime`], of what is to be a date or a datetime by `kind`.
fn to_moment(
    value: &Datum<'_>,
    from: &SqlType,
    kind: &'static str,
    ctx: &EvalContext,
) -> EvalResult<Option<i64>> {
    let value = &signed(value, from);
    let at = match value {
        Datum::Date(days) => return Ok(Some(i64::from(*days) * DAY)),
        Datum::DateTime(at) => return Ok(Some(local(*at, from, ctx))),
        // A time of day is of the statement's day.
        Datum::Time(time) => {
            let today = i64::from(date_of(ctx.local_now_micros())) * DAY;
            return Ok(Some(today + time));
        }
        Datum::Str(_) | Datum::Bytes(_) => {
            let parsed = temporal::parse_datetime(bytes(value), ctx.time_zone, ctx.sql_mode.zero_dates());
            if parsed.is_some_and(|parsed| parsed.truncated) {
                let kind = if kind == "date" { kind } else { kind_of_text(bytes(value)) };
                ctx.note(&EvalError::TruncatedValue { kind, value: shown(value) });
            }
            if parsed.is_none() && kind == "date" {
                ctx.warn(EvalError::TruncatedValue { kind, value: shown(value) })?;
                return Ok(None);
            }
            parsed.map(|parsed| parsed.micros)
        }
        number if kind == "date" => {
            let day = DateOfNumber::read(number).map(|read| read.micros);
            let day = day.or_else(|| DateOfNumber::day(number).map(|days| i64::from(days) * DAY));
            if day.is_none() && !matches!(number, Datum::Int(_) | Datum::UInt(_)) {
                truncated("date", &to_text_or_bytes(number.clone(), from), ctx)?;
                return Ok(None);
            }
            day
        }
        number => DateOfNumber::read(number).map(|read| read.micros),
    };
    if at.is_none() {
        incorrect("datetime", value, from, ctx)?;
    }
    Ok(at)
}

/// What a number says as a date.
pub(crate) struct DateOfNumber {
    pub micros: i64,
    pub has_time: bool,
    /// A fraction behind a date alone, which is no part of a time.
    pub lost_fraction: bool,
}

impl DateOfNumber {
    /// `YYYYMMDD`, `YYYYMMDDhhmmss` with a fraction, and what is shorter; `None` for what is no date.
    pub fn read(number: &Datum<'_>) -> Option<Self> {
        let exact = match number {
            Datum::Int(v) => Decimal::from(*v),
            Datum::UInt(v) => Decimal::from(*v),
            Datum::Decimal(v) => v.clone(),
            Datum::Float(v) => Decimal::from_f64((*v).into()).ok()?,
            Datum::Double(v) => Decimal::from_f64(*v).ok()?,
            _ => return None,
        };
        let (whole, fraction) = exact.whole_and_micros()?;
        let (at, has_time) = temporal::datetime_from_number(whole, ZeroDates::REFUSED)?;
        let micros = if has_time { at + fraction } else { at };
        Some(Self { micros, has_time, lost_fraction: !has_time && fraction != 0 })
    }

    /// The day of a number with a time that no clock shows.
    fn day(number: &Datum<'_>) -> Option<i32> {
        let (whole, _) = crate::compare::decimal(number).whole_and_micros()?;
        temporal::date_from_number(whole)
    }

    /// A number of digits alone, whose month or day is zero: 0 is the zero date, and less than 101 is none.
    pub fn of_partial_day(number: &Datum<'_>) -> Option<Civil> {
        let (whole, _) = crate::compare::decimal(number).whole_and_micros()?;
        if whole == 0 {
            return Some(Civil::new(0, 0, 0));
        }
        let day = Self::of_any_day(number).filter(|_| whole > 100)?;
        (day.month == 0 || day.day == 0).then_some(day)
    }

    /// A number of digits alone, whose month or day may be zero, or a day that the month does not have: 0 is of the year 2000.
    pub fn of_any_day(number: &Datum<'_>) -> Option<Civil> {
        let (whole, _) = crate::compare::decimal(number).whole_and_micros()?;
        let full = match whole {
            0..=699_999 => whole + 20_000_000,
            700_000..=999_999 => whole + 19_000_000,
            10_000_000..=99_999_999 => whole,
            _ => return None,
        };
        let (year, month, day) = (full / 10_000, full / 100 % 100, full % 100);
        (month <= 12 && day <= 31).then(|| Civil::new(year as i32, month as u32, day as u32))
    }
}

/// An integer beside a YEAR column: one of two digits is a year of this or the last century.
pub(crate) fn full_year<'a>(args: &mut [Datum<'a>], _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let of = |number: i64| match number {
        1..=99 => temporal::year_from_number(number),
        _ => None,
    };
    Ok(match args[0] {
        Datum::Int(number) => Datum::Int(of(number).map_or(number, |year| year as i64)),
        Datum::UInt(number) => Datum::UInt(i64::try_from(number).ok().and_then(of).unwrap_or(number)),
        _ => Datum::Null,
    })
}

/// The number that a string is equal to; the second argument has the type of the members.
pub(crate) fn member_number<'a>(
    args: &mut [Datum<'a>],
    info: &CallInfo,
    _: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let Datum::Str(text) = &args[0] else { return Ok(Datum::Null) };
    let number = match &info.arg_types[1] {
        SqlType::Enum(members) => members.number_equal_to(text),
        SqlType::Set(members) => match members.bits_equal_to(text) {
            (bits, true) => bits,
            _ => NO_MEMBER,
        },
        _ => NO_MEMBER,
    };
    Ok(Datum::UInt(number))
}

/// A text as what a date is compared with: what is no date is before all dates. A zero date that the mode refuses is warned of,
/// and is one all the same.
pub(crate) fn datetime_or_zero<'a>(
    args: &mut [Datum<'a>],
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let at = to_datetime(&args[0], &info.ty, ctx)?;
    const NONE: i64 = i64::MIN / 2;
    let read = || temporal::parse_datetime(bytes(&args[0]), ctx.time_zone, ZeroDates::ALLOWED);
    Ok(Datum::DateTime(at.unwrap_or_else(|| read().map_or(NONE, |parsed| parsed.micros))))
}

/// A string as the exact number that a column of integers is compared with. What follows it is warned of as for a DOUBLE.
pub(crate) fn exact_beside_integers<'a>(
    args: &mut [Datum<'a>],
    _: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    // Nothing but spaces is 0 without a word.
    exact(&args[0], "DOUBLE", !bytes(&args[0]).trim_ascii().is_empty(), ctx)
}

/// As [`exact_beside_integers`], for a column of decimals.
pub(crate) fn exact_beside_decimals<'a>(
    args: &mut [Datum<'a>],
    _: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    exact(&args[0], "DECIMAL", true, ctx)
}

fn exact<'a>(text: &Datum<'_>, kind: &'static str, warns: bool, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let parsed = Decimal::parse_prefix(bytes(text));
    let rest = bytes(text)[parsed.consumed..].trim_ascii();
    if warns && (parsed.status == ParseStatus::NotANumber || !rest.is_empty()) {
        truncated(kind, text, ctx)?;
    }
    Ok(Datum::Decimal(parsed.value))
}

#[cold]
fn incorrect(kind: &'static str, value: &Datum<'_>, from: &SqlType, ctx: &EvalContext) -> EvalResult<()> {
    let text = to_text_or_bytes(crate::expr::program::reborrow(value), from);
    ctx.warn(EvalError::IncorrectValue { kind, value: shown(&text) })
}

/// Dates and times take a BIGINT UNSIGNED for the BIGINT of the same bits (`Item::get_date_from_int`).
pub(crate) fn signed<'x>(value: &'x Datum<'_>, from: &SqlType) -> Datum<'x> {
    match (value, from) {
        (Datum::UInt(number), SqlType::Int { .. }) => Datum::Int(*number as i64),
        (value, _) => crate::expr::program::reborrow(value),
    }
}

fn to_time(value: &Datum<'_>, from: &SqlType, ctx: &EvalContext) -> EvalResult<Option<i64>> {
    let value = &signed(value, from);
    let number = |number: Option<i64>| number.and_then(temporal::time_from_number);
    let parsed: Option<Parsed> = match value {
        Datum::Time(time) => return Ok(Some(*time)),
        Datum::Date(_) => return Ok(Some(0)),
        Datum::DateTime(at) => return Ok(Some(time_of(local(*at, from, ctx)))),
        Datum::Str(_) | Datum::Bytes(_) => temporal::parse_time(bytes(value), ctx.time_zone),
        Datum::Int(v) => number(Some(*v)),
        Datum::UInt(v) => number(i64::try_from(*v).ok()),
        Datum::Decimal(_) | Datum::Float(_) | Datum::Double(_) => {
            let decimal = match value {
                Datum::Decimal(v) => Some(v.clone()),
                _ => Decimal::from_f64(to_double(value, from, ctx)?).ok(),
            };
            decimal.and_then(|v| {
                let (whole, fraction) = v.whole_and_micros()?;
                let whole = number(Some(whole))?;
                Some(Parsed { micros: whole.micros + fraction, ..whole })
            })
        }
        Datum::Null => return Ok(None),
    };
    match parsed {
        Some(parsed) if !parsed.truncated && !parsed.clipped => Ok(Some(parsed.micros)),
        parsed => {
            let text = to_text_or_bytes(crate::expr::program::reborrow(value), from);
            truncated("time", &text, ctx)?;
            // Texts out of range become the greatest time, numbers NULL.
            let is_text = matches!(value, Datum::Str(_) | Datum::Bytes(_));
            Ok(parsed.filter(|parsed| is_text || !parsed.clipped).map(|parsed| parsed.micros))
        }
    }
}

/// CAST AS SIGNED and UNSIGNED: integers keep their bits, other numbers are clamped.
fn cast_int<'a>(
    value: &Datum<'_>,
    from: &SqlType,
    unsigned: bool,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let bits = |bits: u64| if unsigned { Datum::UInt(bits) } else { Datum::Int(bits as i64) };
    Ok(match value {
        Datum::Int(v) => bits(*v as u64),
        Datum::UInt(v) => bits(*v),
        Datum::Str(_) | Datum::Bytes(_) => {
            let parsed = number::parse_int(bytes(value));
            if parsed.truncated || parsed.overflow {
                truncated("INTEGER", value, ctx)?;
            } else if unsigned && parsed.value < 0 {
                ctx.note(&EvalError::CastComplement("unsigned converted negative integer to its positive"));
            } else if !unsigned && parsed.value > i64::MAX.into() {
                ctx.note(&EvalError::CastComplement(
                    "signed converted positive out-of-range integer to its negative",
                ));
            }
            bits(parsed.value as u64)
        }
        Datum::Double(v) => bits(double_to_bigint(*v) as u64),
        Datum::Float(v) => bits(float_to_bigint(*v) as u64),
        // Negative numbers keep the bits of their integer.
        Datum::Decimal(v) if unsigned && v.is_negative() => match to_int(value, from, false, ctx)? {
            Datum::Int(v) => Datum::UInt(v as u64),
            other => other,
        },
        Datum::Time(..=-1) if unsigned => match to_int(value, from, false, ctx)? {
            Datum::Int(v) => Datum::UInt(v as u64),
            other => other,
        },
        Datum::Decimal(v) => {
            let in_range = if unsigned { v.to_u64().is_some() } else { v.to_i64().is_some() };
            if !in_range {
                truncated("DECIMAL", &to_text_or_bytes(Datum::Decimal(v.clone()), from), ctx)?;
            }
            to_int(value, from, unsigned, ctx)?
        }
        _ => to_int(value, from, unsigned, ctx)?,
    })
}

/// The integer next to a DOUBLE, in the range of BIGINT whatever sign is wanted (`Field_double::val_int`).
pub(crate) fn double_to_bigint(value: f64) -> i64 {
    value.round_ties_even() as i64
}

/// The same of a FLOAT: what is out of range is the lowest BIGINT (`Field_float::val_int`).
pub(crate) fn float_to_bigint(value: f32) -> i64 {
    const END: f64 = -(i64::MIN as f64);
    let rounded = f64::from(value).round_ties_even();
    if (-END..END).contains(&rounded) { rounded as i64 } else { i64::MIN }
}

/// CAST AS CHAR(len): cut after `len` characters. Bytes that are no text give NULL in strict mode, else what is before them.
fn cast_text<'a>(
    value: Datum<'a>,
    from: &SqlType,
    to: &SqlType,
    len: u32,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let mut value = to_text_or_bytes(value, from);
    if let Datum::Bytes(bytes) = &value
        && let Some((at, error)) = no_text(bytes, to)
    {
        ctx.note(&error);
        // What ASCII lacks is `?`.
        if to.charset() != Some(Charset::Ascii) {
            if ctx.sql_mode.is_strict() {
                return Ok(Datum::Null);
            }
            value = Datum::Bytes(bytes[..at].to_vec().into());
        }
    }
    let text = to_text(value, from, to)?;
    if count_chars(bytes(&text)) <= len as usize {
        return Ok(text);
    }
    ctx.warn(EvalError::TruncatedLength { kind: "CHAR", len, value: shown(&text) })?;
    let end = offset(&text, len as usize);
    Ok(slice(text, 0, end))
}

/// Where bytes are no text in the character set of `to`, and error 1300 with the first of those.
fn no_text(bytes: &[u8], to: &SqlType) -> Option<(usize, EvalError)> {
    /// So many are shown.
    const SHOWN: usize = 3;
    let charset = to.charset().unwrap_or(Charset::Utf8mb4);
    let at = match charset {
        Charset::Ascii => bytes.iter().position(|byte| !byte.is_ascii())?,
        charset if charset.is_utf8() => std::str::from_utf8(bytes).err()?.valid_up_to(),
        charset => charset.decode(bytes).err()?,
    };
    let bytes = bytes[at..].iter().take(SHOWN).map(|byte| format!("{byte:02X}")).collect();
    Some((at, EvalError::InvalidCharacterString { charset: charset.name(), bytes }))
}

/// CAST AS BINARY(len): cut, or padded with zero bytes.
fn cast_binary<'a>(value: Datum<'a>, from: &SqlType, len: usize, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let value = convert(value, from, &SqlType::VarBinary { len: len as u32 }, ctx)?;
    let have = bytes(&value).len();
    if have > len {
        ctx.warn(EvalError::TruncatedLength { kind: "BINARY", len: len as u32, value: shown(&value) })?;
        return Ok(slice(value, 0, len));
    }
    if have == len {
        return Ok(value);
    }
    let mut padded = bytes(&value).to_vec();
    padded.resize(len, 0);
    Ok(Datum::Bytes(padded.into()))
}

fn cast_year<'a>(value: &Datum<'_>, from: &SqlType, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let truncation =
        || truncated("YEAR", &to_text_or_bytes(crate::expr::program::reborrow(value), from), ctx);
    let number = match value {
        Datum::Str(_) | Datum::Bytes(_) => {
            let text = super::func::text::bytes(value).trim_ascii();
            let parsed = crate::number::parse_int(text);
            if parsed.truncated {
                truncation()?;
            }
            match i64::try_from(parsed.value) {
                _ if parsed.empty => return Ok(Datum::Null),
                // The text `0` is a year of two digits.
                Ok(0) if text.len() < 3 => 2000,
                Ok(number) => number,
                Err(_) => -1,
            }
        }
        Datum::Date(days) => i64::from(temporal::Civil::from_days(*days).year),
        Datum::DateTime(at) => temporal::Civil::from_days(date_of(local(*at, from, ctx))).year.into(),
        Datum::Time(_) => temporal::Civil::from_days(date_of(ctx.local_now_micros())).year.into(),
        other => super::func::int(&to_int(other, from, false, ctx)?),
    };
    match temporal::year_from_number(number) {
        Some(year) => Ok(Datum::UInt(year)),
        None => {
            truncation()?;
            Ok(Datum::Null)
        }
    }
}

/// Whether converting between the types changes no `Datum`: the program leaves the step out.
pub(crate) fn is_identity(from: &SqlType, to: &SqlType) -> bool {
    match (from, to) {
        (SqlType::Null, _) => true,
        (
            SqlType::Char { .. } | SqlType::VarChar { .. } | SqlType::Text { .. },
            SqlType::Char { .. } | SqlType::VarChar { .. } | SqlType::Text { .. },
        ) => from.text_stays(to),
        (
            SqlType::Binary { .. }
            | SqlType::VarBinary { .. }
            | SqlType::Blob { .. }
            | SqlType::Geometry { .. },
            SqlType::Binary { .. } | SqlType::VarBinary { .. } | SqlType::Blob { .. },
        )
        | (SqlType::Geometry { .. }, SqlType::Geometry { .. }) => true,
        (
            SqlType::Decimal { scale: a, precision: p, .. },
            SqlType::Decimal { scale: b, precision: q, .. },
        ) => a == b && p <= q,
        (SqlType::DateTime { fsp: a }, SqlType::DateTime { fsp: b })
        | (SqlType::Timestamp { fsp: a }, SqlType::Timestamp { fsp: b })
        | (SqlType::Time { fsp: a }, SqlType::Time { fsp: b }) => a <= b,
        (SqlType::Bool | SqlType::Int { unsigned: false, .. }, SqlType::Int { unsigned: false, width }) => {
            *width == IntWidth::W64 || from.is_integer()
        }
        (SqlType::Int { unsigned: true, .. } | SqlType::Year, SqlType::Int { unsigned: true, .. }) => true,
        (SqlType::Bit { len: a }, SqlType::Bit { len: b }) => a <= b,
        (a, SqlType::Int { unsigned: true, .. }) => a.is_coded(),
        (a, b) => a == b,
    }
}
