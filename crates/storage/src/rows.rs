//! Single rows of a relation, hot or cold: the one way to find, read, latch, change and collect them.
//!
//! ```text
//!  row id ─▶ segment ─┬─ hot ──▶ page latch ──▶ slot: row in place, chain ─┐
//!                     │                                                    ├─▶ Latched ─ head · row · lock · delete · update
//!                     └─ cold ─▶ image, then delete vector's latch, chain ─┘             hide · undo · merge · collect
//! ```
//!
//! Callers say what is to be done to a row, and never where it is: a page that has been frozen or a delete vector that has been
//! closed since the segment was looked up is found again here. Whatever comes to manage the memory of pages and blocks does
//! so behind these functions.
//!
//! Invariants:
//! 1. A [`Latched`] row belongs to the segment's current state: that cannot be replaced before the latch is released.
//! 2. No latch is held while a block is read, which may go to disk. A row of a block never changes, so its image is as good
//!    before the latch as under it.
//! 3. A read at a snapshot takes whatever state it finds: one that has been replaced shows it the same rows.

mod image;
mod latch;
mod read;

pub use image::{cold_image, partial_image};
pub use latch::{Access, Exclusive, Latched, Loading, RowGlance, RowLatch, Shared};
pub use read::{RowImages, RowRead};
