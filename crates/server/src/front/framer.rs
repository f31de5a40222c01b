//! Where a reply of the source ends, found by its packets' headers and as little of what is in them as that takes.
//!
//! ```text
//!  text or prepared  OK │ ERR │ 0xFB (a file is asked for) │ n, n columns, [EOF], rows …, EOF or OK │ ERR; more results
//!  prepare           OK with counts, parameters, [EOF], columns, [EOF] │ ERR
//!  fetch, fields     rows or columns …, EOF │ ERR
//!  other commands    one packet
//! ```
//!
//! The bytes themselves are passed on as they came.

use crate::protocol::{MAX_PAYLOAD, Reader, StatusFlags, status};

const HEADER: usize = 4;
/// So much of a packet tells what it is, and what it says of the session: OK's flags stand behind two numbers.
const HEAD: usize = 1 + 9 + 9 + 4;

/// What is awaited of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// COM_QUERY and COM_STMT_EXECUTE.
    Results,
    Prepared,
    /// COM_STMT_FETCH.
    Rows,
    /// COM_FIELD_LIST.
    Fields,
    /// Commands that OK, EOF or ERR answer, and COM_STATISTICS.
    Packet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    First,
    /// So many column definitions, then what.
    Definitions(u64, After),
    /// The EOF behind definitions.
    EndOfDefinitions(After),
    Rows,
    Prepared,
    Packet,
    /// OK or ERR, when the client's file has been sent.
    FileTaken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Rows,
    /// The columns of a prepared statement, if there are any.
    Columns(u64),
    End,
}

/// How a look at the bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// These can be passed on; more is to come.
    More(usize),
    /// As `More`; the source awaits the client's file then.
    File(usize),
    /// These are the last of the reply.
    Ended(usize),
}

impl Step {
    /// How many bytes can be passed on.
    pub fn count(self) -> usize {
        let (Self::More(count) | Self::File(count) | Self::Ended(count)) = self;
        count
    }
}

/// Follows one reply.
#[derive(Debug)]
pub struct Framer {
    expect: Expect,
    /// Of the packet that is being passed on.
    left: usize,
    /// The packet before was full: the next one goes on with its payload.
    continues: bool,
    deprecates_eof: bool,
    ended: bool,
    /// Number of the packet that was looked at last.
    pub sequence: u8,
    /// What the last OK or EOF said of the session.
    pub status: Option<StatusFlags>,
    /// It ended with an error.
    pub failed: bool,
    /// Id, columns and parameters of what was prepared.
    pub prepared: Option<(u32, u16, u16)>,
}

/// The bytes are not those of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

impl From<crate::protocol::Malformed> for Unreadable {
    fn from(_: crate::protocol::Malformed) -> Self {
        Self
    }
}

impl Framer {
    pub fn new(reply: Reply, deprecates_eof: bool) -> Self {
        let expect = match reply {
            Reply::Results => Expect::First,
            Reply::Prepared => Expect::Prepared,
            Reply::Rows | Reply::Fields => Expect::Rows,
            Reply::Packet => Expect::Packet,
        };
        Self {
            expect,
            left: 0,
            continues: false,
            deprecates_eof,
            ended: false,
            sequence: 0,
            status: None,
            failed: false,
            prepared: None,
        }
    }

    /// Looks at what has come and was not passed on yet. What `Step` says must be passed on before the next look.
    pub fn look(&mut self, bytes: &[u8]) -> Result<Step, Unreadable> {
        let mut at = 0;
        loop {
            if self.left > 0 {
                let here = self.left.min(bytes.len() - at);
                at += here;
                self.left -= here;
                if self.left > 0 {
                    return Ok(Step::More(at));
                }
            }
            if self.ended && !self.continues {
                return Ok(Step::Ended(at));
            }
            if self.expect == Expect::FileTaken && at > 0 {
                return Ok(Step::File(at));
            }
            let rest = &bytes[at..];
            let Some((header, payload)) = rest.split_first_chunk::<HEADER>() else {
                return Ok(Step::More(at));
            };
            let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            let was_continued = std::mem::replace(&mut self.continues, len == MAX_PAYLOAD);
            if !was_continued {
                let head = &payload[..payload.len().min(len).min(HEAD)];
                if head.len() < len.min(HEAD) {
                    self.continues = was_continued;
                    return Ok(Step::More(at));
                }
                self.packet(head, len)?;
            }
            self.sequence = header[3];
            self.left = HEADER + len;
        }
    }

    fn packet(&mut self, head: &[u8], len: usize) -> Result<(), Unreadable> {
        let first = head.first().copied();
        if first == Some(0xFF) {
            self.failed = true;
            self.ended = true;
            return Ok(());
        }
        match self.expect {
            Expect::First | Expect::FileTaken => match first.ok_or(Unreadable)? {
                0x00 => {
                    self.ok(head)?;
                    self.end_of_result();
                }
                0xFB => self.expect = Expect::FileTaken,
                _ => {
                    let columns = Reader::new(head).lenenc_int()?;
                    self.expect = self.definitions(columns, After::Rows);
                }
            },
            Expect::Definitions(count, after) => {
                self.expect = match count {
                    0 | 1 => self.after_definitions(after),
                    more => Expect::Definitions(more - 1, after),
                };
            }
            Expect::EndOfDefinitions(after) => {
                self.eof(head)?;
                let has_cursor = self
                    .status
                    .is_some_and(|status| status.contains(StatusFlags::SERVER_STATUS_CURSOR_EXISTS));
                match after {
                    After::Rows if has_cursor => self.end_of_result(),
                    _ => self.go_on(after),
                }
            }
            Expect::Rows => {
                if first == Some(0xFE) && self.is_end(len) {
                    match self.deprecates_eof {
                        true => self.ok(head)?,
                        false => self.eof(head)?,
                    }
                    self.end_of_result();
                }
            }
            Expect::Prepared => {
                let mut reader = Reader::new(head);
                reader.u8()?;
                let (id, columns, params) = (reader.u32()?, reader.u16()?, reader.u16()?);
                self.prepared = Some((id, columns, params));
                self.expect = self.definitions(params.into(), After::Columns(columns.into()));
            }
            Expect::Packet => {
                match first {
                    Some(0x00) => self.ok(head)?,
                    Some(0xFE) if len < 9 => self.eof(head)?,
                    _ => {}
                }
                self.ended = true;
            }
        }
        Ok(())
    }

    /// A packet that begins as an end does may be a row with a very long first column.
    fn is_end(&self, len: usize) -> bool {
        if self.deprecates_eof { len < MAX_PAYLOAD } else { len < 9 }
    }

    fn definitions(&mut self, count: u64, after: After) -> Expect {
        match count {
            // Without definitions there is no EOF behind them either.
            0 => {
                self.go_on(after);
                self.expect
            }
            count => Expect::Definitions(count, after),
        }
    }

    fn after_definitions(&mut self, after: After) -> Expect {
        match self.deprecates_eof {
            false => Expect::EndOfDefinitions(after),
            true => {
                self.go_on(after);
                self.expect
            }
        }
    }

    fn go_on(&mut self, after: After) {
        match after {
            After::Rows => self.expect = Expect::Rows,
            After::Columns(0) | After::End => self.ended = true,
            After::Columns(count) => self.expect = Expect::Definitions(count, After::End),
        }
    }

    fn end_of_result(&mut self) {
        let more = self.status.is_some_and(|status| status.contains(StatusFlags::SERVER_MORE_RESULTS_EXISTS));
        match more {
            true => self.expect = Expect::First,
            false => self.ended = true,
        }
    }

    fn ok(&mut self, head: &[u8]) -> Result<(), Unreadable> {
        self.status = Some(status::of_ok(head)?);
        Ok(())
    }

    fn eof(&mut self, head: &[u8]) -> Result<(), Unreadable> {
        self.status = Some(status::of_eof(head)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
        bytes.extend_from_slice(payload);
        bytes
    }

    fn ok(header: u8, flags: u16) -> Vec<u8> {
        let [low, high] = flags.to_le_bytes();
        packet(&[header, 1, 0xFC, 7, 7, low, high, 0, 0])
    }

    fn eof(flags: u16) -> Vec<u8> {
        let [low, high] = flags.to_le_bytes();
        packet(&[0xFE, 0, 0, low, high])
    }

    fn error() -> Vec<u8> {
        packet(b"\xFF\x48\x04#HY000no")
    }

    /// Passes a reply on in pieces of this size; where files were asked for, and the framer at the end. What follows the reply must
    /// not be touched.
    fn pass(reply: Reply, deprecates_eof: bool, bytes: &[u8], piece: usize) -> (usize, Framer) {
        let all = [bytes, &packet(b"the next reply")].concat();
        let mut framer = Framer::new(reply, deprecates_eof);
        let (mut passed, mut come, mut files) = (0, 0, 0);
        loop {
            come = (come + piece).min(all.len());
            match framer.look(&all[passed..come]).expect("it is a reply") {
                Step::More(count) => passed += count,
                Step::File(count) => {
                    passed += count;
                    files += 1;
                }
                Step::Ended(count) => {
                    assert_eq!(passed + count, bytes.len(), "{reply:?} in pieces of {piece}");
                    return (files, framer);
                }
            }
            assert!(come < all.len() || passed < come, "it goes on");
        }
    }

    fn check(reply: Reply, deprecates_eof: bool, parts: &[Vec<u8>]) -> Framer {
        let bytes = parts.concat();
        for piece in [1, 2, 3, 7, 64] {
            pass(reply, deprecates_eof, &bytes, piece);
        }
        pass(reply, deprecates_eof, &bytes, usize::MAX / 4).1
    }

    #[test]
    fn every_kind_of_reply_ends_where_it_ends() {
        let (count, column, row) = (packet(&[2]), packet(b"\x03def a column"), packet(b"\x01a\x02bc"));
        let framer = check(Reply::Results, true, &[ok(0, 2)]);
        assert_eq!(framer.status, Some(StatusFlags::SERVER_STATUS_AUTOCOMMIT));
        assert!(check(Reply::Results, true, &[error()]).failed);
        let head = [count.clone(), column.clone(), column.clone()].concat();
        check(Reply::Results, true, &[head.clone(), row.clone(), packet(&[0xFB, 0xFB]), ok(0xFE, 3)]);
        check(Reply::Results, true, &[head.clone(), ok(0xFE, 2)]);
        check(Reply::Results, false, &[head.clone(), eof(2), row.clone(), eof(3)]);
        assert!(check(Reply::Results, false, &[head.clone(), eof(2), row.clone(), error()]).failed);
        // Several results, with a cursor, and none.
        check(
            Reply::Results,
            true,
            &[head.clone(), row.clone(), ok(0xFE, 8), ok(0, 10), head.clone(), ok(0xFE, 2)],
        );
        check(Reply::Results, false, &[ok(0, 8), head.clone(), eof(2 | 8), row.clone(), eof(8), error()]);
        check(Reply::Results, false, &[head.clone(), eof(0x42)]);
        check(Reply::Results, true, &[head, ok(0xFE, 0x42)]);
        check(Reply::Rows, true, &[row.clone(), row.clone(), ok(0xFE, 0x42)]);
        check(Reply::Rows, false, &[row, eof(0x82)]);
        check(Reply::Fields, false, &[column.clone(), eof(2)]);
        check(Reply::Packet, true, &[packet(b"Uptime: 12  Threads: 1")]);
        check(Reply::Packet, true, &[eof(2)]);
        let prepared = |columns: u8, params: u8| packet(&[0, 9, 0, 0, 0, columns, 0, params, 0, 0, 0, 0]);
        let framer =
            check(Reply::Prepared, true, &[prepared(1, 2), column.clone(), column.clone(), column.clone()]);
        assert_eq!(framer.prepared, Some((9, 1, 2)));
        check(Reply::Prepared, false, &[prepared(1, 1), column.clone(), eof(2), column.clone(), eof(2)]);
        check(Reply::Prepared, false, &[prepared(1, 0), column.clone(), eof(2)]);
        check(Reply::Prepared, false, &[prepared(0, 1), column, eof(2)]);
        check(Reply::Prepared, true, &[prepared(0, 0)]);
        check(Reply::Prepared, true, &[error()]);
    }

    #[test]
    fn a_file_is_asked_for_in_between() {
        let bytes = [packet(b"\xFBdata.csv"), ok(0, 2)].concat();
        for piece in [1, 5, 1000] {
            assert_eq!(pass(Reply::Results, true, &bytes, piece).0, 1);
        }
    }

    #[test]
    fn a_payload_of_several_packets_is_one() {
        let mut long = vec![0xFE; MAX_PAYLOAD];
        long[1..9].fill(1);
        let row = [packet(&long), packet(&[0xFE, 0, 0, 2, 0])].concat();
        let bytes = [packet(&[1]), packet(b"\x03def"), row, ok(0xFE, 2)].concat();
        pass(Reply::Results, true, &bytes, 1 << 20);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..5, eof: bool) {
            let reply = [Reply::Results, Reply::Prepared, Reply::Rows, Reply::Fields, Reply::Packet][kind as usize];
            let mut framer = Framer::new(reply, eof);
            let mut passed = 0;
            for _ in 0..300 {
                match framer.look(&bytes[passed..]) {
                    Ok(Step::More(0)) | Ok(Step::Ended(_)) | Err(_) => break,
                    Ok(Step::More(count) | Step::File(count)) => passed += count,
                }
            }
            prop_assert!(passed <= bytes.len());
        }
    }
}
