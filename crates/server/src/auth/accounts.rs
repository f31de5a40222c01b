//! Accounts: user name, host pattern, plugin and stored password.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use avocet_session::api::AccountName;
use parking_lot::{Mutex, RwLock};

use super::{native, sha2};
use crate::protocol::plugins;
use crate::tls::TlsPeer;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plugin {
    CachingSha2,
    Native,
}

impl Plugin {
    pub const fn name(self) -> &'static str {
        match self {
            Self::CachingSha2 => plugins::CACHING_SHA2,
            Self::Native => plugins::NATIVE,
        }
    }

    pub fn from_name(name: &[u8]) -> Option<Self> {
        [Self::CachingSha2, Self::Native].into_iter().find(|p| p.name().as_bytes() == name)
    }

    /// What is stored for a password.
    pub fn auth_string(self, password: &[u8]) -> Vec<u8> {
        match self {
            Self::CachingSha2 => sha2::auth_string(password),
            Self::Native => native::auth_string(password).into_bytes(),
        }
    }

    /// Whether something has the form of what is stored for a password that is not empty.
    pub fn is_stored(self, text: &[u8]) -> bool {
        match self {
            Self::CachingSha2 => sha2::is_stored(text),
            Self::Native => std::str::from_utf8(text).is_ok_and(native::is_stored),
        }
    }

    /// Whether what is stored is of a password.
    pub fn is_password(self, stored: &[u8], password: &[u8]) -> bool {
        match self {
            Self::CachingSha2 => sha2::verify_full(stored, password),
            // Nothing random is in it.
            Self::Native => stored == native::auth_string(password).as_bytes(),
        }
    }
}

/// What a connection has to be for an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TlsRule {
    #[default]
    None,
    Encrypted,
    /// With a certificate of the client.
    Certificate,
    /// With a certificate, and these, as far as they are not empty.
    Certified {
        subject: String,
        issuer: String,
        cipher: String,
    },
}

impl TlsRule {
    /// Whether a connection keeps it; `None` for one without TLS.
    pub fn allows(&self, peer: Option<&TlsPeer>) -> bool {
        match self {
            Self::None => true,
            Self::Encrypted => peer.is_some(),
            Self::Certificate => peer.is_some_and(|peer| peer.subject.is_some()),
            Self::Certified { subject, issuer, cipher } => peer.is_some_and(|peer| {
                let is = |wanted: &String, found: &Option<String>| {
                    wanted.is_empty() || found.as_ref() == Some(wanted)
                };
                peer.subject.is_some()
                    && is(subject, &peer.subject)
                    && is(issuer, &peer.issuer)
                    && (cipher.is_empty() || peer.cipher == *cipher)
            }),
        }
    }
}

/// What a sign-in has to be besides right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginRule {
    pub tls: TlsRule,
    /// After so many wrong passwords in a row no more sign-ins are heard; 0 for any number.
    pub failed_attempts: u16,
    /// For so many days; `None` for ever.
    pub lock_days: Option<u16>,
    /// When the rule was made, in microseconds since 1970.
    pub set_at: i64,
}

impl LoginRule {
    pub fn counts_failures(&self) -> bool {
        self.failed_attempts > 0 && self.lock_days != Some(0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: AccountName,
    pub plugin: Plugin,
    /// The stored password in the plugin's form; empty for no password.
    pub auth_string: Vec<u8>,
    /// Of the password before, while it is good as well.
    pub retained: Option<Vec<u8>>,
    pub locked: bool,
    /// The password has to be changed by whoever signs in with it.
    pub expired: bool,
    pub login: LoginRule,
}

impl Account {
    /// One without further rules.
    pub fn new(user: &str, host: &str, plugin: Plugin, auth_string: Vec<u8>) -> Self {
        Self {
            name: AccountName { user: user.to_owned(), host: host.to_owned() },
            plugin,
            auth_string,
            retained: None,
            locked: false,
            expired: false,
            login: LoginRule::default(),
        }
    }

    /// What is stored of the passwords that are good.
    pub fn stored(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.auth_string.as_slice()).chain(self.retained.as_deref())
    }
}

/// The accounts that there are.
pub trait Accounts: Send + Sync + 'static {
    /// Every account of this user name, whatever its host.
    fn of_user(&self, user: &str) -> Vec<Account>;

    /// Whether some `root` account has no password: then only this machine may connect.
    fn root_is_open(&self) -> bool {
        self.of_user("root").iter().any(|account| account.auth_string.is_empty() && !account.locked)
    }
}

/// The account for a user who comes from `host`: of those that match, the one with the most specific host.
pub fn find(accounts: &dyn Accounts, user: &str, host: &ClientHost) -> Option<Account> {
    accounts
        .of_user(user)
        .into_iter()
        .filter(|account| host.matches(&account.name.host))
        .max_by_key(|account| specificity(&account.name.host))
}

/// A host beats a network, a longer prefix a shorter one, a network a pattern, and more characters before the first
/// wildcard fewer.
fn specificity(pattern: &str) -> (u8, usize) {
    match (Network::parse(pattern), pattern.find(['%', '_'])) {
        (Some(network), _) => (1, network.prefix as usize),
        (None, Some(at)) => (0, at),
        (None, None) if pattern.is_empty() => (0, 0),
        (None, None) => (2, 0),
    }
}

/// `address/mask` or `address/prefix length`.
struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, mask) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match mask.parse::<Ipv4Addr>() {
            Ok(mask) if address.is_ipv4() => {
                let mask = u32::from(mask);
                // Only whole prefixes are masks.
                Some(mask.leading_ones()).filter(|ones| mask.count_ones() == *ones)?
            }
            _ => mask.parse().ok().filter(|prefix| *prefix <= bits)?,
        };
        Some(Self { address, prefix })
    }

    fn has(&self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, bits: u32| (a ^ b).checked_shr(bits - self.prefix).unwrap_or(0) == 0;
        match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(u32::from(a).into(), u32::from(b).into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.into(), b.into(), 128),
            _ => false,
        }
    }
}

/// Where a client comes from, as accounts name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHost {
    /// `localhost` for this machine, else the address.
    pub name: String,
    address: String,
    ip: Option<IpAddr>,
}

impl ClientHost {
    pub fn new(address: IpAddr) -> Self {
        let address = address.to_canonical();
        let name = if address.is_loopback() { "localhost".to_owned() } else { address.to_string() };
        Self { name, address: address.to_string(), ip: Some(address) }
    }

    /// This machine, without an address.
    pub fn of_socket() -> Self {
        let name = "localhost".to_owned();
        Self { address: name.clone(), name, ip: None }
    }

    fn matches(&self, pattern: &str) -> bool {
        if let (Some(network), Some(ip)) = (Network::parse(pattern), self.ip) {
            return network.has(ip);
        }
        let pattern = if pattern.is_empty() { "%" } else { pattern };
        like(&self.name, pattern) || like(&self.address, pattern)
    }
}

/// Host patterns: `%` is any run of characters, `_` any one.
fn like(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let (mut t, mut p) = (0, 0);
    let mut retry = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'%') => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(&c) if c == b'_' || c.eq_ignore_ascii_case(&text[t]) => {
                p += 1;
                t += 1;
            }
            _ => match retry {
                Some((after, from)) => {
                    retry = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'%')
}

/// What caching_sha2_password remembers of passwords that were proved in full.
#[derive(Default)]
pub struct PasswordCache {
    entries: Mutex<HashMap<AccountName, Proved>>,
}

/// A password that was proved in full.
struct Proved {
    /// What it was proved against: a changed password must not be accepted.
    auth_string: Vec<u8>,
    hash: [u8; 32],
}

impl PasswordCache {
    pub fn get(&self, account: &Account) -> Option<[u8; 32]> {
        let entries = self.entries.lock();
        let is_good = |proved: &&Proved| account.stored().any(|stored| stored == proved.auth_string);
        entries.get(&account.name).filter(is_good).map(|proved| proved.hash)
    }

    /// Remembers a password that was proved against what is stored.
    pub fn put(&self, account: &Account, stored: &[u8], password: &[u8]) {
        let proved = Proved { auth_string: stored.to_vec(), hash: sha2::cache_entry(password) };
        self.entries.lock().insert(account.name.clone(), proved);
    }
}

/// Accounts kept in memory alone: for tests and embedded use.
#[derive(Default)]
pub struct MemoryAccounts {
    accounts: RwLock<Vec<Account>>,
}

impl MemoryAccounts {
    /// `root`@`localhost` without a password, as on a new data directory.
    pub fn open_root() -> Self {
        let accounts = Self::default();
        accounts.set("root", "localhost", Plugin::CachingSha2, b"");
        accounts
    }

    /// Creates an account, or gives it another password.
    pub fn set(&self, user: &str, host: &str, plugin: Plugin, password: &[u8]) {
        self.put(Account::new(user, host, plugin, plugin.auth_string(password)));
    }

    /// Puts an account in the place of the one of its name.
    pub fn put(&self, account: Account) {
        let mut accounts = self.accounts.write();
        accounts.retain(|other| other.name != account.name);
        accounts.push(account);
    }
}

impl Accounts for MemoryAccounts {
    fn of_user(&self, user: &str) -> Vec<Account> {
        self.accounts.read().iter().filter(|account| account.name.user == user).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(address: &str) -> ClientHost {
        ClientHost::new(address.parse().expect("an address"))
    }

    #[test]
    fn the_most_specific_account_wins() {
        let accounts = MemoryAccounts::open_root();
        accounts.set("root", "%", Plugin::Native, b"x");
        accounts.set("root", "10.0.%", Plugin::Native, b"y");
        let found = |address| find(&accounts, "root", &host(address)).map(|a| a.name.host);
        assert_eq!(found("127.0.0.1").as_deref(), Some("localhost"));
        assert_eq!(found("::1").as_deref(), Some("localhost"));
        assert_eq!(found("10.0.3.4").as_deref(), Some("10.0.%"));
        assert_eq!(found("10.1.3.4").as_deref(), Some("%"));
        assert_eq!(find(&accounts, "ann", &host("127.0.0.1")), None);
    }

    #[test]
    fn networks_match_their_addresses() {
        for (pattern, address, matches) in [
            ("198.51.100.0/255.255.255.0", "198.51.100.7", true),
            ("198.51.100.0/255.255.255.0", "198.51.101.7", false),
            ("198.51.100.0/24", "198.51.100.7", true),
            ("198.51.100.7/32", "198.51.100.7", true),
            ("198.51.100.7/32", "198.51.100.6", false),
            ("0.0.0.0/0", "198.51.100.7", true),
            ("2001:db8::/32", "2001:db8:1::5", true),
            ("2001:db8::/32", "2001:db9:1::5", false),
            ("2001:db8::/32", "198.51.100.7", false),
            ("198.51.100.0/255.0.255.0", "198.51.100.7", false),
            ("198.51.100.0/33", "198.51.100.7", false),
        ] {
            assert_eq!(host(address).matches(pattern), matches, "{pattern} {address}");
        }
        let accounts = MemoryAccounts::default();
        for pattern in ["%", "198.51.%", "198.51.0.0/16", "198.51.100.0/24", "198.51.100.7"] {
            accounts.set("u", pattern, Plugin::Native, b"");
        }
        let found = |address| find(&accounts, "u", &host(address)).map(|a| a.name.host);
        assert_eq!(found("198.51.100.7").as_deref(), Some("198.51.100.7"));
        assert_eq!(found("198.51.100.8").as_deref(), Some("198.51.100.0/24"));
        assert_eq!(found("198.51.1.8").as_deref(), Some("198.51.0.0/16"));
        assert_eq!(found("198.1.1.8").as_deref(), Some("%"));
    }

    #[test]
    fn patterns_match_as_like_does() {
        assert!(like("10.0.0.17", "10.0.%.17"));
        assert!(like("abc", "a_c") && like("abc", "%") && like("", "%"));
        assert!(!like("abc", "a_") && !like("abc", "%b"));
        assert!(like("aab", "%ab"));
    }

    #[test]
    fn a_changed_password_is_not_taken_from_the_cache() {
        let accounts = MemoryAccounts::default();
        accounts.set("ann", "%", Plugin::CachingSha2, b"old");
        let cache = PasswordCache::default();
        let before = accounts.of_user("ann").remove(0);
        cache.put(&before, &before.auth_string, b"old");
        assert!(cache.get(&before).is_some());
        accounts.set("ann", "%", Plugin::CachingSha2, b"new");
        assert!(cache.get(&accounts.of_user("ann").remove(0)).is_none());
    }
}
