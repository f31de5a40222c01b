//! The engine's memory budget: as what DataFusion's operators reserve from, and in SHOW STATUS, with the counters of log
//! and locks.

use std::sync::Arc;

use avocet_engine::MemoryBudget;
use datafusion::common::{DataFusionError, resources_datafusion_err};
use datafusion::execution::memory_pool::{MemoryPool, MemoryReservation};

use super::api::Connections;
use super::database::Shared;

/// Counts by powers of two, and upper bounds of the median and of the 99th percentile.
const HISTOGRAMS: [[&str; 3]; 3] = [
    ["Avocet_commit_wait_us", "Avocet_commit_wait_us_p50", "Avocet_commit_wait_us_p99"],
    ["Avocet_log_group_records", "Avocet_log_group_records_p50", "Avocet_log_group_records_p99"],
    ["Avocet_log_sync_us", "Avocet_log_sync_us_p50", "Avocet_log_sync_us_p99"],
];

impl Shared {
    /// SHOW STATUS: names and values, sorted by name.
    pub(super) fn status(&self, connections: &dyn Connections) -> Vec<(&'static str, String)> {
        let memory = self.engine.memory().in_use();
        let mut list = self.counters.list();
        list.extend([
            ("Avocet_held_threads", connections.held_threads().to_string()),
            ("Avocet_memory_limit", memory.limit.to_string()),
            ("Avocet_memory_hot_pages", memory.hot_pages.to_string()),
            ("Avocet_memory_indexes", memory.indexes.to_string()),
            ("Avocet_memory_versions", memory.versions.to_string()),
            ("Avocet_memory_transactions", memory.transactions.to_string()),
            ("Avocet_memory_work", memory.work.to_string()),
            ("Avocet_memory_rest", memory.rest.to_string()),
            ("Avocet_memory_queries", memory.queries.to_string()),
            ("Avocet_memory_clients", memory.clients.to_string()),
            ("Avocet_memory_cache", memory.cache.to_string()),
            ("Avocet_versions", self.engine.version_backlog().to_string()),
            ("Innodb_row_lock_current_waits", self.engine.sleeping_waiters().to_string()),
        ]);
        let background = self.engine.background_stats();
        list.extend([
            ("Avocet_background_paused_us", background.paused_us.to_string()),
            ("Avocet_background_written_bytes", background.written_bytes.to_string()),
        ]);
        let log = self.engine.log_stats();
        list.extend([
            ("Avocet_log_bytes", log.bytes.to_string()),
            ("Avocet_log_groups", log.groups.to_string()),
            ("Avocet_log_records", log.records.to_string()),
            ("Avocet_log_syncs", log.syncs.to_string()),
            ("Avocet_log_written_bytes", log.written_bytes.to_string()),
        ]);
        for (names, histogram) in HISTOGRAMS.iter().zip([log.wait_us, log.group_records, log.sync_us]) {
            list.push((names[0], histogram.text()));
            list.push((names[1], histogram.quantile(0.5).to_string()));
            list.push((names[2], histogram.quantile(0.99).to_string()));
        }
        list.sort_unstable_by_key(|(name, _)| *name);
        list
    }
}

pub(super) struct EngineMemory(pub Arc<MemoryBudget>);

impl std::fmt::Debug for EngineMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EngineMemory({:?})", self.0.in_use())
    }
}

impl std::fmt::Display for EngineMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "all queries: {} of {} bytes", self.reserved(), self.0.limit())
    }
}

impl MemoryPool for EngineMemory {
    fn name(&self) -> &str {
        "server"
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        self.0.take(additional);
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        self.0.release(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<(), DataFusionError> {
        if self.0.reserve(additional) {
            return Ok(());
        }
        let name = reservation.consumer().name();
        Err(resources_datafusion_err!(
            "the server's memory is used up: {name} asked for {additional} bytes more, {:?}",
            self.0.in_use()
        ))
    }

    fn reserved(&self) -> usize {
        self.0.in_use().queries
    }
}
