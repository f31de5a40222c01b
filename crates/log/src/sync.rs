//! What the threads of this crate meet at. The model of the commit pipeline (`engine/tests/pipeline_model`) has shuttle's
//! in its place.

pub use std::sync::atomic::{AtomicU64, Ordering};
pub use std::thread::{Builder, JoinHandle, Thread, current, park};

pub use parking_lot::{Condvar, Mutex, MutexGuard};
