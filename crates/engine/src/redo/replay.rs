//! Replaying the log: one thread reads it and sorts the operations by segment, workers apply them.
//!
//! ```text
//!  log ─▶ read, check, sort ─┬─ batch ─▶ worker 0: its segments
//!                            ├─ batch ─▶ worker 1: its segments
//! ```
//!
//! A segment belongs to one worker, so its operations are applied in log order. Between segments there is no order to
//! keep: an operation names one row, and all that it needs of it is in the row's segment. A batch carries the catalog
//! that its operations were logged under, so a change of the catalog only ends the batches that are being filled. Only a
//! change that says how many rows a table has waits for the workers, and counts them; and one that lowers a table's
//! AUTO_INCREMENT counter, which the rows before it would raise again.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use avocet_base::codec::Reader;
use avocet_base::{BlockId, Lsn, SegmentNo, TableId, Timestamp};
use avocet_log::{LogReader, LogRecord};
use hashbrown::HashSet;
use parking_lot::Mutex;

use super::apply::Applier;
use super::{Op, Origin, SegmentChange, Statement};
use crate::blocks::Blocks;
use crate::catalog::{Catalog, Change};
use crate::error::{EngineError, Result, malformed};
use crate::redo;

/// Bytes of operations in a batch, about.
const BATCH_BYTES: usize = 256 << 10;
/// Batches that may wait for a worker.
const BATCHES_WAITING: usize = 4;

/// What replay makes, besides rows.
pub(crate) struct Replayed {
    pub catalog: Arc<Catalog>,
    pub last: Timestamp,
    /// The newest transactions of other sources.
    pub origins: Vec<(Timestamp, Origin)>,
    /// Blocks that records refer to.
    pub named: HashSet<BlockId>,
    /// The first record that is a call of a procedure: it and all after it are still to be replayed.
    pub rest: Option<Lsn>,
}

/// Applies the records of `reader`, up to the first call of a procedure, to the tables of `catalog`, of which `last` is the
/// newest timestamp so far. `reader` is at its end then.
pub(crate) fn replay(
    reader: &mut LogReader,
    catalog: Catalog,
    last: Timestamp,
    blocks: &Blocks,
    workers: usize,
) -> Result<Replayed> {
    let failed = Mutex::new(None);
    let (sorted, replayed) = std::thread::scope(|scope| {
        let senders = (0..workers).map(|_| {
            let (sender, receiver) = sync_channel(BATCHES_WAITING);
            let failed = &failed;
            scope.spawn(move || work(&receiver, blocks, failed));
            sender
        });
        let mut sorter = Sorter::new(Arc::new(catalog), last, senders.collect());
        let outcome = sorter.sort(reader);
        (outcome, sorter.replayed)
    });
    // What a worker met is earlier in the log than where the reader then was.
    if let Some(Failure { at, error }) = failed.into_inner() {
        return Err(at_record(at, error));
    }
    sorted.map(|()| replayed)
}

pub(crate) fn at_record(at: Lsn, error: EngineError) -> EngineError {
    match error {
        EngineError::Corrupt { what, why } => {
            EngineError::corrupt(format!("log record at {at}: {what}"), why)
        }
        other => other,
    }
}

/// Operations for one worker.
struct Batch {
    catalog: Arc<Catalog>,
    bytes: Vec<u8>,
    work: Vec<Work>,
}

/// What workers get.
enum Task {
    Batch(Batch),
    /// Say that all before this is done.
    Report(SyncSender<()>),
}

/// Consecutive work from one record.
struct Work {
    record: Lsn,
    range: Range<usize>,
    kind: WorkKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkKind {
    Operations,
    SegmentChange,
}

impl Batch {
    fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, bytes: Vec::with_capacity(BATCH_BYTES), work: Vec::new() }
    }

    fn push(&mut self, record: Lsn, kind: WorkKind, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let end = self.bytes.len();
        match self.work.last_mut() {
            Some(last) if last.record == record && last.kind == kind => last.range.end = end,
            _ => self.work.push(Work { record, range: start..end, kind }),
        }
    }
}

/// The reading side.
struct Sorter {
    replayed: Replayed,
    batches: Vec<Batch>,
    senders: Vec<SyncSender<Task>>,
}

/// A worker has given up; why is in its failure.
struct WorkerGone;

impl Sorter {
    fn new(catalog: Arc<Catalog>, last: Timestamp, senders: Vec<SyncSender<Task>>) -> Self {
        let batches = senders.iter().map(|_| Batch::new(catalog.clone())).collect();
        Self {
            replayed: Replayed { catalog, last, origins: Vec::new(), named: HashSet::new(), rest: None },
            batches,
            senders,
        }
    }

    fn sort(&mut self, reader: &mut LogReader) -> Result<()> {
        while let Some(record) = reader.next_record()? {
            if record.kind == redo::KIND_CALL || self.replayed.rest.is_some() {
                self.replayed.rest.get_or_insert(record.start);
                continue;
            }
            if let Err(WorkerGone) = self.record(&record).map_err(|e| at_record(record.start, e))? {
                return Ok(());
            }
        }
        // A worker that is gone said why.
        let _ = (0..self.senders.len()).try_for_each(|worker| self.send(worker));
        self.senders.clear();
        Ok(())
    }

    fn record(&mut self, record: &LogRecord<'_>) -> Result<Result<(), WorkerGone>> {
        let (ts, last) = (Timestamp(record.tag), self.replayed.last);
        if ts.0 != last.0 + 1 {
            return Err(EngineError::corrupt("its timestamp", format!("{ts} follows {last}")));
        }
        self.replayed.last = ts;
        match record.kind {
            redo::KIND_TXN => self.transaction(record.start, record.payload),
            redo::KIND_APPLIED => {
                let (origin, operations) =
                    Origin::split(record.payload).map_err(malformed("applied record"))?;
                self.replayed.origins.retain(|(_, other)| other.source != origin.source);
                self.replayed.origins.push((ts, origin));
                self.transaction(record.start, operations)
            }
            redo::KIND_CATALOG => self.catalog_change(record.payload),
            redo::KIND_SEGMENT => {
                let change = SegmentChange::decode(record.payload).map_err(malformed("segment record"))?;
                self.replayed.named.extend(change.block);
                let (table, segment) = (change.table, change.segment);
                Ok(self.hand_out(table, segment, record.start, WorkKind::SegmentChange, record.payload))
            }
            other => Err(EngineError::corrupt("its kind", format!("{other} is unknown"))),
        }
    }

    fn transaction(&mut self, start: Lsn, operations: &[u8]) -> Result<Result<(), WorkerGone>> {
        for op in redo::ops_with_bytes(operations) {
            let (op, bytes) = op.map_err(malformed("redo operation"))?;
            let (table, segment) = match op {
                Op::Insert { table, row, .. } | Op::Update { table, row, .. } | Op::Delete { table, row } => {
                    (table, row.segment())
                }
                Op::Block { table, segment, block, .. } => {
                    self.replayed.named.insert(block);
                    (table, segment)
                }
                Op::Before { .. } | Op::Stamp { .. } => continue,
            };
            if self.hand_out(table, segment, start, WorkKind::Operations, bytes).is_err() {
                return Ok(Err(WorkerGone));
            }
        }
        Ok(Ok(()))
    }

    fn catalog_change(&mut self, payload: &[u8]) -> Result<Result<(), WorkerGone>> {
        let change = decode_change(payload)?;
        if (0..self.senders.len()).try_for_each(|worker| self.send(worker)).is_err() {
            return Ok(Err(WorkerGone));
        }
        if change.follows_rows() && self.wait_for_workers().is_err() {
            return Ok(Err(WorkerGone));
        }
        check_rows(&self.replayed.catalog, &change)?;
        let catalog = Arc::make_mut(&mut self.replayed.catalog);
        catalog.apply(&change);
        check_reshaped(catalog, &change)?;
        let catalog = self.replayed.catalog.clone();
        self.batches.iter_mut().for_each(|batch| batch.catalog = catalog.clone());
        Ok(Ok(()))
    }

    fn wait_for_workers(&self) -> Result<(), WorkerGone> {
        let (done, reports) = sync_channel(self.senders.len());
        for sender in &self.senders {
            sender.send(Task::Report(done.clone())).map_err(|_| WorkerGone)?;
        }
        drop(done);
        match reports.iter().count() == self.senders.len() {
            true => Ok(()),
            false => Err(WorkerGone),
        }
    }

    fn hand_out(
        &mut self,
        table: TableId,
        segment: SegmentNo,
        record: Lsn,
        kind: WorkKind,
        bytes: &[u8],
    ) -> Result<(), WorkerGone> {
        let worker = owner(table, segment, self.batches.len());
        let batch = &mut self.batches[worker];
        batch.push(record, kind, bytes);
        if batch.bytes.len() >= BATCH_BYTES { self.send(worker) } else { Ok(()) }
    }

    fn send(&mut self, worker: usize) -> Result<(), WorkerGone> {
        let next = Batch::new(self.replayed.catalog.clone());
        let batch = std::mem::replace(&mut self.batches[worker], next);
        self.senders[worker].send(Task::Batch(batch)).map_err(|_| WorkerGone)
    }
}

pub(crate) fn decode_change(payload: &[u8]) -> Result<Change> {
    decode_statement(payload).map(|(change, _)| change)
}

/// A change, and the statement that it came of, if it is to be told.
pub(crate) fn decode_statement(payload: &[u8]) -> Result<(Change, Option<Statement>)> {
    let mut reader = Reader::new(payload);
    let change = Change::decode(&mut reader).map_err(malformed("catalog change"))?;
    let statement = Statement::decode_rest(&mut reader).map_err(malformed("catalog change"))?;
    Ok((change, statement))
}

/// Whether tables have the rows that a change says they have when it is made.
pub(crate) fn check_rows(catalog: &Catalog, change: &Change) -> Result<()> {
    let count = |id: TableId, expected: u64| {
        let Some(table) = catalog.table_by_id(id) else { return Ok(()) };
        match table.count_rows() {
            found if found == expected => Ok(()),
            found => {
                let why = format!("it has {found} rows, and had {expected} when its definition was changed");
                Err(EngineError::corrupt(id.to_string(), why))
            }
        }
    };
    match change {
        Change::Several(changes) => changes.iter().try_for_each(|change| check_rows(catalog, change)),
        Change::ReplaceTable { new, rows: Some(rows), .. } => count(*new, *rows),
        Change::PublishTable { table, rows, .. } => count(*table, *rows),
        Change::Reshape { old, rows, .. } => count(*old, *rows),
        _ => Ok(()),
    }
}

/// Whether tables whose columns a change has changed have their rows still.
pub(crate) fn check_reshaped(catalog: &Catalog, change: &Change) -> Result<()> {
    match change {
        Change::Several(changes) => changes.iter().try_for_each(|change| check_reshaped(catalog, change)),
        Change::Reshape { def, rows, .. } => {
            match catalog.table_by_id(def.id).map(|table| table.count_rows()) {
                Some(found) if found == *rows => Ok(()),
                found => {
                    let why = match found {
                        Some(found) => format!("it has {found} rows with its new columns, and had {rows}"),
                        None => "it cannot have the columns that the log gives it".into(),
                    };
                    Err(EngineError::corrupt(format!("'{}.{}'", def.database, def.name), why))
                }
            }
        }
        _ => Ok(()),
    }
}

/// The worker that a segment belongs to.
pub(crate) fn owner(table: TableId, segment: SegmentNo, workers: usize) -> usize {
    let mixed = (segment.0 ^ u64::from(table.0) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((u128::from(mixed) * workers as u128) >> 64) as usize
}

/// What a worker could not apply.
struct Failure {
    at: Lsn,
    error: EngineError,
}

fn work(tasks: &Receiver<Task>, blocks: &Blocks, failed: &Mutex<Option<Failure>>) {
    for task in tasks {
        let batch = match task {
            Task::Batch(batch) => batch,
            Task::Report(done) => {
                // Nobody listens if another worker has failed.
                let _ = done.send(());
                continue;
            }
        };
        let applier = Applier { catalog: &batch.catalog, blocks };
        for work in &batch.work {
            let bytes = &batch.bytes[work.range.clone()];
            if let Err(error) = apply(&applier, work.kind, bytes) {
                let mut failed = failed.lock();
                if failed.as_ref().is_none_or(|other| work.record < other.at) {
                    *failed = Some(Failure { at: work.record, error });
                }
                return;
            }
        }
    }
}

fn apply(applier: &Applier<'_>, kind: WorkKind, bytes: &[u8]) -> Result<()> {
    match kind {
        WorkKind::Operations => {
            redo::ops(bytes).try_for_each(|op| applier.op(op.map_err(malformed("redo operation"))?))
        }
        WorkKind::SegmentChange => {
            applier.segment(&SegmentChange::decode(bytes).map_err(malformed("segment record"))?)
        }
    }
}

#[cfg(test)]
mod tests {
    use avocet_types::{ColumnDef, SqlType, TableDef};

    use super::*;

    #[test]
    fn a_change_that_says_how_many_rows_there_are_is_held_to_it() {
        let def = TableDef::new("d", "t", vec![ColumnDef::new("id", SqlType::BIGINT)], vec![]);
        let mut catalog = Catalog::default();
        catalog.apply(&Change::CreateTable(Box::new(TableDef { id: TableId(1), ..def })));
        let publish = |rows| {
            let publish =
                Change::PublishTable { table: TableId(1), database: "d".into(), name: "u".into(), rows };
            Change::Several(vec![Change::AutoIncrement { table: TableId(1), next: 7 }, publish])
        };
        assert!(publish(0).counts_rows());
        check_rows(&catalog, &publish(0)).expect("it is empty");
        let missing = check_rows(&catalog, &publish(5)).expect_err("rows are missing");
        assert!(matches!(missing, EngineError::Corrupt { .. }), "{missing}");
    }
}
