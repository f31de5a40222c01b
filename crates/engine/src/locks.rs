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
//!                                  exclusive   whoever holds the row, where that is known
//!                                  shared      holders of FOR SHARE
//!                                  waiters     front ─▶ … ─▶ back
//! ```
//!
//! Order. Waiters are served in the order in which they came (`queue.rs`). A newcomer that finds the row free while the
//! one in front is still waking up may pass it, so that a hot row is not idle for a thread switch per transaction (no
//! convoy), but only [`queue::MAX_PASSES`] times, so that nobody starves. Whoever holds the row shared and asks for more does
//! not queue behind those who wait for it.
//!
//! Deadlocks are looked for when a wait begins (`deadlock.rs`), over all that waits at that moment.
//!
//! Invariants:
//! 1. Latch order: row latch → stripe → graph. Several stripes are latched in their order.
//! 2. An entry that has waiters names the exclusive holder, or that has ended and its waiters are being woken.
//! 3. A transaction waits for at most one row at a time.
//! 4. A transaction ends (its state changes) first and wakes its waiters then: who is woken looks again.

mod deadlock;
mod queue;
mod wait;

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use avocet_base::{RowId, TableId, TxnId};
use avocet_storage::TxnState;
use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard};

pub use wait::WaitHook;
pub(crate) use wait::{Patience, Waiter};

use queue::Entry;

/// What a row is locked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LockMode {
    Shared,
    Exclusive,
    /// Not locked at all: waits until nobody holds the row exclusively, out of turn.
    Watch,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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

#[repr(align(64))]
#[derive(Default)]
struct Stripe {
    /// Entries there are. Changed under the latch of a row, which is also held where it matters.
    used: AtomicUsize,
    entries: Mutex<Entries>,
}

type Entries = HashMap<RowKey, Entry>;

/// Who waits, and who is waited for.
#[derive(Default)]
pub(crate) struct Graph {
    waiting: HashMap<TxnId, Arc<Waiter>>,
    /// Rows that a transaction holds and others wait for: to be looked at when it ends.
    waited_for: HashMap<TxnId, Vec<RowKey>>,
}

pub(crate) struct RowLocks {
    stripes: Box<[Stripe]>,
    graph: Mutex<Graph>,
}

impl Default for RowLocks {
    fn default() -> Self {
        Self { stripes: (0..STRIPES).map(|_| Stripe::default()).collect(), graph: Mutex::default() }
    }
}

/// A request for a row.
pub(crate) struct Request<'r> {
    pub key: RowKey,
    pub mode: LockMode,
    pub txn: &'r Arc<TxnState>,
    /// Whoever else holds the row exclusively, as its newest version says.
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

    /// Asks for a row, under its latch. `waiter` is the asker's place in the queue, if it has one; it gets one here.
    pub fn request(&self, request: &Request<'_>, waiter: &mut Option<Arc<Waiter>>) -> Answer {
        let stripe = self.stripe(&request.key);
        let mut entries = stripe.entries.lock();
        let entry = entries.entry(request.key).or_insert_with(|| {
            stripe.used.fetch_add(1, Ordering::Relaxed);
            Entry::default()
        });
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
            self.graph.lock().waiting.remove(&request.txn.id());
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
                entry.exclusive = Some(request.txn.clone());
                self.graph.lock().note_waited_for(request.txn, request.key);
            }
            LockMode::Exclusive => entry.exclusive = None,
            LockMode::Watch => {}
        }
        Answer::Granted
    }

    fn enqueue(&self, entry: &mut Entry, request: &Request<'_>, waiter: &mut Option<Arc<Waiter>>) -> Answer {
        let place = waiter.get_or_insert_with(|| {
            let place = Arc::new(Waiter::new(request));
            entry.push(place.clone());
            self.graph.lock().waiting.insert(request.txn.id(), place.clone());
            place
        });
        place.sleep_again();
        match request.holder {
            Some(holder) => {
                entry.exclusive = Some(holder.clone());
                let still_runs = self.graph.lock().note_waited_for(holder, request.key);
                if still_runs { Answer::Queued } else { Answer::Again }
            }
            None => {
                if entry.exclusive.as_ref().is_some_and(|txn| !Arc::ptr_eq(txn, request.txn)) {
                    entry.exclusive = None;
                }
                Answer::Queued
            }
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
        self.graph.lock().waiting.remove(&waiter.txn.id());
        tidy(stripe, &mut entries, &waiter.key);
    }

    /// Wakes those who may have a row now.
    pub fn pass_on(&self, key: &RowKey) {
        if let Some(entry) = self.stripe(key).entries.lock().get(key) {
            entry.wake();
        }
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

    /// Wakes those who wait for rows of a transaction that has ended, or has given some of them back.
    pub fn wake_waiters_of(&self, txn: &Arc<TxnState>) {
        let keys = self.graph.lock().waited_for.remove(&txn.id());
        for key in keys.unwrap_or_default() {
            let mut entries = self.stripe(&key).entries.lock();
            if let Some(entry) = entries.get_mut(&key) {
                if entry.exclusive.as_ref().is_some_and(|of| Arc::ptr_eq(of, txn)) {
                    entry.exclusive = None;
                }
                entry.wake();
            }
        }
    }

    /// How many wait and have not been woken.
    pub fn sleepers(&self) -> usize {
        self.graph.lock().waiting.values().filter(|waiter| waiter.sleeps()).count()
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
    }
}

impl Graph {
    /// False if the holder has ended meanwhile.
    fn note_waited_for(&mut self, holder: &Arc<TxnState>, key: RowKey) -> bool {
        let keys = self.waited_for.entry(holder.id()).or_default();
        let is_new = !keys.contains(&key);
        if is_new {
            keys.push(key);
        }
        let still_runs = holder.note_waiter();
        if !still_runs && is_new {
            // Perhaps it had looked before this was noted: nobody else would take it away.
            keys.pop();
            if keys.is_empty() {
                self.waited_for.remove(&holder.id());
            }
        }
        still_runs
    }
}

#[cfg(test)]
mod tests;
