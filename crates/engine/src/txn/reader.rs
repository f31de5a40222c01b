//! Scans at a transaction's snapshot, and readers for threads that have not the transaction.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_base::Timestamp;
use avocet_storage::TxnState;

use super::core::Txn;
use crate::scan::{ScanRequest, TableScan};
use crate::serial::ReadSet;
use crate::snapshots::SnapshotGuard;
use crate::table::TableHandle;

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

impl Txn {
    /// A scan of a table at the transaction's snapshot, its own changes included.
    pub fn scan(&self, table: &Arc<TableHandle>, request: ScanRequest) -> TableScan {
        self.note_read(|reads| reads.add_scan(table, &request.predicates));
        TableScan::new(table.clone(), request, self.view.snapshot.clone(), self.state.clone())
    }

    /// What scans at the transaction's snapshot, its own changes included, for threads that have not the transaction.
    pub fn reader(&self) -> SnapshotReader {
        self.view.has_read.store(true, Ordering::Relaxed);
        self.view.statement_has_read.store(true, Ordering::Relaxed);
        SnapshotReader {
            snapshot: self.view.snapshot.clone(),
            own: self.state.clone(),
            reads: self.constraints.reads.clone(),
        }
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
        if !self.changes.undo.is_empty() || !self.changes.loads.is_empty() {
            return None;
        }
        let mut reader = self.read_for_change(|txn| txn.reader());
        reader.own = Arc::new(TxnState::new(self.id()));
        Some(reader)
    }

    /// Reads what a statement needs in order to change rows: as it is now, as if it locked it, and without fixing the
    /// transaction's snapshot; at strict levels as any read. READ COMMITTED has a snapshot for each statement, but one may have waited
    /// since for the row that it changes.
    pub fn read_for_change<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        if self.is_strict() {
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
        let has_read = *self.view.has_read.get_mut();
        let own = std::mem::replace(&mut self.view.snapshot, newest.snapshot.clone());
        let result = read(self);
        self.view.snapshot = own;
        *self.view.has_read.get_mut() = has_read;
        result
    }
}
