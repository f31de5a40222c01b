//! Comparing values of any two kinds (manual, "Type Conversion in Expression Evaluation").
//!
//! | operands | compared as |
//! |---|---|
//! | strings | by collation; bytes if one is binary |
//! | documents (`Collation::JSON`) | by MySQL's order of them |
//! | integers, decimals | exactly |
//! | a double and a number, a string and a number | doubles |
//! | temporals | instants; a date is its midnight |
//! | a temporal and a string | the string is read as that kind; doubles if it is none |
//! | a temporal and a number | the temporal is the number `YYYYMMDDhhmmss` |

use std::cmp::Ordering;

use crate::collation::Collation;
use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::json;
use crate::number::parse_f64;
use crate::temporal::{
    DAY, SECOND, TimeZone, ZeroDates, datetime_to_number, parse_datetime, parse_time, time_to_number,
};

/// Compares two values; `None` if one is NULL. Strings go by `collation`.
pub fn compare(a: &Datum<'_>, b: &Datum<'_>, collation: Collation) -> Option<Ordering> {
    Some(match (a, b) {
        (Datum::Null, _) | (_, Datum::Null) => return None,
        (Datum::Int(x), Datum::Int(y)) => x.cmp(y),
        (Datum::UInt(x), Datum::UInt(y)) => x.cmp(y),
        (Datum::Int(x), Datum::UInt(y)) => i128::from(*x).cmp(&i128::from(*y)),
        (Datum::UInt(x), Datum::Int(y)) => i128::from(*x).cmp(&i128::from(*y)),
        (Datum::Str(x), Datum::Str(y)) => collation.compare(x, y),
        (Datum::Bytes(x), Datum::Bytes(y)) if collation == Collation::JSON => {
            json::compare(json::Node::new(x), json::Node::new(y))
        }
        (Datum::Decimal(x), Datum::Decimal(y)) => x.cmp(y),
        (Datum::Date(x), Datum::Date(y)) => x.cmp(y),
        (Datum::DateTime(x), Datum::DateTime(y)) | (Datum::Time(x), Datum::Time(y)) => x.cmp(y),
        (Datum::Double(x), Datum::Double(y)) => compare_doubles(*x, *y),
        _ => compare_mixed(a, b),
    })
}

/// Compares by MySQL's order of sorting, in which NULL comes first.
pub fn sort_order(a: &Datum<'_>, b: &Datum<'_>, collation: Collation) -> Ordering {
    compare(a, b, collation).unwrap_or_else(|| b.is_null().cmp(&a.is_null()))
}

fn compare_mixed(a: &Datum<'_>, b: &Datum<'_>) -> Ordering {
    if let (Some(x), Some(y)) = (string_bytes(a), string_bytes(b)) {
        return x.cmp(y);
    }
    if let (Some(x), Some(y)) = (instant(a), instant(b)) {
        return x.cmp(&y);
    }
    if let (Some(x), Some(text)) = (instant(a), string_bytes(b)) {
        if let Some(y) = read_like(a, text) {
            return x.cmp(&y);
        }
    } else if let (Some(text), Some(y)) = (string_bytes(a), instant(b))
        && let Some(x) = read_like(b, text)
    {
        return x.cmp(&y);
    }
    match (exact(a), exact(b)) {
        (Some(x), Some(y)) => x.cmp(&y),
        _ => compare_doubles(double(a), double(b)),
    }
}

fn compare_doubles(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y).unwrap_or_else(|| x.total_cmp(&y))
}

fn string_bytes<'v>(value: &'v Datum<'_>) -> Option<&'v [u8]> {
    match value {
        Datum::Str(s) => Some(s.as_bytes()),
        Datum::Bytes(b) => Some(b),
        _ => None,
    }
}

/// A date or DATETIME as microseconds.
fn instant(value: &Datum<'_>) -> Option<i64> {
    match value {
        Datum::Date(days) => Some(i64::from(*days) * DAY),
        Datum::DateTime(micros) => Some(*micros),
        Datum::Time(micros) => Some(*micros),
        _ => None,
    }
}

/// A text as the kind of temporal that `model` is.
fn read_like(model: &Datum<'_>, text: &[u8]) -> Option<i64> {
    let parsed = match model {
        Datum::Time(_) => parse_time(text, TimeZone::UTC),
        _ => parse_datetime(text, TimeZone::UTC, ZeroDates::ALLOWED),
    };
    parsed.map(|p| p.micros)
}

/// The value as a decimal, if it is an exact number or a temporal.
fn exact(value: &Datum<'_>) -> Option<Decimal> {
    let with_fraction = |whole: i64, micros: i64| match micros % SECOND {
        0 => Decimal::from(whole),
        fraction => Decimal::new(i128::from(whole) * 1_000_000 + i128::from(fraction), 6),
    };
    match value {
        Datum::Int(v) => Some(Decimal::from(*v)),
        Datum::UInt(v) => Some(Decimal::from(*v)),
        Datum::Decimal(v) => Some(v.clone()),
        Datum::Date(days) => Some(Decimal::from(datetime_to_number(i64::from(*days) * DAY) / 1_000_000)),
        Datum::DateTime(micros) => {
            Some(with_fraction(datetime_to_number(*micros), micros.rem_euclid(SECOND)))
        }
        Datum::Time(micros) => Some(with_fraction(time_to_number(*micros), *micros)),
        _ => None,
    }
}

/// The value as a double: strings by their longest numeric prefix, temporals as numbers; NULL is 0.
pub fn double(value: &Datum<'_>) -> f64 {
    match value {
        Datum::Null => 0.0,
        Datum::Int(v) => *v as f64,
        Datum::UInt(v) => *v as f64,
        Datum::Float(v) => (*v).into(),
        Datum::Double(v) => *v,
        Datum::Str(s) => parse_f64(s.as_bytes()).value,
        Datum::Bytes(b) => parse_f64(b).value,
        other => exact(other).map_or(0.0, |d| d.to_f64()),
    }
}

/// The value as a decimal: doubles by their shortest text, strings by their longest numeric prefix. The nearest one where
/// it is out of range; NULL is 0.
pub fn decimal(value: &Datum<'_>) -> Decimal {
    match value {
        Datum::Float(v) => nearest(f64::from(*v)),
        Datum::Double(v) => nearest(*v),
        Datum::Str(s) => Decimal::parse_prefix(s.as_bytes()).value,
        Datum::Bytes(b) => Decimal::parse_prefix(b).value,
        other => exact(other).unwrap_or(Decimal::ZERO),
    }
}

fn nearest(v: f64) -> Decimal {
    Decimal::from_f64(v).unwrap_or_else(|_| Decimal::max_of(Decimal::MAX_PRECISION, 0, v < 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_kinds_compare_by_mysqls_rules() {
        let dec = |text: &str| Datum::Decimal(text.parse().expect("a decimal"));
        // 2020-01-02
        let date = Datum::Date(18_263);
        for (a, b, wanted) in [
            (Datum::Int(-1), Datum::UInt(u64::MAX), Ordering::Less),
            (Datum::Int(1), dec("1.0"), Ordering::Equal),
            (dec("0.1"), Datum::Double(0.1), Ordering::Equal),
            (Datum::str("10"), Datum::Int(9), Ordering::Greater),
            (Datum::str("1x"), Datum::Int(1), Ordering::Equal),
            (Datum::str("a"), Datum::str("A"), Ordering::Equal),
            (Datum::bytes(b"a"), Datum::str("A"), Ordering::Greater),
            (date.clone(), Datum::str("2020-1-2"), Ordering::Equal),
            (date.clone(), Datum::str("2020-01-02 00:00:01"), Ordering::Less),
            (date.clone(), Datum::Int(20_200_102), Ordering::Equal),
            (date.clone(), Datum::DateTime(18_263 * DAY), Ordering::Equal),
            (Datum::Time(36_672_500_000), dec("101112.5"), Ordering::Equal),
            (Datum::Float(0.5), Datum::Double(0.5), Ordering::Equal),
        ] {
            assert_eq!(compare(&a, &b, Collation::DEFAULT), Some(wanted), "{a:?} {b:?}");
            assert_eq!(compare(&b, &a, Collation::DEFAULT), Some(wanted.reverse()), "{b:?} {a:?}");
        }
        assert_eq!(compare(&Datum::Null, &date, Collation::DEFAULT), None);
        assert_eq!(sort_order(&Datum::Null, &date, Collation::DEFAULT), Ordering::Less);
    }
}
