//! SQL_CALC_FOUND_ROWS: all rows of a query are made, those within its LIMIT are sent, and FOUND_ROWS() tells how many there
//! were. A point plan counts them itself; otherwise the limit is on the way to the client, the same whatever executes the query.

use std::task::{Context, Poll};

use arrow::record_batch::RecordBatch;
use avocet_channel::{OkReply, OutputColumn, ResultSink, SinkError, Status};
use avocet_sql::parse::ast::{Expr, Limit, Query, QueryBody};
use avocet_sql::plan::{self, BoundQuery};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::temporal::TimeZone;
use avocet_types::{Datum, Value};

use super::run::Text;
use super::state::Session;

/// Which of its rows a query sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    skip: u64,
    count: u64,
}

impl Window {
    /// Of the rows in a window, those in another one.
    fn within(self, inner: Self) -> Self {
        let skip = inner.skip.saturating_add(self.skip);
        Self { skip, count: self.count.min(inner.count.saturating_sub(self.skip)) }
    }
}

impl Session {
    /// Which rows a query sends by its limit and those of what it is in parentheses, or by `@@sql_select_limit`.
    pub(super) fn window_of(&self, query: &Query, text: &Text<'_>) -> Result<Window, SqlError> {
        let window = self.window_of_limits(query, text)?;
        let most = if is_limited(query) { u64::MAX } else { self.settings.select_limit };
        Ok(Window { count: window.count.min(most), ..window })
    }

    fn window_of_limits(&self, query: &Query, text: &Text<'_>) -> Result<Window, SqlError> {
        let own = match &query.limit {
            Some(limit) => self.window(limit, text)?,
            None => Window { skip: 0, count: u64::MAX },
        };
        Ok(match &query.body {
            QueryBody::Parenthesized(inner) => own.within(self.window_of_limits(inner, text)?),
            _ => own,
        })
    }

    fn window(&self, limit: &Limit, text: &Text<'_>) -> Result<Window, SqlError> {
        let value = |expr: &Expr| match self.constant(expr, text)? {
            Value::UInt(v) => Ok(v),
            Value::Int(v) if v >= 0 => Ok(v as u64),
            _ => Err(ErrorCode::WRONG_ARGUMENTS.with(&[&"LIMIT"])),
        };
        Ok(Window { skip: limit.offset.as_ref().map_or(Ok(0), value)?, count: value(&limit.count)? })
    }
}

/// The query that gives all rows.
pub(super) fn without_limits(bound: BoundQuery) -> BoundQuery {
    let mut all = BoundQuery { calc_found_rows: false, ..bound };
    let mut part = &mut all.body;
    loop {
        part.limit = None;
        let plan::QueryBody::Nested(inner) = &mut part.body else { return all };
        part = inner;
    }
}

fn is_limited(query: &Query) -> bool {
    let inner = match &query.body {
        QueryBody::Parenthesized(inner) => is_limited(inner),
        _ => false,
    };
    inner || query.limit.is_some()
}

/// A sink that passes on the rows of a window.
pub(super) struct Limited<'s> {
    sink: &'s mut dyn ResultSink,
    window: Window,
}

impl<'s> Limited<'s> {
    pub fn new(sink: &'s mut dyn ResultSink, window: Window) -> Self {
        Self { sink, window }
    }

    /// Which of the next so many rows are in the window: where they begin, and how many.
    fn next(&mut self, rows: u64) -> (u64, u64) {
        let skipped = rows.min(self.window.skip);
        let sent = (rows - skipped).min(self.window.count);
        self.window.skip -= skipped;
        self.window.count -= sent;
        (skipped, sent)
    }
}

impl ResultSink for Limited<'_> {
    fn columns(&mut self, columns: &[OutputColumn], zone: TimeZone) -> Result<(), SinkError> {
        self.sink.columns(columns, zone)
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        match self.next(1) {
            (_, 1) => self.sink.row(row),
            _ => Ok(()),
        }
    }

    fn batch(&mut self, batch: &RecordBatch, from: usize) -> Result<usize, SinkError> {
        let (skipped, wanted) = self.next((batch.num_rows() - from) as u64);
        if wanted == 0 {
            return Ok(batch.num_rows());
        }
        let begin = from + skipped as usize;
        let end = begin + wanted as usize;
        let taken = self.sink.batch(&batch.slice(0, end), begin)?;
        self.window.count += (end - taken) as u64;
        Ok(if taken == end { batch.num_rows() } else { taken })
    }

    fn end(&mut self, status: Status) -> Result<(), SinkError> {
        self.sink.end(status)
    }

    fn ok(&mut self, ok: &OkReply<'_>) -> Result<(), SinkError> {
        self.sink.ok(ok)
    }

    fn wants_flush(&self) -> bool {
        self.sink.wants_flush()
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        self.sink.poll_flush(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_in_a_window_is_one() {
        let window = |skip, count| Window { skip, count };
        assert_eq!(window(1, 5).within(window(2, 3)), window(3, 2));
        assert_eq!(window(4, 5).within(window(2, 3)), window(6, 0));
        assert_eq!(window(0, u64::MAX).within(window(u64::MAX, 7)), window(u64::MAX, 7));
    }
}
