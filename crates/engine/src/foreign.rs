//! Foreign keys between tables: which child has which parent, and whether a definition can hold.
//!
//! A foreign key is kept by its child and names its parent, which may come and go while `foreign_key_checks` is off. What
//! checks of rows need is made of all definitions whenever the catalog changes:
//!
//! ```text
//!  child.def.foreign_keys ──▶ Link ─┬─▶ Links of the child:  as_child    its rows must have parents
//!                                   └─▶ Links of the parent: as_parent   its rows may have children
//! ```
//!
//! How rows are checked is in `txn/foreign.rs`, how those are that are there already in `foreign/orphans.rs`.
//!
//! Invariants:
//! 1. Whoever changes the links of a table holds the metadata locks of that table and of those that it is linked with.
//! 2. A child has an index that begins with the key's columns, a parent that was checked a unique one on just its own.

mod orphans;

use std::sync::Arc;

use avocet_types::{ForeignKeyDef, ReferentialAction, SqlType, TableDef};
use thiserror::Error;

use crate::catalog::Catalog;
use crate::table::TableHandle;

pub(crate) use orphans::{count_orphans, each_cold_row, first_orphan, key_values};

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

/// A foreign key between tables as they are now.
pub(crate) struct Link {
    pub child: Arc<TableHandle>,
    /// Which of the child's keys this is.
    pub key: usize,
    /// Finds the child's rows by the key; its position among the child's indexes.
    pub child_index: Option<usize>,
    /// `None`: the table, its columns or its index are not there, so no row can have a parent.
    pub parent: Option<Parent>,
}

pub(crate) struct Parent {
    pub table: Arc<TableHandle>,
    pub columns: Vec<usize>,
    pub index: usize,
}

/// The foreign keys of one table, each side in the order of their names.
#[derive(Default)]
pub(crate) struct Links {
    pub as_child: Vec<Arc<Link>>,
    pub as_parent: Vec<Arc<Link>>,
}

impl Link {
    pub fn new(catalog: &Catalog, child: &Arc<TableHandle>, key: usize) -> Self {
        let def = &child.def.foreign_keys[key];
        let parent = catalog.table(&def.parent_database, &def.parent_table).and_then(|table| {
            let columns = parent_columns(def, &table.def).ok()?;
            let index = table.def.unique_index_on(&columns).or_else(|| table.def.index_on(&columns))?;
            Some(Parent { table: table.clone(), columns, index })
        });
        Self { child: child.clone(), key, child_index: child.def.index_on(&def.columns), parent }
    }

    pub fn def(&self) -> &ForeignKeyDef {
        &self.child.def.foreign_keys[self.key]
    }

    fn is_same_as(&self, other: &Self) -> bool {
        let parent = |link: &Self| link.parent.as_ref().map(|parent| Arc::as_ptr(&parent.table));
        Arc::ptr_eq(&self.child, &other.child) && self.key == other.key && parent(self) == parent(other)
    }
}

impl Links {
    pub fn sort(&mut self) {
        for side in [&mut self.as_child, &mut self.as_parent] {
            side.sort_by(|a, b| {
                (&a.child.def.database, &a.def().name).cmp(&(&b.child.def.database, &b.def().name))
            });
        }
    }

    pub fn is_same_as(&self, other: &Self) -> bool {
        let same = |a: &[Arc<Link>], b: &[Arc<Link>]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same_as(b))
        };
        same(&self.as_child, &other.as_child) && same(&self.as_parent, &other.as_parent)
    }
}

/// The positions of the parent's columns.
fn parent_columns(key: &ForeignKeyDef, parent: &TableDef) -> Result<Vec<usize>, ForeignKeyError> {
    let position = |column: &String| {
        parent.column(column).ok_or_else(|| ForeignKeyError::NoSuchColumn {
            key: key.name.clone(),
            parent: parent.name.clone(),
            column: column.clone(),
        })
    };
    key.parent_columns.iter().map(position).collect()
}

/// Whether the child's own columns allow the key.
pub(crate) fn check_child(child: &TableDef, key: &ForeignKeyDef) -> Result<(), ForeignKeyError> {
    if ![key.on_delete, key.on_update].contains(&ReferentialAction::SetNull) {
        return Ok(());
    }
    match key.columns.iter().find(|column| !child.columns[**column].nullable) {
        None => Ok(()),
        Some(column) => Err(ForeignKeyError::CannotSetNull {
            key: key.name.clone(),
            column: child.columns[*column].name.clone(),
        }),
    }
}

/// Whether the parent has what the key refers to.
pub(crate) fn check_parent(
    child: &TableDef,
    key: &ForeignKeyDef,
    parent: &TableDef,
) -> Result<(), ForeignKeyError> {
    let columns = parent_columns(key, parent)?;
    for (own, other) in key.columns.iter().zip(&columns) {
        let (column, parent_column) = (&child.columns[*own], &parent.columns[*other]);
        if !are_compatible(&column.ty, &parent_column.ty) {
            return Err(ForeignKeyError::Incompatible {
                key: key.name.clone(),
                column: column.name.clone(),
                parent_column: parent_column.name.clone(),
            });
        }
    }
    match parent.unique_index_on(&columns) {
        Some(_) => Ok(()),
        None => Err(ForeignKeyError::NoUniqueIndex { key: key.name.clone(), parent: parent.name.clone() }),
    }
}

/// Whether values of the types compare by their keys: integers of one width and sign, strings of one collation, decimals,
/// binary strings and times of any size.
pub fn are_compatible(a: &SqlType, b: &SqlType) -> bool {
    use SqlType as T;
    match (narrow(a), narrow(b)) {
        (T::Int { width: a, unsigned: x }, T::Int { width: b, unsigned: y }) => a == b && x == y,
        (T::Decimal { .. }, T::Decimal { .. })
        | (T::Float, T::Float)
        | (T::Double, T::Double)
        | (T::Date, T::Date)
        | (T::DateTime { .. }, T::DateTime { .. })
        | (T::Timestamp { .. }, T::Timestamp { .. })
        | (T::Time { .. }, T::Time { .. })
        | (T::Year, T::Year) => true,
        (a, b) => match (a.collation(), b.collation()) {
            (Some(x), Some(y)) => x == y,
            _ => is_binary(&a) && is_binary(&b),
        },
    }
}

/// BOOL is TINYINT.
fn narrow(ty: &SqlType) -> SqlType {
    match *ty {
        SqlType::Bool => SqlType::Int { width: avocet_types::IntWidth::W8, unsigned: false },
        ty => ty,
    }
}

fn is_binary(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Binary { .. } | SqlType::VarBinary { .. } | SqlType::Blob { .. })
}
