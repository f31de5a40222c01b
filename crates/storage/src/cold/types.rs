//! Column types of cold blocks: how they map to Arrow and by what physical class they are stored.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, TimeUnit};
use avocet_base::codec::{Malformed, Put, Reader};

use crate::error::{Result, StorageError};

/// The type of a column of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColdType {
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float32,
    Float64,
    /// Precision and scale.
    Decimal128(u8, i8),
    /// Precision and scale.
    Decimal256(u8, i8),
    /// Days since 1970-01-01.
    Date32,
    /// Microseconds since 1970-01-01, no time zone.
    Timestamp,
    /// Microseconds (MySQL TIME).
    Duration,
    Utf8,
    Binary,
}

/// How values of a type are held: what encodings and comparisons see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Fits a [word](super::words) always.
    Word,
    F32,
    F64,
    /// 128-bit integer; stored as words where all values fit.
    Int128,
    /// 256-bit integer; stored as words where all values fit.
    Int256,
    Bytes,
}

impl Class {
    /// Bytes of a value; 1 for strings, which have no fixed width.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Word | Self::F64 => 8,
            Self::Int128 => 16,
            Self::Int256 => 32,
            Self::Bytes => 1,
        }
    }
}

impl ColdType {
    pub fn from_arrow(ty: &DataType) -> Result<Self> {
        Ok(match ty {
            DataType::Int8 => Self::Int8,
            DataType::Int16 => Self::Int16,
            DataType::Int32 => Self::Int32,
            DataType::Int64 => Self::Int64,
            DataType::UInt8 => Self::UInt8,
            DataType::UInt16 => Self::UInt16,
            DataType::UInt32 => Self::UInt32,
            DataType::UInt64 => Self::UInt64,
            DataType::Float32 => Self::Float32,
            DataType::Float64 => Self::Float64,
            DataType::Decimal128(p, s) => Self::Decimal128(*p, *s),
            DataType::Decimal256(p, s) => Self::Decimal256(*p, *s),
            DataType::Date32 => Self::Date32,
            DataType::Timestamp(TimeUnit::Microsecond, None) => Self::Timestamp,
            DataType::Duration(TimeUnit::Microsecond) => Self::Duration,
            DataType::Utf8 | DataType::Utf8View => Self::Utf8,
            DataType::Binary | DataType::BinaryView => Self::Binary,
            other => return Err(StorageError::Unsupported(format!("no cold column type for {other}"))),
        })
    }

    /// The types of a schema's columns.
    pub fn of_schema(schema: &Schema) -> Result<Arc<[Self]>> {
        schema.fields().iter().map(|f| Self::from_arrow(f.data_type())).collect()
    }

    /// The Arrow type that columns decode to.
    pub fn to_arrow(self) -> DataType {
        match self {
            Self::Int8 => DataType::Int8,
            Self::Int16 => DataType::Int16,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::UInt8 => DataType::UInt8,
            Self::UInt16 => DataType::UInt16,
            Self::UInt32 => DataType::UInt32,
            Self::UInt64 => DataType::UInt64,
            Self::Float32 => DataType::Float32,
            Self::Float64 => DataType::Float64,
            Self::Decimal128(p, s) => DataType::Decimal128(p, s),
            Self::Decimal256(p, s) => DataType::Decimal256(p, s),
            Self::Date32 => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Duration => DataType::Duration(TimeUnit::Microsecond),
            Self::Utf8 => DataType::Utf8View,
            Self::Binary => DataType::BinaryView,
        }
    }

    pub(crate) fn class(self) -> Class {
        match self {
            Self::Float32 => Class::F32,
            Self::Float64 => Class::F64,
            Self::Decimal128(..) => Class::Int128,
            Self::Decimal256(..) => Class::Int256,
            Self::Utf8 | Self::Binary => Class::Bytes,
            _ => Class::Word,
        }
    }

    pub(crate) fn is_unsigned(self) -> bool {
        matches!(self, Self::UInt8 | Self::UInt16 | Self::UInt32 | Self::UInt64)
    }

    pub(crate) fn put(self, buf: &mut Vec<u8>) {
        let (tag, p, s) = match self {
            Self::Int8 => (0, 0, 0),
            Self::Int16 => (1, 0, 0),
            Self::Int32 => (2, 0, 0),
            Self::Int64 => (3, 0, 0),
            Self::UInt8 => (4, 0, 0),
            Self::UInt16 => (5, 0, 0),
            Self::UInt32 => (6, 0, 0),
            Self::UInt64 => (7, 0, 0),
            Self::Float32 => (8, 0, 0),
            Self::Float64 => (9, 0, 0),
            Self::Decimal128(p, s) => (10, p, s),
            Self::Decimal256(p, s) => (11, p, s),
            Self::Date32 => (12, 0, 0),
            Self::Timestamp => (13, 0, 0),
            Self::Duration => (14, 0, 0),
            Self::Utf8 => (15, 0, 0),
            Self::Binary => (16, 0, 0),
        };
        buf.put_u8(tag);
        buf.put_u8(p);
        buf.put_u8(s as u8);
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        const WHAT: &str = "column type";
        let (tag, p, s) = (r.u8(WHAT)?, r.u8(WHAT)?, r.u8(WHAT)? as i8);
        Ok(match tag {
            0 => Self::Int8,
            1 => Self::Int16,
            2 => Self::Int32,
            3 => Self::Int64,
            4 => Self::UInt8,
            5 => Self::UInt16,
            6 => Self::UInt32,
            7 => Self::UInt64,
            8 => Self::Float32,
            9 => Self::Float64,
            10 if (1..=38).contains(&p) && s.unsigned_abs() <= p => Self::Decimal128(p, s),
            11 if (1..=76).contains(&p) && s.unsigned_abs() <= p => Self::Decimal256(p, s),
            12 => Self::Date32,
            13 => Self::Timestamp,
            14 => Self::Duration,
            15 => Self::Utf8,
            16 => Self::Binary,
            _ => return Err(r.malformed(WHAT)),
        })
    }
}
