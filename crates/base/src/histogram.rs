//! Counts of values by power of two, for figures that are looked at now and then.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bucket `i` holds values in `2^(i-1) .. 2^i`, bucket 0 the zeros; the last one also all that are larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Histogram {
    pub buckets: [u64; 32],
    /// Of all values.
    pub sum: u64,
}

impl Histogram {
    /// Each range of values that there are, with their number: `1:20 2-3:5`.
    pub fn text(&self) -> String {
        let range = |bucket: usize| match bucket {
            0 | 1 => bucket.to_string(),
            _ => format!("{}-{}", 1u64 << (bucket - 1), Self::last_of(bucket)),
        };
        let counted = self.buckets.iter().enumerate().filter(|(_, n)| **n > 0);
        counted.map(|(bucket, n)| format!("{}:{n}", range(bucket))).collect::<Vec<_>>().join(" ")
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The largest value of a bucket.
    pub fn last_of(bucket: usize) -> u64 {
        (1u64 << bucket) - 1
    }

    /// An upper bound of the `q` quantile (0 ≤ q ≤ 1), exact to a factor of two.
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = (q * self.count() as f64).ceil() as u64;
        let mut seen = 0;
        for (i, n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen >= rank.max(1) {
                return Self::last_of(i);
            }
        }
        0
    }
}

/// A histogram that several threads count in.
#[derive(Debug, Default)]
pub struct AtomicHistogram {
    buckets: [AtomicU64; 32],
    sum: AtomicU64,
}

impl AtomicHistogram {
    pub fn count(&self, value: u64) {
        let bucket = (u64::BITS - value.leading_zeros()).min(31);
        self.buckets[bucket as usize].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    pub fn load(&self) -> Histogram {
        let buckets = std::array::from_fn(|i| self.buckets[i].load(Relaxed));
        Histogram { buckets, sum: self.sum.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_bound_from_above() {
        let counts = AtomicHistogram::default();
        (1..=100).for_each(|n| counts.count(n));
        let counts = counts.load();
        assert_eq!((counts.count(), counts.sum), (100, 5050));
        assert_eq!((counts.quantile(0.5), counts.quantile(1.0)), (63, 127));
        assert_eq!(counts.text(), "1:1 2-3:2 4-7:4 8-15:8 16-31:16 32-63:32 64-127:37");
        assert_eq!(Histogram::default().quantile(0.5), 0);
        let most = AtomicHistogram::default();
        most.count(u64::MAX);
        assert_eq!(most.load().buckets[31], 1);
    }
}
