//! The log thread: takes the open group, seals it, writes it with one write, syncs, tells.
//!
//! It takes whatever is there as soon as the group before is durable, so groups are as large as the disk is slow
//! and no timer is needed. A group that contains the beginning of a segment is written in parts, one per
//! segment; each part is a group of its own in the file.

use std::sync::Arc;

use avocet_base::Lsn;

use crate::error::{Error, Result};
use crate::frame::{Record, Sealer};
use crate::pool::Spare;
use crate::segment::{OpenSegment, SegmentHeader, offset_of};
use crate::writer::{Group, Shared};

pub(crate) struct LogThread {
    shared: Arc<Shared>,
    segment: OpenSegment,
    sealer: Sealer,
    /// End of what is written.
    at: Lsn,
    /// Whether the last frame says that the log was closed.
    closed: bool,
}

impl LogThread {
    pub fn new(shared: Arc<Shared>, segment: OpenSegment, sealer: Sealer, closed: bool) -> Self {
        let at = shared.durability.durable();
        Self { shared, segment, sealer, at, closed }
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
        while self.take_group(&mut group) {
            self.write_group(&mut group)?;
            group.bytes.clear();
            group.bytes.shrink_to(2 * self.shared.options.max_pending);
        }
        self.write_closed()
    }

    /// Swaps the open group for the empty `group`; false if there will be no more.
    fn take_group(&self, group: &mut Group) -> bool {
        let mut intake = self.shared.intake.lock();
        while intake.open.bytes.is_empty() {
            if intake.closing {
                return false;
            }
            self.shared.work.wait(&mut intake);
        }
        std::mem::swap(&mut intake.open, group);
        intake.open.start = intake.next;
        drop(intake);
        self.shared.space.notify_all();
        true
    }

    fn write_group(&mut self, group: &mut Group) -> Result<()> {
        assert_eq!(group.start, self.at, "groups follow each other without a gap");
        self.closed = false;
        let mut from = 0;
        for roll in group.rolls.drain(..) {
            self.write_part(&mut group.bytes[from..roll.at])?;
            self.begin_segment(roll.spare)?;
            from = roll.at;
        }
        self.write_part(&mut group.bytes[from..])
    }

    /// Makes frames durable that lie within one segment, then tells everyone.
    fn write_part(&mut self, frames: &mut [u8]) -> Result<()> {
        if frames.is_empty() {
            return Ok(());
        }
        let sealed = self.sealer.seal(frames, self.at);
        let began = self.shared.env.clock.monotonic();
        self.write_and_sync(frames)?;
        let took = self.shared.env.clock.monotonic().saturating_sub(began);
        self.shared.counters.group(sealed.records, frames.len() as u64, took);
        (self.shared.options.on_durable)(self.at, sealed.last_tag);
        self.shared.durability.publish(self.at);
        Ok(())
    }

    fn write_and_sync(&mut self, frames: &[u8]) -> Result<()> {
        let OpenSegment { header, path, file, len } = &self.segment;
        assert!(self.at.0 - header.start.0 + frames.len() as u64 <= *len, "groups stay within their segment");
        file.write_at(frames, offset_of(header.start, self.at)).map_err(Error::io("write", path))?;
        file.sync_data().map_err(Error::io("sync", path))?;
        self.at.0 += frames.len() as u64;
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
        let record = Record::closed();
        let left = self.segment.len - (self.at.0 - self.segment.header.start.0);
        if self.closed || self.at == Lsn(0) || left < record.frame_len() as u64 {
            return Ok(());
        }
        let mut frame = Vec::new();
        record.put(0, &mut frame);
        self.sealer.seal(&mut frame, self.at);
        self.write_and_sync(&frame)?;
        self.shared.durability.publish(self.at);
        Ok(())
    }
}

struct StopOnDrop(Arc<Shared>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        let reason = if std::thread::panicking() { Error::Panicked } else { Error::Closed };
        self.0.stop(reason);
    }
}
