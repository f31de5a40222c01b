//! A file that a client sends for LOAD DATA LOCAL.
//!
//! ```text
//!  server: 0xFB, name ─▶        client: data, data, …, an empty packet ─▶        server: OK or an error ─▶
//! ```
//!
//! Data is handed on as it arrives, whatever the size of its packets; nothing of it is kept. A client sends all of its file
//! even if the statement has failed meanwhile: what is left is read and dropped before it is told.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use avocet_channel::SinkError;
use parking_lot::Mutex;
use tokio::io::ReadBuf;
use tokio::time::{Instant, Sleep};

use crate::protocol::{MAX_PAYLOAD, PacketBuf};
use crate::transport::Line;

const HEADER: usize = 4;
/// What is read of the socket at a time.
const READ_SIZE: usize = 64 * 1024;
/// The first byte of the packet that asks for a file.
const REQUEST: u8 = 0xFB;

/// Where a connection is in a file.
///
/// Invariant: the bytes `start..end` of `buf` were read and not yet handed on; there are none while no file is open.
#[derive(Default)]
pub struct LocalFile {
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the current packet that are to come.
    packet: usize,
    /// The current packet goes on in the next one.
    continues: bool,
    state: State,
    patience: Duration,
    /// When the client will have paused for too long.
    deadline: Option<Pin<Box<Sleep>>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    Open,
    /// Its last packet came; the reply is due.
    Ended,
}

impl LocalFile {
    /// Writes the packet that asks for a file.
    pub fn request(&mut self, out: &mut PacketBuf, name: &[u8], patience: Duration) {
        out.begin();
        out.put_u8(REQUEST);
        out.put(name);
        out.end();
        *self = Self { buf: vec![0; READ_SIZE], state: State::Open, patience, ..Self::default() };
    }

    /// Whether there is something to [`Self::close`].
    pub fn was_asked_for(&self) -> bool {
        self.state != State::Closed
    }

    /// Whether the client still sends.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Frees what a file took; returns what the client has sent behind it.
    pub fn close(&mut self) -> Vec<u8> {
        let Self { buf, start, end, .. } = std::mem::take(self);
        buf.get(start..end).unwrap_or_default().to_vec()
    }

    /// Appends some of the file to `to`; false at its end.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        line: &Mutex<Line>,
        out: &mut PacketBuf,
        to: &mut Vec<u8>,
    ) -> Poll<Result<bool, SinkError>> {
        loop {
            if self.state != State::Open {
                return Poll::Ready(Ok(false));
            }
            let held = &self.buf[self.start..self.end];
            if self.packet > 0 && !held.is_empty() {
                let count = held.len().min(self.packet);
                to.extend_from_slice(&held[..count]);
                self.start += count;
                self.packet -= count;
                return Poll::Ready(Ok(true));
            }
            if self.packet == 0 && held.len() >= HEADER {
                let header = [held[0], held[1], held[2], held[3]];
                self.begin_packet(header, out)?;
                continue;
            }
            ready!(self.poll_fill(cx, line, out))?;
        }
    }

    fn begin_packet(&mut self, header: [u8; HEADER], out: &mut PacketBuf) -> Result<(), SinkError> {
        if header[3] != out.sequence() {
            return Err(SinkError::OutOfOrder);
        }
        out.set_sequence(header[3].wrapping_add(1));
        self.start += HEADER;
        self.packet = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        // The empty packet behind a full one ends that, not the file.
        if self.packet == 0 && !self.continues {
            self.state = State::Ended;
        }
        self.continues = self.packet == MAX_PAYLOAD;
        Ok(())
    }

    /// Reads more, once the request for it has gone out.
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        line: &Mutex<Line>,
        out: &mut PacketBuf,
    ) -> Poll<Result<(), SinkError>> {
        let mut line = line.lock();
        if !out.is_empty() {
            ready!(line.poll_drain(cx, out)).map_err(|_| SinkError::Disconnected)?;
        }
        self.buf.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let mut free = ReadBuf::new(&mut self.buf[self.end..]);
        match line.poll_read(cx, &mut free, true) {
            Poll::Ready(Ok(())) if !free.filled().is_empty() => {
                self.end += free.filled().len();
                self.deadline = None;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(_) => Poll::Ready(Err(SinkError::Disconnected)),
            Poll::Pending => {
                let patience = self.patience;
                let later = || Box::pin(tokio::time::sleep_until(Instant::now() + patience));
                ready!(self.deadline.get_or_insert_with(later).as_mut().poll(cx));
                Poll::Ready(Err(SinkError::TimedOut))
            }
        }
    }
}
