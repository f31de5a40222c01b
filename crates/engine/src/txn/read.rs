//! Reads of single rows: by row id, along an index, or one after the other. Those that lock rows are in `txn/locking.rs`.

use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_base::{RowId, SegmentNo};
use avocet_storage::hot::RowBuf;
use avocet_storage::index::Direction;
use avocet_storage::relation::Moment;
use avocet_storage::rows::RowRead;
use avocet_types::RowRef;

use super::action::{LockHow, RowLock};
use super::core::Txn;
use crate::buffers::ReadScratch;
use crate::entries::{each_with_key, entry_is_of};
use crate::error::Result;
use crate::keys::KeyRange;
use crate::table::{IndexHandle, TableHandle, split_entry};

/// Whether a read takes what its snapshot has, or locks the newest committed version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadMode {
    Snapshot,
    Lock(RowLock),
}

impl Txn {
    /// The row as the snapshot has it, into `buf`. False if there is none.
    pub fn read(&self, table: &Arc<TableHandle>, id: RowId, buf: &mut RowBuf) -> Result<bool> {
        self.note_read(|reads| reads.add_table(table));
        self.load(table, id, buf)
    }

    /// As [`Self::read`], for a row that the statement has found by another read already.
    pub fn read_again(&self, table: &TableHandle, id: RowId, buf: &mut RowBuf) -> Result<bool> {
        self.load(table, id, buf)
    }

    /// Copies the row as the snapshot has it. False if there is none.
    pub(super) fn load(&self, table: &TableHandle, id: RowId, buf: &mut RowBuf) -> Result<bool> {
        Ok(table.relation.read_row(id, &self.snapshot(), buf)?)
    }

    /// Visits the rows that the snapshot sees whose key is in the range, in key order.
    pub fn index_scan(
        &self,
        table: &Arc<TableHandle>,
        index: &IndexHandle,
        range: &KeyRange,
        direction: Direction,
        scratch: &mut ReadScratch,
        visit: &mut dyn FnMut(RowId, RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        self.index_scan_of(table, index, range, direction, None, scratch, visit)
    }

    /// The same; if `columns` are given, only these of a row are sure to have their values. With none, entries of cold rows
    /// that nobody has deleted are counted without a look at their block.
    #[expect(clippy::too_many_arguments, reason = "as index_scan, and which columns")]
    pub fn index_scan_of(
        &self,
        table: &Arc<TableHandle>,
        index: &IndexHandle,
        range: &KeyRange,
        direction: Direction,
        columns: Option<&[usize]>,
        scratch: &mut ReadScratch,
        visit: &mut dyn FnMut(RowId, RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        self.check_readable(table, index)?;
        self.note_read(|reads| reads.add_range(table, table.position_of(index), range));
        let ReadScratch { scan, row, key, .. } = scratch;
        let mut outcome = Ok(());
        let (lower, upper) = range.bounds();
        let (snapshot, moment) = (self.snapshot(), Moment::now());
        index.tree.scan(lower, upper, direction, scan, &mut |entry| {
            let (_, id) = split_entry(entry);
            let read = match columns {
                Some(columns) => {
                    table.relation.read_columns(id, &snapshot, columns, moment, row).map_err(Into::into)
                }
                None => self.load(table, id, row).map(|is_there| match is_there {
                    true => RowRead::Whole,
                    false => RowRead::Absent,
                }),
            };
            match read {
                Ok(RowRead::Absent) => ControlFlow::Continue(()),
                Ok(read) => {
                    let row = row.row(&table.layout);
                    if read == RowRead::Whole && !entry_is_of(index, &row, entry, key) {
                        return ControlFlow::Continue(());
                    }
                    visit(id, row)
                }
                Err(e) => {
                    outcome = Err(e);
                    ControlFlow::Break(())
                }
            }
        });
        outcome
    }

    /// Visits all rows, in row id order: what the snapshot sees, or the newest ones, each locked first.
    pub fn table_rows(
        &mut self,
        table: &Arc<TableHandle>,
        mode: ReadMode,
        visit: &mut dyn FnMut(RowId, RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        if mode == ReadMode::Snapshot || self.is_strict() {
            self.note_read(|reads| reads.add_table(table));
        }
        if let ReadMode::Lock(lock) = mode {
            let visit = &mut |id, row: RowRef<'_>| visit(id, row).into();
            return self.lock_table(table, &mut LockHow::all(lock), visit);
        }
        let mut ids = Vec::new();
        let mut buf = RowBuf::default();
        for segment in (0..table.relation.segments()).map(SegmentNo) {
            ids.clear();
            table.relation.possible_rows(segment, &mut ids);
            for &id in &ids {
                if self.load(table, id, &mut buf)? && visit(id, buf.row(&table.layout)).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The row that has exactly this key in a unique index, if the snapshot sees one.
    pub fn get_unique(
        &self,
        table: &Arc<TableHandle>,
        index: &IndexHandle,
        key: &[u8],
        scratch: &mut ReadScratch,
        visit: &mut dyn FnMut(RowId, RowRef<'_>),
    ) -> Result<bool> {
        let mut copy = std::mem::take(&mut scratch.copy);
        let mut found = None;
        let outcome = self.peek_unique(table, index, key, scratch, &mut |id, row| {
            found = Some(id);
            copy.image.clear();
            row.to_image(&mut copy.image);
        });
        if let Some(id) = found {
            visit(id, copy.row(&table.layout));
        }
        scratch.copy = copy;
        outcome
    }

    /// Like [`Self::get_unique`], but shows the row where it is, without a copy. `visit` runs under the latch of
    /// the row's page: it reads columns and nothing else; it must not use the engine, nor wait for anything.
    pub fn peek_unique(
        &self,
        table: &Arc<TableHandle>,
        index: &IndexHandle,
        key: &[u8],
        scratch: &mut ReadScratch,
        visit: &mut dyn FnMut(RowId, RowRef<'_>),
    ) -> Result<bool> {
        self.check_readable(table, index)?;
        self.note_read(|reads| reads.add_range(table, table.position_of(index), &KeyRange::prefix(key)));
        let ReadScratch { scan, row, key: own, .. } = scratch;
        each_with_key(index, key, scan, &mut |id, _| {
            let mut seen = false;
            table.relation.show_row(id, &self.snapshot(), row, &mut |row| {
                seen = index.keys.has_key(&row, key, own);
                if seen {
                    visit(id, row);
                }
            })?;
            Ok(seen)
        })
    }
}
