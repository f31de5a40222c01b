//! `ALTER TABLE … AUTO_INCREMENT = n`: it may lower the counter, down to what the rows leave free.

use std::ops::ControlFlow;
use std::sync::Arc;

use avocet_engine::{Direction, IndexHandle, KeyRange, ReadScratch, TableHandle};
use avocet_types::Datum;
use avocet_types::error::SqlError;

use crate::state::Session;

impl Session {
    /// The next number of a table that is held alone, if `wanted` is asked for.
    pub(super) fn next_number_of(
        &mut self,
        table: &Arc<TableHandle>,
        wanted: Option<u64>,
    ) -> Result<Option<u64>, SqlError> {
        let (Some(wanted), Some(column)) = (wanted, table.def.auto_increment_column()) else {
            return Ok(wanted);
        };
        let next = table.next_auto_increment();
        if wanted >= next {
            return Ok(Some(wanted));
        }
        let first = |index: &&Arc<IndexHandle>| {
            index.def.parts.first().is_some_and(|part| part.column == column && part.prefix_len.is_none())
        };
        // It is the first part of some key.
        let Some(index) = table.indexes().iter().find(first) else { return Ok(Some(next)) };
        let direction = match index.def.parts[0].descending {
            true => Direction::Ascending,
            false => Direction::Descending,
        };
        let mut greatest = 0;
        let mut txn = self.shared.engine.begin(self.ddl_options());
        let reader = txn.newest_reader();
        txn.read_at(&reader, |txn| {
            let scratch = &mut ReadScratch::default();
            txn.index_scan(table, index, &KeyRange::all(), direction, scratch, &mut |_, row| {
                greatest = match row.get(column) {
                    Datum::Int(used) => u64::try_from(used).unwrap_or(0),
                    Datum::UInt(used) => used,
                    Datum::Float(used) => used as u64,
                    Datum::Double(used) => used as u64,
                    _ => 0,
                };
                ControlFlow::Break(())
            })
        })?;
        Ok(Some(wanted.max(greatest.saturating_add(1))))
    }
}
