//! Counters that threads add to without a cache line that passes from core to core: each thread has its stripe.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How many stripes there are. Threads beyond them share.
pub const STRIPES: usize = 8;

/// The stripe of this thread, below [`STRIPES`].
#[inline]
pub fn own() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: usize = NEXT.fetch_add(1, Relaxed) % STRIPES);
    OWN.with(|own| *own)
}

/// What each stripe has, on cache lines of its own (two, since they are fetched in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Striped<T>(pub T);
