//! Change capture: what is committed, told in the order of the commits to one who tells others (a binary log).
//!
//! ```text
//!  commits ─▶ redo log ─ durable ─▶ ChangeStream ─ rows, statements ─▶ ChangeSink
//!                │                       └── acknowledge: durable there
//!                └── checkpoint: recovery begins here, and the stream too
//! ```
//!
//! There is no second log in the way of a commit: the redo log is read behind it. With [`EngineOptions::capture_changes`] its
//! records also have what recovery does not need: rows as they were before they were changed, the time of the commit, and the
//! statement that changed a definition. What was committed without that is passed over, and counted.
//!
//! Invariants:
//! 1. Only what is durable is told.
//! 2. A checkpoint's log position is not beyond what was acknowledged. So the stream begins, after any crash, where recovery
//!    does, with the catalog of the checkpoint; records before that are never needed, and the blocks that the others name are there.
//! 3. After a restart, some of what was told before is told again, exactly as it was.
//!
//! [`EngineOptions::capture_changes`]: crate::EngineOptions::capture_changes

mod rows;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use avocet_base::{Env, Lsn, TableId, Timestamp};
use avocet_log::{LogFollower, LogReader};
use avocet_types::RowRef;
use thiserror::Error;

use crate::capture::{Gate, SinkStall};
use crate::catalog::{Catalog, Change};
use crate::engine::Engine;
use crate::error::{EngineError, Result, malformed};
use crate::redo::replay::{at_record, decode_statement};
use crate::redo::{self, Origin, Statement};
use crate::table::TableHandle;

/// Who is told. Between `begin` and `commit` are the changes of a transaction; a statement is one of its own.
pub trait ChangeSink {
    /// Whether it wants to be told of this commit: it may know of it already.
    fn wants(&self, ts: Timestamp) -> bool;
    fn begin(&mut self, wall_us: i64) -> io::Result<()>;
    fn insert(&mut self, table: &TableHandle, row: RowRef<'_>) -> io::Result<()>;
    fn update(&mut self, table: &TableHandle, before: RowRef<'_>, after: RowRef<'_>) -> io::Result<()>;
    fn delete(&mut self, table: &TableHandle, row: RowRef<'_>) -> io::Result<()>;
    fn commit(&mut self, ts: Timestamp) -> io::Result<()>;
    /// `is_all`: nothing follows that is of the same commit.
    fn statement(&mut self, ts: Timestamp, statement: &Statement, is_all: bool) -> io::Result<()>;
}

#[derive(Debug, Error)]
pub enum CaptureError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The sink's.
    #[error(transparent)]
    Sink(#[from] io::Error),
}

impl From<avocet_log::Error> for CaptureError {
    fn from(error: avocet_log::Error) -> Self {
        Self::Engine(error.into())
    }
}

/// What was committed, from the checkpoint on that the engine was opened with.
pub struct ChangeStream {
    engine: Weak<Engine>,
    env: Env,
    log_dir: PathBuf,
    gate: Arc<Gate>,
    catalog: Catalog,
    log: LogFollower,
    /// Tables that are being filled under no name, and the records that did so: they are told when the table gets its name.
    filling: BTreeMap<TableId, Vec<Lsn>>,
    passed_over: u64,
}

impl Engine {
    /// The stream of changes; `None` without `capture_changes`, or if somebody has it.
    ///
    /// # Errors
    /// As the log has them.
    pub fn change_stream(self: &Arc<Self>) -> Result<Option<ChangeStream>> {
        let Some(gate) = self.capture.gate.clone() else { return Ok(None) };
        let Some((catalog, at)) = self.capture.start.lock().take() else { return Ok(None) };
        gate.reach(at);
        Ok(Some(ChangeStream {
            engine: Arc::downgrade(self),
            env: self.options.env.clone(),
            log_dir: self.options.data.join("log"),
            gate,
            catalog,
            log: self.pipeline.log().follow(at, u64::MAX)?,
            filling: BTreeMap::new(),
            passed_over: 0,
        }))
    }

    /// Waits until all that is committed by now was told and can be seen, but no longer than this, and not for one who cannot go on
    /// for now (its disk is full). Whether it can.
    pub fn await_shown(&self, at_most: Duration, stop: &dyn Fn() -> bool) -> bool {
        let Some(gate) = &self.capture.gate else { return true };
        // What is visible may not be durable yet, as the durability has it.
        self.all_logged().wait_synced().is_ok()
            && gate.wait_until_shown(self.pipeline.log().durable_lsn(), at_most, stop)
    }

    /// Ends all work: whoever is told of changes cannot keep up with them any more.
    pub fn stop_because(&self, why: &str) {
        self.health.stop(&EngineError::Stopped(why.to_owned()));
    }
}

impl ChangeStream {
    /// Tells of the next record; false if all that is durable was told.
    ///
    /// # Errors
    /// Those of the sink, and of the log.
    pub fn next(&mut self, sink: &mut dyn ChangeSink) -> Result<bool, CaptureError> {
        let Self { engine, catalog, log, filling, .. } = self;
        let Some(record) = log.next_record()? else { return Ok(false) };
        let (at, ts) = (record.start, Timestamp(record.tag));
        let named = |error| match error {
            CaptureError::Engine(error) => CaptureError::Engine(at_record(at, error)),
            other => other,
        };
        let operations = match record.kind {
            redo::KIND_TXN => record.payload,
            redo::KIND_APPLIED => Origin::split(record.payload).map_err(malformed("applied record"))?.1,
            redo::KIND_CATALOG => {
                let (change, statement) = decode_statement(record.payload)?;
                return self.definition(ts, &change, statement, sink).map_err(named);
            }
            redo::KIND_CALL => {
                self.passed_over += 1;
                return Ok(true);
            }
            _ => return Ok(true),
        };
        let wall_us = match rows::stamp_of(operations).map_err(named)? {
            rows::Stamp::Told(wall_us) => wall_us,
            rows::Stamp::Silent => return Ok(true),
            rows::Stamp::Missing => {
                self.passed_over += 1;
                return Ok(true);
            }
        };
        let mut teller = rows::Teller { engine, catalog, sink, ts, wall_us, has_begun: false };
        let filled = teller.operations(operations).map_err(named)?;
        teller.end()?;
        if let Some(table) = filled {
            filling.entry(table).or_default().push(at);
        }
        Ok(true)
    }

    fn definition(
        &mut self,
        ts: Timestamp,
        change: &Change,
        statement: Option<Statement>,
        sink: &mut dyn ChangeSink,
    ) -> Result<bool, CaptureError> {
        self.catalog.apply(change);
        let published = change.published();
        let filled = published.and_then(|table| self.filling.remove(&table)).unwrap_or_default();
        let catalog = &self.catalog;
        self.filling
            .retain(|table, _| catalog.table_by_id(*table).is_some_and(|table| table.is_unfinished()));
        let Some(statement) = statement.filter(|_| sink.wants(ts)) else { return Ok(true) };
        sink.statement(ts, &statement, filled.is_empty())?;
        if filled.is_empty() {
            return Ok(true);
        }
        let Self { engine, catalog, env, log_dir, log, .. } = self;
        let wall_us = statement.wall_us;
        let mut teller = rows::Teller { engine, catalog, sink, ts, wall_us, has_begun: false };
        // The commit is not told to the end before this is.
        teller.begin()?;
        for at in filled {
            let mut reader = LogReader::open_until(env.clone(), log_dir, at, log.position())?;
            let gone = || EngineError::corrupt("the log", format!("its record at {at} is gone"));
            let record = reader.next_record()?.ok_or_else(gone)?;
            teller.operations(record.payload)?;
        }
        teller.end()?;
        Ok(true)
    }

    /// Blocks until there is more to tell, or for so long.
    ///
    /// # Errors
    /// Why there will not be more.
    pub fn wait(&self, at_most: Duration) -> Result<()> {
        struct Unpark(Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut more = pin!(self.log.more());
        let mut context = Context::from_waker(&waker);
        if let Poll::Ready(outcome) = more.as_mut().poll(&mut context) {
            return Ok(outcome?);
        }
        std::thread::park_timeout(at_most);
        match more.poll(&mut context) {
            Poll::Ready(outcome) => Ok(outcome?),
            Poll::Pending => Ok(()),
        }
    }

    /// Others can see at the sink what was told.
    pub fn show(&self) {
        self.gate.show(self.log.read_up_to());
    }

    /// All that was told is durable at the sink.
    pub fn acknowledge(&self) {
        let filling = self.filling.values().flatten().min().copied();
        let reached = filling.map_or(self.log.position(), |first| first.min(self.log.position()));
        self.log.acknowledge(reached);
        self.gate.reach(reached);
    }

    /// For a sink that has to wait for room.
    pub fn stall(&self) -> SinkStall {
        SinkStall(self.gate.clone())
    }

    /// How many transactions were not told, since they were committed without `capture_changes`.
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }
}

impl Drop for ChangeStream {
    fn drop(&mut self) {
        self.gate.end();
    }
}
