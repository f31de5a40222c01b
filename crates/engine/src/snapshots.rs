//! Which snapshots are in use, and up to where commits are visible.
//!
//! Invariants:
//! 1. `visible` only grows, in timestamp order, and only to timestamps whose records are durable, or written if their
//!    transactions ask for no more.
//! 2. A snapshot is registered in the same critical section that reads `visible`, so `oldest` never passes
//!    a snapshot that somebody is about to use.

use std::collections::VecDeque;
use std::sync::Arc;

use avocet_base::{Lsn, Timestamp};

use crate::sync::Mutex;

pub(crate) struct Snapshots {
    state: Mutex<State>,
}

struct State {
    visible: Timestamp,
    /// The log up to here holds every commit up to `visible`, and no later one.
    visible_lsn: Lsn,
    active: Active,
}

/// The snapshots in use with the number of their users, ascending; the first and the last have some. New ones come at or
/// near the end, so that this neither searches nor allocates in general.
#[derive(Default)]
struct Active(VecDeque<(Timestamp, u32)>);

impl Active {
    fn add(&mut self, ts: Timestamp) {
        if self.0.back().is_none_or(|&(last, _)| last < ts) {
            self.0.push_back((ts, 1));
            return;
        }
        match self.0.binary_search_by_key(&ts, |&(at, _)| at) {
            Ok(found) => self.0[found].1 += 1,
            Err(place) => self.0.insert(place, (ts, 1)),
        }
    }

    fn remove(&mut self, ts: Timestamp) {
        let found =
            self.0.binary_search_by_key(&ts, |&(at, _)| at).expect("a guard's snapshot is registered");
        self.0[found].1 -= 1;
        while self.0.front().is_some_and(|&(_, users)| users == 0) {
            self.0.pop_front();
        }
        while self.0.back().is_some_and(|&(_, users)| users == 0) {
            self.0.pop_back();
        }
    }

    fn oldest(&self) -> Option<Timestamp> {
        self.0.front().map(|&(ts, _)| ts)
    }
}

/// The snapshots in use, ascending, and the oldest that new ones can have.
pub(crate) struct Horizon {
    in_use: Vec<Timestamp>,
    pub visible: Timestamp,
}

impl Horizon {
    /// Commits with the same number are seen by the same snapshots. `None` where new snapshots may tell them apart.
    pub fn interval(&self, ts: Timestamp) -> Option<usize> {
        (ts <= self.visible).then(|| self.in_use.partition_point(|&at| at < ts))
    }

    /// The last commit that an interval may have.
    pub fn end(&self, interval: usize) -> Timestamp {
        self.in_use.get(interval).map_or(self.visible, |&ts| ts.min(self.visible))
    }
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
        self.snapshots.state.lock().active.add(self.ts);
        Self { snapshots: self.snapshots.clone(), ts: self.ts }
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        self.snapshots.state.lock().active.remove(self.ts);
    }
}

impl Snapshots {
    pub fn new(visible: Timestamp, visible_lsn: Lsn) -> Self {
        Self { state: Mutex::new(State { visible, visible_lsn, active: Active::default() }) }
    }

    pub fn take(self: &Arc<Self>) -> SnapshotGuard {
        self.take_with_lsn().0
    }

    /// A snapshot at a commit that is logged, whether durable or not; at a later one if more than that is visible by now
    /// (versions that only an earlier one needs may be gone already).
    pub fn take_at(self: &Arc<Self>, logged: Timestamp) -> SnapshotGuard {
        let mut state = self.state.lock();
        let ts = logged.max(state.visible);
        state.active.add(ts);
        SnapshotGuard { snapshots: self.clone(), ts }
    }

    /// A snapshot, and the log position behind the last commit in it.
    pub fn take_with_lsn(self: &Arc<Self>) -> (SnapshotGuard, Lsn) {
        let mut state = self.state.lock();
        let ts = state.visible;
        state.active.add(ts);
        (SnapshotGuard { snapshots: self.clone(), ts }, state.visible_lsn)
    }

    /// Moves a guard's registration to the newest snapshot.
    pub fn renew(self: &Arc<Self>, guard: &mut SnapshotGuard) {
        let mut state = self.state.lock();
        let visible = state.visible;
        if guard.ts != visible {
            state.active.add(visible);
            state.active.remove(guard.ts);
            guard.ts = visible;
        }
    }

    /// Commits up to `ts` may be acknowledged.
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

    /// Which commits all snapshots, now and later, agree about.
    pub fn horizon(&self) -> Horizon {
        let state = self.state.lock();
        let in_use = state.active.0.iter().filter(|(_, users)| *users > 0);
        Horizon { in_use: in_use.map(|&(ts, _)| ts).collect(), visible: state.visible }
    }

    /// No snapshot in use, now or later, is older than this.
    pub fn oldest(&self) -> Timestamp {
        let state = self.state.lock();
        state.active.oldest().map_or(state.visible, |ts| ts.min(state.visible))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_in_use_is_known_whatever_the_order() {
        let snapshots = Arc::new(Snapshots::new(Timestamp(10), Lsn(0)));
        let first = snapshots.take();
        snapshots.advance(Timestamp(20), Lsn(1));
        let [ahead, second] = [snapshots.take_at(Timestamp(25)), snapshots.take()];
        let again = first.clone();
        assert_eq!(snapshots.oldest(), Timestamp(10));
        drop((first, second));
        assert_eq!(snapshots.oldest(), Timestamp(10));
        let mut moved = again;
        snapshots.renew(&mut moved);
        assert_eq!((moved.ts(), snapshots.oldest()), (Timestamp(20), Timestamp(20)));
        drop(moved);
        assert_eq!(snapshots.oldest(), Timestamp(20), "a logged snapshot is no older than what is visible");
        drop(ahead);
        assert_eq!(snapshots.oldest(), Timestamp(20));
    }
}
