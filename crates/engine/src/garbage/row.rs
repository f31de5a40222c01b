//! Old versions of one row: collected, or merged with older ones.

use avocet_storage::hot::RowBuf;
use avocet_storage::relation::pin;
use avocet_storage::rows::RowLatch;
use avocet_storage::version::{Change, Merged, StaleEntry};

use super::UndoEntry;
use crate::entries;
use crate::snapshots::Horizon;
use crate::table::TableHandle;

/// Takes a version that every snapshot sees off its chain, and removes what nobody needs without it. Returns how many bytes it
/// held beside itself.
pub(super) fn collect(table: &TableHandle, entry: &UndoEntry, buf: &mut RowBuf) -> usize {
    let pinned = pin();
    match latch(table, entry, &pinned) {
        Some(row) => collect_latched(table, row, entry, buf),
        None => entry.undo.link().bytes(),
    }
}

/// Has a version stand for older ones that no snapshot tells from it. False if it need not be kept itself. `held` is less by the
/// bytes that versions hold no more.
pub(super) fn merge(
    table: &TableHandle,
    entry: &UndoEntry,
    horizon: &Horizon,
    buf: &mut RowBuf,
    held: &mut isize,
) -> bool {
    let pinned = pin();
    let Some(mut row) = latch(table, entry, &pinned) else {
        *held -= entry.undo.link().bytes() as isize;
        return false;
    };
    let mut freed = 0;
    // A version from after an index was made must not stand for those from before, which have no entries in it.
    let interval = |ts| Some((horizon.interval(ts)?, ts > table.changed_at()));
    let number = |ts| interval(ts).map(|(gap, is_later)| 2 * gap + usize::from(is_later));
    let merged = row.merge(&entry.undo, &number, &mut freed);
    *held -= freed as isize;
    match merged {
        Merged::Nothing => {}
        Merged::Vanished => {
            table.relocations.pass_over(entry.row);
            *held -= collect_latched(table, row, entry, buf) as isize;
            return false;
        }
        Merged::Some => *held -= drop_stale_entries(table, &row, entry) as isize,
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

fn collect_latched(table: &TableHandle, mut row: RowLatch<'_>, entry: &UndoEntry, buf: &mut RowBuf) -> usize {
    let (mut stale, mut older, is_delete, is_insert, held) = {
        let mut link = entry.undo.link();
        let held = link.bytes();
        let stale = std::mem::take(&mut link.stale);
        let (is_delete, is_insert) =
            (matches!(link.change, Change::Delete), matches!(link.change, Change::Insert));
        (stale, link.older(), is_delete, is_insert, held)
    };
    // A commit that is handed over late is cut off with a later one: what it has left goes now, while that can be told of the
    // row (it may be frozen next), and not with its own entry.
    while let Some(undo) = older.filter(|older| !older.is_settled()) {
        let link = undo.link();
        stale.extend_from_slice(&link.stale);
        older = link.older();
    }
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
    held
}

/// What only versions in the middle needed, nobody needs now. Returns how many bytes that was.
fn drop_stale_entries(table: &TableHandle, row: &RowLatch<'_>, entry: &UndoEntry) -> usize {
    let bytes = |stale: &[StaleEntry]| stale.iter().map(|stale| stale.entry.len()).sum::<usize>();
    let mut stale = std::mem::take(&mut entry.undo.link().stale);
    if stale.is_empty() {
        return 0;
    }
    let before = bytes(&stale);
    stale.sort_unstable();
    stale.dedup();
    stale.retain(|stale| !entries::remove_stale(table, row, entry.row, stale));
    let freed = before - bytes(&stale);
    entry.undo.link().stale = stale;
    freed
}
