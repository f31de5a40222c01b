//! The bytes of binary log events. MySQL source documentation, "Binary Log Events"; checked against what MySQL 9.7 writes.
//!
//! ```text
//!  time u32 │ kind u8 │ server id u32 │ length u32 │ end position u32 │ flags u16 │ body … │ CRC-32
//! ```

use avocet_engine::Statement;

use super::rows::put_packed;
use crate::binlog::kind;
use crate::gtid::GtidSet;

pub const MAGIC: [u8; 4] = [0xfe, b'b', b'i', b'n'];
pub const HEADER: usize = 19;
pub const CHECKSUM: usize = 4;
/// The event is made for a stream alone.
const ARTIFICIAL: u16 = 0x20;
/// The statement needs no default database.
pub const SUPPRESS_USE: u16 = 0x08;

/// Bytes of fixed length in the bodies of kinds of events, as MySQL 9.7 has them.
const POST_HEADERS: [u8; 42] = [
    0, 13, 0, 8, 0, 0, 0, 0, 4, 0, 4, 0, 0, 0, 99, 0, 4, 26, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 10, 10, 10, 42,
    42, 0, 18, 52, 0, 10, 40, 0, 0,
];
const CRC32: u8 = 1;

/// The checksum that binary logs have.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, bytes) as u32
}

/// Who writes, as events say it.
#[derive(Clone, Debug)]
pub struct Author {
    pub server_id: u32,
    pub version: String,
}

impl Author {
    /// `8.4.0-x` as 80400.
    fn version_number(&self) -> u32 {
        let mut parts =
            self.version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0u32));
        let mut next = || parts.next().unwrap_or(0);
        next() * 10_000 + next() * 100 + next()
    }

    /// Appends an event that ends at a position of its file; 0 for one that has no place there.
    pub fn put(&self, to: &mut Vec<u8>, kind: u8, time: u32, flags: u16, start: u64, body: &[u8]) {
        let at = to.len();
        let len = (HEADER + body.len() + CHECKSUM) as u32;
        to.extend_from_slice(&time.to_le_bytes());
        to.push(kind);
        to.extend_from_slice(&self.server_id.to_le_bytes());
        to.extend_from_slice(&len.to_le_bytes());
        // As far as 32 bits say it.
        let end = if start == 0 { 0 } else { (start + u64::from(len)) as u32 };
        to.extend_from_slice(&end.to_le_bytes());
        to.extend_from_slice(&flags.to_le_bytes());
        to.extend_from_slice(body);
        let checksum = crc32(&to[at..]);
        to.extend_from_slice(&checksum.to_le_bytes());
    }

    pub fn format_description(&self, to: &mut Vec<u8>, time: u32, start: u64) {
        let mut body = vec![4, 0];
        let mut version = self.version.clone().into_bytes();
        version.resize(50, 0);
        body.extend_from_slice(&version);
        // A time tells a replica that the server has started anew: its temporary tables would be gone.
        body.extend_from_slice(&0u32.to_le_bytes());
        body.push(HEADER as u8);
        body.extend_from_slice(&POST_HEADERS);
        body.push(CRC32);
        self.put(to, kind::FORMAT_DESCRIPTION, time, 0, start, &body);
    }

    pub fn previous_gtids(&self, to: &mut Vec<u8>, time: u32, start: u64, set: &GtidSet) {
        self.put(to, kind::PREVIOUS_GTIDS, time, 0, start, &encode_gtids(set));
    }

    pub fn rotate(&self, to: &mut Vec<u8>, time: u32, start: u64, next: &str, is_artificial: bool) {
        let mut body = 4u64.to_le_bytes().to_vec();
        body.extend_from_slice(next.as_bytes());
        self.put(to, kind::ROTATE, time, if is_artificial { ARTIFICIAL } else { 0 }, start, &body);
    }

    /// Nothing has come for a while; the stream is at this place. Where 32 bits do not say it, only those who know the second version
    /// of this event (MySQL 8.0.26) are told: `in_full`.
    pub fn heartbeat(&self, to: &mut Vec<u8>, in_full: bool, file: &str, position: u64) {
        /// Types of fields, as MySQL's `codecs::binary::Heartbeat` has them; the value is as long as the number before it says.
        const FILE: u8 = 1;
        const POSITION: u8 = 2;
        const END: u8 = 0;
        let at = to.len();
        match position > u32::MAX.into() {
            false => self.put(to, kind::HEARTBEAT, 0, 0, 0, file.as_bytes()),
            true if !in_full => return,
            true => {
                let mut place = Vec::new();
                put_packed(&mut place, position);
                let mut body = vec![FILE];
                put_packed(&mut body, file.len() as u64);
                body.extend_from_slice(file.as_bytes());
                body.extend_from_slice(&[POSITION, place.len() as u8]);
                body.extend_from_slice(&place);
                body.push(END);
                self.put(to, kind::HEARTBEAT_V2, 0, 0, 0, &body);
            }
        }
        to[at + 13..at + 17].copy_from_slice(&(position as u32).to_le_bytes());
        let end = to.len() - CHECKSUM;
        let checksum = crc32(&to[at..end]);
        to[end..].copy_from_slice(&checksum.to_le_bytes());
    }

    pub fn gtid(&self, to: &mut Vec<u8>, start: u64, gtid: &GtidEvent) {
        let mut body = vec![u8::from(gtid.is_statement)];
        body.extend_from_slice(&gtid.uuid);
        body.extend_from_slice(&gtid.number.to_le_bytes());
        body.push(2);
        body.extend_from_slice(&gtid.sequence.saturating_sub(1).to_le_bytes());
        body.extend_from_slice(&gtid.sequence.to_le_bytes());
        // 55 bits; the highest one would say that it was committed elsewhere first.
        body.extend_from_slice(&gtid.committed_us.to_le_bytes()[..7]);
        // In its longest form, so that the length of this event does not depend on it.
        body.push(LONGEST_FORM);
        body.extend_from_slice(&gtid.transaction_bytes.to_le_bytes());
        body.extend_from_slice(&self.version_number().to_le_bytes());
        let time = (gtid.committed_us / 1_000_000) as u32;
        self.put(to, kind::GTID, time, 0, start, &body);
    }

    pub fn begin(&self, to: &mut Vec<u8>, time: u32, start: u64) {
        let mut variables = Vec::new();
        put_variables(&mut variables, 0, 0);
        // utf8mb4_general_ci, which a MariaDB knows, too.
        charsets(&mut variables, [45; 3]);
        let query = Query { database: "", variables: &variables, text: "BEGIN" };
        self.query(to, start, (time, SUPPRESS_USE), &query);
    }

    pub fn xid(&self, to: &mut Vec<u8>, time: u32, start: u64, xid: u64) {
        self.put(to, kind::XID, time, 0, start, &xid.to_le_bytes());
    }

    /// A statement; `xid` if it is the end of its commit.
    pub fn statement(&self, to: &mut Vec<u8>, start: u64, of: &Statement, text: &str, xid: Option<u64>) {
        const NO_FOREIGN_KEY_CHECKS: u32 = 1 << 26;
        const RELAXED_UNIQUE_CHECKS: u32 = 1 << 27;
        let mut flags = 0;
        if !of.foreign_key_checks {
            flags |= NO_FOREIGN_KEY_CHECKS;
        }
        if !of.unique_checks {
            flags |= RELAXED_UNIQUE_CHECKS;
        }
        let mut variables = Vec::new();
        put_variables(&mut variables, flags, of.sql_mode);
        if of.auto_increment != (1, 1) {
            variables.push(3);
            variables.extend_from_slice(&of.auto_increment.0.to_le_bytes());
            variables.extend_from_slice(&of.auto_increment.1.to_le_bytes());
        }
        charsets(&mut variables, of.collations);
        variables.push(5);
        variables.push(of.time_zone.len() as u8);
        variables.extend_from_slice(of.time_zone.as_bytes());
        // Which databases it changes is not told: it runs alone.
        variables.extend_from_slice(&[12, 254]);
        let micros = (of.wall_us.rem_euclid(1_000_000) as u32).to_le_bytes();
        variables.push(13);
        variables.extend_from_slice(&micros[..3]);
        // explicit_defaults_for_timestamp
        variables.extend_from_slice(&[16, 1]);
        if let Some(xid) = xid {
            variables.push(DDL_XID);
            variables.extend_from_slice(&xid.to_le_bytes());
        }
        variables.push(18);
        variables.extend_from_slice(&of.utf8mb4_collation.to_le_bytes());
        let time = of.wall_us.div_euclid(1_000_000) as u32;
        let query = Query { database: of.database.as_deref().unwrap_or(""), variables: &variables, text };
        let flags = if of.names_database { SUPPRESS_USE } else { 0 };
        self.query(to, start, (time, flags), &query);
    }

    fn query(&self, to: &mut Vec<u8>, start: u64, (time, flags): (u32, u16), query: &Query<'_>) {
        let Query { database, variables, text } = query;
        let mut body = vec![0; 8];
        body.push(database.len() as u8);
        body.extend_from_slice(&[0, 0]);
        body.extend_from_slice(&(variables.len() as u16).to_le_bytes());
        body.extend_from_slice(variables);
        body.extend_from_slice(database.as_bytes());
        body.push(0);
        body.extend_from_slice(text.as_bytes());
        self.put(to, kind::QUERY, time, flags, start, &body);
    }
}

struct Query<'q> {
    database: &'q str,
    variables: &'q [u8],
    text: &'q str,
}

/// The variable of a QUERY event that has the number of the transaction which the statement was.
const DDL_XID: u8 = 17;

fn put_variables(to: &mut Vec<u8>, flags: u32, sql_mode: u64) {
    to.push(0);
    to.extend_from_slice(&flags.to_le_bytes());
    to.push(1);
    to.extend_from_slice(&sql_mode.to_le_bytes());
    to.extend_from_slice(b"\x06\x03std");
}

fn charsets(to: &mut Vec<u8>, collations: [u16; 3]) {
    to.push(4);
    collations.iter().for_each(|id| to.extend_from_slice(&id.to_le_bytes()));
}

pub struct GtidEvent {
    pub is_statement: bool,
    pub uuid: [u8; 16],
    pub number: u64,
    /// Within the file, from 1 on.
    pub sequence: u64,
    pub committed_us: u64,
    pub transaction_bytes: u64,
}

/// A packed number of eight bytes follows.
const LONGEST_FORM: u8 = 254;
/// How long a GTID event is.
pub const GTID_LEN: usize = HEADER + 1 + 16 + 8 + 1 + 16 + 7 + 9 + 4 + CHECKSUM;

fn encode_gtids(set: &GtidSet) -> Vec<u8> {
    let mut body = Vec::new();
    let sets: Vec<_> = set.iter().collect();
    let is_tagged = sets.iter().any(|(origin, _)| !origin.tag.is_empty());
    let head = sets.len() as u64;
    let head = if is_tagged { 1 << 56 | head << 8 | 1 } else { head };
    body.extend_from_slice(&head.to_le_bytes());
    for (origin, intervals) in sets {
        body.extend_from_slice(&origin.uuid);
        if is_tagged {
            // A tag has at most 32 characters, so that the form of lengths is one byte.
            body.push((origin.tag.len() << 1) as u8);
            body.extend_from_slice(origin.tag.as_bytes());
        }
        body.extend_from_slice(&(intervals.len() as u64).to_le_bytes());
        for (first, last) in intervals {
            body.extend_from_slice(&first.to_le_bytes());
            body.extend_from_slice(&(last + 1).to_le_bytes());
        }
    }
    body
}

/// What is read of an event again, to find out how far a file goes.
pub struct EventHead {
    pub time: u32,
    pub len: u32,
}

impl EventHead {
    /// `None` for what is no head of an event.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let head = Self { time: word(0)?, len: word(9)? };
        (head.len as usize >= HEADER + CHECKSUM).then_some(head)
    }
}

/// The number of the transaction that a whole event is the end of.
pub fn xid_of(event: &[u8]) -> Option<u64> {
    let body = event.get(HEADER..event.len().checked_sub(CHECKSUM)?)?;
    match event[4] {
        kind::XID => Some(u64::from_le_bytes(body.get(..8)?.try_into().ok()?)),
        kind::QUERY => {
            let len = u16::from_le_bytes(body.get(11..13)?.try_into().ok()?);
            let variables = body.get(13..13 + usize::from(len))?;
            // As `statement` puts it: behind it is the last variable, of three bytes.
            let at = variables.len().checked_sub(3 + 9)?;
            let xid = &variables[at..at + 9];
            (xid[0] == DDL_XID).then(|| u64::from_le_bytes(xid[1..].try_into().expect("eight bytes")))
        }
        _ => None,
    }
}

/// The set of a whole PREVIOUS_GTIDS event.
pub fn gtids_of(event: &[u8]) -> Option<GtidSet> {
    let body = event.get(HEADER..event.len().checked_sub(CHECKSUM)?)?;
    decode_gtids(body)
}

/// A set as PREVIOUS_GTIDS events and replicas write it.
pub fn decode_gtids(mut body: &[u8]) -> Option<GtidSet> {
    fn word(body: &mut &[u8]) -> Option<u64> {
        let (first, rest) = body.split_first_chunk()?;
        *body = rest;
        Some(u64::from_le_bytes(*first))
    }
    let mut set = GtidSet::default();
    let head = word(&mut body)?;
    // With tags, the highest byte says so, and the number of sources is before it.
    let is_tagged = head >> 56 == 1;
    let sources = if is_tagged { head >> 8 & 0xffff_ffff_ffff } else { head };
    for _ in 0..sources {
        let (uuid, rest) = body.split_first_chunk::<16>()?;
        body = rest;
        let mut tag = String::new();
        if is_tagged {
            // The length of a tag is one byte here, since it has at most 32 characters.
            let (len, rest) = body.split_first()?;
            let (name, rest) = rest.split_at_checked(usize::from(*len >> 1))?;
            tag = String::from_utf8(name.to_vec()).ok()?;
            body = rest;
        }
        let origin = crate::gtid::Origin { uuid: *uuid, tag };
        for _ in 0..word(&mut body)? {
            let (first, end) = (word(&mut body)?, word(&mut body)?);
            if first == 0 || end <= first {
                return None;
            }
            set.add_range(&origin, first, end - 1);
        }
    }
    body.is_empty().then_some(set)
}

/// The number of the transaction that a whole GTID event begins.
pub fn number_of(event: &[u8]) -> Option<([u8; 16], u64)> {
    let body = event.get(HEADER..)?;
    let uuid = body.get(1..17)?.try_into().ok()?;
    Some((uuid, u64::from_le_bytes(body.get(17..25)?.try_into().ok()?)))
}

/// How many bytes a whole GTID event says that its transaction has; 0 as long as nobody knows.
pub fn transaction_bytes_of(event: &[u8]) -> Option<u64> {
    const AT: usize = HEADER + 1 + 16 + 8 + 1 + 16 + 7;
    let (form, rest) = event.get(AT..)?.split_first()?;
    (*form == LONGEST_FORM).then(|| rest.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn author() -> Author {
        Author { server_id: 7, version: "8.4.0-avocet".into() }
    }

    #[test]
    fn statements_and_commits_say_their_numbers() {
        let statement =
            Statement { texts: vec!["x".into()], time_zone: "SYSTEM".into(), ..Statement::default() };
        for xid in [None, Some(77)] {
            let mut event = Vec::new();
            author().statement(&mut event, 4, &statement, "DROP TABLE t", xid);
            assert_eq!(xid_of(&event), xid);
        }
        let mut event = Vec::new();
        author().xid(&mut event, 1, 4, 9);
        assert_eq!(xid_of(&event), Some(9));
        event.clear();
        author().begin(&mut event, 1, 4);
        assert_eq!(xid_of(&event), None);
    }

    #[test]
    fn heartbeats_have_the_whole_position_or_are_none() {
        let heartbeat = |in_full, position| {
            let mut event = Vec::new();
            author().heartbeat(&mut event, in_full, "binlog.000004", position);
            event
        };
        let body = |event: &[u8]| event[HEADER..event.len() - CHECKSUM].to_vec();
        for in_full in [false, true] {
            let event = heartbeat(in_full, 463);
            let (name, place) = (&b"binlog.000004"[..], &[0xcf, 1, 0, 0][..]);
            assert_eq!((event[4], &body(&event)[..], &event[13..17]), (27, name, place));
        }
        let far = u64::from(u32::MAX) + 10;
        assert_eq!(heartbeat(false, far), [0; 0]);
        // MySQL 9.7 sends 01 0d, the name, 02 03 fc cf 01, 00 for 463.
        let event = heartbeat(true, far);
        assert_eq!((event[4], &event[13..17]), (41, &[9, 0, 0, 0][..]));
        assert_eq!(body(&event), b"\x01\rbinlog.000004\x02\x09\xfe\x09\0\0\0\x01\0\0\0\0");
        // An event behind 4 GiB says what is left of its position.
        let mut event = Vec::new();
        author().xid(&mut event, 1, u64::from(u32::MAX), 1);
        assert_eq!(u32::from_le_bytes(event[13..17].try_into().expect("four")), event.len() as u32 - 1);
    }

    #[test]
    fn gtids_have_one_length_and_sets_round_trip() {
        let mut event = Vec::new();
        let gtid = GtidEvent {
            is_statement: true,
            uuid: [3; 16],
            number: 5,
            sequence: 1,
            committed_us: 1 << 50,
            transaction_bytes: 1 << 40,
        };
        author().gtid(&mut event, 4, &gtid);
        assert_eq!((event.len(), number_of(&event)), (GTID_LEN, Some(([3; 16], 5))));
        assert_eq!(transaction_bytes_of(&event), Some(1 << 40));
        let set: GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:5".parse().expect("a set");
        event.clear();
        author().previous_gtids(&mut event, 1, 4, &set);
        assert_eq!(gtids_of(&event), Some(set));
        for cut in 0..event.len() {
            let _ = (gtids_of(&event[..cut]), decode_gtids(&event[..cut]));
        }
        let tagged = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:5:bench:2-4:tag:7".parse().expect("a set");
        event.clear();
        author().previous_gtids(&mut event, 1, 4, &tagged);
        assert_eq!(gtids_of(&event), Some(tagged));
    }
}
