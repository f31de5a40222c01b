//! Subqueries and derived tables of a point plan: blocks of their own, whose rows stand for a table's.
//!
//! What a subquery uses of the enclosing block it gets as parameters after the statement's. One that uses nothing runs once
//! for each run of the enclosing block.

use std::collections::HashSet;

use arrow::record_batch::RecordBatch;
use avocet_engine::{Catalog, Txn};
use avocet_types::expr::program::reborrow;
use avocet_types::expr::{Expr, RowProgram};
use avocet_types::temporal::TimeZone;
use avocet_types::{Collation, Datum, SqlType, Value};

use super::aggregate::value_key;
use super::bounds::{Bounds, KEY_BYTES, bytes_of};
use super::joins::equals;
use super::scope::{JoinedRow, ReadAs, Scope};
use super::select::{Block, Nesting, Select, compile_block};
use super::{NotPoint, PointScratch, Refusal, Run, Table};
use crate::bind::walk::{for_each_scan_mut, substitute_outer};
use crate::error::{ErrorCode, SqlError};
use crate::plan::{BoundQuery, ColumnId, Limit, QueryBody, QueryExpr};
use crate::session::api::{OkReply, OutputColumn, ResultSink, SinkError, Status};

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
}

impl Answer<'_> {
    /// Whether it is one value.
    pub fn is_value(self) -> bool {
        !matches!(self, Self::Rows | Self::DistinctRows)
    }
}

/// A subquery, compiled.
#[derive(Debug)]
pub struct SubPlan {
    pub select: Select,
    /// How many parameters the enclosing block has.
    params: usize,
    /// What it uses of the enclosing block's row.
    outer: Box<[RowProgram]>,
    /// How many columns its rows have.
    width: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Rows,
    DistinctRows(Box<[Collation]>),
    Scalar,
    Exists { negated: bool },
    In { needle: RowProgram, collation: Collation, negated: bool },
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

/// Compiles a subquery of `parent`, whose tables `scope` has; `outer` are the columns of `parent` that it uses.
pub fn compile_subplan(
    query: &QueryExpr,
    outer: &[ColumnId],
    answer: Answer<'_>,
    parent: &BoundQuery,
    catalog: &Catalog,
    scope: &Scope,
) -> Result<Compiled, Refusal> {
    let mut outer = outer.to_vec();
    let mut body = query.clone();
    let needles = match answer {
        Answer::Found { needles } | Answer::In { needles, .. } => needles,
        _ => &[],
    };
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
    let collations: Box<[Collation]> = body
        .outputs
        .iter()
        .map(|id| parent.columns[*id].ty.collation().unwrap_or(Collation::BINARY))
        .collect();
    let bound = BoundQuery {
        body,
        columns: parent.columns.clone(),
        params,
        locks,
        session_dependent: false,
        calc_found_rows: false,
    };
    let Block { select, tables, dates, cost, rows } = compile_block(&bound, catalog, Nesting::Subquery)?;
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
        Answer::Rows => Kind::Rows,
        Answer::DistinctRows => Kind::DistinctRows(collations),
        Answer::Scalar => Kind::Scalar,
        Answer::Exists { negated } => Kind::Exists { negated },
        Answer::Found { .. } => Kind::Exists { negated: false },
        Answer::In { needles: [needle], negated } => {
            Kind::In { needle: scope.compile(needle)?, collation: collations[0], negated }
        }
        Answer::In { .. } => return Err(NotPoint::because("rows IN a subquery").into()),
    };
    let outer = uses.iter().map(|expr| scope.compile(expr)).collect::<Result<_, _>>()?;
    Ok(Compiled {
        plan: SubPlan { select, params: first, outer, width, kind },
        needs,
        tables,
        dates,
        cost,
        rows,
    })
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
    block.filter = super::select::conjunction(tests);
    Ok(())
}

fn at_most(rows: u64) -> Limit {
    Limit { count: Expr::literal(Datum::UInt(rows), SqlType::BIGINT_UNSIGNED), offset: None }
}

/// Memory of a subquery, and its rows.
#[derive(Default)]
pub struct SubScratch {
    inner: PointScratch,
    /// The values of all rows, one after the other.
    values: Vec<Value>,
    /// The rows' own count: they may have no columns.
    rows: usize,
    /// Keys of the rows, if they are looked up or must differ.
    keys: HashSet<Box<[u8]>, foldhash::fast::RandomState>,
    has_null: bool,
    /// What it gives is there, and the same for all rows of the enclosing block.
    is_known: bool,
    key: Vec<u8>,
    /// Of `values` and `keys`, in bytes.
    held: usize,
}

impl SubScratch {
    /// The enclosing block begins anew.
    pub fn forget(&mut self) {
        self.is_known = false;
    }

    /// Nothing is held any more.
    pub fn forget_all(&mut self) {
        self.clear();
        self.is_known = false;
        self.inner.forget();
    }

    fn clear(&mut self) {
        self.values.clear();
        self.keys.clear();
        (self.rows, self.has_null, self.held) = (0, false, 0);
    }
}

impl SubPlan {
    /// Runs the subquery for a row of the enclosing block; returns how many rows it gives, which `row` shows.
    pub fn run(
        &self,
        row: &JoinedRow<'_>,
        txn: &mut Txn,
        run: Run<'_>,
        scratch: &mut SubScratch,
    ) -> Result<usize, SqlError> {
        if !scratch.is_known {
            self.gather(row, txn, run, scratch)?;
            scratch.is_known = self.outer.is_empty();
        }
        if let Kind::In { needle, collation, negated } = &self.kind {
            let needle = needle.eval(row, run.params, run.ctx)?;
            let found = scratch.contains(&needle, *collation);
            let value = found.map_or(Datum::Null, |found| Datum::Int(i64::from(found != *negated)));
            scratch.values.clear();
            scratch.values.push(value);
            return Ok(1);
        }
        Ok(scratch.rows)
    }

    /// A row that the subquery gave.
    pub fn row<'s>(&self, scratch: &'s SubScratch, at: usize) -> &'s [Value] {
        let width = match self.kind {
            Kind::Rows | Kind::DistinctRows(_) => self.width,
            _ => 1,
        };
        &scratch.values[at * width..(at + 1) * width]
    }

    fn gather(
        &self,
        row: &JoinedRow<'_>,
        txn: &mut Txn,
        run @ Run { params, ctx, bounds }: Run<'_>,
        scratch: &mut SubScratch,
    ) -> Result<(), SqlError> {
        let mut own: Vec<Datum<'_>> = Vec::with_capacity(params.len() + self.outer.len());
        own.extend(params[..self.params].iter().map(reborrow));
        for program in &self.outer {
            own.push(program.eval(row, params, ctx)?);
        }
        bounds.let_go(scratch.held);
        scratch.clear();
        let SubScratch { inner, values, rows, keys, has_null, key, held, .. } = scratch;
        let mut sink = Gather { kind: &self.kind, values, rows, keys, has_null, key, held, bounds };
        self.select.run_here(None, txn, Run { params: &own, ..run }, inner, &mut sink)?;
        match &self.kind {
            Kind::Rows | Kind::DistinctRows(_) | Kind::In { .. } => {}
            Kind::Scalar => match scratch.rows {
                0 => scratch.values.push(Datum::Null),
                1 => {}
                _ => return Err(ErrorCode::SUBQUERY_NO_1_ROW.with(&[])),
            },
            Kind::Exists { negated } => {
                let exists = (scratch.rows > 0) != *negated;
                scratch.values.clear();
                scratch.values.push(Datum::Int(i64::from(exists)));
            }
        }
        if !matches!(self.kind, Kind::Rows | Kind::DistinctRows(_)) {
            scratch.rows = 1;
        }
        Ok(())
    }
}

impl SubScratch {
    /// Three-valued membership.
    fn contains(&mut self, needle: &Datum<'_>, collation: Collation) -> Option<bool> {
        if self.keys.is_empty() && !self.has_null {
            return Some(false);
        }
        if needle.is_null() {
            return None;
        }
        self.key.clear();
        value_key(needle, collation, &mut self.key);
        match self.keys.contains(&self.key[..]) {
            true => Some(true),
            false if self.has_null => None,
            false => Some(false),
        }
    }
}

/// Takes the rows of a subquery.
struct Gather<'g> {
    kind: &'g Kind,
    values: &'g mut Vec<Value>,
    rows: &'g mut usize,
    keys: &'g mut HashSet<Box<[u8]>, foldhash::fast::RandomState>,
    has_null: &'g mut bool,
    key: &'g mut Vec<u8>,
    held: &'g mut usize,
    bounds: &'g Bounds<'g>,
}

impl Gather<'_> {
    /// Keeps the key if it is new.
    fn insert_key(&mut self) -> bool {
        if self.keys.contains(&self.key[..]) {
            return false;
        }
        self.hold(KEY_BYTES + self.key.len());
        self.keys.insert(self.key.as_slice().into())
    }

    fn hold(&mut self, bytes: usize) {
        *self.held += bytes;
        self.bounds.hold(bytes);
    }
}

impl ResultSink for Gather<'_> {
    fn columns(&mut self, _: &[OutputColumn], _: TimeZone) -> Result<(), SinkError> {
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), SinkError> {
        match self.kind {
            Kind::In { collation, .. } => {
                if row[0].is_null() {
                    *self.has_null = true;
                } else {
                    self.key.clear();
                    value_key(&row[0], *collation, self.key);
                    self.insert_key();
                }
                return Ok(());
            }
            Kind::DistinctRows(collations) => {
                self.key.clear();
                row.iter().zip(collations).for_each(|(value, c)| value_key(value, *c, self.key));
                if !self.insert_key() {
                    return Ok(());
                }
            }
            Kind::Exists { .. } => {
                *self.rows += 1;
                return Ok(());
            }
            Kind::Rows | Kind::Scalar => {}
        }
        *self.rows += 1;
        self.hold(row.iter().map(bytes_of).sum());
        self.values.extend(row.iter().map(|value| value.clone().into_owned()));
        Ok(())
    }

    fn batch(&mut self, _: &RecordBatch) -> Result<(), SinkError> {
        unreachable!("plans give rows one by one")
    }

    fn end(&mut self, _: Status) -> Result<(), SinkError> {
        Ok(())
    }

    fn ok(&mut self, _: &OkReply<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}
