//! A sink that keeps a query's rows, for statements that go on with them: INSERT … SELECT, SET x = (SELECT …).
//!
//! What it keeps is reserved of the memory budget as it grows. Where it gets much, or there is no room for it, the rows go to
//! the spill folder; without one, a statement whose rows do not fit fails.

use std::borrow::Borrow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use avocet_base::codec::Reader;
use avocet_channel::{OkReply, OutputColumn, ResultSink, SinkError, Status};
use avocet_engine::MemoryBudget;
use avocet_types::arrow_map::datum_at;
use avocet_types::error::SqlError;
use avocet_types::temporal::TimeZone;
use avocet_types::{Datum, SqlType, Value};

use super::bulk::string_bytes;
use super::spool::{Spool, SpoolReader};
use super::state::Session;

/// So many bytes of rows need not be reserved.
const FREE_BYTES: usize = 64 << 10;
/// What a row takes beside its values, about.
const ROW_BYTES: usize = 48;
/// What a value takes in a batch, beside the bytes of strings, about.
pub(super) const CELL_BYTES: usize = 16;
/// The share of a statement's memory from which on rows are spilled.
const SPILL_SHARE: usize = 32;

pub(super) struct Collected {
    types: Vec<SqlType>,
    parts: Vec<Part>,
    rows: usize,
    /// Of strings.
    bytes: usize,
    /// All that the rows take, about.
    held: usize,
    reserved: usize,
    memory: Arc<MemoryBudget>,
    memory_limit: usize,
    folder: Option<PathBuf>,
    /// Where all rows are once some were spilled; none are in `parts` then.
    spool: Option<Spool>,
    encoded: Vec<u8>,
}

enum Part {
    Row(Vec<Value>),
    Batch(RecordBatch),
}

impl Drop for Collected {
    fn drop(&mut self) {
        self.memory.release(self.reserved);
    }
}

impl Collected {
    /// For rows that may take `limit` bytes; half of the budget if that is not given, as for other queries.
    pub fn new(memory: &Arc<MemoryBudget>, limit: Option<usize>, folder: Option<PathBuf>) -> Self {
        Self {
            types: Vec::new(),
            parts: Vec::new(),
            rows: 0,
            bytes: 0,
            held: 0,
            reserved: 0,
            memory: memory.clone(),
            memory_limit: limit.unwrap_or(memory.limit() / 2),
            folder,
            spool: None,
            encoded: Vec::new(),
        }
    }

    /// What was gathered; nothing is left here.
    pub fn take(&mut self) -> Self {
        let mut empty = Self::new(&self.memory, Some(self.memory_limit), self.folder.clone());
        empty.types.clone_from(&self.types);
        std::mem::replace(self, empty)
    }

    /// Sets aside what more rows take, or spills all of them.
    fn hold(&mut self, bytes: usize) -> Result<(), SinkError> {
        self.held += bytes;
        let spills = self.folder.is_some();
        let most = if spills { self.memory_limit / SPILL_SHARE } else { self.memory_limit };
        if self.held <= most.max(FREE_BYTES) && self.reserve() {
            return Ok(());
        }
        if spills { self.spill() } else { Err(SinkError::OutOfMemory) }
    }

    /// Reserves what rows take, and half as much again if there is as much.
    fn reserve(&mut self) -> bool {
        let wanted = self.held.saturating_sub(FREE_BYTES);
        if wanted <= self.reserved {
            return true;
        }
        let mut steps = [wanted + wanted / 2, wanted].into_iter();
        let got = steps.find(|wanted| self.memory.reserve(wanted - self.reserved));
        self.reserved = got.unwrap_or(self.reserved);
        got.is_some()
    }

    /// From now on all rows go to a spool.
    fn spill(&mut self) -> Result<(), SinkError> {
        let mut spool = Spool::new(self.folder.clone());
        for part in std::mem::take(&mut self.parts) {
            match part {
                Part::Row(row) => put_row(&mut spool, &mut self.encoded, row.iter())?,
                Part::Batch(batch) => self.put_batch(&mut spool, &batch)?,
            }
        }
        self.spool = Some(spool);
        self.memory.release(std::mem::take(&mut self.reserved));
        self.held = 0;
        Ok(())
    }

    fn put_batch(&mut self, spool: &mut Spool, batch: &RecordBatch) -> Result<(), SinkError> {
        for row in 0..batch.num_rows() {
            let columns = batch.columns().iter().zip(&self.types);
            let values = columns.map(|(array, ty)| datum_at(array.as_ref(), row, ty));
            put_row(spool, &mut self.encoded, values)?;
        }
        Ok(())
    }

    /// Visits the rows of a spool.
    fn for_each_spilled(
        &self,
        spool: &Spool,
        visit: &mut dyn FnMut(Vec<(Value, SqlType)>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let mut reader = SpoolReader::default();
        while let Some(row) = reader.next(spool)? {
            let mut values = Vec::with_capacity(self.types.len());
            let mut row = Reader::new(row);
            for ty in &self.types {
                let value = Value::decode(&mut row)
                    .map_err(|_| SinkError::CannotSpill(io::ErrorKind::InvalidData))?;
                values.push((value, *ty));
            }
            visit(values)?;
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    /// Bytes of strings, which are nearly all of what is large.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds rows of these types.
    pub fn add(&mut self, batch: &RecordBatch, types: &[SqlType]) -> Result<(), SqlError> {
        self.types = types.to_vec();
        Ok(self.push(batch)?)
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<(), SinkError> {
        let strings = batch.columns().iter().map(array_bytes).sum::<usize>();
        self.rows += batch.num_rows();
        self.bytes += strings;
        if let Some(mut spool) = self.spool.take() {
            let put = self.put_batch(&mut spool, batch);
            self.spool = Some(spool);
            return put;
        }
        self.parts.push(Part::Batch(batch.clone()));
        self.hold(strings + batch.num_rows() * batch.num_columns() * CELL_BYTES)
    }

    /// Visits each row: values with the types that they have.
    pub fn for_each(
        &self,
        visit: &mut dyn FnMut(Vec<(Value, SqlType)>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        if let Some(spool) = &self.spool {
            return self.for_each_spilled(spool, visit);
        }
        for part in &self.parts {
            match part {
                Part::Row(row) => visit(row.iter().cloned().zip(self.types.iter().copied()).collect())?,
                Part::Batch(batch) => for_each_row(batch, &self.types, visit)?,
            }
        }
        Ok(())
    }
}

/// Adds an encoded row to a spool.
fn put_row<'v>(
    spool: &mut Spool,
    encoded: &mut Vec<u8>,
    values: impl Iterator<Item = impl Borrow<Datum<'v>>>,
) -> Result<(), SinkError> {
    encoded.clear();
    values.for_each(|value| value.borrow().encode(encoded));
    spool.push(encoded)
}

/// Bytes of an array's strings, wherever its buffers are from.
fn array_bytes(array: &arrow::array::ArrayRef) -> usize {
    match array.data_type() {
        DataType::Utf8View => array.as_string_view().total_bytes_len(),
        DataType::BinaryView => array.as_binary_view().total_bytes_len(),
        _ => 0,
    }
}

/// Visits each row of a batch: values with these types.
pub(super) fn for_each_row(
    batch: &RecordBatch,
    types: &[SqlType],
    visit: &mut dyn FnMut(Vec<(Value, SqlType)>) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    for row in 0..batch.num_rows() {
        let value = |(array, ty): (&arrow::array::ArrayRef, &SqlType)| {
            (datum_at(array.as_ref(), row, ty).into_owned(), *ty)
        };
        visit(batch.columns().iter().zip(types).map(value).collect())?;
    }
    Ok(())
}

impl Session {
    /// To gather rows of the running statement.
    pub(super) fn collected(&self) -> Collected {
        let folder = self.shared.spill.get().cloned();
        Collected::new(self.shared.engine.memory(), self.settings.query_memory_limit, folder)
    }
}

impl ResultSink for Collected {
    fn columns(&mut self, columns: &[OutputColumn], _zone: TimeZone) -> Result<(), SinkError> {
        self.types = columns.iter().map(|column| column.ty).collect();
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        let strings = string_bytes(row);
        self.rows += 1;
        self.bytes += strings;
        if let Some(spool) = &mut self.spool {
            return put_row(spool, &mut self.encoded, row.iter());
        }
        self.parts.push(Part::Row(row.iter().map(|value| value.clone().into_owned()).collect()));
        self.hold(ROW_BYTES + size_of_val(row) + strings)
    }

    fn batch(&mut self, batch: &RecordBatch, from: usize) -> Result<usize, SinkError> {
        self.push(&batch.slice(from, batch.num_rows() - from))?;
        Ok(batch.num_rows())
    }

    fn end(&mut self, _status: Status) -> Result<(), SinkError> {
        Ok(())
    }

    fn ok(&mut self, _ok: &OkReply<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}
