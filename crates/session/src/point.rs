//! Statements on the point path: looking for their plans, compiling them, running them.
//!
//! A plan depends on the catalog, the default database, the settings that binding looks at, the digest and the types of
//! what stands in its slots; all of that is in its key ([`plan_cache`](super::plan_cache)).

use std::sync::Arc;

use avocet_channel::ResultSink;
use avocet_channel::blocking::can_await;
use avocet_engine::{Catalog, RowWait, SnapshotReader, StatementMark, Txn};
use avocet_point::{
    self as point, Bounds, Changes, GivenRows, Measurements, NotPoint, PointPlan, PointScratch, ReadAs,
    Refusal, Run, Verb,
};
use avocet_sql::facts::StatementFacts;
use avocet_sql::parse::deprecated::Deprecated;
use avocet_sql::parse::statement::{Insert, StatementKind};
use avocet_sql::plan::BoundQuery;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::temporal::{ZeroDates, datetime_from_number, parse_datetime, parse_time};
use avocet_types::{Datum, SqlType};

use super::candidate::{Candidate, count_of};
use super::counters::Counter;
use super::held::TextSize;
use super::output::columns_of;
use super::plan_cache::{CachedPlan, KeptQuery, Wanted};
use super::run::{Done, Outcome};
use super::state::Session;

/// What is kept of a statement: its point plan, or why it has none, and the bound query that runs where that plan does not.
type Compiled = (Result<PointPlan, NotPoint>, Option<Box<KeptQuery>>);

/// Where a plan reads what it does not lock.
#[derive(Clone, Copy)]
pub(super) enum ReadAt<'r> {
    /// At the transaction's snapshot; a plan that changes rows knows better.
    Snapshot,
    /// At one that `Txn::newest_reader` gave.
    Newest(&'r SnapshotReader),
    /// As a statement does that changes rows.
    Change,
}

/// What else a plan runs with.
#[derive(Clone, Copy, Default)]
pub(super) struct With<'r> {
    /// The rows of tables that are not stored.
    pub given: &'r [GivenRows],
    pub measurements: Option<&'r Measurements>,
}

impl<'r> With<'r> {
    pub fn given(given: &'r [GivenRows]) -> Self {
        Self { given, ..Self::default() }
    }
}

/// Counts of the same magnitude, up to sixteen times each other, share a plan.
fn magnitude(count: u64) -> u8 {
    (count.checked_ilog2().unwrap_or(0) / 4) as u8
}

impl Session {
    /// Whether the session's settings leave anything to the point path. What they ask for otherwise, the general path does.
    pub(super) fn takes_point_path(&self) -> bool {
        let settings = &self.settings;
        settings.point_path
            && settings.select_limit == u64::MAX
            && self.locked.is_none()
            && self.numbers_plainly()
    }

    /// Whether AUTO_INCREMENT counts on by one.
    pub(super) fn numbers_plainly(&self) -> bool {
        let settings = &self.settings;
        settings.auto_increment_increment == 1
            && settings.auto_increment_offset == 1
            && settings.insert_id.is_none()
    }

    /// The plan of a statement, if one is kept. It is to be given back with `give_plan`.
    pub(super) fn take_plan(&mut self, candidate: &Candidate<'_>) -> Option<(u64, Arc<CachedPlan>)> {
        let catalog_version = self.shared.engine.catalog_version();
        let mut key = std::mem::take(&mut self.point_memory.key);
        self.plan_key(candidate, &mut key);
        let hash = self.shared.plans.hash(&key);
        let Candidate { slots, source, .. } = *candidate;
        let engine = &*self.shared.engine;
        let wanted = Wanted { key: &key, hash, catalog_version, engine, slots, source: source.as_bytes() };
        let plan = self.recent_plans.take(&wanted).or_else(|| self.shared.plans.get(&wanted));
        self.point_memory.key = key;
        plan.map(|plan| (hash, plan))
    }

    pub(super) fn give_plan(&mut self, hash: u64, plan: Arc<CachedPlan>) {
        // Made for so few rows that there are too many now: the next use compiles it anew.
        if plan.plan.as_ref().is_ok_and(PointPlan::is_outgrown) {
            return self.shared.plans.remove(hash, &plan);
        }
        self.recent_plans.give(hash, plan);
    }

    fn plan_key(&self, candidate: &Candidate<'_>, key: &mut Vec<u8>) {
        let settings = &self.settings;
        key.clear();
        key.extend_from_slice(&settings.sql_mode.0.to_le_bytes());
        key.extend_from_slice(&candidate.parsed_by.0.to_le_bytes());
        key.extend_from_slice(&settings.connection_collation.0.to_le_bytes());
        key.extend_from_slice(&settings.utf8mb4_collation.0.to_le_bytes());
        key.extend_from_slice(&settings.time_zone.id().to_le_bytes());
        key.push(settings.div_precision_increment);
        key.push(settings.dialect as u8);
        // Views are bound that are refused otherwise.
        key.push(u8::from(self.is_on_behalf()));
        // Their lengths are types of results.
        key.push(settings.locale.longest_day_name() as u8);
        key.push(settings.locale.longest_month_name() as u8);
        match &self.database {
            Some(name) => {
                key.extend_from_slice(&(name.len() as u16).to_le_bytes());
                key.extend_from_slice(name.as_bytes());
            }
            None => key.extend_from_slice(&u16::MAX.to_le_bytes()),
        }
        // Without slots the digest is a text of which the literals are a part.
        let of_text = u8::from(candidate.slots.is_empty());
        match self.temporary.namespace() {
            0 => key.push(of_text),
            namespace => {
                key.push(of_text | 2);
                key.extend_from_slice(&namespace.to_le_bytes());
            }
        }
        key.extend_from_slice(candidate.digest);
        for value in candidate.values {
            put_type(value, candidate.params, key);
        }
        // A way that is best for ten rows is not for a million.
        for at in candidate.limits {
            key.push(candidate.values.get(usize::from(*at)).and_then(count_of).map_or(u8::MAX, magnitude));
        }
    }

    /// Compiles a statement's plan and keeps it; `None` if there is something wrong with the statement, which the general
    /// path will say. `own` is the statement as it was parsed, `lifted` with parameters in place of literals.
    pub(super) fn compile_plan(
        &mut self,
        candidate: &Candidate<'_>,
        own: &StatementKind,
        deprecated: &[Deprecated],
    ) -> Option<(u64, Arc<CachedPlan>)> {
        let catalog = self.catalog();
        let mut key = Vec::new();
        self.plan_key(candidate, &mut key);
        let hash = self.shared.plans.hash(&key);
        let Candidate { slots, source, .. } = *candidate;
        let catalog_version = catalog.version();
        let engine = &*self.shared.engine;
        let wanted = Wanted { key: &key, hash, catalog_version, engine, slots, source: source.as_bytes() };
        let types = candidate.types(self.settings.connection_collation);
        let mut lifted = own.clone();
        let mut free = avocet_sql::lift(&mut lifted, slots, self.has_indexed_expressions(own, &catalog));
        let (plan, query) = match self.compile_lifted(&lifted, candidate, &types) {
            Ok(compiled) => compiled,
            Err(_) if candidate.params => return None,
            Err(_) => {
                // Perhaps only because a literal is none any more.
                free.fill(false);
                match self.compile_point(own, source, &[], &[]) {
                    Ok(plan) if plan.is_of_session() => (Err(of_session()), None),
                    Ok(plan) => (Ok(plan), None),
                    Err(Refusal::NotPoint(reason)) => (Err(reason), None),
                    Err(Refusal::Error(_)) => return None,
                }
            }
        };
        let pinned = slots.iter().enumerate().filter(|(at, _)| !free[*at]);
        let pinned = pinned.map(|(at, slot)| (at, slot.span.bytes(source.as_bytes()).into())).collect();
        let of_statement = (self.needs_of(own), deprecated.into());
        let plan = Arc::new(CachedPlan::new(&wanted, pinned, plan, query, of_statement));
        self.shared.counters.add(Counter::PlansCompiled);
        // A session's own tables must not outlive it.
        if self.temporary.is_empty() {
            self.shared.plans.put(hash, plan.clone(), &catalog);
        }
        Some((hash, plan))
    }

    /// Whether a statement names a table with indexes on expressions, or a view, which may have any.
    fn has_indexed_expressions(&self, kind: &StatementKind, catalog: &Catalog) -> bool {
        let facts = StatementFacts::of_kind(kind);
        let mut tables = facts.reads.iter().chain(&facts.writes);
        tables.any(|table| {
            let database = table.database.as_deref().or(self.database.as_deref());
            let found = database.and_then(|database| catalog.relation(database, &table.table));
            found.is_some_and(|found| found.def.is_view() || found.def.has_indexed_expressions())
        })
    }

    /// Compiles with parameters in place of literals. What a client is told of a query's columns does not depend on those that
    /// are lifted.
    fn compile_lifted(
        &self,
        lifted: &StatementKind,
        candidate: &Candidate<'_>,
        types: &[SqlType],
    ) -> Result<Compiled, SqlError> {
        let (compiled, bound) = match lifted {
            StatementKind::Query(query) => {
                let mut bound = self.bind_types(query, candidate.source.as_bytes(), types)?;
                bound.likely_counts = candidate.likely_counts().into();
                let columns = columns_of(&bound).into();
                (point::compile_query(&bound, columns, &self.catalog(), &[]), Some(bound))
            }
            _ => (self.compile_point(lifted, candidate.source, types, &[]), None),
        };
        // A NULL has any type.
        let fits = |(own, is): (&SqlType, &SqlType)| *is == SqlType::Null || own == is;
        let of_types = |params: &[SqlType]| params.iter().zip(types).all(fits);
        let plan = match compiled {
            Ok(plan) if plan.is_of_session() => Err(of_session()),
            Ok(plan) if of_types(plan.params()) => Ok(plan),
            Ok(_) => Err(NotPoint::because("parameters of other types")),
            Err(Refusal::NotPoint(reason)) => Err(reason),
            Err(Refusal::Error(error)) => return Err(error),
        };
        let is_kept = |bound: &BoundQuery| {
            plan.as_ref().map_or(true, PointPlan::may_be_left)
                && TextSize::of(candidate.source).is_none()
                && of_types(&bound.params)
        };
        let query = bound.filter(is_kept).and_then(KeptQuery::of).map(Box::new);
        Ok((plan, query))
    }

    pub(super) fn compile_point(
        &self,
        statement: &StatementKind,
        source: &str,
        types: &[SqlType],
        likely_counts: &[(u16, u64)],
    ) -> Result<PointPlan, Refusal> {
        let source = source.as_bytes();
        let (view, catalog) = (self.view(), self.catalog());
        match statement {
            StatementKind::Query(query) => {
                let mut bound = self.bind_types(query, source, types)?;
                bound.likely_counts = likely_counts.into();
                let columns = columns_of(&bound).into();
                point::compile_query(&bound, columns, &catalog, &[])
            }
            StatementKind::Insert(insert) => self.compile_insert(insert, source, types),
            StatementKind::Update(update) => point::compile_update(update, source, &view, &catalog, types),
            StatementKind::Delete(delete) => point::compile_delete(delete, source, &view, &catalog, types),
            _ => Err(NotPoint::because("a statement of another kind").into()),
        }
    }

    /// The plan of an INSERT or REPLACE, of the table behind it if it names a view.
    pub(super) fn compile_insert(
        &self,
        insert: &Insert,
        source: &[u8],
        types: &[SqlType],
    ) -> Result<PointPlan, Refusal> {
        let (view, catalog) = (self.view(), self.catalog());
        let Some(target) = self.insert_through_view(insert)? else {
            return point::compile_insert(insert, source, &view, &catalog, types);
        };
        if !target.checks.is_empty() || target.lacks_default.is_some() {
            return Err(NotPoint::because("rows for a view that checks them").into());
        }
        let own = target.insert(insert)?;
        let plan = point::compile_insert(&own, source, &view, &catalog, types)?;
        plan.with_views(&target.views, &catalog)
    }

    /// Runs a statement on its plan; false if another path is to take it, and nothing happened yet.
    pub(super) async fn run_plan_once(
        &mut self,
        plan: &CachedPlan,
        params: &[Datum<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<bool, SqlError> {
        self.begin_conditions();
        self.begin_context();
        self.in_flight = true;
        let result = self.try_plan(plan, params, sink).await;
        self.in_flight = false;
        if matches!(result, Ok(None)) {
            self.keep_condition_counts();
            return Ok(false);
        }
        self.shared.counters.add(Counter::Questions);
        self.collect_warnings();
        match result {
            Ok(outcome) => outcome.map_or(Ok(()), |outcome| self.finish(outcome, sink)).map(|()| true),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// As `run_plan_once`, within a statement that has begun; `None` for false.
    pub(super) async fn try_plan(
        &mut self,
        plan: &CachedPlan,
        params: &[Datum<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<Option<Outcome>, SqlError> {
        let CachedPlan { plan, query, needs, .. } = plan;
        if plan.is_err() && query.is_none() {
            return Ok(None);
        }
        self.check_needs_of_plan(needs)?;
        if let Ok(plan) = plan
            && let Some(outcome) = self.try_point_plan(plan, params, sink).await?
        {
            return Ok(Some(outcome));
        }
        match query {
            Some(query) => Box::pin(self.try_kept_query(query, params, sink)).await,
            None => Ok(None),
        }
    }

    async fn try_point_plan(
        &mut self,
        plan: &PointPlan,
        params: &[Datum<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<Option<Outcome>, SqlError> {
        let zeros = self.settings.sql_mode.zero_dates();
        if plan.dates().iter().any(|(at, read_as)| !is_read_as(&params[*at], *read_as, zeros)) {
            return Ok(None);
        }
        if plan.is_write() {
            if !plan.changes_temporary_alone() {
                self.check_not_read_only()?;
            }
            self.check_safe_plan(plan, params)?;
            self.set_storing(!plan.ignores());
            self.set_ignoring(plan.ignores());
        } else if plan.locks_exclusively() && !plan.tables().all(|table| table.id().is_temporary()) {
            self.check_not_read_only()?;
        }
        self.begin_time(plan.verb() == Verb::Select, plan.is_one_row());
        let mark = self.begin_query(plan.tables().next().is_some())?;
        let result = match plan.locks() {
            true => self.execute_in_turn(plan, params, mark.statement, sink).await,
            false => self.execute_plan(plan, params, ReadAt::Snapshot, With::default(), sink),
        };
        if matches!(result, Ok(point::Outcome::Declined)) {
            self.set_storing(false);
            self.leave_query(mark);
            return Ok(None);
        }
        let result = self.end_query(mark, result).await?;
        Ok(match result {
            point::Outcome::Rows(rows) => {
                self.shared.counters.add(Counter::Select);
                Some(Outcome::Rows(rows))
            }
            point::Outcome::Changed(changes) => Some(Outcome::Done(self.done(plan, changes))),
            point::Outcome::Declined => None,
        })
    }

    /// Runs a plan that locks rows. While it waits for the first of them, the thread goes on with other connections.
    pub(super) async fn execute_in_turn(
        &mut self,
        plan: &PointPlan,
        params: &[Datum<'_>],
        mark: StatementMark,
        sink: &mut dyn ResultSink,
    ) -> Result<point::Outcome, SqlError> {
        self.txn().defer_waits(mark);
        let warnings = self.context.warning_count();
        let result = loop {
            let result = self.execute_plan(plan, params, ReadAt::Snapshot, With::default(), sink);
            if result.is_ok() {
                break result;
            }
            let Some(wait) = self.txn().deferred_wait() else { break result };
            if let Err(error) = self.await_row(wait).await {
                break Err(error);
            }
            self.context.truncate_warnings(warnings);
            self.context.take_insert_id();
            self.context.assigned.take();
            self.txn().begin_anew();
        };
        self.txn().end_deferral();
        result
    }

    /// Waits for a row; KILL and the time-out end it.
    async fn await_row(&mut self, wait: RowWait) -> Result<(), SqlError> {
        if !can_await() {
            return Ok(self.txn().block_on_deferred(&wait)?);
        }
        let deadline = wait.deadline();
        tokio::select! {
            biased;
            _ = self.info.interrupt.raised() => Err(ErrorCode::QUERY_INTERRUPTED.with(&[])),
            turn = tokio::time::timeout_at(deadline.into(), wait) => match turn {
                Ok(turn) => Ok(turn?),
                Err(_) => Err(ErrorCode::LOCK_WAIT_TIMEOUT.with(&[])),
            },
        }
    }

    /// Runs a plan within a statement that has begun.
    pub(super) fn execute_plan(
        &mut self,
        plan: &PointPlan,
        params: &[Datum<'_>],
        at: ReadAt<'_>,
        With { given, measurements }: With<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<point::Outcome, SqlError> {
        let deadline = self.deadline;
        let warnings = self.context.warning_count();
        let work = |txn: &mut Txn, run: Run<'_>, scratch: &mut PointScratch| {
            let run = Run { given, measurements, ..run };
            let mut execute = |txn: &mut Txn| plan.execute(txn, run, scratch, sink);
            match at {
                ReadAt::Snapshot => execute(txn),
                ReadAt::Newest(reader) => txn.read_at(reader, execute),
                ReadAt::Change => txn.read_for_change(execute),
            }
        };
        let result = match plan.is_write() {
            true => self.with_run(params, work),
            false => self.with_bounds(params, |bounds| bounds.of_query(deadline), work),
        };
        if matches!(result, Ok(point::Outcome::Declined)) {
            // The other path will say the same.
            self.context.truncate_warnings(warnings);
        }
        result
    }

    /// Runs something that changes rows one by one, within a statement that has begun.
    pub(super) fn with_run<T>(
        &mut self,
        params: &[Datum<'_>],
        work: impl FnOnce(&mut Txn, Run<'_>, &mut PointScratch) -> T,
    ) -> T {
        self.with_bounds(params, |bounds| bounds, work)
    }

    fn with_bounds<T>(
        &mut self,
        params: &[Datum<'_>],
        of: impl for<'b> FnOnce(Bounds<'b>) -> Bounds<'b>,
        work: impl FnOnce(&mut Txn, Run<'_>, &mut PointScratch) -> T,
    ) -> T {
        let Self { txn, context, point_scratch, info, settings, shared, .. } = self;
        let txn = txn.as_mut().expect("the statement began");
        let memory = shared.engine.memory();
        let bounds = of(Bounds::new(&info.interrupt, memory, settings.query_memory_limit));
        let run =
            Run { params, ctx: context, bounds: &bounds, work_table: None, given: &[], measurements: None };
        work(txn, run, point_scratch)
    }

    pub(super) fn done(&self, plan: &PointPlan, changes: Changes) -> Done {
        let Changes { matched, changed, duplicates, unchanged, last_insert_id, last_number } = changes;
        let warnings = self.condition_count() + self.context.warning_count();
        let (counter, affected_rows, info) = match plan.verb() {
            Verb::Update => {
                let affected = if self.info.found_rows { matched } else { changed };
                let info = format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}");
                (Counter::Update, affected, info)
            }
            Verb::Delete => (Counter::Delete, changed, String::new()),
            Verb::Insert | Verb::Select => {
                let affected = if self.info.found_rows { changed + unchanged } else { changed };
                let info = match plan.is_listed() {
                    false => String::new(),
                    true => format!("Records: {matched}  Duplicates: {duplicates}  Warnings: {warnings}"),
                };
                (Counter::Insert, affected, info)
            }
        };
        self.shared.counters.add(counter);
        let tells_chosen = plan.verb() != Verb::Delete;
        Done { affected_rows, last_insert_id, last_number, tells_chosen, info, database_changed: false }
    }
}

fn of_session() -> NotPoint {
    NotPoint::because("it uses variables of the session")
}

/// Whether a value can be read so, in a mode that has these zero dates. If not, it is an error, or is compared in another way: the
/// general path knows.
pub(super) fn is_read_as(value: &Datum<'_>, read_as: ReadAs, zeros: ZeroDates) -> bool {
    match (value, read_as) {
        (Datum::Str(text), ReadAs::Date) => {
            parse_datetime(text.as_bytes(), Default::default(), zeros).is_some()
        }
        (Datum::Str(text), ReadAs::Time) => {
            parse_time(text.as_bytes(), Default::default()).is_some_and(|time| !time.truncated)
        }
        (Datum::Int(number), ReadAs::Date) => datetime_from_number(*number, ZeroDates::REFUSED).is_some(),
        (Datum::UInt(_) | Datum::Decimal(_) | Datum::Double(_), ReadAs::Date) => false,
        _ => true,
    }
}

/// Appends what stands for the type of a value in a key.
fn put_type(value: &Datum<'_>, param: bool, key: &mut Vec<u8>) {
    match value {
        Datum::Null => key.push(0),
        Datum::Int(_) => key.push(1),
        Datum::UInt(_) => key.push(2),
        Datum::Float(_) => key.push(3),
        Datum::Double(_) => key.push(4),
        Datum::Decimal(v) if param => key.extend_from_slice(&[5, v.scale()]),
        Datum::Decimal(v) => key.extend_from_slice(&[6, v.digits() as u8, v.scale()]),
        Datum::Str(_) => key.push(7),
        Datum::Bytes(_) => key.push(8),
        Datum::Date(_) => key.push(9),
        Datum::DateTime(_) => key.push(10),
        Datum::Time(_) => key.push(11),
    }
}
