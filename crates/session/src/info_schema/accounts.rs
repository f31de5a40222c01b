//! MySQL's grant tables, as views of the catalog's accounts: what tools read in the schema `mysql`.
//!
//! They cannot be written: accounts are changed by statements about accounts.

use std::sync::Arc;

use avocet_engine::{GrantScope, Privileges, TlsRule, UserDef};
use avocet_types::{Collation, Datum, IntWidth, SqlType, Value};

use super::tables::Entry;
use crate::output::{LONG_TEXT, Rowset, text, varchar};
use crate::state::Session;

/// In alphabetical order.
pub(super) const TABLES: &[Entry] = &[
    (columns_priv, fill_columns_priv),
    (db, fill_db),
    (default_roles, fill_default_roles),
    (global_grants, fill_global_grants),
    (password_history, fill_password_history),
    (procs_priv, fill_procs_priv),
    (role_edges, fill_role_edges),
    (tables_priv, fill_tables_priv),
    (user, fill_user),
];

/// utf8mb3_bin: names of users and databases are told apart by their bytes.
const fn name(len: u32) -> SqlType {
    SqlType::Char { len, collation: Collation(83) }
}

const HOST: SqlType = name(255);
const USER: SqlType = name(32);
const DATABASE: SqlType = name(64);
/// Sets and enums, as their texts.
const FLAG: SqlType = name(1);
const TIMESTAMP: SqlType = SqlType::Timestamp { fsp: 0 };
const SMALLINT: SqlType = SqlType::Int { width: IntWidth::W16, unsigned: true };
const INT: SqlType = SqlType::Int { width: IntWidth::W32, unsigned: true };

/// The columns of `user` by privilege, in its order; the last two stand further back.
const OF_USER: &[(Privileges, &str)] = &[
    (Privileges::SELECT, "Select_priv"),
    (Privileges::INSERT, "Insert_priv"),
    (Privileges::UPDATE, "Update_priv"),
    (Privileges::DELETE, "Delete_priv"),
    (Privileges::CREATE, "Create_priv"),
    (Privileges::DROP, "Drop_priv"),
    (Privileges::RELOAD, "Reload_priv"),
    (Privileges::SHUTDOWN, "Shutdown_priv"),
    (Privileges::PROCESS, "Process_priv"),
    (Privileges::FILE, "File_priv"),
    (Privileges::GRANT, "Grant_priv"),
    (Privileges::REFERENCES, "References_priv"),
    (Privileges::INDEX, "Index_priv"),
    (Privileges::ALTER, "Alter_priv"),
    (Privileges::SHOW_DATABASES, "Show_db_priv"),
    (Privileges::SUPER, "Super_priv"),
    (Privileges::CREATE_TEMPORARY_TABLES, "Create_tmp_table_priv"),
    (Privileges::LOCK_TABLES, "Lock_tables_priv"),
    (Privileges::EXECUTE, "Execute_priv"),
    (Privileges::REPLICATION_SLAVE, "Repl_slave_priv"),
    (Privileges::REPLICATION_CLIENT, "Repl_client_priv"),
    (Privileges::CREATE_VIEW, "Create_view_priv"),
    (Privileges::SHOW_VIEW, "Show_view_priv"),
    (Privileges::CREATE_ROUTINE, "Create_routine_priv"),
    (Privileges::ALTER_ROUTINE, "Alter_routine_priv"),
    (Privileges::CREATE_USER, "Create_user_priv"),
    (Privileges::EVENT, "Event_priv"),
    (Privileges::TRIGGER, "Trigger_priv"),
    (Privileges::CREATE_TABLESPACE, "Create_tablespace_priv"),
];

/// The columns of `db` by privilege, in its order.
const OF_DB: &[(Privileges, &str)] = &[
    (Privileges::SELECT, "Select_priv"),
    (Privileges::INSERT, "Insert_priv"),
    (Privileges::UPDATE, "Update_priv"),
    (Privileges::DELETE, "Delete_priv"),
    (Privileges::CREATE, "Create_priv"),
    (Privileges::DROP, "Drop_priv"),
    (Privileges::GRANT, "Grant_priv"),
    (Privileges::REFERENCES, "References_priv"),
    (Privileges::INDEX, "Index_priv"),
    (Privileges::ALTER, "Alter_priv"),
    (Privileges::CREATE_TEMPORARY_TABLES, "Create_tmp_table_priv"),
    (Privileges::LOCK_TABLES, "Lock_tables_priv"),
    (Privileges::CREATE_VIEW, "Create_view_priv"),
    (Privileges::SHOW_VIEW, "Show_view_priv"),
    (Privileges::CREATE_ROUTINE, "Create_routine_priv"),
    (Privileges::ALTER_ROUTINE, "Alter_routine_priv"),
    (Privileges::EXECUTE, "Execute_priv"),
    (Privileges::EVENT, "Event_priv"),
    (Privileges::TRIGGER, "Trigger_priv"),
];

/// The members of the sets of `tables_priv`, `columns_priv` and `procs_priv`, in the order of their bits.
const OF_SETS: &[(Privileges, &str)] = &[
    (Privileges::SELECT, "Select"),
    (Privileges::INSERT, "Insert"),
    (Privileges::UPDATE, "Update"),
    (Privileges::DELETE, "Delete"),
    (Privileges::CREATE, "Create"),
    (Privileges::DROP, "Drop"),
    (Privileges::EXECUTE, "Execute"),
    (Privileges::ALTER_ROUTINE, "Alter Routine"),
    (Privileges::GRANT, "Grant"),
    (Privileges::REFERENCES, "References"),
    (Privileges::INDEX, "Index"),
    (Privileges::ALTER, "Alter"),
    (Privileges::CREATE_VIEW, "Create View"),
    (Privileges::SHOW_VIEW, "Show view"),
    (Privileges::TRIGGER, "Trigger"),
];

fn flag(on: bool) -> Value {
    text(if on { "Y" } else { "N" })
}

pub(super) fn set(privileges: Privileges) -> Value {
    let members = OF_SETS.iter().filter(|(one, _)| privileges.contains(*one));
    text(members.map(|(_, name)| *name).collect::<Vec<_>>().join(","))
}

fn number(value: Option<u32>) -> Value {
    value.map_or(Datum::Null, |value| Datum::UInt(value.into()))
}

fn instant(seconds: i64) -> Value {
    Datum::DateTime(seconds.saturating_mul(1_000_000))
}

fn users(session: &Session) -> Vec<Arc<UserDef>> {
    session.catalog().users().cloned().collect()
}

fn user() -> Rowset {
    let mut columns = vec![("Host", HOST), ("User", USER)];
    columns.extend(OF_USER.iter().map(|(_, column)| (*column, FLAG)));
    columns.extend([
        ("ssl_type", name(9)),
        ("ssl_cipher", LONG_TEXT),
        ("x509_issuer", LONG_TEXT),
        ("x509_subject", LONG_TEXT),
        ("max_questions", INT),
        ("max_updates", INT),
        ("max_connections", INT),
        ("max_user_connections", INT),
        ("plugin", name(64)),
        ("authentication_string", LONG_TEXT),
        ("password_expired", FLAG),
        ("password_last_changed", TIMESTAMP),
        ("password_lifetime", SMALLINT),
        ("account_locked", FLAG),
        ("Create_role_priv", FLAG),
        ("Drop_role_priv", FLAG),
        ("Password_reuse_history", SMALLINT),
        ("Password_reuse_time", SMALLINT),
        ("Password_require_current", FLAG),
        ("User_attributes", LONG_TEXT),
    ]);
    Rowset::new("user", &columns)
}

fn fill_user(session: &Session, rows: &mut Rowset) {
    for user in users(session) {
        let global = user.global();
        let mut row = vec![text(&user.host), text(&user.name)];
        row.extend(OF_USER.iter().map(|(one, _)| flag(global.contains(*one))));
        row.extend(match &user.login.tls {
            TlsRule::None => ["", "", "", ""].map(text),
            TlsRule::Encrypted => ["ANY", "", "", ""].map(text),
            TlsRule::Certificate => ["X509", "", "", ""].map(text),
            TlsRule::Certified { subject, issuer, cipher } => {
                ["SPECIFIED", cipher, issuer, subject].map(text)
            }
        });
        row.extend([0; 4].map(Datum::UInt));
        row.push(text(&user.plugin));
        row.push(text(String::from_utf8_lossy(&user.auth)));
        let rules = &user.password;
        row.push(flag(rules.expired));
        row.push(instant(rules.changed_at));
        row.push(number(rules.lifetime_days));
        row.push(flag(user.locked));
        row.push(flag(global.contains(Privileges::CREATE_ROLE)));
        row.push(flag(global.contains(Privileges::DROP_ROLE)));
        row.push(number(rules.history));
        row.push(number(rules.reuse_days));
        row.push(rules.require_current.map_or(Datum::Null, flag));
        row.push(attributes(&user));
        rows.push(row);
    }
}

/// What has no column of its own, as MySQL's JSON.
fn attributes(user: &UserDef) -> Value {
    let mut members = Vec::new();
    if !user.restrictions.is_empty() {
        let one = |(database, privileges): (&String, &Privileges)| {
            let names: Vec<_> = privileges.names().map(|name| format!("\"{name}\"")).collect();
            format!("{{\"Database\": {}, \"Privileges\": [{}]}}", quoted(database), names.join(", "))
        };
        let all: Vec<_> = user.restrictions.iter().map(one).collect();
        members.push(format!("\"Restrictions\": [{}]", all.join(", ")));
    }
    if user.login.failed_attempts > 0 || user.login.lock_days != Some(0) {
        let days = user.login.lock_days.map_or("-1".to_owned(), |days| days.to_string());
        members.push(format!(
            "\"Password_locking\": {{\"failed_login_attempts\": {}, \"password_lock_time_days\": {days}}}",
            user.login.failed_attempts
        ));
    }
    if let Some(retained) = &user.retained {
        members.push(format!("\"additional_password\": {}", quoted(&String::from_utf8_lossy(retained))));
    }
    match members.is_empty() {
        true => Datum::Null,
        false => text(format!("{{{}}}", members.join(", "))),
    }
}

/// As a string of JSON.
fn quoted(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c.is_control() => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

fn db() -> Rowset {
    let mut columns = vec![("Host", HOST), ("Db", DATABASE), ("User", USER)];
    columns.extend(OF_DB.iter().map(|(_, column)| (*column, FLAG)));
    Rowset::new("db", &columns)
}

fn fill_db(session: &Session, rows: &mut Rowset) {
    for user in users(session) {
        for (scope, privileges) in &user.grants {
            if let GrantScope::Database(database) = scope {
                let mut row = vec![text(&user.host), text(database), text(&user.name)];
                row.extend(OF_DB.iter().map(|(one, _)| flag(privileges.contains(*one))));
                rows.push(row);
            }
        }
    }
}

fn tables_priv() -> Rowset {
    Rowset::new(
        "tables_priv",
        &[
            ("Host", HOST),
            ("Db", DATABASE),
            ("User", USER),
            ("Table_name", DATABASE),
            ("Grantor", varchar(288)),
            ("Timestamp", TIMESTAMP),
            ("Table_priv", name(100)),
            ("Column_priv", name(31)),
        ],
    )
}

/// A row for each table on which, or on columns of which, something is granted.
fn fill_tables_priv(session: &Session, rows: &mut Rowset) {
    for user in users(session) {
        let mut tables = std::collections::BTreeMap::new();
        for (scope, privileges) in &user.grants {
            match scope {
                GrantScope::Table { database, table } => {
                    tables.entry((database, table)).or_insert((Privileges::NONE, Privileges::NONE)).0 |=
                        *privileges;
                }
                GrantScope::Column { database, table, .. } => {
                    tables.entry((database, table)).or_insert((Privileges::NONE, Privileges::NONE)).1 |=
                        *privileges;
                }
                GrantScope::Global | GrantScope::Database(_) | GrantScope::Procedure { .. } => {}
            }
        }
        for ((database, table), (whole, columns)) in tables {
            rows.push(vec![
                text(&user.host),
                text(database),
                text(&user.name),
                text(table),
                // Who granted it is not kept.
                text(""),
                instant(0),
                set(whole),
                set(columns),
            ]);
        }
    }
}

fn columns_priv() -> Rowset {
    Rowset::new(
        "columns_priv",
        &[
            ("Host", HOST),
            ("Db", DATABASE),
            ("User", USER),
            ("Table_name", DATABASE),
            ("Column_name", DATABASE),
            ("Timestamp", TIMESTAMP),
            ("Column_priv", name(31)),
        ],
    )
}

fn fill_columns_priv(session: &Session, rows: &mut Rowset) {
    for user in users(session) {
        for (scope, privileges) in &user.grants {
            if let GrantScope::Column { database, table, column } = scope {
                let names = [&user.host, database, &user.name, table, column];
                let mut row: Vec<_> = names.into_iter().map(text).collect();
                row.extend([instant(0), set(*privileges)]);
                rows.push(row);
            }
        }
    }
}

fn procs_priv() -> Rowset {
    Rowset::new(
        "procs_priv",
        &[
            ("Host", HOST),
            ("Db", DATABASE),
            ("User", USER),
            ("Routine_name", DATABASE),
            ("Routine_type", name(9)),
            ("Grantor", varchar(288)),
            ("Proc_priv", name(27)),
            ("Timestamp", TIMESTAMP),
        ],
    )
}

fn fill_procs_priv(session: &Session, rows: &mut Rowset) {
    for user in users(session) {
        for (scope, privileges) in &user.grants {
            if let GrantScope::Procedure { database, procedure } = scope {
                let names = [&user.host, database, &user.name, procedure];
                let mut row: Vec<_> = names.into_iter().map(text).collect();
                row.extend([text("PROCEDURE"), text(""), set(*privileges), instant(0)]);
                rows.push(row);
            }
        }
    }
}

fn role_edges() -> Rowset {
    Rowset::new(
        "role_edges",
        &[
            ("FROM_HOST", HOST),
            ("FROM_USER", USER),
            ("TO_HOST", HOST),
            ("TO_USER", USER),
            ("WITH_ADMIN_OPTION", FLAG),
        ],
    )
}

fn fill_role_edges(session: &Session, rows: &mut Rowset) {
    for user in users(session) {
        for ((role, host), admin) in &user.roles {
            let mut row: Vec<_> = [host, role, &user.host, &user.name].into_iter().map(text).collect();
            row.push(flag(*admin));
            rows.push(row);
        }
    }
}

fn default_roles() -> Rowset {
    Rowset::new(
        "default_roles",
        &[("HOST", HOST), ("USER", USER), ("DEFAULT_ROLE_HOST", HOST), ("DEFAULT_ROLE_USER", USER)],
    )
}

fn fill_default_roles(session: &Session, rows: &mut Rowset) {
    for user in users(session) {
        for (role, host) in &user.default_roles {
            rows.push([&user.host, &user.name, host, role].into_iter().map(text).collect());
        }
    }
}

fn global_grants() -> Rowset {
    Rowset::new(
        "global_grants",
        &[("USER", USER), ("HOST", HOST), ("PRIV", USER), ("WITH_GRANT_OPTION", FLAG)],
    )
}

/// Dynamic privileges.
fn fill_global_grants(session: &Session, rows: &mut Rowset) {
    for user in users(session) {
        let global = user.global();
        for name in global.and(Privileges::DYNAMIC).names() {
            let option = flag(global.contains(Privileges::GRANT));
            rows.push(vec![text(&user.name), text(&user.host), text(name), option]);
        }
    }
}

fn password_history() -> Rowset {
    Rowset::new(
        "password_history",
        &[
            ("Host", HOST),
            ("User", USER),
            ("Password_timestamp", SqlType::Timestamp { fsp: 6 }),
            ("Password", LONG_TEXT),
        ],
    )
}

fn fill_password_history(session: &Session, rows: &mut Rowset) {
    for user in users(session) {
        for (given, auth) in &user.password.past {
            let auth = text(String::from_utf8_lossy(auth));
            rows.push(vec![text(&user.host), text(&user.name), instant(*given), auth]);
        }
    }
}
