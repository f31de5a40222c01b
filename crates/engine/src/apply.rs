//! Applying what was committed elsewhere, while readers go on: a primary's log on a replica, or another source's transactions.
//!
//! ```text
//!  records ─▶ push: cut into operations, by table and segment ─┬─▶ worker: its segments ─┐
//!                                                              └─▶ worker: its segments ─┴─▶ publish: one commit, with the origin
//! ```
//!
//! Whatever is pushed between two calls of [`Applier::publish`] becomes visible at once, as one commit of this engine. Its record has the
//! operations, and where they come from: source, position, wall-clock time. So rows and position are in force together or not at all,
//! also after a crash, and [`Engine::applied`] says where to go on.
//!
//! Operations name rows by the ids that they have at their source. Those of one row are applied in their order, by one worker; between rows there
//! is none to keep, since nothing is looked up: keys were checked at the source. Sources that do not know row ids change rows by
//! [`Applier::transaction`].
//!
//! Invariants:
//! 1. No snapshot sees a part of what is published together: it is all in the name of one transaction.
//! 2. After an error nothing of what was pushed since the last publication stays.
//! 3. Nobody else gives out row ids of tables that are changed by row ids, or moves their rows: the engine runs with
//!    [`FreezePolicy::Never`]. Changes by key look rows up, wherever these are.
//! 4. What is withheld from others ([`Engine::withhold`]) is changed all the same.

mod worker;

use std::ops::Range;
use std::sync::Arc;

use avocet_base::{SegmentNo, TableId};
use avocet_log::LogRecord;

use crate::commit::CommitTicket;
use crate::engine::{Engine, FreezePolicy};
use crate::error::{EngineError, Result, malformed};
use crate::redo::replay::owner;
use crate::redo::{self, Op, Origin};
use crate::txn::{Txn, TxnOptions};
use worker::Worker;

/// Operations are handed to the workers when there are so many bytes of them.
const BATCH_BYTES: usize = 1 << 20;
/// Fewer are applied by the thread that pushed them.
const WORTH_THREADS: usize = 32 << 10;

/// Applies one source's transactions.
pub struct Applier {
    engine: Arc<Engine>,
    source: u32,
    /// What was pushed since the last publication.
    txn: Option<Txn>,
    pending: Vec<u8>,
    /// By worker: operations in `pending`, each with its table's number in the transaction.
    work: Vec<Vec<Piece>>,
}

/// Operations of one table, back to back.
struct Piece {
    table: u16,
    range: Range<usize>,
}

impl Engine {
    /// Begins to apply transactions of a source, whose number is the caller's choice, on so many threads.
    pub fn applier(self: &Arc<Self>, source: u32, workers: usize) -> Applier {
        let work = (0..workers.max(1)).map(|_| Vec::new()).collect();
        Applier { engine: self.clone(), source, txn: None, pending: Vec::new(), work }
    }
}

impl Engine {
    /// From now on statements that use a table of this name fail, and say why. It need not be there yet. Statements that
    /// run already go on with the rows that they see. This is not kept: whoever withholds does so again after a restart.
    pub fn withhold(&self, database: &str, table: &str, why: &str) {
        self.withheld.add(database, table, why);
    }

    /// Ends what [`withhold`](Self::withhold) began.
    pub fn release(&self, database: &str, table: &str) {
        self.withheld.remove(database, table);
    }
}

fn cannot(what: &'static str, why: &'static str) -> EngineError {
    EngineError::CannotApply { what, why }
}

impl Applier {
    /// A record of a log, in that log's order.
    ///
    /// # Errors
    /// `CannotApply` if the engine freezes rows by itself, for changes of the catalog, of segments, and for calls, which this does not do yet; `Corrupt` if rows are not as the
    /// operations need them; of kind `Retry` if somebody else holds a row.
    pub fn push(&mut self, record: &LogRecord<'_>) -> Result<()> {
        if self.engine.options.freeze != FreezePolicy::Never {
            return Err(cannot("a log", "rows must not be frozen here by themselves"));
        }
        match record.kind {
            redo::KIND_TXN => self.operations(record.payload),
            redo::KIND_APPLIED => {
                let split = Origin::split(record.payload).map_err(malformed("applied record"));
                split.and_then(|(_, operations)| self.operations(operations))
            }
            redo::KIND_CATALOG => Err(cannot("a change of the catalog", "definitions are made at both ends")),
            redo::KIND_SEGMENT => Err(cannot("a segment record", "column blocks are not shared")),
            redo::KIND_CALL => Err(cannot("a call", "the source must log rows")),
            other => Err(EngineError::corrupt("a record's kind", format!("{other} is unknown"))),
        }
        .inspect_err(|_| self.take_back())
    }

    /// The transaction that is published next, to change rows by their keys. What was pushed before is in force in it.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn transaction(&mut self) -> Result<&mut Txn> {
        self.apply_pending().inspect_err(|_| self.take_back())?;
        Ok(self.running())
    }

    /// Makes all that was pushed since the last time visible, at once; the source is in force here up to a position.
    pub fn publish(&mut self, position: &[u8], wall_us: i64) -> Result<CommitTicket> {
        self.apply_pending().inspect_err(|_| self.take_back())?;
        let source = self.source;
        self.running().set_origin(Origin { source, position: position.to_vec(), wall_us });
        let txn = self.txn.take().expect("it runs");
        txn.commit()
    }

    /// Takes back all that was pushed since the last publication.
    pub fn take_back(&mut self) {
        self.txn = None;
        self.forget_pending();
    }

    fn forget_pending(&mut self) {
        self.pending.clear();
        self.work.iter_mut().for_each(Vec::clear);
    }

    fn running(&mut self) -> &mut Txn {
        self.txn.get_or_insert_with(|| {
            let mut txn = self.engine.begin(TxnOptions::default());
            txn.see_withheld();
            txn
        })
    }

    fn operations(&mut self, operations: &[u8]) -> Result<()> {
        for op in redo::ops_with_bytes(operations) {
            let (op, bytes) = op.map_err(malformed("redo operation"))?;
            let (table, segment) = match op {
                Op::Insert { table, row, .. } | Op::Update { table, row, .. } | Op::Delete { table, row } => {
                    (table, row.segment())
                }
                Op::Before { .. } | Op::Stamp { .. } => continue,
                Op::Block { .. } => return Err(cannot("a loaded block", "column blocks are not shared")),
            };
            self.hand_out(table, segment, bytes)?;
        }
        if self.pending.len() >= BATCH_BYTES { self.apply_pending() } else { Ok(()) }
    }

    fn hand_out(&mut self, table: TableId, segment: SegmentNo, bytes: &[u8]) -> Result<()> {
        let t = self.number_of(table)?;
        let worker = owner(table, segment, self.work.len());
        let start = self.pending.len();
        self.pending.extend_from_slice(bytes);
        let range = start..self.pending.len();
        match self.work[worker].last_mut() {
            Some(last) if last.table == t && last.range.end == start => last.range.end = range.end,
            _ => self.work[worker].push(Piece { table: t, range }),
        }
        Ok(())
    }

    /// The table's number in the transaction.
    fn number_of(&mut self, id: TableId) -> Result<u16> {
        let used = self.running().tables().iter().position(|table| table.id() == id);
        if let Some(at) = used {
            return Ok(at as u16);
        }
        let catalog = self.engine.catalog();
        let unknown = || EngineError::corrupt(id.to_string(), "there is no such table");
        let table = catalog.table_by_id(id).ok_or_else(unknown)?;
        self.running().writable_table(table)
    }

    fn apply_pending(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.running().check_room()?;
        let Self { txn, pending, work, .. } = self;
        let txn = txn.as_mut().expect("it runs");
        let state = txn.state_to_share();
        let workers: Vec<_> = {
            let begin = |pieces| Worker::new(txn.tables(), &state, pending, pieces);
            let busy = work.iter().filter(|pieces| !pieces.is_empty());
            match pending.len() < WORTH_THREADS {
                true => busy.map(|pieces| begin(pieces).run()).collect(),
                false => std::thread::scope(|scope| {
                    let threads: Vec<_> = busy.map(|pieces| (begin(pieces), scope)).collect();
                    let threads: Vec<_> =
                        threads.into_iter().map(|(worker, scope)| scope.spawn(|| worker.run())).collect();
                    let joined = threads.into_iter().map(|thread| thread.join());
                    joined.map(|done| done.unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
                }),
            }
        };
        let mut outcome = Ok(());
        for done in workers {
            txn.adopt(done.undo, &done.row_changes);
            outcome = outcome.and(done.outcome);
        }
        txn.adopt_redo(pending);
        self.forget_pending();
        outcome
    }
}
