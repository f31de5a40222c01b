//! Indexes that are made while older versions of rows are kept: they have entries of the newest rows, and of no others, whatever
//! becomes of the versions.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::*;

#[path = "common/by_key.rs"]
mod by_key;
mod common;

use by_key::find;
use common::{options, table};

const WAIT: Duration = Duration::from_secs(5);

/// `d.t (id BIGINT PRIMARY KEY, x BIGINT, y BIGINT)` with ten rows (n, 2, 0).
fn engine() -> Arc<Engine> {
    let engine = Engine::open(options(&SimDisk::new())).expect("opens");
    engine.create_database("d", Collation::DEFAULT).expect("created");
    let columns = ["id", "x", "y"].map(|name| ColumnDef::new(name, SqlType::BIGINT)).into();
    engine.create_table(TableDef::new("d", "t", columns, vec![IndexDef::primary(&[0])])).expect("created");
    let mut txn = engine.begin(TxnOptions::default());
    for id in 0..10 {
        txn.insert(&table(&engine), &[Datum::Int(id), Datum::Int(2), Datum::Int(0)]).expect("inserted");
    }
    commit(txn);
    engine.collect_all_garbage();
    engine
}

fn commit(txn: Txn) {
    txn.commit().expect("logged").wait().expect("durable");
}

/// UPDATE t SET x = … WHERE id = 1
fn set(txn: &mut Txn, engine: &Engine, x: i64) {
    let t = table(engine);
    let row = find(txn, &t, 1).expect("locked").expect("there");
    txn.update(&t, row, &[(1, Datum::Int(x))]).expect("updated").expect("there");
}

fn change(engine: &Arc<Engine>, x: i64) {
    let mut txn = engine.begin(TxnOptions::default());
    set(&mut txn, engine, x);
    commit(txn);
}

fn old_snapshot(engine: &Arc<Engine>) -> Txn {
    let mut old = engine.begin(TxnOptions::default());
    old.fix_snapshot();
    old
}

fn add_index(engine: &Arc<Engine>) {
    engine.create_index("d", "t", IndexDef::secondary("ix", &[1]), WAIT).expect("made");
}

/// `SELECT x FROM t FORCE INDEX (ix) WHERE x = …`, which trusts the entries of frozen rows.
fn along_index(engine: &Arc<Engine>, x: i64) -> Vec<i64> {
    let (t, txn) = (table(engine), engine.begin(TxnOptions::default()));
    let index = t.indexes()[1].clone();
    let mut key = Vec::new();
    assert!(index.keys.encode_prefix(&[Datum::Int(x)], &mut key));
    let mut found = Vec::new();
    let each = &mut |_, row: RowRef<'_>| {
        if let Datum::Int(x) = row.get(1) {
            found.push(x);
        }
        ControlFlow::Continue(())
    };
    let (range, mut scratch) = (KeyRange::prefix(&key), ReadScratch::default());
    txn.index_scan_of(&t, &index, &range, Direction::Ascending, Some(&[1]), &mut scratch, each)
        .expect("read");
    found
}

/// With all older versions gone, the index has an entry for each row.
fn is_exact(engine: &Arc<Engine>) {
    engine.collect_all_garbage();
    assert_eq!(engine.freeze_all().expect("frozen"), 0);
    let t = table(engine);
    let findings = engine.begin(TxnOptions::default()).check_table(&t).expect("read");
    assert_eq!(findings, [""; 0]);
    assert_eq!(t.indexes()[1].entries(), t.row_count());
}

#[test]
fn a_change_back_that_is_taken_back_leaves_no_entry() {
    let engine = engine();
    let old = old_snapshot(&engine);
    change(&engine, 1);
    add_index(&engine);
    let mut txn = engine.begin(TxnOptions::default());
    set(&mut txn, &engine, 2);
    txn.rollback();
    drop(old);
    is_exact(&engine);
    assert_eq!(along_index(&engine, 1), [1]);
    assert_eq!(along_index(&engine, 2).len(), 9);
}

/// A key that a version from before the index has, too.
#[test]
fn a_change_back_that_is_committed_leaves_no_entry() {
    let engine = engine();
    let old = old_snapshot(&engine);
    change(&engine, 1);
    add_index(&engine);
    change(&engine, 2);
    change(&engine, 3);
    // Versions from after the index are merged with each other, and not with those from before.
    for (x, is_taken_back) in [(4, false), (2, true), (5, false), (1, true), (2, false), (6, false)] {
        let mut txn = engine.begin(TxnOptions::default());
        set(&mut txn, &engine, x);
        if is_taken_back {
            txn.rollback()
        } else {
            commit(txn)
        }
        engine.prune_versions();
    }
    drop(old);
    is_exact(&engine);
    assert_eq!(along_index(&engine, 6), [6]);
    assert_eq!(along_index(&engine, 2).len(), 9);
}

/// A row of a block whose delete an older snapshot does not see has no entry: nobody would take it out.
#[test]
fn deleted_rows_of_blocks_have_no_entries() {
    let engine = engine();
    assert_eq!(engine.freeze_all().expect("frozen"), 0);
    let old = old_snapshot(&engine);
    let mut txn = engine.begin(TxnOptions::default());
    for id in [1, 4] {
        let row = find(&mut txn, &table(&engine), id).expect("locked").expect("there");
        assert!(txn.delete(&table(&engine), row).expect("locked"));
    }
    commit(txn);
    add_index(&engine);
    drop(old);
    is_exact(&engine);
    assert_eq!(along_index(&engine, 2).len(), 8);
}
