//! Applying a primary's log on another engine, while readers look: no snapshot has a part of what is published together, and rows,
//! indexes and position are in force together or not at all, also after power loss.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use avocet_base::env::sim::SimDisk;
use avocet_base::{Lsn, RowId};
use avocet_engine::*;
use avocet_types::{Collation, ColumnDef, Datum, IndexDef, IndexKind, SqlType, TableDef};

const ACCOUNTS: i64 = 300;
const EACH: i64 = 1_000;
const SOURCE: u32 = 7;

fn open(disk: &SimDisk) -> Arc<Engine> {
    let options = EngineOptions {
        freeze: FreezePolicy::Never,
        rows_per_segment: RowsPerSegment::new(64),
        ..common::options(disk)
    };
    Engine::open(options).expect("opens")
}

/// `bank.accounts (id PRIMARY KEY, balance, note)`, with an index of balances and a unique one of notes.
fn create(engine: &Engine) {
    engine.create_database("bank", Collation::DEFAULT).expect("created");
    let note = SqlType::VarChar { len: 200, collation: Collation::UTF8MB4_BIN };
    let columns = [("id", SqlType::BIGINT), ("balance", SqlType::BIGINT), ("note", note)];
    let columns = columns.map(|(name, ty)| ColumnDef::new(name, ty)).to_vec();
    let indexes = vec![
        IndexDef::primary(&[0]),
        IndexDef::secondary("balance", &[1]),
        IndexDef::new("note", IndexKind::Unique, &[2]),
    ];
    engine.create_table(TableDef::new("bank", "accounts", columns, indexes)).expect("created");
}

fn table(engine: &Engine) -> Arc<TableHandle> {
    engine.catalog().table("bank", "accounts").expect("created").clone()
}

fn note(id: i64, stamp: u64) -> String {
    format!("{id}.{stamp}{}", "x".repeat((stamp.wrapping_mul(37) % 90) as usize))
}

type Contents = Vec<(i64, i64, String)>;

/// What a new snapshot has, which all indexes must agree about.
fn contents(engine: &Arc<Engine>) -> Contents {
    let (t, txn) = (table(engine), engine.begin(TxnOptions::default()));
    let mut scratch = ReadScratch::default();
    let mut by_index: Vec<Contents> = Vec::new();
    for index in t.indexes() {
        let mut rows = Contents::new();
        txn.index_scan(&t, index, &KeyRange::all(), Direction::Ascending, &mut scratch, &mut |_, row| {
            let int = |column| match row.get(column) {
                Datum::Int(value) => value,
                other => panic!("{other:?}"),
            };
            let Datum::Str(note) = row.get(2) else { panic!("a note is text") };
            rows.push((int(0), int(1), note.to_string()));
            ControlFlow::Continue(())
        })
        .expect("read");
        rows.sort_unstable();
        by_index.push(rows);
    }
    assert!(by_index.iter().all(|rows| *rows == by_index[0]), "indexes differ");
    by_index.swap_remove(0)
}

/// A primary's rows, and where they are.
struct Bank {
    engine: Arc<Engine>,
    rows: Vec<(i64, RowId, i64)>,
    next: i64,
    random: u64,
    stamp: u64,
}

impl Bank {
    fn new(engine: Arc<Engine>) -> Self {
        let (t, mut txn) = (table(&engine), engine.begin(TxnOptions::default()));
        let mut bank = Self { rows: Vec::new(), next: ACCOUNTS, random: 1, stamp: 0, engine: engine.clone() };
        for id in 0..ACCOUNTS {
            let row = txn.insert(&t, &[Datum::Int(id), Datum::Int(EACH), Datum::str(&note(id, 0))]);
            bank.rows.push((id, row.expect("inserted"), EACH));
        }
        txn.commit().expect("logged").wait().expect("durable");
        bank
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % bound
    }

    /// One transaction that leaves the sum of all balances: transfers, and accounts that go and hand theirs on to new ones.
    fn step(&mut self) {
        let (t, mut txn) = (table(&self.engine), self.engine.begin(TxnOptions::default()));
        self.stamp += 1;
        for _ in 0..1 + self.below(4) {
            let (from, to) = (self.below(self.rows.len()), self.below(self.rows.len()));
            if from == to {
                continue;
            }
            let amount = self.below(50) as i64;
            for (at, change) in [(from, -amount), (to, amount)] {
                let (id, row, balance) = self.rows[at];
                let text = note(id, self.stamp);
                let mut set = vec![(1, Datum::Int(balance + change))];
                if amount % 3 == 0 {
                    set.push((2, Datum::str(&text)));
                }
                let now = txn.update(&t, row, &set).expect("updated").expect("it is there");
                self.rows[at] = (id, now, balance + change);
            }
        }
        if self.below(3) == 0 {
            let at = self.below(self.rows.len());
            let (id, row, balance) = self.rows.swap_remove(at);
            assert!(txn.delete(&t, row).expect("deleted"));
            let heir = self.next;
            self.next += 1;
            // The note's unique key passes on, too.
            let text = note(id, u64::MAX - self.stamp);
            let row = txn.insert(&t, &[Datum::Int(heir), Datum::Int(balance), Datum::str(&text)]);
            self.rows.push((heir, row.expect("inserted"), balance));
        }
        txn.commit().expect("logged").wait().expect("durable");
    }
}

fn position(lsn: Lsn) -> [u8; 8] {
    lsn.0.to_be_bytes()
}

fn applied(engine: &Engine) -> Option<Lsn> {
    let origin = engine.applied(SOURCE)?;
    Some(Lsn(u64::from_be_bytes(origin.position.try_into().expect("eight bytes"))))
}

/// Applies up to so many records, and publishes after each `boundary` of them.
fn follow(
    replica: &Arc<Engine>,
    follower: &mut LogFollower,
    records: usize,
    boundary: usize,
) -> Result<usize> {
    let mut applier = replica.applier(SOURCE, 3);
    let mut done = 0;
    let mut end = follower.position();
    while done < records {
        let Some(record) = follower.next_record()? else { break };
        applier.push(&record)?;
        end = record.end;
        done += 1;
        if done % boundary == 0 {
            applier.publish(&position(end), done as i64)?.wait()?;
        }
    }
    if done % boundary != 0 {
        applier.publish(&position(end), done as i64)?.wait()?;
    }
    Ok(done)
}

#[test]
fn readers_of_a_replica_see_whole_boundaries_and_the_primary_s_rows() {
    let (disk, other) = (SimDisk::new(), SimDisk::new());
    let (primary, replica) = (open(&disk), open(&other));
    create(&primary);
    create(&replica);
    let from = primary.durable_lsn();
    let mut follower = primary.follow_log(from, u64::MAX).expect("follows");
    let mut bank = Bank::new(primary.clone());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let rows = contents(&replica);
                    let sum: i64 = rows.iter().map(|(_, balance, _)| balance).sum();
                    assert!(rows.is_empty() || (rows.len() as i64, sum) == (ACCOUNTS, ACCOUNTS * EACH));
                }
            });
        }
        for round in 0..30 {
            (0..20).for_each(|_| bank.step());
            while follow(&replica, &mut follower, 7, 1 + round % 5).expect("applied") > 0 {}
            assert_eq!(contents(&replica), contents(&primary), "round {round}");
        }
        done.store(true, Ordering::SeqCst);
    });
    assert_eq!(applied(&replica), Some(follower.position()));
    replica.collect_all_garbage();
    assert_eq!(contents(&replica), contents(&primary));
    drop(replica);
    let report = check(common::options(&other)).expect("looked at");
    assert_eq!(report.findings, Vec::<String>::new());
}

#[test]
fn after_power_loss_a_replica_goes_on_where_its_rows_say() {
    let disk = SimDisk::new();
    let primary = open(&disk);
    create(&primary);
    let from = primary.durable_lsn();
    let mut bank = Bank::new(primary.clone());
    (0..150).for_each(|_| bank.step());
    let wanted = contents(&primary);
    for cut in (4..40).step_by(3) {
        let other = SimDisk::new();
        let replica = open(&other);
        create(&replica);
        other.cut_at_sync(other.syncs() + cut);
        let mut follower = primary.follow_log(from, u64::MAX).expect("follows");
        let checkpoints = cut % 2 == 0;
        while let Ok(1..) = follow(&replica, &mut follower, 10, 3) {
            if checkpoints && replica.checkpoint().is_err() {
                break;
            }
        }
        drop(replica);
        for fate in [0, 1, 2 * cut] {
            let left = other.crash(fate);
            let replica = open(&left);
            let rows = contents(&replica);
            let sum: i64 = rows.iter().map(|(_, balance, _)| balance).sum();
            assert!(rows.is_empty() || (rows.len() as i64, sum) == (ACCOUNTS, ACCOUNTS * EACH), "cut {cut}");
            let again = applied(&replica).unwrap_or(from);
            let mut follower = primary.follow_log(again, u64::MAX).expect("the log is there");
            while follow(&replica, &mut follower, 50, 10).expect("applied") > 0 {}
            assert_eq!(contents(&replica), wanted, "cut {cut}, disk {fate}, from {again}");
        }
    }
}

/// What another source sends is put in by keys, and its position with it; an error takes all back to the last boundary.
#[test]
fn transactions_of_other_sources_are_applied_by_keys() {
    let disk = SimDisk::new();
    let engine = open(&disk);
    create(&engine);
    let t = table(&engine);
    let insert = |applier: &mut Applier, id: i64| {
        let text = note(id, 1);
        let txn = applier.transaction().expect("begun");
        txn.insert(&t, &[Datum::Int(id), Datum::Int(id), Datum::str(&text)]).map(drop)
    };
    let mut applier = engine.applier(3, 2);
    insert(&mut applier, 1).expect("inserted");
    insert(&mut applier, 2).expect("inserted");
    assert_eq!(contents(&engine), [], "nothing is published");
    applier.publish(b"binlog.1:40", 1_700_000_000_000_000).expect("logged").wait().expect("durable");
    assert_eq!(contents(&engine).len(), 2);
    insert(&mut applier, 3).expect("inserted");
    assert!(matches!(insert(&mut applier, 2), Err(EngineError::DuplicateKey { .. })));
    applier.take_back();
    assert_eq!(contents(&engine).len(), 2);
    // A position alone: nothing of what came is wanted here.
    applier.publish(b"binlog.1:90", 1_700_000_000_000_009).expect("logged").wait().expect("durable");
    for checkpoint in [false, true] {
        if checkpoint {
            engine.checkpoint().expect("written");
        }
        let again = open(&disk.crash(0));
        let origin = Origin { source: 3, position: b"binlog.1:90".to_vec(), wall_us: 1_700_000_000_000_009 };
        assert_eq!((again.applied(3), again.applied(4)), (Some(origin), None));
        assert_eq!(contents(&again).len(), 2);
    }
}

#[test]
fn what_cannot_be_applied_is_refused_by_name() {
    let (disk, other) = (SimDisk::new(), SimDisk::new());
    let (primary, replica) = (open(&disk), open(&other));
    create(&replica);
    let mut follower = primary.follow_log(Lsn(0), u64::MAX).expect("follows");
    create(&primary);
    let mut applier = replica.applier(SOURCE, 1);
    let record = follower.next_record().expect("read").expect("the database was made");
    let refused = applier.push(&record).expect_err("a change of the catalog");
    assert!(matches!(refused, EngineError::CannotApply { .. }), "{refused}");
    let freezing = Engine::open(common::options(&SimDisk::new())).expect("opens");
    let mut applier = freezing.applier(SOURCE, 1);
    assert!(matches!(applier.push(&record), Err(EngineError::CannotApply { .. })), "by row ids");
}

/// Rows are looked up by their keys wherever they are: also in column blocks that the engine has made by itself meanwhile.
#[test]
fn changes_by_key_go_on_while_the_engine_freezes() {
    let disk = SimDisk::new();
    let options = || EngineOptions {
        freeze: FreezePolicy::Always,
        rows_per_segment: RowsPerSegment::new(64),
        ..common::options(&disk)
    };
    let engine = Engine::open(options()).expect("opens");
    create(&engine);
    let mut applier = engine.applier(SOURCE, 1);
    let mut scratch = ReadScratch::default();
    for round in 0..20u8 {
        let t = table(&engine);
        let txn = applier.transaction().expect("begun");
        for id in 0..50i64 {
            let mut key = Vec::new();
            let index = t.indexes()[0].clone();
            assert!(index.keys.encode_prefix(&[Datum::Int(id)], &mut key));
            let found = txn.modify_unique(&t, &index, &key, &mut scratch, &mut |_, change| {
                change.set(1, &Datum::Int(round.into()));
            });
            if found.expect("looked up").is_none() {
                let text = note(id, 1);
                txn.insert(&t, &[Datum::Int(id), Datum::Int(0), Datum::str(&text)]).expect("inserted");
            }
        }
        applier.publish(&[round], 0).expect("logged").wait().expect("durable");
        engine.freeze_all().expect("frozen");
    }
    drop((applier, engine));
    let engine = Engine::open(options()).expect("opens");
    let rows = contents(&engine);
    assert!(rows.len() == 50 && rows.iter().all(|(_, balance, _)| *balance == 19), "{rows:?}");
    assert_eq!(engine.applied(SOURCE).expect("a position").position, [19]);
}

/// Whoever applies may use what is withheld from everybody else.
#[test]
fn withheld_tables_are_changed_and_not_shown() {
    let engine = open(&SimDisk::new());
    create(&engine);
    engine.withhold("bank", "accounts", "it is being copied");
    let t = table(&engine);
    let mut applier = engine.applier(SOURCE, 1);
    let row = [Datum::Int(1), Datum::Int(1), Datum::str("x")];
    applier.transaction().expect("begun").insert(&t, &row).expect("inserted");
    applier.publish(b"1", 0).expect("logged").wait().expect("durable");
    let mut txn = engine.begin(TxnOptions::default());
    let refused = txn.use_table(&t).expect_err("withheld");
    assert!(
        matches!(&refused, EngineError::Withheld { why, .. } if why == "it is being copied"),
        "{refused}"
    );
    assert!(matches!(txn.insert(&t, &row), Err(EngineError::Withheld { .. })));
    engine.release("bank", "accounts");
    txn.use_table(&t).expect("released");
    drop(txn);
    assert_eq!(contents(&engine).len(), 1);
}
