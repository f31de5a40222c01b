//! A sink that keeps a query's rows, for statements that go on with them: INSERT … SELECT, SET x = (SELECT …).

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use avocet_types::arrow_map::datum_at;
use avocet_types::temporal::TimeZone;
use avocet_types::{Datum, SqlType, Value};

use super::api::{OkReply, OutputColumn, ResultSink, SinkError, Status};
use super::bulk::string_bytes;
use crate::error::SqlError;

#[derive(Default)]
pub(super) struct Collected {
    types: Vec<SqlType>,
    parts: Vec<Part>,
    rows: usize,
    /// Of strings.
    bytes: usize,
}

enum Part {
    Row(Vec<Value>),
    Batch(RecordBatch),
}

impl Collected {
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Bytes of strings, which are nearly all of what is large.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many columns the rows have.
    pub fn width(&self) -> usize {
        self.types.len()
    }

    /// Adds rows of these types.
    pub fn add(&mut self, batch: &RecordBatch, types: &[SqlType]) {
        self.types = types.to_vec();
        self.push(batch);
    }

    fn push(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows();
        self.bytes += batch.columns().iter().map(array_bytes).sum::<usize>();
        self.parts.push(Part::Batch(batch.clone()));
    }

    /// Visits each row: values with the types that they have.
    pub fn for_each(
        &self,
        visit: &mut dyn FnMut(Vec<(Value, SqlType)>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        for part in &self.parts {
            match part {
                Part::Row(row) => visit(row.iter().cloned().zip(self.types.iter().copied()).collect())?,
                Part::Batch(batch) => for_each_row(batch, &self.types, visit)?,
            }
        }
        Ok(())
    }
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

impl ResultSink for Collected {
    fn columns(&mut self, columns: &[OutputColumn], _zone: TimeZone) -> Result<(), SinkError> {
        self.types = columns.iter().map(|column| column.ty).collect();
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        self.rows += 1;
        self.bytes += string_bytes(row);
        self.parts.push(Part::Row(row.iter().map(|value| value.clone().into_owned()).collect()));
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), SinkError> {
        self.push(batch);
        Ok(())
    }

    fn end(&mut self, _status: Status) -> Result<(), SinkError> {
        Ok(())
    }

    fn ok(&mut self, _ok: &OkReply<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}
