//! One aggregate function at work.

use std::collections::HashSet;
use std::sync::Arc;

use avocet_sql::plan::{Aggregate, AggregateFunction};
use avocet_types::accumulate::documents::{Documents, Gathered};
use avocet_types::accumulate::moments::Moments;
use avocet_types::accumulate::texts::{Concat, Entry, SortKey, Texts};
use avocet_types::compare::{double, sort_order};
use avocet_types::expr::{
    EvalContext, EvalError, EvalResult, Expr, ExprKind, Function, RowProgram, RowSource,
};
use avocet_types::{Collation, Datum, Decimal, SqlType, Value};

use super::super::bounds::{KEY_BYTES, bytes_of};
use super::super::{NotPoint, Refusal};
use super::value_key;

/// One aggregate, compiled.
#[derive(Debug)]
pub struct AggregatePlan {
    kind: Kind,
    args: Box<[RowProgram]>,
    distinct: bool,
    ty: SqlType,
}

#[derive(Debug)]
enum Kind {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    Any,
    BitAnd,
    BitOr,
    BitXor,
    Variance {
        sample: bool,
        root: bool,
    },
    /// The only argument is the text.
    Concat(Box<ConcatPlan>),
    /// The only argument is the row's document.
    Gather(Gathered),
    /// The keys that are asked for, by number.
    Grouping(Box<[usize]>),
}

#[derive(Debug)]
struct ConcatPlan {
    /// Its `most` is the statement's.
    how: Concat,
    order: Box<[RowProgram]>,
    terms: Arc<[(Collation, bool)]>,
}

impl AggregatePlan {
    /// `ty` is the result's type, `compile` makes programs over the rows that are aggregated. `keys` are those of GROUP BY.
    pub fn compile(
        aggregate: &Aggregate,
        ty: SqlType,
        keys: &[&Expr],
        compile: &dyn Fn(&Expr) -> Result<RowProgram, Refusal>,
    ) -> Result<Self, Refusal> {
        use AggregateFunction as F;
        let kind = match aggregate.function {
            F::Count => Kind::Count,
            F::Sum => Kind::Sum,
            F::Avg => Kind::Avg,
            F::Min => Kind::Min,
            F::Max => Kind::Max,
            F::AnyValue => Kind::Any,
            F::BitAnd => Kind::BitAnd,
            F::BitOr => Kind::BitOr,
            F::BitXor => Kind::BitXor,
            F::VarPop => Kind::Variance { sample: false, root: false },
            F::VarSamp => Kind::Variance { sample: true, root: false },
            F::StddevPop => Kind::Variance { sample: false, root: true },
            F::StddevSamp => Kind::Variance { sample: true, root: true },
            F::JsonArrayAgg => Kind::Gather(Gathered::Array),
            F::JsonObjectAgg => Kind::Gather(Gathered::Object),
            F::GroupConcat => return Self::concat(aggregate, ty, compile),
            F::Grouping => {
                let place = |arg: &Expr| keys.iter().position(|key| *key == arg);
                let places: Option<Box<[usize]>> = aggregate.args.iter().map(place).collect();
                let places = places.ok_or_else(|| NotPoint::because("GROUPING of what is no key"))?;
                return Ok(Self { kind: Kind::Grouping(places), args: Box::default(), distinct: false, ty });
            }
        };
        let args = aggregate.args.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { kind, args, distinct: aggregate.distinct, ty })
    }

    fn concat(
        aggregate: &Aggregate,
        ty: SqlType,
        compile: &dyn Fn(&Expr) -> Result<RowProgram, Refusal>,
    ) -> Result<Self, Refusal> {
        let text = match &aggregate.args[..] {
            [text] => text.clone(),
            args => {
                let nullable = args.iter().any(|arg| arg.nullable);
                Expr::new(ExprKind::Call(Function::Concat, args.to_vec()), ty, nullable)
            }
        };
        if aggregate.distinct && aggregate.args.len() > 1 {
            return Err(NotPoint::because("GROUP_CONCAT of distinct rows of arguments").into());
        }
        if text.ty.collation().is_none_or(|collation| collation == Collation::BINARY) {
            return Err(NotPoint::because("GROUP_CONCAT of what is no text").into());
        }
        let follows = aggregate.args.len() == 1 && aggregate.order_by.iter().all(|(key, _)| *key == text);
        let how = Concat {
            separator: aggregate.separator.clone(),
            distinct: aggregate.distinct,
            ordered: !aggregate.order_by.is_empty(),
            order_follows_text: follows,
            most: 0,
            charset: aggregate.concat_charset(&text),
        };
        let term = |(key, descending): &(Expr, bool)| (collation_of(&key.ty), *descending);
        let plan = ConcatPlan {
            how,
            order: aggregate.order_by.iter().map(|(key, _)| compile(key)).collect::<Result<_, _>>()?,
            terms: aggregate.order_by.iter().map(term).collect(),
        };
        Ok(Self { kind: Kind::Concat(Box::new(plan)), args: [compile(&text)?].into(), distinct: false, ty })
    }
}

pub fn collation_of(ty: &SqlType) -> Collation {
    ty.order().unwrap_or(Collation::BINARY)
}

/// What an aggregate knows so far.
pub struct Accumulator {
    count: i64,
    state: State,
    seen: Seen,
}

enum State {
    Count,
    Int(i128),
    Decimal(Decimal),
    Double(f64),
    Value(Option<Value>),
    Bits(u64),
    Moments(Moments),
    Texts(Box<(Concat, Texts<OrderKey>)>),
    Documents(Box<Documents>),
}

/// Values of GROUP_CONCAT's ORDER BY.
#[derive(Clone, Debug, Default)]
struct OrderKey {
    values: Box<[Value]>,
    terms: Arc<[(Collation, bool)]>,
}

impl Ord for OrderKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let pairs = self.values.iter().zip(&other.values).zip(&*self.terms);
        let orders = pairs.map(|((a, b), (collation, descending))| {
            let order = sort_order(a, b, *collation);
            if *descending { order.reverse() } else { order }
        });
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    }
}

impl PartialOrd for OrderKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OrderKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderKey {}

impl SortKey for OrderKey {
    fn bytes(&self) -> usize {
        self.values.iter().map(bytes_of).sum()
    }
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
    pub fn new(plan: &AggregatePlan, ctx: &EvalContext) -> Self {
        let state = match &plan.kind {
            Kind::Count | Kind::Grouping(_) => State::Count,
            Kind::Min | Kind::Max | Kind::Any => State::Value(None),
            Kind::BitAnd => State::Bits(u64::MAX),
            Kind::BitOr | Kind::BitXor => State::Bits(0),
            Kind::Variance { .. } => State::Moments(Moments::default()),
            Kind::Gather(gathered) => State::Documents(Box::new(Documents::new(*gathered))),
            Kind::Sum | Kind::Avg => match plan.args.first().map(RowProgram::ty) {
                Some(SqlType::Bool | SqlType::Int { .. } | SqlType::Year) => State::Int(0),
                _ if matches!(plan.ty, SqlType::Decimal { .. }) => State::Decimal(Decimal::ZERO),
                _ => State::Double(0.0),
            },
            Kind::Concat(concat) => {
                let most = usize::try_from(ctx.group_concat_max_len).unwrap_or(usize::MAX);
                State::Texts(Box::new((Concat { most, ..concat.how.clone() }, Texts::default())))
            }
        };
        Self { count: 0, state, seen: Seen::default() }
    }

    /// Takes one row; how many bytes more it holds.
    pub fn add<'a, R: RowSource<'a>>(
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
                if value.is_null() && !matches!(plan.kind, Kind::Any) {
                    return Ok(0);
                }
                let collation = collation_of(arg.ty());
                if plan.distinct {
                    let new = self.seen.insert(std::slice::from_ref(&value), std::iter::once(collation));
                    let Some(bytes) = new else { return Ok(0) };
                    held = bytes;
                }
                self.count += 1;
                match (&plan.kind, &mut self.state) {
                    (Kind::Concat(concat), State::Texts(texts)) => {
                        let order = concat.order.iter();
                        let order = order.map(|key| Ok(key.eval(row, params, ctx)?.into_owned()));
                        let order = order.collect::<EvalResult<_>>()?;
                        let order = OrderKey { values: order, terms: concat.terms.clone() };
                        held += add_text(texts, &value, collation, order);
                    }
                    (kind, state) => held += state.take(kind, value, collation)?,
                }
            }
            args => {
                let values =
                    args.iter().map(|arg| arg.eval(row, params, ctx)).collect::<EvalResult<Vec<_>>>()?;
                let collations = args.iter().map(|arg| collation_of(arg.ty()));
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

    /// The result. `level`: how many keys the group has, all but those that WITH ROLLUP sums over.
    pub fn result(&mut self, plan: &AggregatePlan, level: usize, ctx: &EvalContext) -> EvalResult<Value> {
        let scale = if let SqlType::Decimal { scale, .. } = plan.ty { scale } else { 0 };
        let exact = |state: &State| match state {
            State::Int(sum) => Decimal::new(*sum, 0),
            State::Decimal(sum) => sum.clone(),
            _ => Decimal::ZERO,
        };
        Ok(match (&plan.kind, &mut self.state) {
            (Kind::Count, _) => Datum::Int(self.count),
            (Kind::Grouping(keys), _) => {
                Datum::Int(keys.iter().fold(0, |bits, key| bits << 1 | i64::from(*key >= level)))
            }
            (Kind::Sum | Kind::Avg, _) if self.count == 0 => Datum::Null,
            (Kind::Sum, State::Double(sum)) => Datum::Double(*sum),
            (Kind::Avg, State::Double(sum)) => Datum::Double(*sum / self.count as f64),
            (Kind::Sum, sum) => Datum::Decimal(exact(sum).rescale(scale).map_err(|_| overflow("sum"))?),
            (Kind::Avg, sum) => {
                let average = exact(sum).div(&Decimal::from(self.count), scale);
                let average = average.map_err(|_| overflow("avg"))?.unwrap_or(Decimal::ZERO);
                Datum::Decimal(average.rescale(scale).map_err(|_| overflow("avg"))?)
            }
            (Kind::Variance { sample, root }, State::Moments(moments)) => {
                let variance =
                    if *sample { moments.sample_variance() } else { moments.population_variance() };
                let result = variance.map(|variance| if *root { variance.sqrt() } else { variance });
                match result {
                    Some(result) if !result.is_finite() => {
                        return Err(too_large(if *root { "std()" } else { "variance()" }));
                    }
                    result => result.map_or(Datum::Null, Datum::Double),
                }
            }
            (_, State::Texts(texts)) => {
                let (how, texts) = &mut **texts;
                texts.concatenated(how, ctx).map_or(Datum::Null, |text| Datum::Str(text.into()))
            }
            (_, State::Documents(documents)) => {
                documents.together()?.map_or(Datum::Null, |document| Datum::Bytes(document.into()))
            }
            (_, State::Bits(bits)) => Datum::UInt(*bits),
            (_, State::Value(value)) => value.clone().unwrap_or(Datum::Null),
            (kind, _) => unreachable!("{kind:?} has a state of another kind"),
        })
    }
}

/// Adds a text to those of a group; how many bytes more it holds.
fn add_text(
    texts: &mut (Concat, Texts<OrderKey>),
    value: &Datum<'_>,
    collation: Collation,
    order: OrderKey,
) -> usize {
    let Datum::Str(text) = value else { unreachable!("GROUP_CONCAT was given {value:?}") };
    let (how, texts) = texts;
    let mut key = Vec::new();
    if how.distinct {
        value_key(value, collation, &mut key);
    }
    let before = texts.bytes();
    texts.add(how, Entry { order, key: key.into(), text: how.shown_part(text).into() });
    texts.bytes().saturating_sub(before)
}

impl State {
    /// Takes a value; how many bytes more it holds.
    fn take(&mut self, kind: &Kind, value: Datum<'_>, collation: Collation) -> EvalResult<usize> {
        match self {
            Self::Count | Self::Texts(_) => {}
            Self::Documents(documents) => match &value {
                Datum::Bytes(document) => return Ok(documents.add(document)),
                v => unreachable!("documents were to be gathered of {v:?}"),
            },
            Self::Int(sum) => match value {
                Datum::Int(v) => *sum += i128::from(v),
                Datum::UInt(v) => *sum += i128::from(v),
                v => unreachable!("a sum of integers was given {v:?}"),
            },
            Self::Decimal(sum) => match &value {
                Datum::Decimal(v) => *sum = sum.add(v).map_err(|_| overflow("sum"))?,
                v => unreachable!("a sum of decimals was given {v:?}"),
            },
            Self::Double(sum) => *sum += double(&value),
            Self::Moments(moments) => moments.add(double(&value)),
            Self::Bits(bits) => {
                let value = match value {
                    Datum::UInt(v) => v,
                    Datum::Int(v) => v as u64,
                    v => unreachable!("a bit operation was given {v:?}"),
                };
                match kind {
                    Kind::BitAnd => *bits &= value,
                    Kind::BitOr => *bits |= value,
                    _ => *bits ^= value,
                }
            }
            Self::Value(kept) => {
                let is_better = match (kind, &*kept) {
                    (_, None) => true,
                    (Kind::Min, Some(least)) => sort_order(&value, least, collation).is_lt(),
                    (Kind::Max, Some(greatest)) => sort_order(&value, greatest, collation).is_gt(),
                    _ => false,
                };
                if is_better {
                    *kept = Some(value.into_owned());
                }
            }
        }
        Ok(0)
    }
}

#[cold]
fn overflow(function: &str) -> EvalError {
    EvalError::OutOfRange { kind: "DECIMAL", expr: function.to_owned() }
}

#[cold]
fn too_large(function: &str) -> EvalError {
    EvalError::OutOfRange { kind: "DOUBLE", expr: function.to_owned() }
}
