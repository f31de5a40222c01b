//! The general query log.
//!
//! ```text
//!  MySQL    2026-11-26T13:38:01.383094Z⇥   10 Query⇥SELECT …
//!  MariaDB  261126 13:38:01⇥     6 Query⇥SELECT …         the time where it differs from the line before, else
//!           ⇥⇥     6 Query⇥SELECT …
//! ```
//! Lines of a statement after its first stand alone: what does not begin as above goes on with the event before. MySQL 9.7 Reference
//! Manual, 7.4.3 "The General Query Log".

use std::io::BufRead;

use super::lines::{Lines, Malformed, is_banner};
use super::time::date_time;
use super::{Action, Event, EventReader, MAX_EVENT};
use crate::error::Result;

/// All commands that a server logs; nothing else in a line's third place makes it an event.
const COMMANDS: [&str; 38] = [
    "Sleep",
    "Quit",
    "Init DB",
    "Query",
    "Field List",
    "Create DB",
    "Drop DB",
    "Refresh",
    "Shutdown",
    "Statistics",
    "Processlist",
    "Connect",
    "Kill",
    "Debug",
    "Ping",
    "Time",
    "Delayed insert",
    "Change user",
    "Binlog Dump",
    "Table Dump",
    "Connect Out",
    "Register Slave",
    "Register Replica",
    "Prepare",
    "Execute",
    "Long Data",
    "Close stmt",
    "Reset stmt",
    "Set option",
    "Fetch",
    "Daemon",
    "Binlog Dump GTID",
    "Reset Connection",
    "Reset connection",
    "clone",
    "Group Replication Data Stream subscription",
    "Bulk_execute",
    "Unimpl get tid",
];

/// What a command of the log means.
pub(crate) fn action_of(command: &str, argument: Vec<u8>) -> Action {
    match command {
        "Query" | "Execute" | "Bulk_execute" => Action::Statement(argument),
        "Init DB" => Action::Database(String::from_utf8_lossy(&argument).trim().to_owned()),
        "Connect" => Action::Connect(database_of(&String::from_utf8_lossy(&argument))),
        "Change user" | "Reset Connection" | "Reset connection" => Action::Reset,
        "Quit" => Action::Quit,
        _ => Action::Other(
            COMMANDS.iter().find(|known| **known == command).copied().unwrap_or("unknown command"),
        ),
    }
}

/// Of `root@localhost on shop using SSL/TLS`, `shop`.
fn database_of(connect: &str) -> Option<String> {
    let (_, rest) = connect.split_once(" on ")?;
    let name = rest.rsplit_once(" using ").map_or(rest, |(name, _)| name).trim();
    (!name.is_empty()).then(|| name.to_owned())
}

struct Header<'a> {
    stamp: &'a str,
    session: u64,
    command: &'static str,
    argument: &'a [u8],
}

fn header(line: &[u8]) -> Option<Header<'_>> {
    let tab = line.iter().take(40).position(|byte| *byte == b'\t')?;
    let stamp = std::str::from_utf8(&line[..tab]).ok()?;
    let rest = match stamp {
        "" => line.get(1..)?.strip_prefix(b"\t")?,
        _ => {
            date_time(stamp)?;
            &line[tab + 1..]
        }
    };
    let rest = rest.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let session = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    let rest = rest[digits..].strip_prefix(b" ")?;
    let end = rest.iter().position(|byte| *byte == b'\t').unwrap_or(rest.len());
    let command = COMMANDS.iter().find(|known| known.as_bytes() == &rest[..end])?;
    Some(Header { stamp, session, command, argument: rest.get(end + 1..).unwrap_or_default() })
}

pub fn is_header(line: &[u8]) -> bool {
    header(line).is_some()
}

pub struct GeneralLog {
    lines: Lines,
    malformed: Malformed,
    /// Of the last line that had one.
    at_us: Option<i64>,
}

impl GeneralLog {
    pub fn new(input: Box<dyn BufRead + Send>) -> Self {
        Self { lines: Lines::new(input), malformed: Malformed::default(), at_us: None }
    }

    /// The lines that go on with an event. `None` if it has become too long.
    fn rest_of(&mut self, mut argument: Vec<u8>) -> Result<Option<Vec<u8>>> {
        let mut fits = true;
        while self.lines.ahead().is_some_and(|line| header(line).is_none() && !is_banner(line)) {
            self.lines.advance()?;
            fits &= argument.len() + self.lines.line.len() < MAX_EVENT;
            if fits {
                argument.push(b'\n');
                argument.extend_from_slice(&self.lines.line);
            }
        }
        Ok(fits.then_some(argument))
    }
}

impl EventReader for GeneralLog {
    fn next(&mut self) -> Result<Option<Event>> {
        while self.lines.advance()? {
            let number = self.lines.number;
            let Some(Header { stamp, session, command, argument }) = header(&self.lines.line) else {
                if !is_banner(&self.lines.line) && !self.lines.line.is_empty() {
                    self.malformed.add(number, "it belongs to no event", &self.lines.line);
                }
                continue;
            };
            self.at_us = date_time(stamp).or(self.at_us);
            let argument = argument.to_vec();
            let Some(argument) = self.rest_of(argument)? else {
                self.malformed.add(number, "the statement is too long", b"");
                continue;
            };
            return Ok(Some(Event {
                session,
                at_us: self.at_us,
                clock: None,
                database: None,
                line: number,
                action: action_of(command, argument),
            }));
        }
        Ok(None)
    }

    fn malformed(&self) -> &Malformed {
        &self.malformed
    }
}
