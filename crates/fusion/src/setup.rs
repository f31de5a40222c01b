//! What queries are planned and run with: DataFusion's settings, its rules, memory, and files for what does not fit.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use avocet_types::error::SqlError;
use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{MemoryPool, TrackConsumersPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::optimizer::OptimizerRule;
use datafusion::optimizer::common_subexpr_eliminate::CommonSubexprEliminate;
use datafusion::optimizer::eliminate_duplicated_expr::EliminateDuplicatedExpr;
use datafusion::optimizer::eliminate_filter::EliminateFilter;
use datafusion::optimizer::eliminate_group_by_constant::EliminateGroupByConstant;
use datafusion::optimizer::eliminate_join::EliminateJoin;
use datafusion::optimizer::eliminate_limit::EliminateLimit;
use datafusion::optimizer::eliminate_outer_join::EliminateOuterJoin;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::optimize_unions::OptimizeUnions;
use datafusion::optimizer::propagate_empty_relation::PropagateEmptyRelation;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::push_down_limit::PushDownLimit;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::single_distinct_to_groupby::SingleDistinctToGroupBy;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionConfig;

use crate::admission::{Admission, Shortage};
use crate::apply::Planner;
use crate::arms::UnionsInTurn;
use crate::counted::CountRows;
use crate::error::plan_error;
use crate::expected;
use crate::key_filters::KeyFilters;
use crate::memory::{QueryPool, Sizing};
use crate::method::Method;
use crate::null_supplying::with_null_supplying;
use crate::projections;
use crate::recursion::BatchRecursions;
use crate::roles::Roles;
use crate::runtime::{AnalyticsOptions, RunOptions};
use crate::spilling::{BeginAnew, OperatorsThatSpill};
use crate::stop::{Stop, asking, asking_physical};
use crate::streamed::Streamed;
use crate::windows::CountWindows;
use crate::yielding::{FiltersAsk, JoinsYield};

/// Spilled runs that are merged at once, at most: without a bound a merge takes what memory there is, and leaves
/// nothing to the merges of other threads.
const MERGED_AT_ONCE: usize = 16;

pub(super) struct Setup {
    options: AnalyticsOptions,
    disk: Arc<DiskManager>,
    pub admission: Admission,
}

impl Setup {
    pub fn new(options: AnalyticsOptions) -> Result<Self, std::io::Error> {
        let disk = Arc::new(spill_files(options.spill.as_deref())?);
        let admission = Admission::new(options.memory.clone());
        Ok(Self { options, disk, admission })
    }

    /// Whether there is anything to spill to.
    pub fn spills(&self) -> bool {
        self.options.spill.is_some()
    }

    /// What a query may take, in bytes.
    pub fn limit(&self, options: &RunOptions) -> usize {
        options.memory_limit.unwrap_or(self.options.query_memory_limit)
    }

    /// What a query is planned and run with, whose expressions make so many bytes of a row.
    pub fn state(
        &self,
        options: &RunOptions,
        method: Method,
        stop: &Arc<Stop>,
        shortage: &Arc<Shortage>,
        made: usize,
    ) -> Result<SessionState, SqlError> {
        let limit = self.limit(options);
        let spills = self.spills().then_some(method);
        let query = QueryPool::new(limit, spills, self.options.memory.clone(), shortage.clone());
        let top = NonZeroUsize::new(3).expect("three is not zero");
        let pool: Arc<dyn MemoryPool> = Arc::new(TrackConsumersPool::new(query.clone(), top));
        let runtime =
            RuntimeEnvBuilder::new().with_memory_pool(pool).build().map_err(|error| plan_error(&error))?;
        let runtime = RuntimeEnv { disk_manager: self.disk.clone(), ..runtime };
        let sizing = match method {
            Method::InMemory => Sizing::new(limit, self.options.threads),
            Method::Spilling => Sizing::of_merges(limit),
        };
        let mut sizing = sizing.for_rows_of(options.row_bytes, made, limit);
        let streamed = options.streams.then(|| Streamed::new(limit, sizing.partitions));
        if let Some(streamed) = &streamed {
            sizing.batch_rows = streamed.rows_of(options.row_bytes + made).min(sizing.batch_rows);
        }
        let mut config =
            SessionConfig::new().with_target_partitions(sizing.partitions).with_batch_size(sizing.batch_rows);
        config = config.with_extension(Arc::new(query));
        if let Some(streamed) = streamed {
            config = config.with_extension(Arc::new(streamed));
        }
        let options = config.options_mut();
        // Scans have as many partitions as there are threads anyway; and what is spread behind a sort, for a
        // projection's sake, would come back in any order.
        options.optimizer.enable_round_robin_repartition = false;
        options.optimizer.prefer_hash_join = true;
        // Of these there are own ones (key_filters.rs).
        options.optimizer.enable_join_dynamic_filter_pushdown = false;
        options.optimizer.skip_failed_rules = false;
        options.execution.collect_statistics = true;
        // What CASE tells of NULLs is another thing in a logical expression than in the operator's.
        options.execution.skip_physical_aggregate_schema_check = true;
        options.execution.sort_spill_reservation_bytes = sizing.sort_reservation;
        options.execution.sort_in_place_threshold_bytes = sizing.sort_in_place;
        // The new implementations do not keep back what they need to sort the groups that they spill.
        options.execution.enable_migration_aggregate = false;
        let rules = projections::in_place(PhysicalOptimizer::new().rules);
        let mut physical = expected::forgotten(with_null_supplying(rules));
        if method == Method::InMemory {
            physical.push(Arc::new(KeyFilters));
        }
        physical.push(Arc::new(UnionsInTurn));
        physical.push(Arc::new(CountRows));
        physical.push(Arc::new(BatchRecursions));
        physical.push(Arc::new(CountWindows));
        physical.push(match method {
            Method::InMemory => Arc::new(BeginAnew) as _,
            Method::Spilling => Arc::new(OperatorsThatSpill) as _,
        });
        physical.push(Arc::new(FiltersAsk(stop.clone())));
        physical.push(Arc::new(JoinsYield));
        physical.push(Arc::new(Roles));
        Ok(SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(Arc::new(runtime))
            .with_optimizer_rules(asking(optimizer_rules(), stop))
            .with_physical_optimizer_rules(asking_physical(physical, stop))
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

/// DataFusion's rules but those that join tables in an order of their own liking, and those that make joins of subqueries:
/// there are none.
fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    vec![
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(ReplaceDistinctWithAggregate::new()),
        Arc::new(EliminateJoin::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(EliminateFilter::new()),
        Arc::new(EliminateLimit::new()),
        Arc::new(PropagateEmptyRelation::new()),
        Arc::new(EliminateOuterJoin::new()),
        Arc::new(PushDownLimit::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(SingleDistinctToGroupBy::new()),
        Arc::new(EliminateGroupByConstant::new()),
        Arc::new(CommonSubexprEliminate::new()),
        Arc::new(OptimizeProjections::new()),
    ]
}
