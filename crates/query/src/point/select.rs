//! Compiling queries: one block over stored tables.

use std::sync::Arc;

use avocet_engine::{Catalog, RowLock};
use avocet_types::expr::{Expr, ExprKind, RowProgram};
use avocet_types::{Collation, Datum, SqlType};

use super::aggregate::AggregatePlan;
use super::choose::{Access, Choice, Wish, choose};
use super::scope::Scope;
use super::{Kind, NotPoint, PointPlan, Refusal, Table};
use crate::plan::{self, BoundQuery, ColumnId, From, JoinKind, QueryBody, QueryExpr};
use crate::session::api::OutputColumn;

/// Joins of so many rows are for the analytical path.
const MANY_ROWS: f64 = 20_000.0;
/// A LIMIT that is a parameter is taken to be so large.
const LIKELY_LIMIT: u64 = 100;

/// A compiled query.
#[derive(Debug)]
pub struct Select {
    /// Tables in the order in which they are visited, each for every row of those before.
    pub levels: Box<[Level]>,
    pub slots: Arc<[(u8, u16)]>,
    /// Whether rows of some table are locked.
    pub locks: bool,
    /// The first row found is all that matters.
    pub first_only: bool,
    pub output: Output,
    pub limit: Option<RowProgram>,
    pub offset: Option<RowProgram>,
}

/// A table of a query.
#[derive(Debug)]
pub struct Level {
    pub table: Table,
    /// Its number in the scope.
    pub position: usize,
    pub access: Access,
    /// Of the table to the right of a left join: ON, as far as the keys do not guarantee it.
    pub on: Option<RowProgram>,
    /// Where no row is found, one of NULLs takes its place.
    pub outer: bool,
    pub residual: Option<RowProgram>,
    /// How its rows are locked.
    pub lock: Option<RowLock>,
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
    pub aggregation: Option<Aggregation>,
}

#[derive(Debug)]
pub struct SortTerm {
    pub program: usize,
    pub descending: bool,
    pub collation: Collation,
}

/// The output's programs are then over the keys followed by the aggregates.
#[derive(Debug)]
pub struct Aggregation {
    pub keys: Box<[RowProgram]>,
    pub aggregates: Box<[AggregatePlan]>,
    pub having: Option<RowProgram>,
}

impl Select {
    /// The tables in the order of visits, each with its index.
    pub fn describe(&self) -> String {
        let level = |level: &Level| {
            let access = level.access.describe(&level.table);
            if level.outer { format!("left join {access}") } else { access }
        };
        let levels: Vec<_> = self.levels.iter().map(level).collect();
        if levels.is_empty() { "no tables".to_owned() } else { levels.join(", then ") }
    }
}

/// Compiles a query. `columns` is what the client is told of its outputs.
pub fn compile_query(
    query: &BoundQuery,
    columns: Arc<[OutputColumn]>,
    catalog: &Catalog,
) -> Result<PointPlan, Refusal> {
    let block = plain_block(query)?;
    let mut scope = Scope::new();
    let mut joins = Joins::default();
    flatten(&block.from, catalog, &mut scope, &mut joins)?;
    if let Some(filter) = &block.filter {
        joins.conjuncts.extend(filter.clone().fold().into_conjuncts());
    }
    if query.locks && query.body.limit.is_some() && scope.tables.len() > 1 {
        // All rows of a table are met before those of the next.
        return Err(NotPoint::because("a LIMIT of rows of several tables that are locked").into());
    }
    let asked = Asked::of(query, block, &scope, query.locks);
    let ordered = order_tables(&scope, &joins, &asked)?;
    let conjuncts = &joins.conjuncts;
    let single = if let [(_, choice)] = &ordered[..] { Some(choice) } else { None };
    let in_order = single.is_some_and(|c| c.gives_order) && asked.order_known;
    let served_all = single.is_some_and(|c| c.served.len() == conjuncts.len());
    let first_only =
        asked.first_value && served_all && single.is_some_and(|c| c.first_value && c.gives_order);
    let levels = make_levels(&scope, &joins, ordered)?;
    let output = compile_output(query, block, &scope, in_order)?;
    let constant = |expr: &Expr| scope.compile(expr);
    let limit = query.body.limit.as_ref();
    let select = Select {
        slots: scope.slots.clone(),
        locks: query.locks,
        first_only,
        output,
        limit: limit.map(|l| constant(&l.count)).transpose()?,
        offset: limit.and_then(|l| l.offset.as_ref()).map(constant).transpose()?,
        levels,
    };
    let tables = scope.tables.iter().map(|t| Table(t.handle.clone())).collect();
    let params = query.params.clone();
    Ok(PointPlan {
        kind: Kind::Select(select),
        tables,
        params,
        columns: columns.into(),
        dates: scope.dates(),
    })
}

/// The query's only block, if it is one that the point path can take.
fn plain_block(query: &BoundQuery) -> Result<&plan::Select, NotPoint> {
    let refuse = |reason| Err(NotPoint::because(reason));
    let QueryExpr { ctes, body, .. } = &query.body;
    let QueryBody::Select(block) = body else { return refuse("not a single SELECT") };
    if !ctes.is_empty() {
        return refuse("common table expressions");
    }
    if !block.windows.is_empty() {
        return refuse("window functions");
    }
    if !block.subqueries.is_empty() {
        return refuse("subqueries");
    }
    if query.calc_found_rows {
        return refuse("SQL_CALC_FOUND_ROWS");
    }
    if block.aggregation.as_ref().is_some_and(|a| a.rollup) {
        return refuse("WITH ROLLUP");
    }
    Ok(block)
}

/// How a block joins its tables.
#[derive(Default)]
struct Joins {
    /// What holds for every row: WHERE, and ON of inner joins.
    conjuncts: Vec<Expr>,
    /// By table: ON, if it stands to the right of a left join.
    outer: Vec<Option<Vec<Expr>>>,
}

impl Joins {
    /// Whether a table can be visited when the rows of `bound` tables are known.
    fn is_ready(&self, scope: &Scope, table: usize, bound: u32) -> bool {
        match &self.outer[table] {
            Some(on) => bound != 0 && on.iter().all(|test| scope.uses_only(test, bound | 1 << table)),
            None => true,
        }
    }

    /// The conditions by which a table's rows are looked up.
    fn conditions_of(&self, table: usize) -> &[Expr] {
        self.outer[table].as_deref().unwrap_or(&self.conjuncts)
    }
}

fn flatten(from: &From, catalog: &Catalog, scope: &mut Scope, joins: &mut Joins) -> Result<(), NotPoint> {
    match from {
        From::Dual => Ok(()),
        From::Table(scan) => {
            let handle = catalog.table_by_id(scan.table.id);
            let handle = handle.ok_or_else(|| NotPoint::because("not a stored table"))?;
            let columns = scan.columns.iter().map(|(column, id)| (*column, id.index()));
            joins.outer.push(None);
            scope.add(handle.clone(), scan.alias.clone(), columns, scan.lock)
        }
        From::Join(join) => {
            flatten(&join.left, catalog, scope, joins)?;
            let right = scope.tables.len();
            flatten(&join.right, catalog, scope, joins)?;
            let on: Vec<_> = join.on.iter().flat_map(|on| on.clone().fold().into_conjuncts()).collect();
            match join.kind {
                JoinKind::Inner => joins.conjuncts.extend(on),
                JoinKind::Left if matches!(join.right, From::Table(_)) => joins.outer[right] = Some(on),
                JoinKind::Left => return Err(NotPoint::because("an outer join of several tables")),
            }
            Ok(())
        }
        From::Derived(_) => Err(NotPoint::because("a derived table")),
        From::Cte(_) => Err(NotPoint::because("a common table expression")),
    }
}

/// What the statement asks of the first table.
struct Asked {
    order: Vec<(usize, bool)>,
    /// Whether `order` is all of the wanted order.
    order_known: bool,
    limit: Option<u64>,
    first_value: bool,
    must: bool,
}

impl Asked {
    fn of(query: &BoundQuery, block: &plan::Select, scope: &Scope, must: bool) -> Self {
        let column_of = |expr: &Expr| match expr.kind {
            ExprKind::Column(id) => scope.place(id).map(|(_, column)| column),
            _ => None,
        };
        if let Some(aggregation) = &block.aggregation {
            if !aggregation.keys.is_empty() {
                return Self { order: Vec::new(), order_known: false, limit: None, first_value: false, must };
            }
            let extreme = match &aggregation.aggregates[..] {
                [one] if one.function == plan::AggregateFunction::Min => Some((one, false)),
                [one] if one.function == plan::AggregateFunction::Max => Some((one, true)),
                _ => None,
            };
            let order =
                extreme.and_then(|(one, descending)| Some((column_of(one.args.first()?)?, descending)));
            let first_value = order.is_some() && scope.tables.len() == 1;
            let limit = first_value.then_some(1);
            return Self { order: order.into_iter().collect(), order_known: true, limit, first_value, must };
        }
        let projected = |id: ColumnId| block.projection.iter().find(|p| p.id == id);
        let keys = query.body.order_by.iter();
        let order: Option<Vec<_>> =
            keys.map(|key| Some((column_of(&projected(key.column)?.expr)?, key.descending))).collect();
        let count = |expr: &Expr| match expr.as_literal() {
            Some(Datum::UInt(n)) => *n,
            Some(Datum::Int(n)) => (*n).max(0) as u64,
            _ => LIKELY_LIMIT,
        };
        let limit = query.body.limit.as_ref().filter(|_| !block.distinct);
        let limit = limit.map(|l| count(&l.count).saturating_add(l.offset.as_ref().map_or(0, count)));
        let order_known = order.is_some();
        Self { order: order.unwrap_or_default(), order_known, limit, first_value: false, must }
    }

    fn wish(&self, scope: &Scope) -> Wish<'_> {
        if scope.tables.len() != 1 || !self.order_known {
            return Wish { must: self.must, ..Wish::default() };
        }
        Wish { order: &self.order, limit: self.limit, first_value: self.first_value, must: self.must }
    }
}

/// The cheapest order of tables with the access to each.
fn order_tables(scope: &Scope, joins: &Joins, asked: &Asked) -> Result<Vec<(usize, Choice)>, Refusal> {
    let count = scope.tables.len();
    let all = (1u32 << count) - 1;
    let mut best: Option<(f64, Vec<(usize, Choice)>)> = None;
    // Every table may be the first; the rest follows by what is found with the fewest rows.
    for first in 0..count {
        let mut bound = 0;
        let (mut rows, mut cost) = (1.0, 0.0);
        let mut placed = Vec::with_capacity(count);
        while bound != all {
            let candidates = (0..count).filter(|t| bound & (1 << t) == 0 && (bound != 0 || *t == first));
            let mut next: Option<(usize, Choice)> = None;
            for table in candidates.filter(|table| joins.is_ready(scope, *table, bound)) {
                let conditions = joins.conditions_of(table);
                if let Some(choice) = choose(scope, table, bound, conditions, &asked.wish(scope))?
                    && next.as_ref().is_none_or(|(_, best)| choice.estimate < best.estimate)
                {
                    next = Some((table, choice));
                }
            }
            let Some((table, choice)) = next else { break };
            rows *= choice.estimate.max(1.0);
            cost += rows;
            bound |= 1 << table;
            placed.push((table, choice));
        }
        if bound == all && best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, placed));
        }
    }
    match best {
        Some((cost, placed)) if count == 1 || cost <= MANY_ROWS * count as f64 => Ok(placed),
        Some(_) => Err(NotPoint::because("the join would visit many rows").into()),
        None if count == 0 => Ok(Vec::new()),
        None => Err(NotPoint::because("no index leads to few rows").into()),
    }
}

/// Gives each condition to the first table at which it can be tested, unless the keys guarantee it.
fn make_levels(scope: &Scope, joins: &Joins, ordered: Vec<(usize, Choice)>) -> Result<Box<[Level]>, Refusal> {
    let compile_all = |tests: Vec<Expr>| conjunction(tests).map(|test| scope.compile(&test)).transpose();
    let mut open: Vec<usize> = (0..joins.conjuncts.len()).collect();
    let mut bound = 0;
    let mut levels = Vec::with_capacity(ordered.len());
    for (position, choice) in ordered {
        bound |= 1 << position;
        let (here, later): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|&at| scope.uses_only(&joins.conjuncts[at], bound));
        open = later;
        let is_served = |at: &usize| choice.served.contains(at);
        let on = joins.outer[position].as_ref();
        let is_open = |at: &usize| on.is_some() || !is_served(at);
        let tests = here.into_iter().filter(is_open).map(|at| joins.conjuncts[at].clone()).collect();
        let residual = compile_all(tests)?;
        let on = on.map_or(Ok(None), |on| {
            let open = (0..on.len()).filter(|at| !is_served(at));
            compile_all(open.map(|at| on[at].clone()).collect())
        })?;
        let outer = joins.outer[position].is_some();
        let table = Table(scope.tables[position].handle.clone());
        let lock = scope.tables[position].lock;
        levels.push(Level { table, position, access: choice.access, on, outer, residual, lock });
    }
    if !open.is_empty() {
        return Err(NotPoint::because("a condition on something that is no table's column").into());
    }
    Ok(levels.into())
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
    let compile = |expr: &Expr| match grouping {
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
            let collation = block.projection[at].expr.ty.collation().unwrap_or(Collation::BINARY);
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
            let plan = |a: &plan::Aggregate| AggregatePlan::compile(scope, a, query.columns[a.id].ty);
            Ok::<_, Refusal>(Aggregation {
                keys: aggregation.keys.iter().map(key).collect::<Result<_, _>>()?,
                aggregates: aggregation.aggregates.iter().map(plan).collect::<Result<_, _>>()?,
                having: block.having.as_ref().map(&compile).transpose()?,
            })
        })
        .transpose()?;
    Ok(Output {
        programs: exprs().map(compile).collect::<Result<_, _>>()?,
        visible,
        distinct: block.distinct && !is_one_row,
        order: order.into(),
        aggregation,
    })
}
