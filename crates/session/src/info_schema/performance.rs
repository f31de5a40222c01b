//! `performance_schema`: what monitoring reads there of status, variables and connections. The names of its tables are in lower case.

use avocet_sql::parse::ast::VariableScope;
use avocet_types::{Datum, SqlType};

use super::tables::{Entry, NAME_TYPE};
use crate::output::{COUNT, LONG_TEXT, Rowset, optional, text, varchar};
use crate::state::Session;
use crate::variables::{Scope, VARIABLES};

pub(super) const TABLES: &[Entry] = &[
    (|| pairs("global_status"), fill_status),
    (|| pairs("global_variables"), |session, rows| fill_variables(session, VariableScope::Global, rows)),
    (|| pairs("persisted_variables"), fill_persisted),
    (processlist, fill_processlist),
    (|| pairs("session_status"), fill_status),
    (|| pairs("session_variables"), |session, rows| fill_variables(session, VariableScope::Default, rows)),
    (threads, fill_threads),
];

fn pairs(name: &'static str) -> Rowset {
    Rowset::new(name, &[("VARIABLE_NAME", NAME_TYPE), ("VARIABLE_VALUE", varchar(1024))])
}

/// Counters are the server's alone: a session has none of its own. As in MySQL, those of statements are in SHOW STATUS only.
fn fill_status(session: &Session, rows: &mut Rowset) {
    let status = session.shared.status(&*session.info.connections);
    for (name, value) in status.into_iter().filter(|(name, _)| !name.starts_with("Com_")) {
        rows.push(vec![text(name), text(value)]);
    }
}

fn fill_variables(session: &Session, scope: VariableScope, rows: &mut Rowset) {
    let is_global = scope == VariableScope::Global;
    for (at, variable) in VARIABLES.iter().enumerate() {
        if is_global && variable.scope == Scope::Session {
            continue;
        }
        if let Ok(value) = session.variables.read(scope, at) {
            rows.push(vec![text(variable.name), text(variable.show(&value))]);
        }
    }
}

fn fill_persisted(session: &Session, rows: &mut Rowset) {
    for (name, value) in session.shared.persisted.list() {
        rows.push(vec![text(name), text(value)]);
    }
}

const ID: SqlType = SqlType::BIGINT_UNSIGNED;

fn processlist() -> Rowset {
    Rowset::new(
        "processlist",
        &[
            ("ID", ID),
            ("USER", varchar(32)),
            ("HOST", varchar(261)),
            ("DB", NAME_TYPE),
            ("COMMAND", varchar(16)),
            ("TIME", SqlType::BIGINT),
            ("STATE", NAME_TYPE),
            ("INFO", LONG_TEXT),
            ("EXECUTION_ENGINE", varchar(9)),
        ],
    )
}

fn fill_processlist(session: &Session, rows: &mut Rowset) {
    for connection in session.seen_connections() {
        rows.push(vec![
            Datum::UInt(connection.id.into()),
            text(connection.user),
            text(connection.host),
            optional(connection.database),
            text(connection.command),
            Datum::Int(connection.time_s as i64),
            text(connection.state),
            optional(connection.info),
            text("PRIMARY"),
        ]);
    }
}

fn threads() -> Rowset {
    Rowset::new(
        "threads",
        &[
            ("THREAD_ID", ID),
            ("NAME", varchar(128)),
            ("TYPE", varchar(10)),
            ("PROCESSLIST_ID", ID),
            ("PROCESSLIST_USER", varchar(32)),
            ("PROCESSLIST_HOST", varchar(255)),
            ("PROCESSLIST_DB", NAME_TYPE),
            ("PROCESSLIST_COMMAND", varchar(16)),
            ("PROCESSLIST_TIME", SqlType::BIGINT),
            ("PROCESSLIST_STATE", NAME_TYPE),
            ("PROCESSLIST_INFO", LONG_TEXT),
            ("PARENT_THREAD_ID", ID),
            ("ROLE", NAME_TYPE),
            ("INSTRUMENTED", varchar(3)),
            ("HISTORY", varchar(3)),
            ("CONNECTION_TYPE", varchar(16)),
            ("THREAD_OS_ID", ID),
            ("RESOURCE_GROUP", NAME_TYPE),
            ("EXECUTION_ENGINE", varchar(9)),
            ("CONTROLLED_MEMORY", COUNT),
            ("MAX_CONTROLLED_MEMORY", COUNT),
            ("TOTAL_MEMORY", COUNT),
            ("MAX_TOTAL_MEMORY", COUNT),
            ("TELEMETRY_ACTIVE", varchar(3)),
        ],
    )
}

/// Connections, which are no threads here: each has the number of its connection.
fn fill_threads(session: &Session, rows: &mut Rowset) {
    for connection in session.seen_connections() {
        let host = connection.host.rsplit_once(':').map_or(&*connection.host, |(host, _)| host).to_owned();
        let id = Datum::UInt(connection.id.into());
        let mut row = vec![
            id.clone(),
            text("thread/sql/one_connection"),
            text("FOREGROUND"),
            id,
            text(connection.user),
            text(host),
            optional(connection.database),
            text(connection.command),
            Datum::Int(connection.time_s as i64),
            text(connection.state),
            optional(connection.info),
            Datum::Null,
            Datum::Null,
            text("NO"),
            text("NO"),
            Datum::Null,
            Datum::Null,
            Datum::Null,
            text("PRIMARY"),
        ];
        row.extend(std::iter::repeat_n(Datum::UInt(0), 4));
        row.push(text("NO"));
        rows.push(row);
    }
}
