//! Statements that change rows through views.

use std::sync::Arc;

use avocet_point::{Refusal, RowCheck};
use avocet_sql::bind::{CheckOf, ViewTarget, through_view, unsupported};
use avocet_sql::parse::ast::ObjectName;
use avocet_sql::parse::statement::{Insert, LoadData, LoadTarget, OnDuplicateKey};
use avocet_types::error::SqlError;
use avocet_types::expr::Expr;

use super::state::Session;

impl Session {
    /// The table behind the view that an INSERT or REPLACE names; `None` if it names none.
    pub(super) fn insert_through_view(&self, insert: &Insert) -> Result<Option<ViewTarget>, SqlError> {
        let columns = insert.columns.as_ref().filter(|columns| !columns.is_empty());
        let columns: Option<Vec<&str>> =
            columns.map(|columns| columns.iter().map(|column| column.name.as_str()).collect());
        self.target_of_view(&insert.table, columns.as_deref(), insert.ignore)
    }

    pub(super) fn load_through_view(&self, load: &LoadData) -> Result<Option<ViewTarget>, SqlError> {
        let column = |target: &'_ LoadTarget| match target {
            LoadTarget::Column(column) => Some(column.name.clone()),
            LoadTarget::Variable(_) => None,
        };
        let assigned = load.assignments.iter().map(|assignment| assignment.column.name.clone());
        let columns = load.targets.as_ref().map(|targets| targets.iter().filter_map(column));
        let columns: Option<Vec<String>> = columns.map(|columns| columns.chain(assigned).collect());
        let columns: Option<Vec<&str>> =
            columns.as_ref().map(|columns| columns.iter().map(String::as_str).collect());
        self.target_of_view(&load.table, columns.as_deref(), load.on_duplicate == OnDuplicateKey::Ignore)
    }

    fn target_of_view(
        &self,
        name: &ObjectName,
        columns: Option<&[&str]>,
        ignore: bool,
    ) -> Result<Option<ViewTarget>, SqlError> {
        if !self.catalog().has_views() {
            return Ok(None);
        }
        let target = through_view(name, columns, "INSERT", &self.view())?;
        if let Some(lacking) = target.as_ref().and_then(|target| target.lacks_default.clone())
            && self.settings.sql_mode.is_strict()
            && !ignore
        {
            return Err(lacking);
        }
        let hidden = target.as_ref().map(|target| &target.table);
        match hidden.filter(|table| self.temporary.has(&table.database, &table.name)) {
            None => Ok(target),
            // Rows are stored by the table's name.
            Some(_) => Err(unsupported("INSERT through a view of a table that a temporary table hides")),
        }
    }
}

/// What rows have to meet that go into a view. The one that the statement names refuses them.
pub(super) fn checks_of(target: &ViewTarget) -> Result<Arc<[RowCheck]>, SqlError> {
    let compile = |(condition, of): &(Expr, CheckOf)| RowCheck::compile(condition, of);
    target.checks.iter().map(|check| compile(check).map_err(Refusal::into_error)).collect()
}
