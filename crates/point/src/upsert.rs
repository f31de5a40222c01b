//! What an INSERT does with a row whose key is there already: REPLACE, and ON DUPLICATE KEY UPDATE.

use std::sync::Arc;

use avocet_base::RowId;
use avocet_engine::{Catalog, EngineError, ReadScratch, RowBuf, RowLock, TableHandle, Txn};
use avocet_sql::bind::{CatalogView, Upsert, UpsertNames};
use avocet_sql::parse::statement::{Insert, InsertSource};
use avocet_types::error::SqlError;
use avocet_types::expr::program::reborrow;
use avocet_types::expr::{Expr, RowProgram, RowSource};
use avocet_types::{Datum, SqlType, TableDef, Value};

use super::assign::{Assigned, Assignments};
use super::checks::{RowCheck, first_failed, warn_of_check};
use super::ignore::{can_ignore, is_of_row, warn_of, warn_of_row};
use super::lookups::{LookupScratch, Lookups};
use super::{ReadAs, Refusal, Run, Table};

#[derive(Debug)]
pub enum OnDuplicate {
    Fail,
    /// The new row is left out.
    Ignore,
    Replace,
    Update(Updates),
}

/// The assignments of ON DUPLICATE KEY UPDATE, over the old row's columns followed by the new row's and those that only the
/// query has.
#[derive(Debug)]
pub struct Updates {
    assignments: Assignments,
    lookups: Option<Box<Lookups>>,
    /// Variables of the session stand in them as the values that they had.
    is_of_session: bool,
    /// Of the views through which the row changes.
    checks: Arc<[RowCheck]>,
}

/// A row to be inserted, with its number in the statement, from 1.
#[derive(Clone, Copy)]
pub struct NewRow<'r> {
    pub values: &'r [Datum<'r>],
    /// What the query has for assignments alone.
    pub beside: &'r [Datum<'r>],
    pub number: u64,
}

/// What became of a row.
pub enum Upserted {
    /// As its values say, but the time columns of an update.
    Changed {
        /// Its AUTO_INCREMENT value.
        number: u64,
    },
    Unchanged,
    /// It stays, with a warning.
    Left,
    /// It was gone: the new row is to be inserted once more.
    Gone,
}

impl OnDuplicate {
    /// `beside` are the types of what the query has for assignments alone.
    #[expect(clippy::too_many_arguments, reason = "the statement, bound, and what it is bound with")]
    pub fn compile(
        insert: &Insert,
        names: &UpsertNames<'_>,
        source: &[u8],
        view: &dyn CatalogView,
        def: &TableDef,
        beside: &[SqlType],
        params: &[SqlType],
        catalog: &Catalog,
    ) -> Result<Self, Refusal> {
        if insert.replace {
            return Ok(Self::Replace);
        }
        if insert.on_duplicate.is_empty() {
            return Ok(if insert.ignore { Self::Ignore } else { Self::Fail });
        }
        Updates::compile(insert, names, source, view, def, beside, params, catalog).map(Self::Update)
    }

    /// Whether variables of the session have become values in it.
    pub(super) fn is_of_session(&self) -> bool {
        matches!(self, Self::Update(updates) if updates.is_of_session)
    }

    /// The tables that subqueries of assignments read.
    pub(super) fn tables(&self) -> impl Iterator<Item = Table> {
        let updates = if let Self::Update(updates) = self { Some(updates) } else { None };
        updates.into_iter().flat_map(|updates| updates.tables().cloned().map(Table))
    }

    /// These, and the parameters that those subqueries read as dates or times.
    pub(super) fn with_dates(&self, dates: &[(usize, ReadAs)]) -> Box<[(usize, ReadAs)]> {
        let own = if let Self::Update(updates) = self { updates.dates() } else { &[] };
        let mut all = [dates, own].concat();
        all.sort_unstable();
        all.dedup();
        all.into()
    }
}

impl Updates {
    /// `names` tell what the assignments mean, `beside` are the types of what the query has for them alone.
    #[expect(clippy::too_many_arguments, reason = "the statement, bound, and what it is bound with")]
    pub fn compile(
        insert: &Insert,
        names: &UpsertNames<'_>,
        source: &[u8],
        view: &dyn CatalogView,
        def: &TableDef,
        beside: &[SqlType],
        params: &[SqlType],
        catalog: &Catalog,
    ) -> Result<Self, Refusal> {
        let Upsert { assignments, width, subqueries, is_of_session } =
            names.bind(beside, source, view, params)?;
        let lookups = subqueries.map(|query| Lookups::compile(&query, width, catalog)).transpose()?;
        // One row alone, or a query's, is not given another value for a NULL.
        let is_list = matches!(&insert.source, InsertSource::Values(rows) if rows.len() > 1);
        // The row's columns, those of the new row, and the query's.
        let shown = |at: usize| {
            let name = |column: usize| {
                def.columns.get(column).map(|c| format!("`{}`.`{}`.`{}`", def.database, def.name, c.name))
            };
            let of_new_row =
                || name(at.checked_sub(def.columns.len())?).map(|name| format!("values({name})"));
            name(at).or_else(of_new_row).unwrap_or_else(|| "a query's value".to_owned())
        };
        let compile = |value: &Expr| match &lookups {
            Some(lookups) => Ok(RowProgram::compile_named(&lookups.over_answers(value), &shown)?),
            None => Ok(RowProgram::compile_named(value, &shown)?),
        };
        let assignments = Assignments::compile(&assignments, def, insert.ignore || is_list, &compile)?;
        Ok(Self { assignments, lookups: lookups.map(Box::new), checks: Arc::default(), is_of_session })
    }

    /// With what the changed row has to meet.
    pub fn checked(self, checks: Arc<[RowCheck]>) -> Self {
        Self { checks, ..self }
    }

    /// The columns that change when a row is updated.
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.assignments.columns()
    }

    /// The tables that its subqueries read.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableHandle>> {
        self.lookups.iter().flat_map(|lookups| lookups.tables.iter().map(|table| &table.0))
    }

    /// The parameters that its subqueries read as dates or times.
    pub(super) fn dates(&self) -> &[(usize, ReadAs)] {
        self.lookups.as_ref().map_or(&[], |lookups| &lookups.dates)
    }

    /// Updates the row that is there. `ignore`: what is wrong with one row is a warning.
    #[expect(clippy::too_many_arguments, reason = "a row, and what changes it")]
    pub fn run(
        &self,
        table: &Arc<TableHandle>,
        id: RowId,
        new: NewRow<'_>,
        ignore: bool,
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut LookupScratch,
    ) -> Result<Upserted, SqlError> {
        let mut buf = RowBuf::default();
        if !txn.lock_row(table, id, RowLock::FOR_UPDATE, &mut buf)? {
            return Ok(Upserted::Gone);
        }
        let old = buf.row(&table.layout);
        let answers = match &self.lookups {
            Some(lookups) => {
                let own = (0..table.def.columns.len()).map(|column| old.get(column).into_owned());
                let given = new.values.iter().chain(new.beside).map(|value| value.clone().into_owned());
                let row: Vec<Value> = own.chain(given).collect();
                lookups.run(&row, txn, run, scratch)?
            }
            None => Vec::new(),
        };
        let all: Vec<Datum<'_>>;
        let inputs = if new.beside.is_empty() && answers.is_empty() {
            new.values
        } else {
            all = new.values.iter().chain(new.beside).chain(&answers).map(reborrow).collect();
            &all
        };
        let mut changes: Vec<(usize, Datum<'_>)> = Vec::new();
        match self.assignments.evaluate(table, old, inputs, run, new.number, &mut changes) {
            Err(error) if ignore && is_of_row(&error) => {
                warn_of_row(run.ctx, error);
                return Ok(Upserted::Left);
            }
            other => other?,
        }
        if changes.is_empty() {
            return Ok(Upserted::Unchanged);
        }
        let row = Assigned { row: old, width: table.def.columns.len(), inputs, changes: &changes };
        if let Some(failed) = first_failed(&self.checks, &row, run)? {
            if !ignore {
                return Err(failed);
            }
            warn_of_check(run.ctx, failed);
            return Ok(Upserted::Left);
        }
        match txn.update(table, id, &changes) {
            Ok(_) => Ok(Upserted::Changed { number: auto_number(table.def.auto_increment_column(), &row) }),
            Err(error) if ignore && can_ignore(&error) => {
                warn_of(run.ctx, error);
                Ok(Upserted::Left)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// A row's value of the AUTO_INCREMENT column, as the protocol has it; 0 without one.
pub fn auto_number<'r, R: RowSource<'r>>(column: Option<usize>, row: &R) -> u64 {
    match column.map(|column| row.datum(column)) {
        Some(Datum::Int(number)) => number as u64,
        Some(Datum::UInt(number)) => number,
        _ => 0,
    }
}

/// A row that has a key of a new row.
#[derive(Clone, Copy)]
pub struct Conflict {
    pub row: RowId,
    /// Whether no unique key comes behind the one that it has.
    pub by_last_key: bool,
    /// The first column of that key.
    column: usize,
}

impl Conflict {
    /// Whether it is about the AUTO_INCREMENT column: REPLACE does not replace a row by one whose number was generated, and all
    /// of them in turn once the type has no more.
    pub fn is_of_number(self, auto_increment: Option<usize>) -> bool {
        auto_increment == Some(self.column)
    }

    /// Whether REPLACE leaves the row as it is, and counts one row, not two: MySQL updates in place what has the last unique key and
    /// is referred to by none, and an update to the same values is none.
    pub fn is_replaced_by_itself(
        self,
        table: &Arc<TableHandle>,
        new: &[Datum<'_>],
        txn: &mut Txn,
    ) -> Result<bool, SqlError> {
        let mut buf = RowBuf::default();
        if !self.by_last_key
            || table.is_parent()
            || !txn.lock_row(table, self.row, RowLock::FOR_UPDATE, &mut buf)?
        {
            return Ok(false);
        }
        let old = buf.row(&table.layout);
        Ok(new.iter().enumerate().all(|(column, value)| value.is_same(&old.get(column))))
    }
}

/// A row, other than `but`, that has one of the new row's unique keys, locked; the indexes in order.
pub fn conflicting(
    table: &Arc<TableHandle>,
    row: &[Datum<'_>],
    but: Option<RowId>,
    txn: &mut Txn,
    read: &mut ReadScratch,
) -> Result<Option<Conflict>, SqlError> {
    let mut key = Vec::new();
    let indexes = table.indexes();
    let mut unique = indexes.iter().filter(|index| index.def.kind.is_unique()).peekable();
    while let Some(index) = unique.next() {
        key.clear();
        let parts = index.def.parts.iter().enumerate();
        let mut parts = parts.map(|(n, part)| (n, &row[part.column]));
        let whole = parts.all(|(n, value)| {
            !value.is_null() && index.keys.encode_parts(n, std::slice::from_ref(value), &mut key)
        });
        if !whole {
            continue;
        }
        if let Some(row) = txn.lock_key(table, index, &key, but, read)? {
            let column = index.def.parts[0].column;
            return Ok(Some(Conflict { row, by_last_key: unique.peek().is_none(), column }));
        }
    }
    Ok(None)
}

/// Rounds of an INSERT that finds a row with its key, and then finds it gone: each time another transaction has got
/// further. They are bounded, so that two that never agree about a row do not go on for ever.
#[derive(Default)]
pub struct Rounds(usize);

const MOST_ROUNDS: usize = 10_000;

impl Rounds {
    /// Before each attempt to deal with a duplicate; `check` looks for KILL. Fails with `duplicate` after too many.
    pub fn next(
        &mut self,
        duplicate: EngineError,
        check: impl FnOnce() -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.0 += 1;
        match self.0 {
            1 => Ok(()),
            2..=MOST_ROUNDS => {
                std::thread::yield_now();
                check()
            }
            _ => Err(duplicate.into()),
        }
    }
}
