//! Where the rows and their indexes are: structures in memory and blocks on disk, without transactions.

#![deny(unsafe_code)]

pub mod index;
