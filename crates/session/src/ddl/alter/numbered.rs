//! Rows that ALTER TABLE numbers: those of a column that becomes AUTO_INCREMENT.
//!
//! InnoDB numbers them in the order of the clustered key, and so does a replica that has the statement from the binary log. Rows of a
//! table without such a key are numbered in the order in which they stand, which two servers need not have in common: MySQL manual,
//! "Replication and AUTO_INCREMENT". A partitioned table is numbered partition by partition there.

use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_engine::{
    Direction, IndexHandle, KeyRange, ReadScratch, SnapshotReader, TableHandle, Txn, change_statement,
};
use avocet_types::error::SqlError;
use avocet_types::key::successor;
use avocet_types::schema::{ColumnDef, TableDef};
use avocet_types::{Datum, Value};

use super::Draft;
use crate::bulk::{BATCH, string_bytes};

/// Whether rows may get numbers in a column that had none.
pub(super) fn numbers_rows(draft: &Draft, old: &TableDef) -> bool {
    let columns = draft.def.columns.iter().zip(&draft.sources);
    let is_numbered_now = |(column, source): (&ColumnDef, &Option<usize>)| {
        column.auto_increment && source.is_none_or(|at| !old.columns[at].auto_increment)
    };
    columns.into_iter().any(is_numbered_now)
}

/// Rows are numbered one by one here, whatever auto_increment_increment is: a replica is told to do so, too.
pub(super) fn tell_steps() {
    change_statement(|statement| statement.auto_increment = (1, 1));
}

/// The numbers of a copy's rows.
pub(super) struct Numbers<'c> {
    copy: &'c TableHandle,
    /// A replica would number the rows in another order.
    differs: bool,
}

impl<'c> Numbers<'c> {
    /// `is_logged`: a replica will run the statement.
    pub fn of(copy: &'c TableHandle, old: &TableHandle, is_logged: bool) -> Self {
        let is_ordered = old.def.shown_primary_key().is_some() && old.def.partitioning.is_none();
        Self { copy, differs: is_logged && !is_ordered && old.row_count() > 1 }
    }

    pub fn copy(&self) -> &'c TableHandle {
        self.copy
    }

    pub fn next(&self, column: &ColumnDef) -> Result<Value, SqlError> {
        if self.differs {
            let what =
                "numbers by ALTER TABLE for rows without a primary key, or of partitions, in a binary log";
            let mut error = SqlError::unsupported(what);
            error.message.push_str(
                ": a replica may number them otherwise; INSERT … SELECT into a table that has the column, or SET sql_log_bin = OFF",
            );
            return Err(error);
        }
        let number = self.copy.reserve_auto_increment(1);
        Ok(match column.ty.is_unsigned() {
            true => Datum::UInt(number),
            false => Datum::Int(number as i64),
        })
    }

    /// A row has a number of its own.
    pub fn note(&self, given: &Value) {
        self.copy.note_stored_number(given);
    }
}

/// The rows of a table in the order of its clustered key, some at a time.
pub(super) struct KeyOrder<'t> {
    table: &'t Arc<TableHandle>,
    index: &'t IndexHandle,
    reader: SnapshotReader,
    /// What is still to be read.
    rest: Option<KeyRange>,
    scratch: ReadScratch,
}

impl<'t> KeyOrder<'t> {
    /// `None` for a table without such a key.
    pub fn of(table: &'t Arc<TableHandle>, reader: &SnapshotReader) -> Option<Self> {
        let key = table.def.shown_primary_key()?;
        let index = table.indexes().iter().find(|index| index.def.id == key.id)?;
        let rest = Some(KeyRange::all());
        Some(Self { table, index, reader: reader.clone(), rest, scratch: ReadScratch::default() })
    }

    /// The next rows; none at the end.
    pub fn next(&mut self, txn: &mut Txn) -> Result<Vec<Vec<Value>>, SqlError> {
        let Self { table, index, reader, rest, scratch } = self;
        let Some(range) = rest.take() else { return Ok(Vec::new()) };
        let most_bytes = txn.engine().memory().segment_bytes() / 4;
        let (mut rows, mut bytes, mut last) = (Vec::new(), 0, Vec::new());
        let columns = table.def.columns.len();
        txn.read_at(reader, |txn| {
            txn.index_scan(table, index, &range, Direction::Ascending, scratch, &mut |_, row| {
                let values: Vec<Value> = (0..columns).map(|at| row.get(at).into_owned()).collect();
                bytes += string_bytes(&values);
                rows.push(values);
                if rows.len() < BATCH && bytes < most_bytes {
                    return ControlFlow::Continue(());
                }
                index.keys.encode_row(&row, &mut last);
                ControlFlow::Break(())
            })
        })?;
        // No other row has this key.
        if !last.is_empty() && successor(&mut last) {
            *rest = Some(range.rest_from(&last, Direction::Ascending));
        }
        Ok(rows)
    }
}
