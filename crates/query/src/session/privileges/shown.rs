//! SHOW GRANTS, SHOW CREATE USER, and what lists of databases, tables and connections leave out.

use std::sync::Arc;

use avocet_engine::{Catalog, GrantScope, Privileges, TableHandle, UserDef};

use super::{Access, needs, specificity};
use crate::error::{ErrorCode, SqlError};
use crate::parse::statement::UserName;
use crate::session::api::ConnectionRow;
use crate::session::output::{Rowset, text, varchar};
use crate::session::state::Session;

impl Session {
    pub(in crate::session) fn show_grants(&mut self, user: Option<&UserName>) -> Result<Rowset, SqlError> {
        let (name, host) = self.shown_account(user, |session| session.table_denied(&"SELECT", "user"))?;
        let catalog = self.catalog();
        let account =
            catalog.user(&name, &host).ok_or_else(|| ErrorCode::NONEXISTING_GRANT.with(&[&name, &host]))?;
        let mut rows = Rowset::new("", &[(&format!("Grants for {name}@{host}"), varchar(1024))]);
        grants_of(account).into_iter().for_each(|line| rows.push(vec![text(line)]));
        Ok(rows)
    }

    pub(in crate::session) fn show_create_user(
        &mut self,
        user: Option<&UserName>,
    ) -> Result<Rowset, SqlError> {
        let (name, host) = self.shown_account(user, |session| session.database_denied("mysql"))?;
        let catalog = self.catalog();
        let Some(user) = catalog.user(&name, &host) else {
            return Err(
                ErrorCode::CANNOT_USER.with(&[&"SHOW CREATE USER", &format_args!("'{name}'@'{host}'")])
            );
        };
        let mut rows = Rowset::new("", &[(&format!("CREATE USER for {name}@{host}"), varchar(1024))]);
        let auth = String::from_utf8_lossy(&user.auth).replace('\\', "\\\\").replace('\'', "''");
        let auth = if auth.is_empty() { auth } else { format!(" AS '{auth}'") };
        let lock = if user.locked { "LOCK" } else { "UNLOCK" };
        rows.push(vec![text(format!(
            "CREATE USER {} IDENTIFIED WITH '{}'{auth} REQUIRE NONE PASSWORD EXPIRE DEFAULT ACCOUNT {lock} PASSWORD \
             HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE CURRENT DEFAULT",
            quoted(&name, &host),
            user.plugin
        ))]);
        Ok(rows)
    }

    /// Everybody may see what is said of the own account; of others, who may read the grant tables.
    fn shown_account(
        &mut self,
        user: Option<&UserName>,
        denied: impl Fn(&Self) -> SqlError,
    ) -> Result<(String, String), SqlError> {
        let user = user.unwrap_or(&UserName::CurrentUser);
        if !needs::is_own(user, &self.info.account)
            && !self.access().on_database("mysql").contains(Privileges::SELECT)
        {
            return Err(denied(self));
        }
        Ok(self.account_name(user))
    }

    /// What the account may do, for lists of what it may see. SHOW and information_schema are read within a statement,
    /// which has brought it up to date.
    pub(in crate::session) fn seen(&self) -> &Access {
        &self.access
    }

    /// The connections that the account may know of: its own, or all with PROCESS.
    pub(in crate::session) fn seen_connections(&self) -> Vec<ConnectionRow> {
        let mut all = self.info.connections.list();
        if !self.access.global().intersects(Privileges::PROCESS) {
            all.retain(|connection| connection.user == self.info.account.user);
        }
        all
    }

    /// Fails if the account may not kill a connection: one of another user takes more than one's own.
    pub(in crate::session) fn check_may_kill(&mut self, id: u32) -> Result<(), SqlError> {
        let admin = Privileges::SUPER | Privileges::CONNECTION_ADMIN;
        if self.access().global().intersects(admin) {
            return Ok(());
        }
        let connections = self.info.connections.list();
        let found = connections.iter().find(|connection| connection.id == id);
        match found {
            Some(connection) if connection.user != self.info.account.user => {
                Err(ErrorCode::KILL_DENIED_ERROR.with(&[&id]))
            }
            _ => Ok(()),
        }
    }

    /// The tables that the account may know of.
    pub(in crate::session) fn seen_tables<'c>(
        &'c self,
        catalog: &'c Catalog,
    ) -> impl Iterator<Item = &'c Arc<TableHandle>> {
        let sees = |table: &&Arc<TableHandle>| {
            !table.is_unfinished() && self.access.sees_table(&table.def.database, &table.def.name)
        };
        catalog.tables().filter(sees)
    }
}

/// The statements that grant what an account holds.
fn grants_of(account: &UserDef) -> Vec<String> {
    let to = quoted(&account.name, &account.host);
    let line = |what: &dyn std::fmt::Display, on: &str, option: bool| {
        let option = if option { " WITH GRANT OPTION" } else { "" };
        format!("GRANT {what} ON {on} TO {to}{option}")
    };
    let global = account.grants.get(&GrantScope::Global).copied().unwrap_or_default();
    let option = global.intersects(Privileges::GRANT);
    let plain = global.and(Privileges::STATIC).without(Privileges::GRANT);
    let mut lines = vec![match plain.is_empty() {
        true => line(&"USAGE", "*.*", option),
        false => line(&plain, "*.*", option),
    }];
    let dynamic = global.and(Privileges::DYNAMIC);
    if !dynamic.is_empty() {
        lines.push(line(&dynamic.names().collect::<Vec<_>>().join(","), "*.*", option));
    }
    // As MySQL lists them: databases, then patterns of databases, then tables.
    let rank = |scope: &GrantScope| match scope {
        GrantScope::Global => 0,
        GrantScope::Database(pattern) => 1 + u8::from(specificity(pattern) < usize::MAX),
        GrantScope::Table { .. } => 3,
    };
    let mut grants: Vec<_> = account.grants.iter().collect();
    grants.sort_by_key(|(scope, _)| rank(scope));
    for (scope, privileges) in grants {
        let (on, possible) = match scope {
            GrantScope::Global => continue,
            GrantScope::Database(pattern) => (format!("{}.*", quote(pattern)), Privileges::OF_DATABASES),
            GrantScope::Table { database, table } => {
                (format!("{}.{}", quote(database), quote(table)), Privileges::OF_TABLES)
            }
        };
        let option = privileges.intersects(Privileges::GRANT);
        let plain = privileges.without(Privileges::GRANT);
        let all = possible.without(Privileges::GRANT);
        lines.push(match plain {
            plain if plain.is_empty() => line(&"USAGE", &on, option),
            plain if plain == all => line(&"ALL PRIVILEGES", &on, option),
            plain => line(&plain, &on, option),
        });
    }
    lines
}

fn quote(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn quoted(name: &str, host: &str) -> String {
    format!("{}@{}", quote(name), quote(host))
}
