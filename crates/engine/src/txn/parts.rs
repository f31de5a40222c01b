//! The parts that a transaction is made of: what it sees, what it has changed, which locks it has, which constraints it keeps, and
//! what it takes of memory. Plain data; who changes what is said where the transaction does it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use avocet_base::{BlockId, RowId, SegmentNo, TableId, Timestamp};
use hashbrown::HashMap;

use crate::buffers::Carried;
use crate::foreign::Links;
use crate::garbage::UndoEntry;
use crate::locks::{LOCK_ENTRY_BYTES, RowKey, Waiter};
use crate::memory::{GROWTH_STEP, VERSION_BYTES};
use crate::redo::{Op, Origin};
use crate::serial::ReadSet;
use crate::snapshots::SnapshotGuard;
use crate::table::TableHandle;

/// What a transaction sees.
pub(crate) struct View {
    pub snapshot: SnapshotGuard,
    /// The newest commit that a locking read has met: later snapshots must include it.
    pub newest_met: Timestamp,
    /// A snapshot of REPEATABLE READ begins with the first read.
    pub has_read: AtomicBool,
    /// Nothing had been read before the running statement.
    pub is_first_read: bool,
    /// The running statement has read nothing either.
    pub is_first_access: AtomicBool,
    /// The running statement has read at its snapshot.
    pub statement_has_read: AtomicBool,
    /// A row is locked although it has changed since the snapshot.
    pub relaxed: bool,
}

impl View {
    pub fn new(snapshot: SnapshotGuard) -> Self {
        Self {
            snapshot,
            newest_met: Timestamp::MIN,
            has_read: AtomicBool::new(false),
            is_first_read: true,
            is_first_access: AtomicBool::new(true),
            statement_has_read: AtomicBool::new(false),
            relaxed: false,
        }
    }
}

/// A set of tables, by their places in a transaction's list. Most transactions have fewer than 64.
#[derive(Default)]
pub(crate) struct Written {
    first: u64,
    others: Vec<u16>,
}

impl Written {
    #[inline]
    pub fn has(&self, t: u16) -> bool {
        match t {
            0..64 => self.first >> t & 1 != 0,
            _ => self.others.contains(&t),
        }
    }

    #[inline]
    pub fn add(&mut self, t: u16) {
        match t {
            0..64 => self.first |= 1 << t,
            _ => self.others.push(t),
        }
    }

    /// Those from a place on, which are in it no longer.
    pub fn take_from(&mut self, from: usize) -> impl Iterator<Item = u16> + use<> {
        let kept = 1u64.checked_shl(from as u32).map_or(u64::MAX, |bit| bit - 1);
        let mut first = self.first & !kept;
        self.first &= kept;
        let others: Vec<u16> = match self.others.is_empty() {
            true => Vec::new(),
            false => self.others.extract_if(.., |t| usize::from(*t) >= from).collect(),
        };
        let bits = std::iter::from_fn(move || {
            let t = (first != 0).then_some(first.trailing_zeros() as u16)?;
            first &= first - 1;
            Some(t)
        });
        bits.chain(others)
    }
}

/// What a transaction has changed.
pub(crate) struct Changes {
    pub tables: Vec<Arc<TableHandle>>,
    /// Rows that came, less those that went, of each table.
    pub row_changes: Vec<i64>,
    /// Which of the tables it has changed, or was about to.
    pub written: Written,
    pub undo: Vec<UndoEntry>,
    /// What these versions hold beside themselves: before-images, index entries.
    pub undo_bytes: usize,
    /// How many of these are marks that hide a row from it.
    pub masks: usize,
    pub redo: Vec<u8>,
    /// Bytes of changes of temporary tables, which are not logged: what they would take in `redo`, about.
    pub unlogged: usize,
    /// Where they come from, if they were made elsewhere.
    pub origin: Option<Box<Origin>>,
    pub loads: Vec<Load>,
}

impl Changes {
    /// Bytes of all that it has written, logged or not, and of what was there before.
    #[inline]
    pub fn written_bytes(&self) -> usize {
        self.redo.len() + self.unlogged + self.undo_bytes
    }

    /// Notes a change of a row, for the log unless the table is temporary.
    #[inline]
    pub fn push(&mut self, op: &Op<'_>) {
        match op.table().is_temporary() {
            false => op.encode(&mut self.redo),
            true => self.unlogged += op.size_hint(),
        }
    }
}

/// Which rows a transaction holds or waits for.
#[derive(Default)]
pub(crate) struct Locks {
    /// Rows that it holds shared.
    pub shared: Vec<RowKey>,
    /// How often it has waited for a row.
    pub waits: AtomicU64,
    /// The row that the last conflict with the snapshot was about.
    pub conflict: Option<Conflict>,
    /// Rows that were gone from their place when they were to be modified.
    pub gone: Vec<RowId>,
    pub deferral: Deferral,
}

/// What has to hold of the rows that a transaction changes and of those that it reads.
#[derive(Default)]
pub(crate) struct Constraints {
    pub foreign: ForeignKeys,
    /// Of a serializable transaction that may write.
    pub reads: Option<Arc<ReadSet>>,
    /// It may use tables that are withheld from others.
    pub sees_withheld: bool,
}

/// A row that was to be locked, but had changed since the snapshot.
#[derive(Clone, Copy)]
pub(crate) struct Conflict {
    pub table: u16,
    pub row: RowId,
    pub exclusive: bool,
}

/// A column block that this transaction loaded.
pub(crate) struct Load {
    pub table: u16,
    pub segment: SegmentNo,
    pub block: BlockId,
    pub rows: u64,
}

/// A point in a transaction that a failed statement goes back to.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatementMark {
    pub(crate) undo: usize,
    pub(crate) shared: usize,
    pub(crate) loads: usize,
    pub(crate) redo: usize,
    pub(crate) unlogged: usize,
}

/// A statement whose waits are deferred.
#[derive(Default)]
pub(crate) struct Deferral {
    pub begun: Option<Begun>,
    pub standing: Option<Arc<Waiter>>,
    /// This run of the statement has ended for a wait. (A place may stand since the run before, of which this one has no use.)
    pub has_waited: bool,
}

impl Deferral {
    /// The statement has been given a row that it locked: perhaps it has told somebody.
    #[inline]
    pub fn note_shown(&mut self) {
        self.begun = None;
    }
}

pub(crate) struct Begun {
    pub at: StatementMark,
    pub had_read: bool,
    pub rows: usize,
    pub last: Option<RowKey>,
}

/// Redo is there twice when it is largest: as its vector grows, and as the log copies it.
pub(crate) const REDO_COPIES: usize = 2;
pub(crate) const UNDO_BYTES: usize = VERSION_BYTES + 2 * size_of::<UndoEntry>();
/// A row that is held shared: as the transaction and the lock table keep it.
pub(crate) const SHARED_BYTES: usize = 2 * size_of::<RowKey>() + LOCK_ENTRY_BYTES;
/// So many rows make a step.
pub(crate) const ROWS_STEP: usize = GROWTH_STEP / UNDO_BYTES;

/// What the memory budget knows of a transaction.
pub(crate) struct Footprint {
    /// Bytes of rows that were added and not told.
    pub untold: usize,
    /// Redo up to here was told, or is part of `untold`.
    pub seen: usize,
    /// What the budget holds for redo and undo.
    pub charged: usize,
    /// With so much redo, or so many versions and shared rows, the next step is told.
    pub written_at: usize,
    pub rows_at: usize,
}

impl Footprint {
    pub fn new(Carried { untold, is_step }: Carried) -> Self {
        let written_at = if is_step { 0 } else { GROWTH_STEP.saturating_sub(untold) };
        Self { untold, seen: 0, charged: 0, written_at, rows_at: ROWS_STEP }
    }
}

/// What a transaction knows about foreign keys.
pub(crate) struct ForeignKeys {
    /// `foreign_key_checks`: off, nothing is checked, and nothing cascades but as `cascades` says.
    pub on: bool,
    /// While checks are off: children follow their parents all the same.
    pub cascades: bool,
    pub links: Vec<KnownLinks>,
    /// Tables that were written to while it was off.
    pub unenforced: Vec<TableId>,
    /// Tables whose rows are being changed, from the statement's own to the one that the cascade has come to: by an update,
    /// or else a delete.
    pub cascade: Vec<(TableId, bool)>,
    /// Rows that cascades have moved: callers know them by their old places. With the length that the undo list had.
    pub moved: HashMap<(TableId, RowId), (RowId, usize)>,
}

/// The links of a table whose other ends, too, the transaction holds.
pub(crate) struct KnownLinks {
    pub table: TableId,
    pub links: Arc<Links>,
    pub parents: bool,
    pub children: bool,
}

impl Default for ForeignKeys {
    fn default() -> Self {
        Self {
            on: true,
            cascades: false,
            links: Vec::new(),
            unenforced: Vec::new(),
            cascade: Vec::new(),
            moved: HashMap::new(),
        }
    }
}

impl ForeignKeys {
    /// After rows were taken back to a mark.
    pub fn roll_back_to(&mut self, mark: &StatementMark) {
        if !self.moved.is_empty() {
            self.moved.retain(|_, (_, undo)| *undo <= mark.undo);
        }
    }

    /// Where a row is now that a cascade may have moved.
    pub fn place_of(&self, table: &TableHandle, mut id: RowId) -> RowId {
        if !self.moved.is_empty() {
            while let Some((to, _)) = self.moved.get(&(table.id(), id)) {
                id = *to;
            }
        }
        id
    }
}
