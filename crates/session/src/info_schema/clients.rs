//! `performance_schema`: connections by account, variables by thread, and the server that this one follows.

use std::collections::BTreeMap;

use avocet_sql::parse::ast::VariableScope;
use avocet_types::{Datum, Value};

use crate::api::ConnectionRow;
use crate::output::{Rowset, optional, text};
use crate::replication::ReplicaStatus;
use crate::state::Session;
use crate::variables::{Scope, VARIABLES};

/// A connection's host without its port.
fn host_of(connection: &ConnectionRow) -> String {
    connection.host.rsplit_once(':').map_or(&*connection.host, |(host, _)| host).to_owned()
}

/// The connections that there are, counted by what `key` tells of them: user and host. How many there were is not kept.
fn counted(
    session: &Session,
    rows: &mut Rowset,
    key: impl Fn(&ConnectionRow) -> (Option<String>, Option<String>),
) {
    let mut counts = BTreeMap::new();
    for connection in session.seen_connections() {
        *counts.entry(key(&connection)).or_insert(0i64) += 1;
    }
    for ((user, host), connections) in counts {
        rows.push_named(|column| match column {
            "USER" => Some(optional(user.clone())),
            "HOST" => Some(optional(host.clone())),
            "CURRENT_CONNECTIONS" => Some(Datum::Int(connections)),
            _ => None,
        });
    }
}

pub(super) fn accounts(session: &Session, rows: &mut Rowset) {
    counted(session, rows, |connection| (Some(connection.user.clone()), Some(host_of(connection))));
}

pub(super) fn users(session: &Session, rows: &mut Rowset) {
    counted(session, rows, |connection| (Some(connection.user.clone()), None));
}

pub(super) fn hosts(session: &Session, rows: &mut Rowset) {
    counted(session, rows, |connection| (None, Some(host_of(connection))));
}

/// Of the session alone: others' variables are theirs.
fn push_variable(session: &Session, rows: &mut Rowset, name: &str, value: Value) {
    rows.push(vec![Datum::UInt(session.info.connection_id.into()), text(name), value]);
}

pub(super) fn variables_by_thread(session: &Session, rows: &mut Rowset) {
    for (at, variable) in VARIABLES.iter().enumerate().filter(|(_, variable)| variable.scope != Scope::Global)
    {
        if let Ok(value) = session.variables.read(VariableScope::Session, at) {
            push_variable(session, rows, variable.name, text(variable.show(&value)));
        }
    }
}

pub(super) fn status_by_thread(session: &Session, rows: &mut Rowset) {
    let status = session.shared.status(&*session.info.connections);
    for (name, value) in status.into_iter().filter(|(name, _)| !name.starts_with("Com_")) {
        push_variable(session, rows, name, text(value));
    }
}

pub(super) fn user_variables(session: &Session, rows: &mut Rowset) {
    let variables = session.user_variables.values();
    let mut list: Vec<_> = variables.lock().iter().map(|(name, of)| (name.clone(), of.clone())).collect();
    list.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, (value, ty)) in list {
        let mut shown = Vec::new();
        let value = match value {
            Datum::Null => Datum::Null,
            value => {
                avocet_types::text::write_text(&value, &ty, session.settings.time_zone, &mut shown);
                Datum::Bytes(shown.into())
            }
        };
        push_variable(session, rows, &name, value);
    }
}

/// Of a server that follows others, for those who may see it.
fn sources(session: &Session) -> Vec<ReplicaStatus> {
    if session.may_see_replication() { session.shared.sources() } else { Vec::new() }
}

pub(super) fn connection_configuration(session: &Session, rows: &mut Rowset) {
    for status in sources(session) {
        rows.push_named(|column| {
            Some(match column {
                "CHANNEL_NAME" => text(&*status.channel),
                "HOST" => text(&*status.source_host),
                "PORT" => Datum::Int(status.source_port.into()),
                "USER" => text(&*status.source_user),
                "SSL_ALLOWED" => text(if status.ssl { "YES" } else { "NO" }),
                "CONNECTION_RETRY_INTERVAL" => Datum::Int(status.connect_retry_seconds.into()),
                "AUTO_POSITION" => text("1"),
                _ => return None,
            })
        });
    }
}

pub(super) fn connection_status(session: &Session, rows: &mut Rowset) {
    for status in sources(session) {
        let state = match status.reads {
            "Yes" => "ON",
            "No" => "OFF",
            _ => "CONNECTING",
        };
        rows.push_named(|column| {
            Some(match column {
                "CHANNEL_NAME" => text(&*status.channel),
                "GROUP_NAME" => text(""),
                "SOURCE_UUID" => text(&*status.source_uuid),
                "SERVICE_STATE" => text(state),
                "LAST_ERROR_MESSAGE" => text(status.last_error.clone().unwrap_or_default()),
                _ => return None,
            })
        });
    }
}

pub(super) fn applier_status(session: &Session, rows: &mut Rowset) {
    for status in sources(session) {
        rows.push_named(|column| {
            Some(match column {
                "CHANNEL_NAME" => text(&*status.channel),
                "SERVICE_STATE" => text(if status.applies { "ON" } else { "OFF" }),
                "COUNT_TRANSACTIONS_RETRIES" => Datum::UInt(0),
                _ => return None,
            })
        });
    }
}
