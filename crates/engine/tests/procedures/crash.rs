//! Power loss at every sync point of a mix of calls logged both ways, ordinary transactions, freezing and checkpoints.
//!
//! The same steps run once without a fault, which tells what the tables hold after each. What recovery makes of a disk that
//! was cut must be what was there after the last acknowledged step or the one after it, generated numbers included.

use std::sync::Arc;
use std::time::Duration;

use avocet_base::env::sim::SimDisk;
use avocet_engine::types::{IndexDef, IndexKind, IndexPart};
use avocet_engine::*;
use proptest::prelude::*;

use super::bank::{Account, NOTE, accounts, call, contents, create, options};

#[derive(Clone, Debug)]
enum Step {
    Open {
        logged: bool,
        id: u8,
        amount: u8,
    },
    Transfer {
        logged: bool,
        from: u8,
        to: u8,
        amount: u8,
    },
    Sweep {
        logged: bool,
        limit: u8,
    },
    /// An ordinary transaction on rows that calls have made.
    Change(u8, u8),
    Insert(u8),
    Abort(u8),
    /// A unique index on the owners comes or goes.
    Index,
    Freeze,
    Checkpoint,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = || any::<u8>().prop_map(|id| id % 8);
    let step = prop_oneof![
        5 => (any::<bool>(), id(), any::<u8>())
            .prop_map(|(logged, id, amount)| Step::Open { logged, id, amount }),
        6 => (any::<bool>(), id(), id(), any::<u8>())
            .prop_map(|(logged, from, to, amount)| Step::Transfer { logged, from, to, amount }),
        2 => (any::<bool>(), any::<u8>()).prop_map(|(logged, limit)| Step::Sweep { logged, limit }),
        4 => (id(), any::<u8>()).prop_map(|(id, amount)| Step::Change(id, amount)),
        1 => id().prop_map(Step::Insert),
        2 => id().prop_map(Step::Abort),
        1 => Just(Step::Index),
        2 => Just(Step::Freeze),
        1 => Just(Step::Checkpoint),
    ];
    prop::collection::vec(step, 1..20)
}

/// A procedure's refusal is not the disk's.
fn refused(result: Result<Reply>) -> Result<()> {
    match result {
        Err(EngineError::Signal { .. }) => Ok(()),
        other => other.map(drop),
    }
}

fn index(engine: &Engine) -> Result<()> {
    let (database, table, timeout) = ("bank", "accounts", Duration::from_secs(1));
    let there = engine.catalog().table(database, table).is_some_and(|t| t.indexes().len() == 3);
    if there {
        return engine.drop_index(database, table, "owner", timeout);
    }
    let parts = vec![IndexPart { column: 1, descending: false, prefix_len: None }];
    let id = avocet_base::IndexId(0);
    let def = IndexDef {
        id,
        name: "owner".into(),
        kind: IndexKind::Unique,
        parts,
        generated: false,
        invisible: false,
        comment: String::new(),
    };
    engine.create_index(database, table, def, timeout)
}

fn run(engine: &Arc<Engine>, step: &Step) -> Result<()> {
    let named = |name: &str, logged: bool| if logged { format!("{name}_logged") } else { name.into() };
    let int = i64::from;
    match *step {
        Step::Open { logged, id, amount } => {
            refused(call(engine, &named("open", logged), &[int(id), int(amount)]))
        }
        Step::Transfer { logged, from, to, amount } => {
            refused(call(engine, &named("transfer", logged), &[int(from), int(to), int(amount)]))
        }
        Step::Sweep { logged, limit } => refused(call(engine, &named("sweep", logged), &[int(limit)])),
        Step::Change(id, amount) => {
            let mut txn = engine.begin(TxnOptions::default());
            accounts(engine).update(&mut txn, int(id), |row| row.balance -= int(amount))?;
            txn.commit()?.wait()
        }
        Step::Insert(id) | Step::Abort(id) => {
            let mut txn = engine.begin(TxnOptions::default());
            let id = int(id) + 100;
            let row = Account { id, owner: format!("owner {id}"), balance: id, note: Some(NOTE.into()) };
            accounts(engine).put(&mut txn, &row)?;
            match step {
                Step::Abort(_) => {
                    txn.rollback();
                    Ok(())
                }
                _ => txn.commit()?.wait(),
            }
        }
        Step::Index => index(engine),
        Step::Freeze => engine.freeze_all().map(drop),
        Step::Checkpoint => engine.checkpoint().map(drop),
    }
}

/// Without the times, which depend on how often the log's thread has looked at the clock.
fn untimed(contents: String) -> String {
    let mut parts = contents.split("DateTime(");
    let mut text = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| text.push_str(part.split_once(')').expect("it is closed").1));
    text
}

/// Runs the steps until the disk is cut; what the tables held after each, if `states` is given.
fn run_all(disk: &SimDisk, steps: &[Step], mut states: Option<&mut Vec<String>>) -> (bool, usize) {
    let Ok(engine) = Engine::open(options(disk)) else { return (false, 0) };
    if create(&engine).is_err() {
        return (false, 0);
    }
    let mut note = |engine: &Arc<Engine>| {
        if let Some(states) = &mut states {
            states.push(untimed(contents(engine)));
        }
    };
    note(&engine);
    for (done, step) in steps.iter().enumerate() {
        if run(&engine, step).is_err() {
            return (true, done);
        }
        note(&engine);
    }
    (true, steps.len())
}

fn recovers(disk: &SimDisk, steps: &[Step], states: &[String], created: bool, acknowledged: usize) {
    let report = check(options(disk)).expect("the directory can be looked at");
    assert_eq!(report.findings, Vec::<String>::new());
    let engine = Engine::open(options(disk)).expect("recovered");
    let state = untimed(contents(&engine));
    if !created {
        assert_eq!(state, "");
        return;
    }
    let allowed = &states[acknowledged..(acknowledged + 2).min(states.len())];
    assert!(allowed.contains(&state), "{state}\nis none of\n{}", allowed.join("\n"));
    // And it goes on working, and recovers again.
    for step in steps {
        run(&engine, step).expect("the disk is well again");
    }
    let state = contents(&engine);
    drop(engine);
    assert_eq!(check(options(disk)).expect("looked at").findings, Vec::<String>::new());
    assert_eq!(contents(&Engine::open(options(disk)).expect("recovered")), state);
}

fn every_cut(steps: &[Step], seed: u64) {
    let whole = SimDisk::new();
    let mut states = Vec::new();
    let done = run_all(&whole, steps, Some(&mut states));
    assert_eq!(done, (true, steps.len()));
    for cut in 1..=whole.syncs() {
        let disk = SimDisk::new();
        disk.cut_at_sync(cut);
        let (created, acknowledged) = run_all(&disk, steps, None);
        for seed in [0, seed] {
            recovers(&disk.crash(seed), steps, &states, created, acknowledged);
        }
        // Only the process ended. The power goes as soon as the next one has started.
        let killed = disk.kill();
        drop(Engine::open(options(&killed)).expect("recovered"));
        recovers(&killed.crash(seed | 1), steps, &states, created, acknowledged);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("AVOCET_CRASH_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(6),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_sync_point_recovers(steps in steps(), seed in any::<u64>()) {
        every_cut(&steps, seed);
    }
}

#[test]
fn calls_among_frozen_rows_rows_of_others_and_a_checkpoint_recover() {
    let open = |logged, id| Step::Open { logged, id, amount: 200 };
    let transfer = |logged, from, to| Step::Transfer { logged, from, to, amount: 7 };
    let steps = [
        open(true, 1),
        open(false, 2),
        Step::Abort(3),
        open(true, 3),
        open(true, 1),
        Step::Change(3, 1),
        Step::Freeze,
        transfer(true, 1, 2),
        transfer(false, 3, 1),
        Step::Change(1, 9),
        Step::Checkpoint,
        transfer(true, 2, 3),
        Step::Freeze,
        Step::Index,
        transfer(true, 2, 1),
        Step::Insert(2),
        Step::Sweep { logged: true, limit: 255 },
        open(true, 1),
    ];
    every_cut(&steps, 3);
}
