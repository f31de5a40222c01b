//! A connection's byte stream as packets.
//!
//! `Input` finds packets in what was read; replies are built in a `PacketBuf` and written at once. The socket is
//! behind a mutex, never held across an await, so that a running statement can write through its sink
//! while its driver watches the same socket for a client that hangs up.

use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use avocet_session::api::ClientMemory;
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use tokio::io::ReadBuf;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::account::{Account, KEPT};
use crate::protocol::{MAX_PAYLOAD, PacketBuf};
use crate::tls::TlsPeer;
use crate::transport::{Line, Transport};

const HEADER: usize = 4;
/// Small, because most connections are idle most of the time; it grows with what clients send.
const INPUT_SIZE: usize = 4 * 1024;
/// So much is read at a time of what is passed on.
const RELAYED: usize = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("connection lost: {0}")]
    Io(#[from] io::Error),
    /// Between packets: the client just went.
    #[error("the client closed the connection")]
    Closed,
    #[error("packets out of order")]
    OutOfOrder,
    #[error("packet larger than max_allowed_packet")]
    TooLarge,
    #[error("no memory for a packet")]
    OutOfMemory,
}

/// What was read, and where the packets in it are.
///
/// Invariant: `start <= end <= buf.len()`; the bytes between them were read and not yet taken.
pub struct Input {
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// Read not a byte past the packet asked for: behind a client's request for TLS follows, without a pause,
    /// its TLS handshake, which is not ours to read.
    exact: bool,
    /// Of `buf`.
    account: Account,
}

impl Input {
    fn new() -> Self {
        Self { buf: vec![0; INPUT_SIZE], start: 0, end: 0, exact: false, account: Account::default() }
    }

    /// Gives back what a large packet took, if nothing is left to be taken. Smaller buffers than `kept` stay.
    fn rest(&mut self, kept: usize) {
        if self.start == self.end && self.buf.len() > kept {
            self.buf = vec![0; INPUT_SIZE];
            (self.start, self.end) = (0, 0);
            self.account.shrink(self.buf.capacity());
        }
    }

    pub fn slice(&self, packet: Range<usize>) -> &[u8] {
        &self.buf[packet]
    }

    /// Whether the client has sent more than the packets that were taken.
    pub fn has_more(&self) -> bool {
        self.start != self.end
    }

    /// What was read and not taken.
    pub fn unread(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    /// Takes so many bytes of what was read.
    pub fn take(&mut self, count: usize) {
        self.start += count;
    }

    /// Reads more than there is. Where much comes, much is read at a time.
    async fn more(&mut self, line: &Mutex<Line>) -> Result<(), WireError> {
        if self.end == self.buf.len() && self.buf.len() < RELAYED {
            self.grow(RELAYED)?;
        }
        let count = self.end - self.start + 1;
        self.need(line, count, count == 1).await
    }

    /// Takes over what somebody else read of the stream, behind all that was read here before.
    pub fn push(&mut self, read: &[u8]) {
        self.buf.truncate(self.end);
        self.buf.extend_from_slice(read);
        self.end = self.buf.len();
    }

    /// The next packet's payload, joined from its parts. `sequence` is the id that it must have, and is left
    /// at the id after it.
    async fn packet(
        &mut self,
        line: &Mutex<Line>,
        sequence: &mut u8,
        max: usize,
    ) -> Result<Range<usize>, WireError> {
        self.rest(KEPT);
        let mut joined = 0;
        loop {
            self.need(line, joined + HEADER, joined == 0).await?;
            let at = self.start + joined;
            let header = &self.buf[at..at + HEADER];
            let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            if header[3] != *sequence {
                return Err(WireError::OutOfOrder);
            }
            *sequence = sequence.wrapping_add(1);
            if joined + len > max {
                return Err(WireError::TooLarge);
            }
            self.need(line, joined + HEADER + len, false).await?;
            if joined == 0 {
                // The payload starts behind its first header; later headers are cut out.
                self.start += HEADER;
            } else {
                let at = self.start + joined;
                self.buf.copy_within(at + HEADER..self.end, at);
                self.end -= HEADER;
            }
            joined += len;
            if len < MAX_PAYLOAD {
                let packet = self.start..self.start + joined;
                self.start = packet.end;
                return Ok(packet);
            }
        }
    }

    /// Doubles the buffer; where a large packet ends is known, and it need not be larger. What it grows by is counted first.
    fn grow(&mut self, end: usize) -> Result<(), WireError> {
        let doubled = self.buf.len() * 2;
        let len = if doubled > KEPT { doubled.min(end.max(self.buf.len() + INPUT_SIZE)) } else { doubled };
        if !self.account.grow(len) {
            return Err(WireError::OutOfMemory);
        }
        self.buf.reserve_exact(len - self.buf.len());
        self.buf.resize(len, 0);
        Ok(())
    }

    /// Reads until `count` bytes are on hand. The buffer grows with what arrives, not with what is announced.
    async fn need(
        &mut self,
        line: &Mutex<Line>,
        count: usize,
        between_packets: bool,
    ) -> Result<(), WireError> {
        while self.end - self.start < count {
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
            }
            if self.start + count > self.buf.len() && self.start > 0 {
                self.buf.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            if self.end == self.buf.len() {
                self.grow(self.start + count)?;
            }
            let limit = if self.exact { self.buf.len().min(self.start + count) } else { self.buf.len() };
            let free = &mut self.buf[self.end..limit];
            let is_between = between_packets && self.start == self.end;
            let count = poll_fn(|cx| {
                let mut free = ReadBuf::new(&mut *free);
                ready!(line.lock().poll_read(cx, &mut free, is_between))?;
                Poll::Ready(io::Result::Ok(free.filled().len()))
            })
            .await?;
            if count == 0 {
                return Err(if is_between { WireError::Closed } else { io::ErrorKind::UnexpectedEof.into() });
            }
            self.end += count;
        }
        Ok(())
    }
}

impl From<io::ErrorKind> for WireError {
    fn from(kind: io::ErrorKind) -> Self {
        Self::Io(kind.into())
    }
}

/// A connection's stream, its read buffer and its write buffer.
pub struct Wire {
    pub line: Arc<Mutex<Line>>,
    pub input: Input,
    pub out: PacketBuf,
    /// Of `out`.
    pub account: Account,
    /// Largest payload to accept or send: the session's `max_allowed_packet`.
    pub max_packet: usize,
}

impl Wire {
    pub fn new(transport: Transport, max_packet: usize) -> Self {
        Self {
            line: Arc::new(Mutex::new(Line::new(transport))),
            input: Input::new(),
            out: PacketBuf::new(),
            account: Account::default(),
            max_packet,
        }
    }

    /// From now on, what the buffers take is counted.
    pub fn count(&mut self, memory: Option<&Arc<dyn ClientMemory>>) {
        self.input.account = Account::new(memory.cloned());
        self.account = Account::new(memory.cloned());
    }

    /// Between two commands, buffers that grew are given back.
    pub fn rest(&mut self) {
        self.rest_above(KEPT);
    }

    /// As [`Self::rest`], of a connection that is about to pass on as much again: the next reply is read and written at once.
    pub fn rest_for_now(&mut self) {
        self.rest_above(2 * RELAYED);
    }

    fn rest_above(&mut self, kept: usize) {
        self.out.rest(kept);
        self.account.shrink(self.out.capacity());
        self.input.rest(kept);
    }

    /// Whether [`Self::rest`] would give something back.
    pub fn is_large(&self) -> bool {
        self.out.capacity() > KEPT || self.input.buf.len() > KEPT
    }

    /// Drops what a client has sent of a packet that is refused.
    pub fn forget_input(&mut self) {
        let input = &mut self.input;
        (input.start, input.end) = (0, 0);
        input.rest(KEPT);
    }

    /// Whether nobody else can read what is said: under TLS, or on a Unix socket.
    pub fn is_private(&self) -> bool {
        matches!(self.line.lock().transport, Transport::Tls(_) | Transport::Unix(_))
    }

    /// What TLS tells of the client; `None` without it.
    pub fn tls_peer(&self) -> Option<TlsPeer> {
        match &self.line.lock().transport {
            Transport::Tls(tls) => match &**tls {
                TlsStream::Server(client) => Some(TlsPeer::of(client.get_ref().1)),
                TlsStream::Client(_) => None,
            },
            Transport::Plain(_) | Transport::Unix(_) | Transport::Gone => None,
        }
    }

    /// Writes what is buffered and reads the packet that answers it.
    pub async fn exchange(&mut self) -> Result<&[u8], WireError> {
        self.flush().await?;
        self.next().await
    }

    /// Reads the next packet of the sequence.
    pub async fn next(&mut self) -> Result<&[u8], WireError> {
        let packet = self.read(self.out.sequence()).await?;
        Ok(self.input.slice(packet))
    }

    /// Reads bytes, whatever packets they belong to; they are left to be taken.
    pub async fn more(&mut self) -> Result<(), WireError> {
        self.input.more(&self.line).await
    }

    /// Returns when something of the next packet is there. Whoever is tired of waiting may drop it.
    ///
    /// # Errors
    /// As those of [`Self::command`], which finds them as well.
    pub async fn begun(&mut self) -> Result<(), WireError> {
        self.input.need(&self.line, 1, true).await
    }

    /// Like [`Self::exchange`], for the packet that may ask for TLS.
    pub async fn exchange_before_tls(&mut self) -> Result<&[u8], WireError> {
        self.flush().await?;
        self.input.exact = true;
        let packet = self.read(self.out.sequence()).await;
        self.input.exact = false;
        Ok(self.input.slice(packet?))
    }

    /// Reads a command: a packet that starts a new sequence.
    pub async fn command(&mut self) -> Result<Range<usize>, WireError> {
        self.read(0).await
    }

    async fn read(&mut self, sequence: u8) -> Result<Range<usize>, WireError> {
        let mut next = sequence;
        let packet = self.input.packet(&self.line, &mut next, self.max_packet).await;
        self.out.set_sequence(next);
        packet
    }

    /// Writes all that is buffered.
    pub async fn flush(&mut self) -> Result<(), WireError> {
        if self.out.is_empty() {
            return Ok(());
        }
        let (line, out) = (&self.line, &mut self.out);
        poll_fn(|cx| line.lock().poll_drain(cx, out)).await?;
        Ok(())
    }

    /// Reads and drops what the client still sends, until it closes or the time is over. Closing at once would
    /// reset the connection, and the client would never see the last error.
    pub async fn linger(&mut self, limit: Duration) {
        let line = &self.line;
        let mut dropped = vec![0; INPUT_SIZE];
        let drain = poll_fn(|cx| {
            loop {
                let mut buf = ReadBuf::new(&mut dropped);
                match ready!(line.lock().poll_read(cx, &mut buf, true)) {
                    Ok(()) if !buf.filled().is_empty() => {}
                    _ => return Poll::Ready(()),
                }
            }
        });
        let _ = tokio::time::timeout(limit, drain).await;
    }

    /// Continues under TLS. The request for it was read by [`Self::exchange_before_tls`], so nothing that came in the
    /// clear can be taken for a part of what follows.
    pub async fn upgrade(&mut self, acceptor: &TlsAcceptor) -> Result<(), WireError> {
        if self.input.start != self.input.end {
            return Err(WireError::OutOfOrder);
        }
        let transport = std::mem::replace(&mut self.line.lock().transport, Transport::Gone);
        match transport {
            Transport::Plain(tcp) => {
                let tls = acceptor.accept(tcp).await?;
                self.line.lock().transport = Transport::Tls(Box::new(tls.into()));
                Ok(())
            }
            other => {
                self.line.lock().transport = other;
                Err(WireError::OutOfOrder)
            }
        }
    }

    /// Continues under TLS, as the client of a server that has been asked for it.
    pub async fn upgrade_as_client(
        &mut self,
        connector: &TlsConnector,
        server: ServerName<'static>,
    ) -> Result<(), WireError> {
        if self.input.start != self.input.end {
            return Err(WireError::OutOfOrder);
        }
        let transport = std::mem::replace(&mut self.line.lock().transport, Transport::Gone);
        let Transport::Plain(tcp) = transport else { return Err(WireError::OutOfOrder) };
        let tls = connector.connect(server, tcp).await?;
        self.line.lock().transport = Transport::Tls(Box::new(tls.into()));
        Ok(())
    }
}
