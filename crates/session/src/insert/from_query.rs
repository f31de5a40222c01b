//! INSERT … SELECT: the query's rows are inserted as they come, so that neither memory nor redo grows with their number.
//!
//! Many rows go to column blocks. What becomes of rows whose keys are there is found out block by block: see `load/blocks.rs`.
//!
//! The query must not see what its own statement inserts. It reads as if the transaction did nothing; if that has changed
//! rows before, which the query is to see, its rows are gathered first, unless it reads other tables than are changed.

use std::sync::Arc;

use avocet_channel::blocking::{ROWS_IN_PLACE, blocking_if};
use avocet_engine::TableHandle;
use avocet_point::{BULK_ROWS, LARGE_SHARE, auto_number};
use avocet_sql::plan::BoundQuery;
use avocet_types::error::SqlError;
use avocet_types::{SqlType, Value};

use super::{Given, Inserter, OnDuplicate};
use crate::bulk::{Bulk, string_bytes};
use crate::collect::{Collected, for_each_row};
use crate::load::Blocks;
use crate::run::Text;
use crate::select::Purpose;
use crate::state::Session;

/// Where the rows of a query go. The first ones wait until it is known whether there are many.
struct Taken {
    first: Collected,
    /// Of the query's columns.
    types: Vec<SqlType>,
    large: Option<Large>,
    rows: u64,
}

/// Where rows go once they are many.
enum Large {
    /// A key that is there is an error.
    Bulk(Bulk),
    /// It is not.
    Blocks(Blocks),
}

/// Of rows whose keys may be there, so many go one by one at least.
const ROWS_BEFORE_BLOCKS: u64 = 1000;

impl Taken {
    /// Whether many rows may go to column blocks. If a row's key is there and the query's columns say what to do about it, each
    /// row has to be at hand with these.
    fn may_be_large(&self, inserter: &Inserter<'_>) -> bool {
        inserter.on_duplicate == OnDuplicate::Fail || self.types.len() == inserter.targets.len()
    }
}

impl Session {
    pub(super) async fn insert_query(
        &mut self,
        inserter: &mut Inserter<'_>,
        bound: BoundQuery,
        tables: Vec<Arc<TableHandle>>,
        text: &Text<'_>,
    ) -> Result<(), SqlError> {
        let types = bound.output().map(|column| column.ty).collect();
        let mut taken = Taken { first: self.collected(), types, large: None, rows: 0 };
        let in_place = self.run_in_place(&bound, &tables, text, &mut taken.first, Purpose::Change).await?;
        if in_place.is_none() {
            // REPLACE and ON DUPLICATE KEY UPDATE change what refers to the table, too.
            let is_apart = inserter.on_duplicate == OnDuplicate::Fail
                && tables.iter().all(|table| table.id() != inserter.table.id());
            let reader = match self.txn().reader_of_before() {
                None if is_apart => Some(self.txn().read_for_change(|txn| txn.reader())),
                reader => reader,
            };
            match reader {
                Some(reader) => {
                    let mut run = self.start_analytics(reader.into(), Arc::new(bound), tables, text)?;
                    while let Some(batch) = run.next().await? {
                        let is_much = batch.num_rows() > ROWS_IN_PLACE;
                        blocking_if(is_much, || self.take_batch(inserter, &mut taken, &batch))?;
                    }
                }
                None => {
                    let reader = self.txn().read_for_change(|txn| txn.reader()).into();
                    self.analyze_at(reader, bound.into(), tables, text, &mut taken.first, u64::MAX).await?;
                }
            }
        }
        let is_much = taken.first.len() > ROWS_IN_PLACE;
        blocking_if(is_much, || self.finish_taking(inserter, taken))
    }

    fn take_batch(
        &mut self,
        inserter: &mut Inserter<'_>,
        taken: &mut Taken,
        batch: &arrow::record_batch::RecordBatch,
    ) -> Result<(), SqlError> {
        if taken.large.is_none() && taken.may_be_large(inserter) {
            taken.first.add(batch, &taken.types)?;
            return match self.is_much(&taken.first) {
                true => self.take_first(inserter, taken),
                false => Ok(()),
            };
        }
        let Taken { types, large, rows, .. } = taken;
        for_each_row(batch, types, &mut |row| self.take_row(inserter, large.as_mut(), rows, row))
    }

    /// Whether column blocks are worth it: for many rows, or large ones.
    pub(crate) fn is_much(&self, rows: &Collected) -> bool {
        let block = self.shared.engine.memory().segment_bytes();
        rows.len() > BULK_ROWS || rows.bytes() >= block / LARGE_SHARE
    }

    /// Inserts the rows that waited: one by one, or with all that come after them to column blocks. If a key that is there is no
    /// error, those after the first few: so that the first number that is generated is known to be of a row that was inserted.
    fn take_first(&mut self, inserter: &mut Inserter<'_>, taken: &mut Taken) -> Result<(), SqlError> {
        let first = taken.first.take();
        let is_large = self.is_much(&first) && taken.may_be_large(inserter);
        if is_large && inserter.on_duplicate == OnDuplicate::Fail {
            taken.large = Some(Large::Bulk(Bulk::new(&inserter.table)));
        }
        let memory = self.shared.engine.memory().clone();
        let Taken { large, rows, .. } = taken;
        first.for_each(&mut |row| {
            if is_large && large.is_none() && *rows >= ROWS_BEFORE_BLOCKS {
                *large = Some(Large::Blocks(Blocks::new(&inserter.table, memory.clone())));
            }
            self.take_row(inserter, large.as_mut(), rows, row)
        })?;
        if is_large && large.is_none() {
            *large = Some(Large::Blocks(Blocks::new(&inserter.table, memory)));
        }
        Ok(())
    }

    fn finish_taking(&mut self, inserter: &mut Inserter<'_>, mut taken: Taken) -> Result<(), SqlError> {
        self.take_first(inserter, &mut taken)?;
        match taken.large {
            Some(Large::Bulk(bulk)) => {
                inserter.counts.rows = bulk.finish(self.txn())?;
                inserter.counts.affected = inserter.counts.rows;
                Ok(())
            }
            Some(Large::Blocks(mut blocks)) => blocks.finish(self, inserter),
            None => Ok(()),
        }
    }

    fn take_row(
        &mut self,
        inserter: &mut Inserter<'_>,
        large: Option<&mut Large>,
        number: &mut u64,
        mut row: Vec<(Value, SqlType)>,
    ) -> Result<(), SqlError> {
        *number += 1;
        self.info.interrupt.check()?;
        let beside = row.split_off(inserter.targets.len());
        inserter.beside = beside.into_iter().map(|(value, _)| value).collect();
        let given = row.into_iter().map(|(value, ty)| Given::Value(value, ty)).collect();
        let Some(values) = self.complete(inserter, given, *number)? else { return Ok(()) };
        match large {
            Some(Large::Bulk(bulk)) => {
                inserter.note_inserted(&values);
                bulk.push(self.txn(), &values)
            }
            Some(Large::Blocks(blocks)) => {
                if inserter.counts.first_generated == 0 {
                    inserter.counts.first_generated = inserter.generated.unwrap_or(0);
                }
                inserter.counts.last_number = auto_number(inserter.auto, &&values[..]);
                let bytes = string_bytes(&values) + values.len() * size_of::<u64>();
                blocks.push(self, inserter, &values, bytes)
            }
            None => self.insert_row(inserter, values),
        }
    }
}
