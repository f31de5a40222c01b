//! Compiled plans, kept by what their statements say and by all that they were compiled for.
//!
//! ```text
//!  key = settings │ default database │ digest │ types of its slots
//!           │
//!           ├─▶ the session's recent plans    no lock, nothing shared is written
//!           └─▶ the database's cache          sharded; on the first use in a session, or after another took the place
//! ```
//!
//! Text statements, COM_STMT_EXECUTE and EXECUTE make the same keys ([`digest`](avocet_sql::parse::digest)), so they share plans.
//! That a statement has no plan, and why, is kept in the same way. A query that has none, or one that may turn out to be of too
//! many rows, is kept as it was bound: the analytical path takes it from there.
//!
//! Invariants:
//! 1. A plan is used only while its tables are what they were when it was compiled, and for statements whose pinned literals
//!    are byte for byte the same. After a change of definitions each plan's tables are looked at once, when it is wanted;
//!    a reason for having none may be gone with any change, and what is bound without a plan is not looked at again.
//! 2. The cache is bounded, in plans and in variants of pinned literals. What was not used for longest goes first
//!    (second chance).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use avocet_engine::{Catalog, Engine};
use avocet_point::{NotPoint, PointPlan, ReadAs};
use avocet_sql::parse::deprecated::Deprecated;
use avocet_sql::parse::digest::Slot;
use avocet_sql::plan::BoundQuery;
use avocet_types::schema::TableDef;
use parking_lot::Mutex;

use super::privileges::needs::Need;
use super::summaries::OfPlan;

const SHARDS: usize = 16;
/// Digests that a shard keeps.
const SHARD_CAPACITY: usize = 256;
/// Plans of one digest that differ in their pinned literals.
const MAX_VARIANTS: usize = 8;
/// Plans that a session finds without the shared cache: a power of two.
const RECENT: usize = 64;

/// A bound query, for when it has no plan or its plan declines.
pub(super) struct KeptQuery {
    pub bound: Arc<BoundQuery>,
    /// What it reads.
    pub tables: Vec<Arc<TableDef>>,
    /// The parameters that it reads as dates or times.
    pub dates: Box<[(usize, ReadAs)]>,
}

/// A plan, or why there is none, and what that holds for.
pub(super) struct CachedPlan {
    pub key: Box<[u8]>,
    /// Of the newest catalog that it is known to hold for.
    catalog_version: AtomicU64,
    /// Slots whose text has to be this one.
    pub pinned: Box<[(usize, Box<[u8]>)]>,
    pub plan: Result<PointPlan, NotPoint>,
    /// What the other path runs instead of it, without binding it anew.
    pub query: Option<Box<KeptQuery>>,
    /// What an account needs to run it.
    pub needs: Box<[Need]>,
    /// The deprecated syntax of its text.
    pub deprecated: Box<[Deprecated]>,
    /// Where the statements that run on it are counted.
    pub summary: OfPlan,
    used: AtomicBool,
}

/// What a plan is looked for with.
pub(super) struct Wanted<'w> {
    pub key: &'w [u8],
    pub hash: u64,
    pub catalog_version: u64,
    pub engine: &'w Engine,
    pub slots: &'w [Slot],
    /// What the slots lie in.
    pub source: &'w [u8],
}

impl CachedPlan {
    pub fn new(
        wanted: &Wanted<'_>,
        pinned: Box<[(usize, Box<[u8]>)]>,
        plan: Result<PointPlan, NotPoint>,
        query: Option<Box<KeptQuery>>,
        (needs, deprecated): (Box<[Need]>, Box<[Deprecated]>),
    ) -> Self {
        Self {
            key: wanted.key.into(),
            catalog_version: AtomicU64::new(wanted.catalog_version),
            pinned,
            plan,
            query,
            needs,
            deprecated,
            summary: OfPlan::default(),
            used: AtomicBool::new(false),
        }
    }

    pub fn serves(&self, wanted: &Wanted<'_>) -> bool {
        *self.key == *wanted.key
            && self.pinned.iter().all(|(slot, text)| wanted.slots[*slot].span.bytes(wanted.source) == &**text)
            && self.holds_for(wanted)
    }

    fn holds_for(&self, wanted: &Wanted<'_>) -> bool {
        if self.catalog_version.load(Ordering::Relaxed) == wanted.catalog_version {
            return true;
        }
        let catalog = wanted.engine.catalog();
        catalog.version() == wanted.catalog_version && self.moves_on_to(&catalog)
    }

    /// Whether it holds for a catalog, too; this is noted.
    fn moves_on_to(&self, catalog: &Catalog) -> bool {
        let holds = self.plan.as_ref().is_ok_and(|plan| plan.is_current(catalog));
        if holds {
            self.catalog_version.store(catalog.version(), Ordering::Relaxed);
        }
        holds
    }

    fn same_place(&self, other: &Self) -> bool {
        self.key == other.key && self.pinned == other.pinned
    }
}

/// The plans of a database.
pub(super) struct PlanCache {
    hasher: RandomState,
    /// Of the newest catalog that a plan was kept for.
    version: AtomicU64,
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Default)]
struct Shard {
    plans: HashMap<u64, Vec<Arc<CachedPlan>>>,
    /// Hashes in the order in which they are looked at when there is no room.
    order: VecDeque<u64>,
}

impl Default for PlanCache {
    fn default() -> Self {
        Self { hasher: RandomState::new(), version: AtomicU64::new(0), shards: Default::default() }
    }
}

impl PlanCache {
    pub fn hash(&self, key: &[u8]) -> u64 {
        // Keys come from clients: the hash is one that they cannot foresee.
        self.hasher.hash_one(key)
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    pub fn get(&self, wanted: &Wanted<'_>) -> Option<Arc<CachedPlan>> {
        let shard = self.shard(wanted.hash).lock();
        let found = shard.plans.get(&wanted.hash)?.iter().find(|plan| plan.serves(wanted))?;
        found.used.store(true, Ordering::Relaxed);
        Some(found.clone())
    }

    /// Keeps a plan that was compiled for this catalog.
    pub fn put(&self, hash: u64, plan: Arc<CachedPlan>, catalog: &Catalog) {
        // After a change of definitions: what will not be used again must not hold dropped tables.
        if self.version.fetch_max(catalog.version(), Ordering::Relaxed) < catalog.version() {
            self.shards.iter().for_each(|shard| shard.lock().move_on_to(catalog));
        }
        self.shard(hash).lock().put(hash, plan);
    }

    /// Forgets a plan that is not worth its place any more.
    pub fn remove(&self, hash: u64, plan: &Arc<CachedPlan>) {
        if let Some(plans) = self.shard(hash).lock().plans.get_mut(&hash) {
            plans.retain(|other| !Arc::ptr_eq(other, plan));
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().plans.values().map(Vec::len).sum::<usize>()).sum()
    }
}

impl Shard {
    fn put(&mut self, hash: u64, plan: Arc<CachedPlan>) {
        if !self.plans.contains_key(&hash) {
            self.make_room();
            self.order.push_back(hash);
        }
        let plans = self.plans.entry(hash).or_default();
        plans.retain(|other| !other.same_place(&plan));
        if plans.len() == MAX_VARIANTS {
            plans.remove(0);
        }
        plans.push(plan);
    }

    fn move_on_to(&mut self, catalog: &Catalog) {
        self.plans.retain(|_, plans| {
            plans.retain(|plan| plan.moves_on_to(catalog));
            !plans.is_empty()
        });
        let Self { plans, order } = self;
        order.retain(|hash| plans.contains_key(hash));
    }

    fn make_room(&mut self) {
        while self.order.len() >= SHARD_CAPACITY {
            let Some(hash) = self.order.pop_front() else { return };
            let used = |plan: &Arc<CachedPlan>| plan.used.swap(false, Ordering::Relaxed);
            // All of them are to be asked.
            let used =
                self.plans.get(&hash).is_some_and(|plans| plans.iter().filter(|plan| used(plan)).count() > 0);
            if used {
                self.order.push_back(hash);
            } else {
                self.plans.remove(&hash);
            }
        }
    }
}

/// The plans that a session used last, by a part of their hash. Empty until the session has one.
#[derive(Default)]
pub(super) struct RecentPlans(Vec<Option<Arc<CachedPlan>>>);

impl RecentPlans {
    /// Takes out the plan that is wanted; it is to be given back after use.
    pub fn take(&mut self, wanted: &Wanted<'_>) -> Option<Arc<CachedPlan>> {
        self.0.get_mut(wanted.hash as usize % RECENT)?.take_if(|plan| plan.serves(wanted))
    }

    pub fn give(&mut self, hash: u64, plan: Arc<CachedPlan>) {
        if self.0.is_empty() {
            self.0.resize_with(RECENT, || None);
        }
        // The shared cache keeps what sessions use.
        if !plan.used.load(Ordering::Relaxed) {
            plan.used.store(true, Ordering::Relaxed);
        }
        self.0[hash as usize % RECENT] = Some(plan);
    }
}

#[cfg(test)]
mod tests {
    use avocet_engine::EngineOptions;

    use super::*;

    fn refused(wanted: &Wanted<'_>) -> Arc<CachedPlan> {
        Arc::new(CachedPlan::new(
            wanted,
            [].into(),
            Err(NotPoint::because("of the test")),
            None,
            ([].into(), [].into()),
        ))
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = Engine::open(EngineOptions::new(folder.path())).expect("a new engine");
        let catalog = engine.catalog();
        let cache = PlanCache::default();
        let put = |key: &[u8]| {
            let hash = cache.hash(key);
            let catalog_version = catalog.version();
            let wanted = Wanted { key, hash, catalog_version, engine: &engine, slots: &[], source: b"" };
            cache.put(hash, refused(&wanted), &catalog);
        };
        let find = |key: &[u8]| {
            let (hash, catalog_version) = (cache.hash(key), catalog.version());
            let wanted = Wanted { key, hash, catalog_version, engine: &engine, slots: &[], source: b"" };
            cache.get(&wanted).is_some()
        };
        put(b"kept");
        for n in 0..3 * SHARDS * SHARD_CAPACITY {
            assert!(find(b"kept"), "after {n} others");
            put(format!("other {n}").as_bytes());
        }
        assert!(cache.len() <= SHARDS * SHARD_CAPACITY);
    }
}
