//! Calls of deterministic procedures: logged as a name and arguments, and run again at recovery.
//!
//! A call record stands for what the procedure would do to the state that all records before it make. So a call is logged
//! that way only if that is the state which it ran on: **nothing was logged between its snapshot and its own record**, and
//! it has met nobody else's locks. That is looked at under the commit latch. Otherwise its rows are logged, as any
//! transaction's: nobody ever waits, fails or runs twice for the sake of logging.
//!
//! ```text
//!  log   … │ 41 │ 42 │                        call: snapshot 42, record 43: nothing between, as a call
//!                    └─ call ────────▶ 43
//!  log   … │ 41 │ 42 │ 43 │                   call: snapshot 42, record 44: 43 was not seen, as rows
//!                └─ call ─────────────▶ 44
//! ```
//!
//! Calls of deterministic procedures run one at a time, so that they do not come between each other; who has to wait for a row
//! lets the next one begin. What a call took from outside is in its record ([`Inputs`]): row ids, times, AUTO_INCREMENT values.
//! docs/decisions/0007 has the reasons and the alternatives.
//!
//! Invariants:
//! 1. A call record at `ts` came of a transaction whose snapshot was `ts − 1`, in a catalog that had all changes up to there.
//! 2. Its operations, row ids included, are a function of the procedure, the arguments, the inputs and the state at `ts − 1`.

use std::sync::Arc;

use avocet_base::{RowId, TableId, Timestamp};
use parking_lot::{Condvar, Mutex};

use crate::apply::open_place;
use crate::error::{EngineError, Result};
use crate::locks::WaitHook;
use crate::redo::{CallRecord, Inputs};
use crate::table::TableHandle;

/// What a transaction that is a logged call remembers, or is given again.
pub(crate) struct Logical {
    pub(super) mode: Mode,
    pub(super) inputs: Inputs,
}

pub(super) enum Mode {
    /// A call that may be logged as such.
    Record {
        /// The beginning of its record.
        head: Vec<u8>,
        snapshot: Timestamp,
        catalog_version: u64,
        /// It saw what is not in the log: another transaction's locks, or want of memory.
        met_others: bool,
        permit: Option<CallPermit>,
    },
    /// Recovery runs a call again.
    Replay {
        /// It asked for something that it had not asked for.
        strays: bool,
        crc: u32,
    },
}

impl Logical {
    /// The transaction depends on something else than the state at its snapshot.
    #[cold]
    pub fn meet_others(&mut self) {
        if let Mode::Record { met_others, permit, .. } = &mut self.mode {
            *met_others = true;
            *permit = None;
        }
    }

    /// A value from outside: a new one, which is remembered, or the one that was remembered.
    pub fn value(&mut self, make: impl FnOnce() -> u64) -> u64 {
        match &mut self.mode {
            Mode::Record { .. } => {
                let value = make();
                self.inputs.note_value(value);
                value
            }
            Mode::Replay { strays, .. } => self.inputs.take_value().unwrap_or_else(|| {
                *strays = true;
                0
            }),
        }
    }

    pub fn is_replay(&self) -> bool {
        matches!(self.mode, Mode::Replay { .. })
    }

    pub fn note_row(&mut self, table: TableId, id: RowId) {
        self.inputs.note_row(table, id);
    }

    /// The place that a new row had. It is made, and is free.
    pub fn row_again(&mut self, table: &TableHandle) -> Result<RowId> {
        let stray = || EngineError::corrupt("a procedure", "it inserts rows that it did not insert");
        let id = self.inputs.take_row(table.id()).ok_or_else(stray)?;
        open_place(table, id)?;
        Ok(id)
    }

    /// The record of the call, unless its rows are to be logged.
    pub fn record(&self, operations: &[u8]) -> Option<Vec<u8>> {
        let Mode::Record { head, met_others: false, .. } = &self.mode else { return None };
        let mut record = head.clone();
        CallRecord::put_tail(&self.inputs, operations, &mut record);
        (record.len() < operations.len()).then_some(record)
    }

    /// Whether a record with this timestamp would follow the state that the call has seen, if the catalog, which nobody changes
    /// just now, has this version. Under the commit latch.
    pub fn follows(&self, ts: Timestamp, catalog: Option<u64>) -> bool {
        match &self.mode {
            Mode::Record { snapshot, catalog_version, .. } => {
                ts.0 == snapshot.0 + 1 && catalog == Some(*catalog_version)
            }
            Mode::Replay { .. } => false,
        }
    }

    /// Whether a call that ran again did what it had done.
    pub(super) fn is_reproduced(&self, operations: &[u8]) -> bool {
        match self.mode {
            Mode::Record { .. } => false,
            Mode::Replay { strays, crc } => {
                !strays && self.inputs.is_spent() && CallRecord::came_to(crc, operations)
            }
        }
    }
}

/// Lets deterministic calls run one at a time.
#[derive(Default)]
pub(crate) struct CallGate {
    taken: Mutex<bool>,
    free: Condvar,
}

/// One call may run. Dropping it lets the next one begin.
pub(super) struct CallPermit(Arc<CallGate>);

impl CallPermit {
    pub fn take(gate: Arc<CallGate>, wait_hook: &WaitHook) -> Self {
        let mut taken = gate.taken.lock();
        if *taken {
            drop(taken);
            wait_hook(&mut || {
                let mut taken = gate.taken.lock();
                gate.free.wait_while(&mut taken, |taken| *taken);
                *taken = true;
            });
        } else {
            *taken = true;
            drop(taken);
        }
        Self(gate)
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        *self.0.taken.lock() = false;
        self.0.free.notify_one();
    }
}
