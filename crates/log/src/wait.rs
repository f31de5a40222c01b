//! Waiting for durability, by threads and by futures alike: both leave a waker under the LSN they need.
//!
//! The log thread publishes the durable LSN first and takes the queue's lock second; a waiter takes the lock
//! first and looks at the durable LSN second. So no waiter is missed, and only those whose LSN came are woken.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use avocet_base::Lsn;
use parking_lot::Mutex;

use crate::error::{Error, Result};

/// How far the log is durable, and who waits for more.
pub(crate) struct Durability {
    durable: AtomicU64,
    /// Why there will never be more; set once.
    failure: OnceLock<Error>,
    waiting: Mutex<BinaryHeap<Reverse<Waiting>>>,
}

struct Waiting {
    lsn: Lsn,
    waker: Waker,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.lsn.cmp(&other.lsn)
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.lsn == other.lsn
    }
}

impl Eq for Waiting {}

impl Durability {
    pub fn new(durable: Lsn) -> Self {
        Self {
            durable: AtomicU64::new(durable.0),
            failure: OnceLock::new(),
            waiting: Mutex::new(BinaryHeap::new()),
        }
    }

    pub fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    pub fn failure(&self) -> Option<&Error> {
        self.failure.get()
    }

    /// What there is to say about `lsn` now: durable, never to be, or nothing yet.
    fn state(&self, lsn: Lsn) -> Option<Result<()>> {
        if self.durable() >= lsn {
            return Some(Ok(()));
        }
        // The failure is set after the last publication, so that is to be looked at again.
        let failure = self.failure.get()?;
        Some(if self.durable() >= lsn { Ok(()) } else { Err(failure.clone()) })
    }

    pub fn publish(&self, durable: Lsn) {
        self.durable.store(durable.0, Ordering::Release);
        let mut ready = Vec::new();
        {
            let mut waiting = self.waiting.lock();
            while waiting.peek().is_some_and(|Reverse(next)| next.lsn <= durable) {
                ready.extend(waiting.pop());
            }
        }
        ready.into_iter().for_each(|Reverse(w)| w.waker.wake());
    }

    /// Ends all waiting for what is not durable yet. The first reason stays.
    pub fn fail(&self, reason: Error) {
        let _ = self.failure.set(reason);
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.into_iter().for_each(|Reverse(w)| w.waker.wake());
    }

    /// The answer, or `None` after `waker` was left to be called when there is one.
    fn poll(&self, lsn: Lsn, waker: &Waker) -> Option<Result<()>> {
        let mut waiting = self.waiting.lock();
        let state = self.state(lsn);
        if state.is_none() {
            waiting.push(Reverse(Waiting { lsn, waker: waker.clone() }));
        }
        state
    }

    /// Blocks the thread until `lsn` is durable.
    pub fn wait(&self, lsn: Lsn) -> Result<()> {
        if let Some(state) = self.state(lsn) {
            return state;
        }
        let unpark = Arc::new(Unpark(thread::current()));
        let waker = Waker::from(unpark);
        if let Some(state) = self.poll(lsn, &waker) {
            return state;
        }
        loop {
            thread::park();
            if let Some(state) = self.state(lsn) {
                return state;
            }
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A future that is ready when an LSN is durable; runs on any executor.
#[must_use = "a future does nothing unless polled"]
pub struct Durable {
    pub(crate) durability: Arc<Durability>,
    pub(crate) lsn: Lsn,
    /// The waker that stands in the queue.
    pub(crate) left: Option<Waker>,
}

impl Future for Durable {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(state) = self.durability.state(self.lsn) {
            return Poll::Ready(state);
        }
        if self.left.as_ref().is_some_and(|left| left.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        if let Some(state) = self.durability.poll(self.lsn, cx.waker()) {
            return Poll::Ready(state);
        }
        self.left = Some(cx.waker().clone());
        Poll::Pending
    }
}
