//! What appenders, the log thread and the segment maker share: the open group, and how far the log has come.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use avocet_base::{Env, Lsn};

use crate::error::Error;
use crate::frame::{Record, set_tag};
use crate::options::LogOptions;
use crate::pool::{Segments, Spare, Spares};
use crate::segment::HEADER_BLOCK;
use crate::slots::Slots;
use crate::stats::Counters;
use crate::sync::{Condvar, Mutex};
use crate::wait::Progress;

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
    pub slots: Slots,
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
    pub fn starting_at(start: Lsn) -> Self {
        Self { start, ..Self::default() }
    }

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

    pub fn add(&mut self, prepared: Prepared<'_>, tag: u64) {
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
pub(crate) const GAP: usize = 64 << 10;

/// A record that is ready to be appended: see [`LogWriter::prepare`](crate::LogWriter::prepare).
pub struct Prepared<'a> {
    pub(crate) record: Record<'a>,
    /// The frame of a large one, after a gap.
    pub(crate) framed: Option<Vec<u8>>,
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
    pub fn wake_all(&self) {
        let _intake = self.intake.lock();
        self.work.notify_all();
        self.space.notify_all();
        self.make.notify_all();
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
}
