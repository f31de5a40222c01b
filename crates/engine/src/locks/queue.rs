//! One row that is shared or waited for: its holders and its queue.

use std::collections::VecDeque;
use std::sync::Arc;

use avocet_storage::TxnState;

use super::wait::Waiter;
use super::{LockMode, Request};

/// How many newcomers may pass the one in front while it wakes up.
pub const MAX_PASSES: u32 = 16;

#[derive(Default)]
pub(super) struct Entry {
    pub exclusive: Option<Arc<TxnState>>,
    shared: Vec<Arc<TxnState>>,
    waiters: VecDeque<Arc<Waiter>>,
    /// Newcomers that got the row since the one in front could have had it.
    pub passed: u32,
}

impl Entry {
    pub fn is_idle(&self) -> bool {
        self.shared.is_empty() && self.waiters.is_empty()
    }

    pub fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Whether somebody waits for his turn.
    pub fn has_queue(&self) -> bool {
        self.waiters.iter().any(|waiter| waiter.mode != LockMode::Watch)
    }

    pub fn shares(&self, txn: &Arc<TxnState>) -> bool {
        self.shared.iter().any(|of| Arc::ptr_eq(of, txn))
    }

    /// Whether a request can be granted now. `place`: where the asker stands in the queue, if it does.
    pub fn admits(&self, request: &Request<'_>, place: Option<&Arc<Waiter>>) -> bool {
        if request.holder.is_some() {
            return false;
        }
        let shared_by_others = self.shared.iter().any(|of| !Arc::ptr_eq(of, request.txn));
        match request.mode {
            LockMode::Watch => return true,
            LockMode::Exclusive if shared_by_others => return false,
            LockMode::Exclusive | LockMode::Shared => {}
        }
        if self.shares(request.txn) || !self.is_ahead(request.mode, place) {
            return true;
        }
        let is_newcomer = place.is_none();
        is_newcomer && request.patient && self.shared.is_empty() && self.passed < MAX_PASSES
    }

    /// Whether somebody in the queue before `place` (or anywhere in it) has to have the row first.
    fn is_ahead(&self, mode: LockMode, place: Option<&Arc<Waiter>>) -> bool {
        self.ahead(mode, place).next().is_some()
    }

    /// Those before `place` in the queue who want the row in a way that excludes `mode`.
    fn ahead<'e>(
        &'e self,
        mode: LockMode,
        place: Option<&'e Arc<Waiter>>,
    ) -> impl Iterator<Item = &'e Arc<Waiter>> {
        let before = move |waiter: &&Arc<Waiter>| place.is_none_or(|place| !Arc::ptr_eq(waiter, place));
        self.waiters.iter().take_while(before).filter(move |waiter| excludes(waiter.mode, mode))
    }

    /// Whom a waiter of this entry waits for.
    pub fn blockers(&self, waiter: &Arc<Waiter>) -> Vec<Arc<TxnState>> {
        let others = |txn: &&Arc<TxnState>| !Arc::ptr_eq(txn, &waiter.txn) && txn.is_running();
        let mut blockers: Vec<_> = self.exclusive.iter().filter(others).cloned().collect();
        if waiter.mode == LockMode::Exclusive {
            blockers.extend(self.shared.iter().filter(others).cloned());
        }
        if waiter.mode != LockMode::Watch && !self.shares(&waiter.txn) {
            blockers.extend(self.ahead(waiter.mode, Some(waiter)).map(|ahead| ahead.txn.clone()));
        }
        blockers
    }

    pub fn share(&mut self, txn: &Arc<TxnState>) {
        self.shared.push(txn.clone());
    }

    pub fn unshare(&mut self, txn: &Arc<TxnState>) {
        self.shared.retain(|of| !Arc::ptr_eq(of, txn));
    }

    /// Whoever shares the row already and wants more goes first: those in the queue wait for it anyway.
    pub fn push(&mut self, waiter: Arc<Waiter>) {
        if self.shares(&waiter.txn) {
            self.waiters.push_front(waiter);
        } else {
            self.waiters.push_back(waiter);
        }
    }

    pub fn remove(&mut self, waiter: &Arc<Waiter>) {
        self.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
    }

    /// Wakes those who may get the row now.
    pub fn wake(&self) {
        self.waiters.iter().filter(|waiter| waiter.mode == LockMode::Watch).for_each(|w| w.wake());
        let mut queue = self.waiters.iter().filter(|waiter| waiter.mode != LockMode::Watch);
        let Some(front) = queue.next() else { return };
        if front.mode == LockMode::Exclusive {
            if self.shared.iter().all(|of| Arc::ptr_eq(of, &front.txn)) {
                front.wake();
            }
            return;
        }
        front.wake();
        queue.take_while(|waiter| waiter.mode == LockMode::Shared).for_each(|waiter| waiter.wake());
    }
}

fn excludes(a: LockMode, b: LockMode) -> bool {
    match (a, b) {
        (LockMode::Watch, _) | (_, LockMode::Watch) => false,
        (LockMode::Shared, LockMode::Shared) => false,
        (LockMode::Exclusive, _) | (_, LockMode::Exclusive) => true,
    }
}
