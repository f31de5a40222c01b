//! Queries that read much: the way to DataFusion.

use std::sync::Arc;

use avocet_engine::TableHandle;

use super::api::ResultSink;
use super::output::columns_of;
use super::rows::{RowQuery, Rows, Run};
use super::run::Text;
use super::state::Session;
use crate::bind::unsupported;
use crate::error::SqlError;
use crate::plan::BoundQuery;

impl Session {
    /// Runs a query at the transaction's snapshot; returns the number of rows.
    pub(super) async fn analyze(
        &mut self,
        bound: BoundQuery,
        tables: Vec<Arc<TableHandle>>,
        text: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<u64, SqlError> {
        let run =
            Run { params: text.params, context: &self.context, select_limit: self.settings.select_limit };
        if let (Some(rows), [table]) = (RowQuery::compile(&bound)?, tables.as_slice()) {
            sink.columns(&columns_of(&bound), self.settings.time_zone)?;
            let txn = self.txn.as_mut().expect("the statement began");
            return rows.run(Rows::Table(txn, table), &run, sink);
        }
        Err(unsupported("a query of this form"))
    }

    /// How a query would be run, for EXPLAIN.
    pub(super) async fn explain_query(
        &mut self,
        _query: &crate::parse::ast::Query,
        bound: BoundQuery,
        text: &Text<'_>,
    ) -> Result<String, SqlError> {
        let _ = text;
        Ok(format!("{:#?}", bound.body))
    }
}
