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
/// near the end, so that this neither searches nor allocates in general. Those between that nobody uses any more (an old
/// one is held, and newer ones overlap) go when they are more than the others.
#[derive(Default)]
struct Active {
    entries: VecDeque<(Timestamp, u32)>,
    /// Entries without users.
    unused: usize,
}

/// So many entries without users do no harm.
const FEW_UNUSED: usize = 16;

impl Active {
    fn add(&mut self, ts: Timestamp) {
        if self.entries.back().is_none_or(|&(last, _)| last < ts) {
            self.entries.push_back((ts, 1));
            return;
        }
        match self.entries.binary_search_by_key(&ts, |&(at, _)| at) {
            Ok(found) => {
                let (_, users) = &mut self.entries[found];
                self.unused -= usize::from(*users == 0);
                *users += 1;
            }
            Err(place) => self.entries.insert(place, (ts, 1)),
        }
    }

    fn remove(&mut self, ts: Timestamp) {
        let found = self.entries.binary_search_by_key(&ts, |&(at, _)| at);
        let (_, users) = &mut self.entries[found.expect("a guard's snapshot is registered")];
        *users -= 1;
        self.unused += usize::from(*users == 0);
        let is_unused = |entry: &mut (Timestamp, u32)| entry.1 == 0;
        while self.entries.pop_front_if(is_unused).is_some() || self.entries.pop_back_if(is_unused).is_some()
        {
            self.unused -= 1;
        }
        if self.unused > FEW_UNUSED.max(self.entries.len() / 2) {
            self.entries.retain(|&(_, users)| users > 0);
            self.unused = 0;
        }
    }

    fn oldest(&self) -> Option<Timestamp> {
        self.entries.front().map(|&(ts, _)| ts)
    }

    fn in_use(&self) -> impl Iterator<Item = Timestamp> {
        self.entries.iter().filter(|(_, users)| *users > 0).map(|&(ts, _)| ts)
    }
}

/// The snapshots in use, ascending, and the oldest that new ones can have.
pub(crate) struct Horizon {
    in_use: Vec<Timestamp>,
    pub visible: Timestamp,
}

impl Default for Horizon {
    /// Before everything.
    fn default() -> Self {
        Self { in_use: Vec::new(), visible: Timestamp::MIN }
    }
}

impl Horizon {
    /// Whether the same snapshots see two commits.
    pub fn are_alike(&self, a: Timestamp, b: Timestamp) -> bool {
        self.interval(a).is_some_and(|interval| self.interval(b) == Some(interval))
    }

    /// No snapshot in use then, or taken later, is older than this.
    pub fn oldest(&self) -> Timestamp {
        self.in_use.first().map_or(self.visible, |&ts| ts.min(self.visible))
    }

    /// Whether a snapshot in use by an earlier one is not in use any more.
    pub fn lacks_some_of(&self, earlier: &Self) -> bool {
        earlier.in_use.iter().any(|ts| self.in_use.binary_search(ts).is_err())
    }

    /// Commits with the same number are seen by the same snapshots. `None` where new snapshots may tell them apart.
    pub fn interval(&self, ts: Timestamp) -> Option<usize> {
        (ts <= self.visible).then(|| self.in_use.partition_point(|&at| at < ts))
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
        Horizon { in_use: state.active.in_use().collect(), visible: state.visible }
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

    /// Two users: one holds an old snapshot, the other's newer ones overlap, so that the last is always in use.
    #[test]
    fn snapshots_that_nobody_uses_do_not_pile_up_behind_an_old_one() {
        let snapshots = Arc::new(Snapshots::new(Timestamp(1), Lsn(0)));
        let old = snapshots.take();
        let mut last = snapshots.take();
        for ts in 2..100_000 {
            snapshots.advance(Timestamp(ts), Lsn(ts));
            last = snapshots.take();
            assert!(snapshots.state.lock().active.entries.len() <= 2 * (FEW_UNUSED + 2));
        }
        assert_eq!(snapshots.horizon().in_use, [Timestamp(1), Timestamp(99_999)]);
        drop(old);
        assert_eq!(snapshots.oldest(), Timestamp(99_999));
        drop(last);
        assert!(snapshots.state.lock().active.entries.is_empty());
    }

    #[test]
    fn a_horizon_tells_commits_apart_by_the_snapshots_in_use() {
        let snapshots = Arc::new(Snapshots::new(Timestamp(10), Lsn(0)));
        let first = snapshots.take();
        snapshots.advance(Timestamp(20), Lsn(1));
        let second = snapshots.take();
        snapshots.advance(Timestamp(30), Lsn(2));
        let horizon = snapshots.horizon();
        let alike = |a: u64, b: u64| horizon.are_alike(Timestamp(a), Timestamp(b));
        assert!(alike(11, 20) && alike(21, 30));
        assert!(!alike(10, 11) && !alike(20, 21));
        assert!(!alike(30, 31) && !alike(31, 31), "what is not visible yet may be told apart");
        assert_eq!(horizon.oldest(), Timestamp(10));
        drop(second);
        let now = snapshots.horizon();
        assert!(now.lacks_some_of(&horizon) && !horizon.lacks_some_of(&now));
        assert!(now.are_alike(Timestamp(11), Timestamp(30)));
        drop(first);
    }
}
