//! Power loss at every sync point: what was acknowledged is there, what was not is there wholly or not at all.
//!
//! A fixed mix of work runs on a simulated disk: transfers between accounts, new accounts, deletes, freezing,
//! checkpoints. The disk is cut at its n-th sync; from what may be left of it the engine recovers, and the state
//! must be that after some number of transactions between those acknowledged and those begun.

use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::*;
use proptest::prelude::*;

fn options(disk: &SimDisk) -> EngineOptions {
    EngineOptions {
        env: disk.env(),
        log_segment_bytes: 16 << 10,
        background: false,
        ..EngineOptions::new("/data")
    }
}

fn definition() -> TableDef {
    let note = SqlType::VarChar { len: 200, collation: Collation::UTF8MB4_BIN };
    let columns = [("id", SqlType::BIGINT), ("balance", SqlType::BIGINT), ("note", note)];
    let columns = columns.map(|(name, ty)| ColumnDef::new(name, ty)).to_vec();
    TableDef::new(
        "bank",
        "accounts",
        columns,
        vec![IndexDef::primary(&[0]), IndexDef::secondary("balance", &[1])],
    )
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u8),
    Transfer(u8, u8, i8),
    Delete(u8),
    Abort(u8),
    Freeze,
    Checkpoint,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<u8>().prop_map(|id| Step::Insert(id % 16)),
        6 => (any::<u8>(), any::<u8>(), any::<i8>()).prop_map(|(a, b, n)| Step::Transfer(a % 16, b % 16, n)),
        2 => any::<u8>().prop_map(|id| Step::Delete(id % 16)),
        1 => any::<u8>().prop_map(|id| Step::Abort(id % 16)),
        1 => Just(Step::Freeze),
        1 => Just(Step::Checkpoint),
    ];
    prop::collection::vec(step, 1..25)
}

/// Accounts and what is in them.
type Model = std::collections::BTreeMap<i64, i64>;

fn apply(model: &mut Model, step: &Step) {
    match *step {
        Step::Insert(id) => {
            model.entry(id.into()).or_insert(1000);
        }
        Step::Transfer(from, to, amount) => {
            let (from, to, amount) = (i64::from(from), i64::from(to), i64::from(amount));
            if from != to && model.contains_key(&from) && model.contains_key(&to) {
                *model.get_mut(&from).expect("there") -= amount;
                *model.get_mut(&to).expect("there") += amount;
            }
        }
        Step::Delete(id) => {
            model.remove(&i64::from(id));
        }
        Step::Abort(_) | Step::Freeze | Step::Checkpoint => {}
    }
}

fn find(txn: &mut Txn, table: &Arc<TableHandle>, id: u8) -> Result<Option<(avocet_base::RowId, i64)>> {
    let index = table.indexes()[0].clone();
    let mut key = Vec::new();
    assert!(index.keys.encode_prefix(&[Datum::Int(id.into())], &mut key));
    let mut found = None;
    let range = KeyRange::prefix(&key);
    let mut scratch = ReadScratch::default();
    txn.lock_scan(
        table,
        &index,
        &range,
        Direction::Ascending,
        RowLock::FOR_UPDATE,
        &mut scratch,
        &mut |id, row| {
            let Datum::Int(balance) = row.get(1) else { panic!("an integer") };
            found = Some((id, balance));
            ControlFlow::Break(())
        },
    )?;
    Ok(found)
}

fn run(engine: &Arc<Engine>, step: &Step) -> Result<()> {
    let table = engine.catalog().table("bank", "accounts").expect("created").clone();
    let mut txn = engine.begin(TxnOptions::default());
    match *step {
        Step::Insert(id) | Step::Abort(id) => {
            let note = "n".repeat(usize::from(id) * 10);
            let row = [Datum::Int(id.into()), Datum::Int(1000), Datum::str(&note)];
            match txn.insert(&table, &row) {
                Ok(_) | Err(EngineError::DuplicateKey { .. }) => {}
                Err(e) => return Err(e),
            }
            if matches!(step, Step::Abort(_)) {
                txn.rollback();
                return Ok(());
            }
        }
        Step::Transfer(from, to, amount) => {
            let pair = (find(&mut txn, &table, from)?, find(&mut txn, &table, to)?);
            if let (Some((a, had_a)), Some((b, had_b))) = pair
                && from != to
            {
                txn.update(&table, a, &[(1, Datum::Int(had_a - i64::from(amount)))])?;
                txn.update(&table, b, &[(1, Datum::Int(had_b + i64::from(amount)))])?;
            }
        }
        Step::Delete(id) => {
            if let Some((row, _)) = find(&mut txn, &table, id)? {
                txn.delete(&table, row)?;
            }
        }
        Step::Freeze => {
            drop(txn);
            return engine.freeze_all().map(drop);
        }
        Step::Checkpoint => {
            drop(txn);
            return engine.checkpoint().map(drop);
        }
    }
    txn.commit()?.wait()
}

fn contents(engine: &Arc<Engine>) -> Option<Model> {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    let table = engine.catalog().table("bank", "accounts")?.clone();
    let txn = engine.begin(TxnOptions::default());
    let scan = txn.scan(&table, ScanRequest { columns: vec![0, 1], ..ScanRequest::default() });
    let mut model = Model::new();
    for morsel in 0..scan.morsels() {
        let read = scan.read(morsel, &mut |batch| {
            let columns = [0, 1].map(|c| batch.column(c).as_primitive::<Int64Type>().clone());
            for row in 0..batch.num_rows() {
                let twice = model.insert(columns[0].value(row), columns[1].value(row));
                assert_eq!(twice, None, "a row is visible in one place");
            }
            ControlFlow::Continue(())
        });
        let _ = read.expect("readable");
    }
    Some(model)
}

/// Runs the steps until the disk is cut; how many were acknowledged.
fn run_until_cut(disk: &SimDisk, steps: &[Step]) -> (bool, usize) {
    let Ok(engine) = Engine::open(options(disk)) else { return (false, 0) };
    let created = engine
        .create_database("bank", Collation::DEFAULT)
        .and_then(|()| engine.create_table(definition()).map(drop));
    if created.is_err() {
        return (false, 0);
    }
    for (done, step) in steps.iter().enumerate() {
        if run(&engine, step).is_err() {
            return (true, done);
        }
    }
    (true, steps.len())
}

fn recovers(disk: &SimDisk, steps: &[Step], created: bool, acknowledged: usize) {
    let report = check(options(disk)).expect("the directory can be looked at");
    assert_eq!(report.findings, Vec::<String>::new());
    let engine = Engine::open(options(disk)).expect("recovered");
    let Some(state) = contents(&engine) else {
        assert!(!created, "the table was acknowledged");
        return;
    };
    let mut model = Model::new();
    steps[..acknowledged].iter().for_each(|step| apply(&mut model, step));
    let least = model.clone();
    if let Some(next) = steps.get(acknowledged) {
        apply(&mut model, next);
    }
    assert!(state == least || state == model, "{state:?} is neither {least:?} nor {model:?}");
    // And it goes on working.
    if created {
        let mut model = state;
        for step in steps {
            run(&engine, step).expect("the disk is well again");
            apply(&mut model, step);
        }
        assert_eq!(contents(&engine), Some(model));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("AVOCET_CRASH_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(6),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_sync_point_recovers(steps in steps(), seed in any::<u64>()) {
        let whole = SimDisk::new();
        run_until_cut(&whole, &steps);
        for cut in 1..=whole.syncs() {
            let disk = SimDisk::new();
            disk.cut_at_sync(cut);
            let (created, acknowledged) = run_until_cut(&disk, &steps);
            for seed in [0, 1, seed] {
                recovers(&disk.crash(seed), &steps, created, acknowledged);
            }
            // Only the process ended. The power goes as soon as the next one has started.
            let killed = disk.kill();
            drop(Engine::open(options(&killed)).expect("recovered"));
            recovers(&killed.crash(seed | 1), &steps, created, acknowledged);
        }
    }
}
