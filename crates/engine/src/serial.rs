//! SERIALIZABLE: what a transaction has read must still be so when it commits.
//!
//! A serializable transaction runs at a snapshot and remembers what it read, as predicates: ranges of index keys, column
//! comparisons of scans, whole tables. When it commits, every change that was committed since its snapshot is held
//! against them: the row as it was before, and as it is after (precision locking; Neumann, Mühlbauer, Kemper 2015,
//! section 3). If one meets a predicate, the transaction fails. So a phantom is found as a changed row is.
//!
//! ```text
//!  begin       active += 1                  from now on commits leave their changes here
//!  read        ReadSet += predicate
//!  commit      prepared: changes since the snapshot × predicates                    (nobody waits)
//!              ┌ commit latch: those since then × predicates; own changes += ─┐
//!              └ timestamp assigned, logged ──────────────────────────────────┘
//! ```
//!
//! Why this is enough: whoever writes and passes reads at its commit what it read at its snapshot, so it could have run
//! all at once there, and commits are in one order. A transaction that writes nothing sees a state between two commits of
//! that order, whichever they are: it need not be checked. (The anomaly of read-only transactions needs writers that are
//! serialised in another order than that of their commits.)
//!
//! Invariants:
//! 1. `active` grows under the commit latch; while it is not zero, every commit is recorded.
//! 2. No snapshot of a serializable writer is older than the moment at which recording began.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use avocet_base::{RowId, TableId, Timestamp};
use avocet_storage::cold::ColumnPredicate;
use avocet_types::RowRef;
use parking_lot::Mutex;

use crate::error::{EngineError, Result};
use crate::keys::KeyRange;
use crate::scan;
use crate::snapshots::{SnapshotGuard, Snapshots};
use crate::table::TableHandle;

/// So many predicates are kept of a table; a transaction with more counts as having read all of it.
const MOST_PREDICATES: usize = 4096;

/// What a transaction changed in one row.
pub(crate) struct WrittenRow {
    pub table: TableId,
    pub row: RowId,
    pub before: Option<Vec<u8>>,
    pub after: Option<Vec<u8>>,
}

/// What a transaction changed.
#[derive(Default)]
pub(crate) struct WriteSet {
    pub rows: Vec<WrittenRow>,
    /// Tables that blocks were loaded into.
    pub loaded: Vec<TableId>,
}

enum Predicate {
    All,
    Range { index: usize, range: KeyRange },
    Columns(Vec<(usize, ColumnPredicate)>),
}

/// What a transaction has read.
#[derive(Default)]
pub(crate) struct ReadSet {
    tables: Mutex<Vec<(Arc<TableHandle>, Vec<Predicate>)>>,
}

impl ReadSet {
    pub fn add_range(&self, table: &Arc<TableHandle>, index: usize, range: &KeyRange) {
        self.add(table, || Predicate::Range { index, range: range.clone() });
    }

    pub fn add_scan(&self, table: &Arc<TableHandle>, predicates: &[(usize, ColumnPredicate)]) {
        self.add(table, || match predicates {
            [] => Predicate::All,
            predicates => Predicate::Columns(predicates.to_vec()),
        });
    }

    pub fn add_table(&self, table: &Arc<TableHandle>) {
        self.add(table, || Predicate::All);
    }

    pub fn clear(&self) {
        self.tables.lock().clear();
    }

    fn add(&self, table: &Arc<TableHandle>, predicate: impl FnOnce() -> Predicate) {
        let mut tables = self.tables.lock();
        let at = match tables.iter().position(|(of, _)| of.id() == table.id()) {
            Some(at) => at,
            None => {
                tables.push((table.clone(), Vec::new()));
                tables.len() - 1
            }
        };
        let predicates = &mut tables[at].1;
        if matches!(predicates.first(), Some(Predicate::All)) {
            return;
        }
        let predicate = predicate();
        if matches!(predicate, Predicate::All) || predicates.len() == MOST_PREDICATES {
            predicates.clear();
            predicates.push(Predicate::All);
        } else {
            predicates.push(predicate);
        }
    }

    /// Whether any of the changes would have been read.
    fn meets(&self, writes: &WriteSet, key: &mut Vec<u8>) -> bool {
        let tables = self.tables.lock();
        let read = |id: TableId| tables.iter().find(|(table, _)| table.id() == id);
        writes.loaded.iter().any(|id| read(*id).is_some_and(|(_, predicates)| !predicates.is_empty()))
            || writes.rows.iter().any(|change| {
                read(change.table).is_some_and(|(table, predicates)| {
                    predicates.iter().any(|predicate| predicate.meets(table, change, key))
                })
            })
    }
}

impl Predicate {
    fn meets(&self, table: &TableHandle, change: &WrittenRow, key: &mut Vec<u8>) -> bool {
        let images = [&change.before, &change.after];
        let mut rows = images.into_iter().flatten().map(|image| {
            let (fixed, heap) = image.split_at(table.layout.fixed_size);
            RowRef::new(&table.layout, fixed, heap)
        });
        match self {
            Self::All => true,
            Self::Columns(predicates) => rows.any(|row| scan::row_matches(predicates, &row)),
            Self::Range { index, range } => rows.any(|row| {
                key.clear();
                table.indexes[*index].entry(&row, change.row, key);
                range.contains(key)
            }),
        }
    }
}

/// The changes of transactions that committed while somebody ran serializable.
#[derive(Default)]
pub(crate) struct Serial {
    active: AtomicUsize,
    recorded: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    /// Every commit after this one is here.
    since: Timestamp,
    writes: VecDeque<(Timestamp, Arc<WriteSet>)>,
    /// Snapshots of those who may still look.
    snapshots: BTreeMap<Timestamp, usize>,
}

impl Serial {
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed) > 0
    }

    /// Recording begins, if it has not: under the commit latch, after the commit at `last`.
    pub fn enter(&self, last: Timestamp) {
        let mut recorded = self.recorded.lock();
        if self.active.fetch_add(1, Ordering::Relaxed) == 0 {
            *recorded = Recorded { since: last, ..Recorded::default() };
        }
    }

    pub fn leave(&self) {
        let mut recorded = self.recorded.lock();
        if self.active.fetch_sub(1, Ordering::Relaxed) == 1 {
            *recorded = Recorded::default();
        }
    }

    /// A snapshot of what is visible; `None` if that is older than the moment at which recording began, unless there will
    /// never be a newer one.
    pub fn take(&self, snapshots: &Arc<Snapshots>, is_last: bool) -> Option<SnapshotGuard> {
        let mut recorded = self.recorded.lock();
        let guard = snapshots.take();
        if guard.ts() < recorded.since && !is_last {
            return None;
        }
        *recorded.snapshots.entry(guard.ts()).or_insert(0) += 1;
        Some(guard)
    }

    pub fn let_go(&self, snapshot: Timestamp) {
        let mut recorded = self.recorded.lock();
        if let Some(count) = recorded.snapshots.get_mut(&snapshot) {
            *count -= 1;
            if *count == 0 {
                recorded.snapshots.remove(&snapshot);
            }
        }
        // Who is to come takes a snapshot that is not older than any of these.
        let oldest = recorded.snapshots.first_key_value().map(|(ts, _)| *ts);
        if let Some(oldest) = oldest {
            let seen = recorded.writes.partition_point(|(ts, _)| *ts <= oldest);
            recorded.writes.drain(..seen);
            recorded.since = recorded.since.max(oldest);
        }
    }

    /// Holds what was committed after `checked` against what was read. Returns up to where it has looked.
    pub fn validate(&self, reads: &ReadSet, checked: Timestamp) -> Result<Timestamp> {
        let newer: Vec<_> = {
            let recorded = self.recorded.lock();
            assert!(checked >= recorded.since, "what was committed since the snapshot is recorded");
            let from = recorded.writes.partition_point(|(ts, _)| *ts <= checked);
            recorded.writes.range(from..).cloned().collect()
        };
        let mut key = Vec::new();
        if newer.iter().any(|(_, writes)| reads.meets(writes, &mut key)) {
            return Err(EngineError::SerializationFailure);
        }
        Ok(newer.last().map_or(checked, |(ts, _)| *ts))
    }

    /// Under the commit latch.
    pub fn record(&self, ts: Timestamp, writes: Arc<WriteSet>) {
        self.recorded.lock().writes.push_back((ts, writes));
    }
}
