//! `performance_schema.events_statements_summary_by_digest`, for those who may see others' statements.

use avocet_types::{Datum, SqlType, Value};

use super::tables::{Entry, NAME_TYPE};
use crate::digest::digest;
use crate::output::{COUNT, LONG_TEXT, Rowset, optional};
use crate::state::Session;
use crate::summaries::{Summary, Totals};

pub(super) const NAME: &str = crate::schemas::DIGESTS;

pub(super) const TABLES: &[Entry] = &[(shape, fill)];

const WHEN: SqlType = SqlType::Timestamp { fsp: 6 };

const COLUMNS: &[(&str, SqlType)] = &[
    ("SCHEMA_NAME", NAME_TYPE),
    ("DIGEST", NAME_TYPE),
    ("DIGEST_TEXT", LONG_TEXT),
    ("COUNT_STAR", COUNT),
    ("SUM_TIMER_WAIT", COUNT),
    ("MIN_TIMER_WAIT", COUNT),
    ("AVG_TIMER_WAIT", COUNT),
    ("MAX_TIMER_WAIT", COUNT),
    ("SUM_LOCK_TIME", COUNT),
    ("SUM_ERRORS", COUNT),
    ("SUM_WARNINGS", COUNT),
    ("SUM_ROWS_AFFECTED", COUNT),
    ("SUM_ROWS_SENT", COUNT),
    ("SUM_ROWS_EXAMINED", COUNT),
    ("SUM_CREATED_TMP_DISK_TABLES", COUNT),
    ("SUM_CREATED_TMP_TABLES", COUNT),
    ("SUM_SELECT_FULL_JOIN", COUNT),
    ("SUM_SELECT_FULL_RANGE_JOIN", COUNT),
    ("SUM_SELECT_RANGE", COUNT),
    ("SUM_SELECT_RANGE_CHECK", COUNT),
    ("SUM_SELECT_SCAN", COUNT),
    ("SUM_SORT_MERGE_PASSES", COUNT),
    ("SUM_SORT_RANGE", COUNT),
    ("SUM_SORT_ROWS", COUNT),
    ("SUM_SORT_SCAN", COUNT),
    ("SUM_NO_INDEX_USED", COUNT),
    ("SUM_NO_GOOD_INDEX_USED", COUNT),
    ("SUM_CPU_TIME", COUNT),
    ("MAX_CONTROLLED_MEMORY", COUNT),
    ("MAX_TOTAL_MEMORY", COUNT),
    ("COUNT_SECONDARY", COUNT),
    ("FIRST_SEEN", WHEN),
    ("LAST_SEEN", WHEN),
    ("QUANTILE_95", COUNT),
    ("QUANTILE_99", COUNT),
    ("QUANTILE_999", COUNT),
    ("QUERY_SAMPLE_TEXT", LONG_TEXT),
    ("QUERY_SAMPLE_SEEN", WHEN),
    ("QUERY_SAMPLE_TIMER_WAIT", COUNT),
];

fn shape() -> Rowset {
    Rowset::new(NAME, COLUMNS)
}

/// Picoseconds, in which `performance_schema` has times.
const PICOS: u64 = 1000;

fn fill(session: &Session, rows: &mut Rowset) {
    if !session.sees_statements_of_others() {
        return;
    }
    let mut list = session.shared.summaries.list();
    list.sort_by(|a, b| (&a.schema, &a.text).cmp(&(&b.schema, &b.text)));
    for summary in list {
        let totals = summary.totals();
        if totals.count > 0 {
            rows.push(COLUMNS.iter().map(|(column, _)| value_of(column, &summary, &totals)).collect());
        }
    }
}

/// What is not measured here is NULL.
fn value_of(column: &str, summary: &Summary, totals: &Totals) -> Value {
    let count = totals.count.max(1);
    let picos = |nanos: u64| Datum::UInt(nanos.saturating_mul(PICOS));
    let quantile = |q| picos(totals.quantile(q).as_nanos() as u64);
    match column {
        "SCHEMA_NAME" => optional(summary.schema.clone()),
        "DIGEST" => optional(summary.text.as_deref().map(digest)),
        "DIGEST_TEXT" => optional(summary.text.clone()),
        "COUNT_STAR" => Datum::UInt(count),
        "SUM_TIMER_WAIT" => picos(totals.total),
        "MIN_TIMER_WAIT" => picos(totals.least),
        "AVG_TIMER_WAIT" => picos(totals.total / count),
        "MAX_TIMER_WAIT" => picos(totals.most),
        "SUM_ERRORS" => Datum::UInt(totals.errors),
        "SUM_WARNINGS" => Datum::UInt(totals.warnings),
        "SUM_ROWS_AFFECTED" => Datum::UInt(totals.affected),
        "SUM_ROWS_SENT" => Datum::UInt(totals.sent),
        "COUNT_SECONDARY" => Datum::UInt(0),
        "FIRST_SEEN" | "QUERY_SAMPLE_SEEN" => Datum::DateTime(summary.first_seen),
        "LAST_SEEN" => Datum::DateTime(totals.last_seen),
        "QUANTILE_95" => quantile(0.95),
        "QUANTILE_99" => quantile(0.99),
        "QUANTILE_999" => quantile(0.999),
        "QUERY_SAMPLE_TEXT" => optional(summary.sample.clone()),
        _ => Datum::Null,
    }
}
