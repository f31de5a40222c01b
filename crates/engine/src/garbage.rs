//! Collection of old versions.
//!
//! A committed transaction leaves its undo records here, in commit order. Once every snapshot in use is at or
//! past its timestamp, nobody can need its before-images: they are cut off their chains, rows that it deleted
//! are wiped, and index entries that only old versions needed are removed. Committing threads do a little of
//! this each; a background thread does the rest. What an old snapshot holds up is merged meanwhile (`prune`).

mod prune;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use avocet_base::{RowId, Timestamp};
use avocet_storage::Undo;
use avocet_storage::hot::RowBuf;
use avocet_storage::relation::{SegmentState, pin};
use avocet_storage::version::Change;
use parking_lot::Mutex;

use crate::rows;
use crate::table::TableHandle;
use crate::txn::prefetch_page;

/// One version of a transaction: `table` is a position in its list of tables.
pub(crate) struct UndoEntry {
    pub table: u16,
    pub row: RowId,
    pub undo: Arc<Undo>,
    /// Index entries that were right before this change: position of the index, entry.
    pub stale: Vec<(u16, Box<[u8]>)>,
}

/// What a committed transaction leaves behind.
pub(crate) struct Leftover {
    pub ts: Timestamp,
    pub lists: Lists,
}

/// Invariant: a slot without a chain has no stale index entries in the trees, so that it can be frozen as it is. Hence
/// versions of a row are collected in commit order, by one collector at a time, and the entries that a version
/// kept alive go under the same page latch as the version. Who has read an entry before that must look at the row's key.
#[derive(Default)]
pub(crate) struct Garbage {
    queue: Mutex<VecDeque<Leftover>>,
    collector: Mutex<RowBuf>,
    /// Lists of transactions that are collected, empty, for those to come.
    spare: Mutex<Vec<Lists>>,
    /// Versions are merged when the queue has become so long.
    prune_at: AtomicUsize,
}

/// The lists that grow with what a transaction does.
#[derive(Default)]
pub(crate) struct Lists {
    pub tables: Vec<Arc<TableHandle>>,
    pub undo: Vec<UndoEntry>,
}

/// Lists that are kept, and how long one of them may be.
const SPARE_LISTS: usize = 64;
const SPARE_LEN: usize = 1024;

impl Garbage {
    pub fn push(&self, leftover: Leftover) {
        let mut queue = self.queue.lock();
        // Threads may push a little out of order; the queue is kept sorted, so that its front is the oldest.
        let at = queue.iter().rposition(|l| l.ts <= leftover.ts).map_or(0, |p| p + 1);
        queue.insert(at, leftover);
    }

    /// Empty lists for a new transaction.
    pub fn spare_lists(&self) -> Lists {
        self.spare.lock().pop().unwrap_or_default()
    }

    fn keep_lists(&self, mut lists: Lists) {
        if lists.undo.capacity() <= SPARE_LEN {
            lists.tables.clear();
            lists.undo.clear();
            let mut spare = self.spare.lock();
            if spare.len() < SPARE_LISTS {
                spare.push(lists);
            }
        }
    }

    /// Transactions whose versions are still kept.
    pub fn len(&self) -> usize {
        self.queue.lock().len()
    }

    /// Collects at most `most` transactions of at most `versions` each that every snapshot from `oldest` on has seen
    /// commit. A larger one stays, and those behind it. Does nothing if somebody else is at it.
    pub fn collect(&self, oldest: Timestamp, most: usize, versions: usize) -> usize {
        let Some(mut buf) = self.collector.try_lock() else { return 0 };
        for done in 0..most {
            let next = {
                let mut queue = self.queue.lock();
                queue.pop_front_if(|front| front.ts <= oldest && front.lists.undo.len() <= versions)
            };
            match next {
                Some(leftover) => {
                    collect_one(&leftover.lists, &mut buf);
                    self.keep_lists(leftover.lists);
                }
                None => return done,
            }
        }
        most
    }
}

/// Versions that are fetched at a time: more would be gone from the caches before their turn.
const AHEAD: usize = 64;

fn collect_one(lists: &Lists, buf: &mut RowBuf) {
    let table = |entry: &UndoEntry| &lists.tables[entry.table as usize];
    for some in lists.undo.chunks(AHEAD) {
        let _pinned = pin();
        // They were changed a while ago.
        some.iter().for_each(|entry| prefetch_page(table(entry), entry.row));
        some.iter().for_each(|entry| collect_version(table(entry), entry, buf));
    }
}

fn collect_version(table: &TableHandle, entry: &UndoEntry, buf: &mut RowBuf) {
    let segment = table.relation.segment(entry.row.segment());
    loop {
        let state = segment.state();
        let ordinal = entry.row.ordinal();
        match &*state {
            SegmentState::Empty => return,
            SegmentState::Hot(hot) => {
                let Some((page, slot)) = table.relation.page_of(hot, ordinal) else { return };
                let mut body = page.body.write();
                if body.frozen {
                    drop(body);
                    std::thread::yield_now();
                    continue;
                }
                let deleted = matches!(entry.undo.change, Change::Delete) && !body.is_live(slot);
                if deleted {
                    buf.image.clear();
                    body.in_place(&table.layout, slot).to_image(&mut buf.image);
                }
                if matches!(entry.undo.change, Change::Insert) {
                    table.moves.forget(entry.row);
                }
                // Who checks stale entries looks at all versions that are left.
                let gone = body.collect(&table.layout, slot, &entry.undo, !entry.stale.is_empty());
                for (index, stale) in &entry.stale {
                    rows::remove_unless_needed(table, &body, slot, entry.row, *index as usize, stale);
                }
                drop(body);
                if gone && deleted {
                    rows::remove_entries(table, &buf.row(&table.layout), entry.row);
                }
                return;
            }
            SegmentState::Cold(cold) => {
                let mut deletes = cold.deletes.body.write();
                if deletes.closed {
                    drop(deletes);
                    std::thread::yield_now();
                    continue;
                }
                let gone = deletes.collect(ordinal, &entry.undo);
                drop(deletes);
                // If the block can not be read, entries too many stay: harmless, since visits see the delete.
                if gone && matches!(rows::cold_image(table, cold, ordinal, &mut buf.image), Ok(true)) {
                    rows::remove_entries(table, &buf.row(&table.layout), entry.row);
                }
                return;
            }
        }
    }
}
