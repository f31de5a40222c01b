//! Ordered sets of byte strings in memory: concurrent B+-trees with optimistic lock coupling.
//!
//! The engine keeps one tree per index, with entries *key ‖ row id* (`types::key` bytes, then eight big-endian
//! bytes); the tree takes the whole as opaque bytes. Point operations read nodes without writing anything
//! shared and lock only the leaf that they change; scans copy a leaf's entries out, validate, and only then
//! show them, so that a visitor runs with nothing held.
//!
//! ```text
//!  tree ──▶ restructure   full and empty nodes: split, grow, compact, merge, new roots
//!   │  └──▶ scan, bulk     ordered visits; sorted input
//!   ├──▶ point         the one entry of a key
//!   └──▶ search ──▶ node ──▶ latch
//!        within a node  memory, layout     versions
//! ```
//!
//! How a change travels: an entry goes into or out of a leaf in place under the leaf's latch. Everything else
//! (a leaf without room, a leaf grown empty) *replaces* nodes: new ones are built aside, the parent's entry is
//! switched under the latches of parent and node, and the old nodes are retired to the epoch collector. Fences
//! and prefix of a node therefore never change while it lives.
//!
//! Invariants, besides those of [`node`]:
//! 1. Whoever follows a pointer is pinned (crossbeam-epoch); no pin outlives a call, and none is held while a
//!    visitor runs.
//! 2. Latches are only ever *tried*, from a validated version, and parents before children; who fails lets go of
//!    everything and starts over. So there is no deadlock.
//! 3. `unsafe` is confined to [`node`].
//!
//! The latch is checked by loom (`latch_model`), the tree over latch and reclamation by shuttle (`model`).

/// What the latch is made of; the models of latch and tree have their own instead.
mod atomics {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{AtomicU64, Ordering, fence};
    pub use std::thread::yield_now;
}
/// Where nodes live, how large they are, and when they are freed; the model of the tree has its own instead.
mod memory {
    pub use std::alloc::{alloc_zeroed, dealloc};
    pub use std::ptr::with_exposed_provenance;

    pub use crossbeam_epoch::{Guard, pin};

    /// log2 of the words of an ordinary node (4 KiB), and of the largest (256 KiB), which seats eight keys of
    /// [`MAX_KEY_LEN`]: two fences, five entries and the one to come.
    pub const MIN_CLASS: u32 = 9;
    pub const MAX_CLASS: u32 = 15;

    /// The longest entry that a tree takes, in bytes. MySQL's keys have at most 3,072 bytes as declared, and sort keys
    /// several times what the values have: this is ten times that.
    pub const MAX_KEY_LEN: usize = 32_000;
}
mod bulk;
mod check;
mod latch;
#[allow(unsafe_code)]
mod node;
mod point;
mod restructure;
mod scan;
mod search;
mod tree;

#[cfg(test)]
mod latch_model;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use memory::MAX_KEY_LEN;
pub use point::Lookup;
pub use scan::{Direction, ScanScratch};
pub use tree::BTree;
