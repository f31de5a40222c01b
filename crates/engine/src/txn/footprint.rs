//! What a transaction tells the memory budget, in steps: the rows that it adds, and what it keeps for redo, undo and locks.
//!
//! Small transactions hand what they have not told on to the next one that takes their buffers, so that most of them tell
//! nothing at all.

use super::core::Txn;
use super::parts::{REDO_COPIES, ROWS_STEP, SHARED_BYTES, UNDO_BYTES};
use crate::buffers::Carried;
use crate::error::{EngineError, Result};
use crate::memory::GROWTH_STEP;
use crate::procedure::logical::Logical;

impl Txn {
    /// Fails if there is no memory for more rows, after having waited for some. Recovery takes what there was room for.
    #[inline]
    pub(crate) fn check_room(&mut self) -> Result<()> {
        match self.is_step() || self.engine.memory.is_full() {
            false => Ok(()),
            true => self.wait_for_room(),
        }
    }

    /// Fails if redo, undo and locks take more than there is for them, or if the statement is to end: for locks, and for
    /// changes that add no rows.
    #[inline]
    pub(crate) fn check_footprint(&mut self) -> Result<()> {
        match self.is_step() {
            false => Ok(()),
            true => self.tell_footprint().and_then(|()| self.check_interrupted()),
        }
    }

    #[inline]
    fn is_step(&self) -> bool {
        self.changes.written_bytes() >= self.footprint.written_at
            || self.rows_held() >= self.footprint.rows_at
    }

    #[inline]
    fn rows_held(&self) -> usize {
        self.changes.undo.len() + self.locks.shared.len()
    }

    #[cold]
    fn tell_footprint(&mut self) -> Result<()> {
        self.recharge(self.is_replayed())?;
        let rows_at = self.rows_held() + ROWS_STEP;
        let Self { changes, footprint, .. } = self;
        let written = changes.written_bytes();
        footprint.untold += written.saturating_sub(footprint.seen);
        footprint.seen = written;
        footprint.written_at = written + GROWTH_STEP;
        footprint.rows_at = rows_at;
        if self.engine.memory.grow(std::mem::take(&mut self.footprint.untold)) {
            self.engine.ask_for_relief();
        }
        Ok(())
    }

    #[cold]
    fn wait_for_room(&mut self) -> Result<()> {
        self.tell_footprint()?;
        self.await_room()
    }

    /// As [`Self::check_room`], before a whole block: index entries come with it.
    pub(crate) fn check_room_for_load(&mut self) -> Result<()> {
        self.engine.ask_for_relief();
        self.tell_footprint()?;
        self.await_room()
    }

    fn recharge(&mut self, forced: bool) -> Result<()> {
        let (redo, limit) = (self.changes.redo.len(), self.engine.options.max_redo_bytes);
        // It is one record of the log. Now its statement can be taken back; at the commit all would be lost.
        if redo > limit && !forced {
            return Err(EngineError::RecordTooLarge { len: redo, limit });
        }
        let now = redo * REDO_COPIES
            + self.changes.undo.len() * UNDO_BYTES
            + self.changes.undo_bytes
            + self.locks.shared.len() * SHARED_BYTES;
        self.engine.memory.charge_transaction(self.footprint.charged, now, forced)?;
        self.footprint.charged = now;
        Ok(())
    }

    fn is_replayed(&self) -> bool {
        self.logical().is_some_and(Logical::is_replay)
    }

    fn await_room(&mut self) -> Result<()> {
        if self.is_replayed() {
            return Ok(());
        }
        let interrupted = self.interrupted.clone();
        let room = self.engine.wait_for_room(&|| interrupted.as_ref().is_some_and(|asked| asked()));
        if room.is_err() {
            self.meet_others();
        }
        room
    }

    /// Something was taken back.
    pub(super) fn shrink_footprint(&mut self) {
        let rows_at = self.rows_held() + ROWS_STEP;
        let Self { changes, footprint, .. } = self;
        let written = changes.written_bytes();
        footprint.seen = footprint.seen.min(written);
        footprint.written_at = footprint.written_at.min(written + GROWTH_STEP);
        footprint.rows_at = footprint.rows_at.min(rows_at);
        if footprint.charged > 0 {
            self.recharge(true).expect("what is forced is not refused");
        }
    }

    /// The transaction has ended: what it added and has not told.
    pub(super) fn carry_on(&mut self) -> Carried {
        let untold = std::mem::take(&mut self.footprint.untold);
        match untold < GROWTH_STEP {
            true => Carried { untold, is_step: false },
            false => {
                self.engine.memory.grow(untold);
                Carried { untold: 0, is_step: true }
            }
        }
    }

    pub(super) fn end_footprint(&mut self) {
        let Self { engine, changes, footprint, .. } = self;
        let written = changes.written_bytes();
        footprint.untold += written.saturating_sub(footprint.seen);
        footprint.seen = written;
        if footprint.charged > 0 {
            let charged = std::mem::take(&mut footprint.charged);
            engine.memory.charge_transaction(charged, 0, true).expect("what is forced is not refused");
        }
    }
}
