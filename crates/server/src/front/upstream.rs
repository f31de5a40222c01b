//! A client's own connection to the source: commands that are passed on, and a few queries of the front's own in the same session.

use std::time::Duration;

use avocet_types::error::SqlError;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

use super::framer::Unreadable;
use crate::protocol::{CapabilityFlags, Reader, StatusFlags};
use crate::transport::Transport;
use crate::wire::{Wire, WireError};

/// Nothing that the front asks for itself has a larger answer.
const MAX_ANSWER: usize = 16 << 20;
const COM_QUERY: u8 = 3;
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
}

impl Upstream {
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
        if !self.wire.account.grow(self.wire.out.capacity().max(payload.len())) {
            return Err(WireError::OutOfMemory);
        }
        self.wire.out.set_sequence(0);
        self.wire.out.packet(payload);
        self.wire.flush().await
    }

    /// Runs a query in the client's session and returns its rows.
    pub async fn query(&mut self, sql: &[u8]) -> Result<Vec<Row>, NoAnswer> {
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
        let deprecates_eof = self.deprecates_eof();
        let first = self.wire.exchange().await?;
        match first.first() {
            Some(0xFF) => return Err(NoAnswer::Refused(read_error(first))),
            Some(0x00) => {
                self.status = status_of_ok(first)?;
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
                        true => status_of_ok(packet)?,
                        false => {
                            let mut reader = Reader::new(packet);
                            reader.bytes(3)?;
                            StatusFlags::from_bits_truncate(reader.u16()?)
                        }
                    };
                    return Ok(rows);
                }
                _ => rows.push(read_row(packet, columns)?),
            }
        }
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

fn status_of_ok(packet: &[u8]) -> Result<StatusFlags, WireError> {
    let mut reader = Reader::new(packet);
    reader.u8()?;
    reader.lenenc_int()?;
    reader.lenenc_int()?;
    Ok(StatusFlags::from_bits_truncate(reader.u16()?))
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
