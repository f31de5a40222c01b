//! What is shown of views.

use std::sync::Arc;

use avocet_engine::Privileges;
use avocet_sql::bind::{CatalogView, bind_query, invalid_view, parse_view};
use avocet_sql::parse::ast::{Ident, ObjectName, Query, QueryBody, Span};
use avocet_sql::print::{self, Names, Style};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::TableDef;
use avocet_types::{ViewCheck, ViewDef};

use super::create::Quotes;
use crate::output::{LONG_TEXT, Rowset, text, varchar};
use crate::privileges::Need;
use crate::state::{Level, Session};
use crate::view::View;

impl Session {
    /// A table, or a view with the columns that it has now.
    ///
    /// # Errors
    /// 1146; 1356 for a view that is not valid any more.
    pub(crate) fn shown_relation(&self, database: &str, name: &str) -> Result<Arc<TableDef>, SqlError> {
        if let Some(table) = self.view().table(database, name) {
            return Ok(table);
        }
        let view = self.view().view(database, name);
        let view = view.ok_or_else(|| ErrorCode::NO_SUCH_TABLE.with(&[&database, &name]))?;
        self.with_columns_of_now(&view).map(Arc::new)
    }

    /// A view whose columns are of the types that its tables' columns have now.
    pub(crate) fn with_columns_of_now(&self, view: &TableDef) -> Result<TableDef, SqlError> {
        let ident = |name: &str| Ident { name: name.to_owned(), span: Span::default() };
        let name = ObjectName { database: Some(ident(&view.database)), name: ident(&view.name) };
        let body = QueryBody::Table(name);
        let query = Query {
            with: None,
            body,
            order_by: Vec::new(),
            limit: None,
            locks: Vec::new(),
            span: Span::default(),
        };
        let bound = bind_query(&query, b"", &View { defines_view: true, ..self.view() }, &[])?;
        Ok(TableDef { columns: crate::ddl::columns_of_view(&bound), ..view.clone() })
    }

    pub(super) fn show_create_view(&mut self, name: &ObjectName) -> Result<Rowset, SqlError> {
        let database = self.shown_database(name.database.as_ref())?;
        let name = &name.name.name;
        // A temporary table of its name does not hide it here.
        let catalog = self.stored_catalog();
        let Some(handle) = catalog.view(&database, name) else {
            return Err(match self.view().table(&database, name) {
                Some(_) => ErrorCode::WRONG_OBJECT.with(&[&database, name, &"VIEW"]),
                None => ErrorCode::NO_SUCH_TABLE.with(&[&database, name]),
            });
        };
        let all = Privileges::SELECT | Privileges::SHOW_VIEW;
        self.check_needs(&[Need::Table { database: database.clone(), table: name.clone(), all }])?;
        let mut rows = Rowset::new(
            "",
            &[
                ("View", varchar(64)),
                ("Create View", LONG_TEXT),
                ("character_set_client", varchar(64)),
                ("collation_connection", varchar(64)),
            ],
        );
        if let Some(view) = handle.def.view.as_deref() {
            rows.push(vec![
                text(&handle.def.name),
                text(self.shown_with_quotes(self.create_view_text(&handle.def, view)?)),
                text(&view.client_charset),
                text(view.connection_collation.name()),
            ]);
            let (user, host) = &view.definer;
            if catalog.user(user, host).is_none() {
                self.note(&ErrorCode::NO_SUCH_USER.with(&[user, host]));
            }
        }
        if let Err(error) = self.with_columns_of_now(&handle.def) {
            self.warn(Level::Warning, error.errno, error.message);
        }
        Ok(rows)
    }

    /// The statement that would make the view. Names of the default database are left out.
    pub(crate) fn create_view_text(&self, def: &TableDef, view: &ViewDef) -> Result<String, SqlError> {
        let quotes = Quotes::of(self.settings.sql_mode);
        let quote = |name: &str| quotes.quote(name);
        let database = match self.database.as_deref() == Some(&def.database) {
            true => String::new(),
            false => format!("{}.", quote(&def.database)),
        };
        let names: Vec<String> = view.names.iter().map(|name| quote(name)).collect();
        let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(",")) };
        let check = match view.check {
            ViewCheck::None => String::new(),
            check => format!(" WITH {} CHECK OPTION", check.sql()),
        };
        let charset = view.connection_collation.info().charset;
        let names_style = Names::Qualified { left_out: self.database.as_deref() };
        let style = Style { names: names_style, strings: None, charset, quote: quotes.character() };
        let query = parse_view(def, view).map_err(|_| invalid_view(def))?;
        Ok(format!(
            "CREATE ALGORITHM={} DEFINER={}@{} SQL SECURITY {} VIEW {database}{}{names} AS {}{check}",
            view.algorithm.sql(),
            quote(&view.definer.0),
            quote(&view.definer.1),
            view.security.sql(),
            quote(&def.name),
            print::query(&query, view.select.as_bytes(), style),
        ))
    }
}
