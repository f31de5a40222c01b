//! GRANT and REVOKE of privileges.

use std::collections::BTreeMap;

use avocet_engine::{AccountChange, AccountId, Catalog, GrantScope, Privileges, UserDef};
use avocet_sql::bind::unsupported;
use avocet_sql::parse::ast::ObjectName;
use avocet_sql::parse::statement::{GrantTarget, PrivilegeSpec, RevokeHow, UserName};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::names;

use super::needs_one_of;
use super::shown::tell_accounts;
use crate::info_schema;
use crate::state::Session;

/// What a GRANT or REVOKE is about.
pub(crate) struct Granted<'g> {
    pub privileges: &'g [PrivilegeSpec],
    pub on: &'g GrantTarget,
    pub users: &'g [UserName],
}

/// The privileges of a GRANT or REVOKE: on the whole of its scope, and on columns by their names in lower case.
#[derive(Debug, Default)]
struct Specified {
    /// ALL was written, for whatever there is on the scope.
    all: bool,
    whole: Privileges,
    columns: BTreeMap<String, Privileges>,
}

impl Specified {
    /// The scopes that it is about, with what is granted on them.
    fn scopes(&self, scope: &GrantScope) -> Vec<(GrantScope, Privileges)> {
        let mut scopes = Vec::new();
        if !self.whole.is_empty() || self.columns.is_empty() {
            scopes.push((scope.clone(), self.whole));
        }
        if let GrantScope::Table { database, table } = scope {
            for (column, privileges) in &self.columns {
                let (database, table, column) = (database.clone(), table.clone(), column.clone());
                scopes.push((GrantScope::Column { database, table, column }, *privileges));
            }
        }
        scopes
    }
}

impl Session {
    pub(crate) fn grant(&mut self, what: &Granted<'_>, option: bool) -> Result<(), SqlError> {
        let scope = self.scope_of(what.on)?;
        let mut specified = privileges_on(&scope, what.privileges)?;
        self.check_may_grant(&scope, &specified)?;
        self.check_is_there(&scope, &specified)?;
        if option {
            specified.whole |= Privileges::GRANT;
        }
        let accounts = self.account_ids(what.users);
        if specified.whole.intersects(Privileges::SYSTEM_USER) {
            self.check_none_mandatory(&accounts)?;
        }
        let may_change = self.may_change_system_users();
        let inherited = match scope {
            GrantScope::Global => self.access().restrictions(),
            _ => BTreeMap::new(),
        };
        self.change_accounts(|catalog| {
            let mut changes = Vec::new();
            for (name, host) in &accounts {
                let Some(before) = catalog.user(name, host) else {
                    return Err(ErrorCode::CANT_CREATE_USER_WITH_GRANT.with(&[]));
                };
                may_change.check(before)?;
                let mut user = UserDef::clone(before);
                for (scope, mut privileges) in specified.scopes(&scope) {
                    match &scope {
                        // Nobody gives what they are restricted in; who had it without restrictions keeps it so.
                        GrantScope::Global => {
                            for database in before.restrictions.keys() {
                                let kept = inherited.get(database).copied().unwrap_or_default();
                                user.lift(database, privileges.without(kept));
                            }
                            let new = privileges.without(before.global());
                            inherited
                                .iter()
                                .for_each(|(database, all)| user.restrict(database, all.and(new)));
                        }
                        GrantScope::Database(database) => {
                            privileges = privileges.without(user.lift(database, privileges));
                        }
                        _ => {}
                    }
                    user.grant(scope, privileges);
                }
                changes.push(AccountChange::put(user));
            }
            Ok(changes)
        })
    }

    pub(crate) fn revoke(&mut self, what: &Granted<'_>, how: RevokeHow) -> Result<(), SqlError> {
        let scope = self.scope_of(what.on)?;
        let specified = privileges_on(&scope, what.privileges)?;
        if scope == GrantScope::Global && what.privileges.contains(&PrivilegeSpec::All) {
            let access = self.access();
            if !access.is_embedded() && !access.global().contains(Privileges::CREATE_USER) {
                return Err(needs_one_of(Privileges::CREATE_USER));
            }
            // MySQL takes whatever is granted on databases and tables with it, and GRANT OPTION.
            return self.revoke_all(what.users, how);
        }
        self.check_may_grant(&scope, &specified)?;
        let accounts = self.account_ids(what.users);
        let may_change = self.may_change_system_users();
        let restricts = self.shared.globals.settings().partial_revokes;
        let mut warnings = Vec::new();
        self.change_accounts(|catalog| {
            let mut changes = Vec::new();
            for (name, host) in &accounts {
                let Some(before) = catalog.user(name, host) else {
                    if !how.ignore_unknown {
                        return Err(no_such_grant(&scope, name, host));
                    }
                    warnings.push(ErrorCode::USER_DOES_NOT_EXIST.with(&[name]));
                    continue;
                };
                let missing = missing(before, &scope, &specified, restricts);
                if missing > 0 {
                    let error = no_such_grant(&scope, name, host);
                    if !how.if_exists {
                        return Err(error);
                    }
                    warnings.extend(std::iter::repeat_n(error, missing));
                }
                may_change.check(before)?;
                let mut user = UserDef::clone(before);
                take(&mut user, &scope, &specified, restricts);
                changes.push(AccountChange::put(user));
            }
            Ok(changes)
        })?;
        warnings.iter().for_each(|error| self.warn_of(error));
        Ok(())
    }

    /// `REVOKE ALL PRIVILEGES, GRANT OPTION`: roles stay.
    pub(crate) fn revoke_all(&mut self, from: &[UserName], how: RevokeHow) -> Result<(), SqlError> {
        let accounts = self.account_ids(from);
        let may_change = self.may_change_system_users();
        let mut warnings = Vec::new();
        self.change_accounts(|catalog| {
            let mut changes = Vec::new();
            for (name, host) in &accounts {
                match catalog.user(name, host) {
                    Some(before) => {
                        may_change.check(before)?;
                        let mut user = UserDef::clone(before);
                        user.grants.clear();
                        user.restrictions.clear();
                        changes.push(AccountChange::put(user));
                    }
                    None if how.ignore_unknown => {
                        warnings.push(ErrorCode::USER_DOES_NOT_EXIST.with(&[name]));
                    }
                    None => return Err(ErrorCode::REVOKE_GRANTS.with(&[])),
                }
            }
            Ok(changes)
        })?;
        warnings.iter().for_each(|error| self.warn_of(error));
        Ok(())
    }

    /// Changes accounts, all or none.
    pub(crate) fn change_accounts(
        &self,
        decide: impl FnOnce(&Catalog) -> Result<Vec<AccountChange>, SqlError> + Send,
    ) -> Result<(), SqlError> {
        self.change_accounts_told(false, decide)
    }

    /// The same; followers are told IF NOT EXISTS or IF EXISTS, too, if the statement has it.
    pub(crate) fn change_accounts_told(
        &self,
        if_it_fits: bool,
        decide: impl FnOnce(&Catalog) -> Result<Vec<AccountChange>, SqlError> + Send,
    ) -> Result<(), SqlError> {
        avocet_channel::blocking::blocking(|| {
            self.shared.engine.change_accounts(|catalog| {
                let changes = decide(catalog)?;
                tell_accounts(catalog, &changes, if_it_fits);
                Ok(changes)
            })
        })
    }

    pub(crate) fn account_ids(&self, users: &[UserName]) -> Vec<AccountId> {
        users.iter().map(|user| self.account_name(user)).collect()
    }

    fn scope_of(&self, on: &GrantTarget) -> Result<GrantScope, SqlError> {
        let database_of = |name: &ObjectName| match &name.database {
            Some(database) => Ok(database.name.clone()),
            None => self.current_database().map(str::to_owned),
        };
        Ok(match on {
            GrantTarget::All => GrantScope::Global,
            GrantTarget::CurrentDatabase => GrantScope::Database(self.current_database()?.to_owned()),
            GrantTarget::Database(pattern) => GrantScope::Database(pattern.clone()),
            GrantTarget::Table(name) => {
                GrantScope::Table { database: database_of(name)?, table: name.name.name.clone() }
            }
            GrantTarget::Procedure(name) => GrantScope::Procedure {
                database: database_of(name)?,
                procedure: name.name.name.to_lowercase(),
            },
        })
    }

    /// Who grants or revokes holds the same, and GRANT OPTION beside it.
    fn check_may_grant(&mut self, scope: &GrantScope, specified: &Specified) -> Result<(), SqlError> {
        let access = self.access();
        if access.is_embedded() {
            return Ok(());
        }
        let all = specified.whole | Privileges::GRANT;
        match scope {
            GrantScope::Global if access.global().contains(all) => Ok(()),
            GrantScope::Global
                if Privileges::DYNAMIC.contains(specified.whole) && !specified.whole.is_empty() =>
            {
                Err(needs_one_of(Privileges::GRANT))
            }
            GrantScope::Global => Err(self.account_denied()),
            GrantScope::Database(database)
            | GrantScope::Table { database, .. }
            | GrantScope::Column { database, .. }
            | GrantScope::Procedure { database, .. }
                if info_schema::is_open(database) =>
            {
                Err(self.database_denied(database))
            }
            // For a pattern, what is held on each database that it can mean: the same pattern's, or everybody's.
            GrantScope::Database(pattern) => match access.on_pattern(pattern).contains(all) {
                true => Ok(()),
                false => Err(self.database_denied(pattern)),
            },
            GrantScope::Table { database, table } | GrantScope::Column { database, table, .. } => {
                let missing = all.without(access.on_table(database, table));
                let missing_on = |(column, privileges): (&String, &Privileges)| {
                    let missing = privileges.without(access.on_column(database, table, column));
                    (!missing.is_empty()).then(|| (column.clone(), missing))
                };
                let column = specified.columns.iter().find_map(missing_on);
                match column {
                    _ if !missing.is_empty() => Err(self.table_denied(&missing, table)),
                    Some((column, missing)) => Err(self.column_denied(missing, table, &column)),
                    None => Ok(()),
                }
            }
            GrantScope::Procedure { database, procedure } => {
                match access.on_procedure(database, procedure).contains(all) {
                    true => Ok(()),
                    false => Err(self.routine_denied("grant", database, procedure)),
                }
            }
        }
    }

    /// Fails if there is no such table, column or procedure.
    fn check_is_there(&self, scope: &GrantScope, specified: &Specified) -> Result<(), SqlError> {
        match scope {
            GrantScope::Table { database, table } => match self.catalog().relation(database, table) {
                Some(found) => {
                    let missing = specified.columns.keys().find(|column| found.def.column(column).is_none());
                    missing.map_or(Ok(()), |column| Err(ErrorCode::BAD_FIELD_ERROR.with(&[column, table])))
                }
                // CREATE may be granted for a table to come.
                None if specified.whole.contains(Privileges::CREATE) => Ok(()),
                None => Err(ErrorCode::NO_SUCH_TABLE.with(&[database, table])),
            },
            GrantScope::Procedure { database, procedure } => {
                self.shared.engine.procedure(database, procedure)?;
                Ok(())
            }
            GrantScope::Global | GrantScope::Database(_) | GrantScope::Column { .. } => Ok(()),
        }
    }

    /// Whether the session may change accounts that hold SYSTEM_USER.
    pub(crate) fn may_change_system_users(&mut self) -> MayChange {
        MayChange(self.access().global().contains(Privileges::SYSTEM_USER))
    }
}

/// How much of what is to be taken an account does not hold: nothing if all of it is there; for ALL, anything on that scope will do,
/// and of a table's privileges, some of its columns'.
fn missing(user: &UserDef, scope: &GrantScope, specified: &Specified, restricts: bool) -> usize {
    let on = |scope: &GrantScope| user.grants.get(scope).copied();
    let lacks = |held: Privileges| usize::from(!specified.all && !held.contains(specified.whole));
    match scope {
        GrantScope::Global => 0,
        GrantScope::Database(_) => {
            let held = on(scope);
            let global = if restricts { user.global() } else { Privileges::NONE };
            match specified.all {
                true => usize::from(held.is_none() && !global.intersects(specified.whole)),
                false => lacks(held.unwrap_or_default() | global),
            }
        }
        GrantScope::Table { database, table } => {
            let of_columns = columns_of(user, database, table).map(|(_, held)| *held);
            let held = on(scope).into_iter().chain(of_columns).reduce(|one, other| one | other);
            let Some(held) = held else { return 1 };
            let lacks_on = |(column, privileges): &(&String, &Privileges)| {
                let (database, table, column) = (database.clone(), table.clone(), (*column).clone());
                let held = on(&GrantScope::Column { database, table, column });
                !held.is_some_and(|held| held.contains(**privileges))
            };
            lacks(held) + specified.columns.iter().filter(lacks_on).count()
        }
        GrantScope::Column { .. } | GrantScope::Procedure { .. } => on(scope).map_or(1, lacks),
    }
}

/// What an account holds on single columns of a table.
fn columns_of<'u>(
    user: &'u UserDef,
    database: &'u str,
    table: &'u str,
) -> impl Iterator<Item = (&'u GrantScope, &'u Privileges)> {
    user.grants.iter().filter(move |(scope, _)| {
        matches!(scope, GrantScope::Column { database: d, table: t, .. } if d == database && t == table)
    })
}

/// Takes privileges from an account, as far as it holds them.
fn take(user: &mut UserDef, scope: &GrantScope, specified: &Specified, restricts: bool) {
    for (scope, privileges) in specified.scopes(scope) {
        user.revoke(&scope, privileges);
        match &scope {
            // What is not held at all needs no restriction.
            GrantScope::Global => {
                for database in user.restrictions.keys().cloned().collect::<Vec<_>>() {
                    user.lift(&database, privileges);
                }
            }
            GrantScope::Database(database) if restricts => {
                user.restrict(database, user.global().and(privileges));
            }
            // What is taken from a table is taken from its columns.
            GrantScope::Table { database, table } => {
                let columns: Vec<_> =
                    columns_of(user, database, table).map(|(scope, _)| scope.clone()).collect();
                for column in columns {
                    user.revoke(&column, privileges);
                }
            }
            GrantScope::Database(_) | GrantScope::Column { .. } | GrantScope::Procedure { .. } => {}
        }
    }
}

fn no_such_grant(scope: &GrantScope, name: &str, host: &str) -> SqlError {
    match scope {
        GrantScope::Table { table, .. } | GrantScope::Column { table, .. } => {
            ErrorCode::NONEXISTING_TABLE_GRANT.with(&[&name, &host, table])
        }
        GrantScope::Procedure { procedure, .. } => {
            ErrorCode::NONEXISTING_PROC_GRANT.with(&[&name, &host, procedure])
        }
        GrantScope::Global | GrantScope::Database(_) => ErrorCode::NONEXISTING_GRANT.with(&[&name, &host]),
    }
}

/// Whether accounts that hold SYSTEM_USER may be changed: else CREATE USER alone would be as good as everything.
#[derive(Clone, Copy)]
pub(crate) struct MayChange(bool);

impl MayChange {
    pub fn check(self, account: &UserDef) -> Result<(), SqlError> {
        match self.0 || !account.global().intersects(Privileges::SYSTEM_USER) {
            true => Ok(()),
            false => Err(needs_one_of(Privileges::SYSTEM_USER)),
        }
    }
}

/// The privileges that a statement names, if they may be granted on this.
fn privileges_on(scope: &GrantScope, specs: &[PrivilegeSpec]) -> Result<Specified, SqlError> {
    let possible = match scope {
        GrantScope::Global => Privileges::ALL,
        GrantScope::Database(_) => Privileges::OF_DATABASES,
        GrantScope::Table { .. } | GrantScope::Column { .. } => Privileges::OF_TABLES,
        GrantScope::Procedure { .. } => Privileges::OF_ROUTINES,
    };
    let by_name = |name: &str| {
        Privileges::by_name(name).ok_or_else(|| unsupported(format_args!("the privilege {name}")))
    };
    let mut specified = Specified::default();
    for spec in specs {
        specified.all |= *spec == PrivilegeSpec::All;
        specified.whole |= match spec {
            PrivilegeSpec::All => possible.without(Privileges::GRANT),
            PrivilegeSpec::Named(name) if name == "USAGE" => Privileges::NONE,
            PrivilegeSpec::Named(name) => by_name(name)?,
            PrivilegeSpec::OnColumns { name, columns } => {
                if !matches!(scope, GrantScope::Table { .. }) {
                    return Err(ErrorCode::ILLEGAL_GRANT_FOR_TABLE.with(&[]));
                }
                let privilege = by_name(name)?;
                for column in columns {
                    *specified.columns.entry(names::fold(&column.name).into_owned()).or_default() |=
                        privilege;
                }
                Privileges::NONE
            }
        };
    }
    if possible.contains(specified.whole) {
        return Ok(specified);
    }
    let dynamic = specified.whole.and(Privileges::DYNAMIC);
    Err(match scope {
        _ if !dynamic.is_empty() => ErrorCode::ILLEGAL_PRIVILEGE_LEVEL.with(&[&dynamic]),
        GrantScope::Database(_) => ErrorCode::WRONG_USAGE.with(&[&"DB GRANT", &"GLOBAL PRIVILEGES"]),
        _ => ErrorCode::ILLEGAL_GRANT_FOR_TABLE.with(&[]),
    })
}
