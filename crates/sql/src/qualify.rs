//! A view's query with nothing left to be found out: tables with their databases, columns with their tables, `*` spelled out, a
//! name for each column, ON in place of USING, and what ORDER BY means by a number or an alias. Printed, it is the view's
//! canonical text ([`print`](crate::print)), which means the same whatever the default database is and whatever columns the
//! tables get later.

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::names;

use crate::bind::{Notes, Qualified, first_table};
use crate::item_name::item_name;
use crate::parse::ast::*;
use crate::parse::grow_stack;

/// MySQL's limit for names of columns, in characters.
const MAX_NAME_LEN: usize = 64;

/// Qualifies a query that was bound with these notes. `source` is what it was parsed from; `named` says that a list of names
/// was given for its columns.
pub fn qualify(query: &mut Query, notes: &Notes, source: &[u8], named: bool) -> Result<(), SqlError> {
    Qualifier { notes, source }.query(query, if named { Columns::Renamed } else { Columns::Named })
}

/// What becomes of the names of a query's columns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Columns {
    /// They are those of the view.
    Named,
    /// Others are given for them.
    Renamed,
    /// Of a subquery in an expression: nobody asks for them.
    Unnamed,
}

struct Qualifier<'q> {
    notes: &'q Notes,
    source: &'q [u8],
}

fn ident(name: &str, span: Span) -> Ident {
    Ident { name: name.to_owned(), span }
}

fn column(of: &Qualified, span: Span) -> Expr {
    let kind = ExprKind::Column {
        database: of.database.as_deref().map(|name| ident(name, span)),
        table: Some(ident(&of.table, span)),
        column: ident(&of.column, span),
    };
    Expr { kind, span }
}

/// As MySQL prints it: without parentheses where what they hold has no LIMIT or order of its own, and with WITH before them.
fn leave_out_parentheses(query: &mut Query) {
    while let QueryBody::Parenthesized(inner) = &mut query.body {
        if query.with.is_none() {
            query.with = inner.with.take();
        }
        let is_sorted_twice = !query.order_by.is_empty() && !inner.order_by.is_empty();
        if inner.with.is_some() || inner.limit.is_some() || is_sorted_twice {
            return;
        }
        query.order_by.append(&mut inner.order_by);
        query.body = std::mem::replace(&mut inner.body, QueryBody::Values(Vec::new()));
    }
}

impl Qualifier<'_> {
    fn query(&self, query: &mut Query, columns: Columns) -> Result<(), SqlError> {
        grow_stack(|| {
            leave_out_parentheses(query);
            for cte in query.with.iter_mut().flat_map(|with| &mut with.ctes) {
                self.query(&mut cte.query, Columns::Renamed)?;
            }
            // FOR UPDATE is of the statement that reads the view.
            query.locks.clear();
            self.body(&mut query.body, columns)?;
            match &query.body {
                QueryBody::Select(select) => self.order(&mut query.order_by, select),
                body => {
                    let items = body.first_select().map_or(&[][..], |first| &first.items);
                    query.order_by.iter_mut().try_for_each(|key| match name_at_position(&key.expr, items) {
                        Some(name) => {
                            key.expr = name;
                            Ok(())
                        }
                        None => self.expr(&mut key.expr),
                    })
                }
            }
        })
    }

    fn body(&self, body: &mut QueryBody, columns: Columns) -> Result<(), SqlError> {
        match body {
            QueryBody::Select(select) => self.select(select, columns),
            QueryBody::SetOperation { left, right, .. } => {
                self.body(left, columns)?;
                // The left side gives the names.
                self.body(right, if columns == Columns::Named { Columns::Renamed } else { columns })
            }
            QueryBody::Values(rows) => rows.iter_mut().flatten().try_for_each(|value| self.expr(value)),
            QueryBody::JsonTable(_) => Err(SqlError::unsupported("JSON_TABLE in a view")),
            QueryBody::Table(name) => {
                let mut select = Select::all_of(name);
                self.select(&mut select, columns)?;
                *body = QueryBody::Select(Box::new(select));
                Ok(())
            }
            QueryBody::Parenthesized(query) => self.query(query, columns),
        }
    }

    fn select(&self, select: &mut Select, columns: Columns) -> Result<(), SqlError> {
        select.calc_found_rows = false;
        select.from.iter_mut().try_for_each(|table| self.table(table))?;
        let mut items = Vec::with_capacity(select.items.len());
        for item in std::mem::take(&mut select.items) {
            match item {
                SelectItem::Wildcard { span, .. } if self.notes.ones.contains(&span.into()) => {
                    items.push(SelectItem::Expr {
                        expr: Expr { kind: ExprKind::Integer(1), span },
                        alias: None,
                    });
                }
                SelectItem::Wildcard { span, .. } => {
                    let all = self.notes.stars.get(&span.into()).into_iter().flatten();
                    items.extend(all.map(|of| SelectItem::Expr {
                        expr: column(of, span),
                        alias: (columns != Columns::Unnamed).then(|| ident(&of.column, span)),
                    }));
                }
                SelectItem::Expr { mut expr, alias } => {
                    let alias = match alias {
                        Some(alias) if columns == Columns::Named => {
                            check_name(&alias.name)?;
                            Some(alias)
                        }
                        None if columns != Columns::Unnamed => Some(self.name(&expr, items.len() + 1)),
                        alias => alias,
                    };
                    self.expr(&mut expr)?;
                    items.push(SelectItem::Expr { expr, alias });
                }
            }
        }
        select.items = items;
        select.filter.iter_mut().try_for_each(|filter| self.expr(filter))?;
        for key in &mut select.group_by {
            match at_position(key, &select.items) {
                Some(item) => *key = item,
                None => self.expr(key)?,
            }
        }
        select.having.iter_mut().try_for_each(|having| self.expr(having))?;
        select.windows.iter_mut().try_for_each(|(_, window)| self.window(window))
    }

    /// The name of a column that was given none.
    fn name(&self, expr: &Expr, number: usize) -> Ident {
        let name = &item_name(expr, self.source);
        match check_name(name) {
            Ok(()) => ident(name, expr.span),
            Err(_) => ident(&format!("Name_exp_{number}"), expr.span),
        }
    }

    fn table(&self, table: &mut TableRef) -> Result<(), SqlError> {
        match table {
            TableRef::Table { name, .. } => {
                if let Some(database) = self.notes.databases.get(&name.name.span.into()) {
                    name.database = Some(ident(database, name.name.span));
                }
                Ok(())
            }
            TableRef::Derived { query, .. } => self.query(query, Columns::Renamed),
            TableRef::Join(join) => {
                self.table(&mut join.left)?;
                self.table(&mut join.right)?;
                if let JoinCondition::On(on) = &mut join.condition {
                    return self.expr(on);
                }
                if let Some(pairs) = self.notes.joins.get(&first_table(&join.right)) {
                    let mut equal: Vec<Expr> = pairs
                        .iter()
                        .map(|(left, right)| match join.kind {
                            JoinKind::Right => equality(right, left),
                            JoinKind::Inner | JoinKind::Left => equality(left, right),
                        })
                        .collect();
                    join.condition = match equal.len() {
                        0 => JoinCondition::None,
                        1 => JoinCondition::On(equal.swap_remove(0)),
                        _ => JoinCondition::On(Expr { kind: ExprKind::And(equal), span: Span::default() }),
                    };
                }
                Ok(())
            }
        }
    }

    /// A number or a name that means a select item becomes what that is, unless rows are gathered before they are sorted.
    fn order(&self, order: &mut [OrderItem], select: &Select) -> Result<(), SqlError> {
        let is_aggregate = |item: &SelectItem| match item {
            SelectItem::Expr { expr, .. } => expr.has_aggregate(),
            SelectItem::Wildcard { .. } => false,
        };
        let gathers = select.distinct || !select.group_by.is_empty() || select.items.iter().any(is_aggregate);
        for key in order {
            if let Some(item) = at_position(&key.expr, &select.items) {
                key.expr = item;
                continue;
            }
            if let ExprKind::Column { table: None, column, .. } = &key.expr.kind {
                let named = select.items.iter().find_map(|item| match item {
                    SelectItem::Expr { expr, alias: Some(alias) } if names::eq(&alias.name, &column.name) => {
                        Some(expr)
                    }
                    _ => None,
                });
                if let Some(item) = named {
                    let is_own_name = matches!(&item.kind, ExprKind::Column { column: of, .. }
                        if names::eq(&of.name, &column.name));
                    if is_own_name || !gathers {
                        key.expr = as_key(item);
                    }
                    continue;
                }
            }
            self.expr(&mut key.expr)?;
        }
        Ok(())
    }

    fn window(&self, window: &mut WindowSpec) -> Result<(), SqlError> {
        window.partition_by.iter_mut().try_for_each(|expr| self.expr(expr))?;
        window.order_by.iter_mut().try_for_each(|item| self.expr(&mut item.expr))?;
        let Some(frame) = &mut window.frame else { return Ok(()) };
        for bound in [&mut frame.start, &mut frame.end] {
            if let FrameBound::Preceding(by, _) | FrameBound::Following(by, _) = bound {
                self.expr(by)?;
            }
        }
        Ok(())
    }

    fn over(&self, over: &mut WindowRef) -> Result<(), SqlError> {
        match over {
            WindowRef::Named(_) => Ok(()),
            WindowRef::Inline(window) => self.window(window),
        }
    }

    fn expr(&self, expr: &mut Expr) -> Result<(), SqlError> {
        grow_stack(|| self.expr_here(expr))
    }

    fn expr_here(&self, expr: &mut Expr) -> Result<(), SqlError> {
        match &mut expr.kind {
            ExprKind::Column { .. } => {
                if let Some(of) = self.notes.columns.get(&expr.span.into()) {
                    *expr = column(of, expr.span);
                }
                return Ok(());
            }
            ExprKind::Param(_)
            | ExprKind::UserVariable { .. }
            | ExprKind::AssignVariable { .. }
            | ExprKind::SystemVariable { .. } => {
                return Err(ErrorCode::VIEW_SELECT_VARIABLE.with(&[]));
            }
            ExprKind::Aggregate(call) => {
                call.args.iter_mut().try_for_each(|arg| self.expr(arg))?;
                call.order_by.iter_mut().try_for_each(|item| self.expr(&mut item.expr))?;
                return call.over.iter_mut().try_for_each(|over| self.over(over));
            }
            ExprKind::Window(call) => {
                call.args.iter_mut().try_for_each(|arg| self.expr(arg))?;
                return self.over(&mut call.over);
            }
            ExprKind::Subquery(query) | ExprKind::Exists(query) => {
                return self.query(query, Columns::Unnamed);
            }
            ExprKind::InSubquery { query, .. } | ExprKind::Quantified { query, .. } => {
                self.query(query, Columns::Unnamed)?;
            }
            _ => {}
        }
        expr.children_mut().into_iter().try_for_each(|child| self.expr(child))
    }
}

fn equality(left: &Qualified, right: &Qualified) -> Expr {
    let side = |of: &Qualified| Box::new(column(of, Span::default()));
    let kind = ExprKind::Binary { op: BinaryOp::Eq, left: side(left), right: side(right) };
    Expr { kind, span: Span::default() }
}

/// The name of the column that a number stands for, if the block that begins a query gives it one.
fn name_at_position(key: &Expr, items: &[SelectItem]) -> Option<Expr> {
    let ExprKind::Integer(position) = key.kind else { return None };
    let SelectItem::Expr { alias: Some(alias), .. } =
        items.get(usize::try_from(position).ok()?.checked_sub(1)?)?
    else {
        return None;
    };
    let kind = ExprKind::Column { database: None, table: None, column: alias.clone() };
    Some(Expr { kind, span: key.span })
}

/// The select item that a number stands for.
fn at_position(key: &Expr, items: &[SelectItem]) -> Option<Expr> {
    let ExprKind::Integer(position) = key.kind else { return None };
    match items.get(usize::try_from(position).ok()?.checked_sub(1)?)? {
        SelectItem::Expr { expr, .. } => Some(as_key(expr)),
        SelectItem::Wildcard { .. } => None,
    }
}

/// A select item as a key of GROUP BY or ORDER BY. An integer would be a position there: as in MySQL, it becomes a text.
fn as_key(item: &Expr) -> Expr {
    match item.kind {
        ExprKind::Integer(_) => {
            let kind = ExprKind::String { value: String::new(), charset: None };
            Expr { kind, span: item.span }
        }
        _ => item.clone(),
    }
}

/// 1166 for what is no name of a column.
pub fn check_name(name: &str) -> Result<(), SqlError> {
    let is_wrong = name.is_empty() || name.ends_with(' ') || name.chars().count() > MAX_NAME_LEN;
    if is_wrong { Err(ErrorCode::WRONG_COLUMN_NAME.with(&[&name])) } else { Ok(()) }
}
