//! Versions that an old snapshot holds up, after they were merged.
//!
//! They are kept in chunks, in commit order, by what no snapshot tells apart: a chunk is collected as a whole. A version that
//! a newer one has taken in stays in its chunk until that is looked at again; for each version that comes two are
//! looked at, round and round, so at most about half of what is kept is of no use. A look also merges again if a snapshot
//! has gone that lay between versions.

use std::collections::VecDeque;
use std::sync::Arc;

use avocet_base::Timestamp;
use avocet_storage::hot::RowBuf;

use super::{Garbage, Leftover, Lists, UndoEntry, collect_entries, row};
use crate::snapshots::{Horizon, Snapshots};
use crate::table::TableHandle;

/// Entries of a chunk.
const CHUNK: usize = 256;
/// Entries that one commit collects of a chunk at a time.
const PART: usize = 64;

/// Whoever holds it collects and merges; nobody else does meanwhile.
#[derive(Default)]
pub(super) struct Keeper {
    pub buf: RowBuf,
    /// As of some moment. Snapshots that were taken since are newer than all that was visible then.
    horizon: Horizon,
    /// How often a snapshot in use was seen to have gone.
    epoch: u64,
    /// A transaction that is merged in part: so many of its versions.
    half: Option<(Leftover, usize)>,
    chunks: VecDeque<Chunk>,
    /// Entries in chunks.
    entries: usize,
    /// What the versions hold that were handed on to it and are not collected: below zero while the transaction of one that
    /// another has taken in is still to come.
    pub bytes: isize,
    /// The chunk to be looked at next, and how many entries are to be.
    next: usize,
    credit: usize,
}

struct Chunk {
    /// The newest commit in it.
    ts: Timestamp,
    /// The keeper's when it was looked at last.
    epoch: u64,
    lists: Lists,
}

impl Keeper {
    /// Whether all that is left is fresh.
    pub fn is_empty(&self) -> bool {
        self.half.is_none() && self.chunks.is_empty()
    }

    pub fn versions(&self) -> usize {
        self.entries + self.half.as_ref().map_or(0, |(leftover, at)| leftover.lists.undo.len() - at)
    }

    /// Collects a part of the oldest chunk, or what is left of the transaction that is merged in part. False if it must not.
    pub fn collect(&mut self, garbage: &Garbage, oldest: Timestamp, versions: usize) -> bool {
        let Some(mut chunk) = self.chunks.pop_front_if(|chunk| chunk.ts <= oldest) else {
            return self.chunks.is_empty() && self.collect_half(garbage, oldest, versions);
        };
        let part = if versions == usize::MAX { CHUNK } else { versions.min(PART) };
        let part = chunk.lists.undo.len().min(part);
        collect_entries(&chunk.lists, &chunk.lists.undo[..part], self);
        self.entries -= part;
        chunk.lists.undo.drain(..part);
        if chunk.lists.undo.is_empty() {
            self.next = self.next.saturating_sub(1);
        } else {
            self.chunks.push_front(chunk);
        }
        true
    }

    fn collect_half(&mut self, garbage: &Garbage, oldest: Timestamp, versions: usize) -> bool {
        let may = |(leftover, at): &mut (Leftover, usize)| {
            leftover.ts <= oldest && leftover.lists.undo.len() - *at <= versions
        };
        let Some((leftover, at)) = self.half.take_if(may) else { return false };
        collect_entries(&leftover.lists, &leftover.lists.undo[at..], self);
        garbage.keep_lists(leftover.lists);
        true
    }

    /// Merges about so many fresh versions, as long as they are much; how many it did.
    pub fn merge(
        &mut self,
        garbage: &Garbage,
        snapshots: &Snapshots,
        versions: usize,
        is_much: &dyn Fn() -> bool,
    ) -> usize {
        let mut done = 0;
        while done < versions && self.takes_next(garbage, snapshots, is_much) {
            let Some((leftover, mut at)) = self.half.take() else { break };
            while done < versions && at < leftover.lists.undo.len() {
                let entry = &leftover.lists.undo[at];
                let table = &leftover.lists.tables[entry.table as usize];
                if row::merge(table, entry, &self.horizon, &mut self.buf, &mut self.bytes) {
                    self.keep(table, entry.clone(), leftover.ts);
                }
                (done, at) = (done + 1, at + 1);
            }
            if at < leftover.lists.undo.len() {
                self.half = Some((leftover, at));
            } else {
                garbage.keep_lists(leftover.lists);
            }
        }
        self.look_again(2 * done);
        done
    }

    /// Takes the next transaction out of the queue, unless one is merged in part already. False if there is none that is
    /// visible, or if it may be collected as it is.
    fn takes_next(&mut self, garbage: &Garbage, snapshots: &Snapshots, is_much: &dyn Fn() -> bool) -> bool {
        if self.half.is_some() {
            return true;
        }
        if !is_much() {
            return false;
        }
        let Some(ts) = garbage.fresh.lock().front().map(|front| front.ts) else { return false };
        if ts > self.horizon.visible {
            if ts > snapshots.visible() {
                return false;
            }
            self.renew_horizon(snapshots);
        }
        let oldest = self.horizon.oldest();
        let visible = self.horizon.visible;
        let taken = garbage.pop_if(self, |front| front.ts > oldest && front.ts <= visible);
        self.half = taken.map(|leftover| (leftover, 0));
        self.half.is_some()
    }

    pub fn renew_horizon(&mut self, snapshots: &Snapshots) {
        let now = snapshots.horizon();
        self.epoch += u64::from(now.lacks_some_of(&self.horizon));
        self.horizon = now;
    }

    fn keep(&mut self, table: &Arc<TableHandle>, entry: UndoEntry, ts: Timestamp) {
        let horizon = &self.horizon;
        let fits = |chunk: &Chunk| chunk.lists.undo.len() < CHUNK && horizon.are_alike(chunk.ts, ts);
        if !self.chunks.back().is_some_and(fits) {
            self.chunks.push_back(Chunk { ts, epoch: self.epoch, lists: Lists::default() });
        }
        let chunk = self.chunks.back_mut().expect("there is one now");
        chunk.ts = chunk.ts.max(ts);
        chunk.lists.add(table, entry);
        self.entries += 1;
    }

    /// Looks at about so many more entries: drops those that others stand for by now.
    pub fn look_again(&mut self, entries: usize) {
        self.credit = self.credit.saturating_add(entries).min(self.entries + CHUNK);
        while let Some(next) = self.chunks.get(self.next).or(self.chunks.front()) {
            let size = next.lists.undo.len().max(1);
            if self.credit < size {
                return;
            }
            self.credit -= size;
            self.look_at_next();
        }
    }

    pub fn look_at_all_again(&mut self) {
        self.next = 0;
        while self.next < self.chunks.len() {
            self.look_at_next();
        }
    }

    fn look_at_next(&mut self) {
        let at = if self.next < self.chunks.len() { self.next } else { 0 };
        let chunk = &mut self.chunks[at];
        let before = chunk.lists.undo.len();
        let may_merge = chunk.epoch != self.epoch;
        chunk.epoch = self.epoch;
        let Lists { tables, undo } = &mut chunk.lists;
        undo.retain(|entry| {
            if entry.undo.is_settled() {
                return false;
            }
            // Most have nothing below them that could be merged.
            let may_merge = may_merge && entry.undo.older_in_use().is_some();
            let table = &tables[entry.table as usize];
            !may_merge || row::merge(table, entry, &self.horizon, &mut self.buf, &mut self.bytes)
        });
        let after = undo.len();
        self.entries -= before - after;
        self.next = at + 1;
        if after == 0 || self.joins_previous(at) {
            self.chunks.remove(at);
            self.next = at;
        }
    }

    /// Moves what is left in a chunk to the one before, if that is alike and has room.
    fn joins_previous(&mut self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else { return false };
        let (ts, len) = (self.chunks[at].ts, self.chunks[at].lists.undo.len());
        let previous = &self.chunks[before];
        if previous.lists.undo.len() + len > CHUNK || !self.horizon.are_alike(previous.ts, ts) {
            return false;
        }
        let Lists { tables, undo } = std::mem::take(&mut self.chunks[at].lists);
        let previous = &mut self.chunks[before];
        previous.ts = previous.ts.max(ts);
        undo.into_iter().for_each(|entry| {
            let table = &tables[entry.table as usize];
            previous.lists.add(table, entry);
        });
        true
    }
}

impl Lists {
    /// Adds an entry of a table, whatever number that had.
    fn add(&mut self, table: &Arc<TableHandle>, entry: UndoEntry) {
        let known = self.tables.iter().position(|of| Arc::ptr_eq(of, table));
        let number = known.unwrap_or_else(|| {
            self.tables.push(table.clone());
            self.tables.len() - 1
        });
        self.undo.push(UndoEntry { table: number as u16, ..entry });
    }
}
