//! The tables of `information_schema` that tell of privileges and roles: of one's own, or of all for who may read the
//! grant tables.

use std::sync::Arc;

use avocet_engine::{GrantScope, Privileges, UserDef};
use avocet_types::{SqlType, Value};

use super::accounts::set;
use super::tables::Entry;
use crate::output::{LONG_TEXT, Rowset, text, varchar};
use crate::state::Session;

pub(super) const TABLES: &[Entry] = &[
    (applicable_roles, fill_applicable_roles),
    (column_privileges, fill_column_privileges),
    (enabled_roles, fill_enabled_roles),
    (schema_privileges, fill_schema_privileges),
    (table_privileges, fill_table_privileges),
    (user_attributes, fill_user_attributes),
    (user_privileges, fill_user_privileges),
];

const GRANTEE: (&str, SqlType) = ("GRANTEE", varchar(292));
const CATALOG: (&str, SqlType) = ("TABLE_CATALOG", varchar(512));
const SCHEMA: (&str, SqlType) = ("TABLE_SCHEMA", varchar(64));
const TABLE: (&str, SqlType) = ("TABLE_NAME", varchar(64));
const COLUMN: (&str, SqlType) = ("COLUMN_NAME", varchar(64));
const PRIVILEGE: (&str, SqlType) = ("PRIVILEGE_TYPE", varchar(64));
const GRANTABLE: (&str, SqlType) = ("IS_GRANTABLE", varchar(3));
const ROLE: [(&str, SqlType); 2] = [("ROLE_NAME", varchar(255)), ("ROLE_HOST", varchar(256))];

fn seen_accounts(session: &Session) -> Vec<Arc<UserDef>> {
    let reads_all = session.seen().on_database("mysql").contains(Privileges::SELECT);
    let own = session.account_name(&avocet_sql::parse::statement::UserName::CurrentUser);
    let catalog = session.catalog();
    catalog.users().filter(|user| reads_all || user.id() == own).cloned().collect()
}

fn yes(is_so: bool) -> Value {
    text(if is_so { "YES" } else { "NO" })
}

/// A row for each privilege of a set, or one for none.
fn push_each(rows: &mut Rowset, user: &UserDef, names: &[&str], privileges: Privileges) {
    let option = privileges.contains(Privileges::GRANT);
    let plain = privileges.without(Privileges::GRANT);
    let mut push = |privilege: &str| {
        let mut row = vec![text(format!("'{}'@'{}'", user.name, user.host)), text("def")];
        row.extend(names.iter().map(|name| text(*name)));
        row.extend([text(privilege), yes(option)]);
        rows.push(row);
    };
    match plain.is_empty() {
        true => push("USAGE"),
        false => plain.names().for_each(push),
    }
}

fn user_privileges() -> Rowset {
    Rowset::new("USER_PRIVILEGES", &[GRANTEE, CATALOG, PRIVILEGE, GRANTABLE])
}

fn fill_user_privileges(session: &Session, rows: &mut Rowset) {
    for user in seen_accounts(session) {
        push_each(rows, &user, &[], user.global());
    }
}

fn schema_privileges() -> Rowset {
    Rowset::new("SCHEMA_PRIVILEGES", &[GRANTEE, CATALOG, SCHEMA, PRIVILEGE, GRANTABLE])
}

fn fill_schema_privileges(session: &Session, rows: &mut Rowset) {
    for user in seen_accounts(session) {
        for (scope, privileges) in &user.grants {
            if let GrantScope::Database(database) = scope {
                push_each(rows, &user, &[database], *privileges);
            }
        }
    }
}

fn table_privileges() -> Rowset {
    Rowset::new("TABLE_PRIVILEGES", &[GRANTEE, CATALOG, SCHEMA, TABLE, PRIVILEGE, GRANTABLE])
}

fn fill_table_privileges(session: &Session, rows: &mut Rowset) {
    for user in seen_accounts(session) {
        for (scope, privileges) in &user.grants {
            if let GrantScope::Table { database, table } = scope {
                push_each(rows, &user, &[database, table], *privileges);
            }
        }
    }
}

fn column_privileges() -> Rowset {
    Rowset::new("COLUMN_PRIVILEGES", &[GRANTEE, CATALOG, SCHEMA, TABLE, COLUMN, PRIVILEGE, GRANTABLE])
}

fn fill_column_privileges(session: &Session, rows: &mut Rowset) {
    for user in seen_accounts(session) {
        for (scope, privileges) in &user.grants {
            if let GrantScope::Column { database, table, column } = scope {
                let of_table = GrantScope::Table { database: database.clone(), table: table.clone() };
                let option = user.grants.get(&of_table).copied().unwrap_or_default().and(Privileges::GRANT);
                push_each(rows, &user, &[database, table, column], *privileges | option);
            }
        }
    }
}

fn user_attributes() -> Rowset {
    Rowset::new("USER_ATTRIBUTES", &[("USER", varchar(32)), ("HOST", varchar(255)), ("ATTRIBUTE", LONG_TEXT)])
}

/// Comments and attributes of accounts are not kept.
fn fill_user_attributes(session: &Session, rows: &mut Rowset) {
    for user in seen_accounts(session) {
        rows.push(vec![text(&user.name), text(&user.host), avocet_types::Datum::Null]);
    }
}

fn applicable_roles() -> Rowset {
    let mut columns = vec![
        ("USER", varchar(97)),
        ("HOST", varchar(256)),
        ("GRANTEE", varchar(97)),
        ("GRANTEE_HOST", varchar(256)),
    ];
    columns.extend(ROLE);
    columns.extend([GRANTABLE, ("IS_DEFAULT", varchar(3)), ("IS_MANDATORY", varchar(3))]);
    Rowset::new("APPLICABLE_ROLES", &columns)
}

/// The roles that the account can make active, and those that these bring with them.
fn fill_applicable_roles(session: &Session, rows: &mut Rowset) {
    let catalog = session.catalog();
    let own = session.account_name(&avocet_sql::parse::statement::UserName::CurrentUser);
    let Some(account) = catalog.user(&own.0, &own.1) else { return };
    let settings = session.shared.globals.settings();
    let mut waiting = vec![account.clone()];
    let mut seen = std::collections::BTreeSet::new();
    while let Some(grantee) = waiting.pop() {
        if !seen.insert(grantee.id()) {
            continue;
        }
        let mandatory = settings.mandatory_roles.iter().filter(|_| grantee.id() == own);
        let roles: std::collections::BTreeSet<_> = grantee.roles.keys().chain(mandatory).cloned().collect();
        for role in roles {
            let Some(def) = catalog.user(&role.0, &role.1) else { continue };
            waiting.push(def.clone());
            let names = [&own.0, &own.1, &grantee.name, &grantee.host, &role.0, &role.1];
            let mut row: Vec<_> = names.into_iter().map(text).collect();
            row.extend([
                yes(grantee.roles.get(&role).copied().unwrap_or(false)),
                yes(account.default_roles.contains(&role)),
                yes(settings.mandatory_roles.contains(&role)),
            ]);
            rows.push(row);
        }
    }
}

fn enabled_roles() -> Rowset {
    let mut columns = ROLE.to_vec();
    columns.extend([("IS_DEFAULT", varchar(3)), ("IS_MANDATORY", varchar(3))]);
    Rowset::new("ENABLED_ROLES", &columns)
}

fn fill_enabled_roles(session: &Session, rows: &mut Rowset) {
    let own = session.account_name(&avocet_sql::parse::statement::UserName::CurrentUser);
    let catalog = session.catalog();
    let account = catalog.user(&own.0, &own.1);
    let settings = session.shared.globals.settings();
    for role in session.seen().roles() {
        let is_default = account.is_some_and(|account| account.default_roles.contains(role));
        let is_mandatory = settings.mandatory_roles.contains(role);
        rows.push(vec![text(&role.0), text(&role.1), yes(is_default), yes(is_mandatory)]);
    }
}

/// Roles that the account can give to others.
pub(super) fn fill_administrable_roles(session: &Session, rows: &mut Rowset) {
    let mut all = applicable_roles();
    fill_applicable_roles(session, &mut all);
    let grantable = all.columns.iter().position(|(name, _)| name == GRANTABLE.0).unwrap_or_default();
    all.rows.retain(|row| row[grantable].is_same(&yes(true)));
    all.rows.into_iter().for_each(|row| rows.push(row));
}

/// A row for each grant on a part of some database that roles bring which are active; `told` says what it tells of a scope.
fn role_grants(
    session: &Session,
    rows: &mut Rowset,
    told: impl Fn(&GrantScope) -> Option<Vec<(&'static str, &str)>>,
) {
    let catalog = session.catalog();
    for role in session.seen().roles() {
        let Some(account) = catalog.user(&role.0, &role.1) else { continue };
        for (scope, privileges) in &account.grants {
            let Some(names) = told(scope) else { continue };
            let is_grantable = |scope: &GrantScope, privileges: Privileges| match scope {
                GrantScope::Column { database, table, .. } => {
                    let of_table = GrantScope::Table { database: database.clone(), table: table.clone() };
                    account.grants.get(&of_table).is_some_and(|all| all.contains(Privileges::GRANT))
                }
                _ => privileges.contains(Privileges::GRANT),
            };
            rows.push_named(|column| match column {
                "GRANTOR" | "GRANTOR_HOST" => Some(text("")),
                "GRANTEE" => Some(text(&role.0)),
                "GRANTEE_HOST" => Some(text(&role.1)),
                "TABLE_CATALOG" | "SPECIFIC_CATALOG" | "ROUTINE_CATALOG" => Some(text("def")),
                "PRIVILEGE_TYPE" => Some(set(*privileges)),
                "IS_GRANTABLE" => Some(yes(is_grantable(scope, *privileges))),
                column => names.iter().find(|(name, _)| *name == column).map(|(_, value)| text(*value)),
            });
        }
    }
}

pub(super) fn fill_role_table_grants(session: &Session, rows: &mut Rowset) {
    role_grants(session, rows, |scope| match scope {
        GrantScope::Table { database, table } => {
            Some(vec![("TABLE_SCHEMA", database.as_str()), ("TABLE_NAME", table.as_str())])
        }
        _ => None,
    });
}

pub(super) fn fill_role_column_grants(session: &Session, rows: &mut Rowset) {
    role_grants(session, rows, |scope| match scope {
        GrantScope::Column { database, table, column } => Some(vec![
            ("TABLE_SCHEMA", database.as_str()),
            ("TABLE_NAME", table.as_str()),
            ("COLUMN_NAME", column.as_str()),
        ]),
        _ => None,
    });
}

pub(super) fn fill_role_routine_grants(session: &Session, rows: &mut Rowset) {
    role_grants(session, rows, |scope| match scope {
        GrantScope::Procedure { database, procedure } => Some(vec![
            ("SPECIFIC_SCHEMA", database.as_str()),
            ("SPECIFIC_NAME", procedure.as_str()),
            ("ROUTINE_SCHEMA", database.as_str()),
            ("ROUTINE_NAME", procedure.as_str()),
        ]),
        _ => None,
    });
}
