//! From SQL text to results: MySQL's dialect, names and types bound to plans, point plans over the engine's
//! API, analytics on DataFusion, and the sessions that the protocol server drives.
#![deny(unsafe_code)]

// The targets of `fuzz/`, some of which are part of the tests, name the crate.
#[cfg(test)]
extern crate self as avocet_query;

mod accumulate;
pub mod bind;
pub mod df;
pub mod embedded;
mod engine_source;
pub mod error;
pub mod parse;
pub mod plan;
pub mod point;
pub mod session;
#[cfg(test)]
mod testing;
mod turns;

pub use embedded::{Answer, Connection};
pub use error::{ErrorCode, SqlError};
pub use session::Database;
