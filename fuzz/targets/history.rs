//! A small engine's whole log, record by record, and engines with another one.
//!
//! Definitions, rows, updates, deletes, blocks, segments, foreign keys and what they cascade to, accounts, calls.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use avocet_base::Lsn;
use avocet_base::env::Disk;
use avocet_base::env::sim::SimDisk;
use avocet_engine::*;
use avocet_log::{LogOptions, LogReader, LogWriter};
use avocet_types::{
    Collation, ColumnDef, Datum, ForeignKeyDef, IndexDef, ReferentialAction, RowRef, SqlType, TableDef,
};

/// Kind, tag and payload.
pub type Record = (u8, u64, Vec<u8>);

pub const LOG: &str = "/data/log";
/// One segment holds the whole history.
const SEGMENT: u64 = 16 << 10;
const TIMEOUT: Duration = Duration::from_secs(1);

/// With a procedure `d.note(id, note)` that inserts rows, and changes them if they are there.
pub fn options(disk: &SimDisk) -> EngineOptions {
    let note = Procedure::new("d", "note", note);
    let note = note.takes("id", SqlType::BIGINT).takes("note", typed::NewTable::text(200)).deterministic();
    EngineOptions {
        env: disk.env(),
        log_segment_bytes: SEGMENT,
        background: false,
        procedures: Procedures::default().with(note),
        ..EngineOptions::new("/data")
    }
}

fn note(call: &mut Call<'_>) -> Result<()> {
    let t = table(call.txn.engine(), "t")?;
    match call.txn.insert(&t, call.arguments) {
        Err(EngineError::DuplicateKey { .. }) => {}
        other => return other.map(drop),
    }
    let mut key = Vec::new();
    let index = t.indexes().first().filter(|i| i.keys.encode_prefix(&call.arguments[..1], &mut key));
    let index = index.ok_or_else(|| EngineError::NoSuchIndex("PRIMARY".into()))?;
    let change = &mut |_: RowRef<'_>, to: &mut RowChange<'_>| to.set(1, &call.arguments[1]);
    let mut scratch = ReadScratch::default();
    call.txn.modify_unique(&t, index, &key, &mut scratch, change).map(drop)
}

fn table(engine: &Engine, name: &str) -> Result<Arc<TableHandle>> {
    let table = engine.catalog().table("d", name).cloned();
    table.ok_or_else(|| EngineError::NoSuchTable("d".into(), name.into()))
}

/// `d.t (id BIGINT PRIMARY KEY, note VARCHAR(200))` and `d.child (id BIGINT PRIMARY KEY, t BIGINT REFERENCES t (id))`.
fn define(engine: &Engine) -> Result<()> {
    engine.create_database("d", Collation::DEFAULT)?;
    let note = SqlType::VarChar { len: 200, collation: Collation::UTF8MB4_BIN };
    let columns = vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("note", note)];
    engine.create_table(TableDef::new("d", "t", columns, vec![IndexDef::primary(&[0])]))?;
    let columns =
        vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("t", SqlType::BIGINT).nullable()];
    let indexes = vec![IndexDef::primary(&[0]), IndexDef::secondary("t", &[1])];
    let parent = ForeignKeyDef {
        name: "parent".into(),
        columns: vec![1],
        parent_database: "d".into(),
        parent_table: "t".into(),
        parent_columns: vec!["id".into()],
        on_delete: ReferentialAction::Cascade,
        on_update: ReferentialAction::SetNull,
    };
    let child = TableDef { foreign_keys: vec![parent], ..TableDef::new("d", "child", columns, indexes) };
    engine.create_table(child).map(drop)
}

fn live(engine: &Arc<Engine>) -> Result<()> {
    define(engine)?;
    let (t, child) = (table(engine, "t")?, table(engine, "child")?);
    for id in 0..20_i64 {
        let mut txn = engine.begin(TxnOptions::default());
        let note = "note ".repeat(id as usize);
        let row = txn.insert(&t, &[Datum::Int(id), Datum::str(&note)])?;
        txn.insert(&child, &[Datum::Int(id), Datum::Int(id)])?;
        if id % 3 == 0 {
            txn.update(&t, row, &[(1, Datum::str("changed"))])?;
        }
        if id % 5 == 0 {
            txn.delete(&t, row)?;
        }
        txn.commit()?.wait()?;
        if id == 12 {
            engine.freeze_all()?;
        }
        if id > 14 {
            // Its arguments are shorter than what they make of the row.
            let arguments = [Datum::Int(id % 18 + 100), Datum::Str("n".repeat(id as usize).into())];
            engine.call("d", "note", &arguments)?;
        }
    }
    engine.create_index("d", "t", IndexDef::secondary("note", &[1]), TIMEOUT)?;
    engine.rename_table(("d", "child"), ("d", "kid"), true, TIMEOUT)?;
    engine.put_user(UserDef { auth: b"secret".to_vec(), ..UserDef::new("someone", "%") })?;
    engine.drop_table("d", "kid", TIMEOUT)?;
    engine.truncate_table("d", "t", true, TIMEOUT)
}

/// The directory that such an engine leaves, and its log's records.
pub fn corpus() -> (SimDisk, Vec<Record>) {
    let disk = SimDisk::new();
    let engine = Engine::open(options(&disk)).expect("opens");
    live(&engine).expect("nothing fails");
    drop(engine);
    let mut reader = LogReader::open(disk.env(), Path::new(LOG), Lsn(0)).expect("readable");
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().expect("whole") {
        records.push((record.kind, record.tag, record.payload.to_vec()));
    }
    assert!(records.len() > 20 && (1..=4).all(|kind| records.iter().any(|record| record.0 == kind)));
    (disk, records)
}

fn copy(from: &SimDisk, to: &SimDisk, dir: &Path) {
    to.create_dir_all(dir).expect("made");
    for name in from.list(dir).expect("listed") {
        let path = dir.join(name);
        match from.contents(&path) {
            Ok(bytes) => to.create(&path).expect("made").write_at(&bytes, 0).expect("written"),
            Err(_) => copy(from, to, &path),
        }
    }
}

/// The corpus' directory with these kinds and payloads as its log.
pub fn directory<'r>(corpus: &SimDisk, records: impl Iterator<Item = (u8, &'r [u8])>) -> SimDisk {
    let disk = SimDisk::new();
    copy(corpus, &disk, Path::new("/data/store"));
    let marker = Path::new("/data/avocet");
    let bytes = corpus.contents(marker).expect("there");
    disk.create(marker).expect("made").write_at(&bytes, 0).expect("written");
    let mut log_options = LogOptions::new(LOG);
    log_options.segment_size = SEGMENT;
    let log = LogWriter::open(disk.env(), log_options, Lsn(0)).expect("opened");
    for (n, (kind, payload)) in records.enumerate() {
        log.append(kind, n as u64 + 1, payload).expect("appended");
    }
    log.close().expect("closed");
    disk
}
