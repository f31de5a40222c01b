//! Values into ENUM, SET and BIT columns, and from them into others.

use std::borrow::Cow;

use super::store::Outcome;
use super::{ConvertContext, StoreError, text_of};
use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::members::Members;
use crate::sql_type::{Collation, LobSize, SqlType};
use crate::text::member_text;

/// The type of a name that is stored somewhere else.
pub(super) const NAME: SqlType = SqlType::Text { size: LobSize::Long, collation: Collation::DEFAULT };

/// Digits of a number that an ENUM and a SET take for one of theirs.
const ENUM_DIGITS: usize = 5;
const SET_DIGITS: usize = 21;

/// A coded value for a column of another type. `Ok` if it goes in as it is; else the name that is stored in its stead, or none
/// if it is a number there.
pub(super) fn taken_as<'v>(
    value: u64,
    from: &SqlType,
    to: &SqlType,
) -> Result<Outcome<'v>, Option<Cow<'static, str>>> {
    if from == to {
        return Ok((Datum::UInt(value), None));
    }
    // The error value stays what it is.
    if let (SqlType::Enum(_), SqlType::Enum(_), 0) = (from, to, value) {
        return Ok((Datum::UInt(0), None));
    }
    let is_number = matches!(
        to,
        SqlType::Bool
            | SqlType::Int { .. }
            | SqlType::Decimal { .. }
            | SqlType::Float(_)
            | SqlType::Double(_)
            | SqlType::Year
            | SqlType::Bit { .. }
    );
    Err(if is_number { None } else { member_text(value, from) })
}

/// A number without its fraction; `None` for what is no number.
fn whole(value: &Datum<'_>) -> Option<i128> {
    Some(match value {
        Datum::Int(v) => (*v).into(),
        Datum::UInt(v) => (*v).into(),
        Datum::Float(v) => of_double((*v).into()),
        Datum::Double(v) => of_double(*v),
        Datum::Decimal(v) => v.truncate(0).as_i128().unwrap_or_else(|| far(v)),
        _ => return None,
    })
}

/// A double as MySQL casts it: what is no BIGINT is the least one.
fn of_double(v: f64) -> i128 {
    const END: f64 = -(i64::MIN as f64);
    if (-END..END).contains(&v) { v as i128 } else { i64::MIN.into() }
}

/// A decimal beyond all integers.
fn far(v: &Decimal) -> i128 {
    if v.is_negative() { i128::MIN } else { i128::MAX }
}

/// A text of a few digits, perhaps behind spaces and a sign.
fn digits(text: &str, most: usize) -> Option<u64> {
    let number = text.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let (number, is_negative) = match number.strip_prefix('-') {
        Some(number) => (number, true),
        None => (number.strip_prefix('+').unwrap_or(number), false),
    };
    let plain = !number.is_empty() && text.len() <= most && number.bytes().all(|b| b.is_ascii_digit());
    let number: Option<u64> = if plain { number.parse().ok() } else { None };
    number.filter(|number| !is_negative || *number == 0)
}

/// Bytes are a name in the character set of the names.
fn text<'t>(
    value: &'t Datum<'_>,
    from: &SqlType,
    members: Members,
    context: &ConvertContext,
) -> Cow<'t, str> {
    match value {
        Datum::Str(text) => Cow::Borrowed(text),
        Datum::Bytes(bytes) if let Ok(text) = members.collation().info().charset.decode(bytes) => {
            Cow::Owned(text)
        }
        other => text_of(other, from, context),
    }
}

pub(super) fn to_enum<'v>(
    value: &Datum<'_>,
    from: &SqlType,
    members: Members,
    context: &ConvertContext,
) -> Outcome<'v> {
    let count = members.count() as u64;
    let number = match whole(value) {
        Some(number) => u64::try_from(number).ok().filter(|number| (1..=count).contains(number)),
        None => {
            let text = text(value, from, members, context);
            // A file may have the numbers.
            let number = || digits(text.trim_end_matches(' '), ENUM_DIGITS).filter(|number| *number <= count);
            members.number(&text).or_else(number)
        }
    };
    match number {
        Some(number) => (Datum::UInt(number), None),
        None => (Datum::UInt(0), Some(StoreError::Truncated)),
    }
}

pub(super) fn to_set<'v>(
    value: &Datum<'_>,
    from: &SqlType,
    members: Members,
    context: &ConvertContext,
) -> Outcome<'v> {
    let (bits, all) = match whole(value) {
        Some(number) => {
            // Negative numbers have the bits of their complement.
            let bits = number.clamp(i64::MIN.into(), u64::MAX.into()) as u64;
            (bits & members.mask(), bits & !members.mask() == 0)
        }
        None => {
            let text = text(value, from, members, context);
            match members.bits(&text) {
                (0, false) => match digits(&text, SET_DIGITS).filter(|bits| bits & !members.mask() == 0) {
                    Some(bits) => (bits, true),
                    None => (0, false),
                },
                found => found,
            }
        }
    };
    (Datum::UInt(bits), (!all).then_some(StoreError::Truncated))
}

/// Numbers by their value, strings by their bytes, the last one being the lowest.
pub(super) fn to_bits<'v>(value: &Datum<'_>, len: u8) -> Outcome<'v> {
    let of_bytes = |bytes: &[u8]| {
        let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
        let significant = &bytes[first..];
        let number = significant.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        (significant.len() <= 8).then_some(number)
    };
    let number = match value {
        Datum::Str(text) => of_bytes(text.as_bytes()),
        Datum::Bytes(bytes) => of_bytes(bytes),
        // Decimals are read as unsigned numbers before they are bits.
        Datum::Decimal(v) if v.is_negative() => return (Datum::UInt(0), Some(StoreError::OutOfRange)),
        Datum::Decimal(v) => v.round(0).as_i128().and_then(|v| u64::try_from(v).ok()),
        other => bits_of(whole(other).unwrap_or(0)),
    };
    let max = u64::MAX >> (64 - u32::from(len));
    match number.filter(|number| *number <= max) {
        Some(number) => (Datum::UInt(number), None),
        None => (Datum::UInt(max), Some(StoreError::TooManyBits)),
    }
}

/// The bits of an integer, negative ones as their complement.
fn bits_of(v: i128) -> Option<u64> {
    u64::try_from(v).ok().or_else(|| i64::try_from(v).ok().map(|v| v as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::{Stored, store};

    const STRICT: ConvertContext = ConvertContext::STRICT_UTC;
    const LENIENT: ConvertContext = ConvertContext { strict: false, ..STRICT };
    const TEXT: SqlType = SqlType::VarChar { len: 50, collation: Collation::DEFAULT };
    const DOUBLE: SqlType = SqlType::DOUBLE;

    fn members(names: &[&str]) -> Members {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Members::new(names, Collation::DEFAULT).expect("distinct names")
    }

    /// The number that is kept, with an exclamation mark if it is warned of; strict mode has to refuse just these.
    fn kept(value: Datum<'_>, from: &SqlType, to: &SqlType) -> String {
        let strict = store(value.clone(), from, to, &STRICT);
        let Ok(Stored { value: Datum::UInt(number), warning }) = store(value, from, to, &LENIENT) else {
            unreachable!("a coded type keeps an integer")
        };
        assert_eq!(strict.is_err(), warning.is_some());
        format!("{number}{}", if warning.is_some() { "!" } else { "" })
    }

    #[test]
    fn enums_take_names_and_numbers() {
        let ty = SqlType::Enum(members(&["b", "A", "7"]));
        for (value, from, wanted) in [
            (Datum::str("a  "), TEXT, "2"),
            (Datum::str("7"), TEXT, "3"),
            (Datum::str("1"), TEXT, "1"),
            (Datum::str("0"), TEXT, "0"),
            (Datum::str("-0"), TEXT, "0"),
            (Datum::str("+2"), TEXT, "2"),
            (Datum::str("\t 2 "), TEXT, "2"),
            (Datum::str("-1"), TEXT, "0!"),
            (Datum::str("+ 2"), TEXT, "0!"),
            (Datum::str("4"), TEXT, "0!"),
            (Datum::str(""), TEXT, "0!"),
            (Datum::str(" a"), TEXT, "0!"),
            (Datum::Int(3), SqlType::BIGINT, "3"),
            (Datum::Int(0), SqlType::BIGINT, "0!"),
            (Datum::Int(-1), SqlType::BIGINT, "0!"),
            (Datum::Double(1.9), DOUBLE, "1"),
            (Datum::Double(f64::NAN), DOUBLE, "0!"),
            (Datum::Double(1e30), DOUBLE, "0!"),
        ] {
            assert_eq!(kept(value.clone(), &from, &ty), wanted, "{value:?}");
        }
        // Of another ENUM by name, but for the error value.
        let other = SqlType::Enum(members(&["A", "q"]));
        let numbers = [0, 1, 2].map(|number| kept(Datum::UInt(number), &other, &ty));
        assert_eq!(numbers, ["0", "2", "0!"]);
        assert_eq!(kept(Datum::UInt(3), &ty, &SqlType::BIGINT_UNSIGNED), "3");
    }

    #[test]
    fn sets_take_names_and_bits() {
        let ty = SqlType::Set(members(&["x", "y", "z"]));
        for (value, from, wanted) in [
            (Datum::str("z,X"), TEXT, "5"),
            (Datum::str(""), TEXT, "0"),
            (Datum::str("6"), TEXT, "6"),
            (Datum::str(" +6"), TEXT, "6"),
            (Datum::str("-1"), TEXT, "0!"),
            (Datum::str("8"), TEXT, "0!"),
            (Datum::str("x,q"), TEXT, "1!"),
            (Datum::str("q"), TEXT, "0!"),
            (Datum::Int(7), SqlType::BIGINT, "7"),
            (Datum::Int(9), SqlType::BIGINT, "1!"),
            (Datum::Int(-1), SqlType::BIGINT, "7!"),
            (Datum::Double(2.9), DOUBLE, "2"),
        ] {
            assert_eq!(kept(value.clone(), &from, &ty), wanted, "{value:?}");
        }
    }

    #[test]
    fn bits_take_numbers_and_bytes() {
        let ty = SqlType::Bit { len: 10 };
        let decimal = SqlType::Decimal { precision: 4, scale: 1, unsigned: false };
        for (value, from, wanted) in [
            (Datum::Int(1023), SqlType::BIGINT, "1023"),
            (Datum::Int(1024), SqlType::BIGINT, "1023!"),
            (Datum::Int(-1), SqlType::BIGINT, "1023!"),
            (Datum::Decimal(Decimal::new(25, 1)), decimal, "3"),
            (Datum::Decimal(Decimal::new(-4, 1)), decimal, "0!"),
            (Datum::Decimal(Decimal::new(i128::MAX, 1)), decimal, "1023!"),
            (Datum::Double(2.5), DOUBLE, "2"),
            (Datum::Double(1e30), DOUBLE, "1023!"),
            (Datum::str("a"), TEXT, "97"),
            (Datum::str(""), TEXT, "0"),
            (Datum::bytes(&[0, 0, 3, 255]), SqlType::VarBinary { len: 4 }, "1023"),
            (Datum::bytes(&[4, 0]), SqlType::VarBinary { len: 4 }, "1023!"),
            (Datum::bytes(&[1, 0, 0, 0, 0, 0, 0, 0, 0]), SqlType::VarBinary { len: 9 }, "1023!"),
        ] {
            assert_eq!(kept(value.clone(), &from, &ty), wanted, "{value:?}");
        }
        let all = SqlType::Bit { len: 64 };
        assert_eq!(kept(Datum::Int(-1), &SqlType::BIGINT, &all), u64::MAX.to_string());
    }
}
