//! One SELECT block.

use std::sync::Arc;

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::Expr;
use avocet_types::names;
use avocet_types::{LobSize, SqlType};

use crate::bind::expr::position;
use crate::bind::group::{Grouping, Place};
use crate::bind::scope::{Block, Clause, ColumnName, ScopeTable, Stars};
use crate::bind::{Binder, unsupported};
use crate::parse::ast::{self, ExprKind, Ident, OrderItem, SelectItem};
use crate::plan::*;

/// A select item: its name and value. Values change when the block turns out to be grouped.
pub(super) struct Item {
    pub name: Arc<str>,
    pub expr: Expr,
}

/// A key of ORDER BY: a select item, by its place, or a value of its own.
#[derive(Clone)]
pub(super) enum OrderKey {
    Item(usize),
    Hidden(Expr),
}

/// The select item that GROUP BY means by a name which several tables have.
fn item_named(name: &ast::Expr, items: &[Item]) -> Option<Expr> {
    let ExprKind::Column { database: None, table: None, column } = &name.kind else { return None };
    let mut named = items.iter().filter(|item| names::eq(&item.name, &column.name));
    let first = named.next()?;
    named.all(|item| item.expr == first.expr).then(|| first.expr.clone())
}

/// MySQL's limit for the columns of a table, which a result, its groups and its order are too.
const MOST_COLUMNS: usize = 4_096;

impl Binder<'_> {
    /// A block with the ORDER BY that belongs to it: the body, its sort keys and its outputs.
    pub(super) fn select(
        &mut self,
        select: &ast::Select,
        order_by: &[OrderItem],
    ) -> Result<(Select, Vec<SortKey>, Vec<ColumnId>), SqlError> {
        let mut block = Block::new();
        block.stars = match std::mem::take(&mut self.stars) {
            _ if select.having.is_some() => Stars::None,
            Stars::All if select.distinct => Stars::OfNothing,
            stars => stars,
        };
        self.blocks.push(block);
        let bound = self.select_in_block(select, order_by);
        self.blocks.pop();
        bound
    }

    fn select_in_block(
        &mut self,
        ast: &ast::Select,
        order_by: &[OrderItem],
    ) -> Result<(Select, Vec<SortKey>, Vec<ColumnId>), SqlError> {
        if [ast.items.len(), ast.group_by.len(), order_by.len()].iter().any(|&count| count > MOST_COLUMNS) {
            return Err(ErrorCode::TOO_MANY_FIELDS.with(&[]));
        }
        let from = self.from(&ast.from)?;
        self.block().windows = ast.windows.clone();
        self.block().clause = Clause::Where;
        let filter = ast.filter.as_ref().map(|expr| self.condition(expr)).transpose()?;
        let filter = filter.map(|filter| self.zero_dates_as_null(filter));
        let selected = self.partitions_since(0);
        let mut filter = match (filter, selected) {
            (Some(filter), Some(selected)) => Some(self.typer.and(vec![filter, selected])),
            (filter, selected) => filter.or(selected),
        };

        self.block().clause = Clause::Select;
        let mut items = self.items(&ast.items, &from.star)?;
        self.block().aliases = items.iter().map(|item| (item.name.clone(), item.expr.clone())).collect();

        self.block().clause = Clause::Group;
        let keys = self.group_keys(&ast.group_by, ast.rollup, &items)?;
        self.block().has_keys = !keys.is_empty();

        self.block().clause = Clause::Having;
        let mut having = ast.having.as_ref().map(|expr| self.condition(expr)).transpose()?;

        self.block().clause = Clause::Order;
        let before = (self.block().subqueries.len(), self.block().window_functions.len());
        let mut order = self.order_keys(order_by, &items)?;

        let grouped = !keys.is_empty() || !self.block().aggregates.is_empty();
        if grouped && keys.is_empty() && self.block().window_functions.len() == before.1 {
            // One row has no order; what it was asked for need not be of groups then, but for windows.
            order.clear();
            self.block().subqueries.truncate(before.0);
        }
        self.check_member_block(grouped)?;
        let mut has_second_filter = false;
        let aggregation = if grouped {
            let mut grouping = Grouping::new(self, keys, filter.as_ref(), ast.rollup)?;
            for (i, item) in items.iter_mut().enumerate() {
                grouping.regroup(self, &mut item.expr, Place::of(Clause::Select, i + 1))?;
            }
            if let Some(having) = &mut having {
                grouping.regroup(self, having, Place::of(Clause::Having, 1))?;
            }
            for (i, (key, _)) in order.iter_mut().enumerate() {
                if let OrderKey::Hidden(expr) = key {
                    grouping.regroup(self, expr, Place::of(Clause::Order, i + 1))?;
                }
            }
            grouping.regroup_windows(self)?;
            grouping.regroup_subqueries(self)?;
            if ast.rollup && order.is_empty() && !ast.distinct {
                order =
                    grouping.rollup_order(self).into_iter().map(|e| (OrderKey::Hidden(e), false)).collect();
            }
            Some(grouping.finish(self)?)
        } else {
            // Without groups HAVING is a second WHERE.
            has_second_filter = having.is_some();
            filter = match (filter, having.take()) {
                (Some(filter), Some(having)) => Some(self.typer.and(vec![filter, having])),
                (filter, having) => filter.or(having),
            };
            None
        };
        let (mut select, order, outputs) =
            self.project(from.from, filter, aggregation, having, ast.distinct, items, order)?;
        select.has_second_filter = has_second_filter;
        Ok((select, order, outputs))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a block, in order")]
    fn project(
        &mut self,
        from: From,
        filter: Option<Expr>,
        aggregation: Option<Aggregation>,
        having: Option<Expr>,
        distinct: bool,
        items: Vec<Item>,
        mut order: Vec<(OrderKey, bool)>,
    ) -> Result<(Select, Vec<SortKey>, Vec<ColumnId>), SqlError> {
        let mut projection: Vec<_> = items
            .into_iter()
            .map(|item| Projected { id: self.add_projected(item.name, &item.expr), expr: item.expr })
            .collect();
        let outputs: Vec<_> = projection.iter().map(|p| p.id).collect();
        for (key, _) in &mut order {
            let OrderKey::Hidden(expr) = key else { continue };
            match projection.iter().position(|p| p.expr == *expr && !expr.is_volatile()) {
                Some(same) => *key = OrderKey::Item(same),
                // Computed of the distinct rows, see below.
                None if distinct => {}
                None => {
                    let id = self.add_projected("", expr);
                    projection.push(Projected { id, expr: expr.clone() });
                    *key = OrderKey::Item(projection.len() - 1);
                }
            }
        }
        let block = self.block();
        block.check_windows()?;
        let windows = std::mem::take(&mut block.window_functions);
        let windows: Vec<_> = windows.into_iter().map(|entry| entry.window).collect();
        if !windows.is_empty() {
            self.label_as_gathered(&outputs);
        }
        let block = self.block();
        let subqueries = std::mem::take(&mut block.subqueries).into_iter().map(|s| s.subquery).collect();
        if distinct || !windows.is_empty() {
            self.keep_projected_years(&mut projection);
        }
        let (filter, plain) = (filter, Select::plain(from, projection));
        let select = Select { filter, aggregation, having, windows, distinct, subqueries, ..plain };
        if order.iter().any(|(key, _)| matches!(key, OrderKey::Hidden(_))) {
            return self.order_distinct(select, outputs, order);
        }
        let mut sort = Vec::with_capacity(order.len());
        for (key, descending) in order {
            let OrderKey::Item(item) = key else { continue };
            let column = select.projection[item].id;
            if !sort.iter().any(|k: &SortKey| k.column == column) {
                sort.push(SortKey { column, descending });
            }
        }
        Ok((select, sort, outputs))
    }

    pub(super) fn condition(&mut self, expr: &ast::Expr) -> Result<Expr, SqlError> {
        let bound = self.expr(expr)?;
        Ok(self.typer.condition(bound))
    }

    fn items(&mut self, items: &[SelectItem], star: &[ColumnId]) -> Result<Vec<Item>, SqlError> {
        let mut bound: Vec<Item> = Vec::with_capacity(items.len());
        self.block().given_names = items.iter().filter_map(given_name).collect();
        for item in items {
            match item {
                SelectItem::Wildcard { span, .. } if self.is_no_column(star) => {
                    self.note_one(*span);
                    bound.push(Item { name: "1".into(), expr: Expr::int(1) });
                }
                SelectItem::Wildcard { table: None, span, .. } => {
                    if star.is_empty() {
                        return Err(ErrorCode::NO_TABLES_USED.with(&[]));
                    }
                    self.note_star(*span, star);
                    bound.extend(star.iter().map(|id| self.wildcard_item(*id)));
                }
                SelectItem::Wildcard { database, table: Some(table), span } => {
                    let ids = self.table_columns(database.as_ref(), table)?;
                    self.note_star(*span, &ids);
                    for id in ids {
                        bound.push(self.wildcard_item(id));
                    }
                }
                SelectItem::Expr { expr, alias } => {
                    let mut value = self.expr(expr)?;
                    let name = match self.given_name(expr, &value).filter(|_| alias.is_none()) {
                        Some(name) => name,
                        None => self.item_name(expr, alias.as_ref()),
                    };
                    // A user variable that was never set is shown as bytes.
                    if matches!(expr.kind, ExprKind::UserVariable { .. }) && value.ty == SqlType::Null {
                        value.ty = SqlType::Blob { size: LobSize::Medium };
                    }
                    self.block().aliases.push((name.clone(), value.clone()));
                    bound.push(Item { name, expr: value });
                }
            }
            if bound.len() > MOST_COLUMNS {
                return Err(ErrorCode::TOO_MANY_FIELDS.with(&[]));
            }
        }
        Ok(bound)
    }

    /// Whether `*` stands for nothing but that there is a row.
    fn is_no_column(&mut self, star: &[ColumnId]) -> bool {
        match self.block().stars {
            Stars::None => false,
            Stars::OfNothing => star.is_empty(),
            Stars::All => true,
        }
    }

    /// The name of a column that is not of a stored table.
    fn given_name(&mut self, written: &ast::Expr, value: &Expr) -> Option<Arc<str>> {
        let (ExprKind::Column { .. }, Some(id)) = (&written.kind, walk::column_of(value)) else {
            return None;
        };
        let of = |table: &&ScopeTable| table.columns.iter().any(|column| column.id == id);
        let table = self.block().tables.iter().find(of)?;
        let column = table.columns.iter().find(|column| column.id == id)?;
        (!table.is_stored).then(|| column.name.clone())
    }

    fn wildcard_item(&mut self, id: ColumnId) -> Item {
        self.mark_used(id);
        Item { name: self.columns[id].name.clone(), expr: self.column_expr(id) }
    }

    /// The columns of `t.*`.
    fn table_columns(&mut self, database: Option<&Ident>, table: &Ident) -> Result<Vec<ColumnId>, SqlError> {
        let name =
            ColumnName { database: database.map(|d| d.name.as_str()), table: Some(&table.name), column: "*" };
        let found = self.block().tables.iter().find(|t| name.fits(t));
        let found = found.ok_or_else(|| {
            let shown = database.map_or(table.name.clone(), |d| format!("{}.{}", d.name, table.name));
            ErrorCode::BAD_TABLE_ERROR.with(&[&shown])
        })?;
        Ok(found.columns.iter().filter(|c| !c.invisible).map(|c| c.id).collect())
    }

    fn group_keys(
        &mut self,
        group_by: &[ast::Expr],
        rollup: bool,
        items: &[Item],
    ) -> Result<Vec<Expr>, SqlError> {
        let mut keys: Vec<Expr> = Vec::with_capacity(group_by.len());
        for expr in group_by {
            let key = match position(expr) {
                Some(position) => self.item_at(position, items, Clause::Group)?.expr.clone(),
                None => self.expr(expr).or_else(|error| match error.is(ErrorCode::NON_UNIQ_ERROR) {
                    true => item_named(expr, items).ok_or(error),
                    false => Err(error),
                })?,
            };
            if self.is_of_groups(&key) {
                // As in MySQL, what is no select item has no name.
                let written = self.item_name(expr, None);
                let item = items.iter().find(|item| item.expr == key);
                let name: &str = match (&expr.kind, item) {
                    (ExprKind::Column { .. } | ExprKind::Aggregate(_), _) => &written,
                    (_, Some(item)) => &item.name,
                    (_, None) => "???",
                };
                return Err(ErrorCode::WRONG_GROUP_FIELD.with(&[&name]));
            }
            if let ExprKind::Column { column, .. } = &expr.kind {
                let name = column.name.as_str().into();
                self.block().group_names.push((name, key.clone()));
            }
            match keys.contains(&key) {
                // MySQL gives each group once more for it, and tells the keys apart by the names that they go by.
                true if rollup => return Err(unsupported("GROUP BY with one key twice WITH ROLLUP")),
                true => {}
                false => keys.push(key),
            }
        }
        Ok(keys)
    }

    /// Whether there is an aggregate in a key, of this block or of one around it, or a window of this block; in a subquery, too, that
    /// is a select item.
    fn is_of_groups(&self, key: &Expr) -> bool {
        let is_aggregate = |id: ColumnId| self.aggregates_up_to(self.blocks.len() - 1).any(|of| of.id == id);
        let Some(block) = self.blocks.last() else { return false };
        let is_window = |id: ColumnId| block.window_functions.iter().any(|of| of.window.id == id);
        let reads = |id: ColumnId| {
            let item = block.subqueries.iter().find(|entry| entry.subquery.id == id);
            item.filter(|entry| entry.clause == Clause::Select).map_or(&[][..], |entry| &entry.subquery.outer)
        };
        let columns = key.columns().into_iter().map(|column| ColumnId(column as u32));
        let is_computed = |id: ColumnId| is_aggregate(id) || is_window(id);
        columns.into_iter().any(|id| is_computed(id) || reads(id).iter().any(|id| is_computed(*id)))
    }

    /// The aggregates of a block and of those around it.
    pub(super) fn aggregates_up_to(&self, depth: usize) -> impl Iterator<Item = &Aggregate> {
        self.blocks[..=depth].iter().flat_map(|block| &block.aggregates)
    }

    fn item_at<'i>(&self, position: u64, items: &'i [Item], clause: Clause) -> Result<&'i Item, SqlError> {
        let item = usize::try_from(position).ok().and_then(|p| items.get(p.checked_sub(1)?));
        item.ok_or_else(|| ErrorCode::BAD_FIELD_ERROR.with(&[&position, &clause.name()]))
    }

    fn order_keys(
        &mut self,
        order_by: &[OrderItem],
        items: &[Item],
    ) -> Result<Vec<(OrderKey, bool)>, SqlError> {
        let mut keys = Vec::with_capacity(order_by.len());
        let is_grouped = self.block().has_keys || self.block().is_aggregated;
        for (at, item) in order_by.iter().enumerate() {
            let key = match (&item.expr.kind, position(&item.expr)) {
                (_, Some(position)) => {
                    self.item_at(position, items, Clause::Order)?;
                    OrderKey::Item(position as usize - 1)
                }
                (ExprKind::Column { database: None, table: None, column }, _) => {
                    self.order_name(column, &item.expr)?
                }
                _ => OrderKey::Hidden(self.expr(&item.expr)?),
            };
            // It would make one group of all rows.
            if !is_grouped && self.block().is_aggregated {
                return Err(ErrorCode::AGGREGATE_ORDER_NON_AGG_QUERY.with(&[&(at + 1)]));
            }
            let key = match key {
                OrderKey::Hidden(expr) => {
                    match items.iter().position(|i| i.expr == expr && !expr.is_volatile()) {
                        Some(item) => OrderKey::Item(item),
                        None => OrderKey::Hidden(expr),
                    }
                }
                key => key,
            };
            keys.push((key, item.descending));
        }
        Ok(keys)
    }

    /// A bare name in ORDER BY is first of all a select item's.
    fn order_name(&mut self, column: &Ident, expr: &ast::Expr) -> Result<OrderKey, SqlError> {
        let name = ColumnName { database: None, table: None, column: &column.name };
        match self.place_of_item(self.blocks.len() - 1, &name)? {
            Some(item) => Ok(OrderKey::Item(item)),
            None => Ok(OrderKey::Hidden(self.expr(expr)?)),
        }
    }

    /// `db.t.c` as errors show it.
    pub(super) fn full_name(&self, id: ColumnId) -> String {
        let info = &self.columns[id];
        match &info.origin {
            Some(origin) => format!("{}.{}.{}", origin.table.database, origin.alias, info.name),
            None => info.name.to_string(),
        }
    }
}

/// The name that the statement gives a select item.
fn given_name(item: &SelectItem) -> Option<Arc<str>> {
    match item {
        SelectItem::Expr { alias: Some(alias), .. } => Some(alias.name.as_str().into()),
        _ => None,
    }
}
