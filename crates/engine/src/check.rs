//! `avocet check`: verifies every page image, block, index and log record of a data directory, and that they agree.
//!
//! First what is on disk, by checksums and by decoding all of it; then the state that recovery makes of it: the
//! trees' own invariants, that each index has exactly the entries of the rows that there are, and that children have parents.

use std::sync::Arc;

use avocet_base::RowId;
use avocet_storage::relation::SegmentState;
use avocet_storage::store::open_store;

use crate::block_rows;
use crate::blocks::Blocks;
use crate::catalog::Catalog;
use crate::checkpoint::image_bytes;
use crate::checkpoint::manifest::{SegmentEntry, pages_key};
use crate::claim::Claim;
use crate::engine::{Engine, EngineOptions};
use crate::error::{EngineError, Result};
use crate::foreign::count_orphans;
use crate::recovery;
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
        Ok(engine) => in_memory(&engine, &mut report),
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
    for (object, images) in manifest.images_by_object() {
        report.images += images.len() as u64;
        match store.get(&pages_key(object)) {
            Ok(bytes) => {
                let bad = images.iter().filter_map(|(_, image)| image_bytes(&bytes, image).err());
                bad.for_each(|e| report.find(e));
            }
            Err(e) => report.find(EngineError::from(e)),
        }
    }
    let segments = manifest.tables.iter().flat_map(|table| &table.segments);
    for (_, segment) in segments {
        if let SegmentEntry::Cold { block, .. } = segment {
            report.blocks += 1;
            if let Err(e) = blocks.open(*block).and_then(|block| Ok(block.verify()?)) {
                report.find(e);
            }
        }
    }
    Ok(())
}

fn in_memory(engine: &Arc<Engine>, report: &mut CheckReport) {
    for table in engine.catalog().tables() {
        report.tables += 1;
        report.rows += table.row_count();
        for (number, state) in table.relation.used_segments() {
            if let SegmentState::Cold(cold) = &*state
                && let Err(e) = cold.block.verify()
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
