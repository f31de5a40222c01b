//! GRANT and REVOKE.

use avocet_engine::{AccountChange, Catalog, GrantScope, Privileges, UserDef};

use super::needs_one_of;
use crate::bind::unsupported;
use crate::error::{ErrorCode, SqlError};
use crate::parse::statement::{GrantTarget, PrivilegeSpec, UserName};
use crate::session::info_schema;
use crate::session::state::Session;

/// What a GRANT or REVOKE is about.
pub(in crate::session) struct Granted<'g> {
    pub privileges: &'g [PrivilegeSpec],
    pub on: &'g GrantTarget,
    pub users: &'g [UserName],
}

impl Session {
    pub(in crate::session) fn grant(&mut self, what: &Granted<'_>, option: bool) -> Result<(), SqlError> {
        let scope = self.scope_of(what.on)?;
        let mut privileges = privileges_on(&scope, what.privileges)?;
        self.check_may_grant(&scope, privileges)?;
        if let GrantScope::Table { database, table } = &scope {
            // CREATE may be granted for a table to come.
            let is_there = self.catalog().table(database, table).is_some();
            if !is_there && !privileges.contains(Privileges::CREATE) {
                return Err(ErrorCode::NO_SUCH_TABLE.with(&[database, table]));
            }
        }
        if option {
            privileges |= Privileges::GRANT;
        }
        let accounts = self.account_names(what.users);
        let may_change = self.may_change_system_users();
        self.change_accounts(|catalog| {
            let mut changes = Vec::new();
            for (name, host) in &accounts {
                let Some(before) = catalog.user(name, host) else {
                    return Err(ErrorCode::CANT_CREATE_USER_WITH_GRANT.with(&[]));
                };
                may_change.check(before)?;
                let mut user = UserDef::clone(before);
                user.grant(scope.clone(), privileges);
                changes.push(AccountChange::Put(user));
            }
            Ok(changes)
        })
    }

    pub(in crate::session) fn revoke(&mut self, what: &Granted<'_>, if_exists: bool) -> Result<(), SqlError> {
        let scope = self.scope_of(what.on)?;
        let privileges = privileges_on(&scope, what.privileges)?;
        self.check_may_grant(&scope, privileges)?;
        if scope == GrantScope::Global && what.privileges.contains(&PrivilegeSpec::All) {
            // MySQL takes whatever is granted on databases and tables with it, and GRANT OPTION.
            return self.revoke_all(what.users, if_exists);
        }
        let accounts = self.account_names(what.users);
        let may_change = self.may_change_system_users();
        let mut missing = Vec::new();
        self.change_accounts(|catalog| {
            let mut changes = Vec::new();
            for (name, host) in &accounts {
                let before = catalog.user(name, host);
                let mut user = before.map(|before| UserDef::clone(before));
                let held = user
                    .as_mut()
                    .is_some_and(|user| user.revoke(&scope, privileges) || scope == GrantScope::Global);
                if let (Some(before), Some(user), true) = (before, user, held) {
                    may_change.check(before)?;
                    changes.push(AccountChange::Put(user));
                    continue;
                }
                let error = match &scope {
                    GrantScope::Table { table, .. } => {
                        ErrorCode::NONEXISTING_TABLE_GRANT.with(&[name, host, table])
                    }
                    _ => ErrorCode::NONEXISTING_GRANT.with(&[name, host]),
                };
                if !if_exists {
                    return Err(error);
                }
                missing.push(error);
            }
            Ok(changes)
        })?;
        missing.iter().for_each(|error| self.warn_of(error));
        Ok(())
    }

    /// `REVOKE ALL PRIVILEGES, GRANT OPTION`
    pub(in crate::session) fn revoke_all(
        &mut self,
        from: &[UserName],
        if_exists: bool,
    ) -> Result<(), SqlError> {
        let accounts = self.account_names(from);
        let may_change = self.may_change_system_users();
        let mut missing = Vec::new();
        self.change_accounts(|catalog| {
            let mut changes = Vec::new();
            for (name, host) in &accounts {
                match catalog.user(name, host) {
                    Some(before) => {
                        may_change.check(before)?;
                        let grants = avocet_engine::Grants::new();
                        changes.push(AccountChange::Put(UserDef { grants, ..UserDef::clone(before) }));
                    }
                    None => missing.push(ErrorCode::NONEXISTING_GRANT.with(&[name, host])),
                }
            }
            match missing.first() {
                Some(_) if !if_exists => Err(ErrorCode::REVOKE_GRANTS.with(&[])),
                _ => Ok(changes),
            }
        })?;
        missing.iter().for_each(|error| self.warn_of(error));
        Ok(())
    }

    /// Changes accounts, all or none.
    pub(in crate::session) fn change_accounts(
        &self,
        decide: impl FnOnce(&Catalog) -> Result<Vec<AccountChange>, SqlError> + Send,
    ) -> Result<(), SqlError> {
        crate::turns::blocking(|| self.shared.engine.change_accounts(decide))
    }

    fn account_names(&self, users: &[UserName]) -> Vec<(String, String)> {
        users.iter().map(|user| self.account_name(user)).collect()
    }

    fn scope_of(&self, on: &GrantTarget) -> Result<GrantScope, SqlError> {
        Ok(match on {
            GrantTarget::All => GrantScope::Global,
            GrantTarget::CurrentDatabase => GrantScope::Database(self.current_database()?.to_owned()),
            GrantTarget::Database(pattern) => GrantScope::Database(pattern.clone()),
            GrantTarget::Table(name) => GrantScope::Table {
                database: match &name.database {
                    Some(database) => database.name.clone(),
                    None => self.current_database()?.to_owned(),
                },
                table: name.name.name.clone(),
            },
        })
    }

    /// Who grants or revokes holds the same, and GRANT OPTION beside it.
    fn check_may_grant(&mut self, scope: &GrantScope, privileges: Privileges) -> Result<(), SqlError> {
        let access = self.access();
        let all = privileges | Privileges::GRANT;
        match scope {
            GrantScope::Global if access.global().contains(all) => Ok(()),
            GrantScope::Global => Err(self.account_denied()),
            GrantScope::Database(database) | GrantScope::Table { database, .. }
                if info_schema::is_schema(database) =>
            {
                Err(self.database_denied(database))
            }
            // For a pattern, what is held on each database that it can mean: the same pattern's, or everybody's.
            GrantScope::Database(pattern) => match access.on_pattern(pattern).contains(all) {
                true => Ok(()),
                false => Err(self.database_denied(pattern)),
            },
            GrantScope::Table { database, table } => {
                let missing = all.without(access.on_table(database, table));
                if missing.is_empty() { Ok(()) } else { Err(self.table_denied(&missing, table)) }
            }
        }
    }

    /// Whether the session may change accounts that hold SYSTEM_USER.
    pub(in crate::session) fn may_change_system_users(&mut self) -> MayChange {
        MayChange(self.access().global().contains(Privileges::SYSTEM_USER))
    }
}

/// Whether accounts that hold SYSTEM_USER may be changed: else CREATE USER alone would be as good as everything.
#[derive(Clone, Copy)]
pub(in crate::session) struct MayChange(bool);

impl MayChange {
    pub fn check(self, account: &UserDef) -> Result<(), SqlError> {
        let global = account.grants.get(&GrantScope::Global).copied().unwrap_or_default();
        match self.0 || !global.intersects(Privileges::SYSTEM_USER) {
            true => Ok(()),
            false => Err(needs_one_of(Privileges::SYSTEM_USER)),
        }
    }
}

/// The privileges that a statement names, if they may be granted on this.
fn privileges_on(scope: &GrantScope, specs: &[PrivilegeSpec]) -> Result<Privileges, SqlError> {
    let possible = match scope {
        GrantScope::Global => Privileges::ALL,
        GrantScope::Database(_) => Privileges::OF_DATABASES,
        GrantScope::Table { .. } => Privileges::OF_TABLES,
    };
    let mut privileges = Privileges::NONE;
    for spec in specs {
        privileges |= match spec {
            PrivilegeSpec::All => possible.without(Privileges::GRANT),
            PrivilegeSpec::Named(name) if name == "USAGE" => Privileges::NONE,
            PrivilegeSpec::Named(name) => {
                Privileges::by_name(name).ok_or_else(|| unsupported(format_args!("the privilege {name}")))?
            }
        };
    }
    if possible.contains(privileges) {
        return Ok(privileges);
    }
    let dynamic = privileges.and(Privileges::DYNAMIC);
    Err(match scope {
        _ if !dynamic.is_empty() => ErrorCode::ILLEGAL_PRIVILEGE_LEVEL.with(&[&dynamic]),
        GrantScope::Database(_) => ErrorCode::WRONG_USAGE.with(&[&"DB GRANT", &"GLOBAL PRIVILEGES"]),
        _ => ErrorCode::ILLEGAL_GRANT_FOR_TABLE.with(&[]),
    })
}
