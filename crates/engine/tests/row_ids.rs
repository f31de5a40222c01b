//! Row ids are given out once: also after the row that had one is gone and the engine was opened anew, since a replica may still
//! show that row.

mod common;

use std::sync::Arc;

use avocet_base::RowId;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use common::{create, insert, options, table};

fn open(disk: &SimDisk) -> Arc<Engine> {
    let options = EngineOptions { rows_per_segment: RowsPerSegment::new(64), ..options(disk) };
    Engine::open(options).expect("opens")
}

fn add(engine: &Arc<Engine>, ids: std::ops::Range<i64>) -> Vec<RowId> {
    let (t, mut txn) = (table(engine), engine.begin(TxnOptions::default()));
    let rows = ids.map(|id| insert(&mut txn, &t, id).expect("inserted")).collect();
    txn.commit().expect("logged").wait().expect("durable");
    rows
}

fn delete(engine: &Arc<Engine>, rows: &[RowId]) {
    let (t, mut txn) = (table(engine), engine.begin(TxnOptions::default()));
    rows.iter().for_each(|&row| assert!(txn.delete(&t, row).expect("deleted")));
    txn.commit().expect("logged").wait().expect("durable");
}

#[test]
fn ids_of_rows_that_are_gone_are_not_given_out_again() {
    for checkpoint in [false, true] {
        for frozen in [false, true] {
            for count in [10, 64, 100] {
                let disk = SimDisk::new();
                let engine = open(&disk);
                create(&engine);
                let rows = add(&engine, 0..count);
                delete(&engine, &rows[rows.len() / 2..]);
                if frozen {
                    engine.freeze_all().expect("frozen");
                }
                if checkpoint {
                    engine.collect_all_garbage();
                    engine.checkpoint().expect("written");
                }
                drop(engine);
                let engine = open(&disk);
                let later = add(&engine, 1000..1100);
                let greatest = rows.iter().max().expect("there are rows");
                assert!(later.iter().all(|row| row > greatest), "{checkpoint} {frozen} {count}: {later:?}");
                // Once more, with nothing but a checkpoint to tell.
                delete(&engine, &later);
                engine.collect_all_garbage();
                engine.checkpoint().expect("written");
                drop(engine);
                let engine = open(&disk);
                let last = add(&engine, 2000..2001)[0];
                assert!(later.iter().all(|&row| row < last), "{checkpoint} {frozen} {count}: {last}");
            }
        }
    }
}
