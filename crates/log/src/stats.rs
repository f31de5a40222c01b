//! Counters of the log writer: plain atomics, written by the log thread, and by whoever has waited for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counts by power of two: bucket `i` holds values in `2^(i-1) .. 2^i`, bucket 0 the zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Histogram {
    pub buckets: [u64; 32],
}

impl Histogram {
    /// Each range of values that there are, with their number: `1:20 2-3:5`.
    pub fn text(&self) -> String {
        let range = |bucket: usize| match bucket {
            0 | 1 => bucket.to_string(),
            _ => format!("{}-{}", 1u64 << (bucket - 1), (1u64 << bucket) - 1),
        };
        let counted = self.buckets.iter().enumerate().filter(|(_, n)| **n > 0);
        counted.map(|(bucket, n)| format!("{}:{n}", range(bucket))).collect::<Vec<_>>().join(" ")
    }

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
    /// Bytes of frames, heads included: how far LSNs have come.
    pub bytes: u64,
    /// Bytes that were written of them, compressed.
    pub written_bytes: u64,
    /// Records per group.
    pub group_records: Histogram,
    /// Microseconds that a group's write took, with its fdatasync if it had one.
    pub group_us: Histogram,
    /// fdatasyncs, and the microseconds that each took.
    pub syncs: u64,
    pub sync_us: Histogram,
    /// Microseconds that commits waited for their group; those that found it done did not wait.
    pub wait_us: Histogram,
}

#[derive(Default)]
pub(crate) struct AtomicHistogram([AtomicU64; 32]);

impl AtomicHistogram {
    pub fn count(&self, value: u64) {
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
    written_bytes: AtomicU64,
    group_records: AtomicHistogram,
    group_us: AtomicHistogram,
    syncs: AtomicU64,
    sync_us: AtomicHistogram,
    pub wait_us: Arc<AtomicHistogram>,
}

impl Counters {
    pub fn sync(&self, took: Duration) {
        self.syncs.fetch_add(1, Relaxed);
        self.sync_us.count(took.as_micros() as u64);
    }

    pub fn group(&self, records: u64, bytes: u64, written: u64, took: Duration) {
        self.groups.fetch_add(1, Relaxed);
        self.records.fetch_add(records, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        self.written_bytes.fetch_add(written, Relaxed);
        self.group_records.count(records);
        self.group_us.count(took.as_micros() as u64);
    }

    pub fn load(&self) -> LogStats {
        LogStats {
            groups: self.groups.load(Relaxed),
            records: self.records.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            written_bytes: self.written_bytes.load(Relaxed),
            group_records: self.group_records.load(),
            group_us: self.group_us.load(),
            syncs: self.syncs.load(Relaxed),
            sync_us: self.sync_us.load(),
            wait_us: self.wait_us.load(),
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
            counters.group(n, 0, 0, Duration::ZERO);
        }
        let stats = counters.load();
        assert_eq!((stats.groups, stats.records), (100, 5050));
        assert_eq!(stats.group_records.quantile(0.5), 63);
        assert_eq!(stats.group_records.quantile(1.0), 127);
        assert_eq!(stats.group_records.text(), "1:1 2-3:2 4-7:4 8-15:8 16-31:16 32-63:32 64-127:37");
        assert_eq!((stats.group_us.quantile(0.99), stats.syncs), (0, 0));
        assert_eq!(Histogram::default().quantile(0.5), 0);
    }
}
