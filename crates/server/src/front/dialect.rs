//! What kind of server the source is, and which queries it would answer otherwise than a MySQL does.
//!
//! Avocet answers as MySQL does. A MariaDB means the same by most of SQL; what is known to differ, in value or in type, or is not known
//! to agree, goes there. The list is of what agrees: `bench/run slt --target mariadb` says what does not.

use avocet_sql::facts::{Aggregate, Part};
use avocet_sql::parse::ast::BinaryOp;
use avocet_types::Function;
use avocet_types::expr::CastTarget;
pub use avocet_types::expr::Dialect;

/// The kind of server behind the front, by the version in its greeting: `9.7.0`, `5.5.5-10.11.6-MariaDB-log`.
pub fn dialect_of(version: &[u8]) -> Dialect {
    let name = b"mariadb";
    match version.windows(name.len()).any(|word| word.eq_ignore_ascii_case(name)) {
        true => Dialect::MariaDb,
        false => Dialect::MySql,
    }
}

/// The first part of a query that a MariaDB gives another value or type than a MySQL, or may.
pub fn first_foreign(parts: &[Part]) -> Option<Part> {
    parts.iter().copied().find(|part| !agrees(*part))
}

/// Whether a MariaDB gives it a MySQL's value and type.
fn agrees(part: Part) -> bool {
    match part {
        Part::Function(function) => is_alike(function),
        // Fractions of seconds are cut off and not rounded, and other targets have other types.
        Part::Cast(target) => matches!(
            target,
            CastTarget::Signed
                | CastTarget::Unsigned
                | CastTarget::Decimal(_)
                | CastTarget::Double
                | CastTarget::Date
        ),
        // A quotient that more is computed from has other digits behind the ones that are shown.
        Part::Operator(op) => matches!(op, BinaryOp::IntDiv | BinaryOp::Mod | BinaryOp::Xor),
        Part::Aggregate(aggregate) => aggregate == Aggregate::GroupConcat,
        // Several numbers in one.
        Part::Extract(unit) => !unit.is_compound(),
        Part::Window | Part::TemporalLiteral | Part::DateArithmetic | Part::TimestampDiff => true,
        // Digits behind the point, and sums of doubles along a frame.
        Part::Share | Part::Frame => false,
        // How rows compare, characters of literals, binary strings as numbers or operands of bit operators, regular expressions,
        // documents, the order of sums, what LIMIT leaves out, and where a recursion ends.
        Part::Row
        | Part::ConvertUsing
        | Part::Collate
        | Part::BitNot
        | Part::Regexp
        | Part::BinaryLiteral
        | Part::Introducer
        | Part::JsonValue
        | Part::JsonTable
        | Part::Rollup
        | Part::FoundRows
        | Part::Recursive => false,
    }
}

/// Whether a function gives the same values, of the same types.
fn is_alike(function: Function) -> bool {
    use Function as F;
    matches!(
        function,
        F::Abs
            | F::Ceil
            | F::Floor
            | F::Round
            | F::Truncate
            | F::Mod
            | F::Pow
            | F::Sqrt
            | F::Exp
            | F::Ln
            | F::Log
            | F::Log2
            | F::Log10
            | F::Sign
            | F::Pi
            | F::Crc32
            | F::Concat
            | F::ConcatWs
            | F::Length
            | F::BitLength
            | F::CharLength
            | F::Upper
            | F::Lower
            | F::Substring
            | F::Left
            | F::Right
            | F::Trim
            | F::TrimLeading
            | F::TrimTrailing
            | F::Replace
            | F::Lpad
            | F::Rpad
            | F::Repeat
            | F::Reverse
            | F::Space
            | F::Strcmp
            | F::Ascii
            | F::Ord
            | F::Field
            | F::Elt
            | F::SubstringIndex
            | F::Md5
            | F::Sha1
            | F::Sha2
            | F::Year
            | F::Quarter
            | F::Month
            | F::DayOfMonth
            | F::DayOfWeek
            | F::DayOfYear
            | F::Week
            | F::WeekOfYear
            | F::YearWeek
            | F::WeekDay
            | F::DayName
            | F::MonthName
            | F::Hour
            | F::Minute
            | F::Second
            | F::Microsecond
            | F::ToDays
            | F::FromDays
            | F::LastDay
            | F::MakeDate
            | F::DateDiff
            | F::DateFormat
            | F::UnixTimestamp
            | F::FromUnixTime
            | F::PeriodAdd
            | F::PeriodDiff
            | F::Now
            | F::CurDate
            | F::UtcTimestamp
            | F::UtcDate
            | F::Date
            | F::If
            | F::IfNull
            | F::NullIf
            | F::Coalesce
            | F::IsNull
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_say_what_they_are() {
        assert_eq!(dialect_of(b"5.5.5-10.11.6-MariaDB-0+deb12u1"), Dialect::MariaDb);
        assert_eq!(dialect_of(b"11.8.2-MariaDB"), Dialect::MariaDb);
        assert_eq!(dialect_of(b"9.7.0"), Dialect::MySql);
        assert_eq!(dialect_of(b""), Dialect::MySql);
    }
}
