//! `information_schema.VIEWS` and what views are of other tables.

use avocet_sql::bind::{names_in, parse_view};
use avocet_types::schema::TableDef;
use avocet_types::{Datum, SqlType, Value};

use super::tables::{Entry, NAME_TYPE};
use crate::output::{LONG_TEXT, Rowset, text, varchar};
use crate::state::Session;

pub(super) const TABLES: &[Entry] =
    &[(views, fill_views), (view_table_usage, fill_view_table_usage), (view_routine_usage, |_, _| ())];

/// As TABLE_TYPE says it.
pub fn type_of(table: &TableDef) -> &'static str {
    if table.is_view() { "VIEW" } else { "BASE TABLE" }
}

/// From ENGINE to TABLE_COMMENT: a view has a time and, in the place of a comment, whether it is valid.
pub(super) fn status_of(session: &Session, view: &TableDef) -> [Value; 17] {
    let mut status = [const { Datum::Null }; 17];
    let created = view.view.as_ref().map(|view| view.created_us);
    status[10] = super::tables::created(created);
    status[16] = match session.with_columns_of_now(view) {
        Ok(_) => text("VIEW"),
        Err(error) => text(error.message),
    };
    status
}

fn views() -> Rowset {
    Rowset::new(
        "VIEWS",
        &[
            ("TABLE_CATALOG", NAME_TYPE),
            ("TABLE_SCHEMA", NAME_TYPE),
            ("TABLE_NAME", NAME_TYPE),
            ("VIEW_DEFINITION", LONG_TEXT),
            ("CHECK_OPTION", varchar(8)),
            ("IS_UPDATABLE", varchar(3)),
            ("DEFINER", varchar(288)),
            ("SECURITY_TYPE", varchar(7)),
            ("CHARACTER_SET_CLIENT", NAME_TYPE),
            ("COLLATION_CONNECTION", NAME_TYPE),
        ],
    )
}

fn fill_views(session: &Session, rows: &mut Rowset) {
    let catalog = session.stored_catalog();
    for handle in session.seen_views(&catalog) {
        let Some(view) = handle.def.view.as_deref() else { continue };
        let select = if session.may_show_view(&handle.def) { view.select.as_str() } else { "" };
        rows.push(vec![
            text("def"),
            text(&handle.def.database),
            text(&handle.def.name),
            text(select),
            text(view.check.sql()),
            text(if view.is_updatable { "YES" } else { "NO" }),
            text(format!("{}@{}", view.definer.0, view.definer.1)),
            text(view.security.sql()),
            text(&view.client_charset),
            text(view.connection_collation.name()),
        ]);
    }
}

fn usage(name: &'static str, of: &[&str]) -> Rowset {
    let mut columns = vec![("VIEW_CATALOG", NAME_TYPE), ("VIEW_SCHEMA", NAME_TYPE), ("VIEW_NAME", NAME_TYPE)];
    if name == "VIEW_ROUTINE_USAGE" {
        columns = vec![("TABLE_CATALOG", NAME_TYPE), ("TABLE_SCHEMA", NAME_TYPE), ("TABLE_NAME", NAME_TYPE)];
    }
    let more: Vec<(&str, SqlType)> = of.iter().map(|column| (*column, NAME_TYPE)).collect();
    columns.extend(more);
    Rowset::new(name, &columns)
}

fn view_routine_usage() -> Rowset {
    usage("VIEW_ROUTINE_USAGE", &["SPECIFIC_CATALOG", "SPECIFIC_SCHEMA", "SPECIFIC_NAME"])
}

fn view_table_usage() -> Rowset {
    usage("VIEW_TABLE_USAGE", &["TABLE_CATALOG", "TABLE_SCHEMA", "TABLE_NAME"])
}

fn fill_view_table_usage(session: &Session, rows: &mut Rowset) {
    let catalog = session.stored_catalog();
    for handle in session.seen_views(&catalog) {
        let Some(view) = handle.def.view.as_deref() else { continue };
        let Ok(query) = parse_view(&handle.def, view) else { continue };
        for (database, table) in names_in(&query) {
            if session.seen().sees_table(&database, &table) {
                let own = [&handle.def.database, &handle.def.name].map(text);
                let [schema, name] = own;
                rows.push(vec![text("def"), schema, name, text("def"), text(database), text(table)]);
            }
        }
    }
}
