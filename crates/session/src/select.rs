//! SELECT and the other query expressions.

use std::sync::Arc;

use avocet_base::TableId;
use avocet_channel::ResultSink;
use avocet_engine::{Catalog, EngineError, TableHandle};
use avocet_point::{self as point, GivenRows, PointPlan, Refusal};
use avocet_sql::bind::bind_query;
use avocet_sql::parse::ast;
use avocet_sql::plan::{BoundQuery, Limit, QueryBody, QueryExpr, lock_queries, walk};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::Expr;
use avocet_types::schema::TableDef;
use avocet_types::{Datum, SqlType};

use super::assigned::not_assigning;
use super::counters::Counter;
use super::found_rows::{Limited, without_limits};
use super::info_schema;
use super::output::columns_of;
use super::plan_cache::KeptQuery;
use super::point::{ReadAt, With, is_read_as};
use super::run::{Outcome, Text};
use super::state::Session;

/// How often a statement is bound or compiled anew because a table or a view changed between that and its use.
pub(super) const MAX_REBINDS: usize = 100;

/// What a query's rows are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A client gets them: no more than `@@sql_select_limit`, unless the query has a LIMIT.
    Answer { select_limit: u64 },
    /// The statement goes on with them.
    Value,
    /// They are inserted: the query reads what statements read that change rows.
    Change,
}

/// A query, bound to the tables of a catalog.
pub(super) struct BoundNow {
    pub query: BoundQuery,
    catalog: Arc<Catalog>,
}

impl BoundNow {
    /// Whether it reads stored tables.
    pub fn reads_tables(&self) -> bool {
        tables_of(&self.query).iter().any(|table| !info_schema::is_virtual(&table.database))
    }
}

impl Purpose {
    pub(super) fn select_limit(self) -> u64 {
        match self {
            Self::Answer { select_limit } => select_limit,
            Self::Value | Self::Change => u64::MAX,
        }
    }

    fn read_at(self) -> ReadAt<'static> {
        match self {
            Self::Answer { .. } | Self::Value => ReadAt::Snapshot,
            Self::Change => ReadAt::Change,
        }
    }
}

impl Session {
    pub(super) async fn query(
        &mut self,
        query: &ast::Query,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        self.shared.counters.add(Counter::Select);
        let bound = self.bind_now(query, text)?;
        let mark = self.begin_query(bound.reads_tables())?;
        let result = self.query_in_transaction(bound, query, text, sink).await;
        self.end_query(mark, result).await.map(Outcome::Rows)
    }

    async fn query_in_transaction(
        &mut self,
        bound: BoundNow,
        query: &ast::Query,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<u64, SqlError> {
        let (bound, tables) = self.hold_bound(bound, query, text)?;
        if bound.locks && locks_exclusively(&bound) {
            self.check_not_read_only()?;
        }
        let select_limit = self.settings.select_limit;
        if bound.calc_found_rows {
            let counts_itself = bound.session_dependent && matches!(bound.body.body, QueryBody::Select(_));
            if counts_itself
                && let Some(found) = self.visit_once(&bound, select_limit, text, ReadAt::Snapshot, sink)?
            {
                return Ok(found);
            }
            let window = self.window_of(query, text)?;
            let (all, purpose) = (without_limits(bound), Purpose::Answer { select_limit: u64::MAX });
            return self.run_bound(all, tables, text, &mut Limited::new(sink, window), purpose).await;
        }
        let purpose = Purpose::Answer { select_limit };
        self.run_bound(bound, tables, text, sink, purpose).await
    }

    /// Runs a query whose tables are held, in the statement's transaction; returns the number of rows.
    pub(super) async fn run_bound(
        &mut self,
        bound: BoundQuery,
        tables: Vec<Arc<TableHandle>>,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
        purpose: Purpose,
    ) -> Result<u64, SqlError> {
        if let Some(sent) = self.run_in_place(&bound, &tables, text, sink, purpose).await? {
            return Ok(sent);
        }
        let reader = match purpose {
            Purpose::Change => self.txn().read_for_change(|txn| txn.reader()),
            _ => self.txn().reader(),
        };
        self.analyze_at(reader.into(), bound.into(), tables, text, sink, purpose.select_limit()).await
    }

    /// Runs a query by the session's own thread, if that serves, or if it locks rows. `None` if it is to be analyzed.
    pub(super) async fn run_in_place(
        &mut self,
        bound: &BoundQuery,
        tables: &[Arc<TableHandle>],
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
        purpose: Purpose,
    ) -> Result<Option<u64>, SqlError> {
        let select_limit = purpose.select_limit();
        // No plan is kept of what such queries say: one is made for this run alone. (Variables of the session are values by now.)
        let is_for_once = bound.locks
            || bound.session_dependent
            || tables.is_empty()
            || select_limit < u64::MAX
            || matches!(purpose, Purpose::Value);
        if is_for_once {
            let at = if bound.locks { ReadAt::Snapshot } else { purpose.read_at() };
            if let Some(sent) = self.visit_once(bound, select_limit, text, at, sink)? {
                return Ok(Some(sent));
            }
        }
        if bound.locks {
            let (bound, tables) = (bound.clone(), tables.to_vec());
            return self.run_locking_query(bound, tables, text, sink, purpose).await.map(Some);
        }
        self.shared.counters.add(Counter::SlowAnalytics);
        Ok(None)
    }

    /// Runs a query row by row, and locks what it meets if it is to; `None` if it has no point plan.
    pub(super) fn visit_once(
        &mut self,
        bound: &BoundQuery,
        select_limit: u64,
        text: &Text<'_>,
        at: ReadAt<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Option<u64>, SqlError> {
        if !self.settings.point_path && !bound.assigns && !is_locked_by_visits_alone(bound) {
            return Ok(None);
        }
        let plan = match self.plan_once(bound, select_limit) {
            Ok(plan) => plan,
            Err(Refusal::NotPoint(reason)) if bound.assigns => return Err(not_assigning(reason)),
            Err(Refusal::NotPoint(_)) => return Ok(None),
            Err(Refusal::Error(error)) => return Err(error),
        };
        let zeros = self.settings.sql_mode.zero_dates();
        if plan.dates().iter().any(|(at, read_as)| !is_read_as(&text.params[*at], *read_as, zeros)) {
            return Ok(None);
        }
        let given = self.own_rows_of(bound, text.params)?;
        Ok(match self.execute_plan(&plan, text.params, at, With::given(&given), sink)? {
            point::Outcome::Rows(rows) => Some(rows),
            point::Outcome::Changed(_) | point::Outcome::Declined => None,
        })
    }

    /// The point plan of a query that is run just once, and gives `select_limit` rows at most if it has no LIMIT. A run is given
    /// the rows of the server's own tables.
    pub(super) fn plan_once(&self, bound: &BoundQuery, select_limit: u64) -> Result<PointPlan, Refusal> {
        let own: Vec<TableId> = own_tables_of(bound).map(|table| table.id).collect();
        let columns = columns_of(bound).into();
        let limited = (select_limit < u64::MAX && bound.body.limit.is_none()).then(|| {
            let count = Expr::literal(Datum::UInt(select_limit), SqlType::BIGINT_UNSIGNED);
            let limit = Some(Limit { count, offset: None });
            BoundQuery { body: QueryExpr { limit, ..bound.body.clone() }, ..bound.clone() }
        });
        point::compile_query(limited.as_ref().unwrap_or(bound), columns, &self.catalog(), &own)
    }

    /// Runs a query that was bound before; `None` if its tables or the values are others than it was bound for, and nothing happened
    /// yet.
    pub(super) async fn try_kept_query(
        &mut self,
        KeptQuery { bound, tables, dates }: &KeptQuery,
        params: &[Datum<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<Option<Outcome>, SqlError> {
        let zeros = self.settings.sql_mode.zero_dates();
        if dates.iter().any(|(at, read_as)| !is_read_as(&params[*at], *read_as, zeros)) {
            return Ok(None);
        }
        self.begin_time(true, false);
        let mark = self.begin_statement()?;
        let tables = match self.hold_as_bound(&bound.views, tables) {
            Ok(Some(tables)) => tables,
            // The general path begins the statement once more, in the same transaction.
            Ok(None) => return Ok(None),
            Err(error) => return self.end_statement(mark, Err(error)).await,
        };
        self.shared.counters.add(Counter::Select);
        self.shared.counters.add(Counter::SlowAnalytics);
        let text = Text::new(&[], params, self.settings.connection_collation);
        let reader = self.txn().reader();
        let result = self.analyze_at(reader.into(), bound.clone(), tables, &text, sink, u64::MAX).await;
        self.end_statement(mark, result).await.map(|rows| Some(Outcome::Rows(rows)))
    }

    /// Holds the views and tables that a query was bound to; `None` if one of them is another by now.
    fn hold_as_bound(
        &mut self,
        views: &[Arc<TableDef>],
        tables: &[Arc<TableDef>],
    ) -> Result<Option<Vec<Arc<TableHandle>>>, SqlError> {
        let catalog = self.catalog();
        let now =
            |def: &Arc<TableDef>| catalog.table_by_id(def.id).filter(|table| Arc::ptr_eq(&table.def, def));
        match tables.iter().map(|def| now(def).cloned()).collect::<Option<Vec<_>>>() {
            Some(tables) if self.hold_views(views)? && self.hold_all(&tables)? => Ok(Some(tables)),
            _ => Ok(None),
        }
    }

    /// The rows of the server's own tables that a query reads, as of now.
    pub(super) fn own_rows_of(
        &self,
        bound: &BoundQuery,
        params: &[Datum<'_>],
    ) -> Result<Vec<GivenRows>, SqlError> {
        let rows = |table: Arc<TableDef>| {
            let only = info_schema::only_of(bound, &table, params, self.database.as_deref());
            let rows = self.virtual_rows(&table.database, &table.name, only)?;
            Ok(GivenRows { table: table.id, rows })
        };
        own_tables_of(bound).map(rows).collect()
    }

    /// Binds a query to the tables as they are.
    pub(super) fn bind_now(&self, query: &ast::Query, text: &Text<'_>) -> Result<BoundNow, SqlError> {
        let catalog = self.catalog();
        let query = self.bind_types(query, text.source, &text.types)?;
        Ok(BoundNow { query, catalog })
    }

    /// Binds a query with parameters of these types.
    pub(super) fn bind_types(
        &self,
        query: &ast::Query,
        source: &[u8],
        types: &[SqlType],
    ) -> Result<BoundQuery, SqlError> {
        self.shared.counters.add(Counter::QueriesBound);
        bind_query(query, source, &self.view(), types)
    }

    /// Holds the definitions of a query's tables till the end of the transaction. If they have changed, the query is bound anew.
    pub(super) fn hold_bound(
        &mut self,
        mut bound: BoundNow,
        query: &ast::Query,
        text: &Text<'_>,
    ) -> Result<(BoundQuery, Vec<Arc<TableHandle>>), SqlError> {
        for _ in 0..MAX_REBINDS {
            if let Some(tables) = self.hold_tables_of(&bound.query, &bound.catalog)? {
                return Ok((bound.query, tables));
            }
            bound = self.bind_now(query, text)?;
        }
        Err(ErrorCode::TABLE_DEF_CHANGED.with(&[]))
    }

    /// Binds a query and holds its tables, within a statement that has begun.
    pub(super) fn bind_and_hold(
        &mut self,
        query: &ast::Query,
        text: &Text<'_>,
    ) -> Result<(BoundQuery, Vec<Arc<TableHandle>>), SqlError> {
        let bound = self.bind_now(query, text)?;
        self.hold_bound(bound, query, text)
    }

    /// Holds the stored tables of a query; `None` if one of them is not what it was bound to any more.
    pub(super) fn hold_tables_of(
        &mut self,
        bound: &BoundQuery,
        catalog: &Catalog,
    ) -> Result<Option<Vec<Arc<TableHandle>>>, SqlError> {
        let tables: Option<Vec<_>> = tables_of(bound)
            .iter()
            .filter(|def| !info_schema::is_virtual(&def.database))
            .map(|def| catalog.table_by_id(def.id).filter(|table| Arc::ptr_eq(&table.def, def)).cloned())
            .collect();
        Ok(match tables {
            Some(tables) if self.hold_views(&bound.views)? && self.hold_all(&tables)? => Some(tables),
            _ => None,
        })
    }

    /// False if one of them is not the table of that name any more.
    fn hold_all(&mut self, tables: &[Arc<TableHandle>]) -> Result<bool, SqlError> {
        for table in tables {
            if !self.hold(table)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Holds the definitions of views till the end of the transaction; false if one of them is another one by now.
    pub(super) fn hold_views(&mut self, views: &[Arc<TableDef>]) -> Result<bool, SqlError> {
        for view in views {
            let catalog = self.catalog();
            let Some(handle) = catalog.table_by_id(view.id) else { return Ok(false) };
            if !Arc::ptr_eq(&handle.def, view) || !is_current(self.txn().hold_view(handle))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn hold(&mut self, table: &Arc<TableHandle>) -> Result<bool, SqlError> {
        is_current(self.txn().use_table(table))
    }

    /// The server's own tables can not be changed.
    pub(super) fn refuse_own_tables(&self, database: &str) -> Result<(), SqlError> {
        if !info_schema::is_virtual(database) {
            return Ok(());
        }
        let user = &self.info.account;
        Err(ErrorCode::DBACCESS_DENIED_ERROR.with(&[&user.user, &user.host, &database]))
    }

    /// The table of an INSERT, held till the end of the transaction. It may be newer than the transaction's snapshot.
    pub(super) fn insert_target(&mut self, name: &ast::ObjectName) -> Result<Arc<TableHandle>, SqlError> {
        let database = match &name.database {
            Some(database) => database.name.clone(),
            None => self.current_database()?.to_owned(),
        };
        self.refuse_own_tables(&database)?;
        for _ in 0..MAX_REBINDS {
            let catalog = self.catalog();
            let Some(table) = catalog.table(&database, &name.name.name).cloned() else {
                return Err(match catalog.database(&database) {
                    Some(_) => ErrorCode::NO_SUCH_TABLE.with(&[&database, &name.name.name]),
                    None => ErrorCode::BAD_DB_ERROR.with(&[&database]),
                });
            };
            if is_current(self.txn().use_table_as_now(&table))? {
                return Ok(table);
            }
        }
        Err(ErrorCode::TABLE_DEF_CHANGED.with(&[]))
    }
}

/// False for a handle that is not the table of its name any more.
fn is_current(held: Result<(), EngineError>) -> Result<bool, SqlError> {
    match held {
        Ok(()) => Ok(true),
        Err(EngineError::StaleDefinition(..)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl KeptQuery {
    /// `None` unless a bound query serves each session and each run: it reads stored tables only, locks nothing, and no variable
    /// of the session stands in it as a value.
    pub fn of(bound: BoundQuery) -> Option<Self> {
        let mut tables: Vec<Arc<TableDef>> = Vec::new();
        walk::for_each_scan_mut(&mut bound.body.clone(), &mut |scan| {
            if tables.iter().all(|table| table.id != scan.table.id) {
                tables.push(scan.table.clone());
            }
        });
        let serves_all = !bound.locks
            && !bound.session_dependent
            && !bound.calc_found_rows
            && !tables.is_empty()
            && !tables.iter().any(|table| info_schema::is_virtual(&table.database));
        let dates = point::dates_of(&bound);
        serves_all.then(|| Self { bound: Arc::new(bound), tables, dates })
    }
}

/// The server's own tables that a query reads.
fn own_tables_of(bound: &BoundQuery) -> impl Iterator<Item = Arc<TableDef>> {
    let own = tables_of(bound).into_iter().filter(|table| info_schema::is_virtual(&table.database));
    own.filter_map(|table| info_schema::table(&table.database, &table.name))
}

/// Whether no query of its own tells which rows a query locks: a block that locks rows depends on those of another.
fn is_locked_by_visits_alone(bound: &BoundQuery) -> bool {
    bound.locks && lock_queries(bound).is_none()
}

/// Whether a query locks rows of stored tables as if to change them.
fn locks_exclusively(bound: &BoundQuery) -> bool {
    let mut found = false;
    walk::for_each_scan_mut(&mut bound.body.clone(), &mut |scan| {
        let is_stored = !scan.table.id.is_temporary();
        found |= is_stored && scan.lock.is_some_and(|lock| avocet_point::row_lock(lock).exclusive);
    });
    found
}

/// The tables that a query reads, each once.
pub(super) fn tables_of(bound: &BoundQuery) -> Vec<Arc<TableDef>> {
    let mut tables: Vec<Arc<TableDef>> = Vec::new();
    let mut body = bound.body.clone();
    walk::for_each_scan_mut(&mut body, &mut |scan| {
        if !tables.iter().any(|known| known.id == scan.table.id) {
            tables.push(scan.table.clone());
        }
    });
    tables
}
