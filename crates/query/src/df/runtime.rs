//! Where analytics runs: a pool of threads of its own, at a lower priority than transactions, under memory limits.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use avocet_types::Value;
use avocet_types::expr::EvalContext;
use datafusion::common::DataFusionError;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{
    GreedyMemoryPool, MemoryPool, MemoryReservation, TrackConsumersPool,
};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::bind::walk;
use crate::df::apply::Planner;
use crate::df::error::{plan_error, run_error};
use crate::df::lower::Lowerer;
use crate::df::source::ScanSource;
use crate::error::{ErrorCode, SqlError};
use crate::plan::BoundQuery;

#[derive(Clone, Debug)]
pub struct AnalyticsOptions {
    pub threads: usize,
    /// For all queries together, in bytes.
    pub memory_limit: usize,
    /// For one query, in bytes.
    pub query_memory_limit: usize,
}

impl Default for AnalyticsOptions {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        Self { threads, memory_limit: 2 << 30, query_memory_limit: 1 << 30 }
    }
}

/// The engine for analytic queries. One per server.
pub struct Analytics {
    options: AnalyticsOptions,
    /// Taken only when dropped.
    runtime: Option<Runtime>,
    memory: Arc<dyn MemoryPool>,
}

/// What one run of a query works with.
pub struct RunOptions {
    /// Values of the `?` parameters.
    pub params: Vec<Value>,
    pub context: Arc<EvalContext>,
    /// After this time the query ends with error 3024.
    pub deadline: Option<Duration>,
}

/// The niceness of the pool's threads: the kernel then gives them about a tenth of what a transaction's thread gets.
const NICENESS: i32 = 10;

impl Analytics {
    pub fn new(options: AnalyticsOptions) -> Result<Self, std::io::Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads)
            .thread_name("analytics")
            .thread_stack_size(8 << 20)
            .on_thread_start(|| {
                // Without the right to change it, it stays as it is.
                let _ = rustix::process::nice(NICENESS);
            })
            .enable_time()
            .build()?;
        let memory: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(options.memory_limit));
        Ok(Self { options, runtime: Some(runtime), memory })
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("taken only by drop")
    }

    /// Starts a query. It runs until its last batch is read or the run is dropped.
    pub fn execute(
        &self,
        query: Arc<BoundQuery>,
        source: Arc<dyn ScanSource>,
        options: RunOptions,
    ) -> Result<QueryRun, SqlError> {
        let state = self.state(&options.context)?;
        let (sender, receiver) = mpsc::channel(2);
        let deadline = options.deadline;
        let task = self.runtime().spawn(async move {
            let run = run(state, query, source, options, &sender);
            let result = match deadline {
                None => run.await,
                Some(deadline) => tokio::time::timeout(deadline, run)
                    .await
                    .unwrap_or_else(|_| Err(ErrorCode::QUERY_TIMEOUT.with(&[]))),
            };
            if let Err(error) = result {
                // Nobody may be reading any more.
                let _ = sender.send(Err(error)).await;
            }
        });
        Ok(QueryRun { receiver, task })
    }

    /// DataFusion's physical plan, for EXPLAIN.
    pub async fn explain(
        &self,
        query: Arc<BoundQuery>,
        source: Arc<dyn ScanSource>,
        options: RunOptions,
    ) -> Result<String, SqlError> {
        let state = self.state(&options.context)?;
        let task = self.runtime().spawn(async move {
            let plan = planned(&state, &query, &source, &options).await?;
            Ok(displayable(plan.as_ref()).indent(false).to_string())
        });
        task.await.unwrap_or_else(|error| Err(ErrorCode::UNKNOWN_ERROR.because(error.to_string())))
    }

    fn state(&self, _context: &EvalContext) -> Result<SessionState, SqlError> {
        let pool = QueryPool {
            own: GreedyMemoryPool::new(self.options.query_memory_limit),
            all: self.memory.clone(),
        };
        let top = NonZeroUsize::new(3).expect("three is not zero");
        let pool: Arc<dyn MemoryPool> = Arc::new(TrackConsumersPool::new(pool, top));
        let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
        let runtime: RuntimeEnv = RuntimeEnvBuilder::new()
            .with_memory_pool(pool)
            .with_disk_manager_builder(disk)
            .build()
            .map_err(|error| plan_error(&error))?;
        let mut config =
            SessionConfig::new().with_target_partitions(self.options.threads).with_batch_size(8192);
        let options = config.options_mut();
        options.optimizer.enable_round_robin_repartition = true;
        options.optimizer.prefer_hash_join = true;
        options.optimizer.skip_failed_rules = false;
        options.execution.collect_statistics = true;
        Ok(SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(Arc::new(runtime))
            .with_default_features()
            .with_optimizer_rules(optimizer_rules())
            .with_query_planner(Arc::new(Planner))
            .build())
    }
}

/// DataFusion's rules but the one that puts inner joins back into the order of its own liking: ours comes from statistics.
fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    Optimizer::new().rules.into_iter().filter(|rule| rule.name() != "eliminate_cross_join").collect()
}

impl Drop for Analytics {
    fn drop(&mut self) {
        // Dropping a runtime blocks, which an asynchronous caller must not.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Plans a query: with joins for subqueries as far as they serve, or with none if DataFusion does not take it then.
async fn planned(
    state: &SessionState,
    query: &Arc<BoundQuery>,
    source: &Arc<dyn ScanSource>,
    options: &RunOptions,
) -> Result<Arc<dyn ExecutionPlan>, SqlError> {
    let first = plan_once(state, query, source, options, false).await;
    match first {
        Err(error) if is_unplanned(&error) && has_subqueries(query) => {
            plan_once(state, query, source, options, true).await.map_err(|_| error)
        }
        planned => planned,
    }
}

async fn plan_once(
    state: &SessionState,
    query: &Arc<BoundQuery>,
    source: &Arc<dyn ScanSource>,
    options: &RunOptions,
    apply_all: bool,
) -> Result<Arc<dyn ExecutionPlan>, SqlError> {
    let params = options.params.clone().into();
    let mut lowerer = Lowerer::new(query.clone(), source.clone(), params, options.context.clone());
    lowerer.apply_all = apply_all;
    let logical = lowerer.root()?;
    state.create_physical_plan(&logical).await.map_err(|error| plan_error(&error))
}

/// What DataFusion says of plans that it has no way for.
fn is_unplanned(error: &SqlError) -> bool {
    error.is(ErrorCode::NOT_SUPPORTED_YET) || error.is(ErrorCode::UNKNOWN_ERROR)
}

fn has_subqueries(query: &BoundQuery) -> bool {
    let mut found = false;
    walk::for_each_select(&query.body, &mut |select| found |= !select.subqueries.is_empty());
    found
}

async fn run(
    state: SessionState,
    query: Arc<BoundQuery>,
    source: Arc<dyn ScanSource>,
    options: RunOptions,
    sender: &mpsc::Sender<Result<RecordBatch, SqlError>>,
) -> Result<(), SqlError> {
    let plan = planned(&state, &query, &source, &options).await?;
    let mut stream = execute_stream(plan, state.task_ctx()).map_err(|error| run_error(&error))?;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(|error| run_error(&error))?;
        if batch.num_rows() > 0 && sender.send(Ok(batch)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// A query that is running. Dropping it ends the query.
pub struct QueryRun {
    receiver: mpsc::Receiver<Result<RecordBatch, SqlError>>,
    task: tokio::task::JoinHandle<()>,
}

impl QueryRun {
    /// The next rows, in the order and types of the query's outputs; None after the last.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        match self.receiver.recv().await {
            Some(Ok(batch)) => Ok(Some(batch)),
            Some(Err(error)) => Err(error),
            None => match (&mut self.task).await {
                Err(error) if error.is_panic() => {
                    Err(ErrorCode::UNKNOWN_ERROR.because("Internal error: the query's task panicked"))
                }
                _ => Ok(None),
            },
        }
    }
}

impl Drop for QueryRun {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One query's memory, which also counts for all.
#[derive(Debug)]
struct QueryPool {
    own: GreedyMemoryPool,
    all: Arc<dyn MemoryPool>,
}

impl std::fmt::Display for QueryPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "query pool: {} bytes of {}", self.own.reserved(), self.own)
    }
}

impl MemoryPool for QueryPool {
    fn name(&self) -> &str {
        "query"
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.own.grow(reservation, additional);
        self.all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.own.shrink(reservation, shrink);
        self.all.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<(), DataFusionError> {
        self.own.try_grow(reservation, additional)?;
        self.all.try_grow(reservation, additional).inspect_err(|_| self.own.shrink(reservation, additional))
    }

    fn reserved(&self) -> usize {
        self.own.reserved()
    }
}
