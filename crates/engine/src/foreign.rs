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

use crate::catalog::Catalog;
use crate::error::ForeignKeyError;
use crate::table::TableHandle;

pub(crate) use orphans::{count_orphans, each_cold_row, first_orphan, key_values};

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
    /// Whether what becomes of the parent may change rows of the child.
    pub fn changes_children(&self) -> bool {
        let def = &self.child.def.foreign_keys[self.key];
        let changes = |action| matches!(action, ReferentialAction::Cascade | ReferentialAction::SetNull);
        changes(def.on_delete) || changes(def.on_update)
    }

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
        | (T::Float(_), T::Float(_))
        | (T::Double(_), T::Double(_))
        | (T::Date, T::Date)
        | (T::DateTime { .. }, T::DateTime { .. })
        | (T::Timestamp { .. }, T::Timestamp { .. })
        | (T::Time { .. }, T::Time { .. })
        | (T::Year, T::Year) => true,
        // By their numbers, as InnoDB does.
        (T::Enum(_), T::Enum(_)) | (T::Set(_), T::Set(_)) | (T::Bit { .. }, T::Bit { .. }) => {
            narrow(a).coded_width() == narrow(b).coded_width()
        }
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
