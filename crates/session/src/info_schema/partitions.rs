//! `information_schema.PARTITIONS`: a row for each partition, or subpartition, and one for each table without, views among them.

use avocet_engine::TableHandle;
use avocet_sql::kept::partitions::{Bound, Function, Part, Partitioning, read};
use avocet_types::{Datum, IntWidth, SqlType, Value};

use super::tables::{Entry, NAME_TYPE};
use crate::output::{COUNT, LONG_TEXT, Rowset, text, varchar};
use crate::state::Session;

const UINT: SqlType = SqlType::Int { width: IntWidth::W32, unsigned: true };
const WHEN: SqlType = SqlType::DateTime { fsp: 0 };

pub(super) const TABLES: &[Entry] = &[(partitions, fill)];

fn partitions() -> Rowset {
    Rowset::new(
        "PARTITIONS",
        &[
            ("TABLE_CATALOG", NAME_TYPE),
            ("TABLE_SCHEMA", NAME_TYPE),
            ("TABLE_NAME", NAME_TYPE),
            ("PARTITION_NAME", NAME_TYPE),
            ("SUBPARTITION_NAME", NAME_TYPE),
            ("PARTITION_ORDINAL_POSITION", UINT),
            ("SUBPARTITION_ORDINAL_POSITION", UINT),
            ("SECONDARY_LOAD", varchar(1)),
            ("PARTITION_METHOD", varchar(13)),
            ("SUBPARTITION_METHOD", varchar(13)),
            ("PARTITION_EXPRESSION", varchar(2048)),
            ("SUBPARTITION_EXPRESSION", varchar(2048)),
            ("PARTITION_DESCRIPTION", LONG_TEXT),
            ("TABLE_ROWS", COUNT),
            ("AVG_ROW_LENGTH", COUNT),
            ("DATA_LENGTH", COUNT),
            ("MAX_DATA_LENGTH", COUNT),
            ("INDEX_LENGTH", COUNT),
            ("DATA_FREE", COUNT),
            ("CREATE_TIME", SqlType::Timestamp { fsp: 0 }),
            ("UPDATE_TIME", WHEN),
            ("CHECK_TIME", WHEN),
            ("CHECKSUM", SqlType::BIGINT),
            ("PARTITION_COMMENT", LONG_TEXT),
            ("NODEGROUP", varchar(256)),
            ("TABLESPACE_NAME", varchar(268)),
        ],
    )
}

fn fill(session: &Session, rows: &mut Rowset) {
    let catalog = session.stored_catalog();
    for handle in session.seen_tables(&catalog) {
        let partitioning = handle.def.partitioning.as_ref().and_then(|text| read(text).ok());
        match partitioning {
            None => rows.push(row(handle, None, handle.row_count())),
            Some(partitioning) => fill_partitions(handle, &partitioning, rows),
        }
    }
    for view in session.seen_views(&catalog) {
        rows.push(row(view, None, 0));
    }
}

fn fill_partitions(handle: &TableHandle, partitioning: &Partitioning, rows: &mut Rowset) {
    let (parts, subs) = partitioning.counts();
    // Rows are not counted by partition: each gets the same share.
    let share = handle.row_count() / (parts * subs.max(1)).max(1);
    for (at, part) in partitioning.all_parts().iter().enumerate() {
        let subs = partitioning.subs_of(part);
        let one = |sub: Option<(usize, &str)>, comment: Option<&str>| Place {
            partitioning,
            part,
            at,
            sub: sub.map(|(at, name)| (at, name.to_owned())),
            comment: comment.unwrap_or_default().to_owned(),
        };
        if subs.is_empty() {
            rows.push(row(handle, Some(one(None, part.options.comment.as_deref())), share));
        }
        for (of, (name, options)) in subs.iter().enumerate() {
            let place = one(Some((of, name)), options.comment.as_deref());
            rows.push(row(handle, Some(place), share));
        }
    }
}

/// One partition, or subpartition.
struct Place<'p> {
    partitioning: &'p Partitioning,
    part: &'p Part,
    at: usize,
    sub: Option<(usize, String)>,
    comment: String,
}

fn row(handle: &TableHandle, place: Option<Place<'_>>, count: u64) -> Vec<Value> {
    let optional = |value: Option<String>| value.map_or(Datum::Null, text);
    let ordinal = |at: Option<usize>| at.map_or(Datum::Null, |at| Datum::UInt(at as u64 + 1));
    let place = place.as_ref();
    let sub = place.and_then(|place| place.sub.as_ref());
    let function = place.map(|place| &place.partitioning.function);
    let sub_function = place.and_then(|place| place.partitioning.sub.as_ref()).map(|sub| &sub.function);
    let def = &handle.def;
    let created_us = def.view.as_ref().map_or(def.created_us, |view| Some(view.created_us));
    let described = place.filter(|place| place.part.bound != Bound::None);
    vec![
        text("def"),
        text(&def.database),
        text(&def.name),
        optional(place.map(|place| place.part.name.clone())),
        optional(sub.map(|(_, name)| name.clone())),
        ordinal(place.map(|place| place.at)),
        ordinal(sub.map(|(at, _)| *at)),
        optional(place.map(|_| "0".to_owned())),
        optional(function.map(Function::name)),
        optional(sub_function.map(Function::name)),
        optional(function.and_then(expression)),
        optional(sub_function.and_then(expression)),
        optional(described.map(|place| place.part.bound.values())),
        Datum::UInt(count),
        Datum::UInt(0),
        Datum::UInt(0),
        Datum::UInt(0),
        Datum::UInt(0),
        Datum::UInt(0),
        super::tables::created(created_us),
        Datum::Null,
        Datum::Null,
        Datum::Null,
        text(place.map_or("", |place| &place.comment)),
        text(if place.is_some() { "default" } else { "" }),
        Datum::Null,
    ]
}

/// Of KEY () there is none.
fn expression(function: &Function) -> Option<String> {
    if function.expr.is_some() {
        return function.expr.clone();
    }
    let columns: Vec<String> =
        function.columns.iter().map(|name| format!("`{}`", name.replace('`', "``"))).collect();
    (!columns.is_empty()).then(|| columns.join(","))
}
