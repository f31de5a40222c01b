//! Rows without parents, among all rows of a child that nobody changes meanwhile: when a foreign key is added, and for
//! `avocet check`.

use std::ops::ControlFlow;

use avocet_storage::hot::RowBuf;
use avocet_storage::index::ScanScratch;
use avocet_storage::relation::SegmentState;
use avocet_types::{Datum, RowRef, Value};

use super::{Link, Parent};
use crate::error::{EngineError, Result};
use crate::stop::Stop;
use crate::table::{TableHandle, split_entry};

/// The values of a child's row, unless one of them is NULL: such a row needs no parent.
pub(crate) fn key_values(row: &RowRef<'_>, columns: &[usize]) -> Option<Vec<Value>> {
    columns
        .iter()
        .map(|&column| Some(row.get(column)).filter(|v| !v.is_null()).map(Datum::into_owned))
        .collect()
}

/// Whether any row lacks its parent.
pub(crate) fn first_orphan(link: &Link, stop: &Stop) -> Result<bool> {
    let mut found = false;
    each_orphan(link, stop, &mut || {
        found = true;
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// How many rows lack their parent.
pub(crate) fn count_orphans(link: &Link) -> Result<u64> {
    let mut count = 0;
    each_orphan(link, &Stop::default(), &mut || {
        count += 1;
        ControlFlow::Continue(())
    })?;
    Ok(count)
}

fn each_orphan(link: &Link, stop: &Stop, visit: &mut dyn FnMut() -> ControlFlow<()>) -> Result<()> {
    let mut search = Search::default();
    let columns = &link.def().columns;
    let mut seen = 0;
    each_row(&link.child, columns, &mut |row| {
        seen += 1;
        if seen % Stop::EVERY == 0 {
            stop.check()?;
        }
        let Some(values) = key_values(&row, columns) else { return Ok(ControlFlow::Continue(())) };
        let has_parent = match &link.parent {
            Some(parent) => search.finds(parent, &values)?,
            None => false,
        };
        Ok(if has_parent { ControlFlow::Continue(()) } else { visit() })
    })
}

/// Memory of one search after the other.
#[derive(Default)]
struct Search {
    key: Vec<u8>,
    own: Vec<u8>,
    scan: ScanScratch,
    buf: RowBuf,
}

impl Search {
    fn finds(&mut self, parent: &Parent, values: &[Value]) -> Result<bool> {
        let Self { key, own, scan, buf } = self;
        let index = &parent.table.indexes[parent.index];
        key.clear();
        if !index.keys.encode_prefix(values, key) {
            return Ok(false);
        }
        let mut outcome = Ok(false);
        index.tree.prefix_scan(key, scan, &mut |entry| {
            let (_, id) = split_entry(entry);
            outcome = parent.table.relation.newest_row(id, buf).map_err(Into::into);
            if matches!(outcome, Ok(true)) {
                own.clear();
                index.keys.encode_row(&buf.row(&parent.table.layout), own);
                outcome = Ok(own.starts_with(key));
            }
            if matches!(outcome, Ok(false)) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        outcome
    }
}

/// Shows all rows in their newest versions; of rows in column blocks, only the given columns.
fn each_row(
    table: &TableHandle,
    columns: &[usize],
    visit: &mut dyn FnMut(RowRef<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    for (_, state) in table.relation.used_segments() {
        let flow = match &*state {
            SegmentState::Empty => ControlFlow::Continue(()),
            SegmentState::Hot(hot) => {
                let mut flow = ControlFlow::Continue(());
                for (_, page) in hot.pages() {
                    let body = page.body.read();
                    for slot in (0..table.relation.slots_per_page()).filter(|&slot| body.is_live(slot)) {
                        flow = visit(body.in_place(&table.layout, slot))?;
                        if flow.is_break() {
                            return Ok(());
                        }
                    }
                }
                flow
            }
            SegmentState::Cold(cold) => each_cold_row(table, cold, columns, visit)?,
        };
        if flow.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// Shows the given columns of the rows of a block that are not deleted.
pub(crate) fn each_cold_row(
    table: &TableHandle,
    cold: &avocet_storage::relation::ColdSegment,
    columns: &[usize],
    visit: &mut dyn FnMut(RowRef<'_>) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>, EngineError> {
    let ordinals = &cold.block.meta().ordinals;
    let encoded = columns.iter().map(|&at| Ok((at, cold.block.column(at)?))).collect::<Result<Vec<_>>>()?;
    let mut buf = RowBuf::default();
    for row in 0..ordinals.len() {
        if cold.deletes.body.read().is_deleted(ordinals.ordinal_of(row)) {
            continue;
        }
        avocet_storage::rows::partial_image(&table.layout, &encoded, row, &mut buf.image)?;
        if visit(buf.row(&table.layout))?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
