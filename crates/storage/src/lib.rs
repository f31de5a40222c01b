//! Storage: hot row pages, cold column blocks, indexes, and the store beneath them.
//!
//! A relation is ordered by row id. Its newest rows stand in hot pages (`hot`), older ones in compressed
//! column blocks (`cold`) kept in a block store (`store`); B+-trees (`index`) lead from keys to row ids.
//! Whoever wants a single row goes through `rows`, which hides where it is.
//! Nothing here decides what commits: versions (`version`) point to a transaction's state, and the engine
//! drives it.
#![deny(unsafe_code)]

pub mod cold;
pub mod error;
pub mod hot;
pub mod index;
mod prefetch;
pub mod relation;
pub mod rows;
pub mod store;
pub mod version;

pub use error::{Result, StorageError, StorageErrorKind};
pub use prefetch::prefetch;
pub use version::{Change, Snapshot, TxnState, Undo};
