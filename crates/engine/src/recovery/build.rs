//! What is not persisted but follows from the rows: indexes, row counts, where inserts go on.

use std::sync::atomic::{AtomicUsize, Ordering};

use avocet_base::{RowId, SegmentNo};
use avocet_storage::relation::SegmentState;
use parking_lot::Mutex;

use crate::bulk;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::table::TableHandle;

/// Counts rows, and goes on filling the last hot segment after its last row.
pub(super) fn resume_inserts(catalog: &Catalog) {
    for table in catalog.tables() {
        let mut rows = 0;
        let mut last = None;
        for (number, state) in table.relation.used_segments() {
            match &*state {
                SegmentState::Empty => {}
                SegmentState::Cold(cold) => {
                    rows += cold.block.meta().rows() as u64 - cold.deletes.body.read().newest_count();
                }
                SegmentState::Hot(hot) => {
                    for (n, page) in hot.pages() {
                        let body = page.body.read();
                        rows += body.live_count() as u64;
                        let slots = 0..table.relation.slots_per_page();
                        if let Some(slot) = slots.rev().find(|&slot| body.is_live(slot)) {
                            last = last.max(Some(RowId::new(number, table.relation.ordinal(n, slot))));
                        }
                    }
                }
            }
        }
        table.rows.store(rows as i64, Ordering::Relaxed);
        if let Some(last) = last.filter(|last| last.ordinal() < u16::MAX) {
            table.relation.resume_cursor(RowId(last.0 + 1));
        }
    }
}

/// Builds every index from the rows, several at a time.
pub(super) fn indexes(catalog: &Catalog) -> Result<()> {
    let work: Vec<(&TableHandle, usize)> =
        catalog.tables().flat_map(|table| (0..table.indexes.len()).map(move |n| (&**table, n))).collect();
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(work.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&(table, index)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(e) = build_index(table, index) {
                        *failed.lock() = Some(e);
                        return;
                    }
                }
            });
        }
    });
    failed.into_inner().map_or(Ok(()), Err)
}

/// Fills an empty index from the newest rows.
pub(crate) fn build_index(table: &TableHandle, index: usize) -> Result<()> {
    let mut entries = bulk::SortedEntries::default();
    for (number, state) in table.relation.used_segments() {
        match &*state {
            SegmentState::Empty => {}
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
            }
            SegmentState::Cold(cold) => {
                bulk::block_entries(table, index, SegmentNo(number.0), cold, &mut |entry, _| {
                    entries.push(|to| to.extend_from_slice(entry));
                })?;
            }
        }
    }
    table.indexes[index].tree.bulk_insert_sorted(entries.sorted());
    Ok(())
}
