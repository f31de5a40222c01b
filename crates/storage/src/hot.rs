//! The hot part of a relation: row pages that are updated in place.

pub mod delta;
mod page;

pub use page::{HotPage, PageBody, RowBuf, SlotRead, slots_per_page};
