//! Random histories of concurrent transactions, judged by a checker (`histories/checker.rs`); and the checker, judged by
//! engines each of which breaks one rule. Some histories go through power loss, at any sync, and on from there.
//!
//! Failing runs print their seed; threads make a run not wholly reproducible by it.

#[path = "histories/checker.rs"]
mod checker;
#[path = "histories/crashes.rs"]
mod crashes;
#[path = "histories/lists.rs"]
mod lists;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicI64;

use avocet_base::env::sim::SimDisk;
use avocet_engine::*;

use checker::{Anomaly, Key, Op, Transaction, Value, anomalies};
use lists::{Random, Worker, create, options};

const THREADS: u64 = 4;
const TRANSACTIONS: usize = 150;

/// A history and what the lists held in the end.
fn run(
    isolation: Isolation,
    freeze: FreezePolicy,
    broken: Option<BrokenRule>,
    seed: u64,
) -> (Vec<Transaction>, BTreeMap<Key, Vec<Value>>) {
    let engine = Engine::open(options(&SimDisk::new(), freeze, broken)).expect("opens");
    create(&engine);
    let next = AtomicI64::new(1);
    let history = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, next, history) = (&engine, &next, &history);
            scope.spawn(move || {
                let mut random = Random(seed.wrapping_mul(1000) + thread);
                let mut worker = Worker::new(engine);
                for _ in 0..TRANSACTIONS {
                    let done = worker.transaction(engine, isolation, &mut random, next);
                    let done = done.unwrap_or_else(|failed| panic!("{}", failed.error));
                    history.lock().expect("no panics").push(done);
                }
            });
        }
    });
    let lists = Worker::new(&engine).all(&engine);
    (history.into_inner().expect("no panics"), lists)
}

/// Keeps the reads of transactions that only read.
fn without_reads_of_writers(history: &[Transaction]) -> Vec<Transaction> {
    let mut history = history.to_vec();
    for txn in &mut history {
        if txn.ops.iter().any(|op| matches!(op, Op::Append(..))) {
            txn.ops.retain(|op| matches!(op, Op::Append(..)));
        }
    }
    history
}

fn check(isolation: Isolation, allowed: &[Anomaly]) {
    for (seed, freeze) in (1..).zip([FreezePolicy::Never, FreezePolicy::Always, FreezePolicy::Never]) {
        let (history, lists) = run(isolation, freeze, None, seed);
        let committed = history.iter().filter(|txn| txn.committed).count();
        assert!(committed > history.len() / 10, "{committed} of {} committed", history.len());
        let found = anomalies(&history, &lists);
        let allowed: BTreeSet<Anomaly> = allowed.iter().copied().collect();
        assert!(found.is_subset(&allowed), "{isolation:?}, seed {seed}, {freeze:?}: {found:?}");
        if isolation != Isolation::ReadCommitted {
            let found = anomalies(&without_reads_of_writers(&history), &lists);
            assert!(found.is_empty(), "readers, {isolation:?}, seed {seed}, {freeze:?}: {found:?}");
        }
    }
}

#[test]
fn read_committed_reads_what_is_committed() {
    check(Isolation::ReadCommitted, &[Anomaly::GSingle, Anomaly::GNonadjacent, Anomaly::G2]);
}

#[test]
fn repeatable_read_gives_readers_a_snapshot() {
    check(Isolation::RepeatableRead, &[Anomaly::GSingle, Anomaly::GNonadjacent, Anomaly::G2]);
}

#[test]
fn strict_snapshots_allow_only_write_skew() {
    check(Isolation::Snapshot, &[Anomaly::G2]);
}

#[test]
fn serializable_histories_have_no_cycle() {
    check(Isolation::Serializable, &[]);
}

/// Histories of an engine that breaks a rule are told from those of one that does not.
#[test]
fn every_broken_rule_is_noticed() {
    use Anomaly::{G2, GNonadjacent, GSingle};
    let cases: [(BrokenRule, Isolation, &[Anomaly]); 7] = [
        (BrokenRule::KeepSnapshot, Isolation::RepeatableRead, &[GSingle, GNonadjacent, G2]),
        (BrokenRule::KeepSnapshot, Isolation::Snapshot, &[G2]),
        (BrokenRule::FirstWriterWins, Isolation::Snapshot, &[G2]),
        (BrokenRule::KeepSnapshot, Isolation::Serializable, &[]),
        (BrokenRule::Validate, Isolation::Serializable, &[]),
        (BrokenRule::CountPhantoms, Isolation::Serializable, &[]),
        (BrokenRule::CountBefore, Isolation::Serializable, &[]),
    ];
    for (rule, isolation, allowed) in cases {
        let allowed: BTreeSet<Anomaly> = allowed.iter().copied().collect();
        let noticed = (1..200).any(|seed| {
            let (history, lists) = run(isolation, FreezePolicy::Never, Some(rule), seed);
            let readers = without_reads_of_writers(&history);
            !anomalies(&history, &lists).is_subset(&allowed) || !anomalies(&readers, &lists).is_empty()
        });
        assert!(noticed, "{rule:?} broken under {isolation:?} went unnoticed");
    }
}
