//! What a replica gets: the events of the files, one by one, from where it asked for, and on as there are more.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use avocet_base::env::DiskFile;

use super::events::{CHECKSUM, HEADER, crc32, number_of};
use super::files::{Events, Files, Reading, State, damaged};
use crate::binlog::kind;
use crate::gtid::{Gtid, GtidSet, Origin};

/// From where on a replica wants events.
#[derive(Clone, Debug)]
pub enum From {
    /// It has all of these. If it names a place, what it lacks of what is behind that: nobody asks what is before.
    Gtids(GtidSet, Option<(String, u64)>),
    /// A file (the first one if it has no name), and a position in it.
    Position(String, u64),
}

/// Why a replica gets nothing: MySQL's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DumpError(pub String);

/// What [`Dump::next`] comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Event,
    /// There is more behind what was passed over.
    Skipped,
    /// There is nothing more yet.
    End,
}

/// A replica's place in the log.
pub struct Dump {
    files: Arc<Files>,
    reading: Reading,
    name: String,
    file: Arc<dyn DiskFile>,
    at: u64,
    /// What it has already.
    has: GtidSet,
    /// The transaction at hand is one of those.
    skips: bool,
    /// What the stream begins with: its place, and the description of its file if it does not begin with that.
    is_begun: bool,
    described: bool,
    /// It expects no checksum on the event before the description.
    begins_without_checksum: bool,
    /// The last event of the file that was passed.
    passed: Option<u8>,
    /// Events that were read ahead.
    ahead: Vec<u8>,
    ahead_at: usize,
}

const AHEAD: u64 = 256 << 10;

impl Dump {
    pub(super) fn open(
        files: Arc<Files>,
        from: From,
        begins_without_checksum: bool,
    ) -> Result<Self, DumpError> {
        let (name, at, has, reading) = {
            // Nothing is purged between the look at what there is and the entry among those who read it.
            let mut state = files.state();
            let (name, at, has) = beginning(&files, &state, from)?;
            let reading = Reading::begin(&files, &mut state, &name);
            let reading = reading.ok_or_else(|| DumpError("the binary log is about to begin anew".into()))?;
            (name, at, has, reading)
        };
        let file = files.env.disk.open(&files.path(&name), false);
        let file = file.map_err(|error| DumpError(format!("could not open log file: {error}")))?;
        Ok(Self {
            files,
            reading,
            name,
            file,
            at,
            has,
            skips: false,
            is_begun: false,
            described: at == 4,
            begins_without_checksum,
            passed: None,
            ahead: Vec::new(),
            ahead_at: 0,
        })
    }

    /// Appends the next event, if there is one. What the replica has already is passed over, some at a time.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn next(&mut self, to: &mut Vec<u8>) -> io::Result<Step> {
        if !self.is_begun {
            self.is_begun = true;
            let from = to.len();
            self.say_place(to, self.at);
            if self.begins_without_checksum {
                to.truncate(to.len() - CHECKSUM);
                let len = (to.len() - from) as u32;
                to[from + 9..from + 13].copy_from_slice(&len.to_le_bytes());
            }
            return Ok(Step::Event);
        }
        // Behind the place, the description of its file.
        if !self.described {
            self.describe(to)?;
            return Ok(Step::Event);
        }
        let begin = self.at;
        while self.at - begin < AHEAD {
            let Some(event) = self.read()? else {
                if !self.go_on()? {
                    return Ok(Step::End);
                }
                self.say_place(to, 4);
                return Ok(Step::Event);
            };
            let event = &self.ahead[event];
            match event[4] {
                kind::GTID => {
                    let gtid = number_of(event).map(|(uuid, number)| Gtid::Numbered {
                        origin: Origin { uuid, tag: String::new() },
                        number,
                    });
                    self.skips = gtid.is_some_and(|gtid| self.has.contains(&gtid));
                }
                kind::ROTATE | kind::FORMAT_DESCRIPTION | kind::PREVIOUS_GTIDS => self.skips = false,
                _ => {}
            }
            if !self.skips {
                to.extend_from_slice(event);
                return Ok(Step::Event);
            }
        }
        Ok(Step::Skipped)
    }

    /// Tells the replica the file and the position of what follows.
    fn say_place(&self, to: &mut Vec<u8>, at: u64) {
        let from = to.len();
        self.files.author.rotate(to, 0, 0, &self.name, true);
        to[from + HEADER..from + HEADER + 8].copy_from_slice(&at.to_le_bytes());
        seal(&mut to[from..]);
    }

    fn describe(&mut self, to: &mut Vec<u8>) -> io::Result<()> {
        self.described = true;
        let mut events = Events::new(&*self.file, 4, self.file.size()?);
        let event = events.next()?.ok_or_else(|| damaged(format!("{} has no beginning", self.name)))?;
        let from = to.len();
        to.extend_from_slice(event);
        // It has no place where it is sent.
        to[from + 13..from + 17].fill(0);
        seal(&mut to[from..]);
        Ok(())
    }

    /// Where the file ends that is being read, and whether there will be more of it.
    fn end(&self) -> io::Result<(u64, bool)> {
        let state = self.files.state();
        match state.current == self.name {
            true => Ok((state.end, true)),
            false => {
                drop(state);
                Ok((self.file.size()?, false))
            }
        }
    }

    /// The next event of the file, in what was read ahead.
    fn read(&mut self) -> io::Result<Option<std::ops::Range<usize>>> {
        loop {
            let left = &self.ahead[self.ahead_at..];
            let len = match left.get(9..13) {
                Some(len) => u32::from_le_bytes(len.try_into().expect("four bytes")) as usize,
                None => HEADER,
            };
            if left.len() >= HEADER {
                // An event says where it ends, as far as 32 bits do.
                let end = u32::from_le_bytes(left[13..17].try_into().expect("four bytes"));
                if len < HEADER + CHECKSUM || end != (self.at + len as u64) as u32 {
                    return Err(damaged(format!("{} has no event at byte {}", self.name, self.at)));
                }
            }
            if left.len() >= len.max(HEADER) {
                self.passed = Some(left[4]);
                let range = self.ahead_at..self.ahead_at + len;
                self.ahead_at += len;
                self.at += len as u64;
                return Ok(Some(range));
            }
            let (end, _) = self.end()?;
            if self.at == end {
                return Ok(None);
            }
            if self.at + len as u64 > end {
                return Err(damaged(format!(
                    "{} ends in the middle of the event at byte {}",
                    self.name, self.at
                )));
            }
            let take = AHEAD.max(len as u64).min(end - self.at);
            if take <= AHEAD {
                self.ahead.shrink_to(AHEAD as usize);
            }
            self.ahead.resize(take as usize, 0);
            self.ahead_at = 0;
            self.file.read_at(&mut self.ahead, self.at)?;
        }
    }

    /// At the end of a file: the next one, if there is one.
    fn go_on(&mut self) -> io::Result<bool> {
        let next = {
            let mut state = self.files.state();
            let at = state.files.iter().position(|file| file.name == self.name);
            // What is behind it may have been purged as well.
            let at = at.ok_or_else(|| damaged(format!("{} was purged while it was read", self.name)))?;
            let next = state.files.get(at + 1).map(|file| file.name.clone());
            next.inspect(|next| self.reading.go_on(&mut state, next))
        };
        let Some(next) = next else { return Ok(false) };
        if self.passed.is_some_and(|kind| kind != kind::ROTATE) {
            return Err(damaged(format!(
                "{} ends before its end: what followed byte {} is gone",
                self.name, self.at
            )));
        }
        self.passed = None;
        self.file = self.files.env.disk.open(&self.files.path(&next), false)?;
        self.name = next;
        (self.at, self.ahead_at, self.described) = (4, 0, true);
        self.ahead.clear();
        Ok(true)
    }

    /// Ready when there is more, or never will be.
    pub fn poll_more(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self.files.wake_beyond(&self.name, self.at, cx.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Bytes that are read ahead.
    pub fn buffered(&self) -> usize {
        self.ahead.capacity()
    }

    pub fn has_ended(&self) -> bool {
        self.files.has_ended()
    }

    /// An event that says that there is nothing new; `in_full` if the replica knows those of places beyond 4 GiB, otherwise there is none.
    pub fn heartbeat(&self, in_full: bool, to: &mut Vec<u8>) {
        self.files.author.heartbeat(to, in_full, &self.name, self.at);
    }
}

/// Makes the checksum of an event right.
fn seal(event: &mut [u8]) {
    let (body, checksum) = event.split_at_mut(event.len() - CHECKSUM);
    checksum.copy_from_slice(&crc32(body).to_le_bytes());
}

/// Where a replica begins: a file, a position in it, and what the replica has already.
fn beginning(files: &Files, state: &State, from: From) -> Result<(String, u64, GtidSet), DumpError> {
    match from {
        From::Gtids(has, None) => Ok((first_file(files, state, &has)?, 4, has)),
        From::Gtids(has, Some((name, at))) => {
            let (name, at, _) = beginning(files, state, From::Position(name, at))?;
            Ok((name, at, has))
        }
        From::Position(name, at) => {
            let found = state.files.iter().find(|file| name.is_empty() || file.name == name);
            let lacks = || DumpError("Could not find first log file name in binary log index file".into());
            let found = found.ok_or_else(lacks)?;
            let end = if found.name == state.current { state.end } else { found.bytes };
            if at > end {
                let text = "Client requested source to start replication from position > file size";
                return Err(DumpError(text.into()));
            }
            if at < 4 {
                let text = "Client requested source to start replication from impossible position";
                return Err(DumpError(text.into()));
            }
            Ok((found.name.clone(), at, GtidSet::default()))
        }
    }
}

/// The file to begin with for a replica that has these transactions.
fn first_file(files: &Files, state: &State, has: &GtidSet) -> Result<String, DumpError> {
    let lacks = || {
        DumpError(
            "Cannot replicate because the source purged required binary logs. Replicate the missing transactions from elsewhere, \
             or provision a new replica from backup. Consider increasing the source's binary log expiration period."
                .into(),
        )
    };
    let executed = files.executed_in(state);
    if !has.contains_all(&state.purged()) {
        return Err(lacks());
    }
    let mut own = GtidSet::default();
    for (origin, intervals) in has.iter().filter(|(origin, _)| **origin == files.origin) {
        intervals.iter().for_each(|&(first, last)| own.add_range(origin, first, last));
    }
    if !executed.contains_all(&own) {
        return Err(DumpError(
            "Replica has more GTIDs than the source has, using the source's SERVER_UUID. This may indicate that the end of the \
             binary log was truncated or that the last binary log file was lost, e.g., after a power or disk failure when sync_binlog \
             != 1. The source may or may not have rolled back transactions that were already replicated to the replica. \
             Suggest to replicate any transactions that source has rolled back from replica to source, and/or commit empty \
             transactions on source to account for transactions that have been committed on source but are not included in GTID_EXECUTED."
                .into(),
        ));
    }
    let last = state.files.iter().rev().find(|file| has.contains_all(&file.previous));
    last.map(|file| file.name.clone()).ok_or_else(lacks)
}
