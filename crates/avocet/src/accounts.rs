//! The catalog's accounts, as the protocol server asks for them.

use avocet_engine::UserDef;
use avocet_server::auth::{Account, Accounts, LoginRule, Plugin, TlsRule};
use avocet_session::api::AccountName;
use avocet_session::{Database, Passwords};

/// The accounts of a data directory.
pub struct CatalogAccounts {
    pub database: Database,
}

impl Accounts for CatalogAccounts {
    fn of_user(&self, user: &str) -> Vec<Account> {
        let catalog = self.database.engine().catalog();
        catalog.users().filter(|account| account.name == user).filter_map(|user| self.account(user)).collect()
    }
}

impl CatalogAccounts {
    /// An account whose plugin this server does not have can not sign in.
    fn account(&self, user: &UserDef) -> Option<Account> {
        Some(Account {
            name: AccountName { user: user.name.clone(), host: user.host.clone() },
            plugin: Plugin::from_name(user.plugin.as_bytes())?,
            auth_string: user.auth.clone(),
            retained: user.retained.clone(),
            locked: user.locked,
            expired: self.database.has_expired_password(user),
            login: LoginRule {
                tls: tls_rule(&user.login.tls),
                failed_attempts: user.login.failed_attempts,
                lock_days: user.login.lock_days,
                set_at: user.login.set_at,
            },
        })
    }
}

fn tls_rule(rule: &avocet_engine::TlsRule) -> TlsRule {
    use avocet_engine::TlsRule as Rule;
    match rule.clone() {
        Rule::None => TlsRule::None,
        Rule::Encrypted => TlsRule::Encrypted,
        Rule::Certificate => TlsRule::Certificate,
        Rule::Certified { subject, issuer, cipher } => TlsRule::Certified { subject, issuer, cipher },
    }
}

/// What CREATE USER and ALTER USER store of a password.
pub struct PluginPasswords;

impl Passwords for PluginPasswords {
    fn auth_string(&self, plugin: &str, password: &[u8]) -> Option<Vec<u8>> {
        Some(Plugin::from_name(plugin.as_bytes())?.auth_string(password))
    }

    fn is_stored(&self, plugin: &str, text: &[u8]) -> bool {
        Plugin::from_name(plugin.as_bytes()).is_some_and(|plugin| plugin.is_stored(text))
    }

    fn is_password(&self, plugin: &str, stored: &[u8], password: &[u8]) -> bool {
        Plugin::from_name(plugin.as_bytes()).is_some_and(|plugin| plugin.is_password(stored, password))
    }
}
