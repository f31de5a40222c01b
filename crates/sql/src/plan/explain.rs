//! A bound query as a tree of text, for EXPLAIN.

use std::fmt::Write;

use avocet_types::expr::Expr;

use crate::plan::*;

/// The query as an indented tree, outermost step first.
pub fn explain(query: &BoundQuery) -> String {
    let mut printer = Printer { query, out: String::new() };
    printer.query_expr(&query.body, 0);
    printer.out
}

struct Printer<'a> {
    query: &'a BoundQuery,
    out: String,
}

impl Printer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{:indent$}-> {text}", "", indent = depth * 4);
    }

    fn name(&self, id: ColumnId) -> String {
        let info = &self.query.columns[id];
        match &info.origin {
            Some(origin) => format!("{}.{}", origin.alias, origin.table.columns[origin.column].name),
            None if info.name.is_empty() => format!("#{}", id.0),
            None => info.name.to_string(),
        }
    }

    fn expr(&self, expr: &Expr) -> String {
        expr.sql(|index| self.name(ColumnId(index as u32))).to_string()
    }

    fn list(&self, exprs: impl IntoIterator<Item = impl std::borrow::Borrow<Expr>>) -> String {
        exprs.into_iter().map(|e| self.expr(e.borrow())).collect::<Vec<_>>().join(", ")
    }

    fn query_expr(&mut self, query: &QueryExpr, mut depth: usize) {
        if let Some(limit) = &query.limit {
            let offset =
                limit.offset.as_ref().map(|o| format!(", offset {}", self.expr(o))).unwrap_or_default();
            let text = format!("Limit: {} row(s){offset}", self.expr(&limit.count));
            self.line(depth, &text);
            depth += 1;
        }
        if !query.order_by.is_empty() {
            let keys = query
                .order_by
                .iter()
                .map(|k| format!("{}{}", self.name(k.column), if k.descending { " DESC" } else { "" }));
            let text = format!("Sort: {}", keys.collect::<Vec<_>>().join(", "));
            self.line(depth, &text);
            depth += 1;
        }
        match &query.body {
            QueryBody::Select(select) => self.select(select, depth),
            QueryBody::SetOperation(set) => {
                let text = format!("{:?}{}", set.op, if set.all { " all" } else { "" });
                self.line(depth, &text);
                self.query_expr(&set.left, depth + 1);
                self.query_expr(&set.right, depth + 1);
            }
            QueryBody::Values(values) => {
                let text = format!("Rows fetched before execution: {}", values.rows.len());
                self.line(depth, &text);
            }
            QueryBody::Nested(inner) => self.query_expr(inner, depth),
        }
        for cte in &query.ctes {
            self.cte(cte, depth);
        }
    }

    fn cte(&mut self, cte: &Cte, depth: usize) {
        match &cte.body {
            CteBody::Plain(body) => {
                self.line(depth, &format!("Materialize CTE {}", cte.name));
                self.query_expr(body, depth + 1);
            }
            CteBody::Recursive { seed, step, .. } => {
                self.line(depth, &format!("Materialize recursive CTE {}", cte.name));
                self.query_expr(seed, depth + 1);
                self.line(depth + 1, "Repeat until convergence");
                self.query_expr(step, depth + 2);
            }
        }
    }

    fn select(&mut self, select: &Select, mut depth: usize) {
        if select.distinct {
            self.line(depth, "Deduplicate");
            depth += 1;
        }
        if !select.windows.is_empty() {
            let names: Vec<_> = select.windows.iter().map(|w| format!("{:?}", w.kind)).collect();
            self.line(depth, &format!("Window: {}", names.join(", ")));
            depth += 1;
        }
        if let Some(having) = &select.having {
            let text = format!("Filter: {}", self.expr(having));
            self.line(depth, &text);
            depth += 1;
        }
        if let Some(aggregation) = &select.aggregation {
            let calls =
                aggregation.aggregates.iter().map(|a| format!("{:?}({})", a.function, self.list(&a.args)));
            let calls = calls.collect::<Vec<_>>().join(", ");
            let keys = self.list(aggregation.keys.iter().map(|k| &k.expr));
            let text = if keys.is_empty() {
                format!("Aggregate: {calls}")
            } else {
                format!("Group by {keys}: {calls}")
            };
            self.line(depth, &text);
            depth += 1;
        }
        if let Some(filter) = &select.filter {
            let text = format!("Filter: {}", self.expr(filter));
            self.line(depth, &text);
            depth += 1;
        }
        self.from(&select.from, depth);
        for subquery in &select.subqueries {
            let kind = if subquery.outer.is_empty() { "run only once" } else { "dependent" };
            self.line(depth, &format!("Select #{} (subquery; {kind})", subquery.id.0));
            self.query_expr(&subquery.query, depth + 1);
        }
    }

    fn from(&mut self, from: &From, depth: usize) {
        match from {
            From::Dual => self.line(depth, "Rows fetched before execution"),
            From::Table(scan) => {
                let columns: Vec<_> = scan
                    .columns
                    .iter()
                    .map(|(position, _)| scan.table.columns[*position].name.as_str())
                    .collect();
                let text = format!("Table scan on {} ({})", scan.alias, columns.join(", "));
                self.line(depth, &text);
            }
            From::Derived(derived) => {
                self.line(depth, &format!("Derived table {}", derived.alias));
                self.query_expr(&derived.query, depth + 1);
            }
            From::Cte(reference) => self.line(depth, &format!("Table scan on {}", reference.alias)),
            From::Join(join) => {
                let kind = if join.kind == JoinKind::Inner { "Inner join" } else { "Left join" };
                let on = join.on.as_ref().map(|on| format!(" on {}", self.expr(on))).unwrap_or_default();
                self.line(depth, &format!("{kind}{on}"));
                self.from(&join.left, depth + 1);
                self.from(&join.right, depth + 1);
            }
        }
    }
}
