//! What binding asks of its surroundings: definitions, statistics, session settings.

use std::sync::Arc;

use avocet_types::error::SqlError;
use avocet_types::expr::{Expr, Typer};
use avocet_types::json::shred::Kind;
use avocet_types::schema::TableDef;
use avocet_types::{Collation, SqlType, Value};

use crate::parse::ast::TypeSpec;
use crate::parse::ast::VariableScope;

/// A consistent view of the catalog and of the session's settings, for the binding of one statement.
pub trait CatalogView {
    fn current_database(&self) -> Option<&str>;

    fn has_database(&self, name: &str) -> bool;

    fn table(&self, database: &str, name: &str) -> Option<Arc<TableDef>>;

    /// A view, whose name no table has.
    fn view(&self, _database: &str, _name: &str) -> Option<Arc<TableDef>> {
        None
    }

    /// As [`table`](Self::table), for the text of a view: a session's temporary tables are not meant there.
    fn stored_table(&self, database: &str, name: &str) -> Option<Arc<TableDef>> {
        self.table(database, name)
    }

    /// As [`view`](Self::view), for the text of a view.
    fn stored_view(&self, database: &str, name: &str) -> Option<Arc<TableDef>> {
        self.view(database, name)
    }

    /// What is known of a table's contents, for the order of joins and the width of sums.
    fn statistics(&self, table: &TableDef) -> Option<Arc<TableStatistics>>;

    /// Type rules as the session's settings have them.
    fn typer(&self) -> Typer;

    /// Whether queries are answered in the place of another server's session, which this one is like but for who it is and what it
    /// has done: then no view may ask for that.
    fn is_on_behalf(&self) -> bool {
        false
    }

    /// `@@name` as a literal; error 1193 if there is none.
    fn system_variable(&self, scope: VariableScope, name: &str) -> Result<Expr, SqlError>;

    /// `@name` as a literal; NULL if it was never set. The name is in lower case.
    fn user_variable(&self, name: &str) -> Expr;

    /// The value that a user variable has; `None` if it was never set.
    fn value_of_variable(&self, _name: &str) -> Option<(Value, SqlType)> {
        None
    }

    /// The type that a column's specification means.
    fn column_type(&self, spec: &TypeSpec, _column: &str) -> Result<SqlType, SqlError> {
        Err(SqlError::unsupported(format_args!("type {}", spec.name)))
    }

    /// A collation by its name, in any case.
    fn collation(&self, name: &str) -> Option<Collation>;
}

#[derive(Clone, Debug, Default)]
pub struct TableStatistics {
    /// An estimate.
    pub rows: u64,
    /// No scan can see more rows.
    pub most_rows: u64,
    /// By position in the table; may be empty.
    pub columns: Vec<ColumnStatistics>,
    /// Paths into documents of which every row that a scan can see has a value of one kind or none.
    pub paths: Vec<PathStatistics>,
}

#[derive(Clone, Debug)]
pub struct PathStatistics {
    /// The position of the documents in the table.
    pub column: usize,
    pub names: Box<[Box<str>]>,
    pub kind: Kind,
    /// The greatest absolute value of integers.
    pub greatest: Option<f64>,
}

#[derive(Clone, Debug, Default)]
pub struct ColumnStatistics {
    /// Bounds that hold for every row that a scan can see, if known.
    pub min: Option<Value>,
    pub max: Option<Value>,
    pub nulls: Option<u64>,
    /// An estimate.
    pub distinct: Option<u64>,
}
