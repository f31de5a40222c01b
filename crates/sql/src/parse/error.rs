//! What parsing can answer instead of statements.

use avocet_types::error::{ErrorCode, SqlError};
use thiserror::Error;

pub type ParseResult<T> = Result<T, ParseError>;

/// The text of `Display` is MySQL's own.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// 1064
    #[error(
        "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version \
         for the right syntax to use near '{near}' at line {line}"
    )]
    Syntax { near: String, line: usize },
    /// 1436, as what MySQL's stack has no room for.
    #[error("The statement is too deep near '{near}' at line {line}")]
    TooDeep { near: String, line: usize },
    /// 1300
    #[error("Invalid {charset} character string: '{shown}'")]
    InvalidText { charset: &'static str, shown: String },
    /// 1115
    #[error("Unknown character set: '{0}'")]
    UnknownCharset(String),
    /// A clause that is known and not served. Only its own statement fails.
    #[error("{}", .0.message)]
    Refused(Box<SqlError>),
}

impl From<ParseError> for SqlError {
    fn from(error: ParseError) -> Self {
        let code = match &error {
            ParseError::Refused(error) => return (**error).clone(),
            ParseError::Syntax { .. } => ErrorCode::PARSE_ERROR,
            ParseError::TooDeep { .. } => ErrorCode::STACK_OVERRUN_NEED_MORE,
            ParseError::InvalidText { .. } => ErrorCode::INVALID_CHARACTER_STRING,
            ParseError::UnknownCharset(_) => ErrorCode::UNKNOWN_CHARACTER_SET,
        };
        code.because(error.to_string())
    }
}
