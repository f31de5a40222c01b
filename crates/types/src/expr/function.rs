//! The table of scalar functions: a row for each, with names, arity, argument classes, result type and NULL behaviour.
//!
//! What is syntax of its own in MySQL (operators, CASE, CAST, LIKE, INTERVAL arithmetic) is a kind of `Expr`, not a function.
//! Functions marked `Rewrite` have a name here, but `Typer::call` turns them into other expressions.

use crate::expr::EvalResult;
use crate::expr::Expr;
use crate::expr::typing::Typer;
use crate::expr::typing::results as ret;
use crate::sql_type::SqlType;

/// Whether equal arguments give equal results, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    /// Always: can be folded when a plan is made.
    Immutable,
    /// Within one statement: NOW(), DATABASE().
    Statement,
    /// Never: RAND(), UUID().
    Volatile,
}

/// What NULL arguments do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// NULL exactly if an argument is NULL.
    Strict,
    /// NULL if an argument is NULL, and in other cases.
    Partial,
    /// The implementation sees NULL arguments, and can return NULL.
    Own,
    /// The implementation sees NULL arguments, and never returns NULL.
    Never,
}

/// What an argument is converted to before the function sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgClass {
    Any,
    /// A character or byte string; other types become character strings.
    Text,
    /// A character string; byte strings too become one.
    Chars,
    /// BIGINT or BIGINT UNSIGNED; other types are rounded.
    Int,
    Double,
    /// An integer, decimal or double as it is; other types become doubles.
    Number,
    DateTime,
    Time,
}

/// How the result type follows from the (converted) arguments.
#[derive(Clone, Copy)]
pub enum Ret {
    Int,
    UInt,
    Double,
    /// A string in the collation that the string arguments agree on, so many characters long.
    Text(fn(&[Expr]) -> u64),
    /// A string in the connection's collation, so many characters long.
    Ascii(fn(&[Expr]) -> u64),
    /// A byte string.
    Bytes(fn(&[Expr]) -> u64),
    /// A name of at most so many characters, in the system collation.
    System(u32),
    Date,
    Custom(fn(&Typer, &[Expr]) -> EvalResult<SqlType>),
    Rewrite,
}

pub struct FunctionInfo {
    pub names: &'static [&'static str],
    pub min_args: u8,
    /// 255 stands for any number.
    pub max_args: u8,
    /// The last one repeats.
    pub args: &'static [ArgClass],
    pub ret: Ret,
    pub nulls: Nulls,
    pub volatility: Volatility,
}

const MANY: u8 = u8::MAX;

macro_rules! functions {
    ($($name:ident [$($alias:literal),*] $min:tt..=$max:tt, [$($arg:ident),*], $ret:expr, $nulls:ident, $vol:ident;)*) => {
        /// A scalar function by identity. Details are in its `FunctionInfo`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Function { $($name,)* }

        static TABLE: &[FunctionInfo] = &[$(FunctionInfo {
            names: &[$($alias),*],
            min_args: $min,
            max_args: $max,
            args: &[$(ArgClass::$arg),*],
            ret: $ret,
            nulls: Nulls::$nulls,
            volatility: Volatility::$vol,
        },)*];

        const ALL: &[Function] = &[$(Function::$name,)*];
    };
}

functions! {
    // Numbers.
    Abs ["ABS"] 1..=1, [Number], Ret::Custom(ret::abs), Strict, Immutable;
    Ceil ["CEIL", "CEILING"] 1..=1, [Number], Ret::Custom(ret::integral), Strict, Immutable;
    Floor ["FLOOR"] 1..=1, [Number], Ret::Custom(ret::integral), Strict, Immutable;
    Round ["ROUND"] 1..=2, [Number, Int], Ret::Custom(ret::round), Strict, Immutable;
    Truncate ["TRUNCATE"] 2..=2, [Number, Int], Ret::Custom(ret::truncate), Strict, Immutable;
    Mod ["MOD"] 2..=2, [Any], Ret::Rewrite, Partial, Immutable;
    Pow ["POW", "POWER"] 2..=2, [Double], Ret::Double, Strict, Immutable;
    Sqrt ["SQRT"] 1..=1, [Double], Ret::Double, Partial, Immutable;
    Exp ["EXP"] 1..=1, [Double], Ret::Double, Strict, Immutable;
    Ln ["LN"] 1..=1, [Double], Ret::Double, Partial, Immutable;
    Log ["LOG"] 1..=2, [Double], Ret::Double, Partial, Immutable;
    Log2 ["LOG2"] 1..=1, [Double], Ret::Double, Partial, Immutable;
    Log10 ["LOG10"] 1..=1, [Double], Ret::Double, Partial, Immutable;
    Sign ["SIGN"] 1..=1, [Number], Ret::Int, Strict, Immutable;
    Pi ["PI"] 0..=0, [], Ret::Double, Strict, Immutable;
    Rand ["RAND"] 0..=1, [Int], Ret::Double, Never, Volatile;
    Sin ["SIN"] 1..=1, [Double], Ret::Double, Strict, Immutable;
    Cos ["COS"] 1..=1, [Double], Ret::Double, Strict, Immutable;
    Tan ["TAN"] 1..=1, [Double], Ret::Double, Strict, Immutable;
    Cot ["COT"] 1..=1, [Double], Ret::Double, Strict, Immutable;
    Asin ["ASIN"] 1..=1, [Double], Ret::Double, Partial, Immutable;
    Acos ["ACOS"] 1..=1, [Double], Ret::Double, Partial, Immutable;
    Atan ["ATAN"] 1..=2, [Double], Ret::Double, Strict, Immutable;
    Atan2 ["ATAN2"] 2..=2, [Double], Ret::Double, Strict, Immutable;
    Degrees ["DEGREES"] 1..=1, [Double], Ret::Double, Strict, Immutable;
    Radians ["RADIANS"] 1..=1, [Double], Ret::Double, Strict, Immutable;
    Greatest ["GREATEST"] 2..=MANY, [Any], Ret::Custom(ret::of_first), Strict, Immutable;
    Least ["LEAST"] 2..=MANY, [Any], Ret::Custom(ret::of_first), Strict, Immutable;
    Crc32 ["CRC32"] 1..=1, [Text], Ret::UInt, Strict, Immutable;
    Conv ["CONV"] 3..=3, [Chars, Int, Int], Ret::Ascii(ret::len_64), Partial, Immutable;
    Bin ["BIN"] 1..=1, [Number], Ret::Ascii(ret::len_64), Partial, Immutable;
    Oct ["OCT"] 1..=1, [Number], Ret::Ascii(ret::len_64), Partial, Immutable;
    BitAnd [] 2..=2, [Number], Ret::UInt, Strict, Immutable;
    BitOr [] 2..=2, [Number], Ret::UInt, Strict, Immutable;
    BitXor [] 2..=2, [Number], Ret::UInt, Strict, Immutable;
    BitNot [] 1..=1, [Number], Ret::UInt, Strict, Immutable;
    ShiftLeft [] 2..=2, [Number], Ret::UInt, Strict, Immutable;
    ShiftRight [] 2..=2, [Number], Ret::UInt, Strict, Immutable;
    BitCount ["BIT_COUNT"] 1..=1, [Number], Ret::Int, Strict, Immutable;

    // Strings.
    Concat ["CONCAT"] 1..=MANY, [Text], Ret::Text(ret::len_sum), Strict, Immutable;
    ConcatWs ["CONCAT_WS"] 2..=MANY, [Text], Ret::Text(ret::len_joined), Own, Immutable;
    Length ["LENGTH", "OCTET_LENGTH"] 1..=1, [Text], Ret::Int, Strict, Immutable;
    BitLength ["BIT_LENGTH"] 1..=1, [Text], Ret::Int, Strict, Immutable;
    CharLength ["CHAR_LENGTH", "CHARACTER_LENGTH"] 1..=1, [Text], Ret::Int, Strict, Immutable;
    Upper ["UPPER", "UCASE"] 1..=1, [Text], Ret::Text(ret::len_first), Strict, Immutable;
    Lower ["LOWER", "LCASE"] 1..=1, [Text], Ret::Text(ret::len_first), Strict, Immutable;
    Substring ["SUBSTRING", "SUBSTR", "MID"] 2..=3, [Text, Int, Int], Ret::Text(ret::len_substring), Strict, Immutable;
    Left ["LEFT"] 2..=2, [Text, Int], Ret::Text(ret::len_cut), Strict, Immutable;
    Right ["RIGHT"] 2..=2, [Text, Int], Ret::Text(ret::len_cut), Strict, Immutable;
    Trim ["TRIM"] 1..=2, [Text], Ret::Text(ret::len_first), Strict, Immutable;
    TrimLeading ["LTRIM"] 1..=2, [Text], Ret::Text(ret::len_first), Strict, Immutable;
    TrimTrailing ["RTRIM"] 1..=2, [Text], Ret::Text(ret::len_first), Strict, Immutable;
    Replace ["REPLACE"] 3..=3, [Text], Ret::Text(ret::len_replace), Partial, Immutable;
    Lpad ["LPAD"] 3..=3, [Text, Int, Text], Ret::Text(ret::len_pad), Partial, Immutable;
    Rpad ["RPAD"] 3..=3, [Text, Int, Text], Ret::Text(ret::len_pad), Partial, Immutable;
    Repeat ["REPEAT"] 2..=2, [Text, Int], Ret::Text(ret::len_repeat), Partial, Immutable;
    Reverse ["REVERSE"] 1..=1, [Text], Ret::Text(ret::len_first), Strict, Immutable;
    Space ["SPACE"] 1..=1, [Int], Ret::Ascii(ret::len_space), Partial, Immutable;
    Instr ["INSTR"] 2..=2, [Text], Ret::Int, Strict, Immutable;
    Locate ["LOCATE", "POSITION"] 2..=3, [Text, Text, Int], Ret::Int, Strict, Immutable;
    Strcmp ["STRCMP"] 2..=2, [Text], Ret::Int, Strict, Immutable;
    Ascii ["ASCII"] 1..=1, [Text], Ret::Int, Strict, Immutable;
    Ord ["ORD"] 1..=1, [Text], Ret::Int, Strict, Immutable;
    Hex ["HEX"] 1..=1, [Any], Ret::Ascii(ret::len_hex), Strict, Immutable;
    Unhex ["UNHEX"] 1..=1, [Text], Ret::Bytes(ret::len_unhex), Partial, Immutable;
    Char ["CHAR"] 1..=MANY, [Int], Ret::Bytes(ret::len_char), Own, Immutable;
    Field ["FIELD"] 2..=MANY, [Any], Ret::Int, Never, Immutable;
    Elt ["ELT"] 2..=MANY, [Int, Text], Ret::Text(ret::len_elt), Own, Immutable;
    FindInSet ["FIND_IN_SET"] 2..=2, [Text], Ret::Int, Strict, Immutable;
    SubstringIndex ["SUBSTRING_INDEX"] 3..=3, [Text, Text, Int], Ret::Text(ret::len_first), Strict, Immutable;
    Format ["FORMAT"] 2..=3, [Number, Int, Chars], Ret::Ascii(ret::len_format), Partial, Immutable;
    Insert ["INSERT"] 4..=4, [Text, Int, Int, Text], Ret::Text(ret::len_insert), Strict, Immutable;
    Quote ["QUOTE"] 1..=1, [Text], Ret::Text(ret::len_quote), Never, Immutable;
    Md5 ["MD5"] 1..=1, [Text], Ret::Ascii(ret::len_32), Strict, Immutable;
    Sha1 ["SHA1", "SHA"] 1..=1, [Text], Ret::Ascii(ret::len_40), Strict, Immutable;
    Sha2 ["SHA2"] 2..=2, [Text, Int], Ret::Ascii(ret::len_128), Partial, Immutable;
    ToBase64 ["TO_BASE64"] 1..=1, [Text], Ret::Ascii(ret::len_base64), Partial, Immutable;
    FromBase64 ["FROM_BASE64"] 1..=1, [Text], Ret::Bytes(ret::len_first), Partial, Immutable;
    RegexpLike ["REGEXP_LIKE"] 2..=3, [Chars], Ret::Int, Strict, Immutable;
    RegexpInstr ["REGEXP_INSTR"] 2..=6, [Chars, Chars, Int, Int, Int, Chars], Ret::Int, Strict, Immutable;
    RegexpSubstr ["REGEXP_SUBSTR"] 2..=5, [Chars, Chars, Int, Int, Chars], Ret::Text(ret::len_first), Partial, Immutable;
    RegexpReplace ["REGEXP_REPLACE"] 3..=6, [Chars, Chars, Chars, Int, Int, Chars], Ret::Text(ret::len_long), Partial, Immutable;

    // Dates and times.
    Year ["YEAR"] 1..=1, [DateTime], Ret::Int, Partial, Immutable;
    Quarter ["QUARTER"] 1..=1, [DateTime], Ret::Int, Partial, Immutable;
    Month ["MONTH"] 1..=1, [DateTime], Ret::Int, Partial, Immutable;
    DayOfMonth ["DAYOFMONTH", "DAY"] 1..=1, [DateTime], Ret::Int, Partial, Immutable;
    DayOfWeek ["DAYOFWEEK"] 1..=1, [DateTime], Ret::Int, Partial, Immutable;
    DayOfYear ["DAYOFYEAR"] 1..=1, [DateTime], Ret::Int, Partial, Immutable;
    Week ["WEEK"] 1..=2, [DateTime, Int], Ret::Int, Partial, Statement;
    WeekOfYear ["WEEKOFYEAR"] 1..=1, [DateTime], Ret::Int, Partial, Immutable;
    YearWeek ["YEARWEEK"] 1..=2, [DateTime, Int], Ret::Int, Partial, Immutable;
    WeekDay ["WEEKDAY"] 1..=1, [DateTime], Ret::Int, Partial, Immutable;
    DayName ["DAYNAME"] 1..=1, [DateTime], Ret::Ascii(ret::len_9), Partial, Immutable;
    MonthName ["MONTHNAME"] 1..=1, [DateTime], Ret::Ascii(ret::len_9), Partial, Immutable;
    Hour ["HOUR"] 1..=1, [Time], Ret::Int, Partial, Immutable;
    Minute ["MINUTE"] 1..=1, [Time], Ret::Int, Partial, Immutable;
    Second ["SECOND"] 1..=1, [Time], Ret::Int, Partial, Immutable;
    Microsecond ["MICROSECOND"] 1..=1, [Time], Ret::Int, Partial, Immutable;
    ToDays ["TO_DAYS"] 1..=1, [DateTime], Ret::Int, Partial, Immutable;
    ToSeconds ["TO_SECONDS"] 1..=1, [DateTime], Ret::Int, Partial, Immutable;
    FromDays ["FROM_DAYS"] 1..=1, [Int], Ret::Date, Partial, Immutable;
    LastDay ["LAST_DAY"] 1..=1, [DateTime], Ret::Date, Partial, Immutable;
    MakeDate ["MAKEDATE"] 2..=2, [Int], Ret::Date, Partial, Immutable;
    MakeTime ["MAKETIME"] 3..=3, [Int, Int, Number], Ret::Custom(ret::make_time), Partial, Immutable;
    TimeToSec ["TIME_TO_SEC"] 1..=1, [Time], Ret::Int, Partial, Immutable;
    SecToTime ["SEC_TO_TIME"] 1..=1, [Number], Ret::Custom(ret::sec_to_time), Partial, Immutable;
    DateDiff ["DATEDIFF"] 2..=2, [DateTime], Ret::Int, Partial, Immutable;
    TimeDiff ["TIMEDIFF"] 2..=2, [Any], Ret::Custom(ret::time_diff), Partial, Immutable;
    AddTime ["ADDTIME"] 2..=2, [Any, Time], Ret::Custom(ret::add_time), Partial, Immutable;
    SubTime ["SUBTIME"] 2..=2, [Any, Time], Ret::Custom(ret::add_time), Partial, Immutable;
    DateFormat ["DATE_FORMAT"] 2..=2, [DateTime, Chars], Ret::Ascii(ret::len_date_format), Partial, Immutable;
    TimeFormat ["TIME_FORMAT"] 2..=2, [Time, Chars], Ret::Ascii(ret::len_date_format), Partial, Immutable;
    StrToDate ["STR_TO_DATE"] 2..=2, [Chars], Ret::Custom(ret::str_to_date), Partial, Immutable;
    UnixTimestamp ["UNIX_TIMESTAMP"] 0..=1, [DateTime], Ret::Custom(ret::unix_timestamp), Partial, Statement;
    FromUnixTime ["FROM_UNIXTIME"] 1..=2, [Number, Chars], Ret::Custom(ret::from_unix_time), Partial, Statement;
    PeriodAdd ["PERIOD_ADD"] 2..=2, [Int], Ret::Int, Strict, Immutable;
    PeriodDiff ["PERIOD_DIFF"] 2..=2, [Int], Ret::Int, Strict, Immutable;
    ConvertTz ["CONVERT_TZ"] 3..=3, [DateTime, Chars, Chars], Ret::Custom(ret::first_datetime), Partial, Statement;
    Now ["NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"] 0..=1, [Int], Ret::Custom(ret::now), Never, Statement;
    Sysdate ["SYSDATE"] 0..=1, [Int], Ret::Custom(ret::now), Never, Statement;
    CurDate ["CURDATE", "CURRENT_DATE"] 0..=0, [], Ret::Date, Never, Statement;
    CurTime ["CURTIME", "CURRENT_TIME"] 0..=1, [Int], Ret::Custom(ret::now_time), Never, Statement;
    UtcTimestamp ["UTC_TIMESTAMP"] 0..=1, [Int], Ret::Custom(ret::now), Never, Statement;
    UtcDate ["UTC_DATE"] 0..=0, [], Ret::Date, Never, Statement;
    UtcTime ["UTC_TIME"] 0..=1, [Int], Ret::Custom(ret::now_time), Never, Statement;

    // Written as other expressions.
    Date ["DATE"] 1..=1, [Any], Ret::Rewrite, Partial, Immutable;
    TimeOf ["TIME"] 1..=1, [Any], Ret::Rewrite, Partial, Immutable;
    Timestamp ["TIMESTAMP"] 1..=2, [Any], Ret::Rewrite, Partial, Immutable;
    AddDate ["ADDDATE"] 2..=2, [Any], Ret::Rewrite, Partial, Immutable;
    SubDate ["SUBDATE"] 2..=2, [Any], Ret::Rewrite, Partial, Immutable;
    If ["IF"] 3..=3, [Any], Ret::Rewrite, Own, Immutable;
    IfNull ["IFNULL"] 2..=2, [Any], Ret::Rewrite, Own, Immutable;
    NullIf ["NULLIF"] 2..=2, [Any], Ret::Rewrite, Own, Immutable;
    Coalesce ["COALESCE"] 1..=MANY, [Any], Ret::Rewrite, Own, Immutable;
    IsNull ["ISNULL"] 1..=1, [Any], Ret::Rewrite, Never, Immutable;

    // The session.
    Version ["VERSION"] 0..=0, [], Ret::System(60), Never, Statement;
    Database ["DATABASE", "SCHEMA"] 0..=0, [], Ret::System(64), Own, Statement;
    User ["USER", "SESSION_USER", "SYSTEM_USER"] 0..=0, [], Ret::System(288), Never, Statement;
    CurrentUser ["CURRENT_USER"] 0..=0, [], Ret::System(288), Never, Statement;
    ConnectionId ["CONNECTION_ID"] 0..=0, [], Ret::UInt, Never, Statement;
    LastInsertId ["LAST_INSERT_ID"] 0..=0, [], Ret::UInt, Never, Statement;
    RowCount ["ROW_COUNT"] 0..=0, [], Ret::Int, Never, Statement;
    FoundRows ["FOUND_ROWS"] 0..=0, [], Ret::Int, Never, Statement;
    Uuid ["UUID"] 0..=0, [], Ret::System(36), Never, Volatile;
    Charset ["CHARSET"] 1..=1, [Any], Ret::System(64), Never, Immutable;
    CollationOf ["COLLATION"] 1..=1, [Any], Ret::System(64), Never, Immutable;
}

impl Function {
    /// A function by its name, in any case. `None` for operators and aggregates too.
    pub fn lookup(name: &str) -> Option<Self> {
        ALL.iter().copied().find(|f| f.info().names.iter().any(|n| n.eq_ignore_ascii_case(name)))
    }

    pub fn info(self) -> &'static FunctionInfo {
        &TABLE[self as usize]
    }

    /// The name that MySQL shows; operators have their symbol.
    pub fn name(self) -> &'static str {
        match self {
            Self::BitAnd => "&",
            Self::BitOr => "|",
            Self::BitXor => "^",
            Self::BitNot => "~",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            _ => self.info().names[0],
        }
    }

    pub fn volatility(self) -> Volatility {
        self.info().volatility
    }

    /// All functions, for tests and for listings.
    pub fn all() -> &'static [Self] {
        ALL
    }
}

impl FunctionInfo {
    /// What argument `index` is converted to.
    pub fn arg(&self, index: usize) -> ArgClass {
        self.args.get(index).or(self.args.last()).copied().unwrap_or(ArgClass::Any)
    }

    pub fn takes(&self, count: usize) -> bool {
        count >= usize::from(self.min_args) && (self.max_args == MANY || count <= usize::from(self.max_args))
    }
}
