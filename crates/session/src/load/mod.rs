//! LOAD DATA.
//!
//! ```text
//!  file (of the server, or sent by the client) ─source.rs─▶ bytes ─reader.rs─▶ fields ─rows.rs─▶ rows ─▶ table, if many by blocks.rs
//! ```
//!
//! Files are read bit by bit and are never held whole: what is held is a part of the file and the rows of one block, and
//! both are counted. Like every statement, it is taken back whole if it fails, is killed or loses its client.

mod blocks;
mod reader;
mod rows;
mod sift;
mod source;

use std::sync::Arc;

use avocet_channel::ResultSink;
use avocet_channel::blocking::blocking_if;
use avocet_engine::TableHandle;
use avocet_sql::parse::statement::{DelimitedFormat, LoadData, LoadTarget, OnDuplicateKey};
use avocet_types::SqlType;
use avocet_types::collation::Charset;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::SqlMode;
pub(crate) use blocks::Blocks;
use reader::{Dialect, Reader, Row, Step};
use rows::Loading;
use source::{Buffer, Source};

use super::run::{Done, Outcome, Text};
use super::state::{Level, Session};
use super::through_views::checks_of;

/// More bytes than this are seen to with the thread's other connections handed on.
const BYTES_IN_PLACE: usize = 16 * 1024;

/// What came of the bytes on hand.
enum Progress {
    /// More bytes are needed.
    Wanting,
    Done,
}

impl Session {
    pub(super) async fn load_data(
        &mut self,
        load: &LoadData,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        let mut source = self.source_of(load, sink)?;
        self.set_storing(load.on_duplicate != OnDuplicateKey::Ignore);
        let mark = self.begin_statement()?;
        let result = Box::pin(self.load_in_transaction(load, text, &mut source)).await;
        self.end_statement(mark, result).await.map(Outcome::Done)
    }

    async fn load_in_transaction(
        &mut self,
        load: &LoadData,
        text: &Text<'_>,
        source: &mut Source<'_>,
    ) -> Result<Done, SqlError> {
        let target = self.load_through_view(load)?;
        let own = target.as_ref().map(|target| target.load(load)).transpose()?;
        let (load, checks) = match (&target, &own) {
            (Some(target), Some(own)) => {
                if !self.hold_views(&target.views)? {
                    return Err(ErrorCode::TABLE_DEF_CHANGED.with(&[]));
                }
                (own, checks_of(target)?)
            }
            _ => (load, std::sync::Arc::default()),
        };
        let table = self.insert_target(&load.table)?;
        let mut loading = Loading::new(self, load, table, text)?;
        loading.check(checks);
        let dialect = self.dialect(load, &loading)?;
        let mut reader = Reader::new(dialect);
        source.open(self.settings.timeouts.read)?;
        let mut buffer =
            Buffer::new(&self.shared.engine, self.stop.clone(), self.settings.max_allowed_packet);
        let mut skip = load.skip_lines;
        let mut row = Row::default();
        loop {
            buffer.fill(source, &self.info.interrupt).await?;
            let progress = if loading.has_subqueries() {
                self.load_rows_by_query(&mut loading, &mut reader, &mut buffer, &mut skip, &mut row, text)
                    .await?
            } else {
                let is_much = buffer.unread().len() > BYTES_IN_PLACE;
                blocking_if(is_much, || {
                    self.load_rows(&mut loading, &mut reader, &mut buffer, &mut skip, &mut row)
                })?
            };
            if matches!(progress, Progress::Done) {
                break;
            }
        }
        source.finish(&self.info.interrupt).await?;
        loading.finish(self)
    }

    /// Reads the next row from what is on hand; `None` if that ends within it.
    fn next_row(
        &self,
        loading: &Loading<'_>,
        reader: &mut Reader,
        buffer: &mut Buffer,
        skip: &mut u64,
        row: &mut Row,
    ) -> Result<Option<Step>, SqlError> {
        loop {
            self.info.interrupt.check()?;
            let all = buffer.is_all();
            if *skip > 0 && all && buffer.unread().is_empty() {
                return Ok(Some(Step::End));
            }
            if *skip > 0 && reader.has_lines() {
                match reader.skip_line(buffer.unread(), 0, all) {
                    None => return Ok(None),
                    Some(next) => buffer.consume(next),
                }
                *skip -= 1;
                continue;
            }
            let (step, next) = reader.row(buffer.unread(), 0, all, loading.fields(), row);
            match step {
                Step::More => return Ok(None),
                Step::Row if *skip > 0 => {
                    *skip -= 1;
                    buffer.consume(next);
                    if row.last {
                        return Ok(Some(Step::End));
                    }
                }
                Step::Malformed => {
                    let field = row.field(row.len() - 1, buffer.unread()).unwrap_or_default();
                    let text = String::from_utf8_lossy(field).into_owned();
                    return Err(ErrorCode::INVALID_CHARACTER_STRING.with(&[&loading.charset().name(), &text]));
                }
                step => {
                    buffer.keep_row(next);
                    return Ok(Some(step));
                }
            }
        }
    }

    /// Stores the rows that are on hand.
    fn load_rows(
        &mut self,
        loading: &mut Loading<'_>,
        reader: &mut Reader,
        buffer: &mut Buffer,
        skip: &mut u64,
        row: &mut Row,
    ) -> Result<Progress, SqlError> {
        loop {
            match self.next_row(loading, reader, buffer, skip, row)? {
                None => return Ok(Progress::Wanting),
                Some(Step::Row) => {
                    loading.read(self, row, buffer.row())?;
                    loading.assign(self)?;
                    loading.store(self, row, buffer.row().len())?;
                    buffer.consume_row();
                    if row.last {
                        return Ok(Progress::Done);
                    }
                }
                Some(_) => return Ok(Progress::Done),
            }
        }
    }

    /// As [`Self::load_rows`], where assignments ask queries.
    async fn load_rows_by_query(
        &mut self,
        loading: &mut Loading<'_>,
        reader: &mut Reader,
        buffer: &mut Buffer,
        skip: &mut u64,
        row: &mut Row,
        text: &Text<'_>,
    ) -> Result<Progress, SqlError> {
        loop {
            match self.next_row(loading, reader, buffer, skip, row)? {
                None => return Ok(Progress::Wanting),
                Some(Step::Row) => {
                    loading.read(self, row, buffer.row())?;
                    loading.ask(self, text).await?;
                    loading.assign(self)?;
                    loading.store(self, row, buffer.row().len())?;
                    buffer.consume_row();
                    if row.last {
                        return Ok(Progress::Done);
                    }
                }
                Some(_) => return Ok(Progress::Done),
            }
        }
    }

    /// How the file is written, by the statement's clauses and the session's settings.
    fn dialect(&mut self, load: &LoadData, loading: &Loading<'_>) -> Result<Dialect, SqlError> {
        let format = &load.format;
        let escape = default_escape(format, self.settings.sql_mode);
        let sizes = match format.field_terminator.is_empty() && format.enclosed.is_empty() {
            true => Some(fixed_sizes(load, loading)?),
            false => None,
        };
        if has_non_ascii(format) {
            let message = "Non-ASCII separator arguments are not fully supported";
            self.warn(Level::Warning, 1638, message.into());
        }
        Ok(Dialect {
            field_terminator: format.field_terminator.as_slice().into(),
            line_terminator: format.line_terminator.as_slice().into(),
            line_start: format.line_start.as_slice().into(),
            enclosed: format.enclosed.first().copied(),
            escape,
            charset: loading.charset(),
            sizes,
        })
    }
}

/// The escape that is said, or the one that strings have.
pub(super) fn default_escape(format: &DelimitedFormat, mode: SqlMode) -> Option<u8> {
    match &format.escape {
        Some(escape) => escape.first().copied(),
        None if mode.has(SqlMode::NO_BACKSLASH_ESCAPES) => None,
        None => Some(b'\\'),
    }
}

fn has_non_ascii(format: &DelimitedFormat) -> bool {
    let parts = [&format.field_terminator, &format.enclosed, &format.line_start, &format.line_terminator];
    parts.into_iter().chain(&format.escape).any(|part| !part.is_ascii())
}

/// The sizes of fields that nothing separates.
fn fixed_sizes(load: &LoadData, loading: &Loading<'_>) -> Result<Box<[usize]>, SqlError> {
    if load.targets.iter().flatten().any(|target| matches!(target, LoadTarget::Variable(_))) {
        return Err(ErrorCode::LOAD_FROM_FIXED_SIZE_ROWS_TO_VAR.with(&[]));
    }
    let has_lines = !load.format.line_terminator.is_empty();
    let mut sizes = Vec::with_capacity(loading.fields());
    for ty in loading.field_types() {
        sizes.push(match display_size(ty) {
            Some(size) => size,
            // The rest of the line, whatever its size.
            None if has_lines => usize::MAX >> 16,
            None => return Err(ErrorCode::BLOBS_AND_NO_TERMINATED.with(&[])),
        });
    }
    Ok(sizes.into())
}

/// How many bytes a column's values take as texts of fixed size; `None` for BLOB and TEXT.
pub(super) fn display_size(ty: &SqlType) -> Option<usize> {
    use avocet_types::IntWidth as W;
    let fraction = |fsp: u8| if fsp > 0 { 1 + usize::from(fsp) } else { 0 };
    Some(match *ty {
        SqlType::Null => 0,
        SqlType::Bool => 1,
        SqlType::Int { width, unsigned } => match (width, unsigned) {
            (W::W8, false) => 4,
            (W::W8, true) => 3,
            (W::W16, false) => 6,
            (W::W16, true) => 5,
            (W::W24, false) => 9,
            (W::W24, true) => 8,
            (W::W32, false) => 11,
            (W::W32, true) => 10,
            (W::W64, _) => 20,
        },
        SqlType::Decimal { precision, scale, unsigned } => {
            usize::from(precision) + usize::from(scale > 0) + usize::from(!unsigned)
        }
        SqlType::Float(_) => 12,
        SqlType::Double(_) => 22,
        SqlType::Char { len, collation } | SqlType::VarChar { len, collation } => {
            (len * collation.info().charset.max_len()) as usize
        }
        SqlType::Binary { len } | SqlType::VarBinary { len } => len as usize,
        SqlType::Text { .. } | SqlType::Blob { .. } | SqlType::Json | SqlType::Geometry { .. } => {
            return None;
        }
        SqlType::Date => 10,
        SqlType::DateTime { fsp } | SqlType::Timestamp { fsp } => 19 + fraction(fsp),
        SqlType::Time { fsp } => 10 + fraction(fsp),
        SqlType::Year => 4,
        SqlType::Bit { len } => usize::from(len.div_ceil(8)),
        SqlType::Enum(members) => (members.longest() * members.collation().info().charset.max_len()) as usize,
        SqlType::Set(members) => {
            (members.joined_len() * members.collation().info().charset.max_len()) as usize
        }
    })
}

/// The character set of a file that the statement says nothing of, or what it says.
fn charset_of(session: &Session, load: &LoadData) -> Result<Charset, SqlError> {
    match &load.charset {
        Some(name) => Charset::by_name(name).ok_or_else(|| ErrorCode::UNKNOWN_CHARACTER_SET.with(&[name])),
        None => Ok(session.settings.database_charset),
    }
}

/// Which column each name is; error 1054 for one that there is not.
fn column_of(table: &Arc<TableHandle>, name: &str) -> Result<usize, SqlError> {
    table.def.column(name).ok_or_else(|| ErrorCode::BAD_FIELD_ERROR.with(&[&name, &"field list"]))
}
