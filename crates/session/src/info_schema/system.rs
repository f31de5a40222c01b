//! The server's own tables in `mysql`, and what else is the same on every server: costs, time zones, stop words.

use avocet_types::temporal::zone_names;
use avocet_types::{Datum, Value};

use crate::output::{Rowset, text};
use crate::state::Session;

/// A statement costs what the source code says: there is nothing to set here.
const SERVER_COSTS: [(&str, f32); 6] = [
    ("disk_temptable_create_cost", 20.0),
    ("disk_temptable_row_cost", 0.5),
    ("key_compare_cost", 0.05),
    ("memory_temptable_create_cost", 1.0),
    ("memory_temptable_row_cost", 0.1),
    ("row_evaluate_cost", 0.1),
];
const ENGINE_COSTS: [(&str, f32); 2] = [("io_block_read_cost", 1.0), ("memory_block_read_cost", 0.25)];

const STOPWORDS: &str = "a about an are as at be by com de en for from how i in is it la of on or that the this to was what when \
    where who will with und the www";

fn cost(rows: &mut Rowset, name: &str, value: f32) {
    rows.push_named(|column| match column {
        "cost_name" => Some(text(name)),
        "default_value" => Some(Datum::Float(value)),
        "engine_name" => Some(text("default")),
        "device_type" => Some(Datum::Int(0)),
        _ => None,
    });
}

pub(super) fn server_cost(_: &Session, rows: &mut Rowset) {
    SERVER_COSTS.iter().for_each(|(name, value)| cost(rows, name, *value));
}

pub(super) fn engine_cost(_: &Session, rows: &mut Rowset) {
    ENGINE_COSTS.iter().for_each(|(name, value)| cost(rows, name, *value));
}

pub(super) fn stopwords(_: &Session, rows: &mut Rowset) {
    STOPWORDS.split_ascii_whitespace().for_each(|word| rows.push(vec![text(word)]));
}

/// Those that MySQL makes by itself; others cannot be made.
pub(super) fn resource_groups(_: &Session, rows: &mut Rowset) {
    let last = std::thread::available_parallelism().map_or(0, |count| count.get() - 1);
    let cpus = if last == 0 { "0".to_owned() } else { format!("0-{last}") };
    for (name, kind) in [("USR_default", "USER"), ("SYS_default", "SYSTEM")] {
        rows.push_named(|column| match column {
            "RESOURCE_GROUP_NAME" => Some(text(name)),
            "RESOURCE_GROUP_TYPE" => Some(text(kind)),
            "RESOURCE_GROUP_ENABLED" => Some(Datum::Int(1)),
            "VCPU_IDS" => Some(Datum::Bytes(cpus.as_bytes().to_vec().into())),
            "THREAD_PRIORITY" => Some(Datum::Int(0)),
            _ => None,
        });
    }
}

/// The named zones that are known here, each a zone of its own; when their clocks are changed is not told.
pub(super) fn time_zone_names(_: &Session, rows: &mut Rowset) {
    for (number, name) in (1..).zip(zone_names()) {
        rows.push(vec![text(name), Datum::UInt(number)]);
    }
}

pub(super) fn time_zones(_: &Session, rows: &mut Rowset) {
    for (number, _) in (1..).zip(zone_names()) {
        let row: Vec<Value> = vec![Datum::UInt(number), text("N")];
        rows.push(row);
    }
}
