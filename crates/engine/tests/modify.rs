//! Reading, deciding and changing rows in one visit, in hot pages and in blocks, alone and against others.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::{ColumnBuilder, Datum, SqlType};

use common::{create, options, table};

fn key(table: &TableHandle, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    assert!(table.indexes()[0].keys.encode_prefix(&[Datum::Int(id)], &mut key));
    key
}

fn engine_with(rows: i64, disk: &SimDisk) -> Arc<Engine> {
    engine_of(rows, options(disk))
}

fn engine_of(rows: i64, options: EngineOptions) -> Arc<Engine> {
    let engine = Engine::open(options).expect("open");
    create(&engine);
    let mut txn = engine.begin(TxnOptions::default());
    for id in 0..rows {
        txn.insert(&table(&engine), &[Datum::Int(id), Datum::str("0")]).expect("inserted");
    }
    txn.commit().expect("logged").wait().expect("durable");
    engine
}

fn note(row: &avocet_types::RowRef<'_>) -> String {
    match row.get(1) {
        Datum::Str(s) => s.into_owned(),
        other => panic!("{other:?}"),
    }
}

/// Adds one to the number that a row's note is.
fn add_one(txn: &mut Txn, engine: &Engine, id: i64, scratch: &mut ReadScratch) -> Result<bool> {
    let t = table(engine);
    let primary = t.indexes()[0].clone();
    let add = &mut |row: avocet_types::RowRef<'_>, to: &mut RowChange<'_>| {
        let number: u64 = note(&row).parse().expect("a number");
        to.set(1, &Datum::str(&(number + 1).to_string()));
    };
    Ok(txn.modify_unique(&t, &primary, &key(&t, id), scratch, add)?.is_some())
}

fn read(engine: &Arc<Engine>, id: i64) -> Option<String> {
    let (t, txn) = (table(engine), engine.begin(TxnOptions::default()));
    let mut scratch = ReadScratch::default();
    let primary = t.indexes()[0].clone();
    let (mut peeked, mut got) = (None, None);
    // Twice, so that hints are used too.
    for _ in 0..2 {
        txn.peek_unique(&t, &primary, &key(&t, id), &mut scratch, &mut |_, row| peeked = Some(note(&row)))
            .expect("read");
        txn.get_unique(&t, &primary, &key(&t, id), &mut scratch, &mut |_, row| got = Some(note(&row)))
            .expect("read");
        assert_eq!(peeked, got);
    }
    got
}

#[test]
fn rows_are_changed_deleted_or_only_locked_as_somebody_says() {
    let disk = SimDisk::new();
    let engine = engine_with(3, &disk);
    let t = table(&engine);
    let primary = t.indexes()[0].clone();
    let mut scratch = ReadScratch::default();
    for freeze in [false, true] {
        if freeze {
            assert_eq!(engine.freeze_all().expect("frozen"), 0);
        }
        let mut txn = engine.begin(TxnOptions::default());
        assert!(add_one(&mut txn, &engine, 1, &mut scratch).expect("changed"));
        assert!(add_one(&mut txn, &engine, 1, &mut scratch).expect("changed its own change"));
        assert!(!add_one(&mut txn, &engine, 77, &mut scratch).expect("looked"));
        let nothing = &mut |_: avocet_types::RowRef<'_>, _: &mut RowChange<'_>| ();
        assert!(
            txn.modify_unique(&t, &primary, &key(&t, 0), &mut scratch, nothing).expect("locked").is_some()
        );
        let mark = txn.mark();
        let delete = &mut |_: avocet_types::RowRef<'_>, to: &mut RowChange<'_>| to.delete();
        assert!(
            txn.modify_unique(&t, &primary, &key(&t, 2), &mut scratch, delete).expect("deleted").is_some()
        );
        assert!(txn.modify_unique(&t, &primary, &key(&t, 2), &mut scratch, delete).expect("gone").is_none());
        txn.rollback_statement(mark);
        txn.commit().expect("logged").wait().expect("durable");
        engine.collect_all_garbage();
    }
    assert_eq!([0, 1, 2, 3].map(|id| read(&engine, id)).map(|n| n.unwrap_or_default()), ["0", "4", "0", ""]);
    drop((t, engine));
    let engine = Engine::open(options(&disk)).expect("recovered");
    assert_eq!(read(&engine, 1).as_deref(), Some("4"));
    assert_eq!(table(&engine).row_count(), 3);
}

#[test]
fn looking_ahead_changes_nothing_wherever_the_rows_are() {
    let disk = SimDisk::new();
    let engine = engine_with(300, &disk);
    let t = table(&engine);
    let primary = t.indexes()[0].clone();
    let mut keys = KeyList::default();
    let mut scratch = ReadScratch::default();
    // Hot, hot with hints, in a block, moved from there; and keys that nobody has.
    for round in 0..4 {
        if round == 2 {
            assert_eq!(engine.freeze_all().expect("frozen"), 0);
        }
        let mut txn = engine.begin(TxnOptions::default());
        keys.clear();
        (0..400).for_each(|id| keys.push(|to| to.extend_from_slice(&key(&t, id))));
        txn.look_ahead(&t, &primary, &mut keys, Ahead::Rows);
        for id in 0..400 {
            assert_eq!(add_one(&mut txn, &engine, id, &mut scratch).expect("looked"), id < 300);
        }
        txn.look_ahead(&t, &primary, &mut keys, Ahead::Numbers);
        txn.commit().expect("logged").wait().expect("durable");
        engine.collect_all_garbage();
    }
    assert_eq!([0, 299, 300].map(|id| read(&engine, id)), [Some("4".into()), Some("4".into()), None]);
}

#[test]
fn a_change_that_takes_a_key_twice_leaves_nothing() {
    let disk = SimDisk::new();
    let engine = engine_with(3, &disk);
    let t = table(&engine);
    let primary = t.indexes()[0].clone();
    let mut scratch = ReadScratch::default();
    let mut txn = engine.begin(TxnOptions::default());
    let mut set = |txn: &mut Txn, from: i64, to_id: i64| {
        let change = &mut |_: avocet_types::RowRef<'_>, to: &mut RowChange<'_>| to.set(0, &Datum::Int(to_id));
        txn.modify_unique(&t, &primary, &key(&t, from), &mut scratch, change)
    };
    let refused = set(&mut txn, 1, 2).expect_err("the key is taken");
    assert!(matches!(refused, EngineError::DuplicateKey { .. }), "{refused}");
    assert!(set(&mut txn, 1, 9).expect("free").is_some());
    assert!(set(&mut txn, 1, 10).expect("looked").is_none());
    txn.commit().expect("logged").wait().expect("durable");
    engine.collect_all_garbage();
    assert_eq!([1, 2, 9].map(|id| read(&engine, id).is_some()), [false, true, true]);
}

#[test]
fn a_range_shows_every_row_once_even_if_rows_move() {
    let disk = SimDisk::new();
    let engine = engine_with(300, &disk);
    assert_eq!(engine.freeze_all().expect("frozen"), 0);
    let t = table(&engine);
    let primary = t.indexes()[0].clone();
    let mut scratch = ReadScratch::default();
    for (direction, round) in [(Direction::Ascending, "1"), (Direction::Descending, "2")] {
        let mut txn = engine.begin(TxnOptions::default());
        let mut seen = Vec::new();
        let each = &mut |row: avocet_types::RowRef<'_>, to: &mut RowChange<'_>| {
            let Datum::Int(id) = row.get(0) else { panic!("an id") };
            seen.push(id);
            to.set(1, &Datum::str(round));
            ControlFlow::Continue(())
        };
        txn.modify_range(&t, &primary, &KeyRange::all(), direction, &mut scratch, each).expect("changed");
        txn.commit().expect("logged").wait().expect("durable");
        seen.sort_unstable();
        assert_eq!(seen, (0..300).collect::<Vec<_>>(), "{direction:?}");
        engine.collect_all_garbage();
        assert_eq!(engine.freeze_all().expect("frozen"), 0);
    }
    assert_eq!(read(&engine, 299).as_deref(), Some("2"));
}

#[test]
fn no_change_is_lost_among_many() {
    change_among_many(false);
}

#[test]
fn no_change_is_lost_among_many_where_changed_rows_move() {
    change_among_many(true);
}

fn change_among_many(updates_move_rows: bool) {
    const THREADS: i64 = 4;
    const EACH: i64 = 300;
    let disk = SimDisk::new();
    let engine = engine_of(100, EngineOptions { updates_move_rows, ..options(&disk) });
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let engine = &engine;
            threads.spawn(move || {
                let mut scratch = ReadScratch::default();
                for n in 0..EACH {
                    loop {
                        let mut txn = engine.begin(TxnOptions::default());
                        // Two of three hot rows, in an order that may end in a deadlock, and a row of its own.
                        let rows = [(n + thread) % 3, (n + 1) % 3, 50 + thread];
                        let done = rows
                            .iter()
                            .try_for_each(|&id| add_one(&mut txn, engine, id, &mut scratch).map(drop));
                        match done {
                            Ok(()) => {
                                drop(txn.commit().expect("logged"));
                                break;
                            }
                            Err(e) => assert_eq!(e.kind(), ErrorKind::Retry, "{e}"),
                        }
                    }
                    if n % 64 == 0 {
                        engine.collect_all_garbage();
                    }
                }
            });
        }
    });
    // What the threads did not wait for.
    let logged = TxnOptions { freshness: Freshness::Logged, ..TxnOptions::default() };
    engine.begin(logged).commit().expect("logged").wait().expect("durable");
    engine.collect_all_garbage();
    let number = |id| read(&engine, id).expect("there").parse::<i64>().expect("a number");
    assert_eq!([0, 1, 2].map(number).iter().sum::<i64>(), THREADS * EACH * 2);
    assert_eq!([50, 51, 52, 53].map(number), [EACH; 4]);
}

/// Somebody has moved rows of a cold table and commits once another, which begins now, waits for one of them.
fn beside_a_mover<T: Send>(run: impl Fn(&Arc<Engine>) -> T + Sync) -> (Arc<Engine>, T) {
    let engine = engine_with(8, &SimDisk::new());
    engine.freeze_all().expect("frozen");
    let mut mover = engine.begin(TxnOptions::default());
    for id in [1, 4, 7] {
        assert!(add_one(&mut mover, &engine, id, &mut ReadScratch::default()).expect("changed"));
    }
    let outcome = std::thread::scope(|threads| {
        let other = threads.spawn(|| run(&engine));
        while engine.sleeping_waiters() == 0 {
            std::thread::yield_now();
        }
        mover.commit().expect("logged").wait().expect("durable");
        other.join().expect("no panic")
    });
    (engine, outcome)
}

fn id_of(row: &avocet_types::RowRef<'_>) -> i64 {
    match row.get(0) {
        Datum::Int(id) => id,
        other => panic!("{other:?}"),
    }
}

/// A cold row that is changed moves to a new place, whose entry a scan may be past when it learns of that.
#[test]
fn a_range_finds_rows_once_that_were_moved_while_it_waited_for_them() {
    for direction in [Direction::Ascending, Direction::Descending] {
        let (engine, mut met) = beside_a_mover(|engine| {
            let t = table(engine);
            let primary = t.indexes()[0].clone();
            let mut txn = engine.begin(TxnOptions::default());
            let mut met = Vec::new();
            let each = &mut |row: avocet_types::RowRef<'_>, to: &mut RowChange<'_>| {
                met.push(id_of(&row));
                to.set(1, &Datum::str("met"));
                ControlFlow::Continue(())
            };
            let (all, scratch) = (KeyRange::all(), &mut ReadScratch::default());
            txn.modify_range(&t, &primary, &all, direction, scratch, each).expect("changed");
            txn.commit().expect("logged").wait().expect("durable");
            met
        });
        met.sort_unstable();
        assert_eq!(met, (0..8).collect::<Vec<_>>(), "{direction:?}");
        assert!((0..8).all(|id| read(&engine, id).as_deref() == Some("met")));
    }
}

#[test]
fn a_locking_scan_finds_rows_once_that_were_moved_while_it_waited_for_them() {
    for direction in [Direction::Ascending, Direction::Descending] {
        let (_, mut met) = beside_a_mover(|engine| {
            let t = table(engine);
            let primary = t.indexes()[0].clone();
            let mut txn = engine.begin(TxnOptions::default());
            let mut met = Vec::new();
            let (all, scratch) = (KeyRange::all(), &mut ReadScratch::default());
            let lock = RowLock::FOR_UPDATE;
            txn.lock_scan(&t, &primary, &all, direction, lock, scratch, &mut |_, row| {
                met.push(id_of(&row));
                ControlFlow::Continue(())
            })
            .expect("locked");
            met
        });
        met.sort_unstable();
        assert_eq!(met, (0..8).collect::<Vec<_>>(), "{direction:?}");
    }
}

/// A table is gone through by segments. A row of a later one, which was loaded, may move to an earlier one, where rows
/// are still inserted.
#[test]
fn all_rows_of_a_table_are_locked_even_if_some_move_back() {
    let engine = engine_with(4, &SimDisk::new());
    let t = table(&engine);
    let mut ids = ColumnBuilder::new(&SqlType::BIGINT, 4);
    let mut notes = ColumnBuilder::new(&t.def.columns[1].ty, 4);
    for id in 100..104 {
        ids.append(&Datum::Int(id));
        notes.append(&Datum::str("0"));
    }
    let fields: Vec<_> =
        t.def.columns.iter().map(|c| Field::new(&c.name, c.ty.arrow_type(), false)).collect();
    let columns = vec![ids.finish(), notes.finish()];
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("of the types");
    let mut txn = engine.begin(TxnOptions::default());
    let mut bulk = txn.bulk_insert(&t).expect("begun");
    bulk.push(&mut txn, &batch).expect("pushed");
    bulk.finish(&mut txn).expect("loaded");
    txn.commit().expect("logged").wait().expect("durable");

    let mut holder = engine.begin(TxnOptions::default());
    let nothing = &mut |_: avocet_types::RowRef<'_>, _: &mut RowChange<'_>| {};
    let primary = t.indexes()[0].clone();
    let scratch = &mut ReadScratch::default();
    assert!(holder.modify_unique(&t, &primary, &key(&t, 100), scratch, nothing).expect("locked").is_some());
    let met = std::thread::scope(|threads| {
        let all = threads.spawn(|| lock_all(&engine));
        while engine.sleeping_waiters() == 0 {
            std::thread::yield_now();
        }
        let mut mover = engine.begin(TxnOptions::default());
        assert!(add_one(&mut mover, &engine, 102, &mut ReadScratch::default()).expect("changed"));
        mover.commit().expect("logged").wait().expect("durable");
        holder.rollback();
        all.join().expect("no panic")
    });
    assert_eq!(met, [0, 1, 2, 3, 100, 101, 103, 102]);
}

/// As InnoDB has it, whose record lock is the key's: sysbench's read-write transactions delete a row and insert its key again.
#[test]
fn a_row_whose_key_is_inserted_again_is_found_by_whoever_waited_for_it() {
    for (by_scan, renamed) in [(false, false), (true, false), (false, true), (true, true)] {
        let disk = SimDisk::new();
        let engine = engine_with(3, &disk);
        let t = table(&engine);
        let primary = t.indexes()[0].clone();
        let mut first = engine.begin(TxnOptions::default());
        let mut scratch = ReadScratch::default();
        let leave_key = &mut |_: avocet_types::RowRef<'_>, to: &mut RowChange<'_>| match renamed {
            true => to.set(0, &Datum::Int(10)),
            false => to.delete(),
        };
        let left = first.modify_unique(&t, &primary, &key(&t, 1), &mut scratch, leave_key);
        assert!(left.expect("left").is_some());
        let found = std::thread::scope(|threads| {
            let second = threads.spawn(|| {
                let mut txn = engine.begin(TxnOptions::default());
                let mut scratch = ReadScratch::default();
                let mut found = Vec::new();
                if by_scan {
                    let range = KeyRange::prefix(&key(&t, 1));
                    let each = &mut |_, row: avocet_types::RowRef<'_>| {
                        found.push(note(&row));
                        ControlFlow::Continue(())
                    };
                    let lock = RowLock::FOR_UPDATE;
                    txn.lock_scan(&t, &primary, &range, Direction::Ascending, lock, &mut scratch, each)
                        .expect("locked");
                } else {
                    let look =
                        &mut |row: avocet_types::RowRef<'_>, _: &mut RowChange<'_>| found.push(note(&row));
                    txn.modify_unique(&t, &primary, &key(&t, 1), &mut scratch, look).expect("locked");
                }
                found
            });
            while engine.sleeping_waiters() == 0 {
                std::thread::yield_now();
            }
            first.insert(&t, &[Datum::Int(1), Datum::str("again")]).expect("inserted");
            first.commit().expect("logged").wait().expect("durable");
            second.join().expect("no panic")
        });
        assert_eq!(found, ["again"], "by scan: {by_scan}, renamed: {renamed}");
    }
}

#[test]
fn a_range_that_waited_meets_what_was_added_behind() {
    for direction in [Direction::Ascending, Direction::Descending] {
        let engine = engine_with(3, &SimDisk::new());
        let t = table(&engine);
        let primary = t.indexes()[0].clone();
        let mut holder = engine.begin(TxnOptions::default());
        assert!(add_one(&mut holder, &engine, 1, &mut ReadScratch::default()).expect("changed"));
        let met = std::thread::scope(|threads| {
            let all = threads.spawn(|| {
                let mut txn = engine.begin(TxnOptions::default());
                let mut met = Vec::new();
                let each = &mut |row: avocet_types::RowRef<'_>, _: &mut RowChange<'_>| {
                    met.push(id_of(&row));
                    ControlFlow::Continue(())
                };
                let (all, scratch) = (KeyRange::all(), &mut ReadScratch::default());
                txn.modify_range(&t, &primary, &all, direction, scratch, each).expect("locked");
                met
            });
            while engine.sleeping_waiters() == 0 {
                std::thread::yield_now();
            }
            let mut adder = engine.begin(TxnOptions::default());
            for id in [-5, 5] {
                adder.insert(&t, &[Datum::Int(id), Datum::str("0")]).expect("inserted");
            }
            adder.commit().expect("logged").wait().expect("durable");
            holder.commit().expect("logged").wait().expect("durable");
            all.join().expect("no panic")
        });
        let expected = if direction == Direction::Ascending { [0, 1, 2, 5] } else { [2, 1, 0, -5] };
        assert_eq!(met, expected, "{direction:?}");
    }
}

/// Locks the whole table, without an index; what that is shown.
fn lock_all(engine: &Arc<Engine>) -> Vec<i64> {
    let (t, mut txn) = (table(engine), engine.begin(TxnOptions::default()));
    let mut met = Vec::new();
    txn.table_rows(&t, ReadMode::Lock(RowLock::FOR_UPDATE), &mut |_, row| {
        met.push(id_of(&row));
        ControlFlow::Continue(())
    })
    .expect("locked");
    met
}

#[test]
fn a_table_is_locked_with_what_was_added_during_a_wait() {
    let engine = engine_with(3, &SimDisk::new());
    let t = table(&engine);
    let mut holder = engine.begin(TxnOptions::default());
    assert!(add_one(&mut holder, &engine, 1, &mut ReadScratch::default()).expect("changed"));
    let met = std::thread::scope(|threads| {
        let all = threads.spawn(|| lock_all(&engine));
        while engine.sleeping_waiters() == 0 {
            std::thread::yield_now();
        }
        holder.insert(&t, &[Datum::Int(5), Datum::str("0")]).expect("inserted");
        holder.commit().expect("logged").wait().expect("durable");
        all.join().expect("no panic")
    });
    assert_eq!(met, [0, 1, 2, 5]);
}

/// Its key is known by a hint, which its newest version no longer bears out.
#[test]
fn a_row_that_the_snapshot_sees_and_whose_key_has_changed_is_a_conflict() {
    let engine = engine_with(3, &SimDisk::new());
    let t = table(&engine);
    let primary = t.indexes()[0].clone();
    let mut scratch = ReadScratch::default();
    let strict = TxnOptions { isolation: Isolation::Snapshot, ..TxnOptions::default() };
    let mut late = engine.begin(strict);
    for _ in 0..2 {
        assert!(late.get_unique(&t, &primary, &key(&t, 1), &mut scratch, &mut |_, _| {}).expect("read"));
    }
    let mut first = engine.begin(TxnOptions::default());
    let rename = &mut |_: avocet_types::RowRef<'_>, to: &mut RowChange<'_>| to.set(0, &Datum::Int(10));
    let renamed = first.modify_unique(&t, &primary, &key(&t, 1), &mut scratch, rename);
    assert!(renamed.expect("renamed").is_some());
    first.commit().expect("logged").wait().expect("durable");
    let outcome = add_one(&mut late, &engine, 1, &mut scratch);
    assert!(matches!(outcome, Err(EngineError::SnapshotConflict(_))), "{outcome:?}");
}

#[test]
fn a_strict_change_does_not_wait_for_rows_of_other_keys() {
    const ROWS: i64 = 400;
    let engine = engine_with(ROWS, &SimDisk::new());
    // Each key is hinted at.
    (0..ROWS).for_each(|id| assert!(read(&engine, id).is_some()));
    let mut scratch = ReadScratch::default();
    let strict = TxnOptions {
        isolation: Isolation::Serializable,
        lock_wait_timeout: std::time::Duration::from_millis(50),
        ..TxnOptions::default()
    };
    for held in [0, 1, 5, 133] {
        let mut holder = engine.begin(TxnOptions::default());
        assert!(add_one(&mut holder, &engine, held, &mut scratch).expect("changed"));
        let mut late = engine.begin(strict);
        for id in (0..ROWS).filter(|id| *id != held) {
            let changed = add_one(&mut late, &engine, id, &mut scratch);
            assert!(matches!(changed, Ok(true)), "{id} beside {held}: {changed:?}");
        }
    }
}
