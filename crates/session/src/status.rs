//! SHOW STATUS: the counters of statements, memory, log and locks.

use std::sync::atomic::Ordering::Relaxed;

use super::api::Connections;
use super::replication::ReplicaStatus;
use super::shared::Shared;

/// Counts by powers of two, and upper bounds of the median and of the 99th percentile.
const HISTOGRAMS: [[&str; 3]; 3] = [
    ["Avocet_commit_wait_us", "Avocet_commit_wait_us_p50", "Avocet_commit_wait_us_p99"],
    ["Avocet_log_group_records", "Avocet_log_group_records_p50", "Avocet_log_group_records_p99"],
    ["Avocet_log_sync_us", "Avocet_log_sync_us_p50", "Avocet_log_sync_us_p99"],
];

/// InnoDB's, in which clients count memory.
const PAGE_BYTES: usize = 16 << 10;

impl Shared {
    /// The servers that this one follows, or may be told to go on with.
    pub fn sources(&self) -> Vec<ReplicaStatus> {
        self.replication.get().map(|replication| replication.status()).unwrap_or_default()
    }

    /// SHOW STATUS: names and values, sorted by name.
    pub(super) fn status(&self, connections: &dyn Connections) -> Vec<(&'static str, String)> {
        let memory = self.engine.memory().in_use();
        let mut list = self.counters.list();
        list.extend(self.commands.list().map(|(name, count)| (name, count.to_string())));
        let totals = connections.totals();
        list.extend([
            ("Aborted_connects", totals.refused.to_string()),
            ("Connections", totals.attempts.to_string()),
            ("Max_used_connections", totals.most.to_string()),
            ("Threads_connected", totals.connected.to_string()),
            ("Threads_running", totals.running.to_string()),
            ("Bytes_received", totals.received.to_string()),
            ("Bytes_sent", totals.sent.to_string()),
            ("Queries", self.counters.get("Questions").to_string()),
            ("Uptime_since_flush_status", self.counters.uptime().as_secs().to_string()),
            ("Prepared_stmt_count", self.prepared.load(Relaxed).to_string()),
            ("Open_tables", self.engine.catalog().tables().count().to_string()),
        ]);
        list.extend([
            ("Avocet_held_threads", connections.held_threads().to_string()),
            ("Avocet_memory_limit", memory.limit.to_string()),
            ("Avocet_memory_hot_pages", memory.hot_pages.to_string()),
            ("Avocet_memory_indexes", memory.indexes.to_string()),
            ("Avocet_memory_versions", memory.versions.to_string()),
            ("Avocet_memory_definitions", memory.definitions.to_string()),
            ("Avocet_memory_transactions", memory.transactions.to_string()),
            ("Avocet_memory_work", memory.work.to_string()),
            ("Avocet_memory_rest", memory.rest.to_string()),
            ("Avocet_memory_queries", memory.queries.to_string()),
            ("Avocet_memory_clients", memory.clients.to_string()),
            ("Avocet_memory_cache", memory.cache.to_string()),
            ("Avocet_versions", self.engine.version_backlog().to_string()),
        ]);
        let (rows, waits) = (self.engine.row_counts(), self.engine.row_lock_waits());
        list.extend([
            ("Innodb_rows_inserted", rows.inserted.to_string()),
            ("Innodb_rows_updated", rows.updated.to_string()),
            ("Innodb_rows_deleted", rows.deleted.to_string()),
            ("Innodb_row_lock_current_waits", self.engine.sleeping_waiters().to_string()),
            ("Innodb_row_lock_waits", waits.count.to_string()),
            // In milliseconds, as InnoDB counts them.
            ("Innodb_row_lock_time", (waits.total_us / 1000).to_string()),
            ("Innodb_row_lock_time_avg", (waits.total_us / waits.count.max(1) / 1000).to_string()),
            ("Innodb_row_lock_time_max", (waits.longest_us / 1000).to_string()),
        ]);
        let routed = self.journal.totals();
        list.extend([
            ("Avocet_routed_here", routed.here.to_string()),
            ("Avocet_routed_to_source", routed.source.to_string()),
            ("Avocet_route_fallbacks", routed.fallbacks.to_string()),
            ("Avocet_route_late", routed.late.to_string()),
            ("Avocet_freshness_waited_us", routed.waited_us.to_string()),
        ]);
        let acknowledges = self.sources().iter().any(|status| status.semi_sync);
        list.push(("Rpl_semi_sync_replica_status", if acknowledges { "ON" } else { "OFF" }.to_owned()));
        let background = self.engine.background_stats();
        list.extend([
            ("Avocet_background_paused_us", background.paused_us.to_string()),
            ("Avocet_background_written_bytes", background.written_bytes.to_string()),
        ]);
        let log = self.engine.log_stats();
        // Where InnoDB has a counterpart: a group is one write of the log.
        let in_memory = memory.hot_pages + memory.cache;
        list.extend([
            ("Innodb_buffer_pool_bytes_data", in_memory.to_string()),
            ("Innodb_buffer_pool_pages_data", (in_memory / PAGE_BYTES).to_string()),
            ("Innodb_buffer_pool_pages_total", (memory.limit / PAGE_BYTES).to_string()),
            ("Innodb_log_write_requests", log.records.to_string()),
            ("Innodb_log_writes", log.groups.to_string()),
            ("Innodb_os_log_fsyncs", log.syncs.to_string()),
            ("Innodb_os_log_written", log.written_bytes.to_string()),
            ("Innodb_page_size", PAGE_BYTES.to_string()),
        ]);
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
