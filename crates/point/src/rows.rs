//! Rows that are gathered before a statement goes on with them.

use arrow::record_batch::RecordBatch;
use avocet_channel::{OkReply, OutputColumn, ResultSink, SinkError, Status};
use avocet_types::temporal::TimeZone;
use avocet_types::{Datum, Value};

use super::Bounds;
use super::bounds::bytes_of;

/// The values of some rows, one after the other.
#[derive(Default)]
pub struct Rows {
    values: Vec<Value>,
    width: usize,
    count: usize,
    /// What the values take, in bytes.
    held: usize,
}

impl Rows {
    /// Nothing is held any more; the memory stays. The rows to come have `width` columns.
    pub fn begin(&mut self, width: usize, bounds: &Bounds<'_>) {
        bounds.let_go(self.held);
        self.forget();
        self.width = width;
    }

    pub fn forget(&mut self) {
        self.values.clear();
        (self.count, self.held) = (0, 0);
    }

    pub fn push(&mut self, row: impl Iterator<Item = Value>, bounds: &Bounds<'_>) {
        let begin = self.values.len();
        self.values.extend(row);
        let bytes = self.values[begin..].iter().map(bytes_of).sum();
        self.held += bytes;
        bounds.hold(bytes);
        self.count += 1;
    }

    /// Counts what is kept beside the rows, in bytes.
    pub fn hold(&mut self, bytes: usize, bounds: &Bounds<'_>) {
        self.held += bytes;
        bounds.hold(bytes);
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// What the rows' values take.
    pub fn bytes(&self) -> usize {
        self.held
    }

    pub fn iter(&self) -> impl Iterator<Item = &[Value]> {
        (0..self.count).map(|at| &self.values[at * self.width..(at + 1) * self.width])
    }

    /// What takes a query's rows.
    pub fn sink<'s>(&'s mut self, bounds: &'s Bounds<'s>) -> impl ResultSink {
        EachRow(|row: &[Datum<'_>]| self.push(row.iter().map(|value| value.clone().into_owned()), bounds))
    }
}

/// A sink that hands on each row; there is nothing else that a plan tells a sink of a statement's own.
pub struct EachRow<F>(pub F);

impl<F: FnMut(&[Datum<'_>]) + Send> ResultSink for EachRow<F> {
    fn columns(&mut self, _: &[OutputColumn], _: TimeZone) -> Result<(), SinkError> {
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        self.0(row);
        Ok(())
    }

    fn batch(&mut self, _: &RecordBatch, _: usize) -> Result<usize, SinkError> {
        unreachable!("plans give rows one by one")
    }

    fn end(&mut self, _: Status) -> Result<(), SinkError> {
        Ok(())
    }

    fn ok(&mut self, _: &OkReply<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}
