//! Large loads, and INSERT … SELECT of rows whose keys may be there: rows that go straight to column blocks.
//!
//! Rows are gathered until they fill a block, which is then written as one: its keys are checked against all that is there,
//! and the log carries a reference. If one of its rows may not be stored as it is (its key is there, its parent is not), the
//! block is taken back. The rows whose keys are there (`sift.rs`) then go one by one, with what the statement says of
//! such rows, and the rest is a block again; the blocks that follow are sifted first, as long as that finds any. So a load
//! into new keys costs a check per block, and one into keys that are there a look at each key more than row by row.
//! If that does not help, all rows of the block go one by one, and ever more blocks after it are not tried.

use std::mem;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use avocet_engine::{EngineError, MemoryBudget, TableHandle};
use avocet_types::Value;
use avocet_types::arrow_map::{ColumnBuilder, datum_at};
use avocet_types::error::{ErrorCode, SqlError};

use super::sift::{Sifted, may_sift};
use crate::bulk::{BATCH, builders, schema};
use crate::insert::Inserter;
use crate::state::Session;

/// Rows of a block.
const BLOCK_ROWS: usize = 1 << 16;
/// A batch ends when it has grown to about this, or to this share of a small budget.
const BATCH_BYTES: usize = 4 << 20;
const LEAST_BATCH_BYTES: usize = 256 << 10;
const SHARE: usize = 64;
/// A block is written when what it is made of takes this.
const BLOCK_BYTES: usize = 32 << 20;
/// While a block is written there are its batches, its columns in one piece, and their encoded form; if it was sifted, its rows in
/// two parts as well.
const COPIES: usize = 4;
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
    batch_bytes: usize,
    batches: Vec<RecordBatch>,
    batched_rows: usize,
    /// The last block had keys that are there.
    sifts: bool,
    /// Blocks that go row by row from here on.
    untried: u32,
    /// How many those will be if the next block is taken back, too.
    next_untried: u32,
    memory: Arc<MemoryBudget>,
    reserved: usize,
}

/// What became of a block.
enum Written {
    Whole,
    /// A key is there.
    Duplicate,
    /// A parent is not.
    Orphan,
}

impl Blocks {
    pub fn new(table: &Arc<TableHandle>, memory: Arc<MemoryBudget>) -> Self {
        Self {
            schema: schema(table),
            columns: builders(table),
            table: table.clone(),
            rows: 0,
            bytes: 0,
            batch_bytes: (memory.limit() / SHARE).clamp(LEAST_BATCH_BYTES, BATCH_BYTES),
            batches: Vec::new(),
            batched_rows: 0,
            sifts: false,
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
        if self.rows < BATCH && self.bytes < self.batch_bytes && !is_full {
            return Ok(());
        }
        self.end_batch(session, inserter)?;
        let most = BLOCK_BYTES.min(self.memory.limit() / SHARE).max(self.batch_bytes);
        if is_full || self.reserved >= COPIES * most {
            self.write(session, inserter)?;
        }
        Ok(())
    }

    fn end_batch(&mut self, session: &mut Session, inserter: &mut Inserter<'_>) -> Result<(), SqlError> {
        let mut full = mem::replace(&mut self.columns, builders(&self.table));
        let columns = full.iter_mut().map(ColumnBuilder::finish).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error| ErrorCode::UNKNOWN_ERROR.because(error.to_string()))?;
        let bytes = COPIES * batch.get_array_memory_size();
        if !self.memory.reserve(bytes) {
            // A smaller block, so that nobody waits for memory who has some.
            self.write(session, inserter)?;
            session.shared.engine.reserve_with_patience(bytes, &*session.stop)?;
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
            self.end_batch(session, inserter)?;
        }
        self.write(session, inserter)
    }

    /// Stores the rows that were gathered: as a block, or one by one.
    fn write(&mut self, session: &mut Session, inserter: &mut Inserter<'_>) -> Result<(), SqlError> {
        let batches = mem::take(&mut self.batches);
        if mem::take(&mut self.batched_rows) > 0 {
            self.store(session, inserter, &batches)?;
        }
        drop(batches);
        self.memory.release(mem::take(&mut self.reserved));
        Ok(())
    }

    fn store(
        &mut self,
        session: &mut Session,
        inserter: &mut Inserter<'_>,
        batches: &[RecordBatch],
    ) -> Result<(), SqlError> {
        if self.untried > 0 {
            self.untried -= 1;
            return self.write_rows(session, inserter, batches);
        }
        if !self.sifts {
            match self.write_block(session, inserter, batches)? {
                Written::Whole => return Ok(()),
                Written::Duplicate if may_sift(&self.table, inserter) => {}
                Written::Duplicate | Written::Orphan => return self.give_up(session, inserter, batches),
            }
        }
        let sifted = Sifted::of(session, &self.table, batches)?;
        let was_tried = !mem::replace(&mut self.sifts, !sifted.is_empty());
        if !sifted.leaves_most() {
            return self.write_rows(session, inserter, batches);
        }
        // What has failed as it is would fail again.
        if was_tried && sifted.is_empty() {
            return self.give_up(session, inserter, batches);
        }
        let (others, these) = sifted.split(batches)?;
        match self.write_block(session, inserter, &others)? {
            Written::Whole => self.write_rows(session, inserter, &these),
            Written::Duplicate | Written::Orphan => self.give_up(session, inserter, batches),
        }
    }

    /// All rows go one by one, and those of some blocks after this one.
    fn give_up(
        &mut self,
        session: &mut Session,
        inserter: &mut Inserter<'_>,
        batches: &[RecordBatch],
    ) -> Result<(), SqlError> {
        self.untried = self.next_untried;
        self.next_untried = (2 * self.next_untried + 1).min(MOST_UNTRIED);
        self.write_rows(session, inserter, batches)
    }

    /// Writes rows as a block, which is taken back if one of them cannot be stored as it is.
    fn write_block(
        &mut self,
        session: &mut Session,
        inserter: &mut Inserter<'_>,
        batches: &[RecordBatch],
    ) -> Result<Written, SqlError> {
        let txn = session.txn();
        let mark = txn.mark();
        let mut block = txn.bulk_insert(&self.table)?;
        let pushed = batches.iter().try_for_each(|batch| block.push(txn, batch));
        let written = match pushed.and_then(|()| block.finish(txn)) {
            Ok(rows) => {
                inserter.counts.rows += rows;
                inserter.counts.affected += rows;
                self.next_untried = 0;
                return Ok(Written::Whole);
            }
            Err(EngineError::DuplicateKey { .. }) => Written::Duplicate,
            Err(EngineError::ForeignKey(_)) => Written::Orphan,
            Err(error) => return Err(error.into()),
        };
        txn.rollback_statement(mark);
        Ok(written)
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
