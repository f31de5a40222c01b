//! Recorded statements: what a server or a person wrote down, one event after the other, in constant memory.
//!
//! ```text
//!  file ─ Format::detect ─┬─ general.rs   general query log of MySQL and MariaDB
//!                         ├─ slow.rs      slow query log
//!                         ├─ csv.rs       the files of mysql.general_log and mysql.slow_log
//!                         └─ plain.rs     statements and nothing else
//!                                └──▶ Event: session, time, database, what it did
//! ```
//!
//! Invariants:
//! 1. Each line of the input is part of an event, known to be none (a server's banner), or counted as malformed.
//! 2. No reader holds more than one event, and no event is longer than [`MAX_EVENT`].

mod csv;
mod general;
mod lines;
mod plain;
mod slow;
#[cfg(test)]
mod tests;
mod time;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::error::{Error, Result};

pub(crate) use lines::Malformed;

/// A statement may be as long as MySQL's largest packet by default, and an event has little beside it.
pub const MAX_EVENT: usize = 64 << 20;

/// Bytes of a file that its format is told from.
const HEAD: usize = 64 << 10;

/// Something that a session did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The connection's number in the log; 0 where there is but one.
    pub session: u64,
    /// Microseconds since 1970, when it began, if that is known. Logs without a zone are read as UTC: what matters is the time
    /// between events.
    pub at_us: Option<i64>,
    /// What NOW() was, in seconds, if the log says so.
    pub clock: Option<i64>,
    /// The default database, if the log says so with each event.
    pub database: Option<String>,
    /// The first line of the event, from 1.
    pub line: u64,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A new session, perhaps with a default database.
    Connect(Option<String>),
    /// COM_INIT_DB.
    Database(String),
    /// A statement's text. Of a prepared one, with its values.
    Statement(Vec<u8>),
    /// COM_RESET_CONNECTION and COM_CHANGE_USER: settings are the defaults again.
    Reset,
    Quit,
    /// Anything else that a client asks for, which neither reads rows nor changes the session.
    Other(&'static str),
}

/// How statements are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    General,
    Slow,
    GeneralCsv,
    SlowCsv,
    Plain,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::General => "general query log",
            Self::Slow => "slow query log",
            Self::GeneralCsv => "CSV of mysql.general_log",
            Self::SlowCsv => "CSV of mysql.slow_log",
            Self::Plain => "SQL statements",
        }
    }

    /// Whether a server wrote it: then each execution of a statement prepared by name is there with its values.
    pub fn is_of_server(self) -> bool {
        self != Self::Plain
    }

    /// Tells it from a file's first bytes.
    ///
    /// # Errors
    /// If it is none of them.
    fn detect(head: &[u8]) -> std::result::Result<Self, &'static str> {
        const MAGIC: [(&[u8], &str); 5] = [
            (b"\xfebin", "a binary log, which has no queries: record a general or slow query log"),
            (b"\x1f\x8b", "compressed: decompress it first"),
            (b"\x28\xb5\x2f\xfd", "compressed: decompress it first"),
            (b"BZh", "compressed: decompress it first"),
            (b"\xfd7zXZ", "compressed: decompress it first"),
        ];
        if let Some((_, what)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
            return Err(what);
        }
        if head.contains(&0) {
            return Err("a binary file, neither a log nor SQL");
        }
        if head.iter().all(u8::is_ascii_whitespace) {
            return Err("empty");
        }
        let mut banner = false;
        for line in head.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if slow::is_header(line) {
                return Ok(Self::Slow);
            }
            if general::is_header(line) {
                return Ok(Self::General);
            }
            banner |= lines::is_banner(line);
        }
        if banner {
            return Err("a log of nothing: there is a server's banner in it, and no statement");
        }
        Ok(csv::detect(head).unwrap_or(Self::Plain))
    }
}

/// Reads events of any format, one at a time.
pub trait EventReader: Send {
    /// `None` at the end.
    ///
    /// # Errors
    /// If the input cannot be read.
    fn next(&mut self) -> Result<Option<Event>>;

    /// What could not be read as an event, so far.
    fn malformed(&self) -> &Malformed;
}

/// An open log.
pub struct Log {
    pub format: Format,
    reader: Box<dyn EventReader>,
}

impl Log {
    /// # Errors
    /// If there is no such file, or it is nothing that statements are read from.
    pub fn open(path: &Path) -> Result<Self> {
        let refused = |why: String| Error::Log { path: path.to_owned(), why };
        let meta = std::fs::metadata(path).map_err(|error| refused(error.to_string()))?;
        if meta.is_dir() {
            return Err(refused("a folder, not a file".into()));
        }
        let mut file = File::open(path).map_err(|error| refused(error.to_string()))?;
        let head = head_of(&mut file).map_err(|error| refused(error.to_string()))?;
        let format = Format::detect(&head).map_err(|what| refused(format!("it is {what}")))?;
        // Not every file can be read twice: a pipe cannot.
        let input = BufReader::with_capacity(1 << 18, std::io::Cursor::new(head).chain(file));
        Ok(Self { format, reader: reader(format, Box::new(input)) })
    }

    /// # Errors
    /// If the file cannot be read to its end.
    pub fn event(&mut self) -> Result<Option<Event>> {
        self.reader.next()
    }

    pub fn malformed(&self) -> &Malformed {
        self.reader.malformed()
    }
}

/// As much of a file as its format is told from: of one that grows while it is read, no more than there is once that can be told.
fn head_of(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD];
    let mut filled = 0;
    while filled < HEAD {
        match file.read(&mut head[filled..])? {
            0 => break,
            more => filled += more,
        }
        if matches!(Format::detect(&head[..filled]), Ok(Format::Slow | Format::General)) {
            break;
        }
    }
    head.truncate(filled);
    Ok(head)
}

fn reader(format: Format, input: Box<dyn BufRead + Send>) -> Box<dyn EventReader> {
    match format {
        Format::General => Box::new(general::GeneralLog::new(input)),
        Format::Slow => Box::new(slow::SlowLog::new(input)),
        Format::GeneralCsv | Format::SlowCsv => Box::new(csv::CsvLog::new(input, format)),
        Format::Plain => Box::new(plain::Statements::new(input)),
    }
}
