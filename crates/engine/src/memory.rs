//! One budget for memory: what may be used, by whom it is used, and what happens when it gets scarce.
//!
//! ```text
//!  0                                                                              limit
//!  ├── tables: hot pages, indexes, versions, definitions, txns ──┬── queries ──┬── cache ──┤
//!        grow with the data and with what is being changed        reserve       takes what is left
//! ```
//!
//! - The **cache** of column blocks has what the others leave, at least a sixteenth and at most half of the limit.
//! - **Queries** reserve before they allocate. A reservation that does not fit makes the cache shrink; if that is not
//!   enough it is refused, and the query spills or fails, alone.
//! - **Clients**: what connections buffer of the packets that they receive and send. They reserve as queries do, out of the
//!   same part.
//! - **Running transactions** are counted by what they have for redo and undo, in steps. Together they have `TRANSACTIONS_AT`
//!   of the limit; whoever wants more is refused by name, while there is memory to roll it back with.
//! - **Tables** are counted again when they have grown by a little, not reserved: a row write must be cheap. What is over the
//!   target is frozen early, insert segments too. While there is work to do, writers are slowed down, the more the nearer
//!   `REFUSE_AT` is; there they wait for it to be done (`memory/relief.rs`). Only when a round of it has freed nothing are
//!   rows refused, by the name of what takes the memory.
//! - **Work**: the copies of rows that freezing and loading make, and an index that is being built. Segments and blocks are bounded by bytes
//!   ([`MemoryBudget::segment_bytes`]), so that these fit beside the rest.
//!
//! - The **rest** of the process, if it is the engine's own (`memory/process.rs`): what it has in memory that is none of these.
//!
//! Hot pages have a target of their own: what indexes and the others leave of `FREEZE_AT`, but `HOT_AT_LEAST` as long as
//! there is room. So large indexes do not push out every hot segment.

mod process;
mod relief;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use avocet_storage::relation::Relation;
use avocet_storage::store::BlockCache;

use crate::catalog::Catalog;
use crate::error::{EngineError, Result};
use crate::table::TableHandle;
use process::Process;
pub(crate) use relief::Relief;

/// The share of the limit from which on tables are frozen early.
const FREEZE_AT: f64 = 0.6;
/// The share that hot pages may have however large indexes are, as long as all is not over `HOT_UNTIL`.
const HOT_AT_LEAST: f64 = 0.125;
const HOT_UNTIL: f64 = 0.8;
/// The share from which on writers are slowed down while there is something to freeze.
const SLOW_AT: f64 = 0.7;
/// The share from which on they wait, and are refused in the end.
const REFUSE_AT: f64 = 0.85;
/// The share that running transactions have for redo and undo.
const TRANSACTIONS_AT: f64 = 0.3;
/// The longest pause for a step ([`GROWTH_STEP`]) of a writer that is slowed down.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// Bytes that a writer adds before it tells the budget.
pub(crate) const GROWTH_STEP: usize = 64 << 10;
/// Tables are counted when they have grown by this share of the limit.
const COUNT_EVERY: usize = 64;
/// A segment that takes more than this share of the limit is closed: freezing it takes three times that for a while.
const SEGMENT_SHARE: usize = 32;
const LEAST_SEGMENT_BYTES: usize = 256 << 10;
const MOST_SEGMENT_BYTES: usize = 64 << 20;
/// The rest of the process is believed up to these parts of the limit: what it always has by tables, what it has for now by
/// queries and the cache.
const LEAST_SHARE_OF_REST: usize = 3;
const SHARE_OF_REST: usize = 3;
/// The part of the limit that queries have together whatever the rest of the process takes: most of that is memory that was
/// freed, and is with the allocator for some seconds yet.
const QUERIES_AT_LEAST: usize = 8;
/// What a segment may grow to by updates of its rows, in that.
const UPDATED_SEGMENT: usize = 4;
/// Copies of rows that are there at once while they are encoded: the arrays, a column's encoded sections, the block.
const COPIES: usize = 3;
/// The share of the machine's memory that is used unless told otherwise.
const SHARE_OF_MACHINE: f64 = 0.6;
/// What an old version of a row takes, about, with its part of what is kept of its transaction; its before-image comes to that.
pub(crate) const VERSION_BYTES: usize = 200;

/// Who uses how much, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    pub limit: usize,
    pub hot_pages: usize,
    pub indexes: usize,
    pub versions: usize,
    /// What tables take without rows: definitions, directories, what is known of column blocks.
    pub definitions: usize,
    /// Redo and undo of running transactions.
    pub transactions: usize,
    /// Copies that are being encoded.
    pub work: usize,
    pub queries: usize,
    /// What connections buffer.
    pub clients: usize,
    pub cache: usize,
    /// What the process has beside all these; zero if it is not the engine's own.
    pub rest: usize,
}

impl std::fmt::Display for MemoryUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { limit, hot_pages, indexes, versions, definitions, transactions, work, .. } = self;
        let Self { queries, clients, cache, rest, .. } = self;
        write!(
            f,
            "of {limit} bytes rows have {hot_pages}, indexes {indexes}, old versions of rows {versions}, definitions \
             {definitions}, transactions {transactions}, rows on their way to blocks {work}, queries {queries}, \
             connections {clients}, cached blocks {cache}, the rest of the process {rest}"
        )
    }
}

impl MemoryUse {
    /// What cannot be given up for others at once.
    fn of_tables(&self) -> usize {
        self.hot_pages + self.indexes + self.versions + self.definitions + self.transactions
    }

    /// The greatest part of that, and what makes it less.
    fn greatest(&self) -> (&'static str, &'static str) {
        let parts = [
            (
                self.hot_pages,
                (
                    "rows",
                    "end transactions that have been open for long, whose snapshots keep rows in memory",
                ),
            ),
            (self.indexes, ("indexes", "drop indexes or rows")),
            (self.versions, ("old versions of rows", "end transactions that have been open for long")),
            (self.definitions, ("definitions of tables", "drop tables")),
            (self.transactions, ("running transactions", "commit in smaller parts")),
        ];
        parts.into_iter().max_by_key(|(bytes, _)| *bytes).expect("there are parts").1
    }
}

/// How a writer stands to the budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    Ample,
    /// So long a pause for each step that a writer adds.
    Scarce(Duration),
    None,
}

/// The budget of one engine.
pub struct MemoryBudget {
    limit: usize,
    cache: Arc<BlockCache>,
    hot_pages: AtomicUsize,
    indexes: AtomicUsize,
    versions: AtomicUsize,
    definitions: AtomicUsize,
    transactions: AtomicUsize,
    work: AtomicUsize,
    /// Of queries and of clients.
    queries: AtomicUsize,
    clients: AtomicUsize,
    /// Bytes that writers have added since tables were counted.
    grown: AtomicUsize,
    /// There is something to freeze.
    over_target: AtomicBool,
    is_full: AtomicBool,
    pub(crate) relief: Relief,
    process: Option<Process>,
}

/// Memory that is used for a while.
pub(crate) struct Held<'b> {
    budget: &'b MemoryBudget,
    bytes: usize,
}

impl Held<'_> {
    /// Uses so much more; false if then there would be no room for rows any more.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        let budget = self.budget;
        if budget.tables() + budget.work.load(Relaxed) + bytes > budget.share(REFUSE_AT) {
            return false;
        }
        budget.work.fetch_add(bytes, Relaxed);
        self.bytes += bytes;
        budget.fit_cache();
        true
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.budget.work.fetch_sub(self.bytes, Relaxed);
        self.budget.fit_cache();
    }
}

impl MemoryBudget {
    pub(crate) fn new(limit: usize, cache: Arc<BlockCache>, owns_process: bool) -> Self {
        let budget = Self {
            limit,
            cache,
            hot_pages: AtomicUsize::new(0),
            indexes: AtomicUsize::new(0),
            versions: AtomicUsize::new(0),
            definitions: AtomicUsize::new(0),
            transactions: AtomicUsize::new(0),
            work: AtomicUsize::new(0),
            queries: AtomicUsize::new(0),
            clients: AtomicUsize::new(0),
            grown: AtomicUsize::new(0),
            over_target: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            relief: Relief::default(),
            process: owns_process.then(Process::default),
        };
        budget.fit_cache();
        budget
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Tables as last counted; the others as they are.
    pub fn in_use(&self) -> MemoryUse {
        let clients = self.clients.load(Relaxed);
        MemoryUse {
            limit: self.limit,
            hot_pages: self.hot_pages.load(Relaxed),
            indexes: self.indexes.load(Relaxed),
            versions: self.versions.load(Relaxed),
            definitions: self.definitions.load(Relaxed),
            transactions: self.transactions.load(Relaxed),
            work: self.work.load(Relaxed),
            // Two counters, read one after the other.
            queries: self.queries.load(Relaxed).saturating_sub(clients),
            clients,
            cache: self.cache.stats().size_bytes,
            rest: self.process.as_ref().map_or(0, Process::rest),
        }
    }

    /// What tables take, by the last count and what has come since; and what the process always has beside them.
    fn tables(&self) -> usize {
        let always = self.process.as_ref().map_or(0, Process::least).min(self.limit / LEAST_SHARE_OF_REST);
        self.in_use().of_tables() + self.grown.load(Relaxed) + always
    }

    /// What queries and the cache cannot have.
    fn taken(&self) -> usize {
        let process = self.process.as_ref().map_or(0, |process| process.rest() - process.least());
        self.tables() + self.work.load(Relaxed) + process.min(self.limit / SHARE_OF_REST)
    }

    fn share(&self, share: f64) -> usize {
        (self.limit as f64 * share) as usize
    }

    /// Rows of so many bytes are frozen, or loaded, at once: hot segments and blocks take no more when they have as many.
    pub fn segment_bytes(&self) -> usize {
        (self.limit / SEGMENT_SHARE).clamp(LEAST_SEGMENT_BYTES, MOST_SEGMENT_BYTES)
    }

    /// What a segment may grow to by updates in place.
    pub(crate) fn updated_segment_bytes(&self) -> usize {
        UPDATED_SEGMENT * self.segment_bytes()
    }

    /// The least that the cache is left with.
    fn cache_floor(&self) -> usize {
        self.limit / 16
    }

    fn fit_cache(&self) {
        let others = self.taken() + self.queries.load(Relaxed);
        let left = self.limit.saturating_sub(others);
        self.cache.set_capacity(left.clamp(self.cache_floor(), self.limit / 2));
    }

    /// Sets memory aside for a query; false if there is not enough.
    pub fn reserve(&self, bytes: usize) -> bool {
        let most = self.most_of_queries();
        let taken = self
            .queries
            .fetch_update(Relaxed, Relaxed, |queries| queries.checked_add(bytes).filter(|sum| *sum <= most));
        let Ok(before) = taken else { return false };
        self.follow(before, before + bytes);
        true
    }

    fn most_of_queries(&self) -> usize {
        let left = |others: usize| self.limit.saturating_sub(others + self.cache_floor());
        let counted = self.in_use().of_tables() + self.grown.load(Relaxed) + self.work.load(Relaxed);
        left(self.taken()).max(left(counted).min(self.limit / QUERIES_AT_LEAST))
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

    /// As [`Self::reserve`], for what a connection buffers.
    pub fn reserve_for_client(&self, bytes: usize) -> bool {
        let fits = self.reserve(bytes);
        if fits {
            self.clients.fetch_add(bytes, Relaxed);
        }
        fits
    }

    /// As [`Self::take`], for what a connection buffers.
    pub fn take_for_client(&self, bytes: usize) {
        self.clients.fetch_add(bytes, Relaxed);
        self.take(bytes);
    }

    /// Gives back what was reserved or taken for a client.
    pub fn release_of_client(&self, bytes: usize) {
        self.clients.fetch_sub(bytes, Relaxed);
        self.release(bytes);
    }

    /// Fits the cache to what queries leave, in steps of a sixteenth of the limit.
    fn follow(&self, before: usize, now: usize) {
        let step = (self.limit / 16).max(1);
        if before / step != now / step {
            self.fit_cache();
        }
    }

    /// Nothing yet.
    pub(crate) fn hold_nothing(&self) -> Held<'_> {
        Held { budget: self, bytes: 0 }
    }

    /// Rows of so many bytes are about to be encoded.
    pub(crate) fn hold_copies(&self, bytes: usize) -> Held<'_> {
        let bytes = bytes * COPIES;
        self.work.fetch_add(bytes, Relaxed);
        self.fit_cache();
        Held { budget: self, bytes }
    }

    /// A running transaction has `now` bytes for redo and undo, and had `before`. Unless it is `forced`, it is refused if there
    /// are more than transactions may have.
    pub(crate) fn charge_transaction(&self, before: usize, now: usize, forced: bool) -> Result<()> {
        let limit = self.share(TRANSACTIONS_AT);
        let charge = |all: usize| {
            let sum = (all + now).saturating_sub(before);
            (forced || now <= before || sum <= limit).then_some(sum)
        };
        match self.transactions.fetch_update(Relaxed, Relaxed, charge) {
            Ok(_) => Ok(()),
            Err(all) => Err(EngineError::TransactionTooLarge { own: now, all: all + now - before, limit }),
        }
    }

    /// A writer has added so many bytes of rows. True if tables should be counted.
    pub(crate) fn grow(&self, bytes: usize) -> bool {
        self.grown.fetch_add(bytes, Relaxed) + bytes >= self.limit / COUNT_EVERY
    }

    /// Counts what tables take; `versions` are the bytes of what is kept of older rows. Returns how much hot pages are over their target.
    pub(crate) fn count(&self, catalog: &Catalog, temporary: &[Arc<TableHandle>], versions: usize) -> usize {
        self.grown.store(0, Relaxed);
        let tables = || catalog.tables().chain(temporary);
        let hot: usize = tables().map(|table| Relation::hot_bytes(&table.relation)).sum();
        let indexes: u64 = tables().flat_map(|table| &table.indexes).map(|index| index.bytes()).sum();
        let fixed: usize = tables().map(|table| table.fixed_bytes()).sum();
        self.hot_pages.store(hot, Relaxed);
        self.indexes.store(indexes as usize, Relaxed);
        self.definitions.store(fixed, Relaxed);
        self.versions.store(versions, Relaxed);
        if let Some(process) = &self.process {
            let now = self.in_use();
            process.look(now.of_tables() + now.work + now.queries + now.clients + now.cache);
        }
        self.assess();
        self.fit_cache();
        self.over_target()
    }

    /// A segment of so many bytes is frozen.
    pub(crate) fn note_frozen(&self, bytes: usize) {
        let less = |hot: usize| Some(hot.saturating_sub(bytes));
        let _ = self.hot_pages.fetch_update(Relaxed, Relaxed, less);
        self.assess();
    }

    fn assess(&self) {
        self.over_target.store(self.over_target() > 0, Relaxed);
        self.is_full.store(self.tables() > self.share(REFUSE_AT), Relaxed);
    }

    fn over_target(&self) -> usize {
        let hot = self.hot_pages.load(Relaxed);
        let others = self.tables() - hot;
        let rest = |of: f64| self.share(of).saturating_sub(others);
        let target = rest(FREEZE_AT).max(rest(HOT_UNTIL).min(self.share(HOT_AT_LEAST)));
        hot.saturating_sub(target)
    }

    /// Whether hot pages took more at the last count than they should.
    pub(crate) fn is_short(&self) -> bool {
        self.over_target.load(Relaxed)
    }

    /// Whether rows must not be added now, by the last count.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Relaxed)
    }

    pub(crate) fn room(&self) -> Room {
        let (used, slow, full) = (self.tables(), self.share(SLOW_AT), self.share(REFUSE_AT));
        if used > full {
            self.is_full.store(true, Relaxed);
            return Room::None;
        }
        if used <= slow || !self.is_short() {
            return Room::Ample;
        }
        Room::Scarce(LONGEST_PAUSE.mul_f64((used - slow) as f64 / (full - slow).max(1) as f64))
    }

    pub(crate) fn out_of_memory(&self) -> EngineError {
        let (most_of_it, remedy) = self.in_use().greatest();
        EngineError::OutOfMemory { used: self.tables(), limit: self.limit, most_of_it, remedy }
    }

    /// There is no memory for rows that are to be loaded.
    pub(crate) fn nothing_left(&self) -> EngineError {
        let now = self.in_use();
        let queries = now.queries + now.clients;
        let (most_of_it, remedy) = match queries > now.of_tables() {
            true => ("queries and their results", "run fewer of them at once"),
            false => now.greatest(),
        };
        EngineError::OutOfMemory { used: self.taken() + queries, limit: self.limit, most_of_it, remedy }
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
        let budget = MemoryBudget::new(1600, cache, false);
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

    fn budget(limit: usize) -> MemoryBudget {
        MemoryBudget::new(limit, Arc::new(BlockCache::new(0)), false)
    }

    #[test]
    fn the_rest_of_the_process_leaves_queries_something() {
        let budget = MemoryBudget::new(100 << 20, Arc::new(BlockCache::new(0)), true);
        let process = budget.process.as_ref().expect("its own");
        process.note(5 << 20);
        process.note(150 << 20);
        budget.indexes.store(55 << 20, Relaxed);
        assert!(budget.reserve(12 << 20) && !budget.reserve(1 << 20));
        budget.release(12 << 20);
        budget.hot_pages.store(30 << 20, Relaxed);
        assert!(budget.reserve(8 << 20) && !budget.reserve(1 << 20), "tables come first");
    }

    #[test]
    fn indexes_do_not_push_out_all_hot_pages() {
        let budget = budget(1000);
        let over = |hot, indexes| {
            budget.hot_pages.store(hot, Relaxed);
            budget.indexes.store(indexes, Relaxed);
            budget.over_target()
        };
        assert_eq!((over(600, 0), over(601, 0), over(500, 200)), (0, 1, 100));
        assert_eq!((over(125, 500), over(125, 600), over(126, 600)), (0, 0, 1));
        assert_eq!((over(100, 700), over(101, 700), over(100, 750), over(100, 900)), (0, 1, 50, 100));
    }

    #[test]
    fn writers_are_slowed_down_while_something_can_be_frozen() {
        let budget = budget(1000);
        let room = |hot, indexes| {
            budget.hot_pages.store(hot, Relaxed);
            budget.indexes.store(indexes, Relaxed);
            budget.assess();
            budget.room()
        };
        assert_eq!((room(700, 0), room(0, 800)), (Room::Ample, Room::Ample));
        assert_eq!(room(775, 0), Room::Scarce(LONGEST_PAUSE / 2));
        assert_eq!((room(851, 0), room(1, 850)), (Room::None, Room::None));
        assert!(budget.is_full());
        budget.indexes.store(0, Relaxed);
        budget.hot_pages.store(800, Relaxed);
        assert!(!budget.grow(10) && budget.grow(41));
        assert_eq!(budget.room(), Room::None, "what has come since the count is counted");
        budget.note_frozen(200);
        assert!(!budget.is_full());
    }

    #[test]
    fn transactions_have_a_share_of_their_own() {
        let budget = budget(1000);
        budget.charge_transaction(0, 200, false).expect("there is room");
        budget.charge_transaction(0, 100, false).expect("there is room");
        let refused = budget.charge_transaction(100, 101, false).expect_err("there is no more");
        assert!(matches!(refused, EngineError::TransactionTooLarge { own: 101, all: 301, limit: 300 }));
        budget.charge_transaction(200, 0, false).expect("given back");
        budget.charge_transaction(100, 300, false).expect("there is room");
        budget.charge_transaction(0, 50, true).expect("forced");
        assert_eq!(budget.in_use().transactions, 350);
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(default_limit() > 64 << 20);
    }
}
