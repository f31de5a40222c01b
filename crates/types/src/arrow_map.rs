//! Values in and out of Arrow arrays.
//!
//! `ColumnBuilder` gathers one column of hot rows, from `Datum`s or straight from row images; `datum_at` reads one value of
//! an array back. Which array a type has is `SqlType::arrow_type`'s business; the two must agree.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryViewBuilder, NullArray, PrimitiveBuilder,
    StringViewBuilder,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, DurationMicrosecondType, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type, i256,
};

use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::row::{RowRef, Storage};
use crate::sql_type::SqlType;

/// Builds the array of one column.
pub struct ColumnBuilder {
    storage: Storage,
    scale: u8,
    array: Builder,
}

enum Builder {
    Null(usize),
    I8(PrimitiveBuilder<Int8Type>),
    U8(PrimitiveBuilder<UInt8Type>),
    I16(PrimitiveBuilder<Int16Type>),
    U16(PrimitiveBuilder<UInt16Type>),
    I32(PrimitiveBuilder<Int32Type>),
    U32(PrimitiveBuilder<UInt32Type>),
    I64(PrimitiveBuilder<Int64Type>),
    U64(PrimitiveBuilder<UInt64Type>),
    F32(PrimitiveBuilder<Float32Type>),
    F64(PrimitiveBuilder<Float64Type>),
    Dec128(PrimitiveBuilder<Decimal128Type>),
    Dec256(PrimitiveBuilder<Decimal256Type>),
    Date(PrimitiveBuilder<Date32Type>),
    Micros(PrimitiveBuilder<TimestampMicrosecondType>),
    Time(PrimitiveBuilder<DurationMicrosecondType>),
    Str(StringViewBuilder),
    Bytes(BinaryViewBuilder),
}

impl ColumnBuilder {
    pub fn new(ty: &SqlType, capacity: usize) -> Self {
        fn primitive<T: ArrowPrimitiveType>(capacity: usize) -> PrimitiveBuilder<T> {
            PrimitiveBuilder::with_capacity(capacity)
        }
        let array = match ty.arrow_type() {
            DataType::Int8 => Builder::I8(primitive(capacity)),
            DataType::UInt8 => Builder::U8(primitive(capacity)),
            DataType::Int16 => Builder::I16(primitive(capacity)),
            DataType::UInt16 => Builder::U16(primitive(capacity)),
            DataType::Int32 => Builder::I32(primitive(capacity)),
            DataType::UInt32 => Builder::U32(primitive(capacity)),
            DataType::Int64 => Builder::I64(primitive(capacity)),
            DataType::UInt64 => Builder::U64(primitive(capacity)),
            DataType::Float32 => Builder::F32(primitive(capacity)),
            DataType::Float64 => Builder::F64(primitive(capacity)),
            ty @ DataType::Decimal128(..) => Builder::Dec128(primitive(capacity).with_data_type(ty)),
            ty @ DataType::Decimal256(..) => Builder::Dec256(primitive(capacity).with_data_type(ty)),
            DataType::Date32 => Builder::Date(primitive(capacity)),
            DataType::Timestamp(..) => Builder::Micros(primitive(capacity)),
            DataType::Duration(_) => Builder::Time(primitive(capacity)),
            DataType::Utf8View => Builder::Str(StringViewBuilder::with_capacity(capacity)),
            DataType::BinaryView => Builder::Bytes(BinaryViewBuilder::with_capacity(capacity)),
            _ => Builder::Null(0),
        };
        let scale = if let SqlType::Decimal { scale, .. } = ty { *scale } else { 0 };
        Self { storage: Storage::of(ty), scale, array }
    }

    /// Appends a value of the column's type, a decimal also at another scale.
    ///
    /// # Panics
    /// If the value is of another variant than the type uses.
    pub fn append(&mut self, value: &Datum<'_>) {
        if value.is_null() {
            self.append_null();
            return;
        }
        let scale = self.scale;
        match (&mut self.array, value) {
            (Builder::I8(b), Datum::Int(v)) => b.append_value(*v as i8),
            (Builder::U8(b), Datum::UInt(v)) => b.append_value(*v as u8),
            (Builder::I16(b), Datum::Int(v)) => b.append_value(*v as i16),
            (Builder::U16(b), Datum::UInt(v)) => b.append_value(*v as u16),
            (Builder::I32(b), Datum::Int(v)) => b.append_value(*v as i32),
            (Builder::U32(b), Datum::UInt(v)) => b.append_value(*v as u32),
            (Builder::I64(b), Datum::Int(v)) => b.append_value(*v),
            (Builder::U64(b), Datum::UInt(v)) => b.append_value(*v),
            (Builder::F32(b), Datum::Float(v)) => b.append_value(*v),
            (Builder::F64(b), Datum::Double(v)) => b.append_value(*v),
            (Builder::Dec128(b), Datum::Decimal(v)) => {
                let v = v.rescale(scale).ok().and_then(|v| v.as_i128());
                b.append_value(v.expect("a decimal of the column's precision fits 128 bits"));
            }
            (Builder::Dec256(b), Datum::Decimal(v)) => {
                let v = v.rescale(scale).expect("a decimal of the column's precision fits 256 bits");
                b.append_value(v.as_i256());
            }
            (Builder::Date(b), Datum::Date(v)) => b.append_value(*v),
            (Builder::Micros(b), Datum::DateTime(v)) => b.append_value(*v),
            (Builder::Time(b), Datum::Time(v)) => b.append_value(*v),
            (Builder::Str(b), Datum::Str(v)) => b.append_value(v),
            (Builder::Bytes(b), Datum::Bytes(v)) => b.append_value(v),
            (_, value) => unreachable!("a {:?} column was given {value:?}", self.storage),
        }
    }

    pub fn append_null(&mut self) {
        match &mut self.array {
            Builder::Null(len) => *len += 1,
            Builder::I8(b) => b.append_null(),
            Builder::U8(b) => b.append_null(),
            Builder::I16(b) => b.append_null(),
            Builder::U16(b) => b.append_null(),
            Builder::I32(b) => b.append_null(),
            Builder::U32(b) => b.append_null(),
            Builder::I64(b) => b.append_null(),
            Builder::U64(b) => b.append_null(),
            Builder::F32(b) => b.append_null(),
            Builder::F64(b) => b.append_null(),
            Builder::Dec128(b) => b.append_null(),
            Builder::Dec256(b) => b.append_null(),
            Builder::Date(b) => b.append_null(),
            Builder::Micros(b) => b.append_null(),
            Builder::Time(b) => b.append_null(),
            Builder::Str(b) => b.append_null(),
            Builder::Bytes(b) => b.append_null(),
        }
    }

    /// Appends a column of one row.
    #[inline]
    pub fn append_row(&mut self, row: &RowRef<'_>, column: usize) {
        self.append_rows(std::iter::once(*row), column);
    }

    /// Appends a column of many rows. One dispatch for all of them: gather column by column.
    pub fn append_rows<'r>(&mut self, rows: impl IntoIterator<Item = RowRef<'r>>, column: usize) {
        /// Stored bytes to what the array holds.
        macro_rules! gather {
            ($builder:expr, $rows:expr, $stored:ty => |$v:ident| $value:expr) => {
                for row in $rows {
                    if row.is_null(column) {
                        $builder.append_null();
                    } else {
                        let $v = <$stored>::from_le_bytes(row.raw(column));
                        $builder.append_value($value);
                    }
                }
            };
        }
        match (&mut self.array, self.storage) {
            (Builder::Null(len), _) => *len += rows.into_iter().count(),
            (Builder::I8(b), _) => gather!(b, rows, i8 => |v| v),
            (Builder::U8(b), _) => gather!(b, rows, u8 => |v| v),
            (Builder::I16(b), _) => gather!(b, rows, i16 => |v| v),
            (Builder::U16(b), _) => gather!(b, rows, u16 => |v| v),
            (Builder::I32(b), _) => gather!(b, rows, i32 => |v| v),
            (Builder::U32(b), _) => gather!(b, rows, u32 => |v| v),
            (Builder::I64(b), _) => gather!(b, rows, i64 => |v| v),
            (Builder::U64(b), _) => gather!(b, rows, u64 => |v| v),
            (Builder::F32(b), _) => gather!(b, rows, f32 => |v| v),
            (Builder::F64(b), _) => gather!(b, rows, f64 => |v| v),
            (Builder::Dec128(b), Storage::Dec64) => gather!(b, rows, i64 => |v| v.into()),
            (Builder::Dec128(b), _) => gather!(b, rows, i128 => |v| v),
            (Builder::Dec256(b), _) => gather!(b, rows, i256 => |v| v),
            (Builder::Date(b), _) => gather!(b, rows, i32 => |v| v),
            (Builder::Micros(b), _) => gather!(b, rows, i64 => |v| v),
            (Builder::Time(b), _) => gather!(b, rows, i64 => |v| v),
            (Builder::Str(b), _) => {
                for row in rows {
                    match row.get(column) {
                        Datum::Str(s) => b.append_value(s),
                        _ => b.append_null(),
                    }
                }
            }
            (Builder::Bytes(b), _) => {
                for row in rows {
                    if row.is_null(column) { b.append_null() } else { b.append_value(row.var_bytes(column)) }
                }
            }
        }
    }

    /// Values appended since the start or the last `finish`.
    pub fn len(&self) -> usize {
        match &self.array {
            Builder::Null(len) => *len,
            Builder::I8(b) => b.values_slice().len(),
            Builder::U8(b) => b.values_slice().len(),
            Builder::I16(b) => b.values_slice().len(),
            Builder::U16(b) => b.values_slice().len(),
            Builder::I32(b) => b.values_slice().len(),
            Builder::U32(b) => b.values_slice().len(),
            Builder::I64(b) => b.values_slice().len(),
            Builder::U64(b) => b.values_slice().len(),
            Builder::F32(b) => b.values_slice().len(),
            Builder::F64(b) => b.values_slice().len(),
            Builder::Dec128(b) => b.values_slice().len(),
            Builder::Dec256(b) => b.values_slice().len(),
            Builder::Date(b) => b.values_slice().len(),
            Builder::Micros(b) => b.values_slice().len(),
            Builder::Time(b) => b.values_slice().len(),
            Builder::Str(b) => arrow::array::ArrayBuilder::len(b),
            Builder::Bytes(b) => arrow::array::ArrayBuilder::len(b),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The array of what was appended; the builder is empty then.
    pub fn finish(&mut self) -> ArrayRef {
        match &mut self.array {
            Builder::Null(len) => Arc::new(NullArray::new(std::mem::take(len))),
            Builder::I8(b) => Arc::new(b.finish()),
            Builder::U8(b) => Arc::new(b.finish()),
            Builder::I16(b) => Arc::new(b.finish()),
            Builder::U16(b) => Arc::new(b.finish()),
            Builder::I32(b) => Arc::new(b.finish()),
            Builder::U32(b) => Arc::new(b.finish()),
            Builder::I64(b) => Arc::new(b.finish()),
            Builder::U64(b) => Arc::new(b.finish()),
            Builder::F32(b) => Arc::new(b.finish()),
            Builder::F64(b) => Arc::new(b.finish()),
            Builder::Dec128(b) => Arc::new(b.finish()),
            Builder::Dec256(b) => Arc::new(b.finish()),
            Builder::Date(b) => Arc::new(b.finish()),
            Builder::Micros(b) => Arc::new(b.finish()),
            Builder::Time(b) => Arc::new(b.finish()),
            Builder::Str(b) => Arc::new(b.finish()),
            Builder::Bytes(b) => Arc::new(b.finish()),
        }
    }
}

/// The value of an array at `row`, as type `ty`. Besides the type's own array (`SqlType::arrow_type`) it reads others
/// of the same kind that DataFusion makes: wider integers, plain strings, booleans, decimals of another scale.
///
/// # Panics
/// If `row` is not in the array, or the array is of a kind that no SQL type has.
pub fn datum_at<'a>(array: &'a dyn Array, row: usize, ty: &SqlType) -> Datum<'a> {
    if array.is_null(row) {
        return Datum::Null;
    }
    let int = |v: i64| if ty.is_unsigned() { Datum::UInt(v as u64) } else { Datum::Int(v) };
    let uint = |v: u64| match i64::try_from(v) {
        Ok(v) if !ty.is_unsigned() => Datum::Int(v),
        _ => Datum::UInt(v),
    };
    match array.data_type() {
        DataType::Null => Datum::Null,
        DataType::Boolean => int(array.as_boolean().value(row).into()),
        DataType::Int8 => int(array.as_primitive::<Int8Type>().value(row).into()),
        DataType::UInt8 => uint(array.as_primitive::<UInt8Type>().value(row).into()),
        DataType::Int16 => int(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::UInt16 => uint(array.as_primitive::<UInt16Type>().value(row).into()),
        DataType::Int32 => int(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::UInt32 => uint(array.as_primitive::<UInt32Type>().value(row).into()),
        DataType::Int64 => int(array.as_primitive::<Int64Type>().value(row)),
        DataType::UInt64 => uint(array.as_primitive::<UInt64Type>().value(row)),
        DataType::Float32 => Datum::Float(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => Datum::Double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, scale) => {
            Datum::Decimal(Decimal::new(array.as_primitive::<Decimal128Type>().value(row), *scale as u8))
        }
        DataType::Decimal256(_, scale) => Datum::Decimal(Decimal::from_i256(
            array.as_primitive::<Decimal256Type>().value(row),
            *scale as u8,
        )),
        DataType::Date32 => Datum::Date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(..) => {
            Datum::DateTime(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Duration(_) => Datum::Time(array.as_primitive::<DurationMicrosecondType>().value(row)),
        DataType::Utf8View => Datum::str(array.as_string_view().value(row)),
        DataType::Utf8 => Datum::str(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Datum::str(array.as_string::<i64>().value(row)),
        DataType::BinaryView => Datum::bytes(array.as_binary_view().value(row)),
        DataType::Binary => Datum::bytes(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Datum::bytes(array.as_binary::<i64>().value(row)),
        other => unreachable!("no SQL type has arrays of {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::RowLayout;
    use crate::sql_type::{IntWidth, LobSize};
    use crate::{Collation, Value};

    fn members(count: usize) -> crate::Members {
        let names = (0..count).map(|n| format!("m{n}")).collect();
        crate::Members::new(names, Collation::DEFAULT).expect("distinct names")
    }

    fn samples() -> Vec<(SqlType, Value)> {
        let int = |width, unsigned| SqlType::Int { width, unsigned };
        let decimal = |precision| SqlType::Decimal { precision, scale: 2, unsigned: false };
        vec![
            (SqlType::Bool, Datum::Int(1)),
            (int(IntWidth::W8, true), Datum::UInt(255)),
            (int(IntWidth::W16, false), Datum::Int(-5)),
            (int(IntWidth::W24, true), Datum::UInt(1 << 23)),
            (SqlType::INT, Datum::Int(i32::MIN.into())),
            (SqlType::BIGINT_UNSIGNED, Datum::UInt(u64::MAX)),
            (decimal(12), Datum::Decimal(Decimal::new(-12345, 2))),
            (decimal(38), Datum::Decimal(Decimal::new(1 << 100, 2))),
            (decimal(65), Datum::Decimal(Decimal::max_of(65, 2, true))),
            (SqlType::FLOAT, Datum::Float(0.5)),
            (SqlType::DOUBLE, Datum::Double(-1e300)),
            (SqlType::VarChar { len: 9, collation: Collation::DEFAULT }, Datum::Str("short".into())),
            (
                SqlType::Text { size: LobSize::Normal, collation: Collation::DEFAULT },
                Datum::Str("löng".repeat(9).into()),
            ),
            (SqlType::Blob { size: LobSize::Normal }, Datum::Bytes(vec![0, 255].into())),
            (SqlType::Date, Datum::Date(-1)),
            (SqlType::DateTime { fsp: 6 }, Datum::DateTime(-1)),
            (SqlType::Timestamp { fsp: 0 }, Datum::DateTime(1_000_000)),
            (SqlType::Time { fsp: 0 }, Datum::Time(-1_000_000)),
            (SqlType::Year, Datum::UInt(2020)),
            (SqlType::Enum(members(300)), Datum::UInt(300)),
            (SqlType::Set(members(24)), Datum::UInt((1 << 24) - 1)),
            (SqlType::Set(members(64)), Datum::UInt(u64::MAX)),
            (SqlType::Bit { len: 1 }, Datum::UInt(1)),
            (SqlType::Bit { len: 33 }, Datum::UInt(1 << 32)),
        ]
    }

    #[test]
    fn values_and_rows_make_the_same_arrays() {
        let (types, row): (Vec<_>, Vec<_>) = samples().into_iter().unzip();
        let nulls = vec![Datum::Null; row.len()];
        let layout = RowLayout::new(&types);
        let (mut image, mut null_image) = (Vec::new(), Vec::new());
        layout.encode(&row, &mut image);
        layout.encode(&nulls, &mut null_image);
        let views = [layout.view(&image).expect("valid"), layout.view(&null_image).expect("valid")];
        for (column, ty) in types.iter().enumerate() {
            let (mut by_value, mut by_row) = (ColumnBuilder::new(ty, 2), ColumnBuilder::new(ty, 2));
            by_value.append(&row[column]);
            by_value.append_null();
            by_row.append_rows(views, column);
            assert_eq!(by_row.len(), 2);
            let (a, b) = (by_value.finish(), by_row.finish());
            assert_eq!(a.data_type(), &ty.arrow_type());
            assert_eq!(&a, &b, "{ty}");
            assert_eq!(format!("{:?}", datum_at(&b, 0, ty)), format!("{:?}", row[column]));
            assert!(datum_at(&b, 1, ty).is_null() && by_row.is_empty());
        }
    }
}
