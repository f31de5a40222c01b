//! Full disks, failing disks and damaged files: a clear error or none, and nothing acknowledged is lost.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use avocet_base::env::Disk;
use avocet_base::env::sim::{DiskError, DiskOp, SimDisk};
use avocet_engine::*;
use avocet_types::Datum;
use common::{create, insert, options, table};

/// Ids of all rows, by the primary key.
fn ids(engine: &Arc<Engine>) -> Vec<i64> {
    let t = table(engine);
    let txn = engine.begin(TxnOptions::default());
    let primary = t.indexes()[0].clone();
    let mut ids = Vec::new();
    let mut scratch = ReadScratch::default();
    txn.index_scan(&t, &primary, &KeyRange::all(), Direction::Ascending, &mut scratch, &mut |_, row| {
        let Datum::Int(id) = row.get(0) else { panic!("an integer") };
        ids.push(id);
        std::ops::ControlFlow::Continue(())
    })
    .expect("readable");
    ids
}

fn commit_row(engine: &Arc<Engine>, id: i64) -> Result<()> {
    let mut txn = engine.begin(TxnOptions::default());
    insert(&mut txn, &table(engine), id)?;
    txn.commit()?.wait()
}

/// A directory with rows that are cold, rows in page images, and rows in the log only.
fn filled() -> SimDisk {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("open");
    create(&engine);
    (0..50).for_each(|id| commit_row(&engine, id).expect("committed"));
    engine.freeze_all().expect("frozen");
    (50..80).for_each(|id| commit_row(&engine, id).expect("committed"));
    engine.checkpoint().expect("checkpoint");
    (80..100).for_each(|id| commit_row(&engine, id).expect("committed"));
    drop(engine);
    disk
}

fn files(disk: &SimDisk, dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for name in disk.list(dir).expect("listed") {
        let path = dir.join(name);
        match disk.contents(&path) {
            Ok(_) => all.push(path),
            Err(_) => all.extend(files(disk, &path)),
        }
    }
    all
}

#[test]
fn a_full_disk_loses_nothing_and_work_goes_on_when_there_is_room() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("open");
    create(&engine);
    disk.set_capacity(Some(disk.used() + 4096));
    let mut acknowledged = Vec::new();
    let mut failed = None;
    for id in 0..2000 {
        match commit_row(&engine, id) {
            Ok(()) => acknowledged.push(id),
            Err(e) => {
                failed = Some(e);
                break;
            }
        }
    }
    assert!(failed.is_some(), "the disk is full");
    drop(engine);
    disk.set_capacity(None);
    let engine = Engine::open(options(&disk)).expect("there is room again");
    let there = ids(&engine);
    assert!(there == acknowledged || there[..there.len() - 1] == acknowledged, "{there:?} {acknowledged:?}");
    commit_row(&engine, 5000).expect("it goes on");
}

#[test]
fn a_failed_sync_stops_the_engine() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("open");
    create(&engine);
    commit_row(&engine, 1).expect("committed");
    disk.fail(DiskOp::Sync, 1, DiskError::Io);
    let failed = commit_row(&engine, 2).expect_err("the sync failed");
    assert_eq!(failed.kind(), ErrorKind::Stopped);
    assert_eq!(commit_row(&engine, 3).map_err(|e| e.kind()), Err(ErrorKind::Stopped), "and it stays stopped");
    drop(engine);
    let engine = Engine::open(options(&disk.crash(0))).expect("recovered");
    assert_eq!(ids(&engine), [1]);
}

#[test]
fn every_damaged_file_is_found_or_harmless() {
    let disk = filled();
    let want: Vec<i64> = (0..100).collect();
    for path in files(&disk, Path::new("/data")) {
        let len = disk.contents(&path).expect("there").len();
        let name = path.display().to_string();
        // Every part of small files, some of large ones.
        for at in (0..len).step_by((len / 64).max(1)) {
            let damaged = disk.crash(1);
            damaged.tamper(&path, |bytes| bytes[at] ^= 0x10).expect("there");
            judge(&damaged, &want, &format!("{name}, byte {at}"));
        }
        let cut = disk.crash(1);
        cut.tamper(&path, |bytes| bytes.truncate(bytes.len() / 2)).expect("there");
        judge(&cut, &want, &format!("{name}, cut"));
    }
}

/// With a damaged file, opening fails by name, or all acknowledged rows are there. Only at the log's end, where
/// damage can not be told from a write that was torn, may rows be missing: the last ones.
fn judge(disk: &SimDisk, want: &[i64], what: &str) {
    let report = check(options(disk));
    let clean = report.as_ref().is_ok_and(CheckReport::is_clean);
    match Engine::open(options(disk)) {
        Err(e) => assert!(!clean, "{what}: {e}, but the check found nothing"),
        Ok(engine) if clean => {
            let there = ids(&engine);
            let log = what.contains("/log/");
            assert!(there == want || log && want.starts_with(&there), "{what}: {there:?}");
        }
        // The check found damage in something that is read only when it is needed.
        Ok(_) => {}
    }
}
