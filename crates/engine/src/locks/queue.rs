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
    exclusive: Option<Arc<TxnState>>,
    shared: Vec<Arc<TxnState>>,
    /// Those who wait for their turn.
    queue: VecDeque<Arc<Waiter>>,
    watchers: Vec<Arc<Waiter>>,
    /// How many have come to the back of the queue.
    came: u64,
    /// Newcomers that got the row since the one in front could have had it.
    pub passed: u32,
}

impl Entry {
    pub fn is_idle(&self) -> bool {
        self.shared.is_empty() && !self.has_waiters()
    }

    pub fn has_waiters(&self) -> bool {
        self.has_queue() || !self.watchers.is_empty()
    }

    /// Whether somebody waits for his turn.
    pub fn has_queue(&self) -> bool {
        !self.queue.is_empty()
    }

    pub fn shares(&self, txn: &Arc<TxnState>) -> bool {
        self.shared.iter().any(|of| Arc::ptr_eq(of, txn))
    }

    /// Whoever holds the row exclusively now, as was just seen under its latch.
    pub fn set_holder(&mut self, holder: Option<&Arc<TxnState>>) {
        let is_same = match (&self.exclusive, holder) {
            (None, None) => true,
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            _ => false,
        };
        if !is_same {
            self.exclusive = holder.cloned();
        }
    }

    pub fn forget_holder(&mut self, txn: &Arc<TxnState>) {
        if self.exclusive.as_ref().is_some_and(|of| Arc::ptr_eq(of, txn)) {
            self.exclusive = None;
        }
    }

    /// The exclusive holder, unless it has ended.
    pub fn holder(&self) -> Option<&Arc<TxnState>> {
        self.exclusive.as_ref().filter(|txn| txn.is_running())
    }

    pub fn sharers(&self) -> &[Arc<TxnState>] {
        &self.shared
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
        let before = |waiter: &&Arc<Waiter>| place.is_none_or(|place| !Arc::ptr_eq(waiter, place));
        self.queue.iter().take_while(before).any(|ahead| excludes(ahead.mode, mode))
    }

    /// The first in the queue who wants the row exclusively and has not been told to give up.
    pub fn first_exclusive(&self) -> Option<&Arc<Waiter>> {
        self.queue.iter().find(|waiter| waiter.mode == LockMode::Exclusive && !waiter.is_victim())
    }

    pub fn share(&mut self, txn: &Arc<TxnState>) {
        self.shared.push(txn.clone());
    }

    pub fn unshare(&mut self, txn: &Arc<TxnState>) {
        self.shared.retain(|of| !Arc::ptr_eq(of, txn));
    }

    /// A place for a request. Whoever shares the row already and wants more goes first: those in the queue wait for it anyway.
    pub fn push(&mut self, request: &Request<'_>) -> Arc<Waiter> {
        let goes_first = request.mode == LockMode::Exclusive && self.shares(request.txn);
        self.came += u64::from(!goes_first);
        let waiter = Arc::new(Waiter::new(request, if goes_first { 0 } else { self.came }));
        match request.mode {
            LockMode::Watch => self.watchers.push(waiter.clone()),
            _ if goes_first => self.queue.push_front(waiter.clone()),
            LockMode::Shared | LockMode::Exclusive => self.queue.push_back(waiter.clone()),
        }
        waiter
    }

    pub fn remove(&mut self, waiter: &Arc<Waiter>) {
        let is_it = |other: &Arc<Waiter>| Arc::ptr_eq(other, waiter);
        if waiter.mode == LockMode::Watch {
            if let Some(at) = self.watchers.iter().position(is_it) {
                self.watchers.swap_remove(at);
            }
        } else if let Some(at) = self.queue.iter().position(is_it) {
            // Nearly always it is the first.
            self.queue.remove(at);
        }
    }

    /// Wakes those who may get the row now. Whoever has been woken looks for itself.
    pub fn wake(&self) {
        if self.holder().is_some() {
            return;
        }
        self.wake_watchers();
        let Some(front) = self.queue.front() else { return };
        if front.mode == LockMode::Exclusive {
            if self.shared.iter().all(|of| Arc::ptr_eq(of, &front.txn)) {
                front.wake();
            }
            return;
        }
        // Those behind it who share have been woken with it, up to the first who has not slept since.
        let sharers = self.queue.iter().take_while(|waiter| waiter.mode == LockMode::Shared);
        sharers.take_while(|waiter| waiter.wake()).for_each(drop);
    }

    pub fn wake_watchers(&self) {
        self.watchers.iter().for_each(|waiter| {
            waiter.wake();
        });
    }
}

fn excludes(a: LockMode, b: LockMode) -> bool {
    !matches!((a, b), (LockMode::Watch, _) | (_, LockMode::Watch) | (LockMode::Shared, LockMode::Shared))
}
