//! The path language: `$.name`, `$[1]`, `$[last-1]`, `$[1 to 3]`, `*`, `**`.
//! MySQL 8.4 Reference Manual, 13.5 "JSON Path Syntax".

use std::collections::HashSet;

use crate::json::binary::{JsonRef, Node, Place};
use crate::json::tree::Json;
use crate::json::{MAX_DEPTH, parse};

/// Where in a document a value is, or several are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    pub legs: Vec<Leg>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leg {
    /// `.name`
    Member(String),
    /// `.*`
    AnyMember,
    /// `[n]`
    Cell(Index),
    /// `[m to n]`
    Range(Index, Index),
    /// `[*]`
    AnyCell,
    /// `**`: what is here, and all within it.
    Within,
}

/// A place in an array, from its beginning or back from its last element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    pub at: u32,
    pub from_end: bool,
}

/// The byte near which a text stops being a path: error 3143.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPath {
    pub position: usize,
}

impl Index {
    /// The place among `len` elements, if there is one.
    pub fn within(self, len: usize) -> Option<usize> {
        let at = self.at as usize;
        match self.from_end {
            true => len.checked_sub(1 + at),
            false => (at < len).then_some(at),
        }
    }

    /// Where an element goes that is put there: what is before the beginning or behind the end goes to that end.
    pub fn clamped(self, len: usize) -> usize {
        match self.from_end {
            true => self.within(len).unwrap_or(0),
            false => (self.at as usize).min(len),
        }
    }
}

impl Leg {
    /// Whether a value that is no array, taken for an array of one element, has this cell: the value itself.
    pub fn is_self(&self) -> bool {
        match self {
            Self::Cell(index) => index.at == 0,
            Self::Range(from, to) => range(*from, *to, 1).contains(&0),
            _ => false,
        }
    }

    /// The cells that it has in an array of `len` elements.
    pub fn cells(&self, len: usize) -> std::ops::Range<usize> {
        match self {
            Self::Cell(index) => index.within(len).map_or(0..0, |at| at..at + 1),
            Self::Range(from, to) => range(*from, *to, len),
            Self::AnyCell => 0..len,
            Self::Member(_) | Self::AnyMember | Self::Within => 0..0,
        }
    }

    fn is_wild(&self) -> bool {
        !matches!(self, Self::Member(_) | Self::Cell(_))
    }
}

/// The cells of a range among `len`.
fn range(from: Index, to: Index, len: usize) -> std::ops::Range<usize> {
    let start = from.clamped(len);
    let end = match to.from_end {
        true => len.saturating_sub(to.at as usize),
        false => (to.at as usize).saturating_add(1).min(len),
    };
    start..end
}

impl Path {
    pub fn parse(text: &str) -> Result<Self, BadPath> {
        let mut parser = PathParser { text, at: 0 };
        parser.skip_spaces();
        match parser.next() {
            Some(b'$') => {}
            _ => return Err(parser.bad()),
        }
        let mut legs = Vec::new();
        parser.skip_spaces();
        while let Some(byte) = parser.peek() {
            legs.push(match byte {
                b'.' => parser.member()?,
                b'[' => parser.cell()?,
                b'*' => parser.within()?,
                _ => return Err(parser.bad()),
            });
            parser.skip_spaces();
        }
        match legs.last() {
            Some(Leg::Within) => Err(parser.bad()),
            _ => Ok(Self { legs }),
        }
    }

    /// Whether it can lead to more than one value.
    pub fn is_wild(&self) -> bool {
        self.legs.iter().any(Leg::is_wild)
    }

    /// The values that the path leads to, each once, in the order in which MySQL finds them. `check` is asked from time to
    /// time whether to go on.
    pub fn find_all<'a, E>(
        &self,
        root: Node<'a>,
        check: impl FnMut() -> Result<(), E>,
    ) -> Result<Vec<Node<'a>>, E> {
        self.seek(root, Wrap::Scalars, check)
    }

    /// Leg by leg: so there are never more values at hand than the document has, however the path leads to them.
    pub fn seek<'a, E>(
        &self,
        root: Node<'a>,
        wrap: Wrap,
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<Vec<Node<'a>>, E> {
        let mut nodes = vec![root];
        let (mut within, mut steps, mut one) = (false, 0usize, Vec::new());
        for leg in &self.legs {
            within |= *leg == Leg::Within;
            let mut next = Vec::new();
            let mut seen = HashSet::new();
            for node in nodes {
                steps += 1;
                if steps.is_multiple_of(STEPS_PER_CHECK) {
                    check()?;
                }
                match leg {
                    Leg::Within => descend(node, MAX_DEPTH, &mut seen, &mut next),
                    // Only what `**` passes through, and a value that stands for an array of itself, can be met twice.
                    leg if within => {
                        leg.step(node, wrap, &mut one);
                        next.extend(one.drain(..).filter(|node| seen.insert(node.place())));
                    }
                    leg => leg.step(node, wrap, &mut next),
                }
            }
            nodes = next;
        }
        Ok(nodes)
    }

    /// The value that a path without wildcards leads to.
    pub fn find<'a>(&self, root: Node<'a>) -> Option<Node<'a>> {
        self.find_with(root, Wrap::Scalars)
    }

    /// The same, where what is no array is none of itself.
    pub fn find_unwrapped<'a>(&self, root: Node<'a>) -> Option<Node<'a>> {
        self.find_with(root, Wrap::Nothing)
    }

    fn find_with<'a>(&self, root: Node<'a>, wrap: Wrap) -> Option<Node<'a>> {
        let mut node = root;
        for leg in &self.legs {
            node = match (leg, node.view()) {
                (Leg::Member(name), JsonRef::Object(object)) => object.get(name)?,
                (Leg::Cell(index), JsonRef::Array(array)) => array.get(index.within(array.len())?)?,
                (Leg::Cell(index), _) if index.at == 0 && wrap == Wrap::Scalars => node,
                _ => return None,
            };
        }
        Some(node)
    }

    /// Whether the path leads to any value.
    pub fn exists<E>(&self, root: Node<'_>, check: impl FnMut() -> Result<(), E>) -> Result<bool, E> {
        match self.is_wild() {
            true => self.find_all(root, check).map(|found| !found.is_empty()),
            false => Ok(self.find(root).is_some()),
        }
    }
}

/// Values between two looks at whether to go on.
const STEPS_PER_CHECK: usize = 1 << 14;

/// Whether a value that is no array stands for an array of itself. JSON_SEARCH and JSON_KEYS take it as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrap {
    Scalars,
    Nothing,
}

impl Leg {
    /// Appends what the leg leads to; not of `**`.
    fn step<'a>(&self, node: Node<'a>, wrap: Wrap, to: &mut Vec<Node<'a>>) {
        match (self, node.view()) {
            (Self::Member(name), JsonRef::Object(object)) => to.extend(object.get(name)),
            (Self::AnyMember, JsonRef::Object(object)) => to.extend(object.iter().map(|(_, member)| member)),
            (Self::Cell(_) | Self::Range(..) | Self::AnyCell, JsonRef::Array(array)) => {
                to.extend(self.cells(array.len()).filter_map(|at| array.get(at)));
            }
            _ if wrap == Wrap::Scalars && self.is_self() => to.push(node),
            _ => {}
        }
    }
}

/// Appends the value and all within it. What was met has been appended with all within it.
fn descend<'a>(node: Node<'a>, depth: usize, seen: &mut HashSet<Place>, to: &mut Vec<Node<'a>>) {
    if !seen.insert(node.place()) {
        return;
    }
    to.push(node);
    let Some(depth) = depth.checked_sub(1) else { return };
    match node.view() {
        JsonRef::Array(array) => array.iter().for_each(|element| descend(element, depth, seen, to)),
        JsonRef::Object(object) => object.iter().for_each(|(_, member)| descend(member, depth, seen, to)),
        _ => {}
    }
}

struct PathParser<'t> {
    text: &'t str,
    at: usize,
}

impl PathParser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().bytes().take_while(|b| is_space(*b)).count();
    }

    fn bad(&self) -> BadPath {
        BadPath { position: self.at }
    }

    fn within(&mut self) -> Result<Leg, BadPath> {
        self.at += 1;
        if self.peek() != Some(b'*') {
            return Err(self.bad());
        }
        self.at += 1;
        match self.peek() {
            // `***` would be hard to read, and nothing may end so.
            None | Some(b'*') => Err(self.bad()),
            Some(_) => Ok(Leg::Within),
        }
    }

    fn cell(&mut self) -> Result<Leg, BadPath> {
        self.at += 1;
        self.skip_spaces();
        let leg = if self.peek() == Some(b'*') {
            self.at += 1;
            Leg::AnyCell
        } else {
            let from = self.index()?;
            match self.keyword_to() {
                false => Leg::Cell(from),
                true => {
                    let to = self.index()?;
                    let reversed = if from.from_end { from.at < to.at } else { from.at > to.at };
                    if from.from_end == to.from_end && reversed {
                        return Err(self.bad());
                    }
                    Leg::Range(from, to)
                }
            }
        };
        self.skip_spaces();
        match self.next() {
            Some(b']') => Ok(leg),
            _ => Err(self.bad()),
        }
    }

    /// Takes ` to `, which has spaces around it.
    fn keyword_to(&mut self) -> bool {
        let rest = self.rest();
        let word = rest.trim_start_matches(|c: char| c.is_ascii() && is_space(c as u8));
        let behind = word.strip_prefix("to").filter(|r| r.bytes().next().is_some_and(is_space));
        match behind {
            Some(behind) if word.len() < rest.len() => {
                self.at = self.text.len() - behind.len();
                self.skip_spaces();
                true
            }
            _ => false,
        }
    }

    fn index(&mut self) -> Result<Index, BadPath> {
        let from_end = self.rest().starts_with("last");
        if from_end {
            self.at += 4;
            let behind = self.at;
            self.skip_spaces();
            if self.peek() != Some(b'-') {
                // Spaces may belong to ` to `.
                self.at = behind;
                return Ok(Index { at: 0, from_end });
            }
            self.at += 1;
            self.skip_spaces();
        }
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let at = self.rest()[..digits].parse().map_err(|_| self.bad())?;
        self.at += digits;
        Ok(Index { at, from_end })
    }

    fn member(&mut self) -> Result<Leg, BadPath> {
        self.at += 1;
        self.skip_spaces();
        match self.peek() {
            None => Err(self.bad()),
            Some(b'*') => {
                self.at += 1;
                Ok(Leg::AnyMember)
            }
            Some(b'"') => {
                let len = quoted_len(self.rest());
                let quoted = &self.text[self.at..self.at + len];
                self.at += len;
                match parse::parse(quoted) {
                    Ok(Json::String(name)) => Ok(Leg::Member(name)),
                    _ => Err(self.bad()),
                }
            }
            Some(_) => {
                let ends = |c: char| matches!(c, '.' | '[' | '*') || c.is_ascii() && is_space(c as u8);
                let len = self.rest().find(ends).unwrap_or(self.rest().len());
                let raw = &self.text[self.at..self.at + len];
                self.at += len;
                // Names can have `\u` escapes.
                match parse::parse(&format!("\"{raw}\"")) {
                    Ok(Json::String(name)) if is_identifier(&name) => Ok(Leg::Member(name)),
                    _ => Err(self.bad()),
                }
            }
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Bytes up to and with the closing quotation mark, or all.
fn quoted_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether it is an identifier of ECMAScript.
fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || matches!(c, '$' | '_'))
        && chars.all(|c| c.is_alphanumeric() || matches!(c, '$' | '_' | '\u{200c}' | '\u{200d}'))
}

/// Shown as JSON_SEARCH shows where something is.
impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let index = |f: &mut std::fmt::Formatter<'_>, index: &Index| match (index.from_end, index.at) {
            (false, at) => write!(f, "{at}"),
            (true, 0) => f.write_str("last"),
            (true, at) => write!(f, "last-{at}"),
        };
        f.write_str("$")?;
        for leg in &self.legs {
            match leg {
                Leg::Member(name) if is_identifier(name) => write!(f, ".{name}")?,
                Leg::Member(name) => {
                    let mut quoted = Vec::new();
                    super::print::quote(name, &mut quoted);
                    write!(f, ".{}", String::from_utf8_lossy(&quoted))?;
                }
                Leg::AnyMember => f.write_str(".*")?,
                Leg::AnyCell => f.write_str("[*]")?,
                Leg::Within => f.write_str("**")?,
                Leg::Cell(at) => {
                    f.write_str("[")?;
                    index(f, at)?;
                    f.write_str("]")?;
                }
                Leg::Range(from, to) => {
                    f.write_str("[")?;
                    index(f, from)?;
                    f.write_str(" to ")?;
                    index(f, to)?;
                    f.write_str("]")?;
                }
            }
        }
        Ok(())
    }
}
