//! What statements say of definitions: tables with their columns, keys and constraints; views.

use avocet_types::stated::{StatedOption, StatedOptions};
use avocet_types::{ReferentialAction, ViewAlgorithm, ViewCheck, ViewSecurity};

use super::{PartitionBy, PartitionChange, UserName};
use crate::parse::ast::{Expr, Ident, ObjectName, Query, TypeSpec};

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub name: ObjectName,
    pub if_not_exists: bool,
    pub temporary: bool,
    pub columns: Vec<ColumnSpec>,
    pub indexes: Vec<IndexSpec>,
    pub foreign_keys: Vec<ForeignKeySpec>,
    /// Those of columns, too.
    pub checks: Vec<CheckSpec>,
    pub options: TableOptions,
    pub partitions: Option<Box<PartitionBy>>,
    /// `CREATE TABLE … AS SELECT`
    pub query: Option<Box<Query>>,
}

/// A view's definition; what is `None` is as the view that is altered has it.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub how: CreateViewHow,
    pub name: ObjectName,
    pub algorithm: Option<ViewAlgorithm>,
    pub definer: Option<UserName>,
    pub security: Option<ViewSecurity>,
    pub columns: Vec<Ident>,
    pub query: Box<Query>,
    pub check: ViewCheck,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateViewHow {
    Create,
    IfNotExists,
    OrReplace,
    Alter,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableOptions {
    pub engine: Option<String>,
    pub charset: Option<String>,
    pub collation: Option<String>,
    pub comment: Option<String>,
    pub auto_increment: Option<u64>,
    /// With their values; `None` is DEFAULT.
    pub stated: Vec<(StatedOption, Option<u64>)>,
}

impl TableOptions {
    /// Those that are stated, on top of others.
    pub fn state(&self, options: &mut StatedOptions) {
        self.stated.iter().for_each(|(option, value)| options.set(*option, *value));
    }

    /// Those that are stated.
    pub fn stated(&self) -> StatedOptions {
        let mut options = StatedOptions::default();
        self.state(&mut options);
        options
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    pub name: Ident,
    pub ty: TypeSpec,
    pub nullable: Option<bool>,
    pub default: Option<DefaultSpec>,
    pub on_update_now: bool,
    pub auto_increment: bool,
    pub primary_key: bool,
    pub unique: bool,
    pub comment: Option<String>,
    pub references: Option<Reference>,
    pub checks: Vec<CheckSpec>,
    pub generated: Option<GeneratedSpec>,
    pub invisible: bool,
    /// Of a spatial column: the only reference system of its values.
    pub srid: Option<u32>,
}

impl ColumnSpec {
    /// An attribute that a generated column cannot have.
    pub fn misused_if_generated(&self) -> Option<&'static str> {
        if self.default.is_some() {
            Some("DEFAULT")
        } else if self.on_update_now {
            Some("ON UPDATE")
        } else if self.auto_increment {
            Some("AUTO_INCREMENT")
        } else {
            None
        }
    }

    /// Takes out what `REFERENCES` beside the column says: a foreign key of the table.
    pub fn foreign_key(&mut self) -> Option<ForeignKeySpec> {
        let references = self.references.take()?;
        let columns = vec![self.name.clone()];
        Some(ForeignKeySpec { name: None, index: None, columns, references, behind: 0 })
    }
}

/// What follows DEFAULT.
#[derive(Clone, Debug, PartialEq)]
pub enum DefaultSpec {
    /// A literal, or the current time.
    Value(Expr),
    /// In parentheses.
    Expr(Expr),
}

/// `GENERATED ALWAYS AS (…) [VIRTUAL | STORED]`
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedSpec {
    pub expr: Expr,
    pub stored: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CheckSpec {
    /// After CONSTRAINT.
    pub name: Option<Ident>,
    /// The column that it stands beside: it may use no other.
    pub column: Option<Ident>,
    pub condition: Expr,
    pub enforced: bool,
}

/// What ALGORITHM and LOCK ask for: `DEFAULT`, or one of MySQL's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlterHow {
    pub algorithm: &'static str,
    pub lock: &'static str,
}

impl Default for AlterHow {
    fn default() -> Self {
        Self { algorithm: "DEFAULT", lock: "DEFAULT" }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexSpecKind {
    Primary,
    Unique,
    Secondary,
    Fulltext,
    Spatial,
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexSpec {
    pub kind: IndexSpecKind,
    pub name: Option<Ident>,
    pub parts: Vec<IndexPartSpec>,
    pub comment: Option<String>,
    pub invisible: bool,
    /// Of a FULLTEXT key: after WITH PARSER.
    pub parser: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum IndexPartSpec {
    Column {
        name: Ident,
        prefix_len: Option<u32>,
        descending: bool,
    },
    /// A functional key part.
    Expr {
        expr: Expr,
        descending: bool,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct ForeignKeySpec {
    /// After CONSTRAINT.
    pub name: Option<Ident>,
    /// After FOREIGN KEY: for the index that is made if there is none.
    pub index: Option<Ident>,
    pub columns: Vec<Ident>,
    pub references: Reference,
    /// In CREATE TABLE: how many keys of the list stand before it.
    pub behind: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    pub table: ObjectName,
    /// None: the parent's primary key.
    pub columns: Vec<Ident>,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AlterAction {
    AddColumn {
        column: ColumnSpec,
        position: ColumnPosition,
    },
    AddIndex(IndexSpec),
    AddForeignKey(ForeignKeySpec),
    AddCheck(CheckSpec),
    DropCheck(Ident),
    SetVisible {
        column: Ident,
        visible: bool,
    },
    SetIndexVisible {
        index: Ident,
        visible: bool,
    },
    /// `ALTER CHECK`, and of a constraint of any kind `ALTER CONSTRAINT`.
    EnforceCheck {
        name: Ident,
        enforced: bool,
        is_check: bool,
    },
    DropColumn(Ident),
    DropIndex(Ident),
    DropPrimaryKey,
    DropForeignKey(Ident),
    DropConstraint(Ident),
    ModifyColumn {
        column: ColumnSpec,
        position: ColumnPosition,
    },
    ChangeColumn {
        old: Ident,
        column: ColumnSpec,
        position: ColumnPosition,
    },
    RenameColumn {
        from: Ident,
        to: Ident,
    },
    RenameIndex {
        from: Ident,
        to: Ident,
    },
    RenameTable(ObjectName),
    SetDefault {
        column: Ident,
        default: Option<DefaultSpec>,
    },
    ConvertCharset {
        charset: String,
        collation: Option<String>,
    },
    Unneeded(Unneeded),
    /// ALGORITHM and LOCK
    How(AlterHow),
    Options(TableOptions),
    Partitions(PartitionChange),
}

/// What there is nothing to do for here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unneeded {
    /// ENABLE KEYS, DISABLE KEYS
    Keys,
    Force,
    OrderBy,
    /// SECONDARY_LOAD, SECONDARY_UNLOAD
    SecondaryEngine,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ColumnPosition {
    Last,
    First,
    After(Ident),
}
