//! UPDATE and DELETE whose rows a query finds: of several tables, with subqueries, or in the order of an expression.
//!
//! ```text
//!  query at the newest snapshot ─▶ row ids of the targets, inputs of the assignments
//!            ▲                                   │
//!            └── a row has changed since ──── lock the rows ──▶ change them, in the order in which they were found
//! ```
//!
//! The rows locked so far are at a newer snapshot as they will stay; so the rows that change in the end are just those for
//! which the condition holds in their newest versions.

use std::collections::{HashMap, HashSet};

use avocet_base::{RowId, TableId};
use avocet_channel::PlanColumns;
use avocet_channel::blocking::{ROWS_IN_PLACE, blocking_if};
use avocet_engine::{Catalog, RowBuf, RowLock, Txn};
use avocet_sql::bind::{CatalogView, Modification, ModifySpec, bind_modification};
use avocet_sql::plan::QueryBody;
use avocet_types::error::SqlError;
use avocet_types::expr::{EvalContext, Expr, RowProgram};
use avocet_types::{Datum, SqlType, Value};

use super::assign::{Assigned, Assignments};
use super::checks::{RowCheck, first_failed, warn_of_check};
use super::compile::{Nesting, compile_block};
use super::ignore::{can_ignore, is_of_row, warn_of, warn_of_row};
use super::known::{CompileBudget, Known};
use super::rows::{EachRow, Rows};
use super::scope::with_dates_of;
use super::select::{Select, Source};
use super::write::both_assign;
use super::{Bounds, Changes, Kind, NotPoint, Outcome, PointPlan, PointScratch, Refusal, Run, Table, Verb};

/// A compiled UPDATE or DELETE, with the query that finds its rows.
#[derive(Debug)]
pub struct Modify {
    pub select: Select,
    pub changer: Changer,
}

/// What becomes of the rows that were found.
#[derive(Debug)]
pub struct Changer {
    targets: Box<[Target]>,
    verb: Verb,
    /// Errors of single rows are warnings.
    pub ignore: bool,
    /// The columns of the query: row ids, then inputs.
    width: usize,
}

/// Gathers the combinations of rows that a statement finds. A target's row changes once, by the first combination that it is in: of
/// more than a few, those are left out that have no row of a target for the first time.
pub struct Gather<'g> {
    targets: usize,
    rows: &'g mut Rows,
    bounds: &'g Bounds<'g>,
    /// By target.
    seen: Vec<HashSet<RowId>>,
}

/// So many are kept as they come: most statements change few rows.
const FEW_FOUND: usize = if cfg!(test) { 2 } else { 1024 };
/// What a row id takes in a set of them, about.
const SEEN_BYTES: usize = 16;

impl Gather<'_> {
    pub fn push(&mut self, row: &[Datum<'_>]) {
        if self.rows.count() >= FEW_FOUND {
            if self.seen.is_empty() {
                self.seen.resize_with(self.targets, HashSet::new);
                for row in self.rows.iter() {
                    note(&mut self.seen, row);
                }
            }
            let new = note(&mut self.seen, row);
            if new == 0 {
                return;
            }
            self.rows.hold(new * SEEN_BYTES, self.bounds);
        }
        self.rows.push(row.iter().map(|value| value.clone().into_owned()), self.bounds);
    }
}

/// Notes the targets' rows of a combination; how many are new.
fn note(seen: &mut [HashSet<RowId>], row: &[Datum<'_>]) -> usize {
    let of =
        |(seen, value): (&mut HashSet<RowId>, &Datum<'_>)| row_id(value).is_some_and(|id| seen.insert(id));
    seen.iter_mut().zip(row).map(of).filter(|is_new| *is_new).count()
}

/// A table whose rows change.
#[derive(Debug)]
struct Target {
    table: Table,
    /// Of the views through which it changes.
    checks: Box<[RowCheck]>,
    /// None in a DELETE.
    assignments: Assignments,
}

/// As `compile_update`.
pub fn compile_modify(
    spec: ModifySpec<'_>,
    ignore: bool,
    source: &[u8],
    view: &dyn CatalogView,
    catalog: &Catalog,
    params: &[SqlType],
) -> Result<PointPlan, Refusal> {
    let bound = bind_modification(spec, source, view, params)?;
    if bound.query.locks {
        return Err(NotPoint::because("a subquery that locks rows, in a change of others").into());
    }
    if bound.query.assigns && has_assigning_conditions(&bound) {
        return Err(both_assign().into());
    }
    let verb = if spec.is_delete() { Verb::Delete } else { Verb::Update };
    let changer = Changer::compile(&bound, verb, ignore, catalog)?;
    let budget = CompileBudget::new();
    let block = compile_block(&bound.query, &Known::new(catalog, &budget), Nesting::Change)?;
    let values = bound.assignments.iter().filter_map(|assignment| assignment.value.as_ref());
    let dates = with_dates_of(values, &block.dates);
    let kind = Kind::Modify(Modify { select: block.select, changer });
    let views = bound.query.views;
    let is_of_session = bound.query.session_dependent;
    let (params, columns) = (bound.query.params, PlanColumns::default());
    let plan = PointPlan { kind, tables: block.tables, params, columns, dates, is_of_session };
    plan.with_views(&views, catalog)
}

/// Whether both the conditions of an UPDATE and what it sets use user variables that it assigns to.
fn has_assigning_conditions(bound: &Modification) -> bool {
    let sets = |value: &Option<Expr>| value.as_ref().is_some_and(Expr::uses_assigned);
    let QueryBody::Select(block) = &bound.query.body.body else { return false };
    let mut inputs = block.projection.iter();
    let sets = bound.assignments.iter().any(|assignment| sets(&assignment.value))
        || inputs.any(|item| item.expr.uses_assigned());
    let mut conditions = block.filter.iter().flat_map(|filter| filter.clone().into_conjuncts());
    sets && conditions.any(|test| test.uses_assigned())
}

impl Changer {
    /// Whether all that it changes are rows of temporary tables.
    pub(super) fn changes_temporary_alone(&self) -> bool {
        self.targets.iter().all(|target| target.table.0.id().is_temporary())
    }

    pub fn compile(
        bound: &Modification,
        verb: Verb,
        ignore: bool,
        catalog: &Catalog,
    ) -> Result<Self, Refusal> {
        let mut targets = Vec::with_capacity(bound.targets.len());
        for (at, def) in bound.targets.iter().enumerate() {
            let table = catalog.table_by_id(def.id).ok_or_else(|| NotPoint::because("not a stored table"))?;
            let own = bound.assignments.iter().filter(|assignment| assignment.target == at);
            let list: Vec<_> = own.map(|a| (a.column, a.value.clone())).collect();
            // Values are over the target's columns and the inputs, which follow the targets' row ids.
            let input = |at: usize| bound.query.body.outputs.get(bound.targets.len() + at);
            let shown = |at: usize| match def.columns.get(at) {
                Some(column) => format!("`{}`.`{}`.`{}`", def.database, def.name, column.name),
                None => input(at - def.columns.len())
                    .map_or_else(String::new, |id| bound.query.columns[*id].shown()),
            };
            let compile = |value: &Expr| Ok(RowProgram::compile_named(value, &shown)?);
            let assignments = Assignments::compile(&list, def, true, &compile)?;
            let own = bound.checks.iter().filter(|check| check.target == at);
            let checks = own
                .map(|check| RowCheck::compile(&check.condition, &check.of))
                .collect::<Result<_, Refusal>>()?;
            targets.push(Target { table: Table(table.clone()), checks, assignments });
        }
        Ok(Self { targets: targets.into(), verb, ignore, width: bound.query.body.outputs.len() })
    }

    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// The targets' rows that a combination consists of; an outer join may have found none.
    fn ids<'c>(&'c self, row: &'c [Value]) -> impl Iterator<Item = (&'c Target, RowId)> {
        self.targets.iter().zip(row).filter_map(|(target, value)| Some((target, row_id(value)?)))
    }

    /// What takes the rows that are found.
    pub fn gather<'g>(&self, rows: &'g mut Rows, bounds: &'g Bounds<'g>) -> Gather<'g> {
        rows.begin(self.width, bounds);
        Gather { targets: self.targets.len(), rows, bounds, seen: Vec::new() }
    }

    /// Locks all rows; false if one of them is gone.
    pub fn lock(&self, rows: &Rows, txn: &mut Txn, run: Run<'_>) -> Result<bool, SqlError> {
        let mut buf = RowBuf::default();
        let mut all_there = true;
        blocking_if(rows.count() > ROWS_IN_PLACE, || {
            for row in rows.iter() {
                run.bounds.row()?;
                for (target, id) in self.ids(row) {
                    all_there &= txn.lock_row(&target.table, id, RowLock::FOR_UPDATE, &mut buf)?;
                }
            }
            Ok(all_there)
        })
    }

    /// The rows, by table.
    pub fn wanted(&self, rows: &Rows) -> HashSet<(TableId, RowId)> {
        rows.iter().flat_map(|row| self.ids(row).map(|(target, id)| (target.table.id(), id))).collect()
    }

    /// Changes the rows, which are locked.
    pub fn apply(&self, rows: &Rows, txn: &mut Txn, run: Run<'_>) -> Result<Changes, SqlError> {
        blocking_if(rows.count() > ROWS_IN_PLACE, || match self.verb {
            Verb::Delete => self.delete(rows, txn, run),
            _ => self.update(rows, txn, run),
        })
    }

    fn delete(&self, rows: &Rows, txn: &mut Txn, run: Run<'_>) -> Result<Changes, SqlError> {
        let mut outcome = Changes { matched: rows.count() as u64, ..Changes::default() };
        for row in rows.iter() {
            run.bounds.row()?;
            for (target, id) in self.ids(row) {
                match txn.delete(&target.table, id) {
                    Ok(is_gone) => outcome.changed += u64::from(is_gone),
                    Err(error) if self.ignore && can_ignore(&error) => warn_of(run.ctx, error),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(outcome)
    }

    fn update(&self, rows: &Rows, txn: &mut Txn, run: Run<'_>) -> Result<Changes, SqlError> {
        let mut outcome = Changes::default();
        let mut buf = RowBuf::default();
        // By target: rows that had their turn. And where rows went that moved when they changed.
        let mut done: Vec<HashSet<RowId>> = self.targets.iter().map(|_| HashSet::new()).collect();
        let mut moved: HashMap<(TableId, RowId), RowId> = HashMap::new();
        for row in rows.iter() {
            run.bounds.row()?;
            let (ids, inputs) = row.split_at(self.targets.len());
            for (at, Target { table, checks, assignments }) in self.targets.iter().enumerate() {
                let Some(found) = row_id(&ids[at]) else { continue };
                if !done[at].insert(found) {
                    continue;
                }
                let mut id = found;
                while let Some(to) = moved.get(&(table.id(), id)) {
                    id = *to;
                }
                if !txn.lock_row(table, id, RowLock::FOR_UPDATE, &mut buf)? {
                    continue;
                }
                outcome.matched += 1;
                let mut changes: Vec<(usize, Datum<'_>)> = Vec::new();
                let old = buf.row(&table.layout);
                match assignments.evaluate(table, old, inputs, run, outcome.matched, &mut changes) {
                    Err(error) if self.ignore && is_of_row(&error) => {
                        warn_of_row(run.ctx, error);
                        continue;
                    }
                    other => other?,
                }
                if changes.is_empty() {
                    continue;
                }
                let new = Assigned { row: old, width: table.def.columns.len(), inputs, changes: &changes };
                if let Some(failed) = first_failed(checks, &new, run)? {
                    if self.ignore {
                        warn_of_check(run.ctx, failed);
                        continue;
                    }
                    return Err(failed);
                }
                match txn.update(table, id, &changes) {
                    Ok(to) => {
                        outcome.changed += 1;
                        if let Some(to) = to.filter(|to| *to != id) {
                            moved.insert((table.id(), id), to);
                        }
                    }
                    Err(error) if self.ignore && can_ignore(&error) => warn_of(run.ctx, error),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(outcome)
    }
}

fn row_id(value: &Datum<'_>) -> Option<RowId> {
    match value {
        Datum::UInt(id) => Some(RowId(*id)),
        _ => None,
    }
}

impl Modify {
    pub fn describe(&self) -> String {
        self.select.describe()
    }

    /// Whether all tables whose rows change are read by keys.
    pub fn has_keys(&self, params: &[Datum<'_>], ctx: &EvalContext) -> bool {
        let is_target =
            |table: &Table| self.changer.targets.iter().any(|target| target.table.id() == table.id());
        self.select.levels.iter().all(|level| match &level.source {
            Source::Table { table, access } => access.has_keys(params, ctx) || !is_target(table),
            Source::Subquery(_) => true,
        })
    }

    pub(super) fn run(
        &self,
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut PointScratch,
    ) -> Result<Outcome, SqlError> {
        if self.select.is_too_much(run, scratch)? {
            return Ok(Outcome::Declined);
        }
        let mut rows = std::mem::take(&mut scratch.rows);
        let result = self.find(&mut rows, txn, run, scratch);
        let result = result.and_then(|()| self.changer.apply(&rows, txn, run));
        scratch.rows = rows;
        match result {
            Err(_) if run.bounds.has_declined() => Ok(Outcome::Declined),
            result => result.map(Outcome::Changed),
        }
    }

    /// Finds the rows, and locks them.
    fn find(
        &self,
        rows: &mut Rows,
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut PointScratch,
    ) -> Result<(), SqlError> {
        let begin = txn.mark();
        let mut is_first = true;
        self.select.allow_declining(run.bounds);
        loop {
            // What a round before has assigned is as if it had not been.
            run.ctx.assigned.take();
            let newest = txn.newest_reader();
            let mut gather = self.changer.gather(rows, run.bounds);
            let mut sink = EachRow(|row: &[Datum<'_>]| gather.push(row));
            txn.read_at(&newest, |txn| self.select.run_here(None, txn, run, scratch, &mut sink))?;
            run.bounds.forbid_declining();
            let all_there = self.changer.lock(rows, txn, run)?;
            // `newest` is kept till here: old versions tell what has changed.
            if txn.is_strict() || (all_there && !txn.has_met_newer(newest.ts())) {
                break;
            }
            is_first = false;
            run.bounds.check()?;
        }
        if !is_first {
            // Rows that others changed meanwhile may not match any more.
            let wanted = self.changer.wanted(rows);
            txn.let_go_of(begin, &|table, row| wanted.contains(&(table, row)));
        }
        Ok(())
    }
}
