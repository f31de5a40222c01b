//! The catalog's accounts, as the protocol server asks for them.

use std::sync::Arc;

use avocet_engine::{Engine, UserDef};
use avocet_query::session::Passwords;
use avocet_query::session::api::AccountName;
use avocet_server::auth::{Account, Accounts, Plugin};

/// The accounts of a data directory.
pub struct CatalogAccounts(pub Arc<Engine>);

impl Accounts for CatalogAccounts {
    fn of_user(&self, user: &str) -> Vec<Account> {
        self.0
            .catalog()
            .users()
            .filter(|account| account.name == user)
            .filter_map(|user| account(user))
            .collect()
    }
}

/// An account whose plugin this server does not have can not sign in.
fn account(user: &UserDef) -> Option<Account> {
    Some(Account {
        name: AccountName { user: user.name.clone(), host: user.host.clone() },
        plugin: Plugin::from_name(user.plugin.as_bytes())?,
        auth_string: user.auth.clone(),
        locked: user.locked,
    })
}

/// What CREATE USER and ALTER USER store of a password.
pub struct PluginPasswords;

impl Passwords for PluginPasswords {
    fn auth_string(&self, plugin: &str, password: &[u8]) -> Option<Vec<u8>> {
        Some(Plugin::from_name(plugin.as_bytes())?.auth_string(password))
    }
}
