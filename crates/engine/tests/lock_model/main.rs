//! Row locks under shuttle: the lock table is compiled a second time here, over shuttle's threads. Transactions lock, share,
//! change and watch rows, take statements back, let rows go, and commit or roll back; whoever closes a cycle must find it
//! (shuttle fails a schedule in which all threads wait), entries name the holders of their rows at any moment, and nobody has
//! a row beside somebody whom that excludes.
//!
//! A rule is broken on purpose, one at a time, and must be missed. `AVOCET_MODEL_SCALE` asks for more schedules.

#![allow(dead_code, reason = "the model uses a part of what it compiles")]

#[path = "../../../storage/src/index/model/explore.rs"]
mod explore;
#[path = "../../src/locks/mod.rs"]
mod locks;
#[path = "../pipeline_model/sync.rs"]
#[expect(unused_imports, reason = "the log's threads are the other model's")]
mod sync;
mod world;

/// What waits end with.
mod error {
    #[derive(Debug)]
    pub enum EngineError {
        LockWaitTimeout,
        Deadlock,
        Interrupted,
    }

    pub type Result<T> = std::result::Result<T, EngineError>;
}

use std::cell::Cell;
use std::sync::Arc;

use error::EngineError;
use explore::{below, explore, schedules_until_failure};
use locks::LockMode;
use world::{Txn, World};

/// A rule that the model breaks, to see whether it notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Who begins to wait looks for a cycle.
    Search,
    /// Who takes a row's last version of its own back says so.
    GiveBack,
    /// It says so under the row's latch.
    GiveBackLatched,
    /// A row that is still held is not given back, whatever else the statement did.
    HoldOn,
    /// Who declines a row that it was granted says so.
    Decline,
    /// A transaction ends before it wakes its waiters.
    EndFirst,
    /// Who has work for a thread wakes it.
    WakeOne,
    WakeAll,
}

thread_local! {
    static BROKEN: Cell<Option<Rule>> = const { Cell::new(None) };
}

pub fn breaks(rule: Rule) -> bool {
    BROKEN.get() == Some(rule)
}

fn some_mode() -> LockMode {
    [LockMode::Exclusive, LockMode::Exclusive, LockMode::Shared, LockMode::Watch][below(4)]
}

/// Some steps on random rows.
fn statement(txn: &mut Txn, rows: usize) -> Result<(), EngineError> {
    for _ in 0..1 + below(3) {
        let mark = txn.mark();
        txn.ask(below(rows), some_mode())?;
        // READ COMMITTED lets go of what it does not want.
        if below(4) == 0 {
            txn.roll_back_to(mark);
        }
    }
    Ok(())
}

fn transaction(world: &Arc<World>, id: u64) {
    let mut txn = Txn::begin(world, id);
    for _ in 0..1 + below(3) {
        let mark = txn.mark();
        if statement(&mut txn, world.rows()).is_err() {
            return txn.end(false);
        }
        // A duplicate key, say.
        if below(3) == 0 {
            txn.roll_back_to(mark);
        }
    }
    txn.end(below(4) > 0);
}

fn everybody_comes_through(threads: usize, rows: usize, each: u64) {
    let world = World::new(rows);
    let clients: Vec<_> = (0..threads as u64)
        .map(|n| {
            let world = world.clone();
            shuttle::thread::spawn(move || {
                (0..each).for_each(|i| transaction(&world, 1 + n * each + i));
            })
        })
        .collect();
    let looker = {
        let world = world.clone();
        shuttle::thread::spawn(move || {
            for _ in 0..6 {
                world.look();
                shuttle::thread::yield_now();
            }
        })
    };
    clients.into_iter().for_each(|client| client.join().expect("no panics"));
    looker.join().expect("no panics");
    world.finish();
}

#[test]
fn few_transactions_on_few_rows_come_through() {
    explore(20_000, || everybody_comes_through(2 + below(2), 2, 2));
}

/// Several waiters at each row, and cycles that some of them are in.
#[test]
fn many_transactions_come_through() {
    explore(20_000, || everybody_comes_through(4 + below(3), 2 + below(3), 2));
}

#[test]
fn every_broken_rule_is_missed() {
    use Rule::*;
    for rule in [Search, GiveBack, GiveBackLatched, HoldOn, Decline, EndFirst, WakeOne] {
        let needed = schedules_until_failure(20_000, move || {
            BROKEN.set(Some(rule));
            everybody_comes_through(4, 3, 3);
        });
        BROKEN.set(None);
        sync::end();
        assert!(needed.is_some(), "nobody misses {rule:?}");
        eprintln!("{rule:?}: missed within {} schedules", needed.unwrap_or_default());
    }
}
