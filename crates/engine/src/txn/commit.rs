//! The end of a transaction: its changes are logged if nothing that it relied on has changed, or all is taken back.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_base::{RowId, Timestamp};
use avocet_log::Durability;
use avocet_storage::rows::RowImages;
use avocet_storage::version::Change;
use hashbrown::HashSet;

use super::core::Txn;
use super::options::Freshness;
use super::parts::{StatementMark, View};
use crate::buffers::Buffers;
use crate::commit::CommitTicket;
use crate::engine::BrokenRule;
use crate::error::Result;
use crate::garbage::{Garbage, Leftover, Lists};
use crate::redo::{self, Op};
use crate::serial::{WriteSet, WrittenRow};
use crate::table::TableHandle;

/// A commit collects the versions of transactions that have at most so many.
const MOST_COLLECTED_BY_COMMIT: usize = 256;

impl Txn {
    fn durability(&self) -> Durability {
        self.options.durability.unwrap_or(self.engine.options.durability)
    }

    /// Logs the transaction. It may be acknowledged when the ticket is done.
    pub fn commit(mut self) -> Result<CommitTicket> {
        self.engine.health.check()?;
        if self.changes.redo.is_empty() && self.changes.origin.is_none() {
            if self.changes.unlogged > 0 {
                return Ok(self.commit_unlogged());
            }
            self.end_without_changes();
            return Ok(match self.options.freshness {
                Freshness::Visible => self.engine.pipeline.nothing(self.view.snapshot.ts()),
                Freshness::Logged => {
                    self.engine.pipeline.all_so_far(self.view.snapshot.ts(), self.durability())
                }
            });
        }
        self.unmask_all();
        if self.engine.options.capture_changes {
            self.stamp();
        }
        // On an error it still runs, and is rolled back when it is dropped.
        let ticket = self.log().inspect_err(|e| self.engine.health.stop_unless_refused(e))?;
        let to_merge = Garbage::share_of_merging(self.changes.undo.len(), self.changes.undo_bytes);
        self.after_logged(ticket.timestamp());
        // A commit cleans up after two older ones, so that the backlog shrinks whatever the load is. Large ones are for the
        // collecting thread: nobody's commit takes long because of them. What cannot be collected is merged, twice as much as
        // it adds, and more if that is large.
        self.engine.collector().collect(2, MOST_COLLECTED_BY_COMMIT);
        self.engine.collector().merge(to_merge);
        Ok(ticket)
    }

    /// Says in its record when it is committed, for those who are told of it.
    fn stamp(&mut self) {
        let now = self.engine.options.env.clock.wall_us().max(1) as u64;
        let wall_us = if self.options.captured { now } else { 0 };
        Op::Stamp { wall_us }.encode(&mut self.changes.redo);
    }

    /// All that it has changed are rows of temporary tables. Nobody but its session reads these, so they need no timestamp of
    /// their own: they share one that is visible, or of a commit that the transaction has met and that is only logged. Then
    /// the ticket waits for that, so that the session's next snapshot has the rows.
    fn commit_unlogged(mut self) -> CommitTicket {
        self.unmask_all();
        let View { snapshot, newest_met, .. } = &self.view;
        let visible = self.engine.snapshots.visible();
        let ts = visible.max(snapshot.ts()).max(*newest_met);
        self.state.commit(ts);
        self.after_logged(ts);
        match ts > visible {
            // What is logged is visible once it is written, and durable if its own transaction asked for that.
            true => self.engine.pipeline.all_so_far(ts, Durability::Os),
            false => self.engine.pipeline.nothing(ts),
        }
    }

    /// It is committed at a timestamp: gives back what it held, and hands its versions on.
    pub(super) fn after_logged(&mut self, ts: Timestamp) {
        self.end_deferral();
        self.finished = true;
        self.logical = None;
        self.end_footprint();
        self.release_rows();
        for (table, change) in self.changes.tables.iter().zip(&self.changes.row_changes) {
            if *change != 0 {
                table.rows.fetch_add(*change, Ordering::Relaxed);
            }
        }
        let loaded = self.changes.loads.iter().map(|load| load.rows).sum();
        self.engine.activity.note_commit(self.changes.undo.iter().map(|version| version.counted), loaded);
        self.note_touched();
        self.release_metadata_locks();
        self.forget_reads();
        self.engine.garbage.push(Leftover {
            ts,
            bytes: std::mem::take(&mut self.changes.undo_bytes),
            lists: Lists {
                tables: std::mem::take(&mut self.changes.tables),
                undo: std::mem::take(&mut self.changes.undo),
            },
        });
    }

    /// Tells those who build indexes of the rows that it has changed.
    fn note_touched(&self) {
        for (number, table) in self.changes.tables.iter().enumerate() {
            if table.touched.is_watched() {
                let of_table = self.changes.undo.iter().filter(|entry| usize::from(entry.table) == number);
                table.touched.note(of_table.map(|entry| entry.row));
            }
        }
    }

    /// The record of a transaction that comes from elsewhere.
    fn applied_record(&self) -> Option<Vec<u8>> {
        let origin = self.changes.origin.as_ref()?;
        let mut record = Vec::with_capacity(64 + self.changes.redo.len());
        origin.encode(&mut record);
        record.extend_from_slice(&self.changes.redo);
        Some(record)
    }

    pub fn rollback(mut self) {
        self.end_without_changes();
    }

    pub(super) fn end_without_changes(&mut self) {
        self.end_deferral();
        self.roll_back_to(StatementMark::default());
        self.finished = true;
        self.end_footprint();
        self.state.abort();
        self.release_rows();
        self.release_metadata_locks();
        self.forget_reads();
    }

    /// Logs the transaction's changes, if nothing that it had to rely on has changed.
    pub(super) fn log(&self) -> Result<CommitTicket> {
        let serial = &self.engine.serial;
        let durability = self.durability();
        // With a log that has failed, the snapshot may be older than what is recorded.
        if self.constraints.reads.is_some()
            && let Some(failure) = self.engine.pipeline.log().failure()
        {
            return Err(failure.into());
        }
        let mut checked = self.view.snapshot.ts();
        let applied = self.applied_record();
        // Only those of other sources ask for it, before the latch.
        let settled = applied.as_ref().map_or(Timestamp::MIN, |_| self.engine.snapshots.visible());
        // A call says nothing of rows as they were.
        let is_rows = applied.is_some() || self.engine.options.capture_changes;
        let logical = self.logical.as_ref().filter(|_| !is_rows);
        let mut call = logical.and_then(|logical| logical.record(&self.changes.redo));
        loop {
            let mut overtaken = false;
            let writes = serial.is_active().then(|| self.write_set().map(Arc::new)).transpose()?;
            let reads = self.constraints.reads.as_ref().filter(|_| !self.engine.breaks(BrokenRule::Validate));
            if let Some(reads) = reads {
                checked = serial.validate(reads, checked)?;
            }
            let mut given_up = Vec::new();
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
                    given_up = serial.record(ts, writes.clone());
                }
                if let Some(origin) = &self.changes.origin {
                    self.engine.origins.note(ts, (**origin).clone(), settled);
                }
            };
            let (kind, payload) = match (&call, &applied) {
                (Some(record), _) => (redo::KIND_CALL, record),
                (None, Some(record)) => (redo::KIND_APPLIED, record),
                (None, None) => (redo::KIND_TXN, &self.changes.redo),
            };
            let state = Some(&*self.state);
            let ticket = self.engine.pipeline.log_if(kind, payload, state, durability, admit, accepted)?;
            drop(given_up);
            if let Some(ticket) = ticket {
                return Ok(ticket);
            }
            if overtaken {
                call = None;
            }
        }
    }

    pub(super) fn forget_reads(&mut self) {
        if self.constraints.reads.take().is_some() {
            self.engine.serial.let_go(self.view.snapshot.ts());
            self.engine.serial.leave();
        }
    }

    /// The rows that it has changed, as they were and as they are: nobody else can change them before it ends.
    fn write_set(&self) -> Result<WriteSet> {
        let mut seen: HashSet<(u16, RowId)> = HashSet::new();
        let loads = self.changes.loads.iter();
        let loaded = loads.map(|load| self.changes.tables[usize::from(load.table)].id());
        let mut writes = WriteSet::of_loads(loaded);
        let most = self.engine.serial.most_of_one();
        for entry in &self.changes.undo {
            if !matches!(entry.undo.link().change, Change::Lock | Change::Mask)
                && seen.insert((entry.table, entry.row))
            {
                let table = &self.changes.tables[usize::from(entry.table)];
                if writes.is_full(most) {
                    writes.push_table(table.id());
                    continue;
                }
                let mut change = written_row(table, entry.row)?;
                if self.engine.breaks(BrokenRule::CountPhantoms) && change.before.is_none() {
                    change.after = None;
                }
                if self.engine.breaks(BrokenRule::CountBefore) && change.before.is_some() {
                    change = WrittenRow { before: None, after: None, ..change };
                }
                writes.push(change, most);
            }
        }
        Ok(writes)
    }
}

fn written_row(table: &TableHandle, row: RowId) -> Result<WrittenRow> {
    let RowImages { before, after } = table.relation.change_of_row(row)?;
    Ok(WrittenRow { table: table.id(), row, before, after })
}

impl Drop for Txn {
    fn drop(&mut self) {
        if !self.finished {
            self.end_without_changes();
        }
        let carried = self.carry_on();
        self.engine.buffers.give(Buffers {
            redo: std::mem::take(&mut self.changes.redo),
            row_changes: std::mem::take(&mut self.changes.row_changes),
            scratch: std::mem::take(&mut self.scratch),
            carried,
        });
    }
}
