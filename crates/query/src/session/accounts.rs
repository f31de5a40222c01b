//! Accounts: CREATE, ALTER and DROP USER, SET PASSWORD.
//!
//! A statement changes all of the accounts that it names, in one change of the catalog, or none of them.

use std::collections::HashMap;

use avocet_engine::{AccountChange, Catalog, UserDef};

use super::privileges::Granted;
use super::run::Outcome;
use super::state::{Level, Session};
use crate::bind::unsupported;
use crate::error::{ErrorCode, SqlError};
use crate::parse::statement::{AccountOptions, StatementKind, UserName, UserSpec};
use crate::turns::blocking;

const DEFAULT_PLUGIN: &str = "caching_sha2_password";

/// What is stored of passwords that a statement gives, by account: plugin and the plugin's form.
type Credentials = HashMap<(String, String), (String, Vec<u8>)>;

impl Session {
    pub(super) fn account_statement(&mut self, kind: &StatementKind) -> Result<Outcome, SqlError> {
        use StatementKind as S;
        match kind {
            S::CreateUser { users, if_not_exists, options } => {
                self.create_users(users, *if_not_exists, *options)?;
            }
            S::AlterUser { users, if_exists, options } => self.alter_users(users, *if_exists, *options)?,
            S::DropUser { users, if_exists } => self.drop_users(users, *if_exists)?,
            S::SetPassword { user, password } => self.set_password(user.as_ref(), password)?,
            S::Grant { privileges, on, to, grant_option } => {
                self.grant(&Granted { privileges, on, users: to }, *grant_option)?;
            }
            S::Revoke { privileges, on, from, if_exists } => {
                self.revoke(&Granted { privileges, on, users: from }, *if_exists)?;
            }
            S::RevokeAll { from, if_exists } => self.revoke_all(from, *if_exists)?,
            _ => unreachable!("statements about accounts come here"),
        }
        Ok(Outcome::ok())
    }

    /// Name and host of an account.
    pub(super) fn account_name(&self, user: &UserName) -> (String, String) {
        match user {
            UserName::Named { name, host } => (name.clone(), host.clone()),
            UserName::CurrentUser => (self.info.account.user.clone(), self.info.account.host.clone()),
        }
    }

    /// What a specification says of plugin and password; what it leaves open is as before.
    fn credentials(&self, spec: &UserSpec, before: Option<&UserDef>) -> Result<(String, Vec<u8>), SqlError> {
        let kept = before.map_or(DEFAULT_PLUGIN, |user| user.plugin.as_str());
        let plugin = spec.plugin.as_deref().unwrap_or(kept).to_owned();
        let unknown = || SqlError {
            errno: 1524,
            sqlstate: *b"HY000",
            message: format!("Plugin '{plugin}' is not loaded"),
        };
        // Asking for an empty password's form tells whether the plugin is known.
        let empty = self.shared.passwords.auth_string(&plugin, b"").ok_or_else(unknown)?;
        let auth = match (&spec.password, &spec.auth_string) {
            (Some(password), _) => {
                let hash = || self.shared.passwords.auth_string(&plugin, password.as_bytes());
                blocking(hash).ok_or_else(|| unsupported("passwords without a server"))?
            }
            (None, Some(stored)) => stored.clone(),
            (None, None) => match before {
                Some(user) if spec.plugin.is_none() => user.auth.clone(),
                _ => empty,
            },
        };
        Ok((plugin, auth))
    }

    /// What the specifications give: made before accounts are changed, for it takes long.
    fn all_credentials(&self, users: &[UserSpec]) -> Result<Credentials, SqlError> {
        let catalog = self.catalog();
        let mut all = Credentials::new();
        for spec in users {
            let (name, host) = self.account_name(&spec.user);
            let made = self.credentials(spec, catalog.user(&name, &host).map(|user| &**user))?;
            all.insert((name, host), made);
        }
        Ok(all)
    }

    fn create_users(
        &mut self,
        users: &[UserSpec],
        if_not_exists: bool,
        options: AccountOptions,
    ) -> Result<(), SqlError> {
        let credentials = self.all_credentials(users)?;
        let mut existing = Vec::new();
        self.change_accounts(|catalog| {
            existing = named(catalog, credentials.keys(), true);
            if !existing.is_empty() && !if_not_exists {
                return Err(ErrorCode::CANNOT_USER.with(&[&"CREATE USER", &existing.join(",")]));
            }
            let new = credentials.into_iter().filter(|((name, host), _)| catalog.user(name, host).is_none());
            Ok(new
                .map(|((name, host), (plugin, auth))| {
                    let locked = options.locked.unwrap_or(false);
                    AccountChange::Put(UserDef { plugin, auth, locked, ..UserDef::new(&name, &host) })
                })
                .collect())
        })?;
        for name in existing {
            let message = format!("Authorization ID {name} already exists.");
            self.note(&SqlError { errno: 3163, sqlstate: *b"HY000", message });
        }
        Ok(())
    }

    fn alter_users(
        &mut self,
        users: &[UserSpec],
        if_exists: bool,
        options: AccountOptions,
    ) -> Result<(), SqlError> {
        let credentials = self.all_credentials(users)?;
        let keeps =
            |spec: &UserSpec| spec.password.is_none() && spec.plugin.is_none() && spec.auth_string.is_none();
        let kept: Vec<_> =
            users.iter().filter(|spec| keeps(spec)).map(|spec| self.account_name(&spec.user)).collect();
        let own = (self.info.account.user.clone(), self.info.account.host.clone());
        let may_change = self.may_change_system_users();
        let mut missing = Vec::new();
        self.change_accounts(|catalog| {
            missing = named(catalog, credentials.keys(), false);
            if !missing.is_empty() && !if_exists {
                return Err(ErrorCode::CANNOT_USER.with(&[&"ALTER USER", &missing.join(",")]));
            }
            let mut changes = Vec::new();
            for (account, (plugin, auth)) in credentials {
                let Some(before) = catalog.user(&account.0, &account.1) else { continue };
                if account != own {
                    may_change.check(before)?;
                }
                let mut user = UserDef::clone(before);
                user.locked = options.locked.unwrap_or(user.locked);
                if !kept.contains(&account) {
                    (user.plugin, user.auth) = (plugin, auth);
                }
                changes.push(AccountChange::Put(user));
            }
            Ok(changes)
        })?;
        self.note_failed("ALTER USER", &missing);
        Ok(())
    }

    fn drop_users(&mut self, users: &[UserName], if_exists: bool) -> Result<(), SqlError> {
        let accounts: Vec<_> = users.iter().map(|user| self.account_name(user)).collect();
        let may_change = self.may_change_system_users();
        let mut missing = Vec::new();
        self.change_accounts(|catalog| {
            missing = named(catalog, &accounts, false);
            if !missing.is_empty() && !if_exists {
                return Err(ErrorCode::CANNOT_USER.with(&[&"DROP USER", &missing.join(",")]));
            }
            let mut changes = Vec::new();
            for (name, host) in accounts {
                if let Some(user) = catalog.user(&name, &host) {
                    may_change.check(user)?;
                    changes.push(AccountChange::Drop { name, host });
                }
            }
            Ok(changes)
        })?;
        self.note_failed("DROP USER", &missing);
        Ok(())
    }

    fn set_password(&mut self, user: Option<&UserName>, password: &str) -> Result<(), SqlError> {
        let user = user.unwrap_or(&UserName::CurrentUser);
        let (name, host) = self.account_name(user);
        if self.catalog().user(&name, &host).is_none() {
            return Err(ErrorCode::PASSWORD_NO_MATCH.with(&[]));
        }
        let spec = UserSpec {
            user: user.clone(),
            plugin: None,
            password: Some(password.to_owned()),
            auth_string: None,
        };
        self.alter_users(&[spec], false, AccountOptions::default())
    }

    fn note_failed(&mut self, operation: &str, accounts: &[String]) {
        if !accounts.is_empty() {
            self.note(&ErrorCode::CANNOT_USER.with(&[&operation, &accounts.join(",")]));
        }
    }

    pub(super) fn warn_of(&mut self, error: &SqlError) {
        self.warn(Level::Warning, error.errno, error.message.clone());
    }
}

/// Those of some accounts that there are, or that there are not.
fn named<'a>(
    catalog: &Catalog,
    accounts: impl IntoIterator<Item = &'a (String, String)>,
    existing: bool,
) -> Vec<String> {
    let is_wanted = |(name, host): &&(String, String)| catalog.user(name, host).is_some() == existing;
    accounts.into_iter().filter(is_wanted).map(|(name, host)| format!("'{name}'@'{host}'")).collect()
}
