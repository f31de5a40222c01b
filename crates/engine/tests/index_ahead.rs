//! Indexes that are built while others change the table's rows in every way: their entries are those of the rows, whatever came
//! between.

mod workload;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::{IndexDef, IndexKind};
use workload::{Change, DATABASE, Random, Run, State, Step, contents};

const WAIT: Duration = Duration::from_secs(60);
const IDS: u64 = 400;
const BUILDS: u64 = 60;
/// Ids of loaded rows.
const LOADED_FROM: i64 = 10_000;
const LOADED_UNTIL: i64 = 13_000;

/// Changes of every kind, statements that are taken back among them.
fn changes(random: &mut Random, stamps: &AtomicI64) -> Vec<Change> {
    let one = |random: &mut Random| {
        let (id, to) = (random.below(IDS) as i64, random.below(IDS) as i64);
        let stamp = stamps.fetch_add(1, Ordering::Relaxed);
        match random.below(8) {
            0 | 1 => Change::Insert("a", id, stamp),
            2..5 => Change::Update("a", id, stamp),
            5 => Change::Move("a", id, to),
            _ => Change::Delete("a", id),
        }
    };
    let mut all: Vec<Change> = (0..1 + random.below(4)).map(|_| one(random)).collect();
    if random.below(3) == 0 {
        let taken_back = (0..1 + random.below(3)).map(|_| one(random)).collect();
        all.insert(random.below(2) as usize, Change::TakenBack(taken_back));
    }
    all
}

/// Ends the others, also when an assertion fails.
struct Ends<'e>(&'e AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn entries_are_those_of_the_rows() {
    let disk = SimDisk::new();
    let mut run = Run::open(&disk, State::new()).expect("opens");
    let rows = (0..IDS as i64).step_by(2).map(|id| Change::Insert("a", id, id)).collect();
    for step in [Step::Database, Step::Create("a"), Step::Commit(rows), Step::Freeze] {
        assert!(run.step(&step).is_none(), "{step:?}");
    }
    let engine = run.engine.clone();
    let (ended, stamps, loaded) =
        (AtomicBool::new(false), AtomicI64::new(1 << 20), AtomicI64::new(LOADED_FROM));
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 1..=3 {
            let mut run = run.beside();
            let (ended, stamps, loaded, done) = (&ended, &stamps, &loaded, &done);
            scope.spawn(move || {
                let mut random = Random(seed);
                while !ended.load(Ordering::Relaxed) {
                    let step = match random.below(40) {
                        // The table is not to grow without end.
                        0 if loaded.load(Ordering::Relaxed) < LOADED_UNTIL => {
                            let first = loaded.fetch_add(100, Ordering::Relaxed);
                            Step::Load { table: "a", first, count: 90, stamp: first }
                        }
                        1 | 2 => Step::Freeze,
                        3..10 => Step::RollBack(changes(&mut random, stamps)),
                        _ => Step::Commit(changes(&mut random, stamps)),
                    };
                    assert!(run.step(&step).is_none(), "{step:?}");
                    done.fetch_add(1, Ordering::Relaxed);
                }
                assert!(done.load(Ordering::Relaxed) > run.refused, "most of it happens");
            });
        }
        let _ends = Ends(&ended);
        let mut random = Random(99);
        for build in 0..BUILDS {
            build_and_drop(&engine, &mut random, build, &done);
        }
    });
}

fn build_and_drop(engine: &Arc<Engine>, random: &mut Random, build: u64, done: &AtomicU64) {
    let alter = || engine.alter(DATABASE, "a", &[], None, WAIT).expect("held");
    let (foreign, rest) = (NewForeignKeys::default, AlterRest::default);
    let alteration = alter();
    let mut def = (*alteration.table().def).clone();
    def.indexes.push(IndexDef::new("by_note", IndexKind::Secondary, &[2]));
    def.indexes.push(IndexDef::new("by_id_and_amount", IndexKind::Unique, &[0, 1]));
    let ahead = alteration.build_ahead(engine, &def).expect("built");
    assert!(ahead.is_some(), "nobody else watches");
    // Others go on meanwhile.
    let until = done.load(Ordering::Relaxed) + random.below(5);
    while done.load(Ordering::Relaxed) < until {
        std::thread::sleep(Duration::from_micros(200));
    }
    alter().change_in_place(engine, &def, foreign(), rest(), ahead).expect("made");
    contents(engine).unwrap_or_else(|e| panic!("build {build}: {e}"));
    let alteration = alter();
    let mut def = (*alteration.table().def).clone();
    assert_eq!(def.indexes.len(), 4);
    def.indexes.truncate(2);
    alteration.change_in_place(engine, &def, foreign(), rest(), None).expect("dropped");
}
