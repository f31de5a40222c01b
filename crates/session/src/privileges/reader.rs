//! What a query reads, told from its text.

use avocet_sql::parse::ast::*;
use avocet_types::names;

use super::needs::Needs;
use super::reads::Rows;

/// Walks syntax trees and collects what they need. CTEs in scope are no tables.
pub(super) struct Reader<'n, 'q> {
    pub needs: &'n mut Needs,
    ctes: Vec<(&'q str, Option<Vec<String>>)>,
    /// The query whose expressions are walked.
    block: usize,
    /// The queries in whose HAVING it is.
    havings: Vec<Having<'q>>,
    /// What is walked is of a HAVING itself, outside of subqueries and aggregates.
    in_having: bool,
}

/// A query whose HAVING is walked: names in that mean what its select list and GROUP BY have, or else something further out.
struct Having<'q> {
    block: usize,
    select: &'q Select,
}

impl Having<'_> {
    fn is_alias(&self, table: Option<&Ident>, column: &Ident) -> bool {
        let is_meant = |item: &SelectItem| match item {
            SelectItem::Expr { alias: Some(alias), .. } => names::eq(&alias.name, &column.name),
            _ => false,
        };
        table.is_none() && self.select.items.iter().any(is_meant)
    }

    /// Whether it may have a column of its tables of this name.
    fn may_show(&self, column: &Ident) -> bool {
        let is_named = |expr: &Expr| match &expr.kind {
            ExprKind::Column { column: named, .. } => names::eq(&named.name, &column.name),
            _ => false,
        };
        let items = self.select.items.iter().any(|item| match item {
            SelectItem::Wildcard { .. } => true,
            SelectItem::Expr { expr, .. } => is_named(expr),
        });
        items || self.select.group_by.iter().any(is_named)
    }
}

impl<'n, 'q> Reader<'n, 'q> {
    /// Of expressions and queries in a block.
    pub fn new(needs: &'n mut Needs, block: usize) -> Self {
        Self { needs, ctes: Vec::new(), block, havings: Vec::new(), in_having: false }
    }

    /// The query's block.
    pub fn query(&mut self, query: &'q Query) -> usize {
        let before = self.ctes.len();
        let around = self.block;
        if let Some(with) = &query.with {
            self.with(with);
        }
        let locking = &*query.locks;
        let block = self.needs.reads.block(Some(around));
        self.block = block;
        let in_having = std::mem::take(&mut self.in_having);
        self.body(&query.body, locking);
        match &query.body {
            QueryBody::Select(select) => {
                query.order_by.iter().for_each(|item| self.named(&item.expr, select))
            }
            // Names mean the columns of the result.
            _ => {
                let by_name =
                    |item: &&OrderItem| matches!(item.expr.kind, ExprKind::Column { table: None, .. });
                query.order_by.iter().filter(|item| !by_name(item)).for_each(|item| self.expr(&item.expr));
            }
        }
        self.limit(query.limit.as_ref());
        self.block = around;
        self.in_having = in_having;
        self.ctes.truncate(before);
        block
    }

    /// Brings CTEs into scope until the reader ends.
    pub fn with(&mut self, with: &'q With) {
        for cte in &with.ctes {
            let names = columns_of(&cte.columns, &cte.query);
            if with.recursive {
                self.ctes.push((&cte.name.name, names.clone()));
            }
            self.query(&cte.query);
            self.ctes.push((&cte.name.name, names));
        }
    }

    pub fn limit(&mut self, limit: Option<&'q Limit>) {
        if let Some(limit) = limit {
            self.expr(&limit.count);
            limit.offset.iter().for_each(|offset| self.expr(offset));
        }
    }

    fn body(&mut self, body: &'q QueryBody, locking: &'q [LockClause]) {
        match body {
            QueryBody::Select(select) => self.select(select, locking),
            QueryBody::SetOperation { op: _, all: _, left, right } => {
                let around = self.block;
                for side in [left, right] {
                    self.block = self.needs.reads.block(Some(around));
                    self.body(side, locking);
                }
                self.block = around;
            }
            QueryBody::JsonTable(table) => self.expr(&table.document),
            QueryBody::Values(rows) => rows.iter().flatten().for_each(|value| self.expr(value)),
            QueryBody::Table(name) => {
                self.table(name, None, locking);
                self.needs.reads.column(self.block, None, None, None);
            }
            QueryBody::Parenthesized(query) => {
                self.query(query);
            }
        }
    }

    fn select(&mut self, select: &'q Select, locking: &'q [LockClause]) {
        select.from.iter().for_each(|table| self.table_ref(table, locking));
        select.from.iter().for_each(|table| self.conditions(table));
        let alias = |item: &SelectItem| match item {
            SelectItem::Expr { alias: Some(alias), .. } => Some(alias.name.clone()),
            _ => None,
        };
        let aliases: Vec<_> = select.items.iter().filter_map(alias).collect();
        if !aliases.is_empty() {
            self.needs.reads.source(self.block, "", Rows::Derived(Some(aliases)));
        }
        for item in &select.items {
            match item {
                SelectItem::Wildcard { database, table, span: _ } => {
                    let name = |ident: &'q Option<Ident>| ident.as_ref().map(|ident| &*ident.name);
                    self.needs.reads.column(self.block, name(database), name(table), None);
                }
                SelectItem::Expr { expr, alias: _ } => self.expr(expr),
            }
        }
        select.filter.iter().chain(&select.group_by).for_each(|expr| self.expr(expr));
        if let Some(having) = &select.having {
            self.havings.push(Having { block: self.block, select });
            self.in_having = true;
            self.expr(having);
            self.in_having = false;
            self.havings.pop();
        }
        select.windows.iter().for_each(|(_, window)| self.window(window));
    }

    /// An expression that may be the name of a result's column.
    fn named(&mut self, expr: &'q Expr, select: &'q Select) {
        let alias = |item: &'q SelectItem| match item {
            SelectItem::Expr { alias, .. } => alias.as_ref(),
            SelectItem::Wildcard { .. } => None,
        };
        if let ExprKind::Column { database: None, table: None, column } = &expr.kind
            && select.items.iter().filter_map(alias).any(|alias| names::eq(&alias.name, &column.name))
        {
            return;
        }
        self.expr(expr);
    }

    pub fn table_ref(&mut self, table: &'q TableRef, locking: &'q [LockClause]) {
        match table {
            TableRef::Table { name, alias, hints: _ } => self.table(name, alias.as_ref(), locking),
            TableRef::Derived { .. } => self.derived(table),
            TableRef::Join(join) => {
                self.table_ref(&join.left, locking);
                self.table_ref(&join.right, locking);
            }
        }
    }

    fn derived(&mut self, table: &'q TableRef) {
        if let TableRef::Derived { query, alias, columns, .. } = table {
            self.query(query);
            if let Some(alias) = alias {
                let rows = Rows::Derived(columns_of(columns, query));
                self.needs.reads.source(self.block, &alias.name, rows);
            }
        }
    }

    /// The derived tables among those of an UPDATE of several.
    pub fn derived_tables(&mut self, table: &'q TableRef) {
        match table {
            TableRef::Table { .. } => {}
            TableRef::Derived { .. } => self.derived(table),
            TableRef::Join(join) => {
                self.derived_tables(&join.left);
                self.derived_tables(&join.right);
            }
        }
    }

    /// What joins read, once all of their tables are known.
    pub fn conditions(&mut self, table: &'q TableRef) {
        let TableRef::Join(join) = table else { return };
        self.conditions(&join.left);
        self.conditions(&join.right);
        match &join.condition {
            JoinCondition::On(expr) => self.expr(expr),
            // As in MySQL, where the columns that tables have in common may be compared by whoever reads others.
            JoinCondition::None | JoinCondition::Using(_) | JoinCondition::Natural => {}
        }
    }

    fn table(&mut self, name: &'q ObjectName, alias: Option<&'q Ident>, locking: &'q [LockClause]) {
        let called = alias.unwrap_or(&name.name);
        let is_cte = |(cte, _): &&(&str, _)| name.database.is_none() && **cte == *name.name.name;
        if let Some((_, columns)) = self.ctes.iter().rev().find(is_cte) {
            let rows = Rows::Derived(columns.clone());
            return self.needs.reads.source(self.block, &called.name, rows);
        }
        self.needs.read(name);
        self.needs.source(self.block, name, &called.name);
        let is_locked =
            |lock: &LockClause| lock.of.is_empty() || lock.of.iter().any(|of| of.name.name == called.name);
        if locking.iter().filter(|lock| lock.exclusive).any(is_locked) {
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

    fn column(&mut self, database: Option<&'q Ident>, table: Option<&'q Ident>, column: &'q Ident) {
        let name = |ident: Option<&'q Ident>| ident.map(|ident| &*ident.name);
        let (database, named) = (name(database), name(table));
        let mut block = Some(self.block);
        while let Some(at) = block {
            let having = self.havings.iter().rev().find(|having| having.block == at);
            match having.filter(|_| self.in_having) {
                Some(having) if having.is_alias(table, column) => return,
                Some(having) if !having.may_show(column) => {
                    // Without groups a subquery of that HAVING reads tables, too.
                    if at != self.block && having.select.group_by.is_empty() {
                        self.needs.reads.column(at, database, named, Some(&column.name));
                    }
                    block = self.needs.reads.around(at);
                }
                _ => return self.needs.reads.column(at, database, named, Some(&column.name)),
            }
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
            | K::UserVariable { .. }
            | K::Unsupported(_)
            | K::Default => {}
            K::DefaultOf { database, table, column } | K::Column { database, table, column } => {
                self.column(database.as_ref(), table.as_ref(), column);
            }
            // What a row would have had counts as reading the column.
            K::InsertedValue { database, table, column } => {
                self.column(database.as_ref(), table.as_ref(), column);
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
            K::JsonValue(call) => self.exprs([&*call.document, &*call.path]),
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
                // ANY_VALUE() is a function to whoever resolves names.
                let in_having = self.in_having;
                self.in_having &= call.name == "ANY_VALUE";
                self.exprs(&call.args);
                call.order_by.iter().for_each(|item| self.expr(&item.expr));
                self.in_having = in_having;
                call.over.iter().for_each(|over| self.over(over));
            }
            K::Window(call) => {
                self.exprs(&call.args);
                self.over(&call.over);
            }
            K::Subquery(query) | K::Exists(query) => {
                self.query(query);
            }
            K::InSubquery { expr, query, .. } | K::Quantified { left: expr, query, .. } => {
                self.expr(expr);
                self.query(query);
            }
        }
    }
}

/// The names of a derived table's columns, if the text tells them: an expression's name is not looked at closely.
fn columns_of(given: &[Ident], query: &Query) -> Option<Vec<String>> {
    if !given.is_empty() {
        return Some(given.iter().map(|column| column.name.clone()).collect());
    }
    let mut body = &query.body;
    let select = loop {
        match body {
            QueryBody::Select(select) => break select,
            QueryBody::SetOperation { left, .. } => body = left,
            QueryBody::Parenthesized(query) => body = &query.body,
            QueryBody::Values(_) | QueryBody::JsonTable(_) | QueryBody::Table(_) => return None,
        }
    };
    let name = |item: &SelectItem| match item {
        SelectItem::Wildcard { .. } => None,
        SelectItem::Expr { alias: Some(alias), .. } => Some(alias.name.clone()),
        SelectItem::Expr { expr, alias: None } => match &expr.kind {
            ExprKind::Column { column, .. } => Some(column.name.clone()),
            _ => Some(String::new()),
        },
    };
    select.items.iter().map(name).collect()
}
