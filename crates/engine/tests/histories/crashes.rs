//! Histories that go on after power loss: what was acknowledged is judged as in any other history.
//!
//! A commit that was under way when the power went may have happened or not. What it appended says which, and it says so of
//! all of it: half a transaction is found here.
//!
//! `AVOCET_HISTORY_CRASHES` says how many histories of each level.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use avocet_base::env::sim::SimDisk;
use avocet_engine::*;

use crate::checker::{Anomaly, Key, Op, Transaction, Value, anomalies};
use crate::lists::{Random, Worker, create, options};
use crate::without_reads_of_writers;

const THREADS: u64 = 4;
/// Power losses of a history.
const ROUNDS: u64 = 4;

#[derive(Default)]
struct History {
    transactions: Vec<Transaction>,
    /// Those whose commit was under way, by position.
    in_doubt: Vec<usize>,
}

impl History {
    /// Decides by what the lists hold which of those in doubt took place.
    fn settle(&mut self, lists: &BTreeMap<Key, Vec<Value>>, what: &str) {
        for at in self.in_doubt.drain(..) {
            let txn = &mut self.transactions[at];
            let there: Vec<bool> = txn
                .ops
                .iter()
                .filter_map(|op| match op {
                    Op::Append(key, value) => Some(lists[key].contains(value)),
                    Op::Read(..) => None,
                })
                .collect();
            txn.committed = there.contains(&true);
            assert!(!txn.committed || !there.contains(&false), "{what}: half of {txn:?} is there");
        }
    }
}

/// Clients, and somebody who freezes and writes checkpoints, until the power goes.
fn until_the_cut(
    engine: &std::sync::Arc<Engine>,
    isolation: Isolation,
    seed: u64,
    next: &AtomicI64,
    history: &Mutex<History>,
) {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let mut random = Random(seed.wrapping_mul(1000) + thread);
                    let mut worker = Worker::new(engine);
                    for _ in 0..400 {
                        let done = worker.transaction(engine, isolation, &mut random, next);
                        let mut history = history.lock().expect("no panics");
                        match done {
                            Ok(done) => history.transactions.push(done),
                            Err(failed) => {
                                let at = history.transactions.len();
                                history.transactions.push(failed.transaction);
                                if failed.in_doubt {
                                    history.in_doubt.push(at);
                                }
                                return;
                            }
                        }
                    }
                })
            })
            .collect();
        let ended = &ended;
        scope.spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                // Once the power is off both fail.
                let _ = engine.freeze_all();
                let _ = engine.checkpoint();
                std::thread::yield_now();
            }
        });
        let ends: Vec<_> = clients.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        ended.store(true, Ordering::Relaxed);
        assert!(ends.iter().all(Result::is_ok), "a client panicked");
    });
}

fn run(isolation: Isolation, freeze: FreezePolicy, seed: u64, allowed: &BTreeSet<Anomaly>) {
    let what = format!("{isolation:?}, {freeze:?}, seed {seed}");
    let mut random = Random(seed);
    let mut disk = SimDisk::new();
    create(&Engine::open(options(&disk, freeze, None)).expect("opens"));
    let (next, history) = (AtomicI64::new(1), Mutex::new(History::default()));
    let mut lists = BTreeMap::new();
    for round in 0..ROUNDS {
        let before = disk.clone();
        before.cut_at_sync(disk.syncs() + 1 + random.below(120));
        if let Ok(engine) = Engine::open(options(&before, freeze, None)) {
            until_the_cut(&engine, isolation, seed * ROUNDS + round, &next, &history);
        }
        disk = if random.below(4) == 0 { before.kill() } else { before.crash(random.below(1 << 40)) };
        let report = check(options(&disk, FreezePolicy::Never, None)).expect("it can be looked at");
        assert_eq!(report.findings, Vec::<String>::new(), "{what}, round {round}");
        let engine = Engine::open(options(&disk, freeze, None)).expect("recovered");
        lists = Worker::new(&engine).all(&engine);
        history.lock().expect("no panics").settle(&lists, &what);
    }
    let history = history.into_inner().expect("no panics").transactions;
    let found = anomalies(&history, &lists);
    assert!(found.is_subset(allowed), "{what}: {found:?}");
    if isolation != Isolation::ReadCommitted {
        let found = anomalies(&without_reads_of_writers(&history), &lists);
        assert!(found.is_empty(), "readers, {what}: {found:?}");
    }
}

fn check_level(isolation: Isolation, allowed: &[Anomaly]) {
    let count = std::env::var("AVOCET_HISTORY_CRASHES").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    let allowed = allowed.iter().copied().collect();
    for seed in 0..count {
        let freeze = if seed % 2 == 0 { FreezePolicy::Never } else { FreezePolicy::Always };
        run(isolation, freeze, seed, &allowed);
    }
}

#[test]
fn read_committed_through_power_loss() {
    check_level(Isolation::ReadCommitted, &[Anomaly::GSingle, Anomaly::GNonadjacent, Anomaly::G2]);
}

#[test]
fn repeatable_read_through_power_loss() {
    check_level(Isolation::RepeatableRead, &[Anomaly::GSingle, Anomaly::GNonadjacent, Anomaly::G2]);
}

#[test]
fn strict_snapshots_through_power_loss() {
    check_level(Isolation::Snapshot, &[Anomaly::G2]);
}

#[test]
fn serializable_through_power_loss() {
    check_level(Isolation::Serializable, &[]);
}

/// The checker sees what a lost commit, one that comes back from nowhere and half a one look like.
#[test]
fn what_power_loss_may_not_do_is_noticed() {
    let txn = |ops: &[Op], committed| Transaction { ops: ops.to_vec(), committed };
    let lists = BTreeMap::from([(1, vec![1]), (2, vec![])]);
    let lost = [txn(&[Op::Append(1, 1)], true), txn(&[Op::Append(2, 2)], true)];
    assert_eq!(anomalies(&lost, &lists), [Anomaly::LostWrite].into());
    let seen_and_lost =
        [txn(&[Op::Append(1, 1)], true), txn(&[Op::Append(2, 2)], false), txn(&[Op::Read(2, vec![2])], true)];
    assert!(anomalies(&seen_and_lost, &lists).contains(&Anomaly::AbortedRead));
    let half = || {
        let transactions = vec![txn(&[Op::Append(1, 1), Op::Append(2, 2)], false)];
        History { transactions, in_doubt: vec![0] }.settle(&lists, "half");
    };
    assert!(std::panic::catch_unwind(half).is_err());
}
