//! Warnings of what MySQL is going to give up, for the text of a statement: once where it is run, or where it is prepared.

use avocet_sql::parse::statement::StatementKind;
use avocet_types::error::ErrorCode;

use super::state::{Level, Session};

/// How often a statement has VALUES() behind ON DUPLICATE KEY UPDATE.
pub(super) fn inserted_values(kind: &StatementKind) -> u32 {
    match kind {
        StatementKind::Insert(insert) => insert.inserted_values,
        _ => 0,
    }
}

impl Session {
    pub(super) fn warn_of_inserted_values(&mut self) {
        for _ in 0..self.inserted_values {
            let error = ErrorCode::WARN_DEPRECATED_VALUES.with(&[]);
            self.warn(Level::Warning, error.errno, error.message);
        }
    }
}
