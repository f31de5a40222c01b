//! Ids, units, checksums, byte codecs and the environment traits that everything else stands on.
//!
//! Nothing here knows of SQL, pages or transactions. Time, randomness, threads and disk are reached
//! only through [`env`], so that a simulator can stand in for all of them.

pub mod checksum;
pub mod codec;
pub mod env;
pub mod histogram;
pub mod id;
pub mod process;
pub mod stripe;
pub mod thread;

pub use env::Env;
pub use id::{BlockId, ColumnNo, DatabaseId, IndexId, Lsn, RowId, SegmentNo, TableId, Timestamp, TxnId};
