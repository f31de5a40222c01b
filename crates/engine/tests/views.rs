//! Definitions of views: in the log, in checkpoints, after power loss at any sync, and beside tables of the same names.

use std::sync::Arc;
use std::time::Duration;

use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::*;

fn options(disk: &SimDisk) -> EngineOptions {
    EngineOptions { background: false, env: disk.env(), ..EngineOptions::new("data") }
}

fn view(name: &str, select: &str) -> TableDef {
    let view = ViewDef {
        select: select.into(),
        names: Vec::new(),
        algorithm: ViewAlgorithm::Undefined,
        definer: ("root".into(), "localhost".into()),
        security: ViewSecurity::Definer,
        check: ViewCheck::Local,
        is_updatable: true,
        sql_mode: SqlMode::DEFAULT,
        client_charset: "utf8mb4".into(),
        connection_collation: Collation::DEFAULT,
        created_us: 1,
    };
    let def = TableDef::new("d", name, vec![ColumnDef::new("a", SqlType::BIGINT)], vec![]);
    TableDef { view: Some(Box::new(view)), ..def }
}

fn table(name: &str) -> TableDef {
    TableDef::new("d", name, vec![ColumnDef::new("a", SqlType::BIGINT)], vec![IndexDef::primary(&[0])])
}

/// Tables and views by name, views with their text.
fn contents(engine: &Arc<Engine>) -> Vec<String> {
    let catalog = engine.catalog();
    let of = |handle: &Arc<TableHandle>| match &handle.def.view {
        Some(view) => format!("{} = {}", handle.def.name, view.select),
        None => handle.def.name.clone(),
    };
    catalog.relations_in("d").map(of).collect()
}

const NOW: Duration = Duration::from_secs(1);

type Step = fn(&Arc<Engine>) -> Result<()>;

const STEPS: &[Step] = &[
    |engine| engine.create_database("d", Collation::DEFAULT),
    |engine| engine.create_table(table("t")).map(drop),
    |engine| engine.create_view(view("v", "select 1"), false, NOW),
    |engine| engine.create_view(view("w", "select 2"), false, NOW),
    |engine| engine.create_view(view("v", "select 3"), true, NOW),
    |engine| engine.checkpoint().map(drop),
    |engine| engine.rename_table(("d", "w"), ("d", "x"), true, NOW),
    |engine| engine.drop_views(&[("d".into(), "v".into())], NOW),
    |engine| engine.create_table(table("v")).map(drop),
    |engine| engine.create_view(view("y", "select 4"), true, NOW),
    |engine| engine.checkpoint().map(drop),
    |engine| engine.drop_views(&[("d".into(), "x".into()), ("d".into(), "y".into())], NOW),
    |engine| engine.create_view(view("z", "select 5"), false, NOW),
    |engine| engine.drop_database("d", true, NOW).map(drop),
];

#[test]
fn views_share_the_names_of_tables() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("opens");
    STEPS[..4].iter().for_each(|step| step(&engine).expect("done"));
    let exists =
        |result: Result<()>| assert!(matches!(result, Err(EngineError::TableExists(_))), "{result:?}");
    exists(engine.create_view(view("v", "select 9"), false, NOW));
    exists(engine.create_view(view("t", "select 9"), true, NOW));
    exists(engine.create_table(table("v")).map(drop));
    exists(engine.rename_table(("d", "t"), ("d", "v"), true, NOW));
    exists(engine.rename_table(("d", "v"), ("d", "t"), true, NOW));
    let missing = |result: Result<()>| {
        assert!(matches!(result, Err(EngineError::NoSuchTable(..))), "{result:?}");
    };
    missing(engine.drop_table("d", "v", NOW));
    missing(engine.drop_views(&[("d".into(), "t".into())], NOW));
    missing(engine.truncate_table("d", "v", true, NOW));
    assert_eq!(engine.drop_database("d", true, NOW).expect("dropped"), 3);
    assert!(!engine.catalog().has_views());
}

/// After each step: as it was acknowledged, from the log and from a checkpoint.
#[test]
fn definitions_are_recovered() {
    for done in 1..=STEPS.len() {
        let disk = SimDisk::new();
        let engine = Engine::open(options(&disk)).expect("opens");
        STEPS[..done].iter().for_each(|step| step(&engine).expect("done"));
        let there = contents(&engine);
        drop(engine);
        for again in 0..2 {
            let report = check(options(&disk.kill())).expect("can be looked at");
            assert_eq!(report.findings, Vec::<String>::new(), "after {done} steps, {again}");
            let engine = Engine::open(options(&disk)).expect("opens");
            assert_eq!(contents(&engine), there, "after {done} steps, {again}");
            engine.checkpoint().expect("written");
        }
    }
}

/// Power loss at any sync leaves the state before the statement or after it.
#[test]
fn power_loss_leaves_whole_definitions() {
    let whole = SimDisk::new();
    let engine = Engine::open(options(&whole)).expect("opens");
    STEPS.iter().for_each(|step| step(&engine).expect("done"));
    drop(engine);
    for cut in 1..=whole.syncs() {
        let disk = SimDisk::new();
        disk.cut_at_sync(cut);
        let mut states = vec![Vec::new()];
        if let Ok(engine) = Engine::open(options(&disk)) {
            for step in STEPS {
                let before = states.last().cloned().unwrap_or_default();
                if step(&engine).is_err() {
                    break;
                }
                states.push(contents(&engine));
                if before == *states.last().expect("pushed") {
                    states.pop();
                }
            }
        }
        for fate in [0, 1, 2 * cut, 2 * cut + 1] {
            let after = disk.crash(fate);
            let engine = Engine::open(options(&after)).expect("opens");
            let there = contents(&engine);
            let acknowledged = states.last().expect("at least the empty one");
            let next = next_state(acknowledged);
            assert!(
                there == *acknowledged || next.contains(&there),
                "cut {cut}, disk {fate}: {there:?} after {acknowledged:?}"
            );
        }
    }
}

/// What the step that follows a state makes of it.
fn next_state(state: &[String]) -> Vec<Vec<String>> {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("opens");
    let mut all = vec![contents(&engine)];
    for step in STEPS {
        step(&engine).expect("done");
        all.push(contents(&engine));
    }
    let pairs = all.windows(2);
    pairs.filter(|pair| pair[0] == state).map(|pair| pair[1].clone()).collect()
}

/// A transaction that uses a view keeps it from being dropped or replaced till it ends.
#[test]
fn transactions_hold_views() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("opens");
    STEPS[..4].iter().for_each(|step| step(&engine).expect("done"));
    let handle = engine.catalog().view("d", "v").expect("there").clone();
    let mut txn = engine.begin(TxnOptions::default());
    txn.hold_view(&handle).expect("held");
    let short = Duration::from_millis(50);
    for refused in [
        engine.drop_views(&[("d".into(), "v".into())], short),
        engine.create_view(view("v", "select 9"), true, short),
        engine.drop_database("d", true, short).map(drop),
    ] {
        assert!(matches!(refused, Err(EngineError::LockWaitTimeout)), "{refused:?}");
    }
    engine.drop_views(&[("d".into(), "w".into())], short).expect("another one");
    drop(txn);
    engine.drop_views(&[("d".into(), "v".into())], short).expect("nobody holds it");
    let mut txn = engine.begin(TxnOptions::default());
    assert!(matches!(txn.hold_view(&handle), Err(EngineError::StaleDefinition(..))));
}
