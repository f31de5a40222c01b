//! How a block joins its tables and subqueries: what is joined, in which order it is visited, and where each condition is
//! tested.
//!
//! A subquery is visited as a table is. One that stands for a value (a scalar, EXISTS, IN) gives one row, with the value;
//! `IN (SELECT …)` that is all of a conjunct of WHERE and depends on no other table is a join with the distinct rows of the
//! subquery, so that it may come first and lead to the others.

use std::collections::BTreeSet;

use avocet_sql::bind::not_null_columns;
use avocet_sql::plan::{self, BoundQuery, ColumnId, ColumnInfo, From, JoinKind, Subquery, SubqueryKind};
use avocet_sql::ranges::{conjunction, without_not};
use avocet_types::compare::double;
use avocet_types::expr::{CompareOp, Expr, ExprKind, RowProgram};
use avocet_types::{Datum, SqlType};

use super::choose::{Choice, Wish, choose};
use super::compile::{Answer, compile_given, compile_recursion, compile_subplan, compile_work_table};
use super::known::{Known, Referenced};
use super::locks::row_lock;
use super::scope::Scope;
use super::select::{Along, LastCount, Level, Source};
use super::subplan::SubPlan;
use super::{NotPoint, Refusal, Table};

/// Joins of so many rows are for the analytical path.
const MANY_ROWS: f64 = 20_000.0;

/// So many tables at most are tried as the first.
const MOST_FIRSTS: usize = 8;

/// Of so many rows one is taken to pass the tests of joined tables and subqueries.
const LIKELY_TESTED: f64 = 8.0;

/// What a block joins.
#[derive(Default)]
pub struct Joins {
    /// What holds for every row: WHERE, and ON of inner joins.
    pub conjuncts: Vec<Expr>,
    /// What has to hold before any row is looked for.
    gate: Vec<Expr>,
    /// By table: ON, if it stands to the right of a left join.
    on: Vec<Option<Vec<Expr>>>,
    pub subqueries: Vec<Rows>,
    how: Membership,
}

/// What becomes of `IN (SELECT …)` that is all of a conjunct of WHERE and depends on no other table.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Membership {
    /// A join with the distinct rows of the subquery, which may lead to the other tables.
    #[default]
    Join,
    /// The subquery is asked for each row.
    Lookup,
}

/// A subquery in the place of a table.
pub struct Rows {
    /// Its number in the scope.
    position: usize,
    /// The tables that must be known before, a bit each.
    needs: u32,
    /// It gives one row, always.
    is_value: bool,
    /// A condition uses it, and not only the output.
    tests: bool,
    plan: Box<SubPlan>,
    pub tables: Vec<Table>,
    pub dates: Box<[(usize, super::ReadAs)]>,
    cost: f64,
    rows: f64,
}

/// The order in which a block visits.
pub struct Ordered {
    pub steps: Vec<Step>,
    pub cost: f64,
    pub rows: f64,
    /// The rows come in the order that was wanted of several tables.
    pub is_wanted_order: bool,
}

/// The order that is wanted of a join: that of columns of one of its tables, of which a LIMIT takes the first rows.
pub struct Lead<'a> {
    pub position: usize,
    pub order: &'a [(usize, bool)],
    pub limit: u64,
}

pub struct Step {
    position: usize,
    /// `None` for a subquery.
    pub choice: Option<Choice>,
}

impl Step {
    /// The table's number in the scope.
    pub fn position(&self) -> usize {
        self.position
    }
}

/// A subquery that is still to be compiled.
struct Pending<'q> {
    position: usize,
    query: Referenced<'q>,
    outer: &'q [ColumnId],
    answer: Answer<'q>,
    tests: bool,
}

impl Joins {
    /// Gathers what the block joins, and adds it to the scope.
    pub fn of<'q>(
        query: &'q BoundQuery,
        block: &'q plan::Select,
        known: &Known<'q>,
        scope: &mut Scope,
        how: Membership,
    ) -> Result<Self, Refusal> {
        let mut joins = Self { how, ..Self::default() };
        let mut pending = Vec::new();
        joins.flatten(&block.from, known, scope, &mut pending)?;
        if let Some(filter) = &block.filter {
            joins.conjuncts.extend(without_not(filter.clone().fold()).into_conjuncts());
        }
        joins.make_inner(scope);
        let is_of_rows = |test: &Expr| test.is_volatile() || !test.columns().is_empty();
        (joins.conjuncts, joins.gate) = joins.conjuncts.into_iter().partition(is_of_rows);
        for subquery in &block.subqueries {
            pending.push(joins.place(subquery, query, block, scope)?);
        }
        for pending in pending {
            let compiled = joins.compile(pending, query, known, scope)?;
            joins.subqueries.push(compiled);
        }
        Ok(joins)
    }

    /// Left joins whose rows of NULLs no condition lets through are inner joins, which may be visited in any order.
    fn make_inner(&mut self, scope: &Scope) {
        let outer = self.on.iter().flatten().count();
        for _ in 0..outer {
            let mut not_null = BTreeSet::new();
            self.conjuncts.iter().for_each(|test| not_null_columns(test, true, &mut not_null));
            let tables: BTreeSet<usize> =
                not_null.iter().filter_map(|id| scope.place(id.index())).map(|(table, _)| table).collect();
            let is_inner = |position: &usize| {
                let on = self.on[*position].as_ref();
                tables.contains(position) && on.is_some_and(|on| !on.iter().any(Expr::is_volatile))
            };
            let Some(position) = (0..self.on.len()).find(is_inner) else { return };
            self.conjuncts.extend(self.on[position].take().into_iter().flatten());
        }
    }

    fn flatten<'q>(
        &mut self,
        from: &'q From,
        known: &Known<'q>,
        scope: &mut Scope,
        pending: &mut Vec<Pending<'q>>,
    ) -> Result<(), NotPoint> {
        match from {
            From::Dual => Ok(()),
            From::Table(scan) if known.is_given(scan.table.id) => {
                let columns = scan.columns.iter().map(|(column, id)| (*column, id.index()));
                let position = scope.add_given(scan.alias.clone(), scan.table.columns.len(), columns)?;
                self.on.push(None);
                let query = Referenced::Given(scan);
                pending.push(Pending { position, query, outer: &[], answer: Answer::Rows, tests: true });
                Ok(())
            }
            From::Table(scan) => {
                let handle = known.catalog.table_by_id(scan.table.id);
                let handle = handle.ok_or_else(|| NotPoint::because("not a stored table"))?;
                let columns = scan.columns.iter().map(|(column, id)| (*column, id.index()));
                self.on.push(None);
                scope.add(
                    handle.clone(),
                    scan.alias.clone(),
                    columns,
                    scan.lock.map(row_lock),
                    scan.only.clone(),
                )
            }
            From::Derived(derived) => {
                let position = scope.add_rows(&derived.query.outputs)?;
                self.on.push(None);
                let (query, outer) = (Referenced::Query(&derived.query), &*derived.outer);
                pending.push(Pending { position, query, outer, answer: Answer::Rows, tests: true });
                Ok(())
            }
            From::Join(join) => {
                self.flatten(&join.left, known, scope, pending)?;
                let right = scope.tables.len();
                self.flatten(&join.right, known, scope, pending)?;
                let on = join.on.iter().flat_map(|on| on.clone().fold().into_conjuncts());
                match (join.kind, &join.right) {
                    (JoinKind::Inner, _) => self.conjuncts.extend(on),
                    (JoinKind::Left, From::Table(_) | From::Derived(_) | From::Cte(_)) => {
                        self.on[right] = Some(on.collect());
                    }
                    _ => return Err(NotPoint::because("an outer join of several tables")),
                }
                Ok(())
            }
            From::Cte(reference) => {
                let query = known.cte(reference.cte)?;
                let position = scope.add_rows(&reference.columns)?;
                self.on.push(None);
                pending.push(Pending { position, query, outer: &[], answer: Answer::Rows, tests: true });
                Ok(())
            }
        }
    }

    /// Gives a subquery of the block's expressions its place.
    fn place<'q>(
        &mut self,
        subquery: &'q Subquery,
        parent: &BoundQuery,
        block: &plan::Select,
        scope: &mut Scope,
    ) -> Result<Pending<'q>, NotPoint> {
        let (outputs, outer) = (&subquery.query.outputs, &*subquery.outer);
        let query = Referenced::Query(&subquery.query);
        let is_this = |expr: &Expr| expr.columns().contains(&subquery.id.index());
        let is_all_of = |expr: &Expr| matches!(expr.kind, ExprKind::Column(id) if id == subquery.id.index());
        let tests = self.conjuncts.iter().chain(self.on.iter().flatten().flatten()).any(is_this);
        let answer = match &subquery.kind {
            SubqueryKind::Scalar => Answer::Scalar,
            SubqueryKind::Exists { negated } => Answer::Exists { negated: *negated },
            SubqueryKind::Quantified { op, all, left } => Answer::Quantified { left, op: *op, all: *all },
            SubqueryKind::In { needles, negated } => {
                let uses = self.conjuncts.iter().chain(self.on.iter().flatten().flatten());
                let uses = uses.chain(expressions_after_where(block)).filter(|expr| is_this(expr)).count();
                let at = self.conjuncts.iter().position(is_all_of);
                match (at, *negated) {
                    // What is not true is as good as false here.
                    (Some(at), false) if uses == 1 && outer.is_empty() && self.how == Membership::Join => {
                        self.conjuncts.remove(at);
                        let equal = |(needle, output): (&Expr, &ColumnId)| {
                            let ColumnInfo { ty, nullable, .. } = parent.columns[*output];
                            equals(needle.clone(), Expr::column(output.index(), ty, nullable))
                        };
                        self.conjuncts.extend(needles.iter().zip(outputs).map(equal));
                        let position = scope.add_rows(outputs)?;
                        self.on.push(None);
                        let answer = Answer::DistinctRows;
                        return Ok(Pending { position, query, outer, answer, tests });
                    }
                    (Some(_), false) if uses == 1 => Answer::Found { needles },
                    (_, negated) => Answer::In { needles, negated },
                }
            }
        };
        let position = scope.add_rows(&[subquery.id])?;
        self.on.push(None);
        Ok(Pending { position, query, outer, answer, tests })
    }

    fn compile(
        &self,
        Pending { position, query, outer, answer, tests }: Pending<'_>,
        parent: &BoundQuery,
        known: &Known<'_>,
        scope: &Scope,
    ) -> Result<Rows, Refusal> {
        let is_value = answer.is_value();
        let compiled = match query {
            Referenced::Query(query) => compile_subplan(query, outer, answer, parent, known, scope)?,
            Referenced::Recursion(cte) => compile_recursion(cte, parent, known, scope)?,
            Referenced::WorkTable(cte) => compile_work_table(cte, parent),
            Referenced::Given(scan) => compile_given(scan, parent),
        };
        let needs = compiled.needs;
        let rows = if is_value { 1.0 } else { compiled.rows };
        let plan = Box::new(compiled.plan);
        let (tables, dates, cost) = (compiled.tables, compiled.dates, compiled.cost);
        Ok(Rows { position, needs, is_value, tests, plan, tables, dates, cost, rows })
    }

    /// Whether the block visits one stored table, and every row of it leads to one row.
    pub fn is_single_table(&self, scope: &Scope) -> bool {
        scope.stored().count() == 1 && self.subqueries.iter().all(|rows| rows.is_value && !rows.tests)
    }

    /// Whether there can be no row, whatever the tables hold.
    pub fn is_empty(&self) -> bool {
        let is_false = |test: &Expr| match test.as_literal() {
            Some(Datum::Null) => true,
            Some(value) => double(value) == 0.0,
            None => false,
        };
        self.gate.iter().any(is_false)
    }

    /// Whether a condition may hold for a row at one time and not at another.
    pub fn is_random(&self) -> bool {
        self.conjuncts.iter().chain(self.on.iter().flatten().flatten()).any(Expr::is_volatile)
    }

    /// What has to hold before any row is looked for.
    pub fn compile_gate(&self, scope: &Scope) -> Result<Option<RowProgram>, Refusal> {
        conjunction(self.gate.clone()).map(|gate| scope.compile(&gate)).transpose()
    }

    fn rows_at(&self, position: usize) -> Option<&Rows> {
        self.subqueries.iter().find(|rows| rows.position == position)
    }

    /// Whether a table can be visited when the rows of `bound` tables are known.
    fn is_ready(&self, scope: &Scope, position: usize, bound: u32) -> bool {
        let has_needs = self.rows_at(position).is_none_or(|rows| rows.needs & !bound == 0);
        let has_left = match &self.on[position] {
            Some(on) => bound != 0 && on.iter().all(|test| scope.uses_only(test, bound | 1 << position)),
            None => true,
        };
        has_needs && has_left
    }

    /// The cheapest order of tables with the access to each.
    pub fn order(&self, scope: &Scope, wish: &Wish<'_>, lead: Option<Lead<'_>>) -> Result<Ordered, Refusal> {
        let count = scope.tables.len();
        let is_value = |position: usize| self.rows_at(position).is_some_and(|rows| rows.is_value);
        let mut best = lead.map_or(Ok(None), |lead| self.order_along(&lead, scope, wish))?;
        // Every table may be the first; the rest follows by what is found with the fewest rows.
        let mut firsts: Vec<_> = (0..count).filter(|position| !is_value(*position)).map(Some).collect();
        if firsts.len() > MOST_FIRSTS {
            self.keep_likely(&mut firsts, scope, wish)?;
        }
        if firsts.is_empty() {
            firsts.push(None);
        }
        for first in firsts {
            if let Some(ordered) = self.order_from(first, scope, wish)?
                && best.as_ref().is_none_or(|best| ordered.cost < best.cost)
            {
                best = Some(ordered);
            }
        }
        match best {
            Some(best)
                if count <= 1 || wish.tries || wish.in_key_order || best.cost <= MANY_ROWS * count as f64 =>
            {
                Ok(best)
            }
            Some(_) => Err(NotPoint::because("the join would visit many rows").into()),
            None => Err(NotPoint::because("no index leads to few rows").into()),
        }
    }

    /// Of many tables only those that lead to the fewest rows are tried as the first: the tries grow with the cube of the tables.
    fn keep_likely(
        &self,
        firsts: &mut Vec<Option<usize>>,
        scope: &Scope,
        wish: &Wish<'_>,
    ) -> Result<(), Refusal> {
        let mut likely = Vec::with_capacity(firsts.len());
        for first in &*firsts {
            let mut left = first.iter().copied().filter(|position| self.is_ready(scope, *position, 0));
            if let Some((position, choice)) = self.next_table(scope, wish, 0, *first, &mut left)? {
                let rows = choice.map(|choice| choice.estimate);
                likely.push((
                    rows.or(self.rows_at(position).map(|rows| rows.rows)).unwrap_or(f64::MAX),
                    *first,
                ));
            }
        }
        likely.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        likely.truncate(MOST_FIRSTS);
        *firsts = likely.into_iter().map(|(_, first)| first).collect();
        Ok(())
    }

    /// The order that begins with `first`; `None` if there is none.
    fn order_from(
        &self,
        mut first: Option<usize>,
        scope: &Scope,
        wish: &Wish<'_>,
    ) -> Result<Option<Ordered>, Refusal> {
        let count = scope.tables.len();
        let mut bound = 0;
        let mut ordered = Ordered::new(count);
        while ordered.steps.len() < count {
            let is_left = |position: &usize| bound & (1 << *position) == 0;
            let is_ready = |position: &usize| self.is_ready(scope, *position, bound);
            let left = || (0..count).filter(is_left).filter(is_ready);
            let value = |tests: bool| {
                let is_it = |rows: &Rows| rows.is_value && rows.tests == tests;
                left().find(|position| self.rows_at(*position).is_some_and(is_it))
            };
            // What a test needs is evaluated as soon as it can be, what the output needs at the end.
            let (position, choice) = if let Some(position) = value(true) {
                (position, None)
            } else if let Some(next) = self.next_table(scope, wish, bound, first.take(), &mut left())? {
                next
            } else if let Some(position) = value(false) {
                (position, None)
            } else {
                return Ok(None);
            };
            bound |= 1 << position;
            ordered.add(position, choice, self.rows_at(position));
        }
        Ok(Some(ordered))
    }

    /// The order that goes along an index of the leading table, if every row of that leads to others by unique keys alone: then
    /// a LIMIT is soon reached. (Behind a left join there may be any number of rows.) What is tried may test what it likes.
    fn order_along(
        &self,
        lead: &Lead<'_>,
        scope: &Scope,
        wish: &Wish<'_>,
    ) -> Result<Option<Ordered>, Refusal> {
        let count = scope.tables.len();
        let leads = self.on[lead.position].is_none() && self.rows_at(lead.position).is_none();
        let tries = wish.tries;
        // Rows of a subquery that depends on the leading table are looked for as those of a table are.
        let is_harmless = |rows: &Rows| match rows.is_value {
            true => tries || !rows.tests,
            false => rows.needs != 0 && (tries || self.on[rows.position].is_some()),
        };
        if !leads || !self.subqueries.iter().all(is_harmless) {
            return Ok(None);
        }
        let mut bound = 1 << lead.position;
        let is_own = |at: &usize| scope.uses_only(&self.conjuncts[*at], bound);
        let own: Vec<usize> = (0..self.conjuncts.len()).filter(is_own).collect();
        let conditions: Vec<Expr> = own.iter().map(|at| self.conjuncts[*at].clone()).collect();
        let wish = Wish { order: lead.order, limit: Some(lead.limit), tries, ..Wish::default() };
        let gives_order = |choice: &Choice| choice.gives_order;
        let mut first = choose(scope, lead.position, 0, &conditions, &wish)?.filter(gives_order);
        if first.is_none() && tries {
            let wish = Wish { only_in_order: true, ..wish };
            first = choose(scope, lead.position, 0, &conditions, &wish)?.filter(gives_order);
        }
        let Some(mut first) = first else { return Ok(None) };
        first.served.iter_mut().for_each(|at| *at = own[*at]);
        if tries {
            first.estimate = first.estimate.min(lead.limit as f64 * LIKELY_TESTED);
        }
        let mut tested = own;
        let mut ordered = Ordered { is_wanted_order: true, ..Ordered::new(count) };
        ordered.add(lead.position, Some(first), None);
        while ordered.steps.len() < count {
            let is_ready = |at: &usize| bound & (1 << *at) == 0 && self.is_ready(scope, *at, bound);
            let value = |tests: bool| {
                let is_it = |at: &usize| self.rows_at(*at).is_some_and(|rows| rows.tests == tests);
                (0..count).filter(is_ready).find(is_it)
            };
            // What a test needs is evaluated as soon as it can be, what the output needs at the end.
            let (position, choice) = if let Some(position) = value(true) {
                (position, None)
            } else {
                let mut left = (0..count).filter(is_ready);
                let next =
                    self.next_table(scope, &Wish { tries, ..Wish::default() }, bound, None, &mut left)?;
                let Some(next) = next.or_else(|| Some((value(false)?, None))) else { return Ok(None) };
                next
            };
            if let Some(choice) = choice.as_ref().filter(|_| self.on[position].is_none()) {
                if !choice.access.terms.unique && !tries {
                    return Ok(None);
                }
                tested.extend(&choice.served);
            }
            bound |= 1 << position;
            ordered.add(position, choice, self.rows_at(position));
        }
        Ok(Some(ordered).filter(|_| tries || (0..self.conjuncts.len()).all(|at| tested.contains(&at))))
    }

    /// The way along the order that is wanted of the first table's rows, by conditions of that table alone.
    pub fn along(&self, lead: &Lead<'_>, scope: &Scope) -> Result<Option<Choice>, Refusal> {
        let bound = 1 << lead.position;
        let is_own = |at: &usize| scope.uses_only(&self.conjuncts[*at], bound);
        let own: Vec<usize> = (0..self.conjuncts.len()).filter(is_own).collect();
        let conditions: Vec<Expr> = own.iter().map(|at| self.conjuncts[*at].clone()).collect();
        let wish =
            Wish { order: lead.order, limit: Some(lead.limit), only_in_order: true, ..Wish::default() };
        let choice = choose(scope, lead.position, 0, &conditions, &wish)?;
        Ok(choice.map(|mut choice| {
            choice.served.iter_mut().for_each(|at| *at = own[*at]);
            choice
        }))
    }

    /// Of the tables that are left, and subqueries that give rows, the one with the fewest rows; `first`, if given.
    fn next_table(
        &self,
        scope: &Scope,
        wish: &Wish<'_>,
        bound: u32,
        first: Option<usize>,
        left: &mut dyn Iterator<Item = usize>,
    ) -> Result<Option<(usize, Option<Choice>)>, Refusal> {
        let mut next: Option<(usize, Option<Choice>, f64)> = None;
        for position in left.filter(|position| first.is_none_or(|first| first == *position)) {
            let (choice, rows) = match self.rows_at(position) {
                Some(rows) if rows.is_value => continue,
                Some(rows) => (None, rows.rows),
                None => {
                    let conditions = self.on[position].as_deref().unwrap_or(&self.conjuncts);
                    let Some(choice) = choose(scope, position, bound, conditions, wish)? else { continue };
                    let rows = choice.estimate;
                    (Some(choice), rows)
                }
            };
            if next.as_ref().is_none_or(|(.., least)| rows < *least) {
                next = Some((position, choice, rows));
            }
        }
        Ok(next.map(|(position, choice, _)| (position, choice)))
    }

    /// Gives each condition to the first level at which it can be tested, unless the keys guarantee it.
    pub fn into_levels(mut self, scope: &Scope, steps: Vec<Step>) -> Result<Box<[Level]>, Refusal> {
        let compile_all = |tests: Vec<Expr>| conjunction(tests).map(|test| scope.compile(&test)).transpose();
        let mut open: Vec<usize> = (0..self.conjuncts.len()).collect();
        let mut bound = 0;
        let mut levels = Vec::with_capacity(steps.len());
        for Step { position, mut choice } in steps {
            bound |= 1 << position;
            let (here, later): (Vec<_>, Vec<_>) =
                open.into_iter().partition(|&at| scope.uses_only(&self.conjuncts[at], bound));
            open = later;
            let along = choice.as_mut().and_then(|choice| choice.along.take());
            let along = along.map(|along| {
                let open = here.iter().filter(|at| !along.served.contains(at));
                let residual = compile_all(open.map(|at| self.conjuncts[*at].clone()).collect())?;
                Ok::<_, Refusal>(Box::new(Along { access: along.access, residual }))
            });
            let along = along.transpose()?;
            let is_served = |at: &usize| choice.as_ref().is_some_and(|choice| choice.served.contains(at));
            let on = self.on[position].as_ref();
            let is_open = |at: &usize| on.is_some() || !is_served(at);
            let tests = here.into_iter().filter(is_open).map(|at| self.conjuncts[at].clone()).collect();
            let residual = compile_all(tests)?;
            let outer = on.is_some();
            let on = on.map_or(Ok(None), |on| {
                let open = (0..on.len()).filter(|at| !is_served(at));
                compile_all(open.map(|at| on[at].clone()).collect())
            })?;
            let table = &scope.tables[position];
            let source = match (choice, table.stored()) {
                (Some(Choice { access, .. }), Some(handle)) => {
                    Source::Table { table: Table(handle.clone()), access }
                }
                _ => {
                    let at = self.subqueries.iter().position(|rows| rows.position == position);
                    Source::Subquery(self.subqueries.swap_remove(at.expect("it was ordered")).plan)
                }
            };
            let (lock, only) = (table.lock, table.only.clone());
            let visited = LastCount::default();
            levels.push(Level { source, position, on, outer, residual, lock, only, along, visited });
        }
        // Without any table.
        if !open.is_empty() {
            return Err(NotPoint::because("a condition on something that is no table's column").into());
        }
        Ok(levels.into())
    }
}

impl Ordered {
    pub fn new(count: usize) -> Self {
        Self { steps: Vec::with_capacity(count), cost: 0.0, rows: 1.0, is_wanted_order: false }
    }

    /// The only table's rows.
    pub fn of_one(choice: Choice) -> Self {
        let mut ordered = Self::new(1);
        ordered.add(0, Some(choice), None);
        ordered
    }

    /// `rows` is the subquery, if it is one; else there is a choice.
    fn add(&mut self, position: usize, choice: Option<Choice>, rows: Option<&Rows>) {
        if let Some(rows) = rows {
            let times = if rows.needs == 0 { 1.0 } else { self.rows };
            self.cost += times * rows.cost.max(1.0);
        }
        let found = match (&choice, rows) {
            (Some(choice), _) => choice.estimate,
            (None, rows) => rows.map_or(1.0, |rows| rows.rows),
        };
        self.rows *= found.max(1.0);
        self.cost += self.rows;
        self.steps.push(Step { position, choice });
    }
}

/// What a block evaluates after its WHERE.
fn expressions_after_where(block: &plan::Select) -> impl Iterator<Item = &Expr> {
    let grouping = block.aggregation.iter();
    let grouping = grouping.flat_map(|grouping| {
        let arguments = grouping.aggregates.iter().flat_map(|aggregate| &aggregate.args);
        grouping.keys.iter().map(|key| &key.expr).chain(arguments)
    });
    let others = block.subqueries.iter().flat_map(|subquery| match &subquery.kind {
        SubqueryKind::In { needles, .. } => &needles[..],
        SubqueryKind::Quantified { left, .. } => std::slice::from_ref(left),
        _ => &[],
    });
    block.having.iter().chain(block.projection.iter().map(|item| &item.expr)).chain(grouping).chain(others)
}

/// `left = right`, which were converted to what they compare as.
pub fn equals(left: Expr, right: Expr) -> Expr {
    let kind = ExprKind::Compare { op: CompareOp::Eq, left: Box::new(left), right: Box::new(right) };
    Expr::new(kind, SqlType::BIGINT, true)
}
