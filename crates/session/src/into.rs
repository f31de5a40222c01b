//! SELECT … INTO: rows that go to variables or to a file of the server instead of to the client.

use std::fs::{self, File};
use std::io::Write;
use std::mem;
use std::path::PathBuf;

use arrow::record_batch::RecordBatch;
use avocet_channel::blocking::blocking;
use avocet_channel::{OkReply, OutputColumn, ResultSink, SinkError, Status};
use avocet_sql::parse::ast::Query;
use avocet_sql::parse::statement::{DelimitedFormat, SelectInto};
use avocet_types::arrow_map::datum_at;
use avocet_types::collation::Charset;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::temporal::TimeZone;
use avocet_types::text::write_text;
use avocet_types::{Datum, SqlType, Value};

use super::load::{default_escape, display_size};
use super::run::{Done, Outcome, Text};
use super::server_files::cannot_write;
use super::state::{Level, Session};

/// So much is gathered before it is written.
const WRITE_AT: usize = 256 * 1024;

/// What went to variables or to a file.
struct Selected {
    rows: u64,
    /// What FOUND_ROWS() tells: all rows, whatever LIMIT the query has, if it counts them.
    found: u64,
}

fn rows_of(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Rows(rows) => *rows,
        Outcome::Done(_) => 0,
    }
}

impl Session {
    pub(super) async fn select_into(
        &mut self,
        query: &Query,
        into: &SelectInto,
        text: &Text<'_>,
    ) -> Result<Outcome, SqlError> {
        let bound = self.bind_types(query, text.source, &text.types)?;
        let types: Vec<SqlType> = bound.output().map(|column| column.ty).collect();
        drop(bound);
        let Selected { rows, found } = match into {
            SelectInto::Variables(names) => {
                self.select_into_variables(query, names, types.len(), text).await?
            }
            SelectInto::Dumpfile(name) => {
                let (file, path) = self.create_server_file(name)?;
                let sink = FileSink::new(file, path, name, Lines::Dump);
                self.select_into_file(query, sink, text).await?
            }
            SelectInto::Outfile { file: name, charset, format } => {
                let lines = self.line_format(format, charset.as_deref(), &types)?;
                let (file, path) = self.create_server_file(name)?;
                self.select_into_file(query, FileSink::new(file, path, name, lines), text).await?
            }
        };
        self.found_rows = found;
        Ok(Outcome::Done(Done { affected_rows: rows, ..Done::default() }))
    }

    async fn select_into_variables(
        &mut self,
        query: &Query,
        names: &[String],
        width: usize,
        text: &Text<'_>,
    ) -> Result<Selected, SqlError> {
        if names.len() != width {
            return Err(ErrorCode::WRONG_NUMBER_OF_COLUMNS_IN_SELECT.with(&[]));
        }
        let mut sink = OneRow::default();
        let result = self.query(query, text, &mut sink).await;
        let is_empty = sink.row.is_none();
        // Even if there are more rows than the one, the first was taken.
        for (name, value) in names.iter().zip(sink.row.into_iter().flatten().zip(sink.types)) {
            self.user_variables.insert(name.clone(), value, self.settings.time_zone)?;
        }
        if sink.too_many {
            return Err(ErrorCode::TOO_MANY_ROWS.with(&[]));
        }
        let found = rows_of(&result?);
        if is_empty {
            let none = ErrorCode::SP_FETCH_NO_DATA.with(&[]);
            self.warn(Level::Warning, none.errno, none.message);
        }
        Ok(Selected { rows: u64::from(!is_empty), found })
    }

    async fn select_into_file(
        &mut self,
        query: &Query,
        mut sink: FileSink,
        text: &Text<'_>,
    ) -> Result<Selected, SqlError> {
        let result = self.query(query, text, &mut sink).await;
        if let Some(error) = sink.failed.take() {
            return Err(error);
        }
        let found = rows_of(&result?);
        Ok(Selected { rows: sink.finish()?, found })
    }

    fn line_format(
        &self,
        format: &DelimitedFormat,
        charset: Option<&str>,
        types: &[SqlType],
    ) -> Result<Lines, SqlError> {
        let unknown = |name: &str| ErrorCode::UNKNOWN_CHARACTER_SET.with(&[&name]);
        let charset = charset.map(|name| Charset::by_name(name).ok_or_else(|| unknown(name))).transpose()?;
        let is_fixed = format.field_terminator.is_empty() && format.enclosed.is_empty();
        Ok(Lines::Delimited(Box::new(Delimited {
            // As in MySQL, nothing has a size where a BLOB is among the columns.
            sizes: if is_fixed { types.iter().map(display_size).collect() } else { None },
            escape: default_escape(format, self.settings.sql_mode),
            format: DelimitedFormat {
                // As in MySQL, something is between rows.
                line_terminator: match format.line_terminator.is_empty() {
                    true => format.field_terminator.clone(),
                    false => format.line_terminator.clone(),
                },
                ..format.clone()
            },
            charset: charset.filter(|charset| *charset != Charset::Binary),
        })))
    }
}

/// Keeps the first row, and says whether there were more.
#[derive(Default)]
struct OneRow {
    types: Vec<SqlType>,
    row: Option<Vec<Value>>,
    too_many: bool,
}

impl ResultSink for OneRow {
    fn columns(&mut self, columns: &[OutputColumn], _zone: TimeZone) -> Result<(), SinkError> {
        self.types = columns.iter().map(|column| column.ty).collect();
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        if self.row.is_some() {
            self.too_many = true;
            return Err(SinkError::Mismatch);
        }
        self.row = Some(row.iter().map(|value| value.clone().into_owned()).collect());
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, from: usize) -> Result<usize, SinkError> {
        each_row(batch, from, &self.types.clone(), &mut |row| self.row(row))?;
        Ok(batch.num_rows())
    }

    fn end(&mut self, _status: Status) -> Result<(), SinkError> {
        Ok(())
    }

    fn ok(&mut self, _ok: &OkReply<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}

fn each_row(
    batch: &RecordBatch,
    from: usize,
    types: &[SqlType],
    visit: &mut dyn FnMut(&[Datum<'_>]) -> Result<(), SinkError>,
) -> Result<(), SinkError> {
    let mut row = Vec::with_capacity(types.len());
    for at in from..batch.num_rows() {
        row.clear();
        row.extend(batch.columns().iter().zip(types).map(|(array, ty)| datum_at(array.as_ref(), at, ty)));
        visit(&row)?;
    }
    Ok(())
}

/// Writes rows to a file, which goes again unless all came.
struct FileSink {
    file: File,
    path: PathBuf,
    /// As the statement names it.
    name: String,
    lines: Lines,
    types: Vec<SqlType>,
    /// The digits that numbers of ZEROFILL columns have at least.
    digits: Vec<Option<u8>>,
    zone: TimeZone,
    gathered: Vec<u8>,
    rows: u64,
    failed: Option<SqlError>,
    is_whole: bool,
}

/// How rows are written.
enum Lines {
    /// One row, as it is.
    Dump,
    Delimited(Box<Delimited>),
}

struct Delimited {
    format: DelimitedFormat,
    escape: Option<u8>,
    /// `None` for the bytes that texts have in the character sets of their columns.
    charset: Option<Charset>,
    /// The sizes of fields that nothing separates.
    sizes: Option<Vec<usize>>,
}

impl FileSink {
    fn new(file: File, path: PathBuf, name: &str, lines: Lines) -> Self {
        Self {
            file,
            path,
            name: name.to_owned(),
            lines,
            types: Vec::new(),
            digits: Vec::new(),
            zone: TimeZone::UTC,
            gathered: Vec::new(),
            rows: 0,
            failed: None,
            is_whole: false,
        }
    }

    fn fail(&mut self, error: SqlError) -> SinkError {
        self.failed = Some(error);
        SinkError::Disconnected
    }

    fn write(&mut self) -> Result<(), SinkError> {
        let written = blocking(|| self.file.write_all(&self.gathered));
        self.gathered.clear();
        written.map_err(|error| {
            let error = cannot_write(&self.name, &error);
            self.fail(error)
        })
    }

    /// Returns how many rows the file has.
    fn finish(mut self) -> Result<u64, SqlError> {
        if let Err(error) = self.write() {
            return Err(self.failed.take().unwrap_or_else(|| error.into()));
        }
        self.is_whole = true;
        Ok(self.rows)
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        if !self.is_whole {
            // Nothing more can be done about a file that does not go.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl ResultSink for FileSink {
    fn columns(&mut self, columns: &[OutputColumn], zone: TimeZone) -> Result<(), SinkError> {
        self.types = columns.iter().map(|column| column.ty).collect();
        self.digits = columns.iter().map(|column| column.flags.zerofill).collect();
        self.zone = zone;
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        self.rows += 1;
        let mut gathered = mem::take(&mut self.gathered);
        let is_one_too_many = match &self.lines {
            Lines::Dump => {
                let mut text = Vec::new();
                for ((value, ty), digits) in row.iter().zip(&self.types).zip(&self.digits) {
                    text.clear();
                    put_text(value, ty, *digits, self.zone, &mut text);
                    encode(&mut text, ty, own_charset(ty));
                    gathered.extend_from_slice(&text);
                }
                self.rows > 1
            }
            Lines::Delimited(lines) => {
                lines.write(row, (&self.types, &self.digits), self.zone, &mut gathered);
                false
            }
        };
        self.gathered = gathered;
        if is_one_too_many {
            return Err(self.fail(ErrorCode::TOO_MANY_ROWS.with(&[])));
        }
        if self.gathered.len() > WRITE_AT { self.write() } else { Ok(()) }
    }

    fn batch(&mut self, batch: &RecordBatch, from: usize) -> Result<usize, SinkError> {
        each_row(batch, from, &self.types.clone(), &mut |row| self.row(row))?;
        Ok(batch.num_rows())
    }

    fn end(&mut self, _status: Status) -> Result<(), SinkError> {
        Ok(())
    }

    fn ok(&mut self, _ok: &OkReply<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}

/// MySQL counts what is not a number, dates and the bytes of a BIT too, as a string.
fn is_string(ty: &SqlType) -> bool {
    let is_float = matches!(ty, SqlType::Float(_) | SqlType::Double(_));
    !(ty.is_integer() || is_float || matches!(ty, SqlType::Bool | SqlType::Decimal { .. } | SqlType::Year))
}

/// A value's text; that of a number with so many digits at least.
fn put_text(value: &Datum<'_>, ty: &SqlType, digits: Option<u8>, zone: TimeZone, to: &mut Vec<u8>) {
    let from = to.len();
    write_text(value, ty, zone, to);
    let missing = usize::from(digits.unwrap_or(0)).saturating_sub(to.len() - from);
    if !value.is_null() && missing > 0 {
        to.splice(from..from, std::iter::repeat_n(b'0', missing));
    }
}

/// Whether a value's bytes are no text, and stay as they are.
fn is_bytes(ty: &SqlType) -> bool {
    ty.is_bytes() || matches!(ty, SqlType::Bit { .. })
}

/// The character set of a column, or of another value's text.
fn own_charset(ty: &SqlType) -> Charset {
    ty.declared_collation().map_or(Charset::Utf8mb4, |collation| collation.info().charset)
}

/// Makes the bytes of a character set of a text, which is in UTF-8.
fn encode(text: &mut Vec<u8>, ty: &SqlType, charset: Charset) {
    if !matches!(charset, Charset::Binary | Charset::Utf8mb4)
        && !is_bytes(ty)
        && let Ok(value) = std::str::from_utf8(text)
    {
        *text = charset.encode(value);
    }
}

impl Delimited {
    fn write(
        &self,
        row: &[Datum<'_>],
        (types, digits): (&[SqlType], &[Option<u8>]),
        zone: TimeZone,
        to: &mut Vec<u8>,
    ) {
        let format = &self.format;
        to.extend_from_slice(&format.line_start);
        let mut text = Vec::new();
        for (at, (value, ty)) in row.iter().zip(types).enumerate() {
            if at > 0 {
                to.extend_from_slice(&format.field_terminator);
            }
            let encloses = !format.optionally_enclosed || is_string(ty);
            if !value.is_null() {
                text.clear();
                put_text(value, ty, digits[at], zone, &mut text);
                let charset = self.charset.unwrap_or_else(|| own_charset(ty));
                encode(&mut text, ty, charset);
                if encloses {
                    to.extend_from_slice(&format.enclosed);
                }
                self.field(&text, is_string(ty), charset, to);
                if encloses {
                    to.extend_from_slice(&format.enclosed);
                }
            } else if self.sizes.is_none() {
                match self.escape {
                    Some(escape) => to.extend([escape, b'N']),
                    None => to.extend_from_slice(b"NULL"),
                }
            }
            if let Some(sizes) = &self.sizes {
                // Escapes are not counted.
                let taken = if value.is_null() { 0 } else { text.len() };
                to.extend(std::iter::repeat_n(b' ', sizes[at].saturating_sub(taken)));
            }
        }
        to.extend_from_slice(&format.line_terminator);
    }

    /// How many bytes the character has that a text begins with. Those of UTF-8 have no byte that could be another's.
    fn char_len(charset: Charset, text: &[u8]) -> usize {
        if charset.max_len() == 1 || charset.is_utf8() {
            return 1;
        }
        let len = charset.len_by_first_byte(text[0]);
        let is_whole = text.get(..len).is_some_and(|bytes| charset.decode(bytes).is_ok());
        if is_whole { len.max(1) } else { 1 }
    }

    fn field(&self, text: &[u8], is_string: bool, charset: Charset, to: &mut Vec<u8>) {
        let enclosed = self.format.enclosed.first().copied();
        let begins_field_end = self.format.field_terminator.first().copied();
        let begins_line_end = self.format.line_terminator.first().copied();
        // An enclosure that numbers may have in them.
        let is_unsafe = enclosed.is_some_and(|byte| b".0123456789e+-".contains(&byte));
        // Characters of several bytes stay as they are, whatever bytes they have.
        let is_wide = charset.min_len() > 1;
        let Some(escape) = self.escape.filter(|_| (is_string || is_unsafe) && !is_wide) else {
            to.extend_from_slice(text);
            return;
        };
        // What an escape would make something else of.
        let is_ambiguous = |byte: Option<u8>| byte.is_some_and(|byte| b"ntrb0ZN".contains(&byte));
        let separator = enclosed.or(begins_field_end);
        let mut rest = text;
        while let Some((&byte, behind)) = rest.split_first() {
            let len = Self::char_len(charset, rest);
            if len > 1 {
                to.extend_from_slice(&rest[..len]);
                rest = &rest[len..];
                continue;
            }
            rest = behind;
            let needs_escape =
                byte == escape || Some(byte) == separator || Some(byte) == begins_line_end || byte == 0;
            let may_escape =
                enclosed.is_some() || !is_ambiguous(begins_field_end) || Some(byte) != begins_field_end;
            if needs_escape && may_escape {
                let doubles = Some(byte) == enclosed && is_ambiguous(enclosed);
                to.push(if doubles { byte } else { escape });
                to.push(if byte == 0 { b'0' } else { byte });
            } else {
                to.push(byte);
            }
        }
    }
}
