//! Binding: from syntax to the bound algebra, by MySQL's rules for names and types.
//!
//! ```text
//!  ast::Query ──┬─ from.rs       tables, joins, USING and NATURAL      ──┐
//!               ├─ select.rs     a block: items, grouping, order         ├─▶ plan::BoundQuery
//!               ├─ resolve.rs    what names mean                         │
//!               ├─ group.rs      what may stand beside GROUP BY          │
//!               ├─ expr.rs       expressions, through types' Typer       │
//!               ├─ aggregate.rs, window.rs, subquery.rs                  │
//!               ├─ modify.rs     the query behind UPDATE and DELETE      │
//!               ├─ views.rs, inline.rs, merge.rs, unread.rs, notes.rs    │
//!               ├─ indexed.rs    expressions that indexes have           │
//!               ├─ zero_dates.rs zero dates that IS NULL finds           │
//!               ├─ upsert.rs     names in ON DUPLICATE KEY UPDATE        │
//!               ├─ recursive.rs  recursive common table expressions      │
//!               └─ query.rs      WITH, set operations, VALUES, order   ──┘
//! ```
//!
//! The binder keeps a stack of blocks, innermost last. A name that an outer block resolves crosses the boundaries of
//! the subqueries in between, and each of these notes the column as an outer one.

mod aggregate;
mod catalog;
mod dependences;
mod distinct;
mod equalities;
mod expr;
mod from;
mod group;
mod indexed;
mod inline;
mod insert;
mod json_table;
mod labels;
mod locks;
mod members;
mod merge;
mod modify;
mod notes;
mod query;
mod recursive;
mod resolve;
mod row_subquery;
mod scope;
mod select;
mod set_operation;
mod subquery;
mod unread;
mod upsert;
mod views;
mod window;
mod zero_dates;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use avocet_base::TableId;
use avocet_types::expr::{Expr, Typer};
use avocet_types::schema::TableDef;
use avocet_types::{Datum, SqlType};

pub use avocet_types::error::unsupported;
pub use catalog::{CatalogView, ColumnStatistics, PathStatistics, TableStatistics};
pub use equalities::not_null_columns;
pub use insert::{ViewTarget, through_view};
pub use modify::reads_directly;
pub use modify::{BoundCheck, CheckOf, Modification, ModifySpec, bind_modification};
pub use notes::{Notes, Qualified, first_table};
pub use scope::Clause;
pub use upsert::{Upsert, UpsertNames};
pub use views::{invalid as invalid_view, is_one_block, names_in, parse_view};

use crate::item_name;
use crate::parse::ast::{self, Ident};
use crate::plan::{BoundQuery, ColumnId, ColumnInfo, ColumnTable, From, QueryBody, QueryExpr, Select, walk};
use avocet_types::error::{ErrorCode, SqlError};
use dependences::OfCtes;
use scope::{Block, Boundary, ColumnName, ScopeColumn, ScopeCte, ScopeTable};

/// Binds a query. `source` is the text that it was parsed from; `params` are the types of the values for its `?`, as far
/// as they are known: parameters beyond the list take their type from what they are compared with or stored in.
pub fn bind_query(
    query: &ast::Query,
    source: &[u8],
    catalog: &dyn CatalogView,
    params: &[SqlType],
) -> Result<BoundQuery, SqlError> {
    let mut binder = Binder::new(source, catalog, params);
    let body = binder.query(query)?;
    let mut bound = binder.finish(body)?;
    bound.calc_found_rows = query.first_select().is_some_and(|select| select.calc_found_rows);
    Ok(bound)
}

/// As [`bind_query`], with what the query's names mean.
pub fn bind_with_notes(
    query: &ast::Query,
    source: &[u8],
    catalog: &dyn CatalogView,
) -> Result<(BoundQuery, Notes), SqlError> {
    let mut binder = Binder::new(source, catalog, &[]);
    binder.notes = Some(Notes::default());
    let body = binder.query(query)?;
    let notes = binder.notes.take().unwrap_or_default();
    Ok((binder.finish(body)?, notes))
}

/// Binds expressions over the columns of one table, in which column `i` of the table is `Column(i)`: for UPDATE, DELETE,
/// defaults and ON DUPLICATE KEY UPDATE. Subqueries and aggregates are refused.
pub struct TableBinder<'a> {
    binder: Binder<'a>,
    table: Arc<TableDef>,
}

impl<'a> TableBinder<'a> {
    /// `extra` are further columns after the table's: a name to qualify them, and the columns.
    pub fn new(
        source: &'a [u8],
        catalog: &'a dyn CatalogView,
        params: &[SqlType],
        table: &Arc<TableDef>,
        alias: Option<&str>,
    ) -> Self {
        let mut binder = Binder::new(source, catalog, params);
        binder.blocks.push(Block::new());
        let name: Arc<str> = alias.unwrap_or(&table.name).into();
        binder.push_base_table(table, name, alias.is_none());
        Self { binder, table: table.clone() }
    }

    /// What a definition keeps names columns by their own names: its keys may go.
    pub fn forget_rowid(&mut self) {
        self.binder.block().tables.iter_mut().for_each(|table| table.rowid = None);
    }

    /// Binds an expression of this clause.
    pub fn expr(&mut self, expr: &ast::Expr, clause: Clause) -> Result<Expr, SqlError> {
        let bound = self.binder.bind_alone(expr, clause)?;
        match self.binder.block().subqueries.is_empty() {
            true => Ok(bound),
            false => Err(unsupported("subqueries here")),
        }
    }

    pub fn condition(&mut self, expr: &ast::Expr) -> Result<Expr, SqlError> {
        let bound = self.expr(expr, Clause::Where)?;
        Ok(self.binder.typer.condition(bound))
    }

    /// A condition for rows that are looked for: columns that have an index stand for what they are computed from.
    pub fn search_condition(&mut self, expr: &ast::Expr) -> Result<Expr, SqlError> {
        let condition = self.condition(expr)?;
        let mut bound = self.binder.zero_dates_of_table(condition, &self.table);
        indexed::in_condition_of_table(&mut bound, &self.table);
        Ok(bound)
    }

    /// A key that rows are sorted by, as above.
    pub fn sort_key(&mut self, expr: &ast::Expr) -> Result<Expr, SqlError> {
        let mut bound = self.expr(expr, Clause::Order)?;
        indexed::in_sort_key_of_table(&mut bound, &self.table);
        Ok(bound)
    }

    /// As [`Self::expr`], but subqueries may stand in it, whose answers are columns behind the table's:
    /// [`Self::into_subqueries`] has them.
    fn expr_with_subqueries(&mut self, expr: &ast::Expr, clause: Clause) -> Result<Expr, SqlError> {
        self.binder.bind_alone(expr, clause)
    }

    /// A block of nothing but the subqueries of what was bound.
    fn into_subqueries(mut self) -> Result<BoundQuery, SqlError> {
        let subqueries = std::mem::take(&mut self.binder.block().subqueries);
        let subqueries = subqueries.into_iter().map(|of| of.subquery).collect();
        let block = Select { subqueries, ..Select::plain(From::Dual, Vec::new()) };
        let body = QueryBody::Select(Box::new(block));
        let (order_by, outputs) = (Vec::new(), Vec::new());
        self.binder.finish(QueryExpr { ctes: Vec::new(), body, order_by, limit: None, outputs })
    }

    /// Whether a variable of the session was bound, as the value that it has.
    pub fn is_of_session(&self) -> bool {
        self.binder.session_dependent
    }

    /// The types of the parameters, as given or as the context made them.
    pub fn params(&self) -> &[SqlType] {
        &self.binder.params
    }

    /// Gives a parameter that has no type yet the type of the column that it is stored in.
    pub fn settle_param(&mut self, expr: Expr, ty: SqlType) -> Expr {
        self.binder.settle(expr, ty)
    }

    /// A value that a column of this type gets.
    pub fn assigned(&mut self, expr: Expr, ty: SqlType) -> Expr {
        self.binder.assigned(expr, ty)
    }
}

/// What is being bound was parsed from.
enum Source<'a> {
    Statement(&'a [u8]),
    View(Arc<TableDef>),
}

impl Source<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Statement(text) => text,
            Self::View(view) => view.view.as_ref().map_or(&[][..], |view| view.select.as_bytes()),
        }
    }
}

pub struct Binder<'a> {
    source: Source<'a>,
    catalog: &'a dyn CatalogView,
    typer: Typer,
    columns: ColumnTable,
    /// By column id: whether something refers to it.
    used: Vec<bool>,
    blocks: Vec<Block>,
    boundaries: Vec<Boundary>,
    ctes: Vec<ScopeCte>,
    next_cte: u32,
    /// Of those that have been bound, also where no name reaches them any more.
    dependences_of_ctes: OfCtes,
    extent: query::Extent,
    params: Vec<SqlType>,
    session_dependent: bool,
    /// Expressions assign to user variables.
    assigns: bool,
    exprs_bound: usize,
    /// Of these, those that were bound before.
    exprs_repeated: usize,
    /// Views that were met, each once.
    views: Vec<Arc<TableDef>>,
    /// Those within which something is being bound.
    open_views: Vec<TableId>,
    merged: merge::Merged,
    /// Derived tables or common table expressions were met, which are merged as views are.
    has_derived: bool,
    /// They are not: a statement that changes rows may read of them what these were.
    keeps_derived: bool,
    notes: Option<Notes>,
    /// VALUES() may stand in subqueries.
    takes_inserted: bool,
    /// Which `*` of the query that is bound next are no columns, since it is that of an EXISTS.
    stars: scope::Stars,
    /// The set operation around the one that is bound next.
    around: Option<set_operation::Around>,
    /// Conditions for the partitions that scans are of, by the first columns of these.
    partitions: HashMap<ColumnId, Expr>,
}

impl<'a> Binder<'a> {
    fn new(source: &'a [u8], catalog: &'a dyn CatalogView, params: &[SqlType]) -> Self {
        Self {
            source: Source::Statement(source),
            catalog,
            typer: catalog.typer(),
            columns: ColumnTable::default(),
            used: Vec::new(),
            blocks: Vec::new(),
            boundaries: Vec::new(),
            ctes: Vec::new(),
            next_cte: 0,
            dependences_of_ctes: OfCtes::default(),
            extent: query::Extent::default(),
            params: params.to_vec(),
            session_dependent: false,
            assigns: false,
            exprs_bound: 0,
            exprs_repeated: 0,
            views: Vec::new(),
            open_views: Vec::new(),
            merged: merge::Merged::default(),
            has_derived: false,
            keeps_derived: false,
            notes: None,
            takes_inserted: false,
            stars: scope::Stars::default(),
            around: None,
            partitions: HashMap::new(),
        }
    }

    /// The bound query of a body, whose scans read what is used.
    fn finish(mut self, mut body: crate::plan::QueryExpr) -> Result<BoundQuery, SqlError> {
        if !self.views.is_empty() || self.has_derived && !self.keeps_derived {
            self.merge_tables(&mut body)?;
        }
        if self.has_derived {
            self.drop_unread(&mut body);
        }
        self.read_indexed(&mut body);
        let mut locks = false;
        walk::for_each_scan_mut(&mut body, &mut |scan| {
            scan.columns.retain(|(_, id)| self.used.get(id.index()).copied().unwrap_or(false));
            locks |= scan.lock.is_some();
        });
        Ok(BoundQuery {
            body,
            columns: self.columns,
            params: self.params,
            locks,
            calc_found_rows: false,
            likely_counts: Box::default(),
            session_dependent: self.session_dependent,
            assigns: self.assigns,
            views: self.views.into(),
        })
    }

    /// An expression that is not of a query: it has no aggregates.
    fn bind_alone(&mut self, expr: &ast::Expr, clause: Clause) -> Result<Expr, SqlError> {
        self.block().clause = clause;
        let bound = self.expr(expr)?;
        let block = self.block();
        match block.aggregates.is_empty() && block.window_functions.is_empty() {
            true => Ok(bound),
            false => Err(ErrorCode::INVALID_GROUP_FUNC_USE.with(&[])),
        }
    }

    /// The innermost block.
    fn block(&mut self) -> &mut Block {
        self.blocks.last_mut().expect("expressions are bound inside of a block")
    }

    fn add_column(&mut self, name: impl Into<Arc<str>>, ty: SqlType, nullable: bool) -> ColumnId {
        self.columns.add(ColumnInfo { name: name.into(), ty, nullable, origin: None, label: None })
    }

    /// A column that shows `expr`'s value under `name`; a plain column keeps its origin.
    fn add_projected(&mut self, name: impl Into<Arc<str>>, expr: &Expr) -> ColumnId {
        let nullable = expr.nullable || labels::may_become_null(expr);
        let shown = walk::column_of(expr).map(|id| &self.columns[id]);
        let origin = shown.and_then(|info| info.origin.clone());
        let label = shown.and_then(|info| info.label.clone());
        let name = name.into();
        let id = self.columns.add(ColumnInfo { name, ty: expr.ty, nullable, origin, label });
        if self.typer.is_coercible(expr) {
            self.typer.coercible_columns.insert(id.index());
        }
        if matches!((expr.as_literal(), expr.ty), (Some(Datum::Int(_)), SqlType::Int { .. })) {
            self.typer.written_integers.insert(id.index(), expr.clone());
        }
        if let Some(from) = walk::column_of(expr) {
            self.copy_zeros(from, id);
        }
        id
    }

    /// A column like another one, for a second reader of the same rows.
    fn copy_column(&mut self, id: ColumnId) -> ColumnId {
        let copy = self.columns.add(self.columns[id].clone());
        if self.typer.coercible_columns.contains(&id.index()) {
            self.typer.coercible_columns.insert(copy.index());
        }
        self.copy_zeros(id, copy);
        copy
    }

    /// A column shows zeros as the one does that it is.
    fn copy_zeros(&mut self, from: ColumnId, to: ColumnId) {
        if let Some(width) = self.typer.zero_filled.get(&from.index()).copied() {
            self.typer.zero_filled.insert(to.index(), width);
        }
    }

    fn column_expr(&self, id: ColumnId) -> Expr {
        let info = &self.columns[id];
        Expr::column(id.index(), info.ty, info.nullable)
    }

    fn mark_used(&mut self, id: ColumnId) {
        if self.used.len() <= id.index() {
            self.used.resize(id.index() + 1, false);
        }
        self.used[id.index()] = true;
    }

    /// Adds a base table to the innermost block. Its columns get ids in table order.
    fn push_base_table(&mut self, table: &Arc<TableDef>, alias: Arc<str>, qualified: bool) -> Vec<ColumnId> {
        let ids: Vec<_> = table
            .columns
            .iter()
            .enumerate()
            .map(|(column, def)| {
                let origin = crate::plan::ColumnOrigin { table: table.clone(), column, alias: alias.clone() };
                self.columns.add(ColumnInfo {
                    name: def.name.as_str().into(),
                    ty: def.ty,
                    nullable: def.nullable,
                    origin: Some(origin),
                    label: None,
                })
            })
            .collect();
        for (id, column) in ids.iter().zip(&table.columns) {
            let width = column.zerofill.or_else(|| (column.ty == SqlType::DOUBLE).then_some(0));
            if let Some(width) = width {
                self.typer.zero_filled.insert(id.index(), width);
            }
        }
        let keys = table
            .indexes
            .iter()
            .filter(|index| index.kind.is_unique())
            .filter(|index| {
                index.parts.iter().all(|p| p.prefix_len.is_none() && !table.columns[p.column].nullable)
            })
            .map(|index| index.parts.iter().map(|p| ids[p.column]).collect())
            .collect();
        let columns = ids
            .iter()
            .zip(table.own_columns())
            .map(|(id, def)| {
                let name = def.name.as_str().into();
                ScopeColumn { name, id: *id, merged: false, invisible: def.invisible }
            })
            .collect();
        let database = qualified.then(|| table.database.as_str().into());
        let is_stored = !table.database.eq_ignore_ascii_case("information_schema");
        let hidden = ids[table.own_columns().len()..].to_vec();
        let rowid = table.rowid_column().map(|at| ids[at]);
        self.block().tables.push(ScopeTable {
            database,
            name: alias,
            columns,
            is_stored,
            is_complemented: false,
            keys,
            hidden,
            rowid,
        });
        ids
    }

    /// Runs `bind` as a query of its own inside of the current block; also gives the outer columns that it used.
    fn bounded<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<(T, Vec<ColumnId>), SqlError> {
        self.boundaries.push(Boundary { depth: self.blocks.len(), outer: Default::default() });
        let result = bind(self);
        let boundary = self.boundaries.pop().expect("pushed above");
        Ok((result?, boundary.outer.into_iter().collect()))
    }

    /// The name of a select item: its alias, or the one that MySQL gives it.
    fn item_name(&self, expr: &ast::Expr, alias: Option<&Ident>) -> Arc<str> {
        match alias {
            Some(alias) => item_name::shown(&alias.name).into(),
            None => item_name::item_name(expr, self.source.bytes()).into(),
        }
    }

    /// Gives a parameter without a type one; other expressions pass.
    fn settle(&mut self, expr: Expr, ty: SqlType) -> Expr {
        match expr.kind {
            avocet_types::expr::ExprKind::Param(index) if expr.ty == SqlType::Null && ty != SqlType::Null => {
                let ty = match ty {
                    // A value may be longer than the column that it is compared with.
                    SqlType::Char { collation, .. } | SqlType::VarChar { collation, .. } => {
                        SqlType::VarChar { len: 16_383, collation }
                    }
                    SqlType::Enum(members) | SqlType::Set(members) => {
                        SqlType::VarChar { len: 16_383, collation: members.collation() }
                    }
                    SqlType::Bit { .. } => SqlType::BIGINT_UNSIGNED,
                    ty => ty,
                };
                self.params[index] = ty;
                Expr::param(index, ty)
            }
            _ => expr,
        }
    }

    /// A value that a column of this type gets.
    fn assigned(&mut self, expr: Expr, ty: SqlType) -> Expr {
        Typer::assigned(self.settle(expr, ty), &ty)
    }

    /// Alternatives of which one is the value: parameters take the type of the others. A text that is bound to one is converted to
    /// it, where a text that is written there would make all of them texts.
    fn settle_alternatives(&mut self, exprs: &mut [Expr]) {
        let is_param = |expr: &Expr| matches!(expr.kind, avocet_types::expr::ExprKind::Param(_));
        let is_other = |expr: &&Expr| !is_param(expr) && expr.ty != SqlType::Null;
        let others: Vec<Expr> = exprs.iter().filter(is_other).cloned().collect();
        if others.is_empty() || !exprs.iter().any(is_param) {
            return;
        }
        let Ok(ty) = self.typer.common_type(&others, "") else { return };
        for expr in exprs.iter_mut().filter(|expr| is_param(expr)) {
            if expr.ty == SqlType::Null {
                *expr = self.settle(expr.clone(), ty);
            } else if expr.ty.is_string() || expr.ty.is_bytes() {
                let to = match ty {
                    SqlType::Decimal { .. } => SqlType::Decimal { precision: 65, scale: 30, unsigned: false },
                    SqlType::Int { unsigned: true, .. } => SqlType::BIGINT_UNSIGNED,
                    SqlType::Int { .. } | SqlType::Bool | SqlType::Year => SqlType::BIGINT,
                    SqlType::Float(_) | SqlType::Double(_) => SqlType::DOUBLE,
                    ty if ty.is_temporal() => ty,
                    _ => continue,
                };
                *expr = self.typer.convert(expr.clone(), to);
            }
        }
    }

    /// Two operands that meet: a parameter without a type takes the other's.
    fn settle_pair(&mut self, left: Expr, right: Expr) -> (Expr, Expr) {
        let (left_ty, right_ty) = (left.ty, right.ty);
        (self.settle(left, right_ty), self.settle(right, left_ty))
    }
}
