//! Privileges: what the account of a session may do.
//!
//! ```text
//!  statement ──needs.rs──▶ needs ──▶ held by the account?      general path: before each statement
//!                            │
//!                            └── kept with the compiled plan   point path: before each run
//!
//!  catalog (accounts with their grants) ──▶ Access             made anew when the catalog's version says so
//! ```
//!
//! A session looks at the catalog's version before it decides, so a GRANT or REVOKE holds for the next statement of every
//! connection, prepared ones included. Who may do everything is known by one flag.
//!
//! Invariants:
//! 1. Every kind of statement is listed in `needs`, without a wildcard: a new one does not compile before somebody has
//!    decided what it needs.
//! 2. Needs follow from the statement's text and the default database alone, never from what exists: who may not see a
//!    table gets the same answer whether there is one or not.

mod grant;
mod needs;
mod shown;
mod tables;

use std::collections::HashMap;
use std::sync::Arc;

use avocet_engine::{Catalog, GrantScope, Privileges, UserDef};
use avocet_types::Collation;
use avocet_types::collation::LikePattern;

use super::api::AccountName;
use super::info_schema;
use super::state::Session;
use crate::error::{ErrorCode, SqlError};
use crate::parse::statement::StatementKind;
pub(super) use grant::Granted;
pub(super) use needs::Need;

/// The privileges of one account, as of one version of the catalog.
pub(super) struct Access {
    /// Whether there is nothing to be asked: an embedded session, or an account that holds all.
    unrestricted: bool,
    /// An embedded session: no account decides.
    is_embedded: bool,
    version: u64,
    account: Option<Arc<UserDef>>,
    global: Privileges,
    /// By pattern, the most specific first.
    databases: Vec<OfDatabase>,
    /// By database and name.
    tables: HashMap<String, HashMap<String, Privileges>>,
}

/// What is granted on the databases that a pattern means.
struct OfDatabase {
    pattern: String,
    like: LikePattern,
    privileges: Privileges,
}

impl OfDatabase {
    fn new(pattern: &str, privileges: Privileges) -> Self {
        let like = LikePattern::new(pattern, Some('\\'), Collation::BINARY);
        Self { pattern: pattern.to_owned(), like, privileges }
    }

    fn means(&self, database: &str) -> bool {
        self.pattern == database || self.like.matches(database)
    }
}

impl Access {
    /// Of a session within this process.
    pub fn embedded() -> Self {
        Self { unrestricted: true, is_embedded: true, global: Privileges::ALL, ..Self::of(None, 0) }
    }

    /// Of an account; none if there is no such account.
    pub fn of_account(catalog: &Catalog, name: &AccountName) -> Self {
        Self::of(catalog.user(&name.user, &name.host).cloned(), catalog.version())
    }

    fn of(account: Option<Arc<UserDef>>, version: u64) -> Self {
        let mut access = Self {
            unrestricted: false,
            is_embedded: false,
            version,
            account: None,
            global: Privileges::NONE,
            databases: Vec::new(),
            tables: HashMap::new(),
        };
        let Some(account) = account else { return access };
        for (scope, privileges) in &account.grants {
            match scope {
                GrantScope::Global => access.global = *privileges,
                GrantScope::Database(pattern) => access.databases.push(OfDatabase::new(pattern, *privileges)),
                GrantScope::Table { database, table } => {
                    access.tables.entry(database.clone()).or_default().insert(table.clone(), *privileges);
                }
            }
        }
        access.databases.sort_by_key(|of| std::cmp::Reverse(specificity(&of.pattern)));
        access.unrestricted = access.global == Privileges::ALL;
        access.account = Some(account);
        access
    }

    pub fn global(&self) -> Privileges {
        self.global
    }

    /// On all of a database, by what is granted for it or for all of them.
    pub fn on_database(&self, database: &str) -> Privileges {
        let of_pattern = self.databases.iter().find(|of| of.means(database));
        self.global | of_pattern.map_or(Privileges::NONE, |of| of.privileges)
    }

    /// On every database that a pattern means, as far as that can be told: what the same pattern was granted, or, of a
    /// pattern without wildcards, what is held on its one database.
    fn on_pattern(&self, pattern: &str) -> Privileges {
        if specificity(pattern) == usize::MAX {
            return self.on_database(&pattern.replace('\\', ""));
        }
        let same = self.databases.iter().find(|of| of.pattern == pattern);
        self.global | same.map_or(Privileges::NONE, |of| of.privileges)
    }

    pub fn on_table(&self, database: &str, table: &str) -> Privileges {
        let own = self.tables.get(database).and_then(|tables| tables.get(table));
        self.on_database(database) | own.copied().unwrap_or_default()
    }

    /// Whether there is anything in a database that the account may do something with.
    pub fn may_use(&self, database: &str) -> bool {
        self.unrestricted
            || info_schema::is_schema(database)
            || self.on_database(database).intersects(Privileges::OF_DATABASES)
            || self.tables.contains_key(database)
    }

    /// Whether SHOW DATABASES lists it.
    pub fn sees_database(&self, database: &str) -> bool {
        self.global.intersects(Privileges::SHOW_DATABASES) || self.may_use(database)
    }

    /// Whether lists of tables have it.
    pub fn sees_table(&self, database: &str, table: &str) -> bool {
        self.unrestricted
            || info_schema::is_schema(database)
            || self.on_table(database, table).intersects(Privileges::OF_TABLES)
    }
}

/// Literal characters before the first wildcard; a pattern without one beats all that have one.
fn specificity(pattern: &str) -> usize {
    let mut escaped = false;
    for (at, c) in pattern.char_indices() {
        match c {
            '\\' if !escaped => escaped = true,
            '%' | '_' if !escaped => return at,
            _ => escaped = false,
        }
    }
    usize::MAX
}

impl Session {
    /// What the account may do as of now.
    pub(super) fn access(&mut self) -> &Access {
        let version = self.shared.engine.catalog_version();
        if self.access.version != version && !self.access.is_embedded {
            let catalog = self.catalog();
            let account = catalog.user(&self.info.account.user, &self.info.account.host);
            let is_same = match (account, &self.access.account) {
                (Some(now), Some(before)) => Arc::ptr_eq(now, before),
                (None, None) => true,
                _ => false,
            };
            match is_same {
                true => self.access.version = catalog.version(),
                false => self.access = Access::of_account(&catalog, &self.info.account),
            }
        }
        &self.access
    }

    /// Fails if the account may not run a statement.
    pub(super) fn check_privileges(&mut self, kind: &StatementKind) -> Result<(), SqlError> {
        if self.access().unrestricted {
            return Ok(());
        }
        self.check_needs(&needs::of(kind, self.database.as_deref(), &self.info.account))
    }

    /// Fails if the account may not know of a table's columns.
    pub(super) fn check_may_see(&mut self, database: &str, table: &str) -> Result<(), SqlError> {
        let (database, table) = (database.to_owned(), table.to_owned());
        let any = Privileges::OF_TABLES;
        self.check_needs(&[Need::AnyOnTable { database, table, any, said: "SELECT" }])
    }

    /// What a statement needs that is to be compiled.
    pub(super) fn needs_of(&self, kind: &StatementKind) -> Box<[Need]> {
        needs::of(kind, self.database.as_deref(), &self.info.account).into()
    }

    pub(super) fn check_needs(&mut self, needs: &[Need]) -> Result<(), SqlError> {
        if self.access().unrestricted {
            return Ok(());
        }
        needs.iter().try_for_each(|need| self.check_need(need))
    }

    fn check_need(&self, need: &Need) -> Result<(), SqlError> {
        let (access, account) = (&self.access, &self.info.account);
        match need {
            Need::Server { any } if !access.global.intersects(*any) => Err(needs_one_of(*any)),
            Need::File if !access.global.intersects(Privileges::FILE) => Err(self.account_denied()),
            Need::Database { database, all } => {
                let held = if info_schema::is_schema(database) {
                    Privileges::NONE
                } else {
                    access.on_database(database)
                };
                if held.contains(*all) { Ok(()) } else { Err(self.database_denied(database)) }
            }
            Need::Use { database } if !access.may_use(database) => Err(self.database_denied(database)),
            Need::Table { all, database, .. } if info_schema::is_schema(database) => {
                if Privileges::SELECT.contains(*all) { Ok(()) } else { Err(self.database_denied(database)) }
            }
            Need::Table { database, table, all } => {
                let missing = all.without(access.on_table(database, table));
                if missing.is_empty() { Ok(()) } else { Err(self.table_denied(&missing, table)) }
            }
            Need::AnyOnTable { database, table, any, said } => {
                let held = access.on_table(database, table);
                let is_there = info_schema::is_schema(database) || held.intersects(*any);
                if is_there { Ok(()) } else { Err(self.table_denied(said, table)) }
            }
            Need::Column { database, table, column, privilege } => {
                if access.on_table(database, table).contains(*privilege) {
                    return Ok(());
                }
                let (user, host) = (&account.user, &self.info.client_host);
                Err(ErrorCode::COLUMNACCESS_DENIED_ERROR.with(&[privilege, user, host, column, table]))
            }
            Need::FreeColumn { column, inner, others } => {
                let catalog = self.catalog();
                let has = |(database, table): &&(String, String)| {
                    let table = catalog.table(database, table);
                    table.is_some_and(|table| table.def.column(column).is_some())
                };
                if inner.iter().any(|table| has(&table)) {
                    return Ok(());
                }
                others.iter().filter(has).try_for_each(|(database, table)| {
                    let (database, table, column) = (database.clone(), table.clone(), column.clone());
                    self.check_need(&Need::Column { database, table, column, privilege: Privileges::SELECT })
                })
            }
            Need::Routine { database, routine } => {
                if access.on_database(database).contains(Privileges::EXECUTE) {
                    return Ok(());
                }
                let name = format_args!("{database}.{routine}");
                Err(ErrorCode::PROCACCESS_DENIED_ERROR.with(&[
                    &"execute",
                    &account.user,
                    &account.host,
                    &name,
                ]))
            }
            Need::Server { .. } | Need::File | Need::Use { .. } => Ok(()),
        }
    }

    /// 1045
    fn account_denied(&self) -> SqlError {
        let AccountName { user, host } = &self.info.account;
        ErrorCode::ACCESS_DENIED_ERROR.with(&[user, host, &"YES"])
    }

    pub(super) fn database_denied(&self, database: &str) -> SqlError {
        let AccountName { user, host } = &self.info.account;
        ErrorCode::DBACCESS_DENIED_ERROR.with(&[user, host, &database])
    }

    fn table_denied(&self, command: &dyn std::fmt::Display, table: &str) -> SqlError {
        let (user, host) = (&self.info.account.user, &self.info.client_host);
        ErrorCode::TABLEACCESS_DENIED_ERROR.with(&[command, user, host, &table])
    }
}

/// 1227
pub(super) fn needs_one_of(any: Privileges) -> SqlError {
    let names: Vec<_> = any.names().collect();
    ErrorCode::SPECIFIC_ACCESS_DENIED_ERROR.with(&[&names.join(" or ")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_pattern_decides() {
        let mut user = UserDef::new("u", "%");
        user.grant(GrantScope::Database("%".into()), Privileges::SELECT);
        user.grant(GrantScope::Database("app%".into()), Privileges::INSERT);
        user.grant(GrantScope::Database("app\\_1".into()), Privileges::DELETE);
        let table = GrantScope::Table { database: "app2".into(), table: "t".into() };
        user.grant(table, Privileges::DROP);
        let access = Access::of(Some(Arc::new(user)), 1);
        assert_eq!(access.on_database("other"), Privileges::SELECT);
        assert_eq!(access.on_database("app2"), Privileges::INSERT);
        assert_eq!(access.on_database("app_1"), Privileges::DELETE);
        assert_eq!(access.on_database("appx1"), Privileges::INSERT);
        assert_eq!(access.on_table("app2", "t"), Privileges::INSERT | Privileges::DROP);
        assert_eq!(access.on_table("app2", "T"), Privileges::INSERT);
        assert!(!access.unrestricted);
    }

    #[test]
    fn an_account_without_grants_sees_nothing() {
        let access = Access::of(Some(Arc::new(UserDef::new("u", "%"))), 1);
        assert!(!access.may_use("d") && !access.sees_database("d") && !access.sees_table("d", "t"));
        assert!(access.may_use("information_schema") && access.sees_table("INFORMATION_SCHEMA", "TABLES"));
        let nobody = Access::of(None, 1);
        assert!(!nobody.unrestricted && nobody.global().is_empty());
        assert!(Access::embedded().unrestricted);
    }
}
