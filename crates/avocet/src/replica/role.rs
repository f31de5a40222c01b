//! Whether this server takes the place of a source, or has: one of its channels does, and that holds for all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::promoted::Promoted;

/// Why nothing is copied anew, and no other source is followed.
pub const PROMOTING: &str =
    "this server is about to take the place of its source: wait until PROMOTE REPLICA has ended";

#[derive(Default)]
pub struct Role {
    /// It has taken its source's place, and follows nobody any more.
    promoted: OnceLock<Promoted>,
    is_promoting: AtomicBool,
}

impl Role {
    pub fn promoted(&self) -> Option<&Promoted> {
        self.promoted.get()
    }

    /// From now on, and after every start since. Nobody sets it twice.
    pub fn be_promoted(&self, promoted: Promoted) {
        let _ = self.promoted.set(promoted);
    }

    pub fn is_promoting(&self) -> bool {
        self.is_promoting.load(Ordering::SeqCst)
    }

    /// Whether a source may be followed that is not followed yet.
    ///
    /// # Errors
    /// A promotion, that has ended or runs.
    pub fn may_begin(&self) -> Result<(), String> {
        match self.promoted() {
            Some(promoted) => Err(promoted.refuses_source()),
            None if self.is_promoting() => Err(PROMOTING.into()),
            None => Ok(()),
        }
    }

    /// A promotion begins; `None` if one runs.
    pub fn promote(self: &Arc<Self>) -> Option<Promoting> {
        let was_promoting = self.is_promoting.swap(true, Ordering::SeqCst);
        (!was_promoting).then(|| Promoting(self.clone()))
    }
}

/// A promotion runs, as long as this is there.
pub struct Promoting(Arc<Role>);

impl Drop for Promoting {
    fn drop(&mut self) {
        self.0.is_promoting.store(false, Ordering::SeqCst);
    }
}
