//! Random histories of concurrent transactions, judged by a checker (`histories/checker.rs`); and the checker, judged by
//! engines each of which breaks one rule.
//!
//! Every key is a row whose text is a list of numbers; the row comes to be with the first append, so that reads of what is
//! not there are part of it. Failing runs print their seed; threads make a run not wholly reproducible by it.

#[path = "histories/checker.rs"]
mod checker;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use avocet_base::env::sim::SimDisk;
use avocet_base::{Env, IndexId, TableId};
use avocet_engine::*;
use avocet_types::*;

use checker::{Anomaly, Key, Op, Transaction, Value, anomalies};

const KEYS: i64 = 6;
const THREADS: u64 = 4;
const TRANSACTIONS: usize = 150;

/// splitmix64
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn open(freeze: FreezePolicy, broken_rule: Option<BrokenRule>) -> Arc<Engine> {
    let env = Env { disk: Arc::new(SimDisk::new()), ..Env::os() };
    let options =
        EngineOptions { env, background: false, freeze, broken_rule, ..EngineOptions::new("/data") };
    let engine = Engine::open(options).expect("opens");
    let column = |name: &str, ty| ColumnDef {
        name: name.into(),
        ty,
        nullable: false,
        default: None,
        on_update_now: false,
        auto_increment: false,
        comment: String::new(),
    };
    engine.create_database("d", Collation::DEFAULT).expect("created");
    let def = TableDef {
        id: TableId(0),
        database: "d".into(),
        name: "lists".into(),
        columns: vec![
            column("id", SqlType::BIGINT),
            column("list", SqlType::VarChar { len: 16_000, collation: Collation::UTF8MB4_BIN }),
        ],
        indexes: vec![IndexDef {
            id: IndexId(0),
            name: "PRIMARY".into(),
            kind: IndexKind::Primary,
            parts: vec![IndexPart { column: 0, descending: false, prefix_len: None }],
        }],
        default_collation: Collation::DEFAULT,
        comment: String::new(),
    };
    engine.create_table(def).expect("created");
    engine
}

struct Worker {
    table: Arc<TableHandle>,
    scratch: ReadScratch,
}

impl Worker {
    fn new(engine: &Engine) -> Self {
        let table = engine.catalog().table("d", "lists").expect("created").clone();
        Self { table, scratch: ReadScratch::default() }
    }

    fn range(&self, key: Key) -> KeyRange {
        let mut bytes = Vec::new();
        assert!(self.table.indexes()[0].keys.encode_parts(0, &[Datum::Int(key)], &mut bytes));
        KeyRange::prefix(&bytes)
    }

    fn read(&mut self, txn: &Txn, key: Key) -> Result<Vec<Value>> {
        let mut list = Vec::new();
        let range = self.range(key);
        let index = self.table.indexes()[0].clone();
        txn.index_scan(
            &self.table,
            &index,
            &range,
            Direction::Ascending,
            &mut self.scratch,
            &mut |_, row| {
                list = values(&row);
                ControlFlow::Break(())
            },
        )?;
        Ok(list)
    }

    fn append(&mut self, txn: &mut Txn, key: Key, value: Value) -> Result<()> {
        let mut found = None;
        let range = self.range(key);
        let index = self.table.indexes()[0].clone();
        let lock = RowLock::FOR_UPDATE;
        txn.lock_scan(
            &self.table,
            &index,
            &range,
            Direction::Ascending,
            lock,
            &mut self.scratch,
            &mut |id, row| {
                found = Some((id, values(&row)));
                ControlFlow::Break(())
            },
        )?;
        match found {
            None => {
                let text = value.to_string();
                txn.insert(&self.table, &[Datum::Int(key), Datum::str(&text)]).map(drop)
            }
            Some((id, mut list)) => {
                list.push(value);
                let text: Vec<String> = list.iter().map(Value::to_string).collect();
                let text = text.join(",");
                let moved = txn.update(&self.table, id, &[(1, Datum::str(&text))])?;
                assert!(moved.is_some(), "a locked row is there");
                Ok(())
            }
        }
    }

    /// Runs random operations; what became of them.
    fn transaction(
        &mut self,
        engine: &Arc<Engine>,
        isolation: Isolation,
        random: &mut Random,
        next: &AtomicI64,
    ) -> Transaction {
        let mut txn = engine.begin(TxnOptions {
            isolation,
            lock_wait_timeout: Duration::from_secs(10),
            ..TxnOptions::default()
        });
        let mut ops = Vec::new();
        let reads_only = random.below(4) == 0;
        for _ in 0..=random.below(4) {
            let key = random.below(KEYS as u64) as i64;
            let mark = txn.begin_statement();
            let done = if reads_only || random.below(2) == 0 {
                self.read(&txn, key).map(|list| ops.push(Op::Read(key, list)))
            } else {
                let value = next.fetch_add(1, Ordering::Relaxed);
                self.append(&mut txn, key, value).map(|()| ops.push(Op::Append(key, value)))
            };
            match done {
                Ok(()) => {}
                // Taken back alone, it leaves nothing.
                Err(EngineError::DuplicateKey { .. }) if random.below(2) == 0 => txn.rollback_statement(mark),
                Err(
                    EngineError::DuplicateKey { .. }
                    | EngineError::Deadlock
                    | EngineError::SnapshotConflict(_),
                ) => {
                    txn.rollback();
                    return Transaction { ops, committed: false };
                }
                Err(other) => panic!("{other}"),
            }
            if random.below(2) == 0 {
                std::thread::yield_now();
            }
        }
        if random.below(10) == 0 {
            txn.rollback();
            return Transaction { ops, committed: false };
        }
        let committed = match txn.commit() {
            Ok(ticket) => {
                ticket.wait().expect("durable");
                true
            }
            Err(EngineError::SerializationFailure) => false,
            Err(other) => panic!("{other}"),
        };
        Transaction { ops, committed }
    }
}

fn values(row: &RowRef<'_>) -> Vec<Value> {
    let Datum::Str(text) = row.get(1) else { panic!("a list is text") };
    text.split(',').map(|value| value.parse().expect("a number")).collect()
}

/// A history and what the lists held in the end.
fn run(
    isolation: Isolation,
    freeze: FreezePolicy,
    broken: Option<BrokenRule>,
    seed: u64,
) -> (Vec<Transaction>, BTreeMap<Key, Vec<Value>>) {
    let engine = open(freeze, broken);
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
                    history.lock().expect("no panics").push(done);
                }
            });
        }
    });
    let mut worker = Worker::new(&engine);
    let txn = engine.begin(TxnOptions::default());
    let lists = (0..KEYS).map(|key| (key, worker.read(&txn, key).expect("readable"))).collect();
    txn.rollback();
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
