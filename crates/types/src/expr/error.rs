//! Errors and warnings of typing and evaluating expressions, with MySQL's numbers and texts.

use thiserror::Error;

use crate::convert::StoreError;

pub type EvalResult<T> = Result<T, EvalError>;

/// What MySQL would answer. The text of `Display` is MySQL's own.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EvalError {
    /// 1690; `kind` is `BIGINT`, `BIGINT UNSIGNED`, `DECIMAL` or `DOUBLE`.
    #[error("{kind} value is out of range in '{expr}'")]
    OutOfRange { kind: &'static str, expr: String },
    /// 1365
    #[error("Division by 0")]
    DivisionByZero,
    /// 1292; `kind` is what the value was to become: `INTEGER`, `DECIMAL`, `DOUBLE`, `datetime`, `time`…
    #[error("Truncated incorrect {kind} value: '{value}'")]
    TruncatedValue { kind: &'static str, value: String },
    /// 1292 as temporal conversions word it.
    #[error("Incorrect {kind} value: '{value}'")]
    IncorrectValue { kind: &'static str, value: String },
    /// 1525: a constant that is compared with a temporal value is none.
    #[error("Incorrect {kind} value: '{value}'")]
    IncorrectConstant { kind: &'static str, value: String },
    /// 1411
    #[error("Incorrect {kind} value: '{value}' for function {function}")]
    IncorrectForFunction { kind: &'static str, value: String, function: &'static str },
    /// 1441
    #[error("Datetime function: {0} field overflow")]
    DatetimeOverflow(&'static str),
    /// 1301
    #[error("Result of {function}() was larger than max_allowed_packet ({limit}) - truncated")]
    ResultTooLarge { function: &'static str, limit: u64 },
    /// 3020
    #[error("Invalid argument for logarithm")]
    InvalidLogarithm,
    /// 1582
    #[error("Incorrect parameter count in the call to native function '{0}'")]
    ParameterCount(String),
    /// 1583
    #[error("Incorrect parameters in the call to native function '{0}'")]
    WrongParameters(&'static str),
    /// 1210
    #[error("Incorrect arguments to {0}")]
    WrongArguments(&'static str),
    /// 1267 of two collations, 1270 of three, 1271 of more.
    #[error("Illegal mix of collations {}for operation '{operation}'", in_parentheses(of))]
    CollationMix { of: Vec<String>, operation: String },
    /// 1264, 1406 and their like: a value does not fit a column of a result that is kept.
    #[error("{}", problem.message(column, 1))]
    Stored { problem: StoreError, column: String },
    /// 3513
    #[error("Binary operands of bitwise operators must be of equal length")]
    BitwiseLengths,
    /// 1253
    #[error("COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'")]
    CollationCharset { collation: String, charset: String },
    /// 1426
    #[error("Too-big precision {precision} specified for '{expr}'. Maximum is {max}.")]
    TooBigPrecision { precision: u64, expr: String, max: u8 },
    /// 1425
    #[error("Too big scale {scale} specified for column '{expr}'. Maximum is {max}.")]
    TooBigScale { scale: u64, expr: String, max: u8 },
    /// 1427
    #[error("For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{0}').")]
    ScaleAbovePrecision(String),
    /// 1292, of CAST to a length.
    #[error("Truncated incorrect {kind}({len}) value: '{value}'")]
    TruncatedLength { kind: &'static str, len: u32, value: String },
    /// 1264
    #[error("Out of range value for column 'cast' at row 1")]
    ColumnOutOfRange,
    /// 3854
    #[error("Cannot convert string '{value}' from {from} to {to}")]
    CannotConvertString { value: String, from: &'static str, to: &'static str },
    /// 1300
    #[error("Invalid utf8mb4 character string")]
    InvalidCharacterString,
    /// 1105
    #[error("Cast to {0} complement")]
    CastComplement(&'static str),
    /// 3685 and its like: a regular expression does not parse.
    #[error("Illegal argument to a regular expression.")]
    RegexpSyntax,
    /// 4163
    #[error("User-level lock name '{0}' should not exceed {1} characters.")]
    UserLockLongName(String, usize),
    /// 3057: the name of a lock is NULL or empty.
    #[error("Incorrect user-level lock name '{0}'.")]
    UserLockName(String),
    /// 3058
    #[error(
        "Deadlock found when trying to get user-level lock; try rolling back transaction/releasing locks and restarting \
         lock acquisition."
    )]
    UserLockDeadlock,
    /// 1317: in a function that waits, or in a long evaluation.
    #[error("Query execution was interrupted")]
    Interrupted,
    /// 1649
    #[error("Unknown locale: '{0}'")]
    UnknownLocale(String),
    /// 3024: in a function that waits, or in a long evaluation.
    #[error("Query execution was interrupted, maximum statement execution time exceeded")]
    Timeout,
    /// 1041: more bytes than the evaluation may make at once. Whoever set the bound evaluates fewer rows.
    #[error("Out of memory")]
    TooManyBytes,
    /// 1436
    #[error("The statement is too deep: {0}")]
    TooDeep(&'static str),
    /// 1235
    #[error("This version of Avocet doesn't yet support '{0}'")]
    NotSupported(String),
}

/// Two or three collations; MySQL names no more.
fn in_parentheses(collations: &[String]) -> String {
    match collations {
        [a, b] => format!("({a}) and ({b}) "),
        [a, b, c] => format!("({a}), ({b}), ({c}) "),
        _ => String::new(),
    }
}

impl EvalError {
    /// MySQL's error number.
    pub fn errno(&self) -> u16 {
        match self {
            Self::OutOfRange { .. } => 1690,
            Self::DivisionByZero => 1365,
            Self::TruncatedValue { .. } | Self::IncorrectValue { .. } => 1292,
            Self::IncorrectConstant { .. } => 1525,
            Self::IncorrectForFunction { .. } => 1411,
            Self::DatetimeOverflow(_) => 1441,
            Self::ResultTooLarge { .. } => 1301,
            Self::InvalidLogarithm => 3020,
            Self::ParameterCount(_) => 1582,
            Self::WrongParameters(_) => 1583,
            Self::WrongArguments(_) => 1210,
            Self::CollationMix { of, .. } => match of.len() {
                2 => 1267,
                3 => 1270,
                _ => 1271,
            },
            Self::BitwiseLengths => 3513,
            Self::Stored { problem, .. } => problem.errno(),
            Self::CollationCharset { .. } => 1253,
            Self::TooBigPrecision { .. } => 1426,
            Self::TooBigScale { .. } => 1425,
            Self::ScaleAbovePrecision(_) => 1427,
            Self::TruncatedLength { .. } => 1292,
            Self::ColumnOutOfRange => 1264,
            Self::CannotConvertString { .. } => 3854,
            Self::InvalidCharacterString => 1300,
            Self::CastComplement(_) => 1105,
            Self::RegexpSyntax => 3685,
            Self::UserLockLongName(..) => 4163,
            Self::UserLockName(_) => 3057,
            Self::UserLockDeadlock => 3058,
            Self::Interrupted => 1317,
            Self::UnknownLocale(_) => 1649,
            Self::Timeout => 3024,
            Self::TooManyBytes => 1041,
            Self::TooDeep(_) => 1436,
            Self::NotSupported(_) => 1235,
        }
    }
}
