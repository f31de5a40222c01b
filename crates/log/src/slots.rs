//! Retention slots: who still wants the log from where on, and how much of it is held back for that.
//!
//! ```text
//!            slot                 checkpoint                 end
//!   ──────────┼────────────────────────┼──────────────────────┤
//!             └◀── at most `most` bytes ─────────────────────▶┘    else the slot is lost, and its owner is told
//! ```
//!
//! A slot is looked at when the log is truncated. It lives as long as its owner: a follower that comes back after the server was
//! started anew gets another, if the log still reaches back to where it was.

use std::sync::Arc;

use avocet_base::Lsn;

use crate::error::{Error, Result};
use crate::intake::Shared;
use crate::sync::Mutex;

/// The slots of a log.
pub(crate) struct Slots {
    held: Mutex<Vec<Held>>,
}

struct Held {
    id: u64,
    at: Lsn,
    most: u64,
    /// Where the log ended when it was more than `most` ahead.
    lost_at: Option<Lsn>,
}

impl Slots {
    pub fn new() -> Self {
        Self { held: Mutex::new(Vec::new()) }
    }

    fn add(&self, at: Lsn, most: u64) -> u64 {
        let mut held = self.held.lock();
        let id = held.last().map_or(0, |last| last.id + 1);
        held.push(Held { id, at, most, lost_at: None });
        id
    }

    /// From where on the log must stay, if all before `lsn` may go but for the slots. Slots that are too far behind the log's end
    /// are lost.
    pub fn held_from(&self, lsn: Lsn, end: Lsn) -> Lsn {
        let mut held = self.held.lock();
        for slot in held.iter_mut().filter(|slot| slot.at < lsn && slot.lost_at.is_none()) {
            slot.lost_at = (end.0.saturating_sub(slot.at.0) > slot.most).then_some(end);
        }
        held.iter()
            .filter(|slot| slot.lost_at.is_none())
            .map(|slot| slot.at)
            .min()
            .map_or(lsn, |at| at.min(lsn))
    }
}

/// Holds the log back. Dropping it lets go.
pub struct RetentionSlot {
    shared: Arc<Shared>,
    id: u64,
}

impl RetentionSlot {
    pub(crate) fn new(shared: &Arc<Shared>, from: Lsn, most: u64) -> Result<Self> {
        // Whoever truncates looks at the slots first, so what is there now stays.
        let _nobody_truncates = shared.segments.truncating.lock();
        let first = shared.segments.first();
        if from < first {
            return Err(Error::MissingSegment {
                dir: shared.dir().to_path_buf(),
                lsn: from,
                next: Some(first),
            });
        }
        Ok(Self { id: shared.slots.add(from, most), shared: shared.clone() })
    }

    fn with<R>(&self, visit: impl FnOnce(&mut Held) -> R) -> R {
        let mut held = self.shared.slots.held.lock();
        visit(held.iter_mut().find(|slot| slot.id == self.id).expect("a slot is there as long as its owner"))
    }

    /// From where on the log is held back.
    ///
    /// # Errors
    /// `SlotLost` if the slot was too far behind when the log was truncated.
    pub fn position(&self) -> Result<Lsn> {
        self.with(|slot| match slot.lost_at {
            None => Ok(slot.at),
            Some(end) => Err(Error::SlotLost { at: slot.at, end, most: slot.most }),
        })
    }

    /// The log before `lsn` is not wanted any more. Does not go back.
    pub fn advance(&self, lsn: Lsn) {
        self.with(|slot| slot.at = slot.at.max(lsn));
    }
}

impl Drop for RetentionSlot {
    fn drop(&mut self) {
        self.shared.slots.held.lock().retain(|slot| slot.id != self.id);
    }
}
