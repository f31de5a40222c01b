//! Source bytes to tokens, by MySQL's lexical rules (manual chapter "Language Structure").
//!
//! Works on bytes: a `_binary'…'` literal may hold any. Comments vanish here; the inside of a versioned comment
//! (`/*!40101 … */`) is read as if the comment marks were blanks, when its version is not above ours.

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
    /// `X'…'`, `0x…`, `B'…'`, `0b…`
    Bytes(Vec<u8>),
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

/// Operators, the longer ones before their prefixes.
const OPS: [(&[u8], Op); 33] = [
    (b"<=>", Op::NullSafeEq),
    (b"->>", Op::LongArrow),
    (b"->", Op::Arrow),
    (b"<=", Op::Le),
    (b">=", Op::Ge),
    (b"<>", Op::Ne),
    (b"!=", Op::Ne),
    (b"<<", Op::ShiftLeft),
    (b">>", Op::ShiftRight),
    (b":=", Op::Assign),
    (b"&&", Op::AmpersandAmpersand),
    (b"||", Op::PipePipe),
    (b"@@", Op::AtAt),
    (b"(", Op::LParen),
    (b")", Op::RParen),
    (b"{", Op::LBrace),
    (b"}", Op::RBrace),
    (b",", Op::Comma),
    (b";", Op::Semicolon),
    (b".", Op::Dot),
    (b"@", Op::At),
    (b"=", Op::Eq),
    (b"<", Op::Lt),
    (b">", Op::Gt),
    (b"+", Op::Plus),
    (b"-", Op::Minus),
    (b"*", Op::Star),
    (b"/", Op::Slash),
    (b"%", Op::Percent),
    (b"^", Op::Caret),
    (b"~", Op::Tilde),
    (b"!", Op::Bang),
    (b"|", Op::Pipe),
];

/// All tokens of `source`, ending with [`TokenKind::End`]. Never fails: what can not be read becomes an
/// [`TokenKind::Invalid`] token, at which the parser stops with a syntax error.
pub fn tokenize(source: &[u8], mode: SqlMode) -> Vec<Token> {
    let mut lexer =
        Lexer { source, at: 0, mode, open_comments: 0, tokens: Vec::with_capacity(source.len() / 4 + 2) };
    while lexer.next_token() {}
    lexer.tokens
}

struct Lexer<'a> {
    source: &'a [u8],
    at: usize,
    mode: SqlMode,
    /// How many versioned comments we are inside of.
    open_comments: u32,
    tokens: Vec<Token>,
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.source.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &[u8] {
        &self.source[self.at..]
    }

    fn push(&mut self, start: usize, kind: TokenKind) {
        let span = Span { start: start as u32, end: self.at as u32 };
        self.tokens.push(Token { kind, span });
    }

    /// Reads one token; false after the last.
    fn next_token(&mut self) -> bool {
        let start = match self.skip_blanks() {
            Ok(()) => self.at,
            Err(start) => {
                self.at = self.source.len();
                self.push(start, TokenKind::Invalid);
                self.at
            }
        };
        if start >= self.source.len() {
            self.push(start, TokenKind::End);
            return false;
        }
        let kind = self.read_token();
        self.push(start, kind);
        true
    }

    fn read_token(&mut self) -> TokenKind {
        let byte = self.peek(0);
        match byte {
            b'\'' => self.quoted(b'\'').map_or(TokenKind::Invalid, TokenKind::String),
            b'"' if self.mode.has(SqlMode::ANSI_QUOTES) => {
                self.quoted_ident(b'"').map_or(TokenKind::Invalid, TokenKind::QuotedIdent)
            }
            b'"' => self.quoted(b'"').map_or(TokenKind::Invalid, TokenKind::String),
            b'`' => self.quoted_ident(b'`').map_or(TokenKind::Invalid, TokenKind::QuotedIdent),
            b'?' => {
                self.at += 1;
                TokenKind::Param
            }
            b'x' | b'X' if self.peek(1) == b'\'' => self.prefixed_bytes(hex_bytes, 2),
            b'b' | b'B' if self.peek(1) == b'\'' => self.prefixed_bytes(bit_bytes, 1),
            b'n' | b'N' if self.peek(1) == b'\'' => {
                self.at += 1;
                self.quoted(b'\'').map_or(TokenKind::Invalid, TokenKind::String)
            }
            _ if self.follows_at() && (is_word_byte(byte) || byte == b'.') => self.variable_name(),
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() && !self.follows_name() => self.number(),
            _ if is_word_byte(byte) => self.word(),
            _ => self.operator(),
        }
    }

    /// Whether the previous token is a single `@` that touches this one: what follows is a variable's or host's name.
    fn follows_at(&self) -> bool {
        self.tokens.last().is_some_and(|t| t.kind == TokenKind::Op(Op::At) && t.span.end as usize == self.at)
    }

    fn follows_name(&self) -> bool {
        self.tokens.last().is_some_and(|t| {
            matches!(t.kind, TokenKind::Word | TokenKind::QuotedIdent(_)) && t.span.end as usize == self.at
        })
    }

    fn follows_dot(&self) -> bool {
        self.tokens.last().is_some_and(|t| t.kind == TokenKind::Op(Op::Dot) && t.span.end as usize == self.at)
    }

    fn variable_name(&mut self) -> TokenKind {
        while is_word_byte(self.peek(0)) || self.peek(0) == b'.' {
            self.at += 1;
        }
        TokenKind::Word
    }

    fn word(&mut self) -> TokenKind {
        while is_word_byte(self.peek(0)) {
            self.at += 1;
        }
        TokenKind::Word
    }

    fn operator(&mut self) -> TokenKind {
        match OPS.iter().find(|(text, _)| self.rest().starts_with(text)) {
            Some((text, op)) => {
                self.at += text.len();
                TokenKind::Op(*op)
            }
            None if self.peek(0) == b'&' => {
                self.at += 1;
                TokenKind::Op(Op::Ampersand)
            }
            None => {
                self.at += 1;
                TokenKind::Invalid
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
            let digits = self.rest()[3..].iter().take(6).take_while(|b| b.is_ascii_digit()).count();
            let digits = if digits >= 5 { digits } else { 0 };
            let text = &self.rest()[3..3 + digits];
            let version = text.iter().fold(0, |v, b| v * 10 + u32::from(b - b'0'));
            if version <= COMMENT_VERSION {
                self.open_comments += 1;
                self.at += 3 + digits;
                return Ok(());
            }
        }
        let body = &self.source[self.at + 2..];
        let end = body.windows(2).position(|w| w == b"*/").ok_or(start)?;
        self.at += 2 + end + 2;
        Ok(())
    }

    /// A string in quotes, unescaped. None if it does not end.
    fn quoted(&mut self, quote: u8) -> Option<Vec<u8>> {
        let escapes = !self.mode.has(SqlMode::NO_BACKSLASH_ESCAPES);
        let mut out = Vec::new();
        self.at += 1;
        while let Some(&byte) = self.source.get(self.at) {
            self.at += 1;
            if byte == quote {
                if self.peek(0) != quote {
                    return Some(out);
                }
                self.at += 1;
                out.push(quote);
            } else if byte == b'\\' && escapes {
                let escaped = *self.source.get(self.at)?;
                self.at += 1;
                unescape(escaped, &mut out);
            } else {
                out.push(byte);
            }
        }
        None
    }

    fn quoted_ident(&mut self, quote: u8) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.at += 1;
        while let Some(&byte) = self.source.get(self.at) {
            self.at += 1;
            if byte == quote {
                if self.peek(0) != quote {
                    return Some(out);
                }
                self.at += 1;
            }
            out.push(byte);
        }
        None
    }

    /// `X'…'` or `B'…'`, with a multiple of `group` digits.
    fn prefixed_bytes(&mut self, decode: fn(&[u8]) -> Option<Vec<u8>>, group: usize) -> TokenKind {
        self.at += 2;
        let digits = self.rest().iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let value = decode(&self.rest()[..digits]).filter(|_| digits % group == 0);
        self.at += digits;
        if self.peek(0) != b'\'' {
            return TokenKind::Invalid;
        }
        self.at += 1;
        value.map_or(TokenKind::Invalid, TokenKind::Bytes)
    }

    /// A number, or a word that begins with digits.
    fn number(&mut self) -> TokenKind {
        let start = self.at;
        if let Some(token) = self.zero_prefixed() {
            return token;
        }
        self.skip_digits();
        if self.follows_dot_at(start) || (is_word_byte(self.peek(0)) && !self.at_exponent()) {
            return self.word();
        }
        let mut exact_integer = true;
        if self.peek(0) == b'.' {
            exact_integer = false;
            self.at += 1;
            self.skip_digits();
        }
        if self.at_exponent() {
            self.at += if matches!(self.peek(1), b'+' | b'-') { 2 } else { 1 };
            self.skip_digits();
            return self.text(start).parse().map_or(TokenKind::Invalid, TokenKind::Float);
        }
        match self.text(start).parse() {
            Ok(value) if exact_integer => TokenKind::Integer(value),
            _ => TokenKind::Decimal,
        }
    }

    fn follows_dot_at(&self, start: usize) -> bool {
        start < self.at
            && self
                .tokens
                .last()
                .is_some_and(|t| t.kind == TokenKind::Op(Op::Dot) && t.span.end as usize == start)
    }

    fn text(&self, start: usize) -> &str {
        std::str::from_utf8(&self.source[start..self.at]).unwrap_or_default()
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
    fn zero_prefixed(&mut self) -> Option<TokenKind> {
        if self.peek(0) != b'0' || self.follows_dot() {
            return None;
        }
        let decode = match self.peek(1) {
            b'x' => hex_bytes,
            b'b' => bit_bytes,
            _ => return None,
        };
        let len = self.rest()[2..].iter().take_while(|b| is_word_byte(**b)).count();
        let value = decode(&self.rest()[2..2 + len]).filter(|_| len > 0)?;
        self.at += 2 + len;
        Some(TokenKind::Bytes(value))
    }
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
fn hex_bytes(digits: &[u8]) -> Option<Vec<u8>> {
    let nibbles = digits.iter().map(|b| (*b as char).to_digit(16).map(|d| d as u8));
    let nibbles: Vec<u8> = nibbles.collect::<Option<_>>()?;
    let (head, pairs) = nibbles.split_at(nibbles.len() % 2);
    Some(head.iter().copied().chain(pairs.chunks_exact(2).map(|p| p[0] << 4 | p[1])).collect())
}

/// Bytes from binary digits, filled up with zeros in front.
fn bit_bytes(digits: &[u8]) -> Option<Vec<u8>> {
    let chunks = digits.rchunks(8).map(|chunk| {
        chunk.iter().try_fold(0u8, |byte, digit| match digit {
            b'0' | b'1' => Some(byte << 1 | (digit - b'0')),
            _ => None,
        })
    });
    let mut bytes: Vec<u8> = chunks.collect::<Option<_>>()?;
    bytes.reverse();
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<TokenKind> {
        let mut tokens = tokenize(source.as_bytes(), SqlMode::DEFAULT);
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
        assert_eq!(kinds("0b101000001"), [TokenKind::Bytes(vec![1, 0x41])]);
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
            kinds("/*!40101 7 */ /*!99999 8 */ /*! 9 */"),
            [TokenKind::Integer(7), TokenKind::Integer(9)]
        );
        assert_eq!(kinds("1 /* open"), [TokenKind::Integer(1), TokenKind::Invalid]);
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
                let tokens = tokenize(&source, SqlMode::DEFAULT);
                assert_eq!(tokens.last().map(|t| &t.kind), Some(&TokenKind::End));
            }
        }
    }
}
