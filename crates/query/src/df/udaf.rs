//! Aggregate functions that DataFusion has not, or not with MySQL's meaning.

mod first_met;
mod group_concat;

pub use first_met::FirstMet;
pub use group_concat::{Concat, GroupConcat};
