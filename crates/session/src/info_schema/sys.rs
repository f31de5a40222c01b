//! `sys`: what tools ask of sessions, keys and the catalog.

use std::collections::BTreeMap;

use avocet_types::schema::{IndexDef, IndexKind, TableDef};
use avocet_types::{Datum, Decimal, IntWidth, SqlType};

use crate::output::{Rowset, optional, text};
use crate::state::Session;

/// The version of the `sys` schema whose views these are.
const VERSION: &str = "2.1.3";

pub(super) fn version(session: &Session, rows: &mut Rowset) {
    rows.push(vec![text(VERSION), text(session.context.session.version.clone())]);
}

/// The options that `sys` has in MySQL, at their defaults; nothing here looks at others.
pub(super) fn config(_: &Session, rows: &mut Rowset) {
    let options = [
        ("diagnostics.allow_i_s_tables", Some("OFF")),
        ("diagnostics.include_raw", Some("OFF")),
        ("ps_thread_trx_info.max_length", Some("65535")),
        ("statement_performance_analyzer.limit", Some("100")),
        ("statement_performance_analyzer.view", None),
        ("statement_truncate_len", Some("64")),
    ];
    for (name, value) in options {
        rows.push(vec![text(name), optional(value), Datum::Null, Datum::Null]);
    }
}

pub(super) fn metrics(session: &Session, rows: &mut Rowset) {
    let status = session.shared.status(&*session.info.connections);
    for (name, value) in status.into_iter().filter(|(name, _)| !name.starts_with("Com_")) {
        rows.push(vec![text(name.to_lowercase()), text(value), text("Global Status"), text("YES")]);
    }
}

/// What of a session is not measured is NULL.
pub(super) fn sessions(session: &Session, rows: &mut Rowset) {
    for connection in session.seen_connections() {
        let host = connection.host.rsplit_once(':').map_or(&*connection.host, |(host, _)| host);
        let user = format!("{}@{host}", connection.user);
        rows.push_named(|column| {
            Some(match column {
                "thd_id" | "conn_id" => Datum::UInt(connection.id.into()),
                "user" => text(&user),
                "db" => optional(connection.database.clone()),
                "command" => text(connection.command),
                "state" => text(connection.state),
                "time" => Datum::Int(connection.time_s as i64),
                "current_statement" => optional(connection.info.clone()),
                "execution_engine" => text("PRIMARY"),
                _ => return None,
            })
        });
    }
}

/// The largest number of a column.
fn largest(ty: &SqlType) -> u64 {
    let (bits, unsigned) = match *ty {
        SqlType::Int { width, unsigned } => match width {
            IntWidth::W8 => (8, unsigned),
            IntWidth::W16 => (16, unsigned),
            IntWidth::W24 => (24, unsigned),
            IntWidth::W32 => (32, unsigned),
            IntWidth::W64 => (64, unsigned),
        },
        _ => (8, false),
    };
    u64::MAX >> (64 - bits + u32::from(!unsigned))
}

pub(super) fn auto_increment_columns(session: &Session, rows: &mut Rowset) {
    let catalog = session.stored_catalog();
    for table in session.seen_tables(&catalog) {
        let Some(at) = table.def.auto_increment_column() else { continue };
        let own = &table.def.columns[at];
        let (next, largest) = (table.next_auto_increment(), largest(&own.ty));
        let shown = own.type_text();
        let ratio = (i128::from(next) * 10_000 + i128::from(largest / 2)) / i128::from(largest);
        rows.push_named(|column| {
            Some(match column {
                "table_schema" => text(&table.def.database),
                "table_name" => text(&table.def.name),
                "column_name" => text(&own.name),
                "data_type" => text(shown.split(['(', ' ']).next().unwrap_or_default()),
                "column_type" => text(&shown),
                "is_signed" => Datum::Int((!own.ty.is_unsigned()).into()),
                "is_unsigned" => Datum::Int(own.ty.is_unsigned().into()),
                "max_value" => Datum::UInt(largest),
                "auto_increment" => Datum::UInt(next),
                "auto_increment_ratio" => Datum::Decimal(Decimal::new(ratio, 4)),
                _ => return None,
            })
        });
    }
}

pub(super) fn object_overview(session: &Session, rows: &mut Rowset) {
    let catalog = session.stored_catalog();
    let mut counts: BTreeMap<(String, &str), i64> = BTreeMap::new();
    let mut add = |table: &TableDef, kind, count| {
        *counts.entry((table.database.clone(), kind)).or_default() += count;
    };
    for table in session.seen_tables(&catalog) {
        add(&table.def, "BASE TABLE", 1);
        let parts: usize = table.def.indexes.iter().map(|index| index.parts.len()).sum();
        if parts > 0 {
            // As there: a row of STATISTICS for each part.
            add(&table.def, "INDEX (BTREE)", parts as i64);
        }
    }
    session.seen_views(&catalog).for_each(|view| add(&view.def, "VIEW", 1));
    for ((database, kind), count) in counts {
        rows.push(vec![text(database), text(kind), Datum::Int(count)]);
    }
}

fn columns_of(table: &TableDef, index: &IndexDef) -> String {
    let names: Vec<_> = index.parts.iter().map(|part| table.columns[part.column].shown_name()).collect();
    names.join(",")
}

/// Whether whatever `redundant` serves, `dominant` serves as well.
fn dominates(table: &TableDef, dominant: &IndexDef, redundant: &IndexDef) -> bool {
    let (own, other) = (columns_of(table, dominant), columns_of(table, redundant));
    let (own_unique, other_unique) = (dominant.kind.is_unique(), redundant.kind.is_unique());
    // The primary key comes before all.
    let rank = |index: &IndexDef| match index.kind {
        IndexKind::Primary => String::new(),
        _ => index.name.clone(),
    };
    let begins = |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with(','));
    match own == other {
        true if own_unique == other_unique => rank(redundant) > rank(dominant),
        true => own_unique,
        false => (begins(&own, &other) && !other_unique) || (begins(&other, &own) && own_unique),
    }
}

pub(super) fn redundant_indexes(session: &Session, rows: &mut Rowset) {
    let catalog = session.stored_catalog();
    for table in session.seen_tables(&catalog) {
        let table = &table.def;
        for redundant in &table.indexes {
            for dominant in table.indexes.iter().filter(|index| index.id != redundant.id) {
                if !dominates(table, dominant, redundant) {
                    continue;
                }
                let has_prefix = |index: &IndexDef| index.parts.iter().any(|part| part.prefix_len.is_some());
                let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
                rows.push_named(|column| {
                    Some(match column {
                        "table_schema" => text(&table.database),
                        "table_name" => text(&table.name),
                        "redundant_index_name" => text(&redundant.name),
                        "redundant_index_columns" => text(columns_of(table, redundant)),
                        "redundant_index_non_unique" => Datum::Int((!redundant.kind.is_unique()).into()),
                        "dominant_index_name" => text(&dominant.name),
                        "dominant_index_columns" => text(columns_of(table, dominant)),
                        "dominant_index_non_unique" => Datum::Int((!dominant.kind.is_unique()).into()),
                        "subpart_exists" => {
                            Datum::Int((has_prefix(redundant) || has_prefix(dominant)).into())
                        }
                        "sql_drop_index" => text(format!(
                            "ALTER TABLE {}.{} DROP INDEX {}",
                            quoted(&table.database),
                            quoted(&table.name),
                            quoted(&redundant.name)
                        )),
                        _ => return None,
                    })
                });
            }
        }
    }
}
