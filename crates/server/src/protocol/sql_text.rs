//! Statement texts that are not in their character set throughout.
//!
//! Drivers that build texts themselves put byte strings into them raw, as in `_binary'\xFF…'`. Such a literal
//! is rewritten as `x'FF…'`, which means the same; invalid bytes anywhere else are error 1300.
//!
//! In GBK, Shift-JIS and Big5 the second byte of a character may be a backslash. Where a literal ends is then a matter of bytes, as MySQL's
//! lexer reads them: a backslash takes the one byte behind it, also if that could begin a character. Clients that escape texts byte by byte
//! (`mysql_real_escape_string`) count on it; a text that was decoded first would end its literals elsewhere.

use std::borrow::Cow;
use std::fmt::Write;

use avocet_types::collation::Charset;
use avocet_types::error::{ErrorCode, SqlError};

/// How literals are read.
#[derive(Clone, Copy)]
struct Reading {
    /// `None` for UTF-8.
    charset: Option<Charset>,
    /// A backslash takes the byte behind it.
    escapes: bool,
}

/// The text of a statement as UTF-8. `escapes`: a backslash in a literal takes the byte behind it.
pub fn decode(raw: &[u8], escapes: bool) -> Result<Cow<'_, str>, SqlError> {
    match std::str::from_utf8(raw) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) => rewrite(raw, Reading { charset: None, escapes }).map(Cow::Owned),
    }
}

/// Whether characters of a character set may end in a backslash.
pub fn may_end_in_backslash(charset: Charset) -> bool {
    matches!(charset, Charset::Gbk | Charset::Sjis | Charset::Cp932 | Charset::Big5)
}

/// The text of a statement in such a character set.
pub fn decode_in(raw: &[u8], charset: Charset, escapes: bool) -> Result<String, SqlError> {
    let is_plain = !raw.windows(2).any(|pair| pair[0] == b'\\' && !pair[1].is_ascii());
    match charset.decode(raw) {
        Ok(text) if is_plain => Ok(text),
        _ => rewrite(raw, Reading { charset: Some(charset), escapes }),
    }
}

/// How many bytes of a character begin here, by its first two: with which others they are one is not asked.
fn width(rest: &[u8], charset: Option<Charset>) -> usize {
    let [lead, trail, ..] = rest else { return 1 };
    let is_pair = match charset {
        Some(Charset::Gbk) => matches!((lead, trail), (0x81..=0xFE, 0x40..=0x7E | 0x80..=0xFE)),
        Some(Charset::Big5) => matches!((lead, trail), (0xA1..=0xF9, 0x40..=0x7E | 0xA1..=0xFE)),
        Some(Charset::Sjis | Charset::Cp932) => {
            matches!((lead, trail), (0x81..=0x9F | 0xE0..=0xFC, 0x40..=0x7E | 0x80..=0xFC))
        }
        _ => false,
    };
    if is_pair { 2 } else { 1 }
}

fn rewrite(raw: &[u8], reading: Reading) -> Result<String, SqlError> {
    let charset = reading.charset;
    let mut text = String::with_capacity(raw.len() * 2);
    let mut at = 0;
    let mut copied = 0;
    while at < raw.len() {
        let (end, is_closed) = token_end(raw, at, reading);
        // Decoded, it might end somewhere.
        if !is_closed && charset.is_some() {
            return Err(ErrorCode::PARSE_ERROR.with(&[&String::from_utf8_lossy(&raw[at..]), &1]));
        }
        let is_literal = is_closed && matches!(raw[at], b'\'' | b'"');
        if is_literal && !is_as_decoded(&raw[at..end], reading) {
            text.push_str(&valid(&raw[copied..at], charset)?);
            let bytes = unescape(&raw[at + 1..end - 1], raw[at], reading);
            match charset.map(|charset| charset.decode(&bytes)) {
                Some(Ok(inside)) => push_literal(&mut text, &inside, reading.escapes),
                // The space keeps the literal apart from an introducer such as _binary.
                _ => {
                    text.push_str(" x'");
                    for byte in bytes {
                        let _ = write!(text, "{byte:02X}");
                    }
                    text.push('\'');
                }
            }
            copied = end;
        }
        at = end;
    }
    text.push_str(&valid(&raw[copied..], charset)?);
    Ok(text)
}

/// Whether a literal means the same once its bytes are decoded: there are only valid ones, and no backslash before half a character.
fn is_as_decoded(literal: &[u8], reading: Reading) -> bool {
    let Some(charset) = reading.charset else { return std::str::from_utf8(literal).is_ok() };
    let mut at = 0;
    while at < literal.len() {
        let is_escape = reading.escapes && literal[at] == b'\\';
        if is_escape && literal.get(at + 1).is_some_and(|next| !next.is_ascii()) {
            return false;
        }
        at += if is_escape { 2 } else { width(&literal[at..], Some(charset)) };
    }
    charset.decode(literal).is_ok()
}

fn push_literal(text: &mut String, inside: &str, escapes: bool) {
    text.push('\'');
    for c in inside.chars() {
        match c {
            '\'' => text.push('\''),
            '\\' if escapes => text.push('\\'),
            _ => {}
        }
        text.push(c);
    }
    text.push('\'');
}

/// The end of what starts at `at`: a quoted literal or name, a comment, or else one character; and whether it is all there.
fn token_end(raw: &[u8], at: usize, reading: Reading) -> (usize, bool) {
    let rest = &raw[at..];
    let until = |needle: &[u8]| {
        rest.windows(needle.len()).position(|w| w == needle).map_or(raw.len(), |i| at + i + needle.len())
    };
    match rest {
        [b'\'' | b'"' | b'`', ..] => match literal_end(raw, at, reading) {
            Some(end) => (end, true),
            None => (raw.len(), false),
        },
        [b'#', ..] | [b'-', b'-', b' ' | b'\t' | b'\n', ..] => (until(b"\n"), true),
        [b'/', b'*', ..] => (until(b"*/"), true),
        _ => (at + width(rest, reading.charset), true),
    }
}

/// Where the literal that opens at `start` is over: behind its closing quote, if it has one.
fn literal_end(raw: &[u8], start: usize, reading: Reading) -> Option<usize> {
    let quote = raw[start];
    let mut at = start + 1;
    while at < raw.len() {
        match (width(&raw[at..], reading.charset), raw[at]) {
            (2, _) => at += 2,
            (_, b'\\') if reading.escapes && quote != b'`' => at += 2,
            (_, byte) if byte == quote && raw.get(at + 1) == Some(&quote) => at += 2,
            (_, byte) if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// The bytes that a literal's inside stands for.
fn unescape(inside: &[u8], quote: u8, reading: Reading) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(inside.len());
    let mut at = 0;
    while at < inside.len() {
        let next = inside.get(at + 1).copied();
        match (width(&inside[at..], reading.charset), inside[at]) {
            (2, _) => bytes.extend_from_slice(&inside[at..at + 2]),
            (_, b'\\') if reading.escapes => bytes.push(match next.unwrap_or(b'\\') {
                b'0' => 0,
                b'b' => 8,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'Z' => 26,
                other => other,
            }),
            (_, byte) => bytes.push(byte),
        }
        at += match (width(&inside[at..], reading.charset), inside[at]) {
            (2, _) => 2,
            (_, b'\\') if reading.escapes => 2,
            (_, byte) if byte == quote && next == Some(quote) => 2,
            _ => 1,
        };
    }
    bytes
}

fn valid(bytes: &[u8], charset: Option<Charset>) -> Result<Cow<'_, str>, SqlError> {
    let decoded = match charset {
        None => std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| error.valid_up_to()),
        Some(charset) => charset.decode(bytes).map(Cow::Owned),
    };
    decoded.map_err(|at| {
        let shown: String = bytes[at..].iter().take(6).map(|b| format!("\\x{b:02X}")).collect();
        let name = charset.unwrap_or(Charset::Utf8mb4).name();
        ErrorCode::INVALID_CHARACTER_STRING.with(&[&name, &shown])
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
            decode(raw, true).expect("a literal"),
            "INSERT INTO t VALUES ('\u{e9}', _binary x'FF00272780', \"x\")"
        );
    }

    #[test]
    fn quotes_in_comments_and_names_open_no_literal() {
        let raw = b"-- don't\nSELECT `a'b` /* it's */, '\xFF'";
        assert_eq!(decode(raw, true).expect("a literal"), "-- don't\nSELECT `a'b` /* it's */,  x'FF'");
        assert_eq!(decode(b"SELECT '\xFF", true).expect_err("no end").errno, 1300);
    }

    #[test]
    fn a_backslash_takes_one_byte_of_a_character() {
        // What mysql_real_escape_string makes of a lone first byte and a quote.
        let raw = b"SELECT '\\\x81\\' or 1=1 -- '";
        for charset in [Charset::Gbk, Charset::Sjis, Charset::Cp932] {
            assert_eq!(
                decode_in(raw, charset, true).expect("a literal"),
                "SELECT  x'8127206F7220313D31202D2D20'",
                "{charset:?}"
            );
        }
        // A whole character behind a backslash stays what it is, and so does one that ends in a backslash.
        assert_eq!(
            decode_in(b"SELECT '\\\xB0\xA1a'", Charset::Gbk, true).expect("a literal"),
            "SELECT '\u{554a}a'"
        );
        assert_eq!(
            decode_in(b"SELECT '\xDF\x5C', 1", Charset::Gbk, true).expect("a literal"),
            "SELECT '\u{904b}', 1"
        );
        assert_eq!(
            decode_in(b"SELECT '\\\\\xDF\x5C', '\xFF'", Charset::Gbk, true).expect("a literal"),
            "SELECT '\\\\\u{904b}',  x'FF'"
        );
        // Without escapes a backslash is a character of its own.
        assert_eq!(
            decode_in(b"SELECT '\\\xB0\xA1'", Charset::Gbk, false).expect("a literal"),
            "SELECT '\\\u{554a}'"
        );
        assert_eq!(decode(b"SELECT '\\', '\xFF'", false).expect("a literal"), "SELECT '\\',  x'FF'");
        // The quote behind a first byte alone is a quote, and two of them are one.
        assert_eq!(decode_in(b"SELECT '\x81''", Charset::Gbk, true).expect_err("no end").errno, 1064);
        assert_eq!(decode_in(b"SELECT '\\\xB0\xA1\\''", Charset::Gbk, true).expect_err("no end").errno, 1064);
        assert_eq!(decode(b"SELECT '\xFF''", true).expect_err("no end").errno, 1300);
    }

    #[test]
    fn raw_bytes_elsewhere_are_an_error() {
        assert_eq!(decode(b"SELECT \xFF", true).expect_err("not a literal").errno, 1300);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(raw in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(&raw, true);
            let _ = decode(&raw, false);
            let _ = decode_in(&raw, Charset::Gbk, false);
            let _ = decode_in(&raw, Charset::Gbk, true);
            let _ = decode_in(&raw, Charset::Sjis, true);
        }
    }
}
