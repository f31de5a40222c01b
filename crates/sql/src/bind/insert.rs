//! INSERT, REPLACE and LOAD DATA into a view: the table behind it, and what the statement says in the table's words.

use std::sync::Arc;

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::Expr;
use avocet_types::names;
use avocet_types::schema::TableDef;

use super::scope::Block;
use super::{Binder, CatalogView, CheckOf, unsupported};
use crate::parse::ast::{self, ExprKind, Ident, ObjectName, Span};
use crate::parse::statement::{Assignment, Insert, InsertSource, LoadData, LoadTarget};
use crate::plan::walk::changeable_column;
use crate::plan::{ColumnId, From, TableScan};

/// The table into which rows go through a view.
pub struct ViewTarget {
    pub table: Arc<TableDef>,
    /// The view, and those through which it comes to the table.
    pub views: Vec<Arc<TableDef>>,
    /// What a row has to meet, over the table's columns. The view that the statement names asks for it, or the partitions that it is of.
    pub checks: Vec<(Expr, CheckOf)>,
    /// 1423, if the table has columns without a default that get no value.
    pub lacks_default: Option<SqlError>,
    /// The view's columns, and where they are in the table; `None` for those of other tables that it joins.
    columns: Vec<(String, Option<usize>)>,
}

/// What a name is in an INSERT, if it is a view; `None` for tables and what is not there. `columns` are those that get values.
///
/// # Errors
/// 1471, 1348, 1393, 1394 for views that take no rows, or not these.
pub fn through_view(
    name: &ObjectName,
    columns: Option<&[&str]>,
    verb: &str,
    catalog: &dyn CatalogView,
) -> Result<Option<ViewTarget>, SqlError> {
    let database = name.database.as_ref().map(|name| name.name.as_str()).or(catalog.current_database());
    let Some(view) = database.and_then(|database| catalog.view(database, &name.name.name)) else {
        return Ok(None);
    };
    let mut binder = Binder::new(b"", catalog, &[]);
    binder.blocks.push(Block::new());
    let mut from = binder.view(&view, view.name.as_str().into(), true)?.from;
    let refused = || ErrorCode::NON_INSERTABLE_TABLE.with(&[&view.name, &verb]);
    let (mut subqueries, scope) = (Vec::new(), binder.block().tables[0].clone());
    let (_, views) = binder.merge_from(&mut from, &mut subqueries)?;
    let merged = views.first().ok_or_else(refused)?;
    let mut shown = Vec::with_capacity(scope.columns.len());
    for column in &scope.columns {
        let id = binder.merged.meaning(column.id).and_then(changeable_column);
        shown.push((column.name.to_string(), id));
    }
    let stored = |(name, id): &(String, Option<ColumnId>)| {
        id.ok_or_else(|| ErrorCode::NONUPDATEABLE_COLUMN.with(&[name]))
    };
    let named = match columns {
        None if merged.scans.len() > 1 => {
            return Err(ErrorCode::VIEW_NO_INSERT_FIELD_LIST.with(&[&view.database, &view.name]));
        }
        None => shown.iter().map(stored).collect::<Result<Vec<_>, _>>()?,
        Some(columns) => {
            let find = |name: &&str| {
                let found = shown.iter().find(|(shown, _)| names::eq(shown, name));
                let unknown = || ErrorCode::BAD_FIELD_ERROR.with(&[name, &"field list"]);
                found.ok_or_else(unknown).and_then(stored)
            };
            columns.iter().map(find).collect::<Result<_, _>>()?
        }
    };
    if !view.view.as_ref().is_some_and(|view| view.is_updatable) {
        return Err(refused());
    }
    // What it computes, and what it shows twice, keeps it from taking rows.
    let is_stored_once = |(at, (_, id)): (usize, &(String, Option<ColumnId>))| {
        id.is_some() && !shown[..at].iter().any(|(_, other)| other == id)
    };
    if !shown.iter().enumerate().all(is_stored_once) {
        return Err(refused());
    }
    let first = named.first().copied().or(shown.first().and_then(|(_, id)| *id));
    let scan = first.and_then(|id| scan_of(&from, id)).ok_or_else(refused)?;
    if named.iter().any(|id| position(scan, *id).is_none()) {
        return Err(ErrorCode::VIEW_MULTIUPDATE.with(&[&view.database, &view.name]));
    }
    let is_given = |column: usize| named.iter().any(|id| position(scan, *id) == Some(column));
    let lacks_value = |(at, column): (usize, &avocet_types::ColumnDef)| {
        column.has_no_default() && !column.auto_increment && !is_given(at)
    };
    let lacking = || ErrorCode::NO_DEFAULT_FOR_VIEW_FIELD.with(&[&view.database, &view.name]);
    let lacks_default = scan.table.columns.iter().enumerate().any(lacks_value).then(lacking);
    let mut asked = Vec::new();
    merged.checks(false, &mut asked);
    let mut checks = Vec::with_capacity(asked.len());
    let over_table = |id: usize| position(scan, ColumnId(id as u32)).unwrap_or(id);
    if let Some(condition) = scan.columns.first().and_then(|(_, first)| binder.partitions.get(first)) {
        checks.push((condition.clone().map_columns(&mut { over_table }), CheckOf::Partitions));
    }
    for asked in asked {
        let Some(condition) = asked.condition.clone() else { continue };
        if asked.has_subqueries {
            return Err(unsupported("WITH CHECK OPTION of a view whose condition has subqueries"));
        }
        if condition.columns().iter().any(|id| position(scan, ColumnId(*id as u32)).is_none()) {
            return Err(unsupported("INSERT into a view WITH CHECK OPTION whose condition joins tables"));
        }
        let of = CheckOf::View(view.database.clone(), view.name.clone());
        checks.push((condition.map_columns(&mut { over_table }), of));
    }
    let columns = shown.into_iter().map(|(name, id)| (name, id.and_then(|id| position(scan, id)))).collect();
    let table = scan.table.clone();
    Ok(Some(ViewTarget { table, views: std::mem::take(&mut binder.views), checks, lacks_default, columns }))
}

fn scan_of(from: &From, column: ColumnId) -> Option<&TableScan> {
    match from {
        From::Table(scan) => position(scan, column).map(|_| scan),
        From::Join(join) => scan_of(&join.left, column).or_else(|| scan_of(&join.right, column)),
        From::Dual | From::Derived(_) | From::Cte(_) => None,
    }
}

fn position(scan: &TableScan, column: ColumnId) -> Option<usize> {
    scan.columns.iter().find(|(_, id)| *id == column).map(|(at, _)| *at)
}

impl ViewTarget {
    fn table_name(&self, span: Span) -> ObjectName {
        let ident = |name: &str| Ident { name: name.to_owned(), span };
        ObjectName { database: Some(ident(&self.table.database)), name: ident(&self.table.name) }
    }

    /// The table's column that a column of the view is.
    fn column(&self, name: &Ident) -> Option<Ident> {
        let (_, at) = self.columns.iter().find(|(own, _)| names::eq(own, &name.name))?;
        Some(Ident { name: self.table.columns[(*at)?].name.clone(), span: name.span })
    }

    fn target(&self, name: &Ident) -> Result<Ident, SqlError> {
        let unknown = || ErrorCode::BAD_FIELD_ERROR.with(&[&name.name, &"field list"]);
        self.column(name).ok_or_else(unknown)
    }

    fn all_columns(&self, span: Span) -> Vec<Ident> {
        let own = self.columns.iter().filter_map(|(_, at)| *at);
        own.map(|at| Ident { name: self.table.columns[at].name.clone(), span }).collect()
    }

    /// The statement as one about the table.
    pub fn insert(&self, insert: &Insert) -> Result<Insert, SqlError> {
        let mut own = insert.clone();
        let span = insert.table.name.span;
        let view = &insert.table.name.name;
        own.table = self.table_name(span);
        own.columns = Some(match &insert.columns {
            Some(columns) if !columns.is_empty() => {
                columns.iter().map(|column| self.target(column)).collect::<Result<_, _>>()?
            }
            Some(_) => Vec::new(),
            None => self.all_columns(span),
        });
        if let InsertSource::Values(rows) = &mut own.source {
            rows.iter_mut().flatten().for_each(|value| self.rename(value, view));
        }
        self.assignments(&mut own.on_duplicate, view)?;
        Ok(own)
    }

    /// As [`Self::insert`].
    pub fn load(&self, load: &LoadData) -> Result<LoadData, SqlError> {
        let mut own = load.clone();
        let span = load.table.name.span;
        own.table = self.table_name(span);
        match &mut own.targets {
            None => own.targets = Some(self.all_columns(span).into_iter().map(LoadTarget::Column).collect()),
            Some(targets) => {
                for target in targets {
                    if let LoadTarget::Column(column) = target {
                        *column = self.target(column)?;
                    }
                }
            }
        }
        self.assignments(&mut own.assignments, &load.table.name.name)?;
        Ok(own)
    }

    fn assignments(&self, assignments: &mut [Assignment], view: &str) -> Result<(), SqlError> {
        for assignment in assignments {
            if assignment.table.as_ref().is_some_and(|of| of.name.name != *view) {
                let column = assignment.shown_column();
                return Err(ErrorCode::BAD_FIELD_ERROR.with(&[&column, &"field list"]));
            }
            assignment.column = self.target(&assignment.column)?;
            assignment.table = None;
            self.rename(&mut assignment.value, view);
        }
        Ok(())
    }

    /// Columns of the view are those of the table.
    fn rename(&self, expr: &mut ast::Expr, view: &str) {
        match &mut expr.kind {
            ExprKind::Column { database, table, column }
            | ExprKind::InsertedValue { database, table, column }
            | ExprKind::DefaultOf { database, table, column } => {
                let is_own = table.as_ref().is_none_or(|table| table.name == *view);
                if let Some(own) = self.column(column).filter(|_| is_own) {
                    if let Some(table) = table {
                        table.name.clone_from(&self.table.name);
                        *database = Some(Ident { name: self.table.database.clone(), span: table.span });
                    }
                    *column = own;
                }
            }
            _ => {}
        }
        expr.children_mut().into_iter().for_each(|child| self.rename(child, view));
    }
}
