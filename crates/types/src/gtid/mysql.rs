//! Sets of MySQL's GTIDs as its functions read and write them: GTID_SUBSET() and GTID_SUBTRACT() say where a text is wrong.
//!
//! ```text
//!  set      = [item] { ',' [item] }
//!  item     = uuid { ':' (tag | interval) }         uuid: with all dashes or none, in braces or not
//!  interval = number [ '-' number ]                 of no transaction if the second is lower
//! ```
//! MySQL 8.4 Reference Manual, 19.1.3.1 "GTID Format and Storage"; where the texts of errors point is MySQL 9.7's.

use std::fmt;

use super::{GtidSet, Origin};

/// Characters that a tag has at most.
const LONGEST_TAG: usize = 32;
/// The first number that no transaction has.
const END: u64 = i64::MAX as u64;

/// What was expected of a text, and where, in MySQL's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedGtids(String);

impl fmt::Display for MalformedGtids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl GtidSet {
    /// Reads a set as MySQL does, which takes no positions of a MariaDB.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn of_mysql_text(text: &str) -> Result<Self, MalformedGtids> {
        let mut reader = Reader { text: text.as_bytes(), at: 0 };
        let mut set = Self::default();
        reader.set(&mut set).map_err(|what| reader.malformed(what))?;
        Ok(set)
    }

    /// The set as MySQL writes it: a line for each server, with its tags.
    pub fn mysql_text(&self) -> String {
        let mut text = String::new();
        let mut last: Option<&Origin> = None;
        for (origin, intervals) in &self.intervals {
            if last.is_some_and(|last| last.uuid == origin.uuid) {
                text.push(':');
                text.push_str(&origin.tag);
            } else {
                if last.is_some() {
                    text.push_str(",\n");
                }
                text.push_str(&origin.to_string());
            }
            for &(first, end) in intervals {
                text.push_str(&format!(":{first}"));
                if first != end {
                    text.push_str(&format!("-{end}"));
                }
            }
            last = Some(origin);
        }
        text
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

/// What was expected at the reader's place.
type Read<T> = Result<T, &'static str>;

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_spaces(&mut self) {
        // Those of isspace(), the vertical tab too.
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace() || byte == 0x0b) {
            self.at += 1;
        }
    }

    fn set(&mut self, set: &mut GtidSet) -> Read<()> {
        loop {
            self.skip_spaces();
            if self.at == self.text.len() {
                return Ok(());
            }
            if self.eat(b',') {
                continue;
            }
            self.item(set)?;
            if self.at < self.text.len() && !self.eat(b',') {
                return Err("Expected \",\"");
            }
        }
    }

    fn item(&mut self, set: &mut GtidSet) -> Read<()> {
        let uuid = self.uuid()?;
        let mut origin = Origin { uuid, tag: String::new() };
        loop {
            self.skip_spaces();
            if !self.eat(b':') {
                return Ok(());
            }
            self.skip_spaces();
            if let Some(tag) = self.tag() {
                origin.tag = tag;
                continue;
            }
            let (first, last) = self.interval()?;
            if first <= last {
                set.add_range(&origin, first, last);
            }
        }
    }

    fn uuid(&mut self) -> Read<[u8; 16]> {
        let is_braced = self.eat(b'{');
        let mut uuid = [0; 16];
        let mut has_dashes = false;
        for (at, byte) in uuid.iter_mut().enumerate() {
            if at == 4 {
                has_dashes = self.eat(b'-');
            } else if has_dashes && matches!(at, 6 | 8 | 10) && !self.eat(b'-') {
                return Err("Expected \"-\"");
            }
            if self.text.len() - self.at < 2 {
                return Err("Expected at least two hex digits");
            }
            *byte = self.hex_digit()? << 4 | self.hex_digit()?;
        }
        if is_braced && !self.eat(b'}') {
            return Err("Expected \"}\"");
        }
        Ok(uuid)
    }

    fn hex_digit(&mut self) -> Read<u8> {
        let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
        let digit = digit.ok_or("Expected hex digit")?;
        self.at += 1;
        Ok(digit as u8)
    }

    /// `None` for a number, and for what is too long.
    fn tag(&mut self) -> Option<String> {
        self.peek().filter(|byte| byte.is_ascii_alphabetic() || *byte == b'_')?;
        let rest = &self.text[self.at..];
        let len = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        if len > LONGEST_TAG {
            return None;
        }
        self.at += len;
        Some(String::from_utf8_lossy(&rest[..len]).to_ascii_lowercase())
    }

    fn number(&mut self) -> Read<u64> {
        let rest = &self.text[self.at..];
        let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if len == 0 {
            return Err("Expected number");
        }
        let number = std::str::from_utf8(&rest[..len]).ok().and_then(|digits| digits.parse().ok());
        let number = number.ok_or("Number out of range")?;
        self.at += len;
        Ok(number)
    }

    fn interval(&mut self) -> Read<(u64, u64)> {
        let begin = self.at;
        let first = self.number()?;
        if first == 0 || first >= END {
            self.at = begin;
            return Err("Interval start out of range");
        }
        self.skip_spaces();
        if !self.eat(b'-') {
            return Ok((first, first));
        }
        self.skip_spaces();
        let last = self.number()?;
        if last >= END {
            return Err("Interval end out of range");
        }
        self.skip_spaces();
        Ok((first, last))
    }

    fn malformed(&self, what: &str) -> MalformedGtids {
        let (before, after) = self.text.split_at(self.at);
        let before = match before.len() {
            0..=14 => shown(before),
            len => format!("...{}", shown(&before[len - 11..])),
        };
        let after = match after.len() {
            0..=28 => shown(after),
            _ => format!("{}...", shown(&after[..25])),
        };
        MalformedGtids(match self.at {
            0 => format!("{what} at the beginning of the string: \"{after}\""),
            at => format!("{what} after {at} characters, marked by [HERE] in: \"{before}[HERE]{after}\""),
        })
    }
}

fn shown(bytes: &[u8]) -> String {
    let show =
        |byte: &u8| if byte.is_ascii() { char::from(*byte).to_string() } else { format!("\\x{byte:02x}") };
    bytes.iter().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    /// The answers are MySQL 9.7's.
    #[test]
    fn texts_are_read_as_by_mysql() {
        let read = |text: &str| {
            GtidSet::of_mysql_text(&text.replace('@', A)).map(|set| set.mysql_text().replace(A, "@"))
        };
        for (text, set) in [
            (" , ", ""),
            ("@", ""),
            ("@:tag", ""),
            ("@:5-4:7", "@:7"),
            ("@:1-0", ""),
            (",@:1,,", "@:1"),
            ("@:Tag:1-5:TAG:7", "@:tag:1-5:7"),
            ("@:1:tag:2:3-4:b:1", "@:1:b:1:tag:2-4"),
            ("@:tag:1,@:1", "@:1:tag:1"),
            ("@:1 - 3 : 5", "@:1-3:5"),
            ("@:1\n:2\t", "@:1-2"),
            ("{@}:01-3", "@:1-3"),
            ("3E11FA4771CA11E19E33C80AA9429562:2:1:3", "@:1-3"),
            (
                "@:tag:tag2:1,4E11fa47-71ca-11e1-9e33-c80aa9429562:1",
                "@:tag2:1,\n4e11fa47-71ca-11e1-9e33-c80aa9429562:1",
            ),
            ("@:9223372036854775806", "@:9223372036854775806"),
        ] {
            assert_eq!(read(text), Ok(set.to_owned()), "{text}");
        }
        for (text, wrong) in [
            ("x", "Expected at least two hex digits at the beginning of the string: \"x\""),
            ("0-1-5", "Expected hex digit after 1 characters, marked by [HERE] in: \"0[HERE]-1-5\""),
            ("+@:1", "Expected hex digit at the beginning of the string: \"+3e11fa47-71ca-11e1-9e33-...\""),
            ("@:", "Expected number after 37 characters, marked by [HERE] in: \"...0aa9429562:[HERE]\""),
            (
                "@:0-5",
                "Interval start out of range after 37 characters, marked by [HERE] in: \"...0aa9429562:[HERE]0-5\"",
            ),
            (
                "@:1-9223372036854775807",
                "Interval end out of range after 58 characters, marked by [HERE] in: \"...36854775807[HERE]\"",
            ),
            (
                "@:1-é",
                "Expected number after 39 characters, marked by [HERE] in: \"...a9429562:1-[HERE]\\xc3\\xa9\"",
            ),
            (
                "@:1 @:1",
                "Expected \",\" after 39 characters, marked by [HERE] in: \"...a9429562:1 [HERE]3e11fa47-71ca-11e1-9e33-c...\"",
            ),
            ("{@:1", "Expected \"}\" after 37 characters, marked by [HERE] in: \"...80aa9429562[HERE]:1\""),
            (
                "3e11fa47-71ca-zz",
                "Expected hex digit after 14 characters, marked by [HERE] in: \"3e11fa47-71ca-[HERE]zz\"",
            ),
            (
                "@:a23456789012345678901234567890123:1",
                "Expected number after 37 characters, marked by [HERE] in: \"...0aa9429562:[HERE]a234567890123456789012345...\"",
            ),
        ] {
            let said = read(text).expect_err(text);
            assert_eq!(said.to_string(), wrong, "{text}");
        }
    }
}
