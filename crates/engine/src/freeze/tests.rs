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
