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
//! Calls of deterministic procedures take turns, so that they do not come between each other; who has to wait for a row
//! gives its turn away. What a call took from outside is in its record ([`Inputs`]): row ids, times, AUTO_INCREMENT values.
//! docs/decisions/0007 has the reasons and the alternatives.
//!
//! Invariants:
//! 1. A call record at `ts` came of a transaction whose snapshot was `ts − 1`, in a catalog that had all changes up to there.
//! 2. Its operations, row ids included, are a function of the procedure, the arguments, the inputs and the state at `ts − 1`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use avocet_base::{RowId, TableId, Timestamp};
use avocet_types::Value;
use parking_lot::{Condvar, Mutex};

use super::{Procedure, Reply};
use crate::engine::Engine;
use crate::error::{EngineError, Result, malformed};
use crate::redo::{self, CallRecord, Inputs, Op};
use crate::table::TableHandle;
use crate::txn::{Freshness, Isolation, Txn, TxnOptions};

/// What a transaction that is a logged call remembers, or is given again.
pub(crate) struct Logical {
    mode: Mode,
    inputs: Inputs,
}

enum Mode {
    /// A call that may be logged as such.
    Record {
        /// The beginning of its record.
        head: Vec<u8>,
        snapshot: Timestamp,
        catalog_version: u64,
        /// It saw what is not in the log: another transaction's locks, or want of memory.
        met_others: bool,
        turn: Option<Turn>,
    },
    /// Recovery runs a call again.
    Replay {
        /// It asked for something that it had not asked for.
        strays: bool,
        crc: u32,
    },
}

/// Begins the transaction of a call, when its turn has come.
pub(super) fn begin(
    engine: &Arc<Engine>,
    procedure: &Procedure,
    arguments: &[Value],
    options: TxnOptions,
) -> Txn {
    let mut head = Vec::with_capacity(128);
    redo::put_head(&procedure.database, &procedure.name, arguments, &mut head);
    let turn = Some(Turn::take(engine));
    // Before the snapshot: what the catalog has by then is older.
    let catalog_version = engine.catalog_version();
    let mut txn = engine.begin(options);
    let snapshot = txn.snapshot_ts();
    let mode = Mode::Record { head, snapshot, catalog_version, met_others: false, turn };
    txn.set_logical(Logical { mode, inputs: Inputs::default() });
    txn
}

impl Logical {
    /// The transaction depends on something else than the state at its snapshot.
    #[cold]
    pub fn meet_others(&mut self) {
        if let Mode::Record { met_others, turn, .. } = &mut self.mode {
            *met_others = true;
            *turn = None;
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
        crate::recovery::open_place(table, id)?;
        Ok(id)
    }

    /// The record of the call, unless its rows are to be logged.
    pub fn record(&self, operations: &[u8]) -> Option<Vec<u8>> {
        let Mode::Record { head, met_others: false, .. } = &self.mode else { return None };
        let mut record = head.clone();
        CallRecord::put_tail(&self.inputs, operations, &mut record);
        (record.len() < operations.len()).then_some(record)
    }

    /// Whether a record with this timestamp would follow the state that the call has seen. Under the commit latch.
    pub fn follows(&self, engine: &Engine, ts: Timestamp) -> bool {
        match &self.mode {
            Mode::Record { snapshot, catalog_version, .. } => {
                ts.0 == snapshot.0 + 1
                    && !engine.catalog_changing.load(Ordering::Acquire)
                    && engine.catalog_version() == *catalog_version
            }
            Mode::Replay { .. } => false,
        }
    }

    /// Whether a call that ran again did what it had done.
    fn is_reproduced(&self, operations: &[u8]) -> bool {
        match self.mode {
            Mode::Record { .. } => false,
            Mode::Replay { strays, crc } => {
                !strays && self.inputs.is_spent() && CallRecord::came_to(crc, operations)
            }
        }
    }
}

/// Recovery: runs a logged call again; it is committed at `ts`.
pub(crate) fn run_again(engine: &Arc<Engine>, record: CallRecord, ts: Timestamp) -> Result<()> {
    let CallRecord { database, procedure: name, arguments, inputs, crc } = record;
    let full_name = format!("{database}.{name}");
    let Some(procedure) = engine.procedures().find(&database, &name) else {
        return Err(EngineError::NotRegistered(full_name));
    };
    let not_reproduced = |why: String| EngineError::NotReproduced { procedure: full_name.clone(), why };
    let arguments = procedure.convert(&arguments).map_err(|e| not_reproduced(e.to_string()))?;
    let options = TxnOptions {
        isolation: Isolation::RepeatableRead,
        freshness: Freshness::Logged,
        ..TxnOptions::default()
    };
    let mut txn = Txn::begin(engine, options);
    txn.set_logical(Logical { mode: Mode::Replay { strays: false, crc }, inputs });
    let ran = procedure.run(&mut txn, &arguments, &mut Reply::default());
    let reproduced = txn.logical().is_some_and(|logical| logical.is_reproduced(txn.operations()));
    match ran {
        Err(EngineError::Storage(e)) => return Err(EngineError::Storage(e)),
        Err(why) => return Err(not_reproduced(why.to_string())),
        Ok(()) if !reproduced => return Err(not_reproduced("it came to other changes".into())),
        Ok(()) => {}
    }
    for op in redo::ops(txn.operations()) {
        if let Op::Insert { table, image, .. } = op.map_err(malformed("redo operation"))?
            && let Some(table) = engine.catalog().table_by_id(table)
        {
            crate::recovery::note_auto_increment(table, image)?;
        }
    }
    txn.commit_again(ts);
    Ok(())
}

/// Lets deterministic calls run one at a time.
#[derive(Default)]
pub(crate) struct Turns {
    taken: Mutex<bool>,
    free: Condvar,
}

/// The turn of one call. Dropping it lets the next one begin.
struct Turn(Arc<Turns>);

impl Turn {
    fn take(engine: &Engine) -> Self {
        let turns = engine.turns.clone();
        let mut taken = turns.taken.lock();
        if *taken {
            drop(taken);
            (engine.wait_hook())(&mut || {
                let mut taken = turns.taken.lock();
                turns.free.wait_while(&mut taken, |taken| *taken);
                *taken = true;
            });
        } else {
            *taken = true;
            drop(taken);
        }
        Self(turns)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.taken.lock() = false;
        self.0.free.notify_one();
    }
}
