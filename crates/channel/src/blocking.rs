//! Statements that take long, and the threads that they share with others.
//!
//! A connection stays on one thread with many others, and most statements take a few microseconds there. What may take
//! long (waits for locks, DDL, thousands of rows) hands the thread's other connections to a spare thread first; handing
//! over costs about as much as a few dozen rows do, so few rows are seen to in place.

use tokio::runtime::{Handle, RuntimeFlavor};

/// So many rows, locks or changes are seen to in place.
pub const ROWS_IN_PLACE: usize = 256;

/// So many bytes of SQL are parsed in place.
pub const TEXT_IN_PLACE: usize = 64 * 1024;

/// Runs what may take long, with the other tasks of this thread handed on where there is a runtime that can.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(work)
        }
        _ => work(),
    }
}

/// Whether other tasks can have the thread while something is awaited.
pub fn can_await() -> bool {
    Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// As [`blocking`] if there is much of it, in place otherwise.
pub fn blocking_if<T>(is_much: bool, work: impl FnOnce() -> T) -> T {
    if is_much { blocking(work) } else { work() }
}

/// To be called for each of many rows that are awaited: from time to time, the other connections of the thread go on.
pub async fn yield_now_and_then(row: usize) {
    if row % ROWS_IN_PLACE == ROWS_IN_PLACE - 1 {
        tokio::task::yield_now().await;
    }
}
