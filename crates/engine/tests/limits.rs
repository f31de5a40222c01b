//! What is too long for an index or a row: refused the same way wherever it comes from, and nothing else is.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{Field, Schema};
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::*;
use common::{options, table};

const WAIT: Duration = Duration::from_secs(5);
/// As many characters as MySQL's 3,072 bytes of a key are.
const LONGEST: u32 = 768;

/// `d.t (id BIGINT, note VARCHAR(768), bytes VARBINARY(2000))`, without an index.
fn engine(disk: &SimDisk, note: Collation) -> Arc<Engine> {
    engine_of(disk, note, LONGEST)
}

fn engine_of(disk: &SimDisk, note: Collation, len: u32) -> Arc<Engine> {
    let engine = Engine::open(options(disk)).expect("opens");
    engine.create_database("d", Collation::DEFAULT).expect("created");
    let columns = vec![
        ColumnDef::new("id", SqlType::BIGINT),
        ColumnDef::new("note", SqlType::VarChar { len, collation: note }),
        ColumnDef::new("bytes", SqlType::VarBinary { len: 2000 }),
    ];
    engine.create_table(TableDef::new("d", "t", columns, Vec::new())).expect("created");
    engine
}

fn collation(name: &str) -> Collation {
    Collation::by_name(name).expect("a collation")
}

fn insert(engine: &Arc<Engine>, id: i64, note: &str, bytes: &[u8]) -> Result<()> {
    let mut txn = engine.begin(TxnOptions::default());
    txn.insert(&table(engine), &[Datum::Int(id), Datum::str(note), Datum::Bytes(bytes.into())])?;
    txn.commit()?.wait()
}

/// The ids along an index.
fn ids(engine: &Arc<Engine>, index: &str) -> Vec<i64> {
    let (t, txn) = (table(engine), engine.begin(TxnOptions::default()));
    let index = t.indexes().iter().find(|of| of.def.name == index).expect("made").clone();
    let mut ids = Vec::new();
    let each = &mut |_, row: RowRef<'_>| {
        if let Datum::Int(id) = row.get(0) {
            ids.push(id);
        }
        ControlFlow::Continue(())
    };
    let mut scratch = ReadScratch::default();
    txn.index_scan(&t, &index, &KeyRange::all(), Direction::Ascending, &mut scratch, each).expect("read");
    ids
}

/// Whether each index has exactly the entries of the rows, and the trees that a restart makes are the same.
fn is_sound(disk: &SimDisk, engine: &Arc<Engine>) {
    let findings = engine.begin(TxnOptions::default()).check_table(&table(engine)).expect("read");
    assert_eq!(findings, [""; 0]);
    let report = check(options(&disk.kill())).expect("it opens");
    assert!(report.is_clean(), "{:?}", report.findings);
    let names = table(engine).def.indexes.iter().map(|index| index.name.clone()).collect::<Vec<_>>();
    let again = Engine::open(options(&disk.kill())).expect("it opens");
    for name in names {
        assert_eq!(ids(&again, &name), ids(engine, &name), "{name}");
    }
}

/// Keys of what MySQL takes: Chinese, which has six bytes for a character, and zeros, which have two.
#[test]
fn ordinary_values_fit_whatever_their_keys_are() {
    for name in ["utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_unicode_ci", "utf8mb4_bin"] {
        let disk = SimDisk::new();
        let engine = engine(&disk, collation(name));
        let note = |n: i64| format!("{}{n}", "中".repeat(LONGEST as usize - 8));
        for id in 0..20 {
            insert(&engine, id, &note(id), &[0; 1990]).expect("a row");
            if id == 9 {
                assert_eq!(engine.freeze_all().expect("frozen"), 0);
            }
        }
        engine.create_index("d", "t", IndexDef::secondary("by_note", &[1]), WAIT).expect("made");
        engine.create_index("d", "t", IndexDef::secondary("by_bytes", &[2]), WAIT).expect("made");
        for id in 20..40 {
            insert(&engine, id, &note(id), &[0; 1990]).expect("a row");
        }
        assert_eq!(ids(&engine, "by_bytes"), (0..40).collect::<Vec<_>>());
        is_sound(&disk, &engine);
    }
}

/// A primary key that is added becomes a part of the keys of other indexes, at once and after a restart alike; so does one that
/// is dropped.
#[test]
fn other_indexes_follow_the_primary_key() {
    let disk = SimDisk::new();
    let engine = engine(&disk, Collation::DEFAULT);
    engine.create_index("d", "t", IndexDef::secondary("by_bytes", &[2]), WAIT).expect("made");
    engine.create_index("d", "t", IndexDef::secondary("by_note", &[1]), WAIT).expect("made");
    for id in [2_000_000_000, 7, 5, 3] {
        insert(&engine, id, "note", &[0; 1594]).expect("a row");
    }
    assert_eq!(engine.freeze_all().expect("frozen"), 0);
    insert(&engine, 1, "note", &[0; 1594]).expect("a row");
    let mut inserted = vec![2_000_000_000, 7, 5, 3, 1];
    assert_eq!(ids(&engine, "by_bytes"), inserted);
    // With and without others going on while they are built.
    for is_ahead in [false, true] {
        let mut def = (*table(&engine).def).clone();
        def.indexes.insert(0, IndexDef::primary(&[0]));
        let alter = || engine.alter("d", "t", &[], None, WAIT).expect("held");
        let ahead = if is_ahead { alter().build_ahead(&engine, &def).expect("built") } else { None };
        inserted.push(if is_ahead { 4 } else { 6 });
        insert(&engine, inserted[inserted.len() - 1], "note", &[0; 1594]).expect("a row");
        let rest = AlterRest::default();
        alter().change_in_place(&engine, &def, NewForeignKeys::default(), rest, ahead).expect("made");
        let ascending = ids(&engine, "PRIMARY");
        assert!(ascending.is_sorted());
        assert_eq!(ids(&engine, "by_bytes"), ascending);
        // There is no room for the primary key in this one: it has 3,072 bytes as declared.
        assert_eq!(ids(&engine, "by_note"), inserted);
        is_sound(&disk, &engine);
        engine.drop_index("d", "t", "PRIMARY", WAIT).expect("dropped");
        assert_eq!(ids(&engine, "by_bytes"), inserted);
        is_sound(&disk, &engine);
    }
}

/// Each of these characters has eighteen weights on each level, and ucs2 has 1,536 of them in a key.
#[test]
fn a_key_that_is_too_long_is_refused_everywhere() {
    let disk = SimDisk::new();
    let engine = engine_of(&disk, collation("utf8mb4_0900_as_cs"), 2 * LONGEST);
    let long = "\u{fdfa}".repeat(2 * LONGEST as usize);
    let is_too_long = |outcome: Result<()>| {
        let error = outcome.expect_err("a key is too long");
        assert!(matches!(error, EngineError::KeyTooLong { .. }), "{error}");
    };
    let index = || IndexDef::secondary("by_note", &[1]);
    insert(&engine, 1, &long, b"").expect("without an index");
    for is_frozen in [false, true] {
        if is_frozen {
            assert_eq!(engine.freeze_all().expect("frozen"), 0);
        }
        is_too_long(engine.create_index("d", "t", index(), WAIT));
        let mut def = (*table(&engine).def).clone();
        def.indexes.push(index());
        let alteration = engine.alter("d", "t", &[], None, WAIT).expect("held");
        is_too_long(alteration.build_ahead(&engine, &def).map(drop));
    }
    // One that comes while others go on, too.
    let mut txn = engine.begin(TxnOptions::default());
    let row = find_first(&mut txn, &table(&engine));
    txn.update(&table(&engine), row, &[(1, Datum::str("short"))]).expect("changed");
    txn.commit().expect("logged").wait().expect("durable");
    for is_frozen in [false, true] {
        let mut def = (*table(&engine).def).clone();
        def.indexes.push(index());
        let alter = || engine.alter("d", "t", &[], None, WAIT).expect("held");
        let ahead = alter().build_ahead(&engine, &def).expect("built");
        insert(&engine, 2, &long, b"").expect("without an index");
        if is_frozen {
            engine.freeze_all().expect("frozen");
        }
        let (foreign, rest) = (NewForeignKeys::default(), AlterRest::default());
        is_too_long(alter().change_in_place(&engine, &def, foreign, rest, ahead));
        let mut txn = engine.begin(TxnOptions::default());
        let t = table(&engine);
        let mut late = Vec::new();
        txn.table_rows(&t, ReadMode::Snapshot, &mut |id, row| {
            late.extend(matches!(row.get(0), Datum::Int(2)).then_some(id));
            ControlFlow::Continue(())
        })
        .expect("read");
        assert!(txn.delete(&t, late[0]).expect("locked"));
        txn.commit().expect("logged").wait().expect("durable");
        engine.collect_all_garbage();
    }
    engine.create_index("d", "t", index(), WAIT).expect("they are short now");
    is_too_long(insert(&engine, 3, &long, b""));
    let mut txn = engine.begin(TxnOptions::default());
    let row = find_first(&mut txn, &table(&engine));
    is_too_long(txn.update(&table(&engine), row, &[(1, Datum::str(&long))]).map(drop));
    is_too_long(load(&mut txn, &table(&engine), &[&long]));
    drop(txn);
    is_sound(&disk, &engine);
}

fn find_first(txn: &mut Txn, table: &Arc<TableHandle>) -> avocet_base::RowId {
    let mut first = None;
    txn.table_rows(table, ReadMode::Snapshot, &mut |id, _| {
        first.get_or_insert(id);
        ControlFlow::Continue(())
    })
    .expect("read");
    first.expect("there is one")
}

/// Loads rows with these notes.
fn load(txn: &mut Txn, table: &Arc<TableHandle>, notes: &[&str]) -> Result<()> {
    let fields = table.def.columns.iter().map(|c| Field::new(&c.name, c.ty.arrow_type(), false));
    let columns: Vec<ArrayRef> = table
        .def
        .columns
        .iter()
        .map(|column| match column.name.as_str() {
            "id" => Arc::new((100..100 + notes.len() as i64).collect::<Int64Array>()) as ArrayRef,
            "note" => Arc::new(StringViewArray::from(notes.to_vec())),
            _ => arrow::array::new_empty_array(&column.ty.arrow_type()),
        })
        .map(|array| match array.len() {
            0 => Arc::new(arrow::array::BinaryViewArray::from(vec![&b"x"[..]; notes.len()])) as ArrayRef,
            _ => array,
        })
        .collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns);
    let mark = txn.mark();
    let mut bulk = txn.bulk_insert(table)?;
    let outcome =
        bulk.push(txn, &batch.expect("of the table's types")).and_then(|()| bulk.finish(txn).map(drop));
    if outcome.is_err() {
        txn.rollback_statement(mark);
    }
    outcome
}

/// A row that could not be inserted is not loaded, either: nobody could change it.
#[test]
fn a_row_that_is_too_long_is_not_loaded() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("opens");
    engine.create_database("d", Collation::DEFAULT).expect("created");
    let text = SqlType::Text { size: LobSize::Long, collation: Collation::UTF8MB4_BIN };
    let columns = vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("note", text)];
    engine.create_table(TableDef::new("d", "t", columns, vec![IndexDef::primary(&[0])])).expect("created");
    let t = table(&engine);
    let long = "x".repeat((64 << 20) + 1);
    let mut txn = engine.begin(TxnOptions::default());
    let inserted = txn.insert(&t, &[Datum::Int(1), Datum::str(&long)]).expect_err("too long");
    assert!(matches!(inserted, EngineError::RowTooLarge { .. }), "{inserted}");
    let loaded = load(&mut txn, &t, &["short", &long]).expect_err("too long");
    assert!(matches!(loaded, EngineError::RowTooLarge { .. }), "{loaded}");
    // Rows that are long together are not.
    let half = &long[..40 << 20];
    load(&mut txn, &t, &[half, half]).expect("each of them could be inserted");
    txn.commit().expect("logged").wait().expect("durable");
    assert_eq!(ids(&engine, "PRIMARY"), [100, 101]);
}

/// A transaction that one record of the log cannot hold is refused where it becomes so, and not when it commits.
#[test]
fn a_transaction_that_is_too_long_for_the_log_is_refused_by_its_statement() {
    const LIMIT: usize = 256 << 10;
    let disk = SimDisk::new();
    let limited = || EngineOptions { max_redo_bytes: LIMIT, log_segment_bytes: 1 << 20, ..options(&disk) };
    let engine = Engine::open(limited()).expect("opens");
    common::create(&engine);
    let t = table(&engine);
    let note = "x".repeat(200);
    let mut txn = engine.begin(TxnOptions::default());
    let mut rows = 0;
    let refused = loop {
        let mark = txn.mark();
        match txn.insert(&t, &[Datum::Int(rows), Datum::str(&note)]) {
            Ok(_) => rows += 1,
            Err(error) => {
                txn.rollback_statement(mark);
                break error;
            }
        }
        assert!(rows < 10_000, "nobody refuses it");
    };
    assert!(
        matches!(refused, EngineError::RecordTooLarge { len, limit: LIMIT } if len < 2 * LIMIT),
        "{refused}"
    );
    // What was there before the statement can be committed.
    txn.commit().expect("logged").wait().expect("durable");
    assert_eq!(common::rows(&engine) as i64, rows);
    drop(engine);
    let engine = Engine::open(limited()).expect("recovers");
    assert_eq!(common::rows(&engine) as i64, rows);
}
