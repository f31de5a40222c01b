//! Rows without columns are a number.
//!
//! Where only the number of rows is wanted, a cross join keeps batches without columns of one side. DataFusion counts no memory for
//! these, yet each takes some, and a join of joins makes any number of them: `SELECT COUNT(*) FROM t a, t b, t c, t d` filled the
//! machine. Added up, they are one batch.

use std::sync::Arc;

use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::{CrossJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use crate::pass::{Pass, PassExec};

/// Puts a [`Count`] under joins that keep rows without columns.
#[derive(Debug)]
pub struct CountRows;

impl PhysicalOptimizerRule for CountRows {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let counted = plan.transform_up(|node| {
            let keeps = node.is::<CrossJoinExec>() || node.is::<NestedLoopJoinExec>();
            let mut children: Vec<_> = node.children().into_iter().cloned().collect();
            match children.first_mut() {
                Some(kept) if keeps && kept.schema().fields().is_empty() => {
                    *kept = PassExec::plan(Count, kept.clone());
                    Ok(Transformed::yes(replace_children_if_necessary(node, children)?))
                }
                _ => Ok(Transformed::no(node)),
            }
        })?;
        Ok(counted.data)
    }

    fn name(&self) -> &str {
        "count_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Its input's rows, which have no columns, in one batch.
#[derive(Debug)]
struct Count;

impl Pass for Count {
    const NAME: &'static str = "CountedExec";

    fn run(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = input.schema();
        let mut input = input.execute(partition, context)?;
        let of = schema.clone();
        let all = async move {
            let mut rows = 0usize;
            while let Some(batch) = input.next().await {
                let more = rows.checked_add(batch?.num_rows());
                rows =
                    more.ok_or_else(|| DataFusionError::Execution("too many rows to be counted".into()))?;
            }
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            Ok(RecordBatch::try_new_with_options(of, Vec::new(), &options)?)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::once(all))))
    }

    fn renewed(&self) -> Self {
        Self
    }
}
