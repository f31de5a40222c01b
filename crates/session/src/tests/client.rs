//! A client that prints what it gets.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrow::record_batch::RecordBatch;
use avocet_base::Env;
use avocet_base::env::sim::SimDisk;
use avocet_channel::{LocalFiles, OkReply, OutputColumn, ResultSink, SinkError, Status};
use avocet_engine::{Engine, EngineOptions};
use avocet_types::arrow_map::datum_at;
use avocet_types::temporal::TimeZone;
use avocet_types::{Datum, SqlType, Value};
use tokio::runtime::Runtime;

use crate::api::{AccountName, SessionFactory, SessionInfo, SqlSession, StatementId};
use crate::database::NoConnections;
use crate::{Database, Session};

pub struct Client {
    pub runtime: Arc<Runtime>,
    pub database: Database,
    pub session: Session,
}

impl Client {
    /// A session in a new database `test`.
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// The same, on an engine with other options.
    pub fn with(change: impl FnOnce(&mut EngineOptions)) -> Self {
        let disk = SimDisk::new();
        let env = Env { disk: Arc::new(disk), ..Env::os() };
        let mut options = EngineOptions {
            env,
            background: false,
            log_segment_bytes: 1 << 20,
            ..EngineOptions::new("/data")
        };
        change(&mut options);
        let engine = Engine::open(options).expect("opens");
        let database = Database::new(engine, None).expect("a database");
        let session = database.session(None).expect("a session");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let mut client = Self { runtime: Arc::new(runtime.expect("a runtime")), database, session };
        client.run("CREATE DATABASE test; USE test");
        client
    }

    /// Another session of the same database.
    pub fn another(&self) -> Self {
        let session = self.database.session(Some("test")).expect("a session");
        Self { runtime: self.runtime.clone(), database: self.database.clone(), session }
    }

    /// A session of an account, as of a connection that has just signed in.
    pub fn of(&self, account: &str) -> Self {
        let info = SessionInfo {
            connection_id: 1,
            account: AccountName { user: account.into(), host: "%".into() },
            client_host: "localhost".into(),
            database: None,
            found_rows: false,
            multi_statements: true,
            interactive: false,
            ignore_space: false,
            collation: avocet_types::Collation::DEFAULT.0,
            cipher: String::new(),
            interrupt: Arc::default(),
            connections: Arc::new(NoConnections),
        };
        let session = self.database.open(info).expect("a session");
        Self { runtime: self.runtime.clone(), database: self.database.clone(), session }
    }

    /// Runs a text and prints its results: rows with `|`, `ok n` for changes, `ERROR n: text`.
    pub fn run(&mut self, sql: &str) -> String {
        let mut printer = Printer::default();
        let result = self.runtime.block_on(self.session.execute(sql, &mut printer));
        printer.end(result)
    }

    /// Runs a text in a task on the runtime's own threads; returns how long that took.
    pub fn on_the_thread(&mut self, sql: &str) -> Duration {
        let mut session = self.database.session(Some("test")).expect("a session");
        std::mem::swap(&mut session, &mut self.session);
        let sql = sql.to_owned();
        let task = self.runtime.spawn(async move {
            let begin = Instant::now();
            let mut printer = Printer::default();
            let result = session.execute(&sql, &mut printer).await;
            assert!(result.is_ok(), "{result:?}");
            (session, begin.elapsed())
        });
        let (session, took) = self.runtime.block_on(task).expect("it does not panic");
        self.session = session;
        took
    }

    pub fn prepare(&mut self, sql: &str) -> StatementId {
        self.runtime.block_on(self.session.prepare(sql)).expect("prepares").id
    }

    pub fn execute(&mut self, id: StatementId, params: &[Value]) -> String {
        let mut printer = Printer::default();
        let result = self.runtime.block_on(self.session.execute_prepared(id, params, &mut printer));
        printer.end(result)
    }

    pub fn check(&mut self, sql: &str, expected: &str) {
        let got = self.run(sql);
        let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let got: Vec<&str> = got.lines().map(str::trim).collect();
        assert_eq!(got, expected, "{sql}");
    }
}

/// Runs statements in a new database, each with what it is to print.
pub fn check(steps: &[(&str, &str)]) {
    let mut client = Client::new();
    for (sql, expected) in steps {
        client.check(sql, expected);
    }
}

#[derive(Default)]
pub struct Printer {
    types: Vec<SqlType>,
    zone: TimeZone,
    text: String,
    /// What is left of the file that was asked for.
    file: Vec<u8>,
}

/// The client's files are in their names: `data:…`, or `rows:N` for lines of a number from 0 and a text.
impl LocalFiles for Printer {
    fn request(&mut self, name: &str, _patience: Duration) -> Result<(), SinkError> {
        self.file = match name.split_once(':') {
            Some(("data", text)) => text.as_bytes().to_vec(),
            Some(("rows", count)) => {
                let count: u32 = count.parse().expect("a number");
                (0..count).flat_map(|row| format!("{row}\tthe text of row {row}\n").into_bytes()).collect()
            }
            _ => panic!("no file {name}"),
        };
        self.file.reverse();
        Ok(())
    }

    fn poll_read(&mut self, _cx: &mut Context<'_>, to: &mut Vec<u8>) -> Poll<Result<bool, SinkError>> {
        let kept = self.file.len().saturating_sub(if self.file.len() > 100_000 { 50_000 } else { 7 });
        let more = !self.file.is_empty();
        to.extend(self.file.drain(kept..).rev());
        Poll::Ready(Ok(more))
    }
}

impl Printer {
    pub fn end(mut self, result: Result<(), avocet_types::error::SqlError>) -> String {
        if let Err(error) = result {
            self.text.push_str(&format!("ERROR {}: {}\n", error.errno, error.message));
        }
        self.text
    }

    fn line(&mut self, row: &[Datum<'_>]) {
        let shown = |(value, ty): (&Datum<'_>, &SqlType)| {
            let mut text = Vec::new();
            avocet_types::text::write_text(value, ty, self.zone, &mut text);
            if value.is_null() { "NULL".to_owned() } else { String::from_utf8_lossy(&text).into_owned() }
        };
        let cells: Vec<String> = row.iter().zip(&self.types).map(shown).collect();
        self.text.push_str(&cells.join("|"));
        self.text.push('\n');
    }
}

impl ResultSink for Printer {
    fn columns(&mut self, columns: &[OutputColumn], zone: TimeZone) -> Result<(), SinkError> {
        self.types = columns.iter().map(|column| column.ty).collect();
        self.zone = zone;
        Ok(())
    }

    fn out_parameters(&mut self, columns: &[OutputColumn], zone: TimeZone) -> Result<(), SinkError> {
        let names: Vec<_> = columns.iter().map(|column| &*column.name).collect();
        self.text.push_str(&format!("out {}\n", names.join(", ")));
        self.columns(columns, zone)
    }

    fn local_files(&mut self) -> Option<&mut dyn LocalFiles> {
        Some(self)
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        self.line(row);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, from: usize) -> Result<usize, SinkError> {
        for row in from..batch.num_rows() {
            let types = self.types.clone();
            let values: Vec<_> = batch
                .columns()
                .iter()
                .zip(&types)
                .map(|(array, ty)| datum_at(array.as_ref(), row, ty))
                .collect();
            self.line(&values);
        }
        Ok(batch.num_rows())
    }

    fn end(&mut self, _status: Status) -> Result<(), SinkError> {
        Ok(())
    }

    fn ok(&mut self, ok: &OkReply<'_>) -> Result<(), SinkError> {
        self.text.push_str(&format!("ok {}", ok.affected_rows));
        if ok.last_insert_id > 0 {
            self.text.push_str(&format!(" id {}", ok.last_insert_id));
        }
        if !ok.info.is_empty() {
            self.text.push_str(&format!(" ({})", ok.info));
        }
        self.text.push('\n');
        Ok(())
    }
}
