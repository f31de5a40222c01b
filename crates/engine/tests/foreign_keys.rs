//! Foreign keys under concurrency: whatever parents and children do at random, no child is left without its parent, in memory,
//! on disk, and after a restart.

#[path = "common/by_key.rs"]
mod by_key;

use std::sync::Arc;
use std::time::Duration;

use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::*;
use by_key::find;

const PARENTS: i64 = 12;
const CHILDREN: i64 = 60;
const TIMEOUT: Duration = Duration::from_secs(60);

fn options(disk: &SimDisk) -> EngineOptions {
    EngineOptions {
        env: disk.env(),
        log_segment_bytes: 64 << 10,
        background: false,
        ..EngineOptions::new("/data")
    }
}

/// A little generator of numbers: its seed is all that a run depends on, besides the threads' pace.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as i64
    }
}

/// `name (id BIGINT PRIMARY KEY, p BIGINT, KEY (p))`
fn table(name: &str, foreign_keys: Vec<ForeignKeyDef>) -> TableDef {
    let columns =
        vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("p", SqlType::BIGINT).nullable()];
    let indexes = vec![IndexDef::primary(&[0]), IndexDef::secondary("p", &[1])];
    TableDef { foreign_keys, ..TableDef::new("d", name, columns, indexes) }
}

fn key(
    name: &str,
    parent: &str,
    on_delete: ReferentialAction,
    on_update: ReferentialAction,
) -> ForeignKeyDef {
    ForeignKeyDef {
        name: name.into(),
        columns: vec![1],
        parent_database: "d".into(),
        parent_table: parent.into(),
        parent_columns: vec!["id".into()],
        on_delete,
        on_update,
    }
}

/// A parent, children that restrict, cascade and are set to NULL, and children of those that cascade.
fn family(engine: &Engine) -> Vec<Arc<TableHandle>> {
    use ReferentialAction as A;
    engine.create_database("d", Collation::DEFAULT).expect("created");
    let define = |name: &str, keys| engine.create_table(table(name, keys)).expect("created");
    define("parent", Vec::new());
    define("restricts", vec![key("k1", "parent", A::Restrict, A::NoAction)]);
    define("cascades", vec![key("k2", "parent", A::Cascade, A::Cascade)]);
    define("nulls", vec![key("k3", "parent", A::SetNull, A::Cascade)]);
    define("grandchild", vec![key("k4", "cascades", A::Cascade, A::Restrict)]);
    handles(engine)
}

fn handles(engine: &Engine) -> Vec<Arc<TableHandle>> {
    let catalog = engine.catalog();
    ["parent", "restricts", "cascades", "nulls", "grandchild"]
        .map(|name| catalog.table("d", name).expect("there").clone())
        .to_vec()
}

/// One random change of one random row.
fn change(txn: &mut Txn, tables: &[Arc<TableHandle>], random: &mut Random) -> Result<()> {
    let of_parent = random.below(3) == 0;
    let table = if of_parent { &tables[0] } else { &tables[1 + random.below(4) as usize] };
    let ids = if of_parent { PARENTS } else { CHILDREN };
    let id = random.below(ids);
    let parents = if table.def.name == "grandchild" { CHILDREN } else { PARENTS };
    let parent = match (of_parent, random.below(8)) {
        (true, _) | (_, 0) => Datum::Null,
        _ => Datum::Int(random.below(parents)),
    };
    match (random.below(4), find(txn, table, id)?) {
        (0, Some(row)) => txn.delete(table, row).map(drop),
        (1, Some(row)) if of_parent => {
            txn.update(table, row, &[(0, Datum::Int(random.below(ids)))]).map(drop)
        }
        (_, Some(row)) => txn.update(table, row, &[(1, parent)]).map(drop),
        (_, None) => txn.insert(table, &[Datum::Int(id), parent]).map(drop),
    }
}

/// Errors that a transaction goes on after, and those that end it.
fn goes_on(error: &EngineError) -> bool {
    match error {
        EngineError::ForeignKey(error) => error.is_of_row(),
        EngineError::DuplicateKey { .. } => true,
        EngineError::Deadlock
        | EngineError::SnapshotConflict(_)
        | EngineError::SerializationFailure
        | EngineError::LockWaitTimeout => false,
        other => panic!("{other}"),
    }
}

fn transaction(engine: &Arc<Engine>, isolation: Isolation, random: &mut Random) {
    let options = TxnOptions { isolation, lock_wait_timeout: TIMEOUT, ..TxnOptions::default() };
    let mut txn = engine.begin(options);
    let tables = handles(engine);
    if random.below(2) == 0 {
        txn.fix_snapshot();
    }
    for _ in 0..1 + random.below(4) {
        let mark = txn.begin_statement();
        match change(&mut txn, &tables, random) {
            Ok(()) => {}
            Err(error) if goes_on(&error) => txn.rollback_statement(mark),
            Err(_) => return txn.rollback(),
        }
    }
    match random.below(5) {
        0 => txn.rollback(),
        _ => match txn.commit() {
            Ok(ticket) => ticket.wait().expect("durable"),
            Err(error) => assert!(!goes_on(&error), "{error}"),
        },
    }
}

/// Children without parents, by table and id, as the newest rows are.
fn orphans(engine: &Arc<Engine>) -> Vec<(String, i64, i64)> {
    let mut txn = engine.begin(TxnOptions::default());
    let tables = handles(engine);
    let mut rows: Vec<Vec<(i64, Option<i64>)>> = Vec::new();
    for table in &tables {
        let mut of_table = Vec::new();
        txn.table_rows(table, ReadMode::Snapshot, &mut |_, row| {
            let value = |column| match row.get(column) {
                Datum::Int(v) => Some(v),
                _ => None,
            };
            of_table.push((value(0).expect("not null"), value(1)));
            std::ops::ControlFlow::Continue(())
        })
        .expect("read");
        rows.push(of_table);
    }
    let mut orphans = Vec::new();
    for (child, parent) in [(1, 0), (2, 0), (3, 0), (4, 2)] {
        for (id, wanted) in &rows[child] {
            if let Some(wanted) = wanted
                && !rows[parent].iter().any(|(id, _)| id == wanted)
            {
                orphans.push((tables[child].def.name.clone(), *id, *wanted));
            }
        }
    }
    orphans
}

fn assert_no_orphans(engine: &Arc<Engine>, run: &str) {
    let orphans = orphans(engine);
    assert!(orphans.is_empty(), "{run}: {orphans:?}");
}

fn run(isolation: Option<Isolation>, freeze: FreezePolicy, seed: u64) {
    let disk = SimDisk::new();
    let options = || EngineOptions { freeze, ..options(&disk) };
    let engine = Engine::open(options()).expect("opens");
    family(&engine);
    let levels =
        [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Snapshot, Isolation::Serializable];
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let engine = &engine;
            scope.spawn(move || {
                let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1 + thread);
                for _ in 0..150 {
                    let isolation = isolation.unwrap_or(levels[random.below(4) as usize]);
                    transaction(engine, isolation, &mut random);
                }
            });
        }
    });
    assert_no_orphans(&engine, &format!("seed {seed}, {isolation:?}, {freeze:?}"));
    engine.shutdown().expect("shut down");
    drop(engine);
    let engine = Engine::open(options()).expect("opens again");
    assert_no_orphans(&engine, &format!("seed {seed} after a restart"));
    let mut random = Random(seed + 77);
    (0..50).for_each(|_| transaction(&engine, Isolation::RepeatableRead, &mut random));
    assert_no_orphans(&engine, &format!("seed {seed} after more"));
    drop(engine);
    let report = check(options()).expect("looked at");
    assert!(report.is_clean() && report.notes.is_empty(), "{:?} {:?}", report.findings, report.notes);
}

#[test]
fn no_child_is_left_without_its_parent() {
    let levels = [
        Some(Isolation::ReadCommitted),
        Some(Isolation::RepeatableRead),
        Some(Isolation::Snapshot),
        Some(Isolation::Serializable),
        None,
    ];
    for (n, level) in levels.into_iter().enumerate() {
        run(level, FreezePolicy::Never, 100 + n as u64);
        run(level, FreezePolicy::Always, 200 + n as u64);
    }
}

/// The checker of all this notices an orphan, and says whether that is damage.
#[test]
fn orphans_are_found() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("opens");
    let tables = family(&engine);
    let mut txn = engine.begin(TxnOptions::default());
    let refused = txn.insert(&tables[1], &[Datum::Int(1), Datum::Int(7)]);
    assert!(matches!(refused, Err(EngineError::ForeignKey(ForeignKeyError::NoParent { .. }))));
    txn.set_foreign_key_checks(false);
    txn.insert(&tables[1], &[Datum::Int(1), Datum::Int(7)]).expect("not checked");
    txn.commit().expect("logged").wait().expect("durable");
    assert_eq!(orphans(&engine), [("restricts".to_owned(), 1, 7)]);
    // Both from the log and from a checkpoint.
    for _ in 0..2 {
        let report = check(options(&disk.kill())).expect("looked at");
        assert!(report.is_clean(), "{:?}", report.findings);
        assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
        engine.checkpoint().expect("written");
    }
}

/// Loaded rows are checked, too, and their own table may have the parents.
#[test]
fn loads_are_checked() {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Schema};
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("opens");
    let tables = family(&engine);
    let batch = |ids: Vec<i64>, parents: Vec<Option<i64>>| {
        let fields = [("id", false), ("p", true)].map(|(n, null)| Field::new(n, DataType::Int64, null));
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from(ids)), Arc::new(Int64Array::from(parents))];
        RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns).expect("fits")
    };
    let load = |table: &Arc<TableHandle>, batch: &RecordBatch| -> Result<()> {
        let mut txn = engine.begin(TxnOptions::default());
        let mut load = txn.bulk_insert(table)?;
        load.push(&mut txn, batch)?;
        load.finish(&mut txn)?;
        txn.commit()?.wait()
    };
    load(&tables[0], &batch((0..10).collect(), vec![None; 10])).expect("parents");
    let orphaned = load(&tables[2], &batch(vec![1, 2], vec![Some(3), Some(10)]));
    assert!(matches!(orphaned, Err(EngineError::ForeignKey(ForeignKeyError::NoParent { .. }))));
    load(&tables[2], &batch(vec![1, 2, 3], vec![Some(3), None, Some(3)])).expect("children");
    // A cascade moves and deletes rows of column blocks.
    let mut txn = engine.begin(TxnOptions::default());
    let row = find(&mut txn, &tables[0], 3).expect("found").expect("there");
    txn.update(&tables[0], row, &[(0, Datum::Int(30))]).expect("cascades");
    let row = find(&mut txn, &tables[0], 30).expect("found").expect("there");
    txn.delete(&tables[0], row).expect("cascades");
    txn.commit().expect("logged").wait().expect("durable");
    let mut txn = engine.begin(TxnOptions::default());
    let mut left = Vec::new();
    txn.table_rows(&tables[2], ReadMode::Snapshot, &mut |_, row| {
        left.push(format!("{:?}", row.get(0)));
        std::ops::ControlFlow::Continue(())
    })
    .expect("read");
    assert_eq!(left, ["Int(2)"]);
}
