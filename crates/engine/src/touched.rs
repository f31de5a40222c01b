//! The rows of a table that transactions touch while somebody builds an index of it ([`crate::index_ahead`]).

use std::sync::atomic::{AtomicBool, Ordering};

use avocet_base::RowId;
use hashbrown::HashSet;
use parking_lot::Mutex;

/// Rows that are noted at most; with more, the index is built anew when the table is held.
pub(crate) const MOST_NOTED: usize = 512 << 10;
/// What one of them takes, about.
pub(crate) const NOTED_BYTES: usize = 16;

/// The rows of a table that transactions have touched since somebody began to watch them.
#[derive(Default)]
pub(crate) struct TouchedRows {
    is_watched: AtomicBool,
    /// `None`: too many.
    rows: Mutex<Option<HashSet<RowId>>>,
}

impl TouchedRows {
    /// Whether rows are to be noted. Who watches holds the table alone when it begins, so those who come later know.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    pub fn note(&self, touched: impl Iterator<Item = RowId>) {
        let mut rows = self.rows.lock();
        let Some(all) = &mut *rows else { return };
        // One by one: a transaction may have touched any number of them.
        for row in touched {
            all.insert(row);
            if all.len() > MOST_NOTED {
                *rows = None;
                return;
            }
        }
    }

    /// False if somebody watches already.
    pub fn begin(&self) -> bool {
        let mut rows = self.rows.lock();
        let begins = !self.is_watched.swap(true, Ordering::Relaxed);
        if begins {
            *rows = Some(HashSet::new());
        }
        begins
    }

    pub fn end(&self) -> Option<HashSet<RowId>> {
        self.is_watched.store(false, Ordering::Relaxed);
        self.rows.lock().take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_with_too_many_rows_takes_no_more_than_the_bound() {
        let (touched, taken) = (TouchedRows::default(), std::cell::Cell::new(0));
        let rows = |n: u64| (0..n).map(RowId).inspect(|_| taken.set(taken.get() + 1));
        assert!(touched.begin() && !touched.begin());
        touched.note(rows(MOST_NOTED as u64));
        assert_eq!(touched.end().map(|all| all.len()), Some(MOST_NOTED));
        assert!(touched.begin());
        taken.set(0);
        touched.note(rows(10 * MOST_NOTED as u64));
        assert_eq!(taken.get(), MOST_NOTED + 1);
        assert_eq!(touched.end(), None);
    }
}
