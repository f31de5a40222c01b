//! Queries in MySQL's canonical text.

use super::Names;
use super::expr::Printer;
use crate::parse::ast::*;

impl Printer<'_> {
    /// A subquery of an expression, in parentheses.
    pub fn subquery(&mut self, query: &Query) {
        let around = std::mem::replace(&mut self.in_expression, true);
        self.text.push('(');
        self.query(query);
        self.text.push(')');
        self.in_expression = around;
    }

    pub fn query(&mut self, query: &Query) {
        if let Some(with) = &query.with {
            self.put(if with.recursive { "with recursive " } else { "with " });
            for (at, cte) in with.ctes.iter().enumerate() {
                self.comma(at);
                self.name(&cte.name.name);
                self.column_names(&cte.columns);
                self.put(" as (");
                let around = std::mem::replace(&mut self.in_expression, false);
                self.query(&cte.query);
                self.in_expression = around;
                self.text.push(')');
            }
            self.text.push(' ');
        }
        let needs = match &query.body {
            QueryBody::Parenthesized(inner) => {
                let (is_ordered, is_limited) = (!query.order_by.is_empty(), query.limit.is_some());
                let inner_is = !inner.order_by.is_empty() || inner.limit.is_some();
                (is_ordered || is_limited) && inner_is || query.with.is_some() && inner.with.is_some()
            }
            _ => false,
        };
        if needs {
            self.text.push('(');
        }
        self.body(&query.body);
        if needs {
            self.text.push(')');
        }
        if !query.order_by.is_empty() {
            self.put(" order by ");
            self.order(&query.order_by);
        }
        self.limit(query.limit.as_ref());
    }

    fn comma(&mut self, at: usize) {
        if at > 0 {
            self.text.push(',');
        }
    }

    /// ` (`a`,`b`)`, if there are any.
    fn column_names(&mut self, names: &[Ident]) {
        if names.is_empty() {
            return;
        }
        self.put(" (");
        for (at, name) in names.iter().enumerate() {
            self.comma(at);
            self.name(&name.name);
        }
        self.text.push(')');
    }

    fn order(&mut self, items: &[OrderItem]) {
        for (at, item) in items.iter().enumerate() {
            self.comma(at);
            self.value(&item.expr);
            if item.descending {
                self.put(" desc");
            }
        }
    }

    fn limit(&mut self, limit: Option<&Limit>) {
        let Some(limit) = limit else { return };
        self.put(" limit ");
        if let Some(offset) = &limit.offset {
            self.value(offset);
            self.text.push(',');
        }
        self.value(&limit.count);
    }

    fn body(&mut self, body: &QueryBody) {
        match body {
            QueryBody::Select(select) => self.select(select),
            QueryBody::SetOperation { op, all, left, right } => {
                self.side(left, true, *op);
                self.put(match op {
                    SetOperator::Union => " union ",
                    SetOperator::Except => " except ",
                    SetOperator::Intersect => " intersect ",
                });
                if *all {
                    self.put("all ");
                }
                self.side(right, false, *op);
            }
            QueryBody::Values(rows) => {
                self.put("values ");
                for (at, row) in rows.iter().enumerate() {
                    self.comma(at);
                    self.call("row", row);
                }
            }
            // What is kept has none: `qualify` refuses it.
            QueryBody::JsonTable(_) => {}
            QueryBody::Table(name) => {
                self.put("table ");
                self.table_name(name);
            }
            QueryBody::Parenthesized(query) => self.query(query),
        }
    }

    /// A side of a set operation: in parentheses if it would be read otherwise without.
    fn side(&mut self, body: &QueryBody, is_left: bool, op: SetOperator) {
        let binds_tighter =
            |inner: SetOperator| inner == SetOperator::Intersect && op != SetOperator::Intersect;
        let needs = match body {
            QueryBody::Parenthesized(query) => {
                query.with.is_some()
                    || !query.order_by.is_empty()
                    || query.limit.is_some()
                    || matches!(query.body, QueryBody::SetOperation { .. } | QueryBody::Parenthesized(_))
            }
            QueryBody::SetOperation { op: inner, .. } => {
                !binds_tighter(*inner) && (!is_left || op == SetOperator::Intersect && *inner != op)
            }
            _ => false,
        };
        if needs {
            self.text.push('(');
        }
        self.body(body);
        if needs {
            self.text.push(')');
        }
    }

    fn select(&mut self, select: &Select) {
        self.put("select ");
        if select.straight_join {
            self.put("straight_join ");
        }
        if select.distinct {
            self.put("distinct ");
        }
        for (at, item) in select.items.iter().enumerate() {
            self.comma(at);
            self.item(item);
        }
        if !select.from.is_empty() {
            self.put(" from ");
            // A list is joins from the left.
            self.put(&"(".repeat(select.from.len() - 1));
            for (at, table) in select.from.iter().enumerate() {
                if at > 0 {
                    self.put(" join ");
                }
                self.table_ref(table);
                if at > 0 {
                    self.text.push(')');
                }
            }
        } else if select.filter.is_some() {
            self.put(" from DUAL ");
        }
        if let Some(filter) = &select.filter {
            self.put(" where ");
            self.condition(filter, false);
        }
        if !select.group_by.is_empty() {
            self.put(" group by ");
            self.list(&select.group_by, ",");
            if select.rollup {
                self.put(" with rollup");
            }
        }
        if let Some(having) = &select.having {
            self.put(" having ");
            self.condition(having, false);
        }
        for (at, (name, window)) in select.windows.iter().enumerate() {
            self.put(if at == 0 { " window " } else { ", " });
            self.name(&name.name);
            self.put(" AS ");
            self.window(window);
        }
    }

    fn item(&mut self, item: &SelectItem) {
        match item {
            SelectItem::Wildcard { table, .. } => {
                if let Some(table) = table {
                    self.name(&table.name);
                    self.text.push('.');
                }
                self.text.push('*');
            }
            SelectItem::Expr { expr, alias } => {
                let around = std::mem::replace(&mut self.in_expression, false);
                self.value(expr);
                self.in_expression = around;
                if let Some(alias) = alias {
                    self.put(" AS ");
                    self.name(&alias.name);
                }
            }
        }
    }

    fn table_name(&mut self, name: &ObjectName) {
        let left_out = match self.style.names {
            Names::Qualified { left_out } => left_out,
            Names::Bare => None,
        };
        if let Some(database) = name.database.as_ref().filter(|database| left_out != Some(&*database.name)) {
            self.name(&database.name);
            self.text.push('.');
        }
        self.name(&name.name.name);
    }

    fn table_ref(&mut self, table: &TableRef) {
        match table {
            TableRef::Table { name, alias, hints } => {
                self.table_name(name);
                let is_selection = |hint: &&IndexHint| hint.kind == IndexHintKind::Partition;
                hints.iter().filter(is_selection).for_each(|hint| self.index_hint(hint));
                if let Some(alias) = alias {
                    self.text.push(' ');
                    self.name(&alias.name);
                }
                hints.iter().filter(|hint| !is_selection(hint)).for_each(|hint| self.index_hint(hint));
            }
            TableRef::Derived { query, alias, columns, lateral, .. } => {
                if *lateral {
                    self.put("lateral ");
                }
                self.text.push('(');
                let around = std::mem::replace(&mut self.in_expression, false);
                self.query(query);
                self.in_expression = around;
                self.text.push(')');
                if let Some(alias) = alias {
                    self.text.push(' ');
                    self.name(&alias.name);
                }
                self.column_names(columns);
            }
            TableRef::Join(join) => self.join(join),
        }
    }

    /// A right join is the left join of its sides exchanged.
    fn join(&mut self, join: &Join) {
        let (left, right, verb) = match join.kind {
            JoinKind::Inner => (&join.left, &join.right, " join "),
            JoinKind::Left => (&join.left, &join.right, " left join "),
            JoinKind::Right => (&join.right, &join.left, " left join "),
        };
        self.text.push('(');
        self.table_ref(left);
        self.put(verb);
        self.table_ref(right);
        if let JoinCondition::On(on) = &join.condition {
            self.put(" on(");
            self.condition(on, false);
            self.text.push(')');
        }
        self.text.push(')');
    }

    fn index_hint(&mut self, hint: &IndexHint) {
        self.put(match hint.kind {
            IndexHintKind::Partition => " PARTITION (",
            IndexHintKind::Use => " USE INDEX (",
            IndexHintKind::Ignore => " IGNORE INDEX (",
            IndexHintKind::Force => " FORCE INDEX (",
        });
        for (at, index) in hint.indexes.iter().enumerate() {
            self.comma(at);
            match index.name.eq_ignore_ascii_case("PRIMARY") {
                true => self.put("PRIMARY"),
                false => self.name(&index.name),
            }
        }
        self.text.push(')');
    }

    pub fn aggregate(&mut self, call: &AggregateCall) {
        let lower = call.name.to_lowercase();
        self.put(match lower.as_str() {
            "stddev" | "stddev_pop" => "std",
            "var_pop" => "variance",
            name => name,
        });
        self.text.push('(');
        if call.distinct {
            self.put("distinct ");
        }
        if call.args.is_empty() {
            self.text.push('0');
        }
        self.list(&call.args, ",");
        for (at, item) in call.order_by.iter().enumerate() {
            self.put(if at == 0 { " order by " } else { "," });
            self.value(&item.expr);
            self.put(if item.descending { " DESC" } else { " ASC" });
        }
        if lower == "group_concat" {
            self.put(" separator ");
            let separator = call.separator.as_deref().unwrap_or(",").to_owned();
            self.quoted(&separator);
        }
        self.text.push(')');
        call.over.iter().for_each(|over| self.over(over));
    }

    pub fn window_call(&mut self, call: &WindowCall) {
        let name = call.name.to_lowercase();
        self.call(&name, &call.args);
        if call.from_last {
            self.put(" FROM LAST");
        }
        if call.ignore_nulls {
            self.put(" IGNORE NULLS");
        }
        self.over(&call.over);
    }

    fn over(&mut self, over: &WindowRef) {
        self.put(" OVER ");
        match over {
            WindowRef::Named(name) => self.name(&name.name),
            WindowRef::Inline(window) => self.window(window),
        }
    }

    fn window(&mut self, window: &WindowSpec) {
        self.text.push('(');
        if let Some(base) = &window.base {
            self.name(&base.name);
            self.text.push(' ');
        }
        if !window.partition_by.is_empty() {
            self.put("PARTITION BY ");
            self.list(&window.partition_by, ",");
            self.text.push(' ');
        }
        if !window.order_by.is_empty() {
            self.put("ORDER BY ");
            self.order(&window.order_by);
            self.text.push(' ');
        }
        if let Some(frame) = &window.frame {
            self.put(match frame.unit {
                FrameUnit::Rows => "ROWS BETWEEN ",
                FrameUnit::Range => "RANGE BETWEEN ",
            });
            self.bound(&frame.start);
            self.put(" AND ");
            self.bound(&frame.end);
        }
        self.put(") ");
    }

    fn bound(&mut self, bound: &FrameBound) {
        match bound {
            FrameBound::UnboundedPreceding => self.put("UNBOUNDED PRECEDING"),
            FrameBound::UnboundedFollowing => self.put("UNBOUNDED FOLLOWING"),
            FrameBound::CurrentRow => self.put("CURRENT ROW"),
            FrameBound::Preceding(by, unit) | FrameBound::Following(by, unit) => {
                match unit {
                    Some(unit) => {
                        self.put("INTERVAL ");
                        self.value(by);
                        self.text.push(' ');
                        self.put(unit.name());
                    }
                    None => self.value(by),
                }
                self.put(match bound {
                    FrameBound::Preceding(..) => " PRECEDING",
                    _ => " FOLLOWING",
                });
            }
        }
    }
}
