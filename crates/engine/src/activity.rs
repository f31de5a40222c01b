//! What transactions have done since the engine was opened, for monitoring: the rows that their commits changed.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use avocet_base::stripe::{self, STRIPES, Striped};

/// Rows that committed transactions changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    pub inserted: u64,
    /// A row that a transaction changed twice counts twice.
    pub updated: u64,
    pub deleted: u64,
}

/// What a version of a row counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedAs {
    Insert,
    Update,
    Delete,
    /// A lock, or the other half of an update that has moved its row.
    Nothing,
}

#[derive(Default)]
pub(crate) struct Activity {
    /// Inserted, updated, deleted.
    rows: [Striped<[AtomicU64; 3]>; STRIPES],
}

impl Activity {
    /// Counts the versions of a transaction that has committed, and rows that it loaded in blocks.
    pub fn note_commit(&self, versions: impl Iterator<Item = CountedAs>, loaded: u64) {
        let mut counts = [loaded, 0, 0];
        for version in versions {
            match version {
                CountedAs::Insert => counts[0] += 1,
                CountedAs::Update => counts[1] += 1,
                CountedAs::Delete => counts[2] += 1,
                CountedAs::Nothing => {}
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
