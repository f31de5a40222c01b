//! CHECKSUM TABLE: the sum of the CRC-32 of all rows, each in the form in which MySQL has it in memory
//! (`mysql_checksum_table` in its sources), so that tables of equal rows have one checksum here and there.
//!
//! ```text
//!  row:  ┌───────────┬─────────┬─────────┬───┐   a column: its bytes in a record; of VARCHAR, TEXT, BLOB and JSON what it
//!        │ NULL bits │ column  │ column  │ … │   holds; of a NULL what the table's default record has there
//!        └───────────┴─────────┴─────────┴───┘
//! ```
//!
//! NULL bits stand in the order of the columns that can be NULL, those of virtual columns behind all others. A table of columns of one length each has a bit before
//! them, which is set, and so are all bits of the last byte behind them: of a byte that is full, this is the whole byte.

use std::borrow::Cow;

use crate::collation::Charset;
use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::expr::func::numeral::crc32_from;
use crate::json::{self, Node};
use crate::schema::{ColumnDef, DefaultValue, TableDef};
use crate::sql_type::{IntWidth, SqlType};
use crate::temporal::{Civil, Clock, DAY, SECOND, ZERO_DATETIME};

/// Digits of a DECIMAL that stand in four bytes, and the bytes that fewer of them take.
const DIGITS_PER_WORD: usize = 9;
const BYTES_OF_DIGITS: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// Adds up the rows of a table.
pub struct TableChecksum {
    columns: Box<[Column]>,
    null_bytes: usize,
    /// Whether a bit stands before those of the columns.
    is_fixed: bool,
    /// Bits of the last byte that belong to no column.
    unused: u8,
    sum: u32,
    buffer: Vec<u8>,
}

struct Column {
    ty: SqlType,
    /// The number of its NULL bit.
    null_bit: Option<usize>,
    /// What stands where it is NULL.
    default: Box<[u8]>,
}

impl TableChecksum {
    pub fn new(table: &TableDef) -> Self {
        let is_fixed = !table.own_columns().iter().any(|column| is_variable(&column.ty));
        let column =
            |def: &ColumnDef| Column { ty: def.ty, null_bit: None, default: default_bytes(def).into() };
        let mut columns: Box<[Column]> = table.own_columns().iter().map(column).collect();
        let mut bits = usize::from(is_fixed);
        for virtual_ones in [false, true] {
            for (column, def) in columns.iter_mut().zip(table.own_columns()) {
                if def.nullable && def.is_virtual() == virtual_ones {
                    column.null_bit = Some(bits);
                    bits += 1;
                }
            }
        }
        let unused = u8::MAX << (bits % 8);
        Self { columns, null_bytes: bits.div_ceil(8), is_fixed, unused, sum: 0, buffer: Vec::new() }
    }

    /// Adds a row of which `value` gives the columns.
    pub fn add<'v>(&mut self, value: impl Fn(usize) -> Datum<'v>) {
        self.buffer.clear();
        self.buffer.resize(self.null_bytes, 0);
        for (at, column) in self.columns.iter().enumerate() {
            match value(at) {
                Datum::Null => {
                    if let Some(bit) = column.null_bit {
                        self.buffer[bit / 8] |= 1 << (bit % 8);
                    }
                    self.buffer.extend_from_slice(&column.default);
                }
                value => write(&value, &column.ty, &mut self.buffer),
            }
        }
        if let Some(last) = self.null_bytes.checked_sub(1) {
            self.buffer[last] |= self.unused;
            self.buffer[0] |= u8::from(self.is_fixed);
        }
        self.sum = self.sum.wrapping_add(crc32_from(0, &self.buffer));
    }

    pub fn sum(&self) -> u32 {
        self.sum
    }
}

/// Whether MySQL's records have values of such a column in the length that each has.
fn is_variable(ty: &SqlType) -> bool {
    matches!(
        ty,
        SqlType::VarChar { .. }
            | SqlType::Text { .. }
            | SqlType::VarBinary { .. }
            | SqlType::Blob { .. }
            | SqlType::Json
            | SqlType::Geometry { .. }
    )
}

/// What the default record has: a constant default, or what is nothing for the type.
fn default_bytes(def: &ColumnDef) -> Vec<u8> {
    let mut bytes = Vec::new();
    match (&def.default, &def.ty) {
        (Some(DefaultValue::Const(value)), ty) if !value.is_null() => write(value, ty, &mut bytes),
        (_, SqlType::Json) => bytes.extend_from_slice(b"null"),
        (_, ty) if is_variable(ty) => {}
        (_, SqlType::Char { .. }) => write(&Datum::str(""), &def.ty, &mut bytes),
        (_, SqlType::Decimal { scale, .. }) => {
            write(&Datum::Decimal(Decimal::new(0, *scale)), &def.ty, &mut bytes);
        }
        (_, SqlType::Time { .. }) => write(&Datum::Time(0), &def.ty, &mut bytes),
        (_, SqlType::DateTime { fsp }) => {
            bytes.push(0x80);
            bytes.resize(5 + fraction_bytes(*fsp), 0);
        }
        (_, SqlType::Timestamp { fsp }) => bytes.resize(4 + fraction_bytes(*fsp), 0),
        (_, SqlType::Date) => bytes.resize(3, 0),
        (_, SqlType::Binary { len }) => bytes.resize(*len as usize, 0),
        (_, SqlType::Float(_)) => bytes.resize(4, 0),
        (_, SqlType::Double(_)) => bytes.resize(8, 0),
        (_, ty) => bytes.resize(number_bytes(ty), 0),
    }
    bytes
}

/// The bytes of a column whose values are whole numbers.
fn number_bytes(ty: &SqlType) -> usize {
    match ty {
        SqlType::Int { width: IntWidth::W16, .. } => 2,
        SqlType::Int { width: IntWidth::W24, .. } => 3,
        SqlType::Int { width: IntWidth::W32, .. } => 4,
        SqlType::Int { width: IntWidth::W64, .. } => 8,
        SqlType::Enum(members) => 1 + usize::from(members.count() > usize::from(u8::MAX)),
        SqlType::Set(members) => match members.count().div_ceil(8) {
            bytes @ 0..=4 => bytes,
            _ => 8,
        },
        SqlType::Bit { len } => usize::from(*len).div_ceil(8),
        _ => 1,
    }
}

/// Appends a value that is not NULL.
fn write(value: &Datum<'_>, ty: &SqlType, to: &mut Vec<u8>) {
    match (value, ty) {
        (Datum::UInt(bits), SqlType::Bit { .. }) => big_endian(*bits, number_bytes(ty), to),
        (Datum::UInt(year), SqlType::Year) => to.push(year.saturating_sub(1900) as u8),
        (Datum::Int(v), ty) => to.extend_from_slice(&v.to_le_bytes()[..number_bytes(ty)]),
        (Datum::UInt(v), ty) => to.extend_from_slice(&v.to_le_bytes()[..number_bytes(ty)]),
        (Datum::Float(v), _) => to.extend_from_slice(&v.to_le_bytes()),
        (Datum::Double(v), _) => to.extend_from_slice(&v.to_le_bytes()),
        (Datum::Decimal(v), SqlType::Decimal { precision, scale, .. }) => {
            decimal(v, (*precision).into(), (*scale).into(), to);
        }
        (Datum::Str(text), SqlType::Char { len, collation }) => {
            let charset = collation.info().charset;
            let end = to.len() + (*len * charset.max_len()) as usize;
            to.extend_from_slice(&encoded(text, charset));
            let blank = charset.encode(" ");
            while to.len() < end {
                to.extend_from_slice(&blank);
            }
        }
        (Datum::Str(text), ty) => match ty.collation() {
            Some(collation) => to.extend_from_slice(&encoded(text, collation.info().charset)),
            None => to.extend_from_slice(text.as_bytes()),
        },
        (Datum::Bytes(document), SqlType::Json) => json::write(Node::new(document), to),
        (Datum::Bytes(bytes), SqlType::Binary { len }) => {
            let end = to.len() + *len as usize;
            to.extend_from_slice(bytes);
            to.resize(end.max(to.len()), 0);
        }
        (Datum::Bytes(bytes), _) => to.extend_from_slice(bytes),
        (Datum::Date(days), _) => {
            let Civil { year, month, day } = Civil::from_days(*days);
            let packed = (year as u32) << 9 | month << 5 | day;
            to.extend_from_slice(&packed.to_le_bytes()[..3]);
        }
        (Datum::DateTime(ZERO_DATETIME), SqlType::Timestamp { fsp }) => {
            to.extend_from_slice(&[0; 7][..4 + fraction_bytes(*fsp)]);
        }
        (Datum::DateTime(micros), SqlType::Timestamp { fsp }) => {
            big_endian(micros.div_euclid(SECOND) as u64, 4, to);
            fraction(micros.rem_euclid(SECOND) as u64, *fsp, to);
        }
        (Datum::DateTime(micros), ty) => {
            let Civil { year, month, day } = Civil::from_days(micros.div_euclid(DAY) as i32);
            let clock = Clock::from_micros(micros.rem_euclid(DAY));
            let months = year as u64 * 13 + u64::from(month);
            let packed = (months << 5 | u64::from(day)) << 17 | packed_clock(clock);
            big_endian(packed | 1 << 39, 5, to);
            fraction(clock.micro.into(), ty.fsp().unwrap_or(0), to);
        }
        (Datum::Time(micros), ty) => {
            let (clock, fsp) = (Clock::from_micros(*micros), ty.fsp().unwrap_or(0));
            // Whole and fraction are one number, below zero as a complement.
            let bytes = fraction_bytes(fsp);
            let part = u64::from(clock.micro) / unit_of_fraction(fsp);
            let magnitude = (packed_clock(clock) << (8 * bytes) | part) as i64;
            let signed = if *micros < 0 { -magnitude } else { magnitude };
            big_endian((signed + (1 << (23 + 8 * bytes))) as u64, 3 + bytes, to);
        }
        // Values are of their columns' types.
        (Datum::Null | Datum::Decimal(_), _) => {}
    }
}

fn encoded(text: &str, charset: Charset) -> Cow<'_, [u8]> {
    match charset.is_utf8() {
        true => text.as_bytes().into(),
        false => charset.encode(text).into(),
    }
}

fn packed_clock(clock: Clock) -> u64 {
    u64::from(clock.hour << 12 | clock.minute << 6 | clock.second)
}

fn fraction_bytes(fsp: u8) -> usize {
    usize::from(fsp).div_ceil(2)
}

/// Microseconds of one in the fraction's last place: it has an even number of digits.
fn unit_of_fraction(fsp: u8) -> u64 {
    [1_000_000, 10_000, 100, 1][fraction_bytes(fsp)]
}

fn fraction(micros: u64, fsp: u8, to: &mut Vec<u8>) {
    big_endian(micros / unit_of_fraction(fsp), fraction_bytes(fsp), to);
}

fn big_endian(v: u64, bytes: usize, to: &mut Vec<u8>) {
    to.extend_from_slice(&v.to_be_bytes()[8 - bytes..]);
}

/// Groups of nine digits in four bytes each, counted from the point; fewer digits at both ends in fewer bytes. The first bit is
/// turned round, and all are for a number below zero (`decimal2bin`).
fn decimal(v: &Decimal, precision: usize, scale: usize, to: &mut Vec<u8>) {
    let mut text = Vec::new();
    v.abs().write(&mut text);
    let point = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let whole = precision - scale;
    let mut digits = vec![b'0'; whole.saturating_sub(point)];
    digits.extend_from_slice(&text[point.saturating_sub(whole)..point]);
    digits.extend_from_slice(text.get(point + 1..).unwrap_or_default());
    digits.resize(precision, b'0');
    let first = to.len();
    let (whole, part) = digits.split_at(whole);
    let (lead, words) = whole.split_at(whole.len() % DIGITS_PER_WORD);
    for group in [lead].into_iter().chain(words.chunks(DIGITS_PER_WORD)).chain(part.chunks(DIGITS_PER_WORD)) {
        let number = group.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
        big_endian(number, BYTES_OF_DIGITS[group.len()], to);
    }
    if v.is_negative() {
        to[first..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    if let Some(byte) = to.get_mut(first) {
        *byte ^= 0x80;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql_type::{Collation, LobSize};

    fn checksum(columns: Vec<ColumnDef>, row: &[Datum<'static>]) -> u32 {
        let table = TableDef::new("d", "t", columns, Vec::new());
        let mut checksum = TableChecksum::new(&table);
        checksum.add(|at| row[at].clone());
        checksum.sum()
    }

    fn one(ty: SqlType, value: Datum<'static>) -> u32 {
        checksum(vec![ColumnDef::new("a", ty)], &[value])
    }

    /// What MySQL 9.7 answers for a table of one row.
    #[test]
    fn is_mysqls() {
        let int = |name: &str| ColumnDef::new(name, SqlType::INT);
        let text = SqlType::VarChar { len: 5, collation: Collation::DEFAULT };
        let v = || ColumnDef::new("v", text).nullable();
        assert_eq!(checksum(vec![int("a")], &[Datum::Int(5)]), 999_866_531);
        assert_eq!(checksum(vec![int("a").nullable()], &[Datum::Int(5)]), 1_096_324_035);
        assert_eq!(checksum(vec![int("a").nullable()], &[Datum::Null]), 205_926_545);
        let default = Some(DefaultValue::Const(Datum::Int(7)));
        assert_eq!(
            checksum(vec![ColumnDef { default, ..int("a").nullable() }], &[Datum::Null]),
            2_442_201_128
        );
        assert_eq!(
            checksum(vec![int("a").nullable(), v()], &[Datum::Int(5), Datum::str("ab")]),
            2_972_009_714
        );
        assert_eq!(checksum(vec![int("a").nullable(), v()], &[Datum::Int(5), Datum::Null]), 116_975_891);
        // A byte of NULL bits that is full is lost.
        let seven = ["a", "b", "c", "d", "e", "f", "g"].map(|name| int(name).nullable());
        let values = [5, 6, 7, 8, 9, 1, 2].map(Datum::Int);
        assert_eq!(checksum(seven.into(), &values), 1_108_822_895);
    }

    #[test]
    fn has_the_bytes_of_each_type() {
        let collation = Collation::DEFAULT;
        assert_eq!(one(SqlType::Char { len: 3, collation }, Datum::str("ab")), 2_185_943_173);
        assert_eq!(one(SqlType::Bit { len: 10 }, Datum::UInt(515)), 3_940_998_855);
        assert_eq!(one(SqlType::Date, Datum::Date(Civil::new(2024, 5, 6).to_days())), 858_988_721);
        let micros = 1_714_979_289 * SECOND;
        assert_eq!(one(SqlType::DateTime { fsp: 0 }, Datum::DateTime(micros)), 2_609_019_150);
        assert_eq!(one(SqlType::DateTime { fsp: 6 }, Datum::DateTime(micros + 123_456)), 331_509_497);
        assert_eq!(one(SqlType::Timestamp { fsp: 3 }, Datum::DateTime(micros + 123_000)), 2_410_381_084);
        let time = -((7 * 60 + 8) * 60 + 9) * SECOND;
        assert_eq!(one(SqlType::Time { fsp: 0 }, Datum::Time(time)), 219_707_193);
        assert_eq!(one(SqlType::Time { fsp: 3 }, Datum::Time(time - 123_000)), 3_210_835_203);
        assert_eq!(one(SqlType::Year, Datum::UInt(2024)), 2_337_198_746);
        let money = SqlType::Decimal { precision: 10, scale: 2, unsigned: false };
        assert_eq!(one(money, Datum::Decimal(Decimal::new(123_456, 2))), 2_028_277_026);
        let long = SqlType::Decimal { precision: 14, scale: 4, unsigned: false };
        assert_eq!(one(long, Datum::Decimal(Decimal::new(-12_345_678_901_234, 4))), 997_985_060);
        assert_eq!(
            one(SqlType::Int { width: IntWidth::W24, unsigned: false }, Datum::Int(-5)),
            4_176_893_731
        );
        assert_eq!(one(SqlType::FLOAT, Datum::Float(1.5)), 1_910_164_194);
        let blob = SqlType::Blob { size: LobSize::Tiny };
        assert_eq!(one(blob, Datum::bytes(b"ab")), 2_659_403_885);
    }
}
