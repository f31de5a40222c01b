//! EXPLAIN ANALYZE: what each node of the relational plan does while it runs.
//!
//! A node around each lowered operator counts its rows and times, and has all that runs up to the nodes of its inputs take
//! memory in its name. Conditions and limits pass through it as if it were not there.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use avocet_sql::relational::{Measured, NodeId};
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;

use crate::pass::Pass;
use crate::pass_node::{LogicalPass, PassNode};
use crate::pools::with_pool;

/// What the nodes of a plan did.
#[derive(Debug, Default)]
pub struct Measurements {
    nodes: Mutex<HashMap<NodeId, Node>>,
    /// Where the query takes its memory from.
    pool: Mutex<Option<Arc<dyn MemoryPool>>>,
}

#[derive(Debug, Default)]
struct Node {
    begun: u64,
    partitions: u64,
    rows: u64,
    first: Duration,
    all: Duration,
    reserved: usize,
    peak: usize,
}

impl Measurements {
    /// A run begins, perhaps not the first.
    pub fn begin(&self, pool: Arc<dyn MemoryPool>) {
        self.nodes.lock().clear();
        *self.pool.lock() = Some(pool);
    }

    /// By node: what EXPLAIN shows.
    pub fn measured(&self) -> HashMap<NodeId, Measured> {
        let nodes = self.nodes.lock();
        let measured = nodes.iter().map(|(id, node)| {
            let loops = (node.begun / node.partitions.max(1)).max(1);
            let average = |time: Duration| time.as_secs_f64() * 1e3 / node.begun.max(1) as f64;
            let (first_ms, all_ms) = (average(node.first), average(node.all));
            let rows = node.rows as f64 / loops as f64;
            (*id, Measured { rows, loops, first_ms, all_ms, memory: Some(node.peak as u64) })
        });
        measured.collect()
    }

    fn node(&self, id: NodeId, note: impl FnOnce(&mut Node)) {
        note(self.nodes.lock().entry(id).or_default());
    }
}

#[derive(Clone)]
pub(super) struct Measure {
    id: NodeId,
    measurements: Arc<Measurements>,
}

impl Measure {
    pub fn plan(input: LogicalPlan, id: NodeId, measurements: Arc<Measurements>) -> Result<LogicalPlan> {
        PassNode::plan(Self { id, measurements }, input)
    }
}

impl PartialEq for Measure {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Measure {}

impl Hash for Measure {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl LogicalPass for Measure {
    const NODE: &'static str = "Measured";
    const IS_TRANSPARENT: bool = true;
}

impl fmt::Debug for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id.0)
    }
}

impl Pass for Measure {
    const NAME: &'static str = "MeasuredExec";

    fn run(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = input.output_partitioning().partition_count() as u64;
        self.measurements.node(self.id, |node| {
            node.begun += 1;
            node.partitions = partitions;
        });
        let pool = self.measurements.pool.lock().clone();
        let pool = pool.unwrap_or_else(|| context.memory_pool().clone());
        let pool = NodePool { pool, id: self.id, measurements: self.measurements.clone() };
        let begin = Instant::now();
        let input = input.execute(partition, with_pool(&context, Arc::new(pool)))?;
        let time = begin.elapsed();
        Ok(Box::pin(Watched { input, of: self.clone(), time, has_first: false, rows: 0 }))
    }

    /// What is measured is the plan that is run without.
    fn tells_of_input(&self) -> bool {
        true
    }

    fn renewed(&self) -> Self {
        self.clone()
    }
}

/// The rows of one partition on their way.
struct Watched {
    input: SendableRecordBatchStream,
    of: Measure,
    time: Duration,
    has_first: bool,
    rows: u64,
}

impl Watched {
    fn note(&mut self) {
        let (rows, time) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.time));
        self.of.measurements.node(self.of.id, |node| {
            node.rows += rows;
            node.all += time;
        });
    }
}

impl Stream for Watched {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let begin = Instant::now();
        let polled = self.input.poll_next_unpin(context);
        self.time += begin.elapsed();
        if let Poll::Ready(Some(Ok(batch))) = &polled {
            self.rows += batch.num_rows() as u64;
        }
        if polled.is_ready() && !self.has_first {
            self.has_first = true;
            let time = self.time;
            self.of.measurements.node(self.of.id, |node| node.first += time);
        }
        if matches!(polled, Poll::Ready(None)) {
            self.note();
        }
        polled
    }
}

impl RecordBatchStream for Watched {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.note();
    }
}

/// The query's memory, as one node takes it.
#[derive(Debug)]
struct NodePool {
    pool: Arc<dyn MemoryPool>,
    id: NodeId,
    measurements: Arc<Measurements>,
}

impl NodePool {
    fn note(&self, more: usize, less: usize) {
        self.measurements.node(self.id, |node| {
            node.reserved = (node.reserved + more).saturating_sub(less);
            node.peak = node.peak.max(node.reserved);
        });
    }
}

impl fmt::Display for NodePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}

impl MemoryPool for NodePool {
    fn name(&self) -> &str {
        "node"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
        self.note(additional, 0);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
        self.note(0, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.pool.try_grow(reservation, additional)?;
        self.note(additional, 0);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }
}
