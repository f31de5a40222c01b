//! Rows that go to a client as they are read: how much of them waits when the client is slow.
//!
//! Some batches wait at each place where threads hand them on. Operators count what they keep, but nobody counts these; so they
//! are small here, and set aside as a whole for as long as the query runs.

use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};

/// What all of them may take together, in bytes, and as a share of the query's limit.
const MOST_BYTES: usize = 3 << 20;
const SHARE: usize = 4;
/// What one batch may take, so that the work on a batch is worth it, and the first one comes soon.
const BATCH_BYTES: std::ops::RangeInclusive<usize> = 32 * 1024..=256 * 1024;
/// Column blocks are decoded by so many rows; the first batch has no more.
pub const VECTOR: usize = 1024;

/// The batches of one query; an extension of its configuration.
#[derive(Clone, Copy, Debug)]
pub struct Streamed {
    batches: usize,
    batch_bytes: usize,
}

impl Streamed {
    /// For a query that may take `limit` bytes. Each partition reads a batch and hands one on, two wait for the session, which
    /// has one.
    pub fn new(limit: usize, partitions: usize) -> Self {
        let batches = 2 * partitions + 3;
        let batch_bytes = MOST_BYTES.min(limit / SHARE) / batches;
        Self { batches, batch_bytes: batch_bytes.clamp(*BATCH_BYTES.start(), *BATCH_BYTES.end()) }
    }

    /// How many rows a batch may have if each takes so many bytes.
    pub fn rows_of(&self, row_bytes: usize) -> usize {
        let rows = self.batch_bytes / row_bytes.max(1);
        let whole_vectors = rows - rows % VECTOR;
        if whole_vectors > 0 { whole_vectors } else { rows.max(1) }
    }

    /// Sets aside what the batches take.
    pub fn reserve(state: &SessionState) -> Result<Option<MemoryReservation>> {
        let Some(streamed) = state.config().get_extension::<Self>() else { return Ok(None) };
        let reserved = MemoryConsumer::new("rows on their way").register(&state.runtime_env().memory_pool);
        reserved.try_grow(streamed.batches * streamed.batch_bytes)?;
        Ok(Some(reserved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_whatever_there_is_of_threads() {
        for partitions in [1, 2, 16, 48] {
            let streamed = Streamed::new(1 << 30, partitions);
            assert!(streamed.batches * streamed.batch_bytes <= MOST_BYTES.max(streamed.batches * 32 * 1024));
            assert_eq!(streamed.rows_of(1 << 30), 1);
            assert!(streamed.rows_of(16).is_multiple_of(VECTOR));
        }
        assert_eq!(Streamed::new(1 << 30, 2).rows_of(200), VECTOR);
        assert_eq!(Streamed::new(1 << 20, 1).batch_bytes, (1 << 18) / 5);
    }
}
