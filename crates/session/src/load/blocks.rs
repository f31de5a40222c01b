//! Large loads, and INSERT … SELECT of rows whose keys may be there: rows that go straight to column blocks.
//!
//! Rows are gathered until they fill a block, which is then written as one: its keys are checked against all that is there,
//! and the log carries a reference. If one of its rows may not be stored as it is (its key is there, its parent is not), the
//! block is taken back, and its rows go one by one, with what the statement says of such rows. So a load into new keys
//! costs a check per block, and one into keys that are there at most twice what it costs row by row: after a block that
//! was taken back, ever more are not tried.

use std::mem;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use avocet_engine::{EngineError, MemoryBudget, TableHandle};
use avocet_types::Value;
use avocet_types::arrow_map::{ColumnBuilder, datum_at};
use avocet_types::error::{ErrorCode, SqlError};

use crate::bulk::{BATCH, builders, schema};
use crate::insert::Inserter;
use crate::state::Session;

/// Rows of a block.
const BLOCK_ROWS: usize = 1 << 16;
/// A batch ends when it has grown to about this.
const BATCH_BYTES: usize = 4 << 20;
/// A block is written when what it is made of takes this.
const BLOCK_BYTES: usize = 32 << 20;
/// While a block is written there are its batches, its columns in one piece, and their encoded form.
const COPIES: usize = 3;
/// At most so many blocks go row by row before one is tried again.
const MOST_UNTRIED: u32 = 64;

/// The rows of the block that is being gathered. What they take is counted.
pub(crate) struct Blocks {
    table: Arc<TableHandle>,
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    /// Of the rows in `columns`.
    rows: usize,
    bytes: usize,
    batches: Vec<RecordBatch>,
    batched_rows: usize,
    /// Blocks that go row by row from here on.
    untried: u32,
    /// How many those will be if the next block is taken back, too.
    next_untried: u32,
    memory: Arc<MemoryBudget>,
    reserved: usize,
}

impl Blocks {
    pub fn new(table: &Arc<TableHandle>, memory: Arc<MemoryBudget>) -> Self {
        Self {
            schema: schema(table),
            columns: builders(table),
            table: table.clone(),
            rows: 0,
            bytes: 0,
            batches: Vec::new(),
            batched_rows: 0,
            untried: 0,
            next_untried: 0,
            memory,
            reserved: 0,
        }
    }

    /// Adds a row that was read from so many bytes; writes the block if it is full.
    pub fn push(
        &mut self,
        session: &mut Session,
        inserter: &mut Inserter<'_>,
        row: &[Value],
        bytes: usize,
    ) -> Result<(), SqlError> {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.append(value);
        }
        self.rows += 1;
        self.bytes += bytes;
        let is_full = self.batched_rows + self.rows == BLOCK_ROWS;
        if self.rows < BATCH && self.bytes < BATCH_BYTES && !is_full {
            return Ok(());
        }
        self.end_batch()?;
        // Of a small budget, a small part.
        let most = BLOCK_BYTES.min(self.memory.limit() / 64).max(BATCH_BYTES);
        if is_full || self.reserved >= COPIES * most {
            self.write(session, inserter)?;
        }
        Ok(())
    }

    fn end_batch(&mut self) -> Result<(), SqlError> {
        let mut full = mem::replace(&mut self.columns, builders(&self.table));
        let columns = full.iter_mut().map(ColumnBuilder::finish).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error| ErrorCode::UNKNOWN_ERROR.because(error.to_string()))?;
        let bytes = COPIES * batch.get_array_memory_size();
        if !self.memory.reserve(bytes) {
            let why = format!("Out of memory: a block of {} rows", self.batched_rows + self.rows);
            return Err(ErrorCode::OUT_OF_RESOURCES.because(why));
        }
        self.reserved += bytes;
        self.batched_rows += mem::take(&mut self.rows);
        self.bytes = 0;
        self.batches.push(batch);
        Ok(())
    }

    /// Writes what is left.
    pub fn finish(&mut self, session: &mut Session, inserter: &mut Inserter<'_>) -> Result<(), SqlError> {
        if self.rows > 0 {
            self.end_batch()?;
        }
        self.write(session, inserter)
    }

    /// Stores the rows that were gathered: as a block, or one by one.
    fn write(&mut self, session: &mut Session, inserter: &mut Inserter<'_>) -> Result<(), SqlError> {
        let batches = mem::take(&mut self.batches);
        let rows = mem::take(&mut self.batched_rows);
        if rows > 0 && !self.write_block(session, inserter, &batches)? {
            self.write_rows(session, inserter, &batches)?;
        }
        drop(batches);
        self.memory.release(mem::take(&mut self.reserved));
        Ok(())
    }

    /// False if the rows have to go one by one.
    fn write_block(
        &mut self,
        session: &mut Session,
        inserter: &mut Inserter<'_>,
        batches: &[RecordBatch],
    ) -> Result<bool, SqlError> {
        if self.untried > 0 {
            self.untried -= 1;
            return Ok(false);
        }
        let txn = session.txn();
        let mark = txn.mark();
        let mut block = txn.bulk_insert(&self.table)?;
        let pushed = batches.iter().try_for_each(|batch| block.push(txn, batch));
        match pushed.and_then(|()| block.finish(txn)) {
            Ok(rows) => {
                inserter.rows += rows;
                inserter.affected += rows;
                self.next_untried = 0;
                Ok(true)
            }
            Err(EngineError::DuplicateKey { .. } | EngineError::ForeignKey(_)) => {
                txn.rollback_statement(mark);
                self.untried = self.next_untried;
                self.next_untried = (2 * self.next_untried + 1).min(MOST_UNTRIED);
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn write_rows(
        &self,
        session: &mut Session,
        inserter: &mut Inserter<'_>,
        batches: &[RecordBatch],
    ) -> Result<(), SqlError> {
        inserter.generated = None;
        let columns = &self.table.def.columns;
        for batch in batches {
            for row in 0..batch.num_rows() {
                session.info.interrupt.check()?;
                let value =
                    |at: usize| datum_at(batch.column(at).as_ref(), row, &columns[at].ty).into_owned();
                session.insert_row(inserter, (0..columns.len()).map(value).collect())?;
            }
        }
        Ok(())
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.memory.release(self.reserved);
    }
}
