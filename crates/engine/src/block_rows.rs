//! Rows of column blocks as a table has them: their index entries, what they use of AUTO_INCREMENT.

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;
use avocet_base::{RowId, SegmentNo};
use avocet_storage::hot::RowBuf;
use avocet_storage::relation::{ColdSegment, SegmentState};
use roaring::RoaringBitmap;

use crate::error::{EngineError, Result};
use crate::table::TableHandle;

/// Visits the index entries of all rows of a block that are not deleted for everyone, each with whether its
/// key has a NULL in it.
pub(crate) fn block_entries(
    table: &TableHandle,
    index: usize,
    segment: SegmentNo,
    cold: &ColdSegment,
    visit: &mut dyn FnMut(&[u8], bool),
) -> Result<()> {
    let deleted = cold.deletes.body.read().all_settled().clone();
    entries_but_of(&deleted, table, index, segment, cold, visit)
}

/// The same of the rows whose newest version is there, for an index that is made now: who collects an older version knows the
/// indexes that there were when the row was deleted, and would leave an entry in this one.
pub(crate) fn newest_block_entries(
    table: &TableHandle,
    index: usize,
    segment: SegmentNo,
    cold: &ColdSegment,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<()> {
    let deleted = cold.deletes.body.read().newest();
    entries_but_of(&deleted, table, index, segment, cold, &mut |entry, _| visit(entry))
}

fn entries_but_of(
    deleted: &RoaringBitmap,
    table: &TableHandle,
    index: usize,
    segment: SegmentNo,
    cold: &ColdSegment,
    visit: &mut dyn FnMut(&[u8], bool),
) -> Result<()> {
    let handle = &table.indexes[index];
    let ordinals = &cold.block.meta().ordinals;
    let columns = handle
        .parts
        .iter()
        .map(|part| Ok((part.column, cold.block.column(part.column)?)))
        .collect::<Result<Vec<_>>>()?;
    let mut buf = RowBuf::default();
    let mut entry = Vec::new();
    for row in 0..ordinals.len() {
        let ordinal = ordinals.ordinal_of(row);
        if deleted.contains(ordinal.into()) {
            continue;
        }
        avocet_storage::rows::partial_image(&table.layout, &columns, row, &mut buf.image)?;
        let image = buf.row(&table.layout);
        entry.clear();
        handle.entry(&image, RowId::new(segment, ordinal), &mut entry);
        visit(&entry, handle.has_null(&image));
    }
    Ok(())
}

/// Takes the index entries of a block that is given up out again.
pub(crate) fn remove_entries(table: &TableHandle, segment: SegmentNo) {
    let state = table.relation.segment(segment).state_owned();
    let SegmentState::Cold(cold) = &*state else { return };
    for (n, index) in table.indexes.iter().enumerate() {
        // If the block can not be read, entries too many stay; they lead to an empty segment, which is harmless.
        let _ = block_entries(table, n, segment, cold, &mut |entry, _| {
            index.tree.remove(entry);
        });
    }
}

/// Later generated AUTO_INCREMENT values are greater than those in a block.
pub(crate) fn note_auto_increment(table: &TableHandle, segment: SegmentNo) -> Result<()> {
    let Some(column) = table.def.auto_increment_column() else { return Ok(()) };
    let state = table.relation.segment(segment).state_owned();
    let SegmentState::Cold(cold) = &*state else { return Ok(()) };
    let bounds = cold.block.meta().columns[column].bounds.as_ref();
    let greatest = bounds.and_then(|bounds| bounds.max.as_integer()?.to_i128());
    if let Some(used) = greatest.and_then(|v| u64::try_from(v).ok()) {
        table.note_auto_increment(used);
    }
    Ok(())
}

/// The rows of arrays at some positions, for blocks that are rewritten.
pub(crate) fn take_rows(array: &ArrayRef, rows: &UInt32Array) -> Result<ArrayRef> {
    take(array, rows, None).map_err(|e| EngineError::corrupt("a column", e))
}
