//! Where the rows of a table are, and visiting them: along an index, along several, or all.

use std::collections::HashSet;

use avocet_base::RowId;
use avocet_channel::blocking::{ROWS_IN_PLACE, blocking_if};
use avocet_engine::{Direction, EngineError, KeyRange, LockHow, ReadMode, ReadScratch, RowVerdict, Txn};
use avocet_types::expr::{EvalContext, EvalResult, RowSource};
use avocet_types::{Datum, IndexKind, RowRef};

use super::Table;
use super::bounds::Bounds;
use super::choose::Access;
use super::keys::{Found, Keys};

/// So many rows are looked up one by one, whatever the table's size: to read all of a table takes as long as to look up one of
/// so many.
const LEAST_ENTRIES: u64 = 4_000;
const MOST_ENTRIES: u64 = 20_000;
const ROWS_PER_LOOKUP: u64 = 64;

/// Up to how many rows a table is small enough for any range.
pub const fn fewest_entries() -> u64 {
    LEAST_ENTRIES
}

/// How many entries of an index of a table are few.
fn few_entries(table: &Table) -> u64 {
    (table.row_count() / ROWS_PER_LOOKUP).clamp(LEAST_ENTRIES, MOST_ENTRIES)
}

/// To so many rows that are not locked no other way is looked for.
const LEAST_FEW: u64 = 64;

/// A way along a wanted order is left when it has come to so many times the rows that it was taken to visit at most.
pub const PATIENCE: u64 = 4;

/// A way along a wanted order that may visit more rows than this gives its thread away first, however few it visited the last time.
const MOST_IN_PLACE: u64 = 4_096;

/// If conditions lead to more rows than this, the first `wanted` in some order are met sooner along that: of `found` rows that
/// lie anywhere these are among `wanted · rows / found`. `None` if these are too many to be counted before.
pub fn few_of_an_order(wanted: u64, table: &Table, locks: bool) -> Option<u64> {
    let few = (wanted as f64 * table.row_count() as f64).sqrt() as u64;
    let few = if locks { few } else { few.max(LEAST_FEW) };
    (few <= MOST_ENTRIES).then_some(few)
}

/// How many rows a visit is likely to come to that may end after `most`, and came to `last` the last time.
pub fn likely_along(most: u64, last: Option<u64>) -> u64 {
    last.filter(|_| most <= MOST_IN_PLACE).unwrap_or(most)
}

/// Memory for so many rows of a union is kept for the next statement.
const MOST_KEPT: usize = 4_000;

/// Evaluates where the rows of a table are.
pub fn locate<'a, R: RowSource<'a>>(
    table: &Table,
    access: &'a Access,
    row: &R,
    params: &'a [Datum<'a>],
    ctx: &EvalContext,
    keys: &mut Keys,
) -> EvalResult<Found> {
    if !access.union.is_empty() {
        keys.parts.resize_with(access.union.len(), || (Found::Nothing, Keys::default()));
        let mut any = Found::Nothing;
        for (part, (found, keys)) in access.union.iter().zip(&mut keys.parts) {
            *found = locate(table, part, row, params, ctx, keys)?;
            if *found != Found::Nothing {
                any = Found::Ranges;
            }
        }
        return Ok(any);
    }
    match access.index {
        None => Ok(Found::Ranges),
        Some(index) => access.terms.locate(&table.indexes()[index], row, params, ctx, keys),
    }
}

/// Whether what was located is few values of a unique key, or few entries of an index.
pub fn has_few(table: &Table, access: &Access, found: Found, keys: &Keys, read: &mut ReadScratch) -> bool {
    has_at_most(few_entries(table), table, access, found, keys, read)
}

/// Whether what was located is so many of them at most (along each of several indexes).
pub fn has_at_most(
    most: u64,
    table: &Table,
    access: &Access,
    found: Found,
    keys: &Keys,
    read: &mut ReadScratch,
) -> bool {
    // The keys of a union may be those of the statement before then.
    if found == Found::Nothing {
        return true;
    }
    if !access.union.is_empty() {
        let mut parts = access.union.iter().zip(&keys.parts);
        return parts.all(|(part, (found, keys))| has_at_most(most, table, part, *found, keys, read));
    }
    if found != Found::Ranges {
        return true;
    }
    let ranges = keys.ranges();
    let span = keys.span().filter(|_| access.spans);
    if span.is_some_and(|span| span.saturating_mul(ranges.len() as u64) <= most) {
        return true;
    }
    access.index.is_some_and(|index| {
        let index = &table.indexes()[index];
        let mut left = most as usize;
        ranges.iter().all(|range| {
            let met = index.count_up_to(left + 1, range, read);
            let fits = met <= left;
            left = left.saturating_sub(met);
            fits
        })
    })
}

/// Visits the rows of a table that were located. `most`: after so many `each` is known to have its last.
#[expect(clippy::too_many_arguments, reason = "where the rows are, how they are locked, and what sees them")]
pub fn visit(
    table: &Table,
    access: &Access,
    found: Found,
    lock: Option<&mut LockHow<'_>>,
    most: u64,
    txn: &mut Txn,
    keys: &mut Keys,
    read: &mut ReadScratch,
    bounds: &Bounds<'_>,
    each: &mut dyn FnMut(RowId, RowRef<'_>) -> RowVerdict,
) -> Result<(), EngineError> {
    // Whatever there is to visit: not the whole table, and not what the statement before has left in the keys of a union.
    if found == Found::Nothing {
        return Ok(());
    }
    if !access.union.is_empty() {
        return visit_union(table, access, lock, most, txn, keys, read, bounds, each);
    }
    let is_much = most > ROWS_IN_PLACE as u64 && is_much(table, access, found, keys, read);
    blocking_if(is_much, || visit_here(table, access, found, lock, txn, keys, read, each))
}

/// As `visit`, along several indexes: each row that is wanted is so once. One that was not is shown again, since it may
/// have changed before it is locked.
#[expect(clippy::too_many_arguments, reason = "as visit")]
fn visit_union(
    table: &Table,
    access: &Access,
    mut lock: Option<&mut LockHow<'_>>,
    most: u64,
    txn: &mut Txn,
    keys: &mut Keys,
    read: &mut ReadScratch,
    bounds: &Bounds<'_>,
    each: &mut dyn FnMut(RowId, RowRef<'_>) -> RowVerdict,
) -> Result<(), EngineError> {
    let Keys { parts, seen, .. } = keys;
    seen.clear();
    let mut outcome = Ok(());
    let mut ended = false;
    for (part, (found, keys)) in access.union.iter().zip(parts) {
        let mut each = |id, row: RowRef<'_>| {
            if seen.contains(&id) {
                return RowVerdict::Unwanted;
            }
            let shown = each(id, row);
            if shown != RowVerdict::Unwanted && seen.insert(id) {
                bounds.hold(size_of::<RowId>());
            }
            ended = shown == RowVerdict::Last;
            shown
        };
        let lock = lock.as_deref_mut();
        outcome = visit(table, part, *found, lock, most, txn, keys, read, bounds, &mut each);
        if ended || outcome.is_err() {
            break;
        }
    }
    bounds.let_go(seen.len() * size_of::<RowId>());
    if seen.len() > MOST_KEPT {
        *seen = HashSet::default();
    }
    outcome
}

/// Whether the other connections of the thread had better not wait for a visit.
fn is_much(table: &Table, access: &Access, found: Found, keys: &Keys, read: &mut ReadScratch) -> bool {
    let Some(index) = access.index else { return table.row_count() > ROWS_IN_PLACE as u64 };
    let index = &table.indexes()[index];
    let ranges = keys.ranges();
    let is_short = |values: u64| values <= ROWS_IN_PLACE as u64 && index.def.kind != IndexKind::Secondary;
    if found != Found::Ranges || keys.span().is_some_and(is_short) {
        return false;
    }
    let each = ROWS_IN_PLACE / ranges.len().max(1);
    ranges.iter().any(|range| index.has_more_than(each, range, read))
}

#[expect(clippy::too_many_arguments, reason = "as visit")]
fn visit_here(
    table: &Table,
    access: &Access,
    found: Found,
    mut lock: Option<&mut LockHow<'_>>,
    txn: &mut Txn,
    keys: &Keys,
    read: &mut ReadScratch,
    each: &mut dyn FnMut(RowId, RowRef<'_>) -> RowVerdict,
) -> Result<(), EngineError> {
    let Some(index) = access.index else {
        return match lock {
            None => txn.table_rows(table, ReadMode::Snapshot, &mut |id, row| each(id, row).flow()),
            Some(how) => lock_all(table, how, txn, read, each),
        };
    };
    let index = &table.indexes()[index];
    match found {
        Found::Nothing => Ok(()),
        Found::One => match lock {
            None => txn
                .get_unique(table, index, keys.key(), read, &mut |id, row| {
                    let _ = each(id, row);
                })
                .map(drop),
            Some(how) => {
                let range = keys.whole_key();
                txn.lock_range(table, index, range, Direction::Ascending, how, read, each)
            }
        },
        Found::Ranges => {
            let mut ended = false;
            let direction = if access.descending { Direction::Descending } else { Direction::Ascending };
            let ranges = keys.ranges();
            for n in 0..ranges.len() {
                let range = &ranges[if access.descending { ranges.len() - 1 - n } else { n }];
                let mut each = |id, row: RowRef<'_>| {
                    let shown = each(id, row);
                    ended = shown == RowVerdict::Last;
                    shown
                };
                match &mut lock {
                    None => {
                        let mut each = |id, row: RowRef<'_>| each(id, row).flow();
                        let columns = access.columns.as_deref();
                        txn.index_scan_of(table, index, range, direction, columns, read, &mut each)?;
                    }
                    Some(how) => {
                        txn.lock_range(table, index, range, direction, how, read, &mut each)?;
                    }
                }
                if ended {
                    break;
                }
            }
            Ok(())
        }
    }
}

/// Locks the rows of a whole table in the order of the primary key, if it has one: as InnoDB meets them.
fn lock_all(
    table: &Table,
    how: &mut LockHow<'_>,
    txn: &mut Txn,
    read: &mut ReadScratch,
    each: &mut dyn FnMut(RowId, RowRef<'_>) -> RowVerdict,
) -> Result<(), EngineError> {
    let mut indexes = table.indexes().iter();
    match indexes.find(|index| index.def.kind == IndexKind::Primary) {
        Some(primary) => {
            txn.lock_range(table, primary, &KeyRange::all(), Direction::Ascending, how, read, each)
        }
        None => txn.lock_table(table, how, each),
    }
}
