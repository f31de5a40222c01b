//! Views: the query that a name stands for, bound in its place.
//!
//! ```text
//!  FROM v ─ find ─▶ definition ─ parse ─▶ syntax tree ─ bind, apart ─▶ derived table ─ merge.rs ─▶ tables and conditions
//! ```
//!
//! A view's text is bound as it was when the view was made: it sees no names of the statement around it, its strings have the
//! collation of the connection that made it, and what it names and does not find is the view's error (1356), not the statement's.

use std::sync::Arc;

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::SqlMode;
use avocet_types::schema::TableDef;
use avocet_types::{ViewAlgorithm, ViewDef};

use super::from::Bound;
use super::{Binder, Source};
use crate::facts::StatementFacts;
use crate::parse::ast::{Query, QueryBody};
use crate::parse::{StatementKind, parse};
use crate::plan::{self, ColumnId, Derived, From, QueryExpr, ViewUse, can_merge, shows_rows};

/// The syntax tree of a view's query.
///
/// # Errors
/// 1356 for text that is none: it comes from damaged bytes, or from a release that knows more.
pub fn parse_view(table: &TableDef, view: &ViewDef) -> Result<Query, SqlError> {
    let mut statements = parse(view.select.as_bytes(), SqlMode::DEFAULT).unwrap_or_default();
    match (statements.pop().map(|statement| statement.kind), statements.is_empty()) {
        (Some(StatementKind::Query(query)), true) => Ok(*query),
        _ => Err(invalid(table)),
    }
}

/// 1356
pub fn invalid(view: &TableDef) -> SqlError {
    ErrorCode::VIEW_INVALID.with(&[&view.database, &view.name])
}

/// Errors that are about what a view refers to.
fn is_about_references(error: &SqlError) -> bool {
    const CODES: &[ErrorCode] = &[
        ErrorCode::BAD_FIELD_ERROR,
        ErrorCode::NON_UNIQ_ERROR,
        ErrorCode::NO_SUCH_TABLE,
        ErrorCode::BAD_DB_ERROR,
        ErrorCode::KEY_DOES_NOT_EXIST,
        ErrorCode::VIEW_INVALID,
        ErrorCode::VIEW_WRONG_LIST,
        ErrorCode::DUP_FIELDNAME,
    ];
    CODES.iter().any(|code| error.is(*code))
}

impl Binder<'_> {
    /// A view in FROM, under the name that the query has for it.
    pub(super) fn view(
        &mut self,
        table: &Arc<TableDef>,
        shown: Arc<str>,
        qualified: bool,
    ) -> Result<Bound, SqlError> {
        let view = table.view.as_deref().expect("looked up as a view");
        let database: Option<Arc<str>> = qualified.then(|| table.database.as_str().into());
        self.check_next(&shown, database.as_deref())?;
        if self.open_views.contains(&table.id) {
            return Err(ErrorCode::VIEW_RECURSIVE.with(&[&table.database, &table.name]));
        }
        let mut query = self.view_query(table, view)?;
        self.keep_years(&mut query);
        let outputs = query.outputs.clone();
        for (id, column) in outputs.iter().zip(&table.columns) {
            let info = &mut self.columns[*id];
            info.name = column.name.as_str().into();
            if let Some(origin) = &mut info.origin {
                origin.alias = shown.clone();
            }
        }
        let merges = view.algorithm != ViewAlgorithm::TempTable && can_merge(&query);
        self.label_columns(&outputs, &shown, Some(&table.name.as_str().into()), merges);
        let keys = if merges { keys_of(&query) } else { super::from::keys_of(&query) };
        let is_shown = view.algorithm != ViewAlgorithm::TempTable && shows_rows(&query);
        self.with_dependences(|all, of_ctes| all.add_rows(&query, of_ctes, is_shown));
        let first = self.push_scope_table(shown.clone(), &outputs, keys);
        self.block().tables[first].database = database;
        let view = Some(ViewUse { def: table.clone(), merges });
        let from = From::Derived(Derived { query, alias: shown, outer: Vec::new(), view });
        Ok(Bound { from, first, star: outputs })
    }

    /// Binds a view's query, which sees nothing of the statement around it.
    fn view_query(&mut self, table: &Arc<TableDef>, view: &ViewDef) -> Result<QueryExpr, SqlError> {
        if !self.views.iter().any(|used| used.id == table.id) {
            self.views.push(table.clone());
        }
        let tree = parse_view(table, view)?;
        if self.catalog.is_on_behalf()
            && let Some(why) = StatementFacts::of_query(&tree).why_of_session()
        {
            let view =
                format_args!("the view {}.{} in another server's place: {why}", table.database, table.name);
            return Err(SqlError::unsupported(view));
        }
        let source = std::mem::replace(&mut self.source, Source::View(table.clone()));
        let blocks = std::mem::take(&mut self.blocks);
        let boundaries = std::mem::take(&mut self.boundaries);
        let ctes = std::mem::take(&mut self.ctes);
        let notes = self.notes.take();
        let collation = std::mem::replace(&mut self.typer.connection_collation, view.connection_collation);
        self.open_views.push(table.id);
        let bound = self.query(&tree);
        self.open_views.pop();
        self.typer.connection_collation = collation;
        self.notes = notes;
        self.ctes = ctes;
        self.boundaries = boundaries;
        self.blocks = blocks;
        self.source = source;
        let bound =
            bound.map_err(|error| if is_about_references(&error) { invalid(table) } else { error })?;
        if bound.outputs.len() != table.columns.len() {
            return Err(invalid(table));
        }
        Ok(bound)
    }
}

/// The keys of the only table of a view, as far as the view shows their columns.
fn keys_of(query: &QueryExpr) -> Vec<Vec<ColumnId>> {
    let plan::QueryBody::Select(select) = &query.body else { return Vec::new() };
    let From::Table(scan) = &select.from else { return Vec::new() };
    let shown = |column: usize| {
        let id = scan.columns.iter().find(|(at, _)| *at == column)?.1;
        let is_shown = |item: &&plan::Projected| plan::walk::column_of(&item.expr) == Some(id);
        select.projection.iter().find(is_shown).map(|item| item.id)
    };
    let is_key = |index: &&avocet_types::IndexDef| {
        let is_whole = |part: &avocet_types::IndexPart| {
            part.prefix_len.is_none() && !scan.table.columns[part.column].nullable
        };
        index.kind.is_unique() && index.parts.iter().all(is_whole)
    };
    let keys = scan.table.indexes.iter().filter(is_key);
    keys.filter_map(|index| index.parts.iter().map(|part| shown(part.column)).collect()).collect()
}

/// The tables and views that a view's query names, each once, in the order of its text.
pub fn names_in(query: &Query) -> Vec<(String, String)> {
    let statement = StatementKind::Query(Box::new(query.clone()));
    let facts = crate::facts::StatementFacts::of_kind(&statement);
    let named = facts.reads.into_iter().filter_map(|table| Some((table.database?, table.table)));
    named.collect()
}

/// Whether a query is a UNION or the like, or reads no table.
pub fn is_one_block(query: &Query) -> bool {
    matches!(&query.body, QueryBody::Select(select) if !select.from.is_empty())
}
