//! The transaction layer under schedules that a seed makes (`simulation/scheduler.rs`): order entry (`orders/`) and
//! transfers between accounts, beside freezing, compaction, collection, checkpoints and held snapshots; what must hold is
//! checked at every step.
//!
//! `AVOCET_SCHEDULES` says how many seeds, `AVOCET_SCHEDULE_SEED` which one comes first. A seed that fails fails again.

#[path = "simulation/bank.rs"]
mod bank;
mod orders;
#[path = "simulation/scheduler.rs"]
mod scheduler;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use avocet_base::Env;
use avocet_base::env::sim::{SimClock, SimDisk};
use avocet_engine::*;
use orders::{Client, Random, create, open as open_tables, see};
use scheduler::{Pausing, Scheduler, pause};

type Actor<'e> = Box<dyn FnOnce() + Send + 'e>;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn open(broken_rule: Option<BrokenRule>, slow_log: bool) -> Arc<Engine> {
    let clock = Arc::new(SimClock::default());
    let options = EngineOptions {
        env: Env { disk: Arc::new(Pausing { disk: SimDisk::new(), slow_log }), clock },
        log_segment_bytes: 256 << 10,
        background: false,
        freeze: FreezePolicy::Never,
        broken_rule,
        ..EngineOptions::new("/data")
    };
    let engine = Engine::open(options).expect("opens");
    engine.set_wait_hook(Scheduler::wait_hook());
    engine
}

fn scheduler(
    seed: u64,
    engine: &Arc<Engine>,
    check: impl Fn(usize) + Send + Sync + 'static,
) -> Arc<Scheduler> {
    let (waited_on, settled) = (engine.clone(), engine.clone());
    let sleepers = Box::new(move || waited_on.sleeping_waiters());
    Scheduler::new(seed, sleepers, Box::new(move || settled.wait_until_visible()), Box::new(check))
}

/// Freezes, compacts and writes checkpoints now and then.
fn keeper(engine: &Arc<Engine>, seed: u64, rounds: u64) {
    let mut random = Random(seed);
    for _ in 0..rounds {
        (0..random.below(12)).for_each(|_| pause());
        if random.below(4) == 0 {
            engine.checkpoint().expect("written");
        } else {
            engine.freeze_all().expect("frozen");
        }
    }
}

/// Collects old versions now and then.
fn collector(engine: &Arc<Engine>, seed: u64, rounds: u64) {
    let mut random = Random(seed);
    for _ in 0..rounds {
        (0..random.below(8)).for_each(|_| pause());
        match random.below(3) {
            0 => engine.prune_versions(),
            _ => engine.collect_all_garbage(),
        }
    }
}

/// Holds snapshots over many steps: each stays as it is.
fn holder(engine: &Arc<Engine>, seed: u64, rounds: u64) {
    let mut random = Random(seed);
    let tables = open_tables(engine);
    for _ in 0..rounds {
        let mut txn = engine.begin(TxnOptions::default());
        txn.fix_snapshot();
        let seen = see(&txn, &tables, true);
        for _ in 0..random.below(30) {
            pause();
            assert_eq!(see(&txn, &tables, random.below(2) == 0), seen, "a snapshot stays as it is");
        }
        drop(txn);
        pause();
    }
}

/// Says which seed it was, if it fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed is {}", self.0);
        }
    }
}

fn level(random: &mut Random) -> Isolation {
    use Isolation::{ReadCommitted, RepeatableRead, Serializable, Snapshot};
    [RepeatableRead, RepeatableRead, ReadCommitted, Snapshot, Serializable][random.below(5) as usize]
}

fn order_entry(seed: u64, slow_log: bool) -> (Vec<usize>, u64) {
    let _seed = Seed(seed);
    let engine = open(None, slow_log);
    create(&engine).expect("created");
    let checked = engine.clone();
    let tables = open_tables(&engine);
    let scheduler = scheduler(seed, &engine, move |step| {
        let seen = see(&checked.begin(TxnOptions::default()), &tables, step % 2 == 0);
        if let Some(violation) = seen.violation() {
            panic!("step {step}: {violation}\n{seen:?}");
        }
    });
    let committed = AtomicU64::new(0);
    let mut random = Random(seed ^ 0x5eed);
    let mut actors: Vec<Actor<'_>> = Vec::new();
    for n in 0..4 {
        let (engine, committed, level) = (&engine, &committed, level(&mut random));
        actors.push(Box::new(move || {
            let mut client = Client::new(engine, seed * 10 + n, level, &pause);
            for _ in 0..10 {
                committed.fetch_add(client.transaction().into(), Ordering::Relaxed);
            }
        }));
    }
    actors.push(Box::new(|| keeper(&engine, seed, 12)));
    actors.push(Box::new(|| collector(&engine, seed, 12)));
    actors.push(Box::new(|| holder(&engine, seed, 4)));
    let schedule = scheduler.run(actors);
    (schedule, committed.into_inner())
}

fn transfers(seed: u64, isolation: Isolation, broken: Option<BrokenRule>) -> (Vec<usize>, bool) {
    let _seed = Seed(seed);
    let engine = open(broken, false);
    bank::create(&engine);
    let checked = engine.clone();
    let scheduler = scheduler(seed, &engine, move |step| bank::check_total(&checked, step));
    let mut actors: Vec<Actor<'_>> = Vec::new();
    for n in 0..4 {
        let engine = &engine;
        actors.push(Box::new(move || bank::client(engine, seed * 10 + n, isolation, 12)));
    }
    actors.push(Box::new(|| keeper(&engine, seed, 8)));
    actors.push(Box::new(|| collector(&engine, seed, 8)));
    let schedule = scheduler.run(actors);
    (schedule, bank::is_covered(&engine))
}

fn seeds() -> std::ops::Range<u64> {
    let first = from_environment("AVOCET_SCHEDULE_SEED", 1);
    first..first + from_environment("AVOCET_SCHEDULES", 40)
}

#[test]
fn order_entry_holds_at_every_step_of_every_schedule() {
    let mut committed = 0;
    let mut steps = 0;
    for seed in seeds() {
        let (schedule, done) = order_entry(seed, false);
        committed += done;
        steps += schedule.len();
    }
    println!("{committed} transactions in {steps} steps");
    assert!(committed > 10 * seeds().count() as u64, "{committed}");
}

#[test]
fn transfers_keep_the_total_and_serializable_ones_every_promise() {
    use Isolation::{ReadCommitted, RepeatableRead, Serializable, Snapshot};
    for seed in seeds() {
        for level in [ReadCommitted, RepeatableRead, Snapshot] {
            transfers(seed, level, None);
        }
        let (_, covered) = transfers(seed, Serializable, None);
        assert!(covered, "seed {seed}: serializable transactions overdrew a customer");
    }
}

/// What a level allows comes to pass, and so does what a broken rule lets through: else the schedules prove nothing.
#[test]
fn schedules_find_write_skew_where_it_is_allowed_and_a_validation_that_is_left_out() {
    let overdrawn = |level, broken| (1..200).any(|seed| !transfers(seed, level, broken).1);
    assert!(overdrawn(Isolation::Snapshot, None), "write skew");
    assert!(overdrawn(Isolation::Serializable, Some(BrokenRule::Validate)), "no validation");
}

/// However long the log takes.
#[test]
fn a_seed_gives_the_same_schedule_again() {
    for seed in 1..7 {
        let schedule = order_entry(seed, false).0;
        assert_eq!(schedule, order_entry(seed, true).0, "seed {seed}");
        assert_eq!(schedule, order_entry(seed, true).0, "seed {seed}");
    }
}
