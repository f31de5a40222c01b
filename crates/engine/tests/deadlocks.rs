//! Eight sessions change few rows in every way there is, at every level: whenever all of them wait, that is a deadlock, which
//! is found at once. A watchdog notices when all sleep and nothing happens; lock waits do not time out.
//!
//! `AVOCET_STRESS_SECONDS` says how long each mix runs.

#[path = "common/random.rs"]
mod random;

use std::collections::HashSet;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use avocet_base::Env;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::*;
use random::Random;

const SESSIONS: usize = 8;
const ROWS: i64 = 24;
/// All sessions may wait so long while nothing happens.
const FOUND_WITHIN: Duration = Duration::from_millis(100);
/// Nobody may time out.
const TIMEOUT: Duration = Duration::from_secs(600);

/// `parent (id)`, `child (id, p, FOREIGN KEY p)` and `u (id, a UNIQUE, b, KEY (b))`.
fn create(engine: &Arc<Engine>) -> Tables {
    engine.create_database("d", Collation::DEFAULT).expect("created");
    let column = |name: &str| ColumnDef::new(name, SqlType::BIGINT).nullable();
    let id = || ColumnDef::new("id", SqlType::BIGINT);
    let unique = IndexDef::new("a", IndexKind::Unique, &[1]);
    let indexes = vec![IndexDef::primary(&[0]), unique, IndexDef::secondary("b", &[2])];
    let u = TableDef::new("d", "u", vec![id(), column("a"), column("b")], indexes);
    let parent = TableDef::new("d", "parent", vec![id(), column("n")], vec![IndexDef::primary(&[0])]);
    let key = ForeignKeyDef {
        name: "k".into(),
        columns: vec![1],
        parent_database: "d".into(),
        parent_table: "parent".into(),
        parent_columns: vec!["id".into()],
        on_delete: ReferentialAction::Cascade,
        on_update: ReferentialAction::Cascade,
    };
    let indexes = vec![IndexDef::primary(&[0]), IndexDef::secondary("p", &[1])];
    let child =
        TableDef { foreign_keys: vec![key], ..TableDef::new("d", "child", vec![id(), column("p")], indexes) };
    for def in [u, parent, child] {
        engine.create_table(def).expect("created");
    }
    let tables = Tables::of(engine);
    let mut txn = engine.begin(TxnOptions::default());
    for n in 0..ROWS {
        txn.insert(&tables.u, &[Datum::Int(n), Datum::Int(2 * n), Datum::Int(n % 5)]).expect("inserted");
    }
    for n in 0..ROWS / 4 {
        txn.insert(&tables.parent, &[Datum::Int(n), Datum::Int(0)]).expect("inserted");
    }
    txn.commit().expect("logged").wait().expect("durable");
    tables
}

struct Tables {
    u: Arc<TableHandle>,
    parent: Arc<TableHandle>,
    child: Arc<TableHandle>,
}

impl Tables {
    fn of(engine: &Engine) -> Self {
        let [u, parent, child] =
            ["u", "parent", "child"].map(|name| engine.catalog().table("d", name).expect("created").clone());
        Self { u, parent, child }
    }
}

fn key_of(index: &IndexHandle, value: i64) -> Vec<u8> {
    let mut key = Vec::new();
    assert!(index.keys.encode_prefix(&[Datum::Int(value)], &mut key));
    key
}

/// BETWEEN from AND from + 5
fn six_from(index: &IndexHandle, from: i64) -> KeyRange {
    let [lower, upper] = [from, from + 5].map(|value| key_of(index, value));
    KeyRange::new(Bound::Included(&lower), Bound::Included(&upper))
}

fn number(row: &RowRef<'_>, column: usize) -> i64 {
    match row.get(column) {
        Datum::Int(n) => n,
        Datum::Null => -1,
        other => panic!("{other:?}"),
    }
}

/// What statements there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// UPDATE u SET a = a + 1 WHERE a BETWEEN … ORDER BY a DESC, or the other way.
    Shift,
    /// INSERT … ON DUPLICATE KEY UPDATE
    Upsert,
    Replace,
    Insert,
    Delete,
    /// Single rows by their primary key, changed where they are found.
    Modify,
    /// SELECT … FOR UPDATE, or FOR SHARE, of which READ COMMITTED lets some go.
    Lock,
    /// The same, and only those wanted are held in the end.
    LockAndLetGo,
    /// Children come, go and move, parents change their keys.
    Family,
}

const FORMS: [Form; 9] = [
    Form::Shift,
    Form::Upsert,
    Form::Replace,
    Form::Insert,
    Form::Delete,
    Form::Modify,
    Form::Lock,
    Form::LockAndLetGo,
    Form::Family,
];

struct Session<'s> {
    tables: Tables,
    random: Random,
    forms: &'s [Form],
}

impl Session<'_> {
    fn some(&mut self, below: i64) -> i64 {
        self.random.below(below as u64) as i64
    }

    fn statement(&mut self, txn: &mut Txn) -> Result<()> {
        match self.forms[self.random.below(self.forms.len())] {
            Form::Shift => self.shift(txn),
            Form::Upsert => self.upsert(txn),
            Form::Replace => self.replace(txn),
            Form::Insert => {
                let (id, a, b) = (self.some(2 * ROWS), self.some(2 * ROWS), self.some(5));
                txn.insert(&self.tables.u, &[Datum::Int(id), Datum::Int(a), Datum::Int(b)]).map(drop)
            }
            Form::Delete => {
                for id in self.locked(txn, RowLock::FOR_UPDATE)? {
                    txn.delete(&self.tables.u, id)?;
                }
                Ok(())
            }
            Form::Modify => self.modify(txn),
            Form::Lock => {
                let exclusive = self.some(2) == 0;
                let wait = [LockWait::Wait, LockWait::Wait, LockWait::SkipLocked][self.random.below(3)];
                self.locked(txn, RowLock { exclusive, wait }).map(drop)
            }
            Form::LockAndLetGo => {
                let mark = txn.mark();
                let keep = self.random.below(3) as u64;
                self.locked(txn, RowLock::FOR_UPDATE)?;
                txn.let_go_of(mark, &|_, row| row.0 % 3 == keep);
                Ok(())
            }
            Form::Family => self.family(txn),
        }
    }

    /// Locks some rows along one of the indexes, and gives their ids.
    fn locked(&mut self, txn: &mut Txn, lock: RowLock) -> Result<Vec<RowId>> {
        let index = self.tables.u.indexes()[self.random.below(3)].clone();
        let from = self.some(2 * ROWS);
        let range = six_from(&index, from);
        let direction = [Direction::Ascending, Direction::Descending][self.random.below(2)];
        let (mut ids, mut keys) = (Vec::new(), Vec::new());
        let (odd, scratch) = (self.some(3), &mut ReadScratch::default());
        let how = &mut LockHow::all(lock);
        txn.lock_range(&self.tables.u, &index, &range, direction, how, scratch, &mut |id, row| {
            if number(&row, 0) % 3 == odd {
                return RowVerdict::Unwanted;
            }
            ids.push(id);
            keys.push((number(&row, 0), number(&row, 1)));
            RowVerdict::Wanted
        })?;
        // Rows that are held keep their keys: whatever others delete and insert again meanwhile, no key comes twice.
        for of in [|key: &(i64, i64)| key.0, |key: &(i64, i64)| key.1] {
            let different: HashSet<i64> = keys.iter().map(of).collect();
            assert_eq!(different.len(), keys.len(), "{keys:?} along {}", index.def.name);
        }
        Ok(ids)
    }

    fn shift(&mut self, txn: &mut Txn) -> Result<()> {
        let index = self.tables.u.indexes()[1].clone();
        let from = self.some(2 * ROWS);
        let range = six_from(&index, from);
        let mut rows = Vec::new();
        let (step, direction) =
            [(1, Direction::Descending), (-1, Direction::Ascending)][self.random.below(2)];
        let (lock, scratch) = (RowLock::FOR_UPDATE, &mut ReadScratch::default());
        txn.lock_scan(&self.tables.u, &index, &range, direction, lock, scratch, &mut |id, row| {
            rows.push((id, number(&row, 1)));
            ControlFlow::Continue(())
        })?;
        for (id, a) in rows {
            txn.update(&self.tables.u, id, &[(1, Datum::Int((a + step).clamp(0, 2 * ROWS)))])?;
        }
        Ok(())
    }

    fn modify(&mut self, txn: &mut Txn) -> Result<()> {
        let primary = self.tables.u.indexes()[0].clone();
        let (id, to) = (self.some(ROWS), self.some(5));
        let (column, value) = if to == 0 { (1, self.some(2 * ROWS)) } else { (2, to) };
        let change = &mut |_: RowRef<'_>, change: &mut RowChange<'_>| change.set(column, &Datum::Int(value));
        let scratch = &mut ReadScratch::default();
        txn.modify_unique(&self.tables.u, &primary, &key_of(&primary, id), scratch, change).map(drop)
    }

    /// The rows that have a value in an index, locked.
    fn with_key(&self, txn: &mut Txn, index: usize, value: i64) -> Result<Vec<RowId>> {
        let index = self.tables.u.indexes()[index].clone();
        let range = KeyRange::prefix(&key_of(&index, value));
        let mut ids = Vec::new();
        let (lock, scratch) = (RowLock::FOR_UPDATE, &mut ReadScratch::default());
        txn.lock_scan(&self.tables.u, &index, &range, Direction::Ascending, lock, scratch, &mut |id, _| {
            ids.push(id);
            ControlFlow::Continue(())
        })?;
        Ok(ids)
    }

    fn upsert(&mut self, txn: &mut Txn) -> Result<()> {
        let (id, a, b) = (self.some(ROWS), self.some(2 * ROWS), self.some(5));
        match txn.insert(&self.tables.u, &[Datum::Int(id), Datum::Int(a), Datum::Int(b)]) {
            Err(EngineError::DuplicateKey { key, .. }) => {
                let (index, value) = if key == "PRIMARY" { (0, id) } else { (1, a) };
                for row in self.with_key(txn, index, value)? {
                    let to = self.some(2 * ROWS);
                    txn.update(&self.tables.u, row, &[(1, Datum::Int(to)), (2, Datum::Int(b))])?;
                }
                Ok(())
            }
            other => other.map(drop),
        }
    }

    fn replace(&mut self, txn: &mut Txn) -> Result<()> {
        let (id, a, b) = (self.some(ROWS), self.some(2 * ROWS), self.some(5));
        // Others may put rows there between, but not without end.
        for _ in 0..10 {
            match txn.insert(&self.tables.u, &[Datum::Int(id), Datum::Int(a), Datum::Int(b)]) {
                Err(EngineError::DuplicateKey { key, .. }) => {
                    let (index, value) = if key == "PRIMARY" { (0, id) } else { (1, a) };
                    for row in self.with_key(txn, index, value)? {
                        txn.delete(&self.tables.u, row)?;
                    }
                }
                other => return other.map(drop),
            }
        }
        Ok(())
    }

    fn family(&mut self, txn: &mut Txn) -> Result<()> {
        let of_parent = self.some(4) == 0;
        let table = if of_parent { self.tables.parent.clone() } else { self.tables.child.clone() };
        let (id, p) = (self.some(if of_parent { ROWS / 4 } else { ROWS }), self.some(ROWS / 4));
        let primary = table.indexes()[0].clone();
        let range = KeyRange::prefix(&key_of(&primary, id));
        let mut found = None;
        let (lock, scratch) = (RowLock::FOR_UPDATE, &mut ReadScratch::default());
        txn.lock_scan(&table, &primary, &range, Direction::Ascending, lock, scratch, &mut |id, _| {
            found = Some(id);
            ControlFlow::Break(())
        })?;
        match (found, self.some(4)) {
            (Some(row), 0) => txn.delete(&table, row).map(drop),
            (Some(row), 1) if of_parent => txn.update(&table, row, &[(0, Datum::Int(p))]).map(drop),
            (Some(row), _) => txn.update(&table, row, &[(1, Datum::Int(p))]).map(drop),
            (None, _) => txn.insert(&table, &[Datum::Int(id), Datum::Int(p)]).map(drop),
        }
    }
}

/// Errors after which a transaction goes on, its statement taken back.
fn goes_on(error: &EngineError) -> bool {
    match error {
        EngineError::ForeignKey(error) => error.is_of_row(),
        EngineError::DuplicateKey { .. } => true,
        EngineError::Deadlock | EngineError::SnapshotConflict(_) | EngineError::SerializationFailure => false,
        other => panic!("{other}"),
    }
}

#[derive(Default)]
struct Stage {
    ended: AtomicBool,
    /// What all sessions have done so far.
    progress: AtomicU64,
    deadlocks: AtomicU64,
    commits: AtomicU64,
    running: AtomicU64,
}

impl Stage {
    fn goes_on(&self) -> bool {
        !self.ended.load(Ordering::Relaxed)
    }

    fn transaction(&self, engine: &Arc<Engine>, session: &mut Session<'_>, isolation: Isolation) {
        let options = TxnOptions {
            isolation,
            lock_wait_timeout: TIMEOUT,
            freshness: Freshness::Logged,
            ..TxnOptions::default()
        };
        let mut txn = engine.begin(options);
        if session.random.below(2) == 0 {
            txn.fix_snapshot();
        }
        for _ in 0..1 + session.random.below(4) {
            let mark = txn.begin_statement();
            let outcome = session.statement(&mut txn);
            self.progress.fetch_add(1, Ordering::Relaxed);
            match outcome {
                Ok(()) => {}
                Err(error) if goes_on(&error) => txn.rollback_statement(mark),
                Err(error) => {
                    let is_deadlock = matches!(error, EngineError::Deadlock);
                    self.deadlocks.fetch_add(is_deadlock.into(), Ordering::Relaxed);
                    return txn.rollback();
                }
            }
        }
        if session.random.below(6) == 0 {
            return txn.rollback();
        }
        let committed = txn.commit().is_ok();
        self.commits.fetch_add(committed.into(), Ordering::Relaxed);
    }

    /// Panics if all sessions sleep and nothing happens.
    fn watch(&self, engine: &Engine) {
        let mut since = (Instant::now(), self.progress.load(Ordering::Relaxed));
        while self.goes_on() {
            std::thread::park_timeout(Duration::from_millis(2));
            let running = self.running.load(Ordering::Relaxed);
            let progress = self.progress.load(Ordering::Relaxed);
            if progress != since.1 || running == 0 || engine.sleeping_waiters() < running as usize {
                since = (Instant::now(), progress);
            }
            assert!(
                since.0.elapsed() < FOUND_WITHIN,
                "all {running} sessions wait, and no deadlock is found"
            );
        }
    }
}

/// Ends the process's threads when one of them panics: those that wait would do so for long.
struct EndOnPanic<'s>(&'s Stage);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Relaxed);
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

fn seconds() -> Duration {
    let given = std::env::var("AVOCET_STRESS_SECONDS").ok().and_then(|n| n.parse().ok());
    Duration::from_secs_f64(given.unwrap_or(2.0))
}

fn run(forms: &[Form], levels: &[Isolation], freeze: FreezePolicy, seed: u64) {
    let disk = SimDisk::new();
    let options = EngineOptions {
        env: Env { disk: Arc::new(disk.clone()), ..Env::os() },
        background: false,
        freeze,
        ..EngineOptions::new("/data")
    };
    let engine = Engine::open(options).expect("opens");
    create(&engine);
    let stage = Stage::default();
    std::thread::scope(|threads| {
        let (stage, engine) = (&stage, &engine);
        for n in 0..SESSIONS {
            let random = Random(seed * 1000 + n as u64);
            let mut session = Session { tables: Tables::of(engine), random, forms };
            let isolation = levels[n % levels.len()];
            stage.running.fetch_add(1, Ordering::Relaxed);
            threads.spawn(move || {
                let _end = EndOnPanic(stage);
                while stage.goes_on() {
                    stage.transaction(engine, &mut session, isolation);
                }
                stage.running.fetch_sub(1, Ordering::Relaxed);
            });
        }
        threads.spawn(move || {
            let _end = EndOnPanic(stage);
            stage.watch(engine);
        });
        let begin = Instant::now();
        while begin.elapsed() < seconds() && stage.goes_on() {
            std::thread::park_timeout(Duration::from_millis(20));
        }
        stage.ended.store(true, Ordering::Relaxed);
    });
    let Stage { commits, deadlocks, .. } = stage;
    let (commits, deadlocks) = (commits.into_inner(), deadlocks.into_inner());
    println!("{forms:?} {levels:?}: {commits} commits, {deadlocks} deadlocks");
    assert!(commits > 20, "{commits} commits");
    assert_eq!(engine.sleeping_waiters(), 0);
    // Commits that are only logged are garbage once they are visible.
    engine.wait_until_visible();
    engine.collect_all_garbage();
    for name in ["u", "parent", "child"] {
        let table = engine.catalog().table("d", name).expect("created").clone();
        let rows = table.row_count();
        for index in table.indexes() {
            let name = &index.def.name;
            assert_eq!(index.entries(), rows, "entries of {name} once no version is left");
        }
    }
}

#[test]
fn shifted_keys() {
    for (seed, level) in [(1, Isolation::ReadCommitted), (2, Isolation::RepeatableRead)] {
        run(&[Form::Shift], &[level], FreezePolicy::Never, seed);
    }
}

#[test]
fn upserts_and_replaces() {
    for (seed, level) in [(3, Isolation::ReadCommitted), (4, Isolation::RepeatableRead)] {
        run(&[Form::Upsert], &[level], FreezePolicy::Never, seed);
        run(&[Form::Replace], &[level], FreezePolicy::Never, 10 + seed);
        run(&[Form::Upsert, Form::Replace, Form::Insert], &[level], FreezePolicy::Never, 20 + seed);
    }
}

#[test]
fn everything_at_one_level() {
    use Isolation::{ReadCommitted, RepeatableRead, Serializable, Snapshot};
    for (seed, level) in [(5, ReadCommitted), (6, RepeatableRead), (7, Snapshot), (8, Serializable)] {
        run(&FORMS, &[level], FreezePolicy::Never, seed);
    }
}

#[test]
fn everything_at_mixed_levels() {
    use Isolation::{ReadCommitted, RepeatableRead, Serializable, Snapshot};
    let levels = [ReadCommitted, RepeatableRead, Snapshot, Serializable];
    run(&FORMS, &levels, FreezePolicy::Never, 9);
    run(&FORMS, &levels, FreezePolicy::Always, 10);
}
