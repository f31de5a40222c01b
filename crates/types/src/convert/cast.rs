//! CAST(value AS type) and CONVERT(value, type).

use super::store::fit_decimal;
use super::{
    CastWarning, ConvertContext, StoreError, char_limit, read_datetime, read_time, round_double,
    temporal_to_integer, text_of,
};
use crate::compare;
use crate::datum::Datum;
use crate::decimal::{Decimal, ParseStatus};
use crate::number::{parse_f64, parse_int};
use crate::sql_type::SqlType;
use crate::temporal::{Civil, date_of, year_from_number};

/// What becomes of a value, and what to warn of.
type Outcome<'v> = (Datum<'v>, Option<CastWarning>);

const SIGNED: SqlType = SqlType::BIGINT;
const UNSIGNED: SqlType = SqlType::BIGINT_UNSIGNED;

/// Casts a value of type `from`. The targets of MySQL's CAST are these types: `BIGINT` (SIGNED), `BIGINT UNSIGNED`
/// (UNSIGNED), `DECIMAL`, `VARCHAR(n)` or `TEXT` (CHAR), `VARBINARY` or `BINARY(n)`, `DATE`, `DATETIME`, `TIME`, `DOUBLE`,
/// `FLOAT`, `YEAR`. Other targets are taken as columns are stored into, out of strict mode.
pub fn cast<'v>(value: Datum<'v>, from: &SqlType, to: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    if value.is_null() {
        return (Datum::Null, None);
    }
    match to {
        &SIGNED => to_signed(&value, from, context),
        &UNSIGNED => to_unsigned(&value, from, context),
        SqlType::Decimal { precision, scale, .. } => to_decimal(&value, *precision, *scale, from, context),
        SqlType::Double(_) => {
            let (v, warning) = to_double(&value, from, context);
            (Datum::Double(v), warning)
        }
        SqlType::Float(_) => {
            let (v, warning) = to_double(&value, from, context);
            (Datum::Float(v as f32), warning)
        }
        SqlType::Char { len, .. } | SqlType::VarChar { len, .. } => to_char(value, *len, from, context),
        SqlType::Binary { len } | SqlType::VarBinary { len } => {
            to_binary(value, *len as usize, matches!(to, SqlType::Binary { .. }), from, context)
        }
        SqlType::Date => to_date(&value, from, context),
        SqlType::DateTime { fsp } => to_datetime(&value, *fsp, from, context),
        SqlType::Time { fsp } => to_time(&value, *fsp, from, context),
        SqlType::Year => to_year(&value, from, context),
        _ => {
            let lenient = ConvertContext { strict: false, ..*context };
            let stored = super::store(value, from, to, &lenient);
            (stored.map_or(Datum::Null, |s| s.value), None)
        }
    }
}

fn truncated(kind: &'static str, value: &Datum<'_>, from: &SqlType, context: &ConvertContext) -> CastWarning {
    CastWarning::Truncated { kind: kind.into(), value: text_of(value, from, context).into_owned() }
}

fn text_bytes<'v>(value: &'v Datum<'_>) -> Option<&'v [u8]> {
    match value {
        Datum::Str(s) => Some(s.as_bytes()),
        Datum::Bytes(b) => Some(b),
        _ => None,
    }
}

/// The integer that a value that is no text is worth, out of range or not.
fn integer(value: &Datum<'_>, from: &SqlType, context: &ConvertContext) -> i128 {
    match value {
        Datum::Int(v) => (*v).into(),
        Datum::UInt(v) => (*v).into(),
        // Doubles go through a signed integer, whatever the target.
        Datum::Float(v) => round_double((*v).into()).clamp(i64::MIN.into(), i64::MAX.into()),
        Datum::Double(v) => round_double(*v).clamp(i64::MIN.into(), i64::MAX.into()),
        Datum::Decimal(v) => {
            let far = if v.is_negative() { i128::MIN } else { i128::MAX };
            v.round(0).as_i128().unwrap_or(far)
        }
        temporal => temporal_to_integer(temporal, from, context).unwrap_or(0).into(),
    }
}

fn to_signed<'v>(value: &Datum<'_>, from: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    if let Some(text) = text_bytes(value) {
        let parsed = parse_int(text);
        let problem = parsed.truncated || parsed.overflow;
        // What is past the signed range wraps, as an unsigned number read as signed.
        let warning = problem.then(|| truncated("INTEGER", value, from, context));
        return (Datum::Int(parsed.value as i64), warning);
    }
    let v = integer(value, from, context);
    match value {
        // An unsigned integer is reinterpreted, a decimal clipped.
        Datum::UInt(v) => (Datum::Int(*v as i64), None),
        _ => {
            let clipped = v.clamp(i64::MIN.into(), i64::MAX.into());
            let warning = (clipped != v).then(|| truncated("DECIMAL", value, from, context));
            (Datum::Int(clipped as i64), warning)
        }
    }
}

fn to_unsigned<'v>(value: &Datum<'_>, from: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    if let Some(text) = text_bytes(value) {
        let parsed = parse_int(text);
        let warning = if parsed.truncated || parsed.overflow {
            Some(truncated("INTEGER", value, from, context))
        } else {
            (parsed.value < 0).then_some(CastWarning::NegativeToUnsigned)
        };
        return (Datum::UInt(parsed.value as u64), warning);
    }
    let v = integer(value, from, context);
    let clipped = v.clamp(i64::MIN.into(), u64::MAX.into());
    let warning = (clipped != v).then(|| truncated("DECIMAL", value, from, context));
    // Negative numbers wrap.
    (Datum::UInt(clipped as u64), warning)
}

fn to_decimal<'v>(
    value: &Datum<'_>,
    precision: u8,
    scale: u8,
    from: &SqlType,
    context: &ConvertContext,
) -> Outcome<'v> {
    let mut warning = None;
    let exact = match text_bytes(value) {
        Some(text) => {
            let parsed = Decimal::parse_prefix(text);
            let rest = !text[parsed.consumed..].trim_ascii().is_empty();
            if rest || parsed.status == ParseStatus::NotANumber {
                warning = Some(truncated("DECIMAL", value, from, context));
            }
            parsed.value
        }
        None => compare::decimal(&local(value, from, context)),
    };
    let (v, problem) = fit_decimal(&exact, precision, scale, false);
    if problem == Some(StoreError::OutOfRange) {
        warning = Some(CastWarning::OutOfRange);
    }
    (Datum::Decimal(v), warning)
}

/// A TIMESTAMP as a DATETIME in local time; other values as they are.
fn local<'v>(value: &Datum<'v>, from: &SqlType, context: &ConvertContext) -> Datum<'v> {
    match value {
        Datum::DateTime(micros) if matches!(from, SqlType::Timestamp { .. }) => {
            Datum::DateTime(context.zone.to_local(*micros))
        }
        other => other.clone(),
    }
}

fn to_double(value: &Datum<'_>, from: &SqlType, context: &ConvertContext) -> (f64, Option<CastWarning>) {
    match text_bytes(value) {
        Some(text) => {
            let parsed = parse_f64(text);
            let warn = (parsed.truncated && !text.is_empty()) || parsed.overflow;
            (parsed.value, warn.then(|| truncated("DOUBLE", value, from, context)))
        }
        None => (compare::double(&local(value, from, context)), None),
    }
}

fn to_char<'v>(value: Datum<'v>, len: u32, from: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    let text = match value {
        Datum::Str(text) => text,
        other => text_of(&other, from, context).into_owned().into(),
    };
    match char_limit(&text, len as usize) {
        None => (Datum::Str(text), None),
        Some(end) => {
            let kind = format!("CHAR({len})").into();
            let cut = text[..end].to_owned();
            (Datum::Str(cut.into()), Some(CastWarning::Truncated { kind, value: text.into_owned() }))
        }
    }
}

fn to_binary<'v>(
    value: Datum<'v>,
    len: usize,
    pad: bool,
    from: &SqlType,
    context: &ConvertContext,
) -> Outcome<'v> {
    let mut bytes = match value {
        Datum::Bytes(bytes) => bytes.into_owned(),
        other => text_of(&other, from, context).into_owned().into_bytes(),
    };
    let mut warning = None;
    if bytes.len() > len {
        let value = String::from_utf8_lossy(&bytes).into_owned();
        warning = Some(CastWarning::Truncated { kind: format!("BINARY({len})").into(), value });
        bytes.truncate(len);
    } else if pad {
        bytes.resize(len, 0);
    }
    (Datum::Bytes(bytes.into()), warning)
}

fn to_date<'v>(value: &Datum<'_>, from: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    match read_datetime(value, from, 6, context) {
        Ok(read) => {
            let warning = read.truncated.then(|| truncated("date", value, from, context));
            (Datum::Date(date_of(read.micros)), warning)
        }
        Err(_) => (Datum::Null, Some(truncated("date", value, from, context))),
    }
}

fn to_datetime<'v>(value: &Datum<'_>, fsp: u8, from: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    match read_datetime(value, from, fsp, context) {
        Ok(read) => {
            let warning = read.truncated.then(|| truncated("datetime", value, from, context));
            (Datum::DateTime(read.micros), warning)
        }
        Err(_) => {
            let value = text_of(value, from, context).into_owned();
            (Datum::Null, Some(CastWarning::Incorrect { kind: "datetime", value }))
        }
    }
}

fn to_time<'v>(value: &Datum<'_>, fsp: u8, from: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    let is_number = text_bytes(value).is_none() && !from.is_temporal();
    match read_time(value, from, fsp, context) {
        Some(read) if !(read.clipped && is_number) => {
            let warn = read.truncated || read.clipped;
            (Datum::Time(read.micros), warn.then(|| truncated("time", value, from, context)))
        }
        _ => (Datum::Null, Some(truncated("time", value, from, context))),
    }
}

fn to_year<'v>(value: &Datum<'_>, from: &SqlType, context: &ConvertContext) -> Outcome<'v> {
    let incorrect =
        || CastWarning::Incorrect { kind: "YEAR", value: text_of(value, from, context).into_owned() };
    if let Some(text) = text_bytes(value) {
        let parsed = parse_int(text);
        let year = i64::try_from(parsed.value).ok().and_then(year_from_number);
        return match year.filter(|_| !parsed.empty) {
            Some(year) => {
                let year = if year == 0 && text.trim_ascii().len() < 3 { 2000 } else { year };
                (Datum::UInt(year), parsed.truncated.then(|| truncated("YEAR", value, from, context)))
            }
            None => (Datum::Null, Some(incorrect())),
        };
    }
    let number = match value {
        Datum::Date(_) | Datum::DateTime(_) | Datum::Time(_) => {
            let read = read_datetime(value, from, 6, context);
            read.map_or(-1, |r| Civil::from_days(date_of(r.micros)).year.into())
        }
        _ => integer(value, from, context),
    };
    match i64::try_from(number).ok().and_then(year_from_number) {
        Some(year) => (Datum::UInt(year), None),
        None => {
            (Datum::Null, Some(CastWarning::Truncated { kind: "YEAR".into(), value: number.to_string() }))
        }
    }
}
