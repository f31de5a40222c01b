//! Little memory and much data: pressure ends in work that frees memory, and what cannot be is refused by name.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use avocet_base::RowId;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::*;
use common::rows;

const MIB: usize = 1 << 20;

/// `d.<name> (id BIGINT PRIMARY KEY, body VARCHAR(20000))`
fn create(engine: &Engine, name: &str) {
    let body = SqlType::VarChar { len: 20_000, collation: Collation::UTF8MB4_BIN };
    let columns = vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("body", body)];
    engine.create_table(TableDef::new("d", name, columns, vec![IndexDef::primary(&[0])])).expect("created");
}

fn open(options: EngineOptions) -> Arc<Engine> {
    let engine = Engine::open(options).expect("open");
    engine.create_database("d", Collation::DEFAULT).expect("created");
    create(&engine, "t");
    engine
}

/// With background threads, on a real disk.
fn in_folder(folder: &tempfile::TempDir, memory_limit: usize) -> EngineOptions {
    EngineOptions {
        memory_limit,
        durability: "os".parse().expect("valid"),
        log_segment_bytes: 4 << 20,
        checkpoint_log_bytes: 16 << 20,
        ..EngineOptions::new(folder.path())
    }
}

fn table(engine: &Engine, name: &str) -> Arc<TableHandle> {
    engine.catalog().table("d", name).expect("created").clone()
}

/// Texts that differ, of which about a third stays when they are compressed.
fn text(id: i64, len: usize) -> String {
    let mut text = String::with_capacity(len + 20);
    let mut word = id as u64;
    while text.len() < len {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&format!("word {:x} ", word >> 40));
    }
    text.truncate(len);
    text
}

fn try_insert(txn: &mut Txn, table: &Arc<TableHandle>, id: i64, len: usize) -> Result<RowId> {
    txn.insert(table, &[Datum::Int(id), Datum::str(&text(id, len))])
}

fn insert(txn: &mut Txn, table: &Arc<TableHandle>, id: i64, len: usize) {
    try_insert(txn, table, id, len).expect("there is room");
}

fn rows_of(engine: &Arc<Engine>, name: &str) -> usize {
    let mut rows = 0;
    let count = &mut |_: RowId, _: RowRef<'_>| {
        rows += 1;
        std::ops::ControlFlow::Continue(())
    };
    let mut txn = engine.begin(TxnOptions::default());
    txn.table_rows(&table(engine, name), ReadMode::Snapshot, count).expect("read");
    rows
}

/// What tables and transactions take now.
fn in_tables(engine: &Engine) -> usize {
    let now = engine.memory().in_use();
    now.hot_pages + now.indexes + now.versions + now.transactions
}

#[test]
fn wide_rows_load_in_small_transactions_for_several_times_the_limit() {
    let folder = tempfile::tempdir().expect("made");
    let engine = open(in_folder(&folder, 32 * MIB));
    let t = table(&engine, "t");
    let mut most = 0;
    for start in (0..12_000).step_by(10) {
        let mut txn = engine.begin(TxnOptions::default());
        (start..start + 10).for_each(|id| insert(&mut txn, &t, id, 10_000));
        txn.commit().expect("logged").wait().expect("written");
        most = most.max(in_tables(&engine));
    }
    assert!(most <= 32 * MIB * 9 / 10, "{most}");
    assert_eq!(rows(&engine), 12_000);
    engine.shutdown().expect("closed");
    drop((t, engine));
    let engine = Engine::open(in_folder(&folder, 32 * MIB)).expect("open");
    assert_eq!(rows(&engine), 12_000);
}

#[test]
fn small_tables_are_frozen_when_they_are_many() {
    let folder = tempfile::tempdir().expect("made");
    let engine = open(in_folder(&folder, 8 * MIB));
    let names: Vec<String> = (0..300).map(|n| format!("t{n}")).collect();
    for name in &names {
        create(&engine, name);
        let t = table(&engine, name);
        let mut txn = engine.begin(TxnOptions::default());
        (0..8).for_each(|id| insert(&mut txn, &t, id, 5_000));
        txn.commit().expect("logged").wait().expect("written");
    }
    engine.watch_memory();
    assert!(in_tables(&engine) <= 7 * MIB, "{:?}", engine.memory().in_use());
    assert!(names.iter().all(|name| rows_of(&engine, name) == 8));
}

#[test]
fn a_huge_transaction_is_refused_by_name_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("made");
    let engine = open(in_folder(&folder, 32 * MIB));
    let t = table(&engine, "t");
    let mut txn = engine.begin(TxnOptions::default());
    let refused =
        (0..100_000).find_map(|id| try_insert(&mut txn, &t, id, 1_000).err()).expect("there is an end");
    assert!(matches!(refused, EngineError::TransactionTooLarge { .. }), "{refused}");
    assert!(in_tables(&engine) <= 28 * MIB, "{:?}", engine.memory().in_use());
    txn.rollback();
    assert_eq!(engine.memory().in_use().transactions, 0);
    assert_eq!(rows(&engine), 0);
    // Updates and deletes, which add few rows, take undo all the same.
    for start in (0..100_000).step_by(1000) {
        let mut txn = engine.begin(TxnOptions::default());
        (start..start + 1000).for_each(|id| insert(&mut txn, &t, id, 10));
        txn.commit().expect("logged").wait().expect("written");
    }
    let mut txn = engine.begin(TxnOptions::default());
    let mut ids = Vec::new();
    let all = &mut |id: RowId, _: RowRef<'_>| {
        ids.push(id);
        std::ops::ControlFlow::Continue(())
    };
    txn.table_rows(&t, ReadMode::Snapshot, all).expect("read");
    assert_eq!(ids.len(), 100_000);
    let refused = ids.iter().find_map(|&id| txn.delete(&t, id).err()).expect("there is an end");
    assert!(matches!(refused, EngineError::TransactionTooLarge { .. }), "{refused}");
    txn.rollback();
    assert_eq!(engine.memory().in_use().transactions, 0);
    assert_eq!(rows(&engine), 100_000);
}

/// Rows that are only locked take memory, too: in column blocks, where there was nothing of them in memory before, and however
/// they are come to.
#[test]
fn locks_count_and_are_given_back() {
    let folder = tempfile::tempdir().expect("made");
    let engine = open(in_folder(&folder, 16 * MIB));
    let t = table(&engine, "t");
    for start in (0..60_000).step_by(1000) {
        let mut txn = engine.begin(TxnOptions::default());
        (start..start + 1000).for_each(|id| insert(&mut txn, &t, id, 10));
        txn.commit().expect("logged").wait().expect("written");
    }
    engine.freeze_all().expect("frozen");
    let limit = engine.memory().limit() * 3 / 10;
    let primary = t.indexes()[0].clone();
    for lock in [RowLock::FOR_UPDATE, RowLock { exclusive: false, ..RowLock::FOR_UPDATE }] {
        for by_index in [false, true] {
            let what = format!("{lock:?}, by index: {by_index}");
            let mut txn = engine.begin(TxnOptions::default());
            let mark = txn.begin_statement();
            let refused = match by_index {
                true => {
                    let (range, scratch) = (KeyRange::all(), &mut ReadScratch::default());
                    let visit = &mut |_: RowId, _: RowRef<'_>| std::ops::ControlFlow::Continue(());
                    txn.lock_scan(&t, &primary, &range, Direction::Ascending, lock, scratch, visit)
                }
                false => txn.lock_table(&t, &mut LockHow::all(lock), &mut |_, _| RowVerdict::Wanted),
            };
            let refused = refused.expect_err("there is no room for so many locks");
            assert!(matches!(refused, EngineError::TransactionTooLarge { .. }), "{what}: {refused}");
            let held = engine.memory().in_use().transactions;
            assert!(held > limit / 2 && held <= limit, "{what}: {held} of {limit} bytes are counted");
            txn.rollback_statement(mark);
            assert!(engine.memory().in_use().transactions < MIB, "{what}: given back");
            txn.rollback();
            assert_eq!(engine.memory().in_use().transactions, 0, "{what}");
        }
    }
}

/// An index that does not fit is refused before it takes what rows need, and leaves nothing.
#[test]
fn an_index_that_does_not_fit_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("made");
    let engine = open(in_folder(&folder, 16 * MIB));
    let t = table(&engine, "t");
    for start in (0..60_000).step_by(1000) {
        let mut txn = engine.begin(TxnOptions::default());
        (start..start + 1000).for_each(|id| insert(&mut txn, &t, id, 200));
        txn.commit().expect("logged").wait().expect("written");
    }
    engine.freeze_all().expect("frozen");
    engine.watch_memory();
    let before = engine.memory().in_use();
    let def = IndexDef::secondary("by_body", &[1]);
    let refused =
        engine.create_index("d", "t", def, Duration::from_secs(10)).expect_err("24 megabytes and more");
    assert!(matches!(&refused, EngineError::IndexTooLarge { index } if index == "by_body"), "{refused}");
    let now = engine.memory().in_use();
    assert_eq!((now.work, now.indexes), (0, before.indexes));
    let mut txn = engine.begin(TxnOptions::default());
    insert(&mut txn, &t, 60_000, 200);
    txn.commit().expect("logged").wait().expect("written");
    assert_eq!(rows_of(&engine, "t"), 60_001);
}

#[test]
fn a_statement_that_locks_many_rows_can_be_ended() {
    let engine = open(common::options(&SimDisk::new()));
    let t = table(&engine, "t");
    let mut txn = engine.begin(TxnOptions::default());
    (0..2000).for_each(|id| insert(&mut txn, &t, id, 10));
    txn.commit().expect("logged").wait().expect("durable");
    let mut txn = engine.begin(TxnOptions::default());
    txn.set_interrupt(Arc::new(|| true));
    let ended = txn.lock_table(&t, &mut LockHow::all(RowLock::FOR_UPDATE), &mut |_, _| RowVerdict::Wanted);
    assert!(matches!(ended, Err(EngineError::Interrupted)), "{ended:?}");
}

#[test]
fn a_statement_that_is_taken_back_gives_its_memory_back() {
    let engine = open(EngineOptions { memory_limit: 16 * MIB, ..common::options(&SimDisk::new()) });
    let t = table(&engine, "t");
    let mut txn = engine.begin(TxnOptions::default());
    for _ in 0..20 {
        let mark = txn.begin_statement();
        (0..100).for_each(|id| insert(&mut txn, &t, id, 10_000));
        txn.rollback_statement(mark);
    }
    insert(&mut txn, &t, 1, 10_000);
    txn.commit().expect("logged").wait().expect("durable");
    assert_eq!(engine.memory().in_use().transactions, 0);
    assert_eq!(rows(&engine), 1);
}

/// What nothing can be frozen of is refused in the end, and may come when there is room again.
#[test]
fn rows_that_a_snapshot_keeps_in_memory_are_refused() {
    let engine = open(EngineOptions { memory_limit: 8 * MIB, ..common::options(&SimDisk::new()) });
    let t = table(&engine, "t");
    let mut old = engine.begin(TxnOptions::default());
    old.fix_snapshot();
    let commit = |id| {
        let mut txn = engine.begin(TxnOptions::default());
        try_insert(&mut txn, &t, id, 10_000)?;
        txn.commit()?.wait()
    };
    let refused = (0..2_000).find_map(|id| Some((id, commit(id).err()?)));
    let (refused_at, refused) = refused.expect("there is an end");
    assert!(matches!(refused, EngineError::OutOfMemory { most_of_it: "rows", .. }), "{refused}");
    assert!(refused_at > 400, "{refused_at}: memory is used");
    drop(old);
    commit(refused_at).expect("there is room");
    assert_eq!(rows(&engine) as i64, refused_at + 1);
}

#[test]
fn who_waits_for_room_is_interrupted() {
    let folder = tempfile::tempdir().expect("made");
    let engine = open(in_folder(&folder, 8 * MIB));
    let t = table(&engine, "t");
    let mut old = engine.begin(TxnOptions::default());
    old.fix_snapshot();
    let began = Instant::now();
    let refused = (0..5_000).find_map(|id| {
        let mut txn = engine.begin(TxnOptions::default());
        txn.set_interrupt(Arc::new(|| true));
        try_insert(&mut txn, &t, id, 10_000).err().or_else(|| txn.commit().err())
    });
    assert!(matches!(refused, Some(EngineError::Interrupted)), "{refused:?}");
    assert!(began.elapsed() < Duration::from_secs(60));
}

/// A row that updates make large moves when its page has grown enough: no segment becomes too large to be frozen.
#[test]
fn segments_do_not_grow_without_a_bound_by_updates() {
    let engine = open(EngineOptions { memory_limit: 64 * MIB, ..common::options(&SimDisk::new()) });
    let t = table(&engine, "t");
    let mut ids = Vec::new();
    for start in (0..3_000).step_by(1000) {
        let mut txn = engine.begin(TxnOptions::default());
        ids.extend((start..start + 1000).map(|id| try_insert(&mut txn, &t, id, 10).expect("there is room")));
        txn.commit().expect("logged").wait().expect("durable");
    }
    assert!(ids.iter().all(|id| id.segment() == ids[0].segment()));
    let mut moved = 0;
    for (n, &id) in ids.iter().enumerate() {
        let mut txn = engine.begin(TxnOptions::default());
        let change = [(1, Datum::str(&text(n as i64, 15_000)).into_owned())];
        let to = txn.update(&t, id, &change).expect("there is room").expect("it is there");
        moved += u32::from(to.segment() != id.segment());
        txn.commit().expect("logged").wait().expect("durable");
    }
    assert!((1_500..2_950).contains(&moved), "{moved}");
    assert_eq!(rows(&engine), 3_000);
    assert_eq!(engine.freeze_all().expect("frozen"), 0);
    assert_eq!(rows(&engine), 3_000);
}
