//! The connection phase of a client that came through a front.

use std::sync::Arc;

use avocet_session::api::{AccountName, SessionFactory, SessionInfo, SqlSession};
use avocet_types::error::{ErrorCode, SqlError};

use super::Behind;
use crate::account::Account;
use crate::connection::Connection;
use crate::connection::sign_in::MAX_SIGN_IN_PACKET;
use crate::front::Front;
use crate::front::exchange::{NotIn, sign_in as pass_sign_in, unreachable};
use crate::front::upstream::Upstream;
use crate::front::view::View;
use crate::listen::Peer;
use crate::protocol::{CapabilityFlags, reply};
use crate::registry::Registration;
use crate::server::Shared;
use crate::transport::Transport;
use crate::wire::{Wire, WireError};

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
            wire.max_packet = shared.options.max_allowed_packet;
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
            };
            let timeouts = session.timeouts();
            let mut connection = Connection {
                capabilities: signed_in.hello.capabilities,
                host: peer.host(),
                info,
                timeouts,
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
