//! Tables and rows as TABLE_MAP and row events have them: what `binlog/codec.rs` reads.

use avocet_types::collation::Charset;
use avocet_types::temporal::{Civil, Clock, DAY, SECOND, ZERO_DATETIME, date_of, time_of};
use avocet_types::{ColumnDef, Datum, Decimal, IntWidth, LobSize, RowRef, SqlType, TableDef};

use crate::binlog::column;

/// How a column's values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Int {
        bytes: u8,
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
    Text {
        prefix: u8,
        charset: Charset,
    },
    Bytes {
        prefix: u8,
    },
    /// Zeros at the end are not written.
    Binary {
        prefix: u8,
    },
    Coded {
        bytes: u8,
    },
    Bit {
        bytes: u8,
    },
}

/// A table's columns, ready to write.
#[derive(Debug)]
pub struct RowCoding {
    columns: Vec<Coding>,
    /// The body of its TABLE_MAP event.
    pub map: Vec<u8>,
}

pub fn put_packed(to: &mut Vec<u8>, value: u64) {
    match value {
        0..=250 => to.push(value as u8),
        251..=0xffff => {
            to.push(252);
            to.extend_from_slice(&(value as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            to.push(253);
            to.extend_from_slice(&(value as u32).to_le_bytes()[..3]);
        }
        _ => {
            to.push(254);
            to.extend_from_slice(&value.to_le_bytes());
        }
    }
}

fn put_packed_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_packed(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Sets the bit of a column, lowest first.
fn set_bit(bitmap: &mut [u8], at: usize) {
    bitmap[at / 8] |= 1 << (at % 8);
}

/// Appends bits, highest first.
fn put_bits(to: &mut Vec<u8>, bits: &[bool]) {
    for byte in bits.chunks(8) {
        to.push(byte.iter().enumerate().fold(0, |all, (at, bit)| if *bit { all | 0x80 >> at } else { all }));
    }
}

/// What MySQL says of a type: its number, what stands in a map, and how values are written.
fn of_type(ty: &SqlType) -> (u8, Vec<u8>, Coding) {
    let max_bytes = |len: u32, charset: Charset| len * charset.max_len();
    let string_prefix = |max: u32| if max > 255 { 2 } else { 1 };
    // The length of a fixed string takes ten bits, of which two are turned around in the type's byte.
    let fixed = |max: u32| vec![0xfe ^ ((max >> 4) & 0x30) as u8, max as u8];
    let varying = |max: u32| (max as u16).to_le_bytes().to_vec();
    let lob = |size: LobSize| match size {
        LobSize::Tiny => 1,
        LobSize::Normal => 2,
        LobSize::Medium => 3,
        LobSize::Long => 4,
    };
    match *ty {
        SqlType::Bool => (column::TINY, vec![], Coding::Int { bytes: 1 }),
        SqlType::Int { width, .. } => {
            let (number, bytes) = match width {
                IntWidth::W8 => (column::TINY, 1),
                IntWidth::W16 => (column::SHORT, 2),
                IntWidth::W24 => (column::INT24, 3),
                IntWidth::W32 => (column::LONG, 4),
                IntWidth::W64 => (column::LONGLONG, 8),
            };
            (number, vec![], Coding::Int { bytes })
        }
        SqlType::Decimal { precision, scale, .. } => {
            (column::NEWDECIMAL, vec![precision, scale], Coding::Decimal { precision, scale })
        }
        SqlType::Float(_) => (column::FLOAT, vec![4], Coding::Float),
        SqlType::Double(_) => (column::DOUBLE, vec![8], Coding::Double),
        SqlType::Char { len, collation } => {
            let charset = collation.info().charset;
            let max = max_bytes(len, charset);
            (column::STRING, fixed(max), Coding::Text { prefix: string_prefix(max), charset })
        }
        SqlType::VarChar { len, collation } => {
            let charset = collation.info().charset;
            let max = max_bytes(len, charset);
            (column::VARCHAR, varying(max), Coding::Text { prefix: string_prefix(max), charset })
        }
        SqlType::Text { size, collation } => {
            let prefix = lob(size);
            (column::BLOB, vec![prefix], Coding::Text { prefix, charset: collation.info().charset })
        }
        SqlType::Binary { len } => {
            (column::STRING, fixed(len), Coding::Binary { prefix: string_prefix(len) })
        }
        SqlType::VarBinary { len } => {
            (column::VARCHAR, varying(len), Coding::Bytes { prefix: string_prefix(len) })
        }
        SqlType::Blob { size } => (column::BLOB, vec![lob(size)], Coding::Bytes { prefix: lob(size) }),
        SqlType::Date => (column::DATE, vec![], Coding::Date),
        SqlType::DateTime { fsp } => (column::DATETIME2, vec![fsp], Coding::DateTime { fsp }),
        SqlType::Timestamp { fsp } => (column::TIMESTAMP2, vec![fsp], Coding::Timestamp { fsp }),
        SqlType::Time { fsp } => (column::TIME2, vec![fsp], Coding::Time { fsp }),
        SqlType::Year => (column::YEAR, vec![], Coding::Year),
        SqlType::Enum(members) => {
            let bytes = if members.count() < 256 { 1 } else { 2 };
            (column::STRING, vec![column::ENUM, bytes], Coding::Coded { bytes })
        }
        SqlType::Set(members) => {
            let bytes = match members.count().div_ceil(8) {
                few @ 0..=4 => few.max(1) as u8,
                _ => 8,
            };
            (column::STRING, vec![column::SET, bytes], Coding::Coded { bytes })
        }
        SqlType::Bit { len } => (column::BIT, vec![len % 8, len / 8], Coding::Bit { bytes: len.div_ceil(8) }),
        SqlType::Json => (column::JSON, vec![4], Coding::Bytes { prefix: 4 }),
        SqlType::Geometry { .. } => (column::GEOMETRY, vec![4], Coding::Bytes { prefix: 4 }),
        // No column has this type.
        SqlType::Null => (6, vec![], Coding::Bytes { prefix: 1 }),
    }
}

fn is_unsigned(ty: &SqlType) -> Option<bool> {
    match *ty {
        SqlType::Bool => Some(false),
        SqlType::Int { unsigned, .. } | SqlType::Decimal { unsigned, .. } => Some(unsigned),
        SqlType::Float(shown) => Some(shown.unsigned),
        SqlType::Double(shown) => Some(shown.unsigned),
        SqlType::Year => Some(true),
        _ => None,
    }
}

/// The collation of a column of characters, and `binary` of one of bytes.
fn collation_of(ty: &SqlType) -> Option<u64> {
    const BINARY: u64 = 63;
    match *ty {
        SqlType::Char { collation, .. }
        | SqlType::VarChar { collation, .. }
        | SqlType::Text { collation, .. } => Some(collation.0.into()),
        SqlType::Binary { .. } | SqlType::VarBinary { .. } | SqlType::Blob { .. } => Some(BINARY),
        _ => None,
    }
}

impl RowCoding {
    pub fn new(table_id: u64, def: &TableDef) -> Self {
        let types: Vec<_> = def.own_columns().iter().map(|column| of_type(&column.ty)).collect();
        let mut map = Vec::new();
        map.extend_from_slice(&table_id.to_le_bytes()[..6]);
        map.extend_from_slice(&[1, 0]);
        for name in [&def.database, &def.name] {
            map.push(name.len() as u8);
            map.extend_from_slice(name.as_bytes());
            map.push(0);
        }
        put_packed(&mut map, types.len() as u64);
        map.extend(types.iter().map(|(number, ..)| number));
        let meta: Vec<u8> = types.iter().flat_map(|(_, meta, _)| meta.iter().copied()).collect();
        put_packed_bytes(&mut map, &meta);
        let mut nullable = vec![0; types.len().div_ceil(8)];
        (0..types.len()).filter(|at| def.columns[*at].nullable).for_each(|at| set_bit(&mut nullable, at));
        map.extend_from_slice(&nullable);
        put_metadata(&mut map, def);
        Self { columns: types.into_iter().map(|(.., coding)| coding).collect(), map }
    }

    /// How many columns the table has.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Appends a row.
    pub fn put(&self, row: &RowRef<'_>, to: &mut Vec<u8>) {
        let nulls = to.len();
        to.resize(nulls + self.columns.len().div_ceil(8), 0);
        for (at, coding) in self.columns.iter().enumerate() {
            match row.get(at) {
                Datum::Null => set_bit(&mut to[nulls..], at),
                value => coding.put(&value, to),
            }
        }
    }
}

/// Everything that `binlog_row_metadata = FULL` asks for.
fn put_metadata(map: &mut Vec<u8>, def: &TableDef) {
    let mut field = |number: u8, value: Vec<u8>| {
        if !value.is_empty() {
            map.push(number);
            put_packed_bytes(map, &value);
        }
    };
    let mut value = Vec::new();
    let signs: Vec<bool> = def.own_columns().iter().filter_map(|column| is_unsigned(&column.ty)).collect();
    put_bits(&mut value, &signs);
    field(1, std::mem::take(&mut value));
    def.own_columns()
        .iter()
        .filter_map(|column| collation_of(&column.ty))
        .for_each(|id| put_packed(&mut value, id));
    field(3, std::mem::take(&mut value));
    def.own_columns().iter().for_each(|column| put_packed_bytes(&mut value, column.name.as_bytes()));
    field(4, std::mem::take(&mut value));
    let coded = |column: &ColumnDef| match column.ty {
        SqlType::Set(members) => Some((5, members)),
        SqlType::Enum(members) => Some((6, members)),
        _ => None,
    };
    let collations: Vec<u64> =
        def.own_columns().iter().filter_map(coded).map(|(_, members)| members.collation().0.into()).collect();
    put_charsets(&mut value, &collations);
    field(10, std::mem::take(&mut value));
    for number in [5, 6] {
        for (_, members) in def.own_columns().iter().filter_map(coded).filter(|(of, _)| *of == number) {
            let charset = members.collation().info().charset;
            put_packed(&mut value, members.count() as u64);
            members.names().iter().for_each(|name| put_packed_bytes(&mut value, &charset.encode(name)));
        }
        field(number, std::mem::take(&mut value));
    }
    def.columns.iter().for_each(|column| {
        if let SqlType::Geometry { ty, .. } = column.ty {
            put_packed(&mut value, ty as u64);
        }
    });
    field(7, std::mem::take(&mut value));
    // As in MySQL, the first unique key without NULLs stands for a primary key where there is none.
    if let Some(key) = def.shown_primary_key() {
        let has_prefix = key.parts.iter().any(|part| part.prefix_len.is_some());
        for part in &key.parts {
            put_packed(&mut value, part.column as u64);
            if has_prefix {
                // In characters, where the column has such.
                put_packed(&mut value, part.prefix_len.map_or(0, u64::from));
            }
        }
        field(if has_prefix { 9 } else { 8 }, std::mem::take(&mut value));
    }
    let visible: Vec<bool> = def.own_columns().iter().map(|column| !column.invisible).collect();
    put_bits(&mut value, &visible);
    field(12, value);
}

/// The collation of most columns, and the places and collations of the others. (Not a list of all: some readers know no other form for
/// ENUM and SET, since MySQL mostly writes this one.)
fn put_charsets(to: &mut Vec<u8>, collations: &[u64]) {
    let count = |of: &u64| collations.iter().filter(|other| *other == of).count();
    let Some(most) = collations.iter().rev().max_by_key(|of| count(of)) else { return };
    put_packed(to, *most);
    for (at, other) in collations.iter().enumerate().filter(|(_, other)| *other != most) {
        put_packed(to, at as u64);
        put_packed(to, *other);
    }
}

/// Appends a length of so many bytes, and what is so long.
fn put_sized(to: &mut Vec<u8>, prefix: u8, bytes: &[u8]) {
    to.extend_from_slice(&(bytes.len() as u32).to_le_bytes()[..prefix.into()]);
    to.extend_from_slice(bytes);
}

/// Appends the lowest bytes of a number, highest first.
fn put_big(to: &mut Vec<u8>, value: u64, bytes: usize) {
    to.extend_from_slice(&value.to_be_bytes()[8 - bytes..]);
}

/// Microseconds as a fraction of so many digits.
fn put_fraction(to: &mut Vec<u8>, micros: i64, fsp: u8) {
    let bytes = usize::from(fsp.div_ceil(2));
    put_big(to, (micros / [1_000_000, 10_000, 100, 1][bytes]) as u64, bytes);
}

impl Coding {
    /// Appends a value that is not NULL.
    fn put(self, value: &Datum<'_>, to: &mut Vec<u8>) {
        match (self, value) {
            (Self::Int { bytes }, Datum::Int(value)) => {
                to.extend_from_slice(&value.to_le_bytes()[..bytes.into()]);
            }
            (Self::Int { bytes } | Self::Coded { bytes }, Datum::UInt(value)) => {
                to.extend_from_slice(&value.to_le_bytes()[..bytes.into()]);
            }
            (Self::Year, Datum::UInt(year)) => to.push(year.saturating_sub(1900) as u8),
            (Self::Float, Datum::Float(value)) => to.extend_from_slice(&value.to_le_bytes()),
            (Self::Double, Datum::Double(value)) => to.extend_from_slice(&value.to_le_bytes()),
            (Self::Decimal { precision, scale }, Datum::Decimal(value)) => {
                put_decimal(to, value, precision, scale);
            }
            (Self::Date, Datum::Date(days)) => {
                let Civil { year, month, day } = Civil::from_days(*days);
                let packed = (year as u32) << 9 | month << 5 | day;
                to.extend_from_slice(&packed.to_le_bytes()[..3]);
            }
            (Self::DateTime { fsp }, Datum::DateTime(micros)) => put_datetime(to, *micros, fsp),
            (Self::Timestamp { fsp }, Datum::DateTime(ZERO_DATETIME)) => {
                put_big(to, 0, 4);
                put_fraction(to, 0, fsp);
            }
            (Self::Timestamp { fsp }, Datum::DateTime(micros)) => {
                put_big(to, micros.div_euclid(SECOND) as u64, 4);
                put_fraction(to, micros.rem_euclid(SECOND), fsp);
            }
            (Self::Time { fsp }, Datum::Time(micros)) => put_time(to, *micros, fsp),
            (Self::Text { prefix, charset }, Datum::Str(text)) => match charset {
                Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Binary => {
                    put_sized(to, prefix, text.as_bytes())
                }
                _ => put_sized(to, prefix, &charset.encode(text)),
            },
            (Self::Bytes { prefix }, Datum::Bytes(bytes)) => put_sized(to, prefix, bytes),
            (Self::Binary { prefix }, Datum::Bytes(bytes)) => {
                let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                put_sized(to, prefix, &bytes[..len]);
            }
            (Self::Bit { bytes }, Datum::UInt(value)) => put_big(to, *value, bytes.into()),
            (coding, value) => unreachable!("{value:?} stands in a column of {coding:?}"),
        }
    }
}

fn put_datetime(to: &mut Vec<u8>, micros: i64, fsp: u8) {
    let Civil { year, month, day } = Civil::from_days(date_of(micros));
    let clock = Clock::from_micros(time_of(micros));
    let months = year as u64 * 13 + u64::from(month);
    let clock = u64::from(clock.hour) << 12 | u64::from(clock.minute) << 6 | u64::from(clock.second);
    put_big(to, (months << 22 | u64::from(day) << 17 | clock) + 0x80_0000_0000, 5);
    put_fraction(to, micros.rem_euclid(DAY) % SECOND, fsp);
}

/// One number with its sign in all of its bytes.
fn put_time(to: &mut Vec<u8>, micros: i64, fsp: u8) {
    let bytes = usize::from(fsp.div_ceil(2));
    let size = micros.unsigned_abs() as i64;
    let clock = Clock::from_micros(size);
    let clock = i64::from(clock.hour) << 12 | i64::from(clock.minute) << 6 | i64::from(clock.second);
    let fraction = (size % SECOND) / [1_000_000, 10_000, 100, 1][bytes];
    let packed = (clock << (8 * bytes)) | fraction;
    let packed = if micros < 0 { -packed } else { packed };
    put_big(to, (packed + (1 << (8 * (3 + bytes) - 1))) as u64, 3 + bytes);
}

/// Digits to bytes: nine digits have four, fewer have fewer.
const DIGIT_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// MySQL's packed decimal: groups of nine digits, big-endian, the first bit inverted, all bits inverted if negative.
fn put_decimal(to: &mut Vec<u8>, value: &Decimal, precision: u8, scale: u8) {
    let (precision, scale) = (usize::from(precision), usize::from(scale));
    let start = to.len();
    let unscaled = value.as_i256().to_string();
    let digits = unscaled.trim_start_matches('-');
    let mut padded = [b'0'; 80];
    padded[precision - digits.len().min(precision)..precision]
        .copy_from_slice(&digits.as_bytes()[digits.len().saturating_sub(precision)..]);
    let (whole, fraction) = padded[..precision].split_at(precision - scale);
    let mut group = |digits: &[u8]| {
        let number = digits.iter().fold(0u64, |all, digit| all * 10 + u64::from(digit - b'0'));
        put_big(to, number, DIGIT_BYTES[digits.len()]);
    };
    let (first, groups) = whole.split_at(whole.len() % 9);
    group(first);
    groups.chunks(9).for_each(&mut group);
    fraction.chunks(9).for_each(&mut group);
    if value.is_negative() {
        to[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    to[start] ^= 0x80;
}

#[cfg(test)]
mod tests {
    use avocet_types::temporal::ZERO_DATE;
    use avocet_types::{IndexDef, IndexKind, RowLayout, TableDef};

    use super::*;
    use crate::binlog::{Image, RowsEvent, TableCodec, TableMap, kind};
    use crate::source::Flavor;

    fn columns() -> Vec<(SqlType, Vec<Datum<'static>>)> {
        let collation = |name| avocet_types::Collation::by_name(name).expect("a collation");
        let text = |texts: &[&'static str]| texts.iter().map(|text| Datum::str(text)).collect();
        let decimal = |text: &str, ty: SqlType| {
            let SqlType::Decimal { scale, .. } = ty else { panic!("a decimal") };
            let value = Decimal::parse_prefix(text.as_bytes()).value.rescale(scale).expect("it fits");
            Datum::Decimal(value)
        };
        let (narrow, wide) = (
            SqlType::Decimal { precision: 14, scale: 4, unsigned: false },
            SqlType::Decimal { precision: 65, scale: 30, unsigned: false },
        );
        let day = |y, m, d| Civil::new(y, m, d).to_days();
        let at = |y, m, d, micros: i64| i64::from(day(y, m, d)) * DAY + micros;
        vec![
            (SqlType::BIGINT, vec![Datum::Int(-1), Datum::Int(i64::MIN), Datum::Int(7)]),
            (SqlType::Int { width: IntWidth::W24, unsigned: false }, vec![Datum::Int(-8_388_608)]),
            (SqlType::Int { width: IntWidth::W32, unsigned: true }, vec![Datum::UInt(u32::MAX.into())]),
            (SqlType::BIGINT_UNSIGNED, vec![Datum::UInt(u64::MAX)]),
            (
                narrow,
                vec![decimal("-1234567890.1234", narrow), decimal("0.0001", narrow), decimal("0", narrow)],
            ),
            (
                wide,
                vec![decimal("-99999999999999999999999999999999999.000000000000000000000000000009", wide)],
            ),
            (SqlType::DOUBLE, vec![Datum::Double(-0.5)]),
            (SqlType::Date, vec![Datum::Date(day(2026, 11, 25)), Datum::Date(day(9999, 12, 31))]),
            (SqlType::DateTime { fsp: 3 }, vec![Datum::DateTime(at(1969, 12, 31, 86_399_123_000))]),
            (SqlType::DateTime { fsp: 0 }, vec![Datum::DateTime(at(2026, 1, 2, 0))]),
            (SqlType::Timestamp { fsp: 6 }, vec![Datum::DateTime(at(2026, 1, 2, 3_000_001))]),
            (SqlType::Date, vec![Datum::Date(ZERO_DATE), Datum::Date(day(0, 1, 1))]),
            (
                SqlType::DateTime { fsp: 2 },
                vec![Datum::DateTime(ZERO_DATETIME), Datum::DateTime(ZERO_DATETIME + DAY - 10_000)],
            ),
            (SqlType::Timestamp { fsp: 0 }, vec![Datum::DateTime(ZERO_DATETIME), Datum::DateTime(SECOND)]),
            (SqlType::Timestamp { fsp: 3 }, vec![Datum::DateTime(ZERO_DATETIME)]),
            (
                SqlType::Time { fsp: 2 },
                vec![Datum::Time(-10_000), Datum::Time(-1_010_000), Datum::Time(3_600_000_000)],
            ),
            (SqlType::Time { fsp: 0 }, vec![Datum::Time(-1_000_000), Datum::Time(838 * 3_600_000_000)]),
            (SqlType::Time { fsp: 6 }, vec![Datum::Time(-1), Datum::Time(1)]),
            (SqlType::Year, vec![Datum::UInt(0), Datum::UInt(2155)]),
            (SqlType::VarChar { len: 10, collation: collation("latin1_swedish_ci") }, text(&["", "é"])),
            (SqlType::Char { len: 100, collation: collation("utf8mb4_0900_ai_ci") }, text(&["é中"])),
            (SqlType::VarBinary { len: 300 }, vec![Datum::bytes(b"a\0")]),
            (SqlType::Binary { len: 4 }, vec![Datum::bytes(&[7, 0, 0, 0]), Datum::bytes(&[0; 4])]),
            (SqlType::Blob { size: LobSize::Long }, vec![Datum::bytes(b"")]),
            (SqlType::GEOMETRY, vec![Datum::bytes(&[0; 25]), Datum::bytes(&[1; 300])]),
            (SqlType::Bit { len: 10 }, vec![Datum::UInt(513)]),
        ]
    }

    #[test]
    fn what_is_written_is_read_again() {
        let all = columns();
        let most = all.iter().map(|(_, values)| values.len()).max().unwrap_or_default();
        let defs = all.iter().enumerate().map(|(at, (ty, _))| {
            let mut column = ColumnDef::new(format!("c{at}"), *ty);
            column.nullable = true;
            column
        });
        let def = TableDef::new("d", "t", defs.collect(), vec![]);
        let layout = RowLayout::new(all.iter().map(|(ty, _)| ty));
        let coding = RowCoding::new(9, &def);
        let map = TableMap::read(&coding.map, Flavor::MySql, |_, _| true).expect("a map");
        let codec = TableCodec::new(&map, &def).expect("the same table");
        let rows: Vec<Vec<Datum<'_>>> = (0..=most)
            .map(|n| all.iter().map(|(_, values)| values.get(n).cloned().unwrap_or(Datum::Null)).collect())
            .collect();
        let mut event = vec![9, 0, 0, 0, 0, 0, 1, 0, 2, 0];
        put_packed(&mut event, coding.len() as u64);
        event.resize(event.len() + coding.len().div_ceil(8), 0xff);
        for row in &rows {
            let mut image = Vec::new();
            layout.encode(row, &mut image);
            coding.put(&layout.view(&image).expect("an image"), &mut event);
        }
        let mut read = RowsEvent::read(kind::WRITE_ROWS, &event).expect("an event");
        let mut image = Image::new();
        for row in &rows {
            read.first_image(&codec, &mut image).unwrap_or_else(|error| panic!("{error:?}"));
            for (at, (wrote, read)) in row.iter().zip(&image).enumerate() {
                let read = read.as_ref().expect("all columns are there");
                assert!(read.is_same(wrote), "column {at}: {read:?} is not {wrote:?}");
            }
        }
        assert!(read.is_empty());
    }

    #[test]
    fn keys_are_told_as_mysql_tells_them() {
        let key_of = |def: &TableDef| {
            let map = TableMap::read(&RowCoding::new(9, def).map, Flavor::MySql, |_, _| true);
            map.expect("a map").primary_key
        };
        let text = SqlType::VarChar { len: 20, collation: avocet_types::Collation::DEFAULT };
        let columns = vec![ColumnDef::new("a", text), ColumnDef::new("b", SqlType::BIGINT)];
        let mut primary = IndexDef::primary(&[1, 0]);
        // Characters, though the character set takes four bytes for one.
        primary.parts[1].prefix_len = Some(5);
        let def = TableDef::new("d", "t", columns.clone(), vec![primary]);
        assert_eq!(key_of(&def), Some(vec![(1, 0), (0, 5)]));
        let mut cut = IndexDef::new("cut", IndexKind::Unique, &[0]);
        cut.parts[0].prefix_len = Some(5);
        let whole = IndexDef::new("whole", IndexKind::Unique, &[1]);
        let def = TableDef::new("d", "t", columns.clone(), vec![cut.clone(), whole]);
        assert_eq!(key_of(&def), Some(vec![(1, 0)]));
        assert_eq!(key_of(&TableDef::new("d", "t", columns, vec![cut])), None);
    }
}
