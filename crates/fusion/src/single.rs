//! A scalar subquery's rows, of which there may be one: error 1242 for more.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use avocet_types::error::ErrorCode;
use datafusion::common::{DFSchema, DFSchemaRef, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use crate::pass::Pass;
use crate::pass_node::LogicalPass;
use crate::udf::external;

/// Its columns are nullable, as there may be no row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SingleRow;

impl LogicalPass for SingleRow {
    const NODE: &'static str = "SingleRow";

    fn columns(input: &DFSchemaRef) -> Result<DFSchemaRef> {
        let nullable = |field: &Field| Arc::new(field.clone().with_nullable(true));
        let fields = input.iter().map(|(qualifier, field)| (qualifier.cloned(), nullable(field)));
        DFSchema::new_with_metadata(fields.collect(), input.metadata().clone()).map(Arc::new)
    }
}

impl Pass for SingleRow {
    const NAME: &'static str = "SingleRowExec";

    fn run(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = self.schema(input.schema());
        let of = schema.clone();
        let mut rows = 0;
        let batches = input.execute(partition, context)?.map(move |batch| {
            let batch = batch?;
            rows += batch.num_rows();
            match rows {
                0 | 1 => Ok(batch.with_schema(of.clone())?),
                _ => Err(external(ErrorCode::SUBQUERY_NO_1_ROW.with(&[]))),
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn renewed(&self) -> Self {
        Self
    }

    fn wants_one_partition(&self) -> bool {
        true
    }

    fn schema(&self, input: SchemaRef) -> SchemaRef {
        let fields = input.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), input.metadata().clone()))
    }
}
