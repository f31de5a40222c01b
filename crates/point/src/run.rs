//! Running queries: rows are visited, joined, filtered, and pushed into what stands behind them (`pipeline.rs`).
//!
//! The rows of the last table are looked at where the engine shows them. Those of the tables before are copied first, so
//! that no index is being visited while others are, and rows can be locked on the way.

use std::ops::ControlFlow;
use std::time::Instant;

use avocet_channel::blocking::{ROWS_IN_PLACE, blocking_if};
use avocet_channel::{PlanColumns, ResultSink};
use avocet_engine::{LockHow, RowBuf, RowVerdict, Txn};
use avocet_types::Datum;
use avocet_types::error::SqlError;
use avocet_types::expr::program::NoRow;
use avocet_types::expr::{EvalContext, EvalError, EvalResult, RowProgram, RowSource};

use super::bounds::Bounds;
use super::choose::Access;
use super::keys::Found;
use super::loose::visit_groups;
use super::measure::Visit;
use super::pipeline::Pipeline;
use super::scope::JoinedRow;
use super::select::{Along, LeadTerm, Level, Select, Source};
use super::subplan::SubPlan;
use super::visit::{
    PATIENCE, few_of_an_order, fewest_entries, has_at_most, has_few, likely_along, locate, visit,
};
use super::{LevelScratch, Outcome, PointScratch, Run, Table};

/// Whether a row passes what the keys do not guarantee.
pub fn passes<'a, R: RowSource<'a>>(
    residual: Option<&'a RowProgram>,
    row: &R,
    params: &'a [Datum<'a>],
    ctx: &EvalContext,
) -> EvalResult<bool> {
    residual.map_or(Ok(true), |test| test.matches(row, params, ctx))
}

/// The value of a LIMIT or OFFSET.
pub fn count(
    program: Option<&RowProgram>,
    params: &[Datum<'_>],
    ctx: &EvalContext,
) -> EvalResult<Option<u64>> {
    let Some(program) = program else { return Ok(None) };
    match program.eval_const(params, ctx)? {
        Datum::UInt(n) => Ok(Some(n)),
        Datum::Int(n) if n >= 0 => Ok(Some(n.unsigned_abs())),
        // A statement's parameters are checked before it runs.
        _ => Err(EvalError::WrongArguments("LIMIT")),
    }
}

/// How the rows of a table are found.
struct Way<'s> {
    table: &'s Table,
    access: &'s Access,
    found: Found,
    /// What its keys do not guarantee.
    residual: Option<&'s RowProgram>,
    /// So many rows are visited at most.
    most: u64,
}

/// Visits the rows of the only table. Continues if those that may be visited were not enough.
fn visit_single(
    level: &Level,
    way: &Way<'_>,
    txn: &mut Txn,
    scratch: &mut LevelScratch,
    pipeline: &mut Pipeline<'_>,
) -> Result<ControlFlow<()>, SqlError> {
    let LevelScratch { keys, read, .. } = scratch;
    let Run { params, ctx, bounds, measurements, .. } = pipeline.run;
    let mut seen = Visit::begin(measurements);
    let mut failure = None;
    let mut lock = level.lock.map(LockHow::all);
    let is_limited = way.most < u64::MAX;
    let likely = match (is_limited, level.lock.is_some() && way.residual.is_some()) {
        (true, _) => likely_along(way.most, level.visited.get()),
        // A residual that passes few rows could take many, but then there would be no such plan for a plain read.
        (false, true) => u64::MAX,
        (false, false) => pipeline.most(),
    };
    let mut visited = 0;
    let mut flow = ControlFlow::Break(());
    visit(
        way.table,
        way.access,
        way.found,
        lock.as_mut(),
        likely,
        txn,
        keys,
        read,
        bounds,
        &mut |id, row| {
            if !level.reads(id) {
                return RowVerdict::Unwanted;
            }
            if visited == way.most {
                flow = ControlFlow::Continue(());
                return RowVerdict::Last;
            }
            visited += 1;
            seen.row();
            let is_wanted = pipeline.visit().and_then(|()| Ok(passes(way.residual, &row, params, ctx)?));
            let outcome = match is_wanted {
                Ok(false) => return RowVerdict::Unwanted,
                Ok(true) => {
                    seen.joined();
                    seen.aside(|| pipeline.take(&row))
                }
                Err(error) => Err(error),
            };
            match outcome {
                Ok(flow) => flow.into(),
                Err(error) => {
                    failure = Some(error);
                    RowVerdict::Last
                }
            }
        },
    )?;
    seen.end(level);
    if is_limited {
        level.visited.set(visited);
    }
    failure.map_or(Ok(flow), Err)
}

impl Select {
    pub(super) fn run(
        &self,
        columns: &PlanColumns,
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut PointScratch,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        if self.is_too_much(run, scratch)? || (self.repeatable && !self.record.is_worth_it()) {
            return Ok(Outcome::Declined);
        }
        self.allow_declining(run.bounds);
        let result = self.run_here(Some(columns), txn, run, scratch, sink);
        self.record.note(run.bounds.has_declined());
        match result {
            Err(_) if run.bounds.has_declined() => Ok(Outcome::Declined),
            result => result.map(Outcome::Rows),
        }
    }

    pub(super) fn may_be_left(&self) -> bool {
        let finds_one = |level: &Level| match &level.source {
            Source::Table { access, .. } => access.terms.unique,
            Source::Subquery(_) => false,
        };
        self.repeatable && !self.levels.iter().all(finds_one)
    }

    /// From now on another path may take the statement, if it can run twice.
    pub(super) fn allow_declining(&self, bounds: &Bounds<'_>) {
        if self.repeatable {
            bounds.allow_declining();
            if self.is_tried || self.tries_in_order() {
                bounds.only_try();
            }
        }
    }

    /// As `run`, however many rows there were when it was compiled. A subquery's sink is not told of columns.
    pub(super) fn run_here<'r>(
        &'r self,
        columns: Option<&'r PlanColumns>,
        txn: &mut Txn,
        run: Run<'r>,
        scratch: &mut PointScratch,
        sink: &'r mut dyn ResultSink,
    ) -> Result<u64, SqlError> {
        let PointScratch { levels, values, .. } = scratch;
        if levels.len() < self.levels.len() {
            levels.resize_with(self.levels.len(), LevelScratch::default);
        }
        let begin = run.measurements.map(|to| (to, Instant::now()));
        let mut pipeline = Pipeline::new(self, columns, run, std::mem::take(values), sink)?;
        let Run { params, ctx, .. } = run;
        if pipeline.wants_rows() && passes(self.gate.as_ref(), &NoRow, params, ctx)? {
            match &*self.levels {
                [] => {
                    let _ = pipeline.take(&JoinedRow::new(&self.slots))?;
                }
                [only @ Level { source: Source::Table { table, access }, .. }] if !self.gives_ids => {
                    self.run_single(only, table, access, txn, &mut levels[0], &mut pipeline)?;
                }
                _ => {
                    levels.iter_mut().filter_map(|l| l.subquery.as_mut()).for_each(|s| s.forget());
                    if self.assigns {
                        self.run_derived(txn, run, levels)?;
                    }
                    let _ = self.descend(0, txn, JoinedRow::new(&self.slots), levels, &mut pipeline)?;
                }
            }
        }
        let (rows, held) = pipeline.finish(values)?;
        if let Some((measurements, begin)) = begin {
            measurements.note_select(self, begin, rows, held);
        }
        Ok(rows)
    }

    /// Runs the derived tables that are the same for all rows, in the order of the text: what they assign is there before any row is
    /// looked at.
    fn run_derived(&self, txn: &mut Txn, run: Run<'_>, levels: &mut [LevelScratch]) -> Result<(), SqlError> {
        let mut order: Vec<usize> = (0..self.levels.len()).collect();
        order.sort_by_key(|at| self.levels[*at].position);
        for at in order {
            if let Source::Subquery(plan) = &self.levels[at].source
                && plan.stands_alone()
            {
                let scratch = levels[at].subquery.get_or_insert_default();
                plan.run(&JoinedRow::new(&self.slots), txn, run, scratch)?;
            }
        }
        Ok(())
    }

    /// Whether its tables have so many rows now that another path is better.
    pub(super) fn is_too_much(&self, run: Run<'_>, scratch: &mut PointScratch) -> EvalResult<bool> {
        let is_tried = self.repeatable && (self.is_tried || self.tries_in_order());
        let chooses = matches!(&*self.levels, [Level { along: Some(_), .. }]);
        let asks = !chooses && (self.has_outgrown() || self.is_measured_now());
        Ok(asks && !is_tried && !self.is_narrow(run.params, run.ctx, scratch)?)
    }

    /// Whether what it visits may be too much for it as large as its only table is now.
    fn is_measured_now(&self) -> bool {
        self.repeatable
            && self.measured().is_some_and(|(table, access)| {
                access.is_measured && !access.is_tried && table.row_count() > fewest_entries()
            })
    }

    fn has_outgrown(&self) -> bool {
        let stays = self.assigns || self.locks && self.levels.len() == 1;
        self.levels.iter().any(|level| match &level.source {
            Source::Table { table, access } => !stays && table.row_count() > access.row_limit,
            Source::Subquery(plan) => plan.selects.iter().any(Select::has_outgrown),
        })
    }

    /// Whether the plan is for fewer rows than there are now, whatever its parameters are.
    pub(super) fn is_outgrown(&self) -> bool {
        self.measured().is_none() && self.has_outgrown()
    }

    /// Whether it counts rows before it reads them, for nothing is known of how many there are.
    pub(super) fn is_measured(&self) -> bool {
        self.is_tried || self.measured().is_some_and(|(_, access)| access.is_measured)
    }

    /// Whether it looks for the rows that it wants among the first in their order.
    fn tries_in_order(&self) -> bool {
        self.measured().is_some_and(|(_, access)| access.is_tried)
    }

    /// The only table, if its rows can be measured.
    fn measured(&self) -> Option<(&Table, &Access)> {
        match &*self.levels {
            [Level { source: Source::Table { table, access }, .. }] if access.spans || access.is_measured => {
                Some((table, access))
            }
            _ => None,
        }
    }

    /// Whether what is to be read is few values of a unique key, or few entries of an index.
    fn is_narrow(
        &self,
        params: &[Datum<'_>],
        ctx: &EvalContext,
        scratch: &mut PointScratch,
    ) -> EvalResult<bool> {
        let Some((table, access)) = self.measured() else { return Ok(false) };
        scratch.reserve(1);
        let LevelScratch { keys, read, .. } = &mut scratch.levels[0];
        let found = locate(table, access, &JoinedRow::new(&self.slots), params, ctx, keys)?;
        Ok(has_few(table, access, found, keys, read))
    }

    /// One table: the engine's row is all that the programs need.
    fn run_single(
        &self,
        level: &Level,
        table: &Table,
        access: &Access,
        txn: &mut Txn,
        scratch: &mut LevelScratch,
        pipeline: &mut Pipeline<'_>,
    ) -> Result<(), SqlError> {
        let Run { params, ctx, measurements, .. } = pipeline.run;
        let nothing = JoinedRow::new(&self.slots);
        let mut found = locate(table, access, &nothing, params, ctx, &mut scratch.keys)?;
        let LevelScratch { keys, read, .. } = scratch;
        if let (Some(loose), Some(index)) = (access.loose, access.index) {
            let mut seen = Visit::begin(measurements);
            for range in if found == Found::Ranges { keys.ranges() } else { &[] } {
                let index = &table.indexes()[index];
                if visit_groups(loose, table, index, range, txn, read, pipeline, &mut seen)?.is_break() {
                    break;
                }
            }
            seen.end(level);
            return Ok(());
        }
        if let Some(along) = &level.along {
            let few = few_of_an_order(pipeline.wanted(), table, level.lock.is_some());
            let counted = few.map(|few| (few, has_at_most(few, table, access, found, keys, read)));
            if let Some((few, false)) = counted {
                let (told, mark) = (ctx.warning_count(), txn.mark());
                pipeline.expect_in_order();
                let Along { access: way, residual } = &**along;
                let along = locate(table, way, &nothing, params, ctx, keys)?;
                let most = few.saturating_mul(PATIENCE);
                let way = Way { table, access: way, found: along, residual: residual.as_ref(), most };
                if visit_single(level, &way, txn, scratch, pipeline)?.is_break() {
                    return Ok(());
                }
                // Its locks are in another order than those of the way that is gone now.
                txn.rollback_statement(mark);
                pipeline.begin_anew();
                ctx.truncate_warnings(told);
                found = locate(table, access, &nothing, params, ctx, &mut scratch.keys)?;
            }
            let LevelScratch { keys, read, .. } = scratch;
            if !matches!(counted, Some((_, true))) && !has_few(table, access, found, keys, read) {
                pipeline.run.bounds.decline()?;
            }
        }
        let way = Way { table, access, found, residual: level.residual.as_ref(), most: u64::MAX };
        visit_single(level, &way, txn, scratch, pipeline).map(drop)
    }

    /// Visits the rows of the tables from `depth` on, for one row of each table before.
    fn descend(
        &self,
        depth: usize,
        txn: &mut Txn,
        row: JoinedRow<'_>,
        scratch: &mut [LevelScratch],
        pipeline: &mut Pipeline<'_>,
    ) -> Result<ControlFlow<()>, SqlError> {
        let level = &self.levels[depth];
        let Run { params, ctx, bounds, .. } = pipeline.run;
        let (table, access) = match &level.source {
            Source::Table { table, access } => (table, access),
            Source::Subquery(plan) => {
                let (own, rest) = scratch.split_first_mut().expect("reserved for every level");
                return self.descend_through(plan, depth, txn, row, own, rest, pipeline);
            }
        };
        if level.lock.is_some() && bounds.has_sent() {
            txn.end_deferral();
        }
        let own = scratch.first_mut().expect("reserved for every level");
        let mut found = locate(table, access, &row, params, ctx, &mut own.keys)?;
        if depth == 0
            && let Some(along) = &level.along
        {
            let few = few_of_an_order(pipeline.wanted(), table, false);
            if let Some(few) = few
                && !has_at_most(few, table, access, found, &own.keys, &mut own.read)
            {
                let (told, mark) = (ctx.warning_count(), txn.mark());
                let Along { access: way, residual } = &**along;
                let found_along = locate(table, way, &row, params, ctx, &mut own.keys)?;
                let most = few.saturating_mul(PATIENCE);
                let way = Way { table, access: way, found: found_along, residual: residual.as_ref(), most };
                if let Some(flow) = self.descend_by(&way, &[], true, depth, txn, row, scratch, pipeline)? {
                    return Ok(flow);
                }
                txn.rollback_statement(mark);
                pipeline.begin_anew();
                ctx.truncate_warnings(told);
                found = locate(table, access, &row, params, ctx, &mut scratch[0].keys)?;
            }
        }
        let lead_order = if depth == 0 { &*self.lead_order } else { &[] };
        let is_led = depth == 0 && self.in_turns && lead_order.is_empty();
        let way = Way { table, access, found, residual: level.residual.as_ref(), most: u64::MAX };
        let flow = self.descend_by(&way, lead_order, is_led, depth, txn, row, scratch, pipeline)?;
        Ok(flow.unwrap_or(ControlFlow::Continue(())))
    }

    /// As `descend`, in one way: through rows that are put in `lead_order` first, or `is_led`, through as many as are wanted, in
    /// turns. `None` if those that may be visited were not enough.
    #[expect(clippy::too_many_arguments, reason = "as descend, with the way")]
    fn descend_by(
        &self,
        way: &Way<'_>,
        lead_order: &[LeadTerm],
        is_led: bool,
        depth: usize,
        txn: &mut Txn,
        row: JoinedRow<'_>,
        scratch: &mut [LevelScratch],
        pipeline: &mut Pipeline<'_>,
    ) -> Result<Option<ControlFlow<()>>, SqlError> {
        let level = &self.levels[depth];
        let table = way.table;
        let (own, rest) = scratch.split_first_mut().expect("reserved for every level");
        let Run { params, ctx, bounds, measurements, .. } = pipeline.run;
        let last = depth + 1 == self.levels.len();
        let LevelScratch { keys, read, found: rows, .. } = own;
        let mut seen = Visit::begin(measurements);
        let mut visited = 0;
        let mut enough = if is_led { pipeline.least() } else { u64::MAX };
        let (mut past, wanted_at_first) = (0, pipeline.missing());
        loop {
            let mut failure = None;
            let mut flow = ControlFlow::Continue(());
            let mut found_none = true;
            let mut wanted = 0;
            rows.clear(bounds);
            let mut lock = level.lock.map(LockHow::all);
            let most = if depth == 0 { enough.saturating_add(past) } else { 0 };
            let mut is_left = false;
            visit(
                table,
                way.access,
                way.found,
                lock.as_mut(),
                most,
                txn,
                keys,
                read,
                bounds,
                &mut |id, here| {
                    if !level.reads(id) {
                        return RowVerdict::Unwanted;
                    }
                    if visited == way.most {
                        is_left = true;
                        return RowVerdict::Last;
                    }
                    visited += 1;
                    seen.row();
                    let joined = row.with(level.position, id, here);
                    let is_joined =
                        pipeline.visit().and_then(|()| Ok(passes(level.on.as_ref(), &joined, params, ctx)?));
                    let is_wanted = is_joined.and_then(|is_joined| {
                        found_none &= !is_joined;
                        Ok(is_joined && passes(way.residual, &joined, params, ctx)?)
                    });
                    let outcome = match is_wanted {
                        Ok(false) => return RowVerdict::Unwanted,
                        Ok(true) if last => {
                            seen.joined();
                            seen.aside(|| pipeline.take(&joined))
                        }
                        Ok(true) => {
                            wanted += 1;
                            if wanted > past {
                                seen.joined();
                                rows.push(id, &here, bounds);
                            }
                            let is_enough = rows.len() as u64 >= enough;
                            Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
                        }
                        Err(error) => Err(error),
                    };
                    flow = outcome.unwrap_or_else(|error| {
                        failure = Some(error);
                        ControlFlow::Break(())
                    });
                    flow.into()
                },
            )?;
            if let Some(error) = failure {
                return Err(error);
            }
            if is_left {
                seen.end(level);
                return Ok(None);
            }
            if level.outer && found_none {
                seen.joined();
                seen.end(level);
                return self.without(depth, txn, row, rest, pipeline).map(Some);
            }
            if depth == 0 && !last {
                rows.sort(lead_order, &table.layout, bounds);
            }
            // Each leads to some more.
            let is_much = depth == 0 && rows.len() > ROWS_IN_PLACE / 8;
            let has_more = !last && flow.is_break();
            let flow = seen.aside(|| {
                blocking_if(is_much, || {
                    let mut whole = RowBuf::default();
                    for n in 0..rows.len() {
                        let (id, mut here) = rows.get(n, &table.layout);
                        if !lead_order.is_empty() {
                            if !txn.read_again(table, id, &mut whole)? {
                                continue;
                            }
                            here = whole.row(&table.layout);
                        }
                        flow =
                            self.descend(depth + 1, txn, row.with(level.position, id, here), rest, pipeline)?;
                        if flow.is_break() {
                            break;
                        }
                    }
                    Ok::<_, SqlError>(flow)
                })
            })?;
            if flow.is_break() || !has_more {
                seen.end(level);
                return Ok(Some(flow));
            }
            past += rows.len() as u64;
            enough = next_look(past, wanted_at_first, pipeline.missing());
        }
    }
}

/// How many rows are looked for next where `past` have not led to all that were wanted, which are looked at once more on the way:
/// as many as it takes if the others do as these did, and some more; each time half as many again at least.
fn next_look(past: u64, wanted: u64, missing: u64) -> u64 {
    let got = wanted.saturating_sub(missing).max(1);
    let likely = missing.saturating_mul(past) / got;
    (likely + likely / 2 + 2).clamp(past / 2, past.saturating_mul(8)).max(1)
}

impl Select {
    /// As `descend`, through the rows of a subquery.
    #[expect(clippy::too_many_arguments, reason = "as descend, with the level's parts")]
    fn descend_through(
        &self,
        plan: &SubPlan,
        depth: usize,
        txn: &mut Txn,
        row: JoinedRow<'_>,
        own: &mut LevelScratch,
        rest: &mut [LevelScratch],
        pipeline: &mut Pipeline<'_>,
    ) -> Result<ControlFlow<()>, SqlError> {
        let level = &self.levels[depth];
        let run @ Run { params, ctx, measurements, .. } = pipeline.run;
        let mut seen = Visit::begin(measurements);
        let scratch = own.subquery.get_or_insert_default();
        let rows = plan.run(&row, txn, run, scratch)?;
        let mut found_none = true;
        // Each leads to some more.
        let is_much = depth == 0 && rows > ROWS_IN_PLACE / 8;
        let flow = blocking_if(is_much, || {
            for n in 0..rows {
                pipeline.visit()?;
                seen.row();
                let joined = row.with_values(level.position, plan.row(scratch, n));
                if !passes(level.on.as_ref(), &joined, params, ctx)? {
                    continue;
                }
                found_none = false;
                if !passes(level.residual.as_ref(), &joined, params, ctx)? {
                    continue;
                }
                seen.joined();
                if seen.aside(|| self.go_on(depth, txn, joined, rest, pipeline))?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok::<_, SqlError>(ControlFlow::Continue(()))
        })?;
        let is_alone = flow.is_continue() && level.outer && found_none;
        if is_alone {
            seen.joined();
        }
        seen.end(level);
        match is_alone {
            true => self.without(depth, txn, row, rest, pipeline),
            false => Ok(flow),
        }
    }

    /// Goes on from an outer join that found no row at this depth.
    fn without(
        &self,
        depth: usize,
        txn: &mut Txn,
        row: JoinedRow<'_>,
        rest: &mut [LevelScratch],
        pipeline: &mut Pipeline<'_>,
    ) -> Result<ControlFlow<()>, SqlError> {
        match passes(self.levels[depth].residual.as_ref(), &row, pipeline.run.params, pipeline.run.ctx)? {
            true => self.go_on(depth, txn, row, rest, pipeline),
            false => Ok(ControlFlow::Continue(())),
        }
    }

    /// Goes on with a row of the tables up to `depth`.
    fn go_on(
        &self,
        depth: usize,
        txn: &mut Txn,
        row: JoinedRow<'_>,
        rest: &mut [LevelScratch],
        pipeline: &mut Pipeline<'_>,
    ) -> Result<ControlFlow<()>, SqlError> {
        match depth + 1 == self.levels.len() {
            true => pipeline.take(&row),
            false => self.descend(depth + 1, txn, row, rest, pipeline),
        }
    }
}
