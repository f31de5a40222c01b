//! What expressions make of rows: it may be much more than the rows themselves, and no operator counts it.
//!
//! Batches are sized by what rows take where they are stored. An expression that makes larger values of them evaluates a batch in
//! parts, so that what is needed in between is little; what it makes in the end has to be there for the whole batch. If that is
//! more than a share of the query's limit, the query begins anew with batches of fewer rows, down to one. Once it has sent rows it
//! cannot, and goes on within a larger share, or fails alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use datafusion::common::{DataFusionError, Result, resources_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

/// Of the limit, what one expression may make of a batch.
const BATCH_SHARE: usize = 32;
const LEAST_BATCH: usize = 64 << 10;
/// The same if the query cannot begin anew.
const MOST_SHARE: usize = 4;
/// Of what it may make of a batch, what it may make in between at once.
const PART_SHARE: usize = 4;
/// A constant of so many bytes counts: DataFusion writes it out for each row.
const LARGE_CONSTANT: usize = 64 << 10;

/// The results of one attempt to run a query.
#[derive(Debug)]
pub struct ResultBytes {
    batch: usize,
    most: usize,
    /// Batches are sized for results of so many bytes for a row.
    sized_for: usize,
    /// What was met that they are too large for.
    met: AtomicUsize,
    sent: AtomicBool,
}

impl Default for ResultBytes {
    fn default() -> Self {
        Self::new(usize::MAX, 0)
    }
}

impl ResultBytes {
    pub fn new(limit: usize, sized_for: usize) -> Self {
        let batch = (limit / BATCH_SHARE).max(LEAST_BATCH);
        let most = (limit / MOST_SHARE).max(batch);
        Self { batch, most, sized_for, met: AtomicUsize::new(0), sent: AtomicBool::new(false) }
    }

    /// What an expression may make at once, whether it is kept or not.
    pub fn part(&self) -> usize {
        self.batch / PART_SHARE
    }

    /// Whether an expression may go on that has made `bytes` of the first `done` of a batch's rows.
    pub fn admit(&self, done: usize, bytes: usize) -> bool {
        if bytes <= self.batch {
            return true;
        }
        let of_row = bytes.div_ceil(done.max(1));
        let may_begin_anew =
            !self.sent.load(Relaxed) && done > 1 && of_row > self.sized_for.saturating_mul(2);
        if may_begin_anew {
            self.met.fetch_max(of_row, Relaxed);
        }
        !may_begin_anew && bytes <= self.most
    }

    pub fn refusal(&self) -> DataFusionError {
        resources_datafusion_err!(
            "an expression makes more than {} bytes of a few rows (query_memory_limit)",
            if self.outgrown().is_some() { self.batch } else { self.most }
        )
    }

    /// The plan has a constant.
    pub fn note_constant(&self, bytes: usize) {
        if bytes >= LARGE_CONSTANT && bytes > self.sized_for {
            self.met.fetch_max(bytes, Relaxed);
        }
    }

    /// The query has sent rows: it cannot begin anew.
    pub fn note_sent(&self) {
        self.sent.store(true, Relaxed);
    }

    /// What the results for a row take, if batches are too large for them.
    pub fn outgrown(&self) -> Option<usize> {
        Some(self.met.load(Relaxed)).filter(|met| *met > self.sized_for)
    }

    /// Sets aside what the results of so many threads take, if they are large.
    pub fn reserve(&self, pool: &Arc<dyn MemoryPool>, threads: usize) -> Result<Option<MemoryReservation>> {
        if self.sized_for == 0 {
            return Ok(None);
        }
        let reserved = MemoryConsumer::new("results of expressions").register(pool);
        reserved.try_grow(self.batch * threads)?;
        Ok(Some(reserved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_results_make_a_query_begin_anew_until_it_has_sent_rows() {
        let results = ResultBytes::new(64 << 20, 0);
        assert!(results.admit(8192, 2 << 20));
        assert_eq!(results.outgrown(), None);
        assert!(!results.admit(4, 4 << 20), "two megabytes are what a batch may have");
        assert_eq!(results.outgrown(), Some(1 << 20));
        let results = ResultBytes::new(64 << 20, 1 << 20);
        assert!(results.admit(2, 3 << 20), "it could not get smaller");
        assert!(results.admit(1, 16 << 20) && !results.admit(1, 17 << 20), "a single value has a bound, too");
        let results = ResultBytes::new(64 << 20, 0);
        results.note_sent();
        assert!(results.admit(4, 4 << 20) && !results.admit(4, 17 << 20));
        assert_eq!(results.outgrown(), None);
    }

    #[test]
    fn large_constants_count() {
        let results = ResultBytes::new(64 << 20, 0);
        results.note_constant(1000);
        assert_eq!(results.outgrown(), None);
        results.note_constant(1 << 20);
        assert_eq!(results.outgrown(), Some(1 << 20));
    }
}
