//! Row locks: who holds a row, who waits for it, and in which order they get it.
//!
//! A row's exclusive lock is its newest version: whoever put that there holds the row until it ends. So a lock that
//! nobody contends for costs nothing here. This table knows only of rows that are shared or waited for:
//!
//! ```text
//!  row latch (page or delete vector)
//!    └─ newest version of a running transaction? ── no ─▶ stripe in use? ── no ─▶ the row is free
//!                 │ yes                                      │ yes
//!                 └──────────────▶ Entry ◀───────────────────┘
//!                                  exclusive   whoever holds the row
//!                                  shared      holders of FOR SHARE
//!                                  queue       front ─▶ … ─▶ back
//!                                  watchers    out of turn
//! ```
//!
//! Order. Waiters are served in the order in which they came (`queue.rs`). A newcomer that finds the row free while the
//! one in front is still waking up may pass it, so that a hot row is not idle for a thread switch per transaction (no
//! convoy), but only [`queue::MAX_PASSES`] times, so that nobody starves. Whoever holds the row shared and asks for more does
//! not queue behind those who wait for it.
//!
//! The wait-for graph is not kept, it is derived: an edge leads from each waiter to the holders of its row and to those in the
//! queue who have to have the row first. So it is right if entries are, and these are right by construction: whatever
//! changes the holder of a row (a version is put on it or taken back) happens under the row's latch, and tells the row's entry
//! under the same latch.
//!
//! Invariants:
//! 1. Latch order: row latch → stripe → graph. Several stripes are latched in their order.
//! 2. Of a row that anybody waits for, the entry names the transaction that holds it exclusively, if that still runs.
//! 3. A transaction waits for at most one row at a time.
//! 4. Whoever is waited for is marked so ([`TxnState::note_waiter`]) before the waiter sleeps. A transaction ends (its state
//!    changes) first and wakes its waiters then: who is woken looks again.
//! 5. A new edge leads to a transaction that runs, or from one that begins to wait. So a cycle is closed by whoever
//!    begins to wait last, which is when deadlocks are looked for (`deadlock.rs`).

mod deadlock;
mod queue;
mod wait;

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use avocet_base::{RowId, TableId, TxnId};
use avocet_storage::TxnState;
use hashbrown::{HashMap, HashSet};

pub use wait::WaitHook;
pub(crate) use wait::{Patience, Waiter};

use crate::sync::{Mutex, MutexGuard};
use queue::Entry;

/// What a row is locked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LockMode {
    Shared,
    Exclusive,
    /// Not locked at all: waits until nobody holds the row exclusively, out of turn.
    Watch,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct RowKey {
    pub table: TableId,
    pub row: RowId,
}

/// What came of asking for a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Granted,
    /// The transaction shares the row already.
    Shared,
    /// The waiter stands in the queue.
    Queued,
    /// Whoever was in the way has just ended: ask again.
    Again,
    /// Somebody holds the row, and the asker did not want to wait.
    Busy,
}

const STRIPES: usize = 64;
/// What a row that one transaction shares takes, about: its entry in a table that is half full, and the list of holders.
pub(crate) const LOCK_ENTRY_BYTES: usize = 2 * size_of::<(RowKey, Entry)>() + 6 * size_of::<usize>();
/// A stripe with room for more entries than this gives memory back when it has few.
const KEPT_CAPACITY: usize = 256;

#[repr(align(64))]
struct Stripe {
    /// Entries there are. Changed under the latch of a row, which is also held where it matters.
    used: AtomicUsize,
    entries: Mutex<Entries>,
}

type Entries = HashMap<RowKey, Entry>;

/// Waits for row locks since the engine was opened, for monitoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowLockWaits {
    /// Those that have begun.
    pub count: u64,
    /// Of those that have ended, in microseconds.
    pub total_us: u64,
    pub longest_us: u64,
}

/// Who waits, and who is waited for.
#[derive(Default)]
struct Graph {
    waiting: HashMap<TxnId, Arc<Waiter>>,
    /// Rows that a transaction holds and others wait for: to be looked at when it ends.
    waited_for: HashMap<TxnId, HashSet<RowKey>>,
    waits: RowLockWaits,
}

pub(crate) struct RowLocks {
    stripes: Box<[Stripe]>,
    graph: Mutex<Graph>,
}

impl Default for RowLocks {
    fn default() -> Self {
        let stripe = || Stripe { used: AtomicUsize::new(0), entries: Mutex::new(Entries::default()) };
        Self { stripes: (0..STRIPES).map(|_| stripe()).collect(), graph: Mutex::new(Graph::default()) }
    }
}

/// A request for a row.
pub(crate) struct Request<'r> {
    pub key: RowKey,
    pub mode: LockMode,
    pub txn: &'r Arc<TxnState>,
    /// Whoever else holds the row exclusively, as its newest version says. The asker does not.
    pub holder: Option<&'r Arc<TxnState>>,
    /// What the transaction has done so far: the cheaper one is a deadlock's victim.
    pub weight: u64,
    pub patient: bool,
}

impl RowLocks {
    fn stripe(&self, key: &RowKey) -> &Stripe {
        &self.stripes[stripe_number(key)]
    }

    /// Whether the row may be shared or waited for. Asked under its latch.
    #[inline]
    pub fn may_be_contended(&self, key: &RowKey) -> bool {
        self.stripe(key).used.load(Ordering::Relaxed) > 0
    }

    /// Asks for a row, under its latch. `waiter` is the asker's place in the queue, if it has one; it gets one here. If an
    /// exclusive lock is granted, the asker takes the row before it lets go of the latch, or declines it.
    pub fn request(&self, request: &Request<'_>, waiter: &mut Option<Arc<Waiter>>) -> Answer {
        let stripe = self.stripe(&request.key);
        let mut entries = stripe.entries.lock();
        let entry = entries.entry(request.key).or_insert_with(|| {
            stripe.used.fetch_add(1, Ordering::Relaxed);
            Entry::default()
        });
        entry.set_holder(request.holder);
        let answer = if entry.admits(request, waiter.as_ref()) {
            self.grant(entry, request, waiter)
        } else if !request.patient {
            Answer::Busy
        } else {
            self.enqueue(entry, request, waiter)
        };
        tidy(stripe, &mut entries, &request.key);
        answer
    }

    fn grant(&self, entry: &mut Entry, request: &Request<'_>, waiter: &mut Option<Arc<Waiter>>) -> Answer {
        let passed = waiter.is_none() && entry.has_queue();
        if let Some(waiter) = waiter.take() {
            entry.remove(&waiter);
            self.graph.lock().end_wait(request.txn.id());
            entry.passed = 0;
        } else if passed {
            entry.passed += 1;
        }
        match request.mode {
            LockMode::Shared if entry.shares(request.txn) => return Answer::Shared,
            LockMode::Shared => {
                entry.share(request.txn);
                entry.wake();
            }
            LockMode::Exclusive if entry.has_waiters() => {
                entry.set_holder(Some(request.txn));
                self.graph.lock().note_waited_for(request.txn, request.key);
            }
            LockMode::Exclusive | LockMode::Watch => {}
        }
        Answer::Granted
    }

    fn enqueue(&self, entry: &mut Entry, request: &Request<'_>, waiter: &mut Option<Arc<Waiter>>) -> Answer {
        let mut graph = self.graph.lock();
        let place = waiter.get_or_insert_with(|| {
            let place = entry.push(request);
            graph.begin_wait(request.txn.id(), &place);
            place
        });
        place.sleep_again();
        match request.holder {
            Some(holder) if !graph.note_waited_for(holder, request.key) => Answer::Again,
            _ => Answer::Queued,
        }
    }

    /// Leaves the queue without the row.
    pub fn leave(&self, waiter: &Arc<Waiter>) {
        let stripe = self.stripe(&waiter.key);
        let mut entries = stripe.entries.lock();
        if let Some(entry) = entries.get_mut(&waiter.key) {
            entry.remove(waiter);
            entry.wake();
        }
        self.graph.lock().end_wait(waiter.txn.id());
        tidy(stripe, &mut entries, &waiter.key);
    }

    /// A transaction that runs on does not hold the row exclusively any more, or declines what it was granted: those who
    /// wait may have the row. Under its latch.
    pub fn give_back(&self, key: &RowKey, txn: &Arc<TxnState>) {
        let stripe = self.stripe(key);
        let mut entries = stripe.entries.lock();
        if let Some(entry) = entries.get_mut(key) {
            entry.forget_holder(txn);
            self.graph.lock().forget_waited_for(txn, key);
            entry.wake();
        }
        tidy(stripe, &mut entries, key);
    }

    /// A transaction has taken back a version of a row that it still holds. What is watched for (another key, say) may have
    /// come about. Under the row's latch.
    pub fn wake_watchers(&self, key: &RowKey) {
        if let Some(entry) = self.stripe(key).entries.lock().get(key) {
            entry.wake_watchers();
        }
    }

    /// A transaction that runs on gives back rows that have no versions of its own: those that it had loaded.
    pub fn give_back_all(&self, txn: &Arc<TxnState>, is_given_back: impl Fn(&RowKey) -> bool) {
        let mut keys: Vec<RowKey> = match self.graph.lock().waited_for.get(&txn.id()) {
            Some(keys) => keys.iter().filter(|key| is_given_back(key)).copied().collect(),
            None => return,
        };
        keys.sort_unstable();
        keys.iter().for_each(|key| self.give_back(key, txn));
    }

    /// Gives shared locks back.
    pub fn unshare(&self, txn: &Arc<TxnState>, keys: &[RowKey]) {
        for key in keys {
            let stripe = self.stripe(key);
            let mut entries = stripe.entries.lock();
            if let Some(entry) = entries.get_mut(key) {
                entry.unshare(txn);
                entry.wake();
            }
            tidy(stripe, &mut entries, key);
        }
    }

    /// Wakes those who wait for rows of a transaction that has ended.
    pub fn wake_waiters_of(&self, txn: &Arc<TxnState>) {
        debug_assert!(!txn.is_running(), "who runs on gives back row by row");
        let keys = self.graph.lock().waited_for.remove(&txn.id());
        let mut keys: Vec<RowKey> = keys.into_iter().flatten().collect();
        // In an order that does not depend on the process: a simulation's seed gives its schedule.
        keys.sort_unstable();
        for key in keys {
            if let Some(entry) = self.stripe(&key).entries.lock().get_mut(&key) {
                entry.forget_holder(txn);
                entry.wake();
            }
        }
    }

    /// Entries that there is room for without allocating.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.entries.lock().capacity()).sum()
    }

    pub fn waits(&self) -> RowLockWaits {
        self.graph.lock().waits
    }

    /// How many wait and have not been woken.
    pub fn sleepers(&self) -> usize {
        self.graph.lock().waiting.values().filter(|waiter| waiter.sleeps()).count()
    }

    /// Whom an entry with waiters names as the exclusive holder. `None` if nobody waits.
    #[cfg(test)]
    pub fn named_holder(&self, key: &RowKey) -> Option<Option<Arc<TxnState>>> {
        let entries = self.stripe(key).entries.lock();
        entries.get(key).filter(|entry| entry.has_waiters()).map(|entry| entry.holder().cloned())
    }

    /// All stripes and the graph: nothing moves while a deadlock is looked for.
    fn freeze(&self) -> (Vec<MutexGuard<'_, Entries>>, MutexGuard<'_, Graph>) {
        let stripes = self.stripes.iter().map(|stripe| stripe.entries.lock()).collect();
        (stripes, self.graph.lock())
    }
}

fn stripe_number(key: &RowKey) -> usize {
    let hash = foldhash::fast::FixedState::with_seed(0).hash_one(key);
    hash as usize % STRIPES
}

/// Removes an entry that says nothing any more.
fn tidy(stripe: &Stripe, entries: &mut Entries, key: &RowKey) {
    if entries.get(key).is_some_and(Entry::is_idle) {
        entries.remove(key);
        stripe.used.fetch_sub(1, Ordering::Relaxed);
        if entries.capacity() > KEPT_CAPACITY && entries.len() < entries.capacity() / 4 {
            let len = entries.len();
            entries.shrink_to(2 * len);
        }
    }
}

impl Graph {
    fn begin_wait(&mut self, txn: TxnId, waiter: &Arc<Waiter>) {
        self.waiting.insert(txn, waiter.clone());
        self.waits.count += 1;
    }

    fn end_wait(&mut self, txn: TxnId) {
        if let Some(waiter) = self.waiting.remove(&txn) {
            let us = waiter.began.elapsed().as_micros() as u64;
            self.waits.total_us += us;
            self.waits.longest_us = self.waits.longest_us.max(us);
        }
    }

    /// False if the holder has ended meanwhile.
    fn note_waited_for(&mut self, holder: &Arc<TxnState>, key: RowKey) -> bool {
        let is_new = self.waited_for.entry(holder.id()).or_default().insert(key);
        let still_runs = holder.note_waiter();
        if !still_runs && is_new {
            // Perhaps it had looked before this was noted: nobody else would take it away.
            self.forget_waited_for(holder, &key);
        }
        still_runs
    }

    fn forget_waited_for(&mut self, holder: &Arc<TxnState>, key: &RowKey) {
        if let Some(keys) = self.waited_for.get_mut(&holder.id()) {
            keys.remove(key);
            if keys.is_empty() {
                self.waited_for.remove(&holder.id());
            }
        }
    }
}

#[cfg(test)]
mod tests;
