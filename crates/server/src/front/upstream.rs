//! A client's own connection to the source: commands that are passed on, and a few queries of the front's own in the same session.

use std::time::Duration;

use avocet_types::error::SqlError;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::framer::Unreadable;
use crate::protocol::{CapabilityFlags, Reader, StatusFlags, status};
use crate::transport::Transport;
use crate::wire::{Wire, WireError};

/// Nothing that the front asks for itself has a larger answer.
const MAX_ANSWER: usize = 16 << 20;
const COM_QUERY: u8 = 3;
const COM_PING: u8 = 14;
/// A connection without a word for so long is probed, and given up after some probes without an answer.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVES: u32 = 6;

/// A row of text; `None` is NULL.
pub type Row = Vec<Option<Vec<u8>>>;

/// Why a query of the front's own has no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// The source has said no; the connection goes on.
    Refused(SqlError),
    Lost(WireError),
}

impl<E: Into<WireError>> From<E> for NoAnswer {
    fn from(error: E) -> Self {
        Self::Lost(error.into())
    }
}

impl From<Unreadable> for WireError {
    fn from(_: Unreadable) -> Self {
        Self::Io(std::io::Error::new(std::io::ErrorKind::InvalidData, "the source's reply cannot be read"))
    }
}

impl From<crate::protocol::Malformed> for WireError {
    fn from(_: crate::protocol::Malformed) -> Self {
        Unreadable.into()
    }
}

/// The connection to the source.
pub struct Upstream {
    pub wire: Wire,
    /// What was agreed on with the client, and so with the source.
    pub capabilities: CapabilityFlags,
    /// What the source said last of the session.
    pub status: StatusFlags,
    /// The next ping is due: its session is not to seem idle while somebody else works for the client.
    ping_at: Option<tokio::time::Instant>,
    /// A ping has been written, in whole or in part, and not been answered.
    awaits_pong: bool,
}

impl Upstream {
    pub fn new(wire: Wire, capabilities: CapabilityFlags, status: StatusFlags) -> Self {
        Self { wire, capabilities, status, ping_at: None, awaits_pong: false }
    }

    /// Connects, without a word yet.
    pub async fn connect(address: (&str, u16), patience: Duration) -> std::io::Result<Wire> {
        let connecting = TcpStream::connect(address);
        let stream = tokio::time::timeout(patience, connecting).await??;
        stream.set_nodelay(true)?;
        // A host that is gone without a word would keep a client waiting for its answer for ever.
        let keepalive = TcpKeepalive::new()
            .with_time(KEEPALIVE_AFTER)
            .with_interval(KEEPALIVE_EVERY)
            .with_retries(KEEPALIVES);
        SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
        Ok(Wire::new(Transport::Plain(stream), MAX_ANSWER))
    }

    pub fn deprecates_eof(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF)
    }

    /// Sends a command as the client sent it.
    ///
    /// # Errors
    /// `OutOfMemory`, and nothing is sent; the others end the connection.
    pub async fn send(&mut self, payload: &[u8]) -> Result<(), WireError> {
        self.settle().await?;
        if !self.wire.account.grow(self.wire.out.capacity().max(payload.len())) {
            return Err(WireError::OutOfMemory);
        }
        self.wire.out.set_sequence(0);
        self.wire.out.packet(payload);
        self.wire.flush().await
    }

    /// Returns when the source says something that nobody has asked for, or is gone: it has closed the session, mostly. Until then
    /// it is asked every so often whether it is there, so that it does not take the session for an idle one. May be dropped at any
    /// time, and begun again.
    pub async fn stay(&mut self, every: Duration) {
        loop {
            if self.awaits_pong {
                if self.settle().await.is_err() {
                    return;
                }
                continue;
            }
            let at = *self.ping_at.get_or_insert_with(|| tokio::time::Instant::now() + every);
            tokio::select! {
                biased;
                // What is wrong with it shows when it is read.
                _ = self.wire.more() => return,
                () = tokio::time::sleep_until(at) => {}
            }
            self.awaits_pong = true;
            self.wire.out.set_sequence(0);
            self.wire.out.packet(&[COM_PING]);
        }
    }

    /// Has a task of its own [`Self::stay`] while the client's query runs in this process, which may hold the thread that it runs on.
    /// `gone` is called if the source ends the session meanwhile. What is left here is a connection to nobody.
    pub fn keep(&mut self, every: Duration, gone: impl FnOnce() + Send + 'static) -> Kept {
        let nobody = Self::new(Wire::new(Transport::Gone, 0), self.capabilities, self.status);
        let mut upstream = std::mem::replace(self, nobody);
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            tokio::select! {
                biased;
                // It is dropped.
                _ = stopped => {}
                () = upstream.stay(every) => gone(),
            }
            upstream
        });
        Kept { task, stop: Some(stop) }
    }

    /// Returns when the source says something that nobody has asked for, or is gone. May be dropped at any time.
    pub async fn unasked(&mut self) {
        if self.settle().await.is_ok() {
            let _ = self.wire.more().await;
        }
    }

    /// Waits for the answer to a ping that is on its way. From now on the session is not idle.
    async fn settle(&mut self) -> Result<(), WireError> {
        self.ping_at = None;
        if self.awaits_pong {
            let pong = self.wire.exchange().await?;
            self.status = status::of_ok(pong)?;
            self.awaits_pong = false;
        }
        Ok(())
    }

    /// Runs a query in the client's session and returns its rows; if it has several results, those of the first.
    ///
    /// # Errors
    /// `Refused` with the error of the query, `Lost` with what became of the connection.
    pub async fn query(&mut self, sql: &[u8]) -> Result<Vec<Row>, NoAnswer> {
        self.settle().await?;
        let out = &mut self.wire.out;
        out.set_sequence(0);
        out.begin();
        out.put_u8(COM_QUERY);
        if self.capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES) {
            // No attributes, in one set.
            out.put(&[0, 1]);
        }
        out.put(sql);
        out.end();
        self.wire.flush().await?;
        let rows = self.result().await?;
        // Whoever reads the text as more than one statement gives as many results: none may be left for the next command.
        while self.status.contains(StatusFlags::SERVER_MORE_RESULTS_EXISTS) {
            match self.result().await {
                Ok(_) => {}
                Err(NoAnswer::Refused(_)) => break,
                Err(lost) => return Err(lost),
            }
        }
        self.status -= StatusFlags::SERVER_MORE_RESULTS_EXISTS;
        Ok(rows)
    }

    /// Reads one result.
    async fn result(&mut self) -> Result<Vec<Row>, NoAnswer> {
        let deprecates_eof = self.deprecates_eof();
        let first = self.wire.next().await?;
        match first.first() {
            Some(0xFF) => return Err(NoAnswer::Refused(read_error(first))),
            Some(0x00) => {
                self.status = status::of_ok(first)?;
                return Ok(Vec::new());
            }
            _ => {}
        }
        let columns = Reader::new(first).lenenc_int()?;
        for _ in 0..columns + u64::from(!deprecates_eof) {
            self.wire.next().await?;
        }
        let mut rows = Vec::new();
        loop {
            let packet = self.wire.next().await?;
            match packet.first() {
                Some(0xFF) => return Err(NoAnswer::Refused(read_error(packet))),
                Some(0xFE) if packet.len() < 9 || deprecates_eof => {
                    self.status = match deprecates_eof {
                        true => status::of_ok(packet)?,
                        false => status::of_eof(packet)?,
                    };
                    return Ok(rows);
                }
                _ => rows.push(read_row(packet, columns)?),
            }
        }
    }
}

/// A connection that a task has, until it is taken back or this is dropped, which closes it.
pub struct Kept {
    task: JoinHandle<Upstream>,
    stop: Option<oneshot::Sender<()>>,
}

impl Kept {
    /// The connection; `None` if the task has panicked.
    pub async fn take_back(mut self) -> Option<Upstream> {
        self.stop = None;
        (&mut self.task).await.ok()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn read_row(packet: &[u8], columns: u64) -> Result<Row, WireError> {
    let mut reader = Reader::new(packet);
    let mut row = Row::new();
    for _ in 0..columns {
        row.push(match reader.peek() {
            Some(0xFB) => {
                reader.u8()?;
                None
            }
            _ => Some(reader.lenenc_bytes()?.to_vec()),
        });
    }
    Ok(row)
}

/// What an error packet says; before the client has told its capabilities, there is no SQLSTATE in it.
pub fn read_error(packet: &[u8]) -> SqlError {
    let mut reader = Reader::new(packet);
    let errno = reader.u8().and_then(|_| reader.u16()).unwrap_or_default();
    let rest = reader.rest();
    let (sqlstate, message) = match rest.split_first() {
        Some((b'#', rest)) if rest.len() >= 5 => {
            let (state, message) = rest.split_at(5);
            (state.try_into().unwrap_or(*b"HY000"), message)
        }
        _ => (*b"HY000", rest),
    };
    SqlError { errno, sqlstate, message: String::from_utf8_lossy(message).into_owned() }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A source that answers the commands that come with these packets, and gives back what came.
    async fn source(replies: Vec<Vec<&'static [u8]>>) -> (Upstream, tokio::task::JoinHandle<Vec<Vec<u8>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let port = listener.local_addr().expect("an address").port();
        let answering = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let mut commands = Vec::new();
            for reply in replies {
                let mut header = [0; 4];
                stream.read_exact(&mut header).await.expect("a command");
                let mut command = vec![0; usize::from(header[0])];
                stream.read_exact(&mut command).await.expect("a command");
                commands.push(command);
                for (at, packet) in reply.iter().enumerate() {
                    stream.write_all(&[packet.len() as u8, 0, 0, at as u8 + 1]).await.expect("a reader");
                    stream.write_all(packet).await.expect("a reader");
                }
            }
            commands
        });
        let wire = Upstream::connect(("127.0.0.1", port), Duration::from_secs(5)).await.expect("a source");
        let capabilities = CapabilityFlags::CLIENT_DEPRECATE_EOF;
        (Upstream::new(wire, capabilities, StatusFlags::empty()), answering)
    }

    const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
    const END: &[u8] = &[0xFE, 0, 0, 2, 0, 0, 0];
    const END_OF_FIRST: &[u8] = &[0xFE, 0, 0, 2 | 8, 0, 0, 0];
    const ERROR: &[u8] = b"\xFF\x28\x04#42000syntax";

    #[tokio::test]
    async fn results_behind_the_first_are_none_of_the_next_query() {
        let result = |value: &'static [u8], end: &'static [u8]| vec![&[1][..], b"column", value, end];
        let more = |more: Vec<&'static [u8]>| [result(b"\x01a", END_OF_FIRST), more].concat();
        let replies =
            vec![more(vec![OK]), more(vec![ERROR]), more(result(b"\x01z", END)), result(b"\x01b", END)];
        let (mut upstream, answering) = source(replies).await;
        for value in [b"a", b"a", b"a", b"b"] {
            let rows = upstream.query(b"SELECT").await.expect("rows");
            assert_eq!(rows, [[Some(value.to_vec())]]);
            assert_eq!(upstream.status, StatusFlags::SERVER_STATUS_AUTOCOMMIT);
        }
        answering.await.expect("all was asked for");
    }

    #[tokio::test]
    async fn a_session_is_pinged_while_it_is_not_used() {
        let (mut upstream, answering) = source(vec![vec![OK]; 4]).await;
        let every = Duration::from_millis(5);
        // It may be dropped in the middle of a ping.
        for _ in 0..200 {
            let _ = tokio::time::timeout(Duration::from_millis(1), upstream.stay(every)).await;
            if answering.is_finished() {
                break;
            }
        }
        let commands = answering.await.expect("it was pinged so often");
        assert_eq!(commands, vec![vec![COM_PING]; 4]);
        let (mut upstream, answering) = source(vec![vec![OK], vec![OK]]).await;
        upstream.awaits_pong = true;
        upstream.wire.out.set_sequence(0);
        upstream.wire.out.packet(&[COM_PING]);
        assert!(upstream.query(b"SELECT").await.expect("an answer of its own").is_empty());
        assert_eq!(answering.await.expect("both")[1], b"\x03SELECT");
    }

    #[tokio::test]
    async fn a_task_keeps_a_session_and_tells_when_it_ends() {
        let (mut upstream, answering) = source(vec![vec![OK], vec![OK]]).await;
        let kept = upstream.keep(Duration::from_secs(60), || panic!("it is still there"));
        upstream = kept.take_back().await.expect("it was only kept");
        assert!(upstream.query(b"SELECT").await.is_ok());
        let (tell, told) = oneshot::channel();
        let kept = upstream.keep(Duration::from_millis(1), move || {
            let _ = tell.send(());
        });
        told.await.expect("the source has answered a ping and gone");
        assert_eq!(answering.await.expect("both")[1], [COM_PING]);
        let mut upstream = kept.take_back().await.expect("what is left of it");
        assert!(matches!(upstream.query(b"SELECT").await, Err(NoAnswer::Lost(_))));
    }
}
