//! Readers, writers and rollbacks while blocks are frozen and rewritten under them: every snapshot has each row once.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_types::{Collation, Datum, IndexDef};
use common::{create, insert, options, table};

const ROWS: i64 = 200;

/// Ids along the primary key.
fn by_index(txn: &Txn, t: &Arc<TableHandle>) -> Vec<i64> {
    let primary = t.indexes()[0].clone();
    let mut ids = Vec::new();
    let mut scratch = ReadScratch::default();
    let each = &mut |_, row: avocet_types::RowRef<'_>| {
        let Datum::Int(id) = row.get(0) else { panic!("an integer") };
        ids.push(id);
        ControlFlow::Continue(())
    };
    txn.index_scan(t, &primary, &KeyRange::all(), Direction::Ascending, &mut scratch, each)
        .expect("readable");
    ids
}

/// Ids as analytics reads them.
fn by_scan(txn: &Txn, t: &Arc<TableHandle>) -> Vec<i64> {
    let scan = txn.scan(t, ScanRequest { columns: vec![0], ..ScanRequest::default() });
    let mut ids = Vec::new();
    for morsel in 0..scan.morsels() {
        let _ = scan
            .read(morsel, &mut |batch| {
                ids.extend(batch.column(0).as_primitive::<Int64Type>().values());
                ControlFlow::Continue(())
            })
            .expect("readable");
    }
    ids.sort_unstable();
    ids
}

/// Changes a few rows (cold ones move); every fourth time takes it back.
fn change_some(engine: &Arc<Engine>, t: &Arc<TableHandle>, round: u64, worker: u64) -> Result<()> {
    let mut txn = engine.begin(TxnOptions::default());
    let primary = t.indexes()[0].clone();
    let mut scratch = ReadScratch::default();
    for n in 0..8 {
        // Workers keep to their own rows, so that none waits for another.
        let id = ((round * 13 + n * 7) as i64 % (ROWS / 2)) * 2 + worker as i64;
        let mut key = Vec::new();
        assert!(primary.keys.encode_prefix(&[Datum::Int(id)], &mut key));
        let mut found = None;
        let range = KeyRange::prefix(&key);
        txn.lock_scan(
            t,
            &primary,
            &range,
            Direction::Ascending,
            RowLock::FOR_UPDATE,
            &mut scratch,
            &mut |place, _| {
                found = Some(place);
                ControlFlow::Break(())
            },
        )?;
        let place = found.expect("every row is there, whoever moved it");
        txn.update(t, place, &[(1, Datum::str(&format!("round {round}")))])?;
    }
    match round % 4 {
        0 => txn.rollback(),
        _ => txn.commit()?.wait()?,
    }
    Ok(())
}

#[test]
fn every_snapshot_has_each_row_once_while_blocks_are_rewritten() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("open");
    create(&engine);
    let t = table(&engine);
    let mut txn = engine.begin(TxnOptions::default());
    for id in 0..ROWS {
        insert(&mut txn, &t, id).expect("inserted");
    }
    txn.commit().expect("logged").wait().expect("durable");
    engine.freeze_all().expect("frozen");
    let (ended, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let want: Vec<i64> = (0..ROWS).collect();
    std::thread::scope(|threads| {
        for worker in 0..2 {
            let (engine, t, ended, rounds) = (&engine, &t, &ended, &rounds);
            threads.spawn(move || {
                let mut round = 0;
                while !ended.load(Ordering::Relaxed) {
                    round += 1;
                    change_some(engine, t, round, worker).expect("changed");
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for scans in [false, true] {
            let (engine, t, ended, want) = (&engine, &t, &ended, &want);
            threads.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    let txn = engine.begin(TxnOptions::default());
                    let ids = if scans { by_scan(&txn, t) } else { by_index(&txn, t) };
                    assert_eq!(&ids, want, "a snapshot has each row once");
                }
            });
        }
        let begin = std::time::Instant::now();
        while begin.elapsed().as_millis() < 1500 {
            engine.freeze_all().expect("frozen, rewritten");
        }
        ended.store(true, Ordering::Relaxed);
    });
    assert!(rounds.load(Ordering::Relaxed) > 20);
    drop(engine);
    let report = check(options(&disk)).expect("it can be looked at");
    assert_eq!(report.findings, Vec::<String>::new());
}

/// Entries of cold rows are counted without a look at their block. The keys of rows change all the time, so stale entries come
/// and go, and pages freeze between a scan's look at the index and its look at the row.
#[test]
fn counts_along_an_index_meet_no_stale_entry_while_pages_freeze() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("open");
    engine.create_database("d", Collation::DEFAULT).expect("created");
    let mut def = common::definition();
    def.indexes.push(IndexDef::secondary("note", &[1]));
    engine.create_table(def).expect("created");
    let t = table(&engine);
    let mut txn = engine.begin(TxnOptions::default());
    for id in 0..ROWS {
        insert(&mut txn, &t, id).expect("inserted");
    }
    txn.commit().expect("logged").wait().expect("durable");
    let (ended, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|threads| {
        for worker in 0..2 {
            let (engine, t, ended, rounds) = (&engine, &t, &ended, &rounds);
            threads.spawn(move || {
                let mut round = 0;
                while !ended.load(Ordering::Relaxed) {
                    round += 1;
                    change_some(engine, t, round, worker).expect("changed");
                    rounds.fetch_add(1, Ordering::Relaxed);
                    if round % 64 == 0 {
                        // Long enough for pages without versions, which freeze.
                        std::thread::sleep(std::time::Duration::from_millis(2));
                    }
                }
            });
        }
        for direction in [Direction::Ascending, Direction::Descending] {
            let (engine, t, ended) = (&engine, &t, &ended);
            threads.spawn(move || {
                let index = t.indexes()[1].clone();
                let mut scratch = ReadScratch::default();
                let mut count = |txn: &Txn, columns: Option<&[usize]>| {
                    let mut rows = 0;
                    let each = &mut |_, _: avocet_types::RowRef<'_>| {
                        rows += 1;
                        ControlFlow::Continue(())
                    };
                    txn.index_scan_of(t, &index, &KeyRange::all(), direction, columns, &mut scratch, each)
                        .expect("readable");
                    rows
                };
                while !ended.load(Ordering::Relaxed) {
                    let txn = engine.begin(TxnOptions::default());
                    assert_eq!(count(&txn, Some(&[])), ROWS, "each row has one entry");
                    assert_eq!(count(&txn, Some(&[0])), ROWS);
                    assert_eq!(count(&txn, None), ROWS);
                }
            });
        }
        let begin = std::time::Instant::now();
        while begin.elapsed().as_millis() < 1500 {
            engine.freeze_all().expect("frozen, rewritten");
        }
        ended.store(true, Ordering::Relaxed);
    });
    assert!(rounds.load(Ordering::Relaxed) > 20);
}

/// Two compactions and a checkpoint while the log waits for the disk: the first one's block is in no table any more, but the
/// log names it.
#[test]
fn a_checkpoint_keeps_the_blocks_that_the_log_behind_it_names() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("open");
    create(&engine);
    let t = table(&engine);
    let mut txn = engine.begin(TxnOptions::default());
    let rows: Vec<_> = (0..ROWS).map(|id| insert(&mut txn, &t, id).expect("inserted")).collect();
    txn.commit().expect("logged").wait().expect("durable");
    engine.freeze_all().expect("frozen");
    let (first, second) = rows.split_at(rows.len() / 3);
    let delete = |rows: &[avocet_base::RowId]| {
        let mut txn = engine.begin(TxnOptions::default());
        for &row in rows {
            let _ = txn.delete(&t, row).expect("deleted");
        }
        txn.commit().expect("logged").wait().expect("durable");
    };
    delete(first);
    let reader = engine.begin(TxnOptions::default());
    assert_eq!(by_scan(&reader, &t).len(), rows.len() - first.len());
    delete(&second[..first.len()]);
    disk.hold_syncs(std::path::Path::new("/data/log"));
    engine.freeze_all().expect("rewritten without the first rows; the reader sees the others");
    drop(reader);
    engine.freeze_all().expect("rewritten without these");
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            engine.checkpoint().expect("a checkpoint");
            done.send(()).expect("it is waited for");
        });
        let early = is_done.recv_timeout(std::time::Duration::from_millis(100));
        disk.release_syncs();
        assert!(early.is_err(), "it waits for the log");
        is_done.recv().expect("and then goes on");
    });
    let report = check(options(&disk.crash(1))).expect("it can be looked at");
    assert_eq!(report.findings, Vec::<String>::new());
    let recovered = Engine::open(options(&disk.crash(0))).expect("recovered");
    let left = by_scan(&recovered.begin(TxnOptions::default()), &table(&recovered));
    assert_eq!(left, (2 * first.len() as i64..ROWS).collect::<Vec<_>>());
}

/// A scan whose reader is slow: between its batches rows change, and their block is rewritten.
#[test]
fn a_morsel_that_is_read_bit_by_bit_has_what_its_snapshot_has() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("open");
    create(&engine);
    let t = table(&engine);
    let mut txn = engine.begin(TxnOptions::default());
    for id in 0..ROWS {
        insert(&mut txn, &t, id).expect("inserted");
    }
    txn.commit().expect("logged").wait().expect("durable");
    engine.freeze_all().expect("frozen");
    let before = engine.begin(TxnOptions::default());
    let scan =
        before.scan(&t, ScanRequest { columns: vec![0, 1], with_row_id: true, ..ScanRequest::default() });
    let (mut ids, mut batches) = (Vec::<i64>::new(), 0);
    for morsel in 0..scan.morsels() {
        let mut morsel = scan.open(morsel).expect("readable");
        while let Some(batch) = morsel.next(&scan, 7).expect("readable") {
            assert!(batch.num_rows() <= 7);
            ids.extend(batch.column(0).as_primitive::<Int64Type>().values());
            let texts = batch.column(1).as_string_view();
            assert!(texts.iter().flatten().all(|text| !text.starts_with("round")), "as they were before");
            batches += 1;
            change_some(&engine, &t, 4 * batches + 1, 0).expect("changed");
            if batches % 5 == 0 {
                engine.freeze_all().expect("frozen");
            }
        }
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..ROWS).collect::<Vec<_>>());
    assert!(batches >= ROWS as u64 / 7);
}
