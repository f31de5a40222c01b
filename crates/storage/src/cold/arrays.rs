//! Arrow arrays out of decoded values: one table from column types to Arrow's primitive types.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowNativeType, Date32Type, Decimal128Type, Decimal256Type, DurationMicrosecondType, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};

use super::fixed::{Fixed, pick};
use super::strings::lookup;
use super::types::ColdType;
use super::value::ColdValue;
use super::views::{view, view_array};
use super::words::{FromWord, Rows, SIGN, Words};
use crate::error::{Result, StorageError};

/// A source of words that can be decoded to any type.
pub trait WordSource {
    fn get<O: FromWord>(&self) -> Result<Vec<O>>;
}

/// Packed words.
pub struct Packed<'a>(pub &'a Words, pub &'a Rows<'a>);

impl WordSource for Packed<'_> {
    fn get<O: FromWord>(&self) -> Result<Vec<O>> {
        Ok(self.0.decode(self.1))
    }
}

/// Dictionary entries and packed codes.
pub struct Coded<'a>(pub &'a [i64], pub &'a Words, pub &'a Rows<'a>);

impl WordSource for Coded<'_> {
    fn get<O: FromWord>(&self) -> Result<Vec<O>> {
        let entries: Vec<O> = self.0.iter().map(|&w| O::from_word(w)).collect();
        lookup(&entries, &self.1.decode::<u32>(self.2))
    }
}

fn primitive<T: ArrowPrimitiveType>(
    ty: ColdType,
    values: ScalarBuffer<T::Native>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(values, nulls).with_data_type(ty.to_arrow()))
}

/// An array of a type that is held as words.
pub fn word_array(ty: ColdType, source: &impl WordSource, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    Ok(match ty {
        ColdType::Int8 => primitive::<Int8Type>(ty, source.get::<i8>()?.into(), nulls),
        ColdType::Int16 => primitive::<Int16Type>(ty, source.get::<i16>()?.into(), nulls),
        ColdType::Int32 => primitive::<Int32Type>(ty, source.get::<i32>()?.into(), nulls),
        ColdType::Int64 => primitive::<Int64Type>(ty, source.get::<i64>()?.into(), nulls),
        ColdType::UInt8 => primitive::<UInt8Type>(ty, source.get::<u8>()?.into(), nulls),
        ColdType::UInt16 => primitive::<UInt16Type>(ty, source.get::<u16>()?.into(), nulls),
        ColdType::UInt32 => primitive::<UInt32Type>(ty, source.get::<u32>()?.into(), nulls),
        ColdType::UInt64 => primitive::<UInt64Type>(ty, source.get::<u64>()?.into(), nulls),
        ColdType::Date32 => primitive::<Date32Type>(ty, source.get::<i32>()?.into(), nulls),
        ColdType::Timestamp => primitive::<TimestampMicrosecondType>(ty, source.get::<i64>()?.into(), nulls),
        ColdType::Duration => primitive::<DurationMicrosecondType>(ty, source.get::<i64>()?.into(), nulls),
        ColdType::Decimal128(..) => primitive::<Decimal128Type>(ty, source.get::<i128>()?.into(), nulls),
        ColdType::Decimal256(..) => {
            primitive::<Decimal256Type>(ty, source.get::<arrow::datatypes::i256>()?.into(), nulls)
        }
        ColdType::Float32 | ColdType::Float64 | ColdType::Utf8 | ColdType::Binary => {
            return Err(StorageError::corrupt("column", format_args!("{ty:?} is not held as integers")));
        }
    })
}

/// A choice of values of any fixed width.
pub trait FixedSource {
    fn get<T: ArrowNativeType>(&self, values: &ScalarBuffer<T>) -> Result<ScalarBuffer<T>>;
}

impl FixedSource for Rows<'_> {
    fn get<T: ArrowNativeType>(&self, values: &ScalarBuffer<T>) -> Result<ScalarBuffer<T>> {
        Ok(pick(values, self))
    }
}

/// Dictionary codes.
impl FixedSource for [u32] {
    fn get<T: ArrowNativeType>(&self, values: &ScalarBuffer<T>) -> Result<ScalarBuffer<T>> {
        Ok(lookup(values, self)?.into())
    }
}

/// An array of a type that is held in full width.
pub fn fixed_array<S: FixedSource + ?Sized>(
    ty: ColdType,
    values: &Fixed,
    source: &S,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    Ok(match values {
        Fixed::F32(v) => primitive::<Float32Type>(ty, source.get(v)?, nulls),
        Fixed::F64(v) => primitive::<Float64Type>(ty, source.get(v)?, nulls),
        Fixed::Int128(v) => primitive::<Decimal128Type>(ty, source.get(v)?, nulls),
        Fixed::Int256(v) => primitive::<Decimal256Type>(ty, source.get(v)?, nulls),
        Fixed::Word(_) => {
            return Err(StorageError::corrupt(
                "column",
                format_args!("{ty:?} is not held as plain integers"),
            ));
        }
    })
}

struct Repeated(i64, usize);

impl WordSource for Repeated {
    fn get<O: FromWord>(&self) -> Result<Vec<O>> {
        Ok(vec![O::from_word(self.0); self.1])
    }
}

/// One value over and over.
#[allow(unsafe_code)]
pub fn constant_array(
    ty: ColdType,
    value: &ColdValue<'_>,
    len: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let word = match value {
        ColdValue::Int(v) => *v,
        ColdValue::UInt(v) if ty == ColdType::UInt64 => (v ^ SIGN) as i64,
        ColdValue::UInt(v) => *v as i64,
        ColdValue::Int128(v) => return Ok(primitive::<Decimal128Type>(ty, vec![*v; len].into(), nulls)),
        ColdValue::Int256(v) => return Ok(primitive::<Decimal256Type>(ty, vec![*v; len].into(), nulls)),
        ColdValue::F32(v) => return Ok(primitive::<Float32Type>(ty, vec![*v; len].into(), nulls)),
        ColdValue::F64(v) => return Ok(primitive::<Float64Type>(ty, vec![*v; len].into(), nulls)),
        ColdValue::Bytes(v) => {
            let views = vec![view(v, 0, v.len()); len];
            // SAFETY: the view is over the value, which was checked to be of type `ty` when it was read.
            return Ok(unsafe { view_array(ty, views, Buffer::from_slice_ref(v.as_ref()), nulls) });
        }
    };
    word_array(ty, &Repeated(word, len), nulls)
}
