//! What an INSERT does with a row whose key is there already: IGNORE, REPLACE, ON DUPLICATE KEY UPDATE.

use std::sync::Arc;

use avocet_base::RowId;
use avocet_engine::{EngineError, ReadScratch, RowBuf, RowLock, TableHandle};
use avocet_point::{LookupScratch, NewRow, Rounds, Upserted, auto_number, conflicting};
use avocet_types::Value;
use avocet_types::error::SqlError;

use super::{Inserter, OnDuplicate};
use crate::state::Session;

/// What came of changing a row in place of REPLACE's delete and insert.
enum Replaced {
    Done,
    /// Another row has one of the new row's keys.
    Blocked,
    /// The row has to go.
    Refused,
}

impl Session {
    /// Inserts a row, or does what is to be done if its key is there.
    pub(crate) fn insert_row(
        &mut self,
        inserter: &mut Inserter<'_>,
        row: Vec<Value>,
    ) -> Result<(), SqlError> {
        inserter.counts.rows += 1;
        let mut read = ReadScratch::default();
        let mut rounds = Rounds::default();
        loop {
            match self.txn().insert(&inserter.table, &row) {
                Ok(_) => {
                    inserter.note_inserted(&row);
                    return Ok(());
                }
                Err(error @ EngineError::DuplicateKey { .. }) => match inserter.on_duplicate {
                    OnDuplicate::Fail => return Err(error.into()),
                    OnDuplicate::Ignore => {
                        inserter.counts.duplicates += 1;
                        inserter.give_number_back();
                        self.ignore_row(error);
                        return Ok(());
                    }
                    OnDuplicate::Replace => {
                        let conflict = conflicting(&inserter.table, &row, None, self.txn(), &mut read)?;
                        if let Some(conflict) = conflict
                            && inserter.generated.is_some()
                            && conflict.is_of_number(inserter.auto)
                        {
                            return Err(error.into());
                        }
                        rounds.next(error, || self.info.interrupt.check())?;
                        let Some(conflict) = conflict else { continue };
                        if conflict.is_replaced_by_itself(&inserter.table, &row, self.txn())? {
                            inserter.note_inserted(&row);
                            return Ok(());
                        }
                        let id = conflict.row;
                        let goes = match self.replace_in_place(&inserter.table, id, &row)? {
                            Replaced::Done => {
                                inserter.counts.duplicates += 1;
                                inserter.counts.affected += 2;
                                inserter.counts.last_number = auto_number(inserter.auto, &&row[..]);
                                return Ok(());
                            }
                            Replaced::Blocked => {
                                let other =
                                    conflicting(&inserter.table, &row, Some(id), self.txn(), &mut read)?;
                                other.map(|conflict| conflict.row)
                            }
                            Replaced::Refused => Some(id),
                        };
                        if let Some(goes) = goes
                            && self.txn().delete(&inserter.table, goes)?
                        {
                            inserter.counts.duplicates += 1;
                            inserter.counts.affected += 1;
                        }
                    }
                    OnDuplicate::Update => {
                        rounds.next(error, || self.info.interrupt.check())?;
                        if let Some(found) = conflicting(&inserter.table, &row, None, self.txn(), &mut read)?
                            && self.update_duplicate(inserter, found.row, &row)?
                        {
                            inserter.give_number_back();
                            return Ok(());
                        }
                    }
                },
                Err(EngineError::ForeignKey(error)) if inserter.ignore && error.is_of_row() => {
                    inserter.counts.rows -= 1;
                    self.ignore_row(error.into());
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// REPLACE of a row that others may refer to: if it keeps what they refer to, it is changed, so that they need not notice.
    fn replace_in_place(
        &mut self,
        table: &Arc<TableHandle>,
        id: RowId,
        new: &[Value],
    ) -> Result<Replaced, SqlError> {
        let mut buf = RowBuf::default();
        if !table.is_parent() || !self.txn().lock_row(table, id, RowLock::FOR_UPDATE, &mut buf)? {
            return Ok(Replaced::Refused);
        }
        let old = buf.row(&table.layout);
        let catalog = self.catalog();
        let mut referenced = catalog.foreign_keys_to(table.id()).flat_map(|(_, key)| &key.parent_columns);
        let keeps = |column: usize| new[column].is_same(&old.get(column));
        if !referenced.all(|name| table.def.column(name).is_some_and(keeps)) {
            return Ok(Replaced::Refused);
        }
        let changes: Vec<_> = new.iter().cloned().enumerate().filter(|(column, _)| !keeps(*column)).collect();
        match self.txn().update(table, id, &changes) {
            Ok(_) => Ok(Replaced::Done),
            Err(EngineError::DuplicateKey { .. }) => Ok(Replaced::Blocked),
            Err(error) => Err(error.into()),
        }
    }

    /// ON DUPLICATE KEY UPDATE of a row; false if it is gone.
    fn update_duplicate(
        &mut self,
        inserter: &mut Inserter<'_>,
        id: RowId,
        new: &[Value],
    ) -> Result<bool, SqlError> {
        let Inserter { table, updates: Some(updates), beside, params, counts, ignore, .. } = inserter else {
            return Ok(false);
        };
        let new = NewRow { values: new, beside, number: counts.rows };
        let mut lookups = LookupScratch::default();
        let upserted = self
            .with_run(params, |txn, run, _| updates.run(table, id, new, *ignore, txn, run, &mut lookups))?;
        inserter.counts.affected += match upserted {
            Upserted::Gone => return Ok(false),
            Upserted::Changed { number } => {
                inserter.counts.last_number = number;
                2
            }
            Upserted::Unchanged => u64::from(self.info.found_rows),
            Upserted::Left => 0,
        };
        inserter.counts.duplicates += 1;
        Ok(true)
    }
}
