//! Analytics: bound queries on DataFusion.
//!
//! ```text
//!  BoundQuery ─lower.rs─▶ LogicalPlan ─DataFusion's optimizer─▶ ExecutionPlan ─▶ stream of RecordBatch
//!     joins.rs       inner joins: estimate.rs, then join_order.rs   │
//!     expr.rs        MySQL's semantics, natively or by EvalUdf     ├─ scan.rs   morsels of a snapshot
//!     aggregate.rs   sums that can not overflow, collations        ├─ apply.rs  subqueries, row by row
//!     frame.rs       OVER                                          ├─ windows.rs   window functions, partition by partition
//!     distinct.rs    DISTINCT aggregates in plans that spill       ├─ spilling.rs  operators that spill
//!     shared.rs      what is read several times and run once       │
//!     subquery.rs    joins where they are right, else Apply        └─ runtime.rs threads, deadline; memory.rs, admission.rs
//! ```

mod admission;
mod aggregate;
mod apply;
mod compact;
mod counted;
mod depth;
mod distinct;
mod engine_memory;
mod engine_source;
mod error;
mod estimate;
mod expr;
mod frame;
mod join_order;
mod joins;
mod lookahead;
mod lower;
mod memory;
mod merge_joins;
mod recursion;
mod results;
mod runtime;
mod scan;
mod setup;
mod shared;
pub mod source;
mod spilling;
mod statistics;
mod stop;
mod streamed;
mod subquery;
mod udaf;
mod udf;
mod windows;
mod yielding;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use engine_memory::EngineMemory;
pub use engine_source::{EngineSource, VirtualRows};
pub use runtime::{Analytics, AnalyticsOptions, QueryRun, RunOptions};
pub use source::{ColumnPredicate, ColumnSample, MorselReader, MorselScan, ScanRequest, ScanSource};
pub use statistics::statistics_of;
