//! What the name of a column means: a column of the block in which it stands, one of its select items, or the like of an outer block.
//!
//! Names in HAVING, outside of aggregates, mean what the select list or GROUP BY has, and no other column of the tables (manual,
//! 15.2.13). So in MySQL they are resolved in outer blocks, too: there the items come first, and the tables are not looked at if
//! HAVING of a grouped block has the subquery. All other names are first of all columns of tables, block by block.

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::Expr;
use avocet_types::names;

use super::Binder;
use super::scope::{Block, Clause, ColumnName};
use crate::parse::ast::Span;
use crate::plan::walk::column_of;
use crate::plan::{Aggregate, ColumnId};

impl Binder<'_> {
    /// The expression that a column's name means here.
    pub(super) fn resolve(&mut self, name: &ColumnName<'_>, span: Span) -> Result<Expr, SqlError> {
        for depth in (0..self.blocks.len()).rev() {
            let block = &self.blocks[depth];
            if block.hidden {
                continue;
            }
            if let Some(expr) = self.resolve_in(depth, name)? {
                self.note_column(depth, name, span, &expr);
                if depth + 1 < self.blocks.len() && !matches!(self.blocks[depth].find(name), Ok(Some(_))) {
                    self.block().names_outer_item = true;
                }
                for id in expr.columns() {
                    self.cross(depth, ColumnId(id as u32));
                }
                return Ok(expr);
            }
        }
        let clause = self.blocks.last().map_or(Clause::Select, |b| b.clause);
        Err(ErrorCode::BAD_FIELD_ERROR.with(&[name, &clause.name()]))
    }

    fn resolve_in(&self, depth: usize, name: &ColumnName<'_>) -> Result<Option<Expr>, SqlError> {
        let block = &self.blocks[depth];
        let has_names = |block: &Block| !block.has_rows_only;
        let innermost = self.blocks.iter().rposition(has_names).unwrap_or_default();
        if block.has_rows_only {
            return Ok(block.find(name)?.map(|id| self.column_expr(id)));
        }
        let in_aggregate = self.blocks[innermost..].iter().any(|block| block.in_aggregate);
        let in_having = self.blocks[innermost].clause == Clause::Having && !in_aggregate;
        if depth == innermost {
            if in_having {
                let shown = self.shown_in(depth, name)?;
                shown.iter().try_for_each(|item| self.check_item(depth, name, item, true))?;
                return Ok(shown);
            }
            if let Some(id) = block.find(name)? {
                return Ok(Some(self.column_expr(id)));
            }
            let item = match block.clause {
                Clause::Group | Clause::Having | Clause::Order if name.table.is_none() => {
                    block.alias(name.column)
                }
                _ => None,
            };
            if let Some(item) = item.filter(|_| in_aggregate) {
                self.check_aggregated(depth, name, item)?;
            }
            return Ok(item.cloned());
        }
        if in_having && let Some(item) = self.outer_item(depth, name, true)? {
            return Ok(Some(item));
        }
        if !(in_having && block.clause == Clause::Having && block.is_grouped())
            && let Some(id) = block.find(name)?
        {
            return Ok(Some(self.column_expr(id)));
        }
        match in_having {
            true => Ok(None),
            false => self.outer_item(depth, name, false),
        }
    }

    /// What a name in a subquery means of the select list, or the groups, of an outer block, where its clause can see these.
    fn outer_item(
        &self,
        depth: usize,
        name: &ColumnName<'_>,
        in_having: bool,
    ) -> Result<Option<Expr>, SqlError> {
        let block = &self.blocks[depth];
        let item = match block.clause {
            // A subquery of the select list sees the items before it.
            Clause::Select if name.table.is_none() => return self.earlier_item(depth, name, in_having),
            Clause::Having | Clause::Group | Clause::Order => self.shown_in(depth, name)?,
            _ => None,
        };
        // What a key is made of is there before any group.
        let in_having = in_having && block.clause != Clause::Group;
        item.iter().try_for_each(|item| self.check_item(depth, name, item, in_having))?;
        Ok(item)
    }

    /// What the select list or GROUP BY of a block has by this name. If both have something else, it is the latter's.
    fn shown_in(&self, depth: usize, name: &ColumnName<'_>) -> Result<Option<Expr>, SqlError> {
        let block = &self.blocks[depth];
        let item = self.item_in(depth, name)?;
        match block.clause {
            Clause::Having => Ok(block.key_named(name)?.or(item)),
            _ => Ok(item),
        }
    }

    /// The select item of this name (`find_item_in_list` in MySQL): one that is called so, or else a column that would be without
    /// another name. Columns of one name must be the same; of other items the first one is meant, and before all columns.
    fn item_in(&self, depth: usize, name: &ColumnName<'_>) -> Result<Option<Expr>, SqlError> {
        let block = &self.blocks[depth];
        Ok(self.place_of_item(depth, name)?.map(|at| block.aliases[at].1.clone()))
    }

    pub(super) fn place_of_item(
        &self,
        depth: usize,
        name: &ColumnName<'_>,
    ) -> Result<Option<usize>, SqlError> {
        let block = &self.blocks[depth];
        if name.table.is_some() {
            let Some(id) = block.find(name)? else { return Ok(None) };
            return Ok(block.aliases.iter().position(|(_, item)| column_of(item) == Some(id)));
        }
        let ambiguous = || ErrorCode::NON_UNIQ_ERROR.with(&[name, &block.clause.name()]);
        let is_meant = |given: &str| names::eq(given, name.column);
        let is_of_table = |id: &ColumnId| self.blocks[..=depth].iter().any(|block| block.owns(*id));
        let item = |at: usize| &block.aliases[at].1;
        let (mut called, mut hidden): (Option<usize>, Vec<usize>) = (None, Vec::new());
        for (at, (given, expr)) in block.aliases.iter().enumerate() {
            match column_of(expr).filter(is_of_table) {
                None if is_meant(given) => return Ok(Some(at)),
                None => {}
                Some(_) if is_meant(given) => match called {
                    Some(other) if item(other) != expr => return Err(ambiguous()),
                    _ => called = called.or(Some(at)),
                },
                Some(id) if is_meant(&self.columns[id].name) => hidden.push(at),
                Some(_) => {}
            }
        }
        if called.is_none() && hidden.iter().any(|at| item(*at) != item(hidden[0])) {
            return Err(ambiguous());
        }
        Ok(called.or(hidden.first().copied()))
    }

    /// The select item that a name in a subquery of a later one means, if it is no column's.
    fn earlier_item(
        &self,
        depth: usize,
        name: &ColumnName<'_>,
        in_having: bool,
    ) -> Result<Option<Expr>, SqlError> {
        let block = &self.blocks[depth];
        let is_meant = |given: &str| names::eq(given, name.column);
        if block.in_aggregate || !block.given_names.iter().any(|given| is_meant(given)) {
            return Ok(None);
        }
        let mut items = block.aliases.iter().filter(|(given, _)| is_meant(given)).map(|(_, expr)| expr);
        let Some(item) = items.next() else {
            return Err(ErrorCode::ILLEGAL_REFERENCE.with(&[name, &"forward reference in item list"]));
        };
        if items.any(|other| other != item) {
            return Err(ErrorCode::NON_UNIQ_ERROR.with(&[name, &Clause::Select.name()]));
        }
        self.check_item(depth, name, item, in_having)?;
        let columns = item.columns();
        if block.subqueries.iter().any(|entry| columns.contains(&entry.subquery.id.index())) {
            return Err(SqlError::unsupported("a select item that has a subquery, within a subquery"));
        }
        Ok(Some(item.clone()))
    }

    /// Whether HAVING, or a subquery, may mean this item by a name: a subquery one with an aggregate only in its HAVING, and
    /// nobody one with a window.
    fn check_item(
        &self,
        depth: usize,
        name: &ColumnName<'_>,
        item: &Expr,
        in_having: bool,
    ) -> Result<(), SqlError> {
        let columns = item.columns();
        let is_aggregated = |aggregate: &Aggregate| columns.contains(&aggregate.id.index());
        if !in_having && self.aggregates_up_to(depth).any(is_aggregated) {
            return Err(ErrorCode::ILLEGAL_REFERENCE.with(&[name, &"reference to group function"]));
        }
        if self.blocks[depth].window_functions.iter().any(|entry| columns.contains(&entry.window.id.index()))
        {
            return Err(ErrorCode::WINDOW_INVALID_WINDOW_FUNC_ALIAS_USE.with(&[name]));
        }
        Ok(())
    }

    /// Whether an aggregate may be of a select item: there is none in it yet, and no window.
    fn check_aggregated(&self, depth: usize, name: &ColumnName<'_>, item: &Expr) -> Result<(), SqlError> {
        let columns = item.columns();
        let answers = self.blocks[depth].subqueries.iter().map(|entry| &entry.subquery);
        let used = answers.filter(|answer| columns.contains(&answer.id.index()));
        let outer: Vec<_> = used.flat_map(|answer| &answer.outer).collect();
        let is_aggregate = |of: &Aggregate| columns.contains(&of.id.index()) || outer.contains(&&of.id);
        if self.aggregates_up_to(depth).any(is_aggregate) {
            return Err(ErrorCode::INVALID_GROUP_FUNC_USE.with(&[]));
        }
        let mut windows = self.blocks[depth].window_functions.iter().map(|entry| entry.window.id);
        match windows.any(|id| columns.contains(&id.index())) {
            true => Err(ErrorCode::WINDOW_INVALID_WINDOW_FUNC_ALIAS_USE.with(&[name])),
            false => Ok(()),
        }
    }

    /// Notes that something inside uses a column that the block at `depth` has.
    pub(super) fn cross(&mut self, depth: usize, id: ColumnId) {
        self.mark_used(id);
        for boundary in self.boundaries.iter_mut().filter(|b| b.depth > depth) {
            boundary.outer.insert(id);
        }
    }
}

impl Block {
    fn is_grouped(&self) -> bool {
        self.has_keys || !self.aggregates.is_empty()
    }

    /// The key of GROUP BY that is a column of this name.
    fn key_named(&self, name: &ColumnName<'_>) -> Result<Option<Expr>, SqlError> {
        if name.table.is_some() {
            let Some(id) = self.find(name)? else { return Ok(None) };
            let key = self.group_names.iter().find(|(_, key)| column_of(key) == Some(id));
            return Ok(key.map(|(_, key)| key.clone()));
        }
        let mut keys = self.group_names.iter().filter(|(given, _)| names::eq(given, name.column));
        let Some((_, key)) = keys.next() else { return Ok(None) };
        match keys.any(|(_, other)| other != key) {
            true => Err(ErrorCode::NON_UNIQ_ERROR.with(&[name, &self.clause.name()])),
            false => Ok(Some(key.clone())),
        }
    }

    pub(super) fn alias(&self, name: &str) -> Option<&Expr> {
        self.aliases.iter().find(|(alias, _)| names::eq(alias, name)).map(|(_, expr)| expr)
    }
}
