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
//! What is recorded is bounded: of the oldest changes, only the tables are kept. Who has read such a table, and was there before
//! the change, fails then, whatever it has read of it.
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
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::error::{EngineError, Result};
use crate::keys::KeyRange;
use crate::scan;
use crate::snapshots::{SnapshotGuard, Snapshots};
use crate::table::TableHandle;

/// So many predicates are kept of a table; a transaction with more counts as having read all of it.
const MOST_PREDICATES: usize = 4096;

/// What is recorded has this part of the memory limit, and one transaction this part of that.
const SHARE_OF_LIMIT: usize = 64;
const SHARE_OF_ONE: usize = 8;
/// What a changed row takes beside its images.
const ROW_BYTES: usize = size_of::<WrittenRow>() + 32;

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
    rows: Vec<WrittenRow>,
    /// Tables that blocks were loaded into, or of which too many rows were changed.
    loaded: Vec<TableId>,
    /// All of these tables.
    tables: Vec<TableId>,
    bytes: usize,
}

impl WriteSet {
    /// With blocks loaded into some tables.
    pub fn of_loads(loaded: impl IntoIterator<Item = TableId>) -> Self {
        let mut writes = Self::default();
        loaded.into_iter().for_each(|table| writes.push_table(table));
        writes
    }

    /// Adds all rows of a table.
    pub fn push_table(&mut self, table: TableId) {
        self.note_table(table);
        if !self.loaded.contains(&table) {
            self.loaded.push(table);
        }
    }

    /// Adds a row, as long as there are not `most` bytes of them: then the tables stand for their rows.
    pub fn push(&mut self, row: WrittenRow, most: usize) {
        self.note_table(row.table);
        self.bytes +=
            ROW_BYTES + [&row.before, &row.after].into_iter().flatten().map(Vec::len).sum::<usize>();
        if self.bytes <= most {
            self.rows.push(row);
            return;
        }
        self.rows = Vec::new();
        self.loaded.clone_from(&self.tables);
    }

    /// Whether tables stand for their rows.
    pub fn is_full(&self, most: usize) -> bool {
        self.bytes > most
    }

    fn note_table(&mut self, table: TableId) {
        // The last rows are of the same table, mostly.
        if self.tables.last() != Some(&table) && !self.tables.contains(&table) {
            self.tables.push(table);
        }
    }

    /// What it takes, about.
    fn size(&self) -> usize {
        let rows = if self.rows.is_empty() { 0 } else { self.bytes };
        size_of::<Self>() + rows + (self.tables.len() + self.loaded.len()) * size_of::<TableId>()
    }
}

/// What a transaction has read of a table.
struct TableReads {
    table: Arc<TableHandle>,
    /// All of it; nothing else is kept then.
    is_whole: bool,
    scans: Vec<Vec<(usize, ColumnPredicate)>>,
    /// By index.
    ranges: Vec<(usize, Ranges)>,
}

/// Ranges of an index's keys.
#[derive(Default)]
struct Ranges {
    ranges: Vec<KeyRange>,
    /// They ascend and do not overlap.
    is_united: bool,
}

impl Ranges {
    fn unite(&mut self) {
        if !self.is_united {
            KeyRange::unite(&mut self.ranges);
            self.is_united = true;
        }
    }

    /// Once they are united.
    fn contain(&self, key: &[u8]) -> bool {
        let behind = self.ranges.partition_point(|range| range.begins_by(key));
        behind.checked_sub(1).is_some_and(|at| self.ranges[at].contains(key))
    }
}

impl TableReads {
    fn len(&self) -> usize {
        self.scans.len() + self.ranges.iter().map(|(_, ranges)| ranges.ranges.len()).sum::<usize>()
    }

    fn make_whole(&mut self) {
        self.is_whole = true;
        self.scans = Vec::new();
        self.ranges = Vec::new();
    }

    /// Room for one more predicate: false if the table counts as read whole.
    fn has_room(&mut self) -> bool {
        if !self.is_whole && self.len() >= MOST_PREDICATES {
            self.unite();
            // They would be united for each one that comes.
            if self.len() > MOST_PREDICATES / 2 {
                self.make_whole();
            }
        }
        !self.is_whole
    }

    fn unite(&mut self) {
        self.ranges.iter_mut().for_each(|(_, ranges)| ranges.unite());
    }

    /// Whether a change would have been read. The ranges are united.
    fn meet(&self, change: &WrittenRow, key: &mut Vec<u8>) -> bool {
        let images = [&change.before, &change.after];
        let mut rows = images.into_iter().flatten().map(|image| {
            let (fixed, heap) = image.split_at(self.table.layout.fixed_size);
            RowRef::new(&self.table.layout, fixed, heap)
        });
        self.is_whole
            || rows.any(|row| {
                self.ranges.iter().any(|(index, ranges)| {
                    key.clear();
                    self.table.indexes[*index].entry(&row, change.row, key);
                    ranges.contain(key)
                }) || self.scans.iter().any(|predicates| scan::row_matches(predicates, &row))
            })
    }
}

/// What a transaction has read.
#[derive(Default)]
pub(crate) struct ReadSet {
    tables: Mutex<Vec<TableReads>>,
}

impl ReadSet {
    pub fn add_range(&self, table: &Arc<TableHandle>, index: usize, range: &KeyRange) {
        self.add(table, |reads| {
            if !reads.has_room() {
                return;
            }
            let at = reads.ranges.iter().position(|(of, _)| *of == index).unwrap_or_else(|| {
                reads.ranges.push((index, Ranges::default()));
                reads.ranges.len() - 1
            });
            let ranges = &mut reads.ranges[at].1;
            ranges.ranges.push(range.clone());
            ranges.is_united = false;
        });
    }

    pub fn add_scan(&self, table: &Arc<TableHandle>, predicates: &[(usize, ColumnPredicate)]) {
        self.add(table, |reads| match predicates {
            [] => reads.make_whole(),
            predicates if reads.has_room() => reads.scans.push(predicates.to_vec()),
            _ => {}
        });
    }

    pub fn add_table(&self, table: &Arc<TableHandle>) {
        self.add(table, TableReads::make_whole);
    }

    pub fn clear(&self) {
        self.tables.lock().clear();
    }

    fn add(&self, table: &Arc<TableHandle>, add: impl FnOnce(&mut TableReads)) {
        let mut tables = self.tables.lock();
        let at = match tables.iter().position(|of| of.table.id() == table.id()) {
            Some(at) => at,
            None => {
                let table = table.clone();
                tables.push(TableReads { table, is_whole: false, scans: Vec::new(), ranges: Vec::new() });
                tables.len() - 1
            }
        };
        add(&mut tables[at]);
    }

    /// Whether any of these tables was read.
    fn has_any_of(&self, tables: &[TableId]) -> bool {
        self.tables.lock().iter().any(|read| tables.contains(&read.table.id()))
    }

    /// Whether any of the changes would have been read.
    fn meets(&self, writes: &WriteSet, key: &mut Vec<u8>) -> bool {
        let mut tables = self.tables.lock();
        tables.iter_mut().for_each(TableReads::unite);
        let read = |id: TableId| tables.iter().find(|of| of.table.id() == id);
        writes.loaded.iter().any(|id| read(*id).is_some())
            || writes
                .rows
                .iter()
                .any(|change| read(change.table).is_some_and(|reads| reads.meet(change, key)))
    }
}

/// The changes of transactions that committed while somebody ran serializable.
pub(crate) struct Serial {
    active: AtomicUsize,
    recorded: Mutex<Recorded>,
    /// Of `recorded`, for who counts memory.
    bytes: AtomicUsize,
    /// Bytes of what is recorded.
    most: usize,
}

#[derive(Default)]
struct Recorded {
    /// Every commit after this one is here.
    since: Timestamp,
    writes: VecDeque<(Timestamp, Arc<WriteSet>)>,
    /// Bytes of `writes`.
    bytes: usize,
    /// The last commits whose changes there was no room for, by the tables that they changed.
    tables: HashMap<TableId, Timestamp>,
    /// Snapshots of those who may still look.
    snapshots: BTreeMap<Timestamp, usize>,
}

impl Serial {
    /// As part of so many bytes of memory.
    pub fn new(memory_limit: usize) -> Self {
        Self {
            active: AtomicUsize::new(0),
            recorded: Mutex::default(),
            bytes: AtomicUsize::new(0),
            most: memory_limit / SHARE_OF_LIMIT,
        }
    }

    /// What is recorded takes.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the rows that are recorded of one transaction.
    pub fn most_of_one(&self) -> usize {
        self.most / SHARE_OF_ONE
    }

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
            self.bytes.store(0, Ordering::Relaxed);
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
            let gone: usize = recorded.writes.drain(..seen).map(|(_, writes)| writes.size()).sum();
            recorded.bytes -= gone;
            self.bytes.store(recorded.bytes, Ordering::Relaxed);
            recorded.tables.retain(|_, ts| *ts > oldest);
            recorded.since = recorded.since.max(oldest);
        }
    }

    /// Holds what was committed after `checked` against what was read. Returns up to where it has looked.
    pub fn validate(&self, reads: &ReadSet, checked: Timestamp) -> Result<Timestamp> {
        let (newer, tables): (Vec<_>, Vec<TableId>) = {
            let recorded = self.recorded.lock();
            assert!(checked >= recorded.since, "what was committed since the snapshot is recorded");
            let from = recorded.writes.partition_point(|(ts, _)| *ts <= checked);
            let tables = recorded.tables.iter().filter(|(_, ts)| **ts > checked).map(|(table, _)| *table);
            (recorded.writes.range(from..).cloned().collect(), tables.collect())
        };
        let mut key = Vec::new();
        if reads.has_any_of(&tables) || newer.iter().any(|(_, writes)| reads.meets(writes, &mut key)) {
            return Err(EngineError::SerializationFailure);
        }
        Ok(newer.last().map_or(checked, |(ts, _)| *ts))
    }

    /// Under the commit latch. Returns the changes that there is no room for any more, to be dropped where nobody waits.
    #[must_use = "they are many, and not to be dropped under the latch"]
    pub fn record(&self, ts: Timestamp, writes: Arc<WriteSet>) -> Vec<Arc<WriteSet>> {
        let mut recorded = self.recorded.lock();
        recorded.bytes += writes.size();
        recorded.writes.push_back((ts, writes));
        let mut given_up = Vec::new();
        while recorded.bytes > self.most
            && let Some((ts, writes)) = recorded.writes.pop_front()
        {
            recorded.bytes -= writes.size();
            recorded.tables.extend(writes.tables.iter().map(|table| (*table, ts)));
            given_up.push(writes);
        }
        self.bytes.store(recorded.bytes, Ordering::Relaxed);
        given_up
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use super::*;

    #[test]
    fn united_ranges_contain_what_any_of_them_does() {
        let bounds: Vec<(u8, u8)> = vec![(3, 5), (10, 10), (4, 7), (20, 30), (25, 26), (8, 9), (40, 39)];
        let range = |(from, to): &(u8, u8)| KeyRange::new(Bound::Included(&[*from]), Bound::Included(&[*to]));
        let all: Vec<KeyRange> = bounds.iter().map(range).collect();
        let mut ranges = Ranges { ranges: all.clone(), is_united: false };
        assert!(!Ranges::default().contain(&[1]));
        ranges.unite();
        for first in 0..=255 {
            for key in [vec![first], vec![first, 0], vec![first, 255]] {
                assert_eq!(ranges.contain(&key), all.iter().any(|range| range.contains(&key)), "{key:?}");
            }
        }
    }

    use avocet_base::env::SimDisk;
    use avocet_types::{Collation, ColumnDef, Datum, IndexDef, LobSize, SqlType, TableDef};

    use crate::engine::{Engine, EngineOptions};
    use crate::txn::{Isolation, ReadMode, Txn, TxnOptions};

    /// Tables `d.a` and `d.b` (id BIGINT PRIMARY KEY, note TEXT).
    fn engine() -> (Arc<Engine>, [Arc<TableHandle>; 2]) {
        let disk = SimDisk::new();
        let limits = EngineOptions { memory_limit: 32 << 20, ..EngineOptions::new("data") };
        let engine = Engine::open(EngineOptions { background: false, env: disk.env(), ..limits });
        let engine = engine.expect("it opens");
        engine.create_database("d", Collation::DEFAULT).expect("a new one");
        let text = SqlType::Text { size: LobSize::Medium, collation: Collation::DEFAULT };
        let tables = ["a", "b"].map(|name| {
            let columns = vec![ColumnDef::new("id", SqlType::BIGINT), ColumnDef::new("note", text)];
            let def = TableDef::new("d", name, columns, vec![IndexDef::primary(&[0])]);
            engine.create_table(def).expect("a new one")
        });
        (engine, tables)
    }

    fn commit(txn: Txn) -> Result<()> {
        txn.commit()?.wait()
    }

    fn insert(engine: &Arc<Engine>, table: &Arc<TableHandle>, id: i64, note: &str) {
        let mut txn = engine.begin(TxnOptions::default());
        txn.insert(table, &[Datum::Int(id), Datum::str(note)]).expect("a new key");
        commit(txn).expect("no conflict");
    }

    /// A serializable transaction that has read one key of a table.
    fn reader(engine: &Arc<Engine>, table: &Arc<TableHandle>) -> Txn {
        let txn = engine.begin(TxnOptions { isolation: Isolation::Serializable, ..TxnOptions::default() });
        let mut key = Vec::new();
        assert!(table.indexes[0].keys.encode_prefix(&[Datum::Int(-1)], &mut key));
        let (range, mut scratch) = (KeyRange::prefix(&key), Default::default());
        let ascending = avocet_storage::index::Direction::Ascending;
        let each = &mut |_, _: RowRef<'_>| std::ops::ControlFlow::Continue(());
        txn.index_scan(table, &table.indexes[0], &range, ascending, &mut scratch, each).expect("read");
        txn
    }

    /// Whether it can write something and commit.
    fn ends_well(mut txn: Txn, table: &Arc<TableHandle>, id: i64) -> bool {
        txn.insert(table, &[Datum::Int(id), Datum::str("end")]).expect("a new key");
        match commit(txn) {
            Ok(()) => true,
            Err(EngineError::SerializationFailure) => false,
            Err(other) => panic!("{other}"),
        }
    }

    /// While a transaction stands still, others may commit as much as they like. It passes if they have changed what it has not
    /// read, as long as they are few; then, if they have changed other tables.
    #[test]
    fn what_is_recorded_is_bounded() {
        let (engine, [a, b]) = engine();
        let most = engine.serial.most;
        let (first, of_b) = (reader(&engine, &a), reader(&engine, &b));
        insert(&engine, &a, 1, "other keys");
        assert!(ends_well(first, &a, 2), "its key is as it was");
        let of_a = reader(&engine, &a);
        let note = "x".repeat(5000);
        for id in 0..3 * most as i64 / 5000 {
            insert(&engine, &a, 1000 + id, &note);
            assert!(engine.serial.bytes() <= most);
        }
        assert!(engine.serial.bytes() > most / 2, "what there is room for is kept");
        let late = reader(&engine, &a);
        insert(&engine, &a, 3, "other keys");
        assert!(!ends_well(of_a, &b, 3), "it is not known any more what has changed");
        assert!(ends_well(of_b, &b, 4) && ends_well(late, &b, 5));
        assert_eq!(engine.serial.bytes(), 0);
        let mut seen = 0;
        engine
            .begin(TxnOptions::default())
            .table_rows(&b, ReadMode::Snapshot, &mut |_, _| {
                seen += 1;
                std::ops::ControlFlow::Continue(())
            })
            .expect("read");
        assert_eq!(seen, 2);
    }

    /// One transaction that changes very much counts as having changed its tables.
    #[test]
    fn a_large_transaction_counts_by_its_tables() {
        let (engine, [a, b]) = engine();
        let (of_a, of_b) = (reader(&engine, &a), reader(&engine, &b));
        let mut txn = engine.begin(TxnOptions::default());
        let note = "x".repeat(5000);
        for id in 0..1 + engine.serial.most_of_one() as i64 / 5000 {
            txn.insert(&a, &[Datum::Int(id), Datum::str(&note)]).expect("a new key");
        }
        commit(txn).expect("no conflict");
        assert!(engine.serial.bytes() < 5000);
        assert!(!ends_well(of_a, &b, 1) && ends_well(of_b, &b, 2));
    }
}
