//! The exchange by which a client proves its password.
//!
//! ```text
//!   client                                   server
//!     │ ◀───────────── greeting (salt) ─────── │
//!     │ ─ user, response, plugin ────────────▶ │   other plugin than the account's?
//!     │ ◀───────────── AuthSwitchRequest ───── │
//!     │ ─ response ──────────────────────────▶ │   native: decided here
//!     │ ◀──────────────────────── 01 03 ────── │   sha2, in the cache: decided here
//!     │ ◀──────────────────────── 01 04 ────── │   sha2, not in the cache
//!     │ ─ password (TLS, Unix socket) ───────▶ │
//!     │ ─ 02 (plain TCP) ────────────────────▶ │
//!     │ ◀──────────────── 01 public key ────── │
//!     │ ─ encrypted password ────────────────▶ │
//! ```
//!
//! A user that does not exist goes through the same exchange as one that does, and fails at its end.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use avocet_session::api::AccountName;
use avocet_types::error::{ErrorCode, SqlError};

use super::accounts::{self, ClientHost, PasswordCache};
use super::rsa_key::RsaKey;
use super::throttle::{Guesser, Throttle};
use super::{Account, Accounts, Plugin, native, same_bytes, sha2};
use crate::protocol::CapabilityFlags;
use crate::protocol::handshake::{self, Salt};
use crate::protocol::plugins::caching_sha2::{
    FAST_AUTH_SUCCESS, PERFORM_FULL_AUTHENTICATION, REQUEST_PUBLIC_KEY,
};
use crate::tls::TlsPeer;
use crate::wire::{Wire, WireError};

#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Denied(#[from] SqlError),
}

/// What a client said in its handshake response or COM_CHANGE_USER.
pub struct Claim {
    pub user: String,
    pub response: Vec<u8>,
    /// The plugin that the response was made for; `None` if the client does not know of plugins.
    pub plugin: Option<Vec<u8>>,
    pub capabilities: CapabilityFlags,
    /// It came in a COM_CHANGE_USER, in which MySQL's client library has no response before it gets an AuthSwitchRequest.
    pub changes_user: bool,
}

/// Somebody who says who they are.
struct Attempt {
    guesser: Guesser,
    /// There have not been too many before.
    is_heard: bool,
    exists: bool,
    account: Account,
}

/// What came of their password, and how it came.
struct Proof {
    proved: bool,
    with_password: bool,
    /// The client can be told that the password has expired.
    handles_expired: bool,
    tls: Option<TlsPeer>,
}

/// Checks who clients are. One per server.
pub struct Authenticator {
    accounts: Arc<dyn Accounts>,
    cache: PasswordCache,
    throttle: Throttle,
    rsa: RsaKey,
}

impl Authenticator {
    pub fn new(accounts: Arc<dyn Accounts>, rsa: RsaKey) -> Self {
        Self { accounts, cache: PasswordCache::default(), throttle: Throttle::default(), rsa }
    }

    /// Leads the exchange up to its outcome. The caller sends the OK or the error.
    pub async fn authenticate(
        &self,
        wire: &mut Wire,
        salt: &Salt,
        host: &ClientHost,
        claim: Claim,
    ) -> Result<AccountName, AuthError> {
        let attempt = self.begin_attempt(&claim.user, host).await;
        let account = &attempt.account;
        let response = self.response_for(wire, salt, account, &claim).await?;
        let with_password = !matches!(response[..], [] | [0]);
        let proved = match account.plugin {
            _ if !attempt.is_heard => false,
            Plugin::Native => account.stored().any(|stored| {
                std::str::from_utf8(stored).is_ok_and(|stored| native::verify(stored, salt, &response))
            }),
            Plugin::CachingSha2 if !with_password => account.auth_string.is_empty(),
            Plugin::CachingSha2 if account.auth_string.is_empty() => false,
            Plugin::CachingSha2 => self.prove_sha2(wire, salt, account, &response).await?,
        };
        let handles_expired = CapabilityFlags::CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS;
        let how = Proof {
            proved,
            with_password,
            handles_expired: claim.capabilities.contains(handles_expired),
            tls: wire.tls_peer(),
        };
        Ok(self.conclude(attempt, &how)?)
    }

    /// Checks a user and a password that came as they are, over a connection that nobody else reads.
    ///
    /// # Errors
    /// As a client of the MySQL protocol gets them.
    pub async fn check_password(
        &self,
        user: &str,
        password: &[u8],
        host: &ClientHost,
        tls: Option<TlsPeer>,
    ) -> Result<AccountName, SqlError> {
        let attempt = self.begin_attempt(user, host).await;
        let account = &attempt.account;
        let with_password = !password.is_empty();
        let proved = match account.plugin {
            _ if !attempt.is_heard => false,
            _ if !with_password || account.auth_string.is_empty() => {
                !with_password && account.auth_string.is_empty()
            }
            Plugin::Native => account.stored().any(|stored| Plugin::Native.is_password(stored, password)),
            Plugin::CachingSha2 => {
                let known = self.cache.get(account);
                match known.is_some_and(|known| same_bytes(&known, &sha2::cache_entry(password))) {
                    true => true,
                    false => self.prove_in_full(account, password.to_vec()).await?,
                }
            }
        };
        self.conclude(attempt, &Proof { proved, with_password, handles_expired: false, tls })
    }

    /// Waits for a guesser's turn, and finds the account.
    async fn begin_attempt(&self, user: &str, host: &ClientHost) -> Attempt {
        let guesser = (user.to_owned(), host.name.clone());
        let heard = self.throttle.wait(&guesser, Instant::now());
        if let Some(wait) = heard.filter(|wait| !wait.is_zero()) {
            tokio::time::sleep(wait).await;
        }
        let known = accounts::find(&*self.accounts, user, host);
        let exists = known.is_some();
        let account = known.unwrap_or_else(|| decoy(user));
        Attempt { guesser, is_heard: heard.is_some(), exists, account }
    }

    /// Whether a user gets in.
    fn conclude(&self, attempt: Attempt, how: &Proof) -> Result<AccountName, SqlError> {
        let Attempt { guesser, is_heard, exists, account } = attempt;
        let proved = how.proved;
        let (user, host) = guesser.clone();
        let denied = || {
            let using = if how.with_password { "YES" } else { "NO" };
            ErrorCode::ACCESS_DENIED_ERROR.with(&[&user, &host, &using])
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let now = now.cast_signed();
        if !proved && exists && self.throttle.lock_of(&account, now).is_none() {
            self.throttle.wrong_password(&account, now);
        }
        // Nobody learns whether the password was right while the account is locked by wrong ones.
        if let Some(locked) = self.throttle.lock_of(&account, now) {
            self.refuse(guesser, "the account is locked by failed sign-ins");
            let days = |days: Option<u16>| days.map_or("unlimited".to_owned(), |days| days.to_string());
            return Err(ErrorCode::USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK.with(&[
                &user,
                &host,
                &days(locked.days),
                &days(locked.remaining),
                &locked.failures,
            ]));
        }
        if !proved || !exists {
            self.refuse(guesser, if is_heard { "not proved" } else { "too many sign-ins at once" });
            return Err(denied());
        }
        self.throttle.succeeded(&guesser);
        self.throttle.right_password(&account);
        let refused = |why: &str| tracing::warn!(user, host, "sign-in refused: {why}");
        if !account.login.tls.allows(how.tls.as_ref()) {
            refused("not over TLS as the account asks for it");
            return Err(denied());
        }
        if account.locked {
            refused("the account is locked");
            return Err(ErrorCode::ACCOUNT_HAS_BEEN_LOCKED.with(&[&user, &host]));
        }
        if account.expired && !how.handles_expired {
            refused("the password has expired");
            return Err(ErrorCode::MUST_CHANGE_PASSWORD_LOGIN.with(&[]));
        }
        Ok(account.name)
    }

    fn refuse(&self, guesser: Guesser, why: &str) {
        tracing::warn!(user = guesser.0, host = guesser.1, "sign-in refused: {why}");
        self.throttle.failed(guesser, Instant::now());
    }

    /// The client's response for the account's plugin, asked for again if it was made for another.
    async fn response_for(
        &self,
        wire: &mut Wire,
        salt: &Salt,
        account: &Account,
        claim: &Claim,
    ) -> Result<Vec<u8>, AuthError> {
        let made_for = match &claim.plugin {
            Some(name) => Plugin::from_name(name),
            None => Some(Plugin::Native),
        };
        // A client whose own plugin is not the greeting's may wait for the switch, and has sent nothing yet.
        let is_awaited = (account.plugin == Plugin::Native || claim.changes_user)
            && !account.auth_string.is_empty()
            && matches!(claim.response[..], [] | [0]);
        let may_switch = claim.capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH);
        if made_for == Some(account.plugin) && !(is_awaited && may_switch) {
            return Ok(claim.response.clone());
        }
        if !claim.capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) {
            return Err(ErrorCode::NOT_SUPPORTED_AUTH_MODE.with(&[]).into());
        }
        handshake::auth_switch(&mut wire.out, account.plugin.name(), salt);
        Ok(wire.exchange().await?.to_vec())
    }

    async fn prove_sha2(
        &self,
        wire: &mut Wire,
        salt: &Salt,
        account: &Account,
        response: &[u8],
    ) -> Result<bool, AuthError> {
        let cached = self.cache.get(account);
        if cached.is_some_and(|cached| sha2::verify_fast(&cached, salt, response)) {
            handshake::auth_more_data(&mut wire.out, &[FAST_AUTH_SUCCESS]);
            return Ok(true);
        }
        handshake::auth_more_data(&mut wire.out, &[PERFORM_FULL_AUTHENTICATION]);
        let Some(password) = self.receive_password(wire, salt).await? else { return Ok(false) };
        Ok(self.prove_in_full(account, password).await?)
    }

    /// Whether a password fits what is stored, which takes some milliseconds.
    async fn prove_in_full(&self, account: &Account, password: Vec<u8>) -> Result<bool, SqlError> {
        let stored: Vec<_> = account.stored().map(<[u8]>::to_vec).collect();
        let (proved, password) = tokio::task::spawn_blocking(move || {
            (stored.into_iter().find(|stored| sha2::verify_full(stored, &password)), password)
        })
        .await
        .map_err(|_| ErrorCode::SERVER_SHUTDOWN.with(&[]))?;
        if let Some(stored) = &proved {
            self.cache.put(account, stored, &password);
        }
        Ok(proved.is_some())
    }

    /// The password itself: in the clear where nobody else reads it, else encrypted with our public key.
    async fn receive_password(&self, wire: &mut Wire, salt: &Salt) -> Result<Option<Vec<u8>>, AuthError> {
        let secure = wire.is_private();
        let mut message = wire.exchange().await?.to_vec();
        if secure {
            return Ok((message.pop() == Some(0)).then_some(message));
        }
        if message == REQUEST_PUBLIC_KEY {
            handshake::auth_more_data(&mut wire.out, self.rsa.public_pem().as_bytes());
            message = wire.exchange().await?.to_vec();
        }
        Ok(self.rsa.decrypt_password(&message, salt))
    }
}

/// Stands in for a user that there is not; no password fits it.
fn decoy(user: &str) -> Account {
    let mut auth_string = b"$A$005$".to_vec();
    auth_string.extend_from_slice(&[b'x'; 20]);
    auth_string.extend_from_slice(&[b'.'; 43]);
    Account::new(user, "%", Plugin::CachingSha2, auth_string)
}
