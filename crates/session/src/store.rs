//! Values on their way into a table: conversions to column types, defaults, NULLs, AUTO_INCREMENT.

use avocet_engine::TableHandle;
use avocet_point::{implicit_default, no_default, now, unstated_default};
use avocet_types::convert::{ConvertContext, StoreError, store_column};
use avocet_types::error::{ErrorCode, SqlError, store_error};
use avocet_types::expr::SqlMode;
use avocet_types::schema::{ColumnDef, DefaultValue};
use avocet_types::{Datum, SqlType, Value};

use super::state::{Level, Session};

/// How one statement stores values.
#[derive(Clone, Copy)]
pub(super) struct Storing {
    pub convert: ConvertContext,
    /// UTC.
    pub now: i64,
    pub zero_generates: bool,
    pub increment: u64,
    pub offset: u64,
    /// Of one row alone: expressions must not be NULL where there is none, out of strict mode, too.
    pub refuses_null: bool,
    /// Of rows that are copied where MySQL would not evaluate VIRTUAL columns: they take what fits of their values.
    pub fits_virtual: bool,
}

impl Session {
    pub(super) fn storing(&self, ignore: bool) -> Storing {
        Storing {
            convert: self.convert_context(ignore),
            now: self.context.statement_time_micros,
            zero_generates: !self.settings.sql_mode.has(SqlMode::NO_AUTO_VALUE_ON_ZERO),
            increment: self.settings.auto_increment_increment,
            offset: self.settings.auto_increment_offset,
            refuses_null: false,
            fits_virtual: false,
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
            Err(problem @ StoreError::Null) if !storing.convert.strict => {
                let value = implicit_default(&column.ty);
                let value = value.ok_or_else(|| store_error(&problem, &column.name, row))?;
                self.warn(Level::Warning, 1048, problem.message(&column.name, row));
                Ok(value)
            }
            Err(problem) => Err(store_error(&problem, &column.name, row)),
        }
    }

    #[cold]
    fn warn_stored(&mut self, problem: &StoreError, column: &ColumnDef, row: u64) {
        for (errno, message, note) in problem.warnings(&column.name, row, self.context.sql_mode.is_strict()) {
            self.warn(if note { Level::Note } else { Level::Warning }, errno, message);
        }
    }

    /// What a column gets that the statement gives no value. `warns`: of one that has no default. An expression is NULL: it is
    /// evaluated when other values are there, see `computed.rs`.
    pub(super) fn default_value(
        &mut self,
        column: &ColumnDef,
        storing: &Storing,
        warns: bool,
    ) -> Result<Value, SqlError> {
        match &column.default {
            // By the mode, a zero date may be none.
            Some(DefaultValue::Const(value)) if value.has_zero_date() => {
                let conditions = self.conditions.len();
                let value = self.store(value.clone(), &column.ty, column, storing, 1);
                self.conditions.truncate(if warns { usize::MAX } else { conditions });
                value
            }
            Some(DefaultValue::Const(value)) => Ok(value.clone()),
            Some(DefaultValue::Now) => Ok(now(&column.ty, storing.now, storing.convert.zone)),
            Some(DefaultValue::Expr(_)) => Ok(Datum::Null),
            None if column.nullable => Ok(Datum::Null),
            None | Some(DefaultValue::Dropped) => {
                if let Some(value) = unstated_default(column) {
                    return Ok(value);
                }
                let missing = ErrorCode::NO_DEFAULT_FOR_FIELD.with(&[&column.name]);
                let value = no_default(column).filter(|_| !storing.convert.strict);
                let Some(value) = value else { return Err(missing) };
                if warns {
                    self.warn(Level::Warning, missing.errno, missing.message);
                }
                Ok(value)
            }
        }
    }
}

/// The next AUTO_INCREMENT value of the table that the session's increment and offset allow.
pub(super) fn next_auto_value(table: &TableHandle, storing: &Storing) -> u64 {
    let first = table.reserve_auto_increment(storing.increment);
    if storing.increment == 1 {
        return first;
    }
    let offset = storing.offset % storing.increment;
    let ahead = (offset + storing.increment - first % storing.increment) % storing.increment;
    let next = first.saturating_add(ahead);
    // MySQL rounds up from the number before, and gives up where that overflows: at most one step before the end.
    match next.checked_add(storing.increment - offset - 1) {
        Some(_) => next,
        None => u64::MAX,
    }
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
