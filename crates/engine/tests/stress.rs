//! Everything at once on few rows (`orders/`): clients at all levels, freezing and compaction without pause, collection and
//! merging of versions, checkpoints, snapshots that are held; and TPC-C's consistency conditions in every snapshot.
//!
//! Whatever the threads do, a condition that does not hold names the rows. `AVOCET_STRESS_SECONDS` says how long.

mod orders;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use avocet_base::Env;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use orders::{Client, Random, create, open, see};

/// Real time, since waits are real.
fn options(disk: &SimDisk, freeze: FreezePolicy) -> EngineOptions {
    EngineOptions {
        env: Env { disk: Arc::new(disk.clone()), ..Env::os() },
        log_segment_bytes: 256 << 10,
        // Freezing, compaction and collection then meet writers at the ends of segments, too.
        rows_per_segment: RowsPerSegment::new(64),
        background: false,
        freeze,
        ..EngineOptions::new("/data")
    }
}

fn seconds() -> Duration {
    let given = std::env::var("AVOCET_STRESS_SECONDS").ok().and_then(|n| n.parse().ok());
    Duration::from_secs_f64(given.unwrap_or(3.0))
}

struct Stage<'e> {
    engine: &'e Arc<Engine>,
    ended: AtomicBool,
    committed: AtomicU64,
    snapshots: AtomicU64,
}

impl Stage<'_> {
    fn goes_on(&self) -> bool {
        !self.ended.load(Ordering::Relaxed)
    }

    fn client(&self, seed: u64, isolation: Isolation) {
        let pause = || std::thread::yield_now();
        let mut client = Client::new(self.engine, seed, isolation, &pause);
        while self.goes_on() {
            self.committed.fetch_add(client.transaction().into(), Ordering::Relaxed);
        }
    }

    /// Takes snapshots and holds them: the conditions hold in each, and it stays as it is.
    fn reader(&self, seed: u64) {
        let mut random = Random(seed);
        let tables = open(self.engine);
        while self.goes_on() {
            let mut txn = self.engine.begin(TxnOptions::default());
            txn.fix_snapshot();
            let seen = see(&txn, &tables, random.below(2) == 0);
            if let Some(violation) = seen.violation() {
                panic!("a snapshot at {:?}: {violation}\n{seen:?}", txn.snapshot_ts());
            }
            for _ in 0..random.below(8) {
                let again = see(&txn, &tables, random.below(2) == 0);
                assert_eq!(again, seen, "a snapshot stays as it is");
            }
            self.snapshots.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn repeat(&self, work: impl Fn()) {
        while self.goes_on() {
            work();
            std::thread::yield_now();
        }
    }
}

/// Ends the others when a thread panics.
struct EndOnPanic<'s>(&'s AtomicBool);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

fn run(freeze: FreezePolicy, levels: &[Isolation], seed: u64, time: Duration) {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk, freeze)).expect("opens");
    create(&engine).expect("created");
    let stage = Stage {
        engine: &engine,
        ended: AtomicBool::new(false),
        committed: AtomicU64::new(0),
        snapshots: AtomicU64::new(0),
    };
    let freezer = || {
        engine.freeze_all().expect("frozen");
    };
    let writer = || {
        engine.checkpoint().expect("written");
    };
    let collector = || {
        engine.collect_all_garbage();
        engine.prune_versions();
    };
    let mut work: Vec<Box<dyn FnOnce() + Send + '_>> = Vec::new();
    let stage_ref = &stage;
    for (n, &level) in levels.iter().enumerate() {
        work.push(Box::new(move || stage_ref.client(seed * 100 + n as u64, level)));
    }
    for n in 0..2 {
        work.push(Box::new(move || stage_ref.reader(seed * 100 + 50 + n)));
    }
    work.push(Box::new(|| stage.repeat(freezer)));
    work.push(Box::new(|| stage.repeat(collector)));
    work.push(Box::new(|| stage.repeat(writer)));
    std::thread::scope(|threads| {
        for work in work {
            threads.spawn(|| {
                let _end = EndOnPanic(&stage.ended);
                work();
            });
        }
        let begin = Instant::now();
        while begin.elapsed() < time && stage.goes_on() {
            std::thread::park_timeout(Duration::from_millis(20));
        }
        stage.ended.store(true, Ordering::Relaxed);
    });
    let (committed, snapshots) = (stage.committed.into_inner(), stage.snapshots.into_inner());
    println!("{freeze:?}: {committed} transactions, {snapshots} snapshots");
    assert!(committed > 50 && snapshots > 5, "{committed} transactions, {snapshots} snapshots");
    let last = see(&engine.begin(TxnOptions::default()), &open(&engine), true);
    assert_eq!(last.violation(), None);
    drop(engine);
    let report = check(options(&disk, FreezePolicy::Never)).expect("it can be looked at");
    assert_eq!(report.findings, Vec::<String>::new());
    let engine = Engine::open(options(&disk, FreezePolicy::Never)).expect("recovered");
    assert_eq!(see(&engine.begin(TxnOptions::default()), &open(&engine), false), last);
}

const REPEATABLE: [Isolation; 4] = [Isolation::RepeatableRead; 4];

#[test]
fn conditions_hold_while_everything_moves() {
    run(FreezePolicy::Never, &REPEATABLE, 1, seconds());
}

#[test]
fn conditions_hold_with_a_freeze_before_every_transaction() {
    run(FreezePolicy::Always, &REPEATABLE, 2, seconds());
}

#[test]
fn conditions_hold_at_mixed_levels() {
    use Isolation::{ReadCommitted, RepeatableRead, Serializable, Snapshot};
    run(FreezePolicy::Never, &[ReadCommitted, RepeatableRead, Snapshot, Serializable], 3, seconds());
}
