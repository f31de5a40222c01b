//! What a block can read: stored tables, and the common table expressions around it.

use std::cell::Cell;

use avocet_base::TableId;
use avocet_engine::Catalog;
use avocet_sql::plan::walk::for_each_expr_mut;
use avocet_sql::plan::{Cte, CteBody, CteId, QueryExpr, TableScan};

use super::NotPoint;

/// So many subqueries are compiled for a plan at most. Each is compiled once for each way to ask it, within each way to ask the
/// one around it: the number of compilations may double with each level.
const MOST_COMPILED: usize = 512;

/// The same, of a statement that no other executor can take.
const MOST_COMPILED_WITHOUT_ALTERNATIVE: usize = 1 << 13;

/// How many more subqueries may be compiled for a plan.
pub struct CompileBudget(Cell<usize>);

impl CompileBudget {
    /// Of a statement that another executor can take.
    pub fn new() -> Self {
        Self(Cell::new(MOST_COMPILED))
    }

    /// Of a statement that must have a point plan.
    pub fn without_alternative() -> Self {
        Self(Cell::new(MOST_COMPILED_WITHOUT_ALTERNATIVE))
    }

    fn take(&self) -> Result<(), NotPoint> {
        let left = self.0.get().checked_sub(1);
        let left = left.ok_or_else(|| NotPoint::because("subqueries that are compiled too often"))?;
        self.0.set(left);
        Ok(())
    }
}

#[derive(Clone, Copy)]
pub struct Known<'k> {
    pub catalog: &'k Catalog,
    /// Tables whose rows the caller has.
    given: &'k [TableId],
    ctes: &'k [Cte],
    /// The recursion whose step this is.
    within: Option<&'k Cte>,
    around: Option<&'k Known<'k>>,
    budget: &'k CompileBudget,
    /// Estimates are no reason against a way along an index: the plan is tried, and left when it takes too long.
    pub tries: bool,
}

/// What a reference to a common table expression stands for.
pub enum Referenced<'k> {
    Query(&'k QueryExpr),
    Recursion(&'k Cte),
    /// In its own step: the rows of the round before.
    WorkTable(&'k Cte),
    /// A table whose rows the caller has.
    Given(&'k TableScan),
}

impl<'k> Known<'k> {
    pub fn new(catalog: &'k Catalog, budget: &'k CompileBudget) -> Self {
        Self { catalog, given: &[], ctes: &[], within: None, around: None, budget, tries: false }
    }

    /// Counts a subquery that is to be compiled.
    pub fn count_subquery(&self) -> Result<(), NotPoint> {
        self.budget.take()
    }

    /// The same, with tables whose rows the caller has.
    pub fn given(self, given: &'k [TableId]) -> Self {
        Self { given, ..self }
    }

    pub fn is_given(&self, table: TableId) -> bool {
        self.given.contains(&table)
    }

    /// The same, for a plan that is tried.
    pub fn trying(self) -> Self {
        Self { tries: true, ..self }
    }

    /// The same, for a block with some more common table expressions.
    pub fn with(&'k self, ctes: &'k [Cte]) -> Self {
        Self { ctes, within: None, around: Some(self), ..*self }
    }

    /// The same, for the step of a recursion.
    pub fn within(&'k self, cte: &'k Cte) -> Self {
        Self { ctes: &[], within: Some(cte), around: Some(self), ..*self }
    }

    /// What a common table expression is. Each reference runs it, so it must give the same rows each time.
    pub fn cte(&self, id: CteId) -> Result<Referenced<'k>, NotPoint> {
        if let Some(cte) = self.within.filter(|cte| cte.id == id) {
            return Ok(Referenced::WorkTable(cte));
        }
        let Some(cte) = self.ctes.iter().find(|cte| cte.id == id) else {
            let around =
                self.around.ok_or_else(|| NotPoint::because("a common table expression out of reach"))?;
            return around.cte(id);
        };
        let (queries, referenced) = match &cte.body {
            CteBody::Plain(query) => (vec![query], Referenced::Query(query)),
            CteBody::Recursive { seed, step, .. } => (vec![seed, step], Referenced::Recursion(cte)),
        };
        let mut is_volatile = false;
        for query in queries {
            for_each_expr_mut(&mut query.clone(), &mut |expr| is_volatile |= expr.is_volatile());
        }
        match is_volatile {
            true => Err(NotPoint::because("a common table expression that differs from call to call")),
            false => Ok(referenced),
        }
    }
}
