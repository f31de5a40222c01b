//! Recursive common table expressions: `seed UNION member UNION member …`, and where MySQL lets a member read the rows of the
//! step before.

use std::sync::Arc;

use avocet_types::error::{ErrorCode, SqlError};

use crate::bind::scope::ScopeCte;
use crate::bind::{Binder, unsupported};
use crate::parse::ast::{self, JoinKind, SetOperator};
use crate::plan::*;

impl Binder<'_> {
    /// The seed alone gives names and types; every column can be NULL.
    pub(super) fn recursive_cte(
        &mut self,
        cte: &ast::Cte,
        id: CteId,
        name: Arc<str>,
        parts: &RecursiveParts<'_>,
    ) -> Result<Cte, SqlError> {
        if cte.query.with.is_some() {
            return Err(unsupported("WITH in a recursive common table expression"));
        }
        if !cte.query.order_by.is_empty() {
            return Err(unsupported("ORDER BY over UNION in recursive Common Table Expression"));
        }
        let limit = cte.query.limit.as_ref().map(|limit| self.limit(limit)).transpose()?;
        let seed =
            |binder: &mut Self| binder.without_recursion(id, &name, |binder| binder.body(parts.seed, &[]));
        let (seed, seed_levels, seed_queries) = self.measured(seed)?;
        self.name_outputs(&seed.outputs, &cte.columns)?;
        let columns = self.copy_columns(&seed.outputs, true);
        // Of steps, too, so they are no stored columns.
        for id in &columns {
            self.columns[*id].origin = None;
        }
        self.label_as_computed(&columns);
        let at = self.ctes.len();
        let recursion = Some(self.blocks.len() + 1);
        let cte_columns = columns.clone();
        self.ctes.push(ScopeCte {
            id,
            name: name.clone(),
            columns: cte_columns,
            levels: 1,
            queries: 1,
            recursion,
        });
        let (step, levels, queries) = self.measured(|binder| binder.steps(&parts.steps, &columns))?;
        self.ctes[at].recursion = None;
        (self.ctes[at].levels, self.ctes[at].queries) =
            (1 + levels.max(seed_levels), 1 + queries + seed_queries);
        Ok(Cte {
            id,
            name,
            body: CteBody::Recursive { seed, step, distinct: parts.distinct, limit },
            columns,
        })
    }

    /// The recursive members as one query: each member's rows are stored as what the CTE's columns are.
    fn steps(&mut self, members: &[&ast::QueryBody], columns: &[ColumnId]) -> Result<QueryExpr, SqlError> {
        let mut steps: Option<QueryExpr> = None;
        for member in members {
            let step = self.body(member, &[])?;
            if step.outputs.len() != columns.len() {
                return Err(ErrorCode::WRONG_NUMBER_OF_COLUMNS_IN_SELECT.with(&[]));
            }
            let outputs = step.outputs.iter().zip(columns).map(|(from, to)| {
                let (expr, column) = (self.column_expr(*from), &self.columns[*to]);
                self.typer.stored(expr, column.ty, &column.name)
            });
            let outputs = outputs.collect();
            let step = self.project_over(step, outputs);
            steps = Some(match steps {
                // Duplicates are told apart by the recursion.
                Some(before) => self.combine(SetOperator::Union, true, before, step, false)?,
                None => step,
            });
        }
        steps.ok_or_else(|| ErrorCode::INTERNAL_ERROR.with(&[&"a recursion without a recursive member"]))
    }

    /// Binds what may not read a recursive CTE by its name.
    pub(super) fn without_recursion<T>(
        &mut self,
        id: CteId,
        name: &Arc<str>,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let at = self.ctes.len();
        let recursion = Some(NOWHERE);
        self.ctes.push(ScopeCte {
            id,
            name: name.clone(),
            columns: Vec::new(),
            levels: 0,
            queries: 0,
            recursion,
        });
        let bound = bind(self);
        self.ctes.truncate(at);
        bound
    }

    /// The FROM of the innermost block names a CTE. A recursive one may stand in the block of a member alone, and once.
    pub(super) fn check_recursion(&mut self, cte: &ScopeCte) -> Result<(), SqlError> {
        let Some(block) = cte.recursion else { return Ok(()) };
        let is_member = self.blocks.len() == block;
        if !is_member || self.block().recursive.is_some() {
            return Err(ErrorCode::CTE_RECURSIVE_NOT_ONCE.with(&[&cte.name]));
        }
        self.block().recursive = Some(cte.name.clone());
        Ok(())
    }

    /// A member has no groups and no windows. Once its select list is bound.
    pub(super) fn check_member_block(&mut self, grouped: bool) -> Result<(), SqlError> {
        let block = self.block();
        match &block.recursive {
            Some(name) if grouped || !block.window_functions.is_empty() => {
                Err(ErrorCode::CTE_RECURSIVE_FORBIDS_AGGREGATION.with(&[name]))
            }
            _ => Ok(()),
        }
    }
}

/// No block has this number.
const NOWHERE: usize = 0;

/// The members of a recursive CTE.
pub(super) struct RecursiveParts<'q> {
    seed: &'q ast::QueryBody,
    steps: Vec<&'q ast::QueryBody>,
    distinct: bool,
}

impl<'q> RecursiveParts<'q> {
    /// `seed UNION step UNION step …`: what mentions the CTE follows what does not.
    pub(super) fn of(body: &'q ast::QueryBody, name: &str) -> Result<Self, SqlError> {
        let (mut seed, mut steps, mut alls) = (body, Vec::new(), Vec::new());
        while let ast::QueryBody::SetOperation { op: SetOperator::Union, all, left, right } = seed
            && mentions(right, name)
        {
            check_member(right, name)?;
            steps.push(&**right);
            alls.push(*all);
            seed = left;
        }
        if mentions(seed, name) {
            return Err(match seed {
                ast::QueryBody::SetOperation { op: SetOperator::Union, .. } => {
                    ErrorCode::CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST.with(&[&name])
                }
                _ if steps.is_empty() => ErrorCode::CTE_RECURSIVE_REQUIRES_UNION.with(&[&name]),
                _ => ErrorCode::CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST.with(&[&name]),
            });
        }
        steps.reverse();
        // The last operator is of all that stands before it.
        let distinct = alls.first() == Some(&false);
        if !distinct && alls.contains(&false) {
            return Err(unsupported("UNION ALL after UNION DISTINCT in a recursive common table expression"));
        }
        Ok(Self { seed, steps, distinct })
    }
}

/// What a member may not have, as far as its text says.
fn check_member(body: &ast::QueryBody, name: &str) -> Result<(), SqlError> {
    const FORBIDDEN: &str =
        "ORDER BY / LIMIT / SELECT DISTINCT in recursive query block of Common Table Expression";
    match body {
        ast::QueryBody::Select(select) => {
            if select.distinct {
                return Err(unsupported(FORBIDDEN));
            }
            if select.from.iter().any(|table| may_be_missing(table, name)) {
                return Err(ErrorCode::CTE_RECURSIVE_FORBIDDEN_JOIN_ORDER.with(&[&name]));
            }
            Ok(())
        }
        ast::QueryBody::Parenthesized(query) => {
            if !query.order_by.is_empty() || query.limit.is_some() {
                return Err(unsupported(FORBIDDEN));
            }
            check_member(&query.body, name)
        }
        ast::QueryBody::SetOperation { left, right, .. } => {
            check_member(left, name)?;
            check_member(right, name)
        }
        ast::QueryBody::Values(_) | ast::QueryBody::JsonTable(_) | ast::QueryBody::Table(_) => Ok(()),
    }
}

/// Whether an outer join makes up rows for a table of this name.
fn may_be_missing(table: &ast::TableRef, name: &str) -> bool {
    let ast::TableRef::Join(join) = table else { return false };
    let inner = match join.kind {
        JoinKind::Inner => None,
        JoinKind::Left => Some(&join.right),
        JoinKind::Right => Some(&join.left),
    };
    inner.is_some_and(|inner| names(inner, name))
        || may_be_missing(&join.left, name)
        || may_be_missing(&join.right, name)
}

/// Whether a table of this name stands there, other than in a query of its own.
fn names(table: &ast::TableRef, name: &str) -> bool {
    match table {
        ast::TableRef::Derived { .. } => false,
        ast::TableRef::Join(join) => names(&join.left, name) || names(&join.right, name),
        ast::TableRef::Table { .. } => table_mentions(table, name),
    }
}

/// Whether a query body reads a table of this name.
pub(super) fn mentions(body: &ast::QueryBody, name: &str) -> bool {
    match body {
        ast::QueryBody::Select(select) => select.from.iter().any(|table| table_mentions(table, name)),
        ast::QueryBody::SetOperation { left, right, .. } => mentions(left, name) || mentions(right, name),
        ast::QueryBody::Values(_) | ast::QueryBody::JsonTable(_) => false,
        ast::QueryBody::Table(table) => table.database.is_none() && table.name.name == name,
        ast::QueryBody::Parenthesized(query) => mentions(&query.body, name),
    }
}

fn table_mentions(table: &ast::TableRef, name: &str) -> bool {
    match table {
        ast::TableRef::Table { name: table, .. } => table.database.is_none() && table.name.name == name,
        ast::TableRef::Derived { query, .. } => mentions(&query.body, name),
        ast::TableRef::Join(join) => table_mentions(&join.left, name) || table_mentions(&join.right, name),
    }
}
