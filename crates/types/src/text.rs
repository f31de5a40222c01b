//! Values as MySQL's result texts show them, appended to a byte buffer.

use std::borrow::Cow;

use crate::datum::{Datum, Value};
use crate::number::{
    write_f32, write_f32_result, write_f64, write_f64_fixed, write_f64_of_column, write_f64_result,
    write_i64, write_u64,
};
use crate::sql_type::{Collation, SqlType};
use crate::temporal::{TimeZone, write_date, write_datetime, write_time, write_year};

/// Appends the text of a value of type `ty`; TIMESTAMPs in the time zone given. NULL appends nothing: it has no text.
pub fn write_text(value: &Datum<'_>, ty: &SqlType, zone: TimeZone, to: &mut Vec<u8>) {
    match value {
        Datum::Null => {}
        Datum::Int(v) => write_i64(*v, to),
        Datum::UInt(v) if *ty == SqlType::Year => write_year(*v, to),
        Datum::UInt(v) => match ty {
            SqlType::Enum(members) => to.extend_from_slice(members.name(*v).as_bytes()),
            SqlType::Set(members) => to.extend_from_slice(members.joined(*v).as_bytes()),
            SqlType::Bit { len } => to.extend_from_slice(bit_bytes(&v.to_be_bytes(), *len)),
            _ => write_u64(*v, to),
        },
        Datum::Float(v) => match fixed_decimals(ty) {
            Some(decimals) => write_f64_fixed((*v).into(), decimals, to),
            None => write_f32_result(*v, to),
        },
        Datum::Double(v) => match fixed_decimals(ty) {
            Some(decimals) => write_f64_fixed(*v, decimals, to),
            None => write_f64_result(*v, to),
        },
        Datum::Decimal(v) => v.write(to),
        Datum::Str(s) => to.extend_from_slice(s.as_bytes()),
        Datum::Bytes(b) if *ty == SqlType::Json => crate::json::write(crate::json::Node::new(b), to),
        Datum::Bytes(b) => to.extend_from_slice(b),
        Datum::Date(days) => write_date(*days, to),
        Datum::DateTime(micros) => {
            let local =
                if matches!(ty, SqlType::Timestamp { .. }) { zone.to_local(*micros) } else { *micros };
            write_datetime(local, ty.fsp().unwrap_or_else(|| needed_fsp(*micros)), to);
        }
        Datum::Time(micros) => write_time(*micros, ty.fsp().unwrap_or_else(|| needed_fsp(*micros)), to),
    }
}

/// Appends the text of a number as a string of its column: what becomes of it in CONCAT, or if the column is made a text.
pub fn write_number_of_column(value: &Datum<'_>, ty: &SqlType, to: &mut Vec<u8>) {
    match value {
        Datum::Double(v) if fixed_decimals(ty).is_none() => write_f64_of_column(*v, to),
        Datum::Float(v) if fixed_decimals(ty).is_none() => write_f32(*v, to),
        _ => write_text(value, ty, TimeZone::UTC, to),
    }
}

/// How many digits after the point a FLOAT or DOUBLE is shown with, if that does not depend on its value.
pub(crate) fn fixed_decimals(ty: &SqlType) -> Option<u8> {
    match ty {
        SqlType::Float(real) | SqlType::Double(real) => real.decimals(),
        _ => None,
    }
}

/// The text of a value; `None` for NULL, and for bytes that are no text.
pub fn to_text<'a>(value: &'a Datum<'_>, ty: &SqlType, zone: TimeZone) -> Option<Cow<'a, str>> {
    match value {
        Datum::Null => None,
        Datum::Str(s) => Some(Cow::Borrowed(s)),
        Datum::Bytes(b) if *ty != SqlType::Json => std::str::from_utf8(b).ok().map(Cow::Borrowed),
        Datum::UInt(v) if ty.members().is_some() => member_text(*v, ty),
        _ => {
            let mut text = Vec::with_capacity(32);
            match value {
                Datum::Float(v) if fixed_decimals(ty).is_none() => write_f32(*v, &mut text),
                Datum::Double(v) if fixed_decimals(ty).is_none() => write_f64(*v, &mut text),
                _ => write_text(value, ty, zone, &mut text),
            }
            // Numbers and temporals are ASCII, documents text; bits may be no text.
            String::from_utf8(text).ok().map(Cow::Owned)
        }
    }
}

/// The text of a value of ENUM or SET; `None` for other types.
pub fn member_text(value: u64, ty: &SqlType) -> Option<Cow<'static, str>> {
    match ty {
        SqlType::Enum(members) => Some(Cow::Borrowed(members.name(value))),
        SqlType::Set(members) => Some(members.joined(value)),
        _ => None,
    }
}

/// A value without a column: a name of ENUM or SET is a string there, as are dates and times in this zone, and BIT a number.
pub fn without_column(value: Value, ty: SqlType, zone: TimeZone) -> (Value, SqlType) {
    match (&value, ty) {
        (Datum::Date(_) | Datum::DateTime(_) | Datum::Time(_), ty) => {
            let text = to_text(&value, &ty, zone).unwrap_or_default().into_owned();
            // As in MySQL, which has it from a number's text.
            let collation = Collation::by_name("latin1_swedish_ci").unwrap_or(Collation::DEFAULT);
            let ty = SqlType::VarChar { len: text.len() as u32, collation };
            (Datum::Str(text.into()), ty)
        }
        (Datum::UInt(number), ty) if let Some(members) = ty.members() => {
            let name = member_text(*number, &ty).unwrap_or_default();
            let len = name.chars().count() as u32;
            (Datum::Str(name), SqlType::VarChar { len, collation: members.collation() })
        }
        (_, SqlType::Bit { .. }) => (value, SqlType::BIGINT_UNSIGNED),
        (Datum::Bytes(document), SqlType::Json) => {
            let text = crate::json::Node::new(document).text();
            (Datum::Str(text.into()), SqlType::JSON_TEXT)
        }
        (Datum::Null, ty) if ty.members().is_some() => (value, SqlType::Null),
        _ => (value, ty),
    }
}

/// Of a number's big-endian bytes those that a BIT of this length shows.
pub const fn bit_bytes(number: &[u8; 8], len: u8) -> &[u8] {
    number.split_at(8 - (len as usize).div_ceil(8)).1
}

/// Digits that a fraction needs where no type says how many it has.
fn needed_fsp(micros: i64) -> u8 {
    if micros % 1_000_000 == 0 { 0 } else { 6 }
}

/// The text of a number with zeros before it, if it has fewer characters.
pub fn with_zeros(mut text: Vec<u8>, width: usize) -> Vec<u8> {
    let missing = width.saturating_sub(text.len());
    text.splice(..0, std::iter::repeat_n(b'0', missing));
    text
}

/// Bytes as MySQL's messages show them: ASCII as it is, others in hexadecimal.
pub fn visible(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b' '..=b'~' => shown.push(byte.into()),
            _ => shown.push_str(&format!("\\x{byte:02X}")),
        }
    }
    shown
}

/// The first six bytes of a text as MySQL's messages show them; ASCII as it is where characters have `min_len` 1.
pub(crate) fn printable(bytes: &[u8], min_len: u32) -> String {
    let shown = &bytes[..bytes.len().min(6)];
    let mut shown = match min_len {
        1 => visible(shown),
        _ => shown.iter().map(|byte| format!("\\x{byte:02X}")).collect(),
    };
    if bytes.len() > 6 {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_by_their_type() {
        let zone = TimeZone::parse("+02:00").expect("valid");
        for (value, ty, wanted) in [
            (Datum::Int(-5), SqlType::INT, "-5"),
            (Datum::UInt(0), SqlType::Year, "0000"),
            (Datum::UInt(u64::MAX), SqlType::BIGINT_UNSIGNED, "18446744073709551615"),
            (Datum::Decimal(crate::Decimal::new(-5, 2)), SqlType::Null, "-0.05"),
            (Datum::DateTime(0), SqlType::Timestamp { fsp: 0 }, "1970-01-01 02:00:00"),
            (Datum::DateTime(1_500_000), SqlType::DateTime { fsp: 3 }, "1970-01-01 00:00:01.500"),
            (Datum::Time(-3_020_399_000_000), SqlType::Time { fsp: 0 }, "-838:59:59"),
            (Datum::Date(-719_527), SqlType::Date, "0000-01-01"),
            (Datum::Double(1e20), SqlType::DOUBLE, "1e20"),
        ] {
            let mut text = Vec::new();
            write_text(&value, &ty, zone, &mut text);
            assert_eq!(String::from_utf8(text).expect("ASCII"), wanted);
        }
    }
}
