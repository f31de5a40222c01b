//! What derived tables and common table expressions compute and nobody reads, where they are not merged with the query around
//! them: in statements that change or lock rows. MySQL merges them there, too, and so raises no error of it.

use std::collections::HashMap;

use avocet_types::Datum;
use avocet_types::expr::Expr;

use super::Binder;
use crate::plan::walk::{column_of, for_each_query, for_each_query_mut};
use crate::plan::{ColumnId, Cte, CteBody, CteId, From, QueryBody, QueryExpr, can_merge};

impl Binder<'_> {
    /// NULL stands for what is computed and not read.
    pub(super) fn drop_unread(&self, body: &mut QueryExpr) {
        let is_read = |id: ColumnId| self.used.get(id.index()).copied().unwrap_or(false);
        let mut of_ctes: HashMap<CteId, Vec<bool>> = HashMap::new();
        for_each_query(body, &mut |query| {
            if let QueryBody::Select(select) = &query.body {
                note_reads(&select.from, &is_read, &mut of_ctes);
            }
        });
        for_each_query_mut(body, &mut |query| {
            for Cte { id, body, .. } in &mut query.ctes {
                if let (CteBody::Plain(body), Some(read)) = (body, of_ctes.get(id)) {
                    let read_outputs = read.clone();
                    keep(body, &|at, _| read_outputs.get(at).copied().unwrap_or(true));
                }
            }
            if let QueryBody::Select(select) = &mut query.body {
                of_derived(&mut select.from, &is_read);
            }
        });
    }
}

/// Which columns of common table expressions a FROM reads.
fn note_reads(from: &From, is_read: &dyn Fn(ColumnId) -> bool, of_ctes: &mut HashMap<CteId, Vec<bool>>) {
    match from {
        From::Cte(cte) => {
            let read = of_ctes.entry(cte.cte).or_insert_with(|| vec![false; cte.columns.len()]);
            read.iter_mut().zip(&cte.columns).for_each(|(read, id)| *read |= is_read(*id));
        }
        From::Join(join) => {
            note_reads(&join.left, is_read, of_ctes);
            note_reads(&join.right, is_read, of_ctes);
        }
        From::Dual | From::Table(_) | From::Derived(_) => {}
    }
}

fn of_derived(from: &mut From, is_read: &dyn Fn(ColumnId) -> bool) {
    match from {
        From::Derived(derived) if !derived.is_unnamed() => keep(&mut derived.query, &|_, id| is_read(id)),
        From::Join(join) => {
            of_derived(&mut join.left, is_read);
            of_derived(&mut join.right, is_read);
        }
        From::Dual | From::Table(_) | From::Cte(_) | From::Derived(_) => {}
    }
}

fn keep(query: &mut QueryExpr, is_read: &dyn Fn(usize, ColumnId) -> bool) {
    if !can_merge(query) {
        return;
    }
    let QueryExpr { body, outputs, order_by, .. } = query;
    let QueryBody::Select(select) = body else { return };
    for item in &mut select.projection {
        let at = outputs.iter().position(|id| *id == item.id);
        let is_needed =
            at.is_none_or(|at| is_read(at, item.id)) || order_by.iter().any(|key| key.column == item.id);
        if !is_needed && column_of(&item.expr).is_none() {
            item.expr = Expr::literal(Datum::Null, item.expr.ty);
        }
    }
}
