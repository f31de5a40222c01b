//! Rust types as values of columns, and structs as rows.

use avocet_types::schema::ColumnDef;
use avocet_types::{Datum, Decimal, RowRef, SqlType, Value};

/// A Rust type that values of a column can have.
pub trait Field: Sized {
    /// Whether every value that the column can hold is one of this type.
    fn reads(column: &ColumnDef) -> bool;
    fn datum(&self) -> Datum<'_>;
    /// `None` if it is no value of this type.
    fn from_datum(value: Datum<'_>) -> Option<Self>;
}

/// A field's column: its name, and whether a column of that name can be read into the field.
pub type FieldColumn = (&'static str, fn(&ColumnDef) -> bool);

/// A struct whose fields are columns. Made by [`row!`](crate::row).
pub trait Row: Sized {
    /// The columns' names, and what their types must satisfy.
    const COLUMNS: &'static [FieldColumn];

    /// A value for each column.
    fn datums(&self) -> Vec<Datum<'_>>;

    /// Reads the fields from these columns of a row.
    fn read(row: &RowRef<'_>, columns: &[usize]) -> Option<Self>;
}

/// Declares a struct and makes it a [`Row`](crate::typed::Row): each field is the column of its name.
///
/// The struct may leave columns out: inserts give them their defaults, changes leave them as they are. NULL is `None` of an
/// `Option`; so is, for inserts, the request for an AUTO_INCREMENT value.
///
/// ```
/// avocet_engine::row! {
///     #[derive(Debug, PartialEq)]
///     pub struct Account { pub id: i64, pub owner: String, pub note: Option<String> }
/// }
/// ```
#[macro_export]
macro_rules! row {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $ty:ty),* $(,)?
    }) => {
        $(#[$meta])*
        $vis struct $name { $($(#[$field_meta])* $field_vis $field: $ty),* }

        impl $crate::typed::Row for $name {
            const COLUMNS: &'static [$crate::typed::FieldColumn] =
                &[$((stringify!($field), <$ty as $crate::typed::Field>::reads)),*];

            fn datums(&self) -> Vec<$crate::types::Datum<'_>> {
                vec![$($crate::typed::Field::datum(&self.$field)),*]
            }

            fn read(row: &$crate::types::RowRef<'_>, columns: &[usize]) -> Option<Self> {
                let mut columns = columns.iter();
                Some(Self { $($field: $crate::typed::Field::from_datum(row.get(*columns.next()?))?),* })
            }
        }
    };
}

macro_rules! integers {
    ($($ty:ty: $bits:literal $signed:literal),*) => { $(
        impl Field for $ty {
            fn reads(column: &ColumnDef) -> bool {
                !column.nullable && match column.ty {
                    SqlType::Bool => $signed || $bits > 8,
                    SqlType::Int { width, unsigned: false } => $signed && width.bits() <= $bits,
                    SqlType::Int { width, unsigned: true } if $signed => width.bits() < $bits,
                    SqlType::Int { width, unsigned: true } => width.bits() <= $bits,
                    SqlType::Year => $bits > 8,
                    _ => false,
                }
            }

            fn datum(&self) -> Datum<'_> {
                if $signed { Datum::Int(*self as i64) } else { Datum::UInt(*self as u64) }
            }

            fn from_datum(value: Datum<'_>) -> Option<Self> {
                match value {
                    Datum::Int(v) => v.try_into().ok(),
                    Datum::UInt(v) => v.try_into().ok(),
                    _ => None,
                }
            }
        }
    )* };
}

integers!(i8: 8 true, i16: 16 true, i32: 32 true, i64: 64 true, u8: 8 false, u16: 16 false, u32: 32 false, u64: 64 false);

macro_rules! fields {
    ($($ty:ty, $types:pat, $value:ident => $datum:expr, $pattern:pat => $back:expr;)*) => { $(
        impl Field for $ty {
            fn reads(column: &ColumnDef) -> bool {
                !column.nullable && matches!(column.ty, $types)
            }

            fn datum(&self) -> Datum<'_> {
                let $value = self;
                $datum
            }

            fn from_datum(value: Datum<'_>) -> Option<Self> {
                match value {
                    $pattern => Some($back),
                    _ => None,
                }
            }
        }
    )* };
}

fields! {
    bool, SqlType::Bool, v => Datum::Int((*v).into()), Datum::Int(v) => v != 0;
    f32, SqlType::FLOAT, v => Datum::Float(*v), Datum::Float(v) => v;
    f64, SqlType::DOUBLE, v => Datum::Double(*v), Datum::Double(v) => v;
    Decimal, SqlType::Decimal { .. }, v => Datum::Decimal(v.clone()), Datum::Decimal(v) => v;
    String, SqlType::Char { .. } | SqlType::VarChar { .. } | SqlType::Text { .. }, v => Datum::str(v),
        Datum::Str(v) => v.into_owned();
    Vec<u8>, SqlType::Binary { .. } | SqlType::VarBinary { .. } | SqlType::Blob { .. }, v => Datum::bytes(v),
        Datum::Bytes(v) => v.into_owned();
    Date, SqlType::Date, v => Datum::Date(v.0), Datum::Date(v) => Date(v);
    DateTime, SqlType::DateTime { .. } | SqlType::Timestamp { .. }, v => Datum::DateTime(v.0),
        Datum::DateTime(v) => DateTime(v);
    Time, SqlType::Time { .. }, v => Datum::Time(v.0), Datum::Time(v) => Time(v);
}

/// A DATE: days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub i32);

/// A DATETIME or TIMESTAMP: microseconds since 1970-01-01 00:00:00, of which a column may keep fewer digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime(pub i64);

/// A TIME: microseconds, signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl<T: Field> Field for Option<T> {
    fn reads(column: &ColumnDef) -> bool {
        T::reads(&ColumnDef { nullable: false, ..column.clone() })
    }

    fn datum(&self) -> Datum<'_> {
        self.as_ref().map_or(Datum::Null, T::datum)
    }

    fn from_datum(value: Datum<'_>) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::from_datum(value).map(Some) }
    }
}

/// Whatever the column holds.
impl Field for Value {
    fn reads(_column: &ColumnDef) -> bool {
        true
    }

    fn datum(&self) -> Datum<'_> {
        self.clone()
    }

    fn from_datum(value: Datum<'_>) -> Option<Self> {
        Some(value.into_owned())
    }
}
