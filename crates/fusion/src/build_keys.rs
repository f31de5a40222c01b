//! Keys of a join's build side, gathered on their way to its hash table, for the scans of its probe side.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow::record_batch::RecordBatch;
use avocet_engine::{KeySet, KeySetBuilder};
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::pass::Pass;

/// Whether columns of such types can be keys that are gathered.
pub(super) fn are_gathered(ty: &DataType) -> bool {
    ty.is_integer() || *ty == DataType::Date32
}

/// The keys of one column.
#[derive(Debug)]
pub(super) struct BuildKeys {
    /// Of the probe side's column; with more keys than `most`, a scan drops too few rows.
    expected: Option<RangeInclusive<i64>>,
    most: usize,
    is_u64: bool,
    gathered: Mutex<Gathered>,
    given_up: AtomicBool,
    set: OnceLock<Arc<KeySet>>,
    /// Told when there is a set, or will be none.
    settled: Notify,
}

#[derive(Default)]
struct Gathered {
    /// Of the build side's partitions, those that have begun to give rows.
    begun: Vec<bool>,
    /// Of the build side's partitions, those that have ended.
    ended: Vec<bool>,
    keys: Option<KeySetBuilder>,
    memory: Option<MemoryReservation>,
}

impl std::fmt::Debug for Gathered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.ended)
    }
}

impl Gathered {
    fn are_under_way(&self) -> bool {
        !self.begun.is_empty() && self.begun.iter().all(|begun| *begun)
    }

    /// Adds what a partition has gathered, and its part of the memory; false if that is too much.
    fn add(&mut self, keys: KeySetBuilder, memory: MemoryReservation) -> bool {
        let (Some(all), Some(of_all)) = (&mut self.keys, &self.memory) else {
            (self.keys, self.memory) = (Some(keys), Some(memory));
            return true;
        };
        all.merge(keys) && of_all.try_resize(all.bytes()).is_ok()
    }

    /// The set; `None` if it is too large.
    fn finish(&mut self) -> Option<KeySet> {
        let set = self.keys.take()?.finish()?;
        self.memory.as_ref().is_some_and(|memory| memory.try_resize(set.bytes()).is_ok()).then_some(set)
    }
}

/// A scan waits so long for the keys of the last partitions.
const PATIENCE: Duration = Duration::from_millis(100);

impl BuildKeys {
    pub fn new(expected: Option<RangeInclusive<i64>>, most: usize, ty: &DataType) -> Self {
        Self {
            expected,
            most,
            is_u64: *ty == DataType::UInt64,
            gathered: Mutex::default(),
            given_up: AtomicBool::new(false),
            set: OnceLock::new(),
            settled: Notify::new(),
        }
    }

    /// The keys of all rows of the build side, once these have passed and if they are few.
    pub fn set(&self) -> Option<&Arc<KeySet>> {
        self.set.get()
    }

    fn is_wanted(&self) -> bool {
        !self.given_up.load(Ordering::Relaxed) && self.set.get().is_none()
    }

    fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
        *self.gathered.lock() = Gathered::default();
        self.settled.notify_waiters();
    }

    /// Waits until it is known which keys there are, if all partitions of the build side are on their way: one partition's probe
    /// side may begin when its own build side has ended, and the others are about to. Not for long: were something wrong with that,
    /// all rows would be read.
    pub async fn settle(&self) {
        let settled = self.settled.notified();
        if self.is_wanted() && self.gathered.lock().are_under_way() {
            let _ = tokio::time::timeout(PATIENCE, settled).await;
        }
    }

    fn begin(&self, partition: usize, partitions: usize) {
        let mut gathered = self.gathered.lock();
        gathered.begun.resize(partitions, false);
        gathered.begun[partition] = true;
    }

    fn builder(&self) -> KeySetBuilder {
        KeySetBuilder::new(self.expected.clone(), self.most, self.is_u64)
    }

    /// A partition has ended, and all others with it perhaps.
    fn end(&self, partition: usize, partitions: usize, keys: KeySetBuilder, memory: MemoryReservation) {
        let mut gathered = self.gathered.lock();
        gathered.ended.resize(partitions, false);
        // The operator may be run again; its rows are the same.
        if self.given_up.load(Ordering::Relaxed) || std::mem::replace(&mut gathered.ended[partition], true) {
            return;
        }
        if !gathered.add(keys, memory) {
            drop(gathered);
            return self.give_up();
        }
        if gathered.ended.iter().all(|ended| *ended) {
            match gathered.finish() {
                None => {
                    drop(gathered);
                    self.give_up();
                }
                Some(set) => {
                    let _ = self.set.set(Arc::new(set));
                    self.settled.notify_waiters();
                }
            }
        }
    }
}

/// Passes the rows of a build side on, and notes their keys.
#[derive(Debug)]
pub(super) struct GatherKeys {
    /// Columns of the rows.
    pub keys: Vec<(usize, Arc<BuildKeys>)>,
}

impl Pass for GatherKeys {
    const NAME: &'static str = "GatherKeysExec";

    fn run(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = input.output_partitioning().partition_count();
        let part = |(column, keys): &(usize, Arc<BuildKeys>)| Part {
            column: *column,
            builder: keys.is_wanted().then(|| keys.builder()),
            keys: keys.clone(),
            memory: MemoryConsumer::new("keys of a join").register(context.memory_pool()),
        };
        let parts: Vec<_> = self.keys.iter().map(part).collect();
        let schema = input.schema();
        let rows = input.execute(partition, context)?;
        let mut has_begun = false;
        let stream = futures::stream::try_unfold((rows, parts), move |(mut rows, mut parts)| {
            if !std::mem::replace(&mut has_begun, true) {
                parts.iter().for_each(|part: &Part| part.keys.begin(partition, partitions));
            }
            async move {
                match rows.next().await {
                    Some(batch) => {
                        let batch = batch?;
                        parts.iter_mut().for_each(|part| part.add(&batch));
                        Ok(Some((batch, (rows, parts))))
                    }
                    None => {
                        parts.into_iter().for_each(|part| part.end(partition, partitions));
                        Ok(None)
                    }
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }

    /// The scans know these.
    fn renewed(&self) -> Self {
        Self { keys: self.keys.clone() }
    }
}

/// What one partition gathers of a column.
struct Part {
    column: usize,
    keys: Arc<BuildKeys>,
    /// Until there are too many.
    builder: Option<KeySetBuilder>,
    memory: MemoryReservation,
}

impl Part {
    fn add(&mut self, batch: &RecordBatch) {
        let Some(builder) = &mut self.builder else { return };
        let column = batch.column(self.column);
        let fits = self.keys.is_wanted()
            && self.memory.try_resize(builder.bytes_with(column.len())).is_ok()
            && add_words(builder, column);
        if !fits {
            self.builder = None;
            self.memory.free();
            self.keys.give_up();
        }
    }

    fn end(self, partition: usize, partitions: usize) {
        if let Some(builder) = self.builder {
            self.keys.end(partition, partitions, builder, self.memory);
        }
    }
}

/// Adds an array's values but its NULLs, which are equal to none; whether there are not too many now.
fn add_words(to: &mut KeySetBuilder, array: &ArrayRef) -> bool {
    fn add<T: ArrowPrimitiveType>(
        to: &mut KeySetBuilder,
        array: &PrimitiveArray<T>,
        word: impl Fn(T::Native) -> i64,
    ) -> bool {
        match array.null_count() {
            0 => to.add(array.values().iter().map(|value| word(*value))),
            _ => to.add(array.iter().flatten().map(word)),
        }
    }
    match array.data_type() {
        DataType::Int8 => add(to, array.as_primitive::<Int8Type>(), i64::from),
        DataType::Int16 => add(to, array.as_primitive::<Int16Type>(), i64::from),
        DataType::Int32 => add(to, array.as_primitive::<Int32Type>(), i64::from),
        DataType::Int64 => add(to, array.as_primitive::<Int64Type>(), i64::from),
        DataType::UInt8 => add(to, array.as_primitive::<UInt8Type>(), i64::from),
        DataType::UInt16 => add(to, array.as_primitive::<UInt16Type>(), i64::from),
        DataType::UInt32 => add(to, array.as_primitive::<UInt32Type>(), i64::from),
        DataType::UInt64 => add(to, array.as_primitive::<UInt64Type>(), KeySet::word_of_u64),
        DataType::Date32 => add(to, array.as_primitive::<Date32Type>(), i64::from),
        _ => false,
    }
}
