//! Functions of numbers.

use std::cmp::Ordering;

use crate::collation::Collation;
use crate::compare::compare;
use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::expr::coerce::{double_to_bigint, float_to_bigint};
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::{double, int, take, text};
use crate::expr::program::CallInfo;
use crate::expr::program::arith::{int_datum, int_kind, int_value, out_of_range};
use crate::expr::program::compare::Comparer;
use crate::expr::seeded::SeededRandom;
use crate::number::power_of_ten;
use crate::sql_type::SqlType;

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// A decimal as a value of the call's type, which is a decimal or an integer.
fn decimal_result<'a>(value: &Decimal, info: &CallInfo) -> EvalResult<Datum<'a>> {
    let result = match info.ty {
        SqlType::Decimal { scale, .. } => {
            value.rescale(scale).ok().filter(|v| v.fits(Decimal::MAX_PRECISION, scale)).map(Datum::Decimal)
        }
        _ => value.as_i128().and_then(|v| int_datum(v, info.ty.is_unsigned())),
    };
    result.ok_or_else(|| out_of_range(kind_of(info), &info.text))
}

fn kind_of(info: &CallInfo) -> &'static str {
    match info.ty {
        SqlType::Decimal { .. } => "DECIMAL",
        SqlType::Double(_) => "DOUBLE",
        _ => int_kind(info.ty.is_unsigned()),
    }
}

fn finite<'a>(value: f64, info: &CallInfo) -> EvalResult<Datum<'a>> {
    if value.is_finite() { Ok(Datum::Double(value)) } else { Err(out_of_range("DOUBLE", &info.text)) }
}

pub(crate) fn abs<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(match take(&mut args[0]) {
        Datum::Int(v) => Datum::Int(v.checked_abs().ok_or_else(|| out_of_range("BIGINT", &info.text))?),
        Datum::Decimal(v) => Datum::Decimal(v.abs()),
        Datum::Double(v) => Datum::Double(v.abs()),
        Datum::Float(v) => Datum::Double(f64::from(v).abs()),
        other => other,
    })
}

pub(crate) fn ceil<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(match take(&mut args[0]) {
        Datum::Decimal(v) => decimal_result(&v.ceil(), info)?,
        Datum::Double(v) => Datum::Double(v.ceil()),
        Datum::Float(v) => Datum::Double(f64::from(v).ceil()),
        other => other,
    })
}

pub(crate) fn floor<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(match take(&mut args[0]) {
        Datum::Decimal(v) => decimal_result(&v.floor(), info)?,
        Datum::Double(v) => Datum::Double(v.floor()),
        Datum::Float(v) => Datum::Double(f64::from(v).floor()),
        other => other,
    })
}

pub(crate) fn round<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    cut(args, info, true)
}

pub(crate) fn truncate<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    cut(args, info, false)
}

/// ROUND and TRUNCATE to so many digits after the point.
fn cut<'a>(args: Args<'_, 'a>, info: &CallInfo, round: bool) -> EvalResult<Datum<'a>> {
    let digits = args.get(1).map_or(0, int).clamp(-400, 400) as i32;
    match &args[0] {
        Datum::Decimal(v) => {
            let digits = digits.min(Decimal::MAX_SCALE.into());
            decimal_result(&if round { v.round(digits) } else { v.truncate(digits) }, info)
        }
        Datum::Double(_) | Datum::Float(_) => finite(cut_double(double(&args[0]), digits, round), info),
        value if digits >= 0 => Ok(crate::expr::program::reborrow(value).into_owned()),
        value => {
            let value = int_value(value).unwrap_or(0);
            int_datum(cut_int(value, digits.unsigned_abs(), round), info.ty.is_unsigned())
                .ok_or_else(|| out_of_range(kind_of(info), &info.text))
        }
    }
}

/// Zeros in place of the last `zeros` digits.
fn cut_int(value: i128, zeros: u32, round: bool) -> i128 {
    let Some(power) = 10i128.checked_pow(zeros) else { return 0 };
    let rest = value % power;
    let carry = if round && rest.abs() * 2 >= power { power * value.signum() } else { 0 };
    value - rest + carry
}

/// As `my_double_round` does it: halves go to the even neighbour of the scaled value.
pub(crate) fn cut_double(value: f64, digits: i32, round: bool) -> f64 {
    let power = power_of_ten(digits.unsigned_abs());
    let to_integer = |v: f64| if round { v.round_ties_even() } else { v.trunc() };
    match (digits < 0, power.is_infinite()) {
        (true, true) => 0.0,
        (true, false) => to_integer(value / power) * power,
        (false, true) => value,
        (false, false) if (value * power).is_infinite() => value,
        (false, false) => to_integer(value * power) / power,
    }
}

pub(crate) fn sign<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let sign = match &args[0] {
        Datum::Int(v) => v.signum(),
        Datum::UInt(v) => i64::from(*v > 0),
        Datum::Decimal(v) if v.is_zero() => 0,
        Datum::Decimal(v) => {
            if v.is_negative() {
                -1
            } else {
                1
            }
        }
        other => {
            let v = double(other);
            i64::from(v > 0.0) - i64::from(v < 0.0)
        }
    };
    Ok(Datum::Int(sign))
}

pub(crate) fn pi<'a>(_: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Double(std::f64::consts::PI))
}

pub(crate) fn pow<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    finite(double(&args[0]).powf(double(&args[1])), info)
}

pub(crate) fn atan<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let first = double(&args[0]);
    Ok(Datum::Double(args.get(1).map_or_else(|| first.atan(), |second| first.atan2(double(second)))))
}

pub(crate) fn cot<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    finite(1.0 / double(&args[0]).tan(), info)
}

macro_rules! of_double {
    ($($name:ident = $body:expr;)*) => {$(
        pub(crate) fn $name<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
            let function: fn(f64) -> f64 = $body;
            finite(function(double(&args[0])), info)
        }
    )*};
}

of_double! {
    exp = f64::exp;
    sin = f64::sin;
    cos = f64::cos;
    tan = f64::tan;
    degrees = |v| v * (180.0 / std::f64::consts::PI);
    radians = |v| v * (std::f64::consts::PI / 180.0);
}

macro_rules! of_part_of_doubles {
    ($($name:ident = $domain:expr, $body:expr;)*) => {$(
        /// NULL outside its domain.
        pub(crate) fn $name<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
            let (domain, function): (fn(f64) -> bool, fn(f64) -> f64) = ($domain, $body);
            let value = double(&args[0]);
            Ok(if domain(value) { Datum::Double(function(value)) } else { Datum::Null })
        }
    )*};
}

of_part_of_doubles! {
    sqrt = |v| v >= 0.0, f64::sqrt;
    asin = |v| (-1.0..=1.0).contains(&v), f64::asin;
    acos = |v| (-1.0..=1.0).contains(&v), f64::acos;
}

/// NULL and warning 3020 for what has no logarithm.
fn logarithm<'a>(valid: bool, value: impl FnOnce() -> f64, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    if valid {
        return Ok(Datum::Double(value()));
    }
    ctx.warn(EvalError::InvalidLogarithm)?;
    Ok(Datum::Null)
}

pub(crate) fn ln<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let v = double(&args[0]);
    logarithm(v > 0.0, || v.ln(), ctx)
}

pub(crate) fn log<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let Some(value) = args.get(1).map(double) else { return ln(args, info, ctx) };
    let base = double(&args[0]);
    logarithm(base > 0.0 && base != 1.0 && value > 0.0, || value.ln() / base.ln(), ctx)
}

pub(crate) fn log2<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let v = double(&args[0]);
    logarithm(v > 0.0, || v.log2(), ctx)
}

pub(crate) fn log10<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let v = double(&args[0]);
    logarithm(v > 0.0, || v.log10(), ctx)
}

/// Without a seed any number; with one, MySQL's own generator.
pub(crate) fn rand<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Double(match args.first() {
        None => (ctx.next_random() >> 11) as f64 / (1u64 << 53) as f64,
        Some(seed) => {
            let seed = int(seed);
            match info.is_constant_seed() {
                true => ctx.next_seeded(std::ptr::from_ref(info).addr(), seed),
                false => SeededRandom::new(seed).next(),
            }
        }
    }))
}

/// INTERVAL(n, a, b, …): how many of the ascending numbers do not exceed the first; −1 for NULL.
pub(crate) fn interval<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let Some((number, bounds)) = args.split_first() else { return Ok(Datum::Null) };
    if number.is_null() {
        return Ok(Datum::Int(-1));
    }
    let exceeds = |bound: &Datum<'_>| compare(bound, number, Collation::BINARY).is_some_and(Ordering::is_gt);
    let passed = bounds.iter().position(exceeds).unwrap_or(bounds.len());
    Ok(Datum::Int(passed as i64))
}

pub(crate) fn greatest<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    extreme(args, info, Ordering::is_ge)
}

pub(crate) fn least<'a>(args: Args<'_, 'a>, info: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    extreme(args, info, Ordering::is_lt)
}

/// Of strings that are equal, GREATEST gives the last, LEAST the first.
fn extreme<'a>(args: Args<'_, 'a>, info: &CallInfo, wanted: fn(Ordering) -> bool) -> EvalResult<Datum<'a>> {
    let by = Comparer::of(&info.ty);
    let mut best = 0;
    for i in 1..args.len() {
        if by.compare(&args[i], &args[best]).is_some_and(wanted) {
            best = i;
        }
    }
    Ok(take(&mut args[best]))
}

/// An operand of a bit operation: rounded, negative numbers as their two's complement. Only integers go beyond BIGINT.
fn bits(value: &Datum<'_>, ctx: &EvalContext) -> u64 {
    match value {
        Datum::Int(v) => *v as u64,
        Datum::UInt(v) => *v,
        Datum::Decimal(v) => v.to_i64().unwrap_or_else(|| {
            ctx.note(&EvalError::TruncatedValue { kind: "DECIMAL", value: v.to_string() });
            if v.is_negative() { i64::MIN } else { i64::MAX }
        }) as u64,
        Datum::Float(v) => float_to_bigint(*v) as u64,
        other => double_to_bigint(double(other)) as u64,
    }
}

macro_rules! bit_functions {
    ($($name:ident = $body:expr;)*) => {$(
        pub(crate) fn $name<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
            let function: fn(u64, u64) -> u64 = $body;
            if let Datum::Bytes(_) = &args[0] {
                return strings::$name(args, ctx);
            }
            let second = args.get(1).map_or(0, |arg| bits(arg, ctx));
            Ok(Datum::UInt(function(bits(&args[0], ctx), second)))
        }
    )*};
}

/// Bit operations on byte strings.
mod strings {
    use super::*;

    /// Byte by byte; error 3513 if there are not as many on both sides.
    fn pairwise<'a>(args: Args<'_, 'a>, function: fn(u8, u8) -> u8) -> EvalResult<Datum<'a>> {
        let (a, b) = (text::bytes(&args[0]), text::bytes(&args[1]));
        if a.len() != b.len() {
            return Err(EvalError::BitwiseLengths);
        }
        Ok(made(a.iter().zip(b).map(|(a, b)| function(*a, *b)).collect()))
    }

    fn made<'a>(bytes: Vec<u8>) -> Datum<'a> {
        Datum::Bytes(bytes.into())
    }

    /// As one long number; `at(i)` is the index of the byte that comes to be at `i`, and `rest` bits of its neighbour come along.
    fn shifted<'a>(args: Args<'_, 'a>, left: bool, ctx: &EvalContext) -> Datum<'a> {
        let (bytes, by) = (text::bytes(&args[0]), bits(&args[1], ctx));
        let (whole, rest) = (usize::try_from(by / 8).unwrap_or(usize::MAX), (by % 8) as u32);
        let byte = |at: usize, further: usize| -> u16 {
            let from = if left { at.checked_add(further) } else { at.checked_sub(further) };
            from.and_then(|from| bytes.get(from)).map_or(0, |byte| u16::from(*byte))
        };
        let one = |at: usize| {
            let (near, far) = (byte(at, whole), byte(at, whole.saturating_add(1)));
            if left { (near << rest | far << rest >> 8) as u8 } else { ((far << 8 | near) >> rest) as u8 }
        };
        made((0..bytes.len()).map(one).collect())
    }

    pub(super) fn bit_and<'a>(args: Args<'_, 'a>, _: &EvalContext) -> EvalResult<Datum<'a>> {
        pairwise(args, |a, b| a & b)
    }

    pub(super) fn bit_or<'a>(args: Args<'_, 'a>, _: &EvalContext) -> EvalResult<Datum<'a>> {
        pairwise(args, |a, b| a | b)
    }

    pub(super) fn bit_xor<'a>(args: Args<'_, 'a>, _: &EvalContext) -> EvalResult<Datum<'a>> {
        pairwise(args, |a, b| a ^ b)
    }

    pub(super) fn bit_not<'a>(args: Args<'_, 'a>, _: &EvalContext) -> EvalResult<Datum<'a>> {
        Ok(made(text::bytes(&args[0]).iter().map(|byte| !byte).collect()))
    }

    pub(super) fn shift_left<'a>(args: Args<'_, 'a>, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
        Ok(shifted(args, true, ctx))
    }

    pub(super) fn shift_right<'a>(args: Args<'_, 'a>, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
        Ok(shifted(args, false, ctx))
    }
}

bit_functions! {
    bit_and = |a, b| a & b;
    bit_or = |a, b| a | b;
    bit_xor = |a, b| a ^ b;
    bit_not = |a, _| !a;
    shift_left = |a, b| u32::try_from(b).ok().and_then(|b| a.checked_shl(b)).unwrap_or(0);
    shift_right = |a, b| u32::try_from(b).ok().and_then(|b| a.checked_shr(b)).unwrap_or(0);
}

pub(crate) fn bit_count<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Int(match &args[0] {
        Datum::Bytes(bytes) => bytes.iter().map(|byte| i64::from(byte.count_ones())).sum(),
        number => bits(number, ctx).count_ones().into(),
    }))
}
