//! Prepared statements on the point path: each keeps its compiled plan, as long as what it was compiled for holds.
//!
//! A plan depends on the catalog, the types of the parameters, the default database and the sql_mode; if any of them
//! is another, the statement is compiled anew. That it has no point plan is kept in the same way.

use std::sync::Arc;

use avocet_types::SqlType;
use avocet_types::expr::SqlMode;

use super::api::ResultSink;
use super::output::columns_of;
use super::prepared::PreparedStatement;
use super::run::{Done, Outcome, Text};
use super::state::Session;
use super::status::Counter;
use crate::bind::bind_query;
use crate::error::SqlError;
use crate::parse::statement::StatementKind;
use crate::point::{self, Changes, PointPlan, Refusal};

/// A plan, or that there is none, and what that holds for.
pub(super) struct Compiled {
    catalog_version: u64,
    types: Vec<SqlType>,
    database: Option<String>,
    sql_mode: SqlMode,
    plan: Option<Arc<PointPlan>>,
}

impl Session {
    /// Runs a prepared statement on the point path; `None` if another path is to take it.
    pub(super) async fn run_point(
        &mut self,
        statement: &PreparedStatement,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Option<Outcome>, SqlError> {
        // A limit of the session's on queries without one is the general path's business.
        if self.settings.select_limit != u64::MAX {
            return Ok(None);
        }
        let Some(plan) = self.point_plan(statement, text) else { return Ok(None) };
        if plan.is_write() {
            self.set_storing(true);
        }
        let mark = self.begin_statement()?;
        let Self { txn, context, point_scratch, .. } = self;
        let txn = txn.as_mut().expect("the statement began");
        let result = plan.execute(txn, text.params, context, point_scratch, sink);
        if matches!(result, Ok(point::Outcome::Declined)) {
            self.set_storing(false);
            return Ok(None);
        }
        let result = self.end_statement(mark, result).await?;
        Ok(Some(match result {
            point::Outcome::Rows(rows) => {
                self.shared.counters.add(Counter::Select);
                Outcome::Rows(rows)
            }
            point::Outcome::Changed(changes) => Outcome::Done(self.done(&statement.kind, changes)),
            point::Outcome::Declined => unreachable!("returned above"),
        }))
    }

    fn done(&self, kind: &StatementKind, changes: Changes) -> Done {
        let Changes { matched, changed, last_insert_id } = changes;
        let warnings = self.conditions.len() as u64 + self.context.warning_count();
        let (counter, affected_rows, info) = match kind {
            StatementKind::Update(_) => {
                let affected = if self.info.found_rows { matched } else { changed };
                let info = format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}");
                (Counter::Update, affected, info)
            }
            StatementKind::Delete(_) => (Counter::Delete, changed, String::new()),
            _ if matched > 1 => {
                let info = format!("Records: {matched}  Duplicates: 0  Warnings: {warnings}");
                (Counter::Insert, changed, info)
            }
            _ => (Counter::Insert, changed, String::new()),
        };
        self.shared.counters.add(counter);
        Done { affected_rows, last_insert_id, info, database_changed: false }
    }

    fn point_plan(&self, statement: &PreparedStatement, text: &Text<'_>) -> Option<Arc<PointPlan>> {
        let catalog = self.catalog();
        let mut kept = statement.compiled.lock();
        if let Some(compiled) = &*kept
            && compiled.catalog_version == catalog.version()
            && compiled.types == text.types
            && compiled.database == self.database
            && compiled.sql_mode == self.settings.sql_mode
        {
            return compiled.plan.clone();
        }
        let plan = match self.compile_point(statement, text) {
            Ok(plan) => Some(Arc::new(plan)).filter(|plan| plan.params() == text.types),
            // What is wrong with the statement, the general path says.
            Err(Refusal::NotPoint(_) | Refusal::Error(_)) => None,
        };
        *kept = Some(Compiled {
            catalog_version: catalog.version(),
            types: text.types.clone(),
            database: self.database.clone(),
            sql_mode: self.settings.sql_mode,
            plan: plan.clone(),
        });
        plan
    }

    fn compile_point(&self, statement: &PreparedStatement, text: &Text<'_>) -> Result<PointPlan, Refusal> {
        let (view, catalog) = (self.view(), self.catalog());
        match &statement.kind {
            StatementKind::Query(query) => {
                let bound = bind_query(query, text.source, &view, &text.types)?;
                if bound.session_dependent {
                    return Err(point::NotPoint::because("it uses variables of the session").into());
                }
                let columns = columns_of(&bound).into();
                point::compile_query(&bound, columns, &catalog)
            }
            StatementKind::Insert(insert) => {
                point::compile_insert(insert, text.source, &view, &catalog, &text.types)
            }
            StatementKind::Update(update) => {
                point::compile_update(update, text.source, &view, &catalog, &text.types)
            }
            StatementKind::Delete(delete) => {
                point::compile_delete(delete, text.source, &view, &catalog, &text.types)
            }
            _ => Err(point::NotPoint::because("a statement of another kind").into()),
        }
    }
}
