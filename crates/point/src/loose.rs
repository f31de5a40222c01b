//! Running loose scans: see `choose/loose.rs`.

use std::ops::ControlFlow;

use avocet_engine::{Direction, IndexHandle, KeyRange, ReadScratch, Txn};
use avocet_types::error::SqlError;
use avocet_types::key::successor;
use avocet_types::{Datum, RowRef};

use super::choose::Loose;
use super::measure::Visit;
use super::pipeline::Pipeline;
use super::{RowId, Table};

/// Reads the ends of the groups within a range; breaks when no more rows are wanted.
#[expect(clippy::too_many_arguments, reason = "where the groups are, and what sees them")]
pub fn visit_groups(
    loose: Loose,
    table: &Table,
    index: &IndexHandle,
    range: &KeyRange,
    txn: &mut Txn,
    read: &mut ReadScratch,
    pipeline: &mut Pipeline<'_>,
    seen: &mut Visit<'_>,
) -> Result<ControlFlow<()>, SqlError> {
    let mut rest = range.clone();
    let mut key = Vec::new();
    let mut values: Vec<Datum<'static>> = Vec::new();
    loop {
        let mut outcome = Ok(ControlFlow::Continue(()));
        let mut found = false;
        txn.index_scan(table, index, &rest, Direction::Ascending, read, &mut |_: RowId, row: RowRef<'_>| {
            found = true;
            values.clear();
            let parts = &index.parts[..loose.parts];
            values.extend(parts.iter().map(|part| row.get(part.column).into_owned()));
            seen.row();
            outcome = pipeline.visit().and_then(|()| match loose.first || !loose.last {
                true => pipeline.take(&row),
                false => Ok(ControlFlow::Continue(())),
            });
            ControlFlow::Break(())
        })?;
        if outcome?.is_break() || !found {
            return Ok(if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
        }
        key.clear();
        let is_key = index.keys.encode_prefix(&values, &mut key);
        debug_assert!(is_key, "the values are of a row");
        if loose.last {
            let group = if loose.parts == 0 { range.clone() } else { KeyRange::prefix(&key) };
            let mut outcome = Ok(ControlFlow::Continue(()));
            txn.index_scan(table, index, &group, Direction::Descending, read, &mut |_, row| {
                seen.row();
                outcome = pipeline.visit().and_then(|()| pipeline.take(&row));
                ControlFlow::Break(())
            })?;
            if outcome?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if !is_key || loose.parts == 0 || !successor(&mut key) {
            return Ok(ControlFlow::Continue(()));
        }
        rest = rest.rest_from(&key, Direction::Ascending);
    }
}
