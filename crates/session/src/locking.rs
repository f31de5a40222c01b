//! Queries with FOR UPDATE or FOR SHARE that are not visited row by row: outer joins, subqueries, grouping, set operations,
//! derived tables, and joins of many rows.
//!
//! Queries of their own give the ids of the rows to be locked ([`lock_queries`]), at the newest snapshot. When all of these
//! rows are locked and none has changed since that snapshot, the query runs at it; otherwise the ids are looked up again at a
//! newer one, at which the rows locked so far are as they will stay.

use std::collections::HashSet;
use std::sync::Arc;

use avocet_base::{RowId, TableId};
use avocet_channel::ResultSink;
use avocet_channel::blocking::{ROWS_IN_PLACE, blocking_if};
use avocet_engine::{RowBuf, SnapshotReader, TableHandle, TriedLock};
use avocet_point::row_lock;
use avocet_sql::bind::unsupported;
use avocet_sql::plan::walk::for_each_scan_mut;
use avocet_sql::plan::{BoundQuery, Limit, LockQuery, lock_queries, show_only};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{EvalContext, Expr, RowProgram};
use avocet_types::{Datum, SqlType};

use super::collect::Collected;
use super::counters::Counter;
use super::info_schema;
use super::point::ReadAt;
use super::run::Text;
use super::select::Purpose;
use super::state::Session;

/// What a query's scans read.
#[derive(Clone)]
pub(super) struct Readers {
    pub plain: SnapshotReader,
    /// Of the scans whose rows are locked.
    pub locked: SnapshotReader,
}

impl From<SnapshotReader> for Readers {
    fn from(reader: SnapshotReader) -> Self {
        Self { plain: reader.clone(), locked: reader }
    }
}

/// The rows that a query locks; all by the number of the scan.
pub(super) struct RowLocks {
    queries: Vec<LockQuery>,
    held: Vec<HashSet<RowId>>,
    /// What the last round came to.
    found: Vec<HashSet<RowId>>,
}

impl RowLocks {
    /// The rows of the server's own tables can not be locked.
    pub fn of(bound: &mut BoundQuery) -> Result<Self, SqlError> {
        let mut scans = 0;
        for_each_scan_mut(&mut bound.body, &mut |scan| {
            if info_schema::is_virtual(&scan.table.database) {
                scan.lock = None;
            }
            scans += usize::from(scan.lock.is_some());
        });
        let queries = if scans == 0 { Some(Vec::new()) } else { lock_queries(bound) };
        let queries = queries.ok_or_else(|| {
            unsupported("FOR UPDATE or FOR SHARE in a subquery that refers to outer tables")
        })?;
        Ok(Self { queries, held: vec![HashSet::new(); scans], found: vec![HashSet::new(); scans] })
    }

    /// The rows that the last round came to.
    pub fn wanted(&self) -> impl Iterator<Item = (TableId, RowId)> {
        let tables = self.queries.iter().flat_map(|query| &query.tables);
        tables.flat_map(|locked| self.found[locked.scan].iter().map(|row| (locked.table.id, *row)))
    }

    /// The query as it reads the rows that the last round came to.
    pub fn applied_to(&self, mut bound: BoundQuery) -> BoundQuery {
        let mut shown: Vec<_> = self.held.iter().map(|_| None).collect();
        for locked in self.queries.iter().filter(|q| q.shows_only_locked()).flat_map(|q| &q.tables) {
            shown[locked.scan] = Some(self.found[locked.scan].clone());
        }
        show_only(&mut bound.body, &mut shown);
        bound
    }
}

impl Session {
    /// Runs a query that locks rows, its tables being held; returns the number of rows that it gives.
    pub(super) async fn run_locking_query(
        &mut self,
        mut bound: BoundQuery,
        tables: Vec<Arc<TableHandle>>,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
        purpose: Purpose,
    ) -> Result<u64, SqlError> {
        let mut locks = RowLocks::of(&mut bound)?;
        let reads_snapshot = reads_without_lock(&mut bound);
        let begin = self.txn().mark();
        let mut is_first = true;
        let readers = loop {
            let locked = self.txn().newest_reader();
            let plain = match purpose {
                _ if !reads_snapshot => locked.clone(),
                Purpose::Change => self.txn().read_for_change(|txn| txn.reader()),
                Purpose::Answer { .. } | Purpose::Value => self.txn().reader(),
            };
            let readers = Readers { plain, locked };
            if self.lock_round(&mut locks, &readers, &tables, text).await? {
                break readers;
            }
            is_first = false;
            self.info.interrupt.check()?;
        };
        if !is_first {
            // Rows that others changed meanwhile may not be wanted any more.
            let wanted: HashSet<_> = locks.wanted().collect();
            self.txn().let_go_of(begin, &|table, row| wanted.contains(&(table, row)));
        }
        let bound = locks.applied_to(bound);
        self.run_at(readers, bound, tables, text, sink, purpose.select_limit()).await
    }

    /// Runs a query at some snapshots, on a point plan if it has one; returns the number of rows.
    pub(super) async fn run_at(
        &mut self,
        readers: Readers,
        bound: BoundQuery,
        tables: Vec<Arc<TableHandle>>,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
        select_limit: u64,
    ) -> Result<u64, SqlError> {
        if readers.plain.ts() == readers.locked.ts()
            && select_limit == u64::MAX
            && let Some(sent) = self.visit_at(&readers.locked, &bound, text, sink)?
        {
            return Ok(sent);
        }
        self.shared.counters.add(Counter::SlowAnalytics);
        self.analyze_at(readers, bound.into(), tables, text, sink, select_limit).await
    }

    /// Runs a query at the newest snapshot without locking anything; `None` if it has no point plan.
    fn visit_at(
        &mut self,
        newest: &SnapshotReader,
        bound: &BoundQuery,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Option<u64>, SqlError> {
        let mut bound = bound.clone();
        for_each_scan_mut(&mut bound.body, &mut |scan| scan.lock = None);
        bound.locks = false;
        self.visit_once(&bound, u64::MAX, text, ReadAt::Newest(newest), sink)
    }

    /// Locks the rows that the query wants at the readers' snapshots; false if they are others now.
    pub(super) async fn lock_round(
        &mut self,
        locks: &mut RowLocks,
        readers: &Readers,
        tables: &[Arc<TableHandle>],
        text: &Text<'_>,
    ) -> Result<bool, SqlError> {
        let RowLocks { queries, held, found } = locks;
        found.iter_mut().for_each(HashSet::clear);
        let mut as_read = true;
        let handle = |id| tables.iter().find(|table| table.id() == id).expect("the query's tables are held");
        for locked in queries.iter().flat_map(|query| &query.tables) {
            self.txn().use_to_lock(handle(locked.table.id), row_lock(locked.lock))?;
        }
        for query in &*queries {
            let most = self.most_combinations(query.limit.as_ref(), text)?;
            let mut bound = query.query.clone();
            if most < u64::MAX && !query.skips() {
                let count = Expr::literal(Datum::UInt(most), SqlType::BIGINT_UNSIGNED);
                bound.body.limit = Some(Limit { count, offset: None });
            }
            let mut rows = self.collected();
            self.run_at(readers.clone(), bound, tables.to_vec(), text, &mut rows, u64::MAX).await?;
            let is_many = rows.len() > ROWS_IN_PLACE;
            let lock = || self.lock_combinations(query, most, &rows, tables, held, found);
            as_read &= blocking_if(is_many, lock)?;
        }
        let txn = self.txn();
        Ok(txn.is_strict() || (as_read && !txn.has_met_newer(readers.locked.ts())))
    }

    /// How many combinations of rows are wanted.
    fn most_combinations(&self, limit: Option<&Limit>, text: &Text<'_>) -> Result<u64, SqlError> {
        let Some(Limit { count, offset }) = limit else { return Ok(u64::MAX) };
        let value = |expr| limit_value(expr, text.params, &self.context);
        Ok(value(count)?.saturating_add(offset.as_ref().map_or(Ok(0), value)?))
    }

    /// Locks the rows of each combination that was found, until there are enough; false if one of them is gone.
    fn lock_combinations(
        &mut self,
        query: &LockQuery,
        most: u64,
        rows: &Collected,
        tables: &[Arc<TableHandle>],
        held: &mut [HashSet<RowId>],
        found: &mut [HashSet<RowId>],
    ) -> Result<bool, SqlError> {
        let handle = |id| tables.iter().find(|table| table.id() == id).expect("the query's tables are held");
        let handles: Vec<_> = query.tables.iter().map(|locked| handle(locked.table.id)).collect();
        let mut buf = RowBuf::default();
        let (mut taken, mut all_there) = (0, true);
        rows.for_each(&mut |combination| {
            if taken >= most {
                return Ok(());
            }
            self.info.interrupt.check()?;
            let mut is_whole = true;
            for ((value, _), (locked, handle)) in combination.iter().zip(query.tables.iter().zip(&handles)) {
                // An outer join found none.
                let Datum::UInt(id) = *value else { continue };
                let id = RowId(id);
                if !held[locked.scan].contains(&id) {
                    match self.txn().try_lock_row(handle, id, row_lock(locked.lock), &mut buf)? {
                        TriedLock::Locked => _ = held[locked.scan].insert(id),
                        TriedLock::Busy => {
                            is_whole = false;
                            continue;
                        }
                        TriedLock::Gone => {
                            (is_whole, all_there) = (false, false);
                            continue;
                        }
                    }
                }
                found[locked.scan].insert(id);
            }
            taken += u64::from(is_whole);
            Ok(())
        })?;
        Ok(all_there)
    }
}

/// The value of a LIMIT or OFFSET.
fn limit_value(expr: &Expr, params: &[Datum<'_>], context: &EvalContext) -> Result<u64, SqlError> {
    let program = RowProgram::compile(expr)?;
    match program.eval_const(params, context)? {
        Datum::UInt(v) => Ok(v),
        Datum::Int(v) if v >= 0 => Ok(v as u64),
        _ => Err(ErrorCode::WRONG_ARGUMENTS.with(&[&"LIMIT"])),
    }
}

/// Whether the query reads stored rows that it does not lock.
fn reads_without_lock(bound: &mut BoundQuery) -> bool {
    let mut reads = false;
    for_each_scan_mut(&mut bound.body, &mut |scan| {
        reads |= scan.lock.is_none() && !info_schema::is_virtual(&scan.table.database);
    });
    reads
}
