//! Walking all expressions of a bound query, its subqueries included.

use avocet_types::expr::{Expr, ExprKind};

use crate::plan::*;

/// How many subqueries stand within each other.
pub fn subquery_depth(query: &QueryExpr) -> usize {
    let of_ctes = query.ctes.iter().map(|cte| match &cte.body {
        CteBody::Plain(body) => subquery_depth(body),
        CteBody::Recursive { seed, step, .. } => subquery_depth(seed).max(subquery_depth(step)),
    });
    let of_body = match &query.body {
        QueryBody::Select(select) => {
            let within = select.subqueries.iter().map(|subquery| 1 + subquery_depth(&subquery.query));
            within.max().unwrap_or(0).max(depth_of_from(&select.from))
        }
        QueryBody::SetOperation(set) => subquery_depth(&set.left).max(subquery_depth(&set.right)),
        QueryBody::Values(_) | QueryBody::JsonTable(_) => 0,
        QueryBody::Nested(inner) => subquery_depth(inner),
    };
    of_ctes.max().unwrap_or(0).max(of_body)
}

fn depth_of_from(from: &From) -> usize {
    match from {
        From::Dual | From::Table(_) | From::Cte(_) => 0,
        From::Derived(derived) => subquery_depth(&derived.query),
        From::Join(join) => depth_of_from(&join.left).max(depth_of_from(&join.right)),
    }
}

/// Calls `visit` with each expression of the query, at its top.
pub fn for_each_expr_mut(query: &mut QueryExpr, visit: &mut dyn FnMut(&mut Expr)) {
    for cte in &mut query.ctes {
        match &mut cte.body {
            CteBody::Plain(body) => for_each_expr_mut(body, visit),
            CteBody::Recursive { seed, step, .. } => {
                for_each_expr_mut(seed, visit);
                for_each_expr_mut(step, visit);
            }
        }
    }
    match &mut query.body {
        QueryBody::Select(select) => visit_select(select, visit),
        QueryBody::SetOperation(set) => {
            for_each_expr_mut(&mut set.left, visit);
            for_each_expr_mut(&mut set.right, visit);
        }
        QueryBody::Values(values) => values.rows.iter_mut().flatten().for_each(&mut *visit),
        QueryBody::JsonTable(table) => visit(&mut table.document),
        QueryBody::Nested(inner) => for_each_expr_mut(inner, visit),
    }
    if let Some(limit) = &mut query.limit {
        visit(&mut limit.count);
        limit.offset.iter_mut().for_each(visit);
    }
}

/// Whether something in the query is random, so that its rows are others each time it is run.
pub fn is_volatile(query: &QueryExpr) -> bool {
    let mut found = false;
    for_each_expr_mut(&mut query.clone(), &mut |expr| found |= expr.is_volatile());
    found
}

fn visit_select(select: &mut Select, visit: &mut dyn FnMut(&mut Expr)) {
    visit_from(&mut select.from, visit);
    select.filter.iter_mut().for_each(&mut *visit);
    if let Some(aggregation) = &mut select.aggregation {
        aggregation.keys.iter_mut().for_each(|key| visit(&mut key.expr));
        for aggregate in &mut aggregation.aggregates {
            aggregate.args.iter_mut().for_each(&mut *visit);
            aggregate.order_by.iter_mut().for_each(|(expr, _)| visit(expr));
        }
    }
    select.having.iter_mut().for_each(&mut *visit);
    for window in &mut select.windows {
        visit_window(window, visit);
    }
    select.projection.iter_mut().for_each(|item| visit(&mut item.expr));
    for subquery in &mut select.subqueries {
        visit_subquery(subquery, visit);
    }
}

pub fn visit_window(window: &mut WindowFunction, visit: &mut dyn FnMut(&mut Expr)) {
    window.args.iter_mut().for_each(&mut *visit);
    window.partition_by.iter_mut().for_each(&mut *visit);
    window.order_by.iter_mut().for_each(|(expr, _)| visit(expr));
    if let Some(frame) = &mut window.frame {
        for bound in [&mut frame.start, &mut frame.end] {
            if let FrameBound::Preceding(by) | FrameBound::Following(by) = bound {
                let (Distance::Value(expr) | Distance::Interval(expr, _)) = by;
                visit(expr);
            }
        }
    }
}

pub fn visit_subquery(subquery: &mut Subquery, visit: &mut dyn FnMut(&mut Expr)) {
    match &mut subquery.kind {
        SubqueryKind::Scalar | SubqueryKind::Exists { .. } => {}
        SubqueryKind::In { needles, .. } => needles.iter_mut().for_each(&mut *visit),
        SubqueryKind::Quantified { left, .. } => visit(left),
    }
    for_each_expr_mut(&mut subquery.query, visit);
}

fn visit_from(from: &mut From, visit: &mut dyn FnMut(&mut Expr)) {
    match from {
        From::Dual | From::Table(_) | From::Cte(_) => {}
        From::Derived(derived) => for_each_expr_mut(&mut derived.query, visit),
        From::Join(join) => {
            visit_from(&mut join.left, visit);
            visit_from(&mut join.right, visit);
            join.on.iter_mut().for_each(visit);
        }
    }
}

/// Calls `visit` with each table scan of the query.
pub fn for_each_scan_mut(query: &mut QueryExpr, visit: &mut dyn FnMut(&mut TableScan)) {
    for cte in &mut query.ctes {
        match &mut cte.body {
            CteBody::Plain(body) => for_each_scan_mut(body, visit),
            CteBody::Recursive { seed, step, .. } => {
                for_each_scan_mut(seed, visit);
                for_each_scan_mut(step, visit);
            }
        }
    }
    match &mut query.body {
        QueryBody::Select(select) => {
            scans_of_from(&mut select.from, visit);
            select.subqueries.iter_mut().for_each(|s| for_each_scan_mut(&mut s.query, visit));
        }
        QueryBody::SetOperation(set) => {
            for_each_scan_mut(&mut set.left, visit);
            for_each_scan_mut(&mut set.right, visit);
        }
        QueryBody::Values(_) | QueryBody::JsonTable(_) => {}
        QueryBody::Nested(inner) => for_each_scan_mut(inner, visit),
    }
}

fn scans_of_from(from: &mut From, visit: &mut dyn FnMut(&mut TableScan)) {
    match from {
        From::Dual | From::Cte(_) => {}
        From::Table(scan) => visit(scan),
        From::Derived(derived) => for_each_scan_mut(&mut derived.query, visit),
        From::Join(join) => {
            scans_of_from(&mut join.left, visit);
            scans_of_from(&mut join.right, visit);
        }
    }
}

/// Calls `visit` with the query and each query in it: common table expressions, derived tables, subqueries.
pub fn for_each_query<'q>(query: &'q QueryExpr, visit: &mut dyn FnMut(&'q QueryExpr)) {
    visit(query);
    for cte in &query.ctes {
        match &cte.body {
            CteBody::Plain(body) => for_each_query(body, visit),
            CteBody::Recursive { seed, step, .. } => {
                for_each_query(seed, visit);
                for_each_query(step, visit);
            }
        }
    }
    match &query.body {
        QueryBody::Select(select) => {
            queries_of_from(&select.from, visit);
            select.subqueries.iter().for_each(|s| for_each_query(&s.query, visit));
        }
        QueryBody::SetOperation(set) => {
            for_each_query(&set.left, visit);
            for_each_query(&set.right, visit);
        }
        QueryBody::Values(_) | QueryBody::JsonTable(_) => {}
        QueryBody::Nested(inner) => for_each_query(inner, visit),
    }
}

/// As [`for_each_query`], to be changed; those within a query come first.
pub fn for_each_query_mut(query: &mut QueryExpr, visit: &mut dyn FnMut(&mut QueryExpr)) {
    for cte in &mut query.ctes {
        match &mut cte.body {
            CteBody::Plain(body) => for_each_query_mut(body, visit),
            CteBody::Recursive { seed, step, .. } => {
                for_each_query_mut(seed, visit);
                for_each_query_mut(step, visit);
            }
        }
    }
    match &mut query.body {
        QueryBody::Select(select) => {
            queries_of_from_mut(&mut select.from, visit);
            select.subqueries.iter_mut().for_each(|s| for_each_query_mut(&mut s.query, visit));
        }
        QueryBody::SetOperation(set) => {
            for_each_query_mut(&mut set.left, visit);
            for_each_query_mut(&mut set.right, visit);
        }
        QueryBody::Values(_) | QueryBody::JsonTable(_) => {}
        QueryBody::Nested(inner) => for_each_query_mut(inner, visit),
    }
    visit(query);
}

fn queries_of_from_mut(from: &mut From, visit: &mut dyn FnMut(&mut QueryExpr)) {
    match from {
        From::Dual | From::Table(_) | From::Cte(_) => {}
        From::Derived(derived) => for_each_query_mut(&mut derived.query, visit),
        From::Join(join) => {
            queries_of_from_mut(&mut join.left, visit);
            queries_of_from_mut(&mut join.right, visit);
        }
    }
}

fn queries_of_from<'q>(from: &'q From, visit: &mut dyn FnMut(&'q QueryExpr)) {
    match from {
        From::Dual | From::Table(_) | From::Cte(_) => {}
        From::Derived(derived) => for_each_query(&derived.query, visit),
        From::Join(join) => {
            queries_of_from(&join.left, visit);
            queries_of_from(&join.right, visit);
        }
    }
}

/// Calls `visit` with each block of the query, those of subqueries and derived tables included.
pub fn for_each_select<'q>(query: &'q QueryExpr, visit: &mut dyn FnMut(&'q Select)) {
    for_each_query(query, &mut |query| {
        if let QueryBody::Select(select) = &query.body {
            visit(select);
        }
    });
}

/// Puts values in the place of a subquery's outer columns, in whatever it holds.
pub fn substitute_outer(query: &mut QueryExpr, value: &dyn Fn(ColumnId) -> Option<Expr>) {
    for_each_expr_mut(query, &mut |expr| {
        replace(expr, &mut |part| column_of(part).and_then(value));
    });
    for_each_outer_mut(query, &mut |outer| outer.retain(|id| value(*id).is_none()));
}

/// Calls `visit` with each list of outer columns.
pub fn for_each_outer_mut(query: &mut QueryExpr, visit: &mut dyn FnMut(&mut Vec<ColumnId>)) {
    for cte in &mut query.ctes {
        match &mut cte.body {
            CteBody::Plain(body) => for_each_outer_mut(body, visit),
            CteBody::Recursive { seed, step, .. } => {
                for_each_outer_mut(seed, visit);
                for_each_outer_mut(step, visit);
            }
        }
    }
    match &mut query.body {
        QueryBody::Select(select) => {
            outer_of_from(&mut select.from, visit);
            for subquery in &mut select.subqueries {
                visit(&mut subquery.outer);
                for_each_outer_mut(&mut subquery.query, visit);
            }
        }
        QueryBody::SetOperation(set) => {
            for_each_outer_mut(&mut set.left, visit);
            for_each_outer_mut(&mut set.right, visit);
        }
        QueryBody::Values(_) | QueryBody::JsonTable(_) => {}
        QueryBody::Nested(inner) => for_each_outer_mut(inner, visit),
    }
}

fn outer_of_from(from: &mut From, visit: &mut dyn FnMut(&mut Vec<ColumnId>)) {
    match from {
        From::Dual | From::Table(_) | From::Cte(_) => {}
        From::Derived(derived) => {
            visit(&mut derived.outer);
            for_each_outer_mut(&mut derived.query, visit);
        }
        From::Join(join) => {
            outer_of_from(&mut join.left, visit);
            outer_of_from(&mut join.right, visit);
        }
    }
}

/// Replaces expressions from the top down: where `replace` gives one, that stands in the place, and is not looked into.
pub fn replace(expr: &mut Expr, change: &mut dyn FnMut(&Expr) -> Option<Expr>) {
    match change(expr) {
        Some(new) => *expr = new,
        None => expr.for_each_child_mut(&mut |child| replace(child, change)),
    }
}

/// The column that gets a value where a view shows this: a column by its name, also under a collation of its own.
pub fn changeable_column(expr: &Expr) -> Option<ColumnId> {
    match &expr.kind {
        ExprKind::Collate(inner) => changeable_column(inner),
        _ => column_of(expr),
    }
}

pub fn column_of(expr: &Expr) -> Option<ColumnId> {
    match expr.kind {
        ExprKind::Column(index) => Some(ColumnId(index as u32)),
        _ => None,
    }
}
