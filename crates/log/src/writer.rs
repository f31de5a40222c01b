//! The writer that the engine holds: appending, waiting, truncating, closing.
//!
//! `append_record` runs inside the engine's commit critical section, so its usual path is a lock that only
//! the log thread's swap contends for, two compares and a memcpy. It is here that the log is cut into
//! segments: a record that does not fit what is left of the segment takes a *spare*, a segment file whose space
//! is already allocated, along with it. So an append that was accepted cannot fail for want of space.

use std::sync::Arc;
use std::time::Duration;

use avocet_base::{Env, Lsn};

use crate::error::{Error, Result};
use crate::follower::LogFollower;
use crate::frame::{MAX_PAYLOAD, Record};
use crate::intake::{GAP, Group, Intake, Prepared, Roll, Shared};
use crate::maker::run_maker;
use crate::options::{Durability, LogOptions};
use crate::pool::Segments;
use crate::repair::{self, Resumed};
use crate::segment::HEADER_BLOCK;
use crate::slots::{RetentionSlot, Slots};
use crate::stats::{Counters, LogStats};
use crate::sync::{Builder, Condvar, JoinHandle, Mutex, MutexGuard};
use crate::thread::LogThread;
use crate::wait::{Durable, Progress};

/// Appends to the log. Share it by reference or `Arc`; all methods take `&self`.
pub struct LogWriter {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
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
                open: Group::starting_at(at),
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
            segments: Segments::new(segments, &segment),
            slots: Slots::new(),
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

    /// Gives up the segments that lie wholly before `lsn` and that no slot holds back; some are kept as spares. Nobody may read
    /// them any more.
    pub fn truncate_before(&self, lsn: Lsn) -> Result<()> {
        self.shared.truncate_before(lsn)
    }

    /// Holds the log back from `from` on, as long as that is at most `most` bytes: for readers that will come for it.
    ///
    /// # Errors
    /// `MissingSegment` if it has been given up already.
    pub fn retain(&self, from: Lsn, most: u64) -> Result<RetentionSlot> {
        RetentionSlot::new(&self.shared, from, most)
    }

    /// Reads the log from `from`, the start or end of a record, on, and goes on as more becomes durable. What has not been
    /// [acknowledged](LogFollower::acknowledge) is held back, as by [`retain`](Self::retain).
    ///
    /// # Errors
    /// As [`retain`](Self::retain) and [`LogReader`](crate::LogReader) have them; what is not durable yet ends early.
    pub fn follow(&self, from: Lsn, most: u64) -> Result<LogFollower> {
        LogFollower::open(&self.shared, self.retain(from, most)?)
    }

    /// Whether the paths of all segments still lead to them, and that of the last one to the file that is written. If not, nobody
    /// would find what is appended from now on, and durable is not what it says.
    ///
    /// # Errors
    /// `Io`.
    pub fn is_in_place(&self) -> Result<bool> {
        self.shared.segments.are_in_place(&self.shared.env, self.shared.dir())
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
