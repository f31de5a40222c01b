//! Compiling queries: a block's tables in the order in which they are visited, each with its index, and what becomes of the rows.

mod subplan;

use std::sync::Arc;

use avocet_base::TableId;
use avocet_channel::OutputColumn;
use avocet_engine::Catalog;
use avocet_sql::plan::walk::for_each_expr_mut;
use avocet_sql::plan::{self, BoundQuery, ColumnId, ColumnInfo, QueryBody, QueryExpr, SubqueryKind};
use avocet_types::expr::{Expr, ExprKind, RowProgram};
use avocet_types::{Collation, Datum, IndexPart, SqlType};

use super::aggregate::{AggregatePlan, Aggregation};
use super::choose::{Choice, Grouped, Wish, choose_loose};
use super::joins::{Joins, Lead, Membership, Ordered};
use super::known::{CompileBudget, Known};
use super::late::evaluated_late;
use super::scope::{ReadAs, Scope};
use super::select::{LeadTerm, Output, Record, Select, SortTerm, Source};
use super::windows::Windows;
use super::{Kind, NotPoint, PointPlan, Refusal, Table};

pub use subplan::{Answer, Compiled, compile_given, compile_recursion, compile_subplan, compile_work_table};

/// A LIMIT that is a parameter of which nothing is known is taken to be so large.
const LIKELY_LIMIT: u64 = 100;

/// So many rows of VALUES are blocks without tables; more are for the analytical path.
const MOST_VALUES: usize = 64;

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
    let budget = || match query.locks || query.assigns {
        true => CompileBudget::without_alternative(),
        false => CompileBudget::new(),
    };
    let (first_budget, tried_budget) = (budget(), budget());
    let known = Known::new(catalog, &first_budget).given(given);
    let Block { select, tables, dates, .. } = match compile_block(query, &known, Nesting::Statement) {
        Err(Refusal::NotPoint(reason)) if is_repeatable(query) => {
            let known = Known::new(catalog, &tried_budget).given(given).trying();
            let Ok(mut block) = compile_block(query, &known, Nesting::Statement) else {
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
    let is_of_several = match &query.body.body {
        QueryBody::SetOperation(_) | QueryBody::Nested(_) => true,
        QueryBody::Values(values) => values.rows.len() <= MOST_VALUES,
        QueryBody::Select(_) | QueryBody::JsonTable(_) => false,
    };
    if is_of_several {
        if query.calc_found_rows {
            return Err(NotPoint::because("SQL_CALC_FOUND_ROWS of several queries").into());
        }
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
    let mut ordered = match joins.is_empty() {
        true => Ordered::new(0),
        false => match loose(query, block, &scope, &joins, alone)? {
            Some(choice) if known.tries || choice.access.has_few_groups() => Ordered::of_one(choice),
            Some(_) if asked.may_measure => {
                return Err(NotPoint::because("groups of which nothing is known").into());
            }
            _ => scope.without_notes(|| joins.order(&scope, &asked.wish(), asked.lead()))?,
        },
    };
    let may_turn = !query.locks && !query.assigns && !joins.is_random() && !ordered.is_wanted_order;
    if let Some(lead) = asked.lead_of(&ordered).filter(|_| may_turn)
        && let Some(first) = ordered.steps[0].choice.as_mut()
        && first.access.leads_to_several()
    {
        first.along = scope.without_notes(|| joins.along(&lead, &scope))?.map(Box::new);
    }
    for choice in ordered.steps.iter().filter_map(|step| step.choice.as_ref()) {
        let ways = std::iter::once(choice).chain(choice.along.as_deref());
        for way in ways {
            way.access.for_each_program(&mut |program| scope.note_used(program));
        }
    }
    let leads = alone || ordered.is_wanted_order;
    let first = ordered.steps.first().and_then(|step| step.choice.as_ref()).filter(|_| leads);
    // What is tried is kept until there is enough of it: nothing may be sent before.
    let is_kept = first.is_some_and(|choice| choice.access.is_tried) || known.tries && !joins.is_empty();
    let comes_in_order = first.is_some_and(|choice| choice.gives_order) && asked.order_known;
    let in_order = comes_in_order && !is_kept;
    let served_all = first.is_some_and(|choice| choice.served.len() == joins.conjuncts.len());
    let first_only = asked.first_value
        && served_all
        && first.is_some_and(|choice| choice.first_value && choice.gives_order);
    let order_prefix = first.map_or(0, |choice| choice.order_prefix);
    let lead_order = match comes_in_order || query.locks || query.assigns {
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
    // What is random, or counts, would want other rows in the next turn than those that it passes over.
    let in_turns = leads && !query.assigns && !joins.is_random();
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
            if let Some(along) = &mut level.along {
                along.access.read_only(&scope.columns_used(level.position));
            }
        } else if level.lock.is_none() {
            let columns = scope.columns_used(level.position);
            access.read_only(&columns);
            if let Some(along) = &mut level.along {
                along.access.read_only(&columns);
            }
        }
    }
    if let Some(aggregation) = &mut output.aggregation {
        aggregation.in_turn = !aggregation.keys.is_empty() && leads && comes_in_order && asked.order_known;
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
        in_turns,
        lead_order,
        output,
        limit: limit.map(|l| scope.compile(&l.count)).transpose()?,
        offset: limit.and_then(|l| l.offset.as_ref()).map(|offset| scope.compile(offset)).transpose()?,
        counts_all: query.calc_found_rows,
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
    /// It is that of groups.
    of_groups: bool,
    limit: Option<u64>,
    /// The same; rows that are there already do not count.
    distinct_limit: Option<u64>,
    first_value: bool,
    /// Of a single table.
    alone: bool,
    /// Its rows are seen by a run as they are found.
    switches: bool,
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
            of_groups: false,
            limit: None,
            distinct_limit: None,
            first_value: false,
            alone,
            switches: is_only && !query.assigns && !scope.gives_ids(),
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
        let count = |expr: &Expr| match expr.as_literal() {
            Some(Datum::UInt(n)) => *n,
            Some(Datum::Int(n)) => (*n).max(0) as u64,
            _ => likely_count(query, expr).unwrap_or(LIKELY_LIMIT),
        };
        // Rows beyond a LIMIT that are counted are found as well.
        let limit = query.body.limit.as_ref().filter(|_| !query.calc_found_rows);
        let distinct_limit =
            limit.map(|l| count(&l.count).saturating_add(l.offset.as_ref().map_or(0, count)));
        if let Some(aggregation) = &block.aggregation {
            if !aggregation.keys.is_empty() {
                let lead = grouped_in_turn(query, block, aggregation, scope, &column_of);
                return match lead.filter(|_| !alone && distinct_limit.is_some()) {
                    Some((leader, order)) => Self {
                        order,
                        leader: Some(leader),
                        order_known: true,
                        of_groups: true,
                        limit: distinct_limit,
                        distinct_limit,
                        ..asked
                    },
                    None => asked,
                };
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
        let limit = distinct_limit.filter(|_| !block.distinct);
        let order_known = order.is_some();
        Self { order: order.unwrap_or_default(), leader, order_known, limit, distinct_limit, ..asked }
    }

    fn wish(&self) -> Wish<'_> {
        let Self { may_measure, must, in_key_order, tries, switches, .. } = *self;
        if !self.alone || !self.order_known {
            return Wish { may_measure, must, in_key_order, tries, ..Wish::default() };
        }
        let (order, limit, first_value) = (&*self.order, self.limit, self.first_value);
        let only_in_order = false;
        Wish { order, limit, first_value, may_measure, must, in_key_order, tries, only_in_order, switches }
    }

    /// The first table, if the first rows of a join are wanted in an order of it.
    fn lead_of(&self, ordered: &Ordered) -> Option<Lead<'_>> {
        let [first, _, ..] = &ordered.steps[..] else { return None };
        let helps = self.order_known && !self.of_groups && first.choice.is_some();
        let position = self.leader.filter(|leader| helps && first.position() == *leader)?;
        Some(Lead { position, order: &self.order, limit: self.distinct_limit? })
    }

    /// How the rows of the first table are put in order before they are joined; nothing if that does not help.
    fn lead_order(&self, scope: &Scope, ordered: &Ordered) -> Box<[LeadTerm]> {
        let leader = self.lead_of(ordered).and_then(|lead| scope.tables[lead.position].stored());
        let Some(table) = leader else { return Box::default() };
        let term = |&(column, descending): &(usize, bool)| {
            let collation = table.def.columns[column].ty.order().unwrap_or(Collation::BINARY);
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

/// Where each row of a table is a group, since its primary key is among the keys of GROUP BY, and these and those of ORDER BY are
/// columns of it: that table and the order. Groups are whole one after the other, if its rows are visited in that order.
fn grouped_in_turn(
    query: &BoundQuery,
    block: &plan::Select,
    aggregation: &plan::Aggregation,
    scope: &Scope,
    column_of: &dyn Fn(&Expr) -> Option<(usize, usize)>,
) -> Option<(usize, Vec<(usize, bool)>)> {
    if aggregation.rollup || block.having.is_some() || block.distinct {
        return None;
    }
    let keys: Vec<_> = aggregation.keys.iter().map(|key| column_of(&key.expr)).collect::<Option<_>>()?;
    let leader = keys.first()?.0;
    let primary = scope.tables[leader].stored()?.def.primary_key()?;
    let is_key = |column: usize| keys.contains(&(leader, column));
    let is_whole = |part: &IndexPart| part.prefix_len.is_none() && is_key(part.column);
    if keys.iter().any(|(table, _)| *table != leader) || !primary.parts.iter().all(is_whole) {
        return None;
    }
    if query.body.order_by.is_empty() {
        return Some((leader, primary.parts.iter().map(|part| (part.column, part.descending)).collect()));
    }
    let order = query.body.order_by.iter().map(|key| {
        let item = block.projection.iter().find(|item| item.id == key.column)?;
        let ExprKind::Column(id) = item.expr.kind else { return None };
        let of = aggregation.keys.iter().position(|key| key.id.index() == id)?;
        Some((keys[of].1, key.descending))
    });
    Some((leader, order.collect::<Option<_>>()?))
}

/// Whether a key of groups is in its column as the expression gives it: the same type, or a year, which is kept as a number.
fn stays(key: &SqlType, column: &SqlType) -> bool {
    key == column || matches!((key, column), (SqlType::Year, SqlType::Int { unsigned: true, .. }))
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
            let ids = || keys.iter().map(|key| key.id).chain(aggregates.iter().map(|a| a.id));
            let shown = |at: usize| ids().nth(at).map_or_else(String::new, |id| query.columns[id].shown());
            Ok(RowProgram::compile_named(&expr, &shown)?)
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
                if key.expr.is_volatile() || !stays(&key.expr.ty, &query.columns[key.id].ty) {
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
                in_turn: false,
            })
        })
        .transpose()?;
    let keeps_rows = grouping.is_none() && block.windows.is_empty() && !block.distinct && !query.assigns;
    let mut programs: Vec<RowProgram> = Vec::with_capacity(wanted.len());
    let (mut late, mut carried) = (Vec::new(), Vec::new());
    for (at, expr) in exprs().enumerate() {
        let is_late = at < visible
            && keeps_rows
            && query.body.limit.is_some()
            && !order.is_empty()
            && !order.iter().any(|term| term.program == at)
            && expr.can_fail();
        if !is_late {
            programs.push(compile(expr)?);
            continue;
        }
        programs.push(scope.compile(&Expr::null())?);
        let place = |id: usize, carried: &mut Vec<usize>| {
            let known = carried.iter().position(|of| *of == id);
            known.unwrap_or_else(|| {
                carried.push(id);
                carried.len() - 1
            })
        };
        let moved = expr.clone().map_columns(&mut |id| wanted.len() + place(id, &mut carried));
        late.push((at, moved));
    }
    for id in &carried {
        let ColumnInfo { ty, nullable, .. } = query.columns[ColumnId(*id as u32)];
        programs.push(scope.compile(&Expr::column(*id, ty, nullable))?);
    }
    let shown = |at: usize| {
        let id = at.checked_sub(wanted.len()).and_then(|at| carried.get(at));
        id.map_or_else(String::new, |id| query.columns[ColumnId(*id as u32)].shown())
    };
    let late = late.into_iter().map(|(at, expr)| Ok((at, RowProgram::compile_named(&expr, &shown)?)));
    let late = late.collect::<Result<_, Refusal>>()?;
    Ok(Output {
        programs: programs.into(),
        visible,
        late,
        distinct: block.distinct && !is_one_row,
        order: order.into(),
        presorted: 0,
        aggregation,
        windows,
    })
}
