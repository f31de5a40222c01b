//! SELECT and the other query expressions.

use std::sync::Arc;

use avocet_channel::blocking::{ROWS_IN_PLACE, blocking_if};
use avocet_channel::{Cancellation, ResultSink};
use avocet_engine::{Catalog, EngineError, TableHandle, Txn};
use avocet_point as point;
use avocet_sql::bind::bind_query;
use avocet_sql::parse::ast;
use avocet_sql::plan::{BoundQuery, walk};
use avocet_types::error::{ErrorCode, SqlError};

use super::found_rows::Limited;
use super::info_schema;
use super::output::columns_of;
use super::point::{ReadAt, is_read_as};
use super::rows::{RowQuery, Rows, Run};
use super::run::{Outcome, Text};
use super::state::Session;
use super::status::Counter;

/// How often a statement is bound anew because a table changed between binding and use.
const MAX_REBINDS: usize = 100;

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

/// Rows of tables of at most so many are sent by the connection's own thread, without a look at KILL.
const ROWS_IN_ONE_GO: u64 = 20_000;

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
        if let Some((whole, window)) = self.counted_query(query, text)? {
            return self.query_all(&whole, u64::MAX, text, &mut Limited::new(sink, window)).await;
        }
        self.query_all(query, self.settings.select_limit, text, sink).await
    }

    async fn query_all(
        &mut self,
        query: &ast::Query,
        select_limit: u64,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        let bound = bind_query(query, text.source, &self.view(), &text.types)?;
        if tables_of(&bound).iter().all(|table| info_schema::is_virtual(&table.0))
            && let Some(rows) = RowQuery::compile(&bound)?
        {
            return self.query_without_tables(&bound, &rows, select_limit, text, sink);
        }
        let mark = self.begin_statement()?;
        let result = self.query_in_transaction(query, select_limit, text, sink).await;
        self.end_statement(mark, result).await.map(Outcome::Rows)
    }

    /// A query on nothing but the server's own tables, or on none.
    fn query_without_tables(
        &mut self,
        bound: &BoundQuery,
        rows: &RowQuery,
        select_limit: u64,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        let source = match &rows.table {
            None => Rows::One,
            Some(table) => Rows::Values(self.virtual_rows(&table.database, &table.name)?),
        };
        let run = Run { select_limit, ..self.run_of(text) };
        sink.columns(&columns_of(bound), self.settings.time_zone)?;
        Ok(Outcome::Rows(rows.run(source, &run, sink)?))
    }

    async fn query_in_transaction(
        &mut self,
        query: &ast::Query,
        select_limit: u64,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<u64, SqlError> {
        let (bound, tables) = self.bind_and_hold(query, text)?;
        if bound.locks && locks_exclusively(&bound) {
            self.check_server_takes_changes()?;
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
        self.analyze_at(reader.into(), bound, tables, text, sink, purpose.select_limit()).await
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
        // Variables of the session are values by now: a plan that is made for this run alone finds the rows that they ask for,
        // and no more of them are locked.
        let is_of_session = (bound.locks || bound.session_dependent) && !tables.is_empty();
        if is_of_session && self.settings.point_path && select_limit == u64::MAX {
            let at = if bound.locks { ReadAt::Snapshot } else { purpose.read_at() };
            if let Some(sent) = self.visit_once(bound, text, at, sink)? {
                return Ok(Some(sent));
            }
        }
        let cancellation = Cancellation { interrupt: &self.info.interrupt, deadline: self.deadline };
        let run = Run { params: text.params, context: &self.context, select_limit, cancellation };
        if let Some(rows) = RowQuery::compile(bound)?
            && tables.len() <= 1
        {
            let Some(table) = tables.first() else {
                let source = match &rows.table {
                    None => Rows::One,
                    Some(table) => Rows::Values(self.virtual_rows(&table.database, &table.name)?),
                };
                sink.columns(&columns_of(bound), self.settings.time_zone)?;
                return rows.run(source, &run, sink).map(Some);
            };
            let is_much = table.row_count() > ROWS_IN_PLACE as u64;
            // Many rows stream from the analytics threads, a batch at a time.
            let is_few = table.row_count() <= ROWS_IN_ONE_GO;
            if rows.lock.is_some() || (is_few && rows.index_name(table, &run)?.is_some()) {
                sink.columns(&columns_of(bound), self.settings.time_zone)?;
                let txn = self.txn.as_mut().expect("the statement began");
                let sent = blocking_if(is_much, || match (rows.lock, purpose) {
                    (Some(lock), _) => rows.run(Rows::Locked(txn, table, lock), &run, sink),
                    (None, Purpose::Change) => {
                        txn.read_for_change(|txn| rows.run(Rows::Table(txn, table), &run, sink))
                    }
                    (None, _) => rows.run(Rows::Table(txn, table), &run, sink),
                });
                return sent.map(Some);
            }
        }
        if bound.locks {
            if let Some(sent) = self.visit_once(bound, text, ReadAt::Snapshot, sink)? {
                return Ok(Some(sent));
            }
            let (bound, tables) = (bound.clone(), tables.to_vec());
            return self.run_locking_query(bound, tables, text, sink, purpose).await.map(Some);
        }
        // No plan is kept of what such queries say.
        let is_new = bound.session_dependent || matches!(purpose, Purpose::Value);
        if is_new
            && select_limit == u64::MAX
            && let Some(sent) = self.visit_once(bound, text, purpose.read_at(), sink)?
        {
            return Ok(Some(sent));
        }
        self.shared.counters.add(Counter::SlowAnalytics);
        Ok(None)
    }

    pub(super) fn run_of<'r>(&'r self, text: &'r Text<'_>) -> Run<'r> {
        let cancellation = Cancellation { interrupt: &self.info.interrupt, deadline: self.deadline };
        Run { params: text.params, context: &self.context, select_limit: u64::MAX, cancellation }
    }

    /// Runs a query row by row, and locks what it meets if it is to; `None` if it has no point plan.
    fn visit_once(
        &mut self,
        bound: &BoundQuery,
        text: &Text<'_>,
        at: ReadAt<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Option<u64>, SqlError> {
        let Some(plan) = self.plan_once(bound)? else { return Ok(None) };
        if plan.dates().iter().any(|(at, read_as)| !is_read_as(&text.params[*at], *read_as)) {
            return Ok(None);
        }
        Ok(match self.execute_plan(&plan, text.params, at, sink)? {
            point::Outcome::Rows(rows) => Some(rows),
            point::Outcome::Changed(_) | point::Outcome::Declined => None,
        })
    }

    /// Binds a query and holds the definitions of its tables till the end of the transaction.
    pub(super) fn bind_and_hold(
        &mut self,
        query: &ast::Query,
        text: &Text<'_>,
    ) -> Result<(BoundQuery, Vec<Arc<TableHandle>>), SqlError> {
        let mut rebinds = 0;
        loop {
            let view = self.view();
            let catalog = view.catalog.clone();
            let bound = bind_query(query, text.source, &view, &text.types)?;
            match self.hold_tables_of(&bound, &catalog)? {
                Some(tables) => return Ok((bound, tables)),
                None if rebinds < MAX_REBINDS => rebinds += 1,
                None => return Err(ErrorCode::TABLE_DEF_CHANGED.with(&[])),
            }
        }
    }

    /// Holds the stored tables of a query; `None` if one of them is not what it was bound to any more.
    pub(super) fn hold_tables_of(
        &mut self,
        bound: &BoundQuery,
        catalog: &Catalog,
    ) -> Result<Option<Vec<Arc<TableHandle>>>, SqlError> {
        let tables: Option<Vec<_>> = tables_of(bound)
            .iter()
            .filter(|(database, _)| !info_schema::is_virtual(database))
            .map(|(database, name)| catalog.table(database, name).cloned())
            .collect();
        Ok(match tables {
            Some(tables) if self.hold_all(&tables)? => Some(tables),
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

    fn hold(&mut self, table: &Arc<TableHandle>) -> Result<bool, SqlError> {
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

    /// The table whose rows a statement finds and changes, held till the end of the transaction.
    pub(super) fn target_table(&mut self, name: &ast::ObjectName) -> Result<Arc<TableHandle>, SqlError> {
        self.find_target(name, Txn::use_table)
    }

    /// The same for INSERT, which may add rows to a table that is newer than the transaction's snapshot.
    pub(super) fn insert_target(&mut self, name: &ast::ObjectName) -> Result<Arc<TableHandle>, SqlError> {
        self.find_target(name, Txn::use_table_as_now)
    }

    fn find_target(
        &mut self,
        name: &ast::ObjectName,
        hold: impl Fn(&mut Txn, &Arc<TableHandle>) -> Result<(), EngineError>,
    ) -> Result<Arc<TableHandle>, SqlError> {
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
            if is_current(hold(self.txn(), &table))? {
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

/// Whether a query locks rows as if to change them.
fn locks_exclusively(bound: &BoundQuery) -> bool {
    let mut found = false;
    walk::for_each_scan_mut(&mut bound.body.clone(), &mut |scan| {
        found |= scan.lock.is_some_and(|lock| avocet_point::row_lock(lock).exclusive);
    });
    found
}

/// Databases and names of the tables that a query reads, each once.
pub(super) fn tables_of(bound: &BoundQuery) -> Vec<(String, String)> {
    let mut names: Vec<(String, String)> = Vec::new();
    let mut body = bound.body.clone();
    walk::for_each_scan_mut(&mut body, &mut |scan| {
        let name = (scan.table.database.clone(), scan.table.name.clone());
        if !names.contains(&name) {
            names.push(name);
        }
    });
    names
}
