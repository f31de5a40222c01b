//! The pace of background work in a whole engine. The clock is simulated and as good as stands still, and the rate is next to
//! nothing: once a checkpoint pauses, time alone never lets it go on.

mod common;

use std::path::Path;
use std::sync::Arc;

use avocet_base::env::{Disk, SimDisk};
use avocet_engine::*;

use common::{create, insert, rows, table};

const CHECKPOINT_AT: u64 = 64 << 10;

fn options(disk: &SimDisk) -> EngineOptions {
    EngineOptions {
        checkpoint_log_bytes: CHECKPOINT_AT,
        background_bytes_per_second: 1,
        background: true,
        ..common::options(disk)
    }
}

/// Inserts rows until the log has so many bytes.
fn log_up_to(engine: &Arc<Engine>, bytes: u64, next: &mut i64) {
    while engine.log_stats().bytes < bytes {
        let mut txn = engine.begin(TxnOptions::default());
        for _ in 0..10 {
            insert(&mut txn, &table(engine), *next).expect("inserted");
            *next += 1;
        }
        txn.commit().expect("logged").wait().expect("durable");
    }
}

fn manifests(disk: &SimDisk) -> usize {
    disk.list(Path::new("/data/store/checkpoints")).expect("listed").len()
}

/// An engine whose checkpoint has begun and pauses, and the number of its rows.
fn paused(disk: &SimDisk) -> (Arc<Engine>, i64) {
    let engine = Engine::open(options(disk)).expect("open");
    create(&engine);
    let mut next = 1;
    log_up_to(&engine, CHECKPOINT_AT, &mut next);
    while engine.background_stats().written_bytes == 0 {
        std::thread::yield_now();
    }
    assert_eq!(manifests(disk), 0, "it is not done");
    (engine, next - 1)
}

#[test]
fn a_long_log_ends_the_pause_of_a_checkpoint() {
    let disk = SimDisk::new();
    let (engine, rows) = paused(&disk);
    let mut next = rows + 1;
    // It has begun with a log of at least `CHECKPOINT_AT`, and is urgent at twice that.
    log_up_to(&engine, 3 * CHECKPOINT_AT, &mut next);
    while manifests(&disk) == 0 {
        std::thread::yield_now();
    }
}

#[test]
fn shutdown_does_not_wait_for_the_pace() {
    let disk = SimDisk::new();
    let (engine, there) = paused(&disk);
    engine.shutdown().expect("closed");
    drop(engine);
    assert_eq!(rows(&Engine::open(options(&disk)).expect("open")) as i64, there);
}

#[test]
fn an_engine_that_nobody_holds_ends() {
    let disk = SimDisk::new();
    let (engine, there) = paused(&disk);
    drop(engine);
    // Its directory is locked until then.
    let engine = loop {
        match Engine::open(options(&disk)) {
            Ok(engine) => break engine,
            Err(_) => std::thread::yield_now(),
        }
    };
    assert_eq!(rows(&engine) as i64, there);
}
