//! Subqueries of ON DUPLICATE KEY UPDATE: asked for each row that is there, before its columns are assigned.
//!
//! They see the row that is there, the one that is to be inserted and what the query has beside it, one after the other as one
//! row, and are over tables as statements that change rows read them.

use std::sync::Arc;

use avocet_engine::{Catalog, Txn};
use avocet_sql::plan::{BoundQuery, ColumnId, QueryBody, Subquery, SubqueryKind};
use avocet_types::error::SqlError;
use avocet_types::expr::Expr;
use avocet_types::{Datum, Value};

use super::compile::{Answer, Compiled, compile_subplan};
use super::known::{CompileBudget, Known};
use super::scope::{JoinedRow, NEAR_TABLES, Scope};
use super::subplan::{SubPlan, SubScratch};
use super::{NotPoint, ReadAs, Refusal, Run, Table};

/// The subqueries, compiled.
#[derive(Debug)]
pub struct Lookups {
    /// How many columns the row has that they see.
    width: usize,
    slots: Arc<[(u8, u16)]>,
    plans: Box<[(ColumnId, SubPlan)]>,
    pub tables: Vec<Table>,
    pub dates: Vec<(usize, ReadAs)>,
}

/// What subqueries gave that are the same for all rows of a statement.
#[derive(Default)]
pub struct LookupScratch(Vec<SubScratch>);

impl LookupScratch {
    /// Another statement begins.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

impl Lookups {
    /// `query` is a block of nothing but the subqueries, over a row of `width` columns whose ids are their positions.
    pub fn compile(query: &BoundQuery, width: usize, catalog: &Catalog) -> Result<Self, Refusal> {
        if query.locks {
            return Err(NotPoint::because("a subquery that locks rows, in ON DUPLICATE KEY UPDATE").into());
        }
        let QueryBody::Select(block) = &query.body.body else {
            return Err(NotPoint::because("no block").into());
        };
        // Nobody else can take them: they are run whatever it takes.
        let parent = BoundQuery { assigns: true, ..query.clone() };
        let budget = CompileBudget::without_alternative();
        let known = Known::new(catalog, &budget);
        let mut scope = Scope::new();
        let columns: Vec<ColumnId> = (0..width as u32).map(ColumnId).collect();
        scope.add_rows(&columns)?;
        let (mut plans, mut tables, mut dates) = (Vec::new(), Vec::new(), Vec::new());
        for Subquery { id, kind, query, outer } in &block.subqueries {
            let answer = match kind {
                SubqueryKind::Scalar => Answer::Scalar,
                SubqueryKind::Exists { negated } => Answer::Exists { negated: *negated },
                SubqueryKind::In { needles, negated } => Answer::In { needles, negated: *negated },
                SubqueryKind::Quantified { op, all, left } => Answer::Quantified { left, op: *op, all: *all },
            };
            let compiled: Compiled = compile_subplan(query, outer, answer, &parent, &known, &scope)?;
            plans.push((*id, compiled.plan));
            tables.extend(compiled.tables);
            let own = compiled.dates.iter().copied();
            dates.extend(own.filter(|(param, _)| *param < parent.params.len()));
            if scope.tables.len() == NEAR_TABLES {
                return Err(NotPoint::because("many subqueries in ON DUPLICATE KEY UPDATE").into());
            }
            scope.add_rows(&[*id])?;
        }
        dates.extend(scope.dates());
        Ok(Self { width, slots: scope.slots, plans: plans.into(), tables, dates })
    }

    /// An expression over the row, with the answers behind its columns.
    pub fn over_answers(&self, expr: &Expr) -> Expr {
        let place = |id: usize| {
            let at = self.plans.iter().position(|(of, _)| of.index() == id);
            at.map_or(id, |at| self.width + at)
        };
        expr.clone().map_columns(&mut { place })
    }

    /// The answers for a row.
    pub fn run(
        &self,
        row: &[Value],
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut LookupScratch,
    ) -> Result<Vec<Value>, SqlError> {
        scratch.0.resize_with(self.plans.len(), SubScratch::default);
        let mut answers: Vec<Value> = Vec::with_capacity(self.plans.len());
        for (at, (_, plan)) in self.plans.iter().enumerate() {
            let mut joined = JoinedRow::new(&self.slots).with_near_values(0, row);
            for (before, answer) in answers.iter().enumerate() {
                joined = joined.with_near_values(before + 1, std::slice::from_ref(answer));
            }
            let scratch = &mut scratch.0[at];
            txn.read_for_change(|txn| plan.run(&joined, txn, run, scratch))?;
            let answer = plan.row(scratch, 0).first().cloned().unwrap_or(Datum::Null);
            answers.push(answer);
        }
        Ok(answers)
    }
}
