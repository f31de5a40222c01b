//! Statement texts that are not UTF-8 throughout.
//!
//! Drivers that build texts themselves put byte strings into them raw, as in `_binary'\xFF…'`. Such a literal
//! is rewritten as `x'FF…'`, which means the same; invalid bytes anywhere else are error 1300.

use std::borrow::Cow;
use std::fmt::Write;

use avocet_types::error::{ErrorCode, SqlError};

/// The text of a statement as UTF-8.
pub fn decode(raw: &[u8]) -> Result<Cow<'_, str>, SqlError> {
    match std::str::from_utf8(raw) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) => rewrite(raw).map(Cow::Owned),
    }
}

fn rewrite(raw: &[u8]) -> Result<String, SqlError> {
    let mut text = String::with_capacity(raw.len() * 2);
    let mut at = 0;
    let mut copied = 0;
    while at < raw.len() {
        let end = token_end(raw, at);
        let quoted = matches!(raw[at], b'\'' | b'"') && end - at >= 2 && raw[end - 1] == raw[at];
        if quoted && std::str::from_utf8(&raw[at..end]).is_err() {
            text.push_str(valid(&raw[copied..at])?);
            // The space keeps the literal apart from an introducer such as _binary.
            text.push_str(" x'");
            for byte in unescape(&raw[at + 1..end - 1], raw[at]) {
                let _ = write!(text, "{byte:02X}");
            }
            text.push('\'');
            copied = end;
        }
        at = end;
    }
    text.push_str(valid(&raw[copied..])?);
    Ok(text)
}

/// The end of what starts at `at`: a quoted literal or name, a comment, or else one byte.
fn token_end(raw: &[u8], at: usize) -> usize {
    let rest = &raw[at..];
    let until = |needle: &[u8]| {
        rest.windows(needle.len()).position(|w| w == needle).map_or(raw.len(), |i| at + i + needle.len())
    };
    match rest {
        [b'\'' | b'"' | b'`', ..] => literal_end(raw, at),
        [b'#', ..] | [b'-', b'-', b' ' | b'\t' | b'\n', ..] => until(b"\n"),
        [b'/', b'*', ..] => until(b"*/"),
        _ => at + 1,
    }
}

/// Where the literal that opens at `start` is over: behind its closing quote, or at the end of the text.
fn literal_end(raw: &[u8], start: usize) -> usize {
    let quote = raw[start];
    let mut at = start + 1;
    while at < raw.len() {
        match raw[at] {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote && raw.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    raw.len()
}

/// The bytes that a literal's inside stands for.
fn unescape(inside: &[u8], quote: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside.iter().copied();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next().unwrap_or(b'\\') {
                b'0' => 0,
                b'b' => 8,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'Z' => 26,
                other => other,
            },
            byte if byte == quote => rest.next().unwrap_or(quote),
            byte => byte,
        });
    }
    bytes
}

fn valid(bytes: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(bytes).map_err(|e| {
        let bad = &bytes[e.valid_up_to()..];
        let shown: String = bad.iter().take(6).map(|b| format!("\\x{b:02X}")).collect();
        ErrorCode::INVALID_CHARACTER_STRING.with(&[&"utf8mb4", &shown])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn raw_bytes_in_a_literal_become_hexadecimal() {
        let raw = b"INSERT INTO t VALUES ('\xC3\xA9', _binary'\xFF\\0\\'''\x80', \"x\")";
        assert_eq!(
            decode(raw).expect("a literal"),
            "INSERT INTO t VALUES ('\u{e9}', _binary x'FF00272780', \"x\")"
        );
    }

    #[test]
    fn quotes_in_comments_and_names_open_no_literal() {
        let raw = b"-- don't\nSELECT `a'b` /* it's */, '\xFF'";
        assert_eq!(decode(raw).expect("a literal"), "-- don't\nSELECT `a'b` /* it's */,  x'FF'");
        assert_eq!(decode(b"SELECT '\xFF").expect_err("no end").errno, 1300);
    }

    #[test]
    fn raw_bytes_elsewhere_are_an_error() {
        assert_eq!(decode(b"SELECT \xFF").expect_err("not a literal").errno, 1300);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(raw in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(&raw);
        }
    }
}
