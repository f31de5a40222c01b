//! Who collects old versions: committing threads a little each, a thread in the background what stays behind.

use std::sync::atomic::Ordering;

use avocet_base::Timestamp;

use super::Garbage;
use crate::catalog::Catalog;
use crate::snapshots::Snapshots;
use crate::temporary::TemporaryTables;

/// Versions that the collecting thread merges before it lets committing threads do some again.
const MERGED_AT_A_TIME: usize = 4 << 10;

/// Collects and merges what no snapshot in use needs, or tells apart.
pub(crate) struct Collector<'e> {
    pub garbage: &'e Garbage,
    pub snapshots: &'e Snapshots,
    pub catalog: &'e arc_swap::ArcSwap<Catalog>,
    pub temporary: &'e TemporaryTables,
}

impl Collector<'_> {
    /// Collects at most so many transactions, of at most so many versions each.
    pub fn collect(&self, most: usize, versions: usize) -> usize {
        self.garbage.collect(self.snapshots.oldest(), most, versions)
    }

    /// Collects every version that no snapshot needs any more.
    pub fn collect_all(&self) {
        self.garbage.collect_all(self.snapshots.oldest());
    }

    /// Merges about so many of the versions that an old snapshot holds up, if there are many.
    pub fn merge(&self, versions: usize) -> usize {
        self.garbage.merge(self.snapshots, versions)
    }

    /// Merges all versions that nobody has looked at yet, few as they may be: memory is scarce.
    pub fn merge_fresh(&self) {
        self.garbage.merge_fresh(self.snapshots);
    }

    /// Merges all versions that no snapshot in use tells apart.
    pub fn merge_all(&self) {
        self.garbage.merge_all(self.snapshots);
    }

    /// Collects what had been committed when this was called the last time; `now` is the newest commit.
    pub fn collect_stragglers(&self, now: Timestamp) {
        let before = Timestamp(self.garbage.straggling.swap(now.0, Ordering::Relaxed));
        while self.garbage.collect(self.snapshots.oldest().min(before), 256, usize::MAX) > 0 {}
        while self.merge(MERGED_AT_A_TIME) > 0 {}
        self.garbage.merge_again(self.snapshots, MERGED_AT_A_TIME);
    }

    /// Frees the version vectors of hot pages that have no versions just now.
    pub fn free_version_vectors(&self) {
        self.catalog.load().tables().for_each(|table| table.relation.free_version_vectors());
        self.temporary.all().iter().for_each(|table| table.relation.free_version_vectors());
    }
}
