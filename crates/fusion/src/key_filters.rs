//! Scans on a join's probe side that read no rows without a partner.
//!
//! ```text
//!   hash join on k = s.k          reads all of its build side first
//!     ├─ build side               GatherKeys notes which k there are (build_keys.rs)
//!     └─ probe side ─ … ─ scan    drops rows of other k, in the encoded blocks, before anything else of them is decoded
//! ```
//!
//! A scan whose morsel begins before all keys are there gives all rows of that morsel: the join drops them as it would anyway. So
//! what is done here changes no answer whatever the operators' order of work is, provided that the key's column comes to the join
//! from the scan unchanged, and that a row that is missing can make no other appear.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinSide, JoinType, NullEquality, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::build_join_schema;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;

use crate::barrier::Barrier;
use crate::build_keys::{BuildKeys, GatherKeys, are_gathered};
use crate::measure::Measure;
use crate::null_supplying::NullSupplying;
use crate::pass::PassExec;
use crate::scan::ScanExec;

/// Of the values that the probe side's column has, keys are a filter if they are no larger part.
const MOST_OF_VALUES: f64 = 0.6;
/// Where it is not known how many values there are: so many keys at most.
const MOST_KEYS: usize = 1 << 20;
/// Operators between a join and its scans, all together: looking for scans of chains of joins is quadratic without a bound.
const MOST_STEPS: usize = 256;

#[derive(Debug)]
pub(super) struct KeyFilters;

impl PhysicalOptimizerRule for KeyFilters {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|node| {
            let gathering = node.downcast_ref::<HashJoinExec>().map(gathering).transpose()?.flatten();
            Ok(match gathering {
                Some(left) => {
                    let right = node.children()[1].clone();
                    Transformed::yes(replace_children_if_necessary(node, vec![left, right])?)
                }
                None => Transformed::no(node),
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "key_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The join's build side, gathering keys, if its probe side has scans that want them.
fn gathering(join: &HashJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    // Of these, no row without a partner on the build side is given.
    let drops = matches!(
        join.join_type(),
        JoinType::Inner
            | JoinType::Left
            | JoinType::LeftSemi
            | JoinType::LeftAnti
            | JoinType::LeftMark
            | JoinType::RightSemi
    );
    if !drops || join.null_aware || join.null_equality() == NullEquality::NullEqualsNull {
        return Ok(None);
    }
    let mut keys = Vec::new();
    for (build, probe) in join.on() {
        let (Some(build), Some(probe)) = (column_of(build), column_of(probe)) else { continue };
        let (left, right) = (join.left().schema(), join.right().schema());
        let types = [left.field(build).data_type(), right.field(probe).data_type()];
        if types[0] != types[1] || !are_gathered(types[0]) {
            continue;
        }
        let mut search = Search::default();
        search.scans(join.right(), probe);
        search.found.retain(|(scan, field)| scan.may_be_narrowed(*field));
        let Some(known) = search.found.iter().max_by_key(|(scan, _)| scan.rows()) else { continue };
        let (values, expected) = known.0.known_values(known.1);
        let most = values.map_or(MOST_KEYS, |values| (values as f64 * MOST_OF_VALUES) as usize);
        let of_build = Arc::new(BuildKeys::new(expected, most, types[0]));
        search.found.iter().for_each(|(scan, field)| scan.narrow(*field, of_build.clone()));
        keys.push((build, of_build));
    }
    (!keys.is_empty()).then(|| gathered(join.left(), keys)).transpose()
}

/// Below an exchange the rows are still many threads' work, and all have passed when the first thread above has read its last.
fn gathered(
    build: &Arc<dyn ExecutionPlan>,
    keys: Vec<(usize, Arc<BuildKeys>)>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let is_exchange =
        build.is::<RepartitionExec>() || build.is::<CoalescePartitionsExec>() && build.fetch().is_none();
    if is_exchange {
        let input = PassExec::plan(GatherKeys { keys }, build.children()[0].clone());
        return replace_children_if_necessary(build.clone(), vec![input]);
    }
    Ok(PassExec::plan(GatherKeys { keys }, build.clone()))
}

fn column_of(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// A search for the scans that a column comes from.
#[derive(Default)]
struct Search<'p> {
    /// And which of their fields it is.
    found: Vec<(&'p ScanExec, usize)>,
    steps: usize,
}

impl<'p> Search<'p> {
    fn scans(&mut self, node: &'p Arc<dyn ExecutionPlan>, column: usize) {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return;
        }
        if let Some(scan) = node.downcast_ref::<ScanExec>() {
            self.found.push((scan, column));
        } else if let Some(filter) = node.downcast_ref::<FilterExec>() {
            let of_input = filter.projection().as_ref().map_or(column, |projection| projection[column]);
            // What is counted or drawn at random for each row needs them all.
            if filter.fetch().is_none() && !is_volatile(filter.predicate()) {
                self.scans(filter.input(), of_input);
            }
        } else if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            if let Some(of_input) = column_of(&projection.expr()[column].expr)
                && !projection.expr().iter().any(|item| is_volatile(&item.expr))
            {
                self.scans(projection.input(), of_input);
            }
        } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
            let groups = aggregate.group_expr();
            // Without some rows a group is another, but without all of its rows it is not there.
            if groups.is_single()
                && aggregate.limit_options().is_none()
                && let Some((key, _)) = groups.expr().get(column)
                && let Some(of_input) = column_of(key)
            {
                self.scans(aggregate.input(), of_input);
            }
        } else if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            self.join(join, column);
        } else if passes_all(node) {
            for input in node.children() {
                self.scans(input, column);
            }
        }
    }

    /// A join has as few rows of a side that it keeps as that has; of an inner join, a key of one side is one of the other.
    fn join(&mut self, join: &'p HashJoinExec, column: usize) {
        use JoinType::{Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
        let (left, right) = (join.left(), join.right());
        let (_, columns) = build_join_schema(&left.schema(), &right.schema(), join.join_type());
        let of_join = join.projection.as_ref().map_or(column, |projection| projection[column]);
        let Some(of) = columns.get(of_join) else { return };
        let (side, index) = (of.side, of.index);
        let is_kept = match side {
            JoinSide::Left => matches!(join.join_type(), Inner | Left | LeftSemi | LeftAnti | LeftMark),
            JoinSide::Right => matches!(join.join_type(), Inner | Right | RightSemi | RightAnti | RightMark),
            JoinSide::None => false,
        };
        if !is_kept || join.fetch().is_some() {
            return;
        }
        let is_left = side == JoinSide::Left;
        self.scans(if is_left { left } else { right }, index);
        if *join.join_type() != Inner || join.null_equality() == NullEquality::NullEqualsNull {
            return;
        }
        for (a, b) in join.on() {
            let (own, other) = if is_left { (a, b) } else { (b, a) };
            if column_of(own) == Some(index)
                && let Some(other) = column_of(other)
            {
                self.scans(if is_left { right } else { left }, other);
            }
        }
    }
}

/// Whether an operator gives all rows of its inputs with their columns, and looks at none.
fn passes_all(node: &Arc<dyn ExecutionPlan>) -> bool {
    let is_sort = node.is::<SortExec>() || node.is::<CoalescePartitionsExec>();
    (is_sort && node.fetch().is_none())
        || node.is::<RepartitionExec>()
        || node.is::<CooperativeExec>()
        || node.is::<UnionExec>()
        || node.is::<PassExec<Barrier>>()
        || node.is::<PassExec<Measure>>()
        || node.is::<PassExec<NullSupplying>>()
}
