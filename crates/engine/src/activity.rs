//! What transactions have done since the engine was opened, for monitoring: the rows that their commits changed.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use avocet_base::stripe::{self, STRIPES, Striped};
use avocet_storage::version::Change;

use crate::garbage::UndoEntry;

/// Rows that committed transactions changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    pub inserted: u64,
    /// A row that a transaction changed twice counts twice.
    pub updated: u64,
    pub deleted: u64,
}

#[derive(Default)]
pub(crate) struct Activity {
    /// Inserted, updated, deleted.
    rows: [Striped<[AtomicU64; 3]>; STRIPES],
}

impl Activity {
    /// Counts what a transaction that has committed changed, and rows that it loaded in blocks.
    pub fn note_commit(&self, undo: &[UndoEntry], loaded: u64) {
        let mut counts = [loaded, 0, 0];
        for entry in undo {
            match entry.undo.link().change {
                Change::Insert => counts[0] += 1,
                Change::Update { .. } => counts[1] += 1,
                Change::Delete => counts[2] += 1,
                Change::Lock | Change::Mask => {}
            }
        }
        let rows = &self.rows[stripe::own()].0;
        for (sum, count) in rows.iter().zip(counts).filter(|(_, count)| *count > 0) {
            sum.fetch_add(count, Relaxed);
        }
    }

    pub fn rows(&self) -> RowCounts {
        let sum = |at: usize| self.rows.iter().map(|stripe| stripe.0[at].load(Relaxed)).sum();
        let [inserted, updated, deleted] = array::from_fn(sum);
        RowCounts { inserted, updated, deleted }
    }
}
