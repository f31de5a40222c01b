//! Where analytics runs: a pool of threads of its own, at a lower priority than transactions, under memory limits.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use avocet_types::Value;
use avocet_types::expr::EvalContext;
use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{MemoryPool, TrackConsumersPool};
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
use crate::df::memory::{QueryPool, Sizing};
use crate::df::source::ScanSource;
use crate::df::yielding::JoinsYield;
use crate::error::{ErrorCode, SqlError};
use crate::plan::BoundQuery;

#[derive(Clone)]
pub struct AnalyticsOptions {
    pub threads: usize,
    /// What all queries together take their memory from.
    pub memory: Arc<dyn MemoryPool>,
    /// For one query, in bytes, unless it asks for another limit.
    pub query_memory_limit: usize,
    /// Where operators put what does not fit into memory; without it queries fail at their limit.
    pub spill: Option<PathBuf>,
}

impl AnalyticsOptions {
    /// As many threads as the machine has, and this memory.
    pub fn new(memory: Arc<dyn MemoryPool>, query_memory_limit: usize) -> Self {
        let threads = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
        Self { threads, memory, query_memory_limit, spill: None }
    }
}

/// The engine for analytic queries. One per server.
pub struct Analytics {
    options: AnalyticsOptions,
    /// Taken only when dropped.
    runtime: Option<Runtime>,
    disk: Arc<DiskManager>,
}

/// What one run of a query works with.
pub struct RunOptions {
    /// Values of the `?` parameters.
    pub params: Vec<Value>,
    pub context: Arc<EvalContext>,
    /// After this time the query ends with error 3024.
    pub deadline: Option<Duration>,
    /// Instead of the usual limit for one query, in bytes.
    pub memory_limit: Option<usize>,
}

/// The niceness of the pool's threads: the kernel then gives them about a tenth of what a transaction's thread gets.
const NICENESS: i32 = 10;

/// Spilled runs that are merged at once, at most: without a bound a merge takes what memory there is, and leaves
/// nothing to the merges of other threads.
const MERGED_AT_ONCE: usize = 16;

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
        let disk = Arc::new(spill_files(options.spill.as_deref())?);
        Ok(Self { options, runtime: Some(runtime), disk })
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
        let state = self.state(&options)?;
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
        let state = self.state(&options)?;
        let task = self.runtime().spawn(async move {
            let plan = planned(&state, &query, &source, &options).await?;
            Ok(displayable(plan.as_ref()).indent(false).to_string())
        });
        task.await.unwrap_or_else(|error| Err(ErrorCode::UNKNOWN_ERROR.because(error.to_string())))
    }

    fn state(&self, options: &RunOptions) -> Result<SessionState, SqlError> {
        let limit = options.memory_limit.unwrap_or(self.options.query_memory_limit);
        let spills = self.options.spill.is_some();
        let pool = QueryPool::new(limit, spills, self.options.memory.clone());
        let top = NonZeroUsize::new(3).expect("three is not zero");
        let pool: Arc<dyn MemoryPool> = Arc::new(TrackConsumersPool::new(pool, top));
        let runtime =
            RuntimeEnvBuilder::new().with_memory_pool(pool).build().map_err(|error| plan_error(&error))?;
        let runtime = RuntimeEnv { disk_manager: self.disk.clone(), ..runtime };
        let sizing = Sizing::new(limit, self.options.threads);
        let mut config =
            SessionConfig::new().with_target_partitions(sizing.partitions).with_batch_size(sizing.batch_rows);
        let options = config.options_mut();
        // Scans have as many partitions as there are threads anyway; and what is spread behind a sort, for a
        // projection's sake, would come back in any order.
        options.optimizer.enable_round_robin_repartition = false;
        options.optimizer.prefer_hash_join = true;
        options.optimizer.skip_failed_rules = false;
        options.execution.collect_statistics = true;
        options.execution.sort_spill_reservation_bytes = sizing.sort_reservation;
        options.execution.sort_in_place_threshold_bytes = sizing.sort_in_place;
        // The new implementations do not keep back what they need to sort the groups that they spill.
        options.execution.enable_migration_aggregate = false;
        Ok(SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(Arc::new(runtime))
            .with_default_features()
            .with_optimizer_rules(optimizer_rules())
            .with_physical_optimizer_rule(Arc::new(JoinsYield))
            .with_query_planner(Arc::new(Planner))
            .build())
    }
}

/// Files for what does not fit into memory, in an empty folder: what an earlier process left there is removed.
fn spill_files(folder: Option<&Path>) -> Result<DiskManager, std::io::Error> {
    let mode = match folder {
        None => DiskManagerMode::Disabled,
        Some(folder) => {
            if folder.exists() {
                std::fs::remove_dir_all(folder)?;
            }
            std::fs::create_dir_all(folder)?;
            DiskManagerMode::Directories(vec![folder.to_path_buf()])
        }
    };
    let builder = DiskManagerBuilder::default().with_mode(mode).with_max_spill_merge_fan_in(MERGED_AT_ONCE);
    builder.build().map_err(std::io::Error::other)
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
