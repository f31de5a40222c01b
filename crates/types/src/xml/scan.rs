//! From a text to a document's nodes: MySQL's tokens, and what it says of a text that is no XML.

use std::fmt;

use super::{Node, NodeKind};

/// Where parsing stopped, and why, in MySQL's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlProblem {
    what: String,
    line: usize,
    /// In the line, in bytes from 1.
    position: usize,
}

impl fmt::Display for XmlProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "parse error at line {} pos {}: {}", self.line, self.position, self.what)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    End,
    Ident,
    String,
    Comment,
    Characters,
    /// One of `= < > / ? !`.
    Mark(u8),
    Unknown,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("END-OF-INPUT"),
            Self::Ident => f.write_str("IDENT"),
            Self::String => f.write_str("STRING"),
            Self::Comment => f.write_str("COMMENT"),
            Self::Characters => f.write_str("CDATA"),
            Self::Mark(mark) => write!(f, "'{}'", char::from(*mark)),
            Self::Unknown => f.write_str("unknown token"),
        }
    }
}

/// A token with the part of the text that counts: a string without its quotes, character data without its brackets.
#[derive(Clone, Copy)]
struct Lexeme {
    token: Token,
    start: usize,
    end: usize,
}

const COMMENT: (&str, &str) = ("<!--", "-->");
const CHARACTERS: (&str, &str) = ("<![CDATA[", "]]>");

/// Tags and an attribute within one another.
const MOST_OPEN: usize = 254;

struct Scanner<'x> {
    text: &'x str,
    at: usize,
    nodes: Vec<Node>,
    /// The nodes that are not closed yet, without the root.
    open: Vec<usize>,
}

/// The nodes of a text.
pub(super) fn nodes(text: &str) -> Result<Vec<Node>, XmlProblem> {
    let root = Node { kind: NodeKind::Root, parent: 0, start: 0, end: 0, close: text.len() };
    let mut scanner = Scanner { text, at: 0, nodes: vec![root], open: Vec::new() };
    while scanner.at < text.len() {
        match text.as_bytes()[scanner.at] {
            b'<' => scanner.markup()?,
            _ => scanner.plain_text(),
        }
    }
    match scanner.open.is_empty() {
        true => Ok(scanner.nodes),
        false => Err(scanner.problem("unexpected END-OF-INPUT".into())),
    }
}

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || byte >= 0x80
}

fn continues_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
}

impl Scanner<'_> {
    fn next(&mut self) -> Lexeme {
        let bytes = self.text.as_bytes();
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        while bytes.get(self.at).is_some_and(is_blank) {
            self.at += 1;
        }
        let start = self.at;
        let Some(&first) = bytes.get(start) else { return Lexeme { token: Token::End, start, end: start } };
        let rest = &self.text[start..];
        if rest.starts_with(COMMENT.0) {
            return self.bracketed(Token::Comment, COMMENT);
        }
        if rest.starts_with(CHARACTERS.0) {
            return self.bracketed(Token::Characters, CHARACTERS);
        }
        match first {
            b'=' | b'<' | b'>' | b'/' | b'?' | b'!' => {
                self.at += 1;
                Lexeme { token: Token::Mark(first), start, end: self.at }
            }
            b'"' | b'\'' => {
                let close = rest[1..].find(char::from(first)).map(|length| start + 1 + length);
                let end = close.unwrap_or(bytes.len());
                self.at = (end + 1).min(bytes.len());
                Lexeme { token: Token::String, start: start + 1, end }
            }
            _ if begins_name(first) => {
                while bytes.get(self.at).is_some_and(|byte| continues_name(*byte)) {
                    self.at += 1;
                }
                Lexeme { token: Token::Ident, start, end: self.at }
            }
            _ => Lexeme { token: Token::Unknown, start, end: start },
        }
    }

    /// What stands between two marks; without the second, all the rest.
    fn bracketed(&mut self, token: Token, (open, close): (&str, &str)) -> Lexeme {
        let start = self.at + open.len();
        let length = self.text[start..].find(close);
        let end = length.map_or(self.text.len(), |length| start + length);
        self.at = (end + close.len()).min(self.text.len());
        Lexeme { token, start, end }
    }

    fn problem(&self, what: String) -> XmlProblem {
        let before = &self.text[..self.at];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        XmlProblem { what, line, position: self.at - line_start + 1 }
    }

    fn unexpected(&self, token: Token, wanted: &str) -> XmlProblem {
        self.problem(format!("{token} unexpected ({wanted} wanted)"))
    }

    fn parent(&self) -> usize {
        self.open.last().copied().unwrap_or(0)
    }

    fn enter(&mut self, kind: NodeKind, name: Lexeme) -> Result<(), XmlProblem> {
        // MySQL says no more of it.
        if self.open.len() >= MOST_OPEN {
            return Err(self.problem(String::new()));
        }
        let parent = self.parent();
        self.open.push(self.nodes.len());
        self.nodes.push(Node { kind, parent, start: name.start, end: name.end, close: self.text.len() });
        Ok(())
    }

    fn text_node(&mut self, start: usize, end: usize) {
        let parent = self.parent();
        self.nodes.push(Node { kind: NodeKind::Text, parent, start, end, close: end });
    }

    fn leave(&mut self) {
        if let Some(node) = self.open.pop() {
            self.nodes[node].close = self.at;
        }
    }

    fn plain_text(&mut self) {
        let start = self.at;
        self.at = self.text[start..].find('<').map_or(self.text.len(), |length| start + length);
        self.text_node(start, self.at);
    }

    /// What begins with a `<`.
    fn markup(&mut self) -> Result<(), XmlProblem> {
        let first = self.next();
        match first.token {
            Token::Comment => return Ok(()),
            Token::Characters => {
                self.text_node(first.start, first.end);
                return Ok(());
            }
            _ => {}
        }
        let second = self.next();
        match second.token {
            Token::Mark(b'/') => self.end_tag(),
            Token::Mark(mark @ (b'!' | b'?')) => {
                let name = self.next();
                self.tag(name, Some(mark))
            }
            _ => self.tag(second, None),
        }
    }

    fn end_tag(&mut self) -> Result<(), XmlProblem> {
        let name = self.next();
        if name.token != Token::Ident {
            return Err(self.unexpected(name.token, "ident"));
        }
        let open = self.open.last().map(|node| self.nodes[*node]);
        // MySQL compares the lengths of the names.
        if open.is_none_or(|open| open.end - open.start != name.end - name.start) {
            let name = &self.text[name.start..name.end];
            let wanted = if open.is_some() { "'</>'" } else { "END-OF-INPUT" };
            return Err(self.problem(format!("'</{name}>' unexpected ({wanted} wanted)")));
        }
        let last = self.next();
        if last.token != Token::Mark(b'>') {
            return Err(self.unexpected(last.token, "'>'"));
        }
        self.leave();
        Ok(())
    }

    /// A tag from its name on; `mark` is what stood before that, of `<!DOCTYPE …>` and `<?xml … ?>`.
    fn tag(&mut self, name: Lexeme, mark: Option<u8>) -> Result<(), XmlProblem> {
        if name.token != Token::Ident {
            return Err(self.unexpected(name.token, "ident or '/'"));
        }
        self.enter(NodeKind::Tag, name)?;
        let mut last = self.attributes(mark == Some(b'!'))?;
        let mut is_closed = mark.is_some();
        if last.token == Token::Mark(b'/') {
            is_closed = true;
            last = self.next();
        }
        if mark == Some(b'?') {
            if last.token != Token::Mark(b'?') {
                return Err(self.unexpected(last.token, "'?'"));
            }
            last = self.next();
        }
        if last.token != Token::Mark(b'>') {
            return Err(self.unexpected(last.token, "'>'"));
        }
        if is_closed {
            self.leave();
        }
        Ok(())
    }

    /// The attributes of a tag; returns what stands behind them. A declaration has strings that are none.
    fn attributes(&mut self, is_declaration: bool) -> Result<Lexeme, XmlProblem> {
        let mut name = self.next();
        loop {
            match name.token {
                Token::Ident => {}
                Token::String if is_declaration => {
                    name = self.next();
                    continue;
                }
                _ => return Ok(name),
            }
            let next = self.next();
            match next.token {
                Token::Mark(b'=') => {}
                // As in MySQL, a name behind a name without a value is passed over.
                Token::Ident => {
                    self.enter(NodeKind::Attribute, name)?;
                    self.leave();
                    name = self.next();
                    continue;
                }
                Token::String if is_declaration => {
                    name = self.next();
                    continue;
                }
                _ => return Ok(next),
            }
            let value = self.next();
            if !matches!(value.token, Token::Ident | Token::String) {
                return Err(self.unexpected(value.token, "ident or string"));
            }
            self.enter(NodeKind::Attribute, name)?;
            self.text_node(value.start, value.end);
            self.leave();
            name = self.next();
        }
    }
}
