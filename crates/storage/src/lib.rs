//! Where the rows and their indexes are: structures in memory and blocks on disk, without transactions.

#![deny(unsafe_code)]

pub mod cold;
pub mod error;
pub mod index;
pub mod store;

pub use error::{Result, StorageError, StorageErrorKind};
