//! Accounts: user name, host pattern, plugin and stored password.

use std::collections::HashMap;
use std::net::IpAddr;

use avocet_query::session::api::AccountName;
use parking_lot::{Mutex, RwLock};

use super::{native, sha2};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plugin {
    CachingSha2,
    Native,
}

impl Plugin {
    pub const fn name(self) -> &'static str {
        match self {
            Self::CachingSha2 => "caching_sha2_password",
            Self::Native => "mysql_native_password",
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
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: AccountName,
    pub plugin: Plugin,
    /// The stored password in the plugin's form; empty for no password.
    pub auth_string: Vec<u8>,
    pub locked: bool,
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

/// Characters before the first wildcard; a host without one beats all that have one.
fn specificity(pattern: &str) -> usize {
    pattern.find(['%', '_']).unwrap_or(usize::MAX)
}

/// Where a client comes from, as accounts name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHost {
    /// `localhost` for this machine, else the address.
    pub name: String,
    address: String,
}

impl ClientHost {
    pub fn new(address: IpAddr) -> Self {
        let address = address.to_canonical();
        let name = if address.is_loopback() { "localhost".to_owned() } else { address.to_string() };
        Self { name, address: address.to_string() }
    }

    /// This machine, without an address.
    pub fn of_socket() -> Self {
        let name = "localhost".to_owned();
        Self { address: name.clone(), name }
    }

    fn matches(&self, pattern: &str) -> bool {
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
        let proved = entries.get(&account.name).filter(|proved| proved.auth_string == account.auth_string);
        proved.map(|proved| proved.hash)
    }

    pub fn put(&self, account: &Account, password: &[u8]) {
        let auth_string = account.auth_string.clone();
        let proved = Proved { auth_string, hash: sha2::cache_entry(password) };
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
        let name = AccountName { user: user.to_owned(), host: host.to_owned() };
        let auth_string = plugin.auth_string(password);
        let mut accounts = self.accounts.write();
        accounts.retain(|account| account.name != name);
        accounts.push(Account { name, plugin, auth_string, locked: false });
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
        cache.put(&before, b"old");
        assert!(cache.get(&before).is_some());
        accounts.set("ann", "%", Plugin::CachingSha2, b"new");
        assert!(cache.get(&accounts.of_user("ann").remove(0)).is_none());
    }
}
