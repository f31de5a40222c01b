//! The connection phase of a client that came through a front, and COM_CHANGE_USER, which is another one.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use avocet_session::api::{AccountName, SessionFactory, SessionInfo, SqlSession, Timeouts};
use avocet_types::error::{ErrorCode, SqlError};

use super::Behind;
use crate::account::Account;
use crate::auth::exchange::AuthError;
use crate::connection::sign_in::MAX_SIGN_IN_PACKET;
use crate::connection::{Connection, Next};
use crate::front::Front;
use crate::front::exchange::{Exchange, Lost, NotIn, sign_in as pass_sign_in, unreachable};
use crate::front::upstream::Upstream;
use crate::front::view::{Settings, View};
use crate::listen::Peer;
use crate::protocol::{CapabilityFlags, Malformed, Reader, handshake, reply, status};
use crate::registry::{Activity, Registration};
use crate::server::Shared;
use crate::transport::Transport;
use crate::wire::{Wire, WireError};

/// How long a client may take for anything, the source says: what it has to wait for is a session of its own, which it ends. What ends
/// here is what nobody waits for any more.
const OF_THE_SOURCE: Timeouts = Timeouts { idle: FOR_EVER, read: FOR_EVER, write: FOR_EVER };
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Lets the source greet a client and check who it is; `None` if it was told why not.
pub async fn sign_in<F: SessionFactory>(
    shared: Arc<Shared<F>>,
    front: Arc<Front>,
    transport: Transport,
    peer: Peer,
    registration: Registration,
) -> Result<Option<Connection<F>>, WireError> {
    let mut wire = Wire::new(transport, MAX_SIGN_IN_PACKET);
    let patience = shared.factory.connect_timeout().unwrap_or(shared.options.connect_timeout);
    let address = front.source.address();
    let introduction = async {
        let source = Upstream::connect(address, patience).await;
        let source = source.map_err(|error| NotIn::Denied(unreachable(address, &error)))?;
        let tls = shared.tls.as_ref().filter(|_| peer.may_upgrade());
        let is_required = front.source.tls().is_required;
        pass_sign_in(&mut wire, source, address, tls, (&front.connector, is_required)).await
    };
    let sent_away = registration.interrupt.raised();
    let outcome = tokio::select! {
        biased;
        outcome = tokio::time::timeout(patience, introduction) => {
            outcome.unwrap_or_else(|_| Err(NotIn::Denied(ErrorCode::NET_READ_INTERRUPTED.with(&[]))))
        }
        _ = sent_away => Err(NotIn::Denied(ErrorCode::CON_COUNT_ERROR.with(&[]))),
    };
    let refuse = |error: SqlError| NotIn::Denied(error);
    let opened = outcome.and_then(|signed_in| {
        shared.registry.admit(&registration, shared.factory.max_connections()).map_err(refuse)?;
        let account = AccountName { user: signed_in.user.clone(), host: peer.host().name };
        let has = |flag| signed_in.hello.capabilities.contains(flag);
        let info = SessionInfo {
            connection_id: registration.id,
            account,
            client_host: peer.host().name,
            database: None,
            found_rows: has(CapabilityFlags::CLIENT_FOUND_ROWS),
            multi_statements: has(CapabilityFlags::CLIENT_MULTI_STATEMENTS),
            interactive: has(CapabilityFlags::CLIENT_INTERACTIVE),
            ignore_space: has(CapabilityFlags::CLIENT_IGNORE_SPACE),
            collation: u16::from(signed_in.hello.collation),
            cipher: wire.tls_peer().map_or_else(String::new, |peer| peer.cipher),
            interrupt: registration.interrupt.clone(),
            connections: shared.registry.clone(),
        };
        let session = shared.factory.open_behind_front(info.clone()).map_err(refuse)?;
        Ok((signed_in, info, session))
    });
    match opened {
        Ok((mut signed_in, info, session)) => {
            wire.max_packet = session.max_allowed_packet();
            wire.count(shared.memory.as_ref());
            signed_in.upstream.wire.count(shared.memory.as_ref());
            registration.signed_in(&signed_in.user, &info.account, signed_in.database.as_deref());
            registration.watch(&wire.line);
            front.enter(signed_in.thread, &registration.interrupt);
            wire.out.packet(&signed_in.ok);
            let behind = Behind {
                front,
                upstream: signed_in.upstream,
                dialect: signed_in.dialect,
                view: View::default(),
                thread: signed_in.thread,
                user: signed_in.user,
                statements: Default::default(),
                texts: 0,
                account: Account::new(shared.memory.clone()),
                links: Vec::new(),
                last_peer: None,
                last_query_peer: None,
                digest: Default::default(),
                key: Vec::new(),
                types: Vec::new(),
            };
            registration.set_timeouts(OF_THE_SOURCE);
            let mut connection = Connection {
                capabilities: signed_in.hello.capabilities,
                host: peer.host(),
                info,
                timeouts: OF_THE_SOURCE,
                statements: Default::default(),
                types: Vec::new(),
                values: Vec::new(),
                local_file: Default::default(),
                behind: Some(Box::new(behind)),
                outer_status: None,
                shared,
                registration,
                wire,
                session,
                salt: signed_in.salt,
            };
            connection.wire.flush().await?;
            Ok(Some(connection))
        }
        Err(NotIn::Wire(error)) => Err(error),
        Err(NotIn::Denied(error)) => {
            reply::error(&mut wire.out, true, &error);
            let _ = tokio::time::timeout(std::time::Duration::from_secs(1), wire.flush()).await;
            Ok(None)
        }
    }
}

impl<F: SessionFactory> Connection<F> {
    /// Becomes another user, if the source lets it. A client that fails to is disconnected.
    pub(super) async fn change_user_with(
        &mut self,
        behind: &mut Behind,
        packet: Range<usize>,
    ) -> Result<Next, WireError> {
        self.begin(Activity::Connect, b"");
        match self.try_change_user_with(behind, packet).await {
            Ok(()) => Ok(Next::Continue),
            Err(AuthError::Denied(error)) => {
                self.reply_error(&error);
                self.wire.flush().await?;
                Ok(Next::Close)
            }
            Err(AuthError::Wire(error)) => Err(error),
        }
    }

    async fn try_change_user_with(
        &mut self,
        behind: &mut Behind,
        packet: Range<usize>,
    ) -> Result<(), AuthError> {
        let bad = |_: Malformed| ErrorCode::UNKNOWN_COM_ERROR.with(&[]);
        let payload = self.wire.input.slice(packet);
        let reader = Reader::new(&payload[1..]);
        let (login, collation) = handshake::change_user(reader, self.capabilities).map_err(bad)?;
        let user = String::from_utf8_lossy(login.user).into_owned();
        let plugin = login.plugin.unwrap_or_default().to_vec();
        behind.upstream.send(payload).await?;
        let mut exchange =
            Exchange { client: &mut self.wire, source: &mut behind.upstream.wire, plugin, salt: self.salt };
        let ok = exchange.run().await.map_err(|error| match error {
            Lost::Client(error) => AuthError::Wire(error),
            Lost::Source(error) => {
                let (host, port) = behind.front.source.address();
                unreachable((host, port), &error).into()
            }
            Lost::Denied(error) => error.into(),
        })?;
        self.salt = exchange.salt;
        behind.upstream.status = status::of_ok(&ok).map_err(WireError::from)?;
        self.session.reset().await;
        self.forget_statements(behind);
        behind.view.reset();
        (behind.last_peer, behind.last_query_peer) = (None, None);
        // The session here is the user's, too: what it says of itself is not of the one before.
        self.info.account.user.clone_from(&user);
        self.info.collation = collation.unwrap_or(self.info.collation);
        self.session = self.shared.factory.open_behind_front(self.info.clone())?;
        self.wire.max_packet = self.session.max_allowed_packet();
        self.registration.signed_in(&user, &self.info.account, None);
        behind.user = user;
        self.wire.out.packet(&ok);
        Ok(())
    }
    /// While a query runs here or on a peer, the client has as long for its reply as it would have at the source.
    pub(super) fn limit_writes(&self, settings: Option<&Settings>) {
        let timeouts = match settings {
            Some(settings) => Timeouts { write: settings.write, ..OF_THE_SOURCE },
            None => OF_THE_SOURCE,
        };
        self.registration.set_timeouts(timeouts);
    }
}
