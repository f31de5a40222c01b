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

/// Frames that are written together, in one buffer or several: a large frame that was made ahead is taken as it is, since
/// whoever appends it holds up all others.
#[derive(Default)]
pub(crate) struct Group {
    pub start: Lsn,
    /// The buffers before the last one, and what they have in all.
    full: Vec<Buffer>,
    full_len: usize,
    last: Buffer,
    /// Where in the frames a new segment begins, ascending.
    pub rolls: Vec<Roll>,
}

/// Whole frames.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// Where in `bytes` the frames begin.
    from: usize,
}

impl Buffer {
    fn len(&self) -> usize {
        self.bytes.len() - self.from
    }
}

/// A buffer of more bytes does not grow, which would copy it.
const MOST_GROWN: usize = 4 << 20;

impl Group {
    pub fn starting_at(start: Lsn) -> Self {
        Self { start, ..Self::default() }
    }

    /// The frames, buffer by buffer.
    pub fn frames(&mut self) -> (impl Iterator<Item = &mut [u8]>, std::vec::Drain<'_, Roll>) {
        let all = self.full.iter_mut().chain(std::iter::once(&mut self.last));
        (all.map(|buffer| &mut buffer.bytes[buffer.from..]), self.rolls.drain(..))
    }

    pub fn len(&self) -> usize {
        self.full_len + self.last.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets what is written; keeps so much memory at most.
    pub fn clear(&mut self, keep: usize) {
        self.full.clear();
        self.full_len = 0;
        self.last.bytes.clear();
        self.last.bytes.shrink_to(keep);
        self.last.from = 0;
    }

    /// What comes next goes to another buffer.
    fn begin_buffer(&mut self, buffer: Buffer) {
        self.full_len += self.last.len();
        self.full.push(std::mem::replace(&mut self.last, buffer));
    }

    pub fn add(&mut self, prepared: Prepared<'_>, tag: u64) {
        match prepared.framed {
            Some(mut framed) => {
                set_tag(&mut framed[GAP..], tag);
                if self.last.len() > GAP {
                    self.begin_buffer(Buffer { bytes: framed, from: GAP });
                    return;
                }
                // What came before is the less to copy.
                let from = GAP - self.last.len();
                framed[from..GAP].copy_from_slice(&self.last.bytes[self.last.from..]);
                self.last = Buffer { bytes: framed, from };
            }
            None => {
                let Buffer { bytes, .. } = &self.last;
                let grows = bytes.capacity() - bytes.len() < prepared.record.frame_len();
                if grows && bytes.len() > MOST_GROWN {
                    self.begin_buffer(Buffer::default());
                }
                prepared.record.put(tag, &mut self.last.bytes);
            }
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
            let all = |group: &mut Group| {
                group.frames().0.fold(Vec::new(), |all, frames| [&all, &*frames].concat())
            };
            assert!(all(&mut copied) == all(&mut ahead), "{before} before");
            ahead.clear(1000);
            assert!(ahead.is_empty() && all(&mut ahead).is_empty());
        }
    }

    /// Under the lock that all appends wait for, nothing of it is copied, whatever came before it and whatever follows.
    #[test]
    fn a_large_frame_that_was_made_ahead_stays_where_it_is() {
        let payload = vec![7; 3 * MOST_GROWN];
        let record = Record::new(3, &payload);
        for before in [0, 1, 2 * GAP / 1000, 8 * GAP / 1000] {
            let mut group = Group::default();
            let small = vec![1; 900];
            (0..before).for_each(|_| group.add(Record::new(1, &small).into(), 5));
            let mut framed = vec![0; GAP];
            record.put(0, &mut framed);
            let place = framed[GAP..].as_ptr();
            group.add(Prepared { record, framed: Some(framed) }, 77);
            (0..10).for_each(|_| group.add(Record::new(1, &small).into(), 78));
            let holds = |frames: &mut [u8]| frames.as_ptr_range().contains(&place);
            assert!(group.frames().0.any(holds), "{before} before");
        }
    }
}
