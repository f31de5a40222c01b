//! Signing in as a client: to a peer, with an account that it has for this front.

use std::time::Duration;

use avocet_types::error::{ErrorCode, SqlError};
use mysql_common::scramble::{scramble_native, scramble_sha256};
use tokio_rustls::TlsConnector;

use super::exchange::encrypted;
use super::peers::PeerAccount;
use super::secure;
use super::upstream::{NoAnswer, Upstream, read_error};
use crate::protocol::handshake::{Greeting, Salt};
use crate::protocol::plugins::caching_sha2::{FAST_AUTH_SUCCESS, PERFORM_FULL_AUTHENTICATION};
use crate::protocol::{CapabilityFlags, Malformed, Reader, plugins, status};

/// Nobody needs more packets to prove a password.
const MOST_PACKETS: usize = 8;
const MAX_PACKET: u32 = 1 << 30;
const UTF8MB4: u8 = 45;

/// Connects, and signs in. `capabilities`: what the replies are to be like, and the commands. Returns the connection's number there,
/// too.
pub async fn sign_in(
    account: &PeerAccount,
    capabilities: CapabilityFlags,
    (connector, is_required): (&TlsConnector, bool),
    patience: Duration,
) -> Result<(Upstream, u32), NoAnswer> {
    let refused = |why: &str| NoAnswer::Refused(ErrorCode::ACCESS_DENIED_ERROR.because(why));
    let mut wire = Upstream::connect((account.host.as_str(), account.port), patience).await?;
    let first = wire.next().await?;
    if first.first() == Some(&0xFF) {
        return Err(NoAnswer::Refused(read_error(first)));
    }
    let greeting = Greeting::read(first)?;
    let own = CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_PROTOCOL_41;
    let not_here = CapabilityFlags::CLIENT_CONNECT_WITH_DB
        | CapabilityFlags::CLIENT_CONNECT_ATTRS
        | CapabilityFlags::CLIENT_SSL;
    let mut capabilities = (capabilities | own) - not_here;
    if !greeting.capabilities.contains(capabilities) {
        return Err(refused("it speaks less of the protocol than this server"));
    }
    let has_tls = greeting.capabilities.contains(CapabilityFlags::CLIENT_SSL);
    // As to a source: TLS where it is preferred is not for this machine.
    let wants_tls = is_required || !secure::is_local(&account.host);
    let name = secure::name_of(&account.host).filter(|_| has_tls && wants_tls);
    if is_required && name.is_none() {
        return Err(refused("it has no TLS"));
    }
    capabilities.set(CapabilityFlags::CLIENT_SSL, name.is_some());
    let mut head = capabilities.bits().to_le_bytes().to_vec();
    head.extend_from_slice(&MAX_PACKET.to_le_bytes());
    head.push(UTF8MB4);
    head.extend_from_slice(&[0; 23]);
    if let Some(name) = name {
        wire.out.packet(&head);
        wire.flush().await?;
        wire.upgrade_as_client(connector, name).await?;
    }
    let mut plugin = greeting.plugin.clone();
    let mut salt = greeting.salt;
    let proof = proof(&plugin, &salt, &account.password).unwrap_or_default();
    head.extend_from_slice(account.user.as_bytes());
    head.push(0);
    head.push(proof.len() as u8);
    head.extend_from_slice(&proof);
    head.extend_from_slice(&plugin);
    head.push(0);
    wire.out.packet(&head);
    wire.flush().await?;
    for _ in 0..MOST_PACKETS {
        let packet = wire.next().await?.to_vec();
        let answer = match packet.first() {
            Some(0x00) => {
                let status = status::of_ok(&packet)?;
                return Ok((Upstream::new(wire, capabilities, status), greeting.connection_id));
            }
            Some(0xFF) => return Err(NoAnswer::Refused(read_error(&packet))),
            Some(0xFE) => {
                let mut reader = Reader::new(&packet[1..]);
                plugin = reader.nul_bytes().to_vec();
                if let Some(other) = reader.nul_bytes().first_chunk() {
                    salt = *other;
                }
                proof_of(&plugin, &salt, &account.password).map_err(NoAnswer::Refused)?
            }
            Some(0x01) if packet.get(1) == Some(&FAST_AUTH_SUCCESS) => continue,
            Some(0x01) if packet.get(1) == Some(&PERFORM_FULL_AUTHENTICATION) => {
                let password = [account.password.as_bytes(), &[0]].concat();
                match wire.is_private() {
                    true => password,
                    false => encrypted(&mut wire, &password, &salt)
                        .await?
                        .ok_or_else(|| refused("it gives no public key to encrypt a password with"))?,
                }
            }
            _ => return Err(Malformed.into()),
        };
        wire.out.packet(&answer);
        wire.flush().await?;
    }
    Err(refused("it asks for ever more proofs"))
}

/// The proof of a password; `None` for plugins that this client does not know.
fn proof(plugin: &[u8], salt: &Salt, password: &str) -> Option<Vec<u8>> {
    Some(match std::str::from_utf8(plugin).ok()? {
        plugins::CACHING_SHA2 => {
            scramble_sha256(salt, password.as_bytes()).map(Vec::from).unwrap_or_default()
        }
        plugins::NATIVE => scramble_native(salt, password.as_bytes()).map(Vec::from).unwrap_or_default(),
        _ => return None,
    })
}

fn proof_of(plugin: &[u8], salt: &Salt, password: &str) -> Result<Vec<u8>, SqlError> {
    proof(plugin, salt, password).ok_or_else(|| {
        let plugin = String::from_utf8_lossy(plugin);
        ErrorCode::ACCESS_DENIED_ERROR.because(format!("it asks for the authentication plugin {plugin}"))
    })
}
