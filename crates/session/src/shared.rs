//! What the sessions of a database share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::{Arc, OnceLock};

use avocet_channel::Interrupt;
use avocet_engine::Engine;
use avocet_fusion::Analytics;
use parking_lot::Mutex;

use super::binary_log::{BinaryLog, Replicas};
use super::commands::Commands;
use super::counters::Counters;
use super::named_locks::NamedLocks;
use super::persisted::Persisted;
use super::plan_cache::PlanCache;
use super::replication::Replication;
use super::routing::Journal;
use super::summaries::Summaries;
use super::variables::Globals;

/// What is kept of passwords, by authentication plugin. The arithmetic belongs to the protocol server.
pub trait Passwords: Send + Sync {
    /// What `plugin` stores for a password; `None` if there is no such plugin.
    fn auth_string(&self, plugin: &str, password: &[u8]) -> Option<Vec<u8>>;

    /// Whether something has the form of what `plugin` stores for a password that is not empty.
    fn is_stored(&self, plugin: &str, text: &[u8]) -> bool;

    /// Whether what `plugin` stored is of a password.
    fn is_password(&self, plugin: &str, stored: &[u8], password: &[u8]) -> bool;
}

pub(super) struct Shared {
    pub engine: Arc<Engine>,
    pub globals: Arc<Globals>,
    pub passwords: Box<dyn Passwords>,
    pub counters: Counters,
    pub commands: Commands,
    pub plans: PlanCache,
    pub summaries: Summaries,
    pub locks: Arc<NamedLocks>,
    /// Where queries put what does not fit into memory.
    pub spill: OnceLock<PathBuf>,
    /// Started with the first query that needs it.
    pub analytics: OnceLock<Analytics>,
    /// Held by who starts them.
    pub analytics_start: Mutex<()>,
    /// Of a server that follows another.
    pub replication: Arc<OnceLock<Arc<dyn Replication>>>,
    /// Of a server that others may follow.
    pub binary_log: Arc<OnceLock<Arc<dyn BinaryLog>>>,
    pub replicas: Arc<Replicas>,
    /// Of a server that stands before the one that it follows.
    pub journal: Arc<Journal>,
    /// How many prepared statements there are.
    pub prepared: AtomicUsize,
    /// What SET PERSIST has told it to keep.
    pub persisted: Persisted,
    pub next_embedded: AtomicU32,
}

/// A request to stop what a session runs, in the form in which the engine asks for it.
pub(super) fn stop_request(interrupt: &Arc<Interrupt>) -> Arc<dyn Fn() -> bool + Send + Sync> {
    let interrupt = interrupt.clone();
    Arc::new(move || interrupt.get().is_some())
}
