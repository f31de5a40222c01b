//! UPDATE and DELETE whose rows a query finds: of several tables, with subqueries, and of much of a large table.
//!
//! The query runs at the newest snapshot and gives row ids. These rows are locked; if one of them has changed since that
//! snapshot, the query runs again at a newer one, at which the rows locked so far are as they will stay. So the rows that
//! change in the end are just those for which the condition holds in their newest versions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use avocet_base::{RowId, TableId};
use avocet_engine::{RowBuf, RowLock, TableHandle};
use avocet_types::expr::RowProgram;
use avocet_types::{Datum, Value};

use super::{Done, NewValue, Session, Text, can_ignore};
use crate::bind::{Modification, ModifySpec, bind_modification};
use crate::error::{ErrorCode, SqlError};
use crate::parse::statement::{Delete, Update};
use crate::session::collect::Collected;
use crate::session::locking::RowLocks;
use crate::turns::{ROWS_IN_PLACE, blocking_if};

/// How often a statement is bound anew because a table changed between binding and use.
const MAX_REBINDS: usize = 10;

/// For each combination of rows: the row ids of the targets, then the inputs.
struct Matches(Vec<Vec<Value>>);

type Locked = HashSet<(TableId, RowId)>;

impl Matches {
    fn is_many(&self) -> bool {
        self.0.len() > ROWS_IN_PLACE
    }
}

impl Session {
    pub(super) async fn delete_joined(&mut self, delete: &Delete, text: &Text<'_>) -> Result<Done, SqlError> {
        let (bound, tables) = self.bind_held(delete.into(), text)?;
        let targets = targets_of(&bound, &tables)?;
        let matches = self.locked_matches(&bound, &tables, &targets, text).await?;
        let is_many = matches.is_many();
        let delete = || self.delete_matches(matches, &targets, delete.ignore);
        let affected_rows = blocking_if(is_many, delete)?;
        Ok(Done { affected_rows, ..Done::default() })
    }

    fn delete_matches(
        &mut self,
        matches: Matches,
        targets: &[Arc<TableHandle>],
        ignore: bool,
    ) -> Result<u64, SqlError> {
        let mut deleted = 0;
        for row in &matches.0 {
            self.info.interrupt.check()?;
            for (value, table) in row.iter().zip(targets) {
                if let Some(id) = row_id(value) {
                    deleted += u64::from(self.delete_row(table, id, ignore)?);
                }
            }
        }
        Ok(deleted)
    }

    pub(super) async fn update_joined(&mut self, update: &Update, text: &Text<'_>) -> Result<Done, SqlError> {
        let (bound, tables) = self.bind_held(update.into(), text)?;
        let targets = targets_of(&bound, &tables)?;
        let programs = programs_of(&bound)?;
        let matches = self.locked_matches(&bound, &tables, &targets, text).await?;
        let is_many = matches.is_many();
        let change = || self.update_matches(matches, &targets, &programs, update.ignore, text);
        let (matched, changed) = blocking_if(is_many, change)?;
        let warnings = self.conditions.len() as u64 + self.context.warning_count();
        Ok(Done {
            affected_rows: if self.info.found_rows { matched } else { changed },
            info: format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}"),
            ..Done::default()
        })
    }

    /// Returns how many rows matched, and how many have other values now.
    fn update_matches(
        &mut self,
        matches: Matches,
        targets: &[Arc<TableHandle>],
        programs: &[Vec<(usize, NewValue)>],
        ignore: bool,
        text: &Text<'_>,
    ) -> Result<(u64, u64), SqlError> {
        let storing = self.storing(ignore);
        let (mut matched, mut changed) = (0, 0);
        let mut buf = RowBuf::default();
        // By target: rows that had their turn. And where rows went that moved when they changed.
        let mut done: Vec<HashSet<RowId>> = targets.iter().map(|_| HashSet::new()).collect();
        let mut moved: HashMap<(TableId, RowId), RowId> = HashMap::new();
        for row in &matches.0 {
            self.info.interrupt.check()?;
            let (ids, inputs) = row.split_at(targets.len());
            for (target, table) in targets.iter().enumerate() {
                let Some(found) = row_id(&ids[target]) else { continue };
                if !done[target].insert(found) {
                    continue;
                }
                let mut id = found;
                while let Some(to) = moved.get(&(table.def.id, id)) {
                    id = *to;
                }
                if !self.txn().lock_row(table, id, RowLock::FOR_UPDATE, &mut buf)? {
                    continue;
                }
                matched += 1;
                let changes =
                    self.new_values(table, &buf, inputs, &programs[target], &storing, matched, text)?;
                if changes.is_empty() {
                    continue;
                }
                match self.txn().update(table, id, &changes) {
                    Ok(to) => {
                        changed += 1;
                        if let Some(to) = to.filter(|to| *to != id) {
                            moved.insert((table.def.id, id), to);
                        }
                    }
                    Err(error) if ignore && can_ignore(&error) => self.ignore_row(error),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok((matched, changed))
    }

    /// Binds the statement and holds its tables till the end of the transaction.
    fn bind_held(
        &mut self,
        spec: ModifySpec<'_>,
        text: &Text<'_>,
    ) -> Result<(Modification, Vec<Arc<TableHandle>>), SqlError> {
        for _ in 0..MAX_REBINDS {
            let view = self.view();
            let catalog = view.catalog.clone();
            let bound = bind_modification(spec, text.source, &view, &text.types)?;
            for target in &bound.targets {
                self.refuse_own_tables(&target.database)?;
            }
            if let Some(tables) = self.hold_tables_of(&bound.query, &catalog)? {
                return Ok((bound, tables));
            }
        }
        Err(ErrorCode::TABLE_DEF_CHANGED.with(&[]))
    }

    /// The combinations of rows that match, with all target rows locked.
    async fn locked_matches(
        &mut self,
        bound: &Modification,
        tables: &[Arc<TableHandle>],
        targets: &[Arc<TableHandle>],
        text: &Text<'_>,
    ) -> Result<Matches, SqlError> {
        let mut locked = Locked::default();
        let mut query = bound.query.clone();
        // Of subqueries with FOR UPDATE or FOR SHARE.
        let mut locks = RowLocks::of(&mut query)?;
        let begin = self.txn().mark();
        let mut is_first = true;
        loop {
            let reader = self.txn().newest_reader();
            let ts = reader.ts();
            let mut rows = Collected::default();
            let as_read = self.lock_round(&mut locks, &reader.clone().into(), tables, text).await?;
            let query = locks.applied_to(query.clone());
            self.analyze_at(reader.clone().into(), query, tables.to_vec(), text, &mut rows, u64::MAX).await?;
            let is_many = rows.len() > ROWS_IN_PLACE;
            let (matches, gone) = blocking_if(is_many, || self.lock_matches(rows, targets, &mut locked))?;
            // Kept till here: old versions tell what has changed.
            drop(reader);
            if as_read && !gone && self.txn().newest_met() <= ts {
                // Rows that others changed meanwhile may not match any more.
                if !is_first {
                    let rows = matches.0.iter().flat_map(|row| row.iter().zip(targets));
                    let rows = rows.filter_map(|(value, table)| Some((table.def.id, row_id(value)?)));
                    let wanted: Locked = rows.chain(locks.wanted()).collect();
                    self.txn().let_go_of(begin, &|table, row| wanted.contains(&(table, row)));
                }
                return Ok(matches);
            }
            is_first = false;
            self.info.interrupt.check()?;
        }
    }

    /// Locks the targets' rows as far as they are not yet; also returns whether one of them is gone.
    fn lock_matches(
        &mut self,
        rows: Collected,
        targets: &[Arc<TableHandle>],
        locked: &mut Locked,
    ) -> Result<(Matches, bool), SqlError> {
        let mut matches = Matches(Vec::with_capacity(rows.len()));
        rows.for_each(&mut |row| {
            matches.0.push(row.into_iter().map(|(value, _)| value).collect());
            Ok(())
        })?;
        let mut buf = RowBuf::default();
        let mut gone = false;
        for row in &matches.0 {
            self.info.interrupt.check()?;
            for (value, table) in row.iter().zip(targets) {
                let Some(id) = row_id(value) else { continue };
                if locked.insert((table.def.id, id)) {
                    gone |= !self.txn().lock_row(table, id, RowLock::FOR_UPDATE, &mut buf)?;
                }
            }
        }
        Ok((matches, gone))
    }
}

fn row_id(value: &Value) -> Option<RowId> {
    match value {
        Datum::UInt(id) => Some(RowId(*id)),
        _ => None,
    }
}

fn targets_of(bound: &Modification, tables: &[Arc<TableHandle>]) -> Result<Vec<Arc<TableHandle>>, SqlError> {
    let handle = |def: &Arc<avocet_types::schema::TableDef>| {
        let found = tables.iter().find(|table| table.def.id == def.id).cloned();
        found.ok_or_else(|| ErrorCode::NO_SUCH_TABLE.with(&[&def.database, &def.name]))
    };
    bound.targets.iter().map(handle).collect()
}

/// By target: the columns that are assigned, each with the program of its value.
fn programs_of(bound: &Modification) -> Result<Vec<Vec<(usize, NewValue)>>, SqlError> {
    let mut programs: Vec<Vec<(usize, NewValue)>> = bound.targets.iter().map(|_| Vec::new()).collect();
    for assignment in &bound.assignments {
        let value = match &assignment.value {
            Some(value) => NewValue::Computed(RowProgram::compile(value)?),
            None => NewValue::Default,
        };
        programs[assignment.target].push((assignment.column, value));
    }
    Ok(programs)
}
