//! A client's stream, and since when it stands still.

use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsStream;

use crate::protocol::PacketBuf;

/// TCP, with or without TLS, or a Unix socket. Clients come by all of them, and the source behind a front is reached by TCP.
pub enum Transport {
    Plain(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// Being upgraded, or the upgrade failed.
    Gone,
}

impl Transport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
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

    /// Whether the client has closed its side, at once and from any thread, whatever it has sent before that.
    pub fn has_hung_up(&self) -> bool {
        let socket = match self {
            Self::Plain(tcp) => SockRef::from(tcp),
            Self::Tls(tls) => SockRef::from(tls.get_ref().0),
            Self::Unix(unix) => SockRef::from(unix),
            Self::Gone => return true,
        };
        match socket.peek(&mut [MaybeUninit::uninit()]) {
            Ok(0) => true,
            Ok(_) => self.is_read_closed(),
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// Whether nothing comes after what is there to be read, as far as the poller was told.
    fn is_read_closed(&self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let ready = match self {
            Self::Plain(tcp) => pin!(tcp.ready(Interest::READABLE)).poll(&mut cx),
            Self::Tls(tls) => pin!(tls.get_ref().0.ready(Interest::READABLE)).poll(&mut cx),
            Self::Unix(unix) => pin!(unix.ready(Interest::READABLE)).poll(&mut cx),
            Self::Gone => return true,
        };
        matches!(ready, Poll::Ready(Ok(ready)) if ready.is_read_closed())
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

/// What a connection waits for its client to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// To send the rest of a packet.
    Reading,
    /// To take what was sent.
    Writing,
}

/// Bytes that came and went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    pub received: u64,
    pub sent: u64,
}

impl Traffic {
    pub fn add(&mut self, other: Self) {
        self.received += other.received;
        self.sent += other.sent;
    }
}

/// A stream, and since when it stands still. One task uses it; the registry looks at it from time to time.
pub struct Line {
    pub transport: Transport,
    pub traffic: Traffic,
    stalled: Option<(Stall, Instant)>,
}

impl Line {
    pub fn new(transport: Transport) -> Self {
        Self { transport, traffic: Traffic::default(), stalled: None }
    }

    /// What the client has not done for how long.
    pub fn stalled(&self) -> Option<(Stall, Duration)> {
        self.stalled.map(|(stall, since)| (stall, since.elapsed()))
    }

    fn note(&mut self, stall: Stall, moved: bool, is_pending: bool) {
        if moved || !is_pending {
            self.stalled = None;
        }
        if is_pending {
            self.stalled.get_or_insert_with(|| (stall, Instant::now()));
        }
    }

    /// Reads; it stands still if nothing comes in the middle of a packet.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        between_packets: bool,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = self.transport.poll_read(cx, buf);
        self.traffic.received += (buf.filled().len() - before) as u64;
        if !between_packets || self.stalled.is_some() {
            self.note(Stall::Reading, false, polled.is_pending() && !between_packets);
        }
        polled
    }

    /// Writes from the buffer's front until it is empty and, under TLS, all has gone out: to be waited for.
    pub fn poll_drain(&mut self, cx: &mut Context<'_>, out: &mut PacketBuf) -> Poll<io::Result<()>> {
        let before = out.len();
        let polled = self.drain(cx, out);
        if polled.is_pending() || self.stalled.is_some() {
            self.note(Stall::Writing, out.len() < before, polled.is_pending());
        }
        polled
    }

    fn drain(&mut self, cx: &mut Context<'_>, out: &mut PacketBuf) -> Poll<io::Result<()>> {
        let mut written = 0;
        let result = loop {
            if written == out.len() {
                break self.transport.poll_flush(cx);
            }
            match self.transport.poll_write(cx, &out.bytes()[written..]) {
                Poll::Ready(Ok(0)) => break Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => written += count,
                Poll::Ready(Err(e)) => break Poll::Ready(Err(e)),
                Poll::Pending => break Poll::Pending,
            }
        };
        if written > 0 {
            self.traffic.sent += written as u64;
            out.consume(written);
        }
        result
    }
}
