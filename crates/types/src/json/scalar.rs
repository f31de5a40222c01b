//! Scalars of documents as values of SQL.

use std::borrow::Cow;

use crate::datum::{Datum, Value};
use crate::json::binary::{JsonRef, Node};
use crate::sql_type::{Collation, SqlType};

/// The value of SQL that a scalar is by itself, with its type.
pub fn scalar(node: Node<'_>) -> Option<(Value, SqlType)> {
    let value = match node.view() {
        JsonRef::Null | JsonRef::Array(_) | JsonRef::Object(_) => return None,
        JsonRef::Bool(v) => Datum::Int(v.into()),
        JsonRef::Int(v) => Datum::Int(v),
        JsonRef::UInt(v) => Datum::UInt(v),
        JsonRef::Double(v) => Datum::Double(v),
        JsonRef::Decimal(v) => Datum::Decimal(v),
        JsonRef::String(text) => Datum::Str(Cow::Owned(text.to_owned())),
        JsonRef::Date(v) => Datum::Date(v),
        JsonRef::DateTime(v) => Datum::DateTime(v),
        JsonRef::Time(v) => Datum::Time(v),
        JsonRef::Opaque { .. } => Datum::Str(Cow::Owned(node.unquoted())),
    };
    let ty = value.natural_type(Collation::UTF8MB4_BIN);
    Some((value, ty))
}

/// As MySQL names what a document was to become, and could not.
pub fn wanted_kind(ty: &SqlType) -> &'static str {
    match ty {
        SqlType::Decimal { .. } => "DECIMAL",
        SqlType::Float(_) | SqlType::Double(_) => "DOUBLE",
        SqlType::Date => "DATE",
        SqlType::DateTime { .. } | SqlType::Timestamp { .. } => "DATETIME/TIMESTAMP",
        SqlType::Time { .. } => "TIME",
        _ => "INTEGER",
    }
}
