//! Rounds of work that free memory: who makes them, and who waits for them.
//!
//! A round counts what tables take, collects old versions, and freezes until hot pages are within their target. A thread
//! makes one each second, and whenever writers have added much (`background.rs`); without background threads whoever
//! needs room does.

use std::time::Duration;

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::memory::{Room, VERSION_BYTES};

/// How often those who wait look whether they are interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Who waits for room is refused after this time even if rounds go on freeing something.
const PATIENCE: Duration = Duration::from_secs(30);

impl Engine {
    /// Counts what tables take and, if it is much, frees what can be freed. Returns how many bytes of hot pages were.
    pub fn watch_memory(&self) -> usize {
        self.memory.relief.rounds.lock().begun += 1;
        let mut freed = 0;
        if self.count_memory() > 0 {
            self.collector().collect_all();
            // Rows that came and went since the snapshots in use, as those do that move when they are updated, are in hot pages.
            self.collector().merge_fresh();
            let over = self.count_memory();
            freed = self.freezer().freeze_early(over);
            self.count_memory();
        }
        let mut rounds = self.memory.relief.rounds.lock();
        rounds.ended += 1;
        rounds.freed = freed;
        drop(rounds);
        self.memory.relief.ended.notify_all();
        freed
    }

    fn count_memory(&self) -> usize {
        let versions = self.version_backlog() * VERSION_BYTES + self.version_bytes() + self.serial.bytes();
        self.memory.count(&self.catalog(), &self.temporary.all(), versions)
    }

    /// Tables have grown: they should be counted soon.
    pub(crate) fn ask_for_relief(&self) {
        if self.options.background {
            self.signals.ask_for_relief();
        } else if self.memory.room() != Room::Ample {
            self.watch_memory();
        }
    }

    /// Slows a writer down that has added a step, or has it wait until there is room for rows.
    ///
    /// # Errors
    /// `OutOfMemory` if a round that began after this was called has freed nothing, and there is still no room;
    /// `Interrupted`.
    pub(crate) fn wait_for_room(&self, interrupted: &dyn Fn() -> bool) -> Result<()> {
        match self.memory.room() {
            Room::Ample => return Ok(()),
            Room::Scarce(pause) => {
                self.ask_for_relief();
                (self.wait_hook())(&mut || self.memory.relief.wait(pause));
                return Ok(());
            }
            Room::None => {}
        }
        let refused = || self.memory.out_of_memory();
        self.await_relief(interrupted, &|| self.memory.room() != Room::None, &|| false, &refused)
    }

    /// Sets memory aside for rows that are read or gathered to be loaded, as
    /// [`MemoryBudget::reserve`](crate::MemoryBudget::reserve) does, after having waited for it if need be, with the thread's
    /// other work handed on.
    ///
    /// # Errors
    /// `OutOfMemory` if rounds free nothing and nobody else has memory that they may give back, or after 30 s; `Interrupted`.
    pub fn reserve_with_patience(&self, bytes: usize, interrupted: &dyn Fn() -> bool) -> Result<()> {
        if self.memory.reserve(bytes) {
            return Ok(());
        }
        self.ask_for_relief();
        let others = || {
            let used = self.memory.in_use();
            used.work > 0 || used.queries + used.clients >= bytes
        };
        self.await_relief(interrupted, &|| self.memory.reserve(bytes), &others, &|| {
            self.memory.nothing_left()
        })
    }

    /// Waits until rounds have made room. `hope` says whether there may be room without a round's doing, `refused` what the
    /// error is.
    fn await_relief(
        &self,
        interrupted: &dyn Fn() -> bool,
        has_room: &dyn Fn() -> bool,
        hope: &dyn Fn() -> bool,
        refused: &dyn Fn() -> EngineError,
    ) -> Result<()> {
        let clock = &self.options.env.clock;
        let began = clock.monotonic();
        let mut before = self.memory.relief.rounds();
        while !has_room() {
            if interrupted() {
                return Err(EngineError::Interrupted);
            }
            self.health.check()?;
            let now = self.memory.relief.rounds();
            // One that began after this one asked has ended.
            if now.ended > before.begun {
                if now.freed == 0 && !hope() {
                    // Whoever has none any more has just given it back.
                    return if has_room() { Ok(()) } else { Err(refused()) };
                }
                before = now;
            }
            if clock.monotonic().saturating_sub(began) > PATIENCE {
                return Err(refused());
            }
            (self.wait_hook())(&mut || {
                if self.options.background {
                    self.signals.ask_for_relief();
                    self.memory.relief.wait(LOOK_EVERY);
                } else {
                    self.watch_memory();
                }
            });
        }
        Ok(())
    }
}
