//! The table of scalar functions: a row for each, with names, arity, argument classes, result type and NULL behaviour.
//!
//! What is syntax of its own in MySQL (operators, CASE, CAST, LIKE, INTERVAL arithmetic) is a kind of `Expr`, not a function.
//! Functions marked `Rewrite` have a name here, but `Typer::call` turns them into other expressions.

use crate::expr::program::RowFn;
use crate::expr::typing::results as ret;
use crate::expr::typing::returns::Ret;
use crate::expr::{coerce, func};

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

/// How bytes that are no text of UTF-8 are read where a text is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BytesAsText {
    /// Each byte is the character of that number, as in ISO 8859-1: regular expressions and XPath know bytes so.
    Latin1,
    /// `?` stands for each.
    Replaced,
    /// `\xC3`, as warnings show bytes.
    Escaped,
}

impl BytesAsText {
    pub(crate) const ALL: [Self; 3] = [Self::Latin1, Self::Replaced, Self::Escaped];
}

/// What an argument is converted to before the function sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgClass {
    Any,
    /// A character or byte string; other types become character strings.
    Text,
    /// A character string; byte strings too become one.
    Chars,
    /// A byte string, or a character string whose bytes are those of UTF-8: a text in another character set is its bytes there.
    Encoded,
    /// BIGINT or BIGINT UNSIGNED; other types are rounded.
    Int,
    Double,
    /// A document; other types become scalars.
    Json,
    /// An integer, decimal or double as it is; other types become doubles.
    Number,
    DateTime,
    /// A DATETIME of which the day alone is looked at, which is another one for some TIMEs.
    Day,
    /// The same, but numbers as they are.
    DateParts,
    /// A TIMESTAMP as it is; other types become DATETIMEs.
    Moment,
    Time,
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
    /// What it does to one row's arguments.
    pub(crate) run: RowFn,
}

const MANY: u8 = u8::MAX;

macro_rules! functions {
    ($($name:ident [$($alias:literal),*] $min:tt..=$max:tt, [$($arg:ident),*], $ret:expr, $nulls:ident, $vol:ident, $run:expr;)*) => {
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
            run: $run,
        },)*];

        const ALL: &[Function] = &[$(Function::$name,)*];
    };
}

functions! {
    // Numbers.
    Abs ["ABS"] 1..=1, [Number], Ret::Custom(ret::abs), Strict, Immutable, func::math::abs;
    Ceil ["CEIL", "CEILING"] 1..=1, [Number], Ret::Custom(ret::integral), Strict, Immutable, func::math::ceil;
    Floor ["FLOOR"] 1..=1, [Number], Ret::Custom(ret::integral), Strict, Immutable, func::math::floor;
    Round ["ROUND"] 1..=2, [Number, Int], Ret::Custom(ret::round), Strict, Immutable, func::math::round;
    Truncate ["TRUNCATE"] 2..=2, [Number, Int], Ret::Custom(ret::truncate), Strict, Immutable, func::math::truncate;
    Mod ["MOD"] 2..=2, [Any], Ret::Rewrite, Partial, Immutable, func::rewritten;
    Pow ["POW", "POWER"] 2..=2, [Double], Ret::Double, Strict, Immutable, func::math::pow;
    Sqrt ["SQRT"] 1..=1, [Double], Ret::Double, Partial, Immutable, func::math::sqrt;
    Exp ["EXP"] 1..=1, [Double], Ret::Double, Strict, Immutable, func::math::exp;
    Ln ["LN"] 1..=1, [Double], Ret::Double, Partial, Immutable, func::math::ln;
    Log ["LOG"] 1..=2, [Double], Ret::Double, Partial, Immutable, func::math::log;
    Log2 ["LOG2"] 1..=1, [Double], Ret::Double, Partial, Immutable, func::math::log2;
    Log10 ["LOG10"] 1..=1, [Double], Ret::Double, Partial, Immutable, func::math::log10;
    Sign ["SIGN"] 1..=1, [Number], Ret::Int, Strict, Immutable, func::math::sign;
    Pi ["PI"] 0..=0, [], Ret::Custom(ret::pi), Strict, Immutable, func::math::pi;
    Rand ["RAND"] 0..=1, [Int], Ret::Double, Never, Volatile, func::math::rand;
    Sin ["SIN"] 1..=1, [Double], Ret::Double, Strict, Immutable, func::math::sin;
    Cos ["COS"] 1..=1, [Double], Ret::Double, Strict, Immutable, func::math::cos;
    Tan ["TAN"] 1..=1, [Double], Ret::Double, Strict, Immutable, func::math::tan;
    Cot ["COT"] 1..=1, [Double], Ret::Double, Strict, Immutable, func::math::cot;
    Asin ["ASIN"] 1..=1, [Double], Ret::Double, Partial, Immutable, func::math::asin;
    Acos ["ACOS"] 1..=1, [Double], Ret::Double, Partial, Immutable, func::math::acos;
    Atan ["ATAN"] 1..=2, [Double], Ret::Double, Strict, Immutable, func::math::atan;
    Atan2 ["ATAN2"] 1..=2, [Double], Ret::Double, Strict, Immutable, func::math::atan;
    Degrees ["DEGREES"] 1..=1, [Double], Ret::Double, Strict, Immutable, func::math::degrees;
    Radians ["RADIANS"] 1..=1, [Double], Ret::Double, Strict, Immutable, func::math::radians;
    Interval ["INTERVAL"] 2..=MANY, [Number], Ret::Int, Never, Immutable, func::math::interval;
    Greatest ["GREATEST"] 2..=MANY, [Any], Ret::Custom(ret::longest), Strict, Immutable, func::math::greatest;
    Least ["LEAST"] 2..=MANY, [Any], Ret::Custom(ret::longest), Strict, Immutable, func::math::least;
    Crc32 ["CRC32"] 1..=1, [Encoded], Ret::UInt, Strict, Immutable, func::numeral::crc32;
    Conv ["CONV"] 3..=3, [Chars, Int, Int], Ret::Ascii(ret::len_64), Partial, Immutable, func::numeral::conv;
    Bin ["BIN"] 1..=1, [Chars], Ret::Ascii(ret::len_64), Partial, Immutable, func::numeral::bin;
    Oct ["OCT"] 1..=1, [Chars], Ret::Ascii(ret::len_64), Partial, Immutable, func::numeral::oct;
    BitAnd [] 2..=2, [Any], Ret::Custom(ret::bits), Strict, Immutable, func::math::bit_and;
    BitOr [] 2..=2, [Any], Ret::Custom(ret::bits), Strict, Immutable, func::math::bit_or;
    BitXor [] 2..=2, [Any], Ret::Custom(ret::bits), Strict, Immutable, func::math::bit_xor;
    BitNot [] 1..=1, [Any], Ret::Custom(ret::bits), Strict, Immutable, func::math::bit_not;
    ShiftLeft [] 2..=2, [Any], Ret::Custom(ret::bits), Strict, Immutable, func::math::shift_left;
    ShiftRight [] 2..=2, [Any], Ret::Custom(ret::bits), Strict, Immutable, func::math::shift_right;
    BitCount ["BIT_COUNT"] 1..=1, [Any], Ret::Int, Strict, Immutable, func::math::bit_count;

    // Strings.
    Concat ["CONCAT"] 1..=MANY, [Text], Ret::Text(ret::len_sum), Strict, Immutable, func::string::concat;
    ConcatWs ["CONCAT_WS"] 2..=MANY, [Text], Ret::Text(ret::len_joined), Own, Immutable, func::string::concat_ws;
    Length ["LENGTH", "OCTET_LENGTH"] 1..=1, [Encoded], Ret::Int, Strict, Immutable, func::string::byte_length;
    BitLength ["BIT_LENGTH"] 1..=1, [Encoded], Ret::Int, Strict, Immutable, func::string::bit_length;
    CharLength ["CHAR_LENGTH", "CHARACTER_LENGTH"] 1..=1, [Text], Ret::Int, Strict, Immutable, func::string::char_length;
    Upper ["UPPER", "UCASE"] 1..=1, [Text], Ret::Text(ret::len_first), Strict, Immutable, func::string::upper;
    Lower ["LOWER", "LCASE"] 1..=1, [Text], Ret::Text(ret::len_first), Strict, Immutable, func::string::lower;
    Substring ["SUBSTRING", "SUBSTR", "MID"] 2..=3, [Text, Int, Int], Ret::Text(ret::len_substring), Strict, Immutable, func::string::substring;
    Left ["LEFT"] 2..=2, [Text, Int], Ret::Text(ret::len_cut), Strict, Immutable, func::string::left;
    Right ["RIGHT"] 2..=2, [Text, Int], Ret::Text(ret::len_cut), Strict, Immutable, func::string::right;
    Trim ["TRIM"] 1..=2, [Text], Ret::Text(ret::len_first), Strict, Immutable, func::string::trim;
    TrimLeading ["LTRIM"] 1..=2, [Text], Ret::Text(ret::len_first), Strict, Immutable, func::string::trim_leading;
    TrimTrailing ["RTRIM"] 1..=2, [Text], Ret::Text(ret::len_first), Strict, Immutable, func::string::trim_trailing;
    Replace ["REPLACE"] 3..=3, [Text], Ret::Text(ret::len_replace), Partial, Immutable, func::string::replace;
    Lpad ["LPAD"] 3..=3, [Text, Int, Text], Ret::Text(ret::len_pad), Partial, Immutable, func::string::lpad;
    Rpad ["RPAD"] 3..=3, [Text, Int, Text], Ret::Text(ret::len_pad), Partial, Immutable, func::string::rpad;
    Repeat ["REPEAT"] 2..=2, [Text, Int], Ret::Text(ret::len_repeat), Partial, Immutable, func::string::repeat;
    Reverse ["REVERSE"] 1..=1, [Text], Ret::Text(ret::len_first), Strict, Immutable, func::string::reverse;
    Space ["SPACE"] 1..=1, [Int], Ret::Ascii(ret::len_space), Partial, Immutable, func::string::space;
    Instr ["INSTR"] 2..=2, [Text], Ret::Int, Strict, Immutable, func::string::instr;
    Locate ["LOCATE", "POSITION"] 2..=3, [Text, Text, Int], Ret::Int, Strict, Immutable, func::string::locate;
    Strcmp ["STRCMP"] 2..=2, [Text], Ret::Int, Strict, Immutable, func::string::strcmp;
    Ascii ["ASCII"] 1..=1, [Encoded], Ret::Int, Strict, Immutable, func::string::ascii;
    Ord ["ORD"] 1..=1, [Text], Ret::Int, Strict, Immutable, func::string::ord;
    Hex ["HEX"] 1..=1, [Any], Ret::Ascii(ret::len_hex), Strict, Immutable, func::numeral::hex;
    Unhex ["UNHEX"] 1..=1, [Text], Ret::Bytes(ret::len_unhex), Partial, Immutable, func::numeral::unhex;
    WeightString ["WEIGHT_STRING"] 1..=2, [Any, Int], Ret::Bytes(ret::len_weights), Own, Immutable, func::string::weight_string;
    Char ["CHAR"] 1..=MANY, [Int], Ret::Bytes(ret::len_char), Own, Immutable, func::string::char;
    Field ["FIELD"] 2..=MANY, [Any], Ret::Int, Never, Immutable, func::string::field;
    Elt ["ELT"] 2..=MANY, [Int, Text], Ret::Text(ret::len_elt), Own, Immutable, func::string::elt;
    FindInSet ["FIND_IN_SET"] 2..=2, [Text], Ret::Int, Strict, Immutable, func::string::find_in_set;
    SubstringIndex ["SUBSTRING_INDEX"] 3..=3, [Text, Text, Int], Ret::Text(ret::len_first), Strict, Immutable, func::string::substring_index;
    Format ["FORMAT"] 2..=3, [Number, Int, Chars], Ret::Ascii(ret::len_format), Own, Immutable, func::numeral::format;
    Insert ["INSERT"] 4..=4, [Text, Int, Int, Text], Ret::Text(ret::len_insert), Strict, Immutable, func::string::insert;
    Quote ["QUOTE"] 1..=1, [Text], Ret::Text(ret::len_quote), Never, Immutable, func::string::quote;
    AesEncrypt ["AES_ENCRYPT"] 2..=6, [Encoded], Ret::Bytes(ret::len_encrypted), Own, Statement, func::aes::encrypt;
    AesDecrypt ["AES_DECRYPT"] 2..=6, [Encoded], Ret::Bytes(ret::len_first), Own, Statement, func::aes::decrypt;
    Md5 ["MD5"] 1..=1, [Encoded], Ret::Ascii(ret::len_32), Strict, Immutable, func::digest::md5;
    Sha1 ["SHA1", "SHA"] 1..=1, [Encoded], Ret::Ascii(ret::len_40), Strict, Immutable, func::digest::sha1;
    Sha2 ["SHA2"] 2..=2, [Encoded, Int], Ret::Ascii(ret::len_sha2), Partial, Immutable, func::digest::sha2;
    ToBase64 ["TO_BASE64"] 1..=1, [Encoded], Ret::Ascii(ret::len_base64), Partial, Immutable, func::digest::to_base64;
    FromBase64 ["FROM_BASE64"] 1..=1, [Text], Ret::Bytes(ret::len_first), Partial, Immutable, func::digest::from_base64;
    RegexpLike ["REGEXP_LIKE"] 2..=3, [Chars], Ret::Int, Strict, Immutable, func::regexp::like;
    RegexpInstr ["REGEXP_INSTR"] 2..=6, [Chars, Chars, Int, Int, Int, Chars], Ret::Int, Strict, Immutable, func::regexp::instr;
    RegexpSubstr ["REGEXP_SUBSTR"] 2..=5, [Chars, Chars, Int, Int, Chars], Ret::Text(ret::len_first), Partial, Immutable, func::regexp::substr;
    RegexpReplace ["REGEXP_REPLACE"] 3..=6, [Chars, Chars, Chars, Int, Int, Chars], Ret::Text(ret::len_long), Partial, Immutable, func::regexp::replace;
    MakeSet ["MAKE_SET"] 2..=MANY, [Int, Text], Ret::Text(ret::len_make_set), Own, Immutable, func::bits::make_set;
    ExportSet ["EXPORT_SET"] 3..=5, [Int, Text, Text, Text, Int], Ret::Text(ret::len_export_set), Strict, Immutable, func::bits::export_set;
    Soundex ["SOUNDEX"] 1..=1, [Chars], Ret::Text(ret::len_soundex), Strict, Immutable, func::bits::soundex;
    RandomBytes ["RANDOM_BYTES"] 1..=1, [Int], Ret::Bytes(ret::len_1024), Strict, Volatile, func::digest::random_bytes;
    Compress ["COMPRESS"] 1..=1, [Encoded], Ret::Bytes(ret::len_compressed), Strict, Immutable, func::digest::compress;
    Uncompress ["UNCOMPRESS"] 1..=1, [Encoded], Ret::Custom(ret::long_bytes), Partial, Immutable, func::digest::uncompress;
    UncompressedLength ["UNCOMPRESSED_LENGTH"] 1..=1, [Encoded], Ret::Int, Strict, Immutable, func::digest::uncompressed_length;
    ZeroFilled [] 2..=2, [Any, Int], Ret::Ascii(ret::len_zero_filled), Strict, Immutable, func::numeral::zero_filled;
    FormatBytes ["FORMAT_BYTES"] 1..=1, [Double], Ret::System(11), Strict, Immutable, func::units::format_bytes;
    ExtractValue ["EXTRACTVALUE"] 2..=2, [Chars], Ret::Ascii(ret::len_long), Partial, Statement, func::xml::extract_value;
    UpdateXml ["UPDATEXML"] 3..=3, [Chars], Ret::Ascii(ret::len_long), Partial, Statement, func::xml::update_xml;
    FormatPicoTime ["FORMAT_PICO_TIME"] 1..=1, [Double], Ret::System(11), Strict, Immutable, func::units::format_pico_time;

    // Addresses and UUIDs.
    InetAton ["INET_ATON"] 1..=1, [Chars], Ret::UInt, Partial, Immutable, func::inet::aton;
    InetNtoa ["INET_NTOA"] 1..=1, [Int], Ret::Ascii(ret::len_31), Partial, Immutable, func::inet::ntoa;
    Inet6Aton ["INET6_ATON"] 1..=1, [Chars], Ret::Bytes(ret::len_16), Partial, Immutable, func::inet::aton6;
    Inet6Ntoa ["INET6_NTOA"] 1..=1, [Text], Ret::Ascii(ret::len_39), Partial, Immutable, func::inet::ntoa6;
    IsIpv4 ["IS_IPV4"] 1..=1, [Chars], Ret::Int, Strict, Immutable, func::inet::is_ipv4;
    IsIpv6 ["IS_IPV6"] 1..=1, [Chars], Ret::Int, Strict, Immutable, func::inet::is_ipv6;
    IsIpv4Compat ["IS_IPV4_COMPAT"] 1..=1, [Text], Ret::Int, Strict, Immutable, func::inet::is_compatible;
    IsIpv4Mapped ["IS_IPV4_MAPPED"] 1..=1, [Text], Ret::Int, Strict, Immutable, func::inet::is_mapped;
    IsUuid ["IS_UUID"] 1..=1, [Text], Ret::Int, Strict, Immutable, func::uuid::is_uuid;
    UuidToBin ["UUID_TO_BIN"] 1..=2, [Text, Int], Ret::Bytes(ret::len_16), Own, Immutable, func::uuid::to_bin;
    BinToUuid ["BIN_TO_UUID"] 1..=2, [Text, Int], Ret::Ascii(ret::len_36), Own, Immutable, func::uuid::from_bin;

    // JSON.
    JsonArray ["JSON_ARRAY"] 0..=MANY, [Json], Ret::Json, Own, Immutable, func::json::build::array;
    JsonObject ["JSON_OBJECT"] 0..=MANY, [Any], Ret::Json, Own, Immutable, func::json::build::object;
    JsonQuote ["JSON_QUOTE"] 1..=1, [Any], Ret::Custom(ret::json_quote), Partial, Immutable, func::json::quoted;
    JsonUnquote ["JSON_UNQUOTE"] 1..=1, [Any], Ret::Custom(ret::json_text), Strict, Immutable, func::json::unquoted;
    JsonExtract ["JSON_EXTRACT"] 2..=MANY, [Any, Chars], Ret::Json, Own, Immutable, func::json::look::extract;
    JsonContains ["JSON_CONTAINS"] 2..=3, [Any, Any, Chars], Ret::Int, Own, Immutable, func::json::look::contained;
    JsonContainsPath ["JSON_CONTAINS_PATH"] 3..=MANY, [Any, Chars], Ret::Int, Own, Immutable, func::json::look::contains_path;
    JsonKeys ["JSON_KEYS"] 1..=2, [Any, Chars], Ret::Json, Own, Immutable, func::json::keys;
    JsonOverlaps ["JSON_OVERLAPS"] 2..=2, [Any], Ret::Int, Own, Immutable, func::json::look::overlaps;
    JsonSearch ["JSON_SEARCH"] 3..=MANY, [Any, Chars], Ret::Json, Own, Immutable, func::json::look::search;
    JsonValue [] 6..=6, [Any, Chars, Any], Ret::Json, Own, Immutable, func::json::value::value;
    JsonArrayAppend ["JSON_ARRAY_APPEND"] 3..=MANY, [Any], Ret::Json, Own, Immutable, func::json::modify::array_append;
    JsonArrayInsert ["JSON_ARRAY_INSERT"] 3..=MANY, [Any], Ret::Json, Own, Immutable, func::json::modify::array_insert;
    JsonInsert ["JSON_INSERT"] 3..=MANY, [Any], Ret::Json, Own, Immutable, func::json::modify::insert;
    JsonReplace ["JSON_REPLACE"] 3..=MANY, [Any], Ret::Json, Own, Immutable, func::json::modify::replace;
    JsonSet ["JSON_SET"] 3..=MANY, [Any], Ret::Json, Own, Immutable, func::json::modify::set;
    JsonRemove ["JSON_REMOVE"] 2..=MANY, [Any, Chars], Ret::Json, Own, Immutable, func::json::modify::remove;
    JsonMerge ["JSON_MERGE"] 2..=MANY, [Any], Ret::Json, Own, Immutable, func::json::modify::merge;
    JsonMergePatch ["JSON_MERGE_PATCH"] 2..=MANY, [Any], Ret::Json, Own, Immutable, func::json::modify::merge_patch;
    JsonMergePreserve ["JSON_MERGE_PRESERVE"] 2..=MANY, [Any], Ret::Json, Own, Immutable, func::json::modify::merge_preserve;
    JsonDepth ["JSON_DEPTH"] 1..=1, [Any], Ret::Int, Own, Immutable, func::json::depth;
    JsonLength ["JSON_LENGTH"] 1..=2, [Any, Chars], Ret::Int, Own, Immutable, func::json::length;
    JsonType ["JSON_TYPE"] 1..=1, [Any], Ret::Custom(ret::json_type), Own, Immutable, func::json::type_name;
    JsonValid ["JSON_VALID"] 1..=1, [Any], Ret::Int, Strict, Immutable, func::json::is_valid;
    JsonPretty ["JSON_PRETTY"] 1..=1, [Any], Ret::Custom(ret::json_text), Own, Immutable, func::json::prettied;
    JsonStorageSize ["JSON_STORAGE_SIZE"] 1..=1, [Any], Ret::Int, Own, Immutable, func::json::storage_size;
    JsonStorageFree ["JSON_STORAGE_FREE"] 1..=1, [Any], Ret::Int, Own, Immutable, func::json::storage_free;
    JsonSchemaValid ["JSON_SCHEMA_VALID"] 2..=2, [Any], Ret::Int, Own, Immutable, func::json::schema::is_valid;
    JsonSchemaReport ["JSON_SCHEMA_VALIDATION_REPORT"] 2..=2, [Any], Ret::Json, Own, Immutable, func::json::schema::report;
    JsonMemberOf ["MEMBER OF"] 2..=2, [Json, Any], Ret::Int, Own, Immutable, func::json::look::member_of;
    JsonTableDocument [] 1..=1, [Any], Ret::Json, Strict, Immutable, func::json::table_document;
    JsonOfTruth [] 1..=1, [Any], Ret::Json, Strict, Immutable, func::json::build::of_truth;
    JsonIsTrue [] 1..=1, [Json], Ret::Int, Strict, Immutable, coerce::json_is_true;

    // Dates and times.
    Year ["YEAR"] 1..=1, [DateParts], Ret::Custom(ret::year), Partial, Immutable, func::temporal::year;
    Quarter ["QUARTER"] 1..=1, [DateParts], Ret::Int, Partial, Immutable, func::temporal::quarter;
    Month ["MONTH"] 1..=1, [DateParts], Ret::Int, Partial, Immutable, func::temporal::month;
    DayOfMonth ["DAYOFMONTH", "DAY"] 1..=1, [DateParts], Ret::Int, Partial, Immutable, func::temporal::day_of_month;
    DayOfWeek ["DAYOFWEEK"] 1..=1, [Day], Ret::Int, Partial, Immutable, func::temporal::day_of_week;
    DayOfYear ["DAYOFYEAR"] 1..=1, [Day], Ret::Int, Partial, Immutable, func::temporal::day_of_year;
    Week ["WEEK"] 1..=2, [Day, Int], Ret::Int, Partial, Statement, func::temporal::week;
    WeekOfYear ["WEEKOFYEAR"] 1..=1, [Day], Ret::Int, Partial, Immutable, func::temporal::week_of_year;
    YearWeek ["YEARWEEK"] 1..=2, [Day, Int], Ret::Int, Partial, Immutable, func::temporal::year_week;
    WeekDay ["WEEKDAY"] 1..=1, [Day], Ret::Int, Partial, Immutable, func::temporal::week_day;
    DayName ["DAYNAME"] 1..=1, [Day], Ret::Custom(ret::day_name), Partial, Statement, func::temporal::day_name;
    MonthName ["MONTHNAME"] 1..=1, [DateParts], Ret::Custom(ret::month_name), Partial, Statement, func::temporal::month_name;
    Hour ["HOUR"] 1..=1, [Time], Ret::Int, Partial, Immutable, func::temporal::hour;
    Minute ["MINUTE"] 1..=1, [Time], Ret::Int, Partial, Immutable, func::temporal::minute;
    Second ["SECOND"] 1..=1, [Time], Ret::Int, Partial, Immutable, func::temporal::second;
    Microsecond ["MICROSECOND"] 1..=1, [Time], Ret::Int, Partial, Immutable, func::temporal::microsecond;
    ToDays ["TO_DAYS"] 1..=1, [Day], Ret::Int, Partial, Immutable, func::temporal::to_days;
    ToSeconds ["TO_SECONDS"] 1..=1, [DateTime], Ret::Int, Partial, Immutable, func::temporal::to_seconds;
    FromDays ["FROM_DAYS"] 1..=1, [Int], Ret::Date, Partial, Immutable, func::temporal::from_days;
    LastDay ["LAST_DAY"] 1..=1, [DateParts], Ret::Date, Partial, Immutable, func::temporal::last_day;
    MakeDate ["MAKEDATE"] 2..=2, [Int], Ret::Date, Partial, Immutable, func::temporal::make_date;
    MakeTime ["MAKETIME"] 3..=3, [Int, Int, Number], Ret::Custom(ret::make_time), Partial, Immutable, func::temporal::make_time;
    TimeToSec ["TIME_TO_SEC"] 1..=1, [Time], Ret::Int, Partial, Immutable, func::temporal::time_to_sec;
    SecToTime ["SEC_TO_TIME"] 1..=1, [Number], Ret::Custom(ret::sec_to_time), Partial, Immutable, func::temporal::sec_to_time;
    DateDiff ["DATEDIFF"] 2..=2, [Day], Ret::Int, Partial, Immutable, func::temporal::date_diff;
    TimeDiff ["TIMEDIFF"] 2..=2, [Any], Ret::Custom(ret::time_diff), Partial, Immutable, func::temporal::time_diff;
    AddTime ["ADDTIME"] 2..=2, [Any, Time], Ret::Custom(ret::add_time), Partial, Immutable, func::temporal::add_time;
    SubTime ["SUBTIME"] 2..=2, [Any, Time], Ret::Custom(ret::add_time), Partial, Immutable, func::temporal::sub_time;
    DateFormat ["DATE_FORMAT"] 2..=2, [DateTime, Chars], Ret::Ascii(ret::len_date_format), Partial, Statement, func::temporal::date_format;
    TimeFormat ["TIME_FORMAT"] 2..=2, [Any, Chars], Ret::Ascii(ret::len_date_format), Partial, Immutable, func::temporal::time_format;
    GetFormat ["GET_FORMAT"] 2..=2, [Chars], Ret::Ascii(ret::len_17), Partial, Immutable, func::temporal::get_format;
    StrToDate ["STR_TO_DATE"] 2..=2, [Chars], Ret::Custom(ret::str_to_date), Partial, Immutable, func::temporal::str_to_date;
    UnixTimestamp ["UNIX_TIMESTAMP"] 0..=1, [Moment], Ret::Custom(ret::unix_timestamp), Partial, Statement, func::temporal::unix_timestamp;
    FromUnixTime ["FROM_UNIXTIME"] 1..=2, [Number, Chars], Ret::Custom(ret::from_unix_time), Partial, Statement, func::temporal::from_unix_time;
    PeriodAdd ["PERIOD_ADD"] 2..=2, [Int], Ret::Int, Strict, Immutable, func::temporal::period_add;
    PeriodDiff ["PERIOD_DIFF"] 2..=2, [Int], Ret::Int, Strict, Immutable, func::temporal::period_diff;
    ConvertTz ["CONVERT_TZ"] 3..=3, [DateTime, Chars, Chars], Ret::Custom(ret::first_datetime), Partial, Statement, func::temporal::convert_tz;
    Now ["NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"] 0..=1, [Int], Ret::Custom(ret::now), Never, Statement, func::clock::now;
    Sysdate ["SYSDATE"] 0..=1, [Int], Ret::Custom(ret::now), Never, Statement, func::clock::now;
    CurDate ["CURDATE", "CURRENT_DATE"] 0..=0, [], Ret::Date, Never, Statement, func::clock::date;
    CurTime ["CURTIME", "CURRENT_TIME"] 0..=1, [Int], Ret::Custom(ret::now_time), Never, Statement, func::clock::time;
    UtcTimestamp ["UTC_TIMESTAMP"] 0..=1, [Int], Ret::Custom(ret::now), Never, Statement, func::clock::utc_now;
    UtcDate ["UTC_DATE"] 0..=0, [], Ret::Date, Never, Statement, func::clock::utc_date;
    UtcTime ["UTC_TIME"] 0..=1, [Int], Ret::Custom(ret::now_time), Never, Statement, func::clock::utc_time;

    // Written as other expressions.
    Date ["DATE"] 1..=1, [Any], Ret::Rewrite, Partial, Immutable, func::rewritten;
    TimeOf ["TIME"] 1..=1, [Any], Ret::Rewrite, Partial, Immutable, func::rewritten;
    Stored [] 2..=2, [Any], Ret::Rewrite, Own, Immutable, func::stored;
    MemberNumber [] 2..=2, [Text, Any], Ret::UInt, Strict, Immutable, coerce::member_number;
    Let [] 2..=2, [Any], Ret::Custom(ret::of_last), Own, Volatile, func::rewritten;
    LetValue [] 0..=0, [], Ret::Rewrite, Own, Volatile, func::rewritten;
    AtMostOne [] 1..=1, [Int], Ret::Int, Strict, Immutable, func::at_most_one;
    Recoded [] 1..=1, [Any], Ret::Custom(ret::of_first), Strict, Immutable, coerce::recoded;
    FullYear [] 1..=1, [Int], Ret::Int, Strict, Immutable, coerce::full_year;
    DateTimeOrZero [] 1..=1, [Text], Ret::Custom(ret::datetime6), Strict, Immutable, coerce::datetime_or_zero;
    ExactInteger [] 1..=1, [Text], Ret::Custom(ret::exact), Strict, Immutable, coerce::exact_beside_integers;
    TextOfBytes [] 2..=2, [Any, Any], Ret::Custom(ret::read_bytes), Strict, Immutable, coerce::text_of_bytes;
    IntegerOfDouble [] 1..=1, [Double], Ret::Int, Strict, Immutable, coerce::integer_of_double;
    ExactDecimal [] 1..=1, [Text], Ret::Custom(ret::exact), Strict, Immutable, coerce::exact_beside_decimals;
    Timestamp ["TIMESTAMP"] 1..=2, [Any], Ret::Rewrite, Partial, Immutable, func::rewritten;
    AddDate ["ADDDATE"] 2..=2, [Any], Ret::Rewrite, Partial, Immutable, func::rewritten;
    SubDate ["SUBDATE"] 2..=2, [Any], Ret::Rewrite, Partial, Immutable, func::rewritten;
    If ["IF"] 3..=3, [Any], Ret::Rewrite, Own, Immutable, func::rewritten;
    IfNull ["IFNULL"] 2..=2, [Any], Ret::Rewrite, Own, Immutable, func::rewritten;
    NullIf ["NULLIF"] 2..=2, [Any], Ret::Rewrite, Own, Immutable, func::rewritten;
    Coalesce ["COALESCE"] 1..=MANY, [Any], Ret::Rewrite, Own, Immutable, func::rewritten;
    AnyValue ["ANY_VALUE"] 1..=1, [Any], Ret::Custom(ret::of_first), Strict, Immutable, func::any_value;
    IsNull ["ISNULL"] 1..=1, [Any], Ret::Rewrite, Never, Immutable, func::rewritten;

    Coercibility ["COERCIBILITY"] 1..=1, [Any], Ret::Rewrite, Never, Immutable, func::rewritten;

    // Spatial values.
    Point ["POINT"] 2..=2, [Double], Ret::Custom(ret::point), Partial, Immutable, func::spatial::point;
    LineString ["LINESTRING"] 1..=MANY, [Any], Ret::Custom(ret::geometry), Partial, Immutable, func::spatial::line_string;
    Polygon ["POLYGON"] 1..=MANY, [Any], Ret::Custom(ret::geometry), Partial, Immutable, func::spatial::polygon;
    MultiPoint ["MULTIPOINT"] 1..=MANY, [Any], Ret::Custom(ret::geometry), Partial, Immutable, func::spatial::multi_point;
    MultiLineString ["MULTILINESTRING"] 1..=MANY, [Any], Ret::Custom(ret::geometry), Partial, Immutable, func::spatial::multi_line_string;
    MultiPolygon ["MULTIPOLYGON"] 1..=MANY, [Any], Ret::Custom(ret::geometry), Partial, Immutable, func::spatial::multi_polygon;
    GeometryCollection ["GEOMETRYCOLLECTION", "GEOMCOLLECTION"] 0..=MANY, [Any], Ret::Custom(ret::geometry), Partial, Immutable,
        func::spatial::collection;
    StGeomFromText ["ST_GEOMFROMTEXT", "ST_GEOMETRYFROMTEXT"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial, Immutable,
        func::spatial::geometry_from_text;
    StPointFromText ["ST_POINTFROMTEXT"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial, Immutable,
        func::spatial::point_from_text;
    StLineFromText ["ST_LINEFROMTEXT", "ST_LINESTRINGFROMTEXT"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial, Immutable,
        func::spatial::line_from_text;
    StPolyFromText ["ST_POLYFROMTEXT", "ST_POLYGONFROMTEXT"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial, Immutable,
        func::spatial::polygon_from_text;
    StMultiPointFromText ["ST_MPOINTFROMTEXT", "ST_MULTIPOINTFROMTEXT"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial,
        Immutable, func::spatial::multi_point_from_text;
    StMultiLineFromText ["ST_MLINEFROMTEXT", "ST_MULTILINESTRINGFROMTEXT"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial,
        Immutable, func::spatial::multi_line_from_text;
    StMultiPolyFromText ["ST_MPOLYFROMTEXT", "ST_MULTIPOLYGONFROMTEXT"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial,
        Immutable, func::spatial::multi_polygon_from_text;
    StGeomCollFromText ["ST_GEOMCOLLFROMTEXT", "ST_GEOMCOLLFROMTXT", "ST_GEOMETRYCOLLECTIONFROMTEXT"] 1..=3,
        [Text, Int, Chars], Ret::Custom(ret::geometry), Partial, Immutable, func::spatial::collection_from_text;
    StGeomFromWkb ["ST_GEOMFROMWKB", "ST_GEOMETRYFROMWKB"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial, Immutable,
        func::spatial::geometry_from_binary;
    StPointFromWkb ["ST_POINTFROMWKB"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial, Immutable,
        func::spatial::point_from_binary;
    StLineFromWkb ["ST_LINEFROMWKB", "ST_LINESTRINGFROMWKB"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial, Immutable,
        func::spatial::line_from_binary;
    StPolyFromWkb ["ST_POLYFROMWKB", "ST_POLYGONFROMWKB"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial, Immutable,
        func::spatial::polygon_from_binary;
    StMultiPointFromWkb ["ST_MPOINTFROMWKB", "ST_MULTIPOINTFROMWKB"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial,
        Immutable, func::spatial::multi_point_from_binary;
    StMultiLineFromWkb ["ST_MLINEFROMWKB", "ST_MULTILINESTRINGFROMWKB"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial,
        Immutable, func::spatial::multi_line_from_binary;
    StMultiPolyFromWkb ["ST_MPOLYFROMWKB", "ST_MULTIPOLYGONFROMWKB"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial,
        Immutable, func::spatial::multi_polygon_from_binary;
    StGeomCollFromWkb ["ST_GEOMCOLLFROMWKB", "ST_GEOMETRYCOLLECTIONFROMWKB"] 1..=3, [Text, Int, Chars], Ret::Custom(ret::geometry), Partial,
        Immutable, func::spatial::collection_from_binary;
    StAsText ["ST_ASTEXT", "ST_ASWKT"] 1..=2, [Text, Chars], Ret::Ascii(ret::len_huge), Partial, Immutable,
        func::spatial::as_text;
    StAsBinary ["ST_ASBINARY", "ST_ASWKB"] 1..=2, [Text, Chars], Ret::Bytes(ret::len_huge), Partial, Immutable,
        func::spatial::as_binary;
    StAsGeoJson ["ST_ASGEOJSON"] 1..=3, [Text, Int, Int], Ret::Json, Partial, Immutable, func::spatial::as_geojson;
    StSrid ["ST_SRID"] 1..=2, [Text, Int], Ret::Custom(ret::srid), Partial, Immutable, func::spatial::srid;
    StX ["ST_X"] 1..=2, [Text, Double], Ret::Custom(ret::coordinate), Partial, Immutable, func::spatial::x;
    StY ["ST_Y"] 1..=2, [Text, Double], Ret::Custom(ret::coordinate), Partial, Immutable, func::spatial::y;
    StLatitude ["ST_LATITUDE"] 1..=2, [Text, Double], Ret::Custom(ret::coordinate), Partial, Immutable,
        func::spatial::latitude;
    StLongitude ["ST_LONGITUDE"] 1..=2, [Text, Double], Ret::Custom(ret::coordinate), Partial, Immutable,
        func::spatial::longitude;
    StGeometryType ["ST_GEOMETRYTYPE"] 1..=1, [Text], Ret::Ascii(ret::len_15), Partial, Immutable,
        func::spatial::geometry_type;
    StIsEmpty ["ST_ISEMPTY"] 1..=1, [Text], Ret::Int, Partial, Immutable, func::spatial::is_empty;

    // The session.
    Version ["VERSION"] 0..=0, [], Ret::System(60), Never, Statement, func::session::version;
    Database ["DATABASE", "SCHEMA"] 0..=0, [], Ret::System(64), Own, Statement, func::session::database;
    User ["USER", "SESSION_USER", "SYSTEM_USER"] 0..=0, [], Ret::System(288), Never, Statement, func::session::user;
    CurrentRole ["CURRENT_ROLE"] 0..=0, [], Ret::System(288), Never, Statement, func::session::current_role;
    CurrentUser ["CURRENT_USER"] 0..=0, [], Ret::System(288), Never, Statement, func::session::current_user;
    ConnectionId ["CONNECTION_ID"] 0..=0, [], Ret::UInt, Never, Statement, func::session::connection_id;
    LastInsertId ["LAST_INSERT_ID"] 0..=1, [Int], Ret::UInt, Never, Statement, func::session::last_insert_id;
    SetLastInsertId [] 1..=1, [Int], Ret::UInt, Strict, Volatile, func::session::set_last_insert_id;
    ReadVariable [] 2..=2, [Any], Ret::Custom(ret::of_first), Own, Volatile, func::variables::read;
    AssignVariable [] 2..=2, [Any], Ret::Custom(ret::of_first), Own, Volatile, func::variables::assign;
    RowCount ["ROW_COUNT"] 0..=0, [], Ret::Int, Never, Statement, func::session::row_count;
    FoundRows ["FOUND_ROWS"] 0..=0, [], Ret::Int, Never, Statement, func::session::found_rows;
    Sleep ["SLEEP"] 1..=1, [Double], Ret::Int, Never, Volatile, func::host::sleep;
    GetLock ["GET_LOCK"] 2..=2, [Chars, Int], Ret::Int, Own, Volatile, func::host::get_lock;
    ReleaseLock ["RELEASE_LOCK"] 1..=1, [Chars], Ret::Int, Own, Volatile, func::host::release_lock;
    ReleaseAllLocks ["RELEASE_ALL_LOCKS"] 0..=0, [], Ret::UInt, Never, Volatile, func::host::release_all_locks;
    IsFreeLock ["IS_FREE_LOCK"] 1..=1, [Chars], Ret::Int, Own, Volatile, func::host::is_free_lock;
    IsUsedLock ["IS_USED_LOCK"] 1..=1, [Chars], Ret::UInt, Own, Volatile, func::host::is_used_lock;
    WaitForExecutedGtidSet ["WAIT_FOR_EXECUTED_GTID_SET"] 1..=2, [Chars, Double], Ret::Int, Own, Volatile,
        func::host::wait_for_executed_gtid_set;
    SourcePosWait ["SOURCE_POS_WAIT", "MASTER_POS_WAIT"] 2..=4, [Chars, Int, Double, Chars], Ret::Int, Own, Volatile,
        func::host::source_pos_wait;
    GtidSubset ["GTID_SUBSET"] 2..=2, [Chars], Ret::Int, Strict, Immutable, func::gtid::subset;
    GtidSubtract ["GTID_SUBTRACT"] 2..=2, [Chars], Ret::Ascii(ret::len_gtids), Own, Immutable, func::gtid::subtract;
    StatementDigest ["STATEMENT_DIGEST"] 1..=1, [Chars], Ret::Ascii(ret::len_64), Partial, Statement,
        func::host::statement_digest;
    StatementDigestText ["STATEMENT_DIGEST_TEXT"] 1..=1, [Chars], Ret::Ascii(ret::len_huge), Partial, Statement,
        func::host::statement_digest_text;
    Benchmark ["BENCHMARK"] 2..=2, [Int, Any], Ret::Int, Own, Volatile, func::rewritten;
    LoadFile ["LOAD_FILE"] 1..=1, [Chars], Ret::Custom(ret::long_bytes), Partial, Volatile, func::server::load_file;
    PsCurrentThreadId ["PS_CURRENT_THREAD_ID"] 0..=0, [], Ret::UInt, Own, Statement, func::server::current_thread_id;
    PsThreadId ["PS_THREAD_ID"] 1..=1, [Int], Ret::UInt, Partial, Statement, func::server::thread_id;
    RolesGraphMl ["ROLES_GRAPHML"] 0..=0, [], Ret::Ascii(ret::len_long), Own, Statement, func::server::roles_graphml;
    IcuVersion ["ICU_VERSION"] 0..=0, [], Ret::System(4), Own, Statement, func::server::icu_version;
    ValidatePasswordStrength ["VALIDATE_PASSWORD_STRENGTH"] 1..=1, [Chars], Ret::Int, Strict, Statement, func::server::password_strength;
    UuidShort ["UUID_SHORT"] 0..=0, [], Ret::UInt, Never, Volatile, func::session::uuid_short;
    Uuid ["UUID"] 0..=0, [], Ret::System(36), Never, Volatile, func::session::uuid;
    Charset ["CHARSET"] 1..=1, [Any], Ret::System(64), Never, Immutable, func::string::charset;
    CollationOf ["COLLATION"] 1..=1, [Any], Ret::System(64), Never, Immutable, func::string::collation;
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
            Self::MemberNumber => "member",
            Self::AtMostOne => "at_most_one",
            // Its first argument is evaluated once; in the second, `LetValue` stands for it.
            Self::Let => "let",
            Self::LetValue => "value",
            Self::Recoded => "convert",
            Self::FullYear => "year",
            Self::DateTimeOrZero => "datetime",
            Self::ExactInteger | Self::ExactDecimal => "decimal",
            Self::IntegerOfDouble => "integer",
            Self::TextOfBytes => "text",
            Self::Stored => "stored",
            Self::ZeroFilled => "zerofill",
            Self::JsonValue => "JSON_VALUE",
            Self::JsonMemberOf => "MEMBER OF",
            Self::JsonTableDocument => "json_table",
            Self::JsonOfTruth | Self::JsonIsTrue => "json",
            Self::SetLastInsertId => "last_insert_id",
            Self::ReadVariable => "@",
            Self::AssignVariable => "@:=",
            _ => self.info().names[0],
        }
    }

    /// Whether it gives its first argument with something done to it: the text is of that one's character set and collation.
    pub fn changes_its_first(self) -> bool {
        matches!(
            self,
            Self::Replace
                | Self::SubstringIndex
                | Self::Lpad
                | Self::Rpad
                | Self::Insert
                | Self::Trim
                | Self::TrimLeading
                | Self::TrimTrailing
        )
    }

    /// Whether an argument is a value to become a document, or a part of one.
    pub fn takes_json_value(self, index: usize) -> bool {
        match self {
            Self::JsonObject => index % 2 == 1,
            Self::JsonSet
            | Self::JsonInsert
            | Self::JsonReplace
            | Self::JsonArrayAppend
            | Self::JsonArrayInsert => index > 0 && index.is_multiple_of(2),
            _ => self.info().arg(index) == ArgClass::Json,
        }
    }

    /// How it reads bytes that are no text, if it does: others refuse them.
    pub(crate) fn reads_bytes(self) -> Option<BytesAsText> {
        Some(match self {
            Self::RegexpLike | Self::RegexpInstr | Self::RegexpSubstr | Self::ExtractValue => {
                BytesAsText::Latin1
            }
            Self::IsIpv4
            | Self::IsIpv6
            | Self::InetAton
            | Self::Inet6Aton
            | Self::StrToDate
            | Self::ConvertTz
            | Self::GetFormat
            | Self::Format
            | Self::LoadFile
            | Self::ValidatePasswordStrength => BytesAsText::Replaced,
            _ => return None,
        })
    }

    /// Whether some of its arguments are JSON paths.
    pub(crate) fn takes_json_paths(self) -> bool {
        matches!(
            self,
            Self::JsonExtract
                | Self::JsonContains
                | Self::JsonContainsPath
                | Self::JsonKeys
                | Self::JsonSearch
                | Self::JsonValue
                | Self::JsonArrayAppend
                | Self::JsonArrayInsert
                | Self::JsonInsert
                | Self::JsonReplace
                | Self::JsonSet
                | Self::JsonRemove
                | Self::JsonLength
        )
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
