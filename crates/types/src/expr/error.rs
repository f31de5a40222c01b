//! Errors and warnings of typing and evaluating expressions, with MySQL's numbers and texts.

use thiserror::Error;

use crate::convert::StoreError;
use crate::datum::Datum;
use crate::expr::display::with_params;
use crate::expr::regexp::RegexpError;
use crate::geometry::GeometryError;
use crate::json::JsonError;

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
    /// 1256
    #[error(
        "Uncompressed data size too large; the maximum size is {0} (probably, length of uncompressed data was corrupted)"
    )]
    UncompressedTooLarge(u64),
    /// 1258
    #[error(
        "ZLIB: Not enough room in the output buffer (probably, length of uncompressed data was corrupted)"
    )]
    ZlibBuffer,
    /// 1259
    #[error("ZLIB: Input data corrupted")]
    ZlibData,
    /// 1441
    #[error("Datetime function: {0} field overflow")]
    DatetimeOverflow(&'static str),
    /// 6527; `kind` is `TIME`, `DATE` or `DATETIME`.
    #[error("{kind} value is out of range in '{call}'")]
    TemporalRange { kind: &'static str, call: String },
    /// 1301
    #[error("Result of {}() was larger than max_allowed_packet ({limit}) - truncated", .function.to_lowercase())]
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
    /// 1235: before a MariaDB, what that would answer otherwise.
    #[error("This version of Avocet doesn't yet support '{0}, of which a MariaDB makes something else'")]
    OtherwiseInMariaDb(&'static str),
    /// 1210
    #[error("Incorrect arguments to {0}")]
    WrongArguments(&'static str),
    /// 1772
    #[error("Malformed GTID set specification '{0}'.")]
    MalformedGtidSet(String),
    /// 3079
    #[error("Multiple channels exist on the replica. Please provide channel name as an argument.")]
    MultipleChannels,
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
    /// 3995
    #[error("Character set '{subject}' cannot be used in conjunction with '{other}' in call to {function}.")]
    RegexpCharset { subject: &'static str, other: &'static str, function: String },
    /// 1300
    #[error("Invalid {charset} character string: '{bytes}'")]
    InvalidCharacterString { charset: &'static str, bytes: String },
    /// 1105
    #[error("Cast to {0} complement")]
    CastComplement(&'static str),
    #[error(transparent)]
    Regexp(#[from] RegexpError),
    /// 1618
    #[error("<{0}> option ignored")]
    OptionIgnored(&'static str),
    /// 1882
    #[error("The initialization vector supplied to {0} is too short. Must be at least 16 bytes long")]
    ShortVector(&'static str),
    /// 3235
    #[error("KDF method name is not valid. Please use hkdf or pbkdf2_hmac method name")]
    DerivationMethod,
    /// 3236
    #[error(
        "For KDF method pbkdf2_hmac iterations value less than 1000 or more than 65535 is not allowed due to security \
         reasons. Please provide iterations >= 1000 and iterations < 65535"
    )]
    DerivationRounds,
    /// 3237
    #[error(
        "AES key size should be {0} bytes length or secure KDF methods hkdf or pbkdf2_hmac should be used, please provide \
         exact AES key size or use KDF methods for better security."
    )]
    KeySize(usize),
    /// 3238
    #[error("KDF option size is invalid, please provide valid size < {0} bytes and not NULL")]
    DerivationOption(usize),
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
    /// 1242
    #[error("Subquery returns more than 1 row")]
    SubqueryRows,
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
    /// 3141
    #[error("{}", invalid_json_text(*argument, function, problem))]
    InvalidJsonText { argument: usize, function: &'static str, problem: JsonError },
    /// 3157 and its like: what a document cannot be.
    #[error("{0}")]
    Json(JsonError),
    /// 3144
    #[error("Cannot create a JSON value from a string with CHARACTER SET 'binary'.")]
    JsonCharset,
    /// 3146
    #[error(
        "Invalid data type for JSON data in argument {argument} to function {function}; a JSON string or JSON type is \
         required."
    )]
    JsonType { argument: usize, function: &'static str },
    /// 3853
    #[error("Invalid JSON type in argument {argument} to function {function}; an object is required.")]
    JsonNoObject { argument: usize, function: &'static str },
    /// 3064
    #[error("Incorrect type for argument {argument} in function {function}.")]
    IncorrectType { argument: usize, function: &'static str },
    /// 3158
    #[error("JSON documents may not contain NULL member names.")]
    JsonNullName,
    /// 3143
    #[error("Invalid JSON path expression. The error is around character position {0}.")]
    JsonPath(usize),
    /// 3149
    #[error("In this situation, path expressions may not contain the * and ** tokens or an array range.")]
    JsonPathWild,
    /// 3153
    #[error("The path expression '$' is not allowed in this context.")]
    JsonPathVacuous,
    /// 3165
    #[error("A path expression is not a path to a cell in an array.")]
    JsonPathNoCell,
    /// 3154
    #[error("The oneOrAll argument to {0} may take these values: 'one' or 'all'.")]
    OneOrAll(&'static str),
    /// 3156: a JSON value that is none of the SQL type.
    #[error("Invalid JSON value for CAST to {0} from column cast_as_json at row 1")]
    JsonCast(&'static str),
    /// 3966
    #[error("No value was found by 'json_value' on the specified path.")]
    JsonMissing,
    /// 3967
    #[error("More than one value was found by 'json_value' on the specified path.")]
    JsonMultiple,
    /// 1690, of JSON_VALUE.
    #[error("{0} value is out of range in 'json_value'")]
    JsonValueRange(&'static str),
    /// 3665
    #[error("Missing value for JSON_TABLE column '{0}'")]
    JsonTableMissing(String),
    /// 3666
    #[error("Can't store an array or an object in the scalar JSON_TABLE column '{0}'")]
    JsonTableScalar(String),
    /// 3669
    #[error("Value is out of range for JSON_TABLE's column '{0}'")]
    JsonTableRange(String),
    /// 3156, of a column of JSON_TABLE.
    #[error("Invalid JSON value for CAST to {kind} from column {column} at row 1")]
    JsonTableCast { kind: &'static str, column: String },
    /// 3986
    #[error(
        "Evaluating a JSON value in SQL boolean context does an implicit comparison against JSON integer 0; if this is \
         not what you want, consider converting JSON to a SQL numeric type with JSON_VALUE RETURNING"
    )]
    JsonCondition,
    /// 3037 and its like: what spatial functions refuse.
    #[error("{0}")]
    Geometry(GeometryError),
    /// 3676: the argument is no statement; with the parser's error.
    #[error("Could not parse argument to digest function: \"{0}\".")]
    DigestOfNoStatement(String),
    /// 1105: what XPath functions refuse, in MySQL's words.
    #[error("{0}")]
    Xpath(String),
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

/// Of a text alone the message says where it stands.
fn invalid_json_text(argument: usize, function: &str, problem: &JsonError) -> String {
    match problem {
        JsonError::Syntax { .. } => {
            format!("Invalid JSON text in argument {argument} to function {function}: {problem}.")
        }
        other => other.to_string(),
    }
}

impl EvalError {
    /// The same, with the name of the operation that MySQL tells of.
    pub(crate) fn in_operation(self, name: &str) -> Self {
        match self {
            Self::CollationMix { of, .. } => Self::CollationMix { of, operation: name.to_owned() },
            other => other,
        }
    }

    /// The condition as it is told and kept: of a long value it has the beginning, as in MySQL.
    pub(crate) fn shown(&self) -> String {
        const SHOWN: usize = 128;
        let beginning = |value: &str| value[..value.floor_char_boundary(SHOWN)].to_owned();
        let short = match self {
            Self::TruncatedValue { kind, value } if value.len() > SHOWN => {
                Self::TruncatedValue { kind, value: beginning(value) }
            }
            Self::IncorrectValue { kind, value } if value.len() > SHOWN => {
                Self::IncorrectValue { kind, value: beginning(value) }
            }
            Self::IncorrectConstant { kind, value } if value.len() > SHOWN => {
                Self::IncorrectConstant { kind, value: beginning(value) }
            }
            Self::IncorrectForFunction { kind, value, function } if value.len() > SHOWN => {
                Self::IncorrectForFunction { kind, value: beginning(value), function }
            }
            Self::TruncatedLength { kind, len, value } if value.len() > SHOWN => {
                Self::TruncatedLength { kind, len: *len, value: beginning(value) }
            }
            // Who warns has no parameters.
            Self::OutOfRange { .. } | Self::TemporalRange { .. } => self.clone().with_params(&[]),
            other => return other.to_string(),
        };
        short.to_string()
    }

    /// The same, with the parameters that the expression has.
    #[cold]
    pub(crate) fn with_params(self, params: &[Datum<'_>]) -> Self {
        match self {
            Self::OutOfRange { kind, expr } => Self::OutOfRange { kind, expr: with_params(&expr, params) },
            Self::TemporalRange { kind, call } => {
                Self::TemporalRange { kind, call: with_params(&call, params) }
            }
            other => other,
        }
    }

    /// MySQL's error number.
    pub fn errno(&self) -> u16 {
        match self {
            Self::OutOfRange { .. } => 1690,
            Self::DivisionByZero => 1365,
            Self::TruncatedValue { .. } | Self::IncorrectValue { .. } => 1292,
            Self::IncorrectConstant { .. } => 1525,
            Self::IncorrectForFunction { .. } => 1411,
            Self::UncompressedTooLarge(_) => 1256,
            Self::ZlibBuffer => 1258,
            Self::ZlibData => 1259,
            Self::DatetimeOverflow(_) => 1441,
            Self::TemporalRange { .. } => 6527,
            Self::ResultTooLarge { .. } => 1301,
            Self::InvalidLogarithm => 3020,
            Self::ParameterCount(_) => 1582,
            Self::WrongParameters(_) => 1583,
            Self::OtherwiseInMariaDb(_) => 1235,
            Self::WrongArguments(_) => 1210,
            Self::MalformedGtidSet(_) => 1772,
            Self::MultipleChannels => 3079,
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
            Self::RegexpCharset { .. } => 3995,
            Self::InvalidCharacterString { .. } => 1300,
            Self::CastComplement(_) | Self::Xpath(_) => 1105,
            Self::Regexp(error) => error.code(),
            Self::OptionIgnored(_) => 1618,
            Self::ShortVector(_) => 1882,
            Self::DerivationMethod => 3235,
            Self::DerivationRounds => 3236,
            Self::KeySize(_) => 3237,
            Self::DerivationOption(_) => 3238,
            Self::UserLockLongName(..) => 4163,
            Self::UserLockName(_) => 3057,
            Self::UserLockDeadlock => 3058,
            Self::SubqueryRows => 1242,
            Self::Interrupted => 1317,
            Self::UnknownLocale(_) => 1649,
            Self::Timeout => 3024,
            Self::TooManyBytes => 1041,
            Self::TooDeep(_) => 1436,
            Self::InvalidJsonText { problem: JsonError::Syntax { .. }, .. } => 3141,
            Self::InvalidJsonText { problem, .. } | Self::Json(problem) => problem.errno(),
            Self::JsonCharset => 3144,
            Self::JsonType { .. } => 3146,
            Self::JsonNoObject { .. } => 3853,
            Self::IncorrectType { .. } => 3064,
            Self::JsonNullName => 3158,
            Self::JsonPath(_) => 3143,
            Self::JsonPathWild => 3149,
            Self::JsonPathVacuous => 3153,
            Self::JsonPathNoCell => 3165,
            Self::OneOrAll(_) => 3154,
            Self::JsonCast(_) | Self::JsonTableCast { .. } => 3156,
            Self::JsonTableMissing(_) => 3665,
            Self::JsonTableScalar(_) => 3666,
            Self::JsonTableRange(_) => 3669,
            Self::JsonMissing => 3966,
            Self::JsonMultiple => 3967,
            Self::JsonValueRange(_) => 1690,
            Self::JsonCondition => 3986,
            Self::Geometry(problem) => problem.errno(),
            Self::DigestOfNoStatement(_) => 3676,
            Self::NotSupported(_) => 1235,
        }
    }
}
