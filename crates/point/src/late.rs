//! Blocks that assign to user variables: what stands in their select list is evaluated for the rows that are sent, in the order
//! in which they are sent, as MySQL does.
//!
//! ```text
//!  SELECT @n := @n + 1, a FROM t ORDER BY b LIMIT 5
//!         └────┬──────┘ └──────────┬──────────────┘
//!  SELECT @n := @n + 1, a FROM (SELECT a FROM t ORDER BY b LIMIT 5)
//! ```
//!
//! Rows of a derived table are gathered before the block around it goes through them.

use avocet_sql::plan::{self, BoundQuery, ColumnId, ColumnInfo, Projected, QueryBody, QueryExpr, Select};
use avocet_types::expr::Expr;

/// The query with a block within its own that gives the rows in order. `None` if rows are sent as they are found, or if the
/// order itself, or which rows differ, depends on what is assigned.
pub fn evaluated_late(query: &BoundQuery, block: &Select) -> Option<BoundQuery> {
    let QueryExpr { ctes, order_by, limit, outputs, .. } = &query.body;
    let is_late = |item: &&Projected| item.expr.uses_assigned();
    let orders = |item: &Projected| order_by.iter().any(|key| key.column == item.id);
    let waits = !order_by.is_empty() || block.aggregation.is_some() || !block.windows.is_empty();
    let late: Vec<&Projected> = block.projection.iter().filter(is_late).collect();
    if !waits || block.distinct || late.is_empty() || late.iter().any(|item| orders(item)) {
        return None;
    }
    let column = |id: ColumnId| {
        let ColumnInfo { ty, nullable, .. } = query.columns[id];
        Projected { id, expr: Expr::column(id.index(), ty, nullable) }
    };
    let mut used: Vec<usize> = late.iter().flat_map(|item| item.expr.columns()).collect();
    used.sort_unstable();
    used.dedup();
    let early = block.projection.iter().filter(|item| !is_late(item)).cloned();
    let projection: Vec<Projected> =
        early.chain(used.into_iter().map(|id| column(ColumnId(id as u32)))).collect();
    let given = projection.iter().map(|item| item.id).collect();
    let inner = QueryExpr {
        ctes: Vec::new(),
        body: QueryBody::Select(Box::new(Select { projection, ..block.clone() })),
        order_by: order_by.clone(),
        limit: limit.clone().filter(|_| !query.calc_found_rows),
        outputs: given,
    };
    let shown = |item: &Projected| if item.expr.uses_assigned() { item.clone() } else { column(item.id) };
    let projection = block.projection.iter().map(shown).collect();
    let from =
        plan::From::Derived(plan::Derived { query: inner, alias: "".into(), outer: Vec::new(), view: None });
    let body = QueryExpr {
        ctes: ctes.clone(),
        body: QueryBody::Select(Box::new(Select::plain(from, projection))),
        order_by: Vec::new(),
        // Where those beyond the limit are counted, all rows come here.
        limit: limit.clone().filter(|_| query.calc_found_rows),
        outputs: outputs.clone(),
    };
    Some(BoundQuery { body, ..query.clone() })
}
