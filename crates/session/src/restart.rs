//! Statements that begin anew under strict snapshot isolation.
//!
//! A statement that meets a row which has changed since its snapshot fails, unless its transaction had read nothing before:
//! then nobody knows of that snapshot, and the statement runs again on a newer one. Nor may its client: what goes to the
//! client is kept back until the first row.

use std::task::{Context, Poll};

use arrow::record_batch::RecordBatch;
use avocet_channel::{LocalFiles, OkReply, OutputColumn, ResultSink, SinkError, Status};
use avocet_sql::parse::statement::{IsolationLevel, StatementKind};
use avocet_types::Datum;
use avocet_types::error::SqlError;
use avocet_types::temporal::TimeZone;

use super::plan_cache::CachedPlan;
use super::run::Text;
use super::state::Session;

/// Each time somebody else has got further; but a statement that is overtaken so often had better say so.
const MOST_RESTARTS: usize = 1000;

impl Session {
    /// Whether transactions may fail because of what has changed since their snapshot.
    pub(super) fn is_strict(&self) -> bool {
        let level = match &self.txn {
            Some(_) => self.running.level,
            None => self.next.level,
        };
        match level.unwrap_or(self.settings.level) {
            IsolationLevel::Serializable => true,
            IsolationLevel::RepeatableRead => self.settings.snapshot_isolation,
            IsolationLevel::ReadCommitted | IsolationLevel::ReadUncommitted => false,
        }
    }

    /// One statement on the general path.
    pub(super) async fn run(
        &mut self,
        kind: &StatementKind,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let Some(began) = self.begin_summary() else { return self.run_to_its_end(kind, text, sink).await };
        let schema = self.database.clone();
        let result = self.run_to_its_end(kind, text, sink).await;
        self.sum_up(began, schema.as_deref(), kind, text, &result);
        result
    }

    async fn run_to_its_end(
        &mut self,
        kind: &StatementKind,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        if !self.is_strict() {
            return self.run_once(kind, text, sink).await;
        }
        let mut held = Held::new(sink);
        loop {
            self.may_restart = false;
            match self.run_once(kind, text, &mut held).await {
                Err(error) => self.judge(error, &mut held)?,
                Ok(()) => return Ok(()),
            }
        }
    }

    /// One statement on its plan; false if another path is to take it, and nothing happened yet.
    pub(super) async fn run_plan(
        &mut self,
        plan: &CachedPlan,
        source: &str,
        params: &[Datum<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<bool, SqlError> {
        let began = self.begin_summary();
        let result = self.run_plan_to_its_end(plan, params, sink).await;
        if let Some(began) = began
            && !matches!(result, Ok(false))
        {
            self.sum_up_plan(began, plan, source, result.is_err());
        }
        result
    }

    async fn run_plan_to_its_end(
        &mut self,
        plan: &CachedPlan,
        params: &[Datum<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<bool, SqlError> {
        if !self.is_strict() {
            return self.run_plan_once(plan, params, sink).await;
        }
        let mut held = Held::new(sink);
        loop {
            self.may_restart = false;
            match self.run_plan_once(plan, params, &mut held).await {
                Err(error) => self.judge(error, &mut held)?,
                Ok(taken) => return Ok(taken),
            }
        }
    }

    /// Whether a failed statement begins anew: the error if not.
    fn judge(&mut self, error: SqlError, held: &mut Held<'_>) -> Result<(), SqlError> {
        if !self.may_restart {
            return Err(error);
        }
        if held.is_passing || held.restarts == MOST_RESTARTS {
            self.rollback();
            return Err(error);
        }
        held.restarts += 1;
        held.columns = None;
        Ok(())
    }
}

/// A sink that begins a result set with its first row.
struct Held<'s> {
    sink: &'s mut dyn ResultSink,
    columns: Option<(Vec<OutputColumn>, TimeZone)>,
    /// Something has gone to the client.
    is_passing: bool,
    restarts: usize,
}

impl<'s> Held<'s> {
    fn new(sink: &'s mut dyn ResultSink) -> Self {
        Self { sink, columns: None, is_passing: false, restarts: 0 }
    }

    fn pass(&mut self) -> Result<(), SinkError> {
        self.is_passing = true;
        match self.columns.take() {
            Some((columns, zone)) => self.sink.columns(&columns, zone),
            None => Ok(()),
        }
    }
}

impl ResultSink for Held<'_> {
    fn columns(&mut self, columns: &[OutputColumn], zone: TimeZone) -> Result<(), SinkError> {
        self.columns = Some((columns.to_vec(), zone));
        Ok(())
    }

    fn takes_out_parameters(&self) -> bool {
        self.sink.takes_out_parameters()
    }

    fn out_parameters(&mut self, columns: &[OutputColumn], zone: TimeZone) -> Result<(), SinkError> {
        self.pass()?;
        self.sink.out_parameters(columns, zone)
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        self.pass()?;
        self.sink.row(row)
    }

    fn batch(&mut self, batch: &RecordBatch, from: usize) -> Result<usize, SinkError> {
        self.pass()?;
        self.sink.batch(batch, from)
    }

    fn end(&mut self, status: Status) -> Result<(), SinkError> {
        self.pass()?;
        self.sink.end(status)
    }

    fn ok(&mut self, ok: &OkReply<'_>) -> Result<(), SinkError> {
        self.pass()?;
        self.sink.ok(ok)
    }

    /// A file comes once: who asks for one does not begin anew.
    fn local_files(&mut self) -> Option<&mut dyn LocalFiles> {
        self.is_passing = true;
        self.sink.local_files()
    }

    fn wants_flush(&self) -> bool {
        self.sink.wants_flush()
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        self.sink.poll_flush(cx)
    }
}
