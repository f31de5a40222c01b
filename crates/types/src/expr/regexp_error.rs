//! What is wrong with a regular expression, in the words and numbers that MySQL has for ICU's errors.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{self, Ast, ErrorKind, RepetitionKind, Visitor};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegexpError {
    /// 3685: empty, too large, or what is not known here.
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
    /// 3691
    #[error("Mismatched parenthesis in regular expression.")]
    Parenthesis,
    /// 3692
    #[error("Incorrect description of a {{min,max}} interval.")]
    Interval,
    /// 3693, with MySQL's spelling.
    #[error("The maximum is less than the minumum in a {{min,max}} interval.")]
    MaxBelowMin,
    /// 3696
    #[error("The regular expression contains an unclosed bracket expression.")]
    Bracket,
    /// 3697
    #[error("The regular expression contains an [x-y] character range where x comes after y.")]
    Range,
    /// 3887
    #[error("A capture group has an invalid name.")]
    GroupName,
    /// 4007
    #[error("Decimal number in regular expression is too large.")]
    Number,
}

/// Finds a repetition of a repetition: `a*+` is possessive to ICU, and `a**` nothing at all; to the `regex` crate both are loops
/// in loops.
struct Repetitions;

impl Visitor for Repetitions {
    type Output = ();
    type Err = RegexpError;

    fn finish(self) -> Result<(), RegexpError> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), RegexpError> {
        match ast {
            Ast::Repetition(outer) if matches!(*outer.ast, Ast::Repetition(_)) => {
                Err(match (&outer.op.kind, outer.greedy) {
                    (RepetitionKind::OneOrMore, true) => RegexpError::Argument,
                    _ => {
                        let at = outer.op.span.start;
                        RegexpError::Syntax { line: at.line, character: at.column }
                    }
                })
            }
            _ => Ok(()),
        }
    }
}

impl RegexpError {
    /// Of a pattern that does not parse, or that means something else to MySQL.
    pub(crate) fn check(pattern: &str) -> Result<(), Self> {
        if pattern.is_empty() {
            return Err(Self::Argument);
        }
        let parsed = Parser::new().parse(pattern).map_err(|error| Self::of(&error))?;
        ast::visit(&parsed, Repetitions)
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
            Self::Parenthesis => 3691,
            Self::Interval => 3692,
            Self::MaxBelowMin => 3693,
            Self::Bracket => 3696,
            Self::Range => 3697,
            Self::GroupName => 3887,
            Self::Number => 4007,
        }
    }
}
