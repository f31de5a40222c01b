//! Bulk inserts: rows that go straight to column blocks.
//!
//! Batches are collected to segments of 65,536 rows, or of fewer if these are large, encoded, and written to the block store before the
//! transaction commits; the log then carries references. Index entries are added in sorted runs, and unique
//! keys are checked against everything that is there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Schema};
use avocet_base::{RowId, SegmentNo};
use avocet_storage::cold::{ColdType, Ordinals, encode_block};
use avocet_storage::hot::RowBuf;
use avocet_storage::index::MAX_KEY_LEN;
use avocet_storage::relation::{ColdSegment, Deletes, SegmentState};

use crate::entries;
use crate::error::{EngineError, Result};
use crate::redo::Op;
use crate::table::TableHandle;
use crate::txn::{Load, Txn};

/// How many index entries are added between two questions whether to stop.
const ENTRIES_BETWEEN_CHECKS: usize = 1024;

/// Collects batches of all columns, in table order, with the Arrow types of the table's SQL types.
pub struct BulkInsert {
    table: Arc<TableHandle>,
    pending: Vec<RecordBatch>,
    pending_rows: usize,
    pending_bytes: usize,
    loaded: u64,
}

impl BulkInsert {
    pub(crate) fn new(table: Arc<TableHandle>) -> Self {
        Self { table, pending: Vec::new(), pending_rows: 0, pending_bytes: 0, loaded: 0 }
    }

    /// Adds rows. On an error the transaction's statement must be rolled back.
    pub fn push(&mut self, txn: &mut Txn, batch: &RecordBatch) -> Result<()> {
        self.check(batch)?;
        let (most_rows, most) =
            (self.table.relation.rows_per_segment(), txn.engine().memory().segment_bytes());
        let row_bytes = bytes_of(batch).div_ceil(batch.num_rows().max(1));
        let mut from = 0;
        while from < batch.num_rows() {
            let fit = most.saturating_sub(self.pending_bytes).div_ceil(row_bytes.max(1)).max(1);
            let take = (most_rows - self.pending_rows).min(fit).min(batch.num_rows() - from);
            self.pending.push(batch.slice(from, take));
            self.pending_rows += take;
            self.pending_bytes += take * row_bytes;
            from += take;
            if self.pending_rows == most_rows || self.pending_bytes >= most {
                self.flush(txn)?;
            }
        }
        Ok(())
    }

    /// Writes what is left; returns the number of rows loaded in all.
    pub fn finish(mut self, txn: &mut Txn) -> Result<u64> {
        if self.pending_rows > 0 {
            self.flush(txn)?;
        }
        Ok(self.loaded)
    }

    fn check(&self, batch: &RecordBatch) -> Result<()> {
        let wanted = self.table.def.columns.iter().map(|c| c.ty.arrow_type());
        let given: Vec<DataType> = batch.columns().iter().map(|c| c.data_type().clone()).collect();
        if !wanted.eq(given.iter().cloned()) {
            let what = format!("a batch for table {}", self.table.def.name);
            return Err(EngineError::corrupt(what, format!("columns of types {given:?}")));
        }
        for (column, array) in self.table.def.columns.iter().zip(batch.columns()) {
            if !column.nullable && array.null_count() > 0 {
                return Err(EngineError::NullInColumn(column.name.clone()));
            }
        }
        Ok(())
    }

    fn flush(&mut self, txn: &mut Txn) -> Result<()> {
        txn.check_interrupted()?;
        txn.check_room_for_load()?;
        let pending = std::mem::take(&mut self.pending);
        let rows = std::mem::take(&mut self.pending_rows);
        let memory = txn.engine().memory().clone();
        let _copies = memory.hold_copies(std::mem::take(&mut self.pending_bytes));
        let columns = (0..self.table.def.columns.len())
            .map(|c| {
                let parts: Vec<_> = pending.iter().map(|b| b.column(c).as_ref()).collect();
                concat(&parts).map_err(|e| EngineError::corrupt("a batch", e))
            })
            .collect::<Result<Vec<ArrayRef>>>()?;
        let block = encode_block(&cold_types(&self.table)?, &columns, Ordinals::Dense(rows as u32))?;
        let block = txn.engine().blocks.write(block)?;
        txn.adopt_block(&self.table, block, rows as u64)?;
        self.loaded += rows as u64;
        Ok(())
    }
}

/// Bytes of a batch's values, wherever its buffers are from.
fn bytes_of(batch: &RecordBatch) -> usize {
    let strings = |array: &ArrayRef| match array.data_type() {
        DataType::Utf8View => array.as_string_view().total_bytes_len(),
        DataType::BinaryView => array.as_binary_view().total_bytes_len(),
        _ => 0,
    };
    batch
        .columns()
        .iter()
        .map(|array| {
            let fixed = array.data_type().primitive_width().unwrap_or(size_of::<u128>());
            array.len() * fixed + strings(array)
        })
        .sum()
}

/// The block types of a table's columns.
pub(crate) fn cold_types(table: &TableHandle) -> Result<Arc<[ColdType]>> {
    let fields: Vec<_> = table
        .def
        .columns
        .iter()
        .map(|c| arrow::datatypes::Field::new(&c.name, c.ty.arrow_type(), c.nullable))
        .collect();
    Ok(ColdType::of_schema(&Schema::new(fields))?)
}

impl Txn {
    pub fn bulk_insert(&mut self, table: &Arc<TableHandle>) -> Result<BulkInsert> {
        self.check_room()?;
        self.writable_table(table)?;
        Ok(BulkInsert::new(table.clone()))
    }

    /// Gives a stored block a segment of its own; its rows become visible with the transaction.
    fn adopt_block(
        &mut self,
        table: &Arc<TableHandle>,
        block: Arc<avocet_storage::cold::Block>,
        rows: u64,
    ) -> Result<()> {
        let t = self.writable_table(table)?;
        let segment = table.relation.reserve_segment();
        let id = block.id();
        let cold = ColdSegment::new(block, Some(self.state().clone()), Deletes::default());
        table.relation.segment(segment).replace(SegmentState::Cold(cold));
        self.note_load(Load { table: t, segment, block: id, rows });
        Op::Block { table: table.id(), segment, block: id }.encode(self.redo());
        let state = table.relation.segment(segment).state_owned();
        let SegmentState::Cold(cold) = &*state else { unreachable!("set above") };
        note_auto_increment(table, segment)?;
        for index in 0..table.indexes.len() {
            self.index_block(table, index, segment, cold)?;
        }
        self.foreign_load(table, cold)
    }

    fn index_block(
        &mut self,
        table: &Arc<TableHandle>,
        index: usize,
        segment: SegmentNo,
        cold: &ColdSegment,
    ) -> Result<()> {
        let handle = &table.indexes[index];
        let unique = handle.def.kind.is_unique();
        let mut entries = SortedEntries::default();
        let mut longest = 0;
        let mut with_null = Vec::new();
        block_entries(table, index, segment, cold, &mut |entry, has_null| {
            longest = longest.max(entry.len());
            match unique && has_null {
                true => with_null.push(entry.to_vec()),
                false => entries.push(|to| to.extend_from_slice(entry)),
            }
        })?;
        if longest > MAX_KEY_LEN {
            return Err(EngineError::KeyTooLong { len: longest - 8, max: MAX_KEY_LEN - 8 });
        }
        with_null.sort_unstable();
        handle.tree.bulk_insert_sorted(with_null.iter());
        if !unique {
            handle.tree.bulk_insert_sorted(entries.sorted());
            return Ok(());
        }
        for (at, entry) in entries.sorted().enumerate() {
            if at % ENTRIES_BETWEEN_CHECKS == 0 {
                self.check_interrupted()?;
            }
            let (_, id) = crate::table::split_entry(entry);
            self.claim(table, index, entry, id).map_err(|e| {
                let mut buf = RowBuf::default();
                match (
                    e,
                    avocet_storage::rows::cold_image(
                        &table.layout,
                        &cold.block,
                        id.ordinal(),
                        &mut buf.image,
                    ),
                ) {
                    (EngineError::DuplicateKey { table: name, key, .. }, Ok(true)) => {
                        let entry = entries::key_text(table, index, &buf.row(&table.layout));
                        EngineError::DuplicateKey { entry, table: name, key }
                    }
                    (other, _) => other,
                }
            })?;
        }
        Ok(())
    }
}

/// Many index entries in one piece of memory, to be sorted.
#[derive(Default)]
pub(crate) struct SortedEntries {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    /// The first sixteen bytes of the entry as a big-endian number, which is nearly always enough to compare by.
    head: u128,
    start: usize,
    len: u32,
}

impl SortedEntries {
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let entry = &self.bytes[start..];
        let mut head = [0; 16];
        let known = entry.len().min(16);
        head[..known].copy_from_slice(&entry[..known]);
        self.places.push(Place { head: u128::from_be_bytes(head), start, len: entry.len() as u32 });
    }

    pub fn sort(&mut self) {
        let Self { bytes, places } = self;
        let entry = |place: &Place| &bytes[place.start..][..place.len as usize];
        places.sort_unstable_by(|a, b| a.head.cmp(&b.head).then_with(|| entry(a).cmp(entry(b))));
    }

    /// The entries in ascending order.
    pub fn sorted(&mut self) -> impl Iterator<Item = &[u8]> {
        self.sort();
        self.iter().map(|(_, entry)| entry)
    }

    fn iter(&self) -> impl Iterator<Item = (u128, &[u8])> {
        self.places.iter().map(|place| (place.head, &self.bytes[place.start..][..place.len as usize]))
    }

    /// The entries of several runs, each of which is sorted, in ascending order.
    pub fn merged(runs: &[Self]) -> impl Iterator<Item = &[u8]> {
        let mut rests: Vec<_> = runs.iter().map(Self::iter).collect();
        let firsts =
            rests.iter_mut().enumerate().filter_map(|(run, rest)| Some(Reverse((rest.next()?, run))));
        let mut heap: BinaryHeap<_> = firsts.collect();
        std::iter::from_fn(move || {
            let mut least = heap.peek_mut()?;
            let Reverse(((_, entry), run)) = *least;
            match rests[run].next() {
                Some(next) => *least = Reverse((next, run)),
                None => drop(PeekMut::pop(least)),
            }
            Some(entry)
        })
    }
}

/// Visits the index entries of all rows of a block that are not deleted for everyone, each with whether its
/// key has a NULL in it.
pub(crate) fn block_entries(
    table: &TableHandle,
    index: usize,
    segment: SegmentNo,
    cold: &ColdSegment,
    visit: &mut dyn FnMut(&[u8], bool),
) -> Result<()> {
    let handle = &table.indexes[index];
    let ordinals = &cold.block.meta().ordinals;
    let deleted = cold.deletes.body.read().all_settled().clone();
    let columns = handle
        .def
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
