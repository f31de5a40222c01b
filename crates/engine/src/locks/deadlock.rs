//! Deadlocks: a transaction that begins to wait looks for a way back to itself.
//!
//! Every transaction of a cycle waits, so the cycle was closed by the last of them to begin; it finds the cycle while
//! all queues stand still. The victim is the one that has done the least; of equals, the one that came last.
//!
//! The search goes breadth first, so it finds a shortest cycle, and follows few edges of the many that a long queue has.
//! All who want a row exclusively wait for the same transactions outside of its queue, its holder and those who share it, so
//! that way out of a row is followed once; the edges between them lead nowhere else. Who wants to share a row waits for its
//! holder, and for whoever is ahead and wants it exclusively: the first of these stands for them all. So a search costs no
//! more than there are transactions on its way, however many wait for one row.

use std::collections::VecDeque;
use std::sync::Arc;

use avocet_base::TxnId;
use avocet_storage::TxnState;
use hashbrown::{HashMap, HashSet};

use super::queue::Entry;
use super::{Entries, Graph, LockMode, RowKey, RowLocks, Waiter, stripe_number};
use crate::sync::MutexGuard;

/// The queues and who waits in them, standing still.
struct Still<'l> {
    stripes: Vec<MutexGuard<'l, Entries>>,
    graph: MutexGuard<'l, Graph>,
}

/// How far a search has come.
struct Search<'s> {
    start: &'s Arc<Waiter>,
    /// Who led to a transaction.
    reached: HashMap<TxnId, Arc<Waiter>>,
    /// Waiting transactions from which it goes on.
    frontier: VecDeque<Arc<Waiter>>,
    /// Rows whose sharers have been reached.
    left: HashSet<RowKey>,
    /// Of a row, the first who wants it exclusively.
    first_exclusive: HashMap<RowKey, Option<Arc<Waiter>>>,
}

impl RowLocks {
    /// Breaks every deadlock that `waiter` has closed. Its victims are told; `waiter` may be one of them.
    pub fn break_deadlocks(&self, waiter: &Arc<Waiter>, holds_shared: bool) {
        // Whom nobody waits for closes no circle. Those behind it in its queue wait for whom it waits for.
        if !waiter.txn.is_waited_for() && !holds_shared {
            return;
        }
        let (stripes, graph) = self.freeze();
        let still = Still { stripes, graph };
        while !waiter.is_victim() {
            let Some(cycle) = still.cycle(waiter) else { return };
            // The cycle begins with `waiter`, which thus wins a tie.
            let victim = cycle.iter().min_by_key(|waiter| waiter.weight).expect("a cycle is not empty");
            victim.sacrifice();
        }
    }
}

impl Still<'_> {
    /// Waiters each of which waits for the next, and the last for the first, which is `start`.
    fn cycle(&self, start: &Arc<Waiter>) -> Option<Vec<Arc<Waiter>>> {
        let mut search = Search {
            start,
            reached: HashMap::new(),
            frontier: VecDeque::from([start.clone()]),
            left: HashSet::new(),
            first_exclusive: HashMap::new(),
        };
        while let Some(waiter) = search.frontier.pop_front() {
            let Some(entry) = self.stripes[stripe_number(&waiter.key)].get(&waiter.key) else { continue };
            if search.follow(&self.graph, entry, &waiter) {
                return Some(search.path_to(waiter));
            }
        }
        None
    }
}

impl Search<'_> {
    /// Follows the edges from a waiter; true if one leads back to the start.
    fn follow(&mut self, graph: &Graph, entry: &Entry, waiter: &Arc<Waiter>) -> bool {
        if entry.holder().is_some_and(|holder| self.reach(graph, holder, waiter)) {
            return true;
        }
        match waiter.mode {
            LockMode::Watch => false,
            LockMode::Shared => {
                let ahead = self.ahead(entry, waiter);
                ahead.is_some_and(|ahead| self.reach(graph, &ahead.txn, waiter))
            }
            LockMode::Exclusive => {
                // Whoever shares the row itself has another way out of it: not to itself.
                if !entry.shares(&waiter.txn) && !self.left.insert(waiter.key) {
                    return false;
                }
                let mut sharers = entry.sharers().iter();
                sharers.any(|sharer| sharer.is_running() && self.reach(graph, sharer, waiter))
            }
        }
    }

    /// The first in the queue who wants the row exclusively, if it is before `waiter`.
    fn ahead(&mut self, entry: &Entry, waiter: &Arc<Waiter>) -> Option<Arc<Waiter>> {
        let first =
            self.first_exclusive.entry(waiter.key).or_insert_with(|| entry.first_exclusive().cloned());
        first.clone().filter(|first| first.number < waiter.number)
    }

    /// An edge leads from a waiter to a transaction.
    fn reach(&mut self, graph: &Graph, to: &Arc<TxnState>, from: &Arc<Waiter>) -> bool {
        if Arc::ptr_eq(to, &from.txn) {
            return false;
        }
        if Arc::ptr_eq(to, &self.start.txn) {
            return true;
        }
        if self.reached.contains_key(&to.id()) {
            return false;
        }
        self.reached.insert(to.id(), from.clone());
        // Whoever was told to give up does not wait any more, though it still stands in its queue.
        let waits = graph.waiting.get(&to.id()).filter(|waiter| !waiter.is_victim());
        self.frontier.extend(waits.cloned());
        false
    }

    /// From the start to the last waiter of a cycle.
    fn path_to(&self, last: Arc<Waiter>) -> Vec<Arc<Waiter>> {
        let mut path = vec![last];
        while let Some(from) = path.last().and_then(|waiter| self.reached.get(&waiter.txn.id())) {
            path.push(from.clone());
        }
        path.reverse();
        path
    }
}
