//! `avocet`: what no MySQL has. Where the queries of a front ran, and how far a source is followed.

use avocet_types::{Datum, SqlType};

use super::tables::{Entry, NAME_TYPE};
use crate::output::{COUNT, LONG_TEXT, Rowset, optional, text, varchar};
use crate::state::Session;

pub(super) const TABLES: &[Entry] =
    &[(replica_tables, fill_replica_tables), (routed_queries, fill_routed_queries)];

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
        &[("table_schema", NAME_TYPE), ("table_name", NAME_TYPE), ("state", varchar(2048))],
    )
}

/// Tables that are followed as they should be are not listed.
fn fill_replica_tables(session: &Session, rows: &mut Rowset) {
    let status = session.shared.replication.get().and_then(|replication| replication.status());
    for left_out in status.into_iter().flat_map(|status| status.left_out) {
        rows.push(vec![text(left_out.database), text(left_out.table), text(left_out.state)]);
    }
}
