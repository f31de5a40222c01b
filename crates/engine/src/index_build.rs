//! Building indexes from the rows that there are.

mod sorted;

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use avocet_base::{RowId, SegmentNo};
use avocet_storage::relation::SegmentState;
use parking_lot::Mutex;

pub(crate) use self::sorted::SortedEntries;
use crate::block_rows;
use crate::catalog::Catalog;
use crate::error::{EngineError, Result};
use crate::memory::{Held, MemoryBudget};
use crate::stop::Stop;
use crate::table::TableHandle;

/// Builds every index from the rows.
pub(crate) fn indexes(catalog: &Catalog) -> Result<()> {
    let all = catalog.tables().flat_map(|table| (0..table.indexes.len()).map(move |index| (&**table, index)));
    build(all, None, &Stop::default())
}

/// Fills an empty index from the newest rows: recovery, which takes what there was room for.
pub(crate) fn build_index(table: &TableHandle, index: usize) -> Result<()> {
    build(std::iter::once((table, index)), None, &Stop::default())
}

/// Fills an empty index from the newest rows.
///
/// # Errors
/// `IndexTooLarge` if there is no memory for it; `KeyTooLong`; `Interrupted`.
pub(crate) fn build_new_index(
    table: &TableHandle,
    index: usize,
    memory: &MemoryBudget,
    stop: &Stop,
) -> Result<()> {
    build(std::iter::once((table, index)), Some(memory), stop)?;
    stop.check()
}

pub(crate) type UsedSegment = (SegmentNo, Arc<SegmentState>);

/// An index that is being built.
pub(crate) struct Building<'c> {
    table: &'c TableHandle,
    index: usize,
    segments: Vec<UsedSegment>,
    /// The entries of the pieces that are done, each piece sorted.
    done: Mutex<Vec<SortedEntries>>,
}

/// Segments in a piece: half a million rows, or fewer.
const PIECE: usize = 8;
/// How full the leaves of a new tree are.
pub(crate) const FILL: f32 = 0.9;

/// Builds indexes: threads sort pieces of them, and whoever has done an index's last one fills its tree.
fn build<'c>(
    indexes: impl Iterator<Item = (&'c TableHandle, usize)>,
    memory: Option<&MemoryBudget>,
    stop: &Stop,
) -> Result<()> {
    let begin = |(table, index): (&'c TableHandle, usize)| {
        Building::new(table, index, table.relation.used_segments().collect())
    };
    let mut indexes: Vec<Building<'_>> = indexes.map(begin).collect();
    // The largest first: filling its tree is one thread's work, and is not to be what all others wait for.
    indexes.sort_by_key(|index| Reverse(index.segments.len()));
    let pieces: Vec<_> = indexes.iter().flat_map(|index| index.pieces().map(move |p| (index, p))).collect();
    // Until the tree is there.
    let held = memory.map(|memory| Mutex::new(memory.hold_nothing()));
    in_parallel(pieces.len(), |n| {
        let (index, piece) = pieces[n];
        index.take(index.sorted_entries(piece, held.as_ref(), stop)?, stop);
        Ok(())
    })
}

/// The entries of a piece and the same in the tree.
const COPIES: usize = 2;

/// The entries of a piece after the other, each sorted. One thread does it, since others have work to do meanwhile.
pub(crate) fn sorted_runs(
    building: &Building<'_>,
    held: &Mutex<Held<'_>>,
    stop: &Stop,
) -> Result<Vec<SortedEntries>> {
    building.pieces().map(|piece| building.sorted_entries(piece, Some(held), stop)).collect()
}

impl<'c> Building<'c> {
    pub fn new(table: &'c TableHandle, index: usize, segments: Vec<UsedSegment>) -> Self {
        Self { table, index, segments, done: Mutex::default() }
    }
}

impl Building<'_> {
    fn pieces(&self) -> impl Iterator<Item = &[UsedSegment]> {
        self.segments.chunks(PIECE)
    }

    fn sorted_entries(
        &self,
        segments: &[UsedSegment],
        held: Option<&Mutex<Held<'_>>>,
        stop: &Stop,
    ) -> Result<SortedEntries> {
        let mut entries = SortedEntries::default();
        let mut charged = 0;
        for (number, state) in segments {
            stop.check()?;
            push_entries(self.table, self.index, *number, state, &mut entries)?;
            entries.check_lengths()?;
            let bytes = entries.bytes() * COPIES;
            if let Some(held) = held
                && !held.lock().try_grow(bytes - charged)
            {
                let index = self.table.indexes[self.index].def.name.clone();
                return Err(EngineError::IndexTooLarge { index });
            }
            charged = bytes;
        }
        entries.sort();
        Ok(entries)
    }

    fn take(&self, entries: SortedEntries, stop: &Stop) {
        let mut done = self.done.lock();
        done.push(entries);
        if done.len() == self.segments.len().div_ceil(PIECE) {
            let runs = std::mem::take(&mut *done);
            // One that is not wanted any more is left as it is: nobody has seen it.
            let goes_on = |(n, _): &(usize, _)| n % Stop::EVERY != 0 || !stop.is_raised();
            let entries =
                SortedEntries::merged(&runs).enumerate().take_while(goes_on).map(|(_, entry)| entry);
            self.table.indexes[self.index].tree.bulk_fill(entries, FILL);
        }
    }
}

pub(crate) fn push_entries(
    table: &TableHandle,
    index: usize,
    number: SegmentNo,
    state: &SegmentState,
    entries: &mut SortedEntries,
) -> Result<()> {
    match state {
        SegmentState::Empty => Ok(()),
        SegmentState::Hot(hot) => {
            for (n, page) in hot.pages() {
                let body = page.body.read();
                for slot in (0..table.relation.slots_per_page()).filter(|&slot| body.is_live(slot)) {
                    let id = RowId::new(number, table.relation.ordinal(n, slot));
                    entries.push(|to| {
                        table.indexes[index].entry(&body.in_place(&table.layout, slot), id, to);
                    });
                }
            }
            Ok(())
        }
        SegmentState::Cold(cold) => {
            block_rows::newest_block_entries(table, index, number, cold, &mut |entry| {
                entries.push(|to| to.extend_from_slice(entry));
            })
        }
    }
}

/// Runs tasks 0 to `count` − 1, on as many threads as there are processors. After an error no further one begins.
pub(crate) fn in_parallel(count: usize, task: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    on_threads(processors(), count, task)
}

/// Requests of a block store that are waited for at once: an object store takes as long for each as for many.
const REQUESTS: usize = 16;

/// The same for tasks that wait for a block store most of the time.
pub(crate) fn in_parallel_requests(count: usize, task: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    on_threads(processors().max(REQUESTS), count, task)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn on_threads(threads: usize, count: usize, task: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    let work = || {
        let mut n = next.fetch_add(1, Ordering::Relaxed);
        while n < count {
            if let Err(e) = task(n) {
                failed.lock().get_or_insert(e);
                next.store(count, Ordering::Relaxed);
            }
            n = next.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| (0..threads.min(count)).for_each(|_| drop(scope.spawn(work))));
    failed.into_inner().map_or(Ok(()), Err)
}
