//! Freezing: the rows of a hot segment move to a column block; compaction: a block with many deletes is
//! rewritten without them. Row ids stay, so no index changes.
//!
//! ```text
//!  1. gather:  every page without versions; gather its rows, remember its change counters
//!  2. write:  encode, store the block durably                     (nobody waits)
//!  3. swap:   latch all pages; unchanged? mark them frozen, log the segment record, publish the block
//! ```
//!
//! If a page changed between gathering and swap the block is thrown away: the segment was not cool. One segment is frozen or
//! compacted at a time (`FreezerState::one`); DDL is shut out for the swap alone. While a checkpoint is written, segments stay
//! hot that rows came to and went from since its snapshot ([`Underway`]).
//!
//! When memory is scarce, segments are frozen before they are cool: those that have stood still for longest first, then
//! those that rows go to, if they can be frozen: a segment that is closed in vain only makes room for another. A segment whose
//! freezing fails is reported, and left alone for a while; the others go on.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use arrow::array::{ArrayRef, UInt32Array};
use avocet_base::{SegmentNo, TableId};
use avocet_log::Durability;
use avocet_storage::cold::Ordinals;
use avocet_storage::hot::PageBody;
use avocet_storage::relation::{ColdSegment, Deletes, HotSegment, SegmentState};
use avocet_types::ColumnBuilder;
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::block_rows;
use crate::blocks::Blocks;
use crate::catalog::Catalog;
use crate::commit::Pipeline;
use crate::error::Result;
use crate::garbage::Garbage;
use crate::health::Health;
use crate::memory::MemoryBudget;
use crate::pace::Pacer;
use crate::redo::{self, SegmentChange};
use crate::shred::encode_rows;
use crate::signals::Signals;
use crate::snapshots::Snapshots;
use crate::table::TableHandle;
use crate::underway::Underway;

/// How long a segment must stand still before it is frozen.
const COOL_AFTER: Duration = Duration::from_secs(10);
/// A segment that could not be frozen, and not for want of standing still, is tried again after this time.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// Smaller segments are not frozen early: what stays of them in memory would be nearly as much.
const LEAST_WORTH_FREEZING: usize = 8 << 10;
/// A block is compacted when more than this share of its rows is deleted.
const COMPACT_AT: f64 = 0.25;

/// What a freezer remembers from one round to the next.
#[derive(Default)]
pub(crate) struct FreezerState {
    pub watch: Mutex<Watch>,
    /// Held by whoever freezes or compacts a segment. Taken before the DDL latch.
    one: Mutex<()>,
}

/// The segments that it watches.
#[derive(Default)]
pub(crate) struct Watch {
    watched: HashMap<(TableId, SegmentNo), (u64, Instant)>,
    failed: HashMap<(TableId, SegmentNo), Instant>,
}

/// Freezes and compacts segments.
pub(crate) struct Freezer<'e> {
    pub state: &'e FreezerState,
    pub catalog: &'e ArcSwap<Catalog>,
    pub ddl: &'e Mutex<()>,
    pub underway: &'e Underway,
    pub snapshots: &'e Snapshots,
    pub pipeline: &'e Pipeline,
    pub blocks: &'e Blocks,
    pub memory: &'e MemoryBudget,
    pub garbage: &'e Garbage,
    pub health: &'e Health,
    pub signals: &'e Signals,
}

impl Freezer<'_> {
    /// Freezes segments that have stood still for a while and compacts blocks with many deletes.
    pub fn freeze_cool(&self, pacer: &mut Pacer<'_>) {
        let catalog = self.catalog.load();
        self.forget_others(&catalog);
        for table in catalog.tables() {
            let inserting = table.relation.insert_segment();
            for (number, state) in table.relation.used_segments() {
                if self.signals.is_ending() {
                    return;
                }
                let outcome = match &*state {
                    SegmentState::Hot(hot)
                        if inserting != Some(number) && self.is_cool(table.id(), number, hot) =>
                    {
                        self.freeze(table, number, hot, pacer).map(drop)
                    }
                    SegmentState::Cold(cold)
                        if wants_compaction(cold) && self.may_try(table.id(), number) =>
                    {
                        self.compact(table, number, cold, pacer)
                    }
                    _ => Ok(()),
                };
                self.note_outcome(table.id(), number, outcome);
                pacer.pause();
            }
        }
    }

    /// Freezes segments, cool or not, until about so many bytes of hot pages are free. Returns how many were freed.
    pub fn freeze_early(&self, bytes: usize) -> usize {
        let mut freed = 0;
        for candidate in self.candidates() {
            if freed >= bytes || self.health.check().is_err() {
                break;
            }
            let Candidate { table, number, state, bytes: size, inserting, .. } = candidate;
            let SegmentState::Hot(hot) = &*state else { continue };
            if inserting {
                if !self.can_be_frozen(&table, hot) {
                    continue;
                }
                table.relation.close_if_insert_segment(number);
            }
            let outcome = self.freeze(&table, number, hot, &mut Pacer::none());
            if let Ok(true) = outcome {
                freed += size;
                self.memory.note_frozen(size);
            }
            self.note_outcome(table.id(), number, outcome.map(drop));
        }
        freed
    }

    /// Whether nothing is in the way of freezing a segment just now.
    fn can_be_frozen(&self, table: &TableHandle, hot: &HotSegment) -> bool {
        !table.relation.is_still()
            && hot.pages().all(|(_, page)| is_settled(&page.body.read(), self.underway))
    }

    /// The hot segments, in the order in which they are frozen early.
    fn candidates(&self) -> Vec<Candidate> {
        let mut all = Vec::new();
        let catalog = self.catalog.load();
        self.forget_others(&catalog);
        for table in catalog.tables() {
            let inserting = table.relation.insert_segment();
            for (number, state) in table.relation.used_segments() {
                let SegmentState::Hot(hot) = &*state else { continue };
                let (pages, inserting) = (hot.page_bytes(), inserting == Some(number));
                let bytes = pages + hot.directory_bytes();
                // Behind a segment that rows go to there will be another, which has a directory, too.
                let gain = if inserting { pages } else { bytes };
                if gain >= LEAST_WORTH_FREEZING && self.may_try(table.id(), number) {
                    let still_since = self.still_since(table.id(), number, hot);
                    all.push(Candidate {
                        table: table.clone(),
                        number,
                        state,
                        bytes,
                        inserting,
                        still_since,
                    });
                }
            }
        }
        // What is as cool goes by size: few large blocks free as much as many small ones.
        all.sort_by_key(|c| (c.inserting, c.still_since, Reverse(c.bytes)));
        all
    }

    /// Whether nothing but its not standing still has kept a segment from being frozen lately.
    fn may_try(&self, table: TableId, number: SegmentNo) -> bool {
        let mut watch = self.state.watch.lock();
        let failed = watch.failed.get(&(table, number)).copied();
        if failed.is_some_and(|at| at.elapsed() < RETRY_AFTER) {
            return false;
        }
        if failed.is_some() {
            watch.failed.remove(&(table, number));
        }
        true
    }

    /// Forgets what it watched of segments that are hot no longer, and of tables that are gone.
    fn forget_others(&self, catalog: &Catalog) {
        let mut watch = self.state.watch.lock();
        let segment = |(table, number): &(TableId, SegmentNo)| {
            let relation = &catalog.table_by_id(*table)?.relation;
            (number.0 < relation.segments()).then(|| relation.segment(*number).state_owned())
        };
        watch.watched.retain(|key, _| matches!(segment(key).as_deref(), Some(SegmentState::Hot(_))));
        watch.failed.retain(|key, at| at.elapsed() < RETRY_AFTER && segment(key).is_some());
    }

    fn note_outcome(&self, table: TableId, number: SegmentNo, outcome: Result<()>) {
        if let Err(e) = outcome {
            self.state.watch.lock().failed.insert((table, number), Instant::now());
            self.health.note_background_error(&e);
        }
    }

    /// Since when a segment has not changed, as far as anybody has looked.
    fn still_since(&self, table: TableId, number: SegmentNo, hot: &HotSegment) -> Instant {
        let changes: u64 = hot.pages().map(|(_, page)| page.body.read().changes).sum();
        let now = Instant::now();
        let mut watch = self.state.watch.lock();
        let (seen, since) = watch.watched.entry((table, number)).or_insert((changes, now));
        if *seen != changes {
            (*seen, *since) = (changes, now);
        }
        *since
    }

    fn is_cool(&self, table: TableId, number: SegmentNo, hot: &HotSegment) -> bool {
        self.still_since(table, number, hot).elapsed() >= COOL_AFTER && self.may_try(table, number)
    }

    /// Freezes everything that nobody uses just now, the insert segments too. Returns how many segments stayed hot.
    pub fn freeze_all(&self) -> Result<usize> {
        self.garbage.collect_all(self.snapshots.oldest());
        let mut pacer = Pacer::none();
        let mut left = 0;
        let catalog = self.catalog.load();
        for table in catalog.tables() {
            table.relation.close_insert_segment();
            for (number, state) in table.relation.used_segments() {
                match &*state {
                    SegmentState::Hot(hot) => {
                        left += usize::from(!self.freeze(table, number, hot, &mut pacer)?);
                    }
                    SegmentState::Cold(cold) if wants_compaction(cold) => {
                        self.compact(table, number, cold, &mut pacer)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(left)
    }

    /// False if the segment is in use.
    fn freeze(
        &self,
        table: &TableHandle,
        number: SegmentNo,
        hot: &HotSegment,
        pacer: &mut Pacer<'_>,
    ) -> Result<bool> {
        let _one = self.state.one.lock();
        let is_there = || {
            let state = table.relation.segment(number).state();
            self.is_current(table) && matches!(&*state, SegmentState::Hot(h) if std::ptr::eq(h, hot))
        };
        if !is_there() {
            return Ok(true);
        }
        if table.relation.is_still() {
            return Ok(false);
        }
        let _copies = self.memory.hold_copies(hot.bytes());
        let Some(rows) = HotRows::gather(table, hot, self.underway) else { return Ok(false) };
        let HotRows { columns, ordinals, changes } = rows;
        let block = match ordinals.is_empty() {
            true => None,
            false => {
                let ordinals = Ordinals::from_sorted(&ordinals)?;
                let block = encode_rows(table, &columns, ordinals)?;
                drop(columns);
                Some(table.view(self.blocks.write_in_steps(block, &mut |step| pacer.charge(step))?)?)
            }
        };
        let discard = |outcome: Result<bool>| {
            if let Some(block) = &block {
                self.blocks.discard(block.id());
            }
            outcome
        };
        let _ddl = self.ddl.lock();
        if !is_there() {
            return discard(Ok(true));
        }
        if table.relation.is_still() {
            return discard(Ok(false));
        }
        let pages = table.relation.close_pages(hot);
        let mut guards: Vec<_> = pages.iter().map(|page| page.body.write()).collect();
        let stood_still = guards.len() == changes.len()
            && guards
                .iter()
                .zip(&changes)
                .all(|(page, &changes)| page.changes == changes && is_settled(page, self.underway));
        if !stood_still {
            return discard(Ok(false));
        }
        let change =
            SegmentChange { table: table.id(), segment: number, block: block.as_ref().map(|b| b.id()) };
        if let Err(e) = self.pipeline.log_commit(redo::KIND_SEGMENT, &change.encode(), None, Durability::Sync)
        {
            self.health.stop_unless_refused(&e);
            return discard(Err(e));
        }
        guards.iter_mut().for_each(|page| page.frozen = true);
        let state = match block {
            None => SegmentState::Empty,
            Some(block) => SegmentState::Cold(ColdSegment::new(block, None, Deletes::fresh())),
        };
        table.relation.segment(number).replace(state);
        self.state.watch.lock().watched.remove(&(table.id(), number));
        Ok(true)
    }

    fn is_current(&self, table: &TableHandle) -> bool {
        self.catalog
            .load()
            .table_by_id(table.id())
            .is_some_and(|now| Arc::ptr_eq(&now.relation, &table.relation))
    }

    /// Rewrites a block without the rows that are deleted for everyone.
    fn compact(
        &self,
        table: &TableHandle,
        number: SegmentNo,
        cold: &ColdSegment,
        pacer: &mut Pacer<'_>,
    ) -> Result<()> {
        let _one = self.state.one.lock();
        let segment = table.relation.segment(number);
        let is_there = || {
            let state = segment.state();
            self.is_current(table)
                && !table.relation.is_still()
                && matches!(&*state, SegmentState::Cold(c) if std::ptr::eq(c, cold))
        };
        let oldest = self.snapshots.oldest();
        let for_all = cold.created.as_ref().is_none_or(|c| c.committed_at().is_some_and(|ts| ts <= oldest));
        if !is_there() || !for_all {
            return Ok(());
        }
        let gone = cold.deletes.body.read().settled_for_good();
        let old = &cold.block.meta().ordinals;
        let (mut rows, mut ordinals) = (Vec::new(), Vec::new());
        for row in 0..old.len() {
            let ordinal = old.ordinal_of(row);
            if !gone.contains(ordinal.into()) {
                rows.push(row as u32);
                ordinals.push(ordinal);
            }
        }
        let block = if rows.is_empty() {
            None
        } else {
            let _copies = self.memory.hold_copies(cold.block.meta().data_len as usize);
            let rows = UInt32Array::from(rows);
            let columns = (0..table.def.columns.len())
                .map(|c| block_rows::take_rows(&cold.block.column(c)?.decode()?, &rows))
                .collect::<Result<Vec<_>>>()?;
            let block = encode_rows(table, &columns, Ordinals::from_sorted(&ordinals)?)?;
            Some(table.view(self.blocks.write_in_steps(block, &mut |step| pacer.charge(step))?)?)
        };
        let discard = || {
            if let Some(block) = &block {
                self.blocks.discard(block.id());
            }
        };
        let _ddl = self.ddl.lock();
        if !is_there() {
            discard();
            return Ok(());
        }
        let mut deletes = cold.deletes.body.write();
        let change =
            SegmentChange { table: table.id(), segment: number, block: block.as_ref().map(|b| b.id()) };
        if let Err(e) = self.pipeline.log_commit(redo::KIND_SEGMENT, &change.encode(), None, Durability::Sync)
        {
            self.health.stop_unless_refused(&e);
            discard();
            return Err(e);
        }
        deletes.closed = true;
        let state = match block {
            None => SegmentState::Empty,
            Some(block) => {
                let settled = &**deletes.all_settled() - &gone;
                let mut carried = Deletes::fresh_with(settled);
                carried.share_chains_of(&deletes);
                SegmentState::Cold(ColdSegment::new(block, None, carried))
            }
        };
        segment.replace(state);
        drop(deletes);
        self.blocks.retire(&cold.block);
        Ok(())
    }
}

fn wants_compaction(cold: &ColdSegment) -> bool {
    let deletes = cold.deletes.body.read();
    let settled = deletes.all_settled().len() as f64;
    !deletes.closed && settled > COMPACT_AT * cold.block.meta().rows() as f64
}

/// Whether a page is the same for every snapshot, and for whoever replays the log from a checkpoint that is being written.
fn is_settled(page: &PageBody, underway: &Underway) -> bool {
    !page.has_versions() && !underway.replays(page.vanished_at())
}

/// A hot segment that may be frozen early.
struct Candidate {
    table: Arc<TableHandle>,
    number: SegmentNo,
    state: Arc<SegmentState>,
    bytes: usize,
    /// Rows go to it.
    inserting: bool,
    still_since: Instant,
}

/// A hot segment's rows, and how often each of its pages had changed when they were read.
struct HotRows {
    columns: Vec<ArrayRef>,
    ordinals: Vec<u16>,
    changes: Vec<u64>,
}

impl HotRows {
    /// `None` if some page cannot be frozen.
    fn gather(table: &TableHandle, hot: &HotSegment, underway: &Underway) -> Option<Self> {
        let layout = &table.layout;
        let types = table.def.columns.iter().map(|c| &c.ty);
        let mut builders: Vec<_> =
            types.map(|ty| ColumnBuilder::new(ty, table.relation.rows_per_segment())).collect();
        let (mut ordinals, mut changes) = (Vec::new(), Vec::new());
        for (n, page) in hot.pages() {
            if page.is_closed() {
                continue;
            }
            let body = page.body.read();
            if body.frozen || !is_settled(&body, underway) {
                return None;
            }
            changes.push(body.changes);
            let slots: Vec<usize> =
                (0..table.relation.slots_per_page()).filter(|&slot| body.is_live(slot)).collect();
            for (column, builder) in builders.iter_mut().enumerate() {
                builder.append_rows(slots.iter().map(|&slot| body.in_place(layout, slot)), column);
            }
            ordinals.extend(slots.iter().map(|&slot| table.relation.ordinal(n, slot)));
        }
        Some(Self { columns: builders.iter_mut().map(ColumnBuilder::finish).collect(), ordinals, changes })
    }
}

#[cfg(test)]
mod tests;
