//! Which snapshots are in use, and up to where commits are visible.
//!
//! Invariants:
//! 1. `visible` only grows, and only to timestamps whose records are durable, in timestamp order.
//! 2. A snapshot is registered in the same critical section that reads `visible`, so `oldest` never passes
//!    a snapshot that somebody is about to use.

use std::collections::BTreeMap;
use std::sync::Arc;

use avocet_base::{Lsn, Timestamp};
use parking_lot::Mutex;

pub(crate) struct Snapshots {
    state: Mutex<State>,
}

struct State {
    visible: Timestamp,
    /// The log up to here holds every commit up to `visible`, and no later one.
    visible_lsn: Lsn,
    active: BTreeMap<Timestamp, u32>,
}

/// A snapshot in use; versions that it may need are kept while it lives.
pub struct SnapshotGuard {
    snapshots: Arc<Snapshots>,
    ts: Timestamp,
}

impl SnapshotGuard {
    pub fn ts(&self) -> Timestamp {
        self.ts
    }
}

impl Clone for SnapshotGuard {
    fn clone(&self) -> Self {
        *self.snapshots.state.lock().active.entry(self.ts).or_insert(0) += 1;
        Self { snapshots: self.snapshots.clone(), ts: self.ts }
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        let mut state = self.snapshots.state.lock();
        let count = state.active.get_mut(&self.ts).expect("a guard's snapshot is registered");
        *count -= 1;
        if *count == 0 {
            state.active.remove(&self.ts);
        }
    }
}

impl Snapshots {
    pub fn new(visible: Timestamp, visible_lsn: Lsn) -> Self {
        Self { state: Mutex::new(State { visible, visible_lsn, active: BTreeMap::new() }) }
    }

    pub fn take(self: &Arc<Self>) -> SnapshotGuard {
        self.take_with_lsn().0
    }

    /// A snapshot at a commit that is logged, whether durable or not.
    pub fn take_at(self: &Arc<Self>, ts: Timestamp) -> SnapshotGuard {
        let mut state = self.state.lock();
        *state.active.entry(ts).or_insert(0) += 1;
        SnapshotGuard { snapshots: self.clone(), ts }
    }

    /// A snapshot, and the log position behind the last commit in it.
    pub fn take_with_lsn(self: &Arc<Self>) -> (SnapshotGuard, Lsn) {
        let mut state = self.state.lock();
        let ts = state.visible;
        *state.active.entry(ts).or_insert(0) += 1;
        (SnapshotGuard { snapshots: self.clone(), ts }, state.visible_lsn)
    }

    /// Moves a guard's registration to the newest snapshot.
    pub fn renew(self: &Arc<Self>, guard: &mut SnapshotGuard) {
        if guard.ts != self.visible() {
            *guard = self.take();
        }
    }

    /// Commits up to `ts` have become durable.
    pub fn advance(&self, ts: Timestamp, lsn: Lsn) {
        let mut state = self.state.lock();
        if ts > state.visible {
            state.visible = ts;
        }
        state.visible_lsn = lsn;
    }

    pub fn visible(&self) -> Timestamp {
        self.state.lock().visible
    }

    /// No snapshot in use, now or later, is older than this.
    pub fn oldest(&self) -> Timestamp {
        let state = self.state.lock();
        state.active.first_key_value().map_or(state.visible, |(&ts, _)| ts.min(state.visible))
    }
}
