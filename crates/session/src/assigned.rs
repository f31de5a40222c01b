//! User variables that expressions assign to: `SELECT @n := @n + 1`.
//!
//! A statement collects what it assigns in its context, and the session takes it over when it has ended, whether it failed or
//! not, as MySQL has it; not if it begins anew. It runs row by row on a plan for this run alone, never in parallel: what has
//! no such plan is refused.

use std::fmt::Display;

use avocet_sql::bind::unsupported;
use avocet_types::error::SqlError;

use super::state::Session;

/// For a statement that assigns, and is no statement of rows that are seen to one after the other.
pub(super) fn not_assigning(reason: impl Display) -> SqlError {
    unsupported(format!("assignment to user variables in a statement with {reason}"))
}

impl Session {
    /// Takes over what the statement that has ended so has assigned.
    pub(super) fn keep_assigned<T>(&mut self, result: Result<T, SqlError>) -> Result<T, SqlError> {
        let assigned = self.context.assigned.take();
        if result.is_err() && self.may_restart {
            return result;
        }
        for (name, value) in assigned {
            self.user_variables.insert(name, value, self.settings.time_zone)?;
        }
        result
    }
}
