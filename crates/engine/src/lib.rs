//! The engine: transactions over storage, durable by the log. The API boundary below SQL, and the embedded API.
//!
//! ```text
//!  Engine::open ─▶ recovery: checkpoint + log
//!  Engine::begin ─▶ Txn ─ read / index_scan / scan ──▶ relation, indexes, at a snapshot
//!                       ─ insert / update / delete ──▶ relation, indexes, undo, redo
//!                       ─ commit ──▶ commit pipeline ─▶ log ─▶ durable ─▶ visible ─▶ CommitTicket
//!  background: garbage (old versions), freeze (hot → cold, compaction), checkpoint
//! ```
//!
//! Knows nothing of SQL text, plans or protocols. Values passed in are already of their columns' types.
#![deny(unsafe_code)]

mod activity;
mod apply;
mod background;
mod block_rows;
mod blocks;
mod buffers;
mod bulk;
mod capture;
mod cardinality;
mod catalog;
mod changes;
mod check;
mod check_table;
mod checkpoint;
mod claim;
mod columns;
mod commit;
mod ddl;
mod engine;
mod entries;
mod error;
mod error_code;
mod foreign;
mod freeze;
mod garbage;
mod health;
mod hints;
mod index_ahead;
mod index_build;
mod keys;
mod locks;
mod memory;
mod metadata_lock;
mod origins;
mod pace;
mod procedure;
mod recovery;
mod redo;
mod reshape;
mod rules;
mod sample;
mod scan;
mod serial;
mod shred;
mod signals;
mod snapshots;
mod stats;
mod stop;
mod sync;
mod table;
mod table_locks;
mod temporary;
mod touched;
mod txn;
pub mod typed;
mod underway;
mod values;
mod withheld;

pub use activity::RowCounts;
pub use apply::Applier;
pub use avocet_base::RowId;
pub use avocet_log::{Compression, Durability, LogFollower, LogRecord};
pub use avocet_storage::cold::{ColdType, ColdValue, ColumnPredicate, CompareOp, KeySet, KeySetBuilder};
pub use avocet_storage::index::Direction;
#[doc(hidden)]
pub use avocet_storage::relation::RowsPerSegment;
pub use avocet_types as types;
pub use buffers::ReadScratch;
pub use bulk::BulkInsert;
pub use capture::{SinkStall, change_statement, run_as_statement};
pub use catalog::{
    AccountId, Catalog, DatabaseDef, GrantScope, Grants, LoginRules, PasswordRules, Privileges, TlsRule,
    UserDef,
};
pub use changes::{CaptureError, ChangeSink, ChangeStream};
pub use check::{CheckReport, check};
pub use commit::CommitTicket;
pub use ddl::{
    AccountChange, AlterRest, Alteration, DdlWait, NewForeignKeys, Renaming, TemporaryTable, Unfinished,
};
pub use engine::{BrokenRule, Engine, EngineOptions, FreezePolicy};
pub use error::{EngineError, ErrorKind, ForeignKeyError, Result};
pub use foreign::are_compatible;
pub use index_ahead::IndexesAhead;
pub use keys::KeyRange;
pub use locks::{RowLockWaits, WaitHook};
pub use memory::{MemoryBudget, MemoryUse};
pub use pace::BackgroundStats;
pub use procedure::{Call, Parameter, ParameterMode, Procedure, Procedures, Reply, ResultSet};
pub use redo::{Origin, Statement};
pub use sample::TableSample;
pub use scan::{BATCH_ROWS, Morsel, PathColumn, PathCondition, ScanRequest, TableScan};
pub use snapshots::SnapshotGuard;
pub use stats::{ColumnStats, PathStats, TableStats};
pub use table::{IndexHandle, RuleCompiler, TableHandle};
pub use table_locks::{BackupLock, Entered, TableLockMode, TableLocks};
pub use txn::{
    Ahead, Freshness, Isolation, KeyList, LockHow, LockWait, ReadMode, RowBuf, RowChange, RowLock,
    RowVerdict, RowWait, SnapshotReader, StatementMark, TriedLock, Txn, TxnOptions,
};
