//! Old versions of one row: collected, or merged with older ones.

use avocet_storage::hot::RowBuf;
use avocet_storage::relation::pin;
use avocet_storage::rows::RowLatch;
use avocet_storage::version::{Change, Merged};

use super::UndoEntry;
use crate::entries;
use crate::snapshots::Horizon;
use crate::table::TableHandle;

/// Takes a version that every snapshot sees off its chain, and removes what nobody needs without it.
pub(super) fn collect(table: &TableHandle, entry: &UndoEntry, buf: &mut RowBuf) {
    let pinned = pin();
    if let Some(row) = latch(table, entry, &pinned) {
        collect_latched(table, row, entry, buf);
    }
}

/// Has a version stand for older ones that no snapshot tells from it. False if it need not be kept itself.
pub(super) fn merge(table: &TableHandle, entry: &UndoEntry, horizon: &Horizon, buf: &mut RowBuf) -> bool {
    let pinned = pin();
    let Some(mut row) = latch(table, entry, &pinned) else { return false };
    // A version from after an index was made must not stand for those from before, which have no entries in it.
    let interval = |ts| Some((horizon.interval(ts)?, ts > table.changed_at()));
    match row.merge(&entry.undo, &|ts| interval(ts).map(|(gap, is_later)| 2 * gap + usize::from(is_later))) {
        Merged::Nothing => {}
        Merged::Vanished => {
            collect_latched(table, row, entry, buf);
            return false;
        }
        Merged::Some => drop_stale_entries(table, &row, entry),
    }
    !(entry.undo.is_lock() && row.drop_lock(&entry.undo))
}

/// The row of a version that still says something.
fn latch<'r>(
    table: &'r TableHandle,
    entry: &UndoEntry,
    pinned: &'r avocet_storage::relation::Guard,
) -> Option<RowLatch<'r>> {
    table.relation.latch_versions(entry.row, pinned).filter(|_| !entry.undo.is_settled())
}

fn collect_latched(table: &TableHandle, mut row: RowLatch<'_>, entry: &UndoEntry, buf: &mut RowBuf) {
    let (stale, is_delete, is_insert) = {
        let mut link = entry.undo.link();
        let stale = std::mem::take(&mut link.stale);
        (stale, matches!(link.change, Change::Delete), matches!(link.change, Change::Insert))
    };
    let deleted = is_delete && !row.is_live();
    if deleted {
        row.keep_row(buf);
    }
    // A row that came and went is collected with its delete.
    if is_insert || is_delete {
        table.relocations.forget(entry.row);
    }
    // Who checks stale entries looks at all versions that are left.
    let gone = row.collect(&entry.undo, !stale.is_empty());
    for stale in &stale {
        entries::remove_stale(table, &row, entry.row, stale);
    }
    // If a block can not be read, entries too many stay: harmless, since visits see the delete.
    if gone && deleted && matches!(row.release(buf), Ok(true)) {
        entries::remove_entries(table, &buf.row(&table.layout), entry.row);
    }
}

/// What only versions in the middle needed, nobody needs now.
fn drop_stale_entries(table: &TableHandle, row: &RowLatch<'_>, entry: &UndoEntry) {
    let mut stale = std::mem::take(&mut entry.undo.link().stale);
    if stale.is_empty() {
        return;
    }
    stale.sort_unstable();
    stale.dedup();
    stale.retain(|stale| !entries::remove_stale(table, row, entry.row, stale));
    entry.undo.link().stale = stale;
}
