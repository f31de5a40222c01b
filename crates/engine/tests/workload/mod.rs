//! A mixed workload that a seed makes, and what the tables must hold after it.
//!
//! ```text
//!  seed ─▶ steps ─┬─▶ Run: on an engine            ─▶ what is there
//!                 └─▶ State: on maps, if it is done ─▶ what must be there
//! ```
//!
//! Steps are transactions (inserts, updates, changes of keys, deletes, savepoints, duplicates), transactions that stay
//! open over later steps, commits that are waited for together, bulk loads, definitions of all kinds, freezing (which
//! compacts, too) and checkpoints. A step makes at most one change that others can see, but for commits that are waited
//! for together; a step that fails has made none, unless the engine has stopped.
#![allow(dead_code, unused_imports, reason = "not every test binary uses all of it")]

mod execute;
#[path = "../common/random.rs"]
mod random;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::{Datum, RowRef};

pub use execute::{Outcome, Run};
pub use random::Random;
pub use steps::{Change, Step, steps};

/// Tables are in this database.
pub const DATABASE: &str = "d";

/// Segments are small, so that few rows are in several, and a load is cut into blocks.
pub fn options(disk: &SimDisk) -> EngineOptions {
    EngineOptions {
        env: disk.env(),
        log_segment_bytes: 16 << 10,
        rows_per_segment: RowsPerSegment::new(64),
        background: false,
        ..EngineOptions::new("/data")
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub amount: i64,
    pub note: String,
    /// Of tables that have the column.
    pub extra: Option<i64>,
}

impl Row {
    /// What the change with this number writes. Notes are unique.
    pub fn of(id: i64, stamp: i64, has_extra: bool) -> Self {
        let padding = "x".repeat((stamp * 37 % 150) as usize);
        Self {
            amount: stamp * 7 % 50,
            note: format!("{stamp}.{id}{padding}"),
            extra: has_extra.then_some(stamp),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Table {
    pub has_extra: bool,
    pub indexes: BTreeSet<String>,
    pub rows: BTreeMap<i64, Row>,
}

/// Tables by name.
pub type State = BTreeMap<String, Table>;

fn row_of(row: &RowRef<'_>, has_extra: bool) -> (i64, Row) {
    let int = |column: usize| match row.get(column) {
        Datum::Int(value) => Some(value),
        _ => None,
    };
    let Datum::Str(note) = row.get(2) else { panic!("a note is text") };
    let extra = if has_extra { int(3) } else { None };
    let row = Row { amount: int(1).expect("an amount"), note: note.to_string(), extra };
    (int(0).expect("an id"), row)
}

/// What the newest snapshot sees, read by a scan of the columns and along every index, which must agree.
pub fn contents(engine: &Arc<Engine>) -> Result<State> {
    let txn = engine.begin(TxnOptions::default());
    contents_of(&txn, engine)
}

/// What a transaction sees of the tables that there are now.
pub fn contents_of(txn: &Txn, engine: &Arc<Engine>) -> Result<State> {
    let mut state = State::new();
    for handle in engine.catalog().tables().filter(|table| !table.is_unfinished()) {
        let has_extra = handle.def.column("extra").is_some();
        let scanned = by_scan(txn, handle, has_extra)?;
        for index in handle.indexes() {
            let indexed = by_index(txn, handle, index, has_extra)?;
            assert_eq!(indexed, scanned, "{} by {}", handle.def.name, index.def.name);
        }
        let indexes = handle.indexes().iter().map(|index| index.def.name.clone()).collect();
        state.insert(handle.def.name.clone(), Table { has_extra, indexes, rows: scanned });
    }
    Ok(state)
}

fn by_scan(txn: &Txn, table: &Arc<TableHandle>, has_extra: bool) -> Result<BTreeMap<i64, Row>> {
    let columns = (0..table.def.columns.len()).collect();
    let scan = txn.scan(table, ScanRequest { columns, ..ScanRequest::default() });
    let mut rows = BTreeMap::new();
    for morsel in 0..scan.morsels() {
        let read = scan.read(morsel, &mut |batch| {
            let ints = |c: usize| batch.column(c).as_primitive::<Int64Type>().clone();
            let (ids, amounts) = (ints(0), ints(1));
            let notes = batch.column(2).as_string_view();
            let extras = has_extra.then(|| ints(3));
            for at in 0..batch.num_rows() {
                let extra = extras.as_ref().and_then(|e| e.is_valid(at).then(|| e.value(at)));
                let row = Row { amount: amounts.value(at), note: notes.value(at).to_owned(), extra };
                let twice = rows.insert(ids.value(at), row);
                assert_eq!(twice, None, "a row is visible in one place");
            }
            ControlFlow::Continue(())
        })?;
        assert!(read.is_continue());
    }
    Ok(rows)
}

fn by_index(
    txn: &Txn,
    table: &Arc<TableHandle>,
    index: &Arc<IndexHandle>,
    has_extra: bool,
) -> Result<BTreeMap<i64, Row>> {
    let mut rows = BTreeMap::new();
    let mut scratch = ReadScratch::default();
    txn.index_scan(table, index, &KeyRange::all(), Direction::Ascending, &mut scratch, &mut |_, row| {
        let (id, row) = row_of(&row, has_extra);
        assert_eq!(rows.insert(id, row), None, "an index leads to a row once");
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}
