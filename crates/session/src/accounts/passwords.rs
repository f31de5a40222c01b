//! New passwords: what is stored of them, and the rules that they keep.

use avocet_channel::blocking::blocking;
use avocet_engine::{AccountId, Catalog, Privileges, UserDef};
use avocet_sql::bind::unsupported;
use avocet_sql::parse::statement::{AccountOptions, UserName, UserSpec};
use avocet_types::error::{ErrorCode, SqlError};

use super::apply;
use crate::state::Session;

const DEFAULT_PLUGIN: &str = "caching_sha2_password";

/// What becomes of an account whose password a statement gives.
pub(super) struct NewPassword {
    plugin: String,
    auth: Vec<u8>,
    retained: Option<Vec<u8>>,
    /// When, in seconds since 1970.
    now: i64,
    /// With this one, what may not be used again.
    past: Vec<(i64, Vec<u8>)>,
}

impl NewPassword {
    pub fn put(self, user: &mut UserDef) {
        user.plugin = self.plugin;
        user.auth = self.auth;
        user.retained = self.retained;
        user.password.changed_at = self.now;
        user.password.past = self.past;
        user.password.expired = false;
    }
}

impl Session {
    /// What each specification gives its account: made before accounts are changed, for it takes long.
    pub(super) fn new_passwords(
        &mut self,
        users: &[UserSpec],
        options: &AccountOptions,
    ) -> Result<Vec<(AccountId, NewPassword)>, SqlError> {
        let rules = self.access().global() | self.access().on_database("mysql").and(Privileges::UPDATE);
        let may_change_any = rules.intersects(Privileges::CREATE_USER | Privileges::UPDATE);
        let catalog = self.catalog();
        let mut all = Vec::with_capacity(users.len());
        for spec in users {
            let id = self.account_name(&spec.user);
            let before = catalog.user(&id.0, &id.1);
            if spec.password.is_some() || spec.current.is_some() {
                self.check_current(spec, &id, before.map(|user| &**user), may_change_any)?;
            }
            let made = self.new_password(&catalog, spec, &id, options)?;
            all.push((id, made));
        }
        Ok(all)
    }

    /// REPLACE: who changes the own password may have to say the one before.
    fn check_current(
        &self,
        spec: &UserSpec,
        id: &AccountId,
        before: Option<&UserDef>,
        may_change_any: bool,
    ) -> Result<(), SqlError> {
        let Some(before) = before else { return Ok(()) };
        if *id != self.account_name(&UserName::CurrentUser) {
            return match spec.current {
                Some(_) => Err(ErrorCode::CURRENT_PASSWORD_NOT_REQUIRED.with(&[])),
                None => Ok(()),
            };
        }
        match &spec.current {
            Some(current) => match self.is_password(before, &before.auth, current) {
                true => Ok(()),
                false => Err(ErrorCode::INCORRECT_CURRENT_PASSWORD.with(&[])),
            },
            None => {
                let default = self.shared.globals.settings().password_require_current;
                let required = before.password.require_current.unwrap_or(default);
                match required && !may_change_any && !before.auth.is_empty() {
                    true => Err(ErrorCode::MISSING_CURRENT_PASSWORD.with(&[])),
                    false => Ok(()),
                }
            }
        }
    }

    fn is_password(&self, account: &UserDef, stored: &[u8], password: &str) -> bool {
        blocking(|| self.shared.passwords.is_password(&account.plugin, stored, password.as_bytes()))
    }

    /// What a specification says of plugin and password; what it leaves open is as before.
    fn new_password(
        &self,
        catalog: &Catalog,
        spec: &UserSpec,
        id: &AccountId,
        options: &AccountOptions,
    ) -> Result<NewPassword, SqlError> {
        let before = catalog.user(&id.0, &id.1).map(|user| UserDef::clone(user));
        let is_new = before.is_none();
        let mut user = before.unwrap_or_else(|| UserDef::new(&id.0, &id.1));
        let plugin = match &spec.plugin {
            Some(plugin) => plugin.clone(),
            None if is_new => DEFAULT_PLUGIN.to_owned(),
            None => user.plugin.clone(),
        };
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
            (None, Some(stored))
                if !stored.is_empty() && !self.shared.passwords.is_stored(&plugin, stored) =>
            {
                return Err(ErrorCode::PASSWORD_FORMAT.with(&[]));
            }
            (None, Some(stored)) => stored.clone(),
            (None, None) if spec.plugin.is_none() => user.auth.clone(),
            (None, None) => empty,
        };
        let mut retained = user.retained.take().filter(|_| plugin == user.plugin && !auth.is_empty());
        if spec.retains {
            let (name, host) = id;
            let error = match () {
                () if plugin != user.plugin => ErrorCode::PASSWORD_CANNOT_BE_RETAINED_ON_PLUGIN_CHANGE,
                () if auth.is_empty() => ErrorCode::CURRENT_PASSWORD_CANNOT_BE_RETAINED,
                () if user.auth.is_empty() => ErrorCode::SECOND_PASSWORD_CANNOT_BE_EMPTY,
                () => {
                    retained = Some(user.auth.clone());
                    return self.with_history(spec, user, options, plugin, auth, retained);
                }
            };
            return Err(error.with(&[name, host]));
        }
        self.with_history(spec, user, options, plugin, auth, retained)
    }

    /// Fails if the password may not be used again.
    fn with_history(
        &self,
        spec: &UserSpec,
        mut user: UserDef,
        options: &AccountOptions,
        plugin: String,
        auth: Vec<u8>,
        retained: Option<Vec<u8>>,
    ) -> Result<NewPassword, SqlError> {
        let settings = self.shared.globals.settings();
        let now = self.clock_us() / 1_000_000;
        apply(options, &mut user, self.clock_us());
        let (count, days) = (settings.password_history, settings.password_reuse_days);
        let past = user.password.remembered(now, count, days).to_vec();
        if let Some(password) = spec.password.as_ref().filter(|password| !password.is_empty())
            && past.iter().any(|(_, stored)| self.is_password(&user, stored, password))
        {
            let (name, host) = (&user.name, &user.host);
            return Err(ErrorCode::CREDENTIALS_CONTRADICT_TO_HISTORY.with(&[name, host]));
        }
        user.password.past.clone_from(&past);
        if spec.identifies() && !auth.is_empty() {
            user.password.past.insert(0, (now, auth.clone()));
            user.password.remembered(now, count, days);
        }
        Ok(NewPassword { plugin, auth, retained, now, past: user.password.past })
    }
}
