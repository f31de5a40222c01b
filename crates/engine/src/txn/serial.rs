//! What a transaction does for SERIALIZABLE: its own if it is one, and everybody's while one runs. See `serial.rs` of the
//! engine.

use std::sync::Arc;

use avocet_base::{RowId, TableId, Timestamp};
use avocet_storage::version::Change;
use hashbrown::HashSet;

use super::Txn;
use crate::commit::CommitTicket;
use crate::engine::{BrokenRule, Engine};
use crate::error::Result;
use crate::redo;
use crate::serial::{WriteSet, WrittenRow};
use crate::snapshots::SnapshotGuard;
use crate::table::TableHandle;

/// The first snapshot of a serializable transaction that may write.
pub(super) fn begin(engine: &Arc<Engine>) -> SnapshotGuard {
    engine.pipeline.enter(&engine.serial);
    take(engine)
}

/// What was logged when recording began may not be visible yet; a snapshot waits for it. If the log has failed it never
/// will be, and no commit will succeed: then any snapshot does.
fn take(engine: &Arc<Engine>) -> SnapshotGuard {
    let mut is_last = false;
    loop {
        if let Some(snapshot) = engine.serial.take(&engine.snapshots, is_last) {
            return snapshot;
        }
        let log = engine.pipeline.log().clone();
        (engine.wait_hook())(&mut || is_last = log.flush().is_err());
    }
}

pub(super) fn renew(engine: &Arc<Engine>, snapshot: &mut SnapshotGuard) {
    if snapshot.ts() != engine.snapshots.visible() {
        let newer = take(engine);
        engine.serial.let_go(snapshot.ts());
        *snapshot = newer;
    }
}

impl Txn {
    /// Logs the transaction's changes, if nothing that it had to rely on has changed.
    pub(super) fn log(&self) -> Result<CommitTicket> {
        let serial = &self.engine.serial;
        let durability = self.durability();
        // With a log that has failed, the snapshot may be older than what is recorded.
        if self.reads.is_some()
            && let Some(failure) = self.engine.pipeline.log().failure()
        {
            return Err(failure.into());
        }
        let mut checked = self.snapshot.ts();
        let mut call = self.logical.as_ref().and_then(|logical| logical.record(&self.redo));
        loop {
            let mut overtaken = false;
            let writes = serial.is_active().then(|| self.write_set().map(Arc::new)).transpose()?;
            let reads = self.reads.as_ref().filter(|_| !self.engine.breaks(BrokenRule::Validate));
            if let Some(reads) = reads {
                checked = serial.validate(reads, checked)?;
            }
            let admit = |ts| {
                overtaken = call.is_some() && !self.follows(ts);
                if overtaken {
                    return Ok(false);
                }
                if !serial.is_active() {
                    return Ok(true);
                }
                // Somebody has begun in between: what is written has to be gathered first.
                if writes.is_none() {
                    return Ok(false);
                }
                if let Some(reads) = reads {
                    serial.validate(reads, checked)?;
                }
                Ok(true)
            };
            let accepted = |ts: Timestamp| {
                if serial.is_active()
                    && let Some(writes) = &writes
                {
                    serial.record(ts, writes.clone());
                }
            };
            let (kind, payload) = match &call {
                Some(record) => (redo::KIND_CALL, record),
                None => (redo::KIND_TXN, &self.redo),
            };
            let state = Some(&*self.state);
            if let Some(ticket) =
                self.engine.pipeline.log_if(kind, payload, state, durability, admit, accepted)?
            {
                return Ok(ticket);
            }
            if overtaken {
                call = None;
            }
        }
    }

    pub(super) fn forget_reads(&mut self) {
        if self.reads.take().is_some() {
            self.engine.serial.let_go(self.snapshot.ts());
            self.engine.serial.leave();
        }
    }

    /// The rows that it has changed, as they were and as they are: nobody else can change them before it ends.
    fn write_set(&self) -> Result<WriteSet> {
        let mut seen: HashSet<(u16, RowId)> = HashSet::new();
        let mut rows = Vec::new();
        for entry in &self.undo {
            if !matches!(entry.undo.link().change, Change::Lock | Change::Hide)
                && seen.insert((entry.table, entry.row))
            {
                let mut change = written_row(&self.tables[usize::from(entry.table)], entry.row)?;
                if self.engine.breaks(BrokenRule::CountPhantoms) && change.before.is_none() {
                    change.after = None;
                }
                if self.engine.breaks(BrokenRule::CountBefore) && change.before.is_some() {
                    change = WrittenRow { before: None, after: None, ..change };
                }
                rows.push(change);
            }
        }
        let loaded: Vec<TableId> =
            self.loads.iter().map(|l| self.tables[usize::from(l.table)].id()).collect();
        Ok(WriteSet { rows, loaded })
    }
}

fn written_row(table: &TableHandle, row: RowId) -> Result<WrittenRow> {
    let (before, after) = table.relation.change_of_row(row)?;
    Ok(WrittenRow { table: table.id(), row, before, after })
}
