//! Views, derived tables and common table expressions that are merged with the query that reads them: their tables take their
//! place in FROM, their conditions are its conditions, and what they show is replaced by what it is made of.
//!
//! ```text
//!  SELECT v.x FROM v WHERE v.y = 1          v: SELECT a + 1 AS x, b AS y FROM t WHERE c > 0
//!  ─────────▶  SELECT t.a + 1 FROM t WHERE t.c > 0 AND t.b = 1
//! ```
//!
//! So an index is found through a view as it is without, and rows are locked and changed through it. What nobody reads of it is
//! not evaluated, and nothing of rows that the query around it drops (MySQL Reference Manual, 10.2.2.4 "Optimizing Derived
//! Tables, View References, and Common Table Expressions with Merging or Materialization"). Ids are unique in the whole query,
//! so a map from what views show to expressions, applied once to all of it, is enough.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{Expr, ExprKind, IsTest};
use avocet_types::schema::TableDef;
use avocet_types::{SqlType, ViewCheck};

use super::Binder;
use crate::plan::walk::{column_of, for_each_expr_mut, for_each_outer_mut, for_each_scan_mut, replace};
use crate::plan::*;

/// Of one block: as many as MySQL joins.
const MOST_TABLES: usize = super::from::MOST_TABLES;

/// How tall expressions may grow that are put together from views. Each view's text is bounded, but those of views of views add
/// up, and what walks the expressions recurses on the stack of a statement whose own text is not tall.
const MOST_HEIGHT: usize = 600;

/// How many parts they may have: a view that names another's column twice doubles it.
const MOST_PARTS: usize = 200_000;

/// Derived tables that would make expressions taller are not merged.
const MOST_HEIGHT_OF_DERIVED: usize = 200;

/// Nor those whose columns would be put in so many places that a statement grew by more parts than this.
const MOST_PARTS_OF_DERIVED: usize = 20_000;

/// What was merged so far.
#[derive(Default)]
pub(super) struct Merged {
    /// What each column that a view showed stands for.
    shown: HashMap<ColumnId, (Expr, Extent)>,
    /// Views that the block of an UPDATE or DELETE names, or that were named by these.
    pub views: Vec<MergedView>,
    /// Derived tables are merged as well: the statement neither changes nor locks rows, nor assigns to user variables.
    derived: bool,
    /// How often the text refers to each column.
    references: HashMap<usize, usize>,
    /// The parts that columns of derived tables have brought in.
    parts: usize,
}

/// A view whose tables stand in the place of it.
pub(super) struct MergedView {
    pub def: Arc<TableDef>,
    /// What it showed.
    pub outputs: Vec<ColumnId>,
    /// The first columns of its tables' scans; `None` for what is no stored table.
    pub scans: Vec<Option<ColumnId>>,
    pub condition: Option<Expr>,
    /// The answers of subqueries that its condition uses.
    pub has_subqueries: bool,
    pub below: Vec<MergedView>,
}

impl MergedView {
    /// The conditions that rows have to meet which are written through the view. A view below is asked for its own only if it
    /// wants it, unless one above it cascades.
    pub fn checks<'v>(&'v self, cascades: bool, to: &mut Vec<&'v MergedView>) {
        let own = self.def.view.as_ref().map_or(ViewCheck::None, |view| view.check);
        let cascades = cascades || own == ViewCheck::Cascaded;
        if cascades || own == ViewCheck::Local {
            to.push(self);
        }
        self.below.iter().for_each(|view| view.checks(cascades, to));
    }
}

impl Merged {
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Replaces what views show in the expression.
    ///
    /// # Errors
    /// 1436 for more than can be walked; the expression is as it was.
    pub fn apply(&self, expr: &mut Expr) -> Result<(), SqlError> {
        if self.shown.is_empty() {
            return Ok(());
        }
        let extent = self.extent(expr);
        if extent.height_shown > MOST_HEIGHT || extent.parts_shown > MOST_PARTS {
            let limit = format!(
                "expressions of views within each other of more than {MOST_HEIGHT} levels or {MOST_PARTS} parts"
            );
            return Err(ErrorCode::STACK_OVERRUN_NEED_MORE.with(&[&limit]));
        }
        replace(expr, &mut |part| Some(self.meaning(column_of(part)?)?.clone()));
        Ok(())
    }

    /// Whether a derived table that shows these would let the statement grow too large; counts them if not.
    fn is_too_large(&mut self, projection: &[Projected]) -> bool {
        let mut parts = self.parts;
        for item in projection.iter().filter(|item| column_of(&item.expr).is_none()) {
            let extent = self.extent(&item.expr);
            let references = self.references.get(&item.id.index()).copied().unwrap_or(0);
            parts = parts.saturating_add(extent.parts.saturating_mul(references));
            if parts > MOST_PARTS_OF_DERIVED || extent.height > MOST_HEIGHT_OF_DERIVED {
                return true;
            }
        }
        self.parts = parts;
        false
    }

    /// The extent of an expression with what views show replaced.
    fn extent(&self, expr: &Expr) -> Extent {
        if let Some((_, shown)) = column_of(expr).and_then(|id| self.shown.get(&id)) {
            return Extent { height_shown: shown.height, parts_shown: shown.parts, ..*shown };
        }
        let mut all = Extent { height: 0, parts: 1, height_shown: 0, parts_shown: 0 };
        expr.for_each_child(&mut |child| {
            let child = self.extent(child);
            all.height = all.height.max(child.height);
            all.parts = all.parts.saturating_add(child.parts);
            all.height_shown = all.height_shown.max(child.height_shown);
            all.parts_shown = all.parts_shown.saturating_add(child.parts_shown);
        });
        all.height += 1;
        all
    }

    /// What a view's column stands for.
    pub fn meaning(&self, id: ColumnId) -> Option<&Expr> {
        self.shown.get(&id).map(|(expr, _)| expr)
    }
}

/// How large an expression is.
#[derive(Clone, Copy)]
struct Extent {
    height: usize,
    parts: usize,
    /// The height of the tallest of its parts that a view shows: the rest is bounded by the statement's text.
    height_shown: usize,
    /// Those of its parts that views show.
    parts_shown: usize,
}

impl Binder<'_> {
    /// Merges all views and derived tables of a query that can be, and says which columns are used then.
    pub(super) fn merge_tables(&mut self, body: &mut QueryExpr) -> Result<(), SqlError> {
        self.merged.derived = self.has_derived && !self.keeps_derived && !self.assigns && !locks(body);
        if self.merged.derived {
            self.inline_ctes(body);
            for_each_expr_mut(body, &mut |expr| {
                expr.any(&mut |part| {
                    if let Some(id) = column_of(part) {
                        *self.merged.references.entry(id.index()).or_default() += 1;
                    }
                    false
                });
            });
        }
        self.merge_query(body, true)?;
        if self.merged.is_empty() {
            return Ok(());
        }
        let merged = std::mem::take(&mut self.merged);
        let mut used = HashSet::new();
        let mut failure = None;
        for_each_expr_mut(body, &mut |expr| {
            failure = failure.take().or_else(|| merged.apply(expr).err());
            used.extend(expr.columns());
        });
        if let Some(error) = failure {
            return Err(error);
        }
        for_each_outer_mut(body, &mut |outer| {
            let of = |id: &ColumnId| match merged.meaning(*id) {
                Some(expr) => expr.columns().iter().map(|id| ColumnId(*id as u32)).collect(),
                None => vec![*id],
            };
            let all: BTreeSet<ColumnId> = outer.iter().flat_map(of).collect();
            *outer = all.into_iter().collect();
        });
        self.used.iter_mut().enumerate().for_each(|(id, used_before)| *used_before = used.contains(&id));
        used.into_iter().for_each(|id| self.mark_used(ColumnId(id as u32)));
        Ok(())
    }

    /// `is_ordered`: it matters in which order its rows come.
    fn merge_query(&mut self, query: &mut QueryExpr, is_ordered: bool) -> Result<(), SqlError> {
        for cte in &mut query.ctes {
            match &mut cte.body {
                CteBody::Plain(body) => self.merge_query(body, true)?,
                CteBody::Recursive { seed, step, .. } => {
                    self.merge_query(seed, false)?;
                    self.merge_query(step, false)?;
                }
            }
        }
        let is_ordered = is_ordered || query.limit.is_some();
        match &mut query.body {
            QueryBody::Select(select) => {
                let order = self.merge_block(select, is_ordered && query.order_by.is_empty())?;
                if query.order_by.is_empty() {
                    query.order_by = order;
                }
            }
            QueryBody::SetOperation(set) => {
                self.merge_query(&mut set.left, false)?;
                self.merge_query(&mut set.right, false)?;
            }
            QueryBody::Values(_) | QueryBody::JsonTable(_) => {}
            QueryBody::Nested(inner) => self.merge_query(inner, is_ordered && query.order_by.is_empty())?,
        }
        Ok(())
    }

    /// The order that the block has of its only table, if it has none itself (`takes_order`).
    fn merge_block(&mut self, select: &mut Select, takes_order: bool) -> Result<Vec<SortKey>, SqlError> {
        for subquery in &mut select.subqueries {
            self.merge_query(&mut subquery.query, false)?;
        }
        let takes_order =
            takes_order && select.aggregation.is_none() && select.windows.is_empty() && !select.distinct;
        let order = if takes_order { order_of(&select.from) } else { Vec::new() };
        let (conditions, views) = self.merge_from(&mut select.from, &mut select.subqueries)?;
        self.merged.views = views;
        select.filter = self.all_of(conditions, select.filter.take());
        let mut keys = Vec::with_capacity(order.len());
        for key in order {
            // What was not merged keeps its order to itself.
            let Some(expr) = self.merged.meaning(key.column).cloned() else { continue };
            let id = self.add_projected("", &expr);
            select.projection.push(Projected { id, expr });
            keys.push(SortKey { column: id, descending: key.descending });
        }
        Ok(keys)
    }

    pub(super) fn all_of(&self, mut conditions: Vec<Expr>, last: Option<Expr>) -> Option<Expr> {
        conditions.extend(last);
        match conditions.len() {
            0 | 1 => conditions.pop(),
            _ => Some(self.typer.and(conditions)),
        }
    }

    /// Merges the views of a FROM. Gives the conditions that hold for all of its rows, and the views.
    pub(super) fn merge_from(
        &mut self,
        from: &mut From,
        subqueries: &mut Vec<Subquery>,
    ) -> Result<(Vec<Expr>, Vec<MergedView>), SqlError> {
        let mut room = MOST_TABLES.saturating_sub(tables_in(from));
        let (mut conditions, mut views) = (Vec::new(), Vec::new());
        self.merge_part(from, false, &mut room, &mut conditions, subqueries, &mut views)?;
        Ok((conditions, views))
    }

    /// `nullable`: an outer join may have no row of it.
    fn merge_part(
        &mut self,
        from: &mut From,
        nullable: bool,
        room: &mut usize,
        conditions: &mut Vec<Expr>,
        subqueries: &mut Vec<Subquery>,
        views: &mut Vec<MergedView>,
    ) -> Result<(), SqlError> {
        match from {
            From::Dual | From::Table(_) | From::Cte(_) => {}
            From::Join(join) => {
                self.merge_part(&mut join.left, nullable, room, conditions, subqueries, views)?;
                match join.kind {
                    JoinKind::Inner => {
                        self.merge_part(&mut join.right, nullable, room, conditions, subqueries, views)?;
                    }
                    JoinKind::Left => {
                        let mut own = Vec::new();
                        self.merge_part(&mut join.right, true, room, &mut own, subqueries, views)?;
                        join.on = self.all_of(own, join.on.take());
                    }
                }
            }
            From::Derived(derived) => {
                if !self.is_merged(derived, nullable, *room) {
                    return self.merge_query(&mut derived.query, true);
                }
                let QueryBody::Select(select) = &mut derived.query.body else { return Ok(()) };
                for subquery in &mut select.subqueries {
                    self.merge_query(&mut subquery.query, false)?;
                }
                *room -= tables_in(&select.from) - 1;
                let row = row_of(&select.from);
                let (mut own, mut below) = (Vec::new(), Vec::new());
                let inner = &mut select.subqueries;
                self.merge_part(&mut select.from, nullable, room, &mut own, inner, &mut below)?;
                if derived.view.is_none() && self.merged.is_too_large(&select.projection) {
                    select.filter = self.all_of(own, select.filter.take());
                    return Ok(());
                }
                let mut condition = select.filter.take();
                if let Some(condition) = &mut condition {
                    self.merged.apply(condition)?;
                }
                for item in &mut select.projection {
                    let extent = self.merged.extent(&item.expr);
                    self.merged.apply(&mut item.expr)?;
                    item.expr.nullable |= self.columns[item.id].nullable;
                    if nullable && column_of(&item.expr).is_none() {
                        let row = row.clone().expect("what is computed is merged if its row can be told");
                        item.expr = where_there(row, item.expr.clone());
                    }
                    self.merged.shown.insert(item.id, (item.expr.clone(), extent));
                }
                let has_subqueries = condition.as_ref().is_some_and(|condition| {
                    let uses = |id: &ColumnId| condition.columns().contains(&id.index());
                    select.subqueries.iter().any(|subquery| uses(&subquery.id))
                });
                conditions.extend(own);
                conditions.extend(condition.clone());
                subqueries.append(&mut select.subqueries);
                if derived.view.is_none() {
                    mark_derived(&mut select.from);
                }
                if let Some(view) = &derived.view {
                    let mut scans = Vec::new();
                    scans_of(&select.from, &mut scans);
                    let (def, outputs) = (view.def.clone(), derived.query.outputs.clone());
                    views.push(MergedView { def, outputs, scans, condition, has_subqueries, below });
                }
                if nullable {
                    make_nullable(&select.from, &mut self.columns);
                }
                *from = std::mem::replace(&mut select.from, From::Dual);
            }
        }
        Ok(())
    }

    /// Whether a derived table is merged where it stands.
    fn is_merged(&self, derived: &Derived, nullable: bool, room: usize) -> bool {
        let QueryBody::Select(select) = &derived.query.body else { return false };
        let merges = match &derived.view {
            Some(view) => view.merges,
            // One without a name has rows of its own, of which ORDER BY is computed (see `distinct`).
            None => {
                self.merged.derived
                    && !derived.is_unnamed()
                    && derived.outer.is_empty()
                    && can_merge(&derived.query)
                    // An outer join of several tables is no part of a compiled plan.
                    && (!nullable || matches!(select.from, From::Table(_)))
            }
        };
        // Beside an outer join what is computed is NULL where there is no row.
        let can_be_null = || {
            let is_column = |item: &Projected| column_of(&item.expr).is_some();
            select.subqueries.is_empty()
                && (row_of(&select.from).is_some() || select.projection.iter().all(is_column))
        };
        merges && tables_in(&select.from) <= room + 1 && (!nullable || can_be_null())
    }
}

/// Whether rows of the query are locked.
fn locks(query: &mut QueryExpr) -> bool {
    let mut locks = false;
    for_each_scan_mut(query, &mut |scan| locks |= scan.lock.is_some());
    locks
}

/// The order in which the rows of the only table come, through derived tables that show them as they are.
fn order_of(from: &From) -> Vec<SortKey> {
    let From::Derived(derived) = from else { return Vec::new() };
    if !derived.query.order_by.is_empty() || !shows_rows(&derived.query) {
        return derived.query.order_by.clone();
    }
    match &derived.query.body {
        QueryBody::Select(select) => order_of(&select.from),
        _ => Vec::new(),
    }
}

/// A column of the only table that is NULL only where an outer join has no row of it.
fn row_of(from: &From) -> Option<Expr> {
    let From::Table(scan) = from else { return None };
    let is_given = |column: usize| scan.table.columns.get(column).is_some_and(|column| !column.nullable);
    let (column, id) = scan.columns.iter().find(|(column, _)| is_given(*column))?;
    Some(Expr::column(id.index(), scan.table.columns[*column].ty, true))
}

/// `CASE WHEN row IS NOT NULL THEN expr END`
fn where_there(row: Expr, expr: Expr) -> Expr {
    let ty = expr.ty;
    let is_there = ExprKind::Is { expr: Box::new(row), test: IsTest::Null, negated: true };
    let is_there = Expr::new(is_there, SqlType::BIGINT, false);
    Expr::new(ExprKind::Case { branches: vec![(is_there, expr)], otherwise: None }, ty, true)
}

fn tables_in(from: &From) -> usize {
    match from {
        From::Dual => 0,
        From::Table(_) | From::Cte(_) | From::Derived(_) => 1,
        From::Join(join) => tables_in(&join.left) + tables_in(&join.right),
    }
}

fn scans_of(from: &From, to: &mut Vec<Option<ColumnId>>) {
    match from {
        From::Dual => {}
        From::Table(scan) => to.push(scan.columns.first().map(|(_, id)| *id)),
        From::Cte(_) | From::Derived(_) => to.push(None),
        From::Join(join) => {
            scans_of(&join.left, to);
            scans_of(&join.right, to);
        }
    }
}

fn mark_derived(from: &mut From) {
    match from {
        From::Table(scan) => scan.of_derived = true,
        From::Join(join) => {
            mark_derived(&mut join.left);
            mark_derived(&mut join.right);
        }
        From::Dual | From::Cte(_) | From::Derived(_) => {}
    }
}

fn make_nullable(from: &From, columns: &mut ColumnTable) {
    match from {
        From::Dual => {}
        From::Table(scan) => scan.columns.iter().for_each(|(_, id)| columns[*id].nullable = true),
        From::Cte(cte) => cte.columns.iter().for_each(|id| columns[*id].nullable = true),
        From::Derived(derived) => derived.query.outputs.iter().for_each(|id| columns[*id].nullable = true),
        From::Join(join) => {
            make_nullable(&join.left, columns);
            make_nullable(&join.right, columns);
        }
    }
}
