//! Documents as texts.

use base64::Engine as _;

use crate::json::binary::{JsonRef, Node};
use crate::number::{write_f64_result, write_i64, write_u64};
use crate::temporal::{write_date, write_datetime, write_time};

/// Appends the text of a document, as MySQL shows it: a space behind each comma and colon.
pub fn write(node: Node<'_>, to: &mut Vec<u8>) {
    match node.view() {
        JsonRef::Array(array) => {
            to.push(b'[');
            for (i, element) in array.iter().enumerate() {
                if i > 0 {
                    to.extend_from_slice(b", ");
                }
                write(element, to);
            }
            to.push(b']');
        }
        JsonRef::Object(object) => {
            to.push(b'{');
            for (i, (name, value)) in object.iter().enumerate() {
                if i > 0 {
                    to.extend_from_slice(b", ");
                }
                quote(name, to);
                to.extend_from_slice(b": ");
                write(value, to);
            }
            to.push(b'}');
        }
        JsonRef::Null => to.extend_from_slice(b"null"),
        JsonRef::String(text) => quote(text, to),
        JsonRef::Bool(_) | JsonRef::Int(_) | JsonRef::UInt(_) | JsonRef::Double(_) | JsonRef::Decimal(_) => {
            write_unquoted(node, to);
        }
        // No character of these has to be escaped.
        JsonRef::Date(_) | JsonRef::DateTime(_) | JsonRef::Time(_) | JsonRef::Opaque { .. } => {
            to.push(b'"');
            write_unquoted(node, to);
            to.push(b'"');
        }
    }
}

/// The same, of a scalar without the quotation marks, as JSON_UNQUOTE and conversions to SQL strings have it.
pub(super) fn write_unquoted(node: Node<'_>, to: &mut Vec<u8>) {
    match node.view() {
        JsonRef::Bool(v) => to.extend_from_slice(if v { b"true" } else { b"false" }),
        JsonRef::Int(v) => write_i64(v, to),
        JsonRef::UInt(v) => write_u64(v, to),
        JsonRef::Double(v) => {
            let start = to.len();
            write_f64_result(v, to);
            // A double is told from an integer.
            if !to[start..].iter().any(|b| matches!(b, b'.' | b'e')) {
                to.extend_from_slice(b".0");
            }
        }
        JsonRef::Decimal(v) => v.write(to),
        JsonRef::String(text) => to.extend_from_slice(text.as_bytes()),
        JsonRef::Date(v) => write_date(v, to),
        JsonRef::DateTime(v) => write_datetime(v, 6, to),
        JsonRef::Time(v) => write_time(v, 6, to),
        JsonRef::Opaque { kind, bytes } => {
            to.extend_from_slice(b"base64:type");
            write_u64(kind.into(), to);
            to.push(b':');
            to.extend_from_slice(base64::engine::general_purpose::STANDARD.encode(bytes).as_bytes());
        }
        JsonRef::Null | JsonRef::Array(_) | JsonRef::Object(_) => write(node, to),
    }
}

/// Appends a string in quotation marks.
pub fn quote(text: &str, to: &mut Vec<u8>) {
    to.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let escaped: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            0x08 => b"\\b",
            0x0c => b"\\f",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0..0x20 => &[],
            _ => continue,
        };
        to.extend_from_slice(&bytes[start..at]);
        start = at + 1;
        match escaped {
            [] => to.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            escaped => to.extend_from_slice(escaped),
        }
    }
    to.extend_from_slice(&bytes[start..]);
    to.push(b'"');
}

/// Appends the text with a line for each element, as JSON_PRETTY has it. Stops behind so many bytes: a short document can have long lines.
pub fn pretty(node: Node<'_>, depth: usize, most: usize, to: &mut Vec<u8>) {
    let line = |depth: usize, to: &mut Vec<u8>| {
        to.push(b'\n');
        to.resize(to.len() + 2 * depth, b' ');
    };
    match node.view() {
        JsonRef::Array(array) if !array.is_empty() => {
            to.push(b'[');
            for (i, element) in array.iter().enumerate() {
                if to.len() > most {
                    return;
                }
                if i > 0 {
                    to.push(b',');
                }
                line(depth + 1, to);
                pretty(element, depth + 1, most, to);
            }
            line(depth, to);
            to.push(b']');
        }
        JsonRef::Object(object) if !object.is_empty() => {
            to.push(b'{');
            for (i, (name, value)) in object.iter().enumerate() {
                if to.len() > most {
                    return;
                }
                if i > 0 {
                    to.push(b',');
                }
                line(depth + 1, to);
                quote(name, to);
                to.extend_from_slice(b": ");
                pretty(value, depth + 1, most, to);
            }
            line(depth, to);
            to.push(b'}');
        }
        _ => write(node, to),
    }
}
