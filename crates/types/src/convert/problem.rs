//! What can be wrong with a value that is stored or cast.

use std::fmt;

use thiserror::Error;

use crate::geometry::Misfit;
use crate::json::JsonError;
use crate::sql_type::SqlType;
use crate::text::printable;

/// A value does not fit its column as it is. Whether that is an error or a warning is the SQL mode's choice.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    #[error("Out of range value")]
    OutOfRange,
    #[error("Data truncated")]
    Truncated,
    /// Digits after the point were rounded off, or spaces cut: never more than a note.
    #[error("Data truncated")]
    Rounded,
    /// Not a value of this kind (`integer`, `decimal`, `DOUBLE`, `string`).
    #[error("Incorrect {kind} value: '{value}'")]
    Incorrect { kind: &'static str, value: String },
    /// A number for a DECIMAL, with more behind it. Out of strict mode the number is kept, which is a note, beside what is wrong
    /// with it.
    #[error("Incorrect decimal value: '{value}'")]
    BeyondDecimal { value: String, number: Option<Box<StoreError>> },
    /// Not a date or time (`date`, `datetime`, `time`).
    #[error("Incorrect {kind} value: '{value}'")]
    IncorrectTemporal { kind: &'static str, value: String },
    /// Rounding leads beyond the year 9999.
    #[error("Datetime function: datetime field overflow")]
    RoundedOver,
    /// The clock leaves this time out where it is put forward.
    #[error("Incorrect datetime value: '{value}'")]
    LeftOut { value: String },
    /// The date or time has a part that the column has not: never more than a note.
    #[error("Incorrect {kind} value: '{value}'")]
    PartLost { kind: &'static str, value: String },
    #[error("Data too long")]
    TooLong,
    /// A number of more bits than the column has.
    #[error("Data too long")]
    TooManyBits,
    #[error("cannot be null")]
    Null,
    /// The same of a spatial column: in every SQL mode.
    #[error("cannot be null")]
    NullGeometry,
    /// No document, in every SQL mode.
    #[error("{0}")]
    Json(JsonError),
    /// A byte string is no text of a document.
    #[error("Cannot create a JSON value from a string with CHARACTER SET 'binary'.")]
    JsonCharset,
    /// A document that is no value of the type.
    #[error("Invalid JSON value for CAST to {0}")]
    JsonCast(&'static str),
    /// No spatial value, or none for the column; in every SQL mode.
    #[error("Cannot get geometry object from data you send to the GEOMETRY field")]
    Geometry(Misfit),
}

impl StoreError {
    /// NULL in a column of a type that takes none.
    pub const fn null_in(ty: &SqlType) -> Self {
        match ty {
            SqlType::Geometry { .. } => Self::NullGeometry,
            _ => Self::Null,
        }
    }

    /// A text whose rest, from here on, cannot be stored.
    pub fn incorrect_string(rest: &[u8]) -> Self {
        Self::Incorrect { kind: "string", value: printable(rest, 1) }
    }

    pub const fn errno(&self) -> u16 {
        match self {
            Self::OutOfRange => 1264,
            Self::Truncated | Self::Rounded => 1265,
            Self::Incorrect { .. } | Self::BeyondDecimal { .. } => 1366,
            Self::IncorrectTemporal { .. } | Self::LeftOut { .. } | Self::PartLost { .. } => 1292,
            Self::RoundedOver => 1441,
            Self::TooLong | Self::TooManyBits => 1406,
            Self::Null => 1048,
            Self::NullGeometry => 3673,
            Self::Json(problem) => problem.errno(),
            Self::JsonCharset => 3144,
            Self::JsonCast(_) => 3156,
            Self::Geometry(Misfit::NoGeometry) => 1416,
            Self::Geometry(Misfit::Srid { .. }) => 3643,
        }
    }

    pub const fn sqlstate(&self) -> &'static str {
        match self {
            Self::OutOfRange => "22003",
            Self::Truncated | Self::Rounded => "01000",
            Self::Incorrect { .. } | Self::BeyondDecimal { .. } => "HY000",
            Self::IncorrectTemporal { .. } | Self::LeftOut { .. } | Self::PartLost { .. } => "22007",
            Self::TooLong | Self::TooManyBits => "22001",
            Self::Null | Self::NullGeometry => "23000",
            Self::Json(_) | Self::JsonCharset => "22032",
            Self::JsonCast(_) => "22018",
            Self::RoundedOver => "22008",
            Self::Geometry(Misfit::NoGeometry) => "22003",
            Self::Geometry(Misfit::Srid { .. }) => "HY000",
        }
    }

    /// Whether it is a note in every SQL mode.
    pub const fn is_note(&self) -> bool {
        matches!(self, Self::Rounded | Self::PartLost { .. })
    }

    /// Whether it is an error in every SQL mode.
    pub const fn is_fatal(&self) -> bool {
        matches!(self, Self::Json(_) | Self::JsonCharset | Self::Geometry(_) | Self::NullGeometry)
    }

    /// What is said where it is no error: numbers, texts and whether they are notes. A string that was cut is a value like any
    /// other that was. Bits are out of range, unless the mode is strict and the statement is not (IGNORE).
    pub fn warnings(&self, column: &str, row: u64, strict_mode: bool) -> Vec<(u16, String, bool)> {
        let shown = match self {
            Self::BeyondDecimal { number, .. } => {
                let mut all = Self::Rounded.warnings(column, row, strict_mode);
                all.extend(number.iter().flat_map(|number| number.warnings(column, row, strict_mode)));
                return all;
            }
            Self::LeftOut { .. } => {
                return vec![(
                    1299,
                    format!("Invalid TIMESTAMP value in column '{column}' at row {row}"),
                    false,
                )];
            }
            Self::TooLong => &Self::Truncated,
            Self::TooManyBits if !strict_mode => &Self::OutOfRange,
            Self::RoundedOver => &Self::OutOfRange,
            other => other,
        };
        vec![(shown.errno(), shown.message(column, row), shown.is_note())]
    }

    /// MySQL's text; `row` counts from 1 in a statement.
    pub fn message(&self, column: &str, row: u64) -> String {
        match self {
            Self::Null | Self::NullGeometry => format!("Column '{column}' cannot be null"),
            Self::Json(problem @ JsonError::Syntax { .. }) => {
                format!("Invalid JSON text: {problem} in value for column '{column}'.")
            }
            Self::Json(_) | Self::JsonCharset | Self::RoundedOver | Self::Geometry(Misfit::NoGeometry) => {
                self.to_string()
            }
            Self::Geometry(Misfit::Srid { value, column: wanted }) => format!(
                "The SRID of the geometry does not match the SRID of the column '{column}'. The SRID of the geometry is \
                 {value}, but the SRID of the column is {wanted}. Consider changing the SRID of the geometry or the SRID \
                 property of the column."
            ),
            Self::JsonCast(_) => format!("{self} from column {column} at row {row}"),
            other => format!("{other} for column '{column}' at row {row}"),
        }
    }
}

/// A cast could not take the whole value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CastWarning {
    /// `Truncated incorrect INTEGER value: '12abc'`.
    Truncated {
        kind: Cow,
        value: String,
    },
    /// `Incorrect datetime value: 'abc'`; the result is NULL.
    Incorrect {
        kind: &'static str,
        value: String,
    },
    /// Does not fit the DECIMAL; MySQL's text names the whole expression as the column.
    OutOfRange,
    NegativeToUnsigned,
}

/// A static or made-up name.
type Cow = std::borrow::Cow<'static, str>;

impl CastWarning {
    pub const fn errno(&self) -> u16 {
        match self {
            Self::Truncated { .. } => 1292,
            Self::Incorrect { kind, .. } => {
                if matches!(kind.as_bytes(), b"YEAR") {
                    1525
                } else {
                    1292
                }
            }
            Self::OutOfRange => 1264,
            Self::NegativeToUnsigned => 1105,
        }
    }
}

impl fmt::Display for CastWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { kind, value } => write!(f, "Truncated incorrect {kind} value: '{value}'"),
            Self::Incorrect { kind, value } => write!(f, "Incorrect {kind} value: '{value}'"),
            Self::OutOfRange => f.write_str("Out of range value for column 'cast' at row 1"),
            Self::NegativeToUnsigned => {
                f.write_str("Cast to unsigned converted negative integer to its positive complement")
            }
        }
    }
}
