//! Comparing values of one class.

use std::cmp::Ordering;

use crate::datum::Datum;
use crate::expr::typing::ValueClass;
use crate::json;
use crate::sql_type::{Collation, SqlType};

/// How the values of an operation compare. NULLs are the caller's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparer {
    Int,
    Decimal,
    Double,
    Text(Collation),
    Bytes,
    Json,
    /// Dates, datetimes and times among themselves: by their number.
    Temporal,
}

impl Comparer {
    pub fn of(ty: &SqlType) -> Self {
        match ValueClass::of(ty) {
            ValueClass::Null | ValueClass::Int => Self::Int,
            ValueClass::Decimal => Self::Decimal,
            ValueClass::Double => Self::Double,
            ValueClass::Text => Self::Text(ty.collation().unwrap_or(Collation::DEFAULT)),
            ValueClass::Bytes => Self::Bytes,
            ValueClass::Json => Self::Json,
            ValueClass::Date | ValueClass::DateTime | ValueClass::Timestamp | ValueClass::Time => {
                Self::Temporal
            }
        }
    }

    /// For operands of these types, of which some may be NULL.
    pub fn of_all(types: &[SqlType]) -> Self {
        types.iter().find(|ty| **ty != SqlType::Null).map_or(Self::Int, Self::of)
    }

    /// `None` if a value is NULL or of another class.
    #[inline]
    pub fn compare(&self, left: &Datum<'_>, right: &Datum<'_>) -> Option<Ordering> {
        match (self, left, right) {
            (Self::Int, Datum::Int(a), Datum::Int(b)) => Some(a.cmp(b)),
            (Self::Int, a, b) => Some(super::arith::int_value(a)?.cmp(&super::arith::int_value(b)?)),
            (Self::Decimal, Datum::Decimal(a), Datum::Decimal(b)) => Some(a.cmp(b)),
            (Self::Double, a, b) => as_double(a)?.partial_cmp(&as_double(b)?),
            (Self::Text(collation), Datum::Str(a), Datum::Str(b)) => Some(collation.compare(a, b)),
            (Self::Bytes, Datum::Bytes(a), Datum::Bytes(b)) => Some(a.cmp(b)),
            (Self::Json, Datum::Bytes(a), Datum::Bytes(b)) => {
                Some(json::compare(json::Node::new(a), json::Node::new(b)))
            }
            (Self::Temporal, Datum::Date(a), Datum::Date(b)) => Some(a.cmp(b)),
            (Self::Temporal, Datum::DateTime(a), Datum::DateTime(b))
            | (Self::Temporal, Datum::Time(a), Datum::Time(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

fn as_double(value: &Datum<'_>) -> Option<f64> {
    match value {
        Datum::Double(v) => Some(*v),
        Datum::Float(v) => Some((*v).into()),
        _ => None,
    }
}
