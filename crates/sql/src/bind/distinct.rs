//! ORDER BY of distinct rows by what is computed from them: `SELECT DISTINCT a … ORDER BY f(a)`.
//!
//! The keys can't be columns of the rows that are made distinct: rows that the collation takes for one may differ in
//! `HEX(a)`. So the distinct rows are a derived table, and the keys are computed above it, as MySQL does with the rows of its
//! temporary table. What the keys use must be in the select list (3065), unless ONLY_FULL_GROUP_BY is off.

use std::collections::{BTreeSet, HashSet};

use avocet_types::error::SqlError;
use avocet_types::expr::{Expr, SqlMode};

use crate::bind::Binder;
use crate::bind::group::{any_value, outer_after};
use crate::bind::select::OrderKey;
use crate::plan::walk::{column_of, for_each_outer_mut, replace, visit_subquery};
use crate::plan::*;

/// Puts the columns of the derived table in the place of select items.
struct Items {
    /// What a select item is, and the column of the derived table that has it.
    by_value: Vec<(Expr, Expr)>,
    /// All columns that there are in the block.
    own: HashSet<ColumnId>,
    /// The first one that a key uses although it is in no select item.
    missing: Option<ColumnId>,
}

impl Items {
    /// What is evaluated above the distinct rows, which may have answers of these subqueries in it.
    fn put_in(&mut self, expr: &mut Expr, subqueries: &[Subquery]) {
        replace(expr, &mut |part| {
            if let Some((_, column)) = self.by_value.iter().find(|(value, _)| value == part) {
                return Some(column.clone());
            }
            let id = column_of(part)?;
            if self.own.contains(&id) && !subqueries.iter().any(|subquery| subquery.id == id) {
                self.missing.get_or_insert(id);
            }
            None
        });
    }

    /// A subquery that is evaluated for the distinct rows.
    fn put_in_subquery(&mut self, subquery: &mut Subquery) {
        let mut reached = BTreeSet::new();
        visit_subquery(subquery, &mut |expr| {
            self.put_in(expr, &[]);
            reached.extend(expr.columns().into_iter().map(|column| ColumnId(column as u32)));
        });
        let own = |id: ColumnId| self.own.contains(&id);
        let items = self.by_value.iter().filter_map(|(_, column)| column_of(column));
        let reached: Vec<_> = items.filter(|id| reached.contains(id)).collect();
        let kept = subquery.outer.iter().copied().filter(|id| !own(*id));
        let outer: BTreeSet<_> = kept.chain(reached.iter().copied()).collect();
        subquery.outer = outer.into_iter().collect();
        for_each_outer_mut(&mut subquery.query, &mut |outer| outer_after(outer, &own, &|_| None, &reached));
    }
}

impl Binder<'_> {
    /// The block above `distinct`, whose outputs are `outputs`, with a column for each key.
    pub(super) fn order_distinct(
        &mut self,
        mut distinct: Select,
        outputs: Vec<ColumnId>,
        keys: Vec<(OrderKey, bool)>,
    ) -> Result<(Select, Vec<SortKey>, Vec<ColumnId>), SqlError> {
        let takes_any = |binder: &mut Self| {
            !binder.typer.sql_mode.has(SqlMode::ONLY_FULL_GROUP_BY)
                || !binder.uses_others(&distinct, &without_any_values(&keys))
        };
        if self.uses_others(&distinct, &keys) && takes_any(self) {
            return Ok(self.order_by_any(distinct, outputs, keys));
        }
        let by_value = distinct.projection.iter().map(|p| (p.expr.clone(), self.column_expr(p.id))).collect();
        let mut items = Items { by_value, own: self.columns_in(&distinct), missing: None };
        let mut projection: Vec<_> = outputs
            .iter()
            .map(|id| Projected { id: self.copy_column(*id), expr: self.column_expr(*id) })
            .collect();
        let shown: Vec<_> = projection.iter().map(|p| p.id).collect();
        let mut sort = Vec::with_capacity(keys.len());
        for (i, (key, descending)) in keys.into_iter().enumerate() {
            let column = match key {
                OrderKey::Item(item) => shown[item],
                OrderKey::Hidden(mut expr) => {
                    items.put_in(&mut expr, &distinct.subqueries);
                    if let Some(column) = items.missing {
                        return Err(self.not_in_select_list(&distinct, column, i + 1));
                    }
                    let id = self.add_projected("", &expr);
                    projection.push(Projected { id, expr });
                    id
                }
            };
            if !sort.iter().any(|key: &SortKey| key.column == column) {
                sort.push(SortKey { column, descending });
            }
        }
        let used: BTreeSet<_> = projection.iter().flat_map(|p| p.expr.columns()).collect();
        let (mut above, below) =
            distinct.subqueries.into_iter().partition::<Vec<_>, _>(|s| used.contains(&s.id.index()));
        distinct.subqueries = below;
        for subquery in &mut above {
            items.put_in_subquery(subquery);
            if let Some(column) = items.missing {
                return Err(self.not_in_select_list(&distinct, column, 1));
            }
        }
        let from = From::Derived(Derived::unnamed(QueryExpr::of_block(distinct, outputs)));
        let select = Select { subqueries: above, ..Select::plain(from, projection) };
        Ok((select, sort, shown))
    }

    /// Whether a key uses what is in no select item.
    fn uses_others(&mut self, distinct: &Select, keys: &[(OrderKey, bool)]) -> bool {
        let by_value = distinct.projection.iter().map(|p| (p.expr.clone(), self.column_expr(p.id))).collect();
        let mut items = Items { by_value, own: self.columns_in(distinct), missing: None };
        for (key, _) in keys {
            if let OrderKey::Hidden(expr) = key {
                items.put_in(&mut expr.clone(), &distinct.subqueries);
                let used: BTreeSet<_> = expr.columns().into_iter().collect();
                let of_key =
                    distinct.subqueries.iter().filter(|subquery| used.contains(&subquery.id.index()));
                of_key.for_each(|subquery| items.put_in_subquery(&mut subquery.clone()));
            }
        }
        items.missing.is_some()
    }

    /// Each of the distinct rows has the keys of one of the rows that it stands for.
    fn order_by_any(
        &mut self,
        mut rows: Select,
        outputs: Vec<ColumnId>,
        keys: Vec<(OrderKey, bool)>,
    ) -> (Select, Vec<SortKey>, Vec<ColumnId>) {
        rows.distinct = false;
        let projected =
            |binder: &mut Self, id| Projected { id: binder.copy_column(id), expr: binder.column_expr(id) };
        let groups: Vec<_> = outputs.iter().map(|id| projected(self, *id)).collect();
        let mut projection: Vec<_> = groups.iter().map(|group| projected(self, group.id)).collect();
        let shown: Vec<_> = projection.iter().map(|p| p.id).collect();
        let (mut outputs, mut aggregates) = (outputs, Vec::new());
        let mut sort = Vec::with_capacity(keys.len());
        for (key, descending) in keys {
            let column = match key {
                OrderKey::Item(item) => shown[item],
                OrderKey::Hidden(expr) => {
                    let below = self.add_projected("", &expr);
                    rows.projection.push(Projected { id: below, expr });
                    outputs.push(below);
                    let arg = self.column_expr(below);
                    let id = self.add_projected("", &arg);
                    self.columns[id].nullable = true;
                    aggregates.push(Aggregate::any_value(id, arg));
                    let key = projected(self, id);
                    let id = key.id;
                    projection.push(key);
                    id
                }
            };
            if !sort.iter().any(|key: &SortKey| key.column == column) {
                sort.push(SortKey { column, descending });
            }
        }
        let from = From::Derived(Derived::unnamed(QueryExpr::of_block(rows, outputs)));
        let aggregation = Some(Aggregation { keys: groups, aggregates, rollup: false });
        (Select { aggregation, ..Select::plain(from, projection) }, sort, shown)
    }

    fn columns_in(&mut self, select: &Select) -> HashSet<ColumnId> {
        let tables =
            self.block().tables.iter().flat_map(|table| table.columns.iter().map(|column| column.id));
        let mut own: HashSet<_> = tables.collect();
        if let Some(aggregation) = &select.aggregation {
            own.extend(aggregation.keys.iter().map(|key| key.id));
            own.extend(aggregation.aggregates.iter().map(|aggregate| aggregate.id));
        }
        own.extend(select.windows.iter().map(|window| window.id));
        own.extend(select.subqueries.iter().map(|subquery| subquery.id));
        own
    }

    /// 3065, or 3066 for an aggregate.
    fn not_in_select_list(&self, distinct: &Select, column: ColumnId, position: usize) -> SqlError {
        let aggregates = distinct.aggregation.iter().flat_map(|aggregation| &aggregation.aggregates);
        let (errno, what) = match aggregates.into_iter().any(|aggregate| aggregate.id == column) {
            true => (3066, "contains aggregate function".to_owned()),
            false => {
                let name = self.full_name(column);
                (3065, format!("references column '{name}' which is not in SELECT list"))
            }
        };
        SqlError {
            errno,
            sqlstate: *b"HY000",
            message: format!(
                "Expression #{position} of ORDER BY clause is not in SELECT list, {what}; this is incompatible with DISTINCT"
            ),
        }
    }
}

/// The keys with NULL for what may be any row's.
fn without_any_values(keys: &[(OrderKey, bool)]) -> Vec<(OrderKey, bool)> {
    let mut keys = keys.to_vec();
    for (key, _) in &mut keys {
        if let OrderKey::Hidden(expr) = key {
            replace(expr, &mut |part| any_value(part).map(|_| Expr::null()));
        }
    }
    keys
}
