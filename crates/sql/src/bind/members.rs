//! Subqueries of which a membership test or a comparison with all rows asks only which values there are: IN, ANY, ALL, EXISTS.
//!
//! DISTINCT, a UNION's and GROUP BY without aggregates change nothing then, but for the collation: rows that are one under the
//! subquery's own may differ under that of the comparison (`a COLLATE utf8mb4_bin IN (SELECT DISTINCT a …)`). So they are left
//! out, as MySQL does (`Query_block::remove_redundant_subquery_clauses`).

use std::collections::HashMap;

use avocet_types::expr::Expr;

use crate::parse::ast::SetOperator;
use crate::plan::walk::{column_of, replace};
use crate::plan::*;

/// Leaves out what makes the rows of a query distinct, where nothing counts them.
pub(super) fn keep_duplicates(query: &mut QueryExpr) {
    if query.limit.is_some() {
        return;
    }
    match &mut query.body {
        QueryBody::Select(select) => {
            select.distinct = false;
            ungroup(select);
        }
        QueryBody::SetOperation(set) if set.op == SetOperator::Union => {
            set.all = true;
            keep_duplicates(&mut set.left);
            keep_duplicates(&mut set.right);
        }
        QueryBody::Nested(inner) => keep_duplicates(inner),
        QueryBody::SetOperation(_) | QueryBody::Values(_) | QueryBody::JsonTable(_) => {}
    }
    // The sides of a set operation stand below blocks that convert their columns.
    if let QueryBody::Select(select) = &mut query.body
        && select.aggregation.is_none()
        && select.windows.is_empty()
        && let From::Derived(derived) = &mut select.from
        && derived.is_unnamed()
    {
        keep_duplicates(&mut derived.query);
    }
}

/// Leaves out a GROUP BY that nothing is computed for.
fn ungroup(select: &mut Select) {
    let Some(aggregation) = &select.aggregation else { return };
    let is_any = |of: &Aggregate| of.function == AggregateFunction::AnyValue && of.args.len() == 1;
    let is_plain = !aggregation.keys.is_empty()
        && !aggregation.rollup
        && aggregation.aggregates.iter().all(is_any)
        && !aggregation.keys.iter().any(|key| key.expr.is_volatile())
        && select.having.is_none()
        && select.windows.is_empty();
    if !is_plain {
        return;
    }
    let keys = aggregation.keys.iter().map(|key| (key.id, &key.expr));
    let carried = aggregation.aggregates.iter().map(|of| (of.id, &of.args[0]));
    let of_rows: HashMap<ColumnId, Expr> = keys.chain(carried).map(|(id, expr)| (id, expr.clone())).collect();
    let of_row = |part: &Expr| of_rows.get(&column_of(part)?);
    let is_other_type =
        |item: &Projected| item.expr.any(&mut |part| of_row(part).is_some_and(|of| of.ty != part.ty));
    let is_of_groups = |subquery: &Subquery| {
        subquery.outer.iter().copied().chain(subquery.kind.operands()).any(|id| of_rows.contains_key(&id))
    };
    if select.projection.iter().any(is_other_type) || select.subqueries.iter().any(is_of_groups) {
        return;
    }
    for item in &mut select.projection {
        replace(&mut item.expr, &mut |part| of_row(part).cloned());
    }
    select.aggregation = None;
}
