//! Counters of statements, of the whole server.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use avocet_base::stripe::{self, STRIPES, Striped};

/// One counter for each kind of statement that clients ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    Questions,
    Select,
    Insert,
    Update,
    Delete,
    Commit,
    Rollback,
    SlowAnalytics,
    SlowQueries,
    PlansCompiled,
    StatementsParsed,
    QueriesBound,
}

const NAMES: [&str; 12] = [
    "Questions",
    "Com_select",
    "Com_insert",
    "Com_update",
    "Com_delete",
    "Com_commit",
    "Com_rollback",
    "Avocet_analytic_queries",
    "Slow_queries",
    "Avocet_point_plans_compiled",
    "Avocet_statements_parsed",
    "Avocet_queries_bound",
];

/// Counters since start, of the whole server.
pub struct Counters {
    started: Instant,
    counts: [Striped<[AtomicU64; NAMES.len()]>; STRIPES],
}

impl Default for Counters {
    fn default() -> Self {
        Self { started: Instant::now(), counts: Default::default() }
    }
}

impl Counters {
    pub fn add(&self, counter: Counter) {
        self.counts[stripe::own()].0[counter as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Of a name that SHOW STATUS has.
    pub fn get(&self, name: &str) -> u64 {
        let at = NAMES.iter().position(|known| *known == name);
        at.map_or(0, |at| self.count(at))
    }

    fn count(&self, at: usize) -> u64 {
        self.counts.iter().map(|stripe| stripe.0[at].load(Ordering::Relaxed)).sum()
    }

    fn counts(&self) -> [u64; NAMES.len()] {
        array::from_fn(|at| self.count(at))
    }

    /// The `Com_…` ones.
    pub fn commands(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.counts()).filter(|(name, _)| name.starts_with("Com_"))
    }

    /// Names and values, sorted by name.
    pub fn list(&self) -> Vec<(&'static str, String)> {
        let mut list: Vec<_> =
            NAMES.into_iter().zip(self.counts()).map(|(name, n)| (name, n.to_string())).collect();
        list.push(("Uptime", self.started.elapsed().as_secs().to_string()));
        list.sort_unstable_by_key(|(name, _)| *name);
        list
    }
}
