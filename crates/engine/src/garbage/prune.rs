//! Pruning: what a snapshot that is held for long keeps is merged, version by version, until each row has one for each
//! gap between snapshots in use (`storage::version::merge_chain`).
//!
//! The queue's transactions are taken out, their undo records are looked at row by row, and what is left goes back as
//! one list for each gap (cut into pieces, so that whoever collects one does not do so for long). A gap's list may be
//! collected when the snapshot at its end, or a later one, is the oldest in use.
//!
//! This costs as much as there is in the queue, so it is done when that has doubled since.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_base::RowId;
use avocet_storage::Undo;
use avocet_storage::relation::SegmentState;
use avocet_storage::version::Merged;
use hashbrown::{HashMap, HashSet};

use super::{Garbage, Leftover, Lists, UndoEntry};
use crate::rows;
use crate::snapshots::Horizon;
use crate::table::TableHandle;

/// A shorter queue is left alone.
const LEAST: usize = 4_096;
/// Undo records of a list that goes back.
const PIECE: usize = 64;

/// The undo records of the queue, by gap and row.
#[derive(Default)]
struct Backlog {
    tables: Vec<Arc<TableHandle>>,
    table_numbers: HashMap<*const TableHandle, u16>,
    /// In commit order; those that were merged into another are `None`.
    entries: Vec<Option<(usize, UndoEntry)>>,
    by_row: HashMap<(u16, RowId), Vec<usize>>,
}

impl Garbage {
    pub fn is_prune_due(&self) -> bool {
        self.len() >= self.prune_at.load(Ordering::Relaxed).max(LEAST)
    }

    /// Merges what can be merged.
    pub fn prune(&self, horizon: &Horizon) {
        let _only = self.collector.lock();
        let taken: Vec<Leftover> = {
            let mut queue = self.queue.lock();
            let end = queue.partition_point(|leftover| leftover.ts <= horizon.visible);
            queue.drain(..end).collect()
        };
        let mut backlog = Backlog::default();
        for leftover in taken {
            let gap = horizon.interval(leftover.ts).expect("only what is visible was taken");
            backlog.add(gap, leftover.lists);
        }
        backlog.merge_rows(horizon);
        let pieces = backlog.into_pieces(horizon);
        let mut queue = self.queue.lock();
        for piece in pieces.into_iter().rev() {
            queue.push_front(piece);
        }
        self.prune_at.store(2 * queue.len(), Ordering::Relaxed);
    }
}

impl Backlog {
    fn add(&mut self, gap: usize, lists: Lists) {
        let numbers: Vec<u16> = lists.tables.into_iter().map(|table| self.number_of(table)).collect();
        for mut entry in lists.undo {
            entry.table = numbers[entry.table as usize];
            self.by_row.entry((entry.table, entry.row)).or_default().push(self.entries.len());
            self.entries.push(Some((gap, entry)));
        }
    }

    fn number_of(&mut self, table: Arc<TableHandle>) -> u16 {
        *self.table_numbers.entry(Arc::as_ptr(&table)).or_insert_with(|| {
            self.tables.push(table);
            u16::try_from(self.tables.len() - 1).expect("fewer tables than that are in use")
        })
    }

    fn merge_rows(&mut self, horizon: &Horizon) {
        let rows = std::mem::take(&mut self.by_row);
        for ((table, row), places) in rows {
            if places.len() > 1 {
                let handle = self.tables[table as usize].clone();
                self.merge_row(&handle, table, row, &places, horizon);
            }
        }
    }

    /// Merges the versions of one row. If its page or block is being replaced just now, that is for the next time.
    fn merge_row(
        &mut self,
        handle: &TableHandle,
        table: u16,
        row: RowId,
        places: &[usize],
        horizon: &Horizon,
    ) {
        let interval = |ts| horizon.interval(ts);
        let state = handle.relation.segment(row.segment()).state();
        match &*state {
            SegmentState::Empty => {}
            SegmentState::Hot(hot) => {
                let Some((page, slot)) = handle.relation.page_of(hot, row.ordinal()) else { return };
                let mut body = page.body.write();
                if body.frozen {
                    return;
                }
                for merged in body.merge_versions(&handle.layout, slot, &interval) {
                    // What only a version in the middle needed, nobody needs now.
                    let entry = self.replace(table, row, places, &merged, horizon);
                    entry.stale.retain(|(index, key)| {
                        !rows::remove_unless_needed(handle, &body, slot, row, *index as usize, key)
                    });
                }
            }
            SegmentState::Cold(cold) => {
                let mut deletes = cold.deletes.body.write();
                if deletes.closed {
                    return;
                }
                for merged in deletes.merge_versions(&handle.layout, row.ordinal(), &interval) {
                    self.replace(table, row, places, &merged, horizon);
                }
            }
        }
    }

    /// One entry in place of those of the versions that were merged. A version that committed just now may have none
    /// yet; when it comes, there is nothing left for it to do.
    fn replace(
        &mut self,
        table: u16,
        row: RowId,
        places: &[usize],
        merged: &Merged,
        horizon: &Horizon,
    ) -> &mut UndoEntry {
        let of: HashSet<*const Undo> = merged.of.iter().map(Arc::as_ptr).collect();
        let mut stale = Vec::new();
        for &place in places {
            if self.entries[place].as_ref().is_some_and(|(_, entry)| of.contains(&Arc::as_ptr(&entry.undo))) {
                let (_, entry) = self.entries[place].take().expect("just seen");
                stale.extend(entry.stale);
            }
        }
        stale.sort_unstable();
        stale.dedup();
        let newest = merged.of[0].txn.committed_at().expect("only committed versions are merged");
        let gap = horizon.interval(newest).expect("only visible versions are merged");
        self.entries.push(Some((gap, UndoEntry { table, row, undo: merged.into.clone(), stale })));
        let (_, entry) = self.entries.last_mut().and_then(Option::as_mut).expect("just pushed");
        entry
    }

    /// What is left, in lists that are in the order of their ends.
    fn into_pieces(mut self, horizon: &Horizon) -> Vec<Leftover> {
        let mut entries: Vec<(usize, UndoEntry)> = self.entries.drain(..).flatten().collect();
        // Stable: within a gap, a row's entries stay in commit order.
        entries.sort_by_key(|(gap, _)| *gap);
        let mut pieces: Vec<Leftover> = Vec::new();
        let mut piece_of = None;
        for (gap, entry) in entries {
            if piece_of != Some(gap) || pieces.last().is_none_or(|piece| piece.lists.undo.len() >= PIECE) {
                pieces.push(Leftover { ts: horizon.end(gap), lists: Lists::default() });
                piece_of = Some(gap);
            }
            let lists = &mut pieces.last_mut().expect("just pushed").lists;
            let handle = &self.tables[entry.table as usize];
            let known = lists.tables.iter().position(|table| Arc::ptr_eq(table, handle));
            let number = known.unwrap_or_else(|| {
                lists.tables.push(handle.clone());
                lists.tables.len() - 1
            });
            lists.undo.push(UndoEntry { table: number as u16, ..entry });
        }
        pieces
    }
}
