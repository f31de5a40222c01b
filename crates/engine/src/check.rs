//! `avocet check`: verifies every page image, block, index and log record of a data directory, and that they agree.
//!
//! First what is on disk, by checksums, by decoding all of it, and by the number of rows that each segment had; then the state that recovery makes of it: the
//! trees' own invariants, that each index has exactly the entries of the rows that there are, and that children have parents.

use std::sync::Arc;

use avocet_base::codec::Reader;
use avocet_base::{RowId, SegmentNo, TableId, Timestamp};
use avocet_storage::cold::decode_deletes;
use avocet_storage::relation::SegmentState;
use avocet_storage::store::open_store;
use hashbrown::{HashMap, HashSet};

use crate::block_rows;
use crate::blocks::Blocks;
use crate::catalog::Catalog;
use crate::checkpoint::manifest::{ImagePlace, Manifest, SegmentPlace, pages_key};
use crate::checkpoint::{DELETES, image_bytes};
use crate::claim::Claim;
use crate::engine::{Engine, EngineOptions};
use crate::error::{EngineError, Result, malformed};
use crate::foreign::count_orphans;
use crate::recovery;
use crate::shred;
use crate::stop::Stop;
use crate::table::TableHandle;

/// What was looked at, and what is wrong with it.
#[derive(Debug, Default)]
pub struct CheckReport {
    pub tables: u64,
    pub rows: u64,
    pub blocks: u64,
    pub images: u64,
    pub index_entries: u64,
    pub log_records: u64,
    /// The newest transaction.
    pub last_commit: Timestamp,
    pub findings: Vec<String>,
    /// What is no damage, but may surprise.
    pub notes: Vec<String>,
}

impl CheckReport {
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    fn find(&mut self, finding: impl std::fmt::Display) {
        self.findings.push(finding.to_string());
    }
}

/// Checks a data directory that no server uses.
///
/// # Errors
/// Only if the directory can not be looked at at all; damage is in the report.
pub fn check(mut options: EngineOptions) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    {
        let claim = Claim::of(&options)?;
        claim.check_log()?;
        on_disk(&options, &mut report)?;
    }
    options.background = false;
    match Engine::open(options) {
        Ok(engine) => {
            report.last_commit = engine.last_commit();
            in_memory(&engine, &mut report);
        }
        Err(e) if report.is_clean() => report.find(format!("recovery: {e}")),
        // What stops recovery was found already.
        Err(_) => {}
    }
    Ok(report)
}

fn on_disk(options: &EngineOptions, report: &mut CheckReport) -> Result<()> {
    let log = avocet_log::verify(&options.env, &options.data.join("log"))?;
    report.log_records = log.records;
    log.findings.iter().for_each(|finding| report.find(format!("log: {finding:?}")));
    let store = open_store(&options.env, &options.objects_url())?;
    let blocks = Blocks::new(store.clone(), 0);
    let manifest = match recovery::newest_manifest(&*store) {
        Ok(manifest) => manifest,
        Err(e) => {
            report.find(e);
            return Ok(());
        }
    };
    let mut rows = RowsFound::default();
    for (object, images) in manifest.images_by_object() {
        report.images += images.len() as u64;
        match store.get(&pages_key(object)) {
            Ok(bytes) => {
                for (place, image) in &images {
                    match image_bytes(&bytes, image).and_then(|image| rows_of_image(place, image)) {
                        Ok(count) => rows.add(place.table, place.segment, count),
                        Err(e) => {
                            rows.unknown.insert((place.table, place.segment));
                            report.find(e);
                        }
                    }
                }
            }
            Err(e) => {
                rows.unknown.extend(images.iter().map(|(place, _)| (place.table, place.segment)));
                report.find(EngineError::from(e));
            }
        }
    }
    for (table, segment) in manifest.tables.iter().flat_map(|t| t.segments.iter().map(|s| (t.table, s))) {
        if let SegmentPlace::Cold { block, .. } = segment.place {
            report.blocks += 1;
            match blocks.open(block).and_then(|block| shred::verify(&block).map(|()| block.meta().rows())) {
                Ok(count) => rows.add(table, segment.number, count as i64),
                Err(e) => {
                    rows.unknown.insert((table, segment.number));
                    report.find(e);
                }
            }
        }
    }
    check_rows(&manifest, &rows, options, report);
    Ok(())
}

/// Rows of each segment, as the objects of a checkpoint have them.
#[derive(Default)]
struct RowsFound {
    counts: HashMap<(TableId, SegmentNo), i64>,
    /// Damage that has been found hides the rest.
    unknown: HashSet<(TableId, SegmentNo)>,
}

impl RowsFound {
    fn add(&mut self, table: TableId, segment: SegmentNo, rows: i64) {
        *self.counts.entry((table, segment)).or_default() += rows;
    }
}

/// What an image adds to the rows of its segment.
fn rows_of_image(place: &ImagePlace, image: &[u8]) -> Result<i64> {
    match place.page {
        DELETES => Ok(-(decode_deletes(image)?.len() as i64)),
        _ => Ok(Reader::new(image).u16("page image").map_err(malformed("page image"))?.into()),
    }
}

/// Whether each segment has the rows that it had when the checkpoint was written.
fn check_rows(manifest: &Manifest, rows: &RowsFound, options: &EngineOptions, report: &mut CheckReport) {
    let catalog = recovery::catalog_of(manifest, options.rows_per_segment);
    for entry in &manifest.tables {
        let name = catalog.table_by_id(entry.table).map_or_else(|| entry.table.to_string(), |t| t.name());
        for segment in &entry.segments {
            let place = (entry.table, segment.number);
            let found = rows.counts.get(&place).map_or(0, |&count| count.max(0) as u64);
            if !rows.unknown.contains(&place)
                && let Some(wrong) = segment.wrong_rows(&name, found)
            {
                report.find(wrong);
            }
        }
    }
}

fn in_memory(engine: &Arc<Engine>, report: &mut CheckReport) {
    for table in engine.catalog().tables() {
        report.tables += 1;
        report.rows += table.row_count();
        for (number, state) in table.relation.used_segments() {
            if let SegmentState::Cold(cold) = &*state
                && let Err(e) = shred::verify(&cold.block)
            {
                report.find(format!("{}.{} {number}: {e}", table.def.database, table.def.name));
            }
        }
        for index in 0..table.indexes.len() {
            check_index(table, index, report);
        }
    }
    check_foreign_keys(&engine.catalog(), report);
}

/// Rows without parents: damage where a key was enforced from its first row on.
fn check_foreign_keys(catalog: &Catalog, report: &mut CheckReport) {
    for child in catalog.tables().filter(|table| table.is_child()) {
        let links = catalog.links(child.id()).expect("a child has links");
        for link in &links.as_child {
            let (key, def) = (link.def(), &child.def);
            let name = format!("foreign key {} of {}.{}", key.name, def.database, def.name);
            match count_orphans(link) {
                Ok(0) => {}
                Ok(count) if catalog.is_enforced(child.id(), &key.name) => {
                    report.find(format!("{name}: {count} rows have no parent"));
                }
                Ok(count) => {
                    let why = "it was not enforced at all times (foreign_key_checks = 0)";
                    report.notes.push(format!("{name}: {count} rows have no parent; {why}"));
                }
                Err(e) => report.find(format!("{name}: {e}")),
            }
        }
    }
}

fn check_index(table: &TableHandle, index: usize, report: &mut CheckReport) {
    let handle = &table.indexes[index];
    let name = format!("index {} of {}.{}", handle.def.name, table.def.database, table.def.name);
    if let Err(e) = handle.tree.check() {
        report.find(format!("{name}: {e}"));
    }
    report.index_entries += handle.entries();
    let mut missing = 0u64;
    let mut rows = 0u64;
    let mut look = |entry: &[u8]| {
        rows += 1;
        missing += u64::from(!handle.tree.contains(entry));
    };
    let mut entry = Vec::new();
    for (number, state) in table.relation.used_segments() {
        match &*state {
            SegmentState::Empty => {}
            SegmentState::Hot(hot) => {
                for (n, page) in hot.pages() {
                    let body = page.body.read();
                    for slot in (0..table.relation.slots_per_page()).filter(|&slot| body.is_live(slot)) {
                        let id = RowId::new(number, table.relation.ordinal(n, slot));
                        entry.clear();
                        handle.entry(&body.in_place(&table.layout, slot), id, &mut entry);
                        look(&entry);
                    }
                }
            }
            SegmentState::Cold(cold) => {
                let visited =
                    block_rows::block_entries(table, index, number, cold, &mut |entry, _| look(entry));
                if let Err(e) = visited {
                    report.find(format!("{name}: {e}"));
                    return;
                }
            }
        }
    }
    if missing > 0 || rows != handle.entries() {
        let entries = handle.entries();
        report.find(format!("{name}: {entries} entries for {rows} rows, {missing} rows have none"));
    }
    check_unique(table, index, &name, report);
}

fn check_unique(table: &TableHandle, index: usize, name: &str, report: &mut CheckReport) {
    if table.indexes[index].def.kind.is_unique()
        && let Err(e) = crate::ddl::check_unique(table, index, &Stop::default())
    {
        report.find(format!("{name}: {e}"));
    }
}
