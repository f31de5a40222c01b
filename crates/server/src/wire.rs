//! A connection's byte stream as packets.
//!
//! `Input` finds packets in what was read; replies are built in a `PacketBuf` and written at once. The socket is
//! behind a mutex, never held across an await, so that a running statement can write through its sink
//! while its driver watches the same socket for a client that hangs up.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::protocol::{MAX_PAYLOAD, PacketBuf};

const HEADER: usize = 4;
/// Small, because most connections are idle most of the time; it grows with what clients send.
const INPUT_SIZE: usize = 4 * 1024;
/// A read buffer that grew past this for a large packet is given back afterwards.
const KEEP_INPUT: usize = 256 * 1024;

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
}

/// TCP, with or without TLS, or a Unix socket.
pub enum Transport {
    Plain(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// Being upgraded, or the upgrade failed.
    Gone,
}

impl Transport {
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Self::Unix(unix) => Pin::new(unix).poll_read(cx, buf),
            Self::Tls(tls) => Pin::new(tls.as_mut()).poll_read(cx, buf),
            Self::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Self::Unix(unix) => Pin::new(unix).poll_write(cx, bytes),
            Self::Tls(tls) => Pin::new(tls.as_mut()).poll_write(cx, bytes),
            Self::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(_) | Self::Unix(_) | Self::Gone => Poll::Ready(Ok(())),
            Self::Tls(tls) => Pin::new(tls.as_mut()).poll_flush(cx),
        }
    }

    /// Ready once the client has closed its side; pending for ever if it sent more instead.
    pub fn poll_hangup(&self, cx: &mut Context<'_>) -> Poll<()> {
        let tcp = match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref().0,
            Self::Unix(unix) => return poll_unix_hangup(unix, cx),
            Self::Gone => return Poll::Ready(()),
        };
        let mut byte = [0];
        match ready!(tcp.poll_peek(cx, &mut ReadBuf::new(&mut byte))) {
            Ok(0) | Err(_) => Poll::Ready(()),
            Ok(_) => Poll::Pending,
        }
    }

    /// Writes from the buffer's front until it is empty and, under TLS, all has gone out.
    pub fn poll_drain(&mut self, cx: &mut Context<'_>, out: &mut PacketBuf) -> Poll<io::Result<()>> {
        let mut written = 0;
        let result = loop {
            if written == out.len() {
                break self.poll_flush(cx);
            }
            match self.poll_write(cx, &out.bytes()[written..]) {
                Poll::Ready(Ok(0)) => break Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => written += count,
                Poll::Ready(Err(e)) => break Poll::Ready(Err(e)),
                Poll::Pending => break Poll::Pending,
            }
        };
        if written > 0 {
            out.consume(written);
        }
        result
    }
}

/// As `poll_hangup`: a Unix socket is peeked at by hand.
fn poll_unix_hangup(unix: &UnixStream, cx: &mut Context<'_>) -> Poll<()> {
    loop {
        if ready!(unix.poll_read_ready(cx)).is_err() {
            return Poll::Ready(());
        }
        let peek = || SockRef::from(unix).peek(&mut [MaybeUninit::uninit()]);
        match unix.try_io(Interest::READABLE, peek) {
            Ok(0) => return Poll::Ready(()),
            Ok(_) => return Poll::Pending,
            // Readiness is taken back: the next look registers the waker.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Poll::Ready(()),
        }
    }
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
}

impl Input {
    fn new() -> Self {
        Self { buf: vec![0; INPUT_SIZE], start: 0, end: 0, exact: false }
    }

    pub fn slice(&self, packet: Range<usize>) -> &[u8] {
        &self.buf[packet]
    }

    /// Whether the client has sent more than the packets that were taken.
    pub fn has_more(&self) -> bool {
        self.start != self.end
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
        transport: &mut Transport,
        sequence: &mut u8,
        max: usize,
    ) -> Result<Range<usize>, WireError> {
        if self.start == self.end && self.buf.len() > KEEP_INPUT {
            *self = Self::new();
        }
        let mut joined = 0;
        loop {
            self.need(transport, joined + HEADER, joined == 0).await?;
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
            self.need(transport, joined + HEADER + len, false).await?;
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

    /// Reads until `count` bytes are on hand. The buffer grows with what arrives, not with what is announced.
    async fn need(
        &mut self,
        transport: &mut Transport,
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
                self.buf.resize(self.buf.len() * 2, 0);
            }
            let limit = if self.exact { self.buf.len().min(self.start + count) } else { self.buf.len() };
            let free = &mut self.buf[self.end..limit];
            let count = poll_fn(|cx| {
                let mut free = ReadBuf::new(&mut *free);
                ready!(transport.poll_read(cx, &mut free))?;
                Poll::Ready(io::Result::Ok(free.filled().len()))
            })
            .await?;
            if count == 0 {
                let clean = between_packets && self.start == self.end;
                return Err(if clean { WireError::Closed } else { io::ErrorKind::UnexpectedEof.into() });
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
    pub transport: Mutex<Transport>,
    pub input: Input,
    pub out: PacketBuf,
    /// Largest payload to accept.
    pub max_packet: usize,
}

impl Wire {
    pub fn new(transport: Transport, max_packet: usize) -> Self {
        Self { transport: Mutex::new(transport), input: Input::new(), out: PacketBuf::new(), max_packet }
    }

    /// Whether nobody else can read what is said: under TLS, or on a Unix socket.
    pub fn is_private(&self) -> bool {
        matches!(*self.transport.lock(), Transport::Tls(_) | Transport::Unix(_))
    }

    /// Writes what is buffered and reads the packet that answers it.
    pub async fn exchange(&mut self) -> Result<&[u8], WireError> {
        self.flush().await?;
        let packet = self.read(self.out.sequence()).await?;
        Ok(self.input.slice(packet))
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
        let packet = self.input.packet(self.transport.get_mut(), &mut next, self.max_packet).await;
        self.out.set_sequence(next);
        packet
    }

    /// Writes all that is buffered.
    pub async fn flush(&mut self) -> Result<(), WireError> {
        if self.out.is_empty() {
            return Ok(());
        }
        let transport = self.transport.get_mut();
        let out = &mut self.out;
        poll_fn(|cx| transport.poll_drain(cx, out)).await?;
        Ok(())
    }

    /// Reads and drops what the client still sends, until it closes or the time is over. Closing at once would
    /// reset the connection, and the client would never see the last error.
    pub async fn linger(&mut self, limit: Duration) {
        let transport = self.transport.get_mut();
        let mut dropped = vec![0; INPUT_SIZE];
        let drain = poll_fn(|cx| {
            loop {
                let mut buf = ReadBuf::new(&mut dropped);
                match ready!(transport.poll_read(cx, &mut buf)) {
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
        let transport = self.transport.get_mut();
        match std::mem::replace(transport, Transport::Gone) {
            Transport::Plain(tcp) => {
                *transport = Transport::Tls(Box::new(acceptor.accept(tcp).await?));
                Ok(())
            }
            other => {
                *transport = other;
                Err(WireError::OutOfOrder)
            }
        }
    }
}
