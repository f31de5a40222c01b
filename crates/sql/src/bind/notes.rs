//! What the names of a query mean, noted while it is bound: for the canonical text of a view ([`qualify`](crate::qualify)).

use std::collections::{HashMap, HashSet};

use super::{Binder, ColumnName};
use crate::parse::ast::{self, Span};
use crate::plan::ColumnId;
use avocet_types::expr::Expr;
use avocet_types::names;
use avocet_types::schema::ROWID;

/// By places in the query's text.
#[derive(Debug, Default)]
pub struct Notes {
    /// Columns of tables; names of select items are not here.
    pub columns: HashMap<Place, Qualified>,
    /// What `*` and `t.*` are, and `TABLE t`.
    pub stars: HashMap<Place, Vec<Qualified>>,
    /// Where `*` and `t.*` stand for nothing but a row: in EXISTS.
    pub ones: HashSet<Place>,
    /// The pairs that USING and NATURAL compare, by the first table of the join's right side.
    pub joins: HashMap<Place, Vec<(Qualified, Qualified)>>,
    /// The databases of stored tables and views.
    pub databases: HashMap<Place, String>,
}

/// Where something begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place(u32, u32);

impl From<Span> for Place {
    fn from(span: Span) -> Self {
        Self(span.start, span.end)
    }
}

/// A column with all that leads to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qualified {
    /// Of a stored table that has no alias.
    pub database: Option<String>,
    pub table: String,
    pub column: String,
}

/// The place of the table that stands first in a part of FROM.
pub fn first_table(table: &ast::TableRef) -> Place {
    match table {
        ast::TableRef::Table { name, .. } => name.name.span.into(),
        ast::TableRef::Derived { span, .. } => (*span).into(),
        ast::TableRef::Join(join) => first_table(&join.left),
    }
}

impl Binder<'_> {
    /// How a column of the block at `depth` is called in full.
    pub(super) fn qualified(&self, depth: usize, id: ColumnId) -> Option<Qualified> {
        self.blocks[depth].tables.iter().find_map(|table| {
            let column = table.columns.iter().find(|column| column.id == id)?;
            Some(Qualified {
                database: table.database.as_ref().map(|name| name.to_string()),
                table: table.name.to_string(),
                column: column.name.to_string(),
            })
        })
    }

    /// Notes what a name was resolved to, unless it means a select item.
    pub(super) fn note_column(&mut self, depth: usize, name: &ColumnName<'_>, span: Span, expr: &Expr) {
        if self.notes.is_none() {
            return;
        }
        let Some(id) = crate::plan::walk::column_of(expr) else { return };
        let found = self.qualified(depth, id);
        let is_rowid = names::eq(name.column, ROWID)
            && self.blocks[depth].tables.iter().any(|table| table.rowid == Some(id));
        if let (Some(found), Some(notes)) = (found, &mut self.notes)
            && (is_rowid || names::eq(&found.column, name.column))
            // The output of a set operation is of no table.
            && !found.table.is_empty()
        {
            notes.columns.insert(span.into(), found);
        }
    }

    pub(super) fn note_star(&mut self, span: Span, ids: &[ColumnId]) {
        if self.notes.is_none() {
            return;
        }
        let depth = self.blocks.len() - 1;
        let all = ids.iter().filter_map(|id| self.qualified(depth, *id)).collect();
        if let Some(notes) = &mut self.notes {
            notes.stars.insert(span.into(), all);
        }
    }

    pub(super) fn note_one(&mut self, span: Span) {
        if let Some(notes) = &mut self.notes {
            notes.ones.insert(span.into());
        }
    }

    pub(super) fn note_join(&mut self, join: &ast::Join, pairs: &[(ColumnId, ColumnId)]) {
        if self.notes.is_none() {
            return;
        }
        let depth = self.blocks.len() - 1;
        let of = |id: ColumnId| self.qualified(depth, id);
        let all = pairs.iter().filter_map(|(left, right)| Some((of(*left)?, of(*right)?))).collect();
        if let Some(notes) = &mut self.notes {
            notes.joins.insert(first_table(&join.right), all);
        }
    }

    pub(super) fn note_database(&mut self, name: &ast::ObjectName, database: &str) {
        if let Some(notes) = &mut self.notes {
            notes.databases.insert(name.name.span.into(), database.to_owned());
        }
    }
}
