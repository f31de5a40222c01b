//! A session that answers nobody, on an engine in memory with a small table.
#![allow(dead_code, reason = "not every target prepares statements")]

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use avocet_base::Env;
use avocet_base::env::sim::SimDisk;
use avocet_channel::{OkReply, OutputColumn, ResultSink, SinkError, Status};
use avocet_engine::{Engine, EngineOptions};
use avocet_session::Database;
use avocet_session::Session;
use avocet_session::api::{SqlSession, StatementId};
use avocet_types::Datum;
use avocet_types::temporal::TimeZone;

/// Takes everything and keeps nothing.
struct Nowhere;

impl ResultSink for Nowhere {
    fn columns(&mut self, _: &[OutputColumn], _: TimeZone) -> Result<(), SinkError> {
        Ok(())
    }

    fn row(&mut self, _: &[Datum<'_>]) -> Result<(), SinkError> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, _: usize) -> Result<usize, SinkError> {
        Ok(batch.num_rows())
    }

    fn end(&mut self, _: Status) -> Result<(), SinkError> {
        Ok(())
    }

    fn ok(&mut self, _: &OkReply<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}

pub struct Client {
    runtime: tokio::runtime::Runtime,
    session: Session,
}

impl Client {
    pub fn new() -> Self {
        let env = Env { disk: Arc::new(SimDisk::new()), ..Env::os() };
        let options = EngineOptions {
            env,
            background: false,
            log_segment_bytes: 1 << 20,
            memory_limit: 256 << 20,
            ..EngineOptions::new("/data")
        };
        let database = Database::new(Engine::open(options).expect("opens"), None).expect("a database");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let session = database.session(None).expect("a session");
        let mut client = Self { runtime: runtime.expect("a runtime"), session };
        for sql in [
            "CREATE DATABASE test",
            "USE test",
            "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20), d DECIMAL(10,2), t DATETIME(6), KEY (s))",
            "INSERT INTO t VALUES (1, 'a', 1.5, '2020-01-01'), (2, NULL, -3, NULL)",
            "SET max_execution_time = 300, cte_max_recursion_depth = 100",
        ] {
            assert!(client.execute(sql), "{sql}");
        }
        client
    }

    pub fn execute(&mut self, sql: &str) -> bool {
        self.runtime.block_on(self.session.execute(sql, &mut Nowhere)).is_ok()
    }

    pub fn prepare(&mut self, sql: &str) -> StatementId {
        self.runtime.block_on(self.session.prepare(sql)).expect("it can be prepared").id
    }

    pub fn execute_prepared(&mut self, id: StatementId, values: &[Datum<'_>]) -> bool {
        self.runtime.block_on(self.session.execute_prepared(id, values, &mut Nowhere)).is_ok()
    }
}
