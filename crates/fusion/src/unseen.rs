//! UNION DISTINCT of a recursive query, by MySQL's equality: a node around the seed and the step that lets only those rows pass whose keys
//! were not there before. DataFusion's own compares bytes, and `'a'` and `'A'` are other bytes.
//!
//! ```text
//!  seed ─▶ columns, keys ─▶ unseen ─▶ columns ─┐
//!                             │ keys           ├─▶ recursive query
//!  step ─▶ columns, keys ─▶ unseen ─▶ columns ─┘
//! ```

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::row::{RowConverter, SortField};
use datafusion::common::{HashSet, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use parking_lot::Mutex;

use crate::pass::{Pass, PassExec};
use crate::pass_node::{LogicalPass, PassNode};

/// What a key takes in the set beside its bytes.
const KEY_OVERHEAD: usize = 2 * size_of::<Box<[u8]>>();

/// The keys that were there, of a seed and its step.
#[derive(Clone, Debug, Default)]
pub struct Keys(Arc<Mutex<Option<Seen>>>);

impl Keys {
    /// The logical node: of the input's rows those whose columns from `keys_at` on are new.
    pub fn unseen(&self, input: LogicalPlan, keys_at: usize) -> Result<LogicalPlan> {
        PassNode::plan(Unseen { keys_at, keys: self.clone() }, input)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Unseen {
    keys_at: usize,
    /// Kept when the plan is reset for its next run.
    keys: Keys,
}

impl PartialEq for Unseen {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.keys.0, &other.keys.0) && self.keys_at == other.keys_at
    }
}

impl Eq for Unseen {}

impl Hash for Unseen {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.keys_at.hash(state);
    }
}

impl LogicalPass for Unseen {
    const NODE: &'static str = "Unseen";
}

impl Pass for Unseen {
    const NAME: &'static str = "UnseenExec";

    fn run(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (keys, keys_at) = (self.keys.clone(), self.keys_at);
        let rows = input.execute(partition, context.clone())?;
        let unseen = rows.map(move |batch| {
            let batch = batch?;
            let columns = &batch.columns()[keys_at..];
            let mut seen = keys.0.lock();
            let seen = match &mut *seen {
                Some(seen) => seen,
                none => none.insert(Seen::new(columns, context.memory_pool())?),
            };
            seen.unseen(&batch, columns)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(input.schema(), unseen)))
    }

    fn renewed(&self) -> Self {
        self.clone()
    }
}

#[derive(Debug)]
struct Seen {
    converter: RowConverter,
    keys: HashSet<Box<[u8]>>,
    memory: MemoryReservation,
}

impl Seen {
    fn new(columns: &[ArrayRef], pool: &Arc<dyn MemoryPool>) -> Result<Self> {
        let fields = columns.iter().map(|column| SortField::new(column.data_type().clone()));
        Ok(Self {
            converter: RowConverter::new(fields.collect())?,
            keys: HashSet::default(),
            memory: MemoryConsumer::new("rows of UNION DISTINCT").register(pool),
        })
    }

    fn unseen(&mut self, batch: &RecordBatch, columns: &[ArrayRef]) -> Result<RecordBatch> {
        let rows = self.converter.convert_columns(columns)?;
        let before = self.memory.size();
        self.memory.try_grow(rows.size() + rows.num_rows() * KEY_OVERHEAD)?;
        let mut kept = 0;
        let mut is_new = |key: &[u8]| {
            let is_new = !self.keys.contains(key);
            if is_new {
                self.keys.insert(key.into());
                kept += key.len() + KEY_OVERHEAD;
            }
            is_new
        };
        let new: BooleanArray = rows.iter().map(|row| Some(is_new(row.as_ref()))).collect();
        // The rows themselves go with this batch.
        self.memory.resize(before + kept);
        Ok(filter_record_batch(batch, &new)?)
    }
}

/// A recursive query begins, perhaps anew: nothing was seen.
pub(super) fn begin(plan: &Arc<dyn ExecutionPlan>) {
    if let Some(unseen) = plan.downcast_ref::<PassExec<Unseen>>() {
        *unseen.pass.keys.0.lock() = None;
    }
    plan.children().into_iter().for_each(begin);
}
