//! Values that come from Rust, as columns store them.

use avocet_types::convert::{ConvertContext, StoreError, store};
use avocet_types::schema::ColumnDef;
use avocet_types::temporal::ZeroDates;
use avocet_types::{Collation, Datum, SqlType};

use crate::error::{EngineError, Result};

/// The type that a value has by itself.
pub(crate) fn type_of(value: &Datum<'_>) -> SqlType {
    value.natural_type(Collation::UTF8MB4_0900_BIN)
}

/// A value as a column stores it: exactly, or not at all.
pub(crate) fn exactly<'v>(value: Datum<'v>, column: &ColumnDef) -> Result<Datum<'v>> {
    let bad = |problem: &StoreError| EngineError::BadValue {
        column: column.name.clone(),
        why: problem.message(&column.name, 1),
    };
    let from = type_of(&value);
    // Zero dates that stand in a table may be put there again.
    let context = ConvertContext { zero_dates: ZeroDates::ALLOWED, ..ConvertContext::STRICT_UTC };
    let stored = store(value, &from, &column.ty, &context).map_err(|e| bad(&e))?;
    match stored.warning {
        None => Ok(stored.value),
        Some(problem) => Err(bad(&problem)),
    }
}
