//! What a table is: columns, defaults, indexes, foreign keys. Lives in the catalog; immutable once published.

use avocet_base::{IndexId, TableId};

use crate::datum::Value;
use crate::names;
use crate::sql_type::{Collation, SqlType};
use crate::stated::StatedOptions;
use crate::stored::StoredColumns;
use crate::view::ViewDef;

/// Bytes of a key at most, as columns are declared: InnoDB's limit.
pub const MAX_KEY_BYTES: u64 = 3072;

/// Bytes of a primary key at most that entries of other indexes carry: a UUID as text has 144.
const MAX_ADDED_BYTES: u64 = 256;

#[derive(Clone, Debug)]
pub struct TableDef {
    pub id: TableId,
    pub database: String,
    pub name: String,
    /// Hidden ones, which functional key parts have, come last.
    pub columns: Vec<ColumnDef>,
    /// The primary key, if there is one, comes first.
    pub indexes: Vec<IndexDef>,
    /// Those of which it is the child, in the order in which they were made.
    pub foreign_keys: Vec<ForeignKeyDef>,
    /// In the order in which they were made.
    pub checks: Vec<CheckDef>,
    /// Its FULLTEXT and SPATIAL keys; nothing is kept for them beside the definition.
    pub kept_keys: Vec<KeptKeyDef>,
    /// What follows `PARTITION BY`, in the form of SHOW CREATE TABLE, if it is partitioned. All rows stand together.
    pub partitioning: Option<String>,
    pub default_collation: Collation,
    pub comment: String,
    /// Of a view, which has no rows and no indexes of its own.
    pub view: Option<Box<ViewDef>>,
    /// When it was made or last altered, in microseconds since 1970. Definitions of older releases do not say.
    pub created_us: Option<i64>,
    pub stated: StatedOptions,
    /// Where column blocks have the columns, once these have changed under the blocks.
    pub stored: Option<Box<StoredColumns>>,
}

#[derive(Clone, Debug)]
pub struct ColumnDef {
    pub name: String,
    pub ty: SqlType,
    pub nullable: bool,
    pub default: Option<DefaultValue>,
    pub on_update_now: bool,
    pub auto_increment: bool,
    pub generated: Option<GeneratedDef>,
    /// Left out of `*` and of an INSERT without a list of columns.
    pub invisible: bool,
    /// Its character set or collation was named, and is not the table's by default alone.
    pub collation_named: bool,
    /// ZEROFILL: its numbers are shown with zeros before them, as many characters as this at least.
    pub zerofill: Option<u8>,
    pub comment: String,
}

/// What a generated column is computed from. Both kinds are stored with the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedDef {
    /// SQL text in MySQL's canonical form.
    pub expr: String,
    /// STORED, not VIRTUAL.
    pub stored: bool,
    /// The name of the index of which it is a functional key part. Such a column is hidden: nothing but its index knows it.
    pub index: Option<String>,
}

impl TableDef {
    /// A table without foreign keys, of the default collation; the engine gives it its ids.
    pub fn new(
        database: impl Into<String>,
        name: impl Into<String>,
        columns: Vec<ColumnDef>,
        indexes: Vec<IndexDef>,
    ) -> Self {
        Self {
            id: TableId(0),
            database: database.into(),
            name: name.into(),
            columns,
            indexes,
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            kept_keys: Vec::new(),
            partitioning: None,
            default_collation: Collation::DEFAULT,
            comment: String::new(),
            view: None,
            created_us: None,
            stated: StatedOptions::default(),
            stored: None,
        }
    }

    pub fn is_view(&self) -> bool {
        self.view.is_some()
    }
}

impl ColumnDef {
    /// A column that holds no NULL and has no default.
    pub fn new(name: impl Into<String>, ty: SqlType) -> Self {
        Self {
            name: name.into(),
            ty,
            nullable: false,
            default: None,
            on_update_now: false,
            auto_increment: false,
            generated: None,
            invisible: false,
            collation_named: false,
            zerofill: None,
            comment: String::new(),
        }
    }

    /// Its type as definitions show it.
    pub fn type_text(&self) -> String {
        match (self.zerofill, self.ty.to_string()) {
            (None, text) => text,
            (Some(width), text) if matches!(self.ty, SqlType::Int { .. }) => {
                let name = text.strip_suffix(" unsigned").unwrap_or(&text);
                format!("{name}({width}) unsigned zerofill")
            }
            (Some(_), text) => text + " zerofill",
        }
    }

    /// The texts that its default and its values come from, if they do.
    fn expressions(&self) -> [Option<&str>; 2] {
        let default = match &self.default {
            Some(DefaultValue::Expr(text)) => Some(text.as_str()),
            _ => None,
        };
        [default, self.generated.as_ref().map(|from| from.expr.as_str())]
    }

    /// The default that its definition states.
    pub fn stated_default(&self) -> Option<&DefaultValue> {
        self.default.as_ref().filter(|default| !matches!(default, DefaultValue::Dropped))
    }

    /// Whether a value has to be given. AUTO_INCREMENT and generated columns have their own.
    pub const fn has_no_default(&self) -> bool {
        match self.default {
            None => !self.nullable,
            Some(DefaultValue::Dropped) => true,
            Some(DefaultValue::Const(_) | DefaultValue::Now | DefaultValue::Expr(_)) => false,
        }
    }

    /// Whether an expression gives it its values, or its default.
    pub fn is_computed(&self) -> bool {
        self.generated.is_some() || matches!(self.default, Some(DefaultValue::Expr(_)))
    }

    pub fn is_virtual(&self) -> bool {
        self.generated.as_ref().is_some_and(|from| !from.stored)
    }

    pub fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }

    /// The functional index whose key part the column is: no statement knows such a column.
    pub fn functional_index(&self) -> Option<&str> {
        self.generated.as_ref()?.index.as_deref()
    }

    /// What plans call the column: a hidden one is its expression.
    pub fn shown_name(&self) -> &str {
        match &self.generated {
            Some(GeneratedDef { expr, index: Some(_), .. }) => expr,
            _ => &self.name,
        }
    }

    pub fn is_hidden(&self) -> bool {
        self.functional_index().is_some()
    }
}

impl IndexDef {
    /// An index of whole columns, ascending, by their positions; the engine gives it its id.
    pub fn new(name: impl Into<String>, kind: IndexKind, columns: &[usize]) -> Self {
        let part = |&column: &usize| IndexPart { column, descending: false, prefix_len: None };
        let parts = columns.iter().map(part).collect();
        Self {
            id: IndexId(0),
            name: name.into(),
            kind,
            parts,
            generated: false,
            invisible: false,
            comment: String::new(),
        }
    }

    pub fn primary(columns: &[usize]) -> Self {
        Self::new("PRIMARY", IndexKind::Primary, columns)
    }

    pub fn secondary(name: impl Into<String>, columns: &[usize]) -> Self {
        Self::new(name, IndexKind::Secondary, columns)
    }

    /// What entries are ordered by: the index's own columns and, in an index that is not unique, those columns of the
    /// primary key that are not among them. Rows with equal values then come in the order of the primary key, as in InnoDB
    /// (MySQL 8.4 Reference Manual, 17.6.2.1, "Clustered and Secondary Indexes").
    ///
    /// A primary key of long strings is left out: every entry would carry its sort key.
    pub fn key_parts(&self, table: &TableDef) -> Vec<IndexPart> {
        let mut parts = self.parts.clone();
        let primary = table.indexes.iter().find(|index| index.kind == IndexKind::Primary);
        let Some(primary) = primary.filter(|_| self.kind == IndexKind::Secondary) else { return parts };
        let bytes_of = |part: &IndexPart| part.max_bytes(&table.columns[part.column].ty);
        let is_there = |of: &IndexPart| {
            self.parts.iter().any(|part| part.column == of.column && part.prefix_len.is_none())
        };
        let added: Vec<IndexPart> = primary.parts.iter().filter(|part| !is_there(part)).copied().collect();
        let bytes: u64 = added.iter().map(bytes_of).sum();
        let own: u64 = parts.iter().map(bytes_of).sum();
        let is_whole = added.iter().all(|part| part.prefix_len.is_none());
        if is_whole && bytes <= MAX_ADDED_BYTES && own + bytes <= MAX_KEY_BYTES {
            parts.extend(added);
        }
        parts
    }
}

#[derive(Clone, Debug)]
pub enum DefaultValue {
    /// Already converted to the column's type; `Null` for DEFAULT NULL.
    Const(Value),
    /// CURRENT_TIMESTAMP at the column's precision.
    Now,
    /// An expression, as SQL text in MySQL's canonical form: evaluated for each row, once its other values are there.
    Expr(String),
    /// None, of a column that may be NULL: ALTER … DROP DEFAULT.
    Dropped,
}

/// A key that no row has an entry in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptKeyDef {
    /// Unique among all of the table's keys.
    pub name: String,
    /// Positions in `TableDef::columns`.
    pub columns: Vec<usize>,
    pub kind: KeptKeyKind,
    pub comment: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptKeyKind {
    Fulltext {
        /// After WITH PARSER.
        parser: Option<String>,
    },
    Spatial,
}

impl KeptKeyKind {
    /// The words before KEY, and the type of the index.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Fulltext { .. } => "FULLTEXT",
            Self::Spatial => "SPATIAL",
        }
    }

    pub const fn is_spatial(&self) -> bool {
        matches!(self, Self::Spatial)
    }
}

/// A CHECK constraint: a condition that no row makes false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckDef {
    /// Unique within the table's database.
    pub name: String,
    /// SQL text in MySQL's canonical form.
    pub condition: String,
    pub enforced: bool,
}

#[derive(Clone, Debug)]
pub struct IndexDef {
    pub id: IndexId,
    /// `PRIMARY` for the primary key.
    pub name: String,
    pub kind: IndexKind,
    pub parts: Vec<IndexPart>,
    /// Made for a foreign key, not asked for: it goes when another index serves the key as well.
    pub generated: bool,
    /// Kept up to date, but no plan uses it.
    pub invisible: bool,
    pub comment: String,
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

impl IndexPart {
    /// What its column's values take in a key at most, as InnoDB counts it.
    pub fn max_bytes(&self, ty: &SqlType) -> u64 {
        let per_char = ty.collation().map_or(1, |collation| u64::from(collation.info().charset.max_len()));
        match (self.prefix_len, ty.declared_len()) {
            (Some(len), _) => u64::from(len) * per_char,
            (None, Some(len)) => len * per_char,
            (None, None) => 8,
        }
    }
}

/// A foreign key, kept by the child. It names its parent, which need not be there (yet).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKeyDef {
    /// Unique within the child's database.
    pub name: String,
    /// Positions in the child's columns.
    pub columns: Vec<usize>,
    pub parent_database: String,
    pub parent_table: String,
    /// One for each of `columns`.
    pub parent_columns: Vec<String>,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
}

/// What happens to the children when their parent goes, or gets another key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReferentialAction {
    /// The same as `Restrict`: checks are not deferred.
    #[default]
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    /// Kept as it was written; acts as `NoAction`, as in MySQL.
    SetDefault,
}

impl ReferentialAction {
    pub const fn sql(self) -> &'static str {
        match self {
            Self::NoAction => "NO ACTION",
            Self::Restrict => "RESTRICT",
            Self::Cascade => "CASCADE",
            Self::SetNull => "SET NULL",
            Self::SetDefault => "SET DEFAULT",
        }
    }
}

impl ForeignKeyDef {
    /// Whether this table is the parent.
    pub fn references(&self, database: &str, table: &str) -> bool {
        self.parent_database == database && self.parent_table == table
    }

    /// The constraint as SHOW CREATE TABLE has it, with names in quotes of some kind.
    pub fn definition(&self, child: &TableDef, quote: impl Fn(&str) -> String) -> String {
        self.text(child, quote, |action| action != ReferentialAction::NoAction)
    }

    /// The constraint as error messages have it.
    pub fn in_message(&self, child: &TableDef) -> String {
        use ReferentialAction as A;
        self.text(child, |name| format!("`{name}`"), |action| !matches!(action, A::NoAction | A::SetDefault))
    }

    fn text(
        &self,
        child: &TableDef,
        quote: impl Fn(&str) -> String,
        shows: impl Fn(ReferentialAction) -> bool,
    ) -> String {
        let columns: Vec<String> = self.columns.iter().map(|&at| quote(&child.columns[at].name)).collect();
        let parents: Vec<String> = self.parent_columns.iter().map(|name| quote(name)).collect();
        let database = match self.parent_database == child.database {
            true => String::new(),
            false => format!("{}.", quote(&self.parent_database)),
        };
        let mut text = format!(
            "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {database}{} ({})",
            quote(&self.name),
            columns.join(", "),
            quote(&self.parent_table),
            parents.join(", ")
        );
        for (event, action) in [("DELETE", self.on_delete), ("UPDATE", self.on_update)] {
            if shows(action) {
                text.push_str(&format!(" ON {event} {}", action.sql()));
            }
        }
        text
    }
}

/// A name that the column of a table's key has beside its own, unless a column is called so.
pub const ROWID: &str = "_rowid";

impl TableDef {
    /// A column's position, by MySQL's rule that column names are case-insensitive. Hidden columns have no name to go by.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| names::eq(&c.name, name) && !c.is_hidden())
    }

    /// The column that MySQL also knows as `_rowid`: the only one of the primary key, or without that of the first unique key
    /// that has no NULLs, if its values are integers.
    pub fn rowid_column(&self) -> Option<usize> {
        let [part] = &self.shown_primary_key()?.parts[..] else { return None };
        let ty = &self.columns[part.column].ty;
        (ty.is_integer() || matches!(ty, SqlType::Bit { .. })).then_some(part.column)
    }

    /// The primary key, or what MySQL shows as one: the first unique key of whole columns that have no NULLs.
    pub fn shown_primary_key(&self) -> Option<&IndexDef> {
        let is_whole = |part: &IndexPart| part.prefix_len.is_none() && !self.columns[part.column].nullable;
        let stands_for_primary = |index: &&IndexDef| {
            index.kind == IndexKind::Unique && !self.is_functional(index) && index.parts.iter().all(is_whole)
        };
        self.primary_key().or_else(|| self.indexes.iter().find(stands_for_primary))
    }

    /// A column by its name, or as `_rowid`.
    pub fn column_or_rowid(&self, name: &str) -> Option<usize> {
        self.column(name).or_else(|| self.rowid_column().filter(|_| names::eq(name, ROWID)))
    }

    /// All columns but the hidden ones, which come last.
    pub fn own_columns(&self) -> &[ColumnDef] {
        let hidden = self.columns.iter().rev().take_while(|column| column.is_hidden()).count();
        &self.columns[..self.columns.len() - hidden]
    }

    /// Whether there are hidden columns.
    pub fn has_functional_parts(&self) -> bool {
        self.columns.last().is_some_and(ColumnDef::is_hidden)
    }

    /// Whether there are indexes on expressions: functional ones, and those of generated columns.
    pub fn has_indexed_expressions(&self) -> bool {
        let parts = self.indexes.iter().flat_map(|index| &index.parts);
        parts.into_iter().any(|part| self.columns[part.column].generated.is_some())
    }

    /// The expression of a functional key part.
    pub fn expression_of(&self, part: &IndexPart) -> Option<&str> {
        let column = &self.columns[part.column];
        column.generated.as_ref().filter(|_| column.is_hidden()).map(|from| from.expr.as_str())
    }

    /// Whether an index has functional key parts.
    pub fn is_functional(&self, index: &IndexDef) -> bool {
        index.parts.iter().any(|part| self.columns[part.column].is_hidden())
    }

    pub fn primary_key(&self) -> Option<&IndexDef> {
        self.indexes.first().filter(|i| i.kind == IndexKind::Primary)
    }

    /// Leaves out foreign keys of columns that the table has not: they come from damaged bytes.
    pub fn forget_damaged_keys(&mut self) {
        let width = self.columns.len();
        self.foreign_keys.retain(|key| key.columns.iter().all(|column| *column < width));
    }

    /// The index, of those that there are, whose first columns are these, in this order, each of them whole.
    pub fn index_on(&self, columns: &[usize]) -> Option<usize> {
        self.indexes.iter().position(|index| index.begins_with(columns))
    }

    /// The unique index on just these columns, in this order, each of them whole.
    pub fn unique_index_on(&self, columns: &[usize]) -> Option<usize> {
        let is_on = |index: &IndexDef| {
            index.kind.is_unique() && index.parts.len() == columns.len() && index.begins_with(columns)
        };
        self.indexes.iter().position(is_on)
    }

    /// Whether rows take more than values of the columns' types: expressions are evaluated when they are written.
    pub fn has_rules(&self) -> bool {
        self.checks.iter().any(|check| check.enforced)
            || self.columns.iter().any(ColumnDef::is_computed)
            || self.is_partitioned_by_bounds()
    }

    /// Whether there may be values that no partition takes: RANGE and LIST have them.
    pub fn is_partitioned_by_bounds(&self) -> bool {
        self.partitioning.as_ref().is_some_and(|by| by.starts_with("RANGE") || by.starts_with("LIST"))
    }

    /// The texts of all its expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &str> {
        let columns = self.columns.iter().flat_map(ColumnDef::expressions).flatten();
        columns.chain(self.checks.iter().map(|check| check.condition.as_str()))
    }

    pub fn auto_increment_column(&self) -> Option<usize> {
        self.columns.iter().position(|c| c.auto_increment)
    }
}

impl IndexDef {
    /// Whether its first columns are these, in this order, each of them whole.
    pub fn begins_with(&self, columns: &[usize]) -> bool {
        let is_whole =
            |(part, column): (&IndexPart, &usize)| part.column == *column && part.prefix_len.is_none();
        self.parts.len() >= columns.len() && self.parts.iter().zip(columns).all(is_whole)
    }

    /// Whether InnoDB finds the rows of a foreign key on these columns in it: it takes no descending ones.
    pub fn serves_foreign_key(&self, columns: &[usize]) -> bool {
        self.begins_with(columns) && !self.parts[..columns.len()].iter().any(|part| part.descending)
    }
}

impl IndexKind {
    pub const fn is_unique(self) -> bool {
        matches!(self, Self::Primary | Self::Unique)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns_of(table: &TableDef, index: &IndexDef) -> Vec<usize> {
        index.key_parts(table).iter().map(|part| part.column).collect()
    }

    #[test]
    fn secondary_keys_end_with_the_primary_key() {
        let text = |len| SqlType::VarChar { len, collation: Collation::DEFAULT };
        let types = [SqlType::BIGINT, SqlType::INT, SqlType::INT, text(36), text(200), text(760)];
        let columns = types.iter().enumerate().map(|(n, ty)| ColumnDef::new(format!("c{n}"), *ty)).collect();
        let with = |primary: &[usize]| TableDef {
            indexes: vec![IndexDef::primary(primary)],
            ..TableDef::new("d", "t", Vec::clone(&columns), vec![])
        };
        let index = IndexDef::secondary("k", &[1]);
        assert_eq!(columns_of(&with(&[0]), &index), [1, 0]);
        assert_eq!(columns_of(&with(&[2, 1, 0]), &index), [1, 2, 0], "each column once");
        assert_eq!(columns_of(&with(&[1]), &index), [1]);
        assert_eq!(columns_of(&with(&[3]), &index), [1, 3], "a UUID");
        assert_eq!(columns_of(&with(&[4]), &index), [1], "too long to be carried");
        assert_eq!(columns_of(&with(&[3]), &IndexDef::secondary("k", &[5])), [5], "too long together");
        assert_eq!(columns_of(&with(&[0]), &IndexDef::new("u", IndexKind::Unique, &[1])), [1]);
        let mut prefix = IndexDef::secondary("k", &[3]);
        prefix.parts[0].prefix_len = Some(4);
        assert_eq!(columns_of(&with(&[3]), &prefix), [3, 3], "the whole column behind its beginning");
        let none = TableDef::new("d", "t", columns, vec![]);
        assert_eq!(columns_of(&none, &index), [1]);
    }
}
