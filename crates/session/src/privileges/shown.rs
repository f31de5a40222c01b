//! SHOW GRANTS, SHOW CREATE USER, and what lists of databases, tables and connections leave out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use avocet_engine::{
    AccountChange, AccountId, Catalog, GrantScope, Grants, Privileges, TableHandle, TlsRule, UserDef,
    change_statement,
};
use avocet_sql::parse::statement::UserName;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::SqlMode;
use avocet_types::schema::TableDef;

use super::access::{Access, identities_of, specificity};
use super::needs;
use crate::api::{AccountName, ConnectionRow};
use crate::output::{Rowset, text, varchar};
use crate::role_names::quoted;
use crate::sql_mode::as_read_in;
use crate::state::Session;

impl Session {
    /// SHOW GRANTS: of the session's account without a name, as it is with its active roles.
    pub(crate) fn show_grants(
        &mut self,
        user: Option<&UserName>,
        using: &[UserName],
    ) -> Result<Rowset, SqlError> {
        let (name, host) = self.shown_account(user, |session| session.table_denied(&"SELECT", "user"))?;
        let catalog = self.catalog();
        let account =
            catalog.user(&name, &host).ok_or_else(|| ErrorCode::NONEXISTING_GRANT.with(&[&name, &host]))?;
        let is_session = matches!(user, None | Some(UserName::CurrentUser));
        // Mandatory roles are told to those who have them.
        let held = match is_session {
            true => self.roles_of(&catalog, account),
            false => account.roles.keys().cloned().collect(),
        };
        let using = match is_session && using.is_empty() {
            true => self.access.roles().iter().cloned().collect(),
            false => self.held_roles(&held, using, account)?,
        };
        let mut rows = Rowset::new("", &[(&format!("Grants for {name}@{host}"), varchar(1024))]);
        grants_of(&catalog, account, &held, &using).into_iter().for_each(|line| rows.push(vec![text(line)]));
        Ok(rows)
    }

    pub(crate) fn show_create_user(&mut self, user: Option<&UserName>) -> Result<Rowset, SqlError> {
        let (name, host) = self.shown_account(user, |session| session.database_denied("mysql"))?;
        let sees_secrets = self.access().on_database("mysql").contains(Privileges::SELECT);
        let catalog = self.catalog();
        let Some(user) = catalog.user(&name, &host) else {
            return Err(
                ErrorCode::CANNOT_USER.with(&[&"SHOW CREATE USER", &format_args!("'{name}'@'{host}'")])
            );
        };
        let mut rows = Rowset::new("", &[(&format!("CREATE USER for {name}@{host}"), varchar(1024))]);
        let password = if sees_secrets { Password::Shown } else { Password::Hidden };
        rows.push(vec![text(definition_of(user, password))]);
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
    pub(crate) fn seen(&self) -> &Access {
        &self.access
    }

    /// Whether it may know what others run.
    pub(crate) fn sees_statements_of_others(&self) -> bool {
        !self.is_behind_front && self.access.global().intersects(Privileges::PROCESS)
    }

    /// Whether the account may see what SHOW REPLICA STATUS tells.
    pub(crate) fn may_see_replication(&self) -> bool {
        let needed = Privileges::SUPER | Privileges::REPLICATION_CLIENT;
        self.is_behind_front || self.access.global().intersects(needed)
    }

    /// The connections that the account may know of: its own, or all with PROCESS.
    pub(crate) fn seen_connections(&self) -> Vec<ConnectionRow> {
        let mut all = self.info.connections.list();
        if !self.access.global().intersects(Privileges::PROCESS) {
            all.retain(|connection| connection.user == self.info.account.user);
        }
        all
    }

    /// Fails if the account may not kill a connection: one of another user takes more than one's own, and one of an account
    /// that holds SYSTEM_USER takes that.
    pub(crate) fn check_may_kill(&mut self, id: u32) -> Result<(), SqlError> {
        let access = self.access();
        if access.is_embedded() {
            return Ok(());
        }
        let global = access.global();
        let connections = self.info.connections.list();
        let Some(found) = connections.iter().find(|connection| connection.id == id) else { return Ok(()) };
        let is_own = found.user == self.info.account.user;
        let may = is_own || global.intersects(Privileges::SUPER | Privileges::CONNECTION_ADMIN);
        let is_protected = || {
            let account = found.account.as_ref();
            account.is_some_and(|account| self.is_system_user(account))
        };
        match may && (global.contains(Privileges::SYSTEM_USER) || !is_protected()) {
            true => Ok(()),
            false => Err(ErrorCode::KILL_DENIED_ERROR.with(&[&id])),
        }
    }

    /// Whether an account holds SYSTEM_USER, itself or by a role that it may make active.
    pub(crate) fn is_system_user(&self, account: &AccountName) -> bool {
        let catalog = self.catalog();
        let Some(account) = catalog.user(&account.user, &account.host) else { return false };
        let roles = self.roles_of(&catalog, account);
        let identities = identities_of(&catalog, account, &roles);
        identities.iter().any(|identity| identity.global().intersects(Privileges::SYSTEM_USER))
    }

    /// The tables that the account may know of.
    pub(crate) fn seen_tables<'c>(
        &'c self,
        catalog: &'c Catalog,
    ) -> impl Iterator<Item = &'c Arc<TableHandle>> {
        let sees = |table: &&Arc<TableHandle>| {
            !table.is_unfinished() && self.access.sees_table(&table.def.database, &table.def.name)
        };
        catalog.tables().filter(sees)
    }

    /// The views that the account may see.
    pub(crate) fn seen_views<'c>(
        &'c self,
        catalog: &'c Catalog,
    ) -> impl Iterator<Item = &'c Arc<TableHandle>> {
        let sees = |view: &&Arc<TableHandle>| self.access.sees_table(&view.def.database, &view.def.name);
        catalog.views().filter(sees)
    }

    /// Whether the account may see what a view is made of.
    pub(crate) fn may_show_view(&self, view: &TableDef) -> bool {
        let held = self.access.on_table(&view.database, &view.name);
        self.access.unrestricted || held.contains(Privileges::SHOW_VIEW | Privileges::SELECT)
    }
}

/// A statement that has passwords in it is told as what becomes of the accounts; with IF [NOT] EXISTS, if it had that: a follower
/// may have other accounts.
pub(super) fn tell_accounts(catalog: &Catalog, changes: &[AccountChange], if_it_fits: bool) {
    change_statement(|statement| {
        if !statement.texts.is_empty() {
            return;
        }
        // Printed with escapes.
        statement.sql_mode = as_read_in(statement.sql_mode, SqlMode(0));
        for change in changes {
            let AccountChange::Put(user) = change else { continue };
            let words = |words: [&'static str; 2]| words[usize::from(if_it_fits)];
            let definition = match catalog.user(&user.name, &user.host) {
                None => {
                    let create = words(["CREATE USER", "CREATE USER IF NOT EXISTS"]);
                    definition_of(user, Password::Shown).replacen("CREATE USER", create, 1)
                }
                Some(_) => {
                    let mut user = (**user).clone();
                    user.default_roles.clear();
                    let alter = words(["ALTER USER", "ALTER USER IF EXISTS"]);
                    // A MySQL takes no password at all for one that has expired.
                    definition_of(&user, Password::Told).replacen("CREATE USER", alter, 1)
                }
            };
            statement.texts.push(definition);
        }
    });
}

/// How much of a password a definition has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Password {
    /// What is kept of it, for who may read the grant tables.
    Shown,
    Hidden,
    /// As shown, and that there is none.
    Told,
}

/// The statement that makes an account, but for its privileges.
fn definition_of(user: &UserDef, password: Password) -> String {
    let mut line = format!("CREATE USER {} IDENTIFIED WITH '{}'", quoted(&user.id()), user.plugin);
    if !user.auth.is_empty() && password == Password::Hidden {
        line.push_str(" AS <secret>");
    } else if !user.auth.is_empty() || password == Password::Told {
        let _ = write!(line, " AS {}", string(&String::from_utf8_lossy(&user.auth)));
    }
    if !user.default_roles.is_empty() {
        let _ = write!(line, " DEFAULT ROLE {}", list(&user.default_roles));
    }
    let or_default = |value: Option<u32>, unit: &str| match value {
        None => "DEFAULT".to_owned(),
        Some(value) => format!("{value}{unit}"),
    };
    let rules = &user.password;
    let tls = match &user.login.tls {
        TlsRule::None => "NONE".to_owned(),
        TlsRule::Encrypted => "SSL".to_owned(),
        TlsRule::Certificate => "X509".to_owned(),
        TlsRule::Certified { subject, issuer, cipher } => {
            let options = [("SUBJECT", subject), ("ISSUER", issuer), ("CIPHER", cipher)];
            let given = options.iter().filter(|(_, text)| !text.is_empty());
            let texts: Vec<_> = given.map(|(option, text)| format!("{option} {}", string(text))).collect();
            texts.join(" ")
        }
    };
    let expire = match rules.lifetime_days {
        _ if rules.expired => String::new(),
        None => " DEFAULT".to_owned(),
        Some(0) => " NEVER".to_owned(),
        Some(days) => format!(" INTERVAL {days} DAY"),
    };
    let lock = if user.locked { "LOCK" } else { "UNLOCK" };
    let current = match rules.require_current {
        None => " DEFAULT",
        Some(false) => " OPTIONAL",
        Some(true) => "",
    };
    let _ = write!(
        line,
        " REQUIRE {tls} PASSWORD EXPIRE{expire} ACCOUNT {lock} PASSWORD HISTORY {} PASSWORD REUSE INTERVAL {} PASSWORD \
         REQUIRE CURRENT{current}",
        or_default(rules.history, ""),
        or_default(rules.reuse_days, " DAY"),
    );
    if user.login.failed_attempts > 0 || user.login.lock_days != Some(0) {
        let days = user.login.lock_days.map_or("UNBOUNDED".to_owned(), |days| days.to_string());
        let _ =
            write!(line, " FAILED_LOGIN_ATTEMPTS {} PASSWORD_LOCK_TIME {days}", user.login.failed_attempts);
    }
    line
}

/// The statements that grant what an account holds, with some of its roles active.
fn grants_of(
    catalog: &Catalog,
    account: &UserDef,
    held: &BTreeSet<AccountId>,
    using: &BTreeSet<AccountId>,
) -> Vec<String> {
    let identities = identities_of(catalog, account, using);
    let mut grants = Grants::new();
    for identity in &identities {
        for (scope, privileges) in &identity.grants {
            *grants.entry(scope.clone()).or_default() |= *privileges;
        }
    }
    let restrictions = Access::of(Vec::new(), identities, 0).restrictions();
    let to = quoted(&account.id());
    let line = |what: &dyn std::fmt::Display, on: &str, option: bool| {
        let option = if option { " WITH GRANT OPTION" } else { "" };
        format!("GRANT {what} ON {on} TO {to}{option}")
    };
    let global = grants.remove(&GrantScope::Global).unwrap_or_default();
    let option = global.intersects(Privileges::GRANT);
    let plain = global.and(Privileges::STATIC).without(Privileges::GRANT);
    let mut lines = vec![match plain.is_empty() {
        true => line(&"USAGE", "*.*", option),
        false => line(&plain, "*.*", option),
    }];
    let mut dynamic: Vec<_> = global.and(Privileges::DYNAMIC).names().collect();
    dynamic.sort_unstable();
    if !dynamic.is_empty() {
        lines.push(line(&dynamic.join(","), "*.*", option));
    }
    let of = |privileges: Privileges, possible: Privileges| {
        let plain = privileges.without(Privileges::GRANT);
        match plain {
            plain if plain.is_empty() => "USAGE".to_owned(),
            plain if plain == possible.without(Privileges::GRANT) => "ALL PRIVILEGES".to_owned(),
            plain => plain.to_string(),
        }
    };
    // As MySQL lists them: databases, patterns of databases, what is not held on some, tables, routines.
    let (mut databases, mut patterns, mut procedures) = (Vec::new(), Vec::new(), Vec::new());
    let mut tables: BTreeMap<(&str, &str), OfTable<'_>> = BTreeMap::new();
    for (scope, privileges) in &grants {
        let option = privileges.intersects(Privileges::GRANT);
        match scope {
            GrantScope::Global => {}
            GrantScope::Database(pattern) => {
                let on = format!("{}.*", quote(pattern));
                let is_one = specificity(pattern) == usize::MAX;
                let to = if is_one { &mut databases } else { &mut patterns };
                to.push(line(&of(*privileges, Privileges::OF_DATABASES), &on, option));
            }
            GrantScope::Table { database, table } => {
                tables.entry((database, table)).or_default().whole = *privileges;
            }
            GrantScope::Column { database, table, column } => {
                tables.entry((database, table)).or_default().columns.push((column, *privileges));
            }
            GrantScope::Procedure { database, procedure } => {
                let on = format!("PROCEDURE {}.{}", quote(database), quote(procedure));
                // MySQL names them even if these are all.
                let plain = privileges.without(Privileges::GRANT);
                let what = if plain.is_empty() { "USAGE".to_owned() } else { plain.to_string() };
                procedures.push(line(&what, &on, option));
            }
        }
    }
    lines.extend(databases);
    lines.extend(patterns);
    for (database, privileges) in restrictions.iter().filter(|(_, privileges)| !privileges.is_empty()) {
        lines.push(format!("REVOKE {privileges} ON {}.* FROM {to}", quote(database)));
    }
    for ((database, table), held) in &tables {
        let on = format!("{}.{}", quote(database), quote(table));
        let what = match held.columns.is_empty() {
            true => of(held.whole, Privileges::OF_TABLES),
            false => held.to_string(),
        };
        lines.push(line(&what, &on, held.whole.intersects(Privileges::GRANT)));
    }
    lines.extend(procedures);
    let with_option = |role: &AccountId| account.roles.get(role).copied().unwrap_or(false);
    for admin in [false, true] {
        let roles: Vec<_> = held.iter().filter(|role| with_option(role) == admin).collect();
        if !roles.is_empty() {
            let option = if admin { " WITH ADMIN OPTION" } else { "" };
            lines.push(format!("GRANT {} TO {to}{option}", list(roles)));
        }
    }
    lines
}

/// What is granted on a table and on its columns.
#[derive(Default)]
struct OfTable<'g> {
    whole: Privileges,
    columns: Vec<(&'g str, Privileges)>,
}

impl std::fmt::Display for OfTable<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut comma = "";
        for (one, name) in Privileges::NAMES {
            if *one == Privileges::GRANT {
                continue;
            }
            if self.whole.contains(*one) {
                write!(f, "{comma}{name}")?;
                comma = ", ";
            }
            let is_granted = |(_, held): &&(&str, Privileges)| held.contains(*one);
            let columns: Vec<_> =
                self.columns.iter().filter(is_granted).map(|(column, _)| quote(column)).collect();
            if !columns.is_empty() {
                write!(f, "{comma}{name} ({})", columns.join(", "))?;
                comma = ", ";
            }
        }
        Ok(())
    }
}

fn list<'r>(roles: impl IntoIterator<Item = &'r AccountId>) -> String {
    let names: Vec<_> = roles.into_iter().map(quoted).collect();
    names.join(",")
}

/// As a literal.
fn string(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

fn quote(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
