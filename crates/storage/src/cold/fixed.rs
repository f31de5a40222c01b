//! Values of fixed width that are not packed as words: floats and decimals beyond 64 bits, and the
//! dictionaries of all types of fixed width. Used in place, without a copy.

use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, i256};

use super::predicate::ColumnPredicate;
use super::types::{Class, ColdType};
use super::value::ColdValue;
use super::words::{Rows, SIGN};
use crate::error::{Result, StorageError};

/// An array of values of one class.
#[derive(Debug, Clone)]
pub enum Fixed {
    Word(ScalarBuffer<i64>),
    F32(ScalarBuffer<f32>),
    F64(ScalarBuffer<f64>),
    Int128(ScalarBuffer<i128>),
    Int256(ScalarBuffer<i256>),
}

/// Applies `$body` to the typed values of a [`Fixed`].
macro_rules! on_fixed {
    ($fixed:expr, $values:ident => $body:expr) => {
        match $fixed {
            $crate::cold::fixed::Fixed::Word($values) => $body,
            $crate::cold::fixed::Fixed::F32($values) => $body,
            $crate::cold::fixed::Fixed::F64($values) => $body,
            $crate::cold::fixed::Fixed::Int128($values) => $body,
            $crate::cold::fixed::Fixed::Int256($values) => $body,
        }
    };
}

impl Fixed {
    /// Takes the bytes of `len` values of a class.
    pub fn parse(class: Class, len: usize, bytes: Buffer) -> Result<Self> {
        Ok(match class {
            Class::Word => Self::Word(typed(len, bytes)?),
            Class::F32 => Self::F32(typed(len, bytes)?),
            Class::F64 => Self::F64(typed(len, bytes)?),
            Class::Int128 => Self::Int128(typed(len, bytes)?),
            Class::Int256 => Self::Int256(typed(len, bytes)?),
            Class::Bytes => return Err(StorageError::corrupt("plain values", "strings have no fixed width")),
        })
    }

    /// Takes as many values as there are.
    pub fn parse_all(class: Class, bytes: Buffer) -> Result<Self> {
        Self::parse(class, bytes.len() / class.width(), bytes)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        on_fixed!(self, v => v.inner().as_slice().to_vec())
    }

    pub fn len(&self) -> usize {
        on_fixed!(self, v => v.len())
    }

    /// Bytes in memory.
    pub fn size(&self) -> usize {
        on_fixed!(self, v => v.inner().len())
    }

    /// The value at `at` of a column of type `ty`.
    pub fn get(&self, at: usize, ty: ColdType) -> ColdValue<'static> {
        match self {
            Self::Word(v) => word_value(v[at], ty),
            Self::F32(v) => ColdValue::F32(v[at]),
            Self::F64(v) => ColdValue::F64(v[at]),
            Self::Int128(v) => ColdValue::Int128(v[at]),
            Self::Int256(v) => ColdValue::Int256(v[at]),
        }
    }

    /// Clears the bits of rows whose values fail the predicate.
    pub fn filter(&self, pred: &ColumnPredicate, ty: ColdType, selected: &mut [u64]) {
        for (at, word) in selected.iter_mut().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if !pred.matches(&self.get(at * 64 + bit, ty)) {
                    *word &= !(1 << bit);
                }
            }
        }
    }
}

fn typed<T: ArrowNativeType>(len: usize, bytes: Buffer) -> Result<ScalarBuffer<T>> {
    let aligned = bytes.as_ptr().align_offset(align_of::<T>()) == 0;
    if Some(bytes.len()) != len.checked_mul(size_of::<T>()) || !aligned {
        return Err(StorageError::corrupt(
            "plain values",
            format_args!("{} bytes for {len} values", bytes.len()),
        ));
    }
    Ok(ScalarBuffer::new(bytes, 0, len))
}

/// The rows asked for of plain values: in place for a range.
pub fn pick<T: ArrowNativeType>(values: &ScalarBuffer<T>, rows: &Rows<'_>) -> ScalarBuffer<T> {
    match rows {
        Rows::Range(range) => values.slice(range.start, range.len()),
        Rows::List(list) => list.iter().map(|&r| values[r as usize]).collect::<Vec<_>>().into(),
    }
}

/// What a word of a column of type `ty` stands for.
pub fn word_value(word: i64, ty: ColdType) -> ColdValue<'static> {
    match ty {
        ColdType::UInt64 => ColdValue::UInt(word as u64 ^ SIGN),
        ColdType::Decimal128(..) => ColdValue::Int128(i128::from(word)),
        ColdType::Decimal256(..) => ColdValue::Int256(i256::from_i128(i128::from(word))),
        ty if ty.is_unsigned() => ColdValue::UInt(word as u64),
        _ => ColdValue::Int(word),
    }
}
