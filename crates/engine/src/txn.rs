//! Transactions.
//!
//! ```text
//!  foreign          foreign keys, row by row            ┐ constraints
//!  write  modify    changes, and unique keys            ┘
//!  read  locking  reader      rows along an index or a table
//!  newest  masks  waiting      one row: its newest version, locked for this transaction; what it must not see
//!  restart  deferral          statements that begin anew
//!  commit  rollback  tables  footprint  ahead  applied  inputs
//!  core ◀ parts  action  options     what a transaction is
//! ```

mod action;
mod ahead;
mod applied;
mod commit;
mod core;
mod deferral;
mod footprint;
mod foreign;
mod inputs;
mod locking;
mod masks;
mod modify;
mod newest;
mod options;
mod parts;
mod read;
mod reader;
mod restart;
mod rollback;
mod tables;
mod waiting;
mod write;

pub use action::{LockHow, LockWait, RowChange, RowLock, RowVerdict, TriedLock};
pub use ahead::{Ahead, KeyList};
pub use avocet_storage::hot::RowBuf;
pub use core::Txn;
pub use deferral::RowWait;
pub use options::{Freshness, Isolation, TxnOptions};
pub(crate) use parts::Load;
pub use parts::StatementMark;
pub use read::ReadMode;
pub use reader::SnapshotReader;
