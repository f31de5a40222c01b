//! Values of the source's protocol as values of a column here, and the expressions by which they are asked for.

use avocet_types::json;
use avocet_types::temporal::{Clock, DAY, TimeZone};
use avocet_types::text::to_text;
use avocet_types::{Datum, Decimal, SqlType, Value};
use mysql::Value as Sent;

use crate::source::quoted;

/// Why a row cannot be kept.
pub type Unfit = String;

/// What is selected of a column, so that its value arrives exactly.
pub fn selected(name: &str, ty: &SqlType) -> String {
    match ty {
        // Numbers of members and bits, not their texts.
        SqlType::Enum(_) | SqlType::Set(_) | SqlType::Bit { .. } => {
            format!("CAST({} AS UNSIGNED)", quoted(name))
        }
        _ => quoted(name),
    }
}

/// A parameter that compares with a column as a value of its own type.
pub fn parameter(ty: &SqlType) -> String {
    match ty {
        SqlType::Decimal { precision, scale, .. } => format!("CAST(? AS DECIMAL({precision},{scale}))"),
        ty if ty.is_bytes() => "UNHEX(?)".into(),
        _ => "?".into(),
    }
}

/// What is sent for such a parameter.
pub fn sent(value: &Sent, ty: &SqlType) -> Sent {
    match value {
        Sent::Bytes(bytes) if ty.is_bytes() => {
            Sent::Bytes(bytes.iter().flat_map(|byte| format!("{byte:02X}").into_bytes()).collect())
        }
        other => other.clone(),
    }
}

/// A value as the protocol has it: the inverse of [`datum`], for what keys are of.
pub fn to_send(value: &Datum<'_>, ty: &SqlType) -> Option<Sent> {
    Some(match value {
        Datum::Int(v) => Sent::Int(*v),
        Datum::UInt(v) => Sent::UInt(*v),
        Datum::Float(v) => Sent::Float(*v),
        Datum::Double(v) => Sent::Double(*v),
        Datum::Bytes(bytes) => Sent::Bytes(bytes.to_vec()),
        Datum::Null => return None,
        other => Sent::Bytes(to_text(other, ty, TimeZone::UTC)?.into_owned().into_bytes()),
    })
}

/// A value of the column's type.
pub fn datum(sent: &Sent, ty: &SqlType) -> Result<Value, Unfit> {
    let wrong = || format!("a value of type {ty} arrived as {sent:?}");
    Ok(match (sent, ty) {
        (Sent::NULL, _) => Datum::Null,
        (Sent::Int(v), ty) if ty.is_unsigned() && !matches!(ty, SqlType::Decimal { .. }) => {
            Datum::UInt(*v as u64)
        }
        (Sent::UInt(v), ty) if ty.is_unsigned() && !matches!(ty, SqlType::Decimal { .. }) => Datum::UInt(*v),
        (Sent::Int(v), SqlType::Bool | SqlType::Int { .. }) => Datum::Int(*v),
        (Sent::UInt(v), SqlType::Bool | SqlType::Int { .. }) => {
            Datum::Int(i64::try_from(*v).map_err(|_| wrong())?)
        }
        (Sent::Float(v), SqlType::Float(_)) => Datum::Float(*v),
        (Sent::Double(v), SqlType::Double(_)) => Datum::Double(*v),
        (Sent::Bytes(bytes), SqlType::Decimal { scale, .. }) => {
            let text = std::str::from_utf8(bytes).map_err(|_| wrong())?;
            let value: Decimal = text.parse().map_err(|_| wrong())?;
            Datum::Decimal(value.rescale(*scale).map_err(|_| wrong())?)
        }
        (Sent::Bytes(bytes), SqlType::Json) => {
            let text = std::str::from_utf8(bytes).map_err(|_| wrong())?;
            let document = json::parse(text).and_then(|document| document.encode());
            Datum::Bytes(document.map_err(|error| error.to_string())?.into())
        }
        (Sent::Bytes(bytes), ty) if ty.is_string() => {
            Datum::Str(String::from_utf8(bytes.clone()).map_err(|_| wrong())?.into())
        }
        (Sent::Bytes(bytes), ty) if ty.is_bytes() => Datum::Bytes(bytes.clone().into()),
        (Sent::Date(year, month, day, ..), SqlType::Date) => Datum::Date(date(*year, *month, *day)?),
        (
            Sent::Date(year, month, day, hour, minute, second, micros),
            SqlType::DateTime { .. } | SqlType::Timestamp { .. },
        ) => {
            let clock = Clock::new((*hour).into(), (*minute).into(), (*second).into(), *micros);
            Datum::DateTime(i64::from(date(*year, *month, *day)?) * DAY + clock.to_micros())
        }
        (Sent::Time(negative, days, hours, minutes, seconds, micros), SqlType::Time { .. }) => {
            let clock =
                Clock::new(days * 24 + u32::from(*hours), (*minutes).into(), (*seconds).into(), *micros);
            Datum::Time(if *negative { -clock.to_micros() } else { clock.to_micros() })
        }
        _ => return Err(wrong()),
    })
}

fn date(year: u16, month: u8, day: u8) -> Result<i32, Unfit> {
    let date = avocet_types::temporal::Civil::checked_or_zero(year.into(), month.into(), day.into());
    date.map(avocet_types::temporal::Civil::to_days).ok_or_else(|| {
        format!("it has the date {year:04}-{month:02}-{day:02}, which is none of the calendar")
    })
}
