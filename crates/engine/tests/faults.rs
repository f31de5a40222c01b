//! Full disks, failing disks and damaged files: a clear error or none, and nothing acknowledged is lost.

mod common;
mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avocet_base::env::Disk;
use avocet_base::env::sim::{DiskError, DiskOp, SimDisk};
use avocet_engine::*;
use avocet_types::Datum;
use common::{create, insert, options, table};
use workload::{Outcome, Random, Run, State, Step, contents, steps};

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
    let failed = failed.expect("the disk is full");
    assert_eq!(failed.kind(), ErrorKind::NoSpace, "{failed}");
    assert_eq!(ids(&engine), acknowledged, "what was refused is gone, the rest can be read");
    disk.set_capacity(None);
    for id in 2000..2010 {
        commit_row(&engine, id).expect("there is room again");
        acknowledged.push(id);
    }
    drop(engine);
    let engine = Engine::open(options(&disk)).expect("recovered");
    assert_eq!(ids(&engine), acknowledged);
    commit_row(&engine, 5000).expect("it goes on");
}

/// A checkpoint whose last sync fails may be there all the same: the next one, which is cut, leaves it what it needs.
#[test]
fn a_checkpoint_that_failed_at_its_end_may_be_the_newest_after_power_loss() {
    let mut ends = 0;
    for (fails, cut) in (1..9).flat_map(|fails| (1..10).map(move |cut| (fails, cut))) {
        let disk = filled();
        let engine = Engine::open(options(&disk)).expect("open");
        commit_row(&engine, 100).expect("committed");
        disk.fail(DiskOp::SyncDir, fails, DiskError::Io);
        let Err(failed) = engine.checkpoint() else { continue };
        ends += u32::from(failed.to_string().contains("store/checkpoints"));
        commit_row(&engine, 101).expect("committed");
        disk.cut_at_sync(disk.syncs() + cut);
        let _ = engine.checkpoint();
        for fate in [0, 1, 4 * cut, 4 * cut + 1, 4 * cut + 3] {
            let disk = disk.crash(fate);
            let report = check(options(&disk)).expect("it can be looked at");
            assert_eq!(report.findings, Vec::<String>::new(), "call {fails} fails, cut {cut}, disk {fate}");
            let engine = Engine::open(options(&disk)).expect("recovered");
            assert_eq!(ids(&engine), (0..102).collect::<Vec<_>>());
        }
    }
    assert!(ends > 5, "{ends} times it was the last sync");
}

#[test]
fn a_failed_sync_stops_the_engine() {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("open");
    create(&engine);
    commit_row(&engine, 1).expect("committed");
    // The next sync may be that of a spare segment, which is made in the background.
    (1..=4).for_each(|n| disk.fail(DiskOp::Sync, n, DiskError::Io));
    let failed = commit_row(&engine, 2).expect_err("the sync failed");
    assert_eq!(failed.kind(), ErrorKind::Stopped);
    assert_eq!(commit_row(&engine, 3).map_err(|e| e.kind()), Err(ErrorKind::Stopped), "and it stays stopped");
    drop(engine);
    let engine = Engine::open(options(&disk.crash(0))).expect("recovered");
    assert_eq!(ids(&engine), [1]);
}

/// The first half of a workload, a restart, the second half: so the calls of recovery are among those that fail.
fn run_under_faults(disk: &SimDisk, script: &[Step], what: &str) -> Outcome {
    let (first, second) = script.split_at(script.len() / 2);
    let mut state = State::new();
    let mut refused = 0;
    for part in [first, second] {
        // What fails once may be tried again.
        let opened = Run::open(disk, state.clone()).or_else(|_| Run::open(disk, state.clone()));
        let mut run = opened.unwrap_or_else(|e| panic!("{what}: {e}"));
        run.check(what);
        for step in part {
            if let Some(possible) = run.step(step) {
                assert!(commit_nothing(&run.engine).is_err(), "{what}: it goes on after {step:?}");
                return Outcome { possible, finished: false, refused: refused + run.refused };
            }
        }
        run.check(what);
        refused += run.refused;
        state = run.state.clone();
    }
    Outcome { possible: vec![state], finished: true, refused }
}

/// A change of the catalog, which every log that goes on takes.
fn commit_nothing(engine: &Arc<Engine>) -> Result<()> {
    engine.create_database("probe", avocet_types::Collation::DEFAULT)
}

/// What a call is and what it is on.
fn site(op: DiskOp, path: &Path) -> String {
    let name = path.file_name().map_or("", |name| name.to_str().unwrap_or(""));
    let folder = path.parent().and_then(Path::file_name).map_or("", |name| name.to_str().unwrap_or(""));
    let place = match (folder, name) {
        ("log", spare) if spare.starts_with("spare") => "spare of the log",
        ("log", _) => "log segment",
        ("blocks", _) => "block",
        ("pages", _) => "page images",
        ("checkpoints", _) => "manifest",
        ("store", owner) if owner.starts_with("owner") => "owner of the store",
        ("data", file) if path.extension().is_some() || ["avocet", "lock"].contains(&file) => "marker",
        _ => "directory",
    };
    format!("{op:?} {place}")
}

/// The sites that a workload has, and which calls they are: by the number among those of their kind.
fn sites(script: &[Step]) -> BTreeMap<String, (DiskOp, Vec<u64>)> {
    use DiskOp::{Create, Open, Read, Remove, Rename, Resize, Sync, SyncDir, Write};
    let whole = SimDisk::new();
    assert!(run_under_faults(&whole, script, "without faults").finished);
    let mut sites = BTreeMap::new();
    for op in [Create, Open, Read, Remove, Rename, Resize, Sync, SyncDir, Write] {
        for (n, path) in whole.calls(op).iter().enumerate() {
            let (_, calls) = sites.entry(site(op, path)).or_insert_with(|| (op, Vec::new()));
            calls.push(n as u64 + 1);
        }
    }
    sites
}

fn recovers(disk: &SimDisk, possible: &[State], what: &str) {
    let report = check(workload::options(&disk.kill())).expect("it can be looked at");
    assert_eq!(report.findings, Vec::<String>::new(), "{what}");
    let engine = Engine::open(workload::options(disk)).unwrap_or_else(|e| panic!("{what}: {e}"));
    let there = contents(&engine).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(possible.contains(&there), "{what}: there is\n{there:?}\nand not\n{:?}", possible[0]);
}

fn cases(default: usize) -> usize {
    std::env::var("AVOCET_FAULT_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// The seeds of the workloads that meet faults.
const WORKLOADS: [u64; 2] = [11, 12];

/// Calls of every site fail, each in a run of its own.
fn fail_at_every_site(ops: &[DiskOp], error: DiskError) {
    for seed in WORKLOADS {
        let script = steps(seed, 40, 0);
        for (site, (op, calls)) in sites(&script).into_iter().filter(|(_, (op, _))| ops.contains(op)) {
            for &call in calls.iter().step_by((calls.len() / cases(5)).max(1)) {
                let what = format!("workload {seed}, {site}, call {call}: {error:?}");
                let disk = SimDisk::new();
                disk.fail(op, call, error);
                let outcome = run_under_faults(&disk, &script, &what);
                for fate in [0, 1, call * 4 + 3] {
                    let what = format!("{what}, disk {fate}");
                    recovers(&disk.crash(fate), &outcome.possible, &what);
                }
            }
        }
    }
}

/// The table in docs/faults.md.
const SITES: [(&str, &[DiskOp]); 8] = {
    use DiskOp::{Create, Open, Read, Remove, Rename, Resize, Sync, SyncDir, Write};
    [
        ("marker", &[Create, Open, Read, Resize, Sync, Write]),
        ("owner of the store", &[Create, Open, Read, Rename, Resize, Sync, Write]),
        ("log segment", &[Open, Read, Resize, Sync, Write]),
        ("spare of the log", &[Create, Open, Rename, Resize, Sync, Write]),
        ("block", &[Create, Open, Read, Rename, Resize, Sync, Write]),
        ("page images", &[Create, Open, Read, Remove, Rename, Resize, Sync, Write]),
        ("manifest", &[Create, Open, Read, Remove, Rename, Resize, Sync, Write]),
        ("directory", &[SyncDir]),
    ]
};

#[test]
fn the_workloads_reach_every_site() {
    let reached: BTreeSet<String> =
        WORKLOADS.iter().flat_map(|&seed| sites(&steps(seed, 40, 0)).into_keys()).collect();
    let of = |(place, ops): (&str, &[DiskOp])| -> Vec<String> {
        ops.iter().map(|op| format!("{op:?} {place}")).collect()
    };
    let listed: BTreeSet<String> = SITES.into_iter().flat_map(of).collect();
    assert_eq!(reached, listed);
}

#[test]
fn a_call_that_fails_loses_nothing() {
    use DiskOp::{Create, Open, Read, Remove, Rename, Resize, Sync, SyncDir, Write};
    fail_at_every_site(&[Create, Open, Read, Remove, Rename, Resize, Sync, SyncDir, Write], DiskError::Io);
}

#[test]
fn a_disk_that_is_full_for_one_call_loses_nothing() {
    use DiskOp::{Create, Rename, Resize, Sync, Write};
    fail_at_every_site(&[Create, Rename, Resize, Write, Sync], DiskError::NoSpace);
}

#[test]
fn a_disk_that_is_full_for_a_while_refuses_and_loses_nothing() {
    let mut refused = 0;
    for seed in 0..cases(5) as u64 * 4 {
        let script = steps(seed, 60, 0);
        let disk = SimDisk::new();
        let mut random = Random(seed);
        let mut run = Run::open(&disk, State::new()).expect("opens");
        for (n, step) in script.iter().enumerate() {
            let what = format!("workload {seed}, step {n}, {step:?}");
            match random.below(8) {
                0 => disk.set_capacity(Some(disk.used() + random.below(24 << 10))),
                1 | 2 => disk.set_capacity(None),
                _ => {}
            }
            assert!(run.step(step).is_none(), "{what}: a full disk stops nothing");
            run.check(&what);
        }
        refused += run.refused;
        for fate in [0, 1, seed * 4 + 3] {
            recovers(
                &disk.crash(fate),
                std::slice::from_ref(&run.state),
                &format!("workload {seed}, disk {fate}"),
            );
        }
    }
    assert!(refused > 20, "only {refused} steps met a full disk");
}

/// Not one call of a kind succeeds any more.
#[test]
fn a_disk_that_fails_for_good_loses_nothing() {
    use DiskOp::{Create, Open, Read, Rename, Sync, SyncDir, Write};
    for op in [Create, Open, Read, Rename, Sync, SyncDir, Write] {
        for seed in 0..cases(5) as u64 {
            let what = format!("workload {seed}, no {op:?}");
            let script = steps(seed, 60, 0);
            let disk = SimDisk::new();
            let mut random = Random(seed);
            let mut run = Run::open(&disk, State::new()).expect("opens");
            let from = 6 + random.below(40) as usize;
            let mut possible = None;
            for (n, step) in script.iter().enumerate() {
                if n == from {
                    (1..5000).for_each(|call| disk.fail(op, call, DiskError::Io));
                }
                possible = run.step(step);
                if possible.is_some() {
                    break;
                }
            }
            let possible = possible.unwrap_or_else(|| vec![run.state.clone()]);
            drop(run);
            for fate in [0, 1, seed * 4 + 3] {
                recovers(&disk.crash(fate), &possible, &format!("{what}, disk {fate}"));
            }
        }
    }
}

/// Starts the engine, up to three times, and goes on with the workload each time, until the power goes. What may be there then.
fn run_until_the_power_goes(disk: &SimDisk, script: &[Step], what: &str) -> Vec<State> {
    let mut possible = vec![State::new()];
    for part in script.chunks(script.len() / 3 + 1) {
        if disk.is_cut() {
            break;
        }
        // What the next process finds is what it would find on a copy.
        let there = found(&disk.kill(), &possible, what);
        let Ok(run) = Run::open(disk, there) else { continue };
        possible = run.run(part).possible;
    }
    disk.cut();
    possible
}

/// What is there, one of what may be there.
fn found(disk: &SimDisk, possible: &[State], what: &str) -> State {
    recovers(&disk.kill(), possible, what);
    let engine = Engine::open(workload::options(disk)).unwrap_or_else(|e| panic!("{what}: {e}"));
    contents(&engine).unwrap_or_else(|e| panic!("{what}: {e}"))
}

/// Some call fails, in one process or another, and some time later the power does.
#[test]
fn a_call_that_fails_and_power_that_goes_later_lose_nothing() {
    use DiskOp::{Create, Open, Read, Remove, Rename, Resize, Sync, SyncDir, Write};
    let kinds = [Create, Open, Read, Remove, Rename, Resize, Sync, SyncDir, Write];
    for seed in 0..cases(5) as u64 * 8 {
        let script = steps(seed % 20, 45, 0);
        let whole = SimDisk::new();
        run_until_the_power_goes(&whole, &script, "without faults");
        let mut random = Random(seed);
        let op = kinds[random.below(kinds.len() as u64) as usize];
        let call = 1 + random.below(whole.count(op));
        let cut = 1 + random.below(whole.syncs());
        let error = if random.below(3) == 0 { DiskError::NoSpace } else { DiskError::Io };
        let what = format!("workload {seed}, {op:?} {call}: {error:?}, cut {cut}");
        let disk = SimDisk::new();
        disk.fail(op, call, error);
        disk.cut_at_sync(cut);
        let possible = run_until_the_power_goes(&disk, &script, &what);
        for fate in [0, 1, seed * 4 + 1, seed * 4 + 2, seed * 4 + 3] {
            recovers(&disk.crash(fate), &possible, &format!("{what}, disk {fate}"));
        }
    }
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

fn in_directory(data: &Path) -> EngineOptions {
    EngineOptions { log_segment_bytes: 1 << 20, ..EngineOptions::new(data) }
}

#[test]
fn a_directory_has_one_server_whatever_becomes_of_its_lock_file() {
    let base = tempfile::tempdir().expect("made");
    let data = base.path().join("data");
    let engine = Engine::open(in_directory(&data)).expect("opens");
    let is_refused = |data: &Path| matches!(Engine::open(in_directory(data)), Err(EngineError::InUse(_)));
    assert!(is_refused(&data));
    std::fs::remove_file(data.join("lock")).expect("removed");
    assert!(is_refused(&data), "its file is gone");
    std::fs::write(data.join("lock"), "").expect("written");
    assert!(is_refused(&data), "another file is in its place");
    let other = base.path().join("other");
    std::os::unix::fs::symlink(&data, &other).expect("linked");
    assert!(is_refused(&other), "by another name");
    let moved = base.path().join("moved");
    std::fs::rename(&data, &moved).expect("moved");
    assert!(is_refused(&moved), "moved");
    // Its contents, but for the lock.
    let contents = base.path().join("contents");
    std::fs::create_dir(&contents).expect("made");
    let move_all = |from: &Path, to: &Path| {
        for entry in std::fs::read_dir(from).expect("listed") {
            let entry = entry.expect("listed");
            if entry.file_name() != "lock" {
                std::fs::rename(entry.path(), to.join(entry.file_name())).expect("moved");
            }
        }
    };
    move_all(&moved, &contents);
    assert!(is_refused(&contents), "its contents elsewhere");
    move_all(&contents, &moved);
    drop(engine);
    drop(Engine::open(in_directory(&moved)).expect("opens again"));
}

#[test]
fn an_engine_whose_directory_is_taken_away_stops() {
    let parts = ["contents", "log", "segments", "store"];
    for replaced in [None, Some("data")].into_iter().chain(parts.map(Some)) {
        let base = tempfile::tempdir().expect("made");
        let data = base.path().join("data");
        let engine = Engine::open(in_directory(&data)).expect("opens");
        create(&engine);
        commit_row(&engine, 1).expect("committed");
        match replaced {
            Some("contents") => std::fs::rename(data.join("avocet"), base.path().join("avocet")),
            Some("segments") => std::fs::read_dir(data.join("log"))
                .expect("listed")
                .try_for_each(|entry| std::fs::remove_file(entry.expect("listed").path())),
            Some(part @ ("log" | "store")) => std::fs::rename(data.join(part), base.path().join(part)),
            _ => std::fs::rename(&data, base.path().join("moved")),
        }
        .expect("moved");
        if replaced == Some("data") {
            std::fs::create_dir(&data).expect("made");
        }
        let begin = std::time::Instant::now();
        let error = loop {
            match commit_row(&engine, begin.elapsed().as_micros() as i64 + 2) {
                Err(error) => break error,
                Ok(()) => assert!(begin.elapsed().as_secs() < 20, "it goes on"),
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        assert!(error.to_string().contains("was moved or replaced"), "{replaced:?}: {error}");
        assert!(engine.shutdown().is_err(), "{replaced:?}: it does not end well");
        drop(engine);
        // What is not whole is no new directory, either.
        if matches!(replaced, Some("log" | "segments")) {
            let error = Engine::open(in_directory(&data)).map(drop).expect_err("without its log");
            assert!(error.to_string().contains("has lost its log"), "{replaced:?}: {error}");
        }
    }
}

fn with_store(data: &Path, store: &Path) -> EngineOptions {
    EngineOptions { store_url: Some(store.display().to_string()), ..in_directory(data) }
}

/// An engine deletes what its own catalog does not name, so it must not be given what is another's.
#[test]
fn a_store_belongs_to_one_data_directory() {
    let base = tempfile::tempdir().expect("made");
    let [one, two, store, old] = ["one", "two", "store", "old"].map(|name| base.path().join(name));
    let open = |data: &Path, store: &Path| Engine::open(with_store(data, store));
    let engine = open(&one, &store).expect("opens");
    create(&engine);
    (0..40).for_each(|id| commit_row(&engine, id).expect("committed"));
    engine.freeze_all().expect("frozen");
    engine.checkpoint().expect("a checkpoint");
    let objects = || std::fs::read_dir(store.join("blocks")).map_or(0, Iterator::count);
    let blocks = objects();
    assert!(blocks > 0, "there are blocks to lose");
    let refused = |data: &Path, store: &Path, why: &str| {
        let error = open(data, store).map(drop).expect_err("refused").to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(objects(), blocks, "nothing is deleted");
    };
    refused(&two, &store, "is in use by another server");
    engine.shutdown().expect("ends");
    drop(engine);
    let blocks = objects();
    let refused = |data: &Path, store: &Path, why: &str| {
        let error = open(data, store).map(drop).expect_err("refused").to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(objects(), blocks, "nothing is deleted");
    };
    refused(&two, &store, "belongs to another data directory");
    refused(&one, &old, "is not the store of");
    // As stores were before they had owners.
    std::fs::rename(store.join("owner.blob"), base.path().join("owner")).expect("moved");
    refused(&two, &store, "is not empty");
    std::fs::write(one.join("avocet"), "Avocet data directory, format 1\n").expect("written");
    drop(open(&one, &store).expect("takes the store that it has always had"));
    refused(&two, &store, "belongs to another data directory");
    let engine = open(&one, &store).expect("opens again");
    assert_eq!(ids(&engine), (0..40).collect::<Vec<_>>());
}
