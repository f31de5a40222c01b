//! The log thread: takes the open group, seals it, writes it with one write, syncs, tells.
//!
//! It takes whatever is there as soon as the group before is done, so groups are as large as the disk is slow
//! and no timer is needed; only a group all of whose records may wait (`Durability::Group`) gathers until the first of
//! them is due. A group in which no record asks for a sync gets none for the time being. A group that contains the beginning of a segment is written in parts, one per
//! segment; each part is a group of its own in the file.

use std::sync::Arc;
use std::time::Duration;

use avocet_base::Lsn;

use crate::error::{Error, Result};
use crate::frame::{Record, Sealer};
use crate::pool::Spare;
use crate::segment::{OpenSegment, SegmentHeader, offset_of};
use crate::sync::MutexGuard;
use crate::writer::{Group, Intake, LAZY_BYTES, LAZY_SYNC, Shared};

pub(crate) struct LogThread {
    shared: Arc<Shared>,
    segment: OpenSegment,
    sealer: Sealer,
    /// End of what is written.
    at: Lsn,
    /// End of what is synced, and when the rest is to be, by the monotonic clock.
    synced: Lsn,
    sync_due: Duration,
    /// Whether the last frame says that the log was closed.
    closed: bool,
}

impl LogThread {
    pub fn new(shared: Arc<Shared>, segment: OpenSegment, sealer: Sealer, closed: bool) -> Self {
        let at = shared.durable.reached();
        Self { shared, segment, sealer, at, synced: at, sync_due: Duration::MAX, closed }
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
            group.bytes.clear();
            group.bytes.shrink_to(2 * self.shared.options.max_pending);
        }
        self.write_closed()
    }

    /// Waits for work. A group to be written is swapped for the empty `group`. `None` if there will be no more.
    fn take_work(&self, group: &mut Group) -> Option<Work> {
        let mut intake = self.shared.intake.lock();
        loop {
            let has_group = !intake.open.bytes.is_empty();
            let now = self.now_if_needed(&intake, has_group);
            if has_group && (intake.closing || intake.due <= now) {
                break;
            }
            if !has_group && intake.closing {
                return None;
            }
            if self.synced < self.at && ((intake.sync && !has_group) || self.sync_due <= now) {
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

    /// The time, if anything depends on it.
    fn now_if_needed(&self, intake: &Intake, has_group: bool) -> Duration {
        let gathers = has_group && intake.due != Duration::ZERO;
        match gathers || self.synced < self.at {
            true => self.shared.env.clock.monotonic(),
            false => Duration::ZERO,
        }
    }

    fn wait(&self, intake: &mut MutexGuard<'_, Intake>, has_group: bool, now: Duration) {
        let group_due = if has_group { intake.due } else { Duration::MAX };
        let sync_due = if self.synced < self.at { self.sync_due } else { Duration::MAX };
        match group_due.min(sync_due) {
            Duration::MAX => self.shared.work.wait(intake),
            due => drop(self.shared.work.wait_for(intake, due.saturating_sub(now))),
        }
    }

    fn write_group(&mut self, group: &mut Group, sync: bool) -> Result<()> {
        assert_eq!(group.start, self.at, "groups follow each other without a gap");
        self.closed = false;
        let mut from = 0;
        for roll in group.rolls.drain(..) {
            // A segment begins where everything before is durable.
            self.write_part(&mut group.bytes[from..roll.at], true)?;
            self.sync()?;
            self.begin_segment(roll.spare)?;
            from = roll.at;
        }
        self.write_part(&mut group.bytes[from..], sync)
    }

    /// Writes frames that lie within one segment, makes them durable if asked to, then tells everyone.
    fn write_part(&mut self, frames: &mut [u8], sync: bool) -> Result<()> {
        if frames.is_empty() {
            return Ok(());
        }
        let began = self.shared.env.clock.monotonic();
        let sealed = self.sealer.seal(frames, self.at, self.synced);
        let sync = sync || self.at.0 + frames.len() as u64 - self.synced.0 > LAZY_BYTES;
        self.write(frames)?;
        if sync {
            self.sync_file()?;
        }
        let took = self.shared.env.clock.monotonic().saturating_sub(began);
        self.shared.counters.group(sealed.records, frames.len() as u64, took);
        if sync {
            (self.shared.options.on_durable)(self.at, sealed.last_tag);
        } else {
            self.sync_due = self.sync_due.min(began.saturating_add(LAZY_SYNC));
            (self.shared.options.on_written)(self.at, sealed.last_tag);
        }
        self.shared.written.publish(self.at);
        self.shared.durable.publish(self.synced);
        Ok(())
    }

    fn write(&mut self, frames: &[u8]) -> Result<()> {
        let OpenSegment { header, path, file, len } = &self.segment;
        assert!(self.at.0 - header.start.0 + frames.len() as u64 <= *len, "groups stay within their segment");
        file.write_at(frames, offset_of(header.start, self.at)).map_err(Error::io("write", path))?;
        self.at.0 += frames.len() as u64;
        Ok(())
    }

    fn sync_file(&mut self) -> Result<()> {
        let OpenSegment { path, file, .. } = &self.segment;
        let clock = &self.shared.env.clock;
        let began = clock.monotonic();
        file.sync_data().map_err(Error::io("sync", path))?;
        self.shared.counters.sync(clock.monotonic().saturating_sub(began));
        self.synced = self.at;
        self.sync_due = Duration::MAX;
        Ok(())
    }

    /// Makes durable what was only written so far. Those who look at commits have seen it already.
    fn sync(&mut self) -> Result<()> {
        if self.synced < self.at {
            self.sync_file()?;
            self.shared.durable.publish(self.at);
        }
        Ok(())
    }

    /// Everything before is durable here, as a segment's name promises.
    fn begin_segment(&mut self, spare: Spare) -> Result<()> {
        let header = SegmentHeader {
            log_id: self.sealer.log_id,
            start: self.at,
            room: spare.room,
            chain: self.sealer.chain,
        };
        self.segment = spare.install(&self.shared.env, self.shared.dir(), header)?;
        self.shared.segments.push(self.at);
        Ok(())
    }

    /// Leaves a frame that proves, to whoever reads the log next, that all before it was durable. A log without
    /// it is as good, except that damage to its last group is then taken for a torn write.
    fn write_closed(&mut self) -> Result<()> {
        self.sync()?;
        let record = Record::closed();
        let left = self.segment.len - (self.at.0 - self.segment.header.start.0);
        if self.closed || self.at == Lsn(0) || left < record.frame_len() as u64 {
            return Ok(());
        }
        let mut frame = Vec::new();
        record.put(0, &mut frame);
        self.sealer.seal(&mut frame, self.at, self.at);
        self.write(&frame)?;
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
