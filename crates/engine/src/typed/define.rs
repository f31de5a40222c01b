//! Defining tables without SQL.

use std::sync::Arc;

use avocet_types::schema::{ColumnDef, DefaultValue, IndexDef, IndexKind, IndexPart, TableDef};
use avocet_types::{Collation, SqlType};

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::table::TableHandle;

/// A table that is to be created: columns first, then the keys over them.
///
/// ```
/// # use avocet_engine::{typed::NewTable, types::SqlType};
/// let accounts = NewTable::new("bank", "accounts")
///     .auto_increment("id", SqlType::BIGINT)
///     .column("owner", NewTable::text(80))
///     .nullable("limit", SqlType::Decimal { precision: 12, scale: 2, unsigned: false })
///     .primary_key(&["id"])
///     .index("owner", &["owner"]);
/// ```
pub struct NewTable {
    def: TableDef,
    unknown: Option<String>,
}

impl NewTable {
    pub fn new(database: impl Into<String>, name: impl Into<String>) -> Self {
        Self { def: TableDef::new(database, name, Vec::new(), Vec::new()), unknown: None }
    }

    /// A VARCHAR of so many characters, compared as MySQL does by default: neither case nor accents count.
    pub const fn text(characters: u32) -> SqlType {
        SqlType::VarChar { len: characters, collation: Collation::DEFAULT }
    }

    /// A column that holds no NULL.
    pub fn column(self, name: &str, ty: SqlType) -> Self {
        self.push(name, ty, |_| ())
    }

    pub fn nullable(self, name: &str, ty: SqlType) -> Self {
        self.push(name, ty, |column| column.nullable = true)
    }

    /// A column whose values are generated where an insert gives none.
    pub fn auto_increment(self, name: &str, ty: SqlType) -> Self {
        self.push(name, ty, |column| column.auto_increment = true)
    }

    /// A DATETIME or TIMESTAMP column that gets the time of the insert.
    pub fn created_at(self, name: &str, ty: SqlType) -> Self {
        self.push(name, ty, |column| column.default = Some(DefaultValue::Now))
    }

    pub fn primary_key(self, columns: &[&str]) -> Self {
        self.key("PRIMARY", IndexKind::Primary, columns)
    }

    pub fn unique(self, name: &str, columns: &[&str]) -> Self {
        self.key(name, IndexKind::Unique, columns)
    }

    pub fn index(self, name: &str, columns: &[&str]) -> Self {
        self.key(name, IndexKind::Secondary, columns)
    }

    /// Creates the table, durably.
    ///
    /// # Errors
    /// [`EngineError::NoSuchDatabase`], [`EngineError::TableExists`]; [`EngineError::WrongShape`] for a key over a column
    /// that there is not.
    pub fn create(self, engine: &Engine) -> Result<Arc<TableHandle>> {
        match self.unknown {
            None => engine.create_table(self.def),
            Some(column) => Err(EngineError::WrongShape {
                table: self.def.name,
                why: format!("a key names column {column}, which it has not"),
            }),
        }
    }

    fn push(mut self, name: &str, ty: SqlType, adjust: impl FnOnce(&mut ColumnDef)) -> Self {
        let mut column = ColumnDef::new(name, ty);
        adjust(&mut column);
        self.def.columns.push(column);
        self
    }

    fn key(mut self, name: &str, kind: IndexKind, columns: &[&str]) -> Self {
        let mut parts = Vec::new();
        for column in columns {
            match self.def.column(column) {
                Some(column) => parts.push(IndexPart { column, descending: false, prefix_len: None }),
                None => self.unknown = Some((*column).into()),
            }
        }
        self.def.indexes.push(IndexDef { parts, ..IndexDef::new(name, kind, &[]) });
        self
    }
}
