//! Loops over arrays, where they mean the same as the row-wise evaluation.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Decimal128Array, PrimitiveArray, Scalar,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::compute::kernels::{cmp, numeric};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Float64Type, Int64Type, i256};

use crate::datum::{Datum, Value};
use crate::decimal::POW10;
use crate::expr::batch::Vector;
use crate::expr::batch::eval::{kernel_error, one_value, operand_datum};
use crate::expr::error::EvalResult;
use crate::expr::program::compare::Comparer;
use crate::expr::program::eval::compare as compare_values;
use crate::expr::{ArithOp, CompareOp};
use crate::sql_type::SqlType;

type Pair<'x> = &'x [Vector; 2];

/// The comparison for each row.
pub(super) fn compare(
    op: CompareOp,
    by: &Comparer,
    operands: Pair<'_>,
    types: &[SqlType; 2],
    len: usize,
) -> EvalResult<BooleanArray> {
    if let Some(done) = arrow_compare(op, by, operands, types) {
        return done;
    }
    if let (Comparer::Double, Some(left), Some(right)) = (by, doubles(&operands[0]), doubles(&operands[1]))
        && op != CompareOp::NullSafeEq
    {
        let nulls = NullBuffer::union(left.nulls.as_ref(), right.nulls.as_ref());
        let holds = |row| left.at(row).partial_cmp(&right.at(row)).is_some_and(|ordering| op.holds(ordering));
        return Ok(BooleanArray::new(BooleanBuffer::collect_bool(len, holds), nulls));
    }
    let row = |row| {
        let (left, right) =
            (operand_datum(&operands[0], row, &types[0]), operand_datum(&operands[1], row, &types[1]));
        compare_values(op, by, &left, &right)
    };
    Ok((0..len).map(row).collect())
}

/// By Arrow's kernels, where both sides have one Arrow type, or one is a constant of the other's, and order is the
/// same: not for doubles (−0 and 0 differ to Arrow), nor for collated strings.
fn arrow_compare(
    op: CompareOp,
    by: &Comparer,
    operands: Pair<'_>,
    types: &[SqlType; 2],
) -> Option<EvalResult<BooleanArray>> {
    match by {
        Comparer::Double | Comparer::Json => return None,
        Comparer::Text(collation) if !collation.is_exact() => return None,
        _ => {}
    }
    let run = |left: &dyn arrow::array::Datum, right: &dyn arrow::array::Datum| {
        match op {
            CompareOp::Eq => cmp::eq(left, right),
            CompareOp::NullSafeEq => cmp::not_distinct(left, right),
            CompareOp::Ne => cmp::neq(left, right),
            CompareOp::Lt => cmp::lt(left, right),
            CompareOp::Le => cmp::lt_eq(left, right),
            CompareOp::Gt => cmp::gt(left, right),
            CompareOp::Ge => cmp::gt_eq(left, right),
        }
        .map_err(kernel_error)
    };
    match operands {
        [Vector::Array(left), Vector::Array(right)] if left.data_type() == right.data_type() => {
            Some(run(left, right))
        }
        [Vector::Array(left), Vector::Const(right)] => {
            Some(run(left, &Scalar::new(constant_as(right, &types[0])?)))
        }
        [Vector::Const(left), Vector::Array(right)] => {
            Some(run(&Scalar::new(constant_as(left, &types[1])?), right))
        }
        _ => None,
    }
}

/// A constant as one value of exactly this type, if it is one.
fn constant_as(value: &Value, ty: &SqlType) -> Option<ArrayRef> {
    let value = match (value, ty) {
        (Datum::Int(v), ty) if ty.is_coded() => Datum::UInt(u64::try_from(*v).ok()?),
        (Datum::Int(v), SqlType::Int { unsigned: true, .. } | SqlType::Year) => {
            Datum::UInt(u64::try_from(*v).ok()?)
        }
        (Datum::UInt(v), SqlType::Bool | SqlType::Int { unsigned: false, .. }) => {
            Datum::Int(i64::try_from(*v).ok()?)
        }
        (Datum::Decimal(v), SqlType::Decimal { precision, scale, .. }) => {
            let scaled = v.rescale(*scale).ok()?;
            if scaled != *v || !scaled.fits(*precision, *scale) {
                return None;
            }
            Datum::Decimal(scaled)
        }
        (Datum::Null, _) | (_, SqlType::Null) => return None,
        (value, _) => value.clone(),
    };
    let fits = match (&value, ty) {
        (Datum::Int(v), SqlType::Bool) => i8::try_from(*v).is_ok(),
        (Datum::Int(v), SqlType::Int { .. }) => fits_width(i128::from(*v), &ty.arrow_type()),
        (Datum::UInt(v), ty) if ty.is_coded() => fits_width(i128::from(*v), &ty.arrow_type()),
        (Datum::UInt(v), SqlType::Int { .. } | SqlType::Year) => fits_width(i128::from(*v), &ty.arrow_type()),
        _ => true,
    };
    fits.then(|| one_value(&value, ty))
}

fn fits_width(v: i128, ty: &DataType) -> bool {
    match ty {
        DataType::Int8 => i8::try_from(v).is_ok(),
        DataType::Int16 => i16::try_from(v).is_ok(),
        DataType::Int32 => i32::try_from(v).is_ok(),
        DataType::Int64 => i64::try_from(v).is_ok(),
        DataType::UInt8 => u8::try_from(v).is_ok(),
        DataType::UInt16 => u16::try_from(v).is_ok(),
        DataType::UInt32 => u32::try_from(v).is_ok(),
        _ => u64::try_from(v).is_ok(),
    }
}

/// Numbers of one machine type out of an operand.
struct Numbers<T> {
    values: Values<T>,
    nulls: Option<NullBuffer>,
}

enum Values<T> {
    Each(Vec<T>),
    One(T),
}

impl<T: Copy> Numbers<T> {
    #[inline]
    fn at(&self, row: usize) -> T {
        match &self.values {
            Values::Each(values) => values[row],
            Values::One(value) => *value,
        }
    }

    fn of_array<A: ArrowPrimitiveType>(array: &ArrayRef, convert: impl Fn(A::Native) -> T) -> Self {
        let array = array.as_primitive::<A>();
        Self {
            values: Values::Each(array.values().iter().map(|v| convert(*v)).collect()),
            nulls: array.nulls().cloned(),
        }
    }
}

fn doubles(operand: &Vector) -> Option<Numbers<f64>> {
    match operand {
        Vector::Const(Datum::Double(v)) => Some(Numbers { values: Values::One(*v), nulls: None }),
        Vector::Array(array) => match array.data_type() {
            DataType::Float64 => Some(Numbers::of_array::<Float64Type>(array, |v| v)),
            DataType::Float32 => Some(Numbers::of_array::<arrow::datatypes::Float32Type>(array, f64::from)),
            _ => None,
        },
        Vector::Const(_) => None,
    }
}

/// Decimals whose unscaled values all fit an `i128`.
struct Decimals {
    values: Unscaled,
    nulls: Option<NullBuffer>,
    /// All of them, those under NULLs too, fit an `i64`.
    are_short: bool,
}

enum Unscaled {
    Each(ScalarBuffer<i128>),
    One(i128),
}

impl Decimals {
    /// The operand's, brought to `scale` if that is not below theirs.
    fn of(operand: &Vector, ty: &SqlType, scale: u8) -> Option<Self> {
        let SqlType::Decimal { scale: own, .. } = *ty else { return None };
        let factor = *POW10.get(usize::from(scale.checked_sub(own)?))?;
        let (mut values, nulls) = match operand {
            Vector::Const(Datum::Decimal(v)) => (Unscaled::One(v.rescale(own).ok()?.as_i128()?), None),
            Vector::Array(array) => match array.data_type() {
                DataType::Decimal128(..) => {
                    let array = array.as_primitive::<Decimal128Type>();
                    (Unscaled::Each(array.values().clone()), array.nulls().cloned())
                }
                DataType::Decimal256(..) => {
                    let wide = array.as_primitive::<Decimal256Type>();
                    let values = wide.values().iter().map(|v| v.to_i128()).collect::<Option<Vec<_>>>()?;
                    (Unscaled::Each(values.into()), wide.nulls().cloned())
                }
                _ => return None,
            },
            Vector::Const(_) => return None,
        };
        if factor != 1 {
            values = match values {
                Unscaled::One(v) => Unscaled::One(v.checked_mul(factor)?),
                Unscaled::Each(values) => {
                    let scaled = values.iter().map(|v| v.checked_mul(factor));
                    Unscaled::Each(scaled.collect::<Option<Vec<_>>>()?.into())
                }
            };
        }
        let are_short = match &values {
            Unscaled::One(v) => i64::try_from(*v).is_ok(),
            // The bits in which a value differs from its sign.
            Unscaled::Each(values) => values.iter().fold(0, |bits, v| bits | (v ^ (v >> 127))) >> 63 == 0,
        };
        Some(Self { values, nulls, are_short })
    }
}

/// A function of each row's two values, a loop for each form of the operands.
fn zipped(left: &Unscaled, right: &Unscaled, len: usize, of: impl Fn(i128, i128) -> i128) -> Vec<i128> {
    match (left, right) {
        (Unscaled::Each(left), Unscaled::Each(right)) => {
            left.iter().zip(right.iter()).map(|(left, right)| of(*left, *right)).collect()
        }
        (Unscaled::Each(left), Unscaled::One(right)) => left.iter().map(|left| of(*left, *right)).collect(),
        (Unscaled::One(left), Unscaled::Each(right)) => right.iter().map(|right| of(*left, *right)).collect(),
        (Unscaled::One(left), Unscaled::One(right)) => vec![of(*left, *right); len],
    }
}

/// As [`zipped`], where the function may have no answer.
fn checked(
    left: &Unscaled,
    right: &Unscaled,
    len: usize,
    of: impl Fn(i128, i128) -> Option<i128>,
) -> Option<Vec<i128>> {
    let at = |values: &Unscaled, row: usize| match values {
        Unscaled::Each(values) => values[row],
        Unscaled::One(value) => *value,
    };
    (0..len).map(|row| of(at(left, row), at(right, row))).collect()
}

/// Arithmetic for all rows; `None` for what is left to the row-wise node: divisions, overflows, mixed types.
pub(super) fn arith(
    op: ArithOp,
    operands: Pair<'_>,
    types: &[SqlType; 2],
    ty: &SqlType,
    len: usize,
) -> Option<ArrayRef> {
    if operands.iter().all(|operand| matches!(operand, Vector::Const(_))) {
        return None;
    }
    match ty {
        SqlType::Int { unsigned: false, .. } => int_arith(op, operands),
        SqlType::Double(_) => double_arith(op, operands, len),
        SqlType::Decimal { .. } => decimal_arith(op, operands, types, ty, len),
        _ => None,
    }
}

/// Signed integers, checked.
fn int_arith(op: ArithOp, operands: Pair<'_>) -> Option<ArrayRef> {
    let wide = |operand: &Vector| -> Option<(ArrayRef, bool)> {
        match operand {
            Vector::Const(Datum::Int(v)) => {
                Some((Arc::new(PrimitiveArray::<Int64Type>::from_value(*v, 1)), true))
            }
            Vector::Const(_) => None,
            Vector::Array(array) => match array.data_type() {
                DataType::Int64 => Some((array.clone(), false)),
                DataType::Int8 | DataType::Int16 | DataType::Int32 => {
                    Some((arrow::compute::cast(array, &DataType::Int64).ok()?, false))
                }
                _ => None,
            },
        }
    };
    let run = |left: &dyn arrow::array::Datum, right: &dyn arrow::array::Datum| match op {
        ArithOp::Add => numeric::add(left, right).ok(),
        ArithOp::Sub => numeric::sub(left, right).ok(),
        ArithOp::Mul => numeric::mul(left, right).ok(),
        _ => None,
    };
    match (wide(&operands[0])?, wide(&operands[1])?) {
        ((left, true), (right, false)) => run(&Scalar::new(left), &right),
        ((left, false), (right, true)) => run(&left, &Scalar::new(right)),
        ((left, _), (right, _)) => run(&left, &right),
    }
}

fn double_arith(op: ArithOp, operands: Pair<'_>, len: usize) -> Option<ArrayRef> {
    let (left, right) = (doubles(&operands[0])?, doubles(&operands[1])?);
    let function: fn(f64, f64) -> f64 = match op {
        ArithOp::Add => |a, b| a + b,
        ArithOp::Sub => |a, b| a - b,
        ArithOp::Mul => |a, b| a * b,
        _ => return None,
    };
    let nulls = NullBuffer::union(left.nulls.as_ref(), right.nulls.as_ref());
    let values: Vec<f64> = (0..len).map(|row| function(left.at(row), right.at(row))).collect();
    let finite =
        (0..len).all(|row| values[row].is_finite() || nulls.as_ref().is_some_and(|n| n.is_null(row)));
    finite.then(|| Arc::new(PrimitiveArray::<Float64Type>::new(values.into(), nulls)) as ArrayRef)
}

fn decimal_arith(
    op: ArithOp,
    operands: Pair<'_>,
    types: &[SqlType; 2],
    ty: &SqlType,
    len: usize,
) -> Option<ArrayRef> {
    let SqlType::Decimal { precision, scale, .. } = *ty else { return None };
    let scale_of = |ty: &SqlType| match ty {
        SqlType::Decimal { scale, .. } => *scale,
        _ => 0,
    };
    let (left_scale, right_scale) = (scale_of(&types[0]), scale_of(&types[1]));
    let of = |at: usize, scale| Decimals::of(&operands[at], &types[at], scale);
    let (left, right) = match op {
        ArithOp::Add | ArithOp::Sub => (of(0, scale)?, of(1, scale)?),
        ArithOp::Mul if left_scale + right_scale == scale => (of(0, left_scale)?, of(1, right_scale)?),
        _ => return None,
    };
    let nulls = NullBuffer::union(left.nulls.as_ref(), right.nulls.as_ref());
    let (a, b) = (&left.values, &right.values);
    let values = match (op, left.are_short && right.are_short) {
        // None of these overflows.
        (ArithOp::Add, true) => zipped(a, b, len, i128::wrapping_add),
        (ArithOp::Sub, true) => zipped(a, b, len, i128::wrapping_sub),
        (ArithOp::Mul, true) => zipped(a, b, len, |a, b| i128::from(a as i64) * i128::from(b as i64)),
        (ArithOp::Add, false) => checked(a, b, len, i128::checked_add)?,
        (ArithOp::Sub, false) => checked(a, b, len, i128::checked_sub)?,
        _ => checked(a, b, len, i128::checked_mul)?,
    };
    Some(match ty.arrow_type() {
        DataType::Decimal128(..) => Arc::new(
            Decimal128Array::new(values.into(), nulls)
                .with_precision_and_scale(precision, scale as i8)
                .ok()?,
        ),
        _ => {
            let wide: Vec<i256> = values.into_iter().map(i256::from_i128).collect();
            let array = PrimitiveArray::<Decimal256Type>::new(wide.into(), nulls);
            Arc::new(array.with_precision_and_scale(precision, scale as i8).ok()?)
        }
    })
}
