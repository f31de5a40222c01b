//! Regular expressions in the syntax of ICU, which is MySQL's.
//!
//! - `pattern`: what is read before an engine sees it, rewritten where the engines mean something else
//! - `engine`: one expression on the engine that it needs; `backtracking`: the one that may take long, and its bounds
//! - `error`: MySQL's errors

mod backtracking;
pub mod engine;
pub mod error;
mod pattern;

pub(crate) use engine::Matcher;
pub use error::RegexpError;
