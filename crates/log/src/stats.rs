//! Counters of the log writer: plain atomics, written by the log thread alone.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counts by power of two: bucket `i` holds values in `2^(i-1) .. 2^i`, bucket 0 the zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Histogram {
    pub buckets: [u64; 32],
}

impl Histogram {
    /// An upper bound of the `q` quantile (0 ≤ q ≤ 1), exact to a factor of two.
    pub fn quantile(&self, q: f64) -> u64 {
        let total: u64 = self.buckets.iter().sum();
        let rank = (q * total as f64).ceil() as u64;
        let mut seen = 0;
        for (i, n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen >= rank.max(1) {
                return (1u64 << i) - 1;
            }
        }
        0
    }
}

/// What the writer did since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogStats {
    /// Groups written and synced.
    pub groups: u64,
    pub records: u64,
    /// Bytes of frames, heads included.
    pub bytes: u64,
    /// Records per group.
    pub group_records: Histogram,
    /// Microseconds that a group's write and fdatasync took.
    pub sync_us: Histogram,
}

#[derive(Default)]
struct AtomicHistogram([AtomicU64; 32]);

impl AtomicHistogram {
    fn count(&self, value: u64) {
        let bucket = (u64::BITS - value.leading_zeros()).min(31);
        self.0[bucket as usize].fetch_add(1, Relaxed);
    }

    fn load(&self) -> Histogram {
        Histogram { buckets: std::array::from_fn(|i| self.0[i].load(Relaxed)) }
    }
}

#[derive(Default)]
pub(crate) struct Counters {
    groups: AtomicU64,
    records: AtomicU64,
    bytes: AtomicU64,
    group_records: AtomicHistogram,
    sync_us: AtomicHistogram,
}

impl Counters {
    pub fn group(&self, records: u64, bytes: u64, took: Duration) {
        self.groups.fetch_add(1, Relaxed);
        self.records.fetch_add(records, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        self.group_records.count(records);
        self.sync_us.count(took.as_micros() as u64);
    }

    pub fn load(&self) -> LogStats {
        LogStats {
            groups: self.groups.load(Relaxed),
            records: self.records.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            group_records: self.group_records.load(),
            sync_us: self.sync_us.load(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_bound_from_above() {
        let counters = Counters::default();
        for n in 1..=100 {
            counters.group(n, 0, Duration::ZERO);
        }
        let stats = counters.load();
        assert_eq!((stats.groups, stats.records), (100, 5050));
        assert_eq!(stats.group_records.quantile(0.5), 63);
        assert_eq!(stats.group_records.quantile(1.0), 127);
        assert_eq!(stats.sync_us.quantile(0.99), 0);
        assert_eq!(Histogram::default().quantile(0.5), 0);
    }
}
