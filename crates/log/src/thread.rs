//! The log thread: takes the open group, compresses it if that pays, seals it, writes it with one write, syncs, tells.
//!
//! It takes whatever is there as soon as the group before is done, so groups are as large as the disk is slow
//! and no timer is needed; only a group all of whose records may wait (`Durability::Group`) gathers until the first of
//! them is due. A group in which no record asks for a sync gets none for the time being. A group that contains the
//! beginning of a segment is written in parts, one per segment, and so is one with a large frame that was made ahead; each part
//! is a group of its own in the file.
//!
//! Appenders reckon a record's room in a segment as if nothing were compressed. What compression has saved they are given
//! back when the group is written, so that a segment's file is used to its end.

use std::sync::Arc;
use std::time::Duration;

use avocet_base::Lsn;

use crate::error::{Error, Result};
use crate::frame::{Content, Place, Record, Sealer};
use crate::intake::{Group, Intake, Shared};
use crate::options::{LAZY_BYTES, LAZY_SYNC};
use crate::packed::{Compression, Packer};
use crate::pool::Spare;
use crate::segment::{OpenSegment, SegmentHeader, offset_of};
use crate::sync::MutexGuard;

pub(crate) struct LogThread {
    shared: Arc<Shared>,
    end: End,
    /// Segments that were begun, counted as the appenders count theirs.
    segments: u64,
    sealer: Sealer,
    packer: Packer,
    /// End of what is synced, and when the rest is to be, by the monotonic clock.
    synced: Lsn,
    synced_place: Place,
    sync_due: Duration,
    /// Whether the last frame says that the log was closed.
    closed: bool,
}

/// The end of what is written.
struct End {
    segment: OpenSegment,
    lsn: Lsn,
    place: Place,
}

impl End {
    /// Bytes of the segment behind it.
    fn left(&self) -> u64 {
        self.segment.room_from(self.place)
    }

    /// Writes sealed frames, which are `len` bytes of the log.
    fn write(&mut self, frames: &[u8], len: u64) -> Result<()> {
        assert!(frames.len() as u64 <= self.left(), "groups stay within their segment");
        let OpenSegment { header, path, file, .. } = &self.segment;
        file.write_at(frames, offset_of(header.start, self.place)).map_err(Error::io("write", path))?;
        self.place.0 += frames.len() as u64;
        self.lsn.0 += len;
        Ok(())
    }
}

impl LogThread {
    pub fn new(
        shared: Arc<Shared>,
        segment: OpenSegment,
        place: Place,
        sealer: Sealer,
        closed: bool,
    ) -> Self {
        let lsn = shared.durable.reached();
        Self {
            packer: Packer::new(shared.options.compress_from),
            shared,
            end: End { segment, lsn, place },
            segments: 0,
            sealer,
            synced: lsn,
            synced_place: place,
            sync_due: Duration::MAX,
            closed,
        }
    }

    pub fn run(mut self) {
        // Also when the callback panics: whoever waits must not do so for ever.
        let _end = StopOnDrop(self.shared.clone());
        if let Err(cause) = self.write_groups() {
            self.shared.stop(Error::Stopped(Arc::new(cause)));
        }
    }

    fn write_groups(&mut self) -> Result<()> {
        let mut group = Group::default();
        while let Some(work) = self.take_work(&mut group) {
            match work {
                Work::Write { sync } => self.write_group(&mut group, sync)?,
                Work::Sync => self.sync()?,
            }
            let keep = 2 * self.shared.options.max_pending;
            group.clear(keep);
            self.packer.shrink(keep);
        }
        self.write_closed()
    }

    /// Waits for work. A group to be written is swapped for the empty `group`. `None` if there will be no more.
    fn take_work(&self, group: &mut Group) -> Option<Work> {
        let mut intake = self.shared.intake.lock();
        loop {
            let has_group = !intake.open.is_empty();
            let now = self.now_if_needed(&intake, has_group);
            if has_group && (intake.closing || intake.due <= now) {
                break;
            }
            if !has_group && intake.closing {
                return None;
            }
            if self.synced < self.end.lsn && ((intake.sync && !has_group) || self.sync_due <= now) {
                intake.sync &= has_group;
                return Some(Work::Sync);
            }
            self.wait(&mut intake, has_group, now);
        }
        std::mem::swap(&mut intake.open, group);
        intake.open.start = intake.next;
        intake.due = Duration::MAX;
        let sync = std::mem::take(&mut intake.sync);
        drop(intake);
        self.shared.space.notify_all();
        Some(Work::Write { sync })
    }

    /// Tells the appenders of room that was saved in the segment, unless they are in a later one already.
    fn give_back(&self, saved: u64) {
        if saved == 0 {
            return;
        }
        let mut intake = self.shared.intake.lock();
        if intake.segments == self.segments {
            intake.left += saved;
            self.shared.space.notify_all();
        }
    }

    /// The time, if anything depends on it.
    fn now_if_needed(&self, intake: &Intake, has_group: bool) -> Duration {
        let gathers = has_group && intake.due != Duration::ZERO;
        match gathers || self.synced < self.end.lsn {
            true => self.shared.env.clock.monotonic(),
            false => Duration::ZERO,
        }
    }

    fn wait(&self, intake: &mut MutexGuard<'_, Intake>, has_group: bool, now: Duration) {
        let group_due = if has_group { intake.due } else { Duration::MAX };
        let sync_due = if self.synced < self.end.lsn { self.sync_due } else { Duration::MAX };
        match group_due.min(sync_due) {
            Duration::MAX => self.shared.work.wait(intake),
            due => drop(self.shared.work.wait_for(intake, due.saturating_sub(now))),
        }
    }

    fn write_group(&mut self, group: &mut Group, sync: bool) -> Result<()> {
        assert_eq!(group.start, self.end.lsn, "groups follow each other without a gap");
        self.closed = false;
        let end = group.len();
        let (buffers, rolls) = group.frames();
        let mut rolls = rolls.peekable();
        let mut at = 0;
        for mut frames in buffers {
            while let Some(roll) = rolls.next_if(|roll| roll.at < at + frames.len()) {
                let (before, rest) = frames.split_at_mut(roll.at - at);
                // A segment begins where everything before is durable.
                self.write_part(before, true)?;
                self.sync()?;
                self.begin_segment(roll.spare)?;
                (frames, at) = (rest, roll.at);
            }
            at += frames.len();
            // Nor is anything written behind what is not durable yet.
            self.write_part(frames, sync || at < end)?;
        }
        Ok(())
    }

    /// Writes frames that lie within one segment, makes them durable if asked to, then tells everyone.
    fn write_part(&mut self, frames: &mut [u8], sync: bool) -> Result<()> {
        if frames.is_empty() {
            return Ok(());
        }
        let began = self.shared.env.clock.monotonic();
        let content = Content::of(frames);
        let len = frames.len() as u64;
        let written = match self.packs() {
            true => self.packer.pack(frames, self.end.lsn),
            false => frames,
        };
        self.sealer.seal(written, self.end.place, self.synced_place);
        let bytes = written.len() as u64;
        self.end.write(written, len)?;
        self.give_back(len - bytes);
        let sync = sync || self.end.lsn.0 - self.synced.0 > LAZY_BYTES;
        if sync {
            self.sync_file()?;
        }
        let took = self.shared.env.clock.monotonic().saturating_sub(began);
        self.shared.counters.group(content.records, len, bytes, took);
        if sync {
            (self.shared.options.on_durable)(self.end.lsn, content.last_tag);
        } else {
            self.sync_due = self.sync_due.min(began.saturating_add(LAZY_SYNC));
            (self.shared.options.on_written)(self.end.lsn, content.last_tag);
        }
        self.shared.written.publish(self.end.lsn);
        self.shared.durable.publish(self.synced);
        Ok(())
    }

    /// Whether compressed frames may be written where the log is.
    fn packs(&self) -> bool {
        self.shared.options.compression == Compression::Lz4 && self.end.segment.header.may_pack()
    }

    fn sync_file(&mut self) -> Result<()> {
        let OpenSegment { path, file, .. } = &self.end.segment;
        let clock = &self.shared.env.clock;
        let began = clock.monotonic();
        file.sync_data().map_err(Error::io("sync", path))?;
        self.shared.counters.sync(clock.monotonic().saturating_sub(began));
        (self.synced, self.synced_place) = (self.end.lsn, self.end.place);
        self.sync_due = Duration::MAX;
        Ok(())
    }

    /// Makes durable what was only written so far. Those who look at commits have seen it already.
    fn sync(&mut self) -> Result<()> {
        if self.synced < self.end.lsn {
            self.sync_file()?;
            self.shared.durable.publish(self.synced);
        }
        Ok(())
    }

    /// Everything before is durable here, as a segment's name promises.
    fn begin_segment(&mut self, spare: Spare) -> Result<()> {
        let header = SegmentHeader {
            log_id: self.sealer.log_id,
            start: self.end.lsn,
            room: spare.room,
            chain: self.sealer.chain,
            previous: Some(self.end.segment.header.start),
        };
        let segment = spare.install(&self.shared.env, self.shared.dir(), header)?;
        self.end.place = segment.first_place();
        self.end.segment = segment;
        self.synced_place = self.end.place;
        self.segments += 1;
        self.shared.segments.push(&self.end.segment);
        Ok(())
    }

    /// Leaves a frame that proves, to whoever reads the log next, that all before it was durable. A log without
    /// it is as good, except that damage to its last group is then taken for a torn write.
    fn write_closed(&mut self) -> Result<()> {
        self.sync()?;
        let record = Record::closed();
        if self.closed || self.end.lsn == Lsn(0) || self.end.left() < record.frame_len() as u64 {
            return Ok(());
        }
        let mut frame = Vec::new();
        record.put(0, &mut frame);
        self.sealer.seal(&mut frame, self.end.place, self.end.place);
        self.end.write(&frame, frame.len() as u64)?;
        self.sync()
    }
}

enum Work {
    /// The group that was taken.
    Write { sync: bool },
    /// What is written already.
    Sync,
}

struct StopOnDrop(Arc<Shared>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        let reason = if std::thread::panicking() { Error::Panicked } else { Error::Closed };
        self.0.stop(reason);
    }
}
