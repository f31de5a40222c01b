//! Making and retiring segment files: a thread that keeps a spare one ready, and truncation, which turns old segments into spares.

use avocet_base::Lsn;

use crate::error::{Error, Result};
use crate::intake::Shared;
use crate::pool::{SPARE_PREFIX, Spare};
use crate::segment::segment_path;

/// Whoever needs a segment would wait for ever.
struct StopOnPanic<'s>(&'s Shared);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop(Error::Panicked);
        }
    }
}

/// Body of the segment maker's thread.
pub(crate) fn run_maker(shared: &Shared) {
    let _end = StopOnPanic(shared);
    let mut intake = shared.intake.lock();
    while !intake.closing && shared.durable.failure().is_none() {
        let Some(room) = intake.spares.due(shared.room()) else {
            shared.make.wait(&mut intake);
            continue;
        };
        let no = intake.spares.take_no();
        drop(intake);
        let made = Spare::create(&shared.env, shared.dir(), no, room, shared.options.prefill);
        intake = shared.intake.lock();
        intake.spares.made(made);
        shared.space.notify_all();
    }
}

impl Shared {
    /// Gives up what lies before `lsn` and no slot holds back. Oldest first, each durably gone before the next: a crash never leaves a hole.
    pub fn truncate_before(&self, lsn: Lsn) -> Result<()> {
        let _one_at_a_time = self.segments.truncating.lock();
        let lsn = self.slots.held_from(lsn, self.durable.reached());
        while let Some(start) = self.segments.oldest_before(lsn) {
            let recycled = self.retire(start)?;
            self.env.disk.sync_dir(self.dir()).map_err(Error::io("sync", self.dir()))?;
            self.segments.starts.lock().pop_front();
            let mut intake = self.intake.lock();
            intake.spares.ready.extend(recycled);
            intake.spares.gave_up = false;
            drop(intake);
            self.make.notify_one();
            self.space.notify_all();
        }
        Ok(())
    }

    fn retire(&self, start: Lsn) -> Result<Option<Spare>> {
        let old = segment_path(self.dir(), start);
        let file = self.env.disk.open(&old, true).map_err(Error::io("open", &old))?;
        let size = file.size().map_err(Error::io("read the size of", &old))?;
        let Some(no) = self.spare_no(size) else {
            self.env.disk.remove(&old).map_err(Error::io("remove", &old))?;
            return Ok(None);
        };
        let path = self.dir().join(format!("{SPARE_PREFIX}{no}"));
        self.env.disk.rename(&old, &path).map_err(Error::io("rename", &old))?;
        Ok(Some(Spare { path, file, room: self.room() }))
    }

    /// A number for the spare that a file of `size` is to become, if it is to.
    fn spare_no(&self, size: u64) -> Option<u64> {
        let spares = &mut self.intake.lock().spares;
        let wanted = size == self.options.segment_size && spares.ready.len() < self.options.max_spares;
        wanted.then(|| spares.take_no())
    }
}
