//! How far the transactions of other sources are in force.
//!
//! Invariant: of every source, the newest commit at or before each timestamp from the visible one on is known, so that a checkpoint
//! at any of them writes the position that belongs to it, and none that the log might not have.

use std::collections::{BTreeMap, VecDeque};

use avocet_base::Timestamp;
use parking_lot::Mutex;

use crate::redo::Origin;

#[derive(Default)]
pub(crate) struct Origins {
    /// By source, in commit order.
    commits: Mutex<BTreeMap<u32, VecDeque<(Timestamp, Origin)>>>,
}

impl Origins {
    /// A commit at `ts` came from there; all up to `visible` are visible.
    pub fn note(&self, ts: Timestamp, origin: Origin, visible: Timestamp) {
        let mut commits = self.commits.lock();
        let of_source = commits.entry(origin.source).or_default();
        of_source.push_back((ts, origin));
        while of_source.get(1).is_some_and(|&(next, _)| next <= visible) {
            of_source.pop_front();
        }
    }

    /// Up to where a source is in force, logged or not yet visible.
    pub fn newest(&self, source: u32) -> Option<Origin> {
        Some(self.commits.lock().get(&source)?.back()?.1.clone())
    }

    /// Up to where each source was in force at a timestamp, of those from the visible one on.
    pub fn at(&self, ts: Timestamp) -> Vec<Origin> {
        let at = |of_source: &VecDeque<(Timestamp, Origin)>| {
            of_source.iter().rev().find(|(at, _)| *at <= ts).map(|(_, origin)| origin.clone())
        };
        self.commits.lock().values().filter_map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_has_the_positions_of_its_snapshot() {
        let origins = Origins::default();
        let origin = |source, n: u8| Origin { source, position: vec![n], wall_us: 0 };
        origins.note(Timestamp(5), origin(1, 5), Timestamp(3));
        origins.note(Timestamp(6), origin(2, 6), Timestamp(3));
        origins.note(Timestamp(8), origin(1, 8), Timestamp(6));
        origins.note(Timestamp(9), origin(1, 9), Timestamp(6));
        assert_eq!(origins.at(Timestamp(7)), [origin(1, 5), origin(2, 6)]);
        assert_eq!(origins.at(Timestamp(8)), [origin(1, 8), origin(2, 6)]);
        assert_eq!((origins.newest(1), origins.newest(3)), (Some(origin(1, 9)), None));
        origins.note(Timestamp(10), origin(1, 10), Timestamp(9));
        assert_eq!(origins.at(Timestamp(9)), [origin(1, 9), origin(2, 6)]);
    }
}
