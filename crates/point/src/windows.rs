//! Window functions over the rows of a block: these are gathered, sorted into partitions, and each gets its results.

mod frame;

use std::cmp::Ordering;
use std::ops::Range;

use avocet_sql::plan::{ColumnId, ColumnTable, WindowFunction, WindowKind};
use avocet_types::accumulate::moments::nearest_finite;
use avocet_types::compare::sort_order;
use avocet_types::error::SqlError;
use avocet_types::expr::{EvalContext, Expr, RowProgram};
use avocet_types::{Collation, Datum, SqlType, Value};
use frame::FramePlan;

use super::aggregate::{Accumulator, AggregatePlan, collation_of};
use super::bounds::bytes_of;
use super::{NotPoint, Refusal, Run};

/// The window functions of a block. What stands after them is over the columns that are carried, followed by their results.
#[derive(Debug)]
pub struct Windows {
    /// Over the rows of the block, or over its groups.
    pub carried: Box<[RowProgram]>,
    functions: Box<[WindowPlan]>,
}

#[derive(Debug)]
struct WindowPlan {
    kind: Kind,
    /// Its rows' order; functions with the same share it.
    over: Over,
    frame: FramePlan,
}

#[derive(Debug)]
enum Kind {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    /// Into so many.
    Ntile(u64),
    /// The value so many rows before (or, negative, behind), or else the other one.
    Lag {
        value: usize,
        rows: i64,
        otherwise: Option<usize>,
    },
    First {
        value: usize,
    },
    Last {
        value: usize,
    },
    Nth {
        value: usize,
        n: u64,
    },
    Aggregate(AggregatePlan),
}

/// What a window is over, by positions of carried columns.
#[derive(Debug, PartialEq, Eq)]
struct Over {
    partition: Box<[(usize, Collation)]>,
    order: Box<[(usize, Collation, bool)]>,
}

/// What is carried while a block is compiled.
pub struct Carried<'c> {
    exprs: Vec<Expr>,
    columns: &'c ColumnTable,
}

impl Carried<'_> {
    /// The position of an expression's value.
    fn carry(&mut self, expr: &Expr) -> usize {
        let volatile = expr.is_volatile();
        self.exprs.iter().position(|kept| !volatile && kept == expr).unwrap_or_else(|| {
            self.exprs.push(expr.clone());
            self.exprs.len() - 1
        })
    }

    /// The position of a column's value.
    fn column(&mut self, id: usize) -> usize {
        let info = &self.columns[ColumnId(id as u32)];
        self.carry(&Expr::column(id, info.ty, info.nullable))
    }
}

/// A program over carried columns and results, which `Expr`s of the block's projection are compiled to.
pub type AfterWindows<'c> = Box<dyn Fn(&Expr) -> Result<RowProgram, Refusal> + 'c>;

impl Windows {
    /// Compiles the functions, and what is carried for them and for `projection`. `compile` makes programs over the block's
    /// rows or groups.
    pub fn compile<'c>(
        functions: &[WindowFunction],
        projection: impl Iterator<Item = &'c Expr>,
        columns: &ColumnTable,
        compile: &dyn Fn(&Expr) -> Result<RowProgram, Refusal>,
    ) -> Result<(Self, AfterWindows<'static>), Refusal> {
        let mut carried = Carried { exprs: Vec::new(), columns };
        let plans: Vec<_> = functions
            .iter()
            .map(|function| WindowPlan::compile(function, &mut carried))
            .collect::<Result<_, _>>()?;
        let results: Vec<usize> = functions.iter().map(|function| function.id.index()).collect();
        let mut places: Vec<(usize, usize)> = Vec::new();
        for id in projection.flat_map(Expr::columns) {
            if !results.contains(&id) && !places.iter().any(|(known, _)| *known == id) {
                places.push((id, carried.column(id)));
            }
        }
        let first = carried.exprs.len();
        places.extend(results.iter().enumerate().map(|(at, id)| (*id, first + at)));
        let after = move |expr: &Expr| {
            let place = |id: usize| places.iter().find(|(known, _)| *known == id).map(|(_, place)| *place);
            if expr.columns().iter().any(|id| place(*id).is_none()) {
                return Err(NotPoint::because("a column that no window passes on").into());
            }
            Ok(RowProgram::compile(
                &expr.clone().map_columns(&mut |id| place(id).expect("looked up just now")),
            )?)
        };
        let carried = carried.exprs.iter().map(compile).collect::<Result<_, _>>()?;
        Ok((Self { carried, functions: plans.into() }, Box::new(after)))
    }

    /// How many values a row has in the end.
    pub fn width(&self) -> usize {
        self.carried.len() + self.functions.len()
    }

    /// Adds the results to each row, and puts the rows into the order of the last window.
    pub fn evaluate(&self, rows: &mut Vec<Vec<Value>>, run: Run<'_>) -> Result<usize, SqlError> {
        let mut held = 0;
        let mut order: Vec<usize> = (0..rows.len()).collect();
        let mut last: Option<&Over> = None;
        let mut partitions = Vec::new();
        let width = self.carried.len();
        for function in &self.functions {
            let over = &function.over;
            if last != Some(over) {
                order.sort_by(|a, b| over.compare(&rows[*a], &rows[*b]));
                partitions =
                    parts(0..order.len(), |a, b| over.same_partition(&rows[order[a]], &rows[order[b]]));
                last = Some(over);
            }
            for partition in &partitions {
                let rows_of = Partition { rows: &rows[..], order: &order[partition.clone()], over, width };
                let results = function.results(&rows_of, run)?;
                held += results.iter().map(bytes_of).sum::<usize>();
                run.bounds.hold(results.iter().map(bytes_of).sum());
                for (at, result) in order[partition.clone()].iter().zip(results) {
                    rows[*at].push(result);
                }
            }
        }
        let mut taken: Vec<Vec<Value>> = std::mem::take(rows);
        rows.extend(order.into_iter().map(|at| std::mem::take(&mut taken[at])));
        Ok(held)
    }
}

/// The ranges of neighbours that are alike.
fn parts(range: Range<usize>, alike: impl Fn(usize, usize) -> bool) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut begin = range.start;
    for at in range.clone() {
        if at > begin && !alike(at - 1, at) {
            parts.push(begin..at);
            begin = at;
        }
    }
    if begin < range.end {
        parts.push(begin..range.end);
    }
    parts
}

impl Over {
    fn compare(&self, a: &[Value], b: &[Value]) -> Ordering {
        let partition = self.partition.iter().map(|(at, collation)| sort_order(&a[*at], &b[*at], *collation));
        let order = self.order.iter().map(|(at, collation, descending)| {
            let order = sort_order(&a[*at], &b[*at], *collation);
            if *descending { order.reverse() } else { order }
        });
        partition.chain(order).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    fn same_partition(&self, a: &[Value], b: &[Value]) -> bool {
        self.partition.iter().all(|(at, collation)| sort_order(&a[*at], &b[*at], *collation).is_eq())
    }

    fn same_order(&self, a: &[Value], b: &[Value]) -> bool {
        self.order.iter().all(|(at, collation, _)| sort_order(&a[*at], &b[*at], *collation).is_eq())
    }
}

/// The rows of one partition, in order.
struct Partition<'p> {
    rows: &'p [Vec<Value>],
    order: &'p [usize],
    over: &'p Over,
    /// How many columns are carried: behind them are results.
    width: usize,
}

impl<'p> Partition<'p> {
    fn len(&self) -> usize {
        self.order.len()
    }

    fn row(&self, at: usize) -> &'p [Value] {
        &self.rows[self.order[at]][..self.width]
    }

    /// For each row the range of its peers.
    fn peers(&self) -> Vec<Range<usize>> {
        parts(0..self.len(), |a, b| self.over.same_order(self.row(a), self.row(b)))
    }
}

impl WindowPlan {
    fn compile(function: &WindowFunction, carried: &mut Carried<'_>) -> Result<Self, Refusal> {
        let whole = |expr: Option<&Expr>| match expr.and_then(Expr::as_literal) {
            Some(Datum::Int(n)) => u64::try_from(*n).ok(),
            Some(Datum::UInt(n)) => Some(*n),
            _ => None,
        };
        let args = &function.args;
        let kind = match function.kind {
            WindowKind::RowNumber => Kind::RowNumber,
            WindowKind::Rank => Kind::Rank,
            WindowKind::DenseRank => Kind::DenseRank,
            WindowKind::PercentRank => Kind::PercentRank,
            WindowKind::CumeDist => Kind::CumeDist,
            WindowKind::Ntile => match whole(args.first()) {
                Some(n) if n > 0 => Kind::Ntile(n),
                _ => return Err(NotPoint::because("NTILE of what is no number").into()),
            },
            WindowKind::Lag | WindowKind::Lead => {
                let rows = match args.get(1) {
                    None => Some(1),
                    by => whole(by).and_then(|n| i64::try_from(n).ok()),
                };
                let rows = rows.ok_or_else(|| NotPoint::because("LAG or LEAD by what is no number"))?;
                let rows = if function.kind == WindowKind::Lag { rows } else { -rows };
                let value = carried.carry(&args[0]);
                Kind::Lag { value, rows, otherwise: args.get(2).map(|otherwise| carried.carry(otherwise)) }
            }
            WindowKind::FirstValue => Kind::First { value: carried.carry(&args[0]) },
            WindowKind::LastValue => Kind::Last { value: carried.carry(&args[0]) },
            WindowKind::NthValue => match whole(args.get(1)) {
                Some(n) if n > 0 => Kind::Nth { value: carried.carry(&args[0]), n },
                _ => return Err(NotPoint::because("NTH_VALUE of what is no number").into()),
            },
            WindowKind::Aggregate(of) => {
                let args: Vec<Expr> =
                    args.iter().map(|arg| Expr::column(carried.carry(arg), arg.ty, arg.nullable)).collect();
                let aggregate = avocet_sql::plan::Aggregate {
                    id: function.id,
                    function: of,
                    args,
                    distinct: false,
                    order_by: Vec::new(),
                    separator: "".into(),
                    of_bytes: false,
                };
                let ty: SqlType = carried.columns[function.id].ty;
                let compile = |expr: &Expr| Ok(RowProgram::compile(expr)?);
                Kind::Aggregate(AggregatePlan::compile(&aggregate, ty, &[], &compile)?)
            }
        };
        let partition =
            function.partition_by.iter().map(|key| (carried.carry(key), collation_of(&key.ty))).collect();
        let order = function.order_by.iter();
        let order =
            order.map(|(key, descending)| (carried.carry(key), collation_of(&key.ty), *descending)).collect();
        let frame = FramePlan::compile(function)?;
        Ok(Self { kind, over: Over { partition, order }, frame })
    }

    /// The function's results for the rows of a partition, in order.
    fn results(&self, rows: &Partition<'_>, run: Run<'_>) -> Result<Vec<Value>, SqlError> {
        let count = rows.len();
        let mut results = Vec::with_capacity(count);
        match &self.kind {
            Kind::RowNumber => {
                for at in 0..count {
                    run.bounds.row()?;
                    results.push(Datum::UInt(at as u64 + 1));
                }
            }
            Kind::Rank | Kind::DenseRank | Kind::PercentRank | Kind::CumeDist => {
                for (number, peers) in rows.peers().into_iter().enumerate() {
                    let result = match self.kind {
                        Kind::Rank => Datum::UInt(peers.start as u64 + 1),
                        Kind::DenseRank => Datum::UInt(number as u64 + 1),
                        Kind::PercentRank if count <= 1 => Datum::Double(0.0),
                        Kind::PercentRank => Datum::Double(peers.start as f64 / (count - 1) as f64),
                        _ => Datum::Double(peers.end as f64 / count as f64),
                    };
                    for _ in peers {
                        run.bounds.row()?;
                        results.push(result.clone());
                    }
                }
            }
            Kind::Ntile(n) => {
                // The first tiles have a row more if they are not equal.
                let n = usize::try_from(*n).unwrap_or(usize::MAX);
                let (each, more) = (count / n, count % n);
                for at in 0..count {
                    run.bounds.row()?;
                    let large = more * (each + 1);
                    let tile = if at < large { at / (each + 1) } else { more + (at - large) / each.max(1) };
                    results.push(Datum::UInt(tile as u64 + 1));
                }
            }
            Kind::Lag { value, rows: by, otherwise } => {
                for at in 0..count {
                    run.bounds.row()?;
                    let other = (at as i64).checked_sub(*by).and_then(|other| usize::try_from(other).ok());
                    results.push(match (other.filter(|other| *other < count), otherwise) {
                        (Some(other), _) => rows.row(other)[*value].clone(),
                        (None, Some(otherwise)) => rows.row(at)[*otherwise].clone(),
                        (None, None) => Datum::Null,
                    });
                }
            }
            Kind::First { value } | Kind::Last { value } | Kind::Nth { value, .. } => {
                for frame in self.frame.frames(rows, run)? {
                    run.bounds.row()?;
                    let at = match self.kind {
                        Kind::First { .. } => Some(frame.start),
                        Kind::Last { .. } => frame.end.checked_sub(1),
                        Kind::Nth { n, .. } => {
                            usize::try_from(n).ok().and_then(|n| frame.start.checked_add(n - 1))
                        }
                        _ => None,
                    };
                    let at = at.filter(|at| frame.contains(at));
                    results.push(at.map_or(Datum::Null, |at| rows.row(at)[*value].clone()));
                }
            }
            Kind::Aggregate(plan) => {
                aggregates(plan, rows, &self.frame.frames(rows, run)?, run, &mut results)?
            }
        }
        Ok(results)
    }
}

/// The aggregate over each row's frame. Frames that begin alike go on from one another; all others are folded anew.
fn aggregates(
    plan: &AggregatePlan,
    rows: &Partition<'_>,
    frames: &[Range<usize>],
    Run { params, ctx, bounds, .. }: Run<'_>,
    results: &mut Vec<Value>,
) -> Result<(), SqlError> {
    let new = |ctx: &EvalContext| Accumulator::new(plan, ctx);
    let (mut accumulator, mut folded) = (new(ctx), 0..0);
    let mut result: Option<Value> = None;
    for frame in frames {
        bounds.row()?;
        if frame.start != folded.start || frame.end < folded.end {
            (accumulator, folded, result) = (new(ctx), frame.start..frame.start, None);
        }
        while folded.end < frame.end {
            bounds.row()?;
            accumulator.add(plan, &rows.row(folded.end), params, ctx)?;
            folded.end += 1;
            result = None;
        }
        let value = match result.take() {
            Some(value) => value,
            None => match accumulator.result(plan, 0, ctx)? {
                // A window's results are kept, and so are those that a DOUBLE can have.
                Datum::Double(sum) => Datum::Double(nearest_finite(sum)),
                value => value,
            },
        };
        results.push(value.clone());
        result = Some(value);
    }
    Ok(())
}
