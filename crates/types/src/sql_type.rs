//! The types that a column or an expression can have.

use std::fmt;

use arrow::datatypes::{DataType, TimeUnit};

use crate::collation::Charset;
use crate::geometry::GeometryType;
use crate::members::Members;
use crate::number::power_of_ten;

/// A MySQL type, with all that decides how its values are stored, compared and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SqlType {
    /// The type of a bare `NULL`.
    Null,
    /// `TINYINT(1)`, as BOOL is stored.
    Bool,
    Int {
        width: IntWidth,
        unsigned: bool,
    },
    /// 1 ≤ precision ≤ 65, scale ≤ 30, scale ≤ precision.
    Decimal {
        precision: u8,
        scale: u8,
        unsigned: bool,
    },
    Float(RealFormat),
    Double(RealFormat),
    /// Length in characters, at most 255.
    Char {
        len: u32,
        collation: Collation,
    },
    /// Length in characters.
    VarChar {
        len: u32,
        collation: Collation,
    },
    Text {
        size: LobSize,
        collation: Collation,
    },
    /// Length in bytes; values are padded with zero bytes.
    Binary {
        len: u32,
    },
    VarBinary {
        len: u32,
    },
    Blob {
        size: LobSize,
    },
    Date,
    /// Fractional digits 0–6. Without time zone.
    DateTime {
        fsp: u8,
    },
    /// Stored in UTC, shown in the session's time zone.
    Timestamp {
        fsp: u8,
    },
    /// −838:59:59 to 838:59:59.
    Time {
        fsp: u8,
    },
    Year,
    /// The number of a member, from 1; 0 is the error value, an empty string.
    Enum(Members),
    /// A bit for each member that is in it.
    Set(Members),
    /// `len` bits as a number, 1 ≤ `len` ≤ 64.
    Bit {
        len: u8,
    },
    /// A document: see [`crate::json`].
    Json,
    /// A spatial value: see [`crate::geometry`].
    Geometry {
        ty: GeometryType,
        /// The only reference system that values may have.
        srid: Option<u32>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IntWidth {
    W8,
    W16,
    W24,
    W32,
    W64,
}

/// What a FLOAT or DOUBLE has beside its width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RealFormat {
    /// No values below zero.
    pub unsigned: bool,
    /// `(M,D)`: values are rounded to D digits after the point, and have M in all at most. They are shown with D.
    pub digits: Option<(u8, u8)>,
}

impl RealFormat {
    pub const PLAIN: Self = Self { unsigned: false, digits: None };

    /// Of what an expression gives: shown with so many digits after the point, and as large as it comes.
    pub const fn shown_with(decimals: u8) -> Self {
        let decimals = if decimals > Self::MOST_DECIMALS { Self::MOST_DECIMALS } else { decimals };
        Self { unsigned: false, digits: Some((u8::MAX, decimals)) }
    }

    /// MySQL's `DECIMAL_MAX_SCALE`.
    pub const MOST_DECIMALS: u8 = 30;

    /// Digits after the point, if their number is fixed.
    pub fn decimals(self) -> Option<u8> {
        self.digits.map(|(_, decimals)| decimals)
    }

    /// A value as it is stored: rounded, as MySQL rounds it, and within what digits and sign allow. False if it was beyond.
    pub fn fit(self, v: f64) -> (f64, bool) {
        let (mut fitted, mut fits) = (v, true);
        if let Some((digits, decimals)) = self.digits {
            let unit = power_of_ten(decimals.into());
            let most = power_of_ten(u32::from(digits.saturating_sub(decimals))) - 1.0 / unit;
            if v.is_finite() {
                fitted = v.floor() + ((v - v.floor()) * unit).round_ties_even() / unit;
            }
            fits = fitted.abs() <= most;
            fitted = fitted.clamp(-most, most);
        }
        if self.unsigned && fitted < 0.0 {
            return (0.0, false);
        }
        (fitted, fits)
    }
}

impl fmt::Display for RealFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((digits, decimals)) = self.digits {
            write!(f, "({digits},{decimals})")?;
        }
        f.write_str(if self.unsigned { " unsigned" } else { "" })
    }
}

/// The four sizes of TEXT and BLOB: at most 2^8−1, 2^16−1, 2^24−1, 2^32−1 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LobSize {
    Tiny,
    Normal,
    Medium,
    Long,
}

impl LobSize {
    pub const fn max_bytes(self) -> u64 {
        match self {
            Self::Tiny => (1 << 8) - 1,
            Self::Normal => (1 << 16) - 1,
            Self::Medium => (1 << 24) - 1,
            Self::Long => (1 << 32) - 1,
        }
    }

    /// The smallest for so many bytes.
    pub fn for_bytes(bytes: u64) -> Self {
        let sizes = [Self::Tiny, Self::Normal, Self::Medium];
        sizes.into_iter().find(|size| bytes <= size.max_bytes()).unwrap_or(Self::Long)
    }
}

/// A collation by MySQL's collation id. All text is UTF-8 in memory and on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collation(pub u16);

impl Collation {
    pub const UTF8MB4_0900_AI_CI: Self = Self(255);
    /// The collation of names and of what the system says of itself.
    pub const UTF8MB3_GENERAL_CI: Self = Self(33);
    pub const UTF8MB4_GENERAL_CI: Self = Self(45);
    pub const UTF8MB4_BIN: Self = Self(46);
    pub const UTF8MB4_0900_BIN: Self = Self(309);
    pub const BINARY: Self = Self(63);
    /// The order of JSON documents. No collation that can be named: it stands where strings have theirs, so that sorting,
    /// grouping and joining find the order of a type in one way.
    pub const JSON: Self = Self(u16::MAX);
    pub const DEFAULT: Self = Self::UTF8MB4_0900_AI_CI;
}

impl SqlType {
    pub const BIGINT: Self = Self::Int { width: IntWidth::W64, unsigned: false };
    pub const BIGINT_UNSIGNED: Self = Self::Int { width: IntWidth::W64, unsigned: true };
    /// The texts of documents.
    pub const JSON_TEXT: Self = Self::Text { size: LobSize::Long, collation: Collation::UTF8MB4_BIN };
    /// Spatial values of any type and reference system.
    pub const GEOMETRY: Self = Self::Geometry { ty: GeometryType::Geometry, srid: None };
    pub const FLOAT: Self = Self::Float(RealFormat::PLAIN);
    pub const DOUBLE: Self = Self::Double(RealFormat::PLAIN);
    pub const INT: Self = Self::Int { width: IntWidth::W32, unsigned: false };

    pub const fn is_string(&self) -> bool {
        matches!(self, Self::Char { .. } | Self::VarChar { .. } | Self::Text { .. })
    }

    pub const fn is_bytes(&self) -> bool {
        matches!(
            self,
            Self::Binary { .. } | Self::VarBinary { .. } | Self::Blob { .. } | Self::Geometry { .. }
        )
    }

    pub const fn is_geometry(&self) -> bool {
        matches!(self, Self::Geometry { .. })
    }

    pub const fn is_integer(&self) -> bool {
        matches!(self, Self::Bool | Self::Int { .. } | Self::Year)
    }

    pub const fn is_temporal(&self) -> bool {
        matches!(self, Self::Date | Self::DateTime { .. } | Self::Timestamp { .. } | Self::Time { .. })
    }

    pub const fn is_unsigned(&self) -> bool {
        match self {
            Self::Int { unsigned, .. } | Self::Decimal { unsigned, .. } => *unsigned,
            Self::Year | Self::Enum(_) | Self::Set(_) | Self::Bit { .. } => true,
            _ => false,
        }
    }

    /// The members of ENUM and SET.
    pub const fn members(&self) -> Option<Members> {
        match self {
            Self::Enum(members) | Self::Set(members) => Some(*members),
            _ => None,
        }
    }

    /// Whether values are numbers that stand for texts: the types of strings whose `Datum` is an integer.
    pub const fn is_coded(&self) -> bool {
        matches!(self, Self::Enum(_) | Self::Set(_) | Self::Bit { .. })
    }

    /// The width of the unsigned integer that keeps a value of a coded type.
    pub const fn coded_width(&self) -> Option<IntWidth> {
        let bits = match self {
            Self::Enum(members) if members.count() < 256 => 8,
            Self::Enum(_) => 16,
            Self::Set(members) => members.count(),
            Self::Bit { len } => *len as usize,
            _ => return None,
        };
        Some(match bits {
            0..=8 => IntWidth::W8,
            9..=16 => IntWidth::W16,
            17..=32 => IntWidth::W32,
            _ => IntWidth::W64,
        })
    }

    /// The largest value of a coded type.
    pub const fn coded_max(&self) -> Option<u64> {
        Some(match self {
            Self::Enum(members) => members.count() as u64,
            Self::Set(members) => members.mask(),
            Self::Bit { len } => u64::MAX >> (64 - *len as u32),
            _ => return None,
        })
    }

    /// The collation of a character string type.
    pub const fn collation(&self) -> Option<Collation> {
        match self {
            Self::Char { collation, .. } | Self::VarChar { collation, .. } | Self::Text { collation, .. } => {
                Some(*collation)
            }
            _ => None,
        }
    }

    /// The collation that a column of the type is declared with: of character strings, ENUM and SET.
    pub const fn declared_collation(&self) -> Option<Collation> {
        match self {
            Self::Enum(members) | Self::Set(members) => Some(members.collation()),
            _ => self.collation(),
        }
    }

    /// The character set of a character string type.
    pub fn charset(&self) -> Option<Charset> {
        self.collation().map(|collation| collation.info().charset)
    }

    /// Whether texts of this type are texts of another as they are: its character set has all of their characters.
    pub fn text_stays(&self, to: &Self) -> bool {
        match (self.collation(), to.collation()) {
            (Some(a), Some(b)) => a == b || b.info().charset.holds(a.info().charset),
            _ => true,
        }
    }

    /// By what values are ordered where bytes alone are not the order: the collation of strings, that of documents.
    pub const fn order(&self) -> Option<Collation> {
        match self {
            Self::Json => Some(Collation::JSON),
            other => other.collation(),
        }
    }

    /// How values of this type look in Arrow arrays: in column blocks, scans and DataFusion plans.
    pub fn arrow_type(&self) -> DataType {
        match *self {
            Self::Null => DataType::Null,
            Self::Bool => DataType::Int8,
            Self::Int { width, unsigned } => match (width, unsigned) {
                (IntWidth::W8, false) => DataType::Int8,
                (IntWidth::W8, true) => DataType::UInt8,
                (IntWidth::W16, false) => DataType::Int16,
                (IntWidth::W16, true) => DataType::UInt16,
                (IntWidth::W24 | IntWidth::W32, false) => DataType::Int32,
                (IntWidth::W24 | IntWidth::W32, true) => DataType::UInt32,
                (IntWidth::W64, false) => DataType::Int64,
                (IntWidth::W64, true) => DataType::UInt64,
            },
            Self::Decimal { precision, scale, .. } if precision <= 38 => {
                DataType::Decimal128(precision, scale as i8)
            }
            Self::Decimal { precision, scale, .. } => DataType::Decimal256(precision, scale as i8),
            Self::Float(_) => DataType::Float32,
            Self::Double(_) => DataType::Float64,
            Self::Char { .. } | Self::VarChar { .. } | Self::Text { .. } => DataType::Utf8View,
            Self::Binary { .. }
            | Self::VarBinary { .. }
            | Self::Blob { .. }
            | Self::Json
            | Self::Geometry { .. } => DataType::BinaryView,
            Self::Date => DataType::Date32,
            Self::DateTime { .. } | Self::Timestamp { .. } => {
                DataType::Timestamp(TimeUnit::Microsecond, None)
            }
            Self::Time { .. } => DataType::Duration(TimeUnit::Microsecond),
            Self::Year => DataType::UInt16,
            Self::Enum(_) | Self::Set(_) | Self::Bit { .. } => match self.coded_width() {
                Some(width) => Self::Int { width, unsigned: true }.arrow_type(),
                None => unreachable!("the type is coded"),
            },
        }
    }
}

impl SqlType {
    /// Fractional digits of a type that has seconds.
    pub const fn fsp(&self) -> Option<u8> {
        match self {
            Self::DateTime { fsp } | Self::Timestamp { fsp } | Self::Time { fsp } => Some(*fsp),
            _ => None,
        }
    }

    /// How long a string of the type may be, in characters or bytes.
    pub fn declared_len(&self) -> Option<u64> {
        match self {
            Self::Char { len, .. }
            | Self::VarChar { len, .. }
            | Self::Binary { len }
            | Self::VarBinary { len } => Some(u64::from(*len)),
            Self::Text { size, .. } | Self::Blob { size } => Some(match size {
                LobSize::Tiny => 255,
                _ => u64::from(u32::MAX),
            }),
            _ => None,
        }
    }

    /// Bytes that a value may have at most, for types whose limit is in bytes.
    pub fn max_bytes(&self) -> Option<u64> {
        match self {
            Self::Text { size, .. } | Self::Blob { size } => Some(size.max_bytes()),
            Self::Binary { len } | Self::VarBinary { len } => Some((*len).into()),
            _ => None,
        }
    }

    /// The least and largest value of a type that is kept as an integer.
    pub fn int_range(&self) -> Option<(i128, i128)> {
        let bits = match self {
            Self::Bool => 8,
            Self::Int { width, .. } => width.bits(),
            Self::Year => return Some((0, 2155)),
            _ => return self.coded_max().map(|max| (0, max.into())),
        };
        Some(if self.is_unsigned() {
            (0, (1 << bits) - 1)
        } else {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        })
    }
}

impl IntWidth {
    pub const fn bits(self) -> u32 {
        match self {
            Self::W8 => 8,
            Self::W16 => 16,
            Self::W24 => 24,
            Self::W32 => 32,
            Self::W64 => 64,
        }
    }
}

/// As SHOW CREATE TABLE prints it, without character set and collation.
impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lob = |size: &LobSize| match size {
            LobSize::Tiny => "tiny",
            LobSize::Normal => "",
            LobSize::Medium => "medium",
            LobSize::Long => "long",
        };
        let sign = |unsigned: &bool| if *unsigned { " unsigned" } else { "" };
        let with_fsp = |f: &mut fmt::Formatter<'_>, name: &str, fsp: u8| match fsp {
            0 => f.write_str(name),
            _ => write!(f, "{name}({fsp})"),
        };
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("tinyint(1)"),
            Self::Int { width, unsigned } => {
                let name = match width {
                    IntWidth::W8 => "tinyint",
                    IntWidth::W16 => "smallint",
                    IntWidth::W24 => "mediumint",
                    IntWidth::W32 => "int",
                    IntWidth::W64 => "bigint",
                };
                write!(f, "{name}{}", sign(unsigned))
            }
            Self::Decimal { precision, scale, unsigned } => {
                write!(f, "decimal({precision},{scale}){}", sign(unsigned))
            }
            Self::Float(real) => write!(f, "float{real}"),
            Self::Double(real) => write!(f, "double{real}"),
            Self::Char { len, .. } => write!(f, "char({len})"),
            Self::VarChar { len, .. } => write!(f, "varchar({len})"),
            Self::Text { size, .. } => write!(f, "{}text", lob(size)),
            Self::Binary { len } => write!(f, "binary({len})"),
            Self::VarBinary { len } => write!(f, "varbinary({len})"),
            Self::Blob { size } => write!(f, "{}blob", lob(size)),
            Self::Date => f.write_str("date"),
            Self::DateTime { fsp } => with_fsp(f, "datetime", *fsp),
            Self::Timestamp { fsp } => with_fsp(f, "timestamp", *fsp),
            Self::Time { fsp } => with_fsp(f, "time", *fsp),
            Self::Year => f.write_str("year"),
            Self::Enum(members) => write!(f, "enum({members})"),
            Self::Set(members) => write!(f, "set({members})"),
            Self::Bit { len } => write!(f, "bit({len})"),
            Self::Json => f.write_str("json"),
            Self::Geometry { ty, .. } => f.write_str(ty.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MySQL 9.7: values of columns of these types.
    #[test]
    fn reals_are_rounded_as_they_are_stored() {
        let real = |unsigned, digits| RealFormat { unsigned, digits };
        let cases = [
            (real(false, Some((8, 2))), 1.005, (1.0, true)),
            (real(true, Some((10, 3))), 2.0005, (2.001, true)),
            (real(false, Some((5, 0))), 5.5, (5.0, true)),
            (real(false, Some((6, 4))), 6.55555, (6.5556, true)),
            (real(false, Some((8, 2))), 1e6, (999_999.99, false)),
            (real(false, Some((8, 2))), 999_999.996, (999_999.99, false)),
            (real(false, Some((8, 2))), -1e300, (-999_999.99, false)),
            (real(true, None), -0.5, (0.0, false)),
            (RealFormat::PLAIN, -1e300, (-1e300, true)),
        ];
        for (format, v, wanted) in cases {
            assert_eq!(format.fit(v), wanted, "{v} as {format}");
        }
    }

    #[test]
    fn types_print_as_in_show_create_table() {
        let collation = Collation::DEFAULT;
        for (ty, wanted) in [
            (SqlType::INT, "int"),
            (SqlType::BIGINT_UNSIGNED, "bigint unsigned"),
            (SqlType::Bool, "tinyint(1)"),
            (SqlType::VarChar { len: 20, collation }, "varchar(20)"),
            (SqlType::Text { size: LobSize::Medium, collation }, "mediumtext"),
            (SqlType::Decimal { precision: 12, scale: 2, unsigned: true }, "decimal(12,2) unsigned"),
            (SqlType::DateTime { fsp: 6 }, "datetime(6)"),
            (SqlType::Time { fsp: 0 }, "time"),
            (SqlType::Blob { size: LobSize::Normal }, "blob"),
            (SqlType::DOUBLE, "double"),
            (SqlType::Float(RealFormat { unsigned: true, digits: Some((8, 2)) }), "float(8,2) unsigned"),
        ] {
            assert_eq!(ty.to_string(), wanted);
        }
        assert_eq!(SqlType::INT.int_range(), Some((i32::MIN.into(), i32::MAX.into())));
    }
}
