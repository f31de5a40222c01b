//! What threads did to the entries of one key, and whether some order of it explains what they saw.

use std::collections::HashSet;

/// An operation on the entries of a key, of which there are at most eight, with what came of it.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Whether the entry was new.
    Insert(u8, bool),
    /// The entry is there afterwards.
    Put(u8),
    /// Whether the entry was there.
    Remove(u8, bool),
    Read(u8, bool),
    /// The entry was added where the key had none.
    Alone(u8),
    /// The key had this entry and no other.
    Only(u8),
    /// The key had none.
    Nothing,
}

impl Op {
    /// The entries afterwards, if it can have happened to these; each is a bit.
    fn apply(self, entries: u8) -> Option<u8> {
        let (result, possible) = match self {
            Self::Insert(id, new) => (entries | 1 << id, (entries & 1 << id == 0) == new),
            Self::Put(id) => (entries | 1 << id, true),
            Self::Remove(id, was) => (entries & !(1 << id), (entries & 1 << id != 0) == was),
            Self::Read(id, was) => (entries, (entries & 1 << id != 0) == was),
            Self::Alone(id) => (1 << id, entries == 0),
            Self::Only(id) => (entries, entries == 1 << id),
            Self::Nothing => (entries, entries == 0),
        };
        possible.then_some(result)
    }

    /// Whether it changed nothing, whatever there was.
    fn is_a_look(self) -> bool {
        matches!(
            self,
            Self::Insert(_, false) | Self::Remove(_, false) | Self::Read(..) | Self::Only(_) | Self::Nothing
        )
    }
}

#[derive(Clone, Debug)]
pub struct Event {
    pub thread: usize,
    pub key: usize,
    pub op: Op,
    pub began: u64,
    pub ended: u64,
}

/// Whether the events, each at some moment between its beginning and its end, explain each other, given the entries that
/// the key had before (Wing, Gong: "Testing and Verifying Concurrent Objects", 1993).
pub fn is_explained(events: &[Event], before: u8) -> bool {
    assert!(events.len() <= 128, "{} events are too many to try all orders", events.len());
    let mut tried = HashSet::new();
    let mut open = vec![(0u128, before)];
    while let Some((mut done, entries)) = open.pop() {
        done = with_looks(events, done, entries);
        if done.count_ones() as usize == events.len() {
            return true;
        }
        if tried.insert((done, entries)) {
            open.extend(possible(events, done).filter_map(|i| {
                let after = events[i].op.apply(entries)?;
                Some((done | 1 << i, after))
            }));
        }
    }
    false
}

/// Events that may be the next: no other had ended when they began.
fn possible(events: &[Event], done: u128) -> impl Iterator<Item = usize> {
    let left = move |i: &usize| done & 1 << i == 0;
    let first_end = (0..events.len()).filter(left).map(|i| events[i].ended).min().unwrap_or(u64::MAX);
    (0..events.len()).filter(left).filter(move |&i| events[i].began <= first_end)
}

/// Looks are best had as soon as they can be.
fn with_looks(events: &[Event], mut done: u128, entries: u8) -> u128 {
    let is_explained_now = |i: &usize| events[*i].op.is_a_look() && events[*i].op.apply(entries).is_some();
    loop {
        match possible(events, done).find(is_explained_now) {
            Some(i) => done |= 1 << i,
            None => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(parts: &[(Op, u64, u64)]) -> Vec<Event> {
        parts.iter().map(|&(op, began, ended)| Event { thread: 0, key: 0, op, began, ended }).collect()
    }

    #[test]
    fn only_what_can_have_happened_is_explained() {
        let insert = (Op::Insert(1, true), 10, 20);
        assert!(is_explained(&events(&[insert, (Op::Read(1, false), 15, 30)]), 0));
        assert!(!is_explained(&events(&[insert, (Op::Read(1, false), 21, 30)]), 0));
        assert!(!is_explained(&events(&[insert, (Op::Insert(1, true), 12, 30)]), 0), "two winners");
        let between = (Op::Remove(1, true), 11, 19);
        assert!(is_explained(&events(&[insert, (Op::Insert(1, true), 12, 30), between]), 0));
        assert!(is_explained(&events(&[insert, (Op::Alone(2), 12, 30), (Op::Only(2), 12, 30)]), 0));
        let (put, removed) = ((Op::Put(1), 10, 30), (Op::Remove(1, true), 12, 20));
        assert!(is_explained(&events(&[put, removed, (Op::Only(1), 31, 40)]), 0b10), "put after the removal");
        assert!(!is_explained(&events(&[insert, (Op::Alone(2), 21, 30)]), 0));
    }
}
