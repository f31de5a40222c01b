//! MySQL's order of documents, as a comparison and as keys.
//!
//! | precedence, lowest first | among themselves |
//! |---|---|
//! | null | equal |
//! | numbers | by value: a double is the decimal that it prints as, an integer if it is one |
//! | strings | by bytes |
//! | objects | by number of members, then by names and values |
//! | arrays | element by element, then by length |
//! | booleans | false, true |
//! | dates, times, datetimes | by value; the three kinds in this order |
//! | opaque | by type, then by bytes |
//!
//! Invariant: `compare(a, b)` is the order of `sort_key(a)` and `sort_key(b)`, and no key is the beginning of another.

use std::cmp::Ordering;

use crate::collation::bytes_key;
use crate::json::binary::{JsonRef, Node};

/// First bytes of keys. 0 ends an array.
mod rank {
    pub const END: u8 = 0;
    pub const NULL: u8 = 1;
    pub const NUMBER: u8 = 2;
    pub const STRING: u8 = 3;
    pub const OBJECT: u8 = 4;
    pub const ARRAY: u8 = 5;
    pub const BOOL: u8 = 6;
    pub const DATE: u8 = 7;
    pub const TIME: u8 = 8;
    pub const DATETIME: u8 = 9;
    pub const OPAQUE: u8 = 10;
}

fn rank_of(value: &JsonRef<'_>) -> u8 {
    match value {
        JsonRef::Null => rank::NULL,
        JsonRef::Int(_) | JsonRef::UInt(_) | JsonRef::Double(_) | JsonRef::Decimal(_) => rank::NUMBER,
        JsonRef::String(_) => rank::STRING,
        JsonRef::Object(_) => rank::OBJECT,
        JsonRef::Array(_) => rank::ARRAY,
        JsonRef::Bool(_) => rank::BOOL,
        JsonRef::Date(_) => rank::DATE,
        JsonRef::Time(_) => rank::TIME,
        JsonRef::DateTime(_) => rank::DATETIME,
        JsonRef::Opaque { .. } => rank::OPAQUE,
    }
}

/// Compares two documents.
pub fn compare(a: Node<'_>, b: Node<'_>) -> Ordering {
    let (a, b) = (a.view(), b.view());
    match (&a, &b) {
        (JsonRef::Int(x), JsonRef::Int(y)) => x.cmp(y),
        (JsonRef::UInt(x), JsonRef::UInt(y)) => x.cmp(y),
        (JsonRef::Int(x), JsonRef::UInt(y)) => i128::from(*x).cmp(&i128::from(*y)),
        (JsonRef::UInt(x), JsonRef::Int(y)) => i128::from(*x).cmp(&i128::from(*y)),
        (JsonRef::Double(x), JsonRef::Double(y)) => x.partial_cmp(y).unwrap_or(Ordering::Equal),
        (JsonRef::Decimal(x), JsonRef::Decimal(y)) => x.cmp(y),
        (JsonRef::String(x), JsonRef::String(y)) => x.as_bytes().cmp(y.as_bytes()),
        (JsonRef::Bool(x), JsonRef::Bool(y)) => x.cmp(y),
        (JsonRef::Date(x), JsonRef::Date(y)) => x.cmp(y),
        (JsonRef::Time(x), JsonRef::Time(y)) | (JsonRef::DateTime(x), JsonRef::DateTime(y)) => x.cmp(y),
        (JsonRef::Opaque { kind: k, bytes: x }, JsonRef::Opaque { kind: l, bytes: y }) => {
            k.cmp(l).then_with(|| x.cmp(y))
        }
        (JsonRef::Array(x), JsonRef::Array(y)) => {
            let elements = x.iter().zip(y.iter()).map(|(x, y)| compare(x, y));
            elements.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| x.len().cmp(&y.len()))
        }
        (JsonRef::Object(x), JsonRef::Object(y)) => {
            let member = |((name, x), (other, y)): ((&str, _), (&str, _))| {
                name.as_bytes().cmp(other.as_bytes()).then_with(|| compare(x, y))
            };
            x.len().cmp(&y.len()).then_with(|| {
                let mut members = x.iter().zip(y.iter()).map(member);
                members.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
            })
        }
        _ => rank_of(&a).cmp(&rank_of(&b)).then_with(|| {
            let (mut x, mut y) = (Vec::new(), Vec::new());
            number_key(&a, &mut x);
            number_key(&b, &mut y);
            x.cmp(&y)
        }),
    }
}

/// Appends bytes that order as the documents do.
pub fn sort_key(node: Node<'_>, to: &mut Vec<u8>) {
    let signed = |v: i64, to: &mut Vec<u8>| to.extend_from_slice(&(v as u64 ^ 1 << 63).to_be_bytes());
    let value = node.view();
    to.push(rank_of(&value));
    match &value {
        JsonRef::Null => {}
        JsonRef::Int(_) | JsonRef::UInt(_) | JsonRef::Double(_) | JsonRef::Decimal(_) => {
            number_key(&value, to)
        }
        JsonRef::String(text) => bytes_key(text.as_bytes(), to),
        JsonRef::Bool(v) => to.push((*v).into()),
        JsonRef::Date(v) => signed((*v).into(), to),
        JsonRef::Time(v) | JsonRef::DateTime(v) => signed(*v, to),
        JsonRef::Opaque { kind, bytes } => {
            to.push(*kind);
            bytes_key(bytes, to);
        }
        JsonRef::Array(array) => {
            array.iter().for_each(|element| sort_key(element, to));
            to.push(rank::END);
        }
        JsonRef::Object(object) => {
            to.extend_from_slice(&(object.len() as u32).to_be_bytes());
            for (name, value) in object.iter() {
                bytes_key(name.as_bytes(), to);
                sort_key(value, to);
            }
        }
    }
}

/// Sign, exponent, and digits of a number: `± 0.d₁d₂… · 10^exponent` with d₁ and the last digit not 0.
///
/// ```text
///  1 negative, 2 zero, 3 positive │ exponent + 2^15, big-endian │ digits + 1 │ 0
/// ```
///
/// All behind the first byte is inverted for negative numbers.
fn number_key(value: &JsonRef<'_>, to: &mut Vec<u8>) {
    let mut text = Vec::with_capacity(32);
    match value {
        JsonRef::Int(v) => crate::number::write_i64(*v, &mut text),
        JsonRef::UInt(v) => crate::number::write_u64(*v, &mut text),
        JsonRef::Decimal(v) => v.write(&mut text),
        // An integer is that, though it prints shorter: 2^63 as 9.223372036854776e18.
        JsonRef::Double(v) if v.fract() == 0.0 && v.abs() < 1e20 => {
            text.extend_from_slice((*v as i128).to_string().as_bytes());
        }
        JsonRef::Double(v) => text.extend_from_slice(format!("{v:e}").as_bytes()),
        _ => return,
    }
    let (negative, text) = match text.strip_prefix(b"-") {
        Some(text) => (true, text),
        None => (false, &text[..]),
    };
    let (mantissa, exponent) = match text.iter().position(|b| *b == b'e') {
        Some(e) => {
            (&text[..e], std::str::from_utf8(&text[e + 1..]).ok().and_then(|e| e.parse().ok()).unwrap_or(0))
        }
        None => (text, 0i32),
    };
    let point = mantissa.iter().position(|b| *b == b'.').unwrap_or(mantissa.len());
    let digits = || mantissa.iter().filter(|b| **b != b'.');
    let leading = digits().take_while(|b| **b == b'0').count();
    let total = digits().count();
    let trailing = digits().rev().take_while(|b| **b == b'0').count();
    if leading == total {
        return to.push(2);
    }
    let exponent = exponent + point as i32 - leading as i32;
    to.push(if negative { 1 } else { 3 });
    let start = to.len();
    to.extend_from_slice(&((exponent + 0x8000) as u16).to_be_bytes());
    to.extend(digits().skip(leading).take(total - leading - trailing).map(|b| b - b'0' + 1));
    to.push(0);
    if negative {
        to[start..].iter_mut().for_each(|b| *b = !*b);
    }
}
