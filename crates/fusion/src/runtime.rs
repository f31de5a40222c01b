//! Where analytics runs: a pool of threads of its own, at a lower priority than transactions, under memory limits.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use avocet_sql::plan::BoundQuery;
use avocet_sql::relational::{self, Environment, Plan};
use avocet_types::Value;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::EvalContext;
use datafusion::execution::SessionState;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::admission::{PATIENCE, Shortage};
use crate::error::{plan_error, run_error};
use crate::lower::Lowerer;
use crate::measure::Measurements;
use crate::method::Method;
use crate::results::ResultBytes;
use crate::setup::Setup;
use crate::source::ScanSource;
use crate::stop::Stop;
use crate::streamed::Streamed;

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
    setup: Arc<Setup>,
    /// Taken only when dropped.
    runtime: Option<Runtime>,
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
    /// What a row of the table with the largest ones takes where it is stored, about.
    pub row_bytes: usize,
    /// The plan to run, if it was made already.
    pub plan: Option<Arc<Plan>>,
    /// Where what each node of the plan does is noted.
    pub measurements: Option<Arc<Measurements>>,
    /// Rows go to a client as they are read, and nothing on the way gathers them: they come in small batches, since several
    /// wait when the client is slow.
    pub streams: bool,
}

/// The niceness of the pool's threads: the kernel then gives them about a tenth of what a transaction's thread gets.
const NICENESS: i32 = 10;

/// The stack of one of those threads. Of what it does not use, nothing but addresses is taken. DataFusion's plans are as deep
/// as the parser lets statements be, and to run them takes some frames for each level.
const STACK: usize = 256 << 20;

impl Analytics {
    pub fn new(options: AnalyticsOptions) -> Result<Self, std::io::Error> {
        let threads = options.threads;
        // What can fail comes first: a caller in asynchronous code must not drop a runtime.
        let setup = Arc::new(Setup::new(options)?);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("analytics")
            .thread_stack_size(STACK)
            .on_thread_start(|| {
                // Without the right to change it, it stays as it is.
                let _ = rustix::process::nice(NICENESS);
            })
            .enable_time()
            .build()?;
        Ok(Self { setup, runtime: Some(runtime) })
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
        let (sender, receiver) = mpsc::channel(2);
        let deadline = options.deadline;
        let setup = self.setup.clone();
        let stop = Arc::new(Stop::after(deadline));
        let asked = stop.clone();
        let task = self.runtime().spawn(async move {
            let run = run(&setup, query, source, options, &asked, &sender);
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
        Ok(QueryRun { receiver, task, stop })
    }

    /// A query's relational plan, for EXPLAIN.
    pub async fn plan(
        &self,
        query: Arc<BoundQuery>,
        source: Arc<dyn ScanSource>,
        options: RunOptions,
    ) -> Result<Arc<Plan>, SqlError> {
        let stop = Arc::new(Stop::after(options.deadline));
        // Whoever drops this waits for it no longer.
        let _abandoned = Abandon(stop.clone());
        let task = self.runtime().spawn(async move { planned(&query, &*source, &options, &stop) });
        task.await.unwrap_or_else(|error| Err(ErrorCode::UNKNOWN_ERROR.because(error.to_string())))
    }
}

/// Abandons a query when it is dropped.
struct Abandon(Arc<Stop>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl Drop for Analytics {
    fn drop(&mut self) {
        // Dropping a runtime blocks, which an asynchronous caller must not.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn planned(
    query: &BoundQuery,
    source: &dyn ScanSource,
    options: &RunOptions,
    stop: &Stop,
) -> Result<Arc<Plan>, SqlError> {
    let environment = Environment {
        statistics: source,
        params: &options.params,
        context: &options.context,
        checkpoint: stop,
    };
    relational::plan(query, environment).map(Arc::new)
}

/// Runs a query; if that took too much memory, again with operators that spill, unless there are rows of it already.
async fn run(
    setup: &Setup,
    query: Arc<BoundQuery>,
    source: Arc<dyn ScanSource>,
    options: RunOptions,
    stop: &Arc<Stop>,
    sender: &mpsc::Sender<Result<RecordBatch, SqlError>>,
) -> Result<(), SqlError> {
    let plan = match options.plan.clone() {
        Some(plan) => plan,
        None => planned(&query, &*source, &options, stop)?,
    };
    let warnings = options.context.warning_count();
    let shortage = Arc::default();
    let mut attempts =
        Attempts { setup, plan, source, options, stop, sender, warnings, sent: 0, shortage, made: 0 };
    let (result, given_back) = attempts.in_turn(Method::InMemory).await;
    if setup.spills() && given_back && attempts.may_begin_anew(&result) {
        return attempts.in_turn(Method::Spilling).await.0;
    }
    result
}

/// The attempts to run one query.
struct Attempts<'r> {
    setup: &'r Setup,
    plan: Arc<Plan>,
    source: Arc<dyn ScanSource>,
    options: RunOptions,
    stop: &'r Arc<Stop>,
    sender: &'r mpsc::Sender<Result<RecordBatch, SqlError>>,
    /// How many there were before.
    warnings: u64,
    /// Batches.
    sent: u64,
    shortage: Arc<Shortage>,
    /// Bytes that expressions make of a row, as far as was met.
    made: usize,
}

/// How it ended, and whether its memory was given back, if it failed for want of some.
type Attempt = (Result<(), SqlError>, bool);

impl Attempts<'_> {
    /// Whether it failed for want of memory, and there are no rows of it yet.
    fn may_begin_anew(&self, result: &Result<(), SqlError>) -> bool {
        self.sent == 0 && result.as_ref().is_err_and(|error| error.is(ErrorCode::OUT_OF_RESOURCES))
    }

    /// Runs it; if others have the memory that it lacks, again when they have given it back, one such query at a time.
    async fn in_turn(&mut self, method: Method) -> Attempt {
        self.setup.admission.pass().await;
        let mut last = self.once(method).await;
        if !self.lacks_memory(&last) {
            return last;
        }
        let Some(mut turn) = self.setup.admission.turn(PATIENCE).await else { return last };
        while self.lacks_memory(&last) && !turn.was_alone() && turn.wait(&self.shortage).await {
            last = self.once(method).await;
        }
        last
    }

    /// Whether it failed since the server's memory had not what it wanted.
    fn lacks_memory(&self, (result, _): &Attempt) -> bool {
        self.shortage.is_there() && self.may_begin_anew(result)
    }

    /// Runs it; if expressions make more of rows than batches are sized for, again with smaller ones.
    async fn once(&mut self, method: Method) -> Attempt {
        loop {
            let results = Arc::new(ResultBytes::new(self.setup.limit(&self.options), self.made));
            let attempt = self.with(method, &results).await;
            match results.outgrown() {
                Some(made) if attempt.1 && self.may_begin_anew(&attempt.0) => self.made = made,
                _ => return attempt,
            }
        }
    }

    async fn with(&mut self, method: Method, results: &Arc<ResultBytes>) -> Attempt {
        self.shortage.clear();
        self.options.context.truncate_warnings(self.warnings);
        let state = match self.setup.state(&self.options, method, self.stop, &self.shortage, self.made) {
            Ok(state) => state,
            Err(error) => return (Err(error), false),
        };
        if let Some(measurements) = &self.options.measurements {
            measurements.begin(state.runtime_env().memory_pool.clone());
        }
        let plan = match self.lowered(&state, method, results).await {
            Ok(plan) => plan,
            Err(error) => return (Err(error), false),
        };
        let streamed = match Streamed::reserve(&state) {
            Ok(streamed) => streamed,
            Err(error) => return (Err(run_error(&error)), true),
        };
        if results.outgrown().is_some() {
            return (Err(run_error(&results.refusal())), true);
        }
        let threads = state.config().target_partitions();
        let reserved = match results.reserve(&state.runtime_env().memory_pool, threads) {
            Ok(reserved) => reserved,
            Err(error) => return (Err(run_error(&error)), true),
        };
        let result = send_rows(plan, &state, self.sender, &mut self.sent, results).await;
        drop((streamed, reserved));
        let given_back = !self.may_begin_anew(&result) || is_given_back(&state).await;
        (result, given_back)
    }
}

impl Attempts<'_> {
    async fn lowered(
        &self,
        state: &SessionState,
        method: Method,
        results: &Arc<ResultBytes>,
    ) -> Result<Arc<dyn ExecutionPlan>, SqlError> {
        let (context, measurements) = (self.options.context.clone(), self.options.measurements.clone());
        let (plan, source, stop) = (self.plan.clone(), self.source.clone(), self.stop.clone());
        let mut lowerer = Lowerer::new(plan, source, context, method, measurements, stop);
        lowerer.results = results.clone();
        let logical = lowerer.root()?;
        state.create_physical_plan(&logical).await.map_err(|error| plan_error(&error))
    }
}

/// How long an attempt's tasks may take to give back what they have, on their own threads.
const GIVING_BACK: Duration = Duration::from_secs(30);

async fn is_given_back(state: &SessionState) -> bool {
    let pool = state.runtime_env().memory_pool.clone();
    let given_back = async {
        while pool.reserved() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(GIVING_BACK, given_back).await.is_ok()
}

/// Runs a plan and sends what comes of it; counts its batches.
async fn send_rows(
    plan: Arc<dyn ExecutionPlan>,
    state: &SessionState,
    sender: &mpsc::Sender<Result<RecordBatch, SqlError>>,
    sent: &mut u64,
    results: &ResultBytes,
) -> Result<(), SqlError> {
    let mut stream = execute_stream(plan, state.task_ctx()).map_err(|error| run_error(&error))?;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(|error| run_error(&error))?;
        if batch.num_rows() > 0 {
            *sent += 1;
            results.note_sent();
            if sender.send(Ok(batch)).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// A query that is running. Dropping it ends the query.
pub struct QueryRun {
    receiver: mpsc::Receiver<Result<RecordBatch, SqlError>>,
    task: tokio::task::JoinHandle<()>,
    stop: Arc<Stop>,
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
        self.stop.abandon();
        self.task.abort();
    }
}
