//! Values on their way into a table: conversions to column types, defaults, NULLs, AUTO_INCREMENT.

use avocet_engine::TableHandle;
use avocet_types::convert::{ConvertContext, StoreError, store, store_column};
use avocet_types::expr::SqlMode;
use avocet_types::schema::{ColumnDef, DefaultValue};
use avocet_types::{Datum, Decimal, SqlType, Value};

use super::errors::store_error;
use super::state::{Level, Session};
use crate::error::{ErrorCode, SqlError};

/// How one statement stores values.
#[derive(Clone, Copy)]
pub(super) struct Storing {
    pub convert: ConvertContext,
    /// UTC.
    pub now: i64,
    pub zero_generates: bool,
    pub increment: u64,
    pub offset: u64,
}

impl Session {
    pub(super) fn storing(&self, ignore: bool) -> Storing {
        Storing {
            convert: self.convert_context(ignore),
            now: self.context.statement_time_micros,
            zero_generates: !self.settings.sql_mode.has(SqlMode::NO_AUTO_VALUE_ON_ZERO),
            increment: self.settings.auto_increment_increment,
            offset: self.settings.auto_increment_offset,
        }
    }

    /// Converts a value for its column; what is lost is warned of, or refused.
    #[inline]
    pub(super) fn store(
        &mut self,
        value: Value,
        from: &SqlType,
        column: &ColumnDef,
        storing: &Storing,
        row: u64,
    ) -> Result<Value, SqlError> {
        match store_column(value, from, column, &storing.convert) {
            Ok(stored) => {
                if let Some(problem) = stored.warning {
                    self.warn_stored(&problem, column, row);
                }
                Ok(stored.value)
            }
            Err(StoreError::Null) if !storing.convert.strict => {
                self.warn(Level::Warning, 1048, StoreError::Null.message(&column.name, row));
                implicit_default(column)
            }
            Err(problem) => Err(store_error(&problem, &column.name, row)),
        }
    }

    #[cold]
    fn warn_stored(&mut self, problem: &StoreError, column: &ColumnDef, row: u64) {
        let level = if problem.is_note() { Level::Note } else { Level::Warning };
        self.warn(level, problem.errno(), problem.message(&column.name, row));
    }

    /// What a column gets that the statement gives no value.
    pub(super) fn default_value(&mut self, column: &ColumnDef, storing: &Storing) -> Result<Value, SqlError> {
        match &column.default {
            Some(DefaultValue::Const(value)) => Ok(value.clone()),
            Some(DefaultValue::Now) => now_for(column, storing),
            None if column.nullable => Ok(Datum::Null),
            None if storing.convert.strict => Err(ErrorCode::NO_DEFAULT_FOR_FIELD.with(&[&column.name])),
            None => {
                let missing = ErrorCode::NO_DEFAULT_FOR_FIELD.with(&[&column.name]);
                self.warn(Level::Warning, missing.errno, missing.message);
                implicit_default(column)
            }
        }
    }
}

/// CURRENT_TIMESTAMP at the column's precision.
pub(super) fn now_for(column: &ColumnDef, storing: &Storing) -> Result<Value, SqlError> {
    let from = SqlType::Timestamp { fsp: 6 };
    // Digits beyond the column's are dropped, not rounded: NOW(n) is never in the future.
    let unit = 10_i64.pow(6 - u32::from(column.ty.fsp().unwrap_or(0)));
    let now = storing.now - storing.now.rem_euclid(unit);
    let lenient = ConvertContext { strict: false, ..storing.convert };
    store(Datum::DateTime(now), &from, &column.ty, &lenient)
        .map(|stored| stored.value)
        .map_err(|problem| store_error(&problem, &column.name, 1))
}

/// MySQL Reference Manual, 13.6 "Data Type Default Values": what a NOT NULL column gets out of strict mode.
fn implicit_default(column: &ColumnDef) -> Result<Value, SqlError> {
    Ok(match column.ty {
        SqlType::Null => Datum::Null,
        SqlType::Bool | SqlType::Int { unsigned: false, .. } => Datum::Int(0),
        SqlType::Int { .. } | SqlType::Year => Datum::UInt(0),
        SqlType::Decimal { scale, .. } => Datum::Decimal(Decimal::new(0, scale)),
        SqlType::Float => Datum::Float(0.0),
        SqlType::Double => Datum::Double(0.0),
        SqlType::Char { .. } | SqlType::VarChar { .. } | SqlType::Text { .. } => Datum::Str("".into()),
        SqlType::Binary { len } => Datum::Bytes(vec![0; len as usize].into()),
        SqlType::VarBinary { .. } | SqlType::Blob { .. } => Datum::Bytes(Vec::new().into()),
        SqlType::Time { .. } => Datum::Time(0),
        // There are no zero dates.
        SqlType::Date | SqlType::DateTime { .. } | SqlType::Timestamp { .. } => {
            return Err(ErrorCode::NO_DEFAULT_FOR_FIELD.with(&[&column.name]));
        }
    })
}

/// The next AUTO_INCREMENT value of the table that the session's increment and offset allow.
pub(super) fn next_auto_value(table: &TableHandle, storing: &Storing) -> u64 {
    let first = table.reserve_auto_increment(storing.increment);
    if storing.increment == 1 {
        return first;
    }
    let offset = storing.offset % storing.increment;
    let ahead = (offset + storing.increment - first % storing.increment) % storing.increment;
    first + ahead
}

/// Whether a value given for an AUTO_INCREMENT column asks for a generated one.
pub(super) fn generates(value: &Datum<'_>, storing: &Storing) -> bool {
    match value {
        Datum::Null => true,
        Datum::Int(0) | Datum::UInt(0) => storing.zero_generates,
        _ => false,
    }
}

/// An explicit AUTO_INCREMENT value that later ones must exceed.
pub(super) fn explicit_auto_value(value: &Datum<'_>) -> Option<u64> {
    match value {
        Datum::Int(v) => u64::try_from(*v).ok(),
        Datum::UInt(v) => Some(*v),
        _ => None,
    }
}

/// Whether two stored values of a column are the same, as UPDATE counts changes.
pub(super) fn same(a: &Datum<'_>, b: &Datum<'_>) -> bool {
    match (a.is_null(), b.is_null()) {
        (true, true) => true,
        (false, false) => {
            let exact = avocet_types::Collation::UTF8MB4_0900_BIN;
            avocet_types::compare::compare(a, b, exact).is_some_and(std::cmp::Ordering::is_eq)
        }
        _ => false,
    }
}
