//! What monitoring collects of the server, as families of metrics: `avocet.metrics`, and by it the HTTP endpoint `/metrics`.
//!
//! Names and units are those of the Prometheus conventions: seconds and bytes, `_total` for what only grows.

use avocet_base::histogram::Histogram;

use super::api::Connections;
use super::replication::ReplicaStatus;
use super::shared::Shared;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One sample.
#[derive(Clone, Debug)]
pub(super) struct Metric {
    /// What several samples have in common: kind and meaning.
    pub family: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    /// Behind the family's name: `_bucket`, `_sum` and `_count` of histograms.
    pub suffix: &'static str,
    /// As `name="value"`, with commas between; values have no quotes in them.
    pub labels: String,
    pub value: f64,
}

/// Collects samples, family after family.
#[derive(Default)]
struct Collected(Vec<Metric>);

impl Collected {
    fn add(&mut self, kind: Kind, family: &'static str, help: &'static str, labels: String, value: f64) {
        self.0.push(Metric { family, kind, help, suffix: "", labels, value });
    }

    fn counter(&mut self, family: &'static str, help: &'static str, value: u64) {
        self.add(Kind::Counter, family, help, String::new(), value as f64);
    }

    fn gauge(&mut self, family: &'static str, help: &'static str, value: f64) {
        self.add(Kind::Gauge, family, help, String::new(), value);
    }

    /// Of microseconds, in seconds.
    fn times(&mut self, family: &'static str, help: &'static str, of: &Histogram) {
        let seconds = |us: u64| us as f64 / 1e6;
        let mut sample = |suffix, labels, value| {
            self.0.push(Metric { family, kind: Kind::Histogram, help, suffix, labels, value });
        };
        let mut below = 0;
        // The last bucket has no upper bound.
        for (at, count) in of.buckets[..of.buckets.len() - 1].iter().enumerate() {
            below += count;
            sample("_bucket", format!("le=\"{}\"", seconds(Histogram::last_of(at))), below as f64);
        }
        let all = of.count() as f64;
        sample("_bucket", "le=\"+Inf\"".to_owned(), all);
        sample("_sum", String::new(), seconds(of.sum));
        sample("_count", String::new(), all);
    }
}

fn label(name: &str, value: &str) -> String {
    format!("{name}=\"{value}\"")
}

impl Shared {
    /// All samples, as of now.
    pub(super) fn metrics(&self, connections: &dyn Connections) -> Vec<Metric> {
        let mut to = Collected::default();
        let version = label("version", env!("CARGO_PKG_VERSION"));
        to.add(Kind::Gauge, "avocet_build_info", "The version that runs; always 1.", version, 1.0);
        to.gauge("avocet_uptime_seconds", "Since the server started.", self.counters.uptime().as_secs_f64());
        self.metrics_of_statements(&mut to);
        metrics_of_connections(&mut to, connections);
        self.metrics_of_memory(&mut to);
        self.metrics_of_commits(&mut to);
        self.metrics_of_routes(&mut to);
        metrics_of_replication(&mut to, &self.sources());
        to.0
    }

    fn metrics_of_statements(&self, to: &mut Collected) {
        for (family, help, of) in [
            ("avocet_statements_total", "Statements that clients have sent.", "Questions"),
            (
                "avocet_analytic_queries_total",
                "Queries that ran on the analytical path.",
                "Avocet_analytic_queries",
            ),
            ("avocet_plans_compiled_total", "Statements that were compiled.", "Avocet_point_plans_compiled"),
            ("avocet_statements_parsed_total", "Texts that were parsed.", "Avocet_statements_parsed"),
        ] {
            to.counter(family, help, self.counters.get(of));
        }
        let (family, help) = ("avocet_commands_total", "Statements, by their kind.");
        let commands = self.counters.commands().chain(self.commands.list());
        for (name, count) in commands.filter(|(_, count)| *count > 0) {
            let command = label("command", name.trim_start_matches("Com_"));
            to.add(Kind::Counter, family, help, command, count as f64);
        }
    }

    fn metrics_of_memory(&self, to: &mut Collected) {
        let memory = self.engine.memory().in_use();
        to.gauge("avocet_memory_limit_bytes", "What --memory-limit allows.", memory.limit as f64);
        let (family, help) = ("avocet_memory_bytes", "Memory in use, by its use.");
        for (name, bytes) in [
            ("hot_pages", memory.hot_pages),
            ("indexes", memory.indexes),
            ("versions", memory.versions),
            ("definitions", memory.definitions),
            ("transactions", memory.transactions),
            ("work", memory.work),
            ("queries", memory.queries),
            ("clients", memory.clients),
            ("cache", memory.cache),
            ("rest", memory.rest),
        ] {
            to.add(Kind::Gauge, family, help, label("use", name), bytes as f64);
        }
        to.gauge(
            "avocet_versions",
            "Old versions of rows that are kept.",
            self.engine.version_backlog() as f64,
        );
    }

    fn metrics_of_commits(&self, to: &mut Collected) {
        let log = self.engine.log_stats();
        to.counter("avocet_log_records_total", "Records in the redo log.", log.records);
        to.counter("avocet_log_groups_total", "Groups of records that were written together.", log.groups);
        to.counter(
            "avocet_log_written_bytes_total",
            "Written to the redo log, compressed.",
            log.written_bytes,
        );
        to.times("avocet_commit_wait_seconds", "Waits of commits for the redo log.", &log.wait_us);
        to.times("avocet_log_sync_seconds", "Syncs of the redo log.", &log.sync_us);
        let waiting = self.engine.sleeping_waiters() as f64;
        to.gauge("avocet_row_lock_waits", "Statements that wait for a row now.", waiting);
        let background = self.engine.background_stats();
        let help = "Written by checkpoints, freezing and compaction.";
        to.counter("avocet_background_written_bytes_total", help, background.written_bytes);
    }

    fn metrics_of_routes(&self, to: &mut Collected) {
        let routed = self.journal.totals();
        let (family, help) =
            ("avocet_routed_total", "Statements that came through the front, by where they ran.");
        for (place, count) in [("avocet", routed.here), ("source", routed.source)] {
            to.add(Kind::Counter, family, help, label("ran_on", place), count as f64);
        }
        let help = "Queries that were to run here and ran on the source.";
        to.counter("avocet_route_fallbacks_total", help, routed.fallbacks);
        let help = "Of those: since the data here was not fresh in time.";
        to.counter("avocet_route_late_total", help, routed.late);
        let help = "Waits of queries for the freshness that they ask for.";
        to.times("avocet_freshness_wait_seconds", help, &self.journal.waits());
        let help = "From the arrival of a query that ran here to its last row.";
        to.times("avocet_routed_here_seconds", help, &self.journal.times_here());
    }
}

fn metrics_of_connections(to: &mut Collected, connections: &dyn Connections) {
    let totals = connections.totals();
    to.counter("avocet_connections_total", "Attempts to connect.", totals.attempts);
    to.counter("avocet_connections_refused_total", "Attempts that did not sign in.", totals.refused);
    to.gauge("avocet_connections", "Clients that are signed in.", totals.connected as f64);
    to.gauge("avocet_connections_running", "Clients whose statement runs.", totals.running as f64);
}

/// A sample for each source.
fn metrics_of_replication(to: &mut Collected, sources: &[ReplicaStatus]) {
    use Kind::{Counter, Gauge};
    type Value = fn(&ReplicaStatus) -> Option<f64>;
    let families: [(Kind, &'static str, &'static str, Value); 9] = [
        (Gauge, "avocet_replication_running", "Whether the source is followed.", |status| {
            Some(f64::from(u8::from(status.reads == "Yes")))
        }),
        (Gauge, "avocet_replication_error", "Whether SHOW REPLICA STATUS has an error.", |status| {
            Some(f64::from(u8::from(status.last_error.is_some())))
        }),
        (
            Gauge,
            "avocet_replication_tables_left_out",
            "Tables that are not followed, or not yet.",
            |status| Some(status.left_out.len() as f64),
        ),
        (Gauge, "avocet_replication_lag_seconds", "Age of the newest commit that is visible.", |status| {
            status.seconds_behind.map(|seconds| seconds as f64)
        }),
        (
            Gauge,
            "avocet_replication_lag_transactions",
            "Transactions of the source that are not visible here.",
            |status| status.transactions_behind.map(|count| count as f64),
        ),
        (
            Gauge,
            "avocet_replication_lag_bytes",
            "Bytes of the source's log that are not visible here.",
            |status| status.bytes_behind.map(|bytes| bytes as f64),
        ),
        (Counter, "avocet_replication_transactions_total", "Transactions that were applied.", |status| {
            Some(status.transactions as f64)
        }),
        (Counter, "avocet_replication_changes_total", "Changes of rows that were applied.", |status| {
            Some(status.changes as f64)
        }),
        (Counter, "avocet_replication_copied_bytes_total", "Bytes of rows that were copied.", |status| {
            Some(status.copied_bytes as f64)
        }),
    ];
    for (kind, family, help, value) in families {
        for status in sources {
            let labels = match &*status.channel {
                "" => String::new(),
                channel => label("channel", &escaped(channel)),
            };
            if let Some(value) = value(status) {
                to.add(kind, family, help, labels, value);
            }
        }
    }
}

/// As label values are written.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
