//! SQL without a server: a connection that runs statements on the caller's thread and returns what came of them.

use arrow::record_batch::RecordBatch;
use avocet_channel::{OkReply, OutputColumn, ResultSink, SinkError, Status};
use avocet_types::arrow_map::datum_at;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::temporal::TimeZone;
use avocet_types::{Datum, Value};
use tokio::runtime::{Builder, Runtime};

use crate::api::SqlSession;
use crate::{Database, Session};

/// A session of `root`@`localhost` in this process. Any number of them may be open at a time, each used by one thread.
/// All must be dropped before [`Database::shutdown`].
pub struct Connection {
    runtime: Runtime,
    session: Session,
}

/// What came of a statement.
#[derive(Debug, Default)]
pub struct Answer {
    /// Empty for a statement without a result set.
    pub columns: Vec<OutputColumn>,
    /// Values as they are stored: TIMESTAMPs in UTC.
    pub rows: Vec<Vec<Value>>,
    /// The session's time zone, in which TIMESTAMPs are shown.
    pub zone: TimeZone,
    pub affected_rows: u64,
    /// The first AUTO_INCREMENT value that was generated, or 0.
    pub last_insert_id: u64,
    /// Such as `Rows matched: 1  Changed: 1  Warnings: 0`.
    pub info: String,
    pub warnings: u16,
}

impl Database {
    /// Opens a connection, with a default database if one is named.
    pub fn connect(&self, default: Option<&str>) -> Result<Connection, SqlError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| ErrorCode::OUT_OF_RESOURCES.because(e.to_string()))?;
        Ok(Connection { runtime, session: self.session(default)? })
    }

    /// As [`connect`](Self::connect), to run what another server has done: also while this one is read-only for everybody else.
    pub fn connect_to_apply(&self) -> Result<Connection, SqlError> {
        let mut connection = self.connect(None)?;
        connection.session.applies = true;
        Ok(connection)
    }
}

impl Connection {
    /// Runs one statement or several, and returns what came of the last one, when it is durable.
    ///
    /// # Errors
    /// The first statement's that fails; those before it are done then.
    pub fn query(&mut self, sql: &str) -> Result<Answer, SqlError> {
        let mut last = Answer::default();
        self.run(sql, &mut |answer| last = answer)?;
        Ok(last)
    }

    /// Runs one statement or several, and hands on what came of each.
    pub fn run(&mut self, sql: &str, each: &mut dyn FnMut(Answer)) -> Result<(), SqlError> {
        let mut sink = Collector { current: Answer::default(), each: Vec::new() };
        let outcome = self.runtime.block_on(self.session.execute(sql, &mut sink));
        sink.each.into_iter().for_each(each);
        outcome
    }

    /// Runs a statement with values for its `?`s.
    pub fn query_with(&mut self, sql: &str, parameters: &[Value]) -> Result<Answer, SqlError> {
        let mut sink = Collector { current: Answer::default(), each: Vec::new() };
        self.runtime.block_on(async {
            let statement = self.session.prepare(sql).await?.id;
            let outcome = self.session.execute_prepared(statement, parameters, &mut sink).await;
            self.session.close_prepared(statement);
            outcome
        })?;
        Ok(sink.each.pop().unwrap_or_default())
    }
}

/// Keeps what statements come to.
struct Collector {
    current: Answer,
    each: Vec<Answer>,
}

impl Collector {
    fn finish(&mut self, warnings: u16) {
        self.current.warnings = warnings;
        self.each.push(std::mem::take(&mut self.current));
    }
}

impl ResultSink for Collector {
    fn columns(&mut self, columns: &[OutputColumn], zone: TimeZone) -> Result<(), SinkError> {
        self.current.columns = columns.to_vec();
        self.current.zone = zone;
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        self.current.rows.push(row.iter().map(|value| value.clone().into_owned()).collect());
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, from: usize) -> Result<usize, SinkError> {
        for row in from..batch.num_rows() {
            let columns = batch.columns().iter().zip(&self.current.columns);
            let values =
                columns.map(|(array, column)| datum_at(array.as_ref(), row, &column.ty).into_owned());
            self.current.rows.push(values.collect());
        }
        Ok(batch.num_rows())
    }

    fn end(&mut self, status: Status) -> Result<(), SinkError> {
        self.finish(status.warnings);
        Ok(())
    }

    fn ok(&mut self, ok: &OkReply<'_>) -> Result<(), SinkError> {
        self.current.affected_rows = ok.affected_rows;
        self.current.last_insert_id = ok.last_insert_id;
        self.current.info = ok.info.to_owned();
        self.finish(ok.status.warnings);
        Ok(())
    }
}
