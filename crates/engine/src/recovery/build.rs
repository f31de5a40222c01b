//! What is not persisted but follows from the rows: indexes, row counts, where inserts go on.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_base::{RowId, SegmentNo};
use avocet_storage::relation::SegmentState;
use parking_lot::Mutex;

use super::in_parallel;
use crate::bulk::{self, SortedEntries};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::table::TableHandle;

/// Counts rows, and goes on filling the segments that were being filled.
pub(super) fn resume_inserts(catalog: &Catalog) {
    for table in catalog.tables() {
        table.rows.store(table.count_rows() as i64, Ordering::Relaxed);
        table.relation.resume_inserts();
    }
}

/// Builds every index from the rows.
pub(super) fn indexes(catalog: &Catalog) -> Result<()> {
    build(catalog.tables().flat_map(|table| (0..table.indexes.len()).map(move |index| (&**table, index))))
}

/// Fills an empty index from the newest rows.
pub(crate) fn build_index(table: &TableHandle, index: usize) -> Result<()> {
    build(std::iter::once((table, index)))
}

type UsedSegment = (SegmentNo, Arc<SegmentState>);

/// An index that is being built.
struct Building<'c> {
    table: &'c TableHandle,
    index: usize,
    segments: Vec<UsedSegment>,
    /// The entries of the pieces that are done, each piece sorted.
    done: Mutex<Vec<SortedEntries>>,
}

/// Segments in a piece: half a million rows, or fewer.
const PIECE: usize = 8;
/// How full the leaves of a new tree are.
const FILL: f32 = 0.9;

/// Builds indexes: threads sort pieces of them, and whoever has done an index's last one fills its tree.
fn build<'c>(indexes: impl Iterator<Item = (&'c TableHandle, usize)>) -> Result<()> {
    let begin = |(table, index): (&'c TableHandle, usize)| Building {
        table,
        index,
        segments: table.relation.used_segments().collect(),
        done: Mutex::default(),
    };
    let mut indexes: Vec<Building<'_>> = indexes.map(begin).collect();
    // The largest first: filling its tree is one thread's work, and is not to be what all others wait for.
    indexes.sort_by_key(|index| Reverse(index.segments.len()));
    let pieces: Vec<_> = indexes.iter().flat_map(|index| index.pieces().map(move |p| (index, p))).collect();
    in_parallel(pieces.len(), |n| {
        let (index, piece) = pieces[n];
        index.take(sorted_entries(index.table, index.index, piece)?);
        Ok(())
    })
}

impl Building<'_> {
    fn pieces(&self) -> impl Iterator<Item = &[UsedSegment]> {
        self.segments.chunks(PIECE)
    }

    fn take(&self, entries: SortedEntries) {
        let mut done = self.done.lock();
        done.push(entries);
        if done.len() == self.segments.len().div_ceil(PIECE) {
            let runs = std::mem::take(&mut *done);
            self.table.indexes[self.index].tree.bulk_fill(SortedEntries::merged(&runs), FILL);
        }
    }
}

fn sorted_entries(table: &TableHandle, index: usize, segments: &[UsedSegment]) -> Result<SortedEntries> {
    let mut entries = SortedEntries::default();
    for (number, state) in segments {
        match &**state {
            SegmentState::Empty => {}
            SegmentState::Hot(hot) => {
                for (n, page) in hot.pages() {
                    let body = page.body.read();
                    for slot in (0..table.relation.slots_per_page()).filter(|&slot| body.is_live(slot)) {
                        let id = RowId::new(*number, table.relation.ordinal(n, slot));
                        entries.push(|to| {
                            table.indexes[index].entry(&body.in_place(&table.layout, slot), id, to);
                        });
                    }
                }
            }
            SegmentState::Cold(cold) => {
                bulk::block_entries(table, index, *number, cold, &mut |entry, _| {
                    entries.push(|to| to.extend_from_slice(entry));
                })?;
            }
        }
    }
    entries.sort();
    Ok(entries)
}
