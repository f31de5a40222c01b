//! Compiling subqueries, derived tables and common table expressions.

use std::collections::BTreeSet;

use avocet_sql::parse::ast::SetOperator;
use avocet_sql::plan::walk::{
    for_each_expr_mut, for_each_scan_mut, is_volatile, subquery_depth, substitute_outer,
};
use avocet_sql::plan::{
    BoundQuery, ColumnId, ColumnInfo, Comparison, Cte, CteBody, Derived, From, JsonTable, Limit, Projected,
    QueryBody, QueryExpr, SetOperation, TableScan, Values,
};
use avocet_sql::ranges::conjunction;
use avocet_types::expr::{Expr, Typer};
use avocet_types::{Collation, Datum, SqlType};

use super::{MOST_VALUES, Nesting, compile_block};
use crate::joins::equals;
use crate::known::Known;
use crate::scope::{ReadAs, Scope};
use crate::subplan::{JsonRows, Kind, Recursion, SetStep, SubPlan};
use crate::{NotPoint, Refusal, Table};

/// What is wanted of a subquery.
#[derive(Clone, Copy)]
pub enum Answer<'q> {
    /// All its rows.
    Rows,
    DistinctRows,
    /// The one value; NULL for no row, error 1242 for several.
    Scalar,
    Exists {
        negated: bool,
    },
    /// Whether one of its rows equals these, NULL being as good as not.
    Found {
        needles: &'q [Expr],
    },
    /// The same, three-valued.
    In {
        needles: &'q [Expr],
        negated: bool,
    },
    /// `left op ANY|ALL`, three-valued.
    Quantified {
        left: &'q Expr,
        op: Comparison,
        all: bool,
    },
}

impl Answer<'_> {
    /// Whether it is one value.
    pub fn is_value(self) -> bool {
        !matches!(self, Self::Rows | Self::DistinctRows)
    }

    /// What of the enclosing block it compares with the rows.
    fn needles(&self) -> &[Expr] {
        match self {
            Self::Found { needles } | Self::In { needles, .. } => needles,
            Self::Quantified { left, .. } => std::slice::from_ref(left),
            _ => &[],
        }
    }
}

pub struct Compiled {
    pub plan: SubPlan,
    /// The enclosing block's tables that must be known, a bit each.
    pub needs: u32,
    pub tables: Vec<Table>,
    pub dates: Box<[(usize, ReadAs)]>,
    pub cost: f64,
    pub rows: f64,
}

/// How often the step is taken to run.
const LIKELY_ROUNDS: f64 = 10.0;

/// The rows that a table of the caller's is taken to have.
const LIKELY_GIVEN: f64 = 100.0;

/// So many subqueries may stand within one another: a run has some frames on the stack for each.
const MOST_WITHIN: usize = 16;

/// What a JSON_TABLE is taken to give for a document.
const LIKELY_IN_DOCUMENT: f64 = 10.0;

/// The rows of a JSON_TABLE, whose document depends on the tables before it.
fn compile_json_table(
    query: &QueryExpr,
    table: &JsonTable,
    parent: &BoundQuery,
    scope: &Scope,
) -> Result<Compiled, Refusal> {
    let JsonTable { document, level, columns } = table;
    if document.is_volatile() {
        return Err(NotPoint::because("a document that differs from call to call").into());
    }
    let needs =
        scope.tables_of(document).ok_or_else(|| NotPoint::because("a document of what is grouped"))?;
    let column =
        |id: &ColumnId| Expr::column(id.index(), parent.columns[*id].ty, parent.columns[*id].nullable);
    let uses: BTreeSet<ColumnId> = document.columns().iter().map(|id| ColumnId(*id as u32)).collect();
    let outer = uses.iter().map(|id| scope.compile(&column(id))).collect::<Result<_, _>>()?;
    let place = |id: &ColumnId| columns.iter().position(|column| column == id);
    let places: Option<Box<[usize]>> = query.outputs.iter().map(place).collect();
    let rows = JsonRows {
        document: scope.compile(document)?,
        level: level.clone(),
        places: places
            .ok_or_else(|| NotPoint::because("an output that is no column of the document's rows"))?,
    };
    let width = query.outputs.len();
    let plan = SubPlan { outer, ..SubPlan::of_kind(Kind::JsonTable(rows), parent.params.len(), width) };
    let (cost, rows) = (LIKELY_IN_DOCUMENT, LIKELY_IN_DOCUMENT);
    Ok(Compiled { plan, needs, tables: Vec::new(), dates: Box::default(), cost, rows })
}

/// Compiles a subquery of `parent`, whose tables `scope` has; `outer` are the columns of `parent` that it uses.
pub fn compile_subplan(
    query: &QueryExpr,
    outer: &[ColumnId],
    answer: Answer<'_>,
    parent: &BoundQuery,
    known: &Known<'_>,
    scope: &Scope,
) -> Result<Compiled, Refusal> {
    if subquery_depth(query) > MOST_WITHIN {
        return Err(NotPoint::because("subqueries that are nested deeply").into());
    }
    known.count_subquery()?;
    if let (QueryBody::JsonTable(table), Answer::Rows) = (&query.body, &answer)
        && is_plain(query)
    {
        return compile_json_table(query, table, parent, scope);
    }
    let mut outer = outer.to_vec();
    let mut body = query.clone();
    let needles = answer.needles();
    if matches!(answer, Answer::Found { .. }) {
        look_for(needles, &mut body, parent)?;
        outer.extend(needles.iter().flat_map(Expr::columns).map(|id| ColumnId(id as u32)));
        outer.sort_unstable();
        outer.dedup();
    }
    let first = parent.params.len();
    let types = outer.iter().map(|id| parent.columns[*id].ty);
    let params: Vec<SqlType> = parent.params.iter().copied().chain(types).collect();
    substitute_outer(&mut body, &|id| {
        let at = outer.iter().position(|of| *of == id)?;
        Some(Expr::param(first + at, params[first + at]))
    });
    if body.limit.is_none() {
        body.limit = match answer {
            Answer::Exists { .. } | Answer::Found { .. } => Some(at_most(1)),
            Answer::Scalar => Some(at_most(2)),
            _ => None,
        };
    }
    let mut locks = false;
    for_each_scan_mut(&mut body, &mut |scan| locks |= scan.lock.is_some());
    let width = body.outputs.len();
    let collations: Box<[Collation]> =
        body.outputs.iter().map(|id| parent.columns[*id].ty.order().unwrap_or(Collation::BINARY)).collect();
    let varies = answer.is_value() && (uses_assigned(&body) || is_volatile(&body));
    let mut parts = Vec::new();
    split(body, answer, parent, &mut parts);
    let steps: Box<[SetStep]> = parts.iter().map(|(step, _)| *step).collect();
    let unions = steps.iter().all(|step| step.op == SetOperator::Union);
    // Up to the last union of which no row is there twice; other operations look at the rows as they are.
    let unique = steps.iter().rposition(|step| unions && !step.all).map_or(0, |last| last + 1);
    if locks && parts.len() > 1 {
        return Err(NotPoint::because("a set operation whose rows are locked").into());
    }
    let mut selects = Vec::with_capacity(parts.len());
    let (mut tables, mut dates) = (Vec::new(), Vec::new());
    let (mut cost, mut rows) = (0.0, 0.0);
    let mut bound = BoundQuery {
        body: parts[0].1.clone(),
        columns: parent.columns.clone(),
        params,
        locks,
        session_dependent: false,
        assigns: parent.assigns,
        views: std::sync::Arc::default(),
        calc_found_rows: false,
        likely_counts: Box::default(),
    };
    for (_, part) in parts {
        bound.body = part;
        let block = compile_block(&bound, known, Nesting::Subquery)?;
        selects.push(block.select);
        tables.extend(block.tables);
        dates.extend(block.dates);
        cost += block.cost;
        rows += block.rows;
    }
    let uses: Vec<Expr> = outer
        .iter()
        .map(|id| Expr::column(id.index(), parent.columns[*id].ty, parent.columns[*id].nullable))
        .collect();
    let mut needs = 0;
    for expr in uses.iter().chain(needles) {
        let tables = scope.tables_of(expr);
        needs |= tables.ok_or_else(|| NotPoint::because("a subquery of what is grouped"))?;
    }
    let kind = match answer {
        Answer::Rows => Kind::Rows { distinct: unique, unique: false, collations },
        Answer::DistinctRows => {
            Kind::Rows { distinct: if unions { selects.len() } else { 0 }, unique: !unions, collations }
        }
        Answer::Scalar => Kind::Scalar,
        Answer::Exists { negated } => Kind::Exists { negated },
        Answer::Found { .. } => Kind::Exists { negated: false },
        Answer::In { needles: [needle], negated } => {
            Kind::In { needle: scope.compile(needle)?, collation: collations[0], negated }
        }
        Answer::In { .. } => return Err(NotPoint::because("rows IN a subquery").into()),
        Answer::Quantified { left, op, all } => {
            Kind::Quantified { needle: scope.compile(left)?, collation: collations[0], op, all }
        }
    };
    let outer = uses.iter().map(|expr| scope.compile(expr)).collect::<Result<_, _>>()?;
    Ok(Compiled {
        plan: SubPlan { selects: selects.into(), steps, params: first, outer, width, kind, varies },
        needs,
        tables,
        dates: dates.into(),
        cost,
        rows,
    })
}

/// The rows of a table that the caller has.
pub fn compile_given(scan: &TableScan, parent: &BoundQuery) -> Compiled {
    Compiled {
        plan: SubPlan::of_kind(Kind::Given(scan.table.id), parent.params.len(), scan.table.columns.len()),
        needs: 0,
        tables: Vec::new(),
        dates: Box::default(),
        cost: 1.0,
        rows: LIKELY_GIVEN,
    }
}

/// Makes a subquery give only the rows that equal the needles.
fn look_for(needles: &[Expr], query: &mut QueryExpr, parent: &BoundQuery) -> Result<(), NotPoint> {
    let refusal = || NotPoint::because("IN a subquery that groups, or that has a LIMIT");
    let QueryBody::Select(block) = &mut query.body else { return Err(refusal()) };
    if block.aggregation.is_some() || !block.windows.is_empty() || query.limit.is_some() {
        return Err(refusal());
    }
    let mut tests: Vec<Expr> = block.filter.take().into_iter().flat_map(Expr::into_conjuncts).collect();
    for (needle, output) in needles.iter().zip(&query.outputs) {
        let projected = block.projection.iter().find(|item| item.id == *output);
        let projected = projected.map_or_else(
            || Expr::column(output.index(), parent.columns[*output].ty, true),
            |item| item.expr.clone(),
        );
        tests.push(equals(projected, needle.clone()));
    }
    block.filter = conjunction(tests);
    Ok(())
}

/// The selects of set operations, one after the other, each with its operation; all else is one part.
fn split(query: QueryExpr, answer: Answer<'_>, parent: &BoundQuery, parts: &mut Vec<(SetStep, QueryExpr)>) {
    let is_plain = is_plain(&query);
    match query.body {
        // What is more than rows that come one after the other is done with rows that were gathered.
        QueryBody::SetOperation(set)
            if is_plain
                && query.outputs == set.columns
                && (set.op == SetOperator::Union || !answer.is_value()) =>
        {
            let SetOperation { op, all, left, right, columns } = *set;
            split(of_columns(left, &columns, parent), answer, parent, parts);
            parts.push((SetStep { op, all }, of_columns(right, &columns, parent)));
        }
        QueryBody::Values(values) if is_plain && values.rows.len() <= MOST_VALUES => {
            let Values { rows, columns } = values;
            parts.extend(rows.into_iter().map(|row| {
                let items = columns.iter().zip(row).map(|(id, expr)| Projected { id: *id, expr });
                let select = avocet_sql::plan::Select::plain(From::Dual, items.collect());
                let body = QueryBody::Select(Box::new(select));
                let (ctes, order_by) = (Vec::new(), Vec::new());
                let row = QueryExpr { ctes, body, order_by, limit: None, outputs: query.outputs.clone() };
                (SetStep::UNION_ALL, row)
            }));
        }
        body => parts.push((SetStep::UNION_ALL, QueryExpr { body, ..query })),
    }
}

/// A side of a set operation, with values as the operation's columns have them.
fn of_columns(side: QueryExpr, columns: &[ColumnId], parent: &BoundQuery) -> QueryExpr {
    let info = |id: &ColumnId| &parent.columns[*id];
    let mut pairs = side.outputs.iter().zip(columns);
    if pairs.all(|(from, to)| info(from).ty.arrow_type() == info(to).ty.arrow_type()) {
        return side;
    }
    let converted = |(from, to): (&ColumnId, &ColumnId)| {
        let ColumnInfo { ty, nullable, .. } = *info(from);
        let expr = Typer::default().convert(Expr::column(from.index(), ty, nullable), info(to).ty);
        Projected { id: *to, expr }
    };
    let projection = side.outputs.iter().zip(columns).map(converted).collect();
    let from = From::Derived(Derived { query: side, alias: "".into(), outer: Vec::new(), view: None });
    let body = QueryBody::Select(Box::new(avocet_sql::plan::Select::plain(from, projection)));
    QueryExpr { ctes: Vec::new(), body, order_by: Vec::new(), limit: None, outputs: columns.to_vec() }
}

/// Whether user variables that the statement assigns to are used in it.
fn uses_assigned(query: &QueryExpr) -> bool {
    let mut found = false;
    for_each_expr_mut(&mut query.clone(), &mut |expr| found |= expr.uses_assigned());
    found
}

/// Whether there is nothing around its body.
fn is_plain(query: &QueryExpr) -> bool {
    query.order_by.is_empty() && query.limit.is_none() && query.ctes.is_empty()
}

fn at_most(rows: u64) -> Limit {
    Limit { count: Expr::literal(Datum::UInt(rows), SqlType::BIGINT_UNSIGNED), offset: None }
}

/// Compiles a reference to a recursive common table expression from outside of it.
pub fn compile_recursion(
    cte: &Cte,
    parent: &BoundQuery,
    known: &Known<'_>,
    scope: &Scope,
) -> Result<Compiled, Refusal> {
    let CteBody::Recursive { seed, step, distinct, limit } = &cte.body else {
        return Err(NotPoint::because("a common table expression without a step").into());
    };
    let within = known.within(cte);
    let compile = |query: &QueryExpr, known: &Known<'_>| {
        let query = of_columns(query.clone(), &cte.columns, parent);
        compile_subplan(&query, &[], Answer::Rows, parent, known, scope)
    };
    let mut first = compile(seed, known)?;
    let next = compile(step, &within)?;
    first.tables.extend(next.tables);
    let dates = first.dates.iter().chain(&next.dates).copied().collect();
    let program = |limit: &Limit| {
        let offset = limit.offset.as_ref().map(|offset| scope.compile(offset)).transpose()?;
        Ok::<_, Refusal>((scope.compile(&limit.count)?, offset))
    };
    let (limit, offset) = limit.as_ref().map(program).transpose()?.unzip();
    let collation = |id: &ColumnId| parent.columns[*id].ty.order().unwrap_or(Collation::BINARY);
    let recursion = Recursion {
        cte: cte.id,
        seed: Box::new(first.plan),
        step: Box::new(next.plan),
        distinct: *distinct,
        collations: cte.columns.iter().map(collation).collect(),
        limit,
        offset: offset.flatten(),
    };
    Ok(Compiled {
        plan: SubPlan::of_kind(Kind::Recursion(recursion), parent.params.len(), cte.columns.len()),
        needs: 0,
        tables: first.tables,
        dates,
        cost: first.cost + LIKELY_ROUNDS * next.cost,
        rows: first.rows.max(1.0) * LIKELY_ROUNDS,
    })
}

/// A reference to the rows of the round before, in the step.
pub fn compile_work_table(cte: &Cte, parent: &BoundQuery) -> Compiled {
    Compiled {
        plan: SubPlan::of_kind(Kind::WorkTable(cte.id), parent.params.len(), cte.columns.len()),
        needs: 0,
        tables: Vec::new(),
        dates: Box::default(),
        cost: 1.0,
        rows: 1.0,
    }
}
