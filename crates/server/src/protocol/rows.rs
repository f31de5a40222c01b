//! Arrow batches as rows: each array is downcast once, then read value by value.

use std::borrow::Cow;

use arrow::array::{
    Array, AsArray, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray, PrimitiveArray,
    StringArray, StringViewArray,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, DurationMicrosecondType, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use avocet_types::{Datum, Decimal, SqlType};

/// One column of a batch.
pub struct Column<'a> {
    values: Values<'a>,
    nulls: Option<&'a arrow::buffer::NullBuffer>,
}

enum Values<'a> {
    Null,
    I8(&'a PrimitiveArray<Int8Type>),
    I16(&'a PrimitiveArray<Int16Type>),
    I32(&'a PrimitiveArray<Int32Type>),
    I64(&'a PrimitiveArray<Int64Type>),
    U8(&'a PrimitiveArray<UInt8Type>),
    U16(&'a PrimitiveArray<UInt16Type>),
    U32(&'a PrimitiveArray<UInt32Type>),
    U64(&'a PrimitiveArray<UInt64Type>),
    F32(&'a PrimitiveArray<Float32Type>),
    F64(&'a PrimitiveArray<Float64Type>),
    Dec128(&'a PrimitiveArray<Decimal128Type>, u8),
    Dec256(&'a PrimitiveArray<Decimal256Type>, u8),
    Date(&'a PrimitiveArray<Date32Type>),
    DateTime(&'a PrimitiveArray<TimestampMicrosecondType>),
    Time(&'a PrimitiveArray<DurationMicrosecondType>),
    StrView(&'a StringViewArray),
    Str(&'a StringArray),
    LargeStr(&'a LargeStringArray),
    BytesView(&'a BinaryViewArray),
    Bytes(&'a BinaryArray),
    LargeBytes(&'a LargeBinaryArray),
}

/// Whether values of the type are integers here.
const fn is_integer(ty: &SqlType) -> bool {
    ty.is_integer() || ty.is_coded()
}

impl<'a> Column<'a> {
    /// `None` if the array is not one that `ty` can be read from. Besides `ty.arrow_type()` the other widths of
    /// strings are taken, which DataFusion's functions return.
    pub fn new(array: &'a dyn Array, ty: &SqlType) -> Option<Self> {
        let values = match (array.data_type(), ty) {
            (DataType::Null, _) => Values::Null,
            (DataType::Int8, ty) if ty.is_integer() => Values::I8(array.as_primitive()),
            (DataType::Int16, ty) if ty.is_integer() => Values::I16(array.as_primitive()),
            (DataType::Int32, ty) if ty.is_integer() => Values::I32(array.as_primitive()),
            (DataType::Int64, ty) if ty.is_integer() => Values::I64(array.as_primitive()),
            (DataType::UInt8, ty) if is_integer(ty) => Values::U8(array.as_primitive()),
            (DataType::UInt16, ty) if is_integer(ty) => Values::U16(array.as_primitive()),
            (DataType::UInt32, ty) if is_integer(ty) => Values::U32(array.as_primitive()),
            (DataType::UInt64, ty) if is_integer(ty) => Values::U64(array.as_primitive()),
            (DataType::Float32, SqlType::Float(_)) => Values::F32(array.as_primitive()),
            (DataType::Float64, SqlType::Double(_)) => Values::F64(array.as_primitive()),
            (DataType::Decimal128(_, scale), SqlType::Decimal { .. }) => {
                Values::Dec128(array.as_primitive(), u8::try_from(*scale).ok()?)
            }
            (DataType::Decimal256(_, scale), SqlType::Decimal { .. }) => {
                Values::Dec256(array.as_primitive(), u8::try_from(*scale).ok()?)
            }
            (DataType::Date32, SqlType::Date) => Values::Date(array.as_primitive()),
            (
                DataType::Timestamp(TimeUnit::Microsecond, _),
                SqlType::DateTime { .. } | SqlType::Timestamp { .. },
            ) => Values::DateTime(array.as_primitive()),
            (DataType::Duration(TimeUnit::Microsecond), SqlType::Time { .. }) => {
                Values::Time(array.as_primitive())
            }
            (data_type, ty) if ty.is_string() || ty.is_bytes() || *ty == SqlType::Json => {
                Self::string_values(array, data_type)?
            }
            _ => return None,
        };
        Some(Self { values, nulls: array.nulls() })
    }

    fn string_values(array: &'a dyn Array, data_type: &DataType) -> Option<Values<'a>> {
        Some(match data_type {
            DataType::Utf8View => Values::StrView(array.as_string_view()),
            DataType::Utf8 => Values::Str(array.as_string()),
            DataType::LargeUtf8 => Values::LargeStr(array.as_string()),
            DataType::BinaryView => Values::BytesView(array.as_binary_view()),
            DataType::Binary => Values::Bytes(array.as_binary()),
            DataType::LargeBinary => Values::LargeBytes(array.as_binary()),
            _ => return None,
        })
    }

    #[inline]
    pub fn datum(&self, row: usize) -> Datum<'a> {
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return Datum::Null;
        }
        match &self.values {
            Values::Null => Datum::Null,
            Values::I8(a) => Datum::Int(i64::from(a.value(row))),
            Values::I16(a) => Datum::Int(i64::from(a.value(row))),
            Values::I32(a) => Datum::Int(i64::from(a.value(row))),
            Values::I64(a) => Datum::Int(a.value(row)),
            Values::U8(a) => Datum::UInt(u64::from(a.value(row))),
            Values::U16(a) => Datum::UInt(u64::from(a.value(row))),
            Values::U32(a) => Datum::UInt(u64::from(a.value(row))),
            Values::U64(a) => Datum::UInt(a.value(row)),
            Values::F32(a) => Datum::Float(a.value(row)),
            Values::F64(a) => Datum::Double(a.value(row)),
            Values::Dec128(a, scale) => Datum::Decimal(Decimal::new(a.value(row), *scale)),
            Values::Dec256(a, scale) => Datum::Decimal(Decimal::from_i256(a.value(row), *scale)),
            Values::Date(a) => Datum::Date(a.value(row)),
            Values::DateTime(a) => Datum::DateTime(a.value(row)),
            Values::Time(a) => Datum::Time(a.value(row)),
            Values::StrView(a) => Datum::Str(Cow::Borrowed(a.value(row))),
            Values::Str(a) => Datum::Str(Cow::Borrowed(a.value(row))),
            Values::LargeStr(a) => Datum::Str(Cow::Borrowed(a.value(row))),
            Values::BytesView(a) => Datum::Bytes(Cow::Borrowed(a.value(row))),
            Values::Bytes(a) => Datum::Bytes(Cow::Borrowed(a.value(row))),
            Values::LargeBytes(a) => Datum::Bytes(Cow::Borrowed(a.value(row))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, StringViewArray};

    #[test]
    fn arrays_read_as_the_columns_type() {
        let numbers = Int32Array::from(vec![Some(7), None]);
        let column = Column::new(&numbers, &SqlType::INT).expect("an INT array");
        assert!(matches!(column.datum(0), Datum::Int(7)));
        assert!(column.datum(1).is_null());
        let words = StringViewArray::from(vec!["a"]);
        assert!(Column::new(&words, &SqlType::INT).is_none());
        assert!(Column::new(&numbers, &SqlType::Date).is_none());
    }
}
