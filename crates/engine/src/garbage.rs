//! Collection of old versions.
//!
//! ```text
//!  commit ─▶ fresh: transactions, in commit order ─────────────────────────▶ collected: every snapshot in use is past them
//!              │ visible, and an older snapshot holds them up                   ▲
//!              └─▶ merged with what no snapshot tells from them ─▶ kept ────────┘
//! ```
//!
//! A committed transaction leaves its undo records here. Once every snapshot in use is at or past its timestamp, nobody can
//! need its before-images: they are cut off their chains, rows that it deleted are wiped, and index entries that only old
//! versions needed are removed.
//!
//! What an old snapshot holds up is merged as it becomes visible (`storage::version::merge`): of a row that changes again
//! and again, one version is kept for each gap between snapshots in use, and a row that came and went in one gap is collected
//! at once. So what is kept depends on how many rows were changed, not on how often (`kept.rs`).
//!
//! Committing threads do both, in proportion to what they have changed themselves, so the backlog does not grow whatever the
//! load is and however little time the background thread gets; that sees to what stays behind.
//!
//! Invariants:
//! 1. A slot without a chain has no stale index entries in the trees, so that it can be frozen as it is. Hence versions of
//!    a row are collected in commit order, by one collector at a time, and the entries that a version kept alive go under
//!    the same page latch as the version. Who has read an entry before that must look at the row's key.
//! 2. All that is kept was committed before all that is fresh, but for commits that were handed over late: of these, nothing
//!    is left to do.

mod collector;
mod kept;
mod row;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use avocet_base::{RowId, Timestamp};
use avocet_storage::Undo;
use avocet_storage::relation::pin;
use parking_lot::Mutex;

use crate::snapshots::Snapshots;
use crate::table::TableHandle;
pub(crate) use collector::Collector;
use kept::Keeper;

/// One version of a transaction: `table` is a position in its list of tables.
#[derive(Clone)]
pub(crate) struct UndoEntry {
    pub table: u16,
    pub row: RowId,
    pub undo: Arc<Undo>,
}

/// What a committed transaction leaves behind.
pub(crate) struct Leftover {
    pub ts: Timestamp,
    pub lists: Lists,
}

#[derive(Default)]
pub(crate) struct Garbage {
    fresh: Mutex<VecDeque<Leftover>>,
    fresh_versions: AtomicUsize,
    keeper: Mutex<Keeper>,
    kept_versions: AtomicUsize,
    /// The newest commit when stragglers were last collected.
    straggling: AtomicU64,
    /// Lists of transactions that are collected, empty, for those to come.
    spare: Mutex<Vec<Lists>>,
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
/// So many versions may wait to be collected before they are merged. Without an old snapshot there are hardly ever more.
const UNMERGED: usize = 16 << 10;

impl Garbage {
    pub fn push(&self, leftover: Leftover) {
        let mut fresh = self.fresh.lock();
        self.fresh_versions.fetch_add(leftover.lists.undo.len(), Ordering::Relaxed);
        // Threads may push a little out of order; the queue is kept sorted, so that its front is the oldest.
        let at = fresh.iter().rposition(|l| l.ts <= leftover.ts).map_or(0, |p| p + 1);
        fresh.insert(at, leftover);
    }

    fn pop_if(&self, predicate: impl FnOnce(&Leftover) -> bool) -> Option<Leftover> {
        let leftover = self.fresh.lock().pop_front_if(|front| predicate(front))?;
        self.fresh_versions.fetch_sub(leftover.lists.undo.len(), Ordering::Relaxed);
        Some(leftover)
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

    /// Versions that are not collected yet.
    pub fn versions(&self) -> usize {
        self.fresh_versions.load(Ordering::Relaxed) + self.kept_versions.load(Ordering::Relaxed)
    }

    /// Collects at most `most` transactions of at most `versions` each that every snapshot from `oldest` on has seen
    /// commit. A larger one stays, and those behind it. Does nothing if somebody else is at it.
    pub fn collect(&self, oldest: Timestamp, most: usize, versions: usize) -> usize {
        let Some(mut keeper) = self.keeper.try_lock() else { return 0 };
        let done = (0..most).take_while(|_| self.collect_next(&mut keeper, oldest, versions)).count();
        self.kept_versions.store(keeper.versions(), Ordering::Relaxed);
        done
    }

    /// Collects all that every snapshot from `oldest` on has seen commit.
    pub fn collect_all(&self, oldest: Timestamp) {
        let mut keeper = self.keeper.lock();
        while self.collect_next(&mut keeper, oldest, usize::MAX) {}
        self.kept_versions.store(keeper.versions(), Ordering::Relaxed);
    }

    fn collect_next(&self, keeper: &mut Keeper, oldest: Timestamp, versions: usize) -> bool {
        if !keeper.is_empty() {
            return keeper.collect(self, oldest, versions);
        }
        match self.pop_if(|front| front.ts <= oldest && front.lists.undo.len() <= versions) {
            Some(leftover) => {
                collect_entries(&leftover.lists, &leftover.lists.undo, keeper);
                self.keep_lists(leftover.lists);
                true
            }
            None => false,
        }
    }

    /// Merges about so many versions that an old snapshot holds up, if there are many. Does nothing if somebody else is at it.
    pub fn merge(&self, snapshots: &Snapshots, versions: usize) -> usize {
        if self.fresh_versions.load(Ordering::Relaxed) <= UNMERGED {
            return 0;
        }
        let Some(mut keeper) = self.keeper.try_lock() else { return 0 };
        let done = keeper.merge(self, snapshots, versions, UNMERGED);
        self.kept_versions.store(keeper.versions(), Ordering::Relaxed);
        done
    }

    /// Looks at some of what was merged again: a snapshot between may have gone.
    pub fn merge_again(&self, snapshots: &Snapshots, versions: usize) {
        if self.kept_versions.load(Ordering::Relaxed) == 0 {
            return;
        }
        let Some(mut keeper) = self.keeper.try_lock() else { return };
        keeper.renew_horizon(snapshots);
        keeper.look_again(versions);
        self.kept_versions.store(keeper.versions(), Ordering::Relaxed);
    }

    /// Merges all that can be merged now.
    pub fn merge_all(&self, snapshots: &Snapshots) {
        let mut keeper = self.keeper.lock();
        keeper.merge(self, snapshots, usize::MAX, 0);
        keeper.renew_horizon(snapshots);
        keeper.look_at_all_again();
        // Those that were taken in after they had been looked at.
        keeper.look_at_all_again();
        self.kept_versions.store(keeper.versions(), Ordering::Relaxed);
    }
}

/// Versions that are fetched at a time: more would be gone from the caches before their turn.
const AHEAD: usize = 64;

/// Some or all of the entries of lists.
fn collect_entries(lists: &Lists, entries: &[UndoEntry], keeper: &mut Keeper) {
    let table = |entry: &UndoEntry| &lists.tables[entry.table as usize];
    for some in entries.chunks(AHEAD) {
        let _pinned = pin();
        // They were changed a while ago.
        some.iter().for_each(|entry| table(entry).relation.prefetch_row(entry.row));
        some.iter().for_each(|entry| row::collect(table(entry), entry, &mut keeper.buf));
    }
}
