//! The log's events as SHOW BINLOG EVENTS has them: in MySQL's words, some at a time.

use std::fmt::Write as _;
use std::sync::Arc;

use avocet_base::env::DiskFile;

use super::events::{CHECKSUM, HEADER, SUPPRESS_USE, gtids_of, number_of, xid_of};
use super::files::{Events, Files};
use crate::binlog::kind;
use crate::gtid::Origin;
use crate::source::quoted;

/// Of one step: events that it returns, and bytes that it reads.
const MOST_EVENTS: usize = 1024;
const MOST_BYTES: u64 = 1 << 20;
/// What a file begins with: its format, and what is in the files before it.
const HEAD_EVENTS: usize = 2;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    pub position: u64,
    pub kind: &'static str,
    pub server_id: u32,
    /// Where the next one begins.
    pub end: u64,
    pub info: String,
}

/// The events of one file, as far as it is whole when this begins.
pub struct LoggedEvents {
    name: String,
    file: Arc<dyn DiskFile>,
    at: u64,
    end: u64,
}

fn unreadable(position: u64, why: &str) -> String {
    format!("Error reading Log_event at position {position}: Failed decoding event: {why}")
}

impl LoggedEvents {
    pub(super) fn open(files: &Files, name: Option<&str>, from: u64) -> Result<Self, String> {
        let (name, end) = {
            let state = files.state();
            // As in MySQL, whatever folder is named.
            let name = name.map(|name| name.rsplit('/').next().unwrap_or(name));
            let found = state.files.iter().find(|file| name.is_none_or(|name| file.name == name));
            let found = found.ok_or("Could not find target log")?;
            let end = if found.name == state.current { state.end } else { found.bytes };
            (found.name.clone(), end)
        };
        if i64::try_from(from).is_ok_and(|from| from < i64::MAX) {
            let file = files.env.disk.open(&files.path(&name), false);
            let file = file.map_err(|error| format!("Could not open log file: {error}"))?;
            let at = beginning(&*file, from, end)?;
            return Ok(Self { name, file, at, end });
        }
        Err(unreadable(from, "I/O error reading log event"))
    }

    pub fn file(&self) -> &str {
        &self.name
    }

    /// Appends the next ones; whether there are more.
    ///
    /// # Errors
    /// What MySQL says behind error 1220, of a position that is inside an event, and of damage.
    pub fn next(&mut self, to: &mut Vec<LoggedEvent>) -> Result<bool, String> {
        let most = to.len() + MOST_EVENTS;
        let mut events = Events::new(&*self.file, self.at, self.end);
        while events.at < self.end {
            if to.len() >= most || events.at - self.at >= MOST_BYTES {
                self.at = events.at;
                return Ok(true);
            }
            let position = events.at;
            let event = events.next().map_err(|_| unreadable(position, "I/O error reading log event"))?;
            let shown = event.and_then(|event| shown(event, position));
            to.push(shown.ok_or_else(|| unreadable(position, "Event invalid"))?);
        }
        self.at = self.end;
        Ok(false)
    }
}

/// Where the first event that is asked for begins. Within the head of the file a position stands for the event behind it.
fn beginning(file: &dyn DiskFile, from: u64, end: u64) -> Result<u64, String> {
    let mut events = Events::new(file, 4, end);
    for _ in 0..HEAD_EVENTS {
        if events.at >= from || events.at >= end {
            break;
        }
        let position = events.at;
        match events.next() {
            Ok(Some(_)) => {}
            Ok(None) => return Err(unreadable(position, "Event invalid")),
            Err(_) => return Err(unreadable(position, "I/O error reading log event")),
        }
    }
    Ok(events.at.max(from))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// `None` for what is no event of this log at this position.
fn shown(event: &[u8], position: u64) -> Option<LoggedEvent> {
    let end = position + event.len() as u64;
    if word(event, 13)? != end as u32 {
        return None;
    }
    let body = event.get(HEADER..event.len().checked_sub(CHECKSUM)?)?;
    let (kind, info) = match event[4] {
        kind::FORMAT_DESCRIPTION => {
            let version = body.get(2..52)?;
            let version = version.split(|byte| *byte == 0).next()?;
            let format = u16::from_le_bytes(body.get(..2)?.try_into().ok()?);
            let version = String::from_utf8_lossy(version);
            ("Format_desc", format!("Server ver: {version}, Binlog ver: {format}"))
        }
        kind::PREVIOUS_GTIDS => ("Previous_gtids", gtids_of(event)?.to_string().replace(',', ",\n")),
        kind::GTID => {
            let (uuid, number) = number_of(event)?;
            let origin = Origin { uuid, tag: String::new() };
            ("Gtid", format!("SET @@SESSION.GTID_NEXT= '{origin}:{number}'"))
        }
        kind::QUERY => ("Query", query(event, body)?),
        kind::TABLE_MAP => ("Table_map", table_map(body)?),
        kind::WRITE_ROWS => ("Write_rows", rows(body)?),
        kind::UPDATE_ROWS => ("Update_rows", rows(body)?),
        kind::DELETE_ROWS => ("Delete_rows", rows(body)?),
        kind::XID => {
            ("Xid", format!("COMMIT /* xid={} */", u64::from_le_bytes(body.get(..8)?.try_into().ok()?)))
        }
        kind::ROTATE => {
            let (next, name) = body.split_first_chunk()?;
            let name = String::from_utf8_lossy(name);
            ("Rotate", format!("{name};pos={}", u64::from_le_bytes(*next)))
        }
        _ => return None,
    };
    Some(LoggedEvent { position, kind, server_id: word(event, 5)?, end, info })
}

fn query(event: &[u8], body: &[u8]) -> Option<String> {
    let flags = u16::from_le_bytes(event.get(17..19)?.try_into().ok()?);
    let database = usize::from(*body.get(8)?);
    let variables = u16::from_le_bytes(body.get(11..13)?.try_into().ok()?);
    let rest = body.get(13 + usize::from(variables)..)?;
    let (database, rest) = rest.split_at_checked(database)?;
    let text = String::from_utf8_lossy(rest.get(1..)?);
    let mut info = String::with_capacity(text.len() + 64);
    if flags & SUPPRESS_USE == 0 && !database.is_empty() {
        let _ = write!(info, "use {}; ", quoted(&String::from_utf8_lossy(database)));
    }
    info.push_str(&text);
    if let Some(xid) = xid_of(event) {
        let _ = write!(info, " /* xid={xid} */");
    }
    Some(info)
}

/// A table's number, and what follows it.
fn table_id(body: &[u8]) -> Option<(u64, &[u8])> {
    let (id, rest) = body.split_first_chunk::<6>()?;
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(id);
    Some((u64::from_le_bytes(bytes), rest))
}

fn table_map(body: &[u8]) -> Option<String> {
    let (id, rest) = table_id(body)?;
    /// Behind its length, and before a NUL.
    fn name<'b>(rest: &mut &'b [u8]) -> Option<std::borrow::Cow<'b, str>> {
        let (len, behind) = rest.split_first()?;
        let (name, behind) = behind.split_at_checked(usize::from(*len))?;
        *rest = behind.get(1..)?;
        Some(String::from_utf8_lossy(name))
    }
    let mut rest = rest.get(2..)?;
    let (database, table) = (name(&mut rest)?, name(&mut rest)?);
    Some(format!("table_id: {id} ({database}.{table})"))
}

fn rows(body: &[u8]) -> Option<String> {
    const FLAGS: [(u16, &str); 3] =
        [(1, "STMT_END_F"), (2, "NO_FOREIGN_KEY_CHECKS_F"), (4, "RELAXED_UNIQUE_CHECKS_F")];
    let (id, rest) = table_id(body)?;
    let flags = u16::from_le_bytes(rest.get(..2)?.try_into().ok()?);
    let names: Vec<&str> =
        FLAGS.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, name)| *name).collect();
    let flags = if names.is_empty() { String::new() } else { format!(" flags: {}", names.join(" ")) };
    Some(format!("table_id: {id}{flags}"))
}

#[cfg(test)]
mod tests {
    use avocet_engine::Statement;

    use super::super::events::{Author, GtidEvent};
    use super::*;
    use crate::gtid::GtidSet;

    fn author() -> Author {
        Author { server_id: 7, version: "8.4.0-avocet".into() }
    }

    /// What MySQL 9.7 says of the same events.
    #[test]
    fn each_kind_is_told_in_mysqls_words() {
        let statement = |database: Option<&str>| Statement {
            database: database.map(str::to_owned),
            time_zone: "SYSTEM".into(),
            ..Statement::default()
        };
        let set: GtidSet =
            "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:5,4e11fa47-71ca-11e1-9e33-c80aa9429562:1"
                .parse()
                .expect("a set");
        let gtid = GtidEvent {
            is_statement: true,
            uuid: [0x3e; 16],
            number: 5,
            sequence: 1,
            committed_us: 1,
            transaction_bytes: 1,
        };
        let id = |flags: u8, rest: &[u8]| [&[9, 1, 0, 0, 0, 0, flags, 0], rest].concat();
        let map = id(1, b"\x01d\0\x05we`rd\0");
        type Put<'p> = Box<dyn Fn(&mut Vec<u8>) + 'p>;
        let cases: [(Put<'_>, &str, &str); 12] = [
            (
                Box::new(|to| author().format_description(to, 1, 4)),
                "Format_desc",
                "Server ver: 8.4.0-avocet, Binlog ver: 4",
            ),
            (
                Box::new(|to| author().previous_gtids(to, 1, 4, &set)),
                "Previous_gtids",
                "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:5,\n4e11fa47-71ca-11e1-9e33-c80aa9429562:1",
            ),
            (Box::new(|to| author().previous_gtids(to, 1, 4, &GtidSet::default())), "Previous_gtids", ""),
            (
                Box::new(|to| author().gtid(to, 4, &gtid)),
                "Gtid",
                "SET @@SESSION.GTID_NEXT= '3e3e3e3e-3e3e-3e3e-3e3e-3e3e3e3e3e3e:5'",
            ),
            (Box::new(|to| author().begin(to, 1, 4)), "Query", "BEGIN"),
            (
                Box::new(|to| author().statement(to, 4, &statement(Some("a`b")), "drop table t", Some(33))),
                "Query",
                "use `a``b`; drop table t /* xid=33 */",
            ),
            (
                Box::new(|to| author().statement(to, 4, &statement(None), "create user u", None)),
                "Query",
                "create user u",
            ),
            (
                Box::new(|to| author().put(to, kind::TABLE_MAP, 1, 0, 4, &map)),
                "Table_map",
                "table_id: 265 (d.we`rd)",
            ),
            (
                Box::new(|to| author().put(to, kind::WRITE_ROWS, 1, 0, 4, &id(3, &[2, 0]))),
                "Write_rows",
                "table_id: 265 flags: STMT_END_F NO_FOREIGN_KEY_CHECKS_F",
            ),
            (
                Box::new(|to| author().put(to, kind::DELETE_ROWS, 1, 0, 4, &id(0, &[2, 0]))),
                "Delete_rows",
                "table_id: 265",
            ),
            (Box::new(|to| author().xid(to, 1, 4, 26)), "Xid", "COMMIT /* xid=26 */"),
            (
                Box::new(|to| author().rotate(to, 1, 4, "binlog.000002", false)),
                "Rotate",
                "binlog.000002;pos=4",
            ),
        ];
        for (put, kind, info) in cases {
            let mut event = Vec::new();
            put(&mut event);
            let end = 4 + event.len() as u64;
            let wanted = LoggedEvent { position: 4, kind, server_id: 7, end, info: info.to_owned() };
            assert_eq!(shown(&event, 4), Some(wanted));
            assert_eq!(shown(&event, 5), None, "it says where it ends");
            for cut in 0..event.len() {
                let _ = shown(&event[..cut], 4);
            }
        }
    }
}
