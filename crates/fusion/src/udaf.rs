//! Aggregate functions that DataFusion has not, or not with MySQL's meaning.

mod documents;
mod extreme;
mod first_met;
mod group_concat;
mod over_frame;

pub use documents::GatherDocuments;
pub use extreme::ExtremeString;
pub use first_met::FirstMet;
pub use group_concat::GroupConcat;
pub use over_frame::{Fold, OverFrame};
