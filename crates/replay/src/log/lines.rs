//! Lines of a log, each of bounded length, and what could not be made an event of.

use std::io::{BufRead, Read};

use super::MAX_EVENT;
use crate::error::{Error, Result};

/// Lines that are part of no event.
#[derive(Clone, Debug, Default)]
pub struct Malformed {
    pub count: u64,
    /// The first of them: number, what is wrong, and how it begins.
    pub first: Vec<(u64, &'static str, String)>,
}

/// How many are shown, and how much of each.
const SHOWN: usize = 10;
const SHOWN_BYTES: usize = 100;

impl Malformed {
    pub fn add(&mut self, line: u64, what: &'static str, text: &[u8]) {
        self.count += 1;
        if self.first.len() < SHOWN {
            let text = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)]);
            self.first.push((line, what, text.trim_end().to_owned()));
        }
    }
}

/// What a server writes when it opens a log.
pub fn is_banner(line: &[u8]) -> bool {
    let has = |part: &[u8]| line.windows(part.len()).any(|window| window == part);
    line.ends_with(b"started with:") && has(b", Version: ")
        || line.starts_with(b"Tcp port: ")
        || line.starts_with(b"TCP Port: ")
        || line.starts_with(b"Time ") && line.ends_with(b"Argument")
        || line.starts_with(b"Time\t") && line.ends_with(b"Argument")
}

/// Reads lines with one line in advance.
pub struct Lines {
    input: Box<dyn BufRead + Send>,
    /// The number of the line in `line`, from 1.
    pub number: u64,
    pub line: Vec<u8>,
    next: Option<Vec<u8>>,
    started: bool,
}

impl Lines {
    pub fn new(input: Box<dyn BufRead + Send>) -> Self {
        Self { input, number: 0, line: Vec::new(), next: None, started: false }
    }

    fn read(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let limit = MAX_EVENT as u64 + 1;
        (&mut self.input).take(limit).read_until(b'\n', &mut line).map_err(Error::Reading)?;
        if line.last() == Some(&b'\n') {
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
        } else if line.is_empty() {
            return Ok(None);
        }
        Ok(Some(line))
    }

    /// Goes to the next line; false at the end.
    pub fn advance(&mut self) -> Result<bool> {
        if !self.started {
            self.started = true;
            self.next = self.read()?;
        }
        let Some(line) = self.next.take() else { return Ok(false) };
        self.next = self.read()?;
        self.line = line;
        self.number += 1;
        Ok(true)
    }

    /// The line after the current one.
    pub fn ahead(&self) -> Option<&[u8]> {
        self.next.as_deref()
    }
}
