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
//! Versions are counted with the bytes that they hold: few large before-images are as much as many small ones, to those who merge
//! and to the memory budget.
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
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering};

use avocet_base::{RowId, Timestamp};
use avocet_storage::Undo;
use avocet_storage::relation::pin;
use parking_lot::Mutex;

use crate::activity::CountedAs;
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
    /// What the version held beside itself when it was made ([`Link::bytes`](avocet_storage::version::Link::bytes)).
    pub bytes: u32,
    pub counted: CountedAs,
}

/// What a committed transaction leaves behind.
pub(crate) struct Leftover {
    pub ts: Timestamp,
    pub lists: Lists,
    /// Of its entries.
    pub bytes: usize,
}

pub(crate) struct Garbage {
    fresh: Mutex<VecDeque<Leftover>>,
    fresh_versions: AtomicUsize,
    fresh_bytes: AtomicUsize,
    keeper: Mutex<Keeper>,
    kept_versions: AtomicUsize,
    /// As the keeper counts them.
    kept_bytes: AtomicIsize,
    /// So many bytes of before-images may wait to be collected before they are merged, however few versions they are.
    unmerged_bytes: usize,
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
/// Or this share of the memory limit.
const UNMERGED_SHARE: usize = 64;
/// Who has left so many bytes merges one more version: whoever changes large values pays for what waits before these, too.
const BYTES_PER_MERGE: usize = 1 << 10;

impl Garbage {
    /// Of an engine with a limit of memory.
    pub fn new(memory_limit: usize) -> Self {
        Self {
            fresh: Mutex::default(),
            fresh_versions: AtomicUsize::new(0),
            fresh_bytes: AtomicUsize::new(0),
            keeper: Mutex::default(),
            kept_versions: AtomicUsize::new(0),
            kept_bytes: AtomicIsize::new(0),
            unmerged_bytes: memory_limit / UNMERGED_SHARE,
            straggling: AtomicU64::new(0),
            spare: Mutex::default(),
        }
    }

    pub fn push(&self, leftover: Leftover) {
        let mut fresh = self.fresh.lock();
        self.fresh_versions.fetch_add(leftover.lists.undo.len(), Ordering::Relaxed);
        if leftover.bytes > 0 {
            self.fresh_bytes.fetch_add(leftover.bytes, Ordering::Relaxed);
        }
        // Threads may push a little out of order; the queue is kept sorted, so that its front is the oldest.
        let at = fresh.iter().rposition(|l| l.ts <= leftover.ts).map_or(0, |p| p + 1);
        fresh.insert(at, leftover);
    }

    /// Hands the oldest transaction to the keeper, who counts its bytes from now on.
    fn pop_if(&self, keeper: &mut Keeper, predicate: impl FnOnce(&Leftover) -> bool) -> Option<Leftover> {
        let leftover = self.fresh.lock().pop_front_if(|front| predicate(front))?;
        self.fresh_versions.fetch_sub(leftover.lists.undo.len(), Ordering::Relaxed);
        if leftover.bytes > 0 {
            self.fresh_bytes.fetch_sub(leftover.bytes, Ordering::Relaxed);
            keeper.bytes += leftover.bytes as isize;
        }
        Some(leftover)
    }

    /// Whether more waits to be merged than is left alone.
    fn is_much(&self) -> bool {
        self.fresh_versions.load(Ordering::Relaxed) > UNMERGED
            || self.fresh_bytes.load(Ordering::Relaxed) > self.unmerged_bytes
    }

    fn note_kept(&self, keeper: &Keeper) {
        self.kept_versions.store(keeper.versions(), Ordering::Relaxed);
        self.kept_bytes.store(keeper.bytes, Ordering::Relaxed);
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

    /// Bytes of their before-images and of the index entries that only they need.
    pub fn bytes(&self) -> usize {
        let kept = self.kept_bytes.load(Ordering::Relaxed);
        self.fresh_bytes.load(Ordering::Relaxed).saturating_add_signed(kept)
    }

    /// Collects at most `most` transactions of at most `versions` each that every snapshot from `oldest` on has seen
    /// commit. A larger one stays, and those behind it. Does nothing if somebody else is at it.
    pub fn collect(&self, oldest: Timestamp, most: usize, versions: usize) -> usize {
        let Some(mut keeper) = self.keeper.try_lock() else { return 0 };
        let done = (0..most).take_while(|_| self.collect_next(&mut keeper, oldest, versions)).count();
        self.note_kept(&keeper);
        done
    }

    /// Collects all that every snapshot from `oldest` on has seen commit.
    pub fn collect_all(&self, oldest: Timestamp) {
        let mut keeper = self.keeper.lock();
        while self.collect_next(&mut keeper, oldest, usize::MAX) {}
        self.note_kept(&keeper);
    }

    fn collect_next(&self, keeper: &mut Keeper, oldest: Timestamp, versions: usize) -> bool {
        if !keeper.is_empty() {
            return keeper.collect(self, oldest, versions);
        }
        match self.pop_if(keeper, |front| front.ts <= oldest && front.lists.undo.len() <= versions) {
            Some(leftover) => {
                collect_entries(&leftover.lists, &leftover.lists.undo, keeper);
                self.keep_lists(leftover.lists);
                true
            }
            None => false,
        }
    }

    /// How many versions whoever has left some of so many bytes merges: twice as many, so that what waits grows less.
    pub fn share_of_merging(versions: usize, bytes: usize) -> usize {
        2 * versions + bytes / BYTES_PER_MERGE
    }

    /// Merges about so many versions that an old snapshot holds up, if there are many. Does nothing if somebody else is at it.
    pub fn merge(&self, snapshots: &Snapshots, versions: usize) -> usize {
        if !self.is_much() {
            return 0;
        }
        let Some(mut keeper) = self.keeper.try_lock() else { return 0 };
        let done = keeper.merge(self, snapshots, versions, &|| self.is_much());
        self.note_kept(&keeper);
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
        self.note_kept(&keeper);
    }

    /// Merges all that waits to be.
    pub fn merge_fresh(&self, snapshots: &Snapshots) {
        let mut keeper = self.keeper.lock();
        keeper.merge(self, snapshots, usize::MAX, &|| true);
        self.note_kept(&keeper);
    }

    /// Merges all that can be merged now.
    pub fn merge_all(&self, snapshots: &Snapshots) {
        let mut keeper = self.keeper.lock();
        keeper.merge(self, snapshots, usize::MAX, &|| true);
        keeper.renew_horizon(snapshots);
        keeper.look_at_all_again();
        // Those that were taken in after they had been looked at.
        keeper.look_at_all_again();
        self.note_kept(&keeper);
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
        let freed: usize = some.iter().map(|entry| row::collect(table(entry), entry, &mut keeper.buf)).sum();
        keeper.bytes -= freed as isize;
    }
}

#[cfg(test)]
mod tests {
    use avocet_base::Env;
    use avocet_base::env::sim::SimDisk;
    use avocet_types::{Collation, ColumnDef, Datum, IndexDef, SqlType, TableDef};

    use crate::engine::{Engine, EngineOptions};
    use crate::txn::TxnOptions;
    use std::sync::Arc;

    /// A thread may be held up between its commit and the handing over of what that has left.
    #[test]
    fn a_commit_that_is_handed_over_late_leaves_no_entry() {
        let env = Env { disk: Arc::new(SimDisk::new()), ..Env::os() };
        let options = EngineOptions { env, background: false, ..EngineOptions::new("/data") };
        let engine = Engine::open(options).expect("it opens");
        engine.create_database("d", Collation::DEFAULT).expect("created");
        let columns = ["k", "other"].map(|name| ColumnDef::new(name, SqlType::BIGINT)).to_vec();
        let def = TableDef::new("d", "t", columns, vec![IndexDef::secondary("k", &[0])]);
        let table = engine.create_table(def).expect("created");
        let commit = |txn: crate::txn::Txn| txn.commit().expect("logged").wait().expect("durable");
        let mut txn = engine.begin(TxnOptions::default());
        let row = txn.insert(&table, &[Datum::Int(1), Datum::Int(1)]).expect("inserted");
        commit(txn);
        engine.collector().collect_all();
        let old = engine.begin(TxnOptions::default());
        for change in [(0, Datum::Int(2)), (1, Datum::Int(2))] {
            let mut txn = engine.begin(TxnOptions::default());
            txn.update(&table, row, &[change]).expect("updated").expect("in its place");
            commit(txn);
        }
        let entries = || table.indexes[0].tree.len();
        assert_eq!(entries(), 2);
        let late = engine.garbage.fresh.lock().pop_front().expect("the first of two");
        old.rollback();
        engine.collector().collect_all();
        assert_eq!(entries(), 1);
        engine.garbage.push(late);
        engine.collector().collect_all();
        assert_eq!(entries(), 1);
        assert_eq!(engine.garbage.fresh.lock().len(), 0);
    }
}
