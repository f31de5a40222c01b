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

const VALUES_IS_DEPRECATED: &str = "'VALUES function' is deprecated and will be removed in a future release. Please use an alias \
    (INSERT INTO ... VALUES (...) AS alias) and replace VALUES(col) in the ON DUPLICATE KEY UPDATE clause with alias.col instead";

impl Session {
    pub(super) fn warn_of_inserted_values(&mut self) {
        for _ in 0..self.inserted_values {
            let error = ErrorCode::WARN_DEPRECATED_SYNTAX.with(&[&VALUES_IS_DEPRECATED]);
            self.warn(Level::Warning, error.errno, error.message);
        }
    }
}
