//! What is wrong with a regular expression, in the words and numbers that MySQL has for ICU's errors.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{self, ErrorKind};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegexpError {
    /// 3685: empty, or what is not known here.
    #[error("Illegal argument to a regular expression.")]
    Argument,
    /// 3686: a group that the expression does not have, or a place behind the text.
    #[error("Index out of bounds in regular expression search.")]
    Index,
    /// 3688
    #[error("Syntax error in regular expression on line {line}, character {character}.")]
    Syntax { line: usize, character: usize },
    /// 3689
    #[error("Unrecognized escape sequence in regular expression.")]
    Escape,
    /// 3690
    #[error("The regular expression contains a feature that is not implemented in this library version.")]
    Unimplemented,
    /// 3691
    #[error("Mismatched parenthesis in regular expression.")]
    Parenthesis,
    /// 3692
    #[error("Incorrect description of a {{min,max}} interval.")]
    Interval,
    /// 3693, with MySQL's spelling.
    #[error("The maximum is less than the minumum in a {{min,max}} interval.")]
    MaxBelowMin,
    /// 3694
    #[error("Invalid back-reference in regular expression.")]
    BackReference,
    /// 3695
    #[error("The look-behind assertion exceeds the limit in regular expression.")]
    LookBehind,
    /// 3696
    #[error("The regular expression contains an unclosed bracket expression.")]
    Bracket,
    /// 3697
    #[error("The regular expression contains an [x-y] character range where x comes after y.")]
    Range,
    /// 3698
    #[error("Overflow in the regular expression backtrack stack.")]
    StackOverflow,
    /// 3699
    #[error("Timeout exceeded in regular expression match.")]
    Timeout,
    /// 3700: longer, or larger once it is compiled, than there is room for.
    #[error("The regular expression pattern exceeds limits on size or complexity.")]
    TooBig,
    /// 3887
    #[error("A capture group has an invalid name.")]
    GroupName,
    /// 3900
    #[error("Invalid match mode flag in regular expression.")]
    Flag,
    /// 4007
    #[error("Decimal number in regular expression is too large.")]
    Number,
}

impl RegexpError {
    /// Of a pattern that does not parse.
    pub(crate) fn check(pattern: &str) -> Result<(), Self> {
        Parser::new().parse(pattern).map(|_| ()).map_err(|error| Self::of(&error))
    }

    /// Of the engine that backtracks, while it compiles a pattern or searches by it.
    pub(crate) fn of_backtracking(error: &fancy_regex::Error) -> Self {
        use fancy_regex::{CompileError, Error, ParseError, RuntimeError};
        match error {
            Error::RuntimeError(RuntimeError::BacktrackLimitExceeded) => Self::Timeout,
            Error::RuntimeError(RuntimeError::StackOverflow) => Self::StackOverflow,
            Error::ParseError(_, ParseError::UnclosedOpenParen) => Self::Parenthesis,
            Error::ParseError(_, ParseError::InvalidClass) => Self::Bracket,
            Error::ParseError(_, ParseError::TrailingBackslash | ParseError::InvalidEscape(_)) => {
                Self::Escape
            }
            Error::ParseError(_, ParseError::InvalidRepeat) => Self::Interval,
            Error::ParseError(_, ParseError::InvalidBackref) => Self::BackReference,
            Error::CompileError(error) => match **error {
                CompileError::LookBehindNotConst => Self::LookBehind,
                CompileError::InvalidBackref(_) => Self::BackReference,
                _ => Self::Argument,
            },
            _ => Self::Argument,
        }
    }

    fn of(error: &ast::Error) -> Self {
        match error.kind() {
            ErrorKind::ClassUnclosed => Self::Bracket,
            ErrorKind::ClassRangeInvalid => Self::Range,
            ErrorKind::DecimalInvalid => Self::Number,
            ErrorKind::EscapeUnexpectedEof | ErrorKind::EscapeUnrecognized => Self::Escape,
            ErrorKind::GroupUnclosed | ErrorKind::GroupUnopened => Self::Parenthesis,
            ErrorKind::DecimalEmpty
            | ErrorKind::RepetitionCountDecimalEmpty
            | ErrorKind::RepetitionCountUnclosed => Self::Interval,
            ErrorKind::RepetitionCountInvalid => Self::MaxBelowMin,
            ErrorKind::FlagUnrecognized
            | ErrorKind::FlagUnexpectedEof
            | ErrorKind::GroupNameUnexpectedEof
            | ErrorKind::RepetitionMissing => {
                let at = error.span().start;
                Self::Syntax { line: at.line, character: at.column }
            }
            _ => Self::Argument,
        }
    }

    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::Argument => 3685,
            Self::Index => 3686,
            Self::Syntax { .. } => 3688,
            Self::Escape => 3689,
            Self::Unimplemented => 3690,
            Self::Parenthesis => 3691,
            Self::Interval => 3692,
            Self::MaxBelowMin => 3693,
            Self::BackReference => 3694,
            Self::LookBehind => 3695,
            Self::Bracket => 3696,
            Self::Range => 3697,
            Self::StackOverflow => 3698,
            Self::Timeout => 3699,
            Self::TooBig => 3700,
            Self::GroupName => 3887,
            Self::Flag => 3900,
            Self::Number => 4007,
        }
    }
}
