//! What a statement's text says besides its literals: the key under which compiled plans are kept.
//!
//! ```text
//!  text     SELECT c FROM t WHERE id = 7 AND name <> 'x'
//!  digest   SELECT c FROM t WHERE id = ? AND name <> ?        slots: 7, 'x'
//! ```
//!
//! Literals and `?` become *slots*. All else is kept byte for byte, blanks and comments between tokens too, because
//! MySQL names columns by the text of their expressions; what stands before the first token and behind the last is left
//! out. So the same digest means the same tokens with other literals, and a prepared statement has the digest of the
//! texts that it stands for.
//!
//! The memory of a digest is used again for the next statement: reading one allocates nothing.

use std::borrow::Cow;

use avocet_types::expr::SqlMode;
use avocet_types::{Collation, Datum, Decimal, SqlType};

use super::ast::Span;
use super::lexer::{Op, Raw, Scanner, unquoted};
use super::outline::is_blank;

/// Longer texts are not worth keeping a plan for, and have no digest.
pub const MAX_TEXT: usize = 16 * 1024;
const MAX_SLOTS: usize = 1024;

/// A place where a value stands in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub span: Span,
    pub kind: SlotKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// A `?`.
    Param,
    Integer,
    Decimal,
    Float,
    String,
}

/// A statement's digest; see the module's head.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    pub text: Vec<u8>,
    pub slots: Vec<Slot>,
    /// Which slots are a LIMIT or an OFFSET.
    pub limits: Vec<u16>,
    /// Whether there are optimizer hints, which only the parser reads.
    pub hinted: bool,
    /// Whether a comment stands behind the semicolon at its end: to MySQL, one more statement.
    pub has_more: bool,
}

impl Digest {
    /// Reads a statement's text; false if it is none that plans are kept for: several statements, one that is not a query
    /// or a change of rows, a very long one, or no statement at all.
    pub fn read(&mut self, source: &[u8], mode: SqlMode) -> bool {
        self.text.clear();
        self.slots.clear();
        self.limits.clear();
        self.hinted = false;
        self.has_more = false;
        if source.len() > MAX_TEXT {
            return false;
        }
        let mut scanner = Scanner::new(source, mode);
        let (mut first, mut span) = scanner.token();
        let begin = span.start as usize;
        let is_in_parentheses = first == Raw::Op(Op::LParen);
        while first == Raw::Op(Op::LParen) {
            (first, span) = scanner.token();
        }
        if first != Raw::Word || !begins_plan(span.bytes(source), is_in_parentheses) {
            return false;
        }
        let mut copied = begin;
        let mut end = span.end as usize;
        let mut is_limit = false;
        loop {
            let (raw, span) = scanner.token();
            let kind = match raw {
                Raw::End => break,
                Raw::Op(Op::Semicolon) => {
                    if scanner.token().0 != Raw::End {
                        return false;
                    }
                    self.has_more = !is_blank(&source[span.end as usize..]);
                    break;
                }
                Raw::Invalid => return false,
                Raw::Param => SlotKind::Param,
                Raw::Integer => SlotKind::Integer,
                Raw::Decimal => SlotKind::Decimal,
                // Too large for a DOUBLE is an error of parsing.
                Raw::Float if overflows(span.bytes(source)) => return false,
                Raw::Float => SlotKind::Float,
                // Text of another character set is another expression.
                Raw::String if !matches!(source[span.start as usize], b'n' | b'N') => SlotKind::String,
                _ => {
                    let word = span.bytes(source);
                    is_limit = match raw {
                        Raw::Word => {
                            word.eq_ignore_ascii_case(b"LIMIT")
                                || is_limit && word.eq_ignore_ascii_case(b"OFFSET")
                        }
                        _ => is_limit && raw == Raw::Op(Op::Comma),
                    };
                    end = span.end as usize;
                    continue;
                }
            };
            if self.slots.len() == MAX_SLOTS {
                return false;
            }
            self.text.extend_from_slice(&source[copied..span.start as usize]);
            self.text.push(b'?');
            if is_limit {
                self.limits.push(self.slots.len() as u16);
            }
            self.slots.push(Slot { span, kind });
            copied = span.end as usize;
            end = copied;
        }
        self.text.extend_from_slice(&source[copied..end]);
        self.hinted = !scanner.hints.is_empty();
        true
    }
}

impl Digest {
    /// Which parameters, instead of which slots, are a LIMIT or an OFFSET.
    pub fn number_limits_by_params(&mut self) {
        let is_param = |slot: &Slot| slot.kind == SlotKind::Param;
        let Self { slots, limits, .. } = self;
        limits.retain(|at| is_param(&slots[usize::from(*at)]));
        for at in limits {
            *at = slots[..usize::from(*at)].iter().filter(|slot| is_param(slot)).count() as u16;
        }
    }
}

fn overflows(number: &[u8]) -> bool {
    std::str::from_utf8(number).ok().and_then(|text| text.parse::<f64>().ok()).is_none_or(f64::is_infinite)
}

/// Whether a statement that begins with this word may have a plan.
fn begins_plan(word: &[u8], is_in_parentheses: bool) -> bool {
    let is = |known: &[&[u8]]| known.iter().any(|known| word.eq_ignore_ascii_case(known));
    is(&[b"SELECT", b"WITH"]) || !is_in_parentheses && is(&[b"UPDATE", b"INSERT", b"DELETE", b"REPLACE"])
}

impl Slot {
    /// The value of a literal; `None` for a `?`. `source` and `mode` are those that the digest was read with.
    pub fn value<'s>(&self, source: &'s str, mode: SqlMode) -> Option<Datum<'s>> {
        let text = source.get(self.span.start as usize..self.span.end as usize)?;
        Some(match self.kind {
            SlotKind::Param => return None,
            SlotKind::Integer => {
                let value: u64 = text.parse().ok()?;
                i64::try_from(value).map_or(Datum::UInt(value), Datum::Int)
            }
            SlotKind::Decimal => Datum::Decimal(Decimal::parse_prefix(text.as_bytes()).value),
            SlotKind::Float => Datum::Double(text.parse().ok()?),
            SlotKind::String => Datum::Str(string(text, mode)?),
        })
    }
}

/// The characters of a string token; borrowed if they stand there as they are.
fn string(text: &str, mode: SqlMode) -> Option<Cow<'_, str>> {
    let quote = text.as_bytes()[0];
    let inner = text.get(1..text.len().checked_sub(1)?)?;
    let plain = matches!(quote, b'\'' | b'"') && !inner.bytes().any(|byte| byte == b'\\' || byte == quote);
    if plain {
        return Some(Cow::Borrowed(inner));
    }
    String::from_utf8(unquoted(text.as_bytes(), mode)).ok().map(Cow::Owned)
}

/// The type of a literal where it is a parameter of a plan: as the binder types literals, but for the length of strings.
pub fn literal_type(value: &Datum<'_>, connection: Collation) -> SqlType {
    match value {
        Datum::Int(_) => SqlType::BIGINT,
        Datum::UInt(_) => SqlType::BIGINT_UNSIGNED,
        Datum::Double(_) => SqlType::DOUBLE,
        Datum::Decimal(v) => v.own_type(),
        _ => SqlType::VarChar { len: 16_383, collation: connection },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(source: &str) -> Option<(String, Vec<String>)> {
        let mut digest = Digest::default();
        let kept = digest.read(source.as_bytes(), SqlMode::DEFAULT);
        let values = digest.slots.iter().map(|s| format!("{:?}", s.value(source, SqlMode::DEFAULT)));
        kept.then(|| (String::from_utf8(digest.text.clone()).expect("text"), values.collect()))
    }

    #[test]
    fn literals_become_slots() {
        let (text, values) =
            digest("/* a */ SELECT a, 1 FROM t WHERE b='x' AND c=-2.50 AND d>1e3;").expect("one");
        assert_eq!(text, "SELECT a, ? FROM t WHERE b=? AND c=-? AND d>?");
        assert_eq!(values[0], "Some(Int(1))");
        assert_eq!(values[1], "Some(Str(\"x\"))");
        assert_eq!(values[3], "Some(Double(1000.0))");
        let same = digest("SELECT a, ? FROM t WHERE b=? AND c=-? AND d>? -- tail").expect("one");
        assert_eq!(same.0, text);
        assert_eq!(same.1, ["None"; 4]);
    }

    #[test]
    fn limits_are_told_apart() {
        let limits = |source: &str| {
            let mut digest = Digest::default();
            digest.read(source.as_bytes(), SqlMode::DEFAULT).then_some(digest.limits)
        };
        assert_eq!(limits("SELECT 1, 2 FROM t WHERE a = ? LIMIT ?").expect("one"), [3]);
        assert_eq!(
            limits("SELECT a FROM (SELECT 1 FROM t limit 5) x WHERE b = 7 LIMIT 2, ?").expect("one"),
            [1, 3, 4]
        );
        assert_eq!(limits("SELECT `limit`, 3 FROM t LIMIT ? OFFSET 9").expect("one"), [1, 2]);
        assert_eq!(limits("SELECT a FROM t WHERE offset = 1").expect("one"), [0; 0]);
    }

    #[test]
    fn strings_are_read_as_the_parser_reads_them() {
        let (_, values) = digest(r"SELECT 'a''b', 'c\nd', '\%', N'e'").expect("one");
        let shown: Vec<_> = ["a'b", "c\nd", "\\%"].map(|s| format!("Some(Str({s:?}))")).into();
        assert_eq!(values, shown);
    }

    #[test]
    fn names_and_numbers_keep_apart() {
        assert_eq!(
            digest("SELECT `a``1`, t1.2x, 1a FROM t1").expect("one").0,
            "SELECT `a``1`, t1.2x, 1a FROM t1"
        );
        assert_eq!(digest("SELECT 18446744073709551616").expect("one").1.len(), 1);
        assert!(digest("SELECT 18446744073709551615").expect("one").1[0].contains("UInt"));
    }

    #[test]
    fn what_has_no_plan_is_told_apart() {
        let (text, _) = digest("((SELECT a FROM t WHERE b = 1) UNION SELECT 2)").expect("one");
        assert_eq!(text, "((SELECT a FROM t WHERE b = ?) UNION SELECT ?)");
        for text in ["", "(", "(DELETE FROM t)", "SET a = 1", "SELECT 1; SELECT 2", "SELECT 'open", "BEGIN"] {
            assert_eq!(digest(text), None, "{text}");
        }
        assert!(digest("select 1 ; ").is_some());
        assert_eq!(digest(&format!("SELECT {}", "1,".repeat(9_000))), None);
    }
}
