//! The files of `mysql.general_log` and `mysql.slow_log`, which are tables of MySQL's CSV engine: fields with commas between, texts in
//! double quotes with `\"`, `\\`, `\n` and `\r` in them, a row to a line.

use std::io::BufRead;

use super::general::action_of;
use super::lines::{Lines, Malformed};
use super::time::{date_time, seconds};
use super::{Action, Event, EventReader, Format};
use crate::error::Result;

/// The fields of a line; `None` if a text in it is not ended, or something stands behind it.
fn fields(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    let mut at = 0;
    loop {
        let mut field = Vec::new();
        if line.get(at) == Some(&b'"') {
            at += 1;
            loop {
                match (*line.get(at)?, line.get(at + 1)) {
                    (b'"', Some(b'"')) | (b'\\', Some(b'"')) => field.push(b'"'),
                    (b'\\', Some(b'n')) => field.push(b'\n'),
                    (b'\\', Some(b'r')) => field.push(b'\r'),
                    (b'\\', Some(b'\\')) => field.push(b'\\'),
                    (b'"', _) => break,
                    (byte, _) => {
                        field.push(byte);
                        at += 1;
                        continue;
                    }
                }
                at += 2;
            }
            at += 1;
        } else {
            let end = line[at..].iter().position(|byte| *byte == b',').map_or(line.len(), |end| at + end);
            field.extend_from_slice(&line[at..end]);
            at = end;
        }
        all.push(field);
        match line.get(at) {
            None => return Some(all),
            Some(b',') => at += 1,
            Some(_) => return None,
        }
    }
}

fn text(field: &[u8]) -> &str {
    std::str::from_utf8(field).unwrap_or_default()
}

/// Which of the two tables a file begins as, if it does.
pub fn detect(head: &[u8]) -> Option<Format> {
    let end = head.iter().position(|byte| *byte == b'\n').unwrap_or(head.len());
    let first = fields(&head[..end])?;
    date_time(text(first.first()?))?;
    match first.len() {
        6 => Some(Format::GeneralCsv),
        12.. if seconds(text(&first[2])).is_some() => Some(Format::SlowCsv),
        _ => None,
    }
}

pub struct CsvLog {
    lines: Lines,
    malformed: Malformed,
    format: Format,
}

impl CsvLog {
    pub fn new(input: Box<dyn BufRead + Send>, format: Format) -> Self {
        Self { lines: Lines::new(input), malformed: Malformed::default(), format }
    }

    fn event(&self, mut row: Vec<Vec<u8>>) -> Option<Event> {
        let ended = date_time(text(row.first()?))?;
        let mut event = Event {
            session: 0,
            at_us: Some(ended),
            clock: None,
            database: None,
            line: self.lines.number,
            action: Action::Quit,
        };
        match self.format {
            Format::GeneralCsv => {
                let argument = row.get_mut(5).map(std::mem::take)?;
                event.session = text(&row[2]).parse().ok()?;
                event.action = action_of(text(&row[4]), argument);
            }
            _ => {
                event.at_us = Some(ended - seconds(text(row.get(2)?))?);
                event.clock = event.at_us.map(|us| us.div_euclid(1_000_000));
                let database = text(row.get(6)?);
                event.database = (!database.is_empty()).then(|| database.to_owned());
                event.session = text(row.get(11)?).parse().ok()?;
                event.action = slow_action(row.swap_remove(10));
            }
        }
        Some(event)
    }
}

/// Commands other than statements have their names where statements have their texts.
pub(crate) fn slow_action(text: Vec<u8>) -> Action {
    match text.as_slice() {
        b"Quit" => Action::Quit,
        b"Prepare" | b"Close stmt" | b"Reset stmt" | b"Ping" | b"Statistics" | b"Field List" | b"Init DB"
        | b"Long Data" | b"Set option" | b"Refresh" | b"Debug" | b"Fetch" => {
            Action::Other("administrator command")
        }
        b"Change user" | b"Reset Connection" | b"Reset connection" => Action::Reset,
        _ => Action::Statement(text),
    }
}

impl EventReader for CsvLog {
    fn next(&mut self) -> Result<Option<Event>> {
        while self.lines.advance()? {
            let event = fields(&self.lines.line).and_then(|row| self.event(row));
            if event.is_some() {
                return Ok(event);
            }
            self.malformed.add(self.lines.number, "it is no row of the log's table", &self.lines.line);
        }
        Ok(None)
    }

    fn malformed(&self) -> &Malformed {
        &self.malformed
    }
}
