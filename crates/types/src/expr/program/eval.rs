//! Evaluating a node for a row.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func;
use crate::expr::program::compare::Comparer;
use crate::expr::program::pattern::matches_varying;
use crate::expr::program::{
    CallNode, Env, LikePattern, Node, RowSource, UnitCallNode, arith, decide, reborrow,
};
use crate::expr::{CompareOp, Function, IsTest, coerce};
use crate::temporal::{ZERO_DATE, ZERO_DATETIME};

/// Up to so many arguments of a call are kept on the stack.
const STACK_ARGS: usize = 4;

/// Three-valued NOT.
#[inline]
fn negate_if(negated: bool, truth: Option<bool>) -> Option<bool> {
    truth.map(|t| t != negated)
}

#[inline]
fn truth_datum<'a>(truth: Option<bool>) -> Datum<'a> {
    truth.map_or(Datum::Null, |t| Datum::Int(t.into()))
}

/// Whether a number is true: not zero.
#[inline]
pub(crate) fn is_true(value: &Datum<'_>) -> Option<bool> {
    match value {
        Datum::Null => None,
        Datum::Int(v) => Some(*v != 0),
        Datum::UInt(v) => Some(*v != 0),
        Datum::Float(v) => Some(*v != 0.0),
        Datum::Double(v) => Some(*v != 0.0),
        Datum::Decimal(v) => Some(!v.is_zero()),
        // Conditions are numbers: `Typer::condition`.
        Datum::Str(_) | Datum::Bytes(_) => Some(false),
        Datum::Date(v) => Some(*v != ZERO_DATE),
        Datum::DateTime(v) => Some(*v != ZERO_DATETIME),
        Datum::Time(v) => Some(*v != 0),
    }
}

impl Node {
    /// The value.
    pub(crate) fn eval<'a, R: RowSource<'a>>(&'a self, env: &Env<'_, 'a, R>) -> EvalResult<Datum<'a>> {
        match self {
            Self::Column(index) => Ok(env.row.datum(*index)),
            Self::Param(index) => Ok(reborrow(&env.params[*index])),
            Self::Const(value) => Ok(reborrow(value)),
            Self::IntArith { signed: true, .. } => Ok(self.int(env)?.map_or(Datum::Null, Datum::Int)),
            Self::IntArith { op, unsigned_result, sides, text, .. } => {
                let (left, right) = (sides[0].eval(env)?, sides[1].eval(env)?);
                arith::int_op(*op, &left, &right, *unsigned_result, text, env.ctx)
            }
            Self::DecimalArith { op, scale, sides, text } => {
                let (left, right) = (sides[0].eval(env)?, sides[1].eval(env)?);
                let (Datum::Decimal(left), Datum::Decimal(right)) = (left, right) else {
                    return Ok(Datum::Null);
                };
                let result = arith::decimal_op(*op, &left, &right, *scale, text, env.ctx)?;
                Ok(result.map_or(Datum::Null, Datum::Decimal))
            }
            Self::DoubleArith { op, sides, text } => {
                let (left, right) = (sides[0].double(env)?, sides[1].double(env)?);
                let (Some(left), Some(right)) = (left, right) else { return Ok(Datum::Null) };
                let result = arith::double_op(*op, left, right, text, env.ctx)?;
                Ok(result.map_or(Datum::Null, Datum::Double))
            }
            Self::Negate { inner, text } => arith::negate(inner.eval(env)?, text),
            Self::CompareInt { .. }
            | Self::Compare { .. }
            | Self::And(_)
            | Self::Or(_)
            | Self::Xor(_)
            | Self::Not(_)
            | Self::Is { .. }
            | Self::Between { .. }
            | Self::InInts { .. }
            | Self::InMembers { .. }
            | Self::InRows { .. }
            | Self::InList { .. }
            | Self::Like { .. } => self.truth(env).map(truth_datum),
            Self::Case { branches, otherwise } => {
                for (when, then) in branches {
                    if when.truth(env)? == Some(true) {
                        return then.eval(env);
                    }
                }
                otherwise.as_ref().map_or(Ok(Datum::Null), |otherwise| otherwise.eval(env))
            }
            Self::Coalesce(args) => {
                for arg in args {
                    let value = arg.eval(env)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Datum::Null)
            }
            Self::Convert { inner, from, to } => {
                made_of(inner.eval(env)?, env.ctx, |value| coerce::convert(value, from, to, env.ctx))
            }
            Self::Recode { inner, from, to } => {
                made_of(inner.eval(env)?, env.ctx, |value| coerce::recode(value, from, to))
            }
            Self::Cast { inner, from, to } => {
                made_of(inner.eval(env)?, env.ctx, |value| coerce::cast(value, from, to, env.ctx))
            }
            Self::CastFloat { inner, from, to, text } => {
                match coerce::cast(inner.eval(env)?, from, to, env.ctx)? {
                    Datum::Float(v) if v.is_infinite() => Err(arith::out_of_range("DOUBLE", text)),
                    value => Ok(value),
                }
            }
            Self::Call(call) => call.eval(env),
            Self::UnitCall(call) => call.eval(env),
            Self::Let { value, body } => {
                let value = value.eval(env)?;
                body.eval(&Env { row: env.row, params: env.params, ctx: env.ctx, value: Some(&value) })
            }
            Self::LetValue => Ok(env.value.cloned().unwrap_or(Datum::Null)),
            Self::Benchmark { count, expr } => benchmark(count, expr, env),
        }
    }

    /// The value as a condition: true, false or unknown.
    pub(crate) fn truth<'a, R: RowSource<'a>>(&'a self, env: &Env<'_, 'a, R>) -> EvalResult<Option<bool>> {
        match self {
            Self::CompareInt { op, sides } => {
                let (left, right) = (sides[0].int(env)?, sides[1].int(env)?);
                Ok(match (left, right) {
                    (Some(left), Some(right)) => Some(op.holds(left.cmp(&right))),
                    _ => null_compare(*op, left.is_none(), right.is_none()),
                })
            }
            Self::Compare { op, by, sides } => {
                let (left, right) = (sides[0].eval(env)?, sides[1].eval(env)?);
                Ok(compare(*op, by, &left, &right))
            }
            Self::And(parts) => {
                let mut unknown = false;
                for part in parts {
                    match part.truth(env)? {
                        Some(false) => return Ok(Some(false)),
                        Some(true) => {}
                        None => unknown = true,
                    }
                }
                Ok(if unknown { None } else { Some(true) })
            }
            Self::Or(parts) => {
                let mut unknown = false;
                for part in parts {
                    match part.truth(env)? {
                        Some(true) => return Ok(Some(true)),
                        Some(false) => {}
                        None => unknown = true,
                    }
                }
                Ok(if unknown { None } else { Some(false) })
            }
            Self::Xor(sides) => {
                let (left, right) = (sides[0].truth(env)?, sides[1].truth(env)?);
                Ok(left.zip(right).map(|(left, right)| left != right))
            }
            Self::Not(inner) => Ok(inner.truth(env)?.map(|t| !t)),
            Self::Is { inner, test, negated } => Ok(Some(inner.is(*test, env)? != *negated)),
            Self::Between { by, parts, negated } => {
                let value = parts[0].eval(env)?;
                let at_least = compare(CompareOp::Ge, by, &value, &parts[1].eval(env)?);
                let at_most = compare(CompareOp::Le, by, &value, &parts[2].eval(env)?);
                let inside = match (at_least, at_most) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                };
                Ok(negate_if(*negated, inside))
            }
            Self::InInts { inner, list, has_null, negated } => {
                let Some(value) = inner.int(env)? else { return Ok(None) };
                let found = match list.binary_search(&value) {
                    Ok(_) => Some(true),
                    Err(_) if *has_null => None,
                    Err(_) => Some(false),
                };
                Ok(negate_if(*negated, found))
            }
            Self::InMembers { inner, members, has_null, negated } => {
                let value = inner.eval(env)?;
                if len_of(&value) >= LONG {
                    env.ctx.check()?;
                }
                let found = match value.is_null() {
                    true => None,
                    false if members.contains(&value) => Some(true),
                    false => (!has_null).then_some(false),
                };
                Ok(negate_if(*negated, found))
            }
            Self::InRows { row, members } => {
                let row = row.iter().map(|value| value.eval(env)).collect::<EvalResult<Vec<_>>>()?;
                Ok(members.contains(&row))
            }
            Self::InList { by, inner, list, negated } => {
                let value = inner.eval(env)?;
                Ok(negate_if(*negated, in_list(by, &value, list, env)?))
            }
            Self::Like { inner, pattern, negated } => {
                let value = inner.eval(env)?;
                if len_of(&value) >= LONG {
                    env.ctx.check()?;
                }
                let matched = match pattern {
                    LikePattern::Const(pattern) => pattern.matches_datum(&value, env.ctx)?,
                    LikePattern::Varying { pattern, escape, collation } => match pattern.eval(env)? {
                        Datum::Null => None,
                        text => matches_varying(&text, *escape, *collation, &value, env.ctx)?,
                    },
                };
                Ok(negate_if(*negated, matched))
            }
            Self::IntArith { signed: true, .. } => Ok(self.int(env)?.map(|v| v != 0)),
            _ => Ok(is_true(&self.eval(env)?)),
        }
    }

    /// The value of a node of signed integers.
    pub(crate) fn int<'a, R: RowSource<'a>>(&'a self, env: &Env<'_, 'a, R>) -> EvalResult<Option<i64>> {
        match self {
            Self::Column(index) => Ok(env.row.int(*index)),
            Self::Const(Datum::Int(v)) => Ok(Some(*v)),
            Self::IntArith { op, signed: true, sides, text, .. } => {
                let (left, right) = (sides[0].int(env)?, sides[1].int(env)?);
                let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
                arith::signed_op(*op, left, right, text, env.ctx)
            }
            _ => Ok(match self.eval(env)? {
                Datum::Int(v) => Some(v),
                _ => None,
            }),
        }
    }

    /// The value of a node of doubles or floats.
    fn double<'a, R: RowSource<'a>>(&'a self, env: &Env<'_, 'a, R>) -> EvalResult<Option<f64>> {
        Ok(match self.eval(env)? {
            Datum::Double(v) => Some(v),
            Datum::Float(v) => Some(v.into()),
            _ => None,
        })
    }

    fn is<'a, R: RowSource<'a>>(&'a self, test: IsTest, env: &Env<'_, 'a, R>) -> EvalResult<bool> {
        Ok(match test {
            IsTest::Null => match self {
                Self::Column(index) => env.row.is_null(*index),
                _ => self.eval(env)?.is_null(),
            },
            IsTest::True => self.truth(env)? == Some(true),
            IsTest::False => self.truth(env)? == Some(false),
            IsTest::Unknown => self.truth(env)?.is_none(),
        })
    }
}

/// A comparison of which at least one side is NULL.
#[inline]
pub(crate) fn null_compare(op: CompareOp, left_null: bool, right_null: bool) -> Option<bool> {
    (op == CompareOp::NullSafeEq).then_some(left_null && right_null)
}

#[inline]
pub(crate) fn compare(op: CompareOp, by: &Comparer, left: &Datum<'_>, right: &Datum<'_>) -> Option<bool> {
    if left.is_null() || right.is_null() {
        return null_compare(op, left.is_null(), right.is_null());
    }
    decide(op, by.compare(left, right))
}

fn in_list<'a, R: RowSource<'a>>(
    by: &Comparer,
    value: &Datum<'a>,
    list: &'a [Node],
    env: &Env<'_, 'a, R>,
) -> EvalResult<Option<bool>> {
    // As with the comparisons that IN stands for, a NULL before it does not stop an element from being evaluated.
    let mut unknown = value.is_null();
    for item in list {
        match item.eval(env)? {
            Datum::Null => unknown = true,
            item if by.compare(value, &item) == Some(Ordering::Equal) => return Ok(Some(true)),
            _ => {}
        }
    }
    Ok(if unknown { None } else { Some(false) })
}

/// Who looks at texts of so many bytes one after the other asks whether to go on: each may take a millisecond.
const LONG: usize = 1 << 16;
/// Of so many bytes, each may take as long as a thread's other connections should not wait.
const LARGE: usize = 1 << 20;
/// What is computed may itself take milliseconds.
const BENCHMARKS_BETWEEN_CHECKS: u64 = 64;

/// BENCHMARK: 0 after so many evaluations; NULL for a count that is none.
fn benchmark<'a, R: RowSource<'a>>(
    count: &'a Node,
    expr: &'a Node,
    env: &Env<'_, 'a, R>,
) -> EvalResult<Datum<'a>> {
    let count = match count.eval(env)? {
        Datum::Null => return Ok(Datum::Null),
        Datum::UInt(count) => count,
        count => match u64::try_from(func::int(&count)) {
            Ok(count) => count,
            Err(_) => {
                let value = func::int(&count).to_string();
                env.ctx.note(&EvalError::IncorrectForFunction {
                    kind: "count",
                    value,
                    function: "benchmark",
                });
                return Ok(Datum::Null);
            }
        },
    };
    let mut outcome = Ok(());
    env.ctx.aside(&mut || {
        outcome = (0..count).try_for_each(|done| {
            if done.is_multiple_of(BENCHMARKS_BETWEEN_CHECKS) {
                env.ctx.check()?;
            }
            std::hint::black_box(expr.eval(env)?);
            Ok(())
        });
    });
    outcome.map(|()| Datum::Int(0))
}

/// Arguments that were made for a call, while it runs: calls in the arguments of calls hold one another's.
struct LargeArgs<'c> {
    ctx: &'c EvalContext,
    bytes: u64,
    /// Of those that take a while to look at, whoever has them.
    longest: usize,
}

impl LargeArgs<'_> {
    fn none(ctx: &EvalContext) -> LargeArgs<'_> {
        LargeArgs { ctx, bytes: 0, longest: 0 }
    }

    #[inline]
    fn add(&mut self, value: &Datum<'_>) -> EvalResult<()> {
        if len_of(value) < LONG { Ok(()) } else { self.add_long(value) }
    }

    #[cold]
    fn add_long(&mut self, value: &Datum<'_>) -> EvalResult<()> {
        self.ctx.check()?;
        self.longest = self.longest.max(len_of(value));
        let len = owned_len(value);
        if len >= LARGE {
            self.ctx.hold_args(len as u64)?;
            self.bytes += len as u64;
        }
        Ok(())
    }
}

impl Drop for LargeArgs<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.ctx.release_args(self.bytes);
        }
    }
}

fn len_of(value: &Datum<'_>) -> usize {
    match value {
        Datum::Str(text) => text.len(),
        Datum::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

/// What is made of a value: of a long one, if the statement goes on, and of a large one while other connections go elsewhere.
#[inline]
fn made_of<'a>(
    value: Datum<'a>,
    ctx: &EvalContext,
    make: impl FnOnce(Datum<'a>) -> EvalResult<Datum<'a>>,
) -> EvalResult<Datum<'a>> {
    if len_of(&value) < LONG { make(value) } else { made_of_long(value, ctx, make) }
}

#[cold]
fn made_of_long<'a>(
    value: Datum<'a>,
    ctx: &EvalContext,
    make: impl FnOnce(Datum<'a>) -> EvalResult<Datum<'a>>,
) -> EvalResult<Datum<'a>> {
    ctx.check()?;
    if len_of(&value) < LARGE {
        return make(value);
    }
    let (mut made, mut work) = (Ok(Datum::Null), Some((value, make)));
    ctx.aside(&mut || {
        if let Some((value, make)) = work.take() {
            made = make(value);
        }
    });
    made
}

fn owned_len(value: &Datum<'_>) -> usize {
    match value {
        Datum::Str(Cow::Owned(text)) => text.len(),
        Datum::Bytes(Cow::Owned(bytes)) => bytes.len(),
        _ => 0,
    }
}

/// Evaluates arguments into `to`; false as soon as one is NULL where that decides.
fn eval_args<'a, R: RowSource<'a>>(
    args: &'a [Node],
    to: &mut [Datum<'a>],
    strict: bool,
    env: &Env<'_, 'a, R>,
    large: &mut LargeArgs<'_>,
) -> EvalResult<bool> {
    for (arg, to) in args.iter().zip(to) {
        *to = arg.eval(env)?;
        if strict && to.is_null() {
            return Ok(false);
        }
        large.add(to)?;
    }
    Ok(true)
}

impl CallNode {
    fn eval<'a, R: RowSource<'a>>(&'a self, env: &Env<'_, 'a, R>) -> EvalResult<Datum<'a>> {
        let count = self.args.len();
        let mut large = LargeArgs::none(env.ctx);
        if count <= STACK_ARGS {
            let mut args = [const { Datum::Null }; STACK_ARGS];
            return match eval_args(&self.args, &mut args, self.strict, env, &mut large)? {
                true => self.bounded(self.call(&mut args[..count], large.longest, env.ctx)?, env.ctx),
                false => Ok(Datum::Null),
            };
        }
        let mut args = vec![Datum::Null; count];
        for at in 0..count {
            if !eval_args(&self.args[at..=at], &mut args[at..=at], self.strict, env, &mut large)? {
                return Ok(Datum::Null);
            }
            // The result would not fit a packet, whatever follows.
            if self.function == Function::Concat && large.bytes > env.ctx.max_allowed_packet {
                return Ok(self.too_large(env.ctx));
            }
        }
        self.bounded(self.call(&mut args, large.longest, env.ctx)?, env.ctx)
    }

    #[inline]
    fn call<'a>(
        &'a self,
        args: &mut [Datum<'a>],
        longest: usize,
        ctx: &EvalContext,
    ) -> EvalResult<Datum<'a>> {
        if longest < LARGE { (self.run)(args, &self.info, ctx) } else { self.call_aside(args, ctx) }
    }

    #[cold]
    fn call_aside<'a>(&'a self, args: &mut [Datum<'a>], ctx: &EvalContext) -> EvalResult<Datum<'a>> {
        let mut value = Ok(Datum::Null);
        ctx.aside(&mut || value = (self.run)(args, &self.info, ctx));
        value
    }

    fn too_large<'a>(&self, ctx: &EvalContext) -> Datum<'a> {
        let function = self.function.name();
        ctx.note(&EvalError::ResultTooLarge { function, limit: ctx.max_allowed_packet });
        Datum::Null
    }

    /// No function makes a value that would not fit a packet: `HEX(HEX(…))` doubles with each call.
    fn bounded<'a>(&self, value: Datum<'a>, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
        let len = owned_len(&value);
        if len >= LARGE {
            ctx.check()?;
        }
        // What a column gets was made by others, or came from the client.
        if len as u64 > ctx.max_allowed_packet && self.function != Function::Stored {
            return Ok(self.too_large(ctx));
        }
        Ok(value)
    }
}

impl UnitCallNode {
    fn eval<'a, R: RowSource<'a>>(&'a self, env: &Env<'_, 'a, R>) -> EvalResult<Datum<'a>> {
        let mut args = [const { Datum::Null }; 2];
        match eval_args(&self.args, &mut args, true, env, &mut LargeArgs::none(env.ctx))? {
            true => func::interval::call(self.function, self.unit, &args, &self.info, env.ctx),
            false => Ok(Datum::Null),
        }
    }
}
