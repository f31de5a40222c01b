//! A connection of its own for a semi-synchronous stream.
//!
//! The driver's has no room for it: events come behind a head of two bytes, the source begins to number its packets anew with each that
//! it wants an answer to, and the answers are written while events are read.

use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::time::Duration;

use mysql::{BinlogRequest, DriverError, MySqlError, Opts};
use mysql_common::binlog::EventStreamReader;
use mysql_common::binlog::consts::BinlogVersion;
use mysql_common::binlog::events::Event;
use mysql_common::constants::CapabilityFlags;
use mysql_common::crypto;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthPlugin, AuthSwitchRequest, ComRegisterSlave, ErrPacket, HandshakePacket, HandshakeResponse,
    SslRequest,
};
use mysql_common::proto::MySerialize;

use super::Acks;
use super::transport::{Transport, framed};
use crate::error::ReplicateError;

/// MySQL's `replica_max_allowed_packet`: no event is larger.
const MOST_BYTES: usize = 1 << 30;
const READ_BYTES: usize = 64 << 10;
/// utf8mb4_general_ci
const CHARSET: u8 = 45;
/// Questions and answers of a sign-in, at most.
const MOST_ROUNDS: usize = 8;
const COM_QUERY: u8 = 3;
/// In front of each event, and then whether the source waits for an answer.
const HEAD: u8 = 0xef;

/// Why there is none.
#[derive(Debug)]
pub enum NoLink {
    /// It cannot be had as things are; other connections to the source can.
    Unsupported(String),
    Failed(ReplicateError),
}

impl From<mysql::Error> for NoLink {
    fn from(error: mysql::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<io::Error> for NoLink {
    fn from(error: io::Error) -> Self {
        mysql::Error::from(error).into()
    }
}

/// What is read of a transport.
struct Incoming(Arc<Transport>);

impl Read for Incoming {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.read(to)
    }
}

/// A signed-in connection, and then a stream.
pub struct Link {
    transport: Arc<Transport>,
    incoming: BufReader<Incoming>,
    /// Of the next packet to be sent.
    number: u8,
    capabilities: CapabilityFlags,
    events: EventStreamReader,
}

impl Link {
    /// Connects and signs in. Silence of this length means that the source is gone.
    pub fn connect(opts: &Opts, silence: Duration) -> Result<Self, NoLink> {
        if opts.get_socket().is_some() {
            return Err(NoLink::Unsupported("the source is connected to by a socket file".into()));
        }
        let host = opts.get_ip_or_hostname();
        let transport = Transport::connect(&host, opts.get_tcp_port(), silence)?;
        let mut link = Self::over(transport);
        let greeting = link.packet()?;
        link.refused(&greeting)?;
        let greeting: HandshakePacket<'_> = ParseBuf(&greeting).parse(())?;
        link.capabilities = greeting.capabilities()
            & (CapabilityFlags::CLIENT_PROTOCOL_41
                | CapabilityFlags::CLIENT_SECURE_CONNECTION
                | CapabilityFlags::CLIENT_LONG_PASSWORD
                | CapabilityFlags::CLIENT_TRANSACTIONS
                | CapabilityFlags::CLIENT_PLUGIN_AUTH);
        if let Some(options) = opts.get_ssl_opts() {
            if !greeting.capabilities().contains(CapabilityFlags::CLIENT_SSL) {
                return Err(mysql::Error::DriverError(DriverError::TlsNotSupported).into());
            }
            link.capabilities |= CapabilityFlags::CLIENT_SSL;
            link.send(&SslRequest::new(link.capabilities, MOST_BYTES as u32, CHARSET))?;
            link = link.secure(&host, options)?;
        }
        let plugin = match greeting.auth_plugin() {
            Some(AuthPlugin::CachingSha2Password) => AuthPlugin::CachingSha2Password,
            _ => AuthPlugin::MysqlNativePassword,
        };
        link.sign_in(opts, plugin, greeting.nonce())?;
        Ok(link)
    }

    pub(super) fn over(transport: Transport) -> Self {
        let transport = Arc::new(transport);
        Self {
            incoming: BufReader::with_capacity(READ_BYTES, Incoming(transport.clone())),
            transport,
            number: 0,
            capabilities: CapabilityFlags::CLIENT_PROTOCOL_41,
            events: EventStreamReader::new(BinlogVersion::Version4),
        }
    }

    fn secure(self, host: &str, options: &mysql::SslOpts) -> io::Result<Self> {
        let Self { transport, incoming, number, capabilities, events } = self;
        if !incoming.buffer().is_empty() {
            return Err(io::Error::other("the source speaks before TLS has begun"));
        }
        drop(incoming);
        let plain = Arc::into_inner(transport).ok_or_else(|| io::Error::other("the connection is in use"))?;
        let link = Self::over(plain.secure(host, options)?);
        Ok(Self { number, capabilities, events, ..link })
    }

    fn sign_in(
        &mut self,
        opts: &Opts,
        mut plugin: AuthPlugin<'static>,
        mut nonce: Vec<u8>,
    ) -> Result<(), NoLink> {
        let password = opts.get_pass();
        let proof = plugin.gen_data(password, &nonce).map(|proof| proof.to_vec());
        let response = HandshakeResponse::new(
            proof,
            (8, 0, 0),
            Some(opts.get_user().unwrap_or_default().as_bytes()),
            None::<Vec<u8>>,
            Some(plugin.clone()),
            self.capabilities,
            None,
            MOST_BYTES as u32,
        );
        self.send(&response)?;
        for _ in 0..MOST_ROUNDS {
            let answer = self.packet()?;
            self.refused(&answer)?;
            match *answer.as_slice() {
                [0, ..] => return Ok(()),
                [0xfe, ..] => {
                    let switch: AuthSwitchRequest<'_> = ParseBuf(&answer).parse(())?;
                    nonce = switch.plugin_data().to_vec();
                    plugin = match switch.auth_plugin() {
                        AuthPlugin::CachingSha2Password => AuthPlugin::CachingSha2Password,
                        AuthPlugin::MysqlNativePassword => AuthPlugin::MysqlNativePassword,
                        other => {
                            return Err(NoLink::Unsupported(format!(
                                "the account's plugin {} is not known to a semi-synchronous stream",
                                String::from_utf8_lossy(other.as_bytes())
                            )));
                        }
                    };
                    let proof = plugin.gen_data(password, &nonce).map(|proof| proof.to_vec());
                    self.send_bytes(&proof.unwrap_or_default())?;
                }
                // caching_sha2_password: the source knows the password's hash.
                [1, 3, ..] => {}
                // It does not, and wants the password.
                [1, 4, ..] => {
                    let mut text = password.unwrap_or_default().as_bytes().to_vec();
                    text.push(0);
                    if !self.transport.is_secure() {
                        const KEY_PLEASE: u8 = 2;
                        self.send_bytes(&[KEY_PLEASE])?;
                        let key = self.packet()?;
                        self.refused(&key)?;
                        let mask = nonce.iter().cycle();
                        text.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
                        text = crypto::encrypt(&text, key.get(1..).unwrap_or_default());
                    }
                    self.send_bytes(&text)?;
                }
                _ => break,
            }
        }
        Err(unexpected().into())
    }

    /// A statement without rows.
    pub fn run(&mut self, sql: &str) -> Result<(), NoLink> {
        let mut payload = vec![COM_QUERY];
        payload.extend_from_slice(sql.as_bytes());
        self.command(&payload)?;
        self.done()
    }

    /// Begins a stream, whose source is told by `acks` what is durable here.
    pub fn dump(&mut self, request: &BinlogRequest<'_>, acks: &Acks) -> Result<(), NoLink> {
        let mut payload = Vec::new();
        ComRegisterSlave::new(request.server_id()).serialize(&mut payload);
        self.command(&payload)?;
        self.done()?;
        payload.clear();
        request.as_cmd().serialize(&mut payload);
        self.command(&payload)?;
        acks.connect(self.transport.clone());
        Ok(())
    }

    /// The next event, and whether the source waits until it is durable here; `None` at the stream's end.
    pub fn next(&mut self) -> Result<Option<(Event, bool)>, NoLink> {
        let packet = self.packet()?;
        self.refused(&packet)?;
        match *packet.as_slice() {
            [0, HEAD, flag, ref event @ ..] => match self.events.read(event)? {
                Some(event) => Ok(Some((event, flag & 1 != 0))),
                None => Err(unexpected().into()),
            },
            [0xfe, ..] if packet.len() < 8 => Ok(None),
            _ => Err(unexpected().into()),
        }
    }

    fn command(&mut self, payload: &[u8]) -> io::Result<()> {
        self.number = 0;
        self.send_bytes(payload)
    }

    fn done(&mut self) -> Result<(), NoLink> {
        let answer = self.packet()?;
        self.refused(&answer)?;
        match answer.first() {
            Some(0) => Ok(()),
            _ => Err(unexpected().into()),
        }
    }

    fn send(&mut self, packet: &impl MySerialize) -> io::Result<()> {
        let mut payload = Vec::new();
        packet.serialize(&mut payload);
        self.send_bytes(&payload)
    }

    fn send_bytes(&mut self, payload: &[u8]) -> io::Result<()> {
        self.transport.write(&framed(self.number, payload))?;
        self.number = self.number.wrapping_add(1);
        Ok(())
    }

    /// What the source has sent as one. Its numbers say nothing: they begin anew where it waits for an answer.
    fn packet(&mut self) -> io::Result<Vec<u8>> {
        const WHOLE: usize = 0xff_ffff;
        let mut packet = Vec::new();
        loop {
            let mut head = [0; 4];
            self.incoming.read_exact(&mut head)?;
            let len = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
            self.number = head[3].wrapping_add(1);
            if packet.len() + len > MOST_BYTES {
                return Err(io::Error::other("an event is larger than 1 GiB"));
            }
            let read = (&mut self.incoming).take(len as u64).read_to_end(&mut packet)?;
            if read < len {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if len < WHOLE {
                return Ok(packet);
            }
        }
    }

    /// An error, if a packet says one.
    fn refused(&self, packet: &[u8]) -> Result<(), NoLink> {
        if packet.first() != Some(&0xff) {
            return Ok(());
        }
        match ParseBuf(packet).parse::<ErrPacket<'_>>(self.capabilities)? {
            ErrPacket::Error(error) => Err(mysql::Error::MySqlError(MySqlError::from(error)).into()),
            ErrPacket::Progress(_) => Err(unexpected().into()),
        }
    }
}

fn unexpected() -> mysql::Error {
    mysql::Error::DriverError(DriverError::UnexpectedPacket)
}
