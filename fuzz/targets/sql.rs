//! Statements: a session answers each with rows or an error, and goes on.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use avocet_base::Env;
use avocet_base::env::sim::SimDisk;
use avocet_engine::{Engine, EngineOptions};
use avocet_query::Database;
use avocet_query::session::Session;
use avocet_query::session::api::{OkReply, OutputColumn, ResultSink, SinkError, SqlSession, Status};
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

    fn batch(&mut self, _: &RecordBatch) -> Result<(), SinkError> {
        Ok(())
    }

    fn end(&mut self, _: Status) -> Result<(), SinkError> {
        Ok(())
    }

    fn ok(&mut self, _: &OkReply<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}

struct Client {
    runtime: tokio::runtime::Runtime,
    session: Session,
    statements: u64,
}

impl Client {
    fn new() -> Self {
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
        let mut client = Self { runtime: runtime.expect("a runtime"), session, statements: 0 };
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

    fn execute(&mut self, sql: &str) -> bool {
        self.runtime.block_on(self.session.execute(sql, &mut Nowhere)).is_ok()
    }
}

/// A client lives for so many statements, so that what they leave behind stays small.
const LIFE: u64 = 2000;

thread_local! {
    static CLIENT: RefCell<Option<Client>> = const { RefCell::new(None) };
}

pub fn run(data: &[u8]) {
    let sql = String::from_utf8_lossy(data);
    if sql.to_ascii_uppercase().contains("SLEEP") {
        return;
    }
    CLIENT.with_borrow_mut(|client| {
        let client = client.get_or_insert_with(Client::new);
        client.execute(&sql);
        client.statements += 1;
    });
    CLIENT.with_borrow_mut(|client| {
        client.take_if(|client| client.statements >= LIFE);
    });
}
