//! A snapshot is held while few rows change very often: what is kept of old versions depends on how many rows changed, not on how
//! often, and so does the time that a change takes. The background threads do not run: committing threads see to it.
//!
//! `AVOCET_VERSIONS_CHANGES` asks for more changes, and prints what each hundred thousand took in time and memory.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use avocet_engine::*;
use avocet_types::*;
use tempfile::TempDir;

const ROWS: i64 = 1_000;
/// What waits to be merged, at most, and what is kept of one gap.
const UNMERGED: usize = 20_000;
const OF_A_GAP: usize = 2 * ROWS as usize + 1_000;

fn changes() -> i64 {
    let given = std::env::var("AVOCET_VERSIONS_CHANGES").ok().and_then(|n| n.parse().ok());
    given.unwrap_or(60_000)
}

fn options(dir: &TempDir) -> EngineOptions {
    EngineOptions {
        background: false,
        durability: Durability::Os,
        freeze: FreezePolicy::Never,
        ..EngineOptions::new(dir.path())
    }
}

/// `d.v (id BIGINT PRIMARY KEY, a BIGINT, b VARCHAR(200), c BIGINT, KEY (c))`
fn create(engine: &Arc<Engine>, rows: i64) -> Arc<TableHandle> {
    engine.create_database("d", Collation::DEFAULT).expect("created");
    let text = SqlType::VarChar { len: 200, collation: Collation::UTF8MB4_BIN };
    let columns = vec![
        ColumnDef::new("id", SqlType::BIGINT),
        ColumnDef::new("a", SqlType::BIGINT),
        ColumnDef::new("b", text),
        ColumnDef::new("c", SqlType::BIGINT),
    ];
    let indexes = vec![IndexDef::primary(&[0]), IndexDef::secondary("c", &[3])];
    engine.create_table(TableDef::new("d", "v", columns, indexes)).expect("created");
    let table = engine.catalog().table("d", "v").expect("created").clone();
    let mut txn = engine.begin(TxnOptions::default());
    for id in 0..rows {
        insert(&mut txn, &table, id);
    }
    txn.commit().expect("logged").wait().expect("written");
    engine.collect_all_garbage();
    table
}

fn insert(txn: &mut Txn, table: &Arc<TableHandle>, id: i64) {
    let row = [Datum::Int(id), Datum::Int(0), Datum::str("first"), Datum::Int(id % 10)];
    txn.insert(table, &row).expect("inserted");
}

fn modify(
    txn: &mut Txn,
    table: &Arc<TableHandle>,
    id: i64,
    change: &mut dyn FnMut(RowRef<'_>, &mut RowChange<'_>),
) {
    let primary = table.indexes()[0].clone();
    let mut key = Vec::new();
    assert!(primary.keys.encode_prefix(&[Datum::Int(id)], &mut key));
    let row = txn.modify_unique(table, &primary, &key, &mut ReadScratch::default(), change);
    assert!(row.expect("changed").is_some(), "row {id} is there");
}

/// All that a transaction sees, in a few words.
fn seen(txn: &Txn, table: &Arc<TableHandle>) -> Vec<String> {
    let primary = table.indexes()[0].clone();
    let mut rows = Vec::new();
    let mut scratch = ReadScratch::default();
    txn.index_scan(table, &primary, &KeyRange::all(), Direction::Ascending, &mut scratch, &mut |_, row| {
        rows.push((0..4).map(|column| format!("{:?} ", row.get(column))).collect());
        ControlFlow::Continue(())
    })
    .expect("read");
    rows
}

/// A snapshot that is held, and what it sees.
struct Held {
    txn: Txn,
    seen: Vec<String>,
}

impl Held {
    fn new(engine: &Arc<Engine>, table: &Arc<TableHandle>) -> Self {
        let mut txn = engine.begin(TxnOptions::default());
        txn.fix_snapshot();
        let seen = seen(&txn, table);
        Self { txn, seen }
    }

    fn check(&self, table: &Arc<TableHandle>) {
        assert_eq!(seen(&self.txn, table), self.seen, "a snapshot stays as it is");
    }
}

/// Resident memory in MiB.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
    pages.unwrap_or(0) * 4 / 1024
}

/// Changes rows while snapshots are held, of which a new one is taken now and then.
fn run(
    name: &str,
    snapshots: usize,
    prepare: impl FnOnce(&Arc<Engine>),
    mut change: impl FnMut(&mut Txn, &Arc<TableHandle>, i64),
) {
    let dir = TempDir::new().expect("a folder");
    let engine = Engine::open(options(&dir)).expect("opens");
    let table = create(&engine, ROWS);
    prepare(&engine);
    let mut held = vec![Held::new(&engine, &table)];
    let (total, bound) = (changes(), UNMERGED + snapshots * OF_A_GAP);
    let (mut began, mut most) = (Instant::now(), 0);
    for n in 0..total {
        let mut txn = engine.begin(TxnOptions::default());
        change(&mut txn, &table, n);
        let ticket = txn.commit().expect("logged");
        if n % 500 == 0 {
            ticket.wait().expect("written");
            most = most.max(engine.version_backlog());
        }
        if held.len() < snapshots && n % (total / snapshots as i64) == total / snapshots as i64 - 1 {
            held.push(Held::new(&engine, &table));
        }
        if (n + 1) % 100_000 == 0 {
            let took = began.elapsed();
            println!(
                "{name}: {} versions, {} MiB, {took:?} for the last 100,000",
                engine.version_backlog(),
                resident()
            );
            began = Instant::now();
        }
    }
    assert!(most <= bound, "{name}: {most} versions are kept at most; {bound} are expected");
    held.iter().for_each(|held| held.check(&table));
    engine.wait_until_visible();
    let newest = seen(&engine.begin(TxnOptions::default()), &table);
    engine.prune_versions();
    held.iter().for_each(|held| held.check(&table));
    // The one in the middle first: what it kept apart becomes one.
    while !held.is_empty() {
        held.remove(held.len() / 2);
        engine.prune_versions();
        let kept = engine.version_backlog();
        let expected = held.len() * OF_A_GAP;
        assert!(held.is_empty() || kept <= expected, "{name}: {kept} versions for {} snapshots", held.len());
        held.iter().for_each(|held| held.check(&table));
    }
    engine.collect_all_garbage();
    assert_eq!((engine.version_backlog(), engine.version_bytes()), (0, 0), "{name}");
    assert_eq!(seen(&engine.begin(TxnOptions::default()), &table), newest);
    let rows = newest.len() as u64;
    let entries: Vec<u64> = table.indexes().iter().map(|index| index.entries()).collect();
    assert_eq!(entries, [rows, rows], "{name}: no entry outlives its versions");
    assert_eq!(engine.freeze_all().expect("frozen"), 0, "{name}: nothing holds a page back");
}

#[test]
fn one_column_is_changed() {
    for snapshots in [1, 5] {
        run(
            "updates",
            snapshots,
            |_| (),
            |txn, table, n| {
                modify(txn, table, n % ROWS, &mut |_, to| to.set(1, &Datum::Int(n)));
            },
        );
    }
}

#[test]
fn now_this_column_is_changed_and_now_that() {
    run(
        "columns",
        3,
        |_| (),
        |txn, table, n| {
            let text = n.to_string();
            modify(txn, table, n * 7 % ROWS, &mut |_, to| match n % 3 {
                0 => to.set(1, &Datum::Int(n)),
                1 => to.set(2, &Datum::str(&text)),
                _ => {}
            });
            // So that it has changed something.
            modify(txn, table, (n * 7 + 1) % ROWS, &mut |_, to| to.set(2, &Datum::str(&text)));
        },
    );
}

#[test]
fn indexed_columns_are_changed_to_and_fro() {
    run(
        "keys",
        3,
        |_| (),
        |txn, table, n| {
            modify(txn, table, n % ROWS, &mut |_, to| to.set(3, &Datum::Int(n / ROWS % 4)));
        },
    );
}

/// A queue: rows come at one end and go at the other.
#[test]
fn rows_come_and_go() {
    run(
        "queue",
        3,
        |_| (),
        |txn, table, n| {
            insert(txn, table, ROWS + n);
            modify(txn, table, ROWS + n - 20 * i64::from(n >= 20), &mut |_, to| match n >= 20 {
                true => to.delete(),
                false => to.set(1, &Datum::Int(1)),
            });
        },
    );
}

/// Rows of column blocks move when they are changed; those that are only locked stay there.
#[test]
fn rows_of_blocks_are_changed_and_locked() {
    let freeze = |engine: &Arc<Engine>| assert_eq!(engine.freeze_all().expect("frozen"), 0);
    run("blocks", 2, freeze, |txn, table, n| {
        modify(txn, table, n % (ROWS / 2), &mut |_, to| to.set(1, &Datum::Int(n)));
        // Locked alone: the row stays in its block.
        modify(txn, table, ROWS / 2 + n % (ROWS / 2), &mut |_, _| ());
    });
}

/// Rows that are too large to be changed in place move: few as they are, those that came and went make room for others.
#[test]
fn large_rows_that_move_leave_no_room_taken() {
    let dir = TempDir::new().expect("a folder");
    let engine = Engine::open(EngineOptions { memory_limit: 128 << 20, ..options(&dir) }).expect("opens");
    let table = create_large(&engine);
    let held = Held::new(&engine, &table);
    (0..300).for_each(|n| change_large(&engine, &table, n, 1_000_000));
    held.check(&table);
}

/// One of two rows gets another text.
fn change_large(engine: &Arc<Engine>, table: &Arc<TableHandle>, n: i64, len: usize) {
    let text = char::from(b'a' + (n % 26) as u8).to_string().repeat(len);
    let mut txn = engine.begin(TxnOptions::default());
    modify(&mut txn, table, 1 + n % 2, &mut |_, to| to.set(2, &Datum::str(&text)));
    txn.commit().expect("logged").wait().expect("written");
    engine.watch_memory();
    assert!(engine.memory().in_use().versions >= engine.version_bytes());
}

/// `d.l (id BIGINT PRIMARY KEY, a BIGINT, b LONGTEXT, c BIGINT)`
fn create_large(engine: &Arc<Engine>) -> Arc<TableHandle> {
    engine.create_database("d", Collation::DEFAULT).expect("created");
    let text = SqlType::Text { size: LobSize::Long, collation: Collation::UTF8MB4_BIN };
    let columns = vec![
        ColumnDef::new("id", SqlType::BIGINT),
        ColumnDef::new("a", SqlType::BIGINT),
        ColumnDef::new("b", text),
        ColumnDef::new("c", SqlType::BIGINT),
    ];
    engine.create_table(TableDef::new("d", "l", columns, vec![IndexDef::primary(&[0])])).expect("created");
    let table = engine.catalog().table("d", "l").expect("created").clone();
    let mut txn = engine.begin(TxnOptions::default());
    (0..10).for_each(|id| insert(&mut txn, &table, id));
    txn.commit().expect("logged").wait().expect("written");
    engine.collect_all_garbage();
    table
}
