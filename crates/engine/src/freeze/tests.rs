use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use avocet_base::env::sim::{DiskError, DiskOp, SimDisk};
use avocet_types::{Collation, ColumnDef, Datum, IndexDef, SqlType, TableDef};

use crate::engine::{Engine, EngineOptions};
use crate::pace::Pacer;
use crate::txn::TxnOptions;

const TABLES: usize = 5;
const ROWS: i64 = 2_000;

/// Tables of which each has one hot segment.
fn filled(disk: &SimDisk) -> Arc<Engine> {
    let options = EngineOptions { env: disk.env(), background: false, ..EngineOptions::new("/data") };
    let engine = Engine::open(options).expect("open");
    engine.create_database("d", Collation::DEFAULT).expect("created");
    for name in names() {
        let columns = vec![ColumnDef::new("id", SqlType::BIGINT)];
        let def = TableDef::new("d", &name, columns, vec![IndexDef::primary(&[0])]);
        engine.create_table(def).expect("created");
        let table = engine.catalog().table("d", &name).expect("created").clone();
        let mut txn = engine.begin(TxnOptions::default());
        for id in 0..ROWS {
            txn.insert(&table, &[Datum::Int(id)]).expect("inserted");
        }
        txn.commit().expect("logged").wait().expect("durable");
    }
    engine.collect_all_garbage();
    // The log makes a segment in advance, on a thread of its own: failures that are planned are not meant for that.
    let has_spare = || {
        let names = disk.env().disk.list(Path::new("/data/log")).expect("listed");
        names.iter().any(|name| name.starts_with("spare."))
    };
    let end = Instant::now() + Duration::from_secs(30);
    while !has_spare() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(has_spare());
    engine
}

fn names() -> impl Iterator<Item = String> {
    (0..TABLES).map(|n| format!("t{n}"))
}

fn hot_segments(engine: &Engine) -> usize {
    engine.freezer().candidates().len()
}

/// How many tables' segments one failing call of the disk keeps from being frozen, whichever it is.
fn left_hot(work: impl Fn(&Arc<Engine>)) {
    for n in 1..=6 {
        let disk = SimDisk::new();
        let engine = filled(&disk);
        assert_eq!(hot_segments(&engine), TABLES);
        disk.fail(DiskOp::Create, n, DiskError::Io);
        work(&engine);
        engine.freezing.watch.lock().failed.clear();
        assert!(hot_segments(&engine) <= 1, "call {n}: {}", hot_segments(&engine));
        engine.freezer().freeze_early(usize::MAX);
        assert_eq!(hot_segments(&engine), 0);
        for name in names() {
            let table = engine.catalog().table("d", &name).expect("created").clone();
            assert_eq!(table.count_rows(), ROWS as u64, "{name}");
        }
    }
}

#[test]
fn the_failure_of_one_table_does_not_stop_the_others() {
    left_hot(|engine| assert!(engine.freezer().freeze_early(usize::MAX) > 0));
    left_hot(|engine| {
        for table in engine.catalog().tables() {
            table.relation.close_insert_segment();
        }
        // Nobody has looked before: none is cool.
        engine.freezer().freeze_cool(&mut Pacer::none());
        assert_eq!(hot_segments(engine), TABLES);
        let long_ago = super::COOL_AFTER + super::COOL_AFTER;
        engine.freezing.watch.lock().watched.values_mut().for_each(|(_, since)| *since -= long_ago);
        engine.freezer().freeze_cool(&mut Pacer::none());
    });
}

#[test]
fn a_segment_that_failed_is_left_alone_for_a_while() {
    let disk = SimDisk::new();
    let engine = filled(&disk);
    (1..=TABLES as u64).for_each(|n| disk.fail(DiskOp::Create, n, DiskError::Io));
    assert_eq!(engine.freezer().freeze_early(usize::MAX), 0);
    assert_eq!((hot_segments(&engine), engine.freezer().freeze_early(usize::MAX)), (0, 0));
    let later = super::RETRY_AFTER + super::RETRY_AFTER;
    engine.freezing.watch.lock().failed.values_mut().for_each(|at| *at -= later);
    assert_eq!(hot_segments(&engine), TABLES);
    assert!(engine.freezer().freeze_early(usize::MAX) > 0);
    assert_eq!(hot_segments(&engine), 0);
}

/// Behind an old snapshot nothing can be frozen: then nothing is closed either, however often relief is asked for.
#[test]
fn rows_go_on_to_a_segment_that_cannot_be_frozen() {
    let disk = SimDisk::new();
    let engine = filled(&disk);
    let table = engine.catalog().table("d", "t0").expect("created").clone();
    let mut old = engine.begin(TxnOptions::default());
    old.fix_snapshot();
    let segments = table.relation.segments();
    for id in 0..20 {
        let mut txn = engine.begin(TxnOptions::default());
        txn.insert(&table, &[Datum::Int(ROWS + id)]).expect("inserted");
        txn.commit().expect("logged").wait().expect("durable");
        engine.freezer().freeze_early(usize::MAX);
        assert_eq!(table.relation.segments(), segments, "after row {id}");
    }
    assert_eq!(hot_segments(&engine), 1, "the other tables' are frozen");
    drop(old);
    engine.collect_all_garbage();
    assert!(engine.freezer().freeze_early(usize::MAX) > 0);
    assert_eq!(hot_segments(&engine), 0);
}

/// A table with a few rows, of narrow pages: its segment's directory is most of what it takes, and the next one's is as large.
#[test]
fn a_segment_of_few_rows_is_not_closed_for_its_directory() {
    let disk = SimDisk::new();
    let engine = filled(&disk);
    let columns = (0..150).map(|n| ColumnDef::new(format!("c{n}"), SqlType::BIGINT)).collect();
    engine.create_table(TableDef::new("d", "wide", columns, vec![IndexDef::primary(&[0])])).expect("created");
    let table = engine.catalog().table("d", "wide").expect("created").clone();
    assert!(table.relation.pages_per_segment() * size_of::<avocet_storage::hot::HotPage>() > 8 << 10);
    table.relation.open_hot(table.relation.next_row_id(0, usize::MAX).segment());
    let segments = table.relation.segments();
    engine.freezer().freeze_early(usize::MAX);
    assert_eq!((table.relation.insert_segment().is_some(), table.relation.segments()), (true, segments));
}

#[test]
fn tables_that_are_gone_are_watched_no_longer() {
    let disk = SimDisk::new();
    let engine = filled(&disk);
    let watched = |engine: &Engine| {
        let watch = engine.freezing.watch.lock();
        (watch.watched.len(), watch.failed.len())
    };
    (1..=2u64).for_each(|n| disk.fail(DiskOp::Create, n, DiskError::Io));
    let mut old = engine.begin(TxnOptions::default());
    old.fix_snapshot();
    assert_eq!(hot_segments(&engine), TABLES);
    engine.freezer().freeze_early(usize::MAX);
    assert_eq!(watched(&engine), (2, 2), "what is frozen is not watched");
    for name in names() {
        engine.drop_table("d", &name, Duration::ZERO).expect("dropped");
    }
    engine.freezer().freeze_cool(&mut Pacer::none());
    assert_eq!(watched(&engine), (0, 0));
}
