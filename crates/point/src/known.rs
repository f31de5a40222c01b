//! What a block can read: stored tables, and the common table expressions around it.

use avocet_engine::Catalog;
use avocet_sql::plan::walk::for_each_expr_mut;
use avocet_sql::plan::{Cte, CteBody, CteId, QueryExpr};

use super::NotPoint;

#[derive(Clone, Copy)]
pub struct Known<'k> {
    pub catalog: &'k Catalog,
    ctes: &'k [Cte],
    around: Option<&'k Known<'k>>,
    /// Estimates are no reason against a way along an index: the plan is tried, and left when it takes too long.
    pub tries: bool,
}

impl<'k> Known<'k> {
    pub fn new(catalog: &'k Catalog) -> Self {
        Self { catalog, ctes: &[], around: None, tries: false }
    }

    /// The same, for a plan that is tried.
    pub fn trying(self) -> Self {
        Self { tries: true, ..self }
    }

    /// The same, for a block with some more common table expressions.
    pub fn with(&'k self, ctes: &'k [Cte]) -> Self {
        Self { ctes, around: Some(self), ..*self }
    }

    /// The query of a common table expression. Each reference runs it, so it must give the same rows each time.
    pub fn cte(&self, id: CteId) -> Result<&'k QueryExpr, NotPoint> {
        let Some(cte) = self.ctes.iter().find(|cte| cte.id == id) else {
            let around =
                self.around.ok_or_else(|| NotPoint::because("a common table expression out of reach"))?;
            return around.cte(id);
        };
        let CteBody::Plain(query) = &cte.body else {
            return Err(NotPoint::because("a recursive common table expression"));
        };
        let mut is_volatile = false;
        for_each_expr_mut(&mut query.clone(), &mut |expr| is_volatile |= expr.is_volatile());
        match is_volatile {
            true => Err(NotPoint::because("a common table expression that differs from call to call")),
            false => Ok(query),
        }
    }
}
