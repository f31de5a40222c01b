//! Waiting for a stage of the log (written, durable), by threads and by futures alike: both leave a waker under the
//! LSN they need.
//!
//! The log thread publishes how far the stage has come first and takes the queue's lock second; a waiter takes the lock
//! first and looks at that second. So no waiter is missed, and only those whose LSN came are woken.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use avocet_base::Lsn;
use avocet_base::env::Clock;
use avocet_base::histogram::AtomicHistogram;

use crate::error::{Error, Result};
use crate::sync::{AtomicU64, Mutex, Ordering, Thread, current, park};

/// How far a stage of the log has come, and who waits for more.
pub(crate) struct Progress {
    reached: AtomicU64,
    /// Why there will never be more; set once.
    failure: OnceLock<Error>,
    waiting: Mutex<BinaryHeap<Reverse<Waiting>>>,
    clock: Arc<dyn Clock>,
    /// How long waits took, in microseconds.
    waits: Arc<AtomicHistogram>,
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

impl Progress {
    pub fn new(reached: Lsn, clock: Arc<dyn Clock>, waits: Arc<AtomicHistogram>) -> Self {
        Self {
            clock,
            waits,
            reached: AtomicU64::new(reached.0),
            failure: OnceLock::new(),
            waiting: Mutex::new(BinaryHeap::new()),
        }
    }

    pub fn reached(&self) -> Lsn {
        Lsn(self.reached.load(Ordering::Acquire))
    }

    pub fn failure(&self) -> Option<&Error> {
        self.failure.get()
    }

    /// What there is to say about `lsn` now: reached, never to be, or nothing yet.
    fn state(&self, lsn: Lsn) -> Option<Result<()>> {
        if self.reached() >= lsn {
            return Some(Ok(()));
        }
        // The failure is set after the last publication, so that is to be looked at again.
        let failure = self.failure.get()?;
        Some(if self.reached() >= lsn { Ok(()) } else { Err(failure.clone()) })
    }

    pub fn publish(&self, reached: Lsn) {
        self.reached.store(reached.0, Ordering::Release);
        let mut ready = Vec::new();
        {
            let mut waiting = self.waiting.lock();
            while waiting.peek().is_some_and(|Reverse(next)| next.lsn <= reached) {
                ready.extend(waiting.pop());
            }
        }
        ready.into_iter().for_each(|Reverse(w)| w.waker.wake());
    }

    /// Ends all waiting for what is not reached yet. The first reason stays.
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

    /// Blocks the thread until `lsn` is reached.
    pub fn wait(&self, lsn: Lsn) -> Result<()> {
        if let Some(state) = self.state(lsn) {
            return state;
        }
        let began = self.clock.monotonic();
        let unpark = Arc::new(Unpark(current()));
        let waker = Waker::from(unpark);
        if let Some(state) = self.poll(lsn, &waker) {
            return state;
        }
        loop {
            park();
            if let Some(state) = self.state(lsn) {
                self.note_wait(began);
                return state;
            }
        }
    }

    fn note_wait(&self, began: Duration) {
        self.waits.count(self.clock.monotonic().saturating_sub(began).as_micros() as u64);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A future that is ready when a stage has reached an LSN; runs on any executor.
#[must_use = "a future does nothing unless polled"]
pub struct Durable {
    pub(crate) progress: Arc<Progress>,
    pub(crate) lsn: Lsn,
    /// The waker that stands in the queue, and since when one does.
    pub(crate) left: Option<(Waker, Duration)>,
}

impl Future for Durable {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(state) = self.progress.state(self.lsn) {
            if let Some((_, began)) = self.left {
                self.progress.note_wait(began);
            }
            return Poll::Ready(state);
        }
        if self.left.as_ref().is_some_and(|(left, _)| left.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        if let Some(state) = self.progress.poll(self.lsn, cx.waker()) {
            return Poll::Ready(state);
        }
        let began = match self.left {
            Some((_, began)) => began,
            None => self.progress.clock.monotonic(),
        };
        self.left = Some((cx.waker().clone(), began));
        Poll::Pending
    }
}
