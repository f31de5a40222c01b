//! Statements with semicolons between, as the `mysql` client reads them: `DELIMITER` changes what ends one, `\g` and `\G` do as well.

use std::io::{BufRead, Read};

use super::lines::Malformed;
use super::{Action, Event, EventReader, MAX_EVENT};
use crate::error::{Error, Result};

/// Within what a byte stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Text,
    Quote(u8),
    LineComment,
    Comment,
}

pub struct Statements {
    input: Box<dyn BufRead + Send>,
    malformed: Malformed,
    delimiter: Vec<u8>,
    /// What is read and not yet taken.
    pending: Vec<u8>,
    /// How far `pending` was looked at, and within what that is.
    at: usize,
    within: Within,
    /// Of the first byte of `pending`, from 1.
    line: u64,
    ended: bool,
}

impl Statements {
    pub fn new(input: Box<dyn BufRead + Send>) -> Self {
        Self {
            input,
            malformed: Malformed::default(),
            delimiter: b";".to_vec(),
            pending: Vec::new(),
            at: 0,
            within: Within::Text,
            line: 1,
            ended: false,
        }
    }

    fn read_line(&mut self) -> Result<()> {
        let before = self.pending.len();
        let limit = MAX_EVENT as u64;
        (&mut self.input).take(limit).read_until(b'\n', &mut self.pending).map_err(Error::Reading)?;
        self.ended = self.pending.len() == before;
        Ok(())
    }

    /// The end of the first statement of `pending`, without and with its delimiter.
    fn end(&mut self) -> Option<(usize, usize)> {
        let bytes = &self.pending;
        while self.at < bytes.len() {
            let rest = &bytes[self.at..];
            let (within, step) = match (self.within, rest) {
                (Within::Text, _) if rest.starts_with(&self.delimiter) => {
                    return Some((self.at, self.at + self.delimiter.len()));
                }
                (Within::Text, [b'\\', b'g' | b'G', ..]) => return Some((self.at, self.at + 2)),
                (Within::Text, [quote @ (b'\'' | b'"' | b'`'), ..]) => (Within::Quote(*quote), 1),
                (Within::Text, [b'#', ..] | [b'-', b'-', b' ' | b'\t' | b'\n' | b'\r', ..]) => {
                    (Within::LineComment, 1)
                }
                (Within::Text, [b'/', b'*', ..]) => (Within::Comment, 2),
                (Within::Quote(quote), [b'\\', ..]) if quote != b'`' => (self.within, 2),
                (Within::Quote(quote), [byte, ..]) if *byte == quote => (Within::Text, 1),
                (Within::LineComment, [b'\n', ..]) => (Within::Text, 1),
                (Within::Comment, [b'*', b'/', ..]) => (Within::Text, 2),
                (within, _) => (within, 1),
            };
            // A line ends with its newline: what two bytes say is never cut, but for a backslash before that.
            self.within = within;
            self.at += step;
        }
        None
    }

    /// Takes the first `len` bytes; what is blank before a statement counts for its line alone.
    fn take(&mut self, len: usize, taken: usize) -> (u64, Vec<u8>) {
        let all: Vec<u8> = self.pending.drain(..taken.min(self.pending.len())).collect();
        let text = &all[..len.min(all.len())];
        let blank = text.len() - text.trim_ascii_start().len();
        let newlines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let line = self.line + newlines(&text[..blank]);
        self.line += newlines(&all);
        self.at = 0;
        self.within = Within::Text;
        (line, text.trim_ascii().to_vec())
    }

    /// A line `DELIMITER …` where a statement would begin.
    fn takes_delimiter(&mut self) -> bool {
        let begins = |text: &[u8]| text.len() >= 10 && text[..9].eq_ignore_ascii_case(b"DELIMITER");
        let text = self.pending.trim_ascii_start();
        if !begins(text) || !text[9].is_ascii_whitespace() {
            return false;
        }
        let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
        let delimiter = text[9..end].trim_ascii().to_vec();
        if delimiter.is_empty() {
            return false;
        }
        let taken = self.pending.len() - text.len() + end;
        self.delimiter = delimiter;
        self.take(0, taken);
        true
    }
}

impl EventReader for Statements {
    fn next(&mut self) -> Result<Option<Event>> {
        loop {
            if self.takes_delimiter() {
                continue;
            }
            let (line, text) = match self.end() {
                Some((end, taken)) => self.take(end, taken),
                None if self.pending.len() > MAX_EVENT => {
                    self.malformed.add(self.line, "the statement is too long", &self.pending[..80]);
                    let all = self.pending.len();
                    self.take(0, all);
                    continue;
                }
                None if !self.ended => {
                    self.read_line()?;
                    continue;
                }
                None => {
                    let is_open = matches!(self.within, Within::Quote(_) | Within::Comment);
                    let all = self.pending.len();
                    let (line, text) = self.take(all, all);
                    if is_open {
                        self.malformed.add(line, "a quote or comment without an end", &text);
                    }
                    if is_open || text.is_empty() {
                        return Ok(None);
                    }
                    (line, text)
                }
            };
            if !text.is_empty() {
                let action = Action::Statement(text);
                return Ok(Some(Event {
                    session: 0,
                    at_us: None,
                    clock: None,
                    database: None,
                    line,
                    action,
                }));
            }
        }
    }

    fn malformed(&self) -> &Malformed {
        &self.malformed
    }
}
