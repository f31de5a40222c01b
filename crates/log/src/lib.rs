//! The redo log: one sequence of records that recovery, replicas and change capture all read.
//!
//! This crate knows framing, segment files, group commit and reading. What a record *means* is the
//! engine's business: to the log it is a kind byte, a tag (the engine passes the commit timestamp) and
//! opaque payload bytes. Byte layouts and the reasoning about torn tails: `docs/log.md`.
//!
//! ```text
//!  appenders ──memcpy──▶ open group ──swap──▶ group in flight ──compress, write, fdatasync──▶ segment file
//!                                              (log thread)            │
//!             waiters ◀── wake ◀── publish durable LSN ◀── on_durable ◀┘
//! ```
//!
//! Invariants:
//! 1. An LSN is a byte position in the record stream, before compression; every record starts at a multiple of 8.
//! 2. A group is written only after the group before it is durable. So at most the last group of the log
//!    can be torn, and a frame that says where its group began proves all before that to have been durable. What is
//!    written without a sync ([`Durability::Os`]) and what follows it up to the next sync are one group in this sense.
//! 3. A segment file gets its final name only after its header and everything before it are durable.
//! 4. After a failed write or sync nothing more is written, and everyone who waits is told.

#![deny(unsafe_code)]

mod check;
mod error;
mod follower;
mod frame;
mod intake;
mod maker;
mod options;
mod packed;
mod pool;
mod reader;
mod repair;
mod segment;
mod slots;
mod stats;
mod sync;
mod thread;
mod wait;
mod writer;

pub use check::{Finding, Report, verify};
pub use error::{Error, ErrorKind, Result};
pub use follower::LogFollower;
pub use frame::{MAX_KIND, MAX_PAYLOAD, Record};
pub use intake::Prepared;
pub use options::{Durability, LAZY_SYNC, LogOptions, OnDurable};
pub use packed::Compression;
pub use reader::{LogReader, LogRecord, Tail};
pub use segment::has_log;
pub use slots::RetentionSlot;
pub use stats::LogStats;
pub use wait::Durable;
pub use writer::LogWriter;
