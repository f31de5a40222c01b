//! Signing in through the front: the source decides, and hears of the client's password no more than it would without a front.
//!
//! ```text
//!   client                    front                        source
//!     │                         │ ◀──────── greeting (salt) ── │
//!     │ ◀── the same greeting ─ │                              │
//!     │ ── TLS, if asked for ─▶ │                              │
//!     │ ── response ──────────▶ │ ── response ───────────────▶ │
//!     │ ◀─────────────────────▶ │ ◀── switches, more data ───▶ │
//!     │ ◀──────────────── OK ── │ ◀──────────────── OK ─────── │
//! ```
//!
//! The salt is the source's, so proofs of passwords pass through as they are. Who speaks TLS to the front is passed on under TLS. Then a
//! client of caching_sha2_password sends the password itself when the source has not seen it before; to a source that has no TLS it
//! goes on encrypted with that one's public key.

use avocet_types::error::{ErrorCode, SqlError};
use rand::rngs::OsRng;
use rsa::pkcs8::DecodePublicKey;
use rsa::{Oaep, RsaPublicKey};
use sha1::Sha1;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::dialect::{Dialect, dialect_of};
use super::secure;
use super::upstream::{Upstream, read_error};
use crate::protocol::handshake::{self, ClientHello, Greeting, SERVER_CAPABILITIES, Salt};
use crate::protocol::plugins::caching_sha2::{
    FAST_AUTH_SUCCESS, PERFORM_FULL_AUTHENTICATION, REQUEST_PUBLIC_KEY,
};
use crate::protocol::{CapabilityFlags, Malformed, Reader, plugins, status};
use crate::wire::{Wire, WireError};

/// So much of a response stands before the user's name, and is a request for TLS without it.
const REQUEST_FOR_TLS: usize = 32;

/// A client that the source has let in.
pub struct SignedIn {
    pub upstream: Upstream,
    pub user: String,
    pub database: Option<String>,
    pub hello: ClientHello,
    pub dialect: Dialect,
    /// As the source numbers it.
    pub thread: u32,
    pub salt: Salt,
    /// What the source said last: the OK that the client gets.
    pub ok: Vec<u8>,
}

/// Why a client does not come in.
#[derive(Debug)]
pub enum NotIn {
    /// To be told to the client.
    Denied(SqlError),
    Wire(WireError),
}

impl From<WireError> for NotIn {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

impl From<Malformed> for NotIn {
    fn from(_: Malformed) -> Self {
        Self::Denied(ErrorCode::HANDSHAKE_ERROR.with(&[]))
    }
}

/// The source is away, or says nothing that could be understood.
pub fn unreachable(address: (&str, u16), why: &dyn std::fmt::Display) -> SqlError {
    SqlError {
        errno: 2003,
        sqlstate: *b"HY000",
        message: format!("Can't connect to MySQL server on '{}:{}' ({why})", address.0, address.1),
    }
}

/// Passes the connection phase on. `wire` is the client's, `source` is freshly connected; the connector comes with whether it has to be
/// used.
pub async fn sign_in(
    wire: &mut Wire,
    mut source: Wire,
    address: (&str, u16),
    tls: Option<&TlsAcceptor>,
    (connector, is_required): (&TlsConnector, bool),
) -> Result<SignedIn, NotIn> {
    let lost = |error: WireError| NotIn::Denied(unreachable(address, &error));
    let first = source.next().await.map_err(lost)?;
    if first.first() == Some(&0xFF) {
        return Err(NotIn::Denied(read_error(first)));
    }
    let theirs = Greeting::read(first)
        .map_err(|_| NotIn::Denied(unreachable(address, &"what answers there is no MySQL server")))?;
    let mut capabilities = theirs.capabilities & SERVER_CAPABILITIES;
    capabilities.set(CapabilityFlags::CLIENT_SSL, tls.is_some());
    Greeting { capabilities, ..theirs.clone() }.write(&mut wire.out);

    let mut packet = wire.exchange_before_tls().await?;
    let mut reader = Reader::new(packet);
    let mut hello = handshake::client_hello(&mut reader)?;
    let is_private = hello.capabilities.contains(CapabilityFlags::CLIENT_SSL);
    if is_private {
        let acceptor = tls.ok_or(Malformed)?;
        if !reader.is_empty() {
            return Err(Malformed.into());
        }
        wire.upgrade(acceptor).await?;
        packet = wire.exchange().await?;
        reader = Reader::new(packet);
        hello = handshake::client_hello(&mut reader)?;
    }
    let login = handshake::login(reader, hello.capabilities)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (user, database) = (text(login.user), login.database.map(text));
    let plugin = login.plugin.map_or_else(|| theirs.plugin.clone(), <[u8]>::to_vec);
    if is_required && !is_private {
        return Err(NotIn::Denied(ErrorCode::SECURE_TRANSPORT_REQUIRED.with(&[])));
    }
    let has_tls = theirs.capabilities.contains(CapabilityFlags::CLIENT_SSL);
    let secured = secure::name_of(address.0).filter(|_| is_private && has_tls);
    if is_required && secured.is_none() {
        return Err(NotIn::Denied(unreachable(address, &"it has no TLS")));
    }
    let mut agreed = hello.capabilities & capabilities;
    agreed.set(CapabilityFlags::CLIENT_SSL, secured.is_some());
    let mut response = packet.to_vec();
    response[..4].copy_from_slice(&agreed.bits().to_le_bytes());
    if let Some(name) = secured {
        source.out.packet(&response[..REQUEST_FOR_TLS]);
        source.flush().await.map_err(lost)?;
        source.upgrade_as_client(connector, name).await.map_err(lost)?;
    }
    source.out.packet(&response);
    source.flush().await.map_err(lost)?;

    let mut exchange = Exchange { client: wire, source: &mut source, plugin, salt: theirs.salt };
    let ok = exchange.run().await.map_err(|error| match error {
        Lost::Client(error) => NotIn::Wire(error),
        Lost::Source(error) => lost(error),
        Lost::Denied(error) => NotIn::Denied(error),
    })?;
    let salt = exchange.salt;
    let status = status::of_ok(&ok)?;
    let upstream = Upstream::new(source, agreed, status);
    hello.capabilities = agreed;
    let dialect = dialect_of(&theirs.version);
    Ok(SignedIn { upstream, user, database, hello, dialect, thread: theirs.connection_id, salt, ok })
}

/// Which of the two was lost, or that the source has said no.
pub enum Lost {
    Client(WireError),
    Source(WireError),
    Denied(SqlError),
}

/// An exchange of proofs, from the source's answer to the client's response on.
pub struct Exchange<'a> {
    pub client: &'a mut Wire,
    pub source: &'a mut Wire,
    pub plugin: Vec<u8>,
    pub salt: Salt,
}

impl Exchange<'_> {
    /// Passes proofs on until the source lets the client in; its OK is returned and not passed on.
    pub async fn run(&mut self) -> Result<Vec<u8>, Lost> {
        // Proofs go to and fro a few times; an endless exchange is none.
        const MOST_PACKETS: usize = 32;
        for _ in 0..MOST_PACKETS {
            let packet = self.source.next().await.map_err(Lost::Source)?.to_vec();
            match packet.first() {
                Some(0x00) => return Ok(packet),
                Some(0xFF) => return Err(Lost::Denied(read_error(&packet))),
                Some(0xFE) => {
                    let mut reader = Reader::new(&packet[1..]);
                    self.plugin = reader.nul_bytes().to_vec();
                    if let Some(salt) = reader.nul_bytes().first_chunk() {
                        self.salt = *salt;
                    }
                    // Nobody between client and source should read it.
                    if self.plugin == plugins::CLEAR.as_bytes() && !self.source.is_private() {
                        let why = "mysql_clear_password needs TLS from the client to the source";
                        return Err(Lost::Denied(ErrorCode::ACCESS_DENIED_ERROR.because(why)));
                    }
                    self.pass_answer(&packet).await?;
                }
                Some(0x01) if packet.get(1) == Some(&FAST_AUTH_SUCCESS) && packet.len() == 2 => {
                    self.client.out.packet(&packet);
                    self.client.flush().await.map_err(Lost::Client)?;
                    // The source goes on by itself, and the client's next packet is the front's OK.
                }
                Some(0x01)
                    if self.client.is_private()
                        && !self.source.is_private()
                        && self.plugin == plugins::CACHING_SHA2.as_bytes()
                        && packet.get(1) == Some(&PERFORM_FULL_AUTHENTICATION) =>
                {
                    self.client.out.packet(&packet);
                    let password = self.client.exchange().await.map_err(Lost::Client)?.to_vec();
                    let secret = encrypted(self.source, &password, &self.salt).await.map_err(Lost::Source)?;
                    let secret = secret.ok_or_else(|| {
                        let why = "the source gives no public key to encrypt a password with";
                        Lost::Denied(ErrorCode::ACCESS_DENIED_ERROR.because(why))
                    })?;
                    self.source.out.packet(&secret);
                    self.source.flush().await.map_err(Lost::Source)?;
                }
                Some(0x01) => self.pass_answer(&packet).await?,
                _ => return Err(Lost::Source(Malformed.into())),
            }
        }
        Err(Lost::Source(WireError::OutOfOrder))
    }

    /// Passes a packet of the source on, and the client's answer back.
    async fn pass_answer(&mut self, packet: &[u8]) -> Result<(), Lost> {
        self.client.out.packet(packet);
        let answer = self.client.exchange().await.map_err(Lost::Client)?;
        self.source.out.packet(answer);
        self.source.flush().await.map_err(Lost::Source)
    }
}

/// A password (with its NUL) as a client without TLS sends it: encrypted with the server's public key, which is asked for. `None` if the
/// server gives none.
pub(super) async fn encrypted(
    server: &mut Wire,
    password: &[u8],
    salt: &Salt,
) -> Result<Option<Vec<u8>>, WireError> {
    server.out.packet(REQUEST_PUBLIC_KEY);
    let key = server.exchange().await?;
    Ok(key.strip_prefix(&[1]).and_then(|pem| encrypt(password, salt, pem)))
}

fn encrypt(password: &[u8], salt: &Salt, pem: &[u8]) -> Option<Vec<u8>> {
    let key =
        RsaPublicKey::from_public_key_pem(std::str::from_utf8(pem).ok()?.trim_end_matches('\0')).ok()?;
    let masked: Vec<u8> = password.iter().zip(salt.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    key.encrypt(&mut OsRng, Oaep::new::<Sha1>(), &masked).ok()
}
