//! The columns that a statement reads, as its text names them.
//!
//! Which table an unqualified column is of depends on what columns there are, so that is found out when privileges are
//! checked, and only for accounts that hold something on columns: who holds SELECT on all tables that a statement names
//! is done after a look at these.

use avocet_engine::{Catalog, Privileges};
use avocet_types::names;

use super::access::Access;

/// A statement's queries, each with what its columns can be of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    blocks: Vec<Block>,
    columns: Vec<Column>,
}

/// The FROM of one query, or the table that a statement changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Block {
    /// The one around it.
    outer: Option<usize>,
    sources: Vec<Source>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// What it is called in the query.
    pub called: String,
    pub rows: Rows,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    Stored {
        database: String,
        table: String,
    },
    /// A derived table or CTE; the names of its columns if the text tells all.
    Derived(Option<Vec<String>>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    block: usize,
    database: Option<String>,
    table: Option<String>,
    /// `None` for all of them: `*`, `t.*`.
    name: Option<String>,
}

/// A column that may not be read, or a table of which all may not.
pub(super) struct Denied {
    pub table: String,
    pub column: Option<String>,
}

impl Reads {
    /// A new query within another; what it is known by.
    pub(super) fn block(&mut self, outer: Option<usize>) -> usize {
        self.blocks.push(Block { outer, sources: Vec::new() });
        self.blocks.len() - 1
    }

    /// The query around a block's.
    pub(super) fn around(&self, block: usize) -> Option<usize> {
        self.blocks[block].outer
    }

    pub(super) fn source(&mut self, block: usize, called: &str, rows: Rows) {
        self.blocks[block].sources.push(Source { called: called.to_owned(), rows });
    }

    /// Gives a block the tables of another as well.
    pub(super) fn share(&mut self, from: usize, to: usize) {
        let more = self.blocks[from].sources.clone();
        self.blocks[to].sources.extend(more);
    }

    pub(super) fn column(
        &mut self,
        block: usize,
        database: Option<&str>,
        table: Option<&str>,
        name: Option<&str>,
    ) {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let column = Column { block, database: owned(database), table: owned(table), name: owned(name) };
        self.columns.push(column);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Fails with the first column that the account may not read.
    /// No table that `is_free` is asked for.
    pub(super) fn check(
        &self,
        access: &Access,
        catalog: &Catalog,
        is_free: &dyn Fn(&str, &str) -> bool,
    ) -> Result<(), Denied> {
        let sources = self.blocks.iter().flat_map(|block| &block.sources);
        let mut may_read_all = sources.filter_map(Source::stored).map(|(database, table)| {
            is_free(database, table) || access.on_table(database, table).contains(Privileges::SELECT)
        });
        if may_read_all.all(|may| may) {
            return Ok(());
        }
        self.columns.iter().try_for_each(|column| self.check_column(column, access, catalog, is_free))
    }

    fn check_column(
        &self,
        column: &Column,
        access: &Access,
        catalog: &Catalog,
        is_free: &dyn Fn(&str, &str) -> bool,
    ) -> Result<(), Denied> {
        let mut block = Some(column.block);
        while let Some(at) = block {
            let Block { outer, sources } = &self.blocks[at];
            let mut is_found = false;
            for source in sources.iter().filter(|source| source.is_meant(column)) {
                let Some((database, table)) = source.stored() else {
                    is_found |= source.has(column.name.as_deref());
                    continue;
                };
                let denied =
                    |name: Option<&str>| Denied { table: table.to_owned(), column: name.map(str::to_owned) };
                let may_read = |name: &str| {
                    is_free(database, table)
                        || access.on_column(database, table, name).contains(Privileges::SELECT)
                };
                let Some(def) = catalog.relation(database, table).map(|table| &table.def) else { continue };
                match &column.name {
                    None if def.own_columns().iter().all(|column| may_read(&column.name)) => {}
                    None => return Err(denied(None)),
                    Some(name) if def.column(name).is_none() => continue,
                    Some(name) if may_read(name) => {}
                    Some(name) => return Err(denied(Some(name))),
                }
                is_found = true;
            }
            // What only the query's own tables can be meant by, is looked for no further out.
            if is_found || column.name.is_none() {
                return Ok(());
            }
            block = *outer;
        }
        // Who may read some columns of a table is not told which others there are.
        let is_partial = |source: &&Source| match source.stored() {
            Some((database, table)) if source.is_meant(column) && !is_free(database, table) => {
                !access.on_table(database, table).contains(Privileges::SELECT)
            }
            _ => false,
        };
        let partial = self.blocks[column.block].sources.iter().find(is_partial);
        match (partial.and_then(Source::stored), &column.name) {
            (Some((_, table)), Some(name)) => {
                Err(Denied { table: table.to_owned(), column: Some(name.clone()) })
            }
            _ => Ok(()),
        }
    }
}

impl Source {
    fn stored(&self) -> Option<(&str, &str)> {
        match &self.rows {
            Rows::Stored { database, table } => Some((database, table)),
            Rows::Derived(_) => None,
        }
    }

    /// Whether a column's qualifier, if there is one, means it.
    fn is_meant(&self, column: &Column) -> bool {
        let database = match (&column.database, &self.rows) {
            (Some(wanted), Rows::Stored { database, .. }) => wanted == database,
            (Some(_), Rows::Derived(_)) => false,
            (None, _) => true,
        };
        database && column.table.as_ref().is_none_or(|table| **table == *self.called)
    }

    /// Whether a derived table is known to have a column.
    fn has(&self, name: Option<&str>) -> bool {
        match (&self.rows, name) {
            (Rows::Derived(Some(names)), Some(name)) => names.iter().any(|known| names::eq(known, name)),
            _ => false,
        }
    }
}
