//! `avocet`: what no MySQL has. Metrics, where the queries of a front ran, and how far a source is followed.

use avocet_types::{Datum, SqlType};

use super::tables::{Entry, NAME_TYPE};
use crate::output::{COUNT, LONG_TEXT, Rowset, optional, text, varchar};
use crate::replication::{CopyProgress, LeftOut, ReplicaStatus};
use crate::state::Session;

pub(super) const TABLES: &[Entry] = &[
    (metrics, fill_metrics),
    (replica_tables, fill_replica_tables),
    (replication, fill_replication),
    (routed_queries, fill_routed_queries),
];

fn metrics() -> Rowset {
    Rowset::new(
        "metrics",
        &[
            ("family", NAME_TYPE),
            ("kind", varchar(9)),
            ("help", varchar(255)),
            ("name", NAME_TYPE),
            ("labels", varchar(255)),
            ("value", SqlType::DOUBLE),
        ],
    )
}

/// Samples of a family stand together.
fn fill_metrics(session: &Session, rows: &mut Rowset) {
    for metric in session.shared.metrics(&*session.info.connections) {
        rows.push(vec![
            text(metric.family),
            text(metric.kind.name()),
            text(metric.help),
            text(format!("{}{}", metric.family, metric.suffix)),
            text(metric.labels),
            Datum::Double(metric.value),
        ]);
    }
}

fn replication() -> Rowset {
    Rowset::new(
        "replication",
        &[
            ("source", varchar(261)),
            ("io_running", varchar(10)),
            ("sql_running", varchar(3)),
            ("last_error", LONG_TEXT),
            ("tables_left_out", COUNT),
            ("lag_seconds", COUNT),
            ("lag_transactions", COUNT),
            ("lag_bytes", COUNT),
            ("transactions", COUNT),
            ("changes", COUNT),
            ("transactions_per_second", SqlType::DOUBLE),
            ("changes_per_second", SqlType::DOUBLE),
            ("copied_bytes", COUNT),
            ("freshness_wait_us_p50", COUNT),
            ("freshness_wait_us_p99", COUNT),
            ("gtid_executed", LONG_TEXT),
            ("log_file", varchar(255)),
            ("log_position", COUNT),
            ("source_log_file", varchar(255)),
            ("source_log_position", COUNT),
            ("semi_sync", varchar(3)),
            ("semi_sync_obstacle", LONG_TEXT),
            ("channel", varchar(64)),
            ("source_uuid", varchar(36)),
        ],
    )
}

/// A row of each server that this one follows, or may be told to go on with.
fn fill_replication(session: &Session, rows: &mut Rowset) {
    if session.may_see_replication() {
        session.shared.sources().into_iter().for_each(|status| fill_source(session, status, rows));
    }
}

fn fill_source(session: &Session, status: ReplicaStatus, rows: &mut Rowset) {
    let count = |count: Option<u64>| count.map_or(Datum::Null, Datum::UInt);
    let waits = session.shared.journal.waits();
    let (end_file, end_position) = status.source_log.unzip();
    rows.push(vec![
        text(format!("{}:{}", status.source_host, status.source_port)),
        text(status.reads),
        text(if status.applies { "Yes" } else { "No" }),
        optional(status.last_error),
        Datum::UInt(status.left_out.len() as u64),
        count(status.seconds_behind),
        count(status.transactions_behind),
        count(status.bytes_behind),
        Datum::UInt(status.transactions),
        Datum::UInt(status.changes),
        Datum::Double(status.transactions_per_second),
        Datum::Double(status.changes_per_second),
        Datum::UInt(status.copied_bytes),
        Datum::UInt(waits.quantile(0.5)),
        Datum::UInt(waits.quantile(0.99)),
        text(status.executed),
        text(status.log_file),
        Datum::UInt(status.log_position),
        optional(end_file),
        count(end_position),
        text(if status.semi_sync { "ON" } else { "OFF" }),
        optional(status.semi_sync_obstacle),
        text(status.channel),
        text(status.source_uuid),
    ]);
}

fn routed_queries() -> Rowset {
    Rowset::new(
        "routed_queries",
        &[
            ("id", COUNT),
            ("arrived_at", SqlType::DateTime { fsp: 6 }),
            ("thread_id", COUNT),
            ("user", varchar(32)),
            ("default_database", NAME_TYPE),
            ("query", LONG_TEXT),
            ("ran_on", varchar(6)),
            ("why", varchar(2048)),
            ("source_cost", SqlType::DOUBLE),
            ("freshness", varchar(32)),
            ("waited_us", COUNT),
            ("took_us", COUNT),
        ],
    )
}

/// Texts have values in them: they are for who sees others' statements in SHOW PROCESSLIST, too. Clients of a front see their own
/// alone.
fn fill_routed_queries(session: &Session, rows: &mut Rowset) {
    let sees_all = session.sees_statements_of_others();
    for routed in session.shared.journal.last() {
        if !sees_all && routed.user != session.info.account.user {
            continue;
        }
        rows.push(vec![
            Datum::UInt(routed.id),
            Datum::DateTime(routed.at_us),
            Datum::UInt(routed.thread.into()),
            text(routed.user),
            optional(routed.database),
            text(routed.text),
            text(if routed.ran_here { "avocet" } else { "source" }),
            text(routed.why),
            routed.cost.map_or(Datum::Null, Datum::Double),
            text(routed.freshness),
            Datum::UInt(routed.waited_us),
            Datum::UInt(routed.took_us),
        ]);
    }
}

fn replica_tables() -> Rowset {
    Rowset::new(
        "replica_tables",
        &[
            ("table_schema", NAME_TYPE),
            ("table_name", NAME_TYPE),
            ("state", varchar(2048)),
            ("copied_rows", COUNT),
            ("about_rows", COUNT),
            ("copied_bytes", COUNT),
            ("channel", varchar(64)),
        ],
    )
}

/// Tables that are followed as they should be are not listed.
fn fill_replica_tables(session: &Session, rows: &mut Rowset) {
    for ReplicaStatus { channel, left_out, copies, .. } in session.shared.sources() {
        fill_left_out(&channel, left_out, &copies, rows);
    }
}

fn fill_left_out(channel: &str, left_out: Vec<LeftOut>, copies: &[CopyProgress], rows: &mut Rowset) {
    for left_out in left_out {
        let is_of = |copy: &&CopyProgress| copy.database == left_out.database && copy.table == left_out.table;
        let progress = match copies.iter().find(is_of) {
            Some(copy) => [copy.rows, copy.of_about.max(copy.rows), copy.bytes].map(Datum::UInt),
            None => [Datum::Null, Datum::Null, Datum::Null],
        };
        let mut row = vec![text(left_out.database), text(left_out.table), text(left_out.state)];
        row.extend(progress);
        row.push(text(channel));
        rows.push(row);
    }
}
