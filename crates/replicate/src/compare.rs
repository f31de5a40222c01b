//! Comparison with the source, while both go on: by ranges of the key, value by value.
//!
//! A range is read at the source, the end of its log is awaited here, and the range is read here. What was written meanwhile shows as
//! a difference, so a range that differs is looked at again: what stays the same difference is one. Nothing is locked and nothing written
//! on either side.

use std::time::Duration;

use avocet_engine::Engine;
use avocet_types::error::SqlError;
use avocet_types::{Datum, SqlType, TableDef, Value};
use mysql::Opts;
use mysql::prelude::Queryable;

use crate::copy::{ChunkQuery, datum, key_of, rows_within, sent, size_about};
use crate::error::{ReplicateError, Result};
use crate::follow::has_text_of;
use crate::source::{self, Connection};
use crate::state::TableName;
use crate::status::Status;

/// Rows of a range at most; fewer, where rows are large.
const ROWS: usize = 4096;
/// How often a range is looked at before it is given up, and how often a difference must be the same one.
const LOOKS: u32 = 20;
const SAME: u32 = 4;
/// For how long the source's log is awaited.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads rows here, by SQL in UTC and UTF-8.
pub trait Rows {
    fn read(&mut self, sql: &str, parameters: &[Value]) -> std::result::Result<Vec<Vec<Value>>, SqlError>;
}

/// What came of a table's comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Equal,
    /// With the first row that differs.
    Different(String),
    /// It could not be told, and why.
    Unknown(String),
}

/// A table, and how many of its rows were compared.
#[derive(Clone, Debug)]
pub struct Compared {
    pub name: TableName,
    pub rows: u64,
    pub verdict: Verdict,
}

/// Compares tables that are followed.
///
/// # Errors
/// When the source is lost or `stop` says so: what was found by then is lost as well.
pub fn compare(
    opts: &Opts,
    engine: &Engine,
    status: &Status,
    here: &mut dyn Rows,
    tables: &[TableName],
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Compared>> {
    let mut conn = source::connect(opts)?;
    let source = source::identity(&mut conn)?;
    let mut comparison = Comparison { conn, source, status, here, stop };
    let aside = status.snapshot().tables;
    let mut all = Vec::with_capacity(tables.len());
    for name in tables {
        let unknown = |why: String| Compared { name: name.clone(), rows: 0, verdict: Verdict::Unknown(why) };
        let catalog = engine.catalog();
        let compared = match catalog.table(&name.database, &name.table) {
            _ if aside.iter().any(|(table, _)| table == name) => {
                let (_, state) = aside.iter().find(|(table, _)| table == name).expect("it was just seen");
                unknown(state.clone())
            }
            None => unknown("it is not here".into()),
            Some(table) if key_of(&table.def).is_none() => unknown("it has no key".into()),
            Some(table) => {
                let (rows, verdict) = comparison.table(name, &table.def, &ChunkQuery::new(&table.def))?;
                Compared { name: name.clone(), rows, verdict }
            }
        };
        all.push(compared);
    }
    Ok(all)
}

struct Comparison<'a> {
    conn: Connection,
    /// The server that it leads to.
    source: String,
    status: &'a Status,
    here: &'a mut dyn Rows,
    stop: &'a dyn Fn() -> bool,
}

/// A range of rows, and the key of its last one as the source sent it.
struct Range {
    rows: Vec<Vec<Value>>,
    last: Vec<mysql::Value>,
}

impl Comparison<'_> {
    fn table(&mut self, name: &TableName, def: &TableDef, query: &ChunkQuery) -> Result<(u64, Verdict)> {
        let (mut compared, mut after) = (0, None);
        let (_, bytes_each) = size_about(&mut self.conn, name)?;
        let limit = rows_within(bytes_each).min(ROWS);
        loop {
            let (mut before, mut times) = (String::new(), 0);
            let mut look = 0;
            let range = loop {
                if (self.stop)() {
                    return Err(ReplicateError::Stopped);
                }
                let range = match self.range(name, query, after.as_deref(), limit) {
                    Ok(range) => range,
                    Err(ReplicateError::Source(mysql::Error::MySqlError(error))) => {
                        return Ok((
                            compared,
                            Verdict::Unknown(format!("the source says: {}", error.message)),
                        ));
                    }
                    Err(error) => return Err(error),
                };
                let range = match range {
                    Ok(range) => range,
                    Err(why) => return Ok((compared, Verdict::Unknown(why))),
                };
                let end = source::log_end(&mut self.conn)?;
                if !self.status.wait_visible(&self.source, &end, PATIENCE, self.stop) {
                    let why = "the copy here does not reach the source's log in time";
                    return Ok((compared, Verdict::Unknown(why.into())));
                }
                let here = match self.range_here(name, query, after.as_deref(), limit) {
                    Ok(rows) => rows,
                    Err(why) => return Ok((compared, Verdict::Unknown(why))),
                };
                let Some(difference) = difference(def, query, &range.rows, &here) else { break range };
                times = if difference == before { times + 1 } else { 1 };
                if times >= SAME {
                    return Ok((compared, Verdict::Different(difference)));
                }
                before = difference;
                look += 1;
                if look >= LOOKS {
                    let why = format!("its rows change all the time; seen last: {before}");
                    return Ok((compared, Verdict::Unknown(why)));
                }
                std::thread::sleep(Duration::from_millis(20 * u64::from(look)));
            };
            compared += range.rows.len() as u64;
            if range.rows.len() < limit {
                return Ok((compared, Verdict::Equal));
            }
            after = Some(range.last);
        }
    }

    /// A range at the source; the inner error is of a value that could not be here.
    fn range(
        &mut self,
        name: &TableName,
        query: &ChunkQuery,
        after: Option<&[mysql::Value]>,
        limit: usize,
    ) -> Result<std::result::Result<Range, String>> {
        let (statement, parameters) = query.statement(name, after.is_none(), limit);
        let values = after.unwrap_or_default();
        let parameters: Vec<mysql::Value> =
            parameters.iter().map(|&at| sent(&values[at], query.key_type(at))).collect();
        let parameters = match parameters.is_empty() {
            true => mysql::Params::Empty,
            false => mysql::Params::Positional(parameters),
        };
        let (mut rows, mut last) = (Vec::new(), Vec::new());
        for row in self.conn.exec_iter(statement, parameters)? {
            let values = row?.unwrap();
            let read: std::result::Result<Vec<Value>, String> =
                values.iter().zip(&query.types).map(|(value, ty)| datum(value, ty)).collect();
            match read {
                Ok(read) => rows.push(read),
                Err(why) => return Ok(Err(why)),
            }
            last = query.key.iter().map(|(column, _)| values[*column].clone()).collect();
        }
        Ok(Ok(Range { rows, last }))
    }

    fn range_here(
        &mut self,
        name: &TableName,
        query: &ChunkQuery,
        after: Option<&[mysql::Value]>,
        limit: usize,
    ) -> std::result::Result<Vec<Vec<Value>>, String> {
        let (statement, parameters) = query.statement(name, after.is_none(), limit);
        let values = after.unwrap_or_default();
        let parameters: std::result::Result<Vec<Value>, String> = parameters
            .iter()
            .map(|&at| {
                let ty = query.key_type(at);
                match sent(&values[at], ty) {
                    // As the statement takes them: digits, and bytes in hexadecimal.
                    mysql::Value::Bytes(text) if ty.is_bytes() || matches!(ty, SqlType::Decimal { .. }) => {
                        Ok(Datum::Str(String::from_utf8_lossy(&text).into_owned().into()))
                    }
                    value => datum(&value, ty),
                }
            })
            .collect();
        self.here.read(&statement, &parameters?).map_err(|error| error.message)
    }
}

/// The first row that one side has otherwise than the other.
fn difference(
    def: &TableDef,
    query: &ChunkQuery,
    there: &[Vec<Value>],
    here: &[Vec<Value>],
) -> Option<String> {
    let key = |row: &[Value]| {
        let values: Vec<String> = query.key.iter().map(|(column, _)| shown(&row[*column])).collect();
        format!("({})", values.join(", "))
    };
    let has_key_of =
        |a: &[Value], b: &[Value]| query.key.iter().all(|(column, _)| is_same(&a[*column], &b[*column]));
    for (at, there) in there.iter().enumerate() {
        let Some(here) = here.get(at) else { return Some(format!("row {} is missing here", key(there))) };
        if let Some(column) = (0..query.types.len()).find(|column| !is_same(&there[*column], &here[*column]))
        {
            let name = &def.columns[column].name;
            return Some(match has_key_of(there, here) {
                true => format!(
                    "row {}: `{name}` is {} at the source and {} here",
                    key(there),
                    shown(&there[column]),
                    shown(&here[column])
                ),
                false => format!("the source has row {} where row {} is here", key(there), key(here)),
            });
        }
    }
    here.get(there.len()).map(|extra| format!("row {} is here alone", key(extra)))
}

/// Whether values are equal to the last byte; numbers of members and bits come with either sign, and documents as texts.
fn is_same(there: &Value, here: &Value) -> bool {
    there.is_same(here)
        || match (there, here) {
            (Datum::UInt(a), Datum::Int(b)) | (Datum::Int(b), Datum::UInt(a)) => i64::try_from(*a) == Ok(*b),
            (Datum::Bytes(there), Datum::Bytes(here)) => has_text_of(there, here),
            _ => false,
        }
}

fn shown(value: &Value) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
