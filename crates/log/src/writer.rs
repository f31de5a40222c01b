//! The writer that the engine holds: appending, waiting, truncating, closing.
//!
//! `append_record` runs inside the engine's commit critical section, so its usual path is a lock that only
//! the log thread's swap contends for, two compares and a memcpy. It is here that the log is cut into
//! segments: a record that does not fit what is left of the segment takes a *spare*, a segment file whose space
//! is already allocated, along with it. So an append that was accepted cannot fail for want of space.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use avocet_base::{Env, Lsn};

use crate::error::{Error, Result};
use crate::frame::{MAX_PAYLOAD, Record, set_tag};
use crate::packed::Compression;
use crate::pool::{Segments, Spare, Spares, run_maker};
use crate::repair::{self, Resumed};
use crate::segment::HEADER_BLOCK;
use crate::stats::{Counters, LogStats};
use crate::sync::{Builder, Condvar, JoinHandle, Mutex, MutexGuard};
use crate::thread::LogThread;
use crate::wait::{Durable, Progress};

/// Called by the log thread with the new durable LSN and the tag of the last record before it, before
/// anyone who waits is told.
pub type OnDurable = Box<dyn Fn(Lsn, u64) + Send + Sync>;

/// What a record is to have survived before it counts as done, and how soon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// A power cut: written and synced, as soon as the log thread is free.
    #[default]
    Sync,
    /// A power cut too, but its group may gather so long before it is written: fewer syncs, later answers.
    Group(Duration),
    /// The end of the process: handed to the operating system. It is synced with the next record that wants it, or
    /// within [`LAZY_SYNC`]; a power cut loses what was not, but never a record without all that came after it.
    Os,
}

/// How long a group may gather that is asked for without a time.
const DEFAULT_GATHER: Duration = Duration::from_millis(1);

/// `sync`, `group`, `group:MS` (milliseconds) or `os`, in any case.
impl FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        match (lower.as_str(), lower.strip_prefix("group:").map(str::parse)) {
            ("sync", _) => Ok(Self::Sync),
            ("os", _) => Ok(Self::Os),
            ("group", _) => Ok(Self::Group(DEFAULT_GATHER)),
            (_, Some(Ok(ms))) => Ok(Self::Group(Duration::from_millis(ms))),
            _ => Err(format!("'{text}' is none of sync, group, group:MS and os")),
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sync => f.write_str("sync"),
            Self::Group(gather) => write!(f, "group:{}", gather.as_millis()),
            Self::Os => f.write_str("os"),
        }
    }
}

/// What was written without a sync is synced after this time at the latest, or when it has become so many bytes.
pub const LAZY_SYNC: Duration = Duration::from_secs(1);
pub(crate) const LAZY_BYTES: u64 = 32 << 20;

/// How a [`LogWriter`] works.
pub struct LogOptions {
    /// Directory of the segment files; created if missing.
    pub dir: PathBuf,
    /// Size of a segment file in bytes.
    pub segment_size: u64,
    /// Bytes of records that may wait for the group in flight; appenders block when there are more.
    /// Twice this is the writer's memory.
    pub max_pending: usize,
    /// Spare segments that [`LogWriter::truncate_before`] keeps instead of removing them.
    pub max_spares: usize,
    /// Whether new segments are filled with zeros rather than only allocated. An fdatasync then never has to
    /// write the file's extent map along with the data.
    pub prefill: bool,
    pub compression: Compression,
    /// Groups of fewer bytes are written as they are.
    pub compress_from: usize,
    /// Records of so many bytes are framed before they are appended: see [`LogWriter::prepare`].
    pub frame_ahead_from: usize,
    pub on_durable: OnDurable,
    /// The same for groups that are written and not synced, since no record in them asked for more.
    pub on_written: OnDurable,
}

impl LogOptions {
    /// The defaults: 64 MiB segments, 16 MiB pending, compressed from 2 KiB on, no callback.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            segment_size: 64 << 20,
            max_pending: 16 << 20,
            max_spares: 4,
            prefill: true,
            compression: Compression::default(),
            compress_from: 2 << 10,
            frame_ahead_from: 256 << 10,
            on_durable: Box::new(|_, _| ()),
            on_written: Box::new(|_, _| ()),
        }
    }

    pub fn on_durable(mut self, f: impl Fn(Lsn, u64) + Send + Sync + 'static) -> Self {
        self.on_durable = Box::new(f);
        self
    }

    pub fn on_written(mut self, f: impl Fn(Lsn, u64) + Send + Sync + 'static) -> Self {
        self.on_written = Box::new(f);
        self
    }
}

/// Appends to the log. Share it by reference or `Arc`; all methods take `&self`.
pub struct LogWriter {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What appenders, the log thread and the segment maker share.
pub(crate) struct Shared {
    pub env: Env,
    pub options: LogOptions,
    pub intake: Mutex<Intake>,
    /// Wakes the log thread: there is a group to write, or the writer closes.
    pub work: Condvar,
    /// Wakes appenders: the open group was taken, a spare came, or the writer stopped.
    pub space: Condvar,
    /// Wakes the segment maker.
    pub make: Condvar,
    pub segments: Segments,
    pub written: Arc<Progress>,
    pub durable: Arc<Progress>,
    pub counters: Counters,
}

/// The appenders' side.
pub(crate) struct Intake {
    pub open: Group,
    /// End of all accepted records.
    pub next: Lsn,
    /// Bytes left for frames in the segment that `next` lies in, if none is compressed from here on.
    pub left: u64,
    /// Segments that were begun since the log was opened.
    pub segments: u64,
    pub spares: Spares,
    /// When the open group is to be written, by the monotonic clock; zero for at once.
    pub due: Duration,
    /// Somebody wants all that was accepted synced.
    pub sync: bool,
    pub closing: bool,
}

/// Frames that are written together.
#[derive(Default)]
pub(crate) struct Group {
    pub start: Lsn,
    bytes: Vec<u8>,
    /// Where in `bytes` the frames begin.
    from: usize,
    /// Where in the frames a new segment begins, ascending.
    pub rolls: Vec<Roll>,
}

impl Group {
    pub fn frames(&mut self) -> (&mut [u8], std::vec::Drain<'_, Roll>) {
        (&mut self.bytes[self.from..], self.rolls.drain(..))
    }

    pub fn len(&self) -> usize {
        self.bytes.len() - self.from
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets what is written; keeps so much memory at most.
    pub fn clear(&mut self, keep: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(keep);
        self.from = 0;
    }

    fn add(&mut self, prepared: Prepared<'_>, tag: u64) {
        match prepared.framed {
            Some(mut framed) if self.len() <= GAP => {
                // What came before is the less to copy.
                let from = GAP - self.len();
                framed[from..GAP].copy_from_slice(&self.bytes[self.from..]);
                set_tag(&mut framed[GAP..], tag);
                (self.bytes, self.from) = (framed, from);
            }
            _ => prepared.record.put(tag, &mut self.bytes),
        }
    }
}

/// Room before such a frame for the frames that came before it.
const GAP: usize = 64 << 10;

/// A record that is ready to be appended: see [`LogWriter::prepare`].
pub struct Prepared<'a> {
    record: Record<'a>,
    /// The frame of a large one, after a gap.
    framed: Option<Vec<u8>>,
}

impl<'a> From<Record<'a>> for Prepared<'a> {
    fn from(record: Record<'a>) -> Self {
        Self { record, framed: None }
    }
}

pub(crate) struct Roll {
    pub at: usize,
    pub spare: Spare,
}

impl Shared {
    /// Bytes for frames in a segment of the usual size.
    pub fn room(&self) -> u64 {
        self.options.segment_size - HEADER_BLOCK
    }

    pub fn dir(&self) -> &Path {
        &self.options.dir
    }

    /// Ends all writing and waiting.
    pub fn stop(&self, reason: Error) {
        self.durable.fail(reason.clone());
        self.written.fail(reason);
        self.wake_all();
    }

    /// Wakes whoever waits on a condition variable; under the lock, so that nobody is between look and wait.
    fn wake_all(&self) {
        let _intake = self.intake.lock();
        self.work.notify_all();
        self.space.notify_all();
        self.make.notify_all();
    }
}

impl LogWriter {
    /// Opens the log for appending at `at`, which must be where [`LogReader`](crate::LogReader) found its
    /// end, or anywhere if the directory holds no log yet. What follows `at` (remains of a torn group) is
    /// erased, and all before it is durable, when this returns.
    ///
    /// # Errors
    /// [`Error::NotAtEnd`] if `at` is not the end; `Corrupt` for a damaged last segment; `NoSpace`; `Io`.
    pub fn open(env: Env, options: LogOptions, at: Lsn) -> Result<Self> {
        assert!(options.segment_size >= 2 * HEADER_BLOCK, "a segment must have room for records");
        assert!(options.max_pending <= 1 << 31, "frames say in 32 bits how far their group's start is");
        let Resumed { segment, place, sealer, closed, segments, spares } =
            repair::resume(&env, &options, at)?;
        let left = segment.room_from(place);
        let counters = Counters::default();
        let progress = || Arc::new(Progress::new(at, env.clock.clone(), counters.wait_us.clone()));
        let (written, durable) = (progress(), progress());
        let shared = Arc::new(Shared {
            env,
            intake: Mutex::new(Intake {
                open: Group { start: at, ..Group::default() },
                next: at,
                left,
                segments: 0,
                spares,
                due: Duration::MAX,
                sync: false,
                closing: false,
            }),
            work: Condvar::new(),
            space: Condvar::new(),
            make: Condvar::new(),
            segments: Segments::new(segments),
            written,
            durable,
            counters,
            options,
        });
        let log_thread = LogThread::new(shared.clone(), segment, place, sealer, closed);
        let maker = shared.clone();
        let writer = Self { shared, threads: Mutex::new(Vec::new()) };
        writer.spawn("avocet-log", move || log_thread.run())?;
        writer.spawn("avocet-log-segments", move || run_maker(&maker))?;
        Ok(writer)
    }

    fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
        let started = Builder::new().name(name.into()).spawn(body);
        self.threads.lock().push(started.map_err(Error::io("start a thread for", self.shared.dir()))?);
        Ok(())
    }

    /// Appends a record and returns the LSN of its end: it is durable when [`durable_lsn`](Self::durable_lsn)
    /// reaches that. Inside a critical section use [`append_record`](Self::append_record).
    ///
    /// # Panics
    /// If `kind` is over [`MAX_KIND`](crate::MAX_KIND).
    pub fn append(&self, kind: u8, tag: u64, payload: &[u8]) -> Result<Lsn> {
        self.append_record(&Record::new(kind, payload), tag)
    }

    /// Appends a record made beforehand, to be synced at once.
    pub fn append_record(&self, record: &Record<'_>, tag: u64) -> Result<Lsn> {
        self.append_for(record, tag, Durability::Sync)
    }

    /// Appends a record made beforehand and returns the LSN of its end. Blocks while more than
    /// `max_pending` bytes wait for the disk, or while a segment is being allocated.
    ///
    /// # Errors
    /// With `NoSpace` or `Io` not inside [`Error::Stopped`], the record was refused and the writer goes on.
    pub fn append_for(&self, record: &Record<'_>, tag: u64, durability: Durability) -> Result<Lsn> {
        self.append_with(self.prepare(*record)?, tag, durability, || {})
    }

    /// Frames a large record, and waits until it will find room in a segment: for those who will append it where others
    /// wait for them.
    ///
    /// # Errors
    /// As appending has them.
    pub fn prepare<'a>(&self, record: Record<'a>) -> Result<Prepared<'a>> {
        let len = record.frame_len();
        if len < self.shared.options.frame_ahead_from || record.payload_len() > MAX_PAYLOAD {
            return Ok(record.into());
        }
        let mut framed = Vec::with_capacity(GAP + len);
        framed.resize(GAP, 0);
        record.put(0, &mut framed);
        self.wait_for_room(&mut self.shared.intake.lock(), len)?;
        Ok(Prepared { record, framed: Some(framed) })
    }

    /// Like [`append_for`](Self::append_for); calls `accepted` when the record can no longer be refused and nobody
    /// can have seen it yet. It must be brief: all appends wait for it.
    pub fn append_with(
        &self,
        prepared: Prepared<'_>,
        tag: u64,
        durability: Durability,
        accepted: impl FnOnce(),
    ) -> Result<Lsn> {
        let record = &prepared.record;
        if record.payload_len() > MAX_PAYLOAD {
            return Err(Error::TooLarge { len: record.payload_len(), limit: MAX_PAYLOAD });
        }
        let len = record.frame_len();
        let mut intake = self.shared.intake.lock();
        self.check_alive(&intake)?;
        if len as u64 > intake.left || !self.is_group_open(&intake, len) {
            self.make_room(&mut intake, len)?;
        }
        accepted();
        let due = match durability {
            Durability::Sync | Durability::Os => Duration::ZERO,
            Durability::Group(gather) => self.shared.env.clock.monotonic().saturating_add(gather),
        };
        let wakes = intake.open.is_empty() || due < intake.due;
        intake.due = intake.due.min(due);
        intake.sync |= durability != Durability::Os;
        intake.open.add(prepared, tag);
        intake.left -= len as u64;
        intake.next.0 += len as u64;
        let end = intake.next;
        drop(intake);
        if wakes {
            self.shared.work.notify_one();
        }
        Ok(end)
    }

    fn check_alive(&self, intake: &Intake) -> Result<()> {
        match self.shared.durable.failure() {
            Some(reason) => Err(reason.clone()),
            None if intake.closing => Err(Error::Closed),
            None => Ok(()),
        }
    }

    /// Whether the open group takes `len` bytes more. Any takes a record that is larger than a group is to be, if it is not full
    /// itself: that waits for nobody.
    fn is_group_open(&self, intake: &Intake, len: usize) -> bool {
        let most = self.shared.options.max_pending;
        intake.open.is_empty() || intake.open.len() + len.min(most / 2) <= most
    }

    /// Waits until `len` bytes fit the open group, and what is left of the segment or a spare.
    fn wait_for_room(&self, intake: &mut MutexGuard<'_, Intake>, len: usize) -> Result<()> {
        let mut asked = false;
        loop {
            self.check_alive(intake)?;
            if !self.is_group_open(intake, len) {
                self.hurry(intake);
                self.shared.space.wait(intake);
                continue;
            }
            if len as u64 <= intake.left || intake.spares.fits(len as u64) {
                return Ok(());
            }
            if let Some(reason) = intake.spares.ask(len as u64, !asked) {
                return Err(reason);
            }
            asked = true;
            self.shared.make.notify_one();
            self.shared.space.wait(intake);
        }
    }

    /// The same, and takes the spare if the segment is full.
    fn make_room(&self, intake: &mut MutexGuard<'_, Intake>, len: usize) -> Result<()> {
        self.wait_for_room(intake, len)?;
        if len as u64 > intake.left {
            let spare = intake.spares.take(len as u64).expect("one that fits was waited for");
            intake.left = spare.room;
            intake.segments += 1;
            let at = intake.open.len();
            intake.open.rolls.push(Roll { at, spare });
            self.shared.make.notify_one();
        }
        Ok(())
    }

    /// End of all accepted records.
    pub fn appended_lsn(&self) -> Lsn {
        self.shared.intake.lock().next
    }

    /// The open group is written as soon as the log thread is free.
    fn hurry(&self, intake: &mut Intake) {
        intake.due = Duration::ZERO;
        self.shared.work.notify_one();
    }

    /// All before this is on disk.
    pub fn durable_lsn(&self) -> Lsn {
        self.shared.durable.reached()
    }

    /// All before this is with the operating system.
    pub fn written_lsn(&self) -> Lsn {
        self.shared.written.reached()
    }

    /// Blocks until all before `lsn` is durable, which somebody must have asked for.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        self.shared.durable.wait(lsn)
    }

    /// Blocks until all before `lsn` is written.
    pub fn wait_written(&self, lsn: Lsn) -> Result<()> {
        self.shared.written.wait(lsn)
    }

    /// A future that is ready when all before `lsn` is durable, which somebody must have asked for.
    pub fn durable(&self, lsn: Lsn) -> Durable {
        Durable { progress: self.shared.durable.clone(), lsn, left: None }
    }

    /// A future that is ready when all before `lsn` is written.
    pub fn written(&self, lsn: Lsn) -> Durable {
        Durable { progress: self.shared.written.clone(), lsn, left: None }
    }

    /// Asks for all that was appended to be made durable, now; the end of it.
    pub fn ask_for_sync(&self) -> Lsn {
        let mut intake = self.shared.intake.lock();
        if self.durable_lsn() < intake.next {
            intake.sync = true;
            self.hurry(&mut intake);
        }
        intake.next
    }

    /// Waits until all that was appended is durable.
    pub fn flush(&self) -> Result<()> {
        self.wait_durable(self.ask_for_sync())
    }

    /// Gives up the segments that lie wholly before `lsn`; some are kept as spares. Nobody may read them any more.
    pub fn truncate_before(&self, lsn: Lsn) -> Result<()> {
        self.shared.truncate_before(lsn)
    }

    /// Start of the oldest segment.
    pub fn first_lsn(&self) -> Lsn {
        self.shared.segments.first()
    }

    pub fn stats(&self) -> LogStats {
        self.shared.counters.load()
    }

    /// Why the writer stopped, if it did.
    pub fn failure(&self) -> Option<Error> {
        self.shared.durable.failure().filter(|reason| !matches!(reason, Error::Closed)).cloned()
    }

    /// Writes out everything and ends the threads; later appends get [`Error::Closed`].
    ///
    /// # Errors
    /// Why the writer stopped, if it did.
    pub fn close(&self) -> Result<()> {
        self.shared.intake.lock().closing = true;
        self.shared.wake_all();
        for thread in self.threads.lock().drain(..) {
            let _ = thread.join();
        }
        self.failure().map_or(Ok(()), Err)
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_framed_ahead_is_as_what_is_copied() {
        for before in [0, 1, 3, GAP / 1000 - 1, GAP / 1000 + 1] {
            let payload = vec![7; 10_000];
            let record = Record::new(3, &payload);
            let (mut copied, mut ahead) = (Group::default(), Group::default());
            for _ in 0..before {
                let small = vec![1; 900];
                copied.add(Record::new(1, &small).into(), 5);
                ahead.add(Record::new(1, &small).into(), 5);
            }
            copied.add(record.into(), 77);
            let mut framed = vec![0; GAP];
            record.put(0, &mut framed);
            ahead.add(Prepared { record, framed: Some(framed) }, 77);
            for group in [&mut copied, &mut ahead] {
                group.add(Record::new(2, b"after").into(), 78);
            }
            assert_eq!(copied.len(), ahead.len());
            assert!(copied.frames().0 == ahead.frames().0, "{before} before");
            ahead.clear(1000);
            assert!(ahead.is_empty() && ahead.frames().0.is_empty());
        }
    }

    #[test]
    fn durabilities_are_read_and_shown() {
        for text in ["sync", "os", "group:1", "group:250"] {
            assert_eq!(text.parse::<Durability>().expect("valid").to_string(), text);
        }
        assert_eq!("GROUP".parse::<Durability>().expect("valid").to_string(), "group:1");
        assert!(
            ["", "group:", "group:x", "group:-1", "fsync"].iter().all(|t| t.parse::<Durability>().is_err())
        );
    }
}
