//! Old versions: bounded while an old snapshot is held, right for it, and gone after it.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::{Collation, ColumnDef, Datum, IndexDef, SqlType, TableDef};

use common::{create, options, table};

/// `id note` of every row that the transaction sees, in key order.
fn rows(txn: &Txn, engine: &Engine) -> Vec<String> {
    let t = table(engine);
    let primary = t.indexes()[0].clone();
    let mut seen = Vec::new();
    let mut scratch = ReadScratch::default();
    txn.index_scan(&t, &primary, &KeyRange::all(), Direction::Ascending, &mut scratch, &mut |_, row| {
        seen.push(format!("{:?} {:?}", row.get(0), row.get(1)));
        ControlFlow::Continue(())
    })
    .expect("read");
    seen
}

fn key(t: &TableHandle, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    assert!(t.indexes()[0].keys.encode_prefix(&[Datum::Int(id)], &mut key));
    key
}

/// One transaction that sets notes, or moves a row to another key and back.
fn change(engine: &Arc<Engine>, n: i64) -> CommitTicket {
    let t = table(engine);
    let primary = t.indexes()[0].clone();
    let mut scratch = ReadScratch::default();
    let mut txn = engine.begin(TxnOptions::default());
    let id = n % 10;
    let note = n.to_string();
    let mut set = |from: i64, column: usize, value: Datum<'_>| {
        let each = &mut |_: avocet_types::RowRef<'_>, to: &mut RowChange<'_>| to.set(column, &value);
        txn.modify_unique(&t, &primary, &key(&t, from), &mut scratch, each).expect("changed")
    };
    set(id, 1, Datum::str(&note));
    // Every row is moved away now and then, by one transaction, and back by the next of its row.
    if n % 70 < 10 && set(100 + id, 0, Datum::Int(200 + id)).is_none() {
        set(200 + id, 0, Datum::Int(100 + id));
    }
    txn.commit().expect("logged")
}

fn engine() -> Arc<Engine> {
    let engine = Engine::open(options(&SimDisk::new())).expect("open");
    create(&engine);
    let mut txn = engine.begin(TxnOptions::default());
    for id in (0..10).chain(100..110) {
        txn.insert(&table(&engine), &[Datum::Int(id), Datum::str("first")]).expect("inserted");
    }
    txn.commit().expect("logged").wait().expect("durable");
    engine.collect_all_garbage();
    engine
}

#[test]
fn an_old_snapshot_keeps_one_version_for_each_row_and_gap() {
    let engine = engine();
    let mut held = Vec::new();
    for n in 0..6_000 {
        let ticket = change(&engine, n);
        if n % 2_000 == 999 {
            ticket.wait().expect("durable");
            let mut txn = engine.begin(TxnOptions::default());
            txn.fix_snapshot();
            let seen = rows(&txn, &engine);
            held.push((txn, seen));
        }
    }
    engine.begin(TxnOptions::default()).commit().expect("nothing").wait().expect("durable");
    change(&engine, 6_000).wait().expect("durable");
    let newest = rows(&engine.begin(TxnOptions::default()), &engine);
    let before = engine.version_backlog();
    assert!(before > 4_000, "{before} versions are held up");
    engine.prune_versions();
    let after = engine.version_backlog();
    assert!(after <= 60, "{after} versions are left of {before}: three gaps, twenty rows");
    for _ in 0..2 {
        for (txn, seen) in &held {
            assert_eq!(&rows(txn, &engine), seen);
        }
        assert_eq!(rows(&engine.begin(TxnOptions::default()), &engine), newest);
        engine.prune_versions();
    }
    // One by one, not in the order in which they came.
    for at in [1, 0, 0] {
        drop(held.remove(at));
        engine.collect_all_garbage();
        for (txn, seen) in &held {
            assert_eq!(&rows(txn, &engine), seen);
        }
    }
    assert_eq!(engine.version_backlog(), 0);
    assert_eq!(table(&engine).indexes()[0].entries(), 20, "no entry outlives its versions");
    assert_eq!(rows(&engine.begin(TxnOptions::default()), &engine), newest);
    assert_eq!(engine.freeze_all().expect("frozen"), 0, "nothing holds a page back");
}

#[test]
fn pruning_beside_writers_and_readers_changes_nothing_that_is_seen() {
    let engine = engine();
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let (engine, stop) = (&engine, &stop);
        let readers: Vec<_> = (0..2)
            .map(|_| {
                threads.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let mut txn = engine.begin(TxnOptions::default());
                        txn.fix_snapshot();
                        let first = rows(&txn, engine);
                        assert_eq!(first.len(), 20);
                        for _ in 0..20 {
                            assert_eq!(rows(&txn, engine), first);
                        }
                    }
                })
            })
            .collect();
        let pruner = threads.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                engine.prune_versions();
                engine.collect_all_garbage();
            }
        });
        for n in 0..4_000 {
            drop(change(engine, n));
        }
        stop.store(true, Ordering::Relaxed);
        readers.into_iter().chain([pruner]).for_each(|thread| thread.join().expect("no panic"));
    });
    change(&engine, 4_000).wait().expect("durable");
    engine.collect_all_garbage();
    assert_eq!(engine.version_backlog(), 0);
    assert_eq!(table(&engine).indexes()[0].entries(), 20);
    assert_eq!(engine.freeze_all().expect("frozen"), 0);
}

/// A transaction changes the key of a row that another one has moved out of a block since its snapshot: what it sees there is
/// marked, and still the entry of the old key is known to be stale.
#[test]
fn entries_go_with_the_versions_of_rows_that_others_have_moved() {
    let engine = Engine::open(options(&SimDisk::new())).expect("open");
    engine.create_database("d", Collation::DEFAULT).expect("created");
    let columns = vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("k", SqlType::BIGINT)];
    let indexes = vec![IndexDef::primary(&[0]), IndexDef::secondary("k", &[1])];
    let t = engine.create_table(TableDef::new("d", "t", columns, indexes)).expect("created");
    let mut txn = engine.begin(TxnOptions::default());
    let ids: Vec<_> =
        (0..3).map(|n| txn.insert(&t, &[Datum::Int(n), Datum::Int(n)]).expect("inserted")).collect();
    txn.commit().expect("logged").wait().expect("durable");
    engine.collect_all_garbage();
    assert_eq!(engine.freeze_all().expect("frozen"), 0);

    let mut old = engine.begin(TxnOptions::default());
    old.fix_snapshot();
    let mut other = engine.begin(TxnOptions::default());
    let moved = other.update(&t, ids[1], &[(1, Datum::Int(1))]).expect("no conflict").expect("it is there");
    assert_ne!(moved, ids[1]);
    other.commit().expect("logged").wait().expect("durable");
    assert_eq!(old.update(&t, moved, &[(1, Datum::Int(-3))]).expect("no conflict"), Some(moved));
    old.commit().expect("logged").wait().expect("durable");

    engine.collect_all_garbage();
    let k = t.indexes()[1].clone();
    assert_eq!(k.entries(), 3, "no entry outlives its versions");
    assert_eq!(engine.freeze_all().expect("frozen"), 0);
    let (txn, mut seen) = (engine.begin(TxnOptions::default()), Vec::new());
    let (range, scratch) = (KeyRange::all(), &mut ReadScratch::default());
    txn.index_scan_of(&t, &k, &range, Direction::Ascending, Some(&[0, 1]), scratch, &mut |_, row| {
        seen.push(format!("{:?} {:?}", row.get(0), row.get(1)));
        ControlFlow::Continue(())
    })
    .expect("read");
    assert_eq!(seen, ["Int(1) Int(-3)", "Int(0) Int(0)", "Int(2) Int(2)"]);
}
