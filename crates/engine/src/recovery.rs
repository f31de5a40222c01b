//! Opening a data directory: checkpoint + log = state.
//!
//! ```text
//!  lock the directory and its store, see whose they are ▶ newest manifest ▶ catalog, pages, blocks, delete vectors (several objects at a time)
//!     ▶ replay the log behind it ▶ build the indexes ▶ open the log for writing
//!     ▶ if it has calls of procedures: replay it from the first one on ▶ delete orphans
//! ```
//!
//! Replay is strict: every record is behind the checkpoint's snapshot, so an operation on a row that is not as
//! the operation needs it is corruption, not something to skip.

mod calls;
mod load;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_base::{BlockId, Timestamp};
use avocet_log::{LogOptions, LogReader, LogWriter};
use avocet_storage::relation::{RowsPerSegment, SegmentState};
use avocet_storage::store::{BlobStore, open_store};
use hashbrown::HashSet;

use crate::background;
use crate::blocks::Blocks;
use crate::capture::Capture;
use crate::catalog::Catalog;
use crate::checkpoint::CheckpointState;
use crate::checkpoint::manifest::{self, Manifest, SegmentPlace};
use crate::claim::Claim;
use crate::engine::{Engine, EngineOptions, Parts};
use crate::error::Result;
use crate::index_build;
use crate::origins::Origins;
use crate::redo::replay;
use crate::snapshots::Snapshots;

impl Engine {
    /// Opens a data directory, made if there is none; recovers what a crash left.
    pub fn open(options: EngineOptions) -> Result<Arc<Self>> {
        let engine = open(options)?;
        if engine.options.background {
            background::start(&engine);
        }
        Ok(engine)
    }
}

fn open(options: EngineOptions) -> Result<Arc<Engine>> {
    let mut claim = Claim::of(&options)?;
    claim.check_log()?;
    let store = open_store(&options.env, &options.objects_url())?;
    claim.take_store(&*store)?;
    let blocks = Blocks::new(store.clone(), options.memory_limit / 4);
    let manifest = newest_manifest(&*store)?;

    let catalog = catalog_of(&manifest, options.rows_per_segment);
    let capture = match options.capture_changes {
        true => Capture::from(catalog_of(&manifest, options.rows_per_segment), manifest.redo_from),
        false => Capture::default(),
    };
    blocks.note_id(BlockId(manifest.next_block.0.saturating_sub(1)));
    let sizes = load::load(&catalog, &manifest, &blocks, &*store)?;

    /// Records that wait for the disk take at most this share of memory, twice; not less than this.
    const PENDING_SHARE: usize = 64;
    const LEAST_PENDING: usize = 256 << 10;
    let log_dir = options.data.join("log");
    let mut reader = LogReader::open(options.env.clone(), &log_dir, manifest.redo_from)?;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let replayed = replay::replay(&mut reader, catalog, manifest.timestamp, &blocks, workers)?;
    let end = reader.end_lsn();
    let replay::Replayed { catalog, last, origins: applied, mut named, rest } = replayed;
    let mut catalog = Arc::unwrap_or_clone(catalog);
    catalog.relink();
    index_build::indexes(&catalog)?;

    let origins = Origins::default();
    let checkpointed = manifest.origins.iter().map(|origin| (manifest.timestamp, origin.clone()));
    checkpointed.chain(applied).for_each(|(ts, origin)| origins.note(ts, origin, last));

    let snapshots = Arc::new(Snapshots::new(last, rest.unwrap_or(end)));
    let [durable, written] = [snapshots.clone(), snapshots.clone()];
    let mut log_options = LogOptions::new(&log_dir)
        .on_durable(move |lsn, tag| durable.advance(Timestamp(tag), lsn))
        .on_written(move |lsn, tag| written.advance(Timestamp(tag), lsn));
    log_options.segment_size = options.log_segment_bytes;
    log_options.compression = options.log_compression;
    log_options.max_pending =
        log_options.max_pending.min(options.memory_limit / PENDING_SHARE).max(LEAST_PENDING);
    let log = Arc::new(LogWriter::open(options.env.clone(), log_options, end)?);
    claim.settle()?;
    let env = options.env.clone();
    let checkpoints = CheckpointState::of(manifest, sizes);
    let parts =
        Parts { catalog, snapshots, log, last, blocks, origins, checkpoints, claim, capture, options };
    let engine = Arc::new(Engine::assemble(parts));
    if let Some(from) = rest {
        named.extend(calls::replay(&engine, LogReader::open_until(env, &log_dir, from, end)?)?);
    }
    let catalog = engine.catalog();
    delete_orphans(&*store, &engine.blocks, &catalog, &engine.checkpoints.lock().current, &named)?;
    resume_inserts(&catalog);
    Ok(engine)
}

/// Where blocks and checkpoints are.
pub(crate) fn newest_manifest(store: &dyn BlobStore) -> Result<Manifest> {
    let newest = store.list("checkpoints/")?.into_iter().map(|(key, _)| key).max();
    match newest {
        None => Ok(Manifest::default()),
        Some(key) => Manifest::decode(&store.get(&key)?, &key),
    }
}

/// The catalog as a checkpoint has it; its tables have no rows yet.
pub(crate) fn catalog_of(manifest: &Manifest, segment_rows: RowsPerSegment) -> Catalog {
    let mut catalog = Catalog::new(segment_rows);
    manifest.catalog.iter().for_each(|change| catalog.apply(change));
    catalog.note_id(manifest.next_id.saturating_sub(1));
    catalog
}

/// Deletes objects that a crash left without a reference.
fn delete_orphans(
    store: &dyn BlobStore,
    blocks: &Blocks,
    catalog: &Catalog,
    manifest: &Manifest,
    named_in_log: &HashSet<BlockId>,
) -> Result<()> {
    let mut in_use: HashSet<BlockId> = HashSet::new();
    for table in catalog.tables() {
        for (_, state) in table.relation.used_segments() {
            if let SegmentState::Cold(cold) = &*state {
                in_use.insert(cold.block.id());
            }
        }
    }
    let in_checkpoint = manifest.tables.iter().flat_map(|t| &t.segments).filter_map(|s| match s.place {
        SegmentPlace::Cold { block, .. } => Some(block),
        SegmentPlace::Hot { .. } => None,
    });
    let named: HashSet<BlockId> = in_checkpoint.chain(named_in_log.iter().copied()).collect();
    blocks.delete_orphans(&in_use, &named)?;
    let images: HashSet<String> =
        manifest.images().map(|(_, image)| manifest::pages_key(image.object)).collect();
    for (key, _) in store.list("pages/")? {
        if !images.contains(&key) {
            store.delete(&key)?;
        }
    }
    for (key, _) in store.list("checkpoints/")? {
        if key != manifest::key(manifest.sequence) {
            store.delete(&key)?;
        }
    }
    Ok(())
}

/// Counts rows, and goes on filling the segments that were being filled.
fn resume_inserts(catalog: &Catalog) {
    for table in catalog.tables() {
        table.rows.store(table.count_rows() as i64, Ordering::Relaxed);
        table.relation.resume_inserts();
    }
}
