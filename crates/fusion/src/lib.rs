//! Analytics: relational plans on DataFusion.
//!
//! ```text
//!  relational::Plan ─lower.rs─▶ LogicalPlan ─DataFusion's optimizer─▶ ExecutionPlan ─▶ stream of RecordBatch
//!     joins.rs       joins, set operations                          │
//!     nodes.rs, wide.rs   logical nodes, however wide               │
//!     expr.rs        MySQL's semantics, natively or by EvalUdf      ├─ scan.rs   morsels of a snapshot
//!     aggregate.rs   sums that can not overflow, collations         ├─ apply.rs  subqueries, row by row
//!     frame.rs       OVER                                           ├─ windows.rs   window functions, partition by partition
//!     distinct.rs    DISTINCT aggregates in plans that spill        ├─ spilling.rs  operators that spill
//!     shared.rs      what is read several times and run once        ├─ roles.rs, memory.rs   who may have how much memory
//!     single.rs      what may have one row                          ├─ measure.rs   what each node does, for EXPLAIN ANALYZE
//!                                                                   ├─ key_filters.rs   what scans need not read for joins
//!                                                                   └─ runtime.rs threads, deadline; admission.rs
//! ```

mod admission;
mod aggregate;
mod apply;
mod arms;
mod barrier;
mod build_keys;
mod compact;
mod counted;
mod depth;
mod distinct;
mod engine_memory;
mod engine_source;
mod error;
mod expected;
mod expr;
mod finite;
mod frame;
mod in_set;
mod joins;
mod json_table;
mod key_filters;
mod lookahead;
mod lower;
mod measure;
mod memory;
mod merge_joins;
mod method;
mod names;
mod nodes;
mod null_supplying;
mod pass;
mod pass_node;
mod pools;
mod projections;
mod recursion;
mod results;
mod roles;
mod runtime;
mod scan;
mod setup;
mod shared;
mod shown_texts;
mod single;
pub mod source;
mod spilling;
mod statistics;
mod stop;
mod streamed;
mod udaf;
mod udf;
mod unseen;
mod wide;
mod wide_exec;
mod windows;
mod yielding;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use engine_memory::EngineMemory;
pub use engine_source::{EngineSource, VirtualRows};
pub use measure::Measurements;
pub use runtime::{Analytics, AnalyticsOptions, QueryRun, RunOptions};
pub use source::{ColumnKeys, ColumnPredicate, MorselReader, MorselScan, ScanRequest, ScanSource};
pub use statistics::statistics_of;
