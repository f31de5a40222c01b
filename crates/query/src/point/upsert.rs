//! What an INSERT does with a row whose key is there already: REPLACE, and ON DUPLICATE KEY UPDATE.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use avocet_base::RowId;
use avocet_engine::{Direction, KeyRange, ReadScratch, RowBuf, RowLock, TableHandle, Txn};
use avocet_types::convert::store_column;
use avocet_types::expr::{EvalContext, RowProgram, RowSource};
use avocet_types::{Datum, RowRef, SqlType};

use super::{Refusal, Table, convert_context, note_stored, note_updated, now};
use crate::bind::{CatalogView, UpsertNames};
use crate::error::SqlError;
use crate::parse::statement::Insert;
use crate::session::errors::store_error;

#[derive(Debug)]
pub enum OnDuplicate {
    Fail,
    /// The new row is left out.
    Ignore,
    Replace,
    Update(Updates),
}

/// The assignments of ON DUPLICATE KEY UPDATE, over the old row's columns followed by the new row's.
#[derive(Debug)]
pub struct Updates {
    assignments: Box<[(usize, RowProgram)]>,
    /// Columns that become the statement's time when the row changes.
    touched: Box<[usize]>,
}

/// A row to be inserted, with its number in the statement, from 1.
#[derive(Clone, Copy)]
pub struct NewRow<'r> {
    pub values: &'r [Datum<'r>],
    pub number: u64,
}

/// What became of a row.
pub enum Upserted {
    /// As its values say, but the time columns of an update.
    Changed,
    Unchanged,
    /// It was gone: the new row is to be inserted once more.
    Gone,
}

impl OnDuplicate {
    pub fn compile(
        insert: &Insert,
        source: &[u8],
        view: &dyn CatalogView,
        table: &Table,
        targets: &[usize],
        params: &[SqlType],
    ) -> Result<Self, Refusal> {
        let names = UpsertNames::new(insert, &table.def, targets)?;
        if insert.replace {
            return Ok(Self::Replace);
        }
        if insert.on_duplicate.is_empty() {
            return Ok(if insert.ignore { Self::Ignore } else { Self::Fail });
        }
        let def = &table.def;
        let mut assignments: Vec<(usize, RowProgram)> = Vec::with_capacity(insert.on_duplicate.len());
        for (column, value) in names.bind(&[], source, view, params)? {
            assignments.push((column, RowProgram::compile(&value)?));
        }
        let explicit = |column: usize| assignments.iter().any(|(assigned, _)| *assigned == column);
        let touched =
            (0..def.columns.len()).filter(|&c| def.columns[c].on_update_now && !explicit(c)).collect();
        Ok(Self::Update(Updates { assignments: assignments.into(), touched }))
    }
}

/// The old row with what was assigned so far, and the new row.
struct Both<'a, 'c> {
    old: RowRef<'a>,
    new: &'a [Datum<'a>],
    changes: &'c [(usize, Datum<'a>)],
}

impl<'a> RowSource<'a> for Both<'a, '_> {
    fn datum(&self, column: usize) -> Datum<'a> {
        let width = self.new.len();
        if column >= width {
            return self.new[column - width].clone();
        }
        let assigned = self.changes.iter().find(|(of, _)| *of == column);
        assigned.map_or_else(|| self.old.get(column), |(_, value)| value.clone())
    }
}

impl Updates {
    /// Updates the row that is there.
    pub fn run(
        &self,
        table: &Table,
        id: RowId,
        NewRow { values: new, number }: NewRow<'_>,
        txn: &mut Txn,
        params: &[Datum<'_>],
        ctx: &EvalContext,
    ) -> Result<Upserted, SqlError> {
        let mut buf = RowBuf::default();
        if !txn.lock_row(table, id, RowLock::FOR_UPDATE, &mut buf)? {
            return Ok(Upserted::Gone);
        }
        let old = buf.row(&table.layout);
        let convert = convert_context(ctx);
        let mut changes: Vec<(usize, Datum<'_>)> = Vec::with_capacity(self.assignments.len());
        for (at, program) in &self.assignments {
            let column = &table.def.columns[*at];
            let value = program.eval(&Both { old, new, changes: &changes }, params, ctx)?;
            let stored = store_column(value, program.ty(), column, &convert)
                .map_err(|problem| store_error(&problem, &column.name, number))?;
            if let Some(problem) = &stored.warning {
                note_stored(ctx, problem, &column.name, number);
            }
            note_updated(table, column, &stored.value);
            changes.retain(|(of, _)| of != at);
            changes.push((*at, stored.value));
        }
        changes.retain(|(at, value)| !value.is_same(&old.get(*at)));
        if changes.is_empty() {
            return Ok(Upserted::Unchanged);
        }
        for &at in &self.touched {
            let ty = &table.def.columns[at].ty;
            changes.push((at, now(ty, ctx.statement_time_micros, ctx.time_zone)));
        }
        txn.update(table, id, &changes)?;
        Ok(Upserted::Changed)
    }
}

/// A row, other than `but`, that has one of the new row's unique keys, locked; the indexes in order.
pub fn conflicting(
    table: &Arc<TableHandle>,
    row: &[Datum<'_>],
    but: Option<RowId>,
    txn: &mut Txn,
    read: &mut ReadScratch,
) -> Result<Option<RowId>, SqlError> {
    let (mut key, mut range) = (Vec::new(), KeyRange::default());
    for index in table.indexes().iter().filter(|index| index.def.kind.is_unique()) {
        key.clear();
        let parts = index.def.parts.iter().enumerate();
        let mut parts = parts.map(|(n, part)| (n, &row[part.column]));
        let whole = parts.all(|(n, value)| {
            !value.is_null() && index.keys.encode_parts(n, std::slice::from_ref(value), &mut key)
        });
        if !whole {
            continue;
        }
        range.set(Bound::Included(&key), Bound::Included(&key));
        let mut found = None;
        txn.lock_scan(
            table,
            index,
            &range,
            Direction::Ascending,
            RowLock::FOR_UPDATE,
            read,
            &mut |id, _| {
                if but == Some(id) {
                    return ControlFlow::Continue(());
                }
                found = Some(id);
                ControlFlow::Break(())
            },
        )?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
