//! Which integers of CREATE TABLE … SELECT have a column of INT. MySQL goes by how many characters a result has at most
//! (`Item::tmp_table_field_from_field_type`), and has such a number for each of its functions.

use crate::datum::Datum;
use crate::expr::{Expr, ExprKind, Function, IntervalUnit, UnitFunction};
use crate::sql_type::{IntWidth, SqlType};

/// From so many characters on, an integer has a column of BIGINT.
const CHARACTERS_OF_BIGINT: usize = 10;

impl Expr {
    /// Whether a column that is made for its values is an INT, though they are computed as BIGINTs.
    pub fn is_created_as_int(&self) -> bool {
        match &self.kind {
            ExprKind::Compare { .. }
            | ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::Xor(..)
            | ExprKind::Not(_)
            | ExprKind::Is { .. }
            | ExprKind::Between { .. }
            | ExprKind::InList { .. }
            | ExprKind::Like { .. } => true,
            ExprKind::Literal(Datum::Int(v)) => v.to_string().len() < CHARACTERS_OF_BIGINT,
            ExprKind::Literal(Datum::UInt(v)) => v.to_string().len() < CHARACTERS_OF_BIGINT,
            ExprKind::Literal(value) => value.is_null(),
            ExprKind::Convert(inner) => {
                let is_narrow = match inner.ty {
                    SqlType::Int { width: IntWidth::W64, .. } => false,
                    SqlType::Int { width: IntWidth::W32, unsigned } => !unsigned,
                    SqlType::Int { .. } | SqlType::Bool => true,
                    _ => false,
                };
                is_narrow || inner.is_created_as_int()
            }
            ExprKind::Case { branches, otherwise } => {
                let mut values = branches.iter().map(|(_, value)| value).chain(otherwise.as_deref());
                values.all(Self::is_created_as_int)
            }
            // IFNULL is a BIGINT, and COALESCE an INT, to MySQL; here they are one.
            ExprKind::Call(Function::Greatest | Function::Least, values) => {
                values.iter().all(Self::is_created_as_int)
            }
            ExprKind::Call(function, _) => is_of_few_digits(*function),
            ExprKind::UnitCall { function: UnitFunction::Extract, unit, .. } => !matches!(
                unit,
                IntervalUnit::DaySecond | IntervalUnit::DayMicrosecond | IntervalUnit::HourMicrosecond
            ),
            _ => false,
        }
    }
}

const fn is_of_few_digits(function: Function) -> bool {
    use Function as F;
    matches!(
        function,
        F::Month
            | F::DayOfMonth
            | F::Quarter
            | F::Hour
            | F::Minute
            | F::Second
            | F::DayOfYear
            | F::DayOfWeek
            | F::WeekDay
            | F::Week
            | F::WeekOfYear
            | F::YearWeek
            | F::ToDays
            | F::TimeToSec
            | F::DateDiff
            | F::Length
            | F::CharLength
            | F::BitLength
            | F::Ascii
            | F::Instr
            | F::Locate
            | F::Strcmp
            | F::FindInSet
            | F::Field
            | F::Crc32
            | F::Interval
            | F::RegexpLike
            | F::IsIpv4
            | F::IsIpv6
            | F::IsIpv4Compat
            | F::IsIpv4Mapped
            | F::IsUuid
            | F::GetLock
            | F::ReleaseLock
            | F::IsFreeLock
            | F::JsonOverlaps
            | F::JsonMemberOf
            | F::UncompressedLength
    )
}
