//! Aggregates over the rows that a plan visits: all of them, or by groups.

use std::collections::{HashMap, HashSet};

use avocet_types::compare::{double, sort_order};
use avocet_types::expr::{EvalContext, EvalError, EvalResult, RowProgram, RowSource};
use avocet_types::{Collation, Datum, Decimal, SqlType, Value};

use super::bounds::{KEY_BYTES, bytes_of};
use super::scope::Scope;
use super::select::Aggregation;
use super::{NotPoint, Refusal};
use crate::plan::{Aggregate, AggregateFunction};

/// One aggregate, compiled.
#[derive(Debug)]
pub struct AggregatePlan {
    kind: Kind,
    args: Box<[RowProgram]>,
    distinct: bool,
    ty: SqlType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    Any,
}

impl AggregatePlan {
    /// `ty` is the result's type.
    pub fn compile(scope: &Scope, aggregate: &Aggregate, ty: SqlType) -> Result<Self, Refusal> {
        let kind = match aggregate.function {
            AggregateFunction::Count => Kind::Count,
            AggregateFunction::Sum => Kind::Sum,
            AggregateFunction::Avg => Kind::Avg,
            AggregateFunction::Min => Kind::Min,
            AggregateFunction::Max => Kind::Max,
            AggregateFunction::AnyValue => Kind::Any,
            _ => return Err(NotPoint::because("an aggregate function of the analytical path").into()),
        };
        let args = aggregate.args.iter().map(|arg| scope.compile(arg)).collect::<Result<_, _>>()?;
        Ok(Self { kind, args, distinct: aggregate.distinct, ty })
    }
}

/// The groups that were met so far.
#[derive(Default)]
pub struct Groups {
    /// In the order in which they were met: the keys' values, and the aggregates at work.
    groups: Vec<(Vec<Value>, Vec<Accumulator>)>,
    /// Where the group with these keys is.
    places: HashMap<Box<[u8]>, usize, foldhash::fast::RandomState>,
    key: Vec<u8>,
}

impl Groups {
    /// Without keys all rows are one group, even if there are none.
    pub fn new(aggregation: Option<&Aggregation>) -> Self {
        let mut groups = Self::default();
        if let Some(aggregation) = aggregation.filter(|aggregation| aggregation.keys.is_empty()) {
            groups.groups.push((Vec::new(), accumulators(aggregation)));
        }
        groups
    }

    /// Adds a row to its group; how many bytes more it holds.
    pub fn add<'a, R: RowSource<'a>>(
        &mut self,
        aggregation: &'a Aggregation,
        row: &R,
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
    ) -> EvalResult<usize> {
        let groups = self.groups.len();
        let at = if aggregation.keys.is_empty() { 0 } else { self.place(aggregation, row, params, ctx)? };
        let (keys, accumulators) = &mut self.groups[at];
        let mut held = 0;
        if at == groups {
            held += KEY_BYTES + self.key.len() + keys.iter().map(bytes_of).sum::<usize>();
            held +=
                size_of::<(Vec<Value>, Vec<Accumulator>)>() + accumulators.len() * size_of::<Accumulator>();
        }
        for (accumulator, plan) in accumulators.iter_mut().zip(&aggregation.aggregates) {
            held += accumulator.add(plan, row, params, ctx)?;
        }
        Ok(held)
    }

    fn place<'a, R: RowSource<'a>>(
        &mut self,
        aggregation: &'a Aggregation,
        row: &R,
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
    ) -> EvalResult<usize> {
        self.key.clear();
        for program in &aggregation.keys {
            let value = program.eval(row, params, ctx)?;
            value_key(&value, program.ty().collation().unwrap_or(Collation::BINARY), &mut self.key);
        }
        if let Some(at) = self.places.get(&self.key[..]) {
            return Ok(*at);
        }
        let keys = aggregation.keys.iter().map(|program| Ok(program.eval(row, params, ctx)?.into_owned()));
        self.groups.push((keys.collect::<EvalResult<_>>()?, accumulators(aggregation)));
        let at = self.groups.len() - 1;
        self.places.insert(self.key.as_slice().into(), at);
        Ok(at)
    }

    /// Each group's keys and results.
    pub fn finish(self, aggregation: &Aggregation) -> impl Iterator<Item = EvalResult<Vec<Value>>> {
        self.groups.into_iter().map(|(mut values, accumulators)| {
            for (accumulator, plan) in accumulators.into_iter().zip(&aggregation.aggregates) {
                values.push(accumulator.finish(plan)?);
            }
            Ok(values)
        })
    }
}

fn accumulators(aggregation: &Aggregation) -> Vec<Accumulator> {
    aggregation.aggregates.iter().map(Accumulator::new).collect()
}

/// One aggregate at work.
struct Accumulator {
    count: i64,
    sum: Sum,
    value: Option<Value>,
    seen: Seen,
}

enum Sum {
    Int(i128),
    Decimal(Decimal),
    Double(f64),
}

/// Values that were counted already.
#[derive(Default)]
struct Seen {
    ints: HashSet<i64, foldhash::fast::RandomState>,
    others: HashSet<Box<[u8]>, foldhash::fast::RandomState>,
    key: Vec<u8>,
}

impl Seen {
    /// How many bytes more it holds if the values are new.
    fn insert(&mut self, values: &[Datum<'_>], collations: impl Iterator<Item = Collation>) -> Option<usize> {
        if let [Datum::Int(v)] = values {
            return self.ints.insert(*v).then_some(2 * size_of::<i64>());
        }
        self.key.clear();
        values
            .iter()
            .zip(collations)
            .for_each(|(value, collation)| value_key(value, collation, &mut self.key));
        if self.others.contains(&self.key[..]) {
            return None;
        }
        self.others.insert(self.key.as_slice().into());
        Some(KEY_BYTES + self.key.len())
    }
}

impl Accumulator {
    fn new(plan: &AggregatePlan) -> Self {
        let sum = match plan.args.first().map(RowProgram::ty) {
            Some(SqlType::Bool | SqlType::Int { .. } | SqlType::Year) => Sum::Int(0),
            _ if matches!(plan.ty, SqlType::Decimal { .. }) => Sum::Decimal(Decimal::ZERO),
            _ => Sum::Double(0.0),
        };
        Self { count: 0, sum, value: None, seen: Seen::default() }
    }

    /// Takes one row; how many bytes more it holds.
    fn add<'a, R: RowSource<'a>>(
        &mut self,
        plan: &'a AggregatePlan,
        row: &R,
        params: &'a [Datum<'a>],
        ctx: &EvalContext,
    ) -> EvalResult<usize> {
        let mut held = 0;
        match &*plan.args {
            [] => self.count += 1,
            [arg] => {
                let value = arg.eval(row, params, ctx)?;
                if value.is_null() && plan.kind != Kind::Any {
                    return Ok(0);
                }
                let collation = arg.ty().collation().unwrap_or(Collation::BINARY);
                if plan.distinct {
                    let new = self.seen.insert(std::slice::from_ref(&value), std::iter::once(collation));
                    let Some(bytes) = new else { return Ok(0) };
                    held = bytes;
                }
                self.count += 1;
                self.take(plan, value, collation)?;
            }
            args => {
                let values =
                    args.iter().map(|arg| arg.eval(row, params, ctx)).collect::<EvalResult<Vec<_>>>()?;
                let collations = args.iter().map(|a| a.ty().collation().unwrap_or(Collation::BINARY));
                if plan.distinct {
                    let Some(bytes) = self.seen.insert(&values, collations) else { return Ok(0) };
                    held = bytes;
                }
                if !values.iter().any(Datum::is_null) {
                    self.count += 1;
                }
            }
        }
        Ok(held)
    }

    fn take(&mut self, plan: &AggregatePlan, value: Datum<'_>, collation: Collation) -> EvalResult<()> {
        match plan.kind {
            Kind::Count => {}
            Kind::Sum | Kind::Avg => self.sum(value)?,
            Kind::Any => {
                self.value.get_or_insert_with(|| value.into_owned());
            }
            Kind::Min | Kind::Max => {
                let better = self.value.as_ref().is_none_or(|best| {
                    let order = sort_order(&value, best, collation);
                    if plan.kind == Kind::Min { order.is_lt() } else { order.is_gt() }
                });
                if better {
                    self.value = Some(value.into_owned());
                }
            }
        }
        Ok(())
    }

    fn sum(&mut self, value: Datum<'_>) -> EvalResult<()> {
        match (&mut self.sum, &value) {
            (Sum::Int(sum), Datum::Int(v)) => *sum += i128::from(*v),
            (Sum::Int(sum), Datum::UInt(v)) => *sum += i128::from(*v),
            (Sum::Decimal(sum), Datum::Decimal(v)) => *sum = sum.add(v).map_err(|_| overflow("sum"))?,
            (Sum::Double(sum), v) => *sum += double(v),
            (_, v) => unreachable!("a sum of exact numbers was given {v:?}"),
        }
        Ok(())
    }

    /// The result.
    fn finish(self, plan: &AggregatePlan) -> EvalResult<Value> {
        let scale = if let SqlType::Decimal { scale, .. } = plan.ty { scale } else { 0 };
        Ok(match plan.kind {
            Kind::Count => Datum::Int(self.count),
            Kind::Min | Kind::Max | Kind::Any => self.value.unwrap_or(Datum::Null),
            Kind::Sum | Kind::Avg if self.count == 0 => Datum::Null,
            Kind::Sum => match self.sum {
                Sum::Double(sum) => Datum::Double(sum),
                exact => Datum::Decimal(exact.decimal().rescale(scale).map_err(|_| overflow("sum"))?),
            },
            Kind::Avg => match self.sum {
                Sum::Double(sum) => Datum::Double(sum / self.count as f64),
                exact => {
                    let average = exact.decimal().div(&Decimal::from(self.count));
                    let average = average.map_err(|_| overflow("avg"))?.unwrap_or(Decimal::ZERO);
                    Datum::Decimal(average.rescale(scale).map_err(|_| overflow("avg"))?)
                }
            },
        })
    }
}

impl Sum {
    fn decimal(self) -> Decimal {
        match self {
            Self::Int(sum) => Decimal::new(sum, 0),
            Self::Decimal(sum) => sum,
            Self::Double(_) => Decimal::ZERO,
        }
    }
}

#[cold]
fn overflow(function: &str) -> EvalError {
    EvalError::OutOfRange { kind: "DECIMAL", expr: function.to_owned() }
}

/// Appends bytes that are equal for equal values of types that compare as they are, and for no others: signed and unsigned
/// integers are such, FLOAT and DOUBLE, and every type with itself.
pub fn value_key(value: &Datum<'_>, collation: Collation, key: &mut Vec<u8>) {
    key.push(match value {
        Datum::Null => 0,
        Datum::Int(..0) => 2,
        _ => 1,
    });
    match value {
        Datum::Null => {}
        Datum::Int(v) | Datum::DateTime(v) | Datum::Time(v) => key.extend_from_slice(&v.to_le_bytes()),
        Datum::UInt(v) => key.extend_from_slice(&v.to_le_bytes()),
        Datum::Float(v) => key.extend_from_slice(&(f64::from(*v) + 0.0).to_bits().to_le_bytes()),
        Datum::Double(v) => key.extend_from_slice(&(v + 0.0).to_bits().to_le_bytes()),
        Datum::Date(v) => key.extend_from_slice(&v.to_le_bytes()),
        Datum::Decimal(v) => {
            let v = v.rescale(Decimal::MAX_SCALE).unwrap_or_else(|_| v.clone());
            key.extend_from_slice(&v.as_i256().to_le_bytes());
        }
        Datum::Str(s) => collation.sort_key(s, key),
        Datum::Bytes(b) => {
            key.extend_from_slice(&(b.len() as u64).to_le_bytes());
            key.extend_from_slice(b);
        }
    }
}
