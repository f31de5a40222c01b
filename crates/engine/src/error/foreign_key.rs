//! What is wrong with a foreign key, or with rows because of one.

use avocet_types::{ForeignKeyDef, TableDef};
use thiserror::Error;

/// What is wrong with a foreign key, or with rows because of one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ForeignKeyError {
    /// A child row has no parent. `constraint` is the key as error messages show it.
    #[error("no parent for a row of `{database}`.`{table}`: {constraint}")]
    NoParent { database: String, table: String, constraint: String },
    /// A parent row has children.
    #[error("rows of `{database}`.`{table}` refer to the row: {constraint}")]
    HasChildren { database: String, table: String, constraint: String },
    #[error("a cascade is deeper than {0} levels")]
    TooDeep(usize),
    #[error("there is no parent table '{0}'")]
    NoSuchParent(String),
    #[error("parent '{parent}' of foreign key '{key}' has no column '{column}'")]
    NoSuchColumn { key: String, parent: String, column: String },
    #[error("parent '{parent}' of foreign key '{key}' has no unique index on its columns")]
    NoUniqueIndex { key: String, parent: String },
    #[error("column '{column}' and column '{parent_column}' of foreign key '{key}' differ in type")]
    Incompatible { key: String, column: String, parent_column: String },
    #[error("the foreign key '{0}' exists")]
    DuplicateName(String),
    #[error("column '{column}' of foreign key '{key}' cannot be set to NULL")]
    CannotSetNull { key: String, column: String },
    /// A table that there are foreign keys to already cannot be their parent.
    #[error("the table does not fit the foreign keys that refer to it")]
    UnfitParent,
    #[error("table '{table}' is referred to by foreign key '{key}' of table '{child}'")]
    Referenced { table: String, key: String, child: String },
    #[error("the table is referred to by foreign key '{key}' of '{database}'.'{child}'")]
    CannotTruncate { database: String, child: String, key: String },
    #[error("a foreign key needs index '{0}'")]
    NeedsIndex(String),
    #[error("foreign key '{0}' does not exist")]
    NoSuchKey(String),
}

impl ForeignKeyError {
    pub(crate) fn no_parent(child: &TableDef, key: &ForeignKeyDef) -> Self {
        let (database, table) = (child.database.clone(), child.name.clone());
        Self::NoParent { database, table, constraint: key.in_message(child) }
    }

    pub(crate) fn has_children(child: &TableDef, key: &ForeignKeyDef) -> Self {
        let (database, table) = (child.database.clone(), child.name.clone());
        Self::HasChildren { database, table, constraint: key.in_message(child) }
    }

    /// Whether one row is wrong, which statements with IGNORE leave out.
    pub fn is_of_row(&self) -> bool {
        matches!(self, Self::NoParent { .. } | Self::HasChildren { .. })
    }
}
