//! What goes on while a checkpoint is written does not show in what it leaves.

use std::cell::Cell;
use std::sync::Arc;

use avocet_base::env::Clock;
use avocet_base::env::sim::SimDisk;
use avocet_types::{Collation, ColumnDef, Datum, IndexDef, LobSize, SqlType, TableDef};

use crate::engine::{Engine, EngineOptions};
use crate::pace::{PaceCounters, Pacer, Pacing};
use crate::table::TableHandle;
use crate::txn::TxnOptions;

fn options(disk: &SimDisk) -> EngineOptions {
    EngineOptions { env: disk.env(), background: false, ..EngineOptions::new("/data") }
}

fn table(engine: &Engine, name: &str) -> Arc<TableHandle> {
    engine.catalog().table("d", name).expect("created").clone()
}

fn insert(engine: &Arc<Engine>, name: &str, id: i64, len: usize) {
    let mut txn = engine.begin(TxnOptions::default());
    let body = "x".repeat(len);
    txn.insert(&table(engine, name), &[Datum::Int(id), Datum::str(&body)]).expect("inserted");
    txn.commit().expect("logged").wait().expect("durable");
}

/// A row comes and goes, in two transactions or in one; nobody has taken a snapshot meanwhile.
fn come_and_go(engine: &Arc<Engine>, name: &str, at_once: bool) {
    let (table, mut txn) = (table(engine, name), engine.begin(TxnOptions::default()));
    let id = txn.insert(&table, &[Datum::Int(-1), Datum::str("gone")]).expect("inserted");
    if !at_once {
        txn.commit().expect("logged").wait().expect("durable");
        txn = engine.begin(TxnOptions::default());
    }
    assert!(txn.delete(&table, id).expect("deleted"));
    txn.commit().expect("logged").wait().expect("durable");
}

/// `d.a`, of which the images fill more than one object, and `d.b`, to which a checkpoint comes after it.
fn filled(disk: &SimDisk) -> Arc<Engine> {
    let engine = Engine::open(options(disk)).expect("opens");
    engine.create_database("d", Collation::DEFAULT).expect("created");
    for name in ["a", "b"] {
        let text = SqlType::Text { size: LobSize::Long, collation: Collation::UTF8MB4_BIN };
        let columns = vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("body", text)];
        engine
            .create_table(TableDef::new("d", name, columns, vec![IndexDef::primary(&[0])]))
            .expect("created");
    }
    (0..20).for_each(|id| insert(&engine, "a", id, 1 << 20));
    insert(&engine, "b", 0, 10);
    engine.collect_all_garbage();
    engine
}

/// A checkpoint; once it has written something, and the checkpoint's snapshot is the only one, somebody works.
fn checkpoint_beside(engine: &Arc<Engine>, work: &dyn Fn()) {
    let (counters, has_worked) = (PaceCounters::default(), Cell::new(false));
    let urgency = Box::new(|| {
        if !has_worked.replace(true) {
            work();
        }
        1.0
    });
    let clock: &dyn Clock = &*engine.options().env.clock;
    let (signals, bytes_per_second) = (&*engine.signals, u64::MAX);
    let pacing = Pacing { counters: &counters, bytes_per_second, clock, signals, urgency };
    engine.checkpointer().checkpoint(Pacer::background(pacing)).expect("written");
    assert!(has_worked.get());
}

#[test]
fn a_row_that_comes_and_goes_meanwhile_keeps_its_segment_hot() {
    for at_once in [false, true] {
        let disk = SimDisk::new();
        let engine = filled(&disk);
        checkpoint_beside(&engine, &|| {
            come_and_go(&engine, "b", at_once);
            engine.prune_versions();
            assert!(!table(&engine, "b").relation.has_versions(), "the row leaves no version");
            engine.freeze_all().expect("frozen");
        });
        let again = Engine::open(options(&disk.kill())).expect("opens");
        assert_eq!(table(&again, "b").count_rows(), 1);
        // With the next checkpoint it is as if nothing had been.
        assert_eq!(engine.freeze_all().expect("frozen"), 0);
        engine.checkpoint().expect("written");
        let again = Engine::open(options(&disk.kill())).expect("opens");
        assert_eq!(table(&again, "b").count_rows(), 1);
    }
}

/// An old snapshot by itself keeps nothing hot that came and went since: queues are frozen behind it.
#[test]
fn rows_that_came_and_went_hold_up_nobody_without_a_checkpoint() {
    let disk = SimDisk::new();
    let engine = filled(&disk);
    let mut old = engine.begin(TxnOptions::default());
    old.fix_snapshot();
    come_and_go(&engine, "b", false);
    engine.prune_versions();
    assert_eq!(engine.freeze_all().expect("frozen"), 0);
    let again = Engine::open(options(&disk.kill())).expect("opens");
    assert_eq!(table(&again, "b").count_rows(), 1);
}
