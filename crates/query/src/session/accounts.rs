//! Accounts: CREATE, ALTER and DROP USER, SET PASSWORD.
//!
//! Every account may do everything, so far: GRANT says so to those who grant all, and is refused for less.

use avocet_engine::UserDef;

use super::run::Outcome;
use super::state::Session;
use crate::bind::unsupported;
use crate::error::{ErrorCode, SqlError};
use crate::parse::statement::{GrantTarget, StatementKind, UserName, UserSpec};
use crate::turns::blocking;

const DEFAULT_PLUGIN: &str = "caching_sha2_password";

impl Session {
    pub(super) fn account_statement(&mut self, kind: &StatementKind) -> Result<Outcome, SqlError> {
        use StatementKind as S;
        match kind {
            S::CreateUser { users, if_not_exists } => self.create_users(users, *if_not_exists)?,
            S::AlterUser { users, if_exists } => self.alter_users(users, *if_exists)?,
            S::DropUser { users, if_exists } => self.drop_users(users, *if_exists)?,
            S::SetPassword { user, password } => self.set_password(user.as_ref(), password)?,
            S::Grant { privileges, on, to } => self.grant(privileges, on.as_ref(), to)?,
            _ => return Err(unsupported("REVOKE")),
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

    fn create_users(&mut self, users: &[UserSpec], if_not_exists: bool) -> Result<(), SqlError> {
        let catalog = self.catalog();
        let mut failed = Vec::new();
        for spec in users {
            let (name, host) = self.account_name(&spec.user);
            if catalog.user(&name, &host).is_some() {
                failed.push(quoted(&name, &host));
            }
        }
        if !failed.is_empty() && !if_not_exists {
            return Err(ErrorCode::CANNOT_USER.with(&[&"CREATE USER", &failed.join(",")]));
        }
        for spec in users {
            let (name, host) = self.account_name(&spec.user);
            if catalog.user(&name, &host).is_some() {
                let message = format!("Authorization ID {} already exists.", quoted(&name, &host));
                self.note(&SqlError { errno: 3163, sqlstate: *b"HY000", message });
                continue;
            }
            let (plugin, auth) = self.credentials(spec, None)?;
            blocking(|| self.shared.engine.put_user(UserDef { name, host, plugin, auth }))?;
        }
        Ok(())
    }

    fn alter_users(&mut self, users: &[UserSpec], if_exists: bool) -> Result<(), SqlError> {
        let catalog = self.catalog();
        for spec in users {
            let (name, host) = self.account_name(&spec.user);
            let Some(before) = catalog.user(&name, &host) else {
                let missing = ErrorCode::CANNOT_USER.with(&[&"ALTER USER", &quoted(&name, &host)]);
                if !if_exists {
                    return Err(missing);
                }
                self.note(&missing);
                continue;
            };
            let (plugin, auth) = self.credentials(spec, Some(before))?;
            blocking(|| self.shared.engine.put_user(UserDef { name, host, plugin, auth }))?;
        }
        Ok(())
    }

    fn drop_users(&mut self, users: &[UserName], if_exists: bool) -> Result<(), SqlError> {
        let mut failed = Vec::new();
        for user in users {
            let (name, host) = self.account_name(user);
            if !blocking(|| self.shared.engine.drop_user(&name, &host))? {
                failed.push(quoted(&name, &host));
            }
        }
        if failed.is_empty() {
            return Ok(());
        }
        let missing = ErrorCode::CANNOT_USER.with(&[&"DROP USER", &failed.join(",")]);
        if !if_exists {
            return Err(missing);
        }
        self.note(&missing);
        Ok(())
    }

    fn set_password(&mut self, user: Option<&UserName>, password: &str) -> Result<(), SqlError> {
        let (name, host) = self.account_name(user.unwrap_or(&UserName::CurrentUser));
        let catalog = self.catalog();
        let before = catalog.user(&name, &host).ok_or_else(|| ErrorCode::PASSWORD_NO_MATCH.with(&[]))?;
        let spec = UserSpec {
            user: UserName::CurrentUser,
            plugin: None,
            password: Some(password.to_owned()),
            auth_string: None,
        };
        let (plugin, auth) = self.credentials(&spec, Some(before))?;
        blocking(|| self.shared.engine.put_user(UserDef { name, host, plugin, auth }))?;
        Ok(())
    }

    fn grant(
        &mut self,
        privileges: &[String],
        on: Option<&GrantTarget>,
        to: &[UserName],
    ) -> Result<(), SqlError> {
        let all = matches!(privileges, [one] if matches!(one.as_str(), "ALL" | "ALL PRIVILEGES"));
        if !all || !matches!(on, Some(GrantTarget::All)) {
            return Err(unsupported("GRANT of less than ALL PRIVILEGES ON *.*"));
        }
        let catalog = self.catalog();
        for user in to {
            let (name, host) = self.account_name(user);
            if catalog.user(&name, &host).is_none() {
                return Err(SqlError {
                    errno: 1410,
                    sqlstate: *b"42000",
                    message: "You are not allowed to create a user with GRANT".into(),
                });
            }
        }
        Ok(())
    }
}

fn quoted(name: &str, host: &str) -> String {
    format!("'{name}'@'{host}'")
}
