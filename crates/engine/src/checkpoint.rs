//! Checkpoints: a commit-consistent state of everything, written while transactions go on.
//!
//! ```text
//!  checkpoints/<seq>   the manifest: catalog, log position, and for each table its segments:
//!                        cold → block id, deletes                 ┌───────────────────────────┐
//!                        hot  → for each page ───────────────────▶│ pages/<seq>-<n>: images   │
//!                                                                 └───────────────────────────┘
//! ```
//!
//! A checkpoint is taken at a snapshot. It writes the images of pages (and delete vectors) that changed since
//! they were last written, and a manifest that names the images in force, old and new. Old objects whose
//! images are mostly out of force are emptied by writing what is left of them again.
//!
//! Invariants:
//! 1. An image holds exactly the rows that the checkpoint's snapshot sees. A page that has anything newer stays dirty.
//! 2. The manifest is written last and atomically; objects are deleted and the log is cut only after it is durable.
//! 3. No record from the checkpoint's log position on names a block that the checkpoint lets go of.
//! 4. No name is used twice in an engine's life: a manifest whose writing failed may be there all the same, and come into
//!    force after power loss, so what it names stays until a newer one is in force.
//! 5. The manifest says how many rows each segment has, counted where they are in memory: whoever loads it counts again.
//! 6. The catalog is captured together with the snapshot, under the DDL latch, so it is the catalog of that moment.
//! 7. A segment that a checkpoint may still come to is frozen only if the log has none of its rows from after the checkpoint's
//!    snapshot: replay could not put them into a block. A row that has versions keeps its page hot; one that came and went since
//!    has none ([`Underway`]).
//! 8. Who is told of changes has them up to the checkpoint's log position: it goes on from there with the checkpoint's catalog.

pub(crate) mod manifest;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use arc_swap::ArcSwap;
use avocet_base::checksum::crc32c;
use avocet_base::codec::Put;
use avocet_base::{Lsn, SegmentNo, TableId};
use avocet_storage::cold::encode_deletes;
use avocet_storage::hot::{HotPage, RowBuf, SlotRead};
use avocet_storage::relation::{ColdSegment, HotSegment, SegmentState};
use avocet_storage::{Snapshot, StorageErrorKind};
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;

use crate::blocks::Blocks;
use crate::capture::Capture;
use crate::catalog::Catalog;
use crate::claim::Claim;
use crate::commit::Pipeline;
use crate::error::{EngineError, Result};
use crate::health::Health;
use crate::origins::Origins;
use crate::pace::Pacer;
use crate::snapshots::Snapshots;
use crate::table::TableHandle;
use crate::underway::Underway;
use manifest::{ImageRef, Manifest, SegmentEntry, SegmentPlace, TableEntry};

/// Bytes of page images per object, about.
const OBJECT_BYTES: usize = 8 << 20;
/// An object is emptied when less than this share of its bytes is in force.
const SPARSE_BELOW: f64 = 0.5;

/// What the checkpoints so far left behind.
#[derive(Default)]
pub(crate) struct CheckpointState {
    /// The manifest in force.
    pub current: Manifest,
    /// The sequence number of the last checkpoint that was begun.
    last: u64,
    /// Manifests that are there, or may be, and go once that of a checkpoint begun after them is in force.
    others: Vec<u64>,
    /// Bytes of each object of images that is there or may be.
    pub objects: HashMap<u64, u64>,
    /// A checkpoint failed after it had taken pages for written.
    pub write_all: bool,
}

/// Identifies an image: page number, or `DELETES` for a segment's delete vector.
type ImageKey = (TableId, SegmentNo, u16);
pub(crate) const DELETES: u16 = u16::MAX;

/// Writes checkpoints.
pub(crate) struct Checkpointer<'e> {
    pub state: &'e Mutex<CheckpointState>,
    /// Where recovery would begin, as the state has it, for those who must not wait for a checkpoint.
    pub redo_from: &'e AtomicU64,
    pub catalog: &'e ArcSwap<Catalog>,
    pub ddl: &'e Mutex<()>,
    pub underway: &'e Underway,
    pub snapshots: &'e Arc<Snapshots>,
    pub pipeline: &'e Pipeline,
    pub blocks: &'e Blocks,
    pub origins: &'e Origins,
    pub health: &'e Health,
    pub claim: &'e Claim,
    pub capture: &'e Capture,
}

impl Checkpointer<'_> {
    /// Makes recovery start here. Returns the log position that it would start from.
    pub fn checkpoint(&self, pacer: Pacer<'_>) -> Result<Lsn> {
        self.health.check()?;
        let mut state = self.state.lock();
        let retired = self.blocks.take_retired();
        // Then the records that put others in their place are visible, and so before the checkpoint's snapshot.
        let outcome = match self.pipeline.log().flush() {
            Ok(()) => self.write_checkpoint(&mut state, pacer),
            Err(e) => Err(e.into()),
        };
        match outcome {
            Ok(lsn) => {
                self.blocks.delete_retired(retired);
                self.pipeline.log().truncate_before(lsn)?;
                Ok(lsn)
            }
            Err(e) => {
                state.write_all = true;
                retired.iter().for_each(|block| self.blocks.retire(block));
                Err(e)
            }
        }
    }

    fn write_checkpoint(&self, state: &mut CheckpointState, pacer: Pacer<'_>) -> Result<Lsn> {
        let (guard, redo_from, catalog, _underway) = {
            let _ddl = self.ddl.lock();
            let (guard, lsn) = self.snapshots.take_with_lsn();
            let underway = self.underway.begin(guard.ts());
            (guard, lsn, self.catalog.load_full(), underway)
        };
        // What is visible may be only written so far; a checkpoint must not be ahead of the durable log.
        if self.pipeline.log().durable_lsn() < redo_from {
            self.pipeline.log().flush()?;
        }
        let mut manifest = Manifest {
            sequence: state.begin(),
            timestamp: guard.ts(),
            redo_from,
            next_id: catalog.next_id(),
            next_block: self.blocks.next_id(),
            catalog: catalog.as_changes(),
            tables: Vec::new(),
            origins: self.origins.at(guard.ts()),
        };
        let mut writer = ImageWriter::new(self.blocks, state, pacer);
        let tables = catalog
            .tables()
            .map(|table| writer.table(table, &Snapshot::at(guard.ts())))
            .collect::<Result<_>>();
        manifest.tables = match tables.and_then(|tables| writer.flush().map(|()| tables)) {
            Ok(tables) => tables,
            Err(e) => {
                writer.discard();
                return Err(e);
            }
        };
        if let Err(e) = self.capture.wait_for(redo_from) {
            writer.discard();
            return Err(e);
        }
        let (store, key) = (&self.blocks.store, manifest::key(manifest.sequence));
        // Another's checkpoint must not come after ours, nor may we delete what it needs.
        if let Err(e) = self.claim.check_owner(&**store) {
            writer.discard();
            if matches!(e, EngineError::NotADataDirectory(_)) {
                self.health.stop(&e);
            }
            return Err(e);
        }
        let put = store.put(&key, &manifest.encode());
        let is_not_there = || store.list(&key).is_ok_and(|found| found.is_empty());
        match &put {
            // The disk needs the space. After other errors an object store may have it a little later.
            Err(e) if e.kind() == StorageErrorKind::NoSpace && is_not_there() => writer.discard(),
            _ => state.objects.extend(writer.written),
        }
        put?;
        self.forget_old(state, manifest)?;
        Ok(redo_from)
    }

    /// The new manifest is in force: objects that only the old one names are deleted.
    fn forget_old(&self, state: &mut CheckpointState, manifest: Manifest) -> Result<()> {
        state.current = manifest;
        self.redo_from.store(state.current.redo_from.0, Relaxed);
        state.write_all = false;
        let in_use: HashSet<u64> = state.current.images().map(|(_, image)| image.object).collect();
        let out_of_use: Vec<u64> = state.objects.keys().copied().filter(|o| !in_use.contains(o)).collect();
        for object in out_of_use {
            self.blocks.store.delete(&manifest::pages_key(object))?;
            state.objects.remove(&object);
        }
        while let Some(&other) = state.others.last() {
            self.blocks.store.delete(&manifest::key(other))?;
            state.others.pop();
        }
        Ok(())
    }
}

/// Writes images to objects as they come.
struct ImageWriter<'e> {
    blocks: &'e Blocks,
    pacer: Pacer<'e>,
    /// Images in force so far that need not be written again.
    known: HashMap<ImageKey, ImageRef>,
    buffer: Vec<u8>,
    object: u64,
    written: HashMap<u64, u64>,
    row: RowBuf,
}

impl<'e> ImageWriter<'e> {
    fn new(blocks: &'e Blocks, state: &CheckpointState, pacer: Pacer<'e>) -> Self {
        let known = if state.write_all { HashMap::new() } else { state.reusable_images() };
        Self {
            blocks,
            pacer,
            known,
            buffer: Vec::new(),
            object: state.last << 20,
            written: HashMap::new(),
            row: RowBuf::default(),
        }
    }

    fn table(&mut self, table: &Arc<TableHandle>, snapshot: &Snapshot<'_>) -> Result<TableEntry> {
        let mut segments = Vec::new();
        for (number, state) in table.relation.used_segments() {
            let (rows, place) = match &*state {
                SegmentState::Empty => continue,
                SegmentState::Hot(hot) => self.hot(table, number, hot, snapshot)?,
                SegmentState::Cold(cold) if cold.is_visible(snapshot) => {
                    let (deleted, deletes) = self.deletes(table, number, cold, snapshot)?;
                    let rows = cold.block.meta().rows() as u64 - deleted;
                    (rows as u32, SegmentPlace::Cold { block: cold.block.id(), deletes })
                }
                // Loaded after the snapshot: the log has it.
                SegmentState::Cold(_) => continue,
            };
            segments.push(SegmentEntry { number, rows: Some(rows), place });
        }
        Ok(TableEntry {
            table: table.id(),
            next_segment: table.relation.segments(),
            auto_increment: table.next_auto_increment(),
            rows_before: Some(table.relation.rows_before()),
            segments,
        })
    }

    fn hot(
        &mut self,
        table: &TableHandle,
        number: SegmentNo,
        hot: &HotSegment,
        snapshot: &Snapshot<'_>,
    ) -> Result<(u32, SegmentPlace)> {
        let (mut rows, mut pages) = (0, Vec::new());
        for (n, page) in hot.pages() {
            let n = n as u16;
            // What is counted is the page: an image that has other rows than that is noticed when it is loaded.
            let unchanged = {
                let body = page.body.read();
                (!body.dirty).then(|| body.live_count())
            };
            if let (Some(&image), Some(live)) = (self.known.get(&(table.id(), number, n)), unchanged) {
                rows += live as u32;
                pages.push((n, image));
            } else if let Some((written, image)) = self.page(table, page, snapshot)? {
                rows += u32::from(written);
                pages.push((n, image));
            }
        }
        Ok((rows, SegmentPlace::Hot { pages }))
    }

    /// Writes a page's rows as the snapshot sees them, and says how many these are; `None` if it sees none.
    fn page(
        &mut self,
        table: &TableHandle,
        page: &HotPage,
        snapshot: &Snapshot<'_>,
    ) -> Result<Option<(u16, ImageRef)>> {
        let layout = &table.layout;
        let start = self.buffer.len();
        let mut rows = 0u16;
        self.buffer.put_u16(0);
        let mut body = page.body.write();
        let mut all_seen = true;
        for slot in 0..body.slot_count(layout) {
            if let Some(head) = body.chain(slot) {
                all_seen &= snapshot.sees(&head.txn);
            }
            let row = match body.read(layout, slot, snapshot, &mut self.row) {
                SlotRead::Absent => continue,
                SlotRead::Rebuilt => &self.row,
                SlotRead::InPlace => {
                    self.row.image.clear();
                    body.in_place(layout, slot).to_image(&mut self.row.image);
                    &self.row
                }
            };
            self.buffer.put_u16(slot as u16);
            self.buffer.put_bytes(&row.image);
            rows += 1;
        }
        body.dirty = !all_seen;
        drop(body);
        if rows == 0 {
            self.buffer.truncate(start);
            return Ok(None);
        }
        self.buffer[start..start + 2].copy_from_slice(&rows.to_le_bytes());
        self.image(start).map(|image| Some((rows, image)))
    }

    /// Writes what the snapshot sees deleted of a block, if that has changed. Returns the number of these rows, too.
    fn deletes(
        &mut self,
        table: &TableHandle,
        number: SegmentNo,
        cold: &ColdSegment,
        snapshot: &Snapshot<'_>,
    ) -> Result<(u64, Option<ImageRef>)> {
        let mut deletes = cold.deletes.body.write();
        if !deletes.dirty
            && let Some(&known) = self.known.get(&(table.id(), number, DELETES))
        {
            return Ok((deletes.all_settled().len(), Some(known)));
        }
        let deleted = deletes.deleted_for(snapshot);
        // With chains left, later commits may add to what this image has.
        deletes.dirty = deletes.has_versions();
        drop(deletes);
        if deleted.is_empty() {
            return Ok((0, None));
        }
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&encode_deletes(&deleted));
        Ok((deleted.len(), Some(self.image(start)?)))
    }

    /// Ends the image that began at `start` of the buffer.
    fn image(&mut self, start: usize) -> Result<ImageRef> {
        let bytes = &self.buffer[start..];
        let image = ImageRef {
            object: self.object,
            offset: start as u32,
            len: bytes.len() as u32,
            crc: crc32c(bytes),
        };
        if self.buffer.len() >= OBJECT_BYTES {
            self.flush()?;
        }
        Ok(image)
    }

    fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let pacer = &mut self.pacer;
        self.blocks.store.put_in_steps(&manifest::pages_key(self.object), &self.buffer, &mut |step| {
            pacer.charge(step);
            pacer.pause();
        })?;
        self.written.insert(self.object, self.buffer.len() as u64);
        self.object += 1;
        self.buffer.clear();
        Ok(())
    }

    /// Gives back the space of what was written, which no manifest names.
    fn discard(self) {
        let begun = [self.object];
        for &object in self.written.keys().chain(&begun) {
            // An orphan that stays is removed at the next start.
            let _ = self.blocks.store.delete(&manifest::pages_key(object));
        }
    }
}

impl CheckpointState {
    /// The images in force, but for those in objects that are mostly out of force.
    fn reusable_images(&self) -> HashMap<ImageKey, ImageRef> {
        let mut in_force: HashMap<u64, u64> = HashMap::new();
        for (_, image) in self.current.images() {
            *in_force.entry(image.object).or_default() += u64::from(image.len);
        }
        let sparse = |object: &u64| {
            let all = self.objects.get(object).copied().unwrap_or(0);
            (in_force[object] as f64) < SPARSE_BELOW * all as f64
        };
        self.current.images().filter(|(_, image)| !sparse(&image.object)).collect()
    }

    /// After recovery read a manifest: how large its objects are.
    pub fn of(current: Manifest, objects: HashMap<u64, u64>) -> Self {
        Self { last: current.sequence, others: Vec::new(), current, objects, write_all: false }
    }

    /// The sequence number of a new checkpoint.
    fn begin(&mut self) -> u64 {
        if self.last > 0 {
            self.others.push(self.last);
        }
        self.last += 1;
        self.last
    }
}

/// An image's bytes, checked against its reference.
pub(crate) fn image_bytes<'o>(object: &'o [u8], image: &ImageRef) -> Result<&'o [u8]> {
    let what = || format!("image at byte {} of {}", image.offset, manifest::pages_key(image.object));
    let bytes = object
        .get(image.offset as usize..)
        .and_then(|rest| rest.get(..image.len as usize))
        .ok_or_else(|| EngineError::corrupt(what(), "the object is too short"))?;
    if crc32c(bytes) != image.crc {
        return Err(EngineError::corrupt(what(), "checksum mismatch"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
