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

use std::sync::Arc;

use avocet_base::Timestamp;
use avocet_types::RowLayout;

use super::{Change, Undo};
use crate::hot::delta;

/// Versions that became one.
pub struct Merged {
    /// Newest first.
    pub of: Vec<Arc<Undo>>,
    pub into: Arc<Undo>,
}

/// Merges what can be merged in a chain; its new head. `interval` numbers the gaps between the snapshots in use; it
/// has no number for a commit that snapshots to come may not see yet. Under the latch of the chain.
pub fn merge_chain(
    layout: &RowLayout,
    head: &Arc<Undo>,
    interval: &dyn Fn(Timestamp) -> Option<usize>,
) -> (Arc<Undo>, Vec<Merged>) {
    let mut merged = Vec::new();
    let mut kept: Vec<Arc<Undo>> = Vec::new();
    let mut run: Vec<Arc<Undo>> = Vec::new();
    let mut run_in = None;
    let mut next = Some(head.clone());
    while let Some(undo) = next {
        next = undo.older_in_use();
        let is_in = match undo.change {
            // Nothing comes after a delete; it keeps the row's values for those who see none. Who hides a row still runs.
            Change::Delete | Change::Hide => None,
            Change::Insert | Change::Update { .. } | Change::Lock => {
                undo.txn.committed_at().and_then(interval)
            }
        };
        if is_in.is_none() || is_in != run_in {
            end_run(layout, &mut run, &mut kept, &mut merged);
        }
        run_in = is_in;
        run.push(undo);
    }
    end_run(layout, &mut run, &mut kept, &mut merged);
    link(&kept);
    (kept[0].clone(), merged)
}

fn end_run(
    layout: &RowLayout,
    run: &mut Vec<Arc<Undo>>,
    kept: &mut Vec<Arc<Undo>>,
    merged: &mut Vec<Merged>,
) {
    if run.len() < 2 {
        kept.append(run);
        return;
    }
    let of = std::mem::take(run);
    let change = combined(layout, &of);
    // A lock alone changed nothing; in its name would say that the row changed when it was locked.
    let name = of.iter().find(|undo| !matches!(undo.change, Change::Lock)).unwrap_or(&of[0]);
    let into = Undo::new(&name.txn, change, None);
    kept.push(into.clone());
    merged.push(Merged { of, into });
}

/// What leads from the state after the first (newest) version to the state before the last.
fn combined(layout: &RowLayout, newest_first: &[Arc<Undo>]) -> Change {
    let mut before: Vec<u8> = Vec::new();
    let mut columns: Vec<usize> = Vec::new();
    let mut changes = false;
    for undo in newest_first.iter().rev() {
        match &undo.change {
            Change::Insert => return Change::Insert,
            Change::Lock => {}
            Change::Delete | Change::Hide => unreachable!("deletes and marks are not merged"),
            Change::Update { before: older } => {
                changes = true;
                // The oldest value of a column is the one from before them all.
                delta::copy_missing(layout, older, &mut columns, &mut before)
                    .expect("before-images are made by the page");
            }
        }
    }
    if changes { Change::Update { before: before.into() } } else { Change::Lock }
}

/// Makes each the newer one of the next.
fn link(newest_first: &[Arc<Undo>]) {
    for (n, undo) in newest_first.iter().enumerate() {
        *undo.older.lock() = newest_first.get(n + 1).cloned();
    }
}
