//! Queries that together want more than the server's memory run one after the other.
//!
//! ```text
//!  begins at once ──▶ refused by the server's memory, which others have, before it has sent a row
//!                       │ gives back all that it has
//!                       ▼
//!                     queue, first come first served ──▶ begins anew when as much is free as it wanted, or nobody has any
//! ```
//!
//! The one whose turn it is and that was refused again and again, as others had come meanwhile, shuts the gate: nobody begins until it
//! has ended.
//!
//! Most queries never come here. One that is refused by its own limit fails or spills, as it does alone. Whoever waits holds
//! no memory, and ends with its deadline, when it is killed, or after `PATIENCE`: with the error that it was refused with.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use datafusion::execution::memory_pool::MemoryPool;
use tokio::sync::{Mutex, MutexGuard, RwLock, RwLockWriteGuard};
use tokio::time::{Instant, sleep};

/// How long a query waits for others, in all.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What a query lacked when the server's memory refused it.
#[derive(Debug, Default)]
pub(super) struct Shortage {
    /// All that it would have had. Zero if it was not the server's memory that refused it last.
    wanted: AtomicUsize,
    /// What all queries had then, it too.
    in_use: AtomicUsize,
}

impl Shortage {
    pub fn note(&self, wanted: usize, in_use: usize) {
        self.in_use.store(in_use, Relaxed);
        self.wanted.store(wanted, Relaxed);
    }

    pub fn clear(&self) {
        self.wanted.store(0, Relaxed);
    }

    pub fn is_there(&self) -> bool {
        self.wanted.load(Relaxed) > 0
    }

    /// What others may have so that it would fit.
    fn left_to_others(&self) -> usize {
        self.in_use.load(Relaxed).saturating_sub(self.wanted.load(Relaxed))
    }
}

/// Where those who were refused wait.
pub(super) struct Admission {
    queue: Mutex<()>,
    gate: RwLock<()>,
    /// What all queries take their memory from.
    memory: Arc<dyn MemoryPool>,
}

/// The one whose turn it is.
pub(super) struct Turn<'a> {
    admission: &'a Admission,
    _first: MutexGuard<'a, ()>,
    gate: Option<RwLockWriteGuard<'a, ()>>,
    refused: u32,
    alone: bool,
    until: Instant,
}

/// The gate is shut for whoever was refused so often in its turn.
const SHUT_AFTER: u32 = 2;

impl Admission {
    pub fn new(memory: Arc<dyn MemoryPool>) -> Self {
        Self { queue: Mutex::new(()), gate: RwLock::new(()), memory }
    }

    /// Waits for those who came before; all waits of the turn together end after `patience`.
    pub async fn turn(&self, patience: Duration) -> Option<Turn<'_>> {
        let until = Instant::now() + patience;
        let first = tokio::time::timeout_at(until, self.queue.lock()).await.ok()?;
        Some(Turn { admission: self, _first: first, gate: None, refused: 0, alone: false, until })
    }

    /// Waits while the gate is shut.
    pub async fn pass(&self) {
        drop(self.gate.read().await);
    }
}

impl Turn<'_> {
    /// Waits until there is as much as lacked; false if that took too long.
    pub async fn wait(&mut self, shortage: &Shortage) -> bool {
        if self.refused == SHUT_AFTER {
            self.gate = Some(self.admission.gate.write().await);
        }
        self.refused += 1;
        while Instant::now() < self.until {
            let others = self.admission.memory.reserved();
            if others == 0 || others <= shortage.left_to_others() {
                self.alone = others == 0 && self.gate.is_some();
                return true;
            }
            sleep(LOOK_EVERY).await;
        }
        false
    }

    /// Nobody else had any memory, nor could come by some: what is refused then is refused for good.
    pub fn was_alone(&self) -> bool {
        self.alone
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer};

    use super::*;

    #[tokio::test]
    async fn who_was_refused_waits_for_as_much_as_it_wanted() {
        let memory: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        let admission = Admission::new(memory.clone());
        let others = MemoryConsumer::new("others").register(&memory);
        let shortage = Shortage::default();
        assert!(!shortage.is_there());
        shortage.note(400, 1000);
        others.grow(601);
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(60));
        let mut turn = admission.turn(short).await.expect("nobody is before");
        assert!(!turn.wait(&shortage).await, "there is an end");
        drop(turn);
        let mut turn = admission.turn(long).await.expect("nobody is before");
        others.shrink(1);
        assert!(turn.wait(&shortage).await);
        others.free();
        assert!(turn.wait(&shortage).await);
        assert!(admission.turn(short).await.is_none(), "one after the other");
        admission.pass().await;
        assert!(!turn.was_alone() && turn.wait(&shortage).await && turn.was_alone());
        let passed = tokio::time::timeout(short, admission.pass());
        assert!(passed.await.is_err(), "the gate is shut");
        drop(turn);
        admission.pass().await;
    }
}
