//! The threads that read tables, each with a connection of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use arrow::array::ArrayRef;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use avocet_engine::TableHandle;
use avocet_types::{ColumnBuilder, SqlType, TableDef};
use mysql::prelude::Queryable;
use mysql::{Opts, Value};
use parking_lot::{Condvar, Mutex};

use super::values::{datum, parameter, selected, sent};
use super::{ByPlace, FromCopy, Watch};
use crate::error::{After, ReplicateError, Result};
use crate::inbox::{Closed, Inbox};
use crate::source::{self, Connection, quoted};
use crate::state::TableName;
use crate::status::Status;

/// Rows of a chunk at most, and bytes: a block's worth.
const CHUNK_ROWS: usize = 1 << 16;
const CHUNK_BYTES: usize = 16 << 20;
/// Rows of a chunk at least: what is read beyond the bytes is read in vain.
const LEAST_ROWS: usize = 64;
/// How often a chunk is asked for again before its table waits.
const ATTEMPTS: u32 = 5;

/// A table to be copied.
#[derive(Clone)]
struct Job {
    number: u64,
    name: TableName,
    resume: Option<Resume>,
}

/// Where to go on.
#[derive(Clone)]
pub struct Resume {
    pub table: Arc<TableHandle>,
    pub definition: String,
    pub after: Option<Vec<Value>>,
}

/// Tables that are copied or are to be.
pub struct Copies(Arc<Shared>);

struct Shared {
    opts: Opts,
    inbox: Arc<Inbox>,
    watch: Arc<Watch>,
    status: Arc<Status>,
    jobs: Mutex<Jobs>,
    added: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    /// The job of each table, waiting or running.
    live: HashMap<TableName, u64>,
    last: u64,
}

impl Copies {
    /// Starts so many threads.
    pub fn start(
        opts: Opts,
        threads: usize,
        inbox: Arc<Inbox>,
        watch: Arc<Watch>,
        status: Arc<Status>,
    ) -> Self {
        let shared =
            Arc::new(Shared { opts, inbox, watch, status, jobs: Mutex::default(), added: Condvar::new() });
        for _ in 0..threads.max(1) {
            let shared = shared.clone();
            let run = move || shared.run();
            // Fewer threads copy more slowly.
            if let Err(error) = std::thread::Builder::new().name("replica-copy".into()).spawn(run) {
                tracing::warn!(%error, "a thread that copies could not be started");
            }
        }
        Self(shared)
    }

    /// Whether a table's copy waits or runs.
    pub fn has(&self, name: &TableName) -> bool {
        self.0.jobs.lock().live.contains_key(name)
    }

    pub fn is_live(&self, name: &TableName, job: u64) -> bool {
        self.0.is_live(name, job)
    }

    pub fn add(&self, name: &TableName, resume: Option<Resume>) {
        let mut jobs = self.0.jobs.lock();
        jobs.last += 1;
        let job = Job { number: jobs.last, name: name.clone(), resume };
        jobs.live.insert(name.clone(), job.number);
        jobs.waiting.push_back(job);
        self.0.added.notify_one();
    }

    /// Ends a table's copy, whatever it is at: nothing that it sends counts any more.
    pub fn cancel(&self, name: &TableName) {
        let mut jobs = self.0.jobs.lock();
        jobs.live.remove(name);
        jobs.waiting.retain(|job| job.name != *name);
        drop(jobs);
        self.0.watch.forget(name);
    }
}

impl Shared {
    fn is_live(&self, name: &TableName, job: u64) -> bool {
        self.jobs.lock().live.get(name) == Some(&job)
    }

    fn next(&self) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        loop {
            if self.inbox.is_stopped() {
                return None;
            }
            if let Some(job) = jobs.waiting.pop_front() {
                return Some(job);
            }
            self.added.wait_for(&mut jobs, Duration::from_millis(500));
        }
    }

    fn run(&self) {
        let mut conn = None;
        while let Some(mut job) = self.next() {
            let mut attempts = 0;
            loop {
                let copied = self.copy(&mut conn, &mut job);
                let Err(error) = copied else { break };
                conn = None;
                attempts += 1;
                if !self.is_live(&job.name, job.number) {
                    break;
                }
                if error.after() != After::Retry || attempts >= ATTEMPTS {
                    let name = job.name.clone();
                    let failed = FromCopy { job: job.number, name, what: super::What::Failed(error) };
                    // Nobody listens if the inbox is closed.
                    let _ = self.inbox.push_copy(failed);
                    break;
                }
                if self.inbox.wait_for_stop(Duration::from_millis(200 << attempts)) {
                    return;
                }
            }
        }
    }

    fn push(&self, job: &Job, what: super::What) -> Result<()> {
        let message = FromCopy { job: job.number, name: job.name.clone(), what };
        self.inbox.push_copy(message).map_err(|Closed| ReplicateError::Stopped)
    }

    fn copy(&self, conn: &mut Option<(Connection, String)>, job: &mut Job) -> Result<()> {
        let (conn, identity) = match conn {
            Some(known) => known,
            none => {
                let mut conn = source::connect(&self.opts)?;
                let identity = source::identity(&mut conn)?;
                none.insert((conn, identity))
            }
        };
        // With another stream its copies begin anew.
        if !self.watch.is_stream_of(identity) {
            return Err(ReplicateError::damaged(format!(
                "the source's address leads to another server ({identity}) than the stream's"
            )));
        }
        if job.resume.is_none() {
            let definition = source::definition(conn, &job.name)?;
            let text = definition.as_ref().map(|definition| definition.text.clone());
            let (answer, made) = sync_channel(1);
            self.push(job, super::What::Make { definition, answer })?;
            // Whoever answers is gone, or makes no table: the job is done.
            let (Ok(Some(table)), Some(definition)) = (made.recv(), text) else { return Ok(()) };
            job.resume = Some(Resume { table, definition, after: None });
        }
        let (rows_about, bytes_about) = size_about(conn, &job.name)?;
        self.status.copy_begins(&job.name, rows_about);
        let mut limit = rows_within(bytes_about);
        let resume = job.resume.as_mut().expect("made above");
        let query = ChunkQuery::new(&resume.table.def);
        loop {
            if !self.is_live(&job.name, job.number) {
                return Ok(());
            }
            let (mark, received) = self.watch.begin(&job.name);
            match &received.by_place {
                None => source::await_visible(conn, &received)?,
                Some(by_place) => self.await_row(conn, &query, &job.name, by_place)?,
            }
            let chunk = match read(conn, &query, &job.name, resume, limit)? {
                Read::Chunk(chunk) => chunk,
                Read::Unfit(why) => return self.push(&job.clone(), super::What::Unfit(why)),
            };
            let Some(Chunk { batch, last, is_last, bytes }) = chunk else { break };
            limit = rows_within((bytes / batch.num_rows()) as u64);
            self.status.copied(&job.name, batch.num_rows() as u64, bytes as u64);
            let message = super::What::Rows { mark, batch, last: last.clone() };
            let message = FromCopy { job: job.number, name: job.name.clone(), what: message };
            self.inbox.push_copy(message).map_err(|Closed| ReplicateError::Stopped)?;
            resume.after = Some(last);
            if is_last {
                break;
            }
        }
        let until = source::log_end(conn)?;
        self.push(job, super::What::Done(until))
    }
}

impl Shared {
    /// Waits until all that the stream has brought of a table is visible at a source without GTIDs.
    fn await_row(
        &self,
        conn: &mut Connection,
        query: &ChunkQuery,
        name: &TableName,
        by_place: &ByPlace,
    ) -> Result<()> {
        if let Some(not_before) = by_place.not_before {
            let left = not_before.saturating_duration_since(Instant::now());
            if !left.is_zero() && self.inbox.wait_for_stop(left) {
                return Err(ReplicateError::Stopped);
            }
        }
        if let Some(row) = &by_place.last_row {
            let keys = row.key.iter().enumerate();
            let parameters: Vec<Value> = keys.map(|(at, value)| sent(value, query.key_type(at))).collect();
            conn.exec_drop(query.locking(name), parameters)?;
            self.watch.seen(name, row);
        }
        Ok(())
    }
}

/// How many rows a chunk may have if each takes so many bytes.
pub fn rows_within(bytes_each: u64) -> usize {
    (CHUNK_BYTES / (bytes_each as usize).max(1)).clamp(LEAST_ROWS, CHUNK_ROWS)
}

/// The source's estimates: rows, and bytes of one.
pub fn size_about(conn: &mut Connection, name: &TableName) -> Result<(u64, u64)> {
    let sizes: Option<(Option<u64>, Option<u64>)> = conn.exec_first(
        "SELECT TABLE_ROWS, AVG_ROW_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?",
        (&name.database, &name.table),
    )?;
    let (rows, bytes) = sizes.unwrap_or_default();
    Ok((rows.unwrap_or(0), bytes.unwrap_or(0)))
}

/// The key that tells rows apart: the primary key, or the first unique one that takes no NULL.
pub fn key_of(def: &TableDef) -> Option<usize> {
    if def.primary_key().is_some() {
        return Some(0);
    }
    def.indexes.iter().position(|index| {
        let is_whole =
            |part: &avocet_types::IndexPart| part.prefix_len.is_none() && !def.columns[part.column].nullable;
        index.kind.is_unique() && index.parts.iter().all(is_whole) && !def.is_functional(index)
    })
}

/// How a table is read.
pub struct ChunkQuery {
    pub types: Vec<SqlType>,
    names: Vec<String>,
    nullable: Vec<bool>,
    /// Columns of the key, and whether they descend.
    pub key: Vec<(usize, bool)>,
    schema: SchemaRef,
}

impl ChunkQuery {
    pub fn new(def: &TableDef) -> Self {
        let key = key_of(def).map_or(&[][..], |at| &def.indexes[at].parts);
        let fields = def.own_columns().iter().map(|c| Field::new(&c.name, c.ty.arrow_type(), c.nullable));
        Self {
            types: def.own_columns().iter().map(|column| column.ty).collect(),
            names: def.own_columns().iter().map(|column| column.name.clone()).collect(),
            nullable: def.own_columns().iter().map(|column| column.nullable).collect(),
            key: key.iter().map(|part| (part.column, part.descending)).collect(),
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
        }
    }

    /// The type of a column of the key, by its place there.
    pub fn key_type(&self, at: usize) -> &SqlType {
        &self.types[self.key[at].0]
    }

    /// Waits for the lock of a row, and lets it go. Any account that may read may do so.
    fn locking(&self, name: &TableName) -> String {
        let equal = self.key.iter().map(|(column, _)| {
            format!("{} = {}", quoted(&self.names[*column]), parameter(&self.types[*column]))
        });
        let equal: Vec<String> = equal.collect();
        let (database, table) = (quoted(&name.database), quoted(&name.table));
        format!("SELECT 1 FROM {database}.{table} WHERE {} LOCK IN SHARE MODE", equal.join(" AND "))
    }

    /// The statement, and how its parameters repeat the key's values.
    pub fn statement(&self, name: &TableName, is_first: bool, limit: usize) -> (String, Vec<usize>) {
        let columns: Vec<String> =
            self.names.iter().zip(&self.types).map(|(name, ty)| selected(name, ty)).collect();
        let mut statement =
            format!("SELECT {} FROM {}.{}", columns.join(", "), quoted(&name.database), quoted(&name.table));
        let mut parameters = Vec::new();
        if !is_first {
            // (a > x) OR (a = x AND b > y) …, which MySQL reads as ranges of the key.
            let ranges = (0..self.key.len()).map(|last| {
                let compared = (0..=last).map(|at| {
                    let (column, descending) = self.key[at];
                    parameters.push(at);
                    let operator = match (at == last, descending) {
                        (false, _) => "=",
                        (true, false) => ">",
                        (true, true) => "<",
                    };
                    format!("{} {operator} {}", quoted(&self.names[column]), parameter(&self.types[column]))
                });
                compared.collect::<Vec<_>>().join(" AND ")
            });
            let ranges: Vec<String> = ranges.collect();
            statement.push_str(&format!(" WHERE ({})", ranges.join(") OR (")));
        }
        let order = self.key.iter().map(|(column, descending)| {
            format!("{}{}", quoted(&self.names[*column]), if *descending { " DESC" } else { "" })
        });
        let order: Vec<String> = order.collect();
        statement.push_str(&format!(" ORDER BY {} LIMIT {limit}", order.join(", ")));
        (statement, parameters)
    }
}

struct Chunk {
    batch: RecordBatch,
    last: Vec<Value>,
    is_last: bool,
    bytes: usize,
}

enum Read {
    /// `None` after the last row.
    Chunk(Option<Chunk>),
    Unfit(String),
}

/// Reads a chunk, whose definition is that of the copy: the transaction keeps it from changing.
fn read(
    conn: &mut Connection,
    query: &ChunkQuery,
    name: &TableName,
    resume: &Resume,
    limit: usize,
) -> Result<Read> {
    conn.query_drop("START TRANSACTION READ ONLY")?;
    let (statement, parameters) = query.statement(name, resume.after.is_none(), limit);
    let values = resume.after.as_deref().unwrap_or_default();
    let parameters: Vec<Value> = parameters.iter().map(|&at| sent(&values[at], query.key_type(at))).collect();
    let chunk = read_rows(conn, query, &statement, parameters, limit)?;
    let definition = source::definition(conn, name)?;
    conn.query_drop("COMMIT")?;
    match definition {
        Some(definition) if definition.text == resume.definition => Ok(chunk),
        _ => Err(ReplicateError::Refused(format!("{name} was redefined while it was copied"))),
    }
}

fn read_rows(
    conn: &mut Connection,
    query: &ChunkQuery,
    statement: &str,
    parameters: Vec<Value>,
    limit: usize,
) -> Result<Read> {
    let builder = |ty: &SqlType| ColumnBuilder::new(ty, 1024);
    let mut columns: Vec<ColumnBuilder> = query.types.iter().map(builder).collect();
    let parameters = match parameters.is_empty() {
        true => mysql::Params::Empty,
        false => mysql::Params::Positional(parameters),
    };
    let mut rows = conn.exec_iter(statement, parameters)?;
    let (mut count, mut bytes, mut last) = (0, 0, Vec::new());
    let mut is_cut = false;
    for row in rows.by_ref() {
        let values = row?.unwrap();
        for (at, value) in values.iter().enumerate() {
            bytes += if let Value::Bytes(text) = value { text.len() + 1 } else { 8 };
            match datum(value, &query.types[at]) {
                Ok(value) if value.is_null() && !query.nullable[at] => {
                    return Ok(Read::Unfit(format!(
                        "column '{}' has NULL, which it does not allow",
                        query.names[at]
                    )));
                }
                Ok(value) => columns[at].append(&value),
                Err(why) => return Ok(Read::Unfit(format!("column '{}': {why}", query.names[at]))),
            }
        }
        count += 1;
        last.clear();
        last.extend(query.key.iter().map(|(column, _)| values[*column].clone()));
        if bytes >= CHUNK_BYTES {
            is_cut = true;
            break;
        }
    }
    drop(rows);
    if count == 0 {
        return Ok(Read::Chunk(None));
    }
    let arrays: Vec<ArrayRef> = columns.iter_mut().map(ColumnBuilder::finish).collect();
    let batch = RecordBatch::try_new(query.schema.clone(), arrays);
    let batch = batch.map_err(|error| ReplicateError::Refused(error.to_string()))?;
    let is_last = !is_cut && count < limit;
    Ok(Read::Chunk(Some(Chunk { batch, last, is_last, bytes })))
}
