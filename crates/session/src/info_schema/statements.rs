//! `sys`: statements by digest, those that take most of the server's time first. A table's namesake with `x$` has numbers where the
//! table has texts for people.

use std::cmp::Reverse;
use std::sync::Arc;

use avocet_types::expr::shown_pico_time;
use avocet_types::{Datum, Decimal, Value};

use crate::digest::digest;
use crate::output::{Rowset, optional, text};
use crate::state::Session;
use crate::summaries::{Summary, Totals};

/// Characters of a statement that are shown to people.
const SHOWN: usize = 64;

fn list(session: &Session) -> Vec<(Arc<Summary>, Totals)> {
    if !session.sees_statements_of_others() {
        return Vec::new();
    }
    let list = session.shared.summaries.list().into_iter().map(|summary| {
        let totals = summary.totals();
        (summary, totals)
    });
    list.filter(|(_, totals)| totals.count > 0).collect()
}

/// Its beginning and its end, if it is long.
fn shortened(statement: &str) -> String {
    let chars: Vec<char> = statement.chars().collect();
    if chars.len() <= SHOWN {
        return statement.to_owned();
    }
    let part = SHOWN / 2 - 2;
    let of = |chars: &[char]| chars.iter().collect::<String>();
    format!("{} ... {}", of(&chars[..part]), of(&chars[chars.len() - part..]))
}

fn statement(summary: &Summary, for_people: bool) -> Value {
    match &summary.text {
        Some(statement) if for_people => text(shortened(statement)),
        other => optional(other.clone()),
    }
}

/// Nanoseconds as picoseconds, or as what people read.
fn time(nanos: u64, for_people: bool) -> Value {
    let picos = nanos.saturating_mul(1000);
    if for_people { text(shown_pico_time(picos as f64)) } else { Datum::UInt(picos) }
}

/// What is not measured here is NULL, as in `events_statements_summary_by_digest`.
pub(super) fn analysis(session: &Session, rows: &mut Rowset, for_people: bool) {
    let mut list = list(session);
    list.sort_by_key(|(_, totals)| Reverse(totals.total));
    for (summary, totals) in list {
        let count = totals.count;
        let each = |sum: u64| {
            Datum::Decimal(Decimal::new((sum + count / 2).checked_div(count).unwrap_or(0).into(), 0))
        };
        let Totals { total, most, sent, affected, .. } = totals;
        rows.push_named(|column| {
            Some(match column {
                "query" => statement(&summary, for_people),
                "db" => optional(summary.schema.clone()),
                "full_scan" => text(""),
                "exec_count" => Datum::UInt(count),
                "exec_secondary_count" => Datum::UInt(0),
                "err_count" => Datum::UInt(totals.errors),
                "warn_count" => Datum::UInt(totals.warnings),
                "total_latency" => time(total, for_people),
                "max_latency" => time(most, for_people),
                "avg_latency" => time(total / count.max(1), for_people),
                "rows_sent" => Datum::UInt(sent),
                "rows_sent_avg" => each(sent),
                "rows_affected" => Datum::UInt(affected),
                "rows_affected_avg" => each(affected),
                "digest" => optional(summary.text.as_deref().map(digest)),
                "first_seen" => Datum::DateTime(summary.first_seen),
                "last_seen" => Datum::DateTime(totals.last_seen),
                _ => return None,
            })
        });
    }
}

pub(super) fn failing(session: &Session, rows: &mut Rowset, for_people: bool) {
    let counts = |totals: &Totals| (totals.errors, totals.warnings);
    let mut list = list(session);
    list.retain(|(_, totals)| counts(totals) != (0, 0));
    list.sort_by_key(|(_, totals)| Reverse(counts(totals)));
    for (summary, totals) in list {
        let count = totals.count;
        let (errors, warnings) = counts(&totals);
        let percent = |part: u64| {
            let scaled = u128::from(part) * 1_000_000 / u128::from(count.max(1));
            Datum::Decimal(Decimal::new(scaled as i128, 4))
        };
        rows.push_named(|column| {
            Some(match column {
                "query" => statement(&summary, for_people),
                "db" => optional(summary.schema.clone()),
                "exec_count" => Datum::UInt(count),
                "errors" => Datum::UInt(errors),
                "error_pct" => percent(errors),
                "warnings" => Datum::UInt(warnings),
                "warning_pct" => percent(warnings),
                "first_seen" => Datum::DateTime(summary.first_seen),
                "last_seen" => Datum::DateTime(totals.last_seen),
                "digest" => optional(summary.text.as_deref().map(digest)),
                _ => return None,
            })
        });
    }
}
