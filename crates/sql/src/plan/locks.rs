//! Which rows a query with FOR UPDATE or FOR SHARE locks, as queries of their own that give the rows' ids.
//!
//! A block locks the rows of its own tables that it joins and that its WHERE lets pass, before it groups, sorts out
//! duplicates or computes anything. If it does nothing of that, its LIMIT ends the locking too.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use avocet_base::RowId;
use avocet_types::SqlType;
use avocet_types::expr::Expr;
use avocet_types::schema::TableDef;

use super::{
    BoundQuery, ColumnId, ColumnInfo, ColumnTable, Cte, CteBody, From, Limit, Projected, QueryBody,
    QueryExpr, ScanLock, Select, SubqueryKind,
};
use crate::parse::ast::LockWait;
use crate::plan::walk::for_each_scan_mut;

/// The rows that one block locks.
pub struct LockQuery {
    /// Gives the ids of the rows of `tables`, in order; NULL where an outer join has none.
    pub query: BoundQuery,
    pub tables: Vec<LockedTable>,
    /// The block's limit, which the query does not have: an OFFSET's rows are locked too, and rows that are left out because
    /// others hold them do not count.
    pub limit: Option<Limit>,
}

/// A table of a block, whose rows it locks.
pub struct LockedTable {
    pub table: Arc<TableDef>,
    pub lock: ScanLock,
    /// Its number among the query's scans that lock rows.
    pub scan: usize,
}

impl LockQuery {
    /// Whether the block is to see only the rows that were locked, and not all that it would find.
    pub fn shows_only_locked(&self) -> bool {
        self.limit.is_some() || self.skips()
    }

    /// Whether rows that others hold are left out.
    pub fn skips(&self) -> bool {
        self.tables.iter().any(|table| table.lock.wait == LockWait::SkipLocked)
    }
}

/// A query for each block that locks rows. `None` if one of these blocks is evaluated anew for the rows of another, or in
/// rounds: which rows it comes to is not known before.
pub fn lock_queries(bound: &BoundQuery) -> Option<Vec<LockQuery>> {
    let mut body = bound.body.clone();
    let first = bound.columns.len();
    let mut columns = bound.columns.clone();
    for_each_scan_mut(&mut body, &mut |scan| {
        if scan.lock.is_some() {
            let (name, ty) = ("".into(), SqlType::BIGINT_UNSIGNED);
            let row_id = columns.add(ColumnInfo { name, ty, nullable: true, origin: None, label: None });
            scan.columns.push((scan.table.columns.len(), row_id));
        }
    });
    let mut search = Search { bound, columns, first, ctes: Vec::new(), found: Vec::new() };
    search.query(&body, false).then_some(search.found)
}

/// Makes the scans that lock rows give only those; by the scan's number, `None` for a scan of all.
pub fn show_only(query: &mut QueryExpr, rows: &mut [Option<HashSet<RowId>>]) {
    let mut number = 0;
    for_each_scan_mut(query, &mut |scan| {
        if scan.lock.is_some() {
            scan.only = rows[number].take().map(Arc::new);
            number += 1;
        }
    });
}

struct Search<'b> {
    bound: &'b BoundQuery,
    /// With the row ids of the scans that lock rows, from `first` on in the order of the scans.
    columns: ColumnTable,
    first: usize,
    /// Common table expressions in scope.
    ctes: Vec<Cte>,
    found: Vec<LockQuery>,
}

impl Search<'_> {
    /// False if a block that locks rows is `dependent` on others' rows.
    fn query(&mut self, query: &QueryExpr, dependent: bool) -> bool {
        let scope = self.ctes.len();
        for cte in &query.ctes {
            let is_clear = match &cte.body {
                CteBody::Plain(body) => self.query(body, dependent),
                CteBody::Recursive { seed, step, .. } => self.query(seed, true) && self.query(step, true),
            };
            if !is_clear {
                return false;
            }
            self.ctes.push(cte.clone());
        }
        let is_clear = match &query.body {
            QueryBody::Select(select) => self.block(select, query, dependent),
            QueryBody::SetOperation(set) => {
                self.query(&set.left, dependent) && self.query(&set.right, dependent)
            }
            QueryBody::Values(_) | QueryBody::JsonTable(_) => true,
            QueryBody::Nested(inner) => self.query(inner, dependent),
        };
        self.ctes.truncate(scope);
        is_clear
    }

    fn block(&mut self, select: &Select, query: &QueryExpr, dependent: bool) -> bool {
        let mut row_ids = Vec::new();
        let mut tables = Vec::new();
        self.locked_tables(&select.from, &mut row_ids, &mut tables);
        if !tables.is_empty() {
            if dependent {
                return false;
            }
            let found = self.lock_query(select, query, &row_ids, tables);
            self.found.push(found);
        }
        self.derived_tables(&select.from, dependent)
            && select.subqueries.iter().all(|s| self.query(&s.query, dependent || !s.outer.is_empty()))
    }

    fn locked_tables(&self, from: &From, row_ids: &mut Vec<ColumnId>, tables: &mut Vec<LockedTable>) {
        match from {
            From::Table(scan) => {
                let Some(lock) = scan.lock else { return };
                let (_, row_id) = *scan.columns.last().expect("a scan that locks rows gives their ids");
                tables.push(LockedTable {
                    table: scan.table.clone(),
                    lock,
                    scan: row_id.index() - self.first,
                });
                row_ids.push(row_id);
            }
            From::Join(join) => {
                self.locked_tables(&join.left, row_ids, tables);
                self.locked_tables(&join.right, row_ids, tables);
            }
            From::Dual | From::Derived(_) | From::Cte(_) => {}
        }
    }

    fn derived_tables(&mut self, from: &From, dependent: bool) -> bool {
        match from {
            From::Derived(derived) => self.query(&derived.query, dependent || !derived.outer.is_empty()),
            From::Join(join) => {
                self.derived_tables(&join.left, dependent) && self.derived_tables(&join.right, dependent)
            }
            From::Dual | From::Table(_) | From::Cte(_) => true,
        }
    }

    fn lock_query(
        &self,
        block: &Select,
        query: &QueryExpr,
        row_ids: &[ColumnId],
        tables: Vec<LockedTable>,
    ) -> LockQuery {
        let mut columns = self.columns.clone();
        let gathers = block.aggregation.is_some() || block.distinct || !block.windows.is_empty();
        let limit = query.limit.clone().filter(|_| !gathers);
        let order_by = if limit.is_some() { query.order_by.clone() } else { Vec::new() };
        let mut select =
            Select { subqueries: block.subqueries.clone(), ..Select::plain(block.from.clone(), Vec::new()) };
        select.filter = block.filter.clone();
        if !gathers {
            select.having = block.having.clone();
        }
        let is_sorted_by = |item: &&Projected| order_by.iter().any(|key| key.column == item.id);
        select.projection = block.projection.iter().filter(is_sorted_by).cloned().collect();
        let mut outputs = Vec::with_capacity(row_ids.len());
        for row_id in row_ids {
            let info = columns[*row_id].clone();
            let expr = Expr::column(row_id.index(), info.ty, info.nullable);
            let id = columns.add(info);
            select.projection.push(Projected { id, expr });
            outputs.push(id);
        }
        keep_used_subqueries(&mut select);
        let body = QueryBody::Select(Box::new(select));
        let body = QueryExpr { ctes: self.ctes.clone(), body, order_by, limit: None, outputs };
        let query = BoundQuery {
            body,
            columns,
            params: self.bound.params.clone(),
            locks: false,
            session_dependent: self.bound.session_dependent,
            assigns: self.bound.assigns,
            views: self.bound.views.clone(),
            calc_found_rows: false,
            likely_counts: Box::default(),
        };
        LockQuery { query, tables, limit }
    }
}

/// Drops the subqueries whose answers only parts of the block used that are gone.
fn keep_used_subqueries(select: &mut Select) {
    let mut used = BTreeSet::new();
    let mut note = |expr: &Expr| used.extend(expr.columns());
    select.filter.iter().for_each(&mut note);
    select.having.iter().for_each(&mut note);
    select.projection.iter().for_each(|item| note(&item.expr));
    conditions_of(&select.from, &mut note);
    let mut kept = Vec::new();
    let mut left = std::mem::take(&mut select.subqueries);
    // One may use the answer of another.
    while let Some(at) = left.iter().position(|subquery| used.contains(&subquery.id.index())) {
        let subquery = left.remove(at);
        used.extend(subquery.outer.iter().map(|id| id.index()));
        match &subquery.kind {
            SubqueryKind::Scalar | SubqueryKind::Exists { .. } => {}
            SubqueryKind::In { needles, .. } => used.extend(needles.iter().flat_map(Expr::columns)),
            SubqueryKind::Quantified { left, .. } => used.extend(left.columns()),
        }
        kept.push(subquery);
    }
    kept.sort_by_key(|subquery| subquery.id);
    select.subqueries = kept;
}

fn conditions_of(from: &From, visit: &mut dyn FnMut(&Expr)) {
    match from {
        From::Join(join) => {
            conditions_of(&join.left, visit);
            conditions_of(&join.right, visit);
            join.on.iter().for_each(visit);
        }
        From::Derived(_) | From::Dual | From::Table(_) | From::Cte(_) => {}
    }
}
