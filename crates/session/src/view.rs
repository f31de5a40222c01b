//! What the binder is shown of the catalog and of the session.

use std::sync::Arc;

use avocet_engine::Catalog;
use avocet_fusion::statistics_of;
use avocet_sql::bind::{CatalogView, TableStatistics};
use avocet_sql::parse::ast::TypeSpec;
use avocet_sql::parse::ast::VariableScope;
use avocet_types::error::SqlError;
use avocet_types::expr::{Expr, ExprKind, SqlMode, Typer};
use avocet_types::schema::TableDef;
use avocet_types::{Collation, Datum, SqlType, Value};

use super::state::Session;
use super::{info_schema, variables};

/// One statement's view.
pub(super) struct View<'s> {
    pub session: &'s Session,
    pub catalog: Arc<Catalog>,
    /// A view is made of it: whether its groups give one value each is asked when it is read.
    pub defines_view: bool,
}

impl Session {
    pub(super) fn view(&self) -> View<'_> {
        View { session: self, catalog: self.catalog(), defines_view: false }
    }
}

impl CatalogView for View<'_> {
    fn current_database(&self) -> Option<&str> {
        self.session.database.as_deref()
    }

    fn has_database(&self, name: &str) -> bool {
        self.catalog.database(name).is_some() || info_schema::is_virtual(name)
    }

    fn table(&self, database: &str, name: &str) -> Option<Arc<TableDef>> {
        if info_schema::is_virtual(database) {
            return info_schema::table(database, name);
        }
        self.catalog.table(database, name).map(|table| table.def.clone())
    }

    fn stored_table(&self, database: &str, name: &str) -> Option<Arc<TableDef>> {
        if self.session.temporary.is_empty() || info_schema::is_virtual(database) {
            return self.table(database, name);
        }
        self.session.stored_catalog().table(database, name).map(|table| table.def.clone())
    }

    fn stored_view(&self, database: &str, name: &str) -> Option<Arc<TableDef>> {
        self.session.stored_catalog().view(database, name).map(|view| view.def.clone())
    }

    fn view(&self, database: &str, name: &str) -> Option<Arc<TableDef>> {
        self.catalog.view(database, name).map(|view| view.def.clone())
    }

    fn statistics(&self, table: &TableDef) -> Option<Arc<TableStatistics>> {
        let handle = self.catalog.table_by_id(table.id)?;
        Some(Arc::new(statistics_of(handle)))
    }

    fn typer(&self) -> Typer {
        let mut typer = self.session.settings.typer();
        if self.defines_view {
            typer.sql_mode = typer.sql_mode.without(SqlMode::ONLY_FULL_GROUP_BY);
        }
        typer
    }

    fn is_on_behalf(&self) -> bool {
        self.session.is_on_behalf()
    }

    fn system_variable(&self, scope: VariableScope, name: &str) -> Result<Expr, SqlError> {
        let connection = self.session.settings.connection_collation;
        let position = variables::find(&name.to_lowercase())?;
        let variable = &variables::VARIABLES[position];
        let stored = self.session.variables.read(scope, position)?;
        let value = match variable.name {
            "last_insert_id" | "identity" => Datum::UInt(self.session.last_insert_id),
            "warning_count" => Datum::Int(self.session.counts.warnings as i64),
            "error_count" => Datum::Int(self.session.counts.errors as i64),
            "timestamp" => Datum::Double(self.session.now_us() as f64 / 1e6),
            _ => stored,
        };
        Ok(variable.literal(&value, connection))
    }

    fn user_variable(&self, name: &str) -> Expr {
        match self.session.user_variables.get(name) {
            // Its collation counts as a column's does; a literal's would give way to that.
            Some((value, ty)) if !value.is_null() && (ty.is_string() || ty.is_bytes()) => {
                Expr::new(ExprKind::Cast(Box::new(Expr::literal(value, ty))), ty, true)
            }
            Some((value, ty)) => Expr::literal(value, ty),
            None => Expr::null(),
        }
    }

    fn value_of_variable(&self, name: &str) -> Option<(Value, SqlType)> {
        self.session.user_variables.get(name)
    }

    fn column_type(&self, spec: &TypeSpec, column: &str) -> Result<SqlType, SqlError> {
        let settings = &self.session.settings;
        crate::ddl::type_of(spec, column, settings.connection_collation, settings.utf8mb4_collation)
    }

    fn collation(&self, name: &str) -> Option<Collation> {
        Collation::by_name(name)
    }
}
