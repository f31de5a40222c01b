//! What SHOW STATUS counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

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
    PlansCompiled,
}

const NAMES: [&str; 9] = [
    "Questions",
    "Com_select",
    "Com_insert",
    "Com_update",
    "Com_delete",
    "Com_commit",
    "Com_rollback",
    "Avocet_analytic_queries",
    "Avocet_point_plans_compiled",
];

/// Counters since start, of the whole server.
pub struct Counters {
    started: Instant,
    counts: [AtomicU64; NAMES.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Self { started: Instant::now(), counts: Default::default() }
    }
}

impl Counters {
    pub fn add(&self, counter: Counter) {
        self.counts[counter as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Names and values, sorted by name.
    pub fn list(&self) -> Vec<(&'static str, String)> {
        let counts = NAMES.iter().zip(&self.counts);
        let mut list: Vec<_> =
            counts.map(|(name, n)| (*name, n.load(Ordering::Relaxed).to_string())).collect();
        list.push(("Uptime", self.started.elapsed().as_secs().to_string()));
        list.sort_unstable_by_key(|(name, _)| *name);
        list
    }
}
