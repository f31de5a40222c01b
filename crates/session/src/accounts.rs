//! Accounts: CREATE, ALTER, RENAME and DROP USER, SET PASSWORD.
//!
//! A statement changes all of the accounts that it names, in one change of the catalog, or none of them.

mod passwords;

use std::collections::{BTreeMap, BTreeSet};

use avocet_engine::{AccountChange, AccountId, Catalog, LoginRules, Privileges, TlsRule, UserDef};
use avocet_sql::bind::unsupported;
use avocet_sql::parse::statement::{
    AccountOptions, PasswordExpiry, StatementKind, TlsRequirement, UserName, UserSpec,
};
use avocet_types::error::{ErrorCode, SqlError};

use self::passwords::NewPassword;
use super::privileges::{Granted, needs_one_of};
use super::run::Outcome;
use super::state::{Level, Session};

/// MySQL's limits.
const MAX_USER_CHARS: usize = 32;
const MAX_HOST_CHARS: usize = 255;
/// Of what an error says of a name.
const MAX_SHOWN_CHARS: usize = 70;

impl Session {
    pub(super) fn account_statement(&mut self, kind: &StatementKind) -> Result<Outcome, SqlError> {
        use StatementKind as S;
        match kind {
            S::CreateUser { users, if_not_exists, default_roles, options } => {
                self.create_users(users, *if_not_exists, default_roles, options)?;
            }
            S::AlterUser { users, if_exists, options } => self.alter_users(users, *if_exists, options)?,
            S::DropUser { users, if_exists } => self.drop_users("DROP USER", users, *if_exists)?,
            S::DropRole { roles, if_exists } => self.drop_users("DROP ROLE", roles, *if_exists)?,
            S::RenameUser(pairs) => self.rename_users(pairs)?,
            S::SetPassword { user, password, current, retains } => {
                let spec = UserSpec {
                    password: Some(password.clone()),
                    current: current.clone(),
                    retains: *retains,
                    ..UserSpec::new(user.clone().unwrap_or(UserName::CurrentUser))
                };
                self.set_password(spec)?;
            }
            S::CreateRole { roles, if_not_exists } => self.create_roles(roles, *if_not_exists)?,
            S::SetRole(roles) => self.set_role(roles)?,
            S::SetDefaultRole { roles, users, if_exists } => {
                self.set_default_role(roles, users, *if_exists)?;
            }
            S::GrantRoles { roles, to, admin_option } => self.grant_roles(roles, to, *admin_option)?,
            S::RevokeRoles { roles, from, how } => self.revoke_roles(roles, from, *how)?,
            S::Grant { privileges, on, to, grant_option } => {
                self.grant(&Granted { privileges, on, users: to }, *grant_option)?;
            }
            S::Revoke { privileges, on, from, how } => {
                self.revoke(&Granted { privileges, on, users: from }, *how)?;
            }
            S::RevokeAll { from, how } => self.revoke_all(from, *how)?,
            _ => unreachable!("statements about accounts come here"),
        }
        Ok(Outcome::ok())
    }

    /// Name and host of an account.
    pub(super) fn account_name(&self, user: &UserName) -> AccountId {
        match user {
            UserName::Named { name, host } => (name.clone(), host.clone()),
            UserName::CurrentUser => (self.info.account.user.clone(), self.info.account.host.clone()),
        }
    }

    /// Now, whatever `timestamp` is set to.
    fn clock_us(&self) -> i64 {
        self.shared.engine.options().env.clock.wall_us()
    }

    fn create_users(
        &mut self,
        users: &[UserSpec],
        if_not_exists: bool,
        default_roles: &[UserName],
        options: &AccountOptions,
    ) -> Result<(), SqlError> {
        for spec in users {
            check_new_name(&self.account_name(&spec.user))?;
        }
        let given = self.new_passwords(users, options)?;
        let (roles, now) = (self.account_ids(default_roles), self.clock_us());
        // A default role is granted: who makes the account must be able to grant it.
        let may_grant = self.check_may_grant_roles(&roles);
        let may_change = self.may_change_system_users();
        let mut existing = Vec::new();
        self.change_accounts_told(if_not_exists, |catalog| {
            existing = twice_or(true, catalog, given.iter().map(|(account, _)| account));
            if !existing.is_empty() && !if_not_exists {
                return Err(ErrorCode::CANNOT_USER.with(&[&"CREATE USER", &existing.join(",")]));
            }
            if existing.len() < given.len() {
                may_grant?;
            }
            if let Some(missing) = named(catalog, &roles, false).first() {
                return Err(ErrorCode::USER_DOES_NOT_EXIST.with(&[missing]));
            }
            let mut defs = roles.iter().filter_map(|(name, host)| catalog.user(name, host));
            defs.try_for_each(|role| may_change.check(role))?;
            let mut made = BTreeSet::new();
            let is_new = |(account, _): &(AccountId, NewPassword)| {
                catalog.user(&account.0, &account.1).is_none() && made.insert(account.clone())
            };
            Ok(given
                .into_iter()
                .filter(is_new)
                .map(|((name, host), password)| {
                    let mut user = UserDef::new(&name, &host);
                    apply(options, &mut user, now);
                    password.put(&mut user);
                    user.password.expired |= options.expire == Some(PasswordExpiry::Now);
                    user.roles.extend(roles.iter().map(|role| (role.clone(), false)));
                    user.default_roles.extend(roles.iter().cloned());
                    AccountChange::put(user)
                })
                .collect())
        })?;
        self.note_existing(&existing);
        Ok(())
    }

    fn alter_users(
        &mut self,
        users: &[UserSpec],
        if_exists: bool,
        options: &AccountOptions,
    ) -> Result<(), SqlError> {
        let given = self.new_passwords(users, options)?;
        let (own, now) = (self.account_name(&UserName::CurrentUser), self.clock_us());
        let may_change = self.may_change_system_users();
        let mut missing = Vec::new();
        self.change_accounts_told(if_exists, |catalog| {
            missing = named(catalog, given.iter().map(|(account, _)| account), false);
            if !missing.is_empty() && !if_exists {
                return Err(ErrorCode::CANNOT_USER.with(&[&"ALTER USER", &missing.join(",")]));
            }
            let mut changed = BTreeMap::new();
            for (spec, (account, password)) in users.iter().zip(given) {
                let Some(before) = catalog.user(&account.0, &account.1) else { continue };
                if account != own {
                    may_change.check(before)?;
                }
                let user = changed.entry(account).or_insert_with(|| UserDef::clone(before));
                apply(options, user, now);
                if spec.identifies() {
                    password.put(user);
                }
                if spec.discards {
                    user.retained = None;
                }
                user.password.expired |= options.expire == Some(PasswordExpiry::Now);
            }
            Ok(changed.into_values().map(AccountChange::put).collect())
        })?;
        self.note_missing(&missing);
        Ok(())
    }

    fn set_password(&mut self, spec: UserSpec) -> Result<(), SqlError> {
        let (name, host) = self.account_name(&spec.user);
        if self.catalog().user(&name, &host).is_none() {
            return Err(ErrorCode::PASSWORD_NO_MATCH.with(&[]));
        }
        self.alter_users(&[spec], false, &AccountOptions::default())
    }

    /// Accounts and roles are dropped alike: whoever was granted one loses it.
    fn drop_users(&mut self, operation: &str, users: &[UserName], if_exists: bool) -> Result<(), SqlError> {
        let accounts = self.account_ids(users);
        self.check_not_mandatory(&accounts)?;
        let may_change = self.may_change_system_users();
        let only_roles = !self.access().global().contains(Privileges::CREATE_USER);
        let mut missing = Vec::new();
        self.change_accounts(|catalog| {
            missing = twice_or(false, catalog, &accounts);
            if !missing.is_empty() && !if_exists {
                return Err(ErrorCode::CANNOT_USER.with(&[&operation, &missing.join(",")]));
            }
            let mut changed = Changed::new(catalog);
            for (name, host) in &accounts {
                if let Some(user) = catalog.user(name, host) {
                    may_change.check(user)?;
                    if only_roles && !is_role(user) {
                        return Err(needs_one_of(Privileges::CREATE_USER));
                    }
                    changed.remove(&user.id());
                }
            }
            Ok(changed.into_changes())
        })?;
        self.note_missing(&missing);
        Ok(())
    }

    fn rename_users(&mut self, pairs: &[(UserName, UserName)]) -> Result<(), SqlError> {
        let pairs: Vec<_> =
            pairs.iter().map(|(from, to)| (self.account_name(from), self.account_name(to))).collect();
        for (from, to) in &pairs {
            check_new_name(to)?;
            self.check_not_mandatory(std::slice::from_ref(from))?;
        }
        let may_change = self.may_change_system_users();
        self.change_accounts(|catalog| {
            let mut changed = Changed::new(catalog);
            let mut failed = Vec::new();
            for (from, to) in &pairs {
                if !changed.having(from).is_empty() || !changed.having(to).is_empty() {
                    return Err(ErrorCode::RENAME_ROLE.with(&[]));
                }
                match changed.get(from) {
                    Some(user) if changed.get(to).is_none() => {
                        may_change.check(&user)?;
                        changed.rename(&user, to);
                    }
                    _ => failed.push(format!("'{}'@'{}'", from.0, from.1)),
                }
            }
            match failed.is_empty() {
                true => Ok(changed.into_changes()),
                false => Err(ErrorCode::CANNOT_USER.with(&[&"RENAME USER", &failed.join(",")])),
            }
        })
    }

    pub(super) fn note_missing(&mut self, accounts: &[String]) {
        accounts.iter().for_each(|name| self.note(&ErrorCode::USER_DOES_NOT_EXIST.with(&[name])));
    }

    pub(super) fn note_existing(&mut self, accounts: &[String]) {
        accounts.iter().for_each(|name| self.note(&ErrorCode::USER_ALREADY_EXISTS.with(&[name])));
    }

    pub(super) fn warn_of(&mut self, error: &SqlError) {
        self.warn(Level::Warning, error.errno, error.message.clone());
    }
}

/// Whether an account can be taken for a role, as MySQL tells it: nobody signs in with it.
fn is_role(user: &UserDef) -> bool {
    user.locked
}

/// Whether an account can be made under a name. Without one it would be an anonymous account, as which MySQL signs in clients that
/// have none of their own.
fn check_new_name(account: &AccountId) -> Result<(), SqlError> {
    match account.0.is_empty() {
        true => Err(unsupported("anonymous accounts")),
        false => check_lengths(account),
    }
}

/// Error 1470 for names that `mysql.user` has no room for, and MySQL's replicas neither.
pub(super) fn check_lengths((name, host): &AccountId) -> Result<(), SqlError> {
    for (text, what, most) in [(name, "user name", MAX_USER_CHARS), (host, "host name", MAX_HOST_CHARS)] {
        if text.chars().count() > most {
            let shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
            return Err(ErrorCode::WRONG_STRING_LENGTH.with(&[&shown, &what, &most]));
        }
    }
    Ok(())
}

/// What a statement says of all its accounts, but for PASSWORD EXPIRE, which comes after a new password.
fn apply(options: &AccountOptions, user: &mut UserDef, now_us: i64) {
    user.locked = options.locked.unwrap_or(user.locked);
    let rules = &mut user.password;
    match options.expire {
        Some(PasswordExpiry::Days(days)) => rules.lifetime_days = Some(days),
        Some(PasswordExpiry::Default) => rules.lifetime_days = None,
        Some(PasswordExpiry::Now) | None => {}
    }
    if matches!(options.expire, Some(PasswordExpiry::Days(_) | PasswordExpiry::Default)) {
        rules.expired = false;
    }
    rules.history = options.history.unwrap_or(rules.history);
    rules.reuse_days = options.reuse_days.unwrap_or(rules.reuse_days);
    rules.require_current = options.require_current.unwrap_or(rules.require_current);
    let login = &mut user.login;
    *login = LoginRules {
        tls: match &options.tls {
            None => login.tls.clone(),
            Some(TlsRequirement::None) => TlsRule::None,
            Some(TlsRequirement::Ssl) => TlsRule::Encrypted,
            Some(TlsRequirement::X509) => TlsRule::Certificate,
            Some(TlsRequirement::Specified { subject, issuer, cipher }) => TlsRule::Certified {
                subject: subject.clone(),
                issuer: issuer.clone(),
                cipher: cipher.clone(),
            },
        },
        failed_attempts: options.failed_attempts.unwrap_or(login.failed_attempts),
        lock_days: options.lock_days.unwrap_or(login.lock_days),
        set_at: match options {
            AccountOptions { failed_attempts: None, lock_days: None, locked: None | Some(true), .. } => {
                login.set_at
            }
            _ => now_us,
        },
    };
}

/// Those of some accounts that there are, or that there are not.
pub(super) fn named<'a>(
    catalog: &Catalog,
    accounts: impl IntoIterator<Item = &'a AccountId>,
    existing: bool,
) -> Vec<String> {
    let is_wanted = |(name, host): &&AccountId| catalog.user(name, host).is_some() == existing;
    accounts.into_iter().filter(is_wanted).map(|(name, host)| format!("'{name}'@'{host}'")).collect()
}

/// Those that there are, or that there are not, and those that are named again: then the first time has made or dropped them.
pub(super) fn twice_or<'a>(
    existing: bool,
    catalog: &Catalog,
    accounts: impl IntoIterator<Item = &'a AccountId>,
) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut named = Vec::new();
    for account @ (name, host) in accounts {
        if catalog.user(name, host).is_some() == existing || !seen.insert(account) {
            named.push(format!("'{name}'@'{host}'"));
        }
    }
    named
}

/// Accounts as they become, over those of a catalog.
struct Changed<'c> {
    catalog: &'c Catalog,
    accounts: BTreeMap<AccountId, Option<UserDef>>,
}

impl<'c> Changed<'c> {
    fn new(catalog: &'c Catalog) -> Self {
        Self { catalog, accounts: BTreeMap::new() }
    }

    fn get(&self, id: &AccountId) -> Option<UserDef> {
        match self.accounts.get(id) {
            Some(changed) => changed.clone(),
            None => self.catalog.user(&id.0, &id.1).map(|user| UserDef::clone(user)),
        }
    }

    /// Those that were granted an account as a role.
    fn having(&self, role: &AccountId) -> Vec<UserDef> {
        let ids = self.catalog.users().map(|user| user.id()).chain(self.accounts.keys().cloned());
        let ids: std::collections::BTreeSet<_> = ids.collect();
        let has = |user: &UserDef| user.roles.contains_key(role) || user.default_roles.contains(role);
        ids.iter().filter_map(|id| self.get(id)).filter(has).collect()
    }

    fn put(&mut self, user: UserDef) {
        self.accounts.insert(user.id(), Some(user));
    }

    fn remove(&mut self, id: &AccountId) {
        for mut user in self.having(id) {
            user.lose_role(id);
            self.put(user);
        }
        self.accounts.insert(id.clone(), None);
    }

    /// Of an account that nobody has as a role.
    fn rename(&mut self, user: &UserDef, to: &AccountId) {
        self.accounts.insert(user.id(), None);
        self.put(UserDef { name: to.0.clone(), host: to.1.clone(), ..user.clone() });
    }

    fn into_changes(self) -> Vec<AccountChange> {
        let change = |((name, host), user)| match user {
            Some(user) => AccountChange::put(user),
            None => AccountChange::Drop { name, host },
        };
        self.accounts.into_iter().map(change).collect()
    }
}
