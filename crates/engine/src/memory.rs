//! One budget for memory: what may be used, by whom it is used, and what happens when it gets scarce.
//!
//! ```text
//!  0                                                                              limit
//!  ├──── tables: hot pages, indexes, old versions ────┬──── queries ────┬── cache ──┤
//!        grow with the data                             reserve, or fail   takes what is left
//! ```
//!
//! - The **cache** of column blocks has what the others leave, at least a sixteenth and at most half of the limit.
//! - **Queries** reserve before they allocate. A reservation that does not fit makes the cache shrink; if that is not
//!   enough it is refused, and the query spills or fails, alone.
//! - **Tables** are counted once in a while, not reserved: a row write must be cheap. Over `FREEZE_AT` of the limit
//!   segments are frozen before they are cool. Over `REFUSE_AT` writes that add rows fail, so that the server lives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use avocet_storage::relation::Relation;
use avocet_storage::store::BlockCache;

use crate::catalog::Catalog;
use crate::engine::Engine;
use crate::error::{EngineError, Result};

/// The share of the limit from which on tables are frozen early.
const FREEZE_AT: f64 = 0.6;
/// The share from which on rows are refused.
const REFUSE_AT: f64 = 0.85;
/// The share of the machine's memory that is used unless told otherwise.
const SHARE_OF_MACHINE: f64 = 0.6;
/// What an old version of a row takes, about, with its part of what is kept of its transaction.
const VERSION_BYTES: usize = 200;

/// Who uses how much, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    pub limit: usize,
    pub hot_pages: usize,
    pub indexes: usize,
    pub versions: usize,
    pub queries: usize,
    pub cache: usize,
}

/// The budget of one engine.
pub struct MemoryBudget {
    limit: usize,
    cache: Arc<BlockCache>,
    hot_pages: AtomicUsize,
    indexes: AtomicUsize,
    versions: AtomicUsize,
    queries: AtomicUsize,
    refuses_rows: AtomicBool,
}

impl MemoryBudget {
    pub(crate) fn new(limit: usize, cache: Arc<BlockCache>) -> Self {
        let budget = Self {
            limit,
            cache,
            hot_pages: AtomicUsize::new(0),
            indexes: AtomicUsize::new(0),
            versions: AtomicUsize::new(0),
            queries: AtomicUsize::new(0),
            refuses_rows: AtomicBool::new(false),
        };
        budget.fit_cache();
        budget
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Tables as last counted; the others as they are.
    pub fn in_use(&self) -> MemoryUse {
        MemoryUse {
            limit: self.limit,
            hot_pages: self.hot_pages.load(Relaxed),
            indexes: self.indexes.load(Relaxed),
            versions: self.versions.load(Relaxed),
            queries: self.queries.load(Relaxed),
            cache: self.cache.stats().size_bytes,
        }
    }

    fn tables(&self) -> usize {
        self.hot_pages.load(Relaxed) + self.indexes.load(Relaxed) + self.versions.load(Relaxed)
    }

    /// The least that the cache is left with.
    fn cache_floor(&self) -> usize {
        self.limit / 16
    }

    fn fit_cache(&self) {
        let others = self.tables() + self.queries.load(Relaxed);
        let left = self.limit.saturating_sub(others);
        self.cache.set_capacity(left.clamp(self.cache_floor(), self.limit / 2));
    }

    /// Sets memory aside for a query; false if there is not enough.
    pub fn reserve(&self, bytes: usize) -> bool {
        let most = self.limit.saturating_sub(self.tables() + self.cache_floor());
        let taken = self
            .queries
            .fetch_update(Relaxed, Relaxed, |queries| queries.checked_add(bytes).filter(|sum| *sum <= most));
        let Ok(before) = taken else { return false };
        self.follow(before, before + bytes);
        true
    }

    /// Counts memory that a query has taken already.
    pub fn take(&self, bytes: usize) {
        let before = self.queries.fetch_add(bytes, Relaxed);
        self.follow(before, before + bytes);
    }

    /// Gives back what was reserved or taken.
    pub fn release(&self, bytes: usize) {
        let before = self.queries.fetch_sub(bytes, Relaxed);
        self.follow(before, before.saturating_sub(bytes));
    }

    /// Fits the cache to what queries leave, in steps of a sixteenth of the limit.
    fn follow(&self, before: usize, now: usize) {
        let step = (self.limit / 16).max(1);
        if before / step != now / step {
            self.fit_cache();
        }
    }

    /// Counts what tables take. Returns how much of it is over what may stay hot.
    pub(crate) fn count(&self, catalog: &Catalog, version_backlog: usize) -> usize {
        let tables = || catalog.tables();
        let hot: usize = tables().map(|table| Relation::hot_bytes(&table.relation)).sum();
        let indexes: u64 = tables().flat_map(|table| &table.indexes).map(|index| index.bytes()).sum();
        self.hot_pages.store(hot, Relaxed);
        self.indexes.store(indexes as usize, Relaxed);
        self.versions.store(version_backlog * VERSION_BYTES, Relaxed);
        let in_tables = self.tables();
        self.refuses_rows.store(in_tables as f64 > REFUSE_AT * self.limit as f64, Relaxed);
        self.fit_cache();
        in_tables.saturating_sub((FREEZE_AT * self.limit as f64) as usize)
    }

    /// Whether tables took more at the last count than where freezing early begins.
    pub(crate) fn is_short(&self) -> bool {
        self.tables() as f64 > FREEZE_AT * self.limit as f64
    }

    /// Fails if rows must not be added now.
    #[inline]
    pub(crate) fn check_room(&self) -> Result<()> {
        match self.refuses_rows.load(Relaxed) {
            false => Ok(()),
            true => Err(EngineError::OutOfMemory { used: self.tables(), limit: self.limit }),
        }
    }
}

impl Engine {
    /// What the engine's memory is used for.
    pub fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    /// Counts what tables take and, if it is much, freezes what can be frozen.
    pub fn watch_memory(&self) -> Result<()> {
        let over = self.memory.count(&self.catalog(), self.version_backlog());
        if over > 0 {
            self.freeze_early(over)?;
            self.memory.count(&self.catalog(), self.version_backlog());
        }
        Ok(())
    }
}

/// The default limit: a share of the memory that this process may use.
pub fn default_limit() -> usize {
    (machine_memory() as f64 * SHARE_OF_MACHINE) as usize
}

/// Bytes of memory that the machine has, or that the process's control group allows.
fn machine_memory() -> usize {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<usize>().ok();
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let allowed = groups.iter().filter_map(|path| number(path)).min();
    let total = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        line.split_ascii_whitespace().nth(1)?.parse::<usize>().ok().map(|kib| kib << 10)
    });
    let total = total.unwrap_or(4 << 30);
    allowed.map_or(total, |allowed| allowed.min(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_take_from_the_cache_and_are_refused_in_the_end() {
        let cache = Arc::new(BlockCache::new(0));
        let budget = MemoryBudget::new(1600, cache);
        assert!(budget.reserve(1000));
        assert!(!budget.reserve(600), "a sixteenth is the cache's");
        assert!(budget.reserve(500));
        assert!(!budget.reserve(1));
        budget.take(300);
        assert_eq!(budget.in_use().queries, 1800);
        budget.release(1800);
        budget.hot_pages.store(1000, Relaxed);
        assert!(!budget.reserve(501) && budget.reserve(500));
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(default_limit() > 64 << 20);
    }
}
