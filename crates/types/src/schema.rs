//! What a table is: columns, defaults, indexes. Lives in the catalog; immutable once published.

use avocet_base::{IndexId, TableId};

use crate::datum::Value;
use crate::sql_type::{Collation, SqlType};

#[derive(Clone, Debug)]
pub struct TableDef {
    pub id: TableId,
    pub database: String,
    pub name: String,
    pub columns: Vec<ColumnDef>,
    /// The primary key, if there is one, comes first.
    pub indexes: Vec<IndexDef>,
    pub default_collation: Collation,
    pub comment: String,
}

#[derive(Clone, Debug)]
pub struct ColumnDef {
    pub name: String,
    pub ty: SqlType,
    pub nullable: bool,
    pub default: Option<DefaultValue>,
    pub on_update_now: bool,
    pub auto_increment: bool,
    pub comment: String,
}

#[derive(Clone, Debug)]
pub enum DefaultValue {
    /// Already converted to the column's type; `Null` for DEFAULT NULL.
    Const(Value),
    /// CURRENT_TIMESTAMP at the column's precision.
    Now,
}

#[derive(Clone, Debug)]
pub struct IndexDef {
    pub id: IndexId,
    /// `PRIMARY` for the primary key.
    pub name: String,
    pub kind: IndexKind,
    pub parts: Vec<IndexPart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    Primary,
    Unique,
    Secondary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexPart {
    /// Position in `TableDef::columns`.
    pub column: usize,
    pub descending: bool,
    /// Only the first so many characters (bytes for binary types) are in the key.
    pub prefix_len: Option<u32>,
}

impl TableDef {
    /// A column's position, by MySQL's rule that column names are case-insensitive.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name))
    }

    pub fn primary_key(&self) -> Option<&IndexDef> {
        self.indexes.first().filter(|i| i.kind == IndexKind::Primary)
    }

    pub fn auto_increment_column(&self) -> Option<usize> {
        self.columns.iter().position(|c| c.auto_increment)
    }
}

impl IndexKind {
    pub const fn is_unique(self) -> bool {
        matches!(self, Self::Primary | Self::Unique)
    }
}
