//! Transactions: begin, statements, commit, rollback. Reads are in `txn/read.rs`, writes in `txn/write.rs`.

mod action;
mod ahead;
mod deferral;
mod footprint;
mod foreign;
mod hiding;
mod lead;
mod locking;
mod modify;
mod newest;
mod outside;
mod read;
mod serial;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use avocet_base::{BlockId, RowId, SegmentNo, Timestamp, TxnId};
use avocet_log::Durability;
use avocet_storage::hot::delta;
use avocet_storage::relation::{SegmentState, pin};
use avocet_storage::rows::RowLatch;
use avocet_storage::version::Change;
use avocet_storage::{Snapshot, TxnState, Undo};
use avocet_types::RowLayout;

pub use action::{LockHow, LockWait, RowChange, RowLock, Shown, TriedLock};
pub use ahead::{Ahead, KeyList};
pub use avocet_storage::hot::RowBuf;
pub use deferral::RowWait;
pub use read::ReadMode;

use crate::block_rows;
use crate::buffers::{Buffers, Scratch};
use crate::commit::CommitTicket;
use crate::engine::{BrokenRule, Engine};
use crate::entries;
use crate::error::{EngineError, Result};
use crate::garbage::{Leftover, Lists, UndoEntry};
use crate::locks::RowKey;
use crate::procedure::logical::Logical;
use crate::scan::{ScanRequest, TableScan};
use crate::serial::ReadSet;
use crate::snapshots::SnapshotGuard;
use crate::table::{IndexHandle, TableHandle};
use deferral::Deferral;
use footprint::Footprint;
use foreign::ForeignKeys;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    /// A snapshot per statement; locking reads and writes act on the newest committed rows.
    ReadCommitted,
    /// A snapshot per transaction; locking reads and writes act on the newest committed rows all the same.
    RepeatableRead,
    /// A snapshot per transaction for all that it does: what has changed since cannot be locked or changed.
    Snapshot,
    /// As `Snapshot`; and what was read must still be so at the commit of a transaction that changes anything.
    Serializable,
}

/// Which commits the snapshots of a transaction include.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Freshness {
    /// Those that are durable: whatever is read may be shown to anyone.
    Visible,
    /// Those that are logged, durable or not. What was read may be shown only once the transaction's ticket is
    /// done (which then waits even if nothing was changed). For procedures that answer once, at their end: a
    /// worker can run the next transaction before the last one is durable.
    Logged,
}

#[derive(Clone, Copy, Debug)]
pub struct TxnOptions {
    pub isolation: Isolation,
    pub freshness: Freshness,
    pub read_only: bool,
    pub lock_wait_timeout: Duration,
    /// What the commit is to have survived when it is acknowledged; as the engine has it if `None`.
    pub durability: Option<Durability>,
}

impl Default for TxnOptions {
    fn default() -> Self {
        Self {
            isolation: Isolation::RepeatableRead,
            freshness: Freshness::Visible,
            read_only: false,
            lock_wait_timeout: Duration::from_secs(50),
            durability: None,
        }
    }
}

/// A running transaction. Dropping it rolls it back.
pub struct Txn {
    engine: Arc<Engine>,
    options: TxnOptions,
    state: Arc<TxnState>,
    snapshot: SnapshotGuard,
    /// The newest commit that a locking read has met: later snapshots must include it.
    newest_met: Timestamp,
    /// A snapshot of REPEATABLE READ begins with the first read.
    has_read: AtomicBool,
    /// Nothing had been read before the running statement.
    is_first_read: bool,
    /// The running statement has read nothing either.
    is_first_access: AtomicBool,
    /// The running statement has read at its snapshot.
    statement_has_read: AtomicBool,
    /// A row is locked although it has changed since the snapshot.
    relaxed: bool,
    /// How often it has waited for a row.
    waits: AtomicU64,
    /// The row that the last conflict with the snapshot was about.
    conflict: Option<Conflict>,
    /// Of a serializable transaction that may write.
    reads: Option<Arc<ReadSet>>,
    tables: Vec<Arc<TableHandle>>,
    undo: Vec<UndoEntry>,
    /// How many of these are marks that hide a row from it.
    hides: usize,
    /// Rows that were gone from their place when they were to be modified.
    gone: Vec<RowId>,
    /// Rows that it holds shared.
    shared: Vec<RowKey>,
    loads: Vec<Load>,
    redo: Vec<u8>,
    row_changes: Vec<i64>,
    foreign: ForeignKeys,
    footprint: Footprint,
    finished: bool,
    scratch: Scratch,
    interrupted: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    deferral: Deferral,
    /// Of a call that may be logged as such, or that recovery runs again.
    logical: Option<Box<Logical>>,
}

/// A row that was to be locked, but had changed since the snapshot.
#[derive(Clone, Copy)]
struct Conflict {
    table: u16,
    row: RowId,
    exclusive: bool,
}

/// A column block that this transaction loaded.
pub(crate) struct Load {
    pub table: u16,
    pub segment: SegmentNo,
    pub block: BlockId,
    pub rows: u64,
}

/// Opens scans at one snapshot. Must not be used any more once its transaction's next statement changes rows.
#[derive(Clone)]
pub struct SnapshotReader {
    snapshot: SnapshotGuard,
    own: Arc<TxnState>,
    reads: Option<Arc<ReadSet>>,
}

impl SnapshotReader {
    pub fn ts(&self) -> Timestamp {
        self.snapshot.ts()
    }

    pub fn scan(&self, table: &Arc<TableHandle>, request: ScanRequest) -> TableScan {
        if let Some(reads) = &self.reads {
            reads.add_scan(table, &request.predicates);
        }
        TableScan::new(table.clone(), request, self.snapshot.clone(), self.own.clone())
    }
}

/// A point in a transaction that a failed statement goes back to.
#[derive(Clone, Copy, Debug)]
pub struct StatementMark {
    undo: usize,
    shared: usize,
    loads: usize,
    redo: usize,
}

/// A commit collects the versions of transactions that have at most so many.
const MOST_COLLECTED_BY_COMMIT: usize = 256;

impl Txn {
    pub(crate) fn begin(engine: &Arc<Engine>, options: TxnOptions) -> Self {
        let id = TxnId(engine.next_txn.fetch_add(1, Ordering::Relaxed));
        let Lists { tables, undo } = engine.garbage.spare_lists();
        let Buffers { redo, row_changes, scratch, carried } = engine.buffers.take();
        // Who writes nothing sees a state between two commits: that is serializable as it is.
        let validates = options.isolation == Isolation::Serializable && !options.read_only;
        Self {
            state: Arc::new(TxnState::new(id)),
            snapshot: match options.freshness {
                _ if validates => serial::begin(engine),
                Freshness::Visible => engine.snapshots.take(),
                Freshness::Logged => engine.snapshots.take_at(engine.pipeline.last_logged()),
            },
            is_first_read: true,
            is_first_access: AtomicBool::new(true),
            statement_has_read: AtomicBool::new(false),
            relaxed: false,
            waits: AtomicU64::new(0),
            conflict: None,
            reads: validates.then(Arc::default),
            newest_met: Timestamp::MIN,
            has_read: AtomicBool::new(false),
            options,
            tables,
            undo,
            hides: 0,
            gone: Vec::new(),
            shared: Vec::new(),
            loads: Vec::new(),
            redo,
            row_changes,
            foreign: ForeignKeys::default(),
            footprint: Footprint::new(carried),
            finished: false,
            scratch,
            interrupted: None,
            deferral: Deferral::default(),
            logical: None,
            engine: engine.clone(),
        }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn id(&self) -> TxnId {
        self.state.id()
    }

    pub fn options(&self) -> &TxnOptions {
        &self.options
    }

    pub fn snapshot_ts(&self) -> Timestamp {
        self.snapshot.ts()
    }

    /// Asked while the transaction waits for a lock; true ends the wait with `Interrupted`.
    pub fn set_interrupt(&mut self, asked: Arc<dyn Fn() -> bool + Send + Sync>) {
        self.interrupted = Some(asked);
    }

    /// Fails if somebody wants the transaction's statement to end.
    pub(crate) fn check_interrupted(&self) -> Result<()> {
        match self.interrupted.as_ref().is_some_and(|asked| asked()) {
            true => Err(EngineError::Interrupted),
            false => Ok(()),
        }
    }

    pub(crate) fn state(&self) -> &Arc<TxnState> {
        &self.state
    }

    pub(crate) fn redo(&mut self) -> &mut Vec<u8> {
        &mut self.redo
    }

    pub(crate) fn note_load(&mut self, load: Load) {
        self.row_changes[load.table as usize] += load.rows as i64;
        self.loads.push(load);
    }

    /// A scan of a table at the transaction's snapshot, its own changes included.
    pub fn scan(&self, table: &Arc<TableHandle>, request: ScanRequest) -> TableScan {
        self.note_read(|reads| reads.add_scan(table, &request.predicates));
        TableScan::new(table.clone(), request, self.snapshot.clone(), self.state.clone())
    }

    /// What scans at the transaction's snapshot, its own changes included, for threads that have not the transaction.
    pub fn reader(&self) -> SnapshotReader {
        self.has_read.store(true, Ordering::Relaxed);
        self.statement_has_read.store(true, Ordering::Relaxed);
        SnapshotReader { snapshot: self.snapshot.clone(), own: self.state.clone(), reads: self.reads.clone() }
    }

    /// The same at the newest snapshot: where a statement that changes rows looks for them, as it will lock their newest
    /// versions. Strictly, there is only the transaction's snapshot.
    pub fn newest_reader(&mut self) -> SnapshotReader {
        if self.is_strict() {
            return self.reader();
        }
        self.wait_until_visible();
        SnapshotReader { snapshot: self.engine.snapshots.take(), own: self.state.clone(), reads: None }
    }

    /// A reader for a statement that changes rows while it reads: it sees none of what the transaction does. `None` if that has
    /// changed or locked rows before, which such a reader would have to tell from those.
    pub fn reader_of_before(&mut self) -> Option<SnapshotReader> {
        if !self.undo.is_empty() || !self.loads.is_empty() {
            return None;
        }
        let mut reader = self.read_for_change(|txn| txn.reader());
        reader.own = Arc::new(TxnState::new(self.id()));
        Some(reader)
    }

    /// Reads what a statement needs in order to change rows: at REPEATABLE READ as it is now, as if it locked it, and
    /// without fixing the transaction's snapshot; at other levels as any read.
    pub fn read_for_change<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        if self.options.isolation != Isolation::RepeatableRead {
            return read(self);
        }
        let reader = self.newest_reader();
        self.read_at(&reader, read)
    }

    /// Reads at the snapshot that [`newest_reader`](Self::newest_reader) gave, without fixing the transaction's own.
    pub fn read_at<T>(&mut self, newest: &SnapshotReader, read: impl FnOnce(&mut Self) -> T) -> T {
        if self.is_strict() {
            return read(self);
        }
        let has_read = *self.has_read.get_mut();
        let own = std::mem::replace(&mut self.snapshot, newest.snapshot.clone());
        let result = read(self);
        self.snapshot = own;
        *self.has_read.get_mut() = has_read;
        result
    }

    /// Whether the rows that a statement found at a snapshot and then locked may be others by now, so that it has to look
    /// again: this transaction's locks have met a commit that the snapshot does not have. Not so at strict levels, where
    /// there is no other snapshot to look at: what is newer there, in a row that the statement locks, was an error.
    pub fn has_met_newer(&self, snapshot: Timestamp) -> bool {
        !self.is_strict() && self.newest_met > snapshot
    }

    /// Changes the lock wait time-out of later statements.
    pub fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.options.lock_wait_timeout = timeout;
    }

    /// Whether it changed any row so far.
    pub fn has_changes(&self) -> bool {
        !self.redo.is_empty()
    }

    fn view(&self) -> Snapshot<'_> {
        Snapshot { ts: self.snapshot.ts(), own: Some(&self.state) }
    }

    /// Begins a statement: READ COMMITTED, and a transaction that has read nothing yet, move to the newest snapshot.
    pub fn begin_statement(&mut self) -> StatementMark {
        self.is_first_read = !self.has_read.load(Ordering::Relaxed);
        self.is_first_access.store(self.is_first_read, Ordering::Relaxed);
        self.statement_has_read.store(false, Ordering::Relaxed);
        let moves = self.options.isolation == Isolation::ReadCommitted || self.is_first_read;
        if moves || self.engine.breaks(BrokenRule::KeepSnapshot) {
            self.renew_snapshot();
        }
        self.mark()
    }

    /// Fixes the snapshot now (START TRANSACTION WITH CONSISTENT SNAPSHOT).
    pub fn fix_snapshot(&mut self) {
        self.renew_snapshot();
        self.has_read.store(true, Ordering::Relaxed);
    }

    fn renew_snapshot(&mut self) {
        self.unhide_all();
        if self.options.freshness == Freshness::Logged && self.reads.is_none() {
            self.snapshot = self.engine.snapshots.take_at(self.engine.pipeline.last_logged());
            return;
        }
        self.wait_until_visible();
        match &self.reads {
            Some(_) => serial::renew(&self.engine, &mut self.snapshot),
            None => self.engine.snapshots.renew(&mut self.snapshot),
        }
    }

    /// A locking read saw a commit that is not yet durable: the next snapshot waits for it, so that the transaction does
    /// not see it vanish again. If the log has failed, the commit will say so.
    fn wait_until_visible(&self) {
        self.engine.wait_until_shown(self.newest_met);
    }

    /// Whether what has changed since the snapshot is out of reach.
    pub fn is_strict(&self) -> bool {
        matches!(self.options.isolation, Isolation::Snapshot | Isolation::Serializable)
    }

    /// Whether rows were changed since then.
    pub fn has_changed_since(&self, mark: &StatementMark) -> bool {
        self.redo.len() > mark.redo || self.loads.len() > mark.loads
    }

    /// Whether the statement that began last could be taken back and begin anew on another snapshot: nothing that was
    /// read before depends on this one.
    pub fn can_restart(&self) -> bool {
        self.is_strict() && self.is_first_read
    }

    /// Takes the statement back, with all that it has read, and moves on to a snapshot in which the row that it failed
    /// for is as it was met. That row is locked first, in turn: nobody can be overtaken at the same row again and
    /// again. Fails as a lock wait does.
    pub fn restart_statement(&mut self, mark: StatementMark) -> Result<()> {
        assert!(self.can_restart(), "the transaction has read something before");
        self.roll_back_to(mark);
        self.has_read.store(false, Ordering::Relaxed);
        if let Some(reads) = &self.reads {
            reads.clear();
        }
        let Some(conflict) = self.conflict.take() else { return Ok(()) };
        let table = self.tables[usize::from(conflict.table)].clone();
        let lock = RowLock { exclusive: conflict.exclusive, wait: LockWait::Wait };
        self.lock_and_move_on(conflict.table, &table, conflict.row, lock)
    }

    /// Locks a row that has changed since the snapshot, and moves on to a snapshot with that change. Only while nothing
    /// has been read at the one before.
    fn lock_and_move_on(&mut self, t: u16, table: &Arc<TableHandle>, id: RowId, lock: RowLock) -> Result<()> {
        self.relaxed = true;
        let mut buf = std::mem::take(&mut self.scratch.old);
        let locked = self.lock_touched(t, table, id, lock, &mut buf);
        self.scratch.old = buf;
        self.relaxed = false;
        locked?;
        self.renew_snapshot();
        // If the log has failed, the change never becomes visible.
        if self.newest_met > self.snapshot.ts() {
            self.engine.pipeline.log().flush()?;
        }
        Ok(())
    }

    fn note_read(&self, predicate: impl FnOnce(&ReadSet)) {
        self.has_read.store(true, Ordering::Relaxed);
        self.statement_has_read.store(true, Ordering::Relaxed);
        self.is_first_access.store(false, Ordering::Relaxed);
        if let Some(reads) = &self.reads {
            predicate(reads);
        }
    }

    /// As [`Self::note_read`], of a read that goes to the newest rows unless it is strict.
    fn note_locking_read(&self, predicate: impl FnOnce(&ReadSet)) {
        if self.is_strict() {
            self.note_read(predicate);
        }
    }

    pub fn mark(&self) -> StatementMark {
        StatementMark {
            undo: self.undo.len(),
            shared: self.shared.len(),
            loads: self.loads.len(),
            redo: self.redo.len(),
        }
    }

    /// Takes back everything since the mark; locks taken since are released too.
    pub fn rollback_statement(&mut self, mark: StatementMark) {
        self.roll_back_to(mark);
    }

    fn roll_back_to(&mut self, mark: StatementMark) {
        while self.undo.len() > mark.undo {
            let entry = self.undo.pop().expect("longer than the mark");
            self.undo_one(&entry);
        }
        for load in self.loads.drain(mark.loads..).rev().collect::<Vec<_>>() {
            let table = &self.tables[load.table as usize];
            block_rows::remove_entries(table, load.segment);
            table.relation.segment(load.segment).replace(SegmentState::Empty);
            self.give_back_load(table, load.segment);
            self.row_changes[load.table as usize] -= load.rows as i64;
            self.engine.blocks.discard(load.block);
        }
        self.redo.truncate(mark.redo);
        self.shrink_footprint();
        self.foreign.roll_back_to(&mark);
        self.unshare_rows(mark.shared);
    }

    /// Gives back the rows shared since there were so many of them.
    fn unshare_rows(&mut self, shared: usize) {
        if self.shared.len() > shared {
            self.engine.row_locks.unshare(&self.state, &self.shared[shared..]);
            self.shared.truncate(shared);
        }
    }

    /// After its end: whoever waits for it may go on.
    fn release_rows(&mut self) {
        if self.state.is_waited_for() {
            self.engine.row_locks.wake_waiters_of(&self.state);
        }
        self.unshare_rows(0);
    }

    /// A version of a row was taken back, under whose latch this is; `head` is the newest one now.
    fn note_taken_back(&self, table: &TableHandle, row: RowId, head: Option<&Arc<Undo>>) {
        let key = RowKey { table: table.id(), row };
        let locks = &self.engine.row_locks;
        if !self.state.is_waited_for() || !locks.may_be_contended(&key) {
            return;
        }
        match head.is_some_and(|head| Arc::ptr_eq(&head.txn, &self.state)) {
            true => locks.wake_watchers(&key),
            false => locks.give_back(&key, &self.state),
        }
    }

    /// A load was taken back.
    fn give_back_load(&self, table: &TableHandle, segment: SegmentNo) {
        if self.state.is_waited_for() {
            let is_of_it = |key: &RowKey| key.table == table.id() && key.row.segment() == segment;
            self.engine.row_locks.give_back_all(&self.state, is_of_it);
        }
    }

    fn undo_one(&mut self, entry: &UndoEntry) {
        let table = self.tables[entry.table as usize].clone();
        let rows = &mut self.row_changes[entry.table as usize];
        let change = Undone::of(&entry.undo, &table.layout);
        match change {
            Undone::Insert => {
                *rows -= 1;
                table.moves.forget(entry.row);
            }
            Undone::Delete => *rows += 1,
            Undone::Hide => self.hides -= 1,
            Undone::Update(_) | Undone::Lock => {}
        }
        let pinned = pin();
        let latched = table.relation.latch_versions(entry.row, &pinned);
        let mut row = latched.expect("a segment with a running transaction's versions stays");
        let has_entries = matches!(change, Undone::Insert | Undone::Update(_)) && !table.indexes.is_empty();
        if has_entries {
            row.keep_row(&mut self.scratch.old);
        }
        row.undo(&entry.undo);
        match &change {
            _ if !has_entries => {}
            Undone::Insert => {
                entries::remove_entries(&table, &self.scratch.old.row(&table.layout), entry.row);
            }
            Undone::Update(columns) => self.remove_changed_entries(&table, &row, entry.row, columns),
            Undone::Delete | Undone::Lock | Undone::Hide => {}
        }
        self.note_taken_back(&table, entry.row, row.head());
    }

    /// After the undo of an update: the entries that it had added go. `scratch.old` holds the row as it was changed.
    fn remove_changed_entries(
        &mut self,
        table: &TableHandle,
        row: &RowLatch<'_>,
        id: RowId,
        changed: &[usize],
    ) {
        let Scratch { old, key, .. } = &mut self.scratch;
        for (n, index) in table.indexes.iter().enumerate() {
            if changed.iter().any(|&c| index.uses(c)) {
                key.clear();
                index.entry(&old.row(&table.layout), id, key);
                entries::remove_unless_needed(table, row, id, n, key);
            }
        }
    }

    /// Remembers that the transaction uses a table, and holds its metadata lock till the end.
    fn touch(&mut self, table: &Arc<TableHandle>) -> Result<u16> {
        if let Some(at) = self.tables.iter().position(|t| Arc::ptr_eq(t, table)) {
            return Ok(at as u16);
        }
        let held = self.tables.iter().any(|t| Arc::ptr_eq(&t.metadata_lock, &table.metadata_lock));
        if !held && table.lock_shared(Duration::ZERO, &|| false).is_err() {
            self.meet_others();
            let interrupted = self.interrupted.as_deref();
            let interrupted = || interrupted.is_some_and(|asked| asked());
            let mut outcome = Ok(());
            (self.engine.wait_hook())(&mut || {
                outcome = table.lock_shared(self.options.lock_wait_timeout, &interrupted);
            });
            outcome?;
        }
        self.tables.push(table.clone());
        self.row_changes.push(0);
        Ok((self.tables.len() - 1) as u16)
    }

    /// Holds the table's definition till the end of the transaction, for a statement that has not read anything yet and
    /// will read the table at its snapshot.
    ///
    /// # Errors
    /// `StaleDefinition` if the handle is not the table any more: it is to be looked up again. `DefinitionChanged` if the
    /// transaction's snapshot is from before the table was made.
    pub fn use_table(&mut self, table: &Arc<TableHandle>) -> Result<()> {
        self.hold_definition(table)?;
        self.reach_definition(table)
    }

    /// As [`use_table`](Self::use_table), of several tables at once, if the catalog that they are of, whose version is given, is
    /// still in force. False if not: they are to be looked up again.
    pub fn use_tables<'t>(
        &mut self,
        tables: impl IntoIterator<Item = &'t Arc<TableHandle>> + Clone,
        version: u64,
    ) -> Result<bool> {
        for table in tables.clone() {
            self.touch(table)?;
        }
        // A change of one of these tables would have to wait for this transaction now.
        if self.engine.catalog_version() != version {
            return Ok(false);
        }
        tables.into_iter().try_for_each(|table| self.reach_definition(table)).map(|()| true)
    }

    /// As [`use_table`](Self::use_table), for a statement that reads only the newest rows of the table, if any: unless the
    /// transaction is strict, the table may be newer than its snapshot.
    pub fn use_table_as_now(&mut self, table: &Arc<TableHandle>) -> Result<()> {
        if self.is_strict() { self.use_table(table) } else { self.hold_definition(table) }
    }

    fn hold_definition(&mut self, table: &Arc<TableHandle>) -> Result<()> {
        let held = self.tables.len();
        self.touch(table)?;
        let current = self.engine.catalog();
        match current.table_by_id(table.id()) {
            Some(now) if Arc::ptr_eq(now, table) => Ok(()),
            _ => {
                // A table that is no more need not be held.
                self.release_tables(held);
                Err(EngineError::StaleDefinition(table.def.database.clone(), table.def.name.clone()))
            }
        }
    }

    fn reach_definition(&mut self, table: &TableHandle) -> Result<()> {
        if table.changed_at() <= self.snapshot.ts() { Ok(()) } else { self.move_on_to_definition(table) }
    }

    /// The table, or an index of it, was made after the snapshot was taken (perhaps the statement has waited for that): a
    /// transaction that has read nothing at its snapshot moves on to one that has the table.
    #[cold]
    fn move_on_to_definition(&mut self, table: &TableHandle) -> Result<()> {
        if !self.has_read.load(Ordering::Relaxed) || !self.has_read_in_statement() {
            self.newest_met = self.newest_met.max(table.changed_at());
            self.renew_snapshot();
            // If the log has failed, the change never becomes visible.
            if table.changed_at() > self.snapshot.ts() {
                self.engine.pipeline.log().flush()?;
            }
        }
        match table.is_readable_at(self.snapshot.ts()) {
            true => Ok(()),
            false => Err(definition_changed(table)),
        }
    }

    /// Whether the running statement's snapshot must stay.
    fn has_read_in_statement(&self) -> bool {
        self.options.isolation != Isolation::ReadCommitted || self.statement_has_read.load(Ordering::Relaxed)
    }

    /// An index that was made after the snapshot was taken lacks versions that this sees.
    pub(crate) fn check_readable(&self, table: &TableHandle, index: &IndexHandle) -> Result<()> {
        match index.is_readable_at(self.snapshot.ts()) {
            true => Ok(()),
            false => Err(definition_changed(table)),
        }
    }

    fn durability(&self) -> Durability {
        self.options.durability.unwrap_or(self.engine.options.durability)
    }

    /// Logs the transaction. It may be acknowledged when the ticket is done.
    pub fn commit(mut self) -> Result<CommitTicket> {
        self.engine.health.check()?;
        if self.redo.is_empty() {
            self.end_without_changes();
            return Ok(match self.options.freshness {
                Freshness::Visible => self.engine.pipeline.nothing(self.snapshot.ts()),
                Freshness::Logged => self.engine.pipeline.all_so_far(self.snapshot.ts(), self.durability()),
            });
        }
        self.unhide_all();
        // On an error it still runs, and is rolled back when it is dropped.
        let ticket = self.log().inspect_err(|e| self.engine.health.stop_unless_refused(e))?;
        let versions = self.undo.len();
        self.after_logged(ticket.timestamp());
        // A commit cleans up after two older ones, so that the backlog shrinks whatever the load is. Large ones are for the
        // collecting thread: nobody's commit takes long because of them. What cannot be collected is merged, twice as much as
        // it adds.
        self.engine.collector().collect(2, MOST_COLLECTED_BY_COMMIT);
        self.engine.collector().merge(2 * versions);
        Ok(ticket)
    }

    /// It is committed at a timestamp: gives back what it held, and hands its versions on.
    fn after_logged(&mut self, ts: Timestamp) {
        self.end_deferral();
        self.finished = true;
        self.logical = None;
        self.end_footprint();
        self.release_rows();
        for (table, change) in self.tables.iter().zip(&self.row_changes) {
            if *change != 0 {
                table.rows.fetch_add(*change, Ordering::Relaxed);
            }
        }
        self.release_metadata_locks();
        self.forget_reads();
        self.engine.garbage.push(Leftover {
            ts,
            lists: Lists { tables: std::mem::take(&mut self.tables), undo: std::mem::take(&mut self.undo) },
        });
    }

    pub fn rollback(mut self) {
        self.end_without_changes();
    }

    fn end_without_changes(&mut self) {
        self.end_deferral();
        self.roll_back_to(StatementMark { undo: 0, shared: 0, loads: 0, redo: 0 });
        self.finished = true;
        self.end_footprint();
        self.state.abort();
        self.release_rows();
        self.release_metadata_locks();
        self.forget_reads();
    }

    fn release_metadata_locks(&self) {
        self.unlock_tables(0);
    }

    /// Gives back the tables that came after the first `kept`, of which nothing was changed.
    fn release_tables(&mut self, kept: usize) {
        self.unlock_tables(kept);
        self.tables.truncate(kept);
        self.row_changes.truncate(kept);
    }

    fn unlock_tables(&self, from: usize) {
        for (at, table) in self.tables.iter().enumerate().skip(from) {
            let first =
                !self.tables[..at].iter().any(|t| Arc::ptr_eq(&t.metadata_lock, &table.metadata_lock));
            if first {
                table.metadata_lock.unlock_shared();
            }
        }
    }
}

fn definition_changed(table: &TableHandle) -> EngineError {
    EngineError::DefinitionChanged(table.def.database.clone(), table.def.name.clone())
}

/// What is taken back with a version.
enum Undone {
    Insert,
    /// Of these columns.
    Update(Vec<usize>),
    Delete,
    Lock,
    Hide,
}

impl Undone {
    fn of(undo: &Undo, layout: &RowLayout) -> Self {
        match &undo.link().change {
            Change::Insert => Self::Insert,
            Change::Delete => Self::Delete,
            Change::Lock => Self::Lock,
            Change::Hide => Self::Hide,
            Change::Update { before } => {
                let columns = delta::own_entries(layout, before)
                    .map(|e| e.expect("before-images are made by the page").column);
                Self::Update(columns.collect())
            }
        }
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        if !self.finished {
            self.end_without_changes();
        }
        let carried = self.carry_on();
        self.engine.buffers.give(Buffers {
            redo: std::mem::take(&mut self.redo),
            row_changes: std::mem::take(&mut self.row_changes),
            scratch: std::mem::take(&mut self.scratch),
            carried,
        });
    }
}
