//! Each kind of definition, cut at every sync: what is recovered has the rows of before or after, counted, and so have the
//! checkpoints that come behind it, when the log no longer has the definition.

mod workload;

use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use workload::{Change, Run, State, Step, contents, options};

/// Rows in blocks, some of them deleted, and rows on pages, some of them changed: three segments and more.
fn prelude() -> Vec<Step> {
    let inserts =
        |ids: std::ops::Range<i64>| Step::Commit(ids.map(|id| Change::Insert("a", id, id)).collect());
    vec![
        Step::Database,
        Step::Create("a"),
        inserts(0..70),
        Step::Freeze,
        Step::Load { table: "a", first: 1000, count: 100, stamp: 7 },
        Step::Commit((3..20).map(|id| Change::Delete("a", id)).collect()),
        Step::Commit((1000..1010).map(|id| Change::Delete("a", id)).collect()),
        inserts(200..240),
        Step::Checkpoint,
        Step::Commit((200..210).map(|id| Change::Update("a", id, 1000 + id)).collect()),
    ]
}

/// Every kind, with changes, freezing and checkpoints behind it.
fn kinds() -> Vec<(&'static str, Vec<Step>)> {
    let one = |step: Step| vec![step];
    vec![
        ("create", one(Step::Create("b"))),
        ("drop", one(Step::Drop("a"))),
        ("truncate", one(Step::Truncate("a"))),
        ("rename", one(Step::Rename("a", "b"))),
        ("create index", one(Step::AddIndex("a"))),
        ("drop index", vec![Step::AddIndex("a"), Step::DropIndex("a")]),
        ("rebuild", one(Step::Alter("a"))),
        ("rebuild twice", vec![Step::Alter("a"), Step::Alter("a")]),
        ("reshape", one(Step::Reshape("a"))),
        ("reshape and rebuild", vec![Step::Reshape("a"), Step::Alter("a"), Step::Reshape("a")]),
        ("copy", one(Step::Copy("a", "b"))),
        ("copy, drop and rename", vec![Step::Copy("a", "b"), Step::Drop("a"), Step::Rename("b", "a")]),
    ]
}

fn behind(table: &'static str) -> Vec<Step> {
    vec![
        Step::Checkpoint,
        Step::Commit((30..60).map(|id| Change::Delete(table, id)).collect()),
        Step::Commit((300..310).map(|id| Change::Insert(table, id, id)).collect()),
        Step::Checkpoint,
        Step::Collect,
        Step::Freeze,
        Step::Checkpoint,
    ]
}

/// What is on a disk is one of these states, and stays so when it is written down again.
fn is_one_of(disk: &SimDisk, possible: &[State], what: &str) {
    for again in ["", ", checkpointed", ", frozen"] {
        let report = check(options(&disk.kill())).unwrap_or_else(|e| panic!("{what}{again}: {e}"));
        assert_eq!(report.findings, Vec::<String>::new(), "{what}{again}");
        let engine = Engine::open(options(disk)).unwrap_or_else(|e| panic!("{what}{again}: {e}"));
        let there = contents(&engine).unwrap_or_else(|e| panic!("{what}{again}: {e}"));
        assert!(possible.contains(&there), "{what}{again}");
        let named = engine.catalog();
        for table in named.tables().filter(|table| !table.is_unfinished()) {
            assert_eq!(table.row_count(), there[&table.def.name].rows.len() as u64, "{what}{again}");
        }
        if again == ", checkpointed" {
            engine.freeze_all().unwrap_or_else(|e| panic!("{what}{again}: {e}"));
        }
        engine.checkpoint().unwrap_or_else(|e| panic!("{what}{again}: {e}"));
    }
}

#[test]
fn every_definition_leaves_the_rows_that_it_should_wherever_it_is_cut() {
    for (kind, definition) in kinds() {
        let steps: Vec<Step> =
            definition.into_iter().chain(["a", "b"].into_iter().flat_map(behind)).collect();
        let first = SimDisk::new();
        let mut run = Run::open(&first, State::new()).expect("opens");
        for step in prelude() {
            assert!(run.step(&step).is_none(), "{kind}: {step:?}");
        }
        let before = run.state.clone();
        assert_eq!(before["a"].rows.len(), 70 + 100 - 17 - 10 + 40);
        drop(run);
        let whole = first.kill();
        let run = Run::open(&whole, before.clone()).expect("opens").run(&steps);
        assert!(run.finished && run.refused == 0, "{kind}");
        is_one_of(&whole, &run.possible, kind);
        for cut in 1..=whole.syncs() {
            let disk = first.kill();
            disk.cut_at_sync(cut);
            let possible = match Run::open(&disk, before.clone()) {
                Ok(run) => run.run(&steps).possible,
                Err(_) => vec![before.clone()],
            };
            for fate in [0, 2 * cut + cut % 2 * (2 * cut + 1)] {
                is_one_of(&disk.crash(fate), &possible, &format!("{kind}, cut {cut}, disk {fate}"));
            }
        }
    }
}
