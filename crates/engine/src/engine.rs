//! The engine: the services that transactions need, put together. Transactions, DDL, recovery and the background threads stand on it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use avocet_base::{Env, IndexId, Lsn, Timestamp};
use avocet_log::{Compression, Durability, LogFollower, LogWriter};
use avocet_storage::relation::RowsPerSegment;
use avocet_types::{Datum, RowRef, Value};
use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::activity::{Activity, RowCounts};
use crate::blocks::Blocks;
use crate::buffers::BufferPool;
use crate::capture::Capture;
use crate::catalog::Catalog;
use crate::checkpoint::{CheckpointState, Checkpointer};
use crate::claim::Claim;
use crate::commit::Pipeline;
use crate::entries::MAX_IMAGE_BYTES;
use crate::error::Result;
use crate::freeze::{Freezer, FreezerState};
use crate::garbage::{Collector, Garbage};
use crate::health::Health;
use crate::locks::{RowLockWaits, RowLocks, WaitHook};
use crate::memory::MemoryBudget;
use crate::metadata_lock::{MetadataLock, MetadataWaits};
use crate::origins::Origins;
use crate::pace::{BackgroundStats, PaceCounters, Pacer};
use crate::procedure::Procedures;
use crate::procedure::logical::CallGate;
use crate::redo::Origin;
use crate::rules;
use crate::serial::Serial;
use crate::signals::Signals;
use crate::snapshots::Snapshots;
use crate::table::{RuleCompiler, TableHandle};
use crate::temporary::TemporaryTables;
use crate::txn::{Txn, TxnOptions};
use crate::underway::Underway;
use crate::withheld::Withheld;

/// When rows move from hot pages to column blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FreezePolicy {
    /// Segments that have not changed for a while.
    Auto,
    Never,
    /// Whatever can be frozen, before each transaction: for tests.
    Always,
}

/// A rule of isolation that a test has the engine break, to see whether its checker notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BrokenRule {
    /// A transaction keeps its snapshot.
    KeepSnapshot,
    /// Strictly, a row that has changed since the snapshot cannot be changed.
    FirstWriterWins,
    /// What a serializable transaction read is validated.
    Validate,
    /// Rows that come to be where a serializable transaction looked count as changed.
    CountPhantoms,
    /// A change counts by the row as it was, too.
    CountBefore,
}

#[derive(Clone)]
pub struct EngineOptions {
    pub data: PathBuf,
    pub env: Env,
    /// Where blocks and checkpoints go: an object store's URL; a directory in `data` if none.
    pub store_url: Option<String>,
    /// Bytes of memory for all that grows with the data and the load; see [`crate::memory`].
    pub memory_limit: usize,
    /// The process is the engine's own: what it has in memory beside what is counted comes out of the limit, too.
    pub owns_process: bool,
    pub log_segment_bytes: u64,
    pub log_compression: Compression,
    /// A checkpoint begins when the log has grown by so many bytes since the last one.
    pub checkpoint_log_bytes: u64,
    /// How much checkpoints, freezing and compaction write in a second while there is no need for more; 0 for as much as
    /// they can. There is need when the log or the tables' memory are over what they should be.
    pub background_bytes_per_second: u64,
    pub freeze: FreezePolicy,
    /// What a commit is to have survived when it is acknowledged, unless its transaction says otherwise.
    pub durability: Durability,
    /// Threads for collection, freezing and checkpoints; without them the caller does it.
    pub background: bool,
    /// Native procedures. Those that the log may hold calls of have to be here for recovery.
    pub procedures: Procedures,
    /// For tables whose definitions have expressions: recovery needs it where the log has calls of procedures that write there.
    pub rule_compiler: Option<RuleCompiler>,
    /// The log also has what those need who tell others of changes: see [`crate::ChangeStream`], which is then to be read.
    pub capture_changes: bool,
    /// For tests of tests.
    #[doc(hidden)]
    pub broken_rule: Option<BrokenRule>,
    /// The redo that one transaction may have; for tests, less than fits a record of the log.
    #[doc(hidden)]
    pub max_redo_bytes: usize,
    /// Fewer rows in a segment than usual, so that few rows are in many.
    #[doc(hidden)]
    pub rows_per_segment: RowsPerSegment,
    /// To measure what updates in place bring: every changed row moves, as those of column blocks do.
    #[doc(hidden)]
    pub updates_move_rows: bool,
}

/// A tenth of what a modest disk takes, and enough for a checkpoint of a GiB within 16 seconds.
const BACKGROUND_BYTES_PER_SECOND: u64 = 64 << 20;

/// What is left of a record beside redo: a transaction looks at its redo in steps, and the last one may end with a row as it was
/// and as it is; the stamp and the origin follow at the commit.
const REST_OF_RECORD: usize = 2 * MAX_IMAGE_BYTES + (16 << 20);
const MAX_REDO_BYTES: usize = avocet_log::MAX_PAYLOAD - REST_OF_RECORD;

impl EngineOptions {
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            env: Env::os(),
            store_url: None,
            memory_limit: crate::memory::default_limit(),
            owns_process: false,
            log_segment_bytes: 64 << 20,
            log_compression: Compression::default(),
            checkpoint_log_bytes: 512 << 20,
            background_bytes_per_second: BACKGROUND_BYTES_PER_SECOND,
            freeze: FreezePolicy::Auto,
            durability: Durability::Sync,
            background: true,
            procedures: Procedures::default(),
            rule_compiler: None,
            capture_changes: false,
            broken_rule: None,
            max_redo_bytes: MAX_REDO_BYTES,
            rows_per_segment: RowsPerSegment::default(),
            updates_move_rows: false,
        }
    }
}

impl EngineOptions {
    /// Where blocks and checkpoints are.
    pub(crate) fn objects_url(&self) -> String {
        let local = self.data.join("store");
        self.store_url.clone().unwrap_or_else(|| local.to_string_lossy().into_owned())
    }
}

/// What an engine is put together from.
pub(crate) struct Parts {
    pub options: EngineOptions,
    pub catalog: Catalog,
    pub snapshots: Arc<Snapshots>,
    pub log: Arc<LogWriter>,
    pub last: Timestamp,
    pub blocks: Blocks,
    pub origins: Origins,
    pub checkpoints: CheckpointState,
    pub claim: Claim,
    pub capture: Capture,
}

pub struct Engine {
    pub(crate) options: EngineOptions,
    pub(crate) catalog: ArcSwap<Catalog>,
    pub(crate) temporary: TemporaryTables,
    /// A change of the catalog is logged, or about to be, and not published yet.
    pub(crate) catalog_changing: AtomicBool,
    /// Held by DDL from its check until its record is visible and its catalog published.
    pub(crate) ddl: Mutex<()>,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) pipeline: Pipeline,
    pub(crate) garbage: Garbage,
    pub(crate) buffers: BufferPool,
    pub(crate) row_locks: RowLocks,
    pub(crate) activity: Activity,
    pub(crate) metadata_waits: MetadataWaits,
    /// Held by whoever changes definitions as by a transaction that changes a table, and READ by whoever has all tables locked.
    pub(crate) definitions: Arc<MetadataLock>,
    /// Held likewise by whoever changes definitions, and READ by LOCK INSTANCE FOR BACKUP.
    pub(crate) backups: Arc<MetadataLock>,
    pub(crate) serial: Serial,
    /// How far other sources' transactions are in force.
    pub(crate) origins: Origins,
    pub(crate) call_gate: Arc<CallGate>,
    pub(crate) blocks: Blocks,
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) next_txn: AtomicU64,
    pub(crate) checkpoints: Mutex<CheckpointState>,
    /// See [`Checkpointer::redo_from`].
    pub(crate) redo_from: AtomicU64,
    pub(crate) underway: Underway,
    pub(crate) pace: PaceCounters,
    pub(crate) freezing: FreezerState,
    key_latches: Box<[Mutex<()>]>,
    wait_hook: RwLock<WaitHook>,
    rule_compiler: OnceLock<RuleCompiler>,
    pub(crate) health: Health,
    pub(crate) signals: Arc<Signals>,
    /// Held as long as the engine is open.
    pub(crate) claim: Claim,
    pub(crate) withheld: Withheld,
    pub(crate) capture: Capture,
}

const KEY_LATCHES: usize = 256;

impl Engine {
    pub(crate) fn assemble(parts: Parts) -> Self {
        Self {
            catalog: ArcSwap::from_pointee(parts.catalog),
            temporary: TemporaryTables::default(),
            catalog_changing: AtomicBool::new(false),
            ddl: Mutex::new(()),
            snapshots: parts.snapshots,
            pipeline: Pipeline::new(parts.log, parts.last),
            garbage: Garbage::new(parts.options.memory_limit),
            buffers: BufferPool::default(),
            row_locks: RowLocks::default(),
            activity: Activity::default(),
            metadata_waits: MetadataWaits::default(),
            definitions: Arc::default(),
            backups: Arc::default(),
            serial: Serial::new(parts.options.memory_limit),
            origins: parts.origins,
            call_gate: Arc::default(),
            memory: Arc::new(MemoryBudget::new(
                parts.options.memory_limit,
                parts.blocks.cache.clone(),
                parts.options.owns_process,
            )),
            blocks: parts.blocks,
            next_txn: AtomicU64::new(1),
            redo_from: AtomicU64::new(parts.checkpoints.current.redo_from.0),
            underway: Underway::default(),
            checkpoints: Mutex::new(parts.checkpoints),
            pace: PaceCounters::default(),
            freezing: FreezerState::default(),
            key_latches: (0..KEY_LATCHES).map(|_| Mutex::new(())).collect(),
            wait_hook: RwLock::new(Arc::new(|wait| wait())),
            rule_compiler: parts.options.rule_compiler.map_or_else(OnceLock::new, OnceLock::from),
            health: Health::default(),
            signals: Arc::default(),
            claim: parts.claim,
            withheld: Withheld::default(),
            capture: parts.capture,
            options: parts.options,
        }
    }

    pub(crate) fn breaks(&self, rule: BrokenRule) -> bool {
        self.options.broken_rule == Some(rule)
    }

    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// The version of the catalog as it is now.
    pub fn catalog_version(&self) -> u64 {
        self.catalog.load().version()
    }

    pub fn begin(self: &Arc<Self>, options: TxnOptions) -> Txn {
        if self.options.freeze == FreezePolicy::Always {
            // What cannot be frozen now (somebody uses it) is frozen later.
            let _ = self.freeze_all();
        }
        Txn::begin(self, options)
    }

    /// Called around every blocking wait for a lock.
    pub fn set_wait_hook(&self, hook: WaitHook) {
        *self.wait_hook.write() = hook;
    }

    /// When the newest transaction was committed that is in the log.
    pub fn last_commit(&self) -> Timestamp {
        self.pipeline.last_logged()
    }

    /// Waits until all that has been logged by now is visible. If the log has failed, the next commit says so.
    pub fn wait_until_visible(&self) {
        self.wait_until_shown(self.pipeline.last_logged());
    }

    pub(crate) fn wait_until_shown(&self, ts: Timestamp) {
        if ts > self.snapshots.visible() {
            (self.wait_hook())(&mut || drop(self.pipeline.log().flush()));
        }
    }

    /// How many transactions wait for a row and have not been woken yet: monitoring shows it, and schedulers of tests
    /// must know whether somebody is still on the way.
    pub fn sleeping_waiters(&self) -> usize {
        self.row_locks.sleepers()
    }

    /// For tables whose definitions have expressions, unless the options gave one.
    pub fn set_rule_compiler(&self, compiler: RuleCompiler) {
        self.rule_compiler.get_or_init(|| compiler);
    }

    /// What a table's hidden columns have in a row of its own columns that comes from a server whose rows have no such columns, by
    /// column.
    ///
    /// # Errors
    /// An expression that fails for this row.
    pub fn hidden_values(&self, table: &TableHandle, row: &[Datum<'_>]) -> Result<Vec<(usize, Value)>> {
        if !table.def.has_functional_parts() {
            return Ok(Vec::new());
        }
        match rules::of(table, self.rule_compiler(), || 0)? {
            Some((rules, _)) => rules::hidden_values(rules, table, &row),
            None => Ok(Vec::new()),
        }
    }

    /// Computes the generated columns that a row of a table's own columns lacks.
    ///
    /// # Errors
    /// An expression that fails for this row.
    pub fn fill_generated(
        &self,
        table: &TableHandle,
        row: &mut [Value],
        is_missing: &dyn Fn(usize) -> bool,
    ) -> Result<()> {
        match rules::of(table, self.rule_compiler(), || 0)? {
            Some((rules, _)) => rules::fill_generated(rules, table, row, is_missing),
            None => Ok(()),
        }
    }

    /// What follows from changes of a row, by column: its generated columns that are not among them, hidden ones too.
    ///
    /// # Errors
    /// An expression that fails for this row.
    pub fn generated_after(
        &self,
        table: &TableHandle,
        row: RowRef<'_>,
        changes: &[(usize, Value)],
    ) -> Result<Vec<(usize, Value)>> {
        match rules::of(table, self.rule_compiler(), || 0)? {
            Some((rules, _)) => rules::followed(rules, table, row, changes),
            None => Ok(Vec::new()),
        }
    }

    pub(crate) fn rule_compiler(&self) -> Option<RuleCompiler> {
        self.rule_compiler.get().copied()
    }

    pub(crate) fn wait_hook(&self) -> WaitHook {
        self.wait_hook.read().clone()
    }

    /// Serialises those who claim one key of a unique index.
    pub(crate) fn key_latch(&self, index: IndexId, key: &[u8]) -> MutexGuard<'_, ()> {
        use std::hash::BuildHasher;
        let hash = foldhash::fast::FixedState::with_seed(index.0.into()).hash_one(key);
        self.key_latches[hash as usize % KEY_LATCHES].lock()
    }

    /// The version of the catalog, unless it is being changed.
    pub(crate) fn settled_catalog_version(&self) -> Option<u64> {
        (!self.catalog_changing.load(Ordering::Acquire)).then(|| self.catalog_version())
    }

    pub(crate) fn collector(&self) -> Collector<'_> {
        Collector {
            garbage: &self.garbage,
            snapshots: &self.snapshots,
            catalog: &self.catalog,
            temporary: &self.temporary,
        }
    }

    pub(crate) fn freezer(&self) -> Freezer<'_> {
        Freezer {
            state: &self.freezing,
            catalog: &self.catalog,
            ddl: &self.ddl,
            underway: &self.underway,
            snapshots: &self.snapshots,
            pipeline: &self.pipeline,
            blocks: &self.blocks,
            memory: &self.memory,
            garbage: &self.garbage,
            health: &self.health,
            signals: &self.signals,
        }
    }

    pub(crate) fn checkpointer(&self) -> Checkpointer<'_> {
        Checkpointer {
            state: &self.checkpoints,
            redo_from: &self.redo_from,
            underway: &self.underway,
            catalog: &self.catalog,
            ddl: &self.ddl,
            snapshots: &self.snapshots,
            pipeline: &self.pipeline,
            blocks: &self.blocks,
            origins: &self.origins,
            health: &self.health,
            claim: &self.claim,
            capture: &self.capture,
        }
    }

    /// Collects every version that no snapshot needs any more.
    pub fn collect_all_garbage(&self) {
        self.collector().collect_all();
    }

    /// Merges all versions that no snapshot in use tells apart. This happens by and by as they become visible, so that an old
    /// snapshot does not keep all that came after it.
    pub fn prune_versions(&self) {
        self.collector().merge_all();
    }

    /// Freezes everything that nobody uses just now, the insert segments too. Returns how many segments stayed hot.
    pub fn freeze_all(&self) -> Result<usize> {
        self.freezer().freeze_all()
    }

    /// Makes recovery start here. Returns the log position that it would start from.
    pub fn checkpoint(&self) -> Result<Lsn> {
        self.checkpointer().checkpoint(Pacer::none())
    }

    /// Bytes that the log has grown by since the last checkpoint.
    pub(crate) fn log_since_checkpoint(&self) -> u64 {
        self.pipeline.log().durable_lsn().0.saturating_sub(self.redo_from.load(Ordering::Relaxed))
    }

    /// Rows that were changed by transactions that have committed.
    pub fn row_counts(&self) -> RowCounts {
        self.activity.rows()
    }

    pub fn row_lock_waits(&self) -> RowLockWaits {
        self.row_locks.waits()
    }

    /// What background work did.
    pub fn background_stats(&self) -> BackgroundStats {
        self.pace.stats()
    }

    /// What the engine's memory is used for.
    pub fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    /// Old versions of rows that are still kept.
    pub fn version_backlog(&self) -> usize {
        self.garbage.versions()
    }

    /// Bytes of values and index entries that these hold.
    pub fn version_bytes(&self) -> usize {
        self.garbage.bytes()
    }

    /// Stops the engine if the data directory, its log or its store are not those any more that were opened.
    pub(crate) fn check_directory(&self) {
        let checked = match self.pipeline.log().is_in_place() {
            Ok(true) => self.claim.check_in_place(),
            Ok(false) => Err(self.claim.moved()),
            Err(e) => Err(e.into()),
        };
        if let Err(e) = checked {
            self.health.stop(&e);
        }
    }

    /// Up to where the transactions of another source are in force here, if any ever were. A commit that is not durable yet counts.
    pub fn applied(&self, source: u32) -> Option<Origin> {
        self.origins.newest(source)
    }

    /// All of the log before this is durable.
    pub fn durable_lsn(&self) -> Lsn {
        self.pipeline.log().durable_lsn()
    }

    /// Reads the log from `from` on, and goes on as it grows; at most so many bytes of it are held back for that. See
    /// [`LogWriter::follow`].
    pub fn follow_log(&self, from: Lsn, most: u64) -> Result<LogFollower> {
        Ok(self.pipeline.log().follow(from, most)?)
    }

    /// The state of the log writer.
    pub fn log_stats(&self) -> avocet_log::LogStats {
        self.pipeline.log().stats()
    }

    /// Ends background work, writes a checkpoint and closes the log. Running transactions must have ended.
    ///
    /// # Errors
    /// Why the engine had stopped, too, if it had.
    pub fn shutdown(&self) -> Result<()> {
        if self.signals.shut.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        self.signals.end();
        self.check_directory();
        self.capture.close();
        let healthy = self.health.check();
        let checkpointed = match healthy {
            Ok(()) => self.checkpoint().map(drop),
            Err(_) => Ok(()),
        };
        self.pipeline.log().close()?;
        checkpointed.and(healthy)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.signals.end();
        self.capture.close();
        // Whoever wants to know whether the end went well calls `shutdown`.
        let _ = self.pipeline.log().close();
    }
}
