//! Compiling queries: one block over stored tables.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use avocet_base::{RowId, TableId};
use avocet_channel::OutputColumn;
use avocet_engine::{Catalog, RowLock};
use avocet_sql::plan::walk::for_each_expr_mut;
use avocet_sql::plan::{self, BoundQuery, ColumnId, ColumnInfo, QueryBody, QueryExpr, SubqueryKind};
use avocet_types::expr::{Expr, ExprKind, RowProgram};
use avocet_types::{Collation, Datum, SqlType};

use super::aggregate::AggregatePlan;
use super::choose::{Access, Choice, Grouped, Wish, choose_loose};
use super::joins::{Joins, Lead, Membership, Ordered, Step};
use super::known::Known;
use super::late::evaluated_late;
use super::scope::{ReadAs, Scope};
use super::subplan::SubPlan;
use super::windows::Windows;
use super::{Kind, NotPoint, PointPlan, Refusal, Table};

/// A LIMIT that is a parameter of which nothing is known is taken to be so large.
const LIKELY_LIMIT: u64 = 100;

fn likely_count(query: &BoundQuery, expr: &Expr) -> Option<u64> {
    let mut params = Vec::new();
    expr.any(&mut |part| {
        params.extend(if let ExprKind::Param(at) = part.kind { Some(at) } else { None });
        false
    });
    let [param] = params[..] else { return None };
    let known = query.likely_counts.iter().find(|(at, _)| usize::from(*at) == param)?;
    Some(known.1)
}

/// A compiled query.
#[derive(Debug)]
pub struct Select {
    /// Tables in the order in which they are visited, each for every row of those before.
    pub levels: Box<[Level]>,
    pub slots: Arc<[(u8, u16)]>,
    /// Whether rows of some table are locked.
    pub locks: bool,
    /// Expressions assign to user variables.
    pub assigns: bool,
    /// Running it twice does no harm.
    pub repeatable: bool,
    /// The ids of rows are among its columns.
    pub gives_ids: bool,
    /// The first row found is all that matters.
    pub first_only: bool,
    /// What has to hold before any row is looked for.
    pub gate: Option<RowProgram>,
    /// Nothing is known of how many rows it visits, and it is left if they become many.
    pub is_tried: bool,
    pub record: Record,
    /// Nearly each row of the first table leads to a row.
    pub leads: bool,
    /// The rows of the first table are put in this order before they are joined, so that a LIMIT ends the join.
    pub lead_order: Box<[LeadTerm]>,
    pub output: Output,
    pub limit: Option<RowProgram>,
    pub offset: Option<RowProgram>,
}

/// How a plan did that may be left for another path: one that was wrong about its rows is not taken each time.
#[derive(Debug, Default)]
pub struct Record {
    /// Runs that were left, since the last one that was not.
    left: AtomicU32,
    /// Those that were not begun, since the last one that was.
    skipped: AtomicU32,
}

impl Record {
    /// Whether the next run is worth it: after each that was left, half as often, at least one of 64.
    pub fn is_worth_it(&self) -> bool {
        let left = self.left.load(Relaxed);
        if left == 0 {
            return true;
        }
        let skips = (1 << left.min(6)) - 1;
        if self.skipped.load(Relaxed) < skips {
            self.skipped.fetch_add(1, Relaxed);
            return false;
        }
        self.skipped.store(0, Relaxed);
        true
    }

    pub fn note(&self, was_left: bool) {
        if was_left {
            self.left.fetch_add(1, Relaxed);
        } else if self.left.load(Relaxed) > 0 {
            self.left.store(0, Relaxed);
        }
    }
}

/// A table of a query, or a subquery whose rows stand for one.
#[derive(Debug)]
pub struct Level {
    pub source: Source,
    /// Its number in the scope.
    pub position: usize,
    /// To the right of a left join: ON, as far as the keys do not guarantee it.
    pub on: Option<RowProgram>,
    /// Where no row is found, one of NULLs takes its place.
    pub outer: bool,
    pub residual: Option<RowProgram>,
    /// How its rows are locked.
    pub lock: Option<RowLock>,
    /// If given, only these rows are read.
    pub only: Option<Arc<HashSet<RowId>>>,
}

impl Level {
    pub fn reads(&self, id: RowId) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&id))
    }
}

/// Where the rows of a level come from.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a few per plan, and mostly the large one")]
pub enum Source {
    Table { table: Table, access: Access },
    Subquery(Box<SubPlan>),
}

/// What becomes of the rows.
#[derive(Debug)]
pub struct Output {
    /// Visible columns, then sort keys.
    pub programs: Box<[RowProgram]>,
    pub visible: usize,
    pub distinct: bool,
    /// Empty if the rows come in order.
    pub order: Box<[SortTerm]>,
    /// They come in the order of so many of the first terms.
    pub presorted: usize,
    pub aggregation: Option<Aggregation>,
    /// What stands after it is then over what the windows pass on.
    pub windows: Option<Windows>,
}

#[derive(Debug)]
pub struct SortTerm {
    pub program: usize,
    pub descending: bool,
    pub collation: Collation,
}

/// A column of the first table that its rows are ordered by.
#[derive(Clone, Copy, Debug)]
pub struct LeadTerm {
    pub column: usize,
    pub descending: bool,
    pub collation: Collation,
}

/// What stands after it is over the keys followed by the aggregates.
#[derive(Debug)]
pub struct Aggregation {
    pub keys: Box<[RowProgram]>,
    pub aggregates: Box<[AggregatePlan]>,
    pub having: Option<RowProgram>,
    /// There is a group for each number of first keys, too.
    pub rollup: bool,
}

impl Select {
    /// The tables in the order of visits, each with its index.
    pub fn locks_exclusively(&self) -> bool {
        self.levels.iter().any(|level| {
            level.lock.is_some_and(|lock| lock.exclusive)
                || matches!(&level.source, Source::Subquery(plan) if plan.selects.iter().any(Self::locks_exclusively))
        })
    }

    /// Whether rows are sent as they are found.
    fn sends_in_order(&self) -> bool {
        let output = &self.output;
        let waits = output.aggregation.is_some() || output.windows.is_some() || !output.order.is_empty();
        !waits && self.lead_order.is_empty()
    }

    pub fn is_one_row(&self) -> bool {
        self.levels.is_empty() && self.gate.is_none() && self.output.aggregation.is_none()
    }

    pub fn describe(&self) -> String {
        let level = |level: &Level| {
            let source = match &level.source {
                Source::Table { table, access } => access.describe(table),
                Source::Subquery(plan) => describe_subplan(plan),
            };
            if level.outer { format!("left join {source}") } else { source }
        };
        let levels: Vec<_> = self.levels.iter().map(level).collect();
        match (levels.is_empty(), self.is_tried) {
            (true, _) => "no tables".to_owned(),
            (false, true) => format!("{}, if it is soon done", levels.join(", then ")),
            (false, false) => levels.join(", then "),
        }
    }
}

fn describe_subplan(plan: &SubPlan) -> String {
    match plan.recursion() {
        Some([seed, step]) => {
            format!("({}, again and again {})", describe_subplan(seed), describe_subplan(step))
        }
        None => {
            let parts: Vec<_> = plan.selects.iter().map(Select::describe).collect();
            format!("({})", parts.join(", and "))
        }
    }
}

/// A block that was compiled.
pub struct Block {
    pub select: Select,
    /// All that it reads, its subqueries' included.
    pub tables: Vec<Table>,
    pub dates: Box<[(usize, ReadAs)]>,
    /// Estimates: rows that it visits, and rows that it gives.
    pub cost: f64,
    pub rows: f64,
}

/// Compiles a query. `columns` is what the client is told of its outputs; `given` are tables that are not stored, whose rows each
/// run is given.
pub fn compile_query(
    query: &BoundQuery,
    columns: Arc<[OutputColumn]>,
    catalog: &Catalog,
    given: &[TableId],
) -> Result<PointPlan, Refusal> {
    let known = Known::new(catalog).given(given);
    let Block { select, tables, dates, .. } = match compile_block(query, &known, Nesting::Statement) {
        Err(Refusal::NotPoint(reason)) if is_repeatable(query) => {
            let Ok(mut block) = compile_block(query, &known.trying(), Nesting::Statement) else {
                return Err(reason.into());
            };
            block.select.is_tried = true;
            block
        }
        block => block?,
    };
    let kind = Kind::Select(select);
    let (params, columns, is_of_session) = (query.params.clone(), columns.into(), query.session_dependent);
    let plan = PointPlan { kind, tables, params, columns, dates, is_of_session };
    plan.with_views(&query.views, catalog)
}

/// Where a block stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nesting {
    Statement,
    /// The query that finds the rows of a change.
    Change,
    Subquery,
}

pub fn compile_block(query: &BoundQuery, known: &Known<'_>, nesting: Nesting) -> Result<Block, Refusal> {
    if query.calc_found_rows {
        return Err(NotPoint::because("SQL_CALC_FOUND_ROWS").into());
    }
    if let QueryBody::SetOperation(_) | QueryBody::Nested(_) = &query.body.body {
        return compile_block(&selected_from(query), known, nesting);
    }
    let block = plain_block(query)?;
    let known = known.with(&query.body.ctes);
    if query.assigns
        && let Some(late) = evaluated_late(query, block)
    {
        let compiled = compile_plain(query, block, &known, nesting, Membership::Join);
        return match compiled {
            Ok(block) if block.select.sends_in_order() => Ok(block),
            _ => compile_block(&late, &known, nesting),
        };
    }
    let has_membership =
        block.subqueries.iter().any(|subquery| matches!(subquery.kind, SubqueryKind::In { .. }));
    match compile_plain(query, block, &known, nesting, Membership::Join) {
        Err(Refusal::NotPoint(_)) if has_membership => {
            compile_plain(query, block, &known, nesting, Membership::Lookup)
        }
        compiled => compiled,
    }
}

fn compile_plain(
    query: &BoundQuery,
    block: &plan::Select,
    known: &Known<'_>,
    nesting: Nesting,
    how: Membership,
) -> Result<Block, Refusal> {
    let mut scope = Scope::new();
    let joins = Joins::of(query, block, known, &mut scope, how)?;
    if query.locks && query.body.limit.is_some() && scope.tables.len() > 1 {
        // All rows of a table are met before those of the next.
        return Err(NotPoint::because("a LIMIT of rows of several tables that are locked").into());
    }
    let alone = joins.is_single_table(&scope);
    let asked = Asked { tries: known.tries, ..Asked::of(query, block, &scope, alone, nesting) };
    let ordered = match joins.is_empty() {
        true => Ordered::new(0),
        false => match loose(query, block, &scope, &joins, alone)? {
            Some(choice) if known.tries || choice.access.has_few_groups() => Ordered::of_one(choice),
            Some(_) if asked.may_measure => {
                return Err(NotPoint::because("groups of which nothing is known").into());
            }
            _ => scope.without_notes(|| joins.order(&scope, &asked.wish(), asked.lead()))?,
        },
    };
    for choice in ordered.steps.iter().filter_map(|step| step.choice.as_ref()) {
        choice.access.for_each_program(&mut |program| scope.note_used(program));
    }
    let leads = alone || ordered.is_wanted_order;
    let first = ordered.steps.first().and_then(|step| step.choice.as_ref()).filter(|_| leads);
    // What is tried is kept until there is enough of it: nothing may be sent before.
    let is_kept = first.is_some_and(|choice| choice.access.is_tried) || known.tries && !joins.is_empty();
    let in_order = first.is_some_and(|choice| choice.gives_order) && asked.order_known && !is_kept;
    let served_all = first.is_some_and(|choice| choice.served.len() == joins.conjuncts.len());
    let first_only = asked.first_value
        && served_all
        && first.is_some_and(|choice| choice.first_value && choice.gives_order);
    let order_prefix = first.map_or(0, |choice| choice.order_prefix);
    let lead_order = match in_order || query.locks || query.assigns {
        true => Box::default(),
        false => asked.lead_order(&scope, &ordered),
    };
    let (cost, mut rows) = (ordered.cost, ordered.rows);
    let mut tables: Vec<_> = scope.stored().map(|(_, handle)| Table(handle.clone())).collect();
    for plan in &joins.subqueries {
        tables.extend(plan.tables.iter().cloned());
        let own = plan.dates.iter().copied().filter(|(param, _)| *param < query.params.len());
        scope.add_dates(&own.collect::<Vec<_>>());
    }
    let gate = joins.compile_gate(&scope)?;
    let mut levels = match joins.is_empty() {
        true => Box::default(),
        false => joins.into_levels(&scope, ordered.steps)?,
    };
    let mut output = compile_output(query, block, &scope, in_order)?;
    for (depth, level) in levels.iter_mut().enumerate() {
        let Source::Table { table, access } = &mut level.source else { continue };
        if depth == 0 && !lead_order.is_empty() {
            // Of those that are joined, all is read then.
            let tested =
                level.residual.iter().flat_map(|test| test.columns()).map(|slot| scope.slots[*slot].1);
            let mut columns: Vec<usize> =
                tested.map(usize::from).filter(|&c| c < table.def.columns.len()).collect();
            columns.extend(lead_order.iter().map(|term| term.column));
            columns.sort_unstable();
            columns.dedup();
            access.read_only(&columns);
        } else if level.lock.is_none() {
            access.read_only(&scope.columns_used(level.position));
        }
    }
    if asked.order_known && output.aggregation.is_none() {
        output.presorted = match lead_order.is_empty() {
            true => order_prefix.min(output.order.len()),
            false => output.order.len(),
        };
    }
    if output.aggregation.as_ref().is_some_and(|aggregation| aggregation.keys.is_empty()) {
        rows = 1.0;
    }
    let limit = query.body.limit.as_ref();
    let select = Select {
        slots: scope.slots.clone(),
        locks: query.locks,
        assigns: query.assigns,
        repeatable: nesting != Nesting::Subquery && is_repeatable(query),
        gives_ids: scope.gives_ids(),
        first_only,
        gate,
        is_tried: false,
        record: Record::default(),
        leads,
        lead_order,
        output,
        limit: limit.map(|l| scope.compile(&l.count)).transpose()?,
        offset: limit.and_then(|l| l.offset.as_ref()).map(|offset| scope.compile(offset)).transpose()?,
        levels,
    };
    Ok(Block { select, tables, dates: scope.dates(), cost, rows })
}

/// The loose scan that gives the block's groups.
fn loose(
    query: &BoundQuery,
    block: &plan::Select,
    scope: &Scope,
    joins: &Joins,
    alone: bool,
) -> Result<Option<Choice>, Refusal> {
    let plain = block.windows.is_empty() && block.subqueries.is_empty() && !query.locks && !scope.gives_ids();
    let plain = plain && !query.assigns;
    if !alone || scope.tables.len() != 1 || !plain {
        return Ok(None);
    }
    let column = |expr: &Expr| match expr.kind {
        ExprKind::Column(id) => Some(scope.place(id)?.1),
        _ => None,
    };
    let grouped = match &block.aggregation {
        // One MIN or MAX alone is the first row in its order.
        Some(of) if !of.rollup && (!of.keys.is_empty() || of.aggregates.len() > 1) => {
            let extreme = |aggregate: &plan::Aggregate| {
                let is_max = match aggregate.function {
                    plan::AggregateFunction::Min => false,
                    plan::AggregateFunction::Max => true,
                    _ => return None,
                };
                Some((column(aggregate.args.first()?)?, is_max))
            };
            let keys: Option<_> = of.keys.iter().map(|key| column(&key.expr)).collect();
            keys.zip(of.aggregates.iter().map(extreme).collect())
        }
        None if block.distinct => {
            let keys: Option<_> = block.projection.iter().map(|item| column(&item.expr)).collect();
            keys.zip(Some(Vec::new()))
        }
        _ => None,
    };
    let Some((keys, extremes)) = grouped else { return Ok(None) };
    choose_loose(scope, &joins.conjuncts, &Grouped { keys, extremes })
}

/// Whether running the query twice does no harm.
fn is_repeatable(query: &BoundQuery) -> bool {
    let mut repeatable = !query.locks;
    for_each_expr_mut(&mut query.body.clone(), &mut |expr| repeatable &= !expr.is_volatile());
    repeatable
}

/// The query's only block, if it is one that the point path can take.
fn plain_block(query: &BoundQuery) -> Result<&plan::Select, NotPoint> {
    let QueryBody::Select(block) = &query.body.body else {
        return Err(NotPoint::because("rows of VALUES"));
    };
    Ok(block)
}

/// `SELECT * FROM (…)` of a set operation or of what stands in parentheses, with the order and the limit of all.
fn selected_from(query: &BoundQuery) -> BoundQuery {
    let QueryExpr { ctes, body, order_by, limit, outputs } = query.body.clone();
    let inner = match body {
        QueryBody::Nested(inner) => *inner,
        body => {
            let columns = match &body {
                QueryBody::SetOperation(set) => set.columns.clone(),
                _ => outputs.clone(),
            };
            QueryExpr { ctes: Vec::new(), body, order_by: Vec::new(), limit: None, outputs: columns }
        }
    };
    let projected = |id: &ColumnId| {
        let ColumnInfo { ty, nullable, .. } = query.columns[*id];
        plan::Projected { id: *id, expr: Expr::column(id.index(), ty, nullable) }
    };
    let projection = inner.outputs.iter().map(projected).collect();
    let from =
        plan::From::Derived(plan::Derived { query: inner, alias: "".into(), outer: Vec::new(), view: None });
    let body = QueryBody::Select(Box::new(plan::Select::plain(from, projection)));
    BoundQuery { body: QueryExpr { ctes, body, order_by, limit, outputs }, ..query.clone() }
}

/// What the statement asks of the first table.
struct Asked {
    /// Columns of the table at `leader`.
    order: Vec<(usize, bool)>,
    leader: Option<usize>,
    /// Whether `order` is all of the wanted order.
    order_known: bool,
    limit: Option<u64>,
    /// The same; rows that are there already do not count.
    distinct_limit: Option<u64>,
    first_value: bool,
    /// Of a single table.
    alone: bool,
    may_measure: bool,
    must: bool,
    in_key_order: bool,
    tries: bool,
}

impl Asked {
    fn of(query: &BoundQuery, block: &plan::Select, scope: &Scope, alone: bool, nesting: Nesting) -> Self {
        let is_only = alone && scope.tables.len() == 1;
        let asked = Self {
            order: Vec::new(),
            leader: None,
            order_known: false,
            limit: None,
            distinct_limit: None,
            first_value: false,
            alone,
            may_measure: is_only && nesting != Nesting::Subquery,
            must: query.locks || query.assigns,
            in_key_order: query.assigns,
            tries: false,
        };
        let column_of = |expr: &Expr| match expr.kind {
            ExprKind::Column(id) => {
                let (table, column) = scope.place(id)?;
                scope.tables[table].stored().map(|_| (table, column))
            }
            _ => None,
        };
        if !block.windows.is_empty() {
            return asked;
        }
        if let Some(aggregation) = &block.aggregation {
            if !aggregation.keys.is_empty() {
                return asked;
            }
            let extreme = match &aggregation.aggregates[..] {
                [one] if one.function == plan::AggregateFunction::Min => Some((one, false)),
                [one] if one.function == plan::AggregateFunction::Max => Some((one, true)),
                _ => None,
            };
            let order =
                extreme.and_then(|(one, descending)| Some((column_of(one.args.first()?)?.1, descending)));
            let first_value = order.is_some() && is_only;
            let limit = first_value.then_some(1);
            let order = order.into_iter().collect();
            return Self { order, order_known: true, limit, first_value, ..asked };
        }
        let projected = |id: ColumnId| block.projection.iter().find(|p| p.id == id);
        let keys = query.body.order_by.iter();
        let order: Option<Vec<_>> =
            keys.map(|key| Some((column_of(&projected(key.column)?.expr)?, key.descending))).collect();
        let leader = order.as_ref().and_then(|order| Some(order.first()?.0.0));
        let order = order.filter(|order| order.iter().all(|((table, _), _)| Some(*table) == leader));
        let order = order
            .map(|order| order.into_iter().map(|((_, column), descending)| (column, descending)).collect());
        let count = |expr: &Expr| match expr.as_literal() {
            Some(Datum::UInt(n)) => *n,
            Some(Datum::Int(n)) => (*n).max(0) as u64,
            _ => likely_count(query, expr).unwrap_or(LIKELY_LIMIT),
        };
        let limit = query.body.limit.as_ref();
        let distinct_limit =
            limit.map(|l| count(&l.count).saturating_add(l.offset.as_ref().map_or(0, count)));
        let limit = distinct_limit.filter(|_| !block.distinct);
        let order_known = order.is_some();
        Self { order: order.unwrap_or_default(), leader, order_known, limit, distinct_limit, ..asked }
    }

    fn wish(&self) -> Wish<'_> {
        let Self { may_measure, must, in_key_order, tries, .. } = *self;
        if !self.alone || !self.order_known {
            return Wish { may_measure, must, in_key_order, tries, ..Wish::default() };
        }
        let (order, limit, first_value) = (&*self.order, self.limit, self.first_value);
        Wish { order, limit, first_value, may_measure, must, in_key_order, tries, only_in_order: false }
    }

    /// How the rows of the first table are put in order before they are joined; nothing if that does not help.
    fn lead_order(&self, scope: &Scope, ordered: &Ordered) -> Box<[LeadTerm]> {
        let is_first = |step: &Step| Some(step.position()) == self.leader && step.choice.is_some();
        let helps = self.order_known
            && self.distinct_limit.is_some()
            && ordered.steps.len() > 1
            && ordered.steps.first().is_some_and(is_first);
        let Some(table) = self.leader.filter(|_| helps).and_then(|leader| scope.tables[leader].stored())
        else {
            return Box::default();
        };
        let term = |&(column, descending): &(usize, bool)| {
            let collation = table.def.columns[column].ty.collation().unwrap_or(Collation::BINARY);
            LeadTerm { column, descending, collation }
        };
        self.order.iter().map(term).collect()
    }

    /// What is wanted of a join whose rows are not locked.
    fn lead(&self) -> Option<Lead<'_>> {
        let is_join = !self.alone && self.order_known && !self.must;
        let limit = if self.tries { self.distinct_limit } else { self.limit };
        let (position, limit) = (self.leader?, limit?);
        is_join.then_some(Lead { position, order: &self.order, limit })
    }
}

pub fn conjunction(mut tests: Vec<Expr>) -> Option<Expr> {
    match tests.len() {
        0 => None,
        1 => tests.pop(),
        _ => Some(Expr::new(ExprKind::And(tests), SqlType::BIGINT, true)),
    }
}

fn compile_output(
    query: &BoundQuery,
    block: &plan::Select,
    scope: &Scope,
    in_order: bool,
) -> Result<Output, Refusal> {
    let grouping = block.aggregation.as_ref();
    let of_rows = |expr: &Expr| match grouping {
        None => scope.compile(expr),
        Some(plan::Aggregation { keys, aggregates, .. }) => {
            let place = |id: usize| {
                let mut ids = keys.iter().map(|key| key.id).chain(aggregates.iter().map(|a| a.id));
                ids.position(|of| of.index() == id)
            };
            if expr.columns().iter().any(|id| place(*id).is_none()) {
                return Err(NotPoint::because("a column beside aggregates").into());
            }
            let expr = expr.clone().map_columns(&mut |id| place(id).expect("looked up just now"));
            Ok(RowProgram::compile(&expr)?)
        }
    };
    let projected = block.projection.iter().map(|item| &item.expr);
    let windows = match &block.windows[..] {
        [] => None,
        functions => Some(Windows::compile(functions, projected, &query.columns, &of_rows)?),
    };
    let (windows, after_windows) = windows.unzip();
    let compile = |expr: &Expr| match &after_windows {
        Some(after_windows) => after_windows(expr),
        None => of_rows(expr),
    };
    let position = |id: ColumnId| {
        let at = block.projection.iter().position(|p| p.id == id);
        at.ok_or_else(|| Refusal::from(NotPoint::because("an output that is not projected")))
    };
    let mut wanted: Vec<usize> =
        query.body.outputs.iter().map(|id| position(*id)).collect::<Result<_, _>>()?;
    let visible = wanted.len();
    let mut order = Vec::new();
    let is_one_row = grouping.is_some_and(|aggregation| aggregation.keys.is_empty());
    if !in_order && !is_one_row {
        for key in &query.body.order_by {
            let at = position(key.column)?;
            let program = wanted.iter().position(|w| *w == at).unwrap_or_else(|| {
                wanted.push(at);
                wanted.len() - 1
            });
            let collation = block.projection[at].expr.ty.order().unwrap_or(Collation::BINARY);
            order.push(SortTerm { program, descending: key.descending, collation });
        }
    }
    let exprs = || wanted.iter().map(|at| &block.projection[*at].expr);
    let aggregation = grouping
        .map(|aggregation| {
            let key = |key: &plan::Projected| {
                // Evaluated once to find the group, and once more for a new one.
                if key.expr.is_volatile() || query.columns[key.id].ty != key.expr.ty {
                    return Err(NotPoint::because("GROUP BY something that is not kept as it is").into());
                }
                scope.compile(&key.expr)
            };
            let keys: Vec<&Expr> = aggregation.keys.iter().map(|key| &key.expr).collect();
            let plan = |a: &plan::Aggregate| {
                AggregatePlan::compile(a, query.columns[a.id].ty, &keys, &|expr| scope.compile(expr))
            };
            Ok::<_, Refusal>(Aggregation {
                keys: aggregation.keys.iter().map(key).collect::<Result<_, _>>()?,
                aggregates: aggregation.aggregates.iter().map(plan).collect::<Result<_, _>>()?,
                having: block.having.as_ref().map(of_rows).transpose()?,
                rollup: aggregation.rollup,
            })
        })
        .transpose()?;
    Ok(Output {
        programs: exprs().map(compile).collect::<Result<_, _>>()?,
        visible,
        distinct: block.distinct && !is_one_row,
        order: order.into(),
        presorted: 0,
        aggregation,
        windows,
    })
}
