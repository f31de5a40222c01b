//! IGNORE: an error that concerns one row is a warning, and the row stays as it was.

use avocet_engine::EngineError;
use avocet_types::error::SqlError;
use avocet_types::expr::{EvalContext, Warning};

/// Whether the error concerns one row.
pub fn can_ignore(error: &EngineError) -> bool {
    match error {
        EngineError::DuplicateKey { .. } => true,
        EngineError::ForeignKey(error) => error.is_of_row(),
        _ => false,
    }
}

#[cold]
pub fn warn_of(ctx: &EvalContext, error: EngineError) {
    let error = SqlError::from(error);
    ctx.push_warning(Warning { errno: error.errno, message: error.message, note: false });
}
