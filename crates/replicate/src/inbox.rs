//! What waits to be applied: events of the stream and rows of copies, each bounded.
//!
//! ```text
//!  stream ── events, ≤ 32 MiB ──┐
//!                               ├─▶ the applying thread
//!  copies ── rows, ≤ 2 chunks ──┘
//! ```
//!
//! Whoever fills a queue waits until there is room.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::binlog::Begins;
use crate::copy::FromCopy;
use crate::error::ReplicateError;
use crate::state::{LogPlace, TableName};

/// Bytes of events that wait.
pub const EVENT_BYTES: usize = 32 << 20;
/// Chunks of copies that wait.
pub const CHUNKS: usize = 2;

/// What the stream brings.
#[derive(Debug)]
pub enum FromStream {
    /// A transaction begins, whose first event ends at this place.
    Transaction { begins: Begins, place: LogPlace },
    /// An event of a transaction, without its header, but for the time in that: seconds since 1970.
    Event { kind: u8, began: u32, body: Vec<u8> },
    /// All of the log before this place has been handed on.
    Reached(LogPlace),
    /// The stream has ended.
    Ended(ReplicateError),
}

impl FromStream {
    fn bytes(&self) -> usize {
        const FIXED: usize = 128;
        match self {
            Self::Event { body, .. } => FIXED + body.len(),
            _ => FIXED,
        }
    }
}

#[derive(Default)]
struct Queues {
    events: VecDeque<FromStream>,
    bytes: usize,
    copies: VecDeque<FromCopy>,
    /// Tables that somebody has found to differ.
    doubted: Vec<TableName>,
    /// Which stream's events are wanted.
    stream: u64,
    stopped: bool,
}

/// The queues.
#[derive(Default)]
pub struct Inbox {
    queues: Mutex<Queues>,
    /// Something has come.
    filled: Condvar,
    /// Something was taken.
    drained: Condvar,
}

/// Whoever was stopped, or whose stream is not wanted any more.
#[derive(Debug)]
pub struct Closed;

impl Inbox {
    /// Drops what an older stream has left; returns the number of the new one.
    pub fn begin_stream(&self) -> u64 {
        let mut queues = self.queues.lock();
        queues.events.clear();
        queues.bytes = 0;
        queues.stream += 1;
        self.drained.notify_all();
        queues.stream
    }

    pub fn stop(&self) {
        self.queues.lock().stopped = true;
        self.filled.notify_all();
        self.drained.notify_all();
    }

    /// Somebody has found that a table differs: it is to be copied again.
    pub fn doubt(&self, name: TableName) {
        self.queues.lock().doubted.push(name);
        self.filled.notify_one();
    }

    pub fn take_doubted(&self) -> Vec<TableName> {
        std::mem::take(&mut self.queues.lock().doubted)
    }

    pub fn is_stopped(&self) -> bool {
        self.queues.lock().stopped
    }

    /// Waits until it has been stopped, but no longer than this. Says whether it has.
    pub fn wait_for_stop(&self, at_most: Duration) -> bool {
        let deadline = Instant::now() + at_most;
        let mut queues = self.queues.lock();
        while !queues.stopped && !self.drained.wait_until(&mut queues, deadline).timed_out() {}
        queues.stopped
    }

    pub fn push_event(&self, stream: u64, event: FromStream) -> Result<(), Closed> {
        let mut queues = self.queues.lock();
        while queues.bytes > EVENT_BYTES && queues.stream == stream && !queues.stopped {
            self.drained.wait(&mut queues);
        }
        if queues.stopped || queues.stream != stream {
            return Err(Closed);
        }
        queues.bytes += event.bytes();
        queues.events.push_back(event);
        self.filled.notify_one();
        Ok(())
    }

    pub fn push_copy(&self, copy: FromCopy) -> Result<(), Closed> {
        let mut queues = self.queues.lock();
        while queues.copies.len() >= CHUNKS && !queues.stopped {
            self.drained.wait(&mut queues);
        }
        if queues.stopped {
            return Err(Closed);
        }
        queues.copies.push_back(copy);
        self.filled.notify_one();
        Ok(())
    }

    /// The next event, if one is there or comes until then; `None` also if something of a copy comes and is wanted.
    pub fn next_event(&self, deadline: Instant, wants_copies: bool) -> Option<FromStream> {
        let mut queues = self.queues.lock();
        while queues.events.is_empty() && (!wants_copies || queues.copies.is_empty()) && !queues.stopped {
            if self.filled.wait_until(&mut queues, deadline).timed_out() {
                break;
            }
        }
        let event = queues.events.pop_front()?;
        queues.bytes -= event.bytes();
        self.drained.notify_all();
        Some(event)
    }

    pub fn has_events(&self) -> bool {
        !self.queues.lock().events.is_empty()
    }

    pub fn next_copy(&self) -> Option<FromCopy> {
        let mut queues = self.queues.lock();
        let copy = queues.copies.pop_front()?;
        self.drained.notify_all();
        Some(copy)
    }
}
