//! One waiting transaction, and how long it waits.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use avocet_storage::TxnState;

use super::{LockMode, Request, RowKey};
use crate::error::{EngineError, Result};
use crate::sync::{Condvar, Mutex};

/// Called around a blocking wait, so that a caller on an async runtime can hand its thread's other work on.
pub type WaitHook = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

/// How often a waiter asks whether it was interrupted.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// How long somebody waits.
pub(crate) struct Patience<'p> {
    /// From when the wait began.
    pub timeout: Duration,
    pub hook: WaitHook,
    pub interrupted: &'p dyn Fn() -> bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Signal {
    Asleep,
    Woken,
    Victim,
}

pub(crate) struct Waiter {
    pub txn: Arc<TxnState>,
    pub key: RowKey,
    pub mode: LockMode,
    pub weight: u64,
    /// Those in the queue of a row have ascending numbers, but for those who share the row already: they go first.
    pub number: u64,
    pub began: Instant,
    sleep: Mutex<Sleep>,
    changed: Condvar,
}

struct Sleep {
    signal: Signal,
    /// Of a task that waits instead of a thread.
    waker: Option<Waker>,
}

impl Waiter {
    pub fn new(request: &Request<'_>, number: u64) -> Self {
        Self {
            txn: request.txn.clone(),
            key: request.key,
            mode: request.mode,
            weight: request.weight,
            number,
            began: Instant::now(),
            sleep: Mutex::new(Sleep { signal: Signal::Asleep, waker: None }),
            changed: Condvar::new(),
        }
    }

    /// Whether it was asleep.
    fn set(&self, to: Signal) -> bool {
        let mut sleep = self.sleep.lock();
        let before = sleep.signal;
        if before != Signal::Victim {
            sleep.signal = to;
        }
        if before == Signal::Asleep && to != Signal::Asleep {
            self.changed.notify_one();
            if let Some(waker) = sleep.waker.take() {
                waker.wake();
            }
        }
        before == Signal::Asleep
    }

    /// What woke it before is taken note of.
    pub fn sleep_again(&self) {
        self.set(Signal::Asleep);
    }

    /// The row may be free: it shall ask again. Whether it was asleep.
    pub fn wake(&self) -> bool {
        self.set(Signal::Woken)
    }

    /// It shall give up, so that others in a deadlock can go on.
    pub fn sacrifice(&self) {
        self.set(Signal::Victim);
    }

    pub fn sleeps(&self) -> bool {
        self.sleep.lock().signal == Signal::Asleep
    }

    pub fn is_victim(&self) -> bool {
        self.sleep.lock().signal == Signal::Victim
    }

    /// Blocks until there is a reason to ask again.
    pub fn park(&self, patience: &Patience<'_>) -> Result<()> {
        let mut outcome = Ok(());
        (patience.hook)(&mut || outcome = self.sleep(patience));
        outcome
    }

    /// As `park`, for a task: it is woken when there is a reason to ask again.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let mut sleep = self.sleep.lock();
        match sleep.signal {
            Signal::Woken => Poll::Ready(Ok(())),
            Signal::Victim => Poll::Ready(Err(EngineError::Deadlock)),
            Signal::Asleep => {
                sleep.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn sleep(&self, patience: &Patience<'_>) -> Result<()> {
        let deadline = self.began + patience.timeout;
        let mut sleep = self.sleep.lock();
        loop {
            match sleep.signal {
                Signal::Woken => return Ok(()),
                Signal::Victim => return Err(EngineError::Deadlock),
                Signal::Asleep => {}
            }
            let now = Instant::now();
            if now >= deadline {
                return Err(EngineError::LockWaitTimeout);
            }
            self.changed.wait_until(&mut sleep, deadline.min(now + ASK_EVERY));
            if sleep.signal == Signal::Asleep && (patience.interrupted)() {
                return Err(EngineError::Interrupted);
            }
        }
    }
}
