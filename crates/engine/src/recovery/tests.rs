//! What is lost is named: by recovery, which refuses, and by the check.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, UInt32Array};
use avocet_base::checksum::crc32c;
use avocet_base::codec::Reader;
use avocet_base::env::sim::SimDisk;
use avocet_base::{BlockId, RowId, SegmentNo};
use avocet_storage::cold::{ColdType, Ordinals, encode_block};
use avocet_storage::relation::{RowsPerSegment, SegmentState};
use avocet_storage::store::{BlobStore, open_store};
use avocet_types::{Collation, ColumnDef, Datum, IndexDef, SqlType, TableDef};
use hashbrown::HashSet;
use parking_lot::{Condvar, Mutex};

use super::newest_manifest;
use crate::block_rows::take_rows;
use crate::blocks::Blocks;
use crate::check::check;
use crate::checkpoint::DELETES;
use crate::checkpoint::manifest::{ImageRef, Manifest, SegmentPlace};
use crate::columns::cold_types;
use crate::engine::{Engine, EngineOptions};
use crate::table::TableHandle;
use crate::txn::TxnOptions;

fn options(disk: &SimDisk) -> EngineOptions {
    EngineOptions {
        env: disk.env(),
        rows_per_segment: RowsPerSegment::new(64),
        background: false,
        ..EngineOptions::new("/data")
    }
}

fn table(engine: &Engine) -> Arc<TableHandle> {
    engine.catalog().table("d", "t").expect("created").clone()
}

fn insert(engine: &Arc<Engine>, ids: std::ops::Range<i64>) {
    let (table, mut txn) = (table(engine), engine.begin(TxnOptions::default()));
    for id in ids {
        txn.insert(&table, &[Datum::Int(id), Datum::str(&"x".repeat(500))]).expect("inserted");
    }
    txn.commit().expect("logged").wait().expect("durable");
}

/// Three blocks, the second of them with deletes, and a hot segment of several pages.
fn filled(disk: &SimDisk) -> Arc<Engine> {
    let engine = Engine::open(options(disk)).expect("opens");
    engine.create_database("d", Collation::DEFAULT).expect("created");
    let note = SqlType::VarChar { len: 1000, collation: Collation::UTF8MB4_BIN };
    let columns = vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("note", note)];
    let def = TableDef::new("d", "t", columns, vec![IndexDef::primary(&[0])]);
    engine.create_table(def).expect("created");
    insert(&engine, 0..192);
    assert_eq!(engine.freeze_all().expect("frozen"), 0);
    delete(&engine, 64..70);
    insert(&engine, 200..250);
    engine.collect_all_garbage();
    engine
}

fn delete(engine: &Arc<Engine>, rows: std::ops::Range<u64>) {
    let (table, mut txn) = (table(engine), engine.begin(TxnOptions::default()));
    for row in rows {
        let id = RowId::new(SegmentNo(row / 64), (row % 64) as u16);
        assert!(txn.delete(&table, id).expect("deleted"));
    }
    txn.commit().expect("logged").wait().expect("durable");
}

fn store(disk: &SimDisk) -> Arc<dyn BlobStore> {
    open_store(&disk.env(), &options(disk).objects_url()).expect("opens")
}

/// Recovery refuses the directory, and the check names the segment.
fn is_named(disk: &SimDisk, segment: usize, what: &str) {
    let refused = Engine::open(options(&disk.kill())).err().unwrap_or_else(|| panic!("{what}: it is opened"));
    let name = format!("d.t {}", SegmentNo(segment as u64));
    assert!(refused.to_string().contains(&name), "{what}: {refused}");
    let report = check(options(&disk.kill())).expect("can be looked at");
    assert!(report.findings.iter().any(|f| f.contains(&name)), "{what}: {:?}", report.findings);
}

/// Writes a block's file again, with fewer rows.
fn shorten(disk: &SimDisk, table: &TableHandle, id: BlockId) {
    let blocks = Blocks::new(store(disk), 0);
    let block = blocks.open(id).expect("is there");
    let kept = UInt32Array::from_iter_values(1..block.meta().rows() as u32);
    let columns: Vec<ArrayRef> = (0..table.def.columns.len())
        .map(|c| take_rows(&block.column(c).expect("read").decode().expect("sound"), &kept).expect("taken"))
        .collect();
    let ordinals: Vec<u16> = block.meta().ordinals.iter().skip(1).collect();
    let ordinals = Ordinals::from_sorted(&ordinals).expect("sorted");
    let mut shorter =
        encode_block(&cold_types(&table.def).expect("known"), &columns, ordinals).expect("encoded");
    shorter.seal(id);
    disk.tamper(&place_of(id), |bytes| *bytes = shorter.bytes.clone()).expect("is there");
}

fn place_of(id: BlockId) -> PathBuf {
    Path::new("/data/store/blocks").join(format!("{:016x}.blob", id.0))
}

fn rewrite(disk: &SimDisk, manifest: &Manifest) {
    let at = Path::new("/data/store/checkpoints").join(format!("{:016x}.blob", manifest.sequence));
    disk.tamper(&at, |bytes| *bytes = manifest.encode()).expect("is there");
}

/// A page image without its last row; the manifest has its new checksum.
fn drop_row(disk: &SimDisk, image: &mut ImageRef) {
    let at = Path::new("/data/store/pages").join(format!("{:016x}.blob", image.object));
    disk.tamper(&at, |bytes| {
        let end = bytes.len();
        let old = bytes[image.offset as usize..][..image.len as usize].to_vec();
        let rows = u16::from_le_bytes([old[0], old[1]]);
        let mut r = Reader::new(&old);
        r.u16("rows").expect("is there");
        for _ in 1..rows {
            r.u16("slot").expect("is there");
            r.bytes("row").expect("is there");
        }
        let mut new = old[..r.position()].to_vec();
        new[..2].copy_from_slice(&(rows - 1).to_le_bytes());
        *image = ImageRef { offset: end as u32, len: new.len() as u32, crc: crc32c(&new), ..*image };
        bytes.extend(new);
    })
    .expect("is there");
}

#[test]
fn a_checkpoint_that_lost_rows_is_named() {
    let disk = SimDisk::new();
    let engine = filled(&disk);
    let t = table(&engine);
    engine.checkpoint().expect("written");
    drop(engine);
    let read = |disk: &SimDisk| newest_manifest(&*store(disk)).expect("sound");
    let rows: Vec<_> = read(&disk).tables[0].segments.iter().map(|s| s.rows).collect();
    assert_eq!(rows, [Some(64), Some(58), Some(64), Some(50)]);
    assert!(check(options(&disk.kill())).expect("looked at").is_clean());

    for segment in 0..3 {
        let (lost, manifest) = (disk.kill(), read(&disk));
        let SegmentPlace::Cold { block, .. } = manifest.tables[0].segments[segment].place else {
            panic!("cold")
        };
        shorten(&lost, &t, block);
        is_named(&lost, segment, "a block lost a row");
    }
    let change = |what: &str, segment: usize, change: &dyn Fn(&SimDisk, &mut SegmentPlace)| {
        let (lost, mut manifest) = (disk.kill(), read(&disk));
        change(&lost, &mut manifest.tables[0].segments[segment].place);
        rewrite(&lost, &manifest);
        is_named(&lost, segment, what);
    };
    change("deletes were lost", 1, &|_, place| {
        let SegmentPlace::Cold { deletes, .. } = place else { panic!("cold") };
        assert!(deletes.take().is_some());
    });
    change("another block's deletes", 2, &|disk, place| {
        let other =
            read(disk).images().find(|((_, _, page), _)| *page == DELETES).expect("there are deletes").1;
        let SegmentPlace::Cold { deletes, .. } = place else { panic!("cold") };
        *deletes = Some(other);
    });
    change("a row of a page was lost", 3, &|disk, place| {
        let SegmentPlace::Hot { pages } = place else { panic!("hot") };
        drop_row(disk, &mut pages[0].1);
    });
    change("a page was lost", 3, &|_, place| {
        let SegmentPlace::Hot { pages } = place else { panic!("hot") };
        pages.clear();
    });
    let (lost, mut manifest) = (disk.kill(), read(&disk));
    manifest.tables.clear();
    rewrite(&lost, &manifest);
    let refused = Engine::open(options(&lost)).err().expect("a table was lost");
    assert!(refused.to_string().contains("d.t"), "{refused}");
}

/// Between the record that names a block and the next checkpoint, the log holds the block to its rows.
#[test]
fn a_block_of_the_log_that_lost_rows_is_named() {
    let disk = SimDisk::new();
    let engine = filled(&disk);
    let t = table(&engine);
    drop(engine);
    let manifest = newest_manifest(&*store(&disk)).expect("sound");
    assert_eq!(manifest.sequence, 0, "all is in the log");
    let blocks: Vec<String> =
        store(&disk).list("blocks/").expect("listed").into_iter().map(|(key, _)| key).collect();
    assert_eq!(blocks.len(), 3);
    for (segment, key) in blocks.iter().enumerate() {
        let lost = disk.kill();
        let id = u64::from_str_radix(key.rsplit('/').next().expect("a name"), 16).expect("hex digits");
        shorten(&lost, &t, BlockId(id));
        is_named(&lost, segment, "a frozen block lost a row");
    }
}

/// The segments of loads that were taken back leave nothing in the log.
#[test]
fn a_row_far_behind_segments_that_were_given_up_is_recovered() {
    let disk = SimDisk::new();
    let engine = filled(&disk);
    let t = table(&engine);
    for _ in 0..(1 << 16) + 1 {
        t.relation.reserve_segment();
    }
    t.relation.close_insert_segment();
    insert(&engine, 300..301);
    let again = Engine::open(options(&disk.kill())).expect("opens");
    assert_eq!(table(&again).count_rows(), 192 - 6 + 50 + 1);
    again.checkpoint().expect("written");
}

/// A file that a copy has put in the place of another of as many rows, or that is of another table.
#[test]
fn a_block_of_another_place_is_refused() {
    let disk = SimDisk::new();
    let engine = filled(&disk);
    engine.checkpoint().expect("written");
    let blocks = blocks_of(&table(&engine));
    drop(engine);
    let refused = |disk: &SimDisk| {
        let refused = Engine::open(options(&disk.kill())).err().expect("a block is not its own").to_string();
        assert!(!check(options(&disk.kill())).expect("can be looked at").is_clean());
        refused
    };
    let lost = disk.kill();
    let mut other = Vec::new();
    lost.tamper(&place_of(blocks[2]), |bytes| other.clone_from(bytes)).expect("is there");
    lost.tamper(&place_of(blocks[0]), |bytes| bytes.clone_from(&other)).expect("is there");
    let why = refused(&lost);
    assert!(why.contains(&format!("it is {}, in the place of {}", blocks[2], blocks[0])), "{why}");
    let int: ArrayRef = Arc::new(Int64Array::from_iter_values(0..64));
    for (columns, why) in [(1, "it has 1 columns, and the table 2"), (2, "its column 1 is Int64")] {
        let lost = disk.kill();
        let (types, columns) = (vec![ColdType::Int64; columns], vec![int.clone(); columns]);
        let mut other = encode_block(&types, &columns, Ordinals::Dense(64)).expect("encoded");
        other.seal(blocks[0]);
        lost.tamper(&place_of(blocks[0]), |bytes| bytes.clone_from(&other.bytes)).expect("is there");
        let said = refused(&lost);
        assert!(said.contains(why), "{said}");
    }
}

/// The blocks of a table, by segment.
fn blocks_of(table: &TableHandle) -> Vec<BlockId> {
    let block = |state: &SegmentState| match state {
        SegmentState::Cold(cold) => Some(cold.block.id()),
        SegmentState::Hot(_) | SegmentState::Empty => None,
    };
    table.relation.used_segments().filter_map(|(_, state)| block(&state)).collect()
}

/// A store in which whoever asks for the size of an object waits until another does so, too.
struct Meeting {
    store: Arc<dyn BlobStore>,
    asking: Mutex<usize>,
    met: Condvar,
}

impl BlobStore for Meeting {
    fn put(&self, key: &str, bytes: &[u8]) -> avocet_storage::Result<()> {
        self.store.put(key, bytes)
    }

    fn get_range(&self, key: &str, range: Range<u64>) -> avocet_storage::Result<bytes::Bytes> {
        self.store.get_range(key, range)
    }

    fn get(&self, key: &str) -> avocet_storage::Result<bytes::Bytes> {
        self.store.get(key)
    }

    fn size(&self, key: &str) -> avocet_storage::Result<u64> {
        let mut asking = self.asking.lock();
        *asking += 1;
        self.met.notify_all();
        while *asking < 2 {
            let waited = self.met.wait_for(&mut asking, Duration::from_secs(20));
            assert!(!waited.timed_out(), "{key} is asked for alone");
        }
        drop(asking);
        self.store.size(key)
    }

    fn list(&self, prefix: &str) -> avocet_storage::Result<Vec<(String, u64)>> {
        self.store.list(prefix)
    }

    fn delete(&self, key: &str) -> avocet_storage::Result<()> {
        self.store.delete(key)
    }
}

/// An object store takes its time for each request: those for the blocks of a table do not wait for each other.
#[test]
fn blocks_are_opened_several_at_a_time() {
    let disk = SimDisk::new();
    let engine = filled(&disk);
    engine.checkpoint().expect("written");
    drop(engine);
    let meeting = || -> Arc<dyn BlobStore> {
        Arc::new(Meeting { store: store(&disk), asking: Mutex::new(0), met: Condvar::new() })
    };
    let manifest = newest_manifest(&*store(&disk)).expect("sound");
    let catalog = super::catalog_of(&manifest, RowsPerSegment::new(64));
    let blocks = Blocks::new(meeting(), 0);
    super::load::load(&catalog, &manifest, &blocks, &*blocks.store).expect("loaded");
    let table = catalog.table("d", "t").expect("is there");
    assert_eq!(table.count_rows(), 192 - 6 + 50);
    // As are those that only the log names.
    let ids = blocks_of(table);
    assert_eq!(ids.len(), 3);
    let blocks = Blocks::new(meeting(), 0);
    blocks.delete_orphans(&HashSet::new(), &ids.iter().copied().collect()).expect("deleted");
    assert_eq!(blocks.take_retired().len(), 3);
}
