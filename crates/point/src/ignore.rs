//! IGNORE: an error that concerns one row is a warning, and the row stays as it was.

use avocet_engine::EngineError;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::{EvalContext, Warning};

/// Whether the error concerns one row.
pub fn can_ignore(error: &EngineError) -> bool {
    match error {
        EngineError::DuplicateKey { .. } => true,
        EngineError::ForeignKey(error) => error.is_of_row(),
        _ => false,
    }
}

/// Whether an error in a row's values concerns that row alone: it violates a CHECK constraint, or no partition
/// takes it.
pub fn is_of_row(error: &SqlError) -> bool {
    error.is(ErrorCode::CHECK_CONSTRAINT_VIOLATED) || error.is(ErrorCode::NO_PARTITION_FOR_GIVEN_VALUE)
}

#[cold]
pub fn warn_of(ctx: &EvalContext, error: EngineError) {
    warn_of_row(ctx, error.into());
}

#[cold]
pub fn warn_of_row(ctx: &EvalContext, error: SqlError) {
    ctx.push_warning(Warning { errno: error.errno, message: error.message, note: false });
}
