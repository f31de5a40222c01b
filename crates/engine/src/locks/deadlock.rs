//! Deadlocks: a transaction that begins to wait looks for a way back to itself.
//!
//! Every transaction of a cycle waits, so the cycle was closed by the last of them to begin; it finds the cycle while
//! all queues stand still. The victim is the one that has done the least; of equals, the one that came last.

use std::sync::Arc;

use avocet_base::TxnId;
use avocet_storage::TxnState;
use hashbrown::HashSet;
use parking_lot::MutexGuard;

use super::{Entries, Graph, RowLocks, Waiter, stripe_number};

/// The queues and who waits in them, standing still.
struct Still<'l> {
    stripes: Vec<MutexGuard<'l, Entries>>,
    graph: MutexGuard<'l, Graph>,
}

impl RowLocks {
    /// Breaks every deadlock that `waiter` has closed. Its victims are told; `waiter` may be one of them.
    pub fn break_deadlocks(&self, waiter: &Arc<Waiter>, holds_shared: bool) {
        // Whom nobody waits for closes no circle.
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
    fn blockers(&self, waiter: &Arc<Waiter>) -> Vec<Arc<TxnState>> {
        let entry = self.stripes[stripe_number(&waiter.key)].get(&waiter.key);
        entry.map_or_else(Vec::new, |entry| entry.blockers(waiter))
    }

    /// Waiters each of which waits for the next, and the last for the first, which is `start`.
    fn cycle(&self, start: &Arc<Waiter>) -> Option<Vec<Arc<Waiter>>> {
        let mut seen: HashSet<TxnId> = HashSet::new();
        let mut path = vec![(start.clone(), self.blockers(start))];
        while let Some((_, left)) = path.last_mut() {
            let Some(next) = left.pop() else {
                path.pop();
                continue;
            };
            if Arc::ptr_eq(&next, &start.txn) {
                return Some(path.into_iter().map(|(waiter, _)| waiter).collect());
            }
            if !seen.insert(next.id()) {
                continue;
            }
            // Whoever was sacrificed does not wait any more, though it still stands in its queue.
            let waits = self.graph.waiting.get(&next.id()).filter(|waiter| !waiter.is_victim());
            if let Some(waiter) = waits.cloned() {
                let blockers = self.blockers(&waiter);
                path.push((waiter, blockers));
            }
        }
        None
    }
}
