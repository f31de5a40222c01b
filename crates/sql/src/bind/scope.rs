//! Scopes: which names a block can see, and what it collects while its expressions are bound.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::Expr;
use avocet_types::names;
use avocet_types::schema::ROWID;

use crate::bind::dependences::Dependences;
use crate::bind::equalities::{Equality, OuterJoin};
use crate::parse::ast::{Ident, WindowSpec};
use crate::plan::{Aggregate, ColumnId, CteId, Subquery, WindowFunction};

/// The part of a statement that is being bound, as MySQL's errors call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    From,
    Select,
    Where,
    Group,
    Having,
    Order,
    /// The document of JSON_TABLE.
    TableFunction,
}

impl Clause {
    pub fn name(self) -> &'static str {
        match self {
            Self::From => "on clause",
            Self::Select => "field list",
            Self::Where => "where clause",
            Self::Group => "group statement",
            Self::Having => "having clause",
            Self::Order => "order clause",
            Self::TableFunction => "a table function argument",
        }
    }

    pub fn allows_aggregates(self) -> bool {
        matches!(self, Self::Select | Self::Having | Self::Order)
    }

    pub fn allows_windows(self) -> bool {
        matches!(self, Self::Select | Self::Order)
    }
}

/// Which `*` stand for nothing but that there is a row, as those of EXISTS do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stars {
    #[default]
    None,
    /// Those of blocks without tables, which would be errors: of rows that are compared, all columns count.
    OfNothing,
    All,
}

/// A table as a FROM clause names it.
#[derive(Clone, Debug)]
pub struct ScopeTable {
    pub database: Option<Arc<str>>,
    pub name: Arc<str>,
    pub columns: Vec<ScopeColumn>,
    /// A stored table: what a select item says is its name. Columns of views and derived tables have the name that they have
    /// there, in whatever case they are written; so has information_schema, which is made of views.
    pub is_stored: bool,
    /// An outer join may have no row of it.
    pub is_complemented: bool,
    /// Sets of columns that determine the row: the primary key and unique keys without NULLs.
    pub keys: Vec<Vec<ColumnId>>,
    /// Columns that no name reaches: of functional key parts.
    pub hidden: Vec<ColumnId>,
    /// The column that `_rowid` means.
    pub rowid: Option<ColumnId>,
}

impl ScopeTable {
    /// One that is no stored table: of a query, a table function, or the row that is to be inserted.
    pub fn derived(name: Arc<str>, columns: Vec<ScopeColumn>, keys: Vec<Vec<ColumnId>>) -> Self {
        Self {
            database: None,
            name,
            columns,
            is_stored: false,
            is_complemented: false,
            keys,
            hidden: Vec::new(),
            rowid: None,
        }
    }

    /// All columns.
    pub fn ids(&self) -> impl Iterator<Item = ColumnId> + '_ {
        self.columns.iter().map(|column| column.id).chain(self.hidden.iter().copied())
    }
}

#[derive(Clone, Debug)]
pub struct ScopeColumn {
    pub name: Arc<str>,
    pub id: ColumnId,
    /// USING or NATURAL merged it into another table's column: only a qualified name reaches it.
    pub merged: bool,
    /// Only its name reaches it.
    pub invisible: bool,
}

/// A query block while it is being bound.
pub struct Block {
    pub tables: Vec<ScopeTable>,
    /// Conditions for rows of the partitions that FROM selects, until they stand in WHERE or ON.
    pub partitions: Vec<Expr>,
    /// Of the conditions of joins.
    pub equalities: Vec<Equality>,
    pub outer_joins: Vec<OuterJoin>,
    /// Of the derived tables' columns.
    pub dependences: Dependences,
    /// The block's FROM is not complete and what is being bound must not see it.
    pub hidden: bool,
    pub clause: Clause,
    /// Names of select items, as these are bound.
    pub aliases: Vec<(Arc<str>, Expr)>,
    /// All names that the select list gives.
    pub given_names: Vec<Arc<str>>,
    pub windows: Vec<(Ident, WindowSpec)>,
    pub aggregates: Vec<Aggregate>,
    pub window_functions: Vec<BlockWindow>,
    /// Places among the aggregates, by a hash of their arguments.
    pub alike_aggregates: HashMap<u64, Vec<usize>>,
    /// How many windows have no name.
    pub unnamed_windows: usize,
    pub subqueries: Vec<BlockSubquery>,
    /// It has nothing but rows of subqueries that are compared: names and aggregates in it are those of the block around it.
    pub has_rows_only: bool,
    /// Inside of an aggregate's arguments.
    pub in_aggregate: bool,
    /// It has an aggregate that is not in the keys of a window.
    pub is_aggregated: bool,
    /// Inside of PARTITION BY or ORDER BY of a window.
    pub in_window_keys: bool,
    /// An argument of the aggregate that is being bound names a select item of an outer block.
    pub names_outer_item: bool,
    /// Inside of a window function's arguments or specification.
    pub in_window: bool,
    /// Expressions of GROUP BY, once bound, for HAVING's preference.
    pub group_names: Vec<(Arc<str>, Expr)>,
    /// It has a GROUP BY, once that is bound.
    pub has_keys: bool,
    pub stars: Stars,
    /// The recursive CTE whose member it is, once its FROM names that.
    pub recursive: Option<Arc<str>>,
}

/// A subquery, where it stands, and whether the block evaluates it before it groups.
pub struct BlockSubquery {
    pub subquery: Subquery,
    pub clause: Clause,
    pub before_grouping: bool,
}

/// A window function, and the windows that its partitions and its order were specified for.
pub struct BlockWindow {
    pub window: WindowFunction,
    pub partition_of: Arc<str>,
    pub order_of: Arc<str>,
}

impl Block {
    pub fn new() -> Self {
        Self {
            tables: Vec::new(),
            partitions: Vec::new(),
            equalities: Vec::new(),
            outer_joins: Vec::new(),
            dependences: Dependences::default(),
            hidden: false,
            clause: Clause::From,
            aliases: Vec::new(),
            given_names: Vec::new(),
            windows: Vec::new(),
            aggregates: Vec::new(),
            window_functions: Vec::new(),
            unnamed_windows: 0,
            alike_aggregates: HashMap::new(),
            subqueries: Vec::new(),
            has_rows_only: false,
            in_aggregate: false,
            is_aggregated: false,
            in_window_keys: false,
            names_outer_item: false,
            in_window: false,
            group_names: Vec::new(),
            has_keys: false,
            stars: Stars::default(),
            recursive: None,
        }
    }

    /// The column of this block that a name means; an error if it means several.
    pub fn find(&self, name: &ColumnName<'_>) -> Result<Option<ColumnId>, SqlError> {
        let mut found = None;
        for table in self.tables.iter().filter(|t| name.fits(t)) {
            for column in &table.columns {
                if !names::eq(&column.name, name.column) || (column.merged && name.table.is_none()) {
                    continue;
                }
                if found.is_some_and(|id| id != column.id) {
                    return Err(ErrorCode::NON_UNIQ_ERROR.with(&[&name, &self.clause.name()]));
                }
                found = Some(column.id);
            }
        }
        // Without a table's name, where there is one table alone; HAVING is of what is selected.
        let is_seen = name.table.is_some() || self.tables.len() == 1;
        if found.is_none() && is_seen && self.clause != Clause::Having && names::eq(name.column, ROWID) {
            return Ok(self.tables.iter().filter(|t| name.fits(t)).find_map(|table| table.rowid));
        }
        Ok(found)
    }

    pub fn owns(&self, id: ColumnId) -> bool {
        self.tables.iter().any(|t| t.columns.iter().any(|c| c.id == id))
    }
}

/// A column's name as it was written.
#[derive(Clone, Copy)]
pub struct ColumnName<'a> {
    pub database: Option<&'a str>,
    pub table: Option<&'a str>,
    pub column: &'a str,
}

impl ColumnName<'_> {
    pub fn fits(&self, table: &ScopeTable) -> bool {
        let is_in = |name: &str| {
            // The one schema whose name has no case.
            let schema = "information_schema";
            let is_schema = name.eq_ignore_ascii_case(schema);
            table.database.as_ref().is_some_and(|own| **own == *name || is_schema && **own == *schema)
        };
        self.table.is_none_or(|name| *table.name == *name) && self.database.is_none_or(is_in)
    }
}

impl std::fmt::Display for ColumnName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for part in [self.database, self.table].into_iter().flatten() {
            write!(f, "{part}.")?;
        }
        f.write_str(self.column)
    }
}

/// The line between a subquery and the blocks around it: columns that cross it are the subquery's outer columns.
pub struct Boundary {
    /// How many blocks are outside.
    pub depth: usize,
    pub outer: BTreeSet<ColumnId>,
}

/// A common table expression that is in scope.
#[derive(Clone)]
pub struct ScopeCte {
    pub id: CteId,
    pub name: Arc<str>,
    pub columns: Vec<ColumnId>,
    /// How high and how large it is, with what it reads.
    pub levels: usize,
    pub queries: usize,
    /// While its members are bound: the number of a member's block.
    pub recursion: Option<usize>,
}
