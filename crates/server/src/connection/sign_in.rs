//! The connection phase: greeting, TLS, authentication, session.

use std::sync::Arc;

use avocet_session::api::{AccountName, SessionFactory, SessionInfo, SqlSession};
use avocet_types::error::{ErrorCode, SqlError};

use super::Connection;
use crate::auth::exchange::{AuthError, Claim};
use crate::auth::{Plugin, random_salt};
use crate::listen::Peer;
use crate::protocol::handshake::{self, ClientHello, Greeting, Login, SERVER_CAPABILITIES, Salt};
use crate::protocol::{CapabilityFlags, Malformed, Reader, reply};
use crate::registry::Registration;
use crate::server::Shared;
use crate::transport::Transport;
use crate::wire::{Wire, WireError};

/// Nothing that a client says before it is known needs to be larger.
pub(super) const MAX_SIGN_IN_PACKET: usize = 256 * 1024;

/// Why there is no session.
enum Refusal {
    Wire(WireError),
    Error(SqlError),
}

impl From<WireError> for Refusal {
    fn from(error: WireError) -> Self {
        match error {
            WireError::OutOfOrder => Self::Error(ErrorCode::NET_PACKETS_OUT_OF_ORDER.with(&[])),
            WireError::TooLarge => Self::Error(ErrorCode::NET_PACKET_TOO_LARGE.with(&[])),
            other => Self::Wire(other),
        }
    }
}

impl From<AuthError> for Refusal {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Wire(error) => error.into(),
            AuthError::Denied(error) => Self::Error(error),
        }
    }
}

impl From<Malformed> for Refusal {
    fn from(_: Malformed) -> Self {
        Self::Error(ErrorCode::HANDSHAKE_ERROR.with(&[]))
    }
}

/// What a client is once it has told and proved who it is.
struct Identity {
    account: AccountName,
    user: String,
    database: Option<String>,
    hello: ClientHello,
}

/// Greets a client and checks who it is; `None` if it was told why not.
pub(super) async fn sign_in<F: SessionFactory>(
    shared: Arc<Shared<F>>,
    transport: Transport,
    peer: Peer,
    registration: Registration,
) -> Result<Option<Connection<F>>, WireError> {
    let mut wire = Wire::new(transport, MAX_SIGN_IN_PACKET);
    let salt = random_salt();
    let introduction = introduce(&shared, &mut wire, &salt, peer, registration.id);
    let limit = shared.factory.connect_timeout().unwrap_or(shared.options.connect_timeout);
    // Others may need its place.
    let sent_away = registration.interrupt.raised();
    let outcome = tokio::select! {
        biased;
        outcome = tokio::time::timeout(limit, introduction) => match outcome {
            Ok(outcome) => outcome,
            Err(_) => Err(Refusal::Error(ErrorCode::NET_READ_INTERRUPTED.with(&[]))),
        },
        _ = sent_away => Err(Refusal::Error(ErrorCode::CON_COUNT_ERROR.with(&[]))),
    };
    let opened = outcome.and_then(|identity| {
        // One administrator more than there may be connections always gets in.
        let more = usize::from(shared.factory.is_administrator(&identity.account));
        let max = shared.factory.max_connections().saturating_add(more);
        shared.registry.admit(&registration, max).map_err(Refusal::Error)?;
        let cipher = wire.tls_peer().map_or_else(String::new, |peer| peer.cipher);
        let info = session_info(&shared, &registration, peer, &identity, cipher);
        let session = shared.factory.open(info.clone()).map_err(Refusal::Error)?;
        Ok((identity, info, session))
    });
    match opened {
        Ok((identity, info, session)) => {
            wire.max_packet = session.max_allowed_packet();
            wire.count(shared.memory.as_ref());
            registration.signed_in(&identity.user, &identity.account, identity.database.as_deref());
            registration.watch(&wire.line);
            let timeouts = session.timeouts();
            registration.set_timeouts(timeouts);
            let mut connection = Connection {
                capabilities: identity.hello.capabilities & SERVER_CAPABILITIES,
                host: peer.host(),
                info,
                timeouts,
                statements: Default::default(),
                types: Vec::new(),
                values: Vec::new(),
                local_file: Default::default(),
                behind: None,
                outer_status: None,
                shared,
                registration,
                wire,
                session,
                salt,
            };
            connection.reply_ok();
            connection.wire.flush().await?;
            Ok(Some(connection))
        }
        Err(Refusal::Wire(error)) => Err(error),
        Err(Refusal::Error(error)) => {
            reply::error(&mut wire.out, true, &error);
            let _ = tokio::time::timeout(std::time::Duration::from_secs(1), wire.flush()).await;
            Ok(None)
        }
    }
}

async fn introduce<F: SessionFactory>(
    shared: &Shared<F>,
    wire: &mut Wire,
    salt: &Salt,
    peer: Peer,
    connection_id: u32,
) -> Result<Identity, Refusal> {
    let tls = shared.tls.as_ref().filter(|_| peer.may_upgrade());
    let greeting = Greeting::new(connection_id, salt, tls.is_some(), Plugin::CachingSha2.name());
    greeting.write(&mut wire.out);
    let mut is_private = wire.is_private();
    let mut packet = wire.exchange_before_tls().await?;
    let mut reader = Reader::new(packet);
    let mut hello = handshake::client_hello(&mut reader)?;
    if hello.capabilities.contains(CapabilityFlags::CLIENT_SSL) {
        let acceptor = tls.ok_or(Malformed)?;
        if !reader.is_empty() {
            return Err(Malformed.into());
        }
        wire.upgrade(acceptor).await?;
        is_private = true;
        packet = wire.exchange().await?;
        reader = Reader::new(packet);
        hello = handshake::client_hello(&mut reader)?;
    }
    if shared.factory.requires_secure_transport() && !is_private {
        return Err(Refusal::Error(ErrorCode::SECURE_TRANSPORT_REQUIRED.with(&[])));
    }
    let login = handshake::login(reader, hello.capabilities)?;
    let (claim, database) = claim(&login, hello.capabilities)?;
    let user = claim.user.clone();
    let host = peer.host();
    let account = shared.authenticator.authenticate(wire, salt, &host, claim).await?;
    Ok(Identity { account, user, database, hello })
}

/// A login with its texts checked and its bytes owned.
pub(super) fn claim(
    login: &Login<'_>,
    capabilities: CapabilityFlags,
) -> Result<(Claim, Option<String>), Malformed> {
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Malformed);
    handshake::attributes(login.attributes)?;
    let claim = Claim {
        user: text(login.user)?,
        response: login.auth_response.to_vec(),
        plugin: login.plugin.map(<[u8]>::to_vec),
        capabilities,
        changes_user: false,
    };
    Ok((claim, login.database.map(text).transpose()?))
}

fn session_info<F: SessionFactory>(
    shared: &Shared<F>,
    registration: &Registration,
    peer: Peer,
    identity: &Identity,
    cipher: String,
) -> SessionInfo {
    let has = |flag| identity.hello.capabilities.contains(flag);
    SessionInfo {
        connection_id: registration.id,
        account: identity.account.clone(),
        client_host: peer.host().name,
        database: identity.database.clone(),
        found_rows: has(CapabilityFlags::CLIENT_FOUND_ROWS),
        multi_statements: has(CapabilityFlags::CLIENT_MULTI_STATEMENTS),
        interactive: has(CapabilityFlags::CLIENT_INTERACTIVE),
        ignore_space: has(CapabilityFlags::CLIENT_IGNORE_SPACE),
        collation: u16::from(identity.hello.collation),
        cipher,
        interrupt: registration.interrupt.clone(),
        connections: shared.registry.clone(),
    }
}
