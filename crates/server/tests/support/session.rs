//! A session without a database behind it: it answers a few fixed statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Int64Array, StringViewArray};
use arrow::record_batch::RecordBatch;
use avocet_channel::Cancellation;
use avocet_channel::*;
use avocet_session::api::*;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::temporal::TimeZone;
use avocet_types::{Collation, Datum, Decimal, IntWidth, SqlType};

/// How long a client may pause while it sends a file.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_millis(300);

/// What became of the sessions.
#[derive(Default)]
pub struct Log {
    pub open: AtomicUsize,
    pub resets: AtomicUsize,
}

pub struct TestSessions {
    pub log: Arc<Log>,
    pub max_connections: Arc<AtomicUsize>,
    pub timeouts: Arc<std::sync::Mutex<Timeouts>>,
    pub max_allowed_packet: Arc<AtomicUsize>,
}

impl Default for TestSessions {
    fn default() -> Self {
        Self {
            log: Arc::default(),
            max_connections: Arc::new(AtomicUsize::new(1000)),
            timeouts: Arc::default(),
            max_allowed_packet: Arc::new(AtomicUsize::new(64 << 20)),
        }
    }
}

impl SessionFactory for TestSessions {
    type Session = TestSession;

    fn is_administrator(&self, account: &AccountName) -> bool {
        account.user == "root"
    }

    fn max_connections(&self) -> usize {
        self.max_connections.load(Ordering::SeqCst)
    }

    fn open_behind_front(&self, info: SessionInfo) -> Result<TestSession, SqlError> {
        self.open(info)
    }

    fn open(&self, info: SessionInfo) -> Result<TestSession, SqlError> {
        check_database(info.database.as_deref())?;
        self.log.open.fetch_add(1, Ordering::SeqCst);
        let timeouts = *self.timeouts.lock().expect("no panic");
        Ok(TestSession {
            info,
            log: self.log.clone(),
            statements: Vec::new(),
            in_transaction: false,
            timeouts,
            max_allowed_packet: self.max_allowed_packet.load(Ordering::SeqCst),
        })
    }
}

fn check_database(name: Option<&str>) -> Result<(), SqlError> {
    match name {
        None | Some("shop") => Ok(()),
        Some(other) => Err(ErrorCode::BAD_DB_ERROR.with(&[&other])),
    }
}

pub struct TestSession {
    info: SessionInfo,
    log: Arc<Log>,
    statements: Vec<String>,
    in_transaction: bool,
    timeouts: Timeouts,
    max_allowed_packet: usize,
}

impl Drop for TestSession {
    fn drop(&mut self) {
        self.log.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A column and a value of each type.
pub fn all_types() -> Vec<(OutputColumn, Datum<'static>)> {
    let int = |width, unsigned| SqlType::Int { width, unsigned };
    let text = Collation::DEFAULT;
    let cells = [
        ("t", int(IntWidth::W8, false), Datum::Int(-8)),
        ("ut", int(IntWidth::W8, true), Datum::UInt(200)),
        ("s", int(IntWidth::W16, false), Datum::Int(-300)),
        ("m", int(IntWidth::W24, true), Datum::UInt(70_000)),
        ("i", int(IntWidth::W32, false), Datum::Int(-70_000)),
        ("b", int(IntWidth::W64, false), Datum::Int(i64::MIN)),
        ("ub", int(IntWidth::W64, true), Datum::UInt(u64::MAX)),
        ("f", SqlType::FLOAT, Datum::Float(1.5)),
        ("d", SqlType::DOUBLE, Datum::Double(0.1)),
        (
            "n",
            SqlType::Decimal { precision: 12, scale: 2, unsigned: false },
            Datum::Decimal(Decimal::new(-1205, 2)),
        ),
        ("c", SqlType::VarChar { len: 20, collation: text }, Datum::str("gr\u{fc}n")),
        ("x", SqlType::VarBinary { len: 20 }, Datum::bytes(&[0, 255, 39])),
        ("dt", SqlType::Date, Datum::Date(19_782)),
        ("ts", SqlType::DateTime { fsp: 6 }, Datum::DateTime(1_700_000_000_123_456)),
        ("tm", SqlType::Time { fsp: 0 }, Datum::Time(-90_061_000_000)),
        ("y", SqlType::Year, Datum::UInt(2024)),
        ("z", SqlType::INT, Datum::Null),
    ];
    cells.into_iter().map(|(name, ty, value)| (OutputColumn::expression(name, ty), value)).collect()
}

impl TestSession {
    fn one(
        &self,
        sink: &mut dyn ResultSink,
        name: &str,
        ty: SqlType,
        value: &Datum<'_>,
        more: bool,
    ) -> Result<(), SqlError> {
        sink.columns(&[OutputColumn::expression(name, ty)], TimeZone::UTC)?;
        sink.row(std::slice::from_ref(value))?;
        sink.end(Status { more_results: more, ..self.status() })?;
        Ok(())
    }

    async fn numbers(&self, sink: &mut dyn ResultSink, count: i64) -> Result<(), SqlError> {
        let text = SqlType::VarChar { len: 100, collation: Collation::DEFAULT };
        sink.columns(
            &[OutputColumn::expression("n", SqlType::BIGINT), OutputColumn::expression("t", text)],
            TimeZone::UTC,
        )?;
        for from in (0..count).step_by(1000) {
            self.info.interrupt.check()?;
            let numbers: Vec<i64> = (from..count.min(from + 1000)).collect();
            let texts: Vec<String> = numbers.iter().map(|n| format!("row {n} {}", "x".repeat(60))).collect();
            let batch = RecordBatch::try_from_iter([
                ("n", Arc::new(Int64Array::from(numbers)) as _),
                ("t", Arc::new(StringViewArray::from_iter_values(texts)) as _),
            ])
            .expect("two arrays of one length");
            Cancellation::after(&self.info.interrupt, None).send_batch(&batch, sink).await?;
        }
        sink.end(self.status())?;
        Ok(())
    }

    async fn run(&mut self, sql: &str, more: bool, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        let words: Vec<&str> = sql.split_whitespace().collect();
        match words[..] {
            // What drivers ask on connect.
            ["SELECT", "@@max_allowed_packet"] => {
                self.one(sink, "@@max_allowed_packet", SqlType::BIGINT_UNSIGNED, &Datum::UInt(64 << 20), more)
            }
            ["SELECT", "@@socket"] => self.one(sink, "@@socket", SqlType::Null, &Datum::Null, more),
            ["SELECT", "@@wait_timeout"] => {
                self.one(sink, "@@wait_timeout", SqlType::BIGINT_UNSIGNED, &Datum::UInt(28_800), more)
            }
            ["SELECT", "1"] => self.one(sink, "1", SqlType::BIGINT, &Datum::Int(1), more),
            ["SELECT", "ID"] => {
                let id = u64::from(self.info.connection_id);
                self.one(sink, "id", SqlType::BIGINT_UNSIGNED, &Datum::UInt(id), more)
            }
            ["SELECT", "USER"] => {
                let user = format!("{}@{}", self.info.account.user, self.info.account.host);
                let ty = SqlType::VarChar { len: 100, collation: Collation::DEFAULT };
                self.one(sink, "user", ty, &Datum::str(&user), more)
            }
            ["SELECT", "LONG", length] => {
                let text = "l".repeat(length.parse().expect("a length"));
                let ty = SqlType::Text { size: avocet_types::LobSize::Long, collation: Collation::DEFAULT };
                self.one(sink, "long", ty, &Datum::str(&text), more)
            }
            ["SELECT", "LENGTH", literal] => {
                self.one(sink, "length", SqlType::BIGINT, &Datum::Int(literal.len() as i64), more)
            }
            ["SELECT", "TYPES"] => {
                let (columns, values): (Vec<_>, Vec<_>) = all_types().into_iter().unzip();
                sink.columns(&columns, TimeZone::UTC)?;
                sink.row(&values)?;
                sink.end(self.status())?;
                Ok(())
            }
            ["SELECT", "NUMBERS", count] => self.numbers(sink, count.parse().expect("a count")).await,
            ["SELECT", "FOREVER"] => {
                self.info.interrupt.raised().await;
                self.info.interrupt.check()
            }
            ["SELECT", "BLOCKED"] => {
                // As a row lock that is waited for, on this thread.
                while self.info.interrupt.get().is_none() {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                self.info.interrupt.check()
            }
            ["SELECT", "PANIC", when] => {
                if when == "LATER" {
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
                if when == "ROWS" {
                    sink.columns(&[OutputColumn::expression("p", SqlType::BIGINT)], TimeZone::UTC)?;
                    sink.row(&[Datum::Int(1)])?;
                }
                panic!("as the test wants it")
            }
            ["SELECT", "MISMATCH"] => self.one(sink, "m", SqlType::Date, &Datum::Int(1), more),
            ["CALL", "OUT"] => {
                if sink.takes_out_parameters() {
                    sink.out_parameters(
                        &[OutputColumn::expression("total", SqlType::BIGINT)],
                        TimeZone::UTC,
                    )?;
                    sink.row(&[Datum::Int(7)])?;
                    sink.end(Status { more_results: true, out_parameters: true, ..self.status() })?;
                }
                sink.ok(&OkReply { status: self.status(), ..OkReply::default() })?;
                Ok(())
            }
            // Counts the bytes of a client's file, after it has asked for it or even if it fails at once.
            ["LOAD", name] => {
                let mut bytes = Vec::new();
                let mut count = 0;
                let files =
                    sink.local_files().ok_or_else(|| ErrorCode::CLIENT_LOCAL_FILES_DISABLED.with(&[]))?;
                files.request(name, PATIENCE)?;
                if name == "fails" {
                    return Err(ErrorCode::UNKNOWN_ERROR.with(&[]));
                }
                loop {
                    bytes.clear();
                    let more = tokio::select! {
                        biased;
                        _ = self.info.interrupt.raised() => return self.info.interrupt.check(),
                        more = std::future::poll_fn(|cx| files.poll_read(cx, &mut bytes)) => more?,
                    };
                    count += bytes.len() as u64;
                    if !more {
                        break;
                    }
                }
                let status = Status { more_results: more, ..self.status() };
                sink.ok(&OkReply { affected_rows: count, status, ..OkReply::default() })?;
                Ok(())
            }
            ["SET", ..] => {
                sink.ok(&OkReply { status: self.status(), ..OkReply::default() })?;
                Ok(())
            }
            ["BEGIN"] => {
                self.in_transaction = true;
                sink.ok(&OkReply { status: self.status(), ..OkReply::default() })?;
                Ok(())
            }
            ["INSERT"] => {
                let status = Status { more_results: more, ..self.status() };
                let info = "Records: 2  Duplicates: 0  Warnings: 0";
                sink.ok(&OkReply { affected_rows: 2, last_insert_id: 41, info, status, changes: &[] })?;
                Ok(())
            }
            [] => Err(ErrorCode::EMPTY_QUERY.with(&[])),
            _ => Err(ErrorCode::PARSE_ERROR.with(&[&sql, &1])),
        }
    }
}

impl SqlSession for TestSession {
    async fn execute(&mut self, sql: &str, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        let texts: Vec<&str> = sql.split(';').filter(|text| !text.trim().is_empty()).collect();
        if texts.len() > 1 && !self.info.multi_statements {
            return Err(ErrorCode::PARSE_ERROR.with(&[&texts[1], &1]));
        }
        for (i, text) in texts.iter().enumerate() {
            self.run(text, i + 1 < texts.len(), sink).await?;
        }
        Ok(())
    }

    async fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        let params = sql.matches('?').count();
        let columns = match sql {
            "ECHO ?" => vec![OutputColumn::expression(
                "echo",
                SqlType::VarChar { len: 9, collation: Collation::DEFAULT },
            )],
            "SELECT TYPES" => all_types().into_iter().map(|(column, _)| column).collect(),
            _ => vec![OutputColumn::expression("n", SqlType::BIGINT)],
        };
        self.statements.push(sql.to_owned());
        let id = StatementId(self.statements.len() as u32);
        Ok(Prepared { id, params: vec![SqlType::Null; params], columns: columns.into(), warnings: 0 })
    }

    async fn execute_prepared(
        &mut self,
        id: StatementId,
        params: &[Datum<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let sql = self.statements[id.0 as usize - 1].clone();
        if sql == "ECHO ?" {
            let shown = match &params[0] {
                Datum::Str(text) if text.len() > 100 => format!("Str of {}", text.len()),
                other => format!("{other:?}"),
            };
            let ty = SqlType::VarChar { len: 100, collation: Collation::DEFAULT };
            return self.one(sink, "echo", ty, &Datum::str(&shown), false);
        }
        self.run(&sql, false, sink).await
    }

    fn close_prepared(&mut self, _id: StatementId) {}

    fn use_database(&mut self, name: &str) -> Result<(), SqlError> {
        check_database(Some(name))?;
        self.info.database = Some(name.to_owned());
        Ok(())
    }

    fn database(&self) -> Option<&str> {
        self.info.database.as_deref()
    }

    fn table_columns(&mut self, table: &str) -> Result<Vec<OutputColumn>, SqlError> {
        match table {
            "t" => Ok(vec![OutputColumn::expression("a", SqlType::INT)]),
            other => Err(ErrorCode::NO_SUCH_TABLE.with(&[&"shop", &other])),
        }
    }

    fn kill_connection(&mut self, connection_id: u32) -> Result<(), SqlError> {
        self.info.connections.kill(connection_id, Interruption::Connection)
    }

    async fn reset(&mut self) {
        self.log.resets.fetch_add(1, Ordering::SeqCst);
        self.in_transaction = false;
    }

    fn recover(&mut self) {
        self.in_transaction = false;
    }

    fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    fn max_allowed_packet(&self) -> usize {
        self.max_allowed_packet
    }

    fn set_multi_statements(&mut self, allowed: bool) {
        self.info.multi_statements = allowed;
    }

    fn status(&self) -> Status {
        Status { autocommit: true, in_transaction: self.in_transaction, ..Status::default() }
    }
}
