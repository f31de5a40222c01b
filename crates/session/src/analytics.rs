//! Queries that read much: the way to DataFusion.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use arrow::record_batch::RecordBatch;
use avocet_channel::blocking::can_await;
use avocet_channel::{Cancellation, Interrupt, LONGEST_DELAY, ResultSink, write_some};
use avocet_engine::TableHandle;
use avocet_fusion::{
    Analytics, AnalyticsOptions, EngineMemory, EngineSource, Measurements, QueryRun, RunOptions, ScanSource,
    VirtualRows,
};
use avocet_sql::plan::{BoundQuery, From, QueryBody};
use avocet_sql::relational::Plan;
use avocet_types::Datum;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::TableDef;

use super::assigned::not_assigning;
use super::collect::CELL_BYTES;
use super::info_schema;
use super::locking::Readers;
use super::output::columns_of;
use super::run::Text;
use super::select::tables_of;
use super::state::Session;

/// A query whose rows come batch by batch.
pub(super) struct RunningQuery {
    run: QueryRun,
    interrupt: Arc<Interrupt>,
    deadline: Option<Instant>,
}

impl RunningQuery {
    /// The next rows; ends when the session is interrupted or its time is up, whatever the query's threads are at.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        let cancellation = Cancellation { interrupt: &self.interrupt, deadline: self.deadline };
        cancellation.unless_done(self.run.next()).await
    }

    /// As [`Self::next`], for code that cannot await. The query's own threads make the rows.
    pub fn next_in_place(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        futures::executor::block_on(tokio::task::unconstrained(self.next()))
    }

    /// The next rows. Those that are in the sink do not wait for them for long.
    async fn next_for(
        &mut self,
        sink: &mut dyn ResultSink,
        holds_rows: bool,
    ) -> Result<Option<RecordBatch>, SqlError> {
        if !holds_rows || !can_await() {
            return self.next().await;
        }
        let mut next = pin!(self.next());
        match tokio::time::timeout(LONGEST_DELAY, &mut next).await {
            Ok(next) => next,
            Err(_) => {
                write_some(sink)?;
                next.await
            }
        }
    }
}

impl Session {
    fn analytics(&self) -> Result<&Analytics, SqlError> {
        if let Some(analytics) = self.shared.analytics.get() {
            return Ok(analytics);
        }
        // Of several first queries one starts it: a second one would clear the spill folder under the first.
        let _starting = self.shared.analytics_start.lock();
        if let Some(analytics) = self.shared.analytics.get() {
            return Ok(analytics);
        }
        let engine = &self.shared.engine;
        let memory = Arc::new(EngineMemory(engine.memory().clone()));
        let mut options = AnalyticsOptions::new(memory, engine.memory().limit() / 2);
        options.spill = self.shared.spill.get().cloned();
        let made = Analytics::new(options).map_err(|error| {
            ErrorCode::OUT_OF_RESOURCES.because(format!("analytics can not start: {error}"))
        })?;
        Ok(self.shared.analytics.get_or_init(|| made))
    }

    /// What a query scans, at its snapshots.
    fn source(
        &mut self,
        bound: &BoundQuery,
        Readers { plain, locked }: Readers,
        tables: Vec<Arc<TableHandle>>,
        params: &[Datum<'_>],
    ) -> Result<Arc<dyn ScanSource>, SqlError> {
        let mut virtual_rows = Vec::new();
        for TableDef { database, name, .. } in tables_of(bound).iter().map(|table| &**table) {
            if info_schema::is_virtual(database)
                && let Some(table) = info_schema::table(database, name)
            {
                let only = info_schema::only_of(bound, &table, params, self.database.as_deref());
                let rows = self.virtual_rows(database, name, only)?;
                virtual_rows.push(VirtualRows { rows, table });
            }
        }
        Ok(Arc::new(EngineSource { reader: plain, newest: locked, tables, virtual_rows }))
    }

    fn run_options(&self, text: &Text<'_>, tables: &[Arc<TableHandle>]) -> RunOptions {
        RunOptions {
            streams: false,
            plan: None,
            measurements: None,
            row_bytes: tables.iter().map(|table| table.row_bytes()).max().unwrap_or(0),
            params: text.params.iter().map(|value| value.clone().into_owned()).collect(),
            context: self.context.clone(),
            deadline: self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())),
            memory_limit: self.settings.query_memory_limit,
        }
    }

    /// Starts a query at some snapshots.
    pub(super) fn start_analytics(
        &mut self,
        readers: Readers,
        bound: Arc<BoundQuery>,
        tables: Vec<Arc<TableHandle>>,
        text: &Text<'_>,
    ) -> Result<RunningQuery, SqlError> {
        let options = self.run_options(text, &tables);
        self.start_with(options, readers, bound, tables)
    }

    fn start_with(
        &mut self,
        options: RunOptions,
        readers: Readers,
        bound: Arc<BoundQuery>,
        tables: Vec<Arc<TableHandle>>,
    ) -> Result<RunningQuery, SqlError> {
        if bound.assigns {
            return Err(not_assigning("many rows, or values that are no dates"));
        }
        let source = self.source(&bound, readers, tables, &options.params)?;
        let run = self.analytics()?.execute(bound, source, options)?;
        Ok(RunningQuery { run, interrupt: self.info.interrupt.clone(), deadline: self.deadline })
    }

    /// Runs a query at some snapshots; returns the number of rows.
    pub(super) async fn analyze_at(
        &mut self,
        readers: Readers,
        bound: Arc<BoundQuery>,
        tables: Vec<Arc<TableHandle>>,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
        select_limit: u64,
    ) -> Result<u64, SqlError> {
        let mut left = if bound.body.limit.is_none() { select_limit } else { u64::MAX };
        let mut options = self.run_options(text, &tables);
        if is_streamed(&bound) {
            options.streams = true;
            // As columns of a batch, which are encoded where they are stored.
            options.row_bytes = options.row_bytes.max(bound.body.outputs.len() * CELL_BYTES);
        }
        let mut run = self.start_with(options, readers, bound.clone(), tables)?;
        sink.columns(&columns_of(&bound), self.settings.time_zone)?;
        let interrupt = self.info.interrupt.clone();
        let cancellation = Cancellation { interrupt: &interrupt, deadline: self.deadline };
        let mut rows = 0;
        while left > 0 {
            let Some(batch) = run.next_for(sink, rows > 0).await? else { break };
            let batch = batch.slice(0, batch.num_rows().min(usize::try_from(left).unwrap_or(usize::MAX)));
            left -= batch.num_rows() as u64;
            rows += batch.num_rows() as u64;
            cancellation.send_batch(&batch, sink).await?;
        }
        Ok(rows)
    }

    /// Plans a query; runs it to its end if what it does is to be `measured`.
    pub(super) async fn plan_analytics(
        &mut self,
        readers: Readers,
        bound: Arc<BoundQuery>,
        tables: Vec<Arc<TableHandle>>,
        text: &Text<'_>,
        measured: bool,
    ) -> Result<(Arc<Plan>, Option<Arc<Measurements>>), SqlError> {
        let options = self.run_options(text, &tables);
        let mut to_run = self.run_options(text, &tables);
        let source = self.source(&bound, readers, tables, text.params)?;
        let interrupt = self.info.interrupt.clone();
        let cancellation = Cancellation { interrupt: &interrupt, deadline: self.deadline };
        let planning = self.analytics()?.plan(bound.clone(), source.clone(), options);
        let plan = cancellation.unless_done(planning).await?;
        if !measured {
            return Ok((plan, None));
        }
        let measurements = Arc::<Measurements>::default();
        to_run.plan = Some(plan.clone());
        to_run.measurements = Some(measurements.clone());
        let run = self.analytics()?.execute(bound, source, to_run)?;
        let mut run = RunningQuery { run, interrupt, deadline: self.deadline };
        while run.next().await?.is_some() {}
        Ok((plan, Some(measurements)))
    }
}

/// Whether the rows of one table go to the client as they are read.
fn is_streamed(bound: &BoundQuery) -> bool {
    let QueryBody::Select(select) = &bound.body.body else { return false };
    matches!(select.from, From::Table(_))
        && select.aggregation.is_none()
        && select.windows.is_empty()
        && select.subqueries.is_empty()
        && !select.distinct
        && bound.body.order_by.is_empty()
}
