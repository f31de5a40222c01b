//! Loading a checkpoint: the rows that its manifest names, from the objects that they are in.
//!
//! A checkpoint writes the pages that have changed, so those of one table come to lie in many objects, and those of many
//! tables in one. So the objects are gone through, not the tables: each is read once, and several at a time. Blocks are opened
//! before that, by their footers, several at a time, too.
//!
//! Invariants:
//! 1. The manifest names a page once, so whoever loads it is alone with it.
//! 2. Each segment has as many rows as it had when the checkpoint was written, or nothing is loaded.

use avocet_base::{BlockId, SegmentNo, TableId};
use avocet_storage::cold::decode_deletes;
use avocet_storage::relation::{ColdSegment, Deletes, SegmentState};
use avocet_storage::store::BlobStore;
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::blocks::Blocks;
use crate::catalog::Catalog;
use crate::checkpoint::manifest::{self, ImagePlace, Manifest, SegmentPlace, TableEntry};
use crate::checkpoint::{DELETES, image_bytes};
use crate::error::{EngineError, Result, malformed};
use crate::index_build::{in_parallel, in_parallel_requests};
use crate::table::TableHandle;

/// Loads all that the manifest names into the tables of `catalog`. Returns how large the objects are.
pub(super) fn load(
    catalog: &Catalog,
    manifest: &Manifest,
    blocks: &Blocks,
    store: &dyn BlobStore,
) -> Result<HashMap<u64, u64>> {
    let mut cold = Vec::new();
    for entry in &manifest.tables {
        open_segments(table(catalog, entry.table)?, entry, &mut cold);
    }
    in_parallel_requests(cold.len(), |n| {
        let ColdPlace { table, segment, block } = cold[n];
        let cold = ColdSegment::new(table.view(blocks.open(block)?)?, None, Deletes::default());
        table.relation.segment(segment).replace(SegmentState::Cold(cold));
        Ok(())
    })?;
    for table in catalog.tables() {
        if manifest.tables.iter().all(|entry| entry.table != table.id()) {
            return Err(EngineError::corrupt("checkpoint", format!("it has no rows of {}", table.name())));
        }
    }
    let objects: Vec<_> = manifest.images_by_object().into_iter().collect();
    let sizes = Mutex::new(HashMap::new());
    in_parallel(objects.len(), |n| {
        let (object, images) = &objects[n];
        let bytes = store.get(&manifest::pages_key(*object))?;
        sizes.lock().insert(*object, bytes.len() as u64);
        images.iter().try_for_each(|(place, image)| {
            load_image(table(catalog, place.table)?, place, image_bytes(&bytes, image)?)
        })
    })?;
    manifest.tables.iter().try_for_each(|entry| check_rows(table(catalog, entry.table)?, entry))?;
    for entry in manifest.tables.iter().filter(|entry| entry.rows_before.is_none()) {
        note_last_row(table(catalog, entry.table)?);
    }
    Ok(sizes.into_inner())
}

fn check_rows(table: &TableHandle, entry: &TableEntry) -> Result<()> {
    for segment in &entry.segments {
        let found = table.relation.segment(segment.number).state().count_rows();
        if let Some(wrong) = segment.wrong_rows(&table.name(), found) {
            return Err(wrong);
        }
    }
    Ok(())
}

/// All that a manifest of format 1 tells of the row ids that were given out: the last hot row that is there.
fn note_last_row(table: &TableHandle) {
    let mut ids = Vec::new();
    for (number, state) in table.relation.used_segments() {
        if matches!(*state, SegmentState::Hot(_)) {
            table.relation.possible_rows(number, &mut ids);
        }
    }
    ids.last().into_iter().for_each(|last| table.relation.note_rows_before(last.0 + 1));
}

fn table(catalog: &Catalog, id: TableId) -> Result<&TableHandle> {
    let unknown = || EngineError::corrupt("checkpoint", format!("it has rows of the unknown {id}"));
    catalog.table_by_id(id).map(|table| &**table).ok_or_else(unknown)
}

/// A segment whose block is still to be opened.
#[derive(Clone, Copy)]
struct ColdPlace<'t> {
    table: &'t TableHandle,
    segment: SegmentNo,
    block: BlockId,
}

/// Makes a table's segments, yet without hot rows; those with a block are added to `cold`.
fn open_segments<'t>(table: &'t TableHandle, entry: &TableEntry, cold: &mut Vec<ColdPlace<'t>>) {
    if let Some(last) = entry.next_segment.checked_sub(1) {
        table.relation.note_segment(SegmentNo(last));
    }
    table.note_auto_increment(entry.auto_increment.saturating_sub(1));
    table.relation.note_rows_before(entry.rows_before.unwrap_or_default());
    for segment in &entry.segments {
        match segment.place {
            SegmentPlace::Hot { .. } => table.relation.open_hot(segment.number),
            SegmentPlace::Cold { block, .. } => {
                cold.push(ColdPlace { table, segment: segment.number, block });
            }
        }
    }
}

fn named_twice(number: SegmentNo) -> EngineError {
    EngineError::corrupt("checkpoint", format!("it says two things of {number}"))
}

fn load_image(table: &TableHandle, place: &ImagePlace, bytes: &[u8]) -> Result<()> {
    match place.page {
        DELETES => load_deletes(table, place.segment, bytes),
        page => load_page(table, place.segment, page, bytes),
    }
}

fn load_deletes(table: &TableHandle, number: SegmentNo, bytes: &[u8]) -> Result<()> {
    let segment = table.relation.segment(number);
    let state = segment.state_owned();
    let SegmentState::Cold(cold) = &*state else { return Err(named_twice(number)) };
    let deleted = decode_deletes(bytes)?;
    let has =
        |ordinal: u32| u16::try_from(ordinal).is_ok_and(|o| cold.block.meta().ordinals.row_of(o).is_some());
    if let Some(none) = deleted.iter().find(|&ordinal| !has(ordinal)) {
        let what = format!("deletes of {} {number}", table.name());
        return Err(EngineError::corrupt(what, format!("the block has no row {none}")));
    }
    let deletes = Deletes::settled(deleted);
    segment.replace(SegmentState::Cold(ColdSegment::new(cold.block.clone(), None, deletes)));
    Ok(())
}

fn load_page(table: &TableHandle, number: SegmentNo, page: u16, bytes: &[u8]) -> Result<()> {
    const WHAT: &str = "page image";
    let mut r = avocet_base::codec::Reader::new(bytes);
    let state = table.relation.segment(number).state();
    let SegmentState::Hot(hot) = &*state else { return Err(named_twice(number)) };
    if usize::from(page) >= table.relation.pages_per_segment() {
        return Err(EngineError::corrupt(WHAT, format!("no page {page} in a segment")));
    }
    let mut body = table.relation.page_or_new(hot, page.into()).body.write();
    for _ in 0..r.u16(WHAT).map_err(malformed(WHAT))? {
        let slot = usize::from(r.u16(WHAT).map_err(malformed(WHAT))?);
        let image = r.bytes(WHAT).map_err(malformed(WHAT))?;
        table.layout.view(image).map_err(malformed(WHAT))?;
        if slot >= table.relation.slots_per_page() || body.is_live(slot) {
            return Err(EngineError::corrupt(WHAT, format!("slot {slot}")));
        }
        body.place(&table.layout, slot, image);
    }
    body.dirty = false;
    r.finish(WHAT).map_err(malformed(WHAT))
}
