//! Common table expressions that are read once, in the place where they are read: as derived tables, they are merged with the
//! block around them as those are.

use std::collections::HashMap;

use super::Binder;
use crate::plan::walk::{for_each_query, for_each_query_mut, for_each_scan_mut};
use crate::plan::{
    ColumnId, Cte, CteBody, CteId, CteRef, Derived, From, Projected, QueryBody, QueryExpr, can_merge,
};

impl Binder<'_> {
    /// Puts each common table expression that would be merged, and that one FROM alone names, into its place.
    pub(super) fn inline_ctes(&mut self, body: &mut QueryExpr) {
        let mut reads: HashMap<CteId, usize> = HashMap::new();
        for_each_query(body, &mut |query| {
            if let QueryBody::Select(select) = &query.body {
                count(&select.from, &mut reads);
            }
        });
        if reads.values().all(|times| *times > 1) {
            return;
        }
        let mut once: HashMap<CteId, QueryExpr> = HashMap::new();
        for_each_query_mut(body, &mut |query| {
            let is_once = |cte: &mut Cte| reads.get(&cte.id) == Some(&1) && is_merged(cte);
            for cte in query.ctes.extract_if(.., is_once) {
                if let CteBody::Plain(body) = cte.body {
                    once.insert(cte.id, body);
                }
            }
        });
        self.put(body, &mut once);
    }

    fn put(&mut self, body: &mut QueryExpr, once: &mut HashMap<CteId, QueryExpr>) {
        // One that is put may name others.
        while !once.is_empty() {
            let left = once.len();
            for_each_query_mut(body, &mut |query| {
                if let QueryBody::Select(select) = &mut query.body {
                    put_into(&mut select.from, once);
                }
            });
            if once.len() == left {
                // Only those name them that are never read.
                return;
            }
        }
    }
}

fn is_merged(cte: &Cte) -> bool {
    let CteBody::Plain(body) = &cte.body else { return false };
    let mut locks = false;
    for_each_scan_mut(&mut body.clone(), &mut |scan| locks |= scan.lock.is_some());
    !locks && can_merge(body)
}

fn count(from: &From, reads: &mut HashMap<CteId, usize>) {
    match from {
        From::Cte(cte) => *reads.entry(cte.cte).or_default() += 1,
        From::Join(join) => {
            count(&join.left, reads);
            count(&join.right, reads);
        }
        From::Dual | From::Table(_) | From::Derived(_) => {}
    }
}

fn put_into(from: &mut From, once: &mut HashMap<CteId, QueryExpr>) {
    match from {
        From::Cte(cte) => {
            if let Some(query) = once.remove(&cte.cte) {
                *from = From::Derived(as_derived(query, cte));
            }
        }
        From::Join(join) => {
            put_into(&mut join.left, once);
            put_into(&mut join.right, once);
        }
        From::Dual | From::Table(_) | From::Derived(_) => {}
    }
}

/// The query as the derived table that has the reference's columns.
fn as_derived(mut query: QueryExpr, reference: &CteRef) -> Derived {
    let CteRef { alias, columns, .. } = reference;
    let outputs = std::mem::replace(&mut query.outputs, columns.clone());
    if let QueryBody::Select(select) = &mut query.body {
        let expr_of = |output: &ColumnId| {
            let item = select.projection.iter().find(|item| item.id == *output);
            item.expect("outputs are projected").expr.clone()
        };
        let shown: Vec<Projected> = columns
            .iter()
            .zip(&outputs)
            .map(|(id, output)| Projected { id: *id, expr: expr_of(output) })
            .collect();
        let sorts = |item: &Projected| query.order_by.iter().any(|key| key.column == item.id);
        select.projection.retain(sorts);
        select.projection.extend(shown);
    }
    Derived { query, alias: alias.clone(), outer: Vec::new(), view: None }
}
