//! Result sets that the session makes itself, and how columns are described to clients.

use std::sync::Arc;

use avocet_channel::{Cancellation, ColumnFlags, OutputColumn, ResultSink};
use avocet_sql::bind::TableBinder;
use avocet_sql::parse::statement::ShowFilter;
use avocet_sql::plan::walk::column_of;
use avocet_sql::plan::{BoundQuery, ColumnId, ColumnInfo, QueryBody};
use avocet_types::collation::LikePattern;
use avocet_types::error::SqlError;
use avocet_types::expr::RowProgram;
use avocet_types::schema::{ColumnDef, DefaultValue, IndexKind, TableDef};
use avocet_types::{Collation, Datum, IntWidth, LobSize, SqlType, Value};

use super::info_schema;
use super::run::{Outcome, Text};
use super::schemas::OWN;
use super::state::Session;

/// Collation of texts that the server makes, as MySQL describes its catalogs.
const SYSTEM: Collation = Collation(33);

/// A small table of values, for SHOW and the like.
pub(super) struct Rowset {
    /// The name that column metadata gives the table.
    pub name: &'static str,
    pub columns: Vec<(String, SqlType)>,
    pub rows: Vec<Vec<Value>>,
    pub only: Only,
}

/// The tables whose rows a query of the catalog wants, and the columns, as far as it says: others need not be made.
#[derive(Clone, Debug, Default)]
pub(super) struct Only {
    /// Of each of its scans; `None` for all tables.
    pub scans: Option<Vec<Names>>,
    /// By position, whether it is asked for; `None` for all.
    pub columns: Option<Box<[bool]>>,
}

/// Names of databases and of tables; `None` for all.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub databases: Option<Vec<Box<str>>>,
    pub tables: Option<Vec<Box<str>>>,
}

fn lists(names: Option<&[Box<str>]>, name: &str) -> bool {
    names.is_some_and(|names| names.iter().any(|wanted| **wanted == *name))
}

impl Names {
    /// Tables of the server's own schema only if that is asked for: as SHOW DATABASES, lists of everything have what a MySQL has.
    fn want(&self, table: &TableDef) -> bool {
        let (databases, tables) = (self.databases.as_deref(), self.tables.as_deref());
        (databases.is_none() && table.database != OWN || lists(databases, &table.database))
            && (tables.is_none() || lists(tables, &table.name))
    }
}

impl Only {
    pub fn wants(&self, table: &TableDef) -> bool {
        match &self.scans {
            None => Names::default().want(table),
            Some(scans) => scans.iter().any(|names| names.want(table)),
        }
    }

    pub fn asks_for(&self, column: usize) -> bool {
        self.columns.as_ref().is_none_or(|columns| columns[column])
    }
}

pub(super) fn text(value: impl Into<String>) -> Value {
    Datum::Str(value.into().into())
}

pub(super) fn optional(value: Option<impl Into<String>>) -> Value {
    value.map_or(Datum::Null, text)
}

pub(super) const fn varchar(len: u32) -> SqlType {
    SqlType::VarChar { len, collation: SYSTEM }
}

/// `utf8mb3_bin`, of names of databases and tables.
pub(super) const FILE_NAMES: Collation = Collation(83);

pub(super) const FILE_NAME: SqlType = SqlType::VarChar { len: 64, collation: FILE_NAMES };

pub(super) const LONG_TEXT: SqlType = SqlType::Text { size: LobSize::Long, collation: SYSTEM };
pub(super) const COUNT: SqlType = SqlType::BIGINT_UNSIGNED;

impl Rowset {
    pub fn new(name: &'static str, columns: &[(&str, SqlType)]) -> Self {
        let columns = columns.iter().map(|(name, ty)| ((*name).to_owned(), *ty)).collect();
        Self { name, columns, rows: Vec::new(), only: Only::default() }
    }

    pub fn push(&mut self, row: Vec<Value>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Adds a row of which `value` gives the columns that it knows; the others are NULL.
    pub fn push_named(&mut self, value: impl Fn(&str) -> Option<Value>) {
        let row = self.columns.iter().map(|(name, _)| value(name).unwrap_or(Value::Null)).collect();
        self.push(row);
    }

    /// As a table, so that expressions can be bound over it.
    pub fn table_def(&self) -> TableDef {
        let column = |(name, ty): &(String, SqlType)| ColumnDef::new(name, *ty).nullable();
        let columns = self.columns.iter().map(column).collect();
        let def = TableDef::new("information_schema", self.name, columns, Vec::new());
        TableDef { default_collation: SYSTEM, ..def }
    }

    /// Keeps the rows whose column matches a LIKE pattern.
    pub fn retain_like(&mut self, column: usize, pattern: &str) {
        let collation = self.columns[column].1.collation().unwrap_or(SYSTEM);
        let pattern = LikePattern::new(pattern, Some('\\'), collation);
        self.rows.retain(|row| match &row[column] {
            Datum::Str(value) => pattern.matches(value),
            _ => false,
        });
    }
}

impl Session {
    /// Applies the LIKE (on `column`) or WHERE of a SHOW.
    pub(super) fn filter(
        &self,
        rows: &mut Rowset,
        column: usize,
        filter: &ShowFilter,
        text: &Text<'_>,
    ) -> Result<(), SqlError> {
        match filter {
            ShowFilter::None => {}
            // The one schema whose name has no case.
            ShowFilter::Like(pattern) if info_schema::is_schema(pattern) => {
                rows.retain_like(column, &pattern.to_lowercase());
            }
            ShowFilter::Like(pattern) => rows.retain_like(column, pattern),
            ShowFilter::Where(condition) => {
                let table = Arc::new(rows.table_def());
                let view = self.view();
                let mut binder = TableBinder::new(text.source, &view, &text.types, &table, None);
                let program = RowProgram::compile(&binder.condition(condition)?)?;
                let mut failure = None;
                rows.rows.retain(|row| {
                    let kept = program.matches(&row.as_slice(), text.params, &self.context);
                    kept.unwrap_or_else(|error| {
                        failure.get_or_insert(error);
                        false
                    })
                });
                if let Some(error) = failure {
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Sends a result set of the session's own.
    pub(super) fn send(&self, rows: &Rowset, sink: &mut dyn ResultSink) -> Result<Outcome, SqlError> {
        let columns: Vec<_> = rows
            .columns
            .iter()
            .map(|(name, ty)| OutputColumn { table: rows.name.into(), ..OutputColumn::expression(name, *ty) })
            .collect();
        sink.columns(&columns, self.settings.time_zone)?;
        let cancellation = Cancellation::after(&self.info.interrupt, None);
        for row in &rows.rows {
            sink.row(row)?;
            if sink.wants_flush() {
                cancellation.flush_in_place(sink)?;
            }
        }
        Ok(Outcome::Rows(rows.rows.len() as u64))
    }
}

/// The columns of a query's result.
pub(super) fn columns_of(bound: &BoundQuery) -> Vec<OutputColumn> {
    let keys = rolled_up(bound);
    let column = |id: &ColumnId| {
        let info = &bound.columns[*id];
        match keys.contains(id) {
            // Its NULLs are no table's.
            true => output_column(&ColumnInfo { nullable: true, origin: None, label: None, ..info.clone() }),
            false => output_column(info),
        }
    };
    bound.body.outputs.iter().map(column).collect()
}

/// The outputs that are keys of GROUP BY … WITH ROLLUP.
fn rolled_up(bound: &BoundQuery) -> Vec<ColumnId> {
    let QueryBody::Select(select) = &bound.body.body else { return Vec::new() };
    let Some(aggregation) = select.aggregation.as_ref().filter(|aggregation| aggregation.rollup) else {
        return Vec::new();
    };
    let is_key = |id: ColumnId| aggregation.keys.iter().any(|key| key.id == id);
    let shown = select.projection.iter().filter(|item| column_of(&item.expr).is_some_and(is_key));
    shown.map(|item| item.id).collect()
}

fn output_column(info: &ColumnInfo) -> OutputColumn {
    match &info.origin {
        Some(origin) => {
            let mut column = table_column(&origin.table, origin.column, &origin.alias);
            column.name = info.name.clone();
            column.flags.not_null &= !info.nullable;
            labelled(column, info)
        }
        None => {
            // TINYINT(1) is a column's: drivers make a BIT or a boolean of what is shown so.
            let table = info.label.as_ref().and_then(|label| label.org_table.as_ref());
            let is_of_column = table.is_some_and(|table| !table.is_empty());
            let ty = match info.ty {
                SqlType::Bool if !is_of_column => SqlType::Int { width: IntWidth::W8, unsigned: false },
                ty => ty,
            };
            let mut column = OutputColumn::expression(&info.name, ty);
            column.flags.not_null = !info.nullable;
            column.flags.computed = info.label.as_ref().is_none_or(|label| label.keeps_keys);
            labelled(column, info)
        }
    }
}

/// A column as that of the derived table or view that it comes through.
fn labelled(mut column: OutputColumn, info: &ColumnInfo) -> OutputColumn {
    let Some(label) = &info.label else { return column };
    column.table = label.table.clone();
    column.org_name = label.org_name.clone();
    if let Some(table) = &label.org_table {
        column.org_table = table.clone();
    }
    if !label.keeps_keys {
        let ColumnFlags { not_null, no_default, computed, zerofill, .. } = column.flags;
        column.flags = ColumnFlags { not_null, no_default, computed, zerofill, ..ColumnFlags::default() };
    }
    column
}

/// A stored column, as clients are told of it.
pub(super) fn table_column(table: &TableDef, position: usize, alias: &str) -> OutputColumn {
    let def = &table.columns[position];
    OutputColumn {
        name: def.name.as_str().into(),
        org_name: def.name.as_str().into(),
        table: alias.into(),
        org_table: table.name.as_str().into(),
        schema: table.database.as_str().into(),
        ty: def.ty,
        flags: flags_of(table, position),
    }
}

fn flags_of(table: &TableDef, position: usize) -> ColumnFlags {
    let def = &table.columns[position];
    let is_timestamp = matches!(def.ty, SqlType::Timestamp { .. });
    let mut flags = ColumnFlags {
        not_null: !def.nullable,
        auto_increment: def.auto_increment,
        no_default: def.has_no_default() && !def.auto_increment,
        timestamp_now: is_timestamp && (def.on_update_now || matches!(def.default, Some(DefaultValue::Now))),
        on_update_now: is_timestamp && def.on_update_now,
        zerofill: def.zerofill,
        ..ColumnFlags::default()
    };
    let primary = table.shown_primary_key().map(|index| index.id);
    for index in &table.indexes {
        let Some(at) = index.parts.iter().position(|part| part.column == position) else { continue };
        match index.kind {
            _ if Some(index.id) == primary => flags.primary_key = true,
            IndexKind::Unique if index.parts.len() == 1 => flags.unique_key = true,
            _ if at == 0 => flags.multiple_key = true,
            _ => flags.later_part = true,
        }
    }
    flags
}
