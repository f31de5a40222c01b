//! The tables that a query reads, by their names in the text.

use super::needs::Needs;
use crate::parse::ast::*;

/// Walks syntax trees and collects what they need. CTEs in scope are no tables.
pub(super) struct Reader<'n, 'q> {
    pub needs: &'n mut Needs,
    ctes: Vec<&'q str>,
    /// The tables of the queries around.
    around: Vec<Vec<From<'q>>>,
    /// The columns that may be of tables outside of the queries that read them.
    pub columns: Vec<ReadColumn<'q>>,
}

/// A table of a query: what it is called, and its name if it is a stored one.
type From<'q> = (&'q str, Option<&'q ObjectName>);

/// A column as the text names it.
pub(super) struct ReadColumn<'q> {
    pub table: Option<&'q Ident>,
    pub column: &'q Ident,
    /// The stored tables of the queries around: it is of one of these if one has such a column.
    pub inner: Vec<&'q ObjectName>,
}

impl<'n, 'q> Reader<'n, 'q> {
    pub fn new(needs: &'n mut Needs) -> Self {
        Self { needs, ctes: Vec::new(), around: Vec::new(), columns: Vec::new() }
    }

    pub fn query(&mut self, query: &'q Query) {
        let before = self.ctes.len();
        let mut tables = Vec::new();
        tables_of(&query.body, &mut tables);
        self.around.push(tables);
        if let Some(with) = &query.with {
            self.with(with);
        }
        let locking = query.locks.iter().find(|lock| lock.exclusive);
        self.body(&query.body, locking);
        query.order_by.iter().for_each(|item| self.expr(&item.expr));
        self.limit(query.limit.as_ref());
        self.around.pop();
        self.ctes.truncate(before);
    }

    /// Brings CTEs into scope until the reader ends.
    pub fn with(&mut self, with: &'q With) {
        for cte in &with.ctes {
            if with.recursive {
                self.ctes.push(&cte.name.name);
            }
            self.query(&cte.query);
            self.ctes.push(&cte.name.name);
        }
    }

    pub fn limit(&mut self, limit: Option<&'q Limit>) {
        if let Some(limit) = limit {
            self.expr(&limit.count);
            limit.offset.iter().for_each(|offset| self.expr(offset));
        }
    }

    fn body(&mut self, body: &'q QueryBody, locking: Option<&'q LockClause>) {
        match body {
            QueryBody::Select(select) => self.select(select, locking),
            QueryBody::SetOperation { op: _, all: _, left, right } => {
                self.body(left, locking);
                self.body(right, locking);
            }
            QueryBody::Values(rows) => rows.iter().flatten().for_each(|value| self.expr(value)),
            QueryBody::Table(name) => self.table(name, None, locking),
            QueryBody::Parenthesized(query) => self.query(query),
        }
    }

    fn select(&mut self, select: &'q Select, locking: Option<&'q LockClause>) {
        select.from.iter().for_each(|table| self.table_ref(table, locking));
        for item in &select.items {
            match item {
                SelectItem::Wildcard { .. } => {}
                SelectItem::Expr { expr, alias: _ } => self.expr(expr),
            }
        }
        select.filter.iter().chain(&select.group_by).chain(&select.having).for_each(|expr| self.expr(expr));
        select.windows.iter().for_each(|(_, window)| self.window(window));
    }

    pub fn table_ref(&mut self, table: &'q TableRef, locking: Option<&'q LockClause>) {
        match table {
            TableRef::Table { name, alias, hints: _ } => self.table(name, alias.as_ref(), locking),
            TableRef::Derived { query, .. } => self.query(query),
            TableRef::Join(join) => {
                self.table_ref(&join.left, locking);
                self.table_ref(&join.right, locking);
                self.join_condition(&join.condition);
            }
        }
    }

    /// What a table of an UPDATE of several reads, but for the table itself.
    pub fn table_ref_of_columns(&mut self, table: &'q TableRef) {
        match table {
            TableRef::Table { .. } => {}
            TableRef::Derived { query, .. } => self.query(query),
            TableRef::Join(join) => {
                self.table_ref_of_columns(&join.left);
                self.table_ref_of_columns(&join.right);
                self.join_condition(&join.condition);
            }
        }
    }

    fn join_condition(&mut self, condition: &'q JoinCondition) {
        match condition {
            JoinCondition::On(expr) => self.expr(expr),
            JoinCondition::None | JoinCondition::Using(_) | JoinCondition::Natural => {}
        }
    }

    fn table(&mut self, name: &'q ObjectName, alias: Option<&'q Ident>, locking: Option<&'q LockClause>) {
        let is_cte =
            name.database.is_none() && self.ctes.iter().any(|cte| cte.eq_ignore_ascii_case(&name.name.name));
        if is_cte {
            return;
        }
        self.needs.read(name);
        let called = alias.unwrap_or(&name.name);
        let is_locked = |lock: &LockClause| {
            lock.of.is_empty() || lock.of.iter().any(|of| of.name.name.eq_ignore_ascii_case(&called.name))
        };
        if locking.is_some_and(is_locked) {
            self.needs.lock_rows(name);
        }
    }

    fn window(&mut self, window: &'q WindowSpec) {
        window.partition_by.iter().for_each(|expr| self.expr(expr));
        window.order_by.iter().for_each(|item| self.expr(&item.expr));
        let Some(frame) = &window.frame else { return };
        for bound in [&frame.start, &frame.end] {
            match bound {
                FrameBound::Preceding(expr, _) | FrameBound::Following(expr, _) => self.expr(expr),
                FrameBound::UnboundedPreceding | FrameBound::CurrentRow | FrameBound::UnboundedFollowing => {}
            }
        }
    }

    fn over(&mut self, over: &'q WindowRef) {
        match over {
            WindowRef::Named(_) => {}
            WindowRef::Inline(window) => self.window(window),
        }
    }

    fn column(&mut self, table: Option<&'q Ident>, column: &'q Ident) {
        let around = self.around.iter().flatten();
        let is_inner = table
            .is_some_and(|table| around.clone().any(|(called, _)| called.eq_ignore_ascii_case(&table.name)));
        if !is_inner {
            let inner = around.filter_map(|(_, name)| *name).collect();
            self.columns.push(ReadColumn { table, column, inner });
        }
    }

    pub fn exprs(&mut self, exprs: impl IntoIterator<Item = &'q Expr>) {
        exprs.into_iter().for_each(|expr| self.expr(expr));
    }

    pub fn expr(&mut self, expr: &'q Expr) {
        use ExprKind as K;
        match &expr.kind {
            K::Null
            | K::Bool(_)
            | K::Integer(_)
            | K::Decimal(_)
            | K::Float(_)
            | K::String { .. }
            | K::Bytes(_)
            | K::Hybrid { .. }
            | K::Temporal { .. }
            | K::Param(_)
            | K::SystemVariable { .. }
            | K::UserVariable(_)
            | K::Unsupported(_)
            | K::Default(_) => {}
            K::Column { table, column, .. } => self.column(table.as_ref(), column),
            // What a row would have had counts as reading the column.
            K::InsertedValue(column) => {
                self.columns.push(ReadColumn { table: None, column, inner: Vec::new() });
            }
            K::Unary { expr, .. }
            | K::Is { expr, .. }
            | K::Cast { expr, .. }
            | K::ConvertUsing { expr, .. }
            | K::Collate { expr, .. }
            | K::Extract { expr, .. }
            | K::AssignVariable { value: expr, .. } => self.expr(expr),
            K::Binary { left, right, .. } => self.exprs([&**left, &**right]),
            K::Regexp { expr, pattern, .. } => self.exprs([&**expr, &**pattern]),
            K::DateArithmetic { expr, amount, .. } => self.exprs([&**expr, &**amount]),
            K::TimestampDiff { from, to, .. } => self.exprs([&**from, &**to]),
            K::Between { expr, low, high, .. } => self.exprs([&**expr, &**low, &**high]),
            K::And(parts) | K::Or(parts) | K::Row(parts) | K::Function { args: parts, .. } => {
                self.exprs(parts);
            }
            K::InList { expr, list, .. } => {
                self.expr(expr);
                self.exprs(list);
            }
            K::Like { expr, pattern, escape, .. } => {
                self.exprs([&**expr, &**pattern]);
                self.exprs(escape.as_deref());
            }
            K::Trim { what, expr, .. } => {
                self.expr(expr);
                self.exprs(what.as_deref());
            }
            K::Case { operand, branches, otherwise } => {
                self.exprs(operand.as_deref());
                branches.iter().for_each(|(when, then)| self.exprs([when, then]));
                self.exprs(otherwise.as_deref());
            }
            K::Aggregate(call) => {
                self.exprs(&call.args);
                call.order_by.iter().for_each(|item| self.expr(&item.expr));
                call.over.iter().for_each(|over| self.over(over));
            }
            K::Window(call) => {
                self.exprs(&call.args);
                self.over(&call.over);
            }
            K::Subquery(query) | K::Exists(query) => self.query(query),
            K::InSubquery { expr, query, .. } | K::Quantified { left: expr, query, .. } => {
                self.expr(expr);
                self.query(query);
            }
        }
    }
}

/// The tables that a query's blocks read, but for those of their subqueries.
fn tables_of<'q>(body: &'q QueryBody, to: &mut Vec<From<'q>>) {
    match body {
        QueryBody::Select(select) => select.from.iter().for_each(|table| tables_from(table, to)),
        QueryBody::SetOperation { op: _, all: _, left, right } => {
            tables_of(left, to);
            tables_of(right, to);
        }
        QueryBody::Table(name) => to.push((&name.name.name, Some(name))),
        // Queries of their own.
        QueryBody::Values(_) | QueryBody::Parenthesized(_) => {}
    }
}

fn tables_from<'q>(table: &'q TableRef, to: &mut Vec<From<'q>>) {
    match table {
        TableRef::Table { name, alias, .. } => {
            to.push((&alias.as_ref().unwrap_or(&name.name).name, Some(name)));
        }
        TableRef::Derived { alias, .. } => to.extend(alias.as_ref().map(|alias| (&*alias.name, None))),
        TableRef::Join(join) => {
            tables_from(&join.left, to);
            tables_from(&join.right, to);
        }
    }
}
