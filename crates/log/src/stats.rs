//! Counters of the log writer: plain atomics, written by the log thread, and by whoever has waited for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use avocet_base::histogram::{AtomicHistogram, Histogram};

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
