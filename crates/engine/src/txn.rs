//! Transactions.
//!
//! ```text
//!  foreign          foreign keys, row by row            ┐ constraints
//!  write  modify    changes, and unique keys            ┘
//!  read  locking  reader      rows along an index or a table
//!  newest  hiding  lead       one row: its newest version, locked for this transaction; what it must not see
//!  restart  deferral          statements that begin anew
//!  commit  rollback  tables  footprint  ahead  outside
//!  core ◀ parts  action  options     what a transaction is
//! ```

mod action;
mod ahead;
mod commit;
mod core;
mod deferral;
mod footprint;
mod foreign;
mod hiding;
mod lead;
mod locking;
mod modify;
mod newest;
mod options;
mod outside;
mod parts;
mod read;
mod reader;
mod restart;
mod rollback;
mod tables;
mod write;

pub use action::{LockHow, LockWait, RowChange, RowLock, Shown, TriedLock};
pub use ahead::{Ahead, KeyList};
pub use avocet_storage::hot::RowBuf;
pub use core::Txn;
pub use deferral::RowWait;
pub use options::{Freshness, Isolation, TxnOptions};
pub(crate) use parts::Load;
pub use parts::StatementMark;
pub use read::ReadMode;
pub use reader::SnapshotReader;
