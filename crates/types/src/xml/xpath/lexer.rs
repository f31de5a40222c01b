//! The tokens of an XPath.

use super::{Axis, XpathFunction};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    End,
    Op(&'t str),
    Name(&'t str),
    /// A name before `::`, which is eaten.
    Axis(&'t str),
    /// The name of a function, before its parenthesis.
    Function(&'t str),
    /// `text`, `node`, `comment` or `processing-instruction` before a parenthesis.
    Kind,
    Number(&'t str),
    Text(&'t str),
    Unknown,
}

/// Longer ones first.
const OPERATORS: [&str; 23] = [
    "!=", "<=", ">=", "//", "..", "/", ".", "@", "*", "(", ")", "[", "]", ",", "|", "+", "-", "=", "<", ">",
    "$", ":", "!",
];

pub(super) struct Lexer<'t> {
    text: &'t str,
    /// Where the token begins.
    start: usize,
    /// What is behind it.
    at: usize,
    pub token: Token<'t>,
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Self {
        let mut lexer = Self { text, start: 0, at: 0, token: Token::End };
        lexer.advance();
        lexer
    }

    /// The text from the token on.
    pub fn rest(&self) -> &'t str {
        &self.text[self.start..]
    }

    pub fn advance(&mut self) {
        let rest = self.text[self.at..].trim_start_matches(' ');
        self.start = self.text.len() - rest.len();
        let (token, length) = token(rest);
        (self.token, self.at) = (token, self.start + length);
    }
}

/// The token that a text begins with, and how long it is.
fn token(rest: &str) -> (Token<'_>, usize) {
    let Some(first) = rest.chars().next() else { return (Token::End, 0) };
    if begins_name(first) {
        return name(rest);
    }
    if first.is_ascii_digit() {
        return number(rest);
    }
    if matches!(first, '"' | '\'') {
        return match rest[1..].find(first) {
            Some(length) => (Token::Text(&rest[1..=length]), length + 2),
            None => (Token::Unknown, rest.len()),
        };
    }
    match OPERATORS.iter().find(|op| rest.starts_with(**op)) {
        Some(op) => (Token::Op(op), op.len()),
        None => (Token::Unknown, 0),
    }
}

fn name(rest: &str) -> (Token<'_>, usize) {
    let length = rest.find(|c| !continues_name(c)).unwrap_or(rest.len());
    let (name, behind) = rest.split_at(length);
    if behind.starts_with("::") && Axis::by_name(name).is_some() {
        return (Token::Axis(name), length + 2);
    }
    if behind.starts_with('(') {
        if XpathFunction::by_name(name).is_some() {
            return (Token::Function(name), length);
        }
        if matches!(name, "text" | "node" | "comment" | "processing-instruction") {
            return (Token::Kind, length);
        }
    }
    (Token::Name(name), length)
}

fn number(rest: &str) -> (Token<'_>, usize) {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(rest);
    if rest[length..].starts_with('.') {
        length += 1 + digits(&rest[length + 1..]);
    }
    (Token::Number(&rest[..length]), length)
}
