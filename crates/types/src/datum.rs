//! One value.

use std::borrow::Cow;

use crate::decimal::Decimal;
use crate::sql_type::{Collation, SqlType};
use crate::temporal;

/// A value of some `SqlType`, borrowed where it can be. Which variants a type uses:
///
/// | type | variant |
/// |---|---|
/// | Bool, signed Int | `Int` |
/// | unsigned Int, Year | `UInt` |
/// | Enum, Set, Bit | `UInt`: number of the member, bits |
/// | Decimal | `Decimal`, at the column's scale |
/// | Float / Double | `Float` / `Double` |
/// | Char, VarChar, Text | `Str` |
/// | Binary, VarBinary, Blob | `Bytes` |
/// | Json | `Bytes`: the binary form (see [`crate::json`]) |
/// | Geometry | `Bytes`: SRID and well-known binary (see [`crate::geometry`]) |
/// | Date | `Date`: days since 1970-01-01 |
/// | DateTime, Timestamp | `DateTime`: microseconds since 1970-01-01 00:00:00 (local time / UTC) |
/// | Time | `Time`: microseconds, signed |
#[derive(Clone, Debug)]
pub enum Datum<'a> {
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    Decimal(Decimal),
    Str(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    Date(i32),
    DateTime(i64),
    Time(i64),
}

/// A value that owns its bytes.
pub type Value = Datum<'static>;

impl<'a> Datum<'a> {
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether it is a date, with or without a time, and the zero date.
    #[inline]
    pub fn has_zero_date(&self) -> bool {
        match self {
            Self::Date(days) => temporal::is_zero_date(*days),
            Self::DateTime(micros) => temporal::has_zero_date(*micros),
            _ => false,
        }
    }

    /// Whether it is the same value to the last byte, not only an equal string.
    pub fn is_same(&self, other: &Datum<'_>) -> bool {
        match (self, other) {
            (Self::Null, Datum::Null) => true,
            (Self::Int(a), Datum::Int(b))
            | (Self::DateTime(a), Datum::DateTime(b))
            | (Self::Time(a), Datum::Time(b)) => a == b,
            (Self::UInt(a), Datum::UInt(b)) => a == b,
            (Self::Float(a), Datum::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Double(a), Datum::Double(b)) => a.to_bits() == b.to_bits(),
            (Self::Decimal(a), Datum::Decimal(b)) => a == b,
            (Self::Str(a), Datum::Str(b)) => a == b,
            (Self::Bytes(a), Datum::Bytes(b)) => a == b,
            (Self::Date(a), Datum::Date(b)) => a == b,
            _ => false,
        }
    }

    pub fn str(s: &'a str) -> Self {
        Self::Str(Cow::Borrowed(s))
    }

    pub fn bytes(b: &'a [u8]) -> Self {
        Self::Bytes(Cow::Borrowed(b))
    }

    /// The type that the value has by itself, texts with `collation`. Wide enough that values of one kind share plans.
    pub fn natural_type(&self, collation: Collation) -> SqlType {
        match self {
            Self::Null => SqlType::Null,
            Self::Int(_) => SqlType::BIGINT,
            Self::UInt(_) => SqlType::BIGINT_UNSIGNED,
            Self::Float(_) => SqlType::FLOAT,
            Self::Double(_) => SqlType::DOUBLE,
            Self::Decimal(v) => SqlType::Decimal { precision: 65, scale: v.scale(), unsigned: false },
            Self::Str(_) => SqlType::VarChar { len: 16_383, collation },
            Self::Bytes(_) => SqlType::VarBinary { len: 65_535 },
            Self::Date(_) => SqlType::Date,
            Self::DateTime(_) => SqlType::DateTime { fsp: 6 },
            Self::Time(_) => SqlType::Time { fsp: 6 },
        }
    }

    pub fn into_owned(self) -> Value {
        match self {
            Self::Null => Datum::Null,
            Self::Int(v) => Datum::Int(v),
            Self::UInt(v) => Datum::UInt(v),
            Self::Float(v) => Datum::Float(v),
            Self::Double(v) => Datum::Double(v),
            Self::Decimal(v) => Datum::Decimal(v),
            Self::Str(v) => Datum::Str(Cow::Owned(v.into_owned())),
            Self::Bytes(v) => Datum::Bytes(Cow::Owned(v.into_owned())),
            Self::Date(v) => Datum::Date(v),
            Self::DateTime(v) => Datum::DateTime(v),
            Self::Time(v) => Datum::Time(v),
        }
    }
}
