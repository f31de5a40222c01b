//! SHOW and DESCRIBE.

mod create;
mod log_events;
mod privileges;
mod replica;
mod server;
mod views;

use std::sync::Arc;

use avocet_channel::ResultSink;
use avocet_engine::TableHandle;
use avocet_sql::bind::CatalogView;
use avocet_sql::parse::ast::{Ident, ObjectName};
use avocet_sql::parse::statement::{Show, ShowFilter, ShowKind};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::TimeZone;
use avocet_types::schema::{ColumnDef, IndexDef, IndexKind, TableDef};
use avocet_types::{Datum, SqlType};

use super::info_schema::{self, status_of};
use super::output::{COUNT, FILE_NAME, LONG_TEXT, Rowset, optional, text, varchar};
use super::privileges::Access;
use super::run::{Outcome, Text};
use super::state::Session;

pub(crate) use create::{Quotes, checks_of, create_table, default_of, escaped};
pub(super) use server::{charset_rows, collation_rows};

/// CARDINALITY of an index's columns.
pub(crate) fn cardinality(table: &TableHandle, index: &IndexDef) -> Box<[u64]> {
    let known = table.indexes().iter().find(|known| known.def.id == index.id);
    known.map(|known| table.cardinality(known)).unwrap_or_default()
}

impl Session {
    /// HELP: there are no topics, as in a MySQL whose help tables were not filled.
    pub(super) fn help(&mut self, sink: &mut dyn ResultSink) -> Result<Outcome, SqlError> {
        self.send(&Rowset::new("", &[("name", varchar(64)), ("is_it_category", varchar(1))]), sink)
    }

    pub(super) fn show(
        &mut self,
        show: &Show,
        statement: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        let mut rows = self.show_rows(&show.kind, statement)?;
        let column = match show.kind {
            ShowKind::Indexes { .. } => 2,
            _ => 0,
        };
        self.filter(&mut rows, column, &show.filter, statement)?;
        if let (ShowKind::Tables { .. } | ShowKind::Databases, ShowFilter::Like(pattern)) =
            (&show.kind, &show.filter)
        {
            let name = &mut rows.columns[0].0;
            *name = format!("{name} ({pattern})");
        }
        self.send(&rows, sink)
    }

    fn show_rows(&mut self, kind: &ShowKind, statement: &Text<'_>) -> Result<Rowset, SqlError> {
        match kind {
            ShowKind::Databases => Ok(self.show_databases()),
            ShowKind::Tables { database, full } => self.show_tables(database.as_ref(), *full),
            ShowKind::TableStatus { database } => self.show_table_status(database.as_ref()),
            ShowKind::Columns { table, full } => {
                Ok(columns(&*self.shown_table(table)?, *full, self.seen(), self.settings.time_zone))
            }
            ShowKind::Indexes { table } => Ok(self.show_indexes(&*self.shown_table(table)?)),
            ShowKind::CreateTable(table) => self.show_create_table(table),
            ShowKind::CreateView(view) => self.show_create_view(view),
            ShowKind::CreateDatabase { name, if_not_exists } => {
                let catalog = self.catalog();
                let (found, collation) = match catalog.database(&name.name) {
                    Some(found) => (&*found.name, found.collation),
                    None => info_schema::database(&name.name)
                        .ok_or_else(|| ErrorCode::BAD_DB_ERROR.with(&[&name.name]))?,
                };
                let mut rows =
                    Rowset::new("", &[("Database", varchar(64)), ("Create Database", varchar(1024))]);
                let quotes = create::Quotes::of(self.settings.sql_mode);
                let shown = create::create_database(found, collation, *if_not_exists, quotes);
                rows.push(vec![text(found), text(self.shown_with_quotes(shown))]);
                Ok(rows)
            }
            _ => self.show_server(kind, statement),
        }
    }

    /// What SHOW CREATE tells, in quotes as `sql_quote_show_create` asks for them.
    fn shown_with_quotes(&self, shown: String) -> String {
        match self.settings.quote_show_create {
            true => shown,
            false => create::unquoted(&shown),
        }
    }

    fn show_databases(&self) -> Rowset {
        let mut rows = Rowset::new("SCHEMATA", &[("Database", FILE_NAME)]);
        let catalog = self.catalog();
        let databases = catalog.databases().filter(|database| self.seen().sees_database(&database.name));
        let mut names: Vec<&str> = databases.map(|database| database.name.as_str()).collect();
        let own = info_schema::SCHEMAS.iter().filter(|name| self.seen().sees_database(name));
        names.extend(own);
        names.sort_unstable();
        names.into_iter().for_each(|name| rows.push(vec![text(name)]));
        rows
    }

    /// The database that a SHOW names, or the current one; it exists.
    fn shown_database(&self, database: Option<&Ident>) -> Result<String, SqlError> {
        let name = match database {
            Some(database) => database.name.clone(),
            None => self.current_database()?.to_owned(),
        };
        if self.view().has_database(&name) { Ok(name) } else { Err(ErrorCode::BAD_DB_ERROR.with(&[&name])) }
    }

    pub(super) fn shown_table(&self, table: &ObjectName) -> Result<Arc<TableDef>, SqlError> {
        let database = self.shown_database(table.database.as_ref())?;
        self.shown_relation(&database, &table.name.name)
    }

    fn show_tables(&self, database: Option<&Ident>, full: bool) -> Result<Rowset, SqlError> {
        let database = self.shown_database(database)?;
        let mut rows = Rowset::new("TABLES", &[(&format!("Tables_in_{database}"), FILE_NAME)]);
        if full {
            rows.columns.push(("Table_type".into(), varchar(11)));
        }
        let mut push = |name: &str, kind: &str| {
            let mut row = vec![text(name)];
            if full {
                row.push(text(kind));
            }
            rows.push(row);
        };
        if info_schema::is_schema(&database) {
            info_schema::names(&database).for_each(|name| push(name, "SYSTEM VIEW"));
        } else if info_schema::is_virtual(&database) {
            let sees = |name: &&str| self.seen().sees_table(&database, name);
            info_schema::names(&database).filter(sees).for_each(|name| push(name, "BASE TABLE"));
        } else {
            self.stored_catalog()
                .relations_in(&database)
                .filter(|table| !table.is_unfinished() && self.seen().sees_table(&database, &table.def.name))
                .for_each(|table| push(&table.def.name, info_schema::type_of(&table.def)));
        }
        Ok(rows)
    }

    fn show_table_status(&self, database: Option<&Ident>) -> Result<Rowset, SqlError> {
        let database = self.shown_database(database)?;
        let mut rows = Rowset::new(
            "TABLES",
            &[
                ("Name", FILE_NAME),
                ("Engine", varchar(64)),
                ("Version", COUNT),
                ("Row_format", varchar(10)),
                ("Rows", COUNT),
                ("Avg_row_length", COUNT),
                ("Data_length", COUNT),
                ("Max_data_length", COUNT),
                ("Index_length", COUNT),
                ("Data_free", COUNT),
                ("Auto_increment", COUNT),
                ("Create_time", SqlType::Timestamp { fsp: 0 }),
                ("Update_time", SqlType::DateTime { fsp: 0 }),
                ("Check_time", SqlType::DateTime { fsp: 0 }),
                ("Collation", varchar(64)),
                ("Checksum", COUNT),
                ("Create_options", varchar(256)),
                ("Comment", varchar(2048)),
            ],
        );
        let own = info_schema::tables_of(&database);
        for def in own.filter(|def| self.seen().sees_table(&database, &def.name)) {
            let mut row = vec![text(&def.name)];
            row.resize(rows.columns.len(), Datum::Null);
            rows.push(row);
        }
        let catalog = self.stored_catalog();
        for table in catalog.relations_in(&database) {
            if table.is_unfinished() || !self.seen().sees_table(&database, &table.def.name) {
                continue;
            }
            let mut row = vec![text(&table.def.name)];
            row.extend(status_of(self, table));
            rows.push(row);
        }
        Ok(rows)
    }

    fn show_indexes(&self, table: &TableDef) -> Rowset {
        let mut rows = Rowset::new(
            "SHOW_STATISTICS",
            &[
                ("Table", varchar(64)),
                ("Non_unique", SqlType::INT),
                ("Key_name", varchar(64)),
                ("Seq_in_index", info_schema::UINT),
                ("Column_name", varchar(64)),
                ("Collation", varchar(1)),
                ("Cardinality", SqlType::BIGINT),
                ("Sub_part", SqlType::BIGINT),
                ("Packed", varchar(1)),
                ("Null", varchar(3)),
                ("Index_type", varchar(11)),
                ("Comment", varchar(8)),
                ("Index_comment", varchar(2048)),
                ("Visible", varchar(3)),
                ("Expression", LONG_TEXT),
            ],
        );
        let catalog = self.catalog();
        let handle = catalog.table_by_id(table.id);
        let count = handle.map_or(0, |table| table.row_count());
        for index in create::indexes_of(table) {
            let counts = handle.map(|handle| cardinality(handle, index)).unwrap_or_default();
            for (at, part) in index.parts.iter().enumerate() {
                let column = &table.columns[part.column];
                rows.push(vec![
                    text(&table.name),
                    Datum::Int((!index.kind.is_unique()).into()),
                    text(&index.name),
                    Datum::UInt(at as u64 + 1),
                    optional(Some(&column.name).filter(|_| !column.is_hidden())),
                    text(if part.descending { "D" } else { "A" }),
                    Datum::Int(counts.get(at).map_or(0, |count| *count as i64)),
                    part.prefix_len.map_or(Datum::Null, |len| Datum::Int(len.into())),
                    Datum::Null,
                    text(if column.nullable { "YES" } else { "" }),
                    text("BTREE"),
                    text(""),
                    text(&index.comment),
                    text(if index.invisible { "NO" } else { "YES" }),
                    optional(table.expression_of(part).map(escaped)),
                ]);
            }
        }
        for key in &table.kept_keys {
            for (at, column) in key.columns.iter().enumerate() {
                let column = &table.columns[*column];
                let is_spatial = key.kind.is_spatial();
                rows.push(vec![
                    text(&table.name),
                    Datum::Int(1),
                    text(&key.name),
                    Datum::UInt(at as u64 + 1),
                    text(&column.name),
                    if is_spatial { text("A") } else { Datum::Null },
                    Datum::Int(count as i64),
                    if is_spatial { Datum::Int(SPATIAL_PART as i64) } else { Datum::Null },
                    Datum::Null,
                    text(if column.nullable { "YES" } else { "" }),
                    text(key.kind.word()),
                    text(""),
                    text(&key.comment),
                    text("YES"),
                    Datum::Null,
                ]);
            }
        }
        rows
    }

    fn show_create_table(&mut self, name: &ObjectName) -> Result<Rowset, SqlError> {
        let database = self.shown_database(name.database.as_ref())?;
        let catalog = self.catalog();
        if catalog.view(&database, &name.name.name).is_some() {
            return self.show_create_view(name);
        }
        let table = self.shown_table(name)?;
        let next = catalog.table_by_id(table.id).map_or(0, |table| table.next_auto_increment());
        let shown = create::create_table(
            &table,
            next,
            create::Quotes::of(self.settings.sql_mode),
            self.settings.time_zone,
        );
        let shown = self.shown_with_quotes(shown);
        // As MySQL's: a VARCHAR that is as long as it has to be.
        let length = (shown.chars().count() as u32).max(1024);
        let mut rows = Rowset::new("", &[("Table", varchar(64)), ("Create Table", varchar(length))]);
        rows.push(vec![text(&table.name), text(shown)]);
        Ok(rows)
    }

    /// `DESCRIBE t [column | pattern]`
    pub(super) fn describe(
        &mut self,
        table: &ObjectName,
        column: Option<&str>,
        _statement: &Text<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, SqlError> {
        let mut rows = columns(&*self.shown_table(table)?, false, self.seen(), self.settings.time_zone);
        if let Some(pattern) = column {
            rows.retain_like(0, pattern);
        }
        self.send(&rows, sink)
    }
}

/// The length that MySQL shows of the part of a SPATIAL key: that of a box.
pub(super) const SPATIAL_PART: u64 = 32;

/// `PRI`, `UNI`, `MUL` or nothing, as SHOW COLUMNS and information_schema say it.
pub(super) fn key_of(table: &TableDef, column: usize) -> &'static str {
    let mut key = "";
    let primary = table.shown_primary_key().map(|index| index.id);
    for index in &table.indexes {
        let Some(at) = index.parts.iter().position(|part| part.column == column) else { continue };
        match index.kind {
            _ if Some(index.id) == primary => return "PRI",
            IndexKind::Unique if index.parts.len() == 1 => key = "UNI",
            _ if at == 0 && key.is_empty() => key = "MUL",
            _ => {}
        }
    }
    let is_first = |key: &avocet_types::schema::KeptKeyDef| key.columns.first() == Some(&column);
    if key.is_empty() && table.kept_keys.iter().any(is_first) { "MUL" } else { key }
}

/// `auto_increment`, `DEFAULT_GENERATED on update CURRENT_TIMESTAMP`, …
pub(super) fn extra_of(column: &ColumnDef) -> String {
    let mut words = Vec::new();
    if column.auto_increment {
        words.push("auto_increment".to_owned());
    }
    use avocet_types::schema::DefaultValue;
    if matches!(column.default, Some(DefaultValue::Now | DefaultValue::Expr(_))) {
        words.push("DEFAULT_GENERATED".to_owned());
    }
    if let Some(generated) = &column.generated {
        words.push(if generated.stored { "STORED GENERATED" } else { "VIRTUAL GENERATED" }.to_owned());
    }
    if column.on_update_now {
        let precision =
            column.ty.fsp().filter(|fsp| *fsp > 0).map_or(String::new(), |fsp| format!("({fsp})"));
        words.push(format!("on update CURRENT_TIMESTAMP{precision}"));
    }
    if column.invisible {
        words.push("INVISIBLE".to_owned());
    }
    words.join(" ")
}

fn columns(table: &TableDef, full: bool, access: &Access, zone: TimeZone) -> Rowset {
    let mut rows = Rowset::new("COLUMNS", &[("Field", varchar(64)), ("Type", LONG_TEXT)]);
    let mut more = |name: &str, ty| rows.columns.push((name.to_owned(), ty));
    if full {
        more("Collation", varchar(64));
    }
    for (name, len) in [("Null", 3), ("Key", 3)] {
        more(name, varchar(len));
    }
    more("Default", LONG_TEXT);
    more("Extra", varchar(256));
    if full {
        more("Privileges", varchar(154));
        more("Comment", LONG_TEXT);
    }
    let sees =
        |(_, column): &(usize, &ColumnDef)| access.sees_column(&table.database, &table.name, &column.name);
    for (at, column) in table.own_columns().iter().enumerate().filter(sees) {
        let mut row = vec![text(&column.name), text(column.type_text())];
        if full {
            row.push(optional(column.ty.declared_collation().map(avocet_types::Collation::name)));
        }
        row.push(text(if column.nullable { "YES" } else { "NO" }));
        row.push(text(key_of(table, at)));
        row.push(optional(column.stated_default().map(|default| default_of(default, column, false, zone))));
        row.push(text(extra_of(column)));
        if full {
            row.push(text(access.column_privileges(&table.database, &table.name, &column.name)));
            row.push(text(&column.comment));
        }
        rows.push(row);
    }
    rows
}
