//! Calls beside ordinary transactions, freezing and checkpoints, on several threads: recovery comes to what was there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use avocet_base::env::sim::SimDisk;
use avocet_engine::*;

use super::bank::{accounts, call, contents, create, options};
use super::random::Random;
use super::records;

const ACCOUNTS: i64 = 12;

/// Runs something until it is not a victim of others any more.
fn again<T>(mut run: impl FnMut() -> Result<T>) -> Option<T> {
    loop {
        match run() {
            Ok(value) => return Some(value),
            Err(e) if e.kind() == ErrorKind::Retry => {}
            Err(EngineError::Signal { .. }) => return None,
            Err(e) => panic!("{e}"),
        }
    }
}

fn caller(engine: &Arc<Engine>, seed: u64, suffix: &str, calls: usize) {
    let mut random = Random(seed);
    for _ in 0..calls {
        let [a, b, amount] = [ACCOUNTS, ACCOUNTS, 50].map(|n| random.below(n));
        let (name, arguments): (_, &[i64]) = match random.below(10) {
            0..4 => ("open", &[a, amount]),
            4..9 => ("transfer", &[a, b, amount]),
            _ => ("sweep", &[20]),
        };
        again(|| call(engine, &format!("{name}{suffix}"), arguments));
    }
}

fn changer(engine: &Arc<Engine>, seed: u64, changes: usize) {
    let mut random = Random(seed);
    let table = accounts(engine);
    for n in 0..changes {
        let (id, amount) = (random.below(ACCOUNTS), random.below(9));
        again(|| {
            let mut txn = engine.begin(TxnOptions::default());
            table.update(&mut txn, id, |row| row.balance += amount)?;
            if n % 5 == 0 {
                table.delete(&mut txn, (id + 1) % ACCOUNTS)?;
            }
            if n % 7 == 0 {
                txn.rollback();
                return Ok(());
            }
            txn.commit()?.wait()
        });
    }
}

fn run_together(seed: u64) -> (usize, usize) {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("opened");
    create(&engine).expect("created");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers = [
            scope.spawn(|| caller(&engine, seed, "_logged", 150)),
            scope.spawn(|| caller(&engine, seed + 1, "_logged", 150)),
            scope.spawn(|| caller(&engine, seed + 2, "", 60)),
            scope.spawn(|| changer(&engine, seed + 3, 100)),
        ];
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                engine.freeze_all().expect("frozen");
                thread::yield_now();
            }
        });
        workers.into_iter().for_each(|worker| worker.join().expect("it ran"));
        done.store(true, Ordering::Relaxed);
    });
    let before = contents(&engine);
    drop(engine);
    assert_eq!(check(options(&disk)).expect("looked at").findings, Vec::<String>::new());
    let engine = Engine::open(options(&disk)).expect("recovered");
    assert_eq!(contents(&engine), before);
    records(&disk)
}

#[test]
fn whatever_runs_beside_them_calls_come_to_the_same_again() {
    let rounds = std::env::var("AVOCET_CALL_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    let (mut rows, mut calls) = (0, 0);
    for round in 0..rounds {
        let counted = run_together(1000 * round);
        rows += counted.0;
        calls += counted.1;
    }
    assert!(rows > 0 && calls > 0, "{rows} transactions, {calls} calls: both kinds are there");
}

#[test]
fn calls_that_recovery_follows_with_a_checkpoint_are_done_with() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("opened");
    create(&engine).expect("created");
    caller(&engine, 7, "_logged", 50);
    engine.checkpoint().expect("checkpoint");
    caller(&engine, 8, "_logged", 50);
    drop(engine);
    for _ in 0..2 {
        let engine = Engine::open(options(&disk)).expect("recovered");
        let before = contents(&engine);
        engine.checkpoint().expect("checkpoint");
        caller(&engine, 9, "_logged", 20);
        let after = contents(&engine);
        assert_ne!(before, after);
        drop(engine);
        assert_eq!(contents(&Engine::open(options(&disk)).expect("recovered")), after);
    }
}

#[test]
fn a_call_that_waits_for_a_row_lets_others_pass() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("opened");
    create(&engine).expect("created");
    (1..=4).for_each(|id| drop(call(&engine, "open_logged", &[id, 100]).expect("opened")));
    let waits = Arc::new(AtomicBool::new(false));
    let noted = waits.clone();
    engine.set_wait_hook(Arc::new(move |wait| {
        noted.store(true, Ordering::Release);
        wait();
    }));
    let mut holder = engine.begin(TxnOptions::default());
    assert!(accounts(&engine).update(&mut holder, 1, |row| row.balance += 1).expect("locked"));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| call(&engine, "transfer_logged", &[1, 2, 10]));
        while !waits.load(Ordering::Acquire) {
            thread::yield_now();
        }
        // Whose turn it is does not depend on the row that the first one waits for.
        call(&engine, "transfer_logged", &[3, 4, 10]).expect("it need not wait");
        holder.commit().expect("logged").wait().expect("durable");
        waiting.join().expect("it ran").expect("the row is free");
    });
    assert_eq!(records(&disk), (2, 5), "the one that waited is logged as rows");
    let before = contents(&engine);
    drop(engine);
    assert_eq!(contents(&Engine::open(options(&disk)).expect("recovered")), before);
}
