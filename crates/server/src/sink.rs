//! Where a statement's results go: rows are encoded straight into the connection's write buffer, which is bounded and counted.

use std::task::{Context, Poll};
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use avocet_channel::{
    LocalFiles, OkReply, OutputColumn, PlanColumns, ResultSink, ResultsCharset, SinkError, Status,
};
use avocet_types::temporal::TimeZone;
use avocet_types::text::{with_zeros, write_text};
use avocet_types::{Datum, SqlType};
use parking_lot::Mutex;

use crate::account::Account;
use crate::cursor::Cursor;
use crate::local_file::LocalFile;
use crate::protocol::rows::Column;
use crate::protocol::{CapabilityFlags, PacketBuf, StatusFlags, binary, charset, column, reply, text};
use crate::transport::Line;

/// The sink is full when it holds so much. It exceeds that by one row at most.
pub const FLUSH_AT: usize = 64 * 1024;

/// How rows are encoded, and where they go.
pub enum Rows<'a> {
    Text,
    Binary,
    /// Binary, kept for COM_STMT_FETCH.
    Cursor(&'a mut Cursor),
}

/// The sink of one statement.
pub struct WireSink<'a> {
    pub out: &'a mut PacketBuf,
    /// Of `out`.
    pub account: &'a mut Account,
    pub line: &'a Mutex<Line>,
    /// Types of the current result's columns.
    pub types: &'a mut Vec<SqlType>,
    /// Of those of ZEROFILL, how many characters their texts have at least.
    pub zero_filled: Vec<(usize, u8)>,
    /// Of the session, at the current result.
    pub zone: TimeZone,
    pub rows: Rows<'a>,
    pub capabilities: CapabilityFlags,
    pub max_packet: usize,
    pub local_file: &'a mut LocalFile,
    /// The client has sent further commands before this one's reply.
    pub is_pipelined: bool,
    /// The session's state as it was before the statement, and after each of its results.
    pub status: Status,
    /// The client has got some of it.
    pub has_sent: bool,
    /// Of the client's session on another server, whose transaction is the one that the client knows.
    pub outer_status: Option<StatusFlags>,
}

impl WireSink<'_> {
    /// Writes one row, whose cells `value` gives.
    #[inline]
    fn encode<'v>(&mut self, value: impl Fn(usize) -> Datum<'v>) -> Result<(), SinkError> {
        if self.zero_filled.is_empty() || !matches!(self.rows, Rows::Text) {
            return self.encode_in_charset(value);
        }
        let (filled, types) = (std::mem::take(&mut self.zero_filled), self.types.clone());
        let zone = self.zone;
        let encoded = self.encode_in_charset(|at| match filled.iter().find(|(column, _)| *column == at) {
            Some((_, width)) => match value(at) {
                Datum::Null => Datum::Null,
                number => {
                    let mut text = Vec::new();
                    write_text(&number, &types[at], zone, &mut text);
                    Datum::Bytes(with_zeros(text, (*width).into()).into())
                }
            },
            None => value(at),
        });
        self.zero_filled = filled;
        encoded
    }

    #[inline]
    fn encode_in_charset<'v>(&mut self, value: impl Fn(usize) -> Datum<'v>) -> Result<(), SinkError> {
        match self.status.results {
            ResultsCharset::Utf8mb4 => self.encode_plain(value),
            results => self.encode_recoded(value, results),
        }
    }

    /// As `encode_plain`, for a client that reads another character set than UTF-8.
    fn encode_recoded<'v>(
        &mut self,
        value: impl Fn(usize) -> Datum<'v>,
        results: ResultsCharset,
    ) -> Result<(), SinkError> {
        let cells = self.types.iter().enumerate().map(|(i, ty)| (i, ty, value(i)));
        let fits = match self.rows {
            Rows::Text => {
                self.out.begin();
                for (_, ty, value) in cells {
                    match charset::cell(&value, ty, results) {
                        Some(bytes) => self.out.lenenc_bytes(&bytes),
                        None => text::cell(self.out, &value, ty, self.zone),
                    }
                }
                true
            }
            Rows::Binary | Rows::Cursor(_) => {
                let nulls = binary::begin_row(self.out, self.types.len());
                let mut fits = true;
                for (i, ty, value) in cells {
                    match charset::cell(&value, ty, results) {
                        Some(bytes) => self.out.lenenc_bytes(&bytes),
                        None => fits = fits && binary::cell(self.out, nulls, i, &value, ty, self.zone),
                    }
                }
                fits
            }
        };
        self.finish_row(fits)
    }

    #[inline]
    fn encode_plain<'v>(&mut self, value: impl Fn(usize) -> Datum<'v>) -> Result<(), SinkError> {
        let fits = match self.rows {
            Rows::Text => {
                self.out.begin();
                for (i, ty) in self.types.iter().enumerate() {
                    text::cell(self.out, &value(i), ty, self.zone);
                }
                true
            }
            Rows::Binary | Rows::Cursor(_) => {
                let nulls = binary::begin_row(self.out, self.types.len());
                let cells = self.types.iter().enumerate();
                cells.fold(true, |fits, (i, ty)| {
                    fits && binary::cell(self.out, nulls, i, &value(i), ty, self.zone)
                })
            }
        };
        self.finish_row(fits)
    }

    fn finish_row(&mut self, fits: bool) -> Result<(), SinkError> {
        if !fits || self.out.payload_len() > self.max_packet {
            self.out.abandon();
            return Err(if fits { SinkError::RowTooLarge } else { SinkError::Mismatch });
        }
        if !self.account.grow(self.out.capacity()) {
            self.out.abandon_large();
            return Err(SinkError::OutOfMemory);
        }
        if let Rows::Cursor(cursor) = &mut self.rows {
            let pushed = cursor.push(self.out.payload());
            self.out.abandon();
            pushed
        } else {
            self.out.end();
            Ok(())
        }
    }

    /// A status as the client is to see it.
    fn shown(&self, status: Status) -> Status {
        let Some(outer) = self.outer_status else { return status };
        Status {
            autocommit: outer.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT),
            in_transaction: outer.contains(StatusFlags::SERVER_STATUS_IN_TRANS),
            read_only: outer.contains(StatusFlags::SERVER_STATUS_IN_TRANS_READONLY),
            ..status
        }
    }

    fn begin_result(&mut self, columns: &[OutputColumn], zone: TimeZone) {
        self.zone = zone;
        self.types.clear();
        self.types.extend(columns.iter().map(|column| column.ty));
        self.zero_filled.clear();
        let filled = columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.flags.zerofill?)));
        self.zero_filled.extend(filled);
    }

    fn end_columns(&mut self, of_what: StatusFlags) -> Result<(), SinkError> {
        if !matches!(self.rows, Rows::Cursor(_)) {
            let status = reply::status_flags(&self.shown(self.status)) | of_what;
            reply::end_of_columns(self.out, self.capabilities, status);
        }
        Ok(())
    }
}

impl ResultSink for WireSink<'_> {
    fn columns(&mut self, columns: &[OutputColumn], zone: TimeZone) -> Result<(), SinkError> {
        self.begin_result(columns, zone);
        column::definitions(self.out, columns, &self.status);
        self.end_columns(StatusFlags::empty())
    }

    fn takes_out_parameters(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    }

    fn out_parameters(&mut self, columns: &[OutputColumn], zone: TimeZone) -> Result<(), SinkError> {
        self.begin_result(columns, zone);
        column::definitions(self.out, columns, &self.status);
        self.end_columns(StatusFlags::SERVER_PS_OUT_PARAMS | StatusFlags::SERVER_MORE_RESULTS_EXISTS)
    }

    fn plan_columns(&mut self, columns: &PlanColumns, zone: TimeZone) -> Result<(), SinkError> {
        if self.status.results != ResultsCharset::Utf8mb4 {
            return self.columns(&columns.list, zone);
        }
        let collation = self.status.results_collation;
        let (encoded_for, packets) =
            columns.encoded.get_or_init(|| (collation, column::encoded(&columns.list, collation)));
        if *encoded_for != collation {
            return self.columns(&columns.list, zone);
        }
        self.begin_result(&columns.list, zone);
        self.out.put_packets(packets);
        self.end_columns(StatusFlags::empty())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        if row.len() != self.types.len() {
            return Err(SinkError::Mismatch);
        }
        if self.status.results != ResultsCharset::Utf8mb4 || !self.zero_filled.is_empty() {
            return self.encode(|at| row[at].clone());
        }
        match self.rows {
            Rows::Text => {
                self.out.begin();
                for (value, ty) in row.iter().zip(self.types.iter()) {
                    text::cell(self.out, value, ty, self.zone);
                }
                self.finish_row(true)
            }
            Rows::Binary | Rows::Cursor(_) => {
                let nulls = binary::begin_row(self.out, row.len());
                let mut fits = true;
                for (i, (value, ty)) in row.iter().zip(self.types.iter()).enumerate() {
                    fits = fits && binary::cell(self.out, nulls, i, value, ty, self.zone);
                }
                self.finish_row(fits)
            }
        }
    }

    fn batch(&mut self, batch: &RecordBatch, from: usize) -> Result<usize, SinkError> {
        if batch.num_columns() != self.types.len() {
            return Err(SinkError::Mismatch);
        }
        let arrays = batch.columns().iter().zip(self.types.iter());
        let columns: Option<Vec<_>> = arrays.map(|(array, ty)| Column::new(array.as_ref(), ty)).collect();
        let columns = columns.ok_or(SinkError::Mismatch)?;
        for row in from..batch.num_rows() {
            self.encode(|i| columns[i].datum(row))?;
            if self.wants_flush() {
                return Ok(row + 1);
            }
        }
        Ok(batch.num_rows())
    }

    fn end(&mut self, status: Status) -> Result<(), SinkError> {
        if let Rows::Cursor(cursor) = &mut self.rows {
            cursor.finish()?;
        }
        self.status = Status { more_results: false, ..status };
        let mut flags = reply::status_flags(&self.shown(status));
        flags.set(StatusFlags::SERVER_STATUS_CURSOR_EXISTS, matches!(self.rows, Rows::Cursor(_)));
        reply::end_of_rows(self.out, self.capabilities, status.warnings, flags);
        Ok(())
    }

    fn ok(&mut self, ok: &OkReply<'_>) -> Result<(), SinkError> {
        self.status = Status { more_results: false, ..ok.status };
        reply::ok(self.out, self.capabilities, &OkReply { status: self.shown(ok.status), ..*ok });
        Ok(())
    }

    fn local_files(&mut self) -> Option<&mut dyn LocalFiles> {
        let gives_files = self.capabilities.contains(CapabilityFlags::CLIENT_LOCAL_FILES);
        gives_files.then_some(self as &mut dyn LocalFiles)
    }

    fn wants_flush(&self) -> bool {
        self.out.len() >= FLUSH_AT
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        let before = self.out.len();
        let flushed = self.line.lock().poll_drain(cx, self.out);
        self.has_sent |= self.out.len() < before;
        self.account.shrink(self.out.capacity());
        flushed.map_err(|_| SinkError::Disconnected)
    }
}

/// Takes everything, and keeps nothing.
pub struct Discard;

impl ResultSink for Discard {
    fn columns(&mut self, _columns: &[OutputColumn], _zone: TimeZone) -> Result<(), SinkError> {
        Ok(())
    }

    fn row(&mut self, _row: &[Datum<'_>]) -> Result<(), SinkError> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, _from: usize) -> Result<usize, SinkError> {
        Ok(batch.num_rows())
    }

    fn end(&mut self, _status: Status) -> Result<(), SinkError> {
        Ok(())
    }

    fn ok(&mut self, _ok: &OkReply<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}

impl LocalFiles for WireSink<'_> {
    fn request(&mut self, name: &str, patience: Duration) -> Result<(), SinkError> {
        // What follows in the stream is a command, not the file.
        if self.is_pipelined {
            return Err(SinkError::OutOfOrder);
        }
        let name = charset::encode_for(name, self.status.client);
        self.local_file.request(self.out, &name, patience);
        Ok(())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, to: &mut Vec<u8>) -> Poll<Result<bool, SinkError>> {
        self.local_file.poll_read(cx, self.line, self.out, to)
    }
}
