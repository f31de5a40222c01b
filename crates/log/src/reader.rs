//! Reading the log: records in order, and the decision what a bad frame means.
//!
//! A bad frame at *b* is **damage** if anything proves that the log was durable beyond *b*:
//! - a segment whose name is a later LSN (it got the name after all before it was durable);
//! - a valid frame behind *b* whose group began behind *b* (a group is written after the one before is durable);
//! - the caller, who says until where the log is known to be durable;
//! - a file that is shorter than its header says: it had its length before it had its name.
//!
//! Otherwise *b* lies in the last group, nobody was told that it is durable, and it is the log's **torn tail**: reading
//! ends there. Valid frames behind it in the same group do not count. `docs/log.md` has the cases.
//!
//! A reader keeps two positions: the [`Place`] of the next frame in the files, and the LSN up to which it has given records
//! out. Between two frames of a file they go together; in a compressed frame only the LSN moves.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use avocet_base::{Env, Lsn};

use crate::error::{Error, Result};
use crate::frame::{ALIGN, Flaw, HEAD, Head, KIND_CLOSED, MAX_KIND, Place, find_mark};
use crate::packed::Unpacked;
use crate::segment::{HEADER_BLOCK, OpenSegment, list, offset_of};

/// Bytes read at once.
const READ_AHEAD: usize = 1 << 20;

/// A record, borrowed from the reader's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRecord<'a> {
    pub start: Lsn,
    /// Where the next record starts.
    pub end: Lsn,
    pub kind: u8,
    pub tag: u64,
    pub payload: &'a [u8],
}

/// Where and why a log without damage ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    pub lsn: Lsn,
    pub path: PathBuf,
    /// Where in the file it ends, in bytes.
    pub offset: u64,
    /// What stands there instead of a record; in a recycled segment this may be what its earlier use left.
    pub reason: &'static str,
}

/// Reads records in order. Fit for a log that nobody writes, or up to an LSN that is durable.
pub struct LogReader {
    env: Env,
    dir: PathBuf,
    /// Segments from the one being read on.
    starts: VecDeque<Lsn>,
    /// None in an empty directory.
    segment: Option<OpenSegment>,
    window: Window,
    /// Where the next frame is in the files.
    place: Place,
    /// What the last one carried, as far as it was not given out yet.
    unpacked: Unpacked,
    /// End of the last record given out.
    at: Lsn,
    /// Whether damage was skipped whose length in LSNs is not known, since it may have been compressed.
    lost: bool,
    until: Option<Lsn>,
    /// Head CRC of the last frame; `None` after damage was skipped.
    chain: Option<u32>,
    last: LastFrame,
    tail: Option<Tail>,
}

#[derive(Default)]
struct LastFrame {
    group: Place,
    closed: bool,
}

/// A frame that was gone over, and where its payload is.
struct Passed {
    start: Lsn,
    head: Head,
    payload: Payload,
}

enum Payload {
    /// At this offset of the file, in the window.
    Window(u64),
    Unpacked(usize),
}

/// A stretch of the file that is in memory.
#[derive(Default)]
struct Window {
    bytes: Vec<u8>,
    /// Offset in the file of the first byte.
    offset: u64,
}

impl LogReader {
    /// A reader from `from`, which must be the start or end of a record, to the end of the log.
    ///
    /// # Errors
    /// `MissingSegment` or `EndsEarly` if the log does not reach to `from`; `Corrupt` for damage before it.
    pub fn open(env: Env, dir: &Path, from: Lsn) -> Result<Self> {
        Self::open_at(env, dir, from, None)
    }

    /// A reader of `from..until`, where the caller knows that all of it is durable: a record that cannot be
    /// read there is damage. The log may be written behind `until` meanwhile.
    pub fn open_until(env: Env, dir: &Path, from: Lsn, until: Lsn) -> Result<Self> {
        Self::open_at(env, dir, from, Some(until))
    }

    fn open_at(env: Env, dir: &Path, from: Lsn, until: Option<Lsn>) -> Result<Self> {
        let mut reader = Self::first(env, dir, from, until)?;
        // The records before `from` are read too: that proves that the log reaches to it.
        while reader.at < from {
            if reader.step()?.is_none() {
                return Err(Error::EndsEarly { dir: reader.dir, end: reader.at, wanted: from });
            }
        }
        if reader.at > from {
            return Err(Error::NotAtEnd { dir: reader.dir, end: reader.at, at: from });
        }
        Ok(reader)
    }

    /// A reader at the start of the segment that holds `from`.
    fn first(env: Env, dir: &Path, from: Lsn, until: Option<Lsn>) -> Result<Self> {
        let mut starts: VecDeque<Lsn> = list(&env, dir)?.into();
        let missing = |next| Error::MissingSegment { dir: dir.to_path_buf(), lsn: from, next };
        while starts.get(1).is_some_and(|&next| next <= from) {
            starts.pop_front();
        }
        let segment = match starts.front() {
            Some(&start) if start <= from => Some(OpenSegment::open(&env, dir, start, false)?),
            Some(&start) => return Err(missing(Some(start))),
            None if from == Lsn(0) => None,
            None => return Err(missing(None)),
        };
        let mut reader = Self {
            env,
            dir: dir.to_path_buf(),
            starts,
            segment: None,
            window: Window::default(),
            place: Place(from.0),
            unpacked: Unpacked::default(),
            at: from,
            lost: false,
            until,
            chain: Some(0),
            last: LastFrame::default(),
            tail: None,
        };
        segment.into_iter().for_each(|segment| reader.enter(segment));
        Ok(reader)
    }

    fn enter(&mut self, segment: OpenSegment) {
        self.at = segment.header.start;
        self.place = segment.first_place();
        self.lost = false;
        self.chain = Some(segment.header.chain);
        self.last.group = self.place;
        self.window.bytes.clear();
        self.unpacked.clear();
        self.segment = Some(segment);
    }

    /// The next record, or `None` at the end.
    ///
    /// # Errors
    /// `Corrupt` or `MissingSegment` for damage, with its place; `Io`.
    pub fn next_record(&mut self) -> Result<Option<LogRecord<'_>>> {
        loop {
            let Some(Passed { start, head, payload }) = self.step()? else { return Ok(None) };
            if head.kind <= MAX_KIND {
                let payload = match payload {
                    Payload::Window(offset) => self.window.get(offset, head.payload_len),
                    Payload::Unpacked(at) => self.unpacked.payload(at, head.payload_len),
                };
                return Ok(Some(LogRecord { start, end: self.at, kind: head.kind, tag: head.tag, payload }));
            }
        }
    }

    /// End of the last record read; after the last one, the end of the log.
    pub fn end_lsn(&self) -> Lsn {
        self.at
    }

    /// Where and why the log ends, after `next_record` said that it does.
    pub fn tail(&self) -> Option<&Tail> {
        self.tail.as_ref()
    }

    pub(crate) fn chain(&self) -> u32 {
        self.chain.unwrap_or_default()
    }

    /// Where the next frame is to be.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Where the group of the last frame begins.
    pub(crate) fn last_group(&self) -> Place {
        self.last.group
    }

    /// Whether the last frame is that of a clean close.
    pub(crate) fn ends_closed(&self) -> bool {
        self.last.closed
    }

    /// Lets a reader made by [`open_until`](Self::open_until) go on up to a later LSN.
    pub fn extend(&mut self, until: Lsn) {
        assert!(
            self.until.is_some_and(|old| old <= until),
            "only the end of a bounded reader can be moved, and not back"
        );
        self.until = Some(until);
        // What was read ahead may have been written since.
        self.window.bytes.clear();
    }

    /// Goes over one frame, of any kind but that which carries others; `None` at the end.
    fn step(&mut self) -> Result<Option<Passed>> {
        loop {
            if self.tail.is_some() || self.until.is_some_and(|until| self.at >= until) {
                return Ok(None);
            }
            if let Some((head, at)) = self.unpacked.next_frame() {
                return Ok(Some(self.pass(head, Payload::Unpacked(at))));
            }
            self.follow_segments()?;
            if self.segment.is_none() {
                return Ok(None);
            }
            let flaw = match self.probe(self.place)? {
                Ok(head) if self.chain.is_some_and(|chain| chain != head.chain) => Flaw::Chain,
                Ok(head) => match self.take(head)? {
                    Some(passed) => return Ok(Some(passed)),
                    None => continue,
                },
                Err(flaw) => flaw,
            };
            if !self.finds_new_segment()? && !self.finds_way_back()? {
                self.judge(flaw)?;
                return Ok(None);
            }
        }
    }

    /// Goes over a whole frame that follows the one before; `None` if it carries frames, which come next then.
    fn take(&mut self, head: Head) -> Result<Option<Passed>> {
        let payload = self.offset_of(self.place) + HEAD as u64;
        let is_packed = match head.is_packed() {
            Ok(true) => self.unpack(&head, payload).map(|()| true),
            other => other,
        };
        // It was written as it is, so it is not where the log ends, even if it makes no sense to us.
        let is_packed = is_packed.map_err(|flaw| self.damage(flaw.text()))?;
        self.place.0 += head.frame_len() as u64;
        self.chain = Some(head.crc);
        self.last = LastFrame { group: head.group_start, closed: head.kind == KIND_CLOSED };
        Ok((!is_packed).then(|| self.pass(head, Payload::Window(payload))))
    }

    fn unpack(&mut self, head: &Head, payload: u64) -> Result<(), Flaw> {
        let start = Lsn(head.tag);
        // What is written takes no more bytes than it has LSNs.
        let may_be = if self.lost { head.tag >= self.place.0 } else { start == self.at };
        if !may_be || head.tag > u64::MAX / 2 {
            return Err(Flaw::Packed);
        }
        self.unpacked.fill(self.window.get(payload, head.payload_len))?;
        (self.at, self.lost) = (start, false);
        Ok(())
    }

    fn pass(&mut self, head: Head, payload: Payload) -> Passed {
        let start = self.at;
        self.at.0 += head.frame_len() as u64;
        Passed { start, head, payload }
    }

    /// Damage at the current position.
    fn damage(&self, reason: impl Into<String>) -> Error {
        let segment = self.segment.as_ref().expect("a frame was looked for in it");
        segment.damage(self.at, self.place, reason)
    }

    /// Enters the next segment if the current one ends here.
    fn follow_segments(&mut self) -> Result<()> {
        if self.segment.is_some() && self.starts.get(1) == Some(&self.at) {
            let next = OpenSegment::open(&self.env, &self.dir, self.at, false)?;
            self.check_successor(&next)?;
            self.starts.pop_front();
            self.enter(next);
        }
        Ok(())
    }

    /// Whether the log, in its last known segment, went on to another one since the directory was listed.
    fn finds_new_segment(&mut self) -> Result<bool> {
        if self.until.is_none() || self.starts.len() != 1 {
            return Ok(false);
        }
        let current = self.starts[0];
        // The current one may have been given up: all of it was read.
        let later = list(&self.env, &self.dir)?.into_iter().filter(|&start| start > current);
        self.starts = std::iter::once(current).chain(later).collect();
        Ok(self.starts.len() > 1)
    }

    /// Where LSNs are lost, the segment ends behind the frame that the next segment continues.
    fn finds_way_back(&mut self) -> Result<bool> {
        if let (true, Some(&next)) = (self.lost, self.starts.get(1))
            && let Ok(next) = OpenSegment::open(&self.env, &self.dir, next, false)
            && self.chain == Some(next.header.chain)
        {
            self.check_successor(&next)?;
            self.starts.pop_front();
            self.enter(next);
            return Ok(true);
        }
        Ok(false)
    }

    fn check_successor(&self, next: &OpenSegment) -> Result<()> {
        let Some(segment) = &self.segment else { return Ok(()) };
        let damage = |reason: &str| Err(next.damage(self.at, next.first_place(), reason));
        if next.header.log_id != segment.header.log_id {
            return damage("the segment belongs to another log");
        }
        if self.chain.is_some_and(|chain| chain != next.header.chain) {
            return damage("the segment does not continue the one before it");
        }
        Ok(())
    }

    /// Decides what a bad frame at the current position means: an error if it is damage, the tail if not.
    fn judge(&mut self, flaw: Flaw) -> Result<()> {
        if let Some(&next) = self.starts.get(1) {
            if self.lacks_segment_before(next) {
                return Err(Error::MissingSegment { dir: self.dir.clone(), lsn: self.at, next: Some(next) });
            }
            let reason = format!("{}, but the log goes on with a segment at {next}", flaw.text());
            return Err(self.damage(reason));
        }
        if let Some(until) = self.until {
            let reason = format!("{}, but the log is known to be durable up to {until}", flaw.text());
            return Err(self.damage(reason));
        }
        if let Some(later) = self.find_frame(|head, place| head.group_start > place)? {
            let byte = self.offset_of(later);
            return Err(self.damage(format!("{}, but a later record at byte {byte} is whole", flaw.text())));
        }
        let Some(segment) = &self.segment else { return Ok(()) };
        if segment.is_cut() {
            let (has, had) = (HEADER_BLOCK + segment.len, HEADER_BLOCK + segment.header.room);
            let reason = format!(
                "{}, and the file was cut: it has {has} of {had} bytes, so that commits may be missing (if none can be, give it its length \
                 back: truncate -s {had})",
                flaw.text()
            );
            return Err(self.damage(reason));
        }
        let (path, offset) = (segment.path.clone(), self.offset_of(self.place));
        self.tail = Some(Tail { lsn: self.at, path, offset, reason: flaw.text() });
        Ok(())
    }

    /// Whether a segment between the current one and the one at `next` is not there.
    fn lacks_segment_before(&self, next: Lsn) -> bool {
        let Some(header) = self.segment.as_ref().map(|segment| segment.header) else { return false };
        match OpenSegment::open(&self.env, &self.dir, next, false).map(|next| next.header.previous) {
            Ok(Some(previous)) => previous != header.start,
            Ok(None) => next.0 - header.start.0 > header.room,
            // One thing at a time.
            Err(_) => false,
        }
    }

    /// The first whole frame of this segment behind the current position for which `wanted(head, position)` holds.
    fn find_frame(&mut self, wanted: impl Fn(&Head, Place) -> bool) -> Result<Option<Place>> {
        let Some(segment) = &self.segment else { return Ok(None) };
        let end = segment.header.start.0 + segment.len;
        let mut place = Place(self.place.0 + ALIGN as u64);
        while place.0 + HEAD as u64 <= end {
            let offset = self.offset_of(place);
            if !self.fill(offset, HEAD)? {
                break;
            }
            let ahead = self.window.from(offset);
            let Some(skip) = find_mark(ahead) else {
                // Only whole heads were looked at: the next one may begin in the last bytes.
                place.0 += ((ahead.len() - HEAD) / ALIGN * ALIGN + ALIGN) as u64;
                continue;
            };
            place.0 += skip as u64;
            if let Ok(head) = self.probe_head(place)?
                && wanted(&head, self.place)
                && self.probe(place)?.is_ok()
            {
                return Ok(Some(place));
            }
            place.0 += ALIGN as u64;
        }
        Ok(None)
    }

    /// After an error, goes to the next whole frame, or to the next segment that can be opened; false if there is none.
    pub(crate) fn skip_damage(&mut self) -> Result<bool> {
        self.chain = None;
        self.unpacked.clear();
        if let Some(place) = self.find_frame(|_, _| true)? {
            // True if nothing is compressed there; if anything is, the next such frame tells.
            self.at.0 += place.0 - self.place.0;
            self.place = place;
            self.lost = self.segment.as_ref().is_some_and(|segment| segment.header.may_pack());
            return Ok(true);
        }
        while self.starts.len() > 1 {
            self.starts.pop_front();
            if let Ok(segment) = OpenSegment::open(&self.env, &self.dir, self.starts[0], false) {
                self.enter(segment);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The frame at `place` of the current segment, if there is a whole one.
    fn probe(&mut self, place: Place) -> Result<Result<Head, Flaw>> {
        let head = match self.probe_head(place)? {
            Ok(head) => head,
            Err(flaw) => return Ok(Err(flaw)),
        };
        let body = self.offset_of(place) + HEAD as u64;
        let body_len = head.frame_len() - HEAD;
        if !self.fill(body - HEAD as u64, head.frame_len())? {
            return Ok(Err(Flaw::CutOff));
        }
        Ok(head.check_body(self.window.get(body, body_len)).map(|()| head))
    }

    fn probe_head(&mut self, place: Place) -> Result<Result<Head, Flaw>> {
        let offset = self.offset_of(place);
        if !self.fill(offset, HEAD)? {
            return Ok(Err(Flaw::CutOff));
        }
        let log_id = self.segment.as_ref().map_or(0, |segment| segment.header.log_id);
        let head =
            self.window.get(offset, HEAD).first_chunk().expect("the window was filled to a head's length");
        Ok(Head::decode(log_id, place, head))
    }

    fn offset_of(&self, place: Place) -> u64 {
        self.segment.as_ref().map_or(0, |segment| offset_of(segment.header.start, place))
    }

    /// Has `len` bytes from `offset` of the segment in the window; false if it ends before.
    fn fill(&mut self, offset: u64, len: usize) -> Result<bool> {
        if self.window.holds(offset, len) {
            return Ok(true);
        }
        let Some(segment) = &self.segment else { return Ok(false) };
        let end = HEADER_BLOCK + segment.len;
        let left = end.saturating_sub(offset);
        if left < len as u64 {
            return Ok(false);
        }
        let size = (len.max(READ_AHEAD) as u64).min(left) as usize;
        self.window.bytes.resize(size, 0);
        self.window.offset = offset;
        let read = segment.file.read_at(&mut self.window.bytes, offset);
        if let Err(source) = read {
            self.window.bytes.clear();
            return Err(Error::io("read", &segment.path)(source));
        }
        Ok(true)
    }
}

impl Window {
    fn holds(&self, offset: u64, len: usize) -> bool {
        offset >= self.offset && offset + len as u64 <= self.offset + self.bytes.len() as u64
    }

    /// All from `offset` on.
    fn from(&self, offset: u64) -> &[u8] {
        &self.bytes[(offset - self.offset) as usize..]
    }

    /// Bytes that `holds` said are there.
    fn get(&self, offset: u64, len: usize) -> &[u8] {
        &self.bytes[(offset - self.offset) as usize..][..len]
    }
}
