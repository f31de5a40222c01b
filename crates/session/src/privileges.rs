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
//!    table gets the same answer whether there is one or not. Which columns are meant is looked up only for who may do
//!    something with the table.
//! 3. A password that has expired lets nothing pass but its change.

pub(super) mod access;
mod grant;
pub(super) mod needs;
mod reader;
mod reads;
mod roles;
mod shown;
mod through;

use avocet_engine::Privileges;

use super::api::AccountName;
use super::schemas;
use super::state::Session;

pub(super) use access::Access;
use avocet_sql::parse::statement::{StatementKind, UserName};
use avocet_types::error::{ErrorCode, SqlError};
pub(super) use grant::Granted;
pub(super) use needs::Need;

/// What the names in a need mean.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// The session's temporary tables, and what is stored.
    OfSession,
    /// What is stored alone: texts of views never mean a temporary table.
    OfViews,
}

impl Session {
    /// What the account may do as of now.
    pub(super) fn access(&mut self) -> &Access {
        if self.access.is_stale(self.shared.engine.catalog_version()) {
            let (catalog, settings) = (self.catalog(), self.shared.globals.settings());
            self.access.refresh(&catalog, &self.info.account, &settings.mandatory_roles);
            self.note_rights();
        }
        &self.access
    }

    /// Fails if the account may not run a statement.
    pub(super) fn check_privileges(&mut self, kind: &StatementKind) -> Result<(), SqlError> {
        let access = self.access();
        if access.must_change_password() {
            self.check_changes_password(kind)?;
        } else if access.unrestricted && !self.catalog().has_views() {
            return Ok(());
        }
        let mut needs = self.needs_of(kind).into_vec();
        let names_stored = matches!(
            kind,
            StatementKind::RenameTable(_)
                | StatementKind::DropView { .. }
                | StatementKind::Grant { .. }
                | StatementKind::Revoke { .. }
        );
        if !self.temporary.is_empty() && !names_stored {
            needs.retain(|need| !self.is_of_temporary_table(need));
        }
        self.check_needs(&needs)
    }

    /// Fails if the account may not know of a table's columns.
    pub(super) fn check_may_see(&mut self, database: &str, table: &str) -> Result<(), SqlError> {
        if self.temporary.has(database, table) {
            return Ok(());
        }
        let (database, table) = (database.to_owned(), table.to_owned());
        self.check_needs(&[Need::Listed { database, table }])
    }

    /// What a statement needs that is to be compiled.
    pub(super) fn needs_of(&self, kind: &StatementKind) -> Box<[Need]> {
        let mut needs = needs::of(kind, self.database.as_deref(), &self.info.account);
        let through = through::needs_through_views(&self.catalog(), &self.stored_catalog(), kind, &needs);
        needs.extend(through);
        needs.into()
    }

    /// Fails if something is missing, as it does for a compiled plan.
    pub(super) fn check_needs_of_plan(&mut self, needs: &[Need]) -> Result<(), SqlError> {
        if self.access().must_change_password() {
            return Err(ErrorCode::MUST_CHANGE_PASSWORD.with(&[]));
        }
        if self.temporary.is_empty() {
            return self.check_needs(needs);
        }
        let is_stored = |need: &&Need| !self.is_of_temporary_table(need);
        let needs: Vec<Need> = needs.iter().filter(is_stored).cloned().collect();
        self.check_needs(&needs)
    }

    /// Whether what a statement needs is on a temporary table: that was made with a privilege of its own, more is not asked
    /// for. What names a stored table all the same is not exempt: see [`Need::is_of_stored`].
    fn is_of_temporary_table(&self, need: &Need) -> bool {
        let is_temporary = |(database, table)| self.temporary.has(database, table);
        !need.is_of_stored() && need.table().is_some_and(is_temporary)
    }

    pub(super) fn check_needs(&mut self, needs: &[Need]) -> Result<(), SqlError> {
        if self.access().unrestricted {
            // What a definer lacks, nobody gets through the view.
            let through = |need: &&Need| matches!(need, Need::Through(_));
            return needs.iter().filter(through).try_for_each(|need| self.check_through(need));
        }
        for need in needs {
            match need {
                Need::Through(_) => self.check_through(need)?,
                _ => self.check_need(&self.access, need, Names::OfSession)?,
            }
        }
        Ok(())
    }

    pub(super) fn check_need(&self, access: &Access, need: &Need, names: Names) -> Result<(), SqlError> {
        let catalog = || match names {
            Names::OfSession if !need.is_of_stored() => self.catalog(),
            _ => self.stored_catalog(),
        };
        match need {
            Need::Server { any } if !access.global().intersects(*any) => Err(needs_one_of(*any)),
            Need::File if !access.global().intersects(Privileges::FILE) => Err(self.account_denied()),
            Need::Database { database, all } => {
                let held =
                    if schemas::is_open(database) { Privileges::NONE } else { access.on_database(database) };
                if held.contains(*all) { Ok(()) } else { Err(self.database_denied(database)) }
            }
            Need::Use { database } if !access.may_use(database) => Err(self.database_denied(database)),
            Need::Table { all, database, .. } if schemas::is_open(database) => {
                if Privileges::SELECT.contains(*all) { Ok(()) } else { Err(self.database_denied(database)) }
            }
            Need::Table { database, table, all } => {
                let missing = all.without(access.on_table(database, table));
                if missing.is_empty() { Ok(()) } else { Err(self.table_denied(&missing, table)) }
            }
            Need::AnyOnTable { database, table, any, said } => {
                let held = access.on_some_column(database, table);
                let is_there = schemas::is_open(database) || held.intersects(*any);
                if is_there { Ok(()) } else { Err(self.table_denied(said, table)) }
            }
            Need::Listed { database, table } => {
                let is_there = schemas::is_open(database)
                    || access.on_database(database).contains(Privileges::SELECT)
                    || access.of_table(database, table).intersects(Privileges::OF_TABLES);
                if is_there { Ok(()) } else { Err(self.table_denied(&"SELECT", table)) }
            }
            Need::Definition { database, table } => {
                let held = access.on_table(database, table).intersects(Privileges::OF_TABLES);
                let is_there = schemas::is_open(database) || held;
                if is_there { Ok(()) } else { Err(self.table_denied(&"SHOW", table)) }
            }
            Need::Columns { all, database, .. } if schemas::is_open(database) => {
                if Privileges::SELECT.contains(*all) { Ok(()) } else { Err(self.database_denied(database)) }
            }
            Need::Columns { database, table, all } => {
                let missing = all.without(access.on_some_column(database, table));
                if missing.is_empty() { Ok(()) } else { Err(self.table_denied(&missing, table)) }
            }
            Need::Column { database, table, column, privilege } => {
                if access.on_table(database, table).contains(*privilege) {
                    return Ok(());
                }
                let may = |name: &str| access.on_column(database, table, name).contains(*privilege);
                let Some(found) = catalog().relation(database, table).cloned() else { return Ok(()) };
                match column {
                    Some(name) if may(name) || found.def.column(name).is_none() => Ok(()),
                    Some(name) => Err(self.column_denied(*privilege, table, name)),
                    None if found.def.own_columns().iter().all(|column| may(&column.name)) => Ok(()),
                    None => Err(self.table_denied(privilege, table)),
                }
            }
            Need::Explained { database, table } => {
                let all = Privileges::SELECT | Privileges::SHOW_VIEW;
                match access.on_table(database, table).contains(all) {
                    true => Ok(()),
                    false => Err(ErrorCode::VIEW_NO_EXPLAIN.with(&[])),
                }
            }
            Need::Reads(reads) => {
                let is_free = |database: &str, table: &str| {
                    names == Names::OfSession && self.temporary.has(database, table)
                };
                reads.check(access, &catalog(), &is_free).map_err(|denied| match denied.column {
                    Some(column) => self.column_denied(Privileges::SELECT, &denied.table, &column),
                    None => self.table_denied(&Privileges::SELECT, &denied.table),
                })
            }
            Need::Routine { database, routine, privilege } => {
                if access.on_procedure(database, routine).contains(*privilege) {
                    return Ok(());
                }
                let command = privilege.to_string().to_lowercase();
                Err(self.routine_denied(&command, database, routine))
            }
            Need::Server { .. } | Need::File | Need::Use { .. } | Need::Through(_) => Ok(()),
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

    fn column_denied(&self, privilege: Privileges, table: &str, column: &str) -> SqlError {
        let (user, host) = (&self.info.account.user, &self.info.client_host);
        ErrorCode::COLUMNACCESS_DENIED_ERROR.with(&[&privilege, user, host, &column, &table])
    }

    fn routine_denied(&self, command: &str, database: &str, routine: &str) -> SqlError {
        let AccountName { user, host } = &self.info.account;
        let name = format_args!("{database}.{routine}");
        ErrorCode::PROCACCESS_DENIED_ERROR.with(&[&command, user, host, &name])
    }

    /// Whoever has to change the password may do nothing else.
    fn check_changes_password(&self, kind: &StatementKind) -> Result<(), SqlError> {
        let own = |user: &UserName| needs::is_own(user, &self.info.account);
        let changes = match kind {
            StatementKind::SetPassword { user, .. } => user.as_ref().is_none_or(own),
            StatementKind::AlterUser { users, .. } => {
                matches!(users.as_slice(), [spec] if own(&spec.user) && spec.identifies())
            }
            // Clients send these before they let their users do anything.
            StatementKind::Set(_) => true,
            _ => false,
        };
        if changes { Ok(()) } else { Err(ErrorCode::MUST_CHANGE_PASSWORD.with(&[])) }
    }

    fn table_denied(&self, command: &dyn std::fmt::Display, table: &str) -> SqlError {
        let (user, host) = (&self.info.account.user, &self.info.client_host);
        ErrorCode::TABLEACCESS_DENIED_ERROR.with(&[command, user, host, &table])
    }
}

/// 1227
pub(crate) fn needs_one_of(any: Privileges) -> SqlError {
    let names: Vec<_> = any.names().collect();
    ErrorCode::SPECIFIC_ACCESS_DENIED_ERROR.with(&[&names.join(" or ")])
}
