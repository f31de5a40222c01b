//! FROM: tables, derived tables, references to CTEs, joins.

use std::collections::HashSet;
use std::sync::Arc;

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{CompareOp, Expr};
use avocet_types::names;
use avocet_types::schema::TableDef;

use crate::bind::dependences::{Dependences, OfCtes};
use crate::bind::equalities::{OuterJoin, collect_equalities, outer_equalities};
use crate::bind::scope::{Clause, ScopeColumn, ScopeTable};
use crate::bind::{Binder, Source, unsupported};
use crate::kept::partitions::condition_of;
use crate::parse::ast::{self, Ident, JoinCondition, TableRef};
use crate::plan::*;

/// Index hints change no result, but they name indexes that are there.
fn check_hints(hints: &[ast::IndexHint], from: &From) -> Result<(), SqlError> {
    let (shown, table) = match from {
        From::Table(scan) => (&scan.alias, Some(&*scan.table)),
        From::Cte(cte) => (&cte.alias, None),
        From::Derived(_) | From::Join(_) | From::Dual => return Ok(()),
    };
    let is_missing = |name: &&Ident| !table.is_some_and(|table| has_visible_index(table, &name.name));
    let hints = hints.iter().filter(|hint| hint.kind != ast::IndexHintKind::Partition);
    match hints.flat_map(|hint| &hint.indexes).find(is_missing) {
        Some(missing) => Err(ErrorCode::KEY_DOES_NOT_EXIST.with(&[&missing.name, shown])),
        None => Ok(()),
    }
}

/// A hint names an index in full, or by a beginning that no other index has, invisible ones included.
fn has_visible_index(table: &TableDef, name: &str) -> bool {
    let searched = table.kept_keys.iter().map(|key| (&*key.name, true));
    let all = table.indexes.iter().map(|index| (&*index.name, !index.invisible)).chain(searched);
    if let Some((_, is_visible)) = all.clone().find(|(own, _)| own.eq_ignore_ascii_case(name)) {
        return is_visible;
    }
    let begins = |own: &str| {
        own.as_bytes().get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
    };
    let mut begun = all.filter(|(own, _)| begins(own));
    matches!((begun.next(), begun.next()), (Some((_, true)), None))
}

/// As many tables as MySQL joins in one block. Sets of them fit into 64 bits where joins are ordered.
pub(super) const MOST_TABLES: usize = 61;

/// A part of FROM that is bound: the tree, where its tables are in the block's list, and what `*` means.
pub(super) struct Bound {
    pub from: From,
    /// Index of its first table in the block; its tables are the last ones.
    pub first: usize,
    /// Columns of `*`, in order.
    pub star: Vec<ColumnId>,
}

impl Binder<'_> {
    /// Comma-separated references are cross joins.
    pub(super) fn from(&mut self, refs: &[TableRef]) -> Result<Bound, SqlError> {
        let mut bound: Option<Bound> = None;
        for table in refs {
            let next = self.table_ref(table)?;
            bound = Some(match bound {
                None => next,
                Some(left) => join(JoinKind::Inner, left, next, None),
            });
        }
        Ok(bound.unwrap_or(Bound { from: From::Dual, first: 0, star: Vec::new() }))
    }

    fn table_ref(&mut self, table: &TableRef) -> Result<Bound, SqlError> {
        match table {
            TableRef::Table { name, alias, hints } => {
                let bound = self.named_table(name, alias.as_ref())?;
                check_hints(hints, &bound.from)?;
                if let Some(hint) = hints.iter().find(|hint| hint.kind == ast::IndexHintKind::Partition) {
                    self.select_partitions(hint, &bound.from)?;
                }
                Ok(bound)
            }
            TableRef::Derived { query, alias, columns, lateral, .. } => {
                let unnamed = match query.body {
                    ast::QueryBody::JsonTable(_) => ErrorCode::TF_MUST_HAVE_ALIAS,
                    _ => ErrorCode::DERIVED_MUST_HAVE_ALIAS,
                };
                let alias = alias.as_ref().ok_or_else(|| unnamed.with(&[]))?;
                self.derived(query, alias, columns, *lateral)
            }
            TableRef::Join(join) => self.join(join),
        }
    }

    /// `t PARTITION (p, …)`: a condition of the block, or of the outer join that the table is on the inner side of.
    fn select_partitions(&mut self, hint: &ast::IndexHint, from: &From) -> Result<(), SqlError> {
        let From::Table(scan) = from else { return Err(unsupported("PARTITION (...) of what is no table")) };
        let names: Vec<&str> = hint.indexes.iter().map(|name| name.name.as_str()).collect();
        let condition = condition_of(&scan.table, &scan.alias, &names)?;
        let id_of = |column: usize| scan.columns.iter().find(|(at, _)| *at == column).map(|(_, id)| *id);
        let condition = condition
            .map_columns(&mut |column| id_of(column).expect("all columns of a table are bound").index());
        for id in condition.columns() {
            self.mark_used(ColumnId(id as u32));
        }
        if let Some((_, first)) = scan.columns.first() {
            self.partitions.insert(*first, condition.clone());
        }
        self.block().partitions.push(condition);
        Ok(())
    }

    /// The conditions that selections of partitions have added since there were `from` of them.
    pub(super) fn partitions_since(&mut self, from: usize) -> Option<Expr> {
        let conditions = self.block().partitions.split_off(from);
        (!conditions.is_empty()).then(|| self.typer.and(conditions))
    }

    fn named_table(&mut self, name: &ast::ObjectName, alias: Option<&Ident>) -> Result<Bound, SqlError> {
        let shown: Arc<str> = alias.map_or(name.name.name.as_str(), |a| a.name.as_str()).into();
        if name.database.is_none()
            && let Some(cte) = self.ctes.iter().rev().find(|c| *c.name == *name.name.name).cloned()
        {
            self.check_recursion(&cte)?;
            self.grow_by(cte.levels, cte.queries)?;
            return self.cte_ref(&cte.columns, cte.id, shown);
        }
        let table = self.find_table(name)?;
        self.note_database(name, &table.database);
        if table.is_view() {
            return self.view(&table, shown, alias.is_none());
        }
        let database = alias.is_none().then(|| Arc::from(table.database.as_str()));
        self.check_next(&shown, database.as_deref())?;
        let first = self.block().tables.len();
        let ids = self.push_base_table(&table, shown.clone(), alias.is_none());
        let is_visible = |(column, _): &(usize, &ColumnId)| !table.columns[*column].invisible;
        let star = ids.iter().enumerate().filter(is_visible).map(|(_, id)| *id).collect();
        let columns = ids.into_iter().enumerate().collect();
        let scan = TableScan { table, alias: shown, columns, lock: None, only: None, of_derived: false };
        Ok(Bound { from: From::Table(scan), first, star })
    }

    /// A stored table or a view by its name, in the current database if it names none.
    pub(super) fn find_table(
        &self,
        name: &ast::ObjectName,
    ) -> Result<Arc<avocet_types::schema::TableDef>, SqlError> {
        let database = match &name.database {
            Some(database) => database.name.as_str(),
            None => self.catalog.current_database().ok_or_else(|| ErrorCode::NO_DB_ERROR.with(&[]))?,
        };
        let (catalog, name_of) = (self.catalog, &name.name.name);
        let found = match &self.source {
            Source::View(_) => {
                catalog.stored_table(database, name_of).or_else(|| catalog.stored_view(database, name_of))
            }
            _ => catalog.table(database, name_of).or_else(|| catalog.view(database, name_of)),
        };
        if let Some(found) = found {
            return Ok(found);
        }
        Err(match self.catalog.has_database(database) {
            _ if database.eq_ignore_ascii_case("information_schema") => {
                ErrorCode::UNKNOWN_TABLE.with(&[&name.name.name.to_uppercase(), &"information_schema"])
            }
            true => ErrorCode::NO_SUCH_TABLE.with(&[&database, &name.name.name]),
            false => ErrorCode::BAD_DB_ERROR.with(&[&database]),
        })
    }

    /// Whether the block can have one more table, of this name.
    pub(super) fn check_next(&mut self, name: &str, database: Option<&str>) -> Result<(), SqlError> {
        let tables = &self.block().tables;
        if tables.iter().any(|t| *t.name == *name && t.database.as_deref() == database) {
            return Err(ErrorCode::NONUNIQ_TABLE.with(&[&name]));
        }
        if tables.len() == MOST_TABLES {
            return Err(ErrorCode::TOO_MANY_TABLES.with(&[&MOST_TABLES]));
        }
        Ok(())
    }

    fn cte_ref(&mut self, source: &[ColumnId], cte: CteId, alias: Arc<str>) -> Result<Bound, SqlError> {
        self.check_next(&alias, None)?;
        let columns: Vec<_> = source.iter().map(|id| self.copy_column(*id)).collect();
        self.label_columns(&columns, &alias, None, true);
        self.with_dependences(|all, of_ctes| all.add_cte(cte, &columns, of_ctes));
        let first = self.push_scope_table(alias.clone(), &columns, Vec::new());
        Ok(Bound { from: From::Cte(CteRef { cte, alias, columns: columns.clone() }), first, star: columns })
    }

    /// Adds to the dependences of the block's derived tables.
    pub(super) fn with_dependences<T>(&mut self, add: impl FnOnce(&mut Dependences, &OfCtes) -> T) {
        let block = self.blocks.last_mut().expect("tables are bound inside of a block");
        add(&mut block.dependences, &self.dependences_of_ctes);
    }

    /// Adds a table that is not stored to the block; where it is in the block's list.
    pub(super) fn push_scope_table(
        &mut self,
        name: Arc<str>,
        ids: &[ColumnId],
        keys: Vec<Vec<ColumnId>>,
    ) -> usize {
        let columns = ids
            .iter()
            .map(|id| ScopeColumn {
                name: self.columns[*id].name.clone(),
                id: *id,
                merged: false,
                invisible: false,
            })
            .collect();
        let tables = &mut self.block().tables;
        tables.push(ScopeTable::derived(name, columns, keys));
        tables.len() - 1
    }

    fn derived(
        &mut self,
        query: &ast::Query,
        alias: &Ident,
        names: &[Ident],
        lateral: bool,
    ) -> Result<Bound, SqlError> {
        self.check_next(&alias.name, None)?;
        let function: Option<Arc<str>> = match query.body {
            ast::QueryBody::JsonTable(_) => Some("json_table".into()),
            _ => None,
        };
        self.block().hidden = !lateral;
        let bound = self.bounded(|binder| binder.query(query));
        self.block().hidden = false;
        let (mut query, outer) = bound?;
        self.keep_years(&mut query);
        self.has_derived = true;
        let block = self.block();
        let outer: Vec<_> = outer.into_iter().filter(|id| block.owns(*id)).collect();
        self.name_outputs(&query.outputs, names)?;
        let alias: Arc<str> = alias.name.as_str().into();
        let star = query.outputs.clone();
        self.label_columns(&star, &alias, function.as_ref(), can_merge(&query));
        let keys = keys_of(&query);
        self.with_dependences(|all, of_ctes| all.add_query(&query, of_ctes));
        let first = self.push_scope_table(alias.clone(), &star, keys);
        Ok(Bound { from: From::Derived(Derived { query, alias, outer, view: None }), first, star })
    }

    /// Gives outputs the names of a column list, and refuses doubles.
    pub(super) fn name_outputs(&mut self, outputs: &[ColumnId], names: &[Ident]) -> Result<(), SqlError> {
        if !names.is_empty() && names.len() != outputs.len() {
            return Err(ErrorCode::VIEW_WRONG_LIST.with(&[]));
        }
        for (id, name) in outputs.iter().zip(names) {
            self.columns[*id].name = name.name.as_str().into();
        }
        for (i, id) in outputs.iter().enumerate() {
            let name = &self.columns[*id].name;
            if outputs[..i].iter().any(|other| names::eq(&self.columns[*other].name, name)) {
                return Err(ErrorCode::DUP_FIELDNAME.with(&[name]));
            }
        }
        Ok(())
    }

    fn join(&mut self, ast: &ast::Join) -> Result<Bound, SqlError> {
        let before = self.block().partitions.len();
        let first_dependence = self.block().dependences.len();
        let left = self.table_ref(&ast.left)?;
        let of_left = self.block().partitions.len();
        let middle_dependence = self.block().dependences.len();
        let right = self.table_ref(&ast.right)?;
        let split = right.first;
        let swapped = ast.kind == ast::JoinKind::Right;
        let kind = if ast.kind == ast::JoinKind::Inner { JoinKind::Inner } else { JoinKind::Left };
        let (on, merged_star) = match &ast.condition {
            JoinCondition::None => (None, None),
            JoinCondition::On(expr) => (Some(self.on(expr, left.first)?), None),
            JoinCondition::Using(names) => {
                let names: Vec<_> = names.iter().map(|n| n.name.clone()).collect();
                let (on, star) = self.merge(ast, &left, &right, &names)?;
                (on, Some(star))
            }
            JoinCondition::Natural => {
                let names = self.common_names(&left, &right)?;
                let (on, star) = self.merge(ast, &left, &right, &names)?;
                (on, Some(star))
            }
        };
        let on = match (kind, swapped) {
            (JoinKind::Left, false) => self.with_partitions(on, of_left),
            (JoinKind::Left, true) => {
                let of_right = self.block().partitions.split_off(of_left);
                let on = self.with_partitions(on, before);
                self.block().partitions.extend(of_right);
                on
            }
            _ => on,
        };
        if kind == JoinKind::Left {
            let inner =
                if swapped { first_dependence..middle_dependence } else { middle_dependence..usize::MAX };
            self.block().dependences.complement(inner);
            let range = if swapped { left.first..split } else { split..self.block().tables.len() };
            if let Some(on) = &on {
                let block = self.block();
                let inner: HashSet<_> =
                    block.tables[range.clone()].iter().flat_map(ScopeTable::ids).collect();
                outer_equalities(on, &|id| inner.contains(&id), &mut block.equalities);
                let inner = inner.into_iter().collect();
                block.outer_joins.push(OuterJoin { inner, on: on.clone() });
            }
            self.make_nullable(range);
        } else if let Some(on) = &on {
            collect_equalities(on, &mut self.block().equalities);
        }
        let first = left.first;
        let star: Vec<_> = left.star.iter().chain(&right.star).copied().collect();
        let (outer, inner) = if swapped { (right, left) } else { (left, right) };
        if swapped {
            self.check_sees_none(&outer.from, first..split)?;
        }
        let from = From::Join(Box::new(Join { kind, left: outer.from, right: inner.from, on }));
        Ok(Bound { from, first, star: merged_star.unwrap_or(star) })
    }

    /// The tables on the right of a RIGHT JOIN do not see those on its left.
    fn check_sees_none(&mut self, from: &From, others: std::ops::Range<usize>) -> Result<(), SqlError> {
        let derived = match from {
            From::Join(join) => {
                self.check_sees_none(&join.left, others.clone())?;
                return self.check_sees_none(&join.right, others);
            }
            From::Derived(derived) => derived,
            _ => return Ok(()),
        };
        let tables = &self.block().tables[others];
        let other = |id: &&ColumnId| tables.iter().any(|table| table.ids().any(|own| own == **id));
        let Some(id) = derived.outer.iter().find(other).copied() else { return Ok(()) };
        let info = &self.columns[id];
        let table = info.origin.as_ref().map(|origin| format!("{}.", origin.alias)).unwrap_or_default();
        let name = format!("{table}{}", info.name);
        Err(ErrorCode::BAD_FIELD_ERROR.with(&[&name, &Clause::Select.name()]))
    }

    /// What a join is on, with the partitions that its inner side is of.
    fn with_partitions(&mut self, on: Option<Expr>, from: usize) -> Option<Expr> {
        match (on, self.partitions_since(from)) {
            (Some(on), Some(selected)) => Some(self.typer.and(vec![on, selected])),
            (on, selected) => on.or(selected),
        }
    }

    fn make_nullable(&mut self, tables: std::ops::Range<usize>) {
        let block = self.blocks.last_mut().expect("tables are bound inside of a block");
        for table in block.tables[tables.clone()].iter_mut().filter(|table| !table.is_complemented) {
            // A key of NULLs may be a row's that there is, and of one that there is not.
            let tells_apart = |key: &Vec<ColumnId>| key.iter().any(|id| !self.columns[*id].nullable);
            table.keys.retain(tells_apart);
            table.is_complemented = true;
        }
        let ids: Vec<_> = self.block().tables[tables].iter().flat_map(ScopeTable::ids).collect();
        for id in ids {
            self.columns[id].nullable = true;
        }
    }

    /// ON sees the join's own tables, and those of outer blocks.
    fn on(&mut self, expr: &ast::Expr, first: usize) -> Result<Expr, SqlError> {
        let block = self.block();
        block.clause = Clause::From;
        let others: Vec<_> = block.tables.drain(..first).collect();
        let bound = self.expr(expr);
        self.block().tables.splice(0..0, others);
        let bound = bound?;
        Ok(self.typer.condition(bound))
    }

    /// Names that both sides have, in the left side's order.
    fn common_names(&mut self, left: &Bound, right: &Bound) -> Result<Vec<String>, SqlError> {
        let name_of = |binder: &Self, id: &ColumnId| binder.columns[*id].name.to_string();
        let right_names: Vec<_> = right.star.iter().map(|id| name_of(self, id)).collect();
        let mut common = Vec::new();
        for id in &left.star {
            let name = name_of(self, id);
            if right_names.iter().any(|r| names::eq(r, &name)) {
                common.push(name);
            }
        }
        Ok(common)
    }

    /// The condition of USING or NATURAL, and what `*` means then: the common columns, what is left of the one side, and
    /// what is left of the other.
    fn merge(
        &mut self,
        join: &ast::Join,
        left: &Bound,
        right: &Bound,
        names: &[String],
    ) -> Result<(Option<Expr>, Vec<ColumnId>), SqlError> {
        let keep_right = join.kind == ast::JoinKind::Right;
        let mut conditions = Vec::with_capacity(names.len());
        let mut pairs = Vec::with_capacity(names.len());
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        for name in names {
            let split = right.first;
            let tables = self.block().tables.len();
            let l = self.joined_column(left, left.first..split, name)?;
            let r = self.joined_column(right, split..tables, name)?;
            if pairs.contains(&(l, r)) {
                continue;
            }
            self.mark_used(l);
            self.mark_used(r);
            pairs.push((l, r));
            let (l_expr, r_expr) = (self.column_expr(l), self.column_expr(r));
            conditions.push(self.typer.compare(CompareOp::Eq, l_expr, r_expr)?);
            let (keep, drop) = if keep_right { (r, l) } else { (l, r) };
            kept.push(keep);
            dropped.push(drop);
        }
        self.note_join(join, &pairs);
        for table in &mut self.block().tables[left.first..] {
            for column in &mut table.columns {
                column.merged |= dropped.contains(&column.id);
            }
        }
        let (first, second) = if keep_right { (right, left) } else { (left, right) };
        let rest = |side: &Bound| {
            side.star
                .iter()
                .copied()
                .filter(|id| !kept.contains(id) && !dropped.contains(id))
                .collect::<Vec<_>>()
        };
        // In the order of the first table, whatever that of the names is.
        let place = |id: &ColumnId| first.star.iter().position(|other| other == id).unwrap_or(usize::MAX);
        let mut common = kept.clone();
        common.sort_by_key(place);
        let star = common.into_iter().chain(rest(first)).chain(rest(second)).collect();
        let on = (!conditions.is_empty()).then(|| self.typer.and(conditions));
        Ok((on, star))
    }

    /// A column by which a side is joined: invisible ones may be named, too.
    fn joined_column(
        &mut self,
        side: &Bound,
        tables: std::ops::Range<usize>,
        name: &str,
    ) -> Result<ColumnId, SqlError> {
        if let Ok(id) = self.star_column(side, name) {
            return Ok(id);
        }
        let columns = self.block().tables[tables].iter().flat_map(|table| &table.columns);
        let mut invisible = columns.filter(|column| column.invisible && names::eq(&column.name, name));
        match (invisible.next().map(|column| column.id), invisible.next()) {
            (Some(id), None) => Ok(id),
            _ => self.star_column(side, name),
        }
    }

    fn star_column(&self, side: &Bound, name: &str) -> Result<ColumnId, SqlError> {
        let mut found = side.star.iter().filter(|id| names::eq(&self.columns[**id].name, name));
        let id =
            found.next().ok_or_else(|| ErrorCode::BAD_FIELD_ERROR.with(&[&name, &Clause::From.name()]))?;
        if found.next().is_some() {
            return Err(ErrorCode::NON_UNIQ_ERROR.with(&[&name, &Clause::From.name()]));
        }
        Ok(*id)
    }
}

fn join(kind: JoinKind, left: Bound, right: Bound, on: Option<Expr>) -> Bound {
    let star = left.star.iter().chain(&right.star).copied().collect();
    let from = From::Join(Box::new(Join { kind, left: left.from, right: right.from, on }));
    Bound { from, first: left.first, star }
}

/// Columns that determine a derived table's row: its grouping keys, if they are all outputs.
pub(super) fn keys_of(query: &QueryExpr) -> Vec<Vec<ColumnId>> {
    let QueryBody::Select(select) = &query.body else { return Vec::new() };
    let output_of = |expr: &Expr| {
        let shown = select.projection.iter().find(|p| p.expr == *expr && query.outputs.contains(&p.id));
        shown.map(|p| p.id)
    };
    let keys = match &select.aggregation {
        Some(aggregation) if !aggregation.rollup => {
            let keys = aggregation
                .keys
                .iter()
                .map(|k| output_of(&Expr::column(k.id.index(), k.expr.ty, k.expr.nullable)));
            keys.collect::<Option<Vec<_>>>()
        }
        _ if select.distinct => Some(query.outputs.clone()),
        _ => None,
    };
    keys.into_iter().collect()
}
