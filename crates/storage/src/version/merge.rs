//! Merging versions of a row that no snapshot tells apart.
//!
//! ```text
//!  snapshots in use        S1                    S2                 visible
//!  commits of a row   1  2 │ 3  4  5  6  7  8  9 │ 10 11 12 13 14 15 │ 16 17
//!  chain before              3◀─4◀─5◀─6◀─7◀─8◀─9◀──10◀─11◀12◀13◀14◀15◀──16◀17◀ row
//!  chain after               ◀──────── 9 ◀──────────────── 15 ◀──────── 16◀17◀ row
//! ```
//!
//! Whoever sees one of the versions between two snapshots in use sees all of them, and no new snapshot will come to lie
//! between. So one version stands for all: it leads from the state after the newest to the state before the
//! oldest, in the name of the newest. Chains are then as long as there are snapshots in use, however old these are (as in
//! HANA's interval collection, and Umbra's).
//!
//! A version takes those below it in, one by one, and stays where it is in the chain: nothing above it is looked at. If
//! each is asked to once it is visible, there is never more than one to take in, and the cost of a version is the same
//! however long its row's chain was.

use std::sync::Arc;

use avocet_base::Timestamp;
use avocet_types::RowLayout;

use super::{Change, Undo};
use crate::hot::delta;

/// What came of asking a version to take in older ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merged {
    Nothing,
    /// It stands for others now.
    Some,
    /// The row came and went between two snapshots: nobody sees any of it.
    Vanished,
}

impl Undo {
    /// Takes in all older versions that no snapshot tells from this one; `interval` numbers the gaps between the snapshots
    /// in use, and has no number for a commit that snapshots to come may not see yet. Adds to `freed` the bytes of before-images
    /// that go. Under the latch of the chain.
    pub fn merge_older(
        &self,
        layout: &RowLayout,
        interval: &dyn Fn(Timestamp) -> Option<usize>,
        freed: &mut usize,
    ) -> Merged {
        let mut merged = Merged::Nothing;
        let Some(gap) = self.txn.committed_at().and_then(interval) else { return merged };
        while let Some(older) = self.older_in_use() {
            if older.txn.committed_at().and_then(interval) != Some(gap) {
                return merged;
            }
            match self.take_in(layout, &older, freed) {
                Merged::Nothing => return merged,
                outcome => merged = outcome,
            }
        }
        merged
    }

    fn take_in(&self, layout: &RowLayout, older: &Arc<Undo>, freed: &mut usize) -> Merged {
        let (mut link, mut before) = (self.link.lock(), older.link.lock());
        let held = link.bytes() + before.bytes();
        if matches!((&link.change, &before.change), (Change::Delete, Change::Insert)) {
            older.settle();
            link.stale.append(&mut before.stale);
            return Merged::Vanished;
        }
        let Some(change) = combined(layout, &link.change, &mut before.change) else { return Merged::Nothing };
        if let Some(change) = change {
            link.change = change;
        }
        link.stale.append(&mut before.stale);
        link.older = before.older.take();
        older.settle();
        *freed += held - (link.bytes() + before.bytes());
        Merged::Some
    }
}

/// What leads from the state after the newer version to the state before the older one; `None` within if that is what the
/// newer one says already. `None` if one cannot stand for both.
fn combined(layout: &RowLayout, newer: &Change, older: &mut Change) -> Option<Option<Change>> {
    match (newer, older) {
        // Who hides a row still runs.
        (Change::Mask, _) | (_, Change::Mask) => None,
        // Nothing comes after a delete, which keeps the row's values for those who see none.
        (_, Change::Delete) | (Change::Delete, Change::Insert | Change::Update { .. }) => None,
        (_, Change::Lock) => Some(None),
        // A lock changed nothing; in its name would say that the row changed when it was locked.
        (Change::Lock, _) => None,
        (Change::Insert, _) => unreachable!("there is nothing before a row came"),
        (Change::Update { .. }, Change::Insert) => Some(Some(Change::Insert)),
        (Change::Update { before: newer }, Change::Update { before: older }) => {
            let before = earliest(layout, newer, std::mem::take(older));
            Some(Some(Change::Update { before }))
        }
    }
}

/// The values that columns had before both changes: those from before the older one count.
fn earliest(layout: &RowLayout, newer: &[u8], older: Box<[u8]>) -> Box<[u8]> {
    const OWN: &str = "before-images are made by the page";
    let mut columns: Vec<usize> =
        delta::own_entries(layout, &older).map(|entry| entry.expect(OWN).column).collect();
    // Mostly a row's statements change the same columns again and again.
    if delta::own_entries(layout, newer).all(|entry| columns.contains(&entry.expect(OWN).column)) {
        return older;
    }
    let mut both = older.into_vec();
    delta::copy_missing(layout, newer, &mut columns, &mut both).expect(OWN);
    both.into()
}
