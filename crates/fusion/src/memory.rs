//! The memory of one query: who may have how much of it, and how small the pieces are that operators work in.
//!
//! ```text
//!  0                                                                        limit
//!  ├── operators that can spill ──────────────────────┬── what can not spill ──┤
//!      half of it in equal shares, which each is sure     at least this much:
//!      of; the other half for whoever asks first          merging what was spilled (shared in the same way), joins
//! ```
//!
//! An operator that is refused memory spills; one that can not spill fails, and the query with it. So what can spill is
//! refused first: what it would take would be missing for merging what was spilled before. It is refused before it
//! takes the share of another, which could not spill what it does not have. And no single reservation may have it all:
//! an aggregate that merges what it has spilled takes as much as it gets, and then needs some more for the groups.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{DataFusionError, resources_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

use crate::admission::Shortage;
use crate::method::Method;

/// Of a limit, what operators that can spill have together, in tenths.
const SPILLABLE_TENTHS: usize = 7;
/// Of that, what one reservation may have, in tenths.
const RESERVATION_TENTHS: usize = 8;
/// The same for a query that did not fit: merging what a sort has in memory takes as much again if its rows are small.
const SMALL_RESERVATION_TENTHS: usize = 5;
/// Of a limit, what all joins of sorted inputs may have, in tenths: what they take would be missing for the merges that they
/// read from.
const MERGE_JOIN_TENTHS: usize = 2;
/// Of a limit, what a query has while it merges, in tenths: whoever reads what is merged needs some memory, too.
const MERGE_TENTHS: usize = 9;

/// How a query works within its limit: with little memory on fewer threads and in smaller batches, since each
/// operator of each thread holds some batches at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizing {
    pub partitions: usize,
    pub batch_rows: usize,
    /// What a sort keeps back for merging what it has spilled, in bytes.
    pub sort_reservation: usize,
    /// Up to so many bytes are sorted in one piece, whose parts then count as the whole each.
    pub sort_in_place: usize,
}

impl Sizing {
    const MOST_ROWS: usize = 8192;
    const FEWEST_ROWS: usize = 64;
    const BYTES_PER_PARTITION: usize = 64 << 20;
    /// Of the limit, for each row of a batch.
    const BYTES_PER_ROW: usize = 8 << 10;
    /// A batch has at most this share of the limit: a dozen or so are on their way at a time.
    const BATCH_SHARE: usize = 64;
    /// How much larger rows are than where they are stored, compressed.
    const EXPANSION: usize = 3;
    const MOST_SORT_RESERVATION: usize = 10 << 20;
    const MOST_SORT_IN_PLACE: usize = 1 << 20;

    /// For a query whose joins are merges of sorted inputs: these are many operators that hold some batches of each of their
    /// spilled runs at a time, on one thread.
    pub fn of_merges(limit: usize) -> Self {
        let rows = (limit / Self::BYTES_PER_ROW / 8).clamp(Self::FEWEST_ROWS, Self::MOST_ROWS);
        Self { batch_rows: 1 << rows.ilog2(), ..Self::new(limit, 1) }
    }

    pub fn new(limit: usize, threads: usize) -> Self {
        let rows = (limit / Self::BYTES_PER_ROW).clamp(Self::FEWEST_ROWS, Self::MOST_ROWS);
        Self {
            partitions: threads.min(limit / Self::BYTES_PER_PARTITION).max(1),
            batch_rows: 1 << rows.ilog2(),
            sort_reservation: (limit / 16).min(Self::MOST_SORT_RESERVATION),
            sort_in_place: (limit / 64).min(Self::MOST_SORT_IN_PLACE),
        }
    }

    /// For tables whose rows take so many bytes where they are stored, and expressions that make so many of a row: batches of
    /// large ones have fewer.
    pub fn for_rows_of(self, bytes: usize, made: usize, limit: usize) -> Self {
        let rows = limit / Self::BATCH_SHARE / (bytes * Self::EXPANSION + made).max(1);
        let rows = rows.clamp(1, Self::MOST_ROWS);
        Self { batch_rows: self.batch_rows.min(1 << rows.ilog2()), ..self }
    }
}

/// One query's memory, which also counts for all. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct QueryPool {
    limit: usize,
    /// What operators that can spill may have together.
    spillable_limit: usize,
    /// What one reservation of theirs may have.
    reservation_limit: usize,
    all: Arc<dyn MemoryPool>,
    /// Told what that refused.
    shortage: Arc<Shortage>,
    state: Arc<parking_lot::Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    reserved: usize,
    /// Of operators that can spill.
    spillers: Shares,
    /// Of those that merge what was spilled, or may come to do so.
    merges: Shares,
    /// Of joins of what is merged.
    merge_joins: Shares,
    /// By the consumer's id.
    roles: HashMap<usize, Role>,
}

/// What operators of one kind have: half of a limit in equal shares, which each is sure of, the rest as they ask for it.
#[derive(Debug, Default)]
struct Shares {
    total: usize,
    /// By the operator's id.
    taken: HashMap<usize, usize>,
}

impl Shares {
    /// Whether an operator may have so much more: what others are sure of and have not taken yet is left to them.
    fn admit(&self, limit: usize, id: usize, additional: usize) -> bool {
        let share = limit / 2 / self.taken.len().max(1);
        let own = self.taken.get(&id).copied().unwrap_or(0);
        let untaken: usize = self.taken.values().map(|taken| share.saturating_sub(*taken)).sum();
        let of_others = untaken - share.saturating_sub(own);
        own + additional <= share || self.total + additional + of_others <= limit
    }

    fn take(&mut self, id: usize, bytes: usize) {
        self.total += bytes;
        *self.taken.entry(id).or_default() += bytes;
    }

    fn give_back(&mut self, id: usize, bytes: usize) {
        self.total -= bytes;
        *self.taken.entry(id).or_default() -= bytes;
    }
}

impl QueryPool {
    /// With a method if there is anything to spill to.
    pub fn new(
        limit: usize,
        spills: Option<Method>,
        all: Arc<dyn MemoryPool>,
        shortage: Arc<Shortage>,
    ) -> Self {
        let spillable = limit / 10 * SPILLABLE_TENTHS;
        let (spillable_limit, reservation_limit) = match spills {
            Some(Method::InMemory) => (spillable, spillable / 10 * RESERVATION_TENTHS),
            Some(Method::Spilling) => (spillable, spillable / 10 * SMALL_RESERVATION_TENTHS),
            None => (limit, limit),
        };
        let state = Arc::default();
        Self { limit, spillable_limit, reservation_limit, all, shortage, state }
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether the operator may have so much more.
    fn admits(&self, state: &State, reservation: &MemoryReservation, additional: usize) -> bool {
        let consumer = reservation.consumer();
        // What can not be refused may have gone beyond the limit.
        if additional == 0 {
            return true;
        }
        if state.reserved + additional > self.limit {
            return false;
        }
        let tenths = |tenths| self.limit / 10 * tenths;
        let id = consumer.id();
        match state.kind(consumer) {
            Kind::Merge => {
                let most = tenths(MERGE_TENTHS);
                state.reserved + additional <= most && state.merges.admit(most, id, additional)
            }
            Kind::MergeJoin => state.merge_joins.admit(tenths(MERGE_JOIN_TENTHS), id, additional),
            Kind::Spiller => {
                reservation.size() + additional <= self.reservation_limit
                    && state.spillers.admit(self.spillable_limit, id, additional)
            }
            Kind::Counted | Kind::Other => true,
        }
    }
}

/// Operators whose reservations are not told apart by whether they can spill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// What can not spill merges the runs that were spilled: it takes as much as it gets, and does with little if it has to.
    Sort,
    /// Joins two sorted inputs: it holds the rows of one key, and spills them if it is refused more.
    MergeJoin,
    /// Must not spill, as it may wait for ever when it does (DataFusion issue 24883). What it holds is bounded by its channels;
    /// it is counted, so that the operators that can spill do so earlier.
    Exchange,
}

/// Reservations, by what becomes of them when they are refused memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Spiller,
    Merge,
    MergeJoin,
    Counted,
    Other,
}

impl State {
    fn kind(&self, consumer: &MemoryConsumer) -> Kind {
        match self.roles.get(&consumer.id()) {
            Some(Role::Exchange) => Kind::Counted,
            Some(Role::MergeJoin) => Kind::MergeJoin,
            Some(Role::Sort) if !consumer.can_spill() => Kind::Merge,
            _ if consumer.can_spill() => Kind::Spiller,
            _ => Kind::Other,
        }
    }
}

/// A query's memory as operators of one role see it.
#[derive(Debug)]
pub(super) struct RolePool {
    pool: Arc<dyn MemoryPool>,
    query: Arc<QueryPool>,
    role: Role,
}

impl RolePool {
    /// `pool` is the query's, perhaps behind others.
    pub fn new(pool: Arc<dyn MemoryPool>, query: Arc<QueryPool>, role: Role) -> Self {
        Self { pool, query, role }
    }
}

impl std::fmt::Display for RolePool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pool.fmt(f)
    }
}

impl MemoryPool for RolePool {
    fn name(&self) -> &str {
        "role"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.query.state.lock().roles.insert(consumer.id(), self.role);
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
        self.query.state.lock().roles.remove(&consumer.id());
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<(), DataFusionError> {
        self.pool.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }
}

impl State {
    /// The shares of which an operator has its own.
    fn shares(&mut self, consumer: &MemoryConsumer) -> Option<&mut Shares> {
        match self.kind(consumer) {
            Kind::Spiller => Some(&mut self.spillers),
            Kind::Merge => Some(&mut self.merges),
            Kind::MergeJoin => Some(&mut self.merge_joins),
            Kind::Counted | Kind::Other => None,
        }
    }

    fn take(&mut self, consumer: &MemoryConsumer, bytes: usize) {
        self.reserved += bytes;
        if let Some(shares) = self.shares(consumer) {
            shares.take(consumer.id(), bytes);
        }
    }

    fn give_back(&mut self, consumer: &MemoryConsumer, bytes: usize) {
        self.reserved -= bytes;
        if let Some(shares) = self.shares(consumer) {
            shares.give_back(consumer.id(), bytes);
        }
    }
}

impl std::fmt::Display for QueryPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "query pool: {} bytes of {}", self.reserved(), self.limit)
    }
}

impl MemoryPool for QueryPool {
    fn name(&self) -> &str {
        "query"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if let Some(shares) = self.state.lock().shares(consumer) {
            shares.taken.insert(consumer.id(), 0);
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if let Some(shares) = self.state.lock().shares(consumer) {
            shares.taken.remove(&consumer.id());
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.state.lock().take(reservation.consumer(), additional);
        self.all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.state.lock().give_back(reservation.consumer(), shrink);
        self.all.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<(), DataFusionError> {
        let consumer = reservation.consumer();
        {
            let mut state = self.state.lock();
            if state.kind(consumer) == Kind::Counted {
                drop(state);
                self.grow(reservation, additional);
                return Ok(());
            }
            if !self.admits(&state, reservation, additional) {
                self.shortage.clear();
                return Err(resources_datafusion_err!(
                    "{} has {} bytes and asked for {additional} more; the query has {} of {} (query_memory_limit)",
                    consumer.name(),
                    reservation.size(),
                    state.reserved,
                    self.limit
                ));
            }
            state.take(consumer, additional);
        }
        self.all.try_grow(reservation, additional).inspect_err(|_| {
            let mut state = self.state.lock();
            self.shortage.note(state.reserved, self.all.reserved());
            state.give_back(consumer, additional);
        })
    }

    fn reserved(&self) -> usize {
        self.state.lock().reserved
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::UnboundedMemoryPool;

    use super::*;

    fn query_pool(limit: usize, spills: bool) -> Arc<QueryPool> {
        let spills = spills.then_some(Method::InMemory);
        Arc::new(QueryPool::new(limit, spills, Arc::new(UnboundedMemoryPool::default()), Arc::default()))
    }

    fn pool(limit: usize, spills: bool) -> Arc<dyn MemoryPool> {
        query_pool(limit, spills)
    }

    fn in_role(pool: &Arc<QueryPool>, role: Role) -> Arc<dyn MemoryPool> {
        Arc::new(RolePool::new(pool.clone(), pool.clone(), role))
    }

    fn spiller(pool: &Arc<dyn MemoryPool>, name: &str) -> MemoryReservation {
        MemoryConsumer::new(name).with_can_spill(true).register(pool)
    }

    #[test]
    fn what_can_spill_leaves_room_for_what_can_not() {
        let pool = pool(1000, true);
        let sort = spiller(&pool, "sort");
        assert!(sort.try_grow(560).is_ok() && sort.try_grow(1).is_err());
        let more = sort.new_empty();
        assert!(more.try_grow(140).is_ok() && more.try_grow(1).is_err());
        let merge = MemoryConsumer::new("merge").register(&pool);
        assert!(merge.try_grow(300).is_ok() && merge.try_grow(1).is_err());
        drop((sort, more));
        assert!(merge.try_grow(700).is_ok(), "all of it, if it is there");
        drop(merge);
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn each_operator_that_can_spill_is_sure_of_a_share() {
        let query = query_pool(1000, true);
        let pool: Arc<dyn MemoryPool> = query.clone();
        let (first, second) = (spiller(&pool, "first"), spiller(&pool, "second"));
        assert!(first.try_grow(525).is_ok() && first.try_grow(1).is_err());
        assert!(second.try_grow(175).is_ok() && second.try_grow(1).is_err());
        first.free();
        assert!(second.try_grow(350).is_ok() && second.try_grow(1).is_err());
        let repartition = spiller(&in_role(&query, Role::Exchange), "exchange");
        assert!(repartition.try_grow(5000).is_ok(), "counted, not refused");
        assert!(first.try_grow(1).is_err());
    }

    #[test]
    fn merges_share_and_leave_something() {
        let query = query_pool(1000, true);
        let reserve = |role| MemoryConsumer::new("operator").register(&in_role(&query, role));
        let first = reserve(Role::Sort);
        assert!(first.try_grow(900).is_ok() && first.try_grow(1).is_err());
        first.free();
        let second = reserve(Role::Sort);
        assert!(first.try_grow(675).is_ok() && first.try_grow(1).is_err());
        assert!(second.try_grow(225).is_ok() && second.try_grow(1).is_err());
        second.free();
        let join = reserve(Role::MergeJoin);
        assert!(join.try_grow(200).is_ok() && join.try_grow(1).is_err());
        join.free();
        assert!(second.try_grow(225).is_ok());
        let pool: Arc<dyn MemoryPool> = query.clone();
        let other = MemoryConsumer::new("other").register(&pool);
        assert!(other.try_grow(100).is_ok() && other.try_grow(1).is_err() && other.try_grow(0).is_ok());
    }

    #[test]
    fn with_nothing_to_spill_to_all_is_for_whoever_asks() {
        let pool = pool(1000, false);
        let sort = spiller(&pool, "sort");
        assert!(sort.try_grow(1000).is_ok() && sort.try_grow(1).is_err());
    }

    #[test]
    fn little_memory_means_small_batches() {
        let large =
            Sizing { partitions: 16, batch_rows: 8192, sort_reservation: 10 << 20, sort_in_place: 1 << 20 };
        assert_eq!(Sizing::new(4 << 30, 16), large);
        let small =
            Sizing { partitions: 1, batch_rows: 4096, sort_reservation: 2_400_000, sort_in_place: 600_000 };
        assert_eq!(Sizing::new(38_400_000, 16), small);
        assert_eq!(Sizing::new(200 << 20, 16).partitions, 3);
        let rows = |bytes| Sizing::new(4 << 30, 16).for_rows_of(bytes, 0, 4 << 30).batch_rows;
        assert_eq!([0, 100, 2_700, 10_000, 1 << 20, 64 << 20].map(rows), [8192, 8192, 8192, 2048, 16, 1]);
        assert_eq!(Sizing::new(64 << 20, 1).for_rows_of(32, 100_000, 64 << 20).batch_rows, 8);
        let least = Sizing { partitions: 1, batch_rows: 64, sort_reservation: 0, sort_in_place: 0 };
        assert_eq!(Sizing::new(0, 16), least);
    }
}
