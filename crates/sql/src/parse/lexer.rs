//! Source bytes to tokens, by MySQL's lexical rules (manual chapter "Language Structure").
//!
//! Works on bytes: a `_binary'…'` literal may hold any. Comments vanish here; the inside of a versioned comment
//! (`/*!40101 … */`) is read as if the comment marks were blanks, when its version is not above ours.
//!
//! The [`Scanner`] finds where tokens are and of which kind, without any allocation: that is all that a statement's digest
//! needs ([`digest`](super::digest)). [`tokenize`] also reads their values, for the parser.

use std::borrow::Cow;

use avocet_types::expr::SqlMode;

use crate::parse::ast::Span;

/// The version that versioned comments are compared with: MySQL 8.4.
const COMMENT_VERSION: u32 = 80_400;

#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TokenKind {
    /// A keyword or an unquoted identifier; its text is the source's.
    Word,
    QuotedIdent(Vec<u8>),
    /// With `true` for one in double quotes.
    String(Vec<u8>),
    /// `X'…'` or `0x…`
    Bytes(Vec<u8>),
    /// `b'…'` or `0b…`
    Bits(Vec<u8>),
    Integer(u64),
    /// With a point, or an integer too large for 64 bits.
    Decimal,
    /// With an exponent.
    Float(f64),
    Param,
    Op(Op),
    /// What no token begins with, or an unterminated quote or comment.
    Invalid,
    End,
}

/// A token's kind, its value unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw {
    Word,
    QuotedIdent,
    String,
    Hex,
    Bits,
    /// Of at most 64 bits.
    Integer,
    Decimal,
    Float,
    Param,
    Op(Op),
    Invalid,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    LParen,
    RParen,
    LBrace,
    RBrace,
    Comma,
    Semicolon,
    Dot,
    At,
    AtAt,
    Assign,
    Eq,
    NullSafeEq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    ShiftLeft,
    ShiftRight,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Caret,
    Tilde,
    Bang,
    Pipe,
    PipePipe,
    Ampersand,
    AmpersandAmpersand,
    Arrow,
    LongArrow,
}

/// All tokens of `source`, ending with [`TokenKind::End`]. Never fails: what can not be read becomes an
/// [`TokenKind::Invalid`] token, at which the parser stops with a syntax error. With them, the comments of optimizer hints.
pub fn tokenize(source: &[u8], mode: SqlMode) -> (Vec<Token>, Vec<Span>) {
    let mut scanner = Scanner::new(source, mode);
    let mut tokens = Vec::with_capacity(source.len() / 4 + 2);
    loop {
        let (raw, span) = scanner.token();
        tokens.push(Token { kind: value(raw, &source[span.start as usize..span.end as usize], mode), span });
        if raw == Raw::End {
            return (tokens, scanner.hints);
        }
    }
}

/// Reads the value of a token from its text.
fn value(raw: Raw, text: &[u8], mode: SqlMode) -> TokenKind {
    let number = || std::str::from_utf8(text).unwrap_or_default();
    match raw {
        Raw::Word => TokenKind::Word,
        Raw::QuotedIdent => TokenKind::QuotedIdent(unquoted_ident(text)),
        Raw::String => TokenKind::String(unquoted(text, mode)),
        Raw::Hex => hex_bytes(digits(text)).unwrap_or(TokenKind::Invalid),
        Raw::Bits => bit_bytes(digits(text)).unwrap_or(TokenKind::Invalid),
        Raw::Integer => number().parse().map_or(TokenKind::Invalid, TokenKind::Integer),
        Raw::Decimal => TokenKind::Decimal,
        Raw::Float => number().parse().map_or(TokenKind::Invalid, TokenKind::Float),
        Raw::Param => TokenKind::Param,
        Raw::Op(op) => TokenKind::Op(op),
        Raw::Invalid => TokenKind::Invalid,
        Raw::End => TokenKind::End,
    }
}

/// The digits of `x'…'`, `0x…`, `b'…'` or `0b…`.
fn digits(text: &[u8]) -> &[u8] {
    text[2..].strip_suffix(b"'").unwrap_or(&text[2..])
}

/// Finds tokens, one after the other.
pub struct Scanner<'a> {
    source: &'a [u8],
    at: usize,
    mode: SqlMode,
    /// How many versioned comments we are inside of.
    open_comments: u32,
    /// The token before, and where it ended.
    last: Option<(Raw, usize)>,
    /// Where that token began.
    last_start: usize,
    /// What stands between `/*+` and `*/` where optimizer hints may stand.
    pub hints: Vec<Span>,
    /// Comments for later versions, with their marks.
    pub later: Vec<Span>,
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

impl<'a> Scanner<'a> {
    pub fn new(source: &'a [u8], mode: SqlMode) -> Self {
        Self {
            source,
            at: 0,
            mode,
            open_comments: 0,
            last: None,
            last_start: 0,
            hints: Vec::new(),
            later: Vec::new(),
        }
    }

    #[inline]
    fn peek(&self, ahead: usize) -> u8 {
        self.source.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'a [u8] {
        &self.source[self.at..]
    }

    /// The next token; [`Raw::End`] again and again after the last.
    pub fn token(&mut self) -> (Raw, Span) {
        let (raw, start) = match self.skip_blanks() {
            Ok(()) if self.at >= self.source.len() && self.open_comments > 0 => {
                self.open_comments = 0;
                (Raw::Invalid, self.at)
            }
            Ok(()) if self.at >= self.source.len() => (Raw::End, self.at),
            Ok(()) => {
                let start = self.at;
                (self.read_token(), start)
            }
            Err(start) => {
                self.at = self.source.len();
                (Raw::Invalid, start)
            }
        };
        self.last = Some((raw, self.at));
        self.last_start = start;
        (raw, Span { start: start as u32, end: self.at as u32 })
    }

    fn read_token(&mut self) -> Raw {
        let byte = self.peek(0);
        match byte {
            b'\'' => self.quoted(b'\''),
            b'"' if self.mode.has(SqlMode::ANSI_QUOTES) => self.quoted_ident(b'"'),
            b'"' => self.quoted(b'"'),
            b'`' => self.quoted_ident(b'`'),
            b'?' => {
                self.at += 1;
                Raw::Param
            }
            b'x' | b'X' if self.peek(1) == b'\'' => self.prefixed_bytes(Raw::Hex),
            b'b' | b'B' if self.peek(1) == b'\'' => self.prefixed_bytes(Raw::Bits),
            b'n' | b'N' if self.peek(1) == b'\'' => {
                self.at += 1;
                self.quoted(b'\'')
            }
            _ if (is_word_byte(byte) || byte == b'.') && self.touches(Raw::Op(Op::At)) => {
                self.variable_name()
            }
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() && !self.follows_name() => self.number(),
            _ if is_word_byte(byte) => self.word(),
            _ => self.operator(),
        }
    }

    /// Whether the previous token is this one and ends where we are. After a single `@` comes a variable's or host's name.
    fn touches(&self, raw: Raw) -> bool {
        self.last == Some((raw, self.at))
    }

    fn follows_name(&self) -> bool {
        self.touches(Raw::Word) || self.touches(Raw::QuotedIdent)
    }

    fn variable_name(&mut self) -> Raw {
        while is_word_byte(self.peek(0)) || self.peek(0) == b'.' {
            self.at += 1;
        }
        Raw::Word
    }

    fn word(&mut self) -> Raw {
        let len = self.rest().iter().take_while(|byte| is_word_byte(**byte)).count();
        self.at += len;
        Raw::Word
    }

    fn operator(&mut self) -> Raw {
        match operator(self.rest()) {
            Some((op, len)) => {
                self.at += len;
                Raw::Op(op)
            }
            None => {
                self.at += 1;
                Raw::Invalid
            }
        }
    }

    /// Skips blanks and comments. On an unterminated comment: where it begins.
    fn skip_blanks(&mut self) -> Result<(), usize> {
        loop {
            match self.peek(0) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'#' => self.skip_line(),
                b'-' if self.peek(1) == b'-'
                    && (self.at + 2 >= self.source.len() || self.peek(2) <= b' ') =>
                {
                    self.skip_line();
                }
                b'/' if self.peek(1) == b'*' => self.skip_comment()?,
                b'*' if self.peek(1) == b'/' && self.open_comments > 0 => {
                    self.open_comments -= 1;
                    self.at += 2;
                }
                _ => return Ok(()),
            }
        }
    }

    fn skip_line(&mut self) {
        while self.at < self.source.len() && self.peek(0) != b'\n' {
            self.at += 1;
        }
    }

    fn skip_comment(&mut self) -> Result<(), usize> {
        let start = self.at;
        if self.peek(2) == b'!' {
            let (version, digits) = version_of(&self.rest()[3..]);
            if version <= COMMENT_VERSION {
                self.open_comments += 1;
                self.at += 3 + digits;
                return Ok(());
            }
            self.at = end_of_later_version(self.source, self.at).ok_or(start)?;
            self.later.push(Span { start: start as u32, end: self.at as u32 });
            return Ok(());
        }
        let body = &self.source[self.at + 2..];
        let end = body.windows(2).position(|w| w == b"*/").ok_or(start)?;
        if body.first() == Some(&b'+') && end > 0 && self.takes_hints() {
            self.hints.push(Span { start: start as u32 + 3, end: (start + 2 + end) as u32 });
        }
        self.at += 2 + end + 2;
        Ok(())
    }

    /// Whether the token before is a word that hints may follow.
    fn takes_hints(&self) -> bool {
        let Some((Raw::Word, end)) = self.last else { return false };
        let word = &self.source[self.last_start..end];
        [&b"SELECT"[..], b"INSERT", b"REPLACE", b"UPDATE", b"DELETE"]
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known))
    }

    /// A string in quotes, if it ends.
    fn quoted(&mut self, quote: u8) -> Raw {
        let escapes = !self.mode.has(SqlMode::NO_BACKSLASH_ESCAPES);
        self.at += 1;
        while let Some(&byte) = self.source.get(self.at) {
            self.at += 1;
            if byte == quote {
                if self.peek(0) != quote {
                    return Raw::String;
                }
                self.at += 1;
            } else if byte == b'\\' && escapes {
                if self.at == self.source.len() {
                    return Raw::Invalid;
                }
                self.at += 1;
            }
        }
        Raw::Invalid
    }

    fn quoted_ident(&mut self, quote: u8) -> Raw {
        self.at += 1;
        while let Some(&byte) = self.source.get(self.at) {
            self.at += 1;
            if byte == quote {
                if self.peek(0) != quote {
                    return Raw::QuotedIdent;
                }
                self.at += 1;
            }
        }
        Raw::Invalid
    }

    /// `X'…'`, with an even number of digits, or `B'…'`.
    fn prefixed_bytes(&mut self, raw: Raw) -> Raw {
        self.at += 2;
        let digits = self.rest().iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let fits = match raw {
            Raw::Hex => digits % 2 == 0,
            _ => self.rest()[..digits].iter().all(|digit| matches!(digit, b'0' | b'1')),
        };
        self.at += digits;
        if self.peek(0) != b'\'' {
            return Raw::Invalid;
        }
        self.at += 1;
        if fits { raw } else { Raw::Invalid }
    }

    /// A number, or a word that begins with digits.
    fn number(&mut self) -> Raw {
        let start = self.at;
        let follows_dot = self.touches(Raw::Op(Op::Dot));
        if !follows_dot && let Some(raw) = self.zero_prefixed() {
            return raw;
        }
        self.skip_digits();
        if (follows_dot && self.at > start) || (is_word_byte(self.peek(0)) && !self.at_exponent()) {
            return self.word();
        }
        let mut whole = true;
        if self.peek(0) == b'.' {
            whole = false;
            self.at += 1;
            self.skip_digits();
        }
        if self.at_exponent() {
            self.at += if matches!(self.peek(1), b'+' | b'-') { 2 } else { 1 };
            self.skip_digits();
            return Raw::Float;
        }
        if whole && fits_u64(&self.source[start..self.at]) { Raw::Integer } else { Raw::Decimal }
    }

    fn skip_digits(&mut self) {
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    fn at_exponent(&self) -> bool {
        let digit = if matches!(self.peek(1), b'+' | b'-') { self.peek(2) } else { self.peek(1) };
        matches!(self.peek(0), b'e' | b'E') && digit.is_ascii_digit()
    }

    /// `0x…` and `0b…`, when nothing but their digits follows.
    fn zero_prefixed(&mut self) -> Option<Raw> {
        if self.peek(0) != b'0' {
            return None;
        }
        let (raw, is_digit): (Raw, fn(&u8) -> bool) = match self.peek(1) {
            b'x' => (Raw::Hex, u8::is_ascii_hexdigit),
            b'b' => (Raw::Bits, |digit| matches!(digit, b'0' | b'1')),
            _ => return None,
        };
        let rest = &self.rest()[2..];
        let len = rest.iter().take_while(|b| is_word_byte(**b)).count();
        if len == 0 || !rest[..len].iter().all(is_digit) {
            return None;
        }
        self.at += 2 + len;
        Some(raw)
    }
}

/// Whether digits are a number of at most 64 bits.
fn fits_u64(digits: &[u8]) -> bool {
    let add = |sum: u64, digit: &u8| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    digits.len() < 20 || digits.iter().try_fold(0, add).is_some()
}

/// The operator that a text begins with, and its length.
fn operator(text: &[u8]) -> Option<(Op, usize)> {
    let next = |ahead: usize| text.get(ahead).copied().unwrap_or(0);
    Some(match (text[0], next(1)) {
        (b'<', b'=') if next(2) == b'>' => (Op::NullSafeEq, 3),
        (b'-', b'>') if next(2) == b'>' => (Op::LongArrow, 3),
        (b'-', b'>') => (Op::Arrow, 2),
        (b'<', b'=') => (Op::Le, 2),
        (b'>', b'=') => (Op::Ge, 2),
        (b'<', b'>') | (b'!', b'=') => (Op::Ne, 2),
        (b'<', b'<') => (Op::ShiftLeft, 2),
        (b'>', b'>') => (Op::ShiftRight, 2),
        (b':', b'=') => (Op::Assign, 2),
        (b'&', b'&') => (Op::AmpersandAmpersand, 2),
        (b'|', b'|') => (Op::PipePipe, 2),
        (b'@', b'@') => (Op::AtAt, 2),
        (b'(', _) => (Op::LParen, 1),
        (b')', _) => (Op::RParen, 1),
        (b'{', _) => (Op::LBrace, 1),
        (b'}', _) => (Op::RBrace, 1),
        (b',', _) => (Op::Comma, 1),
        (b';', _) => (Op::Semicolon, 1),
        (b'.', _) => (Op::Dot, 1),
        (b'@', _) => (Op::At, 1),
        (b'=', _) => (Op::Eq, 1),
        (b'<', _) => (Op::Lt, 1),
        (b'>', _) => (Op::Gt, 1),
        (b'+', _) => (Op::Plus, 1),
        (b'-', _) => (Op::Minus, 1),
        (b'*', _) => (Op::Star, 1),
        (b'/', _) => (Op::Slash, 1),
        (b'%', _) => (Op::Percent, 1),
        (b'^', _) => (Op::Caret, 1),
        (b'~', _) => (Op::Tilde, 1),
        // Two of them together are one, as for MySQL's lexer.
        (b'!', b'!') => (Op::Bang, 2),
        (b'!', _) => (Op::Bang, 1),
        (b'|', _) => (Op::Pipe, 1),
        (b'&', _) => (Op::Ampersand, 1),
        _ => return None,
    })
}

/// The characters of a string token: without prefix and quotes, unescaped.
pub(super) fn unquoted(text: &[u8], mode: SqlMode) -> Vec<u8> {
    let text = text.strip_prefix(b"n").or_else(|| text.strip_prefix(b"N")).unwrap_or(text);
    let escapes = !mode.has(SqlMode::NO_BACKSLASH_ESCAPES);
    let quote = text[0];
    let mut out = Vec::with_capacity(text.len() - 2);
    let mut bytes = text[1..text.len() - 1].iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if escapes => bytes.next().into_iter().for_each(|escaped| unescape(escaped, &mut out)),
            // It stands there twice.
            _ if byte == quote => out.extend(bytes.next()),
            _ => out.push(byte),
        }
    }
    out
}

/// The name in a quoted identifier.
pub(super) fn unquoted_ident(text: &[u8]) -> Vec<u8> {
    let quote = text[0];
    let mut out = Vec::with_capacity(text.len() - 2);
    let mut bytes = text[1..text.len() - 1].iter().copied();
    while let Some(byte) = bytes.next() {
        out.push(byte);
        if byte == quote {
            bytes.next();
        }
    }
    out
}

fn unescape(escaped: u8, out: &mut Vec<u8>) {
    match escaped {
        b'0' => out.push(0),
        b'b' => out.push(8),
        b'n' => out.push(b'\n'),
        b'r' => out.push(b'\r'),
        b't' => out.push(b'\t'),
        b'Z' => out.push(26),
        // LIKE gives these their meaning, so the backslash stays.
        b'%' | b'_' => out.extend([b'\\', escaped]),
        other => out.push(other),
    }
}

/// Bytes from hexadecimal digits; an odd number of them has a zero in front.
fn hex_bytes(digits: &[u8]) -> Option<TokenKind> {
    let nibbles = digits.iter().map(|b| (*b as char).to_digit(16).map(|d| d as u8));
    let nibbles: Vec<u8> = nibbles.collect::<Option<_>>()?;
    let (head, pairs) = nibbles.split_at(nibbles.len() % 2);
    let pairs = pairs.chunks_exact(2).map(|p| p[0] << 4 | p[1]);
    Some(TokenKind::Bytes(head.iter().copied().chain(pairs).collect()))
}

/// Bytes from binary digits, filled up with zeros in front.
fn bit_bytes(digits: &[u8]) -> Option<TokenKind> {
    let chunks = digits.rchunks(8).map(|chunk| {
        chunk.iter().try_fold(0u8, |byte, digit| match digit {
            b'0' | b'1' => Some(byte << 1 | (digit - b'0')),
            _ => None,
        })
    });
    let mut bytes: Vec<u8> = chunks.collect::<Option<_>>()?;
    bytes.reverse();
    Some(TokenKind::Bits(bytes))
}

/// The version that a comment is for, from behind its `/*!`, and how many digits it has: 0 and none without one. A sixth digit is
/// the version's if a blank follows.
fn version_of(text: &[u8]) -> (u32, usize) {
    let digits = match text.iter().take(6).take_while(|byte| byte.is_ascii_digit()).count() {
        6 if text.get(6).is_some_and(u8::is_ascii_whitespace) => 6,
        5 | 6 => 5,
        _ => 0,
    };
    (text[..digits].iter().fold(0, |version, byte| version * 10 + u32::from(byte - b'0')), digits)
}

/// Where a comment for a later version that begins at `start` ends: it may have comments inside.
fn end_of_later_version(source: &[u8], start: usize) -> Option<usize> {
    let find = |from: usize, marks: &[&[u8]]| {
        (from..source.len()).find(|at| marks.iter().any(|mark| source[*at..].starts_with(mark)))
    };
    let mut at = start + 3;
    loop {
        at = find(at, &[b"/*", b"*/"])?;
        if source[at] == b'*' {
            return Some(at + 2);
        }
        at = find(at + 2, &[b"*/"])? + 2;
    }
}

/// A part of a statement without the marks of comments that are executed, and without those for later versions; other comments
/// stay.
pub(crate) fn without_version_comments(text: &str) -> Cow<'_, str> {
    if !text.contains("*/") {
        return Cow::Borrowed(text);
    }
    let source = text.as_bytes();
    let mut kept = Vec::with_capacity(source.len());
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        let len = match rest[0] {
            quote @ (b'\'' | b'"' | b'`') => {
                let escapes = quote != b'`';
                let mut end = 1;
                while end < rest.len() && rest[end] != quote {
                    end += 1 + usize::from(escapes && rest[end] == b'\\');
                }
                (end + 1).min(rest.len())
            }
            _ if rest.starts_with(b"/*!") => {
                let (version, digits) = version_of(&rest[3..]);
                at = match version <= COMMENT_VERSION {
                    true => at + 3 + digits,
                    false => end_of_later_version(source, at).unwrap_or(source.len()),
                };
                continue;
            }
            _ if rest.starts_with(b"/*") => {
                rest[2..].windows(2).position(|pair| pair == b"*/").map_or(rest.len(), |end| end + 4)
            }
            _ if rest.starts_with(b"*/") => {
                at += 2;
                continue;
            }
            _ => 1,
        };
        kept.extend_from_slice(&rest[..len]);
        at += len;
    }
    Cow::Owned(String::from_utf8(kept).unwrap_or_else(|_| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<TokenKind> {
        let (mut tokens, _) = tokenize(source.as_bytes(), SqlMode::DEFAULT);
        assert_eq!(tokens.pop().map(|t| t.kind), Some(TokenKind::End));
        tokens.into_iter().map(|t| t.kind).collect()
    }

    #[test]
    fn numbers() {
        assert_eq!(kinds("1"), [TokenKind::Integer(1)]);
        assert_eq!(kinds("1.5"), [TokenKind::Decimal]);
        assert_eq!(kinds(".5"), [TokenKind::Decimal]);
        assert_eq!(kinds("1e3"), [TokenKind::Float(1000.0)]);
        assert_eq!(kinds("1.e-1"), [TokenKind::Float(0.1)]);
        assert_eq!(kinds("1a"), [TokenKind::Word]);
        assert_eq!(kinds("18446744073709551616"), [TokenKind::Decimal]);
        assert_eq!(kinds("0x4D7"), [TokenKind::Bytes(vec![4, 0xd7])]);
        assert_eq!(kinds("0b101000001"), [TokenKind::Bits(vec![1, 0x41])]);
        assert_eq!(kinds("X'4D79'"), [TokenKind::Bytes(b"My".to_vec())]);
        assert_eq!(kinds("X'4D7'"), [TokenKind::Invalid]);
        assert_eq!(kinds("t.1e5"), [TokenKind::Word, TokenKind::Op(Op::Dot), TokenKind::Word]);
    }

    #[test]
    fn strings_and_escapes() {
        assert_eq!(kinds(r"'a\nb''c\%\q'"), [TokenKind::String(b"a\nb'c\\%q".to_vec())]);
        assert_eq!(kinds(r#""it's""#), [TokenKind::String(b"it's".to_vec())]);
        assert_eq!(kinds("`a``b`"), [TokenKind::QuotedIdent(b"a`b".to_vec())]);
        assert_eq!(kinds("'open"), [TokenKind::Invalid]);
        assert_eq!(kinds("'open\\"), [TokenKind::Invalid]);
    }

    #[test]
    fn comments() {
        assert_eq!(kinds("1 -- one\n# two\n/* three */"), [TokenKind::Integer(1)]);
        assert_eq!(kinds("1--1").len(), 4, "-- without a blank is two minus signs");
        assert_eq!(
            kinds("/*!40101 7 */ /*!99999 8 /* 6 */ 5 */ /*! 9 */"),
            [TokenKind::Integer(7), TokenKind::Integer(9)]
        );
        assert_eq!(kinds("1 /* open"), [TokenKind::Integer(1), TokenKind::Invalid]);
    }

    #[test]
    fn version_comments_leave_what_is_executed() {
        for (written, kept) in [
            ("1 + /*!800001+0 */ + 0", "1 + 1+0  + 0"),
            ("1 /*!99999 /* a */ + /* b */ */ + 2", "1  + 2"),
            ("1 */ + 1", "1  + 1"),
            ("1 /* a */ + '/*! \\' */'", "1 /* a */ + '/*! \\' */'"),
            ("`*/` + /* open */", "`*/` + /* open */"),
        ] {
            assert_eq!(without_version_comments(written), kept);
        }
    }

    #[test]
    fn variables() {
        let at = TokenKind::Op(Op::At);
        assert_eq!(kinds("@a.b"), [at.clone(), TokenKind::Word]);
        assert_eq!(kinds("@@session.x").len(), 4);
        assert_eq!(kinds("'u'@127.0.0.1"), [TokenKind::String(b"u".to_vec()), at, TokenKind::Word]);
    }

    #[test]
    fn any_bytes_end() {
        for byte in 0..=255u8 {
            for source in [vec![byte], vec![byte, b'\''], vec![b'/', b'*', byte], vec![b'0', b'x', byte]] {
                let (tokens, _) = tokenize(&source, SqlMode::DEFAULT);
                assert_eq!(tokens.last().map(|t| &t.kind), Some(&TokenKind::End));
            }
        }
    }
}
