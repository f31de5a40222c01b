//! The engine from outside: transactions, isolation, restarts, freezing, checkpoints.

#[path = "common/by_key.rs"]
mod by_key;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use avocet_base::Env;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::*;
use by_key::{find, lock_by_key};

const WAIT: Duration = Duration::from_secs(5);

fn options(env: &Env) -> EngineOptions {
    EngineOptions {
        env: env.clone(),
        log_segment_bytes: 1 << 20,
        background: false,
        ..EngineOptions::new("/data")
    }
}

fn sim() -> (SimDisk, Env) {
    let disk = SimDisk::new();
    let env = Env { disk: Arc::new(disk.clone()), ..Env::os() };
    (disk, env)
}

/// accounts(id primary key, owner varchar, balance bigint), with an index on owner.
fn accounts(engine: &Arc<Engine>) -> Arc<TableHandle> {
    engine.create_database("bank", Collation::DEFAULT).expect("created");
    let owner = SqlType::VarChar { len: 50, collation: Collation::UTF8MB4_BIN };
    let columns = [("id", SqlType::BIGINT), ("owner", owner), ("balance", SqlType::BIGINT)];
    let columns = columns.map(|(name, ty)| ColumnDef::new(name, ty).nullable()).to_vec();
    let indexes = vec![IndexDef::secondary("owner", &[1]), IndexDef::primary(&[0])];
    engine.create_table(TableDef::new("bank", "accounts", columns, indexes)).expect("created")
}

fn table(engine: &Engine) -> Arc<TableHandle> {
    engine.catalog().table("bank", "accounts").expect("there").clone()
}

fn row<'a>(id: i64, owner: &'a str, balance: i64) -> [Datum<'a>; 3] {
    [Datum::Int(id), Datum::str(owner), Datum::Int(balance)]
}

fn commit(txn: Txn) {
    txn.commit().expect("logged").wait().expect("durable");
}

fn insert(engine: &Arc<Engine>, rows: &[(i64, &str, i64)]) {
    let mut txn = engine.begin(TxnOptions::default());
    for &(id, owner, balance) in rows {
        txn.insert(&table(engine), &row(id, owner, balance)).expect("inserted");
    }
    commit(txn);
}

/// `id owner balance` of every row, by whole-table scan, sorted.
fn scan_all(txn: &Txn, table: &Arc<TableHandle>) -> Vec<String> {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    let scan = txn.scan(table, ScanRequest { columns: vec![0, 1, 2], ..ScanRequest::default() });
    let mut rows = Vec::new();
    for morsel in 0..scan.morsels() {
        let _ = scan
            .read(morsel, &mut |batch| {
                let ids = batch.column(0).as_primitive::<Int64Type>();
                let owners = batch.column(1).as_string_view();
                let balances = batch.column(2).as_primitive::<Int64Type>();
                for n in 0..batch.num_rows() {
                    rows.push(format!("{} {} {}", ids.value(n), owners.value(n), balances.value(n)));
                }
                ControlFlow::Continue(())
            })
            .expect("readable");
    }
    rows.sort();
    rows
}

/// The same along an index.
fn index_all(txn: &Txn, table: &Arc<TableHandle>, index: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut scratch = ReadScratch::default();
    let handle = table.indexes()[index].clone();
    txn.index_scan(table, &handle, &KeyRange::all(), Direction::Ascending, &mut scratch, &mut |_, row| {
        let text = |c: usize| match row.get(c) {
            Datum::Int(v) => v.to_string(),
            Datum::Str(s) => s.into_owned(),
            other => format!("{other:?}"),
        };
        rows.push(format!("{} {} {}", text(0), text(1), text(2)));
        ControlFlow::Continue(())
    })
    .expect("readable");
    rows.sort();
    rows
}

/// All ways to the rows agree; what they are.
fn contents(engine: &Arc<Engine>) -> Vec<String> {
    let txn = engine.begin(TxnOptions::default());
    let table = table(engine);
    let rows = scan_all(&txn, &table);
    assert_eq!(index_all(&txn, &table, 0), rows, "primary key");
    assert_eq!(index_all(&txn, &table, 1), rows, "index on owner");
    assert_eq!(table.row_count(), rows.len() as u64);
    rows
}

fn set_balance(txn: &mut Txn, table: &Arc<TableHandle>, id: i64, balance: i64) {
    let row = find(txn, table, id).expect("locked").expect("there");
    txn.update(table, row, &[(2, Datum::Int(balance))]).expect("updated").expect("there");
}

#[test]
fn what_was_committed_is_there_after_a_restart() {
    let (disk, env) = sim();
    let engine = Engine::open(options(&env)).expect("open");
    accounts(&engine);
    insert(&engine, &[(1, "ada", 100), (2, "bob", 50), (3, "cyd", 0)]);
    let mut txn = engine.begin(TxnOptions::default());
    let t = table(&engine);
    set_balance(&mut txn, &t, 1, 70);
    let bob = find(&mut txn, &t, 2).expect("locked").expect("there");
    assert!(txn.delete(&t, bob).expect("deleted"));
    let cyd = find(&mut txn, &t, 3).expect("locked").expect("there");
    txn.update(&t, cyd, &[(1, Datum::str("cy"))]).expect("updated");
    commit(txn);
    let want = ["1 ada 70", "3 cy 0"];
    assert_eq!(contents(&engine), want);
    // Power is lost without a shutdown.
    let mut env = env;
    let crashed = disk.crash(7);
    drop(engine);
    env.disk = Arc::new(crashed);
    let engine = Engine::open(options(&env)).expect("recovered");
    assert_eq!(contents(&engine), want);
    engine.checkpoint().expect("checkpoint");
    insert(&engine, &[(4, "dan", 4)]);
    engine.shutdown().expect("shut down");
    drop(engine);
    let engine = Engine::open(options(&env)).expect("reopened");
    assert_eq!(contents(&engine), ["1 ada 70", "3 cy 0", "4 dan 4"]);
}

#[test]
fn snapshots_do_not_move_and_rollback_leaves_no_trace() {
    let (_, env) = sim();
    let engine = Engine::open(options(&env)).expect("open");
    let t = accounts(&engine);
    insert(&engine, &[(1, "ada", 100), (2, "bob", 50)]);
    let reader = engine.begin(TxnOptions::default());
    let before = scan_all(&reader, &t);
    let mut writer = engine.begin(TxnOptions::default());
    set_balance(&mut writer, &t, 1, 0);
    let ada = find(&mut writer, &t, 1).expect("locked").expect("there");
    writer.update(&t, ada, &[(1, Datum::str("eve"))]).expect("updated");
    writer.insert(&t, &row(9, "new", 1)).expect("inserted");
    let bob = find(&mut writer, &t, 2).expect("locked").expect("there");
    writer.delete(&t, bob).expect("deleted");
    assert_eq!(scan_all(&writer, &t), ["1 eve 0", "9 new 1"]);
    assert_eq!(index_all(&writer, &t, 1), ["1 eve 0", "9 new 1"]);
    assert_eq!(scan_all(&reader, &t), before);
    writer.rollback();
    assert_eq!(contents(&engine), before);
    let mut writer = engine.begin(TxnOptions::default());
    let ada = find(&mut writer, &t, 1).expect("locked").expect("there");
    writer.update(&t, ada, &[(1, Datum::str("eve"))]).expect("updated");
    commit(writer);
    engine.collect_all_garbage();
    assert_eq!(index_all(&reader, &t, 1), before, "the old key leads to the old version");
    drop(reader);
    engine.collect_all_garbage();
    assert_eq!(contents(&engine), ["1 eve 100", "2 bob 50"]);
    assert_eq!(engine.version_backlog(), 0);
    assert_eq!(t.indexes()[1].entries(), 2);
}

#[test]
fn a_statement_can_be_taken_back_alone() {
    let (_, env) = sim();
    let engine = Engine::open(options(&env)).expect("open");
    let t = accounts(&engine);
    let mut txn = engine.begin(TxnOptions::default());
    txn.insert(&t, &row(1, "ada", 1)).expect("inserted");
    let mark = txn.begin_statement();
    txn.insert(&t, &row(2, "bob", 2)).expect("inserted");
    let failed = txn.insert(&t, &row(1, "twin", 3)).expect_err("a duplicate");
    assert_eq!(failed.to_string(), "duplicate entry '1' for key 'accounts.PRIMARY'");
    txn.rollback_statement(mark);
    commit(txn);
    assert_eq!(contents(&engine), ["1 ada 1"]);
}

#[test]
fn a_table_without_indexes_rolls_back_too() {
    let (_, env) = sim();
    let engine = Engine::open(options(&env)).expect("open");
    accounts(&engine);
    let mut def = (*table(&engine).def).clone();
    def.name = "plain".into();
    def.indexes.clear();
    let plain = engine.create_table(def).expect("created");
    let mut txn = engine.begin(TxnOptions::default());
    let id = txn.insert(&plain, &row(1, "ada", 1)).expect("inserted");
    txn.update(&plain, id, &[(1, Datum::str("eve"))]).expect("updated");
    txn.rollback();
    assert!(scan_all(&engine.begin(TxnOptions::default()), &plain).is_empty());
}

#[test]
fn freezing_and_compaction_change_no_answer() {
    let (disk, env) = sim();
    let engine = Engine::open(options(&env)).expect("open");
    let t = accounts(&engine);
    let names: Vec<String> = (0..2000).map(|n| format!("owner {}", n % 37)).collect();
    let rows: Vec<_> = (0..2000).map(|n| (n as i64, names[n].as_str(), n as i64 * 3)).collect();
    insert(&engine, &rows);
    let before = contents(&engine);
    assert_eq!(engine.freeze_all().expect("frozen"), 0);
    assert_eq!(contents(&engine), before);
    assert_eq!(t.stats().cold_rows, 2000);
    let reader = engine.begin(TxnOptions::default());
    assert_eq!(scan_all(&reader, &t), before);
    // Cold rows are deleted, moved by an update, and found by both indexes.
    let mut txn = engine.begin(TxnOptions::default());
    for id in 0..1000 {
        let row = find(&mut txn, &t, id).expect("locked").expect("there");
        txn.delete(&t, row).expect("deleted");
    }
    set_balance(&mut txn, &t, 1500, -1);
    commit(txn);
    let after = contents(&engine);
    assert_eq!(after.len(), 1000);
    assert!(after.contains(&"1500 owner 20 -1".to_string()));
    assert_eq!(scan_all(&reader, &t), before);
    drop(reader);
    engine.collect_all_garbage();
    engine.freeze_all().expect("compacted");
    assert_eq!(contents(&engine), after);
    assert_eq!(t.stats().cold_rows, 1000);
    for seed in 0..3 {
        let env = Env { disk: Arc::new(disk.crash(seed)), ..env.clone() };
        let engine = Engine::open(options(&env)).expect("recovered");
        assert_eq!(contents(&engine), after);
        engine.checkpoint().expect("checkpoint");
        engine.shutdown().expect("shut down");
        drop(engine);
        assert_eq!(contents(&Engine::open(options(&env)).expect("reopened")), after);
    }
}

#[test]
fn writers_wait_for_each_other_and_deadlocks_are_found() {
    let (_, env) = sim();
    let engine = Engine::open(options(&env)).expect("open");
    let t = accounts(&engine);
    insert(&engine, &[(1, "ada", 0), (2, "bob", 0)]);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (engine, t) = (engine.clone(), t.clone());
            std::thread::spawn(move || {
                for _ in 0..100 {
                    let mut txn = engine.begin(TxnOptions::default());
                    let id = find(&mut txn, &t, 1).expect("locked").expect("there");
                    let mut buf = RowBuf::default();
                    assert!(txn.lock_row(&t, id, RowLock::FOR_UPDATE, &mut buf).expect("locked"));
                    let Datum::Int(balance) = buf.row(&t.layout).get(2) else { panic!("an integer") };
                    txn.update(&t, id, &[(2, Datum::Int(balance + 1))]).expect("updated");
                    commit(txn);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().expect("no panic"));
    assert_eq!(contents(&engine), ["1 ada 400", "2 bob 0"]);

    let mut one = engine.begin(TxnOptions { lock_wait_timeout: WAIT, ..TxnOptions::default() });
    set_balance(&mut one, &t, 1, 1);
    let (holds, told) = std::sync::mpsc::channel();
    let other = {
        let (engine, t) = (engine.clone(), t.clone());
        std::thread::spawn(move || {
            let mut two = engine.begin(TxnOptions { lock_wait_timeout: WAIT, ..TxnOptions::default() });
            set_balance(&mut two, &t, 2, 2);
            holds.send(()).expect("somebody listens");
            find_result(&mut two, &t, 1).map(|_| commit(two))
        })
    };
    told.recv().expect("the other has its row");
    // Each holds what the other wants: whoever asks last is told, and the other goes on.
    let mine = find_result(&mut one, &t, 2);
    drop(one);
    let others = other.join().expect("no panic");
    match (mine, others) {
        (Err(EngineError::Deadlock), Ok(())) => {}
        (Ok(0), Err(EngineError::Deadlock)) => {}
        (mine, others) => panic!("{mine:?} and {others:?}"),
    }
}

fn find_result(txn: &mut Txn, table: &Arc<TableHandle>, id: i64) -> Result<i64> {
    let mut balance = 0;
    lock_by_key(txn, table, id, &mut |_, row| {
        let Datum::Int(b) = row.get(2) else { panic!("an integer") };
        balance = b;
    })?;
    Ok(balance)
}

#[test]
fn bulk_loads_go_cold_and_are_all_or_nothing() {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
    let (disk, env) = sim();
    let engine = Engine::open(options(&env)).expect("open");
    let t = accounts(&engine);
    let batch = |from: i64, to: i64| {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
        let owners: ArrayRef =
            Arc::new(StringViewArray::from_iter_values((from..to).map(|n| format!("o{}", n % 5))));
        let balances: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
        RecordBatch::try_from_iter([("id", ids), ("owner", owners), ("balance", balances)]).expect("a batch")
    };
    let mut txn = engine.begin(TxnOptions::default());
    let mut load = txn.bulk_insert(&t).expect("begun");
    load.push(&mut txn, &batch(0, 70_000)).expect("pushed");
    assert_eq!(load.finish(&mut txn).expect("stored"), 70_000);
    let other = engine.begin(TxnOptions::default());
    assert!(scan_all(&other, &t).is_empty(), "nobody else sees it yet");
    assert_eq!(scan_all(&txn, &t).len(), 70_000);
    commit(txn);
    assert!(scan_all(&other, &t).is_empty());
    drop(other);
    assert_eq!(contents(&engine).len(), 70_000);

    let mut txn = engine.begin(TxnOptions::default());
    let mark = txn.mark();
    let mut load = txn.bulk_insert(&t).expect("begun");
    load.push(&mut txn, &batch(69_999, 80_000)).expect("pushed");
    let failed = load.finish(&mut txn).expect_err("a duplicate");
    assert_eq!(failed.to_string(), "duplicate entry '69999' for key 'accounts.PRIMARY'");
    txn.rollback_statement(mark);
    commit(txn);
    assert_eq!(contents(&engine).len(), 70_000);
    let env = Env { disk: Arc::new(disk.crash(1)), ..env };
    assert_eq!(contents(&Engine::open(options(&env)).expect("recovered")).len(), 70_000);
}

#[test]
fn a_second_engine_on_the_directory_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = || EngineOptions { background: false, ..EngineOptions::new(dir.path().join("data")) };
    let engine = Engine::open(options()).expect("open");
    assert!(matches!(Engine::open(options()).map(drop), Err(EngineError::InUse(_))));
    drop(engine);
    Engine::open(options()).expect("free again");
    std::fs::create_dir(dir.path().join("other")).expect("made");
    std::fs::write(dir.path().join("other/file"), "x").expect("written");
    let other = Engine::open(EngineOptions::new(dir.path().join("other"))).map(drop);
    assert!(matches!(other, Err(EngineError::NotADataDirectory(_))));
}

/// A copy that has fewer rows than its table does not take that one's place.
#[test]
fn a_copy_that_lacks_rows_is_refused() {
    let (_disk, env) = sim();
    let engine = Engine::open(options(&env)).expect("open");
    accounts(&engine);
    insert(&engine, &[(1, "Ada", 10), (2, "Bo", 20), (3, "Cy", 30)]);
    let copied = |rows: i64| -> Result<()> {
        let alteration = engine.alter("bank", "accounts", &[], None, Duration::ZERO)?;
        let copy = engine.create_unfinished((*table(&engine).def).clone())?;
        let made = copy.fill(TxnOptions::default(), Arc::new(|| false), |txn| {
            (0..rows).try_for_each(|id| txn.insert(copy.table(), &row(id, "copied", id * 10)).map(drop))?;
            Ok::<_, EngineError>(rows as u64)
        })?;
        alteration.replace_by(copy, made, NewForeignKeys::default(), AlterRest::default())
    };
    let refused = copied(2).expect_err("a row is missing");
    assert!(matches!(refused, EngineError::RowsMissing { expected: 3, found: 2, .. }), "{refused}");
    assert_eq!(contents(&engine), ["1 Ada 10", "2 Bo 20", "3 Cy 30"]);
    assert!(!engine.catalog().tables().any(|table| table.is_unfinished()), "the copy is dropped");
    copied(3).expect("all rows are there");
    assert_eq!(contents(&engine), ["0 copied 0", "1 copied 10", "2 copied 20"]);
    drop(engine);
    let engine = Engine::open(options(&env)).expect("as many rows as the log says");
    assert_eq!(contents(&engine).len(), 3);
}

/// The latch of definitions is free again when the publication of a table is refused: the table is dropped under it.
#[test]
fn a_table_whose_publication_is_refused_is_dropped() {
    let (disk, env) = sim();
    let engine = Engine::open(options(&env)).expect("open");
    accounts(&engine);
    insert(&engine, &[(1, "Ada", 10)]);
    let filled = |def: &TableDef| -> Unfinished {
        let copy = engine.create_unfinished(def.clone()).expect("created");
        let fill = |txn: &mut Txn| txn.insert(copy.table(), &row(1, "copied", 10)).map(drop);
        copy.fill(TxnOptions::default(), Arc::new(|| false), fill).expect("filled");
        copy
    };
    let new = TableDef { name: "new".into(), ..(*table(&engine).def).clone() };
    let refused = filled(&new).publish(&new, 2, None, true, WAIT).expect_err("it has one row");
    assert!(matches!(refused, EngineError::RowsMissing { expected: 2, found: 1, .. }), "{refused}");
    assert!(!engine.catalog().tables().any(|table| table.is_unfinished()), "it is dropped");

    let filler = TableDef { name: "filler".into(), ..(*table(&engine).def).clone() };
    let filler = engine.create_table(filler).expect("created");
    let copies = [filled(&new), filled(&new)];
    let alteration = engine.alter("bank", "accounts", &[], None, WAIT).expect("held");
    fill_disk(&disk, &engine, &filler);
    let [copy, other] = copies;
    let refused = copy.publish(&new, 1, None, true, WAIT).expect_err("no room");
    assert_eq!(refused.kind(), ErrorKind::NoSpace, "{refused}");
    let refused = alteration.replace_by(other, 1, NewForeignKeys::default(), AlterRest::default());
    assert_eq!(refused.expect_err("no room").kind(), ErrorKind::NoSpace);
    disk.set_capacity(None);
    engine.drop_unfinished().expect("there is room again");
    engine.create_database("more", Collation::DEFAULT).expect("the latch is free");
    assert_eq!(contents(&engine), ["1 Ada 10"]);
}

/// Leaves no room for a record of the log.
fn fill_disk(disk: &SimDisk, engine: &Arc<Engine>, filler: &Arc<TableHandle>) {
    disk.set_capacity(Some(disk.used()));
    let mut id = 0;
    for rows in [1000, 100, 10, 1] {
        let is_refused = (0..2000).any(|_| {
            let mut txn = engine.begin(TxnOptions::default());
            for _ in 0..rows {
                id += 1;
                txn.insert(filler, &row(id, &format!("{:050}", id * 7_919 % 1_000_003), id))
                    .expect("a new key");
            }
            txn.commit().is_err()
        });
        assert!(is_refused, "the disk is full for {rows} rows");
    }
    // A row may have been refused while others were on their way to the disk, and left room for many small records.
    let is_refused = |n: &u32| engine.create_database(&format!("filler{n}"), Collation::DEFAULT).is_err();
    assert!((0..5000).any(|n| is_refused(&n)), "and for a definition");
}

#[test]
fn changes_in_place_end_when_they_are_interrupted() {
    let (_, env) = sim();
    let engine = Engine::open(options(&env)).expect("a new engine");
    accounts(&engine);
    let rows: Vec<_> = (0..10_000).map(|id| (id, "Ada", id)).collect();
    insert(&engine, &rows);
    let unique = IndexDef { kind: IndexKind::Unique, ..IndexDef::secondary("unique", &[2]) };
    for (there, added) in (2..).zip([IndexDef::secondary("balance", &[2]), unique]) {
        // However often it is asked before: the change is not made once it has been told to end.
        for asked_before in 0..64 {
            let asked = std::sync::atomic::AtomicUsize::new(0);
            let interrupted =
                move || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= asked_before;
            let wait = DdlWait { timeout: WAIT, interrupted: Some(Arc::new(interrupted)), own: None };
            let change = || {
                let alteration = engine.alter("bank", "accounts", &[], None, wait)?;
                let mut def = (*table(&engine).def).clone();
                def.indexes.push(added.clone());
                alteration.change_in_place(
                    &engine,
                    &def,
                    NewForeignKeys::unchanged(&def),
                    AlterRest::default(),
                    None,
                )
            };
            match change() {
                Ok(()) => {
                    assert!(asked_before > 3, "it is asked more often");
                    break;
                }
                Err(error) => assert!(matches!(error, EngineError::Interrupted), "{error}"),
            }
            assert_eq!(table(&engine).def.indexes.len(), there, "after {asked_before} questions");
        }
    }
}

/// Who changes a table looks at its rows for long: others change definitions, freeze and write checkpoints meanwhile.
#[test]
fn other_definitions_change_while_rows_are_looked_at() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    // Whether to stop is asked after so many rows, and more.
    const ROWS: i64 = 5000;
    let (_disk, env) = sim();
    let engine = Engine::open(options(&env)).expect("opens");
    let parent = accounts(&engine);
    insert(&engine, &[(1, "ann", 10), (2, "bob", 20)]);
    let child = TableDef { name: "child".into(), ..(*parent.def).clone() };
    engine.create_table(child).expect("created");
    let child = || engine.catalog().table("bank", "child").expect("there").clone();
    let mut txn = engine.begin(TxnOptions::default());
    for id in 1..ROWS {
        txn.insert(&child(), &row(id, "child", 1 + id % 2)).expect("inserted");
    }
    commit(txn);
    // The first question after the table is held is asked where rows are looked at.
    let (countdown, changes) = (Arc::new(AtomicUsize::new(usize::MAX)), Arc::new(AtomicUsize::new(0)));
    let others = {
        let (engine, countdown, changes) = (engine.clone(), countdown.clone(), changes.clone());
        move || {
            if countdown.fetch_sub(1, Ordering::SeqCst) != 1 {
                return false;
            }
            let (done, wait) = std::sync::mpsc::channel();
            let (engine, changes) = (engine.clone(), changes.clone());
            std::thread::spawn(move || {
                let name = format!("other{}", changes.fetch_add(1, Ordering::SeqCst));
                engine.create_database(&name, Collation::DEFAULT).expect("created");
                engine.freeze_all().expect("frozen");
                engine.checkpoint().expect("written");
                done.send(()).expect("awaited");
            });
            wait.recv_timeout(Duration::from_secs(20)).expect("nobody is in the way");
            false
        }
    };
    let others: Arc<dyn Fn() -> bool + Send + Sync> = Arc::new(others);
    let alter = || {
        countdown.store(usize::MAX, Ordering::SeqCst);
        let wait = DdlWait { timeout: WAIT, interrupted: Some(others.clone()), own: None };
        let held = engine.alter("bank", "child", &[("bank".into(), "accounts".into())], None, wait);
        countdown.store(1, Ordering::SeqCst);
        held.expect("held")
    };
    let asked = |times: usize| assert_eq!(changes.load(Ordering::SeqCst), times);

    let mut def = (*child().def).clone();
    def.indexes.push(IndexDef::secondary("by_balance", &[2]));
    let unchanged = NewForeignKeys::unchanged(&def);
    alter().change_in_place(&engine, &def, unchanged, AlterRest::default(), None).expect("made");
    asked(1);

    let key = ForeignKeyDef {
        name: "to_account".into(),
        columns: vec![2],
        parent_database: "bank".into(),
        parent_table: "accounts".into(),
        parent_columns: vec!["id".into()],
        on_delete: ReferentialAction::NoAction,
        on_update: ReferentialAction::NoAction,
    };
    let keys = || NewForeignKeys {
        keys: vec![key.clone()],
        added: vec!["to_account".into()],
        checks: true,
        ..NewForeignKeys::default()
    };
    let def = (*child().def).clone();
    alter().change_in_place(&engine, &def, keys(), AlterRest::default(), None).expect("account 2 is there");
    asked(2);
    let (dropped, unasked) = (NewForeignKeys::default(), engine.alter("bank", "child", &[], None, WAIT));
    unasked
        .expect("held")
        .change_in_place(&engine, &def, dropped, AlterRest::default(), None)
        .expect("dropped");

    // Columns that are new, and an index on one of them; the table's rows stay hot meanwhile.
    let mut txn = engine.begin(TxnOptions::default());
    txn.insert(&child(), &row(ROWS, "hot", 1)).expect("inserted");
    commit(txn);
    let mut def = (*child().def).clone();
    def.columns.push(ColumnDef::new("more", SqlType::BIGINT).nullable());
    def.indexes.push(IndexDef::secondary("by_more", &[3, 2]));
    let sources = [Ok(0), Ok(1), Ok(2), Err(Value::Int(7))];
    let alteration = alter();
    assert!(alteration.has_newest_rows_alone(&engine));
    let rest = AlterRest::default();
    assert!(alteration.reshape(&engine, &def, &sources, &NewForeignKeys::default(), &rest).expect("made"));
    drop(alteration);
    asked(3);
    let mut txn = engine.begin(TxnOptions::default());
    let hot = find(&mut txn, &child(), ROWS).expect("locked").expect("there");
    txn.update(&child(), hot, &[(2, Datum::Int(5))]).expect("updated").expect("there");
    commit(txn);

    let copy = engine.create_unfinished((*child().def).clone()).expect("created");
    let fill = |txn: &mut Txn| -> Result<()> {
        for id in 1..=ROWS {
            let balance = Datum::Int(1 + id % 2);
            txn.insert(copy.table(), &[Datum::Int(id), Datum::str("copy"), balance, Datum::Int(7)])?;
        }
        Ok(())
    };
    copy.fill(TxnOptions::default(), Arc::new(|| false), fill).expect("filled");
    let before = changes.load(Ordering::SeqCst);
    // A page whose rows are looked at just then cannot be frozen.
    engine.freeze_all().expect("frozen");
    alter().replace_by(copy, ROWS as u64, keys(), AlterRest::default()).expect("both accounts are there");
    asked(before + 1);
    let seen = |engine: &Arc<Engine>, table: &Arc<TableHandle>| {
        let rows = scan_all(&engine.begin(TxnOptions::default()), table);
        assert!(rows.len() as i64 == ROWS && rows.iter().all(|row| row.contains(" copy ")));
    };
    seen(&engine, &child());
    drop((others, parent, engine));
    let engine = Engine::open(options(&env)).expect("recovers");
    let t = engine.catalog().table("bank", "child").expect("there").clone();
    assert_eq!(t.def.indexes.len(), 4);
    seen(&engine, &t);
}

/// Recovery lowers a counter where it was lowered: behind the rows that had raised it.
#[test]
fn a_lowered_counter_stays_lowered() {
    let (_, env) = sim();
    let engine = Engine::open(options(&env)).expect("opens");
    engine.create_database("bank", Collation::DEFAULT).expect("created");
    let mut id = ColumnDef::new("id", SqlType::BIGINT);
    id.auto_increment = true;
    let def = TableDef::new("bank", "accounts", vec![id], vec![IndexDef::primary(&[0])]);
    engine.create_table(def).expect("created");
    let counter = |engine: &Engine| table(engine).next_auto_increment();
    let lower = |engine: &Arc<Engine>, next: u64| {
        let wait = DdlWait { timeout: WAIT, interrupted: None, own: None };
        let held = engine.alter("bank", "accounts", &[], None, wait).expect("held");
        let (def, rest) =
            ((*table(engine).def).clone(), AlterRest { auto_increment: Some(next), ..AlterRest::default() });
        let unchanged = NewForeignKeys::unchanged(&def);
        held.change_in_place(engine, &def, unchanged, rest, None).expect("made");
    };
    let insert = |engine: &Arc<Engine>, ids: std::ops::Range<i64>| {
        let mut txn = engine.begin(TxnOptions::default());
        ids.for_each(|id| {
            txn.insert(&table(engine), &[Datum::Int(id)]).expect("inserted");
        });
        commit(txn);
    };
    const MANY: i64 = 20_000;
    insert(&engine, 1..MANY);
    let mut txn = engine.begin(TxnOptions::default());
    (1..MANY).for_each(|id| {
        let row = find(&mut txn, &table(&engine), id).expect("locked").expect("there");
        assert!(txn.delete(&table(&engine), row).expect("deleted"));
    });
    commit(txn);
    lower(&engine, 3);
    assert_eq!(counter(&engine), 3);
    drop(engine);
    let engine = Engine::open(options(&env)).expect("recovers");
    assert_eq!(counter(&engine), 3);
    insert(&engine, 7..8);
    drop(engine);
    let engine = Engine::open(options(&env)).expect("recovers");
    assert_eq!(counter(&engine), 8);
    engine.checkpoint().expect("written");
    drop(engine);
    assert_eq!(counter(&Engine::open(options(&env)).expect("recovers")), 8);
}

/// Rows of a temporary table are versioned and taken back like others. Neither they nor their table cost a sync, are in a catalog
/// but their session's, or are there after a restart; what a transaction changes beside them is.
#[test]
fn temporary_tables_leave_no_trace() {
    let (disk, env) = sim();
    let engine = Engine::open(options(&env)).expect("opens");
    let stored = accounts(&engine);
    insert(&engine, &[(1, "ann", 10)]);
    let def = TableDef { id: Default::default(), ..(*stored.def).clone() };
    let before = disk.syncs();
    let own = engine.create_temporary(def.clone(), Some(5)).expect("created");
    let other = engine.create_temporary(def, None).expect("created");
    let own_table = own.table().clone();
    assert!(own_table.id().is_temporary() && own_table.id() != other.table().id());
    assert_eq!(own_table.next_auto_increment(), 5);
    let seen = engine.catalog().with_temporary([&own]);
    assert!(Arc::ptr_eq(seen.table("bank", "accounts").expect("there"), &own_table));
    assert!(Arc::ptr_eq(engine.catalog().table("bank", "accounts").expect("there"), &stored));

    let mut txn = engine.begin(TxnOptions { read_only: true, ..TxnOptions::default() });
    txn.insert(&own_table, &row(7, "own", 70)).expect("inserted");
    let mark = txn.mark();
    txn.insert(&own_table, &row(8, "back", 80)).expect("inserted");
    assert!(txn.has_changed_since(&mark) && txn.changes_temporary_alone());
    txn.rollback_statement(mark);
    assert!(!txn.has_changed_since(&mark));
    assert!(txn.insert(&stored, &row(9, "no", 0)).is_err(), "it is read-only");
    commit(txn);
    let mut txn = engine.begin(TxnOptions::default());
    set_balance(&mut txn, &own_table, 7, 71);
    let error = txn.insert(&own_table, &row(7, "twice", 0)).expect_err("there is one");
    assert!(matches!(error, EngineError::DuplicateKey { .. }), "{error}");
    commit(txn);
    let mut txn = engine.begin(TxnOptions::default());
    set_balance(&mut txn, &own_table, 7, 72);
    txn.rollback();
    let txn = engine.begin(TxnOptions::default());
    assert_eq!(scan_all(&txn, &own_table), ["7 own 71"]);
    drop(txn);
    assert_eq!(disk.syncs(), before);

    let mut txn = engine.begin(TxnOptions::default());
    txn.insert(&own_table, &row(8, "own", 80)).expect("inserted");
    txn.insert(&stored, &row(2, "bob", 20)).expect("inserted");
    assert!(!txn.changes_temporary_alone());
    commit(txn);
    engine.checkpoint().expect("written");
    let again = Engine::open(options(&disk.kill().env())).expect("opens");
    assert_eq!(contents(&again), ["1 ann 10", "2 bob 20"]);
    assert_eq!(again.catalog().tables().count(), 1);
    let txn = engine.begin(TxnOptions::default());
    assert_eq!(scan_all(&txn, &own_table), ["7 own 71", "8 own 80"]);
}

/// An update that moves its row, as one of a column block does, is one update.
#[test]
fn commits_count_the_rows_that_they_changed() {
    let (_, env) = sim();
    let engine = Engine::open(options(&env)).expect("opens");
    let table = accounts(&engine);
    insert(&engine, &[(1, "ann", 10), (2, "bob", 20), (3, "cid", 30)]);
    let counts = |inserted, updated, deleted| RowCounts { inserted, updated, deleted };
    assert_eq!(engine.row_counts(), counts(3, 0, 0));
    let change = |ids: &[i64]| {
        let mut txn = engine.begin(TxnOptions::default());
        ids.iter().for_each(|id| set_balance(&mut txn, &table, *id, 99));
        txn
    };
    commit(change(&[1, 2]));
    assert_eq!(engine.row_counts(), counts(3, 2, 0), "on pages");
    engine.freeze_all().expect("frozen");
    commit(change(&[1, 3]));
    assert_eq!(engine.row_counts(), counts(3, 4, 0), "in blocks");
    change(&[2]).rollback();
    assert_eq!(engine.row_counts(), counts(3, 4, 0), "rolled back");
    let mut txn = engine.begin(TxnOptions::default());
    let id = find(&mut txn, &table, 2).expect("locked").expect("there");
    assert!(txn.delete(&table, id).expect("deleted"));
    commit(txn);
    assert_eq!(engine.row_counts(), counts(3, 4, 1));
}

/// A transaction that has met a commit which is only logged shares its timestamp: its rows are there once it is acknowledged.
#[test]
fn rows_of_temporary_tables_are_seen_by_the_next_snapshot() {
    let (disk, env) = sim();
    let engine = Engine::open(options(&env)).expect("opens");
    let stored = accounts(&engine);
    insert(&engine, &[(1, "ann", 10)]);
    let own = engine.create_temporary(TableDef { id: Default::default(), ..(*stored.def).clone() }, None);
    let own = own.expect("created");
    disk.hold_syncs(std::path::Path::new("/data"));
    let mut writer = engine.begin(TxnOptions::default());
    set_balance(&mut writer, &stored, 1, 11);
    let logged = writer.commit().expect("logged");
    let mut txn = engine.begin(TxnOptions::default());
    copy_balance(&mut txn, &stored, own.table());
    let ticket = txn.commit().expect("nothing to log");
    assert!(!logged.is_durable() && !ticket.is_durable(), "it has met what is not durable");
    disk.release_syncs();
    ticket.wait().expect("durable");
    let txn = engine.begin(TxnOptions::default());
    assert_eq!(scan_all(&txn, own.table()), ["1 copied 11"]);
    logged.wait().expect("durable");
}

/// `INSERT INTO copy SELECT … FROM accounts WHERE id = 1 FOR UPDATE`
fn copy_balance(txn: &mut Txn, from: &Arc<TableHandle>, copy: &Arc<TableHandle>) {
    let mut balance = 0;
    lock_by_key(txn, from, 1, &mut |_, row| {
        if let Datum::Int(met) = row.get(2) {
            balance = met;
        }
    })
    .expect("locked");
    txn.insert(copy, &row(1, "copied", balance)).expect("inserted");
}
