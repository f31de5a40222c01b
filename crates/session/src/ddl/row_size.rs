//! How long a row may be: as it stands in MySQL's record buffer.

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::TableDef;
use avocet_types::{Collation, LobSize, SqlType};

pub(super) const MAX_ROW_BYTES: u64 = 65_535;

/// Error 1118 for rows that do not fit into MySQL's record buffer.
pub(super) fn check(def: &TableDef) -> Result<(), SqlError> {
    let columns = def.own_columns();
    let flags = columns.iter().filter(|column| column.nullable).count().div_ceil(8) as u64;
    let total = flags + columns.iter().map(|column| packed_bytes(&column.ty)).sum::<u64>();
    if total > MAX_ROW_BYTES {
        return Err(ErrorCode::TOO_BIG_ROWSIZE.with(&[&MAX_ROW_BYTES]));
    }
    Ok(())
}

/// What a column takes in MySQL's record buffer: of BLOBs and their kin a length and a pointer.
pub(super) fn packed_bytes(ty: &SqlType) -> u64 {
    const POINTER: u64 = 8;
    let fraction = |fsp: u8| u64::from(fsp.div_ceil(2));
    let varying = |bytes: u64| bytes + if bytes > 255 { 2 } else { 1 };
    let chars =
        |len: u32, collation: Collation| u64::from(len) * u64::from(collation.info().charset.max_len());
    let large = |size: LobSize| match size {
        LobSize::Tiny => 1 + POINTER,
        LobSize::Normal => 2 + POINTER,
        LobSize::Medium => 3 + POINTER,
        LobSize::Long => 4 + POINTER,
    };
    // Nine digits in four bytes, and fewer in as many as they need.
    let digits =
        |digits: u8| u64::from(digits / 9 * 4) + [0, 1, 1, 2, 2, 3, 3, 4, 4][usize::from(digits % 9)];
    match *ty {
        SqlType::Null => 0,
        SqlType::Bool | SqlType::Year => 1,
        SqlType::Int { width, .. } => u64::from(width.bits() / 8),
        SqlType::Decimal { precision, scale, .. } => digits(precision - scale) + digits(scale),
        SqlType::Float(_) => 4,
        SqlType::Double(_) => 8,
        SqlType::Char { len, collation } => chars(len, collation),
        SqlType::VarChar { len, collation } => varying(chars(len, collation)),
        SqlType::Binary { len } => len.into(),
        SqlType::VarBinary { len } => varying(len.into()),
        SqlType::Text { size, .. } | SqlType::Blob { size } => large(size),
        SqlType::Json | SqlType::Geometry { .. } => large(LobSize::Long),
        SqlType::Date => 3,
        SqlType::DateTime { fsp } => 5 + fraction(fsp),
        SqlType::Timestamp { fsp } => 4 + fraction(fsp),
        SqlType::Time { fsp } => 3 + fraction(fsp),
        SqlType::Enum(members) => {
            if members.names().len() > 255 {
                2
            } else {
                1
            }
        }
        SqlType::Set(members) => match members.names().len().div_ceil(8) as u64 {
            bytes @ ..=4 => bytes,
            _ => 8,
        },
        SqlType::Bit { len } => u64::from(len.div_ceil(8)),
    }
}
