//! ON DUPLICATE KEY UPDATE: what the names in its values mean.
//!
//! ```text
//!  INSERT INTO t (a, b) VALUES (1, 2) AS new(x, y) ON DUPLICATE KEY UPDATE b = t.b + VALUES(b) + new.y + x
//!  INSERT INTO t (a, b) SELECT s.a, s.b FROM s     ON DUPLICATE KEY UPDATE b = t.b + s.c
//! ```
//!
//! Values are bound over one row: the columns of the row that is there, those of the row to be inserted, then those that only
//! the query has, which it selects beside what is inserted. Names of the latter two are replaced before they are bound.

use std::borrow::Cow;
use std::sync::Arc;

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::names;
use avocet_types::schema::TableDef;
use avocet_types::{ColumnDef, SqlType};

use super::scope::{ScopeColumn, ScopeTable};
use super::{CatalogView, Clause, ColumnName, TableBinder, bind_query, reads_directly, unsupported};
use crate::parse::ast::{self, Expr, ExprKind, Ident, Query, QueryBody, SelectItem};
use crate::parse::statement::{Insert, InsertSource};
use crate::plan::{BoundQuery, ColumnId, Subquery, SubqueryKind};

/// Before the names of the new row's columns, and of the query's; no identifier can begin so.
const NEW: char = '\u{1}';
const QUERY: char = '\u{2}';

/// A statement's assignments, before they are bound.
pub struct UpsertNames<'i> {
    insert: &'i Insert,
    table: &'i TableDef,
    /// The columns that values are given for.
    targets: &'i [usize],
    /// Columns of the query that only assignments name.
    of_query: Vec<Expr>,
}

/// The bound assignments.
pub struct Upsert {
    /// The columns, and values over all columns, followed by the answers of subqueries, or `None` for DEFAULT.
    pub assignments: Vec<(usize, Option<avocet_types::expr::Expr>)>,
    /// How many columns values are over, beside those answers.
    pub width: usize,
    /// A block of nothing but the subqueries, which may use all columns; `None` if there are none.
    pub subqueries: Option<BoundQuery>,
    /// Variables of the session were bound, as the values that they have.
    pub is_of_session: bool,
}

/// By which name values know a column of the row that is to be inserted.
pub(super) fn of_new_row(column: &str) -> String {
    format!("{NEW}{column}")
}

impl<'i> UpsertNames<'i> {
    /// Checks the alias of the new row.
    pub fn new(insert: &'i Insert, table: &'i TableDef, targets: &'i [usize]) -> Result<Self, SqlError> {
        if let Some((alias, columns)) = &insert.row_alias {
            if alias.name == table.name {
                return Err(ErrorCode::NONUNIQ_TABLE.with(&[&alias.name]));
            }
            if !columns.is_empty() && columns.len() != targets.len() {
                return Err(ErrorCode::VIEW_WRONG_LIST.with(&[]));
            }
            for (at, column) in columns.iter().enumerate() {
                if columns[..at].iter().any(|other| names::eq(&other.name, &column.name)) {
                    return Err(ErrorCode::DUP_FIELDNAME.with(&[&column.name]));
                }
            }
        }
        Ok(Self { insert, table, targets, of_query: Vec::new() })
    }

    /// The query whose rows are inserted, with the columns that assignments name after its own.
    pub fn add_to_query<'q>(
        &mut self,
        query: &'q Query,
        source: &[u8],
        view: &dyn CatalogView,
        params: &[SqlType],
    ) -> Result<Cow<'q, Query>, SqlError> {
        if self.insert.on_duplicate.is_empty() {
            return Ok(Cow::Borrowed(query));
        }
        let (own, mut query) = (query, query.clone());
        if let QueryBody::Table(name) = &query.body {
            query.body = QueryBody::Select(Box::new(ast::Select::all_of(name)));
        }
        let select = match &mut query.body {
            QueryBody::Select(select) if select.group_by.is_empty() => select,
            QueryBody::Parenthesized(inner) => {
                **inner = self.add_to_query(inner, source, view, params)?.into_owned();
                return Ok(Cow::Owned(query));
            }
            _ => return Ok(Cow::Owned(query)),
        };
        let mut names = Vec::new();
        for assignment in &self.insert.on_duplicate {
            column_names(&mut assignment.value.clone(), &mut names);
        }
        for name in names {
            if !is_in(&name, query.with.as_ref(), select, source, view, params)? {
                continue;
            }
            if self.is_in_table(&name) {
                let ExprKind::Column { database, table, column } = &name.kind else { continue };
                let name = column_name(database.as_ref(), table.as_ref(), column);
                return Err(ErrorCode::NON_UNIQ_ERROR.with(&[&name, &"field list"]));
            }
            self.of_query.push(name);
        }
        let is_of_groups = select.distinct && !self.of_query.is_empty();
        if is_of_groups {
            let columns = bind_query(own, source, view, params)?.body.outputs.len();
            group_by_all(select, columns);
        }
        select.items.extend(self.of_query.iter().map(|name| {
            let expr = if is_of_groups { any_value(name) } else { name.clone() };
            SelectItem::Expr { expr, alias: None }
        }));
        Ok(Cow::Owned(query))
    }

    /// How many columns the query has for assignments alone.
    pub fn columns_of_query(&self) -> usize {
        self.of_query.len()
    }

    /// Binds the assignments. `of_query` are the types of the columns that were added to the query.
    pub fn bind(
        &self,
        of_query: &[SqlType],
        source: &[u8],
        view: &dyn CatalogView,
        params: &[SqlType],
    ) -> Result<Upsert, SqlError> {
        if self.insert.on_duplicate.is_empty() {
            return Ok(Upsert { assignments: Vec::new(), width: 0, subqueries: None, is_of_session: false });
        }
        let all = Arc::new(self.all_columns(of_query));
        let mut binder = TableBinder::new(source, view, params, &all, None);
        binder.binder.takes_inserted = true;
        self.add_alias(&mut binder);
        let mut has_subqueries = false;
        let mut updates = Vec::with_capacity(self.insert.on_duplicate.len());
        for assignment in &self.insert.on_duplicate {
            let name = &assignment.column.name;
            let is_own = assignment.is_of(&self.table.database, &self.table.name);
            let column = self.table.column_or_rowid(name).filter(|_| is_own);
            let unknown = || ErrorCode::BAD_FIELD_ERROR.with(&[&assignment.shown_column(), &"field list"]);
            let column = column.ok_or_else(unknown)?;
            if matches!(assignment.value.kind, ExprKind::Default) {
                updates.push((column, None));
                continue;
            }
            let mut value = assignment.value.clone();
            self.rename(&mut value)?;
            let before = binder.binder.block().subqueries.len();
            let value = binder.expr_with_subqueries(&value, Clause::Select)?;
            let own = &binder.binder.block().subqueries[before..];
            has_subqueries |= !own.is_empty();
            let is_assigned = |id: &ColumnId| updates.iter().any(|(assigned, _)| *assigned == id.index());
            if own.iter().any(|of| uses(&of.subquery).any(|id| is_assigned(&id))) {
                return Err(unsupported("a subquery that refers to a column that was assigned before"));
            }
            updates.push((column, Some(binder.assigned(value, self.table.columns[column].ty))));
        }
        let reads_variables = |(_, value): &(usize, Option<avocet_types::expr::Expr>)| {
            value.as_ref().is_some_and(|v| v.uses_assigned())
        };
        if matches!(self.insert.source, InsertSource::Query(_)) && updates.iter().any(reads_variables) {
            return Err(unsupported(
                "assignment to user variables in ON DUPLICATE KEY UPDATE of INSERT ... SELECT",
            ));
        }
        let is_of_session = binder.is_of_session();
        let subqueries = has_subqueries.then(|| binder.into_subqueries()).transpose()?;
        if let Some(query) = &subqueries
            && reads_directly(&query.body, self.table, None)
        {
            return Err(ErrorCode::UPDATE_TABLE_USED.with(&[&self.table.name]));
        }
        Ok(Upsert { assignments: updates, width: all.columns.len(), subqueries, is_of_session })
    }

    /// Subqueries know the row that is to be inserted by its alias.
    fn add_alias(&self, binder: &mut TableBinder<'_>) {
        let Some((alias, names)) = &self.insert.row_alias else { return };
        let width = self.table.columns.len();
        let column = |(at, target): (usize, &usize)| {
            let own = || &self.table.columns[*target].name;
            let name = names.get(at).map_or_else(own, |name| &name.name);
            let id = ColumnId((width + target) as u32);
            ScopeColumn { name: name.as_str().into(), id, merged: false, invisible: false }
        };
        let columns = self.targets.iter().enumerate().map(column).collect();
        let name = alias.name.as_str().into();
        let table = ScopeTable::derived(name, columns, Vec::new());
        binder.binder.block().tables.push(table);
    }

    /// The table's columns twice, those of the row that is there and those of the row to be inserted, and the query's.
    fn all_columns(&self, of_query: &[SqlType]) -> TableDef {
        let mut all = self.table.clone();
        all.columns.extend(self.table.columns.iter().map(|column| {
            let name = of_new_row(&column.name);
            ColumnDef { name, ..column.clone() }
        }));
        let of_query = of_query.iter().enumerate();
        all.columns.extend(of_query.map(|(at, ty)| ColumnDef::new(format!("{QUERY}{at}"), *ty)));
        all
    }

    /// Replaces names of the new row's columns and of the query's.
    fn rename(&self, expr: &mut Expr) -> Result<(), SqlError> {
        let renamed = match &expr.kind {
            ExprKind::InsertedValue { database, table, column } => {
                let of_table =
                    |name: &Option<Ident>, own: &str| name.as_ref().is_none_or(|name| name.name == own);
                if !of_table(table, &self.table.name) || !of_table(database, &self.table.database) {
                    let name = column_name(database.as_ref(), table.as_ref(), column);
                    return Err(ErrorCode::BAD_FIELD_ERROR.with(&[&name, &"field list"]));
                }
                if self.table.column(&column.name).is_none() {
                    let name = column_name(database.as_ref(), table.as_ref(), column);
                    return Err(ErrorCode::BAD_FIELD_ERROR.with(&[&name, &"field list"]));
                }
                Some(of_new_row(&column.name))
            }
            ExprKind::Column { database, table, column } => {
                let same = |other: &Expr| is_same_name(&other.kind, &expr.kind);
                match self.of_query.iter().position(same) {
                    Some(at) => Some(format!("{QUERY}{at}")),
                    None => self.of_new_row(database.as_ref(), table.as_ref(), column)?,
                }
            }
            _ => None,
        };
        if let Some(name) = renamed {
            let column = Ident { name, ..ident_of(&expr.kind).clone() };
            expr.kind = ExprKind::Column { database: None, table: None, column };
            return Ok(());
        }
        expr.children_mut().into_iter().try_for_each(|child| self.rename(child))
    }

    /// The new row's column that a name means, if it means one.
    fn of_new_row(
        &self,
        database: Option<&Ident>,
        table: Option<&Ident>,
        column: &Ident,
    ) -> Result<Option<String>, SqlError> {
        let Some((alias, names)) = &self.insert.row_alias else { return Ok(None) };
        let is_named = table.is_some_and(|table| table.name == alias.name);
        if database.is_some() || (table.is_some() && !is_named) {
            return Ok(None);
        }
        let given = self.targets.iter().enumerate().find(|(at, target)| {
            let own = || &self.table.columns[**target].name;
            names::eq(names.get(*at).map_or_else(own, |name| &name.name), &column.name)
        });
        let name = column_name(database, table, column);
        match given {
            Some(_) if table.is_none() && self.table.column(&column.name).is_some() => {
                Err(ErrorCode::NON_UNIQ_ERROR.with(&[&name, &"field list"]))
            }
            Some((_, target)) => Ok(Some(of_new_row(&self.table.columns[*target].name))),
            None if is_named => Err(ErrorCode::BAD_FIELD_ERROR.with(&[&name, &"field list"])),
            None => Ok(None),
        }
    }

    fn is_in_table(&self, name: &Expr) -> bool {
        let ExprKind::Column { database, table, column } = &name.kind else { return false };
        let fits = |name: &Option<Ident>, own: &str| name.as_ref().is_none_or(|name| name.name == own);
        fits(database, &self.table.database)
            && fits(table, &self.table.name)
            && self.table.column(&column.name).is_some()
    }
}

/// The rows of SELECT DISTINCT, which has so many columns, as groups: beside each there may be other values of its rows.
fn group_by_all(select: &mut ast::Select, columns: usize) {
    select.distinct = false;
    let position = |at| Expr { kind: ExprKind::Integer(at), span: ast::Span::default() };
    select.group_by = (1..=columns as u64).map(position).collect();
}

fn any_value(of: &Expr) -> Expr {
    let call = ast::AggregateCall {
        name: "ANY_VALUE".to_owned(),
        distinct: false,
        args: vec![of.clone()],
        order_by: Vec::new(),
        separator: None,
        over: None,
    };
    Expr { kind: ExprKind::Aggregate(Box::new(call)), span: of.span }
}

/// What a subquery uses of the rows around it.
fn uses(subquery: &Subquery) -> impl Iterator<Item = ColumnId> {
    let mut ids: Vec<ColumnId> = subquery.outer.clone();
    let mut add = |expr: &avocet_types::expr::Expr| {
        ids.extend(expr.columns().into_iter().map(|id| ColumnId(id as u32)));
    };
    match &subquery.kind {
        SubqueryKind::In { needles, .. } => needles.iter().for_each(&mut add),
        SubqueryKind::Quantified { left, .. } => add(left),
        SubqueryKind::Scalar | SubqueryKind::Exists { .. } => {}
    }
    ids.into_iter()
}

/// The column names in an expression, each once. Those of VALUES() are the new row's.
fn column_names(expr: &mut Expr, names: &mut Vec<Expr>) {
    match &expr.kind {
        ExprKind::Column { .. } if names.iter().any(|other| is_same_name(&other.kind, &expr.kind)) => {}
        ExprKind::Column { .. } => names.push(expr.clone()),
        _ => expr.children_mut().into_iter().for_each(|child| column_names(child, names)),
    }
}

fn is_same_name(a: &ExprKind, b: &ExprKind) -> bool {
    let ExprKind::Column { database, table, column } = a else { return false };
    let ExprKind::Column { database: database_b, table: table_b, column: column_b } = b else { return false };
    let same = |a: &Option<Ident>, b: &Option<Ident>| match (a, b) {
        (Some(a), Some(b)) => a.name == b.name,
        (None, None) => true,
        _ => false,
    };
    same(database, database_b) && same(table, table_b) && names::eq(&column.name, &column_b.name)
}

/// Whether a name means a column of a query's FROM clause.
fn is_in(
    name: &Expr,
    with: Option<&ast::With>,
    of: &ast::Select,
    source: &[u8],
    view: &dyn CatalogView,
    params: &[SqlType],
) -> Result<bool, SqlError> {
    let items = vec![SelectItem::Expr { expr: name.clone(), alias: None }];
    let select = ast::Select { items, from: of.from.clone(), ..ast::Select::default() };
    let query = Query {
        with: with.cloned(),
        body: QueryBody::Select(Box::new(select)),
        order_by: Vec::new(),
        limit: None,
        locks: Vec::new(),
        span: name.span,
    };
    match bind_query(&query, source, view, params) {
        Ok(_) => Ok(true),
        Err(error) if error.errno == ErrorCode::BAD_FIELD_ERROR.errno => Ok(false),
        Err(error) => Err(error),
    }
}

fn ident_of(kind: &ExprKind) -> &Ident {
    match kind {
        ExprKind::InsertedValue { column, .. } | ExprKind::Column { column, .. } => column,
        _ => unreachable!("only names are renamed"),
    }
}

fn column_name<'n>(
    database: Option<&'n Ident>,
    table: Option<&'n Ident>,
    column: &'n Ident,
) -> ColumnName<'n> {
    let text = |ident: Option<&'n Ident>| ident.map(|ident| ident.name.as_str());
    ColumnName { database: text(database), table: text(table), column: &column.name }
}
