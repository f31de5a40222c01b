//! The types that a column or an expression can have.

use arrow::datatypes::{DataType, TimeUnit};

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
    Float,
    Double,
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IntWidth {
    W8,
    W16,
    W24,
    W32,
    W64,
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
}

/// A collation by MySQL's collation id. All text is UTF-8 in memory and on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collation(pub u16);

impl Collation {
    pub const UTF8MB4_0900_AI_CI: Self = Self(255);
    pub const UTF8MB4_GENERAL_CI: Self = Self(45);
    pub const UTF8MB4_BIN: Self = Self(46);
    pub const UTF8MB4_0900_BIN: Self = Self(309);
    pub const BINARY: Self = Self(63);
    pub const DEFAULT: Self = Self::UTF8MB4_0900_AI_CI;
}

impl SqlType {
    pub const BIGINT: Self = Self::Int { width: IntWidth::W64, unsigned: false };
    pub const BIGINT_UNSIGNED: Self = Self::Int { width: IntWidth::W64, unsigned: true };
    pub const INT: Self = Self::Int { width: IntWidth::W32, unsigned: false };

    pub const fn is_string(&self) -> bool {
        matches!(self, Self::Char { .. } | Self::VarChar { .. } | Self::Text { .. })
    }

    pub const fn is_bytes(&self) -> bool {
        matches!(self, Self::Binary { .. } | Self::VarBinary { .. } | Self::Blob { .. })
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
            Self::Year => true,
            _ => false,
        }
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
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Char { .. } | Self::VarChar { .. } | Self::Text { .. } => DataType::Utf8View,
            Self::Binary { .. } | Self::VarBinary { .. } | Self::Blob { .. } => DataType::BinaryView,
            Self::Date => DataType::Date32,
            Self::DateTime { .. } | Self::Timestamp { .. } => {
                DataType::Timestamp(TimeUnit::Microsecond, None)
            }
            Self::Time { .. } => DataType::Duration(TimeUnit::Microsecond),
            Self::Year => DataType::UInt16,
        }
    }
}
