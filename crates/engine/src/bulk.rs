//! Bulk inserts: rows that go straight to column blocks.
//!
//! Batches are collected to segments of 65,536 rows, or of fewer if these are large, encoded, and written to the block store before the
//! transaction commits; the log then carries references. Index entries are added in sorted runs, and unique
//! keys are checked against everything that is there.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::concat;
use arrow::datatypes::DataType;
use avocet_base::SegmentNo;
use avocet_storage::cold::Ordinals;
use avocet_storage::hot::RowBuf;
use avocet_storage::relation::{ColdSegment, Deletes, SegmentState};
use avocet_types::arrow_map::datum_at;

use crate::block_rows::{block_entries, note_auto_increment};
use crate::entries::{self, MAX_IMAGE_BYTES};
use crate::error::{EngineError, Result};
use crate::index_build::SortedEntries;
use crate::redo::Op;
use crate::shred::encode_rows;
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
    ///
    /// # Errors
    /// `NullInColumn`; `RowTooLarge`, before any row of the batch is added; what writing a block and claiming its keys fails
    /// with.
    pub fn push(&mut self, txn: &mut Txn, batch: &RecordBatch) -> Result<()> {
        self.check(batch)?;
        self.check_row_sizes(batch)?;
        if self.table.id().is_temporary() {
            return self.push_rows(txn, batch);
        }
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

    /// Rows of a temporary table are hot, whatever their number.
    fn push_rows(&mut self, txn: &mut Txn, batch: &RecordBatch) -> Result<()> {
        let columns = &self.table.def.columns;
        let mut row = Vec::with_capacity(columns.len());
        for at in 0..batch.num_rows() {
            row.clear();
            row.extend(
                columns.iter().zip(batch.columns()).map(|(column, array)| datum_at(array, at, &column.ty)),
            );
            txn.insert(&self.table, &row)?;
            if let Some(column) = self.table.def.auto_increment_column() {
                self.table.note_stored_number(&row[column]);
            }
            if at % ENTRIES_BETWEEN_CHECKS == 0 {
                txn.check_interrupted()?;
            }
        }
        self.loaded += batch.num_rows() as u64;
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

    /// A row that could not be inserted could not be changed, either.
    fn check_row_sizes(&self, batch: &RecordBatch) -> Result<()> {
        let fixed = self.table.layout.fixed_size;
        if fixed + bytes_of(batch) <= MAX_IMAGE_BYTES {
            return Ok(());
        }
        let lengths = |array: &ArrayRef, at: usize| match array.data_type() {
            DataType::Utf8View => array.as_string_view().value(at).len(),
            DataType::BinaryView => array.as_binary_view().value(at).len(),
            _ => 0,
        };
        let row_len = |at| {
            let there = batch.columns().iter().filter(|array| array.is_valid(at));
            fixed + there.map(|array| lengths(array, at)).sum::<usize>()
        };
        (0..batch.num_rows()).map(row_len).try_for_each(entries::check_row_len)
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
        let block = encode_rows(&self.table, &columns, Ordinals::Dense(rows as u32))?;
        let block = self.table.view(txn.engine().blocks.write(block)?)?;
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
        let counted = Some(rows as u32);
        Op::Block { table: table.id(), segment, block: id, rows: counted }.encode(self.redo());
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
        let (mut entries, mut with_null) = (SortedEntries::default(), SortedEntries::default());
        block_entries(table, index, segment, cold, &mut |entry, has_null| {
            let run = if unique && has_null { &mut with_null } else { &mut entries };
            run.push(|to| to.extend_from_slice(entry));
        })?;
        entries.check_lengths()?;
        with_null.check_lengths()?;
        handle.tree.bulk_insert_sorted(with_null.sorted());
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
