//! Scans of hot segments: in batches that are as large as they are asked for, of the snapshot's rows alone, whatever
//! happens between one batch and the next.

mod common;

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::*;

use common::{options, table};

/// `d.t (id BIGINT PRIMARY KEY, note MEDIUMTEXT)`, with rows of so many bytes in one segment.
fn filled(rows: i64, bytes: usize) -> Arc<Engine> {
    let engine = Engine::open(options(&SimDisk::new())).expect("opens");
    engine.create_database("d", Collation::DEFAULT).expect("created");
    let note = SqlType::Text { size: LobSize::Medium, collation: Collation::UTF8MB4_BIN };
    let columns = vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("note", note)];
    engine.create_table(TableDef::new("d", "t", columns, vec![IndexDef::primary(&[0])])).expect("created");
    insert(&engine, 0..rows, bytes);
    engine.collect_all_garbage();
    engine
}

fn insert(engine: &Arc<Engine>, ids: std::ops::Range<i64>, bytes: usize) {
    let mut txn = engine.begin(TxnOptions::default());
    add(&mut txn, &table(engine), ids, bytes);
    txn.commit().expect("logged").wait().expect("durable");
}

fn add(txn: &mut Txn, table: &Arc<TableHandle>, ids: std::ops::Range<i64>, bytes: usize) {
    for id in ids {
        txn.insert(table, &[Datum::Int(id), Datum::str(&"x".repeat(bytes))]).expect("inserted");
    }
}

fn scan(txn: &Txn, table: &Arc<TableHandle>) -> TableScan {
    txn.scan(table, ScanRequest { columns: vec![0, 1], with_row_id: true, ..ScanRequest::default() })
}

/// All batches of a scan; `between` is called after each.
fn batches(scan: &TableScan, most: usize, mut between: impl FnMut(usize)) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    for morsel in 0..scan.morsels() {
        let mut morsel = scan.open(morsel).expect("readable");
        while let Some(batch) = morsel.next(scan, most).expect("readable") {
            batches.push(batch);
            between(batches.len());
        }
    }
    batches
}

fn ids(batches: &[RecordBatch]) -> Vec<i64> {
    let mut ids: Vec<i64> = batches
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
        .collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_batch_has_as_many_rows_as_are_wanted_and_not_many_bytes() {
    let engine = filled(3000, 10_000);
    let (t, txn) = (table(&engine), engine.begin(TxnOptions::default()));
    for most in [1, 7, 100, 5000] {
        let found = batches(&scan(&txn, &t), most, |_| {});
        assert_eq!(ids(&found), (0..3000).collect::<Vec<_>>());
        for batch in &found {
            let bytes = batch.column(1).as_string_view().total_bytes_len();
            assert!((1..=most).contains(&batch.num_rows()) && bytes <= 6 << 20, "{most}: {bytes} bytes");
        }
    }
}

/// Changes of others, freezing, collection, and the transaction's own rows between one batch and the next.
#[test]
fn what_happens_between_two_batches_is_not_in_the_scan() {
    for own in [false, true] {
        let engine = filled(2000, 300);
        let t = table(&engine);
        let mut txn = engine.begin(TxnOptions::default());
        txn.fix_snapshot();
        let mut changed = engine.begin(TxnOptions::default());
        let reading = scan(&txn, &t);
        let found = batches(&reading, 150, |n| match n {
            1 => {
                for ordinal in (0..1800).step_by(3) {
                    let row = RowId(ordinal);
                    match ordinal % 2 {
                        0 => assert!(changed.delete(&t, row).expect("deleted")),
                        _ => drop(changed.update(&t, row, &[(1, Datum::str("changed"))]).expect("updated")),
                    }
                }
                std::mem::replace(&mut changed, engine.begin(TxnOptions::default()))
                    .commit()
                    .expect("logged")
                    .wait()
                    .expect("durable");
            }
            2 if own => add(&mut txn, &t, 5000..5400, 300),
            3 => insert(&engine, 7000..7200, 300),
            4 => {
                engine.collect_all_garbage();
                engine.prune_versions();
                engine.freeze_all().expect("frozen");
            }
            _ => {}
        });
        assert_eq!(ids(&found), (0..2000).collect::<Vec<_>>(), "own rows: {own}");
        let notes = found.iter().flat_map(|batch| batch.column(1).as_string_view().iter().flatten());
        assert!(notes.clone().count() == 2000 && notes.into_iter().all(|note| note.len() == 300));
        let seen = if own { 2400 } else { 2000 };
        assert_eq!(
            ids(&batches(&scan(&txn, &t), 8192, |_| {})).len(),
            seen,
            "the next scan has its own rows"
        );
    }
}
