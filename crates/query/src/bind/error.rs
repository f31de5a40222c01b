//! Errors of binding that more than one part raises.

use avocet_types::expr::EvalError;

use crate::error::{ErrorCode, SqlError};

impl From<EvalError> for SqlError {
    fn from(error: EvalError) -> Self {
        let errno = error.errno();
        let sqlstate =
            ErrorCode::ALL.iter().find(|code| code.errno == errno).map_or(*b"HY000", |code| code.sqlstate);
        SqlError { errno, sqlstate, message: error.to_string() }
    }
}

/// 1235: something that is known but not served.
pub fn unsupported(what: impl std::fmt::Display) -> SqlError {
    SqlError::unsupported(what)
}
