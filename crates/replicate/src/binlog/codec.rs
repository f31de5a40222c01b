//! A table's columns as the source writes them, checked against the table as it is here: one codec for a TABLE_MAP.
//!
//! Invariant: a codec exists only if names, types, collations, members, nullability and key of both sides are the same. So a
//! definition that has come apart is noticed before a value is read by it.

use std::borrow::Cow;

use arrow::datatypes::i256;
use avocet_types::collation::Charset;
use avocet_types::temporal::{Civil, Clock, SECOND, ZERO_DATETIME};
use avocet_types::{Collation, Datum, Decimal, IndexDef, IntWidth, LobSize, SqlType, TableDef};

use super::bytes::Bytes;
use super::table_map::{MappedColumn, TableMap, column};
use crate::error::{ReplicateError, Result};

/// Why a table's rows cannot be applied: for people, with its name in front.
pub type Unfit = String;

/// How the values of a table's columns are read.
#[derive(Debug)]
pub struct TableCodec {
    pub columns: Vec<ColumnCodec>,
    /// How many of them are JSON.
    pub documents: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnCodec {
    Int {
        bytes: u8,
        unsigned: bool,
    },
    Year,
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: u8,
    },
    Date,
    DateTime {
        fsp: u8,
    },
    Timestamp {
        fsp: u8,
    },
    Time {
        fsp: u8,
    },
    /// A length of so many bytes, and the text.
    Text {
        prefix: u8,
        charset: Charset,
    },
    Bytes {
        prefix: u8,
    },
    /// Padded with zero bytes, which are not written.
    Binary {
        prefix: u8,
        len: u32,
    },
    Document {
        prefix: u8,
    },
    /// The number of a member, or bits of members, lowest byte first.
    Coded {
        bytes: u8,
    },
    /// Bits, highest byte first.
    Bit {
        bytes: u8,
    },
}

impl TableCodec {
    /// The codec of a table, if it is here what it is there.
    pub fn new(map: &TableMap, def: &TableDef) -> Result<Self, Unfit> {
        // Hidden columns are not in events.
        let own_columns = def.own_columns();
        if map.columns.len() != own_columns.len() {
            let (there, here) = (map.columns.len(), own_columns.len());
            return Err(format!("it has {there} columns at the source and {here} here"));
        }
        let mut columns = Vec::with_capacity(own_columns.len());
        for (mapped, own) in map.columns.iter().zip(own_columns) {
            if mapped.name.as_ref().is_some_and(|name| *name != own.name) {
                let there = mapped.name.as_deref().unwrap_or_default();
                return Err(format!("column '{}' is '{there}' at the source", own.name));
            }
            if mapped.nullable != own.nullable {
                return Err(format!("column '{}' allows NULL on one side alone", own.name));
            }
            let codec = column_codec(mapped, &own.ty);
            columns.push(codec.ok_or_else(|| {
                format!("column '{}' is {} here and another type at the source", own.name, own.ty)
            })?);
        }
        check_key(map, def)?;
        let documents = columns.iter().filter(|codec| matches!(codec, ColumnCodec::Document { .. })).count();
        Ok(Self { columns, documents })
    }
}

/// MySQL takes the first unique key without NULLs for the primary key where there is none, and writes so.
fn check_key(map: &TableMap, def: &TableDef) -> Result<(), Unfit> {
    let columns = |index: &IndexDef| index.parts.iter().map(|part| part.column).collect::<Vec<_>>();
    let there: Vec<usize> = match &map.primary_key {
        Some(key) => key.iter().map(|(at, _)| *at).collect(),
        None if map.is_full => Vec::new(),
        None => return Ok(()),
    };
    let is_same = match def.primary_key() {
        Some(own) => columns(own) == there,
        None => {
            there.is_empty()
                || def.indexes.iter().any(|index| index.kind.is_unique() && columns(index) == there)
        }
    };
    if is_same { Ok(()) } else { Err("it has another primary key at the source".into()) }
}

fn lob_prefix(size: LobSize) -> u8 {
    match size {
        LobSize::Tiny => 1,
        LobSize::Normal => 2,
        LobSize::Medium => 3,
        LobSize::Long => 4,
    }
}

/// Bytes of the length of a string that may have so many.
fn string_prefix(max_bytes: u32) -> u8 {
    if max_bytes > 255 { 2 } else { 1 }
}

fn column_codec(there: &MappedColumn, ty: &SqlType) -> Option<ColumnCodec> {
    let is_type = |ty: u8| there.ty == ty;
    let has_collation = |wanted: Collation| there.collation.is_none_or(|id| id == wanted.0);
    let max_bytes = |len: u32, collation: Collation| len * collation.info().charset.max_len();
    let has_fsp = |fsp: u8| there.meta == u16::from(fsp);
    let text = |prefix: u8, collation: Collation| {
        has_collation(collation).then_some(ColumnCodec::Text { prefix, charset: collation.info().charset })
    };
    match *ty {
        SqlType::Bool => int(there, IntWidth::W8, false),
        SqlType::Int { width, unsigned } => int(there, width, unsigned),
        SqlType::Decimal { precision, scale, unsigned } => (is_type(column::NEWDECIMAL)
            && there.meta == u16::from_be_bytes([precision, scale])
            && there.unsigned == unsigned)
            .then_some(ColumnCodec::Decimal { precision, scale }),
        SqlType::Float(_) => is_type(column::FLOAT).then_some(ColumnCodec::Float),
        SqlType::Double(_) => is_type(column::DOUBLE).then_some(ColumnCodec::Double),
        SqlType::Char { len, collation } => {
            let max = max_bytes(len, collation);
            let fits = is_type(column::STRING) && u32::from(there.meta) == max;
            fits.then(|| text(string_prefix(max), collation)).flatten()
        }
        SqlType::VarChar { len, collation } => {
            let max = max_bytes(len, collation);
            let fits = is_type(column::VARCHAR) && u32::from(there.meta) == max;
            fits.then(|| text(string_prefix(max), collation)).flatten()
        }
        SqlType::Text { size, collation } => {
            let prefix = lob_prefix(size);
            let fits = is_type(column::BLOB) && there.meta == u16::from(prefix);
            fits.then(|| text(prefix, collation)).flatten()
        }
        SqlType::Binary { len } => {
            let fits =
                is_type(column::STRING) && u32::from(there.meta) == len && has_collation(Collation::BINARY);
            fits.then_some(ColumnCodec::Binary { prefix: string_prefix(len), len })
        }
        SqlType::VarBinary { len } => {
            let fits =
                is_type(column::VARCHAR) && u32::from(there.meta) == len && has_collation(Collation::BINARY);
            fits.then_some(ColumnCodec::Bytes { prefix: string_prefix(len) })
        }
        SqlType::Blob { size } => {
            let prefix = lob_prefix(size);
            let fits = is_type(column::BLOB) && there.meta == u16::from(prefix);
            (fits && has_collation(Collation::BINARY)).then_some(ColumnCodec::Bytes { prefix })
        }
        SqlType::Date => is_type(column::DATE).then_some(ColumnCodec::Date),
        SqlType::DateTime { fsp } => {
            (is_type(column::DATETIME2) && has_fsp(fsp)).then_some(ColumnCodec::DateTime { fsp })
        }
        SqlType::Timestamp { fsp } => {
            (is_type(column::TIMESTAMP2) && has_fsp(fsp)).then_some(ColumnCodec::Timestamp { fsp })
        }
        SqlType::Time { fsp } => {
            (is_type(column::TIME2) && has_fsp(fsp)).then_some(ColumnCodec::Time { fsp })
        }
        SqlType::Year => is_type(column::YEAR).then_some(ColumnCodec::Year),
        SqlType::Enum(members) => (is_type(column::ENUM) && has_members(there, members))
            .then_some(ColumnCodec::Coded { bytes: there.meta as u8 }),
        SqlType::Set(members) => (is_type(column::SET) && has_members(there, members))
            .then_some(ColumnCodec::Coded { bytes: there.meta as u8 }),
        SqlType::Bit { len } => (is_type(column::BIT) && there.meta == u16::from(len))
            .then_some(ColumnCodec::Bit { bytes: len.div_ceil(8) }),
        SqlType::Json => is_type(column::JSON).then_some(ColumnCodec::Document { prefix: there.meta as u8 }),
        SqlType::Geometry { .. } => {
            is_type(column::GEOMETRY).then_some(ColumnCodec::Bytes { prefix: there.meta as u8 })
        }
        SqlType::Null => None,
    }
}

fn int(there: &MappedColumn, width: IntWidth, unsigned: bool) -> Option<ColumnCodec> {
    let (ty, bytes) = match width {
        IntWidth::W8 => (column::TINY, 1),
        IntWidth::W16 => (column::SHORT, 2),
        IntWidth::W24 => (column::INT24, 3),
        IntWidth::W32 => (column::LONG, 4),
        IntWidth::W64 => (column::LONGLONG, 8),
    };
    (there.ty == ty && there.unsigned == unsigned).then_some(ColumnCodec::Int { bytes, unsigned })
}

fn has_members(there: &MappedColumn, members: avocet_types::Members) -> bool {
    let charset = members.collation().info().charset;
    let is_name = |theirs: &[u8], own: &str| charset.decode(theirs).is_ok_and(|name| name == own);
    let has_collation = there.collation.is_none_or(|id| id == members.collation().0);
    let mut both = there.members.iter().zip(members.names());
    let are_same = there.members.len() == members.count() && both.all(|(theirs, own)| is_name(theirs, own));
    has_collation && (there.members.is_empty() || are_same)
}

/// A value that the table cannot hold here, for people.
fn unfit(what: impl Into<String>) -> ReadError {
    ReadError::Unfit(what.into())
}

/// Why a value could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The bytes are none of this type.
    Damaged(ReplicateError),
    /// The value cannot be kept here: its table is to be set aside.
    Unfit(Unfit),
}

impl From<ReplicateError> for ReadError {
    fn from(error: ReplicateError) -> Self {
        Self::Damaged(error)
    }
}

impl ColumnCodec {
    /// Reads a value that is not NULL.
    pub fn read<'a>(&self, from: &mut Bytes<'a>) -> Result<Datum<'a>, ReadError> {
        Ok(match *self {
            Self::Int { bytes, unsigned } => {
                let value = from.little(bytes.into())?;
                match unsigned {
                    true => Datum::UInt(value),
                    false => Datum::Int(sign_extended(value, bytes)),
                }
            }
            Self::Year => match from.u8()? {
                0 => Datum::UInt(0),
                year => Datum::UInt(1900 + u64::from(year)),
            },
            Self::Float => Datum::Float(f32::from_le_bytes(from.array()?)),
            Self::Double => Datum::Double(f64::from_le_bytes(from.array()?)),
            Self::Decimal { precision, scale } => Datum::Decimal(decimal(from, precision, scale)?),
            Self::Date => Datum::Date(date(from)?),
            Self::DateTime { fsp } => Datum::DateTime(datetime(from, fsp)?),
            Self::Timestamp { fsp } => Datum::DateTime(timestamp(from, fsp)?),
            Self::Time { fsp } => Datum::Time(time(from, fsp)?),
            Self::Text { prefix, charset } => Datum::Str(text(sized(from, prefix)?, charset)?),
            Self::Bytes { prefix } => Datum::bytes(sized(from, prefix)?),
            Self::Binary { prefix, len } => {
                let bytes = sized(from, prefix)?;
                let mut padded = Cow::Borrowed(bytes);
                if bytes.len() < len as usize {
                    padded.to_mut().resize(len as usize, 0);
                }
                Datum::Bytes(padded)
            }
            Self::Document { prefix } => Datum::Bytes(document(sized(from, prefix)?)?.into()),
            Self::Coded { bytes } => Datum::UInt(from.little(bytes.into())?),
            Self::Bit { bytes } => Datum::UInt(from.big(bytes.into())?),
        })
    }
}

fn sized<'a>(from: &mut Bytes<'a>, prefix: u8) -> Result<&'a [u8]> {
    let len = from.little(prefix.into())?;
    from.take(len as usize)
}

fn sign_extended(value: u64, bytes: u8) -> i64 {
    let unused = 64 - 8 * u32::from(bytes);
    (value << unused) as i64 >> unused
}

/// Text of a character set as the UTF-8 that it is here.
pub fn text(bytes: &[u8], charset: Charset) -> Result<Cow<'_, str>, ReadError> {
    let damaged = || unfit(format!("a text is not {}", charset.name()));
    match charset {
        Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Binary => {
            std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| damaged())
        }
        // What ASCII has not would be shown as something else.
        Charset::Ascii if !bytes.is_ascii() => Err(damaged()),
        _ => charset.decode(bytes).map(Cow::Owned).map_err(|_| damaged()),
    }
}

/// A document in the canonical form of what it holds: MySQL leaves gaps where it updates in place.
pub fn document(bytes: &[u8]) -> Result<Vec<u8>, ReadError> {
    let node = avocet_types::json::Node::new(bytes);
    let document = node.to_json();
    if document.has_no_dates() {
        return Err(unfit("a document has a date in it that no calendar has"));
    }
    document.encode().map_err(|error| unfit(format!("a document cannot be kept: {error}")))
}

/// Digits to bytes: nine digits have four, fewer have fewer.
const DIGIT_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// MySQL's packed decimal: groups of nine digits, big-endian, the first bit inverted, all bits inverted if negative.
fn decimal(from: &mut Bytes<'_>, precision: u8, scale: u8) -> Result<Decimal> {
    let whole = usize::from(precision - scale);
    let (groups, rest) = (whole / 9, whole % 9);
    let (fractions, tail) = (usize::from(scale) / 9, usize::from(scale) % 9);
    let len = 4 * (groups + fractions) + DIGIT_BYTES[rest] + DIGIT_BYTES[tail];
    let bytes = from.take(len)?;
    let negative = bytes.first().is_some_and(|first| first & 0x80 == 0);
    let mut plain = [0u8; 32];
    let plain = &mut plain[..len];
    plain.copy_from_slice(bytes);
    if let Some(first) = plain.first_mut() {
        *first ^= 0x80;
    }
    if negative {
        plain.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let mut plain = Bytes::new(plain, "a decimal");
    let mut wide = Unscaled::default();
    let mut group = |digits: usize| -> Result<()> {
        if digits > 0 {
            wide.push(plain.big(DIGIT_BYTES[digits])?, digits as u32);
        }
        Ok(())
    };
    group(rest)?;
    (0..groups + fractions).try_for_each(|_| group(9))?;
    group(tail)?;
    Ok(wide.decimal(negative, scale))
}

/// Digits so far: in 128 bits as long as these hold them.
#[derive(Default)]
struct Unscaled {
    small: i128,
    wide: Option<i256>,
}

impl Unscaled {
    fn push(&mut self, value: u64, digits: u32) {
        let power = 10i128.pow(digits);
        if self.wide.is_none() {
            match self.small.checked_mul(power).and_then(|v| v.checked_add(value.into())) {
                Some(small) => {
                    self.small = small;
                    return;
                }
                None => self.wide = Some(i256::from_i128(self.small)),
            }
        }
        let wide = self.wide.unwrap_or(i256::ZERO);
        let wide = wide.wrapping_mul(i256::from_i128(power)).wrapping_add(i256::from_i128(value.into()));
        self.wide = Some(wide);
    }

    fn decimal(self, negative: bool, scale: u8) -> Decimal {
        match self.wide {
            None => Decimal::new(if negative { -self.small } else { self.small }, scale),
            Some(wide) => Decimal::from_i256(if negative { -wide } else { wide }, scale),
        }
    }
}

/// A day of the calendar, or the zero date.
pub fn checked_date(year: i32, month: u32, day: u32) -> Result<i32, ReadError> {
    let date = Civil::checked_or_zero(year, month, day);
    date.map(Civil::to_days).ok_or_else(|| {
        unfit(format!("it has the date {year:04}-{month:02}-{day:02}, which is none of the calendar"))
    })
}

fn date(from: &mut Bytes<'_>) -> Result<i32, ReadError> {
    let packed = from.little(3)? as u32;
    checked_date((packed >> 9) as i32, packed >> 5 & 15, packed & 31)
}

/// Microseconds of a fraction of so many digits.
fn fraction(from: &mut Bytes<'_>, fsp: u8) -> Result<i64> {
    let bytes = usize::from(fsp.div_ceil(2));
    let scale = [1, 10_000, 100, 1];
    Ok(from.big(bytes)? as i64 * scale[bytes.min(3)])
}

fn datetime(from: &mut Bytes<'_>, fsp: u8) -> Result<i64, ReadError> {
    let packed = from.big(5)? as i64 - 0x80_0000_0000;
    let micros = fraction(from, fsp)?;
    let (months, day) = (packed >> 22, (packed >> 17 & 31) as u32);
    let clock = Clock::new((packed >> 12 & 31) as u32, (packed >> 6 & 63) as u32, (packed & 63) as u32, 0);
    let days = checked_date((months / 13) as i32, (months % 13) as u32, day)?;
    Ok(i64::from(days) * avocet_types::temporal::DAY + clock.to_micros() + micros)
}

fn timestamp(from: &mut Bytes<'_>, fsp: u8) -> Result<i64, ReadError> {
    let seconds = from.big(4)? as i64;
    let micros = fraction(from, fsp)?;
    match (seconds, micros) {
        (0, 0) => Ok(ZERO_DATETIME),
        _ => Ok(seconds * SECOND + micros),
    }
}

fn time(from: &mut Bytes<'_>, fsp: u8) -> Result<i64> {
    let bytes = usize::from(fsp.div_ceil(2));
    // One number with its sign in all of its bytes.
    let bits = 8 * (3 + bytes);
    let packed = from.big(3 + bytes)? as i64 - (1 << (bits - 1));
    let (negative, packed) = (packed < 0, packed.unsigned_abs());
    let (clock, part) = (packed >> (8 * bytes), packed & ((1 << (8 * bytes)) - 1));
    let micros = part as i64 * [1, 10_000, 100, 1][bytes];
    let clock = Clock::new((clock >> 12 & 1023) as u32, (clock >> 6 & 63) as u32, (clock & 63) as u32, 0);
    let value = clock.to_micros() + if bytes == 0 { 0 } else { micros };
    Ok(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use avocet_types::temporal::ZERO_DATE;

    use super::*;

    fn read(codec: ColumnCodec, bytes: &[u8]) -> Datum<'_> {
        let mut from = Bytes::new(bytes, "a test");
        let value = codec.read(&mut from).expect("a value");
        assert!(from.is_empty(), "{} bytes are left", from.rest().len());
        for cut in 0..bytes.len() {
            assert!(codec.read(&mut Bytes::new(&bytes[..cut], "a test")).is_err(), "cut at {cut}");
        }
        value
    }

    #[test]
    fn decimals_are_groups_of_nine_digits() {
        let codec = ColumnCodec::Decimal { precision: 14, scale: 4 };
        let text = |bytes: &[u8]| match read(codec, bytes) {
            Datum::Decimal(value) => value.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(text(&[0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2]), "1234567890.1234");
        assert_eq!(text(&[0x7e, 0xf2, 0x04, 0xc7, 0x2d, 0xfb, 0x2d]), "-1234567890.1234");
    }

    /// The table of MySQL's `my_time_packed_to_binary`.
    #[test]
    fn times_before_midnight_count_backwards() {
        for (bytes, micros) in [
            ([0x80, 0, 0, 10], 100_000),
            ([0x80, 0, 0, 1], 10_000),
            ([0x80, 0, 0, 0], 0),
            ([0x7f, 0xff, 0xff, 0xff], -10_000),
            ([0x7f, 0xff, 0xff, 0x9d], -990_000),
            ([0x7f, 0xff, 0xff, 0], -1_000_000),
            ([0x7f, 0xff, 0xfe, 0xff], -1_010_000),
            ([0x7f, 0xff, 0xfe, 0xf6], -1_100_000),
        ] {
            let value = read(ColumnCodec::Time { fsp: 2 }, &bytes);
            assert!(value.is_same(&Datum::Time(micros)), "{value:?} is not {micros}");
        }
        assert!(read(ColumnCodec::Time { fsp: 0 }, &[0x7f, 0xff, 0xff]).is_same(&Datum::Time(-1_000_000)));
    }

    #[test]
    fn zero_dates_are_read_but_not_zero_months_alone() {
        let (day, moment) = (Datum::Date(ZERO_DATE), Datum::DateTime(ZERO_DATETIME));
        for (codec, bytes, wanted) in [
            (ColumnCodec::Date, &[0; 3][..], day),
            (ColumnCodec::DateTime { fsp: 0 }, &[0x80, 0, 0, 0, 0], moment.clone()),
            (ColumnCodec::DateTime { fsp: 6 }, &[0x80, 0, 0, 0, 0, 0, 0, 0], moment.clone()),
            // 10:00:00 of the zero date.
            (
                ColumnCodec::DateTime { fsp: 0 },
                &[0x80, 0, 0, 0xA0, 0],
                Datum::DateTime(ZERO_DATETIME + 36_000 * SECOND),
            ),
            (ColumnCodec::Timestamp { fsp: 0 }, &[0; 4], moment.clone()),
            (ColumnCodec::Timestamp { fsp: 3 }, &[0; 6], moment),
        ] {
            let value = read(codec, bytes);
            assert!(value.is_same(&wanted), "{value:?}");
        }
        // 2026-11-00
        let packed = (2026u32 << 9 | 11 << 5).to_le_bytes();
        let value = ColumnCodec::Date.read(&mut Bytes::new(&packed[..3], "a test"));
        assert!(matches!(value, Err(ReadError::Unfit(_))), "{value:?}");
        // 2026-11-25
        let packed = (2026u32 << 9 | 11 << 5 | 25).to_le_bytes();
        let value = read(ColumnCodec::Date, &packed[..3]);
        assert!(value.is_same(&Datum::Date(checked_date(2026, 11, 25).expect("a date"))), "{value:?}");
    }

    #[test]
    fn bytes_of_fixed_length_are_padded_again() {
        let value = read(ColumnCodec::Binary { prefix: 1, len: 4 }, &[2, 7, 8]);
        assert!(value.is_same(&Datum::bytes(&[7, 8, 0, 0])), "{value:?}");
        assert!(
            read(ColumnCodec::Int { bytes: 3, unsigned: false }, &[0xff, 0xff, 0xff])
                .is_same(&Datum::Int(-1))
        );
        assert!(read(ColumnCodec::Bit { bytes: 2 }, &[1, 2]).is_same(&Datum::UInt(258)));
    }
}
