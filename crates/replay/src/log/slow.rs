//! The slow query log.
//!
//! ```text
//!  # Time: 2026-11-26T13:38:01.389366Z                                  MariaDB: where it differs from the entry before
//!  # User@Host: root[root] @ localhost [127.0.0.1]  Id:    10           MariaDB: # Thread_id: 6  Schema: shop  QC_hit: No
//!  # Query_time: 0.000130  Lock_time: 0.000002 Rows_sent: 1 …
//!  use shop;                                                            where it differs from the entry before, of any session
//!  SET timestamp=1795700281;                                            what NOW() was
//!  SELECT …;
//! ```
//! A statement ends with `;` before the next header or the end of the file; its lines may look like comments, but the line of a
//! header's beginning after a `;` is a header. MySQL 9.7 Reference Manual, 7.4.5 "The Slow Query Log".

use std::io::BufRead;

use super::lines::{Lines, Malformed, is_banner};
use super::time::{date_time, seconds};
use super::{Action, Event, EventReader, MAX_EVENT};
use crate::error::Result;

pub fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"# User@Host: ")
        || line.strip_prefix(b"# Time: ").is_some_and(|rest| {
            std::str::from_utf8(rest).is_ok_and(|stamp| date_time(stamp.trim()).is_some())
        })
}

/// What stands after `name` in a header's line, up to the next blank.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let at = line.find(name)? + name.len();
    line[at..].split_whitespace().next()
}

/// The name of `use shop;` or `use \`shop\`;`, as servers write it.
fn used_database(line: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(line.strip_prefix(b"use ")?.strip_suffix(b";")?).ok()?;
    Some(match name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) {
        Some(quoted) => quoted.replace("``", "`"),
        None => name.to_owned(),
    })
}

/// The number of `SET timestamp=…;`, which MariaDB may write behind other variables.
fn timestamp(line: &[u8]) -> Option<i64> {
    let line = std::str::from_utf8(line.strip_prefix(b"SET ")?.strip_suffix(b";")?).ok()?;
    let is_server_made = line.split(',').all(|item| {
        item.split_once('=').is_some_and(|(name, value)| {
            matches!(name, "timestamp" | "last_insert_id" | "insert_id") && value.parse::<f64>().is_ok()
        })
    });
    let value = line.split(',').find_map(|item| item.strip_prefix("timestamp="))?;
    is_server_made.then(|| value.parse::<f64>().ok().map(|s| s as i64)).flatten()
}

#[derive(Default)]
struct Entry {
    line: u64,
    session: Option<u64>,
    schema: Option<String>,
    took_us: i64,
    clock: Option<i64>,
}

pub struct SlowLog {
    lines: Lines,
    malformed: Malformed,
    /// When the last entry with a time ended.
    ended_us: Option<i64>,
    /// What was last used, by any session: the log says so where it changes.
    database: Option<String>,
}

impl SlowLog {
    pub fn new(input: Box<dyn BufRead + Send>) -> Self {
        Self { lines: Lines::new(input), malformed: Malformed::default(), ended_us: None, database: None }
    }

    /// Takes one line of an entry's head; false if it is none.
    fn head(&mut self, entry: &mut Entry) -> bool {
        // The statement follows, whatever it looks like.
        if entry.clock.is_some() {
            return false;
        }
        let Some(line) = self.lines.line.strip_prefix(b"# ") else {
            return self.prelude(entry);
        };
        let Ok(line) = std::str::from_utf8(line) else { return false };
        if line.starts_with("administrator command: ") {
            return false;
        }
        if let Some(stamp) = line.strip_prefix("Time: ") {
            self.ended_us = date_time(stamp.trim()).or(self.ended_us);
        }
        if line.starts_with("User@Host: ") {
            entry.session = field(line, "Id: ").and_then(|id| id.parse().ok()).or(entry.session);
        }
        if line.starts_with("Thread_id: ") {
            entry.session = field(line, "Thread_id: ").and_then(|id| id.parse().ok());
            // An empty one is followed by the next field's name.
            entry.schema = field(line, "Schema: ").filter(|name| *name != "QC_hit:").map(str::to_owned);
        }
        if let Some(took) = field(line, "Query_time: ") {
            entry.took_us = seconds(took).unwrap_or(0);
        }
        true
    }

    /// What the server writes before the statement, once each.
    fn prelude(&mut self, entry: &mut Entry) -> bool {
        if let Some(database) = used_database(&self.lines.line) {
            self.database = Some(database);
            return true;
        }
        entry.clock = timestamp(&self.lines.line);
        entry.clock.is_some()
    }

    /// The statement that begins at the current line. The inner error says why there is none.
    fn statement(&mut self) -> Result<std::result::Result<Vec<u8>, &'static str>> {
        let mut text = self.lines.line.clone();
        let mut fits = true;
        let is_over = |line: Option<&[u8]>| line.is_none_or(|line| is_header(line) || is_banner(line));
        while !(self.lines.line.ends_with(b";") && is_over(self.lines.ahead())) {
            if !self.lines.advance()? {
                return Ok(Err("the log ends within a statement"));
            }
            fits &= text.len() + self.lines.line.len() < MAX_EVENT;
            if fits {
                text.push(b'\n');
                text.extend_from_slice(&self.lines.line);
            }
        }
        text.pop();
        Ok(if fits { Ok(text) } else { Err("the statement is too long") })
    }

    fn event(&self, entry: Entry, text: Vec<u8>) -> Event {
        let action = match text.strip_prefix(b"# administrator command: ") {
            Some(b"Quit") => Action::Quit,
            Some(b"Change user" | b"Reset Connection" | b"Reset connection") => Action::Reset,
            // Its statement's text is not there; the next entries have their database.
            Some(_) => Action::Other("administrator command"),
            None => Action::Statement(text),
        };
        Event {
            session: entry.session.unwrap_or(0),
            at_us: self.ended_us.map(|end| end - entry.took_us),
            clock: entry.clock,
            database: entry.schema.or_else(|| self.database.clone()),
            line: entry.line,
            action,
        }
    }
}

impl EventReader for SlowLog {
    fn next(&mut self) -> Result<Option<Event>> {
        while self.lines.advance()? {
            let number = self.lines.number;
            if !is_header(&self.lines.line) {
                if !is_banner(&self.lines.line) && !self.lines.line.is_empty() {
                    self.malformed.add(number, "it belongs to no entry", &self.lines.line);
                }
                continue;
            }
            let mut entry = Entry { line: number, ..Entry::default() };
            let mut has_statement = true;
            while self.head(&mut entry) {
                // A header after the prelude begins another entry: this one has no statement.
                let is_next = entry.clock.is_some() && self.lines.ahead().is_some_and(is_header);
                has_statement = !is_next && self.lines.advance()?;
                if !has_statement {
                    break;
                }
            }
            if !has_statement {
                self.malformed.add(number, "an entry without a statement", &self.lines.line);
                continue;
            }
            match self.statement()? {
                Ok(text) => return Ok(Some(self.event(entry, text))),
                Err(why) => self.malformed.add(number, why, &self.lines.line),
            }
        }
        Ok(None)
    }

    fn malformed(&self) -> &Malformed {
        &self.malformed
    }
}
