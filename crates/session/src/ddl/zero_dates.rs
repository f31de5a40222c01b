//! Zero dates in definitions, where NO_ZERO_DATE is in force: as defaults of columns, and as what rows that are there already get
//! in a new column.

use avocet_sql::parse::statement::AlterAction;
use avocet_types::convert::{StoreError, store};
use avocet_types::error::{ErrorCode, SqlError, store_error};
use avocet_types::schema::{ColumnDef, DefaultValue, TableDef};
use avocet_types::temporal::{DAY, TimeZone, ZeroDates};
use avocet_types::{Datum, SqlType, Value};

use crate::state::{Level, Session};
use crate::store::Storing;

impl Session {
    /// Whether a definition may have the defaults that it has: an error in strict mode, else a warning, of zero dates.
    pub(crate) fn check_zero_defaults(&mut self, def: &TableDef) -> Result<(), SqlError> {
        let zeros = self.settings.sql_mode.zero_dates();
        for column in def.own_columns() {
            let Some(DefaultValue::Const(value)) = &column.default else { continue };
            if is_refused(value, zeros) {
                self.zero_default(column)?;
            }
        }
        Ok(())
    }

    /// The same before a table is altered: MySQL makes all of its definition anew, but for another name.
    pub(super) fn check_altered_zero_defaults(
        &mut self,
        def: &TableDef,
        actions: &[AlterAction],
    ) -> Result<(), SqlError> {
        let is_rename = |action: &AlterAction| matches!(action, AlterAction::RenameTable(_));
        if actions.iter().all(is_rename) { Ok(()) } else { self.check_zero_defaults(def) }
    }

    /// A default that the column's type has no value for in this mode: kept with a warning out of strict mode if it is a zero date.
    pub(super) fn refused_default(
        &mut self,
        value: Datum<'_>,
        from: &SqlType,
        column: &ColumnDef,
    ) -> Result<Value, SqlError> {
        let mut context = self.convert_context(false);
        (context.strict, context.zero_dates) = (true, ZeroDates::ALLOWED);
        let invalid = || ErrorCode::INVALID_DEFAULT.with(&[&column.name]);
        let stored = store(value, from, &column.ty, &context).map_err(|_| invalid())?;
        self.zero_default(column)?;
        Ok(stored.value.into_owned())
    }

    fn zero_default(&mut self, column: &ColumnDef) -> Result<(), SqlError> {
        if self.settings.sql_mode.is_strict() {
            return Err(ErrorCode::INVALID_DEFAULT.with(&[&column.name]));
        }
        let message = StoreError::OutOfRange.message(&column.name, 1);
        self.warn(Level::Warning, StoreError::OutOfRange.errno(), message);
        Ok(())
    }

    /// What rows that are there already get in a new column: a zero date is an error in strict mode, else a warning. As in MySQL,
    /// nothing is said of TIMESTAMP.
    pub(super) fn check_zero_of_old_rows(
        &mut self,
        value: &Value,
        column: &ColumnDef,
        storing: &Storing,
        row: u64,
    ) -> Result<(), SqlError> {
        let is_moment = matches!(column.ty, SqlType::Timestamp { .. });
        if row > 1 || is_moment || !is_refused(value, storing.convert.zero_dates) {
            return Ok(());
        }
        let kind = if column.ty == SqlType::Date { "date" } else { "datetime" };
        let mut text = Vec::new();
        avocet_types::text::write_text(value, &column.ty, TimeZone::UTC, &mut text);
        let value = String::from_utf8_lossy(&text).into_owned();
        let problem = StoreError::IncorrectTemporal { kind, value };
        if storing.convert.strict {
            return Err(store_error(&problem, &column.name, row));
        }
        self.warn(Level::Warning, problem.errno(), problem.message(&column.name, row));
        Ok(())
    }
}

fn is_refused(value: &Datum<'_>, zeros: ZeroDates) -> bool {
    let micros = match value {
        Datum::Date(days) => i64::from(*days) * DAY,
        Datum::DateTime(micros) => *micros,
        _ => return false,
    };
    !zeros.allow(micros)
}
