//! One thread's part of what is applied: the operations on its segments, with versions and index entries, since readers look.

use std::sync::Arc;

use avocet_base::RowId;
use avocet_storage::hot::{RowBuf, delta};
use avocet_storage::relation::{Guard, pin};
use avocet_storage::rows::RowLatch;
use avocet_storage::version::StaleEntry;
use avocet_storage::{TxnState, Undo};
use avocet_types::RowRef;

use super::{Piece, cannot};
use crate::activity::CountedAs;
use crate::entries::{self, changes_keys};
use crate::error::{EngineError, Result, malformed};
use crate::garbage::UndoEntry;
use crate::redo::apply::{note_auto_increment, note_used, reach};
use crate::redo::{self, Op};
use crate::table::{IndexHandle, TableHandle};

pub(super) struct Worker<'a> {
    tables: &'a [Arc<TableHandle>],
    /// Whose versions they are.
    state: &'a Arc<TxnState>,
    bytes: &'a [u8],
    pieces: &'a [Piece],
    done: Done,
    old: RowBuf,
    before: Vec<u8>,
}

/// What a worker did, up to an error.
pub(super) struct Done {
    pub undo: Vec<UndoEntry>,
    pub row_changes: Vec<i64>,
    pub outcome: Result<()>,
}

impl<'a> Worker<'a> {
    pub fn new(
        tables: &'a [Arc<TableHandle>],
        state: &'a Arc<TxnState>,
        bytes: &'a [u8],
        pieces: &'a [Piece],
    ) -> Self {
        let done = Done { undo: Vec::new(), row_changes: vec![0; tables.len()], outcome: Ok(()) };
        Self { tables, state, bytes, pieces, done, old: RowBuf::default(), before: Vec::new() }
    }

    pub fn run(mut self) -> Done {
        let pieces = self.pieces;
        self.done.outcome = pieces.iter().try_for_each(|piece| {
            redo::ops(&self.bytes[piece.range.clone()])
                .try_for_each(|op| self.operation(piece.table, op.map_err(malformed("redo operation"))?))
        });
        self.done
    }

    fn operation(&mut self, t: u16, op: Op<'_>) -> Result<()> {
        let tables = self.tables;
        let table = &*tables[usize::from(t)];
        match op {
            Op::Insert { row, image, .. } => self.insert(t, table, row, image),
            Op::Update { row, delta, .. } => self.update(t, table, row, delta),
            Op::Delete { row, .. } => self.delete(t, table, row),
            Op::Before { .. } | Op::Stamp { .. } => Ok(()),
            Op::Block { .. } => Err(cannot("a loaded block", "column blocks are not shared")),
        }
    }

    /// After all that the version is to hold has been put there.
    fn note(&mut self, table: u16, row: RowId, undo: Arc<Undo>, counted: CountedAs) {
        let bytes = undo.link().bytes() as u32;
        self.done.undo.push(UndoEntry { table, row, undo, bytes, counted });
    }

    fn insert(&mut self, t: u16, table: &TableHandle, row: RowId, image: &[u8]) -> Result<()> {
        let view = table.layout.view(image).map_err(malformed("row image"))?;
        let relation = &table.relation;
        reach(relation, row.segment())?;
        relation.note_rows_before(row.0 + 1);
        relation.open_hot(row.segment());
        let taken = || EngineError::corrupt(format!("{} {row}", table.id()), "its place is taken");
        let pinned = pin();
        // Nobody else comes between: the segment is this worker's.
        if relation.glance(row, &pinned).is_some_and(|place| place.is_in_use()) {
            return Err(taken());
        }
        let undo = relation.insert_row(row, image, self.state).ok_or_else(taken)?;
        self.note(t, row, undo, CountedAs::Insert);
        self.done.row_changes[usize::from(t)] += 1;
        note_auto_increment(table, image)?;
        (0..table.indexes.len()).try_for_each(|index| add_entry(table, index, &view, row))
    }

    fn update(&mut self, t: u16, table: &TableHandle, row: RowId, after: &[u8]) -> Result<()> {
        // What is applied in place is taken for well-formed.
        delta::entries(&table.layout, after)
            .try_for_each(|entry| entry.map(drop))
            .map_err(malformed("row delta"))?;
        let pinned = pin();
        let mut latch = self.latch(table, row, &pinned)?;
        latch.keep_row(&mut self.old);
        let undo = latch.update(after, self.state, &mut self.before).map_err(malformed("row delta"))?;
        note_used(table, &latch.row(&self.old));
        drop(latch);
        let moved = self.move_entries(table, row, after, &undo);
        self.note(t, row, undo, CountedAs::Update);
        moved
    }

    /// The row as it is to be for a change.
    fn latch<'r>(&self, table: &'r TableHandle, row: RowId, pinned: &'r Guard) -> Result<RowLatch<'r>> {
        let missing = || EngineError::corrupt(format!("{} {row}", table.id()), "there is no such row");
        if row.segment().0 >= table.relation.segments() {
            return Err(missing());
        }
        let latch = table.relation.latch_versions(row, pinned).ok_or_else(missing)?;
        if latch.is_immutable() {
            return Err(cannot(
                "a change of a frozen row",
                "rows of column blocks have no place to change in",
            ));
        }
        if latch.holder(self.state).is_some() {
            return Err(EngineError::LockNotAvailable);
        }
        if latch.is_live() { Ok(latch) } else { Err(missing()) }
    }

    /// Entries under new keys are added; those under the old ones go with the version.
    fn move_entries(&self, table: &TableHandle, row: RowId, after: &[u8], undo: &Undo) -> Result<()> {
        if !changes_keys(table, after) {
            return Ok(());
        }
        entries::each_moved(table, row, after, &self.old, &mut |moved| {
            let index = &table.indexes[moved.index];
            undo.link().stale.push(StaleEntry { index: index.def.id, entry: moved.before.into() });
            add_encoded(index, moved.now)
        })
    }

    fn delete(&mut self, t: u16, table: &TableHandle, row: RowId) -> Result<()> {
        let pinned = pin();
        let mut latch = self.latch(table, row, &pinned)?;
        let undo = latch.delete(self.state);
        drop(latch);
        self.note(t, row, undo, CountedAs::Delete);
        self.done.row_changes[usize::from(t)] -= 1;
        Ok(())
    }
}

fn add_entry(table: &TableHandle, index: usize, row: &RowRef<'_>, id: RowId) -> Result<()> {
    let mut entry = Vec::new();
    table.indexes[index].entry(row, id, &mut entry);
    add_encoded(&table.indexes[index], &entry)
}

/// The source has looked whether a unique key was free.
fn add_encoded(index: &IndexHandle, entry: &[u8]) -> Result<()> {
    entries::check_entry_len(entry.len())?;
    index.tree.insert(entry);
    Ok(())
}
