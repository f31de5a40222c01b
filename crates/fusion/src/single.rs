//! A scalar subquery's rows, of which there may be one: error 1242 for more.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use avocet_types::error::{ErrorCode, SqlError};
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{self as df, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use crate::names::df_result;
use crate::pass::{Pass, PassExec};
use crate::udf::external;

/// The logical node. Its columns are nullable, as there may be no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleRowNode {
    input: LogicalPlan,
    schema: DFSchemaRef,
}

impl SingleRowNode {
    pub fn plan(input: LogicalPlan) -> std::result::Result<LogicalPlan, SqlError> {
        let node = df_result(Self::new(input))?;
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
    }

    fn new(input: LogicalPlan) -> Result<Self> {
        let nullable = |field: &Field| Arc::new(field.clone().with_nullable(true));
        let fields = input.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), nullable(field)));
        let schema = DFSchema::new_with_metadata(fields.collect(), input.schema().metadata().clone())?;
        Ok(Self { input, schema: Arc::new(schema) })
    }

    pub fn physical(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        PassExec::plan(SingleRow, input)
    }
}

impl PartialOrd for SingleRowNode {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        if self == other { Some(std::cmp::Ordering::Equal) } else { None }
    }
}

impl Hash for SingleRowNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
    }
}

impl UserDefinedLogicalNodeCore for SingleRowNode {
    fn name(&self) -> &str {
        "SingleRow"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<df::Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SingleRow")
    }

    fn with_exprs_and_inputs(&self, _: Vec<df::Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let input =
            inputs.pop().ok_or_else(|| DataFusionError::Internal("SingleRow without input".into()))?;
        Self::new(input)
    }
}

#[derive(Debug)]
struct SingleRow;

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
