//! Old versions of one row, where it is: collected, or merged with older ones.

use avocet_storage::hot::{HotPage, PageBody, RowBuf};
use avocet_storage::relation::{ColdSegment, SegmentState};
use avocet_storage::version::{Change, Merged};
use parking_lot::RwLockWriteGuard;

use super::UndoEntry;
use crate::rows;
use crate::snapshots::Horizon;
use crate::table::TableHandle;

/// What is done to a version under the latch of its row.
#[derive(Clone, Copy)]
enum Work<'h> {
    Collect,
    Merge(&'h Horizon),
}

/// Takes a version that every snapshot sees off its chain, and removes what nobody needs without it.
pub(super) fn collect(table: &TableHandle, entry: &UndoEntry, buf: &mut RowBuf) {
    work(table, entry, Work::Collect, buf);
}

/// Has a version stand for older ones that no snapshot tells from it. False if it need not be kept itself.
pub(super) fn merge(table: &TableHandle, entry: &UndoEntry, horizon: &Horizon, buf: &mut RowBuf) -> bool {
    work(table, entry, Work::Merge(horizon), buf)
}

/// Whether the version is to be kept.
fn work(table: &TableHandle, entry: &UndoEntry, work: Work<'_>, buf: &mut RowBuf) -> bool {
    let segment = table.relation.segment(entry.row.segment());
    loop {
        let done = match &*segment.state() {
            SegmentState::Empty => Some(false),
            SegmentState::Hot(hot) => match table.relation.page_of(hot, entry.row.ordinal()) {
                Some((page, slot)) => in_page(table, page, slot, entry, work, buf),
                None => Some(false),
            },
            SegmentState::Cold(cold) => in_block(table, cold, entry, work, buf),
        };
        match done {
            Some(keeps) => return keeps,
            // The page or block is being replaced.
            None => std::thread::yield_now(),
        }
    }
}

fn in_page(
    table: &TableHandle,
    page: &HotPage,
    slot: usize,
    entry: &UndoEntry,
    work: Work<'_>,
    buf: &mut RowBuf,
) -> Option<bool> {
    let mut body = page.body.write();
    if body.frozen {
        return None;
    }
    if entry.undo.is_settled() {
        return Some(false);
    }
    let Work::Merge(horizon) = work else {
        collect_in_page(table, body, slot, entry, buf);
        return Some(false);
    };
    match entry.undo.merge_older(&table.layout, &|ts| horizon.interval(ts)) {
        Merged::Nothing if entry.undo.is_lock() => Some(!body.drop_lock(slot, &entry.undo)),
        Merged::Nothing => Some(true),
        Merged::Vanished => {
            collect_in_page(table, body, slot, entry, buf);
            Some(false)
        }
        Merged::Some => {
            drop_stale_entries(table, &body, slot, entry);
            Some(!(entry.undo.is_lock() && body.drop_lock(slot, &entry.undo)))
        }
    }
}

fn collect_in_page(
    table: &TableHandle,
    mut body: RwLockWriteGuard<'_, PageBody>,
    slot: usize,
    entry: &UndoEntry,
    buf: &mut RowBuf,
) {
    let (stale, is_delete, is_insert) = {
        let mut link = entry.undo.link();
        let stale = std::mem::take(&mut link.stale);
        (stale, matches!(link.change, Change::Delete), matches!(link.change, Change::Insert))
    };
    let deleted = is_delete && !body.is_live(slot);
    if deleted {
        buf.image.clear();
        body.in_place(&table.layout, slot).to_image(&mut buf.image);
    }
    // A row that came and went is collected with its delete.
    if is_insert || is_delete {
        table.moves.forget(entry.row);
    }
    // Who checks stale entries looks at all versions that are left.
    let gone = body.collect(&table.layout, slot, &entry.undo, !stale.is_empty());
    for stale in &stale {
        rows::remove_stale(table, &body, slot, entry.row, stale);
    }
    drop(body);
    if gone && deleted {
        rows::remove_entries(table, &buf.row(&table.layout), entry.row);
    }
}

/// What only versions in the middle needed, nobody needs now.
fn drop_stale_entries(table: &TableHandle, body: &PageBody, slot: usize, entry: &UndoEntry) {
    let mut stale = std::mem::take(&mut entry.undo.link().stale);
    if stale.is_empty() {
        return;
    }
    stale.sort_unstable();
    stale.dedup();
    stale.retain(|stale| !rows::remove_stale(table, body, slot, entry.row, stale));
    entry.undo.link().stale = stale;
}

fn in_block(
    table: &TableHandle,
    cold: &ColdSegment,
    entry: &UndoEntry,
    work: Work<'_>,
    buf: &mut RowBuf,
) -> Option<bool> {
    let ordinal = entry.row.ordinal();
    let mut deletes = cold.deletes.body.write();
    if deletes.closed {
        return None;
    }
    if entry.undo.is_settled() {
        return Some(false);
    }
    if let Work::Merge(horizon) = work {
        entry.undo.merge_older(&table.layout, &|ts| horizon.interval(ts));
        return Some(!(entry.undo.is_lock() && deletes.drop_lock(ordinal, &entry.undo)));
    }
    let gone = deletes.collect(ordinal, &entry.undo);
    drop(deletes);
    // If the block can not be read, entries too many stay: harmless, since visits see the delete.
    if gone && matches!(rows::cold_image(table, cold, ordinal, &mut buf.image), Ok(true)) {
        rows::remove_entries(table, &buf.row(&table.layout), entry.row);
    }
    Some(false)
}
