//! The shell's statements on a session of our own, over a data directory that no server uses.

use std::path::Path;

use arrow::record_batch::RecordBatch;
use avocet_query::SqlError;
use avocet_query::session::api::{OkReply, OutputColumn, ResultSink, SinkError, SqlSession, Status};
use avocet_query::session::{Database, Session};
use avocet_types::arrow_map::datum_at;
use avocet_types::temporal::TimeZone;
use avocet_types::text::write_text;
use avocet_types::{Datum, SqlType};
use tokio::runtime::Runtime;

use super::backend::{Backend, RunError};
use super::output::{Column, ResultSet};
use crate::Failure;

pub struct Embedded {
    runtime: Runtime,
    database: Database,
    /// Gone only while dropping: it must end before the database.
    session: Option<Session>,
}

impl Embedded {
    pub fn open(data: &Path, default: Option<&str>) -> Result<Self, Failure> {
        let runtime = Runtime::new()?;
        let database = Database::open(data)?;
        database.spill_to(data.join("spill"));
        let session = Some(database.session(default)?);
        Ok(Self { runtime, database, session })
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.session = None;
        if let Err(error) = self.database.shutdown() {
            eprintln!("avocet: closing the data directory: {error}");
        }
    }
}

impl Backend for Embedded {
    fn run(&mut self, sql: &str, each: &mut dyn FnMut(ResultSet)) -> Result<(), RunError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let mut sink = Collector::default();
        let outcome = self.runtime.block_on(session.execute(sql, &mut sink));
        sink.done.into_iter().for_each(each);
        outcome.map_err(RunError::from)
    }
}

impl From<SqlError> for RunError {
    fn from(error: SqlError) -> Self {
        let state = String::from_utf8_lossy(&error.sqlstate).into_owned();
        Self::Sql { errno: error.errno, state, message: error.message }
    }
}

/// Keeps results as texts.
#[derive(Default)]
struct Collector {
    types: Vec<SqlType>,
    zone: TimeZone,
    current: ResultSet,
    done: Vec<ResultSet>,
}

impl Collector {
    fn cell(&self, value: &Datum<'_>, ty: &SqlType) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        write_text(value, ty, self.zone, &mut text);
        (!value.is_null()).then_some(text)
    }

    fn finish(&mut self, warnings: u16) {
        self.current.warnings = warnings;
        self.done.push(std::mem::take(&mut self.current));
    }
}

impl ResultSink for Collector {
    fn columns(&mut self, columns: &[OutputColumn], zone: TimeZone) -> Result<(), SinkError> {
        self.zone = zone;
        self.types = columns.iter().map(|column| column.ty).collect();
        self.current.columns = columns
            .iter()
            .map(|column| Column {
                name: column.name.to_string(),
                right: is_number(&column.ty),
                nullable: !column.flags.not_null,
            })
            .collect();
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        let cells = row.iter().zip(&self.types).map(|(value, ty)| self.cell(value, ty)).collect();
        self.current.rows.push(cells);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), SinkError> {
        for row in 0..batch.num_rows() {
            let arrays = batch.columns().iter().zip(&self.types);
            let cells = arrays.map(|(array, ty)| self.cell(&datum_at(array.as_ref(), row, ty), ty)).collect();
            self.current.rows.push(cells);
        }
        Ok(())
    }

    fn end(&mut self, status: Status) -> Result<(), SinkError> {
        self.finish(status.warnings);
        Ok(())
    }

    fn ok(&mut self, ok: &OkReply<'_>) -> Result<(), SinkError> {
        self.current.affected = ok.affected_rows;
        self.current.info = ok.info.to_owned();
        self.finish(ok.status.warnings);
        Ok(())
    }
}

fn is_number(ty: &SqlType) -> bool {
    ty.is_integer() || matches!(ty, SqlType::Decimal { .. } | SqlType::Float | SqlType::Double)
}
