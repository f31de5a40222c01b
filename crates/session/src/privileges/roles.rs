//! Roles: accounts that are granted to accounts.
//!
//! A role counts for a session while it is active. Those that an account may activate are the ones that it was granted
//! itself, and those that are mandatory for everybody; an active role brings the roles that it was granted with it.

use std::collections::BTreeSet;

use avocet_engine::{AccountChange, AccountId, Catalog, Privileges, UserDef};
use avocet_sql::parse::statement::{RevokeHow, RoleSet, UserName};
use avocet_types::error::{ErrorCode, SqlError};

use super::access::identities_of;
use crate::accounts::{check_lengths, twice_or};
use crate::role_names::{parse_roles, quoted};
use crate::state::Session;

impl Session {
    /// The roles that the account may make active: its own, and the mandatory ones that there are.
    pub(super) fn roles_of(&self, catalog: &Catalog, account: &UserDef) -> BTreeSet<AccountId> {
        let settings = self.shared.globals.settings();
        let is_there = |(name, host): &&AccountId| catalog.user(name, host).is_some();
        let mandatory = settings.mandatory_roles.iter().filter(is_there);
        account.roles.keys().chain(mandatory).filter(|role| **role != account.id()).cloned().collect()
    }

    /// Makes those roles active that are when a session begins.
    pub(crate) fn begin_roles(&mut self) {
        let catalog = self.catalog();
        let own = &self.info.account;
        let Some(account) = catalog.user(&own.user, &own.host) else { return };
        let roles = match self.shared.globals.settings().activates_all_roles {
            true => self.roles_of(&catalog, account),
            false => account.default_roles.clone(),
        };
        if !self.access.is_embedded() {
            self.activate(&catalog, roles.into_iter().collect());
        }
    }

    fn activate(&mut self, catalog: &Catalog, roles: Vec<AccountId>) {
        let expired = self.access.must_change_password();
        let settings = self.shared.globals.settings();
        let access =
            super::Access::of_account(catalog, &self.info.account, &roles, &settings.mandatory_roles);
        self.access = access.with_expired_password(expired);
        self.note_rights();
    }

    pub(crate) fn set_role(&mut self, roles: &RoleSet) -> Result<(), SqlError> {
        let catalog = self.catalog();
        let own = &self.info.account;
        let Some(account) = catalog.user(&own.user, &own.host) else {
            return Err(ErrorCode::UNKNOWN_AUTHID.with(&[&own.user, &own.host]));
        };
        let held = self.roles_of(&catalog, account);
        let chosen = match roles {
            RoleSet::None => BTreeSet::new(),
            RoleSet::Default => account.default_roles.clone(),
            RoleSet::All => held,
            RoleSet::AllExcept(names) => {
                let except = self.held_roles(&held, names, account)?;
                held.difference(&except).cloned().collect()
            }
            RoleSet::List(names) => self.held_roles(&held, names, account)?,
        };
        self.activate(&catalog, chosen.into_iter().collect());
        Ok(())
    }

    /// Those that are named, if the account has them.
    pub(super) fn held_roles(
        &self,
        held: &BTreeSet<AccountId>,
        names: &[UserName],
        account: &UserDef,
    ) -> Result<BTreeSet<AccountId>, SqlError> {
        let roles: BTreeSet<_> = names.iter().map(|name| self.account_name(name)).collect();
        match roles.iter().find(|role| !held.contains(*role)) {
            Some(missing) => {
                Err(ErrorCode::ROLE_NOT_GRANTED.with(&[&quoted(missing), &quoted(&account.id())]))
            }
            None => Ok(roles),
        }
    }

    pub(crate) fn set_default_role(
        &mut self,
        roles: &RoleSet,
        users: &[UserName],
        if_exists: bool,
    ) -> Result<(), SqlError> {
        let accounts = self.account_ids(users);
        let own = self.account_name(&UserName::CurrentUser);
        let may_change = self.may_change_system_users();
        let mut missing = Vec::new();
        let session = &*self;
        session.change_accounts(|catalog| {
            let mut changes = Vec::new();
            for id in &accounts {
                let Some(before) = catalog.user(&id.0, &id.1) else {
                    if !if_exists {
                        let RoleSet::List(names) = roles else {
                            return Err(ErrorCode::UNKNOWN_AUTHID.with(&[&id.0, &id.1]));
                        };
                        let nobody = UserDef::new(&id.0, &id.1);
                        session.held_roles(&BTreeSet::new(), names, &nobody)?;
                    }
                    missing.push(format!("'{}'@'{}'", id.0, id.1));
                    continue;
                };
                if *id != own {
                    may_change.check(before)?;
                }
                let held = session.roles_of(catalog, before);
                let mut user = UserDef::clone(before);
                user.default_roles = match roles {
                    RoleSet::All | RoleSet::AllExcept(_) => held,
                    RoleSet::None | RoleSet::Default => BTreeSet::new(),
                    RoleSet::List(names) => session.held_roles(&held, names, before)?,
                };
                changes.push(AccountChange::put(user));
            }
            Ok(changes)
        })?;
        self.note_missing(&missing);
        Ok(())
    }

    pub(crate) fn create_roles(&mut self, roles: &[UserName], if_not_exists: bool) -> Result<(), SqlError> {
        let roles = self.account_ids(roles);
        for role in &roles {
            if role.0.is_empty() {
                return Err(ErrorCode::CANNOT_USER.with(&[&"CREATE ROLE", &"anonymous user"]));
            }
            check_lengths(role)?;
        }
        let mut existing = Vec::new();
        self.change_accounts(|catalog| {
            existing = twice_or(true, catalog, &roles);
            if !existing.is_empty() && !if_not_exists {
                return Err(ErrorCode::CANNOT_USER.with(&[&"CREATE ROLE", &existing.join(",")]));
            }
            let new: BTreeSet<_> =
                roles.iter().filter(|(name, host)| catalog.user(name, host).is_none()).collect();
            Ok(new
                .into_iter()
                .map(|(name, host)| {
                    let mut role = UserDef { locked: true, ..UserDef::new(name, host) };
                    role.password.expired = true;
                    AccountChange::put(role)
                })
                .collect())
        })?;
        self.note_existing(&existing);
        Ok(())
    }

    /// Who may grant a role, may revoke it.
    pub(crate) fn check_may_grant_roles(&mut self, roles: &[AccountId]) -> Result<(), SqlError> {
        let access = self.access();
        if access.is_embedded() || access.global().intersects(Privileges::ROLE_ADMIN | Privileges::SUPER) {
            return Ok(());
        }
        let has_admin_option = |role: &AccountId| access.may_grant_role(role);
        if roles.iter().all(has_admin_option) {
            return Ok(());
        }
        Err(ErrorCode::SPECIFIC_ACCESS_DENIED_ERROR.with(&[&"WITH ADMIN, ROLE_ADMIN, SUPER"]))
    }

    pub(crate) fn grant_roles(
        &mut self,
        roles: &[UserName],
        to: &[UserName],
        admin_option: bool,
    ) -> Result<(), SqlError> {
        let (roles, to) = (self.account_ids(roles), self.account_ids(to));
        self.check_may_grant_roles(&roles)?;
        let may_change = self.may_change_system_users();
        self.change_accounts(|catalog| {
            let known = |id: &AccountId| match catalog.user(&id.0, &id.1) {
                Some(user) => Ok(user),
                None => Err(ErrorCode::UNKNOWN_AUTHID.with(&[&id.0, &id.1])),
            };
            let mut changes = Vec::new();
            for id in &to {
                let before = known(id)?;
                may_change.check(before)?;
                let mut user = UserDef::clone(before);
                for role in &roles {
                    may_change.check(known(role)?)?;
                    if reaches(catalog, role, id) {
                        return Err(ErrorCode::ROLE_GRANTED_TO_ITSELF.with(&[&quoted(id), &quoted(role)]));
                    }
                    *user.roles.entry(role.clone()).or_default() |= admin_option;
                }
                changes.push(AccountChange::put(user));
            }
            Ok(changes)
        })
    }

    pub(crate) fn revoke_roles(
        &mut self,
        roles: &[UserName],
        from: &[UserName],
        how: RevokeHow,
    ) -> Result<(), SqlError> {
        let (roles, from) = (self.account_ids(roles), self.account_ids(from));
        self.check_may_grant_roles(&roles)?;
        self.check_not_mandatory(&roles)?;
        let may_change = self.may_change_system_users();
        let mut warnings = Vec::new();
        self.change_accounts(|catalog| {
            let mut changes = Vec::new();
            for id in &from {
                let Some(before) = catalog.user(&id.0, &id.1) else {
                    if !how.ignore_unknown {
                        return Err(ErrorCode::UNKNOWN_AUTHID.with(&[&id.0, &id.1]));
                    }
                    warnings.push(ErrorCode::USER_DOES_NOT_EXIST.with(&[&id.0]));
                    continue;
                };
                may_change.check(before)?;
                let mut user = UserDef::clone(before);
                for role in &roles {
                    user.lose_role(role);
                    if catalog.user(&role.0, &role.1).is_none() {
                        let error = ErrorCode::UNKNOWN_AUTHID.with(&[&role.0, &role.1]);
                        if !how.if_exists {
                            return Err(error);
                        }
                        warnings.push(error);
                    }
                }
                changes.push(AccountChange::put(user));
            }
            Ok(changes)
        })?;
        warnings.iter().for_each(|error| self.warn_of(error));
        Ok(())
    }

    /// Fails if one of the roles that a text names brings SYSTEM_USER with it: nobody's account could be changed without it any more.
    pub(crate) fn check_may_be_mandatory(&self, roles: &str) -> Result<(), SqlError> {
        let catalog = self.stored_catalog();
        for role in parse_roles(roles).unwrap_or_default() {
            let Some(account) = catalog.user(&role.0, &role.1) else { continue };
            let all = identities_of(&catalog, account, account.roles.keys());
            if all.iter().any(|identity| identity.global().intersects(Privileges::SYSTEM_USER)) {
                return Err(ErrorCode::SYSTEM_PRIVILEGE_IN_MANDATORY_ROLES
                    .with(&[&quoted(&role), &Privileges::SYSTEM_USER]));
            }
        }
        Ok(())
    }

    /// Fails if one of the accounts that are to get SYSTEM_USER is a role of everybody's.
    pub(super) fn check_none_mandatory(&self, accounts: &[AccountId]) -> Result<(), SqlError> {
        let settings = self.shared.globals.settings();
        match accounts.iter().find(|account| settings.mandatory_roles.contains(account)) {
            Some(role) => Err(ErrorCode::SYSTEM_PRIVILEGE_TO_MANDATORY_ROLE
                .with(&[&quoted(role), &Privileges::SYSTEM_USER])),
            None => Ok(()),
        }
    }

    /// Fails if one of some roles is mandatory.
    pub(crate) fn check_not_mandatory(&self, roles: &[AccountId]) -> Result<(), SqlError> {
        let settings = self.shared.globals.settings();
        match roles.iter().find(|role| settings.mandatory_roles.contains(role)) {
            Some(role) => Err(ErrorCode::MANDATORY_ROLE.with(&[&quoted(role)])),
            None => Ok(()),
        }
    }
}

/// Whether one account is another, or was granted it by whatever ways.
fn reaches(catalog: &Catalog, from: &AccountId, to: &AccountId) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![from.clone()];
    while let Some(id) = waiting.pop() {
        if id == *to {
            return true;
        }
        if let Some(user) = catalog.user(&id.0, &id.1).filter(|_| seen.insert(id.clone())) {
            waiting.extend(user.roles.keys().cloned());
        }
    }
    false
}
