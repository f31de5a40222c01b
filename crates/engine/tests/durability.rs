//! What a commit has survived when it is acknowledged, by what its transaction asked for.

mod common;

use std::sync::Arc;
use std::time::Duration;

use avocet_base::env::{DiskOp, SimDisk};
use avocet_engine::*;

use common::{create, insert, options, rows, table};

fn open(disk: &SimDisk) -> Arc<Engine> {
    Engine::open(options(disk)).expect("open")
}

fn put(engine: &Arc<Engine>, id: i64, durability: Durability) -> CommitTicket {
    let with = TxnOptions { durability: Some(durability), ..TxnOptions::default() };
    let mut txn = engine.begin(with);
    insert(&mut txn, &table(engine), id).expect("inserted");
    txn.commit().expect("logged")
}

/// Syncs of the log's first segment, which was a spare before; the next spare is made and synced beside.
fn log_syncs(disk: &SimDisk) -> usize {
    disk.calls(DiskOp::Sync).iter().filter(|path| path.ends_with("spare.0")).count()
}

#[test]
fn a_commit_for_the_operating_system_is_seen_and_outlives_the_process() {
    let disk = SimDisk::new();
    let engine = open(&disk);
    create(&engine);
    put(&engine, 1, Durability::Sync).wait().expect("durable");
    let syncs = log_syncs(&disk);
    assert!(syncs > 0);
    for id in 2..=5 {
        put(&engine, id, Durability::Os).wait().expect("written");
        assert_eq!(rows(&engine), id as usize, "an acknowledged commit is visible");
    }
    assert_eq!(log_syncs(&disk), syncs, "nobody asked for a sync");
    assert_eq!(rows(&open(&disk.kill())), 5);
    assert_eq!(rows(&open(&disk.crash(0))), 1, "a power cut takes what was not synced, and no more");
    // Whoever asks for more gets it for all that came before, too.
    put(&engine, 6, Durability::Sync).wait().expect("durable");
    assert_eq!(rows(&open(&disk.crash(0))), 6);
}

#[test]
fn a_checkpoint_is_not_ahead_of_the_durable_log() {
    let disk = SimDisk::new();
    let engine = open(&disk);
    create(&engine);
    for id in 1..=40 {
        put(&engine, id, Durability::Os).wait().expect("written");
    }
    engine.checkpoint().expect("written");
    put(&engine, 41, Durability::Os).wait().expect("written");
    let crashed = open(&disk.crash(0));
    assert_eq!(rows(&crashed), 40);
    // And its log goes on from there.
    put(&crashed, 42, Durability::Sync).wait().expect("durable");
    assert_eq!(rows(&crashed), 41);
}

#[test]
fn commits_that_may_wait_share_a_sync() {
    let disk = SimDisk::new();
    let engine = open(&disk);
    create(&engine);
    let before = engine.log_stats().groups;
    let gather = Durability::Group(Duration::from_secs(600));
    let tickets: Vec<_> = (1..=20).map(|id| put(&engine, id, gather)).collect();
    assert!(tickets.iter().all(|ticket| !ticket.is_durable()));
    assert_eq!(rows(&engine), 0, "what is not durable is not visible to others");
    put(&engine, 21, Durability::Sync).wait().expect("durable");
    tickets.into_iter().for_each(|ticket| ticket.wait().expect("durable"));
    assert_eq!(engine.log_stats().groups, before + 1);
    assert_eq!(rows(&open(&disk.crash(0))), 21);
}
