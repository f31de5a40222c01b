//! A binary log of an engine: full disks, damage.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use avocet_base::env::SimDisk;
use avocet_engine::{Engine, EngineOptions, ErrorKind, ReadMode, TableHandle, TxnOptions};
use avocet_types::{Collation, ColumnDef, Datum, IndexDef, SqlType, TableDef};

use super::{Base, BinaryLog, BinlogOptions, verify};

const FOLDER: &str = "/data/binlog";

fn open_engine(disk: &SimDisk) -> Arc<Engine> {
    let options = EngineOptions {
        env: disk.env(),
        background: false,
        capture_changes: true,
        log_segment_bytes: 1 << 20,
        ..EngineOptions::new("/data")
    };
    Engine::open(options).expect("it opens")
}

fn open(disk: &SimDisk) -> (Arc<Engine>, BinaryLog) {
    let engine = open_engine(disk);
    let log = BinaryLog::start(&engine, options());
    (engine, log.expect("it begins"))
}

fn options() -> BinlogOptions {
    BinlogOptions {
        folder: PathBuf::from(FOLDER),
        server_id: 7,
        version: "8.4.0-avocet".into(),
        max_file_bytes: 1 << 20,
        expire_seconds: 0,
        base: Base::default(),
    }
}

fn create(engine: &Arc<Engine>) -> Arc<TableHandle> {
    engine.create_database("d", Collation::DEFAULT).expect("a new one");
    let columns =
        vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("t", SqlType::VarBinary { len: 2000 })];
    let def = TableDef::new("d", "t", columns, vec![IndexDef::primary(&[0])]);
    // Definitions that nobody has stated as SQL are not told.
    engine.create_table(def).expect("a new one")
}

fn insert(engine: &Arc<Engine>, table: &Arc<TableHandle>, id: i64) -> Result<(), ErrorKind> {
    let mut txn = engine.begin(TxnOptions::default());
    // The redo log is compressed: bytes that do not repeat.
    let mut state = id as u64;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(2000)
    .collect();
    txn.insert(table, &[Datum::Int(id), Datum::Bytes(bytes.into())]).map_err(|error| error.kind())?;
    let ticket = txn.commit().map_err(|error| error.kind())?;
    ticket.wait().map_err(|error| error.kind())
}

/// Inserts until the redo log has no room either; how many rows there are then.
fn fill(engine: &Arc<Engine>, table: &Arc<TableHandle>, from: i64) -> i64 {
    let refused =
        (from..from + 100_000).find_map(|id| insert(engine, table, id).err().map(|kind| (id, kind)));
    let (rows, kind) = refused.expect("the disk is full");
    assert_eq!(kind, ErrorKind::NoSpace);
    rows
}

fn told(log: &BinaryLog) -> u64 {
    log.log().expect("it has begun").0.state().last
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_full_disk_stops_nobody_for_good() {
    let disk = SimDisk::new();
    let (engine, log) = open(&disk);
    let table = create(&engine);
    assert_eq!(insert(&engine, &table, 0), Ok(()));
    wait_until("the first row is told", || told(&log) == 1);

    disk.set_capacity(Some(disk.used() + (96 << 10)));
    let rows = fill(&engine, &table, 1);
    // Reads go on, checkpoints fail and do not wait.
    let mut read = 0;
    let mut reader = engine.begin(TxnOptions::default());
    let counted = reader.table_rows(&table, ReadMode::Snapshot, &mut |_, _| {
        read += 1;
        ControlFlow::Continue(())
    });
    counted.expect("read");
    drop(reader);
    assert_eq!(read, rows);
    wait_until("the log stays behind", || {
        engine.checkpoint().is_err_and(|error| error.kind() == ErrorKind::NoSpace)
    });

    // With room all goes on.
    disk.set_capacity(None);
    assert_eq!(insert(&engine, &table, rows), Ok(()));
    wait_until("all is told", || told(&log) == rows as u64 + 1);
    engine.checkpoint().expect("there is room");

    // An end while it is full does not wait; what was not told is told after the next start.
    disk.set_capacity(Some(disk.used() + (96 << 10)));
    let rows = fill(&engine, &table, rows + 1);
    let _ = engine.shutdown();
    log.join();
    drop((table, engine, log));
    disk.set_capacity(None);
    let (engine, log) = open(&disk);
    wait_until("all is told", || told(&log) == rows as u64);
    engine.shutdown().expect("an end");
    log.join();
}

/// What is found in the log's files.
fn findings(disk: &SimDisk) -> Vec<String> {
    verify(&disk.env(), Path::new(FOLDER)).expect("readable").expect("a log").findings
}

#[test]
fn damage_is_found() {
    let disk = SimDisk::new();
    let (engine, log) = open(&disk);
    let table = create(&engine);
    for id in 0..700 {
        assert_eq!(insert(&engine, &table, id), Ok(()));
    }
    wait_until("all is told", || told(&log) == 700);
    drop(table);
    engine.shutdown().expect("an end");
    log.join();
    drop((engine, log));
    let verified = verify(&disk.env(), Path::new(FOLDER)).expect("readable").expect("a log");
    assert_eq!(verified.findings, [""; 0]);
    assert!(verified.files == 2 && verified.events > 2800, "{verified:?}");
    let (first, second) = (Path::new(FOLDER).join("binlog.000001"), Path::new(FOLDER).join("binlog.000002"));
    let len = disk.contents(&second).expect("a file").len();
    type Change = fn(&mut Vec<u8>);
    let changes: [(&Path, Change, &str); 6] = [
        (&first, |bytes| bytes[500_000] ^= 1, "binlog.000001: damaged at byte"),
        (&first, |bytes| bytes.truncate(700_000), "binlog.000001: damaged at byte"),
        (&first, Vec::clear, "binlog.000001: damaged at byte 0"),
        (&second, |bytes| bytes[3] = b'x', "binlog.000002: damaged at byte 0"),
        (&second, |bytes| bytes.truncate(bytes.len() - 10), "binlog.000002: damaged at byte"),
        (Path::new("/data/binlog/binlog.mark"), |bytes| bytes[2] ^= 1, "binlog.mark does not say"),
    ];
    assert!(len > 4096);
    for (path, change, words) in changes {
        let damaged = disk.kill();
        damaged.tamper(path, change).expect("a file");
        let found = findings(&damaged);
        assert!(found.iter().any(|finding| finding.contains(words)), "{words}: {found:?}");
    }
    // What a crash leaves behind the mark is no damage.
    let torn = disk.kill();
    torn.tamper(&second, |bytes| bytes.extend([7; 100])).expect("a file");
    assert_eq!(findings(&torn), [""; 0]);
}

#[test]
fn a_log_that_is_ahead_of_the_data_is_refused() {
    let disk = SimDisk::new();
    let (engine, log) = open(&disk);
    let table = create(&engine);
    for id in 0..20 {
        assert_eq!(insert(&engine, &table, id), Ok(()));
    }
    wait_until("all is told", || told(&log) == 20);
    let killed = disk.kill();
    let redo = killed.env().disk.list(Path::new("/data/log")).expect("listed");
    let redo = redo.iter().filter(|name| name.starts_with("00")).max().expect("a segment").clone();
    killed
        .tamper(&Path::new("/data/log").join(redo), |bytes| {
            let end = bytes.iter().rposition(|byte| *byte != 0).expect("records") + 1;
            bytes[end - 20..end].fill(0);
        })
        .expect("a file");
    let engine = open_engine(&killed);
    let refused = BinaryLog::start(&engine, options()).err().expect("its last transaction is not here");
    assert!(refused.contains("has transactions that the data directory does not have"), "{refused}");
    drop(engine);
    // As it was, it goes on.
    let (engine, log) = open(&disk.kill());
    assert_eq!(told(&log), 20);
    drop((engine, log));
}
