//! Checkpoints: bytes as the body of a manifest with the right checksum, beside images and blocks that it may name.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use avocet_base::checksum::crc32c;
use avocet_base::env::Disk;
use avocet_base::env::sim::SimDisk;
use avocet_engine::{Engine, EngineOptions, ErrorKind, TxnOptions};
use avocet_types::{Collation, ColumnDef, Datum, IndexDef, SqlType, TableDef};

const MANIFESTS: &str = "/data/store/checkpoints";

fn options(disk: &SimDisk) -> EngineOptions {
    let options = EngineOptions::new("/data");
    EngineOptions { env: disk.env(), log_segment_bytes: 16 << 10, background: false, ..options }
}

fn definition() -> TableDef {
    TableDef::new("d", "t", vec![ColumnDef::new("id", SqlType::BIGINT)], vec![IndexDef::primary(&[0])])
}

/// A directory with a block, page images, a delete vector, and a manifest that names them.
fn directory() -> SimDisk {
    static DIRECTORY: OnceLock<SimDisk> = OnceLock::new();
    let made = DIRECTORY.get_or_init(|| {
        let disk = SimDisk::new();
        let engine = Engine::open(options(&disk)).expect("opens");
        engine.create_database("d", Collation::DEFAULT).expect("created");
        let table = engine.create_table(definition()).expect("created");
        let mut rows = Vec::new();
        for (from, to) in [(0, 40), (40, 60)] {
            let mut txn = engine.begin(TxnOptions::default());
            rows.extend((from..to).map(|id| txn.insert(&table, &[Datum::Int(id)]).expect("inserted")));
            txn.commit().expect("logged").wait().expect("durable");
            if to == 40 {
                engine.freeze_all().expect("frozen");
            }
        }
        let mut txn = engine.begin(TxnOptions::default());
        assert!(txn.delete(&table, rows[3]).expect("deleted"));
        txn.commit().expect("logged").wait().expect("durable");
        engine.checkpoint().expect("written");
        drop(engine);
        disk
    });
    made.kill()
}

fn manifest(disk: &SimDisk) -> PathBuf {
    let names = disk.list(Path::new(MANIFESTS)).expect("listed");
    Path::new(MANIFESTS).join(names.last().expect("there is one"))
}

/// The body of the manifest that mutations begin with.
#[allow(dead_code, reason = "the fuzzer finds its own way")]
pub fn example() -> Vec<u8> {
    let disk = directory();
    let mut bytes = disk.contents(&manifest(&disk)).expect("there");
    bytes.truncate(bytes.len() - 4);
    bytes
}

pub fn run(data: &[u8]) {
    let disk = directory();
    let sealed = [data, &crc32c(data).to_le_bytes()].concat();
    disk.tamper(&manifest(&disk), |bytes| *bytes = sealed).expect("there");
    match Engine::open(options(&disk)) {
        Ok(_) => {}
        Err(e) => assert!(matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Io | ErrorKind::Stopped), "{e}"),
    }
}
