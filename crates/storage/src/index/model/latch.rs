//! The latch as it is, but that one of its rules can be broken.

pub use super::sound_latch::{Backoff, Restart, Version};

use super::atomics::{AtomicU64, Ordering};
use super::sound_latch::Latch as Sound;
use super::{Rule, breaks};

/// As in the latch's word.
const LOCKED: u64 = 2;

#[derive(Clone, Copy)]
pub struct Latch<'a>(pub &'a AtomicU64);

impl Latch<'_> {
    fn sound(&self) -> Sound<'_> {
        Sound(self.0)
    }

    pub fn read(self) -> Result<Version, Restart> {
        self.sound().read()
    }

    pub fn validate(self, version: Version) -> Result<(), Restart> {
        if breaks(Rule::Validate) { Ok(()) } else { self.sound().validate(version) }
    }

    pub fn try_lock(self, version: Version) -> Result<(), Restart> {
        let version = if breaks(Rule::LockWhatWasSeen) { self.read()? } else { version };
        self.sound().try_lock(version)
    }

    pub fn unlock(self) -> Version {
        if !breaks(Rule::BeginVersions) {
            return self.sound().unlock();
        }
        let before = self.0.load(Ordering::Relaxed) & !LOCKED;
        let version = self.sound().unlock();
        self.0.store(before, Ordering::Relaxed);
        version
    }

    pub fn unlock_obsolete(self) {
        self.sound().unlock_obsolete();
    }
}
