//! Waiting for other transactions: who waits for whom, deadlocks, time-outs.
//!
//! A row's lock is its newest version: a writer that meets one of a running transaction waits until that ends.
//! Each transaction waits for one other at a time, so the wait-for graph is a set of chains, and a deadlock is
//! a chain that leads back. It is found before the wait begins; the one who would close the circle is the victim.

use std::sync::Arc;
use std::time::{Duration, Instant};

use avocet_base::TxnId;
use avocet_storage::TxnState;
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::error::{EngineError, Result};

/// Called around a blocking wait, so that a caller on an async runtime can hand its thread's other work on.
pub type WaitHook = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

#[derive(Default)]
pub(crate) struct WaitGraph {
    waits: Mutex<HashMap<TxnId, Arc<TxnState>>>,
}

impl WaitGraph {
    /// Blocks until `holder` has ended.
    pub fn wait(
        &self,
        waiter: &Arc<TxnState>,
        holder: &Arc<TxnState>,
        timeout: Duration,
        hook: &WaitHook,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        {
            let mut waits = self.waits.lock();
            let mut at = holder;
            while let Some(next) = waits.get(&at.id()) {
                if next.id() == waiter.id() {
                    return Err(EngineError::Deadlock);
                }
                at = next;
            }
            waits.insert(waiter.id(), holder.clone());
        }
        let deadline = Instant::now() + timeout;
        let mut outcome = Ok(());
        hook(&mut || {
            outcome = loop {
                let left = deadline.saturating_duration_since(Instant::now());
                if holder.wait_until_finished(left.min(Duration::from_millis(50))) {
                    break Ok(());
                }
                if interrupted() {
                    break Err(EngineError::Interrupted);
                }
                if left.is_zero() {
                    break Err(EngineError::LockWaitTimeout);
                }
            };
        });
        self.waits.lock().remove(&waiter.id());
        outcome
    }
}
