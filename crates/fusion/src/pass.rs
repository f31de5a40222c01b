//! Operators with one input whose rows they pass on: looked at, counted, gathered or held back, but not made.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};

/// What such an operator does with its input.
pub(super) trait Pass: fmt::Debug + Send + Sync + Sized + 'static {
    const NAME: &'static str;

    /// The rows; those of the input, as they are, unless it says otherwise.
    fn run(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        input.execute(partition, context)
    }

    /// The same for a plan that is made anew.
    fn renewed(&self) -> Self;

    /// Whether the input is to be of one partition.
    fn wants_one_partition(&self) -> bool {
        false
    }

    /// What is known of the rows that it gives, if that is other than what its input tells.
    fn statistics(&self, _schema: &Schema) -> Option<Statistics> {
        None
    }

    /// Whether what the input tells of its rows is true of those that it gives, and is to be asked for.
    fn tells_of_input(&self) -> bool {
        false
    }

    /// Whether what is the same in all rows of the input is to be known of its own rows.
    fn has_constants(&self) -> bool {
        true
    }

    /// Of the rows that it gives: the input's columns, some perhaps nullable that were not.
    fn schema(&self, input: SchemaRef) -> SchemaRef {
        input
    }
}

#[derive(Debug)]
pub(super) struct PassExec<P> {
    pub input: Arc<dyn ExecutionPlan>,
    pub pass: P,
    properties: Arc<PlanProperties>,
}

impl<P: Pass> PassExec<P> {
    pub fn plan(pass: P, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let schema = pass.schema(input.schema());
        let equivalences = match (schema == input.schema(), pass.has_constants()) {
            (true, true) => None,
            (true, false) => {
                let orderings = input.equivalence_properties().oeq_class().iter().cloned();
                Some(EquivalenceProperties::new_with_orderings(schema, orderings))
            }
            (false, _) => Some(EquivalenceProperties::new(schema)),
        };
        let properties = match equivalences {
            None => input.properties().clone(),
            Some(equivalences) => Arc::new(PlanProperties::new(
                equivalences,
                input.output_partitioning().clone(),
                input.pipeline_behavior(),
                input.boundedness(),
            )),
        };
        Arc::new(Self { input, pass, properties })
    }
}

impl<P: Pass> DisplayAs for PassExec<P> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", P::NAME, self.pass)
    }
}

impl<P: Pass> ExecutionPlan for PassExec<P> {
    fn name(&self) -> &str {
        P::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![match self.pass.wants_one_partition() {
            true => Distribution::SinglePartition,
            false => Distribution::UnspecifiedDistribution,
        }]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| self.input.clone());
        Ok(Self::plan(self.pass.renewed(), input))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![if self.pass.tells_of_input() { ChildStats::At(partition) } else { ChildStats::Skip }]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let schema = self.schema();
        let of_input = || inputs.first().filter(|_| self.pass.tells_of_input()).cloned();
        Ok(match self.pass.statistics(&schema) {
            Some(statistics) => Arc::new(statistics),
            None => of_input().unwrap_or_else(|| Arc::new(Statistics::new_unknown(&schema))),
        })
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.pass.run(&self.input, partition, context)
    }
}
