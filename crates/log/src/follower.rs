//! Reading a log that is being written: records in order, up to what is durable, and on as that grows.

use std::sync::Arc;

use avocet_base::Lsn;

use crate::error::{Error, Result};
use crate::intake::Shared;
use crate::reader::{LogReader, LogRecord};
use crate::slots::RetentionSlot;
use crate::wait::Durable;

/// Follows a log. The same records as a [`LogReader`] gives, of which none is ever taken back.
pub struct LogFollower {
    shared: Arc<Shared>,
    reader: LogReader,
    /// What the reader may read up to: durable.
    until: Lsn,
    /// It has read up to there.
    has_all: bool,
    slot: RetentionSlot,
}

impl LogFollower {
    pub(crate) fn open(shared: &Arc<Shared>, slot: RetentionSlot) -> Result<Self> {
        let (from, until) = (slot.position()?, shared.durable.reached());
        let dir = shared.dir();
        if from > until {
            return Err(Error::EndsEarly { dir: dir.to_path_buf(), end: until, wanted: from });
        }
        let reader = LogReader::open_until(shared.env.clone(), dir, from, until)?;
        Ok(Self { shared: shared.clone(), reader, until, has_all: false, slot })
    }

    /// The next record, or `None` if all that is durable was read: then [`more`](Self::more) is to be awaited.
    ///
    /// # Errors
    /// `SlotLost` if the log went on without this reader; `Corrupt`, `Io`.
    pub fn next_record(&mut self) -> Result<Option<LogRecord<'_>>> {
        self.slot.position()?;
        if self.reader.end_lsn() >= self.until {
            let durable = self.shared.durable.reached();
            if durable <= self.until {
                self.has_all = true;
                return Ok(None);
            }
            self.until = durable;
            self.reader.extend(durable);
        }
        let Self { reader, slot, has_all, .. } = self;
        // A segment that was given up meanwhile may hold anything.
        let record = reader.next_record().map_err(|e| slot.position().err().unwrap_or(e))?;
        *has_all = record.is_none();
        Ok(record)
    }

    /// End of the last record read.
    pub fn position(&self) -> Lsn {
        self.reader.end_lsn()
    }

    /// All records before this were read.
    pub fn read_up_to(&self) -> Lsn {
        if self.has_all { self.until } else { self.position() }
    }

    /// Records before `lsn` need not be read again: the log is not held back for them any more.
    pub fn acknowledge(&self, lsn: Lsn) {
        self.slot.advance(lsn);
    }

    /// Ready when there is more to read, or never will be.
    pub fn more(&self) -> Durable {
        Durable { progress: self.shared.durable.clone(), lsn: Lsn(self.until.0 + 1), left: None }
    }

    /// Blocks until there is more to read.
    ///
    /// # Errors
    /// Why the log will not grow any more.
    pub fn wait(&self) -> Result<()> {
        self.shared.durable.wait(Lsn(self.until.0 + 1))
    }
}
