//! GET DIAGNOSTICS: conditions of the statement before, into user variables.

use avocet_sql::parse::ast;
use avocet_sql::parse::statement::{ConditionItem, GetDiagnostics, StatementItem};
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::{Datum, SqlType, Value};

use crate::output::{COUNT, LONG_TEXT, text};
use crate::run::{Outcome, Text};
use crate::state::{Condition, Level, Session};

impl Session {
    pub(crate) fn get_diagnostics(
        &mut self,
        asked: &GetDiagnostics,
        statement: &Text<'_>,
    ) -> Result<Outcome, SqlError> {
        match asked {
            GetDiagnostics::Statement { targets } => {
                for (name, item) in targets {
                    let (value, ty) = match item {
                        StatementItem::Number => (Datum::UInt(self.condition_count()), COUNT),
                        StatementItem::RowCount => (Datum::Int(self.row_count), SqlType::BIGINT),
                    };
                    self.put_diagnostic(name, value, ty)?;
                }
            }
            GetDiagnostics::Condition { number, targets } => {
                let Some(condition) = self.condition_of(number, statement)? else {
                    let invalid = ErrorCode::DA_INVALID_CONDITION_NUMBER.with(&[]);
                    self.warn(Level::Error, invalid.errno, invalid.message);
                    return Ok(Outcome::ok());
                };
                for (name, item) in targets {
                    let (value, ty) = item_of(&condition, *item);
                    self.put_diagnostic(name, value, ty)?;
                }
            }
        }
        Ok(Outcome::ok())
    }

    fn put_diagnostic(&mut self, name: &str, value: Value, ty: SqlType) -> Result<(), SqlError> {
        self.user_variables.insert(name.to_owned(), (value, ty), self.settings.time_zone)
    }

    /// Conditions are numbered from 1.
    fn condition_of(
        &mut self,
        number: &ast::Expr,
        statement: &Text<'_>,
    ) -> Result<Option<Condition>, SqlError> {
        // `@@warning_count` is of what is asked about.
        self.take_condition_counts();
        let number = match self.constant(number, statement)? {
            Datum::Int(number) => usize::try_from(number).ok(),
            Datum::UInt(number) => usize::try_from(number).ok(),
            Datum::Str(digits) => digits.parse().ok(),
            _ => None,
        };
        Ok(number.and_then(|number| self.conditions.get(number.checked_sub(1)?)).cloned())
    }
}

fn item_of(condition: &Condition, item: ConditionItem) -> (Value, SqlType) {
    let state = ErrorCode::sqlstate_of(condition.errno);
    let value = match item {
        ConditionItem::MysqlErrno => return (Datum::UInt(condition.errno.into()), COUNT),
        ConditionItem::ClassOrigin | ConditionItem::SubclassOrigin => origin_of(&state).to_owned(),
        ConditionItem::ReturnedSqlstate => String::from_utf8_lossy(&state).into_owned(),
        ConditionItem::MessageText => condition.message.clone(),
        ConditionItem::Unset => String::new(),
    };
    (text(value), LONG_TEXT)
}

/// Classes that begin with one of these are the standard's, others whoever makes them up.
fn origin_of(state: &[u8; 5]) -> &'static str {
    let is_standard = |c: u8| c.is_ascii_digit() && c < b'5' || (b'A'..=b'H').contains(&c);
    if is_standard(state[0]) { "ISO 9075" } else { "MySQL" }
}
