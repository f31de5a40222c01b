//! What a transaction takes from outside: the time, generated values, places for rows. A call that is logged by its
//! arguments remembers what it took, and is given it again at recovery (`procedure/logical.rs`).

use avocet_base::{RowId, Timestamp};

use super::core::Txn;
use crate::error::Result;
use crate::procedure::logical::Logical;
use crate::table::TableHandle;

impl Txn {
    pub(crate) fn set_logical(&mut self, logical: Logical) {
        self.logical = Some(Box::new(logical));
    }

    pub(crate) fn logical(&self) -> Option<&Logical> {
        self.logical.as_deref()
    }

    /// The operations so far, as a transaction record would hold them.
    pub(crate) fn operations(&self) -> &[u8] {
        &self.changes.redo
    }

    /// The time: microseconds since 1970, UTC. Deterministic procedures take it from here, and get the time of the original
    /// call when recovery runs them again.
    pub fn now_us(&mut self) -> i64 {
        let clock = &self.engine.options.env.clock;
        match &mut self.logical {
            None => clock.wall_us(),
            Some(logical) => logical.value(|| clock.wall_us() as u64) as i64,
        }
    }

    /// Reserves `count` consecutive AUTO_INCREMENT values of a table and returns the first. They are not given back if the
    /// transaction rolls back.
    pub fn reserve_auto_increment(&mut self, table: &TableHandle, count: u64) -> u64 {
        match &mut self.logical {
            None => table.reserve_auto_increment(count),
            Some(logical) => {
                let first = logical.value(|| table.reserve_auto_increment(count));
                if logical.is_replay() {
                    table.note_auto_increment(first.saturating_add(count).saturating_sub(1));
                }
                first
            }
        }
    }

    /// The transaction depends on others that run now.
    #[inline]
    pub(super) fn meet_others(&mut self) {
        if let Some(logical) = &mut self.logical {
            logical.meet_others();
        }
    }

    /// Where the next new row of a table, of so many bytes, goes.
    #[inline]
    pub(super) fn next_row_id(&mut self, table: &TableHandle, bytes: usize) -> Result<RowId> {
        match &mut self.logical {
            Some(logical) if logical.is_replay() => logical.row_again(table),
            _ => Ok(table.relation.next_row_id(bytes, self.engine.memory.segment_bytes())),
        }
    }

    #[inline]
    pub(super) fn note_row_id(&mut self, table: &TableHandle, id: RowId) {
        if let Some(logical) = &mut self.logical
            && !logical.is_replay()
        {
            logical.note_row(table.id(), id);
        }
    }

    /// Whether a record at `ts` would follow the state that a logged call has seen. Under the commit latch.
    pub(super) fn follows(&self, ts: Timestamp) -> bool {
        self.logical.as_ref().is_some_and(|logical| {
            self.changes.loads.is_empty() && logical.follows(ts, self.engine.settled_catalog_version())
        })
    }

    /// Recovery: a call that ran again is committed as it was; its record is in the log already.
    pub(crate) fn commit_again(mut self, ts: Timestamp) {
        self.state.commit(ts);
        self.after_logged(ts);
    }
}
